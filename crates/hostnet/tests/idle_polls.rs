//! Threads that poll several places in turn: what a silence costs, and what their polls execute in it.

use crate::common::{get, scenario, simulate};
use hostnet::config::Scenario;
use hostnet::host::Host;
use hostnet::kernel::units::Freq;
use hostnet::kernel::Time;
use hostnet::machine::Event;
use std::sync::Arc;

/// A host whose threads poll several places: tables of the tenant and of the interface, and what the threads poll.
struct Poller {
    name: &'static str,
    tenant: &'static str,
    ccnic: &'static str,
    more: &'static str,
    /// For each thread that polls in turn, the lines of a round, and how often the round has the fixed costs of a poll.
    threads: &'static [(u64, u64)],
}

const STORE: &str =
    "node = 1\ncores = 1\napp = { kind = \"clique_map\", objects = 4096, get_fraction = 1.0, zipf = 0.75, below_100 = 0.999 }";
const ONE: &str = "node = 0\ncores = 1\napp = { kind = \"loopback\", bytes = \"64 B\" }";
const TWO: &str = "node = 0\ncores = 2\napp = { kind = \"loopback\", bytes = \"64 B\" }";
const ETHERNET: &str = "[[peripheral]]\nkind = \"ethernet\"";

const POLLERS: [Poller; 5] = [
    Poller {
        name: "an overlay polls a descriptor and a ring",
        tenant: STORE,
        ccnic: "mode = \"overlay\"\nnic_node = 0",
        more: ETHERNET,
        threads: &[(2, 1)],
    },
    Poller {
        name: "a NIC's thread polls the rings of two queue pairs",
        tenant: TWO,
        ccnic: "mode = \"loopback\"\nnic_node = 1\nnic_threads = 1",
        more: "",
        threads: &[(2, 2)],
    },
    Poller {
        name: "a NIC's thread polls two rings and a wire",
        tenant: TWO,
        ccnic: "mode = \"forward\"\nnic_node = 1\nnic_threads = 1",
        more: "",
        threads: &[(2, 2)],
    },
    Poller {
        name: "a server's thread polls two queue pairs, each of which has a thread of an overlay",
        tenant: STORE,
        ccnic: "mode = \"overlay\"\nnic_node = 0\nnic_threads = 2",
        more: ETHERNET,
        threads: &[(2, 2), (2, 1), (2, 1)],
    },
    Poller {
        name: "a NIC's thread polls unused queue pairs",
        tenant: ONE,
        ccnic: "mode = \"loopback\"\nnic_node = 1\nquirks.idle_queues = 3",
        more: "",
        threads: &[(4, 4)],
    },
];

impl Poller {
    /// The scenario at `rate`, whose packets come at equal distances.
    fn text(&self, rate: &str) -> String {
        format!(
            r#"
            name = "poller"
            platform = "icx"
            [override]
            background_read_gbs = 0
            [placement]
            policy = "ddio"
            [[tenant]]
            name = "t"
            stack = "ccnic"
            {}
            [ccnic]
            {}
            {}
            [traffic]
            arrivals = "fixed"
            rate = "{rate}"
            [run]
            load = "fixed"
            warmup_requests = 5
            requests = 20
            "#,
            self.tenant, self.ccnic, self.more
        )
    }
}

/// Twenty packets cost as many events at a distance of 10 ms as at a distance of 1 ms. A round of polls takes some 10 ns:
/// polls that were executed would cost 100,000 events in each millisecond.
#[test]
fn silence_costs_no_events_whatever_polls() {
    for p in &POLLERS {
        let [ms, ten_ms] = ["1 krps", "0.1 krps"].map(|rate| get(&simulate(&p.text(rate)), "sim_events"));
        let each = (ten_ms - ms) / 25.0;
        assert!(each.abs() < 0.02 * ms / 25.0, "{}: {ms} events, and {ten_ms} in ten times the time", p.name);
        assert!(ms < 50_000.0, "{}: {ms} events", p.name);
    }
}

