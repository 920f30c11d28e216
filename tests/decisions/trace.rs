//! Text traces: verdicts in, what the engine did and how it ended out.

use std::time::Duration;

use oncekey::engine::{
    Action, Advice, Budget, Draw, Effect, Entry, History, KeyOrigin, MethodKind, Outcome, Owner, Policy, Reach,
    StopReason, Time, Verdict, Why,
};

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) const REFUSED: Verdict = Verdict::new(Reach::Unsent, Advice::Retry, Why::NotSent);
pub(crate) const HOPELESS: Verdict = Verdict::new(Reach::Unsent, Advice::Stop, Why::NotSent);
pub(crate) const TIMEOUT: Verdict = Verdict::new(Reach::Ambiguous, Advice::Retry, Why::NoHead);
pub(crate) const ERROR_503: Verdict = Verdict::new(Reach::Ambiguous, Advice::Retry, Why::ServerError);
pub(crate) const REDIRECT: Verdict = Verdict::new(Reach::Ambiguous, Advice::Stop, Why::Redirect);
pub(crate) const RUNNING: Verdict = Verdict::new(Reach::Accepted { knows_key: true }, Advice::Retry, Why::InProgress);
pub(crate) const PENDING: Verdict = Verdict::new(Reach::Accepted { knows_key: false }, Advice::Retry, Why::Pending);
pub(crate) const INVALID: Verdict = Verdict::new(Reach::Refused, Advice::Stop, Why::Refusal);
pub(crate) const UNAUTHORIZED: Verdict = Verdict::new(Reach::Refused, Advice::Stop, Why::Unauthorized);
pub(crate) const LIMITED_FIRST: Verdict = Verdict::new(Reach::Refused, Advice::Retry, Why::RateLimited);
pub(crate) const REUSED: Verdict = Verdict::new(Reach::Refused, Advice::Stop, Why::KeyReused);
pub(crate) const REJECTED: Verdict = Verdict::new(Reach::Rejected, Advice::Stop, Why::Refusal).with_mark(true);
pub(crate) const CUT: Verdict = Verdict::new(Reach::AppliedUnread, Advice::Retry, Why::CutBody);
pub(crate) const TOO_LARGE: Verdict = Verdict::new(Reach::AppliedUnread, Advice::Stop, Why::TooLarge);
pub(crate) const DONE: Verdict = Verdict::new(Reach::Applied, Advice::Stop, Why::Success);

pub(crate) const fn after(verdict: Verdict, wait: Duration) -> Verdict {
    verdict.with_advice(Advice::RetryAfter(wait))
}

/// 3 attempts, 100 ms doubled; polls at 1 s for 10 s; 1 s an attempt, a minute in all.
pub(crate) fn policy() -> Policy {
    Policy::new()
        .max_attempts(3)
        .delays(ms(100), ms(10_000))
        .polls(ms(1000), ms(1000), ms(10_000))
        .attempt_timeout(ms(1000))
        .deadline(ms(60_000))
        .key_lifetime(ms(3_600_000))
}

pub(crate) const START: Time = Time::from_millis(1_000_000_000_000);

pub(crate) fn created(key: KeyOrigin, method: MethodKind) -> Entry {
    Entry::Created { at: START, key, method, gone_is_done: false }
}

/// A run of the engine under a clock that jumps: each attempt takes 10 ms.
pub(crate) struct Run {
    pub(crate) policy: Policy,
    pub(crate) entries: Vec<Entry>,
    pub(crate) history: History,
    pub(crate) now: Time,
    pub(crate) trace: Vec<String>,
    /// The same entropy for every draw: `u64::MAX` waits as long as it may.
    pub(crate) draw: Draw,
}

impl Run {
    pub(crate) fn new(policy: Policy, key: KeyOrigin, method: MethodKind) -> Self {
        let created = created(key, method);
        let history = History::replay(std::slice::from_ref(&created)).unwrap();
        Self { policy, entries: vec![created], history, now: START, trace: Vec::new(), draw: Draw::Entropy(u64::MAX) }
    }

