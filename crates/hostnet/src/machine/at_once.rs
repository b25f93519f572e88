//! Programs that take effect without time: caches are being warmed.

use super::Machine;
use crate::core::{Op, Program};
use crate::kernel::Time;
use crate::memory::stats::Class;
use crate::memory::{Agent, Sweep, Txn};
use crate::placement::{DeviceKind, SweepTx, Transfer};

impl Machine {
    /// Executes the program in `core`'s buffer; `retired` gets its side effects in their turn.
    pub fn execute_at_once(&mut self, core: u16, mut retired: impl FnMut(&mut Machine, u32)) {
        let program = std::mem::take(&mut self.cpus[usize::from(core)].program);
        self.each_at_once(core, &program, &mut retired);
        self.cpus[usize::from(core)].program = program;
    }

    fn each_at_once(&mut self, core: u16, program: &Program, retired: &mut impl FnMut(&mut Machine, u32)) {
        for op in &program.ops {
            let (line, lines, write) = match *op {
                Op::Load { line, lines } | Op::DependentLoad { line, lines } | Op::Prefetch { line, lines } => {
                    (line, lines, false)
                }
                Op::Anchor { line } | Op::Chase { line, .. } => (line, 1, false),
                Op::Store { line, lines } | Op::DependentStore { line, lines } => (line, lines, true),
                Op::Copy { from, to, lines, .. } => {
                    for i in 0..u64::from(lines) {
                        self.mem.access_at_once(&mut self.cal, core, from + i, false);
                        self.mem.access_at_once(&mut self.cal, core, to + i, true);
                    }
                    continue;
                }
                Op::CopyStream { from, to, lines } => {
                    for i in 0..u64::from(lines) {
                        self.mem.access_at_once(&mut self.cal, core, from + i, false);
                        self.mem.stream_at_once(&mut self.cal, to + i);
                    }
                    continue;
                }
                Op::Maintain { line, lines, op } => {
                    self.maintain_at_once(core, line, lines, Sweep::from_u8(op));
                    continue;
                }
                Op::Invalidate { line, lines, op, .. } => {
                    self.maintain_at_once(core, line, lines, op);
                    continue;
                }
                Op::Retire { tag, .. } | Op::Mmio { tag, .. } => {
                    retired(self, tag);
                    continue;
                }
                Op::Compute(_) | Op::Fence | Op::Stall(_) => continue,
            };
            for l in line..line + u64::from(lines) {
                self.mem.access_at_once(&mut self.cal, core, l, write);
            }
        }
    }

    /// Cache maintenance of `core` for `lines` lines from `line` on.
    pub fn maintain_at_once(&mut self, core: u16, line: u64, lines: u32, op: Sweep) {
        if op.drops_data() {
            self.mem.consumed(line, lines.into());
        }
        if op == Sweep::InvalidateOwn {
            return self.mem.invalidate_own(core.into(), line, lines.into());
        }
        for l in line..line + u64::from(lines) {
            self.mem.on_sweep(&mut self.cal, l, op, Time::ZERO);
        }
    }

    /// The NIC writes the lines of packet `id`.
    pub fn receive_at_once(&mut self, id: u32) {
        let p = *self.nic.packet(id);
        for (tag, first, lines) in self.nic.parts(&p) {
            let line = p.line + u64::from(first);
            let transfer = Transfer { tag, ..Transfer::of(Agent::Nic, DeviceKind::Nic, line) };
            let to = self.placement.write(&transfer);
            let write = Txn::dma_write(Agent::Nic, Class::NicRxWr, to, line, lines, 0, Time::ZERO);
            self.mem.dma_at_once(&mut self.cal, &write);
        }
    }

    /// The NIC reads the reply of packet `id` and sweeps it if asked.
    pub fn transmit_at_once(&mut self, id: u32) {
        let p = *self.nic.packet(id);
        let from = self.placement.read(&Transfer::of(Agent::Nic, DeviceKind::Nic, p.tx_line));
        let read = Txn::dma_read(Agent::Nic, Class::NicTxRd, p.tx_line, p.tx_lines, 0, Time::ZERO);
        self.mem.dma_at_once(&mut self.cal, &Txn { from, ..read });
        if self.nic.sweep_tx != SweepTx::None {
            for l in p.tx_line..p.tx_line + u64::from(p.tx_lines) {
                self.mem.on_sweep(&mut self.cal, l, Sweep::Sweep, Time::ZERO);
            }
        }
    }

    /// Each device behind the IIO that writes moves `lines` lines.
    pub fn devices_write_at_once(&mut self, lines: u64) {
        if let Some(iio) = &mut self.iio {
            iio.write_at_once(&mut self.mem, &mut self.cal, &mut self.placement, lines);
        }
    }
}
