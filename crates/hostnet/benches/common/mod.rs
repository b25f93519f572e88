//! What the benchmarks share: CPU time, and medians over runs.

use rustix::time::{clock_gettime, ClockId};

/// CPU seconds of this process. `/proc` tells them in ticks, several percent of a short run.
pub fn cpu_seconds() -> f64 {
    let t = clock_gettime(ClockId::ProcessCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 / 1e9
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
