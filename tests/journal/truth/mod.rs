//! What a journal tells against what the server did, at random: sends, dropped
//! futures, resumes, decisions by hand, prunes, other programs on the same file
//! and owners that die, in any order, while the server breaks.
//!
//! ```sh
//! # for ten minutes; with another seed for others
//! ONCEKEY_TRUTH_SECONDS=600 cargo test --release --features full --test journal truth:: -- --nocapture
//! # one seed again: a failure prints it and the steps that led there
//! ONCEKEY_TRUTH_SEED=4711 ONCEKEY_TRUTH_RUNS=1 cargo test --features full --test journal truth:: -- --nocapture
//! ```
//!
//! Choices come from the seed, times do not: where a future is dropped is
//! counted in polls, and a busy machine may need a seed more than once.
//!
//! Left out: faults by which the server breaks its own promise, requests that
//! arrive after their caller gave up on them, and decisions by hand that are wrong.

#![allow(clippy::disallowed_methods)] // how long a step takes is what is looked at

mod dice;
mod oracle;
mod steps;
mod world;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use dice::Dice;
use world::World;

/// No step needs a fraction of it.
const BOUND: Duration = Duration::from_secs(30);

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a whole number, not {text:?}")))
}

/// Says what led there, if it ends in a panic.
struct Told<'a>(&'a World);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.0.story());
            eprintln!(
                "again: ONCEKEY_TRUTH_SEED={} ONCEKEY_TRUTH_RUNS=1 cargo test --features full --test journal truth::",
                self.0.seed
            );
        }
    }
}

async fn run(seed: u64, counts: &mut BTreeMap<String, usize>) {
    let mut dice = Dice::new(seed);
    let world = World::new(seed, &mut dice).await;
    let told = Told(&world);
    for _ in 0..12 + dice.below(24) {
        tokio::time::timeout(BOUND, steps::any(&world, &mut dice)).await.expect("a step hangs");
        tokio::time::timeout(BOUND, oracle::check(&world)).await.expect("a look at the record hangs");
    }
    tokio::time::timeout(BOUND, steps::settle(&world)).await.expect("the end hangs");
    drop(told);
    if variable("ONCEKEY_TRUTH_RUNS") == Some(1) {
        println!("{}", world.story());
    }
    for (what, count) in world.counts.take() {
        *counts.entry(what).or_default() += count;
    }
}

#[test]
fn truth_is_told_whatever_meets() {
    let first = variable("ONCEKEY_TRUTH_SEED").unwrap_or(1);
    let seconds = variable("ONCEKEY_TRUTH_SECONDS").map(Duration::from_secs);
    let runs = variable("ONCEKEY_TRUTH_RUNS").unwrap_or(6);
    let (began, mut seed, mut counts) = (Instant::now(), first, BTreeMap::new());
    // One thread, so that whoever is told something is told before anything else happens.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    while seconds.map_or(seed - first < runs, |seconds| began.elapsed() < seconds) {
        runtime.block_on(run(seed, &mut counts));
        seed += 1;
    }
    println!("seeds {first} to {} in {:.1?}: {counts:#?}", seed - 1, began.elapsed());
}
