//! Checks of a scenario beyond its types: values that contradict each other.

use super::check_machines::{client, cores_of_nodes, second_threads, several_nodes, with_threads};
use super::check_mixture;
use super::check_precision::precision;
use super::check_ranges::ranges;
use super::check_stacks::{stacks, tcp};
use super::check_unused::{has_queue_pairs, interrupts, packets, streams, unused};
use super::scenario::{ArrivalsSpec, Load, Platform, ReplayTiming, Scenario, TenantSpec, WaysSpec};
use crate::app::block_stores::StoredTo;
use crate::app::recorded::ReplayOrder;
use crate::app::{AppSpec, Origin, WorkSource};
use crate::core::cpu::combining::MOST_BUFFERS;
use crate::core::l1_prefetch::MOST_LFB;
use crate::kernel::units::{OfferedRate, Size};
use crate::kernel::{Int, LineAddr, TenantId};
use crate::memory::nodes::MOST_CORES;
use crate::memory::siblings::THREADS;
use crate::memory::{tag, Agent, Inbound};
use crate::placement::idio::IdioSpec;
use crate::placement::{ddio, resq, DeviceKind, DeviceTransfer, Placement, PlacementPolicy, SweepTx, Ways};
use crate::probe::ProbeSpec;
use crate::stack::pmd::{PipelineSpec, Recycling};
use serde::Serialize;

pub(super) type Check = Result<(), String>;

pub(super) fn need(ok: bool, why: impl FnOnce() -> String) -> Check {
    if ok {
        Ok(())
    } else {
        Err(why())
    }
}

/// The word by which a scenario names a choice.
pub fn word(choice: impl Serialize) -> String {
    serde_json::to_value(choice).ok().and_then(|v| v.as_str().map(String::from)).unwrap_or_default()
}

/// Checks a scenario for values that are out of range, contradict each other, or have no effect.
///
/// # Errors
/// Returns one clause that names key, value and what would be valid.
pub fn check(s: &Scenario) -> Check {
    ranges(s)?;
    platform(&s.platform)?;
    names(s)?;
    placement(s)?;
    tenants(s)?;
    several_nodes(s)?;
    check_mixture::nics(s)?;
    peripherals(s)?;
    super::traffic::searched(s)?;
    let parts = check_mixture::parts(s);
    if parts.is_empty() {
        alone(s)?;
        interrupts(s)?;
        return packets(s);
    }
    parts.iter().try_for_each(|p| alone(&p.scenario).map_err(|why| p.place(why)))?;
    super::traffic::frames(&s.traffic)?;
    check_mixture::shared(s)?;
    interrupts(s)?;
    packets(s)?;
    streams(s)
}

/// Checks a scenario in which one tenant at most receives packets or has threads that work together.
fn alone(s: &Scenario) -> Check {
    stacks(s)?;
    tcp(s)?;
    traffic(s)?;
    client(s)?;
    unused(s)
}

/// Checks that no name is empty, because names appear in messages, tables and file names.
fn names(s: &Scenario) -> Check {
    let of_tenants = s.tenants.iter().map(|t| &t.name).chain(s.tenants.probe().map(|p| &p.name));
    let tenants = of_tenants.enumerate().map(|(i, name)| (format!("tenant[{i}].name"), name));
    for (key, name) in [("name".into(), &s.name)].into_iter().chain(tenants) {
        named(&key, name)?;
    }
    for (i, t) in s.tenants.iter().enumerate() {
        if let Some(first) = s.tenants[..i].iter().position(|other| other.name == t.name) {
            return Err(format!(
                "tenant[{i}].name = \"{}\" is the name of tenant[{first}], too; tables and columns tell tenants by their names",
                t.name
            ));
        }
    }
    Ok(())
}

fn named(key: &str, name: &str) -> Check {
    need(!name.trim().is_empty(), || format!("{key} = \"{name}\" is empty"))
}

fn positive(key: &str, v: u64) -> Check {
    need(v > 0, || format!("{key} = 0 must be positive"))
}

