//! Tests of memory traces: lines of each format, and what a core executes for them.

use super::text::{parse, TextFormat, TraceLine};
use super::*;
use crate::core::Op;
use crate::kernel::{TenantId, ThreadId};
use crate::memory::region::AddressMap;
use std::path::{Path, PathBuf};

fn file(name: &str, content: &[u8]) -> PathBuf {
    let path = std::env::temp_dir().join(format!("hostnet-{}-{name}", std::process::id()));
    std::fs::write(&path, content).unwrap();
    path
}

fn build(path: &Path, more: &str) -> Result<MemoryTrace, String> {
    let spec: MemoryTraceSpec = toml::from_str(&format!("file = {path:?}\n{more}")).unwrap();
    let mut map = AddressMap::default();
    MemoryTrace::build(&spec, 0, AppBuildContext::new(&mut map, TenantId(0), &[ThreadId(0), ThreadId(1)], 1))
}

/// Ops of a core, with lines relative to the start of the core's memory.
fn ops(name: &str, content: &[u8], more: &str, stretches: usize) -> Vec<Op> {
    let path = file(name, content);
    let mut app = build(&path, more).unwrap();
    std::fs::remove_file(path).unwrap();
    let (mut rng, mut p) = (RandomStream::new(1, "test", 0), Program::default());
    (0..stretches).for_each(|_| _ = app.free_run(0, &mut rng, &mut p));
    let base = app.cores[0].0;
    p.ops
        .iter()
        .map(|o| match *o {
            Op::Load { line, lines } => Op::Load { line: LineAddr(line - base), lines },
            Op::Store { line, lines } => Op::Store { line: LineAddr(line - base), lines },
            Op::Anchor { line } => Op::Anchor { line: LineAddr(line - base) },
            Op::Chase { line, delay } => Op::Chase { line: LineAddr(line - base), delay },
            Op::DependentLoad { line, lines } => Op::DependentLoad { line: LineAddr(line - base), lines },
            other => other,
        })
        .collect()
}

fn load(line: u64) -> Op {
    Op::Load { line: LineAddr(line), lines: 1 }
}
fn store(line: u64) -> Op {
    Op::Store { line: LineAddr(line), lines: 1 }
}

#[test]
fn lines_of_each_text_format_are_read_as_its_simulator_reads_them() {
    let access = |format, address, store| Some((format, TraceLine::Access { address, store }));
    let (plain, timed) = (TextFormat::LoadStore, TextFormat::Dramsim3);
    assert_eq!(parse("LD 0x12340"), access(plain, 0x12340, false)); // Ramulator 2, loadstore_trace.cpp
    assert_eq!(parse("ST 74565"), access(plain, 74565, true));
    assert_eq!(parse("0x7f64ab00 WRITE 120"), access(timed, 0x7f64_ab00, true)); // DRAMsim3, common.cc: `>> hex`
    assert_eq!(parse("7f64ab00 P_MEM_RD 7"), access(timed, 0x7f64_ab00, false));
    let bubbles =
        |instructions, load, store| Some((TextFormat::SimpleO3, TraceLine::Bubbles { instructions, load, store }));
    assert_eq!(parse("3 20734016"), bubbles(3, 20_734_016, None)); // Ramulator 2, simpleO3/trace.cpp
    assert_eq!(parse("1 20846400 20841280"), bubbles(1, 20_846_400, Some(20_841_280)));
    for wrong in ["R 0,0,1,2,3", "LD", "LD x", "0x10 READ", "0x10 READ now", "1 2 3 4", "-1 20"] {
        assert_eq!(parse(wrong), None, "{wrong}");
    }
}

#[test]
fn pages_are_numbered_in_the_order_of_their_first_access_and_the_trace_repeats() {
    // Pages 0x7000 and 0x2000; the lines 2 and 63 of the first one, and line 1 of the second.
    let text = b"LD 0x7080\nST 0x2040\n\nLD 0x7fff\n";
    assert_eq!(ops("pages", text, "", 2), [load(2), store(65), load(63), load(2), store(65), load(63)]);
    assert_eq!(ops("two", text, "entries = 2", 1), [load(2), store(65)]);
    let marked = [MARK, text].concat(); // as Windows' editors begin a text
    assert_eq!(ops("marked", &marked, "entries = 2", 1), [load(2), store(65)]);
}

