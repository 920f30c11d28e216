use std::collections::HashMap;
use std::io::{self, IsTerminal};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use oncekey::{Attempt, Event};

use crate::words;

/// What is under way, as the events tell it: a line for each payment that is
/// rewritten on a terminal, a line for each attempt but the last in a pipe, nothing if quiet. A
/// payment that is made at the first attempt leaves no line.
pub(crate) struct Progress {
    form: Form,
    payments: Mutex<HashMap<String, Payment>>,
}

enum Form {
    Quiet,
    Pipe,
    Terminal(MultiProgress),
}

#[derive(Default)]
struct Payment {
    /// How the last attempt ended, until it is told with what follows.
    last: String,
    ended: Vec<Attempt>,
    bar: Option<ProgressBar>,
}

impl Progress {
    pub(crate) fn new(is_quiet: bool) -> Self {
        let form = match is_quiet {
            true => Form::Quiet,
            false if io::stderr().is_terminal() => Form::Terminal(MultiProgress::new()),
            false => Form::Pipe,
        };
        Self { form, payments: Mutex::default() }
    }

    /// The hook. It must not take long: the payment waits for it.
    pub(crate) fn tell(&self, event: &Event<'_>) {
        let Some(id) = event.operation().map(|id| words::line(id.as_str())) else {
            return;
        };
        let mut payments = self.payments();
        let payment = payments.entry(id.clone()).or_default();
        match event {
            Event::AttemptStarted(started) => {
                let last = std::mem::take(&mut payment.last);
                if !last.is_empty() {
                    self.tell_pipe(&format!("{id}: {last}; next at once"));
                }
                self.rewrite(payment, &format!("{id}: attempt {} under way", started.number()));
            }
            Event::AttemptEnded(ended) => {
                payment.last = end(ended.attempt());
                payment.ended.push(ended.attempt().clone());
            }
            Event::Waiting(wait) | Event::Polling(wait) => {
                // Without an attempt of this run it is what an earlier one left to be waited for.
                let last = std::mem::take(&mut payment.last);
                let then = if last.is_empty() { "" } else { "; " };
                let line = format!("{id}: {last}{then}next in {}", words::span(wait.duration()));
                self.tell_pipe(&line);
                self.rewrite(payment, &line);
            }
            Event::Ended(_) => clear(payment),
            _ => {}
        }
    }

    /// Somebody else works on it, and this command is next.
    pub(crate) fn waits(&self, id: &str) {
        let id = words::line(id);
        let line = format!("{id}: another process works on it; waiting for its end");
        self.tell_pipe(&line);
        self.rewrite(self.payments().entry(id).or_default(), &line);
    }

    /// Prints beside what is shown.
    pub(crate) fn beside<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.form {
            Form::Terminal(bars) => bars.suspend(print),
            Form::Quiet | Form::Pipe => print(),
        }
    }

    /// A call that is dropped tells no end.
    pub(crate) fn clear(&self) {
        self.payments().values_mut().for_each(clear);
    }

    /// The attempts of this run that ended, also if the call did not.
    pub(crate) fn ended(&self, id: &str) -> Vec<Attempt> {
        self.payments().get(&words::line(id)).map(|payment| payment.ended.clone()).unwrap_or_default()
    }

    fn tell_pipe(&self, line: &str) {
        if matches!(self.form, Form::Pipe) {
            words::note(line);
        }
    }

    fn rewrite(&self, payment: &mut Payment, line: &str) {
        let Form::Terminal(bars) = &self.form else {
            return;
        };
        let bar = payment.bar.get_or_insert_with(|| {
            let bar = bars.add(ProgressBar::new_spinner());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed:>3} {wide_msg}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(100));
            bar
        });
        bar.reset_elapsed();
        bar.set_message(line.to_owned());
    }

    fn payments(&self) -> MutexGuard<'_, HashMap<String, Payment>> {
        self.payments.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn clear(payment: &mut Payment) {
    if let Some(bar) = payment.bar.take() {
        bar.finish_and_clear();
    }
}

fn end(attempt: &Attempt) -> String {
    let status = attempt.status().map(|status| format!("{}, ", status.as_u16())).unwrap_or_default();
    let reading = attempt.verdict().map(words::reading).unwrap_or_default();
    format!("attempt {}: {status}{reading}", attempt.number())
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
