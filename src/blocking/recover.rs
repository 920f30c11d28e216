use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::header::{HeaderName, HeaderValue};

use super::client::Client;
use super::resuming::Resuming;
use super::worker::Worker;
use crate::engine::Effect;
use crate::error::Error;
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
    /// Each may be [resumed](Self::resume).
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
    /// # Errors
    ///
    /// As of [`unfinished`](Self::unfinished).
    pub fn in_doubt(&self) -> Result<Vec<OperationRecord>, JournalError> {
        let client = self.inner.clone();
        self.read(async move { client.in_doubt().await })
    }

    /// What is on record of an operation.
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
    pub fn resume(&self, id: impl Into<OperationId>) -> Resume {
        Resume { inner: self.inner.resume(id), worker: Arc::clone(&self.worker) }
    }

    /// Goes on with all [unfinished](Self::unfinished) operations that are due:
    /// an iterator over their ends, a few at a time.
    pub fn resume_all(&self) -> ResumeAll {
        ResumeAll { inner: self.inner.resume_all(), worker: Arc::clone(&self.worker) }
    }

    /// Settles an operation by what was found outside of it: `by` says who, and
    /// `note` on what evidence. It is on the disk when this returns.
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
    pub fn bearer_auth<T: fmt::Display>(self, token: T) -> Self {
        self.with(|inner| inner.bearer_auth(token))
    }

    /// `Authorization: Basic` (RFC 7617), never printed and never stored.
    pub fn basic_auth<U: fmt::Display, P: fmt::Display>(self, username: U, password: Option<P>) -> Self {
        self.with(|inner| inner.basic_auth(username, password))
    }

    /// Another credential: `Cookie`, `Proxy-Authorization`, or a header whose
    /// value is marked sensitive. Anything else is on record, and refused here.
    pub fn header<K, V>(self, name: K, value: V) -> Self
    where
        HeaderName: TryFrom<K>,
        HeaderValue: TryFrom<V>,
    {
        self.with(|inner| inner.header(name, value))
    }

    /// The account that it was sent for, in the place of the client's.
    pub fn account(self, account: impl Into<Box<str>>) -> Self {
        self.with(|inner| inner.account(account))
    }

    /// How long one attempt may take, in the place of the client's.
    pub fn attempt_timeout(self, timeout: Duration) -> Self {
        self.with(|inner| inner.attempt_timeout(timeout))
    }

    /// How long this run may take, waits included, in the place of the client's.
    pub fn deadline(self, deadline: Duration) -> Self {
        self.with(|inner| inner.deadline(deadline))
    }

    /// Goes on with it, until the answer is final or nothing more can safely be
    /// done. This thread waits, up to the deadline.
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
    pub fn bearer_auth<T: fmt::Display>(self, token: T) -> Self {
        self.with(|inner| inner.bearer_auth(token))
    }

    /// Another credential for all of them; see [`Resume::header`].
    pub fn header<K, V>(self, name: K, value: V) -> Self
    where
        HeaderName: TryFrom<K>,
        HeaderValue: TryFrom<V>,
    {
        self.with(|inner| inner.header(name, value))
    }

    /// How many go on at a time; at least 1. Default: 8.
    pub fn concurrency(self, most: usize) -> Self {
        self.with(|inner| inner.concurrency(most))
    }

    /// Lists those that are due, and gives the iterator over their ends.
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