    pub(crate) fn record(&mut self, entry: Entry) {
        self.history.apply(&entry).unwrap_or_else(|e| panic!("{e}: {entry:?} after {:#?}", self.entries));
        self.entries.push(entry);
    }

    pub(crate) fn resume(&mut self, at: Time) {
        self.record(Entry::Resumed { owner: Owner::new(7), at });
        self.now = at.max(self.history.latest());
        self.trace.push("resume".into());
    }

    /// One action; the attempt it may send ends with the next verdict.
    pub(crate) fn step(&mut self, verdicts: &mut impl Iterator<Item = Verdict>) -> Option<Outcome> {
        match self.history.next(&self.policy, self.now) {
            Action::Record(entry) => self.record(entry),
            Action::Sleep(wait) => {
                self.trace.push(format!("sleep {}", wait.as_millis()));
                self.now = self.now.after(wait);
            }
            Action::Send { attempt, .. } => {
                self.trace.push(format!("submit {attempt}"));
                let verdict = verdicts.next().expect("the trace sends no more than there are verdicts");
                self.now = self.now.after(ms(10));
                let draw = match self.history.budget(verdict, &self.policy) {
                    Some(Budget::Polls) => Draw::Entropy(u64::MAX / 2),
                    Some(Budget::Failures) | None => self.draw,
                };
                let entry = self.history.ended(verdict, &self.policy, self.now, draw);
                self.record(entry);
            }
            Action::Finish(outcome) => return Some(outcome),
        }
        None
    }

    pub(crate) fn finish(&mut self, verdicts: &[Verdict]) -> Outcome {
        let mut verdicts = verdicts.iter().copied();
        for _ in 0..10_000 {
            if let Some(outcome) = self.step(&mut verdicts) {
                assert_eq!(verdicts.next(), None, "{:?}", self.trace);
                return outcome;
            }
        }
        panic!("no end: {:?}", self.trace);
    }

    pub(crate) fn effect(&self) -> Effect {
        self.history.effect()
    }
}

#[track_caller]
fn check_run(mut run: Run, verdicts: &[Verdict], trace: &str, end: (Outcome, Effect)) {
    let outcome = run.finish(verdicts);
    assert_eq!(run.trace.join(", "), trace);
    assert_eq!((outcome, run.effect()), end);
}

#[track_caller]
fn check(verdicts: &[Verdict], trace: &str, end: (Outcome, Effect)) {
    check_run(Run::new(policy(), KeyOrigin::Drawn, MethodKind::Other), verdicts, trace, end);
}

fn stopped(reason: StopReason, effect: Effect) -> (Outcome, Effect) {
    (Outcome::Stopped(reason), effect)
}

fn ended(verdict: Verdict, effect: Effect) -> (Outcome, Effect) {
    (Outcome::Ended(verdict), effect)
}

const OK: (Outcome, Effect) = (Outcome::Applied, Effect::Applied);

#[test]
fn first_answer_is_final() {
    check(&[DONE], "submit 1", OK);
    check(&[INVALID], "submit 1", ended(INVALID, Effect::NotApplied));
    check(&[HOPELESS], "submit 1", ended(HOPELESS, Effect::NotApplied));
    check(&[REJECTED], "submit 1", ended(REJECTED, Effect::NotApplied));
    check(&[REDIRECT], "submit 1", ended(REDIRECT, Effect::Unknown));
    check(&[TOO_LARGE], "submit 1", ended(TOO_LARGE, Effect::Applied));
}

#[test]
fn failures_are_counted_and_their_delays_double() {
    let three = "submit 1, sleep 100, submit 2, sleep 200, submit 3";
    check(&[TIMEOUT, REFUSED, REFUSED], three, stopped(StopReason::Attempts, Effect::Unknown));
    check(&[REFUSED, REFUSED, REFUSED], three, stopped(StopReason::Attempts, Effect::NotApplied));
    check(&[CUT, REFUSED, ERROR_503], three, stopped(StopReason::Attempts, Effect::Applied));
    check(&[ERROR_503, REFUSED, DONE], three, OK);
}

