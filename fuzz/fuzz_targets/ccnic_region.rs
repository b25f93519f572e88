//! Any words anywhere in CC-NIC's shared region while both sides run: faults, then a clean reset.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code)]
#[path = "../../crates/ccnic/tests/inputs/mod.rs"]
mod inputs;

fuzz_target!(|bytes: &[u8]| inputs::region(bytes));
