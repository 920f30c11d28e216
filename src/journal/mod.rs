//! Where operations are written down, so that they outlive the process.
//!
//! A [`Journal`] stores entries and decides nothing: what they mean is
//! [`History`](crate::engine::History)'s to say. [`Memory`] is for tests,
//! `Sqlite` (feature `sqlite`) is a file that many processes may share.
//!
//! ```
//! # #[cfg(feature = "sandbox")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use oncekey::{Client, journal::Memory};
//!
//! # let sandbox = oncekey::sandbox::Sandbox::start().await?;
//! # let url = sandbox.url("/v1/payments");
//! let client = Client::builder().journal(Memory::new()).build()?;
//! let pay = || client.post(&url).operation("order-7").body(r#"{"amount":4999}"#).send();
//! let first = pay().await?;
//! let again = pay().await?; // from the record: nothing is sent
//! assert_eq!((again.text(), again.attempts().len()), (first.text(), 0));
//! # assert_eq!(sandbox.requests().len(), 1);
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "sandbox"))]
//! # fn main() {}
//! ```
//!
//! After a crash: [`Client::unfinished`](crate::Client::unfinished),
//! [`Client::resume_all`](crate::Client::resume_all) and, for what no request can
//! settle, [`Client::in_doubt`](crate::Client::in_doubt).

mod answer;
mod append;
mod claim;
pub mod codec;
mod error;
mod identity;
mod memory;
mod request;
mod seal;
#[cfg(feature = "sqlite")]
mod sqlite;
mod stored;

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use crate::engine::Owner;
use crate::submission::OperationId;

pub use crate::fingerprint::Fingerprint;
pub use answer::StoredAnswer;
pub use append::{Append, Durability};
pub(crate) use claim::Claim;
pub use error::{JournalError, JournalErrorKind};
pub use identity::{Identity, Scope};
pub use memory::Memory;
pub use request::{StoredBody, StoredRequest};
pub use seal::Seal;
#[cfg(feature = "sqlite")]
#[cfg_attr(docsrs, doc(cfg(feature = "sqlite")))]
pub use sqlite::{Sqlite, SqliteBuilder};
pub use stored::{NewOperation, Status, Stored};

/// What a journal's methods give.
pub type Doing<'a, T> = Pin<Box<dyn Future<Output = Result<T, JournalError>> + Send + 'a>>;

/// The record of operations. The contract, which one suite of tests holds
/// every back end to:
///
/// - **Atomic.** [`insert`](Self::insert) and [`append`](Self::append) write all
///   that they were given or nothing.
/// - **Ordered.** `append` fails with [`Conflict`](JournalErrorKind::Conflict)
///   unless the record holds exactly as many entries as the caller has read.
///   Of two writers at one position one wins.
/// - **Durable.** With [`Durability::Flushed`] it is on the disk when the call
///   returns. With [`Durability::Visible`] every other process sees it, and it
///   reaches the disk with the next flushed write, after 100 ms, or on
///   [`flush`](Self::flush) or [`close`](Self::close).
/// - **Withdrawn.** A write whose `patience` is over, or whose future was
///   dropped, before it was begun, never happens. An error that is
///   [certain](JournalError::is_certain) means that nothing was written.
/// - **Unique.** Ids are unique in the journal; keys are unique for a profile
///   and account. `insert` tells which of the two is taken.
/// - **Owned.** Each open journal is an [`Owner`] of its own; clones share it.
///   [`is_alive`](Self::is_alive) is true as long as that journal is open in a
///   process that lives, even if it is stopped, and false soon after it died.
pub trait Journal: fmt::Debug + Send + Sync {
    /// Who this open journal is.
    ///
    /// ```
    /// use oncekey::journal::{Journal, Memory};
    ///
    /// let journal = Memory::new();
    /// assert_eq!(journal.clone().owner(), journal.owner());
    /// assert_ne!(Memory::new().owner(), journal.owner());
    /// ```
    fn owner(&self) -> Owner;

    /// The key that this journal's fingerprints are made with.
    ///
    /// ```
    /// use oncekey::journal::{Journal, Memory};
    ///
    /// // Another journal's fingerprints tell nothing here.
    /// assert_ne!(Memory::new().fingerprint_key(), Memory::new().fingerprint_key());
    /// ```
    fn fingerprint_key(&self) -> &[u8; 32];

