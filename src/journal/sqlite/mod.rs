//! A journal in a file of SQLite, through `sqlx`.
//!
//! Two threads of their own, so that neither the end of a runtime nor a caller
//! that is dropped interrupts a commit: [`writer`] puts whatever is queued into
//! one transaction, [`reader`] reads beside it.

mod batch;
#[cfg(feature = "blocking")]
mod blocking;
mod fault;
mod instance;
mod open;
mod reader;
mod row;
mod schema;
mod writer;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use sqlx::sqlite::{SqliteConnection, SqlitePool};
use tokio::sync::{mpsc, oneshot};

use self::instance::Instance;
use self::reader::{Query, Raw};
use self::row::{Form, Row};
use self::writer::{Job, Ticket, Write, Writer};
use super::{Append, Doing, Journal, JournalError, JournalErrorKind, NewOperation, Scope, Stored};
use crate::engine::Owner;
use crate::runtime;
use crate::submission::OperationId;

pub use open::SqliteBuilder;

/// A journal in a file, which many processes may share. Cheap to clone.
///
/// The file is in WAL mode, with `synchronous=FULL` for what must be durable
/// and `secure_delete`; beside it lie SQLite's own `-wal` and `-shm` and the
/// folder `.owners` of locks, by which one process tells that another died.
/// The `-wal` is part of the journal, and after a kill it holds what came last:
/// whoever moves, copies or mounts the file must take it along. No other code
/// of this process may open the file, not to copy it either: closing it takes
/// away the locks that SQLite has on it (POSIX). Another process may.
///
/// Files are readable by their owner alone. It must be on a local disk: neither
/// WAL nor the locks are to be trusted on a network's. A program that has it
/// open must not read or copy the file itself: closing it afterwards drops the
/// locks that SQLite holds on it.
///
/// Dropping the last clone flushes and closes it, for which the thread that
/// drops it waits. `std::process::exit` drops nothing: call
/// [`close`](Journal::close) before it.
#[derive(Clone)]
pub struct Sqlite {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    instance: Arc<Instance>,
    form: Form,
    /// None once it was closed.
    jobs: Mutex<Option<mpsc::UnboundedSender<Job>>>,
    queries: Mutex<Option<mpsc::UnboundedSender<Query>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Sqlite {
    /// Opens the journal at this path, which must be there: a missing file is
    /// an error, and so is an empty one, since an empty journal has forgotten
    /// every operation.
    ///
    /// ```
    /// use oncekey::journal::{JournalErrorKind, Sqlite};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("payments.db");
    /// # Sqlite::create(&path).await?.close().await?;
    /// let journal = Sqlite::open(&path).await?;
    /// # drop(journal);
    /// let error = Sqlite::open(path.with_file_name("mistyped.db")).await.unwrap_err();
    /// assert_eq!(error.kind(), JournalErrorKind::Missing);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`JournalError`]: no such file or folder, no journal, a damaged one, one
    /// of a newer version, or one that cannot be written.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, JournalError> {
        Self::builder().open(path).await
    }

    /// Makes a journal at this path, which must not be there. Its folder must.
    ///
    /// ```
    /// use oncekey::journal::{JournalErrorKind, Sqlite};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("payments.db");
    /// let journal = Sqlite::create(&path).await?; // once, by hand
    /// # drop(journal);
    /// let error = Sqlite::create(&path).await.unwrap_err();
    /// assert_eq!(error.kind(), JournalErrorKind::Exists);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`JournalError`]: there is such a file, or it cannot be made.
    pub async fn create(path: impl AsRef<Path>) -> Result<Self, JournalError> {
        Self::builder().create(path).await
    }

    /// Opens the journal at this path, or makes one.
    ///
    /// **Know what an empty one means.** If the volume was not mounted, or the
    /// path is mistyped, this makes a journal that knows of no operation, and
    /// what was begun before is begun again under new keys. Where that could
    /// happen, `create` once, by hand, and `open` ever after.
    ///
    /// ```
    /// use oncekey::{Client, journal::Sqlite};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("payments.db");
    /// let client = Client::builder().journal(Sqlite::open_or_create(&path).await?).build()?;
    /// assert!(client.unfinished().await?.is_empty()); // it is the first run, or all was done
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As of [`open`](Self::open) and [`create`](Self::create).
    pub async fn open_or_create(path: impl AsRef<Path>) -> Result<Self, JournalError> {
        Self::builder().open_or_create(path).await
    }

    /// A journal over two connections of your own pool (`sqlx` 0.9), which it
    /// keeps; the file must be there and have no tables but a journal's.
    ///
    /// ```
    /// use oncekey::{Client, journal::Sqlite};
    /// use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("payments.db");
    /// let options = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
    /// let pool = SqlitePool::connect_with(options).await?;
    /// let client = Client::builder().journal(Sqlite::from_pool(&pool).await?).build()?;
    /// assert!(client.unfinished().await?.is_empty());
    /// # pool.close().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As of [`open`](Self::open).
    pub async fn from_pool(pool: &SqlitePool) -> Result<Self, JournalError> {
        Self::builder().from_pool(pool).await
    }

