use alloc::boxed::Box;
use core::fmt;
use core::time::Duration;

use super::effect::Effect;
use super::time::Time;
use super::verdict::Verdict;

/// One fact about an operation, in the past tense. An operation's entries, in
/// their order, are all that is known of it; [`History`](super::History) is
/// their fold.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Entry {
    /// The operation was drawn up; nothing was sent yet.
    Created {
        /// When.
        at: Time,
        /// Where its key came from.
        key: KeyOrigin,
        /// What its method promises.
        method: MethodKind,
        /// A DELETE for which "it is gone" counts as done.
        gone_is_done: bool,
    },
    /// Somebody took it up again after a stop or a crash. Budgets start anew;
    /// the key's lifetime does not.
    Resumed {
        /// Who.
        owner: Owner,
        /// When, by the wall clock as it was read: it may lie before the
        /// entries above it.
        at: Time,
    },
    /// An attempt is about to be sent.
    Started {
        /// Its number, from 1, over the whole operation.
        attempt: u32,
        /// Why it is made.
        kind: AttemptKind,
        /// How long it may take.
        timeout: Duration,
        /// When.
        at: Time,
    },
    /// The attempt ended, with what it showed.
    Ended {
        /// Its number.
        attempt: u32,
        /// What it showed, settled against the history.
        verdict: Verdict,
        /// When.
        at: Time,
        /// When the next one may be sent, if one may.
        next_at: Option<Time>,
    },
    /// The attempt's owner died before it ended.
    Interrupted {
        /// Its number.
        attempt: u32,
        /// When that was found.
        at: Time,
    },
    /// The run gave up.
    Stopped {
        /// Why.
        reason: StopReason,
        /// When.
        at: Time,
    },
    /// The request was corrected under the same key.
    Amended {
        /// When.
        at: Time,
        /// The version of the request, from 2.
        version: u32,
    },
    /// A person, or a look-up at the provider, settled it.
    Resolved {
        /// What was found.
        effect: Effect,
        /// By whom, on what evidence.
        by: Box<str>,
        /// When.
        at: Time,
    },
}

/// Where an operation's key came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyOrigin {
    /// Drawn here for this operation: nobody can have sent it before.
    Drawn,
    /// The caller's own. It may have been sent before, so the operation starts
    /// in doubt.
    Given {
        /// When it was first sent, if the caller knows.
        first_sent: Option<Time>,
    },
    /// The request carries none.
    None,
}

/// What an HTTP method promises about being sent twice (RFC 9110, 9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MethodKind {
    /// GET, HEAD, OPTIONS: changes nothing.
    Safe,
    /// PUT, DELETE: twice is as good as once.
    Idempotent,
    /// POST, PATCH and all others: twice may be two.
    Other,
}

/// Why an attempt is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AttemptKind {
    /// The operation's first.
    First,
    /// After a failure.
    Retry,
    /// To ask for the outcome of a request that the server knows.
    Poll,
}

impl AttemptKind {
    /// A word for a log line.
    ///
    /// ```
    /// use oncekey::engine::AttemptKind;
    ///
    /// let kinds = [AttemptKind::First, AttemptKind::Retry, AttemptKind::Poll];
    /// assert_eq!(kinds.map(AttemptKind::as_str), ["first", "retry", "poll"]);
    /// assert_eq!(format!("{:6}|", AttemptKind::Poll), "poll  |", "`Display` is the same, and pads");
    /// ```
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Retry => "retry",
            Self::Poll => "poll",
        }
    }
}

impl fmt::Display for AttemptKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Why a run gave up without a final answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// The request could not be built.
    Request,
    /// The `authorize` hook failed.
    Authorize,
    /// The attempts are used up.
    Attempts,
    /// The time for polling is used up.
    Polls,
    /// The next attempt does not fit what is left of the deadline.
    Deadline,
    /// The key is too old, or its age cannot be told, to be sent again.
    KeyExpired,
    /// It has no key, may have been received, and is not idempotent.
    Keyless,
    /// The caller's own schedule gave up.
    Schedule,
}

impl StopReason {
    /// Whether the same operation may be tried again later under its key, when
    /// the wait that the last attempt asked for is over. `KeyExpired` is
    /// counted: it may be that wait which the key does not outlive.
    ///
    /// ```
    /// use oncekey::engine::StopReason;
    ///
    /// assert!(StopReason::Deadline.leaves_a_later_try());
    /// assert!(!StopReason::Keyless.leaves_a_later_try(), "it may have been received, and has no key");
    /// ```
    pub const fn leaves_a_later_try(self) -> bool {
        match self {
            Self::Attempts | Self::Polls | Self::Deadline | Self::KeyExpired => true,
            Self::Request | Self::Authorize | Self::Keyless | Self::Schedule => false,
        }
    }
}

/// Which open journal works on an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Owner(u128);

impl Owner {
    /// The owner of this instance id.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::engine::*;
    /// # let (at, policy) = (Time::from_millis, Policy::new());
    /// # let created = Entry::Created { at: at(0), key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false };
    /// # let started = Entry::Started { attempt: 1, kind: AttemptKind::First, timeout: Duration::from_secs(60), at: at(0) };
    /// let resumed = Entry::Resumed { owner: Owner::new(7), at: at(9_000) };
    /// let history = History::replay(&[created, started, resumed])?;
    /// // Whoever sent the attempt is gone: how it ended nobody saw.
    /// assert_eq!(history.next(&policy, at(9_000)), Action::Record(Entry::Interrupted { attempt: 1, at: at(9_000) }));
    /// # Ok::<(), IllegalEntry>(())
    /// ```
    pub const fn new(id: u128) -> Self {
        Self(id)
    }

    /// The instance id.
    ///
    /// ```
    /// use oncekey::engine::Owner;
    ///
    /// let owner = Owner::new(0x3f2a_91c4);
    /// assert_eq!(format!("{:08x}", owner.id()), "3f2a91c4");
    /// ```
    pub const fn id(self) -> u128 {
        self.0
    }
}
