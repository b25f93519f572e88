//! Lives of chosen packets: a run that finds out which packets to follow, and a second, equal run that follows them.
//!
//! The first run records when each packet arrived and ended. The second run handles the same events one by one under an
//! [`Observer`], which sees each event before and after it is handled. A run without lives has no observer and takes no
//! other path than before.

use super::load::{run_of, Beside, Progress};
use super::measure::Outcome;
use super::Host;
use crate::config::scenario::Load;
use crate::config::Scenario;
use crate::core::Op;
use crate::device::nic::Nic;
use crate::device::{NicAt, RingSide, RingTask};
use crate::flow::Domain;
use crate::kernel::{IdVec, Int, RandomStream, Real, TenantId, ThreadId, Time, TxnId};
use crate::machine::{DeviceAccess, Event};
use crate::memory::{Agent, Sender, Txn, TxnOp};
use crate::meter::life::{Chosen, Life, LifePart, LifeStage, Lives, Milestone, RequestKind, ServingRequest};
use crate::stack::ccnic::CcnicInterface;
use crate::stack::role::IdleState;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Requests of a thread that the observer remembers until a packet that they served turns up.
const REMEMBERED: usize = 1 << 16;
/// Largest number of slices of threads, and of samples of the queues, in a trace.
const SLICES: usize = 1 << 13;
const SAMPLES: usize = 1 << 10;
/// Shortest time between two samples of the queues.
const SAMPLE: Time = Time::ns(20);

/// Steps of a quantile in 1: that of a percentile has up to eight decimals.
const QUANTUM: u64 = 100_000_000;

/// The packets to follow, among those that ended in the measured window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pick {
    /// The first `n` by arrival.
    First(usize),
    /// The `n` with the highest latency.
    Slowest(usize),
    /// `n` drawn at random.
    Random(usize),
    /// The packet with this number, counted by arrival from 1.
    Number(usize),
    /// The packet at this quantile of the latency (nearest rank), such as 0.99.
    Quantile(f64),
}

/// Activity of a thread in a slice of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadState {
    /// The thread ran a program.
    Runs,
    /// The thread polled without success.
    Polls,
    /// The thread slept.
    Sleeps,
}

/// Slice of a thread's time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ThreadSlice {
    /// Number of the thread.
    pub thread: usize,
    /// Activity of the thread.
    pub state: ThreadState,
    /// Start, in ps.
    pub from: u64,
    /// End, in ps.
    pub to: u64,
}

/// Fill of one queue over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueCounter {
    /// Name of the queue.
    pub name: String,
    /// Unit of its fill.
    pub unit: &'static str,
    /// Times in ps with the fill from then on.
    pub values: Vec<(u64, u64)>,
}

/// A packet whose life was followed.
#[derive(Clone, Debug, Serialize)]
pub struct Lived {
    /// Number of the packet among those that ended in the window, by arrival, from 1.
    pub number: usize,
    /// NIC or interface at which the packet arrived.
    pub nic: String,
    /// Queue at which the packet arrived.
    pub queue: usize,
    /// Thread that served the packet, if known.
    pub thread: Option<usize>,
    /// Bytes of the frame.
    pub bytes: u32,
    /// Time of arrival, in ps.
    pub arrived: u64,
    /// Time from arrival to end, in ps.
    pub latency: u64,
    /// Stages, which tile the latency.
    pub stages: Vec<LifeStage>,
    /// Memory requests that served the packet.
    pub requests: Vec<ServingRequest>,
}

/// Lives of packets of a measured window.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PacketTrace {
    /// Latencies of all packets that ended in the window, by arrival, in ps.
    #[serde(skip)]
    pub latencies: Vec<u64>,
    /// Sources of these packets, and their numbers of arrival there.
    #[serde(skip)]
    found: Vec<(usize, u64)>,
    /// Number of all packets that ended in the window.
    pub ended: usize,
    /// Start of the window, in ps.
    pub window: u64,
    /// The followed packets, by number.
    pub packets: Vec<Lived>,
    /// Number of the client's first thread, where the packets come from a client.
    pub client: Option<usize>,
    /// Slices of the threads that served these packets, while they lived.
    pub threads: Vec<ThreadSlice>,
    /// Fill of queues while these packets lived.
    pub queues: Vec<QueueCounter>,
}

