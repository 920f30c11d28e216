//! The engine over long records, likely and unlikely, under limits and at times of any size.

use std::time::Duration;

use oncekey::engine::{
    Action, Advice, AttemptKind, Draw, Effect, Entry, History, KeyOrigin, MethodKind, Owner, Policy, Reach, StopReason,
    Time, Verdict, Why,
};

use crate::source::Source;

fn span(source: &mut Source<'_>) -> Duration {
    match source.below(12) {
        0 => Duration::MAX,
        1 => Duration::ZERO,
        2 => Duration::from_nanos(1),
        3 => Duration::from_secs(source.number()),
        4..=6 => Duration::from_nanos(source.number()),
        _ => Duration::from_millis(source.word() % 100_000),
    }
}

fn policy(source: &mut Source<'_>) -> Policy {
    let attempts = if source.one_in(3) { u32::MAX } else { u32::try_from(source.below(6)).unwrap() };
    Policy::new()
        .max_attempts(attempts)
        .delays(span(source), span(source))
        .polls(span(source), span(source), span(source))
        .attempt_timeout(span(source))
        .deadline(span(source))
        .key_lifetime(span(source))
        .authorizes(source.one_in(2))
}

fn time(source: &mut Source<'_>, near: Time) -> Time {
    match source.below(12) {
        0 => Time::MAX,
        1 => Time::default(),
        2 => Time::from_millis(source.number()),
        3 | 4 => Time::from_millis(near.as_millis().saturating_sub(source.word() % 4_000_000)),
        _ => near.after(Duration::from_millis(source.word() % 20_000)),
    }
}

fn verdict(source: &mut Source<'_>) -> Verdict {
    let reach = *source.pick(&[
        Reach::Unsent,
        Reach::Refused,
        Reach::Ambiguous,
        Reach::Ambiguous,
        Reach::Accepted { knows_key: true },
        Reach::Accepted { knows_key: true },
        Reach::Accepted { knows_key: false },
        Reach::AppliedUnread,
        Reach::Applied,
        Reach::Rejected,
    ]);
    let advice = match source.below(6) {
        0 => Advice::Stop,
        1 => Advice::RetryAfter(span(source)),
        _ => Advice::Retry,
    };
    let why = *source.pick(&[
        Why::NotSent,
        Why::NoHead,
        Why::CutBody,
        Why::InProgress,
        Why::KeyReused,
        Why::Pending,
        Why::Unauthorized,
        Why::ServerError,
        Why::Success,
        Why::Other,
    ]);
    Verdict::new(reach, advice, why).with_mark(source.one_in(4))
}

fn draw(source: &mut Source<'_>) -> Draw {
    match source.below(4) {
        0 => Draw::Entropy(u64::MAX),
        1 => Draw::Delay(span(source)),
        2 => Draw::GiveUp,
        _ => Draw::Entropy(source.word()),
    }
}

/// Any entry at all, its number likely.
fn entry(source: &mut Source<'_>, near: Time, attempts: u32) -> Entry {
    let at = time(source, near);
    let next = attempts.wrapping_add(1);
    let attempt = *source.pick(&[attempts, attempts, next, next, 0, u32::MAX]);
    match source.below(9) {
        0 => Entry::Resumed { owner: Owner::new(u128::from(source.word())), at },
        1 | 2 => Entry::Started { attempt, kind: AttemptKind::Retry, timeout: span(source), at },
        3 | 4 => {
            let next_at = if source.one_in(3) { None } else { Some(time(source, near)) };
            Entry::Ended { attempt, verdict: verdict(source), at, next_at }
        }
        5 => Entry::Interrupted { attempt, at },
        6 => Entry::Stopped { reason: *source.pick(&[StopReason::Attempts, StopReason::Schedule]), at },
        7 => Entry::Amended { at, version: 2 },
        _ => {
            let effect = *source.pick(&[Effect::NotApplied, Effect::Applied, Effect::Unknown]);
            Entry::Resolved { effect, by: "some\"body\n\u{0}é".into(), at }
        }
    }
}

fn created(source: &mut Source<'_>) -> Entry {
    let at = Time::from_millis(source.number());
    let key = match source.below(4) {
        0 => KeyOrigin::Given { first_sent: None },
        1 => KeyOrigin::Given { first_sent: Some(time(source, at)) },
        2 => KeyOrigin::None,
        _ => KeyOrigin::Drawn,
    };
    let method = *source.pick(&[MethodKind::Other, MethodKind::Other, MethodKind::Idempotent, MethodKind::Safe]);
    Entry::Created { at, key, method, gone_is_done: source.one_in(2) }
}

/// What was seen of an operation, apart from the engine's own fold.
struct Seen {
    safe: bool,
    doubt: bool,
    applied: bool,
    rejected: bool,
    open: bool,
    /// What a person decided, which must not be against what is certain.
    decided: Option<Effect>,
}

