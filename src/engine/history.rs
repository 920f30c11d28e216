use core::fmt;
use core::time::Duration;

use super::delay::{self, Budget, Draw};
use super::effect::{Effect, Standing};
use super::entry::{AttemptKind, Entry, KeyOrigin, MethodKind, StopReason};
use super::policy::Policy;
use super::time::Time;
use super::verdict::{Advice, Reach, Verdict, Why};

/// An operation's entries, folded: everything that the next decision rests on.
///
/// Two histories made from the same entries are equal, whether they were
/// applied while running or replayed after a crash.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct History {
    pub(super) key: KeyOrigin,
    pub(super) method: MethodKind,
    pub(super) gone_is_done: bool,
    pub(super) standing: Standing,
    /// The largest moment of any entry: the operation's own clock never reads less.
    pub(super) latest: Time,
    /// The furthest that a resume found the wall clock behind the entries.
    pub(super) stepped_back: Duration,
    /// When the key's life began: the first attempt that was not `Unsent`.
    pub(super) key_since: Option<Time>,
    /// The server has shown, at some time, that it knows the key.
    knows_key: bool,
    /// It is asked after at a status resource, and never sent again.
    pub(super) linked: bool,
    /// How the person or look-up that settled it found it.
    pub(super) resolved: Option<Effect>,
    /// The version of the request, from 1.
    pub(super) version: u32,
    /// Until when the last attempt, which nobody saw the end of, may have been on its way.
    pub(super) interrupted_until: Time,
    pub(super) attempts: u32,
    pub(super) open: Option<Open>,
    /// The verdict of the last attempt, unless that was interrupted.
    pub(super) last: Option<Last>,
    pub(super) run: Run,
}

/// An attempt that was started and has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Open {
    pub(super) attempt: u32,
    pub(super) timeout: Duration,
    pub(super) at: Time,
    /// It belongs to an earlier run, whose owner is dead.
    pub(super) orphaned: bool,
}

/// How the last attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Last {
    pub(super) verdict: Verdict,
    pub(super) at: Time,
    pub(super) next_at: Option<Time>,
    /// It ended in this run, not in one before a resume.
    pub(super) of_this_run: bool,
}

/// What counts from the latest `Resumed`, else from `Created`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) since: Time,
    pub(super) failures: u32,
    polls: u32,
    pub(super) polling_since: Option<Time>,
    /// The `authorize` hook has been told of a 401.
    told_unauthorized: bool,
    pub(super) stopped: Option<StopReason>,
}

impl Run {
    const fn starting(since: Time) -> Self {
        Self { since, failures: 0, polls: 0, polling_since: None, told_unauthorized: false, stopped: None }
    }
}

impl History {
    /// Folds an operation's entries, from its `Created` on.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::engine::*;
    /// # let (at, policy) = (Time::from_millis, Policy::new());
    /// # let created = Entry::Created { at: at(0), key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false };
    /// # let started = Entry::Started { attempt: 1, kind: AttemptKind::First, timeout: Duration::from_secs(60), at: at(0) };
    /// let history = History::replay(&[created.clone(), started.clone()])?; // and then it crashed
    /// assert_eq!(history.effect(), Effect::Unknown, "it may have arrived");
    ///
    /// let mut running = History::replay(&[created])?;
    /// running.apply(&started)?;
    /// assert_eq!(history, running, "read from the record, or lived through: the same");
    /// # Ok::<(), IllegalEntry>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`IllegalEntry`], with the position of the first entry that cannot have
    /// happened after those before it.
    pub fn replay(entries: &[Entry]) -> Result<Self, IllegalEntry> {
        let Some((first, rest)) = entries.split_first() else {
            return Err(IllegalEntry { position: 0, problem: "an operation without entries" });
        };
        let mut history = Self::created(first)?;
        for (index, entry) in rest.iter().enumerate() {
            history.apply(entry).map_err(|e| IllegalEntry { position: index + 1, ..e })?;
        }
        Ok(history)
    }

