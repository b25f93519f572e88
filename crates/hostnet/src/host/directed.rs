//! Directed tests: one buffer or page on an idle host, step by step (Sweeper, sections II-B, V-A to V-D, Figs. 3 and
//! 4).

use super::measure::{statics, Outcome};
use super::Host;
use crate::app::{AppSpec, EvictAt, Guard, ProbePlace};
use crate::core::Op;
use crate::device;
use crate::device::nic::Packet;
use crate::device::NicAt;
use crate::kernel::{Clock, Int, LineAddr, PacketId, Post, QueueId, ThreadId, Time};
use crate::machine::{Event, MachineSignal};
use crate::memory::region::{RegionKind, Sharing};
use crate::memory::shadow::Shadow;
use crate::memory::stats::{AccessClass, CLASSES};
use crate::memory::{Inbound, Sender, Sweep, Txn};
use crate::meter::interval::Intervals;
use crate::meter::table::table;
use crate::meter::{metric, Values};
use crate::placement::SweepTx;
use crate::stack::qp::QpEffect;
use serde_json::{json, Map};

/// Number of consecutive DRAM events after which only refreshes remain.
const REFRESHES: u32 = 1 << 16;

/// Time that exceeds the drain time of any queue of an idle host.
const SETTLE: Time = Time::us(10);

/// Log of the events that occurred while the host ran until idle.
#[derive(Default)]
pub(super) struct DirectedLog {
    delivered: Option<PacketId>,
    core_end: Time,
    wq_read: Option<Time>,
    sent: Option<Time>,
    last_sweep: Option<Time>,
    freed: Option<Time>,
}

impl Host {
    /// Runs the scenario's directed test.
    ///
    /// # Errors
    /// Returns one sentence when the test does not fit the host.
    pub(super) fn directed(mut self) -> Result<Outcome, String> {
        self.machine.mem.shadow = Some(Box::new(Shadow::default()));
        let mut v = statics(&self.spec);
        let mut tables = Map::new();
        let room = self.spec.rings.buffer_size.0 / crate::memory::LINE;
        let fits = |blocks: u32| {
            if u64::from(blocks) > room || blocks == 0 {
                return Err(format!(
                    "tenant[0].app.blocks = {blocks} is not within 1 to the {room} blocks of \
                     rings.buffer_size = \"{}\"",
                    self.spec.rings.buffer_size
                ));
            }
            Ok(())
        };
        match self.directed_app().clone() {
            AppSpec::DirectedRx(s) => {
                fits(s.blocks)?;
                self.receive(s.blocks, s.evict, &mut v);
            }
            AppSpec::DirectedTx(s) => {
                fits(s.blocks)?;
                let events = self.transmit(s.blocks, s.busy.into(), &mut v);
                let rows = events.into_iter().map(|(t, e)| vec![json!(t.as_ns()), json!(e)]);
                tables.insert("events".into(), table(&[("t_ns", "ns"), ("event", "")], rows.collect()));
            }
            AppSpec::PageReuse(s) => {
                let lines = s.page.0 / crate::memory::LINE;
                if lines == 0 || lines > self.scratch_lines() {
                    return Err(format!("tenant[0].app.page = \"{}\" is not within 64 B to 1 MiB", s.page));
                }
                self.reuse(lines, s.guard, &mut v);
            }
            AppSpec::ProbeLatency(s) => self.probe(s.place, &mut v),
            AppSpec::ProbeDevice(s) => self.probe_device(&s, &mut v)?,
            AppSpec::ProbePlace(s) => self.probe_placement(&s, &mut v)?,
            _ => unreachable!("only directed tests come here"),
        }
        self.machine.mem.check()?;
        let sim = self.machine.now;
        Ok(Outcome {
            values: v,
            intervals: Intervals::default(),
            tables,
            warnings: Vec::new(),
            sim,
            warmup: Time::ZERO,
            measured: sim,
            lives: None,
        })
    }

    fn scratch_lines(&self) -> u64 {
        self.machine.mem.map.iter().find(|r| r.kind == RegionKind::App).map_or(0, |r| r.lines)
    }

