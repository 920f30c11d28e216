//! What only a record brings: corrections, decisions by hand, dead owners.

use oncekey::engine::{Action, Again, Effect, Entry, History, KeyOrigin, MethodKind, Outcome, Owner, StopReason, Time};

use crate::trace::*;

fn run(verdicts: &[oncekey::engine::Verdict]) -> Run {
    let mut run = Run::new(policy(), KeyOrigin::Drawn, MethodKind::Other);
    let _ = run.finish(verdicts);
    run
}

fn amended(version: u32) -> Entry {
    Entry::Amended { at: START.after(ms(1000)), version }
}

fn resolved(effect: Effect) -> Entry {
    Entry::Resolved { effect, by: "ana: seen at the provider".into(), at: START.after(ms(1000)) }
}

fn resumed(run: &mut Run) -> &mut Run {
    run.resume(START.after(ms(1000)));
    run
}

/// Refused, and left as it was.
#[track_caller]
fn illegal(run: &mut Run, entry: &Entry) {
    let before = run.history.clone();
    assert!(run.history.apply(entry).is_err(), "{entry:?}");
    assert_eq!(run.history, before);
}

#[test]
fn a_request_is_amended_only_while_clean_and_refused() {
    let mut refused = run(&[INVALID]);
    illegal(&mut refused, &amended(2));
    resumed(&mut refused);
    illegal(&mut refused, &amended(1));
    illegal(&mut refused, &amended(3));
    refused.record(amended(2));
    assert_eq!((refused.history.version(), refused.effect()), (2, Effect::NotApplied));
    illegal(&mut refused, &amended(3));
    assert_eq!(refused.finish(&[DONE]), Outcome::Applied);
    for verdicts in [&[TIMEOUT, INVALID][..], &[REJECTED], &[HOPELESS], &[DONE], &[CUT, CUT, CUT], &[RUNNING, INVALID]]
    {
        let mut run = run(verdicts);
        illegal(resumed(&mut run), &amended(2));
        assert!(!run.history.may_be_amended(), "{verdicts:?}");
    }
    let given = KeyOrigin::Given { first_sent: None };
    let mut brought = Run::new(policy(), given, MethodKind::Other);
    let _ = brought.finish(&[INVALID]);
    illegal(resumed(&mut brought), &amended(2));
}

#[test]
fn a_reused_key_after_an_amendment_is_no_refusal() {
    let mut run = run(&[INVALID]);
    resumed(&mut run).record(amended(2));
    let _ = run.finish(&[REUSED]);
    assert_eq!(run.effect(), Effect::Unknown, "the first version may hold the key");
}

#[test]
fn a_decision_settles_what_is_not_certain() {
    for effect in [Effect::Applied, Effect::NotApplied] {
        for verdicts in [&[TIMEOUT, TIMEOUT, TIMEOUT][..], &[REDIRECT], &[INVALID], &[HOPELESS], &[CUT, REJECTED]] {
            let mut run = run(verdicts);
            if run.effect() == Effect::Applied && effect == Effect::NotApplied {
                continue;
            }
            run.record(resolved(effect));
            assert_eq!((run.effect(), run.history.is_settled()), (effect, true), "{verdicts:?}");
            assert_eq!(run.history.next(&run.policy, run.now), Action::Finish(Outcome::Resolved(effect)));
            assert_eq!(run.history.asked_again(&run.policy, run.now), Again::Ended(Outcome::Resolved(effect)));
            assert_eq!(run.history.effect_with(true), effect, "whoever decided knew of the others");
            resumed(&mut run);
            let started = Entry::Started {
                attempt: run.history.attempts() + 1,
                kind: oncekey::engine::AttemptKind::Retry,
                timeout: ms(1),
                at: run.now,
            };
            illegal(&mut run, &started);
        }
    }
}

#[test]
fn a_decision_against_what_is_certain_is_refused() {
    illegal(&mut run(&[DONE]), &resolved(Effect::NotApplied));
    illegal(&mut run(&[TOO_LARGE]), &resolved(Effect::NotApplied));
    illegal(&mut run(&[REJECTED]), &resolved(Effect::Applied));
    illegal(&mut run(&[TIMEOUT, TIMEOUT, TIMEOUT]), &resolved(Effect::Unknown));
    let mut open = Run::new(policy(), KeyOrigin::Drawn, MethodKind::Other);
    let _ = open.step(&mut std::iter::empty());
    assert_eq!(open.history.open_attempt(), Some(1));
    illegal(&mut open, &resolved(Effect::Applied));
}

