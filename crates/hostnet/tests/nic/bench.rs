//! A NIC of either attachment on a small machine, and software that drives the NIC through the calls that both
//! attachments share.

use crate::common::{platforms, small, MHZ_3200};
use hostnet::config::{resolve, Scenario};
use hostnet::core::Cpu;
use hostnet::device::endpoint::Endpoint;
use hostnet::device::iio::Iio;
use hostnet::device::nic::{EthernetSpec, Nic, Packet};
use hostnet::device::{self, NicAt};
use hostnet::kernel::{Clock, CoreId, LineAddr, PacketId, Post, QueueId, TenantId, ThreadId};
use hostnet::machine::{Event, Machine, MachineSignal};
use hostnet::memory::dram::DramSpec;
use hostnet::memory::region::{AddressMap, RegionKind, Sharing};
use hostnet::memory::Memory;
use hostnet::meter::drops::DropCause;
use hostnet::placement::Placement;

pub const SLOTS: u32 = 16;
pub const QUEUES: usize = 2;
/// Lines of a buffer, and of a packet.
pub const LINES: u64 = 4;

pub const ATTACHMENTS: [NicAt; 2] = [NicAt::Chip, NicAt::Port];

/// Events of the NIC that software sees.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Seen {
    /// Packet `id` of a queue is visible.
    Visible(QueueId, PacketId),
    /// The reply to packet `id` has left.
    Sent(PacketId),
    /// The core has reached the end of its program.
    Free,
    /// Side effects of the core are due.
    Retired,
    /// A doorbell of the core with this tag has reached the link of the port.
    Doorbell(u32),
}

pub struct Bench {
    pub m: Machine,
    at: NicAt,
    /// First line of the receive buffers of queue 0, and of the transmit buffers of queue 1.
    pub rx: LineAddr,
    pub tx: LineAddr,
}

pub fn spec() -> Scenario {
    let text = "name = \"n\"\nplatform = \"cascadelake\"\nplacement = { policy = \"ddio\" }\n[[peripheral]]\nkind = \
                \"ethernet\"\n[[tenant]]\nname = \"t\"\ncores = 1\napp = { kind = \"tcp_receive\" }\n[run]\nload = \"saturate\"\n";
    resolve(text, "n.toml", &[platforms()]).unwrap_or_else(|e| panic!("{e}"))
}

pub fn ethernet() -> EthernetSpec {
    serde_json::from_str("{}").expect("all of it has defaults")
}

impl Bench {
    pub fn new(at: NicAt) -> Bench {
        Bench::with(at, &ethernet(), 16)
    }

    pub fn with(at: NicAt, nic: &EthernetSpec, lanes: u32) -> Bench {
        let s = spec();
        let mut map = AddressMap::default();
        let mut region = |kind, core| {
            let r = map.add(1 << 14, kind, Sharing::Core(core), TenantId(0));
            map.get(r).base
        };
        let rx = [region(RegionKind::Rx, CoreId(0)), region(RegionKind::Rx, CoreId(1))];
        let tx = [region(RegionKind::Tx, CoreId(0)), region(RegionKind::Tx, CoreId(1))];
        let done = [region(RegionKind::Rx, CoreId(0)), region(RegionKind::Rx, CoreId(1))];
        let clock = Clock::from_hz(MHZ_3200);
        let mut mem =
            Memory::new(&small(), &DramSpec::default(), clock, 2, vec![0b1111], map).expect("a small machine");
        let tags = nic.tags;
        let mut nic = match at {
            NicAt::Chip => Nic::integrated(&s.platform.nic, QUEUES as u32),
            NicAt::Port => Nic::pcie(nic, QUEUES as u32),
        };
        for q in 0..QUEUES {
            nic.attach_receive(QueueId::new(q), rx[q], SLOTS, LINES);
            nic.attach_transmit(QueueId::new(q), tx[q], SLOTS, LINES);
        }
        let (chip, iio) = match at {
            NicAt::Chip => (nic, None),
            NicAt::Port => {
                (0..QUEUES).for_each(|q| nic.attach_completions(QueueId::new(q), done[q], 64));
                let (iio, pcie) = (s.platform.iio.as_ref().expect("an IIO"), s.platform.pcie.as_ref().expect("links"));
                mem.lat.ownership = iio.ownership.into();
                mem.lat.to_iio = iio.from_cha.into();
                let iio = Iio::new(iio, pcie, vec![(Endpoint::Ethernet(Box::new(nic)), lanes, tags)]);
                (Nic::integrated(&s.platform.nic, 0), Some(iio))
            }
        };
        // Queue 0 belongs to this core.
        let cpus = vec![Cpu::new(ThreadId(0), &s.platform.core)];
        let m = Machine::new(mem, cpus, chip, iio, Placement::new(&s.placement));
        Bench { m, at, rx: rx[0], tx: tx[1] }
    }