/// Checks the values of a platform, whatever scenario names it.
///
/// # Errors
/// Returns one clause whose keys begin with `platform`.
pub(super) fn platform(p: &Platform) -> Check {
    named("platform.name", &p.name)?;
    let counts = [
        ("platform.core.count", p.core.count),
        ("platform.core.width", p.core.width),
        ("platform.core.rob", p.core.rob),
        ("platform.core.lfb", p.core.lfb),
        ("platform.core.stores_per_line", p.core.stores_per_line),
        ("platform.caches.llc.ways", p.caches.llc.ways),
        ("platform.caches.llc.slices", p.caches.llc.slices),
        ("platform.caches.llc.write_buffer", p.caches.llc.write_buffer),
        ("platform.caches.l1d.ways", p.caches.l1d.ways),
        ("platform.caches.l2.ways", p.caches.l2.ways),
    ];
    for (key, v) in counts {
        positive(key, v.into())?;
    }
    let llc = &p.caches.llc;
    need(llc.quirks.nic_credits < llc.write_buffer, || {
        format!(
            "platform.caches.llc.quirks.nic_credits = {} must be below write_buffer = {}, or no core is ever admitted",
            llc.quirks.nic_credits, llc.write_buffer
        )
    })?;
    need(p.core.compute_ipc > 0.0 && p.core.compute_ipc <= f64::from(p.core.width), || {
        format!(
            "platform.core.compute_ipc = {} is not within 0 to platform.core.width = {}",
            p.core.compute_ipc, p.core.width
        )
    })?;
    for (key, v) in [
        ("platform.caches.l1d.size", p.caches.l1d.size),
        ("platform.caches.l2.size", p.caches.l2.size),
        ("platform.caches.llc.size", p.caches.llc.size),
    ] {
        positive(key, v.0)?;
    }
    need(p.core.store_queue >= p.core.stores_per_line, || {
        format!(
            "platform.core.store_queue = {} cannot hold the stores of one line, platform.core.stores_per_line = {}",
            p.core.store_queue, p.core.stores_per_line
        )
    })?;
    let nodes = p.nodes();
    nodes.check().map_err(|e| format!("platform.nodes.{e}"))?;
    let all = u64::from(nodes.count) * u64::from(p.cores_per_node());
    need(all <= MOST_CORES.into(), || {
        let (key, each) = (p.key_of_cores(), p.cores_per_node());
        format!("platform.{key} = {each} makes {all} cores; the snoop filter tracks {MOST_CORES}")
    })?;
    need((1..=THREADS).contains(&p.core.threads), || {
        format!("platform.core.threads = {} is not 1 or 2", p.core.threads)
    })?;
    need(p.core.lfb <= MOST_LFB, || format!("platform.core.lfb = {} is more than {MOST_LFB}", p.core.lfb))?;
    if let Some(e) = &p.ethernet {
        e.check().map_err(|e| format!("platform.ethernet.{e}"))?;
    }
    if let Some(t) = &p.core.stlb {
        t.check().map_err(|e| format!("platform.core.{e}"))?;
    }
    if let Some(n) = p.core.quirks.lfb_targets {
        need((1..=1024).contains(&n), || format!("platform.core.quirks.lfb_targets = {n} is not within 1 to 1024"))?;
    }
    if let Some(n) = p.core.quirks.combining_buffers {
        need((1..=MOST_BUFFERS).contains(&n), || {
            format!("platform.core.quirks.combining_buffers = {n} is not within 1 to {MOST_BUFFERS}")
        })?;
    }
    if let Some(n) = p.core.quirks.l2_mshrs {
        need((1..=100).contains(&n), || format!("platform.core.quirks.l2_mshrs = {n} is not within 1 to 100"))?;
    }
    if let Some(f) = &p.core.prefetch {
        f.check()
            .and_then(|()| f.check_mshrs(p.core.quirks.l2_mshrs))
            .map_err(|e| format!("platform.core.prefetch.{e}"))?;
    }
    if let Some(f) = &p.core.l1_prefetch {
        f.check().map_err(|e| format!("platform.core.l1_prefetch.{e}"))?;
    }
    let peak = p.memory.peak_gbs();
    need((0.0..=peak).contains(&p.background_read_gbs), || {
        format!(
            "platform.background_read_gbs = {} is not within 0 to {peak:.1}, what platform.memory.channels = {} of standard = \"{}\" carry",
            p.background_read_gbs,
            p.memory.channels,
            word(p.memory.standard)
        )
    })?;
    p.caches.check().map_err(|e| format!("platform.{e}"))?;
    if let Some(l) = &p.caches.llc.quirks.memory_link {
        l.check(nodes.count).map_err(|e| format!("platform.caches.llc.quirks.{e}"))?;
    }
    p.memory.plan().map(drop).map_err(|e| format!("platform.memory.{e}"))
}

