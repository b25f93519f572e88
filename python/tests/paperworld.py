"""Study tables of an invented machine on which every undisputed claim of claims/sweeper.toml holds.

The numbers are made up from the paper's statements (gains, footprints, order), never from the simulator, so the
scoreboard can be tested without an engine: all claims must pass here, and a doctored table must fail them.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from hostnet import studies
from hostnet.declared import metric_info
from hostnet.studies.axes import AXES

SWEPT = [axis.column for axis in AXES]
METRICS = list(dict.fromkeys([*metric_info(), *(d for s in studies.all_studies() for d in s.derived)]))
CLASSES = [m for m in METRICS if m.startswith("acc_") and m != "acc_total"]

WAYS = (2, 4, 6, 12)
# (item, buffers): Sweeper's gain over 2-way DDIO, and 12-way over 2-way DDIO
CLUSTERS = {
    (512, 512): (1.224, 1.2),
    (512, 1024): (1.4, 1.3),
    (512, 2048): (1.9, 1.4),
    (1024, 512): (1.35, 1.3),
    (1024, 1024): (1.79, 1.6),
    (1024, 2048): (2.6, 1.238),
}
SWEEPER_MRPS = {512: 70.0, 1024: 46.5}


def frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Rows as a study table: every swept variable and every metric, null where a row does not say."""
    text = {"case", "system", "injection", "agent", "eviction", "guard", "mode", "rate_basis", "load"}
    schema = {c: pl.String if c in text else pl.Float64 for c in SWEPT + METRICS}
    schema |= {
        c: pl.Int64 for c in ("ways", "buf", "item_bytes", "depth", "endpoints", "channels", "split_a", "split_b")
    }
    unknown = {k for row in rows for k in row} - schema.keys()
    assert not unknown, unknown
    return pl.DataFrame([{c: row.get(c) for c in schema} for row in rows], schema=schema)


def point(system: str, ways: int | None, mrps: float, acc: dict[str, float], **more: Any) -> dict[str, Any]:
    """A loaded point: throughput, accesses per request by class, and what follows from them."""
    classes = dict.fromkeys(CLASSES, 0.0)
    classes |= {f"acc_{c}": float(n) for c, n in acc.items()}
    total = sum(classes.values())
    row = {
        "system": system,
        "ways": ways,
        "throughput_mrps": mrps,
        "acc_total": total,
        "mem_bw_gbs": mrps * total * 64 / 1000,
    }
    return {"load": "peak_slo", "buf": 2048, "item_bytes": 1024, "channels": 4} | row | classes | more


def gain(item: int, buf: int, ways: int) -> float:
    """Sweeper over DDIO: falls geometrically from two to twelve ways."""
    low, spread = CLUSTERS[item, buf]
    return low / spread ** (WAYS.index(ways) / 3)


def ddio_acc(item: int, g: float) -> dict[str, float]:
    return {"rx_evct": item / 64 * min(1.0, 0.55 * (g - 0.99)), "cpu_other_rd": 16, "other_evct": 15}


def fig5() -> pl.DataFrame:
    rows = []
    for item, buf in CLUSTERS:
        top = SWEEPER_MRPS[item]
        rows.append(
            point("ideal", None, top * 1.0212, {"cpu_other_rd": 16, "other_evct": 15}, buf=buf, item_bytes=item)
        )
        for ways in WAYS:
            g = gain(item, buf, ways)
            rows.append(point("ddio", ways, top / g, ddio_acc(item, g), buf=buf, item_bytes=item))
            sweep = {"rx_evct": 0.05, "cpu_rx_rd": 0.05, "cpu_other_rd": 16.4, "other_evct": 15.4}
            rows.append(point("sweeper", ways, top, sweep, buf=buf, item_bytes=item))
    return frame(rows)


