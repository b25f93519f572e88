//! A measured window: its parts, which are the batches of the intervals, and where it ends.

use super::{Run, FINE_REQUESTS, PARTS};
use crate::config::scenario::Load;
use crate::host::decision::{self, Course, Growth, PacketCounts};
use crate::host::measure::Outcome;
use crate::host::watch::Phase;
use crate::kernel::{Int, Time};
use crate::meter::batches::Batches;
use crate::meter::MetricId;

/// Parts of a window that may end early; after each [`PARTS`] of them its end is considered.
pub(super) const FINE_PARTS: u64 = 128;
/// Counts of packets that are taken in each part of a window in which a rate may pass by them alone.
const COUNTS: u64 = 4;

/// A window that is being measured.
pub(super) struct OpenWindow {
    /// Requests that had been completed at its start.
    pub(super) start: u64,
    /// End of a window of simulated time.
    pub(super) end: Time,
    pub(super) parts: u64,
    /// Number of parts that are measured.
    pub(super) part: u64,
    pub(super) batches: Batches,
    /// Conditions of the search, where one measures the window.
    pub(super) search: InSearch,
}

/// Conditions under which a search ends the window of a rate, beside the precision of its metrics.
#[derive(Default)]
pub(super) struct InSearch {
    /// Counts of packets, where a rate may pass by them before the first look at the batches; None elsewhere.
    pub(super) course: Option<Course>,
    /// Growth of the queues in the second half of the time in which they settled.
    pub(super) before: Growth,
    /// Whether no rate passes before the end of the window.
    pub(super) thorough: bool,
}

impl Run<'_, '_> {
    /// Goes on with a window until the metrics of each scenario of `left` are known to `run.precision`, or it is complete, and
    /// gives the outcome of each to `give`. A window that ends for some scenarios is closed in a copy of the world, so that it
    /// goes on for the others as if nobody had looked.
    pub(super) fn measure_each(
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
    pub(super) fn open_window(&mut self) -> Result<OpenWindow, String> {
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
            search: InSearch::default(),
        })
    }

    /// Goes on with a window until it is complete, or until `enough` at one of the places where it may end.
    pub(super) fn continue_window(
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
                match w.search.course.as_mut().filter(|_| decision::EARLY.iter().any(|last| w.part <= *last)) {
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
            let early = w.search.course.is_some() && decision::EARLY.contains(&w.part);
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

    /// Counts the packets that were offered, lost and still waiting in the window so far.
    pub(super) fn packets_so_far(&self) -> PacketCounts {
        let host = &self.world.members[0];
        PacketCounts {
            offered: host.requests_offered().to_f64(),
            lost: host.lost().to_f64(),
            inside: host.packets_inside().to_f64(),
        }
    }

    /// Ends a window. The outcome does not say yet what is not known to `run.precision`.
    pub(super) fn close_window(&mut self, w: &OpenWindow) -> Result<Outcome, String> {
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
    pub(super) fn noting_precision(&self, i: usize, w: &OpenWindow, mut outcome: Outcome) -> Outcome {
        match self.unknown(i, &w.batches) {
            Some(left) => outcome.warnings.extend(self.imprecise(&left)),
            None => outcome.warnings.extend(self.without_value()),
        }
        outcome
    }

    /// Sentence about metrics that were to be known to `run.precision` and have no value other than 0.
    fn without_value(&self) -> Option<String> {
        let names = &self.spec.run.precision_of;
        let asked = self.spec.run.precision.is_some() && !names.is_empty();
        asked.then(|| {
            format!(
                "none of run.precision_of ({}) has a value other than 0 here, so that the window was measured whole",
                names.join(", ")
            )
        })
    }

    /// Whether the metrics of scenario `i` are known to `run.precision`. While queues grow none is: a queue that is not full
    /// yet loses nothing. Nor is one before the end of a window that must lose no packet.
    pub(super) fn known(&self, i: usize, w: &OpenWindow) -> bool {
        let host = &self.world.members[0];
        let offered = host.packets_offered() - host.meters.window.packets.0;
        let complete = w.part == w.parts || self.spec.run.load != Load::PeakNodrop;
        complete && !host.gathers(offered) && self.unknown(i, &w.batches).is_some_and(|left| left.is_empty())
    }

    /// Whether the rate of a search passes, as soon as that is clear or the window is complete; None before.
    pub(super) fn verdict(&self, w: &OpenWindow) -> Option<bool> {
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
            return w
                .search
                .course
                .as_ref()
                .filter(|c| !w.search.thorough && decision::passes_early(run, c))
                .map(|_| true);
        }
        decision::decided(run, &w.batches, w.search.before).filter(|passes| !(*passes && w.search.thorough))
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
}