    fn created(entry: &Entry) -> Result<Self, IllegalEntry> {
        let Entry::Created { at, key, method, gone_is_done } = *entry else {
            return Err(illegal("an operation that does not begin with its creation"));
        };
        let (standing, key_since) = match key {
            KeyOrigin::Drawn | KeyOrigin::None => (Standing::Clean, None),
            // A moment yet to come cannot be when it was sent.
            KeyOrigin::Given { first_sent } => (Standing::Doubt, first_sent.map(|sent| sent.min(at))),
        };
        Ok(Self {
            key,
            method,
            gone_is_done,
            standing,
            latest: at,
            stepped_back: Duration::ZERO,
            key_since,
            knows_key: false,
            linked: false,
            resolved: None,
            version: 1,
            interrupted_until: Time::from_millis(0),
            attempts: 0,
            open: None,
            last: None,
            run: Run::starting(at),
        })
    }

    /// Adds one entry.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::engine::*;
    /// # let (at, policy) = (Time::from_millis, Policy::new());
    /// # let created = Entry::Created { at: at(0), key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false };
    /// # let started = Entry::Started { attempt: 1, kind: AttemptKind::First, timeout: Duration::from_secs(60), at: at(0) };
    /// let mut history = History::replay(&[created])?;
    /// history.apply(&started)?;
    /// assert_eq!(history.attempts(), 1);
    /// let twice = history.apply(&started).expect_err("one attempt at a time");
    /// assert_eq!(twice.to_string(), "entry 0 is illegal: a second attempt while one is open");
    /// assert_eq!(history.attempts(), 1);
    /// # Ok::<(), IllegalEntry>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`IllegalEntry`] if it cannot have happened now; the history is left as
    /// it was.
    pub fn apply(&mut self, entry: &Entry) -> Result<(), IllegalEntry> {
        let at = match *entry {
            Entry::Created { .. } => return Err(illegal("a second creation")),
            Entry::Resumed { at, .. } => self.resumed(at),
            Entry::Started { attempt, timeout, at, .. } => self.started(attempt, timeout, at)?,
            Entry::Ended { attempt, verdict, at, next_at } => self.attempt_ended(attempt, verdict, at, next_at)?,
            Entry::Interrupted { attempt, at } => self.interrupted(attempt, at)?,
            Entry::Stopped { reason, at } => self.stopped(reason, at)?,
            Entry::Amended { version, at } => self.amended(version, at)?,
            Entry::Resolved { effect, at, .. } => self.resolved(effect, at)?,
        };
        self.latest = self.latest.max(at);
        Ok(())
    }

    fn resumed(&mut self, at: Time) -> Time {
        self.stepped_back = self.stepped_back.max(self.latest.since(at));
        let at = at.max(self.latest);
        self.run = Run::starting(at);
        if let Some(open) = &mut self.open {
            open.orphaned = true;
        }
        if let Some(last) = &mut self.last {
            last.of_this_run = false;
        }
        at
    }

    fn started(&mut self, attempt: u32, timeout: Duration, at: Time) -> Result<Time, IllegalEntry> {
        if self.open.is_some() {
            return Err(illegal("a second attempt while one is open"));
        }
        if self.run.stopped.is_some() {
            return Err(illegal("an attempt after the run stopped"));
        }
        if self.end().is_some() {
            return Err(illegal("an attempt after the end"));
        }
        if self.must_not_be_repeated() {
            return Err(illegal("a repetition without a key of what may have been received"));
        }
        if Some(attempt) != self.attempts.checked_add(1) {
            return Err(illegal("an attempt whose number does not follow"));
        }
        self.attempts = attempt;
        self.open = Some(Open { attempt, timeout, at, orphaned: false });
        Ok(at)
    }

