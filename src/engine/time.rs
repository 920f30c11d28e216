use core::fmt;
use core::time::Duration;

/// A moment: milliseconds since the Unix epoch, in UTC.
///
/// The engine has no clock of its own; every moment is handed to it. All
/// arithmetic saturates at [`Time::MAX`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

impl Time {
    /// The last moment there is here: the end of the year 9999, the last one
    /// that an HTTP-date (RFC 9110, 5.6.7) can name.
    pub const MAX: Self = Self(253_402_300_799_999);

    /// The moment this many milliseconds after the epoch, at most [`Time::MAX`].
    pub const fn from_millis(millis: u64) -> Self {
        if millis > Self::MAX.0 { Self::MAX } else { Self(millis) }
    }

    /// Milliseconds since the epoch.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// This moment plus `wait`, rounded up to a whole millisecond: what is
    /// waited for never comes early.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self::from_millis(self.0.saturating_add(whole_millis(wait)))
    }

    /// How long after `earlier` this is; zero where it is not later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

fn whole_millis(wait: Duration) -> u64 {
    u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Time({} ms)", self.0)
    }
}
