//! A NIC of either attachment on a small machine, and software that drives it through the calls that both have.

use crate::common::{platforms, small, MHZ_3200};
use hostnet::config::{resolve, Scenario};
use hostnet::core::Cpu;
use hostnet::device::endpoint::Endpoint;
use hostnet::device::iio::Iio;
use hostnet::device::nic::{EthernetSpec, Nic, Packet};
use hostnet::kernel::{Clock, Event, Events, Time};
use hostnet::memory::dram::DramSpec;
use hostnet::memory::region::{AddressMap, Kind, Sharing};
use hostnet::memory::{Agent, Memory, Sweep};
use hostnet::meter::drops::DropCause;
use hostnet::placement::Placement;

pub const SLOTS: u32 = 16;
pub const QUEUES: usize = 2;
/// Lines of a buffer, and of a packet.
pub const LINES: u64 = 4;

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Attached {
    OnChip,
    Port,
}
pub const ATTACHMENTS: [Attached; 2] = [Attached::OnChip, Attached::Port];

enum Device {
    OnChip(Box<Nic>),
    Port(Iio),
}

/// What software sees of the NIC.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Seen {
    /// Packet `id` of a queue is visible.
    Visible(usize, u32),
    /// The reply to packet `id` has left.
    Sent(u32),
    /// The core has come to the end of its program.
    Free,
    /// Side effects of the core are due.
    Retired,
}

pub struct Bench {
    device: Device,
    pub mem: Memory,
    pub cal: Events,
    pub now: Time,
    placement: Placement,
    /// The core that queue 0 belongs to.
    pub cpu: Cpu,
    /// First line of the receive buffers of queue 0, and of the transmit buffers of queue 1.
    pub rx: u64,
    pub tx: u64,
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
    pub fn new(attached: Attached) -> Bench {
        Bench::with(attached, &ethernet(), 16)
    }

    pub fn with(attached: Attached, nic: &EthernetSpec, lanes: u32) -> Bench {
        let s = spec();
        let mut map = AddressMap::default();
        let mut region = |kind, core| {
            let r = map.add(1 << 14, kind, Sharing::Core(core), 0);
            map.get(r).base
        };
        let rx = [region(Kind::Rx, 0), region(Kind::Rx, 1)];
        let tx = [region(Kind::Tx, 0), region(Kind::Tx, 1)];
        let done = [region(Kind::Rx, 0), region(Kind::Rx, 1)];
        let clock = Clock::from_hz(MHZ_3200);
        let mut mem =
            Memory::new(&small(), &DramSpec::default(), clock, 2, vec![0b1111], map).expect("a small machine");
        let mut device = match attached {
            Attached::OnChip => Nic::integrated(&s.platform.nic, QUEUES as u32),
            Attached::Port => Nic::pcie(nic, QUEUES as u32),
        };
        for q in 0..QUEUES {
            device.attach_receive(q, rx[q], SLOTS, LINES);
            device.attach_transmit(q, tx[q], SLOTS, LINES);
        }
        let device = match attached {
            Attached::OnChip => Device::OnChip(Box::new(device)),
            Attached::Port => {
                (0..QUEUES).for_each(|q| device.attach_completions(q, done[q], 64));
                let (iio, pcie) = (s.platform.iio.as_ref().expect("an IIO"), s.platform.pcie.as_ref().expect("links"));
                mem.lat.ownership = iio.ownership.into();
                mem.lat.to_iio = iio.from_cha.into();
                Device::Port(Iio::new(iio, pcie, vec![(Endpoint::Ethernet(Box::new(device)), lanes, nic.tags)]))
            }
        };
        let (cal, placement) = (Events::default(), Placement::new(&s.placement));
        let cpu = Cpu::new(0, &s.platform.core);
        Bench { device, mem, cal, now: Time::ZERO, placement, cpu, rx: rx[0], tx: tx[1] }
    }

    pub fn nic(&mut self) -> &mut Nic {
        match &mut self.device {
            Device::OnChip(n) => n,
            Device::Port(iio) => iio.nic().expect("it has one").1,
        }
    }
    pub fn iio(&self) -> Option<&Iio> {
        match &self.device {
            Device::OnChip(_) => None,
            Device::Port(iio) => Some(iio),
        }
    }

    /// The core runs the program in its buffer.
    pub fn start(&mut self) {
        if let Some(end) = self.cpu.start(&mut self.mem, &mut self.cal, self.now) {
            self.cal.push(end.max(self.now), Event::Core(0));
        }
    }

