"""Explanations of simulated runs: what the engine measured, its domains and its regime."""

import json
import re
from pathlib import Path

import pytest

from hostnet import Scenario, api, explain
from hostnet.explain import advice, render, vendor
from hostnet.report.verdict import verdict_of
from hostnet.results import Result

SHORT = {"run.time": "100 us", "run.warmup_time": "30 us"}


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def run(cache, monkeypatch):
    monkeypatch.setenv("HOSTNET_CACHE", str(cache))

    def call(quadrant: int, cores: int, **changes):
        scenario = Scenario.load(f"quadrant{quadrant}").with_({**SHORT, "tenant.0.cores": cores, **changes})
        return api.run(scenario, quiet=True)

    return call


def domain(ex, name):
    return next(d for d in ex.domains if d.name.startswith(name))


@pytest.mark.parametrize("quadrant, cores, regime", [(1, 1, "blue"), (1, 6, "blue"), (2, 6, "blue"), (3, 6, "red")])
def test_regimes_are_the_papers(run, quadrant, cores, regime):
    assert explain.of_result(run(quadrant, cores)).regime == regime


def test_littles_law_and_direct_measurement_agree_in_every_domain(run):
    ex = explain.of_result(run(3, 6))
    assert {d.traffic for d in ex.domains} == {"c2m", "p2m", "shared"}
    for d in ex.domains:
        if d.direct_ns:
            assert d.little_ns == pytest.approx(d.direct_ns, rel=0.05), d.name
            if d.credits:
                assert d.held <= d.credits * 1.001, d.name


def test_bound_is_credits_over_latency_and_the_binding_domains_are_full(run):
    ex = explain.of_result(run(3, 6))
    lfb, iio = domain(ex, "line fill buffers"), domain(ex, "IIO write buffer")
    assert (lfb.credits, iio.credits) == (6 * 12, 92)
    assert ex.binding("c2m") is lfb and ex.binding("p2m") is iio
    for d in (lfb, iio):
        assert d.exhausted and d.bound_gbs == pytest.approx(d.credits * 64 / d.little_ns)
        assert d.rate_gbs <= d.bound_gbs * 1.001


def icx(nodes, controllers, **changes):
    """A socket whose stores and SSDs fill two channels, on a machine with as many nodes and I/O controllers a node."""
    return Scenario(
        {
            "name": "idle parts",
            "platform": "icx",
            "placement": {"policy": "dma"},
            "override": {
                "nodes": {"count": nodes},
                "iio": {"count": controllers},
                "memory": {"channels": 2, "mapping": "RoBaRaCoCh"},
            },
            "tenant": [{"name": "s", "cores": 12, "app": {"kind": "stream", "buffer": "64 MiB", "read_fraction": 0.5}}],
            "peripheral": [
                {"kind": "ssd", "op": "p2m_write", "queue_depth": 64, "block": "1 MiB", "lanes": 16, "count": 1}
            ],
            "run": {"load": "saturate", "time": "60 us", "warmup_time": "60 us"},
            **changes,
        }
    )


def test_an_idle_node_and_an_idle_io_controller_change_no_explanation():
    """Neither has a credit that anybody could use: the device has the 184 entries of its own controller, and its node's channels."""
    small, large = (explain.of_result(api.run(icx(*parts), quiet=True)) for parts in ((1, 1), (2, 2)))
    assert large.regime == small.regime == "red"
    for name in ("IIO write buffer", "read queues", "write queues"):
        a, b = domain(small, name), domain(large, name)
        assert b.credits == pytest.approx(a.credits, rel=1e-6) and b.held == pytest.approx(a.held, rel=0.02), name
    assert domain(large, "IIO write buffer").credits == 184
    for fact in ("wpq_full", "rpq_occupancy", "mem_utilisation", "predicted_c2m_gbs"):
        assert large.facts[fact] == pytest.approx(small.facts[fact], rel=0.02), fact
    for a, b in zip(small.estimates, large.estimates, strict=True):
        assert b.latency_ns == pytest.approx(a.latency_ns, rel=0.02), a.traffic


def test_a_full_io_controller_is_found_beside_one_that_is_not():
    """A second SSD, on the other controller, keeps one command under way at a tenth of the link's rate."""
    fast = {"kind": "ssd", "op": "p2m_write", "queue_depth": 64, "block": "1 MiB", "lanes": 16, "count": 1}
    slow = fast | {"queue_depth": 1, "lanes": 2}
    ex = explain.of_result(api.run(icx(1, 2, peripheral=[fast, slow]), quiet=True))
    full = ex.binding("p2m")
    assert full.name == "IIO 0 write buffer" and full.credits == 184 and full.exhausted
    assert not domain(ex, "IIO write buffer").exhausted and ex.regime == "red"


def test_what_is_known_of_a_number_stands_beside_it(run):
    """The interval of a domain's credits is that of one core's line fill buffers, times the cores."""
    result = run(3, 6)
    ex = explain.of_result(result)
    fill = domain(ex, "line fill buffers")
    low, high = result.interval("lfb_occ")
    assert fill.intervals["held"] == pytest.approx((6 * low, 6 * high)) and low < high
    assert fill.intervals["direct_ns"] == pytest.approx(result.interval("lfb_lat_ns"))
    assert ex.intervals["p2m_gbs"] == pytest.approx(result.interval("p2m_gbs"))
    columns, rows = render.domains(ex)
    held = [c.heading for c in columns].index("held")
    shown = next(r[held] for r in rows if r[0].startswith("line fill buffers"))
    assert shown == f"{fill.held:.1f} ±{max(fill.intervals['held'][1] - fill.held, fill.held - 6 * low):.2g}"
    assert ex.as_dict()["intervals"]["p2m_gbs"] == list(result.interval("p2m_gbs"))


def test_the_segments_of_a_path_add_up_to_its_latency(run):
    result = run(1, 3)
    ex = explain.of_result(result)
    total = {p: sum(ns for path, _, ns in ex.path if path == p) for p in ("c2m_read", "p2m_write")}
    assert total["c2m_read"] == pytest.approx(result["c2m_read_lat_ns"], rel=0.01)
    assert total["p2m_write"] == pytest.approx(result["iio_write_lat_ns"], rel=0.01)


