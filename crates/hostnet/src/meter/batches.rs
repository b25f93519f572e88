//! Batches of a measured window, from which the intervals of its metrics are estimated.

use super::interval::{comparable, Cumulative, Interval, Intervals, CONFIDENCE};
use super::percentile::{self, Distribution};
use super::table::table;
use super::{ColumnId, Group, Metric, MetricId, Statistic, Subject, Values, METRICS};
use crate::kernel::{Int, Time};
use serde_json::{json, Value};
use std::iter;

/// Metrics of one measured window at the end of each of its batches.
#[derive(Clone, Debug, Default)]
pub struct Batches {
    ends: Vec<BatchEnd>,
}

#[derive(Clone, Debug)]
struct BatchEnd {
    /// Length of the window so far, in picoseconds.
    length: f64,
    values: Values,
    /// Table `tenants`.
    tenants: Value,
    distributions: Vec<Distribution>,
}

/// Number of a result: a metric, or a cell of the table `tenants`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell {
    /// A metric.
    Metric(MetricId),
    /// The row of a tenant, and a column.
    Tenant(usize, ColumnId),
}

/// Numbers of a window up to the end of a batch.
pub struct Reading {
    /// Length of the window.
    pub length: Time,
    /// Every metric.
    pub values: Values,
    /// Table `tenants`.
    pub tenants: Value,
    /// Distributions of which some metrics are percentiles.
    pub distributions: Vec<Distribution>,
}

impl Batches {
    /// Adds the end of a batch.
    pub fn add(&mut self, r: Reading) {
        let Reading { length, values, tenants, distributions } = r;
        self.ends.push(BatchEnd { length: length.0.to_f64(), values, tenants, distributions });
    }

    /// Interval of a percentile: the values at the ends of the interval of the share of the samples that are at most as
    /// large. None where `cell` is no percentile of a distribution. Like a mean, a percentile has no interval where the batches have
    /// very unequal lengths: values that rise during one burst are not samples of many.
    fn of_percentile(&self, cell: Cell, value: f64, confidence: f64) -> Option<Option<Interval>> {
        let last = self.ends.last()?;
        let (i, share) = last.distributions.iter().enumerate().find_map(|(i, d)| {
            let share = d.share_of(cell).filter(|share| d.percentile(*share) == Some(value))?;
            Some((i, share))
        })?;
        if !self.comparable() {
            return Some(None);
        }
        Some(percentile::interval(&self.states_of(i), share, confidence))
    }

    /// Interval, at `confidence`, of the number in `cell`, which `of` finds at the end of a batch.
    fn interval(&self, cell: Cell, confidence: f64, of: impl Fn(&BatchEnd) -> Option<f64>) -> Option<Interval> {
        let declared = match cell {
            Cell::Metric(id) => id.declared(),
            Cell::Tenant(_, column) => column.declared(),
        };
        if let Some(found) =
            self.ends.last().and_then(&of).and_then(|value| self.of_percentile(cell, value, confidence))
        {
            return found;
        }
        let ends: Vec<_> = self.ends.iter().map(|e| Cumulative { length: e.length, value: of(e) }).collect();
        declared.interval(&ends, confidence)
    }

    /// Interval of a metric at `confidence`.
    pub fn of_metric(&self, id: MetricId, confidence: f64) -> Option<Interval> {
        self.interval(Cell::Metric(id), confidence, |e| e.values.get(id))
    }

    /// The share at which the percentile `id` is read, and an interval at `confidence` of the share of the samples that are at most
    /// `value`. None where `id` is no percentile of a distribution, where the samples are too few, or where batches have very
    /// unequal lengths.
    pub fn share_up_to(&self, id: MetricId, value: f64, confidence: f64) -> Option<(f64, Interval)> {
        let last = self.ends.last()?;
        let found = last.distributions.iter().enumerate().find_map(|(i, d)| Some((i, d.share_of(Cell::Metric(id))?)));
        let (i, share) = found.filter(|_| self.comparable())?;
        Some((share, percentile::share_up_to(&self.states_of(i), value, share, confidence)?))
    }

