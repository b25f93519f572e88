//! Searches over the offered rate: the highest rate that still meets a condition, and the knee of a curve. These
//! searches are independent of the simulator; the caller runs a point and reports the outcome.

use crate::kernel::Int;

/// One rate of a search, and where it places the edge.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Trial<M> {
    /// Whether the condition held.
    pub ok: bool,
    /// Whether the condition held in a part of the run only, so that the rate may fail in a whole one.
    pub tentative: bool,
    /// Highest rate that would pass, as far as this trial tells; None where it tells nothing.
    pub edge: Option<f64>,
    /// Measurement of the caller.
    pub measured: M,
}

/// One run of a search.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Evaluation<M> {
    /// Offered rate, in the caller's unit.
    pub rate: f64,
    /// Whether the condition held at the rate.
    pub ok: bool,
    /// Whether the condition held in a part of the run only.
    pub tentative: bool,
    /// Measurement of the caller.
    pub measured: M,
}

/// Reason why `peak` stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SearchEnd {
    /// The interval around the peak is as narrow as requested.
    Converged,
    /// `max_evals` is used up; the interval around the peak is wider than requested.
    OutOfRuns,
    /// Every rate tried failed, down to the lowest.
    AllFailed,
    /// Every rate tried passed, up to the highest.
    AllPassed,
}

/// Result of `peak`.
#[derive(Clone, PartialEq, Debug)]
pub struct Peak<M> {
    /// Highest rate that passed and lies below the lowest rate that failed.
    pub rate: Option<f64>,
    /// Lowest rate that failed.
    pub failed: Option<f64>,
    /// Reason why the search ended.
    pub end: SearchEnd,
    /// All runs, in order.
    pub evaluations: Vec<Evaluation<M>>,
}

/// Start and limits of a search.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bracket {
    /// Rate at which passing is expected.
    pub lo: f64,
    /// Rate at which failing is expected.
    pub hi: f64,
    /// Whether `hi` is tried first: if it passes, `lo` need not be tried.
    pub from_hi: bool,
    /// Relative distance between the failing and the passing rate at which the search ends.
    pub rel_tol: f64,
    /// Grid of the rates: all rates are multiples of this step, and the search ends with two neighbours on the grid.
    pub step: Option<f64>,
    /// Highest rate that can be offered.
    pub most: Option<f64>,
    /// Maximum number of runs.
    pub max_evals: usize,
}

impl Bracket {
    /// The multiple of `step` nearest to `rate` that can be offered, or the rate itself without a step.
    fn snap(&self, rate: f64) -> f64 {
        let most = self.most.unwrap_or(f64::INFINITY);
        match self.step {
            Some(step) => {
                // A quotient that lies a rounding error below a whole number counts as that number.
                let least_above = (most / step * (1.0 + 1e-12)).floor();
                (rate / step).round().clamp(1.0, least_above.max(1.0)) * step
            }
            None => rate.min(most),
        }
    }

    /// Next rate to try between or beyond the known rates; None where nothing is left to try. `edge` is where passing is
    /// expected to end, and `down` the factor from a rate that failed to the next while none has passed.
    fn next(&self, passed: Option<f64>, failed: Option<f64>, edge: Option<f64>, down: f64) -> Option<f64> {
        let (lo, hi) = (self.lo, self.hi);
        let least = self.step.map_or(0.0, |s| 0.5 * s);
        let new = |rate: &f64| {
            let within = passed.is_none_or(|p| *rate > p) && failed.is_none_or(|f| *rate < f);
            rate.is_normal() && *rate > least && within
        };
        let near = |a: f64, b: f64| self.step.map_or(b - a <= self.rel_tol * b, |s| b - a < 1.5 * s);
        if passed.zip(failed).is_some_and(|(p, f)| near(p, f)) {
            return None;
        }
        let told = edge.and_then(|e| {
            let below = self.below(e);
            [below, self.above(below)].into_iter().find(new)
        });
        if failed.is_some() && told.is_some() {
            return told;
        }
        let rate = match (passed, failed) {
            (None, None) => self.snap(if self.from_hi { hi } else { lo }),
            (None, Some(f)) => {
                let rate = f * down;
                self.step.map_or(rate, |s| self.snap(rate).min(f - s))
            }
            (Some(p), None) => {
                let rate = self.snap(if p < hi { hi } else { p * (hi / lo).powi(2) });
                self.step.map_or(rate, |s| rate.max(self.snap(p + s)))
            }
            (Some(p), Some(f)) => self.step.map_or((p * f).sqrt(), |s| ((p + f) / (2.0 * s)).floor() * s),
        };
        Some(rate).filter(new)
    }

