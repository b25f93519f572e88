//! The L2's prefetcher: it watches the L1's misses, follows ascending or descending accesses within a page, and fetches lines
//! ahead of them into the L2 ("streamer", Intel 64 and IA-32 Architectures Optimization Reference Manual). Or it follows
//! the strides of instructions ([`super::strides`]).

use super::strides::{Strides, Waiting};
use crate::flow::Domain;
use crate::kernel::{Int, LineAddr, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which accesses a prefetcher follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// Those in one direction within a page.
    #[default]
    Stream,
    /// Those of an instruction at a constant distance from each other (gem5's StridePrefetcher). Each makes it fetch `degree`
    /// lines at that distance within the page.
    Stride,
}

/// The cache that a prefetcher belongs to: it looks at the requests that reach this cache, and fetches into it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CacheLevel {
    /// The core's L2.
    #[default]
    L2,
    /// The LLC, which each core's requests have a table of their own for (gem5's `use_requestor_id`). Only lines of this core
    /// that neither the LLC nor its own caches have are fetched.
    Llc,
}

/// A prefetcher of the L2 or the LLC.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrefetchSpec {
    /// Whether it works.
    pub enabled: bool,
    /// Which accesses it follows.
    #[serde(default)]
    pub pattern: Pattern,
    /// The cache that it belongs to.
    #[serde(default)]
    pub into: CacheLevel,
    /// It follows accesses to a NIC's receive buffers too.
    #[serde(default)]
    pub network: bool,
    /// Pages watched at once, one stream in each; or instructions.
    pub streams: u32,
    /// Lines ahead of the newest access that a stream runs, at most; never beyond its page of 4 KiB. Strides run `degree`.
    pub distance: u32,
    /// Lines that one access makes it fetch, at most.
    pub degree: u32,
    /// Accesses in one direction, or at one stride, that make a stream, the first included; 6 for a stride at most.
    pub trigger: u32,
    /// Prefetches under way at most: the L2's request queue without what the line fill buffers may fill.
    pub credits: u32,
    /// Prefetches that wait for one of `core.l2_mshrs`, at most; the oldest is lost when one more comes. Without, those that find
    /// none free are lost.
    #[serde(default)]
    pub waiting: u32,
    /// L2 misses that may be under way and that prefetches leave to accesses, of `core.l2_mshrs`. Hints do so too, where the
    /// prefetcher does not work.
    #[serde(default)]
    pub reserve: u32,
    /// A line that an access fetches into the L2 brings the other one of its 128 bytes ("spatial prefetcher").
    #[serde(default)]
    pub adjacent: bool,
    /// What an access that asks for ownership makes it fetch is asked for with ownership, too (Intel's event `PF_L2_RFO`). Without,
    /// all prefetches are reads.
    #[serde(default)]
    pub ownership: bool,
}

impl PrefetchSpec {
    /// # Errors
    /// One clause with key and value.
    pub fn check(&self) -> Result<(), String> {
        for (key, v, most) in [
            ("streams", self.streams, 256),
            ("distance", self.distance, PAGE.to_u32() - 1),
            ("degree", self.degree, 16),
            ("credits", self.credits, u32::from(u8::MAX - FIRST)),
        ] {
            if !(1..=most).contains(&v) {
                return Err(format!("{key} = {v} is not within 1 to {most}"));
            }
        }
        let most = if self.pattern == Pattern::Stride { 6 } else { 16 };
        if !(2..=most).contains(&self.trigger) {
            return Err(format!("trigger = {} is not within 2 to {most}", self.trigger));
        }
        if self.ownership && self.waiting > 0 {
            return Err(format!(
                "ownership = true does not go with waiting = {}: prefetches that wait are reads",
                self.waiting
            ));
        }
        if self.into == CacheLevel::Llc && (self.pattern != Pattern::Stride || self.adjacent) {
            return Err("into = \"llc\" needs pattern = \"stride\" and adjacent = false".into());
        }
        if self.waiting > 256 {
            return Err(format!("waiting = {} is not within 0 to 256", self.waiting));
        }
        Ok(())
    }

