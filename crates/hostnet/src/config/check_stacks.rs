//! Checks of the stacks that hand packets to tenants: drivers, the kernel and CC-NIC, with the requirements of each.

use super::check::{need, past_caches, probes_device, serves, word, Check};
use super::scenario::{ArrivalsSpec, Load, PeripheralSpec, RingDriver, Scenario, SpreadSpec, TenantSpec, TenantStack};
use crate::app::{AppSpec, WorkSource};
use crate::device::nic::DATA_ROOM;
use crate::kernel::units::Size;
use crate::kernel::TenantId;
use crate::probe::ProbeSpec;
use crate::stack::ccnic::spec::{CcnicMode, CcnicSpec, NicKind, NicReads, Wake};

/// Checks that each tenant has a stack, and that the scenario has all that the stack requires.
pub(super) fn stacks(s: &Scenario) -> Check {
    for (i, t) in s.tenants.iter().enumerate() {
        let gathers = matches!(t.app, AppSpec::CliqueMap(_));
        need(!gathers || t.stack.poll_mode().is_some() || t.stack.ccnic().is_some(), || {
            format!(
                "tenant[{i}].app of kind \"clique_map\" needs stack = \"poll_mode\" or \"ccnic\", which send replies of two segments"
            )
        })?;
        let key = || format!("tenant[{i}].stack");
        match (&t.stack, t.work()) {
            (TenantStack::Implied | TenantStack::Frames { .. }, _) => {}
            (TenantStack::Ccnic(_) | TenantStack::Overlay { .. }, _) => {}
            (TenantStack::QueuePair, WorkSource::Packets) => {}
            (TenantStack::Extension { stack: e, nic }, WorkSource::Packets) => {
                e.factory().check(&e.keys, t.cores).map_err(|why| format!("{}: {why}", key()))?;
                need(t.receivers() >= 1 && t.receivers() <= t.cores, || {
                    format!("{}: {} of {} cores receive packets", key(), t.receivers(), t.cores)
                })?;
                if let Some(nic) = nic {
                    need(e.factory().drives_rings(), || {
                        format!(
                            "tenant[{i}].nic = \"{nic}\": the stack \"{}\" takes packets from queue pairs of the integrated NIC; leave \
                             it out",
                            e.name
                        )
                    })?;
                    driver(s, TenantId::new(i))?;
                }
            }
            (_, WorkSource::Own) => return Err(format!("{}: the application receives no packets", key())),
            (TenantStack::QueuePair | TenantStack::PollMode(_) | TenantStack::Extension { .. }, WorkSource::Kernel) => {
                return Err(format!("{}: the application receives through the kernel only", key()))
            }
            (TenantStack::Kernel { .. } | TenantStack::PollMode(_), WorkSource::Packets)
            | (TenantStack::Kernel { .. }, WorkSource::Kernel) => driver(s, TenantId::new(i))?,
        }
    }
    tas(s)?;
    ccnic(s)?;
    looped(s)?;
    pairs(s)?;
    probe(s)?;
    flow_director(s)?;
    let rings = s.peripherals.iter().position(|p| p.ethernet().is_some_and(|e| e.rings.is_some()));
    let receiver = s.find_tenant(|t| matches!(t.stack, TenantStack::Frames { .. }));
    match (rings, receiver) {
        (Some(i), Some(t)) => Err(format!(
            "peripheral[{i}].rings are for drivers, and tenant[{t}] receives frames with a completion each; give it stack = \
             \"kernel\" or leave them out"
        )),
        _ => Ok(()),
    }
}

/// Checks that the node of the other threads of pairs exists.
fn pairs(s: &Scenario) -> Check {
    let Some(t) = s.paired_tenant() else { return Ok(()) };
    let (last, node) = (s.nodes().count - 1, s.peers_of(t).map_or(0, |p| p.node));
    need(node <= last, || format!("tenant[{t}].app.peer_node = {node} does not exist: nodes count from 0 to {last}"))
}

/// Checks that the directed test of load latency has the cores and the nodes that it needs.
fn probe(s: &Scenario) -> Check {
    let Some(t) = s.tenants.probe() else { return Ok(()) };
    let ProbeSpec::ProbeLatency(of) = &t.probe else { return Ok(()) };
    need(t.cores == 3, || {
        format!("tenant[0].cores = {}: probe_latency has 3, two of the first node and one of the last", t.cores)
    })?;
    need(s.nodes().count == 1 || s.cores_per_node() > 1, || {
        "platform.nodes.cores = 1: probe_latency needs two cores of the first node".into()
    })?;
    need(s.nodes().count > 1 || !of.place.is_remote(), || {
        format!("tenant[0].app.place = \"{}\" needs platform.nodes.count = 2", word(of.place))
    })
}

