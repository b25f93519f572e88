"""The figures of Sweeper (MICRO'22), from its study tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..systems import NAMES
from .clusters import Clusters, config_name, config_of, config_order
from .style import axis_label, line_style, new_figure

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def _paper(claim: str) -> float | None:
    """The number that a shipped claim expects, None when no such claim is shipped."""
    from ..scoreboard import shipped

    return next((c.expected for c in shipped() if c.id == claim), None)


def _paper_mark(
    ax: Axes, clusters: Clusters, claim: str, group: str, of: tuple[str, int], over: tuple[str, int]
) -> None:
    """A dashed mark at the paper's value for bar `of`: `claim` times the measured bar `over`."""
    factor, bar, base = _paper(claim), clusters.of(group, *of), clusters.of(group, *over)
    if factor is None or bar is None or base is None or not base[1]["throughput_mrps"]:
        return
    y = factor * base[1]["throughput_mrps"]
    ax.plot([bar[0] - 0.75, bar[0] + 0.75], [y, y], color="#C00000", linestyle=(0, (2, 1)), linewidth=1.6, zorder=5)
    ax.annotate(
        f"paper {factor:g}×",
        (bar[0] + 0.75, y),
        (0, 2),
        textcoords="offset points",
        ha="right",
        va="bottom",
        fontsize=7,
        color="#C00000",
        zorder=6,
        bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.5},
    )


def _three_panels(
    clusters: Clusters, width: float, titles: tuple[str, str, str], per: str, throughput: str
) -> tuple[Figure, list[Axes]]:
    fig = new_figure(width, 8.6)
    axes = list(fig.subplots(3, 1, gridspec_kw={"height_ratios": (1, 1, 1.15)}))
    clusters.bars(axes[0], "throughput_mrps")
    axes[0].set_ylabel(throughput)
    clusters.bars(axes[1], "mem_bw_gbs")
    clusters.stack(axes[2], f"DRAM accesses per {per} [64 B]")
    clusters.name_bars(axes[2])
    for ax, letter, title in zip(axes, "abc", titles, strict=False):
        ax.set_title(f"({letter}) {title}")
    axes[0].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    handles, labels = axes[2].get_legend_handles_labels()
    axes[2].legend(handles[::-1], labels[::-1], loc="center left", bbox_to_anchor=(1.0, 0.5))
    return fig, axes


_PANELS = ("Throughput", "DRAM bandwidth at that throughput", "DRAM accesses by class")