    /// Whether places for `mshrs` misses of the L2 suffice.
    ///
    /// # Errors
    /// One clause with key and value.
    pub fn check_mshrs(&self, mshrs: Option<u32>) -> Result<(), String> {
        for (key, v) in [("waiting", self.waiting), ("reserve", self.reserve)] {
            if v > 0 && mshrs.is_none() {
                return Err(format!("{key} = {v} needs platform.core.l2_mshrs"));
            }
        }
        match mshrs {
            Some(n) if self.reserve >= n => {
                Err(format!("reserve = {} leaves prefetches none of platform.core.l2_mshrs = {n}", self.reserve))
            }
            _ => Ok(()),
        }
    }
}

/// Lines of a page.
pub(super) const PAGE: u64 = 64;
/// `Txn::record` of the first prefetch; records of accesses are below.
pub const FIRST: u8 = 128;
/// `Txn::record` of a write-back that a prefetch's fill caused.
pub const WRITE_BACK: u8 = u8::MAX;

#[derive(Clone, Copy, Debug)]
struct Stream {
    page: u64,
    last: i32,
    /// Of the accesses: 1 or -1, 0 before there are two.
    step: i32,
    run: u32,
    /// Where it fetches next.
    ahead: i32,
    used: u64,
}

/// A prefetch under way.
#[derive(Clone, Copy, Debug)]
struct Flight {
    line: LineAddr,
    own: bool,
    into: CacheLevel,
    /// Record of an access that came meanwhile and waits for it, and since when it holds a line fill buffer.
    waiter: Option<(u8, Time)>,
}

#[derive(Clone, Debug)]
pub struct Prefetcher {
    distance: i32,
    degree: u32,
    trigger: u32,
    /// It follows a NIC's receive buffers.
    pub network: bool,
    /// The cache that it belongs to.
    pub into: CacheLevel,
    streams: Vec<Stream>,
    strides: Option<Strides>,
    /// Prefetches that wait for a place among the L2's misses.
    pub waiting: Waiting,
    /// Places that they leave free.
    pub reserve: u32,
    /// It completes pairs of lines.
    pub adjacent: bool,
    /// Those that requests for ownership cause are such requests.
    pub ownership: bool,
    tick: u64,
    flights: Vec<Option<Flight>>,
    /// Prefetches under way.
    pub queue: Domain,
}

impl Prefetcher {
    pub fn new(s: &PrefetchSpec) -> Option<Prefetcher> {
        let none = Stream { page: u64::MAX, last: 0, step: 0, run: 0, ahead: 0, used: 0 };
        let strides = (s.pattern == Pattern::Stride).then(|| Strides::new(s.streams, s.degree, s.trigger));
        s.enabled.then(|| Prefetcher {
            distance: s.distance as i32,
            degree: s.degree,
            trigger: s.trigger,
            network: s.network,
            into: s.into,
            streams: if strides.is_some() { Vec::new() } else { vec![none; s.streams.to_usize()] },
            strides,
            waiting: Waiting::new(s.waiting),
            reserve: s.reserve,
            adjacent: s.adjacent,
            ownership: s.ownership,
            tick: 0,
            flights: vec![None; s.credits.to_usize()],
            queue: Domain::new(s.credits),
        })
    }

    /// One that follows nothing, for hints.
    pub fn without_streams(reserve: u32) -> Prefetcher {
        Prefetcher {
            distance: 0,
            degree: 0,
            trigger: 2,
            network: false,
            into: CacheLevel::L2,
            streams: Vec::new(),
            strides: None,
            waiting: Waiting::new(0),
            reserve,
            adjacent: false,
            ownership: false,
            tick: 0,
            flights: Vec::new(),
            queue: Domain::new(0),
        }
    }

    /// As many prefetches as `n` misses may be under way, if these are more than its own credits.
    pub fn widen(&mut self, n: u32) {
        let n = n.max(self.flights.len().to_u32());
        self.flights.resize(n.to_usize(), None);
        self.queue = Domain::new(n);
    }

