//! scratch
extern crate alloc;
pub mod engine;
pub mod profile;
