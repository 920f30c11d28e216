//! How a record is written: a file format, in version 1.
//!
//! An entry is one line of JSON, `{"v":1,"<fact>":{..}}`, with times in
//! milliseconds since the epoch and durations as `[seconds, nanoseconds]`. A
//! request and an answer are one line of JSON and, behind it, the body's bytes
//! as they are. What a newer version wrote is refused, never guessed.

use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use serde_json::{Map, Value, json};
use url::Url;

use super::{JournalError, JournalErrorKind, StoredAnswer, StoredBody, StoredRequest};
use crate::engine::{
    Advice, AttemptKind, Effect, Entry, KeyOrigin, MethodKind, Owner, Reach, StopReason, Time, Verdict, Why,
};
use crate::fingerprint::Fingerprint;

/// The version that is written, and the newest that is read.
pub const VERSION: u64 = 1;

/// Words of the format for values without fields.
macro_rules! words {
    ($write:ident, $read:ident, $type:ident, $($word:literal $variant:ident),+) => {
        const fn $write(value: $type) -> &'static str {
            match value {
                $($type::$variant => $word,)+
            }
        }

        fn $read(word: &str) -> Option<$type> {
            match word {
                $($word => Some($type::$variant),)+
                _ => None,
            }
        }
    };
}

words!(method_word, method_kind, MethodKind, "safe" Safe, "idempotent" Idempotent, "other" Other);
words!(kind_word, attempt_kind, AttemptKind, "first" First, "retry" Retry, "poll" Poll);
words!(effect_word, effect, Effect, "not_applied" NotApplied, "applied" Applied, "unknown" Unknown);
words!(
    reason_word, stop_reason, StopReason,
    "request" Request, "authorize" Authorize, "attempts" Attempts, "polls" Polls, "deadline" Deadline,
    "key_expired" KeyExpired, "keyless" Keyless, "schedule" Schedule
);
words!(
    why_word, why, Why,
    "not_sent" NotSent, "no_head" NoHead, "cut_body" CutBody, "too_large" TooLarge, "wrong_type" WrongType,
    "redirect" Redirect, "in_progress" InProgress, "key_reused" KeyReused, "already_processed" AlreadyProcessed,
    "stored_error" StoredError, "pending" Pending, "unauthorized" Unauthorized, "rate_limited" RateLimited,
    "server_error" ServerError, "refusal" Refusal, "conflict" Conflict, "success" Success, "other" Other
);

/// The entry as it is stored.
///
/// ```
/// use oncekey::engine::{Entry, StopReason, Time};
/// use oncekey::journal::codec;
///
/// let entry = Entry::Stopped { reason: StopReason::Deadline, at: Time::from_millis(1_767_225_600_000) };
/// let line = codec::encode_entry(&entry);
/// assert!(line.contains(r#""reason":"deadline""#));
/// assert_eq!(codec::decode_entry(&line)?, entry);
/// # Ok::<(), oncekey::journal::JournalError>(())
/// ```
pub fn encode_entry(entry: &Entry) -> String {
    let (name, fields) = match entry {
        Entry::Created { at, key, method, gone_is_done } => {
            let key = match key {
                KeyOrigin::Drawn => json!("drawn"),
                KeyOrigin::None => json!("none"),
                KeyOrigin::Given { first_sent } => json!({ "first_sent": first_sent.map(Time::as_millis) }),
            };
            let method = method_word(*method);
            ("created", json!({ "at": at.as_millis(), "key": key, "method": method, "gone_is_done": gone_is_done }))
        }
        Entry::Resumed { owner, at } => {
            ("resumed", json!({ "owner": format!("{:032x}", owner.id()), "at": at.as_millis() }))
        }
        Entry::Started { attempt, kind, timeout, at } => (
            "started",
            json!({
                "attempt": attempt, "kind": kind_word(*kind), "timeout": span(*timeout), "at": at.as_millis()
            }),
        ),
        Entry::Ended { attempt, verdict, at, next_at } => (
            "ended",
            json!({
                "attempt": attempt, "verdict": encode_verdict(verdict), "at": at.as_millis(),
                "next_at": next_at.map(Time::as_millis)
            }),
        ),
        Entry::Interrupted { attempt, at } => ("interrupted", json!({ "attempt": attempt, "at": at.as_millis() })),
        Entry::Stopped { reason, at } => ("stopped", json!({ "reason": reason_word(*reason), "at": at.as_millis() })),
        Entry::Amended { at, version } => ("amended", json!({ "version": version, "at": at.as_millis() })),
        Entry::Resolved { effect, by, at } => {
            ("resolved", json!({ "effect": effect_word(*effect), "by": by, "at": at.as_millis() }))
        }
    };
    json!({ "v": VERSION, name: fields }).to_string()
}

