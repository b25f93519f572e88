#!/usr/bin/env bash
# Counts what the engine does in the scenarios and writes rustc-VERSION.profdata, which the Makefile gives to that
# compiler. Needs `rustup component add llvm-tools`; takes some five minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(rustc -V | cut -d' ' -f2)
tool=$(find "$(rustc --print sysroot)/lib/rustlib" -name llvm-profdata -type f | head -1)
if [ -z "$tool" ]; then
    echo "llvm-profdata is missing: rustup component add llvm-tools" >&2
    exit 2
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CARGO_TARGET_DIR=$work/target LLVM_PROFILE_FILE=$work/%p-%m.profraw
RUSTFLAGS="-C target-cpu=x86-64-v3 -C profile-generate=$work" cargo build --release -p hostnet --examples
examples=$work/target/release/examples
for scenario in scenarios/*.toml; do
    "$examples/point" "$scenario" > "$work/out" || { cat "$work/out" >&2; exit 1; }
done
"$examples/hierarchy_ladder" > "$work/out"
"$examples/dram_ladder" > "$work/out"
# Names of other crates' functions would make it nine times as large.
"$tool" merge --sparse --function=hostnet -o "profile/rustc-$version.profdata" "$work"/*.profraw
ls -l "profile/rustc-$version.profdata"
