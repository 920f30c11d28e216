//! The three forms of an HTTP-date (RFC 9110, 5.6.7), from now.
#![allow(clippy::disallowed_methods)] // dates around the real now are what is tested

use std::time::{Duration, SystemTime};

use crate::data::Reply;

/// The reply with dates in the place of `$IMF+2` and the like.
pub(crate) fn filled_in(mut reply: Reply) -> Reply {
    for value in reply.headers.values_mut().filter(|value| value.starts_with('$')) {
        *value = date(value);
    }
    reply
}

fn date(mark: &str) -> String {
    let sign = mark.find(['+', '-']).unwrap_or_else(|| panic!("no time in {mark}"));
    let (form, seconds) = mark.split_at(sign);
    let offset = Duration::from_secs(seconds[1..].parse().unwrap());
    let now = SystemTime::now();
    let at = if seconds.starts_with('-') { now - offset } else { now + offset };
    in_form(form, &httpdate::fmt_http_date(at))
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT` or
/// `Sun Nov  6 08:49:37 1994`, from the first.
fn in_form(form: &str, imf: &str) -> String {
    let (day, month, year, time) = (&imf[5..7], &imf[8..11], &imf[12..16], &imf[17..25]);
    match form {
        "$IMF" => imf.to_owned(),
        "$RFC850" => format!("{}, {day}-{month}-{} {time} GMT", weekday(&imf[..3]), &year[2..]),
        "$ASCTIME" => format!("{} {month} {:>2} {time} {year}", &imf[..3], day.trim_start_matches('0')),
        _ => panic!("no such form of a date: {form}"),
    }
}

fn weekday(short: &str) -> &'static str {
    let days = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
    days.into_iter().find(|day| day.starts_with(short)).unwrap()
}

#[test]
fn all_forms_name_the_same_time() {
    let imf = "Sun, 06 Nov 1994 08:49:37 GMT";
    assert_eq!(in_form("$RFC850", imf), "Sunday, 06-Nov-94 08:49:37 GMT");
    assert_eq!(in_form("$ASCTIME", imf), "Sun Nov  6 08:49:37 1994");
    for form in ["$IMF", "$RFC850", "$ASCTIME"] {
        let read = httpdate::parse_http_date(&date(&format!("{form}+2"))).unwrap();
        let ahead = read.duration_since(SystemTime::now()).unwrap_or_default();
        assert!(ahead <= Duration::from_secs(2) && read > SystemTime::now() - Duration::from_secs(1));
    }
}
