use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use oncekey::driver;
use oncekey::engine::{Effect, Entry, History, Outcome, Owner, Time};

use super::assumptions::Assumption;
use super::faults::Fault;
use super::network::Sent;
use super::plan::{Key, Plan};
use super::process::{Death, Process, Token};
use super::rng::Rng;
use super::truth::{Property, Truth};
use super::{Options, START, Sim};

impl Sim<'_> {
    /// One operation, from its creation through all lives of the process that
    /// carries it, until the last message is delivered and the server is idle.
    pub(crate) fn run(&mut self, seed: u64, options: Options) -> &Truth {
        self.reset(seed, options);
        self.create();
        let lives = self.plan.lives.min(options.most_lives);
        for life in 0..lives {
            if life > 0 {
                self.go_away(life);
            }
            let Ok(mut history) = History::replay(&self.record) else {
                self.violate(Property::Legal);
                break;
            };
            self.begin_life();
            let finished = self.live(&mut history);
            if self.truth.violated[Property::Ends as usize] || self.truth.violated[Property::Legal as usize] {
                break;
            }
            let folded = History::replay(&self.record);
            match finished {
                Some(outcome) => {
                    if folded.as_ref() != Ok(&history) {
                        self.violate(Property::Replay);
                    }
                    self.claim(history.effect(), Some(outcome));
                    if life == 0 {
                        self.check_plain(history.effect(), outcome);
                    }
                    let again = if history.effect() == Effect::Unknown { 60 } else { 20 };
                    if !self.rng.percent(again) {
                        break;
                    }
                }
                None => match folded {
                    Ok(folded) => self.claim(folded.effect(), None),
                    Err(_) => self.violate(Property::Legal),
                },
            }
        }
        self.process.listening = None;
        self.advance(u64::MAX, None);
        &self.truth
    }

    /// The same, written down.
    pub(crate) fn traced(&mut self, seed: u64, options: Options) -> (Truth, Vec<String>) {
        self.trace.on = true;
        let truth = self.run(seed, options).clone();
        self.trace.on = false;
        (truth, std::mem::take(&mut self.trace.lines))
    }

    fn reset(&mut self, seed: u64, options: Options) {
        self.rng = Rng::new(seed);
        self.options = options;
        self.broken = options.broken;
        self.plan = Plan::draw(&mut self.rng, &self.kit.dialects, options.broken);
        self.time = START;
        self.chances = 0;
        self.faults = 0;
        self.events.clear();
        self.numbered = 0;
        self.sends.clear();
        self.sends.push(Sent::BEFORE);
        self.server.reset();
        self.record.clear();
        self.sent_attempt = 0;
        self.evidence = false;
        self.pending_unproven = false;
        self.not_before = None;
        self.next_poll = None;
        self.over = false;
        self.truth.reset();
        self.process = Process::new(0, START);
        self.note(|sim| super::trace::plan(sim.dialect().name, &sim.plan));
    }

    fn create(&mut self) {
        if self.fault(Fault::ClockForward) {
            self.process.offset = self.rng.span(1000, self.plan.limits.lifetime).cast_signed();
        }
        self.process.since = self.reading();
        let mut first_sent = START;
        if let Key::Given { ago, told, .. } = self.plan.key {
            let said = if self.broken == Some(Assumption::GivenKeys) { ago / 8 } else { ago };
            first_sent = (START - said).saturating_add_signed(self.process.offset);
            self.truth.first = told.then_some((START - ago, first_sent));
        }
        self.serve_before();
        self.keep(&Entry::Created {
            at: Time::from_millis(self.reading()),
            key: self.plan.origin(first_sent),
            method: self.plan.call.method(),
            gone_is_done: self.plan.call == super::plan::Call::Delete { gone_is_done: true },
        });
    }

    fn begin_life(&mut self) {
        if self.fault(Fault::Crash) {
            let number = 1 + u32::try_from(self.rng.below(5)).unwrap_or(0);
            self.process.dies = match self.rng.below(4) {
                0 => Death::Recording { number, kept: true },
                1 => Death::Recording { number, kept: false },
                2 => Death::Sending { number: 1 + number / 2 },
                _ => Death::At(self.time + self.rng.span(1, self.plan.limits.deadline)),
            };
        }
        if self.fault(Fault::TokenStale) {
            self.process.token = if self.plan.habits.locked_out { Token::Revoked } else { Token::Stale };
        }
    }

    /// Asks the driver's loop once: it goes on until it ends or waits for ever, dead.
    fn live(&mut self, history: &mut History) -> Option<Outcome> {
        let policy = self.plan.policy();
        let polled = catch_unwind(AssertUnwindSafe(|| {
            let future = pin!(driver::run(self, history, &policy));
            future.poll(&mut Context::from_waker(Waker::noop()))
        }));
        match polled {
            Ok(Poll::Ready(Ok(outcome))) if !self.process.dead => Some(outcome),
            Ok(_) => None,
            Err(_) => {
                if !self.truth.violated[Property::Ends as usize] {
                    self.violate(Property::Legal);
                }
                None
            }
        }
    }

    /// The process is gone; another one takes up, later, by its own wall clock.
    fn go_away(&mut self, life: u32) {
        if self.process.dead {
            self.lose_entries();
        }
        let longest = 2 * self.plan.limits.lifetime;
        let long = self.fault(Fault::LongAway);
        let away = self.rng.span(1, if long { longest } else { 60_000 });
        self.process.dies = Death::Never;
        self.pass(away);
        let latest = History::replay(&self.record).map_or(0, |history| history.latest().as_millis());
        let offset = self.set_clock(latest);
        let wall = self.time.saturating_add_signed(offset);
        self.process = Process { offset, lift: latest.saturating_sub(wall), ..Process::new(life, 0) };
        self.process.since = self.reading();
        self.keep(&Entry::Resumed { owner: Owner::new(u128::from(life)), at: Time::from_millis(wall) });
        #[cfg(feature = "journal")]
        self.read_back();
    }

    /// In one of many runs the record is what a file gives back.
    #[cfg(feature = "journal")]
    fn read_back(&mut self) {
        use oncekey::journal::codec::{decode_entry, encode_entry};
        if self.time.is_multiple_of(64) {
            let read = self.record.iter().map(|entry| decode_entry(&encode_entry(entry)).expect("it was just written"));
            self.record = read.collect();
        }
    }

    fn lose_entries(&mut self) {
        if self.broken == Some(Assumption::RecordKept) {
            let lost = usize::try_from(self.rng.between(0, 3)).unwrap_or(0);
            let kept = self.record.len().saturating_sub(lost).max(1);
            self.record.truncate(kept);
            self.note(|_| format!("the last {lost} entries are lost"));
        } else if matches!(self.record.last(), Some(Entry::Ended { .. }))
            && self.plan.is_keyed()
            && self.fault(Fault::UnflushedEnd)
        {
            self.record.pop();
            self.pending_unproven = false;
            self.not_before = None;
            self.next_poll = None;
            self.over = false;
            self.note(|_| "the end was never flushed".to_owned());
        }
    }

    /// How far the wall clock is ahead when a process takes up.
    fn set_clock(&mut self, latest: u64) -> i64 {
        let limits = self.plan.limits;
        let offset = self.process.offset;
        let unseen = limits.margin() * self.plan.clock_share / 100;
        if self.fault(Fault::ClockForward) {
            return offset.saturating_add_unsigned(self.rng.span(1000, limits.lifetime));
        }
        if !self.fault(Fault::ClockBack) {
            return offset;
        }
        if self.broken == Some(Assumption::Clock) {
            // As if hardly any time had passed.
            let after = self.rng.between(0, limits.margin());
            return offset.min((latest + after).cast_signed() - self.time.cast_signed());
        }
        if self.rng.percent(50) {
            // Further back than the margin covers, and seen to be.
            let behind = limits.margin() + self.rng.span(1, limits.lifetime);
            return latest.saturating_sub(behind).cast_signed() - self.time.cast_signed();
        }
        let ahead =
            self.truth.first.map_or(offset, |(first, first_read)| first_read.cast_signed() - first.cast_signed());
        ahead - self.rng.between(0, unseen).cast_signed()
    }
}
