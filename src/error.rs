use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::time::SystemTime;

use crate::attempt::{Attempt, Table};
use crate::engine::{Effect, Outcome, Reach, StopReason, Verdict, Why};
use crate::response::Response;
use crate::submission::{IdempotencyKey, OperationId};

pub(crate) type Cause = Box<dyn StdError + Send + Sync>;

/// Why an operation has no final answer, and whether it took effect.
///
/// Ask [`Error::effect`] first: it is folded over all attempts. The kind and
/// the last answer say why. Only with [`ErrorKind::Mismatch`] it is the effect
/// of another request: of the one on record under the id.
///
/// ```
/// use oncekey::{Effect, Error};
///
/// fn what_now(error: &Error) -> &'static str {
///     match error.effect() {
///         Effect::NotApplied => "nothing happened: correct it, or try again",
///         Effect::Applied => "it is done; its answer can be fetched under the same key",
///         Effect::Unknown => "ask again under the same key, or look it up; never under a new key",
///     }
/// }
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    effect: Effect,
    what: Cow<'static, str>,
    operation: Option<OperationId>,
    key: Option<IdempotencyKey>,
    attempts: Vec<Attempt>,
    response: Option<Response>,
    resume_at: Option<SystemTime>,
    source: Option<Cause>,
}

/// What is known of an operation when it ends in an error.
pub(crate) struct Record {
    pub(crate) effect: Effect,
    pub(crate) operation: Option<OperationId>,
    pub(crate) key: Option<IdempotencyKey>,
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) response: Option<Response>,
    pub(crate) resume_at: Option<SystemTime>,
    pub(crate) source: Option<Cause>,
}

impl Record {
    /// Where no more than the effect is known.
    pub(crate) const fn bare(effect: Effect, source: Option<Cause>) -> Self {
        Self { effect, operation: None, key: None, attempts: Vec::new(), response: None, resume_at: None, source }
    }
}

