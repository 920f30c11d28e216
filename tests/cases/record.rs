//! What the server saw: the truth that the client's own account is held against.

use std::collections::BTreeSet;
use std::fmt;
use std::time::{Duration, Instant, SystemTime};

use crate::data::Reply;

pub(crate) const KEY_HEADER: &str = "idempotency-key";

/// One request as it came.
#[derive(Clone)]
pub(crate) struct Seen {
    pub(crate) connection: usize,
    pub(crate) arrived: Instant,
    pub(crate) arrived_at: SystemTime,
    pub(crate) method: String,
    pub(crate) path: String,
    /// Every header line, in order.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// All of the body that was announced has come.
    pub(crate) whole: bool,
    /// Just before the reply was written, or the connection closed without one.
    pub(crate) answered: Option<Instant>,
    /// The reply as it went out, dates filled in.
    pub(crate) reply: Option<Reply>,
}

impl Seen {
    /// The values of all lines of this name.
    pub(crate) fn lines(&self, name: &str) -> Vec<&str> {
        let lines = self.headers.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
        lines.map(|(_, value)| value.as_str()).collect()
    }

    /// The key that it came with; of several, all of them.
    pub(crate) fn key(&self) -> String {
        self.lines(KEY_HEADER).join(", ")
    }
}

#[derive(Clone, Default)]
pub(crate) struct Record {
    pub(crate) requests: Vec<Seen>,
    /// The keys under which something was executed.
    pub(crate) executed: BTreeSet<String>,
    pub(crate) connections: usize,
    /// The connection that each warm-up request came on.
    pub(crate) warmups: Vec<usize>,
}

impl Record {
    pub(crate) fn distinct_keys(&self) -> BTreeSet<String> {
        self.requests.iter().map(Seen::key).collect()
    }

    /// Whether all bodies are the same bytes; one cut short counts with what came of it.
    pub(crate) fn bodies_are_identical(&self) -> bool {
        let Some(model) = self.requests.iter().find(|seen| seen.whole) else {
            return self.requests.len() < 2;
        };
        self.requests.iter().all(|seen| match seen.whole {
            true => seen.body == model.body,
            false => model.body.starts_with(&seen.body),
        })
    }

    /// From the answer to the request before, to request `n`, counted from 1.
    pub(crate) fn wait_before(&self, n: usize) -> Option<Duration> {
        let before = self.requests.get(n.checked_sub(2)?)?;
        let then = before.answered.unwrap_or(before.arrived);
        Some(self.requests.get(n - 1)?.arrived.saturating_duration_since(then))
    }

    /// The most requests of one key that the server worked on at once.
    pub(crate) fn overlap(&self) -> usize {
        let at_work = |seen: &Seen, at: Instant| seen.arrived <= at && seen.answered.is_none_or(|end| at < end);
        let beside = |one: &Seen| {
            let same_key = self.requests.iter().filter(|other| other.key() == one.key());
            same_key.filter(|other| at_work(other, one.arrived)).count()
        };
        self.requests.iter().map(beside).max().unwrap_or(0)
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = self.requests.first() else {
            return writeln!(f, "      no request, {} connections", self.connections);
        };
        for (index, seen) in self.requests.iter().enumerate() {
            let since_first = |at: Instant| at.saturating_duration_since(first.arrived).as_millis();
            let reply = match (&seen.reply, seen.answered) {
                (Some(reply), Some(at)) => format!("{} at {} ms", reply.status, since_first(at)),
                (None, Some(at)) => format!("closed at {} ms", since_first(at)),
                (_, None) => "no answer".to_owned(),
            };
            writeln!(
                f,
                "      #{} connection {} at {} ms: {} {} {:?} {} bytes{} -> {reply}",
                index + 1,
                seen.connection,
                since_first(seen.arrived),
                seen.method,
                seen.path,
                seen.lines(KEY_HEADER),
                seen.body.len(),
                if seen.whole { "" } else { " (not all)" },
            )?;
        }
        Ok(())
    }
}
