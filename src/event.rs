use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::Method;

use crate::attempt::{Attempt, WaitReason};
use crate::engine::{AttemptKind, Effect};
use crate::error::{Error, ErrorKind};
use crate::response::Response;
use crate::submission::{OperationId, Submission};

/// What happens to an operation while a run works on it, told to the hooks of
/// [`ClientBuilder::on_event`](crate::ClientBuilder::on_event) and
/// [`RequestBuilder::on_event`](crate::RequestBuilder::on_event).
///
/// In this order: for each attempt a start and an end, between two attempts a
/// wait or a poll where there is one, and an end of the whole when the call
/// comes back. A call that is dropped tells no more; one that is answered from
/// the record, or refused before anything was begun, tells nothing.
///
/// With a journal, what an event tells is on record by then, unless it could
/// not be written; so a hook that panics takes the call down and not the record.
///
/// Neither `Debug` nor `Display` print a body, a header's value, a query or a
/// whole key. `Display` is a line for a log:
///
/// ```
/// use oncekey::{Client, Event};
///
/// let client = Client::builder()
///     .on_event(|event| match event {
///         Event::AttemptEnded(ended) => println!("{event}, took {:?}", ended.attempt().duration()),
///         Event::Polling(wait) => println!("still running, asked again in {:?}", wait.duration()),
///         _ => println!("{event}"),
///     })
///     .build()?;
/// # Ok::<(), oncekey::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// An attempt is about to be sent.
    AttemptStarted(AttemptStarted<'a>),
    /// It ended, with its verdict.
    AttemptEnded(AttemptEnded<'a>),
    /// The next attempt comes after a wait.
    Waiting(Waiting<'a>),
    /// The server works on it, and is asked again after a wait.
    Polling(Waiting<'a>),
    /// The run is over.
    Ended(Ended<'a>),
}

impl<'a> Event<'a> {
    /// The operation's id; none for a request that has neither id nor key.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::{Client, IdempotencyKey, Retry};
    /// let (told, heard) = std::sync::mpsc::channel();
    /// let client = Client::builder()
    /// #   .http(|http| http.no_proxy()).retry(Retry::default().max_attempts(1))
    ///     .on_event(move |event| { let _ = told.send(event.operation().map(ToString::to_string)); });
    /// let key = IdempotencyKey::parse("3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506")?;
    /// let request = client.build()?.post("http://127.0.0.1:1/payments").idempotency_key(key);
    /// request.send().await.unwrap_err(); // nobody listens there
    /// assert_eq!(heard.recv()?.as_deref(), Some("3f2a91c4…"));
    /// # Ok(())
    /// # }
    /// ```
    pub const fn operation(&self) -> Option<&'a OperationId> {
        self.about().operation
    }

    /// The request's method.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::{Client, IdempotencyKey, Retry};
    /// let (told, heard) = std::sync::mpsc::channel();
    /// let client = Client::builder()
    /// #   .http(|http| http.no_proxy()).retry(Retry::default().max_attempts(1))
    ///     .on_event(move |event| { let _ = told.send(event.method().clone()); });
    /// client.build()?.get("http://127.0.0.1:1/payments/pay_1").send().await.unwrap_err(); // nobody listens there
    /// assert_eq!(heard.recv()?, "GET");
    /// # Ok(())
    /// # }
    /// ```
    pub const fn method(&self) -> &'a Method {
        &self.about().submission.method
    }

    /// The host that it goes to, without the port.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::{Client, IdempotencyKey, Retry};
    /// let (told, heard) = std::sync::mpsc::channel();
    /// let client = Client::builder()
    /// #   .http(|http| http.no_proxy()).retry(Retry::default().max_attempts(1))
    ///     .on_event(move |event| { let _ = told.send(event.host().to_owned()); });
    /// client.build()?.get("http://127.0.0.1:1/payments/pay_1").send().await.unwrap_err(); // nobody listens there
    /// assert_eq!(heard.recv()?, "127.0.0.1");
    /// # Ok(())
    /// # }
    /// ```
    pub fn host(&self) -> &'a str {
        self.about().host()
    }

    const fn about(&self) -> &About<'a> {
        match self {
            Self::AttemptStarted(started) => &started.about,
            Self::AttemptEnded(ended) => &ended.about,
            Self::Waiting(waiting) | Self::Polling(waiting) => &waiting.about,
            Self::Ended(ended) => &ended.about,
        }
    }
}

impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let about = self.about();
        match about.operation {
            Some(operation) => write!(f, "{operation}: ")?,
            None => write!(f, "{} {}: ", self.method(), self.host())?,
        }
        match self {
            Self::AttemptStarted(started) => {
                write!(f, "attempt {} started ({})", started.number, started.kind.as_str())
            }
            Self::AttemptEnded(ended) => {
                write!(f, "attempt {} ended", ended.attempt.number())?;
                if let Some(status) = ended.attempt.status() {
                    write!(f, ", {}", status.as_u16())?;
                }
                if let Some(failure) = ended.attempt.failure() {
                    write!(f, ", {failure}")?;
                }
                if let Some(verdict) = ended.attempt.verdict() {
                    write!(f, ": {verdict}")?;
                }
                write!(f, "; so far {}", ended.effect)
            }
            Self::Waiting(wait) => write!(f, "waiting {:?} ({})", wait.duration, wait.reason),
            Self::Polling(wait) => write!(f, "in progress, asked again in {:?} ({})", wait.duration, wait.reason),
            Self::Ended(ended) => {
                let attempts = ended.attempts().len();
                let plural = if attempts == 1 { "" } else { "s" };
                let how = ended.kind().map_or("ok", ErrorKind::code);
                write!(f, "ended after {attempts} attempt{plural}: {how}, {}", ended.effect)
            }
        }
    }
}

/// What every event is about.
#[derive(Clone, Copy)]
pub(crate) struct About<'a> {
    pub(crate) operation: Option<&'a OperationId>,
    pub(crate) submission: &'a Submission,
}

impl<'a> About<'a> {
    fn host(&self) -> &'a str {
        self.submission.url.host_str().unwrap_or_default()
    }

    fn write(&self, name: &str, f: &mut fmt::Formatter<'_>, fields: &[(&str, &dyn fmt::Debug)]) -> fmt::Result {
        let mut shown = f.debug_struct(name);
        shown.field("operation", &self.operation);
        shown.field("method", &self.submission.method).field("host", &self.host());
        for (name, value) in fields {
            shown.field(name, value);
        }
        shown.finish()
    }
}

/// See [`Event::AttemptStarted`].
#[derive(Clone, Copy)]
pub struct AttemptStarted<'a> {
    about: About<'a>,
    number: u32,
    kind: AttemptKind,
    at: SystemTime,
}

impl<'a> AttemptStarted<'a> {
    pub(crate) const fn new(about: About<'a>, attempt: &Attempt) -> Self {
        Self { about, number: attempt.number(), kind: attempt.kind(), at: attempt.started_at() }
    }

