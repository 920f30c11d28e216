//! An operation on record: what is written down when, and what follows where
//! it cannot be.

use std::sync::Arc;
use std::time::Duration;

use http::header::{HeaderMap, SET_COOKIE};
use url::Url;

use super::{Call, Operation, unshared_value};
use crate::client::Inner;
use crate::driver::World;
use crate::engine::{Effect, Entry, History, Outcome, Policy, Reach};
use crate::error::{Error, ErrorKind, Record};
use crate::journal::{Durability, JournalError, JournalErrorKind, StoredAnswer};
use crate::logbook::Logbook;
use crate::look;
use crate::response::Response;
use crate::runtime;
use crate::submission::{OperationId, Submission, is_credential};

/// An operation that is taken up on record.
pub(crate) struct OnRecord {
    pub(crate) history: History,
    pub(crate) logbook: Logbook,
    pub(crate) ahead: Duration,
    /// The status resource that it is asked after at.
    pub(crate) look: Option<Url>,
}

/// Why nothing more can be recorded.
#[derive(Debug)]
pub(crate) enum Broken {
    /// Somebody else writes to the operation's record.
    Displaced,
    /// What must be on record cannot be written.
    Failed(JournalError),
}

impl Operation {
    /// The same of an operation on record.
    pub(crate) fn on_record(
        client: Arc<Inner>,
        submission: Submission,
        policy: Arc<Policy>,
        record: OnRecord,
    ) -> Box<Self> {
        let mut call = Call::new(client, submission, &policy, runtime::now());
        call.ahead = record.ahead;
        call.look = record.look.map(|url| Box::new(look::asking(&call.submission, url, &call.client.profile)));
        call.logbook = Some(Box::new(record.logbook));
        Box::new(Self { call, history: record.history, policy })
    }

    /// Whether this run has sent something, or was about to.
    pub(crate) fn has_begun(&self) -> bool {
        !self.call.log.is_empty()
    }

    /// Gives up what was never begun.
    pub(crate) fn give_back(self: Box<Self>) {
        if let Some(key) = &self.call.submission.key {
            key.release();
        }
    }

    /// The end that others brought about, after the attempts of this run.
    pub(crate) fn displaced(mut self: Box<Self>, end: Result<Response, Error>) -> Result<Response, Error> {
        let attempts = std::mem::take(&mut self.call.log);
        let end = match end {
            Ok(response) => Ok(Response { attempts, ..response }),
            Err(error) => Err(error.after(attempts)),
        };
        self.tell_end(end.as_ref());
        end
    }

    /// What an end that must be durable waits for, and then the end.
    pub(crate) async fn settle(mut self: Box<Self>, outcome: Outcome) -> Result<Response, Error> {
        let effect = self.history.effect();
        let is_safe = self.is_safe();
        let Some(book) = &mut self.call.logbook else {
            return self.finish(outcome);
        };
        let replays = self.call.submission.key.is_some() && self.call.client.profile.replays();
        if (effect == Effect::NotApplied && !is_safe) || !replays {
            // A failure is kept in the book.
            let _ = book.flush().await;
        }
        if let Some(failure) = book.failure()
            && !self.may_be_called_off()
        {
            let what = "it ended without effect, but that could not be written down";
            return Err(self.failed(ErrorKind::Journal, what, Effect::Unknown, failure));
        }
        self.finish(outcome)
    }

    /// Whether the effect may be told although something could not be written:
    /// "not applied" holds only if nothing is on record that goes on.
    fn may_be_called_off(&self) -> bool {
        let is_on_record = self.call.logbook.as_ref().is_some_and(|book| book.is_on_record());
        self.history.effect() != Effect::NotApplied || self.is_safe() || !is_on_record
    }

    /// The run could not go on for want of a record.
    pub(crate) fn broken(self: Box<Self>, broken: Broken) -> Error {
        match broken {
            Broken::Displaced => {
                let effect = self.history.effect();
                let failure = JournalError::new(JournalErrorKind::Conflict, "somebody else wrote to the record");
                self.failed(ErrorKind::Journal, "somebody else went on with it", effect, failure)
            }
            Broken::Failed(failure) if failure.kind() == JournalErrorKind::KeyTaken => {
                // What that one's effect is, its own id tells.
                self.failed(
                    ErrorKind::Mismatch,
                    "the key is on record for an operation of another id",
                    Effect::Unknown,
                    failure,
                )
            }
            Broken::Failed(failure) => {
                // What is on record is open, and so may be taken up and sent.
                let effect = if self.may_be_called_off() { self.history.effect() } else { Effect::Unknown };
                self.failed(ErrorKind::Journal, "the journal failed, so that nothing more was sent", effect, failure)
            }
        }
    }

    fn failed(
        mut self: Box<Self>,
        kind: ErrorKind,
        what: &'static str,
        effect: Effect,
        failure: JournalError,
    ) -> Error {
        self.release_key();
        let call = &mut self.call;
        let key = call.submission.key.take();
        let record = Record {
            effect,
            operation: call.submission.id.take().or_else(|| key.as_ref().map(OperationId::of_key)),
            key: key.map(|key| key.used(self.history.key_since())),
            attempts: std::mem::take(&mut call.log),
            response: None,
            resume_at: None,
            source: Some(Box::new(failure)),
        };
        let error = Error::on_record(kind, what, record);
        self.tell_end(Err(&error));
        error
    }
}

impl Call {
    /// Writes it into the record. Time passes meanwhile.
    pub(super) async fn write_down(&mut self, entry: &Entry, after: &History, policy: &Policy) -> Result<(), Broken> {
        let left = after.left(policy, self.now());
        let answer = self.answer_of(entry);
        let Some(book) = &mut self.logbook else {
            return Ok(());
        };
        let written = match entry {
            Entry::Started { .. } | Entry::Resolved { .. } => {
                book.announce(entry, after, Durability::Flushed, left).await
            }
            Entry::Interrupted { .. } => book.announce(entry, after, Durability::Visible, left).await,
            _ => book.note(entry, after, answer, left).await,
        };
        self.now = runtime::now();
        let Err(failure) = written else {
            return Ok(());
        };
        let displaced = matches!(failure.kind(), JournalErrorKind::Conflict | JournalErrorKind::IdTaken);
        match entry {
            // An answer is given out even if it cannot be written down.
            Entry::Ended { verdict, .. } if verdict.reach() == Reach::Applied => Ok(()),
            _ if displaced => Err(Broken::Displaced),
            Entry::Ended { .. } | Entry::Stopped { .. } => Ok(()),
            _ => Err(Broken::Failed(failure)),
        }
    }

    /// The answer that goes on record with the end of its attempt.
    fn answer_of(&self, entry: &Entry) -> Option<StoredAnswer> {
        let came =
            matches!(entry, Entry::Ended { .. }) && self.log.last().is_some_and(|attempt| attempt.status.is_some());
        let (head, verdict) = self.last.as_ref().filter(|_| came && self.logbook.is_some())?;
        // What names the status resource is kept until the end.
        let ends = matches!(verdict.reach(), Reach::Applied | Reach::Rejected);
        if self.look.is_some() && !self.names_it && !ends {
            return None;
        }
        let mut headers = HeaderMap::with_capacity(head.headers.len());
        let kept = head.headers.iter().filter(|(name, value)| !is_credential(name, value) && **name != SET_COOKIE);
        for (name, value) in kept {
            headers.append(name.clone(), unshared_value(value));
        }
        Some(StoredAnswer::new(head.status, headers, head.body.clone()))
    }
}
