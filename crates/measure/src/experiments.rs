//! The experiments that a calibration follows from, in the order in which they are measured.

use crate::chain::{link, link_every, starts};
use crate::kernels::{follow_many, hash_many, multiply, Stream, CHASES, MULTIPLY_CYCLES};
use crate::measured::{
    Bandwidth, BandwidthOrder, Latency, LineState, Loaded, Measured, Noise, Parallelism, Statistic, Transfer, FORMAT,
};
use crate::sys::{self, Buffer, PAST_CACHES, WORDS};
use crate::team::{run as together, Effort, Rates, Work};
use crate::{machine, Machine, Options};
use std::hint::{black_box, spin_loop};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// Time of a loop between two looks at the clock, which costs about 0.03 us.
const BLOCK: Duration = Duration::from_micros(10);
/// Smallest buffer of a stream.
const STREAM_BYTES: u64 = 32 * MIB;
/// Largest buffer of all streams together, and of the chase.
const MOST_BYTES: u64 = 4096 * MIB;
/// Buffer of all streams together, and of the chase, in sizes of the LLC: one access in 16 at most hits the LLC.
const LLC_SIZES: u64 = 16;
/// Smallest such buffer in sizes of the LLC where 16 sizes are more than `ENOUGH_BYTES`, which take long to fill.
const LEAST_LLC_SIZES: u64 = 4;
const ENOUGH_BYTES: u64 = 1024 * MIB;
/// Lines that are passed from core to core: they and their pages fit an L1 and its TLB.
const PASSED_LINES: usize = 64;
/// Words from one such line to the next: a page and a line, so that no prefetcher fetches a neighbour, and the lines lie in sets
/// of their own.
const PASSED_SPACING: usize = 4096 / 8 + WORDS;

/// Looks at the two CPUs, of which one must find them near each other.
const LOOKS: usize = 50;
/// Times that an experiment of several CPUs is measured at most, where a hypervisor keeps moving them.
const MOVES: usize = 8;
/// Pause before another look, or before an experiment is measured again.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);
/// Hits of the LLC that a load of a modified line of another core takes at most where both cores share the LLC. Such loads take 1.5
/// times a hit on a Xeon and a Zen 5 and 2.2 on a Zen 4; 8 and 10 times on these EPYCs where the cores share no LLC (measured).
const NEAR_HITS: f64 = 4.0;

/// Where the first two CPUs are near each other.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Home {
    /// Nobody has looked yet.
    Unknown,
    /// The CPUs were never seen near each other.
    Nowhere,
    /// A load of a line that the other CPU has modified takes between so many ns where they are near.
    Within(f64, f64),
}

impl Home {
    /// Whether none of these times says that the CPUs were elsewhere.
    fn has(self, mut looks: impl Iterator<Item = f64>) -> bool {
        match self {
            Home::Within(least, most) => looks.all(|ns| (least..=most).contains(&ns)),
            Home::Unknown | Home::Nowhere => true,
        }
    }
}

/// Name and version of this program.
pub(crate) const BY: &str = concat!("hostnet-measure ", env!("CARGO_PKG_VERSION"));

/// Measures everything.
pub(crate) fn run(options: &Options, progress: &mut dyn FnMut(&str, f64) -> bool) -> Result<Measured, String> {
    let mut lab = Lab::new(options, progress)?;
    let clock_ghz = lab.clock()?;
    let hashes_per_ns = lab.hashes()?;
    let chase = lab.buffer(lab.beyond_llc(), false)?;
    let latency = lab.latency(&chase)?;
    let sequential = lab.sequential(&chase)?;
    link(chase.words(), true);
    let parallelism = lab.parallelism(&chase)?;
    let arena = lab.buffer(lab.arena_bytes(), false)?;
    let loaded = lab.loaded(&chase, &arena)?;
    drop(chase);
    let bandwidth = lab.bandwidth(&arena)?;
    let transfer = lab.transfer()?;
    lab.tell("core to core", 1.0)?;
    Ok(Measured {
        format: FORMAT,
        by: BY.into(),
        quick: options.quick,
        seconds: lab.began.elapsed().as_secs_f64(),
        noise: lab.noise(),
        machine: lab.machine,
        cpus: lab.cpus,
        clock_ghz,
        hashes_per_ns,
        latency,
        sequential,
        parallelism,
        bandwidth,
        loaded,
        transfer,
    })
}

