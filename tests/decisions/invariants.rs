//! The engine's invariants, each a test of that name, over random runs: any
//! verdicts, any limits, crashes and resumes at any entry, clocks that jump.

use std::time::Duration;

use oncekey::engine::{
    Action, Advice, AttemptKind, Draw, Effect, Entry, History, KeyOrigin, MethodKind, Outcome, Owner, Policy, Reach,
    StopReason, Time, Verdict, Why,
};
use proptest::prelude::*;

use crate::trace::*;

/// One thing that the world does.
#[derive(Clone, Debug)]
enum Move {
    /// The next action is carried out; an attempt takes this long and shows this.
    Act { took: u64, verdict: Verdict, draw: Draw },
    /// The process dies; another takes up, after this long, its clock this far back.
    Crash { later: u64, back: u64 },
    /// Time passes between the question and the next one.
    Stall { millis: u64 },
}

fn verdicts() -> impl Strategy<Value = Verdict> {
    let plain = prop::sample::select(vec![
        REFUSED,
        HOPELESS,
        TIMEOUT,
        ERROR_503,
        REDIRECT,
        RUNNING,
        PENDING,
        INVALID,
        UNAUTHORIZED,
        LIMITED_FIRST,
        REUSED,
        REJECTED,
        CUT,
        TOO_LARGE,
        DONE,
        Verdict::new(Reach::Accepted { knows_key: false }, Advice::Retry, Why::CutBody),
        Verdict::new(Reach::Ambiguous, Advice::Stop, Why::StoredError).with_mark(true),
        Verdict::new(Reach::AppliedUnread, Advice::Retry, Why::CutBody).with_mark(true),
    ]);
    (plain, prop::option::weighted(0.2, 0_u64..100_000)).prop_map(|(verdict, named)| match (verdict.advice(), named) {
        (Advice::Retry, Some(millis)) => after(verdict, ms(millis)),
        _ => verdict,
    })
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let draw = prop_oneof![
        8 => any::<u64>().prop_map(Draw::Entropy),
        1 => (0_u64..10_000).prop_map(|millis| Draw::Delay(ms(millis))),
        1 => Just(Draw::GiveUp),
    ];
    let act = (0_u64..2_000, verdicts(), draw).prop_map(|(took, verdict, draw)| Move::Act { took, verdict, draw });
    let crash = (0_u64..4_000_000, prop_oneof![3 => Just(0_u64), 1 => 0_u64..2_000_000])
        .prop_map(|(later, back)| Move::Crash { later, back });
    let stall = (0_u64..2_000_000).prop_map(|millis| Move::Stall { millis });
    prop::collection::vec(prop_oneof![20 => act, 2 => crash, 1 => stall], 1..120)
}

/// A policy, and what is checked of it by other means than its own.
#[derive(Clone, Debug)]
struct Limits {
    policy: Policy,
    attempts: u32,
    lifetime: u64,
    poll_limit: u64,
}

fn policies() -> impl Strategy<Value = Limits> {
    (
        1_u32..6,
        0_u64..2_000,
        0_u64..5_000,
        0_u64..20_000,
        100_u64..5_000,
        1_000_u64..200_000,
        600_000_u64..8_000_000,
        any::<bool>(),
    )
        .prop_map(|(attempts, base, interval, limit, timeout, deadline, lifetime, hook)| {
            let policy = Policy::new()
                .max_attempts(attempts)
                .delays(ms(base), ms(base * 8))
                .polls(ms(interval), ms(interval * 4), ms(limit))
                .attempt_timeout(ms(timeout))
                .deadline(ms(deadline))
                .key_lifetime(ms(lifetime))
                .authorizes(hook);
            Limits { policy, attempts, lifetime, poll_limit: limit }
        })
}

fn origins() -> impl Strategy<Value = (KeyOrigin, MethodKind)> {
    let given = |sent: u64| KeyOrigin::Given { first_sent: Some(Time::from_millis(START.as_millis() - sent)) };
    let origin = prop_oneof![
        4 => Just(KeyOrigin::Drawn),
        1 => Just(KeyOrigin::Given { first_sent: None }),
        1 => (0_u64..9_000_000).prop_map(given),
        1 => Just(KeyOrigin::None),
    ];
    (origin, prop::sample::select(vec![MethodKind::Other, MethodKind::Other, MethodKind::Idempotent, MethodKind::Safe]))
}