fn placement(s: &Scenario) -> Check {
    let llc = s.platform.caches.llc.ways;
    PlacementPolicy::check(&s.placement, llc)?;
    s.placement.idio.as_ref().map_or(Ok(()), IdioSpec::check)?;
    let (is_idio, reads_tags) = (s.placement.policy == PlacementPolicy::Idio, s.placement.reads_tags());
    for (key, stray) in [
        ("mode", !is_idio && s.placement.mode.is_some()),
        ("idio", !is_idio && !reads_tags && s.placement.idio.is_some()),
    ] {
        need(!stray, || format!("placement.{key} needs placement.policy = \"idio\""))?;
    }
    need(s.placement.table.is_none() || s.placement.policy == PlacementPolicy::Table, || {
        "placement.table needs placement.policy = \"table\"".into()
    })?;
    need(!s.placement.reads_codes() || s.cores_per_node().to_usize() <= tag::CORES, || {
        let (cores, most) = (s.cores_per_node(), tag::CORES);
        format!(
            "placement.policy = \"{}\" has codes for {most} cores; a node of platform \"{}\" has {cores}",
            s.placement.policy.name(),
            s.platform.name
        )
    })?;
    let mut policy = Placement::new(&s.placement);
    for (agent, device) in
        [(Agent::Nic, DeviceKind::Nic), (Agent::Io, DeviceKind::Nic), (Agent::Io, DeviceKind::Storage)]
    {
        within(policy.write(&DeviceTransfer::of(agent, device, LineAddr(0))), llc)?;
    }
    policy_has_a_device(s)?;
    let r = &s.rings;
    need(r.rx_buffers.is_power_of_two(), || {
        let up = r.rx_buffers.max(1).next_power_of_two();
        format!("rings.rx_buffers = {} is not a power of two; the next one is {up}", r.rx_buffers)
    })?;
    positive("rings.tx_buffers", r.tx_buffers.into())?;
    for (key, n) in [("rings.rx_buffers", r.rx_buffers), ("rings.tx_buffers", r.tx_buffers)] {
        need(n <= 1 << 16, || format!("{key} = {n} is more than the 65536 supported"))?;
    }
    positive("rings.buffer_size", r.buffer_size.0)?;
    need(r.buffer_size.0 <= 64 << 10, || format!("rings.buffer_size = \"{}\" is more than 64 KiB", r.buffer_size))
}

/// Checks that the LLC has the ways that a placement policy names.
fn within(inbound: Inbound, llc: u32) -> Check {
    let (Inbound::Llc { ways } | Inbound::Hint { ways, .. }) = inbound else { return Ok(()) };
    need(ways & !ddio::low_ways(llc) == 0, || {
        let last = u32::BITS - 1 - ways.leading_zeros();
        format!("placement.policy names way {last} of the LLC, whose {llc} ways count from 0")
    })
}

