//! Memory controllers and DRAM: finite read and write queues, FR-FCFS scheduling of
//! every DRAM command, banks, bank groups, ranks and refresh.
//!
//! Event-driven: the caller pushes requests, calls [`Controller::advance`] when told to,
//! and receives the time at which each read's data is there.

mod banks;
mod channel;
mod choice;
pub mod gauge;
pub mod mapping;
mod on_arrival;
mod scheduler;
mod staged;
pub mod standards;
#[cfg(test)]
mod tests;
pub mod timing;
mod transaction;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::region::{ALIGNMENT, PAGE};
use crate::kernel::units::Size;
use crate::kernel::{Int, LineAddr, Time, TxnId};
use channel::Channel;
use mapping::{Decoded, Mapper};
use standards::{Device, DeviceWidth, Standard};
use timing::{Timing, TimingOverride};

/// What happens to a row once its data was read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PagePolicy {
    /// Stays open until another row of the bank is wanted.
    Open,
    /// Closed with every access (auto-precharge).
    Closed,
    /// Closed when the queue holds no further hit but another row's request for the bank.
    OpenAdaptive,
    /// Closed when the queue holds no further hit.
    ClosedAdaptive,
}

/// Order among the commands that are possible at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scheduler {
    /// Row hits first, then the oldest; a row with waiting hits is not closed before the
    /// age cap.
    HitFirst,
    /// The oldest request whose next command is possible, whatever the command: a
    /// conflict may close a row whose hits wait for the bus. Ramulator 2's FR-FCFS.
    FirstReady,
    /// One request at a time, all its commands at once, data in the order of these
    /// decisions: seamless row hits, rows that open behind the running burst, other hits,
    /// the earliest bank. gem5's FR-FCFS. The age cap has no effect.
    Transaction,
    /// One column command after the other, the oldest that is possible of the first of each bank. Rows open as soon as
    /// their request has come, in either mode; a read waits for the turnaround after a write of any rank. zsim's
    /// FR-FCFS. The age cap, `write_idle`, `writes_yield` and the burst lengths have no effect.
    OnArrival,
}

impl Scheduler {
    /// Whether a choice is a request with all its commands, and no command waits in between.
    fn whole_requests(self) -> bool {
        matches!(self, Scheduler::Transaction | Scheduler::OnArrival)
    }
}

/// When a request's queue entry becomes free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Release {
    /// With the activate that opens its row (Ramulator 2), or the column command of a hit.
    Activate,
    /// With the column command.
    Column,
    /// Reads with the end of their data (gem5), writes with the column command.
    Data,
}

/// Where requests wait that come while a channel's queue is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Overflow {
    /// Reads and writes apart, each for their own queue.
    #[default]
    Apart,
    /// In one order. The first goes on after a command, if both queues have room; whoever comes while they have goes
    /// ahead. zsim's.
    Shared,
}

/// The largest `alignment`.
const LARGEST_ALIGNMENT: Size = Size(4 << 20);

