//! Requests that are not served, and answers that are not the real one.

use super::*;

/// The fault executes nothing and leaves no trace in the key store: a retry is a first request.
async fn unserved(fault: Fault) -> Reply {
    let name = fault.name();
    let sandbox = with([fault]).await;
    let reply = send(&sandbox, &post("k1", BODY)).await;
    assert_eq!(sandbox.executions(), 0, "{name}");
    let retry = send(&sandbox, &post("k1", r#"{"amount":7}"#)).await;
    assert_eq!(retry.status(), 201, "{name}");
    assert_eq!(retry.header("idempotent-replay"), None, "{name}");
    assert_eq!(sandbox.executions_of("k1"), 1, "{name}");
    assert_eq!(sandbox.requests().len(), 2, "{name}");
    reply
}

#[tokio::test]
async fn closed_and_reset() {
    for (fault, end) in [
        (Fault::closed_before_reading(), End::Fin),
        (Fault::reset_before_reading(), End::Reset),
        (Fault::closed_before_reading().with_reset(), End::Reset),
        (Fault::closed_without_executing(), End::Fin),
        (Fault::reset_without_executing(), End::Reset),
    ] {
        let reply = unserved(fault).await;
        assert_eq!((reply.text.as_str(), reply.end), ("", end));
    }
}

#[tokio::test]
async fn before_reading_means_the_body_is_not_read() {
    let big = "x".repeat(16_000_000);
    let sandbox = with([Fault::closed_before_reading()]).await;
    let mut stream = TcpStream::connect(sandbox.addr()).await.unwrap();
    // It closes while we write, and lets us: what it left unread would turn FIN into RST.
    stream.write_all(post("k1", &big).as_bytes()).await.unwrap();
    let reply = finish(stream).await;
    assert_eq!((reply.text.as_str(), reply.end), ("", End::Fin));
    let seen = &sandbox.requests()[0];
    assert_eq!((seen.is_complete(), seen.body().len()), (false, 0));
    assert_eq!(seen.key(), Some("k1"));
    assert_eq!(sandbox.executions(), 0);
}

#[tokio::test]
async fn a_gateways_status() {
    let reply = unserved(Fault::status(503)).await;
    assert_eq!((reply.status(), reply.body()), (503, r#"{"message":"Service Unavailable"}"#));
    let reply = unserved(Fault::status(202)).await;
    assert_eq!((reply.status(), reply.body()), (202, "{}"));
    let reply = unserved(Fault::status(204)).await;
    assert_eq!((reply.status(), reply.body()), (204, ""));
    assert_eq!(unserved(Fault::status(999)).await.status(), 999);
    let early = unserved(Fault::status(103)).await;
    assert_eq!(early.text, "HTTP/1.1 103 Early Hints\r\n\r\n");
    let fault = Fault::status(418).header("X-Odd", "1").header("x-odd", "2");
    let reply = unserved(fault.body("text/plain", "tea")).await;
    assert_eq!((reply.status(), reply.body()), (418, "tea"));
    assert!(reply.text.contains("x-odd: 1\r\nx-odd: 2\r\n"));
    assert_eq!(reply.header("content-type"), Some("text/plain"));
    let reply = unserved(Fault::status(200).header("content-length", "9").json("{}")).await;
    assert_eq!((reply.header("content-length"), reply.body()), (Some("9"), "{}"));
    let reply = unserved(Fault::status(500).with_body_cut(3)).await;
    assert_eq!((reply.status(), reply.body()), (500, r#"{"m"#));
}

#[tokio::test]
async fn k_times() {
    let sandbox = with(Fault::status(500).times(2)).await;
    sandbox.fail_next([Fault::none(), Fault::in_progress().times(2), Fault::none().times(0)]);
    assert_eq!(sandbox.faults_left(), 5);
    let mut statuses = Vec::new();
    for _ in 0..6 {
        statuses.push(send(&sandbox, &post("k1", BODY)).await.status());
    }
    assert_eq!(statuses, [500, 500, 201, 409, 409, 201]);
    let seen = sandbox.requests();
    assert_eq!(seen[1].fault(), Some(&Fault::status(500)));
    assert_eq!(seen[2].fault(), None);
    assert_eq!(seen[4].fault().map(Fault::name), Some("in_progress"));
    assert!(seen.iter().zip(1..).all(|(seen, number)| seen.number() == number));
}

#[tokio::test]
async fn in_progress_replayed_html_redirect() {
    let reply = unserved(Fault::in_progress()).await;
    let code = r#"{"code":"IDEMPOTENCY_IN_PROGRESS"}"#;
    assert_eq!((reply.status(), reply.body()), (409, code));
    let reply = unserved(Fault::replayed(500)).await;
    assert_eq!((reply.status(), reply.header("idempotent-replay")), (500, Some("true")));
    let reply = unserved(Fault::html(200)).await;
    assert_eq!(reply.status(), 200);
    assert!(reply.header("content-type").unwrap().starts_with("text/html"));
    assert!(reply.body().starts_with("<!DOCTYPE html>"));
    let reply = unserved(Fault::redirect(307, "/elsewhere")).await;
    assert_eq!((reply.status(), reply.body()), (307, ""));
    assert_eq!(reply.header("location"), Some("/elsewhere"));
}

#[tokio::test]
async fn retry_after_in_every_form() {
    for text in ["3", "0.5", "soon", "-1", "1, 2"] {
        let reply = unserved(Fault::status(429).retry_after(text)).await;
        assert_eq!(reply.header("retry-after"), Some(text));
    }
    let reply = unserved(Fault::status(429).retry_after("")).await;
    assert!(reply.text.contains("retry-after: \r\n"));
    let ahead = Duration::from_secs(90);
    for fault in [
        Fault::status(503).retry_after_date(ahead),
        Fault::status(503).retry_after_rfc850(ahead),
        Fault::status(503).retry_after_asctime(ahead),
    ] {
        let reply = unserved(fault).await;
        let parse = |text: &str| httpdate::parse_http_date(text).unwrap();
        let date = parse(reply.date.as_deref().unwrap());
        let after = parse(reply.header("retry-after").unwrap());
        assert_eq!(after.duration_since(date).unwrap(), ahead);
    }
    let undated = Fault::status(503).retry_after("1").undated();
    assert_eq!(unserved(undated).await.date, None);
}

#[tokio::test]
async fn a_gateway_replaces_the_answer_and_the_store_keeps_the_truth() {
    for status in [202, 401, 500] {
        let sandbox = with([Fault::status(status).executing()]).await;
        assert_eq!(send(&sandbox, &post("k1", BODY)).await.status(), status);
        assert_eq!(sandbox.executions(), 1);
        let retry = send(&sandbox, &post("k1", BODY)).await;
        assert_eq!((retry.status(), retry.body()), (201, PAID));
        assert_eq!(sandbox.executions(), 1);
    }
}

#[tokio::test]
async fn a_handlers_success_is_stored_as_it_said_it() {
    let fault = Fault::status(202).json(r#"{"status":"pending"}"#).from_handler();
    let sandbox = with([fault]).await;
    let first = send(&sandbox, &post("k1", BODY)).await;
    let retry = send(&sandbox, &post("k1", BODY)).await;
    assert_eq!((first.status(), first.body()), (202, r#"{"status":"pending"}"#));
    assert_eq!((retry.status(), retry.body()), (202, first.body()));
    assert_eq!(retry.header("idempotent-replay"), Some("true"));
    assert_eq!(sandbox.executions(), 1);
}

#[tokio::test]
async fn a_handlers_error_after_executing_is_a_double_when_released() {
    let sandbox = with([Fault::status(500).from_handler()]).await;
    assert_eq!(send(&sandbox, &post("k1", BODY)).await.status(), 500);
    assert_eq!(send(&sandbox, &post("k1", BODY)).await.status(), 201);
    let doubles = sandbox.ledger().iter().map(|e| e.is_double()).collect::<Vec<_>>();
    assert_eq!(doubles, [false, true]);
}

#[tokio::test]
async fn a_handlers_refusal_is_stored_where_errors_are() {
    let sandbox = Sandbox::builder().store_errors(true).start().await.unwrap();
    sandbox.fail_next(Fault::status(402).from_handler_without_executing());
    for replay in [None, Some("true")] {
        let reply = send(&sandbox, &post("k1", BODY)).await;
        assert_eq!((reply.status(), reply.header("idempotent-replay")), (402, replay));
    }
    assert_eq!(sandbox.executions(), 0);
}

#[tokio::test]
async fn duplicate() {
    let sandbox = with([Fault::duplicate()]).await;
    let reply = send(&sandbox, &post("k1", BODY)).await;
    assert_eq!(reply.status(), 409);
    assert!(reply.body().contains("IDEMPOTENCY_IN_PROGRESS"));
    until(&sandbox, |s| s.executions() == 1).await;
    let seen = sandbox.requests();
    let copies = seen.iter().map(|seen| seen.is_copy()).collect::<Vec<_>>();
    assert_eq!(copies, [false, true]);
    assert_eq!(seen[1].body(), BODY);

    let builder = Sandbox::builder().wait_while_in_progress(true);
    let sandbox = builder.start().await.unwrap();
    sandbox.fail_next(Fault::duplicate());
    let reply = send(&sandbox, &post("k1", BODY)).await;
    assert_eq!((reply.status(), reply.header("idempotent-replay")), (201, Some("true")));
    assert_eq!(sandbox.executions(), 1);

    let sandbox = Sandbox::builder().ignore_keys(true).start().await.unwrap();
    sandbox.fail_next(Fault::duplicate());
    assert_eq!(send(&sandbox, &post("k1", BODY)).await.status(), 201);
    until(&sandbox, |s| s.executions() == 2).await;
    assert!(sandbox.ledger().iter().all(|e| !e.is_double()));
}

#[tokio::test]
async fn crashes_leave_the_key_locked() {
    for (fault, executed) in [(Fault::crash_before_executing(), 0), (Fault::crash_after_executing(), 1)] {
        let sandbox = with([fault]).await;
        let reply = send(&sandbox, &post("k1", BODY)).await;
        assert_eq!((reply.text.as_str(), reply.end), ("", End::Fin));
        assert_eq!(sandbox.executions(), executed);
        assert_eq!(send(&sandbox, &post("k1", BODY)).await.status(), 409);
        sandbox.advance(Duration::from_secs(30));
        assert_eq!(send(&sandbox, &post("k1", BODY)).await.status(), 201);
        let ledger = sandbox.ledger();
        assert_eq!(ledger.len(), executed + 1);
        assert_eq!(ledger[executed].is_double(), executed == 1);
    }
}