    fn attempt_ended(
        &mut self,
        attempt: u32,
        verdict: Verdict,
        at: Time,
        next_at: Option<Time>,
    ) -> Result<Time, IllegalEntry> {
        let open = self.close(attempt)?;
        if verdict.reach() != Reach::Unsent {
            self.key_since.get_or_insert(open.at);
        }
        self.standing = self.standing.after(verdict.reach());
        self.knows_key |= verdict.marked() || verdict.reach() == (Reach::Accepted { knows_key: true });
        self.linked |= verdict.linked();
        match budget_of(verdict) {
            Budget::Polls => {
                self.run.polls = self.run.polls.saturating_add(1);
                self.run.polling_since.get_or_insert(at);
            }
            Budget::Failures => self.run.failures = self.run.failures.saturating_add(1),
        }
        self.run.told_unauthorized |= verdict.why() == Why::Unauthorized;
        self.last = Some(Last { verdict, at, next_at, of_this_run: !open.orphaned });
        Ok(at)
    }

    fn interrupted(&mut self, attempt: u32, at: Time) -> Result<Time, IllegalEntry> {
        if self.open.is_some_and(|open| !open.orphaned) {
            return Err(illegal("an interruption by the owner itself"));
        }
        let open = self.close(attempt)?;
        self.key_since.get_or_insert(open.at);
        self.standing = self.standing.after(Reach::Ambiguous);
        self.last = None;
        self.interrupted_until = open.at.after(open.timeout);
        Ok(at)
    }

    fn stopped(&mut self, reason: StopReason, at: Time) -> Result<Time, IllegalEntry> {
        if self.open.is_some() {
            return Err(illegal("a stop while an attempt is open"));
        }
        if self.run.stopped.is_some() {
            return Err(illegal("a second stop"));
        }
        if self.end().is_some() {
            return Err(illegal("a stop after the end"));
        }
        self.run.stopped = Some(reason);
        Ok(at)
    }

    fn amended(&mut self, version: u32, at: Time) -> Result<Time, IllegalEntry> {
        if !self.may_be_amended() || self.run.stopped.is_some() || self.end().is_some() {
            return Err(illegal("an amendment of what may have been carried out"));
        }
        if Some(version) != self.version.checked_add(1) {
            return Err(illegal("an amendment whose version does not follow"));
        }
        self.version = version;
        self.last = None;
        Ok(at)
    }

    fn resolved(&mut self, effect: Effect, at: Time) -> Result<Time, IllegalEntry> {
        if self.open.is_some() {
            return Err(illegal("a resolution while an attempt is open"));
        }
        match (effect, self.standing) {
            (Effect::Unknown, _) => Err(illegal("a resolution that settles nothing")),
            (Effect::NotApplied, Standing::Applied) => Err(illegal("a resolution against a success on record")),
            (Effect::Applied, Standing::Bound) => Err(illegal("a resolution against a final refusal on record")),
            (Effect::NotApplied | Effect::Applied, _) => {
                self.resolved = Some(effect);
                Ok(at)
            }
        }
    }

    fn close(&mut self, attempt: u32) -> Result<Open, IllegalEntry> {
        match self.open {
            Some(open) if open.attempt == attempt => {
                self.open = None;
                Ok(open)
            }
            Some(_) => Err(illegal("the end of another attempt than the open one")),
            None => Err(illegal("the end of an attempt that is not open")),
        }
    }

    /// The entry for the end of the open attempt: its verdict settled against
    /// what came before, its delay drawn. Where none is open, one that
    /// [`apply`](Self::apply) refuses.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::engine::*;
    /// # let (at, policy) = (Time::from_millis, Policy::new());
    /// # let created = Entry::Created { at: at(0), key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false };
    /// # let started = Entry::Started { attempt: 1, kind: AttemptKind::First, timeout: Duration::from_secs(60), at: at(0) };
    /// let history = History::replay(&[created, started])?;
    /// // A 202, and nothing shows that the server knows the key: to ask again might be to order twice.
    /// let pending = Verdict::new(Reach::Accepted { knows_key: false }, Advice::Retry, Why::Pending);
    /// let ended = history.ended(pending, &policy, at(300), Draw::Entropy(0));
    /// let settled = pending.with_advice(Advice::Stop);
    /// assert_eq!(ended, Entry::Ended { attempt: 1, verdict: settled, at: at(300), next_at: None });
    /// # Ok::<(), IllegalEntry>(())
    /// ```
    pub fn ended(&self, verdict: Verdict, policy: &Policy, now: Time, draw: Draw) -> Entry {
        let verdict = self.settle(verdict, policy);
        let at = now.max(self.latest);
        let next_at = self.wait(verdict, policy, draw).map(|wait| at.after(wait));
        Entry::Ended { attempt: self.attempts, verdict, at, next_at }
    }

