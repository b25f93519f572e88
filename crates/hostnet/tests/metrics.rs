//! Declarations of metrics: they agree with each other, with the tables of results, and with the values reported.

use crate::common::{get, simulate};
use hostnet::meter::{Dimension, Group, Lead, Metric, Subject, METRICS, TENANT_COLUMNS};
use std::collections::{BTreeMap, BTreeSet};

/// Ranks of the leading figures of each list: of a heading in a run, or of a table of several runs.
fn ranks(leads: impl Fn(&Metric) -> Vec<Lead>, headed: bool) -> BTreeMap<String, BTreeSet<u8>> {
    let mut found: BTreeMap<String, BTreeSet<u8>> = BTreeMap::new();
    for m in METRICS.iter().chain(TENANT_COLUMNS) {
        for lead in leads(m) {
            // Columns of a table have no headings.
            let head = (headed && lead.subject != Subject::Tenants).then(|| lead.under.unwrap_or(m.group).title());
            let list = format!("{:?} {}", lead.subject, head.unwrap_or(""));
            assert!(found.entry(list).or_default().insert(lead.rank), "{}: another metric has the rank", m.name);
        }
    }
    found
}

#[test]
fn each_place_among_the_leading_figures_is_taken_once() {
    let run = ranks(|m| m.run.iter().flatten().copied().collect(), true);
    let sweep = ranks(|m| m.sweep.iter().flatten().copied().collect(), false);
    assert_eq!(sweep.len(), 6, "every subject but the tenants has columns");
    for (list, ranks) in run.iter().chain(&sweep) {
        let wanted: BTreeSet<u8> = (1..).take(ranks.len()).collect();
        assert_eq!(*ranks, wanted, "{list}");
    }
}

#[test]
fn every_subject_that_is_simulated_has_a_mark_and_every_group_a_metric() {
    for subject in Subject::ALL {
        let marked = METRICS.iter().any(|m| m.marks == Some(subject));
        assert_eq!(marked, !matches!(subject, Subject::Sizes | Subject::Tenants), "{subject:?}");
    }
    for group in Group::ALL.into_iter().filter(|g| *g != Group::ReceiveBuffers) {
        assert!(METRICS.iter().any(|m| m.group == group), "{group:?}");
    }
}

#[test]
fn names_are_distinct_and_say_their_unit_in_small_letters() {
    for list in [METRICS, TENANT_COLUMNS] {
        let names: BTreeSet<&str> = list.iter().map(|m| m.name).collect();
        assert_eq!(names.len(), list.len());
        assert!(names.iter().all(|n| n.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')));
    }
}

/// All accesses of the tenant's cores and all lines of its NIC, which is on a port, are among those of which the share is.
#[test]
fn a_nic_on_a_port_is_among_the_accesses_of_the_llc() {
    let o = simulate(
        "name = \"kv\"\nplacement = { policy = \"ddio\", ways = 2 }\n[platform]\nname = \"icx\"\n[platform.nodes]\ncount = \
         1\n[[tenant]]\nname = \"kv\"\ncores = 2\nstack = \"poll_mode\"\napp = { kind = \"clique_map\", objects = 20000, \
         get_fraction = 0.95, zipf = 0.75, below_100 = 0.61 }\n[[peripheral]]\nkind = \"ethernet\"\n[traffic]\narrivals = \
         \"closed\"\noutstanding = 32\n[run]\nload = \"fixed\"\nrequests = 4000\nwarmup_requests = 4000\n",
    );
    let sum = |table: &str, column: &str| -> f64 {
        let columns = o.tables[table]["columns"].as_array().expect("columns");
        let at = columns.iter().position(|c| c["name"] == column).expect("a column");
        o.tables[table]["rows"].as_array().expect("rows").iter().filter_map(|r| r[at].as_f64()).sum()
    };
    let (cores, nic) = (sum("tenants", "llc_look_ups"), sum("places", "lines"));
    let share = get(&o, "llc_app_share");
    assert!(nic > 0.5 * cores && (0.0..=cores / (cores + nic)).contains(&share), "{share} of {cores} and {nic}");
    let of_app = share * (cores + nic);
    assert!((of_app - of_app.round()).abs() < 1e-6, "{of_app} accesses");
}

/// Three tenants: X-Mem beside two that stream.
const THREE: &str = "name = \"three\"\nplatform = \"cascadelake\"\n\
     [placement]\npolicy = \"ddio\"\nways = 2\n\
     [[tenant]]\nname = \"a\"\ncores = 1\napp = { kind = \"xmem\", array = \"16 MiB\" }\n\
     [[tenant]]\nname = \"b\"\ncores = 2\napp = { kind = \"xmem\", array = \"64 MiB\" }\n\
     [[tenant]]\nname = \"c\"\ncores = 1\napp = { kind = \"stream\", buffer = \"64 MiB\" }\n\
     [run]\nload = \"saturate\"\nwarmup_time = \"20 us\"\ntime = \"60 us\"\n";

#[test]
fn the_table_of_tenants_has_the_declared_columns() {
    let o = simulate(THREE);
    let columns = o.tables["tenants"]["columns"].as_array().expect("columns");
    let shown: Vec<(&str, &str)> =
        columns.iter().map(|c| (c["name"].as_str().expect("a name"), c["unit"].as_str().expect("a unit"))).collect();
    let declared: Vec<(&str, &str)> = TENANT_COLUMNS.iter().map(|m| (m.name, m.unit)).collect();
    assert_eq!(shown, declared);
    assert!(TENANT_COLUMNS.iter().all(|m| m.dimension == Dimension::Tenant));
}

#[test]
fn an_alias_is_the_tenant_s_column_to_the_bit() {
    let o = simulate(THREE);
    let rows = o.tables["tenants"]["rows"].as_array().expect("rows");
    let aliases = [
        ("t0_mops", "throughput_mops", 0),
        ("t1_mops", "throughput_mops", 1),
        ("t0_llc_miss_ratio", "llc_miss_ratio", 0),
        ("t1_llc_miss_ratio", "llc_miss_ratio", 1),
    ];
    for (name, column, row) in aliases {
        let at = TENANT_COLUMNS.iter().position(|c| c.name == column).expect("a column");
        let of_tenant = rows[row][at].as_f64().expect("a value");
        assert!(of_tenant > 0.0 && get(&o, name).to_bits() == of_tenant.to_bits(), "{name}");
    }
    let declared: Vec<_> = METRICS.iter().filter_map(|m| Some((m.name, m.alias?))).collect();
    let declared: Vec<_> = declared.iter().map(|(n, (c, row))| (*n, c.declared().name, usize::from(*row))).collect();
    assert_eq!(BTreeSet::from_iter(declared), BTreeSet::from(aliases));
}
