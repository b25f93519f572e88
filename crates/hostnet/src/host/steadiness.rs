//! Judgement of a measured window: caches that were still filling, accesses that drifted, and queues that grew.

use super::Host;
use crate::device::pcie::PcieSpec;
use crate::kernel::{Int, TenantId};
use crate::stack::demand::DuePackets;

/// Data from which the steadiness of a window is judged.
#[derive(Clone, Default)]
pub struct Trend {
    /// Lines that the caches held at the start.
    held: u64,
    /// Packets that were in the host at the start.
    inside: u64,
    /// DRAM accesses per request in each part of the window.
    accesses: Vec<f64>,
}

/// Growth of the lines in the caches beyond which they are still filling; the automatic warm-up ends below it.
const FILLING: f64 = 0.004;
/// Difference between the halves of a window beyond which accesses drift; the automatic warm-up ends below it.
const DRIFT: f64 = 0.015;
/// Student's t of 14 degrees of freedom that chance exceeds once in a thousand windows of 16 parts.
const BY_CHANCE: f64 = 4.140;
/// DRAM accesses per request below which a drift changes nothing that a person would see.
const RARE: f64 = 0.1;
/// Share of the offered packets by which queues may grow, as in searches.
const GROWTH: f64 = 0.01;
/// Standard deviations of the number of packets in a steady host, which is that of a Poisson distribution.
const DEVIATIONS: f64 = 4.0;

/// Means of the two halves of `parts`, where they differ by more than `DRIFT` and by more than chance explains (Welch's
/// test).
fn drift(parts: &[f64]) -> Option<(f64, f64)> {
    let (first, second) = parts.split_at(parts.len() / 2);
    if first.len() < 8 {
        return None;
    }
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len().to_f64();
    let error = |x: &[f64]| {
        let squares: f64 = x.iter().map(|v| (v - mean(x)).powi(2)).sum();
        squares / (x.len() - 1).to_f64() / x.len().to_f64()
    };
    let (a, b) = (mean(first), mean(second));
    let differs = (a - b).abs() > DRIFT * a.max(b) && (a - b).abs() > BY_CHANCE * (error(first) + error(second)).sqrt();
    (differs && a.max(b) > RARE).then_some((a, b))
}

/// Standard errors by which two means may differ where nothing has changed: a normal variable exceeds them once in twenty
/// cases.
const ERRORS: f64 = 1.96;

/// Whether `samples` have one level: the means of their two halves differ by no more than chance explains.
pub(super) fn level(samples: &[f64]) -> bool {
    let (first, second) = samples.split_at(samples.len() / 2);
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len().to_f64();
    let error = |x: &[f64]| {
        x.iter().map(|v| (v - mean(x)).powi(2)).sum::<f64>() / (x.len().max(2) - 1).to_f64() / x.len().to_f64()
    };
    (mean(first) - mean(second)).abs() <= ERRORS * (error(first) + error(second)).sqrt()
}

/// Whether the means of the last `n` values and of the `n` before are `near` each other, for one `n` of `spans`. A series that
/// rises and falls around a level, as rings wrap around, agrees over longer spans only; one that grows differs the more.
pub(super) fn agree<const N: usize>(
    seen: &[[f64; N]],
    spans: &[usize],
    near: impl Fn([f64; N], [f64; N]) -> bool,
) -> bool {
    let mean = |of: &[[f64; N]]| std::array::from_fn(|i| of.iter().map(|v| v[i]).sum::<f64>() / of.len().to_f64());
    spans.iter().any(|n| {
        let Some(first) = seen.len().checked_sub(2 * n) else { return false };
        let (before, after) = seen[first..].split_at(*n);
        near(mean(before), mean(after))
    })
}

impl Host {
    /// Begins the judgement of a window.
    pub(super) fn restart_trend(&mut self) {
        let (held, inside) = (self.machine.mem.lines_held(), self.packets_inside());
        self.meters.window.trend = Trend { held, inside, accesses: Vec::new() };
    }

    /// Adds a part of the window, in which `requests` requests caused `accesses` DRAM accesses.
    pub(super) fn add_to_trend(&mut self, requests: u64, accesses: u64) {
        if requests > 0 {
            self.meters.window.trend.accesses.push(accesses.to_f64() / requests.to_f64());
        }
    }

    /// Packets by which queues grew in the window, in which `offered` packets came; None where they are steady.
    fn queues_grew(&self, offered: u64) -> Option<f64> {
        let inside = self.packets_inside();
        let of_whole_bursts = inside.saturating_add_signed(-self.all_grown_beside_bursts());
        let more = of_whole_bursts.saturating_sub(self.meters.window.trend.inside).to_f64();
        (more > GROWTH * offered.to_f64() && more > DEVIATIONS * inside.to_f64().sqrt()).then_some(more)
    }

