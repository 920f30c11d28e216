//! Asking after an operation with GET: its status resource, or the original
//! that the server says it carried out before.

use http::header::{ACCEPT, ACCEPT_LANGUAGE, EXPECT, LOCATION, RANGE, USER_AGENT};
use http::{HeaderMap, Method, StatusCode};
use url::Url;

use crate::engine::{Advice, KeyOrigin, Reach, Verdict, Why};
use crate::profile::Profile;
use crate::submission::Submission;

/// The request that asks after an operation: without its key and its body, and
/// to another origin without what is meant for its own.
pub(crate) fn asking(of: &Submission, url: Url, profile: &Profile) -> Submission {
    let same_origin = url.origin() == of.url.origin();
    let is_kept = |name: &http::HeaderName| {
        if !same_origin {
            // Any other may be an API's key, or name its host.
            return matches!(*name, ACCEPT | ACCEPT_LANGUAGE | USER_AGENT);
        }
        *name != EXPECT
            && !name.as_str().starts_with("content-")
            // Conditions are the operation's: a 304 to a look says nothing of it.
            && *name != RANGE
            && !name.as_str().starts_with("if-")
            && name != profile.key_header()
    };
    Submission {
        method: Method::GET,
        url,
        headers: of.headers.iter().filter(|(name, _)| is_kept(name)).cloned().collect(),
        body: None,
        key: None,
        origin: KeyOrigin::None,
        gone_is_done: false,
        id: None,
    }
}

/// What an answer of a status resource says of the operation, from what it says
/// of the look itself.
pub(crate) fn of_status(read: Verdict, status: Option<StatusCode>) -> Verdict {
    let in_doubt = || read.with_reach(Reach::Ambiguous).with_advice(again(read));
    match (read.reach(), read.why(), status.map(|status| status.as_u16())) {
        (Reach::Applied | Reach::Unsent, ..) => read,
        (Reach::Accepted { .. }, Why::Pending, _) => pending(read),
        // The caller's judge, of this very operation.
        (Reach::Refused, _, Some(200..=299)) => read.with_reach(Reach::Rejected).with_advice(Advice::Stop),
        // It may not be there yet, or not any more: that is no refusal of the operation.
        (Reach::Refused, _, Some(404 | 410)) => in_doubt(),
        // The look was turned away, which says nothing of the operation.
        (Reach::Refused, ..) => read,
        // A cut 2xx is proof of an order that was sent, not of a look.
        (Reach::AppliedUnread | Reach::Accepted { .. }, ..) => in_doubt(),
        (Reach::Ambiguous | Reach::Rejected, ..) => read.with_reach(Reach::Ambiguous),
    }
}

/// Still running, to be looked at again.
pub(crate) fn pending(read: Verdict) -> Verdict {
    let reach = match read.reach() {
        Reach::Accepted { knows_key: true } => read.reach(),
        _ => Reach::Accepted { knows_key: false },
    };
    read.with_reach(reach).with_why(Why::Pending).with_advice(again(read)).with_link(true)
}

const fn again(read: Verdict) -> Advice {
    match read.advice() {
        Advice::RetryAfter(wait) => Advice::RetryAfter(wait),
        Advice::Retry | Advice::Stop => Advice::Retry,
    }
}

/// Where a 303 of a status resource points to, on the same origin.
pub(crate) fn see_other(status: StatusCode, headers: &HeaderMap, base: &Url) -> Option<Url> {
    let target = headers.get(LOCATION).filter(|_| status == StatusCode::SEE_OTHER)?;
    let url = base.join(target.to_str().ok()?).ok()?;
    (url.origin() == base.origin()).then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_status_resource_says() {
        let verdict = Verdict::new;
        let pending = verdict(Reach::Accepted { knows_key: false }, Advice::Retry, Why::Pending).with_link(true);
        for (read, status, said) in [
            (
                verdict(Reach::Applied, Advice::Stop, Why::Success),
                200,
                verdict(Reach::Applied, Advice::Stop, Why::Success),
            ),
            (verdict(Reach::Accepted { knows_key: false }, Advice::Stop, Why::Pending), 202, pending),
            (
                verdict(Reach::Refused, Advice::Stop, Why::Refusal),
                404,
                verdict(Reach::Ambiguous, Advice::Retry, Why::Refusal),
            ),
            (
                verdict(Reach::Refused, Advice::Stop, Why::Refusal),
                403,
                verdict(Reach::Refused, Advice::Stop, Why::Refusal),
            ),
            (
                verdict(Reach::Refused, Advice::Stop, Why::Refusal),
                200,
                verdict(Reach::Rejected, Advice::Stop, Why::Refusal),
            ),
            (
                verdict(Reach::AppliedUnread, Advice::Retry, Why::CutBody),
                200,
                verdict(Reach::Ambiguous, Advice::Retry, Why::CutBody),
            ),
            (
                verdict(Reach::Ambiguous, Advice::Retry, Why::ServerError),
                503,
                verdict(Reach::Ambiguous, Advice::Retry, Why::ServerError),
            ),
        ] {
            assert_eq!(of_status(read, StatusCode::from_u16(status).ok()), said, "{status}");
        }
    }

    #[test]
    fn another_origin_gets_no_credentials() {
        let header = |name: &'static str, value: &'static str| {
            (http::HeaderName::from_static(name), http::HeaderValue::from_static(value))
        };
        let of = Submission {
            method: Method::POST,
            url: Url::parse("https://api.example/pay").unwrap(),
            headers: vec![
                header("authorization", "Bearer t"),
                header("content-type", "application/json"),
                header("idempotency-key", "k"),
                header("if-none-match", "*"),
                header("range", "bytes=0-1"),
                header("accept", "application/json"),
                header("x-api-key", "k"),
                header("host", "api.example"),
                header("content-md5", "m"),
                header("expect", "100-continue"),
            ],
            body: Some("{}".into()),
            key: None,
            origin: KeyOrigin::Drawn,
            gone_is_done: false,
            id: None,
        };
        let names = |url: &str| {
            let look = asking(&of, Url::parse(url).unwrap(), &Profile::generic());
            assert!(look.body.is_none() && look.key.is_none() && look.method == Method::GET);
            look.headers.iter().map(|(name, _)| name.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names("https://api.example/status/7"), ["authorization", "accept", "x-api-key", "host"]);
        assert_eq!(names("https://other.example/status/7"), ["accept"]);
        assert_eq!(names("http://api.example/status/7"), ["accept"]);
    }
}