/// Runs a scenario twice, follows the packets of `pick` in the second run, and returns its outcome with their lives.
///
/// # Errors
/// Returns one sentence that names what cannot be built or followed, a violated conservation law, or the error of
/// `progress`.
pub fn trace(spec: &Scenario, pick: Pick, progress: Progress) -> Result<(Outcome, PacketTrace), String> {
    if spec.run.load == Load::None || spec.tenants.probe().is_some() {
        return Err("the lives of packets need a run under load, and this scenario is a directed test".into());
    }
    let follow = |following| Beside { lives: Some(following), ..Beside::default() };
    let first = run_of(spec, follow(&Following::Ends), &mut |f| progress(f / 2.0))?;
    let seen = first.lives.ok_or("the search found no rate that passes, so that no packet can be followed")?;
    let numbers = pick.numbers(&seen.latencies, spec.seed)?;
    let following = match spec.client {
        Some(_) => Following::Requests(numbers.iter().map(|n| seen.found[*n].1).collect()),
        None => {
            let mut chosen: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
            for n in &numbers {
                let (source, arrival) = seen.found[*n];
                chosen.entry(source).or_default().insert(arrival);
            }
            Following::Whole(chosen)
        }
    };
    let mut second = run_of(spec, follow(&following), &mut |f| progress(0.5 + f / 2.0))?;
    let mut lives = *second.lives.take().ok_or("the second run differs from the first one")?;
    lives.ended = seen.latencies.len();
    lives.latencies = seen.latencies;
    for (p, n) in lives.packets.iter_mut().zip(numbers) {
        p.number = n + 1;
    }
    Ok((second, lives))
}

impl Pick {
    /// Positions of the picked packets among packets with these latencies, in ascending order.
    ///
    /// # Errors
    /// Returns one sentence when there is no such packet.
    fn numbers(self, latencies: &[u64], seed: u64) -> Result<Vec<usize>, String> {
        let of = latencies.len();
        if of == 0 {
            return Err("no packet whose life can be recorded ended in the measured window".into());
        }
        let ranked = || {
            let mut all: Vec<usize> = (0..of).collect();
            all.sort_by_key(|i| latencies[*i]);
            all
        };
        let mut picked = match self {
            Pick::First(n) => (0..n.min(of)).collect(),
            Pick::Slowest(n) => ranked().split_off(of - n.min(of)),
            Pick::Random(n) => {
                let (mut all, mut dice) = ((0..of).collect::<Vec<_>>(), RandomStream::new(seed, "lives", 0));
                for i in 0..n.min(of) {
                    let other = i + dice.below((of - i).to_u64()).to_usize();
                    all.swap(i, other);
                }
                all.truncate(n.min(of));
                all
            }
            Pick::Number(n) if (1..=of).contains(&n) => vec![n - 1],
            Pick::Number(n) => return Err(format!("packet {n} is not within 1 to {of}, the packets of the window")),
            Pick::Quantile(q) => {
                // In whole numbers, since 0.07 * 100 is above 7 in binary ones.
                let rank = ((q * QUANTUM.to_f64()).round().whole() * of.to_u64()).div_ceil(QUANTUM);
                vec![ranked()[rank.to_usize().clamp(1, of) - 1]]
            }
        };
        picked.sort_unstable();
        Ok(picked)
    }
}

/// Packets that a run follows, by the number of their source among [`Host::each_lives`].
pub(super) enum Following {
    Ends,
    Whole(BTreeMap<usize, BTreeSet<u64>>),
    /// The round trips of these requests of a client, at both hosts.
    Requests(BTreeSet<u64>),
}