    /// Tenant among several whose queues grew in the window, with the packets and those offered to it; None where no tenant's did.
    fn queues_of_a_tenant_grew(&self) -> Option<(TenantId, f64, f64)> {
        let least = DEVIATIONS * self.packets_inside().to_f64().sqrt();
        let grew = |t: TenantId| {
            let state = &self.tenants[t];
            let source = state.source.as_ref().filter(|_| !state.counts_segments())?;
            let (left, offered) = ((self.grown(t) - self.grown_beside_bursts(t)).to_f64(), source.offered.to_f64());
            (left > GROWTH * offered && left > least).then_some((t, left, offered))
        };
        (self.sources().count() > 1).then(|| self.spec.tenant_ids().find_map(grew))?
    }

    /// Whether packets gather in the window, in which `offered` packets came: queues of the host or of a tenant grew, or packets
    /// wait to be sent.
    pub(super) fn gathers(&self, offered: u64) -> bool {
        self.queues_grew(offered).is_some() || self.queues_of_a_tenant_grew().is_some() || self.unsent_grew().is_some()
    }

    /// Tenant whose packets that were due and not sent grew in the window, with these packets; None where none did.
    fn unsent_grew(&self) -> Option<(TenantId, DuePackets)> {
        let grew = |d: &DuePackets| {
            let unsent = d.unsent.to_f64();
            unsent > GROWTH * d.due.to_f64() && unsent > DEVIATIONS * unsent.sqrt()
        };
        self.spec.tenant_ids().find_map(|t| Some((t, self.due(t).filter(grew)?)))
    }

    /// Sentences about what was not steady in the window, in which `offered` packets came, and about values that its NICs have
    /// outgrown.
    pub(super) fn warnings(&self, offered: u64) -> Vec<String> {
        let trend = &self.meters.window.trend;
        let (warm_up, given, window) = match self.counts_requests() {
            true => ("run.warmup_requests", self.spec.run.warmup_requests.is_some(), "run.requests"),
            false => ("run.warmup_time", self.spec.run.warmup_time.is_some(), "run.time"),
        };
        let remedy =
            if given { format!("give a longer {warm_up}, or leave it out") } else { format!("give a longer {window}") };
        let mut said = Vec::new();
        let held = self.machine.mem.lines_held();
        let grown = held.saturating_sub(trend.held).to_f64() / held.max(1).to_f64();
        if grown > FILLING {
            said.push(format!(
                "the caches were still filling in the measured window: {:.1} % of the lines that they hold at its end came within \
                 it; {remedy}",
                100.0 * grown
            ));
        } else if let Some((before, after)) = drift(&trend.accesses) {
            said.push(format!(
                "DRAM accesses per request drifted from {before:.3} to {after:.3} between the halves of the measured window; \
                 {remedy}"
            ));
        }
        if let Some(more) = self.queues_grew(offered) {
            said.push(format!(
                "queues grew by {more} packets in the measured window, {:.1} % of those offered: the host carries less than it is \
                 offered, and latencies depend on the length of the run",
                100.0 * more / offered.max(1).to_f64()
            ));
        }
        if let Some((t, more, of)) = self.queues_of_a_tenant_grew().filter(|_| self.queues_grew(offered).is_none()) {
            said.push(format!(
                "queues of the tenant \"{}\" grew by {more} packets in the measured window, {:.1} % of those offered to it: it is \
                 offered more than it gets, and its latencies depend on the length of the run",
                self.spec.tenant(t).name,
                100.0 * more / of
            ));
        }
        if let Some((t, d)) = self.unsent_grew() {
            said.push(format!(
                "{} packets of the tenant \"{}\" that became due in the measured window still waited at its end, {:.1} % of those \
                 due: its interface carries less than traffic.rate, and latencies begin only when a packet enters it",
                d.unsent,
                self.spec.tenant(t).name,
                100.0 * d.unsent.to_f64() / d.due.max(1).to_f64()
            ));
        }
        let pcie = self.spec.platform.pcie.as_ref().filter(|_| !self.spec.peripherals.is_empty());
        said.extend(pcie.and_then(PcieSpec::framed_in_flits));
        said.extend(self.spec.outgrown());
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two halves of eight parts: a step of 10 % with a spread of 1 % is a drift; the same step with a spread of 20 %, or a
    /// step of 1 %, is none.
    #[test]
    fn a_drift_is_larger_than_chance_and_than_the_tolerance() {
        let parts = |step: f64, spread: f64| -> Vec<f64> {
            let noise = [1.0, -1.0, 0.5, -0.5, 0.8, -0.8, 0.2, -0.2];
            let half = |mean: f64| noise.map(|n| mean * (1.0 + spread * n));
            [half(1.0), half(1.0 + step)].concat()
        };
        let found = drift(&parts(0.1, 0.01)).expect("a drift");
        assert!((found.0 - 1.0).abs() < 1e-9 && (found.1 - 1.1).abs() < 1e-9, "{found:?}");
        assert_eq!(drift(&parts(0.1, 0.2)), None);
        assert_eq!(drift(&parts(0.01, 0.0001)), None);
        assert_eq!(drift(&[1.0, 2.0]), None, "too few parts");
        assert_eq!(drift(&parts(0.1, 0.01).iter().map(|x| x / 100.0).collect::<Vec<_>>()), None, "too few accesses");
    }
}
