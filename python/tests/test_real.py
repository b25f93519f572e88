"""Studies with the settings of measurements on real machines: their formulae by hand, and one small row of each."""

from __future__ import annotations

import math
from typing import Any

import pytest

import hostnet as hn
from hostnet import studies
from hostnet.studies import real_memory as memory
from hostnet.studies import real_pcie as pcie


def small(point: studies.Point, **changes: Any) -> hn.Result:
    """A point of a study with some of its settings changed."""
    return hn.run(hn.Scenario.load(point.base).with_({**point.changes, **changes}))


def test_every_measured_curve_and_core_has_its_rows():
    points = studies.get("real", "memory").points(False)
    loaded = [p for p in points if p.columns["case"] == memory.UNDER_LOAD]
    assert {(p.columns["platform"], p.columns["read_pct"]) for p in loaded} == set(memory.measured())
    assert len(loaded) == len(memory.measured()) * len(memory.SHARES)
    alone = {(p.columns["platform"], p.columns["read_pct"]) for p in points if p not in loaded}
    assert alone == set(memory.measured_cores())
    # A quick study has fewer throttles, and the same ends.
    quick = {p.columns["share"] for p in studies.get("real", "memory").points(True)} - {None}
    assert quick == set(memory.QUICK_SHARES) and {0.0, memory.SHARES[-1]} <= quick < set(memory.SHARES)
    # Each machine streams on all its cores but the one that chases.
    cores = {p.columns["platform"]: p.changes["tenant.1.cores"] for p in loaded}
    assert cores["skx-6140"] == 17 and cores["icx-8360y"] == 35 and cores["spr-8480"] == 55


def test_streams_offer_the_share_of_the_peak_that_the_row_says():
    # Six channels of DDR4-2666, 17 cores of 2.3 GHz that take two instructions a cycle and two for an access:
    # 64 B x 17 / (0.4 x 128 GB/s) are 21.25 ns a line, 97.8 instructions.
    assert memory.peak_gbs("skx-6140") == pytest.approx(127.97, abs=0.01)
    assert memory.instructions("skx-6140", 100, 0.4) == 96
    # Half of the traffic are writes where half of it are reads, so that a line may take twice as long.
    assert memory.instructions("skx-6140", 50, 0.4) == 194
    assert memory.instructions("skx-6140", 100, memory.SHARES[-1]) == memory.FASTEST
    assert memory.instructions("skx-6140", 100, 0) == memory.IDLE


def test_a_step_of_the_chase_is_a_load_and_one_further_instruction():
    row = {"platform": "skx-6140", "t0_cpi": 70.0}
    assert memory.chase_ns(row) == pytest.approx(70 * 2 / 2.3)
    assert memory.chase_ns({**row, "platform": "icx-8360y"}) == pytest.approx(70 * 2 / 2.4)
    assert (
        memory.chase_ns({**row, "case": memory.ONE_CORE}) is None and memory.chase_ns({"platform": "skx-6140"}) is None
    )


def test_curves_are_compared_at_equal_bandwidth_up_to_the_smaller_maximum():
    theirs = [(0.0, 100.0), (50.0, 120.0), (100.0, 300.0)]
    assert memory.at(theirs, 25) == 110 and memory.at(theirs, 101) is None
    assert memory.distance(theirs, theirs) == 0
    # 10 % at 0 and 20 % at 50 GB/s; the point at 100 lies beyond 95 % of our 100.
    ours = [(0.0, 110.0), (50.0, 144.0), (100.0, 150.0)]
    assert memory.distance(ours, theirs) == pytest.approx(math.sqrt((0.1**2 + 0.2**2) / 2))
    rows = [
        {"platform": "icx-8360y", "read_pct": 100, "share": s, "mem_bw_gbs": b, "chase_ns": ns}
        for s, b, ns in ((0.4, 80.0, 110.0), (0.0, 1.5, 90.0), (9.0, 170.0, 250.0))
    ]
    assert memory.curves(rows) == {("icx-8360y", 100): [(0.0, 90.0), (80.0, 110.0), (170.0, 250.0)]}
    their = [r["their_ns"] for r in memory.beside(rows)]
    assert their[1] == 89.2 and 102 < float(str(their[0])) < 110
    page = memory.page(rows)
    assert "| `icx-8360y` | MLC | 100 % | 90 / 89 | +1 % | 170 / 176 | -3 % |" in page
    assert "| unloaded latency | 10 % | 1 of 1 |" in page


