//! Sequential decision of a search's step: whether a rate passes is known before its window ends, once the interval of each
//! quantity that the search limits lies on one side of the limit.
//!
//! A window is looked at a few times, and each look may decide. So that all looks together err with a probability of at most
//! [`WRONG`], each quantity at each look gets an equal part of it (Bonferroni; Jennison and Turnbull, "Group Sequential Methods").

use crate::config::scenario::{Load, RunSpec};
use crate::kernel::Int;
use crate::meter::batches::Batches;
use crate::meter::interval::Interval;
use crate::meter::{metric, slope, Values};

/// Maximum share of the offered packets that may be lost at a rate that meets an objective of latency.
pub(super) const MOST_LOST: f64 = 0.01;
/// Maximum growth of the backlog, as a share of a window's requests, at a sustained rate. Within one window, a rate a
/// few percent beyond the capacity may meet an objective of a hundred service times, or may not fill a deep ring, but
/// such a rate is not sustained.
pub(super) const MOST_BACKLOG: f64 = 0.01;
/// Maximum growth of the backlog, as a share of a window's requests, where rings are deep enough for every spike. With
/// such rings queues fluctuate by about 1 % of a window's requests (24 cores whose queues spread by some 60 requests),
/// and an unsustained rate makes the queues grow by 10 % or more.
pub(super) const MOST_BACKLOG_NODROP: f64 = 0.03;
/// Probability that a step is decided early in another way than a longer window would decide it. Assumed: one step in a hundred.
const WRONG: f64 = 0.01;
/// Quantities that a search limits, at most: packets lost, growth of the backlog, a percentile of latency.
const LIMITS: f64 = 3.0;

/// Whether a rate passes, as far as the window up to now shows it clearly; None where it does not. At most `looks` looks are
/// taken at a window.
///
/// A queue that fills to the level of a new rate grows, too, and the queue of a rate just below the capacity rises and falls by
/// about as many packets as it holds on average. Growth therefore fails a rate only once it is as large as a whole window of
/// `run.requests` may have, and larger than the mean number of packets in the host (Little's law). A queue that grows without
/// end from nothing holds half its growth on average.
pub(super) fn decided(run: &RunSpec, batches: &Batches, looks: f64) -> Option<bool> {
    // Errors count on either side of an interval.
    let confidence = 1.0 - 2.0 * WRONG / (looks * LIMITS);
    let course = batches.series(|v, length| Some(packets(v)?.over(length)));
    let inside = batches.series(|v, _| packets_inside(v)).last().copied().unwrap_or(0.0);
    let rise = |of: fn(PacketCounts) -> (f64, f64)| {
        let points: Vec<_> = course.iter().map(|p| of(*p)).collect();
        slope::slope(&points, confidence)
    };
    let lost = |most| side(rise(|p| (p.offered, p.lost)), most);
    let grows = |most: f64, of: fn(PacketCounts) -> (f64, f64)| {
        let grown = course.last().map_or(0.0, |p| of(*p).1);
        side(rise(of), most).filter(|passes| *passes || grown > inside.max(most * run.requests.to_f64()))
    };
    let backlog = |most| grows(most, |p| (p.served, p.offered - p.lost - p.served));
    match run.load {
        Load::PeakLoss => match lost(run.loss) {
            Some(false) => Some(false),
            _ => grows(run.loss, |p| (p.offered, p.offered - p.served)),
        },
        // No rate passes early: a packet may still be lost.
        Load::PeakNodrop => backlog(MOST_BACKLOG_NODROP).filter(|passes| !passes),
        Load::PeakSlo => {
            let service = batches.of_metric(metric::SERVICE_MEAN_US, confidence);
            let tail = batches.of_metric(metric::LAT_P99_US, confidence);
            let over = service.zip(tail).map(|(s, t)| {
                let m = run.slo_multiple;
                Interval { low: t.low - m * s.high, high: t.high - m * s.low }
            });
            all([lost(MOST_LOST), backlog(MOST_BACKLOG), side(over, 0.0)])
        }
        _ => None,
    }
}

/// Packets per unit of time.
#[derive(Clone, Copy)]
struct PacketCounts {
    offered: f64,
    lost: f64,
    served: f64,
}

impl PacketCounts {
    /// Packets of a time of `length`.
    fn over(self, length: f64) -> PacketCounts {
        PacketCounts { offered: self.offered * length, lost: self.lost * length, served: self.served * length }
    }
}

fn packets(v: &Values) -> Option<PacketCounts> {
    let offered = v.get(metric::OFFERED_MRPS)?;
    Some(PacketCounts { offered, lost: offered * v.get(metric::DROP_RATE)?, served: v.get(metric::THROUGHPUT_MRPS)? })
}

