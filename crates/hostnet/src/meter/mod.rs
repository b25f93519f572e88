//! Metrics of a run. Each metric is declared once, in [`metric`], and each column of the table `tenants` in
//! [`tenant_column`]; result columns, help, documentation and what Python shows first derive from these declarations.

mod declaration;
pub mod drops;
pub mod metric;
pub mod table;
pub mod tenant_column;

pub use declaration::{Dimension, Group, Lead, Metric, Subject};
pub use metric::METRICS;
pub use tenant_column::TENANT_COLUMNS;

use serde::{Serialize, Serializer};

/// One metric of [`METRICS`]; [`metric`] has a constant for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricId(u16);

impl MetricId {
    /// The metric called `name`, where there is one.
    pub fn named(name: &str) -> Option<MetricId> {
        METRICS.iter().position(|m| m.name == name).map(|i| MetricId(i as u16))
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
    /// Sets the metric `name`, or clears it when `v` is not finite.
    ///
    /// # Panics
    /// Panics when no metric is called `name`.
    pub fn set(&mut self, name: &str, v: f64) {
        self.0[index(name)] = v.is_finite().then_some(v);
    }
    /// The value of the metric `name`, where it has one.
    ///
    /// # Panics
    /// Panics when no metric is called `name`.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0[index(name)]
    }
}

/// Index of the metric `name` in [`METRICS`].
fn index(name: &str) -> usize {
    MetricId::named(name).map_or_else(|| panic!("undeclared metric {name}"), |id| usize::from(id.0))
}
