//! The journal: its contract, what asking again does, crashes, faults, secrets.

#![allow(clippy::unwrap_used)] // helpers of tests

mod again;
mod examples;
mod payctl;
mod programs;
mod support;
