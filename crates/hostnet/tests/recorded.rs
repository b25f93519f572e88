//! Tests of recorded programs: recordings are built here, and what their packets do follows from them and from the
//! latencies of the platform.

use crate::common::bench::{Bench, LLC_LINES};
use crate::common::{close, get, refusal, simulate};
use hostnet::app::recorded::{Recorded, RecordedSpec};
use hostnet::app::{AppBuildContext, Application, Content, ServeOutcome};
use hostnet::core::{Op, Program};
use hostnet::kernel::{LineAddr, TenantId, ThreadId};
use hostnet::memory::region::AddressMap;
use hostnet_recording::{
    About, Access, AccessKind, Boundary, Counts, Outcome, Packet, Page, PageKind, Place, Recording, Sources, Step,
    Thread,
};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// sim24: 3.2 GHz; look-ups of 4, 14 and 35 cycles, 4 of crossbar each way.
const LLC: f64 = (4.0 + 14.0 + 4.0 + 35.0 + 4.0) * 0.3125;

fn counts(instructions: u32) -> Counts {
    Counts { instructions, ..Counts::default() }
}

/// An access of 8 bytes after `instructions` instructions, whose address depends on the accesses `from` steps before.
fn step(instructions: u32, kind: AccessKind, place: Place, from: &[u32]) -> Step {
    let access = Access { kind, place, bytes: 8, address_from: Sources::new(from.iter().copied()) };
    Step { before: counts(instructions), branches_from: Sources::default(), access }
}

fn load(place: Place, from: &[u32]) -> Step {
    step(20, AccessKind::Load, place, from)
}

/// Line `line` of page `page`.
fn line(page: u32, line: u16) -> Place {
    Place::Memory { page, offset: line * 64 }
}

fn packet(received: u32, outcome: Outcome, rest: u32, steps: Vec<Step>) -> Packet {
    Packet { thread: 0, burst: 0, received, outcome, steps: steps.into(), rest: counts(rest) }
}

/// A recording of one thread with `pages` pages of the heap, behind a page of the stack.
fn recording(pages: usize, packets: Vec<Packet>) -> Recording {
    let mut all = vec![Page { kind: PageKind::Heap, thread: Some(0) }; pages + 1];
    all[0].kind = PageKind::Stack;
    Recording {
        about: About {
            program: "test".into(),
            version: String::new(),
            command: vec!["test".into()],
            date: "2026-11-26T00:00:00Z".into(),
            machine: String::new(),
            recorder: "test".into(),
            boundary: Boundary::Dpdk,
        },
        threads: vec![Thread { name: "test".into() }],
        pages: all,
        packets,
    }
}

/// A file that is removed when the test ends.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> File {
        File(std::env::temp_dir().join(format!("hostnet-recorded-{}-{name}.rec", std::process::id())))
    }
    fn of(name: &str, r: &Recording) -> File {
        let file = File::new(name);
        r.write(&file.0).expect("a directory for temporary files");
        file
    }
    fn path(&self) -> String {
        self.0.to_string_lossy().into_owned()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // A file that is still there is removed with the directory for temporary files.
        let _ = std::fs::remove_file(&self.0);
    }
}

const RX: LineAddr = LineAddr(500_000);
const TX: LineAddr = LineAddr(600_000);
/// Instructions with which the core accesses a line.
const PER_LINE: u32 = 4;

/// The application that replays `r` on `cores` cores.
fn built(name: &str, r: &Recording, cores: usize, keys: &str) -> Recorded {
    let file = File::of(name, r);
    let spec: RecordedSpec =
        serde_json::from_str(&format!("{{\"file\": \"{}\"{keys}}}", file.path())).unwrap_or_else(|e| panic!("{e}"));
    let cores: Vec<ThreadId> = (0..cores).map(ThreadId::new).collect();
    let mut map = AddressMap::default();
    let context =
        AppBuildContext { line_instructions: PER_LINE, ..AppBuildContext::new(&mut map, TenantId(0), &cores, 1) };
    Recorded::build(&spec, 64, context).unwrap_or_else(|e| panic!("{e}"))
}

