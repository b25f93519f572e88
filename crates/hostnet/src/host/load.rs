//! The load of a run: one rate, saturation, or the search for a peak.

use super::build::bench;
use super::client::PartialFile;
use super::control::Control;
use super::decision::{self, Course, Growth, SoFar, MOST_BACKLOG, MOST_BACKLOG_NODROP, MOST_LOST};
use super::life::Following;
use super::measure::{statics, Outcome};
use super::steadiness;
use super::two_hosts::hosts;
use super::watch::{Phase, Watch};
use super::Host;
use crate::app::Origin;
use crate::config::scenario::{ArrivalsSpec as Spec, Load, ReplayTiming, TenantSpec};
use crate::config::{check, traffic, Scenario};
use crate::device::NicAt;
use crate::flow::Link;
use crate::kernel::units::{Bandwidth, OfferedRate};
use crate::kernel::{Int, RandomStream, Real, TenantId, Time};
use crate::machine::World;
use crate::memory::dram::request_trace::{RequestTrace, RequestTraceFormat};
use crate::meter::batches::Batches;
use crate::meter::interval::{Interval, Intervals, CONFIDENCE};
use crate::meter::table::table;
use crate::meter::{metric, slope, MetricId, Values};
use crate::probe::{self, ProbeSpec};
use crate::traffic::arrival::{Arrivals, Gaps};
use crate::traffic::pcap::{Capture, CaptureError, LateOnLink};
use crate::traffic::search::{Bracket, Peak, Search, Trial};
use crate::traffic::writer::{self, ReturnedFrames};
use serde_json::{json, Map, Value};
use std::path::Path;
use std::slice;
use std::sync::Arc;

/// Callback for the progress of a run, between 0 and 1; an error aborts the run.
pub type Progress<'a> = &'a mut dyn FnMut(f64) -> Result<(), String>;

/// Callback for the results of several scenarios, which gets the number of a scenario and its result.
pub type OnResult<'a> = &'a mut dyn FnMut(usize, Outcome);

/// Requests by which the capacity is probed, at most.
const PROBE: u64 = 12_000;
/// Number of waiting requests at each core while the capacity is probed.
const PROBE_DEPTH: u32 = 4;
/// Maximum time in which packets of the capacity probe may leave the host.
const CLEARED: Time = Time::us(2000);
/// Simulated time between two looks at whether the host serves packets at all, and the number of packets that may come
/// without one being served. No ring and no queue of a scenario holds as many, so that the others were lost.
const STANDSTILL: Time = Time::us(100_000);
const UNSERVED: u64 = 1_000_000;
/// Requests by which a window may exceed `run.requests`, as a bound.
const BEYOND: u64 = 8192;
/// Parts of a measured window, which are the batches of the intervals.
const PARTS: u64 = 16;
/// Parts of a window that may end early; after each [`PARTS`] of them its end is considered.
const FINE_PARTS: u64 = 128;
/// Fewest requests in a part of a window that may end early. Windows of fewer requests are measured whole.
const FINE_REQUESTS: u64 = 8;
/// Parts of the capacity probe.
const PROBE_PARTS: u64 = 32;
/// Parts of the time in which queues settle at a new rate, at most; after each fourth it is judged whether they have settled.
/// The fewest of them are a 64th of a window, more where that is not [`PASSES`] through every ring, and a sixteenth at most.
/// Assumed.
const SETTLING: u64 = 512;
const FEWEST_SETTLING: [u64; 2] = [32, 128];
const PASSES: u64 = 3;
/// Samples that are judged: eight against eight, or a few more.
const SAMPLES: usize = 16;
/// Numbers of those parts after which it is judged whether queues grow without end, each from where the one before ended.
const JUDGED: [u64; 5] = [32, 64, 128, 256, 512];
/// Counts of packets that are taken in each part of a window in which a rate may pass by them alone.
const COUNTS: u64 = 4;
/// Metrics that a search finds, which grow with the offered rate.
const SEARCHED: [MetricId; 5] =
    [metric::OFFERED_MRPS, metric::THROUGHPUT_MRPS, metric::NET_GBPS, metric::OFFERED_GBPS, metric::ACHIEVED_GBPS];
/// Requests between two updates of the progress.
const SLICE: u64 = 4096;

/// Runs one point.
///
/// # Errors
/// Returns one sentence that names what cannot be built, a violated conservation law, or the error of `progress`.
pub fn run(spec: &Scenario, progress: Progress) -> Result<Outcome, String> {
    run_of(spec, Beside::default(), progress)
}

/// Runs scenarios that are equal but for `name` and `run.precision_of` as one simulation.
///
/// `on_result` gets the result of each scenario, which is the one that the scenario has alone: the measured window of a
/// scenario ends when its own metrics are known, and the simulation goes on for the others.
///
/// # Errors
/// Returns one sentence that names a scenario that is another simulation, what cannot be built, a violated conservation law,
/// or the error of `progress`. Some results may have been given before.
pub fn run_each(specs: &[Scenario], progress: Progress, on_result: OnResult) -> Result<(), String> {
    let simulated = |s: &Scenario| {
        let mut s = s.clone();
        s.name.clear();
        s.run.precision_of.clear();
        s
    };
    let Some((first, others)) = specs.split_first() else { return Ok(()) };
    let same = simulated(first);
    if let Some(other) = others.iter().find(|s| simulated(s) != same) {
        return Err(format!(
            "{} is another simulation than {}; scenarios that run as one differ in `name` and `run.precision_of` alone",
            other.name, first.name
        ));
    }
    simulate(specs, Beside::default(), progress, on_result)
}

/// Runs one point with a user-defined control plane. A search keeps its state and its settings from one rate to the next.
///
/// # Errors
/// Returns one sentence that names what cannot be built, a violated conservation law, or the error of `progress` or of
/// the control plane; also when the run has no load or is a directed test.
pub fn run_controlled(spec: &Scenario, control: Control, progress: Progress) -> Result<Outcome, String> {
    if spec.run.load == Load::None || spec.tenants.probe().is_some() {
        return Err(
            "a control plane needs tenants and a load: run.load = \"none\" and directed tests have no epochs".into()
        );
    }
    run_of(spec, Beside { control: Some(control), ..Beside::default() }, progress)
}

/// Runs one point and writes a capture of the packets that returned to the generator in the measured window.
///
/// # Errors
/// Returns one sentence that names what cannot be built, a violated conservation law, or the error of `progress`; also
/// when no packet can return, or the file cannot be written. After an error no file exists.
pub fn run_and_capture(spec: &Scenario, out: &Path, progress: Progress) -> Result<Outcome, String> {
    let what = "a capture of what came back needs";
    if !matches!(spec.run.load, Load::Fixed | Load::Saturate) {
        return Err(format!("{what} run.load = \"fixed\" or \"saturate\": one window, not a search"));
    }
    if spec.tenants.probe().is_some() || !spec.tenants.iter().any(check::serves) {
        return Err(format!("{what} a tenant that serves packets"));
    }
    let elsewhere = [
        (spec.client.is_some(), "a [client]"),
        (spec.tenants.iter().any(TenantSpec::loops), "a generator on the host's cores"),
        (spec.tas_tenant().is_some(), "clients over TCP"),
    ];
    if let Some((_, to)) = elsewhere.into_iter().find(|e| e.0) {
        return Err(format!("{what} the generator on the wire; a capture of what comes back to {to} is not built yet"));
    }
    let file = PartialFile::beside(out)?;
    let mut returned = ReturnedFrames::default();
    let outcome = run_of(spec, Beside { back: Some(&mut returned), ..Beside::default() }, progress)?;
    file.finish(|w| writer::write(w, &returned))?;
    Ok(outcome)
}

