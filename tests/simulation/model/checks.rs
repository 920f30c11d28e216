use std::time::Duration;

use oncekey::engine::{Advice, AttemptKind, Effect, Entry, MethodKind, Outcome, Reach, Why};

use super::Sim;
use super::faults::Fault;
use super::network::{LIMITED, Sent, TURNED};
use super::plan::{Call, Key, Pending};
use super::process::Token;
use super::truth::{Property, Told};

pub(super) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

impl Sim<'_> {
    pub(super) fn violate(&mut self, property: Property) {
        self.truth.violated[property as usize] = true;
        if self.truth.worst.is_none() {
            self.truth.worst = Some(property);
            self.note(|_| format!("*** {property:?} does not hold"));
        }
    }

    /// What must hold of every send, right before its bytes leave.
    pub(super) fn check_send(&mut self, timeout: u64) -> u32 {
        let mut number = 0;
        match self.record.last() {
            Some(Entry::Started { attempt, kind, .. }) if *attempt > self.sent_attempt => {
                number = *attempt;
                if *kind == AttemptKind::Poll && !self.evidence {
                    self.violate(Property::Evidence);
                }
            }
            _ => self.violate(Property::Recorded),
        }
        if self.next_poll > self.process.polls_until && self.process.polls_until.is_some() {
            self.violate(Property::Budget);
        }
        self.note(|_| format!("sends attempt {number}, for at most {timeout} ms"));
        self.sent_attempt = number;
        if self.over {
            self.violate(Property::Over);
        }
        if self.pending_unproven {
            self.violate(Property::Evidence);
        }
        if self.process.prepared != number {
            self.violate(Property::Hook);
        }
        let reading = self.reading();
        if self.not_before.is_some_and(|time| reading < time) {
            self.violate(Property::NamedWait);
        }
        if reading + timeout > self.process.since + self.plan.limits.deadline {
            self.violate(Property::Budget);
        }
        if let Some((first, first_read)) = self.truth.first.filter(|_| self.plan.call != Call::Get) {
            let lifetime = self.plan.limits.lifetime;
            if self.time + timeout > first + lifetime {
                self.violate(Property::Lifetime);
            }
            if reading + timeout + self.plan.limits.margin() > first_read + lifetime {
                self.violate(Property::Margin);
            }
        }
        self.decide(timeout)
    }

    /// What is decided of this send, for all of its copies.
    fn decide(&mut self, timeout: u64) -> u32 {
        let dialect = self.dialect();
        let turned = if self.fault(Fault::Turned) {
            let shape = self.rng.pick(TURNED);
            let may_be_gone = self.plan.call == (Call::Delete { gone_is_done: true }) && shape.status == 404;
            (!may_be_gone).then_some(shape)
        } else if dialect.limits_before_work && self.fault(Fault::Limited) {
            Some(LIMITED[0])
        } else if self.process.token != Token::Good {
            Some(TURNED[0])
        } else {
            None
        };
        let refused = self.rng.percent(self.plan.habits.refuses).then(|| self.rng.pick(dialect.refusals));
        self.sends.push(Sent { timeout, turned, refused, executed: false });
        u32::try_from(self.sends.len() - 1).unwrap_or(u32::MAX)
    }

    pub(super) fn first_may_have_been_received(&mut self) {
        if self.truth.first.is_none() {
            self.truth.first = Some((self.time, self.reading()));
            if matches!(self.plan.key, Key::Given { told: false, .. }) {
                self.server.remembers_until(self.time + self.plan.habits.remembers);
            }
        }
    }

    /// What must hold of every entry.
    pub(super) fn keep(&mut self, entry: &Entry) {
        self.note(|_| format!("records {}", super::trace::entry(entry)));
        self.record.push(entry.clone());
        match entry {
            Entry::Ended { attempt, verdict, at, next_at } => {
                if verdict.reach() == (Reach::Accepted { knows_key: true }) {
                    let limit = Duration::from_millis(self.plan.limits.poll_limit);
                    self.process.polls_until.get_or_insert_with(|| at.after(limit));
                    self.next_poll = *next_at;
                } else {
                    self.next_poll = None;
                    self.process.failures += 1;
                }
                if self.process.failures > self.plan.limits.attempts {
                    self.violate(Property::Budget);
                }
                self.over = match verdict.reach() {
                    Reach::Applied | Reach::Rejected => true,
                    Reach::Ambiguous | Reach::Accepted { .. } => verdict.advice() == Advice::Stop,
                    _ => false,
                };
                let first_of_drawn = *attempt == 1 && self.plan.key == Key::Drawn;
                let is_refusal = matches!(verdict.reach(), Reach::Refused | Reach::Rejected);
                if verdict.why() == Why::KeyReused && is_refusal && !first_of_drawn {
                    self.violate(Property::Reused);
                }
                let heard = std::mem::take(&mut self.process.heard);
                self.not_before = heard.not_before;
                self.pending_unproven = heard.pending && !self.evidence;
                self.truth.final_word = heard.done;
            }
            Entry::Interrupted { .. } => {
                (self.not_before, self.pending_unproven, self.next_poll) = (None, false, None);
            }
            _ => {}
        }
    }

    /// A request is carried out.
    pub(super) fn executed(&mut self, send: u32) {
        self.note(|_| format!("send {send} is CARRIED OUT"));
        if let Some(sent) = self.sends.get_mut(usize::try_from(send).unwrap_or(0)) {
            sent.executed = true;
        }
        match self.plan.call {
            Call::Get => {
                self.truth.read = true;
                return;
            }
            Call::Post if !self.truth.executions.is_empty() => self.violate(Property::Once),
            Call::PostWithoutKey if self.truth.executions.iter().any(|other| *other != send) => {
                self.violate(Property::Keyless);
            }
            Call::Post | Call::PostWithoutKey | Call::Put | Call::Delete { .. } => {}
        }
        if send < self.truth.disclaimed {
            self.violate(Property::NotApplied);
        }
        self.truth.executions.push(send);
    }

    /// What the caller is told, or would be told of the record as it is.
    pub(super) fn claim(&mut self, effect: Effect, outcome: Option<Outcome>) {
        self.note(|_| format!("the caller is told: {}, {}", effect.as_str(), super::trace::outcome(outcome)));
        self.truth.told = Some(match (outcome, effect) {
            (Some(Outcome::Applied), _) => Told::Ok,
            (_, Effect::NotApplied) => Told::NotApplied,
            (_, Effect::Applied) => Told::Applied,
            (_, Effect::Unknown) => Told::Unknown,
        });
        let safe = self.plan.call.method() == MethodKind::Safe;
        let done = !self.truth.executions.is_empty() || (self.server.gone && self.is_delete());
        if outcome == Some(Outcome::Applied) && !(self.truth.final_word && if safe { self.truth.read } else { done }) {
            self.violate(Property::Ok);
        }
        match effect {
            Effect::NotApplied if !safe => {
                if !self.truth.executions.is_empty() {
                    self.violate(Property::NotApplied);
                }
                self.truth.disclaimed = u32::try_from(self.sends.len()).unwrap_or(u32::MAX);
            }
            Effect::Applied if !done => self.violate(Property::Applied),
            Effect::NotApplied | Effect::Applied | Effect::Unknown => {}
        }
        let reached = |wanted: fn(Reach) -> bool| {
            self.record.iter().any(|entry| matches!(entry, Entry::Ended { verdict, .. } if wanted(verdict.reach())))
        };
        let contradiction = reached(|reach| reach == Reach::Rejected)
            && reached(|reach| matches!(reach, Reach::Applied | Reach::AppliedUnread));
        if contradiction && !safe && (effect != Effect::Unknown || outcome == Some(Outcome::Applied)) {
            self.violate(Property::Contradiction);
        }
    }

    /// Nothing went wrong: then it is as if there were no such thing as going wrong.
    pub(super) fn check_plain(&mut self, effect: Effect, outcome: Outcome) {
        let given = matches!(self.plan.key, Key::Given { .. });
        if self.faults > 0 || given || self.plan.habits.pending != Pending::Never || self.broken.is_some() {
            return;
        }
        let absent = !self.plan.habits.exists && self.plan.call == (Call::Delete { gone_is_done: false });
        let refused = self.sends.get(1).is_none_or(|sent| sent.refused.is_some());
        let holds = match outcome {
            Outcome::Applied => !refused && !absent,
            _ => (refused || absent) && effect == Effect::NotApplied,
        };
        if !holds {
            self.violate(Property::Plain);
        }
    }

    fn is_delete(&self) -> bool {
        matches!(self.plan.call, Call::Delete { .. })
    }
}
