//! A machine with several Ethernet NICs, each on a port of its own and with a poll-mode driver on a core of its own.

use crate::common::{platforms, small};
use hostnet::app::{App, AppBuildContext, AppSpec, Origin};
use hostnet::config::{resolve, Scenario};
use hostnet::core::{Cpu, Retired};
use hostnet::device::endpoint::Endpoint;
use hostnet::device::iio::Iio;
use hostnet::device::nic::{EthernetSpec, Nic, Packet, RingLayout, RingMemory};
use hostnet::device::{NicAt, RingSide};
use hostnet::kernel::units::Size;
use hostnet::kernel::{Clock, PortId, QueueId, RandomStream, TenantId, ThreadId, Time};
use hostnet::machine::{Event, Machine, MachineSignal};
use hostnet::memory::dram::DramSpec;
use hostnet::memory::region::{AddressMap, RegionKind, Sharing};
use hostnet::memory::Memory;
use hostnet::placement::Placement;
use hostnet::stack::mempool::{stride, Mempool, PoolMemory};
use hostnet::stack::pmd::{note_lines, Buffers, DriverMemory, Duties, PollMode, Recycling};
use hostnet::stack::{Ctx, Notice, Roles, Software, Step, StepFacts, StepMachine, StepTraffic, Tally, Wakes};

const QUEUE: QueueId = QueueId(0);

/// A driver, which has a core and a NIC to itself.
struct Seat {
    driver: PollMode,
    app: App,
    at: NicAt,
    polls: bool,
    /// Doorbells of the core that have reached the IIO.
    doorbells: u64,
}

struct Rig {
    m: Machine,
    seats: Vec<Seat>,
    tally: Tally,
    roles: Roles,
    rng: RandomStream,
}

fn spec() -> Scenario {
    let text = "name = \"two\"\nplatform = \"icx\"\nplacement = { policy = \"ddio\", ways = 2 }\n[override.nodes]\ncount = 1\n\
                [[tenant]]\nname = \"core\"\ncores = 1\nstack = \"poll_mode\"\napp = { kind = \"testpmd\" }\n[[peripheral]]\n\
                kind = \"ethernet\"\n[traffic]\narrivals = \"fixed\"\nrate = \"1 Mpps\"\n[run]\nload = \"fixed\"\n";
    resolve(text, "two.toml", &[platforms()]).unwrap_or_else(|e| panic!("{e}"))
}

/// A machine with two cores and memory for two drivers, of which those in `drivers` have a NIC, on ports in this order.
fn rig(drivers: &[usize]) -> Rig {
    let s = spec();
    let (costs, nic) = (s.platform.poll_mode.clone().expect("costs"), s.peripherals[0].ethernet().expect("it is one"));
    let EthernetSpec { lanes, tags, .. } = *nic;
    let rings = nic.rings.clone().unwrap_or_default();
    let mut map = AddressMap::default();
    let mut memory = |thread: usize| {
        let mut add = |lines, kind| {
            let r = map.add(lines, kind, Sharing::of_thread(ThreadId::new(thread)), TenantId(0));
            if lines == RingLayout::lines(rings.receive, rings.descriptor) {
                map.set_polled(r);
            }
            map.get(r).base
        };
        let receive = add(RingLayout::lines(rings.receive, rings.descriptor), RegionKind::Rx);
        let transmit = add(RingLayout::lines(rings.transmit, rings.descriptor), RegionKind::Tx);
        let buffers = costs.buffers(&rings);
        let pool = PoolMemory {
            first: None,
            stride: stride(rings.buffer_size),
            buffers: add(u64::from(buffers) * stride(rings.buffer_size), RegionKind::Rx),
            ring: add(Mempool::ring_lines(buffers, costs.quirks.mempool_cache), RegionKind::App),
        };
        let receive_notes = add(note_lines(rings.receive), RegionKind::App);
        let transmit_notes = add(note_lines(rings.transmit), RegionKind::App);
        let copies = receive_notes; // unused: nothing is copied
        (RingMemory { receive, transmit }, DriverMemory { pool, receive_notes, transmit_notes, copies })
    };
    let all = [memory(0), memory(1)];
    let clock = Clock::from_hz(s.platform.caches.uncore_clock.0);
    let mut mem = Memory::new(&small(), &DramSpec::default(), clock, 2, vec![0b1111], map).expect("a small machine");
    let (iio, pcie) = (s.platform.iio.as_ref().expect("an IIO"), s.platform.pcie.as_ref().expect("links"));
    (mem.lat.ownership, mem.lat.to_iio) = (iio.ownership.into(), iio.from_cha.into());
    let (mut devices, mut seats) = (Vec::new(), Vec::new());
    for (port, &thread) in drivers.iter().enumerate() {
        let (ring, memory) = all[thread];
        let mut own = Nic::ringed(nic, PortId::new(port), &[ring], Size(512));
        let buffers =
            Buffers { recycling: Recycling::default(), spent: s.placement.spent(), sweep_tx: s.placement.sweep_tx };
        let duties = Duties { buffers, origin: Origin::Network };
        let driver = PollMode::new(costs.clone(), &rings, QUEUE, memory, &mut own, duties, &s.platform.core);
        let (mut map, threads) = (AddressMap::default(), [ThreadId::new(thread)]);
        let site = AppBuildContext::new(&mut map, TenantId(0), &threads, 1);
        let AppSpec::Testpmd(_) = &s.tenants[0].app else { panic!("another application") };
        let app = App::build(&s.tenants[0].app, 128, site).expect("it keeps no data");
        devices.push((Endpoint::Ethernet(Box::new(own)), lanes, tags));
        seats.push(Seat { driver, app, at: NicAt::Port(PortId::new(port)), polls: false, doorbells: 0 });
    }
    let cpus: Vec<Cpu> = (0..2).map(|c| Cpu::new(ThreadId(c), &s.platform.core)).collect();
    let chip = Nic::integrated(&s.platform.nic, 0);
    let iio = Iio::new(iio, pcie, devices);
    let mut m = Machine::new(mem, cpus, chip, Some(iio), Placement::new(&s.placement));
    m.iio.as_mut().expect("ports").start(&mut m.cal, Time::ZERO);
    Rig { m, seats, tally: Tally::default(), roles: Roles::default(), rng: RandomStream::new(1, "core", 0) }
}

