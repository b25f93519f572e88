//! Checks for keys that have no effect with the choices of a scenario. Such a key would change nothing, so the author
//! of the scenario meant something else.
//!
//! A key counts as given when its value is neither the default nor, for a NIC, the platform's. The resolved form of a
//! scenario therefore passes, too.

use super::check::{directed, need, serves, Check};
use super::scenario::{requests, span, ArrivalsSpec, Load, RingDriver, Scenario, SpreadSpec, TrafficSpec};
use crate::app::stream::AccessOrder;
use crate::app::{AppSpec, Origin};
use crate::device::nic::EthernetSpec;
use crate::kernel::units::Size;
use crate::placement::SweepTx;
use crate::stack::ccnic::spec::CcnicMode;
use serde::Serialize;
use std::fmt::Display;

/// The spelling of a value in a scenario.
pub(super) fn spelt(value: impl Serialize) -> String {
    serde_json::to_string(&value).unwrap_or_default()
}

pub(super) fn unused(s: &Scenario) -> Check {
    if s.tenants.iter().any(directed) {
        return Ok(());
    }
    sizes(s)?;
    takers(s)?;
    duration(s)?;
    streams(s)?;
    interrupts(s)
}

/// Checks for keys of an arrival process other than the one chosen.
pub(super) fn arrivals(t: &TrafficSpec) -> Check {
    let text = |v: &dyn Display| format!("\"{v}\"");
    let file = t.pcap.as_ref().map(|p| ("pcap.file", text(&p.file)));
    let rate = t.rate.map(|r| ("rate", text(&r)));
    let default = TrafficSpec::default();
    let timeout = (t.timeout != default.timeout).then(|| ("timeout", text(&t.timeout)));
    let given = |key, n: u32| (n > 0).then(|| (key, n.to_string()));
    let sizes = (t.sizes != default.sizes).then(|| ("sizes", spelt(&t.sizes)));
    let protocol = (t.protocol != default.protocol).then(|| ("protocol", spelt(t.protocol)));
    let made = t.arrivals != ArrivalsSpec::Pcap;
    let at_a_rate = !matches!(t.arrivals, ArrivalsSpec::Closed | ArrivalsSpec::KeepDepth | ArrivalsSpec::None);
    for (key, of, fits) in [
        (file, "\"pcap\"", t.arrivals == ArrivalsSpec::Pcap),
        (given("burst", t.burst), "\"burst\"", t.arrivals == ArrivalsSpec::Burst),
        (t.burst_gap.map(|g| ("burst_gap", text(&g))), "\"burst\"", t.arrivals == ArrivalsSpec::Burst),
        (t.burst_period.map(|p| ("burst_period", text(&p))), "\"burst\"", t.arrivals == ArrivalsSpec::Burst),
        (given("depth", t.depth), "\"keep_depth\"", t.arrivals == ArrivalsSpec::KeepDepth),
        (given("outstanding", t.outstanding), "\"closed\"", t.arrivals == ArrivalsSpec::Closed),
        (timeout, "\"closed\"", t.arrivals == ArrivalsSpec::Closed),
        (rate, "\"poisson\", \"fixed\" and others that have one", at_a_rate),
        (t.packet.map(|p| ("packet", text(&p))), "\"fixed\" and others whose packets are made", made),
        (sizes, "\"fixed\" and others whose packets are made", made),
        (protocol, "\"fixed\" and others whose packets are made", made),
    ] {
        let Some((key, value)) = key else { continue };
        need(fits, || {
            let here = spelt(t.arrivals);
            format!(
                "traffic.{key} = {value} is for traffic.arrivals = {of}, which is {here} here; change one of the two"
            )
        })?;
    }
    Ok(())
}

/// Checks that no packet size is given together with an application that sets the size itself.
fn sizes(s: &Scenario) -> Check {
    let Some(packet) = s.traffic.packet else { return Ok(()) };
    for (i, t) in s.tenants.iter().enumerate().filter(|(_, t)| serves(t)) {
        let own = t.app.largest(Some(Size(1))).filter(|own| *own != Size(1));
        need(own.is_none_or(|own| own == packet), || {
            format!("traffic.packet = \"{packet}\": the application of tenant[{i}] sets its packets' sizes itself; leave it out")
        })?;
    }
    Ok(())
}