#[test]
fn effect_is_folded_over_all_attempts() {
    check(&[TIMEOUT, INVALID], "submit 1, sleep 100, submit 2", ended(INVALID, Effect::Unknown));
    check(&[TIMEOUT, UNAUTHORIZED], "submit 1, sleep 100, submit 2", ended(UNAUTHORIZED, Effect::Unknown));
    check(&[TIMEOUT, REJECTED], "submit 1, sleep 100, submit 2", ended(REJECTED, Effect::NotApplied));
    check(&[REFUSED, INVALID], "submit 1, sleep 100, submit 2", ended(INVALID, Effect::NotApplied));
    check(&[CUT, INVALID], "submit 1, sleep 100, submit 2", ended(INVALID, Effect::Applied));
}

#[test]
fn a_key_reused_is_a_refusal_only_at_the_first_attempt_of_a_drawn_key() {
    let doubtful = REUSED.with_reach(Reach::Ambiguous);
    check(&[REUSED], "submit 1", ended(REUSED, Effect::NotApplied));
    check(&[REFUSED, REUSED], "submit 1, sleep 100, submit 2", ended(doubtful, Effect::Unknown));
    check(&[LIMITED_FIRST, REUSED], "submit 1, sleep 100, submit 2", ended(doubtful, Effect::Unknown));
    let given = Run::new(policy(), KeyOrigin::Given { first_sent: None }, MethodKind::Other);
    check_run(given, &[REUSED], "submit 1", ended(doubtful, Effect::Unknown));
}

#[test]
fn a_named_wait_is_a_lower_bound_with_a_tenth_on_top() {
    check(&[after(ERROR_503, ms(3000)), DONE], "submit 1, sleep 3300, submit 2", OK);
    check(&[after(ERROR_503, ms(10)), DONE], "submit 1, sleep 101, submit 2", OK);
    check(&[after(RUNNING, ms(3000)), DONE], "submit 1, sleep 3300, submit 2", OK);
}

#[test]
fn a_wait_that_does_not_fit_ends_the_call_at_once() {
    check(&[after(ERROR_503, ms(61_000))], "submit 1", stopped(StopReason::Deadline, Effect::Unknown));
    check(&[after(ERROR_503, Duration::MAX)], "submit 1", stopped(StopReason::KeyExpired, Effect::Unknown));
    check(&[after(LIMITED_FIRST, ms(61_000))], "submit 1", stopped(StopReason::Deadline, Effect::NotApplied));
    check(&[after(RUNNING, ms(11_000))], "submit 1", stopped(StopReason::Polls, Effect::Unknown));
    let mut run = Run::new(policy(), KeyOrigin::Drawn, MethodKind::Other);
    let _ = run.finish(&[after(ERROR_503, ms(61_000))]);
    assert!(run.history.next_at() >= Some(START.after(ms(61_010))));
}

#[test]
fn fresh_credentials_are_tried_once_where_a_hook_can_bring_them() {
    let hooked = || Run::new(policy().authorizes(true), KeyOrigin::Drawn, MethodKind::Other);
    check_run(hooked(), &[UNAUTHORIZED, DONE], "submit 1, sleep 100, submit 2", OK);
    let twice = &[UNAUTHORIZED, UNAUTHORIZED];
    check_run(hooked(), twice, "submit 1, sleep 100, submit 2", ended(UNAUTHORIZED, Effect::NotApplied));
    let doubt = &[TIMEOUT, UNAUTHORIZED, UNAUTHORIZED];
    let three = "submit 1, sleep 100, submit 2, sleep 200, submit 3";
    check_run(hooked(), doubt, three, ended(UNAUTHORIZED, Effect::Unknown));
    check(&[UNAUTHORIZED], "submit 1", ended(UNAUTHORIZED, Effect::NotApplied));
}