    /// Which budget the wait after this verdict comes from; `None` where no
    /// wait follows. What to hand to [`History::ended`] as its draw depends on it.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::engine::*;
    /// # let (at, policy) = (Time::from_millis, Policy::new());
    /// # let created = Entry::Created { at: at(0), key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false };
    /// # let started = Entry::Started { attempt: 1, kind: AttemptKind::First, timeout: Duration::from_secs(60), at: at(0) };
    /// let history = History::replay(&[created, started])?;
    /// let running = Verdict::new(Reach::Accepted { knows_key: true }, Advice::Retry, Why::InProgress);
    /// assert_eq!(history.budget(running, &policy), Some(Budget::Polls));
    /// let lost = Verdict::new(Reach::Ambiguous, Advice::Retry, Why::NoHead);
    /// assert_eq!(history.budget(lost, &policy), Some(Budget::Failures));
    /// assert_eq!(history.budget(lost.with_advice(Advice::Stop), &policy), None);
    /// # Ok::<(), IllegalEntry>(())
    /// ```
    pub fn budget(&self, verdict: Verdict, policy: &Policy) -> Option<Budget> {
        let verdict = self.settle(verdict, policy);
        (verdict.advice() != Advice::Stop).then(|| budget_of(verdict))
    }

    fn settle(&self, verdict: Verdict, policy: &Policy) -> Verdict {
        match (verdict.why(), verdict.reach()) {
            // Our bytes are the same each time, so an earlier attempt of ours may hold the key.
            (Why::KeyReused, Reach::Refused) if !(self.key == KeyOrigin::Drawn && self.attempts == 1) => {
                verdict.with_reach(Reach::Ambiguous)
            }
            // A server that ignores keys would carry it out once per poll.
            (Why::Pending, Reach::Accepted { knows_key }) => {
                if knows_key || self.knows_key {
                    verdict.with_reach(Reach::Accepted { knows_key: true })
                } else if verdict.linked() {
                    verdict
                } else {
                    verdict.with_advice(Advice::Stop)
                }
            }
            (Why::Unauthorized, Reach::Refused)
                if policy.authorizes && !self.run.told_unauthorized && verdict.advice() == Advice::Stop =>
            {
                verdict.with_advice(Advice::Retry)
            }
            _ => verdict,
        }
    }

    fn wait(&self, verdict: Verdict, policy: &Policy, draw: Draw) -> Option<Duration> {
        let named = match verdict.advice() {
            Advice::Stop => return None,
            Advice::Retry => None,
            Advice::RetryAfter(named) => Some(named),
        };
        let entropy = match draw {
            Draw::Entropy(bits) => bits,
            // The middle of a poll's interval.
            Draw::Delay(_) | Draw::GiveUp => u64::MAX / 2,
        };
        let own = match budget_of(verdict) {
            Budget::Polls => delay::before_poll(policy, self.run.polls.saturating_add(1), entropy),
            Budget::Failures => match draw {
                Draw::Entropy(bits) => delay::after_failure(policy, self.run.failures.saturating_add(1), bits),
                Draw::Delay(delay) => delay,
                Draw::GiveUp => return None,
            },
        };
        let own = own.max(policy.min_delay);
        Some(named.map_or(own, |named| delay::at_least(named, own, entropy.rotate_left(32))))
    }

