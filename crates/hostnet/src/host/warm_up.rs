//! Warm-up of the caches in functional mode: the same packets, programs and placement as in timed mode, one after
//! another and without timing.
//!
//! Caches need hundreds of thousands of requests to fill. Timing does not influence the content of the caches in this
//! phase, except through standing queues, which the following timed warm-up produces.

use super::shares::Shares;
use super::steadiness;
use super::traffic_source::{packet, DrawnPacket, PacketOwner, TrafficSource};
use super::Host;
use crate::app::{App, Content, ServeOutcome};
use crate::config::check;
use crate::core::Op;
use crate::device::nic::Packet;
use crate::device::NicAt;
use crate::kernel::{Int, LineAddr, QueueId, TenantId, ThreadId, Time};
use crate::memory::spec::{CleanVictim, LlcRole};
use crate::memory::stats::TenantCounts;
use crate::memory::{Agent, LINE, LINE_U32};
use crate::stack::role::FunctionalBuffers;
use crate::stack::tcp::Network;
use crate::stack::{Notice, Software, Step, Thread};

/// Minimum number of requests between two checks of whether the caches are steady.
const CHUNK: u64 = 8192;
/// Number of requests after which warm-up ends in any case.
const MOST: u64 = 4_000_000;
/// Time for which a copy of the host runs to measure rates; `BEFORE` is the time for which the copy runs before the
/// measurement.
pub(super) const TRIAL: Time = Time(100_000_000);
pub(super) const BEFORE: Time = Time(20_000_000);
/// Lines that each device moves between two turns of the applications: some pages.
const ROUND: u64 = 1 << 10;
/// Number of rounds without a line for the LLC after which no further line is expected, because the kernel's caches are
/// full by then.
const PATIENCE: u32 = 1000;
/// Turns of the threads that exchange packets of their own, all without a packet, after which the threads wait for ever.
const STUCK: u32 = 100;
/// Number of accesses for each line of the LLC after which the LLC counts as settled: by then fewer than one access in 32
/// has brought a line in. Hosts that miss more often settle earlier, in the scenarios of `make same` after at most eleven.
const ACCESSES: u64 = 64;

impl Host {
    /// Serves packets in functional mode until every ring has wrapped around twice, the caches no longer fill up, DRAM
    /// transfers per request are steady, and, where buffers are swept, no way of the LLC holds lines from the time when the
    /// caches filled. Where `shares` are given, tenants and cores that run by themselves take turns by them, and every way of the LLC
    /// turns over; otherwise tenants take turns packet by packet. `poll` may abort.
    ///
    /// # Errors
    /// Returns the error of `poll`.
    pub(super) fn warm_caches(
        &mut self,
        shares: Option<&Shares>,
        poll: &mut dyn FnMut() -> Result<(), String>,
    ) -> Result<(), String> {
        let tenants = self.served();
        let exchanging = self.begin_exchange();
        if tenants.is_empty() && exchanging.is_empty() {
            if self.spec.run.warmup_time.is_some() {
                self.fill_caches();
            }
            return Ok(());
        }
        let entries =
            |(t, s): (TenantId, &TrafficSource)| s.cores.len().to_u64() * u64::from(check::rx_buffers(&self.spec, t));
        let rings: u64 = self.sources().map(entries).chain(exchanging.iter().map(|e| e.round / 2)).sum();
        let lines = if tenants.is_empty() { exchanging.iter().map(|e| e.lines).max().unwrap_or(1) } else { 1 };
        let chunk = (CHUNK / lines).max(rings / 2);
        let (mut halves, mut turns) = (Vec::new(), Vec::new());
        let mut served = 0;
        let equal = Shares::equal(self.tenants.len());
        let mut due = self.due_by(shares.unwrap_or(&equal));
        self.machine.mem.functional = true;
        while served < MOST {
            self.machine.mem.restart_meters(self.machine.now);
            let (mut n, mut without) = (0, 0);
            while n < chunk && without < STUCK {
                let before = n;
                due.go_on();
                for t in &tenants {
                    while due.requests[*t] >= 1.0 {
                        let served = self.serve_functional(*t);
                        due.requests[*t] -= served.to_f64();
                        n += served;
                    }
                }
                for e in &exchanging {
                    if tenants.is_empty() || due.requests[e.tenant] >= 1.0 {
                        let exchanged = self.exchange_functional(e);
                        due.requests[e.tenant] -= exchanged.to_f64();
                        n += exchanged;
                    }
                }
                due.cores.iter_mut().for_each(|c| self.turn_functional(c.core, &mut c.due));
                without = if n == before && tenants.is_empty() { without + 1 } else { 0 };
            }
            if without == STUCK {
                break;
            }
            served += chunk;
            poll()?;
            let moved: u64 = self.machine.mem.stats.dram.iter().sum();
            halves.push([moved.to_f64() / chunk.to_f64(), self.machine.mem.lines_held().to_f64()]);
            turns.push(self.machine.mem.turns_of_ways());
            let turns_over = shares.is_some() || self.machine.mem.stats.sweep_messages > 0;
            let steady = if tenants.is_empty() { full(&halves) } else { settled(&halves) };
            if served >= 2 * rings && steady && (!turns_over || turned_over(&turns)) {
                break;
            }
        }
        exchanging.into_iter().for_each(|e| self.end_exchange(e));
        self.machine.mem.functional = false;
        self.machine.mem.restart_meters(self.machine.now);
        Ok(())
    }

