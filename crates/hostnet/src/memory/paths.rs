//! Where the time of a request goes: the hops between its source and the answer, as milestones that
//! tile its life, and the home agent's occupancy by source and direction (TOR counters).

use super::Op;
use crate::flow::domain::Booked;
use crate::flow::Domain;
use crate::kernel::{Int, Time};

/// The four datapaths of the host network (SIGCOMM'24, section 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Path {
    C2mRead,
    C2mWrite,
    P2mRead,
    P2mWrite,
}
pub const PATHS: [(Path, &str); 4] = [
    (Path::C2mRead, "c2m_read"),
    (Path::C2mWrite, "c2m_write"),
    (Path::P2mRead, "p2m_read"),
    (Path::P2mWrite, "p2m_write"),
];

/// What a path's latency is made of, in order.
pub const SEGMENTS: [&str; PARTS] =
    ["to_cha", "cha_admission", "to_home", "snoop", "mc_queue_wait", "mc_and_dram", "link_back", "return"];
/// How many parts that are.
pub const PARTS: usize = 8;

/// The parts that a request has that never leaves its node.
const WITHIN_NODE: [usize; 5] = [0, 1, 4, 5, 7];

/// Whether a part is there only between nodes: a request's way to its home, a snoop of the other node, the answer's way.
pub fn is_between_nodes(part: usize) -> bool {
    matches!(SEGMENTS[part], "to_home" | "snoop" | "link_back")
}

impl Path {
    /// The position of the path in tables by path.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self as usize
    }
    pub fn of(op: Op) -> Path {
        match op {
            Op::Read | Op::Own | Op::Uncached => Path::C2mRead,
            Op::Stream | Op::WriteBack => Path::C2mWrite,
            Op::DmaRead => Path::P2mRead,
            Op::DmaWrite => Path::P2mWrite,
        }
    }
    pub fn is_peripheral(self) -> bool {
        matches!(self, Path::P2mRead | Path::P2mWrite)
    }
}

/// When a request passed the borders between its hops. A hop that it skips takes no time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Marks {
    /// The source's credit was taken.
    pub start: Time,
    /// Arrival at the home agent.
    pub cha: Time,
    /// The home agent took it in; between nodes, the agent of the own one did.
    pub admitted: Time,
    /// The home agent in another node took it in; earlier than `admitted` where it stays in its node.
    pub home: Time,
    /// Caches of another node give the data; earlier than `home` where they do not.
    pub owner: Time,
    /// The channel's queue took it in.
    pub queued: Time,
    /// Data of a read at the controller's exit; for a write, `queued`.
    pub data: Time,
    /// The answer has crossed the link; earlier than `data` where it does not.
    pub back: Time,
}

impl Marks {
    /// Of a request that left at `start` and is at the home agent at `cha`; the rest is to come.
    pub fn at(start: Time, cha: Time) -> Marks {
        Marks { start, cha, admitted: cha, queued: cha, data: cha, ..Marks::default() }
    }

    /// The milestones in order.
    #[inline(always)]
    fn times(&self) -> [u64; 8] {
        let Marks { start, cha, admitted, home, owner, queued, data, back } = *self;
        [start, cha, admitted, home, owner, queued, data, back].map(|t| t.0)
    }

    /// Whether the request has not left its node.
    #[inline]
    fn within_node(&self) -> bool {
        (self.home.0 | self.owner.0 | self.back.0) == 0
    }
}

/// One request, finished at `end`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    pub path: Path,
    pub marks: Marks,
    pub end: Time,
}

