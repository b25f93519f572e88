//! Measures the memory system of the machine it runs on, and reads what the machine says of itself.
//!
//! [`measure`] takes seconds to two minutes and returns a [`Measured`], whose JSON `hostnet calibrate` turns into a
//! platform. Each figure has a median and a spread over short repetitions; repetitions in which the kernel took the CPU
//! away are left out (`docs/use/calibrate.md`).

#[cfg(target_os = "linux")]
mod chain;
#[cfg(target_os = "linux")]
mod experiments;
#[cfg(target_os = "linux")]
mod kernels;
mod machine;
mod measured;
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "the only module that maps memory, pins threads and stores past the caches")]
mod sys;
#[cfg(target_os = "linux")]
mod team;

pub use machine::{read, Cache, Dimm, Machine, Nic, Node};
pub use measured::{
    Bandwidth, BandwidthOrder, Latency, LineState, Loaded, Measured, Noise, PageKind, Parallelism, Statistic, Transfer,
    FORMAT,
};

/// What to measure, and how long.
#[derive(Clone, Debug)]
pub struct Options {
    /// Fewer points and repetitions: a few seconds instead of a minute or two.
    pub quick: bool,
}

/// Measures the machine; `progress` is told the experiment and its share that is done, and answers
/// whether to go on.
///
/// # Errors
/// Returns one sentence where the machine refuses memory or CPUs, or where `progress` ends the measurements.
#[cfg(target_os = "linux")]
pub fn measure(options: &Options, progress: &mut dyn FnMut(&str, f64) -> bool) -> Result<Measured, String> {
    experiments::run(options, progress)
}

/// Measures the machine; `progress` is told the experiment and its share that is done, and answers
/// whether to go on.
///
/// # Errors
/// Always: only Linux tells what the measurements need.
#[cfg(not(target_os = "linux"))]
pub fn measure(_: &Options, _: &mut dyn FnMut(&str, f64) -> bool) -> Result<Measured, String> {
    Err("machines can be measured on Linux only.".into())
}
