//! Memory controllers and DRAM: finite read and write queues, FR-FCFS scheduling of every DRAM command, banks, bank
//! groups, ranks and refresh.
//!
//! The model is event-driven: the caller pushes requests, calls [`DramController::advance`] at the times that
//! [`DramController::wake`] names, and receives the time at which the data of each read arrives.

mod banks;
mod channel;
mod choice;
pub mod gauge;
pub mod mapping;
mod on_arrival;
pub mod plan;
pub mod request_trace;
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
use crate::kernel::{ChannelId, Due, IdVec, Int, LineAddr, NodeId, Real, Time, TxnId};
use channel::Channel;
use mapping::{Decoded, Mapper};
use on_arrival::OnArrival;
use plan::{DramPlan, SchedulerPlan};
use request_trace::RequestTrace;
use scheduler::{CommandOrder, Commands};
use staged::BankQueues;
use standards::{DeviceWidth, DramDevice, Standard};
use timing::{DramTiming, TimingOverride};
use transaction::Transactions;

/// Treatment of an open row after its data was read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PagePolicy {
    /// A row stays open until a request needs another row of the bank.
    Open,
    /// A row is closed with every access (auto-precharge).
    Closed,
    /// A row is closed when the queue holds no further hit but a request for another row of the bank.
    OpenAdaptive,
    /// A row is closed when the queue holds no further hit.
    ClosedAdaptive,
}

/// Order among the commands that are possible at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scheduler {
    /// Row hits first, then the oldest request. A row with waiting hits is not closed before `age_cap_ns`.
    HitFirst,
    /// The oldest request whose next command is possible, whatever the command: a conflict may close a row although
    /// hits for that row wait for the bus. This is Ramulator 2's FR-FCFS.
    FirstReady,
    /// One request at a time with all its commands. Data follows in the order of these decisions: seamless row hits
    /// come first, then rows that open while the current burst runs, then other hits, then the bank that is ready
    /// first. This is gem5's FR-FCFS.
    Transaction,
    /// One column command after the other: the oldest that is possible among the first requests of all banks. A row
    /// opens as soon as its request has arrived, in read mode and in write mode; a read waits for the turnaround after
    /// a write of any rank. This is zsim's FR-FCFS.
    OnArrival,
}

impl Scheduler {
    /// The word by which a scenario names the scheduler.
    const fn word(self) -> &'static str {
        match self {
            Scheduler::HitFirst => "hit_first",
            Scheduler::FirstReady => "first_ready",
            Scheduler::Transaction => "transaction",
            Scheduler::OnArrival => "on_arrival",
        }
    }
}

/// Time at which a request's queue entry becomes free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntryRelease {
    /// The activate that opens the request's row frees the entry (Ramulator 2), or the column command of a row hit.
    Activate,
    /// The column command of the request frees the entry; where the scheduler decides on all commands of a request at once
    /// (`transaction`, `on_arrival`), that decision does, as in gem5's `MemCtrl` and in zsim's `trySchedule`.
    Column,
    /// The end of its data frees the entry of a read (gem5); that of a write becomes free as with `column`.
    Data,
}

/// Order of requests that arrive while a channel's queue is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Overflow {
    /// Reads and writes wait separately, each for their own queue.
    #[default]
    Separate,
    /// Reads and writes wait in one order. The first request proceeds after a command if both queues have room; a
    /// request that arrives while both have room overtakes the waiting requests (zsim).
    Shared,
}

/// Largest valid `alignment`.
const LARGEST_ALIGNMENT: Size = Size(4 << 20);

