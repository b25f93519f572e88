"""Verdicts that noise may turn: claims judged again on values drawn from intervals."""

import random
import statistics

import polars as pl
import pytest

import hostnet as hn
from hostnet.scoreboard import BuiltStudies, evaluate, noise, select, shipped
from hostnet.scoreboard.claims import Claim
from hostnet.scoreboard.evaluate import Result


def claim(expected: float, tolerance: float) -> Claim:
    query = "SELECT throughput_mrps AS value FROM one_fig1"
    return Claim(
        id="one.c.fig1", text="It is fast.", experiment="one.e.fig1", role="outcome", kind="ratio", expected=expected,
        tolerance=tolerance, unit="Mrps", eval=query, file="mine.toml",
    )  # fmt: skip


def board(measured: float, half: float):
    """The table of one point in each draw."""

    def draw(number: int):
        value = random.Random(number).gauss(measured, half / 1.96)
        return {"one_fig1": pl.DataFrame({"throughput_mrps": [value]})}

    return draw


@pytest.mark.parametrize(
    ("measured", "half", "within"),
    [(10.0, 0.1, False), (10.9, 0.1, False), (11.0, 0.5, True), (12.0, 0.1, False)],
)
def test_a_verdict_near_its_bound_is_within_noise(measured, half, within):
    """A claim of 10 within 10 % holds up to 11: a value of 11 with an interval around it falls on both sides."""
    verdict = "reproduced" if measured <= 11.0 else "off"
    result = Result(claim(10.0, 0.1), verdict, measured, str(measured))
    found = noise.judged([result], board(measured, half), draws=100)[0]
    assert found.within_noise == within, found.agreeing
    assert ("Within noise" in found.note or "within noise" in found.note) == within


def test_a_draw_spreads_a_metric_as_its_interval_says(tiny):
    result = hn.run(tiny)
    low, high = result.interval("lat_mean_us")
    rng = random.Random(1)
    values = [noise.drawn(result, rng).metrics["lat_mean_us"] for _ in range(4000)]
    assert statistics.fmean(values) == pytest.approx(result["lat_mean_us"], abs=0.05 * (high - low))
    assert 2 * 1.96 * statistics.stdev(values) == pytest.approx(high - low, rel=0.05)
    assert noise.drawn(result, rng).metrics["lat_max_us"] == result["lat_max_us"], "it has no interval"


def test_a_drawn_count_is_not_negative_and_a_drawn_share_at_most_one(tiny):
    result = hn.run(tiny)
    result.data["metrics"] |= {"rpq_full_frac": 1e-6, "cpu_utilisation": 0.999}
    result.data["intervals"] |= {"rpq_full_frac": [-1e-3, 1e-3], "cpu_utilisation": [0.9, 1.1]}
    rng = random.Random(2)
    drawn = [noise.drawn(result, rng).metrics for _ in range(200)]
    assert min(m["rpq_full_frac"] for m in drawn) == 0 and max(m["cpu_utilisation"] for m in drawn) == 1


@pytest.mark.long
def test_the_shipped_studies_are_drawn_whole(tmp_path):
    """The formulae of a study take every draw: rates, shares and occupancies of a run of cores beside devices."""
    board = BuiltStudies(jobs=2, quick=True, precision=0.2)
    claims = select(shipped(), "hostnetwork.c.fig3.q1-c2m-n1")
    (result,) = noise.judged(evaluate(claims, board), board.draw, draws=3)
    assert result.verdict in ("reproduced", "off") and result.agreeing is not None
    measured, drawn = board.run("hostnetwork", "fig3")["hostnetwork_fig3"], board.draw(1)["hostnetwork_fig3"]
    assert drawn["mem_bw_gbs"].to_list() != measured["mem_bw_gbs"].to_list()


def test_errors_and_disputes_are_not_judged_again():
    results = [Result(claim(1.0, 0.1), v) for v in ("error", "disputed", "not built yet")]
    assert [r.agreeing for r in noise.judged(results, board(1.0, 0.1))] == [None, None, None]
