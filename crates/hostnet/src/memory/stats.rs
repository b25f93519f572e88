//! Counters of the memory system. Each DRAM transfer is counted once, by region, cause and direction.

use super::region::RegionKind;
use super::request::{Agent, AGENTS};
use crate::kernel::{CoreId, IdVec, LineAddr, RegionId, TenantId, ThreadId, Time};
use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Agent and cause of a 64-byte transfer to or from DRAM (Sweeper, Fig. 1c).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum AccessClass {
    /// Received packets that the NIC writes.
    NicRxWr,
    /// Packets to be sent that the NIC reads.
    NicTxRd,
    /// Receive buffers that cores read.
    CpuRxRd,
    /// Transmit buffers that cores read in order to read or write them.
    CpuTxRdWr,
    /// Other memory that cores read.
    CpuOtherRd,
    /// Receive buffers that the caches evict.
    RxEvct,
    /// Transmit buffers that the caches evict.
    TxEvct,
    /// Other memory that the caches evict.
    OtherEvct,
    /// Lines that devices other than the NIC write.
    IoWr,
    /// Lines that devices other than the NIC read, and their buffers that cores read.
    IoRd,
    /// Buffers of devices other than the NIC that the caches evict.
    IoEvct,
    /// Reads of the background load.
    BackgroundRd,
}
/// Number of classes.
pub const CLASSES: usize = 12;

impl AccessClass {
    /// The index of the class in tables by class.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self as usize
    }
    /// Class of a core's read of a region of kind `kind`.
    pub fn of_read(kind: RegionKind) -> AccessClass {
        match kind {
            RegionKind::Rx => AccessClass::CpuRxRd,
            RegionKind::Tx => AccessClass::CpuTxRdWr,
            RegionKind::App => AccessClass::CpuOtherRd,
            RegionKind::Io => AccessClass::IoRd,
        }
    }
    /// Class of an eviction from a region of kind `kind`.
    pub fn of_eviction(kind: RegionKind) -> AccessClass {
        match kind {
            RegionKind::Rx => AccessClass::RxEvct,
            RegionKind::Tx => AccessClass::TxEvct,
            RegionKind::App => AccessClass::OtherEvct,
            RegionKind::Io => AccessClass::IoEvct,
        }
    }
    /// Whether the class counts writes to DRAM.
    pub fn is_write(self) -> bool {
        !matches!(
            self,
            AccessClass::NicTxRd
                | AccessClass::CpuRxRd
                | AccessClass::CpuTxRdWr
                | AccessClass::CpuOtherRd
                | AccessClass::IoRd
                | AccessClass::BackgroundRd
        )
    }
    /// Whether the class is that of a NIC's own requests.
    pub fn is_of_nic(self) -> bool {
        matches!(self, AccessClass::NicRxWr | AccessClass::NicTxRd)
    }
    /// Whether the class counts writes to memory of data that a device brought, directly or by an eviction from the
    /// LLC.
    pub fn is_device_write(self) -> bool {
        matches!(self, AccessClass::NicRxWr | AccessClass::RxEvct | AccessClass::IoWr | AccessClass::IoEvct)
    }
}

/// Ledger of dirty copies, from the store that made each copy dirty to the end of the copy; the counts are never reset.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DirtyLedger {
    /// Copies that a store or a write of a device made dirty.
    pub created: u64,
    /// Lines written to DRAM from the caches.
    pub written: u64,
    /// Lines written to DRAM without having been in a cache; `written` includes these lines.
    pub bypassed: u64,
    /// Dirty copies that a sweep dropped.
    pub swept: u64,
    /// Dirty copies that a whole-line write replaced.
    pub overwritten: u64,
    /// Dirty copies that met another dirty copy of the same line at a lower level.
    pub merged: u64,
    /// Dirty copies that a clean victim marked clean (`caches.llc.quirks.clean_victim_cleans`).
    pub lost: u64,
}

impl DirtyLedger {
    /// Checks that the ledger balances.
    ///
    /// # Errors
    /// Fails with one sentence when the counts do not agree with `resident` dirty copies in the caches.
    pub fn check(&self, resident: u64) -> Result<(), String> {
        let out = self.written - self.bypassed + self.swept + self.overwritten + self.merged + self.lost;
        if self.created == out + resident {
            return Ok(());
        }
        Err(format!("dirty lines are not conserved: {resident} resident, {self:?}"))
    }
}

/// Accesses of one tenant's cores that reached the LLC.
#[derive(Clone, Copy, Debug, Default)]
pub struct TenantCounts {
    /// Accesses that hit the LLC.
    pub llc_hits: u64,
    /// Accesses that missed the LLC.
    pub llc_misses: u64,
    /// Hits and misses on the application's own data.
    pub app: u64,
    /// Dirty lines that were inserted into the LLC.
    pub dirty_fills: u64,
    /// Lines of the tenant's memory that DRAM has read and written, for cores and devices alike.
    pub dram: [u64; 2],
}

