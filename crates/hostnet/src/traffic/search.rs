//! Searches over the offered rate: the highest rate that still meets a condition, MSB, knee.
//! They know nothing of the simulator; the caller runs a point and says how it went.

/// One run of a search.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Evaluation<M> {
    /// Offered rate, in the caller's unit.
    pub rate: f64,
    /// Whether the condition held.
    pub ok: bool,
    /// What the caller measured.
    pub measured: M,
}

/// Why `peak` stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The peak is bracketed as closely as asked.
    Converged,
    /// `max_evals` ran out; the bracket is wider than asked.
    OutOfRuns,
    /// Every rate tried failed, down to the lowest.
    AllFailed,
    /// Every rate tried passed, up to the highest.
    AllPassed,
}

/// What `peak` found.
#[derive(Clone, PartialEq, Debug)]
pub struct Peak<M> {
    /// Highest rate that passed below the lowest that failed.
    pub rate: Option<f64>,
    /// Lowest rate that failed.
    pub failed: Option<f64>,
    pub end: End,
    /// All runs, in the order they were made.
    pub evaluations: Vec<Evaluation<M>>,
}

/// The highest rate at which `run` passes, to within `rel_tol` of the failing rate next to it.
///
/// `lo` and `hi` are where the search expects passing and failing: if `lo` fails, or `hi` passes,
/// it moves on by twice the width of the bracket until both ends are known, then bisects geometrically.
/// Where passing is not monotone (noise near the edge) the answer still lies between a rate
/// that passed and one that failed, and no failing run lies below it. Deterministic if `run` is.
///
/// # Errors
/// The first error of `run`, which ends the search.
///
/// # Panics
/// Unless 0 < lo < hi, both finite, and `rel_tol` is positive; specs reject that before.
pub fn peak<M, E>(
    lo: f64,
    hi: f64,
    rel_tol: f64,
    max_evals: usize,
    mut run: impl FnMut(f64) -> Result<(bool, M), E>,
) -> Result<Peak<M>, E> {
    assert!(0.0 < lo && lo < hi && hi.is_finite() && rel_tol > 0.0, "peak({lo}, {hi}, {rel_tol})");
    let mut evaluations = Vec::with_capacity(max_evals);
    let (mut passed, mut failed): (Option<f64>, Option<f64>) = (None, None);
    let mut end = End::OutOfRuns;
    while evaluations.len() < max_evals {
        let rate = match (passed, failed) {
            (None, None) => lo,
            (None, Some(f)) => f * (lo / hi).powi(2),
            (Some(p), None) if p < hi => hi,
            (Some(p), None) => p * (hi / lo).powi(2),
            (Some(p), Some(f)) if f - p <= rel_tol * f => {
                end = End::Converged;
                break;
            }
            (Some(p), Some(f)) => (p * f).sqrt(),
        };
        if !rate.is_normal() {
            break;
        }
        let (ok, measured) = run(rate)?;
        evaluations.push(Evaluation { rate, ok, measured });
        *if ok { &mut passed } else { &mut failed } = Some(rate);
    }
    match (passed, failed) {
        (Some(p), Some(f)) if f - p <= rel_tol * f => end = End::Converged,
        (None, Some(_)) => end = End::AllFailed,
        (Some(_), None) => end = End::AllPassed,
        _ => {}
    }
    Ok(Peak { rate: passed, failed, end, evaluations })
}

/// MSB, maximum sustainable bandwidth: the last rate of `grid` before the first whose drop
/// rate exceeds `max_drops` (0.01 in gem5net), going upwards. `None` when the first already does,
/// or the grid is empty; when none does, it is the last of the grid.
///
/// # Errors
/// The first error of `run`, which yields the drop rate as a fraction and what else was measured.
pub fn msb<M, E>(
    grid: impl IntoIterator<Item = f64>,
    max_drops: f64,
    mut run: impl FnMut(f64) -> Result<(f64, M), E>,
) -> Result<(Option<f64>, Vec<Evaluation<M>>), E> {
    let mut evaluations = Vec::new();
    let mut last = None;
    for rate in grid {
        let (drops, measured) = run(rate)?;
        let ok = drops <= max_drops;
        evaluations.push(Evaluation { rate, ok, measured });
        if !ok {
            break;
        }
        last = Some(rate);
    }
    Ok((last, evaluations))
}