def test_the_paragraph_names_what_holds_both_back(run):
    text = explain.of_result(run(3, 6)).paragraph()
    for said in ("Red regime", "69 of 72 credits", "92 of 92 credits", "write queues are full", "closed form expects"):
        assert said in text


def test_cores_alone_are_not_judged(run):
    ex = explain.of_result(run(1, 2, peripheral=None))
    assert ex.regime == "cores alone" and not ex.of("p2m")


def test_a_full_link_and_what_it_loses_are_told_where_no_credits_are_short():
    over = Scenario(
        {
            "name": "over",
            "platform": "skylake",
            "placement": {"policy": "ddio", "ways": 2},
            "tenant": [{"name": "f", "cores": 2, "stack": "poll_mode", "app": {"kind": "testpmd", "mode": "macswap"}}],
            "peripheral": [{"kind": "ethernet"}],
            "traffic": {"arrivals": "poisson", "rate": "80 Gbps", "sizes": "imix", "flows": 64},
            "run": {"load": "fixed", "requests": 20_000, "warmup_requests": 20_000},
        }
    )
    ex = explain.of_result(api.run(over))
    assert "The PCIe link into the host is 100 % busy: it bounds what passes" in ex.paragraph()
    assert ex.losses and "receive DMA is slower than the wire" in ex.losses[0]
    assert (
        "The PCIe link to the host is the limit, busy 100 % of the time." in ex.losses[0]
        and ex.as_dict()["losses"] == ex.losses
    )


def test_a_host_that_hardly_moves_lines_has_no_regime_and_no_reasons():
    ex = explain.of_result(
        api.run(Scenario.load("pcie-cx6").with_({"tenant.0.cores": 1, "run.requests": 200, "run.warmup_requests": 50}))
    )
    assert ex.domains and ex.regime == "idle" and not ex.reasons()
    assert "worth speaking of" in ex.paragraph() and "mask" not in ex.paragraph()


def test_rows_that_a_closed_page_policy_opens_are_no_reason_and_queues_of_the_controller_are(tiny):
    # Eight cores on one channel.
    busy = tiny.with_(
        {"override.memory.channels": 1, "tenant.0.cores": 8, "traffic.rate": "12 Mrps", "run.requests": 4000}
    )
    ex = explain.of_result(api.run(busy))
    assert ex.facts["dram_read_ns"] > ex.facts["unloaded_read_ns"] and "row_miss_ratio" not in ex.facts
    (why,) = (r for r in ex.reasons() if "in the memory controller" in r)
    assert f"takes {ex.facts['dram_read_ns']:.0f} ns" in why and not any("open a row" in r for r in ex.reasons())


def test_a_run_that_mostly_hits_caches_has_domains_and_no_formula(tiny):
    ex = explain.of_result(api.run(tiny, quiet=True))
    assert domain(ex, "line fill buffers").held > 0
    assert ex.estimates == [] and any("come from memory" in m for m in ex.missing)


def test_the_command_explains_a_saved_result_and_a_scenario(cli, run, tmp_path):
    file = tmp_path / "result.json"
    run(3, 6).save(file)
    out = cli("explain", file, "--out", tmp_path / "ex", check=0).stdout
    assert "binds, exhausted" in out and "Where a request's time goes" in out
    assert (tmp_path / "ex" / "explain.png").stat().st_size > 10_000
    args = ["explain", "quadrant1", "--set", "run.time=50 us", "--set", "tenant.0.cores=1", "--json", "-q"]
    assert json.loads(cli(*args, check=0).stdout)["regime"] == "blue"


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"metrics": {}}'])
def test_a_file_that_is_no_result_is_one_sentence(cli, tmp_path, text):
    file = tmp_path / "r.json"
    file.write_text(text)
    done = cli("explain", file)
    assert done.returncode == 2 and "not a saved hostnet result" in done.stderr and len(done.stderr.splitlines()) == 1


def test_a_finished_result_cannot_be_changed(cli, run, tmp_path):
    file = tmp_path / "result.json"
    run(1, 1).save(file)
    done = cli("explain", file, "--set", "seed=2")
    assert done.returncode == 2 and "finished result" in done.stderr


@pytest.mark.parametrize("quadrant", [1, 2, 3, 4])
def test_the_closed_form_predicts_core_throughput_within_10_percent(run, quadrant):
    for cores in range(1, 7):
        r = run(quadrant, cores, **{"run.time": "500 us"})
        off = r["predicted_c2m_gbs"] / r["c2m_gbs"] - 1
        assert abs(off) < 0.10, f"{cores} cores: {100 * off:+.1f} %"


@pytest.mark.parametrize(
    "quadrant, changes",
    [
        (1, {"override.iio.write_buffer": 1}),
        (1, {"override.iio.write_buffer": 16}),
        (2, {"override.iio.read_buffer": 32}),
        (1, {"override.pcie.posted_lines": 4}),
        (1, {"override.pcie.posted_lines": 16}),
        (2, {"peripheral.0.tags": 1}),
        (2, {"override.pcie.non_posted": 1}),
    ],
)
def test_the_closed_form_knows_the_credits_that_bind_a_device(run, quadrant, changes):
    r = run(quadrant, 6, **changes)
    for side in ("c2m", "p2m"):
        off = r[f"predicted_{side}_gbs"] / r[f"{side}_gbs"] - 1
        assert abs(off) < 0.06, f"{side}: {100 * off:+.1f} %"


def test_a_posted_credit_is_held_until_its_entry_of_the_iio_is_free(run):
    """One packet of four lines at a time: 280 B at 4 x 8 GT/s x 128/130 x 0.97, its stay in the IIO, and two flights of 150 ns."""
    result = run(1, 6, **{"override.pcie.posted_lines": 4})
    held = {row["domain"]: row["latency_ns"] for row in result.table("domains").to_dicts()}
    packet = 280 * 8 / (4 * 8 * 128 / 130 * 0.97)
    assert held["PCIe posted credits"] == pytest.approx(packet + held["IIO write buffer"] + 300, rel=0.01)


