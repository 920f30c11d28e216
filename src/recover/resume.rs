use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures_core::Stream;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::task::JoinSet;

use super::{NO_JOURNAL, OperationRecord};
use crate::client::{Client, Inner};
use crate::desk::{Desk, with_the_effect_on_record};
use crate::draft::SHORT_DEADLINE;
use crate::engine::{Effect, SHORTEST_ATTEMPT};
use crate::error::Error;
use crate::event::{Event, Hook};
use crate::journal::JournalError;
use crate::policy::limited;
use crate::response::Response;
use crate::runtime;
use crate::submission::{OperationId, is_credential};

/// Credentials for a request that was made before: they are never on record.
#[derive(Clone, Default)]
struct Credentials {
    headers: HeaderMap,
    problem: Option<&'static str>,
}

impl Credentials {
    fn authorization(&mut self, value: String) {
        self.set(http::header::AUTHORIZATION, HeaderValue::try_from(value).ok());
    }

    fn header<K, V>(&mut self, name: K, value: V)
    where
        HeaderName: TryFrom<K>,
        HeaderValue: TryFrom<V>,
    {
        match HeaderName::try_from(name) {
            Ok(name) => self.set(name, HeaderValue::try_from(value).ok()),
            Err(_) => self.fail("a header's name holds a character that a name cannot"),
        }
    }

    fn set(&mut self, name: HeaderName, value: Option<HeaderValue>) {
        match value {
            Some(mut value) if is_credential(&name, &value) => {
                value.set_sensitive(true);
                self.headers.insert(name, value);
            }
            Some(_) => self.fail(
                "only credentials are given anew: Authorization, Cookie, Proxy-Authorization, \
                 or a header whose value is marked sensitive; the rest is on record",
            ),
            None => self.fail("the credentials hold a character that a header cannot"),
        }
    }

    fn fail(&mut self, problem: &'static str) {
        self.problem.get_or_insert(problem);
    }
}

/// An operation that is gone on with; see [`Client::resume`].
#[must_use = "nothing is resumed until it is sent"]
pub struct Resume {
    client: Client,
    id: OperationId,
    account: Option<Box<str>>,
    credentials: Credentials,
    attempt_timeout: Option<Duration>,
    deadline: Option<Duration>,
    on_event: Option<Hook>,
}

impl Resume {
    pub(super) fn new(client: Client, id: OperationId) -> Self {
        Self {
            client,
            id,
            account: None,
            credentials: Credentials::default(),
            attempt_timeout: None,
            deadline: None,
            on_event: None,
        }
    }

    /// `Authorization: Bearer`, never printed and never stored.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).journal(oncekey::journal::Memory::new()).retry(oncekey::Retry::default().max_attempts(1).base_delay(Duration::ZERO)).build()?;
    /// # sandbox.fail_next(Fault::answer_lost());
    /// # client.post(sandbox.url("/payments")).operation("order-7").body("{}").send().await.unwrap_err();
    /// client.resume("order-7").bearer_auth("fresh").send().await?; // its answer was lost
    /// assert_eq!(sandbox.requests()[1].headers()["authorization"], "Bearer fresh");
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn bearer_auth<T: fmt::Display>(mut self, token: T) -> Self {
        self.credentials.authorization(format!("Bearer {token}"));
        self
    }

    /// `Authorization: Basic` (RFC 7617), never printed and never stored.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).journal(oncekey::journal::Memory::new()).retry(oncekey::Retry::default().max_attempts(1).base_delay(Duration::ZERO)).build()?;
    /// # sandbox.fail_next(Fault::answer_lost());
    /// # client.post(sandbox.url("/payments")).operation("order-7").body("{}").send().await.unwrap_err();
    /// client.resume("order-7").basic_auth("user", None::<&str>).send().await?;
    /// assert_eq!(sandbox.requests()[1].headers()["authorization"], "Basic dXNlcjo="); // `user:`
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn basic_auth<U: fmt::Display, P: fmt::Display>(mut self, username: U, password: Option<P>) -> Self {
        let password = password.map_or_else(String::new, |password| password.to_string());
        let encoded = BASE64.encode(format!("{username}:{password}"));
        self.credentials.authorization(format!("Basic {encoded}"));
        self
    }

