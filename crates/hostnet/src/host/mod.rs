//! A host: wired from its scenario, driven by the calendar.

mod background;
mod build;
mod directed;
mod load;
mod measure;
mod predict;
mod storage;
mod tcp;
mod trace;
mod uncore;
mod warm;

pub use load::{run, Progress};
pub use measure::Outcome;

use crate::app::{App, Content};
use crate::config::Scenario;
use crate::core::{Cpu, Retired};
use crate::device::iio::Iio;
use crate::device::nic::{Nic, Packet};
use crate::flow::Domain;
use crate::kernel::{Event, Events, Stream, Time};
use crate::memory::{self, Memory, Sweep};
use crate::placement::iat::Iat;
use crate::stack::qp::{Effect, Outcome as Served};
use crate::traffic::arrival::Arrivals;
use crate::traffic::pcap::Capture;
use crate::traffic::spikes::Spikes;
use measure::Window;
use std::sync::Arc;

#[derive(Clone)]
struct CoreState {
    tenant: u8,
    local: u16,
    idle: bool,
    /// Serving a packet (or a batch of free-running operations) since then.
    since: Option<Time>,
    rng: Stream,
}

#[derive(Clone)]
struct Source {
    arrivals: Option<Arrivals>,
    /// Time that the arrival process calls zero.
    base: Time,
    rng: Stream,
    /// Cores that packets go to.
    cores: Vec<u16>,
    tenant: usize,
    /// Waiting packets that the generator maintains per core; 0 for open loop.
    depth: u32,
    capture: Option<Arc<Capture>>,
    next: u64,
}

/// The simulated host, with everything that is under way in it.
#[derive(Clone)]
pub struct Host {
    spec: Arc<Scenario>,
    pub cal: Events,
    pub mem: Memory,
    cpus: Vec<Cpu>,
    nic: Nic,
    iio: Option<Iio>,
    tcp: Option<tcp::Tcp>,
    storage: Option<storage::Storage>,
    background: Option<background::Background>,
    apps: Vec<App>,
    cores: Vec<CoreState>,
    source: Option<Source>,
    spikes: Option<Spikes>,
    iat: Iat,
    ways: u32,
    now: Time,
    /// Nothing new begins: what is under way comes to its end.
    stopped: bool,
    window: Window,
    trace: trace::Trace,
}

impl Host {
    /// Posts the first events. Free-running cores start; traffic begins.
    fn ignite(&mut self) {
        for c in 0..self.cores.len() {
            let app = self.apps.get(self.cores[c].tenant as usize);
            if app.is_some_and(App::is_free_running) {
                self.cores[c].idle = false;
                self.cal.push(self.now, Event::Core(c as u16));
            }
        }
        if let Some(iio) = &mut self.iio {
            iio.start(&mut self.cal, self.now);
        }
        self.next_background();
        self.start_tcp();
        if self.spec.placement.iat.is_some() {
            self.cal.push(self.now, Event::Epoch);
        }
    }

    /// Replaces the arrival process from now on.
    fn offer(&mut self, arrivals: Option<Arrivals>, depth: u32) {
        let now = self.now;
        let Some(s) = &mut self.source else { return };
        let was_open = s.arrivals.is_some();
        s.arrivals = arrivals;
        s.base = now;
        s.depth = depth;
        if depth > 0 {
            for i in 0..s.cores.len() {
                let core = self.source.as_ref().map_or(0, |s| s.cores[i]);
                self.top_up(core);
            }
        } else if !was_open {
            self.next_arrival();
        }
    }

    fn next_arrival(&mut self) {
        if let Some(s) = &mut self.source {
            if let Some(a) = &mut s.arrivals {
                self.cal.push(s.base + a.next(), Event::Arrival(0));
            }
        }
    }

    fn top_up(&mut self, core: u16) {
        let depth = self.source.as_ref().map_or(0, |s| s.depth);
        while self.nic.unconsumed(core as usize) < depth {
            if !self.inject(Some(core)) {
                break;
            }
        }
    }