/// Memory of a node: standard, organisation, and policy of the memory controllers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DramSpec {
    /// Memory type and speed bin.
    pub standard: Standard,
    /// Width of a DRAM device; x16 devices have half the bank groups and slower activates.
    pub device_width: DeviceWidth,
    /// Number of channels, 1 to 16; need not be a power of two.
    pub channels: u32,
    /// Number of ranks per channel: 1, 2, 4 or 8.
    pub ranks: u32,
    /// Address mapping: the fields from the top address bit down (`rorababgcoch`, `RoBaRaCoCh`), or `MOP4CLXOR`, or the
    /// hash of a processor, without `quirks.channel_hash` and `bank_hash`: `skylake` (x8 DDR4, two channels of two
    /// ranks), `skylake_sp` and `skylake_sp_fine` (servers; x8 DDR4, 1, 2, 4, 8 or 16 channels of up to four ranks), or
    /// `zsim`, where an XOR of the line number's 16-bit groups selects the channel, and the lowest bits select the
    /// bank.
    pub mapping: String,
    /// Treatment of an open row after an access.
    pub page_policy: PagePolicy,
    /// Order among the commands that are possible at the same time.
    pub scheduler: Scheduler,
    /// Number of read queue entries per channel.
    pub rpq: u32,
    /// Number of write queue entries per channel.
    pub wpq: u32,
    /// Fraction of `wpq` above which write mode begins.
    pub write_high: f64,
    /// Fraction of `wpq` below which write mode ends when reads wait. Not with `quirks.bank_queue`.
    pub write_low: f64,
    /// Latency in ns of the controller's front-end and back-end pipeline, added to each read.
    pub static_latency_ns: f64,
    /// Habits of the memory controllers and the DRAM, which a platform sets; scenarios leave them alone.
    pub quirks: DramQuirks,
}

/// Named set of quirks of a memory controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DramPreset {
    /// Memory controller of Xeon servers since Skylake, as far as Understanding the Host Network observes it.
    SkylakeSp,
    /// Detailed memory controller of zSim.
    Zsim,
    /// Memory controller of gem5.
    Gem5,
}

/// Habits of memory controllers and DRAM that processors and simulators differ in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DramQuirks {
    /// Named set of quirks that the other keys of this table override. When absent, the defaults of the keys apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<DramPreset>,
    /// Number of bank groups per rank; 0 takes the number of `standard`.
    pub bank_groups: u32,
    /// Number of banks per bank group; 0 takes the number of `standard`.
    pub banks_per_group: u32,
    /// Whether higher address bits are hashed into the channel.
    pub channel_hash: bool,
    /// Whether low row bits are XORed into bank and bank group (permutation-based interleaving).
    pub bank_hash: bool,
    /// Time in ns after which a row that no request uses or waits for is closed; 0 leaves the row open. Not with
    /// `bank_queue` or `page_policy = "closed"`.
    pub page_idle_ns: f64,
    /// Number of accesses after which a row is closed; 0 means no limit (gem5 uses 16). Not with `page_policy = "closed"`.
    pub row_access_limit: u32,
    /// Age in ns at or above which a request may close a row that still has hits; 0 means never. For
    /// `scheduler = "hit_first"` and `"first_ready"`.
    pub age_cap_ns: u64,
    /// Number of entries of a command queue for each bank behind the read and write queues (DRAMsim3 has 8); 0 means
    /// that the controller serves the read and write queues directly. Command queues take the place of `scheduler`: the
    /// banks take turns, and write mode transfers as many writes as waited when write mode began.
    pub bank_queue: u32,
    /// Number of row accesses after which the oldest request of a bank's command queue may close the row although
    /// younger hits wait (DRAMsim3 has 4); 0 means no limit. For `bank_queue` above 0.
    pub row_hit_limit: u32,
    /// Number of read queue entries at or above which the read queue counts as full in `rpq_full_frac`; with 0, the
    /// value of `rpq` applies.
    pub rpq_full_mark: u32,
    /// Number of write queue entries at or above which the write queue counts as full in `wpq_full_frac`; with 0, the
    /// value of `wpq` applies.
    pub wpq_full_mark: u32,
    /// Time at which an entry of the read or write queue becomes free. `activate` is for `scheduler = "hit_first"` and
    /// `"first_ready"`. Not with `bank_queue`.
    pub entry_release: EntryRelease,
    /// Order of requests that arrive while a queue is full.
    pub overflow: Overflow,
    /// Fraction of `wpq` above which write mode begins when no read waits. Not for `scheduler = "on_arrival"`.
    pub write_idle: f64,
    /// Whether writes that are sent because no read waits yield immediately to an arriving read, unless the write queue
    /// then holds more than `write_high`. For `scheduler = "hit_first"`, `"first_ready"` and `"transaction"`, as
    /// `refresh_turns` and the burst lengths are.
    pub writes_yield: bool,
    /// Whether the channel changes direction while all its reads or all its writes wait for a rank that refreshes;
    /// otherwise the channel stays in its mode. Belongs to the schedulers that have `writes_yield`.
    pub refresh_turns: bool,
    /// Number of reads to serve before write mode may begin, unless no read is left. Belongs to the schedulers that
    /// have `writes_yield`.
    pub min_read_burst: u32,
    /// Number of writes to serve before write mode may end, unless no write is left. Belongs to the schedulers that
    /// have `writes_yield`.
    pub min_write_burst: u32,
    /// Number of writes after which write mode ends when reads wait; 0 means no limit. Belongs to the
    /// schedulers that have `writes_yield`.
    pub max_write_burst: u32,
    /// Whether all-bank refreshes take place, rank by rank.
    pub refresh: bool,
    /// Alignment of the start of rings, buffers and tables in physical memory, where they lie back to back: a power of
    /// two from 4 KiB to 4 MiB.
    pub alignment: Size,
    /// Timing parameters that differ from those of `standard`.
    pub timing: TimingOverride,
}

