/// What must hold of every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Property {
    /// One operation is carried out at most once while its key lives.
    Once,
    /// `Ok`: carried out, and final.
    Ok,
    /// `NotApplied`: not carried out by anything sent so far, now or later.
    NotApplied,
    /// `Applied`: carried out.
    Applied,
    /// No key is sent after its lifetime, by the true time.
    Lifetime,
    /// Nor, by the operation's own clock, within the margin before its end.
    Margin,
    /// Sent is what was recorded as started last, and once.
    Recorded,
    /// The living state is the fold of what was recorded.
    Replay,
    /// Polled only once the server has shown that it knows the key.
    Evidence,
    /// Without a key, a POST is not sent again once it may have been received.
    Keyless,
    /// Not sent before the wait that an answer named is over.
    NamedWait,
    /// A run fails no more often than its attempts allow, polls no longer than its
    /// limit, and sends nothing past its deadline.
    Budget,
    /// Nothing is sent once the last answer was one that sending again must not change.
    Over,
    /// It ends.
    Ends,
    /// Two answers that cannot both be true leave the effect unknown.
    Contradiction,
    /// "Key reused" is a refusal for a drawn key's first attempt alone.
    Reused,
    /// The hook runs before each attempt.
    Hook,
    /// Where nothing goes wrong the caller gets the plain answer.
    Plain,
    /// Nothing panics: what the engine asks for is legal.
    Legal,
}

impl Property {
    pub(crate) const ALL: [Self; 19] = [
        Self::Once,
        Self::Ok,
        Self::NotApplied,
        Self::Applied,
        Self::Lifetime,
        Self::Margin,
        Self::Recorded,
        Self::Replay,
        Self::Evidence,
        Self::Keyless,
        Self::NamedWait,
        Self::Budget,
        Self::Over,
        Self::Ends,
        Self::Contradiction,
        Self::Reused,
        Self::Hook,
        Self::Plain,
        Self::Legal,
    ];

    /// Those that rest on what servers, networks and clocks do. The others
    /// hold whatever the world does.
    pub(crate) const fn rests_on_the_world(self) -> bool {
        matches!(
            self,
            Self::Once | Self::Ok | Self::NotApplied | Self::Applied | Self::Keyless | Self::Lifetime | Self::Plain
        )
    }
}

/// What the caller can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Ok,
    NotApplied,
    Applied,
    Unknown,
}

/// What truly happened, whatever the client was told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Truth {
    /// Which send each execution came from.
    pub(crate) executions: Vec<u32>,
    /// A safe request was answered at least once.
    pub(crate) read: bool,
    /// Sends below this one were said not to be carried out.
    pub(crate) disclaimed: u32,
    /// The first send that may have been received: by the true time, and by
    /// the operation's own clock.
    pub(crate) first: Option<(u64, u64)>,
    /// What the answer said on which the last recorded end rests.
    pub(crate) final_word: bool,
    /// What the caller was told last.
    pub(crate) told: Option<Told>,
    pub(crate) violated: [bool; Property::ALL.len()],
    pub(crate) worst: Option<Property>,
}

impl Truth {
    pub(crate) fn reset(&mut self) {
        let mut executions = std::mem::take(&mut self.executions);
        executions.clear();
        *self = Self { executions, ..Self::default() };
    }
}
