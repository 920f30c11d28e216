use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use oncekey::engine::Entry;
use oncekey::{Attempt, Effect, Error, IdempotencyKey, OperationRecord, RecordState, Response};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::problem::Problem;
use crate::{show, words};

/// How a payment went. The names are documented in docs/cli.md, and stay.
#[derive(Serialize)]
pub(crate) struct Payment<'a> {
    r#type: &'static str,
    id: &'a str,
    effect: &'static str,
    kind: Option<&'static str>,
    status: Option<u16>,
    replay: bool,
    key: Option<String>,
    attempts: &'a [Attempt],
    answer: Option<Answer>,
    resume_at: Option<String>,
}

impl<'a> Payment<'a> {
    pub(crate) fn applied(id: &'a str, response: &'a Response) -> Self {
        Self {
            r#type: "payment",
            id,
            effect: effect(Effect::Applied),
            kind: None,
            status: Some(response.status().as_u16()),
            replay: response.is_replay(),
            key: response.key().map(short),
            attempts: response.attempts(),
            answer: Answer::new(response.bytes()),
            resume_at: None,
        }
    }

    pub(crate) fn failed(id: &'a str, error: &'a Error) -> Self {
        let response = error.response();
        Self {
            r#type: "payment",
            id,
            effect: effect(error.effect()),
            kind: Some(error.kind().code()),
            status: response.map(|response| response.status().as_u16()),
            replay: response.is_some_and(Response::is_replay),
            key: error.key().map(short),
            attempts: error.attempts(),
            answer: response.and_then(|response| Answer::new(response.bytes())),
            resume_at: error.resume_at().map(rfc_3339),
        }
    }

    /// Interrupted, with what its record tells.
    pub(crate) fn stopped(
        id: &'a str,
        found: Effect,
        record: Option<&OperationRecord>,
        attempts: &'a [Attempt],
    ) -> Self {
        Self {
            r#type: "payment",
            id,
            effect: effect(found),
            kind: Some("stopped"),
            status: None,
            replay: false,
            key: record.and_then(|record| record.key().as_ref().map(short)),
            attempts,
            answer: None,
            resume_at: record.and_then(OperationRecord::resume_at).map(rfc_3339),
        }
    }
}

/// What is on record of a payment.
#[derive(Serialize)]
pub(crate) struct Record<'a> {
    r#type: &'static str,
    id: &'a str,
    state: &'static str,
    effect: &'static str,
    status: Option<u16>,
    key: Option<String>,
    key_expires_at: Option<String>,
    created_at: String,
    tries: u32,
    resume_at: Option<String>,
    #[serde(flatten)]
    whole: Option<Whole>,
}

/// What a list leaves out.
#[derive(Serialize)]
struct Whole {
    method: Option<String>,
    url: Option<String>,
    answer: Option<Answer>,
    entries: Vec<Told>,
}

#[derive(Serialize)]
struct Told {
    at: String,
    entry: &'static str,
    attempt: Option<u32>,
    text: String,
}

impl<'a> Record<'a> {
    pub(crate) fn listed(record: &'a OperationRecord) -> Self {
        Self {
            r#type: "record",
            id: record.id().as_str(),
            state: match record.state() {
                RecordState::Running => "running",
                RecordState::Unfinished => "unfinished",
                RecordState::InDoubt => "in_doubt",
                RecordState::Settled => "settled",
                _ => "unknown",
            },
            effect: effect(record.effect()),
            status: record.last_answer().map(|answer| answer.status().as_u16()),
            key: record.key().as_ref().map(short),
            key_expires_at: record.key_expires_at().map(rfc_3339),
            created_at: rfc_3339(record.created_at()),
            tries: record.attempts(),
            resume_at: record.resume_at().map(rfc_3339),
            whole: None,
        }
    }

    pub(crate) fn whole(record: &'a OperationRecord) -> Self {
        let whole = Whole {
            method: record.method().map(ToString::to_string),
            url: record.url().map(show::place),
            answer: record.last_answer().and_then(|answer| Answer::new(answer.body())),
            entries: record.entries().iter().map(told).collect(),
        };
        Self { whole: Some(whole), ..Self::listed(record) }
    }
}

fn told(entry: &Entry) -> Told {
    let (name, attempt) = match entry {
        Entry::Created { .. } => ("created", None),
        Entry::Resumed { .. } => ("resumed", None),
        Entry::Started { attempt, .. } => ("started", Some(*attempt)),
        Entry::Ended { attempt, .. } => ("ended", Some(*attempt)),
        Entry::Interrupted { attempt, .. } => ("interrupted", Some(*attempt)),
        Entry::Stopped { .. } => ("stopped", None),
        Entry::Amended { .. } => ("amended", None),
        Entry::Resolved { .. } => ("resolved", None),
        _ => ("unknown", None),
    };
    Told { at: rfc_3339(words::system_time(show::time(entry))), entry: name, attempt, text: show::told(entry) }
}

/// A command that was not carried out.
pub(crate) fn problem(problem: &Problem) {
    #[derive(Serialize)]
    struct Said<'a> {
        r#type: &'static str,
        id: Option<&'a str>,
        effect: Option<&'static str>,
        kind: &'static str,
        message: &'a str,
    }
    let Problem { kind, id, effect: found, message } = problem;
    print(&Said { r#type: "error", id: id.as_deref(), effect: found.map(effect), kind, message });
}

/// On one line, whatever a body brings.
pub(crate) fn print(result: &impl Serialize) {
    let Ok(text) = serde_json::to_string(result) else {
        unreachable!("plain structs with names for keys");
    };
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        // They can only be within strings, and might steer a terminal.
        if c.is_control() {
            let _ = write!(line, "\\u{:04x}", u32::from(c));
        } else {
            line.push(c);
        }
    }
    words::say(line);
}

/// A body: as it is if it is JSON, every digit of its numbers kept; else as text.
#[derive(Serialize)]
#[serde(untagged)]
enum Answer {
    Json(Box<RawValue>),
    Text(String),
}

impl Answer {
    fn new(body: &[u8]) -> Option<Self> {
        if body.is_empty() {
            return None;
        }
        let text = String::from_utf8_lossy(body);
        if serde_json::from_str::<&RawValue>(&text).is_ok() {
            // Between the tokens of what is valid, and nowhere else.
            let line: String = text.chars().filter(|c| !matches!(c, '\n' | '\r' | '\t')).collect();
            if let Ok(raw) = RawValue::from_string(line) {
                return Some(Self::Json(raw));
            }
        }
        Some(Self::Text(text.into_owned()))
    }
}

fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::Applied => "applied",
        Effect::NotApplied => "not_applied",
        Effect::Unknown => "unknown",
    }
}

fn short(key: &IdempotencyKey) -> String {
    show::short(key.as_str())
}

/// UTC, with milliseconds.
fn rfc_3339(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    // Years that begin in March, in eras of 400 (Howard Hinnant, "chrono-compatible date algorithms").
    let day = days + 719_468;
    let (era, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year + later;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", since.subsec_millis())
}
