//! The only clock, the only timer and the only dice.
#![allow(clippy::disallowed_methods)] // this is the one place for them

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::time::Timeout;

use crate::engine::Time;

/// A reading of the clock: nanoseconds since the Unix epoch, up to the year 2554.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(u64);

impl Moment {
    pub(crate) const fn time(self) -> Time {
        Time::from_millis(self.0 / 1_000_000)
    }

    pub(crate) const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    pub(crate) fn system_time(self) -> SystemTime {
        UNIX_EPOCH.checked_add(Duration::from_nanos(self.0)).unwrap_or(UNIX_EPOCH)
    }
}

pub(crate) fn system_time(time: Time) -> SystemTime {
    UNIX_EPOCH.checked_add(Duration::from_millis(time.as_millis())).unwrap_or(UNIX_EPOCH)
}

pub(crate) fn time(at: SystemTime) -> Time {
    let millis = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    Time::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
}

/// So long ago.
#[cfg(feature = "journal")]
pub(crate) fn earlier(by: Duration) -> Time {
    let millis = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
    Time::from_millis(now().time().as_millis().saturating_sub(millis))
}

/// Where this process's clock began; all in nanoseconds.
struct Start {
    monotonic: Instant,
    wall: u64,
    boot: Option<u64>,
}

static START: OnceLock<Start> = OnceLock::new();

/// How far this clock is ahead of the monotonic one: it only grows.
struct Lead {
    ahead: AtomicU64,
    /// How long the machine had slept when the lead was last raised: so much of it is counted.
    slept: Mutex<u64>,
}

static LEAD: Lead = Lead { ahead: AtomicU64::new(0), slept: Mutex::new(0) };

/// A wall clock further off than this was set, or the machine slept.
const STEP: u64 = 1_000_000_000;

/// The time. It never decreases, is never behind the wall clock, and goes on at
/// least as fast as the machine's boot clock, so that neither a sleep of the
/// machine nor a wall clock set back stops a deadline or renews a key.
pub(crate) fn now() -> Moment {
    let start = START.get_or_init(|| Start { monotonic: Instant::now(), wall: wall(), boot: boot_clock() });
    reading(start, nanos(start.monotonic.elapsed()), wall(), boot_clock, &LEAD)
}

fn reading(start: &Start, elapsed: u64, wall: u64, boot: impl Fn() -> Option<u64>, lead: &Lead) -> Moment {
    let expected = start.wall.saturating_add(elapsed);
    let by_wall = wall.saturating_sub(expected);
    let told = expected.saturating_add(lead.ahead.load(Ordering::Relaxed));
    if wall.abs_diff(told) <= STEP {
        return Moment(expected.saturating_add(lead.raise(by_wall)));
    }
    // The wall clock was set, or the machine slept, while the monotonic clock stood still.
    let slept = match (start.boot, boot()) {
        (Some(then), Some(now)) => now.saturating_sub(then).saturating_sub(elapsed),
        _ => 0,
    };
    Moment(expected.saturating_add(lead.step(by_wall, slept)))
}

impl Lead {
    fn raise(&self, to: u64) -> u64 {
        let before = self.ahead.load(Ordering::Relaxed);
        if to <= before { before } else { self.ahead.fetch_max(to, Ordering::Relaxed).max(to) }
    }

    /// Adds what was slept since the last step, or follows the wall clock if that is further.
    fn step(&self, by_wall: u64, slept: u64) -> u64 {
        let mut counted = self.slept.lock().unwrap_or_else(PoisonError::into_inner);
        let ahead = self.ahead.load(Ordering::Relaxed).saturating_add(slept.saturating_sub(*counted));
        *counted = slept.max(*counted);
        self.raise(ahead.max(by_wall))
    }
}

const fn nanos(span: Duration) -> u64 {
    span.as_secs().saturating_mul(1_000_000_000).saturating_add(span.subsec_nanos() as u64)
}

