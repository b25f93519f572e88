//! Checks for keys that have no effect with the choices of a scenario. Such a key would change nothing, so the author
//! of the scenario meant something else.
//!
//! A key counts as given when its value is neither the default nor, for a NIC, the platform's. The resolved form of a
//! scenario therefore passes, too. Of a platform, the keys that count are those that a file or a scenario writes itself:
//! neither those of a preset nor those of the platform that it changes.

use super::check::{need, serves, word, Check};
use super::scenario::{
    requests, span, Load, PeripheralSpec, Platform, RingDriver, RingSpec, RunSpec, Scenario, SpreadSpec, TenantSpec,
    TrafficSpec,
};
use crate::app::stream::AccessOrder;
use crate::app::{AppSpec, Origin, WorkSource};
use crate::device::endpoint::DmaDirection;
use crate::device::nic::EthernetSpec;
use crate::kernel::units::Size;
use crate::kernel::{Int, TenantId};
use crate::memory::dram::{DramQuirks, DramSpec};
use crate::memory::spec::LlcQuirks;
use crate::memory::LINE;
use crate::placement::PlacementPolicy;
use crate::placement::SweepTx;
use serde::Serialize;
use serde_json::{Map, Value};
use std::fmt::Display;
use std::ptr;

/// The spelling of a value in a scenario.
pub(super) fn spelt(value: impl Serialize) -> String {
    serde_json::to_string(&value).unwrap_or_default()
}

/// The keys of `spec`, other than `without`, whose value is that of none of the `known` tables, with the values.
fn all_given<T: Serialize>(spec: &T, known: &[&T], without: &[&str]) -> Vec<(String, Value)> {
    let table = |of: &T| match serde_json::to_value(of) {
        Ok(Value::Object(table)) => table,
        _ => Map::new(),
    };
    let known: Vec<_> = known.iter().map(|k| table(k)).collect();
    let new = |(key, value): &(String, Value)| {
        !without.contains(&key.as_str()) && known.iter().all(|k| k.get(key).unwrap_or(&Value::Null) != value)
    };
    table(spec).into_iter().filter(new).collect()
}

/// The first of these keys.
fn given<T: Serialize>(spec: &T, known: &[&T], without: &[&str]) -> Option<(String, Value)> {
    all_given(spec, known, without).into_iter().next()
}

/// Checks that keys of the memory controllers and the LLC that are `written` as part of `platform` belong to the scheduler
/// and the protocol that the platform has, and that a number of cores is not overruled.
pub(super) fn choices(written: &Value, platform: &Platform) -> Check {
    cores(written, platform)?;
    buffers(written, platform)?;
    let (memory, llc) = (&platform.memory, &platform.caches.llc);
    let in_memory = written.get("memory").unwrap_or(&Value::Null);
    effective("memory", in_memory, memory, &DramSpec::default(), |key| memory.unused(key))?;
    let (quirks, at) = (in_memory.get("quirks").unwrap_or(&Value::Null), "memory.quirks");
    effective(at, quirks, &memory.quirks, &DramQuirks::default(), |key| memory.unused(key))?;
    let (quirks, at) = (written.pointer("/caches/llc/quirks").unwrap_or(&Value::Null), "caches.llc.quirks");
    effective(at, quirks, &llc.quirks, &LlcQuirks::default(), |key| llc.unused(key))
}

/// Checks that `nodes.cores`, which somebody else has given, does not overrule a `core.count` that is `written`.
fn cores(written: &Value, platform: &Platform) -> Check {
    let of_nodes = platform.nodes.as_ref().and_then(|n| n.cores);
    let count = written.pointer("/core/count").filter(|_| written.pointer("/nodes/cores").is_none());
    let (Some(count), Some(cores)) = (count, of_nodes) else { return Ok(()) };
    need(*count == cores, || {
        format!(
            "core.count = {count} has no effect: nodes.cores = {cores} of platform \"{}\" is the number of cores of a node; give \
             nodes.cores instead",
            platform.name
        )
    })
}