/// Checks that TAS runs over a poll-mode driver or an overlay of CC-NIC, and that its clients are a closed loop.
fn tas(s: &Scenario) -> Check {
    let Some(i) = s.tas_tenant() else { return Ok(()) };
    let (t, key) = (&s.tenant(i), format!("tenant[{i}].app of kind \"tcp_echo\""));
    need(t.stack.poll_mode().is_some() || t.has_overlay(), || {
        format!("{key} needs stack = \"poll_mode\", or \"ccnic\" with ccnic.mode = \"overlay\"")
    })?;
    need(s.traffic.arrivals() == ArrivalsSpec::Closed && s.traffic.outstanding() == t.requests(), || {
        format!(
            "{key} needs traffic.arrivals = \"closed\" and outstanding = {}, which is flows x pipelined",
            t.requests()
        )
    })?;
    need(s.traffic.flows.is_none(), || format!("traffic.flows is for other applications; {key} has its own"))?;
    need(s.client.is_none(), || {
        format!("[client] beside {key}: a load generator sends datagrams, and TAS answers segments of TCP connections")
    })?;
    need(t.stack.pipeline().is_none(), || {
        format!("tenant[{i}].pipeline is for other applications; {key} has its own")
    })?;
    need(s.run.load == Load::Fixed && s.run.warmup_requests.is_some(), || {
        format!("{key} needs run.load = \"fixed\" and run.warmup_requests")
    })
}

/// Checks that a tenant on CC-NIC has packets and the threads that move them.
fn ccnic(s: &Scenario) -> Check {
    let loopback = s.find_tenant(|t| matches!(t.app, AppSpec::Loopback(_)) && !t.loops());
    let Some(i) = s.ccnic_tenant() else {
        if let Some(i) = loopback {
            return Err(format!("tenant[{i}].app of kind \"loopback\" needs stack = \"ccnic\" or \"poll_mode\""));
        }
        return need(s.ccnic.is_none(), || "ccnic needs a tenant with stack = \"ccnic\"".into());
    };
    let key = format!("tenant[{i}].stack = \"ccnic\"");
    let (t, c, app) = (&s.traffic, s.ccnic_of(i), &s.tenant(i).app);
    let (mode, kind) = (word(c.mode), app.kind());
    need(loopback.is_some() || app.work() == WorkSource::Packets, || {
        format!("{key}: the application of kind \"{kind}\" receives no packets of a NIC; leave stack out")
    })?;
    let last = s.nodes().count - 1;
    need(c.nic_node <= last, || {
        format!("ccnic.nic_node = {} does not exist: nodes count from 0 to {last}", c.nic_node)
    })?;
    if c.mode == CcnicMode::Overlay {
        return overlay(s, i, &c);
    }
    need(matches!(t.arrivals(), ArrivalsSpec::Closed | ArrivalsSpec::Fixed | ArrivalsSpec::Poisson), || {
        format!("{key} with ccnic.mode = \"{mode}\" needs traffic.arrivals = \"closed\", \"fixed\" or \"poisson\"")
    })?;
    let sized = t.packet.is_some() || t.sizes.is_some();
    let AppSpec::Loopback(app) = app else {
        need(c.mode == CcnicMode::Forward, || {
            format!(
                "ccnic.mode = \"loopback\" returns what the host sends, and the application of kind \"{kind}\" sends nothing of its \
                 own; give ccnic.mode = \"forward\" for packets from a wire, or \"overlay\" for those of a PCIe NIC"
            )
        })?;
        need(!matches!(app, AppSpec::TcpEcho(_)), || {
            format!(
                "{key}: TCP's segments come from clients, which ccnic.mode = \"forward\" has none of; give \"overlay\""
            )
        })?;
        need(c.nic_reads == NicReads::Payload, || {
            format!(
                "ccnic.nic_reads = \"header\" is for packets that the host returns as they are, and the application of kind \
                 \"{kind}\" may write all of an answer; leave it out"
            )
        })?;
        let largest = app.largest(Some(Size(t.frame_sizes().0))).unwrap_or_default().0;
        one_buffer(&c, largest)?;
        return modes_without_a_port(s, i, &c, largest);
    };
    need(!sized, || {
        format!("traffic.packet and traffic.sizes are for other applications; {key} takes the app's own sizes")
    })?;
    modes_without_a_port(s, i, &c, app.bytes.0)
}

