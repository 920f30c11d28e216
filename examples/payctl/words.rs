use std::error::Error as StdError;
use std::io::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::ArgMatches;
use clap::parser::ValueSource;
use oncekey::engine::{Time, Verdict, Why};
use oncekey::{Effect, Error, ErrorKind, OperationRecord, RecordState};

use crate::config::Settings;

/// Commands to go on with, as they are to be typed.
pub(crate) struct Hints {
    /// `payctl` with the options that this call was given.
    command: String,
    scope: String,
}

impl Hints {
    /// What the environment and the configuration say need not be typed again.
    pub(crate) fn new(settings: &Settings, typed: &ArgMatches) -> Self {
        let mut command = "payctl".to_owned();
        for name in ["config", "journal", "profile", "account"] {
            if typed.value_source(name) == Some(ValueSource::CommandLine) {
                let value = typed.get_raw(name).and_then(|mut values| values.next()).unwrap_or_default();
                command += &format!(" --{name} {}", quoted(&value.to_string_lossy()));
            }
        }
        let profile = settings.profile.id();
        let scope = match settings.account.as_deref() {
            Some(account) => format!("profile {profile}, account {}", line(account)),
            None => format!("profile {profile}, no account"),
        };
        Self { command, scope }
    }

    pub(crate) fn scope(&self) -> &str {
        &self.scope
    }

    pub(crate) fn list(&self) -> String {
        format!("{} list", self.command)
    }

    pub(crate) fn show(&self, id: &str) -> String {
        format!("{} show {}", self.command, quoted(id))
    }

    pub(crate) fn resume(&self, id: &str) -> String {
        format!("{} resume {}", self.command, quoted(id))
    }

    fn abandon(&self, id: &str) -> String {
        format!("{} abandon {}", self.command, quoted(id))
    }

    /// What to do with a payment that has no answer.
    pub(crate) fn after(
        &self,
        id: &str,
        effect: Effect,
        error: Option<&Error>,
        record: Option<&OperationRecord>,
    ) -> String {
        let kind = error.map(Error::kind);
        let state = record.map(OperationRecord::state);
        if kind == Some(ErrorKind::Busy) || state == Some(RecordState::Running) {
            return format!("Another process works on it. Ask again later: `{}`", self.resume(id));
        }
        match effect {
            Effect::Applied if kind == Some(ErrorKind::Resolved) => {
                format!("It was settled by hand: `{}` tells by whom.", self.show(id))
            }
            Effect::Applied => format!("It is paid; only the answer is missing. To ask for it: `{}`", self.resume(id)),
            Effect::NotApplied if matches!(kind, Some(ErrorKind::Resolved | ErrorKind::Rejected)) => {
                "Nothing was paid, nor will it be under this id. To pay after all, use another --id.".to_owned()
            }
            Effect::NotApplied if state == Some(RecordState::Unfinished) => {
                format!("Nothing was paid. Go on with it: `{}`, or give it up: `{}`", self.resume(id), self.abandon(id))
            }
            Effect::NotApplied => format!(
                "Nothing was paid. Correct the cause and give the same command again, or give it up: `{}`",
                self.abandon(id)
            ),
            Effect::Unknown if state == Some(RecordState::InDoubt) => {
                let key = record.and_then(OperationRecord::key);
                let key = key.map_or_else(String::new, |key| format!(" under the key {}", key.as_str()));
                format!(
                    "It may be paid, and must not be sent again. Look it up at the provider{key}, then say what you found:\n  \
                     {} resolve {} --effect applied|not-applied --by NAME --note TEXT",
                    self.command,
                    quoted(id)
                )
            }
            Effect::Unknown => {
                let first =
                    if kind == Some(ErrorKind::Refused) { "Correct what it was refused for, then go" } else { "Go" };
                let at = error.and_then(Error::resume_at).or_else(|| record.and_then(OperationRecord::resume_at));
                let wait = at.and_then(|at| at.duration_since(SystemTime::now()).ok());
                let when = wait.map_or_else(String::new, |wait| format!(" in {}", span(wait)));
                format!(
                    "It may be paid: never pay it under another id. {first} on with it{when}: `{}`",
                    self.resume(id)
                )
            }
        }
    }
}

/// The result. Whoever reads it may have gone, as with `| head`: the exit code
/// tells all the same, and `println!` would panic.
pub(crate) fn say(text: impl AsRef<[u8]>) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_ref()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
}

/// All else.
pub(crate) fn note(text: impl AsRef<str>) {
    let _ = writeln!(io::stderr(), "{}", text.as_ref());
}

/// What went wrong, without the effect, which is said apart.
///
/// The text of an error ends in its effect, and says that an answer is missing
/// also where what was refused is another request.
pub(crate) fn what(error: &Error) -> String {
    let text = error.to_string();
    text.rsplit_once("; ").map_or(text.as_str(), |(what, _)| what).to_owned()
}

/// An error with its causes.
pub(crate) fn chain(error: &(dyn StdError + 'static)) -> String {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    let mut text = line(&error.to_string());
    for cause in causes.map(|cause| line(&cause.to_string())) {
        // Some repeat their cause's text.
        if !text.contains(&cause) {
            text += ": ";
            text += &cause;
        }
    }
    text
}

pub(crate) fn attempts(record: &OperationRecord) -> String {
    count(usize::try_from(record.attempts()).unwrap_or(usize::MAX), "attempt")
}

pub(crate) fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Whether the attempt had an answer, if only its head.
pub(crate) fn is_answer(verdict: Verdict) -> bool {
    !matches!(verdict.why(), Why::NotSent | Why::NoHead)
}

pub(crate) fn reading(verdict: Verdict) -> String {
    match verdict.why() {
        // "refused, refusal" says it twice.
        Why::Refusal => verdict.reach().as_str().to_owned(),
        _ => verdict.to_string(),
    }
}

pub(crate) fn span(span: Duration) -> String {
    match span.as_secs() {
        0..10 => format!("{:.1}s", span.as_secs_f64()),
        seconds @ 10..120 => format!("{seconds}s"),
        seconds @ 120..7200 => format!("{}m", seconds / 60),
        seconds @ 7200..172_800 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

pub(crate) fn system_time(at: Time) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(at.as_millis())
}

/// One line of a terminal, which it cannot steer.
pub(crate) fn line(text: &str) -> String {
    escaped(text, |_| false)
}

/// The same of several lines.
pub(crate) fn harmless(text: &[u8]) -> String {
    escaped(&String::from_utf8_lossy(text), |c| matches!(c, '\n' | '\t'))
}

fn escaped(text: &str, is_kept: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && !is_kept(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// For a shell.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", line(text).replace('\'', r"'\''"))
    }
}