/// Why a run ended without a final answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request could not be made, and this run sent nothing after that.
    ///
    /// # Troubleshooting
    ///
    /// The error's text names what is wrong and what to do. Effect
    /// `NotApplied`, unless an earlier use of a key that you brought left doubt.
    Request,
    /// The `authorize` hook failed, or took longer than an attempt may.
    ///
    /// # Troubleshooting
    ///
    /// [`source`](std::error::Error::source) is the hook's own error. The
    /// attempt that it ran for was not sent.
    Authorize,
    /// The journal failed: what had to be on record could not be written, or the
    /// record could not be read.
    ///
    /// # Troubleshooting
    ///
    /// [`source`](std::error::Error::source) is the journal's own error: a full
    /// disk, a file that is read-only, locked or damaged. Nothing is sent that
    /// is not on record. Mend it and ask again under the same id. An id to be
    /// resumed that is not on record is this kind too: it may be in another
    /// journal, so look whether the client has the right one.
    Journal,
    /// The operation's id or key is on record for another request.
    ///
    /// # Troubleshooting
    ///
    /// Nothing was sent. [`Error::effect`] is that of the operation on record.
    /// Another request is another operation: give it an id of its own, once you
    /// know how the first one ended.
    Mismatch,
    /// Somebody else works on the operation, in this process or another one,
    /// and the deadline came first; or they took it up while an attempt of this
    /// run was on its way.
    ///
    /// # Troubleshooting
    ///
    /// Ask again under the same id: you get the other's answer, or go on with it.
    Busy,
    /// It was settled by hand or by a look-up, and has no answer.
    ///
    /// # Troubleshooting
    ///
    /// [`Error::effect`] is what was decided; `Client::lookup` tells by whom and
    /// on what evidence.
    Resolved,
    /// Nothing could be sent, and trying again cannot help.
    ///
    /// # Troubleshooting
    ///
    /// Mostly a certificate that is not trusted: a missing authority, a wrong
    /// host name, a certificate out of date. The source chain names it.
    Connect,
    /// The server took it and has not finished, and nothing shows that it
    /// knows the key, so that asking again might order it twice.
    ///
    /// # Troubleshooting
    ///
    /// [`Error::response`] is that answer; follow the status link in it, or wait
    /// for the webhook. Where a 202 is final for this API, say so with a
    /// `judge`; where it honours keys on every route, with a profile that
    /// promises keys.
    Pending,
    /// The last attempt was turned away. Whether an earlier one was carried
    /// out, [`Error::effect`] says.
    ///
    /// # Troubleshooting
    ///
    /// [`Error::response`] holds the server's reason. With effect `Unknown` the
    /// refusal may have come before the key was looked at (a 401, a gateway):
    /// correct its cause and ask again under the same key.
    Refused,
    /// The idempotency layer itself turned it away: it was certainly not carried
    /// out under this key, and never will be.
    ///
    /// # Troubleshooting
    ///
    /// [`Error::response`] holds the refusal, which is stored. Another try is
    /// another operation, under another key.
    Rejected,
    /// An answer that settles nothing, and that sending again cannot change or
    /// must not be tried: a redirect, a stored 500, a reused key, a conflict
    /// that names no other cause, or any doubt without a key.
    ///
    /// # Troubleshooting
    ///
    /// Look the operation up at the provider, by the key or your own reference,
    /// before anything else is sent.
    Unsettled,
    /// The answer is longer than the client reads.
    ///
    /// # Troubleshooting
    ///
    /// Raise `ClientBuilder::max_response_bytes` and ask again under the same key.
    TooLarge,
    /// The attempts, the polls or the time are used up, or the server asks for
    /// a longer wait than the deadline leaves.
    ///
    /// # Troubleshooting
    ///
    /// Ask again under the same key, not before [`Error::resume_at`].
    Exhausted,
    /// The key is so old that the server may have forgotten it, and a forgotten
    /// key is a second order.
    ///
    /// # Troubleshooting
    ///
    /// Look the operation up at the provider. Nothing is sent under this key
    /// any more.
    KeyExpired,
    /// The server's answers cannot all be true: it carried it out, and refuses
    /// to have.
    ///
    /// # Troubleshooting
    ///
    /// Look the operation up at the provider, and show it the log of attempts.
    Contradicted,
}

impl ErrorKind {
    /// Its name for machines: the `error.type` of a span.
    ///
    /// ```
    /// use oncekey::ErrorKind;
    ///
    /// assert_eq!(ErrorKind::Refused.code(), "refused");
    /// assert_eq!(ErrorKind::KeyExpired.code(), "key_expired");
    /// ```
    pub const fn code(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Authorize => "authorize",
            Self::Journal => "journal",
            Self::Mismatch => "mismatch",
            Self::Busy => "busy",
            Self::Resolved => "resolved",
            Self::Connect => "connect",
            Self::Pending => "pending",
            Self::Refused => "refused",
            Self::Rejected => "rejected",
            Self::Unsettled => "unsettled",
            Self::TooLarge => "too_large",
            Self::Exhausted => "exhausted",
            Self::KeyExpired => "key_expired",
            Self::Contradicted => "contradicted",
        }
    }
}

impl Error {
    /// A request that was never sent, with what is wrong with it.
    pub(crate) fn request(what: impl Into<Cow<'static, str>>, effect: Effect, source: Option<Cause>) -> Self {
        Self::new(ErrorKind::Request, what.into(), Record::bare(effect, source))
    }

    /// A run that ended without a final answer.
    pub(crate) fn ended(outcome: Outcome, what: Option<&'static str>, record: Record) -> Self {
        let kind = kind_of(outcome);
        Self::new(kind, what.unwrap_or_else(|| describe(outcome, kind)).into(), record)
    }

