use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::header::{HeaderName, HeaderValue};

use super::client::Client;
use super::resuming::Resuming;
use super::worker::Worker;
use crate::engine::Effect;
use crate::error::Error;
use crate::event::Event;
use crate::journal::JournalError;
use crate::recover::OperationRecord;
use crate::response::Response;
use crate::submission::OperationId;

/// With a journal: what is on record, and going on with it.
///
/// All of it sees the operations of the client's own profile and account alone.
#[cfg_attr(docsrs, doc(cfg(feature = "journal")))]
impl Client {
    /// The operations that have no end and that nobody works on, oldest first.
    /// Each may be [resumed](Self::resume). One that certainly had no effect is not
    /// among them: nothing is left to be done, unless its id is asked for again.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::blocking::Client;
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// # let once = oncekey::Retry::default().max_attempts(1).base_delay(std::time::Duration::ZERO);
    /// # let client = Client::builder().journal(oncekey::journal::Memory::new()).retry(once).build()?;
    /// # sandbox.fail_next(oncekey::sandbox::Fault::answer_lost());
    /// # client.post(sandbox.url("/v1/payments")).operation("order-7").body("{}").send().unwrap_err();
    /// for operation in client.unfinished()? {
    ///     println!("{} is {}", operation.id(), operation.effect()); // order-7 is unknown
    /// }
    /// # assert_eq!(client.unfinished()?[0].id().as_str(), "order-7");
    /// # assert_eq!(client.unfinished()?[0].effect().to_string(), "unknown");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`JournalError`]: the client has no journal, it cannot be read, or this
    /// is inside a runtime.
    pub fn unfinished(&self) -> Result<Vec<OperationRecord>, JournalError> {
        let client = self.inner.clone();
        self.read(async move { client.unfinished().await })
    }

    /// The operations whose effect is unknown and that must not be sent again,
    /// oldest first: look each up at the provider, then [`resolve`](Self::resolve) it.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::blocking::Client;
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// # let once = oncekey::Retry::default().max_attempts(1).base_delay(std::time::Duration::ZERO);
    /// # let client = Client::builder().journal(oncekey::journal::Memory::new()).retry(once).build()?;
    /// use oncekey::sandbox::Fault;
    ///
    /// sandbox.fail_next(Fault::replayed(500)); // stored under the key
    /// client.post(sandbox.url("/v1/payments")).operation("order-7").body("{}").send().unwrap_err();
    /// let doubtful = client.in_doubt()?.remove(0);
    /// assert_eq!(doubtful.id().as_str(), "order-7");
    /// assert_eq!(doubtful.last_answer().map(|answer| answer.status().as_u16()), Some(500));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As of [`unfinished`](Self::unfinished).
    pub fn in_doubt(&self) -> Result<Vec<OperationRecord>, JournalError> {
        let client = self.inner.clone();
        self.read(async move { client.in_doubt().await })
    }

    /// What is on record of an operation.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::blocking::Client;
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// # let once = oncekey::Retry::default().max_attempts(1).base_delay(std::time::Duration::ZERO);
    /// # let client = Client::builder().journal(oncekey::journal::Memory::new()).retry(once).build()?;
    /// use oncekey::RecordState;
    ///
    /// client.post(sandbox.url("/v1/payments")).operation("order-7").body("{}").send()?;
    /// let record = client.lookup("order-7")?.expect("it was sent under this id");
    /// assert_eq!(record.state(), RecordState::Settled);
    /// assert!(client.lookup("order-8")?.is_none());
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As of [`unfinished`](Self::unfinished).
    pub fn lookup(&self, id: impl Into<OperationId>) -> Result<Option<OperationRecord>, JournalError> {
        let (client, id) = (self.inner.clone(), id.into());
        self.read(async move { client.lookup(id).await })
    }

