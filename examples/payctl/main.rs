//! Payments from a command line, each made once.
//!
//! ```sh
//! export PAYCTL_TOKEN=... PAYCTL_JOURNAL=$HOME/payments.db
//! cargo run --example payctl --features sqlite -- --create \
//!     pay --id rent-2026-12 --amount 45000 --to landlord --url https://api.example.com/v1/payments
//! ```
//!
//! The id is the payment: the same command again pays nothing twice. What ends
//! without an answer is listed by `payctl list` and gone on with by `payctl resume`.
#![allow(clippy::disallowed_methods, reason = "what a person is shown counts from the wall clock")]

mod args;
mod commands;
mod progress;
mod show;
mod words;

use std::process::ExitCode;

use clap::Parser;

use crate::args::Args;

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    match commands::run(&args).await {
        Ok(exit) => exit.into(),
        Err(problem) => {
            words::note(format!("payctl: {problem}"));
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
