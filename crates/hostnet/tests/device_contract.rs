//! Tests that hold for every device behind a port: the device moves the lines that it offered, in both directions at
//! the same time, and every line and credit returns.

use crate::common::{platforms, small, MHZ_3200};
use hostnet::config::resolve;
use hostnet::device::endpoint::{DmaDirection, Endpoint, Offer};
use hostnet::device::iio::Iio;
use hostnet::device::nic::{Nic, Packet, RingMemory};
use hostnet::device::roce::Roce;
use hostnet::device::ssd::Ssd;
use hostnet::device::{NicAt, RingSide};
use hostnet::kernel::units::Size;
use hostnet::kernel::{Clock, LineAddr, PortId, QueueId, RandomStream, TenantId, Time};
use hostnet::machine::{Events, Machine, MachineSignal};
use hostnet::memory::dram::DramSpec;
use hostnet::memory::region::{AddressMap, Contiguous, Pages, RegionKind, Sharing};
use hostnet::memory::Memory;
use hostnet::placement::Placement;
use serde_json::json;
use std::ops::Range;

const WAYS: [DmaDirection; 2] = [DmaDirection::P2mRead, DmaDirection::P2mWrite];
const KINDS: [&str; 5] = ["SSD that reads memory", "SSD that writes", "RoCE, read from", "RoCE, written to", "NIC"];

/// Devices on ports: all kinds, and a NIC whose descriptors lie in memory, whose tail registers only its port reaches.
const ON_PORTS: [&str; 6] = [KINDS[0], KINDS[1], KINDS[2], KINDS[3], KINDS[4], "NIC with rings"];

/// Lines that any device in these tests may move: one region of 4 MiB.
const LINES: u64 = 1 << 16;

fn device(kind: &str, base: LineAddr) -> Endpoint {
    let pages = |lines: u64| {
        let c = Contiguous::default();
        Pages::new(base, c.whole(lines, 64), c, 64, 3)
    };
    let op = if kind.ends_with("memory") || kind.ends_with("from") { "p2m_read" } else { "p2m_write" };
    let spec = json!({"op": op, "queue_depth": 4, "block": "16 KiB"});
    match &kind[..3] {
        "SSD" => {
            let spec = serde_json::from_value(spec).expect("an SSD");
            Endpoint::Ssd(Box::new(Ssd::new(&spec, pages(spec.lines()), RandomStream::new(1, "ssd", 0))))
        }
        "RoC" => {
            let spec = serde_json::from_value(json!({"op": op})).expect("a RoCE NIC");
            Endpoint::Roce(Box::new(Roce::new(&spec, pages(spec.lines()))))
        }
        _ if kind.ends_with("rings") => {
            let rings = RingMemory { receive: base, transmit: base + 256 };
            let mut nic = Nic::ringed(&serde_json::from_str("{}").expect("defaults"), PortId(0), &[rings], Size(512));
            (0..1023).for_each(|i| nic.arm(QueueId(0), i, base + 1024 + u64::from(i) * 16));
            nic.start_armed(QueueId(0));
            Endpoint::Ethernet(Box::new(nic))
        }
        _ => {
            let mut nic = Nic::pcie(&serde_json::from_str("{}").expect("defaults"), PortId(0), 1);
            nic.attach_receive(QueueId(0), base, 1024, 16);
            nic.attach_transmit(QueueId(0), base + (1 << 15), 1024, 16);
            nic.attach_completions(QueueId(0), base + (1 << 15) + (1 << 14), 64);
            Endpoint::Ethernet(Box::new(nic))
        }
    }
}

/// Gives work to a NIC: a packet from the wire, and a doorbell. Other devices find work without help.
fn work(d: &mut Endpoint, cal: &mut Events, now: Time) {
    let Endpoint::Ethernet(nic) = d else { return };
    while nic.packets_inside() < 8 && nic.buffers(QueueId(0)) > 8 {
        nic.arrive(cal, Packet { lines: 10, wire_bytes: 600, uses: 1, ..Packet::default() }, now).expect("room");
    }
    while nic.landed().is_some() {
        let id = nic.take(QueueId(0)).expect("it has landed");
        nic.release(id);
        nic.replenish(QueueId(0), 1, now);
    }
}

