//! Filled caches that one simulation keeps for the next: scenarios that differ in the offered rate, in the depth of
//! standing queues, in what is measured or in the stalls of requests fill the caches in the same way.

use crate::config::scenario::{ArrivalsSpec, Load};
use crate::config::Scenario;
use crate::host::build::spikes;
use crate::host::Host;
use serde_json::Value;
use std::cell::RefCell;
use std::sync::Arc;

thread_local! {
    static KEPT: RefCell<Option<(String, Host)>> = const { RefCell::new(None) };
}

/// Keys of `[run]` that do not influence how caches fill in functional mode, which has neither time nor a load.
const OF_MEASUREMENT: [&str; 10] = [
    "load",
    "loss",
    "precision",
    "precision_of",
    "requests",
    "search_tolerance",
    "slo_multiple",
    "step",
    "time",
    "warmup_requests",
];
/// Keys of `[traffic]` that do not: packets come one after another, none waits, and stalls take nothing but time.
const OF_RATE: [&str; 3] = ["rate", "depth", "spikes"];
/// Keys of the gaps between single packets, and the processes that have no others.
const OF_GAPS: [&str; 2] = ["arrivals", "cv"];
const SINGLE: [&str; 5] = ["poisson", "fixed", "uniform", "log_normal", "pareto"];

/// Text that is equal for scenarios whose caches fill in the same way. None where caches are not filled in functional mode by
/// packets, or what fills them may depend on the rate: with a warm-up that is given, replayed captures, tenants on CC-NIC or that
/// generate their packets themselves, and a second host.
pub fn fill_key(s: &Scenario) -> Option<String> {
    let plain = |t| {
        let spec = s.tenant(t);
        spec.stack.ccnic().is_none() && !spec.loops() && s.traffic_of(t).arrivals() != ArrivalsSpec::Pcap
    };
    let fills = s.run.load != Load::None && s.run.warmup_requests.is_none() && s.run.warmup_time.is_none();
    if !fills || s.client.is_some() || s.tenants.probe().is_some() || !s.tenant_ids().all(plain) {
        return None;
    }
    let mut key = serde_json::to_value(s).ok()?;
    let strip = |table: &mut Value, keys: &[&str]| {
        if let Some(table) = table.as_object_mut() {
            keys.iter().for_each(|k| drop(table.remove(*k)));
        }
    };
    strip(&mut key, &["name"]);
    strip(&mut key["run"], &OF_MEASUREMENT);
    let strip_traffic = |traffic: &mut Value| {
        strip(traffic, &OF_RATE);
        if traffic["arrivals"].as_str().is_some_and(|a| SINGLE.contains(&a)) {
            strip(traffic, &OF_GAPS);
        }
    };
    strip_traffic(&mut key["traffic"]);
    key["tenant"].as_array_mut()?.iter_mut().for_each(|t| strip_traffic(&mut t["traffic"]));
    Some(key.to_string())
}

/// Puts the host that was kept under `key` in the place of `host`, which has just been built for `s`. Returns false without such
/// a host. The kept host is gone afterwards in any case.
pub(super) fn take(key: &str, s: &Arc<Scenario>, host: &mut Host) -> bool {
    let Some((_, mut kept)) = KEPT.take().filter(|(of, _)| of == key) else { return false };
    kept.spec = s.clone();
    for t in s.tenant_ids() {
        kept.tenants[t].spikes = spikes(s, t);
    }
    *host = kept;
    true
}

/// Keeps `host`, whose caches are full, under `key` for the next simulation of this thread.
pub(super) fn keep(key: String, host: &Host) {
    KEPT.set(Some((key, host.clone())));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::tests::scenario;

    /// A host that is kept is taken once, under its own key only, and has the scenario of the one that takes it.
    #[test]
    fn a_kept_host_is_taken_once_and_under_its_key() {
        let text = r#"
            name = "kept"
            platform = "sim24"
            placement = { policy = "ddio", ways = 2 }
            rings = { rx_buffers = 256, buffer_size = "1 KiB" }
            traffic = { arrivals = "fixed", packet = "1 KiB", rate = "1 Mrps" }
            run = { load = "fixed", requests = 1000 }
            tenant = [{ name = "touchdrop", cores = 2, app = { kind = "touchdrop", instructions = 700 } }]
        "#;
        let spec = scenario(text);
        let other = Arc::new(Scenario { name: "other".into(), ..(*spec).clone() });
        let mut host = Host::new(spec.clone()).expect("a host");
        keep("a".into(), &host);
        assert!(!take("b", &other, &mut host) && !take("a", &other, &mut host), "another key lets it go");
        keep("a".into(), &host);
        assert!(take("a", &other, &mut host) && host.spec.name == "other");
        assert!(!take("a", &other, &mut host));
    }
}