/// State of a run that follows packets.
#[derive(Clone)]
pub(super) struct Observer {
    /// Requests of each thread that have ended, oldest first.
    requests: IdVec<ThreadId, VecDeque<ServingRequest>>,
    /// Activity of each thread, and its start.
    doing: IdVec<ThreadId, (ThreadState, Time)>,
    slices: Vec<ThreadSlice>,
    /// Names and units of the sampled queues.
    queues: Vec<(String, &'static str)>,
    samples: Vec<(Time, Vec<u64>)>,
    /// Shortest time between two samples.
    period: Time,
    /// Number of ended lives of each source whose core requests have been attached.
    attached: Vec<usize>,
}

impl Host {
    /// Records the lives of packets from now on.
    pub(super) fn follow(&mut self, following: &Following) {
        let mut sources = 0;
        self.each_lives_slot(|slot| {
            let chosen = match following {
                Following::Ends => Chosen::Ends,
                Following::Whole(of) => Chosen::Whole(of.get(&sources).cloned().unwrap_or_default()),
                Following::Requests(of) => Chosen::Requests(of.clone()),
            };
            *slot = Some(Box::new(Lives::new(chosen)));
            sources += 1;
        });
        if !matches!(following, Following::Ends) {
            let threads = self.cores.len();
            self.meters.observer = Some(Box::new(Observer {
                requests: IdVec::filled(VecDeque::new(), threads),
                doing: IdVec::filled((ThreadState::Sleeps, Time::ZERO), threads),
                slices: Vec::new(),
                queues: Vec::new(),
                samples: Vec::new(),
                period: SAMPLE,
                attached: vec![0; sources],
            }));
        }
    }

    /// Calls `f` with the place for the lives of each source of packets: the NIC on the chip, the NICs on ports, and the
    /// interfaces of CC-NIC whose own threads make the packets.
    fn each_lives_slot(&mut self, mut f: impl FnMut(&mut Option<Box<Lives>>)) {
        f(&mut self.machine.nic.lives);
        if let Some(iio) = &mut self.machine.iio {
            iio.nics_mut().for_each(|nic| f(&mut nic.lives));
        }
        for t in &mut self.tenants {
            let interface = t.roles.get_mut::<CcnicInterface>().filter(|i| !i.is_overlay());
            interface.into_iter().for_each(|i| f(&mut i.lives));
        }
    }

    /// Calls `f` with the lives of each source, where lives are recorded.
    fn each_lives(&mut self, mut f: impl FnMut(&mut Lives)) {
        self.each_lives_slot(|slot| slot.iter_mut().for_each(|l| f(l)));
    }

    /// Names of the sources of packets, in the order of `each_lives`, with whether they are on the chip.
    fn sources_of_lives(&self) -> Vec<(String, bool)> {
        let ports = self.machine.iio.iter().flat_map(|iio| iio.nics());
        let ports = ports.map(|(port, _)| (format!("NIC on port {}", port.index()), false));
        let interface = |t: TenantId| {
            let own = self.tenants[t].roles.get::<CcnicInterface>().filter(|i| !i.is_overlay());
            own.map(|_| ("CC-NIC".to_string(), false))
        };
        let interfaces = self.tenants.ids().filter_map(interface);
        [("NIC on the chip".to_string(), true)].into_iter().chain(ports).chain(interfaces).collect()
    }

    /// Runs like `run_until`, and shows every event to the observer.
    #[cold]
    #[inline(never)]
    pub(super) fn run_observed(&mut self, end: Time, done: &mut dyn FnMut(&Host) -> bool) {
        while let Some(e) = self.machine.pop() {
            self.handle_observed(e);
            if done(self) || self.machine.now >= end {
                return;
            }
        }
    }

    /// Handles an event, and shows it to the observer before and afterwards.
    fn handle_observed(&mut self, e: Event) {
        self.before(&e);
        if let Some(s) = self.machine.handle(e) {
            self.on(s);
        }
        self.after(&e);
    }

    /// Handles an event, and shows it to the observer, if there is one.
    pub(super) fn handle(&mut self, e: Event) {
        if self.meters.observer.is_some() {
            return self.handle_observed(e);
        }
        if let Some(s) = self.machine.handle(e) {
            self.on(s);
        }
    }

