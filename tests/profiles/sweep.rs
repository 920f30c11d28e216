//! What no preset may ever conclude, over every status, with bodies and heads
//! of every kind.

use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use oncekey::Profile;
use oncekey::engine::{Effect, Reach, Why};
use oncekey::profile::{Answer, Asked, Exchange};

use crate::vectors::{Earlier, KEY, effect};

/// A success that may be believed: neither pending nor many.
fn is_done(status: u16) -> bool {
    (200..300).contains(&status) && status != 202 && status != 207
}

fn statuses() -> impl Iterator<Item = u16> {
    (100..104).chain(200..209).chain(299..309).chain(399..432).chain([451, 499]).chain(500..512).chain([599, 600, 999])
}

/// A refusal that may be believed of this attempt (rules 14 to 17).
const REFUSALS: [u16; 17] = [400, 401, 402, 403, 404, 405, 407, 409, 410, 411, 412, 413, 414, 415, 417, 422, 431];

fn heads() -> Vec<HeaderMap> {
    let line = |name: &'static str, value: &str| {
        let mut map = HeaderMap::new();
        map.insert(HeaderName::from_static(name), HeaderValue::try_from(value).unwrap());
        map
    };
    let mut heads = vec![HeaderMap::new(), line("content-type", "application/json"), line("content-type", "text/html")];
    for mark in ["idempotent-replay", "idempotent-replayed", "idempotency-replayed"] {
        heads.push(line(mark, "true"));
    }
    for name in ["idempotency-relayed", "idempotency-key", "paypal-request-id"] {
        heads.push(line(name, KEY));
    }
    for name in ["transient-error", "stripe-should-retry"] {
        heads.extend([line(name, "true"), line(name, "false")]);
    }
    heads
}

const BODIES: [&str; 9] = [
    "",
    "{}",
    "[]",
    "\u{feff}{\"code\":null}",
    "{\"code\":\"OUT_OF_FUNDS\"}",
    "{\"errorCode\":704,\"error\":{\"errors\":[{\"reason\":7}]}}",
    "<html>Misuse of the idempotency key",
    "{\"errors\":[{\"code\":\"resource_locked\"}],\"details\":[{\"issue\":\"PREVIOUS_REQUEST_IN_PROGRESS\"}]}",
    "\u{1f980} was used in a different request",
];

#[test]
fn nothing_is_concluded_that_no_rule_allows() {
    let asked_for = HeaderMap::new();
    for profile in Profile::presets() {
        for head in heads() {
            for status in statuses() {
                for body in BODIES {
                    let answer = Answer::new(StatusCode::from_u16(status).unwrap(), &head, body.as_bytes());
                    let asked = Asked::new(&Method::POST, &asked_for).with_key(Some(KEY));
                    let verdict = profile.read(&asked, &Exchange::Answered(answer));
                    let told = || format!("{} {status} {head:?} {body}: {verdict:?}", profile.id());
                    match effect(verdict, Earlier::Nothing) {
                        Effect::Applied => assert!(is_done(status), "{}", told()),
                        Effect::NotApplied => {
                            let bound = verdict.reach() == Reach::Rejected && (400..500).contains(&status);
                            assert!(REFUSALS.contains(&status) || bound, "{}", told());
                        }
                        Effect::Unknown => {}
                    }
                    // An earlier doubt is settled by a success or by the layer's own word alone.
                    match effect(verdict, Earlier::Doubt) {
                        Effect::NotApplied => assert!(verdict.marked(), "{}", told()),
                        Effect::Applied => assert!(is_done(status), "{}", told()),
                        Effect::Unknown => {}
                    }
                    // Polling needs the layer's word about this key, so a request that had one.
                    let keyless = Asked::new(&Method::POST, &asked_for);
                    let verdict = profile.read(&keyless, &Exchange::Answered(answer));
                    assert_ne!(verdict.reach(), Reach::Accepted { knows_key: true }, "{}", told());
                    assert!(!verdict.marked() && verdict.why() != Why::StoredError, "{}", told());
                    let _ = profile.original_id(&answer);
                }
            }
        }
    }
}
