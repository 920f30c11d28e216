//! Simulated operations a second, on one core:
//! `cargo bench --bench simulation -- [--schedules N] [--seed S] [--assumptions] [--broken A1]`.
//!
//! `--seed S` alone replays one run and prints its trace.
#![allow(clippy::unwrap_used)] // a program for its own authors
#![allow(clippy::disallowed_methods)] // it measures real time

#[allow(dead_code)] // the tests use what this does not
#[path = "../tests/simulation/model/mod.rs"]
mod model;

use std::process::ExitCode;
use std::time::Instant;

use model::assumptions::Assumption;
use model::table::Row;
use model::{Kit, Options, Sim};

struct Arguments {
    schedules: Option<u64>,
    seed: Option<u64>,
    assumptions: bool,
    broken: Option<Assumption>,
}

fn main() -> ExitCode {
    let arguments = arguments();
    let kit = Kit::new();
    if let (Some(seed), None, false) = (arguments.seed, arguments.schedules, arguments.assumptions) {
        return replay(&kit, seed, arguments.broken);
    }
    let first = arguments.seed.unwrap_or(0);
    if arguments.assumptions {
        return assumptions(&kit, first, arguments.schedules.unwrap_or(100_000));
    }
    measure(&kit, first, arguments.schedules.unwrap_or(1_000_000), arguments.broken)
}

fn arguments() -> Arguments {
    let mut arguments = Arguments { schedules: None, seed: None, assumptions: false, broken: None };
    let mut words = std::env::args().skip(1);
    let number = |word: Option<String>| word.and_then(|word| word.replace('_', "").parse().ok());
    while let Some(word) = words.next() {
        match word.as_str() {
            "--schedules" => arguments.schedules = Some(number(words.next()).expect("--schedules takes a number")),
            "--seed" => arguments.seed = Some(number(words.next()).expect("--seed takes a number")),
            "--assumptions" => arguments.assumptions = true,
            "--broken" => {
                let named = words.next().and_then(|name| Assumption::numbered(&name));
                arguments.broken = Some(named.expect("--broken takes an assumption's number, as A1"));
            }
            "--bench" => {}
            other => panic!("{other}? usage: [--schedules N] [--seed S] [--assumptions] [--broken A1]"),
        }
    }
    arguments
}

fn replay(kit: &Kit, seed: u64, broken: Option<Assumption>) -> ExitCode {
    let mut sim = Sim::new(kit);
    let options = Options::new(broken);
    if let Some(property) = sim.run(seed, options).worst {
        println!("{}", model::shrink::explain(&mut sim, seed, property, options));
        return ExitCode::FAILURE;
    }
    println!("{}", sim.traced(seed, options).1.join("\n"));
    ExitCode::SUCCESS
}

fn measure(kit: &Kit, first: u64, schedules: u64, broken: Option<Assumption>) -> ExitCode {
    let (begun, cpu) = (Instant::now(), on_cpu());
    let row = Row::of(kit, broken, first, schedules);
    let took = begun.elapsed().as_secs_f64();
    println!("{}", row.line());
    println!("{}", row.averages());
    println!("{schedules} schedules in {took:.1} s: {:.0} operations a second", schedules as f64 / took);
    if let (Some(before), Some(after)) = (cpu, on_cpu()) {
        let took = after - before;
        println!("of processor time {took:.1} s: {:.0} operations a second", schedules as f64 / took);
    }
    report(kit, &[row])
}

/// Seconds that this process had a processor: on a machine that others use too the clock tells little.
fn on_cpu() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    Some(text.split_ascii_whitespace().next()?.parse::<f64>().ok()? / 1e9)
}

fn assumptions(kit: &Kit, first: u64, schedules: u64) -> ExitCode {
    let rows: Vec<Row> = std::iter::once(None)
        .chain(Assumption::ALL.map(Some))
        .map(|broken| {
            let row = Row::of(kit, broken, first, schedules);
            println!("{}", row.line());
            row
        })
        .collect();
    report(kit, &rows)
}

/// The first failing seed of each property that had to hold.
fn report(kit: &Kit, rows: &[Row]) -> ExitCode {
    let mut sim = Sim::new(kit);
    let mut violations = 0;
    for row in rows {
        for (property, seed) in row.faults() {
            violations += row.counts[property as usize];
            println!("\n{}", model::shrink::explain(&mut sim, seed, property, Options::new(row.broken)));
        }
    }
    println!("violations: {violations}");
    if violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
