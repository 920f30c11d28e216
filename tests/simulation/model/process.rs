use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

use http::{Method, StatusCode};
use oncekey::driver::World;
use oncekey::engine::{Budget, Draw, Entry, History, Policy, StopReason, Time, Verdict};
use oncekey::profile::{Answer, Asked, Exchange, Extent};

use super::Sim;
use super::answers::{Says, WAITS};
use super::assumptions::Assumption;
use super::checks::millis;
use super::faults::Fault;
use super::network::Got;
use super::plan::Call;
use super::truth::Property;

/// A process that carries the operation for a while, then ends or dies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Process {
    pub(super) life: u32,
    pub(super) dead: bool,
    pub(super) dies: Death,
    /// How far its wall clock is ahead of the true time.
    pub(super) offset: i64,
    /// What is added so that the operation's clock starts no earlier than its entries.
    pub(super) lift: u64,
    /// The operation's clock when this life began.
    pub(super) since: u64,
    pub(super) token: Token,
    /// The attempt that the hook was last run for.
    pub(super) prepared: u32,
    pub(super) last_status: u16,
    pub(super) records: u32,
    pub(super) sends: u32,
    pub(super) failures: u32,
    /// When its polling must have ended.
    pub(super) polls_until: Option<Time>,
    pub(super) steps: u32,
    /// The send whose answer it waits for.
    pub(super) listening: Option<u32>,
    pub(super) heard: Heard,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Good,
    Stale,
    Revoked,
}

/// Where a process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Death {
    Never,
    At(u64),
    /// At its so many-th entry, which was written or not.
    Recording {
        number: u32,
        kept: bool,
    },
    /// Before its so many-th send leaves.
    Sending {
        number: u32,
    },
}

/// What the last answer truly said.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Heard {
    /// When the wait that it named is over, if what it said is that one may come again.
    pub(super) not_before: Option<u64>,
    pub(super) pending: bool,
    pub(super) done: bool,
}

impl Process {
    pub(super) const fn new(life: u32, since: u64) -> Self {
        Self {
            life,
            dead: false,
            dies: Death::Never,
            offset: 0,
            lift: 0,
            since,
            token: Token::Good,
            prepared: 0,
            last_status: 0,
            records: 0,
            sends: 0,
            failures: 0,
            polls_until: None,
            steps: 0,
            listening: None,
            heard: Heard { not_before: None, pending: false, done: false },
        }
    }
}

/// A run that does more than this has no end.
const MOST_STEPS: u32 = 20_000;

impl World for Sim<'_> {
    type Broken = Infallible;

    fn now(&mut self) -> Time {
        self.process.steps += 1;
        if self.process.steps > MOST_STEPS {
            self.violate(Property::Ends);
            // Quietly out of a loop that would not come back.
            std::panic::resume_unwind(Box::new(()));
        }
        Time::from_millis(self.reading())
    }

    async fn sleep(&mut self, wait: Duration) {
        if self.rest(wait) {
            pending::<()>().await;
        }
    }

    async fn prepare(&mut self, attempt: u32, limit: Duration) -> Result<(), StopReason> {
        match self.authorize(attempt, limit) {
            Some(outcome) => outcome,
            None => pending().await,
        }
    }

    async fn send(&mut self, timeout: Duration) -> Verdict {
        match self.exchange(millis(timeout)) {
            Some(got) => self.read(got),
            None => pending().await,
        }
    }

    fn draw(&mut self, budget: Option<Budget>) -> Draw {
        match budget {
            None => Draw::Entropy(0),
            Some(Budget::Failures) if self.plan.own_schedule => match self.rng.below(8) {
                0 => Draw::GiveUp,
                _ => Draw::Delay(Duration::from_millis(self.rng.span(1, 10_000))),
            },
            Some(_) => Draw::Entropy(self.rng.next()),
        }
    }

    async fn record(&mut self, entry: &Entry, _: &History, _: &Policy) -> Result<(), Infallible> {
        if self.fault(Fault::SlowDisk) {
            let takes = self.rng.span(10, 600_000);
            if self.pass(takes) {
                return pending().await;
            }
        }
        self.process.records += 1;
        match self.process.dies {
            Death::Recording { number, kept } if number == self.process.records => {
                if kept {
                    self.keep(entry);
                }
                self.die();
                pending().await
            }
            _ => {
                self.keep(entry);
                Ok(())
            }
        }
    }
}

