//! A machine: memory, cores and devices of one host that share a calendar and one event loop.
//!
//! The event loop does what hardware does by itself, and returns everything else to the machine's caller as a
//! [`MachineSignal`]:
//!
//! ```text
//!   calendar --event--> Machine::handle --Signal--> roles of a host, a directed test, a ladder, a contract suite
//!       ^                    |                          |
//!       +----- new events ---+------ new programs ------+
//! ```
//!
//! Several machines can share a calendar; see [`World`].

mod device_access;
mod event;
mod functional;
mod world;

pub use device_access::DeviceAccess;
pub use event::{Event, Events};
pub use world::World;

use crate::core::{Cpu, Retired};
use crate::device::iio::Iio;
use crate::device::nic::{Nic, NicSpec, Packet, RingStart};
use crate::device::NicAt;
use crate::kernel::units::Span;
use crate::kernel::{CoreId, IdVec, LineAddr, PacketId, PortId, Post, ThreadId, Time, TxnId};
use crate::memory::{Memory, Sender, Sweep, Txn};
use crate::meter::drops::DropCause;
use crate::placement::{Placement, PlacementPolicy, PlacementSpec, SweepTx, Ways};
use crate::{core, traffic};

/// A message from the hardware to the caller that runs the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the documentation of a variant explains its fields")]
pub enum MachineSignal {
    /// A core has reached the end of its program.
    CoreFree(ThreadId),
    /// Side effects of a core are due; [`Machine::retired`] takes them.
    Retired(ThreadId),
    /// A core's doorbell with this tag has reached the IIO; the thread's driver knows the NIC's port.
    Doorbell(ThreadId, u32),
    /// A packet of the NIC on the chip has become visible to a core.
    Delivered(ThreadId),
    /// A core is interrupted, so that a sleeping thread continues.
    Interrupt(ThreadId),
    /// A line that a core watches has been written by another agent or invalidated.
    Line(ThreadId),
    /// Packets have become visible in queues of the NIC on this port; [`Nic::landed`] takes them, or
    /// [`Nic::landed_ring`] where descriptors lie in memory.
    Landed(PortId),
    /// The NIC has put the reply to a packet on the wire.
    Sent(NicAt, PacketId),
    /// The device on `port` has moved `lines` lines without making a packet visible.
    Moved { port: PortId, lines: u16 },
    /// The memory system has answered a transaction of an agent that is neither a core nor a device of this machine;
    /// `mem.answered` takes the answer.
    Answer(TxnId),
    /// Traffic, which runs on top of the machine.
    Traffic(traffic::TrafficEvent),
    /// A timer with this number has expired; the machine's caller set the timer.
    Timer(u32),
}

/// Memory, cores and devices of one host, with their calendar and the present time.
#[derive(Clone)]
pub struct Machine {
    /// Calendar of the pending events.
    pub cal: Events,
    /// Time of the event that is being handled.
    pub now: Time,
    /// Memory system of the host.
    pub mem: Memory,
    /// Hardware threads of the host.
    pub cpus: IdVec<ThreadId, Cpu>,
    /// NIC of the host.
    pub nic: Nic,
    /// Integrated I/O controller between devices and memory; None on hosts without one.
    pub iio: Option<Iio>,
    /// Placement policy, which all devices ask for the destination of their lines.
    pub placement: Placement,
    /// Whether the machine has no devices; its caller then takes the answers to transactions of devices.
    without_devices: bool,
    /// Whether requests of cores share the path from the IIO to the home agent.
    shares_way: bool,
}

impl Machine {
    /// Makes a machine at time zero from its parts.
    pub fn new(
        mem: Memory,
        cpus: impl Into<IdVec<ThreadId, Cpu>>,
        nic: Nic,
        iio: Option<Iio>,
        placement: Placement,
    ) -> Machine {
        let (cal, now) = (Events::default(), Time::ZERO);
        let shares_way = iio.as_ref().is_some_and(Iio::is_shared_with_cores);
        let mut m =
            Machine { cal, now, mem, cpus: cpus.into(), nic, iio, placement, without_devices: false, shares_way };
        m.placement_has_changed();
        let on_chip = !m.has_nics_on_ports();
        for thread in m.cpus.ids() {
            m.cpus[thread].rings_chip = on_chip;
            let gap = m.doorbell_gap(thread);
            m.cpus[thread].space_doorbells(gap);
            let after = m.doorbell_answer(thread);
            m.cpus[thread].answer_doorbells(after);
        }
        m
    }