#[test]
fn a_pending_answer_without_evidence_is_not_sent_again() {
    let stop = PENDING.with_advice(Advice::Stop);
    check(&[PENDING], "submit 1", ended(stop, Effect::Unknown));
    check(&[TIMEOUT, PENDING], "submit 1, sleep 100, submit 2", ended(stop, Effect::Unknown));
    check(&[RUNNING, PENDING, DONE], "submit 1, sleep 1000, submit 2, sleep 1000, submit 3", OK);
    check(&[CUT.with_mark(true), PENDING, DONE], "submit 1, sleep 100, submit 2, sleep 1000, submit 3", OK);
    let marked = PENDING.with_reach(Reach::Accepted { knows_key: true }).with_mark(true);
    check(&[marked, PENDING, DONE], "submit 1, sleep 1000, submit 2, sleep 1000, submit 3", OK);
}

#[test]
fn without_a_key_what_may_have_been_received_is_not_sent_again() {
    let keyless = |method| Run::new(policy(), KeyOrigin::None, method);
    let other = || keyless(MethodKind::Other);
    check_run(other(), &[TIMEOUT], "submit 1", stopped(StopReason::Keyless, Effect::Unknown));
    check_run(other(), &[CUT], "submit 1", stopped(StopReason::Keyless, Effect::Applied));
    check_run(other(), &[RUNNING], "submit 1", stopped(StopReason::Keyless, Effect::Unknown));
    check_run(other(), &[REFUSED, DONE], "submit 1, sleep 100, submit 2", OK);
    check_run(keyless(MethodKind::Idempotent), &[TIMEOUT, DONE], "submit 1, sleep 100, submit 2", OK);
    let safe = (Outcome::Applied, Effect::NotApplied);
    check_run(
        keyless(MethodKind::Safe),
        &[TIMEOUT, CUT, DONE],
        "submit 1, sleep 100, submit 2, sleep 200, submit 3",
        safe,
    );
}

#[test]
fn a_schedule_of_the_callers_own_sets_the_delays_and_may_end() {
    let mut run = Run::new(policy(), KeyOrigin::Drawn, MethodKind::Other);
    run.draw = Draw::Delay(ms(77));
    check_run(run, &[TIMEOUT, RUNNING, DONE], "submit 1, sleep 77, submit 2, sleep 1000, submit 3", OK);
    let mut run = Run::new(policy(), KeyOrigin::Drawn, MethodKind::Other);
    run.draw = Draw::GiveUp;
    check_run(run, &[TIMEOUT], "submit 1", stopped(StopReason::Schedule, Effect::Unknown));
    let mut run = Run::new(policy(), KeyOrigin::Drawn, MethodKind::Other);
    run.draw = Draw::Delay(Duration::MAX);
    check_run(run, &[TIMEOUT], "submit 1", stopped(StopReason::KeyExpired, Effect::Unknown));
}

#[test]
fn the_last_attempt_is_cut_to_the_deadline_or_not_started() {
    let mut run = Run::new(policy().deadline(ms(1500)).max_attempts(9), KeyOrigin::Drawn, MethodKind::Other);
    run.now = START.after(ms(1000));
    let Action::Record(started) = run.history.next(&run.policy, run.now) else { panic!() };
    assert!(matches!(started, Entry::Started { timeout, .. } if timeout == ms(500)));
    run.record(started);
    run.now = START.after(ms(1200));
    assert_eq!(run.history.next(&run.policy, run.now), Action::Send { attempt: 1, timeout: ms(300) });
    let outcome = run.finish(&[after(TIMEOUT, ms(260))]);
    assert_eq!(outcome, Outcome::Stopped(StopReason::Deadline));
}

#[test]
fn what_was_started_too_late_is_not_sent() {
    let mut run = Run::new(policy(), KeyOrigin::Drawn, MethodKind::Other);
    let _ = run.step(&mut std::iter::empty());
    run.now = START.after(ms(59_960));
    assert_eq!(run.finish(&[]), Outcome::Stopped(StopReason::Deadline));
    assert_eq!((run.trace.len(), run.effect()), (0, Effect::NotApplied));
}

