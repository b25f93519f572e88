//! Metrics of a run. Each metric is declared once, in [`metric`], and each column of the table `tenants` in
//! [`tenant_column`]; result columns, help, documentation and what Python shows first derive from these declarations.
//!
//! Components report by constants, so that a slip does not compile:
//!
//! ```
//! use hostnet::meter::{metric, Values};
//! let mut v = Values::default();
//! v.set(metric::IIO_WRITE_LAT_NS, 300.0);
//! assert_eq!(v.named("iio_write_lat_ns"), Some(300.0));
//! ```
//!
//! ```compile_fail,E0425
//! use hostnet::meter::{metric, Values};
//! Values::default().set(metric::IIO_WRITE_LATENCY, 300.0);
//! ```

pub mod batches;
mod declaration;
pub mod drops;
pub mod interval;
pub mod life;
pub mod metric;
pub mod percentile;
pub mod slope;
pub mod table;
pub mod tenant_column;

pub use declaration::{Dimension, Group, Lead, Metric, Statistic, Subject};
pub use metric::METRICS;
pub use tenant_column::TENANT_COLUMNS;

use crate::kernel::Int;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// One metric of [`METRICS`]; [`metric`] has a constant for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricId(u16);

impl MetricId {
    /// The metric called `name`, where there is one.
    pub fn named(name: &str) -> Option<MetricId> {
        METRICS.iter().position(|m| m.name == name).map(|i| MetricId(i.to_u16()))
    }

    /// Every metric, in the order of [`METRICS`].
    pub fn all() -> impl Iterator<Item = MetricId> {
        (0..METRICS.len()).map(|i| MetricId(i.to_u16()))
    }

    /// Place of the metric in [`METRICS`].
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The declaration of the metric.
    pub fn declared(self) -> &'static Metric {
        &METRICS[usize::from(self.0)]
    }
}

impl Serialize for MetricId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.declared().name)
    }
}

/// One column of [`TENANT_COLUMNS`]; [`tenant_column`] has a constant for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnId(u16);

impl ColumnId {
    /// Every column, in the order of [`TENANT_COLUMNS`].
    pub fn all() -> impl Iterator<Item = ColumnId> {
        (0..TENANT_COLUMNS.len()).map(|i| ColumnId(i.to_u16()))
    }

    /// Place of the column in the table.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The declaration of the column.
    pub fn declared(self) -> &'static Metric {
        &TENANT_COLUMNS[usize::from(self.0)]
    }
}

impl Serialize for ColumnId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.declared().name)
    }
}

/// Old and new name of each renamed metric; code that reads results by name accepts the old name in this version.
pub const RENAMED: &[(&str, &str)] =
    &[("p2m_write_nowhere_ratio", "p2m_write_uncached_ratio"), ("batch_held", "batch_cached")];

/// Values of all metrics in the order of [`METRICS`]; `None` where a metric has no meaning.
#[derive(Clone, Debug, PartialEq)]
pub struct Values(pub Vec<Option<f64>>);

impl Default for Values {
    fn default() -> Self {
        Values(vec![None; METRICS.len()])
    }
}

impl Values {
    /// Sets a metric, or clears it when `v` is not finite.
    pub fn set(&mut self, id: MetricId, v: f64) {
        self.0[usize::from(id.0)] = v.is_finite().then_some(v);
    }
    /// Sets the metrics that are aliases, from the table `tenants`.
    pub fn set_aliases(&mut self, tenants: &Value) {
        for (value, m) in self.0.iter_mut().zip(METRICS) {
            if let Some((column, row)) = m.alias {
                *value = tenants["rows"][usize::from(row)][usize::from(column.0)].as_f64();
            }
        }
    }
    /// The value of a metric, where it has one.
    pub fn get(&self, id: MetricId) -> Option<f64> {
        self.0[usize::from(id.0)]
    }
    /// The value of the metric called `name`, where it has one.
    ///
    /// # Panics
    /// Panics when no metric is called `name`.
    pub fn named(&self, name: &str) -> Option<f64> {
        self.get(MetricId::named(name).unwrap_or_else(|| panic!("undeclared metric {name}")))
    }
}
