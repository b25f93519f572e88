//! Snapshots of a run while it goes on: rate, latency, queues and drops of the window so far.

use super::load::{run_of, Beside};
use super::measure::Outcome;
use super::Host;
use crate::config::Scenario;
use crate::kernel::Int;
use crate::meter::drops::Loss;
use crate::stack::ccnic::CcnicInterface;
use serde::Serialize;

/// Callback of a run that is watched: the fraction done, and a function that takes a snapshot. An error aborts the run.
pub type Watch<'a> = &'a mut dyn FnMut(f64, &mut dyn FnMut() -> Snapshot) -> Result<(), String>;

/// Phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Caches and queues become steady.
    WarmUp,
    /// A search lets the host settle at a rate.
    Search,
    /// The window is measured.
    Measurement,
}

/// State of a run at one instant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Snapshot {
    /// Phase of the run.
    pub phase: Phase,
    /// Simulated time since the run began, in us.
    pub now_us: f64,
    /// Simulated time since the window began, in us.
    pub window_us: f64,
    /// Requests that were completed in the window.
    pub completed: u64,
    /// Packets that were offered in the window.
    pub offered: u64,
    /// Packets that were lost in the window.
    pub lost: u64,
    /// Quantiles of the latency in the window, in us; None while no latency is known.
    pub latency_us: Option<[f64; 4]>,
    /// Bytes that DRAM moved in the window, divided by its length, in GB/s.
    pub memory_gbs: f64,
    /// Name, unit and present fill of queues.
    pub queues: Vec<(String, &'static str, u64)>,
    /// Causes of losses in the window, with their numbers.
    pub losses: Vec<(String, u64)>,
}

/// Quantiles of [`Snapshot::latency_us`].
const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 1.0];

/// Runs one point and shows it to `watch` while it goes on.
///
/// # Errors
/// Returns one sentence that names what cannot be built, a violated conservation law, or the error of `watch`.
pub fn watch(spec: &Scenario, watch: Watch) -> Result<Outcome, String> {
    run_of(spec, Beside { watch: Some(watch), ..Beside::default() }, &mut |_| Ok(()))
}

impl Host {
    /// State of the run at the present time.
    pub(super) fn snapshot(&self, phase: Phase) -> Snapshot {
        let (now, since, total) = (self.machine.now, self.meters.window.start, self.total());
        let window_us = (now - since).as_ns() / 1e3;
        let latency = (!total.latency_ns.is_empty())
            .then(|| QUANTILES.map(|q| total.latency_ns.value_at_quantile(q).to_f64() / 1e3));
        let trips = self.tenants.iter().filter_map(|t| t.roles.get::<CcnicInterface>());
        let mut trips = trips.map(|i| &i.trips.histogram).filter(|h| !h.is_empty());
        let latency =
            latency.or_else(|| trips.next().map(|h| QUANTILES.map(|q| h.value_at_quantile(q).to_f64() / 1e6)));
        let moved: u64 = self.machine.mem.stats.dram.iter().sum();
        let losses = |l: &Loss| (l.cause.sentence().to_string(), l.count);
        let nics = self.serving_nics().flat_map(|(_, nic)| nic.drops.losses());
        Snapshot {
            phase,
            now_us: now.as_ns() / 1e3,
            window_us,
            completed: total.completed,
            offered: self.packets_offered() - self.meters.window.packets.0,
            lost: self.lost(),
            latency_us: latency,
            memory_gbs: if window_us > 0.0 { (moved * crate::memory::LINE).to_f64() / window_us / 1e3 } else { 0.0 },
            queues: self.queues(),
            losses: nics.chain(self.socket_drops().flat_map(|d| d.losses())).map(losses).collect(),
        }
    }
}
