use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[cfg(feature = "backoff")]
use super::MakeBackoff;
use super::{Client, Inner, PollWith, RecoverWith};
use crate::authorize::{AnyAuthorize, Authorize};
use crate::draft::SHORT_DEADLINE;
use crate::engine::SHORTEST_ATTEMPT;
use crate::error::BuildError;
use crate::event::{Event, Hook};
#[cfg(feature = "journal")]
use crate::journal::Journal;
use crate::policy::{Poll, Retry, limits};
use crate::profile::{Answer, Judgement, Profile};
use crate::reconcile::{AnyReconcile, Reconcile};
use crate::runtime::Dice;

type Setup = Box<dyn FnOnce(reqwest::ClientBuilder) -> reqwest::ClientBuilder + Send>;

/// Makes a [`Client`].
///
/// | setting | default |
/// |---|---|
/// | [`profile`](Self::profile) | [`Profile::generic`] |
/// | [`retry`](Self::retry) | 12 attempts; delays from 0.5 s, doubled, up to 30 s, full jitter |
/// | [`poll`](Self::poll) | from 1 s, times 1.5, up to 5 s, for 2 minutes |
/// | [`attempt_timeout`](Self::attempt_timeout) | 60 s |
/// | [`connect_timeout`](Self::connect_timeout) | 10 s, or half the attempt timeout if that is less |
/// | [`deadline`](Self::deadline) | 5 minutes |
/// | [`key_lifetime`](Self::key_lifetime) | the profile's |
/// | [`max_response_bytes`](Self::max_response_bytes) | 8 MiB |
/// | [`judge`](Self::judge) | the profile's |
/// | [`entropy_seed`](Self::entropy_seed) | from the operating system |
/// | all others | none |
#[derive(Default)]
#[must_use = "a client is made by `build`"]
pub struct ClientBuilder {
    profile: Profile,
    http: Vec<Setup>,
    retry: Retry,
    poll: Poll,
    attempt_timeout: Option<Duration>,
    connect_timeout: Option<Duration>,
    deadline: Option<Duration>,
    key_lifetime: Option<Duration>,
    max_response_bytes: Option<usize>,
    authorize: Option<Box<dyn AnyAuthorize>>,
    on_event: Option<Hook>,
    dice: Dice,
    poll_with: Option<PollWith>,
    recover_with: Option<RecoverWith>,
    reconcile_with: Option<Box<dyn AnyReconcile>>,
    #[cfg(feature = "backoff")]
    backoff: Option<MakeBackoff>,
    #[cfg(feature = "journal")]
    journal: Option<Arc<dyn Journal>>,
    #[cfg(feature = "journal")]
    account: Box<str>,
}

/// Longer than the 30 s after which servers reclaim a lock whose holder they
/// think dead, so that a retry does not race the reclaim.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(60);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const DEADLINE: Duration = Duration::from_secs(300);
const MAX_RESPONSE_BYTES: usize = 8 * 1024 * 1024;

impl ClientBuilder {
    /// How the API does idempotency.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use oncekey::{Client, ErrorKind, IdempotencyKey, Profile};
    ///
    /// let client = Client::builder().profile(Profile::verifika()).build()?; // whose keys are UUIDs
    /// let key = IdempotencyKey::parse("order-7")?;
    /// let request = client.post("https://api.verifika.tech/v1/incomes").idempotency_key(key);
    /// assert_eq!(request.send().await.unwrap_err().kind(), ErrorKind::Request); // and nothing was sent
    /// # Ok(())
    /// # }
    /// ```
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Sets up the HTTP client: proxies, certificates, a user agent. What the
    /// promises rest on is set after it, and wins: no redirects, none of
    /// reqwest's own retries, the connect timeout, HTTP/1.1 without the `http2`
    /// feature, no compression without `gzip`.
    ///
    /// A timeout of reqwest's own, if set here, can only end an attempt early.
    ///
    /// What `default_headers` brings cannot be seen here: neither the key's
    /// header nor `Accept`, `Range` or `If-None-Match` belong there. Nor do
    /// credentials: they would go to each host that is asked, a status resource's
    /// on another origin too.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # #[cfg(feature = "sandbox")] {
    /// # let sandbox = oncekey::sandbox::Sandbox::start().await?;
    /// let client = oncekey::Client::builder().http(|http| http.no_proxy().user_agent("my-bot/1.0")).build()?;
    /// client.post(sandbox.url("/payments")).send().await?;
    /// assert_eq!(sandbox.requests()[0].headers()["user-agent"], "my-bot/1.0");
    /// # }
    /// # Ok(())
    /// # }
    /// ```
    pub fn http<F>(mut self, setup: F) -> Self
    where
        F: FnOnce(reqwest::ClientBuilder) -> reqwest::ClientBuilder + Send + 'static,
    {
        self.http.push(Box::new(setup));
        self
    }

