//! Shares of the tenants of a host: what each does in the same time, by which tenants take turns in functional mode, where no time
//! passes.

use super::Host;
use crate::kernel::{IdVec, Int, TenantId, ThreadId};
use crate::stack::Thread;

/// Accesses to the LLC of a free-running core for each request of the busiest tenant, at most. A core that accesses it more often fills
/// the caches at any pace. Assumed.
const MOST_ACCESSES: f64 = 64.0;

/// Requests and accesses of each tenant for each request of the tenant that serves most.
#[derive(Clone, Debug)]
pub(super) struct Shares {
    /// Requests of each tenant.
    requests: IdVec<TenantId, f64>,
    /// Accesses to the LLC of each core that runs by itself, by tenant.
    accesses: IdVec<TenantId, f64>,
}

impl Shares {
    /// Equal numbers of requests of each of `tenants` tenants.
    pub(super) fn equal(tenants: usize) -> Shares {
        Shares { requests: IdVec::filled(1.0, tenants), accesses: IdVec::filled(0.0, tenants) }
    }
}

/// A core that runs by itself, with the accesses that it is due for each request of the busiest tenant.
pub(super) struct DueCore {
    pub(super) core: ThreadId,
    share: f64,
    /// Accesses to the LLC.
    pub(super) due: f64,
}

/// Requests and accesses that tenants and cores are due in functional mode. Those beyond it are due less the next time.
pub(super) struct DueTurns<'a> {
    shares: &'a Shares,
    /// Requests of each tenant.
    pub(super) requests: IdVec<TenantId, f64>,
    pub(super) cores: Vec<DueCore>,
}

impl DueTurns<'_> {
    /// Adds what is due for one more request of the busiest tenant.
    pub(super) fn go_on(&mut self) {
        self.requests.iter_mut().zip(&self.shares.requests).for_each(|(due, share)| *due += share);
        self.cores.iter_mut().for_each(|c| c.due += c.share);
    }
}

impl Host {
    /// Whether requests are served beside other tenants' requests, or beside cores that run by themselves.
    pub(super) fn is_mixture(&self) -> bool {
        let exchanging = self.tenants.iter().filter(|t| t.roles.iter().any(|r| r.exchange_round().is_some()));
        let serving = self.sources().count() + exchanging.count();
        serving > 1 || serving == 1 && self.cores.iter().any(|c| matches!(c.thread, Thread::FreeRunning(_)))
    }

    /// Table of what is due by `shares`, in which nothing is due yet.
    pub(super) fn due_by<'a>(&self, shares: &'a Shares) -> DueTurns<'a> {
        let by_itself = |c: &ThreadId| matches!(self.cores[*c].thread, Thread::FreeRunning(_));
        let of = |core: ThreadId| DueCore { core, share: shares.accesses[self.cores[core].tenant], due: 0.0 };
        let cores = self.cores.ids().take(self.owners.tenant_cores).filter(by_itself).map(of).collect();
        DueTurns { shares, requests: IdVec::filled(0.0, shares.requests.len()), cores }
    }

    /// Shares of the tenants in the present window.
    pub(super) fn shares(&self) -> Shares {
        let completed = |t: TenantId| self.tenants[t].tally.completed.max(1).to_f64();
        let ids = || self.tenants.ids();
        let most = ids().map(completed).fold(1.0, f64::max);
        let accesses = |t: TenantId| {
            let cores = self.spec.tenants.get(t.index()).map_or(1, |s| s.cores.max(1));
            let looked_up = self.machine.mem.stats.tenants.get(t).map_or(0, |n| n.llc_look_ups());
            (looked_up.to_f64() / f64::from(cores) / most).min(MOST_ACCESSES)
        };
        Shares { requests: ids().map(|t| completed(t) / most).collect(), accesses: ids().map(accesses).collect() }
    }
}
