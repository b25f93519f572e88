//! One receive buffer, one transmit buffer, one page (Sweeper, sections II-B, V-A to V-D, Figs. 3 and 4).

use super::{Bench, EvictAt, Guard};
use crate::core::Op;
use crate::device::nic::Packet;
use crate::kernel::{Int, QueueId, Time};
use crate::memory::stats::AccessClass;
use crate::memory::{Inbound, Sender, Sweep, Txn, LINE};
use crate::meter::{metric, Values};
use crate::placement::SweepTx;
use crate::stack::qp::QpEffect;

impl Bench {
    /// Checks that a buffer holds a packet of `blocks` blocks.
    pub(super) fn check_blocks(&self, blocks: u32) -> Result<(), String> {
        let room = self.buffer_size.0 / LINE;
        if u64::from(blocks) > room || blocks == 0 {
            return Err(format!(
                "tenant[0].app.blocks = {blocks} is not within 1 to the {room} blocks of rings.buffer_size = \"{}\"",
                self.buffer_size
            ));
        }
        Ok(())
    }

    pub(super) fn receive(&mut self, blocks: u32, evict: EvictAt, v: &mut Values) {
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
        if self.sweep_rx {
            self.execute(&[Op::Maintain { line, lines: blocks, op: Sweep::Sweep }]);
        }
        let copies: u32 = line.span(n).map(|l| self.machine.mem.copies(l).0).sum();
        v.set(metric::COPIES_LEFT, copies.into());
        v.set(metric::CLSWEEPS, self.machine.mem.stats.clsweeps.to_f64());
        v.set(metric::SWEEP_MESSAGES, self.machine.mem.stats.sweep_messages.to_f64());
        v.set(metric::FIRST_READ_CYCLES, self.clock.cycles(first));
        if evicted.0 > 0 {
            v.set(metric::EVCT_DIRTY_FRACTION, evicted.1.to_f64() / evicted.0.to_f64());
        }
        // Lines of the packet that caches still hold are evicted, so that their write-backs count.
        self.force_out(line, n);
        let (reads, writes) = self.moved();
        v.set(metric::DRAM_READS_PER_BLOCK, reads.to_f64() / n.to_f64());
        v.set(metric::DRAM_WRITES_PER_BLOCK, writes.to_f64() / n.to_f64());
        self.machine.mem.restart_meters(self.machine.now);
        self.execute(&[Op::Anchor { line: self.scratch_line() }, Op::Fence]);
        v.set(metric::UNLOADED_DRAM_NS, self.machine.mem.stats.dram_ps.mean() / 1e3);
    }

    pub(super) fn transmit(&mut self, blocks: u32, busy: Time, v: &mut Values) -> Vec<(Time, &'static str)> {
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
        if self.sweep_tx == SweepTx::Cpu {
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

    pub(super) fn reuse(&mut self, lines: u64, guard: Guard, v: &mut Values) {
        let n = lines.to_u32();
        let line = self.scratch_line();
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