@pytest.mark.parametrize("cores", [2, 4, 6])
def test_the_closed_form_knows_writes_that_take_turns(run, cores):
    r = run(3, cores, **{"override.caches.llc.write_order": "round_robin"})
    for side in ("c2m", "p2m"):
        off = r[f"predicted_{side}_gbs"] / r[f"{side}_gbs"] - 1
        assert abs(off) < 0.10, f"{side}: {100 * off:+.1f} %"


@pytest.mark.parametrize("op, rate", [("p2m_write", "write_gbps"), ("p2m_read", "read_gbps")])
def test_the_simulated_links_carry_what_the_closed_form_says(run, op, rate):
    from hostnet import model

    # Four devices with four lanes each; the platform states the share of link-layer packets.
    link = {"generation": "gen3", "lanes": 4, "mps": 256, "mrrs": 512, "dllp_share": 0.03}
    expected = 4 * model.pcie_bandwidth(256, **link)[rate] / 8
    measured = api.run(Scenario.load("quadrant1").with_({**SHORT, "tenant": None, "peripheral.0.op": op}), quiet=True)
    assert measured["p2m_gbs"] == pytest.approx(expected, rel=0.02)


def test_counters_under_the_vendors_names_explain_the_run_as_it_explains_itself(run, tmp_path):
    from hostnet.explain.vendor import perf_csv

    file = tmp_path / "counters.csv"
    for quadrant, cores in ((1, 3), (3, 6), (4, 2)):
        result = run(quadrant, cores)
        file.write_text(perf_csv(result))
        truth, seen = explain.of_result(result), explain.of_counters(file)
        assert seen.regime == truth.regime
        for name in ("line fill buffers", *(["IIO write buffer"] if quadrant != 4 else [])):
            a, b = domain(truth, name), domain(seen, name)
            assert (b.held, b.little_ns, b.rate_gbs) == pytest.approx((a.held, a.little_ns, a.rate_gbs), rel=0.01)
        a, b = truth.estimates[0].terms, seen.estimates[0].terms
        for term in ("write_hol", "read_hol", "switching"):
            assert b[term] == pytest.approx(a[term], rel=0.01, abs=0.05), (quadrant, term)


@pytest.mark.parametrize(
    "scenario, changes, writes",
    [
        ("quadrant1", {"tenant.0.cores": 3}, False),
        ("quadrant2", {"tenant.0.cores": 3}, False),
        ("quadrant3", {"tenant.0.cores": 3}, True),
        ("quadrant4", {"tenant.0.cores": 3}, True),
        ("core-stream", {}, False),
        # Lines of packets reach memory as victims of the LLC; no core writes them back through the home agent.
        ("kvs", {"run.requests": 4000, "run.warmup_requests": 4000}, False),
    ],
)
def test_a_run_and_its_counters_have_the_same_unloaded_latency(scenario, changes, writes, tmp_path):
    """A buffer is a credit of the read's domain, and of lines that are written back of the write's as well."""
    base = SHORT if scenario.startswith("quadrant") else {}
    result = api.run(Scenario.load(scenario).with_({**base, **changes}), quiet=True)
    (tmp_path / "c.csv").write_text(vendor.perf_csv(result))
    m = result.metrics
    expected = m["c2m_read_unloaded_ns"] + (m["c2m_write_unloaded_ns"] if writes else 0.0)
    for ex in (explain.of_result(result), explain.of_counters(tmp_path / "c.csv")):
        lfb = next(d for d in ex.domains if d.name == "line fill buffers")
        assert lfb.unloaded_ns == pytest.approx(expected, rel=1e-6)
        traffic = "c2m-readwrite" if writes else "c2m-read"
        estimated = [e.traffic.removesuffix(" with prefetches") for e in ex.estimates if e.traffic.startswith("c2m")]
        assert estimated[:1] in ([traffic], [])
        assert all(e.terms["constant"] == pytest.approx(expected) for e in ex.estimates if e.traffic.startswith("c2m"))


def test_the_command_writes_counters_that_it_can_read(cli, run, tmp_path):
    result, counters = tmp_path / "r.json", tmp_path / "c.csv"
    run(3, 6).save(result)
    cli("explain", result, "--write-counters", counters, check=0)
    assert json.loads(cli("explain", "--counters", counters, "--json", check=0).stdout)["regime"] == "red"
    assert cli("explain", "--counters", counters, "--write-counters", "x.csv").returncode == 2


@pytest.mark.parametrize(
    "metrics, kind, share",
    [
        ({"cpu_utilisation": 0.5, "cores_busy": 3.0, "cores": 4}, "testpmd", 0.5),
        ({"cores_busy": 3.0, "cores": 4}, "mica", 0.75),
        ({"net_busy": 1.5, "cores": 0}, "tcp_receive", 0.75),
        ({"cores": 0}, "stream", 1.0),  # a stream always executes instructions; here it moves no lines
    ],
)
def test_the_cores_share_of_busy_time_is_the_metric_that_the_run_has(metrics, kind, share):
    spec = {"tenant": [{"cores": 2, "app": {"kind": kind}}, {"cores": 8, "app": {"kind": "stream"}}]}
    about = {"seed": 1, "version": "", **dict.fromkeys(("wall_s", "sim_us", "warmup_us", "measure_us"), 0.0)}
    ex = explain.of_result(Result({"metrics": {"lfb_occ": 0.0, **metrics}, "spec": spec, "tables": {}, **about}))
    assert ex.facts.get("cores_busy") == share


