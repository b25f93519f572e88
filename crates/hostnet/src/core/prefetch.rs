//! Hardware prefetcher of the L2 or the LLC. The stream prefetcher observes the L1's misses, follows ascending or
//! descending accesses within a page, and fetches the lines ahead of these accesses into the L2 ("streamer", Intel 64
//! and IA-32 Architectures Optimization Reference Manual). The stride prefetcher ([`super::strides`]) follows the
//! strides of instructions.

use super::strides::{Strides, WaitingPrefetches};
use crate::flow::AheadDomain;
use crate::kernel::{ids::LineKey, with_defaults, Int, LineAddr, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Accesses that a prefetcher recognises as a pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PrefetchPattern {
    /// Accesses in one direction within a page of 4 KiB.
    #[default]
    Stream,
    /// Accesses of one instruction at a constant distance (gem5's StridePrefetcher). Each such access prefetches up to
    /// `degree` lines at that distance within the page.
    Stride,
}

/// Cache that a prefetcher belongs to: the prefetcher observes the requests that reach this cache and fetches into it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CacheLevel {
    /// The core's L2.
    #[default]
    L2,
    /// The LLC. Each core's requests have a separate table (gem5's `use_requestor_id`). Only lines that neither the LLC
    /// nor the core's own caches hold are fetched.
    Llc,
}

/// Hardware prefetcher of the L2 or the LLC.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrefetchSpec {
    /// Whether the prefetcher is on.
    pub enabled: bool,
    /// Number of pages watched at a time, each with one stream; with `pattern = "stride"`, number of instructions.
    pub streams: u32,
    /// Largest distance, in lines, between the newest access and a prefetched line of its stream; a stream leaves its page of
    /// 4 KiB only with `quirks.next_page`. With `pattern = "stride"` only `degree` limits the distance.
    pub distance: u32,
    /// Largest number of lines that one access prefetches.
    pub degree: u32,
    /// Number of accesses in one direction (with `pattern = "stride"`, at one stride), including the first access, at
    /// or above which the prefetcher fetches: 2 to 16, or 2 to 6 for strides.
    pub trigger: u32,
    /// Largest number of outstanding prefetches; on hardware, the entries of the L2's request queue that line fill
    /// buffers do not claim.
    pub credits: u32,
    /// Habits of the prefetcher, which a platform sets; scenarios leave them alone.
    #[serde(default)]
    pub quirks: PrefetchQuirks,
}

/// Named set of quirks of a prefetcher.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PrefetchPreset {
    /// Stride prefetcher of gem5.
    Gem5,
}

/// Habits of the prefetcher of the L2 or the LLC that processors and simulators differ in.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrefetchQuirks {
    /// Named set of quirks that the other keys of this table override. When absent, the defaults of the keys apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<PrefetchPreset>,
    /// Pattern of accesses that the prefetcher follows.
    #[serde(default)]
    pub pattern: PrefetchPattern,
    /// Cache that the prefetcher belongs to; `llc` needs `pattern = "stride"` and `adjacent = false`.
    #[serde(default)]
    pub into: CacheLevel,
    /// Whether the prefetcher also follows accesses to a NIC's receive buffers.
    #[serde(default)]
    pub network: bool,
    /// Largest number of prefetches that wait for a free MSHR of the L2 (`core.quirks.l2_mshrs`); a further prefetch displaces
    /// the oldest. With 0, prefetches that find no free MSHR are dropped.
    #[serde(default)]
    pub waiting: u32,
    /// Number of the L2's MSHRs (`core.quirks.l2_mshrs`) that prefetches leave to accesses. Prefetch hints of a NIC leave
    /// these MSHRs free as well, even if the prefetcher is not enabled.
    #[serde(default)]
    pub reserve: u32,
    /// Whether a line that an access fetches into the L2 also brings the other line of its 128 bytes ("spatial
    /// prefetcher").
    #[serde(default)]
    pub adjacent: bool,
    /// Whether prefetches that a request for ownership causes ask for ownership as well (Intel's event `PF_L2_RFO`);
    /// otherwise all prefetches are reads. Excludes `waiting`.
    #[serde(default)]
    pub ownership: bool,
    /// Whether a stream that reaches the end of its page of 4 KiB goes on in the page with the next virtual addresses ("next-page
    /// prefetcher", Intel SDM volume 4, MSR 1A4H). Otherwise each page begins a stream of its own. Excludes `pattern = "stride"` and
    /// `waiting`.
    #[serde(default)]
    pub next_page: bool,
}

impl Default for PrefetchQuirks {
    fn default() -> PrefetchQuirks {
        with_defaults()
    }
}