    /// Another credential: `Cookie`, `Proxy-Authorization`, or a header whose
    /// value is marked sensitive. Anything else is on record, and refused here.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).journal(oncekey::journal::Memory::new()).retry(oncekey::Retry::default().max_attempts(1).base_delay(Duration::ZERO)).build()?;
    /// # sandbox.fail_next(Fault::answer_lost());
    /// # client.post(sandbox.url("/payments")).operation("order-7").body("{}").send().await.unwrap_err();
    /// use oncekey::ErrorKind;
    ///
    /// let error = client.resume("order-7").header("x-tenant", "acme").send().await.unwrap_err(); // is on record
    /// assert_eq!(error.kind(), ErrorKind::Request);
    /// client.resume("order-7").header("cookie", "session=1").send().await?;
    /// assert_eq!(sandbox.requests()[1].headers()["cookie"], "session=1");
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn header<K, V>(mut self, name: K, value: V) -> Self
    where
        HeaderName: TryFrom<K>,
        HeaderValue: TryFrom<V>,
    {
        self.credentials.header(name, value);
        self
    }

    /// The account that it was sent for, in the place of the client's.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::Sandbox; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).journal(oncekey::journal::Memory::new()).retry(oncekey::Retry::default().max_attempts(1).base_delay(Duration::ZERO)).build()?;
    /// client.post(sandbox.url("/payments")).operation("order-7").account("acct_2").send().await?;
    /// assert!(client.resume("order-7").send().await.is_err()); // this client acts for no account
    /// assert_eq!(client.resume("order-7").account("acct_2").send().await?.status(), 201);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn account(mut self, account: impl Into<Box<str>>) -> Self {
        self.account = Some(account.into());
        self
    }

    /// How long one attempt may take, in the place of the client's.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).journal(oncekey::journal::Memory::new()).retry(oncekey::Retry::default().max_attempts(1).base_delay(Duration::ZERO)).build()?;
    /// # sandbox.fail_next(Fault::answer_lost());
    /// # client.post(sandbox.url("/payments")).operation("order-7").body("{}").send().await.unwrap_err();
    /// use oncekey::Failure;
    ///
    /// sandbox.fail_next(Fault::stall_before_reading());
    /// let resume = client.resume("order-7").attempt_timeout(Duration::from_millis(200));
    /// let error = resume.send().await.unwrap_err();
    /// assert_eq!(error.attempts().last().and_then(|attempt| attempt.failure()), Some(Failure::Timeout));
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt_timeout = Some(timeout);
        self
    }

    /// How long this run may take, waits included, in the place of the client's.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).journal(oncekey::journal::Memory::new()).retry(oncekey::Retry::default().max_attempts(1)).build()?;
    /// use std::time::Duration;
    /// use oncekey::ErrorKind;
    ///
    /// client.post("http://127.0.0.1:1/payments").operation("order-7").send().await.unwrap_err(); // nobody listens there
    /// let error = client.resume("order-7").deadline(Duration::from_millis(300)).send().await.unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Exhausted);
    /// # Ok(())
    /// # }
    /// ```
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Tells what happens to it, after the client's own hook: see [`Event`].
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).journal(oncekey::journal::Memory::new()).retry(oncekey::Retry::default().max_attempts(1).base_delay(Duration::ZERO)).build()?;
    /// # sandbox.fail_next(Fault::answer_lost());
    /// # client.post(sandbox.url("/payments")).operation("order-7").body("{}").send().await.unwrap_err();
    /// let (told, heard) = std::sync::mpsc::channel();
    /// let resume = client.resume("order-7").on_event(move |event| { let _ = told.send(event.to_string()); });
    /// resume.send().await?;
    /// assert_eq!(heard.recv()?, "order-7: attempt 2 started (retry)");
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn on_event(mut self, hook: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.on_event = Some(Arc::new(hook));
        self
    }

    /// Goes on with it, until the answer is final or nothing more can safely
    /// be done.
    ///
    /// ```
    /// use oncekey::{Client, Effect, Retry};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # let (sandbox, journal) = (Sandbox::start().await?, oncekey::journal::Memory::new());
    /// # let client = Client::builder().retry(Retry::default().max_attempts(1)).journal(journal).build()?;
    /// # sandbox.fail_next([Fault::answer_lost()]);
    /// let payment = client.post(sandbox.url("/payments")).operation("order-7").body(r#"{"amount":450}"#);
    /// assert_eq!(payment.send().await.unwrap_err().effect(), Effect::Unknown); // the answer was lost
    /// let response = client.resume("order-7").send().await?;
    /// assert!(response.is_replay());
    /// # assert_eq!(sandbox.executions(), 1);
    /// # }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error`]: why there is no final answer, and whether it took effect.
    ///
    /// # Effect
    ///
    /// As of [`RequestBuilder::send`](crate::RequestBuilder::send), over all
    /// attempts of all runs. An id that is not on record is `Unknown`: it may be
    /// in another journal.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub async fn send(self) -> Result<Response, Error> {
        let inner: &Arc<Inner> = &self.client.inner;
        let Some(journal) = &inner.journal else {
            return Err(Error::request(NO_JOURNAL, Effect::Unknown, None));
        };
        let policy = limited(&inner.policy, self.attempt_timeout, self.deadline);
        let problem = self.credentials.problem.or_else(|| match (self.attempt_timeout, self.deadline) {
            (Some(timeout), _) if timeout.is_zero() => Some("attempt_timeout is zero, in which nothing can be sent"),
            (_, Some(deadline)) if deadline < SHORTEST_ATTEMPT => Some(SHORT_DEADLINE),
            _ => None,
        });
        if let Some(problem) = problem {
            let error = Error::request(problem, Effect::Unknown, None);
            return Err(with_the_effect_on_record(error, Some(&**journal), Some(self.id)).await);
        }
        let credentials = self.credentials.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let desk = Desk::new(Arc::clone(inner), Arc::clone(journal), policy).watched(self.on_event);
        Box::pin(desk.resume(self.id, self.account, credentials)).await
    }
}

