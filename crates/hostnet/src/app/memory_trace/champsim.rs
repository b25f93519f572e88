//! ChampSim traces: records of instructions with their registers and the addresses of their accesses
//! (`inc/trace_instruction.h`, `input_instr`).
//!
//! A load waits for the earlier load whose data has reached one of its registers. The record does not tell registers of
//! the address from registers of data, so all of them count, but for the stack pointer, the flags and the instruction
//! pointer. Outcomes of branches are not used: the simulated core mispredicts no branch of a trace.

use super::Accesses;
use crate::app::recorded::compile::Source;
use std::io::{self, ErrorKind, Read};

/// Bytes of a record: instruction pointer (8), branch and outcome (2), two destination and four source registers,
/// two destination and four source addresses (8 each).
pub(super) const RECORD: usize = 64;
/// Registers that carry no addresses of data: stack pointer, flags and instruction pointer (`trace_instruction.h`).
const NO_DATA: [u8; 3] = [6, 25, 26];

/// An instruction of a trace. Zero stands for no register and for no address.
struct TracedInstruction {
    writes: [u8; 2],
    reads: [u8; 4],
    stores: [u64; 2],
    loads: [u64; 4],
}

impl TracedInstruction {
    fn new(r: &[u8; RECORD]) -> TracedInstruction {
        let address = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&r[at..at + 8]);
            u64::from_le_bytes(bytes)
        };
        TracedInstruction {
            writes: [r[10], r[11]],
            reads: [r[12], r[13], r[14], r[15]],
            stores: [address(16), address(24)],
            loads: [address(32), address(40), address(48), address(56)],
        }
    }
}

/// Reads up to `entries` instructions.
///
/// # Errors
/// Returns the system's error.
pub(super) fn read(input: &mut dyn Read, entries: u64, accesses: &mut Accesses) -> io::Result<()> {
    // The load whose data each register holds, and the length of the chain of loads that ends there.
    let mut held: [Option<Source>; 256] = [None; 256];
    let mut record = [0; RECORD];
    for _ in 0..entries {
        match input.read_exact(&mut record) {
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => break,
            read => read?,
        }
        let i = TracedInstruction::new(&record);
        let carries = |r: &u8| *r != 0 && !NO_DATA.contains(r);
        let of = |r: &u8| held[usize::from(*r)];
        let source = i.reads.iter().filter(|r| carries(r)).filter_map(of).max_by_key(|s| (s.depth, s.step));
        let after = source.map(|s| s.step);
        let mut result = source;
        for address in i.loads.into_iter().filter(|a| *a != 0) {
            let step = accesses.access(address, false, after);
            result = Some(Source { step, depth: source.map_or(0, |s| s.depth) + 1 });
        }
        for address in i.stores.into_iter().filter(|a| *a != 0) {
            accesses.access(address, true, None);
        }
        accesses.execute(1);
        for register in i.writes.iter().filter(|r| carries(r)) {
            held[usize::from(*register)] = result;
        }
    }
    Ok(())
}
