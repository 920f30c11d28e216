#![no_main]
#![allow(dead_code)] // each target uses a part of what they share

#[path = "../../tests/fuzz/key.rs"]
mod key;
#[path = "../../tests/fuzz/mutate.rs"]
mod mutate;
#[path = "../../tests/fuzz/source.rs"]
mod source;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| key::check(&mut source::Source::of(data)));