impl PrefetchSpec {
    /// Checks that every value is within its range and that the values are compatible.
    ///
    /// # Errors
    /// Fails with one clause that names key and value.
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
        let (most, why) = match self.quirks.pattern {
            PrefetchPattern::Stride => (6, ", up to which quirks.pattern = \"stride\" counts"),
            _ => (16, ""),
        };
        if !(2..=most).contains(&self.trigger) {
            return Err(format!("trigger = {} is not within 2 to {most}{why}", self.trigger));
        }
        if self.quirks.ownership && self.quirks.waiting > 0 {
            return Err(format!(
                "quirks.ownership = true does not go with waiting = {}: prefetches that wait are reads",
                self.quirks.waiting
            ));
        }
        if self.quirks.into == CacheLevel::Llc
            && (self.quirks.pattern != PrefetchPattern::Stride || self.quirks.adjacent)
        {
            return Err("quirks.into = \"llc\" needs pattern = \"stride\" and adjacent = false".into());
        }
        if self.quirks.next_page && (self.quirks.pattern == PrefetchPattern::Stride || self.quirks.waiting > 0) {
            return Err("quirks.next_page = true needs pattern = \"stream\" and waiting = 0".into());
        }
        if self.quirks.waiting > 256 {
            return Err(format!("quirks.waiting = {} is not within 0 to 256", self.quirks.waiting));
        }
        Ok(())
    }

    /// Checks that the L2 has enough MSHRs; `mshrs` is the value of `core.quirks.l2_mshrs`.
    ///
    /// # Errors
    /// Fails with one clause that names key and value.
    pub fn check_mshrs(&self, mshrs: Option<u32>) -> Result<(), String> {
        for (key, v) in [("quirks.waiting", self.quirks.waiting), ("quirks.reserve", self.quirks.reserve)] {
            if v > 0 && mshrs.is_none() {
                return Err(format!("{key} = {v} needs platform.core.quirks.l2_mshrs"));
            }
        }
        match mshrs {
            Some(n) if self.quirks.reserve >= n => Err(format!(
                "quirks.reserve = {} leaves prefetches none of platform.core.quirks.l2_mshrs = {n}",
                self.quirks.reserve
            )),
            _ => Ok(()),
        }
    }
}

/// Number of lines in a page of 4 KiB.
pub(super) const PAGE: u64 = 64;
const PAGE_I32: i32 = 64;
/// `Txn::record` of the first prefetch; smaller numbers are records of accesses.
pub const FIRST: u8 = 128;
/// `Txn::record` of a write-back that the fill of a prefetch caused.
pub const WRITE_BACK: u8 = u8::MAX;

#[derive(Clone, Copy, Debug)]
struct PageStream {
    /// First line of the page that the stream is in.
    page: Option<LineKey>,
    last: i32,
    /// Direction of the accesses: 1 or -1, or 0 until there have been two accesses.
    step: i32,
    run: u32,
    /// Position within the page of the next line to fetch.
    ahead: i32,
    used: u64,
}

/// An outstanding prefetch.
#[derive(Clone, Copy, Debug)]
struct PrefetchInFlight {
    line: LineAddr,
    own: bool,
    into: CacheLevel,
    /// Record of an access that waits for the prefetch, and the time since which it has held a line fill buffer.
    waiter: Option<(u8, Time)>,
}

/// Lines to prefetch, nearest first.
#[derive(Clone, Copy, Debug)]
pub struct LinesAhead {
    next: LineAddr,
    step: i64,
    left: i64,
}

impl Iterator for LinesAhead {
    type Item = LineAddr;

    fn next(&mut self) -> Option<LineAddr> {
        if self.left <= 0 {
            return None;
        }
        self.left -= 1;
        let line = self.next;
        // Behind the last line there may be none, below the beginning of memory.
        if self.left > 0 {
            self.next = line.offset_by(self.step);
        }
        Some(line)
    }
}

/// The prefetchers of one core into its L2 or the LLC.
#[derive(Clone, Debug)]
pub struct Prefetcher {
    distance: i32,
    degree: u32,
    trigger: u32,
    /// Whether the prefetcher follows accesses to a NIC's receive buffers.
    pub network: bool,
    /// Cache that the prefetcher belongs to.
    pub into: CacheLevel,
    streams: Vec<PageStream>,
    /// Whether streams go on in the next page.
    pub next_page: bool,
    strides: Option<Strides>,
    /// Prefetches that wait for a free MSHR of the L2.
    pub waiting: WaitingPrefetches,
    /// Number of the L2's MSHRs that prefetches leave free.
    pub reserve: u32,
    /// Whether the prefetcher completes 128-byte pairs of lines.
    pub adjacent: bool,
    /// Whether prefetches that a request for ownership causes ask for ownership as well.
    pub ownership: bool,
    tick: u64,
    flights: Vec<Option<PrefetchInFlight>>,
    /// Credits of the outstanding prefetches.
    pub queue: AheadDomain,
}

