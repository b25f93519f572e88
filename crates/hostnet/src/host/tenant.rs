//! State of a tenant beside its cores: application, traffic, and what its threads share.

use super::traffic_source::{BurstStarts, TrafficSource};
use super::Host;
use crate::app::App;
use crate::kernel::{Int, TenantId, Time};
use crate::stack::role::{still_to_come, Roles};
use crate::stack::{Bus, Role, RoleView, Tally};
use crate::traffic::spikes::Spikes;
use std::borrow::Cow;

/// State of a tenant, or of the kernel, whose cores are of no tenant.
#[derive(Clone, Default)]
pub(super) struct TenantState {
    /// Application; None for the kernel and in directed tests.
    pub(super) app: Option<App>,
    pub(super) tally: Tally,
    /// Operations of programs that were in progress when the window began, as far as they were still to come.
    begun: f64,
    /// Source of the packets that the tenant serves.
    pub(super) source: Option<TrafficSource>,
    /// Long stalls of the application.
    pub(super) spikes: Option<Spikes>,
    /// State that the tenant's threads share, one role for each kind.
    pub(super) roles: Roles,
}

impl TenantState {
    /// Whether the tenant's threads count requests that no NIC knows of.
    pub(super) fn counts_own_requests(&self) -> bool {
        self.roles.iter().any(|r| r.counts_requests(self.source.is_some()))
    }

    /// Number of packets that have ended since the host began.
    pub(super) fn ended(&self) -> u64 {
        self.roles.iter().find_map(Role::ended).unwrap_or(self.tally.completed_ever)
    }

    /// Whether the tenant's packets are segments of TCP, acknowledgements among them, of which a request may take several.
    pub(super) fn counts_segments(&self) -> bool {
        self.roles.iter().any(|r| r.ended().is_some())
    }

    /// Starts the meters of a new window, at whose start `begun` operations of programs in progress are still to come.
    fn restart(&mut self, begun: f64, now: Time) {
        self.tally = self.tally.for_new_window();
        self.begun = begun;
        if let Some(s) = &mut self.source {
            s.generator.restart(now);
            (s.offered, s.dropped, s.bursts) = (0, 0, BurstStarts::default());
        }
    }
}

impl Host {
    /// Calls `f` with each role of `tenant` and the resources that the role may use, until `f` returns true; returns
    /// whether it did.
    #[inline]
    pub(super) fn any_role(&mut self, tenant: TenantId, mut f: impl FnMut(&mut dyn Role, &mut Bus) -> bool) -> bool {
        let state = &mut self.tenants[tenant];
        let mut bus = Bus {
            tenant,
            stopped: self.run.stopped,
            machine: &mut self.machine,
            tally: &mut state.tally,
            generator: state.source.as_mut().map(|s| &mut s.generator),
            threads: &self.cores,
        };
        state.roles.iter_mut().any(|r| f(r, &mut bus))
    }

    /// Calls `f` with each role of each tenant and the resources that the role may use.
    pub(super) fn each_role(&mut self, mut f: impl FnMut(&mut dyn Role, &mut Bus)) {
        for tenant in self.tenants.ids() {
            self.any_role(tenant, |role, bus| {
                f(role, bus);
                false
            });
        }
    }

    /// The roles of all tenants with the state of the host that they see; those of the last tenant come first.
    pub(super) fn role_views(&self) -> impl Iterator<Item = (&dyn Role, RoleView<'_>)> {
        let of = move |tenant: TenantId| {
            let view = move |role| (role, self.role_view(tenant));
            self.tenants[tenant].roles.iter().map(view)
        };
        (0..self.tenants.len()).rev().map(TenantId::new).flat_map(of)
    }

    /// The roles of type `T` of all tenants, each with the state of the host that it sees.
    pub(super) fn roles_of<T: Role>(&self) -> Vec<(&T, RoleView<'_>)> {
        self.tenants.enumerate().filter_map(|(t, state)| Some((state.roles.get()?, self.role_view(t)))).collect()
    }

    /// State of the host as a role of `tenant` sees it.
    pub(super) fn role_view(&self, tenant: TenantId) -> RoleView<'_> {
        RoleView {
            tenant,
            stopped: self.run.stopped,
            since: self.meters.window.start,
            machine: &self.machine,
            tally: &self.tenants[tenant].tally,
            begun: self.tenants[tenant].begun,
            threads: &self.cores,
        }
    }

    /// Starts the meters of every tenant for a new window.
    pub(super) fn restart_tenants(&mut self) {
        let now = self.machine.now;
        let begun: Vec<f64> = self.tenants.ids().map(|t| still_to_come(&self.machine, &self.cores, t)).collect();
        self.tenants.iter_mut().zip(begun).for_each(|(t, begun)| t.restart(begun, now));
        self.each_role(|role, bus| role.restart_meters(bus));
    }

    /// The kernel behind the tenants.
    pub(super) fn kernel(&self) -> &TenantState {
        &self.tenants[TenantId::new(self.tenants.len() - 1)]
    }

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
        // Most hosts have one tenant beside the kernel, and the compiler prepares a sum of any length for many.
        self.run.completed_ever = match self.tenants.as_slice() {
            [only, kernel] => only.tally.completed_ever + kernel.tally.completed_ever,
            all => all.iter().map(|t| t.tally.completed_ever).sum(),
        };
    }

    /// Work of all tenants in the window.
    pub(super) fn total(&self) -> Cow<'_, Tally> {
        if let [only] = self.tenants.as_slice() {
            return Cow::Borrowed(&only.tally);
        }
        let mut total = Tally::default();
        self.tenants.iter().for_each(|t| total.merge(&t.tally));
        Cow::Owned(total)
    }

    /// Requests that all tenants have completed in the window.
    pub(super) fn completed(&self) -> u64 {
        self.tenants.iter().map(|t| t.tally.completed).sum()
    }
}
