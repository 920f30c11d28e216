//! Time and size: what ends a call, and what the error then says.

use std::time::{Instant, SystemTime};

use oncekey::sandbox::Fault;
use oncekey::{Attempt, Effect, ErrorKind, Failure, Poll, Retry, WaitReason};

use crate::*;

#[tokio::test]
async fn a_retry_after_is_waited_for() {
    let sandbox = sandbox([Fault::status(503).retry_after("1")]).await;
    let response = pay(&client(), &sandbox).await.unwrap();
    let first = &response.attempts()[0];
    assert!(first.wait() >= ms(1000), "{:?}", first.wait());
    assert_eq!(first.wait_reason(), Some(WaitReason::RetryAfter));
    let seen = sandbox.requests();
    assert!(seen[1].at().duration_since(seen[0].at()).unwrap() >= ms(1000));
}

#[tokio::test]
#[allow(clippy::disallowed_methods)] // the time that a caller sees pass
async fn a_wait_that_does_not_fit_ends_the_call_at_once() {
    for (value, kind) in [("3600", ErrorKind::Exhausted), ("99999999999999999999", ErrorKind::KeyExpired)] {
        let sandbox = sandbox([Fault::status(429).retry_after(value)]).await;
        let began = Instant::now();
        let error = fails(pay(&client(), &sandbox).await, kind, Effect::Unknown);
        assert!(began.elapsed() < ms(1500));
        assert!(error.resume_at().unwrap() > SystemTime::now() + ms(3_590_000));
        assert_eq!((sandbox.requests().len(), error.response().unwrap().status().as_u16()), (1, 429));
    }
}

#[tokio::test]
#[allow(clippy::disallowed_methods)] // the time that a caller sees pass
async fn the_deadline_holds_over_all_attempts() {
    let sandbox = sandbox([Fault::stall_after_executing().times(9)]).await;
    let client = builder().attempt_timeout(ms(400)).retry(Retry::default().max_attempts(9).base_delay(ms(0)));
    let client = client.build().unwrap();
    let began = Instant::now();
    let call = client.post(sandbox.url("/pay")).json(&payment()).deadline(ms(1000)).send().await;
    let error = fails(call, ErrorKind::Exhausted, Effect::Unknown);
    assert!(began.elapsed() >= ms(900) && began.elapsed() < ms(1600), "{:?}", began.elapsed());
    assert!(error.attempts().iter().all(|attempt| attempt.failure() == Some(Failure::Timeout)));
    assert_eq!(sandbox.executions(), 1);
}

#[tokio::test]
async fn the_last_answer_keeps_its_headers_through_the_waits() {
    let told =
        Fault::status(503).header("x-a", "1").header("x-empty", "").header("x-url", "http://a:80/").header("x-a", "2");
    let sandbox = sandbox([told, Fault::closed_without_executing().times(3)]).await;
    let error = fails(pay(&client(), &sandbox).await, ErrorKind::Exhausted, Effect::Unknown);
    let headers = error.response().unwrap().headers();
    let all = |name: &str| headers.get_all(name).iter().map(|value| value.to_str().unwrap()).collect::<Vec<_>>();
    assert_eq!((all("x-a"), all("x-empty"), all("x-url")), (vec!["1", "2"], vec![""], vec!["http://a:80/"]));
    assert_eq!(sandbox.requests().len(), 4);
}

#[tokio::test]
async fn polling_ends_with_its_own_limit() {
    let sandbox = sandbox([Fault::in_progress().times(500)]).await;
    let poll = Poll::default().interval(ms(20)).max_interval(ms(20)).limit(ms(300));
    let error =
        fails(pay(&builder().poll(poll).build().unwrap(), &sandbox).await, ErrorKind::Exhausted, Effect::Unknown);
    assert!(error.to_string().contains("still in progress"), "{error}");
    assert!(error.resume_at().is_some());
    assert!((4..40).contains(&sandbox.requests().len()));
}

#[tokio::test]
async fn there_is_no_later_try_where_nothing_may_be_sent() {
    let sandbox = sandbox([Fault::status(503)]).await;
    let sent = client().post(sandbox.url("/pay")).without_key().send().await;
    assert_eq!(fails(sent, ErrorKind::Unsettled, Effect::Unknown).resume_at(), None);
}

#[tokio::test]
#[allow(clippy::disallowed_methods)] // to fill a queue
async fn a_connection_that_hangs_is_proof_that_nothing_was_sent() {
    // Nobody accepts, and the queue is full.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    while let Ok(Ok(stream)) = tokio::time::timeout(ms(100), tokio::net::TcpStream::connect(address)).await {
        waiting.push(stream);
    }
    let client = builder().connect_timeout(ms(100)).retry(Retry::default().max_attempts(2).base_delay(ms(0)));
    let sent = client.build().unwrap().post(format!("http://{address}/pay")).send().await;
    let error = fails(sent, ErrorKind::Exhausted, Effect::NotApplied);
    assert_eq!(error.attempts()[0].failure(), Some(Failure::ConnectTimeout));
}

#[tokio::test]
async fn an_answer_over_the_limit_is_read_no_further() {
    let small = || builder().max_response_bytes(1000).build().unwrap();
    let here = sandbox([Fault::oversized(100_000)]).await;
    let error = fails(pay(&small(), &here).await, ErrorKind::TooLarge, Effect::Applied);
    assert_eq!((here.requests().len(), error.response().unwrap().bytes().len()), (1, 1000));
    let here = sandbox([Fault::oversized(1000)]).await;
    assert_eq!(pay(&small(), &here).await.unwrap().bytes().len(), 1000);
    let here = sandbox([Fault::status(500).body("text/plain", vec![b'x'; 2000])]).await;
    fails(pay(&small(), &here).await, ErrorKind::TooLarge, Effect::Unknown);
}

