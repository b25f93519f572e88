//! Meaning of an instruction: its accesses to memory, the registers that its results come from, and its kind of branch.

use iced_x86::{
    Code, CodeSize, FlowControl, Instruction, InstructionInfoFactory, MemorySize, Mnemonic, OpAccess, OpKind, Register,
    UsedMemory,
};

/// Number of registers that the data flow tells apart: general, vector and mask registers, the x87 stack, the flags.
pub(crate) const REGISTERS: usize = 58;
const VECTORS: usize = 16;
const MASKS: usize = 48;
const X87: usize = 56;
pub(crate) const FLAGS: usize = 57;
pub(crate) const RCX: usize = 1;
pub(crate) const RSP: usize = 4;

/// Contents of the registers before an instruction, as far as addresses need them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registers {
    /// RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8 to R15.
    pub general: [u64; 16],
    pub fs: u64,
    pub gs: u64,
    pub rip: u64,
    pub flags: u64,
    /// Read only for instructions with [`Meaning::needs_vectors`].
    pub vectors: Option<Box<Vectors>>,
}

/// Contents of vector and mask registers.
#[derive(Clone, Debug)]
pub(crate) struct Vectors {
    pub bytes: [[u8; 64]; 32],
    pub masks: [u64; 8],
}

/// Effect of a memory operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    Load,
    Store,
    /// An ordinary read-modify-write: a load and a store.
    Change,
    Atomic,
    Prefetch,
    PrefetchOwn,
    StreamStore,
    Flush,
}

/// A memory operand.
#[derive(Clone, Debug)]
pub(crate) struct Operand {
    memory: UsedMemory,
    pub touch: Touch,
    /// Bytes of an access, or of an element of a gather, scatter or repeated instruction.
    pub bytes: u32,
    elements: Elements,
    /// Registers that the address consists of.
    pub address: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Elements {
    One,
    /// As many as RCX says, upwards or downwards.
    Repeated,
    /// Elements of a gather or scatter, with the mask's register.
    Vector {
        count: usize,
        mask: Option<Register>,
    },
}

/// Kind of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Branch {
    Conditional,
    Direct,
    Indirect,
    Call,
    IndirectCall,
    Return,
}

/// How the results of an instruction come about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Idiom {
    /// Each result comes from all sources.
    Usual,
    /// The result is a constant, such as that of `xor eax, eax`.
    Constant,
    /// Two registers are exchanged.
    Exchange,
}

/// Meaning of an instruction, as far as it does not depend on the contents of registers.
#[derive(Clone, Debug)]
pub(crate) struct Meaning {
    pub length: u64,
    pub operands: Vec<Operand>,
    /// Registers whose contents the results come from.
    pub sources: Vec<usize>,
    /// Registers that are written, and whether their earlier contents remain in part.
    pub results: Vec<(usize, bool)>,
    pub branch: Option<Branch>,
    pub fence: bool,
    pub system_call: bool,
    /// Whether the instruction has a `rep` prefix, and is stepped once an iteration.
    pub repeated: bool,
    /// Whether addresses need the contents of vector or mask registers.
    pub needs_vectors: bool,
    idiom: Idiom,
    mnemonic: Mnemonic,
}

/// One access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Touched {
    pub touch: Touch,
    pub address: u64,
    pub bytes: u64,
    /// Index of the operand.
    pub operand: usize,
}

/// Decodes instructions.
pub(crate) struct Decoder(InstructionInfoFactory);

impl Decoder {
    pub(crate) fn new() -> Decoder {
        Decoder(InstructionInfoFactory::new())
    }

    /// The instruction at the start of `bytes`, which lie at `rip`; `None` if the bytes are no instruction.
    pub(crate) fn decode(&mut self, bytes: &[u8], rip: u64) -> Option<Meaning> {
        let i = iced_x86::Decoder::with_ip(64, bytes, rip, iced_x86::DecoderOptions::NONE).decode();
        (i.code() != Code::INVALID).then(|| self.analyse(&i))
    }