    /// The attempt's number over all runs of the operation, from 1.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::{Client, Effect, ErrorKind, Event, Failure, Retry, WaitReason, engine::AttemptKind};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (told, heard) = std::sync::mpsc::channel();
    /// let client = Client::builder()
    /// # .http(|http| http.no_proxy()).retry(Retry::default().max_attempts(2).base_delay(Duration::ZERO))
    ///     .on_event(move |event| {
    ///         if let Event::AttemptStarted(started) = event {
    ///             let _ = told.send(started.number());
    ///         }
    ///     });
    /// # let error = client.build()?.post("http://127.0.0.1:1/").send().await.expect_err("nobody listens there");
    /// assert_eq!(heard.try_iter().collect::<Vec<_>>(), [1, 2], "nobody listened, twice");
    /// # Ok(())
    /// # }
    /// ```
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Why it is made.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::{Client, Effect, ErrorKind, Event, Failure, Retry, WaitReason, engine::AttemptKind};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (told, heard) = std::sync::mpsc::channel();
    /// let client = Client::builder()
    /// # .http(|http| http.no_proxy()).retry(Retry::default().max_attempts(2).base_delay(Duration::ZERO))
    ///     .on_event(move |event| {
    ///         if let Event::AttemptStarted(started) = event {
    ///             let _ = told.send(started.kind());
    ///         }
    ///     });
    /// # let error = client.build()?.post("http://127.0.0.1:1/").send().await.expect_err("nobody listens there");
    /// assert_eq!(heard.try_iter().collect::<Vec<_>>(), [AttemptKind::First, AttemptKind::Retry]);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn kind(&self) -> AttemptKind {
        self.kind
    }

    /// When, by our clock.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::{Client, Effect, ErrorKind, Event, Failure, Retry, WaitReason, engine::AttemptKind};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (told, heard) = std::sync::mpsc::channel();
    /// let client = Client::builder()
    /// # .http(|http| http.no_proxy()).retry(Retry::default().max_attempts(2).base_delay(Duration::ZERO))
    ///     .on_event(move |event| {
    ///         if let Event::AttemptStarted(started) = event {
    ///             let _ = told.send(started.at());
    ///         }
    ///     });
    /// let error = client.build()?.post("http://127.0.0.1:1/").send().await.expect_err("nobody listens there");
    /// assert_eq!(heard.recv()?, error.attempts()[0].started_at());
    /// # Ok(())
    /// # }
    /// ```
    pub const fn at(&self) -> SystemTime {
        self.at
    }
}

impl fmt::Debug for AttemptStarted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.about.write("AttemptStarted", f, &[("number", &self.number), ("kind", &self.kind)])
    }
}

/// See [`Event::AttemptEnded`].
#[derive(Clone, Copy)]
pub struct AttemptEnded<'a> {
    about: About<'a>,
    attempt: &'a Attempt,
    effect: Effect,
}

impl<'a> AttemptEnded<'a> {
    pub(crate) const fn new(about: About<'a>, attempt: &'a Attempt, effect: Effect) -> Self {
        Self { about, attempt, effect }
    }

    /// The attempt. What is waited after it is not in it yet.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::{Client, Effect, ErrorKind, Event, Failure, Retry, WaitReason, engine::AttemptKind};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (told, heard) = std::sync::mpsc::channel();
    /// let client = Client::builder()
    /// # .http(|http| http.no_proxy()).retry(Retry::default().max_attempts(2).base_delay(Duration::ZERO))
    ///     .on_event(move |event| {
    ///         if let Event::AttemptEnded(ended) = event {
    ///             let _ = told.send(ended.attempt().failure());
    ///         }
    ///     });
    /// # let error = client.build()?.post("http://127.0.0.1:1/").send().await.expect_err("nobody listens there");
    /// assert_eq!(heard.try_iter().collect::<Vec<_>>(), [Some(Failure::Connect); 2]);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn attempt(&self) -> &'a Attempt {
        self.attempt
    }

    /// Whether the operation took effect, as far as is known now.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::{Client, Effect, Event, Retry};
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = oncekey::sandbox::Sandbox::start().await?;
    /// # sandbox.fail_next([oncekey::sandbox::Fault::answer_lost()]);
    /// let (told, heard) = std::sync::mpsc::channel();
    /// let client = Client::builder()
    /// # .http(|http| http.no_proxy()).retry(Retry::default().base_delay(Duration::ZERO))
    ///     .on_event(move |event| {
    ///         if let Event::AttemptEnded(ended) = event {
    ///             let _ = told.send(ended.effect());
    ///         }
    ///     });
    /// # client.build()?.post(sandbox.url("/payments")).body("amount=4999").send().await?;
    /// // The first answer is lost, the second is its replay.
    /// assert_eq!(heard.try_iter().collect::<Vec<_>>(), [Effect::Unknown, Effect::Applied]);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub const fn effect(&self) -> Effect {
        self.effect
    }
}

