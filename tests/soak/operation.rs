//! One operation: what it asks for, and what its caller was told.

use oncekey::{Attempt, Client, Effect, ErrorKind, Failure, IdempotencyKey};
use serde_json::{Value, json};

/// Most are plain payments under a key drawn for them; some are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Payment,
    /// A payment under a key of the caller's own.
    OwnKey,
    /// A PATCH.
    Change,
    /// A payment of nothing, which the server refuses.
    Nothing,
    /// A POST without a key, on a route that needs none.
    Keyless,
}

impl Kind {
    pub(crate) const fn of(number: usize) -> Self {
        match number % 16 {
            0 => Self::OwnKey,
            1 => Self::Change,
            2 => Self::Keyless,
            3 | 4 => Self::Nothing,
            _ => Self::Payment,
        }
    }
}

/// No two have the same path: by it the server's rows are told apart.
pub(crate) fn path(number: usize) -> String {
    match Kind::of(number) {
        Kind::Keyless => format!("/v1/notes/{number}"),
        Kind::Payment | Kind::OwnKey | Kind::Change | Kind::Nothing => format!("/v1/payments/{number}"),
    }
}

fn body(number: usize) -> Value {
    let amount = if Kind::of(number) == Kind::Nothing { 0 } else { 1 + number };
    json!({"amount": amount, "currency": "usd"})
}

pub(crate) fn body_bytes(number: usize) -> Vec<u8> {
    body(number).to_string().into_bytes()
}

/// How it ended for the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    Ok,
    NotApplied,
    Applied,
    Unknown,
}

/// What the caller was told.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) number: usize,
    pub(crate) outcome: Outcome,
    pub(crate) error: Option<ErrorKind>,
    pub(crate) key: Option<String>,
    /// The id in the answer of an `Ok`.
    pub(crate) id: Option<String>,
    pub(crate) log: Vec<Line>,
    pub(crate) table: String,
}

/// One attempt, as the log has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) unsent: bool,
    pub(crate) timed_out: bool,
    pub(crate) status: Option<u16>,
}

impl Line {
    fn of(attempt: &Attempt) -> Self {
        Self {
            unsent: attempt.verdict().is_some_and(|verdict| verdict.reach() == oncekey::engine::Reach::Unsent),
            timed_out: attempt.failure() == Some(Failure::Timeout),
            status: attempt.status().map(|status| status.as_u16()),
        }
    }
}

pub(crate) async fn carry_out(client: &Client, origin: &str, number: usize) -> Told {
    let url = format!("{origin}{}", path(number));
    let request = match Kind::of(number) {
        Kind::Payment | Kind::Nothing => client.post(url),
        Kind::Change => client.patch(url),
        Kind::Keyless => client.post(url).without_key(),
        Kind::OwnKey => {
            let key = format!("5d9b7a52-8a3c-4a43-9a57-{number:012x}");
            client.post(url).idempotency_key(IdempotencyKey::parse(key).unwrap())
        }
    };
    let sent = request.json(&body(number)).send().await;
    let (outcome, error, key, id, attempts) = match &sent {
        Ok(response) => {
            let body: Value = response.json().unwrap();
            let id = body["id"].as_str().map(str::to_owned);
            (Outcome::Ok, None, response.key(), id, response.attempts())
        }
        Err(error) => {
            let outcome = match error.effect() {
                Effect::NotApplied => Outcome::NotApplied,
                Effect::Applied => Outcome::Applied,
                Effect::Unknown => Outcome::Unknown,
            };
            (outcome, Some(error.kind()), error.key(), None, error.attempts())
        }
    };
    Told {
        number,
        outcome,
        error,
        key: key.map(|key| key.as_str().to_owned()),
        id,
        log: attempts.iter().map(Line::of).collect(),
        table: Attempt::table(attempts).to_string(),
    }
}
