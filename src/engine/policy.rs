use core::time::Duration;

/// The limits that a run is held to.
///
/// All counts include the first attempt; all waits are lower bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a policy does nothing until an operation runs under it"]
pub struct Policy {
    pub(super) max_attempts: u32,
    pub(super) base_delay: Duration,
    pub(super) max_delay: Duration,
    pub(super) poll_interval: Duration,
    pub(super) poll_max_interval: Duration,
    pub(super) poll_limit: Duration,
    pub(super) attempt_timeout: Duration,
    pub(super) deadline: Duration,
    pub(super) key_lifetime: Duration,
    pub(super) authorizes: bool,
    pub(super) overlap_is_safe: bool,
    pub(super) min_delay: Duration,
}

impl Policy {
    /// The defaults: 12 attempts; backoff from 0.5 s, doubled, up to 30 s; polls
    /// from 1 s, times 1.5, up to 5 s, for at most 2 minutes; 60 s an attempt;
    /// 5 minutes in all; a key lives 24 hours; no `authorize` hook.
    pub const fn new() -> Self {
        Self {
            max_attempts: 12,
            base_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(30),
            poll_interval: Duration::from_secs(1),
            poll_max_interval: Duration::from_secs(5),
            poll_limit: Duration::from_secs(120),
            attempt_timeout: Duration::from_secs(60),
            deadline: Duration::from_secs(300),
            key_lifetime: Duration::from_secs(86_400),
            authorizes: false,
            overlap_is_safe: true,
            min_delay: Duration::ZERO,
        }
    }

    /// How many attempts a run may fail with, the first included.
    pub const fn max_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = attempts;
        self
    }

    /// Our own delay before the second attempt, at most; doubled after each
    /// further failure, up to `max`.
    pub const fn delays(mut self, base: Duration, max: Duration) -> Self {
        self.base_delay = base;
        self.max_delay = max;
        self
    }

    /// The first poll's interval, the longest one, and how long polling may go
    /// on after the first verdict that called for it.
    pub const fn polls(mut self, interval: Duration, max: Duration, limit: Duration) -> Self {
        self.poll_interval = interval;
        self.poll_max_interval = max;
        self.poll_limit = limit;
        self
    }

    /// How long one attempt may take.
    pub const fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt_timeout = timeout;
        self
    }

    /// How long one attempt may take, as it was set.
    pub const fn attempt_time(&self) -> Duration {
        self.attempt_timeout
    }

    /// How long a run may take, waits included.
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// How long a run may take, as it was set.
    pub const fn run_time(&self) -> Duration {
        self.deadline
    }

    /// How long the server honours a key.
    pub const fn key_lifetime(mut self, lifetime: Duration) -> Self {
        self.key_lifetime = lifetime;
        self
    }

    /// Whether a hook can bring fresh credentials after a 401.
    pub const fn authorizes(mut self, yes: bool) -> Self {
        self.authorizes = yes;
        self
    }

    /// Whether two requests under one key may overlap: where they may not, the
    /// timeout of an attempt whose owner died is waited for.
    pub const fn overlap_is_safe(mut self, yes: bool) -> Self {
        self.overlap_is_safe = yes;
        self
    }

    /// The shortest wait between two requests under one key, where the API's
    /// pages name one.
    pub const fn min_delay(mut self, delay: Duration) -> Self {
        self.min_delay = delay;
        self
    }

    /// How long the server honours a key, as it was set.
    pub const fn key_life(&self) -> Duration {
        self.key_lifetime
    }

    /// What is kept free at the end of a key's life, for clocks that differ: a
    /// tenth of it, at most half an hour.
    pub fn margin(&self) -> Duration {
        key_margin(self.key_lifetime)
    }

    /// Whether a first attempt of this length fits the key's life, its margin
    /// left free.
    pub fn fits_the_key(&self, attempt_timeout: Duration) -> bool {
        attempt_timeout.saturating_add(self.margin()) <= self.key_lifetime
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::new()
    }
}

/// The part of a key's life that is not used: a tenth of it, at most half an hour.
fn key_margin(lifetime: Duration) -> Duration {
    (lifetime / 10).min(Duration::from_secs(1800))
}
