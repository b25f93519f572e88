"""The network studies' tables of the invented machine of `paperhost`: the paper's numbers, smoothed in between."""

from __future__ import annotations

from typing import Any

import polars as pl

from hostnet.studies.hostnetwork import QUADRANTS

CORES = (1, 2, 3, 4, 5, 6)
TCP_CORES = (1, 2, 3, 4)

# Per quadrant, for one to six cores beside a RoCE NIC.
RDMA: dict[int, dict[str, list[float]]] = {
    1: {
        "degr_c2m": [1.155, 1.22, 1.3, 1.36, 1.42, 1.5],
        "degr_p2m": [1.0] * 6,
        "iio_write_lat_ns": [311, 312, 313, 315, 316, 318],
        "lfb_lat_ns": [85, 92, 104, 120, 140, 160],
        "rpq_occ": [1.5, 3, 6, 9, 12, 15],
        "wpq_full_frac": [0.01, 0.04, 0.09, 0.14, 0.19, 0.242],
        "c2m_err_pct": [1, 2, 3, 4, 5, 6],
        "p2m_err_pct": [1, 1, 2, 2, 3, 3],
    },
    2: {
        "degr_c2m": [1.09, 1.12, 1.17, 1.21, 1.25, 1.295],
        "degr_p2m": [1.0] * 6,
        "cha_p2m_read_occ": [21, 22, 23, 24.5, 26, 28],
        "row_miss_ratio": [0.064, 0.09, 0.12, 0.14, 0.16, 0.18],
        "c2m_err_pct": [-4, -3, -2, -1, 0, 1],
        "p2m_err_adj_pct": [0.0] * 6,
        "p2m_err_pct": [0.0] * 6,
    },
    3: {
        "degr_c2m": [1.22, 1.3, 1.351, 1.35, 1.34, 1.34],
        "degr_p2m": [1.0, 1.0, 1.02, 1.22, 1.45, 1.67],
        "mem_bw_gbs": [25, 32, 36, 37, 37, 37],
        "iio_write_occ": [59.5, 61, 65.5, 92, 92.5, 92.5],
        "iio_write_lat_ns": [312, 318, 326.6, 580.9, 690, 800],
        "pfc_pause_fraction": [0.0, 0.0, 0.0, 0.22, 0.34, 0.43],
        "c2m_err_pct": [2, 4, 6, 10, 20, 29.3],
        "c2m_err_adm_pct": [0, 1, 2, 3, 4, 5],
        "p2m_err_adm_pct": [0, 1, 1, 2, 2, 3],
    },
    4: {
        "degr_c2m": [1.15, 1.2, 1.24, 1.28, 1.31, 1.346],
        "degr_p2m": [1.0] * 6,
        "cha_p2m_read_occ": [22, 28, 35, 43, 50, 57.3],
        "c2m_err_adj_pct": [-3, -1, 0, 2, 4, 6],
        "p2m_err_adj_pct": [0.0] * 6,
        "c2m_adj_read_hol_ns": [10, 25, 45, 70, 90, 110],
        "c2m_adj_write_hol_ns": [5, 14, 25, 40, 55, 70],
    },
}
ALONE = {"read": {"lfb_lat_ns": [71, 74, 78, 86, 95, 104], "rpq_occ": [0.6, 1.8, 3.2, 5.5, 8.2, 11.2]}, "readwrite": {}}

# Per kind of cores, for one to four of them beside a DCTCP receiver.
TCP: dict[str, dict[str, list[float]]] = {
    "read": {
        "degr_mem": [1.397, 1.42, 1.45, 1.48],
        "degr_net": [1.04, 1.128, 1.22, 1.316],
        "iio_write_occ": [58, 54, 51, 47.4],
        "wpq_full_frac": [0.03, 0.08, 0.12, 0.16],
        "c2m_err_pct": [2, 4, 5, 7],
        "net_err_pct": [5, 7, 9, 10.9],
        "p2m_err_pct": [-1, 0, 1, 2],
        "p2m_switching_ns": [1, 1, 1, 1],
        "p2m_write_hol_ns": [8, 10, 13, 16],
        "p2m_read_hol_ns": [7, 9, 11, 13],
        "p2m_top_of_queue_ns": [1, 1, 2, 2],
        "packet_loss": [0.0] * 4,
    },
    "readwrite": {
        "degr_mem": [1.45, 1.457, 1.47, 1.48],
        "degr_net": [1.15, 1.3, 1.633, 2.5],
        "packet_loss": [0.0, 0.0, 2e-4, 3e-3],
        "iio_write_lat_ns": [320, 360, 468, 660],
        "c2m_err_adm_pct": [3, 5, 7, 9],
        "net_err_adm_pct": [2, 4, 6, 8],
        "p2m_err_adm_pct": [1, 3, 8, 22],
    },
}

# Swept columns, and all others as numbers.
TEXT = ("run", "c2m", "p2m")


def frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    every = [*rdma(), *tcp("read", "readwrite"), *trace()]
    names = list(dict.fromkeys(k for r in every for k in r))
    schema = {c: pl.String if c in TEXT else pl.Int64 if c in ("quadrant", "n") else pl.Float64 for c in names}
    return pl.DataFrame([{c: r.get(c) for c in names} for r in rows], schema=schema)


def rdma(*quadrants: int) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for q in quadrants or QUADRANTS:
        c2m, p2m = QUADRANTS[q]
        out.append({"quadrant": q, "run": "iso-p2m", "p2m": p2m, "n": 0, "p2m_gbs": 12.25})
        for i, n in enumerate(CORES):
            out.append(
                {"quadrant": q, "run": "iso-c2m", "c2m": c2m, "n": n, **{k: v[i] for k, v in ALONE[c2m].items()}}
            )
            out.append(
                {
                    "quadrant": q,
                    "run": "colo",
                    "c2m": c2m,
                    "p2m": p2m,
                    "n": n,
                    "iio_write_credits": 92.0,
                    **{k: float(v[i]) for k, v in RDMA[q].items()},
                }
            )
    return out


def tcp(*kinds: str) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = [{"run": "iso-net", "p2m": "write", "n": 0, "net_copy_share": 0.5, "net_gbs": 12.3}]
    for c2m in kinds:
        for i, n in enumerate(TCP_CORES):
            out.append(
                {"run": "colo", "c2m": c2m, "p2m": "write", "n": n, **{k: float(v[i]) for k, v in TCP[c2m].items()}}
            )
            out[-1] |= {"mem_c2m_read_gbs": 20.0, "mem_net_read_gbs": 12.0}  # no claim; drawn
    return out


def trace() -> list[dict[str, Any]]:
    return [
        {"quadrant": 3, "run": "colo", "n": n, "t_us": float(t), "iio_write_occ": 92 * (0.9 + 0.08 * (t % 2))}
        for n in (4, 5, 6)
        for t in range(1, 51)
    ]


def tables() -> dict[str, pl.DataFrame]:
    """Every network study's table by SQL name."""
    both = tcp("read", "readwrite")
    return {
        **{f"hostnetwork_{f}": frame(rdma()) for f in ("fig18", "fig27", "fig28")},
        "hostnetwork_fig20": frame(rdma(1)),
        "hostnetwork_fig21": frame(rdma(2)),
        "hostnetwork_fig22": frame(rdma(3)),
        "hostnetwork_fig23_trace": frame(trace()),
        "hostnetwork_fig24": frame(rdma(4)),
        **{f"hostnetwork_{f}": frame(both) for f in ("fig19", "fig29", "fig30")},
        "hostnetwork_fig25": frame(tcp("read")),
        "hostnetwork_fig26": frame(tcp("readwrite")),
    }