/// Size of a buffer of which an LLC of `llc` bytes holds few: a power of two.
fn beyond(llc: u64) -> u64 {
    (LLC_SIZES * llc).min(ENOUGH_BYTES.max(LEAST_LLC_SIZES * llc)).max(256 * MIB).next_power_of_two()
}

/// Equal parts of the arena for so many streams.
fn parts(arena: &Buffer, streams: usize) -> Vec<&[AtomicU64]> {
    let part = arena.words().len() / streams.max(1) / WORDS * WORDS;
    arena.words().chunks_exact(part).take(streams).collect()
}

/// CPU time of all CPUs since the start, and the part of it that the hypervisor gave to others, in ticks.
fn jiffies() -> (f64, f64) {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let first = text.lines().next().unwrap_or_default();
    let ticks: Vec<f64> = first.split_whitespace().skip(1).take(8).filter_map(|v| v.parse().ok()).collect();
    (ticks.iter().sum(), ticks.get(7).copied().unwrap_or(0.0))
}

fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|v| v.parse().ok()).unwrap_or(0.0)
}

/// The machine while it is measured.
pub(crate) struct Lab<'a> {
    quick: bool,
    pub(crate) began: Instant,
    pub(crate) cpus: Vec<u32>,
    pub(crate) machine: Machine,
    progress: &'a mut dyn FnMut(&str, f64) -> bool,
    /// Ticks of all CPUs, and of those that the hypervisor took, when it began.
    before: (f64, f64),
    disturbed: u64,
    turns: u64,
    priority: bool,
    home: Home,
    /// Least and greatest time of a load of a line of the other CPU, before and after experiments of several CPUs.
    transfer_ns: Option<(f64, f64)>,
}

