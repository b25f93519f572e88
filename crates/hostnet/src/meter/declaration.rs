//! Declarations of metrics: what one says, and the macro that reads a list of them.

use super::MetricId;
use serde::{Serialize, Serializer};

/// Part of the host that a metric is about; lists of metrics have a heading for each group, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Findings of a directed test.
    DirectedTest,
    /// How much is done, and how long it takes.
    Speed,
    /// Caches, DRAM and who accesses them.
    Memory,
    /// NICs, their links and drivers, and lost packets.
    Nic,
    /// Credits in use, how long each is held, and who waits for one.
    Domains,
    /// Receive buffers beside the capacity of the LLC.
    ReceiveBuffers,
    /// Values that follow from the scenario alone.
    Constants,
    /// Size of the simulation itself.
    Simulation,
}

impl Group {
    /// Every group, in the order of their headings.
    pub const ALL: [Group; 8] = [
        Group::DirectedTest,
        Group::Speed,
        Group::Memory,
        Group::Nic,
        Group::Domains,
        Group::ReceiveBuffers,
        Group::Constants,
        Group::Simulation,
    ];

    /// Heading of the group.
    pub const fn title(self) -> &'static str {
        match self {
            Group::DirectedTest => "directed test",
            Group::Speed => "throughput and latency",
            Group::Memory => "memory",
            Group::Nic => "NIC and drops",
            Group::Domains => "domains",
            Group::ReceiveBuffers => "sizes",
            Group::Constants => "constants",
            Group::Simulation => "the simulation",
        }
    }
}

impl Serialize for Group {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.title())
    }
}

/// Subject of a result, which decides the figures that lead. A result is about the first of these subjects of which
/// it has a mark (`marks` of a [`Metric`]), and about sizes without any mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Subject {
    /// Receivers of TCP in the kernel.
    Tcp,
    /// CC-NIC.
    CcNic,
    /// Requests and packets that cores serve.
    Packets,
    /// A directed test.
    Directed,
    /// Traffic of cores and devices without packets.
    Host,
    /// A scenario that is not simulated: sizes alone.
    Sizes,
    /// The table `tenants` of a result.
    Tenants,
}

impl Subject {
    /// Place of the subject among [`Subject::ALL`].
    const fn place(self) -> usize {
        self as usize
    }

    /// Every subject.
    pub const ALL: [Subject; 7] = [
        Subject::Tcp,
        Subject::CcNic,
        Subject::Packets,
        Subject::Directed,
        Subject::Host,
        Subject::Sizes,
        Subject::Tenants,
    ];
}

/// Part of the machine or of the software that one value of a metric describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Dimension {
    /// The host as a whole.
    Host,
    /// One tenant; the table `tenants` has a row for each.
    Tenant,
    /// The two nodes and the links between them.
    Node,
    /// PCIe ports and the devices behind them, taken together.
    Port,
    /// A kind of credit domain, taken together; the table `domains` has a row for each domain.
    Domain,
}

/// Kind of number that a metric is, which decides how its interval is estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Statistic {
    /// A mean, a rate, a share or a percentile: a longer window measures the same value better.
    Mean,
    /// A count of the window, which grows with its length.
    Total,
    /// A largest, smallest or last value, of which no interval is known.
    Single,
}

/// Place of a metric among the figures that lead.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Lead {
    /// Subject of the result.
    pub subject: Subject,
    /// Place, from 1: within the group in the figures of a run, among all columns in a table of several runs.
    pub rank: u8,
    /// Group under whose heading the metric leads; None for the metric's own.
    pub under: Option<Group>,
    /// Metric without which, or with the value 0 of which, this one does not lead.
    pub beside: Option<MetricId>,
}

/// Declaration of one number that a run yields, or of a column of the table `tenants`.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Metric {
    /// Name of the metric and of its column in tables of results.
    pub name: &'static str,
    /// Unit; `fraction` for a share between 0 and 1, and empty for a column of text.
    pub unit: &'static str,
    /// Part of the host that the metric is about.
    pub group: Group,
    /// Part of the machine or of the software that one value describes.
    pub dimension: Dimension,
    /// One sentence that says what is measured.
    pub description: &'static str,
    /// Kind of number.
    pub statistic: Statistic,
    /// Subject of a result in which the metric has a value.
    pub marks: Option<Subject>,
    /// Places among the figures that a run shows first, by subject.
    #[serde(serialize_with = "places")]
    pub run: [Option<Lead>; Subject::ALL.len()],
    /// Places among the columns of a table of several runs, by subject.
    #[serde(serialize_with = "places")]
    pub sweep: [Option<Lead>; Subject::ALL.len()],
    /// Whether 0 says that the scenario leaves a part of the host idle: such a value does not lead.
    pub idle_at_zero: bool,
    /// Metric that says the same in a better unit: this one does not lead where that one is above 0.
    pub unless: Option<MetricId>,
    /// Column of the table `tenants`, and the row, of which the metric is an alias.
    pub alias: Option<(super::ColumnId, u8)>,
}

/// Writes the places that a metric has.
fn places<S: Serializer>(all: &[Option<Lead>], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(all.iter().flatten())
}