#[test]
fn resuming_goes_on_where_that_may_help() {
    let resumed = |first: Verdict, rest: &[Verdict]| {
        let mut run = Run::new(policy().max_attempts(1), KeyOrigin::Drawn, MethodKind::Other);
        let _ = run.finish(&[first]);
        run.resume(START.after(ms(5000)));
        (run.finish(rest), run.effect())
    };
    for first in [REFUSED, HOPELESS, INVALID, TIMEOUT, CUT, TOO_LARGE, after(ERROR_503, ms(70_000))] {
        let mut run = Run::new(policy().max_attempts(1), KeyOrigin::Drawn, MethodKind::Other);
        let _ = run.finish(&[first]);
        run.resume(START.after(ms(75_000)));
        assert_eq!((run.finish(&[DONE]), run.effect()), OK, "{first:?}");
    }
    for first in [REDIRECT, REJECTED, PENDING] {
        let (outcome, _) = resumed(first, &[]);
        assert!(matches!(outcome, Outcome::Ended(_)), "{first:?}");
    }
    assert_eq!(resumed(DONE, &[]), OK);
    // A refusal after doubt may be asked again: a 401 with fresh credentials, say.
    let mut run = Run::new(policy(), KeyOrigin::Drawn, MethodKind::Other);
    assert_eq!(run.finish(&[TIMEOUT, UNAUTHORIZED]), Outcome::Ended(UNAUTHORIZED));
    run.resume(START.after(ms(5000)));
    assert_eq!((run.finish(&[DONE]), run.effect()), OK);
}

#[test]
fn a_resume_still_waits_for_what_the_server_named() {
    let mut run = Run::new(policy(), KeyOrigin::Drawn, MethodKind::Other);
    let _ = run.finish(&[after(ERROR_503, ms(70_000))]);
    run.resume(START.after(ms(60_000)));
    let _ = run.finish(&[DONE]);
    assert_eq!(run.trace.join(", "), "submit 1, resume, sleep 17010, submit 2");
}

#[test]
fn a_schedule_that_gave_up_does_not_shorten_what_the_server_named() {
    let mut run = Run::new(policy(), KeyOrigin::Drawn, MethodKind::Other);
    run.draw = Draw::GiveUp;
    assert_eq!(run.finish(&[after(ERROR_503, ms(5000))]), Outcome::Stopped(StopReason::Schedule));
    run.resume(START.after(ms(1000)));
    let _ = run.finish(&[DONE]);
    assert_eq!(run.trace.join(", "), "submit 1, resume, sleep 4010, submit 2");
}

#[test]
fn an_attempt_whose_owner_died_is_in_doubt() {
    let mut run = Run::new(policy(), KeyOrigin::Drawn, MethodKind::Other);
    let _ = run.step(&mut std::iter::empty());
    assert_eq!(run.effect(), Effect::Unknown);
    run.resume(START.after(ms(2000)));
    let _ = run.step(&mut std::iter::empty());
    assert!(matches!(run.entries.last(), Some(Entry::Interrupted { attempt: 1, .. })));
    assert_eq!((run.finish(&[INVALID]), run.effect()), ended(INVALID, Effect::Unknown));
}

#[test]
fn what_a_log_says_of_each() {
    let effects = [Effect::NotApplied, Effect::Applied, Effect::Unknown];
    assert_eq!(effects.map(|effect| format!("{effect:>11}")), ["not applied", "    applied", "    unknown"]);
    assert_eq!(effects.map(Effect::as_str), ["not applied", "applied", "unknown"]);
    let verdicts = [
        (REFUSED, "not sent, no connection"),
        (TIMEOUT, "in doubt, no answer"),
        (ERROR_503, "in doubt, server error"),
        (REDIRECT, "in doubt, redirect"),
        (RUNNING, "in progress, still running"),
        (PENDING, "accepted, pending"),
        (INVALID, "refused, refusal"),
        (UNAUTHORIZED, "refused, unauthorized"),
        (LIMITED_FIRST, "refused, rate limited"),
        (REUSED, "refused, key reused"),
        (REJECTED, "rejected, refusal"),
        (CUT, "applied, unread, answer cut"),
        (TOO_LARGE, "applied, unread, answer too long"),
        (DONE, "applied"),
        (TIMEOUT.with_why(Why::WrongType), "in doubt, page instead of data"),
        (TIMEOUT.with_why(Why::AlreadyProcessed), "in doubt, already processed"),
        (TIMEOUT.with_why(Why::StoredError), "in doubt, stored error"),
        (TIMEOUT.with_why(Why::Conflict), "in doubt, conflict"),
        (TIMEOUT.with_why(Why::Other), "in doubt, other"),
    ];
    for (verdict, words) in verdicts {
        assert_eq!(verdict.to_string(), words);
    }
    assert_eq!(Why::Success.as_str(), "success");
    use oncekey::engine::AttemptKind;
    let kinds = [AttemptKind::First, AttemptKind::Retry, AttemptKind::Poll];
    assert_eq!(kinds.map(AttemptKind::as_str), ["first", "retry", "poll"]);
}

