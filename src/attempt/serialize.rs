use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::{Attempt, WaitReason};
use crate::engine::{Advice, AttemptKind, Reach, Verdict, Why};

/// For logs and reports: a flat record of fields whose names and words stay.
///
/// | field | what |
/// |---|---|
/// | `number` | from 1 |
/// | `kind` | `first`, `retry`, `poll` |
/// | `started_at` | RFC 3339, UTC, milliseconds |
/// | `duration_ms` | milliseconds |
/// | `status` | of a complete head, else null |
/// | `failure` | null, or [`Failure::code`](super::Failure::code) |
/// | `reach` | `unsent`, `refused`, `ambiguous`, `accepted`, `in_progress` (accepted, and it knows the key), `applied_unread`, `applied`, `rejected`; null if it has not ended |
/// | `why` | null, or as of [`Why`], in snake case |
/// | `advice` | null, `retry`, `retry_after`, `stop` |
/// | `retry_after_ms` | null, or what the server asked for |
/// | `replay_mark` | whether the answer carried it |
/// | `wait_ms` | the wait that followed, in milliseconds |
/// | `wait_reason` | null, `backoff`, `poll`, `retry_after`, `earlier` |
/// | `request_id` | the server's, else null |
/// | `server_date` | the answer's `Date` as RFC 3339, else null |
/// | `looked_up` | the status of the original, where the answer named one and it was fetched, else null |
impl Serialize for Attempt {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let advice = self.verdict.map(|verdict| verdict.advice());
        let mut fields = serializer.serialize_struct("Attempt", 16)?;
        fields.serialize_field("number", &self.number)?;
        fields.serialize_field("kind", kind(self.kind))?;
        fields.serialize_field("started_at", &rfc_3339(self.started_at))?;
        fields.serialize_field("duration_ms", &millis(self.duration))?;
        fields.serialize_field("status", &self.status.map(|status| status.as_u16()))?;
        fields.serialize_field("failure", &self.failure.map(super::Failure::code))?;
        fields.serialize_field("reach", &self.verdict.map(|verdict| reach(verdict.reach())))?;
        fields.serialize_field("why", &self.verdict.map(|verdict| why(verdict.why())))?;
        fields.serialize_field("advice", &advice.map(advised))?;
        fields.serialize_field("retry_after_ms", &advice.and_then(asked))?;
        fields.serialize_field("replay_mark", &self.verdict.as_ref().is_some_and(Verdict::marked))?;
        fields.serialize_field("wait_ms", &millis(self.wait))?;
        fields.serialize_field("wait_reason", &self.wait_reason.map(WaitReason::code))?;
        fields.serialize_field("request_id", &self.request_id)?;
        fields.serialize_field("server_date", &self.date().map(rfc_3339))?;
        fields.serialize_field("looked_up", &self.looked_up.map(|status| status.as_u16()))?;
        fields.end()
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

const fn kind(kind: AttemptKind) -> &'static str {
    match kind {
        AttemptKind::First => "first",
        AttemptKind::Retry => "retry",
        AttemptKind::Poll => "poll",
    }
}

const fn reach(reach: Reach) -> &'static str {
    match reach {
        Reach::Unsent => "unsent",
        Reach::Refused => "refused",
        Reach::Ambiguous => "ambiguous",
        Reach::Accepted { knows_key: false } => "accepted",
        Reach::Accepted { knows_key: true } => "in_progress",
        Reach::AppliedUnread => "applied_unread",
        Reach::Applied => "applied",
        Reach::Rejected => "rejected",
    }
}

const fn why(why: Why) -> &'static str {
    match why {
        Why::NotSent => "not_sent",
        Why::NoHead => "no_head",
        Why::CutBody => "cut_body",
        Why::TooLarge => "too_large",
        Why::WrongType => "wrong_type",
        Why::Redirect => "redirect",
        Why::InProgress => "in_progress",
        Why::KeyReused => "key_reused",
        Why::AlreadyProcessed => "already_processed",
        Why::StoredError => "stored_error",
        Why::Pending => "pending",
        Why::Unauthorized => "unauthorized",
        Why::RateLimited => "rate_limited",
        Why::ServerError => "server_error",
        Why::Refusal => "refusal",
        Why::Conflict => "conflict",
        Why::Success => "success",
        Why::Other => "other",
    }
}

