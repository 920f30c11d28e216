//! The values of `Retry-After`.

use super::clock::ahead;
use http::HeaderValue;
use std::time::{Duration, SystemTime};

/// Written when the answer is, since a date depends on the clock.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum RetryAfter {
    Text(HeaderValue),
    Date(DateForm, Duration),
}

/// The three forms of an HTTP date (RFC 9110, section 5.6.7).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DateForm {
    Imf,
    Rfc850,
    Asctime,
}

impl RetryAfter {
    pub(super) fn at(&self, now: SystemTime) -> HeaderValue {
        match self {
            Self::Text(value) => value.clone(),
            Self::Date(form, by) => date(*form, ahead(now, *by)),
        }
    }
}

pub(super) fn date(form: DateForm, time: SystemTime) -> HeaderValue {
    let imf = httpdate::fmt_http_date(time);
    let text = match form {
        DateForm::Imf => imf,
        DateForm::Rfc850 | DateForm::Asctime => old_form(form, &imf).unwrap_or(imf),
    };
    HeaderValue::try_from(text).expect("a date is ASCII")
}

/// From `Sun, 06 Nov 1994 08:49:37 GMT`.
fn old_form(form: DateForm, imf: &str) -> Option<String> {
    let mut parts = imf.split(' ');
    let weekday = parts.next()?.trim_end_matches(',');
    let (day, month, year, time) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    if form == DateForm::Asctime {
        let day = day.trim_start_matches('0');
        return Some(format!("{weekday} {month} {day:>2} {time} {year}"));
    }
    let weekday = match weekday {
        "Tue" => "Tuesday".to_owned(),
        "Wed" => "Wednesday".to_owned(),
        "Thu" => "Thursday".to_owned(),
        "Sat" => "Saturday".to_owned(),
        other => format!("{other}day"),
    };
    let year = year.get(2..)?;
    Some(format!("{weekday}, {day}-{month}-{year} {time} GMT"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_is_a_date() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        for (form, expected) in [
            (DateForm::Imf, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (DateForm::Rfc850, "Sunday, 06-Nov-94 08:49:37 GMT"),
            (DateForm::Asctime, "Sun Nov  6 08:49:37 1994"),
        ] {
            assert_eq!(date(form, time), expected);
            for day in 0..7 {
                let time = time + Duration::from_secs(day * 86_400);
                let text = date(form, time);
                let parsed = httpdate::parse_http_date(text.to_str().unwrap()).unwrap();
                assert_eq!(parsed, time);
            }
        }
    }
}