#[test]
fn a_damaged_record_says_where() {
    let started =
        |attempt| Entry::Started { attempt, kind: oncekey::engine::AttemptKind::First, timeout: ms(1), at: START };
    let created = created(KeyOrigin::Drawn, MethodKind::Other);
    let error = History::replay(&[created.clone(), started(1), started(2)]).unwrap_err();
    assert_eq!(
        (error.position(), error.to_string().as_str()),
        (2, "entry 2 is illegal: a second attempt while one is open")
    );
    assert!(History::replay(&[]).is_err());
    assert!(History::replay(&[started(1)]).is_err());
    assert!(History::replay(&[created.clone(), created.clone()]).is_err());
    let stop = Entry::Stopped { reason: StopReason::Attempts, at: START };
    let ended = |attempt| Entry::Ended { attempt, verdict: TIMEOUT, at: START, next_at: None };
    let legal: [&[Entry]; 3] = [
        &[created.clone(), started(1), ended(1), started(2)],
        &[created.clone(), stop.clone()],
        &[
            created.clone(),
            started(1),
            Entry::Resumed { owner: Owner::new(3), at: START },
            Entry::Interrupted { attempt: 1, at: START },
        ],
    ];
    for entries in legal {
        let _ = History::replay(entries).unwrap();
    }
    let illegal: [&[Entry]; 8] = [
        &[created.clone(), started(2)],
        &[created.clone(), ended(1)],
        &[created.clone(), started(1), ended(2)],
        &[created.clone(), started(1), stop.clone()],
        &[created.clone(), stop.clone(), stop.clone()],
        &[created.clone(), stop.clone(), started(1)],
        &[created.clone(), started(1), Entry::Interrupted { attempt: 1, at: START }],
        &[created.clone(), Entry::Interrupted { attempt: 1, at: START }],
    ];
    for entries in illegal {
        assert!(History::replay(entries).is_err(), "{entries:?}");
    }
    let after_the_end: [&[Entry]; 2] = [
        &[
            created.clone(),
            started(1),
            Entry::Ended { attempt: 1, verdict: DONE, at: START, next_at: None },
            started(2),
        ],
        &[created, started(1), Entry::Ended { attempt: 1, verdict: REJECTED, at: START, next_at: None }, stop],
    ];
    for entries in after_the_end {
        assert!(History::replay(entries).is_err(), "{entries:?}");
    }
    assert_eq!(Owner::new(3).id(), 3);
}

#[test]
fn what_a_history_tells() {
    let mut run = Run::new(policy(), KeyOrigin::Drawn, MethodKind::Other);
    assert_eq!((run.history.attempts(), run.history.key_since(), run.history.next_at()), (0, None, None));
    let _ = run.finish(&[REFUSED, TIMEOUT, RUNNING, DONE]);
    let started = |entry: &Entry| match entry {
        Entry::Started { kind, at, .. } => Some((kind.as_str(), at.since(START))),
        _ => None,
    };
    let started: Vec<_> = run.entries.iter().filter_map(started).collect();
    assert_eq!(started.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), ["first", "retry", "retry", "poll"]);
    assert_eq!(run.history.attempts(), 4);
    // The key's life began with the first attempt that may have been received.
    assert_eq!(run.history.key_since(), Some(START.after(started[1].1)));
    for yes in [true, false] {
        let created =
            Entry::Created { at: START, key: KeyOrigin::None, method: MethodKind::Idempotent, gone_is_done: yes };
        assert_eq!(History::replay(&[created]).unwrap().gone_is_done(), yes);
    }
}

