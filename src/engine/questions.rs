use core::time::Duration;

use super::effect::{Effect, Standing};
use super::entry::KeyOrigin;
use super::history::History;
use super::next::Outcome;
use super::policy::Policy;
use super::time::Time;
use super::verdict::{Reach, Verdict};

/// What a history says when it is asked.
impl History {
    /// How many attempts were started, over all runs.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::engine::*;
    /// # let (at, policy) = (Time::from_millis, Policy::new());
    /// # let created = Entry::Created { at: at(0), key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false };
    /// # let started = Entry::Started { attempt: 1, kind: AttemptKind::First, timeout: Duration::from_secs(60), at: at(0) };
    /// let resumed = Entry::Resumed { owner: Owner::new(7), at: at(9_000) };
    /// let interrupted = Entry::Interrupted { attempt: 1, at: at(9_000) };
    /// let again = Entry::Started { attempt: 2, kind: AttemptKind::Retry, timeout: Duration::from_secs(60), at: at(9_000) };
    /// let history = History::replay(&[created, started, resumed, interrupted, again])?;
    /// assert_eq!(history.attempts(), 2, "one in each run");
    /// # Ok::<(), IllegalEntry>(())
    /// ```
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// The number of the attempt that was started and has not ended.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::engine::*;
    /// # let (at, policy) = (Time::from_millis, Policy::new());
    /// # let created = Entry::Created { at: at(0), key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false };
    /// # let started = Entry::Started { attempt: 1, kind: AttemptKind::First, timeout: Duration::from_secs(60), at: at(0) };
    /// let mut history = History::replay(&[created, started])?;
    /// assert_eq!(history.open_attempt(), Some(1));
    ///
    /// let lost = Verdict::new(Reach::Ambiguous, Advice::Retry, Why::NoHead);
    /// history.apply(&history.ended(lost, &policy, at(60_000), Draw::Entropy(0)))?;
    /// assert_eq!(history.open_attempt(), None);
    /// # Ok::<(), IllegalEntry>(())
    /// ```
    pub fn open_attempt(&self) -> Option<u32> {
        self.open.map(|open| open.attempt)
    }

    /// The largest moment of any entry. An operation's clock starts no earlier.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::engine::*;
    /// # let (at, policy) = (Time::from_millis, Policy::new());
    /// # let created = Entry::Created { at: at(0), key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false };
    /// # let started = Entry::Started { attempt: 1, kind: AttemptKind::First, timeout: Duration::from_secs(60), at: at(0) };
    /// let started = Entry::Started { attempt: 1, kind: AttemptKind::First, timeout: Duration::from_secs(60), at: at(5_000) };
    /// // Resumed on a machine whose clock is 3 s behind.
    /// let resumed = Entry::Resumed { owner: Owner::new(7), at: at(2_000) };
    /// assert_eq!(History::replay(&[created, started, resumed])?.latest(), at(5_000));
    /// # Ok::<(), IllegalEntry>(())
    /// ```
    pub const fn latest(&self) -> Time {
        self.latest
    }

    /// When the key's life began: the first attempt that may have been received,
    /// one that is on its way included.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::engine::*;
    /// # let (at, policy) = (Time::from_millis, Policy::new());
    /// # let created = Entry::Created { at: at(0), key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false };
    /// # let started = Entry::Started { attempt: 1, kind: AttemptKind::First, timeout: Duration::from_secs(60), at: at(0) };
    /// let mut history = History::replay(&[created.clone()])?;
    /// assert_eq!(history.key_since(), None);
    /// history.apply(&started)?;
    /// assert_eq!(history.key_since(), Some(at(0)));
    ///
    /// let unsent = Verdict::new(Reach::Unsent, Advice::Retry, Why::NotSent);
    /// history.apply(&history.ended(unsent, &policy, at(10), Draw::Entropy(0)))?;
    /// assert_eq!(history.key_since(), None, "the server never saw the key");
    /// # Ok::<(), IllegalEntry>(())
    /// ```
    pub const fn key_since(&self) -> Option<Time> {
        match (self.key_since, &self.open) {
            (None, Some(open)) => Some(open.at),
            (since, _) => since,
        }
    }

    /// When the next attempt may be sent, where the last verdict left that open.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::engine::*;
    /// # let (at, policy) = (Time::from_millis, Policy::new());
    /// # let created = Entry::Created { at: at(0), key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false };
    /// # let started = Entry::Started { attempt: 1, kind: AttemptKind::First, timeout: Duration::from_secs(60), at: at(0) };
    /// let mut history = History::replay(&[created, started])?;
    /// let busy = Verdict::new(Reach::Refused, Advice::RetryAfter(Duration::from_secs(5)), Why::RateLimited);
    /// history.apply(&history.ended(busy, &policy, at(300), Draw::Entropy(0)))?;
    /// assert_eq!(history.next_at(), Some(at(5_300)));
    /// # Ok::<(), IllegalEntry>(())
    /// ```
    pub const fn next_at(&self) -> Option<Time> {
        match &self.last {
            Some(last) => last.next_at,
            None => None,
        }
    }

