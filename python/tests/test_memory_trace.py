"""Memory traces: requests to DRAM for other simulators, and traces of other simulators as a workload."""

import itertools
import struct

import pytest
from shownpage import Page

import hostnet as hn
from hostnet import memory_trace

#: A page of 4 KiB has 64 lines of 64 bytes.
PAGE = 4096


@pytest.fixture
def streams():
    """Random reads and updates of four cores, which mostly miss the caches."""
    return hn.Scenario.load("quadrant1").with_({"run.time": "50 us", "run.warmup_time": "20 us"})


def test_a_trace_holds_the_dram_requests_of_the_window(streams, tmp_path):
    """As many as DRAM moves lines; times lie within the window, in cycles of DDR4-2933's clock of 682 ps."""
    result = memory_trace.write(streams, tmp_path / "a.trace", "dramsim3")
    lines = [line.split() for line in (tmp_path / "a.trace").read_text().splitlines()]
    moved = result.metrics["mem_bw_gbs"] * result.data["measure_us"] * 1e3 / 64
    assert len(lines) == pytest.approx(moved, rel=5e-3)  # queues hold some requests at either end of the window
    cycles = [int(c) for _, _, c in lines]
    assert cycles == sorted(cycles)
    assert 0 <= cycles[0] and cycles[-1] * 0.682 <= result.data["measure_us"] * 1e3
    assert cycles[-1] * 0.682 > 0.99 * result.data["measure_us"] * 1e3
    assert all(int(a, 16) % 64 == 0 for a, _, _ in lines)
    # The cores only read: writes are the payload of the SSDs, and a few completions.
    payload = result.metrics["p2m_gbs"] * result.data["measure_us"] * 1e3 / 64
    assert payload <= sum(what == "WRITE" for _, what, _ in lines) < 1.06 * payload

    memory_trace.write(streams, tmp_path / "b.trace", "ramulator2")
    other = [line.split() for line in (tmp_path / "b.trace").read_text().splitlines()]
    assert other == [["ST" if what == "WRITE" else "LD", a] for a, what, _ in lines]


def test_the_command_writes_a_trace_or_one_sentence(cli, tmp_path):
    out = tmp_path / "t.trace"
    shown = cli("trace", "quadrant1", "--set", "run.time=20 us", "--memory", "ramulator2", "-o", out)
    assert "requests to DRAM of 20 us" in shown.stdout and out.stat().st_size > 1000
    for more, words in [
        (["--memory", "ramulator"], 'did you mean "ramulator2"'),
        (["--memory", "ramulator2", "--packets", 3], "--packets chooses packets"),
    ]:
        refused = cli("trace", "quadrant1", *more, "-o", tmp_path / "no.trace", check=2)
        assert words in refused.stderr and refused.stderr.count("\n") == 1
    refused = cli("trace", "testpmd", "--memory", "ramulator2", "-o", tmp_path / "no.trace", check=2)
    assert "one window, not a search" in refused.stderr
    assert not (tmp_path / "no.trace").exists()


def host(trace):
    app = {"kind": "memory_trace", "file": str(trace)}
    return hn.Scenario.load("quadrant1").with_(
        {
            "peripheral": None,
            "tenant.0": {"name": "trace", "cores": 1, "app": app},
            "run.time": "100 us",
            "run.warmup_time": "100 us",
            "override.caches.l2": {"size": "64 KiB", "ways": 8},
            "override.caches.llc": {"size": "792 KiB", "ways": 11},
        }
    )


def test_a_trace_that_cannot_be_executed_names_the_scenarios_file_and_the_key(cli, tmp_path):
    trace = tmp_path / "empty.trace"
    trace.write_text("LD 0x40\nLD zzz\n")
    (tmp_path / "mt.toml").write_text(host(trace).to_toml())
    for command in (["run"], ["sweep", "--vary", "seed=1,2"]):
        refused = cli(command[0], "../mt.toml", *command[1:], "-q", check=2)
        assert refused.stderr.startswith(f'hostnet: ../mt.toml: tenant[0].app: file = "{trace}" ')
        assert refused.stderr.count("\n") == 1