/// One memory system: standard, organisation, controller policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DramSpec {
    /// Memory type and speed bin.
    pub standard: Standard,
    /// Width of a device; x16 parts have half the bank groups and slower activates.
    pub device_width: DeviceWidth,
    /// Channels, 1 to 16; need not be a power of two.
    pub channels: u32,
    /// Ranks per channel: 1, 2, 4 or 8.
    pub ranks: u32,
    /// Bank groups per rank; 0 takes the standard's.
    pub bank_groups: u32,
    /// Banks per group; 0 takes the standard's.
    pub banks_per_group: u32,
    /// Fields from the top address bit down (`rorababgcoch`, `RoBaRaCoCh`), `MOP4CLXOR`,
    /// or `skylake`: the hash of that processor with two channels of two ranks; or `zsim`: an XOR of the line number's
    /// 16-bit groups picks the channel, its lowest bits the bank.
    pub mapping: String,
    /// Hashes higher address bits into the channel.
    pub channel_hash: bool,
    /// Permutation-based interleaving: low row bits are XORed into bank and group.
    pub bank_hash: bool,
    /// What happens to a row after an access.
    pub page_policy: PagePolicy,
    /// Time after which a row that nobody uses or waits for is closed; 0 leaves it open.
    pub page_idle_ns: f64,
    /// Accesses after which a row is closed; 0 is no limit (gem5 uses 16).
    pub row_access_limit: u32,
    /// Order among possible commands.
    pub scheduler: Scheduler,
    /// Age in ns at which a request may close a row that still has hits; 0 is no cap.
    pub age_cap_ns: u64,
    /// Read queue entries per channel.
    pub rpq: u32,
    /// Write queue entries per channel.
    pub wpq: u32,
    /// Entries of a command queue per bank behind these two (DRAMsim3 has 8); 0 is none, and
    /// the controller picks from the read or write queue itself. With it, bank queues take
    /// turns, write mode is the handover of as many writes as waited when it began, and
    /// `scheduler`, `entry_release`, `age_cap_ns`, `page_idle_ns` and the burst lengths have no effect.
    pub bank_queue: u32,
    /// Row accesses after which the oldest request of a bank queue may close the row although
    /// younger hits wait (DRAMsim3 has 4); 0 is no limit. Only with `bank_queue`.
    pub row_hit_limit: u32,
    /// Read queue entries from which on the read queue counts as full in `rpq_full_frac`; 0 takes `rpq`.
    pub rpq_full_mark: u32,
    /// The same of the write queue.
    pub wpq_full_mark: u32,
    /// When an entry of these queues becomes free.
    pub entry_release: Release,
    /// Where requests wait that come while a queue is full.
    pub overflow: Overflow,
    /// Write mode begins when the write queue holds more than this fraction.
    pub write_high: f64,
    /// Write mode ends when it holds less than this fraction and reads wait.
    pub write_low: f64,
    /// With no read waiting, write mode begins above this fraction.
    pub write_idle: f64,
    /// Writes sent for want of reads make room at once when a read comes, unless the queue holds more than
    /// `write_high` by then.
    pub writes_yield: bool,
    /// While a rank refreshes, reads or writes that all wait for it give way to the other direction. Without, the channel
    /// stays in its mode.
    pub refresh_turns: bool,
    /// Reads to serve before write mode may begin, unless none is left.
    pub min_read_burst: u32,
    /// Writes to serve before write mode may end, unless none is left.
    pub min_write_burst: u32,
    /// Writes after which write mode ends when reads wait; 0 is no limit.
    pub max_write_burst: u32,
    /// All-bank refresh, ranks in turn.
    pub refresh: bool,
    /// Front-end and back-end pipeline of the controller, added to each read, in ns.
    pub static_latency_ns: f64,
    /// Rings, buffers and tables begin at multiples of this, back to back: a power of two from 4 KiB to 4 MiB.
    pub alignment: Size,
    /// Timings that differ from the standard's.
    pub timing: TimingOverride,
}

impl Default for DramSpec {
    fn default() -> Self {
        DramSpec {
            standard: Standard::Ddr4_3200,
            device_width: DeviceWidth::X8,
            channels: 4,
            ranks: 1,
            bank_groups: 0,
            banks_per_group: 0,
            mapping: "RoBaRaCoCh".into(),
            channel_hash: false,
            bank_hash: false,
            page_policy: PagePolicy::Open,
            page_idle_ns: 0.0,
            row_access_limit: 0,
            scheduler: Scheduler::HitFirst,
            age_cap_ns: 2000,
            rpq: 32,
            wpq: 32,
            bank_queue: 0,
            row_hit_limit: 0,
            rpq_full_mark: 0,
            wpq_full_mark: 0,
            entry_release: Release::Column,
            overflow: Overflow::Apart,
            write_high: 0.8,
            write_low: 0.2,
            write_idle: 0.0,
            writes_yield: false,
            refresh_turns: false,
            min_read_burst: 0,
            min_write_burst: 0,
            max_write_burst: 0,
            refresh: true,
            static_latency_ns: 0.0,
            alignment: ALIGNMENT,
            timing: TimingOverride::default(),
        }
    }
}

/// Organisation of one channel after overrides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub ranks: u32,
    pub bank_groups: u32,
    pub banks_per_group: u32,
    pub lines_per_row: u32,
    pub rows: u32,
}

/// A 64 B transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Comes back with the completion.
    pub token: Option<TxnId>,
    /// Address / 64.
    pub line: LineAddr,
    pub write: bool,
    /// Comes back with the completion.
    pub class: u8,
}

/// What a request found in its bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOutcome {
    Hit,
    /// The bank was closed.
    Miss,
    /// Another row was open.
    Conflict,
    /// A queued write held the line.
    Forwarded,
}