impl TenantCounts {
    /// Number of accesses that looked up the LLC.
    pub fn llc_look_ups(&self) -> u64 {
        self.llc_hits + self.llc_misses
    }
}

/// Lines that left the L2 of one core.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CoreCounts {
    /// Lines that went to the LLC: victims, and lines that devices' reads evicted.
    pub mlc_wb: u64,
    /// Lines that went to the LLC and belonged to received packets that a core had read.
    pub mlc_wb_consumed: u64,
    /// Lines that writes of devices invalidated.
    pub mlc_invalidations: u64,
    /// Reads and requests for ownership of the core that missed the LLC.
    pub llc_misses: u64,
}

/// Place in which a device's request finds a line (IDIO, Fig. 1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[repr(usize)]
pub enum LineLocation {
    /// P1: private caches only.
    Mlc,
    /// P2: private caches and LLC.
    Both,
    /// P3: the LLC, in a way that devices do not allocate into.
    Llc,
    /// P4: the LLC, in a way that devices allocate into.
    Ddio,
    /// P5: no cache.
    Dram,
}

impl LineLocation {
    /// The index of the place in tables by place.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self as usize
    }
}
/// All locations.
pub const PLACES: [LineLocation; 5] =
    [LineLocation::Mlc, LineLocation::Both, LineLocation::Llc, LineLocation::Ddio, LineLocation::Dram];

/// Lines that devices of one kind read and wrote, and how many of them missed the LLC.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DmaCounts {
    /// Lines read.
    pub reads: u64,
    /// Lines read that missed the LLC.
    pub read_misses: u64,
    /// Lines written.
    pub writes: u64,
    /// Lines written that missed the LLC.
    pub write_misses: u64,
    /// Lines written, by the [`LineLocation`] before the write; not counted with ideal DDIO.
    pub wrote_at: [u64; 5],
    /// Lines read, by the [`LineLocation`] at the read.
    pub read_at: [u64; 5],
}

impl DmaCounts {
    /// Lines read or written.
    pub fn lines(&self) -> u64 {
        self.reads + self.writes
    }
    /// Lines read or written that missed the LLC.
    pub fn misses(&self) -> u64 {
        self.read_misses + self.write_misses
    }
}

/// Requests of one core whose answer came from another node.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RemoteCounts {
    /// Requests for reading.
    pub reads: u64,
    /// Requests for ownership: stores, prefetches for stores, and requests that only invalidate copies.
    pub rfos: u64,
}

/// Counters of the memory system in the measured window.
#[derive(Clone, Debug)]
pub struct MemStats {
    /// Accesses to DRAM, by class.
    pub dram: [u64; CLASSES],
    /// Receive buffers' lines that were evicted before a core had read them.
    pub rx_evct_premature: u64,
    /// Receive buffers' lines that were evicted after a core had read them.
    pub rx_evct_consumed: u64,
    /// Dirty lines that the LLC evicted to memory.
    pub llc_wb: u64,
    /// Dirty lines that the LLC evicted to make room for victims of an L2.
    pub llc_wb_pushed: u64,
    /// Counters of each core.
    pub cores: IdVec<CoreId, CoreCounts>,
    /// Requests of each core whose answer came from another node.
    pub remote: IdVec<CoreId, RemoteCounts>,
    /// Invalidations without write-back that the page did not allow.
    pub refused_invalidations: u64,
    /// Latency of DRAM reads from arrival at the memory controller to the data, in picoseconds.
    pub dram_ps: Histogram<u64>,
    /// Counters of each tenant.
    pub tenants: IdVec<TenantId, TenantCounts>,
    /// `clsweep` instructions of cores, one per line.
    pub clsweeps: u64,
    /// Messages of sweeps to the home agent.
    pub sweep_messages: u64,
    /// Lines that devices read and wrote, by agent.
    pub dma: [DmaCounts; AGENTS],
    /// Lines that NICs read and wrote, on the chip and behind the IIO.
    pub nic_lines: u64,
    /// Reads of a line between its sweep and its next overwrite.
    pub stale_reads: u64,
    /// Sweeps of a buffer instance that no core had read yet.
    pub sweep_races: u64,
    /// Ledger of dirty copies.
    pub ledger: DirtyLedger,
}