    /// Tells the memory system into which ways the placement policy may place lines, after each change of the policy.
    pub fn placement_has_changed(&mut self) {
        self.mem.set_device_ways(self.placement.way_mask());
    }

    /// Makes a machine without devices.
    pub fn without_devices(mem: Memory, cpus: impl Into<IdVec<ThreadId, Cpu>>) -> Machine {
        let none = NicSpec { pipeline: Span(0), line_interval: Span(0), notify: Span(0), ring_start: RingStart::First };
        let placement = PlacementSpec {
            extension: None,
            policy: PlacementPolicy::Dma,
            ways: Ways::low(0),
            sweep_rx: false,
            sweep_tx: SweepTx::None,
            iat: None,
            resq: false,
            mode: None,
            idio: None,
            table: None,
        };
        let placement = Placement::new(&placement);
        Machine { without_devices: true, ..Machine::new(mem, cpus, Nic::integrated(&none, 0), None, placement) }
    }

    /// Takes the next event and advances the present time to the time of the event.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<Event> {
        let (at, e) = self.cal.pop()?;
        self.now = at;
        Some(e)
    }

    /// Handles events until one yields a signal for the caller; returns None when no event is left.
    #[inline]
    pub fn next_signal(&mut self) -> Option<MachineSignal> {
        while let Some(e) = self.pop() {
            if let Some(s) = self.handle(e) {
                return Some(s);
            }
        }
        None
    }

    /// Handles all remaining events and ignores their signals.
    pub fn settle(&mut self) {
        while let Some(s) = self.next_signal() {
            if let MachineSignal::Answer(id) = s {
                self.mem.answered(&mut self.cal, id, self.now);
            }
        }
    }

    /// Dispatches an event to the component that handles the event; returns a signal if the caller has to act.
    #[inline(always)]
    pub fn handle(&mut self, e: Event) -> Option<MachineSignal> {
        let now = self.now;
        match e {
            Event::Cha(id) => {
                if !self.shares_way || !self.waits_for_iio_path(id) {
                    self.mem.on_cha(&mut self.cal, id, now);
                }
            }
            Event::Slices => self.mem.resume_slices(&mut self.cal, now),
            Event::Dram(ch) => self.mem.on_dram(&mut self.cal, ch, now),
            Event::MemoryLink => self.mem.on_memory_link(&mut self.cal, now),
            Event::Fill(id) => return self.on_fill(id),
            Event::Link(id) => self.mem.on_link(&mut self.cal, id, now),
            Event::Tlp(port) => {
                if let Some(iio) = &mut self.iio {
                    iio.on_tlp(&mut self.mem, &mut self.cal, &mut self.placement, port, now);
                }
            }
            Event::Hint { core, line } => {
                let thread = self.mem.first_thread(core);
                self.cpus[thread].on_hint(&mut self.mem, &mut self.cal, (&line).into(), now);
            }
            Event::Turn { port, way } => {
                if let Some(iio) = &mut self.iio {
                    iio.on_turn(&mut self.cal, port, way, now);
                }
            }
            Event::Completed(job) => {
                if let Some(iio) = &mut self.iio {
                    iio.on_completed(&mut self.cal, job, now);
                }
            }
            Event::Due(c) => {
                let end = self.cpus[c].on_due(&mut self.mem, &mut self.cal, now);
                self.end_program(c, end);
            }
            Event::Access(DeviceAccess::Doorbell { thread, tag }) => return Some(MachineSignal::Doorbell(thread, tag)),
            Event::Access(access) => self.on_device_access(access),
            Event::Free(c) => return Some(MachineSignal::CoreFree(c)),
            Event::Interrupt(c) => return Some(MachineSignal::Interrupt(c)),
            Event::Wake(c) => return Some(MachineSignal::Line(c)),
            Event::Retire(c) => return Some(MachineSignal::Retired(c)),
            Event::NicRx => self.nic.on_rx(&mut self.mem, &mut self.cal, &mut self.placement, now),
            Event::Delivered(id) => return Some(MachineSignal::Delivered(ThreadId(self.nic.on_delivered(id).0))),
            Event::Freed(at, id) => {
                let p = *self.nic_at(at)?.packet(id);
                self.mem.consumed(p.line, p.lines.into());
                let nic = self.nic_at(at)?;
                nic.release(id);
                nic.replenish(p.queue, 1, now);
            }
            Event::NicTx(at, id) => {
                let sent = match at {
                    NicAt::Chip => self.nic.on_tx(&mut self.mem, &mut self.cal, &mut self.placement, id, now),
                    NicAt::Port(port) => self.iio.as_mut()?.on_nic_tx(&mut self.cal, port, id, now),
                };
                return sent.then_some(MachineSignal::Sent(at, id));
            }
            Event::Ring { port, queue, task, n } => {
                if let Some(iio) = &mut self.iio {
                    iio.on_ring(&mut self.cal, port, queue, task, n.into(), now);
                }
            }
            Event::Sweep { line, count, op } => {
                for l in LineAddr::from(&line).span(count) {
                    self.mem.on_sweep(&mut self.cal, l, op, now);
                }
            }
            Event::Traffic(e) => return Some(MachineSignal::Traffic(e)),
            Event::Timer(n) => return Some(MachineSignal::Timer(n)),
        }
        None
    }

    /// Whether transaction `id`, which arrives at the home agent, waits for the path that cores share with devices.
    #[inline(never)]
    fn waits_for_iio_path(&mut self, id: TxnId) -> bool {
        self.iio.as_mut().is_some_and(|iio| iio.delay_core_request(&mut self.mem, &mut self.cal, id, self.now))
    }

    /// Passes the answer of transaction `id` to its agent.
    #[inline(always)]
    fn on_fill(&mut self, id: TxnId) -> Option<MachineSignal> {
        let now = self.now;
        let t = self.mem.request(id);
        if self.without_devices && !matches!(t.sender, Sender::Core { core, .. } if core.index() < self.cpus.len()) {
            return Some(MachineSignal::Answer(id));
        }
        let t = self.mem.answered(&mut self.cal, id, now);
        match t.sender {
            Sender::Background => None,
            Sender::Nic(_) => {
                self.nic.on_answer(&mut self.cal, &t, now);
                None
            }
            Sender::Core { thread, .. } => {
                let end = self.cpus[thread].on_fill(&mut self.mem, &mut self.cal, &t, now);
                self.end_program(thread, end);
                if self.mem.siblings.is_some() {
                    self.notify_sibling(&t);
                }
                None
            }
            Sender::IoWrite(_) | Sender::IoRead(_) | Sender::IoMerge(_) | Sender::Io => {
                let iio = self.iio.as_mut()?;
                let port = iio.on_line(&mut self.mem, &mut self.cal, &mut self.placement, &t, now);
                Some(if iio.has_landed(port) {
                    MachineSignal::Landed(port)
                } else {
                    MachineSignal::Moved { port, lines: t.lines }
                })
            }
        }
    }

    /// Posts an event for the end of a core's program, if that time is known.
    #[inline]
    fn end_program(&mut self, thread: ThreadId, end: Option<Time>) {
        if let Some(t) = end {
            self.cal.post(t.max(self.now), core::CoreEvent::Free(thread));
        }
    }

    /// NIC at this attachment by shared reference; None where the port has no NIC.
    #[inline]
    pub fn look_at_nic(&self, at: NicAt) -> Option<&Nic> {
        match at {
            NicAt::Chip => Some(&self.nic),
            NicAt::Port(port) => self.iio.as_ref()?.nic(port),
        }
    }

    /// NIC at this attachment; None where the port has no NIC.
    #[inline]
    pub fn nic_at(&mut self, at: NicAt) -> Option<&mut Nic> {
        match at {
            NicAt::Chip => Some(&mut self.nic),
            NicAt::Port(port) => self.iio.as_mut()?.nic_mut(port),
        }
    }

    /// Hands a packet that comes off the wire now to a NIC.
    ///
    /// # Errors
    /// Fails with the cause when the packet is dropped on arrival.
    ///
    /// # Panics
    /// Panics when `at` is a port without a NIC.
    #[inline]
    pub fn arrive(&mut self, at: NicAt, packet: Packet) -> Result<(), DropCause> {
        match at {
            NicAt::Chip => self.nic.arrive(&mut self.cal, packet, self.now),
            NicAt::Port(port) => {
                let iio = self.iio.as_mut().expect("a NIC on a port");
                iio.arrive(&mut self.cal, port, packet, self.now)
            }
        }
    }

    /// Posts the reply of packet `id` to a NIC; [`MachineSignal::Sent`] announces that the reply is on the wire.
    ///
    /// # Panics
    /// Panics when `at` is a port without a NIC.
    #[inline]
    pub fn post(&mut self, at: NicAt, id: PacketId) {
        match at {
            NicAt::Chip => self.nic.post(&mut self.cal, id, self.now),
            NicAt::Port(port) => self.iio.as_mut().expect("a NIC on a port").post(&mut self.cal, port, id, self.now),
        }
    }

    /// Starts the program in `core`'s buffer now; [`MachineSignal::CoreFree`] announces its end.
    #[inline]
    pub fn start(&mut self, thread: ThreadId) {
        if self.mem.siblings.is_some() {
            self.share_slots(thread);
        }
        let end = self.cpus[thread].start(&mut self.mem, &mut self.cal, self.now);
        self.end_program(thread, end);
    }

    /// Core that a hardware thread runs on.
    #[inline]
    pub fn core_of(&self, thread: ThreadId) -> CoreId {
        self.cpus[thread].core()
    }

    /// Time at which a request that leaves `core` now reaches the home agent of the core's node.
    #[inline]
    pub fn arrival_at_home(&self, thread: ThreadId) -> Time {
        self.now + self.mem.latency_to_agent(self.core_of(thread))
    }

    /// Resumes the accesses of the sibling thread that waited for the line of `t`.
    #[cold]
    fn notify_sibling(&mut self, t: &Txn) {
        while let Some((thread, record)) = self.mem.waits_for(t.thread(), t.line) {
            self.cpus[thread].sibling_has_it(&mut self.cal, record, self.now);
        }
    }

    /// Sets the issue slots of `thread`, which starts a program, according to the share that the sibling thread takes.
    #[cold]
    pub fn share_slots(&mut self, thread: ThreadId) {
        let Some(other) = self.mem.sibling(thread) else { return };
        let share = self.cpus[other].slots_taken();
        self.cpus[thread].share_slots(share, self.now);
    }

    /// Takes the next side effect of `core` that is due now. The function sends cache maintenance, and a doorbell of a
    /// NIC on a port, to their destinations; a doorbell of the NIC on the chip is returned as a tag.
    #[inline]
    pub fn retired(&mut self, thread: ThreadId) -> Option<Retired> {
        let Some(r) = self.cpus[thread].retired(&mut self.mem, &mut self.cal, self.now) else {
            if self.cpus[thread].sweeps_wait() {
                let end = self.cpus[thread].on_swept(&mut self.mem, &mut self.cal, self.now);
                self.end_program(thread, end);
            }
            return None;
        };
        let r = self.send_to_device(thread, r);
        if let Retired::Maintain { line, lines, op } = r {
            self.mem.stats.clsweeps += if op == Sweep::Sweep { lines.into() } else { 0 };
            if op.drops_data() {
                // A sweep message that finds the next packet in the buffer, which no core has read yet, counts as a
                // race.
                self.mem.consumed(line, lines.into());
            }
            let arrives = if op == Sweep::InvalidateOwn {
                self.mem.invalidate_own(self.core_of(thread), line, lines.into());
                self.now
            } else {
                let core = self.core_of(thread);
                self.mem.maintain(&mut self.cal, core, line, lines, op, self.now)
            };
            if op.drops_data() {
                self.cpus[thread].on_sweep_sent(&mut self.cal, arrives);
            }
        }
        Some(r)
    }
}
