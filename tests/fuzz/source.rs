//! Where a case's choices come from: an endless generator, or the bytes that a fuzzer hands in.

/// The same code makes a case from either.
pub(crate) struct Source<'a> {
    bytes: Option<&'a [u8]>,
    state: u64,
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64's output for one state.
pub(crate) const fn mix(state: u64) -> u64 {
    let z = state.wrapping_add(GOLDEN);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl<'a> Source<'a> {
    /// Choices without an end, the same for the same seed.
    pub(crate) const fn seeded(seed: u64) -> Self {
        Self { bytes: None, state: seed }
    }

    /// Choices read off these bytes; zeros once they are used up.
    #[allow(dead_code)] // for the targets under fuzz/
    pub(crate) const fn of(bytes: &'a [u8]) -> Self {
        Self { bytes: Some(bytes), state: 0 }
    }

    fn take(&mut self, count: usize) -> u64 {
        let Some(bytes) = &mut self.bytes else {
            self.state = self.state.wrapping_add(GOLDEN);
            return mix(self.state);
        };
        let (taken, rest) = bytes.split_at(count.min(bytes.len()));
        *bytes = rest;
        taken.iter().fold(0, |word, byte| (word << 8) | u64::from(*byte))
    }

    pub(crate) fn word(&mut self) -> u64 {
        self.take(8)
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.take(1).to_le_bytes()[0]
    }

    /// One of `0..count`.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        let wide = if count <= 256 { 1 } else { 4 };
        let count = u64::try_from(count.max(1)).unwrap();
        usize::try_from(self.take(wide) % count).unwrap()
    }

    pub(crate) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    pub(crate) fn pick<'t, T>(&mut self, from: &'t [T]) -> &'t T {
        &from[self.below(from.len())]
    }

    /// Mostly short, sometimes up to the longest.
    pub(crate) fn length(&mut self, longest: usize) -> usize {
        match self.below(32) {
            0 => self.below(longest + 1),
            1..=7 => self.below(longest.min(300) + 1),
            _ => self.below(longest.min(24) + 1),
        }
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.byte()).collect()
    }

    /// Any magnitude is as likely as any other.
    pub(crate) fn number(&mut self) -> u64 {
        let bits = u32::try_from(self.below(65)).unwrap();
        if bits == 0 { 0 } else { self.word() >> (64 - bits) }
    }
}
