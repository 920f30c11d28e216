//! Every sequence of up to five attempts over the classes of verdicts, with a
//! crash and a resume possible at every entry, through the real engine, against
//! a statement of its own of what the truth allows.
//!
//! `ONCEKEY_CRASHES=2 cargo test --release --test decisions every_sequence` lets
//! a process die twice in a run.

use std::time::Duration;

use oncekey::engine::{
    Action, Advice, Draw, Effect, Entry, History, KeyOrigin, MethodKind, Outcome, Owner, Policy, Reach, StopReason,
    Time, Verdict, Why,
};

use crate::trace::*;

const LONGEST: u32 = 5;

/// Every pair of reach and advice that the rules give, with each reason that
/// the engine treats in its own way.
const CLASSES: [Verdict; 18] = [
    REFUSED,
    HOPELESS,
    LIMITED_FIRST,
    INVALID,
    UNAUTHORIZED,
    REUSED,
    TIMEOUT,
    ERROR_503.with_advice(Advice::RetryAfter(Duration::from_millis(700))),
    REDIRECT,
    RUNNING,
    PENDING,
    PENDING.with_reach(Reach::Accepted { knows_key: true }).with_mark(true),
    Verdict::new(Reach::Accepted { knows_key: false }, Advice::Retry, Why::CutBody),
    CUT,
    CUT.with_mark(true),
    TOO_LARGE,
    DONE,
    REJECTED,
];

/// What may be true of the operation, said without the engine's words.
#[derive(Clone, Copy, Debug)]
struct Truth {
    may_be_done: bool,
    may_be_undone: bool,
    /// The idempotency layer has bound the key to a refusal: nothing more can happen.
    bound: bool,
    /// Two answers that cannot both be true.
    broken: bool,
}

impl Truth {
    fn before(key: KeyOrigin) -> Self {
        let may_be_done = matches!(key, KeyOrigin::Given { .. });
        Self { may_be_done, may_be_undone: true, bound: false, broken: false }
    }

    /// An attempt that may have arrived, or may yet.
    fn perhaps(&mut self) {
        self.may_be_done |= !self.bound;
    }

    fn learn(&mut self, verdict: Verdict, settled: Verdict) {
        match settled.reach() {
            Reach::Unsent | Reach::Refused => {
                // A reused key is a refusal only if nobody but this attempt can hold it.
                assert!(verdict.why() != Why::KeyReused || !self.may_be_done);
            }
            Reach::Applied | Reach::AppliedUnread => {
                self.broken |= self.bound;
                (self.may_be_done, self.may_be_undone) = (true, false);
            }
            Reach::Rejected => {
                self.broken |= !self.may_be_undone;
                (self.may_be_done, self.may_be_undone, self.bound) = (false, true, true);
            }
            _ => self.perhaps(),
        }
    }

    fn effect(self, method: MethodKind) -> Effect {
        match (self.may_be_done, self.may_be_undone) {
            _ if method == MethodKind::Safe => Effect::NotApplied,
            _ if self.broken => Effect::Unknown,
            (false, _) => Effect::NotApplied,
            (true, false) => Effect::Applied,
            (true, true) => Effect::Unknown,
        }
    }
}

#[derive(Clone)]
struct State {
    history: History,
    truth: Truth,
    now: Time,
    in_flight: bool,
    /// Something in this operation has shown that the server knows the key.
    evidence: bool,
    crashes_left: u32,
    /// Of this run.
    failures: u32,
    last: Option<Verdict>,
}

struct Search {
    policy: Policy,
    attempts: u32,
    key: KeyOrigin,
    method: MethodKind,
    ends: u64,
    steps: u64,
    path: Vec<String>,
}

impl Search {
    fn explore(&mut self, state: &State) {
        self.steps += 1;
        let mut truth = state.truth;
        if state.in_flight {
            truth.perhaps();
        }
        assert_eq!(state.history.effect(), truth.effect(self.method), "{truth:?} after {:?}", self.path);
        if state.crashes_left > 0 {
            self.go("crash", state, |next| {
                next.crashes_left -= 1;
                (next.failures, next.now) = (0, next.now.after(ms(2_000)));
                let resumed = Entry::Resumed { owner: Owner::new(1), at: next.now };
                next.history.apply(&resumed).unwrap();
            });
        }
        match state.history.next(&self.policy, state.now) {
            Action::Record(entry) => self.record(state, &entry),
            Action::Sleep(wait) => self.go("sleep", state, |next| next.now = next.now.after(wait)),
            Action::Send { attempt, .. } => {
                assert!(state.in_flight, "sent before it was recorded: {:?}", self.path);
                if attempt <= LONGEST {
                    CLASSES.iter().for_each(|verdict| self.answer(state, *verdict));
                }
            }
            Action::Finish(outcome) => {
                self.ends += 1;
                self.check_end(state, outcome);
            }
        }
    }