fn encode_verdict(verdict: &Verdict) -> Value {
    let (reach, knows_key) = match verdict.reach() {
        Reach::Unsent => ("unsent", None),
        Reach::Refused => ("refused", None),
        Reach::Ambiguous => ("ambiguous", None),
        Reach::Accepted { knows_key } => ("accepted", Some(knows_key)),
        Reach::AppliedUnread => ("applied_unread", None),
        Reach::Applied => ("applied", None),
        Reach::Rejected => ("rejected", None),
    };
    let advice = match verdict.advice() {
        Advice::Retry => json!("retry"),
        Advice::Stop => json!("stop"),
        Advice::RetryAfter(wait) => span(wait),
    };
    let mut fields =
        json!({ "reach": reach, "advice": advice, "why": why_word(verdict.why()), "marked": verdict.marked() });
    if let Some(knows_key) = knows_key {
        fields["knows_key"] = knows_key.into();
    }
    if verdict.linked() {
        fields["linked"] = true.into();
    }
    fields
}

fn span(span: Duration) -> Value {
    json!([span.as_secs(), span.subsec_nanos()])
}

/// The entry that was stored so.
///
/// ```
/// use oncekey::engine::{Entry, Time};
/// use oncekey::journal::{JournalErrorKind, codec};
///
/// let line = r#"{"v":1,"interrupted":{"attempt":2,"at":1767225600000}}"#;
/// assert_eq!(codec::decode_entry(line)?, Entry::Interrupted { attempt: 2, at: Time::from_millis(1_767_225_600_000) });
/// let newer = codec::decode_entry(r#"{"v":2,"paused":{"at":1767225600000}}"#).unwrap_err();
/// assert_eq!(newer.kind(), JournalErrorKind::Newer);
/// # Ok::<(), oncekey::journal::JournalError>(())
/// ```
///
/// # Errors
///
/// [`JournalErrorKind::Newer`] for what a newer version wrote,
/// [`JournalErrorKind::Corrupt`] for what is no entry.
pub fn decode_entry(text: &str) -> Result<Entry, JournalError> {
    let value: Value = serde_json::from_str(text).map_err(|_| corrupt("an entry is no JSON"))?;
    let mut object = versioned(value)?;
    let mut facts = std::mem::take(&mut object).into_iter();
    let (Some((name, Value::Object(fields))), None) = (facts.next(), facts.next()) else {
        return Err(corrupt("an entry is not one fact with its fields"));
    };
    entry(&name, &Fields(&fields)).ok_or_else(|| corrupt("an entry lacks a field, or has one that cannot be read"))
}

/// The members of a line besides its version.
fn versioned(value: Value) -> Result<Map<String, Value>, JournalError> {
    let Value::Object(mut object) = value else {
        return Err(corrupt("a line of the record is no object"));
    };
    match object.remove("v").as_ref().and_then(Value::as_u64) {
        Some(VERSION) => Ok(object),
        Some(version) if version > VERSION => Err(JournalError::new(
            JournalErrorKind::Newer,
            format!("the record has version {version}, and this program reads up to {VERSION}: upgrade it"),
        )),
        Some(_) | None => Err(corrupt("a line of the record has no version")),
    }
}

fn corrupt(what: &'static str) -> JournalError {
    JournalError::new(JournalErrorKind::Corrupt, what)
}

struct Fields<'a>(&'a Map<String, Value>);

impl Fields<'_> {
    fn time(&self, name: &str) -> Option<Time> {
        self.0.get(name)?.as_u64().map(Time::from_millis)
    }

    /// A time or an explicit null.
    fn maybe_time(&self, name: &str) -> Option<Option<Time>> {
        match self.0.get(name)? {
            Value::Null => Some(None),
            value => value.as_u64().map(|millis| Some(Time::from_millis(millis))),
        }
    }

    fn number(&self, name: &str) -> Option<u32> {
        u32::try_from(self.0.get(name)?.as_u64()?).ok()
    }

    fn flag(&self, name: &str) -> Option<bool> {
        self.0.get(name)?.as_bool()
    }

    fn word<T>(&self, name: &str, read: fn(&str) -> Option<T>) -> Option<T> {
        read(self.0.get(name)?.as_str()?)
    }
}