/// Asks a device for `lines` lines in each direction, and completes them four at a time and out of step.
fn drive(kind: &str, d: &mut Endpoint, region: Range<LineAddr>, lines: u32) -> [u64; 2] {
    let (mut cal, mut now) = (Events::default(), Time::ZERO);
    let mut dice = RandomStream::new(11, kind, 0);
    let mut out: Vec<(DmaDirection, u16, u32)> = Vec::new();
    let (mut taken, mut done) = ([0u64; 2], [0u64; 2]);
    while taken.iter().sum::<u64>() < u64::from(lines) || !out.is_empty() {
        now += Time::ns(20);
        work(d, &mut cal, now);
        for way in WAYS {
            let enough = taken.iter().sum::<u64>() >= u64::from(lines);
            let may = d.may_move()[way as usize];
            match d.next(way, now) {
                Offer::Lines(_) | Offer::At(_) if !may => panic!("{kind}: {way:?} has something and denied it"),
                Offer::Lines(n) if !enough && out.len() < 64 => {
                    assert!(n > 0, "{kind}: an offer of nothing");
                    assert!(d.moves(way), "{kind}: {way:?} was not announced");
                    let n = n.min(4);
                    let p = d.take(way, n, now);
                    let end = p.line + u64::from(n);
                    assert!(
                        region.contains(&p.line) && end <= region.end,
                        "{kind}: lines {}..{end} are not its own",
                        p.line
                    );
                    taken[way as usize] += u64::from(n);
                    out.push((way, p.slot, n));
                }
                Offer::At(t) => assert!(t > now, "{kind}: {t} has passed at {now}"),
                Offer::Lines(_) | Offer::Nothing => {}
            }
        }
        while !out.is_empty() && dice.below(2) == 0 {
            let (way, slot, n) = out.swap_remove(dice.below(out.len() as u64) as usize);
            d.done(&mut cal, way, slot, n, now);
            done[way as usize] += u64::from(n);
        }
        d.check().expect("balanced books");
        assert!(now < Time::us(2000), "{kind}: no progress, {taken:?}");
    }
    assert_eq!(taken, done);
    taken
}

#[test]
fn a_device_moves_what_it_promised_within_its_own_memory() {
    for kind in KINDS {
        let base = LineAddr(1 << 12);
        let mut d = device(kind, base);
        let [read, written] = drive(kind, &mut d, base..base + LINES, 4000);
        assert_eq!(read > 0, d.moves(DmaDirection::P2mRead) && kind != "NIC", "{kind}: {read} lines read");
        assert_eq!(written > 0, d.moves(DmaDirection::P2mWrite), "{kind}: {written} lines written");
    }
}

/// Commands of 256 lines, messages of 1024, frames of 11 with their completion: each ends once, with its last line.
#[test]
fn what_ends_is_what_was_moved() {
    for (kind, of) in KINDS.into_iter().zip([256, 256, 1024, 1024, 11]) {
        let mut d = device(kind, LineAddr(0));
        let moved: u64 = drive(kind, &mut d, LineAddr(0)..LineAddr(LINES), 8192).iter().sum();
        // Transfers that have begun and not ended: four commands, a message, or the frame that moves.
        let open = if kind.starts_with("SSD") { 4 } else { 1 };
        let ended = d.completed();
        assert!(ended <= moved / of && ended + open >= moved / of, "{kind}: {ended} ended of {moved} lines");
    }
}

/// A machine with the device behind its only port, and no other device or traffic.
fn machine(kind: &str) -> Machine {
    let text = "name = \"d\"\nplatform = \"cascadelake\"\nplacement = { policy = \"dma\" }\n[[peripheral]]\nkind = \
                \"roce\"\nop = \"p2m_read\"\n[run]\nload = \"saturate\"\n";
    let s = resolve(text, "d.toml", &[platforms()]).unwrap_or_else(|e| panic!("{e}"));
    let mut map = AddressMap::default();
    let region = map.add(LINES, RegionKind::Io, Sharing::Device, TenantId(0));
    let base = map.get(region).base;
    let clock = Clock::from_hz(MHZ_3200);
    let mut mem = Memory::new(&small(), &DramSpec::default(), clock, 1, vec![0b1111], map).expect("a small machine");
    let (iio, pcie) = (s.platform.iio.as_ref().expect("an IIO"), s.platform.pcie.as_ref().expect("links"));
    (mem.lat.ownership, mem.lat.to_iio) = (iio.ownership.into(), iio.from_cha.into());
    let iio = Iio::new(iio, pcie, vec![(device(kind, base), 16, 64)]);
    let on_chip = Nic::integrated(&s.platform.nic, 0);
    let mut m = Machine::new(mem, Vec::new(), on_chip, Some(iio), Placement::new(&s.placement));
    m.iio.as_mut().expect("its port").start(&mut m.cal, Time::ZERO);
    m
}

