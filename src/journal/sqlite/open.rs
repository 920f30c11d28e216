use std::fmt;
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqlitePool};
use sqlx::{ConnectOptions, Executor};

use super::row::Form;
use super::{Sqlite, fault, schema};
use crate::journal::{JournalError, JournalErrorKind, Seal};

/// How a journal's file is opened, and what is written to it.
///
/// ```no_run
/// use oncekey::journal::Sqlite;
///
/// # async fn open() -> Result<(), oncekey::journal::JournalError> {
/// let journal = Sqlite::builder().store_bodies(false).open_or_create("payments.db").await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a journal is opened by `open`, `create` or `open_or_create`"]
pub struct SqliteBuilder {
    form: Form,
}

impl SqliteBuilder {
    pub(super) fn new() -> Self {
        Self { form: Form { seal: None, store_bodies: true, fingerprint_key: [0; 32] } }
    }

    /// Encrypts requests and answers. Default: they are written as they are,
    /// into a file that only its owner may read.
    ///
    /// ```
    /// use oncekey::journal::{Journal, JournalErrorKind, Seal, Sqlite};
    /// # use oncekey::{Client, Retry};
    /// # mod aead {
    /// #     pub fn encrypt(plain: &[u8], bound: &[u8]) -> Vec<u8> {
    /// #         [bound, b"|", plain].concat().iter().map(|byte| !byte).collect()
    /// #     }
    /// #     pub fn decrypt(sealed: &[u8], bound: &[u8]) -> Option<Vec<u8>> {
    /// #         let plain: Vec<u8> = sealed.iter().map(|byte| !byte).collect();
    /// #         Some(plain.strip_prefix(bound)?.strip_prefix(b"|")?.to_vec())
    /// #     }
    /// # }
    /// # type Failure = Box<dyn std::error::Error + Send + Sync>;
    /// # struct Vault;
    /// # impl Seal for Vault {
    /// #     fn seal(&self, context: &str, plain: &[u8]) -> Result<Vec<u8>, Failure> {
    /// #         Ok(aead::encrypt(plain, context.as_bytes()))
    /// #     }
    /// #     fn open(&self, context: &str, sealed: &[u8]) -> Result<Vec<u8>, Failure> {
    /// #         aead::decrypt(sealed, context.as_bytes()).ok_or_else(|| "sealed for another".into())
    /// #     }
    /// # }
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("payments.db");
    /// let journal = Sqlite::builder().seal(Vault).create(&path).await?; // see `Seal`
    /// # let client = Client::builder().journal(journal.clone()).retry(Retry::default().max_attempts(1)).build()?;
    /// # let payment = client.post("http://127.0.0.1:1/payments").operation("order-7").body("card=4111111111111111");
    /// # let _ = payment.send().await;
    /// # drop(client);
    /// journal.close().await?; // with an operation on record
    /// # let files = std::fs::read_dir(&folder)?.flatten().filter_map(|file| std::fs::read(file.path()).ok());
    /// # let written: Vec<u8> = files.flatten().collect();
    /// assert!(!written.windows(4).any(|bytes| bytes == b"4111")); // a card's number
    ///
    /// let unsealed = Sqlite::open(&path).await?;
    /// let error = unsealed.load(&"order-7".into()).await.unwrap_err();
    /// assert_eq!(error.kind(), JournalErrorKind::Seal);
    /// # Ok(())
    /// # }
    /// ```
    pub fn seal(mut self, seal: impl Seal + 'static) -> Self {
        self.form.seal = Some(Box::new(seal));
        self
    }

