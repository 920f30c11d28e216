//! The same for threads without a runtime.

use std::path::Path;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};

use super::{Sqlite, SqliteBuilder};
use crate::journal::{JournalError, JournalErrorKind};

/// Without async. Inside a runtime each of these is an error of kind
/// [`Setting`](JournalErrorKind::Setting).
#[cfg_attr(docsrs, doc(cfg(feature = "blocking")))]
impl Sqlite {
    /// [`open`](Self::open), and this thread waits.
    ///
    /// ```no_run
    /// use oncekey::blocking::Client;
    /// use oncekey::journal::Sqlite;
    ///
    /// let client = Client::builder().journal(Sqlite::blocking_open("payments.db")?).build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As there; and inside a runtime.
    pub fn blocking_open(path: impl AsRef<Path>) -> Result<Self, JournalError> {
        Self::builder().blocking_open(path)
    }

    /// [`create`](Self::create), and this thread waits.
    ///
    /// # Errors
    ///
    /// As there; and inside a runtime.
    pub fn blocking_create(path: impl AsRef<Path>) -> Result<Self, JournalError> {
        Self::builder().blocking_create(path)
    }

    /// [`open_or_create`](Self::open_or_create), and this thread waits. **Know
    /// what an empty journal means**, as told there.
    ///
    /// # Errors
    ///
    /// As there; and inside a runtime.
    pub fn blocking_open_or_create(path: impl AsRef<Path>) -> Result<Self, JournalError> {
        Self::builder().blocking_open_or_create(path)
    }

    /// [`prune`](Self::prune), and this thread waits: drops requests and
    /// answers of closed operations that were created longer ago than `older_than`, and
    /// gives their number.
    ///
    /// # Errors
    ///
    /// [`JournalError`]: it cannot be written, it was closed, or this is inside
    /// a runtime.
    pub fn blocking_prune(&self, older_than: Duration) -> Result<u64, JournalError> {
        wait(self.prune(older_than))
    }

    /// [`close`](Self::close), and this thread waits: flushes and closes it.
    /// Dropping the last clone does it too, but tells of no error.
    ///
    /// # Errors
    ///
    /// [`JournalError`]: what was last written did not reach the disk, it was
    /// closed before, or this is inside a runtime.
    pub fn blocking_close(&self) -> Result<(), JournalError> {
        wait(self.close())
    }
}

/// Without async. Inside a runtime each of these is an error of kind
/// [`Setting`](JournalErrorKind::Setting).
#[cfg_attr(docsrs, doc(cfg(feature = "blocking")))]
impl SqliteBuilder {
    /// [`open`](Self::open), and this thread waits.
    ///
    /// # Errors
    ///
    /// As there; and inside a runtime.
    pub fn blocking_open(self, path: impl AsRef<Path>) -> Result<Sqlite, JournalError> {
        wait(self.open(path))
    }

    /// [`create`](Self::create), and this thread waits.
    ///
    /// # Errors
    ///
    /// As there; and inside a runtime.
    pub fn blocking_create(self, path: impl AsRef<Path>) -> Result<Sqlite, JournalError> {
        wait(self.create(path))
    }

    /// [`open_or_create`](Self::open_or_create), and this thread waits.
    ///
    /// # Errors
    ///
    /// As there; and inside a runtime.
    pub fn blocking_open_or_create(self, path: impl AsRef<Path>) -> Result<Sqlite, JournalError> {
        wait(self.open_or_create(path))
    }
}

/// Nothing of a journal is bound to the runtime that it was opened in: it has threads of its own.
fn wait<T>(work: impl Future<Output = Result<T, JournalError>>) -> Result<T, JournalError> {
    if Handle::try_current().is_ok() {
        let what = "a blocking call inside a tokio runtime, whose other tasks it would hold up: use the async \
                    method of the same name there, or a thread of its own";
        return Err(JournalError::new(JournalErrorKind::Setting, what));
    }
    let runtime = Builder::new_current_thread().enable_time().build().map_err(|error| {
        JournalError::new(JournalErrorKind::Io, "no runtime can be made to wait for the journal").with_source(error)
    })?;
    runtime.block_on(work)
}
