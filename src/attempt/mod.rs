mod serialize;
mod table;

use std::fmt;
use std::time::{Duration, SystemTime};

use http::StatusCode;

use crate::engine::{Advice, AttemptKind, Reach, Verdict};

pub use table::Table;

/// One attempt in an operation's log. An operation's attempts are what the
/// server saw of it: nothing below sends anything again.
#[derive(Clone)]
pub struct Attempt {
    pub(crate) number: u32,
    pub(crate) kind: AttemptKind,
    pub(crate) started_at: SystemTime,
    pub(crate) duration: Duration,
    pub(crate) status: Option<StatusCode>,
    pub(crate) failure: Option<Failure>,
    pub(crate) verdict: Option<Verdict>,
    pub(crate) wait: Duration,
    pub(crate) wait_reason: Option<WaitReason>,
    pub(crate) request_id: Option<Box<str>>,
    pub(crate) date: Option<DateText>,
    pub(crate) looked_up: Option<StatusCode>,
}

impl Attempt {
    pub(crate) const fn started(number: u32, kind: AttemptKind, at: SystemTime) -> Self {
        Self {
            number,
            kind,
            started_at: at,
            duration: Duration::ZERO,
            status: None,
            failure: None,
            verdict: None,
            wait: Duration::ZERO,
            wait_reason: None,
            request_id: None,
            date: None,
            looked_up: None,
        }
    }

    /// Its number, from 1.
    ///
    /// ```
    /// fn tell(attempt: &oncekey::Attempt) {
    ///     println!("attempt {}", attempt.number());
    /// }
    /// ```
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Why it was made.
    ///
    /// ```
    /// fn tell(attempt: &oncekey::Attempt) {
    ///     println!("{}", attempt.kind().as_str()); // first, retry or poll
    /// }
    /// ```
    pub const fn kind(&self) -> AttemptKind {
        self.kind
    }

    /// When it was sent, by our clock.
    ///
    /// ```
    /// fn tell(attempt: &oncekey::Attempt) {
    ///     println!("{:?}", attempt.started_at());
    /// }
    /// ```
    pub const fn started_at(&self) -> SystemTime {
        self.started_at
    }

    /// How long it took, the body's reading included.
    ///
    /// ```
    /// fn tell(attempt: &oncekey::Attempt) {
    ///     println!("{} ms", attempt.duration().as_millis());
    /// }
    /// ```
    pub const fn duration(&self) -> Duration {
        self.duration
    }

    /// The status of its answer, if a complete head came.
    ///
    /// ```
    /// fn tell(attempt: &oncekey::Attempt) {
    ///     println!("{:?}", attempt.status());
    /// }
    /// ```
    pub const fn status(&self) -> Option<StatusCode> {
        self.status
    }

    /// How it failed, if no complete answer came.
    ///
    /// ```
    /// fn tell(attempt: &oncekey::Attempt) {
    ///     println!("{:?}", attempt.failure());
    /// }
    /// ```
    pub const fn failure(&self) -> Option<Failure> {
        self.failure
    }

    /// What it showed; `None` only for an attempt that has not ended.
    ///
    /// ```
    /// fn tell(attempt: &oncekey::Attempt) {
    ///     println!("{}", attempt.verdict().map_or_else(String::new, |verdict| verdict.to_string()));
    /// }
    /// ```
    pub const fn verdict(&self) -> Option<Verdict> {
        self.verdict
    }

    /// The wait that followed it, as long as it took; zero where none did. What
    /// was planned is told by [`Event::Waiting`](crate::Event::Waiting).
    ///
    /// ```
    /// fn tell(attempt: &oncekey::Attempt) {
    ///     println!("then {} ms", attempt.wait().as_millis());
    /// }
    /// ```
    pub const fn wait(&self) -> Duration {
        self.wait
    }

    /// Why that wait was as long as it was.
    ///
    /// ```
    /// fn tell(attempt: &oncekey::Attempt) {
    ///     println!("{:?}", attempt.wait_reason());
    /// }
    /// ```
    pub const fn wait_reason(&self) -> Option<WaitReason> {
        self.wait_reason
    }

    /// The id that the server gave the request (`Request-Id`,
    /// `X-Request-Id` or `X-Correlation-Id`), to be named to its support.
    ///
    /// ```
    /// fn tell(attempt: &oncekey::Attempt) {
    ///     println!("tell the provider: {:?}", attempt.request_id());
    /// }
    /// ```
    pub fn request_id(&self) -> Option<&str> {
        self.request_id.as_deref()
    }

    /// The answer's `Date`: the server's own clock.
    ///
    /// ```
    /// fn tell(attempt: &oncekey::Attempt) {
    ///     println!("the server's clock: {:?}", attempt.date());
    /// }
    /// ```
    pub fn date(&self) -> Option<SystemTime> {
        httpdate::parse_http_date(self.date.as_ref()?.as_str()).ok()
    }

    /// The status that the original was fetched with, where the server said that
    /// it had carried it out before; see `ClientBuilder::recover_with`.
    ///
    /// ```
    /// fn tell(attempt: &oncekey::Attempt) {
    ///     println!("{:?}", attempt.looked_up());
    /// }
    /// ```
    pub const fn looked_up(&self) -> Option<StatusCode> {
        self.looked_up
    }

