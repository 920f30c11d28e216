//! The hook before each attempt.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use oncekey::sandbox::{Fault, Sandbox};
use oncekey::{Authorize, Effect, ErrorKind, Parts};

use crate::*;

type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// A token that is renewed when the server turned the old one down.
struct Tokens {
    asked: Arc<AtomicUsize>,
}

impl Authorize for Tokens {
    async fn authorize(&self, parts: &mut Parts<'_>) -> Outcome {
        tokio::task::yield_now().await;
        self.asked.fetch_add(1, Ordering::Relaxed);
        let renewed = parts.previous_status().is_some_and(|status| status == 401);
        parts.set_header("authorization", if renewed { "Bearer new" } else { "Bearer old" })?;
        Ok(())
    }
}

#[tokio::test]
async fn fresh_credentials_go_out_under_the_same_key() {
    let sandbox = Sandbox::builder().require_authorization("Bearer old").start().await.unwrap();
    sandbox.fail_next([Fault::answer_lost()]);
    let asked = Arc::new(AtomicUsize::new(0));
    let client = builder().authorize(Tokens { asked: Arc::clone(&asked) }).build().unwrap();
    let call = tokio::spawn(client.post(sandbox.url("/pay")).json(&payment()).send());
    sandbox.until(|sandbox| sandbox.executions() == 1).await;
    sandbox.set_authorization("Bearer new");
    let response = call.await.unwrap().unwrap();
    assert!(response.is_replay());
    let seen: Vec<_> = sandbox
        .requests()
        .iter()
        .map(|r| (r.key().unwrap().to_owned(), r.headers()["authorization"].clone()))
        .collect();
    assert!(seen.iter().all(|(key, _)| key == response.key().unwrap().as_str()));
    assert_eq!(seen.last().unwrap().1, "Bearer new");
    assert_eq!(asked.load(Ordering::Relaxed), seen.len());
}

#[tokio::test]
async fn a_401_is_tried_once_more_and_its_effect_is_folded() {
    let hook = || Tokens { asked: Arc::default() };
    let client = builder().authorize(hook()).build().unwrap();
    let here = sandbox([Fault::status(401).times(9)]).await;
    fails(pay(&client, &here).await, ErrorKind::Refused, Effect::NotApplied);
    assert_eq!(here.requests().len(), 2);
    let here = sandbox([Fault::answer_lost(), Fault::status(401).times(9)]).await;
    fails(pay(&client, &here).await, ErrorKind::Refused, Effect::Unknown);
    assert_eq!(here.requests().len(), 3);
}

#[tokio::test]
async fn a_hook_that_fails_sends_nothing() {
    let failing = |_: &mut Parts<'_>| -> Outcome { Err("the vault is sealed".into()) };
    let here = sandbox([]).await;
    let error = fails(
        pay(&builder().authorize(failing).build().unwrap(), &here).await,
        ErrorKind::Authorize,
        Effect::NotApplied,
    );
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "the vault is sealed");
    assert!(error.attempts().is_empty() && here.requests().is_empty());

    // After an attempt in doubt the doubt stays.
    let count = AtomicUsize::new(0);
    let second = move |_: &mut Parts<'_>| -> Outcome {
        if count.fetch_add(1, Ordering::Relaxed) == 0 { Ok(()) } else { Err("sealed".into()) }
    };
    let here = sandbox([Fault::answer_lost()]).await;
    fails(pay(&builder().authorize(second).build().unwrap(), &here).await, ErrorKind::Authorize, Effect::Unknown);
}

struct Never;

impl Authorize for Never {
    async fn authorize(&self, _: &mut Parts<'_>) -> Outcome {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_hook_has_the_attempts_time_and_no_more() {
    let here = sandbox([]).await;
    let client = builder().attempt_timeout(ms(200)).authorize(Never).build().unwrap();
    let error = fails(pay(&client, &here).await, ErrorKind::Authorize, Effect::NotApplied);
    assert!(error.to_string().contains("within the attempt's timeout"), "{error}");
    assert!(here.requests().is_empty());
}

#[tokio::test]
#[allow(clippy::disallowed_methods)] // what takes time
async fn a_hook_that_blocks_past_the_attempts_time_sends_nothing() {
    let here = sandbox([]).await;
    let slow = |_: &mut Parts<'_>| -> Outcome {
        std::thread::sleep(ms(150));
        Ok(())
    };
    let client = builder().attempt_timeout(ms(100)).authorize(slow).build().unwrap();
    let error = fails(pay(&client, &here).await, ErrorKind::Authorize, Effect::NotApplied);
    assert!(error.to_string().contains("within the attempt's timeout"), "{error}");
    assert!(error.attempts().is_empty() && here.requests().is_empty());
}

/// Takes this long each time.
struct Slow(Duration);

impl Authorize for Slow {
    #[allow(clippy::disallowed_methods)] // what takes time
    async fn authorize(&self, _: &mut Parts<'_>) -> Outcome {
        tokio::time::sleep(self.0).await;
        Ok(())
    }
}

#[tokio::test]
async fn the_hooks_time_counts_once() {
    // 1,000 ms in all: 300 for the hook leave 700 for an answer that takes 400.
    let here = Sandbox::builder().work(ms(400)).start().await.unwrap();
    let client = builder().authorize(Slow(ms(300))).attempt_timeout(ms(1000)).build().unwrap();
    let sent = client.post(here.url("/pay")).json(&payment()).deadline(ms(1000)).send().await.unwrap();
    assert_eq!(sent.attempts().len(), 1);
    // Where the deadline cut the hook short, it is the deadline that ended the run.
    let here = sandbox([Fault::answer_lost()]).await;
    let client = builder().authorize(Slow(ms(300))).attempt_timeout(ms(1000)).build().unwrap();
    let sent = client.post(here.url("/pay")).json(&payment()).deadline(ms(500)).send().await;
    let _ = fails(sent, ErrorKind::Exhausted, Effect::Unknown);
}

#[tokio::test]
async fn a_hook_sets_headers_and_nothing_else() {
    let refused = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&refused);
    let hook = move |parts: &mut Parts<'_>| -> Outcome {
        for name in ["Idempotency-Key", "content-type", "Content-Length", "host", "accept", "transfer-encoding", "a b"]
        {
            seen.lock().unwrap().push(parts.set_header(name, "x").is_err());
        }
        seen.lock().unwrap().push(parts.set_header("x-signature", "a\nb").is_err());
        let signed = format!("{} {} {}", parts.method(), parts.url().path(), parts.body().len());
        parts.set_header("x-signature", signed)?;
        assert!(parts.headers().contains_key("idempotency-key") && parts.attempt() == 1);
        assert!(!format!("{parts:?}").contains("4999"));
        Ok(())
    };
    let sandbox = sandbox([]).await;
    let _ = pay(&builder().authorize(hook).build().unwrap(), &sandbox).await.unwrap();
    assert_eq!(*refused.lock().unwrap(), [true; 8]);
    assert_eq!(
        sandbox.requests()[0].headers()["x-signature"],
        format!("POST /v1/payments {}", payment().to_string().len())
    );
    assert_eq!(sandbox.requests()[0].headers()["content-type"], "application/json");
}
