//! The decisions, without any I/O: the engine's traces and invariants, the
//! rules by which answers are read, the presets.

#![allow(clippy::unwrap_used)] // helpers of tests

mod defaults;
mod driving;
mod edges;
mod invariants;
mod on_record;
mod profiles;
mod reading;
mod sequences;
mod trace;