impl Prefetcher {
    /// The prefetchers that `s` describes; None if they are disabled.
    pub fn new(s: &PrefetchSpec) -> Option<Prefetcher> {
        let none = PageStream { page: None, last: 0, step: 0, run: 0, ahead: 0, used: 0 };
        let strides =
            (s.quirks.pattern == PrefetchPattern::Stride).then(|| Strides::new(s.streams, s.degree, s.trigger));
        s.enabled.then(|| Prefetcher {
            distance: s.distance.cast_signed(),
            degree: s.degree,
            trigger: s.trigger,
            network: s.quirks.network,
            into: s.quirks.into,
            streams: if strides.is_some() { Vec::new() } else { vec![none; s.streams.to_usize()] },
            next_page: s.quirks.next_page,
            strides,
            waiting: WaitingPrefetches::new(s.quirks.waiting),
            reserve: s.quirks.reserve,
            adjacent: s.quirks.adjacent,
            ownership: s.quirks.ownership,
            tick: 0,
            flights: vec![None; s.credits.to_usize()],
            queue: AheadDomain::new(s.credits),
        })
    }

    /// Makes a prefetcher that follows no accesses and only serves prefetch hints.
    pub fn without_streams(reserve: u32) -> Prefetcher {
        Prefetcher {
            distance: 0,
            degree: 0,
            trigger: 2,
            network: false,
            into: CacheLevel::L2,
            streams: Vec::new(),
            next_page: false,
            strides: None,
            waiting: WaitingPrefetches::new(0),
            reserve,
            adjacent: false,
            ownership: false,
            tick: 0,
            flights: Vec::new(),
            queue: AheadDomain::new(0),
        }
    }

    /// Raises the number of prefetches that may be outstanding to `n`, unless the prefetcher has more credits.
    pub fn widen(&mut self, n: u32) {
        let n = n.max(self.flights.len().to_u32());
        self.flights.resize(n.to_usize(), None);
        self.queue = AheadDomain::new(n);
    }

    /// Whether the prefetcher follows any accesses.
    #[inline]
    pub fn watches(&self) -> bool {
        !self.streams.is_empty() || self.strides.is_some()
    }

    /// Whether the prefetcher tells accesses apart by their instructions, as that of strides does.
    #[inline]
    pub fn by_instruction(&self) -> bool {
        self.strides.is_some()
    }

    /// Observes that `instruction` requests `line` from the L2; `neighbour` gives the first line of the page before (-1) or after (1)
    /// that of `line`. Returns the lines to prefetch, nearest first, as if pages with neighbouring virtual addresses were neighbours.
    pub fn observe(
        &mut self,
        instruction: u32,
        line: LineAddr,
        neighbour: impl Fn(i64) -> Option<LineAddr>,
    ) -> LinesAhead {
        self.tick += 1;
        let (from, step, n) = match &mut self.strides {
            Some(s) => s.observe(instruction, line, self.tick),
            None => self.observe_stream(line, neighbour),
        };
        LinesAhead { next: from, step, left: n }
    }