impl<'a> Lab<'a> {
    pub(crate) fn new(options: &Options, progress: &'a mut dyn FnMut(&str, f64) -> bool) -> Result<Lab<'a>, String> {
        let machine = machine::read(Path::new("/"));
        let cpus = machine.first_threads(&sys::allowed());
        if cpus.is_empty() {
            return Err("no CPU of this machine may be used; look at `taskset -p $$`.".into());
        }
        Ok(Lab {
            quick: options.quick,
            began: Instant::now(),
            cpus,
            machine,
            progress,
            before: jiffies(),
            disturbed: 0,
            turns: 0,
            priority: true,
            home: Home::Unknown,
            transfer_ns: None,
        })
    }

    /// How quiet the machine has been since the beginning.
    pub(crate) fn noise(&self) -> Noise {
        let (busy, stolen) = jiffies();
        let spent = (busy - self.before.0).max(1.0);
        Noise {
            steal: (stolen - self.before.1) / spent,
            load: load(),
            disturbed: self.disturbed as f64 / self.turns.max(1) as f64,
            priority: self.priority,
            transfer_ns: self.transfer_ns,
        }
    }

    /// Time in ns of a load of a line that the second CPU has modified: how near the first two are now, because a hypervisor moves
    /// those of its guests. None with one CPU.
    fn look(&self) -> Result<Option<f64>, String> {
        const ROUNDS: u64 = 15;
        let [one, other, ..] = self.cpus[..] else { return Ok(None) };
        let buffer = self.buffer(MIB, false)?;
        let words = &buffer.words()[..PASSED_LINES * PASSED_SPACING];
        Ok(Some(Statistic::of(&passed(words, (one, other), LineState::Modified, ROUNDS)?).median))
    }

    /// Finds where the two CPUs share the LLC and are not threads of one core: a load of a modified line then takes a hit of the LLC at
    /// least.
    fn find_home(&self) -> Result<Home, String> {
        let mut sizes: Vec<u64> = self.machine.caches.iter().map(|c| c.bytes).collect();
        sizes.sort_unstable();
        let [.., l2, llc] = sizes[..] else { return Ok(Home::Nowhere) };
        let buffer = self.buffer((3 * l2).min(llc / 2 + l2), false)?;
        link(buffer.words(), true);
        let mut work = [chase(buffer.words(), 1, true)];
        let (rates, _) = together(&self.cpus, &mut work, self.effort(Duration::from_micros(300)))?;
        let hit = rates.figure(|r| 1.0 / r[0]).median;
        let near = Home::Within(hit, NEAR_HITS * hit);
        for _ in 0..LOOKS {
            if near.has(self.look()?.into_iter()) {
                return Ok(near);
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
        Ok(Home::Nowhere)
    }

    fn effort(&self, window: Duration) -> Effort {
        let (repetitions, most) = if self.quick { (7, 120) } else { (31, 1500) };
        Effort { window, repetitions, most: Duration::from_millis(most) }
    }

    pub(crate) fn tell(&mut self, what: &str, share: f64) -> Result<(), String> {
        if (self.progress)(what, share) {
            Ok(())
        } else {
            Err("the measurements were ended.".into())
        }
    }

    /// Measures; several CPUs again, a few times, where they have not been near each other before and after it.
    pub(crate) fn measure(&mut self, mut work: Vec<Work<'_>>, window: Duration) -> Result<Rates, String> {
        let several = work.len() > 1;
        if several && self.home == Home::Unknown {
            self.home = self.find_home()?;
        }
        let mut left = MOVES;
        loop {
            left -= 1;
            let before = if several { self.look()? } else { None };
            let (rates, priority) = together(&self.cpus, &mut work, self.effort(window))?;
            let after = if several { self.look()? } else { None };
            let looks = [before, after].into_iter().flatten();
            if left > 0 && !self.home.has(looks.clone()) {
                std::thread::sleep(BETWEEN_LOOKS);
                continue;
            }
            for ns in looks {
                let (least, most) = self.transfer_ns.unwrap_or((ns, ns));
                self.transfer_ns = Some((least.min(ns), most.max(ns)));
            }
            self.priority &= priority;
            let (disturbed, turns) = rates.counts();
            (self.disturbed, self.turns) = (self.disturbed + disturbed, self.turns + turns);
            return Ok(rates);
        }
    }

    pub(crate) fn buffer(&self, bytes: u64, small: bool) -> Result<Buffer, String> {
        Buffer::new(bytes as usize, small).map_err(|e| format!("no buffer of {} MiB can be had ({e}).", bytes / MIB))
    }

    fn llc(&self) -> u64 {
        self.machine.caches.iter().map(|c| c.bytes).max().unwrap_or(32 * MIB)
    }

    /// Bytes of which the LLC holds few, within a part of the memory that is free.
    pub(crate) fn beyond_llc(&self) -> u64 {
        let most = if self.quick { ENOUGH_BYTES } else { MOST_BYTES };
        beyond(self.llc()).min(most).min(self.room())
    }

    /// Size of the buffer of all streams together, of which each stream has an equal part.
    pub(crate) fn arena_bytes(&self) -> u64 {
        self.beyond_llc().max(self.cpus.len() as u64 * STREAM_BYTES)
    }

    /// A power of two of at most a quarter of the memory that is available.
    fn room(&self) -> u64 {
        let quarter = (self.machine.available_bytes / 4).max(8 * MIB);
        1 << (63 - quarter.leading_zeros())
    }

    fn clock(&mut self) -> Result<Option<Statistic>, String> {
        let Some(cycles) = MULTIPLY_CYCLES else { return Ok(None) };
        self.tell("clock", 0.0)?;
        let work: Work<'_> = Box::new(|until| {
            let (mut done, mut x) = (0.0, black_box(3));
            while Instant::now() < until {
                x = multiply(x, 20_000);
                done += 20_000.0;
            }
            black_box(x);
            done
        });
        let rates = self.measure(vec![work], Duration::from_millis(1))?;
        Ok(Some(rates.figure(|r| r[0] * f64::from(cycles))))
    }

    /// Rate of the hashes that a stream computes in its pauses.
    fn hashes(&mut self) -> Result<Statistic, String> {
        self.tell("hashes", 0.0)?;
        Ok(self.measure(vec![hash()], Duration::from_millis(1))?.figure(|r| r[0]))
    }

    /// Rate of the hashes of `threads` threads beside a chase, or without one. A core that shares its units with a thread of
    /// another guest computes more or fewer from one moment to the next, which the guest cannot see.
    fn hashes_now(&mut self, chased: Option<&Buffer>, threads: usize) -> Result<Statistic, String> {
        let mut work: Vec<Work<'_>> = chased.iter().map(|c| chase(c.words(), 1, false)).collect();
        work.extend((0..threads).map(|_| hash()));
        let rates = self.measure(work, Duration::from_micros(300))?;
        Ok(rates.figure(|r| r[r.len() - threads..].iter().sum::<f64>() / threads as f64))
    }

    /// Sizes of buffers from 4 KiB on, two to each power of two.
    fn sizes(&self, most: u64) -> Vec<u64> {
        let powers = (2..).map(|i| KIB << i).take_while(|s| *s <= most);
        powers.flat_map(|s| if s == 4 * KIB { vec![s] } else { vec![s / 4 * 3, s] }).collect()
    }

    fn latency(&mut self, huge: &Buffer) -> Result<Vec<Latency>, String> {
        let most = (huge.words().len() * 8) as u64;
        let mut points: Vec<(u64, bool)> = self.sizes(most).into_iter().map(|s| (s, false)).collect();
        let small = if self.quick { 16 * MIB } else { 256 * MIB.min(most) };
        let small = self.buffer(small, true)?;
        points.extend(
            self.sizes((small.words().len() * 8) as u64).into_iter().filter(|s| s.is_power_of_two()).map(|s| (s, true)),
        );
        if self.quick {
            points.retain(|(s, _)| s.is_power_of_two());
        }
        let (n, mut found) = (points.len() as f64, Vec::new());
        for (i, (bytes, of_small)) in points.into_iter().enumerate() {
            self.tell("latency", i as f64 / n)?;
            let buffer = if of_small { &small } else { huge };
            let words = &buffer.words()[..bytes as usize / 8];
            link(words, true);
            let window = Duration::from_micros(if bytes < MIB { 300 } else { 1000 });
            let rates = self.measure(vec![chase(words, 1, bytes <= 8 * MIB)], window)?;
            found.push(Latency { bytes, pages: buffer.pages, ns: rates.figure(|r| 1.0 / r[0]) });
        }
        Ok(found)
    }

    fn sequential(&mut self, buffer: &Buffer) -> Result<Option<Latency>, String> {
        self.tell("prefetchers", 0.0)?;
        link(buffer.words(), false);
        let rates = self.measure(vec![chase(buffer.words(), 1, false)], Duration::from_millis(1))?;
        let bytes = (buffer.words().len() * 8) as u64;
        Ok(Some(Latency { bytes, pages: buffer.pages, ns: rates.figure(|r| 1.0 / r[0]) }))
    }

    fn parallelism(&mut self, buffer: &Buffer) -> Result<Vec<Parallelism>, String> {
        let mut found = Vec::new();
        for (i, chases) in CHASES.into_iter().enumerate() {
            self.tell("parallelism", i as f64 / CHASES.len() as f64)?;
            let rates = self.measure(vec![chase(buffer.words(), chases, false)], Duration::from_millis(1))?;
            found.push(Parallelism { chases, ns: rates.figure(|r| 1.0 / r[0]) });
        }
        Ok(found)
    }

    /// Numbers of threads: powers of two, and all of them.
    fn teams(&self, most: usize) -> Vec<usize> {
        let mut of: Vec<usize> = (0..).map(|i| 1 << i).take_while(|n| *n < most).collect();
        of.push(most);
        of
    }

    fn bandwidth(&mut self, arena: &Buffer) -> Result<Vec<Bandwidth>, String> {
        use BandwidthOrder::{NonTemporal, Random, Sequential};
        let mut kinds = vec![(Sequential, 0.0), (Sequential, 0.5), (Sequential, 1.0), (Random, 0.0), (Random, 1.0)];
        if PAST_CACHES {
            kinds.push((NonTemporal, 1.0));
        }
        let teams = self.teams(self.cpus.len());
        let (n, mut i, mut found) = ((teams.len() * kinds.len()) as f64, 0.0, Vec::new());
        for threads in teams {
            for (order, stores) in &kinds {
                self.tell("bandwidth", i / n)?;
                i += 1.0;
                let streams = self.streams(arena, threads, *order, *stores, 0);
                let rates = self.measure(streams, Duration::from_millis(2))?;
                let gbs = rates.figure(|r| r.iter().sum());
                let hashes_per_ns = self.hashes_now(None, threads)?;
                found.push(Bandwidth { threads: threads as u32, order: *order, stores: *stores, gbs, hashes_per_ns });
            }
        }
        Ok(found)
    }

    /// Streams over equal parts of the whole arena, so that a single stream finds no larger part of its buffer in the LLC than
    /// many streams do.
    pub(crate) fn streams<'b>(
        &self,
        arena: &'b Buffer,
        threads: usize,
        order: BandwidthOrder,
        stores: f64,
        pause: u32,
    ) -> Vec<Work<'b>> {
        parts(arena, threads).into_iter().map(|words| stream(Stream::new(words, order, stores, pause))).collect()
    }

    fn loaded(&mut self, chased: &Buffer, arena: &Buffer) -> Result<Vec<Loaded>, String> {
        const PAUSES: [u32; 9] = [0, 4, 8, 16, 32, 64, 128, 256, 1024];
        let most = self.cpus.len() - 1;
        if most == 0 {
            return Ok(Vec::new());
        }
        let teams = if most > 2 { vec![most / 2, most] } else { vec![most] };
        let mut points = Vec::new();
        for threads in teams {
            for stores in [0.0, 1.0] {
                for pause in PAUSES.into_iter().rev().step_by(if self.quick { 2 } else { 1 }) {
                    points.push((threads, stores, pause));
                }
            }
        }
        let (n, mut found) = (points.len() as f64, Vec::new());
        for (i, (threads, stores, pause)) in points.into_iter().enumerate() {
            self.tell("loaded latency", i as f64 / n)?;
            let mut work = vec![chase(chased.words(), 1, false)];
            work.extend(self.streams(arena, threads, BandwidthOrder::Sequential, stores, pause));
            let rates = self.measure(work, Duration::from_millis(2))?;
            found.push(Loaded {
                threads: threads as u32,
                stores,
                pause_hashes: pause,
                gbs: rates.figure(|r| r[0] * 64.0 + r[1..].iter().sum::<f64>()),
                ns: rates.figure(|r| 1.0 / r[0]),
                hashes_per_ns: self.hashes_now(Some(chased), threads)?,
            });
        }
        Ok(found)
    }

    /// Latency of loads of lines that the other CPU has just modified, or loaded from memory. The other CPU walks through
    /// the lines, then this one follows their chain.
    fn transfer(&mut self) -> Result<Vec<Transfer>, String> {
        let [one, other, ..] = self.cpus[..] else { return Ok(Vec::new()) };
        let rounds = if self.quick { 50 } else { 400 };
        let mut found = Vec::new();
        let states: &[LineState] =
            if PAST_CACHES { &[LineState::Modified, LineState::Clean] } else { &[LineState::Modified] };
        for (i, state) in states.iter().copied().enumerate() {
            self.tell("core to core", i as f64 / 2.0)?;
            let buffer = self.buffer(MIB, false)?;
            let ns =
                Statistic::of(&passed(&buffer.words()[..PASSED_LINES * PASSED_SPACING], (one, other), state, rounds)?);
            (self.disturbed, self.turns) = (self.disturbed + u64::from(ns.disturbed), self.turns + rounds);
            found.push(Transfer { state, ns });
        }
        Ok(found)
    }
}