impl Metric {
    /// A metric that never leads.
    pub(super) const fn new(
        name: &'static str,
        unit: &'static str,
        group: Group,
        dimension: Dimension,
        description: &'static str,
    ) -> Metric {
        assert!(!description.is_empty(), "a metric says in a sentence what it measures");
        assert!(
            !unit.is_empty() || matches!((group, dimension), (Group::Constants, Dimension::Tenant)),
            "a metric has a unit"
        );
        let nowhere = [None; Subject::ALL.len()];
        Metric {
            name,
            unit,
            group,
            dimension,
            description,
            statistic: Statistic::Mean,
            marks: None,
            run: nowhere,
            sweep: nowhere,
            idle_at_zero: false,
            unless: None,
            alias: None,
        }
    }

    /// A count of the window.
    pub(super) const fn total(mut self) -> Metric {
        self.statistic = Statistic::Total;
        self
    }

    /// A largest, smallest or last value of the window.
    pub(super) const fn single(mut self) -> Metric {
        self.statistic = Statistic::Single;
        self
    }

    pub(super) const fn marks(mut self, subject: Subject) -> Metric {
        self.marks = Some(subject);
        self
    }

    /// Among the figures that a run about `subject` shows first, in its own group.
    pub(super) const fn run(mut self, subject: Subject, rank: u8) -> Metric {
        self.run[subject.place()] = Some(Lead { subject, rank, under: None, beside: None });
        self
    }

    /// Among the figures that a run about `subject` shows first, under the heading of another group.
    pub(super) const fn run_under(mut self, subject: Subject, rank: u8, group: Group) -> Metric {
        self.run[subject.place()] = Some(Lead { subject, rank, under: Some(group), beside: None });
        self
    }

    /// Among the figures that a run about `subject` shows first, where `other` is above 0.
    pub(super) const fn run_beside(mut self, subject: Subject, rank: u8, other: MetricId) -> Metric {
        self.run[subject.place()] = Some(Lead { subject, rank, under: None, beside: Some(other) });
        self
    }

    /// Among the columns of a table of several runs about `subject`.
    pub(super) const fn sweep(mut self, subject: Subject, rank: u8) -> Metric {
        self.sweep[subject.place()] = Some(Lead { subject, rank, under: None, beside: None });
        self
    }

    pub(super) const fn idle_at_zero(mut self) -> Metric {
        self.idle_at_zero = true;
        self
    }

    pub(super) const fn unless(mut self, other: MetricId) -> Metric {
        self.unless = Some(other);
        self
    }

    pub(super) const fn alias(mut self, column: super::ColumnId, row: u8) -> Metric {
        self.alias = Some((column, row));
        self
    }
}

/// `upper` in lower case.
pub(super) const fn lower<const N: usize>(upper: &str) -> [u8; N] {
    let mut out = [0; N];
    let mut i = 0;
    while i < N {
        out[i] = upper.as_bytes()[i].to_ascii_lowercase();
        i += 1;
    }
    out
}

/// Letters as text.
pub(super) const fn text(letters: &'static [u8]) -> &'static str {
    match std::str::from_utf8(letters) {
        Ok(text) => text,
        Err(_) => panic!("names of metrics are ASCII"),
    }
}

/// A list of metrics: `NAME [unit, group, dimension] text`, and the metric's places among the figures that lead.
///
/// The macro makes a constant of each metric, by which components report it, and the list `$all`. The name in results is
/// that of the constant in lower case.
macro_rules! metrics {
    ($(#[$about:meta])* $all:ident, $id:ident;
     $($name:ident [$unit:literal, $group:ident, $dimension:ident] $text:literal $($key:ident $args:tt)*;)+) => {
        #[allow(clippy::upper_case_acronyms, non_camel_case_types, reason = "names of metrics, which only number them")]
        #[repr(u16)]
        enum Index { $($name),+ }

        $(
            #[doc = $text]
            pub const $name: $crate::meter::$id = $crate::meter::$id(Index::$name as u16);
        )+

        $(#[$about])*
        pub const $all: &[$crate::meter::Metric] = {
            use $crate::meter::declaration::{lower, text, Group::*, Subject::*};
            &[$({
                const NAME: &[u8] = &lower::<{ stringify!($name).len() }>(stringify!($name));
                let group = $group;
                let dimension = $crate::meter::Dimension::$dimension;
                $crate::meter::Metric::new(text(NAME), $unit, group, dimension, $text)$(.$key $args)*
            }),+]
        };
    };
}
pub(super) use metrics;

#[cfg(test)]
mod tests {
    use super::{Dimension, Group, Metric};

    #[test]
    #[should_panic(expected = "a metric has a unit")]
    fn a_metric_without_a_unit_is_no_constant() {
        Metric::new("lost", "", Group::Nic, Dimension::Host, "Packets that were lost");
    }

    #[test]
    #[should_panic(expected = "a metric says in a sentence what it measures")]
    fn a_metric_without_a_meaning_is_no_constant() {
        Metric::new("lost", "packets", Group::Nic, Dimension::Host, "");
    }
}