    /// Whether the lengths of the batches differ so little that their distributions are samples of the same kind.
    fn comparable(&self) -> bool {
        let before = iter::once(0.0).chain(self.ends.iter().map(|e| e.length));
        comparable(self.ends.iter().zip(before).map(|(e, start)| e.length - start))
    }

    /// Distribution `i` at the end of each batch.
    fn states_of(&self, i: usize) -> Vec<&Distribution> {
        self.ends.iter().map(|e| &e.distributions[i]).collect()
    }

    /// Results of `of` at the end of each batch; it is given every metric and the length of the window in microseconds.
    pub fn series<T>(&self, of: impl Fn(&Values, f64) -> Option<T>) -> Vec<T> {
        self.ends.iter().filter_map(|e| of(&e.values, e.length / 1e6)).collect()
    }

    /// Interval of each metric.
    pub fn intervals(&self) -> Intervals {
        Intervals(MetricId::all().map(|id| self.of_metric(id, CONFIDENCE)).collect())
    }

    /// Metrics of which `wanted` are, or that lead a table of several runs when `wanted` is empty, whose interval has a larger
    /// half-width than `precision` times the value. The second part of a pair is the relative half-width. A share is
    /// precise as well when its half-width is at most `precision`. None where none of these metrics has a value other than 0, so
    /// that the batches tell nothing about them.
    pub fn imprecise(&self, wanted: &[MetricId], precision: f64) -> Option<Vec<(MetricId, f64)>> {
        let last = self.ends.last()?;
        let marked =
            |s: &&Subject| METRICS.iter().zip(&last.values.0).any(|(m, v)| v.is_some() && m.marks == Some(**s));
        let about = Subject::ALL.iter().find(marked);
        let leads = |m: &Metric| m.sweep.iter().flatten().any(|lead| Some(&lead.subject) == about);
        let chosen = |id: MetricId| if wanted.is_empty() { leads(id.declared()) } else { wanted.contains(&id) };
        let (mut some, mut left) = (false, Vec::new());
        for id in MetricId::all().filter(|id| chosen(*id)) {
            let (m, value) = (id.declared(), last.values.get(id).unwrap_or(0.0));
            let constant = matches!(m.group, Group::Constants | Group::Simulation);
            if constant || value == 0.0 || m.statistic == Statistic::Single {
                continue;
            }
            some = true;
            let found = self.of_metric(id, CONFIDENCE);
            let whole = |i: &Interval| i.low > 0.0 && (m.unit != "fraction" || i.high < 1.0);
            let half = found.map_or(f64::INFINITY, |i| match whole(&i) {
                true => (i.high - i.low) / 2.0,
                false => (i.high - value).max(value - i.low), // an end that no value goes beyond is nearer
            });
            let enough = half <= precision * value.abs() || m.unit == "fraction" && half <= precision;
            if !enough {
                left.push((id, half / value.abs()));
            }
        }
        some.then_some(left)
    }

    /// Intervals of the numbers in the table `tenants`, each with the row and the column of its number.
    pub fn tenant_table(&self) -> Value {
        let rows = self.ends.last().and_then(|e| e.tenants["rows"].as_array()).map_or(0, Vec::len);
        let cell = |row: usize, column: ColumnId| {
            let of = |e: &BatchEnd| e.tenants["rows"][row][column.index()].as_f64();
            let found = self.interval(Cell::Tenant(row, column), CONFIDENCE, of)?;
            Some(vec![json!(row), json!(column.declared().name), json!(found.low), json!(found.high)])
        };
        let cells = (0..rows).flat_map(|row| ColumnId::all().filter_map(move |column| cell(row, column)));
        table(&[("row", ""), ("metric", ""), ("low", ""), ("high", "")], cells.collect())
    }
}
