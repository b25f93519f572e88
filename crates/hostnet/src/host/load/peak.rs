//! The search of a peak: the bracket with which it begins, and its rates one by one.

use super::found;
use super::window::{InSearch, OpenWindow, FINE_PARTS};
use super::{unmeasured, Run, FINE_REQUESTS};
use crate::config::scenario::Load;
use crate::config::traffic;
use crate::device::NicAt;
use crate::host::decision::{self, Course, Growth, MOST_BACKLOG, MOST_BACKLOG_NODROP, MOST_LOST};
use crate::host::measure::{statics, Outcome};
use crate::host::watch::Phase;
use crate::host::{steadiness, Host};
use crate::kernel::units::{Bandwidth, OfferedRate};
use crate::kernel::{Int, Real, TenantId, Time};
use crate::machine::World;
use crate::meter::interval::{Interval, CONFIDENCE};
use crate::meter::table::table;
use crate::meter::{metric, slope, Values};
use crate::traffic::search::{Bracket, Peak, Search, Trial};
use serde_json::json;

/// Requests by which the capacity is probed, at most.
const PROBE: u64 = 12_000;
/// Number of waiting requests at each core while the capacity is probed.
pub(super) const PROBE_DEPTH: u32 = 4;
/// Maximum time in which packets of the capacity probe may leave the host.
const CLEARED: Time = Time::us(2000);
/// Requests by which a window may exceed `run.requests`, as a bound.
const BEYOND: u64 = 8192;
/// Rates that a search tries, at most: twice as many as a bisection of its bracket to 0.6 % takes. Assumed.
const MOST_TRIALS: usize = 24;
/// Parts of the capacity probe.
const PROBE_PARTS: u64 = 32;
/// Parts of the time in which queues settle at a new rate, which is a quarter of a window. Assumed.
const SETTLING: u64 = 512;
/// Fewest parts of that time: a 64th of a window, and a sixteenth where [`PASSES`] through every ring take as long. Assumed.
const FEWEST_SETTLING: [u64; 2] = [32, 128];
/// Passes through every ring for which queues settle, within the bounds of [`FEWEST_SETTLING`]. Assumed.
const PASSES: u64 = 3;
/// Parts of the settling time between two judgements of whether queues have settled. Assumed.
const BETWEEN: u64 = 4;
/// Numbers of packets in the host by which it is judged whether queues have settled: half of them against the other half. Assumed.
const SAMPLES: usize = 16;
/// Ends of the spans of the settling time, in parts, whose growths are compared to judge whether queues grow without end.
const SPANS: [u64; 5] = [32, 64, 128, 256, 512];
/// Window of a rate that passed in a search.
struct Passed {
    rate: f64,
    window: OpenWindow,
    /// Scenarios for whose metrics the window goes on, from the state `world` at its end.
    longer: Vec<usize>,
    world: Option<World<Host>>,
}

impl Run<'_, '_> {
    /// Tenants whose rate a search varies: those whose own traffic sets none.
    pub(super) fn searched(&self) -> Vec<TenantId> {
        self.world.members[0].served().into_iter().filter(|t| traffic::is_searched(self.spec, *t)).collect()
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
        self.fill_caches()?;
        for tenant in self.world.members[0].served().into_iter().filter(|t| !tenants.contains(t)) {
            self.offer_own(tenant);
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
            from_hi: load == Load::PeakSlo,
            rel_tol: self.spec.run.search_tolerance,
            step: self.spec.run.step.map(|r| self.packets(first, r)),
            most,
            max_evals: MOST_TRIALS,
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
    /// they would be back before the packets of a trial have arrived, and replies that wait for a slower wire would delay those of
    /// a trial. Traffic of other tenants goes on.
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
    pub(super) fn passes(&self, values: &Values) -> bool {
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
    pub(super) fn fails(&self) -> bool {
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
            if SPANS.contains(&i) {
                if i > SPANS[0] && !self.in_bursts() && decision::overflows(&self.spec.run, before, &course) {
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
            if i >= fewest && i % BETWEEN == 0 && steadiness::level(&judged) {
                break;
            }
        }
        Ok(Some(before))
    }

    /// Whether packets come in bursts: queues rise and fall with each, and batches end at any place in one.
    pub(super) fn in_bursts(&self) -> bool {
        self.world.members[0].sources().any(|(_, s)| s.arrivals.as_ref().is_some_and(|a| a.period().is_some()))
    }

    /// Searches for the highest rate that passes; every rate starts from a copy of the same warm state. A rate that passed before
    /// the end of its window, and fails when the window has gone on for the metrics of a scenario, has failed after all: the
    /// search of that scenario goes on below.
    pub(super) fn peak(&mut self) -> Result<(), String> {
        let bracket = self.bracket()?;
        let tenants = self.searched();
        let behind_wire = self.world.members[0].sources().any(|(_, s)| s.at != NicAt::Chip);
        if behind_wire {
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
    /// and the number of trials. Without `trusts` no rate passes before the end of its window.
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
        let mut window = self.open_window()?;
        let mut ok = false;
        if let Some(before) = self.settle(from, (from + to) / 2.0)? {
            window = self.open_window()?;
            let counts = window.parts == FINE_PARTS && self.spec.run.load != Load::PeakSlo && !self.in_bursts();
            window.search = InSearch { course: counts.then(Course::default), before, thorough: !trusts };
            self.continue_window(&mut window, (from + to) / 2.0, to, |run, w| run.verdict(w).is_some())?;
            ok = self.verdict(&window).unwrap_or(false);
        }
        let measured = self.close_window(&window)?;
        // Beyond its capacity a host serves what it carries, from which the limit on what may be lost follows.
        let lost = measured.values.get(metric::LOSS_RATE).filter(|_| self.spec.run.load == Load::PeakLoss);
        let edge = lost.map(|lost| rate * (1.0 - lost) / (1.0 - self.spec.run.loss));
        let tentative = ok && window.part < window.parts;
        Ok((Trial { ok, tentative, edge, measured }, window))
    }

    /// The outcome of a search: what was measured at the highest rate that passes, and a table of the rates.
    fn of_search(&self, peak: &Peak<Outcome>) -> Outcome {
        let rows = peak.evaluations.iter().map(|e| {
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
        let best = peak.evaluations.iter().rfind(|e| Some(e.rate) == peak.rate);
        let now = self.world.members[0].machine.now;
        let mut outcome = best.map_or_else(|| unmeasured(self.spec, now), |e| e.measured.clone());
        if let Some((rate, failed)) = peak.rate.zip(peak.failed) {
            let searched: Vec<usize> = self.searched().iter().map(|t| t.index()).collect();
            let failed = (self.spec.run.load != Load::PeakNodrop).then_some(failed / rate);
            found::set_intervals(&mut outcome, &searched, failed);
        }
        if peak.rate.is_none() {
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

#[cfg(test)]
mod tests {
    use super::{cannot_pass, Load};

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