    /// reqwest would not make a request of it: a URL too long, a scheme that the client forbids.
    pub(crate) fn unbuilt(record: Record) -> Self {
        Self::new(ErrorKind::Request, "the HTTP client would not send such a request".into(), record)
    }

    /// A run whose end nobody will see.
    #[cfg(feature = "blocking")]
    pub(crate) fn cut_off(what: &'static str, effect: Effect) -> Self {
        Self::new(ErrorKind::Unsettled, what.into(), Record::bare(effect, None))
    }

    /// An end that has to do with the record.
    #[cfg(feature = "journal")]
    pub(crate) fn on_record(kind: ErrorKind, what: impl Into<Cow<'static, str>>, record: Record) -> Self {
        Self::new(kind, what.into(), record)
    }

    /// The same of an operation of this name, of which this is known.
    #[cfg(feature = "journal")]
    pub(crate) fn of_operation(mut self, id: OperationId, effect: Effect) -> Self {
        self.0.operation = Some(id);
        self.0.effect = effect;
        self
    }

    /// The same after these attempts.
    #[cfg(feature = "journal")]
    pub(crate) fn after(mut self, attempts: Vec<Attempt>) -> Self {
        self.0.attempts = attempts;
        self
    }

    fn new(kind: ErrorKind, what: Cow<'static, str>, record: Record) -> Self {
        let Record { effect, operation, key, attempts, response, resume_at, source } = record;
        Self(Box::new(Inner { kind, effect, what, operation, key, attempts, response, resume_at, source }))
    }