fn wall() -> u64 {
    nanos(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// Time since boot, sleep included, where the system tells it without unsafe code.
fn boot_clock() -> Option<u64> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let text = std::fs::read_to_string("/proc/uptime").ok()?;
    let seconds = text.split_ascii_whitespace().next()?.parse::<f64>().ok()?;
    Duration::try_from_secs_f64(seconds).ok().map(nanos)
}

pub(crate) async fn sleep(wait: Duration) {
    tokio::time::sleep(wait).await;
}

/// What `work` gives, or an error if `limit` passes first. Not an `async fn`:
/// that would hold the work twice.
pub(crate) fn within<F: Future>(limit: Duration, work: F) -> Timeout<F> {
    tokio::time::timeout(limit, work)
}

/// Random bytes of the operating system's generator: keys come from nowhere else.
pub(crate) fn random_bytes() -> Result<[u8; 16], getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

/// What delays are drawn with.
#[derive(Debug, Default)]
pub(crate) enum Dice {
    #[default]
    System,
    /// Repeatable, for tests: the state of a SplitMix64 generator.
    Seeded(AtomicU64),
}

impl Dice {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self::Seeded(AtomicU64::new(seed))
    }

    pub(crate) fn roll(&self) -> u64 {
        match self {
            // Without the system's generator a delay need only differ from its neighbours'.
            Self::System => getrandom::u64().unwrap_or_else(|_| split_mix(wall())),
            Self::Seeded(state) => split_mix(state.fetch_add(GOLDEN, Ordering::Relaxed)),
        }
    }
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64 (Steele, Lea, Flood 2014): one output for one state.
const fn split_mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(GOLDEN);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(seconds: u64) -> u64 {
        seconds * 1_000_000_000
    }

    /// A clock that was started at 1,000 s of wall time and 500 s after boot.
    struct Clock {
        start: Start,
        lead: Lead,
    }

    impl Clock {
        fn new() -> Self {
            Self {
                start: Start { monotonic: Instant::now(), wall: secs(1000), boot: Some(secs(500)) },
                lead: Lead { ahead: AtomicU64::new(0), slept: Mutex::new(0) },
            }
        }

        fn read(&self, elapsed: u64, wall: u64, boot: u64) -> u64 {
            reading(&self.start, secs(elapsed), secs(wall), || Some(secs(boot)), &self.lead).0 / 1_000_000_000
        }
    }

    #[test]
    fn follows_the_wall_clock_forward_and_never_back() {
        let clock = Clock::new();
        assert_eq!(clock.read(10, 1010, 510), 1010);
        assert_eq!(clock.read(20, 5000, 520), 5000, "set forward");
        assert_eq!(clock.read(30, 900, 530), 5010, "set back: goes on from where it was");
        assert_eq!(clock.read(40, 910, 540), 5020);
    }

    #[test]
    fn a_sleep_counts_even_if_the_wall_clock_was_set_back() {
        let clock = Clock::new();
        assert_eq!(clock.read(10, 4610, 4110), 4610, "slept an hour, seen by the wall clock");
        let clock = Clock::new();
        assert_eq!(clock.read(10, 800, 4110), 4610, "slept an hour, seen by the boot clock alone");
        assert_eq!(clock.read(20, 4620, 4120), 4620);
        // Set forward, set back, then asleep: each of the three counts once.
        let clock = Clock::new();
        assert_eq!(clock.read(10, 4610, 510), 4610, "set an hour forward");
        assert_eq!(clock.read(20, 1020, 520), 4620, "set back");
        assert_eq!(clock.read(30, 1030, 4130), 8230, "slept an hour");
        assert_eq!(clock.read(40, 1040, 4140), 8240);
        // Asleep first, which the wall clock tells, and set back afterwards.
        let clock = Clock::new();
        assert_eq!(clock.read(10, 4610, 4110), 4610);
        assert_eq!(clock.read(20, 1020, 4120), 4620, "the sleep is not counted again");
    }

    #[test]
    fn the_boot_clock_is_read_only_after_a_step() {
        let clock = Clock::new();
        let unasked = || panic!("no step, and the boot clock was read");
        for (elapsed, wall) in
            [(10, secs(1010)), (20, secs(1020) - 500), (30, secs(1030) + 900_000_000), (40, secs(1040))]
        {
            let told = reading(&clock.start, secs(elapsed), wall, unasked, &clock.lead);
            assert!(told.0 >= wall);
        }
    }

    #[test]
    fn the_real_clock_goes_on() {
        let first = now();
        let second = now();
        assert!(second >= first);
        assert!(second.since(first) < Duration::from_secs(5));
        assert!(second.system_time() > UNIX_EPOCH);
    }

    #[test]
    fn seeded_dice_repeat_and_spread() {
        let rolls = |seed| {
            let dice = Dice::seeded(seed);
            [dice.roll(), dice.roll(), dice.roll()]
        };
        assert_eq!(rolls(7), rolls(7));
        assert_ne!(rolls(7), rolls(8));
        // The first outputs of SplitMix64 with seed 1234567, as published with the algorithm.
        assert_eq!(rolls(1_234_567), [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
        assert_ne!(Dice::System.roll(), Dice::System.roll());
    }
}