SHORT_PACKETS = {"run.warmup_requests": 1000, "run.requests": 3000}
CPU = {"traffic.rate": "30 Mpps", "traffic.packet": "64 B", "traffic.flows": 64, "run.load": "fixed"}
ONE_CHANNEL = {"override.memory.mapping": "RoBaRaCoCh", "tenant.0.cores": 6}
TURIN = {"platform": "turin", "tenant.0.cores": 4}
KVS = {
    "placement.policy": "dma", "traffic.rate": "40 Mrps", "run.load": "fixed", "run.requests": 12_000, "run.warmup_requests": 12_000,
}  # fmt: skip
CCNIC_RATE = {
    "traffic.arrivals": "poisson", "traffic.rate": "60 Mpps", "traffic.outstanding": None, "run.warmup_requests": 2000,
    "run.requests": 4000, "tenant.0.app.bytes": "64 B",
}  # fmt: skip
LOOP = {
    "traffic": {"arrivals": "closed", "outstanding": 1024}, "tenant.0.cores": 1, "run.load": "fixed", "run.requests": 6000,
    "run.warmup_requests": 4000,
}  # fmt: skip
FULL_RING = {
    "platform": "icx", "override.nodes.count": 1, "tenant.0.app": {"kind": "testpmd"}, "tenant.0.cores": 2, "traffic.flows": 1024,
    "traffic.rate": "60 Gbps", "run.load": "fixed", "run.requests": 20_000,
}  # fmt: skip
DISPATCH = {"traffic.rate": "40 Mrps", "traffic.spikes": None, "run.requests": 6000, "run.warmup_requests": 4000}
IPERF = {"run.warmup_time": "8 ms", "run.time": "2 ms"}

#: Part of the host: a scenario that loads the part and what differs in it, the key of the part with a small value and one
#: twice as large, what an explanation says of the small one, and the rate that the part bounds.
LIMITS = {
    "IIO path": ("quadrant1", SHORT, "override.iio.line_interval", "12 ns", "6 ns", "(iio.line_interval) is", "p2m_gbs"),
    "PCIe link in": (
        "quadrant1", SHORT, "override.pcie.quirks.lane_rate", "2 Gbps", "4 Gbps", "The PCIe link into the host is", "p2m_gbs",
    ),
    "PCIe link out": (
        "quadrant2", SHORT, "override.pcie.quirks.lane_rate", "2 Gbps", "4 Gbps", "The PCIe link out of the host is", "p2m_gbs",
    ),
    "posted credits": ("quadrant1", SHORT, "override.pcie.posted_lines", 4, 8, "(pcie.posted_lines) are", "p2m_gbs"),
    "tags": ("quadrant2", SHORT, "peripheral.0.tags", 1, 2, "PCIe tags (tags) are", "p2m_gbs"),
    "IIO write buffer": ("quadrant1", SHORT, "override.iio.write_buffer", 16, 32, "of 16 credits of its IIO write", "p2m_gbs"),
    "IIO read buffer": ("quadrant2", SHORT, "override.iio.read_buffer", 8, 16, "of 8 credits of its IIO read", "p2m_gbs"),
    "SSD": ("quadrant1", SHORT, "peripheral.0.media_rate", "4 Gbps", "8 Gbps", "(media_rate) is", "p2m_gbs"),
    "LFBs": ("quadrant1", SHORT | {"tenant.0.cores": 1}, "override.core.lfb", 2, 4, "of 2 credits of its line fill buffers", "c2m_gbs"),
    "LLC": ("quadrant1", SHORT, "override.caches.llc.quirks.mshrs", 1, 2, "(caches.llc.quirks.mshrs) are", "c2m_gbs"),
    "memory": ("quadrant1", SHORT | ONE_CHANNEL, "override.memory.channels", 1, 2, "The memory channels", "c2m_gbs"),
    "memory behind one common order": (
        "kvs", KVS, "override.memory.channels", 4, 8, "The memory channels (memory.channels, memory.standard) are the limit", "throughput_mrps",
    ),
    "cores before memory with room": (
        "kvs", KVS | {"override.memory.channels": 8}, "tenant.0.cores", 4, 8, "so they are the limit", "throughput_mrps",
    ),
    "memory link": (
        "quadrant1", SHORT | TURIN | {"tenant.0.app.read_fraction": 1.0}, "override.caches.llc.quirks.memory_link.read", "8 GB/s", "16 GB/s",
        "(caches.llc.quirks.memory_link.read) is", "c2m_gbs",
    ),
    "memory link out": (
        "quadrant1", SHORT | TURIN | {"tenant.0.app.read_fraction": 0.5}, "override.caches.llc.quirks.memory_link.write", "8 GB/s", "16 GB/s",
        "(caches.llc.quirks.memory_link.write) is", "c2m_gbs",
    ),
    "nodes' link": ("ccnic-stream", {}, "override.nodes.link.rate", "1 GB/s", "2 GB/s", "The link between the nodes is", "stream_gbps"),
    "nodes' credits": ("ccnic-stream", {}, "override.nodes.link.credits", 2, 4, "(nodes.link.credits) are", "stream_gbps"),
    "NIC engine": (
        "l3fwd", SHORT_PACKETS, "override.nic.line_interval", "20 ns", "10 ns", "(nic.line_interval) is", "throughput_mrps",
    ),
    "core": ("testpmd", SHORT_PACKETS | CPU, "tenant.0.cores", 1, 2, "so they are the limit", "throughput_mrps"),
    "NIC's packets": (
        "pcie-e810",
        {"run.warmup_requests": 500, "run.requests": 3000, "traffic.outstanding": 64},
        "peripheral.0.rings.receive_packets",
        1,
        2,
        "(peripheral.rings.receive_packets) are",
        "throughput_mrps",
    ),
    "SSD's commands": (
        "quadrant1", SHORT | {"peripheral.0.block": "4 KiB"}, "peripheral.0.queue_depth", 1, 2, "(peripheral.0.queue_depth)",
        "p2m_gbs",
    ),
    "clients' requests": (
        "ccnic-forward", {"traffic.arrivals": "closed", "traffic.rate": None, "run.warmup_requests": 500, "run.requests": 3000},
        "traffic.outstanding", 4, 8, "(traffic.outstanding)", "throughput_mrps",
    ),
    "CC-NIC's host core": (
        "ccnic-forward", CCNIC_RATE, "tenant.0.cores", 1, 2, "The only core of host is busy all the time", "throughput_mrps",
    ),
    "CC-NIC's NIC thread": (
        "ccnic-forward", CCNIC_RATE | {"tenant.0.cores": 4}, "ccnic.nic_threads", 1, 2,
        "The only NIC thread of host is busy all the time", "throughput_mrps",
    ),
    "core of a loopback": ("ccnic-loopback", LOOP, "tenant.0.cores", 1, 2, "(tenant.0.cores)", "throughput_mrps"),
    "core of a loopback across sockets": ("ccnic-upi", LOOP, "tenant.0.cores", 1, 2, "(tenant.0.cores)", "throughput_mrps"),
    "core of a closed forwarder": ("ccnic-forward", LOOP, "tenant.0.cores", 1, 2, "(tenant.0.cores)", "throughput_mrps"),
    "NIC thread of a loopback": (
        "ccnic-loopback", LOOP | {"tenant.0.cores": 2}, "ccnic.nic_threads", 1, 2, "(tenant.0.ccnic.nic_threads)", "throughput_mrps",
    ),
    "tags of a forwarder": (
        "testpmd", FULL_RING, "peripheral.0.tags", 4, 8, "but mostly wait for the device: a device's PCIe tags (tags) are the limit",
        "throughput_mrps",
    ),
    "read buffer of a forwarder": (
        "testpmd", FULL_RING, "override.iio.read_buffer", 16, 32, "but mostly wait for the device: the IIO read buffer", "throughput_mrps",
    ),
    "frames of a forwarder": (
        "testpmd", FULL_RING, "peripheral.0.rings.quirks.transmit_packets", 1, 2, "(peripheral.rings.quirks.transmit_packets) are the limit",
        "throughput_mrps",
    ),
    "cores behind a dispatcher": ("dispatch", DISPATCH, "tenant.0.cores", 3, 5, "so they are the limit", "throughput_mrps"),
    "network link": ("iperf", IPERF, "peripheral.0.link", "5 Gbps", "10 Gbps", "The network link to the host (link) is", "net_gbs"),
}  # fmt: skip


