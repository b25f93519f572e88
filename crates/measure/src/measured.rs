//! The measurements, as they are written to JSON.

use crate::machine::Machine;
use serde::{Deserialize, Serialize};

/// Version of the JSON.
pub const FORMAT: u32 = 3;
/// Kind and version of the JSON of mixtures.
pub const MIXTURES: &str = "mixtures 2";

/// A figure: median and spread over repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statistic {
    /// Median.
    pub median: f64,
    /// 10th percentile.
    pub low: f64,
    /// 90th percentile.
    pub high: f64,
    /// Number of repetitions that count.
    pub repetitions: u32,
    /// Number of repetitions in which the kernel took a CPU away. They do not count, unless all were disturbed.
    pub disturbed: u32,
}

impl Statistic {
    /// The statistic of repetitions, each with whether it was disturbed. Disturbed ones count only where none of the others
    /// exists.
    pub fn of(all: &[(f64, bool)]) -> Statistic {
        let disturbed = all.iter().filter(|(_, d)| *d).count();
        let mut kept: Vec<f64> = all.iter().filter(|(_, d)| !d || disturbed == all.len()).map(|(v, _)| *v).collect();
        kept.sort_by(f64::total_cmp);
        let at = |share: f64| kept.get(((kept.len().max(1) - 1) as f64 * share).round() as usize).copied();
        let at = |share| at(share).unwrap_or(f64::NAN);
        Statistic {
            median: at(0.5),
            low: at(0.1),
            high: at(0.9),
            repetitions: kept.len() as u32,
            disturbed: disturbed as u32,
        }
    }

    /// The statistic of a monotonic function of the figure.
    pub fn map(self, f: impl Fn(f64) -> f64) -> Statistic {
        let (a, b) = (f(self.low), f(self.high));
        Statistic { median: f(self.median), low: a.min(b), high: a.max(b), ..self }
    }
}

/// Pages of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PageKind {
    /// Pages of 4 KiB.
    Small,
    /// Huge pages that were reserved (`MAP_HUGETLB`).
    Reserved,
    /// Huge pages that the kernel gave on request (`madvise`).
    Transparent,
}

/// Latency of dependent loads in a random order over a buffer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Latency {
    /// Size of the buffer.
    pub bytes: u64,
    /// Pages of the buffer.
    pub pages: PageKind,
    /// Time of a load.
    pub ns: Statistic,
}

/// Several independent chases of one thread through memory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Parallelism {
    /// Number of chases.
    pub chases: u32,
    /// Time of a load, over all chases.
    pub ns: Statistic,
}

/// Order of the accesses of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BandwidthOrder {
    /// Consecutive lines.
    Sequential,
    /// Random lines.
    Random,
    /// Consecutive lines, stored past the caches.
    NonTemporal,
}

/// Bandwidth of streams, one on each thread.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bandwidth {
    /// Number of threads.
    pub threads: u32,
    /// Order of the accesses.
    pub order: BandwidthOrder,
    /// Share of the lines that are stored to.
    pub stores: f64,
    /// Memory traffic of all threads in 10^9 B/s: each line is read, unless stored past the caches, and each modified line
    /// is written back.
    pub gbs: Statistic,
    /// Hashes that each of these threads computes in a nanosecond, measured right afterwards.
    pub hashes_per_ns: Statistic,
}

/// Latency of a chase through memory beside streams.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Loaded {
    /// Number of threads with streams.
    pub threads: u32,
    /// Share of the lines that are stored to.
    pub stores: f64,
    /// Hashes that a stream computes after each line.
    pub pause_hashes: u32,
    /// Memory traffic of streams and chase in 10^9 B/s.
    pub gbs: Statistic,
    /// Time of a load of the chase.
    pub ns: Statistic,
    /// Hashes that each thread with a stream computes in a nanosecond, beside the chase, measured right afterwards.
    pub hashes_per_ns: Statistic,
}

/// State of lines in another core's cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineState {
    /// Stored to by the other core.
    Modified,
    /// Loaded by the other core.
    Clean,
}

/// Latency of loads of lines that another core has in its caches.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Transfer {
    /// State of the lines.
    pub state: LineState,
    /// Time of a load.
    pub ns: Statistic,
}

