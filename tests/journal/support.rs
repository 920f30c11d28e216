//! A client with a journal in a file, against the sandbox.

use std::path::{Path, PathBuf};
use std::time::Duration;

use oncekey::journal::Sqlite;
use oncekey::sandbox::Sandbox;
use oncekey::{Client, ClientBuilder, Poll, Profile, RequestBuilder, Retry};
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
