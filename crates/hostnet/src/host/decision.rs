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
/// such rings queues fluctuate by about 1 % of a window's requests (24 cores whose queues spread by some 60 requests). A rate
/// that exceeds what the host carries by up to 5 % may pass.
pub(super) const MOST_BACKLOG_NODROP: f64 = 0.03;
/// Probability that a step is decided early in another way than a longer window would decide it. Assumed: one step in a hundred.
const WRONG: f64 = 0.01;
/// Quantities that a search limits, at most: packets lost, growth of the backlog, a percentile of latency.
const LIMITS: f64 = 3.0;
/// Looks at a rate: four while its queues settle, two at counts of packets alone, and seven at the batches of its window.
const LOOKS: f64 = 13.0;
/// Parts of a window of 128 after which a rate may pass by its counts of packets alone.
pub(super) const EARLY: [u64; 2] = [4, 8];
/// Part of the growth per packet of one span of time that a queue which grows without end has in the next at least. One that
/// fills to a level L as L (1 - exp(-t)) has less in the next span of equal length, unless it goes on to two and a half times
/// what it holds.
const UNABATED: f64 = 0.75;

/// Confidence of the intervals of each quantity at each look. Errors count on either side of an interval.
const EACH: f64 = 1.0 - 2.0 * WRONG / (LOOKS * LIMITS);

/// Packets that were offered, lost and still waiting since the start of a span of time at one rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketCounts {
    /// Packets that came.
    pub offered: f64,
    /// Packets that were lost.
    pub lost: f64,
    /// Packets that are in the host; where a window tells rates only, those by which their number grew.
    pub inside: f64,
}

impl PacketCounts {
    /// Packets that came and were not served.
    fn unserved(&self) -> f64 {
        self.lost + self.inside
    }

    fn served(&self) -> f64 {
        self.offered - self.unserved()
    }
}

/// Counts of packets at successive times of a span.
#[derive(Clone, Debug, Default)]
pub(super) struct Course(pub Vec<PacketCounts>);

/// Growth of the queues of a host in a span of time; lost packets count as waiting.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Growth {
    packets: f64,
    /// Packets for each that was offered.
    each: f64,
}

impl Course {
    /// Counts of packets at the ends of `batches`, as far as rates tell them.
    fn of(batches: &Batches) -> Course {
        Course(batches.series(|v, length| {
            let [offered, served] =
                [v.get(metric::OFFERED_MRPS)?, v.get(metric::THROUGHPUT_MRPS)?].map(|rate| rate * length);
            let lost = offered * v.get(metric::DROP_RATE)?;
            Some(PacketCounts { offered, lost, inside: offered - lost - served })
        }))
    }

    /// Growth of the queues between the first and the last count.
    pub fn growth(&self) -> Growth {
        let (Some(first), Some(last)) = (self.0.first(), self.0.last()) else { return Growth::default() };
        let (packets, offered) = (last.unserved() - first.unserved(), last.offered - first.offered);
        Growth { packets, each: if offered > 0.0 { packets / offered } else { 0.0 } }
    }

    /// Interval of the slope of `y` over `x`.
    fn slope(&self, x: impl Fn(&PacketCounts) -> f64, y: impl Fn(&PacketCounts) -> f64) -> Option<Interval> {
        let points: Vec<_> = self.0.iter().map(|p| (x(p), y(p))).collect();
        slope::slope(&points, EACH)
    }
}

/// Share of the packets that may be lost, or wait in growing queues, at a rate that passes.
fn most_unserved(run: &RunSpec) -> f64 {
    match run.load {
        Load::PeakLoss => run.loss,
        Load::PeakNodrop => MOST_BACKLOG_NODROP,
        _ => MOST_LOST + MOST_BACKLOG,
    }
}