/// Nanoseconds of a load, round by round, of lines that CPU `cpus.1` has in its caches.
fn passed(words: &[AtomicU64], cpus: (u32, u32), state: LineState, rounds: u64) -> Result<Vec<(f64, bool)>, String> {
    let (ready, done) = (AtomicU64::new(0), AtomicU64::new(0));
    link_every(words, PASSED_SPACING, true);
    let wait = |word: &AtomicU64, value: u64| {
        while word.load(Ordering::Acquire) < value {
            spin_loop();
        }
    };
    let refused = |cpu: u32, e: std::io::Error| format!("no thread can be moved to CPU {cpu} ({e}).");
    std::thread::scope(|scope| {
        let owner = scope.spawn(|| {
            let pinned = sys::pin(cpus.1).map_err(|e| refused(cpus.1, e));
            for round in 1..=rounds {
                for line in words.chunks_exact(PASSED_SPACING).map(|apart| &apart[..WORDS]) {
                    match state {
                        LineState::Modified => line[1].store(round, Ordering::Relaxed),
                        LineState::Clean => sys::flush(line),
                    }
                }
                if state == LineState::Clean {
                    words.chunks_exact(PASSED_SPACING).for_each(|l| _ = black_box(l[1].load(Ordering::Relaxed)));
                }
                ready.store(round, Ordering::Release);
                wait(&done, round);
            }
            pinned
        });
        let reader = scope.spawn(|| {
            let pinned = sys::pin(cpus.0).map_err(|e| refused(cpus.0, e));
            let mut turns = Vec::new();
            for round in 1..=rounds {
                wait(&ready, round);
                let before = sys::preemptions();
                let (start, mut at) = (Instant::now(), [0]);
                follow_many(words, &mut at, PASSED_LINES);
                let ns = start.elapsed().as_nanos() as f64 / PASSED_LINES as f64;
                black_box(at);
                turns.push((ns, sys::preemptions() != before));
                done.store(round, Ordering::Release);
            }
            pinned.map(|_| turns)
        });
        let fell = |_| "a measuring thread ended by itself.".to_string();
        owner.join().map_err(fell)??;
        reader.join().map_err(fell)?
    })
}