/// Checks that there is a tenant that serves packets, where a policy concerns receive rings or transmit buffers of
/// queue pairs.
fn policy_has_a_device(s: &Scenario) -> Check {
    let p = &s.placement;
    let pairs = ["placement.resq = true", "rings.proactive_drop"];
    if s.tenants.iter().any(serves) || s.ccnic_tenant().is_some() {
        let paired = s.tenants.iter().any(has_queue_pairs) || s.tenants.iter().all(serves);
        let given = [p.resq, s.rings.proactive_drop > 0];
        return match pairs.iter().zip(given).find(|(_, given)| *given && !paired) {
            Some((key, _)) => Err(format!("{key} is for queue pairs, and no tenant here has any; leave it out")),
            None => Ok(()),
        };
    }
    let asked = [
        (pairs[0], p.resq, "caps receive rings of queue pairs"),
        ("placement.sweep_rx = true", p.sweep_rx, "relinquishes receive buffers of queue pairs"),
        ("placement.sweep_tx", p.sweep_tx != SweepTx::None, "sweeps transmit buffers of queue pairs"),
        (pairs[1], s.rings.proactive_drop > 0, "drops packets at queue pairs"),
    ];
    // The one sweep that a directed test makes.
    let own = s.tenants.probe().map(|t| match t.probe {
        ProbeSpec::DirectedRx(_) => asked[1].0,
        ProbeSpec::DirectedTx(_) => asked[2].0,
        _ => "",
    });
    match asked.iter().find(|(key, given, _)| *given && own != Some(*key)) {
        Some((key, _, what)) if own.is_some() => {
            Err(format!("{key} {what}, and this directed test does not use it; leave it out"))
        }
        Some((key, _, what)) => {
            Err(format!("{key} {what}, and no tenant here has any: leave it out, and beside a [[peripheral]] choose policy, ways or iat"))
        }
        None => Ok(()),
    }
}

/// Checks that the packets of a recorded program that is replayed by flow have flows.
fn replayed_by_flow(s: &Scenario, t: TenantId) -> Check {
    let AppSpec::Recorded(app) = &s.tenant(t).app else { return Ok(()) };
    let traffic = s.traffic_of(t);
    let told = traffic.flows.is_some() || traffic.arrivals() == ArrivalsSpec::Pcap;
    need(app.order != ReplayOrder::Flow || told, || {
        format!(
            "tenant[{}].app.order = \"flow\" needs packets with flows: give traffic.flows, or replay a capture",
            t.index()
        )
    })
}

fn tenants(s: &Scenario) -> Check {
    let probe = s.tenants.probe();
    need(!s.tenants.is_empty() || probe.is_some() || !s.peripherals.is_empty(), || {
        "tenant is missing: at least one [[tenant]] or [[peripheral]] must run".into()
    })?;
    let mut cores = 0u64;
    if let Some(p) = probe {
        cores += u64::from(p.cores);
        caches_of_cores(s, 0, p.cores, p.llc_ways.as_ref(), p.l2_size)?;
    }
    for (i, t) in s.tenants.iter().enumerate() {
        cores += u64::from(t.cores);
        caches_of_cores(s, i, t.cores, t.llc_ways.as_ref(), t.l2_size)?;
        if let Some(p) = t.stack.pipeline() {
            pipeline(s, t, p).map_err(|e| format!("tenant[{i}].pipeline: {e}"))?;
        }
        need(t.dscp < 64, || format!("tenant[{i}].dscp = {} is not within 0 to 63", t.dscp))?;
        t.app.check(t.cores).map_err(|e| format!("tenant[{i}].app: {e}"))?;
        replayed_by_flow(s, TenantId::new(i))?;
    }
    let nodes = s.nodes();
    if nodes.count > 1 {
        return cores_of_nodes(s, nodes.count, s.cores_per_node());
    }
    let (each, threads) = (u64::from(s.cores_per_node()), u64::from(s.platform.core.threads));
    let key = s.platform.key_of_cores();
    let (storage, nic) = (s.storage_cores(), s.peers().map(|p| u64::from(p.cores)).sum::<u64>());
    let asked = cores + storage + nic;
    need(asked <= each * threads, || {
        let ssds = match (storage, nic) {
            (0, 0) => String::new(),
            (n, 0) => format!(" and SSDs for {n}"),
            (_, n) => format!(" and their peers for {n}"),
        };
        let most = most_cores(s, |_| true);
        format!("tenants ask for {cores} cores{most}{ssds}; platform.{key} is {each}{}", with_threads(s))
    })?;
    if asked > each {
        second_threads(s, 0)
    } else {
        Ok(())
    }
}

