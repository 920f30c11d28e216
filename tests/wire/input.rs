//! Bad input: a clear error before anything is sent, and never a panic.

use oncekey::{ClientBuilder, Effect, ErrorKind, IdempotencyKey, Poll, RequestBuilder, Retry};

use crate::*;

const UUID: &str = "5d9b7a52-8a3c-4a43-9a57-2d6f7c1b0e11";

#[tokio::test]
async fn a_request_that_cannot_be_sent_says_why() {
    type Bad = fn(RequestBuilder) -> RequestBuilder;
    type AnyBad = Box<dyn Fn(RequestBuilder) -> RequestBuilder>;
    let key = |text: &str| IdempotencyKey::parse(text).unwrap();
    let upper = key(&UUID.to_uppercase());
    let cases: Vec<(AnyBad, &str)> = vec![
        (Box::new(move |r| r.idempotency_key(upper.clone())), "upper case"),
        (Box::new(move |r| r.idempotency_key(key("order-7"))), "not a UUID"),
        (Box::new(move |r| r.idempotency_key(key(UUID)).idempotency_key(key(UUID))), "two idempotency keys"),
        (Box::new(move |r| r.idempotency_key(key(UUID)).without_key()), "without_key"),
        (Box::new((|r| r.header("IDEMPOTENCY-KEY", UUID)) as Bad), "set by hand"),
        (
            Box::new(
                (|r| r.headers([("idempotency-key".parse().unwrap(), UUID.parse().unwrap())].into_iter().collect()))
                    as Bad,
            ),
            "set by hand",
        ),
        (Box::new((|r| r.header("a b", "x")) as Bad), "header's name"),
        (Box::new((|r| r.header("x-note", "a\nb")) as Bad), "x-note"),
        (Box::new((|r| r.header("content-length", "3")) as Bad), "Content-Length"),
        (Box::new((|r| r.header("transfer-encoding", "chunked")) as Bad), "Transfer-Encoding"),
        (Box::new((|r| r.bearer_auth("a\nb")) as Bad), "credentials"),
        (Box::new((|r| r.query(&7)) as Bad), "query"),
        (Box::new((|r| r.form("text")) as Bad), "form"),
        (Box::new((|r| r.json(&std::collections::BTreeMap::from([((1, 2), 3)]))) as Bad), "JSON"),
        (Box::new((|r| r.operation("income:7")) as Bad), "journal"),
        (Box::new((|r| r.gone_is_done()) as Bad), "DELETE"),
        (Box::new((|r| r.deadline(ms(0))) as Bad), "deadline is under 50 ms"),
        (Box::new((|r| r.deadline(ms(49))) as Bad), "deadline is under 50 ms"),
        (Box::new((|r| (0..1001).fold(r, |r, _| r.header("x-a", "1"))) as Bad), "1,000 headers"),
        (Box::new((|r| r.attempt_timeout(ms(0))) as Bad), "attempt_timeout is zero"),
        (Box::new((|r| r.attempt_timeout(Duration::MAX)) as Bad), "lifetime"),
    ];
    let sandbox = sandbox([]).await;
    for (bad, word) in cases {
        let error = bad(client().post(sandbox.url("/pay"))).send().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Request, "{error}");
        assert!(error.to_string().contains(word), "{word}: {error}");
        assert!(error.attempts().is_empty() && error.response().is_none());
        // Only a key that somebody may have sent before leaves anything open.
        let effect = if word.contains("UUID") || word.contains("case") || word.contains("key") {
            Effect::Unknown
        } else {
            Effect::NotApplied
        };
        assert_eq!(error.effect(), effect, "{error}");
    }
    assert!(sandbox.requests().is_empty());
}

#[tokio::test]
async fn a_url_that_is_none_says_so() {
    for url in
        ["/v1/payments", "", "http://", "ftp://host/x", "file:///etc/passwd", "mailto:a@b", "http://[::1", "data:,x"]
    {
        let error = fails(client().post(url).send().await, ErrorKind::Request, Effect::NotApplied);
        assert!(error.to_string().contains("URL"), "{error}");
    }
    let long = format!("http://127.0.0.1:1/{}", "x".repeat(70_000));
    let error = fails(client().post(long).send().await, ErrorKind::Request, Effect::NotApplied);
    assert!(error.to_string().contains("65,534"), "{error}");
}

