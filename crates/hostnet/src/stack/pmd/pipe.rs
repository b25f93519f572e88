//! A ring in memory between two cores of a poll-mode driver: one receives and puts packets in, the other takes them out, serves
//! and sends them. DPDK calls that the pipeline model, beside run to completion.
//!
//! ```text
//!   line 0: producer's index     line 1: consumer's index     then: pointers to packets, eight a line
//! ```
//!
//! Either core reads the other's index and writes its own, so that these lines go to and fro. Buffers that the second core frees
//! go back to the pool's common ring, which the first one takes from.

use crate::core::{Op, Program};
use crate::kernel::{Int, LineAddr, PacketId};
use crate::memory::LINE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Cores of a tenant in pairs: the first half receive, each of the others works on what one of those hands on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PipelineSpec {
    /// Packets that a ring holds; a power of two. A core that receives takes no more from the NIC than it has room for.
    #[serde(default = "ring")]
    pub ring: u32,
    /// Instructions of putting a burst in, and of taking one out, beside the accesses. The default is assumed.
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
    /// # Errors
    /// One clause with key and value, for a driver that takes `burst` packets at once.
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

/// Pointers in a line.
const POINTERS: u64 = LINE / 8;

/// The ring, and what goes between its cores beside packets.
#[derive(Clone)]
pub struct Pipe {
    spec: PipelineSpec,
    base: LineAddr,
    /// Packets whose stores have not retired, and those that the other core can see.
    put: VecDeque<PacketId>,
    seen: VecDeque<PacketId>,
    /// Packets ever put in and taken out.
    tail: u64,
    head: u64,
    /// Buffers in the pool's common ring that the core that receives does not know of.
    pub freed: VecDeque<u32>,
    /// Something has become visible that the other core has not been told of.
    wakes: bool,
}

impl Pipe {
    /// One that lies at line `base`.
    pub fn new(spec: PipelineSpec, base: LineAddr) -> Pipe {
        let (put, seen, freed) = Default::default();
        Pipe { spec, base, put, seen, tail: 0, head: 0, freed, wakes: false }
    }

    /// Its lines in memory.
    pub fn lines(spec: &PipelineSpec) -> u64 {
        2 + u64::from(spec.ring) / POINTERS
    }

    /// The line that says whether there are packets, and the one that says whether there is room.
    pub fn producer(&self) -> LineAddr {
        self.base
    }
    pub fn consumer(&self) -> LineAddr {
        self.base + 1
    }

    pub fn room(&self) -> usize {
        (u64::from(self.spec.ring) - (self.tail - self.head)).to_usize()
    }

    /// Packets that can be taken out.
    pub fn waiting(&self) -> usize {
        self.seen.len()
    }

    /// Lines that hold `n` pointers from the `from`-th on.
    fn slots(&self, from: u64, n: u64) -> impl Iterator<Item = LineAddr> + use<> {
        let (base, of) = (self.base + 2, u64::from(self.spec.ring) / POINTERS);
        (from / POINTERS..(from + n).div_ceil(POINTERS)).map(move |l| base + l % of)
    }

    /// Puts packets in, as many as there is room for; [`Pipe::show`] makes them visible.
    pub fn enqueue(&mut self, packets: &[PacketId], p: &mut Program) {
        debug_assert!(packets.len() <= self.room());
        p.compute(self.spec.burst_instructions);
        p.push(Op::Load { line: self.consumer(), lines: 1 });
        self.slots(self.tail, packets.len().to_u64()).for_each(|line| p.push(Op::Store { line, lines: 1 }));
        p.push(Op::Store { line: self.producer(), lines: 1 });
        self.tail += packets.len().to_u64();
        self.put.extend(packets);
    }

    /// The stores of `n` packets have retired.
    pub fn show(&mut self, n: u32) {
        self.seen.extend(self.put.drain(..n.to_usize()));
        self.wakes = true;
    }

    /// Takes up to `most` packets out. The producer's index has been read.
    pub fn dequeue(&mut self, most: usize, to: &mut Vec<PacketId>, p: &mut Program) {
        let n = most.min(self.seen.len());
        p.compute(self.spec.burst_instructions);
        self.slots(self.head, n.to_u64()).for_each(|line| p.push(Op::Load { line, lines: 1 }));
        p.push(Op::Store { line: self.consumer(), lines: 1 });
        self.head += n.to_u64();
        to.extend(self.seen.drain(..n));
    }

    /// Whether the other core is to be told.
    pub fn wakes(&mut self) -> bool {
        std::mem::take(&mut self.wakes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_out_as_they_went_in_once_their_stores_have_retired() {
        let mut pipe = Pipe::new(PipelineSpec { ring: 64, burst_instructions: 40 }, LineAddr(1000));
        let (mut p, mut out) = (Program::default(), Vec::new());
        assert_eq!((Pipe::lines(&pipe.spec), pipe.room()), (10, 64));
        pipe.enqueue(&[7, 8, 9].map(PacketId::new), &mut p);
        pipe.enqueue(&[PacketId::new(10); 6], &mut p);
        assert_eq!((pipe.waiting(), pipe.room(), pipe.wakes()), (0, 55, false));
        // The second burst begins in the first line of slots and ends in the next.
        let stores: Vec<u64> =
            p.ops.iter().filter_map(|o| if let Op::Store { line, .. } = o { Some(line.0) } else { None }).collect();
        assert_eq!(stores, [1002, 1000, 1002, 1003, 1000]);
        pipe.show(3);
        assert!(pipe.wakes() && !pipe.wakes());
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
        let mut pipe = Pipe::new(PipelineSpec { ring: 64, burst_instructions: 1 }, LineAddr(0));
        let (mut p, mut out) = (Program::default(), Vec::new());
        for n in [40, 40] {
            pipe.enqueue(&vec![PacketId::new(1); n], &mut p);
            pipe.show(n as u32);
            p.ops.clear();
            pipe.dequeue(64, &mut out, &mut p);
        }
        let loads: Vec<u64> =
            p.ops.iter().filter_map(|o| if let Op::Load { line, .. } = o { Some(line.0) } else { None }).collect();
        assert_eq!(loads, [7, 8, 9, 2, 3]);
    }
}
