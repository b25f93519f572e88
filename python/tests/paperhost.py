"""Study tables of an invented machine on which every undisputed claim of claims/hostnetwork.toml holds.

The numbers are the paper's (read off its plots where it prints none, smoothed in between), never the simulator's, so
the scoreboard can be tested without an engine.
"""

from __future__ import annotations

from typing import Any

import paperapps
import paperhost_net
import polars as pl

from hostnet.studies.hostnetwork import QUADRANTS

CORES = (1, 2, 3, 4, 5, 6)

# Per quadrant, for one to six cores: rows with the device (`colo`) and cores alone (`iso`).
COLO: dict[int, dict[str, list[float]]] = {
    1: {
        "degr_c2m": [1.235, 1.33, 1.427, 1.559, 1.63, 1.7],
        "degr_p2m": [1.0] * 6,
        "lfb_lat_ns": [90.1, 103, 117, 140, 163.4, 178],
        "rpq_occ": [1.9, 4, 6.9, 10, 13, 16],
        "row_miss_ratio": [0.158, 0.2, 0.23, 0.25, 0.27, 0.289],
        "mem_bw_gbs": [22.6, 28, 33, 36, 38, 40],
        "iio_write_lat_ns": [315, 316, 318, 320, 322, 325],
        "iio_write_occ": [69.2, 69.5, 70, 71, 71.5, 72.1],
        "wpq_full_frac": [0.005, 0.03, 0.09, 0.167, 0.22, 0.28],
        "c2m_err_pct": [2, 3, 4, 5, 7, 8.3],
        "c2m_write_hol_ns": [7.9, 14, 20, 26, 30, 33],
        "c2m_read_hol_ns": [2.5, 9, 18, 30, 42, 55.2],
        "c2m_top_of_queue_ns": [4, 5, 6, 6.5, 7, 7.5],
        "c2m_switching_ns": [0.8, 1.5, 2, 2.5, 3, 3.5],
    },
    2: {
        "degr_c2m": [1.103, 1.17, 1.239, 1.3, 1.36, 1.42],
        "degr_p2m": [1.0] * 6,
        "lfb_lat_ns": [79.1, 92, 105, 120, 140, 160],
        "rpq_occ": [4.1, 8, 12, 17, 22, 27.3],
        "row_miss_ratio": [0.245, 0.26, 0.28, 0.3, 0.31, 0.32],
        "mem_bw_gbs": [23.7, 29, 34, 38, 40.5, 42],
        "cha_p2m_read_occ": [20.6, 23, 26, 29, 33, 36.2],
        "c2m_err_pct": [-7.8, -6, -4, -3, -2, 0],
        "c2m_write_hol_ns": [0.0] * 6,
    },
    3: {
        "degr_c2m": [1.3, 1.42, 1.515, 1.42, 1.39, 1.392],
        "degr_p2m": [1.0, 1.01, 1.062, 1.456, 1.68, 1.864],
        "lfb_lat_ns": [111.2, 135, 180, 219.3, 265, 315],
        "rpq_occ": [2.2, 6, 11, 14, 15, 15.6],
        "row_miss_ratio": [0.216, 0.25, 0.29, 0.31, 0.33, 0.35],
        "mem_bw_gbs": [27.4, 33, 36.2, 36, 36, 35.8],
        "mem_p2m_write_gbs": [15.2, 15.1, 14.3, 10.6, 9.2, 8.51],
        "iio_write_lat_ns": [318, 330, 413, 620, 710, 793.5],
        "iio_write_occ": [68, 74, 84.5, 92, 92, 92],
        "wpq_full_frac": [0.02, 0.275, 0.75, 0.9, 0.95, 0.97],
        "c2m_err_pct": [3, 4, 5, 9, 20, 28],
        "c2m_err_adm_pct": [-6, -5, -3, 0, 4, 7],
        "p2m_err_pct": [1, 2, 3, 5, 6, 7.4],
        "c2m_write_hol_ns": [14, 35, 65.1, 80, 85, 90],
        "c2m_read_hol_ns": [4, 15, 28, 36, 38, 40],
        "c2m_top_of_queue_ns": [6, 7, 8, 9, 9, 9],
        "c2m_switching_ns": [1, 3, 6, 8, 9, 9],
        "c2m_admission_ns": [12, 14, 20, 40, 90, 140],
        "p2m_write_hol_ns": [2, 12, 60, 130, 170, 195],
        "p2m_read_hol_ns": [1, 8, 45, 110, 150, 175],
        "p2m_admission_ns": [0.5, 1, 3, 12, 25, 39.2],
    },
    4: {
        "degr_c2m": [1.17, 1.25, 1.33, 1.4, 1.47, 1.532],
        "degr_p2m": [1.0] * 6,
        "lfb_lat_ns": [99.3, 130, 170, 220, 280, 349.5],
        "rpq_occ": [5.9, 12, 18, 24, 30, 34],
        "row_miss_ratio": [0.25, 0.27, 0.29, 0.31, 0.33, 0.35],
        "mem_bw_gbs": [27, 33, 37, 39, 40, 40],
        "cha_p2m_read_occ": [22, 30, 40, 50, 60, 71.7],
        "c2m_err_adj_pct": [-5, -3, 0, 3, 5, 8],
        "c2m_adj_write_hol_ns": [8, 20, 35, 50, 68, 85.8],
        "c2m_adj_read_hol_ns": [14, 32, 55, 80, 105, 130],
    },
}
ISO: dict[str, dict[str, list[float]]] = {
    "read": {
        "rpq_occ": [0.6, 1.8, 3.25, 5.5, 8.2, 11.2],
        "row_miss_ratio": [0.041, 0.08, 0.11, 0.14, 0.17, 0.19],
        "mem_c2m_read_gbs": [9.1, 18, 26, 33, 38, 41],
        "cha_dram_read_c2m_ns": [66, 70, 74, 81, 90, 99],
    },
    "readwrite": {
        "lfb_lat_ns": [84.1, 100, 130, 168.1, 215, 260],
        "rpq_occ": [1.2, 4, 8, 13, 17.5, 21.8],
        "row_miss_ratio": [0.136, 0.18, 0.22, 0.27, 0.31, 0.339],
        "cha_dram_read_c2m_ns": [66, 80, 105, 135, 165, 190],
        "cha_mc_write_c2m_ns": [57.1, 70, 95, 130, 190, 269.1],
    },
}
# Alone, cores wait for what colocation multiplies.
ALONE_LATENCY = {q: [a / d for a, d in zip(c["lfb_lat_ns"], c["degr_c2m"])] for q, c in COLO.items()}
DEVICE = {"p2m_gbs": 14.0, "iio_write_lat_ns": 315.0, "iio_write_occ": 68.9, "iio_read_lat_ns": 500.0}
CREDITS = {"lfb_credits": 12.0, "iio_write_credits": 92.0, "iio_read_credits": 256.0, "t_trans_ns": 2.73}


