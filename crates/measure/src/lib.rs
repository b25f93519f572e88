//! Measures the memory system of the machine it runs on, and reads what the machine says of itself.
//!
//! [`measure`] takes seconds to two minutes and returns a [`Measured`], whose JSON `hostnet calibrate` turns into a
//! platform. [`measure_mixtures`] measures what such a platform predicts (`hostnet study real here`). Each figure has a median and a spread over short repetitions; repetitions in which the kernel took the CPU
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
mod mixtures;
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "the only module that maps memory, pins threads and stores past the caches")]
mod sys;
#[cfg(target_os = "linux")]
mod team;

pub use machine::{read, Cache, Dimm, Machine, Nic, Node};
pub use measured::{
    Bandwidth, BandwidthOrder, Latency, LineState, Loaded, Measured, Mixture, MixtureFigures, Mixtures, Noise,
    PageKind, Parallelism, Statistic, Transfer, FORMAT, MIXTURES,
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
/// Returns one sentence where the machine refuses memory or CPUs, or where `progress` ends the measurements; always
/// where the system is not Linux.
pub fn measure(options: &Options, progress: &mut dyn FnMut(&str, f64) -> bool) -> Result<Measured, String> {
    #[cfg(target_os = "linux")]
    return experiments::run(options, progress);
    #[cfg(not(target_os = "linux"))]
    return elsewhere((options, progress));
}

/// Measures chases beside streams and beside each other, of which a calibration sees nothing.
///
/// # Errors
/// As [`measure`].
pub fn measure_mixtures(options: &Options, progress: &mut dyn FnMut(&str, f64) -> bool) -> Result<Mixtures, String> {
    #[cfg(target_os = "linux")]
    return mixtures::run(options, progress);
    #[cfg(not(target_os = "linux"))]
    return elsewhere((options, progress));
}

/// Mixtures that [`measure_mixtures`] would measure here.
///
/// # Errors
/// Where the system is not Linux.
pub fn planned_mixtures(options: &Options) -> Result<Vec<Mixture>, String> {
    #[cfg(target_os = "linux")]
    return Ok(mixtures::planned(options));
    #[cfg(not(target_os = "linux"))]
    return elsewhere(options);
}

/// Streams through memory on a CPU for a time, beside whatever runs on the others, and returns the traffic in 10^9 B/s.
///
/// # Errors
/// As [`measure`], and for a CPU to which no thread can move.
pub fn stream_for(
    cpu: u32,
    order: BandwidthOrder,
    stores: f64,
    time: std::time::Duration,
) -> Result<Statistic, String> {
    #[cfg(target_os = "linux")]
    return mixtures::stream_for(cpu, order, stores, time);
    #[cfg(not(target_os = "linux"))]
    return elsewhere((cpu, order, stores, time));
}

/// Only Linux tells what the measurements need.
#[cfg(not(target_os = "linux"))]
fn elsewhere<A, T>(_: A) -> Result<T, String> {
    Err("machines can be measured on Linux only.".into())
}
