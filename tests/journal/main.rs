//! The journal: its contract, what asking again does, crashes, faults, secrets.

#![allow(clippy::unwrap_used)] // helpers of tests

mod again;
mod contract;
mod cuts;
mod files;
mod kills;
mod processes;
mod reports;
mod support;
