"""The scoreboard: verdicts on hand-made rows, shipped claims on an invented machine, bad files by their sentence."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import paperworld
import polars as pl
import pytest
from ownclaims import GOOD, claims_file, verdict
from rich.console import Console

from hostnet import HostnetError, scoreboard, studies
from hostnet.scoreboard import ClaimError, Result, evaluate, load
from hostnet.scoreboard.evaluate import connect, tables_of
from hostnet.scoreboard.render import as_markdown, as_objects

CLAIMS = Path(__file__).resolve().parents[2] / "claims" / "sweeper.toml"

# ---- each kind: a pass, a near miss, and what cannot be decided --------------------------------------------------

CASES = [
    # kind, expected, tolerance, rows, verdict
    ("value", 10.0, 0.1, {"value": [10.99]}, "reproduced"),
    ("value", 10.0, 0.1, {"value": [11.01]}, "off"),
    ("value", 10.0, 0.1, {"value": [8.99]}, "off"),
    ("value", -10.0, 0.1, {"value": [-10.9]}, "reproduced"),
    ("value", -10.0, 0.1, {"value": [10.0]}, "off"),
    ("value", 4, 0.0, {"value": [4.0]}, "reproduced"),
    ("value", 4, 0.0, {"value": [4.0001]}, "off"),
    ("ratio", 1.0, 0.05, {"p": [1, 2], "value": [1.04, 0.96]}, "reproduced"),
    ("ratio", 1.0, 0.05, {"p": [1, 2], "value": [1.0, 1.06]}, "off"),
    ("share", 0.5, 0.2, {"value": [0.41]}, "reproduced"),
    ("share", 0.5, 0.2, {"value": [0.39]}, "off"),
    ("zero", 0, 0.02, {"value": [0.0, -0.019, 0.02]}, "reproduced"),
    ("zero", 0, 0.02, {"value": [0.0, -0.021]}, "off"),
    ("zero", 0, 0.0, {"value": [0.0]}, "reproduced"),
    ("zero", 0, 0.0, {"value": [1e-6]}, "off"),
    ("range", [1.0, 2.0], 0.1, {"value": [1.09, 1.5, 1.81]}, "reproduced"),
    ("range", [1.0, 2.0], 0.1, {"value": [1.11, 1.5, 2.0]}, "off"),
    ("range", [1.0, 2.0], 0.1, {"value": [1.0, 1.5, 1.79]}, "off"),
    ("range", [0.0, 20.0], 0.1, {"value": [1.9, 20.0]}, "reproduced"),
    ("range", [0.0, 20.0], 0.1, {"value": [2.1, 20.0]}, "off"),
    ("order", ["a", "b", "c"], 0.0, {"name": ["c", "b", "a"], "value": [1, 2, 3]}, "reproduced"),
    ("order", ["a", "b", "c"], 0.0, {"name": ["a", "b", "c"], "value": [3, 2, 2]}, "off"),
    ("order", ["a", "b"], 0.03, {"name": ["a", "b"], "value": [97.1, 100]}, "reproduced"),
    ("order", ["a", "b"], 0.03, {"name": ["a", "b"], "value": [96.9, 100]}, "off"),
    ("order", ["a", "b"], 0.0, {"name": ["a", "b"], "value": [-1.0, -2.0]}, "reproduced"),
    ("order", ["a", "b"], 0.0, {"name": ["a", "b"], "value": [0.0, 0.0]}, "off"),
    # Slack does not add up: each neighbour is within 3 %, the ends are not.
    ("order", ["a", "b", "c"], 0.03, {"name": list("abc"), "value": [100, 102, 102.5]}, "reproduced"),
    ("order", ["a", "b", "c"], 0.03, {"name": list("abc"), "value": [100, 102, 104]}, "off"),
    ("order", ["a", "b", "c", "d"], 0.03, {"name": list("abcd"), "value": [104, 100, 102, 104]}, "off"),
    ("order", ["a", "b"], 0.0, {"g": [1, 1, 2, 2], "name": list("abab"), "value": [2, 1, 1, 2]}, "off"),
    ("trend", ["up"], 0.02, {"x": [3, 1, 2], "y": [12, 10, 9.81]}, "reproduced"),
    ("trend", ["up"], 0.02, {"x": [1, 2, 3], "y": [10, 9.79, 12]}, "off"),
    ("trend", ["up"], 0.02, {"x": [1, 2, 3], "y": [10, 10, 9.9]}, "off"),
    ("trend", ["up"], 0.02, {"x": [1, 2, 3, 4], "y": [10, 9.9, 9.81, 12]}, "reproduced"),
    ("trend", ["up"], 0.02, {"x": [1, 2, 3, 4], "y": [10, 9.85, 9.7, 12]}, "off"),
    ("trend", ["down"], 0.02, {"x": [1, 2, 3, 4], "y": [10, 10.15, 10.3, 9]}, "off"),
    ("trend", ["flat"], 0.03, {"x": [1, 2, 3, 4], "y": [10, 10.2, 10.4, 10.1]}, "off"),
    ("trend", ["down"], 0.02, {"x": [1, 2, 3], "y": [10, 10.19, 9]}, "reproduced"),
    ("trend", ["down"], 0.02, {"x": [1, 2, 3], "y": [10, 10.21, 9]}, "off"),
    ("trend", ["down"], 0.02, {"x": [1, 2, 3], "y": [5, 5, 5]}, "off"),
    ("trend", ["down"], 0.02, {"g": [1, 1, 2, 2], "x": [1, 2, 1, 2], "y": [5, 4, 4, 5]}, "off"),
    ("trend", ["flat"], 0.03, {"x": [1, 2, 3], "y": [10, 10.2, 9.95]}, "reproduced"),
    ("trend", ["flat"], 0.03, {"x": [1, 2, 3], "y": [10, 10.31, 10]}, "off"),
    ("trend", ["flat"], 0.03, {"x": [1, 2, 3], "y": [10, 10.2, 10.4]}, "off"),
    ("trend", ["crossover", 4.0], 0.1, {"x": [2, 3, 5], "y": [-3, -1, 1]}, "reproduced"),
    ("trend", ["crossover", 4.0], 0.1, {"x": [2, 3, 5], "y": [-3, -0.1, 1]}, "off"),
    ("trend", ["crossover", 4.0], 0.1, {"x": [2, 3, 5], "y": [3, 2, 1]}, "off"),
]


@pytest.mark.parametrize("kind, expected, tolerance, rows, wanted", CASES)
def test_a_kind_decides_by_its_tolerance(tmp_path, kind, expected, tolerance, rows, wanted):
    found = verdict(tmp_path, rows, kind=kind, expected=expected, tolerance=tolerance)
    assert (found.verdict, bool(found.reason)) == (wanted, wanted == "off"), found.reason


UNDECIDED = [
    ("value", 1.0, {"value": [None]}, "NULL"),
    ("value", 1.0, {"value": [1.0, None]}, "NULL"),
    ("value", 1.0, {"value": ["fast"]}, "not a number"),
    ("value", 1.0, {"value": [float("inf")]}, "not a finite number"),
    ("value", 1.0, {"a": [1.0], "b": [2.0]}, "needs one column `value`"),
    ("zero", 0, {"value": [None]}, "NULL"),
    ("range", [1, 2], {"value": [1.0]}, "at least two rows"),
    ("order", ["a", "b"], {"name": ["a"], "value": [1.0]}, "no row named `b`"),
    ("order", ["a", "b"], {"name": ["a", "bb"], "value": [1.0, 2.0]}, 'did you mean "b"'),
    ("order", ["a", "b"], {"name": ["a", "a", "b"], "value": [1.0, 2.0, 3.0]}, "two rows named `a`"),
    ("order", ["a", "b"], {"name": ["a", None], "value": [1.0, 2.0]}, "NULL"),
    ("trend", ["up"], {"x": [1], "y": [1.0]}, "at least two rows"),
    ("trend", ["up"], {"x": [1, 1], "y": [1.0, 2.0]}, "two rows with x = 1"),
    ("trend", ["up"], {"x": [1, 2], "y": [1.0, None]}, "NULL"),
]


@pytest.mark.parametrize("kind, expected, rows, sentence", UNDECIDED)
def test_a_result_that_cannot_decide_is_an_error(tmp_path, kind, expected, rows, sentence):
    found = verdict(tmp_path, rows, kind=kind, expected=expected)
    assert found.verdict == "error"
    assert sentence in found.reason and "claim t.one" in found.reason and "`eval`" in found.reason


@pytest.mark.parametrize(
    "kind, expected", [("value", 1.0), ("zero", 0), ("range", [1, 2]), ("order", ["a", "b"]), ("trend", ["up"])]
)
def test_no_row_is_an_error_for_every_kind(tmp_path, kind, expected):
    rows = {c: [1.0] for c in ("name", "value", "x", "y")}
    found = verdict(tmp_path, rows, query="SELECT * FROM mine_fig1 WHERE value > 5", kind=kind, expected=expected)
    assert (found.verdict, "returned no row" in found.reason) == ("error", True)


def test_off_says_by_how_much_and_where(tmp_path):
    found = verdict(tmp_path, {"ways": [2, 4], "value": [10.0, 12.5]})
    assert found.reason == "off by +25 % at ways=4, tolerance 10 %"
    assert found.measured == 12.5


@pytest.mark.parametrize(
    "values, slack, shown",
    [
        ([3.0, 2.0, 1.0], 0.0, "a 3 > b 2 > c 1"),
        ([100.0, 102.0, 50.0], 0.03, "a 100 ≈ b 102 > c 50"),
        ([100.0, 100.0, 50.0], 0.03, "a 100 ≈ b 100 > c 50"),
        ([100.0, 110.0, 50.0], 0.03, "a 100 < b 110 > c 50"),
        ([2.0, 2.0, 1.0], 0.0, "a 2 = b 2 > c 1"),
    ],
)
def test_a_chain_is_printed_with_the_signs_that_are_true(tmp_path, values, slack, shown):
    rows = {"name": ["a", "b", "c"], "value": values}
    assert verdict(tmp_path, rows, kind="order", expected=["a", "b", "c"], tolerance=slack).shown == shown


def test_ends_that_no_pair_of_neighbours_gives_away_are_named(tmp_path):
    rows = {"name": ["a", "b", "c"], "value": [100.0, 102.0, 104.0]}
    found = verdict(tmp_path, rows, kind="order", expected=["a", "b", "c"], tolerance=0.03)
    assert found.reason == "a 100 is not above c 104 (short by 3.85 %, slack 3 %)"


def test_the_worst_group_is_the_one_shown(tmp_path):
    rows = {"buf": [1, 1, 2, 2, 3, 3], "name": list("ababab"), "value": [9.0, 10.0, 5.0, 10.0, 20.0, 10.0]}
    found = verdict(tmp_path, rows, kind="order", expected=["a", "b"], tolerance=0.0)
    assert found.measured == {"a": 5.0, "b": 10.0}
    assert "at buf=2" in found.reason and "short by 50 %" in found.reason and "2 of 3 groups off" in found.reason


def test_disputed_claims_are_measured_but_not_judged(tmp_path):
    found = verdict(tmp_path, {"value": [10.0]}, disputed="two readings")
    assert (found.verdict, found.measured) == ("disputed", 10.0)
    assert found.note.startswith("two readings")


def test_a_disputed_claim_without_a_query_says_that_nothing_is_modelled(tmp_path):
    claim = {k: v for k, v in GOOD.items() if k != "eval"} | {"disputed": "another simulator's"}
    (found,) = evaluate(load(claims_file(tmp_path, claim)), paperworld.Source({}))
    assert (found.verdict, found.measured) == ("disputed", None)
    (row,) = [line for line in as_markdown([found], "1").splitlines() if "`t.one`" in line]
    assert row.split(" | ")[4] == "not modelled"


def test_a_disputed_claim_with_a_broken_query_is_an_error(tmp_path):
    assert verdict(tmp_path, {"value": [None]}, disputed="two readings").verdict == "error"


def test_a_study_that_does_not_exist_yet_is_not_built(tmp_path):
    path = claims_file(tmp_path, GOOD | {"experiment": "later.e.fig9", "eval": "SELECT value FROM later_fig9"})
    (result,) = evaluate(load(path), paperworld.Source({"mine_fig1": pl.DataFrame({"value": [1.0]})}))
    assert (result.verdict, result.reason) == (
        "not built yet",
        "no study `later fig9`; --studies FILE names studies of your own",
    )


def test_a_study_that_fails_is_an_error_and_spares_the_others(tmp_path):
    class Broken(paperworld.Source):
        def run(self, system, figure):
            if figure == "fig2":
                raise RuntimeError("platform `x` not found")
            return super().run(system, figure)

    path = claims_file(tmp_path, GOOD, GOOD | {"id": "t.two", "eval": "SELECT value FROM mine_fig2"})
    frame = pl.DataFrame({"value": [10.0]})
    good, bad = evaluate(load(path), Broken({"mine_fig1": frame, "mine_fig2": frame}))
    assert good.verdict == "reproduced"
    assert bad.verdict == "error" and "study mine_fig2 failed: platform `x` not found" in bad.reason


# ---- the shipped claims ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def board() -> dict[str, Result]:
    return {r.claim.id: r for r in evaluate(load(CLAIMS), paperworld.Source(paperworld.tables()))}


def test_every_shipped_claim_is_decided_as_the_invented_machine_was_made(board):
    assert len(board) == 97
    others = {i: (r.verdict, r.reason) for i, r in board.items() if r.verdict != "reproduced"}
    disputed = {"abs.membw-saving", "intro.membw-efficiency", "fig9a.frontier-dominates"}
    disputed |= {"fig9b.xmem-degrades-with-ddio-ways"}
    assert {i.removeprefix("sweeper.c.") for i in others} == disputed, others
    assert {v for v, _ in others.values()} == {"disputed"}


# figure, condition that picks rows, column, factor, claims that must turn from reproduced to off
DOCTORED = [
    (
        "fig5",
        "system = 'sweeper'",
        "throughput_mrps",
        0.5,
        ["abs.peak-gain", "fig5a.sweeper-gain-range", "fig5a.sweeper-gain-min", "fig5a.never-hurts"],
    ),
    ("fig5", "system = 'sweeper'", "acc_rx_evct", 100.0, ["fig5c.sweeper-no-rx-evct"]),
    (
        "fig5",
        "system = 'sweeper' AND ways = 4 AND buf = 1024",
        "acc_total",
        1.2,
        ["fig5c.sweeper-matches-ideal-accesses"],
    ),
    (
        "fig5",
        "system = 'ddio' AND ways = 4",
        "throughput_mrps",
        1.3,
        ["fig5a.more-ways-faster", "fig5.evct-throughput-link"],
    ),
    (
        "fig5",
        "system = 'ddio' AND ways = 12",
        "throughput_mrps",
        1.5,
        ["fig5a.12way-over-2way", "fig5a.12way-near-ideal-smallest"],
    ),
    ("fig1", "system = 'dma'", "throughput_mrps", 2.0, ["fig1a.system-order", "fig1a.ddio-over-dma"]),
    ("fig1", "system = 'ideal'", "throughput_mrps", 0.7, ["fig1a.gap-to-ideal"]),
    ("fig1", "system = 'dma' AND load = 'fixed'", "dram_lat_avg_ns", 0.5, ["fig1a.dram-less-loaded"]),
    ("fig1", "system = 'ddio'", "acc_cpu_rx_rd", 10.0, ["fig1c.leaks-are-consumed"]),
    (
        "fig2",
        "system = 'ddio' AND ways = 2",
        "acc_cpu_rx_rd",
        2.2,
        ["fig2c.consumed-dominates", "fig2c.premature-below-consumed-2way"],
    ),
    ("fig3", "system = 'sweeper'", "clsweeps", 2.0, ["fig3.one-clsweep-per-block"]),
    ("fig4", "agent = 'cpu'", "sweep_delay_ns", 0.001, ["fig4.cpu-hint-slower"]),
    (
        "fig6_left",
        "system = 'ddio'",
        "throughput_mrps",
        2.0,
        ["fig6.2way-peak-mrps", "fig6l.lower-latency-at-higher-load", "fig6l.gain-hi"],
    ),
    ("fig6_right", "system = 'sweeper'", "dram_lat_avg_ns", 2.0, ["fig6r.avg", "fig6r.sweeper-below-ddio"]),
    ("fig7", "system = 'sweeper'", "acc_rx_evct", 1.5, ["fig7b.evct-equals-cpu-miss", "fig7b.no-consumed-evictions"]),
    ("fig7", "system = 'sweeper'", "llc_rx_lines_outside_ddio", 100.0, ["fig7.ddio-spillover"]),
    (
        "fig8",
        "system = 'sweeper' AND channels = 8",
        "throughput_mrps",
        2.0,
        ["fig8.gain-falls-with-channels", "fig8.gain-8ch-lo"],
    ),
    (
        "fig9a",
        "system = 'sweeper' AND split_a = 4",
        "t0_mops",
        0.6,
        ["fig9a.balanced-l3fwd"],
    ),
    ("fig9b", "system = 'sweeper' AND ways = 2", "t0_mops", 0.9, ["fig9b.l3fwd-flat", "fig9b.two-ways-suffice"]),
    ("fig10a", "system = 'sweeper' AND buf = 2048", "throughput_mrps", 0.5, ["fig10a.sweeper-removes-drop"]),
    (
        "fig10a",
        "system = 'ddio' AND buf = 2048 AND stall_pct = 3",
        "throughput_mrps",
        0.5,
        ["fig10b.deep-over-shallow"],
    ),
    ("fig10b", "buf = 128", "drop_rate", 0.0, ["fig10b.shallow-drops-first"]),
    ("sizing", "true", "rx_footprint_mib", 1.1, ["sec4a.footprint-512", "sec4a.share-1024", "sec6f.shallow-fits-ddio"]),
    ("sizing", "true", "l1l2_kib", 2.0, ["sec6e.xmem-exceeds-private"]),
    ("sizing", "true", "mem_peak_gbs", 1.2, ["sec2a.nic-vs-channels"]),
]


@pytest.mark.parametrize("figure, rows, column, factor, ids", DOCTORED)
def test_a_doctored_table_turns_its_claims_off(board, figure, rows, column, factor, ids):
    name = f"sweeper_{figure}"
    tables = paperworld.tables()
    tables[name] = pl.SQLContext({"t": tables[name]}, eager=True).execute(
        f"SELECT * REPLACE (CASE WHEN {rows} THEN {column} * {factor} ELSE {column} END AS {column}) FROM t"
    )
    chosen = [c for c in load(CLAIMS) if c.id.removeprefix("sweeper.c.") in ids]
    assert len(chosen) == len(ids)
    for after in evaluate(chosen, paperworld.Source(tables)):
        assert board[after.claim.id].verdict == "reproduced"
        assert after.verdict == "off", f"{after.claim.id}: {after.verdict} {after.reason}"


@pytest.mark.parametrize("figure", sorted(t.removeprefix("sweeper_") for t in paperworld.tables()))
def test_missing_points_are_errors_never_passes(figure):
    tables = paperworld.tables()
    tables[f"sweeper_{figure}"] = tables[f"sweeper_{figure}"].clear()
    con = connect()
    chosen = [c for c in load(CLAIMS) if f"sweeper_{figure}" in tables_of(con, c)]
    assert {r.verdict for r in evaluate(chosen, paperworld.Source(tables))} == {"error"}


def test_the_invented_machine_has_every_study_and_no_other():
    # The authors' own runs are compared run by run, without claims.
    tables = {s.table for s in studies.all_studies() if s.system == "sweeper" and s.figure != "artifact"}
    assert tables | {"sweeper_fig4_events"} == set(paperworld.tables())


def test_every_study_table_is_used_by_a_claim():
    con = connect()
    used = set().union(*(tables_of(con, claim) for claim in load(CLAIMS)))
    assert used == set(paperworld.tables())


def test_the_example_in_the_documentation_works(tmp_path):
    page = (CLAIMS.parents[1] / "docs" / "use" / "claims.md").read_text(encoding="utf-8")
    (tmp_path / "mine.toml").write_text(re.search(r"```toml\n(.*?)```", page, re.DOTALL).group(1), encoding="utf-8")
    (found,) = evaluate(load(tmp_path / "mine.toml"), paperworld.Source(paperworld.tables()))
    assert (found.verdict, found.measured) == ("off", pytest.approx(1.79))


def test_only_the_studies_of_the_chosen_claims_run():
    source = paperworld.Source(paperworld.tables())
    evaluate(scoreboard.select(load(CLAIMS), "sweeper.c.fig7*"), source)
    assert source.asked == ["sweeper_fig7"]


# ---- files that people write --------------------------------------------------------------------------------------

BAD = [
    ({"tolerence": 0.1}, 'key `tolerence`: unknown key; did you mean "tolerance"'),
    ({"kind": "ration"}, "key `kind`: unknown kind 'ration'; did you mean \"ratio\""),
    ({"weight": "huge"}, "key `weight`: unknown weight 'huge'; choose one of detail, headline, major."),
    ({"role": None}, "key `role`: is missing; choose one of definition, input, outcome."),
    ({"role": "result"}, "key `role`: unknown role 'result'; choose one of definition, input, outcome."),
    ({"role": "inputs"}, "key `role`: unknown role 'inputs'; did you mean \"input\""),
    ({"text": None}, "key `text`: is missing"),
    ({"text": ""}, "key `text`: must be a non-empty string, not ''"),
    ({"tolerance": -1}, "key `tolerance`: must be a number of at least 0, not -1"),
    ({"tolerance": "10 %"}, "key `tolerance`: must be a number of at least 0, not '10 %'"),
    ({"expected": "10"}, "key `expected`: kind `value` needs one number other than 0"),
    ({"kind": "range", "expected": [2.0, 1.0]}, "key `expected`: kind `range` needs [lo, hi]"),
    ({"kind": "zero", "expected": 1}, "key `expected`: kind `zero` needs 0, not 1"),
    ({"kind": "order", "expected": ["a", "a"]}, "key `expected`: kind `order` needs"),
    ({"kind": "trend", "expected": ["upward"]}, "key `expected`: kind `trend` needs"),
    ({"kind": "trend", "expected": ["crossover"]}, "key `expected`: trend `crossover` needs"),
    (
        {"eval": "SELEC value FROM mine_fig1"},
        'key `eval`: DuckDB cannot read the query: syntax error at or near "SELEC"',
    ),
    ({"eval": "DROP TABLE mine_fig1"}, "key `eval`: DuckDB cannot read the query: "),
    ({"eval": "SELECT 1; SELECT 2"}, "key `eval`: must be one SELECT, not 2 statements"),
    (
        {"eval": "SELECT value FROM mine_fgi1"},
        'key `eval`: no study makes the table `mine_fgi1`; did you mean "mine_fig1"',
    ),
    ({"eval": "SELECT 10 AS value"}, "key `eval`: the query reads no study table"),
]


@pytest.mark.parametrize("change, sentence", BAD)
def test_a_malformed_claim_is_one_sentence_and_nothing_runs(tmp_path, change, sentence):
    claim = {k: v for k, v in (GOOD | change).items() if v is not None}
    path, out = claims_file(tmp_path, claim), tmp_path / "out.json"
    source = paperworld.Source({"mine_fig1": pl.DataFrame({"value": [10.0]})})
    with pytest.raises(HostnetError) as raised:
        scoreboard.main([path], json_file=out, source=source)
    error = str(raised.value)
    assert error.startswith(f"{path}: claim t.one: ") and sentence in error
    assert "\n" not in error and raised.value.exit_code == 2
    assert source.asked == [] and not out.exists()


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("claim = 3", "needs at least one [[claim]]"),
        ("[[claims]]", 'unknown key; did you mean "claim"'),
        ("[[claim]", "is not valid TOML"),
        ("", "needs at least one [[claim]]"),
    ],
)
def test_a_file_without_claims_is_refused(tmp_path, text, sentence):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(ClaimError, match=re.escape(sentence)):
        load(path)


def test_a_missing_file_names_itself(tmp_path):
    with pytest.raises(ClaimError, match="nowhere.toml: cannot be read"):
        load(tmp_path / "nowhere.toml")


def test_an_id_stands_once_in_a_file(tmp_path):
    with pytest.raises(ClaimError, match="claim t.one: key `id`: stands twice"):
        load(claims_file(tmp_path, GOOD, GOOD))


@pytest.mark.parametrize(
    "query",
    ["SELECT * FROM read_csv('/etc/hostname')", "SELECT content AS value FROM read_text('/etc/hostname'), mine_fig1"],
)
def test_a_query_reaches_no_file(tmp_path, query):
    try:
        found = verdict(tmp_path, {"value": [10.0]}, query=query)
    except ClaimError as e:
        assert "reads no study table" in str(e)
    else:
        assert found.verdict == "error" and "disabled by configuration" in found.reason


def test_a_wrong_column_is_duckdbs_own_first_line(tmp_path, capsys):
    path = claims_file(tmp_path, GOOD | {"eval": "SELECT valeu FROM mine_fig1"})
    source = paperworld.Source({"mine_fig1": pl.DataFrame({"value": [10.0]})})
    assert scoreboard.main([path], source=source, console=Console(quiet=True)) == 2
    error = capsys.readouterr().err
    assert f'{path}: claim t.one: key `eval`: DuckDB: Binder Error: Referenced column "valeu" not found' in error


def test_outputs_exit_codes_and_shapes(tmp_path):
    path = claims_file(
        tmp_path, GOOD, GOOD | {"id": "t.two", "expected": 20.0, "weight": "headline", "note": "Read | so."}
    )
    source = paperworld.Source({"mine_fig1": pl.DataFrame({"value": [10.0]})})
    results = evaluate(load(path), source)
    assert as_objects(results)[0] == {
        "id": "t.one",
        "experiment": "mine.e.fig1",
        "role": "outcome",
        "weight": "detail",
        "verdict": "reproduced",
        "expected": 10.0,
        "measured": 10.0,
        "unit": "x",
        "agreeing": None,
        "note": "",
    }
    out = tmp_path / "board.json"
    options = {"source": source, "console": Console(quiet=True), "json_file": out}
    assert scoreboard.main([path], **options) == 0
    assert [o["verdict"] for o in json.loads(out.read_text())] == ["reproduced", "off"]
    assert scoreboard.main([path], strict=True, **options) == 1
    assert scoreboard.main([path], strict=True, only="t.one", **options) == 0
    with pytest.raises(HostnetError, match="cannot be written"):
        scoreboard.main([path], json_file=path / "b.json", source=source)
    markdown = scoreboard.as_markdown(results, "1.0")
    assert "| headline | 0 | 1 | 0 | 0 | 0 | 0 % |" in markdown and "Read \\| so." in markdown
    assert "## mine fig1" in markdown


def test_a_study_that_cannot_run_leaves_the_others_their_points(tmp_path):
    """What the points of all studies together meet, the run of the study says in one sentence."""
    broken = replace(studies.get("hostnetwork", "fig6a"), figure="broken", grid=lambda quick: 1 / 0)
    whole = studies.get("hostnetwork", "fig6a")
    studies.run_first_points([broken, whole], quick=True, precision=0.2)
    assert all(r.cached for r in studies.run(whole, quick=True, precision=0.2).results)


def test_a_glob_that_matches_nothing_says_so(tmp_path):
    with pytest.raises(
        HostnetError, match=r"--only t\.onne: no claim's id or experiment matches; did you mean .t\.one."
    ):
        scoreboard.select(load(claims_file(tmp_path, GOOD)), "t.onne")


def test_expected_and_measured_stand_side_by_side_in_the_terminal(tmp_path):
    path = claims_file(tmp_path, GOOD | {"expected": 20.0})
    console = Console(width=140, record=True, file=io.StringIO())
    scoreboard.main([path], source=paperworld.Source({"mine_fig1": pl.DataFrame({"value": [10.0]})}), console=console)
    (line,) = [row for row in console.export_text().splitlines() if "It holds." in row]
    assert re.search(r"off .*It holds\. .*20x ± 10 % .*10x .*off by -50 %", line)