impl Rig {
    fn nic(&mut self, seat: usize) -> &mut Nic {
        self.m.nic_at(self.seats[seat].at).expect("a NIC")
    }

    /// Calls `f` with the driver of a seat, whose core is `core`, and what the driver may use.
    fn with<R>(&mut self, seat: usize, core: ThreadId, f: impl FnOnce(&mut PollMode, &mut Ctx) -> R) -> R {
        let (at_home, m, s) = (self.m.arrival_at_home(core), &mut self.m, &mut self.seats[seat]);
        let step = StepFacts { thread: core, local: 0, now: m.now, arrival_at_home: at_home, stopped: false };
        let mut c = Ctx {
            step,
            program: &mut m.cpus[core].program,
            rng: &mut self.rng,
            machine: StepMachine { cal: &mut m.cal, nic: &mut m.nic, iio: m.iio.as_mut(), off_core: None },
            app: Some(&mut s.app),
            traffic: StepTraffic { generator: None, spikes: None },
            roles: &mut self.roles,
            tally: &mut self.tally,
        };
        f(&mut s.driver, &mut c)
    }
}

/// Runs the drivers `drivers` while packets arrive at the given times, each at the NIC of a driver; returns the machine at
/// rest, and for each NIC the number and the time of each packet that has left it.
fn run(drivers: &[usize], arrivals: &[(Time, usize)]) -> (Rig, Vec<Vec<(u64, Time)>>) {
    let mut rig = rig(drivers);
    let seat_of = |core: ThreadId| drivers.iter().position(|d| *d == core.index()).expect("a core with a driver");
    let core_of = |seat: usize| ThreadId::new(drivers[seat]);
    for (n, (at, thread)) in arrivals.iter().enumerate() {
        rig.m.cal.push(*at, Event::Timer(n as u32));
        // A driver without packets does not even poll, so that its core leaves caches and DRAM alone.
        rig.seats[seat_of(ThreadId::new(*thread))].polls = true;
    }
    for seat in 0..drivers.len() {
        if std::mem::take(&mut rig.seats[seat].polls) {
            rig.m.cal.push(Time::ZERO, Event::Free(core_of(seat)));
        }
    }
    let mut left = vec![Vec::new(); drivers.len()];
    while let Some(signal) = rig.m.next_signal() {
        match signal {
            MachineSignal::CoreFree(core) => match rig.with(seat_of(core), core, |t, c| t.step(c)) {
                Step::Run => rig.m.start(core),
                Step::Wait { .. } => rig.seats[seat_of(core)].polls = true,
                other => panic!("{other:?}"),
            },
            MachineSignal::Retired(core) => {
                while let Some(r) = rig.m.retired(core) {
                    if let Retired::Tag(tag) = r {
                        rig.with(seat_of(core), core, |t, c| t.retired(tag, c));
                    }
                }
            }
            MachineSignal::Doorbell(core, tag) => {
                rig.seats[seat_of(core)].doorbells += 1;
                rig.with(seat_of(core), core, |t, c| t.retired(tag, c));
            }
            MachineSignal::Landed(port) => {
                let (seat, now) = (port.index(), rig.m.now);
                while let Some((_, side)) = rig.nic(seat).landed_ring() {
                    let what = if side == RingSide::Receive { Notice::Queue } else { Notice::Transmitted };
                    let s = &mut rig.seats[seat];
                    if s.driver.notify(what, now) == Wakes::Now && std::mem::take(&mut s.polls) {
                        rig.m.cal.push(now, Event::Free(core_of(seat)));
                    }
                }
            }
            MachineSignal::Sent(at, id) => {
                let seat = rig.seats.iter().position(|s| s.at == at).expect("a NIC with a driver");
                let (now, nic) = (rig.m.now, rig.nic(seat));
                left[seat].push((nic.packet(id).key, now));
                nic.packet(id).done = true;
                nic.end_use(id);
            }
            MachineSignal::Timer(n) => {
                let seat = seat_of(ThreadId::new(arrivals[n as usize].1));
                let packet = Packet { wire_bytes: 128, uses: 1, key: n.into(), ..Packet::default() };
                rig.m.arrive(rig.seats[seat].at, packet).expect("room");
            }
            MachineSignal::Moved { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    (rig, left)
}

/// Packets at random times, `gap` ns apart on average, for a random one of `drivers`.
fn traffic(gap: u64, drivers: &[usize]) -> Vec<(Time, usize)> {
    let (mut at, mut dice) = (Time::us(1), RandomStream::new(3, "wire", gap));
    let one = |_| {
        at += Time(dice.below(2000 * gap));
        (at, drivers[dice.below(drivers.len() as u64) as usize])
    };
    (0..600).map(one).collect()
}

/// Each packet leaves through the NIC that it came through. Frames that are read at the same time may overtake each other.
#[test]
fn two_nics_forward_their_own_packets_and_lose_none() {
    for gap in [30, 100, 1000] {
        let arrivals = traffic(gap, &[0, 1]);
        let (mut rig, left) = run(&[0, 1], &arrivals);
        for (seat, left) in left.iter().enumerate() {
            let came: Vec<u64> = (0..).zip(&arrivals).filter(|(_, a)| a.1 == seat).map(|(n, _)| n).collect();
            let mut left: Vec<u64> = left.iter().map(|l| l.0).collect();
            left.sort_unstable();
            assert_eq!(left, came, "NIC {seat}, {gap} ns");
            let (n, counts) = (came.len() as u64, rig.nic(seat).counts.clone());
            assert_eq!((counts.offered, counts.delivered, counts.sent), (n, n, n), "NIC {seat}, {gap} ns");
            assert_eq!((rig.nic(seat).drops.total(), rig.nic(seat).packets_inside()), (0, 0), "NIC {seat}, {gap} ns");
            assert_eq!(rig.nic(seat).sent_descriptors(QUEUE), n, "NIC {seat}, {gap} ns: one descriptor a packet");
        }
        let iio = rig.m.iio.as_ref().expect("ports");
        assert_eq!(iio.nics().map(|(port, _)| port).collect::<Vec<_>>(), [PortId(0), PortId(1)]);
        iio.check().expect("every credit is accounted for");
        assert!(iio.is_idle(), "a credit or an entry has not come back");
        assert_eq!(rig.m.mem.in_flight(), 0, "a request is lost");
        rig.m.mem.check().expect("no dirty line is lost");
    }
}

/// The doorbells of one driver move the rings of its own NIC alone, and packets take as long as where that NIC is the only
/// one, on the first port.
#[test]
fn a_nic_beside_an_idle_one_works_as_alone() {
    for gap in [30, 100, 1000] {
        for busy in 0..2 {
            let arrivals = traffic(gap, &[busy]);
            let (_, alone) = run(&[busy], &arrivals);
            let (mut rig, left) = run(&[0, 1], &arrivals);
            assert_eq!(left[busy], alone[0], "NIC {busy}, {gap} ns");
            assert!(left[1 - busy].is_empty());
            let (rang, idle) = (rig.seats[busy].doorbells, rig.seats[1 - busy].doorbells);
            let meter = *rig.nic(busy).ring_meter().expect("rings");
            assert!(meter.transmit_doorbells > 0 && meter.transmit_doorbells < rang && idle == 0);
            let nic = rig.nic(1 - busy);
            let meter = *nic.ring_meter().expect("rings");
            assert_eq!((meter.transmit_doorbells, meter.transmit_fetches, meter.descriptors), (0, 0, 0));
            assert_eq!((nic.counts.offered, nic.sent_descriptors(QUEUE)), (0, 0));
        }
    }
}

#[test]
#[should_panic(expected = "the port that the NIC was built for")]
fn a_nic_sits_on_the_port_that_it_was_built_for() {
    let s = spec();
    let (iio, pcie) = (s.platform.iio.as_ref().expect("an IIO"), s.platform.pcie.as_ref().expect("links"));
    let nic = Nic::pcie(s.peripherals[0].ethernet().expect("it is one"), PortId(1), 1);
    Iio::new(iio, pcie, vec![(Endpoint::Ethernet(Box::new(nic)), 16, 64)]);
}
