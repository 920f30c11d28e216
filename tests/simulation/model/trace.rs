use oncekey::engine::{Entry, Outcome};

use super::Sim;
use super::answers::WAITS;
use super::network::Got;
use super::plan::Plan;

/// What happened in one run, a line each with its virtual time, where somebody wants to read it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    pub(crate) on: bool,
    pub(crate) lines: Vec<String>,
}

impl Sim<'_> {
    pub(super) fn note(&mut self, line: impl FnOnce(&Self) -> String) {
        if self.trace.on {
            let line = line(self);
            let after = self.time.saturating_sub(super::START);
            self.trace.lines.push(format!("{:>8}.{:03} s  {line}", after / 1000, after % 1000));
        }
    }
}

pub(super) fn plan(api: &str, plan: &Plan) -> String {
    let Plan { call, key, limits, habits, hook, own_schedule, .. } = plan;
    format!("{api}, {call:?}, key {key:?}, hook {hook}, own schedule {own_schedule}, {limits:?}, {habits:?}")
}

pub(super) fn told(got: &Got) -> String {
    match got {
        Got::Unsent { .. } => "no connection".to_owned(),
        Got::NoHead => "no answer".to_owned(),
        Got::Answer(answer) => {
            let mut line = format!("{} {}", answer.shape.status, answer.shape.body);
            if answer.mark > 0 {
                line += ", marked as a replay";
            }
            if !answer.is_all_there() {
                line += &format!(", of which {} bytes came", answer.len);
            }
            for (name, value) in WAITS[answer.wait].0 {
                line += &format!(", {name}: {value}");
            }
            line
        }
    }
}

pub(super) fn entry(entry: &Entry) -> String {
    match entry {
        Entry::Started { attempt, kind, .. } => format!("Started {attempt} ({})", kind.as_str()),
        Entry::Ended { attempt, verdict, .. } => format!("Ended {attempt}: {verdict}, {:?}", verdict.advice()),
        Entry::Interrupted { attempt, .. } => format!("Interrupted {attempt}"),
        Entry::Stopped { reason, .. } => format!("Stopped: {reason:?}"),
        other => format!("{other:?}"),
    }
}

pub(super) fn outcome(outcome: Option<Outcome>) -> String {
    match outcome {
        None => "the process is gone".to_owned(),
        Some(Outcome::Applied) => "Ok".to_owned(),
        Some(Outcome::Ended(verdict)) => format!("Err, the last answer: {verdict}"),
        Some(other) => format!("Err, {other:?}"),
    }
}