    /// Lets the next packet that arrives for `tenant` from the other host carry or answer this request, if any.
    pub(super) fn comes(&mut self, tenant: TenantId, request: Option<u64>) {
        let at = self.tenants[tenant].source.as_ref().map(|s| s.at);
        let lives = at.and_then(|at| self.machine.nic_at(at)).and_then(|nic| nic.lives.as_mut());
        lives.into_iter().for_each(|l| l.comes(request));
    }

    /// Lives that have ended, by the number of the request that each carries or answers.
    fn ended_requests(&mut self) -> BTreeMap<u64, Vec<Life>> {
        let mut of: BTreeMap<u64, Vec<Life>> = BTreeMap::new();
        self.each_lives(|l| {
            for life in &l.ended {
                life.request.into_iter().for_each(|r| of.entry(r).or_default().push(life.clone()));
            }
        });
        of
    }

    /// Observes an event that is about to be handled.
    fn before(&mut self, e: &Event) {
        let now = self.machine.now;
        let thread = thread_of(e);
        let mut any = false;
        self.each_lives(|l| {
            l.clock = (now, thread);
            any |= l.any();
        });
        match *e {
            Event::Fill(id) if any => self.see_request(id),
            Event::Delivered(id) => self.machine.nic.passes(id, Milestone::Visible),
            Event::NicTx(NicAt::Chip, id) if self.machine.nic.packet(id).left > 0 => {
                let posted = now.saturating_sub(self.machine.nic.notify);
                if let Some(l) = &mut self.machine.nic.lives {
                    let by = l.of(id.index()).and_then(|life| life.thread());
                    l.mark_at(id.index(), Milestone::Posted, posted, by);
                    l.mark(id.index(), Milestone::Rang);
                }
            }
            Event::Ring { port, queue, task: RingTask::Tail(RingSide::Transmit), n } => {
                let lives = self.machine.nic_at(NicAt::Port(port)).and_then(|nic| nic.lives.as_mut());
                lives.into_iter().for_each(|l| l.rang(queue, n.into()));
            }
            _ => {}
        }
        if let (Some(c), Some(o)) = (stepped(e), self.meters.observer.as_mut()) {
            let (state, from) = o.doing[c];
            if any && now > from && o.slices.len() < SLICES {
                o.slices.push(ThreadSlice { thread: c.index(), state, from: from.0, to: now.0 });
            }
        }
    }

    /// Observes an event that has been handled.
    fn after(&mut self, e: &Event) {
        let now = self.machine.now;
        if let Some(c) = stepped(e) {
            let state = match self.cores[c].idle {
                IdleState::Not => ThreadState::Runs,
                IdleState::Asleep => ThreadState::Sleeps,
                IdleState::Polling { .. } | IdleState::PollingInTurn { .. } => ThreadState::Polls,
            };
            self.meters.observer.iter_mut().for_each(|o| o.doing[c] = (state, now));
        }
        self.take_notes();
        self.attach_core_requests();
        self.sample_queues();
    }

    /// Keeps request `id`, which ends now, where it served a packet whose life is recorded.
    fn see_request(&mut self, id: TxnId) {
        let now = self.machine.now;
        let t: Txn = *self.machine.mem.request(id);
        let kind = match (t.agent(), t.op, t.sender) {
            (Agent::Core, TxnOp::Read | TxnOp::Own, _) => RequestKind::Core,
            (_, TxnOp::DmaWrite, _) | (_, _, Sender::IoMerge(_)) => RequestKind::Write,
            (_, TxnOp::DmaRead, _) => RequestKind::Read,
            _ => return,
        };
        let thread = (kind == RequestKind::Core).then(|| t.thread());
        let borders = self.machine.mem.borders(id, now);
        let r = ServingRequest { kind, thread, line: t.line, lines: t.lines, borders };
        let (at, packet) = match (thread, t.sender) {
            (Some(c), _) => {
                // Nothing waits for a prefetch as such.
                if let Some(o) = self.meters.observer.as_mut().filter(|_| !t.ahead) {
                    let own = &mut o.requests[c];
                    if own.len() == REMEMBERED {
                        own.pop_front();
                    }
                    own.push_back(r);
                }
                return;
            }
            (None, Sender::Nic(Some(packet))) => (NicAt::Chip, packet),
            (None, _) => match self.machine.iio.as_ref().and_then(|iio| iio.packet_of(&t)) {
                Some((port, packet)) => (NicAt::Port(port), packet),
                None => return,
            },
        };
        let lives = self.machine.nic_at(at).and_then(|nic| nic.lives.as_mut());
        lives.into_iter().for_each(|l| l.request(packet.index(), r));
    }