fn entry(name: &str, fields: &Fields<'_>) -> Option<Entry> {
    let at = fields.time("at")?;
    Some(match name {
        "created" => Entry::Created {
            at,
            key: match fields.0.get("key")? {
                Value::String(word) if word == "drawn" => KeyOrigin::Drawn,
                Value::String(word) if word == "none" => KeyOrigin::None,
                Value::Object(given) => KeyOrigin::Given { first_sent: Fields(given).maybe_time("first_sent")? },
                _ => return None,
            },
            method: fields.word("method", method_kind)?,
            gone_is_done: fields.flag("gone_is_done")?,
        },
        "resumed" => Entry::Resumed { owner: fields.word("owner", owner)?, at },
        "started" => Entry::Started {
            attempt: fields.number("attempt")?,
            kind: fields.word("kind", attempt_kind)?,
            timeout: decode_span(fields.0.get("timeout")?)?,
            at,
        },
        "ended" => Entry::Ended {
            attempt: fields.number("attempt")?,
            verdict: decode_verdict(fields.0.get("verdict")?)?,
            at,
            next_at: fields.maybe_time("next_at")?,
        },
        "interrupted" => Entry::Interrupted { attempt: fields.number("attempt")?, at },
        "stopped" => Entry::Stopped { reason: fields.word("reason", stop_reason)?, at },
        "amended" => Entry::Amended { at, version: fields.number("version")? },
        "resolved" => {
            Entry::Resolved { effect: fields.word("effect", effect)?, by: fields.0.get("by")?.as_str()?.into(), at }
        }
        _ => return None,
    })
}

fn owner(hex: &str) -> Option<Owner> {
    u128::from_str_radix(hex, 16).ok().map(Owner::new)
}

fn decode_span(value: &Value) -> Option<Duration> {
    let [seconds, nanos] = value.as_array()?.as_slice() else {
        return None;
    };
    let nanos = u32::try_from(nanos.as_u64()?).ok().filter(|nanos| *nanos < 1_000_000_000)?;
    Some(Duration::new(seconds.as_u64()?, nanos))
}

fn decode_verdict(value: &Value) -> Option<Verdict> {
    let fields = Fields(value.as_object()?);
    let reach = match fields.0.get("reach")?.as_str()? {
        "unsent" => Reach::Unsent,
        "refused" => Reach::Refused,
        "ambiguous" => Reach::Ambiguous,
        "accepted" => Reach::Accepted { knows_key: fields.flag("knows_key")? },
        "applied_unread" => Reach::AppliedUnread,
        "applied" => Reach::Applied,
        "rejected" => Reach::Rejected,
        _ => return None,
    };
    let advice = match fields.0.get("advice")? {
        Value::String(word) if word == "retry" => Advice::Retry,
        Value::String(word) if word == "stop" => Advice::Stop,
        wait => Advice::RetryAfter(decode_span(wait)?),
    };
    let linked = match fields.0.get("linked") {
        Some(linked) => linked.as_bool()?,
        None => false,
    };
    Some(Verdict::new(reach, advice, fields.word("why", why)?).with_mark(fields.flag("marked")?).with_link(linked))
}

/// The request as it is stored.
///
/// ```
/// use oncekey::journal::codec;
/// # use oncekey::journal::{StoredBody, StoredRequest};
/// # use oncekey::reqwest::{Method, header::{CONTENT_TYPE, HeaderValue}};
///
/// # let headers = vec![(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
/// # let url = "https://api.example/payments?test=1".parse()?;
/// # let request = StoredRequest::new(Method::POST, url, headers, StoredBody::Kept(r#"{"amount":450}"#.into()));
/// let bytes = codec::encode_request(&request);
/// assert!(bytes.ends_with(b"\n{\"amount\":450}")); // the body as it is, behind one line of JSON
/// assert_eq!(codec::decode_request(&bytes)?, request);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn encode_request(request: &StoredRequest) -> Vec<u8> {
    let (kept, body) = match &request.body {
        StoredBody::None => ("none", &[][..]),
        StoredBody::Kept(bytes) => ("kept", &bytes[..]),
        StoredBody::LeftOut(print) => ("left_out", &print.as_bytes()[..]),
    };
    let headers = request.headers.iter().map(|(name, value)| (name, value));
    let head = json!({
        "v": VERSION, "method": request.method.as_str(), "url": request.url.as_str(), "headers": encode_headers(headers),
        "body": kept
    });
    joined(&head, body)
}

/// The request that was stored so.
///
/// ```
/// use oncekey::journal::{JournalErrorKind, StoredBody, codec};
///
/// let head = r#"{"v":1,"method":"DELETE","url":"https://api.example/cards/7","headers":[],"body":"none"}"#;
/// let request = codec::decode_request(format!("{head}\n").as_bytes())?;
/// assert_eq!((request.method().as_str(), request.url().path()), ("DELETE", "/cards/7"));
/// assert_eq!(request.body(), &StoredBody::None);
/// assert_eq!(codec::decode_request(b"DELETE /cards/7").unwrap_err().kind(), JournalErrorKind::Corrupt);
/// # Ok::<(), oncekey::journal::JournalError>(())
/// ```
///
/// # Errors
///
/// As of [`decode_entry`].
pub fn decode_request(bytes: &[u8]) -> Result<StoredRequest, JournalError> {
    let (head, body) = split(bytes)?;
    let request = || -> Option<StoredRequest> {
        Some(StoredRequest {
            method: Method::from_bytes(head.get("method")?.as_str()?.as_bytes()).ok()?,
            url: Url::parse(head.get("url")?.as_str()?).ok()?,
            headers: decode_headers(head.get("headers")?)?,
            body: match head.get("body")?.as_str()? {
                "none" => StoredBody::None,
                "kept" => StoredBody::Kept(Bytes::copy_from_slice(body)),
                "left_out" => StoredBody::LeftOut(Fingerprint::from_bytes(body.try_into().ok()?)),
                _ => return None,
            },
        })
    };
    request().ok_or_else(|| corrupt("a stored request lacks a part, or has one that cannot be read"))
}

