//! Table of the tenants: what each of them did in a measurement window, and which share of the machine it took.

use super::{CoreSlot, Host};
use crate::kernel::{Clock, Int, TenantId, ThreadId};
use crate::memory::LINE;
use crate::meter::batches::Cell;
use crate::meter::percentile::Distribution;
use crate::meter::table::table;
use crate::meter::{tenant_column, TENANT_COLUMNS};
use crate::stack::tcp::Network;
use crate::stack::{Role, Software};
use serde_json::{json, Value};

impl Host {
    /// Share of the window in which the cores of `tenant` neither slept nor polled in vain; None where no thread of the
    /// tenant records it.
    fn busy_share(&self, tenant: TenantId) -> Option<f64> {
        let now = self.machine.now;
        let since = self.meters.window.start;
        let span = (now - since).0.max(1).to_f64();
        let own = self.spec.tenant(tenant).cores;
        let cores = self.cores.iter().filter(|c| c.tenant == tenant && u32::from(c.local) < own);
        let shares: Option<Vec<f64>> =
            cores.map(|c| Some(1.0 - c.thread.idle(since, now)?.0.to_f64() / span)).collect();
        let shares = shares.filter(|s| !s.is_empty())?;
        Some(shares.iter().sum::<f64>() / shares.len().to_f64())
    }

    /// Table with one row for each tenant.
    pub(super) fn tenant_table(&self, distributions: &[Distribution]) -> Value {
        let window = self.machine.now - self.meters.window.start;
        let us = window.0.max(1).to_f64() / 1e6;
        let clock = Clock::from_hz(self.spec.platform.core.clock.0);
        let m = &self.machine.mem.stats;
        let moved: u64 = m.dram.iter().sum();
        let row = |t: TenantId| {
            let (spec, state) = (self.spec.tenant(t), &self.tenants[t]);
            let y = &state.tally;
            let served = state.source.as_ref();
            let offered = served.map(|s| s.offered).or(self.due(t).map(|d| d.due));
            let requests = match state.counts_segments() {
                true => offered.map(|_| y.completed + served.map_or(0, |s| s.dropped)),
                false => offered,
            };
            let lost = served.map(|s| s.dropped + self.socket_losses(t));
            let network = state.roles.get::<Network>().map(|n| n.delivered_in_window(&self.cores));
            let bytes = served.map(|_| y.wire_bytes).or(network);
            let unserved = |n: u64| n.saturating_add_signed(-self.grown_beside_bursts(t)).saturating_sub(y.completed);
            let rate = |n: Option<u64>| n.map(|n| n.to_f64() / offered.unwrap_or(0).max(1).to_f64());
            // Latencies of the tenant's requests in picoseconds where a role measures them, and in nanoseconds otherwise.
            let of_role = state.roles.iter().find_map(Role::latency);
            let percentile = |column| Cell::Tenant(t.index(), column);
            let latency = |column, q| match of_role {
                Some(h) => Some(h.value_at_quantile(q).to_f64() / 1e6),
                None => distributions.iter().find_map(|d| d.percentile(d.share_of(percentile(column))?)),
            };
            let measured = distributions.iter().find(|d| d.share_of(percentile(tenant_column::LAT_P50_US)).is_some());
            let mean = match of_role {
                Some(h) => Some(h.mean() / 1e6),
                None => measured.filter(|_| !y.latency_ns.is_empty()).map(|d| d.mean() / 1e3),
            };
            let own = |c: &CoreSlot| c.tenant == t && u32::from(c.local) < spec.cores;
            let cores: Vec<ThreadId> =
                self.cores.enumerate().filter(|(_, c)| own(c)).map(|(thread, _)| thread).collect();
            let instructions: u64 = cores.iter().map(|c| self.machine.cpus[*c].instructions).sum();
            let cycles = clock.cycles(window) * cores.len().to_f64();
            let counts = m.tenants[t];
            let gbs = |lines: u64| lines.to_f64() * LINE.to_f64() / us / 1e3;
            let [read, written] = counts.dram;
            vec![
                json!(spec.name),
                json!(spec.app.kind()),
                json!(spec.stack.name()),
                json!(cores.len()),
                json!(self.role_view(t).operations() / us),
                json!(bytes.map(|n| n.to_f64() * 8.0 / us / 1e3)),
                json!(requests.map(|n| n.to_f64() / us)),
                json!(rate(lost)),
                json!(rate(offered.filter(|_| !state.counts_segments()).map(unserved))),
                json!(mean),
                json!(latency(tenant_column::LAT_P50_US, 0.5)),
                json!(latency(tenant_column::LAT_P90_US, 0.9)),
                json!(latency(tenant_column::LAT_P99_US, 0.99)),
                json!(latency(tenant_column::LAT_P999_US, 0.999)),
                json!((y.services > 0).then(|| y.service_us())),
                json!(self.busy_share(t)),
                json!((instructions > 0).then(|| cycles / instructions.to_f64())),
                json!(instructions),
                json!(counts.llc_look_ups()),
                json!((counts.llc_look_ups() > 0).then(|| counts.llc_misses.to_f64() / counts.llc_look_ups().to_f64())),
                json!(gbs(read)),
                json!(gbs(written)),
                json!((moved > 0).then(|| (read + written).to_f64() / moved.to_f64())),
                json!(spec.node),
            ]
        };
        let columns: Vec<_> = TENANT_COLUMNS.iter().map(|c| (c.name, c.unit)).collect();
        table(&columns, self.spec.tenant_ids().map(row).collect())
    }
}