@pytest.mark.parametrize("part", LIMITS)
def test_a_limit_that_binds_is_named_and_twice_as_much_of_it_moves_the_rate(part, run):
    name, changes, key, small, twice, words, rate = LIMITS[part]
    small, twice = (Scenario.load(name).with_({**changes, key: value}) for value in (small, twice))
    bound, wide = (api.run(scenario, quiet=True) for scenario in (small, twice))
    assert words in explain.of_result(bound).paragraph()
    assert wide[rate] > 1.3 * bound[rate]


def test_cores_that_wait_for_full_channels_are_not_the_limit():
    result = api.run(Scenario.load("kvs").with_(KVS), quiet=True)
    said = explain.of_result(result).paragraph()
    assert "% of the time, but mostly wait for memory." in said and "so they are the limit" not in said
    assert verdict_of(result.data).marks == {"memory": "bottleneck", "cores": "waits"}


def test_lines_in_front_of_queues_are_told_where_both_kinds_wait_in_one_order(run):
    result = api.run(Scenario.load("kvs").with_(KVS), quiet=True)
    mean = {(row["path"], row["segment"]): row["mean_ns"] for row in result.table("paths").to_dicts()}
    # Of all lines at the controllers, those of core reads alone: the time in front over the time from the home agent to the data.
    reads = mean["c2m_read", "mc_queue_wait"] / (mean["c2m_read", "mc_queue_wait"] + mean["c2m_read", "mc_and_dram"])
    assert explain.of_result(result).facts["in_front_of_queues"] == pytest.approx(reads, abs=0.15)
    assert "in_front_of_queues" not in explain.of_result(run(3, 6)).facts


@pytest.mark.parametrize("how, beyond", [("admitted", False), ("immediate", True)])
def test_write_backs_that_need_no_admission_wait_beyond_the_write_buffer(run, how, beyond):
    result = run(3, 6, **{"override.caches.llc.quirks.writebacks": how})
    row = next(r for r in result.table("domains").to_dicts() if r["domain"] == "home agent write buffer")
    assert row["credits"] == 162 and (row["occupancy_max"] > 162) == beyond


def test_a_write_buffer_that_bounds_nothing_is_no_part_of_the_explanation():
    """`caches.llc.write_buffer` has no effect beside miss status holding registers, so that no rate moves with it."""
    few, ample = (
        api.run(Scenario.load("kvs").with_({**KVS, "override.caches.llc.write_buffer": n}), quiet=True)
        for n in (8, 65536)
    )
    assert few["throughput_mrps"] == ample["throughput_mrps"]
    ex = explain.of_result(few)
    assert few["cha_wait_util"] > 1 and "caches.llc.write_buffer" not in ex.paragraph()
    assert "writes that wait at the CHA" not in [d.name for d in ex.domains]


def test_a_closed_loop_is_not_the_limit_where_a_part_is_full():
    medium = {**SHORT, "peripheral.0.media_rate": "4 Gbps"}
    said = explain.of_result(api.run(Scenario.load("quadrant1").with_(medium), quiet=True)).paragraph()
    assert "(media_rate) is" in said and "queue_depth" not in said


def test_a_loop_with_more_outstanding_than_is_under_way_is_not_the_limit(run):
    """By Little's law, rate times round trip: 16 loops of 1 packet, of which all is under way, and 1 of 1024, of which little is."""
    few, many = (
        api.run(Scenario.load("ccnic-upi").with_({**LOOP, **changes}), quiet=True)
        for changes in ({"tenant.0.cores": 16, "traffic.outstanding": 1}, {})
    )
    under_way = {n: r["throughput_mrps"] * r["rtt_mean_us"] for n, r in ((16, few), (1024, many))}
    assert under_way[16] == pytest.approx(16, rel=0.02) and under_way[1024] < 0.2 * 1024
    assert "(traffic.outstanding)" in explain.of_result(few).paragraph()
    assert "outstanding" not in explain.of_result(many).paragraph()