    fn analyse(&mut self, i: &Instruction) -> Meaning {
        debug_assert_eq!(i.code_size(), CodeSize::Code64);
        let info = self.0.info(i);
        let repeated = i.is_string_instruction() && (i.has_rep_prefix() || i.has_repne_prefix());
        let operands = operands(i, info.used_memory(), repeated);
        let explicit = |r: Register, reads: bool| {
            (0..i.op_count()).any(|n| {
                i.op_kind(n) == OpKind::Register && i.op_register(n) == r && (!reads || is_read(info.op_access(n)))
            })
        };
        let stack = i.is_stack_instruction();
        let mut sources: Vec<usize> = Vec::new();
        let mut results: Vec<(usize, bool)> = Vec::new();
        let in_address = |r: usize| operands.iter().any(|o| o.address.contains(&r));
        for used in info.used_registers() {
            let Some(r) = number(used.register()) else { continue };
            // The stack pointer of PUSH, and the pointers and the counter of MOVS, change by constants.
            let pointer = stack && r == RSP
                || i.is_string_instruction() && (in_address(r) || repeated && r == RCX)
                || i.mnemonic() == Mnemonic::Leave;
            let read = explicit(used.register(), true) || (!pointer && !in_address(r));
            if is_read(used.access()) && read && !sources.contains(&r) {
                sources.push(r);
            }
            if is_written(used.access()) && !pointer && !results.iter().any(|(n, _)| *n == r) {
                let part = r < VECTORS && used.register().size() < 4;
                results.push((r, part || used.access() != OpAccess::Write && used.access() != OpAccess::ReadWrite));
            }
        }
        // The general registers of an explicit operand can be named by a part, such as EAX beside RAX.
        for n in 0..i.op_count() {
            if i.op_kind(n) == OpKind::Register && is_read(info.op_access(n)) {
                if let Some(r) = number(i.op_register(n)).filter(|r| !sources.contains(r)) {
                    sources.push(r);
                }
            }
        }
        if i.mnemonic() == Mnemonic::Lea {
            sources = [i.memory_base(), i.memory_index()].into_iter().filter_map(number).collect();
        }
        if i.rflags_read() != 0 {
            sources.push(FLAGS);
        }
        if i.rflags_modified() != 0 {
            results.push((FLAGS, false));
        }
        let idiom = idiom(i, &operands);
        if idiom == Idiom::Constant {
            sources.retain(|r| *r == FLAGS);
        }
        let vector = operands.iter().any(|o| matches!(o.elements, Elements::Vector { .. }));
        Meaning {
            length: i.len() as u64,
            sources,
            results,
            branch: branch(i),
            fence: fences(i.mnemonic()),
            system_call: matches!(i.mnemonic(), Mnemonic::Syscall | Mnemonic::Int),
            repeated,
            needs_vectors: vector,
            idiom,
            mnemonic: i.mnemonic(),
            operands,
        }
    }
}

impl Meaning {
    pub(crate) fn is_exchange(&self) -> bool {
        self.idiom == Idiom::Exchange
    }
    pub(crate) fn is_leave(&self) -> bool {
        self.mnemonic == Mnemonic::Leave
    }
    /// Whether the instruction stores a return address, which depends on no load.
    pub(crate) fn is_call(&self) -> bool {
        matches!(self.branch, Some(Branch::Call | Branch::IndirectCall))
    }

    /// The accesses of the instruction, loads first. `rounds` is the number of iterations of a repeated instruction.
    pub(crate) fn touched(&self, r: &Registers, rounds: u64) -> Vec<Touched> {
        let mut all = Vec::new();
        for (n, o) in self.operands.iter().enumerate() {
            let mut add = |address, bytes| all.push(Touched { touch: o.touch, address, bytes, operand: n });
            match o.elements {
                Elements::One => {
                    if let Some(address) = o.at(0, r) {
                        add(address, u64::from(o.bytes));
                    }
                }
                Elements::Repeated => {
                    let bytes = u64::from(o.bytes);
                    if let Some(address) = o.at(0, r).filter(|_| rounds > 0) {
                        let down = r.flags >> 10 & 1 == 1;
                        let first = if down { address.wrapping_sub((rounds - 1) * bytes) } else { address };
                        add(first, rounds * bytes);
                    }
                }
                Elements::Vector { count, mask } => {
                    for e in 0..count {
                        let chosen = mask.is_none_or(|m| r.chosen(m, e, o.bytes as usize));
                        if let Some(address) = o.at(e, r).filter(|_| chosen) {
                            add(address, u64::from(o.bytes));
                        }
                    }
                }
            }
        }
        all.sort_by_key(|t| !matches!(t.touch, Touch::Load | Touch::Change));
        all
    }
}

