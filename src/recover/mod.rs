mod record;
mod resume;

use std::sync::Arc;

use crate::client::Client;
use crate::desk::{Desk, replayed_as};
use crate::engine::{Again, Effect, History, Outcome, Policy, Reach};
use crate::error::Error;
use crate::journal::{Claim, Journal, JournalError, JournalErrorKind, Scope, Status, Stored};
use crate::runtime;
use crate::submission::OperationId;

pub use record::{OperationRecord, RecordState};
pub use resume::{Resume, ResumeAll, Resuming};

/// With a journal: what is on record, and going on with it.
///
/// All of it sees the operations of the client's own profile and account alone.
#[cfg_attr(docsrs, doc(cfg(feature = "journal")))]
impl Client {
    /// The operations that have no end and that nobody works on, oldest first:
    /// left by a crash, a dropped future, or a run that gave up in doubt. Each
    /// may be [resumed](Self::resume). One that certainly had no effect is not
    /// among them: nothing is left to be done, unless its id is asked for again.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).journal(oncekey::journal::Memory::new()).retry(oncekey::Retry::default().max_attempts(1).base_delay(Duration::ZERO)).build()?;
    /// sandbox.fail_next(Fault::answer_lost());
    /// client.post(sandbox.url("/payments")).operation("order-7").send().await.unwrap_err();
    /// let open = client.unfinished().await?;
    /// assert_eq!((open[0].id().as_str(), open[0].effect().as_str()), ("order-7", "unknown"));
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    ///
    /// # Errors
    ///
    /// [`JournalError`]: the client has no journal, or it cannot be read.
    pub async fn unfinished(&self) -> Result<Vec<OperationRecord>, JournalError> {
        self.listed(RecordState::Unfinished).await
    }

    /// The operations whose effect is unknown and that must not be sent again,
    /// oldest first: look each up at the provider, then [`resolve`](Self::resolve) it.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).journal(oncekey::journal::Memory::new()).retry(oncekey::Retry::default().max_attempts(1).base_delay(Duration::ZERO)).build()?;
    /// sandbox.fail_next(Fault::replayed(500)); // stored under the key: asking again is of no use
    /// client.post(sandbox.url("/payments")).operation("order-7").send().await.unwrap_err();
    /// for doubtful in client.in_doubt().await? {
    ///     println!("look up {}, {} s old", doubtful.id(), doubtful.age().as_secs());
    ///     assert_eq!(doubtful.last_answer().map(|answer| answer.status().as_u16()), Some(500));
    /// }
    /// assert_eq!((client.in_doubt().await?.len(), client.unfinished().await?.len()), (1, 0));
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    ///
    /// # Errors
    ///
    /// As of [`unfinished`](Self::unfinished).
    pub async fn in_doubt(&self) -> Result<Vec<OperationRecord>, JournalError> {
        let mut doubtful = self.listed(RecordState::InDoubt).await?;
        let journal = self.journal()?;
        for record in &mut doubtful {
            // Lists come without answers.
            record.stored.answer = journal.load(record.id()).await?.and_then(|stored| stored.answer);
        }
        Ok(doubtful)
    }

    /// What is on record of an operation.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::Sandbox; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).journal(oncekey::journal::Memory::new()).retry(oncekey::Retry::default().max_attempts(1).base_delay(Duration::ZERO)).build()?;
    /// use oncekey::{Effect, RecordState};
    ///
    /// client.post(sandbox.url("/payments")).operation("order-7").send().await?;
    /// let record = client.lookup("order-7").await?.expect("it was sent under this id");
    /// assert_eq!((record.state(), record.effect()), (RecordState::Settled, Effect::Applied));
    /// assert!(client.lookup("order-8").await?.is_none());
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    ///
    /// # Errors
    ///
    /// As of [`unfinished`](Self::unfinished).
    pub async fn lookup(&self, id: impl Into<OperationId>) -> Result<Option<OperationRecord>, JournalError> {
        let id = id.into();
        let Some(stored) = self.journal()?.load(&id).await? else {
            return Ok(None);
        };
        if *stored.identity().scope() != self.scope() {
            return Ok(None);
        }
        self.recorded(stored).await.map(Some)
    }

