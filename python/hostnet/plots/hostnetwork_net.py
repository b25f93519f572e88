"""Figures of the network case studies of "Understanding the Host Network" (SIGCOMM'24); red crosses are the paper's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .hostnetwork import (
    _TERMS,
    ALONE,
    C2M,
    P2M,
    PAPER,
    READS,
    WRITES,
    _cross,
    _legend,
    _line,
    _paper,
    _stack,
    causes,
    components,
    errors,
    of,
    quadrants,
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


NET = "#009E73"
_KINDS = {"read": "C2M-Read", "readwrite": "C2M-ReadWrite"}
_SHORT = {"read": "r", "readwrite": "rw"}
_TRAFFIC = (("mem_app_read_gbs", "memory app read", "#0072B2"), ("mem_c2m_write_gbs", "memory app write", "#A6D5F2"),
            ("mem_net_read_gbs", "network app copy", NET), ("mem_p2m_write_gbs", "P2M write", "#B5400A"))


def _tcp_rows(frame: pl.DataFrame, run: str, c2m: str | None) -> list[dict[str, Any]]:
    return sorted((r for r in frame.to_dicts() if r["run"] == run and r["c2m"] == c2m), key=lambda r: r["n"])


def _fig19(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
    fig = new_figure(8.6, 6.2)
    top, bottom = fig.subplots(2, 2, sharex=True, sharey="row")
    for c2m, upper, lower in zip(_KINDS, top, bottom):
        rows = _tcp_rows(frame, "colo", c2m)
        _line(upper, rows, "degr_mem", color=C2M, marker="o", label="memory app")
        _line(upper, rows, "degr_net", color=NET, marker="s", label="network app")
        _cross(upper, _paper(rf"fig19\.(?:mem|net)-{_SHORT[c2m]}-n(\d)"))
        upper.set_title(f"{_KINDS[c2m]} and DCTCP")
        upper.axhline(1.0, color="#777777", linewidth=0.8)
        split = [{**r, "mem_app_read_gbs": r["mem_c2m_read_gbs"] - r["mem_net_read_gbs"]} for r in rows]
        _stack(lower, split, _TRAFFIC)
        lower.set_xlabel("cores of the memory app")
    top[0].set_ylabel("isolated / colocated throughput")
    bottom[0].set_ylabel("memory bandwidth [GB/s]")
    fig.suptitle("Fig. 19: DCTCP, degradation and memory bandwidth", fontweight="bold")
    _legend(fig, [*top, *bottom])
    return fig


def _tcp_causes(title: str, c2m: str, figure: str) -> Callable[..., Figure]:
    def draw(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
        loss = (("packet_loss", "packets lost [%]", 100.0), r"{f}\.loss-n(\d)")
        panels = of(figure, (*(w for w in WRITES if w[0][0] != "bank_dev_15_frac"), loss))
        fig = new_figure(14.0, 6.0)
        axes = list(fig.subplots(2, 4).flat)
        together, without, device = (_tcp_rows(frame, *k) for k in (("colo", c2m), ("iso-c2m", c2m), ("iso-net", None)))
        for ax, ((column, label, scale), pattern) in zip(axes, panels):
            _line(ax, together, column, scale, color=C2M, marker="o", label="with network")
            if not column.startswith(("iio_", "wpq", "packet")):
                _line(ax, without, column, scale, color=ALONE, marker="s", label="without network")
            elif device and device[0].get(column) is not None:
                ax.axhline(scale * device[0][column], color=P2M, linestyle=":", linewidth=1.4, label="network alone")
            if column == "lfb_lat_ns":
                _line(ax, together, "net_lfb_lat_ns", color=NET, marker="D", label="network app")
            _cross(ax, _paper(pattern))
            ax.set(title=label, xlabel="cores of the memory app")
            ax.margins(y=0.08)
            ax.set_ylim(bottom=0)
        for ax in axes[len(panels):]:
            ax.set_visible(False)
        fig.suptitle(title, fontweight="bold")
        _legend(fig, axes[: len(panels)])
        return fig

    return draw


def _fig29(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
    fig = new_figure(9.4, 3.8)
    axes = fig.subplots(1, 2, sharey=True)
    bars = (("c2m_err_pct", "memory app", C2M), ("net_err_pct", "network app, copy", NET), ("p2m_err_pct", "network app, P2M", P2M))
    for c2m, ax in zip(_KINDS, axes):
        rows = _tcp_rows(frame, "colo", c2m)
        for i, (column, label, colour) in enumerate(bars):
            ax.bar([r["n"] + (i - 1) * 0.25 for r in rows], [r.get(column) or 0.0 for r in rows], 0.25, color=colour, label=label)
        ax.axhspan(-10, 10, color="#DDEBDD", zorder=0)
        ax.set(title=f"{_KINDS[c2m]} and DCTCP", xlabel="cores of the memory app")
    axes[0].set_ylabel("estimated / measured throughput - 1 [%]")
    fig.suptitle("Fig. 29: DCTCP, error of the formula", fontweight="bold")
    _legend(fig, axes)
    return fig


def _fig30(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
    fig = new_figure(12.6, 3.8)
    axes = fig.subplots(1, 4)
    panels = [(c2m, side, f"{name}: {what}") for c2m, name in _KINDS.items() for side, what in (("c2m", "cores"), ("p2m", "P2M"))]
    for ax, (c2m, side, title) in zip(axes, panels):
        terms = [(f"{side}_{t}", label, colour) for t, label, colour in _TERMS if t != "admission_ns"]
        _stack(ax, _tcp_rows(frame, "colo", c2m), terms)
        ax.set(title=title, xlabel="cores of the memory app")
    axes[0].set_ylabel("latency beyond unloaded [ns]")
    fig.suptitle("Fig. 30: DCTCP, components of the formula", fontweight="bold")
    _legend(fig, axes)
    return fig


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