/// Checks the interface `c` of `tenant`, whose packets of up to `largest` bytes come through no port.
fn modes_without_a_port(s: &Scenario, tenant: TenantId, c: &CcnicSpec, largest: u64) -> Check {
    let (cores, dscp) = (s.tenant(tenant).cores, s.tenant(tenant).dscp);
    need(dscp == 0, || {
        format!("tenant[{tenant}].dscp = {dscp} is of packets that a device places, and threads store those of CC-NIC; leave it out")
    })?;
    if let Some(n) = c.nic_threads {
        several_pairs(c, n, cores).map_err(|e| format!("ccnic.nic_threads = {n} {e}"))?;
    }
    need(!s.tenants.iter().any(serves) && s.peripherals.is_empty(), || {
        format!("tenant[{tenant}].stack = \"ccnic\" beside other packets or a [[peripheral]] needs ccnic.mode = \"overlay\"")
    })?;
    c.check(cores, largest).map_err(|e| format!("ccnic.{e}"))
}

/// Checks that a buffer holds a packet of `bytes` bytes, which an application reads at successive addresses.
fn one_buffer(c: &CcnicSpec, bytes: u64) -> Check {
    need(bytes <= c.large_room(), || {
        let (has, fits) = (c.quirks.large_buffer, c.buffer_for(bytes));
        format!(
            "ccnic.quirks.large_buffer = \"{has}\" does not hold a packet of {bytes} B, which the application reads at successive addresses; give \
             \"{fits}\""
        )
    })
}

/// Checks that threads of the NIC can serve several queue pairs each.
fn several_pairs(c: &CcnicSpec, threads: u32, cores: u32) -> Check {
    need((1..=cores).contains(&threads), || {
        format!("is not within 1 to the tenant's {cores} cores, each of which has a queue pair")
    })?;
    need(threads == cores || c.nic == NicKind::Software, || {
        "with nic = \"agent\": an agent of several queue pairs is not built yet; leave nic_threads out".into()
    })?;
    need(threads == cores || c.wake == Wake::Polling, || {
        "with wake = \"event\": an event is a write of one line that the thread keeps, and a thread of several queue pairs has a \
         line of each to look at; give wake = \"polling\", or leave nic_threads out"
            .into()
    })
}

/// Checks that a NIC in loopback mode has a generator on the host, and that nothing else sends packets.
fn looped(s: &Scenario) -> Check {
    let nic = s.peripherals.iter().position(|p| p.ethernet().is_some_and(|e| e.loopback));
    let tenant = s.find_tenant(TenantSpec::loops);
    let (i, t) = match (tenant, nic) {
        (None, None) => return Ok(()),
        (None, Some(i)) => {
            return Err(format!(
                "peripheral[{i}].loopback = true needs a tenant with stack = \"poll_mode\" and app of kind \"loopback\"; leave it out"
            ))
        }
        (Some(i), None) => {
            return Err(format!(
                "tenant[{i}].app of kind \"loopback\" with stack = \"poll_mode\" needs loopback = true of the [[peripheral]], which \
                 returns its frames"
            ))
        }
        (Some(i), Some(_)) => (i, &s.traffic),
    };
    let key = format!("tenant[{i}].app of kind \"loopback\"");
    need(matches!(t.arrivals(), ArrivalsSpec::Closed | ArrivalsSpec::Fixed | ArrivalsSpec::Poisson), || {
        format!(
            "traffic.arrivals = \"{}\": {key} needs \"closed\", \"fixed\" or \"poisson\", as under CC-NIC",
            word(t.arrivals())
        )
    })?;
    for (key_of, given) in [
        ("traffic.packet", t.packet.is_some()),
        ("traffic.sizes", t.sizes.is_some()),
        ("traffic.flows", t.flows.is_some()),
        ("traffic.link", t.link.is_some()),
        ("traffic.spread", t.spread != SpreadSpec::Random),
        ("client", s.client.is_some()),
    ] {
        need(!given, || format!("{key_of} is for packets from outside, and {key} sends its own; leave it out"))?;
    }
    need(matches!(s.run.load, Load::Fixed | Load::None), || {
        format!("run.load = \"{}\": {key} needs \"fixed\"", word(s.run.load))
    })?;
    let AppSpec::Loopback(app) = &s.tenant(i).app else { return Ok(()) };
    need((LEAST..=DATA_ROOM).contains(&app.bytes.0), || {
        format!(
            "tenant[{i}].app.bytes = \"{}\" is not within {LEAST} B, the least frame less its check sequence, to the {DATA_ROOM} B of \
             an mbuf",
            app.bytes
        )
    })
}