    /// Whether the bodies of requests, and answers, are stored. Default: yes.
    ///
    /// Without them an operation cannot be resumed by its id alone: it is asked
    /// for again with `send`, under the same id and with the same request,
    /// which its fingerprint proves; and its answer is had from the server's
    /// replay, as long as the key lives.
    ///
    /// ```
    /// use oncekey::journal::{Journal, Sqlite, StoredBody};
    /// # use oncekey::{Client, Retry};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("payments.db");
    /// let journal = Sqlite::builder().store_bodies(false).create(&path).await?;
    /// # let client = Client::builder().journal(journal.clone()).retry(Retry::default().max_attempts(1)).build()?;
    /// # let payment = client.post("http://127.0.0.1:1/payments").operation("order-7").body("card=4111111111111111");
    /// # let _ = payment.send().await;
    /// let stored = journal.load(&"order-7".into()).await?.unwrap();
    /// assert!(matches!(stored.request().unwrap().body(), StoredBody::LeftOut(_)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn store_bodies(mut self, yes: bool) -> Self {
        self.form.store_bodies = yes;
        self
    }

    /// Opens a file that is there. See [`Sqlite::open`].
    ///
    /// ```
    /// use oncekey::journal::{JournalErrorKind, Sqlite};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("payments.db");
    /// # Sqlite::create(&path).await?.close().await?;
    /// let journal = Sqlite::builder().store_bodies(false).open(&path).await?;
    /// # drop(journal);
    /// let error = Sqlite::builder().open(folder.path()).await.unwrap_err();
    /// assert_eq!(error.kind(), JournalErrorKind::Setting); // it is the file's path that is asked for
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As there.
    pub async fn open(self, path: impl AsRef<Path>) -> Result<Sqlite, JournalError> {
        let path = path.as_ref();
        existing(path)?;
        self.opened(path, schema::Tables::MustBeThere).await
    }

    /// Makes a file. See [`Sqlite::create`].
    ///
    /// ```
    /// use oncekey::journal::{JournalErrorKind, Sqlite};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("payments.db");
    /// let journal = Sqlite::builder().store_bodies(false).create(&path).await?;
    /// let error = Sqlite::builder().create(&path).await.unwrap_err();
    /// assert_eq!(error.kind(), JournalErrorKind::Exists);
    /// # drop(journal);
    /// let error = Sqlite::builder().create(folder.path().join("2026/payments.db")).await.unwrap_err();
    /// assert_eq!(error.kind(), JournalErrorKind::Missing); // its folder is not made
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As there.
    pub async fn create(self, path: impl AsRef<Path>) -> Result<Sqlite, JournalError> {
        let path = path.as_ref();
        if !made(path)? {
            existing(path)?;
            let what = format!("{} is there already: `open` it", path.display());
            return Err(JournalError::new(JournalErrorKind::Exists, what));
        }
        self.opened(path, schema::Tables::MayBeMade).await
    }

    /// Opens the file, or makes it. See [`Sqlite::open_or_create`].
    ///
    /// ```
    /// use oncekey::journal::{Journal, Sqlite};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("payments.db");
    /// let made = Sqlite::builder().store_bodies(false).open_or_create(&path).await?;
    /// let opened = Sqlite::builder().store_bodies(false).open_or_create(&path).await?;
    /// assert_eq!(made.fingerprint_key(), opened.fingerprint_key()); // one file,
    /// assert_ne!(made.owner(), opened.owner()); // opened twice
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As there.
    pub async fn open_or_create(self, path: impl AsRef<Path>) -> Result<Sqlite, JournalError> {
        let path = path.as_ref();
        if !made(path)? {
            existing(path)?;
        }
        self.opened(path, schema::Tables::MayBeMade).await
    }

    /// Takes two connections of a pool for good. See [`Sqlite::from_pool`].
    ///
    /// ```
    /// use oncekey::journal::{JournalErrorKind, Sqlite};
    /// use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("payments.db");
    /// # let options = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
    /// # let pool = SqlitePool::connect_with(options).await?;
    /// let journal = Sqlite::builder().store_bodies(false).from_pool(&pool).await?;
    /// # drop(journal);
    /// # pool.close().await;
    /// let nowhere = SqlitePool::connect("sqlite::memory:").await?;
    /// let error = Sqlite::builder().from_pool(&nowhere).await.unwrap_err();
    /// assert_eq!(error.kind(), JournalErrorKind::Missing);
    /// assert!(error.to_string().contains("not a file"), "{error}");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As there.
    pub async fn from_pool(self, pool: &SqlitePool) -> Result<Sqlite, JournalError> {
        let path = pool.connect_options().get_filename().to_owned();
        existing(&path).map_err(|error| match error.kind() {
            JournalErrorKind::Missing => {
                let what = format!("the pool's database is not a file ({}): a journal must be one", path.display());
                JournalError::new(JournalErrorKind::Missing, what)
            }
            _ => error,
        })?;
        let mut pair = Vec::with_capacity(2);
        for _ in 0..2 {
            pair.push(pool.acquire().await.map_err(|error| fault::of(&error))?.detach());
        }
        let (Some(writer), Some(reader)) = (pair.pop(), pair.pop()) else {
            return Err(JournalError::new(JournalErrorKind::Io, "the pool gave no connections"));
        };
        self.started(&path, writer, reader, schema::Tables::MayBeMade).await
    }

    async fn opened(self, path: &Path, tables: schema::Tables) -> Result<Sqlite, JournalError> {
        let options = SqliteConnectOptions::new().filename(path);
        let writer = options.connect().await.map_err(|error| fault::opening(path, &error))?;
        let reader = options.connect().await.map_err(|error| fault::opening(path, &error))?;
        self.started(path, writer, reader, tables).await
    }

    async fn started(
        mut self,
        path: &Path,
        mut writer: SqliteConnection,
        mut reader: SqliteConnection,
        tables: schema::Tables,
    ) -> Result<Sqlite, JournalError> {
        set_up(&mut writer).await?;
        self.form.fingerprint_key =
            super::while_locked(&mut writer, |writer| Box::pin(schema::prepare(writer, tables))).await?;
        set_up(&mut reader).await?;
        // Ids are random, and so is the order of their index: where it fits the cache, and many
        // commits share a checkpoint, a file with many rows is nearly as fast as an empty one.
        writer.execute("PRAGMA cache_size = -65536").await.map_err(|error| fault::of(&error))?;
        reader.execute("PRAGMA query_only = ON").await.map_err(|error| fault::of(&error))?;
        let path = path.canonicalize().map_err(|error| unusable(path, &error))?;
        Sqlite::start(&path, writer, reader, self.form)
    }
}