#[test]
fn what_asking_again_comes_to() {
    let goes_on = [
        &[TIMEOUT, TIMEOUT, TIMEOUT][..],
        &[CUT, CUT, CUT],
        &[TOO_LARGE],
        &[INVALID],
        &[HOPELESS],
        &[TIMEOUT, UNAUTHORIZED],
        &[RUNNING, INVALID],
    ];
    for verdicts in goes_on {
        let run = run(verdicts);
        assert_eq!(run.history.asked_again(&run.policy, run.now), Again::GoesOn, "{verdicts:?}");
    }
    for (verdicts, end) in [
        (&[DONE][..], Outcome::Applied),
        (&[REDIRECT], Outcome::Ended(REDIRECT)),
        (&[REJECTED], Outcome::Ended(REJECTED)),
    ] {
        let run = run(verdicts);
        assert_eq!(run.history.asked_again(&run.policy, run.now), Again::Ended(end), "{verdicts:?}");
    }
    let old = run(&[TIMEOUT, TIMEOUT, TIMEOUT]);
    let later = START.after(ms(3_600_000));
    assert_eq!(old.history.asked_again(&old.policy, later), Again::Ended(Outcome::Stopped(StopReason::KeyExpired)));
    let mut keyless = Run::new(policy(), KeyOrigin::None, MethodKind::Other);
    let _ = keyless.finish(&[TIMEOUT]);
    let end = Again::Ended(Outcome::Stopped(StopReason::Keyless));
    assert_eq!(keyless.history.asked_again(&keyless.policy, keyless.now), end);
    assert!(!keyless.history.is_settled() && keyless.history.is_over());
}

/// The requests of one key must not overlap: the one whose end nobody saw may
/// still be on its way.
#[test]
fn an_interrupted_attempt_is_waited_for_where_overlap_is_unsafe() {
    let mut open = Run::new(policy(), KeyOrigin::Drawn, MethodKind::Other);
    let _ = open.step(&mut std::iter::empty());
    let started = open.now;
    for (safe, wait) in [(true, None), (false, Some(ms(900)))] {
        let policy = policy().overlap_is_safe(safe);
        let mut history = History::replay(&open.entries).unwrap();
        let now = started.after(ms(100));
        history.apply(&Entry::Resumed { owner: Owner::new(2), at: now }).unwrap();
        let Action::Record(interrupted @ Entry::Interrupted { .. }) = history.next(&policy, now) else { panic!() };
        history.apply(&interrupted).unwrap();
        match (history.next(&policy, now), wait) {
            (Action::Record(Entry::Started { attempt: 2, .. }), None) => {}
            (Action::Sleep(slept), Some(wait)) => assert_eq!(slept, wait),
            other => panic!("{other:?}"),
        }
        assert_eq!(history.resume_at(&policy).is_some(), !safe);
        let _: Time = history.latest();
    }
}

/// A status resource is asked with GET: that orders nothing, with or without a
/// key, whatever the key's age, and without evidence that the server knows it.
#[test]
fn what_is_linked_is_polled_and_never_sent_again() {
    let linked = PENDING.with_link(true);
    for key in [KeyOrigin::Drawn, KeyOrigin::None] {
        let mut run = Run::new(policy(), key, MethodKind::Other);
        assert_eq!(run.finish(&[linked, linked, DONE]), Outcome::Applied, "{key:?}");
        let mut run = Run::new(policy(), key, MethodKind::Other);
        assert_eq!(run.finish(&[linked, TIMEOUT, TIMEOUT, TIMEOUT]), Outcome::Stopped(StopReason::Attempts));
        assert!(run.history.is_linked());
        assert_eq!(run.effect(), Effect::Unknown);
        let later = START.after(ms(10 * 3_600_000));
        assert_eq!(run.history.asked_again(&run.policy, later), Again::GoesOn, "the key is not sent any more");
    }
    let mut unproven = Run::new(policy(), KeyOrigin::Drawn, MethodKind::Other);
    let end = unproven.finish(&[PENDING]);
    assert!(matches!(end, Outcome::Ended(_)), "{end:?}");
    // It is no evidence that the server knows the key.
    let mut run = Run::new(policy(), KeyOrigin::Drawn, MethodKind::Other);
    let end = run.finish(&[linked, PENDING]);
    assert!(matches!(end, Outcome::Ended(_)), "{end:?}");
}
