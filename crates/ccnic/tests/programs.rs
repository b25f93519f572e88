//! What `ccnic-bench` and `ccnic-nic` refuse, and how their runs end.

use std::path::PathBuf;
use std::process::{Command, Output};

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ccnic-bench")).args(arguments).output().expect("the program runs")
}

fn nic(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ccnic-nic")).args(arguments).output().expect("the program runs")
}

fn socket(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("ccnic-programs-{name}-{}.sock", std::process::id()))
}

/// Checks that a program refused to run, measured nothing and named all `words`.
#[track_caller]
fn refused(output: &Output, words: &[&str]) {
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    for word in words {
        assert!(told.contains(word), "{word:?} is missing in {told:?}");
    }
}

#[test]
fn zero_is_refused_with_the_option_and_the_least_value() {
    for (arguments, option) in [
        (["loopback", "--ms", "0"], "--ms"),
        (["loopback", "--reps", "0"], "--reps"),
        (["soak", "--packets", "0"], "--packets"),
        (["soak", "--window", "0"], "--window"),
    ] {
        refused(&bench(&arguments), &[option, "'0'", "1.."]);
    }
}

#[test]
fn a_cpu_that_is_not_there_is_refused_with_those_that_are() {
    for option in ["--nic-cpu", "--host-cpu"] {
        for what in ["bound", "loopback", "idle", "probe", "soak"] {
            refused(&bench(&[what, option, "1023"]), &[option, "1023", "choose from"]);
        }
        refused(&bench(&["probe", option, "5000"]), &[option, "5000", "choose from"]);
    }
    let socket = socket("cpu");
    let socket = socket.to_str().expect("a path of ASCII");
    refused(&nic(&["--socket", socket, "--cpu", "1023"]), &["--cpu", "1023", "choose from"]);
    assert!(!std::path::Path::new(socket).exists());
}
