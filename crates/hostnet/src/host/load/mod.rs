//! The load of a run: one rate, saturation, or the search for a peak.

mod found;
mod kept;
mod peak;
mod window;

pub use kept::fill_key;

use super::build::bench;
use super::client::PartialFile;
use super::control::Control;
use super::life::Following;
use super::measure::{statics, Outcome};
use super::shares::Shares;
use super::steadiness;
use super::two_hosts::hosts;
use super::warm_up::{BEFORE, TRIAL};
use super::watch::{Phase, Watch};
use super::Host;
use crate::app::Origin;
use crate::config::scenario::{ArrivalsSpec as Spec, Load, ReplayTiming, TenantSpec};
use crate::config::{check, traffic, Scenario};
use crate::flow::Link;
use crate::kernel::units::OfferedRate;
use crate::kernel::{Int, RandomStream, Real, TenantId, Time};
use crate::machine::World;
use crate::memory::dram::request_trace::{RequestTrace, RequestTraceFormat};
use crate::meter::interval::Intervals;
use crate::meter::table::table;
use crate::meter::{metric, MetricId};
use crate::probe::{self, ProbeSpec};
use crate::traffic::arrival::{Arrivals, Gaps};
use crate::traffic::pcap::{Capture, CaptureError, LateOnLink};
use crate::traffic::writer::{self, ReturnedFrames};
use serde_json::{json, Map, Value};
use std::path::Path;
use std::slice;
use std::sync::Arc;

/// Callback for the progress of a run, between 0 and 1; an error aborts the run.
pub type Progress<'a> = &'a mut dyn FnMut(f64) -> Result<(), String>;

/// Callback for the results of several scenarios, which gets the number of a scenario and its result.
pub type OnResult<'a> = &'a mut dyn FnMut(usize, Outcome);