/// Checks that a number of line fill buffers at which prefetchers pause, if `written`, is one that the core has. One that
/// somebody else has written gives way to a smaller `core.lfb`.
fn buffers(written: &Value, platform: &Platform) -> Check {
    let (most, misses) = (platform.core.lfb, platform.core.l1_prefetch.as_ref().map_or(1, |f| f.quirks.misses));
    need(misses <= most || written.pointer("/core/l1_prefetch/quirks/misses").is_none(), || {
        format!("core.l1_prefetch.quirks.misses = {misses} is not within 1 to core.lfb = {most}")
    })
}

/// Checks that no key of `written`, the part of `table` that somebody has written, is `unused` and has another value than
/// the default.
fn effective<T: Serialize>(
    table: &str,
    written: &Value,
    all: &T,
    default: &T,
    unused: impl Fn(&str) -> Option<String>,
) -> Check {
    let given = all_given(all, &[default], &["quirks"]);
    for (key, value) in given.iter().filter(|(key, _)| written.get(key).is_some()) {
        if let Some(why) = unused(key) {
            return Err(format!("{table}.{key} = {value} {why}; leave it out"));
        }
    }
    Ok(())
}

/// Whether packets of the traffic come for a tenant.
fn takes_packets(t: &TenantSpec) -> bool {
    serves(t) || t.stack.ccnic().is_some()
}

/// Whether a tenant's packets come through queue pairs of the integrated NIC.
pub(super) fn has_queue_pairs(t: &TenantSpec) -> bool {
    serves(t) && !t.has_rings() && t.stack.ccnic().is_none()
}

/// Checks that keys about packets stand beside tenants for which packets come.
pub(super) fn packets(s: &Scenario) -> Check {
    let default = TrafficSpec::default();
    for (i, t) in s.tenants.iter().enumerate().filter(|(_, t)| !takes_packets(t)) {
        let by_tcp = t.work() == WorkSource::Kernel;
        let without: &[_] = if by_tcp { &["dctcp"] } else { &[] };
        let own = t.traffic.as_deref().and_then(|own| given(own, &[&default, &s.traffic], without));
        if let Some((key, value)) = own {
            let instead = if by_tcp {
                "is a TCP receiver, whose segments are those of traffic.dctcp"
            } else {
                "takes no packets"
            };
            return Err(format!(
                "tenant[{i}].traffic.{key} = {value} has no effect: the application {instead}; leave it out"
            ));
        }
        need(t.traffic.is_none() || by_tcp, || {
            format!("tenant[{i}].traffic has no effect: the application takes no packets; leave it out")
        })?;
        need(t.dscp == 0, || {
            format!("tenant[{i}].dscp = {} has no effect: the application takes no packets that it could mark; leave it out", t.dscp)
        })?;
    }
    let dscp = s.tenants.iter().position(|t| t.dscp != 0).filter(|_| !s.placement.reads_tags());
    if let Some(i) = dscp {
        return Err(format!(
            "tenant[{i}].dscp = {} has no effect: placement.{} does not look at classes of packets, as policy = \"idio\" with mode = \"all\" \
             does",
            s.tenants[i].dscp,
            match s.placement.policy {
                PlacementPolicy::Idio => format!("mode = \"{}\"", word(s.placement.mode.unwrap_or_default())),
                policy => format!("policy = \"{}\"", word(policy)),
            }
        ));
    }
    if !s.tenants.iter().any(takes_packets) {
        if let Some((key, value)) = given(&s.traffic, &[&default], &["dctcp"]) {
            let tcp = s.tenants.iter().any(|t| t.work() == WorkSource::Kernel);
            let instead =
                if tcp { " from this table; the segments of a TCP receiver are those of traffic.dctcp" } else { "" };
            return Err(format!(
                "traffic.{key} = {value} has no effect: no tenant takes packets{instead}; leave it out"
            ));
        }
    }
    // A key that some tenant has taken from the table has an effect, and so have those that a search takes.
    let taken = |key: &str, value: &Value| {
        let of = |t: TenantId| serde_json::to_value(s.traffic_of(t)).is_ok_and(|t| t.get(key) == Some(value));
        s.tenant_ids().any(|t| takes_packets(s.tenant(t)) && of(t))
    };
    let overruled = all_given(&s.traffic, &[&default], &["arrivals", "dctcp", "rate", "depth"]);
    if let Some((key, value)) = overruled.into_iter().find(|(key, value)| !taken(key, value)) {
        return Err(format!(
            "traffic.{key} = {value} has no effect: tenants that take packets have a value of their own; leave it out"
        ));
    }
    let counted = s.tenants.iter().any(|t| takes_packets(t) && t.origin() == Origin::Network);
    need(!counted || s.run.time == span(), || {
        format!("run.time = \"{}\" is for scenarios whose tenants serve no packets; give run.requests here", s.run.time)
    })?;
    let driven = s.tenants.iter().any(TenantSpec::has_port);
    let default: EthernetSpec = serde_json::from_str("{}").expect("each key of it has a default");
    let of_platform = s.platform.ethernet.as_ref().unwrap_or(&default);
    for (i, nic) in s.peripherals.iter().enumerate().filter_map(|(i, p)| Some((i, p.ethernet()?))).filter(|_| !driven) {
        if let Some((key, value)) = given(nic, &[of_platform, &default], &["lanes", "tags", "name"]) {
            return Err(format!(
                "peripheral[{i}].{key} = {value} has no effect: no tenant's packets come through this NIC; leave it out"
            ));
        }
    }
    if s.tenants.probe().is_none() && !s.tenants.iter().any(has_queue_pairs) {
        if let Some((key, value)) = given(&s.rings, &[&RingSpec::default()], &[]) {
            return Err(format!(
                "rings.{key} = {value} has no effect: these are buffers of queue pairs, which no tenant has; an Ethernet NIC's are \
                 peripheral.rings, and those of CC-NIC are in the table ccnic"
            ));
        }
    }
    Ok(())
}

