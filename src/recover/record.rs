use std::fmt;
use std::time::{Duration, SystemTime};

use http::Method;
use url::Url;

use crate::engine::{Effect, Entry, History, Policy, Verdict};
use crate::journal::{Stored, StoredAnswer};
use crate::runtime;
use crate::submission::{IdempotencyKey, OperationId};

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
    pub(super) stored: Stored,
    pub(super) history: History,
    pub(super) policy: Policy,
    pub(super) state: RecordState,
}

impl OperationRecord {
    /// Its id.
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
    /// let ids: Vec<String> = client.unfinished().await?.iter().map(|record| record.id().to_string()).collect();
    /// assert_eq!(ids, ["order-7"]);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub const fn id(&self) -> &OperationId {
        self.stored.identity().id()
    }

    /// Where it stands.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).journal(oncekey::journal::Memory::new()).retry(oncekey::Retry::default().max_attempts(1).base_delay(Duration::ZERO)).build()?;
    /// use oncekey::RecordState;
    ///
    /// sandbox.fail_next(Fault::answer_lost());
    /// client.post(sandbox.url("/payments")).operation("order-7").send().await.unwrap_err();
    /// let record = client.lookup("order-7").await?.expect("it was sent under this id");
    /// assert_eq!(record.state(), RecordState::Unfinished);
    /// client.resume(record.id()).send().await?;
    /// let record = client.lookup("order-7").await?.expect("it stays on record");
    /// assert_eq!(record.state(), RecordState::Settled);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub const fn state(&self) -> RecordState {
        self.state
    }

    /// Whether it took effect, as far as the record tells.
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
    /// sandbox.fail_next(Fault::answer_lost());
    /// client.post(sandbox.url("/payments")).operation("order-7").send().await.unwrap_err();
    /// let record = client.lookup("order-7").await?.expect("it was sent under this id");
    /// assert_eq!(record.effect(), Effect::Unknown);
    /// client.resume(record.id()).send().await?;
    /// let record = client.lookup("order-7").await?.expect("it stays on record");
    /// assert_eq!(record.effect(), Effect::Applied);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn effect(&self) -> Effect {
        self.history.effect()
    }

    /// The key that it is sent under, with the time of its first use.
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
    /// let record = client.lookup("order-7").await?.expect("it was sent under this id");
    /// let key = record.key().expect("a POST has one");
    /// assert_eq!(sandbox.requests()[0].key(), Some(key.as_str()));
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn key(&self) -> Option<IdempotencyKey> {
        self.stored.identity().key().map(|key| IdempotencyKey::stored(key).used(self.history.key_since()))
    }

    /// When it was begun.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::Sandbox; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).journal(oncekey::journal::Memory::new()).retry(oncekey::Retry::default().max_attempts(1).base_delay(Duration::ZERO)).build()?;
    /// client.post(sandbox.url("/payments")).operation("order-7").send().await?;
    /// client.post(sandbox.url("/payments")).operation("order-8").send().await?;
    /// let (first, second) = (client.lookup("order-7").await?.unwrap(), client.lookup("order-8").await?.unwrap());
    /// assert!(first.created_at() <= second.created_at());
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn created_at(&self) -> SystemTime {
        runtime::system_time(self.stored.created_at())
    }

    /// How long ago that was.
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
    /// let record = client.lookup("order-7").await?.expect("it was sent under this id");
    /// let stuck = record.age() > Duration::from_secs(3600);
    /// assert!(!stuck, "it is only just begun");
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn age(&self) -> Duration {
        runtime::now().time().since(self.stored.created_at())
    }

    /// When its key is too old to be sent, the margin taken off; `None` before
    /// its first attempt, and without a key's lifetime to keep.
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
    /// let record = client.lookup("order-7").await?.expect("it was sent under this id");
    /// let life = record.key_expires_at().expect("it was sent").duration_since(record.created_at())?;
    /// let hours = life.as_secs_f64() / 3600.0; // 24 hours less half an hour
    /// assert!((23.4..23.6).contains(&hours), "{hours}");
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn key_expires_at(&self) -> Option<SystemTime> {
        let since = self.history.key_since()?;
        let usable = self.policy.key_life().saturating_sub(self.policy.margin());
        Some(runtime::system_time(since.after(usable)))
    }

    /// The earliest time for another attempt, where one was asked for.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).journal(oncekey::journal::Memory::new()).retry(oncekey::Retry::default().max_attempts(1).base_delay(Duration::ZERO)).build()?;
    /// sandbox.fail_next(Fault::status(503).retry_after("3600"));
    /// let error = client.post(sandbox.url("/payments")).operation("order-7").send().await.unwrap_err();
    /// let record = client.lookup("order-7").await?.expect("it was sent under this id");
    /// assert_eq!(record.resume_at(), error.resume_at());
    /// assert!(record.resume_at() >= Some(record.created_at() + Duration::from_secs(3600)));
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn resume_at(&self) -> Option<SystemTime> {
        self.history.resume_at(&self.policy).map(runtime::system_time)
    }

    /// How many attempts were started, over all runs.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).journal(oncekey::journal::Memory::new()).retry(oncekey::Retry::default().max_attempts(1).base_delay(Duration::ZERO)).build()?;
    /// sandbox.fail_next([Fault::answer_lost(), Fault::status(503)]);
    /// client.post(sandbox.url("/payments")).operation("order-7").send().await.unwrap_err();
    /// client.resume("order-7").send().await.unwrap_err();
    /// let record = client.lookup("order-7").await?.expect("it was sent under this id");
    /// assert_eq!(record.attempts(), 2); // one in each run
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub const fn attempts(&self) -> u32 {
        self.history.attempts()
    }

    /// What the last attempt showed, unless nobody saw its end.
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
    /// let record = client.lookup("order-7").await?.expect("it was sent under this id");
    /// assert_eq!(record.last_verdict().expect("it ended").to_string(), "in doubt, no answer");
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub const fn last_verdict(&self) -> Option<Verdict> {
        self.history.last_verdict()
    }

    /// The last answer, if one is kept.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).journal(oncekey::journal::Memory::new()).retry(oncekey::Retry::default().max_attempts(1).base_delay(Duration::ZERO)).build()?;
    /// sandbox.fail_next(Fault::status(422).json(r#"{"code":"IBAN_INVALID"}"#));
    /// client.post(sandbox.url("/payments")).operation("order-7").send().await.unwrap_err();
    /// let record = client.lookup("order-7").await?.expect("it was sent under this id");
    /// let answer = record.last_answer().expect("it was answered");
    /// assert_eq!((answer.status().as_u16(), answer.body()), (422, &br#"{"code":"IBAN_INVALID"}"#[..]));
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub const fn last_answer(&self) -> Option<&StoredAnswer> {
        self.stored.answer()
    }

    /// The method, if the request is kept. Lists come without it.
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
    /// let record = client.lookup("order-7").await?.expect("it was sent under this id");
    /// assert_eq!(record.method().expect("it is kept"), "POST");
    /// assert!(client.unfinished().await?[0].method().is_none());
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn method(&self) -> Option<&Method> {
        self.stored.request().map(|request| request.method())
    }

    /// The URL, if the request is kept. Lists come without it.
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
    /// let record = client.lookup("order-7").await?.expect("it was sent under this id");
    /// assert_eq!(record.url().expect("it is kept").path(), "/payments");
    /// assert!(client.unfinished().await?[0].url().is_none());
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn url(&self) -> Option<&Url> {
        self.stored.request().map(|request| request.url())
    }

    /// All that happened to it, in order.
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
    /// let record = client.lookup("order-7").await?.expect("it was sent under this id");
    /// use oncekey::journal::codec;
    ///
    /// for entry in record.entries() {
    ///     println!("{}", codec::encode_entry(entry)); // {"v":1,"created":{..}} and so on
    /// }
    /// let last = codec::encode_entry(record.entries().last().expect("it was created at least"));
    /// assert!(last.contains("stopped"), "{last}");
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
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
