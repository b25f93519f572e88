//! Functional mode: programs and DMA take effect without advancing time, which warms the caches.

use super::Machine;
use crate::core::{Mapped, Op, Program};
use crate::device::nic::Packet;
use crate::device::NicAt;
use crate::kernel::{CoreId, Int, LineAddr, PacketId, PortId, QueueId, ThreadId, Time};
use crate::memory::region::PAGE_LINES;
use crate::memory::stats::AccessClass;
use crate::memory::{Agent, Sender, Sweep, Tag, Txn};
use crate::placement::{DeviceKind, DeviceTransfer, SweepTx};

/// Lines of a program whose sets the computer that runs the simulation prefetches before the first access: with two sets a
/// line, and a set in up to two blocks of 64 B, they take half of an L1 of 48 KiB.
const AHEAD: u32 = 96;

impl Machine {
    /// Executes the program in `thread`'s buffer in functional mode; calls `retired` for each tag in program order.
    pub fn execute_functional(&mut self, thread: ThreadId, mut retired: impl FnMut(&mut Machine, u32)) {
        let program = std::mem::take(&mut self.cpus[thread].program);
        self.each_functional(thread, &program, &mut retired);
        self.cpus[thread].program = program;
    }

    fn each_functional(&mut self, thread: ThreadId, program: &Program, retired: &mut impl FnMut(&mut Machine, u32)) {
        let core = self.cpus[thread].core();
        let crosses = self.cpus[thread].prefetcher.as_ref().is_some_and(|p| p.next_page);
        let mut ahead = AHEAD;
        for (line, lines, _) in program.ops.iter().filter_map(Op::accesses) {
            let lines = lines.min(ahead);
            self.mem.prefetch_sets_on_host(core, line, lines);
            ahead -= lines;
        }
        for op in &program.ops {
            match *op {
                Op::Copy { from, to, lines, .. } => {
                    for i in 0..u64::from(lines) {
                        self.mem.access_functional(&mut self.cal, core, from + i, false);
                        self.mem.access_functional(&mut self.cal, core, to + i, true);
                    }
                }
                Op::CopyStream { from, to, lines, .. } => {
                    for i in 0..u64::from(lines) {
                        self.mem.access_functional(&mut self.cal, core, from + i, false);
                        self.mem.stream_functional(&mut self.cal, core, to + i);
                    }
                }
                Op::PrefetchOwn { line, lines } => {
                    line.span(lines).for_each(|l| self.mem.own_functional(&mut self.cal, core, l));
                }
                Op::LoadOwn { line } => self.mem.own_functional(&mut self.cal, core, line),
                Op::StoreStream { line, lines } => {
                    line.span(lines).for_each(|l| self.mem.stream_functional(&mut self.cal, core, l));
                }
                Op::Combine { line, to: Mapped::Memory, .. } => self.mem.stream_functional(&mut self.cal, core, line),
                Op::Maintain { line, lines, op } | Op::Invalidate { line, lines, op, .. } => {
                    self.maintain_functional(core, line, lines, op);
                }
                Op::Retire { tag, .. } | Op::Mmio { tag } => retired(self, tag),
                Op::Release { line, tag } => {
                    self.mem.access_functional(&mut self.cal, core, line, true);
                    retired(self, tag);
                }
                _ => {
                    let Some((line, lines, write)) = op.accesses() else { continue };
                    for l in line.span(lines) {
                        self.mem.access_functional(&mut self.cal, core, l, write);
                        if crosses {
                            self.prefetch_next_page_functional(thread, l);
                        }
                    }
                }
            }
        }
    }

    /// Prefetches from the next page what `thread`'s prefetcher fetches beyond the page of `line`. Where the stream goes on
    /// elsewhere these lines are of no use, and their place in the caches is the only trace of them.
    fn prefetch_next_page_functional(&mut self, thread: ThreadId, line: LineAddr) {
        let cpu = &mut self.cpus[thread];
        let core = cpu.core();
        let Some(p) = &mut cpu.prefetcher else { return };
        let (network, instruction) = (p.network, u32::from(self.mem.map.id(line).0) << 8);
        let map = &self.mem.map;
        let beyond = p
            .observe(instruction, line, |step| map.neighbouring_page(line, step))
            .filter(|l| l.0 / PAGE_LINES != line.0 / PAGE_LINES);
        for l in beyond {
            let Some(l) = self.mem.map.in_virtual_order(line, l) else { break };
            if self.mem.worth_prefetching(core, l, network) {
                self.mem.access_functional(&mut self.cal, core, l, false);
            }
        }
    }

    /// Performs cache maintenance of `core` on `lines` lines from `line` on in functional mode.
    pub fn maintain_functional(&mut self, core: CoreId, line: LineAddr, lines: u32, op: Sweep) {
        if op.drops_data() {
            self.mem.consumed(line, lines.into());
        }
        if op == Sweep::InvalidateOwn {
            return self.mem.invalidate_own(core, line, lines.into());
        }
        for l in line.span(lines) {
            self.mem.on_sweep(&mut self.cal, l, op, Time::ZERO);
        }
    }