impl Default for DramSpec {
    fn default() -> Self {
        DramSpec {
            standard: Standard::Ddr4_3200,
            device_width: DeviceWidth::X8,
            channels: 4,
            ranks: 1,
            mapping: "RoBaRaCoCh".into(),
            page_policy: PagePolicy::Open,
            scheduler: Scheduler::HitFirst,
            rpq: 32,
            wpq: 32,
            write_high: 0.8,
            write_low: 0.2,
            static_latency_ns: 0.0,
            quirks: DramQuirks::default(),
        }
    }
}

impl Default for DramQuirks {
    fn default() -> DramQuirks {
        DramQuirks {
            preset: None,
            bank_groups: 0,
            banks_per_group: 0,
            channel_hash: false,
            bank_hash: false,
            page_idle_ns: 0.0,
            row_access_limit: 0,
            age_cap_ns: 2000,
            bank_queue: 0,
            row_hit_limit: 0,
            rpq_full_mark: 0,
            wpq_full_mark: 0,
            entry_release: EntryRelease::Column,
            overflow: Overflow::Separate,
            write_idle: 0.0,
            writes_yield: false,
            refresh_turns: false,
            min_read_burst: 0,
            min_write_burst: 0,
            max_write_burst: 0,
            refresh: true,
            alignment: ALIGNMENT,
            timing: TimingOverride::default(),
        }
    }
}

/// Organisation of one channel after overrides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelShape {
    /// Number of ranks.
    pub ranks: u32,
    /// Number of bank groups of a rank.
    pub bank_groups: u32,
    /// Number of banks of a bank group.
    pub banks_per_group: u32,
    /// Number of 64 B lines of a row.
    pub lines_per_row: u32,
    /// Number of rows of a bank.
    pub rows: u32,
}

/// Request for a 64 B transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DramRequest {
    /// Number that the completion returns to the caller.
    pub token: Option<TxnId>,
    /// Line number, that is the address divided by 64.
    pub line: LineAddr,
    /// Whether the transfer is a write.
    pub write: bool,
    /// Class that the completion returns to the caller.
    pub class: u8,
}

/// State in which a request found its bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOutcome {
    /// The row was open.
    Hit,
    /// The bank was closed.
    Miss,
    /// Another row of the bank was open.
    Conflict,
    /// A queued write held the line, so that the bank was not needed.
    Forwarded,
}

