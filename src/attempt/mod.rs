mod serialize;
mod table;

use std::fmt;
use std::time::{Duration, SystemTime};

use http::StatusCode;

use crate::engine::{Advice, AttemptKind, Verdict};

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
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(oncekey::Retry::default().base_delay(Duration::ZERO)).build()?;
    /// sandbox.fail_next(Fault::status(503).times(2));
    /// let response = client.post(sandbox.url("/payments")).send().await?;
    /// let numbers: Vec<u32> = response.attempts().iter().map(|attempt| attempt.number()).collect();
    /// assert_eq!(numbers, [1, 2, 3]);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Why it was made.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).poll(oncekey::Poll::default().interval(Duration::ZERO)).retry(oncekey::Retry::default().base_delay(Duration::ZERO)).build()?;
    /// sandbox.fail_next([Fault::status(503), Fault::in_progress()]);
    /// let response = client.post(sandbox.url("/payments")).send().await?;
    /// let kinds: Vec<_> = response.attempts().iter().map(|attempt| attempt.kind().as_str()).collect();
    /// assert_eq!(kinds, ["first", "retry", "poll"]);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub const fn kind(&self) -> AttemptKind {
        self.kind
    }

    /// When it was sent, by our clock.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(oncekey::Retry::default().base_delay(Duration::ZERO)).build()?;
    /// sandbox.fail_next(Fault::answer_lost());
    /// let before = std::time::SystemTime::now() - Duration::from_secs(1);
    /// let response = client.post(sandbox.url("/payments")).send().await?;
    /// let [lost, replayed] = response.attempts() else { panic!("it was sent twice") };
    /// assert!(before < lost.started_at() && lost.started_at() <= replayed.started_at());
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub const fn started_at(&self) -> SystemTime {
        self.started_at
    }

    /// How long it took, the body's reading included.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(oncekey::Retry::default().base_delay(Duration::ZERO)).build()?;
    /// sandbox.fail_next(Fault::stall_after_executing());
    /// let request = client.post(sandbox.url("/payments")).attempt_timeout(Duration::from_millis(200));
    /// let response = request.send().await?;
    /// assert!(response.attempts()[0].duration() >= Duration::from_millis(190)); // until it timed out
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub const fn duration(&self) -> Duration {
        self.duration
    }

    /// The status of its answer, if a complete head came.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(oncekey::Retry::default().base_delay(Duration::ZERO)).build()?;
    /// sandbox.fail_next([Fault::answer_lost(), Fault::status(503)]);
    /// let response = client.post(sandbox.url("/payments")).send().await?;
    /// let statuses: Vec<_> = response.attempts().iter().map(|attempt| attempt.status().map(|s| s.as_u16())).collect();
    /// assert_eq!(statuses, [None, Some(503), Some(201)]);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub const fn status(&self) -> Option<StatusCode> {
        self.status
    }

    /// How it failed, if no complete answer came.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(oncekey::Retry::default().base_delay(Duration::ZERO)).build()?;
    /// use oncekey::Failure;
    ///
    /// sandbox.fail_next([Fault::answer_lost(), Fault::body_cut(5), Fault::status(503)]);
    /// let response = client.post(sandbox.url("/payments")).send().await?;
    /// let failures: Vec<_> = response.attempts().iter().map(|attempt| attempt.failure()).collect();
    /// // A 503 is a complete answer, as the 201 is.
    /// assert_eq!(failures, [Some(Failure::Broken), Some(Failure::CutBody), None, None]);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub const fn failure(&self) -> Option<Failure> {
        self.failure
    }

    /// What it showed; `None` only for an attempt that has not ended.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(oncekey::Retry::default().base_delay(Duration::ZERO)).build()?;
    /// sandbox.fail_next([Fault::answer_lost(), Fault::status(429)]);
    /// let response = client.post(sandbox.url("/payments")).send().await?;
    /// let read: Vec<_> = response.attempts().iter().filter_map(|attempt| attempt.verdict()).collect();
    /// assert_eq!(read[0].to_string(), "in doubt, no answer");
    /// assert_eq!(read[1].to_string(), "in doubt, rate limited");
    /// assert_eq!(read[2].to_string(), "applied");
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub const fn verdict(&self) -> Option<Verdict> {
        self.verdict
    }

    /// The wait that followed it, as long as it took; zero where none did. What
    /// was planned is told by [`Event::Waiting`](crate::Event::Waiting).
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(oncekey::Retry::default().base_delay(Duration::ZERO)).build()?;
    /// sandbox.fail_next(Fault::status(503).retry_after("0.05"));
    /// let response = client.post(sandbox.url("/payments")).send().await?;
    /// let [refused, paid] = response.attempts() else { panic!("it was sent twice") };
    /// assert!(refused.wait() >= Duration::from_millis(50));
    /// assert_eq!(paid.wait(), Duration::ZERO);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub const fn wait(&self) -> Duration {
        self.wait
    }

    /// Why that wait was as long as it was.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).poll(oncekey::Poll::default().interval(Duration::ZERO)).retry(oncekey::Retry::default().base_delay(Duration::ZERO)).build()?;
    /// use oncekey::WaitReason;
    ///
    /// sandbox.fail_next([Fault::status(503).retry_after("0.05"), Fault::in_progress()]);
    /// let response = client.post(sandbox.url("/payments")).send().await?;
    /// let reasons: Vec<_> = response.attempts().iter().filter_map(|attempt| attempt.wait_reason()).collect();
    /// assert_eq!(reasons, [WaitReason::RetryAfter, WaitReason::Poll]);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub const fn wait_reason(&self) -> Option<WaitReason> {
        self.wait_reason
    }

    /// The id that the server gave the request (`Request-Id`,
    /// `X-Request-Id` or `X-Correlation-Id`), to be named to its support.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(oncekey::Retry::default().base_delay(Duration::ZERO)).build()?;
    /// sandbox.fail_next(Fault::status(400).header("X-Request-Id", "req_7"));
    /// let error = client.post(sandbox.url("/payments")).send().await.unwrap_err();
    /// assert_eq!(error.attempts()[0].request_id(), Some("req_7"));
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn request_id(&self) -> Option<&str> {
        self.request_id.as_deref()
    }

    /// The answer's `Date`: the server's own clock.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::Sandbox; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(oncekey::Retry::default().base_delay(Duration::ZERO)).build()?;
    /// sandbox.advance(Duration::from_secs(3600)); // the server's clock is an hour fast
    /// let response = client.post(sandbox.url("/payments")).send().await?;
    /// let attempt = &response.attempts()[0];
    /// let ahead = attempt.date().expect("servers tell it").duration_since(attempt.started_at())?;
    /// assert!(ahead > Duration::from_secs(3590));
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn date(&self) -> Option<SystemTime> {
        httpdate::parse_http_date(self.date.as_ref()?.as_str()).ok()
    }

    /// The status that the original was fetched with, where the server said that
    /// it had carried it out before; see `ClientBuilder::recover_with`.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// use oncekey::{Client, Profile};
    ///
    /// let client = Client::builder()
    ///     .profile(Profile::gocardless())
    ///     .recover_with(|id| Some(format!("/payments/{id}")))
    /// #   .http(|http| http.no_proxy()).retry(oncekey::Retry::default().base_delay(Duration::ZERO))
    ///     .build()?;
    /// # let body = r#"{"error":{"errors":[{"reason":"idempotent_creation_conflict","links":{"conflicting_resource_id":"PM1"}}]}}"#;
    /// # sandbox.fail_next([Fault::answer_lost(), Fault::status(409).json(body)]);
    /// // Its answer is lost, and to the next attempt the server says that there is a PM1.
    /// let response = client.post(sandbox.url("/payments")).body("{}").send().await?;
    /// let attempt = &response.attempts()[1];
    /// assert_eq!(attempt.status().map(|status| status.as_u16()), Some(409));
    /// assert_eq!(attempt.looked_up().map(|status| status.as_u16()), Some(200)); // of /payments/PM1
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
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
        match verdict.advice() {
            Advice::RetryAfter(_) => Self::RetryAfter,
            _ if verdict.is_polled() => Self::Poll,
            Advice::Retry | Advice::Stop => Self::Backoff,
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
