//! Each rule by which answers are read, and each neighbour whose order matters.

use http::{HeaderMap, Method, StatusCode, Version};
use oncekey::engine::{Advice, Reach, Verdict, Why};
use oncekey::profile::{Answer, Asked, ErrorsStored, Exchange, Extent, Judgement, Matcher, Meaning, Profile};

use crate::trace::ms;

pub(crate) const KEY: &str = "3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506";
const JSON: (&str, &str) = ("content-type", "application/json");
const HTML: (&str, &str) = ("content-type", "text/html; charset=utf-8");
const MARK: (&str, &str) = ("idempotent-replay", "true");
const PAID: &str = r#"{"id":"pay_1"}"#;

/// One answer, told in the shortest way.
#[derive(Clone)]
pub(crate) struct Case {
    profile: Profile,
    method: Method,
    key: Option<&'static str>,
    gone_is_done: bool,
    asked: HeaderMap,
    status: u16,
    headers: HeaderMap,
    body: String,
    extent: Extent,
    version: Version,
}

fn map(headers: &[(&'static str, &str)]) -> HeaderMap {
    headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
}

pub(crate) fn case(status: u16, headers: &[(&'static str, &str)], body: &str) -> Case {
    let mut headers = map(headers);
    headers.insert("content-length", body.len().into());
    Case {
        profile: Profile::generic(),
        method: Method::POST,
        key: Some(KEY),
        gone_is_done: false,
        asked: HeaderMap::new(),
        status,
        headers,
        body: body.to_owned(),
        extent: Extent::Whole,
        version: Version::HTTP_11,
    }
}

impl Case {
    pub(crate) fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }
    pub(crate) fn method(mut self, method: Method) -> Self {
        self.method = method;
        self
    }
    pub(crate) fn keyless(mut self) -> Self {
        self.key = None;
        self
    }
    fn gone_is_done(mut self) -> Self {
        self.gone_is_done = true;
        self
    }
    pub(crate) fn asking(mut self, name: &'static str, value: &str) -> Self {
        self.asked.insert(name, value.parse().unwrap());
        self
    }
    fn extent(mut self, extent: Extent) -> Self {
        self.extent = extent;
        self
    }
    pub(crate) fn close_delimited(mut self) -> Self {
        self.headers.remove("content-length");
        self
    }
    pub(crate) fn http2(mut self) -> Self {
        self.version = Version::HTTP_2;
        self
    }

    pub(crate) fn read(&self) -> Verdict {
        let asked = Asked::new(&self.method, &self.asked).with_key(self.key).gone_is_done(self.gone_is_done);
        let answer = Answer::new(StatusCode::from_u16(self.status).unwrap(), &self.headers, self.body.as_bytes())
            .with_extent(self.extent)
            .with_version(self.version);
        self.profile.read(&asked, &Exchange::Answered(answer))
    }

    #[track_caller]
    pub(crate) fn gives(&self, reach: Reach, advice: Advice, why: Why) {
        let verdict = self.read();
        assert_eq!(
            (verdict.reach(), verdict.advice(), verdict.why()),
            (reach, advice, why),
            "{} {}",
            self.status,
            self.body
        );
    }
}

use Advice::{Retry, Stop};
use Reach::{Ambiguous, Applied, AppliedUnread, Refused, Rejected, Unsent};
const RUNNING: Reach = Reach::Accepted { knows_key: true };
const TAKEN: Reach = Reach::Accepted { knows_key: false };

fn plain() -> oncekey::profile::ProfileBuilder {
    Profile::builder("plain").replay_mark("idempotent-replay", "true")
}

fn storing(stored: ErrorsStored) -> Profile {
    plain().errors_stored(stored).build().unwrap()
}

fn judging(judgement: Judgement) -> Profile {
    plain().judge(move |_| judgement).build().unwrap()
}

#[test]
fn rules_2_and_3_failures_before_a_head() {
    let headers = HeaderMap::new();
    let asked = Asked::new(&Method::POST, &headers).with_key(Some(KEY));
    let read = |exchange| Profile::generic().read(&asked, &exchange);
    let parts = |verdict: Verdict| (verdict.reach(), verdict.advice(), verdict.why());
    assert_eq!(parts(read(Exchange::Unsent { hopeless: false })), (Unsent, Retry, Why::NotSent));
    assert_eq!(parts(read(Exchange::Unsent { hopeless: true })), (Unsent, Stop, Why::NotSent));
    assert_eq!(parts(read(Exchange::NoHead)), (Ambiguous, Retry, Why::NoHead));
}

#[test]
fn rule_4_redirects_settle_nothing() {
    for status in [101, 207, 300, 301, 302, 303, 304, 307, 308, 399] {
        case(status, &[("location", "/elsewhere")], "").gives(Ambiguous, Stop, Why::Redirect);
        // Before rule 10: their body does not matter, nor does the replay mark.
        case(status, &[MARK], "{").extent(Extent::Cut).gives(Ambiguous, Stop, Why::Redirect);
    }
    let get = case(304, &[], "").method(Method::GET);
    get.clone().asking("if-none-match", "\"a\"").gives(Applied, Stop, Why::Success);
    get.clone().asking("if-modified-since", "x").gives(Applied, Stop, Why::Success);
    get.gives(Ambiguous, Stop, Why::Redirect);
    case(304, &[], "").asking("if-none-match", "*").gives(Ambiguous, Stop, Why::Redirect);
}

#[test]
fn rule_5_a_cut_error_settles_nothing() {
    for status in [400, 401, 404, 409, 422, 429, 500, 503] {
        case(status, &[JSON], "{").extent(Extent::Cut).gives(Ambiguous, Retry, Why::CutBody);
        case(status, &[JSON], "{").extent(Extent::TooLarge).gives(Ambiguous, Stop, Why::TooLarge);
    }
    // Before rule 6: a code in half a body is no code.
    let busy = case(409, &[JSON], r#"{"code":"IDEMPOTENCY_IN_PROGRESS"}"#);
    busy.clone().extent(Extent::Cut).gives(Ambiguous, Retry, Why::CutBody);
    busy.gives(RUNNING, Retry, Why::InProgress);
    // Half a body is half a body, whatever the connection says of it.
    let half = r#"{"code":"IDEMPOTENCY_IN_PROGRESS","m"#;
    case(422, &[JSON], half).close_delimited().gives(Ambiguous, Retry, Why::CutBody);
    // Under no content type, or a careless one, it is half an object all the same.
    let careless = ("content-type", "Text/plain; charset=utf-8");
    for kind in [&[][..], &[careless]] {
        case(422, kind, half).close_delimited().gives(Ambiguous, Retry, Why::CutBody);
        case(422, kind, half).http2().close_delimited().gives(Ambiguous, Retry, Why::CutBody);
        case(201, kind, half).close_delimited().gives(AppliedUnread, Retry, Why::CutBody);
        case(201, kind, half).gives(Applied, Stop, Why::Success);
        case(201, kind, "{}").close_delimited().gives(Applied, Stop, Why::Success);
        case(201, kind, "paid {").close_delimited().gives(Applied, Stop, Why::Success);
        case(201, kind, "").close_delimited().gives(Applied, Stop, Why::Success);
    }
    let lines = ("content-type", "application/x-ndjson");
    case(200, &[lines], "{}\n{}").close_delimited().gives(Applied, Stop, Why::Success);
    let bare = [JSON, ("content-encoding", "identity")];
    case(422, &bare, half).close_delimited().gives(Ambiguous, Retry, Why::CutBody);
    case(201, &bare, half).close_delimited().gives(AppliedUnread, Retry, Why::CutBody);
    case(422, &[JSON], "").close_delimited().gives(Ambiguous, Retry, Why::CutBody);
    case(422, &[JSON], "").gives(Refused, Stop, Why::Refusal);
    case(404, &[JSON], "").close_delimited().method(Method::HEAD).gives(Refused, Stop, Why::Refusal);
    case(422, &[JSON], r#"{"code":"NO"}"#).close_delimited().gives(Refused, Stop, Why::Refusal);
    // Before rule 13.
    case(400, &[JSON, MARK], "{").extent(Extent::Cut).gives(Ambiguous, Retry, Why::CutBody);
}

#[test]
fn rule_6_in_progress_by_its_code() {
    for body in [
        r#"{"code":"IDEMPOTENCY_IN_PROGRESS"}"#,
        r#"{"error":{"code":"idempotency_key_in_use"}}"#,
        r#"{"errors":[{"code":"OTHER"},{"code":"REQUEST_IN_PROGRESS"}]}"#,
        r#"{"error":"IDEMPOTENT_REQUEST_PROCESSING"}"#,
        r#"{"error_code":"idempotency_key_in_flight"}"#,
    ] {
        for status in [409, 422, 423, 425, 429, 400] {
            case(status, &[JSON], body).gives(RUNNING, Retry, Why::InProgress);
        }
        // Codes are case-sensitive where they are not listed in both cases, and no success is searched.
        case(200, &[JSON], body).gives(Applied, Stop, Why::Success);
    }
    case(409, &[JSON], r#"{"code":"Idempotency_In_Progress"}"#).gives(Ambiguous, Stop, Why::Conflict);
    // A request without a key is known by none.
    let keyless = case(409, &[JSON], r#"{"code":"IDEMPOTENCY_IN_PROGRESS"}"#).keyless();
    keyless.gives(TAKEN, Retry, Why::InProgress);
    // Not every 409 is polled.
    case(409, &[JSON], r#"{"code":"INSUFFICIENT_FUNDS"}"#).gives(Refused, Stop, Why::Conflict);
}

#[test]
fn rules_6b_and_6c_the_other_words_of_the_idempotency_layer() {
    case(409, &[JSON], r#"{"code":"IDEMPOTENCY_KEY_REUSED"}"#).gives(Ambiguous, Stop, Why::KeyReused);
    let profile = plain()
        .rule(Matcher::new().status(409).code("BUSY"), Meaning::InProgress)
        .rule(Matcher::new().code("REUSED"), Meaning::KeyReusedForCertain)
        .rule(Matcher::new().code("SEEN"), Meaning::AlreadyProcessed)
        .rule(Matcher::new().code("BURNT"), Meaning::StoredFailure)
        .rule(Matcher::new().code("OLD"), Meaning::KeyExpired)
        .rule(Matcher::new().header("x-final", "yes"), Meaning::NotToBeRetried)
        .rule(Matcher::new().status(200).code("LATER"), Meaning::InProgress)
        .rule(Matcher::new().status(400).message_contains("is being processed"), Meaning::InProgress)
        .build()
        .unwrap();
    let at = |status, headers: &[_], body: &str| case(status, headers, body).profile(profile.clone());
    at(422, &[JSON], r#"{"code":"REUSED"}"#).gives(Refused, Stop, Why::KeyReused);
    at(400, &[JSON], r#"{"code":"SEEN"}"#).gives(Ambiguous, Stop, Why::AlreadyProcessed);
    at(500, &[JSON], r#"{"code":"BURNT"}"#).gives(Ambiguous, Stop, Why::StoredError);
    at(422, &[JSON], r#"{"code":"OLD"}"#).gives(Ambiguous, Stop, Why::Other);
    at(503, &[("x-final", "YES")], "").gives(Ambiguous, Stop, Why::Other);
    at(200, &[JSON], r#"{"code":"LATER"}"#).gives(RUNNING, Retry, Why::InProgress);
    at(201, &[JSON], r#"{"code":"LATER"}"#).gives(Applied, Stop, Why::Success);
    at(400, &[JSON], r#"{"detail":"The request is being processed."}"#).gives(RUNNING, Retry, Why::InProgress);
    at(400, &[JSON], r#"{"detail":"No."}"#).gives(Refused, Stop, Why::Refusal);
    // Before rule 13: the layer's own code outranks the replay mark.
    at(422, &[JSON, MARK], r#"{"code":"SEEN"}"#).gives(Ambiguous, Stop, Why::AlreadyProcessed);
}

#[test]
fn prose_of_an_earlier_request_settles_nothing() {
    for body in [
        r#"{"message":"This idempotency key was already used."}"#,
        r#"{"code":"IDEMPOTENCY_ERROR","message":"This key was used with a different body."}"#,
        r#"{"message":"A request with this Idempotency-Key is in progress."}"#,
        r#"{"message":"A request with this idempotency key is still being processed."}"#,
        r#"{"code":"CONCURRENT_REQUEST","message":"Check your Idempotency-Key."}"#,
        r#"{"title":"IDEMPOTENCY: REQUEST IN FLIGHT"}"#,
    ] {
        case(422, &[JSON], body).gives(Ambiguous, Stop, Why::Other);
    }
    for body in ["Idempotency-Key is missing", "The idempotency key is malformed", "the card was used already"] {
        case(400, &[], body).gives(Refused, Stop, Why::Refusal);
    }
}

#[test]
fn rule_7_the_servers_word_changes_the_advice_alone() {
    let profile = plain().should_retry_header("should-retry").judge(|_| Judgement::Final).build().unwrap();
    let says = |yes: bool| ("should-retry", if yes { "true" } else { "False" });
    let at = |status, headers: &[_], body: &str| case(status, headers, body).profile(profile.clone());
    at(500, &[says(false)], "").gives(Ambiguous, Stop, Why::ServerError);
    at(500, &[("should-retry", "maybe")], "").gives(Ambiguous, Retry, Why::ServerError);
    at(400, &[says(true)], "").gives(Refused, Retry, Why::Refusal);
    at(409, &[says(true)], "").gives(Ambiguous, Retry, Why::Conflict);
    at(429, &[says(false)], "").gives(Ambiguous, Stop, Why::RateLimited);
    at(424, &[says(true)], "").gives(Ambiguous, Retry, Why::Other);
    at(401, &[says(false)], "").gives(Refused, Stop, Why::Refusal);
    at(200, &[HTML, says(false)], "<html>").gives(Ambiguous, Stop, Why::WrongType);
    at(500, &[MARK, says(true)], "").gives(Ambiguous, Retry, Why::StoredError);
    // Never for rules 9, 11, 13 and 14, nor for a POST without a key.
    at(201, &[JSON, says(true)], PAID).gives(Applied, Stop, Why::Success);
    at(400, &[MARK, says(true)], "").gives(Rejected, Stop, Why::Refusal);
    at(400, &[says(true)], "").keyless().gives(Refused, Stop, Why::Refusal);
    at(400, &[says(true)], "").keyless().method(Method::PUT).gives(Refused, Retry, Why::Refusal);
    let silent = plain().should_retry_header("should-retry").settles(Matcher::new().status(422)).build().unwrap();
    case(202, &[says(false)], "").profile(silent.clone()).gives(TAKEN, Retry, Why::Pending);
    case(422, &[says(true)], "").profile(silent.clone()).gives(Rejected, Stop, Why::Refusal);
    case(404, &[says(true)], "").profile(silent).method(Method::DELETE).gone_is_done().gives(
        Applied,
        Stop,
        Why::Success,
    );
}

#[test]
fn rule_8_a_page_is_no_success() {
    for status in [200, 201, 202, 206] {
        case(status, &[HTML], "<html>maintenance</html>").gives(Ambiguous, Retry, Why::WrongType);
        case(status, &[HTML], "<html>").extent(Extent::Cut).gives(Ambiguous, Retry, Why::WrongType);
        // A page is a page whatever it claims to be.
        case(status, &[JSON], " <!doctype html><p>").gives(Ambiguous, Retry, Why::WrongType);
        case(status, &[], "<HTML>").gives(Ambiguous, Retry, Why::WrongType);
    }
    // Before 9b and 11: no judge and no mark makes a page an answer.
    case(200, &[HTML, MARK], "<html>").profile(judging(Judgement::Final)).gives(Ambiguous, Retry, Why::WrongType);
    // Where a page was asked for, it is one.
    case(200, &[HTML], "<html>").asking("accept", "text/html").gives(Applied, Stop, Why::Success);
    for accept in ["*/*", "application/json", "text/html, application/hal+json;q=0.5", "application/*"] {
        case(200, &[HTML], "<html>").asking("accept", accept).gives(Ambiguous, Retry, Why::WrongType);
    }
    // Nor is one read as the XML that was asked for.
    case(200, &[HTML], "<html>login").asking("accept", "application/xml").gives(Ambiguous, Retry, Why::WrongType);
    // What holds nothing is no page.
    case(201, &[HTML], "").gives(Applied, Stop, Why::Success);
    case(201, &[HTML], "").extent(Extent::Cut).gives(Ambiguous, Retry, Why::WrongType);
    case(201, &[HTML], "").close_delimited().gives(Ambiguous, Retry, Why::WrongType);
    case(204, &[HTML], "").gives(Applied, Stop, Why::Success);
    case(200, &[HTML], "").method(Method::HEAD).gives(Applied, Stop, Why::Success);
}

#[test]
fn rule_9_pending_needs_evidence() {
    case(202, &[JSON], PAID).gives(TAKEN, Retry, Why::Pending);
    case(202, &[JSON, MARK], PAID).gives(RUNNING, Retry, Why::Pending);
    case(202, &[JSON], "{").extent(Extent::Cut).gives(TAKEN, Retry, Why::Pending);
    case(202, &[JSON], PAID).profile(judging(Judgement::Final)).gives(Applied, Stop, Why::Success);
    case(201, &[JSON], PAID).profile(judging(Judgement::Pending)).gives(TAKEN, Retry, Why::Pending);
    case(201, &[JSON, MARK], PAID).profile(judging(Judgement::Pending)).gives(RUNNING, Retry, Why::Pending);
    let promising = plain().promises_keys(true).build().unwrap();
    case(202, &[], "").profile(promising.clone()).gives(RUNNING, Retry, Why::Pending);
    case(202, &[], "").profile(promising).keyless().gives(TAKEN, Retry, Why::Pending);
    case(202, &[MARK], "").keyless().gives(TAKEN, Retry, Why::Pending);
}

#[test]
fn rule_9b_refused_or_unclear_by_the_judge() {
    case(200, &[JSON], PAID).profile(judging(Judgement::Refused)).gives(Refused, Stop, Why::Refusal);
    case(200, &[JSON, MARK], PAID).profile(judging(Judgement::Refused)).gives(Rejected, Stop, Why::Refusal);
    case(200, &[JSON], PAID).profile(judging(Judgement::Unclear)).gives(Ambiguous, Stop, Why::Other);
    case(202, &[JSON], PAID).profile(judging(Judgement::Refused)).gives(Refused, Stop, Why::Refusal);
}

#[test]
fn rule_10_a_success_that_cannot_be_read() {
    let cut = || case(201, &[JSON], r#"{"id":""#);
    cut().extent(Extent::Cut).gives(AppliedUnread, Retry, Why::CutBody);
    cut().extent(Extent::TooLarge).gives(AppliedUnread, Stop, Why::TooLarge);
    cut().gives(AppliedUnread, Retry, Why::CutBody);
    cut().close_delimited().gives(AppliedUnread, Retry, Why::CutBody);
    case(206, &[JSON], PAID).gives(AppliedUnread, Retry, Why::CutBody);
    case(206, &[JSON], PAID).asking("range", "bytes=0-9").gives(Applied, Stop, Why::Success);
    // In full where the framing proves nothing, both ends where it does.
    let odd = || case(201, &[JSON], r#"{"id":,}"#);
    odd().gives(Applied, Stop, Why::Success);
    odd().close_delimited().gives(AppliedUnread, Retry, Why::CutBody);
    odd().close_delimited().http2().gives(AppliedUnread, Retry, Why::CutBody);
    let mut chunked = odd().close_delimited();
    chunked.headers.insert("transfer-encoding", "gzip, Chunked".parse().unwrap());
    chunked.gives(Applied, Stop, Why::Success);
    // Any other coding is read to the connection's end, which proves nothing.
    chunked.headers.insert("transfer-encoding", "identity".parse().unwrap());
    chunked.gives(AppliedUnread, Retry, Why::CutBody);
    case(201, &[("content-type", "application/problem+json")], "{").gives(AppliedUnread, Retry, Why::CutBody);
    // What is not said to be JSON, or is still encoded, is not held to it.
    case(201, &[("content-type", "text/plain")], "{").gives(Applied, Stop, Why::Success);
    case(201, &[JSON, ("content-encoding", "br")], "\u{1}\u{2}").gives(Applied, Stop, Why::Success);
    case(201, &[JSON], "").gives(Applied, Stop, Why::Success);
    // Nothing at all may be what is left of it, unless its length was proved.
    case(201, &[JSON], "").close_delimited().gives(AppliedUnread, Retry, Why::CutBody);
    case(200, &[JSON], "").close_delimited().method(Method::HEAD).gives(Applied, Stop, Why::Success);
    case(204, &[JSON], "").close_delimited().gives(Applied, Stop, Why::Success);
    // What a judge would have said of the whole is not known.
    cut().extent(Extent::Cut).profile(judging(Judgement::Final)).gives(TAKEN, Retry, Why::CutBody);
    cut().profile(judging(Judgement::Refused)).gives(TAKEN, Retry, Why::CutBody);
    cut().extent(Extent::TooLarge).profile(judging(Judgement::Final)).gives(TAKEN, Stop, Why::TooLarge);
}

#[test]
fn rule_11_a_complete_success() {
    for status in [200, 201, 203, 204, 205, 226] {
        case(status, &[JSON], PAID).gives(Applied, Stop, Why::Success);
        case(status, &[], "").gives(Applied, Stop, Why::Success);
    }
    case(200, &[JSON, MARK], PAID).gives(Applied, Stop, Why::Success);
    assert!(case(200, &[JSON, MARK], PAID).read().marked());
    assert!(!case(200, &[JSON, MARK], PAID).keyless().read().marked());
    assert!(case(200, &[JSON, ("Idempotent-Replayed", "1")], PAID).read().marked());
    assert!(!case(200, &[JSON, ("idempotent-replay", "false")], PAID).read().marked());
    case(204, &[JSON], "").extent(Extent::Cut).gives(Applied, Stop, Why::Success);
    case(200, &[JSON], "").method(Method::HEAD).gives(Applied, Stop, Why::Success);
}

#[test]
fn rules_12_and_13_replayed_errors_by_what_the_api_stores() {
    for status in [500, 503] {
        case(status, &[MARK], "").profile(storing(ErrorsStored::Never)).gives(RUNNING, Retry, Why::StoredError);
        case(status, &[MARK], "").profile(storing(ErrorsStored::Always)).gives(Ambiguous, Stop, Why::StoredError);
        case(status, &[MARK], "").gives(Ambiguous, Stop, Why::StoredError);
        case(status, &[MARK], "").keyless().gives(Ambiguous, Retry, Why::ServerError);
    }
    for status in [400, 401, 402, 403, 404, 410, 422, 451] {
        case(status, &[MARK], "").profile(storing(ErrorsStored::Never)).gives(Ambiguous, Stop, Why::StoredError);
        case(status, &[MARK], "").profile(storing(ErrorsStored::Always)).gives(Rejected, Stop, Why::Refusal);
        case(status, &[MARK], "").gives(Rejected, Stop, Why::Refusal);
    }
    for status in [408, 423, 425, 429] {
        assert_eq!(case(status, &[MARK], "").read().reach(), Ambiguous, "{status}");
        assert_eq!(case(status, &[MARK], "").read().advice(), Retry, "{status}");
    }
    case(409, &[MARK], "").gives(Ambiguous, Stop, Why::Conflict);
}

#[test]
fn rule_14_refusals_that_the_provider_says_are_final() {
    let profile = plain().settles(Matcher::new().status(402).code("card_declined")).build().unwrap();
    let declined = case(402, &[JSON], r#"{"code":"card_declined"}"#);
    declined.clone().profile(profile.clone()).gives(Rejected, Stop, Why::Refusal);
    declined.gives(Refused, Stop, Why::Refusal);
    declined_keyless(&profile);
    case(402, &[JSON], r#"{"code":"other"}"#).profile(profile).gives(Refused, Stop, Why::Refusal);
}

/// It says nothing about a request that had no key.
fn declined_keyless(profile: &Profile) {
    let declined = case(402, &[JSON], r#"{"code":"card_declined"}"#).keyless();
    declined.profile(profile.clone()).gives(Refused, Stop, Why::Refusal);
}

#[test]
fn rules_15_to_16_refusals_of_this_attempt() {
    case(401, &[], "").gives(Refused, Stop, Why::Unauthorized);
    for status in [400, 402, 403, 404, 405, 407, 410, 411, 412, 413, 414, 415, 417, 422, 431] {
        case(status, &[JSON], r#"{"code":"NO"}"#).gives(Refused, Stop, Why::Refusal);
    }
    case(403, &[HTML], "<html>").gives(Ambiguous, Stop, Why::WrongType);
    case(409, &[HTML], "<html>").gives(Ambiguous, Stop, Why::WrongType);
    case(403, &[HTML], "<html>").asking("accept", "text/html").gives(Refused, Stop, Why::Refusal);
    case(404, &[HTML], "<html>").gives(Refused, Stop, Why::Refusal);
    // Where no code can be looked for, what rule 6 would have said is not known.
    let long = format!(r#"{{"trace":"{}","code":"IDEMPOTENCY_IN_PROGRESS"}}"#, "x".repeat(256 * 1024));
    case(422, &[JSON], &long).gives(Ambiguous, Stop, Why::Refusal);
    case(404, &[HTML], &format!("<html>{long}")).gives(Refused, Stop, Why::Refusal);
    let coded = |coding, body| case(400, &[JSON, ("content-encoding", coding)], body);
    coded("br", "\u{b}\u{2}").gives(Ambiguous, Stop, Why::Refusal);
    coded("br", "").gives(Refused, Stop, Why::Refusal);
    coded("br", "\u{b}\u{2}").keyless().gives(Refused, Stop, Why::Refusal);
    coded("Identity", r#"{"code":"NO"}"#).gives(Refused, Stop, Why::Refusal);
    for status in [404, 410] {
        let gone = case(status, &[], "").method(Method::DELETE);
        gone.clone().gives(Refused, Stop, Why::Refusal);
        gone.clone().gone_is_done().gives(Applied, Stop, Why::Success);
        gone.gone_is_done().method(Method::POST).gives(Refused, Stop, Why::Refusal);
    }
}

#[test]
fn rule_17_conflicts_by_their_code() {
    for code in ["INSUFFICIENT_FUNDS", "INVALID_OPERATION", "card.declined", "version-mismatch", "E1001"] {
        case(409, &[JSON], &format!(r#"{{"code":"{code}"}}"#)).gives(Refused, Stop, Why::Conflict);
        case(409, &[JSON], &format!(r#"{{"error":{{"code":"{code}"}}}}"#)).gives(Refused, Stop, Why::Conflict);
    }
    for code in [
        "ALREADY_EXISTS",
        "duplicate_request",
        "Idempotency_X",
        "KEY_IN_USE",
        "key-in-use",
        "PREVIOUSLY_USED",
        "reused",
        "IN_PROGRESS",
        "processing",
        "pending",
        "concurrent_update",
        "resource_locked",
        "SYSTEM_BUSY",
        "conflict",
        "two words",
        "7",
        "",
        "caf\u{e9}",
        "in-flight",
        "keyInUse",
        "InProgress",
        "keyInUse",
        "InProgress",
    ] {
        case(409, &[JSON], &format!(r#"{{"code":"{code}"}}"#)).gives(Ambiguous, Stop, Why::Conflict);
    }
    case(409, &[JSON], r#"{"message":"no funds"}"#).gives(Ambiguous, Stop, Why::Conflict);
    case(409, &[JSON], r#"{"code":17}"#).gives(Ambiguous, Stop, Why::Conflict);
    case(409, &[JSON], r#"{"code":"NO_FUNDS","error":{"code":"duplicate"}}"#).gives(Ambiguous, Stop, Why::Conflict);
    case(409, &[JSON], "not json").gives(Ambiguous, Stop, Why::Conflict);
    case(409, &[], "").gives(Ambiguous, Stop, Why::Conflict);
}

#[test]
fn rules_18_to_20_the_rest() {
    for status in [408, 423, 425] {
        case(status, &[], "").gives(Ambiguous, Retry, Why::Other);
    }
    case(429, &[], "").gives(Ambiguous, Retry, Why::RateLimited);
    let promised = plain().limits_before_work(true).build().unwrap();
    case(429, &[], "").profile(promised).gives(Refused, Retry, Why::RateLimited);
    for status in [500, 501, 502, 503, 504, 599] {
        case(status, &[HTML], "<html>").gives(Ambiguous, Retry, Why::ServerError);
    }
    for status in [406, 418, 421, 424, 426, 428, 451, 499, 600, 999, 102] {
        case(status, &[], "").gives(Ambiguous, Stop, Why::Other);
    }
}

#[test]
fn a_named_wait_belongs_to_whatever_may_be_retried() {
    let later = ("retry-after", "3");
    let wait = Advice::RetryAfter(ms(3000));
    case(503, &[later], "").gives(Ambiguous, wait, Why::ServerError);
    case(429, &[later], "").gives(Ambiguous, wait, Why::RateLimited);
    case(409, &[JSON, later], r#"{"code":"IDEMPOTENCY_IN_PROGRESS"}"#).gives(RUNNING, wait, Why::InProgress);
    case(202, &[MARK, later], "").gives(RUNNING, wait, Why::Pending);
    case(201, &[JSON, later], "{").gives(AppliedUnread, wait, Why::CutBody);
    case(400, &[later], "").gives(Refused, Stop, Why::Refusal);
    case(503, &[("retry-after", "-3")], "").gives(Ambiguous, Retry, Why::ServerError);
}