    /// Writes the lines of packet `id` from the NIC on the chip in functional mode.
    pub fn receive_functional(&mut self, id: PacketId) {
        let p = *self.nic.packet(id);
        for (tag, first, lines) in self.nic.parts(&p) {
            let line = p.line + u64::from(first);
            let transfer = DeviceTransfer { tag, ..DeviceTransfer::of(Agent::Nic, DeviceKind::Nic, line) };
            let to = self.placement.write(&transfer);
            let write = Txn::dma_write(Sender::Nic(None), AccessClass::NicRxWr, to, line, lines, Time::ZERO);
            self.mem.dma_functional(&mut self.cal, &write);
        }
    }

    /// Reads the reply of packet `id` for the NIC on the chip in functional mode, and sweeps the reply if configured.
    pub fn transmit_functional(&mut self, id: PacketId) {
        let p = *self.nic.packet(id);
        let from = self.placement.read(&DeviceTransfer::of(Agent::Nic, DeviceKind::Nic, p.tx_line));
        let read = Txn::dma_read(Sender::Nic(None), AccessClass::NicTxRd, p.tx_line, p.tx_lines, Time::ZERO);
        self.mem.dma_functional(&mut self.cal, &Txn { from, ..read });
        if self.nic.sweep_tx != SweepTx::None {
            for l in p.tx_line.span(p.tx_lines) {
                self.mem.on_sweep(&mut self.cal, l, Sweep::Sweep, Time::ZERO);
            }
        }
    }

    /// Receives a packet on `queue` of the NIC on `port`, whose descriptors lie in memory, in functional mode; returns
    /// the number of the packet's record, or None without such a NIC.
    pub fn ring_receive_functional(&mut self, port: PortId, queue: QueueId, packet: Packet) -> Option<PacketId> {
        let nic = self.nic_at(NicAt::Port(port))?;
        let (id, descriptor) = nic.receive_functional(queue, packet);
        let p = *nic.packet(id);
        let parts = nic.parts(&p);
        let own = nic.marker.as_ref().map_or(Tag::default(), |m| m.tag(queue));
        for (tag, first, lines) in parts {
            self.io_functional(true, p.line + u64::from(first), lines, tag);
        }
        self.io_functional(false, descriptor, 1, Tag::default());
        self.io_functional(true, descriptor, 1, own);
        Some(id)
    }

    /// Sends all packets in transmit descriptors of `queue` of the NIC on `port` in functional mode.
    pub fn ring_transmit_functional(&mut self, port: PortId, queue: QueueId) {
        while let Some((id, second, descriptor)) =
            self.nic_at(NicAt::Port(port)).and_then(|nic| nic.transmit_functional(queue))
        {
            let Some(nic) = self.nic_at(NicAt::Port(port)) else { return };
            let p = *nic.packet(id);
            if second || p.object_bytes == 0 {
                nic.end_use(id);
            }
            let own = nic.marker.as_ref().map_or(Tag::default(), |m| m.tag(queue));
            self.io_functional(false, descriptor, 1, Tag::default());
            if second {
                self.io_functional(false, p.object, p.object_lines().to_u16(), Tag::default());
                self.io_functional(true, descriptor, 1, own);
                continue;
            }
            self.io_functional(false, p.tx_line, p.tx_lines, Tag::default());
            if self.nic_at(NicAt::Port(port)).is_some_and(|nic| nic.sweep_tx == SweepTx::Nic) {
                self.maintain_functional(CoreId(0), p.tx_line, p.tx_lines.into(), Sweep::Sweep);
            }
            self.io_functional(true, descriptor, 1, own);
        }
    }

    /// Writes or reads `lines` lines from `line` on for the NIC on a port in functional mode.
    fn io_functional(&mut self, write: bool, line: LineAddr, lines: u16, tag: Tag) {
        let transfer = DeviceTransfer { tag, ..DeviceTransfer::of(Agent::Io, DeviceKind::Nic, line) };
        let t = if write {
            let to = self.placement.write(&transfer);
            Txn::dma_write(Sender::Io, AccessClass::NicRxWr, to, line, lines, Time::ZERO)
        } else {
            let from = self.placement.read(&transfer);
            Txn { from, ..Txn::dma_read(Sender::Io, AccessClass::NicTxRd, line, lines, Time::ZERO) }
        };
        self.mem.dma_functional(&mut self.cal, &t);
    }

    /// Lets each writing device behind the IIO write `lines` lines in functional mode.
    pub fn devices_write_functional(&mut self, lines: u64) {
        if let Some(iio) = &mut self.iio {
            iio.write_functional(&mut self.mem, &mut self.cal, &mut self.placement, lines);
        }
    }
}