/// Mean number of packets in the host, by Little's law; None without latencies.
fn packets_inside(v: &Values) -> Option<f64> {
    Some(v.get(metric::THROUGHPUT_MRPS)? * v.get(metric::LAT_MEAN_US)?)
}

/// Whether the interval lies at or below `limit`; None where it lies on both sides, or is not known.
fn side(found: Option<Interval>, limit: f64) -> Option<bool> {
    let i = found?;
    if i.high <= limit {
        Some(true)
    } else {
        (i.low > limit).then_some(false)
    }
}

/// Whether all of `sides` hold; one that does not decides alone.
fn all<const N: usize>(sides: [Option<bool>; N]) -> Option<bool> {
    if sides.contains(&Some(false)) {
        return Some(false);
    }
    sides.iter().all(|s| *s == Some(true)).then_some(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Time;
    use crate::meter::batches::Reading;
    use serde_json::{json, Value};

    const LOOKS: f64 = 7.0;

    fn run(load: &str) -> RunSpec {
        serde_json::from_value(json!({ "load": load, "requests": 32_000 })).expect("a table of run")
    }

    /// An eighth of a window of 32,000 packets, 100 of them a microsecond, in 16 batches. Of each batch of 250 packets `lost`
    /// are lost, and after it `waiting` more packets wait than at the start.
    fn eighth(lost: impl Fn(u32) -> f64, waiting: impl Fn(u32) -> f64) -> Batches {
        with_latency(lost, waiting, None)
    }

    /// The window of [`eighth`], with a mean of `inside` packets in the host.
    fn with_latency(lost: impl Fn(u32) -> f64, waiting: impl Fn(u32) -> f64, inside: Option<f64>) -> Batches {
        let mut batches = Batches::default();
        let mut missing = 0.0;
        for i in 1..=16 {
            let (offered, us) = (250.0 * f64::from(i), 2.5 * f64::from(i));
            missing += lost(i);
            let mut values = Values::default();
            values.set(metric::OFFERED_MRPS, offered / us);
            values.set(metric::DROP_RATE, missing / offered);
            values.set(metric::THROUGHPUT_MRPS, (offered - missing - waiting(i)) / us);
            if let Some(inside) = inside {
                values.set(metric::LAT_MEAN_US, inside / values.get(metric::THROUGHPUT_MRPS).unwrap());
            }
            let length = Time::us(5 * u64::from(i)).0 / 2;
            batches.add(Reading { length: Time(length), values, tenants: Value::Null, distributions: Vec::new() });
        }
        batches
    }

    fn jitter(i: u32) -> f64 {
        [1.0, -1.0, 0.0, 2.0, -2.0][(i % 5) as usize]
    }

    /// A loss of 10 % is clear, and so is none; a loss of the 1 % that is allowed, 2.5 of 250 packets, is not.
    #[test]
    fn a_clear_loss_decides_at_the_first_look_and_one_at_the_limit_does_not() {
        let at = |lost: f64| decided(&run("peak_loss"), &eighth(|i| lost + jitter(i), jitter), LOOKS);
        assert_eq!(at(25.0), Some(false));
        assert_eq!(at(2.5), None);
        assert_eq!(decided(&run("peak_loss"), &eighth(|_| 0.0, jitter), LOOKS), Some(true));
    }

    /// A queue that grows by 2 % of the packets holds 80 after an eighth of the window, a quarter of the 1 % that the window
    /// allows: it may yet stop growing. One that grows by 12 % holds 480 already.
    #[test]
    fn a_queue_that_fills_fails_no_rate_before_it_is_as_long_as_the_window_allows() {
        for load in ["peak_loss", "peak_slo"] {
            let at = |each: f64| decided(&run(load), &eighth(|_| 0.0, |i| each * f64::from(i) + jitter(i)), LOOKS);
            assert_eq!(at(5.0), None, "{load}");
            assert_eq!(at(30.0), Some(false), "{load}");
        }
    }

    /// A host with 500 packets on average: a queue that grew by 480 may shrink again, and one that grew by 640 does not. Both
    /// grew by more than the 320 packets that the window allows.
    #[test]
    fn a_queue_fails_no_rate_before_it_has_grown_beyond_what_it_holds() {
        for (each, expected) in [(30.0, None), (40.0, Some(false))] {
            let queue = with_latency(|_| 0.0, |i| each * f64::from(i) + jitter(i), Some(500.0));
            for load in ["peak_loss", "peak_slo"] {
                assert_eq!(decided(&run(load), &queue, LOOKS), expected, "{load}, {each} a batch");
            }
        }
    }

    /// A packet may be lost until the end of a window that must lose none, and nothing is known of a percentile without
    /// latencies.
    #[test]
    fn what_is_not_known_is_not_decided() {
        for load in ["peak_nodrop", "peak_slo", "fixed"] {
            assert_eq!(decided(&run(load), &eighth(|_| 0.0, jitter), LOOKS), None, "{load}");
        }
    }
}
