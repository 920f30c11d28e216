use std::fmt::Write as _;

use super::assumptions::Assumption;
use super::truth::Property;
use super::{Kit, Options, Sim};

/// What breaks where one assumption does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) broken: Option<Assumption>,
    pub(crate) runs: u64,
    /// In how many runs each property failed.
    pub(crate) counts: [u64; Property::ALL.len()],
    /// The first seed of each.
    pub(crate) seeds: [Option<u64>; Property::ALL.len()],
    /// What happened at all, so that a world in which nothing does cannot pass for a good one.
    pub(crate) tally: Tally,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    sends: u64,
    lives: u64,
    faults: u64,
    executions: u64,
    /// Ok, not applied, applied, unknown: the last that the caller was told.
    told: [u64; 4],
}

impl Row {
    pub(crate) fn of(kit: &Kit, broken: Option<Assumption>, first_seed: u64, runs: u64) -> Self {
        let mut row =
            Self { broken, runs, counts: Default::default(), seeds: Default::default(), tally: Tally::default() };
        let mut sim = Sim::new(kit);
        for seed in first_seed..first_seed + runs {
            let truth = sim.run(seed, Options::new(broken));
            if truth.worst.is_some() {
                for (index, _) in truth.violated.iter().enumerate().filter(|(_, violated)| **violated) {
                    row.counts[index] += 1;
                    row.seeds[index].get_or_insert(seed);
                }
            }
            row.tally.add(&sim);
        }
        row
    }

    /// The properties that failed though they hold whatever the world does.
    pub(crate) fn faults(&self) -> Vec<(Property, u64)> {
        // Nothing can hold the fold to entries that are gone.
        let forgets = self.broken == Some(Assumption::RecordKept);
        let must_hold = |property: &Property| self.broken.is_none() || !(forgets || property.rests_on_the_world());
        Property::ALL
            .into_iter()
            .filter(must_hold)
            .filter_map(|property| Some((property, self.seeds[property as usize]?)))
            .collect()
    }

    /// What happened in an average run, and what its caller was told.
    pub(crate) fn averages(&self) -> String {
        let Tally { sends, lives, faults, executions, told } = self.tally;
        let each = |count: u64| count as f64 / self.runs as f64;
        let [ok, not_applied, applied, unknown] = told.map(|count| 100.0 * each(count));
        format!(
            "a run: {:.2} sends, {:.2} lives, {:.2} faults, {:.2} executions; \
             told: {ok:.1} % Ok, {not_applied:.1} % not applied, {applied:.1} % applied, {unknown:.1} % unknown",
            each(sends),
            each(lives),
            each(faults),
            each(executions),
        )
    }

    pub(crate) fn line(&self) -> String {
        let mut line = match self.broken {
            None => "     all true".to_owned(),
            Some(broken) => format!("{:>4} {}", broken.number(), broken.broken()),
        };
        let mut broke = Vec::new();
        for property in Property::ALL {
            let count = self.counts[property as usize];
            if count > 0 {
                broke.push(format!("{property:?} {count}"));
            }
        }
        let broke = if broke.is_empty() { "nothing".to_owned() } else { broke.join(", ") };
        let _ = write!(line, ": {broke}, of {} runs", self.runs);
        line
    }
}

impl Tally {
    fn add(&mut self, sim: &Sim<'_>) {
        let truth = sim.truth();
        self.sends += sim.sends.len() as u64 - 1;
        self.lives += u64::from(sim.process.life) + 1;
        self.faults += u64::from(sim.faults);
        self.executions += truth.executions.len() as u64;
        if let Some(told) = truth.told {
            self.told[told as usize] += 1;
        }
    }
}