    /// Writes down a new operation, flushed.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oncekey::journal::{Journal, JournalErrorKind, Memory, NewOperation, Status};
    /// # use oncekey::engine::{Entry, KeyOrigin, MethodKind, Time};
    /// # use oncekey::journal::{Fingerprint, Identity, Scope, StoredBody, StoredRequest};
    /// # use oncekey::reqwest::Method;
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let journal = Memory::new();
    /// # let url = "https://api.example/payments".parse()?;
    /// # let request = StoredRequest::new(Method::POST, url, vec![], StoredBody::None);
    /// # let (at, key) = (Time::from_millis(1), KeyOrigin::None);
    /// # let created = Entry::Created { at, key, method: MethodKind::Other, gone_is_done: false };
    /// # let identity = Identity::new("order-7".into(), Scope::new("acme", ""), Fingerprint::from_bytes([7; 32]));
    /// let operation = NewOperation::new(identity, request, vec![created], Status::Running(journal.owner()));
    /// journal.insert(operation.clone(), Duration::from_secs(1)).await?;
    /// let error = journal.insert(operation, Duration::from_secs(1)).await.unwrap_err();
    /// assert_eq!(error.kind(), JournalErrorKind::IdTaken);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`IdTaken`](JournalErrorKind::IdTaken) or [`KeyTaken`](JournalErrorKind::KeyTaken),
    /// [`Locked`](JournalErrorKind::Locked) when `patience` is over, and what the medium brings.
    fn insert(&self, operation: NewOperation, patience: Duration) -> Doing<'_, ()>;

    /// Adds entries, and what comes with them, to an operation.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oncekey::engine::StopReason;
    /// use oncekey::journal::{Append, Journal, JournalErrorKind, Memory};
    /// # use oncekey::engine::{Entry, KeyOrigin, MethodKind, Time};
    /// # use oncekey::journal::{Fingerprint, Identity, NewOperation, Scope, Status, StoredBody, StoredRequest};
    /// # use oncekey::reqwest::Method;
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let (journal, patience, now) = (Memory::new(), Duration::from_secs(1), Time::from_millis(2));
    /// # let url = "https://api.example/payments".parse()?;
    /// # let request = StoredRequest::new(Method::POST, url, vec![], StoredBody::None);
    /// # let (at, key) = (Time::from_millis(1), KeyOrigin::None);
    /// # let created = Entry::Created { at, key, method: MethodKind::Other, gone_is_done: false };
    /// # let identity = Identity::new("order-7".into(), Scope::new("acme", ""), Fingerprint::from_bytes([7; 32]));
    /// # journal.insert(NewOperation::new(identity, request, vec![created], Status::Open), patience).await?;
    /// // The record holds one entry, its creation: this is to be the second.
    /// let stopped = Entry::Stopped { reason: StopReason::Authorize, at: now };
    /// let append = Append::new("order-7".into(), 1, vec![stopped], Status::Open);
    /// journal.append(append.clone(), patience).await?;
    /// let error = journal.append(append, patience).await.unwrap_err();
    /// assert_eq!(error.kind(), JournalErrorKind::Conflict);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Conflict`](JournalErrorKind::Conflict) if the record is longer or shorter than the append
    /// says, or is not there; else as of [`insert`](Self::insert).
    fn append(&self, append: Append, patience: Duration) -> Doing<'_, ()>;

    /// One operation, whole.
    ///
    /// ```
    /// use oncekey::journal::{Journal, Memory};
    /// # use oncekey::{Client, Retry};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let journal = Memory::new();
    /// # let client = Client::builder().journal(journal.clone()).retry(Retry::default().max_attempts(1)).build()?;
    /// # let _ = client.post("http://127.0.0.1:1/payments").operation("order-7").send().await;
    /// let stored = journal.load(&"order-7".into()).await?.unwrap();
    /// assert_eq!(stored.request().unwrap().method(), "POST");
    /// assert!(journal.load(&"order-8".into()).await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If it cannot be read: [`Corrupt`](JournalErrorKind::Corrupt), [`Newer`](JournalErrorKind::Newer),
    /// [`Seal`](JournalErrorKind::Seal). An id that is not on record is none.
    fn load<'a>(&'a self, id: &'a OperationId) -> Doing<'a, Option<Stored>>;

    /// The operations of the scope whose status is not
    /// [`Closed`](Status::Closed), oldest first, without requests and answers.
    ///
    /// ```
    /// use oncekey::journal::{Journal, Memory, Scope};
    /// # use oncekey::{Client, IdempotencyKey, Profile, Retry};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let journal = Memory::new();
    /// # let used = IdempotencyKey::parse("3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506")?;
    /// # let client = Client::builder().profile(Profile::stripe()).account("acct_1").journal(journal.clone());
    /// # let client = client.retry(Retry::default().max_attempts(1)).build()?;
    /// # let _ = client.post("http://127.0.0.1:1/payments").operation("order-7").idempotency_key(used).send().await;
    /// let open = journal.list(&Scope::new("stripe-v1", "acct_1")).await?;
    /// assert_eq!(open[0].identity().id().as_str(), "order-7");
    /// assert!(open[0].request().is_none()); // `load` brings it
    /// assert!(journal.list(&Scope::new("stripe-v1", "acct_2")).await?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As of [`load`](Self::load).
    fn list<'a>(&'a self, scope: &'a Scope) -> Doing<'a, Vec<Stored>>;

