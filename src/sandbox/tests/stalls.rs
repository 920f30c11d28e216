//! Stalls in each phase: for good, and for a while.

use super::*;

const AN_HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn before_reading() {
    let sandbox = with([Fault::stall_before_reading()]).await;
    let mut stream = open(&sandbox, &post("k1", BODY)).await;
    assert_eq!(stalled_after(&mut stream, 0).await, "");
    let seen = &sandbox.requests()[0];
    assert_eq!((seen.is_complete(), seen.status()), (false, None));
    drop(stream);
    assert_eq!(send(&sandbox, &post("k1", BODY)).await.status(), 201);

    sandbox.fail_next(Fault::stall_before_reading().lasting(AN_HOUR));
    let mut stream = open(&sandbox, &post("k2", BODY)).await;
    stalled_after(&mut stream, 0).await;
    sandbox.advance(AN_HOUR);
    assert_eq!(finish(stream).await.status(), 201);
}

#[tokio::test]
async fn before_executing() {
    let sandbox = with([Fault::stall_before_executing()]).await;
    let mut stream = open(&sandbox, &post("k1", BODY)).await;
    stalled_after(&mut stream, 0).await;
    assert!(sandbox.requests()[0].is_complete());
    // The key was not looked at: another request is served.
    assert_eq!(send(&sandbox, &post("k1", BODY)).await.status(), 201);
    assert_eq!(sandbox.executions(), 1);
}

#[tokio::test]
async fn a_request_can_arrive_later_than_its_own_retry() {
    let sandbox = with([Fault::stall_before_executing().lasting(AN_HOUR)]).await;
    let mut stream = open(&sandbox, &post("k1", BODY)).await;
    stalled_after(&mut stream, 0).await;
    drop(stream);
    sandbox.advance(AN_HOUR);
    until(&sandbox, |s| s.executions() == 1).await;
    let reply = send(&sandbox, &post("k1", BODY)).await;
    assert_eq!(reply.header("idempotent-replay"), Some("true"));
}

#[tokio::test]
async fn while_executing() {
    let sandbox = with([Fault::stall_while_executing()]).await;
    let mut stream = open(&sandbox, &post("k1", BODY)).await;
    stalled_after(&mut stream, 0).await;
    assert_eq!(send(&sandbox, &post("k1", BODY)).await.status(), 409);
    assert_eq!(sandbox.executions(), 0);
    sandbox.advance(Duration::from_secs(30));
    assert_eq!(send(&sandbox, &post("k1", BODY)).await.status(), 201);
    assert!(!sandbox.ledger()[0].is_double());
    sandbox.fail_next(Fault::stall_while_executing());
    let replay = send(&sandbox, &post("k1", BODY)).await;
    assert_eq!(replay.status(), 201, "no handler is reached");
}

#[tokio::test]
async fn a_reclaimed_handler_that_was_alive_makes_a_double() {
    let sandbox = with([Fault::stall_while_executing().lasting(AN_HOUR)]).await;
    let stream = open(&sandbox, &post("k1", BODY)).await;
    until(&sandbox, |s| s.at_work() == 1).await;
    for status in [409, 409, 201] {
        let reply = send(&sandbox, &post("k1", BODY)).await;
        assert_eq!(reply.status(), status);
        sandbox.advance(Duration::from_secs(15));
    }
    sandbox.advance(AN_HOUR);
    assert_eq!(finish(stream).await.body(), PAID.replace("pay_1", "pay_2"));
    let doubles = sandbox.ledger().iter().map(|e| e.is_double()).collect::<Vec<_>>();
    assert_eq!(doubles, [false, true]);
    assert_eq!(sandbox.ledger()[1].request(), 1);
    // The one that holds the key is the one that is replayed.
    assert_eq!(send(&sandbox, &post("k1", BODY)).await.body(), PAID);
}

#[tokio::test]
async fn after_executing_in_the_head_and_in_the_body() {
    let date = "date: Sun, 06 Nov 1994 08:49:37 GMT\r\n".len();
    let lines = "HTTP/1.1 201 Created\r\ncontent-type: application/json\r\ncontent-length: 47\r\n\r\n";
    let head = lines.len() + date;
    for (fault, bytes, status) in [
        (Fault::stall_after_executing(), 0, None),
        (Fault::stall_in_head(12), 12, None),
        (Fault::stall_in_body(0), head, Some(201)),
        (Fault::stall_in_body(5), head + 5, Some(201)),
        (Fault::stall_in_body(5).chunked(), head + 17, Some(201)),
    ] {
        let sandbox = with([fault]).await;
        let mut stream = open(&sandbox, &post("k1", BODY)).await;
        let text = stalled_after(&mut stream, bytes).await;
        assert!(bytes == 0 || text.starts_with("HTTP/1.1 201"));
        let seen = sandbox.requests()[0].status();
        assert_eq!(seen.map(|status| status.as_u16()), status);
        assert_eq!(sandbox.executions(), 1);
        drop(stream);
        let retry = send(&sandbox, &post("k1", BODY)).await;
        assert_eq!(retry.header("idempotent-replay"), Some("true"));
    }
}

#[tokio::test]
async fn a_stall_that_ends_goes_on_where_it_stopped() {
    for fault in [
        Fault::stall_after_executing(),
        Fault::stall_in_head(12),
        Fault::stall_in_body(5),
        Fault::status(201).json(PAID).with_stall_before_head(),
        Fault::status(201).json(PAID).with_stall_in_head(12),
        Fault::status(201).json(PAID).with_stall_in_body(5),
    ] {
        let sandbox = with([fault.lasting(AN_HOUR)]).await;
        let stream = open(&sandbox, &post("k1", BODY)).await;
        until(&sandbox, |s| s.requests().iter().any(|r| r.status().is_some())).await;
        sandbox.advance(AN_HOUR);
        let reply = finish(stream).await;
        assert_eq!((reply.status(), reply.body(), reply.end), (201, PAID, End::Fin));
    }
}

#[tokio::test]
async fn the_server_lets_go_when_the_client_does() {
    for fault in [Fault::stall_before_reading(), Fault::stall_after_executing()] {
        let sandbox = with([fault]).await;
        // More than is read with the head, and little enough to fit the socket.
        let body = format!("{{\"pad\":\"{}\"}}", "x".repeat(60_000));
        let mut stream = open(&sandbox, &post("k1", &body)).await;
        stalled_after(&mut stream, 0).await;
        let before = sandbox.shared.tasks().0;
        stream.shutdown().await.unwrap();
        let reply = finish(stream).await;
        assert_eq!(reply.text, "");
        fewer_tasks(&sandbox, before).await;
    }
}
