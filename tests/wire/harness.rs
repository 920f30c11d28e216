//! What the author of a test harness writes. `docs/testing.md` shows the parts
//! between the marks as they stand here.

// page
use std::time::Duration;

use oncekey::sandbox::{Fault, Sandbox};
use oncekey::{Client, Error, Poll, Profile, Response, Retry, testing};
use serde_json::json;

/// The settings of a test: everything that waits for real is short.
fn test_client() -> Client {
    let ms = Duration::from_millis;
    Client::builder()
        .profile(Profile::verifika())
        .http(|http| http.no_proxy())
        .attempt_timeout(ms(1000))
        .deadline(ms(20_000))
        .retry(Retry::default().max_attempts(8).base_delay(ms(10)).max_delay(ms(40)))
        .poll(Poll::default().interval(ms(20)).max_interval(ms(20)))
        .build()
        .expect("these settings are valid")
}

/// The code under test: it gets its client and its address from outside.
async fn pay(client: &Client, url: String) -> Result<Response, Error> {
    client.post(url).json(&json!({"amount": 4999, "currency": "usd"})).send().await
}

#[tokio::test]
async fn a_payment_whose_answer_is_lost_is_made_once() {
    let sandbox = Sandbox::start().await.unwrap();
    sandbox.fail_next([
        Fault::answer_lost(),        // it is paid, and nobody is told
        Fault::status(503).times(2), // a gateway turns two away
        Fault::in_progress(),        // "still running"
    ]);
    let sent = pay(&test_client(), sandbox.url("/v1/incomes")).await;
    testing::assert_once(&sandbox, &sent);
    assert_eq!(sandbox.faults_left(), 0, "the test met all that it was meant to");
}
// end

// page
#[tokio::test]
async fn whatever_goes_wrong_the_caller_is_told_the_truth() {
    for seed in 0..20 {
        let sandbox = Sandbox::builder().chaos(seed, 400).start().await.unwrap();
        let sent = pay(&test_client(), sandbox.url("/v1/incomes")).await;
        testing::assert_truthful(&sandbox, &sent);
        testing::assert_one_key(&sandbox, &sent);
        assert!(sandbox.executions() <= 1, "seed {seed}\n{}", testing::report(&sandbox, &sent));
    }
}
// end

// page
#[tokio::test]
async fn a_declined_card_is_not_charged() {
    let sandbox = Sandbox::start().await.unwrap();
    let declined = Fault::status(402).json(r#"{"code":"CARD_DECLINED"}"#);
    sandbox.fail_next(declined.from_handler_without_executing());
    let sent = pay(&test_client(), sandbox.url("/v1/incomes")).await;
    assert!(sent.is_err());
    testing::assert_executions(&sandbox, 0, &sent);
    testing::assert_truthful(&sandbox, &sent);
}
// end

// page
#[tokio::test]
async fn a_provider_that_takes_25_seconds_takes_none_here() {
    let seconds = Duration::from_secs;
    let sandbox = Sandbox::builder().work(seconds(25)).start().await.unwrap();
    let url = sandbox.url("/v1/incomes");
    let paying = tokio::spawn(async move { pay(&test_client(), url).await });
    sandbox.until(|sandbox| sandbox.at_work() == 1).await; // the handler has begun
    sandbox.advance(seconds(25)); // and is done
    testing::assert_once(&sandbox, &paying.await.unwrap());
}
// end

#[cfg(feature = "blocking")]
// page
#[test]
fn without_async_it_is_made_once_too() {
    let runtime = tokio::runtime::Runtime::new().unwrap(); // its threads serve while this one waits
    let sandbox = runtime.block_on(Sandbox::start()).unwrap();
    sandbox.fail_next(Fault::answer_lost());
    let client = oncekey::blocking::Client::builder()
        .http(|http| http.no_proxy())
        .retry(Retry::default().base_delay(Duration::from_millis(10)))
        .build()
        .unwrap();
    let sent = client.post(sandbox.url("/v1/incomes")).json(&json!({"amount": 4999})).send();
    testing::assert_once(&sandbox, &sent);
}
// end