#[tokio::test]
async fn what_the_http_client_would_not_send_was_not_sent() {
    let sandbox = sandbox([]).await;
    let strict = builder().http(|http| http.https_only(true)).build().unwrap();
    let error = fails(pay(&strict, &sandbox).await, ErrorKind::Request, Effect::NotApplied);
    assert_eq!(error.attempts().len(), 1);
}

#[tokio::test]
async fn a_fresh_key_of_the_callers_leaves_nothing_open() {
    let error = client().post("/relative").idempotency_key(IdempotencyKey::random()).send().await;
    let _ = fails(error, ErrorKind::Request, Effect::NotApplied);
    // Of two keys the one that may have been sent before counts.
    let used = || IdempotencyKey::parse(UUID).unwrap();
    let both = |one, two| client().post("http://127.0.0.1:1/").idempotency_key(one).idempotency_key(two);
    let _ = fails(both(IdempotencyKey::random(), used()).send().await, ErrorKind::Request, Effect::Unknown);
    let _ = fails(both(used(), IdempotencyKey::random()).send().await, ErrorKind::Request, Effect::Unknown);
    let random = both(IdempotencyKey::random(), IdempotencyKey::random());
    let _ = fails(random.send().await, ErrorKind::Request, Effect::NotApplied);
}

#[test]
fn a_key_that_is_none_is_refused_at_once() {
    let cases = [
        ("", "empty"),
        (" ", "white space"),
        (" padded", "white space"),
        ("0xb7ef\u{2026}375a", "ASCII"),
        ("a\tb", "ASCII"),
        ("a\r\nX-Evil: 1", "ASCII"),
        ("\"quoted\"", "quote"),
    ];
    for (key, word) in cases {
        let error = IdempotencyKey::parse(key).unwrap_err().to_string();
        assert!(error.contains(word), "{key:?}: {error}");
    }
    assert!(IdempotencyKey::parse("k".repeat(301)).unwrap_err().to_string().contains("longer"));
}

#[test]
fn a_client_that_cannot_be_built_says_why() {
    type Bad = fn(ClientBuilder) -> ClientBuilder;
    let cases: [(Bad, &str); 13] = [
        (|b| b.retry(Retry::default().max_attempts(0)), "max_attempts is 0"),
        (|b| b.retry(Retry::default().base_delay(ms(2)).max_delay(ms(1))), "base_delay"),
        (|b| b.poll(Poll::default().interval(ms(2)).max_interval(ms(1))), "poll interval"),
        (|b| b.attempt_timeout(ms(0)), "attempt_timeout is zero"),
        (|b| b.connect_timeout(ms(0)), "connect_timeout is zero"),
        (|b| b.attempt_timeout(ms(100)).connect_timeout(ms(51)), "half of attempt_timeout"),
        (|b| b.deadline(ms(0)), "deadline is under 50 ms"),
        (|b| b.max_response_bytes(0), "max_response_bytes"),
        (|b| b.key_lifetime(ms(86_400_001)), "longer than the profile's"),
        (|b| b.key_lifetime(ms(0)), "shorter than attempt_timeout"),
        (|b| b.attempt_timeout(ms(60_000)).key_lifetime(ms(66_000)), "margin"),
        (|b| b.attempt_timeout(Duration::MAX), "margin"),
        (|b| b.http(|http| http.user_agent("a\nb")), "HTTP client"),
    ];
    for (bad, word) in cases {
        let error = bad(Client::builder()).build().unwrap_err();
        assert!(error.to_string().contains(word), "{word}: {error}");
    }
    // At the edge it is fine.
    Client::builder().attempt_timeout(ms(60_000)).key_lifetime(ms(67_000)).build().unwrap();
    Client::builder().retry(Retry::default().base_delay(ms(0)).max_delay(ms(0))).build().unwrap();
    Client::builder().deadline(Duration::MAX).build().unwrap();
}
