/// SplitMix64: every decision of a run comes from one seed.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Evenly from 0 up to, not including, `count`; 0 for 0.
    pub(crate) fn below(&mut self, count: u64) -> u64 {
        u64::try_from((u128::from(self.next()) * u128::from(count)) >> 64).unwrap_or(0)
    }

    /// Evenly, both ends included.
    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least) + 1)
    }

    /// So often in a hundred.
    pub(crate) fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    /// A time span: its magnitude is drawn first, so that short ones are as common as long ones.
    pub(crate) fn span(&mut self, least: u64, most: u64) -> u64 {
        let least = least.max(1);
        let doublings = (most / least).max(1).ilog2();
        let low = least << self.below(u64::from(doublings) + 1);
        self.between(low.min(most), low.saturating_mul(2).min(most))
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        let index = self.below(from.len() as u64);
        from[usize::try_from(index).unwrap_or(0)]
    }
}