/// As above, for services, for threads that share a core, and for cores that follow IDIO's hints. Executed polls would
/// cost 10,000 events in each millisecond at least.
#[test]
fn silence_costs_no_events_with_tas_second_threads_and_hints() {
    let run = "run = { load = \"fixed\", warmup_requests = 5, requests = 20 }";
    let hosts: toml::Table = include_str!("idle_polls.toml").parse().expect("TOML");
    for host in hosts["host"].as_array().expect("hosts") {
        let [name, rest] = ["name", "scenario"].map(|key| host[key].as_str().expect("text"));
        let events = |rate: &str, flight: &str| {
            let rest = rest.replace("@rate@", rate).replace("@flight@", flight);
            get(&simulate(&format!("name = \"polls\"\nplatform = \"icx\"\n{rest}\n{run}\n")), "sim_events")
        };
        let (ms, ten_ms) = (events("1 krps", "0.5 ms"), events("0.1 krps", "5 ms"));
        assert!((ten_ms - ms).abs() < 0.1 * ms, "{name}: {ms} events, and {ten_ms} in ten times the time");
        assert!(ms < 20_000.0, "{name}: {ms} events");
    }
}

/// Instructions in `span` of the threads of `p` that poll in turn: a round takes a hit of the L1 for each line and the
/// instructions of its fixed costs, and has the instructions of both. The second number is that of a round.
fn expected(p: &Poller, s: &Scenario, span: Time) -> (f64, f64) {
    let core = &s.platform.core;
    let Freq(hz) = core.clock;
    let hit = f64::from(s.platform.caches.l1d.latency_cycles) / hz as f64;
    let poll = f64::from(s.tenants[0].stack.ccnic().expect("an interface").quirks.costs.poll);
    let of = |&(lines, polls): &(u64, u64)| {
        let (lines, polls) = (lines as f64, polls as f64 * poll);
        let round = lines * hit + polls / (core.compute_ipc * hz as f64);
        let instructions = lines * f64::from(core.stores_per_line) + polls;
        (span.as_ns() * 1e-9 / round * instructions, instructions)
    };
    p.threads.iter().map(of).fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1))
}

/// The cores execute in a silence what their polls consist of, as often as the polls fit into it.
#[test]
fn polls_that_are_counted_have_their_instructions() {
    for p in &POLLERS {
        let s = scenario(&p.text("0.01 krps"));
        let span = Time::ns(2_000_000);
        let (mut instructions, round) = expected(p, &s, span);
        let (Freq(hz), ipc) = (s.platform.core.clock, s.platform.core.compute_ipc);
        let mut host = Host::new(Arc::new(s)).expect("a host");
        // Without an event at the end, a run would go on to the next packet.
        let run = |host: &mut Host, time: Time| {
            host.machine.cal.push(host.machine.now + time, Event::Slices);
            host.run_for(time);
        };
        run(&mut host, Time::ns(20_000));
        // The others poll one line, and do nothing but polls: they execute as much as a core can.
        let others = host.machine.cpus.len() - p.threads.len();
        instructions += others as f64 * span.as_ns() * 1e-9 * ipc * hz as f64;
        let counted = |host: &Host| host.machine.cpus.iter().map(|c| c.instructions).sum::<u64>();
        let (before, since, events) = (counted(&host), host.machine.now, host.machine.cal.popped());
        run(&mut host, span);
        assert_eq!(host.machine.now, since + span, "{}", p.name);
        let events = host.machine.cal.popped() - events;
        assert!(events < 200, "{}: {events} events without a packet", p.name);
        let n = (counted(&host) - before) as f64;
        // A hit takes whole picoseconds, and so does the time of a round.
        let tolerance = 2.0 * round + 1e-3 * instructions;
        assert!((n - instructions).abs() < tolerance, "{}: {n} instructions, not {instructions}", p.name);
    }
}
