use std::io::{self, IsTerminal, Write};
use std::time::{Duration, SystemTime};

use oncekey::OperationRecord;
use oncekey::engine::Entry;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::words;

/// What is under way, read from the record: one line that is rewritten on a
/// terminal, a line for each change in a pipe.
pub(crate) struct Progress {
    id: String,
    is_terminal: bool,
    ticks: Interval,
    entries: usize,
    shown: bool,
}

impl Progress {
    pub(crate) fn new(id: &str) -> Self {
        let mut ticks = interval(Duration::from_millis(200));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.reset();
        Self { id: words::line(id), is_terminal: io::stderr().is_terminal(), ticks, entries: 0, shown: false }
    }

    pub(crate) async fn tick(&mut self) {
        self.ticks.tick().await;
    }

    pub(crate) fn show(&mut self, record: Option<&OperationRecord>) {
        let Some(text) = record.and_then(|record| self.text(record)) else {
            return;
        };
        if self.is_terminal {
            // A line that wraps could not be rewritten.
            let line: String = format!("{}: {text}", self.id).chars().take(79).collect();
            rewrite(&line);
            self.shown = true;
        } else {
            words::note(format!("{}: {text}", self.id));
        }
    }

    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            rewrite("");
        }
    }

    fn text(&mut self, record: &OperationRecord) -> Option<String> {
        let entries = record.entries();
        let is_new = entries.len() != std::mem::replace(&mut self.entries, entries.len());
        if !is_new && !self.is_terminal {
            return None;
        }
        let now = SystemTime::now();
        match entries.last()? {
            Entry::Started { attempt, at, .. } => {
                let since = if self.is_terminal {
                    format!(" for {}", words::span(words::since(*at, now)))
                } else {
                    String::new()
                };
                Some(format!("attempt {attempt} under way{since}"))
            }
            Entry::Ended { attempt, verdict, next_at, .. } => {
                let status = record.last_answer().map(|answer| format!("{}, ", answer.status().as_u16()));
                let status = status.filter(|_| words::is_answer(*verdict)).unwrap_or_default();
                let next = match next_at {
                    Some(at) => format!("; next in {}", words::span(words::until(*at, now))),
                    None => String::new(),
                };
                Some(format!("attempt {attempt}: {status}{}{next}", words::reading(*verdict)))
            }
            _ => None,
        }
    }
}

fn rewrite(line: &str) {
    let mut err = io::stderr();
    let _ = write!(err, "\r\x1b[K{line}").and_then(|()| err.flush());
}

/// Ctrl-C, or being asked to end.
pub(crate) async fn interrupted() {
    #[cfg(unix)]
    if let Ok(mut terminate) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate.recv() => {}
        }
        return;
    }
    let _ = tokio::signal::ctrl_c().await;
}