/// Checks that a link that `changes` make faster is not held back by the platform's path to the home agent, whose rate the
/// changes leave alone.
pub(super) fn outgrown(changes: &Value, s: &Scenario) -> Check {
    let given = |path: &str| changes.pointer(path).is_some();
    let faster = ["/pcie/generation", "/pcie/quirks/lane_rate"].into_iter().find(|key| given(key));
    let (Some(key), Some(pcie), Some(iio)) = (faster, &s.platform.pcie, &s.platform.iio) else { return Ok(()) };
    let interval = iio.line_interval.0;
    if interval == 0 || given("/iio/line_interval") {
        return Ok(());
    }
    let widest = s.peripherals.iter().map(PeripheralSpec::lanes).max().unwrap_or(0);
    let (link, path) = (pcie.payload_rate(widest) / 1e9, LINE.to_f64() * 1e3 / interval.to_f64());
    let key = key[1..].replace('/', ".");
    let value = changes.pointer(&format!("/{}", key.replace('.', "/"))).cloned().unwrap_or_default();
    need(path >= link, || {
        format!(
            "override.{key} = {value} makes a port of {widest} lanes carry {link:.1} GB/s, and platform.iio.line_interval = \"{}\" lets \
             {path:.1} GB/s through, reads and writes together; give override.iio.line_interval as well, at most {:.3} ns for one \
             direction of this port and half of that for both, or as it is",
            iio.line_interval,
            LINE.to_f64() / link
        )
    })
}