def _own_peak(frame: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    return frame.filter(pl.col("load").str.starts_with("peak")) if "load" in frame.columns else frame


def _fig1(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
    rows = _own_peak(frame).sort("buf").to_dicts()
    clusters = Clusters(rows, lambda r: f"{r['buf']} buffers")
    fig, axes = _three_panels(clusters, 9.5, _PANELS, "request", "peak throughput [Mrps]")
    fig.suptitle("Fig. 1: MICA, 1 KB items, 24 cores", fontweight="bold")
    gains = [
        (r["throughput_mrps"] / dma[1]["throughput_mrps"], g, config_of(r))
        for g in clusters.groups
        if (dma := clusters.of(g, "dma", 0)) is not None
        for r in rows
        if r["system"] == "ddio" and f"{r['buf']} buffers" == g
    ]
    if gains:
        _, g, config = max(gains)
        _paper_mark(axes[0], clusters, "sweeper.c.fig1a.ddio-over-dma", g, config, ("dma", 0))
    return fig


def _cluster(row: Mapping[str, Any]) -> str:
    size = f"{row['item_bytes'] // 1024} KB" if row["item_bytes"] >= 1024 else f"{row['item_bytes']} B"
    return f"{size}, {row['buf']} buf"


def _fig5(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
    clusters = Clusters(frame.sort("item_bytes", "buf").to_dicts(), _cluster)
    fig, axes = _three_panels(clusters, 13.0, _PANELS, "request", "peak throughput [Mrps]")
    fig.suptitle("Fig. 5: MICA under every DDIO allocation, with and without sweeping", fontweight="bold")
    _paper_mark(axes[0], clusters, "sweeper.c.abs.peak-gain", "1 KB, 2048 buf", ("sweeper", 2), ("ddio", 2))
    return fig


def _fig2(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
    clusters = Clusters(frame.sort("depth").to_dicts(), lambda r: f"D = {r['depth']}")
    fig, _ = _three_panels(clusters, 9.5, _PANELS, "packet", "throughput [Mpps]")
    fig.suptitle("Fig. 2: L3fwd with standing queues, 2048 buffers of 1 KB", fontweight="bold")
    return fig


def _fig7(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
    rows = frame.sort("depth").to_dicts()
    clusters = Clusters(rows, lambda r: f"D = {r['depth']}")
    fig, axes = _three_panels(clusters, 9.5, _PANELS, "packet", "throughput [Mpps]")
    fig.suptitle("Fig. 7: L3fwd with standing queues, with and without sweeping", fontweight="bold")
    best = [
        (r["throughput_mrps"] / base[1]["throughput_mrps"], f"D = {r['depth']}", r["ways"])
        for r in rows
        if r["system"] == "sweeper" and (base := clusters.of(f"D = {r['depth']}", "ddio", r["ways"]))
    ]
    if best:
        _, g, ways = max(best)
        _paper_mark(axes[0], clusters, "sweeper.c.fig7a.gain-max", g, ("sweeper", ways), ("ddio", ways))
    return fig


def _fig8(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
    def group(r: Mapping[str, Any]) -> str:
        return f"{r['channels']} channels\n{_cluster(r)}"

    clusters = Clusters(frame.sort("item_bytes", "buf", "channels").to_dicts(), group)
    fig = new_figure(11.0, 4.4)
    ax = fig.subplots()
    clusters.bars(ax, "throughput_mrps")
    ax.set(ylabel="peak throughput [Mrps]", title="Fig. 8: MICA with 3, 4 and 8 memory channels")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    for channels, claim, ways in ((3, "3ch-hi", 2), (4, "4ch-hi", 2), (8, "8ch-lo", 12)):
        g = f"{channels} channels\n1 KB, 2048 buf"
        _paper_mark(ax, clusters, f"sweeper.c.fig8.gain-{claim}", g, ("sweeper", ways), ("ddio", ways))
    return fig


def _fig6(title: str, name: str) -> Callable[[pl.DataFrame, Mapping[str, pl.DataFrame]], Figure]:
    def draw(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
        fig = new_figure(7.6, 4.8)
        ax = fig.subplots()
        lines = []
        rate = _paper_rate(frame)
        for row in sorted(rate.to_dicts(), key=lambda r: config_order(config_of(r))):
            config = config_of(row)
            lines.append(
                (
                    config_name(config),
                    row["dram_lat_avg_ns"],
                    cdf_points(tables.get(f"{name}_dram_latency_cdf"), row)
                    or [(row["dram_lat_p50_ns"], 0.5), (row["dram_lat_p99_ns"], 0.99)],
                    config,
                )
            )
        for label, mean, points, config in lines:
            colour = {"ddio": "#0F5F92", "sweeper": "#E07B12"}.get(config[0], "#2B2B2B")
            dash = "-" if config[1] == 2 else "--"
            ax.plot(
                *zip(*points, strict=False),
                color=colour,
                linestyle=dash,
                linewidth=1.6,
                label=f"{label}: mean {mean:.0f} ns",
            )
            ax.axvline(mean, color=colour, linestyle=dash, linewidth=0.8, alpha=0.7)
        _cdf_axes(ax, "DRAM access latency [ns]", [p for _, _, points, _ in lines for p in points])
        ax.set_title(title)
        return fig

    return draw


def _paper_rate(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows at the rate that the paper names, where a study has several rates."""
    return (
        frame.filter(frame["rate_basis"] == "paper")
        if "rate_basis" in frame.columns and "paper" in frame["rate_basis"]
        else frame
    )


def cdf_points(table: pl.DataFrame | None, row: Mapping[str, Any] | None = None) -> list[tuple[float, float]]:
    """Pairs of x and fraction, the last two columns of a CDF table, of the point `row`; [] without a table."""
    import polars as pl

    if table is None or table.is_empty():
        return []
    x, y = table.columns[-2:]
    for column in table.columns[:-2]:
        if row is not None and column in row:
            table = table.filter(pl.col(column).eq_missing(pl.lit(row[column])))
    return list(table.sort(x).select(x, y).iter_rows())


def _cdf_axes(ax: Axes, label: str, points: Sequence[tuple[float, float]], log: bool = False) -> None:
    # The last per mille would stretch the axis and show nothing.
    limit = max((x for x, f in points if f <= 0.999), default=1.0)
    ax.set(xlabel=label, ylabel="fraction of accesses", ylim=(0, 1.01))
    if log:
        ax.set_xscale("log")
    else:
        ax.set_xlim(0, limit * 1.05)
    ax.legend(loc="lower right")


def _fig9(title: str, point_label: Callable[[Mapping[str, Any]], str]) -> Callable[..., Figure]:
    def draw(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
        fig = new_figure(6.6, 5.6)
        ax = fig.subplots()
        best = [max((v for v in frame[c].to_list() if v), default=1.0) for c in ("t0_mops", "t1_mops")]
        places: dict[str, dict[str, tuple[float, float]]] = {}
        for system, colour, marker in (("ddio", "#0F5F92", "o"), ("sweeper", "#E07B12", "s")):
            rows = [r for r in frame.sort("ways").to_dicts() if r["system"] == system]
            line = [(r["t0_mops"] / best[0], r["t1_mops"] / best[1]) for r in rows]
            if line:
                ax.plot(
                    *zip(*line, strict=False),
                    color=colour,
                    marker=marker,
                    linewidth=1.2,
                    markersize=6,
                    label=NAMES[system],
                )
            for r, at in zip(rows, line, strict=False):
                places.setdefault(point_label(r), {})[system] = at
        for label, place in places.items():
            if len(place) == 2:
                ax.plot(*zip(*place.values(), strict=False), color="#AAAAAA", linewidth=0.8, linestyle=":", zorder=1)
            if "ddio" in place:
                ax.annotate(
                    label, place["ddio"], (-7, -3), textcoords="offset points", ha="right", va="top", fontsize=8
                )
        ax.set(xlabel="L3fwd performance (best = 1)", ylabel="X-Mem performance (best = 1)", title=title)
        ax.margins(0.12)
        ax.legend(loc="lower left")
        return fig

    return draw


def _fig10a(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
    fig = new_figure(6.6, 4.2)
    ax = fig.subplots()
    rows = frame.sort("buf").to_dicts()
    depths = sorted({r["buf"] for r in rows})
    for pct, dash in zip(sorted({r["stall_pct"] for r in rows}), (":", "-.", "-", "--"), strict=False):
        for system, colour, marker in (("ddio", "#0F5F92", "o"), ("sweeper", "#E07B12", "s")):
            line = [(r["buf"], r["throughput_mrps"]) for r in rows if (r["system"], r["stall_pct"]) == (system, pct)]
            label = f"{NAMES[system]}, {pct:g} % stall"
            ax.plot(*zip(*line, strict=True), color=colour, marker=marker, linestyle=dash, linewidth=1.6, label=label)
    factor = _paper("sweeper.c.fig10b.deep-over-shallow")
    for shallow in (r["throughput_mrps"] for r in rows if (r["system"], r["stall_pct"], r["buf"]) == ("ddio", 1, 128)):
        if factor:
            ax.plot([1600, 2600], [factor * shallow] * 2, color="#C00000", linestyle=(0, (2, 1)), linewidth=1.6)
            ax.annotate(
                f"paper: {factor:g}× of 128 buffers, at 1 %",
                (2600, factor * shallow),
                (0, -4),
                textcoords="offset points",
                ha="right",
                va="top",
                fontsize=8,
                color="#C00000",
            )
    ax.set_xscale("log", base=2)
    ax.set_xticks(depths, [str(b) for b in depths])
    ax.set(
        xlabel=axis_label("buf"),
        ylabel="drop-free peak throughput [Mrps]",
        title="Fig. 10a: throughput without drops, 2 DDIO ways",
    )
    ax.set_ylim(bottom=0)
    ax.legend(fontsize=7, ncols=2)
    return fig


def _fig10b(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
    fig = new_figure(7.0, 4.4)
    ax = fig.subplots()
    rows = [r for r in frame.sort("rate_mrps").to_dicts() if r["rate_mrps"] is not None and r["drop_rate"] is not None]
    floor = 10 ** math.floor(math.log10(min((r["drop_rate"] for r in rows if r["drop_rate"] > 0), default=1e-6))) / 10
    for system, colour in (("ddio", "#0F5F92"), ("sweeper", "#E07B12")):
        for buf, dash, marker in ((128, "--", "^"), (2048, "-", "o")):
            line = [(r["rate_mrps"], r["drop_rate"]) for r in rows if (r["system"], r["buf"]) == (system, buf)]
            if not line:
                continue
            x, y = [p[0] for p in line], [max(p[1], floor) for p in line]
            ax.plot(x, y, color=colour, linestyle=dash, linewidth=1.5, label=f"{NAMES[system]}, {buf} buffers")
            for full in (False, True):
                shown = [(a, b) for (a, drop), b in zip(line, y, strict=False) if (drop > 0) == full]
                ax.plot(
                    *(zip(*shown, strict=False) if shown else ((), ())),
                    linestyle="",
                    marker=marker,
                    color=colour,
                    markersize=5,
                    markerfacecolor=colour if full else "white",
                )
    ax.set_yscale("log")
    ax.set_ylim(floor / 4, 1.5)
    ax.axhline(floor, color="#888888", linewidth=0.6)
    ax.annotate(
        "no drop (open markers)",
        (0.99, floor),
        (0, -6),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        ha="right",
        va="top",
        fontsize=7.5,
        color="#555555",
    )
    ax.set(
        xlabel=axis_label("rate_mrps"),
        ylabel=axis_label("drop_rate"),
        title="Fig. 10b: packets dropped over arrival rate, 2 DDIO ways",
    )
    ax.legend(loc="upper left")
    return fig


def _sizing(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
    fig = new_figure(7.2, 4.6)
    ax = fig.subplots()
    rings = frame.filter(frame["case"] == "ring") if "case" in frame.columns else frame
    for i, item in enumerate(sorted(rings["item_bytes"].drop_nulls().unique())):
        part = rings.filter(rings["item_bytes"] == item).unique("buf").sort("buf")
        ax.plot(
            part["buf"].to_list(),
            part["rx_footprint_mib"].to_list(),
            label=f"RX footprint, {item} B packets",
            **line_style(i),
        )
    levels = {
        int(w): mb for w, mb in rings.select("ways", "ddio_capacity_mib").drop_nulls().unique().sort("ways").iter_rows()
    }
    for ways, mb in levels.items():
        ax.axhline(mb, color="#777777", linewidth=0.8, linestyle=":")
        ax.annotate(
            f"{ways} DDIO ways, {mb:g} MiB",
            (1.0, mb),
            xycoords=("axes fraction", "data"),
            ha="right",
            va="bottom",
            fontsize=7.5,
        )
    buffers = sorted(rings["buf"].drop_nulls().unique())
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=2)
    ax.set_xticks(buffers, [str(b) for b in buffers])
    ax.yaxis.set_major_formatter(lambda v, _: f"{v:g}")
    ax.set(xlabel=axis_label("buf"), ylabel="MB", title="RX buffer footprint against the DDIO ways of the LLC")
    ax.legend(loc="upper left")
    return fig


DRAWINGS: dict[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    "sweeper_sizing": _sizing,
    "sweeper_fig1": _fig1,
    "sweeper_fig2": _fig2,
    "sweeper_fig5": _fig5,
    "sweeper_fig6_left": _fig6("Fig. 6 left: DRAM latency, each at its own peak", "sweeper_fig6_left"),
    "sweeper_fig6_right": _fig6("Fig. 6 right: DRAM latency at an equal 26 Mrps", "sweeper_fig6_right"),
    "sweeper_fig7": _fig7,
    "sweeper_fig8": _fig8,
    "sweeper_fig9a": _fig9("Fig. 9a: disjoint LLC ways (DDIO, X-Mem)", lambda r: f"({r['split_a']}, {r['split_b']})"),
    "sweeper_fig9b": _fig9("Fig. 9b: X-Mem may use all LLC ways", lambda r: f"{r['ways']} ways"),
    "sweeper_fig10a": _fig10a,
    "sweeper_fig10b": _fig10b,
}