    /// How failures are tried again.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use oncekey::{Client, Effect, Retry};
    ///
    /// let retry = Retry::default().max_attempts(3).base_delay(Duration::from_millis(5));
    /// let client = Client::builder().retry(retry).build()?;
    /// let error = client.post("http://127.0.0.1:1/payments").send().await.unwrap_err(); // nobody listens there
    /// assert_eq!((error.attempts().len(), error.effect()), (3, Effect::NotApplied));
    /// # Ok(())
    /// # }
    /// ```
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// How an operation that is still running is asked for again.
    ///
    /// ```
    /// let client = oncekey::Client::builder().poll(oncekey::Poll::default().limit(std::time::Duration::from_secs(300))).build()?;
    /// # Ok::<(), oncekey::BuildError>(())
    /// ```
    pub fn poll(mut self, poll: Poll) -> Self {
        self.poll = poll;
        self
    }

    /// How long one attempt may take, `authorize` hook and body included.
    ///
    /// ```
    /// let client = oncekey::Client::builder().attempt_timeout(std::time::Duration::from_secs(45)).build()?;
    /// # Ok::<(), oncekey::BuildError>(())
    /// ```
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt_timeout = Some(timeout);
        self
    }

    /// How long connecting may take; at most half the attempt timeout, so that
    /// a hang while connecting stays a proof that nothing was sent.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oncekey::Client;
    ///
    /// let builder = || Client::builder().attempt_timeout(Duration::from_secs(20));
    /// assert!(builder().connect_timeout(Duration::from_secs(5)).build().is_ok());
    /// assert!(builder().connect_timeout(Duration::from_secs(15)).build().is_err()); // over half of it
    /// ```
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = Some(timeout);
        self
    }

    /// How long an operation may take in one run, waits included.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use oncekey::{Client, ErrorKind};
    ///
    /// let client = Client::builder().deadline(std::time::Duration::from_millis(400)).build()?;
    /// let error = client.post("http://127.0.0.1:1/payments").send().await.unwrap_err(); // nobody listens there
    /// assert_eq!(error.kind(), ErrorKind::Exhausted); // before the twelve attempts were
    /// # Ok(())
    /// # }
    /// ```
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// A shorter life for keys than the profile gives them, where the API
    /// forgets them sooner.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oncekey::{Client, Profile};
    ///
    /// let builder = || Client::builder().profile(Profile::verifika()); // 24 hours
    /// assert!(builder().key_lifetime(Duration::from_secs(6 * 3600)).build().is_ok());
    /// assert!(builder().key_lifetime(Duration::from_secs(48 * 3600)).build().is_err());
    /// ```
    pub fn key_lifetime(mut self, lifetime: Duration) -> Self {
        self.key_lifetime = Some(lifetime);
        self
    }

    /// The longest body, decoded, that is read.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # #[cfg(feature = "sandbox")] {
    /// # let sandbox = oncekey::sandbox::Sandbox::start().await?;
    /// use oncekey::{Client, Effect, ErrorKind};
    ///
    /// let client = Client::builder().max_response_bytes(16).build()?;
    /// let error = client.post(sandbox.url("/payments")).send().await.unwrap_err();
    /// assert_eq!((error.kind(), error.effect()), (ErrorKind::TooLarge, Effect::Applied));
    /// # }
    /// # Ok(())
    /// # }
    /// ```
    pub fn max_response_bytes(mut self, bytes: usize) -> Self {
        self.max_response_bytes = Some(bytes);
        self
    }

    /// The hook that brings each attempt's credentials.
    ///
    /// ```
    /// # use oncekey::{Client, Effect, ErrorKind, Parts};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # fn token() -> Result<String, std::io::Error> { Err(std::io::Error::other("the vault is sealed")) }
    /// let client = Client::builder()
    ///     .authorize(|parts: &mut Parts<'_>| {
    ///         parts.set_header("authorization", format!("Bearer {}", token()?))?;
    ///         Ok(())
    ///     })
    ///     .build()?;
    /// # let url = "http://127.0.0.1:1/payments";
    /// let error = client.post(url).send().await.expect_err("the vault is sealed");
    /// assert_eq!((error.kind(), error.effect()), (ErrorKind::Authorize, Effect::NotApplied));
    /// # Ok(())
    /// # }
    /// ```
    pub fn authorize(mut self, hook: impl Authorize + 'static) -> Self {
        self.authorize = Some(Box::new(hook));
        self
    }

    /// Tells what happens to each operation: see [`Event`]. It is called where
    /// the operation runs, which goes on when it returns, so it should not wait.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # #[cfg(feature = "sandbox")] {
    /// # let sandbox = oncekey::sandbox::Sandbox::start().await?;
    /// let (told, heard) = std::sync::mpsc::channel();
    /// let client = oncekey::Client::builder().on_event(move |event| { let _ = told.send(event.to_string()); }).build()?;
    /// client.get(sandbox.url("/payments/pay_1")).send().await?;
    /// assert_eq!(heard.recv()?, "GET 127.0.0.1: attempt 1 started (first)");
    /// # }
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_event(mut self, hook: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.on_event = Some(Arc::new(hook));
        self
    }

    /// Reads a complete 2xx: is it final, pending, refused, or unclear? It
    /// takes the place of the profile's own judge.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # #[cfg(feature = "sandbox")] {
    /// # let sandbox = oncekey::sandbox::Sandbox::start().await?;
    /// use oncekey::{Client, ErrorKind, profile::{Answer, Judgement}, sandbox::Fault};
    ///
    /// let client = Client::builder()
    ///     .judge(|answer: &Answer<'_>| match answer.body() {
    ///         br#"{"status":"declined"}"# => Judgement::Refused,
    ///         _ => Judgement::Final,
    ///     })
    ///     .build()?;
    /// sandbox.fail_next(Fault::status(200).json(r#"{"status":"declined"}"#));
    /// let error = client.post(sandbox.url("/payments")).send().await.unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Refused);
    /// # }
    /// # Ok(())
    /// # }
    /// ```
    pub fn judge(mut self, judge: impl Fn(&Answer<'_>) -> Judgement + Send + Sync + 'static) -> Self {
        self.profile = self.profile.with_judge(Arc::new(judge));
        self
    }

    /// Asks after an operation that is still running at its status resource, with
    /// GET, instead of sending it again: given a 202 or what the `judge` calls
    /// pending, `find` names that resource's URL, absolute or relative to the
    /// request's. It is asked of each complete 2xx of the resource too, where
    /// `None` leaves the reading to the `judge`, and any URL, the resource's own
    /// too, means that it is still running.
    ///
    /// Polls keep to [`Poll`]. They carry neither key nor body, and to another
    /// origin no header but `Accept`, `Accept-Language` and `User-Agent`; to its
    /// own the `authorize` hook runs before each. A 404 of the resource is in
    /// doubt, not a refusal of the operation. A `judge` that calls its answer
    /// refused settles the operation as not applied. With a journal a resumed
    /// operation goes on polling.
    ///
    /// ```
    /// use oncekey::Client;
    /// use oncekey::profile::Answer;
    ///
    /// let client = Client::builder()
    ///     .poll_with(|answer: &Answer<'_>| Some(answer.headers().get("location")?.to_str().ok()?.to_owned()))
    ///     .build()?;
    /// # Ok::<(), oncekey::BuildError>(())
    /// ```
    pub fn poll_with<U: ToString>(mut self, find: impl Fn(&Answer<'_>) -> Option<U> + Send + Sync + 'static) -> Self {
        self.poll_with = Some(Box::new(move |answer| find(answer).map(|url| url.to_string())));
        self
    }

    /// Where the original of an operation is fetched that the server says it
    /// carried out before: from its id, as [`Profile::original_id`] finds it in the
    /// answer, to a URL, absolute or relative to the request's. Its answer becomes
    /// the operation's. Without it, and without an id, the effect is `Unknown`.
    ///
    /// ```
    /// use oncekey::{Client, Profile};
    ///
    /// let client = Client::builder()
    ///     .profile(Profile::gocardless())
    ///     .recover_with(|id| Some(format!("/payments/{id}")))
    ///     .build()?;
    /// # Ok::<(), oncekey::BuildError>(())
    /// ```
    pub fn recover_with<U: ToString>(mut self, find: impl Fn(&str) -> Option<U> + Send + Sync + 'static) -> Self {
        self.recover_with = Some(Box::new(move |id| find(id).map(|url| url.to_string())));
        self
    }

    /// Looks an operation up by a reference of your own when its effect is
    /// unknown at the end of a run. See [`Reconcile`].
    ///
    /// ```
    /// # use oncekey::{Client, Doubtful, Effect, Found, IdempotencyKey};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = Client::builder()
    ///     .reconcile_with(|doubtful: &Doubtful<'_>| match doubtful.body() {
    ///         b"reference=M1A2B3C4" => Ok(Found::Applied("pay_7".into())), // the provider's books
    ///         _ => Ok(Found::Unknown),
    ///     })
    ///     .build()?;
    /// # let url = "http://127.0.0.1:1/payments";
    /// # let last_week = std::time::SystemTime::now() - std::time::Duration::from_secs(7 * 86_400);
    /// let key = IdempotencyKey::parse("3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506")?.first_sent(last_week);
    /// let sent = client.post(url).idempotency_key(key).body("reference=M1A2B3C4").send().await;
    /// assert_eq!(sent.expect_err("its key is too old to be sent").effect(), Effect::Applied);
    /// # Ok(())
    /// # }
    /// ```
    pub fn reconcile_with(mut self, hook: impl Reconcile + 'static) -> Self {
        self.reconcile_with = Some(Box::new(hook));
        self
    }

    /// Makes the delays that are drawn repeatable, for tests: those that
    /// [`Event::Waiting`](crate::Event::Waiting) tells, less what has passed
    /// of them by then. Keys stay random.
    ///
    /// ```
    /// let client = oncekey::Client::builder().entropy_seed(7).build()?;
    /// # Ok::<(), oncekey::BuildError>(())
    /// ```
    pub fn entropy_seed(mut self, seed: u64) -> Self {
        self.dice = Dice::seeded(seed);
        self
    }

    /// Another schedule for the delays after failures, made anew for each
    /// operation; `None` from it ends the run. A `Retry-After` still lengthens
    /// a delay, and polls keep their own intervals.
    ///
    /// The `backoff` crate (0.4) is unmaintained (RUSTSEC-2025-0012), which is why
    /// this is a feature and off by default; it is there for those who have
    /// such a schedule already.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::Client;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use backoff::backoff::Constant;
    ///
    /// let every = Duration::from_millis(5);
    /// let client = Client::builder().backoff(move || Constant::new(every))
    /// # .http(|http| http.no_proxy()).retry(oncekey::Retry::default().max_attempts(2))
    ///     .build()?;
    /// # let url = "http://127.0.0.1:1/payments";
    /// let error = client.post(url).send().await.expect_err("nobody listens there");
    /// assert!(error.attempts()[0].wait() >= every);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "backoff")]
    pub fn backoff<B>(mut self, make: impl Fn() -> B + Send + Sync + 'static) -> Self
    where
        B: backoff::backoff::Backoff + Send + 'static,
    {
        self.backoff = Some(Box::new(move || Box::new(make())));
        self
    }

    /// Where operations are written down before they are sent, so that they
    /// outlive this process. See [`journal`](crate::journal).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use oncekey::{Client, Effect, Retry, journal::Memory};
    ///
    /// let client = Client::builder().journal(Memory::new()).retry(Retry::default().max_attempts(1)).build()?;
    /// client.post("http://127.0.0.1:1/payments").operation("order-7").send().await.unwrap_err();
    /// let record = client.lookup("order-7").await?.expect("it was written down before it was sent");
    /// assert_eq!((record.attempts(), record.effect()), (1, Effect::NotApplied));
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "journal")]
    #[cfg_attr(docsrs, doc(cfg(feature = "journal")))]
    pub fn journal(mut self, journal: impl Journal + 'static) -> Self {
        self.journal = Some(Arc::new(journal));
        self
    }

    /// The account at the provider that this client acts for. Its lists and
    /// resumes see the operations of this account alone. Default: none.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use oncekey::{Client, Retry, journal::Memory};
    ///
    /// let builder = || Client::builder().retry(Retry::default().max_attempts(1));
    /// let journal = Memory::new();
    /// let ours = builder().journal(journal.clone()).account("acct_1").build()?;
    /// let theirs = builder().journal(journal).account("acct_2").build()?;
    /// ours.post("http://127.0.0.1:1/payments").operation("order-7").send().await.unwrap_err();
    /// assert!(ours.lookup("order-7").await?.is_some() && theirs.lookup("order-7").await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "journal")]
    #[cfg_attr(docsrs, doc(cfg(feature = "journal")))]
    pub fn account(mut self, account: impl Into<Box<str>>) -> Self {
        self.account = account.into();
        self
    }

    /// Checks all of it.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oncekey::{Client, Profile};
    ///
    /// assert!(Client::builder().profile(Profile::stripe()).build().is_ok());
    /// let error = Client::builder().attempt_timeout(Duration::ZERO).build().expect_err("nothing is sent in no time");
    /// assert_eq!(error.to_string(), "attempt_timeout is zero, in which nothing can be sent");
    /// ```
    ///
    /// # Errors
    ///
    /// [`BuildError`], naming the first setting that cannot be used and why.
    pub fn build(self) -> Result<Client, BuildError> {
        let attempt_timeout = self.attempt_timeout.unwrap_or(ATTEMPT_TIMEOUT);
        let connect_timeout = self.connect_timeout.unwrap_or_else(|| CONNECT_TIMEOUT.min(attempt_timeout / 2));
        let deadline = self.deadline.unwrap_or(DEADLINE);
        let key_lifetime = self.key_lifetime.unwrap_or_else(|| self.profile.key_lifetime());
        let max_response_bytes = self.max_response_bytes.unwrap_or(MAX_RESPONSE_BYTES);
        let policy = limits(&self.retry, &self.poll)
            .attempt_timeout(attempt_timeout)
            .deadline(deadline)
            .key_lifetime(key_lifetime)
            .authorizes(self.authorize.is_some())
            .overlap_is_safe(self.profile.overlap_is_safe())
            .min_delay(self.profile.min_delay());
        let problem = first_problem(&[
            (self.retry.max_attempts == 0, "max_attempts is 0, and the first attempt counts: give at least 1"),
            (self.retry.base_delay > self.retry.max_delay, "base_delay is longer than max_delay"),
            (self.poll.interval > self.poll.max_interval, "the poll interval is longer than its max_interval"),
            (attempt_timeout.is_zero(), "attempt_timeout is zero, in which nothing can be sent"),
            (connect_timeout.is_zero(), "connect_timeout is zero, in which nothing can be reached"),
            (
                connect_timeout > attempt_timeout / 2,
                "connect_timeout is over half of attempt_timeout, so that a hang while connecting would no longer prove that nothing was sent",
            ),
            (deadline < SHORTEST_ATTEMPT, SHORT_DEADLINE),
            (max_response_bytes == 0, "max_response_bytes is 0, with which no answer can be read"),
            (
                key_lifetime > self.profile.key_lifetime(),
                "key_lifetime is longer than the profile's: a key sent after the server forgot it is a second order",
            ),
            (
                !policy.fits_the_key(attempt_timeout),
                "key_lifetime is shorter than attempt_timeout and the margin (a tenth of it): not even a first attempt would fit",
            ),
        ]);
        if let Some(problem) = problem {
            return Err(BuildError::new(problem));
        }
        let http = self.http.into_iter().fold(reqwest::Client::builder(), |builder, setup| setup(builder));
        let http = settled(http, connect_timeout, attempt_timeout).build().map_err(BuildError::http)?;
        Ok(Client {
            inner: Arc::new(Inner {
                http,
                profile: self.profile,
                policy: Arc::new(policy),
                authorize: self.authorize,
                on_event: self.on_event,
                dice: self.dice,
                max_response_bytes,
                last_url: Mutex::new(None),
                poll_with: self.poll_with,
                recover_with: self.recover_with,
                reconcile_with: self.reconcile_with,
                #[cfg(feature = "backoff")]
                backoff: self.backoff,
                #[cfg(feature = "journal")]
                journal: self.journal,
                #[cfg(feature = "journal")]
                account: self.account,
            }),
        })
    }
}