/// Clause with the key and the value of the tenant that asks for the most cores, of those that `counts` accepts.
pub(super) fn most_cores(s: &Scenario, counts: impl Fn(&TenantSpec) -> bool) -> String {
    let of = s.tenants.iter().enumerate().filter(|(_, t)| counts(t));
    of.max_by_key(|(i, t)| (t.cores, std::cmp::Reverse(*i)))
        .map_or_else(String::new, |(i, t)| format!(" (tenant[{i}].cores = {})", t.cores))
}

/// Checks the number of cores of tenant `i`, and what they have of the caches.
fn caches_of_cores(s: &Scenario, i: usize, cores: u32, llc_ways: Option<&WaysSpec>, l2_size: Option<Size>) -> Check {
    positive(&format!("tenant[{i}].cores"), cores.into())?;
    let llc = &s.platform.caches.llc;
    let mask = ways(llc_ways, llc.ways).map_err(|e| format!("tenant[{i}].llc_ways: {e}"))?;
    need(mask & !llc.inclusive_mask() != 0, || {
        format!(
            "tenant[{i}].llc_ways are all among the {} of platform.caches.llc.quirks.inclusive_ways; choose others",
            llc.quirks.inclusive_ways
        )
    })?;
    let Some(size) = l2_size else { return Ok(()) };
    let mut h = s.platform.caches.clone();
    h.l2.size = size;
    positive(&format!("tenant[{i}].l2_size"), size.0)?;
    h.check().map_err(|e| format!("tenant[{i}].l2_size: {e}"))
}

/// Checks that two cores of a poll-mode driver can work as a pipeline.
fn pipeline(s: &Scenario, t: &TenantSpec, p: &PipelineSpec) -> Check {
    p.check(s.platform.poll_mode.as_ref().map_or(32, |c| c.burst))?;
    need(t.cores % 2 == 0, || format!("cores = {} are not pairs", t.cores))?;
    need(t.origin() == Origin::Network, || "the application sends packets of its own".into())?;
    need(!matches!(t.app, AppSpec::CliqueMap(_)), || {
        "replies of two segments take buffers at the second core of a pair, which only returns buffers to the pool; leave it out".into()
    })?;
    need(!s.placement.hints(), || {
        format!(
            "beside it placement.policy = \"{}\" has no core to name: a tag names one, and both cores of a pair have the buffers",
            s.placement.policy.name()
        )
    })
}

fn peripherals(s: &Scenario) -> Check {
    let p = &s.platform;
    for (i, d) in s.peripherals.iter().enumerate() {
        d.check().map_err(|e| format!("peripheral[{i}].{e}"))?;
    }
    if let Some(pcie) = &p.pcie {
        pcie.check().map_err(|e| format!("platform.pcie.{e}"))?;
        for (i, d) in s.peripherals.iter().enumerate() {
            let (tags, train) = (d.tags(), pcie.quirks.train);
            need(tags >= train, || {
                format!("peripheral[{i}].tags = {tags} is less than platform.pcie.quirks.train = {train}, lines that are read together")
            })?;
        }
    }
    if let Some(b) = &p.block {
        b.check().map_err(|e| format!("platform.block.{e}"))?;
    }
    need(p.block.is_some() || s.storage_cores() == 0, || {
        format!("cores of SSDs need platform.block, which platform \"{}\" lacks", p.name)
    })?;
    if let Some(iio) = &p.iio {
        positive("platform.iio.write_buffer", iio.write_buffer.into())?;
        positive("platform.iio.read_buffer", iio.read_buffer.into())?;
        let train = p.pcie.as_ref().map_or(1, |pcie| pcie.quirks.train);
        need(train <= iio.write_buffer.min(iio.read_buffer), || {
            format!(
                "platform.pcie.quirks.train = {train} is more than the entries of platform.iio.write_buffer = {} or read_buffer = {}",
                iio.write_buffer, iio.read_buffer
            )
        })?;
        need((1..=16).contains(&iio.count), || format!("platform.iio.count = {} is not within 1 to 16", iio.count))?;
        let header = iio.quirks.line_header.unwrap_or_default();
        need(header.0 <= iio.line_interval.0, || {
            format!(
                "platform.iio.quirks.line_header = \"{header}\" is more than line_interval = \"{}\"",
                iio.line_interval
            )
        })?;
        positive("platform.iio.quirks.write_back_buffer", iio.quirks.write_back_buffer.into())?;
    }
    if s.peripherals.is_empty() {
        let asks = |t: &TenantSpec| matches!(&t.app, AppSpec::BlockStores(b) if b.target == StoredTo::WcDevice);
        let asking = s.find_tenant(asks).or(probes_device(s).then_some(TenantId(0)));
        return need(asking.is_none(), || {
            format!(
                "tenant[{}].app uses a device, and none is there: give a [[peripheral]]",
                asking.unwrap_or_default()
            )
        });
    }
    need(p.iio.is_some() && p.pcie.is_some(), || {
        format!("peripherals need platform.iio and platform.pcie, which platform \"{}\" lacks", p.name)
    })?;
    need(s.placement.policy != PlacementPolicy::Ideal, || {
        "placement.policy = \"ideal\" is for the NIC's buffers; with peripherals choose dma or ddio".into()
    })
}