    fn go(&mut self, name: &str, state: &State, change: impl FnOnce(&mut State)) {
        let mut next = state.clone();
        change(&mut next);
        self.path.push(name.to_owned());
        self.explore(&next);
        self.path.pop();
    }

    fn record(&mut self, state: &State, entry: &Entry) {
        let (key, method) = (self.key, self.method);
        if let Entry::Started { attempt, .. } = entry {
            assert!(state.failures < self.attempts, "one too many after {:?}", self.path);
            assert!(!state.truth.bound && !state.truth.broken, "sent after a refusal for good: {:?}", self.path);
            let repeatable = key != KeyOrigin::None || method != MethodKind::Other || !state.truth.may_be_done;
            assert!(repeatable, "repeated without a key: {:?}", self.path);
            if *attempt > LONGEST {
                return;
            }
        }
        self.go("record", state, |next| {
            next.history.apply(entry).unwrap();
            match entry {
                Entry::Started { .. } => next.in_flight = true,
                Entry::Interrupted { .. } => {
                    next.in_flight = false;
                    next.truth.perhaps();
                    next.last = None;
                }
                _ => {}
            }
        });
    }

    fn answer(&mut self, state: &State, verdict: Verdict) {
        let now = state.now.after(ms(5));
        let entry = state.history.ended(verdict, &self.policy, now, Draw::Entropy(u64::MAX / 3));
        let Entry::Ended { verdict: settled, next_at, .. } = entry else { panic!("{entry:?}") };
        // R4: what is asked for again by sending it must be known to the server.
        let evidence = state.evidence || verdict.marked() || verdict.why() == Why::InProgress;
        assert!(verdict.why() != Why::Pending || next_at.is_none() || evidence, "{:?}", self.path);
        if let (Advice::RetryAfter(named), Some(at)) = (settled.advice(), next_at) {
            assert!(at.since(now) >= named, "asked too early: {:?}", self.path);
        }
        self.go(&format!("{settled}"), state, |next| {
            next.history.apply(&entry).unwrap();
            next.now = now;
            next.in_flight = false;
            next.truth.learn(verdict, settled);
            next.evidence = evidence;
            next.last = Some(settled);
            let polled = settled.reach() == Reach::Accepted { knows_key: true };
            next.failures += u32::from(!polled);
        });
    }

    fn check_end(&self, state: &State, outcome: Outcome) {
        let path = &self.path;
        let final_answer = state.last.is_some_and(|last| last.reach() == Reach::Applied);
        match outcome {
            Outcome::Applied => assert!(final_answer && !state.truth.broken && !state.truth.may_be_undone, "{path:?}"),
            Outcome::Contradicted => assert!(state.truth.broken, "{path:?}"),
            Outcome::Ended(verdict) => {
                assert!(!final_answer && !state.truth.broken, "{path:?}");
                assert_eq!(verdict.advice(), Advice::Stop, "{path:?}");
            }
            Outcome::Stopped(reason) => {
                assert!(!final_answer && !state.truth.broken, "{path:?}");
                match reason {
                    StopReason::Attempts => assert_eq!(state.failures, self.attempts, "{path:?}"),
                    StopReason::Keyless => assert!(self.key == KeyOrigin::None && state.truth.may_be_done, "{path:?}"),
                    StopReason::Polls => assert!(state.evidence, "{path:?}"),
                    _ => {}
                }
            }
            _ => panic!("{outcome:?} after {path:?}"),
        }
    }
}

#[test]
fn every_sequence_of_five_attempts_and_crashes() {
    let crashes = std::env::var("ONCEKEY_CRASHES").map_or(1, |text| text.parse().unwrap());
    let given = KeyOrigin::Given { first_sent: Some(START) };
    let operations = [
        (KeyOrigin::Drawn, MethodKind::Other, false, 5),
        (KeyOrigin::Drawn, MethodKind::Other, true, 3),
        (given, MethodKind::Other, true, 3),
        (KeyOrigin::None, MethodKind::Other, false, 5),
        (KeyOrigin::None, MethodKind::Idempotent, false, 3),
        (KeyOrigin::None, MethodKind::Safe, false, 3),
    ];
    let (mut ends, mut steps) = (0, 0);
    for (key, method, hook, attempts) in operations {
        let policy = policy().max_attempts(attempts).polls(ms(500), ms(500), ms(60_000)).authorizes(hook);
        let mut search = Search { policy, attempts, key, method, ends: 0, steps: 0, path: Vec::new() };
        let history = History::replay(&[created(key, method)]).unwrap();
        let truth = Truth::before(key);
        let crashes_left = crashes;
        let state = State {
            history,
            truth,
            now: START,
            in_flight: false,
            evidence: false,
            crashes_left,
            failures: 0,
            last: None,
        };
        search.explore(&state);
        ends += search.ends;
        steps += search.steps;
    }
    println!("{ends} sequences checked to their end, {steps} states");
    assert!(ends > 100_000);
}