def test_one_core_beside_idle_ones_that_waits_for_its_device_is_told_so(run):
    """A single flow: neither more cores nor more flows bring more frames through four tags."""
    changes = FULL_RING | {"tenant.0.cores": 4, "traffic.flows": 1, "peripheral.0.tags": 4}
    one = api.run(Scenario.load("testpmd").with_(changes), quiet=True)
    more = api.run(Scenario.load("testpmd").with_({**changes, "traffic.flows": 1024}), quiet=True)
    assert more["throughput_mrps"] == pytest.approx(one["throughput_mrps"], rel=0.05)
    said = explain.of_result(one).paragraph()
    assert "1 of the 4 cores of testpmd is busy all the time, but mostly waits for the device" in said
    assert "(traffic.flows)" not in said
    sentence = verdict_of(api.run(Scenario.load("testpmd").with_(FULL_RING | {"peripheral.0.tags": 4})).data).sentence
    assert sentence.startswith("The cores wait for the device: a device's PCIe tags (tags) are the limit, and")


def test_a_core_that_waits_is_told_from_one_that_works_beside_it(run):
    """One NIC has four tags; the core of the other NIC is too slow for its packets."""

    def tenant(name, app, **traffic):
        traffic = {"arrivals": "fixed", "flows": 1, **traffic}
        return {
            "name": name,
            "cores": 1,
            "stack": "poll_mode",
            "nic": f"of {name}",
            "app": {"kind": app},
            "traffic": traffic,
        }

    nics = [{"kind": "ethernet", "name": "of waits", "tags": 4}, {"kind": "ethernet", "name": "of works"}]
    changes = {
        "platform": "icx",
        "override.nodes.count": 1,
        "traffic": None,
        "peripheral": nics,
        "tenant": [
            tenant("waits", "testpmd", rate="60 Gbps"),
            tenant("works", "touchfwd", rate="40 Mpps", packet="64 B"),
        ],
        "run": {"load": "fixed", "requests": 30_000, "warmup_requests": 5000},
    }
    said = explain.of_result(api.run(Scenario.load("testpmd").with_(changes), quiet=True)).paragraph()
    assert "The only core of waits is busy all the time, but mostly waits for the device" in said
    assert "The only core of works is busy all the time and bounds what comes to it" in said


def reading(tags, **changes):
    """An SSD with this many tags, which reads memory as fast as its link takes it."""
    return {"kind": "ssd", "op": "p2m_read", "queue_depth": 16, "block": "128 KiB", "count": 1, "tags": tags, **changes}


def test_tags_that_wait_for_a_full_link_bound_nothing(run):
    """Requests in excess of what the link carries hold tags while they wait for it, whatever the number of tags."""
    few, many = (run(1, 1, peripheral=[reading(tags)]) for tags in (16, 32))
    assert few["pcie_tags_util"] > 0.97 < few["pcie_down_util"]
    assert many["p2m_gbs"] == pytest.approx(few["p2m_gbs"], rel=0.01)
    said = explain.of_result(few).paragraph()
    assert "The PCIe link out of the host is 100 % busy" in said and "PCIe tags" not in said
    # Beside the idle link of another device, the run does not tell whose tags are in use.
    idle = reading(64, op="p2m_write", queue_depth=1, media_rate="1 Gbps")
    said = explain.of_result(run(1, 1, peripheral=[reading(16), idle])).paragraph()
    assert "The busiest PCIe link is 100 % busy" in said
    assert "if that device's link is the full one, they wait for it and bound nothing" in said


def test_what_prefetches_fetch_is_told_apart_from_the_line_fill_buffers():
    """By Little's law the path of reads holds what prefetches hold and what the line fill buffers hold for reads of their own,
    so that it may have more lines than there are buffers. Its latency is what decides the regime."""
    stream = {"name": "s", "cores": 1, "app": {"kind": "stream", "buffer": "64 MiB", "read_fraction": 1.0}}
    result = api.run(icx(1, 1, tenant=[stream], peripheral=[reading(64)]), quiet=True)
    ex, m = explain.of_result(result), result.metrics
    lfb, path = domain(ex, "line fill buffers"), domain(ex, "C2M-Read")
    assert path.name == "C2M-Read, from a core's request or prefetch to its data" and path.held > lfb.credits
    ahead = sum(r["occupancy_avg"] for r in result.table("domains").to_dicts() if "prefetch queue" in r["domain"])
    assert ahead < path.held <= ahead + lfb.held

    assert ex.regime == "blue" and lfb.little_ns < lfb.unloaded_ns < path.little_ns
    opening, held = ex.paragraph().split(". ")[:2]
    told = re.search(r"data: ([\d.]+) ns, unloaded ([\d.]+) ns\) while", opening)
    assert opening.startswith("Blue regime") and told
    assert [float(ns) for ns in told.groups()] == pytest.approx(
        [m["c2m_read_lat_ns"], m["c2m_read_unloaded_ns"]], rel=0.01
    )
    assert f"(unloaded {lfb.unloaded_ns:.0f} ns from memory, and less for lines of caches and prefetches)" in held
    estimate = ex.estimates[0]
    assert estimate.traffic == "c2m-read with prefetches"
    assert (estimate.measured_ns, estimate.measured_gbs) == pytest.approx(
        (m["c2m_read_lat_ns"], path.rate_gbs), rel=0.01
    )


def test_a_regime_that_the_line_fill_buffers_decide_is_told_by_them_alone(run):
    """Without prefetches the sentence about the buffers has both latencies."""
    ex = explain.of_result(run(1, 3))
    lfb = domain(ex, "line fill buffers")
    assert ex.paragraph().startswith("Blue regime: core requests take longer than unloaded while the device")
    assert (
        f"for {lfb.little_ns:.0f} ns each" in ex.paragraph()
        and f"(unloaded {lfb.unloaded_ns:.0f} ns)" in ex.paragraph()
    )
    assert ex.estimates[0].traffic == "c2m-read"