/// Way mask of a tenant's fills into the LLC.
///
/// # Errors
/// Returns one clause with the value and what would be valid.
pub fn ways(given: Option<&WaysSpec>, of: u32) -> Result<u32, String> {
    let all = ddio::low_ways(of);
    match given {
        None => Ok(all),
        Some(WaysSpec::Count(n)) if (1..=of).contains(n) => Ok(all & !ddio::low_ways(of - n)),
        Some(WaysSpec::Count(n)) => Err(format!("{n} is not within 1 to {of}{}", as_mask(*n, of))),
        Some(WaysSpec::Range(r)) => match Ways::parse(r) {
            Ok(w) if w.first + w.count <= of => Ok(w.mask()),
            Ok(_) => Err(format!("\"{r}\" is not within the ways \"0-{}\"", of - 1)),
            Err(why) => Err(why),
        },
    }
}

/// Text `; the ways of mask 0xf are "0-3"` for a number beyond the `of` ways of an LLC that is a mask of some of them, or an
/// empty text.
fn as_mask(n: u32, of: u32) -> String {
    let ways = Ways::of_mask(n).filter(|w| n > of && w.first + w.count <= of);
    ways.map_or(String::new(), |w| format!("; the ways of mask {n:#x} are \"{}\"", w.range()))
}

/// Whether a tenant serves packets.
pub fn serves(t: &TenantSpec) -> bool {
    t.work() == WorkSource::Packets
}

/// Whether the cores of a tenant access a device's registers or memory without caches.
pub(super) fn past_caches(t: &TenantSpec) -> bool {
    matches!(t.app, AppSpec::BlockStores(_))
}

/// Whether the scenario is a directed probe of a device's registers.
pub(super) fn probes_device(s: &Scenario) -> bool {
    s.tenants.probe().is_some_and(|p| matches!(p.probe, ProbeSpec::ProbeDevice(_)))
}

/// Valid values of `traffic.arrivals`, as a list.
fn arrivals() -> String {
    use ArrivalsSpec::{Burst, Closed, Fixed, KeepDepth, LogNormal, Pareto, Pcap, Poisson, Uniform};
    [Poisson, Fixed, Uniform, LogNormal, Pareto, Burst, Closed, KeepDepth, Pcap].map(word).join(", ")
}

