use core::fmt;
use core::time::Duration;

/// What one attempt showed: how far it got, whether it may be sent again, and why.
///
/// The reader of answers makes it without knowing any earlier attempt; the
/// [`History`](super::History) then settles what depends on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "a verdict that is dropped is an attempt forgotten"]
pub struct Verdict {
    reach: Reach,
    advice: Advice,
    why: Why,
    marked: bool,
    linked: bool,
}

impl Verdict {
    /// A verdict of these parts, on an answer without a replay mark.
    pub const fn new(reach: Reach, advice: Advice, why: Why) -> Self {
        Self { reach, advice, why, marked: false, linked: false }
    }

    /// The same with the mark set or cleared; see [`Verdict::marked`].
    pub const fn with_mark(mut self, marked: bool) -> Self {
        self.marked = marked;
        self
    }

    /// The same with a status resource named or not; see [`Verdict::linked`].
    pub const fn with_link(mut self, linked: bool) -> Self {
        self.linked = linked;
        self
    }

    /// The same with another reach.
    pub const fn with_reach(mut self, reach: Reach) -> Self {
        self.reach = reach;
        self
    }

    /// The same with another advice.
    pub const fn with_advice(mut self, advice: Advice) -> Self {
        self.advice = advice;
        self
    }

    /// The same with another reason.
    pub const fn with_why(mut self, why: Why) -> Self {
        self.why = why;
        self
    }

    /// How far the attempt got.
    pub const fn reach(&self) -> Reach {
        self.reach
    }

    /// Whether it may be sent again.
    pub const fn advice(&self) -> Advice {
        self.advice
    }

    /// What the verdict rests on.
    pub const fn why(&self) -> Why {
        self.why
    }

    /// Whether the answer carried the replay mark: evidence, for this operation,
    /// that the server knows the key.
    pub const fn marked(&self) -> bool {
        self.marked
    }

    /// Whether the answer named a status resource, by which the operation is
    /// asked after with GET: a poll that orders nothing, whether or not the
    /// server knows the key.
    pub const fn linked(&self) -> bool {
        self.linked
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reach.as_str())?;
        if self.why != Why::Success {
            write!(f, ", {}", self.why.as_str())?;
        }
        Ok(())
    }
}

/// How far an attempt got on its way to being carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reach {
    /// Proven: nothing of it was sent.
    Unsent,
    /// The server turned this attempt away without carrying it out. Says
    /// nothing about an earlier attempt.
    Refused,
    /// It may have been carried out.
    Ambiguous,
    /// The server took it and works on it, or says that an attempt under this
    /// key is being worked on.
    Accepted {
        /// There is evidence that the server knows this key, so that asking
        /// again is a poll and not a second order.
        knows_key: bool,
    },
    /// It was carried out, but the answer could not be read to its end.
    AppliedUnread,
    /// It was carried out, and this is the answer.
    Applied,
    /// The idempotency layer itself refused it: the key is bound to a refusal,
    /// whatever was sent under it before.
    Rejected,
}

impl Reach {
    /// A few words for a log line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unsent => "not sent",
            Self::Refused => "refused",
            Self::Ambiguous => "in doubt",
            Self::Accepted { knows_key: true } => "in progress",
            Self::Accepted { knows_key: false } => "accepted",
            Self::AppliedUnread => "applied, unread",
            Self::Applied => "applied",
            Self::Rejected => "rejected",
        }
    }
}

/// Whether an attempt may be sent again, as far as its answer tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Advice {
    /// After our own delay.
    Retry,
    /// Not before this much time has passed; the server said so.
    RetryAfter(Duration),
    /// No: sending it again cannot change the answer, or must not be tried.
    Stop,
}

/// What a verdict rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Why {
    /// No connection was made.
    NotSent,
    /// No complete head of an answer came.
    NoHead,
    /// The body ended or stalled before its end, or is not what it says it is.
    CutBody,
    /// The body is longer than the client's limit.
    TooLarge,
    /// A page came where data was asked for.
    WrongType,
    /// A redirect, which is never followed.
    Redirect,
    /// The server says that the key's first request still runs.
    InProgress,
    /// The server says that the key came with another request.
    KeyReused,
    /// The server says that it was carried out before, without the answer.
    AlreadyProcessed,
    /// The server repeats an error that it stored under the key.
    StoredError,
    /// A success whose operation is not finished.
    Pending,
    /// The credentials were not accepted.
    Unauthorized,
    /// Too many requests.
    RateLimited,
    /// A 5xx.
    ServerError,
    /// A refusal of this request.
    Refusal,
    /// A conflict that names no other cause.
    Conflict,
    /// A success, complete.
    Success,
    /// None of these.
    Other,
}

impl Why {
    /// A few words for a log line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotSent => "no connection",
            Self::NoHead => "no answer",
            Self::CutBody => "answer cut",
            Self::TooLarge => "answer too long",
            Self::WrongType => "page instead of data",
            Self::Redirect => "redirect",
            Self::InProgress => "still running",
            Self::KeyReused => "key reused",
            Self::AlreadyProcessed => "already processed",
            Self::StoredError => "stored error",
            Self::Pending => "pending",
            Self::Unauthorized => "unauthorized",
            Self::RateLimited => "rate limited",
            Self::ServerError => "server error",
            Self::Refusal => "refusal",
            Self::Conflict => "conflict",
            Self::Success => "success",
            Self::Other => "other",
        }
    }
}
