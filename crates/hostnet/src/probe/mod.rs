//! Directed probes of the papers: one buffer, page, load or device request on an idle machine, step by step.
//!
//! A probe is a client of [`Machine`]: it runs programs on cores, lets requests of devices go, and handles the signals
//! of the hardware by itself. A scenario names a probe where it would name the application of its only tenant.

mod buffers;
mod device;
mod latency;
mod place;

use crate::core::{Op, Retired};
use crate::device::{DeviceEvent, NicAt};
use crate::kernel::units::{Size, Span};
use crate::kernel::{Clock, LineAddr, PacketId, Post, QueueId, ThreadId, Time};
use crate::machine::{Event, Machine, MachineSignal};
use crate::memory::region::RegionKind;
use crate::memory::shadow::Shadow;
use crate::memory::spec::CacheSpec;
use crate::memory::stats::{AccessClass, LineLocation, CLASSES};
use crate::memory::LINE;
use crate::meter::table::table;
use crate::meter::Values;
use crate::placement::SweepTx;
use crate::stack::qp::QpEffect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{json, Map, Value};

/// Point at which a directed test evicts the packet from the LLC.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EvictAt {
    /// The packet is not evicted.
    #[default]
    None,
    /// The packet is evicted before the core reads the packet.
    BeforeUse,
    /// The packet is evicted after the core has read the packet.
    AfterUse,
}

/// Parameters of the directed test of one receive buffer (Sweeper, Fig. 3 and section II-B).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectedRxSpec {
    /// Number of cache blocks of the packet.
    pub blocks: u32,
    /// Point at which the packet is evicted from the LLC: "none" (the default), "before_use" or "after_use".
    #[serde(default)]
    pub evict: EvictAt,
}

/// Parameters of the directed test of one transmit buffer (Sweeper, Fig. 4).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectedTxSpec {
    /// Number of cache blocks of the packet.
    pub blocks: u32,
    /// Time for which the core is busy with other work after posting the packet.
    pub busy: Span,
}

/// Method that makes a page safe for its next owner (Sweeper, section V-B).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Guard {
    /// The page is zeroed through the caches, without further measures.
    #[default]
    None,
    /// The page is zeroed, and every block is then written back with CLWB.
    Clwb,
    /// The page is zeroed by DMA that does not use DDIO.
    Dma,
}

/// Parameters of the directed test of page reuse (Sweeper, section V-B).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PageReuseSpec {
    /// Size of the page.
    pub page: Size,
    /// Method with which the kernel makes the page safe for its next owner: "none" (the default), "clwb" or "dma".
    #[serde(default)]
    pub guard: Guard,
}

/// Location of the line that `probe_latency` loads (CC-NIC, Fig. 7). Cores 0 and 1 belong to the first node, core 2 to
/// the last; lines in another core's cache are modified.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProbePlace {
    /// The L1 of the core that loads the line.
    LocalL1,
    /// Only the L2 of the core that loads the line.
    LocalL2,
    /// Only the LLC of the core's node.
    LocalLlc,
    /// Memory of the core's node, and no cache.
    LocalDram,
    /// The L2 of another core of the same node.
    OtherL2,
    /// The LLC of the other node, which is the line's home.
    RemoteLlc,
    /// Memory of the other node, and no cache.
    RemoteDram,
    /// The L2 of a core of the other node, which is the line's home (remote-homed).
    RemoteL2Rh,
    /// The L2 of a core of the other node, while the reader's node is the line's home (local-homed).
    RemoteL2Lh,
}

impl ProbePlace {
    /// Whether the location needs two nodes.
    pub fn is_remote(self) -> bool {
        use ProbePlace::{RemoteDram, RemoteL2Lh, RemoteL2Rh, RemoteLlc};
        matches!(self, RemoteLlc | RemoteDram | RemoteL2Rh | RemoteL2Lh)
    }
}

/// Parameters of the directed test of one load's latency (CC-NIC, section 3.2 and Fig. 7).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbeLatencySpec {
    /// Location of the line that is loaded.
    pub place: ProbePlace,
}

/// Access that `probe_device` makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeviceProbe {
    /// One uncached load of `bytes`.
    Load,
    /// `stores` write-combining stores of `bytes` each, every store to a different line.
    Store,
}