fn port(m: &mut Machine) -> &mut Iio {
    m.iio.as_mut().expect("it has a port")
}

/// Software sends each packet that it sees from the packet's receive buffer, and returns the buffer to the NIC.
fn send_back(m: &mut Machine) {
    let (now, mut n) = (m.now, 0);
    let nic = m.nic_at(NicAt::Port(PortId(0))).expect("it is one");
    while nic.landed_ring().is_some() {}
    while let Some(id) = nic.take(QueueId(0)) {
        let p = nic.packet(id);
        (p.tx_line, p.tx_lines, p.tx_bytes) = (p.line, p.lines, p.wire_bytes - 4);
        let (buffer, line) = (p.buffer, p.line);
        nic.put(QueueId(0), id);
        nic.arm(QueueId(0), buffer, line);
        n += 1;
    }
    let Machine { iio: Some(iio), cal, .. } = m else { return };
    for side in [RingSide::Receive, RingSide::Transmit] {
        if n > 0 {
            iio.ring(cal, PortId(0), QueueId(0), side, n, now);
        }
    }
}

/// Runs a machine; a NIC receives a packet every 60 ns.
fn run(m: &mut Machine, until: Time) {
    let mut wire = m.now;
    while m.now < until {
        let now = m.now;
        if let Some(nic) = m.nic_at(NicAt::Port(PortId(0))) {
            if nic.has_rings() {
                send_back(m);
            } else {
                while nic.landed().is_some() {
                    let id = nic.take(QueueId(0)).expect("it has landed");
                    nic.release(id);
                    nic.replenish(QueueId(0), 1, now);
                }
            }
            if wire <= now {
                let p = Packet { lines: 10, wire_bytes: 600, uses: 1, ..Packet::default() };
                m.arrive(NicAt::Port(PortId(0)), p).expect("room");
                wire = now + Time::ns(60);
            }
        }
        let Some(e) = m.pop() else { break };
        match m.handle(e) {
            None | Some(MachineSignal::Moved { .. } | MachineSignal::Landed(_)) => {}
            Some(MachineSignal::Sent(at, id)) => m.nic_at(at).expect("it has sent").end_use(id),
            Some(other) => panic!("{other:?} is no signal of a port"),
        }
    }
}

#[test]
fn every_entry_and_credit_comes_back_when_a_device_rests() {
    for kind in ON_PORTS {
        let mut m = machine(kind);
        for us in 1..=40 {
            run(&mut m, Time::us(us));
            port(&mut m).check().unwrap_or_else(|e| panic!("{kind}: {e}"));
        }
        let (lines, _) = port(&mut m).moved();
        assert!(lines > 3000, "{kind}: {lines} lines in 40 us");
        assert!(!port(&mut m).is_idle(), "{kind}: it is at work");
        port(&mut m).stopped = true;
        m.settle();
        port(&mut m).check().unwrap_or_else(|e| panic!("{kind}: {e}"));
        assert!(port(&mut m).is_idle(), "{kind}: a credit or an entry has not come back");
        assert_eq!(m.mem.in_flight(), 0, "{kind}: a request is lost");
        m.mem.check().unwrap_or_else(|e| panic!("{kind}: {e}"));
    }
}

/// A window that begins in the middle of a run counts what moves within it: as much as another window of the same
/// length, and no earlier losses.
#[test]
fn meters_begin_again_with_a_window() {
    for kind in ON_PORTS {
        let mut m = machine(kind);
        run(&mut m, Time::us(40));
        let mut windows = Vec::new();
        for end in [80, 120] {
            let now = m.now;
            port(&mut m).restart_meters(now);
            assert_eq!(port(&mut m).moved(), (0, 0), "{kind}");
            assert!(port(&mut m).devices().all(|d| d.drops().is_none_or(|l| l.count() == 0)));
            run(&mut m, Time::us(end));
            windows.push(port(&mut m).moved().0 as f64);
        }
        assert!((windows[0] / windows[1] - 1.0).abs() < 0.1, "{kind}: {windows:?} lines");
        for (name, r) in m.iio.as_ref().expect("it has a port").link_readings(m.now) {
            // Both means leave out part of the occupancy across an end of the window. A packet counts when it is sent, and some
            // wait for the link then.
            let waiting = if r.credits == 1 { 4.0 } else { 0.0 };
            let ends = 2.0 * (f64::from(r.peak) + waiting) / (r.arrival_rate * 40e-6);
            assert!((r.latency_ns - r.little_ns).abs() <= ends * r.latency_ns, "{kind}: {name}: {r:?}");
        }
    }
}