impl fmt::Debug for Resume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resume").field("id", &self.id).finish_non_exhaustive()
    }
}

/// All unfinished operations, to be gone on with; see [`Client::resume_all`].
///
/// ```no_run
/// # async fn after_a_restart(client: oncekey::Client, token: &str) -> Result<(), Box<dyn std::error::Error>> {
/// let mut ends = client.resume_all().bearer_auth(token).concurrency(4).start().await?;
/// while let Some((id, end)) = ends.next().await {
///     match end {
///         Ok(response) => println!("{id}: carried out, {}", response.status()),
///         Err(error) => println!("{id}: {error}"),
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is resumed until it is started"]
pub struct ResumeAll {
    client: Client,
    credentials: Credentials,
    concurrency: usize,
}

impl ResumeAll {
    pub(super) fn new(client: Client) -> Self {
        Self { client, credentials: Credentials::default(), concurrency: 8 }
    }

    /// `Authorization: Bearer` for all of them, never printed and never stored.
    ///
    /// ```
    /// use oncekey::{Client, Retry};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # #[cfg(feature = "sandbox")] {
    /// # use oncekey::sandbox::{Fault, Sandbox};
    /// # let sandbox = Sandbox::builder().require_authorization("Bearer stale").start().await?;
    /// # let builder = Client::builder().retry(Retry::default().max_attempts(1));
    /// # let client = builder.journal(oncekey::journal::Memory::new()).build()?;
    /// # sandbox.fail_next([Fault::answer_lost()]);
    /// # let payment = client.post(sandbox.url("/payments")).operation("order-7").body(r#"{"amount":450}"#);
    /// # let _ = payment.bearer_auth("stale").send().await;
    /// # sandbox.set_authorization("Bearer fresh");
    /// # while client.unfinished().await?[0].resume_at().is_some_and(|at| at > std::time::SystemTime::now()) {
    /// #     tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    /// # }
    /// // The token that it was sent with is not on record.
    /// let mut ends = client.resume_all().bearer_auth("fresh").start().await?;
    /// let (id, end) = ends.next().await.unwrap();
    /// assert_eq!((id.as_str(), end?.status().as_u16()), ("order-7", 201));
    /// # }
    /// # Ok(())
    /// # }
    /// ```
    pub fn bearer_auth<T: fmt::Display>(mut self, token: T) -> Self {
        self.credentials.authorization(format!("Bearer {token}"));
        self
    }