/// Checks for keys that no stack of the scenario uses: stalls, and keys for packets from a wire.
fn takers(s: &Scenario) -> Check {
    let t = &s.traffic;
    let Some(i) = s.ccnic_tenant().or(s.tas_tenant()) else { return Ok(()) };
    let who = match s.tas_tenant() {
        Some(_) => format!("tenant[{i}].app of kind \"tcp_echo\""),
        None => format!("tenant[{i}].stack = \"ccnic\""),
    };
    let alone = s.ccnic.as_ref().is_some_and(|c| c.mode != CcnicMode::Overlay);
    let p = &s.placement;
    for (key, given) in [
        ("traffic.spikes", t.spikes.is_some()),
        ("traffic.spread", (alone || s.tas_tenant().is_some()) && t.spread != SpreadSpec::Random),
        ("traffic.flows", alone && t.flows.is_some()),
        ("traffic.link", alone && t.link.is_some()),
        ("placement.resq", alone && p.resq),
        ("placement.sweep_rx", alone && p.sweep_rx),
        ("placement.sweep_tx", alone && p.sweep_tx != SweepTx::None),
    ] {
        need(!given, || format!("{key} is for other stacks; {who} does not use it, so leave it out"))?;
    }
    Ok(())
}

/// Checks that the duration is given in requests where tenants serve packets, and as a time otherwise.
fn duration(s: &Scenario) -> Check {
    if s.run.load == Load::None || s.tenants.iter().any(|t| t.origin() != Origin::Network) {
        return Ok(());
    }
    let own = s.ccnic_tenant().is_some() || s.paired_tenant().is_some() || s.tas_tenant().is_some();
    let served = s.tenants.iter().any(serves);
    let pings = s.tenants.iter().any(|t| matches!(t.app, AppSpec::Pingpong(_)));
    let r = &s.run;
    let by_time = |key: &str, v: &dyn Display, instead: &str| {
        format!("run.{key} = \"{v}\" is for scenarios whose tenants serve no packets; give run.{instead} here")
    };
    let by_count = |key: &str, n: u64, instead: &str| {
        format!("run.{key} = {n} is for tenants that serve packets, and none here does; give run.{instead}")
    };
    if served || pings {
        need(r.time == span(), || by_time("time", &r.time, "requests"))?;
    }
    if served && !own {
        r.warmup_time.map_or(Ok(()), |t| Err(by_time("warmup_time", &t, "warmup_requests")))?;
    }
    if !served && !own {
        need(r.requests == requests(), || by_count("requests", r.requests, "time"))?;
        let warm = r.warmup_requests.unwrap_or(0);
        need(warm == 0, || by_count("warmup_requests", warm, "warmup_time"))?;
    }
    Ok(())
}

pub(super) fn streams(s: &Scenario) -> Check {
    for (i, t) in s.tenants.iter().enumerate() {
        let AppSpec::Stream(app) = &t.app else { continue };
        need(app.run_lines == 1 || app.access == AccessOrder::Random, || {
            let n = app.run_lines;
            format!("tenant[{i}].app.run_lines = {n} is for access = \"random\", which is \"sequential\" here")
        })?;
    }
    Ok(())
}

/// Checks that an Ethernet NIC under a poll-mode driver has no keys that only the kernel uses.
fn interrupts(s: &Scenario) -> Check {
    let Some(RingDriver::PollMode(_)) = s.ringed().map(|ringed| ringed.driver) else { return Ok(()) };
    let default: EthernetSpec = serde_json::from_str("{}").expect("each key of it has a default");
    let known = [s.platform.ethernet.as_ref().unwrap_or(&default), &default];
    let throttle = |e: &EthernetSpec| e.rings.as_ref().map(|r| r.throttle).unwrap_or_default();
    for (i, nic) in s.peripherals.iter().enumerate().filter_map(|(i, p)| Some((i, p.ethernet()?))) {
        need(known.iter().any(|k| throttle(k) == throttle(nic)), || {
            format!("peripheral[{i}].rings.throttle is for the kernel, and a poll-mode driver does not use it; leave it out")
        })?;
        type Value = fn(&EthernetSpec) -> String;
        let keys: [(&str, &str, Value); 10] = [
            ("descriptors", "rings.receive", |e| spelt(e.descriptors)),
            ("pool", "", |e| spelt(e.pool)),
            ("page", "", |e| spelt(e.page)),
            ("mtu", "", |e| spelt(e.mtu)),
            ("framing", "", |e| spelt(e.framing)),
            ("headers", "", |e| spelt(e.headers)),
            ("moderation", "", |e| spelt(e.moderation)),
            ("moderation_frames", "", |e| spelt(e.moderation_frames)),
            ("host_mark", "", |e| spelt(e.host_mark)),
            ("host_response", "", |e| spelt(&e.host_response)),
        ];
        for (key, instead, value) in keys {
            let given = value(nic);
            need(known.iter().any(|k| value(k) == given), || {
                let what = if instead.is_empty() { "leave it out".into() } else { format!("give {instead}") };
                format!(
                    "peripheral[{i}].{key} = {given} is for the kernel, and a poll-mode driver does not use it; {what}"
                )
            })?;
        }
    }
    Ok(())
}