/// Follows `n` chases of the chain in `words`; the unit is a load. With `warm`, the caches have the lines as the chain leaves
/// them.
fn chase(words: &[AtomicU64], n: u32, warm: bool) -> Work<'_> {
    chase_from(words, starts(words, n.into()).collect(), warm)
}

/// Follows the chain in `words` from each of these words on.
pub(crate) fn chase_from(words: &[AtomicU64], mut at: Vec<usize>, warm: bool) -> Work<'_> {
    let (mut steps, mut cold) = (64, true);
    Box::new(move |until| {
        if std::mem::take(&mut cold) {
            // Lines enter the caches by a read in order; small buffers are followed, so that the order of use is the chain's.
            let read = words.iter().step_by(WORDS).map(|w| w.load(Ordering::Relaxed)).fold(0, u64::wrapping_add);
            black_box(read);
            if warm {
                follow_many(words, &mut at, words.len() / WORDS);
            }
        }
        let mut done = 0;
        loop {
            let start = Instant::now();
            if start >= until {
                break (done * at.len()) as f64;
            }
            follow_many(words, &mut at, steps);
            done += steps;
            if start.elapsed() < BLOCK {
                steps *= 2;
            }
        }
    })
}

/// Computes hashes; the unit is a hash.
fn hash<'a>() -> Work<'a> {
    const HASHES: u32 = 8000;
    Box::new(|until| {
        let mut done = 0.0;
        while Instant::now() < until {
            black_box(hash_many(HASHES));
            done += f64::from(HASHES);
        }
        done
    })
}