def fig1() -> pl.DataFrame:
    rows = []
    for i, buf in enumerate((512, 1024, 2048)):
        for load, dram in (("peak_slo", 120.0), ("fixed", 90.0)):
            common = {"buf": buf, "load": load}
            dma = {"nic_rx_wr": 16, "cpu_rx_rd": 16, "nic_tx_rd": 2, "cpu_other_rd": 16, "other_evct": 15}
            rows.append(point("dma", None, 15.0 - 0.3 * i, dma, dram_lat_avg_ns=dram * 1.5, amat_cycles=60.0, **common))
            app = {"cpu_other_rd": 16, "other_evct": 15}
            rows.append(point("ideal", None, 46.0, app, dram_lat_avg_ns=70.0, amat_cycles=30.0, **common))
            for ways, best in ((2, 25.0), (4, 28.0), (6, 31.0)):
                evct = {512: 8.0, 1024: 12.0, 2048: 16.0}[buf] - ways / 2
                acc = app | {"rx_evct": evct, "cpu_rx_rd": 0.02 * evct}
                more = {"dram_lat_avg_ns": dram, "amat_cycles": 40.0} | common
                rows.append(point("ddio", ways, best * (1 - 0.1 * i), acc, **more))
    return frame(rows)


def fig2_7(figure: str) -> pl.DataFrame:
    rows = []
    for i, depth in enumerate((50, 250, 450)):
        if figure == "fig7" and depth == 50:
            continue
        rows.append(point("ideal", None, 80.0, {"cpu_other_rd": 0.5}, depth=depth, llc_rx_lines_outside_ddio=0.0))
        if figure == "fig2":
            dma = {"nic_rx_wr": 16, "cpu_rx_rd": 16, "nic_tx_rd": 16, "cpu_other_rd": 0.5}
            rows.append(point("dma", None, 20.0, dma, depth=depth))
        for ways, mrps in ((2, 30.0), (6, 45.0), (12, 55.0)):
            early = {2: 0.5 + 2.0 * i, 6: 0.02, 12: 0.01}[ways]
            evct = {2: 14.0, 6: 10.0, 12: 6.0}[ways] + early
            acc = {"rx_evct": evct, "cpu_rx_rd": early, "cpu_other_rd": 0.5, "tx_evct": 1.5}
            more = {"depth": depth, "llc_rx_lines_outside_ddio": 9000.0}
            rows.append(point("ddio", ways, mrps, acc, **more))
            if figure == "fig7":
                left = 1.3 * early if ways == 2 else 0.8 * early
                acc = {"rx_evct": left, "cpu_rx_rd": left, "cpu_other_rd": 0.5, "tx_evct": 1.5}
                rows.append(point("sweeper", ways, 72.0, acc, depth=depth, llc_rx_lines_outside_ddio=500.0))
    return frame(rows)


def fig8() -> pl.DataFrame:
    # (channels, large cluster?) -> (gain of 2 ways, gain of 12 ways, ideal Mrps)
    gains = {
        (3, False): (1.4, 1.1, 55.0),
        (3, True): (2.7, 2.2, 38.0),
        (4, False): (1.25, 1.05, 70.0),
        (4, True): (2.6, 2.1, 47.0),
        (8, False): (1.1, 1.01, 90.0),
        (8, True): (2.0, 1.6, 70.0),
    }
    rows = []
    for (channels, large), (low, high, ideal) in gains.items():
        more = {"channels": channels, "buf": 2048 if large else 512, "item_bytes": 1024 if large else 512}
        rows.append(point("ideal", None, ideal, {"cpu_other_rd": 16}, **more))
        for ways, g in ((2, low), (12, high)):
            rows.append(point("ddio", ways, 0.97 * ideal / g, {"cpu_other_rd": 16, "rx_evct": 8}, **more))
            rows.append(point("sweeper", ways, 0.97 * ideal, {"cpu_other_rd": 16}, **more))
    return frame(rows)