fn served(app: &mut Recorded, core: usize, bytes: u32) -> (ServeOutcome, u16, Vec<Op>) {
    let mut p = Program::default();
    let content = Content { lines: bytes.div_ceil(64) as u16, wire_bytes: bytes, ..Content::default() };
    let (answer, lines) = app.serve(core, &content, RX, TX, &mut p);
    (answer, lines, p.ops)
}

/// Lines that ops access, and the instructions with which the core executes them.
fn touched(ops: &[Op]) -> (BTreeSet<LineAddr>, u32) {
    let (mut all, mut instructions) = (BTreeSet::new(), 0);
    for op in ops {
        let (line, lines, each) = match *op {
            Op::Compute(n) => {
                instructions += n;
                continue;
            }
            Op::Load { line, lines } | Op::Store { line, lines } | Op::DependentLoad { line, lines } => {
                (line, lines, PER_LINE)
            }
            Op::DependentStore { line, lines } => (line, lines, PER_LINE),
            Op::Anchor { line } | Op::Chase { line, .. } | Op::Atomic { line } => (line, 1, PER_LINE),
            Op::Prefetch { line, lines } => (line, lines, 1),
            Op::Keep { .. } | Op::Recall { .. } | Op::Await | Op::Fence => continue,
            other => panic!("{other:?} is not expected"),
        };
        all.extend(line.span(lines));
        instructions += each * lines;
    }
    (all, instructions)
}

/// Time of a packet whose lines are in the LLC.
fn takes(name: &str, steps: Vec<Step>) -> f64 {
    let r = recording(400, vec![packet(64, Outcome::Consumed, 0, steps)]);
    let mut ops = served(&mut built(name, &r, 1, ""), 0, 64).2;
    let mut b = Bench::new(|_| {});
    b.warm(LLC_LINES);
    ops.push(Op::Fence);
    b.run(&ops).0
}

/// Eight loads of different lines. Load number `i` depends on the one that is `from(i)` before, if there is one.
fn eight_loads(from: fn(u32) -> u32) -> Vec<Step> {
    let load = |i| step(1, AccessKind::Load, line(2 + i, 3), &[if from(i) <= i { from(i) } else { 0 }]);
    (0..8).map(load).collect()
}

/// Loads in a chain wait for each other, and independent loads overlap.
#[test]
fn chains_stay_chains_and_independent_loads_overlap() {
    let chain = takes("chain", eight_loads(|_| 1));
    assert!(close(chain, 8.0 * LLC, 0.05), "{chain:.1} ns for a chain, not {:.1}", 8.0 * LLC);
    let independent = takes("independent", eight_loads(|_| 0));
    assert!(close(independent, LLC, 0.3), "{independent:.1} ns for independent loads, not {LLC:.1}");
}

/// Two chains of four loads each, one load of each in turn: each chain waits for itself only.
#[test]
fn two_chains_run_beside_each_other() {
    let two = takes("two", eight_loads(|_| 2));
    assert!(close(two, 4.0 * LLC, 0.1), "{two:.1} ns, not {:.1}", 4.0 * LLC);
    let tree = takes("tree", eight_loads(|i| i));
    assert!(close(tree, 2.0 * LLC, 0.2), "{tree:.1} ns for seven loads behind one, not {:.1}", 2.0 * LLC);
    // A load that depends on two waits for the one that ends the longer chain.
    let both = takes(
        "both",
        vec![
            load(line(2, 3), &[]),
            load(line(3, 3), &[1]),
            load(line(4, 3), &[1]),
            load(line(5, 3), &[]),
            load(line(6, 3), &[1, 2]),
        ],
    );
    assert!(close(both, 4.0 * LLC, 0.1), "{both:.1} ns, not {:.1}", 4.0 * LLC);
}