impl RowOutcome {
    /// The index of the outcome in tables by outcome.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Completion of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DramCompletion {
    /// Transaction that issued the read, if the caller waits for the data.
    pub token: Option<TxnId>,
    /// Class that the request carried.
    pub class: u8,
    /// State in which the read found its bank.
    pub outcome: RowOutcome,
    /// Time at which the data arrives.
    pub at: Time,
}

/// Counters of one channel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// Accesses by direction and row outcome: `[read, write][hit, miss, conflict]`.
    pub rows: [[u64; 3]; 2],
    /// Reads whose line a queued write held, so that the write queue supplied the data.
    pub reads_forwarded: u64,
    /// Writes that were merged with a queued write of the same line.
    pub writes_merged: u64,
    /// Activate commands.
    pub activates: u64,
    /// Precharge commands, without automatic precharges.
    pub precharges: u64,
    /// Automatic precharges, which a column command carries.
    pub auto_precharges: u64,
    /// Refresh commands.
    pub refreshes: u64,
    /// Changes between read mode and write mode, in both directions.
    pub mode_switches: u64,
    /// Number of times that write mode ended, without writes that only filled gaps between reads.
    pub drains: u64,
    /// Time for which the data bus carried data, in picoseconds.
    pub bus_busy_ps: u64,
    /// Time in write mode, in picoseconds.
    pub write_mode_ps: u64,
    /// Occupancy integrals of the read queue and the write queue, in entries x ps: divided by time, the mean occupancy;
    /// divided by arrivals, the mean residence.
    pub entry_ps: [i128; 2],
    /// Sum over reads of the time from acceptance to the end of the data, without static latency, in picoseconds.
    pub read_latency_ps: u64,
    /// Number of accesses of each bank.
    pub bank_accesses: Vec<u64>,
    /// Time for which the read and the write queue held at least the number of entries that counts as full, in
    /// picoseconds.
    pub marked_ps: [u64; 2],
    /// Time for which all entries of the read and the write queue were in use, in picoseconds.
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
    /// Number of reads that DRAM served.
    pub fn reads(&self) -> u64 {
        self.rows[0].iter().sum()
    }
    /// Number of writes that DRAM served.
    pub fn writes(&self) -> u64 {
        self.rows[1].iter().sum()
    }
    /// Bytes moved over the data bus.
    pub fn bytes(&self) -> u64 {
        64 * (self.reads() + self.writes())
    }
}

/// Time in picoseconds after which an idle row is closed, where it is.
fn idle_time(page_idle_ns: f64) -> Option<u64> {
    (page_idle_ns > 0.0).then(|| (page_idle_ns * 1000.0).round().whole())
}

/// Policy and state of a channel's scheduler. The representation with a number of its own lets each request find the
/// scheduler by one comparison.
#[derive(Clone, Debug)]
#[repr(u8)]
enum ChannelScheduler {
    Commands(Commands),
    Transactions(Transactions),
    OnArrival(OnArrival),
    BankQueues(BankQueues),
}

/// Evaluates an expression for whichever scheduler.
macro_rules! of_scheduler {
    ($scheduler:expr, $s:ident => $value:expr) => {
        match $scheduler {
            ChannelScheduler::Commands($s) => $value,
            ChannelScheduler::Transactions($s) => $value,
            ChannelScheduler::OnArrival($s) => $value,
            ChannelScheduler::BankQueues($s) => $value,
        }
    };
}

/// A channel with its scheduler.
#[derive(Clone, Debug)]
struct ScheduledChannel {
    ch: Channel,
    scheduler: ChannelScheduler,
}

