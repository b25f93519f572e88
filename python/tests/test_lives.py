"""Lives of packets: the trace follows Chrome's trace-event format, and waterfalls add up to the picosecond."""

import json
import re
from collections import defaultdict

import pytest
from rich.console import Console
from test_cli import one_sentence

import hostnet
from hostnet import lives, trace, waterfall

QUEUE_PAIRS = "l3fwd"
SHORT = ["--set", "run.requests=1500", "--set", "run.warmup_requests=300"]


@pytest.fixture(scope="module")
def followed():
    """Hundred packets of a poll-mode driver that serves bursts."""
    sc = hostnet.Scenario.load("l2fwd-bursts")
    sc.run.requests, sc.run.warmup_requests = 1500, 300
    return lives.follow(sc, "first", 100)


def check_event(e):
    """What the format asks of every event (Trace Event Format, sections "Event Descriptions")."""
    assert isinstance(e["name"], str) and e["name"] and isinstance(e["ph"], str)
    assert all(isinstance(e[k], int) and not isinstance(e[k], bool) for k in ("pid", "tid"))
    assert isinstance(e["ts"], (int, float)) and e["ts"] >= 0
    assert isinstance(e.get("args", {}), dict)
    needs = {
        "X": {"dur", "cat"},  # complete events
        "b": {"id2", "cat"},  # nestable asynchronous events, with identifiers of their process
        "e": {"id2", "cat"},
        "s": {"id", "cat"},  # flow events
        "t": {"id", "cat"},
        "f": {"id", "cat"},
        "C": {"args"},  # counters
        "M": {"args"},  # metadata
    }
    assert needs[e["ph"]] <= set(e), e
    if e["ph"] == "X":
        assert isinstance(e["dur"], float) and e["dur"] >= 0
    if e["ph"] == "C":
        assert e["args"] and all(isinstance(v, (int, float)) for v in e["args"].values())
    if e["ph"] == "M":
        kinds = {"process_name": "name", "thread_name": "name", "process_sort_index": "sort_index"}
        assert kinds[e["name"]] in e["args"]
    # Viewers keep nanoseconds.
    for value in (e["ts"], e.get("dur", 0)):
        assert abs(value * 1000 - round(value * 1000)) < 1e-6


def nanoseconds(e):
    return round(e["ts"] * 1000), round((e["ts"] + e.get("dur", 0.0)) * 1000)


def check_nesting(events):
    """Complete events of one track either nest or do not overlap."""
    tracks = defaultdict(list)
    for e in events:
        if e["ph"] == "X":
            tracks[e["pid"], e["tid"]].append(nanoseconds(e))
    assert tracks
    for slices in tracks.values():
        open_until = []
        for begin, end in slices:  # in the order in which they were written: a parent comes before its children
            while open_until and open_until[-1] <= begin:
                open_until.pop()
            assert not open_until or end <= open_until[-1], "slices overlap without nesting"
            open_until.append(end)


def check_async(events):
    """Each asynchronous slice ends once, behind the slices within it."""
    stacks = defaultdict(list)
    for e in events:
        if e["ph"] == "b":
            stack = stacks[e["pid"], e["cat"], e["id2"]["local"]]
            assert not stack or stack[-1][1] <= e["ts"]
            stack.append((e["name"], e["ts"]))
        elif e["ph"] == "e":
            name, begin = stacks[e["pid"], e["cat"], e["id2"]["local"]].pop()
            assert name == e["name"] and begin <= e["ts"]
    assert stacks and not any(stacks.values())


def check_flows(events):
    """An arrow starts, goes on and ends in this order, each time within a slice of its track."""
    slices = defaultdict(list)
    for e in events:
        if e["ph"] == "X":
            slices[e["pid"], e["tid"]].append(nanoseconds(e))
    flows = defaultdict(list)
    for e in events:
        if e["ph"] in "stf":
            flows[e["id"]].append(e)
            at = nanoseconds(e)[0]
            assert any(begin <= at <= end for begin, end in slices[e["pid"], e["tid"]]), e
    assert flows
    for found in flows.values():
        assert [e["ph"] for e in found] == ["s", "t", "f"]
        assert [e["ts"] for e in found] == sorted(e["ts"] for e in found)


