//! What is on record, as an answer or an error.

use super::Desk;
use crate::call::may_go_on;
use crate::engine::{Advice, Again, Effect, Entry, History, Outcome, Reach};
use crate::error::{Cause, Error, ErrorKind, Record};
use crate::journal::{Journal, JournalError, JournalErrorKind, Stored};
use crate::profile::Replay;
use crate::response::Response;
use crate::runtime;
use crate::submission::{IdempotencyKey, OperationId};

impl Desk {
    /// Somebody else took it up while an attempt of ours was on its way. Theirs
    /// is the record now.
    pub(super) async fn displaced(&self, id: &OperationId) -> Result<Response, Error> {
        let what = "somebody else took it up while an attempt was on its way";
        let Ok(Some(stored)) = self.journal.load(id).await else {
            return Err(self.busy(id, what).await);
        };
        let history = replayed(&stored)?;
        match history.asked_again(&self.policy_of(&stored), runtime::now().time()) {
            Again::Ended(Outcome::Applied) => self.answered(Outcome::Applied, &stored, &history, None),
            Again::Ended(_) | Again::GoesOn => Err(self.busy(id, what).await),
        }
    }

    /// The end that is on record.
    pub(super) fn answered(
        &self,
        outcome: Outcome,
        stored: &Stored,
        history: &History,
        source: Option<Cause>,
    ) -> Result<Response, Error> {
        let resume_at = history.resume_at(&self.policy).filter(|_| may_go_on(outcome)).map(runtime::system_time);
        let record = Record { resume_at, source, ..self.record(stored, history) };
        match (outcome, record.response) {
            (Outcome::Applied, Some(response)) => Ok(response),
            (outcome, response) => Err(Error::ended(outcome, None, Record { response, ..record })),
        }
    }

    pub(super) async fn busy(&self, id: &OperationId, what: &'static str) -> Error {
        let stored = self.journal.load(id).await.ok().flatten();
        let history = stored.as_ref().and_then(|stored| replayed(stored).ok());
        let record = match (&stored, &history) {
            (Some(stored), Some(history)) => {
                let resume_at = history.resume_at(&self.policy).map(runtime::system_time);
                Record { resume_at, ..self.record(stored, history) }
            }
            // It may be on its way to the record.
            _ => bare(id, Effect::Unknown, None),
        };
        Error::on_record(ErrorKind::Busy, what, record)
    }

    pub(super) fn mismatch(&self, what: &'static str, stored: &Stored, history: &History) -> Error {
        let record = Record { response: None, ..self.record(stored, history) };
        Error::on_record(ErrorKind::Mismatch, what, record)
    }

    /// What an error says of an operation on record.
    pub(super) fn record(&self, stored: &Stored, history: &History) -> Record {
        let key = stored.identity().key().map(|key| IdempotencyKey::stored(key).used(history.key_since()));
        let replay = history.last_verdict().map(|verdict| self.client.profile.replay(&verdict));
        let response = stored.answer().map(|answer| Response {
            status: answer.status(),
            headers: answer.headers().clone(),
            body: answer.body().to_vec(),
            replay: replay.unwrap_or(Replay::Unmarked),
            key: key.clone(),
            attempts: Vec::new(),
            #[cfg(feature = "json")]
            applied: history.effect() == Effect::Applied,
            unrecorded: None,
        });
        let id = stored.identity().id();
        Record { response, key, ..bare(id, history.effect(), None) }
    }
}

/// A request that cannot be made says nothing about what was sent under its
/// operation's id before: that is on record.
pub(crate) async fn with_the_effect_on_record(
    error: Error,
    journal: Option<&dyn Journal>,
    id: Option<OperationId>,
) -> Error {
    let Some((journal, id)) = journal.zip(id) else {
        return error;
    };
    let effect = match journal.load(&id).await {
        Ok(None) => return error,
        Ok(Some(stored)) => replayed(&stored).map_or(Effect::Unknown, |history| history.effect()),
        Err(_) => Effect::Unknown,
    };
    error.of_operation(id, effect)
}

/// The history of an operation on record. A success whose answer is not kept
/// reads as one whose answer was lost: it may be asked for again.
pub(crate) fn replayed(stored: &Stored) -> Result<History, Error> {
    replayed_as(stored, stored.answer().is_some())
}

/// The same, by whether the last answer is kept. One that was taken up again, sent or not, reads as
/// lost for ever: the answer on record, if there is one, is that of a later attempt.
pub(crate) fn replayed_as(stored: &Stored, is_kept: bool) -> Result<History, Error> {
    let mut entries = stored.entries().to_vec();
    let again = |entry: &Entry| matches!(entry, Entry::Resumed { .. } | Entry::Started { .. });
    let last = entries.iter().rposition(again).unwrap_or_default();
    let lost = if is_kept { last } else { entries.len() };
    for entry in &mut entries[..lost] {
        if let Entry::Ended { verdict, .. } = entry
            && verdict.reach() == Reach::Applied
        {
            *verdict = verdict.with_reach(Reach::AppliedUnread).with_advice(Advice::Retry);
        }
    }
    History::replay(&entries).map_err(|illegal| {
        let error = JournalError::new(JournalErrorKind::Corrupt, "the operation's entries cannot all have happened");
        unreadable(stored.identity().id(), error.with_source(illegal))
    })
}

pub(super) fn damaged(stored: &Stored) -> Error {
    let error = JournalError::new(JournalErrorKind::Corrupt, "the operation's entries leave no way to go on");
    unreadable(stored.identity().id(), error)
}

pub(super) fn unreadable(id: &OperationId, error: JournalError) -> Error {
    let what = "the operation's record cannot be read";
    Error::on_record(ErrorKind::Journal, what, bare(id, Effect::Unknown, Some(error)))
}

/// It may be in another journal, so nothing is known of it.
pub(super) fn not_on_record(id: &OperationId) -> Error {
    let error = JournalError::new(JournalErrorKind::Missing, "no operation of this id is in this journal");
    Error::on_record(ErrorKind::Journal, "the operation is not on record here", bare(id, Effect::Unknown, Some(error)))
}

fn bare(id: &OperationId, effect: Effect, source: Option<JournalError>) -> Record {
    Record { operation: Some(id.clone()), ..Record::bare(effect, source.map(|error| Box::new(error) as _)) }
}