/// Checks that the `changes` under `override` concern parts that the scenario uses.
pub(super) fn overridden(changes: &Value, s: &Scenario) -> Check {
    let tenant = |is: fn(&TenantSpec) -> bool| s.tenants.iter().any(is);
    let kernel = tenant(|t| t.stack.is_kernel());
    let ethernet = s.ethernets().next().is_some();
    let devices = !s.peripherals.is_empty();
    let chip = tenant(has_queue_pairs) || s.tenants.probe().is_some();
    let driver = tenant(|t| t.has_rings() && !t.stack.is_kernel()) || s.client.is_some();
    for (table, used, by) in [
        ("tcp", kernel || tenant(|t| t.work() == WorkSource::Kernel), "tenants that receive through the kernel"),
        ("udp", kernel, "tenants with stack = \"kernel\""),
        ("poll_mode", driver, "tenants with stack = \"poll_mode\""),
        ("ccnic", s.ccnic_tenant().is_some(), "a tenant with stack = \"ccnic\""),
        ("block", s.storage_cores() > 0, "SSDs with cores"),
        ("ethernet", ethernet || s.client.is_some(), "a [[peripheral]] of kind \"ethernet\""),
        ("pcie", devices, "a [[peripheral]]"),
        ("iio", devices, "a [[peripheral]]"),
        ("nic", chip, "tenants whose packets come through the integrated NIC"),
        ("queue_pair", chip, "tenants whose packets come through queue pairs"),
    ] {
        need(used || changes.get(table).is_none(), || {
            format!("override.{table} has no effect: it is for {by}, and the scenario has none; leave it out")
        })?;
    }
    let given = |table: &str| changes.get(table).and_then(Value::as_object).into_iter().flat_map(Map::keys);
    let between =
        given("nodes").find(|key| !["count", "cores", "crossing_cycles", "uncore_clock"].contains(&key.as_str()));
    if let Some(key) = between.filter(|_| s.nodes().count == 1) {
        return Err(format!(
            "override.nodes.{key} has no effect: it is for what two nodes share, and the machine has one; give override.nodes.count = 2 \
             or leave it out"
        ));
    }
    let receives = kernel || tenant(|t| t.work() == WorkSource::Kernel);
    if let Some(key) =
        given("ethernet").find(|key| OF_KERNEL.iter().any(|k| k.0 == *key)).filter(|_| !receives && s.client.is_none())
    {
        return Err(format!(
            "override.ethernet.{key} is for the kernel, and no tenant of the scenario receives through it; leave it out"
        ));
    }
    let in_pages = s.tenant_ids().any(|t| s.tenant(t).work() == WorkSource::Kernel && s.ring_of(t).is_none());
    if let Some(key) = given("ethernet").find(|key| OF_PAGES.contains(&key.as_str())).filter(|_| !in_pages) {
        return Err(format!(
            "override.ethernet.{key} is for frames in pages of memory, and those of the scenario's NICs lie in buffers of their \
             descriptor rings; leave it out"
        ));
    }
    Ok(())
}

/// Text of a key's value.
type Spelt = fn(&EthernetSpec) -> String;

/// Keys of an Ethernet NIC that only the kernel uses, each with the key that a poll-mode driver uses instead, and its value.
const OF_KERNEL: [(&str, Option<&str>, Spelt); 10] = [
    ("descriptors", Some("rings.receive"), |e| spelt(e.descriptors)),
    ("pool", None, |e| spelt(e.pool)),
    ("page", None, |e| spelt(e.page)),
    ("mtu", None, |e| spelt(e.mtu)),
    ("framing", None, |e| spelt(e.framing)),
    ("headers", None, |e| spelt(e.headers)),
    ("moderation", None, |e| spelt(e.moderation)),
    ("moderation_frames", None, |e| spelt(e.moderation_frames)),
    ("host_mark", None, |e| spelt(e.host_mark)),
    ("host_response", None, |e| spelt(&e.host_response)),
];

/// Keys of `OF_KERNEL` about pages of frames, in which a NIC without descriptor rings in memory keeps its frames.
const OF_PAGES: [&str; 3] = ["descriptors", "pool", "page"];

pub(super) fn unused(s: &Scenario) -> Check {
    if s.tenants.probe().is_some() {
        let default: RunSpec = serde_json::from_str("{\"load\": \"none\"}").expect("its other keys have defaults");
        return match given(&s.run, &[&default], &["load"]) {
            Some((key, value)) => Err(format!(
                "run.{key} = {value} has no effect: a directed test determines its length itself; leave it out"
            )),
            None => Ok(()),
        };
    }
    sizes(s)?;
    takers(s)?;
    duration(s)?;
    streams(s)?;
    pages(s)?;
    directions(s)
}