impl Seen {
    fn note(&mut self, entry: &Entry) {
        match entry {
            Entry::Started { .. } => self.open = true,
            Entry::Interrupted { .. } => (self.open, self.doubt) = (false, true),
            Entry::Ended { verdict, .. } => {
                self.open = false;
                match verdict.reach() {
                    Reach::Unsent | Reach::Refused => {}
                    Reach::Applied | Reach::AppliedUnread => self.applied = true,
                    Reach::Rejected => self.rejected = true,
                    _ => self.doubt = true,
                }
            }
            Entry::Resolved { effect, .. } => {
                let against = match effect {
                    Effect::Applied => self.rejected && !self.applied,
                    Effect::NotApplied => self.applied && !self.rejected,
                    Effect::Unknown => true,
                };
                assert!(!against && !self.open, "{effect} was decided");
                self.decided = Some(*effect);
            }
            Entry::Amended { .. } => {
                assert!(!self.doubt && !self.applied && !self.rejected && !self.open, "a doubtful request was amended");
            }
            _ => {}
        }
    }

    fn agrees(&self, effect: Effect) -> bool {
        match effect {
            decided if self.decided.is_some() && !self.safe => self.decided == Some(decided),
            Effect::NotApplied => self.safe || (!self.applied && (self.rejected || !(self.doubt || self.open))),
            Effect::Applied => !self.safe && self.applied && !self.rejected,
            Effect::Unknown => !self.safe && (self.doubt || self.open || (self.applied && self.rejected)),
        }
    }
}

pub(crate) fn check(source: &mut Source<'_>) {
    let policy = policy(source);
    let first = created(source);
    let Entry::Created { at, key, method, .. } = first else { unreachable!() };
    let mut history = History::replay(std::slice::from_ref(&first)).unwrap();
    let mut seen = Seen {
        safe: method == MethodKind::Safe,
        doubt: matches!(key, KeyOrigin::Given { .. }),
        applied: false,
        rejected: false,
        open: false,
        decided: None,
    };
    let mut entries = vec![first];
    let mut now = at;
    let steps = if source.one_in(8) { source.below(1500) } else { source.length(400) };
    for _ in 0..steps {
        now = if source.one_in(40) { time(source, now) } else { now };
        for other in [Time::default(), Time::MAX, history.latest()] {
            let _ = history.next(&policy, other);
        }
        let wild = source.one_in(12);
        let next = if wild {
            Some(entry(source, now, history.attempts()))
        } else {
            follow(source, &history, &policy, &mut now)
        };
        // At its end it is taken up again.
        let next = next.unwrap_or_else(|| Entry::Resumed { owner: Owner::new(1), at: time(source, now) });
        let before = history.clone();
        match history.apply(&next) {
            Ok(()) => {
                seen.note(&next);
                entries.push(next);
            }
            Err(error) => {
                assert!(wild, "{error}: the engine's own {next:?} after {entries:#?}");
                assert_eq!(history, before, "changed by an entry that was refused");
            }
        }
        assert!(seen.agrees(history.effect()), "{:?} after {entries:#?}", history.effect());
        assert!(history.latest() >= before.latest());
    }
    let replayed = History::replay(&entries).unwrap();
    assert_eq!(replayed, history, "{entries:#?}");
    assert_eq!(replayed.next(&policy, now), history.next(&policy, now));
    #[cfg(feature = "journal")]
    for entry in entries.iter().rev().take(12) {
        let line = oncekey::journal::codec::encode_entry(entry);
        assert_eq!(oncekey::journal::codec::decode_entry(&line).as_ref().ok(), Some(entry), "{line}");
    }
}

/// Does what the engine says; the entry that comes of it, unless it is over.
fn follow(source: &mut Source<'_>, history: &History, policy: &Policy, now: &mut Time) -> Option<Entry> {
    for _ in 0..3 {
        match history.next(policy, *now) {
            Action::Record(entry) => return Some(entry),
            Action::Send { timeout, .. } => {
                let shown = verdict(source);
                *now = now.after(timeout.min(Duration::from_millis(source.word() % 3000)));
                let budget = history.budget(shown, policy);
                let ended = history.ended(shown, policy, *now, draw(source));
                if let Entry::Ended { verdict, next_at, at, .. } = &ended {
                    let stops = verdict.advice() == Advice::Stop;
                    assert_eq!(budget.is_none(), stops);
                    assert!(!stops || next_at.is_none(), "{ended:?}");
                    assert!(next_at.is_none_or(|next_at| next_at >= *at), "{ended:?}");
                }
                return Some(ended);
            }
            Action::Sleep(wait) => {
                assert!(!wait.is_zero(), "a wait of nothing");
                *now = (*now).max(history.latest()).after(wait);
            }
            Action::Finish(_) => return None,
        }
    }
    panic!("three waits in a row: {history:#?}");
}
