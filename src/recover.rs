use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures_core::Stream;
use http::Method;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::task::JoinSet;
use url::Url;

use crate::client::{Client, Inner};
use crate::desk::{Desk, replayed, with_the_effect_on_record};
use crate::engine::{Again, Effect, Entry, History, Outcome, Policy, Reach, SHORTEST_ATTEMPT, Verdict};
use crate::error::Error;
use crate::event::{Event, Hook};
use crate::journal::{Claim, Journal, JournalError, JournalErrorKind, Scope, Status, Stored, StoredAnswer};
use crate::request::SHORT_DEADLINE;
use crate::response::Response;
use crate::runtime;
use crate::submission::{IdempotencyKey, OperationId, is_credential};

/// With a journal: what is on record, and going on with it.
///
/// All of it sees the operations of the client's own profile and account alone.
#[cfg_attr(docsrs, doc(cfg(feature = "journal")))]
impl Client {
    /// The operations that have no end and that nobody works on, oldest first:
    /// left by a crash, a dropped future, or a run that gave up in doubt. Each
    /// may be [resumed](Self::resume).
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
    pub fn resume(&self, id: impl Into<OperationId>) -> Resume {
        Resume {
            client: self.clone(),
            id: id.into(),
            account: None,
            credentials: Credentials::default(),
            attempt_timeout: None,
            deadline: None,
            on_event: None,
        }
    }

    /// Goes on with all [unfinished](Self::unfinished) operations that are due:
    /// a stream of their ends, a few at a time.
    pub fn resume_all(&self) -> ResumeAll {
        ResumeAll { client: self.clone(), credentials: Credentials::default(), concurrency: 8 }
    }

    /// Settles an operation by what was found outside of it: `by` says who, and
    /// `note` on what evidence. It is on the disk when this returns.
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
    /// # Errors
    ///
    /// [`Error`], if its effect is not [`Effect::NotApplied`], somebody works on
    /// it, or the journal failed.
    pub async fn abandon(&self, id: impl Into<OperationId>) -> Result<(), Error> {
        let decide = |history: &History, _: Again| match history.effect() {
            Effect::NotApplied => Ok(Effect::NotApplied),
            Effect::Applied => Err("refused: it was carried out"),
            Effect::Unknown => Err("refused: it may have been carried out: look it up, then `resolve` it"),
        };
        self.desk()?.resolve(&id.into(), &self.scope(), "abandoned".into(), decide).await
    }

    fn desk(&self) -> Result<Desk, Error> {
        match &self.inner.journal {
            Some(journal) => Ok(Desk::new(Arc::clone(&self.inner), Arc::clone(journal), self.inner.policy)),
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
        let history = if stored.status() == Status::Closed {
            History::replay(stored.entries()).map_err(damaged)?
        } else {
            replayed(&stored).map_err(damaged)?
        };
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

/// Where an operation on record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RecordState {
    /// Somebody works on it.
    Running,
    /// It has no end, and may be resumed.
    Unfinished,
    /// Its effect is unknown, and it must not be sent again.
    InDoubt,
    /// Nothing is left to be done.
    Settled,
}

/// What is on record of one operation.
#[derive(Clone)]
pub struct OperationRecord {
    stored: Stored,
    history: History,
    policy: Policy,
    state: RecordState,
}

impl OperationRecord {
    /// Its id.
    pub const fn id(&self) -> &OperationId {
        self.stored.identity().id()
    }

    /// Where it stands.
    pub const fn state(&self) -> RecordState {
        self.state
    }

    /// Whether it took effect, as far as the record tells.
    pub fn effect(&self) -> Effect {
        self.history.effect()
    }

    /// The key that it is sent under, with the time of its first use.
    pub fn key(&self) -> Option<IdempotencyKey> {
        self.stored.identity().key().map(|key| IdempotencyKey::stored(key).used(self.history.key_since()))
    }

    /// When it was begun.
    pub fn created_at(&self) -> SystemTime {
        runtime::system_time(self.stored.created_at())
    }

    /// How long ago that was.
    pub fn age(&self) -> Duration {
        runtime::now().time().since(self.stored.created_at())
    }

    /// When its key is too old to be sent, the margin taken off; `None` before
    /// its first attempt, and without a key's lifetime to keep.
    pub fn key_expires_at(&self) -> Option<SystemTime> {
        let since = self.history.key_since()?;
        let usable = self.policy.key_life().saturating_sub(self.policy.margin());
        Some(runtime::system_time(since.after(usable)))
    }

    /// The earliest time for another attempt, where one was asked for.
    pub fn resume_at(&self) -> Option<SystemTime> {
        self.history.resume_at(&self.policy).map(runtime::system_time)
    }

    /// How many attempts were started, over all runs.
    pub const fn attempts(&self) -> u32 {
        self.history.attempts()
    }

    /// What the last attempt showed, unless nobody saw its end.
    pub const fn last_verdict(&self) -> Option<Verdict> {
        self.history.last_verdict()
    }

    /// The last answer, if one is kept.
    pub const fn last_answer(&self) -> Option<&StoredAnswer> {
        self.stored.answer()
    }

    /// The method, if the request is kept. Lists come without it.
    pub fn method(&self) -> Option<&Method> {
        self.stored.request().map(|request| request.method())
    }

    /// The URL, if the request is kept. Lists come without it.
    pub fn url(&self) -> Option<&Url> {
        self.stored.request().map(|request| request.url())
    }

    /// All that happened to it, in order.
    pub fn entries(&self) -> &[Entry] {
        self.stored.entries()
    }
}

impl fmt::Debug for OperationRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperationRecord")
            .field("id", self.id())
            .field("state", &self.state)
            .field("effect", &self.effect())
            .field("attempts", &self.attempts())
            .finish_non_exhaustive()
    }
}

