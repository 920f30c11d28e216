//! What a fault consists of: how far the request gets, what is said, and how that is delivered.

use super::answer::{Answer, allows_body};
use super::config::Config;
use super::retry_after::{DateForm, RetryAfter, date};
use bytes::{BufMut, Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, DATE, RETRY_AFTER, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use std::time::{Duration, SystemTime};

#[derive(Clone, PartialEq, Eq, Default)]
pub(super) struct Plan {
    pub(super) route: Route,
    pub(super) stall: Option<Phase>,
    /// How long stalls last; without it, until the client goes away.
    pub(super) lasting: Option<Duration>,
    pub(super) said: Said,
    pub(super) mangle: Option<Mangle>,
    pub(super) framing: Framing,
    pub(super) cut: Option<Cut>,
    pub(super) drip: Option<(usize, Duration)>,
    pub(super) garbled: bool,
}

/// How far the request gets.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Route {
    /// Not even its body is read.
    Shut(Ending),
    /// To the gateway, which answers.
    Gateway,
    /// All the way and back.
    #[default]
    Through,
    /// All the way, and the gateway replaces the answer.
    Behind,
    /// To a handler that says what it is told to.
    Handler { executes: bool },
    /// To a handler that dies with the key locked.
    Crash { executes: bool },
    /// All the way, twice at once.
    Twice,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    BeforeReading,
    BeforeExecuting,
    WhileExecuting,
}

/// What is changed in the answer, or stands in its place.
#[derive(Clone, PartialEq, Eq, Default)]
pub(super) struct Said {
    pub(super) status: Option<StatusCode>,
    pub(super) body: Option<(HeaderValue, Bytes)>,
    pub(super) headers: HeaderMap,
    pub(super) retry_after: Option<RetryAfter>,
    pub(super) in_progress: bool,
    pub(super) marked: bool,
    pub(super) undated: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mangle {
    /// Blanks after it, up to that length.
    Pad(usize),
    /// Its first bytes only, with a length that agrees.
    Truncate(usize),
    /// First and last byte as JSON should have them, and no JSON in between.
    Garble,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Framing {
    #[default]
    Length,
    Chunked,
    /// No length: the body ends where the connection does.
    Unframed,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) at: At,
    pub(super) then: Ending,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    Start,
    Head(usize),
    Body(usize),
    End,
}

/// How an exchange ends that goes wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// This exchange alone is broken off, where the version has others beside it.
    Broken,
    /// The connection closes.
    Fin,
    /// The connection is reset.
    Reset,
    /// Nothing more comes.
    Stall,
    /// Of HTTP/2: the stream is refused.
    Refused,
    /// Of HTTP/2: the connection is given up, with this error code.
    GoAway(u32),
    /// Of HTTP/2: nothing that the connection carries is ever answered again.
    BlackHole,
}

impl Said {
    /// The canned answer, with nothing real in it.
    pub(super) fn canned(&self, fallback: StatusCode, config: &Config, now: SystemTime) -> Answer {
        let base = if self.in_progress { in_progress(config) } else { Answer::bare(self.status.unwrap_or(fallback)) };
        self.onto(base, config, now)
    }

    /// The real answer with what is said otherwise.
    pub(super) fn onto(&self, mut answer: Answer, config: &Config, now: SystemTime) -> Answer {
        if let Some(status) = self.status {
            answer.status = status;
        }
        if let Some((content_type, body)) = &self.body {
            answer = answer.with_body(content_type.clone(), body.clone());
        }
        if self.marked {
            answer = marked(answer, config);
        }
        if let Some(retry_after) = &self.retry_after {
            answer = answer.with(RETRY_AFTER, retry_after.at(now));
            // Off the same clock reading: a second between the two would change what they say.
            if !self.undated {
                answer = answer.with(DATE, date(DateForm::Imf, now));
            }
        }
        for name in self.headers.keys() {
            answer.headers.remove(name);
        }
        for (name, value) in &self.headers {
            answer.headers.append(name, value.clone());
        }
        answer
    }
}

impl Mangle {
    pub(super) fn apply(self, body: Bytes) -> Bytes {
        match self {
            Self::Pad(len) => {
                let mut padded = BytesMut::from(body);
                let missing = len.saturating_sub(padded.len());
                padded.put_bytes(b' ', missing);
                padded.freeze()
            }
            Self::Truncate(len) => {
                let len = len.min(body.len().saturating_sub(1));
                body.slice(..len)
            }
            Self::Garble => Bytes::from_static(br#"{"id": pay_1, "status" "captured",}"#),
        }
    }
}

impl Plan {
    /// Whether the head reaches the client whole, at once or after a stall.
    pub(super) fn head_arrives(&self) -> bool {
        let stalls_for_a_while = || self.cut.is_some_and(|cut| cut.then == Ending::Stall) && self.lasting.is_some();
        let cut_before = self.cut.is_some_and(|cut| matches!(cut.at, At::Start | At::Head(_)));
        !self.garbled && (!cut_before || stalls_for_a_while())
    }

    /// Whether hyper cannot write this answer.
    pub(super) fn needs_script(&self, answer: &Answer) -> bool {
        self.framing != Framing::Length
            || self.cut.is_some()
            || self.drip.is_some()
            || self.garbled
            || answer.status.is_informational()
            || [CONTENT_LENGTH, TRANSFER_ENCODING, CONNECTION].iter().any(|name| answer.headers.contains_key(name))
    }

    /// Where a cut after `n` bytes falls in a body of this length. One with a length misses a byte at
    /// least.
    pub(super) fn cut_of(&self, n: usize, len: usize) -> usize {
        n.min(match self.framing {
            Framing::Length => len.saturating_sub(1),
            Framing::Chunked | Framing::Unframed => len,
        })
    }
}

pub(super) fn marked(answer: Answer, config: &Config) -> Answer {
    match &config.replay_mark {
        Some((name, value)) => answer.with(name.clone(), value.clone()),
        None => answer,
    }
}

pub(super) fn in_progress(config: &Config) -> Answer {
    let answer = Answer::json(StatusCode::CONFLICT, config.in_progress_json.clone());
    match &config.in_progress_retry_after {
        Some(value) => answer.with(RETRY_AFTER, value.clone()),
        None => answer,
    }
}

/// Takes the body off an answer that cannot have one.
pub(super) fn settle_body(answer: &mut Answer, method: &Method) {
    // hyper keeps a HEAD's length and leaves its body out by itself.
    if method != Method::HEAD && !allows_body(method, answer.status) {
        answer.body = Bytes::new();
    }
}