    /// The log as a table of at most 80 columns, with a bar that shows when each
    /// attempt was on its way (`#`) and what was waited after it (`.`).
    ///
    /// ```text
    ///  # kind  answer          reading                 took   then 0            360ms
    ///  1 first closed          in doubt                10ms   40ms #.
    ///  2 retry 503             in doubt                 5ms   85ms   #....
    ///  3 retry 409             in progress              5ms  205ms        #.........
    ///  4 poll  201             applied                 10ms                         #
    /// ```
    pub const fn table(attempts: &[Self]) -> Table<'_> {
        Table(attempts)
    }
}

/// A `Date` as it came, read only when it is asked for.
#[derive(Clone, Copy)]
pub(crate) struct DateText {
    length: u8,
    bytes: [u8; 33],
}

impl DateText {
    /// Longer than any form of an HTTP-date is none.
    pub(crate) fn new(value: &[u8]) -> Option<Self> {
        let mut bytes = [0; 33];
        bytes.get_mut(..value.len())?.copy_from_slice(value);
        Some(Self { length: u8::try_from(value.len()).ok()?, bytes })
    }

    fn as_str(&self) -> &str {
        self.bytes.get(..usize::from(self.length)).and_then(|bytes| str::from_utf8(bytes).ok()).unwrap_or_default()
    }
}

/// What `Debug` prints holds no header and nothing of a body: the server's
/// request id is all that comes from outside.
impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt")
            .field("number", &self.number)
            .field("kind", &self.kind)
            .field("duration", &self.duration)
            .field("status", &self.status)
            .field("failure", &self.failure)
            .field("verdict", &self.verdict)
            .field("wait", &self.wait)
            .field("wait_reason", &self.wait_reason)
            .field("request_id", &self.request_id)
            .finish_non_exhaustive()
    }
}

/// Where an attempt without a complete answer failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Failure {
    /// It could not be made into an HTTP request.
    Request,
    /// No connection: refused, no such host, TLS, or the proxy said no.
    Connect,
    /// No connection in time.
    ConnectTimeout,
    /// The server's certificate will never be accepted.
    Certificate,
    /// Sent, perhaps, and no answer in time.
    Timeout,
    /// Sent, perhaps, and the connection ended, or what came was not HTTP.
    Broken,
    /// A head, and a body that ended before its end.
    CutBody,
    /// A head, and a body that did not end in time.
    StalledBody,
    /// A head, and a body longer than the client's limit.
    TooLarge,
}

impl Failure {
    /// A word or two for a log line.
    ///
    /// ```
    /// use oncekey::Failure;
    ///
    /// assert_eq!(Failure::ConnectTimeout.as_str(), "connect timeout");
    /// assert_eq!(format!("{:8}|", Failure::Broken), "closed  |", "`Display` is the same, and pads");
    /// ```
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Request => "not a request",
            Self::Connect => "no connection",
            Self::ConnectTimeout => "connect timeout",
            Self::Certificate => "bad certificate",
            Self::Timeout => "timeout",
            Self::Broken => "closed",
            Self::CutBody => "cut",
            Self::StalledBody => "stalled",
            Self::TooLarge => "too long",
        }
    }

    /// Its name for machines: what it is serialised as, and the `error.type` of
    /// a span.
    ///
    /// ```
    /// use oncekey::Failure;
    ///
    /// assert_eq!(Failure::Broken.code(), "broken");
    /// assert_eq!(Failure::TooLarge.code(), "too_large");
    /// ```
    pub const fn code(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Connect => "connect",
            Self::ConnectTimeout => "connect_timeout",
            Self::Certificate => "certificate",
            Self::Timeout => "timeout",
            Self::Broken => "broken",
            Self::CutBody => "cut_body",
            Self::StalledBody => "stalled_body",
            Self::TooLarge => "too_large",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Why a wait was as long as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WaitReason {
    /// Our own delay after a failure.
    Backoff,
    /// Our own interval between polls.
    Poll,
    /// The server named a shortest wait.
    RetryAfter,
    /// What an earlier run of the operation left to be waited for.
    Earlier,
}

impl WaitReason {
    pub(crate) const fn of(verdict: Verdict) -> Self {
        match (verdict.advice(), verdict.reach()) {
            (Advice::RetryAfter(_), _) => Self::RetryAfter,
            (_, Reach::Accepted { knows_key: true }) => Self::Poll,
            _ => Self::Backoff,
        }
    }

    /// A word for a log line.
    ///
    /// ```
    /// use oncekey::WaitReason;
    ///
    /// assert_eq!(WaitReason::Backoff.as_str(), "backoff");
    /// assert_eq!(WaitReason::RetryAfter.to_string(), "retry-after");
    /// ```
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Backoff => "backoff",
            Self::Poll => "poll",
            Self::RetryAfter => "retry-after",
            Self::Earlier => "earlier run",
        }
    }

    /// Its name for machines.
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::Backoff => "backoff",
            Self::Poll => "poll",
            Self::RetryAfter => "retry_after",
            Self::Earlier => "earlier",
        }
    }
}

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