    /// Goes on with an operation: the same bytes under the same key, with the
    /// credentials given here. One that has its end on record is answered from
    /// there.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::blocking::Client;
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// # let once = oncekey::Retry::default().max_attempts(1).base_delay(std::time::Duration::ZERO);
    /// # let client = Client::builder().journal(oncekey::journal::Memory::new()).retry(once).build()?;
    /// # sandbox.fail_next(oncekey::sandbox::Fault::answer_lost());
    /// # client.post(sandbox.url("/v1/payments")).operation("order-7").body("{}").send().unwrap_err();
    /// let response = client.resume("order-7").bearer_auth("fresh").send()?; // its answer was lost
    /// assert!(response.is_replay());
    /// assert_eq!(sandbox.executions(), 1);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn resume(&self, id: impl Into<OperationId>) -> Resume {
        Resume { inner: self.inner.resume(id), worker: Arc::clone(&self.worker) }
    }

    /// Goes on with all [unfinished](Self::unfinished) operations that are due:
    /// an iterator over their ends, a few at a time.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::blocking::Client;
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// # let once = oncekey::Retry::default().max_attempts(1).base_delay(std::time::Duration::ZERO);
    /// # let client = Client::builder().journal(oncekey::journal::Memory::new()).retry(once).build()?;
    /// # sandbox.fail_next(oncekey::sandbox::Fault::answer_lost());
    /// # client.post(sandbox.url("/v1/payments")).operation("order-7").body("{}").send().unwrap_err();
    /// for (id, end) in client.resume_all().bearer_auth("fresh").start()? {
    ///     assert_eq!((id.as_str(), end?.is_replay()), ("order-7", true));
    /// }
    /// # assert!(client.unfinished()?.is_empty());
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn resume_all(&self) -> ResumeAll {
        ResumeAll { inner: self.inner.resume_all(), worker: Arc::clone(&self.worker) }
    }

    /// Settles an operation by what was found outside of it: `by` says who, and
    /// `note` on what evidence. It is on the disk when this returns.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::blocking::Client;
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// # let once = oncekey::Retry::default().max_attempts(1).base_delay(std::time::Duration::ZERO);
    /// # let client = Client::builder().journal(oncekey::journal::Memory::new()).retry(once).build()?;
    /// use oncekey::{Effect, sandbox::Fault};
    ///
    /// sandbox.fail_next(Fault::replayed(500)); // stored under the key
    /// client.post(sandbox.url("/v1/payments")).operation("order-7").body("{}").send().unwrap_err();
    /// client.resolve("order-7", Effect::Applied, "ana", "pay_7 in the statement of May 4th")?;
    /// assert_eq!(client.lookup("order-7")?.map(|record| record.effect()), Some(Effect::Applied));
    /// assert!(client.resolve("order-7", Effect::Unknown, "bo", "").is_err()); // settles nothing
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As of [`oncekey::Client::resolve`](crate::Client::resolve); and inside a
    /// runtime, with effect `Unknown`, since the record is not read for it.
    pub fn resolve(&self, id: impl Into<OperationId>, effect: Effect, by: &str, note: &str) -> Result<(), Error> {
        let (client, id, by, note) = (self.inner.clone(), id.into(), by.to_owned(), note.to_owned());
        self.write(async move { client.resolve(id, effect, &by, &note).await })
    }

    /// Gives up an operation that did not take effect: it is never sent again,
    /// and the same business may be done under another id.
    ///
    /// ```
    /// # use oncekey::blocking::Client;
    /// # let once = oncekey::Retry::default().max_attempts(1).base_delay(std::time::Duration::ZERO);
    /// # let client = Client::builder().journal(oncekey::journal::Memory::new()).retry(once).build()?;
    /// use oncekey::ErrorKind;
    ///
    /// let pay = || client.post("http://127.0.0.1:1/payments").operation("order-7").send(); // nobody listens there
    /// pay().unwrap_err();
    /// client.abandon("order-7")?;
    /// assert_eq!(pay().unwrap_err().kind(), ErrorKind::Resolved);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As of [`oncekey::Client::abandon`](crate::Client::abandon); and inside a
    /// runtime, with effect `Unknown`, since the record is not read for it.
    pub fn abandon(&self, id: impl Into<OperationId>) -> Result<(), Error> {
        let (client, id) = (self.inner.clone(), id.into());
        self.write(async move { client.abandon(id).await })
    }

    fn read<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, JournalError>> + Send + 'static,
    ) -> Result<T, JournalError> {
        self.worker.run(work).unwrap_or_else(|lost| Err(lost.journal_error()))
    }

    fn write(&self, work: impl Future<Output = Result<(), Error>> + Send + 'static) -> Result<(), Error> {
        self.worker.run(work).unwrap_or_else(|lost| Err(lost.error(Effect::Unknown, false)))
    }
}

