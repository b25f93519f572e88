//! Mixtures: chases beside streams, and beside each other. No value of a platform follows from them, so that a platform's
//! figures of them are predictions.

use crate::chain::{link, starts};
use crate::experiments::{chase_from, Lab, BY};
use crate::measured::{BandwidthOrder, Mixture, MixtureFigures, Mixtures, Statistic, MIXTURES};
use crate::sys::{self, PAST_CACHES};
use crate::team::{run as together, Effort, MOST_TURNS};
use crate::{machine, Options};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// Measures every mixture of [`plan`].
pub(crate) fn run(options: &Options, progress: &mut dyn FnMut(&str, f64) -> bool) -> Result<Mixtures, String> {
    let mut lab = Lab::new(options, progress)?;
    let chased = lab.buffer(lab.beyond_llc(), false)?;
    link(chased.words(), true);
    let arena = lab.buffer(lab.arena_bytes(), false)?;
    let (plan, mut found) = (plan(lab.cpus.len(), options.quick), Vec::new());
    for (i, of) in plan.iter().enumerate() {
        lab.tell("mixtures", i as f64 / plan.len() as f64)?;
        let chasers = of.chasers as usize;
        let at: Vec<usize> = starts(chased.words(), u64::from(of.chasers * of.chases)).collect();
        let mut work: Vec<_> =
            at.chunks(of.chases as usize).map(|a| chase_from(chased.words(), a.to_vec(), false)).collect();
        work.extend(lab.streams(&arena, of.threads as usize, of.order, of.stores, 0));
        let rates = lab.measure(work, Duration::from_millis(2))?;
        found.push(MixtureFigures {
            of: *of,
            ns: rates.figure(|r| load_ns(r, chasers)),
            gbs: (of.threads > 0).then(|| rates.figure(|r| traffic(r, chasers))),
        });
    }
    lab.tell("mixtures", 1.0)?;
    Ok(Mixtures {
        format: MIXTURES.into(),
        by: BY.into(),
        quick: options.quick,
        seconds: lab.began.elapsed().as_secs_f64(),
        noise: lab.noise(),
        machine: lab.machine,
        cpus: lab.cpus,
        mixtures: found,
    })
}

/// Time of a load of one of the chasing threads, which come first and whose rates are in loads per ns.
fn load_ns(rates: &[f64], chasers: usize) -> f64 {
    chasers as f64 / rates[..chasers].iter().sum::<f64>()
}

/// Memory traffic of chases, by loads of 64 B, and of streams, by bytes per ns.
fn traffic(rates: &[f64], chasers: usize) -> f64 {
    let (chases, streams) = rates.split_at(chasers);
    chases.iter().sum::<f64>() * 64.0 + streams.iter().sum::<f64>()
}

/// Streams on a CPU for a time, and returns the memory traffic in 10^9 B/s.
pub(crate) fn stream_for(cpu: u32, order: BandwidthOrder, stores: f64, time: Duration) -> Result<Statistic, String> {
    let mut goes_on = |_: &str, _: f64| true;
    let mut lab = Lab::new(&Options { quick: false }, &mut goes_on)?;
    lab.cpus = vec![cpu];
    let arena = lab.buffer(lab.arena_bytes(), false)?;
    // As many repetitions as a point has at most.
    let effort = Effort { window: time / MOST_TURNS as u32, repetitions: MOST_TURNS, most: time };
    let (rates, _) = together(&lab.cpus, &mut lab.streams(&arena, 1, order, stores, 0), effort)?;
    Ok(rates.figure(|r| r[0]))
}

/// Mixtures that would be measured on the CPUs that this process may use.
pub(crate) fn planned(options: &Options) -> Vec<Mixture> {
    plan(machine::read(Path::new("/")).first_threads(&sys::allowed()).len(), options.quick)
}