/// Whether queues that settle at a new rate grow without end: they grew in the span `now` as fast as in the one `before`, clearly
/// faster than a rate that passes may have it, and by as much as a whole window may have.
pub(super) fn overflows(run: &RunSpec, before: Growth, now: &Course) -> bool {
    let (most, growth) = (most_unserved(run), now.growth());
    let fast = now.slope(|p| p.offered, PacketCounts::unserved).is_some_and(|s| s.low > most);
    fast && growth.each >= UNABATED * before.each && growth.packets + before.packets >= most * run.requests.to_f64()
}

/// Whether a rate passes as far as counts of packets tell, at the start of its window: nothing is lost and no queue grows more
/// than at a rate that passes, or both together are below what may be lost.
pub(super) fn passes_early(run: &RunSpec, course: &Course) -> bool {
    let below =
        |most: f64, of: fn(&PacketCounts) -> f64| course.slope(|p| p.offered, of).is_some_and(|s| s.high <= most);
    match run.load {
        Load::PeakLoss => below(run.loss, PacketCounts::unserved),
        Load::PeakNodrop => course.0.iter().all(|p| p.lost == 0.0) && below(MOST_BACKLOG_NODROP, |p| p.inside),
        _ => false, // a percentile needs more packets
    }
}

/// Whether a rate passes, as far as the window up to now shows it clearly; None where it does not. `before` is the growth of the
/// queues in the second half of the time in which they settled.
///
/// A queue that fills to the level of a new rate grows, too, and the queue of a rate just below the capacity rises and falls by
/// about as many packets as it holds on average. Growth therefore fails a rate only once it is as large as a whole window of
/// `run.requests` may have, and either larger than the mean number of packets in the host (Little's law), or as fast as it was
/// while queues settled. A queue that grows without end from nothing holds half its growth on average.
///
/// A rate passes tentatively: a host near its capacity may collapse late, and a packet may be lost late.
pub(super) fn decided(run: &RunSpec, batches: &Batches, before: Growth) -> Option<bool> {
    let course = Course::of(batches);
    let inside = batches.series(|v, _| packets_inside(v)).last().copied().unwrap_or(0.0);
    let lost = |most| side(course.slope(|p| p.offered, |p| p.lost), most);
    let grows = |most: f64, x: fn(&PacketCounts) -> f64, y: fn(&PacketCounts) -> f64| {
        let (came, grown) = course.0.last().map_or((0.0, 0.0), |p| (x(p), y(p)));
        let unabated = before.each > 2.0 * most && grown >= UNABATED * before.each * came;
        let earlier = if unabated { before.packets } else { 0.0 };
        let whole = grown + earlier > most * run.requests.to_f64();
        side(course.slope(x, y), most).filter(|passes| *passes || whole && (unabated || grown > inside))
    };
    let backlog = |most| grows(most, PacketCounts::served, |p| p.inside);
    match run.load {
        Load::PeakLoss => match lost(run.loss) {
            Some(false) => Some(false),
            _ => grows(run.loss, |p| p.offered, PacketCounts::unserved),
        },
        Load::PeakNodrop => backlog(MOST_BACKLOG_NODROP),
        Load::PeakSlo => all([lost(MOST_LOST), backlog(MOST_BACKLOG), meets_latency(run, batches)]),
        _ => None,
    }
}

