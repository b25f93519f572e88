//! Any bytes as CC-NIC's handshake: refused in a sentence or read as they were written.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code)]
#[path = "../../crates/ccnic/tests/inputs/mod.rs"]
mod inputs;

fuzz_target!(|bytes: &[u8]| inputs::handshake(bytes));
