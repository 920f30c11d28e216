//! The reader of answers: what must hold of its verdict whatever comes.

use http::{HeaderMap, HeaderValue, Method, StatusCode, Version};
use oncekey::engine::{Advice, Reach, Time, Verdict, Why};
use oncekey::profile::{Answer, Asked, Exchange, Extent, Judgement, Profile};

use crate::mutate::{bent, mutate};
use crate::reading::least_by_digits;
use crate::source::Source;

const BODIES: [&[u8]; 22] = [
    b"",
    b"{}",
    b"{\"id\":\"pay_1\",\"status\":\"captured\",\"amount\":4999}",
    b"{\"id\":\"pay_1\",\"sta",
    b"[{\"code\":\"IDEMPOTENCY_IN_PROGRESS\"}]",
    b"{\"code\":\"IDEMPOTENCY_IN_PROGRESS\"}",
    b"{\"code\":\"IDEMPOTENCY_KEY_REUSED\"}",
    b"{\"code\":\"IDEMPOTENT_REQUEST_PROCESSING\",\"message\":\"...\"}",
    b"{\"error\":{\"code\":\"idempotency_key_in_use\",\"type\":\"idempotency_error\"}}",
    b"{\"error\":{\"type\":\"idempotency_error\"}}",
    b"{\"title\":\"A request is outstanding for this Idempotency-Key\"}",
    b"{\"title\":\"Idempotency-Key is already used\"}",
    b"{\"errors\":[{\"code\":\"INVALID_AMOUNT\"},{\"code\":7},{\"code\":null}]}",
    b"{\"code\":\"DUPLICATE_ORDER\"}",
    b"{\"code\":\"INSUFFICIENT_FUNDS\",\"error\":\"declined\"}",
    b"{\"code\":12345678901234567890123456789012345678901234567890e99999}",
    b"\xef\xbb\xbf{\"code\":\"LOCKED\"}",
    b"<!DOCTYPE html><html><body>Sign in</body></html>",
    b"\n <html>",
    b"code=IDEMPOTENCY_IN_PROGRESS",
    b"\"a string\"",
    b"null",
];
const NAMES: [&str; 22] = [
    "content-type",
    "content-type",
    "content-length",
    "transfer-encoding",
    "content-encoding",
    "retry-after",
    "retry-after",
    "retry-after-ms",
    "date",
    "idempotent-replay",
    "idempotent-replayed",
    "idempotency-replayed",
    "idempotent-replay",
    "stripe-should-retry",
    "stripe-should-retry",
    "x-request-id",
    "location",
    "accept",
    "if-none-match",
    "if-modified-since",
    "range",
    "x-other",
];
const VALUES: [&[u8]; 24] = [
    b"application/json",
    b"application/json; charset=utf-8",
    b"application/problem+json",
    b"text/html",
    b"text/plain",
    b"*/*",
    b"text/html;q=0.9, application/json;q=0",
    b"application/*",
    b"17",
    b"chunked",
    b"gzip",
    b"3",
    b"0.5",
    b"18446744073709551616",
    b"Sun, 06 Nov 1994 08:49:37 GMT",
    b"true",
    b"TRUE",
    b"1",
    b"false",
    b" true ",
    b"bytes=0-9",
    b"\"etag\"",
    b"\xff\xfe\x80",
    b"",
];
const METHODS: [Method; 9] = [
    Method::POST,
    Method::POST,
    Method::POST,
    Method::PATCH,
    Method::GET,
    Method::HEAD,
    Method::PUT,
    Method::DELETE,
    Method::OPTIONS,
];
const STATUSES: [u16; 40] = [
    100, 101, 200, 200, 201, 201, 202, 203, 204, 205, 206, 207, 226, 299, 301, 304, 307, 400, 401, 402, 403, 404, 405,
    408, 409, 409, 409, 410, 412, 417, 422, 423, 425, 429, 431, 500, 502, 503, 504, 511,
];
const KEYS: [Option<&str>; 3] = [Some("3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506"), Some("order-7"), None];

/// One of the presets, perhaps with a judge that says always the same.
struct Api {
    name: &'static str,
    profile: Profile,
    judge: Option<Judgement>,
    marks: &'static [&'static str],
    mark_values: &'static [&'static str],
    errors_never_stored: bool,
}

