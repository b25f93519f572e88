//! Datapaths of requests: milestones that divide the time between a request and its answer into consecutive hops, and
//! the occupancy of the home agent by source and direction (TOR counters).

use super::TxnOp;
use crate::flow::domain::Booked;
use crate::flow::Domain;
use crate::kernel::{Int, Time};

/// The four datapaths of the host network (SIGCOMM'24, section 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Path {
    /// Reads of cores.
    C2mRead,
    /// Writes of cores.
    C2mWrite,
    /// Reads of devices.
    P2mRead,
    /// Writes of devices.
    P2mWrite,
}
/// All datapaths, with their names in results.
pub const PATHS: [(Path, &str); 4] = [
    (Path::C2mRead, "c2m_read"),
    (Path::C2mWrite, "c2m_write"),
    (Path::P2mRead, "p2m_read"),
    (Path::P2mWrite, "p2m_write"),
];

/// Parts of a path's latency, in order.
pub const SEGMENTS: [&str; PARTS] =
    ["to_cha", "cha_admission", "to_home", "snoop", "mc_queue_wait", "mc_and_dram", "link_back", "return"];
/// Number of parts of a path's latency.
pub const PARTS: usize = 8;

/// Parts of the latency of a request that never leaves its node.
const WITHIN_NODE: [usize; 5] = [0, 1, 4, 5, 7];

/// Whether a part occurs only between nodes: the path of a request to its home node, a snoop of the other node, or the
/// path of the answer.
pub fn is_between_nodes(part: usize) -> bool {
    matches!(SEGMENTS[part], "to_home" | "snoop" | "link_back")
}

impl Path {
    /// The index of the path in tables by path.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self as usize
    }
    /// The datapath of a request.
    pub fn of(op: TxnOp) -> Path {
        match op {
            TxnOp::Read | TxnOp::Own | TxnOp::Uncached => Path::C2mRead,
            TxnOp::Stream | TxnOp::WriteBack => Path::C2mWrite,
            TxnOp::DmaRead => Path::P2mRead,
            TxnOp::DmaWrite => Path::P2mWrite,
        }
    }
    /// Whether devices use the datapath.
    pub fn is_peripheral(self) -> bool {
        matches!(self, Path::P2mRead | Path::P2mWrite)
    }
}

/// Times at which a request passed from one hop to the next. A hop that the request skips takes no time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Milestones {
    /// The source's credit was taken.
    pub start: Time,
    /// The request arrived at the home agent.
    pub cha: Time,
    /// The home agent admitted the request; with several nodes, the agent of the requester's node did.
    pub admitted: Time,
    /// The home agent in another node admitted the request; earlier than `admitted` where the request stays in its
    /// node.
    pub home: Time,
    /// Caches of another node supplied the data; earlier than `home` where no other node supplied data.
    pub owner: Time,
    /// The channel's queue accepted the request.
    pub queued: Time,
    /// The data of a read reached the controller's exit; equal to `queued` for a write.
    pub data: Time,
    /// The answer crossed the link; earlier than `data` where the answer did not cross a link.
    pub back: Time,
}

impl Milestones {
    /// Makes the milestones of a request that left at `start` and arrives at the home agent at `cha`; later milestones
    /// are still to come.
    pub fn at(start: Time, cha: Time) -> Milestones {
        Milestones { start, cha, admitted: cha, queued: cha, data: cha, ..Milestones::default() }
    }

    /// Milestones in the order of time.
    #[inline(always)]
    fn times(&self) -> [u64; 8] {
        let Milestones { start, cha, admitted, home, owner, queued, data, back } = *self;
        [start, cha, admitted, home, owner, queued, data, back].map(|t| t.0)
    }

    /// Start of a request that ends at `end`, and the ends of the parts in [`SEGMENTS`], in the order of time.
    pub fn borders(&self, end: Time) -> [Time; PARTS + 1] {
        let mut borders =
            [self.start, self.cha, self.admitted, self.home, self.owner, self.queued, self.data, self.back, end];
        let mut latest = self.start;
        for at in &mut borders {
            latest = latest.max(*at).min(end);
            *at = latest;
        }
        borders
    }