/// One send, as it truly was.
#[derive(Debug)]
struct Sent {
    /// True milliseconds since the start.
    at: u64,
    /// How far the operation's clock was behind.
    hidden: u64,
    attempt: u32,
    timeout: Duration,
    /// How many entries there were.
    written: usize,
}

/// What a run did, told by the entries and sends alone, without the engine.
#[derive(Debug)]
struct Told {
    limits: Limits,
    origin: KeyOrigin,
    method: MethodKind,
    entries: Vec<Entry>,
    sends: Vec<Sent>,
    outcome: Option<Outcome>,
    effect: Effect,
    steps: usize,
}

/// Runs it. The true clock only goes on; what the process reads may lie behind.
fn run(limits: Limits, (origin, method): (KeyOrigin, MethodKind), moves: &[Move], tail: Option<Verdict>) -> Told {
    let policy = limits.policy;
    let created = created(origin, method);
    let mut history = History::replay(std::slice::from_ref(&created)).unwrap();
    let mut entries = vec![created];
    let mut sends = Vec::new();
    let mut truth = 0_u64;
    // The process's clock = true clock - behind; an operation's clock never starts below its entries.
    let mut behind = 0_u64;
    let mut lift = 0_u64;
    let mut outcome = None;
    let mut steps = 0;
    let mut script = moves.iter();
    loop {
        steps += 1;
        let step = match script.next() {
            Some(step) => step.clone(),
            None => match tail {
                Some(verdict) if steps < 100_000 => Move::Act { took: 10, verdict, draw: Draw::Entropy(7) },
                Some(_) | None => break,
            },
        };
        let now = Time::from_millis(START.as_millis() + truth - behind + lift);
        match step {
            Move::Stall { millis } => truth += millis,
            Move::Crash { later, back } => {
                truth += later;
                behind = (behind + back).min(truth);
                let wall = Time::from_millis(START.as_millis() + truth - behind);
                lift = millis(history.latest().since(wall));
                let entry = Entry::Resumed { owner: Owner::new(1), at: wall };
                history.apply(&entry).unwrap();
                entries.push(entry);
                outcome = None;
            }
            Move::Act { took, verdict, draw } => match history.next(&policy, now) {
                Action::Record(entry) => {
                    history.apply(&entry).unwrap();
                    entries.push(entry);
                }
                Action::Sleep(wait) => truth += millis(wait),
                Action::Send { attempt, timeout } => {
                    let hidden = (START.as_millis() + truth).saturating_sub(now.max(history.latest()).as_millis());
                    sends.push(Sent { at: truth, hidden, attempt, timeout, written: entries.len() });
                    truth += took.min(millis(timeout));
                    let now = Time::from_millis(START.as_millis() + truth - behind + lift);
                    let entry = history.ended(verdict, &policy, now, draw);
                    history.apply(&entry).unwrap();
                    entries.push(entry);
                }
                Action::Finish(end) => {
                    outcome = Some(end);
                    if script.len() == 0 {
                        break;
                    }
                }
            },
        }
    }
    Told { limits, origin, method, effect: history.effect(), entries, sends, outcome, steps }
}

impl Told {
    fn reaches(&self) -> impl Iterator<Item = Reach> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Ended { verdict, .. } => Some(verdict.reach()),
            Entry::Interrupted { .. } => Some(Reach::Ambiguous),
            _ => None,
        })
    }

    fn has_open_attempt(&self) -> bool {
        let count = |pick: fn(&Entry) -> bool| self.entries.iter().filter(|entry| pick(entry)).count();
        count(|e| matches!(e, Entry::Started { .. }))
            > count(|e| matches!(e, Entry::Ended { .. } | Entry::Interrupted { .. }))
    }

    /// The runs, each from its `Created` or `Resumed` on.
    fn runs(&self) -> Vec<&[Entry]> {
        let mut cuts: Vec<usize> = (0..self.entries.len())
            .filter(|i| matches!(self.entries[*i], Entry::Created { .. } | Entry::Resumed { .. }))
            .collect();
        cuts.push(self.entries.len());
        cuts.windows(2).map(|pair| &self.entries[pair[0]..pair[1]]).collect()
    }
}