    /// The last rate below `edge`: on the grid, or within half of the tolerance.
    fn below(&self, edge: f64) -> f64 {
        self.step.map_or(edge * (1.0 - self.rel_tol / 2.0), |s| (edge / s).floor() * s)
    }

    /// The next rate above `rate`. A search ends where `rate` passes and this one fails.
    fn above(&self, rate: f64) -> f64 {
        self.step.map_or(rate * (1.0 + 0.9 * self.rel_tol), |s| rate + s)
    }
}

/// A search for the highest rate that passes, whose caller runs the rates one by one.
///
/// The search tries `lo`, or with `from_hi` first `hi`. If `lo` fails, or `hi` passes, it moves on by twice the width of the
/// bracket until both ends are known, then bisects geometrically (on a grid: in its middle). A trial that fails and tells where
/// the edge is lets the search try the rates on both sides of the edge first; the search bisects again after an edge that was
/// wrong, so that it takes at most twice as many trials as without. A trial may be tentative: once a rate that passed tentatively
/// fails in a whole run, no tentative trial counts any longer, and the search goes down from that rate in growing steps until a
/// rate passes. Where passing is not monotone (noise near the edge) the answer still lies between a rate that passed and one that
/// failed, and no failing run lies below it. The search is deterministic if the trials are.
#[derive(Clone, PartialEq, Debug)]
pub struct Search<M> {
    bracket: Bracket,
    edge: Option<f64>,
    failed: Option<f64>,
    /// Number of runs before a rate that passed tentatively failed; None while none did.
    refuted: Option<usize>,
    /// All runs, in order.
    pub evaluations: Vec<Evaluation<M>>,
}

impl<M> Search<M> {
    /// # Panics
    /// Unless 0 < lo < hi, both finite, and the tolerance is positive; specs reject that before.
    pub fn new(bracket: Bracket) -> Search<M> {
        let b = &bracket;
        assert!(0.0 < b.lo && b.lo < b.hi && b.hi.is_finite() && b.rel_tol > 0.0, "{b:?}");
        Search { bracket, edge: None, failed: None, refuted: None, evaluations: Vec::with_capacity(b.max_evals) }
    }

    /// Highest rate that passed and lies below the lowest rate that failed.
    pub fn passed(&self) -> Option<f64> {
        let below = |rate: &f64| self.failed.is_none_or(|f| *rate < f);
        let counts = |e: &&Evaluation<M>| e.ok && (self.trusts() || !e.tentative);
        self.evaluations.iter().filter(counts).map(|e| e.rate).filter(below).reduce(f64::max)
    }

    /// Whether rates that pass tentatively count: none of them has failed in a whole run.
    pub fn trusts(&self) -> bool {
        self.refuted.is_none()
    }

    fn left(&self) -> Option<f64> {
        let b = &self.bracket;
        let down = match self.refuted {
            // 2, 6, 14 times the tolerance below the rate that failed.
            Some(from) => (1.0 - b.rel_tol * (2u64 << (self.evaluations.len() - from).min(32)).to_f64()).max(0.5),
            None if b.from_hi && self.evaluations.len() == 1 => b.lo / b.hi,
            None => (b.lo / b.hi).powi(2),
        };
        b.next(self.passed(), self.failed, self.edge, down)
    }

    /// The next rate to run; None where the search has ended.
    pub fn next_rate(&self) -> Option<f64> {
        self.left().filter(|_| self.evaluations.len() < self.bracket.max_evals)
    }

