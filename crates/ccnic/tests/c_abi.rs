//! The C header declares exactly what the library exports, and a C program can use it.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

#[test]
fn header_and_library_declare_the_same_functions() {
    let exported: BTreeSet<&str> = include_str!("../src/capi.rs")
        .split("extern \"C\" fn ")
        .skip(1)
        .filter_map(|rest| rest.split('(').next())
        .collect();
    let header = include_str!("../include/ccnic.h");
    let declared: BTreeSet<&str> = header
        .lines()
        .filter(|l| l.ends_with(");") && !l.starts_with(' ') && !l.starts_with('/'))
        .filter_map(|l| l.split('(').next()?.rsplit([' ', '*']).next())
        .collect();
    assert!(exported.len() > 15, "{exported:?}");
    assert_eq!(exported, declared);
}

#[test]
fn a_c_program_exchanges_packets() {
    let Ok(cc) = Command::new("cc").arg("--version").output() else {
        return eprintln!("skipped: no C compiler");
    };
    assert!(cc.status.success());
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let programs = Path::new(env!("CARGO_BIN_EXE_ccnic-nic")).parent().expect("target directory");
    let lib = [programs.join("deps"), programs.to_path_buf()]
        .into_iter()
        .find(|d| d.join("libccnic.so").exists())
        .expect("the shared library was built with the tests");
    let out = std::env::temp_dir().join(format!("ccnic-smoke-{}", std::process::id()));
    let built = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O2"])
        .arg(here.join("tests/c/smoke.c"))
        .arg("-I")
        .arg(here.join("include"))
        .arg(lib.join("libccnic.so"))
        .arg(format!("-Wl,-rpath,{}", lib.display()))
        .arg("-o")
        .arg(&out)
        .status()
        .expect("cc runs");
    assert!(built.success());
    let run = Command::new(&out).output().expect("the program runs");
    let _ = std::fs::remove_file(&out);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}
