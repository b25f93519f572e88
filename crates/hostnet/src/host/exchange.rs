//! Functional mode of threads that exchange packets of their own through coherent memory: the threads of both sides take
//! turns, one program after another.

use super::Host;
use crate::app::AppSpec;
use crate::kernel::{Int, TenantId, ThreadId};
use crate::memory::LINE;
use crate::stack::demand::Demand;
use crate::stack::{Software, Step, Tally, Thread};
use crate::traffic::spikes::Spikes;

/// Programs that a thread executes in a turn at most. A burst takes a few; a thread that waits for buffers or for room in a
/// ring never stops by itself.
const PROGRAMS: u32 = 32;
/// Packets under way at each queue pair whose packets come at a rate, which has no meaning without time, or of which those of a
/// closed loop could take all buffers, so that none is left to return them in: a burst.
const BURST: u32 = 32;

/// A tenant whose threads exchange packets in functional mode, with what the exchange leaves as it was.
pub(super) struct ExchangingTenant {
    pub(super) tenant: TenantId,
    /// Packets after which each descriptor has been used once.
    pub(super) round: u64,
    /// Lines of a packet's payload.
    pub(super) lines: u64,
    tally: Tally,
    spikes: Option<Spikes>,
    demands: Vec<Demand>,
}

/// Packets that a host's threads exchange of their own.
#[derive(Clone, Copy, Default)]
pub(super) struct OwnPackets {
    /// Number of queue pairs that make packets or receive them from a wire.
    pub(super) pairs: u64,
    /// Packets that are always under way.
    pub(super) outstanding: u64,
}

impl Host {
    /// Packets that the host's threads exchange of their own.
    pub(super) fn own_packets(&mut self) -> OwnPackets {
        let add = |a: OwnPackets, b: OwnPackets| OwnPackets {
            pairs: a.pairs + b.pairs,
            outstanding: a.outstanding + b.outstanding,
        };
        self.tenants.ids().map(|t| self.own_packets_of(t)).fold(OwnPackets::default(), add)
    }

    /// Packets that the threads of `tenant` exchange of their own.
    fn own_packets_of(&mut self, tenant: TenantId) -> OwnPackets {
        let mut sum = OwnPackets::default();
        self.each_demand(tenant, |d| {
            let outstanding = if let Demand::Closed { outstanding } = d { *outstanding } else { 0 };
            sum = OwnPackets { pairs: sum.pairs + 1, outstanding: sum.outstanding + u64::from(outstanding) };
        });
        sum
    }

    /// Begins the exchange of every tenant whose threads exchange packets of their own.
    pub(super) fn begin_exchange(&mut self) -> Vec<ExchangingTenant> {
        let round = |t: TenantId| self.tenants[t].roles.iter().find_map(|r| r.exchange_round());
        let exchanging: Vec<_> = self.tenants.ids().filter_map(|t| Some((t, round(t)?))).collect();
        let begin = |(tenant, round)| {
            let bytes = match &self.spec.tenant(tenant).app {
                AppSpec::Loopback(app) => app.bytes.0,
                _ => self.spec.traffic_of(tenant).frame_sizes().0,
            };
            let lines = bytes.div_ceil(LINE).max(1);
            let own = self.own_packets_of(tenant);
            let large = self.spec.tenant(tenant).stack.ccnic().map_or(0, |c| c.counts(own.pairs.to_u32())[1]);
            // A packet takes one buffer for each 4 KiB begun, and as many again on its way back.
            let room = own.outstanding * lines.div_ceil(4096 / LINE) * 2 <= large.into();
            let state = &mut self.tenants[tenant];
            let (tally, spikes) = (state.tally.clone(), state.spikes.take());
            let mut demands = Vec::new();
            self.each_demand(tenant, |d| {
                let at_once = match d {
                    Demand::Closed { outstanding } if room => *outstanding,
                    Demand::Closed { .. } | Demand::Open { .. } => BURST,
                };
                demands.push(std::mem::replace(d, Demand::Closed { outstanding: at_once }));
            });
            ExchangingTenant { tenant, round, lines, tally, spikes, demands }
        };
        exchanging.into_iter().map(begin).collect()
    }

