//! One way in which a report is played, and the runner that plays all of them.
#![allow(clippy::disallowed_methods)] // a run that would sleep for a year must fail today

use std::fmt::Write;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::checks::Problems;
use crate::data::{self, Report};
use crate::scene::Scene;

/// What came of a run.
pub(crate) struct Findings {
    pub(crate) problems: Problems,
    pub(crate) summary: String,
    /// What the client said and what the server saw.
    pub(crate) details: String,
}

pub(crate) enum Name {
    /// The steps and settings as the report gives them.
    AsGiven,
    /// One of the report's variants, by its label there.
    Variant(&'static str),
    /// What only the text of the report asks for.
    Also(String),
}

pub(crate) struct Run {
    pub(crate) name: Name,
    play: Pin<Box<dyn Future<Output = Findings> + Send>>,
}

impl Run {
    /// One that is more than a change to the report's own scene.
    pub(crate) fn also(label: &str, play: impl Future<Output = Findings> + Send + 'static) -> Self {
        Self::new(Name::Also(label.to_owned()), play)
    }

    pub(crate) fn new(name: Name, play: impl Future<Output = Findings> + Send + 'static) -> Self {
        Self { name, play: Box::pin(play) }
    }

    fn label(&self) -> String {
        match &self.name {
            Name::AsGiven => "as given".to_owned(),
            Name::Variant(label) => (*label).to_owned(),
            Name::Also(label) => format!("also: {label}"),
        }
    }
}

impl Report {
    pub(crate) fn as_given(&self, change: impl FnOnce(&mut Scene)) -> Run {
        self.run(Name::AsGiven, change)
    }

    pub(crate) fn variant(&self, label: &'static str, change: impl FnOnce(&mut Scene)) -> Run {
        self.run(Name::Variant(label), change)
    }

    pub(crate) fn also(&self, label: &str, change: impl FnOnce(&mut Scene)) -> Run {
        self.run(Name::Also(label.to_owned()), change)
    }

    fn run(&self, name: Name, change: impl FnOnce(&mut Scene)) -> Run {
        let mut scene = Scene::of(self);
        change(&mut scene);
        Run::new(name, scene.play())
    }
}

/// How many runs of one report go on at once.
const AT_ONCE: usize = 4;

/// No run takes a fifth of this.
const LONGEST: Duration = Duration::from_secs(30);

/// Plays every run of a report, and tells of all that failed together.
pub(crate) async fn play(id: &str, runs: fn(&Report) -> Vec<Run>) {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut playing = JoinSet::new();
    for (index, run) in runs(&data::report(id)).into_iter().enumerate() {
        let (places, label) = (Arc::clone(&places), run.label());
        playing.spawn(async move {
            let _place = places.acquire().await;
            // In a task of its own: a panic is a finding, and the others go on.
            (index, label, tokio::spawn(tokio::time::timeout(LONGEST, run.play)).await)
        });
    }
    let mut played = playing.join_all().await;
    played.sort_by_key(|(index, ..)| *index);
    let mut failures = String::new();
    for (_, label, findings) in played {
        let (summary, problems, details) = match findings {
            Ok(Ok(findings)) => (findings.summary, findings.problems.0, findings.details),
            Ok(Err(_)) => ("hangs".to_owned(), vec![format!("not over after {LONGEST:?}")], String::new()),
            Err(error) => ("panicked".to_owned(), vec![error.to_string()], String::new()),
        };
        let verdict = if problems.is_empty() { "ok" } else { "FAILED" };
        println!("{id:<9} {label:<52} {verdict:<6} {summary}");
        if !problems.is_empty() {
            let problems = problems.join("\n    - ");
            writeln!(failures, "{id}, {label}: {summary}\n    - {problems}\n{details}").unwrap();
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}
