use core::time::Duration;

use super::delay::Budget;
use super::effect::{Effect, Standing};
use super::entry::{Entry, MethodKind, Owner, StopReason};
use super::history::{History, Last, budget_of};
use super::policy::Policy;
use super::time::Time;
use super::verdict::{Advice, Reach, Verdict};

/// With less than this, 50 ms, left of the deadline no attempt is started.
pub const SHORTEST_ATTEMPT: Duration = Duration::from_millis(50);

/// The one thing to do now.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)] // a driver must do each of them
#[must_use = "an action that is not carried out leaves the operation where it is"]
pub enum Action {
    /// Write this entry down, durably, then apply it.
    Record(Entry),
    /// Send the attempt whose `Started` is on record, then record how it ended.
    Send {
        /// Its number.
        attempt: u32,
        /// How long it may take from now.
        timeout: Duration,
    },
    /// Wait this long, then ask again.
    Sleep(Duration),
    /// It is over.
    Finish(Outcome),
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub enum Outcome {
    /// The server carried it out, and its last answer is final.
    Applied,
    /// The last answer is one that sending again cannot change.
    Ended(Verdict),
    /// The run gave up.
    Stopped(StopReason),
    /// The answers contradict each other.
    Contradicted,
    /// It was settled by hand or by a look-up.
    Resolved(Effect),
}

/// What asking for an operation again comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums)] // complete by definition
#[must_use]
pub enum Again {
    /// It is taken up, under the same key.
    GoesOn,
    /// Nothing may be sent: this is how it ended.
    Ended(Outcome),
}

impl History {
    /// What to do now: a pure function of the entries, the limits and the time.
    ///
    /// After a [`Action::Send`] the caller must record what
    /// [`History::ended`] makes of it before asking again.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::engine::*;
    /// # let (at, policy) = (Time::from_millis, Policy::new());
    /// # let created = Entry::Created { at: at(0), key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false };
    /// let mut history = History::replay(&[created])?;
    /// let Action::Record(first) = history.next(&policy, at(0)) else { panic!("nothing was sent yet") };
    /// history.apply(&first)?; // on the disk by now
    /// let timeout = Duration::from_secs(60);
    /// assert_eq!(history.next(&policy, at(0)), Action::Send { attempt: 1, timeout });
    ///
    /// let paid = Verdict::new(Reach::Applied, Advice::Stop, Why::Success);
    /// history.apply(&history.ended(paid, &policy, at(300), Draw::Entropy(0)))?;
    /// assert_eq!(history.next(&policy, at(300)), Action::Finish(Outcome::Applied));
    /// # Ok::<(), IllegalEntry>(())
    /// ```
    pub fn next(&self, policy: &Policy, now: Time) -> Action {
        let now = now.max(self.latest);
        if let Some(open) = &self.open {
            if open.orphaned {
                return Action::Record(Entry::Interrupted { attempt: open.attempt, at: now });
            }
            return match self.may_send(policy, now, open.at, open.timeout) {
                Ok(timeout) => Action::Send { attempt: open.attempt, timeout },
                // Writing it down took too long: what was started was never sent.
                Err(_) => Action::Record(Entry::Ended {
                    attempt: open.attempt,
                    verdict: Verdict::new(Reach::Unsent, Advice::Retry, super::Why::NotSent),
                    at: now,
                    next_at: Some(now),
                }),
            };
        }
        if let Some(outcome) = self.end() {
            return Action::Finish(outcome);
        }
        if let Some(reason) = self.run.stopped {
            return Action::Finish(Outcome::Stopped(reason));
        }
        let due = match self.due(policy) {
            Ok(due) => due.max(now),
            Err(reason) => return Action::Record(Entry::Stopped { reason, at: now }),
        };
        match self.may_send(policy, due, due, policy.attempt_timeout) {
            Err(reason) => Action::Record(Entry::Stopped { reason, at: now }),
            Ok(_) if due > now => Action::Sleep(due.since(now)),
            Ok(timeout) => Action::Record(Entry::Started {
                attempt: self.attempts.saturating_add(1),
                kind: self.next_kind(),
                timeout,
                at: now,
            }),
        }
    }