    /// Another credential for all of them; see [`Resume::header`].
    ///
    /// ```
    /// use oncekey::{Client, ErrorKind, IdempotencyKey, Retry};
    /// # use std::time::{Duration, SystemTime};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let retry = Retry::default().max_attempts(1).base_delay(Duration::from_millis(1));
    /// # let client = Client::builder().retry(retry).journal(oncekey::journal::Memory::new()).build()?;
    /// # let key = IdempotencyKey::parse("3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506")?;
    /// # let _ = client.post("http://127.0.0.1:1/payments").operation("order-7").idempotency_key(key).send().await;
    /// # while client.unfinished().await?[0].resume_at().is_some_and(|at| at > SystemTime::now()) {
    /// #     tokio::time::sleep(Duration::from_millis(1)).await;
    /// # }
    /// let mut ends = client.resume_all().header("x-merchant", "shop_1").start().await?;
    /// let (_, end) = ends.next().await.unwrap();
    /// assert_eq!(end.unwrap_err().kind(), ErrorKind::Request); // no credential: it is on record
    ///
    /// let mut ends = client.resume_all().header("cookie", "session=fresh").start().await?;
    /// let (_, end) = ends.next().await.unwrap();
    /// assert_eq!(end.unwrap_err().kind(), ErrorKind::Exhausted); // it was tried; nobody listens there
    /// # Ok(())
    /// # }
    /// ```
    pub fn header<K, V>(mut self, name: K, value: V) -> Self
    where
        HeaderName: TryFrom<K>,
        HeaderValue: TryFrom<V>,
    {
        self.credentials.header(name, value);
        self
    }

    /// How many go on at a time; at least 1. Default: 8.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use oncekey::sandbox::{Fault, Sandbox}; use std::time::Duration;
    /// # let sandbox = Sandbox::start().await?;
    /// # let client = oncekey::Client::builder().http(|http| http.no_proxy()).journal(oncekey::journal::Memory::new()).retry(oncekey::Retry::default().max_attempts(1).base_delay(Duration::ZERO)).build()?;
    /// sandbox.fail_next([Fault::answer_lost(), Fault::answer_lost()]);
    /// for order in ["order-7", "order-8"] {
    ///     client.post(sandbox.url("/payments")).operation(order).send().await.unwrap_err();
    /// }
    /// let mut ends = client.resume_all().concurrency(1).start().await?; // one after the other, the oldest first
    /// assert_eq!(ends.next().await.unwrap().0.as_str(), "order-7");
    /// assert_eq!(ends.next().await.unwrap().0.as_str(), "order-8");
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sandbox"))]
    /// # fn main() {}
    /// ```
    pub fn concurrency(mut self, most: usize) -> Self {
        self.concurrency = most.max(1);
        self
    }