/// The knee of a curve with x rising and y growing ever faster (latency over load): the
/// point furthest below the straight line through its ends, both axes scaled to 0..1 (Kneedle,
/// Satopää et al., ICDCSW 2011). `None` below three points, or where no point lies below the line.
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

    fn step(edge: f64) -> impl FnMut(f64) -> Result<(bool, ()), Infallible> {
        move |rate| Ok((rate <= edge, ()))
    }

    fn find(lo: f64, hi: f64, tol: f64, runs: usize, edge: f64) -> Peak<()> {
        peak(lo, hi, tol, runs, step(edge)).unwrap()
    }

    #[test]
    fn a_step_inside_the_bracket_is_found_to_the_tolerance() {
        let found = find(1.0, 64.0, 0.01, 30, 26.0);
        let (rate, failed) = (found.rate.unwrap(), found.failed.unwrap());
        assert_eq!(found.end, End::Converged);
        assert!(rate <= 26.0 && 26.0 < failed && failed - rate <= 0.01 * failed, "{found:?}");
        // ln 64 / 2^k <= 0.01 from k = 9 on, and both ends.
        assert!(found.evaluations.len() <= 11, "{}", found.evaluations.len());
    }

    #[test]
    fn a_step_outside_the_bracket_is_bracketed_first() {
        for edge in [0.03, 700.0] {
            let found = find(1.0, 64.0, 0.02, 40, edge);
            let rate = found.rate.unwrap();
            assert_eq!(found.end, End::Converged);
            assert!(rate <= edge && edge <= rate * 1.0205, "{edge}: {rate}");
        }
    }

    #[test]
    fn running_out_of_runs_leaves_an_honest_bracket() {
        let found = find(1.0, 64.0, 0.001, 4, 26.0);
        assert_eq!((found.end, found.evaluations.len()), (End::OutOfRuns, 4));
        assert!(found.rate.unwrap() <= 26.0 && found.failed.unwrap() > 26.0);
    }

    #[test]
    fn nothing_passes_or_nothing_fails() {
        let none = find(1.0, 2.0, 0.1, 5, 0.0);
        assert_eq!((none.rate, none.end), (None, End::AllFailed));
        // 1, 2, and from there steps of (2 / 1) squared
        let all = find(1.0, 2.0, 0.1, 5, f64::INFINITY);
        assert_eq!((all.rate, all.end), (Some(128.0), End::AllPassed));
        assert_eq!(find(1.0, 2.0, 0.1, 0, 1.5).end, End::OutOfRuns);
    }

    #[test]
    fn an_error_ends_the_search_at_once() {
        let mut runs = 0;
        let result = peak(1.0, 64.0, 0.01, 30, |rate| {
            runs += 1;
            if rate > 10.0 {
                Err("interrupted")
            } else {
                Ok((true, ()))
            }
        });
        assert_eq!((result.unwrap_err(), runs), ("interrupted", 2));
    }

    proptest! {
        /// Within 5 % of the edge the outcome is arbitrary: the answer may move by that much, and
        /// it contradicts none of the runs.
        #[test]
        fn noise_near_the_edge_moves_the_answer_no_further_than_the_noise(
            edge in 0.01f64..1000.0, coins in any::<u64>(), tol in 0.001f64..0.1,
        ) {
            let noisy = |rate: f64| -> Result<(bool, ()), Infallible> {
                let clear = (rate / edge - 1.0).abs() > 0.05;
                let coin = coins.rotate_left((rate.to_bits() % 61) as u32) & 1 == 1;
                Ok((if clear { rate < edge } else { coin }, ()))
            };
            let found = peak(1.0, 64.0, tol, 60, noisy).unwrap();
            let rate = found.rate.unwrap();
            prop_assert_eq!(found.end, End::Converged);
            prop_assert!(rate <= edge * 1.05 && rate >= edge * 0.95 * (1.0 - tol));
            prop_assert!(found.evaluations.iter().all(|e| e.ok == (e.rate <= rate)));
            prop_assert_eq!(peak(1.0, 64.0, tol, 60, noisy).unwrap(), found);
        }
    }

    #[test]
    fn msb_is_the_last_rate_before_drops_exceed_one_percent() {
        let drops = |rate: f64| Ok::<_, Infallible>(((rate - 41.5).max(0.0) / rate, ()));
        let gbps = (1..=100).map(f64::from);
        let (found, runs) = msb(gbps.clone(), 0.01, drops).unwrap();
        // (42 - 41.5) / 42 = 1.2 %.
        assert_eq!((found, runs.len()), (Some(41.0), 42));
        assert_eq!(msb(gbps.clone(), 0.0, |r| Ok::<_, Infallible>((r, ()))).unwrap().0, None);
        assert_eq!(msb(gbps, 1.0, drops).unwrap().0, Some(100.0));
        assert_eq!(msb([], 0.01, drops).unwrap().0, None);
    }

    #[test]
    fn a_recovery_above_the_first_drops_does_not_count() {
        let drops = |rate: f64| Ok::<_, Infallible>((if rate == 3.0 { 0.02 } else { 0.01 }, ()));
        assert_eq!(msb([1.0, 2.0, 3.0, 4.0], 0.01, drops).unwrap().0, Some(2.0));
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
