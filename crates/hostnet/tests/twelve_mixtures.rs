//! Twelve mixtures that docs/use/mixtures.md shows: each runs, and is conserved to the packet, the credit and the line
//! while it runs and after it has drained.

use crate::common::platforms;
use hostnet::config::{resolve, Scenario};
use hostnet::host::{run, Host};
use hostnet::kernel::{TenantId, Time};
use hostnet::traffic::arrival::Arrivals;
use std::sync::Arc;

const PAGE: &str = include_str!("../../../docs/use/mixtures.md");

/// The mixtures: a shipped scenario, and what the mixture changes in its text.
const MIXTURES: [(&str, &[(&str, &str)]); 12] = [
    ("mixture-tcp", &[]),
    ("mixture-ports", &[]),
    ("mixture-coherent", &[]),
    ("mixture-placements", &[]),
    ("mixture-client", &[]),
    ("mixture-nodes", &[]),
    ("mixture-pipeline", &[]),
    ("mixture-client", &[("arrivals = \"closed\"\noutstanding = 16", "arrivals = \"keep_depth\"\ndepth = 4")]),
    ("mixture-server", &[]),
    ("mixture-interfaces", &[]),
    ("recorded-ccnic", &[]),
    ("mixture-everything", &[]),
];

fn shipped(name: &str, changes: &[(&str, &str)]) -> Scenario {
    let file = platforms().join(format!("../scenarios/{name}.toml"));
    let mut text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{name}: {e}"));
    for (from, to) in changes {
        assert!(text.contains(from), "{name} has no {from}");
        text = text.replace(from, to);
    }
    let mut s = resolve(&text, &file.to_string_lossy(), &[platforms()]).unwrap_or_else(|e| panic!("{e}"));
    s.run.requests = 1500;
    s.run.warmup_requests = Some(500);
    s
}

/// Runs the tenants for a while, and lets all work in flight end.
fn drained(s: &Scenario) -> Result<(), String> {
    let mut host = Host::new(Arc::new(s.clone()))?;
    for (t, spec) in (0..s.tenants.len()).map(TenantId::new).zip(&s.tenants) {
        let traffic = spec.traffic.as_deref().unwrap_or(&s.traffic);
        match traffic.outstanding() {
            0 => host.offer(t, Some(Arrivals::fixed(5e5)), 0),
            n => host.offer_closed(t, n, traffic.timeout().into()),
        }
    }
    for _ in 0..6 {
        host.run_for(Time::us(5));
        host.check()?;
    }
    for (t, spec) in (0..s.tenants.len()).map(TenantId::new).zip(&s.tenants) {
        if spec.traffic.as_deref().unwrap_or(&s.traffic).outstanding() == 0 {
            host.offer(t, None, 0);
        }
    }
    host.drain();
    host.check()
}

#[test]
fn each_of_the_twelve_runs_and_is_conserved() {
    for (name, changes) in MIXTURES {
        let s = shipped(name, changes);
        // A run checks the conservation laws at its end.
        let o = run(&s, &mut |_| Ok(())).unwrap_or_else(|e| panic!("{name}: {e}"));
        let rows = o.tables["tenants"]["rows"].as_array().expect("rows of tenants");
        assert_eq!(rows.len(), s.tenants.len(), "{name}");
        let columns = o.tables["tenants"]["columns"].as_array().expect("columns");
        let throughput = columns.iter().position(|c| c["name"] == "throughput_mops").expect("a throughput");
        for row in rows {
            assert!(row[throughput].as_f64().is_some_and(|mops| mops > 0.0), "{name}: {} does nothing", row[0]);
        }
        // What the page docs/use/userspace.md says of this table.
        if let Some(rows) = o.tables.get("packets").and_then(|t| t["rows"].as_array()) {
            let [start, offered, served, lost, end] = std::array::from_fn(|i| rows[i][1].as_u64().expect("a count"));
            assert_eq!(start + offered, served + lost + end, "{name}: {rows:?}");
        }
        // Two hosts drain in tests/two_hosts.rs.
        if s.client.is_none() {
            drained(&s).unwrap_or_else(|e| panic!("{name} drained: {e}"));
        }
    }
}

#[test]
fn the_page_shows_each_of_the_twelve() {
    let section = PAGE.split("\n## ").find(|s| s.starts_with("Twelve mixtures\n")).expect("a section");
    let table = section.split("\n\n").find(|t| t.starts_with("| mixture |")).expect("a table");
    let rows: Vec<&str> = table.lines().skip(2).collect();
    assert_eq!(rows.len(), MIXTURES.len());
    for ((name, _), row) in MIXTURES.iter().zip(rows) {
        assert!(row.contains(&format!("`{name}`")), "{row} is not {name}");
    }
}