    /// Warms caches in functional mode: the kernel wrote the structures of all pages when it handed the pages to the
    /// NIC.
    fn warm_networks(&mut self) {
        let networks = self.tenants.iter().filter_map(|t| t.roles.get::<Network>());
        let programs: Vec<_> = networks.flat_map(|n| n.structures(&self.machine)).collect();
        for (core, op) in programs {
            let p = &mut self.machine.cpus[core].program;
            p.ops.clear();
            p.push(op);
            self.execute_functional(core);
        }
    }

    /// Fills the caches of a host without packets. Free-running cores and devices move lines until neither fill the
    /// caches further, and then as many lines again, so that replacement is steady. Where clean victims are dropped,
    /// the LLC fills with lines that applications store to, and the other accesses may be skipped.
    fn fill_caches(&mut self) {
        let caches = &self.spec.platform.caches;
        let stores_only = caches.llc.quirks.clean_victim == CleanVictim::Drop && caches.llc.role == LlcRole::Victim;
        let round = caches.llc.size.0 / LINE / 4;
        let private = (caches.l2.size.0 + caches.l1d.size.0) / LINE;
        self.machine.mem.functional = true;
        self.warm_networks();
        let settles = if stores_only { App::warms_by_stores } else { App::is_free_running };
        if !self.accounted_devices().is_empty() && self.apps().next().is_some() && self.apps().all(settles) {
            self.fill_by_rates(private, stores_only);
            self.machine.mem.functional = false;
            self.machine.mem.restart_meters(self.machine.now);
            return;
        }
        self.fill_llc_with_accounting();
        // An LLC full of the kernel's lines looks steady from the start, so applications run some more rounds to take
        // their share.
        let rounds = if !self.accounted_devices().is_empty() { 20 } else { 4 };
        let (mut held, mut steady): (Option<u64>, u32) = (None, 0);
        for _ in 0..64 {
            let mut moved = 0;
            while moved < round && self.apps().any(App::is_free_running) {
                moved += self.free_run_functional(stores_only).max(1);
            }
            self.machine.devices_write_functional(round / 4);
            self.warm_storage(round / 4);
            let now = self.machine.mem.lines_held();
            let stays = held.is_some_and(|held| held.abs_diff(now) <= now / 500);
            steady = if stays { steady + 1 } else { 0 };
            if steady == rounds {
                break;
            }
            held = Some(now);
        }
        if stores_only && self.apps().any(App::warms_by_stores) {
            let mut moved = 0;
            while moved < 2 * private * self.cores.len().to_u64() {
                moved += self.free_run_functional(false).max(1);
            }
        }
        self.machine.mem.functional = false;
        self.machine.mem.restart_meters(self.machine.now);
    }

    /// Fills the caches of a host with devices whose pages the kernel accounts for: the share of the LLC that the
    /// accounting and the applications hold takes up to tens of milliseconds to settle. A copy of the host runs for a
    /// short time and measures how often each application accesses the LLC per line of the devices, or, where only
    /// stores bring lines into the LLC, how many lines each application brings. Applications and devices then fill the
    /// LLC in that proportion.
    fn fill_by_rates(&mut self, private: u64, stores_only: bool) {
        let cores = self.cores.len().to_u64();
        let mut moved = 0;
        while moved < 2 * private * cores {
            moved += self.free_run_functional(false).max(1);
        }
        self.fill_kernel(private);
        // Rates depend somewhat on the content of the LLC, so they are measured once more when it has nearly settled.
        for _ in 0..2 {
            let rates = self.rates_of_a_trial(stores_only);
            self.fill_at(&rates, stores_only);
        }
    }

