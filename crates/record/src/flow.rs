//! Data flow of a packet's work: from executed instructions to accesses, each with the loads that its address depends
//! on.

use crate::instruction::{Meaning, Registers, Touch, Touched, REGISTERS, RSP};
use crate::predictor::Predictor;
use hostnet_recording::{AccessKind, Counts, PAGE, SOURCES};
use std::collections::HashMap;

const RBP: usize = 5;

/// Number of instructions after which a load has retired on any core, so that nothing waits for it any more.
const WINDOW: u64 = 1024;

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
    /// Number of the instruction that makes the access.
    instruction: u64,
}

/// Accesses and data flow of a program since a packet's or a burst's work began.
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

/// State that is known only after an instruction.
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
                self.branches_from.add(self.awaited(data));
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

    /// The loads that something can wait for: those that are not too old, without those whose data another one's address
    /// comes from.
    fn awaited(&self, loads: Loads) -> Loads {
        let mut kept = Loads::default();
        for load in loads.iter() {
            let young = self.steps[load as usize].instruction + WINDOW > self.instructions;
            let implied = |later: u32| self.steps[later as usize].address_from.iter().any(|l| l == load);
            if young && !loads.iter().any(implied) {
                kept.add(Loads::of(load));
            }
        }
        kept
    }

    /// Adds an access, in parts if it crosses pages, and returns the indices of the parts.
    fn access(&mut self, kind: AccessKind, t: &Touched, address_from: Loads) -> std::ops::Range<u32> {
        let address_from = self.awaited(address_from);
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
                instruction: self.instructions,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instruction::{Decoder, Vectors, FLAGS, RCX};

    const RAX: usize = 0;
    const RDX: usize = 2;
    const RBX: usize = 3;
    const RSI: usize = 6;
    const RDI: usize = 7;
    const XMM1: usize = 16 + 1;

    /// A processor without values: instructions run at 0x1000 with registers that a test sets.
    struct Machine {
        flow: Flow,
        registers: Registers,
        decoder: Decoder,
        predictor: Predictor,
    }

    impl Machine {
        fn new() -> Machine {
            let mut registers = Registers { fs: 0xf000, ..Registers::default() };
            for (n, r) in registers.general.iter_mut().enumerate() {
                *r = 0x1_0000 * (n as u64 + 1);
            }
            Machine { flow: Flow::new(), registers, decoder: Decoder::new(), predictor: Predictor::default() }
        }
        /// Executes one instruction that does not branch.
        fn run(&mut self, bytes: &[u8]) {
            self.run_to(bytes, None, 0);
        }
        fn run_to(&mut self, bytes: &[u8], target: Option<u64>, rounds: u64) {
            self.registers.rip = 0x1000;
            let m = self.decoder.decode(bytes, 0x1000).expect("an instruction");
            assert_eq!(m.length, bytes.len() as u64);
            let rip = target.unwrap_or(0x1000 + m.length);
            self.flow.execute(&m, &self.registers, After { rip, rounds }, &mut self.predictor);
        }
        /// Kind, address, bytes and sources of the accesses since number `from`.
        fn since(&self, from: usize) -> Vec<(AccessKind, u64, u32, Vec<u32>)> {
            let list = self.flow.steps[from..].iter();
            list.map(|s| (s.kind, s.address, s.bytes, s.address_from.iter().collect())).collect()
        }
        fn last(&self) -> (AccessKind, u64, u32, Vec<u32>) {
            self.since(self.flow.steps.len() - 1).remove(0)
        }
    }
    use AccessKind::{Atomic, Flush, Load, Prefetch, PrefetchOwn, Store, StreamStore};

    // The encodings are those of Intel's manual (volume 2), and so are sizes and operands.

    #[test]
    fn loads_and_stores_have_address_and_size() {
        let mut m = Machine::new();
        m.run(&[0x8b, 0x44, 0x8b, 0x10]); // mov eax, [rbx + rcx*4 + 16]
        assert_eq!(m.last(), (Load, 0x4_0000 + 4 * 0x2_0000 + 16, 4, vec![]));
        m.run(&[0x66, 0x89, 0x07]); // mov [rdi], ax
        assert_eq!(m.last(), (Store, 0x8_0000, 2, vec![]));
        m.run(&[0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0]); // mov rax, fs:[0x28]
        assert_eq!(m.last(), (Load, 0xf028, 8, vec![]));
        m.run(&[0x8a, 0x05, 0x10, 0, 0, 0]); // mov al, [rip + 0x10]
        assert_eq!(m.last(), (Load, 0x1000 + 6 + 0x10, 1, vec![]));
        m.run(&[0x67, 0x8b, 0x00]); // mov eax, [eax]
        assert_eq!(m.last().1, 0x1_0000);
        m.run(&[0xc5, 0xfe, 0x6f, 0x0e]); // vmovdqu ymm1, [rsi]
        assert_eq!(m.last(), (Load, 0x7_0000, 32, vec![]));
        let n = m.flow.steps.len();
        m.run(&[0x48, 0x8d, 0x04, 0x8b]); // lea rax, [rbx + rcx*4]
        m.run(&[0x0f, 0x1f, 0x00]); // nop [rax]
        assert_eq!(m.flow.steps.len(), n, "neither accesses memory");
        assert_eq!(m.flow.rest.instructions, 2);
    }

    #[test]
    fn the_stack_is_memory() {
        let mut m = Machine::new();
        m.run(&[0x50]); // push rax
        assert_eq!(m.last(), (Store, 0x5_0000 - 8, 8, vec![]));
        m.run(&[0x5a]); // pop rdx
        assert_eq!(m.last(), (Load, 0x5_0000, 8, vec![]));
        m.run_to(&[0xe8, 0, 1, 0, 0], Some(0x1105), 0); // call
        assert_eq!(m.last(), (Store, 0x5_0000 - 8, 8, vec![]));
        m.run_to(&[0xc3], Some(0x1005), 0); // ret
        assert_eq!(m.last(), (Load, 0x5_0000, 8, vec![]));
        assert_eq!((m.flow.rest.branches, m.flow.rest.taken), (1, 1), "a branch counts after its access");
        assert_eq!(m.flow.steps.last().map(|s| (s.before.instructions, s.before.branches)), Some((1, 1)));
    }

    #[test]
    fn read_modify_writes_are_two_accesses_or_atomic() {
        let mut m = Machine::new();
        m.run(&[0x48, 0xff, 0x07]); // inc qword [rdi]
        assert_eq!(m.since(0), [(Load, 0x8_0000, 8, vec![]), (Store, 0x8_0000, 8, vec![])]);
        assert_eq!(m.flow.steps[1].before.instructions, 0, "the instruction counts once");
        m.run(&[0xf0, 0x48, 0xff, 0x07]); // lock inc qword [rdi]
        assert_eq!(m.since(2), [(Atomic, 0x8_0000, 8, vec![])]);
        m.run(&[0x87, 0x07]); // xchg [rdi], eax: atomic without a prefix
        assert_eq!(m.last().0, Atomic);
        m.run(&[0xf0, 0x48, 0x0f, 0xb1, 0x0f]); // lock cmpxchg [rdi], rcx
        assert_eq!(m.since(4), [(Atomic, 0x8_0000, 8, vec![])]);
    }

    #[test]
    fn hints_and_streaming_stores_have_kinds() {
        let mut m = Machine::new();
        for (bytes, kind, size) in [
            (&[0x0f, 0x18, 0x4f, 0x40][..], Prefetch, 64),      // prefetcht0 [rdi + 64]
            (&[0x0f, 0x18, 0x47, 0x40], Prefetch, 64),          // prefetchnta [rdi + 64]
            (&[0x0f, 0x0d, 0x4f, 0x40], PrefetchOwn, 64),       // prefetchw [rdi + 64]
            (&[0x0f, 0xae, 0x7f, 0x40], Flush, 64),             // clflush [rdi + 64]
            (&[0x66, 0x0f, 0xae, 0x77, 0x40], Flush, 64),       // clwb [rdi + 64]
            (&[0x66, 0x0f, 0xe7, 0x4f, 0x40], StreamStore, 16), // movntdq [rdi + 64], xmm1
            (&[0x0f, 0xc3, 0x47, 0x40], StreamStore, 4),        // movnti [rdi + 64], eax
        ] {
            m.run(bytes);
            assert_eq!(m.last(), (kind, 0x8_0040, size, vec![]), "{bytes:x?}");
        }
        m.run(&[0x0f, 0xae, 0xf0]); // mfence
        assert_eq!(m.flow.rest.fences, 1);
    }

    #[test]
    fn a_pointer_chase_is_a_chain() {
        let mut m = Machine::new();
        for _ in 0..3 {
            m.run(&[0x48, 0x8b, 0x00]); // mov rax, [rax]
        }
        m.run(&[0x48, 0x8b, 0x0f]); // mov rcx, [rdi]: independent
        m.run(&[0x48, 0x89, 0x0c, 0x02]); // mov [rdx + rax], rcx: the stored value is no part of the address
        let sources: Vec<Vec<u32>> = m.since(0).into_iter().map(|a| a.3).collect();
        assert_eq!(sources, [vec![], vec![0], vec![1], vec![], vec![2]]);
    }

    #[test]
    fn dependence_goes_through_arithmetic_and_ends_at_constants() {
        let mut m = Machine::new();
        m.run(&[0x8b, 0x07]); // mov eax, [rdi]          load 0
        m.run(&[0x8b, 0x0e]); // mov ecx, [rsi]          load 1
        m.run(&[0x01, 0xc8]); // add eax, ecx
        m.run(&[0x48, 0x8d, 0x14, 0x85, 0, 0, 0, 0]); // lea rdx, [rax*4]
        assert_eq!(m.flow.register(RDX), [1, 0]);
        m.run(&[0x8a, 0x13]); // mov dl, [rbx]           load 2: the rest of rdx stays
        assert_eq!(m.flow.register(RDX), [2, 1, 0]);
        m.run(&[0x0f, 0xb6, 0xd2]); // movzx edx, dl: of the register as a whole
        assert_eq!(m.flow.register(RDX), [2, 1, 0]);
        m.run(&[0x31, 0xd2]); // xor edx, edx
        assert_eq!(m.flow.register(RDX), []);
        m.run(&[0xb8, 1, 0, 0, 0]); // mov eax, 1
        assert_eq!(m.flow.register(RAX), []);
        m.run(&[0x39, 0xc9]); // cmp ecx, ecx
        assert_eq!(m.flow.register(FLAGS), [1]);
        m.run(&[0x48, 0x0f, 0x44, 0xc3]); // cmove rax, rbx: which one depends on the flags
        assert_eq!(m.flow.register(RAX), [1]);
        m.run(&[0x48, 0x93]); // xchg rax, rbx
        assert_eq!((m.flow.register(RAX), m.flow.register(RBX)), (vec![], vec![1]));
    }

    #[test]
    fn dependence_survives_vectors_and_the_stack() {
        let mut m = Machine::new();
        m.run(&[0xf3, 0x0f, 0x6f, 0x0f]); // movdqu xmm1, [rdi]   load 0
        assert_eq!(m.flow.register(XMM1), [0]);
        m.run(&[0x66, 0x48, 0x0f, 0x7e, 0xc8]); // movq rax, xmm1
        m.run(&[0x48, 0x89, 0x44, 0x24, 0x08]); // mov [rsp + 8], rax   store 1
        m.run(&[0x31, 0xc0]); // xor eax, eax
        m.run(&[0x48, 0x8b, 0x5c, 0x24, 0x08]); // mov rbx, [rsp + 8]   load 2
        assert_eq!(m.flow.register(RBX), [2, 0]);
        m.run(&[0xc7, 0x44, 0x24, 0x08, 0, 0, 0, 0]); // mov dword [rsp + 8], 0
        m.run(&[0x8b, 0x5c, 0x24, 0x08]); // mov ebx, [rsp + 8]   load 4
        assert_eq!(m.flow.register(RBX), [4]);
    }

    /// The data of load 1 arrives after that of load 0, whose data is its address; after 1,024 instructions both have
    /// retired.
    #[test]
    fn only_loads_that_can_be_awaited_are_sources() {
        let mut m = Machine::new();
        m.run(&[0x48, 0x8b, 0x00]); // mov rax, [rax]       load 0
        m.run(&[0x48, 0x8b, 0x18]); // mov rbx, [rax]       load 1
        m.run(&[0x8a, 0x04, 0x18]); // mov al, [rax + rbx]  load 2
        assert_eq!(m.last().3, [1]);
        for _ in 3..1024 {
            m.run(&[0x90]); // nop
        }
        m.run(&[0x8a, 0x0b]); // mov cl, [rbx]: instruction 1,025, and load 1 is instruction 2
        assert_eq!(m.last().3, [1]);
        m.run(&[0x8a, 0x0b]); // mov cl, [rbx]
        assert_eq!(m.last().3, []);
    }

    #[test]
    fn repeated_instructions_are_one_access_of_each_kind() {
        let mut m = Machine::new();
        m.registers.general[RCX] = 100;
        m.run(&[0x48, 0x8b, 0x36]); // mov rsi, [rsi]   load 0
        m.run_to(&[0xf3, 0x48, 0xa5], None, 100); // rep movsq: 800 bytes
        assert_eq!(m.since(1), [(Load, 0x7_0000, 800, vec![0]), (Store, 0x8_0000, 800, vec![])]);
        assert_eq!((m.flow.register(RSI), m.flow.register(RDI)), (vec![0], vec![]));
        m.run_to(&[0xf3, 0xaa], None, 5000); // rep stosb: 4,096 bytes to the page's end, and 904
        assert_eq!(m.since(3), [(Store, 0x8_0000, 4096, vec![]), (Store, 0x8_1000, 904, vec![])]);
        let n = m.flow.steps.len();
        m.run_to(&[0xf3, 0xaa], None, 0);
        assert_eq!(m.flow.steps.len(), n, "no iteration, no access");
        assert_eq!(m.flow.instructions, 4);
    }

    #[test]
    fn gathers_access_the_chosen_elements() {
        let mut m = Machine::new();
        let mut v = Vectors { bytes: [[0; 64]; 32], masks: [0; 8] };
        for (element, index) in [(0, 1i32), (1, -1), (2, 7), (3, 9)] {
            v.bytes[1][4 * element..4 * element + 4].copy_from_slice(&index.to_le_bytes());
        }
        (v.bytes[2][3], v.bytes[2][7], v.bytes[2][15]) = (0x80, 0x80, 0x80); // all but the third
        m.registers.vectors = Some(Box::new(v));
        m.run(&[0xf3, 0x0f, 0x6f, 0x0e]); // movdqu xmm1, [rsi]   load 0
        m.run(&[0xc4, 0xe2, 0x69, 0x90, 0x04, 0x8f]); // vpgatherdd xmm0, [rdi + xmm1*4], xmm2
        let want = [0x8_0004, 0x7_fffc, 0x8_0024].map(|address| (Load, address, 4, vec![0]));
        assert_eq!(m.since(1), want);
    }

    #[test]
    fn accesses_are_split_at_pages() {
        let mut m = Machine::new();
        m.registers.general[RDI] = 0x8_0ffc;
        m.run(&[0x48, 0x8b, 0x07]); // mov rax, [rdi]
        assert_eq!(m.since(0), [(Load, 0x8_0ffc, 4, vec![]), (Load, 0x8_1000, 4, vec![])]);
        assert_eq!(m.flow.register(RAX), [1, 0]);
    }

    #[test]
    fn a_mispredicted_branch_names_the_load_that_it_waits_for() {
        let mut m = Machine::new();
        for taken in [true, true, true, false] {
            m.run(&[0x3b, 0x07]); // cmp eax, [rdi]
            m.run_to(&[0x75, 0x10], Some(if taken { 0x1012 } else { 0x1002 }), 0);
            // jne
        }
        m.run(&[0x8b, 0x07]); // mov eax, [rdi]
        let s = m.flow.steps.last().expect("a step");
        assert_eq!((s.before.branches, s.before.taken, s.before.mispredicted), (1, 0, 1));
        assert_eq!(s.branches_from.iter().collect::<Vec<_>>(), [3]);
    }
}