/// Runs one point and writes a trace of the requests to DRAM in the measured window, in the order in which the memory
/// controllers accepted them.
///
/// # Errors
/// Returns one sentence that names what cannot be built, a violated conservation law, or the error of `progress`; also
/// when the run is a search or a directed test, or the file cannot be written. After an error no file exists.
pub fn run_and_trace_memory(
    spec: &Scenario,
    out: &Path,
    format: RequestTraceFormat,
    progress: Progress,
) -> Result<Outcome, String> {
    if !matches!(spec.run.load, Load::Fixed | Load::Saturate) || spec.tenants.probe().is_some() {
        return Err(
            "a trace of the requests to DRAM needs run.load = \"fixed\" or \"saturate\": one window, not a search"
                .into(),
        );
    }
    let file = PartialFile::beside(out)?;
    let mut requests = RequestTrace::default();
    let outcome = run_of(spec, Beside { requests: Some(&mut requests), ..Beside::default() }, progress)?;
    file.finish(|w| requests.write(w, format, outcome.measured))?;
    Ok(outcome)
}

/// Tasks of a run beside its measurement.
#[derive(Default)]
pub(super) struct Beside<'a> {
    /// The packets that return to the generators are kept here.
    pub(super) back: Option<&'a mut ReturnedFrames>,
    /// A user-defined control plane.
    pub(super) control: Option<Control>,
    /// The lives of these packets are recorded.
    pub(super) lives: Option<&'a Following>,
    /// The run is shown while it goes on.
    pub(super) watch: Option<Watch<'a>>,
    /// The requests to DRAM of the measured window are kept here.
    pub(super) requests: Option<&'a mut RequestTrace>,
}

/// Runs the directed probe of a scenario.
fn probed(spec: &Scenario, probe: &ProbeSpec) -> Result<Outcome, String> {
    let mut values = statics(spec);
    let found = probe::run(probe, bench(spec)?, &mut values)?;
    let sim = found.machine.now;
    Ok(Outcome {
        values,
        intervals: Intervals::default(),
        tables: found.tables,
        warnings: Vec::new(),
        sim,
        warmup: Time::ZERO,
        measured: sim,
        lives: None,
    })
}

/// Runs one point, with tasks beside it.
pub(super) fn run_of(spec: &Scenario, beside: Beside, progress: Progress) -> Result<Outcome, String> {
    let mut found = None;
    simulate(slice::from_ref(spec), beside, progress, &mut |_, outcome| found = Some(outcome))?;
    Ok(found.expect("a result of each scenario"))
}

/// Runs scenarios of one simulation; tasks beside it go with one scenario.
fn simulate(
    specs: &[Scenario],
    Beside { back, control, lives, watch, requests }: Beside,
    progress: Progress,
    on_result: OnResult,
) -> Result<(), String> {
    let spec = Arc::new(specs[0].clone());
    let unloaded = match spec.tenants.probe() {
        Some(p) => Some(probed(&spec, &p.probe)?),
        None => (spec.run.load == Load::None).then(|| unmeasured(&spec, Time::ZERO)),
    };
    if let Some(outcome) = unloaded {
        (0..specs.len()).for_each(|i| on_result(i, outcome.clone()));
        return Ok(());
    }
    let mut world = hosts(&spec, back.is_some())?;
    if back.is_some() {
        world.members[0].record_returned();
    }
    if let Some(c) = control {
        world.members[0].control_by(c);
    }
    if let Some(following) = lives {
        world.members.iter_mut().for_each(|host| host.follow(following));
    }
    if requests.is_some() {
        let dram = &mut world.members[0].machine.mem.dram;
        dram.trace = Some(RequestTrace::new(Time(dram.timing().tck)));
    }
    let named = |s: &Scenario| s.run.precision_of.iter().filter_map(|name| MetricId::named(name)).collect();
    let precision_of = specs.iter().map(named).collect();
    let phase = Phase::WarmUp;
    let mut run = Run { world, spec: &spec, precision_of, events: 0, done: 0, progress, on_result, watch, phase };
    if spec.run.load.searches() {
        run.peak()?;
    } else {
        run.fixed()?;
    }
    if let Some(back) = back {
        *back = run.world.members[0].returned();
    }
    if let Some(requests) = requests {
        *requests = run.world.members[0].machine.mem.dram.trace.take().unwrap_or_default();
    }
    Ok(())
}

/// The outcome of a run of `spec` that has measured nothing up to `sim`.
fn unmeasured(spec: &Scenario, sim: Time) -> Outcome {
    Outcome {
        values: statics(spec),
        intervals: Intervals::default(),
        tables: Map::new(),
        warnings: Vec::new(),
        sim,
        warmup: Time::ZERO,
        measured: Time::ZERO,
        lives: None,
    }
}

/// A window that is being measured.
struct OpenWindow {
    /// Requests that had been completed at its start.
    start: u64,
    /// End of a window of simulated time.
    end: Time,
    parts: u64,
    /// Number of parts that are measured.
    part: u64,
    batches: Batches,
    /// Counts of packets, where a rate may pass by them before the first look at the batches; None elsewhere.
    course: Option<Course>,
    /// Growth of the queues in the second half of the time in which they settled.
    before: Growth,
    /// Whether no rate passes before the end of the window.
    thorough: bool,
}

/// Window of a rate that passed in a search.
struct Passed {
    rate: f64,
    window: OpenWindow,
    /// Scenarios for whose metrics the window goes on, from the state `world` at its end.
    longer: Vec<usize>,
    world: Option<World<Host>>,
}

struct Run<'a, 'w> {
    world: World<Host>,
    /// The scenario; with several, the first.
    spec: &'a Scenario,
    /// The metrics of each scenario that decide when its window ends.
    precision_of: Vec<Vec<MetricId>>,
    events: u64,
    done: u64,
    progress: Progress<'a>,
    on_result: OnResult<'a>,
    watch: Option<Watch<'w>>,
    phase: Phase,
}

impl Run<'_, '_> {
    /// Reports that `part` of the run is done, and lets a watcher look at the host.
    fn report(&mut self, part: f64) -> Result<(), String> {
        let (host, phase) = (&self.world.members[0], self.phase);
        if let Some(watch) = &mut self.watch {
            watch(part, &mut || host.snapshot(phase))?;
        }
        (self.progress)(part)
    }

    /// Gives the result of scenario `i`.
    fn deliver(&mut self, i: usize, mut outcome: Outcome) {
        outcome.tables.extend(self.captures().map(|captures| ("capture".to_string(), captures)));
        outcome.values.set(metric::SIM_EVENTS, self.events.to_f64());
        outcome.values.set(metric::SIM_REQUESTS, self.done.to_f64());
        (self.on_result)(i, outcome);
    }