    /// Accesses of each application to the LLC, or dirty lines that the application brings into the LLC, per line of
    /// the devices.
    fn rates_of_a_trial(&self, stores_only: bool) -> Vec<f64> {
        let mut trial = self.clone();
        trial.machine.mem.functional = false;
        trial.run_for(BEFORE);
        trial.restart_window();
        trial.run_for(TRIAL);
        let device_lines = trial.machine.mem.stats.dma(Agent::Io).lines().max(1).to_f64();
        let turns = |t: &TenantCounts| if stores_only { t.dirty_fills } else { t.llc_look_ups() };
        let rates = trial.machine.mem.stats.tenants.iter().map(|t| turns(t).to_f64() / device_lines);
        rates.take(self.apps().count()).collect()
    }

    /// Lets devices and applications move lines, with `rates` application lines per device line, until the LLC has
    /// taken in twice its capacity, or each of its lines has been accessed so often that it hardly takes in any.
    fn fill_at(&mut self, rates: &[f64], stores_only: bool) {
        let into_llc = self.machine.placement.fills_llc();
        let llc = self.spec.platform.caches.llc.size.0 / LINE;
        let (mut owed, mut fills, mut without) = (vec![0.0; rates.len()], 0, 0);
        let (mut moved, looked_up, before) = (0, self.look_ups(), self.fills(stores_only));
        while fills < 2 * llc && without < PATIENCE && moved + self.look_ups() - looked_up < ACCESSES * llc {
            let devices = self.warm_storage(ROUND);
            if into_llc {
                self.machine.devices_write_functional(ROUND);
            }
            for c in self.cores.ids() {
                let t = self.cores[c].tenant;
                let Some(rate) = rates.get(t.index()) else { continue };
                let share = f64::from(self.spec.tenant(t).cores);
                owed[t.index()] += rate * (devices * ROUND).to_f64() / share;
                if stores_only {
                    self.spill_functional(c, &mut owed[t.index()]);
                } else {
                    self.turn_functional(c, &mut owed[t.index()]);
                }
            }
            moved += devices * ROUND;
            let now = self.fills(stores_only) - before;
            without = if now == fills { without + 1 } else { 0 };
            fills = now;
        }
    }

    /// Fills the private caches of the kernel's cores with their page accounting.
    fn fill_kernel(&mut self, private: u64) {
        let apps = self.apps().count();
        let cores = self.cores.iter().filter(|c| c.tenant.index() >= apps).count().to_u64();
        let missed = |host: &Host| host.machine.mem.stats.tenants.iter().skip(apps).map(|t| t.llc_misses).sum::<u64>();
        let until = missed(self) + 2 * private * cores;
        let (mut now, mut without) = (0, 0);
        while now < until && without < PATIENCE {
            self.warm_storage(ROUND);
            let then = std::mem::replace(&mut now, missed(self));
            without = if now == then { without + 1 } else { 0 };
        }
    }

    /// Number of lines that entered the LLC: dirty lines, or one line for each miss of a core.
    fn fills(&self, stores_only: bool) -> u64 {
        let of = |t: &TenantCounts| if stores_only { t.dirty_fills } else { t.llc_misses };
        self.machine.mem.stats.tenants.iter().map(of).sum()
    }

    /// Number of accesses of cores to the LLC.
    fn look_ups(&self) -> u64 {
        self.machine.mem.stats.tenants.iter().map(TenantCounts::llc_look_ups).sum()
    }

    /// Runs the application of core `c` in functional mode until it has accessed the LLC `owed` times.
    fn turn_functional(&mut self, c: ThreadId, owed: &mut f64) {
        let tenant = self.cores[c].tenant;
        while *owed >= 1.0 {
            let before = self.machine.mem.stats.tenants[tenant].llc_look_ups();
            self.step_functional(c);
            let turns = self.machine.mem.stats.tenants[tenant].llc_look_ups() - before;
            if turns == 0 {
                *owed = 0.0; // the core's caches hold all lines that the application needs
            }
            *owed -= turns.to_f64();
        }
    }