def test_a_chase_beside_streams_takes_the_sum_of_its_hops():
    points = studies.get("real", "memory").points(False)
    (idle,) = (p for p in points if (p.columns["platform"], p.columns["share"]) == ("icx-8360y", 0))
    r = small(idle, **{"run.time": "40 us", "override.memory.quirks.refresh": False, "tenant.1.cores": 1})
    # L1 and L2 14 cycles of 2.4 GHz, LLC and two crossings 74 of 2.4 GHz, static 14.7 ns, activate and read 13.75 ns each,
    # the burst 2.5 ns; half a cycle for the other instruction.
    hops = 14 / 2.4 + 74 / 2.4 + 14.7 + 2 * 13.75 + 2.5
    assert memory.chase_ns({**idle.columns, **r.metrics}) == pytest.approx(hops, abs=1.5)


def test_streams_write_back_what_they_store_while_they_are_measured():
    points = studies.get("real", "memory").points(False)
    wanted = ("spr-8480", 51, memory.SHARES[-1])
    (half,) = (p for p in points if (p.columns["platform"], p.columns["read_pct"], p.columns["share"]) == wanted)
    m = small(half, **{"run.time": "5 us"}).metrics
    assert m["mem_read_gbs"] / m["mem_bw_gbs"] == pytest.approx(0.51, abs=0.04)


def test_one_core_loads_as_fast_as_the_machine_with_the_prefetches_of_the_data_sheet():
    """The L2's request queue has 32 entries, of which the 12 line fill buffers take theirs."""
    points = studies.get("real", "memory").points(False)
    (load,) = (
        p
        for p in points
        if (p.columns["platform"], p.columns["read_pct"], p.columns["case"]) == ("skx-6140", 100, memory.ONE_CORE)
    )
    with_20, with_10 = (
        small(load, **{"run.time": "40 us", "override.core.prefetch.credits": n}).metrics["mem_bw_gbs"]
        for n in (32 - 12, 10)
    )
    assert with_20 == pytest.approx(memory.measured_cores()[("skx-6140", 100)][1], rel=0.05)
    assert with_10 < 0.8 * with_20
    assert hn.platform("skx-6140")["core"]["prefetch"]["credits"] == 32 - 12


def test_every_measured_dma_has_a_row():
    points = studies.get("real", "pcie").points(True)
    assert [pcie.setting(p.columns) for p in points] == list(pcie.measured())
    many = {p.columns["request"]: p.changes["peripheral.0.queue_depth"] for p in points}
    assert many == {"command read": 1, "read": 1, "reads": 96, "writes": 96}
    # 768 B move in pieces of 256 B, the largest power of two that divides them.
    assert (
        pcie.point("bdw-2630v4", "read", "warm", 768).points(True)[0].changes["peripheral.0.quirks.interleave"]
        == "256 B"
    )


def test_a_read_by_a_device_takes_the_sum_of_its_hops():
    points = studies.get("real", "pcie").points(True)
    wanted = ("bdw-2630v4", "command read", "warm", 64)
    (warm,) = (p for p in points if pcie.setting(p.columns) == wanted)
    r = small(warm, **{"run.time": "400 us"})
    # Both flights, the request of 24 B and the completion of 84 B on eight lanes of 8 GT/s with 128b/130b of which DLLPs
    # take 3 %, the way between IIO and home agent, and a look-up of 20 cycles of 2.2 GHz in the LLC.
    link = 8 * 8 * (128 / 130) * 0.97 / 8
    hops = 2 * 150 + (24 + 84) / link + 150 + 55 + 20 / 2.2
    assert pcie.value({**warm.columns, **r.metrics}) == pytest.approx(hops, abs=1)
    assert pcie.value({"request": "reads", "p2m_gbs": 5.0}) == 40
    row = {**warm.columns, "figure": hops}
    assert pcie.beside([row]) == [{"their_figure": 413.3, "figure_unit": "ns"}]
    assert "| `bdw-2630v4` | latency of a read by command | 0 of 1 | 28 % |" in pcie.page([row])
