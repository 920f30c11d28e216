//! The deterministic simulation: the real engine, the real rules and the real
//! driver's loop, over a model network and a model server that share no code
//! with them, in virtual time. One seed makes one run; every decision of the
//! world comes from it.
//!
//! # The world
//!
//! Requests and answers are lost, late, copied, reordered and cut; connections
//! are refused; gateways answer in the server's place or over its answer, with
//! pages and with JSON; the server fails or dies before or after the deed,
//! reclaims dead locks, answers 202 first, turns requests down, limits them,
//! stores or releases, marks or does not; the process dies at any wait and any
//! entry and another takes up from the record, minutes or days later, by a
//! wall clock that was set forward or back; the machine is suspended; the disk
//! is slow; the hook is slow, fails, or brings credentials that are stale.
//!
//! # The assumptions
//!
//! While all of them are true nothing that the caller is told may be untrue.
//!
//! - **A1** The server honours the key on this route.
//! - **A2** It remembers a key for the profile's lifetime at least, counted from
//!   its first receipt, and while the key's first request still runs.
//! - **A3** It takes no lock from a handler that still runs.
//! - **A4** The deed and the key's record are one: a server that dies or fails
//!   after the deed remembers it. One that releases keys on errors fails before.
//! - **A5** The wall clock goes back unseen by no more than the margin. Further
//!   back it is seen: it reads earlier than the record by more than the margin.
//!   Forward it may go at will.
//! - **A6** A request arrives within its attempt's timeout and the margin, or
//!   never. A5 and A6 share the one margin.
//! - **A7** What was recorded is kept, the last `Ended` of an operation with a
//!   key apart, if its caller was not told of it yet.
//! - **A8** A refused connection sent nothing.
//! - **A9** The idempotency layer's codes and marks mean what the profile says:
//!   a mark is on true replays alone, and nothing on the way fakes either.
//! - **A10** A refusal without the mark (the statuses of rule 16, a 409 whose code
//!   names another cause, a `judge`'s word) was not carried out and will not be,
//!   nor will a copy of it that the network made. Pages with 403 and 409, and all
//!   other statuses, may come after the deed.
//! - **A11** A 2xx that is no page and no 202, and to which no `judge` objects,
//!   came from the server, which carried it out.
//! - **A12** Where the profile promises that a 429 comes before the work, it does.
//! - **A13** Where 404 and 410 count as done, they come from the server.
//! - **A14** A caller's key belongs to this operation and is as old as the caller
//!   says; where the caller does not say, the server honours it for its lifetime
//!   from our first send on.
//!
//! And one process at a time works on an operation, which the loop cannot see.
//!
//! # What is checked
//!
//! [`truth::Property`](model::truth::Property), after every event and again when
//! the last message is delivered and the server is idle. Half of them say that
//! what the caller was told is true, and rest on the assumptions; the other half
//! hold whatever the world does, with an assumption broken too.
//!
//! What it cannot see: the key and the bytes of the request. The loop never
//! handles them; that they are the same on every attempt is held elsewhere.
#![allow(clippy::unwrap_used)] // a program for its own authors

mod found;
#[allow(dead_code)] // the benchmark uses what this does not
mod model;

use model::assumptions::Assumption;
use model::table::Row;
use model::{Kit, Options, Sim, shrink};

/// Some ten seconds, unoptimised.
const SEEDS: u64 = 300_000;
const SEEDS_BROKEN: u64 = 5_000;

#[test]
fn nothing_is_untrue_while_the_assumptions_hold() {
    let kit = Kit::new();
    let row = Row::of(&kit, None, 0, SEEDS);
    println!("{}\n{}", row.line(), row.averages());
    holds(&kit, &row);
}

#[test]
fn what_breaks_when_one_assumption_does() {
    let kit = Kit::new();
    for broken in Assumption::ALL {
        let row = Row::of(&kit, Some(broken), 0, SEEDS_BROKEN);
        println!("{}", row.line());
        holds(&kit, &row);
    }
}

#[test]
fn a_seed_is_a_run() {
    let kit = Kit::new();
    let mut used = Sim::new(&kit);
    for seed in 0..2000 {
        let options = Options::new(Some(Assumption::CodesAndMarks).filter(|_| seed % 2 == 0));
        assert_eq!(used.traced(seed, options).1, Sim::new(&kit).traced(seed, options).1);
    }
}

#[track_caller]
fn holds(kit: &Kit, row: &Row) {
    if let Some((property, seed)) = row.faults().first() {
        let options = Options::new(row.broken);
        panic!("{}", shrink::explain(&mut Sim::new(kit), *seed, *property, options));
    }
}
