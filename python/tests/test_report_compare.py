"""Differences between results: sizes, directions, noise, and their order."""

from __future__ import annotations

import json
import math
import re

import fakeresults
import polars as pl
import pytest

from hostnet.declared import metric_info
from hostnet.report.charts import percentiles, tail
from hostnet.report.compare import (
    BETTER,
    Difference,
    better,
    change,
    comparison,
    difference,
    important,
    noise_of,
    summary,
)
from hostnet.report.swept import curves, mean_of
from hostnet.scoreboard import Claim, Result, points_of


@pytest.mark.parametrize(
    "value, base, says",
    [
        (20.0, 20.0, ""),
        (19.9999, 20.0, ""),
        (20.0001, 20.0, ""),
        (19.98, 20.0, "−0.1 %"),
        (30.0, 20.0, "+50.0 %"),
        (37.81, 78138.0, "÷2.07e+03"),
        (2e5, 20.0, "×1e+04"),
        (0.0, 20.0, "to 0"),
        (None, 20.0, ""),
        (1.0, 0.0, "from 0"),
        (-2.0, 1.0, ""),
    ],
)
def test_a_change_says_nothing_where_nothing_changed(value, base, says):
    assert change(Difference("mem_bw_gbs", base, value, None)) == says


def test_every_direction_is_that_of_a_metric():
    from fnmatch import fnmatchcase

    known = list(metric_info())
    for pattern in BETTER:
        assert any(fnmatchcase(m, pattern) for m in known), pattern
    assert (better("throughput_mrps"), better("lat_p99_us"), better("mem_bw_gbs")) == (1, -1, 0)
    # What waits is worse, whatever waits; capacities and rates of work say nothing.
    assert better("cha_adm_c2m_ns") == -1 and better("mem_peak_gbs") == better("sim_events") == 0


@pytest.mark.parametrize(
    "metric, base, value, verdict",
    [
        ("throughput_mrps", 10.0, 12.0, "better"),
        ("throughput_mrps", 12.0, 10.0, "worse"),
        ("lat_p99_us", 10.0, 12.0, "worse"),
        ("mem_bw_gbs", 10.0, 12.0, "changed"),
        ("throughput_mrps", 10.0, 10.05, "noise"),
        ("throughput_mrps", None, 10.0, "changed"),
        ("drops", 0.0, 10.0, "worse"),
    ],
)
def test_a_difference_is_better_worse_or_noise(metric, base, value, verdict):
    assert Difference(metric, base, value, None).verdict == verdict
    if base is not None:
        assert Difference(metric, base, value, 1e9).verdict == "noise"


def test_the_noise_of_a_metric_is_the_distance_of_its_interval_s_end():
    r = fakeresults.result("dma")
    r["metrics"] |= {"mem_bw_gbs": 11.0, "loss_rate": 0.25, "llc_miss_ratio": 0.5}
    r["intervals"] = {"mem_bw_gbs": [10.0, 13.0], "loss_rate": [0.0, 0.75], "llc_miss_ratio": [0.0, 1.0]}
    assert noise_of("mem_bw_gbs", r, 12.0) == 2 and noise_of("mem_bw_gbs", r, 10.5) == 1, "the end on that side"
    assert noise_of("loss_rate", r, 0.3) == noise_of("loss_rate", r, 0.0) == 0.5, "0 is a bound"
    assert noise_of("llc_miss_ratio", r, 0.1) == math.inf, "the interval excludes nothing"
    assert noise_of("lat_p99_us", r, 1.0) is None, "no interval"
    lost = {**r, "metrics": {"drops": 400.0}}
    assert noise_of("drops", lost, 500.0) == pytest.approx(1.96 * 20), "a count of rare events"
    assert noise_of("lfb_occ", r, 1.0) is None


def test_rates_of_searches_without_an_interval_are_neither_better_nor_worse():
    one, other = fakeresults.result("ddio"), fakeresults.result("ddio")
    other["metrics"] |= {"throughput_mrps": 1.2 * one["metrics"]["throughput_mrps"], "mem_bw_gbs": 1.0}
    assert difference("throughput_mrps", one, other).verdict == "better"
    for r in (one, other):
        r["spec"]["run"] = {"load": "peak_nodrop"}
    assert difference("throughput_mrps", one, other).verdict == "unknown"
    assert difference("throughput_mrps", one, one).verdict == "noise"
    assert difference("mem_bw_gbs", one, other).verdict == "changed"
    assert "no interval; use --seeds" in comparison([one, other], ["a", "b"], ["throughput_mrps"], "c")
    one["intervals"], other["intervals"] = {"throughput_mrps": [22.0, 23.0]}, {"throughput_mrps": [26.5, 27.5]}
    assert difference("throughput_mrps", one, other).verdict == "better"