#[test]
fn a_contested_key_is_certain_only_if_it_is_bound() {
    let effects = |method, verdicts: &[Verdict]| {
        let mut run = Run::new(policy(), KeyOrigin::Drawn, method);
        let _ = run.finish(verdicts);
        (run.history.effect_with(false), run.history.effect_with(true))
    };
    let (other, safe) = (MethodKind::Other, MethodKind::Safe);
    assert_eq!(effects(other, &[INVALID]), (Effect::NotApplied, Effect::Unknown));
    assert_eq!(effects(MethodKind::Idempotent, &[INVALID]), (Effect::NotApplied, Effect::Unknown));
    assert_eq!(effects(other, &[REJECTED]), (Effect::NotApplied, Effect::NotApplied));
    assert_eq!(effects(other, &[TOO_LARGE]), (Effect::Applied, Effect::Applied));
    assert_eq!(effects(safe, &[INVALID]), (Effect::NotApplied, Effect::NotApplied));
}

#[test]
fn at_the_edge_it_may_still_be_sent() {
    let due = |policy: Policy, at: u64, end: Option<StopReason>| {
        let mut run = Run::new(policy, KeyOrigin::Drawn, MethodKind::Other);
        run.record(Entry::Started {
            attempt: 1,
            kind: oncekey::engine::AttemptKind::First,
            timeout: ms(1000),
            at: START,
        });
        let ended = Entry::Ended { attempt: 1, verdict: TIMEOUT, at: START, next_at: Some(START.after(ms(at))) };
        run.record(ended);
        run.now = START.after(ms(at));
        let stopped = match run.history.next(&run.policy, run.now) {
            Action::Record(Entry::Stopped { reason, .. }) => Some(reason),
            action => {
                assert!(matches!(action, Action::Record(Entry::Started { .. })), "{action:?}");
                None
            }
        };
        assert_eq!(stopped, end, "at {at}");
    };
    // 50 ms of the deadline are enough, 49 are not.
    due(policy(), 59_950, None);
    due(policy(), 59_951, Some(StopReason::Deadline));
    // An hour, less six minutes, less an attempt of a second.
    let long = policy().deadline(Duration::MAX);
    due(long, 3_600_000 - 360_000 - 1_000, None);
    due(long, 3_600_000 - 360_000 - 999, Some(StopReason::KeyExpired));
    assert!(policy().fits_the_key(ms(3_240_000)) && !policy().fits_the_key(ms(3_240_001)));
    assert_eq!(Time::from_millis(u64::MAX), Time::MAX);
    assert_eq!(Time::MAX.after(Duration::MAX), Time::MAX);
}

#[test]
fn a_clock_back_by_the_margin_is_not_too_far() {
    for (back, end) in [(360_000, None), (360_001, Some(StopReason::KeyExpired))] {
        let mut run = Run::new(policy().max_attempts(1), KeyOrigin::Drawn, MethodKind::Other);
        let _ = run.finish(&[TIMEOUT]);
        let latest = run.history.latest().as_millis();
        run.resume(Time::from_millis(latest - back));
        let outcome = run.finish(if end.is_none() { &[DONE] } else { &[] });
        assert_eq!(outcome, end.map_or(Outcome::Applied, Outcome::Stopped), "{back}");
    }
}

#[test]
fn the_last_poll_may_fall_on_the_limit() {
    let within = |limit: u64| policy().polls(ms(1000), ms(1000), ms(limit));
    let mut run = Run::new(within(1000), KeyOrigin::Drawn, MethodKind::Other);
    assert_eq!(run.finish(&[RUNNING, DONE]), Outcome::Applied);
    let mut run = Run::new(within(999), KeyOrigin::Drawn, MethodKind::Other);
    assert_eq!(run.finish(&[RUNNING]), Outcome::Stopped(StopReason::Polls));
}