impl fmt::Debug for AttemptEnded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.about.write("AttemptEnded", f, &[("attempt", self.attempt), ("effect", &self.effect)])
    }
}

/// See [`Event::Waiting`] and [`Event::Polling`].
#[derive(Clone, Copy)]
pub struct Waiting<'a> {
    about: About<'a>,
    duration: Duration,
    until: SystemTime,
    reason: WaitReason,
}

impl<'a> Waiting<'a> {
    pub(crate) const fn new(about: About<'a>, duration: Duration, until: SystemTime, reason: WaitReason) -> Self {
        Self { about, duration, until, reason }
    }

    /// How long.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::{Client, Effect, ErrorKind, Event, Failure, Retry, WaitReason, engine::AttemptKind};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (told, heard) = std::sync::mpsc::channel();
    /// let client = Client::builder()
    /// # .http(|http| http.no_proxy()).retry(Retry::default().max_attempts(2).base_delay(Duration::from_millis(100))).entropy_seed(7)
    ///     .on_event(move |event| {
    ///         if let Event::Waiting(waiting) = event {
    ///             let _ = told.send(waiting.duration());
    ///         }
    ///     });
    /// let error = client.build()?.post("http://127.0.0.1:1/").send().await.expect_err("nobody listens there");
    /// assert!(heard.recv()? <= error.attempts()[0].wait(), "what was waited at least");
    /// # Ok(())
    /// # }
    /// ```
    pub const fn duration(&self) -> Duration {
        self.duration
    }

    /// Until when, by our clock.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::{Client, Effect, ErrorKind, Event, Failure, Retry, WaitReason, engine::AttemptKind};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (told, heard) = std::sync::mpsc::channel();
    /// let client = Client::builder()
    /// # .http(|http| http.no_proxy()).retry(Retry::default().max_attempts(2).base_delay(Duration::from_millis(100))).entropy_seed(7)
    ///     .on_event(move |event| {
    ///         if let Event::Waiting(waiting) = event {
    ///             let _ = told.send(waiting.until());
    ///         }
    ///     });
    /// let error = client.build()?.post("http://127.0.0.1:1/").send().await.expect_err("nobody listens there");
    /// assert!(error.attempts()[1].started_at() >= heard.recv()?, "not before that");
    /// # Ok(())
    /// # }
    /// ```
    pub const fn until(&self) -> SystemTime {
        self.until
    }

    /// Why it is as long as it is.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::{Client, Effect, ErrorKind, Event, Failure, Retry, WaitReason, engine::AttemptKind};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (told, heard) = std::sync::mpsc::channel();
    /// let client = Client::builder()
    /// # .http(|http| http.no_proxy()).retry(Retry::default().max_attempts(2).base_delay(Duration::from_millis(100))).entropy_seed(7)
    ///     .on_event(move |event| {
    ///         if let Event::Waiting(waiting) = event {
    ///             let _ = told.send(waiting.reason());
    ///         }
    ///     });
    /// # let error = client.build()?.post("http://127.0.0.1:1/").send().await.expect_err("nobody listens there");
    /// assert_eq!(heard.recv()?, WaitReason::Backoff, "nobody named a wait");
    /// # Ok(())
    /// # }
    /// ```
    pub const fn reason(&self) -> WaitReason {
        self.reason
    }
}

impl fmt::Debug for Waiting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.about.write("Waiting", f, &[("duration", &self.duration), ("reason", &self.reason)])
    }
}

/// See [`Event::Ended`].
#[derive(Clone, Copy)]
pub struct Ended<'a> {
    about: About<'a>,
    result: Result<&'a Response, &'a Error>,
    effect: Effect,
}

impl<'a> Ended<'a> {
    pub(crate) const fn new(about: About<'a>, result: Result<&'a Response, &'a Error>, effect: Effect) -> Self {
        Self { about, result, effect }
    }

