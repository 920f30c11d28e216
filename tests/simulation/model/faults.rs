/// One kind of thing that goes wrong. A seed enables some of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Fault {
    /// The connection is refused: proof that nothing was sent.
    ConnectRefused,
    RequestLost,
    /// It arrives late: after the client's timeout, or after its next attempt.
    RequestLate,
    /// A proxy or the network delivers it twice.
    Duplicate,
    AnswerLost,
    AnswerLate,
    /// The head came, the body was cut, and the framing tells.
    BodyCut,
    /// The body was cut, and it was to end with the connection: nothing tells.
    HalfBody,
    /// Something on the way answers instead of the server, which sees nothing of it.
    GatewayBefore,
    /// Something on the way puts its own answer in the place of the server's.
    GatewayAfter,
    /// A refusal at the door: credentials, size, route.
    Turned,
    Limited,
    ErrorBefore,
    ErrorAfter,
    /// The server loses what it works on, before or after carrying it out.
    ServerDies,
    SlowHandler,
    /// The answer names a wait.
    NamedWait,
    /// The answer says whether to try again.
    ShouldRetry,
    Crash,
    /// The last `Ended` was not flushed when the machine went down.
    UnflushedEnd,
    /// Away for hours or days.
    LongAway,
    ClockBack,
    ClockForward,
    Suspend,
    SlowDisk,
    HookSlow,
    HookFails,
    TokenStale,
}

impl Fault {
    pub(crate) const ALL: [Self; 28] = [
        Self::ConnectRefused,
        Self::RequestLost,
        Self::RequestLate,
        Self::Duplicate,
        Self::AnswerLost,
        Self::AnswerLate,
        Self::BodyCut,
        Self::HalfBody,
        Self::GatewayBefore,
        Self::GatewayAfter,
        Self::Turned,
        Self::Limited,
        Self::ErrorBefore,
        Self::ErrorAfter,
        Self::ServerDies,
        Self::SlowHandler,
        Self::NamedWait,
        Self::ShouldRetry,
        Self::Crash,
        Self::UnflushedEnd,
        Self::LongAway,
        Self::ClockBack,
        Self::ClockForward,
        Self::Suspend,
        Self::SlowDisk,
        Self::HookSlow,
        Self::HookFails,
        Self::TokenStale,
    ];

    /// It befalls the process and its machine, not a message.
    pub(crate) const fn is_of_the_process(self) -> bool {
        matches!(
            self,
            Self::Crash | Self::UnflushedEnd | Self::LongAway | Self::ClockBack | Self::ClockForward | Self::Suspend
        )
    }

    const fn bit(self) -> u64 {
        1 << (self as u8)
    }
}

/// A set of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Faults(u64);

impl Faults {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const ANY: Self = Self(u64::MAX);

    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub(crate) const fn has(self, fault: Fault) -> bool {
        self.0 & fault.bit() != 0
    }

    pub(crate) const fn without(self, fault: Fault) -> Self {
        Self(self.0 & !fault.bit())
    }
}
