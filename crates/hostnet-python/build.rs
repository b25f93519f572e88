//! Says what the module is built with: the compiler, the target and the exact libraries. Together with the engine's version
//! it names what decides results, the same in every checkout.

use std::path::Path;
use std::process::Command;

fn main() {
    let compiler = std::env::var("RUSTC").expect("cargo sets it");
    let version = Command::new(compiler).arg("--version").output().expect("the compiler runs").stdout;
    let version = String::from_utf8(version).expect("rustc prints text");
    let target = std::env::var("TARGET").expect("cargo sets it");
    let mut hash = 0xcbf2_9ce4_8422_2325u64; // FNV-1a
    for file in ["../../Cargo.lock", "src/lib.rs"] {
        // A source package may lie elsewhere in its archive and come without the lock file.
        if Path::new(file).exists() {
            println!("cargo:rerun-if-changed={file}");
        }
        for byte in std::fs::read(file).unwrap_or_default() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    println!("cargo:rustc-env=HOSTNET_BUILD={} {target} {hash:016x}", version.trim());
}
