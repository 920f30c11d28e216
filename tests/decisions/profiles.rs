//! The presets, each by the facts on its provider's pages.

use http::Method;
use oncekey::engine::{Advice, Reach, Why};
use oncekey::profile::{KeyFormat, Matcher, Meaning, Profile, Replay};

use crate::reading::{KEY, case};
use crate::trace::ms;

const JSON: (&str, &str) = ("content-type", "application/json");
const RUNNING: Reach = Reach::Accepted { knows_key: true };

#[test]
fn verifika() {
    let at = |status, headers: &[_], body| case(status, headers, body).profile(Profile::verifika());
    let body = r#"{"code":"IDEMPOTENCY_IN_PROGRESS","message":"still at it"}"#;
    at(409, &[JSON], body).gives(RUNNING, Advice::Retry, Why::InProgress);
    at(409, &[JSON], r#"{"code":"IDEMPOTENCY_KEY_REUSED"}"#).gives(Reach::Refused, Advice::Stop, Why::KeyReused);
    at(400, &[JSON], r#"{"code":"INVALID"}"#).gives(Reach::Refused, Advice::Stop, Why::Refusal);
    let mark = ("Idempotent-Replay", "true");
    at(201, &[JSON, mark], "{}").gives(Reach::Applied, Advice::Stop, Why::Success);
    at(500, &[JSON, mark], "{}").gives(RUNNING, Advice::Retry, Why::StoredError);
    let profile = Profile::verifika();
    assert_eq!(profile.replay(&at(201, &[JSON, mark], "{}").read()), Replay::Yes);
    assert_eq!(profile.replay(&at(201, &[JSON], "{}").read()), Replay::No);
    assert_eq!(profile.key_lifetime(), ms(86_400_000));
    assert!(profile.keys(&Method::POST) && !profile.keys(&Method::PATCH) && !profile.keys(&Method::PUT));
    profile.key_format().check(KEY).unwrap();
}

#[test]
fn generic() {
    let profile = Profile::generic();
    assert!(profile.keys(&Method::POST) && profile.keys(&Method::PATCH) && !profile.keys(&Method::DELETE));
    assert_eq!(profile.replay(&case(201, &[], "").read()), Replay::Unmarked);
    for header in ["Idempotent-Replay", "Idempotent-Replayed", "Idempotency-Replayed"] {
        for value in ["true", "True", "1"] {
            assert_eq!(profile.replay(&case(201, &[(header, value)], "").read()), Replay::Yes, "{header}: {value}");
        }
        for value in ["false", "0", "", "yes"] {
            assert_eq!(
                profile.replay(&case(201, &[(header, value)], "").read()),
                Replay::Unmarked,
                "{header}: {value}"
            );
        }
    }
    assert_eq!(Profile::default().id(), "generic");
}

#[test]
fn ietf() {
    let at =
        |status, body| case(status, &[("content-type", "application/problem+json")], body).profile(Profile::ietf());
    at(409, r#"{"title":"A request is outstanding for this Idempotency-Key"}"#).gives(
        RUNNING,
        Advice::Retry,
        Why::InProgress,
    );
    at(422, r#"{"title":"Idempotency-Key is already used"}"#).gives(Reach::Ambiguous, Advice::Stop, Why::KeyReused);
    at(422, r#"{"title":"Amount is missing"}"#).gives(Reach::Refused, Advice::Stop, Why::Refusal);
    at(409, r#"{"title":"A conflict"}"#).gives(Reach::Ambiguous, Advice::Stop, Why::Conflict);
}

#[test]
fn stripe() {
    let at = |status, headers: &[_], body| case(status, headers, body).profile(Profile::stripe());
    let replayed = ("Idempotent-Replayed", "true");
    at(409, &[JSON], r#"{"error":{"code":"idempotency_key_in_use","type":"idempotency_error"}}"#).gives(
        RUNNING,
        Advice::Retry,
        Why::InProgress,
    );
    at(400, &[JSON], r#"{"error":{"type":"idempotency_error"}}"#).gives(Reach::Ambiguous, Advice::Stop, Why::KeyReused);
    at(500, &[JSON, replayed], "{}").gives(Reach::Ambiguous, Advice::Stop, Why::StoredError);
    at(500, &[JSON, ("Stripe-Should-Retry", "false")], "{}").gives(Reach::Ambiguous, Advice::Stop, Why::ServerError);
    at(500, &[JSON], "{}").gives(Reach::Ambiguous, Advice::Retry, Why::ServerError);
    at(402, &[JSON, replayed], r#"{"error":{"code":"card_declined"}}"#).gives(
        Reach::Rejected,
        Advice::Stop,
        Why::Refusal,
    );
    at(429, &[JSON], r#"{"error":{"code":"lock_timeout"}}"#).gives(Reach::Ambiguous, Advice::Retry, Why::RateLimited);
    Profile::stripe().key_format().check(&"k".repeat(255)).unwrap();
    Profile::stripe().key_format().check(&"k".repeat(256)).unwrap_err();
}

#[test]
fn toss() {
    let profile = Profile::toss();
    let at = |status, body| case(status, &[JSON], body).profile(profile.clone());
    at(409, r#"{"code":"IDEMPOTENT_REQUEST_PROCESSING"}"#).gives(RUNNING, Advice::Retry, Why::InProgress);
    at(400, r#"{"code":"INVALID_IDEMPOTENCY_KEY"}"#).gives(Reach::Refused, Advice::Stop, Why::Refusal);
    assert_eq!(profile.key_lifetime(), ms(15 * 86_400_000));
    assert_eq!(profile.replay(&case(200, &[], "").profile(profile.clone()).read()), Replay::Unmarked);
}

#[test]
fn a_profile_of_ones_own_is_checked() {
    let builder = || Profile::builder("acme");
    let rule = |matcher| builder().rule(matcher, Meaning::InProgress).build();
    for (error, word) in [
        (Profile::builder("").build(), "id"),
        (Profile::builder("a b").build(), "id"),
        (builder().key_lifetime(ms(0)).build(), "lifetime"),
        (builder().key_header("not a header").build(), "not a header"),
        (builder().replay_mark("x", "a\nb").build(), "x"),
        (builder().code_paths(["a..b"]).build(), "a..b"),
        (builder().should_retry_header("").build(), "header name"),
        (rule(Matcher::new().status(42)), "42"),
        (rule(Matcher::new().code_at("errors[0]", "X")), "errors[0]"),
        (rule(Matcher::new().header("a b", "X")), "a b"),
        (rule(Matcher::new().present("a..b")), "a..b"),
        (rule(Matcher::new().header_absent("a b")), "a b"),
        (builder().replay_mark_is_key("").build(), "header name"),
        (builder().recovers(Matcher::new(), "a[0]").build(), "a[0]"),
        (builder().settles(Matcher::new().code_at("", "X")).build(), "place in a JSON body"),
        (builder().settles(Matcher::new().status(200)).build(), "refusals"),
        (builder().key_format(KeyFormat::visible(1..=32)).build(), "36 characters"),
        (builder().key_format(KeyFormat::visible(400..=500)).keyed_methods([]).build(), "shortest"),
    ] {
        let error = error.unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
    builder().key_format(KeyFormat::visible(1..=64)).key_header("X-Request-Id").build().unwrap();
}
