//! A ring in memory between two cores of a poll-mode driver: one core receives and puts packets in, the other takes
//! them out, serves them and sends replies. DPDK calls this the pipeline model, as opposed to run to completion.
//!
//! ```text
//!   line 0: producer's index     line 1: consumer's index     then: pointers to packets, eight a line
//! ```
//!
//! Each core reads the other's index and writes its own, so that the lines of the indices move back and forth between
//! the cores. Buffers that the second core frees go back to the pool's common ring, from which the first core takes
//! buffers.

use crate::core::{Op, Program};
use crate::kernel::{Int, LineAddr, PacketId, ThreadId};
use crate::memory::LINE;
use crate::stack::{Ctx, Role, Roles};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Pipeline of a tenant's cores in pairs: the first half of the cores receive packets, and each of the other cores
/// works on the packets that its partner hands over.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PipelineSpec {
    /// Number of packets that the software ring of a pair holds: a power of two. A receiving core takes no more packets
    /// from the NIC than the ring has room for. The default is 1024.
    #[serde(default = "ring")]
    pub ring: u32,
    /// Instructions to put a burst into the ring or to take a burst out, in addition to the accesses. The default, 40,
    /// is assumed.
    #[serde(default = "burst_instructions")]
    pub burst_instructions: u32,
}
fn ring() -> u32 {
    1024
}
fn burst_instructions() -> u32 {
    40
}

impl PipelineSpec {
    /// Checks that the ring fits a driver with bursts of `burst` packets.
    ///
    /// # Errors
    /// Returns one clause that names key and value.
    pub fn check(&self, burst: u32) -> Result<(), String> {
        if !self.ring.is_power_of_two() || !(64..=1 << 16).contains(&self.ring) {
            return Err(format!("ring = {} is not a power of two within 64 to 65536", self.ring));
        }
        if burst > self.ring / 2 {
            return Err(format!("ring = {} is less than two bursts of {burst}", self.ring));
        }
        Ok(())
    }
}

/// Pointers to packets per line.
const POINTERS: u64 = LINE / 8;

/// The software ring of a pair of cores, and the freed buffers that pass between them.
#[derive(Clone)]
pub struct SoftwareRing {
    spec: PipelineSpec,
    base: LineAddr,
    /// Packets whose stores have not retired.
    put: VecDeque<PacketId>,
    /// Packets that the other core can see.
    seen: VecDeque<PacketId>,
    /// Number of packets ever put into the ring.
    tail: u64,
    /// Number of packets ever taken out.
    head: u64,
    /// Buffers in the pool's common ring that the receiving core has not learned of.
    pub freed: VecDeque<u32>,
    /// Whether packets have become visible and the other core has not been notified.
    take_wake_up: bool,
}

impl SoftwareRing {
    /// A ring that lies at line `base`.
    pub fn new(spec: PipelineSpec, base: LineAddr) -> SoftwareRing {
        let (put, seen, freed) = Default::default();
        SoftwareRing { spec, base, put, seen, tail: 0, head: 0, freed, take_wake_up: false }
    }

    /// Lines of the ring in memory.
    pub fn lines(spec: &PipelineSpec) -> u64 {
        2 + u64::from(spec.ring) / POINTERS
    }

    /// Line of the producer's index, which shows whether the ring has packets.
    pub fn producer(&self) -> LineAddr {
        self.base
    }
    /// Line of the consumer's index, which shows whether the ring has room.
    pub fn consumer(&self) -> LineAddr {
        self.base + 1
    }

    /// Number of packets for which the ring has room.
    pub fn room(&self) -> usize {
        (u64::from(self.spec.ring) - (self.tail - self.head)).to_usize()
    }

    /// Number of packets that can be taken out.
    pub fn waiting(&self) -> usize {
        self.seen.len()
    }

    /// Lines that hold `n` pointers from number `from` on.
    fn slots(&self, from: u64, n: u64) -> impl Iterator<Item = LineAddr> + use<> {
        let (base, of) = (self.base + 2, u64::from(self.spec.ring) / POINTERS);
        (from / POINTERS..(from + n).div_ceil(POINTERS)).map(move |l| base + l % of)
    }

    /// Puts packets into the ring, which must have room; [`SoftwareRing::publish`] makes the packets visible.
    pub fn enqueue(&mut self, packets: &[PacketId], p: &mut Program) {
        debug_assert!(packets.len() <= self.room());
        p.compute(self.spec.burst_instructions);
        p.push(Op::Load { line: self.consumer(), lines: 1 });
        self.slots(self.tail, packets.len().to_u64()).for_each(|line| p.push(Op::Store { line, lines: 1 }));
        p.push(Op::Store { line: self.producer(), lines: 1 });
        self.tail += packets.len().to_u64();
        self.put.extend(packets);
    }

