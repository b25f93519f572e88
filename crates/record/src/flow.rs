//! Data flow of a packet's work: from executed instructions to accesses, each with the loads that its address depends
//! on.

use crate::instruction::{Meaning, Registers, Touch, Touched, REGISTERS, RSP};
use crate::predictor::Predictor;
use hostnet_recording::{AccessKind, Counts, PAGE, SOURCES};
use std::collections::HashMap;

const RBP: usize = 5;

/// Indices of the latest loads that a value comes from, in descending order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Loads {
    count: u8,
    index: [u32; SOURCES],
}

impl Loads {
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.index[..self.count as usize].iter().copied()
    }
    fn of(load: u32) -> Loads {
        Loads { count: 1, index: [load, 0, 0, 0] }
    }
    fn add(&mut self, other: Loads) {
        for load in other.iter() {
            let at = self.iter().position(|l| l <= load).unwrap_or(self.count.into());
            if at == SOURCES || self.index[at] == load && at < self.count as usize {
                continue;
            }
            self.index[at..].rotate_right(1);
            self.index[at] = load;
            self.count = (self.count + 1).min(SOURCES as u8);
        }
    }
}

/// An access by its real address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawStep {
    pub before: Counts,
    pub branches_from: Loads,
    pub kind: AccessKind,
    pub address: u64,
    pub bytes: u32,
    pub address_from: Loads,
}

/// What a program has done since a packet's or a burst's work began.
pub(crate) struct Flow {
    pub steps: Vec<RawStep>,
    /// Counts since the last access.
    pub rest: Counts,
    branches_from: Loads,
    registers: [Loads; REGISTERS],
    /// Loads that the contents of memory come from, by the number of the aligned word of 8 bytes.
    memory: HashMap<u64, Loads>,
    pub instructions: u64,
}

/// What is known after an instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct After {
    pub rip: u64,
    /// Iterations of a repeated instruction.
    pub rounds: u64,
}

impl Flow {
    pub(crate) fn new() -> Flow {
        Flow {
            steps: Vec::new(),
            rest: Counts::default(),
            branches_from: Loads::default(),
            registers: [Loads::default(); REGISTERS],
            memory: HashMap::new(),
            instructions: 0,
        }
    }

    /// Adds an executed instruction, with the registers before it.
    pub(crate) fn execute(&mut self, m: &Meaning, before: &Registers, after: After, predictor: &mut Predictor) {
        self.instructions += 1;
        self.rest.instructions += 1;
        self.rest.fences += u32::from(m.fence);
        self.rest.system_calls += u32::from(m.system_call);
        let mut data = self.union(&m.sources);
        let touched = m.touched(before, after.rounds);
        for t in touched.iter().filter(|t| matches!(t.touch, Touch::Load | Touch::Change | Touch::Atomic)) {
            let kind = if t.touch == Touch::Atomic { AccessKind::Atomic } else { AccessKind::Load };
            let from = self.union(&m.operands[t.operand].address);
            data.add(self.load(kind, t, from));
        }
        for t in &touched {
            let from = self.union(&m.operands[t.operand].address);
            let kind = match t.touch {
                Touch::Load => continue,
                Touch::Atomic => {
                    self.remember(t, data);
                    continue;
                }
                Touch::Change | Touch::Store => AccessKind::Store,
                Touch::StreamStore => AccessKind::StreamStore,
                Touch::Prefetch => AccessKind::Prefetch,
                Touch::PrefetchOwn => AccessKind::PrefetchOwn,
                Touch::Flush => AccessKind::Flush,
            };
            self.access(kind, t, from);
            if matches!(kind, AccessKind::Store | AccessKind::StreamStore) {
                self.remember(t, if m.is_call() { Loads::default() } else { data });
            }
        }
        if let Some(branch) = m.branch {
            self.rest.branches += 1;
            let next = before.rip + m.length;
            self.rest.taken += u32::from(after.rip != next);
            if !predictor.predicts(branch, before.rip, next, after.rip) {
                self.rest.mispredicted += 1;
                self.branches_from.add(data);
            }
        }
        self.write_registers(m, data);
    }

    fn write_registers(&mut self, m: &Meaning, data: Loads) {
        if m.is_exchange() {
            if let [(a, _), (b, _)] = m.results[..] {
                self.registers.swap(a, b);
            }
            return;
        }
        if m.is_leave() {
            self.registers[RSP] = self.registers[RBP];
            self.registers[RBP] = data;
            return;
        }
        for (r, part) in &m.results {
            let earlier = self.registers[*r];
            self.registers[*r] = data;
            if *part {
                self.registers[*r].add(earlier);
            }
        }
    }

    #[cfg(test)]
    fn register(&self, r: usize) -> Vec<u32> {
        self.registers[r].iter().collect()
    }

    fn union(&self, registers: &[usize]) -> Loads {
        let mut all = Loads::default();
        registers.iter().for_each(|r| all.add(self.registers[*r]));
        all
    }

    /// Adds a load; returns the loads that its data comes from: itself, and those that the stored data comes from
    /// where this packet's work has stored it.
    fn load(&mut self, kind: AccessKind, t: &Touched, address_from: Loads) -> Loads {
        let mut data = Loads::default();
        for index in self.access(kind, t, address_from) {
            data.add(Loads::of(index));
        }
        if !self.memory.is_empty() {
            for word in words(t) {
                if let Some(stored) = self.memory.get(&word) {
                    data.add(*stored);
                }
            }
        }
        data
    }

    fn remember(&mut self, t: &Touched, data: Loads) {
        for word in words(t) {
            if data == Loads::default() {
                self.memory.remove(&word);
            } else {
                self.memory.insert(word, data);
            }
        }
    }

    /// Adds an access, in parts if it crosses pages, and returns the indices of the parts.
    fn access(&mut self, kind: AccessKind, t: &Touched, address_from: Loads) -> std::ops::Range<u32> {
        let first = self.steps.len() as u32;
        let (mut address, mut left) = (t.address, t.bytes);
        while left > 0 {
            let bytes = left.min(PAGE - address % PAGE);
            self.steps.push(RawStep {
                before: std::mem::take(&mut self.rest),
                branches_from: std::mem::take(&mut self.branches_from),
                kind,
                address,
                bytes: bytes as u32,
                address_from,
            });
            address = address.wrapping_add(bytes);
            left -= bytes;
        }
        first..self.steps.len() as u32
    }
}

fn words(t: &Touched) -> std::ops::RangeInclusive<u64> {
    t.address >> 3..=t.address.saturating_add(t.bytes.saturating_sub(1)) >> 3
}