fn traffic(s: &Scenario) -> Check {
    let t = &s.traffic;
    if s.tenants.probe().is_some() {
        return need(s.run.load == Load::None, || {
            "a directed test is the only tenant and has run.load = \"none\"".into()
        });
    }
    super::traffic::check(s)?;
    let serving = s.tenants.iter().filter(|t| serves(t)).count();
    if let Some(sp) = &t.spikes {
        need((0.0..=1.0).contains(&sp.probability), || {
            format!("traffic.spikes.probability = {} is not within 0 to 1", sp.probability)
        })?;
        need(sp.min <= sp.max, || format!("traffic.spikes.min = \"{}\" is above max = \"{}\"", sp.min, sp.max))?;
    }
    positive("run.requests", s.run.requests)?;
    need(s.run.time.0 <= crate::kernel::Time::END.0, || format!("run.time = \"{}\" is above 12 days", s.run.time))?;
    if let Some(t) = s.run.timeline {
        need(t.0 >= 10_000, || format!("run.timeline = \"{t}\" is below 10 ns"))?;
    }
    if let Some(t) = s.run.trace {
        need(t.0 >= 10_000, || format!("run.trace = \"{t}\" is below 10 ns"))?;
    }
    need(s.run.slo_multiple > 0.0, || format!("run.slo_multiple = {} must be positive", s.run.slo_multiple))?;
    precision(&s.run)?;
    need(s.run.search_tolerance > 0.0 && s.run.search_tolerance < 0.5, || {
        format!("run.search_tolerance = {} is not above 0 and below 0.5", s.run.search_tolerance)
    })?;
    let search = s.run.load.searches();
    if serving == 0 {
        need(!search, || "run.load searches for a rate of packets, and no tenant serves any; choose saturate".into())?;
        need(s.run.load == Load::None || s.run.time.0 > 0, || "run.time = \"0 ps\" must be positive".into())?;
    }
    let own = s.find_tenant(|t| t.origin() != Origin::Network);
    if let Some(i) = own {
        let (stack, driver) = (&s.tenant(i).stack, s.tenant(i).stack.poll_mode());
        let socket = s.tenant(i).origin() == Origin::Due && stack.is_kernel();
        need(socket || driver.is_some(), || {
            format!("tenant[{i}].app sends packets of its own, which needs stack = \"poll_mode\"")
        })?;
        need(driver.is_none_or(|d| d.recycling == Recycling::RunToCompletion), || {
            format!("tenant[{i}].recycling is of packets that come, and its app sends its own; leave it out")
        })?;
        let free = t.arrivals() == ArrivalsSpec::None && matches!(s.run.load, Load::Fixed | Load::None);
        need(free || matches!(s.tenant(i).origin(), Origin::Due | Origin::Loop), || {
            format!(
                "tenant[{i}].app sends packets of its own: give traffic.arrivals = \"none\" and run.load = \"fixed\""
            )
        })?;
    }
    if serving > 0 && s.run.load != Load::None && own.is_none() {
        need(t.arrivals() != ArrivalsSpec::None, || {
            format!(
                "traffic.arrivals = \"none\", which it is by default, leaves a tenant that serves packets without any (valid: {})",
                arrivals()
            )
        })?;
    }
    match t.arrivals() {
        ArrivalsSpec::Poisson
        | ArrivalsSpec::Fixed
        | ArrivalsSpec::Uniform
        | ArrivalsSpec::LogNormal
        | ArrivalsSpec::Pareto
        | ArrivalsSpec::Burst => {
            need(s.run.load != Load::Saturate, || {
                "run.load = \"saturate\" needs traffic.arrivals = \"keep_depth\"".into()
            })?;
            let free = search || s.run.load == Load::None || t.burst_period().is_some();
            need(free || t.rate().is_some(), || "traffic.rate is missing (such as \"10 Mrps\")".into())?;
            need(free || !t.rate().is_some_and(OfferedRate::is_zero), || "traffic.rate = 0 must be positive".into())?;
            need(t.arrivals() != ArrivalsSpec::Burst || t.burst() > 0, || {
                "traffic.burst = 0 must be positive for bursts".into()
            })?;
        }
        ArrivalsSpec::Closed => {
            positive("traffic.outstanding", t.outstanding().into())?;
            need(!search, || "run.load searches for a rate, which traffic.arrivals = \"closed\" has not".into())?;
            if let Some(i) = s.find_tenant(|t| serves(t) && !t.app.answers()) {
                return Err(format!(
                    "traffic.arrivals = \"closed\" waits for replies, and the application of tenant[{i}] never sends any, so that each \
                     request would take traffic.timeout; choose \"keep_depth\", \"poisson\" or \"fixed\""
                ));
            }
        }
        ArrivalsSpec::KeepDepth => {
            positive("traffic.depth", t.depth().into())?;
            let (key, most) = match s.ringed() {
                Some(p) => ("rings.receive of the NIC", p.rings.receive),
                None => ("rings.rx_buffers", s.rings.rx_buffers),
            };
            need(t.depth() <= most, || format!("traffic.depth = {} is more than {key} = {most}", t.depth()))?;
            need(!search, || "run.load searches for a rate, which traffic.arrivals = \"keep_depth\" has not".into())?;
        }
        ArrivalsSpec::Pcap => {
            let Some(p) = t.pcap() else {
                return Err("traffic.pcap is missing: the capture to replay".into());
            };
            need(p.timing == ReplayTiming::Original || t.rate().is_some() || search, || {
                "traffic.rate is missing: traffic.pcap.timing overrides the captured schedule".into()
            })?;
            need(serving == 1, || "traffic.arrivals = \"pcap\" needs a tenant that serves packets".into())?;
        }
        ArrivalsSpec::None => {}
    }
    let memcached = s.find_tenant(|t| matches!(t.app, AppSpec::Memcached(_)));
    if let Some(i) = memcached.filter(|_| t.arrivals() != ArrivalsSpec::Pcap) {
        return Err(format!("tenant[{i}].app of kind \"memcached\" needs traffic.arrivals = \"pcap\""));
    }
    for (i, tenant) in s.tenant_ids().zip(&s.tenants) {
        // The largest packet of a capture is known only when the capture is read.
        let drawn = (t.arrivals() != ArrivalsSpec::Pcap).then(|| Size(s.traffic.frame_sizes().0));
        let Some(largest) = tenant.app.largest(drawn) else { continue };
        if let Some(ring) = s.ring_of(i) {
            need(largest <= ring.rings.buffer_size, || {
                format!("{} does not hold a packet of \"{largest}\"", s.frame_room(&ring))
            })?;
            continue;
        }
        if tenant.stack.ccnic().is_some() {
            continue; // its buffers are CC-NIC's
        }
        need(largest <= s.rings.buffer_size, || {
            format!("rings.buffer_size = \"{}\" does not hold a packet of \"{largest}\"", s.rings.buffer_size)
        })?;
    }
    Ok(())
}

