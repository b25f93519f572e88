//! What the benchmarks share: CPU time, and medians over runs.

use std::sync::LazyLock;
use std::time::Instant;

/// CPU seconds of this process where Linux tells, else elapsed seconds.
pub fn cpu_seconds() -> f64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let ns = std::fs::read_to_string("/proc/self/schedstat").ok();
    let ns = ns.and_then(|s| s.split(' ').next().and_then(|f| f.parse::<f64>().ok()));
    ns.map_or_else(|| START.elapsed().as_secs_f64(), |ns| ns / 1e9)
}

/// Median of what `run` returns over `n` runs.
pub fn median(n: usize, run: impl FnMut() -> f64) -> f64 {
    let mut runs: Vec<f64> = std::iter::repeat_with(run).take(n).collect();
    runs.sort_by(f64::total_cmp);
    runs[n / 2]
}

/// The part of a case's name to run, from the command line.
pub fn filter() -> String {
    std::env::args().skip(1).find(|a| !a.starts_with('-')).unwrap_or_default()
}