    /// Lists those that are due, and gives the stream of their ends.
    ///
    /// ```
    /// use oncekey::{Client, IdempotencyKey, Retry};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let builder = Client::builder().retry(Retry::default().max_attempts(1)).entropy_seed(7);
    /// # let client = builder.journal(oncekey::journal::Memory::new()).build()?;
    /// // A key that may have been sent before, and nobody listens: in doubt, and due in a while.
    /// let key = IdempotencyKey::parse("3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506")?;
    /// let _ = client.post("http://127.0.0.1:1/payments").operation("order-7").idempotency_key(key).send().await;
    /// let mut ends = client.resume_all().start().await?;
    /// assert_eq!(client.unfinished().await?.len(), 1);
    /// assert!(ends.next().await.is_none()); // not before its `resume_at`
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`JournalError`], as of [`Client::unfinished`].
    pub async fn start(self) -> Result<Resuming, JournalError> {
        let now = runtime::now().system_time();
        let unfinished = self.client.unfinished().await?;
        let is_due = |record: &&OperationRecord| record.resume_at().is_none_or(|at| at <= now);
        let left = unfinished.iter().filter(is_due).map(|record| record.id().clone()).collect();
        Ok(Resuming { all: self, left, running: JoinSet::new() })
    }
}

impl fmt::Debug for ResumeAll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResumeAll").field("concurrency", &self.concurrency).finish_non_exhaustive()
    }
}

type End = (OperationId, Result<Response, Error>);

/// The ends of operations that are resumed, as they come. Dropping it leaves
/// the rest resumable.
#[must_use = "nothing is resumed until the stream is asked"]
pub struct Resuming {
    all: ResumeAll,
    left: VecDeque<OperationId>,
    running: JoinSet<End>,
}

impl Resuming {
    /// Those that were not begun yet.
    #[cfg(feature = "blocking")]
    pub(crate) fn left(&self) -> impl Iterator<Item = &OperationId> {
        self.left.iter()
    }

    /// The next end; `None` when all have ended.
    ///
    /// ```
    /// use oncekey::{Client, Effect, IdempotencyKey, Retry};
    /// # use std::time::{Duration, SystemTime};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let retry = Retry::default().max_attempts(1).base_delay(Duration::from_millis(1));
    /// # let client = Client::builder().retry(retry).journal(oncekey::journal::Memory::new()).build()?;
    /// # let key = IdempotencyKey::parse("3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506")?;
    /// # let _ = client.post("http://127.0.0.1:1/payments").operation("order-7").idempotency_key(key).send().await;
    /// # while client.unfinished().await?[0].resume_at().is_some_and(|at| at > SystemTime::now()) {
    /// #     tokio::time::sleep(Duration::from_millis(1)).await;
    /// # }
    /// let mut ends = client.resume_all().start().await?;
    /// let (id, end) = ends.next().await.unwrap();
    /// assert_eq!((id.as_str(), end.unwrap_err().effect()), ("order-7", Effect::Unknown)); // still nobody listens
    /// assert!(ends.next().await.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub async fn next(&mut self) -> Option<(OperationId, Result<Response, Error>)> {
        std::future::poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<End>> {
        while self.running.len() < self.all.concurrency
            && let Some(id) = self.left.pop_front()
        {
            let mut resume = self.all.client.resume(&id);
            resume.credentials = self.all.credentials.clone();
            self.running.spawn(async move { (id, resume.send().await) });
        }
        match std::task::ready!(self.running.poll_join_next(context)) {
            Some(Ok(end)) => Poll::Ready(Some(end)),
            // A panic of the caller's own hook goes on to the caller.
            Some(Err(error)) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // Without these the runtime is going down.
            Some(Err(_)) | None => Poll::Ready(None),
        }
    }
}

impl Stream for Resuming {
    type Item = (OperationId, Result<Response, Error>);

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll(context)
    }
}

impl fmt::Debug for Resuming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resuming")
            .field("left", &self.left.len())
            .field("running", &self.running.len())
            .finish_non_exhaustive()
    }
}