impl RowOutcome {
    /// The position of the outcome in tables by outcome.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// A read whose data arrives at `at`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    pub token: Option<TxnId>,
    pub class: u8,
    pub outcome: RowOutcome,
    pub at: Time,
}

/// Counters of one channel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// `[read, write][hit, miss, conflict]`.
    pub rows: [[u64; 3]; 2],
    pub reads_forwarded: u64,
    pub writes_merged: u64,
    pub activates: u64,
    pub precharges: u64,
    pub auto_precharges: u64,
    pub refreshes: u64,
    /// Changes between read mode and write mode, both ways.
    pub mode_switches: u64,
    /// Times that write mode ended, not counting writes that only filled gaps between reads.
    pub drains: u64,
    /// Time the data bus carried data.
    pub bus_busy_ps: u64,
    pub write_mode_ps: u64,
    /// Occupancy integrals of the read and the write queue: divided by time the mean
    /// occupancy, by arrivals the mean residence.
    pub entry_ps: [u64; 2],
    /// Sum over reads from acceptance to the end of their data, static latency excluded.
    pub read_latency_ps: u64,
    pub bank_accesses: Vec<u64>,
    /// Time that the read and the write queue held their full mark or more, and all they can.
    pub marked_ps: [u64; 2],
    pub full_ps: [u64; 2],
    /// Samples of how unevenly reads spread over banks.
    pub deviation: gauge::Deviation,
}

impl Stats {
    #[inline]
    fn column(&mut self, dir: usize, outcome: RowOutcome, burst: u64, bank: usize) {
        self.rows[dir][outcome.index()] += 1;
        self.bus_busy_ps += burst;
        self.bank_accesses[bank] += 1;
    }
    /// Reads that DRAM served.
    pub fn reads(&self) -> u64 {
        self.rows[0].iter().sum()
    }
    /// Writes that DRAM served.
    pub fn writes(&self) -> u64 {
        self.rows[1].iter().sum()
    }
    /// Bytes moved over the data bus.
    pub fn bytes(&self) -> u64 {
        64 * (self.reads() + self.writes())
    }
}

/// All channels of a memory system.
#[derive(Clone, Debug)]
pub struct Controller {
    mapper: Mapper,
    channels: Vec<Channel>,
    of_node: usize,
}

impl Controller {
    /// # Errors
    /// One sentence that names the key, its value and what would be valid.
    pub fn new(spec: &DramSpec) -> Result<Controller, String> {
        Controller::of_nodes(spec, 1)
    }

    /// The channels of several nodes, each with such a memory system; those of a node follow each other.
    ///
    /// # Errors
    /// As `new`.
    pub fn of_nodes(spec: &DramSpec, nodes: u32) -> Result<Controller, String> {
        let device = spec.standard.device(spec.device_width);
        let shape = spec.shape(&device)?;
        let n = spec.channels * device.subchannels;
        let mapper = Mapper::new(&spec.mapping, n, spec.channel_hash, spec.bank_hash, &shape)?;
        let timing = spec.timing(&device)?;
        let channels = (0..n * nodes).map(|_| Channel::new(spec, &shape, timing.clone())).collect();
        Ok(Controller { mapper, channels, of_node: n.to_usize() })
    }

    /// Number of independent channels; sub-channels and pseudo-channels count.
    pub fn channels(&self) -> usize {
        self.channels.len()
    }

    /// Channels of one node.
    pub fn channels_of_node(&self) -> usize {
        self.of_node
    }

    /// Channel of its node and place of a line.
    #[inline]
    pub fn route(&self, line: LineAddr) -> (usize, Decoded) {
        let (ch, inner) = self.mapper.channel(line);
        (ch, self.mapper.decode(inner))
    }

    /// Whether the queue has room, as of the last `push` or `advance` of the channel: when
    /// it has not, `advance` to the present before believing it.
    #[inline]
    pub fn can_accept(&self, ch: usize, write: bool) -> bool {
        self.channels[ch].can_accept(write)
    }

    /// Takes a request in; the caller has checked [`Controller::can_accept`]. A write is
    /// acknowledged by this; a read of a line that a queued write holds completes at once.
    /// Whatever the channel had to do before `now` is done first, in ignorance of the
    /// request.
    #[inline]
    pub fn push(&mut self, now: Time, ch: usize, req: Request, at: Decoded, done: &mut Vec<Completion>) {
        let c = &mut self.channels[ch];
        if c.wake.min(c.next_release()) < now.0 {
            c.advance(now.0 - 1, done);
        }
        c.push(now.0, req, at, done);
    }