/// Checks that a device that moves data one way has no keys of the other way, and that an SSD whose pages no core accounts for
/// has no size of them.
fn directions(s: &Scenario) -> Check {
    for (i, p) in s.peripherals.iter().enumerate() {
        let both: [(&[&str], &str); 2] = match p {
            PeripheralSpec::Roce(nic) if nic.op == DmaDirection::P2mWrite => {
                [(&["tags", "quirks.transmit_buffer"], "with op = \"p2m_write\" the NIC reads no memory"), (&[], "")]
            }
            PeripheralSpec::Roce(_) => [
                (
                    &["receive_buffer", "quirks.xoff", "quirks.xon"],
                    "with op = \"p2m_read\" the NIC receives no packets",
                ),
                (&["quirks.pause_response", "propagation"], "with op = \"p2m_read\" the NIC pauses no peer"),
            ],
            PeripheralSpec::Ssd(ssd) => {
                let tags: &[_] = if ssd.op == DmaDirection::P2mWrite { &["tags"] } else { &[] };
                let page: &[_] = if ssd.cores == 0 { &["page"] } else { &[] };
                [
                    (tags, "with op = \"p2m_write\" the SSDs read no memory"),
                    (page, "no core accounts for pages without cores"),
                ]
            }
            _ => continue, // a NIC's directions are its rings'
        };
        let all = serde_json::to_value(p).unwrap_or_default();
        for (key, why) in both.iter().flat_map(|(keys, why)| keys.iter().map(move |key| (key, why))) {
            // A key is given if the rest of the table stands for another device.
            let (table, last) = key.rsplit_once('.').unwrap_or(("", key));
            let mut rest = all.clone();
            let at = if table.is_empty() { Some(&mut rest) } else { rest.get_mut(table) };
            let value = at.and_then(Value::as_object_mut).and_then(|t| t.remove(last));
            if serde_json::from_value::<PeripheralSpec>(rest).is_ok_and(|default| default != *p) {
                let value = value.unwrap_or_default();
                return Err(format!("peripheral[{i}].{key} = {value} has no effect: {why}; leave it out"));
            }
        }
    }
    Ok(())
}

