use std::sync::Arc;
use std::time::Duration;

use crate::engine::{Entry, History};
use crate::fingerprint::Fingerprint;
use crate::journal::{
    Append, Claim, Durability, Identity, Journal, JournalError, JournalErrorKind, NewOperation, Status, StoredAnswer,
    StoredRequest,
};
use crate::submission::OperationId;

/// How long what has happened already may take to be written down.
const LEAST_PATIENCE: Duration = Duration::from_secs(5);

/// One operation's record, as the call that works on it writes it.
pub(crate) struct Logbook {
    journal: Arc<dyn Journal>,
    id: OperationId,
    /// What the first write brings.
    new: Option<(Identity, StoredRequest)>,
    amended: Option<(Fingerprint, StoredRequest)>,
    /// How many entries are on record.
    position: usize,
    /// Entries, and an answer, that are not.
    pending: Vec<Entry>,
    answer: Option<StoredAnswer>,
    /// On record this owner works on it.
    is_running: bool,
    is_flushed: bool,
    failure: Option<JournalError>,
    /// Nobody else in this process works on it. Given up last.
    _claim: Claim,
}

impl Logbook {
    /// Of a new operation, of which nothing is on record.
    pub(crate) fn new(
        journal: Arc<dyn Journal>,
        identity: Identity,
        request: StoredRequest,
        first: Vec<Entry>,
        claim: Claim,
    ) -> Self {
        let mut book = Self::behind(journal, identity.id().clone(), 0, claim);
        book.new = Some((identity, request));
        book.pending = first;
        book
    }

    /// Of an operation that is taken up again.
    pub(crate) fn behind(journal: Arc<dyn Journal>, id: OperationId, position: usize, claim: Claim) -> Self {
        Self {
            journal,
            id,
            new: None,
            amended: None,
            position,
            pending: Vec::new(),
            answer: None,
            is_running: false,
            is_flushed: true,
            failure: None,
            _claim: claim,
        }
    }

    /// Writes that it is taken up again, with the corrected request if there is
    /// one: other processes see at once who works on it.
    pub(crate) async fn take_up(
        &mut self,
        entries: Vec<Entry>,
        amended: Option<(Fingerprint, StoredRequest)>,
        after: &History,
        patience: Duration,
    ) -> Result<(), JournalError> {
        self.pending = entries;
        self.amended = amended;
        self.write_pending(after, Durability::Visible, patience).await
    }

    /// Writes what is about to happen. Nothing may be sent unless it is written.
    pub(crate) async fn announce(
        &mut self,
        entry: &Entry,
        after: &History,
        durability: Durability,
        patience: Duration,
    ) -> Result<(), JournalError> {
        self.pending.push(entry.clone());
        self.write_pending(after, durability, patience).await
    }

    /// Writes what has happened. What cannot be written now goes with the next write.
    pub(crate) async fn note(
        &mut self,
        entry: &Entry,
        after: &History,
        answer: Option<StoredAnswer>,
        patience: Duration,
    ) -> Result<(), JournalError> {
        self.pending.push(entry.clone());
        if answer.is_some() {
            self.answer = answer;
        }
        self.write_pending(after, Durability::Visible, patience.max(LEAST_PATIENCE)).await
    }

    /// What was written is on the disk when this returns.
    pub(crate) async fn flush(&mut self) -> Result<(), JournalError> {
        if let Some(failure) = &self.failure {
            return Err(failure.again());
        }
        if !self.is_flushed {
            if let Err(error) = self.journal.flush(LEAST_PATIENCE).await {
                self.failure = Some(error.again().unclear());
                return Err(error);
            }
            self.is_flushed = true;
        }
        Ok(())
    }

    /// Whether anything of it was ever written, or may have been.
    pub(crate) fn is_on_record(&self) -> bool {
        self.position > 0 || self.failure.as_ref().is_some_and(|failure| !failure.is_certain())
    }

    /// What could not be written down.
    pub(crate) fn failure(&self) -> Option<JournalError> {
        self.failure.as_ref().map(JournalError::again)
    }

    async fn write_pending(
        &mut self,
        after: &History,
        durability: Durability,
        patience: Duration,
    ) -> Result<(), JournalError> {
        let status = if !after.is_over() {
            Status::Running(self.journal.owner())
        } else if after.is_settled() {
            Status::Closed
        } else {
            Status::Open
        };
        // Once more at most: what is there may be what an unclear failure wrote.
        for _ in 0..2 {
            match self.write(status, durability, patience).await {
                Ok(()) => {
                    self.is_running = matches!(status, Status::Running(_));
                    self.is_flushed = durability == Durability::Flushed;
                    self.failure = None;
                    return Ok(());
                }
                Err(error) if self.is_displaced(&error) && self.was_ours().await => {
                    if self.pending.is_empty() {
                        self.is_running = matches!(status, Status::Running(_));
                        self.is_flushed = false;
                        self.failure = None;
                        return Ok(());
                    }
                }
                Err(error) => {
                    self.failure = Some(error.again());
                    return Err(error);
                }
            }
        }
        let error = JournalError::new(JournalErrorKind::Conflict, "somebody else writes to the operation's record");
        self.failure = Some(error.again());
        Err(error)
    }

    async fn write(&mut self, status: Status, durability: Durability, patience: Duration) -> Result<(), JournalError> {
        let was_running = self.is_running;
        // Should this be dropped in the middle, it may be on record.
        self.is_running |= matches!(status, Status::Running(_));
        let outcome = if let Some((identity, request)) = &self.new {
            let operation = NewOperation::new(identity.clone(), request.clone(), self.pending.clone(), status);
            self.journal.insert(operation, patience).await
        } else {
            let append = Append::new(self.id.clone(), self.position, self.pending.clone(), status)
                .with_answer(self.answer.clone())
                .with_request(self.amended.clone())
                .with_durability(durability);
            self.journal.append(append, patience).await
        };
        match outcome {
            Ok(()) => {
                self.new = None;
                self.written(self.pending.len());
                Ok(())
            }
            Err(error) => {
                self.is_running = was_running || !error.is_certain();
                Err(error)
            }
        }
    }

    fn written(&mut self, entries: usize) {
        self.position += entries;
        self.pending.drain(..entries);
        if self.pending.is_empty() {
            self.answer = None;
            self.amended = None;
        }
    }

    fn is_displaced(&self, error: &JournalError) -> bool {
        match error.kind() {
            JournalErrorKind::Conflict => true,
            JournalErrorKind::IdTaken => self.new.is_some(),
            _ => false,
        }
    }

    /// Whether what stands where we would write is what we had written before,
    /// without learning of it.
    async fn was_ours(&mut self) -> bool {
        let Ok(Some(stored)) = self.journal.load(&self.id).await else {
            return false;
        };
        let there = stored.entries().get(self.position..).unwrap_or_default();
        if there.is_empty() || !self.pending.starts_with(there) || self.is_anothers(&stored) {
            return false;
        }
        self.new = None;
        self.written(there.len());
        true
    }

    fn is_anothers(&self, stored: &crate::journal::Stored) -> bool {
        self.new.as_ref().is_some_and(|(identity, _)| identity != stored.identity())
    }
}

impl Drop for Logbook {
    /// A future that is dropped leaves its operation to whoever asks next.
    fn drop(&mut self) {
        if self.is_running {
            self.journal.release(&self.id);
        }
    }
}