/// Bytes in memory of the shortest Ethernet frame, without the check sequence, which the NIC removes (IEEE 802.3,
/// 3.2.7).
const LEAST: u64 = 60;

/// Checks that an overlay has a PCIe NIC at the NIC's node, a server of packets, and room for whole packets.
fn overlay(s: &Scenario, tenant: TenantId, c: &CcnicSpec) -> Check {
    let key = "ccnic.mode = \"overlay\"";
    let t = &s.tenant(tenant);
    need(!matches!(t.app, AppSpec::Loopback(_)), || {
        format!("{key}: the PCIe NIC returns nothing that the application of kind \"loopback\" sends; give mode = \"loopback\"")
    })?;
    need(s.traffic.arrivals() != ArrivalsSpec::KeepDepth, || {
        format!("traffic.arrivals = \"keep_depth\" fills queues of a NIC, which the threads of {key} empty; choose \"closed\"")
    })?;
    driver(s, tenant)?;
    let nic = s.nic_of(tenant).map_or(0, |(_, nic)| nic.node.into());
    need(c.nic_node == nic, || {
        format!(
            "{key} needs nic_node = {nic}, where the PCIe NIC is attached; the tenant's cores are those of its node"
        )
    })?;
    let polling = t.receivers();
    let threads = c.nic_threads.unwrap_or(polling);
    need(threads >= polling, || {
        format!(
            "ccnic.nic_threads = {threads} is fewer than the tenant's {polling} cores that poll, each of which has a queue pair"
        )
    })?;
    need(s.run.load == Load::Fixed, || format!("{key} needs run.load = \"fixed\""))?;
    let room = s.ring_of(tenant).map_or(DATA_ROOM, |r| r.rings.buffer_size.0);
    one_buffer(c, room)?;
    c.check(threads, room).map_err(|e| format!("ccnic.{e}"))
}

/// Checks that flow-director rules are for flows that the generator has, and for queues of the cores that poll.
fn flow_director(s: &Scenario) -> Check {
    for (i, nic) in s.peripherals.iter().enumerate() {
        let Some(nic) = nic.ethernet().filter(|e| !e.flow_director.is_empty()) else { continue };
        let key = format!("peripheral[{i}].flow_director");
        let driver = s.tenants.iter().find(|t| t.stack.poll_mode().is_some());
        let Some(driver) = driver else {
            return Err(format!("{key} is for a NIC under a poll-mode driver; give a tenant stack = \"poll_mode\""));
        };
        let random = !matches!(s.traffic.arrivals(), ArrivalsSpec::Pcap | ArrivalsSpec::KeepDepth);
        let Some(flows) = s.traffic.flows.filter(|_| random) else {
            return Err(format!("{key} needs traffic.flows, and arrivals that draw from them"));
        };
        for (j, r) in nic.flow_director.iter().enumerate() {
            need(r.flow < flows, || {
                format!("{key}[{j}].flow = {} is not within 0 to {}, the flows of traffic.flows", r.flow, flows - 1)
            })?;
            need(u32::from(r.queue) < driver.receivers(), || {
                let (queue, last) = (r.queue, driver.receivers() - 1);
                format!(
                    "{key}[{j}].queue = {queue} is not within 0 to {last}, one for each core of \"{}\"",
                    driver.name
                )
            })?;
            need(nic.flow_director[..j].iter().all(|o| o.flow != r.flow), || {
                format!("{key}[{j}].flow = {} has a queue already; leave one of the two out", r.flow)
            })?;
        }
    }
    Ok(())
}