    /// Drops requests and answers of closed operations that were created at least
    /// `older_than` ago, and gives their number; see [`Journal::prune`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use oncekey::journal::Sqlite;
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("payments.db");
    /// # let journal = Sqlite::create(&path).await?;
    /// # let retry = oncekey::Retry::default().max_attempts(1);
    /// # let client = oncekey::Client::builder().journal(journal.clone()).retry(retry).build()?;
    /// # let _ = client.post("http://127.0.0.1:1/payments").operation("order-7").send().await;
    /// # client.abandon("order-7").await?;
    /// // One operation is closed, and younger than a quarter of a year.
    /// assert_eq!(journal.prune(Duration::from_secs(90 * 86_400)).await?, 0);
    /// assert_eq!(journal.prune(Duration::ZERO).await?, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`JournalError`]: it cannot be written, or was closed.
    pub async fn prune(&self, older_than: Duration) -> Result<u64, JournalError> {
        Journal::prune(self, older_than).await
    }

    /// Flushes and closes it; see [`Journal::close`]. To be called before
    /// `std::process::exit`, which drops nothing.
    ///
    /// ```
    /// use oncekey::journal::{JournalErrorKind, Sqlite};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("payments.db");
    /// let journal = Sqlite::create(&path).await?;
    /// journal.close().await?; // before `std::process::exit`
    /// let error = journal.prune(std::time::Duration::ZERO).await.unwrap_err();
    /// assert_eq!(error.kind(), JournalErrorKind::Closed);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`JournalError`]: what was last written did not reach the disk, or it was
    /// closed before.
    pub async fn close(&self) -> Result<(), JournalError> {
        Journal::close(self).await
    }

    /// To seal what is stored, or to leave bodies out.
    ///
    /// ```
    /// use oncekey::journal::Sqlite;
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("payments.db");
    /// let journal = Sqlite::builder().store_bodies(false).create(&path).await?;
    /// assert!(path.is_file());
    /// # drop(journal);
    /// assert!(Sqlite::builder().open(path.with_file_name("mistyped.db")).await.is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder() -> SqliteBuilder {
        SqliteBuilder::new()
    }

    fn start(
        path: &Path,
        writer: SqliteConnection,
        reader: SqliteConnection,
        form: Form,
    ) -> Result<Self, JournalError> {
        let instance = Arc::new(Instance::new(path)?);
        let (jobs, queued) = mpsc::unbounded_channel();
        let (queries, asked) = mpsc::unbounded_channel();
        let threads = vec![
            spawn("oncekey-journal-writer", Writer::new(writer, Arc::clone(&instance), queued).run())?,
            spawn("oncekey-journal-reader", reader::run(reader, asked))?,
        ];
        Ok(Self {
            inner: Arc::new(Inner {
                path: path.to_owned(),
                instance,
                form,
                jobs: Mutex::new(Some(jobs)),
                queries: Mutex::new(Some(queries)),
                threads: Mutex::new(threads),
            }),
        })
    }

    async fn write(&self, row: Row, patience: Duration) -> Result<(), JournalError> {
        let ticket = Ticket::default();
        let (reply, mut outcome) = oneshot::channel();
        self.inner.ask(Job::Write(Box::new(Write { row, ticket: ticket.clone(), reply })))?;
        // Should this future be dropped, what was not begun is withdrawn.
        let guard = Withdrawing(&ticket);
        let outcome = match runtime::within(patience, &mut outcome).await {
            Ok(outcome) => outcome,
            Err(_) if ticket.withdraw() => return Err(writer::locked()),
            // It was begun, and waits for nothing but the disk.
            Err(_) => outcome.await,
        };
        drop(guard);
        outcome.unwrap_or_else(|_| Err(lost().unclear()))
    }

    async fn load_raw(&self, id: &OperationId) -> Result<Option<Raw>, JournalError> {
        let (reply, outcome) = oneshot::channel();
        self.inner.query(Query::Load(id.clone(), reply))?;
        outcome.await.unwrap_or_else(|_| Err(closed()))
    }

    async fn list_raw(&self, scope: &Scope) -> Result<Vec<Raw>, JournalError> {
        let (reply, outcome) = oneshot::channel();
        self.inner.query(Query::List(scope.clone(), reply))?;
        outcome.await.unwrap_or_else(|_| Err(closed()))
    }
}

struct Withdrawing<'a>(&'a Ticket);

impl Drop for Withdrawing<'_> {
    fn drop(&mut self) {
        self.0.withdraw();
    }
}

