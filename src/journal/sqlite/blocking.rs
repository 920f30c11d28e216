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
    /// ```
    /// use oncekey::journal::{JournalErrorKind, Sqlite};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("payments.db");
    /// let journal = Sqlite::blocking_create(&path)?; // once, by hand
    /// # drop(journal);
    /// let error = Sqlite::blocking_create(&path).unwrap_err();
    /// assert_eq!(error.kind(), JournalErrorKind::Exists);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
    /// ```
    /// use oncekey::blocking::Client;
    /// use oncekey::journal::Sqlite;
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("payments.db");
    /// let journal = Sqlite::blocking_open_or_create(&path)?;
    /// let client = Client::builder().journal(journal).build()?;
    /// assert!(client.unfinished()?.is_empty()); // it is the first run, or all was done
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As there; and inside a runtime.
    pub fn blocking_open_or_create(path: impl AsRef<Path>) -> Result<Self, JournalError> {
        Self::builder().blocking_open_or_create(path)
    }

    /// [`prune`](Self::prune), and this thread waits: drops requests and
    /// answers of closed operations that were created at least `older_than` ago, and
    /// gives their number.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oncekey::journal::Sqlite;
    /// # use oncekey::{Retry, blocking::Client};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("payments.db");
    /// # let journal = Sqlite::blocking_create(&path)?;
    /// # let client = Client::builder().journal(journal.clone()).retry(Retry::default().max_attempts(1)).build()?;
    /// # let _ = client.post("http://127.0.0.1:1/payments").operation("order-7").send();
    /// # client.abandon("order-7")?;
    /// // One operation is closed, and younger than a quarter of a year.
    /// assert_eq!(journal.blocking_prune(Duration::from_secs(90 * 86_400))?, 0);
    /// assert_eq!(journal.blocking_prune(Duration::ZERO)?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
    /// ```
    /// use std::time::Duration;
    /// use oncekey::journal::{JournalErrorKind, Sqlite};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("payments.db");
    /// # let journal = Sqlite::blocking_create(&path)?;
    /// journal.blocking_close()?; // before `std::process::exit`
    /// let error = journal.blocking_prune(Duration::ZERO).unwrap_err();
    /// assert_eq!(error.kind(), JournalErrorKind::Closed);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
    /// ```
    /// use oncekey::journal::{JournalErrorKind, Sqlite};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("payments.db");
    /// // A folder that was not mounted is no reason to begin anew.
    /// let error = Sqlite::builder().blocking_open(&path).unwrap_err();
    /// assert_eq!(error.kind(), JournalErrorKind::Missing);
    /// assert!(!path.exists());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As there; and inside a runtime.
    pub fn blocking_open(self, path: impl AsRef<Path>) -> Result<Sqlite, JournalError> {
        wait(self.open(path))
    }

    /// [`create`](Self::create), and this thread waits.
    ///
    /// ```
    /// use oncekey::journal::Sqlite;
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("payments.db");
    /// let journal = Sqlite::builder().store_bodies(false).blocking_create(&path)?;
    /// assert!(path.is_file());
    /// # drop(journal);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As there; and inside a runtime.
    pub fn blocking_create(self, path: impl AsRef<Path>) -> Result<Sqlite, JournalError> {
        wait(self.create(path))
    }

    /// [`open_or_create`](Self::open_or_create), and this thread waits.
    ///
    /// ```
    /// use oncekey::journal::{JournalErrorKind, Sqlite};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("payments.db");
    /// let journal = Sqlite::builder().store_bodies(false).blocking_open_or_create(&path)?;
    /// # drop(journal);
    ///
    /// let runtime = tokio::runtime::Runtime::new()?;
    /// let error = runtime.block_on(async { Sqlite::builder().blocking_open_or_create(&path) }).unwrap_err();
    /// assert_eq!(error.kind(), JournalErrorKind::Setting); // in a runtime it is `open_or_create`
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
                    method of the same name there, or a thread of its own that is none of `spawn_blocking`'s";
        return Err(JournalError::new(JournalErrorKind::Setting, what));
    }
    let runtime = Builder::new_current_thread().enable_time().build().map_err(|error| {
        JournalError::new(JournalErrorKind::Io, "no runtime can be made to wait for the journal").with_source(error)
    })?;
    runtime.block_on(work)
}