def test_a_pointer_chase_of_champsim_takes_dram_latency_for_each_load_and_independent_loads_overlap(tmp_path):
    """Loads of 64 MiB in random order, first each behind the one before, then all independent of each other.

    A chain has one request outstanding, so that a load takes the latency of DRAM; independent loads fill the line fill
    buffers of the core (Little's law).
    """
    import random

    pages = list(range(16384))
    random.Random(3).shuffle(pages)

    def trace(name, source):
        path = tmp_path / name
        with path.open("wb") as out:
            for p in pages:
                # ip, branch, taken, destination registers, source registers, stores, loads
                out.write(
                    struct.pack("<QBB2B4B2Q4Q", 0, 0, 0, 1, 0, source, 0, 0, 0, 0, 0, (1 << 40) + PAGE * p, 0, 0, 0)
                )
        return path

    chain = hn.run(host(trace("chain", 1))).metrics
    free = hn.run(host(trace("free", 2))).metrics
    per_load = 1e3 / chain["t0_mops"]
    assert per_load == pytest.approx(chain["lfb_little_ns"], rel=0.03)
    assert per_load > 60
    assert chain["lfb_occ"] == pytest.approx(1, abs=0.05)
    assert free["lfb_occ"] > 0.8 * free["lfb_credits"]
    assert free["t0_mops"] > 5 * chain["t0_mops"]


def shares(trace):
    lines = trace.read_text().splitlines()
    loads = sum(line.startswith("LD") for line in lines)
    return loads / len(lines), 1 - loads / len(lines)


def test_a_trace_that_hostnet_wrote_can_be_executed(streams, tmp_path):
    """A core reads a line before it stores to the line, and writes it back later: a read for each access of the trace,
    and a write for each store."""
    memory_trace.write(streams, tmp_path / "a.trace", "ramulator2")
    _, stores = shares(tmp_path / "a.trace")
    assert 0.2 < stores < 0.5
    memory_trace.write(host(tmp_path / "a.trace"), tmp_path / "b.trace", "ramulator2")
    _, writes = shares(tmp_path / "b.trace")
    assert writes == pytest.approx(stores / (1 + stores), rel=0.1)


def test_an_access_of_a_trace_is_one_instruction(tmp_path):
    """Cores of `skylake` access a whole line with two instructions, and a trace names each: one load in each record of
    ChampSim, and one in every third, from eight lines that stay in the L1."""
    address = itertools.cycle(range(0x10000, 0x10000 + 8 * 64, 64))

    def record(loads):
        return struct.pack("<QBB2B4B2Q4Q", 0x400000, 0, 0, *[0] * 6, *[0] * 2, next(address) if loads else 0, 0, 0, 0)

    for each in (1, 3):
        trace = tmp_path / f"{each}.champsim"
        trace.write_bytes(b"".join(record(i % each == 0) for i in range(24_000)))
        result = hn.run(host(trace).with_({"platform": "skylake", "run.time": "50 us", "run.warmup_time": "5 us"}))
        row = result.table("tenants").row(0, named=True)
        accesses = row["throughput_mops"] * result.data["measure_us"]
        assert row["instructions"] / accesses == pytest.approx(each, rel=1e-3)


def test_the_page_says_what_a_short_chase_loses_at_the_seam(tmp_path):
    """A chain that never ends takes the five cycles of the L1 of `icx` for each load; a pass of a trace ends each chain."""
    page = Page("use/memory-traces.md")
    ((_, *shown),) = page.table("| loads of the trace | 8 | 64 | 512 | 3520 | 20000 |")
    for loads, cycles in zip((8, 64, 512, 3520, 20000), shown, strict=True):
        trace = tmp_path / f"{loads}.champsim"
        with trace.open("wb") as out:
            for i in range(loads):
                out.write(
                    struct.pack("<QBB2B4B2Q4Q", 0, 0, 0, 3, 0, 3, 0, 0, 0, 0, 0, (1 << 40) + 64 * (i % 512), 0, 0, 0)
                )
        scenario = hn.Scenario.load("memory-trace").with_(
            {
                "peripheral": None,
                "traffic": None,
                "tenant": [{"name": "trace", "cores": 1, "app": {"kind": "memory_trace", "file": str(trace)}}],
                "run": {"load": "saturate", "time": "100 us", "warmup_time": "100 us"},
            }
        )
        result = hn.run(scenario, quiet=True)
        assert result.spec["platform"]["core"]["clock"] == "3.1 GHz"
        assert 3.1e3 / result.metrics["t0_mops"] == pytest.approx(float(cycles), abs=0.05)
    assert "Registers do not carry over from the end of the trace" in page.text
    assert float(shown[-1]) == result.spec["platform"]["caches"]["l1d"]["latency_cycles"]