/// Credentials for a request that was made before: they are never on record.
#[derive(Clone, Default)]
struct Credentials {
    headers: HeaderMap,
    problem: Option<&'static str>,
}

impl Credentials {
    fn authorization(&mut self, value: String) {
        self.set(http::header::AUTHORIZATION, HeaderValue::try_from(value).ok());
    }

    fn header<K, V>(&mut self, name: K, value: V)
    where
        HeaderName: TryFrom<K>,
        HeaderValue: TryFrom<V>,
    {
        match HeaderName::try_from(name) {
            Ok(name) => self.set(name, HeaderValue::try_from(value).ok()),
            Err(_) => self.fail("a header's name holds a character that a name cannot"),
        }
    }

    fn set(&mut self, name: HeaderName, value: Option<HeaderValue>) {
        match value {
            Some(mut value) if is_credential(&name, &value) => {
                value.set_sensitive(true);
                self.headers.insert(name, value);
            }
            Some(_) => self.fail(
                "only credentials are given anew: Authorization, Cookie, Proxy-Authorization, \
                 or a header whose value is marked sensitive; the rest is on record",
            ),
            None => self.fail("the credentials hold a character that a header cannot"),
        }
    }

    fn fail(&mut self, problem: &'static str) {
        self.problem.get_or_insert(problem);
    }
}

/// An operation that is gone on with; see [`Client::resume`].
#[must_use = "nothing is resumed until it is sent"]
pub struct Resume {
    client: Client,
    id: OperationId,
    account: Option<Box<str>>,
    credentials: Credentials,
    attempt_timeout: Option<Duration>,
    deadline: Option<Duration>,
    on_event: Option<Hook>,
}

impl Resume {
    /// `Authorization: Bearer`, never printed and never stored.
    pub fn bearer_auth<T: fmt::Display>(mut self, token: T) -> Self {
        self.credentials.authorization(format!("Bearer {token}"));
        self
    }

    /// `Authorization: Basic` (RFC 7617), never printed and never stored.
    pub fn basic_auth<U: fmt::Display, P: fmt::Display>(mut self, username: U, password: Option<P>) -> Self {
        let password = password.map_or_else(String::new, |password| password.to_string());
        let encoded = BASE64.encode(format!("{username}:{password}"));
        self.credentials.authorization(format!("Basic {encoded}"));
        self
    }

    /// Another credential: `Cookie`, `Proxy-Authorization`, or a header whose
    /// value is marked sensitive. Anything else is on record, and refused here.
    pub fn header<K, V>(mut self, name: K, value: V) -> Self
    where
        HeaderName: TryFrom<K>,
        HeaderValue: TryFrom<V>,
    {
        self.credentials.header(name, value);
        self
    }

    /// The account that it was sent for, in the place of the client's.
    pub fn account(mut self, account: impl Into<Box<str>>) -> Self {
        self.account = Some(account.into());
        self
    }

