"""Applications beside storage, and the knobs ("Understanding the Host Network", Fig. 1, 2, 15 to 17 and section 2.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .hostnetwork import _BANDWIDTH, ALONE, C2M, P2M, _legend, _line, _stack
from .style import new_figure

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

_NAMES = {"redis-read": "Redis-Read", "redis-write": "Redis-Write", "gapbs-pr": "GAPBS-PR", "gapbs-bc": "GAPBS-BC"}


def _of(frame: pl.DataFrame, **match: Any) -> list[dict[str, Any]]:
    rows = (r for r in frame.to_dicts() if all(r[k] == v for k, v in match.items()))
    return sorted(rows, key=lambda r: r["n"])


def _beside(title: str) -> Callable[..., Figure]:
    """Degradation of cores and device by cores, DDIO on and off, above the memory bandwidth of both together."""
    def draw(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
        apps = [a for a in _NAMES if a in set(frame["app"])]
        settings = [d for d in ("on", "off") if d in set(frame.filter(frame["run"] == "colo")["ddio"])]
        fig = new_figure(5.2 * len(apps) + 1.6, 6.4)
        grid = fig.subplots(2, len(apps), sharex="col", sharey="row", squeeze=False)
        for app, (upper, lower) in zip(apps, grid.T):
            for ddio, dash in zip(settings, ("-", "--")):
                rows = _of(frame, run="colo", app=app, ddio=ddio)
                _line(upper, rows, "degr_c2m", color=C2M, marker="o", linestyle=dash, label=f"application, DDIO {ddio}")
                _line(upper, rows, "degr_p2m", color=P2M, marker="s", linestyle=dash, label=f"storage, DDIO {ddio}")
            rows = _of(frame, run="colo", app=app, ddio=settings[0])
            _stack(lower, rows, _BANDWIDTH)
            upper.axhline(1.0, color="#777777", linewidth=0.8)
            upper.set_title(_NAMES[app])
            lower.set_xlabel("C2M cores")
            lower.xaxis.get_major_locator().set_params(integer=True)
            peak = next((r["mem_peak_gbs"] for r in rows if r.get("mem_peak_gbs")), None)
            if peak:
                lower.axhline(peak, color="#777777", linewidth=0.8, linestyle=":")
        grid[0][0].set_ylabel("isolated / colocated throughput")
        grid[1][0].set_ylabel(f"memory bandwidth, DDIO {settings[0]} [GB/s]")
        fig.suptitle(title, fontweight="bold")
        _legend(fig, list(grid.flat))
        return fig

    return draw


def _prefetch(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
    apps = [a for a in _NAMES if a in set(frame["app"])]
    fig = new_figure(5.2 * len(apps) + 1.6, 3.8)
    axes = fig.subplots(1, len(apps), sharey=True, squeeze=False)[0]
    for app, ax in zip(apps, axes):
        for run, label, colour in (("iso-c2m", "alone", ALONE), ("colo", "beside storage", C2M)):
            off = {r["n"]: r["t0_mops"] for r in _of(frame, run=run, app=app, prefetch="off")}
            rows = [{"n": r["n"], "gain": r["t0_mops"] / off[r["n"]]} for r in _of(frame, run=run, app=app, prefetch="on")]
            _line(ax, rows, "gain", color=colour, marker="o", label=label)
        ax.axhspan(0.95, 1.05, color="#DDEBDD", zorder=0)
        ax.set(title=_NAMES[app], xlabel="C2M cores")
    axes[0].set_ylabel("throughput, prefetchers on / off")
    fig.suptitle("Prefetchers on Ice Lake (the paper: within 5 %)", fontweight="bold")
    _legend(fig, axes)
    return fig


def _knobs(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
    fig = new_figure(14.4, 6.4)
    grid = fig.subplots(2, 4, sharex=True, sharey="row")
    for q, (upper, lower) in enumerate(grid.T, 1):
        for prefetch, marker in (("off", "o"), ("on", "^")):
            for ddio, dash in (("off", "-"), ("on", "--")):
                rows = _of(frame, run="colo", quadrant=q, ddio=ddio, prefetch=prefetch)
                knobs = f"DDIO {ddio}, prefetch {prefetch}"
                _line(upper, rows, "degr_c2m", color=C2M, marker=marker, linestyle=dash, label=f"C2M, {knobs}")
                _line(upper, rows, "degr_p2m", color=P2M, marker=marker, linestyle=dash, label=f"P2M, {knobs}")
                _line(lower, rows, "c2m_gbs", color=C2M, marker=marker, linestyle=dash)
        upper.axhline(1.0, color="#777777", linewidth=0.8)
        upper.set_title(f"quadrant {q}")
        lower.set_xlabel("C2M cores")
    grid[0][0].set_ylabel("isolated / colocated throughput")
    grid[1][0].set_ylabel("C2M throughput, colocated [GB/s]")
    fig.suptitle("Four quadrants with DDIO and the prefetcher on and off", fontweight="bold")
    _legend(fig, list(grid.flat))
    return fig


DRAWINGS: dict[str, Callable[..., Figure]] = {
    "hostnetwork_fig1": _beside("Fig. 1: Redis and PageRank beside storage reads, Ice Lake"),
    "hostnetwork_fig2": _beside("Fig. 2: Redis and PageRank beside storage reads, Cascade Lake"),
    "hostnetwork_fig15": _beside("Fig. 15: Redis-Write and betweenness beside storage reads"),
    "hostnetwork_fig16": _beside("Fig. 16: Redis and PageRank beside storage writes"),
    "hostnetwork_fig17": _beside("Fig. 17: Redis-Write and betweenness beside storage writes"),
    "hostnetwork_prefetch": _prefetch,
    "hostnetwork_fig3_knobs": _knobs,
}