/// Mixtures for so many CPUs. A single chase beside sequential loads or stores is none, because the loaded latency of a
/// calibration has it.
fn plan(cpus: usize, quick: bool) -> Vec<Mixture> {
    use BandwidthOrder::{NonTemporal, Random, Sequential};
    let most = cpus.saturating_sub(1) as u32;
    let teams: BTreeSet<u32> = [1, most / 2, most].into_iter().filter(|n| (1..=most).contains(n)).collect();
    let mut streams = vec![(Sequential, 0.0), (Sequential, 0.5), (Sequential, 1.0), (Random, 0.0), (Random, 1.0)];
    if PAST_CACHES {
        streams.push((NonTemporal, 1.0));
    }
    let chases: &[u32] = if quick { &[1, 8] } else { &[1, 2, 4, 8, 16] };
    let mut found = Vec::new();
    for threads in teams {
        for &(order, stores) in &streams {
            let calibrated = order == Sequential && stores != 0.5;
            let chases = chases.iter().filter(|n| !(calibrated && **n == 1));
            found.extend(chases.map(|&chases| Mixture { chasers: 1, chases, threads, order, stores }));
        }
    }
    let chasers: BTreeSet<u32> = [2, most + 1].into_iter().filter(|n| (2..=most + 1).contains(n)).collect();
    for chasers in chasers {
        found.extend(chases.iter().map(|&chases| Mixture {
            chasers,
            chases,
            threads: 0,
            order: Sequential,
            stores: 0.0,
        }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_mixtures_for_its_cpus_and_none_that_a_calibration_measures() {
        for cpus in [1, 2, 3, 8] {
            let plan = plan(cpus, false);
            assert_eq!(plan.is_empty(), cpus == 1);
            for (i, m) in plan.iter().enumerate() {
                assert!(m.chasers >= 1 && (m.chasers + m.threads) as usize <= cpus, "{m:?}");
                assert!(m.threads > 0 || m.chasers > 1, "chases of one thread are the experiment `parallelism`: {m:?}");
                let loaded = m.order == BandwidthOrder::Sequential && (m.stores == 0.0 || m.stores == 1.0);
                assert!(m.threads == 0 || m.chases > 1 || !loaded, "that is the experiment `loaded`: {m:?}");
                assert!(crate::kernels::CHASES.contains(&m.chases) && !plan[..i].contains(m), "{m:?}");
            }
        }
        let beside = |n| plan(8, false).iter().filter(|m| m.threads == n).count();
        assert_eq!([1, 3, 7].map(beside), [if PAST_CACHES { 28 } else { 23 }; 3]);
        assert!(plan(2, true).len() < plan(2, false).len());
    }

    #[test]
    fn figures_follow_from_the_rates_of_all_threads() {
        // Two threads load every 10 ns and every 40 ns, 16 ns in the mean of their loads; two others stream 5 and 7 GB/s.
        let rates = [0.1, 0.025, 5.0, 7.0];
        assert!((load_ns(&rates, 2) - 16.0).abs() < 1e-9);
        assert!((traffic(&rates, 2) - (0.125 * 64.0 + 12.0)).abs() < 1e-9);
    }

    #[test]
    fn every_planned_mixture_is_measured() {
        let found = run(&Options { quick: true }, &mut |_, _| true).unwrap();
        assert_eq!(found.mixtures.iter().map(|m| m.of).collect::<Vec<_>>(), planned(&Options { quick: true }));
        for m in &found.mixtures {
            // Eight chases through memory overlap eight times at most.
            assert!(m.ns.median > 1.0 && m.ns.median < 1e5, "{m:?}");
            assert_eq!(m.gbs.is_some(), m.of.threads > 0);
            // The chases' loads of 64 B are part of the traffic, which is another repetition's median.
            assert!(m.gbs.is_none_or(|g| g.median > 64.0 / m.ns.median * 0.5), "{m:?}");
        }
    }

    #[test]
    fn progress_ends_the_measurements() {
        let e = run(&Options { quick: true }, &mut |_, _| false).err().unwrap();
        assert_eq!(e, "the measurements were ended.");
    }
}