impl Operand {
    fn at(&self, element: usize, r: &Registers) -> Option<u64> {
        self.memory.virtual_address(element, |register, element, size| match register {
            Register::FS => Some(r.fs),
            Register::GS => Some(r.gs),
            Register::ES | Register::CS | Register::SS | Register::DS => Some(0),
            _ if register.is_vector_register() => r.element(register, element, size),
            _ => number(register).filter(|n| *n < VECTORS).map(|n| {
                if register.size() == 4 {
                    r.general[n] & 0xffff_ffff
                } else {
                    r.general[n]
                }
            }),
        })
    }
}

impl Registers {
    fn element(&self, register: Register, element: usize, size: usize) -> Option<u64> {
        let bytes = &self.vectors.as_ref()?.bytes[number(register)? - VECTORS];
        let part = bytes.get(element * size..(element + 1) * size)?;
        Some(match size {
            4 => i64::from(i32::from_le_bytes(part.try_into().ok()?)) as u64,
            _ => u64::from_le_bytes(part.try_into().ok()?),
        })
    }
    /// Whether the mask has the element: a bit of a mask register, or the sign of an element of a vector register.
    fn chosen(&self, mask: Register, element: usize, size: usize) -> bool {
        let (Some(v), Some(n)) = (self.vectors.as_ref(), number(mask)) else { return true };
        if mask.is_k() {
            return v.masks[n - MASKS] >> element & 1 == 1;
        }
        v.bytes[n - VECTORS].get((element + 1) * size - 1).is_some_and(|b| b >> 7 == 1)
    }
}

/// Number of a register, or `None` for segments, the instruction pointer and registers of the system.
fn number(r: Register) -> Option<usize> {
    if r.is_gpr() {
        return Some(r.full_register().number());
    }
    if r.is_vector_register() {
        return Some(VECTORS + r.number());
    }
    if r.is_k() {
        return Some(MASKS + r.number());
    }
    (r.is_st() || r.is_mm()).then_some(X87)
}

