//! Gives the engine a version that changes with what its sources compile to, so that cached results never outlive the
//! model that made them and do outlive a corrected comment.

mod digest;

use std::path::Path;

fn main() {
    // The engine, and the crate whose readings of recordings it replays.
    let sources = ["src", "../recording/src"].map(Path::new);
    sources.iter().for_each(|dir| println!("cargo:rerun-if-changed={}", dir.display()));
    println!("cargo:rerun-if-changed=digest.rs");
    let version = std::env::var("CARGO_PKG_VERSION").expect("cargo sets it");
    println!("cargo:rustc-env=HOSTNET_ENGINE={version}+{:016x}", digest::of_sources(&sources));
}