    /// Did it take effect, as far as these entries tell? An attempt that is
    /// open counts as in doubt; a safe method never takes effect.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::engine::*;
    /// # let (at, policy) = (Time::from_millis, Policy::new());
    /// # let created = Entry::Created { at: at(0), key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false };
    /// # let started = Entry::Started { attempt: 1, kind: AttemptKind::First, timeout: Duration::from_secs(60), at: at(0) };
    /// let mut history = History::replay(&[created, started])?;
    /// assert_eq!(history.effect(), Effect::Unknown, "it is on its way");
    ///
    /// let refused = Verdict::new(Reach::Refused, Advice::Stop, Why::Refusal);
    /// history.apply(&history.ended(refused, &policy, at(300), Draw::Entropy(0)))?;
    /// assert_eq!(history.effect(), Effect::NotApplied);
    /// # Ok::<(), IllegalEntry>(())
    /// ```
    pub const fn effect(&self) -> Effect {
        if matches!(self.method, MethodKind::Safe) {
            return Effect::NotApplied;
        }
        if let Some(effect) = self.resolved {
            return effect;
        }
        match self.open {
            Some(_) => self.standing.after(Reach::Ambiguous).effect(),
            None => self.standing.effect(),
        }
    }

    /// The same, where somebody else may have sent the key too: then only what
    /// the idempotency layer bound is certain not to have been carried out.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::engine::*;
    /// # let (at, policy) = (Time::from_millis, Policy::new());
    /// # let created = Entry::Created { at: at(0), key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false };
    /// let history = History::replay(&[created])?;
    /// assert_eq!(history.effect_with(false), Effect::NotApplied);
    /// // A clone of its key was used elsewhere meanwhile.
    /// assert_eq!(history.effect_with(true), Effect::Unknown);
    /// # Ok::<(), IllegalEntry>(())
    /// ```
    pub const fn effect_with(&self, contested: bool) -> Effect {
        match (self.effect(), self.method, self.standing) {
            (Effect::NotApplied, MethodKind::Idempotent | MethodKind::Other, Standing::Clean)
                if contested && self.resolved.is_none() =>
            {
                Effect::Unknown
            }
            (effect, _, _) => effect,
        }
    }

    /// Why the attempt that is started next is made.
    pub(super) fn next_kind(&self) -> AttemptKind {
        match &self.last {
            _ if self.attempts == 0 => AttemptKind::First,
            Some(last) if budget_of(last.verdict) == Budget::Polls => AttemptKind::Poll,
            Some(_) | None => AttemptKind::Retry,
        }
    }

    /// Without a key, a method that is not idempotent is sent again only if
    /// nothing of it can have been received.
    pub(super) fn must_not_be_repeated(&self) -> bool {
        self.key == KeyOrigin::None
            && self.method == MethodKind::Other
            && self.standing != Standing::Clean
            && !self.linked
    }
}

pub(super) const fn budget_of(verdict: Verdict) -> Budget {
    if verdict.is_polled() { Budget::Polls } else { Budget::Failures }
}

/// An entry that cannot have happened after those before it: the record is
/// damaged, or was written by something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IllegalEntry {
    position: usize,
    problem: &'static str,
}

const fn illegal(problem: &'static str) -> IllegalEntry {
    IllegalEntry { position: 0, problem }
}

impl IllegalEntry {
    /// Its position among the entries replayed, from 0; 0 for a single entry.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use oncekey::engine::*;
    /// # let (at, policy) = (Time::from_millis, Policy::new());
    /// # let created = Entry::Created { at: at(0), key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false };
    /// # let started = Entry::Started { attempt: 1, kind: AttemptKind::First, timeout: Duration::from_secs(60), at: at(0) };
    /// let torn = History::replay(&[created, started.clone(), started]).expect_err("the end of the first is not on record");
    /// assert_eq!(torn.position(), 2);
    /// assert_eq!(torn.to_string(), "entry 2 is illegal: a second attempt while one is open");
    /// # Ok::<(), IllegalEntry>(())
    /// ```
    pub const fn position(&self) -> usize {
        self.position
    }
}

impl fmt::Display for IllegalEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "entry {} is illegal: {}", self.position, self.problem)
    }
}

impl core::error::Error for IllegalEntry {}
