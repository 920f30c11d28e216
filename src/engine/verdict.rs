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
    ///
    /// ```
    /// use oncekey::engine::{Advice, Reach, Verdict, Why};
    ///
    /// let lost = Verdict::new(Reach::Ambiguous, Advice::Retry, Why::NoHead);
    /// assert_eq!(lost.to_string(), "in doubt, no answer");
    /// assert!(!lost.marked());
    /// ```
    pub const fn new(reach: Reach, advice: Advice, why: Why) -> Self {
        Self { reach, advice, why, marked: false, linked: false }
    }

    /// The same with the mark set or cleared; see [`Verdict::marked`].
    ///
    /// ```
    /// use oncekey::engine::{Advice, Reach, Verdict, Why};
    ///
    /// let replay = Verdict::new(Reach::Applied, Advice::Stop, Why::Success).with_mark(true);
    /// assert!(replay.marked());
    /// assert!(!replay.with_mark(false).marked());
    /// ```
    pub const fn with_mark(mut self, marked: bool) -> Self {
        self.marked = marked;
        self
    }

    /// The same with a status resource named or not; see [`Verdict::linked`].
    ///
    /// ```
    /// use oncekey::engine::{Advice, Reach, Verdict, Why};
    ///
    /// // A 202 with a `Location`.
    /// let accepted = Verdict::new(Reach::Accepted { knows_key: false }, Advice::Retry, Why::Pending);
    /// assert!(accepted.with_link(true).linked());
    /// ```
    pub const fn with_link(mut self, linked: bool) -> Self {
        self.linked = linked;
        self
    }

    /// The same with another reach.
    ///
    /// ```
    /// use oncekey::engine::{Advice, Reach, Verdict, Why};
    ///
    /// // After an earlier attempt it may be our own that holds the key.
    /// let reused = Verdict::new(Reach::Refused, Advice::Stop, Why::KeyReused);
    /// assert_eq!(reused.with_reach(Reach::Ambiguous).to_string(), "in doubt, key reused");
    /// ```
    pub const fn with_reach(mut self, reach: Reach) -> Self {
        self.reach = reach;
        self
    }

    /// The same with another advice.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oncekey::engine::{Advice, Reach, Verdict, Why};
    ///
    /// let limited = Verdict::new(Reach::Refused, Advice::Retry, Why::RateLimited);
    /// let later = limited.with_advice(Advice::RetryAfter(Duration::from_secs(7)));
    /// assert_ne!(limited, later);
    /// assert_eq!(later.why(), limited.why());
    /// ```
    pub const fn with_advice(mut self, advice: Advice) -> Self {
        self.advice = advice;
        self
    }

    /// The same with another reason.
    ///
    /// ```
    /// use oncekey::engine::{Advice, Reach, Verdict, Why};
    ///
    /// let lost = Verdict::new(Reach::Ambiguous, Advice::Retry, Why::NoHead);
    /// assert_eq!(lost.with_why(Why::ServerError).to_string(), "in doubt, server error");
    /// ```
    pub const fn with_why(mut self, why: Why) -> Self {
        self.why = why;
        self
    }

    /// How far the attempt got.
    ///
    /// ```
    /// # use oncekey::engine::*;
    /// # use oncekey::profile::{Answer, Asked, Exchange, Profile};
    /// # use oncekey::reqwest::Method;
    /// # use oncekey::reqwest::header::HeaderMap;
    /// # let none = HeaderMap::new();
    /// # let asked = Asked::new(&Method::POST, &none).with_key(Some("3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506"));
    /// use oncekey::reqwest::StatusCode;
    ///
    /// let refusal = Answer::new(StatusCode::UNAUTHORIZED, &none, b"");
    /// let verdict = Profile::generic().read(&asked, &Exchange::Answered(refusal));
    /// assert_eq!(verdict.reach(), Reach::Refused);
    /// let lost = Profile::generic().read(&asked, &Exchange::NoHead);
    /// assert_eq!(lost.reach(), Reach::Ambiguous);
    /// ```
    pub const fn reach(&self) -> Reach {
        self.reach
    }

    /// Whether it may be sent again.
    ///
    /// ```
    /// # use oncekey::engine::*;
    /// # use oncekey::profile::{Answer, Asked, Exchange, Profile};
    /// # use oncekey::reqwest::Method;
    /// # use oncekey::reqwest::header::HeaderMap;
    /// # let none = HeaderMap::new();
    /// # let asked = Asked::new(&Method::POST, &none).with_key(Some("3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506"));
    /// use std::time::Duration;
    /// use oncekey::reqwest::StatusCode;
    /// use oncekey::reqwest::header::{HeaderValue, RETRY_AFTER};
    ///
    /// let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static("7"))]);
    /// let busy = Answer::new(StatusCode::SERVICE_UNAVAILABLE, &headers, b"");
    /// let verdict = Profile::generic().read(&asked, &Exchange::Answered(busy));
    /// assert_eq!(verdict.advice(), Advice::RetryAfter(Duration::from_secs(7)));
    /// ```
    pub const fn advice(&self) -> Advice {
        self.advice
    }

    /// What the verdict rests on.
    ///
    /// ```
    /// # use oncekey::engine::*;
    /// # use oncekey::profile::{Answer, Asked, Exchange, Profile};
    /// # use oncekey::reqwest::Method;
    /// # use oncekey::reqwest::header::HeaderMap;
    /// # let none = HeaderMap::new();
    /// # let asked = Asked::new(&Method::POST, &none).with_key(Some("3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506"));
    /// use oncekey::reqwest::StatusCode;
    ///
    /// let moved = Answer::new(StatusCode::TEMPORARY_REDIRECT, &none, b"");
    /// let verdict = Profile::generic().read(&asked, &Exchange::Answered(moved));
    /// assert_eq!(verdict.why(), Why::Redirect);
    /// let unsent = Profile::generic().read(&asked, &Exchange::Unsent { hopeless: true });
    /// assert_eq!(unsent.why(), Why::NotSent);
    /// ```
    pub const fn why(&self) -> Why {
        self.why
    }

    /// Whether the answer carried the replay mark: evidence, for this operation,
    /// that the server knows the key.
    ///
    /// ```
    /// # use oncekey::engine::*;
    /// # use oncekey::profile::{Answer, Asked, Exchange, Profile};
    /// # use oncekey::reqwest::Method;
    /// # use oncekey::reqwest::header::HeaderMap;
    /// # let none = HeaderMap::new();
    /// # let asked = Asked::new(&Method::POST, &none).with_key(Some("3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506"));
    /// use oncekey::reqwest::StatusCode;
    /// use oncekey::reqwest::header::{HeaderName, HeaderValue};
    ///
    /// let mark = (HeaderName::from_static("idempotent-replay"), HeaderValue::from_static("true"));
    /// let headers = HeaderMap::from_iter([mark]);
    /// let answer = Answer::new(StatusCode::CREATED, &headers, br#"{"id":"pay_1"}"#);
    /// assert!(Profile::verifika().read(&asked, &Exchange::Answered(answer)).marked());
    /// ```
    pub const fn marked(&self) -> bool {
        self.marked
    }

    /// Whether the answer named a status resource, by which the operation is
    /// asked after with GET: a poll that orders nothing, whether or not the
    /// server knows the key.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::engine::*;
    /// # let (at, policy) = (Time::from_millis, Policy::new());
    /// # let created = Entry::Created { at: at(0), key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false };
    /// # let started = Entry::Started { attempt: 1, kind: AttemptKind::First, timeout: Duration::from_secs(60), at: at(0) };
    /// let mut history = History::replay(&[created, started])?;
    /// let accepted = Verdict::new(Reach::Accepted { knows_key: false }, Advice::Retry, Why::Pending).with_link(true);
    /// assert!(accepted.linked());
    /// history.apply(&history.ended(accepted, &policy, at(300), Draw::Entropy(u64::MAX / 2)))?;
    /// assert_eq!(history.next_at(), Some(at(1_300)), "the first poll");
    /// # Ok::<(), IllegalEntry>(())
    /// ```
    pub const fn linked(&self) -> bool {
        self.linked
    }

    /// What comes next is a poll.
    pub(crate) const fn is_polled(&self) -> bool {
        match self.reach {
            Reach::Accepted { knows_key } => knows_key || self.linked,
            Reach::Unsent
            | Reach::Refused
            | Reach::Ambiguous
            | Reach::AppliedUnread
            | Reach::Applied
            | Reach::Rejected => false,
        }
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
    ///
    /// ```
    /// use oncekey::engine::Reach;
    ///
    /// assert_eq!(Reach::Ambiguous.as_str(), "in doubt");
    /// assert_eq!(Reach::Accepted { knows_key: true }.as_str(), "in progress");
    /// assert_eq!(Reach::Accepted { knows_key: false }.to_string(), "accepted");
    /// ```
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

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
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
    ///
    /// ```
    /// use oncekey::engine::Why;
    ///
    /// assert_eq!(Why::NoHead.as_str(), "no answer");
    /// assert_eq!(Why::AlreadyProcessed.to_string(), "already processed");
    /// ```
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

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
