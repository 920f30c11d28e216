//! The client against the sandbox, over real sockets.

#![allow(clippy::unwrap_used)] // helpers of tests

mod authorize;
#[cfg(feature = "backoff")]
mod backoff;
#[cfg(feature = "blocking")]
mod blocking;
mod cancel;
mod composition;
mod events;
mod harness;
#[cfg(feature = "http2")]
mod http2;
mod input;
mod limits;
mod look;
mod methods;
mod pages;
mod promises;
mod secrets;
#[cfg(feature = "tracing")]
mod spans;
mod testing;
#[cfg(all(feature = "blocking", feature = "sqlite", feature = "profile-files"))]
mod traits;

use std::time::Duration;

use oncekey::sandbox::{Fault, Sandbox};
use oncekey::{Client, ClientBuilder, Effect, Error, ErrorKind, Poll, Retry};
use serde_json::{Value, json};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Short waits, and no proxy of the machine's.
fn builder() -> ClientBuilder {
    Client::builder()
        .http(|http| http.no_proxy())
        .retry(Retry::default().max_attempts(4).base_delay(ms(10)).max_delay(ms(40)))
        .poll(Poll::default().interval(ms(20)).max_interval(ms(40)).limit(ms(5000)))
        .attempt_timeout(ms(2000))
        .deadline(ms(20_000))
}

fn client() -> Client {
    builder().build().unwrap()
}

fn payment() -> Value {
    json!({"amount": 4999, "currency": "usd"})
}

async fn sandbox(faults: impl IntoIterator<Item = Fault>) -> Sandbox {
    let sandbox = Sandbox::start().await.unwrap();
    sandbox.fail_next(faults);
    sandbox
}

async fn pay(client: &Client, sandbox: &Sandbox) -> Result<oncekey::Response, Error> {
    client.post(sandbox.url("/v1/payments")).json(&payment()).send().await
}

#[track_caller]
fn fails(result: Result<oncekey::Response, Error>, kind: ErrorKind, effect: Effect) -> Error {
    let error = result.unwrap_err();
    assert_eq!(
        (error.kind(), error.effect()),
        (kind, effect),
        "{error}\n{}",
        oncekey::Attempt::table(error.attempts())
    );
    error
}
