//! A client with a journal in a file, against the sandbox.

use std::path::{Path, PathBuf};
use std::time::Duration;

use oncekey::engine::Owner;
use oncekey::journal::{Append, Doing, Journal, JournalError, NewOperation, Scope, Sqlite, Stored};
use oncekey::sandbox::Sandbox;
use oncekey::{Client, ClientBuilder, OperationId, Poll, Profile, RequestBuilder, Retry};
use sqlx::ConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use tempfile::TempDir;

/// A folder of its own, gone when it is dropped.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.path().join("payments.db")
    }

    /// A connection to the journal's file that knows nothing of journals.
    pub(crate) async fn raw(&self) -> SqliteConnection {
        SqliteConnectOptions::new().filename(self.file()).connect().await.unwrap()
    }

    pub(crate) async fn journal(&self) -> Sqlite {
        Sqlite::open_or_create(self.file()).await.unwrap()
    }
}

/// Short waits.
pub(crate) fn builder() -> ClientBuilder {
    Client::builder()
        .profile(Profile::verifika())
        .retry(
            Retry::default().max_attempts(3).base_delay(Duration::from_millis(1)).max_delay(Duration::from_millis(5)),
        )
        .poll(Poll::default().interval(Duration::from_millis(10)).max_interval(Duration::from_millis(20)))
        .attempt_timeout(Duration::from_secs(10))
        .deadline(Duration::from_secs(20))
}

pub(crate) async fn client(folder: &Folder) -> Client {
    builder().journal(folder.journal().await).build().unwrap()
}

/// A payment of so much.
pub(crate) fn pay(client: &Client, sandbox: &Sandbox, id: &str, amount: u32) -> RequestBuilder {
    client.post(sandbox.url("/payments")).operation(id).json(&serde_json::json!({ "amount": amount }))
}

/// A journal whose appends are looked at first, and may fail.
pub(crate) struct Watched<F>(pub(crate) Sqlite, pub(crate) F);

impl<F> std::fmt::Debug for Watched<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl<F: Fn(&Append) -> Result<(), JournalError> + Send + Sync> Journal for Watched<F> {
    fn owner(&self) -> Owner {
        self.0.owner()
    }

    fn fingerprint_key(&self) -> &[u8; 32] {
        self.0.fingerprint_key()
    }

    fn insert(&self, operation: NewOperation, patience: Duration) -> Doing<'_, ()> {
        self.0.insert(operation, patience)
    }

    fn append(&self, append: Append, patience: Duration) -> Doing<'_, ()> {
        match self.1(&append) {
            Ok(()) => self.0.append(append, patience),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }

    fn load<'a>(&'a self, id: &'a OperationId) -> Doing<'a, Option<Stored>> {
        self.0.load(id)
    }

    fn list<'a>(&'a self, scope: &'a Scope) -> Doing<'a, Vec<Stored>> {
        self.0.list(scope)
    }

    fn is_alive(&self, owner: Owner) -> Doing<'_, bool> {
        self.0.is_alive(owner)
    }

    fn release(&self, id: &OperationId) {
        self.0.release(id);
    }

    fn flush(&self, patience: Duration) -> Doing<'_, ()> {
        self.0.flush(patience)
    }

    fn prune(&self, older_than: Duration) -> Doing<'_, u64> {
        Journal::prune(&self.0, older_than)
    }

    fn close(&self) -> Doing<'_, ()> {
        Journal::close(&self.0)
    }
}