/// An operation that is gone on with; see [`Client::resume`].
#[must_use = "nothing is resumed until it is sent"]
pub struct Resume {
    inner: crate::Resume,
    worker: Arc<Worker>,
}

impl Resume {
    /// `Authorization: Bearer`, never printed and never stored.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::blocking::Client;
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// # let once = oncekey::Retry::default().max_attempts(1).base_delay(std::time::Duration::ZERO);
    /// # let client = Client::builder().journal(oncekey::journal::Memory::new()).retry(once).build()?;
    /// # sandbox.fail_next(oncekey::sandbox::Fault::answer_lost());
    /// # client.post(sandbox.url("/v1/payments")).operation("order-7").body("{}").send().unwrap_err();
    /// client.resume("order-7").bearer_auth("fresh").send()?;
    /// assert_eq!(sandbox.requests()[1].headers()["authorization"], "Bearer fresh");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn bearer_auth<T: fmt::Display>(self, token: T) -> Self {
        self.with(|inner| inner.bearer_auth(token))
    }

    /// `Authorization: Basic` (RFC 7617), never printed and never stored.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::blocking::Client;
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// # let once = oncekey::Retry::default().max_attempts(1).base_delay(std::time::Duration::ZERO);
    /// # let client = Client::builder().journal(oncekey::journal::Memory::new()).retry(once).build()?;
    /// # sandbox.fail_next(oncekey::sandbox::Fault::answer_lost());
    /// # client.post(sandbox.url("/v1/payments")).operation("order-7").body("{}").send().unwrap_err();
    /// client.resume("order-7").basic_auth("user", None::<&str>).send()?;
    /// assert_eq!(sandbox.requests()[1].headers()["authorization"], "Basic dXNlcjo="); // `user:`
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn basic_auth<U: fmt::Display, P: fmt::Display>(self, username: U, password: Option<P>) -> Self {
        self.with(|inner| inner.basic_auth(username, password))
    }

    /// Another credential: `Cookie`, `Proxy-Authorization`, or a header whose
    /// value is marked sensitive. Anything else is on record, and refused here.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::blocking::Client;
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// # let once = oncekey::Retry::default().max_attempts(1).base_delay(std::time::Duration::ZERO);
    /// # let client = Client::builder().journal(oncekey::journal::Memory::new()).retry(once).build()?;
    /// # sandbox.fail_next(oncekey::sandbox::Fault::answer_lost());
    /// # client.post(sandbox.url("/v1/payments")).operation("order-7").body("{}").send().unwrap_err();
    /// use oncekey::ErrorKind;
    ///
    /// let error = client.resume("order-7").header("x-tenant", "acme").send().unwrap_err(); // is on record
    /// assert_eq!(error.kind(), ErrorKind::Request);
    /// client.resume("order-7").header("cookie", "session=1").send()?;
    /// assert_eq!(sandbox.requests()[1].headers()["cookie"], "session=1");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn header<K, V>(self, name: K, value: V) -> Self
    where
        HeaderName: TryFrom<K>,
        HeaderValue: TryFrom<V>,
    {
        self.with(|inner| inner.header(name, value))
    }

    /// The account that it was sent for, in the place of the client's.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::blocking::Client;
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// # let once = oncekey::Retry::default().max_attempts(1).base_delay(std::time::Duration::ZERO);
    /// # let client = Client::builder().journal(oncekey::journal::Memory::new()).retry(once).build()?;
    /// let request = client.post(sandbox.url("/v1/payments")).operation("order-7").account("acct_2");
    /// request.send()?;
    /// assert!(client.resume("order-7").send().is_err()); // this client acts for no account
    /// assert_eq!(client.resume("order-7").account("acct_2").send()?.status(), 201);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn account(self, account: impl Into<Box<str>>) -> Self {
        self.with(|inner| inner.account(account))
    }

    /// How long one attempt may take, in the place of the client's.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::blocking::Client;
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// # let once = oncekey::Retry::default().max_attempts(1).base_delay(std::time::Duration::ZERO);
    /// # let client = Client::builder().journal(oncekey::journal::Memory::new()).retry(once).build()?;
    /// # sandbox.fail_next(oncekey::sandbox::Fault::answer_lost());
    /// # client.post(sandbox.url("/v1/payments")).operation("order-7").body("{}").send().unwrap_err();
    /// use std::time::Duration;
    /// use oncekey::{Failure, sandbox::Fault};
    ///
    /// sandbox.fail_next(Fault::stall_before_reading());
    /// let error = client.resume("order-7").attempt_timeout(Duration::from_millis(200)).send().unwrap_err();
    /// assert_eq!(error.attempts().last().and_then(|attempt| attempt.failure()), Some(Failure::Timeout));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn attempt_timeout(self, timeout: Duration) -> Self {
        self.with(|inner| inner.attempt_timeout(timeout))
    }

    /// Tells what happens, on the client's own thread: see [`Event`](crate::Event).
    /// A blocking call in the hook fails.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::blocking::Client;
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// # let once = oncekey::Retry::default().max_attempts(1).base_delay(std::time::Duration::ZERO);
    /// # let client = Client::builder().journal(oncekey::journal::Memory::new()).retry(once).build()?;
    /// # sandbox.fail_next(oncekey::sandbox::Fault::answer_lost());
    /// # client.post(sandbox.url("/v1/payments")).operation("order-7").body("{}").send().unwrap_err();
    /// use std::sync::mpsc;
    ///
    /// let (sender, events) = mpsc::channel();
    /// let resume = client.resume("order-7").on_event(move |event| { let _ = sender.send(event.to_string()); });
    /// resume.send()?;
    /// assert_eq!(events.recv()?, "order-7: attempt 2 started (retry)");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_event(self, hook: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.with(|inner| inner.on_event(hook))
    }

    /// How long this run may take, waits included, in the place of the client's.
    ///
    /// ```
    /// # use oncekey::blocking::Client;
    /// # let once = oncekey::Retry::default().max_attempts(1).base_delay(std::time::Duration::ZERO);
    /// # let client = Client::builder().journal(oncekey::journal::Memory::new()).retry(once).build()?;
    /// use std::time::Duration;
    /// use oncekey::ErrorKind;
    ///
    /// client.post("http://127.0.0.1:1/payments").operation("order-7").send().unwrap_err(); // nobody listens there
    /// let error = client.resume("order-7").deadline(Duration::from_millis(300)).send().unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Exhausted);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn deadline(self, deadline: Duration) -> Self {
        self.with(|inner| inner.deadline(deadline))
    }

    /// Goes on with it, until the answer is final or nothing more can safely be
    /// done. This thread waits, up to the deadline.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::blocking::Client;
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// # let once = oncekey::Retry::default().max_attempts(1).base_delay(std::time::Duration::ZERO);
    /// # let client = Client::builder().journal(oncekey::journal::Memory::new()).retry(once).build()?;
    /// # sandbox.fail_next(oncekey::sandbox::Fault::answer_lost());
    /// # client.post(sandbox.url("/v1/payments")).operation("order-7").body("{}").send().unwrap_err();
    /// use oncekey::{Effect, ErrorKind};
    ///
    /// assert_eq!(client.resume("order-7").send()?.status(), 201); // its answer was lost
    /// assert_eq!(client.resume("order-7").send()?.status(), 201); // from the record
    /// assert_eq!(sandbox.requests().len(), 2);
    /// let error = client.resume("order-8").send().unwrap_err();
    /// assert_eq!((error.kind(), error.effect()), (ErrorKind::Journal, Effect::Unknown)); // not on record
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error`]: why there is no final answer, and whether it took effect.
    ///
    /// # Effect
    ///
    /// As of [`oncekey::Resume::send`](crate::Resume::send). Inside a runtime it
    /// is `Unknown`, since the record is not read for it.
    pub fn send(self) -> Result<Response, Error> {
        let Self { inner, worker } = self;
        worker.run(inner.send()).unwrap_or_else(|lost| Err(lost.error(Effect::Unknown, false)))
    }

    fn with(self, set: impl FnOnce(crate::Resume) -> crate::Resume) -> Self {
        Self { inner: set(self.inner), worker: self.worker }
    }
}

impl fmt::Debug for Resume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

/// All unfinished operations, to be gone on with; see [`Client::resume_all`].
///
/// ```no_run
/// # fn after_a_restart(client: oncekey::blocking::Client, token: &str) -> Result<(), Box<dyn std::error::Error>> {
/// for (id, end) in client.resume_all().bearer_auth(token).concurrency(4).start()? {
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
    inner: crate::ResumeAll,
    worker: Arc<Worker>,
}