/// `PROPTEST_CASES=100000` for a longer run.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").map_or(600, |count| count.parse().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn send_only_after_started_is_durable(policy in policies(), origin in origins(), moves in moves()) {
        let told = run(policy, origin, &moves, None);
        for send in &told.sends {
            let Entry::Started { attempt: started, .. } = &told.entries[send.written - 1] else {
                panic!("sent after {:?}", told.entries[send.written - 1]);
            };
            prop_assert_eq!(*started, send.attempt);
        }
        let mut numbers: Vec<u32> = told.sends.iter().map(|send| send.attempt).collect();
        numbers.dedup();
        prop_assert_eq!(numbers.len(), told.sends.len(), "an attempt is sent once");
    }

    #[test]
    fn not_applied_only_if_bound_or_never_in_doubt(policy in policies(), origin in origins(), moves in moves()) {
        let told = run(policy, origin, &moves, None);
        if told.method != MethodKind::Safe && told.effect == Effect::NotApplied {
            let bound = told.reaches().any(|reach| reach == Reach::Rejected);
            let doubt = told.has_open_attempt()
                || matches!(told.origin, KeyOrigin::Given { .. })
                || told.reaches().any(|reach| !matches!(reach, Reach::Unsent | Reach::Refused | Reach::Rejected));
            prop_assert!(bound || !doubt, "{:#?}", told);
            let applied = told.reaches().any(|reach| matches!(reach, Reach::Applied | Reach::AppliedUnread));
            prop_assert!(!applied);
        }
    }

    #[test]
    fn never_sent_past_key_lifetime(policy in policies(), origin in origins(), moves in moves()) {
        let told = run(policy, origin, &moves, None);
        if told.method == MethodKind::Safe {
            return Ok(());
        }
        // The first attempt that may have been received: when, and how far the clock was behind then.
        let mut since = match told.origin {
            KeyOrigin::Given { first_sent: Some(sent) } => Some((sent.since(Time::default()), 0)),
            _ => None,
        };
        for send in &told.sends {
            let at = START.since(Time::default()) + ms(send.at);
            if let Some((since, hidden)) = since {
                // Assumption: the clock goes back unseen by no more than the margin.
                let unseen = ms(send.hidden.saturating_sub(hidden));
                if unseen <= told.limits.policy.margin() {
                    prop_assert!(at + send.timeout <= since + ms(told.limits.lifetime), "{:?} of {:#?}", send, told);
                }
            }
            let unsent = told.entries.iter().any(|entry| {
                matches!(entry, Entry::Ended { attempt, verdict, .. } if *attempt == send.attempt && verdict.reach() == Reach::Unsent)
            });
            if !unsent && since.is_none() {
                since = Some((at, send.hidden));
            }
        }
    }

    #[test]
    fn polls_only_once_the_server_knows_the_key(policy in policies(), origin in origins(), moves in moves()) {
        let told = run(policy, origin, &moves, None);
        let mut known = false;
        for (entry, following) in told.entries.iter().zip(told.entries.iter().skip(1)) {
            if let Entry::Ended { verdict, next_at, .. } = entry {
                known |= verdict.marked() || (verdict.why() == Why::InProgress);
                if verdict.why() == Why::Pending && !known {
                    prop_assert_eq!(*next_at, None, "{:#?}", told);
                    let started = matches!(following, Entry::Started { .. });
                    prop_assert!(!started);
                }
            }
        }
    }

    #[test]
    fn polls_have_their_own_budget(policy in policies(), origin in origins(), moves in moves()) {
        let told = run(policy, origin, &moves, None);
        for run in told.runs() {
            let is_poll = |verdict: &Verdict| verdict.reach() == Reach::Accepted { knows_key: true };
            let ended = || run.iter().filter_map(|entry| match entry {
                Entry::Ended { verdict, at, .. } => Some((verdict, *at)),
                _ => None,
            });
            let failures = ended().filter(|(verdict, _)| !is_poll(verdict)).count();
            let first_poll = ended().find(|(verdict, _)| is_poll(verdict)).map(|(_, at)| at);
            // Attempts that ended in this run, the one taken over from a dead owner apart.
            prop_assert!(failures <= told.limits.attempts as usize, "{:#?}", told);
            let mut due = None;
            for entry in run {
                match entry {
                    Entry::Stopped { reason: StopReason::Attempts, .. } => {
                        prop_assert_eq!(failures, told.limits.attempts as usize, "a poll was counted as a failure");
                    }
                    Entry::Stopped { reason: StopReason::Polls, .. } => prop_assert!(first_poll.is_some()),
                    Entry::Started { kind: AttemptKind::Poll, .. } => {
                        // Nothing refills the time for polling, a failure in between least of all.
                        if let (Some(due), Some(first_poll)) = (due, first_poll) {
                            let last: Time = first_poll.after(ms(told.limits.poll_limit));
                            prop_assert!(due <= last, "{:#?}", told);
                        }
                    }
                    Entry::Ended { next_at, .. } => due = *next_at,
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn recovery_equals_replay(policy in policies(), origin in origins(), moves in moves()) {
        let told = run(policy, origin, &moves, None);
        let mut living = History::replay(&told.entries[..1]).unwrap();
        for (index, entry) in told.entries.iter().enumerate().skip(1) {
            living.apply(entry).unwrap();
            let replayed = History::replay(&told.entries[..=index]).unwrap();
            prop_assert_eq!(&living, &replayed);
            let now = living.latest().after(ms(5));
            prop_assert_eq!(living.next(&told.limits.policy, now), replayed.next(&told.limits.policy, now));
        }
    }

    #[test]
    fn every_run_ends(policy in policies(), origin in origins(), moves in moves(), tail in verdicts()) {
        // Whatever the server goes on saying, for ever.
        let told = run(policy, origin, &moves, Some(tail));
        prop_assert!(told.outcome.is_some(), "no end after {} steps", told.steps);
    }

    #[test]
    fn contradiction_is_unknown(policy in policies(), origin in origins(), moves in moves()) {
        let told = run(policy, origin, &moves, None);
        let applied = told.reaches().any(|reach| matches!(reach, Reach::Applied | Reach::AppliedUnread));
        let rejected = told.reaches().any(|reach| reach == Reach::Rejected);
        if applied && rejected {
            let effect = if told.method == MethodKind::Safe { Effect::NotApplied } else { Effect::Unknown };
            prop_assert_eq!(told.effect, effect);
            prop_assert!(!matches!(told.outcome, Some(Outcome::Applied)));
        }
    }

    #[test]
    fn any_entries_at_all_are_refused_or_folded_without_a_panic(policy in policies(), entries in prop::collection::vec(entries(), 0..30)) {
        if let Ok(history) = History::replay(&entries) {
            let _ = history.next(&policy.policy, Time::MAX);
            let _ = history.next(&policy.policy, Time::default());
            let _ = history.ended(DONE, &policy.policy, Time::default(), Draw::Entropy(0));
        }
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap()
}

fn entries() -> impl Strategy<Value = Entry> {
    let time = || {
        prop_oneof![
            Just(Time::MAX),
            (0_u64..u64::MAX).prop_map(Time::from_millis),
            (0_u64..50).prop_map(|d| START.after(ms(d)))
        ]
    };
    prop_oneof![
        origins().prop_map(|(key, method)| created(key, method)),
        time().prop_map(|at| Entry::Resumed { owner: Owner::new(1), at }),
        (0_u32..6, time()).prop_map(|(attempt, at)| Entry::Started {
            attempt,
            kind: AttemptKind::Retry,
            timeout: Duration::MAX,
            at
        }),
        (0_u32..6, verdicts(), time(), prop::option::of(time()))
            .prop_map(|(attempt, verdict, at, next_at)| Entry::Ended { attempt, verdict, at, next_at }),
        (0_u32..6, time()).prop_map(|(attempt, at)| Entry::Interrupted { attempt, at }),
        time().prop_map(|at| Entry::Stopped { reason: StopReason::Attempts, at }),
    ]
}

#[test]
fn polls_do_not_spend_attempts_nor_attempts_polls() {
    let mut run = Run::new(policy(), KeyOrigin::Drawn, MethodKind::Other);
    let verdicts = [TIMEOUT, RUNNING, RUNNING, RUNNING, RUNNING, TIMEOUT, RUNNING, DONE];
    assert_eq!(run.finish(&verdicts), Outcome::Applied);
    // The limit runs from the first poll, and no failure in between refills it.
    let mut run = Run::new(policy().polls(ms(1000), ms(1000), ms(3000)), KeyOrigin::Drawn, MethodKind::Other);
    assert_eq!(run.finish(&[RUNNING, RUNNING, TIMEOUT, RUNNING]), Outcome::Stopped(StopReason::Polls));
}

#[test]
fn clock_step_back_does_not_renew_the_key() {
    let policy = policy(); // a key lives an hour, the margin is 6 minutes
    let minutes = |count: u64| ms(count * 60_000);
    for (back, may_go_on) in [(5, true), (7, false)] {
        let mut run = Run::new(policy, KeyOrigin::Drawn, MethodKind::Other);
        assert_eq!(run.finish(&[TIMEOUT, TIMEOUT, TIMEOUT]), Outcome::Stopped(StopReason::Attempts));
        let latest = run.history.latest().as_millis();
        run.resume(Time::from_millis(latest - millis(minutes(back))));
        let outcome = run.finish(if may_go_on { &[DONE] } else { &[] });
        let expected = if may_go_on { Outcome::Applied } else { Outcome::Stopped(StopReason::KeyExpired) };
        assert_eq!(outcome, expected, "{back} minutes back");
        // Nor does a later resume with a clock that is right again.
        if !may_go_on {
            run.resume(START.after(minutes(10)));
            assert_eq!(run.finish(&[]), Outcome::Stopped(StopReason::KeyExpired));
        }
    }
    // What was never received has no age.
    let mut run = Run::new(policy, KeyOrigin::Drawn, MethodKind::Other);
    assert_eq!(run.finish(&[REFUSED, REFUSED, REFUSED]), Outcome::Stopped(StopReason::Attempts));
    run.resume(Time::from_millis(START.as_millis() - 3_000_000));
    assert_eq!(run.finish(&[DONE]), Outcome::Applied);
}

#[test]
fn budgets_restart_on_resume_but_the_lifetime_never_does() {
    let mut run = Run::new(policy(), KeyOrigin::Drawn, MethodKind::Other);
    let mut minute = 0;
    loop {
        let due = run.history.next(&run.policy, run.now);
        if matches!(due, Action::Finish(Outcome::Stopped(StopReason::KeyExpired))) {
            break;
        }
        let mut endless = std::iter::repeat(TIMEOUT);
        while run.step(&mut endless).is_none() {}
        minute += 5;
        run.resume(START.after(ms(minute * 60_000)));
        let _ = run.step(&mut endless);
        assert!(minute < 100);
    }
    // Eleven runs of three attempts: at 0, 5, ... 50 minutes; 54 is the last moment.
    assert_eq!(run.trace.iter().filter(|line| line.starts_with("submit")).count(), 33);
    assert!(run.now <= START.after(ms(60 * 60_000)));
    assert_eq!(run.effect(), Effect::Unknown);
}

#[test]
fn the_keys_age_is_checked_right_before_each_send() {
    let mut run = Run::new(policy(), KeyOrigin::Drawn, MethodKind::Other);
    let _ = run.finish(&[TIMEOUT, TIMEOUT, TIMEOUT]);
    run.resume(START.after(ms(53 * 60_000 + 30_000)));
    let started = run.history.next(&run.policy, run.now);
    let Action::Record(started @ Entry::Started { .. }) = started else { panic!("{started:?}") };
    run.record(started);
    // Writing it down took half a minute.
    run.now = START.after(ms(54 * 60_000));
    let sends = run.trace.len();
    assert_eq!(run.finish(&[]), Outcome::Stopped(StopReason::KeyExpired));
    assert_eq!(run.trace.len(), sends);
    assert_eq!(run.effect(), Effect::Unknown);
}

#[test]
fn a_callers_key_counts_from_when_it_was_first_sent() {
    let sent =
        |minutes: u64| KeyOrigin::Given { first_sent: Some(Time::from_millis(START.as_millis() - minutes * 60_000)) };
    let mut old = Run::new(policy(), sent(55), MethodKind::Other);
    assert_eq!((old.finish(&[]), old.effect()), (Outcome::Stopped(StopReason::KeyExpired), Effect::Unknown));
    let mut young = Run::new(policy(), sent(50), MethodKind::Other);
    assert_eq!((young.finish(&[INVALID]), young.effect()), (Outcome::Ended(INVALID), Effect::Unknown));
    let future = KeyOrigin::Given { first_sent: Some(Time::MAX) };
    let mut odd = Run::new(policy(), future, MethodKind::Other);
    let _ = odd.finish(&[TIMEOUT, TIMEOUT, TIMEOUT]);
    odd.resume(START.after(ms(55 * 60_000)));
    assert_eq!(odd.finish(&[]), Outcome::Stopped(StopReason::KeyExpired));
}
