mod answers;
pub(crate) mod assumptions;
mod checks;
mod dialects;
pub(crate) mod faults;
mod lives;
mod network;
mod plan;
mod process;
mod rng;
mod server;
pub(crate) mod shrink;
pub(crate) mod table;
mod trace;
pub(crate) mod truth;

use http::HeaderMap;
use oncekey::engine::{Entry, Time};

use assumptions::Assumption;
use dialects::Dialect;
use faults::{Fault, Faults};
use network::{Event, Sent};
use plan::Plan;
use process::Process;
use rng::Rng;
use server::Server;
use trace::Trace;
use truth::Truth;

/// True time at which every run begins.
const START: u64 = 1_700_000_000_000;

/// What all runs share.
#[derive(Debug)]
pub(crate) struct Kit {
    dialects: Vec<Dialect>,
    /// The request's own headers.
    asked: HeaderMap,
}

impl Kit {
    pub(crate) fn new() -> Self {
        Self { dialects: dialects::dialects(), asked: HeaderMap::new() }
    }
}

/// What a run is held to beside its seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub(crate) broken: Option<Assumption>,
    /// Only these faults happen, only so many, not those whose bit is set (the first 64 have one),
    pub(crate) allowed: Faults,
    pub(crate) most_faults: u32,
    pub(crate) spared: u64,
    /// and in so many lives of the process.
    pub(crate) most_lives: u32,
}

impl Options {
    pub(crate) const fn new(broken: Option<Assumption>) -> Self {
        Self { broken, allowed: Faults::ANY, most_faults: u32::MAX, spared: 0, most_lives: u32::MAX }
    }
}

/// One world, used for one run after another.
#[derive(Debug)]
pub(crate) struct Sim<'k> {
    kit: &'k Kit,
    rng: Rng,
    plan: Plan,
    broken: Option<Assumption>,
    options: Options,
    /// The true time, in milliseconds.
    time: u64,
    /// How many faults could have happened, and did.
    chances: u32,
    faults: u32,
    events: Vec<Event>,
    numbered: u32,
    sends: Vec<Sent>,
    server: Server,
    process: Process,
    /// What survives a crash.
    record: Vec<Entry>,
    sent_attempt: u32,
    /// An answer has shown that the server knows the key.
    evidence: bool,
    /// The last recorded answer was "pending", and nothing has shown that.
    pending_unproven: bool,
    not_before: Option<u64>,
    /// When the next poll is due.
    next_poll: Option<Time>,
    /// The last recorded answer is one that must not be asked for again.
    over: bool,
    truth: Truth,
    trace: Trace,
}

impl<'k> Sim<'k> {
    pub(crate) fn new(kit: &'k Kit) -> Self {
        let options = Options::new(None);
        let mut rng = Rng::new(0);
        let plan = Plan::draw(&mut rng, &kit.dialects, None);
        Self {
            kit,
            rng,
            plan,
            broken: None,
            options,
            time: START,
            chances: 0,
            faults: 0,
            events: Vec::new(),
            numbered: 0,
            sends: Vec::new(),
            server: Server::default(),
            process: Process::new(0, START),
            record: Vec::new(),
            sent_attempt: 0,
            evidence: false,
            pending_unproven: false,
            not_before: None,
            next_poll: None,
            over: false,
            truth: Truth::default(),
            trace: Trace::default(),
        }
    }

    pub(crate) const fn truth(&self) -> &Truth {
        &self.truth
    }

    /// Whether it happens here. The dice are cast all the same where it is not
    /// allowed to, so that shrinking leaves the rest of the run as it was.
    fn fault(&mut self, fault: Fault) -> bool {
        let rate = if fault.is_of_the_process() { self.plan.unrest } else { self.plan.rate };
        if !self.plan.swarm.has(fault) || !self.rng.percent(rate) {
            return false;
        }
        if !self.options.allowed.has(fault) || self.chances >= self.options.most_faults {
            return false;
        }
        let spared = self.options.spared.checked_shr(self.chances).is_some_and(|bits| bits & 1 == 1);
        self.chances += 1;
        self.faults += u32::from(!spared);
        !spared
    }

    fn dialect(&self) -> &'k Dialect {
        &self.kit.dialects[self.plan.dialect]
    }

    fn sent(&self, send: u32) -> Sent {
        usize::try_from(send).ok().and_then(|index| self.sends.get(index)).copied().unwrap_or(Sent::BEFORE)
    }
}
