//! The handle: its types, its end, and chaos from a seed.

use super::super::{Execution, SandboxBuilder, SeenRequest};
use super::*;

#[test]
fn all_types_can_cross_threads() {
    fn check<T: Send + Sync + std::fmt::Debug>() {}
    check::<Sandbox>();
    check::<SandboxBuilder>();
    check::<Fault>();
    check::<Execution>();
    check::<SeenRequest>();
}

#[tokio::test]
async fn debug_hides_bodies_header_values_queries_and_keys() {
    let builder = Sandbox::builder().require_authorization("s3cret");
    let mut shown = format!("{builder:?}");
    let sandbox = builder.start().await.unwrap();
    let fault = Fault::status(500).header("x-a", "s3cret").json("s3cret");
    shown += &format!("{fault:?}");
    sandbox.fail_next([Fault::none(), fault]);
    for key in ["12345678-with-s3cret", "s3cret"] {
        let headers = [("Idempotency-Key", key), ("Authorization", "s3cret")];
        send(&sandbox, &request("POST", "/pay?s3cret", &headers, "s3cret")).await;
    }
    shown += &format!("{sandbox:?}{:?}{:?}", sandbox.ledger(), sandbox.requests());
    assert!(!shown.contains("s3cret"), "{shown}");
    assert!(shown.contains("12345678…") && shown.contains("authorization"), "{shown}");
    assert!(shown.contains("/pay?…"), "{shown}");
}

#[tokio::test]
async fn dropping_it_closes_all_connections_and_refuses_new_ones() {
    let builder = Sandbox::builder().work(Duration::from_secs(3600));
    let sandbox = builder.start().await.unwrap();
    sandbox.fail_next([Fault::stall_before_reading(), Fault::stall_before_executing()]);
    let mut open_ones = Vec::new();
    for n in 1..=3 {
        open_ones.push(open(&sandbox, &post("k1", BODY)).await);
        until(&sandbox, |s| s.requests().len() == n).await;
    }
    open_ones.push(TcpStream::connect(sandbox.addr()).await.unwrap());
    let addr = sandbox.addr();
    drop(sandbox);
    if cfg!(target_os = "linux") {
        // At once, before any task of the sandbox can run.
        let refused = std::net::TcpStream::connect(addr).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    }
    for stream in open_ones {
        assert_eq!(finish(stream).await.text, "");
    }
}

#[tokio::test]
async fn urls_and_faults_left() {
    let sandbox = with([Fault::status(500), Fault::status(500)]).await;
    let url = format!("http://127.0.0.1:{}/a?b", sandbox.addr().port());
    assert_eq!(sandbox.url("/a?b"), url);
    assert_eq!(sandbox.url("a?b"), url, "and not another port, or none");
    assert_eq!(format!("{}/a?b", sandbox.url("")), url, "a base for clients that want one");
    assert_eq!(sandbox.faults_left(), 2);
    sandbox.clear_faults();
    assert_eq!(send(&sandbox, &post("k1", BODY)).await.status(), 201);
}

#[tokio::test]
async fn the_clock_is_the_date_and_can_go_far() {
    let sandbox = Sandbox::start().await.unwrap();
    let before = sandbox.now();
    sandbox.advance(Duration::MAX);
    sandbox.advance(Duration::MAX);
    assert!(sandbox.now() > before + Duration::from_secs(900 * 365 * 24 * 60 * 60));
    sandbox.fail_next(Fault::status(503).retry_after_date(Duration::MAX));
    let reply = send(&sandbox, &post("k1", BODY)).await;
    let date = httpdate::parse_http_date(&reply.date.unwrap()).unwrap();
    assert!(date > before);
}

/// What a client sees that sends one key until it is told the truth.
async fn insist(sandbox: &Sandbox, key: &str) -> Vec<(u16, End)> {
    let mut seen = Vec::new();
    for _ in 0..100 {
        let reply = send(sandbox, &post(key, BODY)).await;
        let done = reply.status() == 201 && serde_json::from_str::<serde_json::Value>(reply.body()).is_ok();
        seen.push((reply.status(), reply.end));
        if done {
            return seen;
        }
    }
    panic!("never told: {seen:?}");
}

#[tokio::test]
async fn chaos_is_repeatable_and_keeps_the_promise() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let sandbox = Sandbox::builder().chaos(42, 700).start().await.unwrap();
        let mut run = Vec::new();
        for n in 0..60 {
            let key = format!("key-{n}");
            run.extend(insist(&sandbox, &key).await);
            until(&sandbox, |s| s.executions_of(&key) > 0).await;
            assert_eq!(sandbox.executions_of(&key), 1, "{key}");
        }
        let faults = sandbox.requests().into_iter().map(|seen| seen.fault().cloned());
        runs.push((run, faults.collect::<Vec<_>>()));
    }
    assert!(runs[0] == runs[1]);
    assert!(runs[0].1.iter().flatten().count() > 60);
}