def fig6(side: str) -> pl.DataFrame:
    load = {"load": "fixed", "rate_mrps": 26.0, "rate_basis": "paper"} if side == "right" else {"load": "peak_slo"}
    cells = [  # system, ways, Mrps, mean and p99 DRAM latency at own peak, then at 26 Mrps
        ("ddio", 2, 26.0, 100.0, 400.0, 100.0, 400.0),
        ("sweeper", 2, 46.5, 88.0, 370.0, 53.0, 150.0),
        ("ddio", 12, 41.0, 95.0, 380.0, 70.0, 220.0),
        ("sweeper", 12, 46.5, 90.0, 357.0, 53.0, 150.0),
    ]
    rows = []
    for system, ways, mrps, mean, p99, mean26, p99at26 in cells:
        right = side == "right"
        lat = {"dram_lat_avg_ns": mean26 if right else mean, "dram_lat_p99_ns": p99at26 if right else p99}
        lat["dram_lat_p50_ns"] = 0.8 * lat["dram_lat_avg_ns"]
        rows.append(point(system, ways, 26.0 if right else mrps, {"cpu_other_rd": 30}, buf=1024, **lat, **load))
    if side == "right":
        # What the study holds besides: the 2-way DDIO peak itself, and everything at that rate.
        own = {"rate_mrps": 25.5, "rate_basis": "2-way ddio peak"}
        rows += [r | own for r in rows] + [rows[0] | {"load": "peak_slo", "rate_mrps": None, "rate_basis": "own peak"}]
    return frame(rows)


def fig9(letter: str) -> pl.DataFrame:
    rows = []
    for i, a in enumerate((2, 4, 6, 8, 10, 12) if letter == "b" else (1, 2, 4, 6, 8, 10)):
        for system in ("ddio", "sweeper"):
            swept = system == "sweeper"
            fwd = 30.0 if swept else (16.0, 20.0, 23.0, 25.0, 27.0, 28.0)[i]
            mem = 100.0 * (1 - 0.07 * i) * (1.05 if swept else 1.0)
            more = {"t0_mops": fwd, "t1_mops": mem, "llc_app_share": 0.01, "t1_llc_miss_ratio": 0.2 + 0.1 * i}
            if letter == "a":
                more |= {"split_a": a, "split_b": 12 - a}
            rows.append(point(system, a, fwd, {"cpu_other_rd": 4}, **more))
    return frame(rows)


def fig10(letter: str) -> pl.DataFrame:
    peaks = {128: 8.0, 256: 12.0, 512: 18.0, 1024: 27.0, 2048: 26.4}
    rows = []
    for buf, peak in peaks.items():
        for system, best in (("ddio", peak), ("sweeper", max(peak * 1.02, 35.0 if buf == 2048 else 0))):
            more = {"buf": buf, "load": "peak_nodrop"}
            if letter == "a":
                rows += [
                    point(system, 2, best, {"cpu_other_rd": 16}, drop_rate=0.0, stall_pct=pct, **more)
                    for pct in (0.1, 0.3, 1.0, 3.0)
                ]
            elif buf in (128, 2048):
                rows.append(point(system, 2, best, {"cpu_other_rd": 16}, drop_rate=0.0, **more))
                for rate in (4.0, 8.0, 12.0, 16.0, 20.0, 24.0, 28.0, 32.0, 36.0):
                    lost = max(0.0, 1e-3 * (rate / best - 1))
                    more = {"buf": buf, "load": "fixed", "rate_mrps": rate, "drop_rate": lost}
                    rows.append(point(system, 2, rate * (1 - lost), {"cpu_other_rd": 16}, **more))
    return frame(rows)


def sizing() -> pl.DataFrame:
    rows = []
    for buf in (128, 256, 512, 1024, 2048):
        for item in (512, 1024, 1536):
            for ways in WAYS:
                footprint = 24 * buf * item / 2**20
                rows.append(
                    {
                        "case": "ring",
                        "system": "ddio",
                        "ways": ways,
                        "buf": buf,
                        "item_bytes": item,
                        "load": "none",
                        "cores": 24.0,
                        "channels": 4,
                        "mem_peak_gbs": 102.4,
                        "llc_mib": 36.0,
                        "l1l2_kib": 1328.0,
                        "rx_footprint_mib": footprint,
                        "rx_footprint_per_llc": footprint / 36,
                        "ddio_capacity_mib": 36 * ways / 12,
                        "total_rx_entries": 24.0 * buf,
                    }
                )
    # A ring of 128 for each of 64 endpoints, and one ring of 1024 that 256 endpoints share.
    for case, buf, endpoints, cores in (
        ("ring-of-128-per-endpoint", 8192, 64, 24),
        ("shared-by-endpoints", 1024, 256, 1),
    ):
        entries = float(buf * cores)
        other = {"case": case, "buf": buf, "endpoints": endpoints, "cores": float(cores), "total_rx_entries": entries}
        rows.append(rows[0] | {"item_bytes": 1024, "rx_footprint_mib": entries / 1024} | other)
    return frame(rows)