    /// Puts the stores of a stretch of core `c`'s application into the core's program. Returns false for an application
    /// that does not list its stores.
    fn stores_of(&mut self, c: ThreadId) -> bool {
        let slot = &mut self.cores[c];
        let Some(app) = &mut self.tenants[slot.tenant].app else { return false };
        let program = &mut self.machine.cpus[c].program;
        program.ops.clear();
        app.stores(slot.local.into(), &mut slot.rng, program)
    }

    /// Lets the application of core `c` store, in functional mode, until `owed` lines have gone to the LLC.
    fn spill_functional(&mut self, c: ThreadId, owed: &mut f64) {
        while *owed >= 1.0 {
            self.stores_of(c);
            let before = *owed;
            let m = &mut self.machine;
            let core = m.core_of(c);
            for op in &m.cpus[c].program.ops {
                let (Op::Store { line, lines } | Op::DependentStore { line, lines }) = *op else { continue };
                for l in line.span(lines) {
                    *owed -= f64::from(u8::from(m.mem.spill_functional(&mut m.cal, core, l)));
                }
            }
            if *owed == before {
                *owed = 0.0; // all lines that the application stores to stay in the core's caches
            }
        }
    }

    /// Serves the next packet of `tenant`, or the next burst where packets come in bursts, in functional mode; returns
    /// the number of packets.
    fn serve_functional(&mut self, tenant: TenantId) -> u64 {
        let Some(DrawnPacket { core, content, dscp, .. }) = self.draw(tenant, PacketOwner::Any) else { return 1 };
        let (local, cores) = (self.cores[core].local.into(), self.spec.tenant(tenant).cores.to_usize());
        let n = self.tenants[tenant].source.as_ref().map_or(0, |s| s.next);
        let own = self.tenants[tenant].roles.iter().find_map(|r| r.functional_buffers(local, cores, n));
        if let Some(buffers) = own {
            self.serve_in_buffers_functional(tenant, &content, buffers);
            return 1;
        }
        if let Some(burst) = self.tenants[tenant].source.as_ref().and_then(|s| s.burst) {
            return self.serve_burst_functional(tenant, core, (content, dscp), burst);
        }
        let nic = &mut self.machine.nic;
        let Some((rx, tx)) = nic.cycle(QueueId(core.0)) else { return 1 };
        let packet = packet(QueueId(core.0), NicAt::Chip, &content);
        let packet = nic.register_packet(Packet { line: rx, uses: 1, done: true, dscp, ..packet });
        self.machine.receive_functional(packet);
        let spikes = self.tenants[tenant].spikes.take(); // they take nothing but time
        self.cores[core].thread.notify(Notice::Functional { packet, tx }, Time::ZERO);
        self.step_functional(core);
        self.tenants[tenant].spikes = spikes;
        self.machine.nic.end_use(packet);
        1
    }

    /// Serves a burst of packets that comes to a core through descriptor rings in memory, in functional mode.
    fn serve_burst_functional(&mut self, tenant: TenantId, core: ThreadId, first: (Content, u8), burst: u32) -> u64 {
        let (queue, state) = (self.queue(core), &mut self.tenants[tenant]);
        let Some(&TrafficSource { at: at @ NicAt::Port(port), .. }) = state.source.as_ref() else {
            return burst.into();
        };
        let spikes = state.spikes.take();
        let mut content = Some(first);
        for _ in 0..burst {
            let Some((c, dscp)) = content.take() else { break };
            let packet = Packet { dscp, ..packet(queue, at, &c) };
            let Some(packet) = self.machine.ring_receive_functional(port, queue, packet) else { break };
            self.cores[core].thread.notify(Notice::Functional { packet, tx: LineAddr(0) }, Time::ZERO);
            content = self.draw(tenant, PacketOwner::Core(core)).map(|d| (d.content, d.dscp));
        }
        while self.step_functional(core) {}
        let state = &self.tenants[tenant];
        let first = state.source.as_ref().map_or(0, |s| s.first_queue.index());
        let second = state.roles.iter().find_map(|r| r.transmitting_core(queue.index() - first));
        if let Some(second) = second {
            while self.step_functional(second) {}
        }
        self.tenants[tenant].spikes = spikes;
        burst.into()
    }

