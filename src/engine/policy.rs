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
    /// 5 minutes in all; a key lives 24 hours; no `authorize` hook; requests may
    /// overlap, and no shortest delay.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oncekey::engine::Policy;
    ///
    /// let policy = Policy::new();
    /// assert_eq!(policy.attempt_time(), Duration::from_secs(60));
    /// assert_eq!(policy.run_time(), Duration::from_secs(300));
    /// assert_eq!(policy, Policy::default());
    /// ```
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
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::engine::*;
    /// # let (at, policy) = (Time::from_millis, Policy::new());
    /// # let created = Entry::Created { at: at(0), key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false };
    /// # let started = Entry::Started { attempt: 1, kind: AttemptKind::First, timeout: Duration::from_secs(60), at: at(0) };
    /// let policy = Policy::new().max_attempts(1);
    /// let mut history = History::replay(&[created, started])?;
    /// let unsent = Verdict::new(Reach::Unsent, Advice::Retry, Why::NotSent);
    /// history.apply(&history.ended(unsent, &policy, at(10), Draw::Entropy(0)))?;
    /// let stopped = Entry::Stopped { reason: StopReason::Attempts, at: at(10) };
    /// assert_eq!(history.next(&policy, at(10)), Action::Record(stopped));
    /// # Ok::<(), IllegalEntry>(())
    /// ```
    pub const fn max_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = attempts;
        self
    }

    /// Our own delay before the second attempt, at most; doubled after each
    /// further failure, up to `max`.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::engine::*;
    /// # let (at, policy) = (Time::from_millis, Policy::new());
    /// # let created = Entry::Created { at: at(0), key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false };
    /// # let started = Entry::Started { attempt: 1, kind: AttemptKind::First, timeout: Duration::from_secs(60), at: at(0) };
    /// let policy = Policy::new().delays(Duration::from_millis(200), Duration::from_secs(10));
    /// let mut history = History::replay(&[created, started])?;
    /// let unsent = Verdict::new(Reach::Unsent, Advice::Retry, Why::NotSent);
    /// history.apply(&history.ended(unsent, &policy, at(10), Draw::Entropy(u64::MAX)))?; // the worst luck
    /// assert_eq!(history.next_at(), Some(at(210)));
    /// # Ok::<(), IllegalEntry>(())
    /// ```
    pub const fn delays(mut self, base: Duration, max: Duration) -> Self {
        self.base_delay = base;
        self.max_delay = max;
        self
    }

    /// The first poll's interval, the longest one, and how long polling may go
    /// on after the first verdict that called for it.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::engine::*;
    /// # let (at, policy) = (Time::from_millis, Policy::new());
    /// # let created = Entry::Created { at: at(0), key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false };
    /// # let started = Entry::Started { attempt: 1, kind: AttemptKind::First, timeout: Duration::from_secs(60), at: at(0) };
    /// let secs = Duration::from_secs;
    /// let policy = Policy::new().polls(secs(2), secs(10), secs(60));
    /// let mut history = History::replay(&[created, started])?;
    /// let running = Verdict::new(Reach::Accepted { knows_key: true }, Advice::Retry, Why::InProgress);
    /// history.apply(&history.ended(running, &policy, at(10), Draw::Entropy(u64::MAX / 2)))?; // neither good luck nor bad
    /// assert_eq!(history.next_at(), Some(at(2_010)));
    /// # Ok::<(), IllegalEntry>(())
    /// ```
    pub const fn polls(mut self, interval: Duration, max: Duration, limit: Duration) -> Self {
        self.poll_interval = interval;
        self.poll_max_interval = max;
        self.poll_limit = limit;
        self
    }

    /// How long one attempt may take.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::engine::*;
    /// # let (at, policy) = (Time::from_millis, Policy::new());
    /// # let created = Entry::Created { at: at(0), key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false };
    /// let policy = Policy::new().attempt_timeout(Duration::from_secs(20));
    /// let Action::Record(Entry::Started { timeout, .. }) = History::replay(&[created])?.next(&policy, at(0)) else {
    ///     panic!("a new operation is sent")
    /// };
    /// assert_eq!(timeout, Duration::from_secs(20));
    /// # Ok::<(), IllegalEntry>(())
    /// ```
    pub const fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt_timeout = timeout;
        self
    }

    /// How long one attempt may take, as it was set.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oncekey::engine::Policy;
    ///
    /// let policy = Policy::new().attempt_timeout(Duration::from_secs(20));
    /// assert_eq!(policy.attempt_time(), Duration::from_secs(20));
    /// ```
    pub const fn attempt_time(&self) -> Duration {
        self.attempt_timeout
    }

    /// How long a run may take, waits included.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::engine::*;
    /// # let (at, policy) = (Time::from_millis, Policy::new());
    /// # let created = Entry::Created { at: at(0), key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false };
    /// let policy = Policy::new().deadline(Duration::from_secs(90));
    /// let history = History::replay(&[created])?;
    /// let timeout = Duration::from_secs(15); // of 60, which is all that is left
    /// let started = Entry::Started { attempt: 1, kind: AttemptKind::First, timeout, at: at(75_000) };
    /// assert_eq!(history.next(&policy, at(75_000)), Action::Record(started));
    /// let stopped = Entry::Stopped { reason: StopReason::Deadline, at: at(90_000) };
    /// assert_eq!(history.next(&policy, at(90_000)), Action::Record(stopped));
    /// # Ok::<(), IllegalEntry>(())
    /// ```
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// How long a run may take, as it was set.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oncekey::engine::Policy;
    ///
    /// let policy = Policy::new().deadline(Duration::from_secs(90));
    /// assert!(policy.attempt_time() < policy.run_time(), "one attempt fits at least");
    /// ```
    pub const fn run_time(&self) -> Duration {
        self.deadline
    }

    /// How long the server honours a key.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::engine::*;
    /// # let (at, policy) = (Time::from_millis, Policy::new());
    /// # let created = Entry::Created { at: at(0), key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false };
    /// let policy = Policy::new().key_lifetime(Duration::from_secs(3_600));
    /// let key = KeyOrigin::Given { first_sent: Some(at(0)) };
    /// let created = Entry::Created { at: at(3_500_000), key, method: MethodKind::Other, gone_is_done: false };
    /// let stopped = Entry::Stopped { reason: StopReason::KeyExpired, at: at(3_500_000) };
    /// assert_eq!(History::replay(&[created])?.next(&policy, at(3_500_000)), Action::Record(stopped));
    /// # Ok::<(), IllegalEntry>(())
    /// ```
    pub const fn key_lifetime(mut self, lifetime: Duration) -> Self {
        self.key_lifetime = lifetime;
        self
    }

    /// Whether a hook can bring fresh credentials after a 401.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::engine::*;
    /// # let (at, policy) = (Time::from_millis, Policy::new());
    /// # let created = Entry::Created { at: at(0), key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false };
    /// # let started = Entry::Started { attempt: 1, kind: AttemptKind::First, timeout: Duration::from_secs(60), at: at(0) };
    /// let history = History::replay(&[created, started])?;
    /// let refused = Verdict::new(Reach::Refused, Advice::Stop, Why::Unauthorized);
    /// assert_eq!(history.budget(refused, &policy), None, "the same credentials again: the same 401");
    /// assert_eq!(history.budget(refused, &policy.authorizes(true)), Some(Budget::Failures));
    /// # Ok::<(), IllegalEntry>(())
    /// ```
    pub const fn authorizes(mut self, yes: bool) -> Self {
        self.authorizes = yes;
        self
    }

    /// Whether two requests under one key may overlap: where they may not, the
    /// timeout of an attempt whose owner died is waited for.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::engine::*;
    /// # let (at, policy) = (Time::from_millis, Policy::new());
    /// # let created = Entry::Created { at: at(0), key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false };
    /// # let started = Entry::Started { attempt: 1, kind: AttemptKind::First, timeout: Duration::from_secs(60), at: at(0) };
    /// let policy = Policy::new().overlap_is_safe(false);
    /// let resumed = Entry::Resumed { owner: Owner::new(7), at: at(9_000) };
    /// let interrupted = Entry::Interrupted { attempt: 1, at: at(9_000) };
    /// let history = History::replay(&[created, started, resumed, interrupted])?;
    /// // The rest of the 60 s of the attempt that may still be on its way.
    /// assert_eq!(history.next(&policy, at(9_000)), Action::Sleep(Duration::from_secs(51)));
    /// # Ok::<(), IllegalEntry>(())
    /// ```
    pub const fn overlap_is_safe(mut self, yes: bool) -> Self {
        self.overlap_is_safe = yes;
        self
    }

    /// The shortest wait between two requests under one key, where the API's
    /// pages name one.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::engine::*;
    /// # let (at, policy) = (Time::from_millis, Policy::new());
    /// # let created = Entry::Created { at: at(0), key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false };
    /// # let started = Entry::Started { attempt: 1, kind: AttemptKind::First, timeout: Duration::from_secs(60), at: at(0) };
    /// let policy = Policy::new().min_delay(Duration::from_secs(3));
    /// let mut history = History::replay(&[created, started])?;
    /// let lost = Verdict::new(Reach::Ambiguous, Advice::Retry, Why::NoHead);
    /// history.apply(&history.ended(lost, &policy, at(10), Draw::Entropy(0)))?;
    /// assert_eq!(history.next_at(), Some(at(3_010)));
    /// # Ok::<(), IllegalEntry>(())
    /// ```
    pub const fn min_delay(mut self, delay: Duration) -> Self {
        self.min_delay = delay;
        self
    }

    /// How long the server honours a key, as it was set.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oncekey::engine::Policy;
    ///
    /// let policy = Policy::new().key_lifetime(Duration::from_secs(3_600));
    /// let usable = policy.key_life() - policy.margin();
    /// assert_eq!(usable, Duration::from_secs(54 * 60));
    /// ```
    pub const fn key_life(&self) -> Duration {
        self.key_lifetime
    }

    /// What is kept free at the end of a key's life, for clocks that differ: a
    /// tenth of it, at most half an hour.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oncekey::engine::Policy;
    ///
    /// let hours = |n: u64| Duration::from_secs(n * 3_600);
    /// assert_eq!(Policy::new().key_lifetime(hours(1)).margin(), hours(1) / 10);
    /// assert_eq!(Policy::new().key_lifetime(hours(24)).margin(), hours(1) / 2);
    /// ```
    pub fn margin(&self) -> Duration {
        key_margin(self.key_lifetime)
    }

    /// Whether a first attempt of this length fits the key's life, its margin
    /// left free.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oncekey::engine::Policy;
    ///
    /// let policy = Policy::new().key_lifetime(Duration::from_secs(60)); // 6 of them are the margin
    /// assert!(policy.fits_the_key(Duration::from_secs(54)));
    /// assert!(!policy.fits_the_key(Duration::from_secs(55)));
    /// ```
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
