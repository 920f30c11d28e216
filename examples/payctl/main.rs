//! Payments from a command line, each made once.
//!
//! ```sh
//! export PAYCTL_TOKEN=... PAYCTL_JOURNAL=$HOME/payments.db
//! cargo run --example payctl --features sqlite,profile-files -- --create \
//!     pay --id rent-2026-12 --amount 45000 --to landlord --url https://api.example.com/v1/payments
//! ```
//!
//! The id is the payment: the same command again pays nothing twice. What ends
//! without an answer is listed by `payctl list` and gone on with by `payctl resume`. How
//! it is made, and why: docs/cli.md.
#![allow(clippy::disallowed_methods, reason = "what a person is shown counts from the wall clock")]

mod args;
mod commands;
mod config;
mod json;
mod problem;
mod progress;
mod show;
mod token;
mod words;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use crate::args::Args;
use crate::problem::Problem;

#[tokio::main]
async fn main() -> ExitCode {
    let typed = Args::command().try_get_matches();
    let parsed = typed.and_then(|typed| Args::from_arg_matches(&typed).map(|args| (args, typed)));
    let (args, typed) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            let _ = error.print();
            // Nothing is parsed that could tell it.
            if error.use_stderr() && std::env::args_os().any(|word| word == "--json") {
                json::problem(&Problem::from(error.render().to_string().trim_end().to_owned()));
            }
            return if error.use_stderr() { Exit::Usage.into() } else { ExitCode::SUCCESS };
        }
    };
    match commands::run(&args, &typed).await {
        Ok(exit) => exit.into(),
        Err(problem) => {
            words::note(format!("payctl: {}", problem.message));
            if args.json {
                json::problem(&problem);
            }
            Exit::Usage.into()
        }
    }
}

/// What scripts go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    /// It is applied, even if its answer is missing; or the command is done.
    Applied,
    /// It is not applied.
    NotApplied,
    /// The command could not be carried out, and sent nothing.
    Usage,
    /// It may be applied.
    Unknown,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Applied => 0,
            Exit::NotApplied => 1,
            Exit::Usage => 2,
            Exit::Unknown => 3,
        })
    }
}

impl From<oncekey::Effect> for Exit {
    fn from(effect: oncekey::Effect) -> Self {
        match effect {
            oncekey::Effect::Applied => Self::Applied,
            oncekey::Effect::NotApplied => Self::NotApplied,
            oncekey::Effect::Unknown => Self::Unknown,
        }
    }
}