def test_differences_within_the_noise_come_last_and_grey():
    one, other = fakeresults.result("ddio"), fakeresults.result("ddio")
    other["metrics"] |= {"lat_p99_us": 2 * one["metrics"]["lat_p99_us"], "llc_wb": 10.0, "dram_lat_p50_ns": 50.0}
    one["metrics"] |= {"llc_wb": 1000.0, "dram_lat_p50_ns": 40.0}
    order = important([one, other])
    assert order[0] == "lat_p99_us" and order.index("llc_wb") < order.index("dram_lat_p50_ns") < order.index(
        "throughput_mrps"
    )
    assert difference("throughput_mrps", one, other).verdict == "noise"
    assert summary([one, other], ["one", "other"]) == ["other against one: lat_p99_us +100.0 % (worse)."]
    assert "no leading metric differs" in summary([one, one], ["one", "again"])[0]


def test_percentiles_are_read_off_the_distribution():
    # Uniform over 1 to 1000: the value at each percentile is the percentile.
    cdf = [(float(i), i / 1000) for i in range(1, 1001)]
    at, values = percentiles(cdf)
    by = dict(zip((round(x, 9) for x in at), values))
    assert by[round(tail(0.5), 9)] == 500 and by[round(tail(0.9), 9)] == 900 and by[round(tail(0.99), 9)] == 990
    assert at == sorted(at) and values == sorted(values)
    assert max(at) <= tail(0.999) + 1e-9, "no percentile beyond what 1000 samples resolve"


def test_replicated_runs_have_a_student_interval():
    rows = [{"m": v} for v in (10.0, 12.0, 14.0)]
    found = mean_of("m", rows)
    # Deviation 2, three runs, two degrees of freedom.
    assert (found.value, found.high) == (12.0, pytest.approx(12 + 4.30265 * 2 / math.sqrt(3)))
    assert mean_of("m", [{"m": 5.0, "m_low": 4.0, "m_high": 7.0}]).low == 4.0
    assert mean_of("m", rows[:1]).low is None


def claimed(expected, measured):
    return Result(Claim("c", "A number.", "e", "outcome", "value", expected, 0.1, "", "f"), "off", measured)


def test_a_papers_number_lies_beside_the_cell_that_its_claim_measures():
    frame = pl.DataFrame({"n": [1, 2, 3], "gbs": [10.5, 20.5, 20.25], "other": [1.0, 20.25, 2.0]})
    results = [claimed(11.0, 10.5), claimed(25.0, 20.25), claimed([1, 2], 2.0), claimed(9.0, [20.5]), claimed(7.0, 6.0)]
    # 20.25 is in two cells, and neither an interval nor a list is a point.
    assert points_of(results, frame, ["gbs", "other"]) == {(0, "gbs"): 11.0}


def test_curves_have_one_line_for_each_combination_and_the_papers_points():
    rows = [{"n": n, "system": s, "gbs": n * (1.0 if s == "a" else 2.0)} for s in "ab" for n in (1, 2, 4)]
    made = curves(rows, ["n", "system"], ["gbs"], paper={(5, "gbs"): 7.5})
    (data,) = [json.loads(t) for t in re.findall(r"<script[^>]*>(.*?)</script>", made)]
    assert [(c["name"], c["x"], c["y"], c["lines"]) for c in data["curves"]] == [
        ("a", [1, 2, 4], [1, 2, 4], True),
        ("b", [1, 2, 4], [2, 4, 8], True),
        ("b: published", [4], [7.5], False),
    ]
    assert data["curves"][1]["colour"] == data["curves"][2]["colour"]


def test_each_swept_number_is_an_axis_and_names_are_one_where_nothing_else_is():
    rows = [{"n": n, "rate": r, "gbs": float(n * r)} for n in (1, 2, 3) for r in (5, 6, 7, 8)]
    made = curves(rows, ["n", "rate"], ["gbs"])
    assert re.findall(r'<article data-name="(.*?)">', made) == ["over rate", "over n"]
    named = [{"system": s, "gbs": v} for s, v in (("x", 1.0), ("y", 2.0))]
    assert curves(named, ["system"], ["gbs"], names=False) == ""
    (data,) = [json.loads(t) for t in re.findall(r"<script[^>]*>(.*?)</script>", curves(named, ["system"], ["gbs"]))]
    assert data["ticks"] == [[0.0, "x"], [1.0, "y"]] and data["curves"][0]["lines"] is False
