//! The journal: its contract, what asking again does, crashes, faults, secrets.

#![allow(clippy::unwrap_used)] // helpers of tests

mod again;
mod bots;
mod contract;
mod cuts;
mod examples;
mod files;
mod kills;
mod look;
mod pages;
mod payctl;
mod processes;
mod programs;
mod pruned;
mod reports;
mod shared;
mod support;
mod truth;
