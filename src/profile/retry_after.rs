use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::header::{DATE, HeaderMap, HeaderName, RETRY_AFTER};

use crate::engine::Time;

const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

/// The shortest wait that an answer names (RFC 9110, 10.2.3): the larger of
/// `Retry-After` and `retry-after-ms`; `None` where neither can be used.
pub(super) fn named_wait(headers: &HeaderMap, received: Time) -> Option<Duration> {
    let seconds =
        only(headers, &RETRY_AFTER).and_then(|value| decimal(value, 1).or_else(|| until(value, headers, received)));
    let millis = only(headers, &RETRY_AFTER_MS).and_then(|value| decimal(value, 1000));
    seconds.max(millis)
}

/// The header's value, unless it came twice or is not text.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then(|| value.trim_matches([' ', '\t']))
}

/// ASCII digits with or without a fraction, in units of `1 / per_second`
/// seconds. What is too large saturates, what is too fine is rounded up.
fn decimal(value: &str, per_second: u32) -> Option<Duration> {
    let (whole, fraction) = value.split_once('.').unwrap_or((value, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let whole = whole.parse::<u64>().unwrap_or(u64::MAX);
    let (kept, rest) = fraction.split_at(fraction.len().min(9));
    let mut nanos = format!("{kept:0<9}").parse::<u32>().ok()?;
    if rest.bytes().any(|byte| byte != b'0') {
        nanos = nanos.saturating_add(1);
    }
    let exact = Duration::from_secs(whole).saturating_add(Duration::from_nanos(u64::from(nanos)));
    Some(exact / per_second)
}

/// The time until an HTTP-date, by the server's own clock where it shows it.
fn until(value: &str, headers: &HeaderMap, received: Time) -> Option<Duration> {
    let then = httpdate::parse_http_date(value).ok()?;
    let now = date(headers).unwrap_or_else(|| UNIX_EPOCH + Duration::from_millis(received.as_millis()));
    Some(then.duration_since(now).unwrap_or(Duration::ZERO))
}

/// The answer's own `Date`.
fn date(headers: &HeaderMap) -> Option<SystemTime> {
    httpdate::parse_http_date(headers.get(DATE)?.to_str().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECEIVED: Time = Time::from_millis(1_700_000_000_000); // Tue, 14 Nov 2023 22:13:20 GMT

    #[track_caller]
    fn reads(headers: &[(&'static str, &str)], wait: Option<u64>) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        assert_eq!(named_wait(&map, RECEIVED), wait.map(Duration::from_millis), "{headers:?}");
    }

    #[test]
    fn seconds_with_or_without_a_fraction() {
        reads(&[("retry-after", "2")], Some(2000));
        reads(&[("retry-after", " 007 ")], Some(7000));
        reads(&[("retry-after", "0")], Some(0));
        reads(&[("retry-after", "1.5")], Some(1500));
        reads(&[], None);
    }

    #[test]
    fn everything_else_counts_as_absent() {
        for value in [
            "",
            "-3",
            "+3",
            "soon",
            "1, 2",
            "1.",
            ".5",
            "1.2.3",
            "1e3",
            "0x10",
            "\u{b2}",
            "NaN",
            "2015-10-21T07:28:00Z",
            "1 2",
        ] {
            reads(&[("retry-after", value)], None);
        }
        reads(&[("retry-after", "1"), ("retry-after", "2")], None);
    }

    #[test]
    fn what_is_too_large_saturates_and_too_fine_rounds_up() {
        assert_eq!(decimal("18446744073709551616", 1), Some(Duration::from_secs(u64::MAX)));
        assert_eq!(decimal(&"9".repeat(4000), 1), Some(Duration::from_secs(u64::MAX)));
        assert_eq!(decimal("18446744073709551615.999999999999", 1), Some(Duration::MAX));
        assert_eq!(decimal("0.0000000000001", 1), Some(Duration::from_nanos(1)));
        assert_eq!(decimal("1.9999999999", 1), Some(Duration::from_secs(2)));
    }

    #[test]
    fn dates_in_all_three_forms_by_the_servers_clock_or_ours() {
        for date in ["Tue, 14 Nov 2023 22:13:25 GMT", "Tuesday, 14-Nov-23 22:13:25 GMT", "Tue Nov 14 22:13:25 2023"] {
            reads(&[("retry-after", date)], Some(5000));
            reads(&[("retry-after", date), ("date", "Tue, 14 Nov 2023 22:13:22 GMT")], Some(3000));
            reads(&[("retry-after", date), ("date", "yesterday")], Some(5000));
        }
        reads(&[("retry-after", "Tue, 14 Nov 2023 21:13:20 GMT")], Some(0));
        reads(&[("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT")], Some(251_702_300_799_000));
    }

    #[test]
    fn the_larger_of_both_headers_counts() {
        reads(&[("retry-after", "1"), ("retry-after-ms", "1500")], Some(1500));
        reads(&[("retry-after", "2"), ("retry-after-ms", "1500")], Some(2000));
    }
}
