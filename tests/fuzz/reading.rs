//! What a wait means, worked out by other means than the reader's own.

use std::time::Duration;

use http::{HeaderMap, HeaderValue};

/// What is known of the wait that a header names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// The header cannot be used.
    Absent,
    /// It is between these two.
    Named(Duration, Duration),
    /// Nothing: it was bent.
    Unknown,
}

impl Wait {
    pub(crate) const fn exactly(wait: Duration) -> Self {
        Self::Named(wait, wait)
    }

    /// Of two headers the larger counts.
    pub(crate) fn or_longer(self, other: Self) -> Self {
        match (self, other) {
            (Self::Absent, wait) | (wait, Self::Absent) => wait,
            (Self::Named(least, most), Self::Named(other_least, other_most)) => {
                Self::Named(least.max(other_least), most.max(other_most))
            }
            (Self::Named(least, _), Self::Unknown) | (Self::Unknown, Self::Named(least, _)) => {
                Self::Named(least, Duration::MAX)
            }
            (Self::Unknown, Self::Unknown) => Self::Unknown,
        }
    }

    #[track_caller]
    pub(crate) fn allows(self, wait: Option<Duration>, headers: &HeaderMap) {
        let fits = match (self, wait) {
            (Self::Unknown, _) | (Self::Absent, None) => true,
            (Self::Named(least, most), Some(wait)) => least <= wait && wait <= most,
            (Self::Absent, Some(_)) | (Self::Named(..), None) => false,
        };
        assert!(fits, "{self:?}, and it was read as {wait:?}: {headers:?}");
    }
}

/// The header's one value, if that is all digits: how many seconds or milliseconds it says.
pub(crate) fn plain_digits(headers: &HeaderMap, name: &str) -> Option<u64> {
    let lines: Vec<&HeaderValue> = headers.get_all(name).iter().collect();
    let [line] = lines.as_slice() else { return None };
    let value = line.as_bytes().trim_ascii();
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let ten = |sum: u64, digit: &u8| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    Some(value.iter().fold(0, ten))
}

/// The shortest wait that plain digits in either header call for.
pub(crate) fn least_by_digits(headers: &HeaderMap) -> Option<Duration> {
    let seconds = plain_digits(headers, "retry-after").map(Duration::from_secs);
    seconds.max(plain_digits(headers, "retry-after-ms").map(Duration::from_millis))
}

const DAYS: [(&str, &str); 7] = [
    ("Thu", "Thursday"),
    ("Fri", "Friday"),
    ("Sat", "Saturday"),
    ("Sun", "Sunday"),
    ("Mon", "Monday"),
    ("Tue", "Tuesday"),
    ("Wed", "Wednesday"),
];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The last second of 2069: what two digits of a year can say.
pub(crate) const LAST_OF_TWO_DIGITS: u64 = 3_155_759_999;
/// The last second of 9999.
pub(crate) const LAST: u64 = 253_402_300_799;

/// A moment in one of the three forms of an HTTP-date (RFC 9110, 5.6.7), counted day by day.
pub(crate) fn date(seconds: u64, form: usize) -> String {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let time = format!("{:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60);
    let (short, long) = DAYS[usize::try_from(days % 7).unwrap()];
    // The calendar repeats after 400 years.
    let (mut year, mut left) = (1970 + 400 * (days / 146_097), days % 146_097);
    loop {
        let length = if leap(year) { 366 } else { 365 };
        if left < length {
            break;
        }
        left -= length;
        year += 1;
    }
    let mut month = 0;
    loop {
        let length = match month {
            1 if leap(year) => 29,
            1 => 28,
            3 | 5 | 8 | 10 => 30,
            _ => 31,
        };
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    let (day, month) = (left + 1, MONTHS[month]);
    match form {
        0 => format!("{short}, {day:02} {month} {year} {time} GMT"),
        1 => format!("{long}, {day:02}-{month}-{:02} {time} GMT", year % 100),
        _ => format!("{short} {month} {day:2} {time} {year}"),
    }
}
