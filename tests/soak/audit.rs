//! What the callers were told against what the server did, to the last row.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::AddAssign;

use oncekey::sandbox::{Execution, Sandbox, SeenRequest};

use crate::operation::{Kind, Outcome, Told, body_bytes, path};

/// Counts over any number of rounds.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) outcomes: BTreeMap<Outcome, usize>,
    pub(crate) errors: BTreeMap<String, usize>,
    pub(crate) faults: BTreeMap<String, usize>,
    pub(crate) operations: usize,
    pub(crate) attempts: usize,
    /// Attempts that may have timed out before the server saw them.
    pub(crate) timed_out: usize,
    pub(crate) requests: usize,
    pub(crate) copies: usize,
    pub(crate) executions: usize,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        other.outcomes.into_iter().for_each(|(outcome, count)| *self.outcomes.entry(outcome).or_default() += count);
        other.errors.into_iter().for_each(|(kind, count)| *self.errors.entry(kind).or_default() += count);
        other.faults.into_iter().for_each(|(name, count)| *self.faults.entry(name).or_default() += count);
        self.operations += other.operations;
        self.attempts += other.attempts;
        self.timed_out += other.timed_out;
        self.requests += other.requests;
        self.copies += other.copies;
        self.executions += other.executions;
    }
}

/// What the server has of one operation.
#[derive(Default)]
struct Rows<'a> {
    executions: Vec<&'a Execution>,
    requests: Vec<&'a SeenRequest>,
    /// The numbers of the copies that a proxy made.
    copies: Vec<usize>,
}

/// Compares all of it, and counts.
pub(crate) fn audit(sandbox: &Sandbox, told: &[Told]) -> Counts {
    let (ledger, seen) = (sandbox.ledger(), sandbox.requests());
    let mut rows: HashMap<&str, Rows<'_>> = HashMap::new();
    for row in &ledger {
        assert!(!row.is_double(), "the server's own double: {row:?}");
        rows.entry(row.path()).or_default().executions.push(row);
    }
    for request in &seen {
        let rows = rows.entry(request.path()).or_default();
        if request.is_copy() {
            rows.copies.push(request.number());
        } else {
            rows.requests.push(request);
        }
    }
    let mut keys = HashSet::new();
    let mut counts = Counts::default();
    for told in told {
        let rows = rows.remove(path(told.number).as_str()).unwrap_or_default();
        is_true(told, &rows);
        is_what_was_seen(told, &rows);
        assert!(told.key.as_ref().is_none_or(|key| keys.insert(key.clone())), "a key of two operations: {told:?}");
        *counts.outcomes.entry(told.outcome).or_default() += 1;
        *counts.errors.entry(told.error.map_or_else(String::new, |kind| format!("{kind:?}"))).or_default() += 1;
        counts.operations += 1;
        counts.attempts += told.log.iter().filter(|line| !line.unsent).count();
        counts.timed_out += told.log.iter().filter(|line| line.timed_out).count();
        counts.requests += rows.requests.len();
        counts.copies += rows.copies.len();
        counts.executions += rows.executions.len();
    }
    counts.errors.remove("");
    for request in &seen {
        if let Some(fault) = request.fault() {
            let name = match request.status() {
                Some(status) if fault.name() == "status" => format!("status {}", status.as_u16()),
                _ => fault.name().to_owned(),
            };
            *counts.faults.entry(name).or_default() += 1;
        }
    }
    let strangers: Vec<&&str> = rows.keys().collect();
    assert!(strangers.is_empty(), "nobody was told of these: {strangers:?}");
    assert_eq!(counts.executions, ledger.len(), "rows of the ledger");
    assert_eq!(counts.requests + counts.copies, seen.len(), "requests");
    assert!(counts.requests <= counts.attempts, "more was sent than the logs say: {counts:?}");
    assert!(counts.requests + counts.timed_out >= counts.attempts, "the logs say more than was sent: {counts:?}");
    counts
}

/// The effect that the caller was told of against the ledger.
fn is_true(told: &Told, rows: &Rows<'_>) {
    // Without a key the server carries out what a proxy doubled.
    let doubled = |row: &&&Execution| Kind::of(told.number) == Kind::Keyless && rows.copies.contains(&row.request());
    let executions = rows.executions.len() - rows.executions.iter().filter(doubled).count();
    let fits = match told.outcome {
        Outcome::Ok | Outcome::Applied => executions == 1,
        Outcome::NotApplied => executions == 0,
        Outcome::Unknown => executions <= 1,
    };
    assert!(fits, "{:?}, and it was carried out {executions} times: {told:?}\n{}", told.outcome, told.table);
    if told.outcome == Outcome::Ok {
        let id = told.id.as_deref();
        let own = rows.executions.iter().any(|row| Some(row.id()) == id);
        assert!(own, "the answer is another operation's: {told:?}\n{}", told.table);
    }
    for row in &rows.executions {
        assert_eq!(row.key(), told.key.as_deref(), "carried out under another key: {told:?}");
        assert_eq!(*row.body(), body_bytes(told.number), "{told:?}");
    }
}

/// The log against what came in: one key, the same bytes, one request for each attempt.
fn is_what_was_seen(told: &Told, rows: &Rows<'_>) {
    let key: Vec<String> = told.key.iter().cloned().collect();
    let body = body_bytes(told.number);
    for request in &rows.requests {
        assert_eq!(request.keys(), key, "another key was sent: {told:?}");
        assert!(!request.is_complete() || *request.body() == body, "other bytes were sent: {told:?}");
        assert!(body.starts_with(request.body()), "other bytes were sent: {told:?}");
    }
    let sent: Vec<_> = told.log.iter().filter(|line| !line.unsent).collect();
    let timed_out = sent.iter().filter(|line| line.timed_out).count();
    let seen = rows.requests.len();
    assert!(seen <= sent.len() && seen + timed_out >= sent.len(), "{seen} requests came in: {told:?}\n{}", told.table);
    if timed_out == 0 {
        for (line, request) in sent.iter().zip(&rows.requests) {
            let answered = request.status().map(|status| status.as_u16());
            assert!(line.status.is_none() || line.status == answered, "{answered:?} was sent: {}", told.table);
        }
    }
}
