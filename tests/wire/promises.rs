//! One operation, one key, the same bytes, to a final answer.

use std::collections::HashSet;

use oncekey::profile::{Judgement, Profile};
use oncekey::sandbox::{Fault, Sandbox};
use oncekey::{Attempt, Effect, ErrorKind, IdempotencyKey, Poll, Replay, Retry};

use crate::*;

/// Everything that can go wrong, one after another, and the answer in the end.
fn troubles() -> Vec<Fault> {
    vec![
        Fault::closed_without_executing(),
        Fault::answer_lost(),
        Fault::status(503),
        Fault::in_progress().times(2),
        Fault::body_cut(7),
        Fault::html(200),
        Fault::status(429).retry_after("0"),
        Fault::in_progress(),
    ]
}

#[tokio::test]
async fn one_key_per_operation() {
    let sandbox = sandbox(troubles()).await;
    let client = builder().retry(Retry::default().max_attempts(9).base_delay(ms(1)).max_delay(ms(2))).build().unwrap();
    let response = pay(&client, &sandbox).await.unwrap();
    assert_eq!((response.status().as_u16(), response.is_replay()), (201, true));
    let requests = sandbox.requests();
    let keys: HashSet<_> = requests.iter().map(|request| request.keys().to_vec()).collect();
    assert_eq!(keys, HashSet::from([vec![response.key().unwrap().as_str().to_owned()]]));
    assert_eq!((sandbox.executions(), requests.len(), response.attempts().len()), (1, 10, 10));
    // Another operation has another key.
    let other = pay(&client, &sandbox).await.unwrap();
    assert_ne!(other.key(), response.key());
    assert_eq!(sandbox.executions(), 2);
}

#[tokio::test]
async fn same_bytes_on_every_attempt() {
    let sandbox = sandbox(troubles()).await;
    let client = builder().retry(Retry::default().max_attempts(9).base_delay(ms(1)).max_delay(ms(2))).build().unwrap();
    let body = format!("{{\"amount\":4999,\"note\":\"{}\"}}", "ñ".repeat(100_000));
    let url = sandbox.url("/v1/payments?expand=all");
    let sent = client.post(url).header("content-type", "application/json").header("x-a", "1").header("x-a", "2");
    let _ = sent.body(body.clone()).send().await.unwrap();
    for request in sandbox.requests() {
        assert_eq!(request.path(), "/v1/payments?expand=all");
        // A request that the server did not read to its end is the one without a whole body.
        assert!(!request.is_complete() || request.body() == body.as_bytes());
        assert_eq!(request.headers(), sandbox.requests()[0].headers());
    }
}

#[tokio::test]
async fn three_hundred_at_once_are_carried_out_once_each() {
    let sandbox = Sandbox::builder().chaos(7, 300).start().await.unwrap();
    let client = builder()
        .retry(Retry::default().max_attempts(40).base_delay(ms(2)).max_delay(ms(20)))
        .attempt_timeout(ms(400))
        .build()
        .unwrap();
    let mut tasks = Vec::new();
    for _ in 0..300 {
        let request = client.post(sandbox.url("/v1/payments")).json(&payment());
        tasks.push(tokio::spawn(request.send()));
    }
    let mut keys = HashSet::new();
    for task in tasks {
        match task.await.unwrap() {
            Ok(response) => {
                let key = response.key().unwrap().as_str().to_owned();
                assert_eq!(sandbox.executions_of(&key), 1, "{}", Attempt::table(response.attempts()));
                keys.insert(key);
            }
            Err(error) => {
                let done = sandbox.executions_of(error.key().unwrap().as_str());
                match error.effect() {
                    Effect::NotApplied => assert_eq!(done, 0, "{error}"),
                    Effect::Applied => assert_eq!(done, 1, "{error}"),
                    Effect::Unknown => assert!(done <= 1, "{error}"),
                }
                keys.insert(error.key().unwrap().as_str().to_owned());
            }
        }
    }
    assert_eq!(keys.len(), 300);
}

