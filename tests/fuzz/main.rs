//! Hostile input through the public interface, made from seeds: realistic
//! pieces, bent byte by byte. Whatever comes, the properties of each target
//! hold and nothing panics or hangs.
//!
//! Left alone each target runs a fixed number of cases, the same each time.
//!
//! ```sh
//! # for a minute each; with another seed for other cases
//! ONCEKEY_FUZZ_SECONDS=60 cargo test --release --features full --test fuzz
//! ONCEKEY_FUZZ_SECONDS=3600 ONCEKEY_FUZZ_SEED=7 cargo test --release --features full --test fuzz
//! # one case again: a failure prints its seed and number
//! ONCEKEY_FUZZ_SEED=1 ONCEKEY_FUZZ_CASE=4711 cargo test --test fuzz answers
//! ```
//!
//! `fuzz/` runs the same targets under libFuzzer, which finds its way by
//! coverage; that needs a nightly toolchain and `cargo fuzz`.

#![allow(clippy::unwrap_used)] // helpers of tests

mod answer;
mod entries;
mod key;
mod mutate;
mod reading;
#[cfg(feature = "journal")]
mod records;
mod request;
mod retry_after;
mod source;

use std::time::{Duration, Instant};

use source::{Source, mix};

/// No case may take longer, on a busy machine and without optimisation.
const LONGEST: Duration = Duration::from_secs(5);

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a whole number, not {text:?}")))
}

/// Says which case it was, if it ends in a panic.
struct Named {
    target: &'static str,
    seed: u64,
    case: u64,
}

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { target, seed, case } = self;
            eprintln!(
                "again: ONCEKEY_FUZZ_SEED={seed} ONCEKEY_FUZZ_CASE={case} cargo test --features full --test fuzz {target}"
            );
        }
    }
}

/// Runs this many cases, or for as long as asked for, or the one asked for.
#[allow(clippy::disallowed_methods)] // how long a case takes is what is looked at
fn fuzz(target: &'static str, cases: u64, mut check: impl FnMut(&mut Source<'_>)) {
    let seed = variable("ONCEKEY_FUZZ_SEED").unwrap_or(1);
    let time = variable("ONCEKEY_FUZZ_SECONDS").map(Duration::from_secs);
    let only = variable("ONCEKEY_FUZZ_CASE");
    let began = Instant::now();
    let mut slowest = (Duration::ZERO, 0);
    let mut case = only.unwrap_or(0);
    loop {
        let named = Named { target, seed, case };
        let before = Instant::now();
        check(&mut Source::seeded(mix(seed) ^ mix(case)));
        drop(named);
        slowest = slowest.max((before.elapsed(), case));
        case += 1;
        let enough = match (only, time) {
            (Some(_), _) => true,
            (None, Some(time)) => began.elapsed() >= time,
            (None, None) => case >= cases,
        };
        if enough {
            break;
        }
    }
    println!("{target}: {case} cases in {:.1?}, the slowest (case {}) {:.1?}", began.elapsed(), slowest.1, slowest.0);
    assert!(slowest.0 < LONGEST, "case {} of {target}, seed {seed}, took {:?}", slowest.1, slowest.0);
}

#[test]
fn answers() {
    fuzz("answers", 40_000, answer::check);
}

#[test]
fn waits() {
    fuzz("waits", 60_000, retry_after::check);
}

#[test]
fn entries() {
    fuzz("entries", 15_000, entries::check);
}

#[cfg(feature = "journal")]
#[test]
fn records() {
    fuzz("records", 60_000, records::check);
}

#[test]
fn keys() {
    fuzz("keys", 40_000, key::check);
}

#[test]
fn requests() {
    let requests = request::Requests::new();
    fuzz("requests", 4_000, |source| requests.check(source));
}
