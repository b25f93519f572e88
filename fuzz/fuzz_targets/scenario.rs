//! Any text as a scenario: refused in one sentence, or resolved to something that resolves to itself.
#![no_main]

use hostnet::config::resolve;
use libfuzzer_sys::fuzz_target;
use std::path::PathBuf;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let platforms = [PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../platforms"))];
    match resolve(text, "fuzz.toml", &platforms) {
        Ok(s) => {
            let json = serde_json::to_string(&s).expect("scenarios serialize");
            let again = resolve(&json, "fuzz.json", &platforms).expect("resolved scenarios resolve");
            assert_eq!(s, again);
        }
        Err(e) => {
            let e = e.to_string();
            assert!(e.ends_with('.') && !e.contains('\n'), "{e}");
        }
    }
});