    /// Table of the captures that are replayed to the tenants: the packets read, replayed and skipped, in words.
    fn captures(&self) -> Option<Value> {
        let replayed = self.world.members[0].sources().filter_map(|(t, s)| Some((t, s.capture.as_ref()?)));
        let rows: Vec<Vec<Value>> = replayed
            .flat_map(|(t, capture)| {
                let tenant = &self.spec.tenant(t).name;
                let rows = capture.rows(self.late_on_link(t, capture)).into_iter();
                rows.map(move |(kind, what, n)| vec![json!(tenant), json!(kind), json!(what), json!(n)])
            })
            .collect();
        let columns = [("tenant", ""), ("kind", ""), ("what", ""), ("packets", "packets")];
        (!rows.is_empty()).then(|| table(&columns, rows))
    }

    fn fixed(&mut self) -> Result<(), String> {
        for tenant in self.world.members[0].served() {
            self.offer_own(tenant)?;
        }
        let warm = self.share_of_warm_up();
        self.warm_up(warm)?;
        let mut window = self.open_window()?;
        let every = (0..self.precision_of.len()).collect();
        self.measure_each(&mut window, every, warm, 1.0, Self::deliver)
    }

    /// Part of the progress that belongs to the warm-up: that of its requests, or of its time, where they are given, and otherwise
    /// half.
    fn share_of_warm_up(&self) -> f64 {
        let run = &self.spec.run;
        let (warm_up, window) = match self.world.members[0].counts_requests() {
            true => (run.warmup_requests.map(|n| n.to_f64()), run.requests.to_f64()),
            false => (run.warmup_time.map(|t| Time::from(t).0.to_f64()), Time::from(run.time).0.to_f64()),
        };
        warm_up.map_or(0.5, |warm_up| warm_up / (warm_up + window).max(1.0))
    }

    /// Offers `tenant` the traffic that the scenario describes for it.
    fn offer_own(&mut self, tenant: TenantId) -> Result<(), String> {
        let t = self.spec.traffic_of(tenant);
        if self.spec.tenant(tenant).loops() {
            // The tenant's cores generate the load themselves.
        } else if t.arrivals() == Spec::Closed {
            self.world.members[0].offer_closed(tenant, t.outstanding(), t.timeout().into());
        } else {
            self.replays(tenant)?;
            let (arrivals, depth) = self.offered(tenant, None);
            self.world.members[0].offer(tenant, arrivals, depth);
        }
        Ok(())
    }

    /// Tenants whose rate a search varies: those whose own traffic sets none.
    fn searched(&self) -> Vec<TenantId> {
        self.world.members[0].served().into_iter().filter(|t| traffic::is_searched(self.spec, *t)).collect()
    }

    /// Capture that is replayed to `tenant`.
    fn capture(&self, tenant: TenantId) -> Option<&Arc<Capture>> {
        self.world.members[0].tenants[tenant].source.as_ref()?.capture.as_ref()
    }

    /// Checks that a capture has a schedule, or gets one that the link carries.
    fn replays(&self, tenant: TenantId) -> Result<(), String> {
        let t = self.spec.traffic_of(tenant);
        let Some(capture) = self.capture(tenant) else { return Ok(()) };
        let Some(r) = t.rate() else {
            let times = capture.times();
            let at_once = times.iter().all(|t| *t == Time::ZERO);
            let file = t.pcap().map_or("", |p| &p.file);
            if at_once && capture.period.is_none() {
                let until = capture.damage.as_ref().map_or(String::new(), |d| {
                    let e = CaptureError { file: file.into(), fault: d.clone().into() };
                    format!(" before its damage ({e})")
                });
                return Err(format!(
                    "traffic.pcap.file = \"{file}\" has no two packets at different times{until}; give traffic.rate and \
                     pcap.timing = \"fixed\""
                ));
            }
            let (n, passes) = (times.len().to_u64(), (self.spec.run.packets() - 1) / times.len().to_u64());
            let own = || times.last().map_or(0.0, |t| t.as_secs()) * n.to_f64() / (n - 1).to_f64();
            let pass = capture.period.map_or_else(own, |period| period.as_secs());
            let rest = times[((self.spec.run.packets() - 1) % n).to_usize()].as_secs();
            let key = format!("the times of traffic.pcap.file = \"{file}\"");
            return traffic::ends(&self.spec.run, &key, passes.to_f64() * pass + rest);
        };
        traffic::carries(self.spec, "traffic.rate", &r, self.packets(tenant, r), capture.mean_size())
    }

    /// Packets of a capture that the link to `tenant` carries more than a microsecond late. A microsecond is the
    /// resolution of most captures.
    fn late_on_link(&self, tenant: TenantId, capture: &Capture) -> Option<LateOnLink> {
        let (rate, beside) = traffic::line_rate(self.spec, tenant)?;
        let pcap = self.spec.traffic_of(tenant).pcap();
        let original = pcap.is_some_and(|p| p.timing == ReplayTiming::Original);
        let mut arrivals = self.offered(tenant, None).0.filter(|_| original)?;
        let mut link = Link::ethernet(rate, Time::ZERO);
        let mut late = LateOnLink { packets: 0, most: Time::ZERO, rate };
        for packet in &capture.packets {
            let due = arrivals.next();
            let behind = link.backlog(due);
            late.packets += u64::from(behind > Time::us(1));
            late.most = late.most.max(behind);
            link.send(u64::from(packet.wire_len + beside), due);
        }
        (late.packets > 0).then_some(late)
    }

    /// Packets per second that a rate means, with the sizes that are offered to `tenant`.
    fn packets(&self, tenant: TenantId, rate: OfferedRate) -> f64 {
        let drawn = || self.spec.traffic_of(tenant).frame_sizes().1;
        rate.packets(self.capture(tenant).map_or_else(drawn, |c| c.mean_size()))
    }

