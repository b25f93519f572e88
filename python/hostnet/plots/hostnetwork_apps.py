"""Applications and storage together, and the swept settings ("Understanding the Host Network", Fig. 1, 2, 15 to 17 and
section 2.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from .hostnetwork_panels import ALONE, C2M, P2M, bandwidth, degradations, finished, line, over_cores, rows_of
from .style import new_figure

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

_NAMES = {"redis-read": "Redis-Read", "redis-write": "Redis-Write", "gapbs-pr": "GAPBS-PR", "gapbs-bc": "GAPBS-BC"}


def _beside(title: str) -> Callable[..., Figure]:
    """Degradation of cores and device by cores, DDIO on and off, above the memory bandwidth of both together."""

    def draw(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
        apps = [a for a in _NAMES if a in set(frame["app"])]
        settings = [d for d in ("on", "off") if d in set(frame.filter(frame["run"] == "colo")["ddio"])]
        fig = new_figure(5.2 * len(apps) + 1.6, 6.4)
        grid = fig.subplots(2, len(apps), sharex="col", sharey="row", squeeze=False)
        for app, (upper, lower) in zip(apps, grid.T):
            for ddio, dash in zip(settings, ("-", "--")):
                rows = rows_of(frame, run="colo", app=app, ddio=ddio)
                line(upper, rows, "degr_c2m", color=C2M, marker="o", linestyle=dash, label=f"application, DDIO {ddio}")
                line(upper, rows, "degr_p2m", color=P2M, marker="s", linestyle=dash, label=f"storage, DDIO {ddio}")
            rows = rows_of(frame, run="colo", app=app, ddio=settings[0])
            bandwidth(lower, rows)
            upper.set_title(_NAMES[app])
        return degradations(fig, title, grid[0], grid[1], below=f"memory bandwidth, DDIO {settings[0]} [GB/s]")

    return draw


def _prefetch(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
    apps = [a for a in _NAMES if a in set(frame["app"])]
    fig = new_figure(5.2 * len(apps) + 1.6, 3.8)
    axes = fig.subplots(1, len(apps), sharey=True, squeeze=False)[0]
    for app, ax in zip(apps, axes):
        for run, label, colour in (("iso-c2m", "alone", ALONE), ("colo", "beside storage", C2M)):
            off = {r["n"]: r["t0_mops"] for r in rows_of(frame, run=run, app=app, prefetch="off")}
            rows = [
                {"n": r["n"], "gain": r["t0_mops"] / off[r["n"]]}
                for r in rows_of(frame, run=run, app=app, prefetch="on")
            ]
            line(ax, rows, "gain", color=colour, marker="o", label=label)
        ax.axhspan(0.95, 1.05, color="#DDEBDD", zorder=0)
        ax.set_title(_NAMES[app])
        over_cores(ax)
    axes[0].set_ylabel("throughput, prefetchers on / off")
    return finished(fig, "Prefetchers on Ice Lake (the paper: within 5 %)", axes)


def _knobs(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
    fig = new_figure(14.4, 6.4)
    grid = fig.subplots(2, 4, sharex=True, sharey="row")
    for q, (upper, lower) in enumerate(grid.T, 1):
        for prefetch, marker in (("off", "o"), ("on", "^")):
            for ddio, dash in (("off", "-"), ("on", "--")):
                rows = rows_of(frame, run="colo", quadrant=q, ddio=ddio, prefetch=prefetch)
                knobs = f"DDIO {ddio}, prefetch {prefetch}"
                line(upper, rows, "degr_c2m", color=C2M, marker=marker, linestyle=dash, label=f"C2M, {knobs}")
                line(upper, rows, "degr_p2m", color=P2M, marker=marker, linestyle=dash, label=f"P2M, {knobs}")
                line(lower, rows, "c2m_gbs", color=C2M, marker=marker, linestyle=dash)
        upper.set_title(f"quadrant {q}")
    return degradations(
        fig,
        "Four quadrants with DDIO and the prefetcher on and off",
        grid[0],
        grid[1],
        below="C2M throughput, colocated [GB/s]",
    )


DRAWINGS: dict[str, Callable[..., Figure]] = {
    "hostnetwork_fig1": _beside("Fig. 1: Redis and PageRank beside storage reads, Ice Lake"),
    "hostnetwork_fig2": _beside("Fig. 2: Redis and PageRank beside storage reads, Cascade Lake"),
    "hostnetwork_fig15": _beside("Fig. 15: Redis-Write and betweenness beside storage reads"),
    "hostnetwork_fig16": _beside("Fig. 16: Redis and PageRank beside storage writes"),
    "hostnetwork_fig17": _beside("Fig. 17: Redis-Write and betweenness beside storage writes"),
    "hostnetwork_prefetch": _prefetch,
    "hostnetwork_fig3_knobs": _knobs,
}