fn api(source: &mut Source<'_>) -> Api {
    let marks: &[&str] = &["idempotent-replay", "idempotent-replayed", "idempotency-replayed"];
    let (name, profile, marks, mark_values, errors_never_stored): (_, _, &[&str], &[&str], _) = match source.below(7) {
        0..=2 => ("generic", Profile::generic(), marks, &["true", "1"], false),
        3 => ("verifika", Profile::verifika(), &marks[..1], &["true"], true),
        4 => ("ietf", Profile::ietf(), &[], &[], false),
        5 => ("stripe", Profile::stripe(), &marks[1..2], &["true"], false),
        _ => ("toss", Profile::toss(), &[], &[], false),
    };
    Api { name, profile, judge: None, marks, mark_values, errors_never_stored }
}

/// A judge in front of the same marks, on a profile without rules.
fn judged(source: &mut Source<'_>) -> Api {
    let judge = *source.pick(&[Judgement::Final, Judgement::Pending, Judgement::Refused, Judgement::Unclear]);
    let profile =
        Profile::builder("judged").replay_mark("idempotent-replay", "true").judge(move |_| judge).build().unwrap();
    let marks = &["idempotent-replay"];
    Api { name: "judged", profile, judge: Some(judge), marks, mark_values: &["true"], errors_never_stored: false }
}

fn headers(source: &mut Source<'_>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for _ in 0..source.below(7) {
        let name: &'static str = NAMES[source.below(NAMES.len())];
        let value = if source.one_in(2) { source.pick(&VALUES).to_vec() } else { bent(source, &VALUES) };
        if let Ok(value) = HeaderValue::from_bytes(&value) {
            headers.append(name, value);
        }
    }
    headers
}

/// Up to 300 KiB: mostly errors as APIs word them, bent.
fn body(source: &mut Source<'_>) -> Vec<u8> {
    let repeated = |source: &mut Source<'_>, unit: &[u8]| unit.repeat(source.length(300 * 1024 / unit.len()));
    let mut body = match source.below(24) {
        0 => repeated(source, b"["),
        1 => repeated(source, b"{\"code\":"),
        2 => repeated(source, b"[{\"code\":\"DUPLICATE\"},"),
        3 => [b"{\"code\":1", &*repeated(source, b"0"), b"}"].concat(),
        4 => [b"{\"id\":\"", &*repeated(source, b"\\u0041"), b"\"}"].concat(),
        5 => {
            let depth = source.length(150 * 1024);
            [b"[".repeat(depth), b"]".repeat(depth)].concat()
        }
        6 => repeated(source, b" "),
        7 => {
            let word: Vec<u8> = source.pick(&BODIES).iter().flat_map(|byte| [*byte, 0]).collect();
            [b"\xff\xfe", &*word].concat()
        }
        _ => bent(source, &BODIES),
    };
    if source.one_in(4) {
        mutate(source, &mut body);
    }
    body
}

struct Input {
    api: Api,
    method: Method,
    asked: HeaderMap,
    key: Option<&'static str>,
    gone_is_done: bool,
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
    extent: Extent,
    version: Version,
    received: Time,
}

impl Input {
    fn draw(source: &mut Source<'_>) -> Self {
        let status =
            if source.one_in(4) { 100 + u16::try_from(source.below(900)).unwrap() } else { *source.pick(&STATUSES) };
        let extents = [Extent::Whole, Extent::Whole, Extent::Whole, Extent::Cut, Extent::TooLarge];
        let versions =
            [Version::HTTP_11, Version::HTTP_11, Version::HTTP_10, Version::HTTP_09, Version::HTTP_2, Version::HTTP_3];
        Self {
            api: if source.one_in(6) { judged(source) } else { api(source) },
            method: source.pick(&METHODS).clone(),
            asked: if source.one_in(2) { headers(source) } else { HeaderMap::new() },
            key: *source.pick(&KEYS),
            gone_is_done: source.one_in(2),
            status,
            headers: headers(source),
            body: body(source),
            extent: *source.pick(&extents),
            version: *source.pick(&versions),
            received: Time::from_millis(source.number()),
        }
    }