    /// Draws the next packet, for `core` or for one that the source picks.
    fn draw(&mut self, core: Option<u16>) -> Option<(u16, Content)> {
        let s = self.source.as_mut()?;
        let n = s.next;
        s.next += 1;
        Some(match (&s.capture, &mut self.apps[s.tenant]) {
            (Some(capture), app) => {
                let (pass, i) = (n / capture.packets.len() as u64, n as usize % capture.packets.len());
                let packet = &capture.packets[i];
                let local = core.and_then(|c| s.cores.iter().position(|x| *x == c));
                let local = local.unwrap_or(packet.flow as usize % s.cores.len());
                (s.cores[local], app.replay(local, packet, i, pass, &mut s.rng))
            }
            (_, app) => {
                let i = match core {
                    Some(c) => s.cores.iter().position(|x| *x == c).unwrap_or(0),
                    None => s.rng.below(s.cores.len() as u64) as usize,
                };
                (s.cores[i], app.content(i, &mut s.rng))
            }
        })
    }

    /// A packet arrives now. False when it is dropped.
    fn inject(&mut self, core: Option<u16>) -> bool {
        let Some((core, content)) = self.draw(core) else { return false };
        let packet = Packet {
            queue: core,
            lines: content.lines,
            wire_bytes: content.wire_bytes,
            kind: content.kind,
            key: content.key,
            value_lines: content.value_lines,
            uses: 2,
            ..Packet::default()
        };
        self.nic.arrive(&mut self.cal, packet, self.now).is_ok()
    }

    /// Runs until `done` says so, which is asked after each event.
    fn run_until(&mut self, mut done: impl FnMut(&Host) -> bool) {
        while let Some((t, e)) = self.cal.pop() {
            self.now = t;
            self.handle(e);
            if done(self) {
                return;
            }
        }
    }

    #[inline]
    fn handle(&mut self, e: Event) {
        let now = self.now;
        match e {
            Event::Cha(id) => self.mem.on_cha(&mut self.cal, id, now),
            Event::Dram(ch) => self.mem.on_dram(&mut self.cal, ch as usize, now),
            Event::Fill(id) => {
                use memory::Op;
                if !matches!(self.mem.op(id), Op::NicRead | Op::Background) {
                    self.mem.ended(id, now);
                }
                let t = self.mem.finish(id);
                match (t.op, &mut self.iio) {
                    (Op::Background, _) => {}
                    (Op::NicRead, _) => self.nic.on_fill(&mut self.cal, t.who, now),
                    (Op::IoRead | Op::IoWrite, Some(iio)) => {
                        iio.on_line(&mut self.mem, &mut self.cal, &t, now);
                        if self.storage.is_some() {
                            self.storage_moved(&t);
                        }
                        if self.tcp.is_some() {
                            self.frames_landed();
                        }
                    }
                    _ => {
                        let c = t.who as usize;
                        let end = self.cpus[c].on_fill(&mut self.mem, &mut self.cal, t, now);
                        self.ends(c, end);
                    }
                }
            }
            Event::Tlp(port) => {
                if let Some(iio) = &mut self.iio {
                    iio.on_tlp(&mut self.mem, &mut self.cal, port.into(), now);
                }
            }
            Event::Completed(job) => {
                if let Some(iio) = &mut self.iio {
                    iio.on_completed(&mut self.cal, job, now);
                }
            }
            Event::Core(c) => self.next_work(c as usize),
            Event::Retire(c) => self.retire(c as usize),
            Event::Arrival(_) => {
                // A source that turned to another process leaves its last event behind.
                if self.source.as_ref().is_some_and(|s| s.arrivals.is_some()) {
                    self.inject(None);
                    self.next_arrival();
                }
            }
            Event::NicRx => self.nic.on_rx(&mut self.mem, &mut self.cal, now),
            Event::Delivered(id) => {
                let core = self.nic.on_delivered(id);
                self.wake(core);
            }
            Event::Freed(id) => {
                let p = *self.nic.packet(id);
                self.mem.consumed(p.line, p.lines.into());
                self.nic.free_rx(id);
            }
            Event::NicTx(id) => {
                if self.nic.on_tx(&mut self.mem, &mut self.cal, id, now) {
                    self.sent(id);
                }
            }
            Event::Sweep { high, low, count, op } => {
                let line = u64::from(high) << 32 | u64::from(low);
                for l in line..line + u64::from(count) {
                    self.mem.on_sweep(&mut self.cal, l, Sweep::from_u8(op), now);
                }
            }
            Event::Emit(_) | Event::Segment | Event::Ack | Event::Probe(_) | Event::Interrupt(_) => self.on_network(e),
            Event::Epoch => self.epoch(),
            Event::Sample => self.on_sample(),
            Event::Background => self.on_background(),
        }
    }

