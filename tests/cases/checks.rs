//! Holds what the client says against what the server saw, and both against
//! what the report expects.

use std::fmt::{Debug, Display};
use std::time::{Duration, SystemTime};

use oncekey::{Attempt, Effect, Error, Failure, IdempotencyKey, Response};

use crate::data::{Before, Count, Every, Expect, Outcome, Reply};
use crate::record::{Record, Seen};

/// What is wrong with a run.
#[derive(Default)]
pub(crate) struct Problems(pub(crate) Vec<String>);

impl Problems {
    pub(crate) fn that(&mut self, holds: bool, otherwise: impl Into<String>) {
        if !holds {
            self.0.push(otherwise.into());
        }
    }

    #[allow(clippy::needless_pass_by_value)] // so that what is expected can be written in its place
    pub(crate) fn same<T: PartialEq + Debug>(&mut self, what: impl Display, found: T, expected: T) {
        self.that(found == expected, format!("{what}: {found:?}, not {expected:?}"));
    }
}

/// One operation from both ends of the wire.
pub(crate) struct Evidence {
    pub(crate) sent: Result<Response, Error>,
    pub(crate) began: SystemTime,
    pub(crate) took: Duration,
    pub(crate) record: Record,
    /// The body and, where it brought one, the key that the caller gave.
    pub(crate) body: Vec<u8>,
    pub(crate) key: Option<String>,
}

impl Evidence {
    pub(crate) fn attempts(&self) -> &[Attempt] {
        match &self.sent {
            Ok(response) => response.attempts(),
            Err(error) => error.attempts(),
        }
    }

    /// The answer that the caller was given, final or not.
    pub(crate) fn answer(&self) -> Option<&Response> {
        match &self.sent {
            Ok(response) => Some(response),
            Err(error) => error.response(),
        }
    }

    pub(crate) fn error(&self, problems: &mut Problems) -> Option<&Error> {
        problems.that(self.sent.is_err(), "no error, where one was expected");
        self.sent.as_ref().err()
    }

    fn key(&self) -> Option<&IdempotencyKey> {
        match &self.sent {
            Ok(response) => response.key(),
            Err(error) => error.key(),
        }
    }

    /// Each attempt that may have been received, with what was received.
    fn pairs(&self) -> impl Iterator<Item = (&Attempt, &Seen)> {
        self.attempts().iter().filter(|attempt| may_have_been_received(attempt)).zip(&self.record.requests)
    }

    /// The reply to the last request that the client had a head for.
    fn last_reply(&self) -> Option<&Reply> {
        let pairs = self.pairs();
        pairs.filter(|(attempt, _)| attempt.status().is_some()).last().and_then(|(_, seen)| seen.reply.as_ref())
    }

    pub(crate) fn summary(&self) -> String {
        let requests = self.record.requests.len();
        let end = match &self.sent {
            Ok(response) => format!("Ok {}", response.status().as_u16()),
            Err(error) => format!("{:?}, {}", error.kind(), error.effect()),
        };
        format!("{end}; {requests} requests in {} ms", self.took.as_millis())
    }

    pub(crate) fn told(&self) -> String {
        match &self.sent {
            Ok(response) => format!("{response:?}"),
            Err(error) => format!("{error}\n      {error:?}"),
        }
    }
}

/// What the report expects.
pub(crate) fn expected(expect: &Expect, evidence: &Evidence, problems: &mut Problems) {
    outcome(expect.outcome, evidence, problems);
    let record = &evidence.record;
    problems.same("executions", record.executed.len(), expect.executions);
    problems.same("distinct keys", record.distinct_keys().len(), expect.distinct_keys);
    if let Some(identical) = expect.bodies_identical {
        problems.same("bodies identical", record.bodies_are_identical(), identical);
    }
    if let Some(status) = expect.http_status {
        let found = evidence.answer().map(|answer| answer.status().as_u16());
        problems.same("status of the answer", found, Some(status));
    }
    count("requests on the wire", expect.wire_requests, record.requests.len(), problems);
    if let Some(most) = expect.max_overlap {
        let found = record.overlap();
        problems.that(found <= most, format!("{found} requests of one key at once"));
    }
    if let Some(limit) = expect.finish_within_ms {
        problems.that(evidence.took <= Duration::from_millis(limit), format!("took {:?}", evidence.took));
    }
    waits(expect, record, problems);
}

pub(crate) fn count(what: &str, expected: Count, found: usize, problems: &mut Problems) {
    problems.that(
        expected.holds(found),
        match expected {
            Count::Exactly(count) => format!("{what}: {found}, not {count}"),
            Count::Between(least, most) => format!("{what}: {found}, not {least} to {most}"),
        },
    );
}