    /// The arrival process of `tenant`'s packets at `rate` per second, or the scenario's own; and the number of waiting
    /// packets per core, if that is the load.
    fn offered(&self, tenant: TenantId, rate: Option<f64>) -> (Option<Arrivals>, u32) {
        let t = self.spec.traffic_of(tenant);
        let stream = RandomStream::new(self.spec.seed, "arrivals", self.world.members[0].order(tenant));
        let given = rate.or(t.rate().map(|r| self.packets(tenant, r)));
        let open = given.unwrap_or(1e6);
        let spread = |gaps, stream| Arrivals::spread(open, gaps, stream);
        let a = match t.arrivals() {
            Spec::Poisson => Arrivals::poisson(open, stream),
            Spec::Fixed => Arrivals::fixed(open),
            Spec::Uniform => spread(Gaps::Uniform { cv: t.cv().unwrap_or(Gaps::WIDEST) }, stream),
            Spec::LogNormal => spread(Gaps::LogNormal { cv: t.cv().unwrap_or(1.0) }, stream),
            Spec::Pareto => spread(Gaps::Pareto { cv: t.cv().unwrap_or(1.0) }, stream),
            Spec::Burst => {
                let own = t.burst_period().filter(|_| rate.is_none()).map(Time::from);
                let period = own.unwrap_or(Time((f64::from(t.burst()) / open * 1e12).whole()));
                // Packets that are back to back are a thousandth of the mean gap apart.
                let within = t.burst_gap().map_or(open * 1e3, |g| 1e12 / g.0.to_f64());
                Arrivals::bursts(period, t.burst().into(), within)
            }
            Spec::Pcap => {
                let timing = t.pcap().map_or(ReplayTiming::Original, |p| p.timing);
                let times = self.capture(tenant).map(|c| c.times()).unwrap_or_default();
                let of_file = self.capture(tenant).and_then(|c| c.period);
                match timing {
                    ReplayTiming::Poisson => Arrivals::poisson(open, stream),
                    ReplayTiming::Fixed => Arrivals::fixed(open),
                    ReplayTiming::Original => match of_file.filter(|_| given.is_none()) {
                        Some(period) => Arrivals::part_of_trace(times.into(), period),
                        None => Arrivals::trace(times.into(), given).unwrap_or_else(|_| Arrivals::fixed(open)),
                    },
                }
            }
            Spec::KeepDepth => return (None, t.depth()),
            Spec::Closed | Spec::None => return (None, 0),
        };
        (Some(a), 0)
    }

    /// Runs until the window has `n` more requests (or, without packets, until `run.time` has passed).
    fn advance(&mut self, n: u64, from: f64, to: f64) -> Result<(), String> {
        if !self.world.members[0].counts_requests() {
            return self.advance_time(self.spec.run.time.into(), from, to);
        }
        let events = self.world.members[0].machine.cal.popped();
        {
            let start = self.world.members[0].run.completed_ever;
            let mut offered = self.world.members[0].packets_offered();
            while self.world.members[0].run.completed_ever < start + n {
                let stop = (self.world.members[0].run.completed_ever + SLICE).min(start + n);
                let before = self.world.members[0].run.completed_ever;
                let look = self.world.members[0].machine.now.saturating_add(STANDSTILL).min(Time::END);
                self.world.run_until(look, move |h| h.run.completed_ever >= stop);
                let host = &mut self.world.members[0];
                host.failure().map_or(Ok(()), Err)?;
                if host.machine.cal.is_empty() {
                    return Err("the run stands still: no event is left".into());
                }
                if host.machine.now >= Time::END {
                    let served = host.run.completed_ever;
                    return Err(format!("the run reaches 12 days, the end of simulated time, with {served} requests served; ask for fewer or for a higher rate"));
                }
                if host.run.completed_ever > before {
                    offered = host.packets_offered();
                } else if host.packets_offered() - offered > UNSERVED {
                    let came = host.packets_offered() - offered;
                    return Err(format!("the run stands still: {came} packets came, and none was served"));
                }
                let part = (host.run.completed_ever - start).to_f64() / n.to_f64();
                self.report(from + (to - from) * part)?;
            }
            self.done += n;
        }
        self.events += self.world.members[0].machine.cal.popped() - events;
        Ok(())
    }

    /// The time `time` from now.
    fn end_after(&self, time: Time) -> Result<Time, String> {
        let end = self.world.members[0].machine.now + time;
        if end > Time::END {
            return Err("run.warmup_time and run.time are above 12 days together".into());
        }
        Ok(end)
    }

    fn advance_time(&mut self, time: Time, from: f64, to: f64) -> Result<(), String> {
        let end = self.end_after(time)?;
        for i in 0..PARTS {
            self.advance_towards(end, PARTS - i)?;
            self.report(from + (to - from) * (i + 1).to_f64() / PARTS.to_f64())?;
        }
        Ok(())
    }

    /// Runs one of the `left` equal parts of the time up to `end`.
    fn advance_towards(&mut self, end: Time, left: u64) -> Result<(), String> {
        let host = &mut self.world.members[0];
        let events = host.machine.cal.popped();
        let stop = Time(host.machine.now.0 + end.saturating_sub(host.machine.now).0 / left);
        host.run_until(stop, |_| false);
        host.failure().map_or(Ok(()), Err)?;
        self.events += host.machine.cal.popped() - events;
        Ok(())
    }

    /// Runs until caches and traffic are steady. The function first fills the caches in functional mode, without
    /// timing; then memory accesses per request, throughput and the number of cached lines must agree over successive
    /// windows.
    fn warm_up(&mut self, to: f64) -> Result<(), String> {
        if let Some(n) = self.spec.run.warmup_requests {
            return self.warm_up_at_most(n, to);
        }
        if let Some(t) = self.spec.run.warmup_time.filter(|_| self.world.members[0].warms_up_timed()) {
            return self.advance_time(t.into(), 0.0, to);
        }
        if !self.spec.tenants.iter().any(|t| matches!(t.origin(), Origin::Always | Origin::Loop)) {
            self.world.members[0].warm_caches(&mut || (self.progress)(0.0))?;
        }
        if let Some(t) = self.spec.run.warmup_time.filter(|_| self.world.members[0].served().is_empty()) {
            return self.advance_time(t.into(), 0.0, to);
        }
        let entries = statics(self.spec).get(metric::TOTAL_RX_ENTRIES).unwrap_or(0.0).whole();
        // In a closed loop, all requests under way wait at once in the beginning.
        let under_way = |t: &TenantId| {
            let traffic = self.spec.traffic_of(*t);
            if traffic.arrivals() == Spec::Closed {
                traffic.outstanding().into()
            } else {
                0
            }
        };
        let closed: u64 = self.world.members[0].served().iter().map(under_way).sum();
        let window = (entries / 8).clamp(1_500, 5_000).max(closed);
        // In standing queues each packet waits, and packets must have waited in every buffer.
        let standing = self.spec.traffic.depth() > 0;
        let most = 60 + 4 * entries / window;
        let mut seen = Vec::new();
        for i in 0..most {
            seen.push(self.warm_window(window, 0.0, to * i.to_f64() / most.to_f64())?);
            if (!standing || (i + 1) * window > entries) && steady(&seen) {
                break;
            }
        }
        Ok(())
    }

    /// Runs `n` requests, or fewer where a precision is asked for and caches and traffic are steady before.
    fn warm_up_at_most(&mut self, n: u64, to: f64) -> Result<(), String> {
        if n == 0 {
            self.await_packets();
            return Ok(());
        }
        if self.spec.run.precision.is_none() || n < PARTS * FINE_REQUESTS {
            return self.advance(n, 0.0, to);
        }
        let mut seen = Vec::new();
        for i in 0..PARTS {
            let at = |k: u64| to * k.to_f64() / PARTS.to_f64();
            seen.push(self.warm_window(n * (i + 1) / PARTS - n * i / PARTS, at(i), at(i + 1))?);
            if steady(&seen) {
                break;
            }
        }
        Ok(())
    }

    /// Runs until the first packet may arrive: a window that began while all packets are on the wire would be longer than the time
    /// in which they come.
    fn await_packets(&mut self) {
        let [host] = self.world.members.as_mut_slice() else { return };
        let flights = host.served().into_iter().map(|t| traffic::flight(self.spec, t));
        let Some(arrives) = flights.min().filter(|at| *at > host.machine.now) else { return };
        let comes = |h: &Host| h.machine.cal.next_at().is_none_or(|at| at >= arrives);
        if !comes(host) {
            host.run_until(arrives, comes);
        }
        host.machine.now = host.machine.now.max(arrives);
    }

