use super::faults::Fault;
use super::truth::Property;
use super::{Options, Sim};

/// The same failure with fewer kinds of fault, fewer lives and fewer faults.
pub(crate) fn shrink(sim: &mut Sim<'_>, seed: u64, property: Property, options: Options) -> Options {
    let mut smallest = options;
    let mut fails = |options: Options| sim.run(seed, options).violated[property as usize];
    for fault in Fault::ALL {
        let fewer = Options { allowed: smallest.allowed.without(fault), ..smallest };
        if fails(fewer) {
            smallest = fewer;
        }
    }
    for most_lives in 1..4 {
        let fewer = Options { most_lives, ..smallest };
        if fails(fewer) {
            smallest = fewer;
            break;
        }
    }
    for most_faults in 0..64 {
        let fewer = Options { most_faults, ..smallest };
        if fails(fewer) {
            smallest = fewer;
            break;
        }
    }
    for number in 0..64 {
        let fewer = Options { spared: smallest.spared | 1 << number, ..smallest };
        if fails(fewer) {
            smallest = fewer;
        }
    }
    smallest
}

/// The shrunk run as a text, a line an event.
pub(crate) fn explain(sim: &mut Sim<'_>, seed: u64, property: Property, options: Options) -> String {
    let smallest = shrink(sim, seed, property, options);
    let (_, lines) = sim.traced(seed, smallest);
    let assumption = options.broken.map_or("all assumptions true", |broken| broken.broken());
    format!("seed {seed}, {assumption}: {property:?} does not hold\n{}", lines.join("\n"))
}
