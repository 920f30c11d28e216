use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::client::Client;
use super::worker::{INSIDE, Worker, is_inside_a_runtime};
use crate::authorize::Authorize;
use crate::error::BuildError;
use crate::event::Event;
#[cfg(feature = "journal")]
use crate::journal::Journal;
use crate::policy::{Poll, Retry};
use crate::profile::{Answer, Judgement, Profile};
use crate::reconcile::Reconcile;

/// Makes a blocking [`Client`]. Settings and defaults are those of
/// [`oncekey::ClientBuilder`](crate::ClientBuilder), from which it can be made.
///
/// ```
/// use oncekey::{Retry, blocking};
///
/// fn shared() -> oncekey::ClientBuilder {
///     oncekey::Client::builder().retry(Retry::default().max_attempts(3))
/// }
///
/// let client = blocking::ClientBuilder::from(shared()).build()?;
/// # Ok::<(), oncekey::BuildError>(())
/// ```
#[derive(Default)]
#[must_use = "a client is made by `build`"]
pub struct ClientBuilder {
    inner: crate::ClientBuilder,
}

impl ClientBuilder {
    /// How the API does idempotency. Default: [`Profile::generic`].
    ///
    /// ```
    /// use oncekey::{ErrorKind, IdempotencyKey, Profile, blocking::Client};
    ///
    /// let client = Client::builder().profile(Profile::verifika()).build()?; // whose keys are UUIDs
    /// let key = IdempotencyKey::parse("order-7")?;
    /// let error = client.post("https://api.verifika.tech/v1/incomes").idempotency_key(key).send().unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Request); // and nothing was sent
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn profile(self, profile: Profile) -> Self {
        self.inner.profile(profile).into()
    }

    /// Sets up the HTTP client, the async one of reqwest. What the promises rest
    /// on is set after it, and wins: see
    /// [`oncekey::ClientBuilder::http`](crate::ClientBuilder::http).
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// use oncekey::blocking::Client;
    ///
    /// let client = Client::builder().http(|http| http.user_agent("my-bot/1.0")).build()?;
    /// client.post(sandbox.url("/v1/payments")).body("{}").send()?;
    /// assert_eq!(sandbox.requests()[0].headers()["user-agent"], "my-bot/1.0");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn http<F>(self, setup: F) -> Self
    where
        F: FnOnce(reqwest::ClientBuilder) -> reqwest::ClientBuilder + Send + 'static,
    {
        self.inner.http(setup).into()
    }

