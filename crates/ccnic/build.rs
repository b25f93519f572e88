//! Gives the shared library the name under which programs find it: `libccnic.so.<ABI>`.

/// Version of the C interface; raised when a program built before cannot run any more.
const ABI: u32 = 1;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libccnic.so.{ABI}");
    }
}