pub(crate) fn outcome(expected: Outcome, evidence: &Evidence, problems: &mut Problems) {
    let holds = match (expected, &evidence.sent) {
        (Outcome::Success, Ok(_)) => true,
        (Outcome::Rejected | Outcome::NotSent, Err(error)) => error.effect() == Effect::NotApplied,
        // Applied: it was carried out, and what the answer was is unknown.
        (Outcome::Unknown, Err(error)) => error.effect() != Effect::NotApplied,
        (Outcome::CallerError, Err(error)) => error.attempts().is_empty(),
        (Outcome::Success, Err(_)) => false,
        (Outcome::Rejected | Outcome::NotSent | Outcome::Unknown | Outcome::CallerError, Ok(_)) => false,
    };
    problems.that(holds, format!("the outcome is not {expected:?}"));
}

fn waits(expect: &Expect, record: &Record, problems: &mut Problems) {
    for wait in &expect.waits {
        let numbers = match wait.before {
            Before::Number(n) => n..=n,
            Before::Named(Every::All) => 2..=record.requests.len(),
        };
        for n in numbers {
            let Some(found) = record.wait_before(n) else {
                problems.that(false, format!("there was no request {n} to wait for"));
                continue;
            };
            let range = Duration::from_millis(wait.min_ms)..=wait.max_ms.map_or(Duration::MAX, Duration::from_millis);
            problems.that(range.contains(&found), format!("waited {found:?} before request {n}, not {range:?}"));
        }
    }
}

/// What holds for every operation, whatever was done to it.
pub(crate) fn always(evidence: &Evidence, problems: &mut Problems) {
    requests(evidence, problems);
    log(evidence, problems);
    let Some(first) = evidence.record.requests.first() else {
        return;
    };
    let told = evidence.key().map(IdempotencyKey::as_str);
    problems.same("the key that the caller is told", told, Some(first.key().as_str()));
    if let Err(error) = &evidence.sent {
        problems.that(error.operation().is_some(), "the error names no operation");
    }
    let (answer, reply) = (evidence.answer(), evidence.last_reply());
    problems.same("an answer is at hand", answer.is_some(), reply.is_some());
    if let (Some(answer), Some(reply)) = (answer, reply) {
        problems.same("status given against sent", answer.status().as_u16(), reply.status);
        problems.that(answer.bytes() == reply.body, format!("the body given is not the one sent: {}", answer.text()));
        let marked = reply.header("idempotent-replay") == Some("true");
        problems.same("is_replay", answer.is_replay(), marked);
    }
}

fn requests(evidence: &Evidence, problems: &mut Problems) {
    for (index, seen) in evidence.record.requests.iter().enumerate() {
        let n = index + 1;
        problems.same(format!("method and path of request {n}"), seen.line(), "POST /pay".to_owned());
        one_key(n, seen, evidence.key.as_deref(), problems);
        if seen.whole {
            problems.that(seen.body == evidence.body, format!("request {n} is not the caller's body"));
        }
    }
}

impl Seen {
    fn line(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

/// Exactly one line, with the caller's key or with one that was drawn.
pub(crate) fn one_key(n: usize, seen: &Seen, given: Option<&str>, problems: &mut Problems) {
    let lines = seen.lines(crate::record::KEY_HEADER);
    match (lines.as_slice(), given) {
        ([key], Some(given)) => problems.same(format!("key of request {n}"), *key, given),
        ([key], None) => problems.that(is_uuid_v4(key), format!("key of request {n} is no UUID v4: {key}")),
        (other, _) => problems.that(false, format!("key lines of request {n}: {other:?}")),
    }
}

fn is_uuid_v4(key: &str) -> bool {
    let right = |(place, byte): (usize, u8)| match place {
        8 | 13 | 18 | 23 => byte == b'-',
        14 => byte == b'4',
        19 => matches!(byte, b'8' | b'9' | b'a' | b'b'),
        _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
    };
    key.len() == 36 && key.bytes().enumerate().all(right)
}

/// The log of attempts is what the server saw: nothing below sends again.
fn log(evidence: &Evidence, problems: &mut Problems) {
    let numbers: Vec<u32> = evidence.attempts().iter().map(Attempt::number).collect();
    problems.that(numbers.iter().copied().eq(1..=u32::try_from(numbers.len()).unwrap()), format!("log: {numbers:?}"));
    let sent = evidence.attempts().iter().filter(|attempt| may_have_been_received(attempt)).count();
    problems.same("attempts logged as sent against requests seen", sent, evidence.record.requests.len());
    for (attempt, seen) in evidence.pairs() {
        let (told, reply) = (attempt.status().map(|status| status.as_u16()), seen.reply.as_ref());
        let holds = told.is_none() || told == reply.map(|reply| reply.status);
        problems.that(holds, format!("log of attempt {}: status {told:?}, which was not sent", attempt.number()));
    }
}

pub(crate) fn may_have_been_received(attempt: &Attempt) -> bool {
    !matches!(attempt.failure(), Some(Failure::Connect | Failure::ConnectTimeout | Failure::Certificate))
}

/// The error names a time to come back, not before this one.
pub(crate) fn comes_back(error: &Error, not_before: SystemTime, problems: &mut Problems) {
    // The engine counts whole milliseconds.
    let earliest = not_before - Duration::from_millis(1);
    let holds = error.resume_at().is_some_and(|at| at >= earliest);
    problems.that(holds, format!("resume_at is {:?}, not {not_before:?} or later", error.resume_at()));
}