def test_cores_of_tas_poll_and_are_no_proof(run):
    """Twice as many requests of a connection double the rate of few connections, whose cores poll."""
    app = {"tenant.0.app.flows": 4, "tenant.0.cores": 3, "run.requests": 4000, "run.warmup_requests": 2000}
    one, two = (
        api.run(
            Scenario.load("tcp-echo-cx6").with_({**app, "tenant.0.app.pipelined": n, "traffic.outstanding": 4 * n}),
            quiet=True,
        )
        for n in (1, 2)
    )
    assert two["throughput_mrps"] == pytest.approx(2 * one["throughput_mrps"], rel=0.1)
    said = explain.of_result(one).paragraph()
    assert (
        "(traffic.outstanding = 4, which is app.flows x app.pipelined)" in said and "so they are the limit" not in said
    )


CAPTURES = Path(__file__).parents[2] / "captures"
KERNEL = {
    "tenant.0.cores": 2, "traffic.rate": "0.5 Mrps", "run.load": "fixed", "run.requests": 3000, "run.warmup_requests": 1000,
    "traffic.pcap": {"file": str(CAPTURES / "memcached-zipf.pcap"), "timing": "fixed"},
}  # fmt: skip
ONE_FLOW = {
    "platform": "skylake", "tenant.0.cores": 4, "traffic.packet": "128 B", "traffic.rate": "60 Gbps", "run.load": "fixed",
    "run.requests": 4000,
}  # fmt: skip
BESIDE = [
    {"name": "f", "cores": 3, "stack": "poll_mode", "app": {"kind": "touchfwd"}},
    {"name": "s", "cores": 2, "app": {"kind": "stream", "buffer": "64 MiB"}},
]
OWN = {"traffic": {"arrivals": "fixed", "rate": "60 Mpps", "packet": "64 B", "flows": 1}}