impl Sim<'_> {
    /// The operation's clock.
    pub(super) fn reading(&self) -> u64 {
        self.time.saturating_add_signed(self.process.offset).saturating_add(self.process.lift)
    }

    pub(super) fn die(&mut self) {
        self.note(|_| "the process dies".to_owned());
        self.process.dead = true;
        self.process.listening = None;
    }

    /// Time passes; whether the process died meanwhile.
    pub(super) fn pass(&mut self, wait: u64) -> bool {
        let until = self.time.saturating_add(wait);
        let dies = match self.process.dies {
            Death::At(time) => time,
            _ => u64::MAX,
        };
        self.advance(until.min(dies), None);
        self.time = self.time.max(until.min(dies));
        if dies <= until {
            self.die();
        }
        self.process.dead
    }

    fn rest(&mut self, wait: Duration) -> bool {
        if self.process.dead {
            return true;
        }
        self.note(|_| format!("waits {wait:?}"));
        let mut wait = millis(wait);
        if self.fault(Fault::Suspend) {
            wait = wait.saturating_add(self.suspended());
        }
        if self.fault(Fault::ClockForward) {
            let step = self.rng.span(1000, self.plan.limits.lifetime);
            self.note(|_| format!("the wall clock goes {step} ms forward"));
            self.process.offset = self.process.offset.saturating_add_unsigned(step);
        }
        self.pass(wait)
    }

    fn suspended(&mut self) -> u64 {
        let span = self.rng.span(100, 2 * self.plan.limits.lifetime);
        self.note(|_| format!("the machine is suspended for {span} ms"));
        span
    }

    /// `None`: it died meanwhile.
    fn authorize(&mut self, attempt: u32, limit: Duration) -> Option<Result<(), StopReason>> {
        if self.process.dead {
            return None;
        }
        self.process.prepared = attempt;
        if !self.plan.hook {
            return Some(Ok(()));
        }
        let takes = if self.fault(Fault::HookSlow) { self.rng.span(100, 2 * millis(limit)) } else { 0 };
        if self.pass(takes.min(millis(limit))) {
            return None;
        }
        if takes > millis(limit) || self.fault(Fault::HookFails) {
            return Some(Err(StopReason::Authorize));
        }
        if self.process.last_status == 401 && self.process.token == Token::Stale {
            self.process.token = Token::Good;
        }
        Some(Ok(()))
    }

    /// One exchange; `None`: it died meanwhile.
    fn exchange(&mut self, timeout: u64) -> Option<Got> {
        if self.process.dead {
            return None;
        }
        self.process.sends += 1;
        if (Death::Sending { number: self.process.sends }) == self.process.dies {
            self.die();
            return None;
        }
        let send = self.check_send(timeout);
        self.process.heard = Heard::default();
        self.process.last_status = 0;
        if self.fault(Fault::ConnectRefused) {
            return self.refuse(send, timeout);
        }
        self.first_may_have_been_received();
        self.process.listening = Some(send);
        self.launch(send, timeout);
        let (now, until) = (self.time, self.time + timeout);
        let dies = match self.process.dies {
            Death::At(time) => time.max(now),
            _ => u64::MAX,
        };
        let mut got = self.advance(until.min(dies), Some(send));
        if got.is_none() {
            self.time = self.time.max(until.min(dies));
            if dies <= until {
                self.die();
                return None;
            }
        }
        if self.fault(Fault::Suspend) {
            // What came just before may be lost with the connection.
            let span = self.suspended();
            if self.pass(span) {
                return None;
            }
            got = got.filter(|_| self.rng.percent(50));
        }
        self.process.listening = None;
        Some(got.unwrap_or(Got::NoHead))
    }

    fn refuse(&mut self, send: u32, timeout: u64) -> Option<Got> {
        if self.broken == Some(Assumption::RefusedUnsent) {
            self.launch(send, timeout);
        }
        let takes = self.rng.span(1, 10_000).min(timeout / 2);
        if self.pass(takes) {
            return None;
        }
        let hopeless = self.rng.percent(10);
        Some(Got::Unsent { hopeless })
    }

    fn read(&mut self, got: Got) -> Verdict {
        let dialect = self.dialect();
        let asked = Asked::new(method(self.plan.call), &self.kit.asked)
            .with_key(self.plan.is_keyed().then_some("3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506"))
            .gone_is_done(self.plan.call == Call::Delete { gone_is_done: true });
        let verdict = match got {
            Got::Unsent { hopeless } => dialect.profile.read(&asked, &Exchange::Unsent { hopeless }),
            Got::NoHead => dialect.profile.read(&asked, &Exchange::NoHead),
            Got::Answer(answer) => {
                let status = StatusCode::from_u16(answer.shape.status).expect("shapes have real statuses");
                let body = &answer.shape.body.as_bytes()[..answer.len];
                let read = Answer::new(status, dialect.library.of(&answer), body)
                    .with_extent(answer.extent)
                    .received(Time::from_millis(self.reading()));
                dialect.profile.read(&asked, &Exchange::Answered(read))
            }
        };
        self.hear(&got);
        self.note(|_| format!("gets {}, reads it as: {verdict}, {:?}", super::trace::told(&got), verdict.advice()));
        verdict
    }

    fn hear(&mut self, got: &Got) {
        let Got::Answer(answer) = got else {
            return;
        };
        let (says, whole) = (answer.shape.says, answer.is_all_there());
        self.process.last_status = answer.shape.status;
        if self.plan.is_keyed() && (answer.mark > 0 || (says == Says::InProgress && whole)) {
            self.evidence = true;
        }
        let gone = self.plan.call == Call::Delete { gone_is_done: true } && matches!(answer.shape.status, 404 | 410);
        let may_come_again = match says {
            Says::Refusal | Says::Vague | Says::Reused | Says::Already => false,
            Says::Page => answer.shape.status >= 500,
            Says::Done | Says::Pending | Says::InProgress | Says::Error | Says::Later => true,
        } && answer.extent != Extent::TooLarge;
        let is_told_no = answer.again == 2 || answer.mark > 0;
        let named = WAITS[answer.wait].1.filter(|_| may_come_again && !is_told_no);
        self.process.heard = Heard {
            not_before: named.map(|wait| self.reading().saturating_add(wait)),
            pending: says == Says::Pending && whole,
            done: says == Says::Done || gone,
        };
    }
}

const fn method(call: Call) -> &'static Method {
    match call {
        Call::Post | Call::PostWithoutKey => &Method::POST,
        Call::Put => &Method::PUT,
        Call::Delete { .. } => &Method::DELETE,
        Call::Get => &Method::GET,
    }
}