    /// Goes on with an operation: the same bytes under the same key, with the
    /// credentials given here. One that has its end on record is answered from
    /// there.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).journal(oncekey::journal::Memory::new()).retry(oncekey::Retry::default().max_attempts(1).base_delay(Duration::ZERO)).build()?;
    /// sandbox.fail_next(Fault::answer_lost());
    /// client.post(sandbox.url("/payments")).operation("order-7").body("{}").send().await.unwrap_err();
    /// let response = client.resume("order-7").bearer_auth("fresh").send().await?;
    /// assert!(response.is_replay());
    /// assert_eq!(sandbox.executions(), 1);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn resume(&self, id: impl Into<OperationId>) -> Resume {
        Resume::new(self.clone(), id.into())
    }

    /// Goes on with all [unfinished](Self::unfinished) operations that are due:
    /// a stream of their ends, a few at a time.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).journal(oncekey::journal::Memory::new()).retry(oncekey::Retry::default().max_attempts(1).base_delay(Duration::ZERO)).build()?;
    /// sandbox.fail_next(Fault::answer_lost());
    /// client.post(sandbox.url("/payments")).operation("order-7").body("{}").send().await.unwrap_err();
    /// let mut ends = client.resume_all().bearer_auth("fresh").start().await?;
    /// while let Some((id, end)) = ends.next().await {
    ///     assert_eq!((id.as_str(), end?.is_replay()), ("order-7", true));
    /// }
    /// assert!(client.unfinished().await?.is_empty());
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn resume_all(&self) -> ResumeAll {
        ResumeAll::new(self.clone())
    }

    /// Settles an operation by what was found outside of it: `by` says who, and
    /// `note` on what evidence. It is on the disk when this returns.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).journal(oncekey::journal::Memory::new()).retry(oncekey::Retry::default().max_attempts(1).base_delay(Duration::ZERO)).build()?;
    /// use oncekey::Effect;
    ///
    /// sandbox.fail_next(Fault::replayed(500)); // stored under the key
    /// client.post(sandbox.url("/payments")).operation("order-7").send().await.unwrap_err();
    /// client.resolve("order-7", Effect::Applied, "ana", "pay_7 in the statement of May 4th").await?;
    /// assert_eq!(client.lookup("order-7").await?.map(|record| record.effect()), Some(Effect::Applied));
    /// assert!(client.resolve("order-7", Effect::Unknown, "bo", "").await.is_err()); // settles nothing
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error`], with the effect on record, which stays as it was: the record
    /// knows better (an answer, a final refusal, or [`Effect::Unknown`] settles
    /// nothing), somebody works on it, or the journal failed.
    pub async fn resolve(&self, id: impl Into<OperationId>, effect: Effect, by: &str, note: &str) -> Result<(), Error> {
        let by = if note.is_empty() { by.to_owned() } else { format!("{by}: {note}") };
        let decide = move |_: &History, again: Again| match again {
            _ if effect == Effect::Unknown => Err("refused: that it is unknown settles nothing"),
            Again::Ended(Outcome::Applied) => Err("refused: its answer is on record"),
            Again::Ended(Outcome::Ended(verdict)) if verdict.reach() == Reach::Rejected => {
                Err("refused: its final refusal is on record")
            }
            Again::Ended(_) | Again::GoesOn => Ok(effect),
        };
        self.desk()?.resolve(&id.into(), &self.scope(), by.into(), decide).await
    }

    /// Gives up an operation that did not take effect: it is never sent again,
    /// and the same business may be done under another id.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).journal(oncekey::journal::Memory::new()).retry(oncekey::Retry::default().max_attempts(1)).build()?;
    /// use oncekey::ErrorKind;
    ///
    /// let pay = || client.post("http://127.0.0.1:1/payments").operation("order-7").send(); // nobody listens there
    /// pay().await.unwrap_err();
    /// client.abandon("order-7").await?;
    /// assert_eq!(pay().await.unwrap_err().kind(), ErrorKind::Resolved);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error`], if its effect is not [`Effect::NotApplied`], somebody works on
    /// it, or the journal failed.
    pub async fn abandon(&self, id: impl Into<OperationId>) -> Result<(), Error> {
        let decide = |history: &History, _: Again| match history.effect() {
            Effect::NotApplied => Ok(Effect::NotApplied),
            Effect::Applied => Err("it cannot be abandoned"),
            Effect::Unknown => Err("it cannot be abandoned before it is looked up: then `resolve` it"),
        };
        self.desk()?.resolve(&id.into(), &self.scope(), "abandoned".into(), decide).await
    }

    fn desk(&self) -> Result<Desk, Error> {
        match &self.inner.journal {
            Some(journal) => {
                Ok(Desk::new(Arc::clone(&self.inner), Arc::clone(journal), Arc::clone(&self.inner.policy)))
            }
            None => Err(Error::request(NO_JOURNAL, Effect::Unknown, None)),
        }
    }

    fn journal(&self) -> Result<&Arc<dyn Journal>, JournalError> {
        self.inner.journal.as_ref().ok_or_else(|| JournalError::new(JournalErrorKind::Setting, NO_JOURNAL))
    }

    fn scope(&self) -> Scope {
        Scope::new(self.inner.profile.id(), self.inner.account.clone())
    }

    async fn listed(&self, state: RecordState) -> Result<Vec<OperationRecord>, JournalError> {
        let mut found = Vec::new();
        for stored in self.journal()?.list(&self.scope()).await? {
            let record = self.recorded(stored).await?;
            if record.state == state {
                found.push(record);
            }
        }
        Ok(found)
    }

    async fn recorded(&self, stored: Stored) -> Result<OperationRecord, JournalError> {
        let is_worked_on = match stored.status() {
            Status::Running(owner) if owner == self.journal()?.owner() => Claim::is_held(owner, stored.identity().id()),
            Status::Running(owner) => self.journal()?.is_alive(owner).await?,
            Status::Open | Status::Closed => false,
        };
        // An answer that a list leaves out was kept all the same, or the row were open.
        let is_kept = stored.status() == Status::Closed || stored.answer().is_some();
        let history = replayed_as(&stored, is_kept).map_err(damaged)?;
        let policy = self.inner.policy.key_lifetime(self.inner.policy.key_life().min(stored.identity().key_lifetime()));
        let state = if is_worked_on { RecordState::Running } else { state(&history, &policy) };
        Ok(OperationRecord { stored, history, policy, state })
    }
}

const NO_JOURNAL: &str = "this client has no journal: give it one with `ClientBuilder::journal`";

fn damaged(error: impl std::error::Error + Send + Sync + 'static) -> JournalError {
    JournalError::new(JournalErrorKind::Corrupt, "an operation's record is damaged").with_source(error)
}

fn state(history: &History, policy: &Policy) -> RecordState {
    if history.is_settled() {
        return RecordState::Settled;
    }
    match (history.asked_again(policy, runtime::now().time()), history.effect()) {
        (Again::GoesOn, _) => RecordState::Unfinished,
        (Again::Ended(_), Effect::Unknown) => RecordState::InDoubt,
        (Again::Ended(_), Effect::Applied | Effect::NotApplied) => RecordState::Settled,
    }
}