    /// Takes the notes of cores that have dispatched the service of a packet.
    fn take_notes(&mut self) {
        for c in self.machine.cpus.ids() {
            if self.machine.cpus[c].noted.is_empty() {
                continue;
            }
            for (op, at) in std::mem::take(&mut self.machine.cpus[c].noted) {
                let Op::Note { port, packet, answered } = op else { continue };
                let what = if answered { Milestone::Answered } else { Milestone::Served };
                let lives = self.machine.nic_at(NicAt::Port(port)).and_then(|nic| nic.lives.as_mut());
                lives.into_iter().for_each(|l| l.mark_at(packet.index(), what, at, Some(c)));
            }
        }
    }

    /// Attaches the requests of cores to the packets that have just posted their reply, or ended.
    fn attach_core_requests(&mut self) {
        let Some(mut o) = self.meters.observer.take() else { return };
        let mut source = 0;
        self.each_lives(|l| {
            for key in l.turned() {
                l.of(key).into_iter().for_each(|life| o.attach(life));
            }
            // A new window forgets the lives that have ended.
            let attached = o.attached[source].min(l.ended.len());
            let ended = l.ended[attached..].iter_mut().filter(|life| life.at(Milestone::Posted).is_none());
            ended.for_each(|life| o.attach(life));
            o.attached[source] = l.ended.len();
            source += 1;
        });
        self.meters.observer = Some(o);
    }

    /// Samples the queues, if a followed packet lives.
    fn sample_queues(&mut self) {
        let now = self.machine.now;
        let Some(o) = &self.meters.observer else { return };
        let due = o.samples.last().is_none_or(|s| now >= s.0 + o.period);
        let mut any = false;
        if due {
            self.each_lives(|l| any |= l.any());
        }
        if !any {
            return;
        }
        let queues = self.queues();
        let Some(o) = &mut self.meters.observer else { return };
        if o.samples.len() == SAMPLES {
            let mut keep = false;
            o.samples.retain(|_| {
                keep = !keep;
                keep
            });
            o.period = o.period * 2;
        }
        o.samples.push((now, queues.iter().map(|q| q.2).collect()));
        o.queues = queues.into_iter().map(|(name, unit, _)| (name, unit)).collect();
    }

    /// Name, unit and present fill of each sampled queue.
    pub(super) fn queues(&self) -> Vec<(String, &'static str, u64)> {
        let m = &self.machine;
        let waiting = |nic: &Nic| u64::from(nic.waiting_packets());
        let mut queues = Vec::new();
        for (at, nic) in self.serving_nics() {
            let name = match at {
                NicAt::Chip => "packets at the NIC".to_string(),
                NicAt::Port(port) => format!("packets at the NIC on port {}", port.index()),
            };
            queues.push((name, "packets", waiting(nic)));
        }
        if m.iio.is_some() {
            let held = |f: fn((&Domain, &Domain)) -> u32| self.iio_buffers().map(|b| u64::from(f(b))).sum();
            queues.push(("IIO write buffers".into(), "lines", held(|b| b.0.used())));
            queues.push(("IIO read buffers".into(), "lines", held(|b| b.1.used())));
        }
        let lfb = m.cpus.iter().map(|c| u64::from(c.lfb.used())).sum();
        queues.push(("line fill buffers".into(), "lines", lfb));
        queues.push(("requests under way".into(), "requests", m.mem.in_flight().into()));
        queues.push(("writes waiting at home agents".into(), "writes", m.mem.writes_at_home_agents().into()));
        queues
    }

