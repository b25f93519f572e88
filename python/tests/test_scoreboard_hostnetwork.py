"""The claims of "Understanding the Host Network" on an invented machine, and their kinds that Sweeper's do not use."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path

import paperhost
import paperworld
import polars as pl
import pytest

from hostnet import studies
from hostnet.scoreboard import Result, evaluate, load
from hostnet.scoreboard.evaluate import connect, tables_of
from hostnet.scoreboard.render import expected_text
from hostnet.studies import hostnetwork

CLAIMS = Path(__file__).resolve().parents[2] / "claims"
HOST = CLAIMS / "hostnetwork.toml"


def fingerprint(name: str) -> str:
    """What a claims file takes over from the specification, in one number."""
    fields = ("id", "experiment", "kind", "expected", "tolerance", "unit", "weight", "metric", "at", "text")
    stated = [[getattr(c, f) for f in fields] for c in load(CLAIMS / name)]
    return hashlib.sha256(json.dumps(stated, ensure_ascii=False).encode()).hexdigest()[:16]


@pytest.mark.parametrize(
    "name, number, expected",
    [
        ("sweeper.toml", 97, "5ce6f603ebf6a0fd"),
        ("hostnetwork.toml", 247, "d4f91a598e1eba11"),
    ],
)
def test_claims_state_the_specification_unchanged(name, number, expected):
    # Fingerprints of the specification itself: whoever changes an expectation changes what is claimed.
    assert len(load(CLAIMS / name)) == number
    assert fingerprint(name) == expected


@pytest.fixture(scope="module")
def board() -> dict[str, Result]:
    return {
        r.claim.id.removeprefix("hostnetwork.c."): r
        for r in evaluate(load(HOST), paperworld.Source(paperhost.tables()))
    }


def test_every_claim_is_decided_as_the_invented_machine_was_made(board):
    others = {i: (r.verdict, r.reason) for i, r in board.items() if r.verdict not in ("reproduced", "not built yet")}
    assert set(others) == {"fig12e.q3-p2m-rhol", "fig27.6.5pct"} and {v for v, _ in others.values()} == {"disputed"}, (
        others
    )
    assert Counter(r.verdict for r in board.values()) == {"reproduced": 245, "disputed": 2}


def test_a_claim_without_query_is_not_built_and_belongs_to_a_figure_that_says_so(board):
    built = {s.figure for s in studies.all_studies() if s.system == "hostnetwork"}
    for r in board.values():
        assert bool(r.claim.eval) == (r.claim.figure in built), r.claim.id
        assert bool(r.claim.eval) != (r.claim.figure in hostnetwork.NOT_BUILT), r.claim.id
        assert (r.verdict == "not built yet") == (not r.claim.eval), r.claim.id


def test_the_invented_machine_has_every_study_and_every_study_has_a_claim(board):
    # Studies beyond the paper have nothing to be judged by.
    tables = {
        s.table for s in studies.all_studies() if s.system == "hostnetwork" and not s.figure.startswith("future-")
    }
    tables = tables - {"hostnetwork_fig23"} | {"hostnetwork_fig23_trace"}  # a study whose claim is about its trace
    assert tables == set(paperhost.tables())
    con = connect()
    assert tables == set().union(*(tables_of(con, r.claim) for r in board.values() if r.claim.eval))


# figure, condition that picks rows, column, factor, claims that must turn from reproduced to off
DOCTORED = [
    ("peakbw_cl", "true", "mem_bw_gbs", 0.8, ["sec2.seqread-peak-cl"]),
    ("peakbw_il", "true", "mem_bw_gbs", 0.8, ["sec2.seqread-peak-il"]),
    ("fig3", "quadrant = 1", "degr_c2m", 1.2, ["fig3.q1-range", "fig3.q1-c2m-n1", "fig3.q1-c2m-n4"]),
    ("fig3", "quadrant = 1", "degr_p2m", 1.03, ["fig3.q1-p2m-zero"]),
    ("fig3", "quadrant = 2", "degr_c2m", 1.3, ["fig3.q2-lt-q1", "fig3.q2-c2m"]),
    ("fig3", "quadrant = 3", "degr_p2m", 0.7, ["fig3.q3-red", "fig3.q3-p2m-n6"]),
    ("fig3", "quadrant = 3 AND n = 4", "degr_p2m", 0.7, ["fig3.q3-c2m-dip"]),
    ("fig3", "quadrant = 3 AND n = 6", "mem_p2m_write_gbs", 1.5, ["fig3.q3-share-down", "fig3.q3-p2m-not-starved"]),
    ("fig3", "quadrant = 4 AND n = 6", "degr_p2m", 1.2, ["fig3.blue-red-map"]),
    ("fig3", "run = 'iso-c2m'", "mem_c2m_read_gbs", 0.8, ["fig3.iso-c2mread-n1"]),
    ("fig6a", "true", "lfb_lat_ns", 1.1, ["fig6a.unloaded-70", "fig6a.lfb-n3", "fig6b.unloaded-10"]),
    ("fig6a", "true", "cha_dram_read_c2m_ns", 1.2, ["fig6a.cha-n1", "fig6a.lfb-gt-cha"]),
    ("fig6b", "true", "cha_mc_write_c2m_ns", 0.7, ["fig6b.write-exceeds-lfb", "fig6b.chamc-n6"]),
    ("fig6cd", "n > 1", "cha_mc_write_p2m_ns", 0.5, ["fig6d.inflation-match"]),
    ("fig6cd", "true", "iio_write_lat_ns", 1.3, ["fig6c.unloaded-300", "fig6c.iio-n5"]),
    ("credits", "true", "lfb_occ", 0.8, ["sec4.credits-lfb"]),
    ("credits", "true", "c2m_gbs", 1.2, ["sec4.bound"]),
    ("credits", "true", "iio_write_occ", 0.9, ["sec4.credits-p2mw"]),
    ("credits", "true", "iio_read_credits", 0.3, ["sec4.credit-order"]),
    ("fig7", "run = 'colo'", "lfb_lat_ns", 1.25, ["fig7a.lat-range", "fig7a.degr-equals-lat", "fig7a.lat-n3"]),
    ("fig7", "run = 'colo'", "rpq_occ", 0.5, ["fig7b.queue-before-sat", "fig7b.rpq-with-n1"]),
    ("fig7", "run = 'iso-c2m'", "row_miss_ratio", 2.0, ["fig7c.rowmiss-iso", "fig7c.without-n1"]),
    ("fig7", "run = 'iso-c2m'", "bank_dev_15_frac", 0.5, ["fig7d.dev15-range", "fig7d.dev15-without"]),
    ("fig7", "run = 'colo'", "iio_write_lat_ns", 1.3, ["fig7e.p2m-n1-zero", "fig7e.write-lt-read"]),
    ("fig7", "true", "wpq_full_frac", 10.0, ["fig7f.wpq-n1", "fig7f.wpq-lt30", "fig7f.wpq-n4"]),
    ("fig7", "true", "t_trans_ns", 0.5, ["fig7.hide-condition"]),
    ("fig7", "run = 'iso-p2m'", "p2m_gbs", 0.9, ["fig7.pcie-14"]),
    ("fig8", "n = 4", "iio_write_lat_ns", 0.7, ["fig8d.p2m-1.5x", "fig8.mc-onesided"]),
    ("fig8", "run = 'colo'", "iio_write_occ", 0.8, ["fig8f.spare", "fig8f.exhausted", "fig8f.n3"]),
    ("fig8", "n = 6", "rpq_occ", 1.5, ["fig8b.rpq-plateau", "fig8b.rpq-with-n6", "fig8b.rpq-iso-n6"]),
    ("fig8", "n = 6", "lfb_lat_ns", 0.8, ["fig8a.c2m-50ns"]),
    ("sec5_method", "repeat = 2", "rpq_occ", 1.02, ["sec5.variation"]),
    ("fig11", "quadrant = 4", "c2m_err_adj_pct", 2.0, ["fig11.q4-10pct"]),
    ("fig11", "quadrant = 3", "c2m_err_adm_pct", 2.0, ["fig11.q3-cha-c2m"]),
    ("fig11", "quadrant = 3", "c2m_err_pct", 0.2, ["fig11.q3-c2m-over", "fig11.q3-c2m-gt-p2m"]),
    ("fig12", "quadrant = 1", "c2m_write_hol_ns", 0.3, ["fig12a.q1-n1-whol", "fig12.q1-w-n1"]),
    ("fig12", "quadrant = 3", "p2m_write_hol_ns", 0.5, ["fig12e.q3-p2m-whol"]),
    ("fig12", "quadrant = 3", "c2m_admission_ns", 3.0, ["fig12d.q3-c2m-whol"]),
    ("fig13", "run = 'colo'", "cha_p2m_read_occ", 3.0, ["fig13.p2m-spare", "fig13.inflight-n1"]),
    (
        "fig1",
        "app = 'redis-read'",
        "degr_c2m",
        0.85,
        ["abs.c2m-1.2-2x", "sec1.within-host", "fig1a.redis-range", "fig1a.redis-n7"],
    ),
    ("fig1", "n = 8", "degr_c2m", 0.6, ["fig1b.gapbs-trend", "fig1d.gapbs-unsaturated"]),
    ("fig1", "app = 'gapbs-pr'", "degr_c2m", 0.7, ["fig1b.gapbs-range", "fig1.gapbs-gt-redis", "fig1b.gapbs-n12"]),
    ("fig1", "true", "degr_p2m", 1.04, ["fig1a.fio-unaffected"]),
    ("fig1", "true", "mem_bw_gbs", 1.3, ["fig1c.util-range", "fig1d.bw-n1", "fig1d.bw-n28"]),
    ("fig1", "true", "mem_p2m_write_gbs", 1.2, ["fig1c.p2m-bw"]),
    ("fig1", "true", "p2m_gbs", 1.2, ["fig1.p2m-iso-write"]),
    ("fig1", "app = 'redis-read'", "t0_llc_miss_ratio", 0.9, ["fig1.miss-100", "fig1.redis-miss-95"]),
    ("fig1", "run = 'iso-p2m'", "p2m_llc_miss_ratio", 0.9, ["fig1.miss-100"]),
    (
        "fig2",
        "ddio = 'on'",
        "degr_c2m",
        0.85,
        ["fig2.cl-c2m-degrades", "fig2a.ddio-worse-redis", "fig2a.redis-on-n1", "fig2b.gapbs-on-n3"],
    ),
    ("fig2", "ddio = 'off'", "degr_c2m", 1.15, ["fig2a.redis-off-n1", "fig2b.gapbs-off-n6"]),
    ("fig2", "ddio = 'on'", "mem_p2m_write_gbs", 1.1, ["fig2.ddio-bw-same"]),
    ("fig2", "n = 4", "degr_c2m", 0.7, ["fig2b.gapbs-trend"]),
    ("prefetch", "prefetch = 'on'", "t0_mops", 1.1, ["sec2-1.prefetch-redis-iso", "sec2-1.prefetch-redis-colo"]),
    ("fig3_knobs", "quadrant = 2 AND ddio = 'on'", "degr_p2m", 1.2, ["knobs.regimes-same"]),
    ("fig3_knobs", "prefetch = 'on'", "c2m_gbs", 0.7, ["knobs.prefetch-up"]),
    (
        "fig15",
        "true",
        "degr_c2m",
        0.8,
        ["fig15.c2m-degrades", "fig15.redis-w-gt-r", "fig15.redisw-on-n1", "fig15.bc-on-n6"],
    ),
    ("fig15", "true", "mem_c2m_read_gbs", 3.0, ["fig15.redisw-mix", "fig15.bc-mix"]),
    ("fig16", "true", "degr_c2m", 1.25, ["fig16.c2m-degrades", "fig16.redis-n1", "fig16.pr-n6"]),
    ("fig16", "true", "degr_p2m", 1.04, ["fig16.p2m-unaffected"]),
    ("fig17", "ddio = 'on'", "degr_c2m", 1.3, ["fig17.c2m-degrades", "fig17.ddio-same", "fig17.bc-n6"]),
    ("fig18", "quadrant = 3", "degr_p2m", 0.7, ["rdma.red-p2m", "fig18.q3-p2m-n4", "fig18.q3-p2m-n6"]),
    ("fig18", "quadrant = 2", "degr_p2m", 1.1, ["rdma.blue-p2m-zero"]),
    ("fig18", "quadrant = 3 AND n = 2", "degr_p2m", 1.3, ["rdma.onset-4"]),
    ("fig18", "run = 'iso-p2m'", "p2m_gbs", 0.9, ["rdma.load-98"]),
    ("fig20", "n = 6", "iio_write_lat_ns", 1.1, ["fig20.p2m-slight"]),
    ("fig20", "run = 'colo'", "rpq_occ", 0.3, ["fig20.c2m-inflates"]),
    ("fig21", "true", "row_miss_ratio", 5.0, ["fig21.rowmiss-lower"]),
    ("fig22", "n = 4", "pfc_pause_fraction", 0.5, ["fig22.pfc-n4"]),
    ("fig22", "true", "iio_write_occ", 0.8, ["fig22.p2m-le3", "fig22.exhausted"]),
    ("fig23_trace", "t_us = 30", "iio_write_occ", 0.5, ["fig23.iio-full"]),
    ("fig24", "n = 6", "cha_p2m_read_occ", 2.0, ["fig24.spare"]),
    ("fig28", "n = 3", "c2m_adj_read_hol_ns", 0.1, ["fig28.same-trends"]),
    ("fig19", "c2m = 'read'", "degr_net", 0.85, ["tcp.net-degrades-blue", "fig19.net-r-n4"]),
    ("fig19", "c2m = 'readwrite' AND n = 2", "degr_mem", 0.8, ["tcp.red-low", "fig19.mem-rw-n2"]),
    ("fig19", "run = 'iso-net'", "net_copy_share", 0.5, ["fig19.copy-half"]),
    ("fig25", "n = 4", "iio_write_occ", 1.4, ["fig25.iio-down", "fig25.iio-n4"]),
    ("fig26", "n = 3", "packet_loss", 3.0, ["fig26.loss-n3"]),
    ("fig26", "n = 3", "packet_loss", 0.0, ["fig26.loss-onset"]),
    ("fig29", "n = 4", "net_err_pct", 2.0, ["fig29.blue-10"]),
    ("fig29", "n = 4", "net_err_adm_pct", 2.0, ["fig29.red-mem-10"]),
    ("fig29", "n = 3", "p2m_err_adm_pct", 2.0, ["fig29.red-p2m-le3"]),
    ("fig30", "true", "p2m_write_hol_ns", 4.0, ["fig30.p2m-small"]),
    ("fig14", "run = 'colo'", "lfb_lat_ns", 0.6, ["fig14.c2m-inflates", "fig14.lat-n6"]),
]


@pytest.mark.parametrize("figure, rows, column, factor, ids", DOCTORED)
def test_a_doctored_table_turns_its_claims_off(board, figure, rows, column, factor, ids):
    name = f"hostnetwork_{figure}"
    tables = paperhost.tables()
    tables[name] = pl.SQLContext({"t": tables[name]}, eager=True).execute(
        f"SELECT * REPLACE (CASE WHEN {rows} THEN {column} * {factor} ELSE {column} END AS {column}) FROM t"
    )
    chosen = [c for c in load(HOST) if c.id.removeprefix("hostnetwork.c.") in ids]
    assert len(chosen) == len(ids)
    for after in evaluate(chosen, paperworld.Source(tables)):
        assert board[after.claim.id.removeprefix("hostnetwork.c.")].verdict == "reproduced"
        assert after.verdict == "off", f"{after.claim.id}: {after.verdict} {after.reason}"


@pytest.mark.parametrize("table", sorted(paperhost.tables()))
def test_missing_points_are_errors_never_passes(table):
    tables = paperhost.tables()
    tables[table] = tables[table].clear()
    con = connect()
    chosen = [c for c in load(HOST) if c.eval and table in tables_of(con, c)]
    assert {r.verdict for r in evaluate(chosen, paperworld.Source(tables))} == {"error"}


GOOD = {
    "id": "t.one",
    "text": "It holds.",
    "experiment": "mine.e.fig1",
    "role": "outcome",
    "kind": "range",
    "expected": [1.0, 2.0],
    "tolerance": 0.1,
    "unit": "",
    "eval": "SELECT * FROM mine_fig1",
}

CASES = [
    # metric, kind, expected, tolerance, rows, verdict
    ("within: y", "range", [1.0, 2.0], 0.1, {"value": [1.5]}, "reproduced"),
    ("within: y", "range", [1.0, 2.0], 0.1, {"value": [0.91, 2.19]}, "reproduced"),
    ("within: y", "range", [1.0, 2.0], 0.1, {"value": [0.89, 1.5]}, "off"),
    ("within: y", "range", [1.0, 2.0], 0.1, {"value": [1.5, 2.21]}, "off"),
    ("within: y", "range", [-10, 10], 0.1, {"value": [-10.9, 10.9]}, "reproduced"),
    ("within: y", "range", [-10, 10], 0.1, {"value": [-11.1]}, "off"),
    ("within: y", "range", [0.0, 0.3], 0.1, {"value": [0.32]}, "reproduced"),
    ("span: y", "range", [1.0, 2.0], 0.1, {"value": [1.5, 1.6]}, "off"),
    ("span: y", "share", [33, 53], 0.12, {"value": [35, 50]}, "reproduced"),
    ("span: y", "share", [33, 53], 0.12, {"value": [40, 50]}, "off"),
    ("y", "trend", ["knee", 4], 0.0, {"x": [1, 2, 3, 4, 5], "y": [1, 1, 1.02, 1.2, 1.6]}, "reproduced"),
    ("y", "trend", ["knee", 4], 0.0, {"x": [1, 2, 3, 4, 5], "y": [1, 1, 1.2, 1.4, 1.6]}, "off"),
    ("y", "trend", ["knee", 4], 0.3, {"x": [1, 2, 3, 4, 5], "y": [1, 1, 1.2, 1.4, 1.6]}, "reproduced"),
    ("y", "trend", ["knee", 4], 0.0, {"x": [1, 2, 3, 4, 5], "y": [1, 1, 1, 1, 1]}, "off"),
]


@pytest.mark.parametrize("metric, kind, expected, tolerance, rows, wanted", CASES)
def test_intervals_and_knees_decide_by_their_tolerance(tmp_path, metric, kind, expected, tolerance, rows, wanted):
    claim = GOOD | {"metric": metric, "kind": kind, "expected": expected, "tolerance": tolerance}
    path = tmp_path / "mine.toml"
    path.write_text("[[claim]]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in claim.items()))
    (found,) = evaluate(load(path), paperworld.Source({"mine_fig1": pl.DataFrame(rows, strict=False)}))
    assert (found.verdict, bool(found.reason)) == (wanted, wanted == "off"), found.reason
    assert expected_text(found.claim)