    pub fn arrive(&mut self, p: Packet) -> Result<(), DropCause> {
        match &mut self.device {
            Device::OnChip(n) => n.arrive(&mut self.cal, p, self.now),
            Device::Port(iio) => iio.arrive(&mut self.cal, p, self.now),
        }
    }

    /// A packet of `flow` with `key`, which is used twice: its buffer, and its reply.
    pub fn packet(flow: u32, key: u64) -> Packet {
        Packet { flow, key, lines: LINES as u16, wire_bytes: 64 * LINES as u32, uses: 2, ..Packet::default() }
    }

    /// Software sends `lines` lines in reply to packet `id`.
    pub fn reply(&mut self, id: u32, lines: u16) {
        let now = self.now;
        let queue = self.nic().packet(id).queue as usize;
        let line = self.nic().next_tx(queue);
        self.nic().reserve_tx(queue, now);
        let p = self.nic().packet(id);
        (p.tx_line, p.tx_lines) = (line, lines);
        self.post(id);
    }

    pub fn post(&mut self, id: u32) {
        match &mut self.device {
            Device::OnChip(n) => n.post(&mut self.cal, id, self.now),
            Device::Port(iio) => iio.post(&mut self.cal, id, self.now),
        }
    }

    /// After transmission: the transmit buffer is free, and the packet's second use has ended.
    pub fn sent(&mut self, id: u32) {
        let now = self.now;
        let mut cal = std::mem::take(&mut self.cal);
        self.nic().release_tx(&mut cal, id, now);
        self.nic().end_use(id);
        self.cal = cal;
    }

    /// Software is done with packet `id`'s buffer and hands it back to the NIC.
    pub fn give_back(&mut self, id: u32) {
        let now = self.now;
        let queue = self.nic().packet(id).queue as usize;
        self.nic().release(id);
        self.nic().replenish(queue, 1, now);
    }

    /// The next event; None when there is none left.
    pub fn step(&mut self) -> Option<Vec<Seen>> {
        let (t, e) = self.cal.pop()?;
        self.now = t;
        let (cal, mem, placement) = (&mut self.cal, &mut self.mem, &mut self.placement);
        let mut seen = Vec::new();
        match (e, &mut self.device) {
            (Event::Cha(id), _) => mem.on_cha(cal, id, t),
            (Event::Dram(ch), _) => mem.on_dram(cal, ch.into(), t),
            (Event::Fill(id), device) => {
                let a = mem.answered(cal, id, t);
                match (a.agent, device) {
                    (Agent::Core, _) => {
                        if let Some(end) = self.cpu.on_fill(mem, cal, a, t) {
                            cal.push(end.max(t), Event::Core(0));
                        }
                    }
                    (Agent::Nic, Device::OnChip(n)) => n.on_answer(cal, &a, t),
                    (Agent::Io, Device::Port(iio)) => {
                        iio.on_line(mem, cal, placement, &a, t);
                        let nic = iio.nic().expect("it has one").1;
                        while let Some(id) = nic.landed() {
                            seen.push(Seen::Visible(nic.packet(id).queue as usize, id));
                        }
                    }
                    other => panic!("an answer for {:?}", other.0),
                }
            }
            (Event::Core(_), _) => seen.push(Seen::Free),
            (Event::Retire(_), _) => seen.push(Seen::Retired),
            (Event::NicRx, Device::OnChip(n)) => n.on_rx(mem, cal, placement, t),
            (Event::Delivered(id), Device::OnChip(n)) => seen.push(Seen::Visible(n.on_delivered(id), id)),
            (Event::NicTx(id), device) => {
                let sent = match device {
                    Device::OnChip(n) => n.on_tx(mem, cal, placement, id, t),
                    Device::Port(iio) => iio.on_nic_tx(cal, id, t),
                };
                if sent {
                    seen.push(Seen::Sent(id));
                }
            }
            (Event::Tlp(p), Device::Port(iio)) => iio.on_tlp(mem, cal, placement, p.into(), t),
            (Event::Turn { port, way }, Device::Port(iio)) => iio.on_turn(cal, port.into(), way, t),
            (Event::Completed(job), Device::Port(iio)) => iio.on_completed(cal, job, t),
            (Event::Sweep { high, low, count, op }, _) => {
                let line = u64::from(high) << 32 | u64::from(low);
                (line..line + u64::from(count)).for_each(|l| mem.on_sweep(cal, l, Sweep::from_u8(op), t));
            }
            (other, _) => panic!("{other:?} is no event of a NIC"),
        }
        Some(seen)
    }
}