    /// What asking for it again comes to, at this time by the wall clock.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::engine::*;
    /// # let (at, policy) = (Time::from_millis, Policy::new());
    /// # let created = Entry::Created { at: at(0), key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false };
    /// # let started = Entry::Started { attempt: 1, kind: AttemptKind::First, timeout: Duration::from_secs(60), at: at(0) };
    /// let mut history = History::replay(&[created, started])?;
    /// assert_eq!(history.asked_again(&policy, at(9_000)), Again::GoesOn);
    ///
    /// let rejected = Verdict::new(Reach::Rejected, Advice::Stop, Why::Refusal);
    /// history.apply(&history.ended(rejected, &policy, at(300), Draw::Entropy(0)))?;
    /// assert_eq!(history.asked_again(&policy, at(9_000)), Again::Ended(Outcome::Ended(rejected)));
    /// # Ok::<(), IllegalEntry>(())
    /// ```
    pub fn asked_again(&self, policy: &Policy, at: Time) -> Again {
        let mut again = self.clone();
        let mut entry = Entry::Resumed { owner: Owner::new(0), at };
        while again.apply(&entry).is_ok() {
            entry = match again.next(policy, at) {
                Action::Finish(outcome) => return Again::Ended(outcome),
                Action::Record(Entry::Stopped {
                    reason: reason @ (StopReason::KeyExpired | StopReason::Keyless),
                    ..
                }) => {
                    return Again::Ended(Outcome::Stopped(reason));
                }
                Action::Record(entry @ Entry::Interrupted { .. }) => entry,
                Action::Record(_) | Action::Send { .. } | Action::Sleep(_) => return Again::GoesOn,
            };
        }
        Again::GoesOn
    }

    /// How it ended, if it has: nothing that this client sends can change it.
    pub(super) fn end(&self) -> Option<Outcome> {
        if let Some(effect) = self.resolved {
            return Some(Outcome::Resolved(effect));
        }
        if self.standing == Standing::Contradicted {
            return Some(Outcome::Contradicted);
        }
        let Last { verdict, of_this_run, .. } = self.last?;
        match (verdict.reach(), verdict.advice()) {
            (Reach::Applied, _) => Some(Outcome::Applied),
            (Reach::Rejected, _) => Some(Outcome::Ended(verdict)),
            (Reach::Ambiguous | Reach::Accepted { .. }, Advice::Stop) => Some(Outcome::Ended(verdict)),
            // Asking anew, on purpose, may bring another answer: nothing was carried out
            // by this attempt, or it was and only the answer is missing.
            (Reach::Unsent | Reach::Refused | Reach::AppliedUnread, Advice::Stop) => {
                of_this_run.then_some(Outcome::Ended(verdict))
            }
            (
                Reach::Unsent | Reach::Refused | Reach::Ambiguous | Reach::Accepted { .. } | Reach::AppliedUnread,
                Advice::Retry | Advice::RetryAfter(_),
            ) => None,
        }
    }

    /// The earliest moment for the next attempt, or the budget that is used up.
    fn due(&self, policy: &Policy) -> Result<Time, StopReason> {
        if self.must_not_be_repeated() {
            return Err(StopReason::Keyless);
        }
        let Some(last) = &self.last else {
            let overlap = if policy.overlap_is_safe { self.latest } else { self.interrupted_until };
            return Ok(self.latest.max(overlap));
        };
        if last.of_this_run {
            match budget_of(last.verdict) {
                Budget::Failures if self.run.failures >= policy.max_attempts => return Err(StopReason::Attempts),
                Budget::Failures | Budget::Polls => {}
            }
        }
        let due = match last.next_at {
            Some(due) => due,
            None if last.of_this_run => return Err(StopReason::Schedule),
            // The caller's schedule gave up; the server's wait holds all the same.
            None => match last.verdict.advice() {
                Advice::RetryAfter(named) => last.at.after(named),
                Advice::Retry | Advice::Stop => self.latest,
            },
        };
        match self.run.polling_since {
            Some(since) if budget_of(last.verdict) == Budget::Polls && due > since.after(policy.poll_limit) => {
                Err(StopReason::Polls)
            }
            Some(_) | None => Ok(due),
        }
    }

    /// How long an attempt begun at `started` may still take from `at` on, or
    /// why it must not be sent: the key's age first, then the deadline.
    fn may_send(&self, policy: &Policy, at: Time, started: Time, timeout: Duration) -> Result<Duration, StopReason> {
        let left = self.run.since.after(policy.deadline).since(at);
        let timeout = timeout.min(left);
        if self.key_expires_before(policy, at, started, timeout) {
            return Err(StopReason::KeyExpired);
        }
        if left < SHORTEST_ATTEMPT {
            return Err(StopReason::Deadline);
        }
        Ok(timeout)
    }

    fn key_expires_before(&self, policy: &Policy, at: Time, started: Time, timeout: Duration) -> bool {
        // A status resource is asked without the key.
        if self.method == MethodKind::Safe || self.linked {
            return false;
        }
        let margin = policy.margin();
        match self.key_since {
            // The clock went back further than the margin covers: the age is unknown.
            Some(_) if self.stepped_back > margin => true,
            since => {
                let since = since.unwrap_or(started);
                at.after(timeout).after(margin) > since.after(policy.key_lifetime)
            }
        }
    }
}