    /// Makes `n` packets visible, after their stores have retired.
    pub fn publish(&mut self, n: u32) {
        self.seen.extend(self.put.drain(..n.to_usize()));
        self.take_wake_up = true;
    }

    /// Takes up to `most` packets out of the ring. The core has read the producer's index.
    pub fn dequeue(&mut self, most: usize, to: &mut Vec<PacketId>, p: &mut Program) {
        let n = most.min(self.seen.len());
        p.compute(self.spec.burst_instructions);
        self.slots(self.head, n.to_u64()).for_each(|line| p.push(Op::Load { line, lines: 1 }));
        p.push(Op::Store { line: self.consumer(), lines: 1 });
        self.head += n.to_u64();
        to.extend(self.seen.drain(..n));
    }

    /// Whether the other core is to be notified; clears the flag.
    pub fn take_wake_up(&mut self) -> bool {
        std::mem::take(&mut self.take_wake_up)
    }
}

/// The software rings of a tenant whose cores work in pairs.
#[derive(Clone)]
pub struct SoftwareRings {
    /// Rings, by the number of the pair's first core within the tenant.
    rings: Vec<SoftwareRing>,
    /// Second core of each pair.
    second: Vec<ThreadId>,
}

impl SoftwareRings {
    /// The rings of as many pairs, whose second cores are `second`.
    pub fn new(rings: Vec<SoftwareRing>, second: Vec<ThreadId>) -> SoftwareRings {
        SoftwareRings { rings, second }
    }

    /// Ring of the core that takes the step, if the tenant's cores work in pairs.
    #[inline]
    pub(super) fn ring<'a>(c: &'a Ctx) -> Option<&'a SoftwareRing> {
        let all = c.roles.get::<SoftwareRings>()?;
        all.rings.get(c.step.local % all.rings.len())
    }

    /// Ring of core `local` of a tenant with these roles, if the tenant's cores work in pairs.
    #[inline]
    pub(super) fn ring_mut(roles: &mut Roles, local: usize) -> Option<&mut SoftwareRing> {
        let all = roles.get_mut::<SoftwareRings>()?;
        let pair = local % all.rings.len();
        all.rings.get_mut(pair)
    }
}

impl Role for SoftwareRings {
    fn take_wake_up(&mut self) -> Option<ThreadId> {
        let woken = self.rings.iter_mut().position(SoftwareRing::take_wake_up)?;
        Some(self.second[woken])
    }

    fn transmitting_core(&self, index: usize) -> Option<ThreadId> {
        self.second.get(index).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_out_as_they_went_in_once_their_stores_have_retired() {
        let mut pipe = SoftwareRing::new(PipelineSpec { ring: 64, burst_instructions: 40 }, LineAddr(1000));
        let (mut p, mut out) = (Program::default(), Vec::new());
        assert_eq!((SoftwareRing::lines(&pipe.spec), pipe.room()), (10, 64));
        pipe.enqueue(&[7, 8, 9].map(PacketId::new), &mut p);
        pipe.enqueue(&[PacketId::new(10); 6], &mut p);
        assert_eq!((pipe.waiting(), pipe.room(), pipe.take_wake_up()), (0, 55, false));
        // The second burst begins in the first line of slots and ends in the next line.
        let stores: Vec<u64> =
            p.ops.iter().filter_map(|o| if let Op::Store { line, .. } = o { Some(line.0) } else { None }).collect();
        assert_eq!(stores, [1002, 1000, 1002, 1003, 1000]);
        pipe.publish(3);
        assert!(pipe.take_wake_up() && !pipe.take_wake_up());
        p.ops.clear();
        pipe.dequeue(2, &mut out, &mut p);
        assert_eq!((&out[..], pipe.waiting(), pipe.room()), (&[7, 8].map(PacketId::new)[..], 1, 57));
        assert!(
            p.ops.contains(&Op::Load { line: LineAddr(1002), lines: 1 })
                && p.ops.contains(&Op::Store { line: LineAddr(1001), lines: 1 })
        );
        pipe.dequeue(32, &mut out, &mut p);
        assert_eq!(out, [7, 8, 9].map(PacketId::new));
    }

    #[test]
    fn the_ring_begins_again_at_its_end() {
        let mut pipe = SoftwareRing::new(PipelineSpec { ring: 64, burst_instructions: 1 }, LineAddr(0));
        let (mut p, mut out) = (Program::default(), Vec::new());
        for n in [40, 40] {
            pipe.enqueue(&vec![PacketId::new(1); n], &mut p);
            pipe.publish(n as u32);
            p.ops.clear();
            pipe.dequeue(64, &mut out, &mut p);
        }
        let loads: Vec<u64> =
            p.ops.iter().filter_map(|o| if let Op::Load { line, .. } = o { Some(line.0) } else { None }).collect();
        assert_eq!(loads, [7, 8, 9, 2, 3]);
    }
}
