//! The presets against what their providers' pages say: vectors made from a
//! copy of the facts, the hard cases, profiles as files, and `docs/profiles.md`.

#![allow(clippy::unwrap_used)] // helpers of tests

mod facts;
#[cfg(feature = "profile-files")]
mod files;
mod generic;
mod hard_cases;
mod matchers;
mod page;
mod sweep;
mod vectors;