def row(q: int, run: str, n: int) -> dict[str, Any]:
    c2m, p2m = QUADRANTS[q]
    out = {"quadrant": q, "run": run, "n": n, **CREDITS}
    out |= {"c2m": None if run == "iso-p2m" else c2m, "p2m": None if run == "iso-c2m" else p2m}
    if run == "iso-p2m":
        return out | DEVICE
    alone = {k: v[n - 1] for k, v in ISO[c2m].items()}
    latency = alone.setdefault("lfb_lat_ns", ALONE_LATENCY[q][n - 1])
    out |= {"lfb_occ": 11.5, "c2m_gbs": n * 11.5 * 64 / latency}
    if run == "iso-c2m":
        return out | alone | {"bank_dev_15_frac": 0.51, "bank_dev_20_frac": 0.22}
    together = {k: v[n - 1] for k, v in COLO[q].items()}
    out |= {"bank_dev_15_frac": 0.7, "bank_dev_20_frac": 0.13, f"mem_p2m_{p2m}_gbs": 15.2, **together}
    out |= {"c2m_gbs": n * 11.5 * 64 / together["lfb_lat_ns"], "p2m_gbs": 14.0 / together["degr_p2m"]}
    if p2m == "read":
        out |= {"iio_read_lat_ns": 500.0}
    return {"mem_p2m_read_gbs": 0.0, "mem_p2m_write_gbs": 0.0} | out


def quadrant(q: int) -> list[dict[str, Any]]:
    return [row(q, "iso-p2m", 0)] + [row(q, run, n) for n in CORES for run in ("iso-c2m", "colo")]


def frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Rows as a study table, null where a row does not say."""
    text = ("run", "c2m", "p2m", "app", "ddio", "prefetch")
    names = list(dict.fromkeys([*(k for r in every_row() for k in r), *(k for r in rows for k in r)]))
    schema = {
        c: pl.String if c in text else pl.Int64 if c in ("quadrant", "n", "repeat") else pl.Float64 for c in names
    }
    return pl.DataFrame([{c: r.get(c) for c in names} for r in rows], schema=schema)


def every_row() -> list[dict[str, Any]]:
    return [r for q in QUADRANTS for r in quadrant(q)]


def tables() -> dict[str, pl.DataFrame]:
    """Every study table by SQL name."""
    everything = every_row()
    alone = {
        c: [{"run": "iso-c2m", "c2m": c, "n": n, **{k: v[n - 1] for k, v in ISO[c].items()}} for n in CORES]
        for c in ISO
    }
    for n, latency in zip(CORES, (71, 74, 78.1, 86, 95, 104)):
        alone["read"][n - 1]["lfb_lat_ns"] = float(latency)
    waits = (105.4, 107, 110, 119, 176, 373)
    probe = [
        {"run": "colo", "n": n, "cha_mc_write_p2m_ns": w, "iio_write_lat_ns": 300 + (w - waits[0])}
        for n, w in zip(CORES, waits)
    ]
    counters = (
        "c2m_gbs",
        "p2m_gbs",
        "mem_read_gbs",
        "mem_write_gbs",
        "lfb_lat_ns",
        "rpq_occ",
        "act_read",
        "pre_conflict",
        "iio_write_occ",
    )
    noisy = [
        {**{c: 100.0 * (1 + 0.004 * i) for c in counters}, "quadrant": q, "run": "colo", "n": n, "repeat": i}
        for q in QUADRANTS
        for n in CORES
        for i in (1, 2, 3)
    ]
    return {
        "hostnetwork_peakbw_cl": frame([{"run": "iso-c2m", "n": 8, "mem_bw_gbs": 43.0}]),
        "hostnetwork_peakbw_il": frame([{"run": "iso-c2m", "n": 32, "mem_bw_gbs": 95.0}]),
        **{f"hostnetwork_{f}": frame(everything) for f in ("fig3", "credits", "fig11", "fig12")},
        "hostnetwork_fig6a": frame(alone["read"]),
        "hostnetwork_fig6b": frame(alone["readwrite"]),
        "hostnetwork_fig6cd": frame(probe),
        "hostnetwork_fig7": frame(quadrant(1)),
        "hostnetwork_fig8": frame(quadrant(3)),
        "hostnetwork_fig13": frame(quadrant(2)),
        "hostnetwork_fig14": frame(quadrant(4)),
        "hostnetwork_sec5_method": frame(noisy),
        **{name: frame(rows) for name, rows in paperapps.rows().items()},
        **paperhost_net.tables(),
    }
