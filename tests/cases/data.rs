//! The reports as they are written down. What this does not know is an error,
//! so that nothing in them is passed over.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

const REPORTS: &str = include_str!("../reports.json");

/// Every report's id, in the file's order.
pub(crate) fn ids() -> Vec<String> {
    all().iter().map(|report| report["id"].as_str().unwrap().to_owned()).collect()
}

pub(crate) fn report(id: &str) -> Report {
    let found = all().into_iter().find(|report| report["id"] == id);
    let found = found.unwrap_or_else(|| panic!("there is no report {id}"));
    serde_json::from_value(found).unwrap_or_else(|error| panic!("{id}: {error}"))
}

fn all() -> Vec<Value> {
    serde_json::from_str(REPORTS).unwrap()
}

/// The part of a report that is run; the rest is for readers.
#[derive(Deserialize)]
pub(crate) struct Report {
    pub(crate) client: Settings,
    pub(crate) steps: Vec<Step>,
    pub(crate) variants: Vec<String>,
    pub(crate) expect: Expect,
}

/// How the client is set up. The defaults are those that all reports share.
#[derive(Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    /// Earlier requests on the same pool, answered 201 and not counted.
    pub(crate) warmup: usize,
    pub(crate) max_attempts: u32,
    pub(crate) base_ms: u64,
    pub(crate) cap_ms: u64,
    pub(crate) per_attempt_timeout_ms: u64,
    pub(crate) deadline_ms: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { warmup: 0, max_attempts: 6, base_ms: 20, cap_ms: 200, per_attempt_timeout_ms: 500, deadline_ms: 10_000 }
    }
}

/// What the server does at a request.
#[derive(Clone, Deserialize)]
#[serde(from = "Written")]
pub(crate) struct Step {
    pub(crate) at: At,
    pub(crate) read: Read,
    /// Counted once per key.
    pub(crate) execute: bool,
    pub(crate) delay_ms: u64,
    pub(crate) reply: Option<Reply>,
    pub(crate) after: After,
}

impl Step {
    pub(crate) fn delay(&self) -> Duration {
        Duration::from_millis(self.delay_ms)
    }
}

/// A step as it is written down.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Answered(Answered),
    Ended(Ended),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answered {
    n: At,
    read: Read,
    execute: bool,
    delay_ms: u64,
    reply: Option<Reply>,
    after: After,
}

/// By a frame of HTTP/2, in place of an answer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ended {
    n: At,
    #[serde(deserialize_with = "frame")]
    h2: After,
    #[serde(default)]
    execute: bool,
}

impl From<Written> for Step {
    fn from(written: Written) -> Self {
        match written {
            Written::Answered(Answered { n: at, read, execute, delay_ms, reply, after }) => {
                Self { at, read, execute, delay_ms, reply, after }
            }
            Written::Ended(Ended { n: at, h2: after, execute }) => {
                Self { at, read: Read::Full, execute, delay_ms: 0, reply: None, after }
            }
        }
    }
}

fn frame<'de, D: Deserializer<'de>>(text: D) -> Result<After, D::Error> {
    let text = String::deserialize(text)?;
    let code = |name: &str| match name {
        "NO_ERROR" => Some(NO_ERROR),
        "REFUSED_STREAM" => Some(REFUSED_STREAM),
        _ => None,
    };
    let frame = match text.split(' ').collect::<Vec<_>>().as_slice() {
        ["RST_STREAM", name] => code(name).map(After::RstStream),
        ["GOAWAY", last, name, "close"] => {
            let last = last.strip_prefix("last=").and_then(|last| last.parse().ok());
            last.zip(name.strip_suffix(',').and_then(code)).map(|(last, code)| After::GoAway { last, code })
        }
        _ => None,
    };
    frame.ok_or_else(|| serde::de::Error::custom(format!("no frame: {text}")))
}

/// Error codes of HTTP/2 (RFC 9113, 7).
pub(crate) const NO_ERROR: u32 = 0;
pub(crate) const REFUSED_STREAM: u32 = 7;

/// Which requests a step is for, counted from 1.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub(crate) enum At {
    Numbers(RangeInclusive<usize>),
    AllOthers,
}

impl At {
    pub(crate) const fn number(n: usize) -> Self {
        Self::Numbers(n..=n)
    }
}

impl TryFrom<Value> for At {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let text = match &value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let number = |text: &str| text.parse().map_err(|_| format!("no request number: {text}"));
        Ok(match text.split_once('-') {
            _ if text == "*" => Self::AllOthers,
            Some((first, last)) => Self::Numbers(number(first)?..=number(last)?),
            None => Self::number(number(&text)?),
        })
    }
}

/// How much of a request is read before the server goes on.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Read {
    Full,
    Head,
    /// The head and half of the body: in no step as written, in variants.
    #[serde(skip)]
    Half,
}

/// What becomes of the connection.
#[cfg_attr(not(feature = "http2"), allow(dead_code))] // written down, and not played
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum After {
    Keep,
    Fin,
    Rst,
    Hang,
    /// Of HTTP/2: the stream is reset, with this error code.
    #[serde(skip)]
    RstStream(u32),
    /// Of HTTP/2: the connection is given up, and closes.
    #[serde(skip)]
    GoAway {
        last: u32,
        code: u32,
    },
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    #[serde(deserialize_with = "bytes")]
    pub(crate) body: Vec<u8>,
    /// Its `Content-Length` is the one in `headers`, or none.
    #[serde(default)]
    pub(crate) raw_length: bool,
}

fn bytes<'de, D: Deserializer<'de>>(text: D) -> Result<Vec<u8>, D::Error> {
    String::deserialize(text).map(String::into_bytes)
}

impl Reply {
    pub(crate) fn json(status: u16, body: &str) -> Self {
        Self::new(status, body).with("Content-Type", "application/json")
    }

    pub(crate) fn new(status: u16, body: impl AsRef<[u8]>) -> Self {
        Self { status, headers: BTreeMap::new(), body: body.as_ref().to_vec(), raw_length: false }
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(name.to_owned(), value.to_owned());
        self
    }

    pub(crate) fn with_raw_length(self) -> Self {
        Self { raw_length: true, ..self }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expect {
    pub(crate) outcome: Outcome,
    pub(crate) executions: usize,
    pub(crate) distinct_keys: usize,
    pub(crate) bodies_identical: Option<bool>,
    pub(crate) http_status: Option<u16>,
    pub(crate) wire_requests: Count,
    #[serde(default)]
    pub(crate) waits: Vec<Wait>,
    pub(crate) max_overlap: Option<usize>,
    pub(crate) finish_within_ms: Option<u64>,
    pub(crate) second_origin_requests: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum Outcome {
    Success,
    Rejected,
    Unknown,
    NotSent,
    CallerError,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(untagged)]
pub(crate) enum Count {
    Exactly(usize),
    Between(usize, usize),
}

impl Count {
    pub(crate) const fn holds(self, found: usize) -> bool {
        match self {
            Self::Exactly(count) => found == count,
            Self::Between(least, most) => least <= found && found <= most,
        }
    }
}

/// How long the client waits before a request, in milliseconds.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wait {
    pub(crate) before: Before,
    pub(crate) min_ms: u64,
    pub(crate) max_ms: Option<u64>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(untagged)]
pub(crate) enum Before {
    Number(usize),
    Named(Every),
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Every {
    All,
}