impl fmt::Debug for SqliteBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteBuilder").field("store_bodies", &self.form.store_bodies).finish_non_exhaustive()
    }
}

/// The settings that the promises rest on.
async fn set_up(connection: &mut SqliteConnection) -> Result<(), JournalError> {
    // Its own handler sleeps up to 100 ms, and starves under load.
    connection.execute("PRAGMA busy_timeout = 0").await.map_err(|error| fault::of(&error))?;
    super::while_locked(connection, |connection| {
        Box::pin(async {
            connection.execute("PRAGMA journal_mode = WAL").await.map(|_| ()).map_err(|error| fault::of(&error))
        })
    })
    .await?;
    let settings = "
        PRAGMA synchronous = FULL;
        PRAGMA secure_delete = ON;
        PRAGMA foreign_keys = OFF;
        PRAGMA temp_store = MEMORY;
        PRAGMA wal_autocheckpoint = 10000;
    ";
    connection.execute(settings).await.map(|_| ()).map_err(|error| fault::of(&error))
}

/// It is looked at and not opened: closing a file takes away all locks that this process holds on
/// it (POSIX), SQLite's of another connection too, and whoever closes the file next then removes
/// the log that is still written to.
fn existing(path: &Path) -> Result<(), JournalError> {
    drop(making());
    let metadata = path.metadata().map_err(|error| {
        if error.kind() == io::ErrorKind::NotFound && !folder(path).is_dir() {
            return JournalError::new(JournalErrorKind::Missing, no_folder(path));
        }
        unusable(path, &error)
    })?;
    if !metadata.is_file() {
        let what = format!("{} is no file: give the path of the journal's own file", path.display());
        return Err(JournalError::new(JournalErrorKind::Setting, what));
    }
    Ok(())
}

/// Makes the file, readable by its owner alone; false where there is one.
fn made(path: &Path) -> Result<bool, JournalError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let _one_at_a_time = making();
    match options.open(path).map(drop) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(JournalError::new(JournalErrorKind::Missing, no_folder(path)))
        }
        Err(error) => Err(unusable(path, &error)),
    }
}

/// A file that is made is open for a moment: nobody else of this process may take a lock on it
/// meanwhile.
fn making() -> MutexGuard<'static, ()> {
    static MAKING: Mutex<()> = Mutex::new(());
    MAKING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn folder(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        Some(_) | None => PathBuf::from("."),
    }
}

fn no_folder(path: &Path) -> String {
    format!("there is no folder {}: make it, or correct the path", folder(path).display())
}

fn unusable(path: &Path, error: &io::Error) -> JournalError {
    let (kind, what) = match error.kind() {
        io::ErrorKind::NotFound => (
            JournalErrorKind::Missing,
            format!(
                "there is no journal at {}: correct the path, or `create` one if this is the first run",
                path.display()
            ),
        ),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => (
            JournalErrorKind::ReadOnly,
            format!("the journal {} cannot be read and written by this user: look at its rights", path.display()),
        ),
        io::ErrorKind::StorageFull => (JournalErrorKind::Full, format!("no room on the disk of {}", path.display())),
        _ => (JournalErrorKind::Io, format!("the journal {} cannot be opened", path.display())),
    };
    JournalError::new(kind, what).with_source(error.to_string())
}
