"""Figures of the network case studies of "Understanding the Host Network" (SIGCOMM'24); red crosses are the paper's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .hostnetwork import READS, WRITES, causes, components, errors, of, quadrants, root_causes
from .hostnetwork_panels import (
    C2M,
    NET,
    P2M,
    PAPER,
    TERMS,
    cross,
    degradations,
    error_bars,
    finished,
    line,
    over_cores,
    paper,
    rows_of,
    stack,
)
from .style import new_figure

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

_PAUSES = (("pfc_pause_fraction", "time the peer is paused [%]", 100.0), r"{f}\.pfc-n(\d)")


def _trace(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
    """IIO write occupancy over time, a panel per number of cores."""
    rows = tables["hostnetwork_fig23_trace"].to_dicts()
    cores = sorted({r["n"] for r in rows})
    fig = new_figure(3.6 * len(cores) + 1.0, 3.4)
    axes = fig.subplots(1, len(cores), sharey=True, squeeze=False)[0]
    credits = next(r["iio_write_credits"] for r in frame.to_dicts())
    for n, ax in zip(cores, axes):
        points = [(r["t_us"], r["iio_write_occ"] / credits) for r in rows if r["n"] == n]
        ax.plot(*zip(*points), color="#0072B2", linewidth=1.6)
        ax.axhline(1.0, color=PAPER, linestyle=":", linewidth=1.2)
        ax.set(title=f"{n} C2M cores", xlabel="time [us]")
        ax.set_ylim(0, 1.1)
    axes[0].set_ylabel("IIO write buffer in use")
    fig.suptitle("Fig. 23: RDMA quadrant 3 at microsecond scale", fontweight="bold")
    return fig


_XLABEL = "cores of the memory app"
_KINDS = {"read": "C2M-Read", "readwrite": "C2M-ReadWrite"}
_SHORT = {"read": "r", "readwrite": "rw"}
_TRAFFIC = (
    ("mem_app_read_gbs", "memory app read", "#0072B2"),
    ("mem_c2m_write_gbs", "memory app write", "#A6D5F2"),
    ("mem_net_read_gbs", "network app copy", NET),
    ("mem_p2m_write_gbs", "P2M write", "#B5400A"),
)


def _fig19(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
    fig = new_figure(8.6, 6.2)
    top, bottom = fig.subplots(2, 2, sharex=True, sharey="row")
    for c2m, upper, lower in zip(_KINDS, top, bottom):
        rows = rows_of(frame, run="colo", c2m=c2m)
        line(upper, rows, "degr_mem", color=C2M, marker="o", label="memory app")
        line(upper, rows, "degr_net", color=NET, marker="s", label="network app")
        cross(upper, paper(rf"fig19\.(?:mem|net)-{_SHORT[c2m]}-n(\d)"))
        upper.set_title(f"{_KINDS[c2m]} and DCTCP")
        split = [{**r, "mem_app_read_gbs": r["mem_c2m_read_gbs"] - r["mem_net_read_gbs"]} for r in rows]
        stack(lower, split, _TRAFFIC)
    return degradations(fig, "Fig. 19: DCTCP, degradation and memory bandwidth", top, bottom, xlabel=_XLABEL)


def _tcp_causes(title: str, c2m: str, figure: str) -> Callable[..., Figure]:
    loss = (("packet_loss", "packets lost [%]", 100.0), r"{f}\.loss-n(\d)")
    panels = of(figure, (*(w for w in WRITES if w[0][0] != "bank_dev_15_frac"), loss))
    runs: list[dict[str, str | None]] = [
        {"run": "colo", "c2m": c2m},
        {"run": "iso-c2m", "c2m": c2m},
        {"run": "iso-net", "c2m": None},
    ]
    return root_causes(title, panels, runs, "network", _XLABEL)


def _fig29(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
    fig = new_figure(9.4, 3.8)
    axes = fig.subplots(1, 2, sharey=True)
    for c2m, ax in zip(_KINDS, axes):
        rows = rows_of(frame, run="colo", c2m=c2m)
        # The paper draws admission at the CHA beside cores that store only (Fig. 30).
        err = "err_adm_pct" if c2m == "readwrite" else "err_pct"
        bars = (
            (f"c2m_{err}", "memory app", C2M),
            (f"net_{err}", "network app, copy", NET),
            (f"p2m_{err}", "network app, P2M", P2M),
        )
        error_bars(ax, rows, bars, 0.25)
        ax.set_title(f"{_KINDS[c2m]} and DCTCP")
        over_cores(ax, _XLABEL)
    axes[0].set_ylabel("estimated / measured throughput - 1 [%]")
    return finished(fig, "Fig. 29: DCTCP, error of the formula", axes)


def _fig30(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
    fig = new_figure(12.6, 3.8)
    axes = fig.subplots(1, 4)
    panels = [
        (c2m, side, f"{name}: {what}")
        for c2m, name in _KINDS.items()
        for side, what in (("c2m", "cores"), ("p2m", "P2M"))
    ]
    for ax, (c2m, side, title) in zip(axes, panels):
        terms = [(f"{side}_{t}", label, colour) for t, label, colour in TERMS if t != "admission_ns"]
        stack(ax, rows_of(frame, run="colo", c2m=c2m), terms)
        ax.set_title(title)
        over_cores(ax, _XLABEL)
    axes[0].set_ylabel("latency beyond unloaded [ns]")
    return finished(fig, "Fig. 30: DCTCP, components of the formula", axes)


DRAWINGS: dict[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    "hostnetwork_fig18": quadrants("Fig. 18: RDMA, degradation and memory bandwidth by quadrant", "fig18"),
    "hostnetwork_fig19": _fig19,
    "hostnetwork_fig20": causes("Fig. 20: RDMA quadrant 1", 1, of("fig20", WRITES)),
    "hostnetwork_fig21": causes("Fig. 21: RDMA quadrant 2", 2, of("fig21", READS)),
    "hostnetwork_fig22": causes("Fig. 22: RDMA quadrant 3", 3, of("fig22", (*WRITES, _PAUSES))),
    "hostnetwork_fig23": _trace,
    "hostnetwork_fig24": causes("Fig. 24: RDMA quadrant 4", 4, of("fig24", READS)),
    "hostnetwork_fig25": _tcp_causes("Fig. 25: DCTCP beside C2M-Read", "read", "fig25"),
    "hostnetwork_fig26": _tcp_causes("Fig. 26: DCTCP beside C2M-ReadWrite", "readwrite", "fig26"),
    "hostnetwork_fig27": errors("Fig. 27: RDMA, error of the formula", "fig27"),
    "hostnetwork_fig28": components("Fig. 28: RDMA, components of the formula"),
    "hostnetwork_fig29": _fig29,
    "hostnetwork_fig30": _fig30,
}