impl Sample {
    #[inline]
    pub fn segments(&self) -> [u64; PARTS] {
        let m = &self.marks;
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

/// Samples kept per window, and how many requests share one.
const SAMPLES: usize = 1 << 12;
const EVERY: u64 = 61;

/// Requests of each path that ended in the window, and what their time went to.
#[derive(Clone, Debug)]
pub struct Paths {
    pub count: [u64; 4],
    /// Sums of the milestones (see `Marks::times`) and of the ends of requests that ended one by one in their node. They
    /// may wrap.
    within: [[u64; 8]; 4],
    ends: [u64; 4],
    /// What the parts of all others took.
    others: [[u64; PARTS]; 4],
    /// Requests under way by path, from credit to credit.
    pub under_way: [Domain; 4],
    /// Requests that the home agent holds, by path: occupancy, inserts, residence.
    pub held: [Booked; 4],
    /// Requests that the home agent admitted and the time they had waited: cores, devices.
    pub admitted: [(u64, u64); 2],
    pub samples: Vec<Sample>,
    /// Requests up to the next that is kept.
    until_sample: u64,
}

impl Default for Paths {
    fn default() -> Paths {
        let open = || std::array::from_fn(|_| Domain::new(u32::MAX));
        Paths {
            count: [0; 4],
            within: [[0; 8]; 4],
            ends: [0; 4],
            others: [[0; PARTS]; 4],
            under_way: open(),
            held: std::array::from_fn(|_| Booked::unbounded()),
            admitted: [(0, 0); 2],
            samples: Vec::with_capacity(SAMPLES),
            until_sample: EVERY,
        }
    }
}

impl Paths {
    /// `n` requests with these milestones end.
    #[inline(always)]
    pub fn end(&mut self, path: Path, n: u32, marks: &Marks, end: Time) {
        if n != 1 || !marks.within_node() {
            return self.many_end(path, n, marks, end);
        }
        let p = path.index();
        self.count[p] += 1;
        // The milestones are summed and not what lies between them: these are additions of vectors for the host.
        self.within[p].iter_mut().zip(marks.times()).for_each(|(sum, at)| *sum = sum.wrapping_add(at));
        self.ends[p] = self.ends[p].wrapping_add(end.0);
        self.under_way[p].give(end, marks.start);
        if self.until_sample > 1 {
            self.until_sample -= 1;
        } else {
            self.keep(1, Sample { path, marks: *marks, end });
        }
    }

    /// The same for any number, and for requests that have left their node.
    #[inline(never)]
    fn many_end(&mut self, path: Path, n: u32, marks: &Marks, end: Time) {
        let (p, times) = (path.index(), u64::from(n));
        self.count[p] += times;
        let took = Sample { path, marks: *marks, end }.segments();
        self.others[p].iter_mut().zip(took).for_each(|(sum, ps)| *sum += ps * times);
        self.under_way[p].give_many(n, end, marks.start);
        if times < self.until_sample {
            self.until_sample -= times;
        } else {
            self.keep(times, Sample { path, marks: *marks, end });
        }
    }

    /// Keeps what `times` equal requests give of samples.
    #[cold]
    fn keep(&mut self, mut times: u64, sample: Sample) {
        while times >= self.until_sample {
            times -= self.until_sample;
            self.until_sample = EVERY;
            if self.samples.len() < SAMPLES {
                self.samples.push(sample);
            }
        }
        self.until_sample -= times;
    }

    /// What the parts of each path's requests took, all together, in picoseconds.
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

    #[inline]
    pub fn admit(&mut self, path: Path, waited: Time) {
        let a = &mut self.admitted[usize::from(path.is_peripheral())];
        a.0 += 1;
        a.1 += waited.0;
    }

    /// Mean wait for admission in ns: cores (0) or devices (1).
    pub fn admission_ns(&self, source: usize) -> Option<f64> {
        let (n, ps) = self.admitted[source];
        (n > 0).then(|| ps.to_f64() / n.to_f64() / 1e3)
    }

    pub fn restart(&mut self, now: Time) {
        self.count = [0; 4];
        self.within = [[0; 8]; 4];
        self.ends = [0; 4];
        self.others = [[0; PARTS]; 4];
        self.admitted = [(0, 0); 2];
        self.samples.clear();
        self.under_way.iter_mut().for_each(|d| d.restart(now));
        self.held.iter_mut().for_each(|d| d.restart(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Stream;

    #[test]
    fn sums_of_milestones_give_what_the_parts_of_each_request_took() {
        let mut dice = Stream::new(7, "paths", 0);
        let (mut paths, mut expected) = (Paths::default(), [0; PARTS]);
        for i in 0..500 {
            let mut at = dice.below(1 << 40);
            let mut later = || {
                at += dice.below(1 << 20);
                Time(at)
            };
            let (start, cha, admitted) = (later(), later(), later());
            // Every fifth goes to another node, every seventh ends with two others.
            let [home, owner] = if i % 5 == 0 { [later(), later()] } else { [Time::ZERO; 2] };
            let (queued, data) = (later(), later());
            let back = if i % 5 == 0 { later() } else { Time::ZERO };
            let marks = Marks { start, cha, admitted, home, owner, queued, data, back };
            let (n, end) = (if i % 7 == 0 { 3 } else { 1 }, later());
            paths.under_way[Path::P2mRead.index()].force_many(n, start);
            paths.end(Path::P2mRead, n, &marks, end);
            let took = Sample { path: Path::P2mRead, marks, end }.segments();
            expected.iter_mut().zip(took).for_each(|(sum, ps)| *sum += ps * u64::from(n));
        }
        assert_eq!(paths.sums()[Path::P2mRead.index()], expected);
        assert!(expected.iter().all(|ps| *ps > 0), "all parts were there");
    }
}
