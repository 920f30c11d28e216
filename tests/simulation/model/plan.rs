use std::time::Duration;

use oncekey::engine::{KeyOrigin, MethodKind, Policy, Time};

use super::assumptions::Assumption;
use super::dialects::{Dialect, Marks, Stores};
use super::faults::Faults;
use super::rng::Rng;

/// What is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Post,
    PostWithoutKey,
    Put,
    Delete { gone_is_done: bool },
    Get,
}

impl Call {
    pub(crate) const fn is_post(self) -> bool {
        matches!(self, Self::Post | Self::PostWithoutKey)
    }

    pub(crate) const fn method(self) -> MethodKind {
        match self {
            Self::Post | Self::PostWithoutKey => MethodKind::Other,
            Self::Put | Self::Delete { .. } => MethodKind::Idempotent,
            Self::Get => MethodKind::Safe,
        }
    }
}

/// Where the key comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    None,
    Drawn,
    /// The caller sent it before, so long ago, or does not say when.
    Given {
        ago: u64,
        told: bool,
        came_to: Before,
    },
}

/// What came of the caller's own earlier request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    Nothing,
    Done,
    Refused,
    StillRuns,
    Dead,
}

/// The caller's limits, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) attempts: u32,
    pub(crate) base: u64,
    pub(crate) poll: u64,
    pub(crate) poll_limit: u64,
    pub(crate) timeout: u64,
    pub(crate) deadline: u64,
    pub(crate) lifetime: u64,
}

impl Limits {
    pub(crate) fn margin(&self) -> u64 {
        (self.lifetime / 10).min(30 * 60_000)
    }
}

/// What a repeated request is told while the first one runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Busy {
    Told,
    Vaguely,
    /// It waits for the first one's answer.
    Waits,
}

/// Whether the server answers before it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pending {
    Never,
    UntilDone,
    /// The first answer is what it stores.
    Forever,
}

/// How the server is built.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habits {
    pub(crate) stores: Stores,
    /// 0, or which mark it puts on replays.
    pub(crate) mark: usize,
    pub(crate) busy: Busy,
    pub(crate) pending: Pending,
    /// How many sends in a hundred the business turns down.
    pub(crate) refuses: u64,
    /// Its fingerprint of a request changes from one attempt to the next.
    pub(crate) volatile: bool,
    /// It says that it was done before, instead of the stored answer.
    pub(crate) says_already: bool,
    /// Credentials never come right.
    pub(crate) locked_out: bool,
    pub(crate) exists: bool,
    pub(crate) reclaim: u64,
    /// How long it remembers a key.
    pub(crate) remembers: u64,
}

/// One run's world, drawn from its seed before anything happens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) dialect: usize,
    pub(crate) call: Call,
    pub(crate) key: Key,
    pub(crate) limits: Limits,
    pub(crate) hook: bool,
    /// The caller brings delays of its own.
    pub(crate) own_schedule: bool,
    pub(crate) habits: Habits,
    pub(crate) swarm: Faults,
    /// How often each fault of the swarm happens where it can, in a hundred.
    pub(crate) rate: u64,
    /// The same for the faults of the process and its machine.
    pub(crate) unrest: u64,
    pub(crate) lives: u32,
    /// How much of the margin the clock may use, in a hundred; lateness has the rest.
    pub(crate) clock_share: u64,
}

impl Plan {
    pub(crate) fn draw(rng: &mut Rng, dialects: &[Dialect], broken: Option<Assumption>) -> Self {
        let dialect = usize::try_from(rng.below(dialects.len() as u64)).unwrap_or(0);
        let api = &dialects[dialect];
        let limits = limits(rng, api.lifetime);
        let call = match rng.below(100) {
            0..70 => Call::Post,
            70..78 => Call::PostWithoutKey,
            78..85 => Call::Put,
            85..94 => Call::Delete { gone_is_done: rng.percent(50) },
            _ => Call::Get,
        };
        let key = match call {
            Call::Post if rng.percent(15) => Key::Given {
                ago: rng.span(1, limits.lifetime + limits.lifetime / 5),
                told: rng.percent(60),
                came_to: rng.pick(&[Before::Nothing, Before::Done, Before::Refused, Before::StillRuns, Before::Dead]),
            },
            Call::Post => Key::Drawn,
            Call::PostWithoutKey | Call::Put | Call::Delete { .. } | Call::Get => Key::None,
        };
        let (rate, swarm) = match rng.below(20) {
            0..3 => (0, Faults::NONE),
            3..9 => (5, Faults::ANY),
            9..16 => (14, Faults::from_bits(rng.next())),
            _ => (35, Faults::from_bits(rng.next() & rng.next())),
        };
        let habits = habits(rng, api, &limits, broken);
        Self {
            dialect,
            call,
            key,
            limits,
            hook: rng.percent(25),
            own_schedule: rng.percent(8),
            habits,
            swarm,
            rate,
            unrest: if rng.percent(20) { 40 } else { rate },
            lives: 1 + u32::try_from(rng.below(4)).unwrap_or(0),
            clock_share: rng.pick(&[0, 50, 100]),
        }
    }

