//! Helpers of the benchmarks: CPU time, medians over runs, and the choice of cases.

use rustix::time::{clock_gettime, ClockId};

/// CPU time of this process in seconds. `clock_gettime` is used because the ticks of `/proc` are several percent of a
/// short run.
pub fn cpu_seconds() -> f64 {
    let t = clock_gettime(ClockId::ProcessCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 / 1e9
}

/// Median of the values that `n` runs of `run` return.
pub fn median(n: usize, run: impl FnMut() -> f64) -> f64 {
    let mut runs: Vec<f64> = std::iter::repeat_with(run).take(n).collect();
    runs.sort_by(f64::total_cmp);
    runs[n / 2]
}

/// First command-line argument that is no option: cases run whose names contain it.
pub fn filter() -> String {
    std::env::args().skip(1).find(|a| !a.starts_with('-')).unwrap_or_default()
}