/// Goes on with a stream; the unit is a byte of memory traffic.
fn stream(mut of: Stream<'_>) -> Work<'_> {
    let (mut lines, bytes) = (64, of.bytes_per_line());
    Box::new(move |until| {
        let mut done = 0.0;
        loop {
            let start = Instant::now();
            if start >= until {
                break done;
            }
            of.touch(lines);
            done += lines as f64 * bytes;
            if start.elapsed() < BLOCK {
                lines *= 2;
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One access in sixteen hits the LLC, and one in four where sixteen sizes of the LLC are more than 1 GiB.
    #[test]
    fn buffers_are_far_larger_than_the_llc() {
        for (llc, expected) in [(8, 256), (32, 512), (60, 1024), (260, 2048), (1100, 8192)] {
            assert_eq!(beyond(llc * MIB), expected * MIB, "{llc} MiB");
        }
    }

    /// A Zen 4 with hits of 20 ns: 31 ns in one L3, 126 ns in two, and 8 ns in one core.
    #[test]
    fn cores_that_were_elsewhere_before_or_after_an_experiment_are_noticed() {
        let near = Home::Within(20.0, NEAR_HITS * 20.0);
        let stayed = |home: Home, looks: [f64; 2]| home.has(looks.into_iter());
        assert!(stayed(near, [31.0, 32.0]));
        for looks in [[31.0, 126.0], [126.0, 31.0], [126.0, 126.0], [8.0, 31.0]] {
            assert!(!stayed(near, looks), "{looks:?}");
            assert!(stayed(Home::Nowhere, looks), "no place to wait for: {looks:?}");
        }
        assert!(near.has(std::iter::empty()), "one CPU alone");
    }

    #[test]
    fn a_single_stream_has_the_whole_arena_and_several_share_it() {
        let mut goes_on = |_: &str, _: f64| true;
        let lab = Lab::new(&Options { quick: true }, &mut goes_on).unwrap();
        let arena = lab.buffer(4 * MIB, false).unwrap();
        for threads in [1, 2, 3] {
            let parts = parts(&arena, threads);
            assert_eq!(parts.len(), threads);
            let (whole, left) = (arena.words().len(), threads * WORDS);
            assert!(parts.iter().all(|p| p.len() == parts[0].len()) && threads * parts[0].len() > whole - left);
        }
    }
}