impl ResumeAll {
    /// `Authorization: Bearer` for all of them, never printed and never stored.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::blocking::Client;
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// # let once = oncekey::Retry::default().max_attempts(1).base_delay(std::time::Duration::ZERO);
    /// # let client = Client::builder().journal(oncekey::journal::Memory::new()).retry(once).build()?;
    /// # sandbox.fail_next(oncekey::sandbox::Fault::answer_lost());
    /// # client.post(sandbox.url("/v1/payments")).operation("order-7").body("{}").send().unwrap_err();
    /// let ends: Vec<_> = client.resume_all().bearer_auth("fresh").start()?.collect();
    /// assert_eq!(ends.len(), 1);
    /// assert_eq!(sandbox.requests()[1].headers()["authorization"], "Bearer fresh");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn bearer_auth<T: fmt::Display>(self, token: T) -> Self {
        self.with(|inner| inner.bearer_auth(token))
    }

    /// Another credential for all of them; see [`Resume::header`].
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::blocking::Client;
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// # let once = oncekey::Retry::default().max_attempts(1).base_delay(std::time::Duration::ZERO);
    /// # let client = Client::builder().journal(oncekey::journal::Memory::new()).retry(once).build()?;
    /// # sandbox.fail_next(oncekey::sandbox::Fault::answer_lost());
    /// # client.post(sandbox.url("/v1/payments")).operation("order-7").body("{}").send().unwrap_err();
    /// use oncekey::reqwest::header::HeaderValue;
    ///
    /// let mut token = HeaderValue::from_static("t-1");
    /// token.set_sensitive(true);
    /// for (id, end) in client.resume_all().header("x-token", token).start()? {
    ///     println!("{id}: {}", end?.status());
    /// }
    /// assert_eq!(sandbox.requests()[1].headers()["x-token"], "t-1");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn header<K, V>(self, name: K, value: V) -> Self
    where
        HeaderName: TryFrom<K>,
        HeaderValue: TryFrom<V>,
    {
        self.with(|inner| inner.header(name, value))
    }

    /// How many go on at a time; at least 1. Default: 8.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::blocking::Client;
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// # let once = oncekey::Retry::default().max_attempts(1).base_delay(std::time::Duration::ZERO);
    /// # let client = Client::builder().journal(oncekey::journal::Memory::new()).retry(once).build()?;
    /// # sandbox.fail_next([oncekey::sandbox::Fault::answer_lost(), oncekey::sandbox::Fault::answer_lost()]);
    /// # for order in ["order-7", "order-8"] {
    /// #     client.post(sandbox.url("/v1/payments")).operation(order).send().unwrap_err();
    /// # }
    /// let ids = client.resume_all().concurrency(1).start()?.map(|(id, _)| id.to_string());
    /// assert_eq!(ids.collect::<Vec<_>>(), ["order-7", "order-8"]); // one after the other, the oldest first
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn concurrency(self, most: usize) -> Self {
        self.with(|inner| inner.concurrency(most))
    }

    /// Lists those that are due, and gives the iterator over their ends.
    ///
    /// ```
    /// # use oncekey::blocking::Client;
    /// # let once = oncekey::Retry::default().max_attempts(1).base_delay(std::time::Duration::ZERO);
    /// # let client = Client::builder().journal(oncekey::journal::Memory::new()).retry(once).build()?;
    /// use oncekey::journal::JournalErrorKind;
    ///
    /// assert_eq!(client.resume_all().start()?.count(), 0); // nothing is open
    /// let without = Client::builder().build()?;
    /// assert_eq!(without.resume_all().start().unwrap_err().kind(), JournalErrorKind::Setting); // no journal
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`JournalError`], as of [`Client::unfinished`].
    pub fn start(self) -> Result<Resuming, JournalError> {
        let Self { inner, worker } = self;
        let ends = worker.run(inner.start()).unwrap_or_else(|lost| Err(lost.journal_error()))?;
        Ok(Resuming::new(ends, worker))
    }

    fn with(self, set: impl FnOnce(crate::ResumeAll) -> crate::ResumeAll) -> Self {
        Self { inner: set(self.inner), worker: self.worker }
    }
}

impl fmt::Debug for ResumeAll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