    /// Whether the request has not left its node.
    #[inline]
    fn within_node(&self) -> bool {
        (self.home.0 | self.owner.0 | self.back.0) == 0
    }
}

/// A sampled request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Datapath of the request.
    pub path: Path,
    /// Times at which the request reached the parts of the datapath.
    pub milestones: Milestones,
    /// Time at which the request finished.
    pub end: Time,
}

impl Sample {
    /// Time that the request spent in each part, in picoseconds.
    #[inline]
    pub fn segments(&self) -> [u64; PARTS] {
        let m = &self.milestones;
        let took = |from: Time, to: Time| (to - from).0;
        let home = m.home.max(m.admitted);
        let (owner, back) = (m.owner.max(home), m.back.max(m.data));
        [
            took(m.start, m.cha),
            took(m.cha, m.admitted),
            took(m.admitted, home),
            took(home, owner),
            took(owner, m.queued),
            took(m.queued, m.data),
            took(m.data, back),
            took(back, self.end),
        ]
    }
}

/// Largest number of samples in a window (`SAMPLES`), and number of requests for each sample (`EVERY`).
const SAMPLES: usize = 1 << 12;
const EVERY: u64 = 61;

/// Requests of each datapath that ended in the window, and the time that they spent in each part.
#[derive(Clone, Debug)]
pub struct Paths {
    /// Number of requests of each datapath.
    pub count: [u64; 4],
    /// Sums of the milestones (see `Milestones::times`), and of the ends, of single requests that ended in their node. The
    /// sums may wrap.
    within: [[u64; 8]; 4],
    ends: [u64; 4],
    /// Time that all other requests spent in each part, in picoseconds.
    others: [[u64; PARTS]; 4],
    /// Requests in flight by datapath, from the taking to the return of the source's credit.
    pub under_way: [Domain; 4],
    /// Requests that the home agent holds, by datapath: occupancy, inserts and residence.
    pub at_home_agent: [Booked; 4],
    /// Number of requests that the home agent admitted and the time that they had waited, for cores and for devices.
    pub admitted: [(u64, u64); 2],
    /// Samples of single requests.
    pub samples: Vec<Sample>,
    /// Number of requests until the next sample.
    until_sample: u64,
}

impl Default for Paths {
    fn default() -> Paths {
        let open = || std::array::from_fn(|_| Domain::unbounded());
        Paths {
            count: [0; 4],
            within: [[0; 8]; 4],
            ends: [0; 4],
            others: [[0; PARTS]; 4],
            under_way: open(),
            at_home_agent: std::array::from_fn(|_| Booked::unbounded()),
            admitted: [(0, 0); 2],
            samples: Vec::with_capacity(SAMPLES),
            until_sample: EVERY,
        }
    }
}

impl Paths {
    /// Accounts for `n` requests with the same milestones that end at `end`.
    #[inline(always)]
    pub fn record(&mut self, path: Path, n: u32, milestones: &Milestones, end: Time) {
        if n != 1 || !milestones.within_node() {
            return self.record_many(path, n, milestones, end);
        }
        let p = path.index();
        self.count[p] += 1;
        // Milestones are summed rather than the differences between them, because these additions vectorise.
        self.within[p].iter_mut().zip(milestones.times()).for_each(|(sum, at)| *sum = sum.wrapping_add(at));
        self.ends[p] = self.ends[p].wrapping_add(end.0);
        self.under_way[p].give(end, milestones.start);
        if self.until_sample > 1 {
            self.until_sample -= 1;
        } else {
            self.keep_sample(1, Sample { path, milestones: *milestones, end });
        }
    }