    /// When the same operation may be tried again, where something asks for a
    /// wait: the last verdict, or an attempt whose owner died and which another
    /// must not overlap.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::engine::*;
    /// # let (at, policy) = (Time::from_millis, Policy::new());
    /// # let created = Entry::Created { at: at(0), key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false };
    /// # let started = Entry::Started { attempt: 1, kind: AttemptKind::First, timeout: Duration::from_secs(60), at: at(0) };
    /// let resumed = Entry::Resumed { owner: Owner::new(7), at: at(9_000) };
    /// let interrupted = Entry::Interrupted { attempt: 1, at: at(9_000) };
    /// let history = History::replay(&[created, started, resumed, interrupted])?;
    /// assert_eq!(history.resume_at(&policy), None);
    /// // Not before the attempt that nobody saw the end of has had its 60 s.
    /// assert_eq!(history.resume_at(&policy.overlap_is_safe(false)), Some(at(60_000)));
    /// # Ok::<(), IllegalEntry>(())
    /// ```
    pub fn resume_at(&self, policy: &Policy) -> Option<Time> {
        match &self.last {
            Some(last) => last.next_at,
            None => (!policy.overlap_is_safe && self.interrupted_until > self.latest).then_some(self.interrupted_until),
        }
    }

    /// What is left of the run's time.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::engine::*;
    /// # let (at, policy) = (Time::from_millis, Policy::new());
    /// # let created = Entry::Created { at: at(0), key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false };
    /// let history = History::replay(&[created])?;
    /// let policy = policy.deadline(Duration::from_secs(60));
    /// assert_eq!(history.left(&policy, at(20_000)), Duration::from_secs(40));
    /// assert_eq!(history.left(&policy, at(90_000)), Duration::ZERO);
    /// # Ok::<(), IllegalEntry>(())
    /// ```
    pub fn left(&self, policy: &Policy, now: Time) -> Duration {
        self.run.since.after(policy.deadline).since(now.max(self.latest))
    }

    /// Whether the run is over: it ended, or gave up, or was settled by hand.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::engine::*;
    /// # let (at, policy) = (Time::from_millis, Policy::new());
    /// # let created = Entry::Created { at: at(0), key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false };
    /// # let started = Entry::Started { attempt: 1, kind: AttemptKind::First, timeout: Duration::from_secs(60), at: at(0) };
    /// let mut history = History::replay(&[created])?;
    /// assert!(!history.is_over());
    /// history.apply(&Entry::Stopped { reason: StopReason::Deadline, at: at(300_000) })?;
    /// assert!(history.is_over());
    /// history.apply(&Entry::Resumed { owner: Owner::new(7), at: at(400_000) })?;
    /// assert!(!history.is_over(), "the new run has only begun");
    /// # Ok::<(), IllegalEntry>(())
    /// ```
    pub fn is_over(&self) -> bool {
        self.run.stopped.is_some() || self.end().is_some()
    }

    /// Whether nothing is left to be asked: its answer came, or it was settled,
    /// or the run is over without effect.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::engine::*;
    /// # let (at, policy) = (Time::from_millis, Policy::new());
    /// # let created = Entry::Created { at: at(0), key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false };
    /// # let started = Entry::Started { attempt: 1, kind: AttemptKind::First, timeout: Duration::from_secs(60), at: at(0) };
    /// let mut history = History::replay(&[created, started])?;
    /// let lost = Verdict::new(Reach::Ambiguous, Advice::Stop, Why::StoredError);
    /// history.apply(&history.ended(lost, &policy, at(300), Draw::Entropy(0)))?;
    /// assert!(history.is_over() && !history.is_settled(), "nobody knows whether it took effect");
    ///
    /// history.apply(&Entry::Resolved { effect: Effect::Applied, by: "ana: pay_7".into(), at: at(900_000) })?;
    /// assert!(history.is_settled());
    /// # Ok::<(), IllegalEntry>(())
    /// ```
    pub fn is_settled(&self) -> bool {
        match self.end() {
            Some(Outcome::Applied | Outcome::Resolved(_)) => true,
            Some(Outcome::Ended(_) | Outcome::Stopped(_) | Outcome::Contradicted) | None => {
                self.is_over() && self.effect() == Effect::NotApplied
            }
        }
    }

