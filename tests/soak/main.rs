//! Many operations at once against a server that breaks all the time. For each
//! of them what its caller was told is compared with the server's ledger, and
//! its log with what the server saw. Memory must not grow.
//!
//! It runs in rounds, each with a sandbox of its own, which is dropped before
//! memory is read: a sandbox keeps every request.
//!
//! ```sh
//! # the long one, with its figures
//! ONCEKEY_SOAK_OPERATIONS=100000 cargo test --release --features full --test soak -- --nocapture
//! # other faults
//! ONCEKEY_SOAK_SEED=7 cargo test --features full --test soak -- --nocapture
//! ```
//!
//! Left out: faults by which the server breaks its own promise (a handler that
//! dies between executing and storing its answer), and
//! `Fault::closed_after_answer`, where a request may go out on a connection
//! that is closing and be seen by nobody.

#![allow(clippy::unwrap_used)] // helpers of tests

mod audit;
mod memory;
mod operation;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use oncekey::sandbox::{Fault, Sandbox};
use oncekey::{Client, Poll, Retry};
use tokio::task::JoinSet;

use audit::{Counts, audit};
use memory::{held, middle};
use operation::{Outcome, Told, carry_out};

/// How many are on their way at a time.
const CONCURRENCY: usize = 256;
/// No operation needs a fraction of it.
const DEADLINE: Duration = Duration::from_secs(20);
/// How long what arrives late is late, by the sandbox's clock: longer than an attempt.
const LATE: Duration = Duration::from_millis(1300);
/// How much more the process may hold at the end than after warming up.
const GROWTH_KIB: u64 = 24 * 1024;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn variable(name: &str, otherwise: usize) -> usize {
    let Ok(text) = std::env::var(name) else { return otherwise };
    text.parse().unwrap_or_else(|_| panic!("{name} is a whole number, not {text:?}"))
}

/// Few attempts and short waits, so that every kind of end is met. Each round is another server to
/// the pool, which would keep the closed connections of the last ones for a minute and a half.
fn client() -> Client {
    Client::builder()
        .http(|http| http.no_proxy().pool_idle_timeout(ms(300)))
        .retry(Retry::default().max_attempts(4).base_delay(ms(2)).max_delay(ms(20)))
        .poll(Poll::default().interval(ms(5)).max_interval(ms(20)).limit(ms(4000)))
        .attempt_timeout(ms(1000))
        .deadline(DEADLINE)
        .max_response_bytes(64 * 1024)
        .build()
        .unwrap()
}

/// What chaos leaves out: stalls, late arrivals, refusals, answers that settle nothing.
fn scripted() -> Vec<Fault> {
    vec![
        Fault::stall_before_reading().times(2),
        Fault::stall_before_executing().times(2),
        Fault::stall_before_executing().lasting(LATE).times(4),
        Fault::stall_while_executing().lasting(LATE).times(4),
        Fault::stall_after_executing().times(4),
        Fault::stall_in_head(20).times(2),
        Fault::stall_in_body(5).times(2),
        Fault::status(400).times(2),
        Fault::status(401),
        Fault::status(403),
        Fault::status(409).json(r#"{"code":"CARD_FROZEN"}"#),
        Fault::status(409),
        Fault::status(202),
        Fault::status(503).retry_after("0"),
        Fault::redirect(307, "/v1/elsewhere"),
        Fault::replayed(500),
        Fault::html(403),
        Fault::oversized(100_000).times(2),
        Fault::invalid_json().unframed(),
    ]
}

/// One sandbox, and these operations against it.
async fn round(client: &Client, seed: u64, numbers: std::ops::Range<usize>) -> Counts {
    let sandbox = Sandbox::builder()
        .chaos(seed, 400)
        .work(ms(2))
        .store_errors(seed.is_multiple_of(2))
        .keyed(|_, path| !path.starts_with("/v1/notes"))
        .start()
        .await
        .unwrap();
    sandbox.fail_next(scripted());
    let (origin, next) = (sandbox.url(""), Arc::new(AtomicUsize::new(numbers.start)));
    let mut workers = JoinSet::new();
    for _ in 0..CONCURRENCY {
        let (client, origin, next, end) = (client.clone(), origin.clone(), Arc::clone(&next), numbers.end);
        workers.spawn(async move {
            let mut told = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= end {
                    return told;
                }
                told.push(in_time(carry_out(&client, &origin, number)).await);
            }
        });
    }
    let told: Vec<Told> = workers.join_all().await.into_iter().flatten().collect();
    assert_eq!(told.len(), numbers.len());
    the_late_arrive(&sandbox).await;
    audit(&sandbox, &told)
}

/// No operation outlasts its deadline by much.
#[allow(clippy::disallowed_methods)] // the time that a caller sees pass
async fn in_time(operation: impl Future<Output = Told>) -> Told {
    tokio::time::timeout(DEADLINE + ms(30_000), operation).await.expect("an operation ends with its deadline")
}

/// A double of a late arrival would show only now.
#[allow(clippy::disallowed_methods)] // the server's own tasks are given a moment
async fn the_late_arrive(sandbox: &Sandbox) {
    sandbox.advance(LATE);
    tokio::time::sleep(ms(30)).await;
    sandbox.until(|sandbox| sandbox.at_work() == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::disallowed_methods)] // how long it takes is printed
async fn every_caller_is_told_the_truth() {
    let operations = variable("ONCEKEY_SOAK_OPERATIONS", 2000);
    let seed = u64::try_from(variable("ONCEKEY_SOAK_SEED", 1)).unwrap();
    let size = (operations / 20).clamp(500, 5000);
    let (client, began) = (client(), Instant::now());
    let (mut counts, mut readings, mut start) = (Counts::default(), Vec::new(), 0);
    while start < operations {
        let end = operations.min(start + size);
        let round_seed = seed.wrapping_mul(1_000_003).wrapping_add(u64::try_from(start / size).unwrap());
        counts += round(&client, round_seed, start..end).await;
        readings.extend(held());
        start = end;
    }
    println!("{operations} operations, {CONCURRENCY} at once, in {:.1?}: {counts:#?}", began.elapsed());
    let series: Vec<String> = readings.iter().map(|held| format!("{} KiB/{}", held.kib, held.files)).collect();
    println!("memory and open files after each round of {size}: {}", series.join(", "));

    // It was no walk in the park.
    let ended = |outcome| counts.outcomes.get(&outcome).copied().unwrap_or_default();
    assert!(ended(Outcome::Ok) > operations / 2, "{counts:?}");
    for outcome in [Outcome::NotApplied, Outcome::Applied, Outcome::Unknown] {
        assert!(ended(outcome) > 0, "{outcome:?} was never told: {counts:?}");
    }
    assert!(counts.faults.len() > 20, "{counts:?}");

    let (warm, late) = (readings.len() / 4, readings.len() * 3 / 4);
    let (Some(before), Some(after)) = (middle(&readings[warm..late]), middle(&readings[late..])) else { return };
    assert!(after.kib <= before.kib + GROWTH_KIB, "{} KiB after {} KiB", after.kib, before.kib);
    assert!(after.files <= before.files + CONCURRENCY, "{} files after {}", after.files, before.files);
}
