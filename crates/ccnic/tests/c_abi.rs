//! The C header declares exactly what the library exports, and a C program can use it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use ccnic::{Config, HostPort};

#[test]
fn header_and_library_declare_the_same_functions() {
    let sources =
        [include_str!("../src/capi/mod.rs"), include_str!("../src/capi/nic.rs"), include_str!("../src/capi/pool.rs")];
    let exported: BTreeSet<&str> = sources
        .iter()
        .flat_map(|source| source.split("extern \"C\" fn ").skip(1))
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

/// A program of tests/c, built against the header and the shared library; removed on drop.
struct Program(PathBuf);

impl Program {
    fn build(name: &str) -> Option<Program> {
        let Ok(cc) = Command::new("cc").arg("--version").output() else {
            eprintln!("skipped: no C compiler");
            return None;
        };
        assert!(cc.status.success());
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let programs = Path::new(env!("CARGO_BIN_EXE_ccnic-nic")).parent().expect("target directory");
        let lib = [programs.join("deps"), programs.to_path_buf()]
            .into_iter()
            .find(|d| d.join("libccnic.so").exists())
            .expect("the shared library was built with the tests");
        let out = std::env::temp_dir().join(format!("ccnic-{name}-{}", std::process::id()));
        // The program looks for the name with the version of the interface.
        let named = out.with_extension("lib");
        std::fs::create_dir_all(&named).expect("a directory");
        let link = named.join("libccnic.so.1");
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(lib.join("libccnic.so"), link).expect("a fresh name");
        let built = Command::new("cc")
            .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O2"])
            // For instance -fsanitize=address, see docs/ccnic.
            .args(std::env::var("CCNIC_TEST_CFLAGS").unwrap_or_default().split_whitespace())
            .arg(here.join(format!("tests/c/{name}.c")))
            .arg("-I")
            .arg(here.join("include"))
            .arg(lib.join("libccnic.so"))
            .arg(format!("-Wl,-rpath,{}", named.display()))
            .arg("-o")
            .arg(&out)
            .status()
            .expect("cc runs");
        assert!(built.success());
        Some(Program(out))
    }

    fn run(&self) {
        let run = Command::new(&self.0).output().expect("the program runs");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
        let _ = std::fs::remove_dir_all(self.0.with_extension("lib"));
    }
}

#[test]
fn a_c_program_exchanges_packets() {
    if let Some(program) = Program::build("smoke") {
        program.run();
    }
}

#[test]
fn a_c_program_that_breaks_the_contract_gets_errors_and_wedges_nothing() {
    if let Some(program) = Program::build("misuse") {
        program.run();
    }
}

#[test]
fn a_nic_written_in_c_serves_this_process_and_another() {
    let Some(program) = Program::build("nic") else {
        return;
    };
    program.run();
    let socket = program.0.with_extension("sock");
    let mut nic = Command::new(&program.0).arg(&socket).spawn().expect("the program runs");
    let mut port = HostPort::create(Config::default()).expect("region");
    let mut queue = port.queue(0).expect("first");
    let deadline = Instant::now() + Duration::from_secs(10);
    while port.connect(&socket).is_err() {
        assert!(Instant::now() < deadline, "the NIC does not listen");
        std::thread::yield_now();
    }
    let (mut bufs, mut got) = (Vec::new(), 0u32);
    for sent in 0..500u32 {
        assert_eq!(queue.alloc(&mut bufs, 1, 64), 1);
        queue.write(&mut bufs[0], &sent.to_le_bytes());
        queue.tx(&mut bufs).expect("an honest NIC");
        assert!(bufs.is_empty());
        while got <= sent {
            assert!(Instant::now() < deadline, "packet {got} does not come back");
            queue.rx(&mut bufs, 8).expect("an honest NIC");
            for b in &bufs {
                assert_eq!(queue.to_vec(b), (!got).to_le_bytes());
                got += 1;
            }
            queue.free(&mut bufs);
        }
    }
    drop((queue, port));
    assert!(nic.wait().expect("it ends with its host").success());
}

/// The shared library carries the name that programs look for, and the pkg-config file's template
/// has what `make ccnic-install` fills in.
#[test]
fn the_library_has_its_name_and_a_pkg_config_file() {
    let programs = Path::new(env!("CARGO_BIN_EXE_ccnic-nic")).parent().expect("target directory");
    let lib = [programs.join("deps"), programs.to_path_buf()].into_iter().find(|d| d.join("libccnic.so").exists());
    let lib = lib.expect("the shared library was built with the tests").join("libccnic.so");
    let bytes = std::fs::read(lib).expect("readable");
    let name = b"\0libccnic.so.1\0";
    assert!(bytes.windows(name.len()).any(|w| w == name), "the soname is in its table of strings");
    let template = include_str!("../ccnic.pc.in");
    for line in ["Version: @VERSION@", "prefix=@PREFIX@", "Libs: -L${libdir} -lccnic", "Cflags: -I${includedir}"] {
        assert!(template.lines().any(|l| l == line), "{line}");
    }
}
