const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

const fn mix(state: u64) -> u64 {
    let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Choices, the same for the same seed.
pub(crate) struct Dice(u64);

impl Dice {
    /// Mixed, or each seed's choices were the last one's but for the first.
    pub(crate) const fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// One of `0..count`.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.word() % u64::try_from(count).unwrap()).unwrap()
    }

    pub(crate) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}