    /// Whether it follows anything.
    #[inline]
    pub fn watches(&self) -> bool {
        !self.streams.is_empty() || self.strides.is_some()
    }

    /// It looks at requests that reach the L2, once each; one that follows streams also at accesses that join another's request.
    #[inline]
    pub fn by_requests(&self) -> bool {
        self.strides.is_some()
    }

    /// `instruction` asks the L2 for `line`. Returns the lines to fetch, nearest first.
    pub fn observe(&mut self, instruction: u32, line: LineAddr) -> impl Iterator<Item = LineAddr> + use<> {
        self.tick += 1;
        let (from, step, n) = match &mut self.strides {
            Some(s) => s.observe(instruction, line, self.tick),
            None => self.observe_stream(line),
        };
        (0..n).map(move |i| from.offset_by(i * step))
    }

    /// First line to fetch, how far it is to the next, and how many there are.
    fn observe_stream(&mut self, line: LineAddr) -> (LineAddr, i64, i64) {
        let (page, at) = (line.0 / PAGE, (line.0 % PAGE) as i32);
        let Some(s) = self.streams.iter_mut().find(|s| s.page == page) else {
            let oldest = self.streams.iter_mut().min_by_key(|s| s.used).expect("some streams");
            *oldest = Stream { page, last: at, step: 0, run: 1, ahead: at, used: self.tick };
            return (line, 0, 0);
        };
        s.used = self.tick;
        let step = (at - s.last).signum();
        if step != 0 {
            if step != s.step {
                (s.step, s.run, s.ahead) = (step, 1, at);
            }
            s.run += 1;
            s.last = at;
        }
        if step == 0 || s.run < self.trigger {
            return (line, 0, 0);
        }
        // behind those that an earlier access has made it fetch, and within the page
        let from = if (s.ahead - at) * step > 0 { s.ahead } else { at + step };
        let in_page = if step > 0 { PAGE as i32 - from } else { from + 1 };
        let room = (self.distance - (from - at).abs() + 1).min(self.degree as i32);
        let n = room.min(in_page).max(0);
        s.ahead = from + n * step;
        (line.offset_by(i64::from(from) - i64::from(at)), step.into(), n.into())
    }

    /// Whether `line` is on its way.
    pub fn fetches(&self, line: LineAddr) -> bool {
        self.flights.iter().flatten().any(|f| f.line == line)
    }

    /// Takes a credit for `line` at `at`, with ownership if `own`, to bring it `into` a cache; returns the request's record, or None when all are out or it is on
    /// its way.
    pub fn take(&mut self, line: LineAddr, own: bool, into: CacheLevel, at: Time) -> Option<u8> {
        if self.queue.free() == 0 || self.fetches(line) {
            return None;
        }
        let slot = self.flights.iter().position(Option::is_none)?;
        self.flights[slot] = Some(Flight { line, own, into, waiter: None });
        self.queue.take(at);
        Some(FIRST + slot.to_u8())
    }

    /// An access to `line` misses the L2, and needs ownership if `own`: whether a prefetch will bring that, and then record `r` is
    /// the one that waits. Returns the cache that it was to come into.
    pub fn join(&mut self, line: LineAddr, own: bool, r: u8, at: Time) -> Option<CacheLevel> {
        let flight =
            self.flights.iter_mut().flatten().find(|f| f.line == line && f.waiter.is_none() && (f.own || !own));
        flight.map(|f| {
            f.waiter = Some((r, at));
            f.into
        })
    }

    /// Whether the request with `record` is the LLC's alone, and no access waits for it.
    pub fn is_llcs(&self, record: u8) -> bool {
        let flight = self.flights.get(usize::from(record - FIRST)).and_then(Option::as_ref);
        flight.is_some_and(|f| f.into == CacheLevel::Llc && f.waiter.is_none())
    }