    /// Lives of the window that ends now; None where none are recorded.
    pub(super) fn lived(&mut self) -> Option<Box<PacketTrace>> {
        let mut ended: Vec<(usize, Life)> = Vec::new();
        let (mut source, mut recorded) = (0, false);
        self.each_lives(|l| {
            recorded = true;
            ended.extend(l.ended.iter().map(|life| (source, life.clone())));
            source += 1;
        });
        if !recorded {
            return None;
        }
        if self.owners.linked.is_some() {
            return Some(Box::default()); // the lives at both hosts are parts of round trips
        }
        ended.sort_by_key(|(source, life)| (life.arrived(), *source, life.arrival));
        let mut t = PacketTrace {
            latencies: ended.iter().map(|(_, life)| life.latency().0).collect(),
            found: ended.iter().map(|(source, life)| (*source, life.arrival)).collect(),
            ended: ended.len(),
            window: self.meters.window.start.0,
            ..PacketTrace::default()
        };
        let Some(o) = self.meters.observer.as_mut() else { return Some(Box::new(t)) };
        let (slices, samples) = (std::mem::take(&mut o.slices), std::mem::take(&mut o.samples));
        let names = o.queues.clone();
        let sources = self.sources_of_lives();
        t.packets = ended.iter().map(|(source, life)| lived(life, &sources[*source])).collect();
        t.threads = t.serving(slices);
        t.queues = names.into_iter().enumerate().map(|(i, (name, unit))| counter(name, unit, i, &samples)).collect();
        Some(Box::new(t))
    }
}

/// Lives of the round trips that ended in the window: from the time at which the client's core begins to write a request
/// to the time at which it has processed the reply. The client's threads are numbered behind those of the server.
pub(super) fn round_trips(server: &mut Host, client: &mut Host) -> PacketTrace {
    let (mut own, first) = (client.ended_requests(), server.cores.len());
    let window = server.meters.window.start;
    let mut found: Vec<(u64, [Life; 3])> = Vec::new();
    for (number, served) in server.ended_requests() {
        let sides = own.remove(&number).unwrap_or_default();
        if let (Ok([served]), Ok([sent, back])) = (<[Life; 1]>::try_from(served), <[Life; 2]>::try_from(sides)) {
            if back.arrived() + back.latency() >= window {
                found.push((number, [sent, served, back]));
            }
        }
    }
    found.sort_by_key(|(number, [sent, ..])| (sent.arrived(), *number));
    let trip = |[sent, _, back]: &[Life; 3]| back.arrived() + back.latency() - sent.arrived();
    let mut t = PacketTrace {
        latencies: found.iter().map(|(_, lives)| trip(lives).0).collect(),
        found: found.iter().map(|(number, _)| (0, *number)).collect(),
        ended: found.len(),
        window: window.0,
        client: Some(first),
        ..PacketTrace::default()
    };
    let (Some(here), Some(there)) = (server.meters.observer.as_mut(), client.meters.observer.as_mut()) else {
        return t;
    };
    let mut slices = std::mem::take(&mut here.slices);
    slices.extend(there.slices.drain(..).map(|s| ThreadSlice { thread: first + s.thread, ..s }));
    let (samples, names) = (std::mem::take(&mut here.samples), here.queues.clone());
    t.packets = found.iter().map(|(_, lives)| whole(lives, trip(lives), first)).collect();
    t.threads = t.serving(slices);
    t.queues = names.into_iter().enumerate().map(|(i, (name, unit))| counter(name, unit, i, &samples)).collect();
    t
}

/// The round trip whose request was sent, served and answered in these lives, and which took `latency`.
fn whole([sent, served, back]: &[Life; 3], latency: Time, first: usize) -> Lived {
    let of = |life| lived(life, &("client".to_string(), false));
    let (mut trip, mut served, mut back) = (of(sent), of(served), of(back));
    let behind = |p: &mut Lived| {
        let shift = |c: &mut Option<ThreadId>| *c = c.map(|c| ThreadId::new(first + c.index()));
        p.stages.iter_mut().for_each(|s| shift(&mut s.thread));
        p.requests.iter_mut().for_each(|r| shift(&mut r.thread));
    };
    behind(&mut trip);
    behind(&mut back);
    trip.thread = served.thread;
    trip.latency = latency.0;
    for next in [&mut served, &mut back] {
        let at = trip.stages.last().map_or(Time(trip.arrived), |s| s.to);
        trip.stages.push(LifeStage::whole(LifePart::Flight, at, Time(next.arrived)));
        trip.stages.append(&mut next.stages);
        trip.requests.append(&mut next.requests);
    }
    trip
}

impl PacketTrace {
    /// Slices of threads that serve packets of the trace, while the packets live.
    fn serving(&self, slices: Vec<ThreadSlice>) -> Vec<ThreadSlice> {
        let serves = |s: &ThreadSlice| {
            let overlaps = |p: &Lived| s.from < p.arrived + p.latency && p.arrived < s.to;
            let works = |p: &Lived| p.stages.iter().any(|g| g.thread.is_some_and(|c| c.index() == s.thread));
            self.packets.iter().any(|p| works(p) && overlaps(p))
        };
        slices.into_iter().filter(serves).collect()
    }
}

/// Fill of queue `i` of the samples, where it changes.
fn counter(name: String, unit: &'static str, i: usize, samples: &[(Time, Vec<u64>)]) -> QueueCounter {
    let mut values: Vec<(u64, u64)> = Vec::new();
    for (at, fill) in samples {
        if values.last().is_none_or(|v| v.1 != fill[i]) {
            values.push((at.0, fill[i]));
        }
    }
    QueueCounter { name, unit, values }
}

/// The life in the form in which it leaves the engine, with the core requests of the stages that they divide.
fn lived(life: &Life, (nic, on_chip): &(String, bool)) -> Lived {
    let stages = life.stages(*on_chip);
    let divides = |r: &ServingRequest| {
        let within =
            |s: &LifeStage| s.part.is_of_core() && s.thread == r.thread && r.start() < s.to && s.from < r.end();
        r.kind != RequestKind::Core || stages.iter().any(within)
    };
    Lived {
        number: 0,
        nic: nic.clone(),
        queue: life.queue.index(),
        thread: life.thread().map(ThreadId::index),
        bytes: life.bytes,
        arrived: life.arrived().0,
        latency: life.latency().0,
        requests: life.requests.iter().filter(|r| divides(r)).copied().collect(),
        stages,
    }
}

impl Observer {
    /// Attaches to a life the core requests of the threads that worked on the packet.
    fn attach(&self, life: &mut Life) {
        let mut since: BTreeMap<ThreadId, Time> = BTreeMap::new();
        for m in &life.marks {
            if let Some(c) = m.thread {
                since.entry(c).or_insert(m.at);
            }
        }
        for (c, from) in since {
            let first = self.requests[c].partition_point(|r| r.end() <= from);
            life.requests.extend(self.requests[c].range(first..));
        }
    }
}

/// Thread whose hardware or software an event concerns.
fn thread_of(e: &Event) -> Option<ThreadId> {
    match *e {
        Event::Free(c) | Event::Due(c) | Event::Retire(c) | Event::Interrupt(c) | Event::Wake(c) => Some(c),
        Event::Access(DeviceAccess::Doorbell { thread, .. }) => Some(thread),
        _ => None,
    }
}

/// Thread whose software an event steps.
fn stepped(e: &Event) -> Option<ThreadId> {
    match *e {
        Event::Free(c) | Event::Interrupt(c) => Some(c),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of `n` packets, of which the k-th has latency k, the nearest rank of a share is the smallest k with k / n at or above it.
    #[test]
    fn the_packet_at_a_percentile_is_that_of_the_nearest_rank() {
        for (n, q, rank) in
            [(1000, 0.999, 999), (1001, 0.999, 1000), (100, 0.07, 7), (101, 0.07, 8), (3, 1.0, 3), (7, 0.001, 1)]
        {
            let latencies: Vec<u64> = (1..=n).collect();
            assert_eq!(Pick::Quantile(q).numbers(&latencies, 1), Ok(vec![rank - 1]), "{q} of {n}");
        }
    }
}
