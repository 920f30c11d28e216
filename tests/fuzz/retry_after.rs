//! `Retry-After`, `retry-after-ms` and dates, read off an answer and waited for by the engine.

use std::sync::LazyLock;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, Method, StatusCode};
use oncekey::engine::{Advice, AttemptKind, Draw, Entry, History, KeyOrigin, MethodKind, Policy, Reach, Time, Verdict};
use oncekey::profile::{Answer, Asked, Exchange, Profile};

use crate::mutate::bent;
use crate::reading::{LAST, LAST_OF_TWO_DIGITS, Wait, date, least_by_digits};
use crate::source::Source;

static PRESETS: LazyLock<[Profile; 5]> =
    LazyLock::new(|| [Profile::generic(), Profile::verifika(), Profile::ietf(), Profile::stripe(), Profile::toss()]);
const NO_WAIT: [&[u8]; 17] = [
    b"", b" ", b"-3", b"+3", b"soon", b"1, 2", b"1.", b".5", b"1.2.3", b"1e3", b"0x10", b"1 2", b"1,5", b"NaN", b"3s",
    b"\xb2", b"inf",
];
const SOME: [&[u8]; 8] = [
    b"3",
    b"0.25",
    b"120",
    b"18446744073709551615",
    b"Sun, 06 Nov 1994 08:49:37 GMT",
    b"Sunday, 06-Nov-94 08:49:37 GMT",
    b"Sun Nov  6 08:49:37 1994",
    b"2015-10-21T07:28:00Z",
];

/// Digits, now and then very many of them, and their value.
fn digits(source: &mut Source<'_>) -> (String, u64) {
    let number = source.number();
    let zeros = "0".repeat(source.length(300));
    match source.below(24) {
        0 => (format!("{}{}", zeros, "9".repeat(20 + source.length(4000))), u64::MAX),
        1 => (format!("{zeros}{number}"), number),
        _ => (number.to_string(), number),
    }
}

/// A value, and what it means: in units of which so many make a second, dates counted from `now`.
fn value(source: &mut Source<'_>, per_second: u32, now: Option<Duration>) -> (Vec<u8>, Wait) {
    let (text, wait) = match source.below(8) {
        0..=2 => {
            let (text, number) = digits(source);
            let wait = if per_second == 1 { Duration::from_secs(number) } else { Duration::from_millis(number) };
            (text.into_bytes(), Wait::exactly(wait))
        }
        3 => {
            let (whole, number) = digits(source);
            let (fraction, _) = digits(source);
            // Somewhere between this unit and the next, a nanosecond's rounding apart.
            let (least, most) = if per_second == 1 {
                (Duration::from_secs(number), Duration::from_secs(number.saturating_add(1)))
            } else {
                (Duration::from_millis(number), Duration::from_millis(number.saturating_add(1)))
            };
            let most = if number == u64::MAX { Duration::MAX } else { most };
            (format!("{whole}.{fraction}").into_bytes(), Wait::Named(least, most))
        }
        4 => (source.pick(&NO_WAIT).to_vec(), Wait::Absent),
        5 | 6 => {
            let form = source.below(3);
            let last = if form == 1 { LAST_OF_TWO_DIGITS } else { LAST };
            let then = source.word() % (last + 1);
            let wait = match now {
                _ if per_second != 1 => Wait::Absent,
                Some(now) => Wait::exactly(Duration::from_secs(then).saturating_sub(now)),
                None => Wait::Unknown,
            };
            (date(then, form).into_bytes(), wait)
        }
        _ => (bent(source, &SOME), Wait::Unknown),
    };
    let blanks: [&[u8]; 4] = [b"", b"", b" ", b"\t "];
    let (before, after) = (*source.pick(&blanks), *source.pick(&blanks));
    ([before, &text, after].concat(), wait)
}

/// Adds up to two lines of this header; what cannot be a header's value is left out.
fn add(source: &mut Source<'_>, headers: &mut HeaderMap, name: &'static str, now: Option<Duration>) -> Wait {
    let lines = [1, 1, 1, 1, 0, 2][source.below(6)];
    let (mut wait, mut count) = (Wait::Absent, 0);
    for _ in 0..lines {
        let (value, meaning) = value(source, if name == "retry-after" { 1 } else { 1000 }, now);
        if let Ok(value) = HeaderValue::from_bytes(&value) {
            headers.append(name, value);
            count += 1;
            wait = if count == 1 { meaning } else { Wait::Absent };
        }
    }
    wait
}

pub(crate) fn check(source: &mut Source<'_>) {
    let mut headers = HeaderMap::new();
    let received = Time::from_millis(source.number());
    let now = match source.below(4) {
        0 => {
            let (seconds, form) = (source.word() % (LAST + 1), [0, 0, 2][source.below(3)]);
            headers.insert("date", date(seconds, form).parse().unwrap());
            Some(Duration::from_secs(seconds))
        }
        1 => match HeaderValue::from_bytes(&bent(source, &SOME)) {
            Ok(bent) => {
                headers.insert("date", bent);
                None
            }
            Err(_) => Some(Duration::from_millis(received.as_millis())),
        },
        _ => Some(Duration::from_millis(received.as_millis())),
    };
    let wait =
        add(source, &mut headers, "retry-after", now).or_longer(add(source, &mut headers, "retry-after-ms", now));

    let profile = source.pick(&*PRESETS);
    let status = *source.pick(&[503, 500, 429, 408, 425]);
    let none = HeaderMap::new();
    let asked = Asked::new(&Method::POST, &none).with_key(Some("3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506"));
    let answer = Answer::new(StatusCode::from_u16(status).unwrap(), &headers, b"{}").received(received);
    let verdict = profile.read(&asked, &Exchange::Answered(answer));
    assert_eq!(verdict.reach(), Reach::Ambiguous, "{status} {headers:?}");
    let named = match verdict.advice() {
        Advice::Retry => None,
        Advice::RetryAfter(named) => Some(named),
        other => panic!("{other:?} to a {status} with {headers:?}"),
    };
    wait.allows(named, &headers);
    if let Some(least) = least_by_digits(&headers) {
        assert!(named.is_some_and(|named| named >= least), "{named:?}, not {least:?}: {headers:?}");
    }
    is_waited_for(source, verdict, named, received);
}

/// The engine waits no less, at any moment and under any limits.
fn is_waited_for(source: &mut Source<'_>, verdict: Verdict, named: Option<Duration>, at: Time) {
    let (base, most) = (Duration::from_nanos(source.number()), Duration::from_nanos(source.number()));
    let policy = Policy::new().delays(base.min(most), most);
    let entries = [
        Entry::Created { at, key: KeyOrigin::Drawn, method: MethodKind::Other, gone_is_done: false },
        Entry::Started { attempt: 1, kind: AttemptKind::First, timeout: Duration::from_secs(1), at },
    ];
    let history = History::replay(&entries).unwrap();
    let draw = match source.below(3) {
        0 => Draw::Entropy(0),
        1 => Draw::Entropy(source.word()),
        _ => Draw::Delay(Duration::from_nanos(source.number())),
    };
    let Entry::Ended { at, next_at: Some(next_at), .. } = history.ended(verdict, &policy, at, draw) else {
        panic!("no next attempt after {verdict:?}");
    };
    assert!(next_at >= at.after(named.unwrap_or_default()), "{next_at:?} is before {named:?} after {at:?}");
}