/// A mispredicted branch on the data of a load delays what follows.
#[test]
fn instructions_behind_a_mispredicted_branch_wait_for_its_data() {
    let steps = |mispredicted| {
        let mut steps: Vec<Step> = (0..2).map(|i| step(1, AccessKind::Load, line(2 + i, 3), &[])).collect();
        steps[1].before = Counts { branches: 1, mispredicted, ..steps[1].before };
        steps[1].branches_from = Sources::new([1]);
        steps
    };
    let (right, wrong) = (takes("right", steps(0)), takes("wrong", steps(1)));
    assert!(close(right, LLC, 0.2), "{right:.1} ns");
    assert!(close(wrong, 2.0 * LLC, 0.1), "{wrong:.1} ns");
}

/// Each packet executes the recorded instructions, and accesses the recorded lines: repeated accesses to a line hit the
/// L1 and cost their instructions only.
#[test]
fn a_packet_executes_and_accesses_what_was_recorded() {
    let steps = vec![
        step(9, AccessKind::Load, Place::Metadata(0), &[]),
        step(7, AccessKind::Load, Place::Frame(0), &[1]),
        step(1, AccessKind::Load, Place::Frame(8), &[1]),
        step(30, AccessKind::Load, line(1, 5), &[1, 2]),
        step(2, AccessKind::Store, line(0, 1), &[]),
        step(3, AccessKind::Load, line(0, 1), &[]),
        step(20, AccessKind::Atomic, line(1, 6), &[]),
        step(11, AccessKind::Prefetch, line(2, 0), &[]),
        step(2, AccessKind::Store, Place::Frame(0), &[]),
        step(4, AccessKind::Store, Place::Frame(8), &[]),
    ];
    let r = recording(2, vec![packet(64, Outcome::Forwarded(64), 13, steps)]);
    let total = r.packets[0].total().instructions;
    assert_eq!(total, 9 + 7 + 1 + 30 + 2 + 3 + 20 + 11 + 2 + 4 + 13);
    let mut app = built("counts", &r, 2, "");
    let (answer, sent, ops) = served(&mut app, 1, 64);
    assert_eq!((answer, sent), (ServeOutcome::Forward, 1));
    let (lines, instructions) = touched(&ops);
    assert_eq!(instructions, total);
    assert_eq!(lines.len(), 1 + 2 + 1 + 1, "{lines:?}");
    assert!(lines.contains(&RX) && !lines.contains(&TX));
    let other = touched(&served(&mut app, 0, 64).2).0;
    assert_eq!(lines.intersection(&other).count(), 4, "all but the stack is shared");
    let mut own = built("counts-own", &r, 2, r#", "memory": "own""#);
    let (a, b) = (touched(&served(&mut own, 0, 64).2).0, touched(&served(&mut own, 1, 64).2).0);
    assert_eq!(a.intersection(&b).collect::<Vec<_>>(), [&RX]);
}

/// A program that reads 16 lines of the frame reads as many as a shorter frame has, with the instructions before each.
#[test]
fn a_shorter_frame_ends_early() {
    let mut steps: Vec<Step> = (0..16).map(|i| step(10, AccessKind::Load, Place::Frame(64 * i), &[])).collect();
    steps.push(step(10, AccessKind::Load, line(1, 0), &[]));
    let r = recording(1, vec![packet(1024, Outcome::Forwarded(1024), 50, steps)]);
    let mut app = built("short", &r, 1, "");
    for (bytes, frame) in [(1024, 16), (2048, 16), (512, 8), (64, 1)] {
        let (_, sent, ops) = served(&mut app, 0, bytes);
        let (lines, instructions) = touched(&ops);
        assert_eq!(u32::from(sent), bytes / 64, "{bytes} bytes are sent");
        assert_eq!(lines.len(), frame + 1, "{bytes} bytes");
        assert_eq!(instructions, 10 * (frame as u32 + 1) + 50, "{bytes} bytes");
    }
}

/// A program that loads each 8 bytes of a frame and then of its reply, with 10 instructions before each load, executes those
/// of the lines that a shorter frame and reply have, although all but a line's first load hit the L1.
#[test]
fn a_shorter_frame_keeps_the_instructions_of_its_lines() {
    let over = |place: fn(i32) -> Place, kind: AccessKind| (0..128).map(move |i| step(10, kind, place(8 * i), &[]));
    let steps = over(Place::Frame, AccessKind::Load).chain(over(Place::Reply, AccessKind::Store)).collect();
    let r = recording(1, vec![packet(1024, Outcome::Forwarded(1024), 50, steps)]);
    let mut app = built("bytes", &r, 1, "");
    for lines in [16, 8, 2, 1] {
        let (touched, instructions) = touched(&served(&mut app, 0, 64 * lines).2);
        assert_eq!(touched.len() as u32, 2 * lines, "{lines} lines");
        assert_eq!(instructions, 2 * 8 * 10 * lines + 50, "{lines} lines");
    }
}

/// Replies have the recorded length, and forwarded frames grow as the recorded ones did.
#[test]
fn answers_are_the_recorded_ones() {
    let of = |outcome| {
        let steps = vec![step(5, AccessKind::Store, Place::Reply(64), &[])];
        let r = recording(0, vec![packet(100, outcome, 0, steps)]);
        let (answer, lines, ops) = served(&mut built("answers", &r, 1, ""), 0, 128);
        (answer, lines, touched(&ops).0.contains(&(TX + 1)))
    };
    assert_eq!(of(Outcome::Consumed), (ServeOutcome::Consumed, 0, false));
    assert_eq!(of(Outcome::Replied(300)), (ServeOutcome::Reply, 5, true));
    assert_eq!(of(Outcome::Replied(60)), (ServeOutcome::Reply, 1, false));
    assert_eq!(of(Outcome::Forwarded(164)).1, 3, "128 + 64 bytes");
    assert_eq!(of(Outcome::Forwarded(36)).1, 1, "128 - 64 bytes");
}

/// Packets of three lengths, each with a line of its own.
#[test]
fn packets_come_in_the_order_that_was_asked_for() {
    let lengths = [64, 256, 1500];
    let packets = lengths
        .iter()
        .zip(1..)
        .map(|(received, page)| packet(*received, Outcome::Consumed, 0, vec![load(line(page, 0), &[])]));
    let r = recording(3, packets.collect());
    let page = |ops: Vec<Op>| touched(&ops).0.first().map(|l| l.0 / 64).expect("a line");
    let mut recorded = built("order", &r, 1, "");
    let order: Vec<u64> = (0..7).map(|_| page(served(&mut recorded, 0, 64).2)).collect();
    assert_eq!(order, [0, 1, 2, 0, 1, 2, 0]);
    let mut by_size = built("size", &r, 1, r#", "order": "size""#);
    for (bytes, expected) in [(60, 0), (64, 0), (159, 0), (161, 1), (256, 1), (1000, 2), (9000, 2)] {
        assert_eq!(page(served(&mut by_size, 0, bytes).2), expected, "{bytes} bytes");
    }
    // Two packets of a flow in succession replay one recorded packet; flows take the three packets in turn.
    let mut by_flow = built("flow", &r, 1, r#", "order": "flow""#);
    for (flow, expected) in [(0, 0), (1, 1), (1, 1), (2, 2), (3, 0), (7, 1), (0, 0)] {
        let mut p = Program::default();
        let content = Content { lines: 1, wire_bytes: 64, flow, ..Content::default() };
        by_flow.serve(0, &content, RX, TX, &mut p);
        assert_eq!(page(p.ops), expected, "flow {flow}");
    }
    let mut random = built("random", &r, 1, r#", "order": "random""#);
    let mut seen = [0; 3];
    (0..3000).for_each(|_| seen[page(served(&mut random, 0, 64).2) as usize] += 1);
    // The standard deviation of a binomial distribution is 26.
    assert!(seen.iter().all(|n| (870..1130).contains(n)), "{seen:?}");
}

const SCENARIO: &str = r#"
name = "recorded"
platform = "sim24"
placement = { policy = "ddio", ways = 2 }
rings = { rx_buffers = 256, buffer_size = "1 KiB" }
tenant = [{ name = "r", cores = CORES, app = { kind = "recorded", file = "FILE" } }]
traffic = { arrivals = "fixed", rate = "RATE Mrps", packet = "64 B", spread = "round_robin" }
run = { load = "fixed", requests = 20000, warmup_requests = 20000 }
"#;

fn scenario(file: &File, cores: u32, rate: f64, keys: &str) -> String {
    let app = format!("{}\"{keys}", file.path());
    SCENARIO.replace("FILE\"", &app).replace("CORES", &cores.to_string()).replace("RATE", &rate.to_string())
}

/// 2,000 packets with 64 loads each of random lines among 256,000: 101,000 different ones. They fit the LLC of 589,824
/// lines. Eight copies do not, and of random lines at least those that the caches lack are missed.
#[test]
fn a_larger_footprint_misses_the_llc() {
    let mut state = 1u32;
    let mut random = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % below
    };
    let packets = (0..2000).map(|_| {
        let steps = (0..64).map(|_| load(line(1 + random(4000), random(64) as u16), &[])).collect();
        packet(64, Outcome::Consumed, 10, steps)
    });
    let file = File::of("footprint", &recording(4000, packets.collect()));
    let misses = |keys: &str| get(&simulate(&scenario(&file, 1, 1.0, keys)), "t0_llc_miss_ratio");
    let (x1, x8) = (misses(""), misses(", footprint = \"x8\""));
    assert!(x1 < 0.05, "{x1}");
    assert!(x8 > 1.0 - 610_304.0 / 808_000.0, "{x8}");
}

/// Four cores that store to one line take it from each other, and those with a copy each do not.
#[test]
fn cores_that_share_memory_take_lines_from_each_other() {
    let steps = (0..4).map(|i| step(20, AccessKind::Atomic, line(1, i), &[])).collect();
    let file = File::of("shared", &recording(1, vec![packet(64, Outcome::Consumed, 0, steps)]));
    let service = |keys: &str| get(&simulate(&scenario(&file, 4, 4.0, keys)), "service_mean_us") * 1e3;
    let (shared, own) = (service(""), service(", memory = \"own\""));
    // An atomic operation waits for its line, which at least crosses to the LLC and another core.
    assert!(shared > own + 4.0 * LLC, "{shared:.0} ns and {own:.0} ns");
}

/// A recording with testpmd's accesses: the frame's first line is read and written, with 20 instructions besides.
#[test]
fn a_recorded_testpmd_forwards_as_many_frames_as_the_written_one() {
    let steps = vec![
        step(PER_LINE, AccessKind::Load, Place::Frame(0), &[]),
        step(PER_LINE, AccessKind::Store, Place::Frame(0), &[]),
    ];
    let file = File::of("testpmd", &recording(0, vec![packet(64, Outcome::Forwarded(64), 20, steps)]));
    let text = |app: &str| {
        format!(
            "name = \"t\"\nplatform = \"gem5\"\nplacement = {{ policy = \"ddio\", ways = 2 }}\n[[tenant]]\nname = \"t\"\n\
             cores = 1\nstack = \"poll_mode\"\napp = {{ {app} }}\n[[peripheral]]\nkind = \"ethernet\"\n[traffic]\n\
             arrivals = \"fixed\"\nrate = \"20 Mrps\"\npacket = \"64 B\"\n[run]\nload = \"fixed\"\nrequests = 5000\n\
             warmup_requests = 5000\n[override.core]\nstores_per_line = {PER_LINE}\n"
        )
    };
    let run = |app: &str| simulate(&text(app));
    let written = run("kind = \"testpmd\", mode = \"macswap\"");
    let recorded = run(&format!("kind = \"recorded\", file = \"{}\"", file.path()));
    for metric in ["throughput_mrps", "service_mean_us"] {
        let (recorded, written) = (get(&recorded, metric), get(&written, metric));
        assert!(close(recorded, written, 0.03), "{metric}: {recorded} and {written}");
    }
}

/// Every stack that hands packets to an application serves a recorded one.
#[test]
fn stacks_that_deliver_packets_run_recorded_programs() {
    let steps = vec![load(Place::Frame(0), &[]), load(line(1, 2), &[1])];
    let file = File::of("stacks", &recording(1, vec![packet(64, Outcome::Forwarded(64), 50, steps)]));
    for stack in ["poll_mode", "kernel"] {
        let text = scenario(&file, 1, 0.1, "")
            .replace("sim24", "gem5")
            .replace("app =", &format!("stack = \"{stack}\", app ="));
        let text = text.lines().filter(|l| !l.starts_with("rings")).collect::<Vec<_>>().join("\n");
        let o = simulate(&format!("{text}\n[[peripheral]]\nkind = \"ethernet\"\n").replace("20000", "2000"));
        assert_eq!(get(&o, "drops"), 0.0, "{stack}");
    }
    let o = simulate(&scenario(&file, 1, 0.1, "").replace("20000", "2000"));
    assert_eq!(get(&o, "drops"), 0.0);
}

/// Reason why a scenario does not run, when the scenario itself is in order.
fn failure(text: &str) -> String {
    let e = hostnet::host::run(&crate::common::scenario(text), &mut |_| Ok(())).err();
    e.unwrap_or_else(|| panic!("{text} ran")).to_string()
}

#[test]
fn what_cannot_be_replayed_is_refused_in_a_sentence() {
    let r = recording(1, vec![packet(64, Outcome::Replied(5000), 0, vec![load(line(1, 0), &[])])]);
    let file = File::of("refused", &r);
    let text = scenario(&file, 1, 1.0, "");
    let e = refusal(&text, &file.path(), "/no/such.rec");
    assert!(e.contains("tenant[0].app.file = \"/no/such.rec\" is not a file"), "{e}");
    for (keys, says) in [
        (", footprint = \"8\"", "expected \"x1\" to \"x1024\", not \"8\""),
        (", footprint = \"x0\"", "not \"x0\""),
        (", order = \"sise\"", "did you mean \"size\""),
        (", memory = \"none\"", "valid: shared, own"),
        (", order = \"flow\"", "tenant[0].app.order = \"flow\" needs packets with flows: give traffic.flows, or"),
    ] {
        let e = refusal(&text, "rec\" }", &format!("rec\"{keys} }}"));
        assert!(e.contains(says), "{e}");
    }
    let e = failure(&text);
    assert!(e.contains("does not hold the recording's largest message of 5000 bytes"), "{e}");
    let e = failure(&scenario(&file, 1, 1.0, ", footprint = \"x8\""));
    assert!(e.contains("footprint = \"x8\" has no effect"), "{e}");
    let bytes = r.to_bytes().expect("a small recording");
    for (contents, says) in [
        (&bytes[..bytes.len() - 1], "is cut"),
        (&b"\x7fELF and more"[..], "is not a recording of hostnet record"),
        (&[&bytes[..], b"more"].concat(), "is damaged"),
    ] {
        std::fs::write(&file.0, contents).expect("a file for temporary use");
        let e = failure(&text);
        assert!(e.contains(&file.path()) && e.contains(says) && !e.contains('\n') && !e.contains(".."), "{e}");
    }
    recording(0, Vec::new()).write(&file.0).expect("a file for temporary use");
    assert!(failure(&text).contains("holds no packet"));
}