/// Number of receive buffers of each of `tenant`'s cores, after mitigations that limit them.
pub fn rx_buffers(s: &Scenario, tenant: TenantId) -> u32 {
    s.ring_of(tenant).map_or_else(|| pair_buffers(s), |p| p.rings.receive)
}

/// Number of receive buffers of each queue pair, after mitigations that limit them.
pub fn pair_buffers(s: &Scenario) -> u32 {
    if !s.placement.resq {
        return s.rings.rx_buffers;
    }
    let llc = &s.platform.caches.llc;
    let share = ddio::capacity(llc.size.0, s.placement.ways.count, llc.ways);
    let probe = s.tenants.probe().map_or(0, |p| p.cores);
    let cores = probe + s.tenants.iter().filter(|t| serves(t)).map(|t| t.cores).sum::<u32>();
    resq::ring(s.rings.rx_buffers, cores, s.rings.buffer_size.0, share)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A user's own policy may compute its ways; a policy that names too many ways must not lose lines.
    #[test]
    fn a_policy_that_names_more_ways_than_there_are_is_one_sentence() {
        assert_eq!(within(Inbound::Llc { ways: 0xfff }, 12), Ok(()));
        assert_eq!(within(Inbound::Dram, 12), Ok(()));
        let said = within(Inbound::Llc { ways: 0x1fff }, 12).unwrap_err();
        assert_eq!(said, "placement.policy names way 12 of the LLC, whose 12 ways count from 0");
        let said = within(Inbound::Llc { ways: 1 << 31 }, 11).unwrap_err();
        assert_eq!(said, "placement.policy names way 31 of the LLC, whose 11 ways count from 0");
    }
}
