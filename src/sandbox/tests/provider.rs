//! Methods, authorization, limits, and bytes that are no requests.

use super::*;

#[tokio::test]
async fn each_method() {
    let sandbox = Sandbox::start().await.unwrap();
    for (method, path, status, executions) in [
        ("GET", "/a?b=c", 200, 0),
        ("HEAD", "/a", 200, 0),
        ("OPTIONS", "*", 200, 0),
        ("PUT", "/a", 200, 1),
        ("PUT", "/a", 200, 2),
        ("DELETE", "/a", 204, 3),
        ("DELETE", "/a", 404, 3),
        ("PUT", "/a", 200, 4),
        ("DELETE", "/a", 204, 5),
        ("BREW", "/a", 405, 5),
        ("TRACE", "/a", 405, 5),
    ] {
        let reply = send(&sandbox, &request(method, path, &[], "")).await;
        assert_eq!(reply.status(), status, "{method}");
        assert_eq!(sandbox.executions(), executions, "{method}");
        let seen = sandbox.requests().pop().unwrap();
        assert_eq!((seen.method().as_str(), seen.path()), (method, path));
    }
    assert!(sandbox.ledger().iter().all(|e| e.key().is_none()));
    let put = request("PUT", "/k", &[("Idempotency-Key", "k1")], "{}");
    send(&sandbox, &put).await;
    send(&sandbox, &put).await;
    assert_eq!(sandbox.executions_of("k1"), 2);
    let patch = request("PATCH", "/k", &[("Idempotency-Key", "k2")], "{}");
    let reply = send(&sandbox, &patch).await;
    assert_eq!(reply.body(), r#"{"id":"pay_8","status":"captured"}"#);
}

#[tokio::test]
async fn amounts() {
    let sandbox = Sandbox::start().await.unwrap();
    for (n, (amount, refused)) in [
        ("0", true),
        ("-0.01", true),
        ("-1e400", false), // not JSON to a reader of f64: raw bytes without an amount
        ("10.50", false),
        ("\"-3\"", false),
        ("12345678901234567890123", false),
    ]
    .into_iter()
    .enumerate()
    {
        let body = format!(r#"{{"amount":{amount}}}"#);
        let reply = send(&sandbox, &post(&n.to_string(), &body)).await;
        assert_eq!(reply.status() == 400, refused, "{amount}");
        if !refused && amount != "-1e400" {
            assert!(reply.body().ends_with(&format!(r#""amount":{amount}}}"#)));
        }
    }
}

#[tokio::test]
async fn authorization_comes_before_the_key() {
    let builder = Sandbox::builder().require_authorization("Bearer one");
    let sandbox = builder.start().await.unwrap();
    let call = |token| {
        let headers = [("Idempotency-Key", "k1"), ("Authorization", token)];
        request("POST", "/", &headers, BODY)
    };
    let reply = send(&sandbox, &request("POST", "/", &[], BODY)).await;
    assert_eq!((reply.status(), reply.body()), (401, r#"{"code":"UNAUTHORIZED"}"#));
    assert_eq!(send(&sandbox, &call("Bearer two")).await.status(), 401);
    assert_eq!(send(&sandbox, &call("Bearer one")).await.status(), 201);
    sandbox.set_authorization("Bearer two");
    assert_eq!(send(&sandbox, &call("Bearer one")).await.status(), 401);
    let reply = send(&sandbox, &call("Bearer two")).await;
    assert_eq!(reply.header("idempotent-replay"), Some("true"));
}

#[tokio::test]
async fn a_body_over_the_limit() {
    let sandbox = Sandbox::builder().max_body(1000).start().await.unwrap();
    assert_eq!(send(&sandbox, &post("k1", &"x".repeat(1000))).await.status(), 201);
    let reply = send(&sandbox, &post("k2", &"x".repeat(2_000_000))).await;
    assert_eq!((reply.status(), reply.end), (413, End::Fin));
    assert_eq!(sandbox.executions(), 1);
    let seen = sandbox.requests().pop().unwrap();
    assert!(!seen.is_complete() && seen.body().len() <= 1000);
}

#[tokio::test]
async fn a_body_that_breaks_off() {
    let sandbox = Sandbox::start().await.unwrap();
    let whole = post("k1", BODY);
    let stream = open(&sandbox, &whole[..whole.len() - 4]).await;
    until(&sandbox, |s| s.requests().len() == 1).await;
    drop(stream);
    until(&sandbox, |s| !s.requests()[0].body().is_empty()).await;
    let seen = &sandbox.requests()[0];
    assert!(!seen.is_complete());
    assert_eq!(seen.body(), &BODY[..BODY.len() - 4]);
    assert_eq!(sandbox.executions(), 0);
    let chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n";
    assert_eq!(send(&sandbox, chunked).await.status(), 400);
}

#[tokio::test]
async fn a_connection_is_kept_and_chunks_are_read() {
    let sandbox = Sandbox::start().await.unwrap();
    let chunked = "POST / HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k1\r\n\
                   Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\nd\r\n\"amount\":100}\r\n0\r\n\r\n";
    let mut stream = open(&sandbox, chunked).await;
    let mut first = [0; 12];
    stream.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 201");
    stream.write_all(post("k2", BODY).as_bytes()).await.unwrap();
    let rest = finish(stream).await;
    assert_eq!(rest.text.matches("HTTP/1.1 201").count(), 1);
    assert_eq!(sandbox.ledger()[0].body(), BODY);
    assert_eq!(sandbox.executions(), 2);
}

#[tokio::test]
async fn no_bytes_make_it_panic() {
    let sandbox = Sandbox::start().await.unwrap();
    let deep = "[".repeat(200_000);
    let odd = [
        "\0\u{1}\u{2}\r\n\r\n".to_owned(),
        "GET\r\n\r\n".to_owned(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        request("POST", "http://a/b?c", &[("Idempotency-Key", "a")], &deep),
        request("CONNECT", "a:1", &[], ""),
        request("POST", "/%ff?\u{fc}", &[("Idempotency-Key", "b")], "\"\\ud800\""),
        request("POST", "/", &[("Idempotency-Key", "c")], "{\"a\":[1,{\"b\":\"\\"),
        request("GET", "/", &[("X", &"y".repeat(500_000))], ""),
    ];
    for bytes in odd {
        let mut stream = TcpStream::connect(sandbox.addr()).await.unwrap();
        let _ = stream.write_all(bytes.as_bytes()).await;
        let _ = stream.shutdown().await;
        finish(stream).await;
    }
    assert_eq!(send(&sandbox, &post("k1", BODY)).await.status(), 201);
    assert_eq!(sandbox.shared.tasks().1, 0);
}