    /// Whether the operation took effect, over all of its attempts.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(oncekey::Retry::default().base_delay(Duration::ZERO)).build()?;
    /// use oncekey::Effect;
    ///
    /// sandbox.fail_next([Fault::answer_lost(), Fault::status(400)]);
    /// let error = client.post(sandbox.url("/payments")).send().await.unwrap_err();
    /// // The 400 speaks of the second attempt alone.
    /// assert_eq!(error.effect(), Effect::Unknown);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn effect(&self) -> Effect {
        self.0.effect
    }

    /// Why there is no final answer.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(oncekey::Retry::default().base_delay(Duration::ZERO)).build()?;
    /// use oncekey::ErrorKind;
    ///
    /// sandbox.fail_next(Fault::status(422));
    /// let error = client.post(sandbox.url("/payments")).send().await.unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Refused);
    /// assert_eq!(error.to_string(), "the server refused it (last answer: 422); it was not carried out");
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The operation's id: without one of your own, its key.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(oncekey::Retry::default().max_attempts(1)).build()?;
    /// use oncekey::IdempotencyKey;
    ///
    /// let key = IdempotencyKey::parse("3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506")?;
    /// let request = client.post("http://127.0.0.1:1/payments").idempotency_key(&key); // nobody listens there
    /// let error = request.send().await.unwrap_err();
    /// let id = error.operation().expect("it has a key");
    /// assert_eq!((id.as_str(), id.to_string().as_str()), (key.as_str(), "3f2a91c4…"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn operation(&self) -> Option<&OperationId> {
        self.0.operation.as_ref()
    }

    /// The key it was sent under, with the time of its first use: to ask again
    /// later, keep it.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(oncekey::Retry::default().max_attempts(1).base_delay(Duration::ZERO)).build()?;
    /// sandbox.fail_next(Fault::answer_lost());
    /// let pay = || client.post(sandbox.url("/payments")).body(r#"{"amount":4999}"#);
    /// let error = pay().send().await.unwrap_err();
    /// let key = error.key().expect("a POST has one"); // keep its `as_str` and when it was first sent
    /// assert!(pay().idempotency_key(key).send().await?.is_replay());
    /// assert_eq!(sandbox.executions(), 1);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn key(&self) -> Option<&IdempotencyKey> {
        self.0.key.as_ref()
    }

    /// The attempts of this run, in their order.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(oncekey::Retry::default().max_attempts(3).base_delay(std::time::Duration::ZERO)).build()?;
    /// use oncekey::Failure;
    ///
    /// let error = client.post("http://127.0.0.1:1/payments").send().await.unwrap_err(); // nobody listens there
    /// let failures: Vec<_> = error.attempts().iter().map(|attempt| attempt.failure()).collect();
    /// assert_eq!(failures, [Some(Failure::Connect); 3]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn attempts(&self) -> &[Attempt] {
        &self.0.attempts
    }

    /// Those attempts as a table, with a picture of their time; see [`Attempt::table`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(oncekey::Retry::default().max_attempts(2).base_delay(std::time::Duration::ZERO)).build()?;
    /// let error = client.post("http://127.0.0.1:1/payments").send().await.unwrap_err(); // nobody listens there
    /// let table = error.table().to_string();
    /// let rows: Vec<&str> = table.lines().skip(1).map(|row| &row[..33]).collect();
    /// assert_eq!(rows, [" 1 first no connection   not sent", " 2 retry no connection   not sent"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn table(&self) -> Table<'_> {
        Attempt::table(self.attempts())
    }

    /// The last answer of this run whose head was complete, even if a later
    /// attempt had none; its body is as much as came.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(oncekey::Retry::default().base_delay(Duration::ZERO)).build()?;
    /// sandbox.fail_next(Fault::status(422).json(r#"{"code":"IBAN_INVALID"}"#));
    /// let error = client.post(sandbox.url("/payments")).send().await.unwrap_err();
    /// let said = error.response().expect("it was answered");
    /// assert_eq!((said.status().as_u16(), said.text().as_str()), (422, r#"{"code":"IBAN_INVALID"}"#));
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn response(&self) -> Option<&Response> {
        self.0.response.as_ref()
    }

    /// The earliest time for another try under the same key, where the server
    /// or the schedule named one that this run did not reach.
    ///
    /// With [`ErrorKind::KeyExpired`] it is the time that the server asked for,
    /// which the key does not outlive.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).retry(oncekey::Retry::default().base_delay(Duration::ZERO)).build()?;
    /// use std::time::SystemTime;
    ///
    /// sandbox.fail_next(Fault::status(503).retry_after("3600")); // longer than the deadline's 5 minutes
    /// let error = client.post(sandbox.url("/payments")).send().await.unwrap_err();
    /// let wait = error.resume_at().expect("the server named a time").duration_since(SystemTime::now())?;
    /// assert!(wait > Duration::from_secs(3500));
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn resume_at(&self) -> Option<SystemTime> {
        self.0.resume_at
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.what)?;
        if let Some(response) = &self.0.response {
            write!(f, " (last answer: {})", response.status().as_u16())?;
        }
        f.write_str(match self.0.effect {
            Effect::NotApplied => "; it was not carried out",
            Effect::Applied
                if matches!(self.0.kind, ErrorKind::Mismatch | ErrorKind::Request | ErrorKind::Resolved) =>
            {
                "; it was carried out"
            }
            Effect::Applied => "; it was carried out, its answer is missing",
            Effect::Unknown if self.0.kind == ErrorKind::Request => {
                "; whether an earlier use of its key was carried out is unknown"
            }
            Effect::Unknown => "; whether it was carried out is unknown",
        })?;
        let mut cause = self.source().filter(|_| f.alternate());
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        f.debug_struct("Error")
            .field("kind", &inner.kind)
            .field("effect", &inner.effect)
            .field("what", &inner.what)
            .field("operation", &inner.operation)
            .field("key", &inner.key)
            .field("attempts", &inner.attempts)
            .field("response", &inner.response)
            .field("resume_at", &inner.resume_at)
            .field("source", &inner.source)
            .finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_ref().map(|source| &**source as _)
    }
}