    /// Lets the application of `tenant` serve a packet with `content` in functional mode, where an interface in coherent memory
    /// carries packets: the data of the application takes effect, and what the interface itself moves is left to the timed warm-up,
    /// because its buffers are few.
    fn serve_in_buffers_functional(&mut self, tenant: TenantId, content: &Content, buffers: FunctionalBuffers) {
        let FunctionalBuffers { received, answer, server: local, sender } = buffers;
        let serves = |c: &ThreadId| self.cores[*c].tenant == tenant && usize::from(self.cores[*c].local) == local;
        let Some(core) = self.cores.ids().find(serves) else { return };
        let Some(app) = self.tenants[tenant].app.as_mut() else { return };
        let program = &mut self.machine.cpus[core].program;
        program.ops.clear();
        app.begin_burst(local, &mut std::iter::once((*content, received)), program);
        let (outcome, _) = app.serve(local, content, received, answer, program);
        app.end_burst(local, 1, program);
        self.machine.execute_functional(core, |_, _| {});
        if let (ServeOutcome::Gather { object, bytes, .. }, Some(sender)) = (outcome, sender) {
            let program = &mut self.machine.cpus[sender].program;
            program.ops.clear();
            program.push(Op::Load { line: object, lines: bytes.div_ceil(LINE_U32) });
            self.machine.execute_functional(sender, |_, _| {});
            self.machine.cpus[sender].program.ops.clear();
        }
        self.machine.cpus[core].program.ops.clear();
    }

    /// Notifies a core's thread in functional mode and runs the thread until it has no more work.
    pub(super) fn notify_functional(&mut self, core: ThreadId, what: Notice) {
        self.cores[core].thread.notify(what, self.machine.now);
        while self.step_functional(core) {}
    }

    /// Steps a core's thread in functional mode: its program takes effect without timing. Returns false when the thread
    /// runs no program.
    fn step_functional(&mut self, core: ThreadId) -> bool {
        let runs = self.with_thread(core, |thread, c| thread.step(c)) == Step::Run;
        if runs {
            self.execute_functional(core);
        }
        runs
    }

    pub(super) fn execute_functional(&mut self, core: ThreadId) {
        let thread = &mut self.cores[core].thread;
        self.machine.execute_functional(core, |m, tag| thread.retired_functional(tag, m));
    }

    /// Lets every free-running core execute one program, or only the stores of the program, in functional mode; returns
    /// the number of operations.
    fn free_run_functional(&mut self, stores_only: bool) -> u64 {
        let mut ops = 0;
        for c in self.cores.ids().take(self.owners.tenant_cores) {
            if !matches!(self.cores[c].thread, Thread::FreeRunning(_)) {
                continue;
            }
            if stores_only && self.stores_of(c) {
                self.execute_functional(c);
            } else {
                self.step_functional(c);
            }
            ops += self.machine.cpus[c].program.ops.len().to_u64();
        }
        ops
    }
}

/// Growth of the lines in the caches, over as many requests again as have been served, below which the caches are full.
const FULL: f64 = 0.01;

/// Whether the caches are steady: the last two halves of the rings agree, or the last two passes through whole rings, whose
/// halves may differ for good. To agree means DRAM transfers per request within 1 %, and cached lines within 0.2 %. Caches that
/// take in a fraction of a line for each request agree from the start, so they must also be full at that pace.
fn settled(halves: &[[f64; 2]]) -> bool {
    let near = |a: f64, b: f64, tolerance: f64| (a - b).abs() <= tolerance * b.max(1.0);
    let agree = steadiness::agree(halves, &[1, 2], |a, b| near(a[0], b[0], 0.01) && near(a[1], b[1], 0.002));
    agree && full(halves)
}

/// Whether the caches would grow by less than [`FULL`] if the growth between the last two spans went on for as many requests as
/// have been served. One length of span out of several suffices: short ones notice at once that growth has ended, and long ones
/// level out what rises and falls.
fn full(halves: &[[f64; 2]]) -> bool {
    [1, 2, 4, 8, 16].iter().any(|n| {
        let again = halves.len().to_f64() / n.to_f64();
        steadiness::agree(halves, &[*n], |a, b| (b[1] - a[1]) * again <= FULL * b[1].max(1.0))
    })
}