    /// How failures are tried again. Default: 12 attempts; delays from 0.5 s,
    /// doubled, up to 30 s, full jitter.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oncekey::{Effect, Retry, blocking::Client};
    ///
    /// let retry = Retry::default().max_attempts(3).base_delay(Duration::from_millis(5));
    /// let client = Client::builder().retry(retry).build()?;
    /// let error = client.post("http://127.0.0.1:1/payments").send().unwrap_err(); // nobody listens there
    /// assert_eq!((error.attempts().len(), error.effect()), (3, Effect::NotApplied));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn retry(self, retry: Retry) -> Self {
        self.inner.retry(retry).into()
    }

    /// How an operation that is still running is asked for again. Default: from
    /// 1 s, times 1.5, up to 5 s, for 2 minutes.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// use std::time::Duration;
    /// use oncekey::blocking::Client;
    /// use oncekey::{Poll, sandbox::Fault};
    ///
    /// let client = Client::builder().poll(Poll::default().interval(Duration::from_millis(20))).build()?;
    /// sandbox.fail_next([Fault::in_progress(), Fault::in_progress()]);
    /// let response = client.post(sandbox.url("/v1/payments")).body("{}").send()?;
    /// assert_eq!((response.status().as_u16(), response.attempts().len()), (201, 3));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn poll(self, poll: Poll) -> Self {
        self.inner.poll(poll).into()
    }

    /// How long one attempt may take, `authorize` hook and body included.
    /// Default: 60 s.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// use std::time::Duration;
    /// use oncekey::blocking::Client;
    /// use oncekey::{Effect, Failure, Retry, sandbox::Fault};
    ///
    /// let once = Retry::default().max_attempts(1);
    /// let client = Client::builder().retry(once).attempt_timeout(Duration::from_millis(200)).build()?;
    /// sandbox.fail_next(Fault::stall_after_executing());
    /// let error = client.post(sandbox.url("/v1/payments")).body("{}").send().unwrap_err();
    /// assert_eq!(error.attempts()[0].failure(), Some(Failure::Timeout));
    /// assert_eq!(error.effect(), Effect::Unknown);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn attempt_timeout(self, timeout: Duration) -> Self {
        self.inner.attempt_timeout(timeout).into()
    }

    /// How long connecting may take; at most half the attempt timeout. Default:
    /// 10 s, or that half if it is less.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oncekey::blocking::Client;
    ///
    /// let builder = || Client::builder().attempt_timeout(Duration::from_secs(20));
    /// assert!(builder().connect_timeout(Duration::from_secs(5)).build().is_ok());
    /// assert!(builder().connect_timeout(Duration::from_secs(15)).build().is_err()); // over half of it
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn connect_timeout(self, timeout: Duration) -> Self {
        self.inner.connect_timeout(timeout).into()
    }

    /// Tells what happens, on the client's own thread: see [`Event`](crate::Event).
    /// A blocking call in the hook fails.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use oncekey::{Retry, blocking::Client};
    ///
    /// let (sender, events) = mpsc::channel();
    /// let client = Client::builder()
    ///     .retry(Retry::default().max_attempts(1))
    ///     .on_event(move |event| { let _ = sender.send(event.to_string()); })
    ///     .build()?;
    /// client.get("http://127.0.0.1:1/payments/pay_1").send().unwrap_err();
    /// assert_eq!(events.recv()?, "GET 127.0.0.1: attempt 1 started (first)");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_event(self, hook: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.inner.on_event(hook).into()
    }

    /// How long an operation may take in one run, waits included. Default: 5 minutes.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oncekey::{ErrorKind, blocking::Client};
    ///
    /// let client = Client::builder().deadline(Duration::from_millis(400)).build()?;
    /// let started = std::time::Instant::now();
    /// let error = client.post("http://127.0.0.1:1/payments").send().unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Exhausted);
    /// assert!(started.elapsed() < Duration::from_secs(10)); // the default is 5 minutes
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn deadline(self, deadline: Duration) -> Self {
        self.inner.deadline(deadline).into()
    }

    /// A shorter life for keys than the profile gives them. Default: the profile's.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oncekey::{Profile, blocking::Client};
    ///
    /// let hours = |hours: u64| Duration::from_secs(hours * 3600);
    /// let builder = || Client::builder().profile(Profile::verifika()); // 24 hours
    /// assert!(builder().key_lifetime(hours(6)).build().is_ok());
    /// assert!(builder().key_lifetime(hours(48)).build().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn key_lifetime(self, lifetime: Duration) -> Self {
        self.inner.key_lifetime(lifetime).into()
    }

    /// The longest body, decoded, that is read. Default: 8 MiB.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// use oncekey::blocking::Client;
    /// use oncekey::{Effect, ErrorKind};
    ///
    /// let client = Client::builder().max_response_bytes(16).build()?;
    /// let error = client.post(sandbox.url("/v1/payments")).body("{}").send().unwrap_err();
    /// assert_eq!((error.kind(), error.effect()), (ErrorKind::TooLarge, Effect::Applied));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn max_response_bytes(self, bytes: usize) -> Self {
        self.inner.max_response_bytes(bytes).into()
    }

    /// The hook that brings each attempt's credentials. It runs on the client's
    /// own thread, inside its runtime: it may wait by `await` alone, and a
    /// blocking call in it fails.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// use oncekey::blocking::Client;
    /// use oncekey::Parts;
    ///
    /// # sandbox.set_authorization("Bearer fresh");
    /// let client = Client::builder()
    ///     .authorize(|parts: &mut Parts<'_>| {
    ///         let token = if parts.previous_status().is_none() { "stale" } else { "fresh" };
    ///         parts.set_header("authorization", format!("Bearer {token}")).map_err(Into::into)
    ///     })
    ///     .build()?;
    /// let response = client.post(sandbox.url("/v1/payments")).body("{}").send()?;
    /// assert_eq!(response.attempts()[0].status().map(|status| status.as_u16()), Some(401));
    /// assert_eq!(response.status(), 201);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn authorize(self, hook: impl Authorize + 'static) -> Self {
        self.inner.authorize(hook).into()
    }

    /// Reads a complete 2xx, in the place of the profile's own judge: see
    /// [`oncekey::ClientBuilder::judge`](crate::ClientBuilder::judge).
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// use oncekey::blocking::Client;
    /// use oncekey::{ErrorKind, profile::{Answer, Judgement}, sandbox::Fault};
    ///
    /// let client = Client::builder()
    ///     .judge(|answer: &Answer<'_>| match answer.body() {
    ///         br#"{"status":"declined"}"# => Judgement::Refused,
    ///         _ => Judgement::Final,
    ///     })
    ///     .build()?;
    /// sandbox.fail_next(Fault::status(200).json(r#"{"status":"declined"}"#));
    /// let error = client.post(sandbox.url("/v1/payments")).body("{}").send().unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Refused);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn judge(self, judge: impl Fn(&Answer<'_>) -> Judgement + Send + Sync + 'static) -> Self {
        self.inner.judge(judge).into()
    }

    /// Asks after an operation that is still running at its status resource: see
    /// [`oncekey::ClientBuilder::poll_with`](crate::ClientBuilder::poll_with).
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// use oncekey::blocking::Client;
    /// use oncekey::{profile::Answer, sandbox::Fault};
    ///
    /// let client = Client::builder()
    ///     .poll_with(|answer: &Answer<'_>| Some(answer.headers().get("location")?.to_str().ok()?.to_owned()))
    /// #   .poll(oncekey::Poll::default().interval(std::time::Duration::from_millis(20)))
    ///     .build()?;
    /// sandbox.fail_next(Fault::status(202).header("location", "/v1/payments/pay_1").executing());
    /// let response = client.post(sandbox.url("/v1/payments")).body("{}").send()?;
    /// assert_eq!(response.status(), 200);
    /// assert_eq!(sandbox.requests()[1].path(), "/v1/payments/pay_1");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn poll_with<U: ToString>(self, find: impl Fn(&Answer<'_>) -> Option<U> + Send + Sync + 'static) -> Self {
        self.inner.poll_with(find).into()
    }

    /// Where an original is fetched: see
    /// [`oncekey::ClientBuilder::recover_with`](crate::ClientBuilder::recover_with).
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// use oncekey::blocking::Client;
    /// use oncekey::{Profile, sandbox::Fault};
    ///
    /// let client = Client::builder()
    ///     .profile(Profile::gocardless())
    ///     .recover_with(|id| Some(format!("/payments/{id}")))
    ///     .build()?;
    /// # let body = r#"{"error":{"errors":[{"reason":"idempotent_creation_conflict","links":{"conflicting_resource_id":"PM1"}}]}}"#;
    /// # sandbox.fail_next([Fault::answer_lost(), Fault::status(409).json(body)]);
    /// // Its answer is lost, and to the next attempt the server says that there is a PM1.
    /// let response = client.post(sandbox.url("/payments")).body("{}").send()?;
    /// assert_eq!(response.status(), 200);
    /// assert_eq!(sandbox.requests()[2].path(), "/payments/PM1");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn recover_with<U: ToString>(self, find: impl Fn(&str) -> Option<U> + Send + Sync + 'static) -> Self {
        self.inner.recover_with(find).into()
    }

    /// Looks up what is unknown; a closure without `await` will do. It runs on the
    /// client's own thread, as the `authorize` hook does.
    ///
    /// ```
    /// # #[cfg(feature = "sandbox")] {
    /// # let servers = tokio::runtime::Runtime::new()?;
    /// # let sandbox = servers.block_on(oncekey::sandbox::Sandbox::start())?;
    /// use oncekey::blocking::Client;
    /// use oncekey::{Doubtful, Effect, Found, sandbox::Fault};
    ///
    /// let client = Client::builder()
    ///     .reconcile_with(|doubtful: &Doubtful<'_>| {
    ///         let paid = doubtful.body() == b"order-7"; // ask the provider instead
    ///         Ok(if paid { Found::Applied("pay_7".into()) } else { Found::Unknown })
    ///     })
    ///     .build()?;
    /// sandbox.fail_next(Fault::replayed(500)); // stored under the key: asking again is of no use
    /// let error = client.post(sandbox.url("/v1/payments")).body("order-7").send().unwrap_err();
    /// assert_eq!(error.effect(), Effect::Applied);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reconcile_with(self, hook: impl Reconcile + 'static) -> Self {
        self.inner.reconcile_with(hook).into()
    }

    /// Makes the delays repeatable, for tests. Keys stay random.
    ///
    /// ```
    /// # use std::{sync::mpsc, time::Duration};
    /// use oncekey::{BuildError, Event, blocking::Client};
    ///
    /// fn wait(seed: u64) -> Result<Duration, BuildError> {
    ///     let (sender, waits) = mpsc::channel();
    ///     let client = Client::builder().entropy_seed(seed).on_event(move |event| {
    ///         if let Event::Waiting(wait) = event { let _ = sender.send(wait.duration()); }
    ///     });
    /// #   let client = client.retry(oncekey::Retry::default().max_attempts(2).base_delay(Duration::from_millis(200)));
    ///     client.build()?.get("http://127.0.0.1:1/").send().unwrap_err(); // nobody listens there
    ///     Ok(waits.iter().next().unwrap_or_default())
    /// }
    /// # assert!(wait(7)? > Duration::from_millis(40));
    /// // What is told is less than what was drawn by what has passed of it.
    /// assert!(wait(7)?.abs_diff(wait(7)?) < Duration::from_millis(20));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn entropy_seed(self, seed: u64) -> Self {
        self.inner.entropy_seed(seed).into()
    }

    /// Another schedule for the delays after failures: see
    /// [`oncekey::ClientBuilder::backoff`](crate::ClientBuilder::backoff).
    ///
    /// ```
    /// use oncekey::blocking::Client;
    ///
    /// let client = Client::builder().backoff(|| backoff::backoff::Stop {}).build()?; // never again
    /// let error = client.post("http://127.0.0.1:1/payments").send().unwrap_err();
    /// assert_eq!(error.attempts().len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "backoff")]
    #[cfg_attr(docsrs, doc(cfg(feature = "backoff")))]
    pub fn backoff<B>(self, make: impl Fn() -> B + Send + Sync + 'static) -> Self
    where
        B: backoff::backoff::Backoff + Send + 'static,
    {
        self.inner.backoff(make).into()
    }

    /// Where operations are written down before they are sent, so that they
    /// outlive this process. See [`journal`](crate::journal).
    ///
    /// ```
    /// use oncekey::{Effect, Retry, blocking::Client, journal::Memory};
    ///
    /// let client = Client::builder().journal(Memory::new()).retry(Retry::default().max_attempts(1)).build()?;
    /// client.post("http://127.0.0.1:1/payments").operation("order-7").send().unwrap_err();
    /// let record = client.lookup("order-7")?.expect("it was written down before it was sent");
    /// assert_eq!((record.attempts(), record.effect()), (1, Effect::NotApplied));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "journal")]
    #[cfg_attr(docsrs, doc(cfg(feature = "journal")))]
    pub fn journal(self, journal: impl Journal + 'static) -> Self {
        self.inner.journal(journal).into()
    }

    /// The account at the provider that this client acts for. Its lists and
    /// resumes see the operations of this account alone. Default: none.
    ///
    /// ```
    /// use oncekey::{Retry, blocking::Client, journal::Memory};
    ///
    /// let journal = Memory::new();
    /// let of = |account: &str| {
    ///     let builder = Client::builder().journal(journal.clone()).retry(Retry::default().max_attempts(1));
    ///     builder.account(account).build()
    /// };
    /// let (ours, theirs) = (of("acct_1")?, of("acct_2")?);
    /// ours.post("http://127.0.0.1:1/payments").operation("order-7").send().unwrap_err();
    /// assert!(ours.lookup("order-7")?.is_some());
    /// assert!(theirs.lookup("order-7")?.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "journal")]
    #[cfg_attr(docsrs, doc(cfg(feature = "journal")))]
    pub fn account(self, account: impl Into<Box<str>>) -> Self {
        self.inner.account(account).into()
    }

    /// Checks all of it, and starts the client's thread.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oncekey::blocking::Client;
    ///
    /// let error = Client::builder().deadline(Duration::from_millis(10)).build().unwrap_err();
    /// assert_eq!(error.to_string(), "deadline is under 50 ms, in which no attempt is started");
    /// let runtime = tokio::runtime::Runtime::new()?;
    /// assert!(runtime.block_on(async { Client::builder().build() }).is_err()); // where it would block others
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`BuildError`], naming the first setting that cannot be used and why; or
    /// that this is inside a runtime, or that no thread can be started.
    pub fn build(self) -> Result<Client, BuildError> {
        if is_inside_a_runtime() {
            return Err(BuildError::new(INSIDE));
        }
        let inner = self.inner.build()?;
        let worker = Worker::start().map_err(BuildError::thread)?;
        Ok(Client { inner, worker: Arc::new(worker) })
    }
}

impl From<crate::ClientBuilder> for ClientBuilder {
    fn from(inner: crate::ClientBuilder) -> Self {
        Self { inner }
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