impl MemStats {
    /// Counters at zero.
    pub fn new(tenants: usize, cores: usize) -> MemStats {
        MemStats {
            dram: [0; CLASSES],
            rx_evct_premature: 0,
            rx_evct_consumed: 0,
            llc_wb: 0,
            llc_wb_pushed: 0,
            cores: IdVec::filled(CoreCounts::default(), cores),
            remote: IdVec::filled(RemoteCounts::default(), cores),
            refused_invalidations: 0,
            dram_ps: Histogram::new_with_bounds(1, 1 << 40, 3).expect("valid bounds"),
            tenants: IdVec::filled(TenantCounts::default(), tenants),
            clsweeps: 0,
            sweep_messages: 0,
            dma: Default::default(),
            nic_lines: 0,
            stale_reads: 0,
            sweep_races: 0,
            ledger: DirtyLedger::default(),
        }
    }
    /// Counts an access of class `c` to DRAM.
    #[inline]
    pub fn count(&mut self, c: AccessClass) {
        self.dram[c.index()] += 1;
    }
    /// Counts a read of a line of `tenant`'s memory from DRAM.
    #[inline]
    pub(in crate::memory) fn count_tenant_read(&mut self, tenant: TenantId) {
        if let Some(t) = self.tenants.get_mut(tenant) {
            t.dram[0] += 1;
        }
    }
    /// Counts a write of a line of `tenant`'s memory to DRAM.
    #[inline]
    pub(in crate::memory) fn count_tenant_write(&mut self, tenant: TenantId) {
        if let Some(t) = self.tenants.get_mut(tenant) {
            t.dram[1] += 1;
        }
    }
    /// Records the latency `t` of an access to DRAM.
    #[inline]
    pub fn dram_latency(&mut self, t: Time) {
        self.dram_ps.saturating_record(t.0.max(1));
    }
    /// Counts of lines that devices of the kind `agent` read and wrote.
    pub fn dma(&self, agent: Agent) -> &DmaCounts {
        &self.dma[agent.index()]
    }
    /// Number of accesses of class `c` to DRAM.
    pub fn of(&self, c: AccessClass) -> u64 {
        self.dram[c.index()]
    }
    /// Begins the measured window: resets all counters except the ledger and the counts of errors.
    pub fn restart(&mut self) {
        let fresh = MemStats::new(self.tenants.len(), self.cores.len());
        let old = std::mem::replace(self, fresh);
        self.ledger = old.ledger;
        self.stale_reads = old.stale_reads;
        self.sweep_races = old.sweep_races;
    }
}

/// Requests of one core for lines of one region that have left its L2, including hardware prefetches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OffCore {
    /// Requests for reading.
    pub reads: u64,
    /// Requests for ownership.
    pub owns: u64,
    /// Whole lines written by stores that bypass the caches.
    pub streams: u64,
}

impl OffCore {
    #[inline]
    fn note(&mut self, op: super::TxnOp) {
        match op {
            super::TxnOp::Own => self.owns += 1,
            super::TxnOp::Stream => self.streams += 1,
            _ => self.reads += 1,
        }
    }
}

/// Requests of all cores that have left their L2s, by core and region.
#[derive(Clone, Debug)]
pub struct OffCores {
    regions: usize,
    counts: Vec<OffCore>,
    /// Requests whose answer came from another node.
    remote: Vec<OffCore>,
    /// Requests whose answer came from another node, and that ended while their line was watched at their core.
    watched: Vec<OffCore>,
    watching: IdVec<ThreadId, Vec<LineAddr>>,
}

impl OffCores {
    /// Counters at zero.
    pub fn new(cores: usize, regions: usize) -> OffCores {
        let counts = vec![OffCore::default(); cores * regions];
        OffCores {
            regions,
            remote: counts.clone(),
            watched: counts.clone(),
            watching: IdVec::filled(Vec::new(), cores),
            counts,
        }
    }
    #[inline]
    pub(in crate::memory) fn note(&mut self, thread: ThreadId, region: RegionId, op: super::TxnOp) {
        self.counts[thread.index() * self.regions + region.index()].note(op);
    }
    pub(in crate::memory) fn note_remote(
        &mut self,
        thread: ThreadId,
        region: RegionId,
        line: LineAddr,
        op: super::TxnOp,
    ) {
        let at = thread.index() * self.regions + region.index();
        self.remote[at].note(op);
        if self.watching[thread].contains(&line) {
            self.watched[at].note(op);
        }
    }
    /// Starts watching `line` at `core`.
    pub fn watch(&mut self, thread: ThreadId, line: LineAddr) {
        self.watching[thread].push(line);
    }
    /// Stops watching lines at `core`.
    pub fn watch_none(&mut self, thread: ThreadId) {
        self.watching[thread].clear();
    }
    /// Requests of `thread` for lines of `region`.
    pub fn of(&self, thread: ThreadId, region: RegionId) -> OffCore {
        self.counts[thread.index() * self.regions + region.index()]
    }
    /// Requests of `thread` for lines of `region` whose answer came from another node.
    pub fn remote(&self, thread: ThreadId, region: RegionId) -> OffCore {
        self.remote[thread.index() * self.regions + region.index()]
    }
    /// Requests of `thread` for lines of `region` whose answer came from another node, and that ended while the thread
    /// watched the line.
    pub fn watched(&self, thread: ThreadId, region: RegionId) -> OffCore {
        self.watched[thread.index() * self.regions + region.index()]
    }
    pub(in crate::memory) fn restart(&mut self) {
        self.counts.fill(OffCore::default());
        self.remote.fill(OffCore::default());
        self.watched.fill(OffCore::default());
    }
}
