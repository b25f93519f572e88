//! Intervals of the rate that a search has found.

use crate::host::measure::Outcome;
use crate::kernel::Int;
use crate::meter::interval::Interval;
use crate::meter::{metric, tenant_column, ColumnId, MetricId};
use serde_json::{json, Value};

/// Metrics that a search finds, which grow with the offered rate.
const FOUND_METRICS: [MetricId; 5] =
    [metric::OFFERED_MRPS, metric::THROUGHPUT_MRPS, metric::NET_GBPS, metric::OFFERED_GBPS, metric::ACHIEVED_GBPS];
/// Columns of the table `tenants` that a search finds, for tenants whose rate it varies.
const FOUND_COLUMNS: [ColumnId; 3] =
    [tenant_column::OFFERED_MOPS, tenant_column::THROUGHPUT_MOPS, tenant_column::NET_GBPS];

/// Gives what a search finds, also for the tenants `searched`, the intervals of [`Interval::of_search`], where the lowest rate that
/// failed is `failed` times as high. Without `failed` it has none: like a largest value, the highest rate without drops depends
/// on the rarest event of its window.
pub(super) fn set_intervals(outcome: &mut Outcome, searched: &[usize], failed: Option<f64>) {
    let Outcome { values, intervals, tables, .. } = outcome;
    for id in FOUND_METRICS {
        let Some(value) = values.get(id) else { continue };
        let own = &mut intervals.0[id.index()];
        let known = own.unwrap_or(Interval { low: value, high: value });
        *own = failed.map(|failed| known.of_search(value, failed));
    }
    let Some(tenants) = tables.get("tenants").map(|t| t["rows"].clone()) else { return };
    let Some(Value::Array(cells)) = tables.get_mut("tenant_intervals").map(|t| &mut t["rows"]) else { return };
    cells.retain_mut(|cell| {
        let Some(c) = FoundCell::read(cell, &tenants).filter(|c| searched.contains(&c.row)) else { return true };
        let found = failed.map(|failed| c.own.of_search(c.value, failed));
        if let Some(i) = found {
            *cell = json!([c.row, c.column.declared().name, i.low, i.high]);
        }
        found.is_some()
    });
}

/// Cell of the table `tenants` that a search finds, and its interval.
struct FoundCell {
    row: usize,
    column: ColumnId,
    own: Interval,
    value: f64,
}

impl FoundCell {
    /// Reads a row of the table `tenant_intervals`; None where a search does not find its column.
    fn read(cell: &Value, tenants: &Value) -> Option<FoundCell> {
        let [row, name, low, high] = cell.as_array()?.as_slice() else { return None };
        let row = row.as_u64()?.to_usize();
        let column = FOUND_COLUMNS.into_iter().find(|c| name == c.declared().name)?;
        let own = Interval { low: low.as_f64()?, high: high.as_f64()? };
        Some(FoundCell { row, column, own, value: tenants[row][column.index()].as_f64()? })
    }
}
