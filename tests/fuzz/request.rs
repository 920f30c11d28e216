//! Requests of any URL, headers and limits: a clear error or an honest one, never a panic. Nothing
//! is reached: what is sent goes to a port of this machine where nobody listens.

use std::error::Error as StdError;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use oncekey::engine::Reach;
use oncekey::{Client, Effect, Error, ErrorKind, IdempotencyKey, RequestBuilder, Retry};
use tokio::runtime::Runtime;
use url::Url;

use crate::mutate::{bent, bent_text};
use crate::source::Source;

const NOWHERE: &str = "http://127.0.0.1:1/";
const URLS: [&str; 21] = [
    "/v1/payments",
    "http://",
    "http:///x",
    "ftp://127.0.0.1/x",
    "file:///etc/passwd",
    "mailto:a@b",
    "http://[::1",
    "http://[v1.x]/",
    "data:,x",
    "http://user:pass@/x",
    "http://127.0.0.1:99999/",
    "http://127.0.0.1:1:1/",
    "http://a b/",
    "http://%00/",
    "https://",
    "https:127.0.0.1",
    "javascript:alert(1)",
    "//127.0.0.1/x",
    "http://xn--/",
    "unix:/run/x.sock",
    "https://{tenant}.api.example/v1/payments",
];
const PATHS: [&str; 10] = [
    "v1/payments?expand=all#part",
    "a/../../b/./c//d",
    "%2e%2e/%00/%zz?%",
    "?q=\"<>`{}|\\^",
    "\u{f1}/\u{1f600}?\u{2026}=\u{feff}",
    "#",
    "??##",
    "a b\tc\nd",
    "@127.0.0.1:1/",
    "x?card=4242&card=4242",
];
const HEADERS: [&[u8]; 13] = [
    b"x-note",
    b"content-type",
    b"content-length",
    b"transfer-encoding",
    b"idempotency-key",
    b"host",
    b"connection",
    b"expect",
    b"upgrade",
    b"accept",
    b"te",
    b":authority",
    b"a b",
];
const VALUES: [&[u8]; 8] = [b"1", b"text/plain", b"chunked", b"100-continue", b"close", b"a\r\nx: y", b"\xff\x80", b""];
const SECRET: &str = "S3cr3t";

/// A client, and a thread to run it on.
pub(crate) struct Requests {
    client: Client,
    runtime: Runtime,
}

impl Requests {
    pub(crate) fn new() -> Self {
        let client = Client::builder()
            .http(|http| http.no_proxy())
            .retry(Retry::default().max_attempts(2).base_delay(Duration::ZERO))
            .build()
            .unwrap();
        Self { client, runtime: tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap() }
    }

    pub(crate) fn check(&self, source: &mut Source<'_>) {
        let url = url(source);
        let method = source.pick(&[Method::POST, Method::POST, Method::PATCH, Method::PUT, Method::GET]).clone();
        let keyed = method == Method::POST || method == Method::PATCH;
        let request = self.client.request(method.clone(), &url);
        let request = if source.one_in(3) { request } else { dressed(source, request) };
        let (request, key) = key(source, request);
        let shown = format!("{request:?}");
        assert!(!shown.contains(SECRET), "{shown}");
        if may_be_sent(&url) {
            let error = self.runtime.block_on(request.send()).expect_err("nobody is there");
            told_truly(&error, &url, keyed, key.as_ref());
        }
    }
}

/// The parser's word on a URL, and whether anything but that port can be reached by it: what
/// `http` cannot read is sent nowhere.
fn may_be_sent(url: &str) -> bool {
    match Url::parse(url) {
        Ok(parsed) => {
            let here = parsed.host_str() == Some("127.0.0.1") && parsed.port() == Some(1) && parsed.scheme() == "http";
            let sendable = matches!(parsed.scheme(), "http" | "https") && parsed.has_host();
            here || !sendable || parsed.as_str().parse::<http::Uri>().is_err()
        }
        Err(_) => true,
    }
}

fn url(source: &mut Source<'_>) -> String {
    match source.below(16) {
        0 => format!("{NOWHERE}{}", "x".repeat(source.length(300_000))),
        1 => format!("{NOWHERE}?{}", "\u{f1}".repeat(source.length(40_000))),
        2..=9 => format!("{NOWHERE}{}", bent_text(source, &PATHS)),
        _ => bent_text(source, &URLS),
    }
}