    /// Accounts for any number of requests, and for requests that have left their node.
    #[inline(never)]
    fn record_many(&mut self, path: Path, n: u32, milestones: &Milestones, end: Time) {
        let (p, times) = (path.index(), u64::from(n));
        self.count[p] += times;
        let took = Sample { path, milestones: *milestones, end }.segments();
        self.others[p].iter_mut().zip(took).for_each(|(sum, ps)| *sum += ps * times);
        self.under_way[p].give_many(n, end, milestones.start);
        if times < self.until_sample {
            self.until_sample -= times;
        } else {
            self.keep_sample(times, Sample { path, milestones: *milestones, end });
        }
    }

    /// Keeps the samples that fall on `times` equal requests.
    #[cold]
    fn keep_sample(&mut self, mut times: u64, sample: Sample) {
        while times >= self.until_sample {
            times -= self.until_sample;
            self.until_sample = EVERY;
            if self.samples.len() < SAMPLES {
                self.samples.push(sample);
            }
        }
        self.until_sample -= times;
    }

    /// Total time that the requests of each datapath spent in each part, in picoseconds.
    pub fn sums(&self) -> [[u64; PARTS]; 4] {
        std::array::from_fn(|p| {
            let [start, cha, admitted, _, _, queued, data, _] = self.within[p];
            let borders = [start, cha, admitted, queued, data, self.ends[p]];
            let mut sums = self.others[p];
            for (part, ends) in WITHIN_NODE.into_iter().zip(borders.windows(2)) {
                sums[part] += ends[1].wrapping_sub(ends[0]);
            }
            sums
        })
    }

    /// Records that the home agent has admitted a request of `path` that had waited for `waited`.
    #[inline]
    pub fn record_admission(&mut self, path: Path, waited: Time) {
        let a = &mut self.admitted[usize::from(path.is_peripheral())];
        a.0 += 1;
        a.1 += waited.0;
    }

    /// Mean wait for admission, in ns, of cores (0) or devices (1).
    pub fn admission_ns(&self, source: usize) -> Option<f64> {
        let (n, ps) = self.admitted[source];
        (n > 0).then(|| ps.to_f64() / n.to_f64() / 1e3)
    }

    /// Begins the measured window at `now`.
    pub fn restart(&mut self, now: Time) {
        self.count = [0; 4];
        self.within = [[0; 8]; 4];
        self.ends = [0; 4];
        self.others = [[0; PARTS]; 4];
        self.admitted = [(0, 0); 2];
        self.samples.clear();
        self.under_way.iter_mut().for_each(|d| d.restart(now));
        self.at_home_agent.iter_mut().for_each(|d| d.restart(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::RandomStream;

    #[test]
    fn sums_of_milestones_give_what_the_parts_of_each_request_took() {
        let mut dice = RandomStream::new(7, "paths", 0);
        let (mut paths, mut expected) = (Paths::default(), [0; PARTS]);
        for i in 0..500 {
            let mut at = dice.below(1 << 40);
            let mut later = || {
                at += dice.below(1 << 20);
                Time(at)
            };
            let (start, cha, admitted) = (later(), later(), later());
            // Every fifth request goes to another node, and every seventh ends together with two others.
            let [home, owner] = if i % 5 == 0 { [later(), later()] } else { [Time::ZERO; 2] };
            let (queued, data) = (later(), later());
            let back = if i % 5 == 0 { later() } else { Time::ZERO };
            let milestones = Milestones { start, cha, admitted, home, owner, queued, data, back };
            let (n, end) = (if i % 7 == 0 { 3 } else { 1 }, later());
            paths.under_way[Path::P2mRead.index()].force_many(n, start);
            paths.record(Path::P2mRead, n, &milestones, end);
            let took = Sample { path: Path::P2mRead, milestones, end }.segments();
            expected.iter_mut().zip(took).for_each(|(sum, ps)| *sum += ps * u64::from(n));
        }
        assert_eq!(paths.sums()[Path::P2mRead.index()], expected);
        assert!(expected.iter().all(|ps| *ps > 0), "all parts were there");
    }
}
