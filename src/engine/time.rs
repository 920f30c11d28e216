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
    ///
    /// ```
    /// use oncekey::engine::Time;
    ///
    /// assert!(Time::from_millis(1_000) < Time::from_millis(2_000));
    /// assert_eq!(Time::from_millis(u64::MAX), Time::MAX);
    /// ```
    pub const fn from_millis(millis: u64) -> Self {
        if millis > Self::MAX.0 { Self::MAX } else { Self(millis) }
    }

    /// Milliseconds since the epoch.
    ///
    /// ```
    /// use oncekey::engine::Time;
    ///
    /// assert_eq!(Time::from_millis(1_735_689_600_000).as_millis(), 1_735_689_600_000); // 2025-01-01
    /// assert_eq!(Time::default().as_millis(), 0);
    /// ```
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// This moment plus `wait`, rounded up to a whole millisecond: what is
    /// waited for never comes early.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oncekey::engine::Time;
    ///
    /// let at = Time::from_millis(1_000);
    /// assert_eq!(at.after(Duration::from_secs(2)), Time::from_millis(3_000));
    /// assert_eq!(at.after(Duration::from_nanos(1)), Time::from_millis(1_001));
    /// assert_eq!(at.after(Duration::MAX), Time::MAX);
    /// ```
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self::from_millis(self.0.saturating_add(whole_millis(wait)))
    }

    /// How long after `earlier` this is; zero where it is not later.
    ///
    /// ```
    /// use std::time::Duration;
    /// use oncekey::engine::Time;
    ///
    /// let (sent, ended) = (Time::from_millis(1_000), Time::from_millis(1_300));
    /// assert_eq!(ended.since(sent), Duration::from_millis(300));
    /// assert_eq!(sent.since(ended), Duration::ZERO);
    /// ```
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
