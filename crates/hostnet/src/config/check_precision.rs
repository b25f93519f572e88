//! Check of the keys of `run` that end a measurement.

use super::check::{need, Check};
use super::scenario::{Load, RunSpec};
use super::unknown::unknown_metric;
use crate::meter::{Group, MetricId, Statistic, METRICS};

/// Checks `run.precision` and the metrics that it is about.
pub(super) fn precision(run: &RunSpec) -> Check {
    let Some(p) = run.precision else {
        return need(run.precision_of.is_empty(), || {
            "run.precision_of has no effect without run.precision; give both, or leave it out".into()
        });
    };
    need(p > 0.0 && p < 0.5, || format!("run.precision = {p} is not above 0 and below 0.5; 0.02 stands for 2 %"))?;
    need(run.load != Load::None, || {
        format!("run.precision = {p} has no effect with run.load = \"none\", which measures nothing; leave it out")
    })?;
    for name in &run.precision_of {
        need(!name.starts_with("tenant."), || {
            format!("run.precision_of: \"{name}\" is a number of one tenant, and a window ends by metrics of the whole host")
        })?;
        let Some(id) = MetricId::named(name) else {
            let known: Vec<&str> = METRICS.iter().map(|m| m.name).collect();
            return Err(format!("run.precision_of: {}", unknown_metric(name, &known)));
        };
        let declared = id.declared();
        let constant = matches!(declared.group, Group::Constants | Group::Simulation) || declared.unit.is_empty();
        need(!constant, || {
            format!("run.precision_of: \"{name}\" is a constant or a number of the simulation itself, which has no interval")
        })?;
        need(declared.statistic != Statistic::Single, || {
            format!("run.precision_of: \"{name}\" is a largest, smallest or last value, of which no interval is known")
        })?;
    }
    Ok(())
}