fn is_read(a: OpAccess) -> bool {
    matches!(a, OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

fn is_written(a: OpAccess) -> bool {
    matches!(a, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

fn operands(i: &Instruction, used: &[UsedMemory], repeated: bool) -> Vec<Operand> {
    use Mnemonic as M;
    let hint = match i.mnemonic() {
        M::Prefetchnta | M::Prefetcht0 | M::Prefetcht1 | M::Prefetcht2 | M::Prefetch => Some(Touch::Prefetch),
        M::Prefetchw | M::Prefetchwt1 => Some(Touch::PrefetchOwn),
        M::Clflush | M::Clflushopt | M::Clwb | M::Cldemote => Some(Touch::Flush),
        _ => None,
    };
    let stream = matches!(
        i.mnemonic(),
        M::Movnti
            | M::Movntq
            | M::Movntps
            | M::Movntpd
            | M::Movntdq
            | M::Vmovntps
            | M::Vmovntpd
            | M::Vmovntdq
            | M::Maskmovdqu
            | M::Vmaskmovdqu
            | M::Maskmovq
            | M::Movdiri
            | M::Movdir64b
    );
    // The library lists no memory of instructions that are hints only.
    let hinted = hint.map(|_| {
        let base = if i.is_ip_rel_memory_operand() { Register::None } else { i.memory_base() };
        let (index, scale) = (i.memory_index(), i.memory_index_scale());
        let (to, size) = (i.memory_displacement64(), MemorySize::UInt512);
        UsedMemory::new2(i.memory_segment(), base, index, scale, to, size, OpAccess::Read, CodeSize::Code64, 0)
    });
    let mut out = Vec::new();
    for m in hinted.as_ref().map_or(used, std::slice::from_ref) {
        let (reads, writes) = (is_read(m.access()), is_written(m.access()));
        let touch = match (hint, reads, writes) {
            (Some(hint), ..) => hint,
            (_, true, true) if i.has_lock_prefix() || i.mnemonic() == M::Xchg => Touch::Atomic,
            (_, true, true) => Touch::Change,
            (_, true, false) => Touch::Load,
            (_, false, true) if stream => Touch::StreamStore,
            (_, false, true) => Touch::Store,
            _ => continue, // LEA, NOP
        };
        // Of a repeated instruction the library tells the size of an element only as that of the instruction.
        let bytes = size(if repeated { i.memory_size() } else { m.memory_size() });
        let elements = if i.is_vsib() {
            vector_elements(i, bytes)
        } else if repeated {
            Elements::Repeated
        } else {
            Elements::One
        };
        let address = [m.base(), m.index()].into_iter().filter_map(number).collect();
        out.push(Operand { memory: *m, touch, bytes, elements, address });
    }
    out
}

fn size(m: MemorySize) -> u32 {
    match m.size() {
        0 => 576, // XSAVE and its relatives: the area without extensions, and its head
        n => n as u32,
    }
}

fn vector_elements(i: &Instruction, bytes: u32) -> Elements {
    let index = i.memory_index().size() / if i.is_vsib64() { 8 } else { 4 };
    let registers = (0..i.op_count()).filter(|n| i.op_kind(*n) == OpKind::Register).map(|n| i.op_register(n));
    let vectors: Vec<Register> = registers.filter(|r| r.is_vector_register()).collect();
    let data = vectors.first().map_or(index, |r| r.size() / (bytes as usize).max(1));
    let mask = match i.op_mask() {
        Register::None => vectors.get(1).copied(), // AVX2: the mask is the last operand
        k => Some(k),
    };
    Elements::Vector { count: index.min(data), mask }
}

fn branch(i: &Instruction) -> Option<Branch> {
    Some(match i.flow_control() {
        FlowControl::ConditionalBranch => Branch::Conditional,
        FlowControl::UnconditionalBranch => Branch::Direct,
        FlowControl::IndirectBranch => Branch::Indirect,
        FlowControl::Call if i.mnemonic() == Mnemonic::Call => Branch::Call,
        FlowControl::IndirectCall => Branch::IndirectCall,
        FlowControl::Return => Branch::Return,
        _ => return None,
    })
}

fn fences(m: Mnemonic) -> bool {
    matches!(m, Mnemonic::Mfence | Mnemonic::Lfence | Mnemonic::Sfence | Mnemonic::Cpuid | Mnemonic::Serialize)
}

fn idiom(i: &Instruction, operands: &[Operand]) -> Idiom {
    use Mnemonic as M;
    let registers: Vec<Register> =
        (0..i.op_count()).filter(|n| i.op_kind(*n) == OpKind::Register).map(|n| i.op_register(n)).collect();
    let two_equal = registers.len() >= 2 && registers.len() == i.op_count() as usize && {
        registers[registers.len() - 1] == registers[registers.len() - 2]
    };
    match i.mnemonic() {
        M::Xor
        | M::Sub
        | M::Sbb
        | M::Pxor
        | M::Xorps
        | M::Xorpd
        | M::Vpxor
        | M::Vpxord
        | M::Vpxorq
        | M::Vxorps
        | M::Vxorpd
        | M::Psubb
        | M::Psubw
        | M::Psubd
        | M::Psubq
        | M::Pcmpeqb
        | M::Pcmpeqw
        | M::Pcmpeqd
        | M::Vpcmpeqb
        | M::Vpcmpeqw
        | M::Vpcmpeqd
        | M::Kxorq
        | M::Kxord
        | M::Kxorw
            if two_equal =>
        {
            Idiom::Constant
        }
        M::Xchg if operands.is_empty() => Idiom::Exchange,
        _ => Idiom::Usual,
    }
}
