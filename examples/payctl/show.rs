use std::fmt::Write;
use std::time::{Duration, SystemTime};

use oncekey::engine::{Entry, KeyOrigin, StopReason, Time};
use oncekey::{Effect, OperationRecord, RecordState};
use url::Url;

use crate::words::{self, Hints};

const COLUMNS: [&str; 9] = ["ID", "STATE", "EFFECT", "AGE", "TRIES", "LAST ANSWER", "KEY", "KEY GOOD FOR", "NEXT"];

/// What is open, a line for each.
pub(crate) fn table(records: &[OperationRecord]) -> String {
    let mut rows = vec![COLUMNS.map(str::to_owned)];
    rows.extend(records.iter().map(row));
    let widths: Vec<usize> = (0..COLUMNS.len())
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default())
        .collect();
    let mut out = String::new();
    for row in &rows {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        let _ = writeln!(out, "{}", cells.join("  ").trim_end());
    }
    out.truncate(out.trim_end().len());
    out
}

fn row(record: &OperationRecord) -> [String; 9] {
    let next = match (record.state(), record.resume_at().and_then(ahead).filter(|wait| wait.as_millis() >= 100)) {
        (RecordState::InDoubt, _) => "resolve".to_owned(),
        (_, Some(wait)) => format!("resume in {}", words::span(wait)),
        (_, None) => "resume".to_owned(),
    };
    [
        words::line(record.id().as_str()),
        state(record).to_owned(),
        record.effect().to_string(),
        words::span(record.age()),
        record.attempts().to_string(),
        last_answer(record),
        record.key().map_or_else(|| "none".to_owned(), |key| short(key.as_str())),
        good_for(record),
        next,
    ]
}

/// All that is on record of one payment.
pub(crate) fn whole(record: &OperationRecord, hints: &Hints) -> String {
    let id = record.id().as_str();
    let mut out = format!("{}: {}, {}\n", words::line(id), record.effect(), state(record));
    let mut fact = |name: &str, text: &str| {
        let _ = writeln!(out, "  {name:<12}  {text}");
    };
    if let (Some(method), Some(url)) = (record.method(), record.url()) {
        let query = if url.query().is_some() { "?… (a query, not shown)" } else { "" };
        fact("request", &format!("{method} {}{query}", place(url)));
    }
    fact("sent for", hints.scope());
    fact("key", record.key().as_ref().map_or("none", |key| key.as_str()));
    fact("key good for", &good_for(record));
    let created = httpdate::fmt_http_date(record.created_at());
    fact("begun", &format!("{created}, {} ago", words::span(record.age())));
    fact("attempts", &record.attempts().to_string());
    fact("last answer", &last_answer(record));
    let answer = record.last_answer().map(|answer| words::harmless(answer.body())).unwrap_or_default();
    for line in answer.trim_end().lines() {
        let _ = writeln!(out, "    {line}");
    }

    let begun = record.entries().iter().map(time).next().unwrap_or_default();
    out.push('\n');
    for entry in record.entries() {
        let _ = writeln!(out, "{:>10}  {}", format!("+{}", exact(time(entry).since(begun))), told(entry));
    }
    match record.state() {
        RecordState::Settled => {}
        RecordState::Running | RecordState::Unfinished | RecordState::InDoubt => {
            let _ = writeln!(out, "\n{}", hints.after(id, record.effect(), None, Some(record)));
        }
        _ => {}
    }
    out.truncate(out.trim_end().len());
    out
}

/// Where to, without what may be secret.
pub(crate) fn place(url: &Url) -> String {
    let mut place = url.clone();
    place.set_query(None);
    place.set_fragment(None);
    place.into()
}

fn state(record: &OperationRecord) -> &'static str {
    match record.state() {
        RecordState::Running => "being worked on",
        RecordState::Unfinished => "unfinished",
        RecordState::InDoubt => "in doubt",
        RecordState::Settled => "settled",
        _ => "?",
    }
}

/// What the last attempt brought; an answer of an earlier one says nothing of it.
fn last_answer(record: &OperationRecord) -> String {
    match (record.last_verdict(), record.last_answer()) {
        (Some(verdict), Some(answer)) if words::is_answer(verdict) => {
            format!("{}, {}", answer.status().as_u16(), words::reading(verdict))
        }
        (Some(verdict), _) => words::reading(verdict),
        (None, _) if record.attempts() > 0 => "none seen".to_owned(),
        (None, _) => "nothing sent".to_owned(),
    }
}

fn good_for(record: &OperationRecord) -> String {
    match record.key_expires_at() {
        Some(at) => ahead(at).map_or_else(|| "expired".to_owned(), words::span),
        None if record.key().is_some() && record.effect() == Effect::NotApplied => "not used yet".to_owned(),
        // No key; or its only attempt was cut short, and nobody has found that yet.
        None => "-".to_owned(),
    }
}

fn ahead(at: SystemTime) -> Option<Duration> {
    at.duration_since(SystemTime::now()).ok()
}

pub(crate) fn short(key: &str) -> String {
    key.chars().take(8).collect()
}

fn exact(span: Duration) -> String {
    if span.as_secs() < 1000 { format!("{:.3}s", span.as_secs_f64()) } else { words::span(span) }
}

pub(crate) fn told(entry: &Entry) -> String {
    match entry {
        Entry::Created { key, .. } => format!(
            "drawn up, {}",
            match key {
                KeyOrigin::Drawn => "under a new key",
                KeyOrigin::Given { .. } => "under a key that may have been used before",
                KeyOrigin::None => "without a key",
                _ => "",
            }
        ),
        Entry::Resumed { owner, .. } => format!("taken up by run {:.8}", format!("{:032x}", owner.id())),
        Entry::Started { attempt, kind, timeout, .. } => {
            format!("attempt {attempt} ({}) begins, for {} at most", kind.as_str(), words::span(*timeout))
        }
        Entry::Ended { attempt, verdict, at, next_at } => {
            let next = next_at.map(|next| next.since(*at)).filter(|wait| !wait.is_zero());
            let next =
                next.map_or_else(String::new, |wait| format!("; the next may follow after {}", words::span(wait)));
            format!("attempt {attempt} ends: {}{next}", words::reading(*verdict))
        }
        Entry::Interrupted { attempt, .. } => {
            format!("nobody saw attempt {attempt} end: its process died or was stopped")
        }
        Entry::Stopped { reason, .. } => format!("given up for now: {}", why(*reason)),
        Entry::Amended { version, .. } => format!("the request was corrected (version {version})"),
        Entry::Resolved { effect, by, .. } => format!("settled as {effect} by {}", words::line(by)),
        _ => "something that this version does not know".to_owned(),
    }
}

fn why(reason: StopReason) -> &'static str {
    match reason {
        StopReason::Request => "the request could not be made",
        StopReason::Authorize => "no credentials could be had",
        StopReason::Attempts => "all attempts were used",
        StopReason::Polls => "it was still in progress when the time for polling was up",
        StopReason::Deadline => "the time was up",
        StopReason::KeyExpired => "the key is too old to be sent",
        StopReason::Keyless => "without a key it must not be sent twice",
        StopReason::Schedule => "the schedule ended",
        _ => "for another reason",
    }
}

pub(crate) fn time(entry: &Entry) -> Time {
    match entry {
        Entry::Created { at, .. }
        | Entry::Resumed { at, .. }
        | Entry::Started { at, .. }
        | Entry::Ended { at, .. }
        | Entry::Interrupted { at, .. }
        | Entry::Stopped { at, .. }
        | Entry::Amended { at, .. }
        | Entry::Resolved { at, .. } => *at,
        _ => Time::default(),
    }
}