    /// Whether that owner may still be working.
    ///
    /// ```
    /// use oncekey::journal::{Journal, Memory};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let journal = Memory::new();
    /// assert!(journal.is_alive(journal.owner()).await?);
    /// let dead = Memory::new().owner(); // that one was dropped
    /// assert!(!journal.is_alive(dead).await?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If that cannot be told.
    fn is_alive(&self, owner: Owner) -> Doing<'_, bool>;

    /// This owner no longer works on the operation. Never waits: it is called
    /// when a future is dropped.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oncekey::journal::{Journal, Memory, NewOperation, Status};
    /// # use oncekey::engine::{Entry, KeyOrigin, MethodKind, Time};
    /// # use oncekey::journal::{Fingerprint, Identity, Scope, StoredBody, StoredRequest};
    /// # use oncekey::reqwest::Method;
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let journal = Memory::new();
    /// # let url = "https://api.example/payments".parse()?;
    /// # let request = StoredRequest::new(Method::POST, url, vec![], StoredBody::None);
    /// # let (at, key) = (Time::from_millis(1), KeyOrigin::None);
    /// # let created = Entry::Created { at, key, method: MethodKind::Other, gone_is_done: false };
    /// # let identity = Identity::new("order-7".into(), Scope::new("acme", ""), Fingerprint::from_bytes([7; 32]));
    /// let operation = NewOperation::new(identity, request, vec![created], Status::Running(journal.owner()));
    /// journal.insert(operation, Duration::from_secs(1)).await?;
    /// journal.release(&"order-7".into());
    /// let stored = journal.load(&"order-7".into()).await?.unwrap();
    /// assert_eq!(stored.status(), Status::Open); // anybody may take it up
    /// # Ok(())
    /// # }
    /// ```
    fn release(&self, id: &OperationId);

    /// What was written is on the disk when this returns.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oncekey::journal::{Append, Durability, Journal, Memory};
    /// # use oncekey::engine::{Entry, KeyOrigin, MethodKind, Owner, Time};
    /// # use oncekey::journal::{Fingerprint, Identity, NewOperation, Scope, Status, StoredBody, StoredRequest};
    /// # use oncekey::reqwest::Method;
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let (journal, patience, now) = (Memory::new(), Duration::from_secs(1), Time::from_millis(2));
    /// # let url = "https://api.example/payments".parse()?;
    /// # let request = StoredRequest::new(Method::POST, url, vec![], StoredBody::None);
    /// # let (at, key) = (Time::from_millis(1), KeyOrigin::None);
    /// # let created = Entry::Created { at, key, method: MethodKind::Other, gone_is_done: false };
    /// # let identity = Identity::new("order-7".into(), Scope::new("acme", ""), Fingerprint::from_bytes([7; 32]));
    /// # journal.insert(NewOperation::new(identity, request, vec![created], Status::Open), patience).await?;
    /// let resumed = Entry::Resumed { owner: journal.owner(), at: now };
    /// let append = Append::new("order-7".into(), 1, vec![resumed], Status::Running(journal.owner()));
    /// journal.append(append.with_durability(Durability::Visible), patience).await?; // seen by all
    /// journal.flush(patience).await?; // and on the disk, where there is one
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If it may not be on the disk.
    fn flush(&self, patience: Duration) -> Doing<'_, ()>;

    /// Drops requests and answers of closed operations that were created at least
    /// `older_than` ago, and gives their number. Id, key, fingerprint and
    /// entries stay: to forget an id would be a second payment.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oncekey::journal::{Journal, Memory};
    /// # use oncekey::{Client, Effect, IdempotencyKey, Retry};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let journal = Memory::new();
    /// # let used = IdempotencyKey::parse("3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506")?;
    /// # let client = Client::builder().journal(journal.clone()).retry(Retry::default().max_attempts(1)).build()?;
    /// # let _ = client.post("http://127.0.0.1:1/payments").operation("order-7").idempotency_key(used).send().await;
    /// assert_eq!(Journal::prune(&journal, Duration::ZERO).await?, 0); // it is still open
    /// client.resolve("order-7", Effect::Applied, "ana", "pay_7 in the statement").await?;
    /// assert_eq!(Journal::prune(&journal, Duration::ZERO).await?, 1);
    /// let stored = journal.load(&"order-7".into()).await?.unwrap();
    /// assert!(stored.request().is_none() && !stored.entries().is_empty());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    fn prune(&self, older_than: Duration) -> Doing<'_, u64>;

    /// Flushes and closes it. Whatever is asked of it afterwards fails with
    /// [`Closed`](JournalErrorKind::Closed).
    ///
    /// ```
    /// use oncekey::journal::{Journal, JournalErrorKind, Memory};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let journal = Memory::new();
    /// Journal::close(&journal).await?;
    /// let error = journal.load(&"order-7".into()).await.unwrap_err();
    /// assert_eq!(error.kind(), JournalErrorKind::Closed);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If what was written last may not be on the disk, or it was closed before.
    fn close(&self) -> Doing<'_, ()>;
}