#: Scenario with busy cores: what it is, how its explanation advises, and values of the keys that the advice names.
ADVICE = {
    "capture": (
        "memcached-kernel", KERNEL, "replay a capture whose flows go to more of its cores",
        {"traffic.pcap.file": str(CAPTURES / "memcached-udp.pcap")},
    ),
    "plain Ethernet": (
        "testpmd", ONE_FLOW | {"traffic.protocol": "ethernet", "traffic.flows": None}, "give its packets flows",
        {"traffic.protocol": "udp", "traffic.flows": 1000},
    ),
    "one flow": ("testpmd", ONE_FLOW, "spread the traffic over more of its cores", {"traffic.flows": 1000}),
    "a tenant's own traffic": (
        "testpmd",
        {
            "platform": "icx", "override.nodes.count": 1, "traffic": None, "tenant": [BESIDE[0] | OWN, BESIDE[1]], "run.load": "fixed",
            "run.requests": 6000,
        },
        "spread the traffic over more of its cores",
        {"tenant.0.traffic.flows": 1000},
    ),
    "threads of a NIC with as many as cores": (
        "ccnic-forward", LOOP | {"tenant.0.cores": 2, "ccnic.nic_threads": 2}, "give it more",
        {"tenant.0.cores": 4, "tenant.0.ccnic.nic_threads": 4},
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", ADVICE)
def test_advice_names_keys_that_the_scenario_accepts_and_that_raise_its_rate(kind, run):
    name, changes, words, more = ADVICE[kind]
    scenario = Scenario.load(name).with_(changes)
    busy, relieved = (api.run(s, quiet=True) for s in (scenario, scenario.with_(more)))
    said = explain.of_result(busy).paragraph()
    assert words in said and all(key in said for key in more)
    assert relieved["throughput_mrps"] > 1.3 * busy["throughput_mrps"]


def test_cores_are_not_advised_where_the_node_has_none():
    """Two sockets of 16 cores with two threads each; a NIC of threads takes cores of its node, and one of agents none."""
    platform = {"core": {"count": 32, "threads": 2}, "nodes": {"cores": 16}}
    spec = {"platform": platform, "traffic": {"arrivals": "closed"}, "tenant": [{"name": "t", "node": 1, "cores": 32}]}
    assert advice.of_cores(spec, 0, [1.0] * 32) == "its node has no core left for more"
    spec["tenant"][0] |= {"cores": 16, "ccnic": {"nic_node": 1, "nic": "software"}}
    assert advice.of_cores(spec, 0, [1.0] * 16) == "its node has no core left for more"
    assert advice.of_nic_threads(spec, 0) == "the NIC's node has no core left for more"
    spec["tenant"][0]["ccnic"]["nic"] = "agent"
    assert advice.of_cores(spec, 0, [1.0] * 16) == "give it more (tenant.0.cores)"


def test_more_cores_need_as_many_flows():
    spec = {"tenant": [{"name": "t", "cores": 2}], "traffic": {"arrivals": "fixed", "flows": 2}}
    assert advice.of_cores(spec, 0, [1.0, 1.0]) == "give it more (tenant.0.cores), and more flows (traffic.flows)"
    spec["traffic"]["flows"] = 1000
    assert advice.of_cores(spec, 0, [1.0, 0.9]) == "give it more (tenant.0.cores)"


def test_a_busy_core_that_moves_no_lines_is_not_idle(run):
    """A walk through 16 KiB stays in the L1, and the core executes instructions all the time."""
    small = {"tenant.0.cores": 1, "tenant.0.app": {"kind": "xmem", "array": "16 KiB"}, "peripheral": []}
    ex = explain.of_result(api.run(Scenario.load("quadrant1").with_({**SHORT, **small}), quiet=True))
    assert ex.regime == ex.verdict == "cores busy"
    assert "The cores are busy 100" in ex.paragraph() and "idle" not in ex.paragraph()


def test_losses_in_the_network_are_part_of_the_verdict(run):
    """Senders of four ports are faster than the link to the host, and the switch's queue is short."""
    dctcp = {"traffic.dctcp": {"ports": 4, "queue": "30 KiB", "mark": "30 KiB"}, "run.warmup_time": "2 ms"}
    ex = explain.of_result(api.run(Scenario.load("dctcp-receiver").with_(dctcp), quiet=True))
    assert ex.network_losses > 0 and "lost in the network" in ex.verdict
    assert "Senders together are faster than the link to the host." in ex.paragraph()


def test_a_line_takes_its_interval_on_the_path_to_the_home_agent(run):
    """A line of 64 B each 12 ns is 5.33 GB/s."""
    result = run(1, 1, **{"platform.iio.line_interval": "12 ns"})
    assert result["p2m_gbs"] == pytest.approx(64 / 12, rel=0.02)
    assert result["iio_path_util"] == pytest.approx(1, abs=0.01)
    # Beside SSDs that read memory, each direction gets a part of it.
    sc = Scenario.load("quadrant1").with_({**SHORT, "tenant.0.cores": 1, "platform.iio.line_interval": "12 ns"})
    sc.peripheral.append({**sc.to_dict()["peripheral"][0], "op": "p2m_read", "cores": 0})
    both = api.run(sc, quiet=True)
    assert both["p2m_gbs"] == pytest.approx(64 / 12, rel=0.02) and both["iio_read_occ"] > 1 < both["iio_write_occ"]


def test_a_fitted_value_that_a_faster_link_has_outgrown_is_a_note():
    run = {"tenant.0.cores": 1, "run.requests": 200, "run.warmup_requests": 50}
    of = {
        link: api.run(Scenario.load("pcie-cx6").with_({**run, "peripheral.0.link": link}))
        for link in ("200 Gbps", "400 Gbps")
    }
    said = {link: [n for n in explain.of_result(r).notes if "was fitted to" in n] for link, r in of.items()}
    assert said["200 Gbps"] == []
    (note,) = said["400 Gbps"]
    assert "peripheral[0].rings.receive_packets = 20" in note and "or 40, which grows" in note


@pytest.mark.parametrize(("quadrant", "window"), [(1, "200 ns"), (4, "1 us"), (4, "2 us")])
def test_a_link_is_busy_for_no_longer_than_a_short_window(run, quadrant, window):
    # A packet that is on its way, or waits for the link, at either end of a window counts with its part within it.
    r = run(quadrant, 1, **{"run.time": window, "run.warmup_time": "20 us"})
    assert 0 <= r["pcie_up_util"] <= 1 and 0 <= r["pcie_down_util"] <= 1
    assert max(r["pcie_up_util"], r["pcie_down_util"]) > 0.5


def test_a_core_that_gets_all_packets_is_named_beside_idle_ones():
    """One flow goes to one core: with more flows, more cores serve more packets, which none of the other limits does."""
    changes = {"platform": "skylake", "tenant.0.cores": 12, "traffic.packet": "128 B", "traffic.rate": "60 Gbps"}
    one = api.Scenario.load("testpmd").with_({**changes, "run.load": "fixed", "run.requests": 2000})
    result = api.run(one)
    ex = explain.of_result(result)
    assert ex.facts["cores_busy"] == pytest.approx(1 / 12, abs=0.01)
    assert ex.busy_cores == {"testpmd": (1, 12)} and "1 of the 12 cores of testpmd is busy" in ex.paragraph()
    spread = api.run(one.with_({"traffic.flows": 1000}))
    assert spread.metrics["net_gbps"] > 1.3 * result.metrics["net_gbps"]


def test_a_core_whose_buffers_are_full_is_named_beside_idle_ones_alone():
    stream = {"name": "stream", "cores": 1, "app": {"kind": "stream", "buffer": "512 MiB"}}
    idle = {"name": "idle", "cores": 3, "app": {"kind": "xmem", "array": "16 KiB"}}
    base = api.Scenario.load("quadrant1").with_({**SHORT, "peripheral": [], "override.core.lfb": 2})
    alone, beside = (
        explain.of_result(api.run(base.with_({"tenant": tenants}), quiet=True)).paragraph()
        for tenants in ([stream], [stream, idle])
    )
    assert "fullest core (core.lfb)" in beside and "fullest core" not in alone


def test_misses_of_an_l2_that_are_all_in_use_are_named():
    """Of requests that each hold one of n registers for the same time, twice as many registers carry twice as many."""
    few = api.Scenario.load("core-stream").with_({"platform.core.quirks.l2_mshrs": 2, "run.time": "20 us"})
    result, twice = api.run(few), api.run(few.with_({"platform.core.quirks.l2_mshrs": 4}))
    assert twice.metrics["c2m_gbs"] == pytest.approx(2 * result.metrics["c2m_gbs"], rel=0.15)
    assert "core.quirks.l2_mshrs" in explain.of_result(result).paragraph()


def test_a_run_without_a_load_has_nothing_to_explain(cli):
    done = cli("explain", "directed-rx", "-q")
    assert done.returncode == 2
    assert done.stderr == (
        'hostnet: directed-rx: run.load = "none" puts no load on the host, so there is nothing to explain; choose another.\n'
    )


def test_cores_that_only_receive_are_part_of_the_line_fill_buffers(monkeypatch, cache, tmp_path):
    """Little's law over all cores: entries in use, and lines that took one, are sums over the rows of the cores."""
    monkeypatch.setenv("HOSTNET_CACHE", str(cache))
    result = api.run("dctcp-receiver", quiet=True)
    rows = [r for r in result.table("domains").to_dicts() if re.fullmatch(r"core \d+ line fill buffers", r["domain"])]
    held, lines = sum(r["occupancy_avg"] for r in rows), sum(r["arrivals_per_us"] for r in rows)
    (tmp_path / "c.csv").write_text(vendor.perf_csv(result))
    for ex in (explain.of_result(result), explain.of_counters(tmp_path / "c.csv")):
        lfb = domain(ex, "line fill buffers")
        assert (lfb.held, lfb.rate_gbs) == pytest.approx((held, lines * 64e-3), rel=1e-3)
        assert lfb.little_ns == pytest.approx(1e3 * held / lines, rel=1e-3)
