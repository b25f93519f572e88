//! Threads, one on each CPU, that do something at the same time, again and again.

use crate::measured::Statistic;
use crate::sys;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

/// What a thread does in one repetition: it works until the time given, and returns how much it has done.
pub(crate) type Work<'a> = Box<dyn FnMut(Instant) -> f64 + Send + 'a>;

/// Length and number of repetitions.
#[derive(Clone, Copy)]
pub(crate) struct Effort {
    /// Length of a repetition.
    pub(crate) window: Duration,
    /// Number of undisturbed repetitions that are wanted.
    pub(crate) repetitions: usize,
    /// Time after which a point ends with the repetitions that it has.
    pub(crate) most: Duration,
}

/// Repetitions after which a point ends in any case.
pub(crate) const MOST_TURNS: usize = 1000;

/// One repetition of one thread.
#[derive(Clone, Copy)]
struct Turn {
    rate: f64,
    disturbed: bool,
}

/// Rates of threads, in units per ns: a list of repetitions, each with the rate of every thread and whether any of them
/// was disturbed.
pub(crate) struct Rates(Vec<(Vec<f64>, bool)>);

impl Rates {
    /// Numbers of disturbed repetitions, and of all.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.0.iter().filter(|(_, disturbed)| *disturbed).count() as u64, self.0.len() as u64)
    }

    /// The statistic of a figure that follows from the rates of all threads.
    pub(crate) fn figure(&self, f: impl Fn(&[f64]) -> f64) -> Statistic {
        let all: Vec<(f64, bool)> = self.0.iter().map(|(rates, disturbed)| (f(rates), *disturbed)).collect();
        Statistic::of(&all)
    }
}

/// Runs `work[i]` on `cpus[i]`, all beginning together in each repetition. Returns the rates, and whether the threads had
/// priority.
///
/// # Errors
/// Returns one sentence for a CPU to which no thread can move.
pub(crate) fn run(cpus: &[u32], work: &mut [Work<'_>], effort: Effort) -> Result<(Rates, bool), String> {
    let team = work.len();
    let barrier = Barrier::new(team);
    let epoch = Instant::now();
    let (begin, go_on, priority) = (AtomicU64::new(0), AtomicBool::new(true), AtomicBool::new(true));
    let failed = Mutex::new(None);
    let turns: Mutex<Vec<Vec<Turn>>> = Mutex::new(vec![Vec::new(); team]);
    let body = |me: usize, work: &mut Work<'_>| {
        match sys::pin(cpus[me]) {
            Ok(had) => _ = priority.fetch_and(had, Ordering::Relaxed),
            Err(e) => *lock(&failed) = Some(format!("no thread can be moved to CPU {} ({e}).", cpus[me])),
        }
        // The first turn, which may have to fill caches, does not count.
        let (mut turn, mut clean, mut some, mut first) = (0, 0, false, Instant::now());
        loop {
            if barrier.wait().is_leader() {
                // Soon enough, and late enough for all threads to have left the barrier.
                let soon = epoch.elapsed() + Duration::from_micros(if team == 1 { 0 } else { 60 });
                begin.store(soon.as_nanos() as u64, Ordering::Relaxed);
            }
            barrier.wait();
            if !go_on.load(Ordering::Relaxed) {
                return;
            }
            let before = sys::preemptions();
            let at = epoch + Duration::from_nanos(begin.load(Ordering::Relaxed));
            while Instant::now() < at {
                std::hint::spin_loop();
            }
            let start = Instant::now();
            let done = work(at + effort.window);
            let took = start.elapsed().as_nanos().max(1) as f64;
            let late = start - at > effort.window / 4;
            let disturbed = late || done == 0.0 || sys::preemptions() != before;
            if turn > 0 {
                lock(&turns)[me].push(Turn { rate: done / took, disturbed });
            } else {
                first = Instant::now();
            }
            turn += 1;
            barrier.wait();
            if me == 0 {
                let all = lock(&turns);
                let of_all = |f: &dyn Fn(&Turn) -> bool| all.iter().all(|t| t.last().is_some_and(f));
                clean += usize::from(of_all(&|t| !t.disturbed));
                some = some || of_all(&|t| t.rate > 0.0);
                let enough =
                    clean >= effort.repetitions || (some && first.elapsed() > effort.most) || turn > MOST_TURNS;
                go_on.store(!enough && lock(&failed).is_none(), Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for (me, work) in work.iter_mut().enumerate() {
            let body = &body;
            scope.spawn(move || body(me, work));
        }
    });
    if let Some(why) = lock(&failed).take() {
        return Err(why);
    }
    let turns = std::mem::take(&mut *lock(&turns));
    let rates: Vec<(Vec<f64>, bool)> = (0..turns[0].len())
        .map(|r| (turns.iter().map(|t| t[r].rate).collect(), turns.iter().any(|t| t[r].disturbed)))
        .filter(|(rates, _): &(Vec<f64>, bool)| rates.iter().all(|r| *r > 0.0))
        .collect();
    if rates.is_empty() {
        return Err("the machine is too busy: no measuring thread got a CPU in 1000 attempts.".into());
    }
    Ok((Rates(rates), priority.load(Ordering::Relaxed)))
}

fn lock<T>(m: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    m.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_work_by_time() {
        let work: Work<'_> = Box::new(|until| {
            let start = Instant::now();
            while Instant::now() < until {
                std::hint::spin_loop();
            }
            5.0 * start.elapsed().as_nanos() as f64
        });
        let effort = Effort { window: Duration::from_millis(1), repetitions: 5, most: Duration::from_secs(2) };
        let (rates, _) = run(&sys::allowed()[..1], &mut [work], effort).unwrap();
        let s = rates.figure(|r| r[0]);
        assert!((s.median - 5.0).abs() < 0.05, "{s:?}");
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_named() {
        let effort = Effort { window: Duration::from_millis(1), repetitions: 1, most: Duration::from_secs(2) };
        let e = run(&[1023], &mut [Box::new(|_| 1.0)], effort).err().unwrap();
        assert!(e.contains("CPU 1023"), "{e}");
    }
}