/// The answer as it is stored.
///
/// ```
/// use oncekey::journal::{StoredAnswer, codec};
/// use oncekey::reqwest::{StatusCode, header::HeaderMap};
///
/// let answer = StoredAnswer::new(StatusCode::CREATED, HeaderMap::new(), br#"{"id":"pay_7"}"#.to_vec());
/// let bytes = codec::encode_answer(&answer);
/// assert!(bytes.ends_with(b"\n{\"id\":\"pay_7\"}"));
/// assert_eq!(codec::decode_answer(&bytes)?, answer);
/// # Ok::<(), oncekey::journal::JournalError>(())
/// ```
pub fn encode_answer(answer: &StoredAnswer) -> Vec<u8> {
    let head = json!({ "v": VERSION, "status": answer.status.as_u16(), "headers": encode_headers(&answer.headers) });
    joined(&head, &answer.body)
}

/// The answer that was stored so.
///
/// ```
/// use oncekey::journal::{JournalErrorKind, codec};
///
/// let bytes = b"{\"v\":1,\"status\":429,\"headers\":[[\"retry-after\",\"30\"]]}\nslow down";
/// let answer = codec::decode_answer(bytes)?;
/// assert_eq!((answer.status().as_u16(), answer.body()), (429, &b"slow down"[..]));
/// assert_eq!(answer.headers()["retry-after"], "30");
/// assert_eq!(codec::decode_answer(&bytes[..20]).unwrap_err().kind(), JournalErrorKind::Corrupt); // torn off
/// # Ok::<(), oncekey::journal::JournalError>(())
/// ```
///
/// # Errors
///
/// As of [`decode_entry`].
pub fn decode_answer(bytes: &[u8]) -> Result<StoredAnswer, JournalError> {
    let (head, body) = split(bytes)?;
    let answer = || -> Option<StoredAnswer> {
        let status = u16::try_from(head.get("status")?.as_u64()?).ok()?;
        let mut headers = HeaderMap::new();
        for (name, value) in decode_headers(head.get("headers")?)? {
            headers.try_append(name, value).ok()?;
        }
        Some(StoredAnswer { status: StatusCode::from_u16(status).ok()?, headers, body: body.to_vec() })
    };
    answer().ok_or_else(|| corrupt("a stored answer lacks a part, or has one that cannot be read"))
}

fn joined(head: &Value, body: &[u8]) -> Vec<u8> {
    // A line of JSON holds no line break of its own.
    let mut bytes = head.to_string().into_bytes();
    bytes.reserve_exact(body.len() + 1);
    bytes.push(b'\n');
    bytes.extend_from_slice(body);
    bytes
}

fn split(bytes: &[u8]) -> Result<(Map<String, Value>, &[u8]), JournalError> {
    let end = bytes.iter().position(|byte| *byte == b'\n').ok_or_else(|| corrupt("a stored message has no head"))?;
    let head = serde_json::from_slice(&bytes[..end]).map_err(|_| corrupt("a stored message's head is no JSON"))?;
    Ok((versioned(head)?, &bytes[end + 1..]))
}

/// A header's value is bytes: each is one character, as in Latin-1.
fn encode_headers<'a>(headers: impl IntoIterator<Item = (&'a HeaderName, &'a HeaderValue)>) -> Value {
    let text = |value: &HeaderValue| value.as_bytes().iter().map(|byte| char::from(*byte)).collect::<String>();
    headers.into_iter().map(|(name, value)| json!([name.as_str(), text(value)])).collect()
}

fn decode_headers(value: &Value) -> Option<Vec<(HeaderName, HeaderValue)>> {
    let header = |pair: &Value| {
        let [name, value] = pair.as_array()?.as_slice() else {
            return None;
        };
        let bytes = value.as_str()?.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect::<Option<Vec<u8>>>()?;
        Some((HeaderName::from_bytes(name.as_str()?.as_bytes()).ok()?, HeaderValue::from_bytes(&bytes).ok()?))
    };
    value.as_array()?.iter().map(header).collect()
}