    /// Runs `n` requests of a warm-up. Returns what tells whether caches and traffic are steady: the lines that move between
    /// chip and DRAM for each request, the time, and the number of cached lines.
    fn warm_window(&mut self, n: u64, from: f64, to: f64) -> Result<[f64; 3], String> {
        self.world.restart_window();
        self.advance(n, from, to)?;
        let host = &self.world.members[0];
        let moved: u64 = host.machine.mem.stats.dram.iter().sum();
        let span = (host.machine.now - host.meters.window.start).0.to_f64();
        Ok([moved.to_f64() / n.to_f64(), span, host.machine.mem.lines_held().to_f64()])
    }

    /// Goes on with a window until the metrics of each scenario of `left` are known to `run.precision`, or it is complete, and
    /// gives the outcome of each to `give`. A window that ends for some scenarios is closed in a copy of the world, so that it
    /// goes on for the others as if nobody had looked.
    fn measure_each(
        &mut self,
        w: &mut OpenWindow,
        mut left: Vec<usize>,
        from: f64,
        to: f64,
        mut give: impl FnMut(&mut Self, usize, Outcome),
    ) -> Result<(), String> {
        while !left.is_empty() {
            self.continue_window(w, from, to, |run, w| left.iter().any(|i| run.known(*i, w)))?;
            let complete = w.part == w.parts || self.fails();
            let (ended, longer): (Vec<_>, _) = left.into_iter().partition(|i| complete || self.known(*i, w));
            let open = (!longer.is_empty()).then(|| self.world.clone());
            let closed = self.close_window(w)?;
            for i in ended {
                let outcome = self.noting_precision(i, w, closed.clone());
                give(self, i, outcome);
            }
            if let Some(world) = open {
                self.world = world;
            }
            left = longer;
        }
        Ok(())
    }

    /// Begins a window.
    fn open_window(&mut self) -> Result<OpenWindow, String> {
        self.phase = Phase::Measurement;
        self.world.restart_window();
        let host = &self.world.members[0];
        let by_time = !host.counts_requests();
        let end = if by_time { self.end_after(self.spec.run.time.into())? } else { Time::ZERO };
        let fine =
            self.spec.run.precision.is_some() && (by_time || self.spec.run.requests >= FINE_REQUESTS * FINE_PARTS);
        let start = host.run.completed_ever;
        Ok(OpenWindow {
            start,
            end,
            parts: if fine { FINE_PARTS } else { PARTS },
            part: 0,
            batches: Batches::default(),
            course: None,
            before: Growth::default(),
            thorough: false,
        })
    }

    /// Goes on with a window until it is complete, or until `enough` at one of the places where it may end.
    fn continue_window(
        &mut self,
        w: &mut OpenWindow,
        from: f64,
        to: f64,
        enough: impl Fn(&Self, &OpenWindow) -> bool,
    ) -> Result<(), String> {
        let n = self.spec.run.requests;
        let by_time = !self.world.members[0].counts_requests();
        let sampled = if w.parts == FINE_PARTS { FINE_PARTS / 32 } else { 1 };
        while w.part < w.parts {
            let at = |k: u64| from + (to - from) * k.to_f64() / w.parts.to_f64();
            let (begin, end) = (at(w.part), at(w.part + 1));
            w.part += 1;
            if by_time {
                self.advance_towards(w.end, w.parts - w.part + 1)?;
                self.report(end)?;
            } else {
                // Each part ends where it would if all earlier parts had been exact: threads that complete bursts go beyond
                // the end of their part.
                let done = self.world.members[0].run.completed_ever;
                let part = (w.start + n * w.part / w.parts).saturating_sub(done);
                if part == 0 {
                    continue;
                }
                match w.course.as_mut().filter(|_| decision::EARLY.iter().any(|last| w.part <= *last)) {
                    Some(course) => self.advance_counting(part, course, begin, end)?,
                    None => self.advance(part, begin, end)?,
                }
            }
            if !by_time && w.part % sampled == 0 {
                self.world.members[0].sample();
            }
            self.world.members[0].count_polls();
            let mut reading = self.world.members[0].reading();
            self.world.client_metrics(&mut reading.values);
            w.batches.add(reading);
            let early = w.course.is_some() && decision::EARLY.contains(&w.part);
            if self.fails() || (early || w.part % PARTS == 0) && enough(self, w) {
                break;
            }
        }
        Ok(())
    }

    /// Serves `n` requests of a window, and adds what came of the packets up to each of their [`COUNTS`] parts to `course`.
    fn advance_counting(&mut self, n: u64, course: &mut Course, from: f64, to: f64) -> Result<(), String> {
        let start = self.world.members[0].run.completed_ever;
        for i in 1..=COUNTS {
            let done = self.world.members[0].run.completed_ever - start;
            let part = (n * i / COUNTS).saturating_sub(done);
            if part > 0 {
                self.advance(part, from, to)?;
                course.0.push(self.packets_so_far());
            }
        }
        Ok(())
    }

    /// What came of the packets of the window so far.
    fn packets_so_far(&self) -> SoFar {
        let host = &self.world.members[0];
        SoFar {
            offered: host.requests_offered().to_f64(),
            lost: host.lost().to_f64(),
            inside: host.packets_inside().to_f64(),
        }
    }

    /// Ends a window. The outcome does not say yet what is not known to `run.precision`.
    fn close_window(&mut self, w: &OpenWindow) -> Result<Outcome, String> {
        if !self.world.members[0].counts_requests() {
            self.world.members[0].sample();
        }
        let mut outcome = self.world.members[0].outcome();
        self.world.client_lives(&mut outcome);
        self.world.client_metrics(&mut outcome.values);
        outcome.intervals = w.batches.intervals();
        outcome.tables.insert("tenant_intervals".into(), w.batches.tenant_table());
        self.world.check()?;
        Ok(outcome)
    }

    /// `outcome` of a window, with a warning where the metrics of scenario `i` are not known to `run.precision`.
    fn noting_precision(&self, i: usize, w: &OpenWindow, mut outcome: Outcome) -> Outcome {
        outcome.warnings.extend(self.unknown(i, &w.batches).and_then(|left| self.imprecise(&left)));
        outcome
    }

    /// Whether the metrics of scenario `i` are known to `run.precision`. While queues grow none is: a queue that is not full
    /// yet loses nothing. Nor is one before the end of a window that must lose no packet.
    fn known(&self, i: usize, w: &OpenWindow) -> bool {
        let host = &self.world.members[0];
        let offered = host.packets_offered() - host.meters.window.packets.0;
        let complete = w.part == w.parts || self.spec.run.load != Load::PeakNodrop;
        complete && !host.gathers(offered) && self.unknown(i, &w.batches).is_some_and(|left| left.is_empty())
    }

