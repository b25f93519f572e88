//! The fuzz targets' seeds, and fresh random inputs, through what the targets run.

mod inputs;

use std::path::{Path, PathBuf};

fn corpus(target: &str) -> Vec<Vec<u8>> {
    // For instance what a fuzzer has found: fuzz/corpus.
    let folder = std::env::var_os("CCNIC_FUZZ_CORPUS").map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds")).join(target);
    let files = std::fs::read_dir(&folder).expect("the seeds are part of the repository");
    let all: Vec<Vec<u8>> = files.map(|f| std::fs::read(f.expect("readable").path()).expect("readable")).collect();
    assert!(all.len() >= 5, "{} inputs in {}", all.len(), folder.display());
    all
}

/// A number from the environment, for long runs.
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |v| v.parse().expect("a number"))
}

/// Seeded inputs: pieces of the corpus put together, with bytes changed. `CCNIC_FUZZ_INPUTS` and
/// `CCNIC_FUZZ_SEED` set how many and which.
fn random(seeds: &[Vec<u8>], count: u64, mut run: impl FnMut(&[u8])) {
    let count = setting("CCNIC_FUZZ_INPUTS", count);
    let mut x = 0x9e37_79b9_7f4a_7c15u64.wrapping_mul(2 * setting("CCNIC_FUZZ_SEED", 0) + 1);
    let mut next = || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x as usize
    };
    for _ in 0..count {
        let mut input = seeds[next() % seeds.len()].clone();
        let other = &seeds[next() % seeds.len()];
        input.truncate(1 + next() % input.len().max(1));
        input.extend_from_slice(&other[next() % other.len()..]);
        for _ in 0..next() % 4 {
            let at = next() % input.len();
            input[at] = next() as u8;
        }
        run(&input);
    }
}

#[test]
fn the_region_survives_its_seeds_and_changes_of_it() {
    let seeds = corpus("ccnic_region");
    seeds.iter().for_each(|s| inputs::region(s));
    random(&seeds, if cfg!(miri) { 20 } else { 20_000 }, inputs::region);
}

#[test]
fn the_handshake_survives_its_seeds_and_changes_of_it() {
    let seeds = corpus("ccnic_handshake");
    seeds.iter().for_each(|s| inputs::handshake(s));
    random(&seeds, if cfg!(miri) { 200 } else { 200_000 }, inputs::handshake);
}
