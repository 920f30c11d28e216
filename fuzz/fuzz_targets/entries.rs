#![no_main]
#![allow(dead_code)] // each target uses a part of what they share

#[path = "../../tests/fuzz/entries.rs"]
mod entries;
#[path = "../../tests/fuzz/source.rs"]
mod source;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| entries::check(&mut source::Source::of(data)));
