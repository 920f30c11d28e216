use core::fmt;
use core::time::Duration;

use super::delay::{self, Budget, Draw};
use super::effect::{Effect, Standing};
use super::entry::{AttemptKind, Entry, KeyOrigin, MethodKind, StopReason};
use super::next::Outcome;
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
    gone_is_done: bool,
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
    version: u32,
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
    /// what came before (rules 6b, 9 and 15), its delay drawn.
    pub fn ended(&self, verdict: Verdict, policy: &Policy, now: Time, draw: Draw) -> Entry {
        let verdict = self.settle(verdict, policy);
        let at = now.max(self.latest);
        let next_at = self.wait(verdict, policy, draw).map(|wait| at.after(wait));
        Entry::Ended { attempt: self.attempts, verdict, at, next_at }
    }

    /// Which budget the wait after this verdict comes from; `None` where no
    /// wait follows. What to hand to [`History::ended`] as its draw depends on it.
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

    /// How many attempts were started, over all runs.
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// The number of the attempt that was started and has not ended.
    pub fn open_attempt(&self) -> Option<u32> {
        self.open.map(|open| open.attempt)
    }

    /// The largest moment of any entry. An operation's clock starts no earlier.
    pub const fn latest(&self) -> Time {
        self.latest
    }

    /// When the key's life began: the first attempt that may have been received,
    /// one that is on its way included.
    pub const fn key_since(&self) -> Option<Time> {
        match (self.key_since, &self.open) {
            (None, Some(open)) => Some(open.at),
            (since, _) => since,
        }
    }

    /// When the next attempt may be sent, where the last verdict left that open.
    pub const fn next_at(&self) -> Option<Time> {
        match &self.last {
            Some(last) => last.next_at,
            None => None,
        }
    }

    /// When the same operation may be tried again, where something asks for a
    /// wait: the last verdict, or an attempt whose owner died and which another
    /// must not overlap.
    pub fn resume_at(&self, policy: &Policy) -> Option<Time> {
        match &self.last {
            Some(last) => last.next_at,
            None => (!policy.overlap_is_safe && self.interrupted_until > self.latest).then_some(self.interrupted_until),
        }
    }

    /// What is left of the run's time.
    pub fn left(&self, policy: &Policy, now: Time) -> Duration {
        self.run.since.after(policy.deadline).since(now.max(self.latest))
    }

    /// Whether the run is over: it ended, or gave up, or was settled by hand.
    pub fn is_over(&self) -> bool {
        self.run.stopped.is_some() || self.end().is_some()
    }

    /// Whether nothing is left to be asked: its answer came, or it was settled,
    /// or the run is over without effect.
    pub fn is_settled(&self) -> bool {
        match self.end() {
            Some(Outcome::Applied | Outcome::Resolved(_)) => true,
            Some(Outcome::Ended(_) | Outcome::Stopped(_) | Outcome::Contradicted) | None => {
                self.is_over() && self.effect() == Effect::NotApplied
            }
        }
    }

    /// The last attempt's verdict, unless nobody saw its end.
    pub const fn last_verdict(&self) -> Option<Verdict> {
        match &self.last {
            Some(last) => Some(last.verdict),
            None => None,
        }
    }

    /// Whether it is asked after at a status resource: the request itself is
    /// never sent again.
    pub const fn is_linked(&self) -> bool {
        self.linked
    }

    /// The version of the request, from 1.
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// Whether the request may be corrected under the same key, on an API that
    /// releases keys on errors: it was turned away, and nothing is in doubt.
    pub fn may_be_amended(&self) -> bool {
        let refused = self.last.is_some_and(|last| last.verdict.reach() == Reach::Refused);
        self.open.is_none()
            && refused
            && self.standing == Standing::Clean
            && self.resolved.is_none()
            && self.key == KeyOrigin::Drawn
    }

    /// Whether "it is gone" counts as done, for a DELETE.
    pub const fn gone_is_done(&self) -> bool {
        self.gone_is_done
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
    match verdict.reach() {
        Reach::Accepted { knows_key: true } => Budget::Polls,
        Reach::Accepted { knows_key: false } if verdict.linked() => Budget::Polls,
        Reach::Unsent
        | Reach::Refused
        | Reach::Ambiguous
        | Reach::Accepted { knows_key: false }
        | Reach::AppliedUnread
        | Reach::Applied
        | Reach::Rejected => Budget::Failures,
    }
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