    /// Runs until idle: handles events until only refreshes remain, which never end while a channel keeps writes in its
    /// queue.
    pub(super) fn run_until_idle(&mut self) -> DirectedLog {
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
                    self.machine.cal.post(released, device::DeviceEvent::Freed(NicAt::Chip, id));
                }
                Some(s) => self.on(s),
                None => {}
            }
        }
        log
    }

    /// Runs `ops` on core 0 from now until all of their effects have ended; returns the time until the last op ended.
    pub(super) fn execute(&mut self, ops: &[Op]) -> (Time, DirectedLog) {
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
    pub(super) fn settle(&mut self) {
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

    pub(super) fn moved(&self) -> (u64, u64) {
        let d = &self.machine.mem.stats.dram;
        let writes = [AccessClass::NicRxWr, AccessClass::RxEvct, AccessClass::TxEvct, AccessClass::OtherEvct];
        let w: u64 = writes.iter().map(|c| d[c.index()]).sum();
        (d[..CLASSES].iter().sum::<u64>() - w, w)
    }

    fn receive(&mut self, blocks: u32, evict: EvictAt, v: &mut Values) {
        let n = u64::from(blocks);
        let packet = Packet { lines: blocks.to_u16(), wire_bytes: blocks * 64, uses: 2, ..Packet::default() };
        let accepted = self.machine.nic.arrive(&mut self.machine.cal, packet, self.machine.now);
        assert!(accepted.is_ok(), "an empty ring takes a packet");
        let id = self.run_until_idle().delivered.expect("nothing stops a lone packet");
        let line = self.machine.nic.packet(id).line;
        self.settle();
        let mut evicted = (0, 0);
        if evict == EvictAt::BeforeUse {
            evicted = self.force_out(line, n);
        }
        let (first, _) = self.execute(&[Op::Anchor { line }, Op::Fence]);
        self.execute(&[Op::Load { line, lines: blocks }, Op::Fence]);
        let dirty: u32 = line.span(n).map(|l| self.machine.mem.copies(l).1).sum();
        v.set(metric::LLC_DIRTY_BLOCKS, dirty.into());
        if evict == EvictAt::AfterUse {
            evicted = self.force_out(line, n);
        }
        if self.spec.placement.sweep_rx {
            self.execute(&[Op::Maintain { line, lines: blocks, op: Sweep::Sweep }]);
        }
        let copies: u32 = line.span(n).map(|l| self.machine.mem.copies(l).0).sum();
        v.set(metric::COPIES_LEFT, copies.into());
        v.set(metric::CLSWEEPS, self.machine.mem.stats.clsweeps.to_f64());
        v.set(metric::SWEEP_MESSAGES, self.machine.mem.stats.sweep_messages.to_f64());
        let clock = Clock::from_hz(self.spec.platform.core.clock.0);
        v.set(metric::FIRST_READ_CYCLES, clock.cycles(first));
        if evicted.0 > 0 {
            v.set(metric::EVCT_DIRTY_FRACTION, evicted.1.to_f64() / evicted.0.to_f64());
        }
        // Lines of the packet that caches still hold are evicted, so that their write-backs count.
        self.force_out(line, n);
        let (reads, writes) = self.moved();
        v.set(metric::DRAM_READS_PER_BLOCK, reads.to_f64() / n.to_f64());
        v.set(metric::DRAM_WRITES_PER_BLOCK, writes.to_f64() / n.to_f64());
        self.machine.mem.restart_meters(self.machine.now);
        let cold = self.machine.mem.map.iter().find(|r| r.kind == RegionKind::App).map_or(LineAddr(0), |r| r.base);
        self.execute(&[Op::Anchor { line: cold }, Op::Fence]);
        v.set(metric::UNLOADED_DRAM_NS, self.machine.mem.stats.dram_ps.mean() / 1e3);
    }

    fn transmit(&mut self, blocks: u32, busy: Time, v: &mut Values) -> Vec<(Time, &'static str)> {
        let n = u64::from(blocks);
        let line = self.machine.nic.next_tx(QueueId(0));
        self.machine.nic.reserve_tx(QueueId(0), self.machine.now);
        self.execute(&[Op::Store { line, lines: blocks }, Op::Fence]);
        self.execute(&[Op::Compute(1000)]);
        let id = self.machine.nic.register_packet(Packet {
            tx_line: line,
            tx_lines: blocks.to_u16(),
            uses: 2,
            ..Packet::default()
        });
        let written = self.machine.now;
        let (_, log) = self.execute(&[Op::Mmio { tag: QpEffect::Post.tag(id) }, Op::Stall(busy.0)]);
        let sent = log.sent.unwrap_or(written);
        let mut swept = log.last_sweep;
        let mut released = log.freed.unwrap_or(sent);
        if self.spec.placement.sweep_tx == SweepTx::Cpu {
            // The core returns to its completion queue at this point.
            while let Some((line, lines, _)) = self.machine.nic.hint(QueueId(0)) {
                let lines = u32::from(lines);
                let (_, log) = self.execute(&[Op::Maintain { line, lines, op: Sweep::Sweep }]);
                swept = log.last_sweep;
                released = released.max(self.machine.now);
            }
        }
        self.machine.mem.restart_meters(self.machine.now);
        // Private copies are evicted to the LLC, and the copies of the LLC are then evicted.
        for l in line.span(n) {
            self.machine.mem.push_out(&mut self.machine.cal, l, self.machine.now);
        }
        self.force_out(line, n);
        v.set(metric::TX_WRITES_PER_BLOCK, self.machine.mem.stats.of(AccessClass::TxEvct).to_f64() / n.to_f64());
        let mut events = vec![
            (written, "WQ entry written"),
            (log.wq_read.unwrap_or(written), "WQ entry read"),
            (sent, "transmission complete"),
        ];
        if let Some(t) = swept {
            v.set(metric::SWEEP_DELAY_NS, (t - sent).as_ns());
            events.push((t, "sweep messages"));
        }
        events.push((released, "buffer released"));
        events
    }

    /// Measures one load of core 0, for a line in `place`.
    fn probe(&mut self, place: ProbePlace, v: &mut Values) {
        let shared: Vec<LineAddr> =
            self.machine.mem.map.iter().filter(|r| r.sharing == Sharing::Shared).map(|r| r.base).collect();
        let (near, far) = (shared[0], shared[shared.len() - 1]);
        let (line, writer) = match place {
            ProbePlace::LocalL1 | ProbePlace::LocalL2 | ProbePlace::LocalLlc => (near, Some(ThreadId(0))),
            ProbePlace::LocalDram => (near, None),
            ProbePlace::OtherL2 => (near, Some(ThreadId(1))),
            ProbePlace::RemoteDram => (far, None),
            ProbePlace::RemoteLlc | ProbePlace::RemoteL2Rh => (far, Some(ThreadId(2))),
            ProbePlace::RemoteL2Lh => (near, Some(ThreadId(2))),
        };
        if let Some(core) = writer {
            self.execute_on(core, &[Op::Store { line, lines: 1 }, Op::Fence]);
        }
        match place {
            ProbePlace::LocalLlc | ProbePlace::RemoteLlc => {
                self.machine.mem.push_out(&mut self.machine.cal, line, self.machine.now);
            }
            ProbePlace::LocalL2 => {
                // Other lines of the same set replace the line in the L1.
                let l1 = &self.spec.platform.caches.l1d;
                let sets = l1.size.0 / crate::memory::LINE / u64::from(l1.ways);
                let others = (1..=u64::from(l1.ways)).map(|i| Op::Anchor { line: line + i * sets });
                self.execute(&others.chain([Op::Fence]).collect::<Vec<_>>());
            }
            _ => {}
        }
        self.settle();
        let now = self.machine.now;
        self.machine.mem.restart_meters(now);
        self.machine.cpus[ThreadId(0)].restart_meters(now);
        self.execute(&[Op::Anchor { line }, Op::Fence]);
        let seen = self.machine.cpus[ThreadId(0)].amat;
        v.set(metric::ACCESS_NS, seen.ps.to_f64() / seen.accesses.to_f64() / 1e3);
        let vain = self.machine.mem.inter_socket().map_or(0, |b| b.speculative_reads);
        v.set(metric::SPECULATIVE_READS, vain.to_f64());
    }

    fn reuse(&mut self, lines: u64, guard: Guard, v: &mut Values) {
        let n = lines.to_u32();
        let line = self.machine.mem.map.iter().find(|r| r.kind == RegionKind::App).map_or(LineAddr(0), |r| r.base);
        let maintain = |op: Sweep| Op::Maintain { line, lines: n, op };
        // The previous owner's data lies in memory.
        self.execute(&[Op::Store { line, lines: n }, Op::Fence, maintain(Sweep::Flush), Op::Fence]);
        let secret: Vec<u64> = line.span(lines).map(|l| self.machine.mem.version(l)).collect();
        match guard {
            Guard::None => drop(self.execute(&[Op::Store { line, lines: n }, Op::Fence])),
            Guard::Clwb => {
                let zero = Op::Store { line, lines: n };
                self.execute(&[zero, Op::Fence, maintain(Sweep::WriteBack), Op::Fence]);
            }
            Guard::Dma => {
                // The write does not belong to a packet of the NIC, but to a DMA engine of the kernel.
                let now = self.machine.now;
                let zero =
                    Txn::dma_write(Sender::Background, AccessClass::NicRxWr, Inbound::Dram, line, n.to_u16(), now);
                self.machine.mem.dma_functional(&mut self.machine.cal, &zero);
                self.run_until_idle();
            }
        }
        // The next owner sweeps its new page and reads the page.
        self.execute(&[maintain(Sweep::Sweep), Op::Fence]);
        let stale = line.span(lines).zip(secret).filter(|(l, s)| self.machine.mem.version(*l) == *s);
        v.set(metric::STALE_BLOCKS_READABLE, stale.count().to_f64());
    }
}