    /// What the caller gets.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::{Client, Effect, ErrorKind, Event, Failure, Retry, WaitReason, engine::AttemptKind};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (told, heard) = std::sync::mpsc::channel();
    /// let client = Client::builder()
    /// # .http(|http| http.no_proxy()).retry(Retry::default().max_attempts(2).base_delay(Duration::ZERO))
    ///     .on_event(move |event| {
    ///         if let Event::Ended(ended) = event {
    ///             let _ = told.send(ended.result().map_or_else(|error| error.to_string(), |answer| answer.text()));
    ///         }
    ///     });
    /// # let error = client.build()?.post("http://127.0.0.1:1/").send().await.expect_err("nobody listens there");
    /// assert_eq!(heard.recv()?, "all attempts failed; it was not carried out");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The error that the caller gets.
    pub const fn result(&self) -> Result<&'a Response, &'a Error> {
        self.result
    }

    /// Whether the operation took effect. A GET never does.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::{Client, Effect, Event, Retry};
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = oncekey::sandbox::Sandbox::start().await?;
    /// # sandbox.fail_next([]);
    /// let (told, heard) = std::sync::mpsc::channel();
    /// let client = Client::builder()
    /// # .http(|http| http.no_proxy()).retry(Retry::default().base_delay(Duration::ZERO))
    ///     .on_event(move |event| {
    ///         if let Event::Ended(ended) = event {
    ///             let _ = told.send((ended.result().is_ok(), ended.effect()));
    ///         }
    ///     });
    /// # client.build()?.get(sandbox.url("/payments/pay_1")).send().await?;
    /// assert_eq!(heard.recv()?, (true, Effect::NotApplied), "a GET was answered");
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub const fn effect(&self) -> Effect {
        self.effect
    }

    /// Why there is no final answer, if there is none.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::{Client, Effect, ErrorKind, Event, Failure, Retry, WaitReason, engine::AttemptKind};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (told, heard) = std::sync::mpsc::channel();
    /// let client = Client::builder()
    /// # .http(|http| http.no_proxy()).retry(Retry::default().max_attempts(2).base_delay(Duration::ZERO))
    ///     .on_event(move |event| {
    ///         if let Event::Ended(ended) = event {
    ///             let _ = told.send(ended.kind());
    ///         }
    ///     });
    /// # let error = client.build()?.post("http://127.0.0.1:1/").send().await.expect_err("nobody listens there");
    /// assert_eq!(heard.recv()?, Some(ErrorKind::Exhausted));
    /// # Ok(())
    /// # }
    /// ```
    pub fn kind(&self) -> Option<ErrorKind> {
        self.result.err().map(Error::kind)
    }

    /// The attempts of this run.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::{Client, Effect, ErrorKind, Event, Failure, Retry, WaitReason, engine::AttemptKind};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (told, heard) = std::sync::mpsc::channel();
    /// let client = Client::builder()
    /// # .http(|http| http.no_proxy()).retry(Retry::default().max_attempts(2).base_delay(Duration::ZERO))
    ///     .on_event(move |event| {
    ///         if let Event::Ended(ended) = event {
    ///             let _ = told.send(ended.attempts().len());
    ///         }
    ///     });
    /// # let error = client.build()?.post("http://127.0.0.1:1/").send().await.expect_err("nobody listens there");
    /// assert_eq!(heard.recv()?, 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn attempts(&self) -> &'a [Attempt] {
        match self.result {
            Ok(response) => response.attempts(),
            Err(error) => error.attempts(),
        }
    }
}

impl fmt::Debug for Ended<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields: [(_, &dyn fmt::Debug); 3] =
            [("kind", &self.kind()), ("effect", &self.effect), ("attempts", &self.attempts().len())];
        self.about.write("Ended", f, &fields)
    }
}

/// What a caller wants to be told.
pub(crate) type Hook = Arc<dyn Fn(&Event<'_>) + Send + Sync>;