    pub(crate) fn policy(&self) -> Policy {
        let limits = &self.limits;
        let ms = Duration::from_millis;
        Policy::new()
            .max_attempts(limits.attempts)
            .delays(ms(limits.base), ms(limits.base * 16))
            .polls(ms(limits.poll), ms(limits.poll * 4), ms(limits.poll_limit))
            .attempt_timeout(ms(limits.timeout))
            .deadline(ms(limits.deadline))
            .key_lifetime(ms(limits.lifetime))
            .authorizes(self.hook)
    }

    pub(crate) fn origin(&self, first_sent: u64) -> KeyOrigin {
        match self.key {
            Key::None => KeyOrigin::None,
            Key::Drawn => KeyOrigin::Drawn,
            Key::Given { told: false, .. } => KeyOrigin::Given { first_sent: None },
            Key::Given { told: true, .. } => KeyOrigin::Given { first_sent: Some(Time::from_millis(first_sent)) },
        }
    }

    pub(crate) const fn is_keyed(&self) -> bool {
        !matches!(self.key, Key::None)
    }
}

fn limits(rng: &mut Rng, lifetime: u64) -> Limits {
    let attempts = 1 + u32::try_from(rng.below(6)).unwrap_or(0);
    match rng.below(10) {
        // The client's own defaults.
        0..3 => Limits {
            attempts: 12,
            base: 500,
            poll: 1000,
            poll_limit: 120_000,
            timeout: 60_000,
            deadline: 300_000,
            lifetime,
        },
        3..7 => Limits {
            attempts,
            base: rng.below(200),
            poll: 500 + rng.below(1500),
            poll_limit: rng.below(15_000),
            timeout: 1000 + rng.below(9000),
            deadline: 5000 + rng.below(60_000),
            lifetime: rng.span(600_000, lifetime),
        },
        // A key that may die within one run.
        _ => {
            let timeout = 1000 + rng.below(5000);
            Limits {
                attempts,
                base: rng.span(100, 20_000),
                poll: rng.span(1000, 10_000),
                poll_limit: rng.below(100_000),
                timeout,
                deadline: rng.span(10_000, 400_000),
                lifetime: timeout * 2 + rng.span(1000, 200_000),
            }
        }
    }
}

fn habits(rng: &mut Rng, api: &Dialect, limits: &Limits, broken: Option<Assumption>) -> Habits {
    let mark = match api.marks {
        Marks::Never => 0,
        Marks::Maybe if rng.percent(50) => 0,
        Marks::Always | Marks::Maybe => 1 + usize::try_from(rng.below(api.mark_count as u64)).unwrap_or(0),
    };
    let remembers = match broken {
        Some(Assumption::KeyRemembered) => rng.span(limits.timeout, limits.lifetime),
        _ => limits.lifetime + if rng.percent(50) { 0 } else { rng.span(1, limits.lifetime) },
    };
    Habits {
        stores: rng.pick(api.stores),
        mark,
        busy: rng.pick(&[Busy::Told, Busy::Told, Busy::Told, Busy::Vaguely, Busy::Waits]),
        pending: match rng.below(20) {
            0..2 => Pending::UntilDone,
            2 => Pending::Forever,
            _ => Pending::Never,
        },
        refuses: rng.pick(&[0, 0, 0, 0, 50, 100]),
        volatile: rng.percent(5),
        says_already: rng.percent(20),
        locked_out: rng.percent(10),
        exists: rng.percent(85),
        reclaim: rng.span(2000, 40_000),
        remembers,
    }
}