/// Some of everything that a builder takes.
fn dressed(source: &mut Source<'_>, mut request: RequestBuilder) -> RequestBuilder {
    for _ in 0..source.below(5) {
        request = match source.below(10) {
            0 => {
                let (name, value) = (bent(source, &HEADERS), bent(source, &VALUES));
                request.header(&*name, &*value)
            }
            1 => {
                let mut headers = HeaderMap::new();
                for _ in 0..source.length(600) {
                    let name = HeaderName::from_bytes(&bent(source, &HEADERS));
                    if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(&bent(source, &VALUES))) {
                        headers.append(name, value);
                    }
                }
                request.headers(headers)
            }
            2 => request.bearer_auth(format!("{SECRET}{}", bent_text(source, &PATHS))),
            3 => request.basic_auth(bent_text(source, &PATHS), Some(SECRET)),
            4 => {
                let value = bent_text(source, &PATHS);
                request.query(&[("secret", SECRET), ("note", &value)])
            }
            5 => {
                let count = source.length(100_000);
                request.body([SECRET.as_bytes(), &source.bytes(count)].concat())
            }
            6 => request.attempt_timeout(limit(source)),
            7 => request.deadline(limit(source)),
            8 => {
                let count = if source.one_in(40) { source.below(70_000) } else { source.below(300) };
                (0..count).fold(request, |request, _| request.header("x-secret", SECRET))
            }
            9 if source.one_in(2) => request.without_key(),
            _ => request.gone_is_done(),
        };
    }
    request
}

fn limit(source: &mut Source<'_>) -> Duration {
    *source.pick(&[
        Duration::MAX,
        Duration::ZERO,
        Duration::from_nanos(1),
        Duration::from_secs(9),
        Duration::from_secs(u64::MAX),
    ])
}

fn key(source: &mut Source<'_>, request: RequestBuilder) -> (RequestBuilder, Option<IdempotencyKey>) {
    let keys = ["3f2a91c4-5b6d-4e7f-8a90-b1c2d3e4f506", "order-7"];
    match source.below(4) {
        0 => match IdempotencyKey::parse(bent_text(source, &keys)) {
            Ok(key) => (request.idempotency_key(&key), Some(key)),
            Err(_) => (request, None),
        },
        _ => (request, None),
    }
}

fn is_unsent(error: &Error) -> bool {
    error.attempts().iter().all(|attempt| attempt.verdict().is_some_and(|verdict| verdict.reach() == Reach::Unsent))
}

/// Nothing was ever sent: only a key that the caller brings leaves anything open.
fn told_truly(error: &Error, url: &str, keyed: bool, key: Option<&IdempotencyKey>) {
    let told = || format!("{} {error:?}", url.chars().take(300).collect::<String>());
    let safe = if key.is_some() { error.effect() != Effect::Applied } else { error.effect() == Effect::NotApplied };
    assert!(safe, "{}", told());
    let kinds = [ErrorKind::Request, ErrorKind::Exhausted, ErrorKind::KeyExpired];
    assert!(kinds.contains(&error.kind()), "{}", told());
    assert!(error.response().is_none() && is_unsent(error), "{}", told());
    if error.kind() == ErrorKind::Request {
        assert!(error.attempts().len() <= 1, "{}", told());
    } else if keyed && key.is_none() && error.key().is_some() {
        assert!(error.key().unwrap().as_str().len() == 36, "{}", told());
    }
    let mut source: Option<&dyn StdError> = Some(error);
    while let Some(cause) = source {
        let words = format!("{cause} {cause:?}");
        assert!(!words.contains(SECRET), "{words}");
        assert!(key.is_none_or(|key| key.as_str().len() < 16 || !words.contains(key.as_str())), "{words}");
        source = cause.source();
    }
}

fn send(request: RequestBuilder) -> Error {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(request.send()).expect_err("nobody is there")
}

/// `url` takes them and `http` does not.
#[test]
fn a_url_that_the_http_client_cannot_send_is_refused_at_once() {
    let long = format!("{NOWHERE}{}", "x".repeat(70_000));
    for url in ["http://{tenant}.api.example/pay", "http://a`b/", "http://127.0.0.1\"/", &long] {
        assert!(may_be_sent(url));
        let error = send(Requests::new().client.post(url));
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Request, Effect::NotApplied), "{error:?}");
        assert!(is_unsent(&error) && error.attempts().len() <= 1, "{error:?}");
    }
}

#[test]
fn more_headers_than_a_request_can_hold_are_refused_at_once() {
    let request = (0..25_000).fold(Requests::new().client.post(NOWHERE), |request, _| request.header("x-note", "1"));
    let error = send(request);
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Request, Effect::NotApplied), "{error:?}");
}
