use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::client::Client;
use super::worker::{INSIDE, Worker, is_inside_a_runtime};
use crate::authorize::Authorize;
use crate::error::BuildError;
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
    pub fn profile(self, profile: Profile) -> Self {
        self.inner.profile(profile).into()
    }

    /// Sets up the HTTP client, the async one of reqwest. What the promises rest
    /// on is set after it, and wins: see
    /// [`oncekey::ClientBuilder::http`](crate::ClientBuilder::http).
    pub fn http<F>(self, setup: F) -> Self
    where
        F: FnOnce(reqwest::ClientBuilder) -> reqwest::ClientBuilder + Send + 'static,
    {
        self.inner.http(setup).into()
    }

    /// How failures are tried again. Default: 12 attempts; delays from 0.5 s,
    /// doubled, up to 30 s, full jitter.
    pub fn retry(self, retry: Retry) -> Self {
        self.inner.retry(retry).into()
    }

    /// How an operation that is still running is asked for again. Default: from
    /// 1 s, times 1.5, up to 5 s, for 2 minutes.
    pub fn poll(self, poll: Poll) -> Self {
        self.inner.poll(poll).into()
    }

    /// How long one attempt may take, `authorize` hook and body included.
    /// Default: 60 s.
    pub fn attempt_timeout(self, timeout: Duration) -> Self {
        self.inner.attempt_timeout(timeout).into()
    }

    /// How long connecting may take; at most half the attempt timeout. Default:
    /// 10 s, or that half if it is less.
    pub fn connect_timeout(self, timeout: Duration) -> Self {
        self.inner.connect_timeout(timeout).into()
    }

    /// How long an operation may take in one run, waits included. Default: 5 minutes.
    pub fn deadline(self, deadline: Duration) -> Self {
        self.inner.deadline(deadline).into()
    }

    /// A shorter life for keys than the profile gives them. Default: the profile's.
    pub fn key_lifetime(self, lifetime: Duration) -> Self {
        self.inner.key_lifetime(lifetime).into()
    }

    /// The longest body, decoded, that is read. Default: 8 MiB.
    pub fn max_response_bytes(self, bytes: usize) -> Self {
        self.inner.max_response_bytes(bytes).into()
    }

    /// The hook that brings each attempt's credentials. It runs on the client's
    /// own thread, inside its runtime: it may wait by `await` alone, and a
    /// blocking call in it fails.
    pub fn authorize(self, hook: impl Authorize + 'static) -> Self {
        self.inner.authorize(hook).into()
    }

    /// Reads a complete 2xx, in the place of the profile's own judge: see
    /// [`oncekey::ClientBuilder::judge`](crate::ClientBuilder::judge).
    pub fn judge(self, judge: impl Fn(&Answer<'_>) -> Judgement + Send + Sync + 'static) -> Self {
        self.inner.judge(judge).into()
    }

    /// Asks after an operation that is still running at its status resource: see
    /// [`oncekey::ClientBuilder::poll_with`](crate::ClientBuilder::poll_with).
    pub fn poll_with<U: ToString>(self, find: impl Fn(&Answer<'_>) -> Option<U> + Send + Sync + 'static) -> Self {
        self.inner.poll_with(find).into()
    }

    /// Where an original is fetched: see
    /// [`oncekey::ClientBuilder::recover_with`](crate::ClientBuilder::recover_with).
    pub fn recover_with<U: ToString>(self, find: impl Fn(&str) -> Option<U> + Send + Sync + 'static) -> Self {
        self.inner.recover_with(find).into()
    }

    /// Looks up what is unknown; a closure without `await` will do. It runs on the
    /// client's own thread, as the `authorize` hook does.
    pub fn reconcile_with(self, hook: impl Reconcile + 'static) -> Self {
        self.inner.reconcile_with(hook).into()
    }

    /// Makes the delays repeatable, for tests. Keys stay random.
    pub fn entropy_seed(self, seed: u64) -> Self {
        self.inner.entropy_seed(seed).into()
    }

    /// Another schedule for the delays after failures: see
    /// [`oncekey::ClientBuilder::backoff`](crate::ClientBuilder::backoff).
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
    #[cfg(feature = "journal")]
    #[cfg_attr(docsrs, doc(cfg(feature = "journal")))]
    pub fn journal(self, journal: impl Journal + 'static) -> Self {
        self.inner.journal(journal).into()
    }

    /// The account at the provider that this client acts for. Its lists and
    /// resumes see the operations of this account alone. Default: none.
    #[cfg(feature = "journal")]
    #[cfg_attr(docsrs, doc(cfg(feature = "journal")))]
    pub fn account(self, account: impl Into<Box<str>>) -> Self {
        self.inner.account(account).into()
    }

    /// Checks all of it, and starts the client's thread.
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