    /// Whether the rate of a search passes, as soon as that is clear or the window is complete; None before.
    fn verdict(&self, w: &OpenWindow) -> Option<bool> {
        if self.fails() {
            return Some(false);
        }
        if w.part == w.parts {
            return Some(self.passes(&self.world.members[0].reading().values));
        }
        if self.in_bursts() {
            return None;
        }
        let run = &self.spec.run;
        if w.part % PARTS != 0 {
            return w.course.as_ref().filter(|c| !w.thorough && decision::passes_early(run, c)).map(|_| true);
        }
        decision::decided(run, &w.batches, w.before).filter(|passes| !(*passes && w.thorough))
    }

    /// Metrics of scenario `i` that are not known to `run.precision` yet, each with its relative half-width; None where no
    /// precision is asked for, and where nothing is known of the metrics.
    fn unknown(&self, i: usize, batches: &Batches) -> Option<Vec<(MetricId, f64)>> {
        batches.imprecise(&self.precision_of[i], self.spec.run.precision?)
    }

    /// Sentence about the metrics that are not known to `run.precision` at the end of a window.
    fn imprecise(&self, left: &[(MetricId, f64)]) -> Option<String> {
        let (worst, half) = left.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let longer = if self.world.members[0].counts_requests() { "run.requests" } else { "run.time" };
        let (name, asked) = (worst.declared().name, 100.0 * self.spec.run.precision.unwrap_or(0.0));
        let known = match half.is_finite() {
            true => format!("is known to {:.1} % (95 % interval), and not", 100.0 * half),
            false => "has too few samples for an interval, and is not known".into(),
        };
        Some(format!("{name} {known} to run.precision = {asked:.1} %; give a larger {longer}"))
    }

    /// Brings the host to a steady state near its capacity, and returns the bracket with which a search begins. The
    /// function probes the capacity with a few requests always waiting, which also warms the caches. A bandwidth test
    /// with a given rate begins at that rate.
    fn bracket(&mut self) -> Result<Bracket, String> {
        let load = self.spec.run.load;
        let tenants = self.searched();
        let first = tenants.first().copied().unwrap_or(TenantId(0));
        let start = self.spec.traffic.rate().filter(|_| load == Load::PeakLoss).map(|r| self.packets(first, r));
        let most = self.line_rate(&tenants);
        for tenant in self.world.members[0].served().into_iter().filter(|t| !tenants.contains(t)) {
            self.offer_own(tenant)?;
        }
        let capacity = if let Some(rate) = start {
            let rate = most.map_or(rate, |m| rate.min(m));
            self.offer_at(&tenants, rate);
            self.warm_up(0.35)?;
            rate
        } else {
            tenants.iter().for_each(|t| self.world.members[0].offer(*t, None, PROBE_DEPTH));
            self.warm_up(0.3)?;
            self.world.restart_window();
            self.probe()?;
            let window = self.world.members[0].machine.now - self.world.members[0].meters.window.start;
            let completed = |t: &TenantId| self.world.members[0].tenants[*t].tally.completed;
            tenants.iter().map(completed).sum::<u64>().to_f64() / window.as_secs() / tenants.len().to_f64()
        };
        let (lo, hi) = match load {
            Load::PeakNodrop => (0.4, 0.95),
            Load::PeakLoss => (0.75, 1.05),
            _ => (0.92, 1.0),
        };
        Ok(Bracket {
            lo: capacity * lo,
            hi: capacity * hi,
            rel_tol: self.spec.run.search_tolerance,
            step: self.spec.run.step.map(|r| self.packets(first, r)),
            most,
            max_evals: match load {
                Load::PeakLoss => 24,
                Load::PeakNodrop => 16,
                _ => 10,
            },
        })
    }

    /// Runs the requests that tell the capacity; where a precision is asked for, until the rate is known to it.
    fn probe(&mut self) -> Result<(), String> {
        let n = PROBE.min(self.spec.run.requests);
        let Some(precision) = self.spec.run.precision.filter(|_| n >= PROBE_PARTS * FINE_REQUESTS) else {
            return self.advance(n, 0.3, 0.35);
        };
        let start = self.world.members[0].run.completed_ever;
        let mut done = Vec::new();
        for i in 1..=PROBE_PARTS {
            let so_far = self.world.members[0].run.completed_ever - start;
            self.advance((n * i / PROBE_PARTS).saturating_sub(so_far), 0.3, 0.35)?;
            let host = &self.world.members[0];
            done.push((host.machine.now.0.to_f64(), (host.run.completed_ever - start).to_f64()));
            let known = |s: Interval| s.high - s.low <= precision * (s.high + s.low);
            if slope::slope(&done, CONFIDENCE).is_some_and(known) {
                break;
            }
        }
        Ok(())
    }

    /// Offers each of `tenants` `rate` packets per second.
    fn offer_at(&mut self, tenants: &[TenantId], rate: f64) {
        for tenant in tenants {
            let (arrivals, depth) = self.offered(*tenant, Some(rate));
            self.world.members[0].offer(*tenant, arrivals, depth);
        }
    }

    /// Lets the packets of `tenants` that the capacity probe has left in the host drain, as far as they do: behind a wire
    /// they would be back before the packets of the test have arrived. Traffic of other tenants goes on.
    fn clear(&mut self, tenants: &[TenantId]) {
        let host = &mut self.world.members[0];
        tenants.iter().for_each(|t| host.offer(*t, None, 0));
        let most = host.machine.now + CLEARED;
        self.world.run_until(most, |h| h.unfinished() == 0);
    }

    /// Packets per second that the wires carry to each of the `searched` tenants, all of which are offered the same rate.
    /// Tenants of one NIC share its wire, of which tenants with a rate of their own take their part.
    fn line_rate(&self, searched: &[TenantId]) -> Option<f64> {
        let line =
            |t: TenantId| traffic::most_packets(self.spec, t, 1.0 / self.packets(t, OfferedRate::Bits(Bandwidth(8))));
        let host = &self.world.members[0];
        let at = |t: TenantId| host.tenants[t].source.as_ref().map(|s| s.at);
        let own_rate = |t: TenantId| Some(self.packets(t, self.spec.traffic_of(t).rate()?));
        searched
            .iter()
            .filter_map(|t| {
                let beside = host.served().into_iter().filter(|other| at(*other) == at(*t));
                let (mut taken, mut shared) = (0.0, 0.0);
                for other in beside {
                    let seconds = line(other)?.recip();
                    match searched.contains(&other) {
                        true => shared += seconds,
                        false => taken += seconds * own_rate(other).unwrap_or(0.0),
                    }
                }
                Some((1.0 - taken).max(0.0) / shared)
            })
            .reduce(f64::min)
    }

    /// Whether a rate passes. Packets by which the queues grow count as lost: in a longer run these packets would be
    /// lost, however deep the queues are.
    fn passes(&self, values: &Values) -> bool {
        let get = |m| values.get(m).unwrap_or(f64::INFINITY);
        let growth = get(metric::OFFERED_MRPS) * (get(metric::LOSS_RATE) - get(metric::DROP_RATE));
        let sustained = |most: f64| growth <= most * get(metric::THROUGHPUT_MRPS);
        match self.spec.run.load {
            Load::PeakNodrop => get(metric::DROPS) == 0.0 && sustained(MOST_BACKLOG_NODROP),
            Load::PeakLoss => get(metric::LOSS_RATE) <= self.spec.run.loss,
            _ => {
                get(metric::LAT_P99_US) <= self.spec.run.slo_multiple * get(metric::SERVICE_MEAN_US)
                    && get(metric::DROP_RATE) <= MOST_LOST
                    && sustained(MOST_BACKLOG)
            }
        }
    }