    /// Adds the trial of `rate`.
    pub fn add(&mut self, rate: f64, Trial { ok, tentative, edge: told, measured }: Trial<M>) {
        self.evaluations.push(Evaluation { rate, ok, tentative, measured });
        // Both sides of an edge are tried where they confirm it; a trial that does not tells no new one, so that the search
        // bisects next.
        self.edge = match self.edge {
            Some(_) => self.edge.filter(|e| ok && self.bracket.below(*e) == rate),
            None => told.filter(|_| !ok),
        };
        if !ok {
            self.failed = Some(rate);
        }
    }

    /// Takes back that `rate` passed, because a longer run of it fails, which measured `measured`; the search goes on below.
    pub fn retract(&mut self, rate: f64, measured: M) {
        if let Some(e) = self.evaluations.iter_mut().rfind(|e| e.rate == rate) {
            let tentative = std::mem::take(&mut e.tentative);
            (e.ok, e.measured) = (false, measured);
            self.refuted = self.refuted.or(tentative.then_some(self.evaluations.len()));
        }
        (self.failed, self.edge) = (Some(rate), None);
    }

    /// Result of the search up to now.
    pub fn found(&self) -> Peak<M>
    where
        M: Clone,
    {
        let end = match (self.passed(), self.failed) {
            (Some(_), Some(_)) if self.left().is_none() => SearchEnd::Converged,
            (None, Some(_)) => SearchEnd::AllFailed,
            (Some(_), None) => SearchEnd::AllPassed,
            _ => SearchEnd::OutOfRuns,
        };
        Peak { rate: self.passed(), failed: self.failed, end, evaluations: self.evaluations.clone() }
    }
}

/// Searches for the highest rate at which `run` passes; see [`Search`].
///
/// # Errors
/// Returns the first error of `run`, which ends the search.
///
/// # Panics
/// As [`Search::new`].
pub fn peak<M: Clone, E>(b: &Bracket, mut run: impl FnMut(f64) -> Result<Trial<M>, E>) -> Result<Peak<M>, E> {
    let mut search = Search::new(*b);
    while let Some(rate) = search.next_rate() {
        search.add(rate, run(rate)?);
    }
    Ok(search.found())
}

