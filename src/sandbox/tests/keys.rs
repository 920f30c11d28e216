//! The key store, through the wire.

use super::*;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[tokio::test]
async fn a_replay_is_the_stored_answer_word_for_word() {
    let sandbox = Sandbox::start().await.unwrap();
    let first = send(&sandbox, &post("k1", BODY)).await;
    assert_eq!((first.status(), first.body()), (201, PAID));
    assert_eq!(first.header("idempotent-replay"), None);
    // The same JSON, written otherwise.
    let replay = send(&sandbox, &post("k1", "{ \"amount\" : 100 }")).await;
    let marked = first.text.replace("content-type", "idempotent-replay: true\r\ncontent-type");
    let sorted = |text: &str| {
        let mut lines = text.lines().map(str::to_owned).collect::<Vec<_>>();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&replay.text), sorted(&marked));
    assert_eq!(sandbox.executions(), 1);
}

#[tokio::test]
async fn a_reused_key_is_refused() {
    for (builder, status) in [(Sandbox::builder(), 409), (Sandbox::builder().reuse_status(422), 422)] {
        let sandbox = builder.start().await.unwrap();
        send(&sandbox, &post("k1", BODY)).await;
        let key = [("Idempotency-Key", "k1")];
        for reuse in [
            post("k1", r#"{"amount":100.0}"#),
            post("k1", "amount=100"),
            request("POST", "/v1/refunds", &key, BODY),
            request("PATCH", "/v1/payments", &key, BODY),
        ] {
            let reply = send(&sandbox, &reuse).await;
            let code = r#"{"code":"IDEMPOTENCY_KEY_REUSED"}"#;
            assert_eq!((reply.status(), reply.body()), (status, code));
        }
        assert_eq!(sandbox.executions(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_at_once_execute_once() {
    for (work, wait) in [(0, false), (5, false), (0, true), (5, true)] {
        let builder = Sandbox::builder().wait_while_in_progress(wait);
        let sandbox = builder.work(Duration::from_millis(work)).start().await;
        let sandbox = std::sync::Arc::new(sandbox.unwrap());
        let mut clients = tokio::task::JoinSet::new();
        for _ in 0..50 {
            let sandbox = std::sync::Arc::clone(&sandbox);
            clients.spawn(async move { send(&sandbox, &post("k1", BODY)).await });
        }
        let replies = clients.join_all().await;
        assert_eq!(sandbox.executions_of("k1"), 1);
        let fresh = |reply: &&Reply| reply.status() == 201 && reply.header("idempotent-replay").is_none();
        assert_eq!(replies.iter().filter(fresh).count(), 1);
        for reply in &replies {
            let expected = if wait { &[201][..] } else { &[201, 409][..] };
            assert!(expected.contains(&reply.status()), "{}", reply.text);
        }
    }
}

#[tokio::test]
async fn in_progress_then_replayed() {
    let builder = Sandbox::builder().work(Duration::from_secs(10));
    let sandbox = builder.in_progress_retry_after("2").start().await.unwrap();
    let first = open(&sandbox, &post("k1", BODY)).await;
    until(&sandbox, |s| s.at_work() == 1).await;
    let mut second = send(&sandbox, &post("k1", BODY)).await;
    assert_eq!(second.status(), 409);
    assert_eq!(second.header("retry-after"), Some("2"));
    let reused = send(&sandbox, &post("k1", "{}")).await;
    assert!(reused.body().contains("KEY_REUSED"), "even while in progress");
    assert_eq!(sandbox.executions(), 0, "written when the work is done");
    // The client goes away; the handler works on.
    let before = sandbox.shared.tasks().0;
    drop(first);
    fewer_tasks(&sandbox, before).await;
    assert_eq!(sandbox.at_work(), 1);
    sandbox.advance(Duration::from_secs(10));
    until(&sandbox, |s| s.executions() == 1).await;
    second = send(&sandbox, &post("k1", BODY)).await;
    assert_eq!((second.status(), second.body()), (201, PAID));
}

#[tokio::test]
async fn who_waits_runs_when_the_first_is_refused_or_reclaimed() {
    let builder = Sandbox::builder().wait_while_in_progress(true);
    let sandbox = builder.start().await.unwrap();
    sandbox.fail_next(Fault::crash_before_executing());
    send(&sandbox, &post("k1", BODY)).await;
    let mut second = open(&sandbox, &post("k1", BODY)).await;
    stalled_after(&mut second, 0).await;
    sandbox.advance(Duration::from_secs(30));
    let second = finish(second).await;
    assert_eq!((second.status(), second.body()), (201, PAID));
    assert_eq!(second.header("idempotent-replay"), None);
}

#[tokio::test]
async fn a_stale_lock_is_reclaimed_and_the_double_is_marked() {
    let builder = Sandbox::builder().work(Duration::from_secs(60));
    let sandbox = builder.reclaim_after(Duration::from_secs(20)).start().await.unwrap();
    let first = open(&sandbox, &post("k1", BODY)).await;
    until(&sandbox, |s| s.at_work() == 1).await;
    assert_eq!(send(&sandbox, &post("k1", BODY)).await.status(), 409);
    sandbox.advance(Duration::from_secs(20));
    let second = open(&sandbox, &post("k1", BODY)).await;
    until(&sandbox, |s| s.at_work() == 2).await;
    sandbox.advance(Duration::from_secs(60));
    until(&sandbox, |s| s.executions() == 2).await;
    assert_eq!(finish(first).await.status(), 201);
    assert_eq!(finish(second).await.status(), 201);
    let doubles = sandbox.ledger().iter().map(|e| e.is_double()).collect::<Vec<_>>();
    assert_eq!(doubles, [false, true]);
}

#[tokio::test]
async fn keys_are_forgotten_a_day_after_their_first_use() {
    let sandbox = Sandbox::start().await.unwrap();
    send(&sandbox, &post("k1", BODY)).await;
    sandbox.advance(DAY - Duration::from_secs(60));
    let replay = send(&sandbox, &post("k1", BODY)).await;
    assert_eq!(replay.header("idempotent-replay"), Some("true"));
    sandbox.advance(Duration::from_secs(60));
    let anew = send(&sandbox, &post("k1", BODY)).await;
    assert_eq!(anew.body(), PAID.replace("pay_1", "pay_2"));
    assert_eq!(sandbox.executions_of("k1"), 2);
    assert!(!sandbox.ledger()[1].is_double());
    let between = sandbox.ledger()[1].at().duration_since(sandbox.ledger()[0].at());
    assert!(between.unwrap() >= DAY);
}

#[tokio::test]
async fn errors_release_the_key_or_are_stored() {
    let bad = r#"{"amount":0}"#;
    let code = r#"{"code":"INVALID_AMOUNT"}"#;
    let sandbox = Sandbox::start().await.unwrap();
    let reply = send(&sandbox, &post("k1", bad)).await;
    assert_eq!((reply.status(), reply.body()), (400, code));
    // The corrected body under the same key.
    assert_eq!(send(&sandbox, &post("k1", BODY)).await.status(), 201);

    let sandbox = Sandbox::builder().store_errors(true).start().await.unwrap();
    for mark in [None, Some("true")] {
        let reply = send(&sandbox, &post("k1", bad)).await;
        assert_eq!((reply.status(), reply.body()), (400, code));
        assert_eq!(reply.header("idempotent-replay"), mark);
    }
    assert_eq!(send(&sandbox, &post("k1", BODY)).await.status(), 409);
    assert_eq!(sandbox.executions(), 0);
}

#[tokio::test]
async fn keys_that_are_none() {
    let sandbox = Sandbox::start().await.unwrap();
    let key = |value| ("Idempotency-Key", value);
    let long = "k".repeat(256);
    for (keys, code) in [
        (&[][..], "IDEMPOTENCY_KEY_MISSING"),
        (&[key("a"), key("a")], "IDEMPOTENCY_KEY_REPEATED"),
        (&[key("")], "IDEMPOTENCY_KEY_INVALID"),
        (&[key("\u{e9}")], "IDEMPOTENCY_KEY_INVALID"),
        (&[key(&long)], "IDEMPOTENCY_KEY_INVALID"),
    ] {
        let reply = send(&sandbox, &request("POST", "/", keys, BODY)).await;
        let expected = format!(r#"{{"code":"{code}"}}"#);
        assert_eq!((reply.status(), reply.body()), (400, expected.as_str()));
        let seen = sandbox.requests().pop().unwrap();
        assert_eq!(seen.keys().len(), keys.len());
        assert_eq!(seen.key().is_some(), keys.len() == 1);
    }
    assert_eq!(sandbox.executions(), 0);
}

#[tokio::test]
async fn header_mark_and_routes_can_be_chosen() {
    let sandbox = Sandbox::builder()
        .key_header("X-Request-Id")
        .replay_header("X-Replayed", "yes")
        .keyed(|method, path| *method == http::Method::PUT && path == "/a")
        .start()
        .await
        .unwrap();
    let put = request("PUT", "/a?b=c", &[("x-request-id", "k1")], BODY);
    send(&sandbox, &put).await;
    assert_eq!(send(&sandbox, &put).await.header("x-replayed"), Some("yes"));
    assert_eq!(sandbox.executions(), 1);
    for _ in 0..2 {
        let free = request("POST", "/a", &[], BODY);
        assert_eq!(send(&sandbox, &free).await.status(), 201);
    }
    assert_eq!(sandbox.executions(), 3);

    let sandbox = Sandbox::builder().no_replay_header().start().await.unwrap();
    let first = send(&sandbox, &post("k1", BODY)).await;
    assert_eq!(send(&sandbox, &post("k1", BODY)).await.text, first.text);
}

#[tokio::test]
async fn a_server_that_ignores_keys() {
    let sandbox = Sandbox::builder().ignore_keys(true).start().await.unwrap();
    for _ in 0..3 {
        let reply = send(&sandbox, &post("k1", BODY)).await;
        assert_eq!((reply.status(), reply.header("idempotent-replay")), (201, None));
    }
    assert_eq!(sandbox.executions_of("k1"), 3);
}