    /// Whether more packets are lost so far than the objective of a search allows of a whole window, so that the rate cannot
    /// pass: the number of lost packets never falls.
    fn fails(&self) -> bool {
        let host = &self.world.members[0];
        let run = &self.spec.run;
        cannot_pass(run.load, run.loss, run.requests, host.lost(), host.meters.window.packets.1)
    }

    /// Lets the queues settle at a new rate, for a quarter of a window. Where a precision is asked for, the queues have settled
    /// once the packets in the host, over the later half of the time so far, are as many in its first as in its second part.
    /// Returns the growth of the queues in the second half of the time. `None` where they clearly grow without end: then this
    /// second half is the window that was measured.
    fn settle(&mut self, from: f64, to: f64) -> Result<Option<Growth>, String> {
        self.phase = Phase::Search;
        let n = self.spec.run.requests / 4;
        if self.spec.run.precision.is_none() || n < SETTLING * FINE_REQUESTS {
            self.advance(n, from, to)?;
            return Ok(Some(Growth::default()));
        }
        let entries = statics(self.spec).get(metric::TOTAL_RX_ENTRIES).unwrap_or(f64::INFINITY).whole();
        let fewest =
            (PASSES * entries).saturating_mul(SETTLING).div_ceil(n).clamp(FEWEST_SETTLING[0], FEWEST_SETTLING[1]);
        let start = self.world.members[0].run.completed_ever;
        let (mut inside, mut course, mut before) = (Vec::new(), Course::default(), Growth::default());
        for i in 1..=SETTLING {
            let done = self.world.members[0].run.completed_ever;
            let at = |k: u64| from + (to - from) * k.to_f64() / SETTLING.to_f64();
            self.advance((start + n * i / SETTLING).saturating_sub(done), at(i - 1), at(i))?;
            inside.push(self.world.members[0].packets_inside().to_f64());
            course.0.push(self.packets_so_far());
            if JUDGED.contains(&i) {
                if i > JUDGED[0] && !self.in_bursts() && decision::overflows(&self.spec.run, before, &course) {
                    return Ok(None);
                }
                before = course.growth();
                if i < SETTLING {
                    self.world.restart_window();
                    course = Course(vec![self.packets_so_far()]);
                }
            }
            let later = &inside[inside.len() / 2..];
            let judged: Vec<f64> = later.iter().step_by((later.len() / SAMPLES).max(1)).copied().collect();
            if i >= fewest && i % 4 == 0 && steadiness::level(&judged) {
                break;
            }
        }
        Ok(Some(before))
    }

    /// Whether packets come in bursts: queues rise and fall with each, and batches end at any place in one.
    fn in_bursts(&self) -> bool {
        self.world.members[0].sources().any(|(_, s)| s.arrivals.as_ref().is_some_and(|a| a.period().is_some()))
    }

    /// Searches for the highest rate that passes; every rate starts from a copy of the same warm state. A rate that passed before
    /// the end of its window, and fails when the window has gone on for the metrics of a scenario, has failed after all: the
    /// search of that scenario goes on below.
    fn peak(&mut self) -> Result<(), String> {
        let bracket = self.bracket()?;
        let tenants = self.searched();
        let behind_wire = self.world.members[0].sources().any(|(_, s)| s.at != NicAt::Chip);
        if self.spec.run.load == Load::PeakLoss && behind_wire {
            self.clear(&tenants);
        }
        let warmed = self.world.clone();
        let mut search = Search::new(bracket);
        let mut left: Vec<usize> = (0..self.precision_of.len()).collect();
        while !left.is_empty() {
            let mut best: Option<Passed> = None;
            while let Some(rate) = search.next_rate() {
                self.world = warmed.clone();
                let at = (search.evaluations.len(), bracket.max_evals);
                let (trial, window) = self.try_rate(&tenants, rate, search.trusts(), at)?;
                best = if trial.ok { Some(self.passed(rate, window)) } else { best };
                search.add(rate, trial);
            }
            let Some(rate) = search.passed() else {
                let outcome = self.of_search(&search.found());
                left.into_iter().for_each(|i| self.deliver(i, outcome.clone()));
                return Ok(());
            };
            let best = match best.filter(|b| b.rate == rate) {
                Some(best) => best,
                // The search has come back to a rate whose window is gone.
                None => {
                    self.world = warmed.clone();
                    let at = (bracket.max_evals - 1, bracket.max_evals);
                    let (_, window) = self.try_rate(&tenants, rate, search.trusts(), at)?;
                    self.passed(rate, window)
                }
            };
            let failing = self.measure_best(best, left, &search)?;
            left = failing.iter().map(|(i, _)| *i).collect();
            if let Some((_, measured)) = failing.into_iter().next_back() {
                search.retract(rate, measured);
            }
        }
        Ok(())
    }

    /// The window of a rate that passed, which ends now.
    fn passed(&self, rate: f64, window: OpenWindow) -> Passed {
        let goes_on = |i: &usize| window.part < window.parts && !self.known(*i, &window);
        let longer: Vec<usize> = (0..self.precision_of.len()).filter(goes_on).collect();
        let world = (!longer.is_empty()).then(|| self.world.clone());
        Passed { rate, window, longer, world }
    }

    /// Measures what the scenarios `left` ask for at the highest rate that passed in `search`, and delivers it. Returns the
    /// scenarios whose longer windows fail, with what these measured.
    fn measure_best(
        &mut self,
        Passed { rate, mut window, longer, world }: Passed,
        left: Vec<usize>,
        search: &Search<Outcome>,
    ) -> Result<Vec<(usize, Outcome)>, String> {
        let mut found = search.found();
        let Some(at) = found.evaluations.iter().rposition(|e| e.rate == rate) else { return Ok(Vec::new()) };
        let closed = found.evaluations[at].measured.clone();
        let (longer, known): (Vec<_>, Vec<_>) = left.into_iter().partition(|i| longer.contains(i));
        for i in known {
            found.evaluations[at].measured = self.noting_precision(i, &window, closed.clone());
            let outcome = self.of_search(&found);
            self.deliver(i, outcome);
        }
        let Some(world) = world.filter(|_| !longer.is_empty()) else { return Ok(Vec::new()) };
        self.world = world;
        let mut failing = Vec::new();
        self.measure_each(&mut window, longer, 1.0, 1.0, |run, i, measured| {
            if !run.passes(&measured.values) {
                return failing.push((i, measured));
            }
            found.evaluations[at].measured = measured;
            let outcome = run.of_search(&found);
            run.deliver(i, outcome);
        })?;
        Ok(failing)
    }