def directed() -> dict[str, pl.DataFrame]:
    none = {"load": "none", "ways": 2, "unloaded_dram_ns": 80.0}
    rx = {"dma": (None, 310.0), "ddio": (2, 57.0)}
    sec2b = [
        none
        | {
            "system": s,
            "injection": s,
            "ways": w,
            "eviction": e,
            "dram_reads_per_block": float(e == "before" or s == "dma"),
            "first_read_cycles": lat + (256 if e == "before" and s == "ddio" else 0),
            "evct_dirty_fraction": 1.0,
        }
        for s, (w, lat) in rx.items()
        for e in ("none", "before", "after")
    ]
    fig3 = [
        none
        | {
            "system": s,
            "item_bytes": size,
            "llc_dirty_blocks": size / 64,
            "copies_left": 0.0 if s == "sweeper" else 6.0,
            "dram_writes_per_block": 0.0 if s == "sweeper" else 1.0,
            "clsweeps": size / 64 if s == "sweeper" else 0.0,
        }
        for s in ("ddio", "sweeper")
        for size in (128, 512, 1024)
    ]
    agents = (("none", 1.0, None), ("nic", 0.0, 20.0), ("cpu", 0.0, 900.0))
    fig4 = [
        none | {"case": "directed", "system": "ddio", "agent": a, "tx_writes_per_block": n, "sweep_delay_ns": d}
        for a, n, d in agents
    ]
    fig4.append(point("sweeper", 2, 60.0, {"cpu_rx_rd": 1}, case="zero-copy", agent="nic", load="saturate"))
    steps = ("WQ entry written", "WQ entry read", "transmission complete", "sweep messages", "buffer released")
    events = pl.DataFrame({"agent": "nic", "event": list(steps), "t_ns": [0.0, 30.0, 120.0, 130.0, 150.0]})
    guards = (("none", 64.0), ("clwb", 0.0), ("dma", 0.0))
    sec5b = [none | {"system": "sweeper", "guard": g, "stale_blocks_readable": n} for g, n in guards]
    return {
        "sweeper_sec2b": frame(sec2b),
        "sweeper_fig3": frame(fig3),
        "sweeper_fig4": frame(fig4),
        "sweeper_fig4_events": events,
        "sweeper_sec5b": frame(sec5b),
        "sweeper_sec6f_cited": frame([none | {"system": "ddio", "packets_per_pause": 480.0, "drop_rate": 0.5}]),
    }


def tables() -> dict[str, pl.DataFrame]:
    """Every study table by SQL name."""
    return directed() | {
        "sweeper_sizing": sizing(),
        "sweeper_fig1": fig1(),
        "sweeper_fig2": fig2_7("fig2"),
        "sweeper_fig5": fig5(),
        "sweeper_fig6_left": fig6("left"),
        "sweeper_fig6_right": fig6("right"),
        "sweeper_fig7": fig2_7("fig7"),
        "sweeper_fig8": fig8(),
        "sweeper_fig9a": fig9("a"),
        "sweeper_fig9b": fig9("b"),
        "sweeper_fig10a": fig10("a"),
        "sweeper_fig10b": fig10("b"),
    }


class Source:
    """A StudySource over hand-made tables."""

    def __init__(self, tables: dict[str, pl.DataFrame]):
        self.tables = tables
        self.asked: list[str] = []

    def studies(self) -> dict[str, tuple[str, str]]:
        return {t: tuple(t.split("_", 1)) for t in self.tables if not t.endswith("_events")}  # type: ignore[misc]

    def run(self, system: str, figure: str) -> dict[str, pl.DataFrame]:
        name = f"{system}_{figure}"
        self.asked.append(name)
        return {t: f for t, f in self.tables.items() if t == name or t.startswith(name + "_")}
