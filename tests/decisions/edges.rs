//! The edges of profiles and of reading: the first and the last of what each
//! rule takes, and what `Debug` may show.

use http::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use oncekey::Client;
use oncekey::engine::{Advice, Reach, StopReason, Why};
use oncekey::profile::{Answer, Asked, Exchange, Judgement, KeyFormat, Matcher, Meaning, Profile};

use crate::reading::{KEY, case};

const JSON: (&str, &str) = ("content-type", "application/json");
const HTML: (&str, &str) = ("content-type", "text/html");
const RUNNING: Reach = Reach::Accepted { knows_key: true };

#[test]
fn a_page_is_wanted_where_no_range_also_takes_json() {
    let accepting = |accept: &str| case(200, &[HTML], "<html>").asking("accept", accept);
    for accept in ["text/html", "application/xhtml+xml", "text/*", "TEXT/HTML;q=0.9, application/xml"] {
        accepting(accept).gives(Reach::Applied, Advice::Stop, Why::Success);
    }
    for json in ["*/*", "application/*", "application/json", "application/hal+json"] {
        accepting(&format!("text/html, {json}")).gives(Reach::Ambiguous, Advice::Retry, Why::WrongType);
    }
}

#[test]
fn over_http_2_no_transfer_encoding_proves_a_length() {
    let odd = case(201, &[JSON, ("transfer-encoding", "chunked")], r#"{"id":,}"#);
    odd.clone().http2().gives(Reach::Applied, Advice::Stop, Why::Success);
    let odd = odd.close_delimited();
    odd.clone().gives(Reach::Applied, Advice::Stop, Why::Success);
    odd.http2().gives(Reach::AppliedUnread, Advice::Retry, Why::CutBody);
}

#[test]
fn without_a_key_the_servers_word_counts_where_twice_is_no_more_than_once() {
    let profile = Profile::builder("plain").should_retry_header("should-retry").build().unwrap();
    let told = |method| case(400, &[("should-retry", "true")], "").profile(profile.clone()).keyless().method(method);
    for method in [Method::GET, Method::HEAD, Method::OPTIONS, Method::PUT, Method::DELETE] {
        told(method).gives(Reach::Refused, Advice::Retry, Why::Refusal);
    }
    for method in [Method::POST, Method::PATCH, Method::from_bytes(b"QUERY").unwrap()] {
        told(method).gives(Reach::Refused, Advice::Stop, Why::Refusal);
    }
}

#[test]
fn codes_are_looked_for_in_up_to_256_kib() {
    let conflict = |length: usize| {
        let start = r#"{"code":"REQUEST_IN_PROGRESS","message":""#;
        let body = format!("{start}{}\"}}", "x".repeat(length - start.len() - 2));
        case(409, &[JSON], &body).read().reach()
    };
    assert_eq!(conflict(256 * 1024), RUNNING);
    assert_eq!(conflict(256 * 1024 + 1), Reach::Ambiguous);
}

#[test]
fn words_of_a_message_are_looked_for_in_a_longer_one() {
    let rule = Matcher::new().status(400).message_contains("in progress");
    let profile = Profile::builder("plain").rule(rule, Meaning::InProgress).build().unwrap();
    let at = |message: &str| case(400, &[], message).profile(profile.clone());
    for message in ["in progress", "still in progress", "in progress: wait"] {
        at(message).gives(RUNNING, Advice::Retry, Why::InProgress);
    }
    for message in ["", "in progres", "the amount is missing", "In progress, in  progress"] {
        at(message).gives(Reach::Refused, Advice::Stop, Why::Refusal);
    }
}

#[test]
fn what_settles_is_a_refusal_from_400_up() {
    let settling = |status| Profile::builder("plain").settles(Matcher::new().status(status)).build();
    settling(399).unwrap_err();
    let profile = settling(400).unwrap();
    case(400, &[], "").profile(profile).gives(Reach::Rejected, Advice::Stop, Why::Refusal);
}

#[test]
fn keys_of_the_least_and_the_greatest_length_are_taken() {
    let format = KeyFormat::visible(4..=10);
    for (length, taken) in [(3, false), (4, true), (10, true), (11, false)] {
        assert_eq!(format.check(&"k".repeat(length)).is_ok(), taken, "{length}");
    }
}

#[test]
fn a_uuid_has_both_its_length_and_its_shape() {
    let uuid = KeyFormat::uuid();
    for bad in ["3f2a91c4", "3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f50", "gf2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506"] {
        let error = uuid.check(bad).unwrap_err().to_string();
        assert!(error.contains("8-4-4-4-12"), "{bad}: {error}");
    }
    // The nil and the max UUID alone are no operation's own.
    for good in [
        "0f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506",
        "ff2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506",
        "11111111-1111-1111-1111-111111111111",
    ] {
        uuid.check(good).unwrap();
    }
}

#[test]
fn a_judge_of_the_clients_leaves_its_profile_in_place() {
    let builder = Client::builder().profile(Profile::stripe()).judge(|_| Judgement::Final);
    assert!(format!("{builder:?}").contains("stripe-v1"), "{builder:?}");
}

#[test]
fn a_later_try_is_left_where_time_or_number_ran_out() {
    use StopReason::{Attempts, Authorize, Deadline, KeyExpired, Keyless, Polls, Request, Schedule};
    for reason in [Attempts, Polls, Deadline, KeyExpired] {
        assert!(reason.leaves_a_later_try(), "{reason:?}");
    }
    for reason in [Request, Authorize, Keyless, Schedule] {
        assert!(!reason.leaves_a_later_try(), "{reason:?}");
    }
}

#[test]
fn debug_names_the_profile() {
    let builder = Profile::builder("acme-v2").key_header("acme-key").replay_mark("acme-mark", "yes");
    assert_eq!(format!("{builder:?}"), r#"ProfileBuilder { id: "acme-v2", .. }"#);
    assert_eq!(
        format!("{:?}", builder.build().unwrap()),
        r#"Profile { id: "acme-v2", key_header: "acme-key", key_lifetime: 86400s, .. }"#
    );
}

#[test]
fn debug_hides_headers_bodies_and_keys() {
    let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static("Bearer sk_secret"))]);
    let asked = Asked::new(&Method::DELETE, &headers).with_key(Some(KEY)).gone_is_done(true);
    assert_eq!(format!("{asked:?}"), "Asked { method: DELETE, has_key: true, gone_is_done: true, .. }");
    let answer = Answer::new(StatusCode::OK, &headers, b"{\"pan\":\"4242\"}");
    let shown = "Answer { status: 200, body_len: 14, extent: Whole, .. }";
    assert_eq!(format!("{answer:?}"), shown);
    assert_eq!(format!("{:?}", Exchange::Answered(answer)), format!("Answered({shown})"));
}
