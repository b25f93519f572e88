"""CC-NIC's studies, claims and plots: every experiment has a study or says what it lacks, and claims hold on an invented machine."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import paperccnic
import paperworld
import polars as pl
import pytest

from hostnet import plots, studies
from hostnet.scoreboard import evaluate, load
from hostnet.scoreboard.evaluate import connect, tables_of
from hostnet.specs import Scenario
from hostnet.studies import ccnic, ccnic_links

CLAIMS = Path(__file__).resolve().parents[2] / "claims" / "ccnic.toml"
EXPERIMENTS = {
    "tab1",
    "pcie-latency",
    "sec33-cachemgmt",
    "intro-unopt",
    "cores",
    "fig14a",
    "fig14b",
    "fig16a",
    "fig16b",
    "fig19-ads",
    "fig19-geo",
    "tab2-tcp",
    "fig21a",
    "fig21b",
    "sec32-event",
    "sec6-forward",
    *(f"fig{i}" for i in (2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 15, 17, 18, 20)),
}
# Without a query, as no study counts what it speaks of.
UNMEASURED = {"cachemgmt.clwb-keeps-line"}


class Source(paperworld.Source):
    def studies(self) -> dict[str, tuple[str, str]]:
        return {s.table: (s.system, s.figure) for s in studies.all_studies() if s.system == "ccnic"}

    def run(self, system: str, figure: str) -> dict[str, pl.DataFrame]:
        return super().run(system, figure.replace("-", "_"))


@pytest.fixture(scope="module")
def tables() -> dict[str, pl.DataFrame]:
    return paperccnic.tables()


@pytest.fixture(scope="module")
def board(tables):
    return {r.claim.id.removeprefix("ccnic.c."): r for r in evaluate(load(CLAIMS), Source(tables))}


# --- Studies --------------------------------------------------------------------------------------------------------


def test_every_experiment_of_the_paper_has_a_study_or_says_what_it_lacks_and_there_are_five_of_our_own():
    assert Counter([*paperccnic.FIGURES, *ccnic.NOT_BUILT]) == Counter(
        EXPERIMENTS | {"versus", "cxl", "links", "agent", "nic-threads"}
    )
    assert {c.figure for c in load(CLAIMS)} == EXPERIMENTS
    for figure in ccnic.NOT_BUILT:
        with pytest.raises(studies.NotBuiltYet, match="not built yet: it needs"):
            studies.get("ccnic", figure)


# Interfaces x sizes x (one packet under way, peak); choices x loads; core counts x sizes and a header each.
POINTS = {
    "fig11": 4 * 2 * (1 + 6),  # one packet under way, and six numbers of cores
    "fig12": 3 * 2 * (1 + 6),
    "fig13": 2 * (1 + 7),
    "intro-unopt": 2 * (1 + 6) + 2 * (1 + 7),
    "cores": 2 * (7 + 8) + 2,
    "fig14a": 2 * 2,
    "fig14b": 3 * 2,
    "fig15": 4 * 2,
    "fig16a": 6 * 2,
    "fig16b": 6 * 2,
    "fig17": 2 * 2,
    "fig18": 2 * 2,
    "fig20": 2 * 4,
    "pcie-latency": 3,
    "fig2": 3 * 8,
    "fig3": 2 * 64,
    "fig4": 2,
    "fig19-ads": 4 * 13,
    "fig19-geo": 4 * 13,
    "tab2-tcp": 2 * 2 * 10,
    "fig7": 2 * 9,
    "fig8": 2 * 6,
    "fig9": 2 * 3 * 2,
    "tab1": 5,
    "fig6": 2 * 2,
    "fig10": 2 * 2,
    "sec33-cachemgmt": 2 * (4 + 2),
    "sec32-event": 2 * 5,
    "agent": 2 * 2 * 2,
    "sec6-forward": 3,
    "nic-threads": 2 * 5,
}


@pytest.mark.parametrize("figure, points", POINTS.items())
def test_a_study_has_every_point_its_experiment_sweeps(figure, points):
    assert len(studies.get("ccnic", figure).points(False)) == points


def test_each_interface_is_loaded_at_shares_of_its_own_peak():
    rows = [
        {"platform": "icx", "system": s, "packet_bytes": 64, "n": n, "load": "saturated", "throughput_mrps": r}
        for s, n, r in (("ccnic", 8, 250.0), ("ccnic", 16, 300.0), ("e810", 8, 192.0), ("e810", 16, 180.0))
    ]
    points = ccnic.curve(rows, False).points(False)
    peaks = {p.columns["system"]: p.columns["n"] for p in points if p.columns["load"] == "peak"}
    assert peaks == {"ccnic": 16, "e810": 8}, "the best number of cores of each"
    found = {
        (p.columns["system"], p.columns["share"]): (p.columns["n"], p.changes["traffic.rate"])
        for p in points
        if p.columns["load"] == "loaded"
    }
    assert found["ccnic", 0.8] == (16, "240000000 pps") and found["e810", 0.8] == (8, "153600000 pps")
    assert len(found) == 2 * len(ccnic.SHARES)


def test_figures_that_show_the_same_point_share_it():
    def points(figure):
        return studies.get("ccnic", figure).points(False)

    def specs(points):
        return {Scenario.load(p.base).with_(p.changes).resolve() for p in points}

    assert specs(points("fig12")) <= specs(points("fig11"))
    full = specs(p for p in points("fig15") if p.columns["variant"] == "full")
    assert full <= specs(points("fig13")) and full <= specs(points("fig14a")) and full <= specs(points("fig14b"))


def test_features_go_one_after_the_other_and_end_at_a_pool_of_the_host():
    switches = [set(table) for table in ccnic.STEPS.values()]
    assert all(a < b for a, b in zip(switches, switches[1:]))
    assert ccnic.STEPS["no_shared_pool"]["ccnic.pool"] == "host"
    # Each step keeps the earlier removals: caches of a driver would bring back what the first one takes away.
    assert ccnic.STEPS["no_shared_pool"]["ccnic.quirks.cache"] == 0


def test_the_uncore_clock_for_a_slower_access_follows_from_two_clocks():
    # 100 ns that do not change, and 90 at 2.5 GHz that are cycles: 1.11 times 190 leaves 110.9 for them.
    rows = [{"place": "remote_dram", "uncore_ghz": f, "access_ns": 100 + 90 * 2.5 / f} for f in ccnic_links.PROBED_GHZ]
    assert ccnic_links.clock_for(rows, 1.11) == pytest.approx(2.5 * 90 / 110.9, abs=1e-3)
    assert ccnic_links.clock_for(rows, 1.0) == 2.5


def test_rates_of_links_are_those_of_their_standards_and_of_the_platforms():
    found = {p.columns["link"]: ccnic_links.raw_gbs(p.columns) for p in studies.get("ccnic", "tab1").points(False)}
    # PCIe 4.0 and 5.0 code 128 bits as 130; flits of 6.0 have 242 of 256 bytes for packets. UPI as sold.
    assert found == {
        "pcie4-x16": pytest.approx(31.508, abs=1e-3),
        "pcie5-x16": pytest.approx(63.015, abs=1e-3),
        "pcie6-x16": 121.0,
        "icx-upi": pytest.approx(67.2),
        "spr-upi": pytest.approx(192.0),
    }


def test_both_pcie_nics_are_one_scenario_but_for_what_was_fitted():
    ours, other = (Scenario.load(ccnic.PCIE[n]).to_dict() for n in ("e810", "cx6"))
    measured = {"to": "76 million packets of 64 B a second", "link": "200 Gbps", "generation": "gen4", "lanes": 16}
    rings = {"receive_packets": 20, "quirks": {"fitted": {"receive_packets": 20, **measured}}}
    fitted = {"propagation": "22 ns", "rings": rings}
    assert other.pop("peripheral") == [{"kind": "ethernet", "loopback": True, **fitted}]
    assert ours.pop("peripheral") == [{"kind": "ethernet", "loopback": True}]
    assert {k for k in ours if ours[k] != other[k]} == {"name"}


@pytest.mark.parametrize("load", ["min", "peak", "loaded"])
def test_pcie_nics_and_cc_nic_have_the_same_generator_and_load(load):
    def of(system: str) -> tuple[dict, dict, int]:
        loads = {"min": ccnic.MIN, "peak": ccnic.PEAK, "loaded": ccnic.COUNT(16) * ccnic.offered(0.8, 10.0)}
        (p,) = (ccnic.ICX * ccnic.SYSTEM(system) * ccnic.SIZE(ccnic.LARGE) * loads[load]).points(False)
        s = Scenario.load(p.base).with_(p.changes).to_dict()
        return s["tenant"][0]["app"], s["traffic"], s["tenant"][0]["cores"]

    assert of("ccnic") == of("e810") == of("cx6")
    assert of("e810")[0] == {"kind": "loopback", "bytes": "1500 B", "touch": "payload"}


# --- Claims ---------------------------------------------------------------------------------------------------------


def test_every_claim_that_has_a_query_and_a_study_holds_on_the_invented_machine(board):
    assert len(board) == 120
    off = {i: (r.verdict, r.reason) for i, r in board.items() if r.verdict not in ("reproduced", "not built yet")}
    assert set(off) == {"pcie.dma-read-floor"} and off["pcie.dma-read-floor"][0] == "disputed", off
    waiting = {i for i, r in board.items() if r.verdict == "not built yet"}
    assert (
        waiting
        == {i for i, r in board.items() if r.claim.figure in ccnic.NOT_BUILT and not r.claim.disputed} | UNMEASURED
    )


def test_inputs_are_latencies_maxima_and_anchors_and_no_headline(board):
    inputs = {i for i, r in board.items() if r.claim.role == "input"}
    assert inputs == {
        "fig7.remote-dram-2x-icx",
        "fig7.remote-l2-spr",
        "fig7.remote-l2-icx",
        "fig7.lh-slower-than-rh-icx",
        "fig7.l2-below-dram-spr",
        "fig9.mlc-icx",
        "fig9.mlc-spr",
        "fig12.min-latency-cx6",
        "fig12.min-latency-e810",
        "fig12.peak-rate-e810",
        "fig12.peak-rate-cx6",
        "fig12.large-gbps-e810",
        "fig12.large-gbps-cx6",
        "fig21a.base-latency",
        "fig3.knee-24",
    }
    assert all(r.claim.role == "outcome" for r in board.values() if r.claim.weight == "headline")


# table, condition that picks rows, column, factor, claims that must turn from reproduced to off
DOCTORED = [
    ("fig19_ads", "n = 8", "kv_mops", 2.5, ["fig19-ads.peak-pcie", "fig19-ads.threads-pcie"]),
    ("fig19_geo", "n = 16", "kv_mops", 1.5, ["fig19-geo.peak-pcie", "fig19-geo.threads-pcie"]),
    ("fig19_ads", "system = 'ccnic-overlay'", "kv_mops", 0.2, ["fig19-ads.peak-ccnic", "fig19-ads.1to1-limited"]),
    (
        "fig19_ads",
        "system = 'ccnic-overlay' AND n < 10",
        "kv_mops",
        0.5,
        ["fig19-ads.threads-ccnic", "fig19-ads.half-the-threads"],
    ),
    ("fig19_geo", "system = 'ccnic-overlay'", "kv_mops", 1.3, ["fig19-geo.peak-ccnic", "fig19-geo.equal-peaks"]),
    ("tab2_tcp", "system = 'cx6' AND n > 1", "tcp_mops", 1.5, ["tab2-tcp.peak-pcie", "tab2-tcp.pcie-slightly-lower"]),
    ("tab2_tcp", "system = 'cx6' AND n < 8", "tcp_mops", 0.5, ["tab2-tcp.threads-pcie"]),
    ("tab2_tcp", "variant = 'sockets'", "tcp_mops", 0.5, ["tab2-tcp.peak-pcie", "tab2-tcp.nic-bound"]),
    ("sec32_event", "signalling = 'polling' AND queues = 1", "signal_discovery_ns", 9.0, ["event.polling-degrades"]),
    ("sec6_forward", "system = 'ccnic'", "crossed_bytes", 1.5, ["sec6-forward.no-payload-crossing"]),
    ("sec6_forward", "system = 'e810'", "crossed_bytes", 0.5, ["sec6-forward.pcie-moves-all"]),
    ("pcie_latency", "access = 'mmio_read'", "mmio_read_ns", 1.5, ["pcie.mmio-read-8b", "pcie.dma-like-mmio"]),
    (
        "fig2",
        "target = 'wc_mmio' AND block_bytes = 1024",
        "write_gbps",
        4.0,
        ["fig2.wc-mmio-rises-with-block", "fig2.knee-4kb"],
    ),
    ("fig2", "target = 'wb_dram' AND block_bytes = 64", "write_gbps", 0.1, ["fig2.wb-flat", "fig2.wb-above-wc-64b"]),
    ("fig2", "target = 'wc_dram' AND block_bytes > 1000", "write_gbps", 0.1, ["fig2.wc-dram-rises-with-block"]),
    ("fig3", "stores = 20", "store_ns", 9.0, ["fig3.plateau-e810"]),
    ("fig3", "stores > 24", "store_ns", 0.2, ["fig3.knee-24"]),
    ("fig3", "stores > 40", "store_ns", 0.1, ["fig3.rising-after-knee"]),
    ("fig4", "system = 'ccnic'", "tx_serial_trips", 1.5, ["fig4.pcie-extra-roundtrip"]),
    ("fig8", "layout = 'Wr'", "pingpong_ns", 1.3, ["fig8.writer-homed-best-separate"]),
    ("fig8", "layout = 'S0C'", "pingpong_ns", 1.8, ["fig8.colocated-best", "fig8.separate-over-colocated-icx"]),
    ("fig8", "layout = 'Rd'", "remote_requests", 1.25, ["fig8.requests-separate"]),
    (
        "fig9",
        "stores_as = 'nontemporal'",
        "stream_gbps",
        1.9,
        ["fig9.cached-over-nt-icx", "fig9.readonly-is-best-pattern"],
    ),
    (
        "fig11",
        "system = 'ccnic' AND load = 'min'",
        "rtt_ns",
        1.6,
        ["fig11.min-latency-vs-cx6", "fig11.min-latency-vs-e810"],
    ),
    ("fig11", "system = 'unopt'", "mpps", 3.0, ["fig11.unopt-below-pcie-e810", "fig11.unopt-throughput-loss"]),
    (
        "fig12",
        "system = 'ccnic' AND packet_bytes = 1500",
        "gbps",
        0.8,
        ["fig12.large-gbps-ccnic", "fig12.large-share-of-upi"],
    ),
    (
        "fig12",
        "system = 'cx6' AND load = 'loaded'",
        "rtt_ns",
        0.3,
        ["fig12.loaded-latency-cx6", "fig12.loaded-large-vs-cx6", "fig12.pcie-nic-vs-switch"],
    ),
    ("fig13", "load = 'peak'", "mpps", 0.8, ["fig13.peak-rate-headline", "fig13.peak-rate-spr", "fig13.upi-share-64b"]),
    ("intro_unopt", "system = 'unopt'", "mpps", 2.0, ["intro.throughput-vs-unopt"]),
    ("cores", "platform = 'spr' AND n < 56", "mpps", 0.8, ["cores.spr-64b"]),
    ("cores", "n = 4", "mpps", 2.0, ["cores.icx-4kb"]),
    ("fig14a", "signal = 'register'", "mpps", 1.3, ["fig14a.inline-rate"]),
    ("fig14b", "layout = 'padded'", "mpps", 2.0, ["fig14b.opt-rate", "fig14b.rate-order"]),
    ("fig14b", "layout = 'grouped'", "rtt_ns", 1.3, ["fig14b.pack-latency-worst"]),
    ("fig15", "variant = 'no_shared_pool'", "mpps", 2.0, ["fig15.no-shared-pool", "fig15.order"]),
    ("fig16a", "tx_batch = 1", "mpps", 2.0, ["fig16a.unbatched-ccnic"]),
    ("fig16b", "rx_batch = 1", "mpps", 0.2, ["fig16b.rx-floor-e810", "fig16b.rx-less-sensitive-than-tx"]),
    ("fig17", "mode = 'batched'", "nic_remote_reads_payload", 1.5, ["fig17.payload-read"]),
    ("fig17", "mode = 'batched'", "nic_remote_reads", 2.0, ["fig17.unopt-extra-read"]),
    ("fig17", "mode = 'batched' AND system = 'ccnic'", "nic_remote_rfos", 9.0, ["fig17.batching-helps-ccnic"]),
    ("fig18", "placed = 'same-socket'", "rtt_ns", 1.5, ["fig18.upi-share-min", "fig18.upi-share-loaded"]),
    ("fig20", "prefetch = 'host'", "mpps", 0.8, ["fig20.host-prefetch-gain", "fig20.best-is-host-only-ccnic"]),
    (
        "fig21a",
        "slowdown = 1.11 AND system = 'ccnic'",
        "rtt_ns",
        1.2,
        ["fig21a.ccnic-latency-growth", "fig21a.keeps-advantage"],
    ),
    ("fig21b", "system = 'unopt'", "gbps", 3.0, ["fig21b.always-above-unopt"]),
    ("sec33_cachemgmt", "policy = 'retain'", "retained_rfos", 0.5, ["cachemgmt.retained-buffer-costs-rfo"]),
    ("fig6", "signal = 'register'", "nic_signal_reads", 1.5, ["fig6.saves-line-transfer"]),
]


@pytest.mark.parametrize("figure, where, column, factor, ids", DOCTORED)
def test_a_doctored_table_turns_its_claims_off(tables, board, figure, where, column, factor, ids):
    name = f"ccnic_{figure}"
    changed = pl.SQLContext({"t": tables[name]}, eager=True).execute(
        f"SELECT * REPLACE (CASE WHEN {where} THEN {column} * {factor} ELSE {column} END AS {column}) FROM t"
    )
    chosen = [c for c in load(CLAIMS) if c.id.removeprefix("ccnic.c.") in ids]
    assert len(chosen) == len(ids)
    for after in evaluate(chosen, Source({**tables, name: changed})):
        assert board[after.claim.id.removeprefix("ccnic.c.")].verdict == "reproduced"
        assert after.verdict == "off", f"{after.claim.id}: {after.verdict} {after.reason}"


def test_queries_read_columns_that_studies_make():
    con = connect()
    made = {s.table for s in studies.all_studies() if s.system == "ccnic"}
    for claim in load(CLAIMS):
        if claim.eval and claim.figure not in ccnic.NOT_BUILT:
            assert tables_of(con, claim) <= made, claim.id


# --- Plots ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("figure", paperccnic.FIGURES)
def test_every_study_has_a_plot(tables, figure):
    fig = plots.figure_of(
        f"ccnic_{figure}".replace("-", "_"),
        tables[f"ccnic_{figure}".replace("-", "_")],
        tables,
        studies.get("ccnic", figure).metrics,
    )
    assert any(ax.has_data() for ax in fig.axes)
