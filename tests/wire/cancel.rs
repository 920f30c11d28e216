//! A call that is dropped, at every point where it waits: it stops there, and
//! the same key takes it to its end.

use std::collections::HashMap;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use oncekey::sandbox::{Fault, Sandbox};
use oncekey::{Authorize, IdempotencyKey, Parts, Response, Retry};

use crate::*;

/// Polls its future so many times, and drops it if that was not enough.
struct DroppedAfter<F> {
    inner: Option<Pin<Box<F>>>,
    polls: usize,
}

impl<F: Future> DroppedAfter<F> {
    fn new(inner: F, polls: usize) -> Self {
        Self { inner: Some(Box::pin(inner)), polls }
    }
}

impl<F: Future> Future for DroppedAfter<F> {
    /// `None` if it was dropped.
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.polls == 0 {
            self.inner = None;
        }
        let Some(inner) = &mut self.inner else { return Poll::Ready(None) };
        let polled = inner.as_mut().poll(context);
        self.polls -= 1;
        match polled {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if self.polls == 0 => {
                self.inner = None;
                Poll::Ready(None)
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Counts the attempts under each key as they are about to be sent, and waits now and then.
#[derive(Clone, Default)]
struct Counting {
    attempts: Arc<Mutex<HashMap<String, usize>>>,
    waits: usize,
}

impl Counting {
    fn attempts_of(&self, key: &IdempotencyKey) -> usize {
        self.attempts.lock().unwrap().get(key.as_str()).copied().unwrap_or_default()
    }
}

impl Authorize for Counting {
    async fn authorize(&self, parts: &mut Parts<'_>) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        for _ in 0..self.waits {
            tokio::task::yield_now().await;
        }
        let key = parts.headers()["idempotency-key"].to_str()?.to_owned();
        *self.attempts.lock().unwrap().entry(key).or_default() += 1;
        Ok(())
    }
}

fn quick() -> ClientBuilder {
    builder().retry(Retry::default().max_attempts(9).base_delay(ms(1)).max_delay(ms(2))).attempt_timeout(ms(5000))
}

/// Longer than any wait of these clients.
const SETTLED: Duration = Duration::from_millis(100);

fn body(size: usize) -> String {
    format!("{{\"amount\":4999,\"note\":\"{}\"}}", "n".repeat(size))
}

fn send(client: &Client, sandbox: &Sandbox, key: &IdempotencyKey, size: usize) -> impl Future<Output = Sent> + use<> {
    let request = client.post(sandbox.url("/v1/payments")).header("content-type", "application/json");
    request.idempotency_key(key).body(body(size)).send()
}

type Sent = Result<Response, Error>;

/// Drops the call after its first, second, ... poll until one comes to its end; how many did not.
#[allow(clippy::disallowed_methods)] // what must not happen is given the time to
async fn dropped_everywhere(faults: &[Fault], waits: usize, size: usize) -> usize {
    let sandbox = sandbox([]).await;
    let hook = Counting { waits, ..Counting::default() };
    let (first, second) = (quick().authorize(hook.clone()).build().unwrap(), quick().build().unwrap());
    let mut promised = Vec::new();
    let drops = loop {
        sandbox.clear_faults();
        sandbox.fail_next(faults.iter().cloned());
        let key = IdempotencyKey::random();
        let polls = promised.len();
        let ended = DroppedAfter::new(send(&first, &sandbox, &key, size), polls).await;
        let begun = hook.attempts_of(&key);
        let over = ended.is_some();
        if let Some(sent) = ended {
            let response = sent.unwrap();
            assert_eq!((response.attempts().len(), sandbox.executions_of(&key)), (begun, 1));
        }
        sandbox.clear_faults();
        let again = send(&second, &sandbox, &key, size).await;
        let again = again.unwrap_or_else(|error| panic!("after {polls} polls: {error}\n{error:?}"));
        assert_eq!(sandbox.executions_of(&key), 1, "after {polls} polls");
        promised.push((key, begun, again.attempts().len()));
        if over {
            break polls;
        }
    };
    tokio::time::sleep(SETTLED).await;
    let seen = sandbox.requests();
    for (polls, (key, begun, again)) in promised.iter().enumerate() {
        assert_eq!(hook.attempts_of(key), *begun, "an attempt was made after the drop at poll {polls}");
        let requests: Vec<_> = seen.iter().filter(|request| request.key() == Some(key.as_str())).collect();
        // What was begun may have been on the wire or not; nothing else went out.
        assert!((*again..=begun + again).contains(&requests.len()), "{} after {polls} polls", requests.len());
        assert!(requests.iter().all(|request| !request.is_complete() || request.body() == body(size).as_bytes()));
        assert_eq!(sandbox.executions_of(key), 1, "after {polls} polls");
    }
    assert_eq!(sandbox.executions(), promised.len());
    assert!(sandbox.ledger().iter().all(|row| !row.is_double()));
    drops
}

#[tokio::test]
async fn a_plain_call() {
    assert!(dropped_everywhere(&[], 0, 10).await >= 2);
}

#[tokio::test]
async fn an_answer_that_is_lost_and_replayed() {
    assert!(dropped_everywhere(&[Fault::answer_lost(), Fault::answer_lost().with_reset()], 0, 10).await >= 4);
}

#[tokio::test]
async fn a_gateway_that_is_down_for_a_while() {
    assert!(dropped_everywhere(&[Fault::status(503).times(2), Fault::status(503).executing()], 0, 10).await >= 4);
}

#[tokio::test]
async fn polls_of_what_is_in_progress() {
    assert!(dropped_everywhere(&[Fault::none(), Fault::in_progress().times(2)], 0, 10).await >= 2);
    assert!(dropped_everywhere(&[Fault::in_progress().times(2)], 0, 10).await >= 4);
}

#[tokio::test]
async fn a_hook_that_waits() {
    assert!(dropped_everywhere(&[Fault::answer_lost(), Fault::status(503)], 5, 10).await >= 15);
}

#[tokio::test]
async fn an_answer_that_comes_in_drops() {
    assert!(dropped_everywhere(&[Fault::drip(16, ms(1)), Fault::body_cut(5)], 0, 10).await >= 5);
}

#[tokio::test]
async fn a_long_body_on_its_way_out() {
    assert!(dropped_everywhere(&[Fault::reset_before_reading(), Fault::body_cut(5)], 0, 400_000).await >= 4);
}

#[tokio::test]
async fn a_call_that_was_never_polled_leaves_its_key_fresh() {
    let sandbox = sandbox([Fault::status(400)]).await;
    let key = IdempotencyKey::random();
    drop(send(&client(), &sandbox, &key, 10));
    assert!(DroppedAfter::new(send(&client(), &sandbox, &key, 10), 0).await.is_none());
    assert!(sandbox.requests().is_empty());
    // Nobody has sent it: a refusal is the whole truth.
    fails(send(&client(), &sandbox, &key, 10).await, ErrorKind::Refused, Effect::NotApplied);
}

#[tokio::test]
async fn a_key_whose_call_was_dropped_is_in_doubt() {
    let sandbox = sandbox([Fault::stall_after_executing(), Fault::status(400)]).await;
    let (client, key) = (client(), IdempotencyKey::random());
    let mut call = pin!(send(&client, &sandbox, &key, 10));
    tokio::select! {
        biased;
        () = sandbox.until(|sandbox| sandbox.executions() == 1) => {}
        _ = call.as_mut() => unreachable!(),
    }
    // Also while the call is still there, polled by nobody.
    fails(send(&client, &sandbox, &key, 10).await, ErrorKind::Refused, Effect::Unknown);
    assert!(send(&client, &sandbox, &key, 10).await.unwrap().is_replay());
    assert_eq!(sandbox.executions(), 1);
}

#[tokio::test]
async fn a_call_outlives_its_client() {
    let faults = [Fault::answer_lost(), Fault::status(503), Fault::in_progress(), Fault::body_cut(5)];
    let sandbox = sandbox(faults.into_iter().cycle().take(64)).await;
    let client = quick().authorize(Counting::default()).build().unwrap();
    let keys: Vec<_> = (0..64).map(|_| IdempotencyKey::random()).collect();
    let mut calls: Vec<_> = keys.iter().map(|key| Box::pin(send(&client, &sandbox, key, 10))).collect();
    // Half of them on their way, half not begun.
    for call in &mut calls[..32] {
        assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    drop(client);
    let calls: Vec<_> = calls.into_iter().map(tokio::spawn).collect();
    for (call, key) in calls.into_iter().zip(&keys) {
        let response = call.await.unwrap().unwrap();
        assert_eq!((response.key(), sandbox.executions_of(key)), (Some(key), 1));
    }
    assert_eq!(sandbox.executions(), 64);
}

/// The whole runtime goes, with calls on their way on it; another one takes them up.
#[test]
fn a_runtime_that_is_dropped_takes_nothing_with_it() {
    let servers = tokio::runtime::Runtime::new().unwrap();
    let sandbox = servers.block_on(sandbox([Fault::stall_after_executing().times(16), Fault::answer_lost().times(16)]));
    let keys: Vec<_> = (0..64).map(|_| IdempotencyKey::random()).collect();
    let client = quick().build().unwrap();
    let calls = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for key in &keys {
        drop(calls.spawn(send(&client, &sandbox, key, 10)));
    }
    servers.block_on(sandbox.until(|sandbox| sandbox.requests().len() > 40));
    drop(calls);
    sandbox.clear_faults();

    // With the very client, whose connections went with the runtime.
    let calls = tokio::runtime::Runtime::new().unwrap();
    for key in &keys {
        let response = calls.block_on(send(&client, &sandbox, key, 10)).unwrap();
        assert_eq!((response.key(), sandbox.executions_of(key)), (Some(key), 1));
    }
    assert_eq!(sandbox.executions(), 64);
    let whole = sandbox.requests().into_iter().filter(|request| request.is_complete());
    assert!(whole.into_iter().all(|request| request.body() == body(10).as_bytes()));
}
