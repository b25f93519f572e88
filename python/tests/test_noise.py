"""Verdicts that noise may turn: claims judged again on values drawn from intervals."""

import random
import statistics

import polars as pl
import pytest

import hostnet as hn
from hostnet.scoreboard import BuiltStudies, evaluate, noise, select, shipped
from hostnet.scoreboard.claims import Claim
from hostnet.scoreboard.evaluate import Result, connect, words_of


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


def test_a_draw_spreads_the_columns_of_tenants_as_their_intervals_say(tiny):
    result, name = hn.run(tiny), "tenant.kvs.lat_mean_us"
    (low, high), rng = result.interval(name), random.Random(3)
    values = [noise.drawn(result, rng)[name] for _ in range(4000)]
    assert statistics.fmean(values) == pytest.approx(result[name], abs=0.05 * (high - low))
    assert 2 * 1.96 * statistics.stdev(values) == pytest.approx(high - low, rel=0.05)
    assert hn.run(tiny)[name] == result[name], "the result itself stays"


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


def claim_of(name: str, query: str, expected: float) -> Claim:
    return Claim(
        id=name, text="It is so.", experiment="one.e.fig1", role="outcome", kind="value", expected=expected,
        tolerance=0.0, unit="Mrps", eval=query, file="mine.toml",
    )  # fmt: skip


#: Claims over four draws in which `a` is 1, 1, 2, 1 while `b` stays 5, and a row is added in the last draw: the query, the
#: value that is expected, and the draws of four that give it.
DRAWS = {
    "varies": ("SELECT a AS value FROM one_fig1 ORDER BY a LIMIT 1", 1.0, 3),
    "capital": ("SELECT A AS value FROM one_fig1 ORDER BY A LIMIT 1", 1.0, 3),
    "constant": ("SELECT b AS value FROM one_fig1 LIMIT 1", 5.0, 4),
    "rows": ("SELECT count(*) AS value FROM one_fig1", 1.0, 3),
    "star": ("SELECT * FROM (SELECT sum(COLUMNS('^[ab]$')) FROM one_fig1) t(value, b)", 1.0, 2),
    "whole row": ("SELECT (one_fig1).a + b AS value FROM one_fig1 LIMIT 1", 6.0, 3),
    "row as struct": ("SELECT t['a'] AS value FROM one_fig1 t LIMIT 1", 1.0, 3),
    "natural": ("SELECT l.b AS value FROM one_fig1 l NATURAL JOIN one_other", 5.0, 3),
    "position": ("SELECT x AS value FROM one_fig1 AS t(x, y) LIMIT 1", 1.0, 3),
    "other": ("SELECT a AS value FROM one_other", 1.0, 4),
    "gone": ("SELECT a AS value FROM one_gone", 1.0, 0),
}


def tables_of_draw(number: int):
    values = [[1.0], [1.0], [2.0], [1.0, 1.0]][number]
    return {
        "one_fig1": pl.DataFrame({"a": values, "b": [5.0] * len(values), "unread": [float(number)] * len(values)}),
        "one_other": pl.DataFrame({"a": [1.0]}),
    }


@pytest.mark.parametrize("name", DRAWS)
def test_a_claim_is_judged_again_where_a_column_that_it_may_read_differs(name):
    """Alone, and among claims that read other columns of the same tables."""
    query, expected, same = DRAWS[name]
    alone = noise.judged([Result(claim_of(name, query, expected), "reproduced")], tables_of_draw, draws=4)
    assert [r.agreeing for r in alone] == [same / 4]
    every = [Result(claim_of(n, q, e), "reproduced") for n, (q, e, _) in DRAWS.items()]
    agreeing = {r.claim.id: r.agreeing for r in noise.judged(every, tables_of_draw, draws=4)}
    assert agreeing[name] == same / 4


def test_a_query_is_made_again_only_where_its_columns_differ(monkeypatch):
    asked = []
    ask = noise.Queries.ask

    def counted(self, claim):
        asked.append(claim.id)
        return ask(self, claim)

    monkeypatch.setattr(noise.Queries, "ask", counted)
    results = [Result(claim_of(n, *DRAWS[n][:2]), "reproduced") for n in ("varies", "constant", "other")]
    noise.judged(results, tables_of_draw, draws=4)
    assert {name: asked.count(name) for name in asked} == {"varies": 3, "constant": 2, "other": 1}


def test_the_words_of_a_query_are_a_claims_columns_unless_it_may_read_unnamed_ones():
    con = connect()
    words = {name: words_of(con, claim_of(name, query, 1.0)) for name, (query, _, _) in DRAWS.items()}
    assert {name for name, found in words.items() if found is None} == {
        "star", "whole row", "row as struct", "natural", "position",
    }  # fmt: skip
    assert "a" in words["capital"] and "b" not in words["varies"]