/// Whether the 99th percentile of latency is at most `run.slo_multiple` times the mean service time: whether the share of the
/// packets that take at most as long is at least 99 %. None where neither is clear.
fn meets_latency(run: &RunSpec, batches: &Batches) -> Option<bool> {
    let service = batches.of_metric(metric::SERVICE_MEAN_US, EACH)?;
    let within = |service: f64| batches.share_up_to(metric::LAT_P99_US, run.slo_multiple * service, EACH);
    let (share, sooner) = within(service.low)?;
    let (_, later) = within(service.high)?;
    if sooner.low >= share {
        Some(true)
    } else {
        (later.high < share).then_some(false)
    }
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
    use crate::meter::batches::{Cell, Reading};
    use crate::meter::percentile::Distribution;
    use hdrhistogram::Histogram;
    use serde_json::{json, Value};

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
        readings(lost, waiting, inside).into_iter().for_each(|r| batches.add(r));
        batches
    }

    /// Readings at the ends of the batches of [`with_latency`].
    fn readings(lost: impl Fn(u32) -> f64, waiting: impl Fn(u32) -> f64, inside: Option<f64>) -> Vec<Reading> {
        let mut missing = 0.0;
        let mut reading = |i: u32| {
            let (offered, us) = (250.0 * f64::from(i), 2.5 * f64::from(i));
            missing += lost(i);
            let mut values = Values::default();
            values.set(metric::OFFERED_MRPS, offered / us);
            values.set(metric::DROP_RATE, missing / offered);
            values.set(metric::THROUGHPUT_MRPS, (offered - missing - waiting(i)) / us);
            if let Some(inside) = inside {
                values.set(metric::LAT_MEAN_US, inside / values.get(metric::THROUGHPUT_MRPS).unwrap());
            }
            let length = Time(Time::us(5 * u64::from(i)).0 / 2);
            Reading { length, values, tenants: Value::Null, distributions: Vec::new() }
        };
        (1..=16).map(&mut reading).collect()
    }

    /// The window of [`eighth`] without losses or growth, whose requests take 1 us of a core's time. Of each batch of 250 packets
    /// `slow` take `slow_us`, and the others 2 us.
    fn with_tail(slow: u64, slow_us: u64) -> Batches {
        let mut batches = Batches::default();
        let mut latencies = Histogram::<u64>::new(3).expect("a histogram");
        for (i, mut reading) in (1..).zip(readings(|_| 0.0, jitter, None)) {
            latencies.record_n(2, 250 - slow).expect("within bounds");
            latencies.record_n(slow_us, slow).expect("within bounds");
            let p99 = Distribution::new(&latencies, 1.0, vec![(Cell::Metric(metric::LAT_P99_US), 0.99)]);
            p99.set_percentiles(&mut reading.values);
            reading.values.set(metric::SERVICE_MEAN_US, 1.0 + 0.001 * jitter(i));
            reading.distributions = vec![p99];
            batches.add(reading);
        }
        batches
    }

    fn jitter(i: u32) -> f64 {
        [1.0, -1.0, 0.0, 2.0, -2.0][(i % 5) as usize]
    }

    /// A loss of 10 % is clear, and so is none; a loss of the 1 % that is allowed, 2.5 of 250 packets, is not.
    #[test]
    fn a_clear_loss_decides_at_the_first_look_and_one_at_the_limit_does_not() {
        let at = |lost: f64| decided(&run("peak_loss"), &eighth(|i| lost + jitter(i), jitter), Growth::default());
        assert_eq!(at(25.0), Some(false));
        assert_eq!(at(2.5), None);
        assert_eq!(decided(&run("peak_loss"), &eighth(|_| 0.0, jitter), Growth::default()), Some(true));
    }

    /// A queue that grows by 2 % of the packets holds 80 after an eighth of the window, a quarter of the 1 % that the window
    /// allows: it may yet stop growing. One that grows by 12 % holds 480 already.
    #[test]
    fn a_queue_that_fills_fails_no_rate_before_it_is_as_long_as_the_window_allows() {
        for load in ["peak_loss", "peak_slo"] {
            let at = |each: f64| {
                decided(&run(load), &eighth(|_| 0.0, |i| each * f64::from(i) + jitter(i)), Growth::default())
            };
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
                assert_eq!(decided(&run(load), &queue, Growth::default()), expected, "{load}, {each} a batch");
            }
        }
    }

    /// A queue that grows by 4 % of 32,000 packets is too short after an eighth of them to fail a rate that may have 1 % of a whole
    /// window. It fails after 160 packets more, if it grew by as many while it settled, and not if it then grew twice as fast.
    #[test]
    fn a_queue_that_grows_as_fast_as_while_it_settled_fails_sooner() {
        let window = |each: f64| eighth(|_| 0.0, move |i| each * f64::from(i) + jitter(i));
        for load in ["peak_loss", "peak_slo"] {
            let at = |packets: f64, each: f64| decided(&run(load), &window(10.0), Growth { packets, each });
            assert_eq!(at(0.0, 0.0), None, "{load}");
            assert_eq!(at(170.0, 0.04), Some(false), "{load}");
            assert_eq!(at(170.0, 0.08), None, "{load}");
            assert_eq!(at(120.0, 0.04), None, "{load}: 280 packets, and a window may have 320");
        }
    }

    /// A course of 16 spans of 100 packets each, of which `inside` wait and `lost` are lost.
    fn course(inside: impl Fn(f64) -> f64, lost: impl Fn(f64) -> f64) -> Course {
        let at = |i: u32| {
            let x = f64::from(i);
            PacketCounts { offered: 100.0 * x, lost: lost(x), inside: inside(x) + jitter(i) }
        };
        Course((0..=16).map(at).collect())
    }

    /// Of 1600 packets 20 % are added to a queue that grew as much before: together 640, and the search allows 640. The same queue
    /// does not overflow where it grew twice as much before, nor does one that grows by 2 %.
    #[test]
    fn a_queue_overflows_that_grows_unabated_by_what_a_window_may_have() {
        let slo = run("peak_slo");
        let before = |packets: f64| Growth { packets, each: packets / 1600.0 };
        let grows = |each: f64| course(move |x| 100.0 * each * x, |_| 0.0);
        assert!(overflows(&slo, before(330.0), &grows(0.2)));
        assert!(overflows(&slo, before(330.0), &course(|_| 50.0, |x| 20.0 * x)), "lost packets count");
        assert!(!overflows(&slo, before(640.0), &grows(0.2)), "it abates");
        assert!(!overflows(&slo, before(100.0), &grows(0.2)), "as much as a window may have");
        assert!(!overflows(&slo, before(640.0), &grows(0.02)));
    }

    /// Counts alone let a rate pass that loses nothing and whose queues stay, under an objective of what is lost.
    #[test]
    fn counts_of_packets_let_a_rate_pass_without_a_percentile() {
        let steady = || course(|_| 50.0, |_| 0.0);
        assert!(passes_early(&run("peak_loss"), &steady()) && passes_early(&run("peak_nodrop"), &steady()));
        assert!(!passes_early(&run("peak_slo"), &steady()));
        let loses = course(|_| 50.0, |x| f64::from(u8::from(x > 15.0)));
        assert!(passes_early(&run("peak_loss"), &loses) && !passes_early(&run("peak_nodrop"), &loses));
        assert!(!passes_early(&run("peak_loss"), &course(|_| 50.0, |x| 2.0 * x)), "2 % are lost");
        assert!(!passes_early(&run("peak_loss"), &course(|x| 2.0 * x, |_| 0.0)), "a queue grows by 2 %");
    }

    /// At an objective of 100 times the service time a rate passes whose packets take 2 us, though a few take longer than 100 us,
    /// and one fails of whose packets 4 % do. Where 0.8 % do, a longer window has to tell.
    #[test]
    fn a_rate_meets_an_objective_of_latency_as_soon_as_enough_packets_do() {
        let slo = |slow, us| decided(&run("peak_slo"), &with_tail(slow, us), Growth::default());
        assert_eq!(slo(0, 0), Some(true));
        assert_eq!((slo(10, 50), slo(10, 150)), (Some(true), Some(false)));
        assert_eq!(slo(2, 150), None, "0.8 % are slow");
    }

    /// Nothing is known of a percentile without latencies. A rate that must lose no packet passes as far as its window goes.
    #[test]
    fn what_is_not_known_is_not_decided() {
        assert_eq!(decided(&run("peak_nodrop"), &eighth(|_| 0.0, jitter), Growth::default()), Some(true));
        for load in ["peak_slo", "fixed"] {
            assert_eq!(decided(&run(load), &eighth(|_| 0.0, jitter), Growth::default()), None, "{load}");
        }
    }
}