    pub fn nic(&mut self) -> &mut Nic {
        self.m.nic_at(self.at).expect("it has one")
    }

    pub fn arrive(&mut self, p: Packet) -> Result<(), DropCause> {
        self.m.arrive(self.at, p)
    }

    /// A packet of `flow` with `key`, which is used twice: for its buffer, and for its reply.
    pub fn packet(flow: u32, key: u64) -> Packet {
        Packet { flow, key, lines: LINES as u16, wire_bytes: 64 * LINES as u32, uses: 2, ..Packet::default() }
    }

    /// Software sends `lines` lines in reply to packet `id`.
    pub fn reply(&mut self, id: PacketId, lines: u16) {
        let now = self.m.now;
        let queue = self.nic().packet(id).queue;
        let line = self.nic().next_tx(queue);
        self.nic().reserve_tx(queue, now);
        let p = self.nic().packet(id);
        (p.tx_line, p.tx_lines) = (line, lines);
        self.post(id);
    }

    pub fn post(&mut self, id: PacketId) {
        self.m.post(self.at, id);
    }

    /// After transmission: the transmit buffer is free, and the packet's second use has ended.
    pub fn sent(&mut self, id: PacketId) {
        let m = &mut self.m;
        let nic = match self.at {
            NicAt::Chip => &mut m.nic,
            NicAt::Port => m.iio.as_mut().and_then(|i| i.nic()).expect("it has one").1,
        };
        nic.release_tx(&mut m.cal, id, m.now);
        nic.end_use(id);
    }

    /// Software has finished with packet `id`'s buffer and returns the buffer to the NIC.
    pub fn give_back(&mut self, id: PacketId) {
        self.m.cal.post(self.m.now, device::DeviceEvent::Freed(self.at, id));
    }

    /// The next event; None when there is none left.
    pub fn step(&mut self) -> Option<Vec<Seen>> {
        let e = self.m.pop()?;
        let Some(signal) = self.m.handle(e) else { return Some(Vec::new()) };
        Some(match (signal, e) {
            (MachineSignal::Delivered(queue), Event::Delivered(id)) => {
                vec![Seen::Visible(QueueId(queue.0), id)]
            }
            (MachineSignal::Landed(_), _) => {
                let nic = self.nic();
                let mut next = || nic.landed().map(|id| Seen::Visible(nic.packet(id).queue, id));
                std::iter::from_fn(&mut next).collect()
            }
            (MachineSignal::Sent(at, id), _) => {
                assert_eq!(at, self.at, "a reply of the other NIC");
                vec![Seen::Sent(id)]
            }
            (MachineSignal::CoreFree(_), _) => vec![Seen::Free],
            (MachineSignal::Retired(_), _) => vec![Seen::Retired],
            (MachineSignal::Doorbell(_, tag), _) => vec![Seen::Doorbell(tag)],
            (MachineSignal::Moved { .. }, _) => Vec::new(),
            other => panic!("{other:?} concerns no NIC"),
        })
    }
}
