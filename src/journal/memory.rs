use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Append, Doing, Journal, JournalError, JournalErrorKind, NewOperation, Scope, Status, Stored};
use crate::engine::Owner;
use crate::runtime;
use crate::submission::OperationId;

/// A journal in memory: for tests, and for processes whose operations need not
/// outlive them. Clones share one record.
#[derive(Clone)]
pub struct Memory {
    inner: Arc<Inner>,
}

struct Inner {
    owner: Owner,
    fingerprint_key: [u8; 32],
    records: Mutex<Records>,
}

#[derive(Default)]
struct Records {
    operations: Vec<Stored>,
    by_id: HashMap<OperationId, usize>,
    by_key: HashMap<(Scope, Box<str>), OperationId>,
    closed: bool,
}

impl Memory {
    /// An empty one.
    ///
    /// ```
    /// use oncekey::{Client, Effect, Retry};
    /// use oncekey::journal::Memory;
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let journal = Memory::new();
    /// let shop = Client::builder().journal(journal.clone()).retry(Retry::default().max_attempts(1)).build()?;
    /// let office = Client::builder().journal(journal).build()?;
    /// let _ = shop.post("http://127.0.0.1:1/payments").operation("order-7").send().await; // nobody listens there
    /// assert_eq!(office.lookup("order-7").await?.unwrap().effect(), Effect::NotApplied);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// If the operating system's random generator fails.
    #[track_caller]
    pub fn new() -> Self {
        let bytes = || runtime::random_bytes().expect("the operating system has a random generator");
        let mut fingerprint_key = [0; 32];
        fingerprint_key[..16].copy_from_slice(&bytes());
        fingerprint_key[16..].copy_from_slice(&bytes());
        let owner = Owner::new(u128::from_ne_bytes(bytes()));
        Self { inner: Arc::new(Inner { owner, fingerprint_key, records: Mutex::default() }) }
    }

    /// Drops requests and answers of closed operations that were created at least
    /// `older_than` ago, and gives their number; see [`Journal::prune`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use oncekey::{Client, Retry};
    /// use oncekey::journal::Memory;
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let journal = Memory::new();
    /// # let client = Client::builder().journal(journal.clone()).retry(Retry::default().max_attempts(1)).build()?;
    /// # let _ = client.post("http://127.0.0.1:1/payments").operation("order-7").send().await;
    /// client.abandon("order-7").await?;
    /// assert_eq!(journal.prune(Duration::from_secs(90 * 86_400)).await?, 0); // it is not that old
    /// assert_eq!(journal.prune(Duration::ZERO).await?, 1);
    /// assert!(client.lookup("order-7").await?.unwrap().url().is_none()); // the id stays taken
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`JournalError`]: it was closed.
    pub async fn prune(&self, older_than: Duration) -> Result<u64, JournalError> {
        Journal::prune(self, older_than).await
    }

    /// Closes it; see [`Journal::close`].
    ///
    /// ```
    /// use oncekey::journal::{JournalErrorKind, Memory};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let journal = Memory::new();
    /// let other = journal.clone();
    /// journal.close().await?;
    /// assert_eq!(other.close().await.unwrap_err().kind(), JournalErrorKind::Closed); // clones share one record
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`JournalError`]: it was closed before.
    pub async fn close(&self) -> Result<(), JournalError> {
        Journal::close(self).await
    }

    fn open(&self) -> Result<MutexGuard<'_, Records>, JournalError> {
        let records = self.inner.records.lock().unwrap_or_else(PoisonError::into_inner);
        if records.closed {
            return Err(JournalError::new(JournalErrorKind::Closed, "the journal was closed"));
        }
        Ok(records)
    }
}

impl Records {
    fn insert(&mut self, operation: NewOperation) -> Result<(), JournalError> {
        let NewOperation { identity, request, entries, status } = operation;
        if self.by_id.contains_key(&identity.id) {
            return Err(JournalError::new(JournalErrorKind::IdTaken, "the operation's id is taken"));
        }
        if let Some(key) = &identity.key {
            let key = (identity.scope.clone(), key.clone());
            if self.by_key.contains_key(&key) {
                return Err(JournalError::new(JournalErrorKind::KeyTaken, "another operation holds the key"));
            }
            self.by_key.insert(key, identity.id.clone());
        }
        self.by_id.insert(identity.id.clone(), self.operations.len());
        self.operations.push(Stored { identity, request: Some(request), entries, answer: None, status });
        Ok(())
    }

    fn append(&mut self, append: Append) -> Result<(), JournalError> {
        let Some(stored) = self.by_id.get(&append.id).and_then(|index| self.operations.get_mut(*index)) else {
            return Err(JournalError::new(JournalErrorKind::Conflict, "the operation is not on record"));
        };
        if stored.entries.len() != append.position {
            return Err(JournalError::new(JournalErrorKind::Conflict, "somebody else wrote to the operation's record"));
        }
        stored.entries.extend(append.entries);
        stored.status = append.status;
        if append.answer.is_some() {
            stored.answer = append.answer;
        }
        if let Some((fingerprint, request)) = append.amended {
            stored.identity.fingerprint = fingerprint;
            stored.request = Some(request);
        }
        Ok(())
    }
}

impl Journal for Memory {
    fn owner(&self) -> Owner {
        self.inner.owner
    }

    fn fingerprint_key(&self) -> &[u8; 32] {
        &self.inner.fingerprint_key
    }

    fn insert(&self, operation: NewOperation, _: Duration) -> Doing<'_, ()> {
        Box::pin(async move { self.open()?.insert(operation) })
    }

    fn append(&self, append: Append, _: Duration) -> Doing<'_, ()> {
        Box::pin(async move { self.open()?.append(append) })
    }

    fn load<'a>(&'a self, id: &'a OperationId) -> Doing<'a, Option<Stored>> {
        Box::pin(async move {
            let records = self.open()?;
            Ok(records.by_id.get(id).and_then(|index| records.operations.get(*index)).cloned())
        })
    }

    fn list<'a>(&'a self, scope: &'a Scope) -> Doing<'a, Vec<Stored>> {
        Box::pin(async move {
            let records = self.open()?;
            let open = records
                .operations
                .iter()
                .filter(|stored| stored.identity.scope == *scope && stored.status != Status::Closed);
            Ok(open.map(|stored| Stored { request: None, answer: None, ..stored.clone() }).collect())
        })
    }

    fn is_alive(&self, owner: Owner) -> Doing<'_, bool> {
        Box::pin(async move { self.open().map(|_| owner == self.inner.owner) })
    }

    fn release(&self, id: &OperationId) {
        let Ok(mut records) = self.open() else {
            return;
        };
        let records = &mut *records;
        if let Some(stored) = records.by_id.get(id).and_then(|index| records.operations.get_mut(*index))
            && matches!(stored.status, Status::Running(_))
        {
            stored.status = Status::Open;
        }
    }

    fn flush(&self, _: Duration) -> Doing<'_, ()> {
        Box::pin(async move { self.open().map(|_| ()) })
    }

    fn prune(&self, older_than: Duration) -> Doing<'_, u64> {
        Box::pin(async move {
            let before = runtime::earlier(older_than);
            let mut pruned = 0;
            for stored in &mut self.open()?.operations {
                if stored.status == Status::Closed && stored.created_at() <= before && stored.request.is_some() {
                    stored.request = None;
                    stored.answer = None;
                    pruned += 1;
                }
            }
            Ok(pruned)
        })
    }

    fn close(&self) -> Doing<'_, ()> {
        Box::pin(async move {
            self.open()?.closed = true;
            Ok(())
        })
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").finish_non_exhaustive()
    }
}
