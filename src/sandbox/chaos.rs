//! Faults drawn from a seed.

use super::fault::Fault;
use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub(super) struct Chaos {
    seed: u64,
    per_mille: u16,
}

impl Chaos {
    pub(super) fn new(seed: u64, per_mille: u16) -> Self {
        Self { seed, per_mille }
    }

    /// The fault for the request of that number. A pure function of both, so that scripted faults
    /// in between don't shift what the others draw.
    pub(super) fn draw(self, number: usize) -> Option<Fault> {
        let dice = mix(self.seed ^ mix(u64::try_from(number).unwrap_or(u64::MAX)));
        if dice % 1000 >= u64::from(self.per_mille) {
            return None;
        }
        let mut faults = list();
        let len = u64::try_from(faults.len()).unwrap_or(u64::MAX);
        let index = usize::try_from(mix(dice) % len).unwrap_or(0);
        Some(faults.swap_remove(index))
    }
}

/// Kept in step with the documentation of `SandboxBuilder::chaos`.
fn list() -> Vec<Fault> {
    vec![
        Fault::closed_before_reading(),
        Fault::reset_before_reading(),
        Fault::closed_without_executing(),
        Fault::reset_without_executing(),
        Fault::answer_lost(),
        Fault::answer_lost().with_reset(),
        Fault::head_cut(20),
        Fault::body_cut(5),
        Fault::body_cut(5).chunked(),
        Fault::unframed_cut(5),
        Fault::garbled_head(),
        Fault::truncated_json(5),
        Fault::drip(16, Duration::from_millis(1)),
        Fault::duplicate(),
        Fault::in_progress(),
        Fault::html(200),
        Fault::status(429),
        Fault::status(500),
        Fault::status(502),
        Fault::status(503),
        Fault::status(504),
        Fault::status(503).executing(),
        Fault::status(504).executing(),
    ]
}

/// SplitMix64's finaliser.
fn mix(seed: u64) -> u64 {
    let z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(seed: u64, per_mille: u16) -> Vec<Option<Fault>> {
        let chaos = Chaos::new(seed, per_mille);
        (1..=2000).map(|number| chaos.draw(number)).collect()
    }

    #[test]
    fn the_same_seed_draws_the_same_faults_in_the_share_asked_for() {
        assert_eq!(draws(7, 250), draws(7, 250));
        assert_ne!(draws(7, 250), draws(8, 250));
        let share = draws(7, 250).iter().flatten().count();
        assert!((400..600).contains(&share), "{share} of 2000");
        assert_eq!(draws(7, 0).iter().flatten().count(), 0);
        let all = draws(7, 1000);
        assert!(list().into_iter().all(|fault| all.contains(&Some(fault))));
    }
}
