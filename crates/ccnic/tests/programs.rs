//! What `ccnic-bench` and `ccnic-nic` refuse, and how their runs end.

use std::process::{Command, Output};

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ccnic-bench")).args(arguments).output().expect("the program runs")
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