    fn read(&self) -> Verdict {
        let asked = Asked::new(&self.method, &self.asked).with_key(self.key).gone_is_done(self.gone_is_done);
        let answer = Answer::new(StatusCode::from_u16(self.status).unwrap(), &self.headers, &self.body)
            .with_extent(self.extent)
            .with_version(self.version)
            .received(self.received);
        self.api.profile.read(&asked, &Exchange::Answered(answer))
    }

    fn told(&self) -> String {
        let shown = &self.body[..self.body.len().min(300)];
        format!(
            "{} {} {:?} key {} gone {} -> {} {:?} {:?} {:?}, {} bytes: {}",
            self.api.name,
            self.method,
            self.asked,
            self.key.is_some(),
            self.gone_is_done,
            self.status,
            self.headers,
            self.extent,
            self.version,
            self.body.len(),
            shown.escape_ascii()
        )
    }

    /// It carries the profile's own mark, and a key that it could be about.
    fn is_marked(&self) -> bool {
        let is_set = |value: &HeaderValue| {
            let value = value.as_bytes().trim_ascii().to_ascii_lowercase();
            self.api.mark_values.iter().any(|set| value == set.as_bytes())
        };
        self.key.is_some() && self.api.marks.iter().any(|mark| self.headers.get_all(*mark).iter().any(is_set))
    }

    /// The API's own header says so, and not to a POST without a key.
    fn is_told_to_retry(&self) -> bool {
        let says = |value: &HeaderValue| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"true");
        let repeatable = self.key.is_some() || !matches!(self.method, Method::POST | Method::PATCH);
        self.api.name == "stripe" && repeatable && self.headers.get_all("stripe-should-retry").iter().any(says)
    }

    /// A page may be cut at its first byte, and be whole as far as the connection tells.
    fn has_proven_length(&self) -> bool {
        let framed = self.headers.contains_key("content-length") || self.headers.contains_key("transfer-encoding");
        framed || self.version > Version::HTTP_11
    }

    /// Told by the idempotency layer's own code, whatever the content type says.
    fn is_reused(&self, verdict: Verdict) -> bool {
        self.api.name == "verifika" && verdict.why() == Why::KeyReused
    }

    fn has_no_content(&self) -> bool {
        self.method == Method::HEAD || matches!(self.status, 204 | 205)
    }

    /// Where "it is done" may be read at all.
    fn may_be_applied(&self) -> bool {
        let names = |name: &str| self.asked.contains_key(name);
        match self.status {
            202 => self.api.judge == Some(Judgement::Final) && (self.has_no_content() || self.extent == Extent::Whole),
            206 if !names("range") => self.has_no_content(),
            207 => false,
            200..=299 => self.has_no_content() || self.extent == Extent::Whole,
            304 => {
                matches!(self.method, Method::GET | Method::HEAD)
                    && (names("if-none-match") || names("if-modified-since"))
            }
            404 | 410 => self.method == Method::DELETE && self.gone_is_done && self.extent == Extent::Whole,
            _ => false,
        }
    }

    /// Where "nothing came of this attempt" may be read at all.
    fn may_be_refused(&self) -> bool {
        let whole = self.extent == Extent::Whole;
        match self.status {
            400..=405 | 407 | 410..=415 | 417 | 422 | 431 => whole,
            // Only a code in a body of JSON can tell a conflict from our own earlier attempt.
            409 => {
                let json = self.body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.body);
                whole && serde_json::from_slice::<serde_json::Value>(json).is_ok()
            }
            200..=299 => self.api.judge == Some(Judgement::Refused),
            _ => false,
        }
    }
}

pub(crate) fn check(source: &mut Source<'_>) {
    let input = Input::draw(source);
    let verdict = input.read();
    holds(&input, verdict);
    assert_eq!(input.read(), verdict, "not the same twice: {}", input.told());
}