    /// First line to prefetch, the distance to the next one, and the number of lines.
    fn observe_stream(&mut self, line: LineAddr, neighbour: impl Fn(i64) -> Option<LineAddr>) -> (LineAddr, i64, i64) {
        let within = line.0 % PAGE;
        let (page, at) = (LineKey::from(line - within), within.to_u32().cast_signed());
        if self.next_page && !self.streams.iter().any(|s| s.page == Some(page)) {
            self.enter_page(line - within, neighbour);
        }
        let Some(s) = self.streams.iter_mut().find(|s| s.page == Some(page)) else {
            let oldest = self.streams.iter_mut().min_by_key(|s| s.used).expect("some streams");
            *oldest = PageStream { page: Some(page), last: at, step: 0, run: 1, ahead: at, used: self.tick };
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
        // The prefetcher continues behind the lines that an earlier access has prefetched, and stays within the page.
        let from = if (s.ahead - at) * step > 0 { s.ahead } else { at + step };
        let in_page = match step > 0 {
            _ if self.next_page => self.distance,
            true => PAGE_I32 - from,
            false => from + 1,
        };
        let room = (self.distance - (from - at).abs() + 1).min(self.degree.cast_signed());
        let n = room.min(in_page).max(0);
        s.ahead = from + n * step;
        (line.offset_by(i64::from(from) - i64::from(at)), step.into(), n.into())
    }

    /// Moves a stream that comes from a neighbouring page into the page that begins with `first`: positions count from there.
    fn enter_page(&mut self, first: LineAddr, neighbour: impl Fn(i64) -> Option<LineAddr>) {
        for step in [1, -1] {
            let Some(before) = neighbour(-i64::from(step)) else { continue };
            let before = LineKey::from(before);
            let comes = |s: &&mut PageStream| s.page == Some(before) && s.step == step && s.run >= self.trigger;
            if let Some(s) = self.streams.iter_mut().find(comes) {
                s.page = Some(LineKey::from(first));
                (s.last, s.ahead) = (s.last - step * PAGE_I32, s.ahead - step * PAGE_I32);
                return;
            }
        }
    }

    /// Whether a prefetch of `line` is outstanding.
    pub fn fetches(&self, line: LineAddr) -> bool {
        self.flights.iter().flatten().any(|f| f.line == line)
    }

    /// Takes a credit for a prefetch of `line` at `at`, with ownership if `own`, into cache `into`. Returns the
    /// request's record, or None when no credit is left or the line is already being prefetched.
    pub fn take(&mut self, line: LineAddr, own: bool, into: CacheLevel, at: Time) -> Option<u8> {
        if self.queue.free() == 0 || self.fetches(line) {
            return None;
        }
        let slot = self.flights.iter().position(Option::is_none)?;
        self.flights[slot] = Some(PrefetchInFlight { line, own, into, waiter: None });
        self.queue.take(at);
        Some(FIRST + slot.to_u8())
    }

    /// Joins an access that misses the L2 to an outstanding prefetch of `line`, which must request ownership if `own`;
    /// record `r` then waits for the prefetch. Returns the cache that the prefetch was to fill.
    pub fn join(&mut self, line: LineAddr, own: bool, r: u8, at: Time) -> Option<CacheLevel> {
        let flight =
            self.flights.iter_mut().flatten().find(|f| f.line == line && f.waiter.is_none() && (f.own || !own));
        flight.map(|f| {
            f.waiter = Some((r, at));
            f.into
        })
    }

    /// Whether the request with `record` is a prefetch into the LLC that no access waits for.
    pub fn is_llcs(&self, record: u8) -> bool {
        let flight = self.flights.get(usize::from(record - FIRST)).and_then(Option::as_ref);
        flight.is_some_and(|f| f.into == CacheLevel::Llc && f.waiter.is_none())
    }

    /// Ends the prefetch with `record`, whose data has arrived. Returns the cache to fill, and the waiting record with
    /// the time since which it has waited.
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
            streams: 32,
            distance: 20,
            degree: 2,
            trigger: 3,
            credits: 20,
            quirks: PrefetchQuirks {
                preset: None,
                pattern: PrefetchPattern::Stream,
                into: CacheLevel::L2,
                network: false,
                waiting: 0,
                reserve: 0,
                adjacent: false,
                ownership: false,
                next_page: false,
            },
        }
    }

    fn manual() -> Prefetcher {
        spec().check().unwrap();
        Prefetcher::new(&spec()).unwrap()
    }

    #[test]
    fn prefetches_that_wait_ask_for_no_ownership() {
        let e = PrefetchSpec { quirks: PrefetchQuirks { ownership: true, waiting: 8, ..spec().quirks }, ..spec() }
            .check()
            .unwrap_err();
        assert!(e.contains("quirks.ownership = true does not go with waiting = 8"), "{e}");
        PrefetchSpec { quirks: PrefetchQuirks { ownership: true, ..spec().quirks }, ..spec() }.check().unwrap();
    }

    fn lines(p: &mut Prefetcher, line: u64) -> Vec<u64> {
        let neighbour = |step: i64| (line - line % PAGE).checked_add_signed(step * i64::from(PAGE_I32)).map(LineAddr);
        p.observe(0, LineAddr(line), neighbour).map(|l| l.0).collect()
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

    /// A stream of two lines an access is twenty lines ahead when it reaches the end of its page, and stays so in the next one.
    #[test]
    fn a_stream_goes_on_in_the_next_page_where_the_processor_has_such_a_prefetcher() {
        for up in [true, false] {
            let s = PrefetchSpec { quirks: PrefetchQuirks { next_page: true, ..spec().quirks }, ..spec() };
            s.check().unwrap();
            let mut p = Prefetcher::new(&s).unwrap();
            let at = |i: u64| if up { 640 + i } else { 64 * 20 + 63 - i };
            let fetched: Vec<u64> = (0..128).flat_map(|i| lines(&mut p, at(i))).collect();
            // The third access fetches the fourth line; the last access fetches the line twenty behind it.
            assert_eq!(fetched, (3..128 + 20).map(at).collect::<Vec<_>>());
            assert!(lines(&mut p, at(192)).is_empty(), "a page that is skipped ends the stream");
        }
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
        let mut rng = crate::kernel::RandomStream::new(1, "test", 0);
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