impl ScheduledChannel {
    fn new(plan: &DramPlan) -> ScheduledChannel {
        let (wpq, shape) = (plan.entries[1], &plan.shape);
        let scheduler = match &plan.scheduler {
            SchedulerPlan::HitFirst(p) => ChannelScheduler::Commands(Commands::new(CommandOrder::HitFirst, p, wpq)),
            SchedulerPlan::FirstReady(p) => ChannelScheduler::Commands(Commands::new(CommandOrder::FirstReady, p, wpq)),
            SchedulerPlan::Transaction(p) => ChannelScheduler::Transactions(Transactions::new(p, wpq)),
            SchedulerPlan::OnArrival(p) => ChannelScheduler::OnArrival(OnArrival::new(p, wpq)),
            SchedulerPlan::BankQueues(p) => {
                let banks = (shape.ranks * shape.bank_groups * shape.banks_per_group).to_usize();
                ChannelScheduler::BankQueues(BankQueues::new(p, wpq, banks))
            }
        };
        ScheduledChannel { ch: of_scheduler!(&scheduler, s => Channel::new(plan, s)), scheduler }
    }

    #[inline(never)]
    fn push(&mut self, now: u64, req: DramRequest, at: Decoded, done: &mut Vec<DramCompletion>) {
        of_scheduler!(&mut self.scheduler, s => self.ch.push(s, now, req, at, done));
    }

    #[inline(never)]
    fn advance(&mut self, now: u64, done: &mut Vec<DramCompletion>) -> bool {
        of_scheduler!(&mut self.scheduler, s => self.ch.advance(s, now, done))
    }

    /// Time of the next command, or of the next entry that becomes free with its data.
    #[inline]
    fn due(&self) -> Due {
        self.ch.wake.min(self.ch.next_release())
    }
}

/// Memory controllers of all channels of a memory system.
#[derive(Clone, Debug)]
pub struct DramController {
    mapper: Mapper,
    channels: IdVec<ChannelId, ScheduledChannel>,
    of_node: usize,
    /// Requests of the measured window, where they are traced.
    pub trace: Option<RequestTrace>,
}

impl DramController {
    /// Makes the controllers of one node.
    pub fn new(plan: &DramPlan) -> DramController {
        DramController::of_nodes(plan, 1)
    }

    /// Makes the controllers of several nodes with equal memory; the channels of a node are consecutive.
    pub fn of_nodes(plan: &DramPlan, nodes: u32) -> DramController {
        DramController {
            mapper: plan.mapper.clone(),
            channels: (0..plan.channels * nodes).map(|_| ScheduledChannel::new(plan)).collect(),
            of_node: plan.channels.to_usize(),
            trace: None,
        }
    }

    /// Independent channels of all nodes, where sub-channels and pseudo-channels count.
    pub fn channels(&self) -> impl ExactSizeIterator<Item = ChannelId> {
        self.channels.ids()
    }

    /// Node that a channel belongs to.
    pub fn node_of(&self, ch: ChannelId) -> NodeId {
        NodeId::new(ch.index() / self.of_node)
    }

    /// Channel of a line in the memory of node `home`, and the line's place in the channel.
    #[inline]
    pub fn route(&self, home: NodeId, line: LineAddr) -> (ChannelId, Decoded) {
        let (ch, inner) = self.mapper.channel(line);
        (ChannelId((ch + home.index() * self.of_node).to_u8()), self.mapper.decode(inner))
    }

    /// Whether the queue has room, as of the channel's last `push` or `advance`. A caller that gets false must call
    /// `advance` with the present time and ask again.
    #[inline]
    pub fn can_accept(&self, ch: ChannelId, write: bool) -> bool {
        self.channels[ch].ch.can_accept(write)
    }

    /// Accepts a request; the caller has checked [`DramController::can_accept`]. Acceptance acknowledges a write; a
    /// read of a line that a queued write holds completes immediately. All commands due before `now` are issued first,
    /// without considering the new request.
    #[inline]
    pub fn push(&mut self, now: Time, ch: ChannelId, req: DramRequest, at: Decoded, done: &mut Vec<DramCompletion>) {
        if let Some(trace) = &mut self.trace {
            trace.keep(now, req.line, req.write);
        }
        let c = &mut self.channels[ch];
        if c.due() < Due::at(now) {
            c.advance(now.0 - 1, done);
        }
        c.push(now.0, req, at, done);
    }