fn holds(input: &Input, verdict: Verdict) {
    let told = || format!("{verdict:?} of {}", input.told());
    let (reach, advice, marked) = (verdict.reach(), verdict.advice(), input.is_marked());
    let success = (200..300).contains(&input.status);
    assert_eq!(verdict.marked(), marked, "{}", told());
    match reach {
        Reach::Applied => assert!(input.may_be_applied() && advice == Advice::Stop, "{}", told()),
        Reach::AppliedUnread => {
            assert!(
                success && input.status != 207 && input.api.judge.is_none() && !input.has_no_content(),
                "{}",
                told()
            );
        }
        Reach::Refused => assert!(input.may_be_refused(), "{}", told()),
        Reach::Rejected => {
            let layer = (400..500).contains(&input.status)
                && !matches!(input.status, 408 | 409 | 423 | 425 | 429)
                && !input.api.errors_never_stored
                && input.extent == Extent::Whole;
            let judged = success && input.api.judge == Some(Judgement::Refused);
            assert!(marked && (layer || judged) && advice == Advice::Stop, "{}", told());
        }
        Reach::Accepted { knows_key: true } => {
            // A code of the layer's, a marked 2xx that is not finished, or a released 5xx.
            let told_by = (400..500).contains(&input.status) && verdict.why() == Why::InProgress;
            let replayed = marked && (success || (input.status >= 500 && input.api.errors_never_stored));
            assert!(input.key.is_some() && (told_by || replayed), "{}", told());
        }
        Reach::Accepted { knows_key: false } => {
            let named = (400..500).contains(&input.status) && verdict.why() == Why::InProgress && input.key.is_none();
            assert!(success || named, "{}", told());
        }
        Reach::Ambiguous => {}
        other => panic!("{other:?} off an answer: {}", told()),
    }
    if input.status < 200 || (300..400).contains(&input.status) || input.status >= 600 {
        let done = reach == Reach::Applied && input.status == 304;
        // Only where no rule names the status may the server's word count.
        let asked_for = input.status != 101 && !(300..400).contains(&input.status) && input.is_told_to_retry();
        assert!(done || (reach == Reach::Ambiguous && (advice == Advice::Stop || asked_for)), "{}", told());
    }
    let page = input.headers.get("content-type").is_some_and(|kind| kind.as_bytes() == b"text/html");
    if page && input.headers.get_all("content-type").iter().count() == 1 && !input.asked.contains_key("accept") {
        let nothing = input.body.is_empty() && input.has_proven_length();
        assert!(!success || nothing || input.has_no_content() || reach != Reach::Applied, "{}", told());
        assert!(
            !matches!(input.status, 403 | 409) || reach != Reach::Refused || input.is_reused(verdict),
            "{}",
            told()
        );
    }
    match advice {
        Advice::RetryAfter(wait) => {
            let named = input.headers.contains_key("retry-after") || input.headers.contains_key("retry-after-ms");
            assert!(named && wait >= least_by_digits(&input.headers).unwrap_or_default(), "{}", told());
        }
        Advice::Retry => assert_eq!(least_by_digits(&input.headers), None, "{}", told()),
        Advice::Stop => {}
        other => panic!("{other:?}: {}", told()),
    }
    // Not so careful as to be of no use.
    let plain = success && !matches!(input.status, 202 | 206 | 207) && input.extent == Extent::Whole;
    if plain
        && input.headers.is_empty()
        && input.api.judge.is_none()
        && !input.body.trim_ascii_start().starts_with(b"<")
    {
        // Half an object: without a header nothing says how long the whole is.
        let half = input.body.trim_ascii_start().starts_with(b"{")
            && serde_json::from_slice::<serde_json::Value>(&input.body).is_err();
        assert!(reach == Reach::Applied || half || input.body.starts_with(b"\xef\xbb\xbf"), "{}", told());
    }
}

/// It says nothing of how long it is, and may be the rest of a portal's page.
#[test]
fn a_page_of_no_length_that_ends_at_its_first_byte_is_no_answer() {
    let (mut headers, asked) = (HeaderMap::new(), HeaderMap::new());
    headers.insert("content-type", "text/html".parse().unwrap());
    let asked = Asked::new(&Method::POST, &asked).with_key(KEYS[0]);
    let answer = Answer::new(StatusCode::OK, &headers, b"");
    let verdict = Profile::generic().read(&asked, &Exchange::Answered(answer));
    assert_eq!((verdict.reach(), verdict.advice()), (Reach::Ambiguous, Advice::Retry));
}