/// Parameters of the directed test of accesses to a device (CC-NIC, section 2.2 and Fig. 3).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbeDeviceSpec {
    /// Access to the device: "load" or "store".
    pub access: DeviceProbe,
    /// Bytes of the load or of each store (1 to 64).
    pub bytes: u8,
    /// Number of stores in the burst. The default is 1.
    #[serde(default = "one_store")]
    pub stores: u32,
}
fn one_store() -> u32 {
    1
}

/// Request that a device makes in `probe_place`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProbeRequest {
    /// A write of the whole line.
    Write,
    /// A read of the line.
    Read,
}

/// Parameters of the directed test of one device request (IDIO, section II-A and Fig. 1).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbePlaceSpec {
    /// Request that the device makes: "write" or "read".
    pub request: ProbeRequest,
    /// Location of the line before the request.
    pub place: LineLocation,
    /// Whether the core has modified its copy of the line, where it has one. The default is false.
    #[serde(default)]
    pub dirty: bool,
}

/// A directed probe and its parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ProbeSpec {
    /// Directed test of the life of one receive buffer.
    DirectedRx(DirectedRxSpec),
    /// Directed test of the life of one transmit buffer.
    DirectedTx(DirectedTxSpec),
    /// Directed test of a page that changes its owner.
    PageReuse(PageReuseSpec),
    /// Directed test of one load's latency, by the location of the line.
    ProbeLatency(ProbeLatencySpec),
    /// Directed test of a load from a device, or of a burst of write-combining stores to it.
    ProbeDevice(ProbeDeviceSpec),
    /// Directed test of one request of a device, by the location of the line.
    ProbePlace(ProbePlaceSpec),
}

/// Kinds of the probes, as scenarios name them.
pub const KINDS: [&str; 6] =
    ["directed_rx", "directed_tx", "page_reuse", "probe_latency", "probe_device", "probe_place"];

/// An idle machine, and what a probe has to know of the scenario.
pub struct Bench {
    /// The machine; its first region of kind `App` is free for the probe.
    pub machine: Machine,
    /// Clock of the cores.
    pub clock: Clock,
    /// First-level cache of the cores.
    pub l1: CacheSpec,
    /// Size of a receive buffer of the integrated NIC, and of a transmit buffer.
    pub buffer_size: Size,
    /// Whether software sweeps receive buffers that it has processed.
    pub sweep_rx: bool,
    /// Agent that sweeps transmitted buffers.
    pub sweep_tx: SweepTx,
}

/// Findings of a probe.
pub struct Findings {
    /// The machine, after all effects have ended.
    pub machine: Machine,
    /// Tables by name.
    pub tables: Map<String, Value>,
}

/// Runs the probe `spec` on an idle machine, and sets its metrics in `v`.
///
/// # Errors
/// Returns one sentence when the probe does not fit the machine.
pub fn run(spec: &ProbeSpec, bench: Bench, v: &mut Values) -> Result<Findings, String> {
    let mut b = bench;
    b.machine.mem.shadow = Some(Box::new(Shadow::default()));
    if let Some(iio) = &mut b.machine.iio {
        iio.start(&mut b.machine.cal, b.machine.now);
    }
    let mut tables = Map::new();
    match spec {
        ProbeSpec::DirectedRx(s) => {
            b.check_blocks(s.blocks)?;
            b.receive(s.blocks, s.evict, v);
        }
        ProbeSpec::DirectedTx(s) => {
            b.check_blocks(s.blocks)?;
            let events = b.transmit(s.blocks, s.busy.into(), v);
            let rows = events.into_iter().map(|(t, e)| vec![json!(t.as_ns()), json!(e)]);
            tables.insert("events".into(), table(&[("t_ns", "ns"), ("event", "")], rows.collect()));
        }
        ProbeSpec::PageReuse(s) => {
            let lines = s.page.0 / LINE;
            if lines == 0 || lines > b.scratch().map_or(0, |r| r.1) {
                return Err(format!("tenant[0].app.page = \"{}\" is not within 64 B to 1 MiB", s.page));
            }
            b.reuse(lines, s.guard, v);
        }
        ProbeSpec::ProbeLatency(s) => b.probe(s.place, v),
        ProbeSpec::ProbeDevice(s) => b.probe_device(s, v)?,
        ProbeSpec::ProbePlace(s) => b.probe_placement(s, v)?,
    }
    b.machine.mem.check()?;
    Ok(Findings { machine: b.machine, tables })
}

/// Number of consecutive DRAM events after which only refreshes remain.
const REFRESHES: u32 = 1 << 16;

/// Time that exceeds the drain time of any queue of an idle host.
const SETTLE: Time = Time::us(10);