    /// Issues every command that is possible up to `now` and appends the completions of reads to `done`; none is
    /// earlier than `now` if the caller obeys [`DramController::wake`]. Returns whether queue entries became free.
    #[inline]
    pub fn advance(&mut self, now: Time, ch: ChannelId, done: &mut Vec<DramCompletion>) -> bool {
        let c = &mut self.channels[ch];
        c.due().by(now).is_some() && c.advance(now.0, done)
    }

    /// Latest time for the next call of [`DramController::advance`]. A caller that waits for a queue entry (`waiting`)
    /// gets the earliest time at which an entry can become free. Any other caller gets the earliest time, several
    /// commands later, at which data that has not been announced can arrive.
    #[inline]
    pub fn wake(&self, ch: ChannelId, waiting: bool) -> Option<Time> {
        let ScheduledChannel { ch, scheduler } = &self.channels[ch];
        if !waiting {
            return ch.wake.plus(Time(ch.t.cl + ch.t.burst)).time();
        }
        let entry = match scheduler {
            ChannelScheduler::Commands(s) => ch.next_column_entry(s),
            _ => ch.wake,
        };
        ch.next_release().min(entry).time()
    }

    /// Counters of a channel as of `now`.
    pub fn stats(&self, now: Time, ch: ChannelId) -> Stats {
        self.channels[ch].ch.stats(now.0)
    }

    /// Timing of the channels.
    pub fn timing(&self) -> &DramTiming {
        &self.channels[ChannelId(0)].ch.t
    }
}

impl DramSpec {
    /// Peak bandwidth of all channels, in GB/s (10^9 bytes per second).
    pub fn peak_gbs(&self) -> f64 {
        let d = self.standard.device(self.device_width);
        let per_line_ns = (d.burst * self.quirks.timing.clock(&d)).to_f64() / 1e3;
        f64::from(self.channels * d.subchannels) * 64.0 / per_line_ns
    }

    /// Timings of the device with overrides, checked to leave time for accesses between refreshes.
    fn timing(&self, d: &DramDevice) -> Result<DramTiming, String> {
        self.quirks.timing.check()?;
        let t = DramTiming::new(d, &self.quirks.timing);
        let least = t.longest_access() + t.rfc;
        if self.quirks.refresh && t.refi <= least {
            return Err(format!(
                "quirks.timing.refi_ps = {} leaves no time for an access beside refreshes of rfc_ps = {}; give more than {least}",
                t.refi, t.rfc
            ));
        }
        Ok(t)
    }

    fn shape(&self, d: &DramDevice) -> Result<ChannelShape, String> {
        let (bank_groups, banks_per_group) = self.banks(d);
        let s = ChannelShape {
            ranks: self.ranks,
            bank_groups,
            banks_per_group,
            lines_per_row: d.lines_per_row,
            rows: d.rows,
        };
        if !(1..=16).contains(&self.channels) {
            return Err(format!("channels = {} is outside 1 to 16", self.channels));
        }
        for (key, v) in
            [("ranks", s.ranks), ("quirks.bank_groups", s.bank_groups), ("quirks.banks_per_group", s.banks_per_group)]
        {
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
        let a = self.quirks.alignment;
        if !a.0.is_power_of_two() || !(PAGE..=LARGEST_ALIGNMENT).contains(&a) {
            return Err(format!(
                "quirks.alignment = \"{a}\" is not a power of two within {PAGE} to {LARGEST_ALIGNMENT}"
            ));
        }
        let ns = self.static_latency_ns;
        if !(0.0..=1e6).contains(&ns) {
            return Err(format!("static_latency_ns = {ns} is outside 0 to 1000000"));
        }
        Ok(s)
    }
}