    fn ends(&mut self, core: usize, end: Option<Time>) {
        if let Some(t) = end {
            self.cal.push(t.max(self.now), Event::Core(core as u16));
        }
    }

    fn wake(&mut self, core: usize) {
        if self.cores[core].idle {
            self.cores[core].idle = false;
            self.cal.push(self.now, Event::Core(core as u16));
        }
    }

    /// The core has run out of ops: account for what it did, and find more.
    fn next_work(&mut self, core: usize) {
        let now = self.now;
        if let Some(since) = self.cores[core].since.take() {
            self.window.served(now - since);
        }
        let tenant = self.cores[core].tenant as usize;
        if self.tcp.as_ref().is_some_and(|t| t.tenant == tenant) {
            return self.tcp_work(core);
        }
        if self.keeps_books(core) {
            return self.storage_work(core);
        }
        let cpu = &mut self.cpus[core];
        cpu.program.ops.clear();
        let state = &mut self.cores[core];
        let app = &mut self.apps[tenant];
        if self.stopped {
            state.idle = true;
            return;
        }
        if let Some(ops) = app.free_run(state.local as usize, &mut state.rng, &mut cpu.program) {
            self.window.operations[tenant] += u64::from(ops);
            let end = cpu.start(&mut self.mem, &mut self.cal, now);
            return self.ends(core, end);
        }
        while let Some((line, lines, _)) = self.nic.hint(core) {
            crate::placement::sweeper::relinquish(&mut cpu.program, line, lines.into());
        }
        let Some(id) = self.nic.take(core) else {
            state.idle = true;
            if !cpu.program.ops.is_empty() {
                state.idle = false;
                let end = cpu.start(&mut self.mem, &mut self.cal, now);
                self.ends(core, end);
            }
            return;
        };
        let p = *self.nic.packet(id);
        let content =
            Content { kind: p.kind, key: p.key, lines: p.lines, value_lines: p.value_lines, wire_bytes: p.wire_bytes };
        let qp = &self.spec.platform.queue_pair;
        qp.begin(&mut cpu.program);
        let tx = self.nic.next_tx(core);
        let (served, tx_lines) = app.serve(state.local as usize, &content, p.line, tx, &mut cpu.program);
        if let Some(key) = self.nic.next_key(core) {
            app.announce(state.local as usize, key);
        }
        if let Some(s) = &mut self.spikes {
            let stall = s.draw();
            if stall > Time::ZERO {
                cpu.program.push(crate::core::Op::Stall(stall.0));
            }
        }
        match served {
            Served::Reply => self.nic.reserve_tx(core),
            Served::Forward | Served::Consumed => {}
        }
        let packet = self.nic.packet(id);
        packet.zero_copy = served == Served::Forward;
        packet.tx_line = if packet.zero_copy { p.line } else { tx };
        packet.tx_lines = tx_lines;
        let sweep = self.spec.placement.sweep_rx;
        qp.end(&mut cpu.program, id, (p.line, p.lines.into()), served, sweep);
        state.since = Some(now);
        let end = cpu.start(&mut self.mem, &mut self.cal, now);
        self.ends(core, end);
        self.top_up(core as u16);
    }