/// How long a connection of HTTP/2 may be silent before it is asked for a sign of life.
#[cfg(feature = "http2")]
const LONGEST_SILENCE: Duration = Duration::from_secs(5);

/// How long that may take to come: it may have to wait behind a large request.
#[cfg(feature = "http2")]
const LONGEST_PING: Duration = Duration::from_secs(10);

/// The settings of reqwest that must not be otherwise.
fn settled(http: reqwest::ClientBuilder, connect: Duration, attempt: Duration) -> reqwest::ClientBuilder {
    // A redirect turns a POST into a GET, or takes key and body to another host.
    let http = http.redirect(reqwest::redirect::Policy::none());
    // What the server saw is what the log says.
    let http = http.retry(reqwest::retry::never()).connect_timeout(connect);
    // Another crate in the graph may have turned these on in reqwest.
    let http = http.no_brotli().no_zstd().no_deflate();
    #[cfg(not(feature = "gzip"))]
    let http = http.no_gzip();
    #[cfg(not(feature = "http2"))]
    let http = {
        let _ = attempt;
        http.http1_only()
    };
    // A connection that died silently is found out by the middle of an attempt, not after all of
    // them. Shorter than a quarter would be too short for a round trip: who first has to connect
    // takes three or four in an attempt. The caps are for requests with a shorter attempt timeout of
    // their own, which these settings, being the connection's, cannot follow.
    #[cfg(feature = "http2")]
    let http = http
        .http2_keep_alive_interval((attempt / 4).min(LONGEST_SILENCE))
        .http2_keep_alive_timeout((attempt / 4).min(LONGEST_PING))
        // Else it would be found out by an operation, at the price of an attempt in doubt.
        .http2_keep_alive_while_idle(true);
    http
}

fn first_problem(checks: &[(bool, &'static str)]) -> Option<&'static str> {
    checks.iter().find(|(wrong, _)| *wrong).map(|(_, problem)| *problem)
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("profile", &self.profile)
            .field("retry", &self.retry)
            .field("poll", &self.poll)
            .finish_non_exhaustive()
    }
}