/// Simulated time between two looks at whether the host serves packets at all, and the number of packets that may come
/// without one being served. No ring and no queue of a scenario holds as many, so that the others were lost.
const STANDSTILL: Time = Time::us(100_000);
const UNSERVED: u64 = 1_000_000;
/// Parts of a measured window, which are the batches of the intervals.
const PARTS: u64 = 16;
/// Fewest requests in a part of a window that may end early. Windows of fewer requests are measured whole.
const FINE_REQUESTS: u64 = 8;
/// Packets of each queue pair in a part of the warm-up, where threads exchange packets of their own through filled caches.
const EACH: u64 = 100;
/// Requests at which the trial of a mixture ends, once [`TRIAL`] has passed. Assumed.
const TRIAL_REQUESTS: u64 = 256;
/// Longest trial of a mixture, as a multiple of [`TRIAL`]. Assumed.
const LONGEST_TRIAL: u64 = 20;
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
/// scenario ends when its own metrics are known, and the simulation goes on for the others. Where the last simulation on this
/// operating-system thread kept its filled caches, and `fill_key` is the same, they are taken instead of being filled again;
/// with `keep` they are kept for the next one. Results are the same bits.
///
/// # Errors
/// Returns one sentence that names a scenario that is another simulation, what cannot be built, a violated conservation law,
/// or the error of `progress`. Some results may have been given before.
pub fn run_each(specs: &[Scenario], keep: bool, progress: Progress, on_result: OnResult) -> Result<(), String> {
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
    simulate(specs, Beside { keep: Some(keep), ..Beside::default() }, progress, on_result)
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
    /// Whether filled caches are kept for the next simulation; None where the caches that the last one kept are not taken.
    pub(super) keep: Option<bool>,
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
    Beside { back, control, lives, watch, requests, keep }: Beside,
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
    let mut run = Run { world, spec: &spec, keep, precision_of, events: 0, done: 0, progress, on_result, watch, phase };
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

struct Run<'a, 'w> {
    world: World<Host>,
    /// The scenario; with several, the first.
    spec: &'a Arc<Scenario>,
    /// As in [`Beside`].
    keep: Option<bool>,
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
        self.fill_caches()?;
        for tenant in self.world.members[0].served() {
            self.offer_own(tenant);
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
    fn offer_own(&mut self, tenant: TenantId) {
        let t = self.spec.traffic_of(tenant);
        if self.spec.tenant(tenant).loops() {
            // The tenant's cores generate the load themselves.
        } else if t.arrivals() == Spec::Closed {
            self.world.members[0].offer_closed(tenant, t.outstanding(), t.timeout().into());
        } else {
            let (arrivals, depth) = self.offered(tenant, None);
            self.world.members[0].offer(tenant, arrivals, depth);
        }
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
                } else if host.own_packets().outstanding > 0 {
                    let ms = STANDSTILL.as_ns() / 1e6;
                    return Err(format!(
                        "the run stands still: no packet of the closed loop came back for {ms} ms, so that traffic.outstanding may be more than rings and buffers hold"
                    ));
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

    /// Fills the caches in functional mode, without timing, where the scenario gives no warm-up.
    fn fill_caches(&mut self) -> Result<(), String> {
        let searched = if self.spec.run.load.searches() { self.searched() } else { Vec::new() };
        let served = self.world.members[0].served();
        served.iter().filter(|t| !searched.contains(t)).try_for_each(|t| self.replays(*t))?;
        let (run, host) = (&self.spec.run, &self.world.members[0]);
        let own = |t: &TenantSpec| matches!(t.origin(), Origin::Always | Origin::Loop);
        if run.warmup_requests.is_some()
            || run.warmup_time.is_some() && host.warms_up_timed()
            || self.spec.tenants.iter().any(own)
        {
            return Ok(());
        }
        let key = self.keep.and_then(|keep| Some((fill_key(self.spec)?, keep)));
        let Some((key, keep)) = key.filter(|_| !host.is_mixture()) else { return self.warm_caches() };
        if !kept::take(&key, self.spec, &mut self.world.members[0]) {
            self.warm_caches()?;
        }
        if keep {
            kept::keep(key, &self.world.members[0]);
        }
        Ok(())
    }

    /// Warms the caches in functional mode. In a mixture, copies of the world run for a short time and tell what its tenants do beside
    /// each other: at first with cold caches, and once more when these have filled, since how fast a core runs depends on them.
    fn warm_caches(&mut self) -> Result<(), String> {
        if !self.world.members[0].is_mixture() {
            return self.world.members[0].warm_caches(None, &mut || (self.progress)(0.0));
        }
        for _ in 0..2 {
            let shares = self.shares_in_a_trial();
            self.world.members[0].warm_caches(Some(&shares), &mut || (self.progress)(0.0))?;
        }
        Ok(())
    }

    /// Shares of the tenants while a copy of the world runs for a short time, without a control plane. Tenants whose rate a search varies
    /// have some packets waiting, as while the search probes the capacity.
    fn shares_in_a_trial(&mut self) -> Shares {
        let before = self.world.clone();
        self.world.members[0].run.control = None;
        let searched = if self.spec.run.load.searches() { self.searched() } else { Vec::new() };
        for tenant in self.world.members[0].served() {
            match searched.contains(&tenant) {
                true => self.world.members[0].offer(tenant, None, peak::PROBE_DEPTH),
                false => self.offer_own(tenant),
            }
        }
        let start = self.world.members[0].machine.now;
        self.world.run_until(start + BEFORE, |_| false);
        self.world.restart_window();
        let (least, most) = (start + BEFORE + TRIAL, start + BEFORE + TRIAL * LONGEST_TRIAL);
        let served = self.world.members[0].run.completed_ever;
        self.world.run_until(least, |_| false);
        self.world.run_until(most, |h| h.run.completed_ever >= served + TRIAL_REQUESTS);
        let shares = self.world.members[0].shares();
        self.world = before;
        shares
    }

    /// Runs until caches, which have been filled, and traffic are steady: memory accesses per request, throughput and the number
    /// of cached lines must agree over successive windows.
    fn warm_up(&mut self, to: f64) -> Result<(), String> {
        if let Some(n) = self.spec.run.warmup_requests {
            return self.warm_up_at_most(n, to);
        }
        if let Some(t) = self.spec.run.warmup_time.filter(|_| self.world.members[0].warms_up_timed()) {
            return self.advance_time(t.into(), 0.0, to);
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
        let own = self.world.members[0].own_packets();
        let alone = own.pairs > 0 && self.world.members[0].served().is_empty();
        let least = if alone { EACH * own.pairs } else { 1_500 };
        let window = (entries / 8).clamp(least, 5_000.max(least)).max(closed).max(own.outstanding);
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
    use super::steady;

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
}