fn kind_of(outcome: Outcome) -> ErrorKind {
    match outcome {
        Outcome::Ended(verdict) => kind_of_verdict(verdict),
        Outcome::Stopped(reason) => match reason {
            StopReason::Request => ErrorKind::Request,
            StopReason::Authorize => ErrorKind::Authorize,
            StopReason::Attempts | StopReason::Polls | StopReason::Deadline | StopReason::Schedule => {
                ErrorKind::Exhausted
            }
            StopReason::KeyExpired => ErrorKind::KeyExpired,
            StopReason::Keyless => ErrorKind::Unsettled,
        },
        Outcome::Resolved(_) => ErrorKind::Resolved,
        // A success that is none of ours to report: its answers contradict each other.
        Outcome::Contradicted | Outcome::Applied => ErrorKind::Contradicted,
    }
}

fn kind_of_verdict(verdict: Verdict) -> ErrorKind {
    match (verdict.why(), verdict.reach()) {
        (Why::TooLarge, _) => ErrorKind::TooLarge,
        (_, Reach::Unsent) => ErrorKind::Connect,
        (_, Reach::Refused) => ErrorKind::Refused,
        (_, Reach::Rejected) => ErrorKind::Rejected,
        (Why::Pending, Reach::Accepted { .. }) => ErrorKind::Pending,
        (_, Reach::Ambiguous | Reach::Accepted { .. } | Reach::AppliedUnread | Reach::Applied) => ErrorKind::Unsettled,
    }
}

fn describe(outcome: Outcome, kind: ErrorKind) -> &'static str {
    match outcome {
        Outcome::Stopped(reason) => match reason {
            StopReason::Request => "the request could not be made",
            StopReason::Authorize => "the `authorize` hook failed",
            StopReason::Attempts => "all attempts failed",
            StopReason::Polls => "it was still in progress when the time for polling was up",
            StopReason::Deadline => "the next attempt does not fit what is left of the deadline",
            StopReason::KeyExpired => "the idempotency key would be too old by the next attempt",
            StopReason::Keyless => "it has no key, may have been received, and so was not sent again",
            StopReason::Schedule => "the backoff schedule gave up",
        },
        Outcome::Ended(verdict) => match (kind, verdict.why()) {
            (ErrorKind::Connect, _) => "no connection can be made, and trying again cannot help",
            (ErrorKind::Rejected, _) => "the idempotency layer rejected it for good",
            (ErrorKind::Pending, _) => "it is pending, and nothing shows that the server knows its key",
            (ErrorKind::TooLarge, _) => "the answer is longer than the client's limit",
            (_, Why::Redirect) => "an unexpected redirect, or an answer that is none yet, was not followed",
            (_, Why::KeyReused) => "the server says that the key came with another request",
            (_, Why::AlreadyProcessed) => "the server says that it was carried out before",
            (_, Why::StoredError) => "the server repeats an error that it stored under the key",
            (_, Why::WrongType) => "a page came where data was asked for",
            (_, Why::Conflict) if kind == ErrorKind::Unsettled => "a conflict that may be with our own earlier attempt",
            (ErrorKind::Refused, _) => "the server refused it",
            _ => "the answer settles nothing",
        },
        Outcome::Resolved(_) => "it was settled by hand or by a look-up",
        Outcome::Contradicted | Outcome::Applied => "the server's answers contradict each other",
    }
}

/// A client that cannot be built as asked for.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct BuildError {
    what: Cow<'static, str>,
    source: Option<Cause>,
}

impl BuildError {
    pub(crate) fn new(what: impl Into<Cow<'static, str>>) -> Self {
        Self { what: what.into(), source: None }
    }

    #[cfg(feature = "blocking")]
    pub(crate) fn thread(source: std::io::Error) -> Self {
        Self { what: "the client's thread could not be started".into(), source: Some(Box::new(source)) }
    }

    pub(crate) fn http(source: reqwest::Error) -> Self {
        Self { what: "the HTTP client could not be built".into(), source: Some(Box::new(source.without_url())) }
    }
}