#[tokio::test]
async fn each_failure_has_its_class() {
    let classes = [
        (Fault::answer_lost(), Failure::Broken),
        (Fault::answer_lost().with_reset(), Failure::Broken),
        (Fault::garbled_head(), Failure::Broken),
        (Fault::head_cut(9), Failure::Broken),
        (Fault::body_cut(4), Failure::CutBody),
        (Fault::body_cut(4).chunked(), Failure::CutBody),
        (Fault::stall_in_head(9), Failure::Timeout),
        (Fault::stall_in_body(4), Failure::StalledBody),
    ];
    for (fault, class) in classes {
        let name = format!("{fault:?}");
        let sandbox = sandbox([fault]).await;
        let client = builder().attempt_timeout(ms(300)).build().unwrap();
        let response = pay(&client, &sandbox).await.unwrap();
        let first = &response.attempts()[0];
        assert_eq!(first.failure(), Some(class), "{name}");
        assert_eq!(first.status().is_some(), matches!(class, Failure::CutBody | Failure::StalledBody), "{name}");
        assert_eq!((sandbox.executions(), response.attempts().len()), (1, 2), "{name}");
    }
}

#[tokio::test]
async fn a_short_body_without_an_error_is_noticed() {
    for fault in [Fault::unframed_cut(7), Fault::truncated_json(7), Fault::invalid_json().unframed()] {
        let name = format!("{fault:?}");
        let sandbox = sandbox([fault]).await;
        let response = pay(&client(), &sandbox).await.unwrap();
        assert_eq!((response.attempts().len(), sandbox.executions()), (2, 1), "{name}");
        assert_eq!(response.json::<Value>().unwrap()["status"], "captured");
    }
}

#[tokio::test]
async fn a_byte_order_mark_is_no_part_of_the_json() {
    let sandbox = sandbox([Fault::status(201).executing().json("\u{feff}{\"id\":\"pay_1\"}")]).await;
    assert_eq!(pay(&client(), &sandbox).await.unwrap().json::<Value>().unwrap()["id"], "pay_1");
}

#[tokio::test]
async fn a_timeout_of_reqwests_own_leaves_the_doubt() {
    let sandbox = sandbox([Fault::stall_after_executing()]).await;
    let client = builder().http(|http| http.timeout(ms(200))).retry(Retry::default().max_attempts(1)).build().unwrap();
    let error = fails(pay(&client, &sandbox).await, ErrorKind::Exhausted, Effect::Unknown);
    assert_eq!((error.attempts()[0].failure(), sandbox.executions()), (Some(Failure::Timeout), 1));
}

#[tokio::test]
async fn a_slow_answer_is_no_failure() {
    let sandbox = sandbox([Fault::drip(16, ms(5))]).await;
    assert_eq!(pay(&client(), &sandbox).await.unwrap().attempts().len(), 1);
}

#[tokio::test]
async fn the_seed_makes_delays_repeatable() {
    let delay = async |seed: u64| {
        let sandbox = sandbox([Fault::status(503)]).await;
        let retry = Retry::default().max_attempts(1).base_delay(ms(20_000)).max_delay(ms(20_000));
        let error = pay(&builder().retry(retry).entropy_seed(seed).build().unwrap(), &sandbox).await.unwrap_err();
        let last = &error.attempts()[0];
        error.resume_at().unwrap().duration_since(last.started_at() + last.duration()).unwrap()
    };
    let (one, same, other) = (delay(1).await, delay(1).await, delay(2).await);
    assert!(one.abs_diff(same) < ms(2), "{one:?} {same:?}");
    assert!(one.abs_diff(other) > ms(2), "{one:?} {other:?}");
}

#[tokio::test]
async fn the_log_tells_each_attempt() {
    let named = Fault::status(503).header("request-id", "req_1").header("date", "Sun, 06 Nov 1994 08:49:37 GMT");
    let sandbox = sandbox([named, Fault::answer_lost(), Fault::in_progress(), Fault::body_cut(4)]).await;
    let before = SystemTime::UNIX_EPOCH;
    let response = pay(&client(), &sandbox).await.unwrap();
    let log = response.attempts();
    assert_eq!(log.iter().map(Attempt::number).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert_eq!(log[0].request_id(), Some("req_1"));
    assert_eq!(log[0].date().unwrap().duration_since(before).unwrap().as_secs(), 784_111_777);
    assert_eq!((log[0].status().unwrap().as_u16(), log[0].wait_reason()), (503, Some(WaitReason::Backoff)));
    assert_eq!((log[1].status(), log[1].failure()), (None, Some(Failure::Broken)));
    assert_eq!(log[2].wait_reason(), Some(WaitReason::Poll));
    assert!(log[2].wait() >= ms(18) && log[2].started_at() > before);
    assert_eq!((log[4].wait(), log[4].wait_reason()), (ms(0), None));
    assert!(log.iter().all(|attempt| attempt.verdict().is_some() && !attempt.duration().is_zero()));

    let table = Attempt::table(log).to_string();
    assert_eq!(table.lines().count(), 6);
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
}
