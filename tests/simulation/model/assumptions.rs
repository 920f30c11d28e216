/// What the promise rests on. All hold, or one of them is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Assumption {
    KeyHonoured,
    KeyRemembered,
    NoLiveReclaim,
    KeptWithTheDeed,
    Clock,
    Lateness,
    RecordKept,
    RefusedUnsent,
    CodesAndMarks,
    RefusalsAreTrue,
    SuccessesAreTrue,
    LimitsBeforeWork,
    GoneIsDone,
    GivenKeys,
}

impl Assumption {
    pub(crate) const ALL: [Self; 14] = [
        Self::KeyHonoured,
        Self::KeyRemembered,
        Self::NoLiveReclaim,
        Self::KeptWithTheDeed,
        Self::Clock,
        Self::Lateness,
        Self::RecordKept,
        Self::RefusedUnsent,
        Self::CodesAndMarks,
        Self::RefusalsAreTrue,
        Self::SuccessesAreTrue,
        Self::LimitsBeforeWork,
        Self::GoneIsDone,
        Self::GivenKeys,
    ];

    /// Its number, as the module docs give it.
    pub(crate) const fn number(self) -> &'static str {
        ["A1", "A2", "A3", "A4", "A5", "A6", "A7", "A8", "A9", "A10", "A11", "A12", "A13", "A14"][self as usize]
    }

    pub(crate) fn numbered(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|assumption| assumption.number().eq_ignore_ascii_case(name))
    }

    /// What happens where it is broken.
    pub(crate) const fn broken(self) -> &'static str {
        match self {
            Self::KeyHonoured => "the route ignores keys",
            Self::KeyRemembered => "the server forgets keys before their time",
            Self::NoLiveReclaim => "a lock is reclaimed from a handler that still runs",
            Self::KeptWithTheDeed => "a server that dies or fails after the deed forgets the key",
            Self::Clock => "the clock goes back unseen by more than the margin",
            Self::Lateness => "a request arrives days late",
            Self::RecordKept => "a crash loses entries that were written",
            Self::RefusedUnsent => "a refused connection delivered the request",
            Self::CodesAndMarks => "a gateway fakes the idempotency layer's codes and marks",
            Self::RefusalsAreTrue => "a 4xx comes for what was carried out, or will be by a copy",
            Self::SuccessesAreTrue => "a gateway answers 2xx with JSON for what it never passed on",
            Self::LimitsBeforeWork => "a 429 comes after the work, against the profile's promise",
            Self::GoneIsDone => "a gateway says 404 to a DELETE whose 404 counts as done",
            Self::GivenKeys => "a caller's key is older than the caller says",
        }
    }
}