    /// How long one attempt may take.
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt_timeout = Some(timeout);
        self
    }

    /// How long this run may take, waits included.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Tells what happens to it, after the client's own hook: see [`Event`].
    pub fn on_event(mut self, hook: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.on_event = Some(Arc::new(hook));
        self
    }

    /// Goes on with it, until the answer is final or nothing more can safely
    /// be done.
    ///
    /// # Errors
    ///
    /// [`Error`]: why there is no final answer, and whether it took effect.
    ///
    /// # Effect
    ///
    /// As of [`RequestBuilder::send`](crate::RequestBuilder::send), over all
    /// attempts of all runs. An id that is not on record is `Unknown`: it may be
    /// in another journal.
    pub async fn send(self) -> Result<Response, Error> {
        let inner: &Arc<Inner> = &self.client.inner;
        let Some(journal) = &inner.journal else {
            return Err(Error::request(NO_JOURNAL, Effect::Unknown, None));
        };
        let mut policy = inner.policy;
        if let Some(timeout) = self.attempt_timeout {
            policy = policy.attempt_timeout(timeout);
        }
        if let Some(deadline) = self.deadline {
            policy = policy.deadline(deadline);
        }
        let problem = self.credentials.problem.or_else(|| match (self.attempt_timeout, self.deadline) {
            (Some(timeout), _) if timeout.is_zero() => Some("attempt_timeout is zero, in which nothing can be sent"),
            (_, Some(deadline)) if deadline < SHORTEST_ATTEMPT => Some(SHORT_DEADLINE),
            _ => None,
        });
        if let Some(problem) = problem {
            let error = Error::request(problem, Effect::Unknown, None);
            return Err(with_the_effect_on_record(error, Some(&**journal), Some(self.id)).await);
        }
        let credentials = self.credentials.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let desk = Desk::new(Arc::clone(inner), Arc::clone(journal), policy).watched(self.on_event);
        Box::pin(desk.resume(self.id, self.account, credentials)).await
    }
}

impl fmt::Debug for Resume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resume").field("id", &self.id).finish_non_exhaustive()
    }
}

/// All unfinished operations, to be gone on with; see [`Client::resume_all`].
///
/// ```no_run
/// # async fn after_a_restart(client: oncekey::Client, token: &str) -> Result<(), Box<dyn std::error::Error>> {
/// let mut ends = client.resume_all().bearer_auth(token).concurrency(4).start().await?;
/// while let Some((id, end)) = ends.next().await {
///     match end {
///         Ok(response) => println!("{id}: carried out, {}", response.status()),
///         Err(error) => println!("{id}: {error}"),
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is resumed until it is started"]
pub struct ResumeAll {
    client: Client,
    credentials: Credentials,
    concurrency: usize,
}

impl ResumeAll {
    /// `Authorization: Bearer` for all of them, never printed and never stored.
    pub fn bearer_auth<T: fmt::Display>(mut self, token: T) -> Self {
        self.credentials.authorization(format!("Bearer {token}"));
        self
    }

    /// Another credential for all of them; see [`Resume::header`].
    pub fn header<K, V>(mut self, name: K, value: V) -> Self
    where
        HeaderName: TryFrom<K>,
        HeaderValue: TryFrom<V>,
    {
        self.credentials.header(name, value);
        self
    }

    /// How many go on at a time; at least 1. Default: 8.
    pub fn concurrency(mut self, most: usize) -> Self {
        self.concurrency = most.max(1);
        self
    }

    /// Lists those that are due, and gives the stream of their ends.
    ///
    /// # Errors
    ///
    /// [`JournalError`], as of [`Client::unfinished`].
    pub async fn start(self) -> Result<Resuming, JournalError> {
        let now = runtime::now().system_time();
        let unfinished = self.client.unfinished().await?;
        let is_due = |record: &&OperationRecord| record.resume_at().is_none_or(|at| at <= now);
        let left = unfinished.iter().filter(is_due).map(|record| record.id().clone()).collect();
        Ok(Resuming { all: self, left, running: JoinSet::new() })
    }
}

impl fmt::Debug for ResumeAll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResumeAll").field("concurrency", &self.concurrency).finish_non_exhaustive()
    }
}

type End = (OperationId, Result<Response, Error>);

/// The ends of operations that are resumed, as they come. Dropping it leaves
/// the rest resumable.
#[must_use = "nothing is resumed until the stream is asked"]
pub struct Resuming {
    all: ResumeAll,
    left: VecDeque<OperationId>,
    running: JoinSet<End>,
}

impl Resuming {
    /// Those that were not begun yet.
    #[cfg(feature = "blocking")]
    pub(crate) fn left(&self) -> impl Iterator<Item = &OperationId> {
        self.left.iter()
    }

    /// The next end; `None` when all have ended. To be called in a tokio runtime.
    pub async fn next(&mut self) -> Option<(OperationId, Result<Response, Error>)> {
        std::future::poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<End>> {
        while self.running.len() < self.all.concurrency
            && let Some(id) = self.left.pop_front()
        {
            let mut resume = self.all.client.resume(&id);
            resume.credentials = self.all.credentials.clone();
            self.running.spawn(async move { (id, resume.send().await) });
        }
        match std::task::ready!(self.running.poll_join_next(context)) {
            Some(Ok(end)) => Poll::Ready(Some(end)),
            // A panic of the caller's own hook goes on to the caller.
            Some(Err(error)) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // Without these the runtime is going down.
            Some(Err(_)) | None => Poll::Ready(None),
        }
    }
}

impl Stream for Resuming {
    type Item = (OperationId, Result<Response, Error>);

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll(context)
    }
}

impl fmt::Debug for Resuming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resuming")
            .field("left", &self.left.len())
            .field("running", &self.running.len())
            .finish_non_exhaustive()
    }
}