    fn retire(&mut self, core: usize) {
        let now = self.now;
        let home = now + self.mem.lat.l1 + self.mem.lat.l2 + self.mem.lat.noc;
        while let Some(r) = self.cpus[core].retired(&mut self.cal, now) {
            match r {
                Retired::Maintain { line, lines, op } => {
                    if Sweep::from_u8(op) == Sweep::Sweep {
                        self.mem.stats.clsweeps += u64::from(lines);
                        // A sweep that finds the next instance in place of this one is a race.
                        self.mem.consumed(line, lines.into());
                    }
                    self.cal.push(home, Event::sweep(line, lines, op));
                }
                Retired::Tag(tag) => match Effect::of(tag) {
                    (Effect::Post, id) => self.nic.post(&mut self.cal, id, now),
                    // Behind the sweeps, which travel as far.
                    (Effect::FreeRx, id) => self.cal.push(home, Event::Freed(id)),
                    (Effect::Done, id) => {
                        self.completed(id, now);
                        self.nic.end_use(id);
                    }
                },
            }
        }
    }

    fn sent(&mut self, id: u32) {
        let p = *self.nic.packet(id);
        let released = self.nic.release_tx(&mut self.cal, id, self.now);
        self.completed(id, self.now);
        self.nic.end_use(id);
        if p.zero_copy {
            self.cal.push(released, Event::Freed(id));
        } else {
            self.wake(p.queue as usize); // it may have waited for a transmit buffer
        }
    }

    fn completed(&mut self, id: u32, now: Time) {
        let p = self.nic.packet(id);
        p.done = true;
        let p = *p;
        let tenant = self.cores[p.queue as usize].tenant as usize;
        self.window.operations[tenant] += 1;
        self.window.completed(now - p.arrived, p.wire_bytes);
    }

    fn epoch(&mut self) {
        let Some(s) = &self.spec.placement.iat else { return };
        let m = &self.mem.stats;
        self.ways = self.iat.decide(s, self.ways, m.nic_llc, m.nic_allocations);
        self.nic.inbound = self.spec.placement.inbound(self.ways);
        self.cal.push(self.now + s.epoch.into(), Event::Epoch);
    }

    /// Runs for `time`.
    pub fn run_for(&mut self, time: Time) {
        let end = self.now + time;
        self.run_until(|h| h.now >= end);
    }

    /// Stops cores without packets and devices, and lets everything under way end.
    pub fn drain(&mut self) {
        self.stopped = true;
        if let Some(iio) = &mut self.iio {
            iio.stopped = true;
        }
        self.stop_tcp();
        self.run_until(|_| false);
    }

    /// Line fill buffers of every core.
    pub fn line_fill_buffers(&self) -> impl Iterator<Item = &Domain> {
        self.cpus.iter().map(|c| &c.lfb)
    }

    /// Each IIO's write and read buffer.
    pub fn iio_buffers(&self) -> impl Iterator<Item = (&Domain, &Domain)> {
        self.iio.iter().flat_map(Iio::buffers)
    }

    /// Checks what must hold at any time.
    ///
    /// # Errors
    /// One sentence about what is not conserved.
    pub fn check(&self) -> Result<(), String> {
        self.mem.check()?;
        if let Some(iio) = &self.iio {
            iio.check()?;
        }
        self.check_tcp()?;
        self.check_storage()?;
        let c = &self.nic.counts;
        if c.offered != c.accepted + c.ring_full + c.proactive {
            return Err(format!("packets are not conserved at the NIC: {c:?}"));
        }
        if c.accepted != self.window.completed_ever + self.nic.unfinished() {
            return Err(format!(
                "packets are not conserved: {} accepted, {} completed, {} in flight",
                c.accepted,
                self.window.completed_ever,
                self.nic.unfinished()
            ));
        }
        if self.mem.stats.stale_reads + self.mem.stats.sweep_races > 0 {
            return Err(format!(
                "the sweep contract was broken: {} reads of swept lines, {} sweeps of unread ones",
                self.mem.stats.stale_reads, self.mem.stats.sweep_races
            ));
        }
        Ok(())
    }
}