/// Finds the knee of a curve with x rising and y growing ever faster (latency over load): the point furthest below the
/// straight line through its ends, both axes scaled to 0..1 (Kneedle, Satopää et al., ICDCSW 2011). `None` below three
/// points, or where no point lies below the line.
pub fn knee(curve: &[(f64, f64)]) -> Option<usize> {
    let (&(x0, y0), &(x1, y1)) = (curve.first()?, curve.last()?);
    if curve.len() < 3 || x1 <= x0 || y1 <= y0 {
        return None;
    }
    let below = |&(x, y): &(f64, f64)| (x - x0) / (x1 - x0) - (y - y0) / (y1 - y0);
    let (at, depth) = curve.iter().map(below).enumerate().fold((0, 0.0), |best, p| if p.1 > best.1 { p } else { best });
    (depth > 1e-9).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::convert::Infallible;

    fn trial(ok: bool) -> Trial<()> {
        Trial { ok, tentative: false, edge: None, measured: () }
    }

    fn step(edge: f64) -> impl FnMut(f64) -> Result<Trial<()>, Infallible> {
        move |rate| Ok(trial(rate <= edge))
    }

    fn within(lo: f64, hi: f64, rel_tol: f64, max_evals: usize) -> Bracket {
        Bracket { lo, hi, from_hi: false, rel_tol, step: None, most: None, max_evals }
    }

    fn find(lo: f64, hi: f64, tol: f64, runs: usize, edge: f64) -> Peak<()> {
        peak(&within(lo, hi, tol, runs), step(edge)).unwrap()
    }

    #[test]
    fn a_step_inside_the_bracket_is_found_to_the_tolerance() {
        let found = find(1.0, 64.0, 0.01, 30, 26.0);
        let (rate, failed) = (found.rate.unwrap(), found.failed.unwrap());
        assert_eq!(found.end, SearchEnd::Converged);
        assert!(rate <= 26.0 && 26.0 < failed && failed - rate <= 0.01 * failed, "{found:?}");
        // ln 64 / 2^k <= 0.01 from k = 9 on, and both ends.
        assert!(found.evaluations.len() <= 11, "{}", found.evaluations.len());
    }

    #[test]
    fn a_step_outside_the_bracket_is_bracketed_first() {
        for edge in [0.03, 700.0] {
            let found = find(1.0, 64.0, 0.02, 40, edge);
            let rate = found.rate.unwrap();
            assert_eq!(found.end, SearchEnd::Converged);
            assert!(rate <= edge && edge <= rate * 1.0205, "{edge}: {rate}");
        }
    }

    /// From 64 down, a step at 26 is found like from 1 up. One at 80 saves the run of 1: the first are 64 and 64 times 64 squared.
    #[test]
    fn a_search_may_begin_at_the_upper_end_of_its_bracket() {
        let tried = |edge: f64| {
            let found = peak(&Bracket { from_hi: true, ..within(1.0, 64.0, 0.01, 40) }, step(edge)).unwrap();
            let rate = found.rate.unwrap();
            assert!(rate <= edge && edge <= rate * 1.0102, "{edge}: {rate}");
            found.evaluations.iter().map(|e| e.rate).collect::<Vec<_>>()
        };
        assert_eq!(tried(26.0)[..3], [64.0, 1.0, 8.0]);
        assert_eq!(tried(80.0)[..2], [64.0, 64f64.powi(3)]);
        // Below the bracket the search goes on as it does from the lower end: by the square of its width.
        let below = tried(0.3);
        assert_eq!(below[..2], [64.0, 1.0]);
        assert!((below[2] - 64f64.powi(-2)).abs() < 1e-9, "{below:?}");
    }

    #[test]
    fn running_out_of_runs_leaves_an_honest_bracket() {
        let found = find(1.0, 64.0, 0.001, 4, 26.0);
        assert_eq!((found.end, found.evaluations.len()), (SearchEnd::OutOfRuns, 4));
        assert!(found.rate.unwrap() <= 26.0 && found.failed.unwrap() > 26.0);
    }

    #[test]
    fn nothing_passes_or_nothing_fails() {
        let none = find(1.0, 2.0, 0.1, 5, 0.0);
        assert_eq!((none.rate, none.end), (None, SearchEnd::AllFailed));
        // Rates 1 and 2, and from there steps of (2 / 1) squared.
        let all = find(1.0, 2.0, 0.1, 5, f64::INFINITY);
        assert_eq!((all.rate, all.end), (Some(128.0), SearchEnd::AllPassed));
        assert_eq!(find(1.0, 2.0, 0.1, 0, 1.5).end, SearchEnd::OutOfRuns);
    }

    /// 26 passes and 26.2 fails. A longer run of the rate that was found fails, and so does one of each rate above 20: the search
    /// goes on below, and ends between 20 and its tolerance.
    #[test]
    fn a_search_goes_on_below_a_rate_that_fails_after_all() {
        let mut search = Search::<()>::new(within(1.0, 64.0, 0.01, 60));
        let found = loop {
            while let Some(rate) = search.next_rate() {
                search.add(rate, trial(rate <= 26.0));
            }
            match search.passed().expect("a rate passed") {
                rate if rate > 20.0 => search.retract(rate, ()),
                _ => break search.found(),
            }
        };
        let (rate, failed) = (found.rate.unwrap(), found.failed.unwrap());
        assert_eq!(found.end, SearchEnd::Converged);
        assert!(rate <= 20.0 && 20.0 < failed && failed - rate <= 0.01 * failed, "{found:?}");
        assert!(found.evaluations.iter().all(|e| e.ok == (e.rate <= rate)));
    }

    /// Each rate up to 26 passes tentatively, and whole runs pass up to `edge`. The search finds `edge` to its tolerance, also
    /// where it lies far below, with whole runs only after the first that fails.
    #[test]
    fn a_search_trusts_no_tentative_trial_after_one_that_failed_in_a_whole_run() {
        for edge in [26.0, 25.95, 25.0, 20.0, 3.0] {
            let mut search = Search::<()>::new(within(10.0, 64.0, 0.01, 60));
            let found = loop {
                while let Some(rate) = search.next_rate() {
                    let tentative = search.trusts() && rate <= 26.0;
                    let ok = tentative || rate <= edge;
                    search.add(rate, Trial { tentative, ..trial(ok) });
                }
                match search.passed().expect("a rate passed") {
                    rate if rate > edge => search.retract(rate, ()),
                    _ => break search.found(),
                }
            };
            let whole = found.evaluations.iter().filter(|e| e.ok && !e.tentative).count();
            let (rate, failed) = (found.rate.unwrap(), found.failed.unwrap());
            assert_eq!(found.end, SearchEnd::Converged);
            assert!(rate <= edge && edge < failed && failed - rate <= 0.01 * failed, "{edge}: {found:?}");
            assert!(whole <= 8, "{edge}: {whole} whole runs passed");
        }
    }

    #[test]
    fn an_error_ends_the_search_at_once() {
        let mut runs = 0;
        let result = peak(&within(1.0, 64.0, 0.01, 30), |rate| {
            runs += 1;
            if rate > 10.0 {
                Err("interrupted")
            } else {
                Ok(trial(true))
            }
        });
        assert_eq!((result.unwrap_err(), runs), ("interrupted", 2));
    }

    proptest! {
        /// Within 5 % of the edge the outcome is arbitrary: the answer may move by that much, and it contradicts none
        /// of the runs.
        #[test]
        fn noise_near_the_edge_moves_the_answer_no_further_than_the_noise(
            edge in 0.01f64..1000.0, coins in any::<u64>(), tol in 0.001f64..0.1,
        ) {
            let noisy = |rate: f64| -> Result<Trial<()>, Infallible> {
                let clear = (rate / edge - 1.0).abs() > 0.05;
                let coin = coins.rotate_left((rate.to_bits() % 61) as u32) & 1 == 1;
                Ok(trial(if clear { rate < edge } else { coin }))
            };
            let found = peak(&within(1.0, 64.0, tol, 60), noisy).unwrap();
            let rate = found.rate.unwrap();
            prop_assert_eq!(found.end, SearchEnd::Converged);
            prop_assert!(rate <= edge * 1.05 && rate >= edge * 0.95 * (1.0 - tol));
            prop_assert!(found.evaluations.iter().all(|e| e.ok == (e.rate <= rate)));
            prop_assert_eq!(peak(&within(1.0, 64.0, tol, 60), noisy).unwrap(), found);
        }
    }

    /// Loss beyond 41.5 is the excess: 1.2 % at 42, where a threshold of 1 % first fails.
    #[test]
    fn on_a_grid_the_peak_is_the_last_multiple_before_the_first_that_fails() {
        let loss = |rate: f64| Ok::<_, Infallible>(trial((rate - 41.5).max(0.0) / rate <= 0.01));
        for (lo, hi) in [(1.0, 64.0), (30.0, 31.0), (41.6, 41.9), (70.0, 900.0), (0.1, 0.2)] {
            let found = peak(&Bracket { step: Some(1.0), ..within(lo, hi, 0.2, 40) }, loss).unwrap();
            assert_eq!(
                (found.rate, found.failed, found.end),
                (Some(41.0), Some(42.0), SearchEnd::Converged),
                "{lo} {hi}"
            );
            assert!(found.evaluations.iter().all(|e| e.rate.fract() == 0.0), "{found:?}");
            let mut rates: Vec<_> = found.evaluations.iter().map(|e| e.rate).collect();
            rates.sort_by(f64::total_cmp);
            rates.dedup();
            assert_eq!(rates.len(), found.evaluations.len(), "no rate is run twice");
        }
    }

    /// A host that serves 41.5 of any larger number tells from the first rate that fails that 41 passes and 42 fails: one or two
    /// trials fail first, and two confirm the edge, on a grid or not. Where every trial tells the same wrong edge, be it 0 or no
    /// number, the answer is the same, and at most twice as many trials are run as without.
    #[test]
    fn an_edge_that_a_failing_trial_tells_is_tried_first() {
        let told = |edge: f64| move |rate: f64| Ok::<_, Infallible>(Trial { edge: Some(edge), ..trial(rate <= 41.5) });
        for (grid, tolerance, lo) in
            [(Some(1.0), 0.2, 30.0), (None, 0.02, 30.0), (Some(1.0), 0.2, 50.0), (None, 0.02, 50.0)]
        {
            let b = Bracket { step: grid, ..within(lo, 64.0, tolerance, 40) };
            let plain = peak(&b, step(41.5)).unwrap();
            let found = peak(&b, told(41.5)).unwrap();
            let bracketing = if lo < 41.5 { 2 } else { 1 };
            assert_eq!((found.end, found.evaluations.len()), (SearchEnd::Converged, bracketing + 2), "{found:?}");
            assert!(plain.evaluations.len() > 5, "{plain:?}");
            for wrong in [f64::NAN, -3.0, 0.0, 0.4, 1.0, 33.0, 41.0, 44.9, 60.0, 1e3] {
                let found = peak(&b, told(wrong)).unwrap();
                let rate = found.rate.unwrap();
                assert_eq!(found.end, SearchEnd::Converged);
                assert!(
                    rate <= 41.5 && rate * (1.0 + tolerance) >= 41.5 && grid.is_none_or(|_| rate == 41.0),
                    "{found:?}"
                );
                assert!(found.evaluations.len() <= 2 * plain.evaluations.len(), "{wrong}: {found:?}");
            }
        }
    }

    #[test]
    fn a_grid_whose_first_rate_fails_has_no_peak() {
        let found = peak(&Bracket { step: Some(5.0), ..within(20.0, 40.0, 0.1, 40) }, step(4.0)).unwrap();
        assert_eq!((found.rate, found.failed, found.end), (None, Some(5.0), SearchEnd::AllFailed));
    }

    #[test]
    fn no_rate_beyond_the_line_s_is_tried() {
        for grid in [None, Some(1.0)] {
            let b = Bracket { step: grid, most: Some(50.5), ..within(10.0, 80.0, 0.01, 40) };
            let all = peak(&b, step(f64::INFINITY)).unwrap();
            assert_eq!((all.rate, all.end), (Some(if grid.is_some() { 50.0 } else { 50.5 }), SearchEnd::AllPassed));
            let some = peak(&b, step(33.3)).unwrap();
            assert_eq!(some.end, SearchEnd::Converged);
            assert!(some.evaluations.iter().all(|e| e.rate <= 50.5), "{some:?}");
        }
    }

    #[test]
    fn the_knee_of_a_hockey_stick_is_its_bend() {
        let bend: Vec<_> = (0..=10).map(|i| (f64::from(i), f64::from((i - 7).max(0)))).collect();
        assert_eq!(knee(&bend), Some(7));
    }

    #[test]
    fn the_knee_of_an_open_queue_is_where_its_slope_meets_the_chord() {
        // y = 1/(1-x) over 0..0.99 has slope (y1-y0)/(x1-x0) = 100 at x = 0.9.
        let mm1: Vec<_> = (0..=99).map(|i| f64::from(i) / 100.0).map(|x| (x, 1.0 / (1.0 - x))).collect();
        assert_eq!(knee(&mm1), Some(90));
    }

    #[test]
    fn straight_and_flat_curves_have_no_knee() {
        assert_eq!(knee(&[(0.0, 0.0), (1.0, 1.0), (2.0, 2.0)]), None);
        assert_eq!(knee(&[(0.0, 5.0), (1.0, 5.0), (2.0, 5.0)]), None);
        assert_eq!(knee(&[(0.0, 5.0), (1.0, 7.0)]), None);
    }
}