#[tokio::test]
async fn the_last_error_is_not_the_effect() {
    // Lost, then refused: the refusal says nothing about the attempt that was lost.
    for refusal in [400, 401, 403, 404, 422] {
        let sandbox = sandbox([Fault::answer_lost(), Fault::status(refusal)]).await;
        let error = fails(pay(&client(), &sandbox).await, ErrorKind::Refused, Effect::Unknown);
        assert_eq!(error.response().unwrap().status().as_u16(), refusal);
        assert_eq!(sandbox.executions_of(error.key().unwrap()), 1);
    }
    let sandbox = sandbox([Fault::status(400)]).await;
    fails(pay(&client(), &sandbox).await, ErrorKind::Refused, Effect::NotApplied);
}

#[tokio::test]
async fn the_last_complete_head_is_kept_even_if_a_later_attempt_has_none() {
    let faults = [Fault::status(503).json(r#"{"code":"MAINTENANCE"}"#), Fault::answer_lost().times(3)];
    let sandbox = sandbox(faults).await;
    let error = fails(pay(&client(), &sandbox).await, ErrorKind::Exhausted, Effect::Unknown);
    let last = error.response().unwrap();
    assert_eq!((last.status().as_u16(), last.text().as_str()), (503, r#"{"code":"MAINTENANCE"}"#));
    assert!(std::error::Error::source(&error).is_some(), "the last attempt is the source");
    assert!(error.resume_at().is_some());
}

#[tokio::test]
async fn neither_redirects_nor_reqwests_retries_happen_even_if_asked_for() {
    use reqwest::retry;
    let meddling = || {
        let resend = retry::for_host("127.0.0.1").no_budget().max_retries_per_request(3).classify_fn(|answer| {
            if answer.status().is_some_and(|status| status == 503) { answer.retryable() } else { answer.success() }
        });
        builder()
            .http(|http| http.redirect(reqwest::redirect::Policy::limited(5)).retry(resend))
            .retry(Retry::default().max_attempts(1))
            .build()
            .unwrap()
    };
    let sandbox = sandbox([Fault::redirect(307, "/v1/elsewhere"), Fault::status(503)]).await;
    let error = fails(pay(&meddling(), &sandbox).await, ErrorKind::Unsettled, Effect::Unknown);
    assert_eq!(error.response().unwrap().status().as_u16(), 307);
    assert_eq!(sandbox.requests().len(), 1);
    fails(pay(&meddling(), &sandbox).await, ErrorKind::Exhausted, Effect::Unknown);
    assert_eq!(sandbox.requests().len(), 2, "what the server saw is what the log says");
}

#[tokio::test]
async fn a_202_is_polled_only_with_evidence() {
    let taken = || Fault::status(202).json(r#"{"id":"pay_1","status":"pending"}"#);
    let sandbox = sandbox([taken()]).await;
    let error = fails(pay(&client(), &sandbox).await, ErrorKind::Pending, Effect::Unknown);
    assert_eq!(error.response().unwrap().text(), r#"{"id":"pay_1","status":"pending"}"#);
    assert_eq!(sandbox.requests().len(), 1);

    let sandbox = crate::sandbox([Fault::in_progress(), taken(), taken()]).await;
    let response = pay(&client(), &sandbox).await.unwrap();
    assert_eq!((response.status().as_u16(), sandbox.requests().len()), (201, 4));
}

#[tokio::test]
async fn polls_do_not_count_as_failures() {
    let sandbox = sandbox([Fault::answer_lost(), Fault::in_progress().times(9), Fault::status(500).times(2)]).await;
    let client = builder().retry(Retry::default().max_attempts(4).base_delay(ms(1)).max_delay(ms(1)));
    let client = client.poll(Poll::default().interval(ms(5)).max_interval(ms(5))).build().unwrap();
    let response = pay(&client, &sandbox).await.unwrap();
    assert_eq!((response.attempts().len(), sandbox.executions()), (13, 1));
    let kinds: Vec<&str> = response.attempts().iter().map(|attempt| attempt.kind().as_str()).collect();
    assert_eq!(kinds[..4], ["first", "retry", "poll", "poll"]);
}

#[tokio::test]
async fn a_judge_reads_what_a_2xx_means() {
    let judged = |judgement| {
        let judge = move |answer: &oncekey::profile::Answer<'_>| {
            if answer.body().starts_with(b"{\"declined") { judgement } else { Judgement::Final }
        };
        builder().judge(judge).build().unwrap()
    };
    let declined = || sandbox([Fault::status(200).json(r#"{"declined":true}"#)]);
    fails(pay(&judged(Judgement::Refused), &declined().await).await, ErrorKind::Refused, Effect::NotApplied);
    fails(pay(&judged(Judgement::Unclear), &declined().await).await, ErrorKind::Unsettled, Effect::Unknown);
    fails(pay(&judged(Judgement::Pending), &declined().await).await, ErrorKind::Pending, Effect::Unknown);
    assert_eq!(pay(&judged(Judgement::Final), &declined().await).await.unwrap().status(), 200);
    let cut = sandbox([Fault::body_cut(5)]).await;
    assert_eq!(pay(&judged(Judgement::Refused), &cut).await.unwrap().attempts().len(), 2);
}

#[tokio::test]
async fn a_stored_error_is_polled_only_where_errors_are_never_stored() {
    let faults = || sandbox([Fault::answer_lost(), Fault::replayed(500)]);
    let here = faults().await;
    fails(pay(&client(), &here).await, ErrorKind::Unsettled, Effect::Unknown);
    assert_eq!(here.requests().len(), 2);
    let verifika = builder().profile(Profile::verifika()).build().unwrap();
    let response = pay(&verifika, &faults().await).await.unwrap();
    assert_eq!((response.attempts().len(), response.replay()), (3, Replay::Yes));
}

#[tokio::test]
async fn a_replayed_refusal_settles_the_doubt() {
    let sandbox = Sandbox::builder().store_errors(true).start().await.unwrap();
    let declined = Fault::status(402).json(r#"{"code":"DECLINED"}"#).from_handler_without_executing();
    sandbox.fail_next([declined.with_stall_before_head()]);
    let client = builder().attempt_timeout(ms(300)).build().unwrap();
    let error = fails(pay(&client, &sandbox).await, ErrorKind::Rejected, Effect::NotApplied);
    assert!(error.response().unwrap().is_replay());
    assert_eq!((sandbox.executions(), error.attempts().len()), (0, 2));
}

#[tokio::test]
async fn contradicting_answers_are_unknown() {
    let faults = [Fault::body_cut(3), Fault::replayed(422)];
    let sandbox = sandbox(faults).await;
    fails(pay(&client(), &sandbox).await, ErrorKind::Contradicted, Effect::Unknown);
}

#[tokio::test]
async fn a_callers_key_goes_out_as_it_is_and_starts_in_doubt() {
    let sandbox = sandbox([Fault::status(400), Fault::none(), Fault::status(400), Fault::status(400)]).await;
    let client = client();
    let pay = |key: IdempotencyKey| client.post(sandbox.url("/pay")).json(&payment()).idempotency_key(key).send();
    let key = IdempotencyKey::parse("5d9b7a52-8a3c-4a43-9a57-2d6f7c1b0e11").unwrap();
    fails(pay(key.clone()).await, ErrorKind::Refused, Effect::Unknown);
    let response = pay(key.clone()).await.unwrap();
    assert_eq!(response.key(), Some(&key));
    assert!(sandbox.requests().iter().all(|request| request.keys() == [key.as_str()]));
    // A key drawn here and never used starts clean, once.
    let random = IdempotencyKey::random();
    let error = fails(pay(random.clone()).await, ErrorKind::Refused, Effect::NotApplied);
    assert_eq!(error.key(), Some(&random));
    fails(pay(random).await, ErrorKind::Refused, Effect::Unknown);
    // One taken from an error or a response never does.
    assert!(pay(response.key().unwrap().clone()).await.unwrap().is_replay());
}

#[tokio::test]
#[allow(clippy::disallowed_methods)] // a key that grows old
async fn a_key_taken_from_an_error_keeps_its_age() {
    let sandbox = sandbox([Fault::answer_lost()]).await;
    let client = builder().key_lifetime(ms(700)).attempt_timeout(ms(500));
    let client = client.retry(Retry::default().max_attempts(1)).build().unwrap();
    let error = fails(pay(&client, &sandbox).await, ErrorKind::Exhausted, Effect::Unknown);
    let old = error.key().unwrap().clone();
    // 700 ms, less the attempt and a tenth of it, are over after 130 ms.
    tokio::time::sleep(ms(200)).await;
    let again = client.post(sandbox.url("/v1/payments")).json(&payment()).idempotency_key(old).send().await;
    fails(again, ErrorKind::KeyExpired, Effect::Unknown);
    assert_eq!(sandbox.requests().len(), 1);
}

#[tokio::test]
#[allow(clippy::disallowed_methods)] // a key that grows old
async fn the_clones_of_a_key_share_its_age() {
    for key in [IdempotencyKey::random(), IdempotencyKey::parse(IdempotencyKey::random().as_str()).unwrap()] {
        let sandbox = sandbox([Fault::answer_lost(), Fault::answer_lost()]).await;
        let client = builder().key_lifetime(ms(700)).attempt_timeout(ms(500));
        let client = client.retry(Retry::default().max_attempts(1)).build().unwrap();
        let pay = || client.post(sandbox.url("/pay")).json(&payment()).idempotency_key(&key).send();
        let _ = fails(pay().await, ErrorKind::Exhausted, Effect::Unknown);
        tokio::time::sleep(ms(200)).await;
        let _ = fails(pay().await, ErrorKind::KeyExpired, Effect::Unknown);
        assert_eq!(sandbox.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_key_that_two_share_is_certain_for_neither() {
    // The first one's refusal comes when the second, under a clone of its key, is carried out.
    let sandbox = sandbox([Fault::status(400).with_stall_before_head().lasting(ms(60_000))]).await;
    let key = IdempotencyKey::random();
    let pay = || client().post(sandbox.url("/pay")).json(&payment()).idempotency_key(&key).send();
    let first = tokio::spawn(pay());
    sandbox.until(|sandbox| sandbox.requests().len() == 1).await;
    assert_eq!(pay().await.unwrap().status(), 201);
    sandbox.advance(ms(120_000));
    let _ = fails(first.await.unwrap(), ErrorKind::Refused, Effect::Unknown);
}

#[tokio::test]
async fn a_dropped_call_stops_there() {
    let sandbox = sandbox([Fault::stall_after_executing()]).await;
    let key = IdempotencyKey::random();
    let call = client().post(sandbox.url("/pay")).json(&payment()).idempotency_key(&key).send();
    let call = tokio::spawn(call);
    sandbox.until(|sandbox| sandbox.executions() == 1).await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    // The same key fetches the stored answer.
    let response = client().post(sandbox.url("/pay")).json(&payment()).idempotency_key(key).send().await.unwrap();
    assert!(response.is_replay());
    assert_eq!((sandbox.executions(), sandbox.requests().len()), (1, 2));
}

#[test]
fn clients_and_calls_go_between_threads() {
    fn is_send_sync<T: Send + Sync>(_: &T) {}
    fn is_send<T: Send>(_: &T) {}
    let client = client();
    is_send_sync(&client.clone());
    is_send(&client.get("http://127.0.0.1:1/").send());
}