def test_a_trace_follows_the_format(followed):
    written = json.loads(json.dumps(trace.events(followed)))
    events = written["traceEvents"]
    assert written["displayTimeUnit"] == "ns"
    for e in events:
        check_event(e)
    check_nesting(events)
    check_async(events)
    check_flows(events)
    assert {e["ph"] for e in events} == set("XbestfCM")
    processes = {e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert processes == {"packets", "threads", "memory requests", "queues"}
    counters = {e["name"] for e in events if e["ph"] == "C"}
    assert {"packets at the NIC on port 0", "IIO write buffers", "line fill buffers"} <= counters


def test_the_slices_of_a_packet_add_up_to_its_latency(followed):
    events = trace.events(followed)["traceEvents"]
    of = defaultdict(lambda: defaultdict(int))
    for e in events:
        if e["ph"] == "X" and e["pid"] == trace.PACKETS:
            of[e["tid"]][e["cat"]] += e["args"]["ps"]
    assert len(of) == 100
    assert all(sums["stage"] == sums["packet"] for sums in of.values())


def test_a_trace_of_a_hundred_packets_stays_small(cli, tmp_path):
    for scenario in (QUEUE_PAIRS, "l2fwd-bursts"):
        file = tmp_path / f"{scenario}.json"
        done = cli("trace", scenario, *SHORT, "--packets", 100, "-o", file, check=0)
        assert re.search(r"100 of [0-9,]+ packets", done.stdout), done.stdout
        assert file.stat().st_size < 4e6
        assert json.loads(file.read_text())["traceEvents"]
        cli("trace", scenario, *SHORT, "--packets", 100, "-o", file, check=0)  # its own file it overwrites


def test_a_waterfall_adds_up_to_the_picosecond(followed):
    for p in followed.packets:
        assert sum(r.ps for r in waterfall.leaves(p)) == p["latency"]
        assert sum(waterfall.domains(p).values()) == p["latency"]
        spans = sorted(span for r in waterfall.leaves(p) for span in r.spans)
        assert spans[0][0] == 0 and spans[-1][1] == p["latency"]
        assert all(a[1] == b[0] for a, b in zip(spans, spans[1:], strict=False))
    assert {d for p in followed.packets for d in waterfall.domains(p)} <= set(waterfall.COLOURS)


def test_a_round_trip_names_the_threads_of_both_hosts(cli, tmp_path):
    """The link between the hosts takes its propagation in each direction, exactly."""
    few = ["--set", "run.requests=300", "--set", "run.warmup_requests=100", "--set", "run.load=fixed"]
    client = ["--set", "client.cores=1", "--set", 'client.app={ kind = "load_generator" }']
    args = [*few, *client, "--set", "traffic.rate=1 Mrps", "--set", "peripheral.0.propagation=3 us"]
    about = json.loads(cli("explain", "testpmd", *args, "--packet", "median", "--json", check=0).stdout)
    assert sum(p["ps"] for p in about["parts"]) == about["latency_ps"]
    assert [p["ps"] for p in about["parts"] if p["part"] == "flight"] == [3_000_000, 3_000_000]
    cli("trace", "testpmd", *args, "--packets", 20, "-o", tmp_path / "t.json", check=0)
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    check_nesting(events)
    check_flows(events)
    named = {e["args"]["name"] for e in events if e["name"] == "thread_name" and e["pid"] == trace.THREADS}
    assert {"thread 0", "client's thread 0"} <= named


def test_every_domain_has_a_colour():
    assert {p["domain"] for p in lives.parts().values()} <= set(waterfall.COLOURS)


def test_a_waterfall_fits_the_terminal_and_shows_its_sum(followed):
    for p in followed.packets[:20]:
        console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
        waterfall.to_terminal(followed, p, console)
        text = console.export_text()
        assert max(map(len, text.splitlines())) <= 80
        total = next(line for line in text.splitlines() if line.startswith("sum "))
        assert total.split()[1] == waterfall.nanoseconds(p["latency"])


def test_nanoseconds_are_exact():
    assert waterfall.nanoseconds(1_234_567_089) == "1,234,567.089"
    assert waterfall.nanoseconds(7) == "0.007"


@pytest.mark.parametrize(
    "packet, quantile", [("median", "lat_p50_us"), ("p99", "lat_p99_us"), ("slowest", "lat_max_us")]
)
def test_explain_finds_the_packet_that_the_percentiles_report(cli, packet, quantile):
    about = json.loads(cli("explain", QUEUE_PAIRS, *SHORT, "--packet", packet, "--json", check=0).stdout)
    metrics = json.loads(cli("run", QUEUE_PAIRS, *SHORT, "--json", check=0).stdout)["metrics"]
    # The engine's histogram counts nanoseconds to three digits.
    assert metrics[quantile] * 1e6 == pytest.approx(about["latency_ps"], rel=1.1e-3, abs=1000)
    assert sum(p["ps"] for p in about["parts"]) == about["latency_ps"] == sum(about["domains_ps"].values())
    assert about["of"] == metrics["sim_requests"] or about["of"] >= 1500


def test_a_percentile_is_the_nearest_number_to_its_decimal():
    for text, quantile in (("p99.9", 0.999), ("p7", 0.07), ("p99.99", 0.9999), ("p0.1", 0.001), ("slowest", 1.0)):
        assert lives.single(text) == ("quantile", quantile)


@pytest.mark.parametrize(
    "how, n, says",
    [
        ("quantile", 99, "n = 99 is no quantile, which is above 0 and at most 1"),
        ("quantile", -1, "n = -1 is no quantile"),
        ("quantile", "0.5", "n = '0.5' is no quantile"),
        ("number", 2.5, "n = 2.5 is no number of a packet, which counts from 1"),
        ("number", 0, "n = 0 is no number of a packet"),
        ("first", -1, "n = -1 is no number of packets within 1 to 100,000"),
        ("slowest", 0, "n = 0 is no number of packets"),
        ("random", "3", "n = '3' is no number of packets"),
        ("first", 100_001, "n = 100001 is no number of packets"),
        ("fast", 2, "how = 'fast' chooses no packets; give first, slowest, random"),
        (3, 2, "how = 3 chooses no packets"),
    ],
)
def test_wrong_arguments_of_follow_are_one_sentence(tiny, how, n, says):
    with pytest.raises(hostnet.HostnetError, match=re.escape(says)):
        lives.follow(tiny, how, n)


def test_explain_draws_a_packet(cli, tmp_path):
    out = tmp_path / "out"
    done = cli("explain", QUEUE_PAIRS, *SHORT, "--packet", 7, "--out", out, check=0)
    assert done.stdout.startswith("l3fwd: packet 7 of ")
    about = json.loads((out / "packet.json").read_text())
    svg = (out / "packet.svg").read_text()
    assert "<svg" in svg and waterfall.nanoseconds(about["latency_ps"]) in svg
    assert (out / "packet.png").stat().st_size > 1000


@pytest.mark.parametrize(
    "args, says",
    [
        (["explain", QUEUE_PAIRS, "--packet", "fastest"], "--packet fastest: give a number from 1, median"),
        (["explain", QUEUE_PAIRS, "--packet", "0"], "--packet 0: give a number from 1"),
        (["explain", QUEUE_PAIRS, "--packet", "p0"], "--packet p0"),
        (["explain", QUEUE_PAIRS, *SHORT, "--packet", "999999"], "packet 999999 is not within 1 to "),
        (["explain", "--packet", "3"], "--packet is about a scenario"),
        (["explain", "saved.json", "--packet", "3"], "a result holds no lives of packets"),
        (["trace", QUEUE_PAIRS], "--out"),
        (["trace", QUEUE_PAIRS, "-o", "t.json", "--packets", "0"], "--packets 0 is not within 1 to 100,000"),
        (["trace", QUEUE_PAIRS, "-o", "t.json", "--choose", "best"], "--choose best: choose first, slowest or random"),
        (["trace", QUEUE_PAIRS, "-o", "there.txt"], "was not written by this command"),
        (["trace", "directed-rx", "-o", "t.json"], "this scenario is a directed test"),
        (["trace", "quadrant1", "--set", "run.time=20 us", "-o", "t.json"], "no packet whose life can be recorded"),
        (["watch", "nowhere"], "nowhere"),
    ],
)
def test_wrong_input_gets_one_sentence(cli, args, says):
    (cli.cwd / "there.txt").write_text("mine")
    assert says in one_sentence(cli(*args))
    assert not (cli.cwd / "t.json").exists()