impl Inner {
    fn ask(&self, job: Job) -> Result<(), JournalError> {
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.as_ref().and_then(|jobs| jobs.send(job).ok()).ok_or_else(closed)
    }

    fn query(&self, query: Query) -> Result<(), JournalError> {
        if self.is_closed() {
            return Err(closed());
        }
        let queries = self.queries.lock().unwrap_or_else(PoisonError::into_inner);
        queries.as_ref().and_then(|queries| queries.send(query).ok()).ok_or_else(closed)
    }

    fn is_closed(&self) -> bool {
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.as_ref().is_none_or(|jobs| jobs.is_closed())
    }

    fn hang_up(&self) {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.queries.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.hang_up();
        for thread in self.threads.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let _ = thread.join();
        }
    }
}

impl Journal for Sqlite {
    fn owner(&self) -> Owner {
        self.inner.instance.owner()
    }

    fn fingerprint_key(&self) -> &[u8; 32] {
        &self.inner.form.fingerprint_key
    }

    fn insert(&self, operation: NewOperation, patience: Duration) -> Doing<'_, ()> {
        Box::pin(async move { self.write(Row::inserting(&operation, &self.inner.form)?, patience).await })
    }

    fn append(&self, append: Append, patience: Duration) -> Doing<'_, ()> {
        Box::pin(async move { self.write(Row::appending(&append, &self.inner.form)?, patience).await })
    }

    fn load<'a>(&'a self, id: &'a OperationId) -> Doing<'a, Option<Stored>> {
        Box::pin(async move { self.load_raw(id).await?.map(|raw| raw.decoded(&self.inner.form)).transpose() })
    }

    fn list<'a>(&'a self, scope: &'a Scope) -> Doing<'a, Vec<Stored>> {
        Box::pin(
            async move { self.list_raw(scope).await?.into_iter().map(|raw| raw.decoded(&self.inner.form)).collect() },
        )
    }

    fn is_alive(&self, owner: Owner) -> Doing<'_, bool> {
        Box::pin(async move {
            if self.inner.is_closed() {
                return Err(closed());
            }
            self.inner.instance.is_alive(owner)
        })
    }

    fn release(&self, id: &OperationId) {
        let _ = self.inner.ask(Job::Release(id.clone()));
    }

    fn flush(&self, patience: Duration) -> Doing<'_, ()> {
        Box::pin(async move {
            let (reply, outcome) = oneshot::channel();
            self.inner.ask(Job::Flush(reply))?;
            match runtime::within(patience, outcome).await {
                Ok(outcome) => outcome.unwrap_or_else(|_| Err(lost().unclear())),
                Err(_) => Err(writer::locked().unclear()),
            }
        })
    }

    fn prune(&self, older_than: Duration) -> Doing<'_, u64> {
        Box::pin(async move {
            let (reply, outcome) = oneshot::channel();
            let before = row::integer(runtime::earlier(older_than).as_millis());
            self.inner.ask(Job::Prune(before, reply))?;
            outcome.await.unwrap_or_else(|_| Err(lost()))
        })
    }

    fn close(&self) -> Doing<'_, ()> {
        Box::pin(async move {
            let (reply, outcome) = oneshot::channel();
            self.inner.ask(Job::Close(reply))?;
            let outcome = outcome.await.unwrap_or_else(|_| Err(lost()));
            self.inner.hang_up();
            outcome
        })
    }
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sqlite").field("path", &self.inner.path).finish_non_exhaustive()
    }
}

/// A thread with a runtime of its own.
fn spawn(name: &str, work: impl Future<Output = ()> + Send + 'static) -> Result<JoinHandle<()>, JournalError> {
    let failed = |error: std::io::Error| {
        JournalError::new(JournalErrorKind::Io, "no thread can be started for the journal").with_source(error)
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(failed)?;
    thread::Builder::new().name(name.to_owned()).spawn(move || runtime.block_on(work)).map_err(failed)
}

/// Tries again while another process holds the file's lock, for up to 5 s.
///
/// Not with an async closure: what waits for one is not seen to be `Send`, and a
/// task that opens a journal could not be spawned.
async fn while_locked<T>(
    connection: &mut SqliteConnection,
    work: impl for<'c> Fn(&'c mut SqliteConnection) -> Doing<'c, T>,
) -> Result<T, JournalError> {
    for _ in 0..5000 {
        match work(connection).await {
            Err(error) if error.kind() == JournalErrorKind::Locked => runtime::sleep(Duration::from_millis(1)).await,
            outcome => return outcome,
        }
    }
    Err(writer::locked())
}

fn closed() -> JournalError {
    JournalError::new(JournalErrorKind::Closed, "the journal was closed")
}

fn lost() -> JournalError {
    JournalError::new(JournalErrorKind::Io, "the journal's writer is gone")
}