/// Checks a driver of a NIC with descriptor rings in memory.
fn driver(s: &Scenario, tenant: TenantId) -> Check {
    let (name, tables): (_, &[_]) = match &s.tenant(tenant).stack {
        TenantStack::Kernel { .. } => {
            ("kernel", &[("tcp", s.platform.tcp.is_some()), ("udp", s.platform.udp.is_some())])
        }
        TenantStack::Extension { stack, .. } => (stack.name.as_str(), &[("poll_mode", s.platform.poll_mode.is_some())]),
        TenantStack::Overlay { .. } => ("ccnic", &[("poll_mode", s.platform.poll_mode.is_some())]),
        _ => ("poll_mode", &[("poll_mode", s.platform.poll_mode.is_some())]),
    };
    let key = || format!("tenant[{tenant}].stack = \"{name}\"");
    let nics = s.peripherals.iter().filter(|p| p.ethernet().is_some()).count();
    need(nics == 1, || format!("{} needs one [[peripheral]] of kind \"ethernet\"; here are {nics}", key()))?;
    let missing: Vec<_> = tables.iter().filter(|t| !t.1).map(|(table, _)| format!("platform.{table}")).collect();
    need(missing.is_empty(), || {
        format!("{} needs {}, which platform \"{}\" lacks", key(), missing.join(" and "), s.platform.name)
    })?;
    match s.ringed().map(|ringed| (ringed.driver, ringed.rings)) {
        Some((RingDriver::PollMode(costs), rings)) => {
            costs.check().and_then(|()| costs.check_with(&rings)).map_err(|e| format!("platform.poll_mode.{e}"))?;
        }
        Some((RingDriver::Kernel(costs), rings)) => {
            costs.udp.check().map_err(|e| format!("platform.udp.{e}"))?;
            let nics = s.peripherals.iter().enumerate();
            let (i, nic) = nics.filter_map(|(i, p)| Some((i, p.ethernet()?))).next().expect("a driver has a NIC");
            need(
                s.tenant(tenant).app.work() != WorkSource::Kernel || nic.frame_bytes() <= rings.buffer_size.0,
                || {
                    format!(
                    "peripheral[{i}].mtu = \"{}\" makes frames of {} B, which do not fit peripheral[{i}].rings.buffer_size = \"{}\"",
                    nic.mtu,
                    nic.frame_bytes(),
                    rings.buffer_size
                )
                },
            )?;
            need(s.traffic.arrivals() != ArrivalsSpec::KeepDepth, || {
                format!(
                    "traffic.arrivals = \"keep_depth\" fills queues of a NIC, which {} empties; choose closed",
                    key()
                )
            })?;
        }
        None => {}
    }
    let p = &s.placement;
    let asked = [("placement.resq = true", p.resq), ("rings.proactive_drop", s.rings.proactive_drop > 0)];
    match asked.iter().find(|a| a.1) {
        Some((what, _)) => Err(format!("{what} is for queue pairs, and {} has none", key())),
        None => Ok(()),
    }
}

/// Checks that a TCP receiver is one tenant with one NIC, the kernel's costs and the senders.
pub(super) fn tcp(s: &Scenario) -> Check {
    let receivers = s.tenants.iter().filter(|t| matches!(t.app, AppSpec::TcpReceive(_)));
    let nics = s.peripherals.iter().filter(|p| matches!(p, PeripheralSpec::Ethernet(_)));
    let (tenants, nics) = (receivers.count(), nics.count());
    for (i, p) in s.peripherals.iter().enumerate() {
        let (PeripheralSpec::Ethernet(e), Some(iio)) = (p, &s.platform.iio) else { continue };
        let response = e.host_response.as_ref().map(|r| r.occupancy);
        for (key, entries) in [("host_mark", e.host_mark), ("host_response.occupancy", response)] {
            need(entries.is_none_or(|n| n <= iio.write_buffer), || {
                let (n, most) = (entries.unwrap_or(0), iio.write_buffer);
                format!("peripheral[{i}].{key} = {n} is more than the {most} entries of platform.iio.write_buffer")
            })?;
        }
    }
    if let Some(t) = &s.platform.tcp {
        t.check().map_err(|e| format!("platform.tcp.{e}"))?;
    }
    if let Some(d) = &s.traffic.dctcp {
        d.check().map_err(|e| format!("traffic.dctcp.{e}"))?;
    }
    let others = s.ringed().is_some() || s.tenants.iter().any(past_caches) || probes_device(s);
    if tenants + nics == 0 || (tenants == 0 && others) {
        return need(s.traffic.dctcp.is_none(), || {
            "traffic.dctcp needs a tenant whose app is \"tcp_receive\" and a [[peripheral]] of kind \"ethernet\"".into()
        });
    }
    if let Some(i) = s.peripherals.iter().position(|p| p.ethernet().is_some()).filter(|_| tenants == 0) {
        return Err(format!(
            "peripheral[{i}] of kind \"ethernet\" is there for no tenant: give a [[tenant]] with stack = \"poll_mode\" or \"kernel\", or \
             with an app of kind \"tcp_receive\""
        ));
    }
    need(tenants == 1 && nics == 1, || {
        format!(
            "an app of kind \"tcp_receive\" and a [[peripheral]] of kind \"ethernet\" go together, one of each; here are \
             {tenants} and {nics}"
        )
    })?;
    need(s.platform.tcp.is_some(), || {
        format!("app \"tcp_receive\" needs platform.tcp, which platform \"{}\" lacks", s.platform.name)
    })
}
