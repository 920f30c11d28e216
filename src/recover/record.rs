use std::fmt;
use std::time::{Duration, SystemTime};

use http::Method;
use url::Url;

use crate::engine::{Effect, Entry, History, Policy, Verdict};
use crate::journal::{Stored, StoredAnswer};
use crate::runtime;
use crate::submission::{IdempotencyKey, OperationId};

/// Where an operation on record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RecordState {
    /// Somebody works on it.
    Running,
    /// It has no end, and may be resumed.
    Unfinished,
    /// Its effect is unknown, and it must not be sent again.
    InDoubt,
    /// Nothing is left to be done.
    Settled,
}

/// What is on record of one operation.
#[derive(Clone)]
pub struct OperationRecord {
    pub(super) stored: Stored,
    pub(super) history: History,
    pub(super) policy: Policy,
    pub(super) state: RecordState,
}

impl OperationRecord {
    /// Its id.
    ///
    /// ```
    /// fn tell(operation: &oncekey::OperationRecord) {
    ///     println!("{}", operation.id());
    /// }
    /// ```
    pub const fn id(&self) -> &OperationId {
        self.stored.identity().id()
    }

    /// Where it stands.
    ///
    /// ```
    /// fn tell(operation: &oncekey::OperationRecord) {
    ///     println!("{:?}", operation.state());
    /// }
    /// ```
    pub const fn state(&self) -> RecordState {
        self.state
    }

    /// Whether it took effect, as far as the record tells.
    ///
    /// ```
    /// fn tell(operation: &oncekey::OperationRecord) {
    ///     println!("{}", operation.effect());
    /// }
    /// ```
    pub fn effect(&self) -> Effect {
        self.history.effect()
    }

    /// The key that it is sent under, with the time of its first use.
    ///
    /// ```
    /// fn tell(operation: &oncekey::OperationRecord) {
    ///     println!("{:?}", operation.key()); // abbreviated
    /// }
    /// ```
    pub fn key(&self) -> Option<IdempotencyKey> {
        self.stored.identity().key().map(|key| IdempotencyKey::stored(key).used(self.history.key_since()))
    }

    /// When it was begun.
    ///
    /// ```
    /// fn tell(operation: &oncekey::OperationRecord) {
    ///     println!("{:?}", operation.created_at());
    /// }
    /// ```
    pub fn created_at(&self) -> SystemTime {
        runtime::system_time(self.stored.created_at())
    }

    /// How long ago that was.
    ///
    /// ```
    /// fn tell(operation: &oncekey::OperationRecord) {
    ///     println!("{} s old", operation.age().as_secs());
    /// }
    /// ```
    pub fn age(&self) -> Duration {
        runtime::now().time().since(self.stored.created_at())
    }

    /// When its key is too old to be sent, the margin taken off; `None` before
    /// its first attempt, and without a key's lifetime to keep.
    ///
    /// ```
    /// fn tell(operation: &oncekey::OperationRecord) {
    ///     println!("its key is good until {:?}", operation.key_expires_at());
    /// }
    /// ```
    pub fn key_expires_at(&self) -> Option<SystemTime> {
        let since = self.history.key_since()?;
        let usable = self.policy.key_life().saturating_sub(self.policy.margin());
        Some(runtime::system_time(since.after(usable)))
    }

    /// The earliest time for another attempt, where one was asked for.
    ///
    /// ```
    /// fn tell(operation: &oncekey::OperationRecord) {
    ///     println!("not before {:?}", operation.resume_at());
    /// }
    /// ```
    pub fn resume_at(&self) -> Option<SystemTime> {
        self.history.resume_at(&self.policy).map(runtime::system_time)
    }

    /// How many attempts were started, over all runs.
    ///
    /// ```
    /// fn tell(operation: &oncekey::OperationRecord) {
    ///     println!("{} attempts", operation.attempts());
    /// }
    /// ```
    pub const fn attempts(&self) -> u32 {
        self.history.attempts()
    }

    /// What the last attempt showed, unless nobody saw its end.
    ///
    /// ```
    /// fn tell(operation: &oncekey::OperationRecord) {
    ///     println!("{:?}", operation.last_verdict());
    /// }
    /// ```
    pub const fn last_verdict(&self) -> Option<Verdict> {
        self.history.last_verdict()
    }

    /// The last answer, if one is kept.
    ///
    /// ```
    /// fn tell(operation: &oncekey::OperationRecord) {
    ///     println!("{:?}", operation.last_answer().map(|answer| answer.status()));
    /// }
    /// ```
    pub const fn last_answer(&self) -> Option<&StoredAnswer> {
        self.stored.answer()
    }

    /// The method, if the request is kept. Lists come without it.
    ///
    /// ```
    /// fn tell(operation: &oncekey::OperationRecord) {
    ///     println!("{:?}", operation.method());
    /// }
    /// ```
    pub fn method(&self) -> Option<&Method> {
        self.stored.request().map(|request| request.method())
    }

    /// The URL, if the request is kept. Lists come without it.
    ///
    /// ```
    /// fn tell(operation: &oncekey::OperationRecord) {
    ///     println!("{:?}", operation.url().map(|url| url.path()));
    /// }
    /// ```
    pub fn url(&self) -> Option<&Url> {
        self.stored.request().map(|request| request.url())
    }

    /// All that happened to it, in order.
    ///
    /// ```
    /// fn tell(operation: &oncekey::OperationRecord) {
    ///     println!("{} facts", operation.entries().len());
    /// }
    /// ```
    pub fn entries(&self) -> &[Entry] {
        self.stored.entries()
    }
}

impl fmt::Debug for OperationRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperationRecord")
            .field("id", self.id())
            .field("state", &self.state)
            .field("effect", &self.effect())
            .field("attempts", &self.attempts())
            .finish_non_exhaustive()
    }
}