#[test]
fn instructions_between_accesses_are_those_of_the_trace() {
    assert_eq!(
        ops("o3", b"5 4096 8192\n3 4160\n", "", 1),
        [Op::Compute(5), load(0), store(64), Op::Compute(3), load(1)],
        "the store is an instruction here, and the write-back of a line in the trace: it takes none of the next line's"
    );
    assert_eq!(
        ops("gap", b"LD 0\nLD 64\n", "gap_instructions = 7", 1),
        [Op::Compute(7), load(0), Op::Compute(7), load(1)]
    );
}

/// A ChampSim record.
fn record(writes: u8, reads: [u8; 2], store: u64, load: u64) -> Vec<u8> {
    let mut r = vec![0; 64];
    (r[10], r[12], r[13]) = (writes, reads[0], reads[1]);
    r[16..24].copy_from_slice(&store.to_le_bytes());
    r[32..40].copy_from_slice(&load.to_le_bytes());
    r
}

#[test]
fn loads_of_a_champsim_trace_wait_for_the_load_that_gave_their_address() {
    const SP: u8 = 6;
    let trace = [
        record(1, [2, 0], 0, 0x1000),  // r1 = [r2]
        record(3, [1, 0], 0, 0),       // r3 = r1 + 8
        record(1, [3, 0], 0, 0x1040),  // r1 = [r3]: behind the first load
        record(4, [SP, 0], 0, 0x1080), // r4 = [sp], which no load gave
        record(0, [1, 4], 0x10c0, 0),  // a store
        record(5, [1, 0], 0, 0x1100),  // r5 = [r1]: behind the second load
    ];
    let found = ops("champsim", &trace.concat(), "", 1);
    let line = LineAddr;
    let accesses: Vec<Op> =
        found.iter().filter(|o| !matches!(o, Op::Compute(_) | Op::Keep { .. } | Op::Recall { .. })).copied().collect();
    assert_eq!(
        accesses,
        [
            Op::Anchor { line: line(0) },
            Op::Chase { line: line(1), delay: 0 },
            load(2),
            store(3),
            Op::DependentLoad { line: line(4), lines: 1 },
        ]
    );
    let computed: u32 = found.iter().map(|o| if let Op::Compute(n) = o { *n } else { 0 }).sum();
    assert_eq!(computed, 1, "six instructions, of which five access memory");
}

#[test]
fn what_is_no_trace_is_refused_in_a_clause_that_names_the_line() {
    let refused = |name: &str, content: &[u8], more: &str| {
        let path = file(name, content);
        let e = build(&path, more).err().unwrap();
        std::fs::remove_file(&path).unwrap();
        e
    };
    assert!(refused("line", b"LD 0x10\nLD\n", "").contains("the line 2 \"LD\""));
    let mixed =
        "mixes formats: line 3 is `ADDRESS READ|WRITE CYCLE`, and the lines before are `LD ADDRESS` or `ST ADDRESS`";
    assert!(refused("mixed", b"LD 0x10\n\n0x20 READ 3\n", "").contains(mixed));
    assert!(refused("empty", b"", "").contains("is no memory trace"));
    assert!(refused("blank", b"\n\n", "").contains("holds no access"));
    assert!(refused("xz", b"\xfd7zXZ\0abc", "").contains("xz -dk"));
    assert!(refused("bz2", b"BZh91AY&SY\xff", "").contains("bunzip2 -k"));
    assert!(refused("cut", &[1; 100], "").contains("records of 64 bytes"));
    assert!(refused("gapped", &[1; 64], "gap_instructions = 3").contains("gap_instructions = 3 has no effect"));
    assert!(build(Path::new("/no/such"), "").err().unwrap().contains("cannot be read"));
}
