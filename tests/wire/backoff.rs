//! A schedule of the `backoff` crate.

use std::time::Duration;

use ::backoff::backoff::Backoff;
use oncekey::sandbox::Fault;
use oncekey::{Effect, ErrorKind, Retry};

use crate::*;

struct Steps(Vec<u64>);

impl Backoff for Steps {
    fn next_backoff(&mut self) -> Option<Duration> {
        self.0.pop().map(ms)
    }
}

#[tokio::test]
async fn it_sets_the_delays_after_failures_and_may_end_the_run() {
    let faults = [Fault::status(503), Fault::in_progress(), Fault::answer_lost(), Fault::status(503)];
    let sandbox = sandbox(faults.clone()).await;
    let client = builder().retry(Retry::default().max_attempts(99)).backoff(|| Steps(vec![30, 60])).build().unwrap();
    let error = fails(pay(&client, &sandbox).await, ErrorKind::Exhausted, Effect::Unknown);
    assert!(error.to_string().contains("schedule"), "{error}");
    let waits: Vec<Duration> = error.attempts().iter().map(|attempt| attempt.wait()).collect();
    assert_eq!(waits.len(), 4);
    assert!(waits[0] >= ms(60) && waits[2] >= ms(30) && waits[3] == ms(0), "{waits:?}");
    // Each operation has a schedule of its own.
    sandbox.fail_next(faults);
    assert_eq!(fails(pay(&client, &sandbox).await, ErrorKind::Exhausted, Effect::Unknown).attempts().len(), 4);
    // A `Retry-After` still counts.
    sandbox.fail_next([Fault::status(503).retry_after("1")]);
    assert!(pay(&client, &sandbox).await.unwrap().attempts()[0].wait() >= ms(1000));
}
