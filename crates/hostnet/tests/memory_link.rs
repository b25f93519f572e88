//! Tests of the link between a node's caches and its memory controllers.

use crate::common::{close, refused, small, Rig, ONE_CORE};
use hostnet::kernel::units::ByteRate;
use hostnet::kernel::Time;
use hostnet::memory::memory_link::MemoryLinkSpec;
use hostnet::memory::spec::HierarchySpec;
use hostnet::memory::{Agent, Inbound, TxnOp};

const ALL: u32 = 0b1111;
/// Time of a line of 64 B at 2 GB/s, which is longer than DRAM takes for one.
const LINE_NS: u64 = 32;

fn linked(read: u64, write: u64) -> HierarchySpec {
    let mut h = small();
    h.llc.quirks.memory_link = Some(MemoryLinkSpec { read: ByteRate(read), write: ByteRate(write) });
    h
}

/// Time in ns until `n` simultaneous requests of a core are answered, and the memory system behind them.
fn took(h: &HierarchySpec, n: u64, op: TxnOp) -> (f64, Rig) {
    let mut r = Rig::new(h, ALL);
    let start = r.m.now;
    for i in 0..n {
        r.request(0, r.app + i, op);
    }
    r.settle();
    r.m.mem.check().unwrap();
    assert!(r.m.mem.is_idle());
    let end = r.answers.iter().map(|a| a.0).max().expect("answers");
    ((end - start).as_ns(), r)
}

#[test]
fn lines_reach_the_cores_one_after_the_other() {
    let (free, _) = took(&small(), 1, TxnOp::Read);
    for n in [1, 48] {
        let (ns, r) = took(&linked(2_000_000_000, 8_000_000_000_000), n, TxnOp::Read);
        let expected = free + (n * LINE_NS) as f64;
        assert!(close(ns, expected, 0.03), "{n}: {ns} ns, expected {expected}");
        let [read, write] = r.m.mem.memory_link().expect("a link").busy_until(r.m.now);
        assert_eq!([read.0, write.0], [Time::ns(n * LINE_NS).0, 0]);
    }
}

/// Writes that bypass the caches are posted: a core waits only while the home agent's entries are those of writes that wait
/// for the link.
#[test]
fn writes_that_wait_for_the_link_hold_entries_of_the_home_agent() {
    let entries = 8;
    let of = |mut h: HierarchySpec| {
        h.llc.write_buffer = entries;
        h
    };
    let (free, _) = took(&of(small()), 40, TxnOp::Stream);
    let (ns, r) = took(&of(linked(8_000_000_000_000, 2_000_000_000)), 40, TxnOp::Stream);
    let expected = free + ((40 - u64::from(entries)) * LINE_NS) as f64;
    assert!(close(ns, expected, 0.03), "{ns} ns, expected {expected}");
    let [read, write] = r.m.mem.memory_link().expect("a link").busy_until(r.m.now);
    assert_eq!([read.0, write.0], [0, Time::ns(40 * LINE_NS).0]);
}

#[test]
fn accesses_of_devices_do_not_cross_the_link() {
    let written = |h: &HierarchySpec| {
        let mut r = Rig::new(h, ALL);
        r.device_writes(Agent::Io, r.rx, 16, Inbound::Dram);
        (r.m.now, r.m.mem.memory_link().map(|l| l.busy_until(r.m.now)))
    };
    let (without, _) = written(&small());
    assert_eq!(written(&linked(1_000_000, 1_000_000)), (without, Some([Time::ZERO; 2])));
}

#[test]
fn a_link_without_a_rate_and_one_of_several_nodes_are_refused() {
    let placement = "placement = {";
    let with = |read: &str, more: &str| {
        format!("override = {{ caches = {{ llc = {{ quirks = {{ memory_link = {{ read = \"{read}\", write = \"8 GB/s\" }} }} }} }}{more} }}\n{placement}")
    };
    let nodes =
        ", nodes = { count = 2, link = { links = 1, rate = \"20 GB/s\", latency = \"50 ns\", message = \"16 B\", \
                 data = \"80 B\", spare = \"0 B\", credits = 64 } }";
    refused(
        ONE_CORE,
        &[
            (placement, &with("0 GB/s", ""), "platform.caches.llc.quirks.memory_link.read = \"0"),
            (placement, &with("8 GB/s", nodes), "platform.nodes.count = 2"),
        ],
    );
}