    /// The data of the request with `record` is there: the cache that it was for, and who waited for it.
    pub fn land(&mut self, record: u8) -> (CacheLevel, Option<(u8, Time)>) {
        let flight = self.flights[usize::from(record - FIRST)].take().expect("a prefetch under way");
        (flight.into, flight.waiter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> PrefetchSpec {
        PrefetchSpec {
            enabled: true,
            pattern: Pattern::Stream,
            into: CacheLevel::L2,
            network: false,
            streams: 32,
            distance: 20,
            degree: 2,
            trigger: 3,
            credits: 20,
            waiting: 0,
            reserve: 0,
            adjacent: false,
            ownership: false,
        }
    }

    fn manual() -> Prefetcher {
        spec().check().unwrap();
        Prefetcher::new(&spec()).unwrap()
    }

    #[test]
    fn prefetches_that_wait_ask_for_no_ownership() {
        let e = PrefetchSpec { ownership: true, waiting: 8, ..spec() }.check().unwrap_err();
        assert!(e.contains("ownership = true does not go with waiting = 8"), "{e}");
        PrefetchSpec { ownership: true, ..spec() }.check().unwrap();
    }

    fn lines(p: &mut Prefetcher, line: u64) -> Vec<u64> {
        p.observe(0, LineAddr(line)).map(|l| l.0).collect()
    }

    #[test]
    fn three_accesses_make_a_stream_that_runs_two_lines_per_access_to_twenty_ahead() {
        let mut p = manual();
        let page = 640;
        assert!(lines(&mut p, page).is_empty());
        assert!(lines(&mut p, page + 1).is_empty());
        assert_eq!(lines(&mut p, page + 2), [page + 3, page + 4]);
        assert_eq!(lines(&mut p, page + 3), [page + 5, page + 6]);
        for i in 4..25 {
            lines(&mut p, page + i);
        }
        assert_eq!(lines(&mut p, page + 25), [page + 45], "no farther than twenty lines");
    }

    #[test]
    fn streams_run_downwards_as_well_and_never_leave_their_page() {
        let mut p = manual();
        let page = 64 * 9;
        let down: Vec<Vec<u64>> = [4, 3, 2, 1].iter().map(|i| lines(&mut p, page + i)).collect();
        assert_eq!(down[2..], [vec![page + 1, page], vec![]]);
        let up: Vec<Vec<u64>> = [60, 61, 62].iter().map(|i| lines(&mut p, page + 64 + i)).collect();
        assert_eq!(up[2], [page + 64 + 63]);
    }

    #[test]
    fn every_page_has_its_own_stream_and_random_accesses_have_none() {
        let mut p = manual();
        for i in 0..3 {
            for page in 0..32 {
                let got = lines(&mut p, page * 64 + i);
                assert_eq!(got.len(), if i == 2 { 2 } else { 0 });
            }
        }
        let mut rng = crate::kernel::Stream::new(1, "test", 0);
        let fetched: usize = (0..10_000).map(|_| lines(&mut p, rng.below(1 << 24)).len()).sum();
        assert_eq!(fetched, 0);
    }

    #[test]
    fn one_access_waits_for_a_prefetch_and_credits_bound_them() {
        let mut p = manual();
        let records: Vec<u8> = (0..30).filter_map(|l| p.take(LineAddr(l), false, CacheLevel::L2, Time::ZERO)).collect();
        assert_eq!(records.len(), 20);
        assert_eq!(p.take(LineAddr(3), false, CacheLevel::L2, Time::ZERO), None);
        assert_eq!(p.join(LineAddr(3), false, 7, Time(5)), Some(CacheLevel::L2));
        assert_eq!(p.join(LineAddr(3), false, 8, Time(6)), None, "the place is taken");
        assert_eq!(p.join(LineAddr(25), false, 8, Time(6)), None);
        assert_eq!(p.land(records[3]), (CacheLevel::L2, Some((7, Time(5)))));
        assert_eq!(p.land(records[4]), (CacheLevel::L2, None));
    }
}