/// Times that each way of the LLC takes in as many lines as it holds: once while the caches fill, and three times
/// afterwards, by which random replacement leaves 5 % of the lines of that time.
const TURNS: f64 = 4.0;
/// Requests for which warm-up waits for a way at most, as a multiple of those served.
const WAIT: f64 = 4.0;

/// Whether each way of the LLC has taken in its lines [`TURNS`] times, or would need more than [`WAIT`] times as many requests
/// again at the pace of the later half. `turns` has an entry for each span of requests, with the turns of each way up to its end.
///
/// Where buffers are swept, lines of the ways that hold buffers are often invalidated. These empty ways take in
/// nearly all lines, and what the other ways took in while the caches filled stays for long: meanwhile transfers per request are
/// steady, and not yet what they will be. Without invalidations every way takes in lines at a like pace, so that nothing old is
/// left by the time when transfers are steady.
fn turned_over(turns: &[Vec<f64>]) -> bool {
    let spans = turns.len().to_f64();
    let (Some(now), Some(before)) = (turns.last(), turns.get(turns.len() / 2)) else { return true };
    let later = (turns.len() - 1 - turns.len() / 2).to_f64();
    now.iter().zip(before).all(|(now, before)| {
        let left = TURNS - now;
        left <= 0.0 || left * later > (now - before) * WAIT * spans
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::tests::scenario;

    /// Halves of a ring that cause 7.2 and 7.8 transfers for each request are steady; those that cause one more in each pass
    /// are not, nor are caches that grow by a hundredth in each. Two equal halves are steady alone.
    #[test]
    fn halves_of_a_ring_may_differ_but_not_its_passes() {
        let passes = |grow: f64, fill: f64| -> Vec<[f64; 2]> {
            let half = |i: u32, transfers: f64| {
                let pass = f64::from(i / 2);
                [transfers + grow * pass, 1e6 * (1.0 + fill * pass)]
            };
            (0..6).map(|i| half(i, if i % 2 == 0 { 7.2 } else { 7.8 })).collect()
        };
        assert!(settled(&passes(0.0, 0.0)));
        assert!(!settled(&passes(1.0, 0.0)) && !settled(&passes(0.0, 0.01)));
        assert!(!settled(&passes(0.0, 0.0)[..3]), "not two passes yet");
        assert!(settled(&[[7.2, 1e6]; 2]) && !settled(&[[7.2, 1e6], [7.2, 1.01e6]]));
    }

    /// Caches that take in 0.1 % of their lines in each half are steady by halves, and would be 4 % fuller after 40 halves more;
    /// they are warm one half after the last line. Caches whose lines rise and fall by 0.05 % are warm, too.
    #[test]
    fn caches_that_fill_slowly_are_not_warm_before_they_are_full() {
        let filled = |halves: u32, until: u32| -> Vec<[f64; 2]> {
            (0..halves).map(|i| [7.2, 1e6 * (1.0 + 0.001 * f64::from(i.min(until)))]).collect()
        };
        assert!(!settled(&filled(40, 100)) && !settled(&filled(40, 39)));
        assert!(settled(&filled(40, 38)));
        let waves: Vec<[f64; 2]> = (0..40).map(|i| [7.2, 1e6 * if i % 2 == 0 { 1.0 } else { 1.0005 }]).collect();
        assert!(settled(&waves));
    }

    /// Of two ways one takes in its lines at each span, and the other at each fourth: the caches have turned over after 16
    /// spans. A way that took in 0.9 of its lines at once, and hardly any since, is not waited for; nor is one that takes in
    /// nothing.
    #[test]
    fn ways_that_take_in_lines_at_a_slow_pace_are_waited_for() {
        let ways = |spans: u32, slow: fn(f64) -> f64| -> Vec<Vec<f64>> {
            (1..=spans).map(|i| vec![f64::from(i), slow(f64::from(i))]).collect()
        };
        for spans in 4..16 {
            assert!(!turned_over(&ways(spans, |i| i / 4.0)), "{spans} spans");
        }
        assert!(turned_over(&ways(16, |i| i / 4.0)));
        assert!(turned_over(&ways(16, |_| 0.0)) && turned_over(&ways(16, |i| 0.9 + 1e-3 * i)));
    }

    /// A store of 60,000 objects of two lines at least, a header and data, fits the caches: before any time passes they hold more
    /// lines than its objects have at least.
    #[test]
    fn an_overlay_s_application_fills_the_caches_in_functional_mode() {
        let text = r#"
            name = "overlay"
            platform = "icx"
            placement = { policy = "ddio", ways = 2 }
            ccnic = { mode = "overlay", nic_node = 0 }
            traffic = { arrivals = "closed", outstanding = 64 }
            run = { load = "fixed", requests = 100 }
            peripheral = [{ kind = "ethernet" }]
            [[tenant]]
            name = "kv"
            node = 1
            cores = 2
            stack = "ccnic"
            app = { kind = "clique_map", objects = 60_000, get_fraction = 0.95, zipf = 0.75, below_100 = 0.61 }
        "#;
        let mut host = Host::new(scenario(text)).expect("a host");
        host.warm_caches(None, &mut || Ok(())).expect("a warm-up");
        assert_eq!(host.machine.now, Time::ZERO);
        let mem = &host.machine.mem;
        let held = mem.lines_held();
        assert!(held > 120_000, "{held} lines");
        // The two servers look objects up, and fill their L2s of 1.25 MiB each.
        let serves = |c: &ThreadId| host.cores[*c].local < 2;
        let l2s: Vec<_> = host.cores.ids().filter(serves).map(|c| host.machine.core_of(c)).collect();
        let lines = (0..mem.map.span()).map(LineAddr);
        let of_servers = lines.filter(|l| l2s.iter().any(|core| mem.holds(*core, *l))).count();
        assert!(l2s.len() == 2 && of_servers > 30_000, "{of_servers} lines");
    }

    /// Sweeping empties the two ways of buffers, which take in nearly all lines, on an LLC of 36 MiB: by the time transfers are
    /// steady, the other ways have taken in their lines once or twice.
    #[test]
    fn each_way_of_a_swept_llc_has_taken_in_its_lines_some_times() {
        let text = r#"
            name = "swept"
            platform = "sim24"
            placement = { policy = "ddio", ways = 2, sweep_rx = true }
            rings = { rx_buffers = 1024, buffer_size = "1 KiB" }
            traffic = { arrivals = "fixed", packet = "1 KiB", rate = "1 Mrps" }
            run = { load = "fixed", requests = 1000 }
            [[tenant]]
            name = "kvs"
            cores = 24
            app = { kind = "mica", item_size = "1 KiB", get_fraction = 0.05, pairs = 2_400_000, buckets = 1_000_000, log_size = "256 MiB", zipf = 0.99 }
        "#;
        let mut host = Host::new(scenario(text)).expect("a host");
        host.warm_caches(None, &mut || Ok(())).expect("a warm-up");
        let turns = host.machine.mem.turns_of_ways();
        assert!(turns.iter().all(|t| *t >= TURNS), "{turns:?}");
    }

    /// An array of 256 KiB beside an SSD whose lines go to DRAM, on an LLC of 840 KiB: hardly any access misses. Without a
    /// bound, the accesses were 2700 of each line.
    #[test]
    fn a_host_that_hardly_misses_is_warm_after_some_accesses_to_each_line() {
        let text = r#"
            name = "hits"
            platform = "sapphirerapids"
            override = { caches = { l2 = { size = "128 KiB" }, llc = { size = "840 KiB" } } }
            placement = { policy = "dma" }
            run = { load = "saturate", warmup_time = "2 us", time = "5 us" }
            tenant = [{ name = "array", cores = 1, app = { kind = "llc_antagonist", buffer = "256 KiB" } }]
            peripheral = [{ kind = "ssd", op = "p2m_write", queue_depth = 4, block = "64 KiB", cores = 1 }]
        "#;
        let spec = scenario(text);
        let llc = spec.platform.caches.llc.size.0 / LINE;
        let mut host = Host::new(spec).expect("a host");
        host.machine.mem.functional = true;
        let rate = 2.5;
        let before = host.look_ups();
        host.fill_at(&[rate], false);
        let own = host.look_ups() - before;
        // A round is a page or more of the device; the application, and the accounting of pages, go on for its rest.
        let round = ROUND.to_f64() * (1.0 + rate) * 1.2;
        assert!(own.to_f64() < (ACCESSES * llc).to_f64() + round, "{own} accesses to {llc} lines");
        assert!(host.fills(false) >= (256 << 10) / LINE, "each line of the array missed once");
    }
}
