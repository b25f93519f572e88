//! State of a tenant beside its cores: application, traffic, and what its threads share.

use super::network::Network;
use super::traffic_source::TrafficSource;
use super::Host;
use crate::app::App;
use crate::kernel::{Int, TenantId};
use crate::stack::ccnic::CcnicInterface;
use crate::stack::pmd::SoftwareRing;
use crate::stack::{tas, Tally};
use crate::traffic::spikes::Spikes;
use hdrhistogram::Histogram;

/// State of a tenant, or of the kernel, whose cores are of no tenant.
#[derive(Clone)]
pub(super) struct TenantState {
    /// Application; None for the kernel and in directed tests.
    pub(super) app: Option<App>,
    pub(super) tally: Tally,
    /// Source of the packets that the tenant serves.
    pub(super) source: Option<TrafficSource>,
    /// Long stalls of the application.
    pub(super) spikes: Option<Spikes>,
    /// TCP connections that the tenant receives from.
    pub(super) network: Option<Network>,
    /// Interface of a tenant on CC-NIC.
    pub(super) ccnic: Option<Box<CcnicInterface>>,
    /// State shared by the threads of TAS.
    pub(super) tas: Option<Box<tas::Service>>,
    /// Values of the registers that pairs of threads share; `trips` records the round trips between them, in ps.
    pub(super) registers: Vec<u64>,
    pub(super) trips: Histogram<u64>,
    /// Software rings of cores that work in pairs, by the queue of the pair's first core.
    pub(super) software_rings: Vec<SoftwareRing>,
}

impl TenantState {
    /// A tenant whose threads share nothing and receive nothing.
    pub(super) fn new(app: Option<App>) -> TenantState {
        TenantState {
            app,
            tally: Tally::default(),
            source: None,
            spikes: None,
            network: None,
            ccnic: None,
            tas: None,
            registers: Vec::new(),
            trips: Histogram::new_with_bounds(1, 1 << 44, 3).expect("valid bounds"),
            software_rings: Vec::new(),
        }
    }

    /// Whether the tenant's threads count requests that no NIC knows of.
    pub(super) fn counts_own_requests(&self) -> bool {
        self.ccnic.is_some() && self.source.is_none()
            || self.tas.is_some()
            || matches!(self.app, Some(App::Pingpong(_)))
    }

    /// Starts the meters of a new window.
    pub(super) fn restart(&mut self) {
        self.tally = self.tally.for_new_window();
        if let Some(s) = &mut self.source {
            s.generator.restart();
            (s.offered, s.dropped) = (0, 0);
        }
        if let Some(i) = &mut self.ccnic {
            i.restart();
        }
        if let Some(t) = &mut self.tas {
            t.segments = 0;
        }
        if !self.trips.is_empty() {
            self.trips.reset();
        }
    }
}

impl Host {
    /// Applications of the tenants.
    pub(super) fn apps(&self) -> impl Iterator<Item = &App> {
        self.tenants.iter().filter_map(|t| t.app.as_ref())
    }

    /// Sources of packets, by their tenants.
    pub(super) fn sources(&self) -> impl Iterator<Item = (TenantId, &TrafficSource)> {
        self.tenants.enumerate().filter_map(|(t, state)| Some((t, state.source.as_ref()?)))
    }

    /// Tenants that have a source of packets.
    pub(super) fn served(&self) -> Vec<TenantId> {
        self.sources().map(|(t, _)| t).collect()
    }

    /// Number of the tenants before `tenant` that have a source of packets.
    pub(super) fn order(&self, tenant: TenantId) -> u64 {
        self.sources().filter(|(t, _)| *t < tenant).count().to_u64()
    }

    /// Counts the requests that all tenants have completed since the host began: only a signal may have added to them.
    #[inline]
    pub(super) fn count_completed(&mut self) {
        // Most hosts have one tenant, and the compiler prepares a sum of any length for many.
        self.completed_ever = match self.tenants.as_slice() {
            [only] => only.tally.completed_ever,
            all => all.iter().map(|t| t.tally.completed_ever).sum(),
        };
    }

    /// Work of all tenants in the window.
    pub(super) fn total(&self) -> Tally {
        let mut total = Tally::default();
        self.tenants.iter().for_each(|t| total.merge(&t.tally));
        total
    }

    /// Requests that all tenants have completed in the window.
    pub(super) fn completed(&self) -> u64 {
        self.tenants.iter().map(|t| t.tally.completed).sum()
    }
}