    /// Offers `rate` to `tenants` from a warm state until it is clear whether the rate passes; `(at, of)` is the number of the trial
    /// and the number of trials. A rate that must lose no packet passes tentatively where `trusts` allows it.
    fn try_rate(
        &mut self,
        tenants: &[TenantId],
        rate: f64,
        trusts: bool,
        (at, of): (usize, usize),
    ) -> Result<(Trial<Outcome>, OpenWindow), String> {
        self.offer_at(tenants, rate);
        let part = |n: usize| 0.35 + 0.65 * n.to_f64() / of.to_f64();
        let (from, to) = (part(at), part(at + 1));
        let nodrop = self.spec.run.load == Load::PeakNodrop;
        let mut window = self.open_window()?;
        let mut ok = false;
        if let Some(before) = self.settle(from, (from + to) / 2.0)? {
            window = self.open_window()?;
            let counts = window.parts == FINE_PARTS && self.spec.run.load != Load::PeakSlo && !self.in_bursts();
            window.course = counts.then(Course::default);
            (window.before, window.thorough) = (before, nodrop && !trusts);
            self.continue_window(&mut window, (from + to) / 2.0, to, |run, w| run.verdict(w).is_some())?;
            ok = self.verdict(&window).unwrap_or(false);
        }
        let measured = self.close_window(&window)?;
        // Beyond its capacity a host serves what it carries, from which the limit on what may be lost follows.
        let lost = measured.values.get(metric::LOSS_RATE).filter(|_| self.spec.run.load == Load::PeakLoss);
        let edge = lost.map(|lost| rate * (1.0 - lost) / (1.0 - self.spec.run.loss));
        let tentative = nodrop && ok && window.part < window.parts;
        Ok((Trial { ok, tentative, edge, measured }, window))
    }

    /// The outcome of a search: what was measured at the highest rate that passes, and a table of the rates.
    fn of_search(&self, found: &Peak<Outcome>) -> Outcome {
        let rows = found.evaluations.iter().map(|e| {
            let get = |m| json!(e.measured.values.get(m));
            let first = vec![
                json!(e.rate / 1e6),
                get(metric::THROUGHPUT_MRPS),
                get(metric::LAT_P99_US),
                get(metric::DROP_RATE),
                json!(e.ok),
            ];
            let more = [metric::LOSS_RATE, metric::OFFERED_GBPS, metric::ACHIEVED_GBPS, metric::RTT_MEAN_US];
            // A window of `x` us with `y` Mrps has their product.
            let served =
                e.measured.values.get(metric::THROUGHPUT_MRPS).map(|y| (y * e.measured.measured.as_ns() / 1e3).round());
            first.into_iter().chain(more.map(get)).chain([json!(served)]).collect()
        });
        let columns = [
            ("rate_mrps", "Mrps"),
            ("throughput_mrps", "Mrps"),
            ("p99_us", "us"),
            ("drop_rate", "fraction"),
            ("ok", ""),
            ("loss_rate", "fraction"),
            ("offered_gbps", "Gb/s"),
            ("achieved_gbps", "Gb/s"),
            ("rtt_mean_us", "us"),
            ("measured_requests", "requests"),
        ];
        let searched = table(&columns, rows.collect());
        let best = found.evaluations.iter().rfind(|e| Some(e.rate) == found.rate);
        let now = self.world.members[0].machine.now;
        let mut outcome = best.map_or_else(|| unmeasured(self.spec, now), |e| e.measured.clone());
        if let Some((rate, failed)) = found.rate.zip(found.failed) {
            outcome.intervals.reach(&SEARCHED, failed / rate, &outcome.values);
        }
        if found.rate.is_none() {
            outcome.values.set(metric::THROUGHPUT_MRPS, 0.0);
            outcome.values.set(metric::OFFERED_GBPS, 0.0);
        }
        outcome.tables.insert("search".into(), searched);
        outcome
    }
}

/// Whether a window of `requests` requests in which `lost` packets were lost so far, and at whose start `inside` packets were
/// in the host, misses the objective of a search (`share` of `load = "peak_loss"`), however it goes on.
fn cannot_pass(load: Load, share: f64, requests: u64, lost: u64, inside: u64) -> bool {
    // Threads that complete bursts go beyond the end of the window.
    let completed = (requests + BEYOND).to_f64();
    match load {
        Load::PeakNodrop => lost > 0,
        Load::PeakLoss => {
            // Queues that were full at the start may empty, by which completed packets exceed those offered.
            let missing = lost.saturating_sub(inside).to_f64();
            missing > share * (completed + missing)
        }
        Load::PeakSlo => {
            let lost = lost.to_f64();
            lost > MOST_LOST * (completed * (1.0 + MOST_BACKLOG) + lost)
        }
        _ => false,
    }
}

/// Whether successive windows of a warm-up agree: in lines that move between chip and DRAM for each request within 1.5 %, in
/// time within 4 %, and in cached lines within 0.4 %.
fn steady(seen: &[[f64; 3]]) -> bool {
    let near = |a: f64, b: f64, tolerance: f64| (a - b).abs() <= tolerance * (a + b) / 2.0;
    steadiness::agree(seen, &[2, 4, 8, 16], |a, b| {
        near(a[0], b[0], 0.015) && near(a[1], b[1], 0.04) && near(a[2], b[2], 0.004)
    })
}

#[cfg(test)]
mod tests {
    use super::{cannot_pass, steady, Load};

    /// A sawtooth of four windows, by which a ring's wrapping around moves DRAM accesses by a third, is steady over eight windows
    /// and never over four; the same sawtooth on caches that fill by a hundredth a window is not.
    #[test]
    fn a_periodic_warm_up_is_steady_over_its_period_only() {
        let windows = |fill: f64| -> Vec<[f64; 3]> {
            let accesses = [1.2, 1.1, 0.9, 0.6];
            (0..16u32).map(|i| [accesses[(i % 4) as usize], 1e6, 1e6 * (1.0 + fill * f64::from(i))]).collect()
        };
        for n in 1..8 {
            assert!(!steady(&windows(0.0)[..n]), "{n} windows");
        }
        assert!(steady(&windows(0.0)[..8]));
        assert!(!steady(&windows(0.01)));
    }

    /// A whole window that completes 100,000 requests and loses n packets has a loss of n / (100,000 + n): 1,010 packets are
    /// 1 % of it, and no window is given up at fewer, nor while queues of as many packets may empty. Half as many again are
    /// beyond what bursts at the end of the window can make up for.
    #[test]
    fn a_window_is_given_up_only_when_it_cannot_meet_its_objective() {
        for load in [Load::PeakLoss, Load::PeakSlo] {
            let gives_up = |lost, inside| cannot_pass(load, 0.01, 100_000, lost, inside);
            assert!(!gives_up(0, 0) && !gives_up(500, 0) && !gives_up(1_010, 0), "{load:?}");
            assert!(gives_up(1_515, 0), "{load:?}");
        }
        assert!(!cannot_pass(Load::PeakLoss, 0.01, 100_000, 1_515, 505));
        assert!(
            !cannot_pass(Load::PeakNodrop, 0.01, 100_000, 0, 0) && cannot_pass(Load::PeakNodrop, 0.01, 100_000, 1, 0)
        );
        assert!(!cannot_pass(Load::Fixed, 0.01, 100_000, 90_000, 0));
    }
}