const fn advised(advice: Advice) -> &'static str {
    match advice {
        Advice::Retry => "retry",
        Advice::RetryAfter(_) => "retry_after",
        Advice::Stop => "stop",
    }
}

fn asked(advice: Advice) -> Option<u64> {
    match advice {
        Advice::RetryAfter(wait) => Some(millis(wait)),
        Advice::Retry | Advice::Stop => None,
    }
}

/// UTC, to the millisecond; before 1970 is 1970.
fn rfc_3339(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = civil(days);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        second / 3600,
        second % 3600 / 60,
        second % 60,
        since.subsec_millis()
    )
}

/// The date of this many days after 1970-01-01, by eras of 400 years that
/// begin in March (Hinnant, `civil_from_days`).
const fn civil(days: u64) -> (u64, u64, u64) {
    let days = days.saturating_add(719_468);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (era * 400 + year_of_era + if month <= 2 { 1 } else { 0 }, month, day)
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use serde_json::json;

    use super::super::{DateText, Failure};
    use super::*;

    fn at(millis: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(millis)
    }

    #[test]
    fn an_attempt_as_json() {
        let mut attempt = Attempt::started(3, AttemptKind::Retry, at(1_000_000_000_123));
        let unended = json!({
            "number": 3, "kind": "retry", "started_at": "2001-09-09T01:46:40.123Z", "duration_ms": 0,
            "status": null, "failure": null, "reach": null, "why": null, "advice": null, "retry_after_ms": null,
            "replay_mark": false, "wait_ms": 0, "wait_reason": null, "request_id": null, "server_date": null,
            "looked_up": null,
        });
        assert_eq!(serde_json::to_value(&attempt).unwrap(), unended);
        attempt.duration = Duration::from_micros(4999);
        attempt.status = Some(StatusCode::CONFLICT);
        attempt.failure = Some(Failure::StalledBody);
        let advice = Advice::RetryAfter(Duration::from_millis(1500));
        attempt.verdict =
            Some(Verdict::new(Reach::Accepted { knows_key: true }, advice, Why::InProgress).with_mark(true));
        attempt.wait = Duration::from_millis(1503);
        attempt.wait_reason = Some(WaitReason::RetryAfter);
        attempt.request_id = Some("req_1".into());
        attempt.date = DateText::new(b"Sun, 06 Nov 1994 08:49:37 GMT");
        attempt.looked_up = Some(StatusCode::OK);
        let ended = json!({
            "number": 3, "kind": "retry", "started_at": "2001-09-09T01:46:40.123Z", "duration_ms": 4,
            "status": 409, "failure": "stalled_body", "reach": "in_progress", "why": "in_progress",
            "advice": "retry_after", "retry_after_ms": 1500, "replay_mark": true, "wait_ms": 1503,
            "wait_reason": "retry_after", "request_id": "req_1", "server_date": "1994-11-06T08:49:37.000Z",
            "looked_up": 200,
        });
        assert_eq!(serde_json::to_value(&attempt).unwrap(), ended);
    }

    #[test]
    fn dates_of_all_kinds_of_years() {
        let days = [
            (0, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (1_709_164_800, "2024-02-29"),
            (1_735_603_200, "2024-12-31"),
            (1_740_787_200, "2025-03-01"),
            (4_107_542_400, "2100-03-01"),
        ];
        for (seconds, date) in days {
            assert_eq!(rfc_3339(at(seconds * 1000)), format!("{date}T00:00:00.000Z"));
            // The HTTP-date of the same moment, by another hand.
            let http = httpdate::fmt_http_date(at(seconds * 1000));
            assert_eq!(httpdate::parse_http_date(&http).unwrap(), at(seconds * 1000));
        }
        assert_eq!(rfc_3339(UNIX_EPOCH - Duration::from_secs(1)), "1970-01-01T00:00:00.000Z");
    }
}