    /// Issues every command possible up to `now`; completions of reads go to `done`, none
    /// earlier than `now` if [`Controller::wake`] was heeded. True when queue entries
    /// became free.
    pub fn advance(&mut self, now: Time, ch: usize, done: &mut Vec<Completion>) -> bool {
        let c = &mut self.channels[ch];
        c.wake.min(c.next_release()) <= now.0 && c.advance(now.0, done)
    }

    /// When to call [`Controller::advance`] at the latest: for a caller that waits for a
    /// queue entry (`waiting`) the earliest time at which one can become free, for any other the earliest
    /// time at which data not yet announced can arrive, several commands later.
    #[inline]
    pub fn wake(&self, ch: usize, waiting: bool) -> Option<Time> {
        let c = &self.channels[ch];
        let t = if waiting { c.next_entry() } else { c.wake.saturating_add(c.t.cl + c.t.burst) };
        (t != channel::NEVER).then_some(Time(t))
    }

    /// Counters of a channel as of `now`.
    pub fn stats(&self, now: Time, ch: usize) -> Stats {
        self.channels[ch].stats(now.0)
    }

    pub fn timing(&self) -> &Timing {
        &self.channels[0].t
    }
}

impl DramSpec {
    /// Peak bandwidth of all channels, in GB/s (10^9 bytes per second).
    pub fn peak_gbs(&self) -> f64 {
        let d = self.standard.device(self.device_width);
        let per_line_ns = (d.burst * d.tck_ps).to_f64() / 1e3;
        f64::from(self.channels * d.subchannels) * 64.0 / per_line_ns
    }

    /// The timings, if a channel that keeps to them gets anything done.
    fn timing(&self, d: &Device) -> Result<Timing, String> {
        self.timing.check()?;
        let t = Timing::new(d, &self.timing);
        let least = t.longest_access() + t.rfc;
        if self.refresh && t.refi <= least {
            return Err(format!(
                "timing.refi_ps = {} leaves no time for an access beside refreshes of rfc_ps = {}; give more than {least}",
                t.refi, t.rfc
            ));
        }
        Ok(t)
    }

    fn shape(&self, d: &Device) -> Result<Shape, String> {
        let or = |v: u32, d: u32| if v == 0 { d } else { v };
        let s = Shape {
            ranks: self.ranks,
            bank_groups: or(self.bank_groups, d.bank_groups),
            banks_per_group: or(self.banks_per_group, d.banks_per_group),
            lines_per_row: d.lines_per_row,
            rows: d.rows,
        };
        if !(1..=16).contains(&self.channels) {
            return Err(format!("channels = {} is outside 1 to 16", self.channels));
        }
        for (key, v) in [("ranks", s.ranks), ("bank_groups", s.bank_groups), ("banks_per_group", s.banks_per_group)] {
            if !v.is_power_of_two() {
                let near = v.clamp(1, 64).next_power_of_two();
                return Err(format!("{key} = {v} must be a power of two, such as {near}"));
            }
        }
        let banks = [s.ranks, s.bank_groups, s.banks_per_group].into_iter().fold(1, u32::saturating_mul);
        if banks > 64 {
            return Err(format!("ranks = {} makes {banks} banks per channel, more than the 64 supported", s.ranks));
        }
        for (key, v) in [("rpq", self.rpq), ("wpq", self.wpq)] {
            if !(1..=4096).contains(&v) {
                return Err(format!("{key} = {v} is outside 1 to 4096"));
            }
        }
        let a = self.alignment;
        if !a.0.is_power_of_two() || !(PAGE..=LARGEST_ALIGNMENT).contains(&a) {
            return Err(format!("alignment = \"{a}\" is not a power of two within {PAGE} to {LARGEST_ALIGNMENT}"));
        }
        let unit = |f: f64| (0.0..=1.0).contains(&f);
        for (key, ns) in [("page_idle_ns", self.page_idle_ns), ("static_latency_ns", self.static_latency_ns)] {
            if !(0.0..=1e6).contains(&ns) {
                return Err(format!("{key} = {ns} is outside 0 to 1000000"));
            }
        }
        if !(unit(self.write_high) && unit(self.write_low) && unit(self.write_idle)) || self.write_low > self.write_high
        {
            return Err(format!(
                "write_low = {} and write_high = {} must be fractions with write_low <= write_high",
                self.write_low, self.write_high
            ));
        }
        Ok(s)
    }
}