/// Log of the events that occurred while the host ran until idle.
#[derive(Default)]
struct DirectedLog {
    delivered: Option<PacketId>,
    core_end: Time,
    wq_read: Option<Time>,
    sent: Option<Time>,
    last_sweep: Option<Time>,
    freed: Option<Time>,
}

impl Bench {
    /// First line and number of lines of the memory that is free for the probe.
    fn scratch(&self) -> Option<(LineAddr, u64)> {
        self.machine.mem.map.iter().find(|r| r.kind == RegionKind::App).map(|r| (r.base, r.lines))
    }

    /// First line of the memory that is free for the probe.
    fn scratch_line(&self) -> LineAddr {
        self.scratch().map_or(LineAddr(0), |r| r.0)
    }

    /// Performs what software has to do about a signal of the hardware.
    fn on(&mut self, s: MachineSignal) {
        match s {
            MachineSignal::Retired(core) => {
                while let Some(r) = self.machine.retired(core) {
                    if let Retired::Tag(tag) = r {
                        self.on_tag(tag);
                    }
                }
            }
            MachineSignal::Doorbell(_, tag) => self.on_tag(tag),
            _ => {}
        }
    }

    /// Performs the side effect of a queue pair's library that a program has asked for.
    fn on_tag(&mut self, tag: u32) {
        if let (QpEffect::Post, id) = QpEffect::of(tag) {
            self.machine.post(NicAt::Chip, id);
        }
    }

    /// Runs until idle: handles events until only refreshes remain, which never end while a channel keeps writes in its
    /// queue.
    fn run_until_idle(&mut self) -> DirectedLog {
        let (mut log, mut of_dram) = (DirectedLog::default(), 0u32);
        while let Some(e) = self.machine.pop() {
            let now = self.machine.now;
            of_dram = if matches!(e, Event::Dram(_)) { of_dram + 1 } else { 0 };
            if of_dram > REFRESHES && self.machine.mem.is_idle() {
                self.machine.handle(e);
                break;
            }
            match e {
                Event::NicTx(..) => _ = log.wq_read.get_or_insert(now),
                Event::Sweep { .. } => log.last_sweep = Some(now),
                Event::Freed(..) => {
                    log.freed = Some(now); // of no ring
                    continue;
                }
                _ => {}
            }
            match self.machine.handle(e) {
                Some(MachineSignal::CoreFree(_)) => log.core_end = now,
                Some(MachineSignal::Delivered(core)) => log.delivered = self.machine.nic.take(QueueId(core.0)),
                Some(MachineSignal::Sent(_, id)) => {
                    log.sent = Some(now);
                    let released = self.machine.nic.release_tx(&mut self.machine.cal, id, now);
                    self.machine.cal.post(released, DeviceEvent::Freed(NicAt::Chip, id));
                }
                Some(s) => self.on(s),
                None => {}
            }
        }
        log
    }

    /// Runs `ops` on core 0 from now until all of their effects have ended; returns the time until the last op ended.
    fn execute(&mut self, ops: &[Op]) -> (Time, DirectedLog) {
        self.execute_on(ThreadId(0), ops)
    }

    fn execute_on(&mut self, core: ThreadId, ops: &[Op]) -> (Time, DirectedLog) {
        let start = self.machine.now;
        self.machine.cpus[core].program.ops.clear();
        self.machine.cpus[core].program.ops.extend_from_slice(ops);
        self.machine.start(core);
        let log = self.run_until_idle();
        (log.core_end.saturating_sub(start), log)
    }

    /// Lets the queues of the memory controllers drain.
    fn settle(&mut self) {
        self.execute(&[Op::Stall(SETTLE.0)]);
    }

    fn force_out(&mut self, base: LineAddr, blocks: u64) -> (u64, u64) {
        let (mut out, mut dirty) = (0, 0);
        for l in base.span(blocks) {
            if let Some(d) = self.machine.mem.force_out(&mut self.machine.cal, l, self.machine.now) {
                out += 1;
                dirty += u64::from(d);
            }
        }
        self.settle();
        (out, dirty)
    }

    fn moved(&self) -> (u64, u64) {
        let d = &self.machine.mem.stats.dram;
        let writes = [AccessClass::NicRxWr, AccessClass::RxEvct, AccessClass::TxEvct, AccessClass::OtherEvct];
        let w: u64 = writes.iter().map(|c| d[c.index()]).sum();
        (d[..CLASSES].iter().sum::<u64>() - w, w)
    }
}