    /// Lets every thread of the tenant execute what it has to do; returns the number of packets that have made the round trip.
    pub(super) fn exchange_functional(&mut self, e: &ExchangingTenant) -> u64 {
        let before = self.tenants[e.tenant].tally.completed_ever;
        let cores: Vec<ThreadId> = self.cores.ids().filter(|c| self.cores[*c].tenant == e.tenant).collect();
        for core in cores {
            for _ in 0..PROGRAMS {
                if self.with_thread(core, |thread, c| thread.step(c)) != Step::Run {
                    break;
                }
                let mut tags = Vec::new();
                self.machine.execute_functional(core, |_, tag| tags.push(tag));
                tags.into_iter().for_each(|tag| self.with_thread(core, |thread, c| thread.retired(tag, c)));
            }
        }
        self.tenants[e.tenant].tally.completed_ever - before
    }

    /// Ends the exchange and leaves the tenant as it was before. Packets that come at a rate have returned, since none may be under
    /// way before the first is due; in a closed loop all go on.
    pub(super) fn end_exchange(&mut self, e: ExchangingTenant) {
        if e.demands.iter().any(|d| matches!(d, Demand::Open { .. })) {
            self.each_demand(e.tenant, |d| *d = Demand::none());
            while self.exchange_functional(&e) > 0 {}
        }
        let mut demands = e.demands.into_iter();
        self.each_demand(e.tenant, |d| *d = demands.next().unwrap_or(Demand::none()));
        let state = &mut self.tenants[e.tenant];
        (state.tally, state.spikes) = (e.tally, e.spikes);
        self.any_role(e.tenant, |role, bus| {
            role.restart_meters(bus);
            false
        });
    }

    /// Calls `f` with the demand of each queue pair of `tenant`.
    fn each_demand(&mut self, tenant: TenantId, mut f: impl FnMut(&mut Demand)) {
        for slot in self.cores.iter_mut().filter(|c| c.tenant == tenant) {
            if let Thread::CcNic(t) = &mut slot.thread {
                t.demands().into_iter().for_each(&mut f);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::tests::scenario;
    use crate::kernel::Time;

    fn loopback(traffic: &str, interface: &str) -> Host {
        let text = format!(
            r#"
            name = "loopback"
            platform = "icx"
            placement = {{ policy = "dma" }}
            ccnic = {{ nic_node = 1{interface} }}
            traffic = {{ {traffic} }}
            run = {{ load = "fixed", requests = 100 }}
            [[tenant]]
            name = "host"
            cores = 2
            stack = "ccnic"
            app = {{ kind = "loopback", bytes = "1500 B" }}
        "#
        );
        let mut host = Host::new(scenario(&text)).expect("a host");
        host.warm_caches(None, &mut || Ok(())).expect("a warm-up");
        host
    }

    /// Packets of 1500 B are 24 lines. Where the host alone manages buffers, one waits in each of the 1024 descriptors of both rings
    /// of a queue pair, and all of them have passed through the caches; recycled buffers are few. No time passes and nothing counts
    /// as served.
    #[test]
    fn buffers_pass_through_the_caches_before_time_begins() {
        let closed = "arrivals = \"closed\", outstanding = 64";
        let held = |interface| {
            let host = loopback(closed, interface);
            assert_eq!((host.machine.now, host.run.completed_ever), (Time::ZERO, 0));
            assert!(host.tenants.iter().all(|t| t.tally.completed_ever == 0));
            host.machine.mem.lines_held()
        };
        let (recycled, waiting) = (held(""), held(", preset = \"unoptimised\""));
        let in_rings = 2 * 2 * 1024 * 24;
        assert!(recycled > 2 * 64 * 24 && recycled < in_rings / 2, "{recycled} lines of recycled buffers");
        assert!(waiting > in_rings && waiting < in_rings * 3 / 2, "{waiting} lines, of which {in_rings} are in rings");
    }

    /// In a closed loop as many packets are under way at time 0 as the loop has; at a rate all have returned, and the first comes
    /// when it is due.
    #[test]
    fn a_closed_loop_goes_on_and_a_rate_begins_anew() {
        let sent = |traffic| {
            let mut host = loopback(traffic, "");
            let own = host.own_packets();
            let mut due = 0;
            for t in host.tenants.ids() {
                host.each_demand(t, |d| due += d.due(Time::ZERO, 0));
            }
            (own.pairs, own.outstanding, due)
        };
        assert_eq!(sent("arrivals = \"closed\", outstanding = 64"), (2, 128, 128));
        assert_eq!(sent("arrivals = \"fixed\", rate = \"1 Mpps\""), (2, 0, 0));
    }
}