    /// The last attempt's verdict, unless nobody saw its end.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::engine::*;
    /// # let (at, policy) = (Time::from_millis, Policy::new());
    /// # let created = Entry::Created { at: at(0), key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false };
    /// # let started = Entry::Started { attempt: 1, kind: AttemptKind::First, timeout: Duration::from_secs(60), at: at(0) };
    /// let mut history = History::replay(&[created, started])?;
    /// assert_eq!(history.last_verdict(), None);
    /// let lost = Verdict::new(Reach::Ambiguous, Advice::Retry, Why::NoHead);
    /// history.apply(&history.ended(lost, &policy, at(60_000), Draw::Entropy(0)))?;
    /// assert_eq!(history.last_verdict(), Some(lost));
    /// # Ok::<(), IllegalEntry>(())
    /// ```
    pub const fn last_verdict(&self) -> Option<Verdict> {
        match &self.last {
            Some(last) => Some(last.verdict),
            None => None,
        }
    }

    /// Whether it is asked after at a status resource: the request itself is
    /// never sent again.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::engine::*;
    /// # let (at, policy) = (Time::from_millis, Policy::new());
    /// # let created = Entry::Created { at: at(0), key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false };
    /// # let started = Entry::Started { attempt: 1, kind: AttemptKind::First, timeout: Duration::from_secs(60), at: at(0) };
    /// let mut history = History::replay(&[created, started])?;
    /// let accepted = Verdict::new(Reach::Accepted { knows_key: false }, Advice::Retry, Why::Pending);
    /// history.apply(&history.ended(accepted.with_link(true), &policy, at(300), Draw::Entropy(0)))?;
    /// assert!(history.is_linked());
    /// assert_eq!(history.effect(), Effect::Unknown);
    /// # Ok::<(), IllegalEntry>(())
    /// ```
    pub const fn is_linked(&self) -> bool {
        self.linked
    }

    /// The version of the request, from 1.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::engine::*;
    /// # let (at, policy) = (Time::from_millis, Policy::new());
    /// # let created = Entry::Created { at: at(0), key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false };
    /// # let started = Entry::Started { attempt: 1, kind: AttemptKind::First, timeout: Duration::from_secs(60), at: at(0) };
    /// let mut history = History::replay(&[created, started])?;
    /// let refused = Verdict::new(Reach::Refused, Advice::Stop, Why::Refusal);
    /// history.apply(&history.ended(refused, &policy, at(300), Draw::Entropy(0)))?;
    /// assert_eq!(history.version(), 1);
    /// history.apply(&Entry::Resumed { owner: Owner::new(7), at: at(9_000) })?;
    /// history.apply(&Entry::Amended { version: 2, at: at(9_000) })?;
    /// assert_eq!(history.version(), 2);
    /// # Ok::<(), IllegalEntry>(())
    /// ```
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// Whether the request may be corrected under the same key, on an API that
    /// releases keys on errors: it was turned away, and nothing is in doubt.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::engine::*;
    /// # let (at, policy) = (Time::from_millis, Policy::new());
    /// # let created = Entry::Created { at: at(0), key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false };
    /// # let started = Entry::Started { attempt: 1, kind: AttemptKind::First, timeout: Duration::from_secs(60), at: at(0) };
    /// let sent = History::replay(&[created, started])?;
    /// let ended = |verdict| -> Result<History, IllegalEntry> {
    ///     let mut history = sent.clone();
    ///     history.apply(&sent.ended(verdict, &policy, at(300), Draw::Entropy(0)))?;
    ///     Ok(history)
    /// };
    /// assert!(ended(Verdict::new(Reach::Refused, Advice::Stop, Why::Refusal))?.may_be_amended());
    /// assert!(!ended(Verdict::new(Reach::Ambiguous, Advice::Stop, Why::StoredError))?.may_be_amended());
    /// # Ok::<(), IllegalEntry>(())
    /// ```
    pub fn may_be_amended(&self) -> bool {
        let refused = self.last.is_some_and(|last| last.verdict.reach() == Reach::Refused);
        self.open.is_none()
            && refused
            && self.standing == Standing::Clean
            && self.resolved.is_none()
            && self.key == KeyOrigin::Drawn
    }

    /// Whether "it is gone" counts as done, for a DELETE.
    ///
    /// ```
    /// use oncekey::engine::{Entry, History, KeyOrigin, MethodKind, Time};
    ///
    /// let at = Time::from_millis(0);
    /// let delete = Entry::Created { at, key: KeyOrigin::None, method: MethodKind::Idempotent, gone_is_done: true };
    /// assert!(History::replay(&[delete])?.gone_is_done());
    /// # Ok::<(), oncekey::engine::IllegalEntry>(())
    /// ```
    pub const fn gone_is_done(&self) -> bool {
        self.gone_is_done
    }
}
