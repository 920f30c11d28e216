#![no_main]
#![allow(dead_code)] // each target uses a part of what they share

#[path = "../../tests/fuzz/answer.rs"]
mod answer;
#[path = "../../tests/fuzz/mutate.rs"]
mod mutate;
#[path = "../../tests/fuzz/reading.rs"]
mod reading;
#[path = "../../tests/fuzz/source.rs"]
mod source;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| answer::check(&mut source::Source::of(data)));
