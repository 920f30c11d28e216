//! The parts of a matcher, each by an answer that it tells from its neighbour.

use http::header::HeaderMap;
use http::{Method, StatusCode};
use oncekey::engine::{Reach, Why};
use oncekey::profile::{Answer, Asked, Exchange, Extent, Matcher, Meaning, Profile};

use crate::vectors::KEY;

/// Whether a 409 of this head and body matches.
fn matches(matcher: Matcher, headers: &[(&'static str, &str)], body: &str) -> bool {
    matches_for(Some(KEY), matcher, headers, body)
}

fn matches_for(key: Option<&str>, matcher: Matcher, headers: &[(&'static str, &str)], body: &str) -> bool {
    let profile = Profile::builder("t").rule(matcher, Meaning::StoredFailure).build().unwrap();
    let mut map: HeaderMap = headers.iter().map(|(n, v)| (n.parse().unwrap(), v.parse().unwrap())).collect();
    map.insert("content-length", body.len().into());
    let none = HeaderMap::new();
    let asked = Asked::new(&Method::POST, &none).with_key(key);
    let answer = Answer::new(StatusCode::CONFLICT, &map, body.as_bytes());
    profile.read(&asked, &Exchange::Answered(answer)).why() == Why::StoredError
}

#[test]
fn codes_are_compared_whole_by_prefix_or_with_the_key() {
    let at = |matcher: Matcher, body: &str| matches(matcher, &[], body);
    let either = || Matcher::new().code("A").code("B");
    assert!(at(either(), r#"{"code":"B"}"#) && !at(either(), r#"{"code":"BB"}"#));
    let prefix = || Matcher::new().code_prefix("urn:x:");
    assert!(at(prefix(), r#"{"code":"urn:x:1"}"#) && !at(prefix(), r#"{"code":"urn:y:1"}"#));
    assert!(at(prefix().code("C"), r#"{"code":"C"}"#), "any code given will do");
    let key = || Matcher::new().at("key").code_is_key();
    assert!(at(key(), &format!(r#"{{"key":"{KEY}"}}"#)) && !at(key(), r#"{"key":"other"}"#));
    assert!(!at(key(), &format!(r#"{{"code":"{KEY}"}}"#)), "at its place alone");
    let present = || Matcher::new().present("error.id").present("n");
    assert!(at(present(), r#"{"error":{"id":"x"},"n":1}"#));
    assert!(!at(present(), r#"{"error":{"id":"x"}}"#) && !at(present(), r#"{"error":{"id":null},"n":1}"#));
    assert!(!at(present(), "error.id n"));
}

#[test]
fn words_must_all_be_there() {
    let both = || Matcher::new().message_contains("was used").message_contains("before");
    assert!(matches(both(), &[], "it was used long before") && !matches(both(), &[], "it was used"));
    assert!(!matches(both(), &[], "it WAS USED before"));
    // No sentence stands behind 256 KiB of something else.
    assert!(!matches(both(), &[], &format!("{}was used before", " ".repeat(256 * 1024))));
}

#[test]
fn headers_are_compared_by_value_presence_key_or_absence() {
    let at = |matcher: Matcher, headers: &[(&'static str, &str)]| matches(matcher, headers, "");
    let values = || Matcher::new().header("X-A", "yes").header("x-a", "1");
    assert!(at(values(), &[("x-a", "YES")]) && at(values(), &[("x-a", "1")]) && !at(values(), &[("x-a", "no")]));
    let both = || Matcher::new().header("x-a", "yes").header("x-b", "yes");
    assert!(at(both(), &[("x-a", "yes"), ("x-b", "yes")]) && !at(both(), &[("x-a", "yes")]));
    let present = || Matcher::new().header_present("x-a");
    assert!(at(present(), &[("x-a", "")]) && !at(present(), &[]));
    let absent = || Matcher::new().header_absent("x-a");
    assert!(at(absent(), &[]) && !at(absent(), &[("x-a", "no")]));
    let key = || Matcher::new().header_is_key("x-a");
    assert!(at(key(), &[("x-a", KEY)]) && at(key(), &[("x-a", &format!("\"{KEY}\""))]));
    assert!(!at(key(), &[("x-a", "k")]) && !at(key(), &[("x-a", &KEY.to_uppercase())]));
}

#[test]
fn a_status_alone_is_not_believed_of_a_page() {
    let html = [("content-type", "text/html")];
    let alone = || Matcher::new().status(409);
    assert!(matches(alone(), &[], "") && matches(alone(), &[], "{}"));
    assert!(!matches(alone(), &html, "<html>"));
    // Nor of a request that had no key.
    assert!(!matches_for(None, alone(), &[], "{}"));
    assert!(matches_for(None, alone().code("A"), &[], r#"{"code":"A"}"#));
    // More than a status is the layer's own word, on whatever paper.
    assert!(matches(alone().message_contains("still running"), &html, "<html>still running"));
    assert!(matches(alone().header("x-layer", "1"), &[html[0], ("x-layer", "1")], "<html>"));
}

#[test]
fn the_original_is_named_once_and_whole() {
    let seen = Matcher::new().status(409).code("SEEN");
    let profile = Profile::builder("t").recovers(seen, "ids[]").build().unwrap();
    let id = |status, body: &str, extent| {
        let headers = HeaderMap::new();
        profile.original_id(&Answer::new(status, &headers, body.as_bytes()).with_extent(extent))
    };
    let whole = |body| id(StatusCode::CONFLICT, body, Extent::Whole);
    assert_eq!(whole(r#"{"code":"SEEN","ids":["a","a"]}"#).as_deref(), Some("a"));
    assert_eq!(whole(r#"{"code":"SEEN","ids":[17]}"#).as_deref(), Some("17"));
    assert_eq!(whole(r#"{"code":"SEEN","ids":["a","b"]}"#), None);
    assert_eq!(whole(r#"{"code":"SEEN","ids":[""]}"#), None);
    assert_eq!(whole(r#"{"code":"SEEN","ids":[]}"#), None);
    assert_eq!(whole(r#"{"code":"OTHER","ids":["a"]}"#), None);
    assert_eq!(id(StatusCode::BAD_REQUEST, r#"{"code":"SEEN","ids":["a"]}"#, Extent::Whole), None);
    assert_eq!(id(StatusCode::CONFLICT, r#"{"code":"SEEN","ids":["a"]}"#, Extent::Cut), None);
}

#[test]
fn what_recovers_is_already_processed() {
    let seen = Matcher::new().status(409).code("SEEN");
    let profile = Profile::builder("t").recovers(seen, "id").build().unwrap();
    let headers = HeaderMap::new();
    let asked = Asked::new(&Method::POST, &headers).with_key(Some(KEY));
    let answer = Answer::new(StatusCode::CONFLICT, &headers, br#"{"code":"SEEN","id":"a"}"#);
    let verdict = profile.read(&asked, &Exchange::Answered(answer));
    assert_eq!((verdict.reach(), verdict.why()), (Reach::Ambiguous, Why::AlreadyProcessed));
    let alone = Profile::builder("t").recovers(Matcher::new().status(409), "id").build().unwrap();
    assert_eq!(alone.original_id(&answer).as_deref(), Some("a"));
    let bad = Profile::builder("t").recovers(Matcher::new(), "a..b").build().unwrap_err();
    assert!(bad.to_string().contains("a..b"));
}