/// How quiet the machine was.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Noise {
    /// Share of CPU time that the hypervisor gave to others.
    pub steal: f64,
    /// Number of threads that wanted to run, over the last minute.
    pub load: f64,
    /// Share of repetitions in which the kernel took a CPU away.
    pub disturbed: f64,
    /// Whether the measuring threads had priority over others.
    pub priority: bool,
    /// Least and greatest time in ns of a load of a line that another core has modified, each the median of a look before or
    /// after an experiment of several cores; absent with one core.
    #[serde(default)]
    pub transfer_ns: Option<(f64, f64)>,
}

/// All measurements of a machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// Version of the JSON, [`FORMAT`].
    pub format: u32,
    /// Name and version of the program.
    pub by: String,
    /// Whether fewer points and repetitions were measured.
    pub quick: bool,
    /// Seconds that the measurements took.
    pub seconds: f64,
    /// What the machine says of itself.
    pub machine: Machine,
    /// How quiet the machine was.
    pub noise: Noise,
    /// Logical CPUs that took part: one of each core of one node.
    pub cpus: Vec<u32>,
    /// Clock of a busy core in GHz, by a chain of multiplications of three cycles each; absent where their latency is
    /// unknown.
    pub clock_ghz: Option<Statistic>,
    /// Hashes of a stream's pause that a core computes in a nanosecond.
    pub hashes_per_ns: Statistic,
    /// Latency by size of the buffer.
    pub latency: Vec<Latency>,
    /// Latency of consecutive lines of memory, dependent on each other, which prefetchers may follow.
    pub sequential: Option<Latency>,
    /// Chases beside each other.
    pub parallelism: Vec<Parallelism>,
    /// Bandwidth of streams.
    pub bandwidth: Vec<Bandwidth>,
    /// Latency under load.
    pub loaded: Vec<Loaded>,
    /// Latency from core to core.
    pub transfer: Vec<Transfer>,
}

/// Threads with chases beside threads with streams.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mixture {
    /// Number of threads with chases.
    pub chasers: u32,
    /// Number of independent chases of each of them.
    pub chases: u32,
    /// Number of threads with streams.
    pub threads: u32,
    /// Order of the streams' accesses.
    pub order: BandwidthOrder,
    /// Share of the streams' lines that are stored to.
    pub stores: f64,
}

/// What was measured of a mixture.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MixtureFigures {
    /// The threads.
    #[serde(flatten)]
    pub of: Mixture,
    /// Time of a load, over all chases of a thread.
    pub ns: Statistic,
    /// Memory traffic of streams and chases in 10^9 B/s; absent without streams, where the time of a load says it.
    pub gbs: Option<Statistic>,
}

/// Mixtures of a machine, which no fit sees.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Mixtures {
    /// Kind and version of the JSON, [`MIXTURES`].
    pub format: String,
    /// Name and version of the program.
    pub by: String,
    /// Whether fewer mixtures and repetitions were measured.
    pub quick: bool,
    /// Seconds that the measurements took.
    pub seconds: f64,
    /// What the machine says of itself.
    pub machine: Machine,
    /// How quiet the machine was.
    pub noise: Noise,
    /// Logical CPUs that took part: one of each core of one node.
    pub cpus: Vec<u32>,
    /// The mixtures.
    pub mixtures: Vec<MixtureFigures>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disturbed_repetitions_do_not_count() {
        let all: Vec<(f64, bool)> = (0..=10).map(|i| (f64::from(i), false)).chain([(1e9, true)]).collect();
        let s = Statistic::of(&all);
        assert_eq!((s.low, s.median, s.high, s.repetitions, s.disturbed), (1.0, 5.0, 9.0, 11, 1));
        assert_eq!(Statistic::of(&[(7.0, true)]).median, 7.0, "unless there are no others");
    }

    #[test]
    fn a_falling_function_swaps_the_bounds() {
        let s = Statistic::of(&[(1.0, false), (2.0, false), (4.0, false)]).map(|v| 8.0 / v);
        assert_eq!((s.low, s.median, s.high), (2.0, 4.0, 8.0));
    }
}