/// Checks that no packet size is given together with an application that sets the size itself.
fn sizes(s: &Scenario) -> Check {
    let Some(packet) = s.traffic.packet else { return Ok(()) };
    for (i, t) in s.tenants.iter().enumerate().filter(|(_, t)| takes_packets(t)) {
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
    let alone = s.ccnic_tenant().is_some_and(|t| !s.tenant(t).has_overlay());
    let serving = matches!(s.tenant(i).app.work(), WorkSource::Packets) && s.tas_tenant().is_none();
    let p = &s.placement;
    for (key, given) in [
        ("traffic.spikes", t.spikes.is_some() && !serving),
        ("traffic.spread", (alone || s.tas_tenant().is_some()) && t.spread != SpreadSpec::Random),
        ("traffic.flows", alone && t.flows.is_some()),
        ("traffic.link", alone && t.link.is_some()),
        ("traffic.timeout", alone && t.timeout() != TrafficSpec::default().timeout()),
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
    if s.run.load == Load::None {
        return Ok(());
    }
    if s.tenants.iter().any(|t| t.origin() != Origin::Network) {
        let by_packets = |key: &str, v: &dyn Display, instead: &str| {
            format!("run.{key} = \"{v}\" is for scenarios without packets, and a tenant here sends its own; give run.{instead}")
        };
        need(s.run.time == span(), || by_packets("time", &s.run.time, "requests"))?;
        return s.run.warmup_time.map_or(Ok(()), |t| Err(by_packets("warmup_time", &t, "warmup_requests")));
    }
    let pings = s.tenants.iter().any(|t| matches!(t.app, AppSpec::Pingpong(_)));
    let counted = s.ccnic_tenant().is_some() || pings;
    let own = counted || s.tas_tenant().is_some();
    let served = s.tenants.iter().any(serves);
    let r = &s.run;
    let by_time = |key: &str, v: &dyn Display, instead: &str| {
        format!("run.{key} = \"{v}\" is for scenarios whose tenants serve no packets; give run.{instead} here")
    };
    let by_count = |key: &str, n: u64, instead: &str| {
        format!("run.{key} = {n} is for tenants that serve packets, and none here does; give run.{instead}")
    };
    if served || counted {
        need(r.time == span(), || by_time("time", &r.time, "requests"))?;
    }
    if served && !own || pings {
        r.warmup_time.map_or(Ok(()), |t| Err(by_time("warmup_time", &t, "warmup_requests")))?;
    }
    if !served && !own {
        need(r.requests == requests(), || by_count("requests", r.requests, "time"))?;
        let warm = r.warmup_requests.unwrap_or(0);
        need(warm == 0, || by_count("warmup_requests", warm, "warmup_time"))?;
    }
    need(r.warmup_requests.is_none() || r.warmup_time.is_none(), || {
        "run.warmup_requests and run.warmup_time are both given; keep one of them".into()
    })
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

/// Checks that an Ethernet NIC whose descriptor rings the kernel drives has no keys about pages of frames.
fn pages(s: &Scenario) -> Check {
    let default: EthernetSpec = serde_json::from_str("{}").expect("each key of it has a default");
    let known = [s.platform.ethernet.as_ref().unwrap_or(&default), &default];
    let driven = s.ringed_tenants().filter(|ring| matches!(ring.driver, RingDriver::Kernel(_)));
    for (_, nic) in driven.filter_map(|ring| s.nic_of(ring.tenant)) {
        let i = s.peripherals.iter().position(|p| p.ethernet() == Some(nic)).unwrap_or(0);
        for (key, instead, value) in OF_KERNEL.iter().filter(|k| OF_PAGES.contains(&k.0)) {
            let given = value(nic);
            need(known.iter().any(|k| value(k) == given), || {
                let what = instead.map_or("leave it out".into(), |key| format!("give {key}"));
                format!(
                    "peripheral[{i}].{key} = {given} is for frames in pages of memory, and this NIC's lie in buffers of its \
                     descriptor rings; {what}"
                )
            })?;
        }
    }
    Ok(())
}

/// Checks that an Ethernet NIC whose drivers all poll has no keys that only the kernel uses.
pub(super) fn interrupts(s: &Scenario) -> Check {
    let default: EthernetSpec = serde_json::from_str("{}").expect("each key of it has a default");
    let known = [s.platform.ethernet.as_ref().unwrap_or(&default), &default];
    let throttle = |e: &EthernetSpec| e.rings.as_ref().map(|r| r.quirks.throttle).unwrap_or_default();
    let polled = |nic: &EthernetSpec| {
        let mut drivers =
            s.ringed_tenants().filter(|r| s.nic_of(r.tenant).is_some_and(|(_, own)| ptr::eq(own, nic))).peekable();
        drivers.peek().is_some() && drivers.all(|r| matches!(r.driver, RingDriver::PollMode(_)))
    };
    let nics = s.peripherals.iter().enumerate().filter_map(|(i, p)| Some((i, p.ethernet()?)));
    for (i, nic) in nics.filter(|(_, nic)| polled(nic)) {
        need(known.iter().any(|k| throttle(k) == throttle(nic)), || {
            format!("peripheral[{i}].rings.quirks.throttle is for the kernel, and a poll-mode driver does not use it; leave it out")
        })?;
        for (key, instead, value) in OF_KERNEL {
            let given = value(nic);
            need(known.iter().any(|k| value(k) == given), || {
                let what = instead.map_or("leave it out".into(), |key| format!("give {key}"));
                format!(
                    "peripheral[{i}].{key} = {given} is for the kernel, and a poll-mode driver does not use it; {what}"
                )
            })?;
        }
    }
    Ok(())
}
