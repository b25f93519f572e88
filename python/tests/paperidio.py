"""Study tables of an invented machine on which every undisputed claim of claims/idio.toml that has a query holds.

The numbers are made up from the paper's statements, never from the simulator. Rows are the studies' own points, so that a
query over a column that no study makes fails here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from hostnet import studies
from hostnet.declared import metric_info
from hostnet.studies import idio
from hostnet.studies.axes import AXES

FIGURES = [s.figure for s in studies.all_studies() if s.system == "idio"]
# What the engine gives for bursts and placement, beside what it gives every run.
METRICS = (
    "batch_cached",
    "burst_start_us",
    "mlc_wb",
    "mlc_wb_mtps",
    "llc_wb",
    "llc_wb_unread",
    "llc_wb_victim",
    "descriptors_per_write_back",
    "mlc_wb_consumed",
    "mlc_invalidations",
    "burst_us",
    "hints",
    "hints_dropped",
    "hints_fetched",
    "t0_cpi",
    "t1_cpi",
)

# By burst rate: what DDIO takes, and each system's share of it.
DDIO = {
    "mlc_wb": {100: 40_000.0, 25: 40_000.0, 10: 40_000.0},
    "llc_wb": {100: 20_000.0, 25: 15_000.0, 10: 8_000.0},
    "lines_read": {100: 12_000.0, 25: 8_000.0, 10: 2_000.0},
    "lines_written": {100: 20_000.0, 25: 15_000.0, 10: 8_000.0},
    "burst_us": {100: 1_100.0, 25: 1_100.0, 10: 1_160.0},
    "lat_p99_us": {100: 1_000.0, 25: 700.0, 10: 60.0},
    "lat_p50_us": {100: 520.0, 25: 330.0, 10: 8.0},
}
SHARE = {
    "idio": {
        "mlc_wb": {100: 0.261, 25: 0.163, 10: 0.4},
        "llc_wb": 0.3,
        "lines_read": 0.6,
        "lines_written": 0.15,
        "burst_us": {100: 0.815, 25: 0.78, 10: 1.0},
        "lat_p99_us": {100: 0.921, 25: 0.695, 10: 0.9},
        "lat_p50_us": 0.8,
    },
    "static": {"mlc_wb": {100: 0.35, 25: 0.163, 10: 0.4}, "burst_us": {100: 0.83, 25: 0.78, 10: 1.0}},
    "inval": {"mlc_wb": {100: 0.4, 25: 0.3, 10: 0.4}, "llc_wb": 0.5, "burst_us": {100: 0.9, 25: 0.85, 10: 1.0}},
    "pref": {"mlc_wb": 1.05, "burst_us": {100: 0.92, 25: 0.95, 10: 1.0}},
}
# Beside the antagonist: DDIO over DDIO alone, and IDIO's share of that.
CORUN_P99 = {100: (1.1, 0.95), 25: (750 / 700, 0.68), 10: (1.15, 0.918)}
CPI = {100: (2.0, 0.832), 25: (1.9, 0.85), 10: (1.85, 0.843)}
HINTED = {"static": 1.0, "pref": 1.0, "idio": {100: 0.4, 25: 0.95, 10: 0.99}}
CAPACITY = 8_192  # lines of two of twelve ways


def at(value: Any, rate: int) -> float:
    return value[rate] if isinstance(value, dict) else value


def burst(row: dict[str, Any]) -> dict[str, float]:
    system, rate, corun = row["system"], int(row["rate_gbps"]), row["scenario"] == "corun"
    out = {m: v[rate] * at(SHARE.get(system, {}).get(m, 1.0), rate) for m, v in DDIO.items()}
    if corun:
        worse, kept = CORUN_P99[rate]
        out["lat_p99_us"] = DDIO["lat_p99_us"][rate] * worse * (kept if system == "idio" else 1.0)
        cpi, kept = CPI[rate]
        out |= {"t1_cpi": cpi * (kept if system == "idio" else 1.0)}
        if system == "idio" and rate == 100:
            out["burst_us"] = DDIO["burst_us"][100] * 0.891
    lines = idio.lines_of(row)
    payload = lines  # a descriptor takes the place of each header
    if system in HINTED:
        out["hints"] = row["packets"] + payload * at(HINTED[system], rate)
    if row.get("status") == "llc":
        out["hints"] = float(row["packets"])
    if row["app"] == "l2fwd-drop":
        out |= {
            "hints": float(row["packets"]),
            "hints_fetched": 0.97 * row["packets"],
            "lines_written": 15 / 16 * lines,
        }
    elif row["app"] == "l2fwd":
        out["mlc_wb"] = 2_500.0 if system == "ddio" else 2_000.0
    if row.get("thr_mtps"):
        out["mlc_wb"] += (row["thr_mtps"] - 50) * {100: 40, 25: 10, 10: 0}[rate]
        out["burst_us"] += (row["thr_mtps"] - 50) * 0.1
    return out | {
        "descriptors_per_write_back": 1.0,
        "mlc_wb_consumed": 0.9 * out["mlc_wb"],
        "llc_wb_unread": 0.4 * out["llc_wb"],
        "llc_wb_victim": 0.6 * out["llc_wb"],
        "drops": 0.0,
        "drop_rate": 0.0,
        "burst_start_us": 1.9,
        "throughput_mrps": 1.9,
        "cores_busy": 2.0,
        "ddio_capacity_mib": CAPACITY / 16_384,
        "acc_cpu_rx_rd": 1.0,
    }


# Server, ring -> MLC write-backs and invalidations over received bytes; DRAM writes at (low, med, high).
SERVER = {64: (0.05, 0.6), 1024: (1.52, 0.1), 2048: (1.6, 0.02)}
SERVER_DRAM = {
    ("all", 64): (0, 0, 0.01),
    ("all", 1024): (0.02, 0.05, 0.08),
    ("all", 2048): (0.3, 0.4, 0.5),
    ("1", 64): (0, 0, 0.02),
    ("1", 1024): (0.3, 0.6, 0.984),
    ("1", 2048): (0.6, 0.8, 1.2),
}


def server(row: dict[str, Any]) -> dict[str, float]:
    lines = row["packets"] * row["packet_bytes"] / 64
    if row["case"] == "rings":
        return {"mlc_wb": lines * 1.52 / (1 + (690 / row["ring"]) ** 12)}
    wb, inval = SERVER[row["ring"]]
    written = SERVER_DRAM[row["app_ways"], row["ring"]][("low", "med", "high").index(row["level"])]
    return {
        "mlc_wb": wb * lines,
        "mlc_wb_mtps": wb * idio.LEVELS[row["level"]] / 0.512,
        "mlc_invalidations": inval * lines,
        "lines_written": written * lines,
        "lines_read": written * lines,
        "ddio_capacity_mib": 4.0,
    }


def steady(row: dict[str, Any]) -> dict[str, float]:
    rate, system = row["core_gbps"], row["system"]
    lost = max(0.0, 1 - 12 / rate)
    traffic = {"dma": 40.0, "ddio": 0.0}.get(system, 0.0) if row["case"] == "low load" else 30_000.0
    share = 0.3 if system == "idio" else 1.0
    wb = row["packets"] / 4 if row["case"] == "short ring" else 60_000.0 * share
    return {
        "mlc_wb": wb,
        "mlc_wb_consumed": 0.9 * wb,
        "llc_wb": 0.0 if row["case"] == "short ring" else 0.1 * wb,
        "lines_read": traffic * share,
        "lines_written": traffic,
        "drops": 1e4 * lost,
        "batch_cached": 1.0,
        "drop_rate": lost,
        "acc_cpu_rx_rd": 0.0,
        "throughput_mrps": 1.5,
        "cores_busy": 1.58,
    }


def policies(row: dict[str, Any]) -> dict[str, float]:
    best = {"kvs": 6.0, "l3fwd": 20.0, "touchdrop": 16.0, "l2fwd": 24.0}[row["app"]]
    order = ("ddio", "sweeper", "idio", "idio-tx").index(row["system"])
    load = row["share"] or 1.0
    return {
        "throughput_mrps": best * min(load, 1 + 0.04 * order),
        "lat_p99_us": 5 / (1.12 - 0.9 * load) * (1 - 0.15 * order),
        "mem_bw_gbs": best * load * (3 - 0.6 * order),
        "acc_total": 28 - 7 * order + 4 * load,
        "t1_cpi": 1.5 + 0.9 * load * (1 - 0.22 * order),
    }


def probe(row: dict[str, Any]) -> dict[str, float]:
    write, place = row["request"] == "write", row["location"]
    cached = place in ("P3", "P4")
    return {
        "mlc_copies_after": 0.0,
        "mlc_wb": float(not write and bool(row["mlc_dirty"])),
        "ways_allocated": 2.0 * write,
        "llc_allocations": float(write and place in ("P1", "P5")),
        "lines_read": float(not write and not cached),
        "in_ddio_ways_after": float(place == "P4" or write and place in ("P1", "P5")),
    }


def measured(figure: str, row: dict[str, Any]) -> dict[str, float]:
    if figure == "fig1":
        return probe(row)
    if figure == "policies":
        return policies(row)
    if figure == "fig4":
        return server(row)
    if row["scenario"] == "alone":
        return {"t0_cpi": 1.5}
    return steady(row) if row.get("core_gbps") else burst(row)


def timeline(row: dict[str, Any], metrics: dict[str, float]) -> Iterator[dict[str, float]]:
    """Samples of a run: requests while the burst comes in, write-backs until it is worked off, nothing between bursts.

    Moves are per microsecond; a sample is at the end of its bin.
    """
    lines = idio.lines_of(row)
    if row.get("level") or row.get("core_gbps"):
        whole = 24.0 * row["n"] * row["ring"]
        for i in range(100):
            wb = 6.0 * (1 + 0.05 * (-1) ** i) * (0.3 if row["system"] == "idio" else 1.0)
            yield {
                "t_us": 10.0 * (i + 1),
                "mlc_wb": wb,
                "llc_wb": 0.1 * wb,
                "dma_requests": 30.0,
                "packets": 1.0,
                "waiting": 3.0,
                "rx_mlc": 0.9 * whole,
                "rx_mlc_spent": 0.9 * whole,
                "rx_ddio": 0.08 * whole,
                "rx_llc": 0.02 * whole,
                "rx_spent": 0.95 * whole,
            }
        return
    step = 1.0 if row.get("case") == "zoom" else 10.0
    bursts = 3 if row.get("case") == "overview" else 1
    came, done = 1e3 * idio.burst_ms(row), metrics["burst_us"]
    late = CAPACITY / lines * bursts * came  # the DDIO ways are full
    static = 60.0 if row["system"] == "static" else 0.0
    packets = row["packets"] / bursts
    for i in range(int((bursts - 1) * 10_000 / step + 1.3 * max(came, done) / step)):
        t = i * step % 10_000
        working = t < done
        left = packets * (min(1.0, t / came) - min(1.0, t / done))
        yield {
            "t_us": (i + 1) * step,
            "dma_requests": lines / bursts / came if t < came else 0.0,
            "mlc_wb": working * max(metrics["mlc_wb"] / done, static),
            "packets": working * packets / done,
            "waiting": max(left, 0.0),
            "llc_wb": metrics["llc_wb"] / (done - late) if late <= t < done else 0.0,
            "llc_wb_pushed": 0.9 * metrics["llc_wb"] / (done - late) if came <= t < done else 0.0,
            "rx_mlc": 0.0 if not working else 9_000.0 if row["system"] == "idio" else 1_500.0,
            "rx_mlc_headers": 1_000.0 if working else 0.0,
            "rx_ddio": CAPACITY * (1 if working else 0),
            "rx_llc": 0.5 * CAPACITY if row["system"] == "ddio" else 0.0,
        }


def tables() -> dict[str, pl.DataFrame]:
    """Every table of IDIO's studies by its SQL name."""
    out: dict[str, pl.DataFrame] = {}
    names = dict.fromkeys([*metric_info(), *METRICS])
    for study in (studies.get("idio", f) for f in FIGURES):
        points = study.points(False)
        if study.then:
            points = points + study.further(
                [{**p.columns, **measured(study.figure, dict(p.columns))} for p in points], False
            )
        columns = [a.column for a in AXES if any(a.column in p.columns for p in points)]
        swept = [{c: p.columns.get(c) for c in columns} for p in points]
        numbers = [measured(study.figure, row) for row in swept]
        for row, found in zip(swept, numbers, strict=True):
            for name, formula in study.derived.items():
                row[name] = formula({**dict.fromkeys(names), **row, **found})
        if study.across:
            for row, more in zip(
                swept, study.across([{**r, **n} for r, n in zip(swept, numbers, strict=True)]), strict=True
            ):
                row.update(more)
        rows = [{**row, **dict.fromkeys(names), **found} for row, found in zip(swept, numbers, strict=True)]
        out[study.table] = pl.DataFrame(rows, infer_schema_length=None)
        if "timeline" in study.side_tables:
            times = [
                {**row, **sample}
                for p, row, found in zip(points, swept, numbers, strict=True)
                if p.changes.get("run.timeline")
                for sample in timeline(row, found)
            ]
            out[f"{study.table}_timeline"] = pl.DataFrame(times, infer_schema_length=None)
        if "places" in study.side_tables:
            taken = [{**row, "request": "read", "place": "MLC", "lines": row["packets"]} for row in swept]
            out[f"{study.table}_places"] = pl.DataFrame(taken, infer_schema_length=None)
        if "cores" in study.side_tables:
            shares = ((0, "touchdrop", 0.5), (1, "touchdrop", 0.5), (2, "antagonist", 2.0))
            each = [
                {**row, "core": core, "tenant": tenant, "mlc_wb": share * found["mlc_wb"]}
                for row, found in zip(swept, numbers, strict=True)
                if "mlc_wb" in found
                for core, tenant, share in shares
            ]
            out[f"{study.table}_cores"] = pl.DataFrame(each, infer_schema_length=None)
    return out
