//! Where operations are written down, so that they outlive the process.
//!
//! A [`Journal`] stores entries and decides nothing: what they mean is
//! [`History`](crate::engine::History)'s to say. [`Memory`] is for tests,
//! `Sqlite` (feature `sqlite`) is a file that many processes may share.

mod answer;
mod claim;
pub mod codec;
mod error;
mod memory;
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
pub(crate) use claim::Claim;
pub use error::{JournalError, JournalErrorKind};
pub use memory::Memory;
pub use seal::Seal;
#[cfg(feature = "sqlite")]
#[cfg_attr(docsrs, doc(cfg(feature = "sqlite")))]
pub use sqlite::{Sqlite, SqliteBuilder};
pub use stored::{Append, Durability, Identity, NewOperation, Scope, Status, Stored, StoredBody, StoredRequest};

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
    fn owner(&self) -> Owner;

    /// The key that this journal's fingerprints are made with.
    fn fingerprint_key(&self) -> &[u8; 32];

    /// Writes down a new operation, flushed.
    fn insert(&self, operation: NewOperation, patience: Duration) -> Doing<'_, ()>;

    /// Adds entries, and what comes with them, to an operation.
    fn append(&self, append: Append, patience: Duration) -> Doing<'_, ()>;

    /// One operation, whole.
    fn load<'a>(&'a self, id: &'a OperationId) -> Doing<'a, Option<Stored>>;

    /// The operations of the scope whose status is not
    /// [`Closed`](Status::Closed), oldest first, without requests and answers.
    fn list<'a>(&'a self, scope: &'a Scope) -> Doing<'a, Vec<Stored>>;

    /// Whether that owner may still be working.
    fn is_alive(&self, owner: Owner) -> Doing<'_, bool>;

    /// This owner no longer works on the operation. Never waits: it is called
    /// when a future is dropped.
    fn release(&self, id: &OperationId);

    /// What was written is on the disk when this returns.
    fn flush(&self, patience: Duration) -> Doing<'_, ()>;

    /// Drops requests and answers of closed operations that were created at least
    /// `older_than` ago, and gives their number. Id, key, fingerprint and
    /// entries stay: to forget an id would be a second payment.
    fn prune(&self, older_than: Duration) -> Doing<'_, u64>;

    /// Flushes and closes it. Whatever is asked of it afterwards fails with
    /// [`Closed`](JournalErrorKind::Closed).
    fn close(&self) -> Doing<'_, ()>;
}
