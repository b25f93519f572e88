"""Plots of studies and sweeps in one style: colour-blind-safe, one fixed colour per system and per access class.

`plot_study` draws a figure of a paper from its study table, `plot_sweep` any column against any other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette. Neighbours in a stack differ in lightness as well, so the plots survive grey printing.
CLASS_COLOURS = {
    "acc_nic_rx_wr": ("NIC RX Wr", "#0072B2"),
    "acc_nic_tx_rd": ("NIC TX Rd", "#A6D5F2"),
    "acc_cpu_rx_rd": ("CPU RX Rd", "#E69F00"),
    "acc_cpu_tx_rdwr": ("CPU TX Rd/Wr", "#F7EC8A"),
    "acc_cpu_other_rd": ("CPU Other Rd", "#8C8C8C"),
    "acc_rx_evct": ("RX Evct", "#B5400A"),
    "acc_tx_evct": ("TX Evct", "#E3A6C7"),
    "acc_other_evct": ("Other Evct", "#3B3B3B"),
}
_SYSTEM_SHADES = {
    # from few DDIO ways to many
    "dma": ("#9A9A9A",),
    "ddio": ("#BBDDF1", "#7CBCE6", "#3A93CE", "#0F5F92"),
    "sweeper": ("#FBD08A", "#F2A83B", "#E07B12", "#A84C04"),
    "ideal": ("#2B2B2B",),
}
_SYSTEM_NAMES = {"dma": "DMA", "ddio": "DDIO", "sweeper": "DDIO + Sweeper", "ideal": "ideal DDIO"}
_SYSTEM_SHORT = {"dma": "DMA", "ddio": "DDIO", "sweeper": "+Swp", "ideal": "ideal"}
_WAYS = (2, 4, 6, 12)
_STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "hatch.linewidth": 0.5,
    "svg.fonttype": "none",
    "svg.hashsalt": "hostnet",
    "figure.dpi": 100,
    "savefig.dpi": 150,
}

_LABELS = {
    "throughput_mrps": "throughput [Mrps]",
    "mem_bw_gbs": "DRAM bandwidth [GB/s]",
    "rate_mrps": "arrival rate [Mrps]",
    "buf": "RX buffers per core",
    "ways": "DDIO ways",
    "drop_rate": "dropped / offered packets",
    "depth": "standing queue D",
}
_UNITS = {"mrps": "Mrps", "gbs": "GB/s", "us": "µs", "ns": "ns", "mb": "MB", "kb": "KB", "cycles": "cycles", "mops": "Mops", "gbps": "Gbps"}


def axis_label(column: str) -> str:
    """A column's name for an axis, its unit (the last part of the name) in brackets."""
    if column in _LABELS:
        return _LABELS[column]
    stem, _, last = column.rpartition("_")
    return f"{stem.replace('_', ' ')} [{_UNITS[last]}]" if last in _UNITS and stem else column.replace("_", " ")


def plot_study(
    study: Any, frame: pl.DataFrame, out_dir: str | Path, tables: Mapping[str, pl.DataFrame] | None = None
) -> list[Path]:
    """Draws a study's figure into `out_dir` as PNG and SVG; returns the paths.

    `study` is a Study or its table name (`sweeper_fig5`), `frame` its table, `tables` its further tables by SQL name
    (`sweeper_fig6_left_dram_latency_cdf`). A study without a drawing of its own gets bars of its metrics.
    """
    name = study if isinstance(study, str) else study.table
    figure = figure_of(name, frame, tables, metrics=None if isinstance(study, str) else study.metrics)
    return save(figure, Path(out_dir) / name)


def plot_sweep(frame: pl.DataFrame, x: str, y: str, hue: str | Sequence[str] | None = None, title: str = "") -> Figure:
    """Lines of column `y` over column `x`, one per value (or combination of values) of `hue`.

    Rows are averaged where several share x and hue. Raises ValueError for a column that the frame lacks.
    """
    import polars as pl

    hues = [hue] if isinstance(hue, str) else list(hue or ())
    for column in (x, y, *hues):
        if column not in frame.columns:
            raise ValueError(f"the frame has no column `{column}`; it has {', '.join(frame.columns)}")
    with style():
        fig = _figure(6.4, 4.0)
        ax = fig.subplots()
        frame = frame.filter(pl.col(y).is_not_null())
        parts = frame.partition_by(hues, as_dict=True, maintain_order=True) if hues else {(): frame}
        for i, (key, part) in enumerate(parts.items()):
            line = part.group_by(x).agg(pl.col(y).mean()).sort(x)
            label = ", ".join(str(k) if h == "system" else f"{h} {k}" for h, k in zip(hues, key)) or None
            ax.plot(line[x].to_list(), line[y].to_list(), label=label, **_line_style(i))
        ax.set(xlabel=axis_label(x), ylabel=axis_label(y), title=title or f"{axis_label(y)} over {axis_label(x)}")
        ax.set_ylim(bottom=min(0, ax.get_ylim()[0]))
        if hues:
            ax.legend(ncols=2 if len(parts) > 6 else 1)
        return fig


def save(figure: Figure, stem: Path) -> list[Path]:
    """Writes `<stem>.png` and `<stem>.svg`, byte-identical for equal figures; returns the paths."""
    with style():
        paths = [stem.with_name(stem.name + suffix) for suffix in (".png", ".svg")]
        figure.savefig(paths[0], metadata={"Software": None})
        figure.savefig(paths[1], metadata={"Date": None})
    return paths


def figure_of(
    name: str,
    frame: pl.DataFrame,
    tables: Mapping[str, pl.DataFrame] | None = None,
    metrics: Sequence[str] | None = None,
) -> Figure:
    """The figure of a study table, not yet written to a file."""
    with style():
        fig = _DRAWINGS[name](frame, tables or {}) if name in _DRAWINGS else metric_bars(name, frame, metrics)
        _compare(fig, name, frame, tables or {})
        return fig


def style() -> Any:
    """A context in which figures are drawn and saved in hostnet's style."""
    import matplotlib

    return matplotlib.rc_context(_STYLE)


def _figure(width: float, height: float) -> Figure:
    # Not pyplot: no global state, no display, safe in threads.
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _line_style(i: int) -> dict[str, Any]:
    colours = ("#0072B2", "#E07B12", "#2B2B2B", "#009E73", "#B5400A", "#CC79A7", "#56B4E9", "#8C8C8C")
    markers, dashes = "osD^vPX<", ("-", "--", ":", "-.")
    n = len(colours)
    return {"color": colours[i % n], "marker": markers[i % n], "linestyle": dashes[i // n % 4], "markersize": 4.5, "linewidth": 1.4}


# ---- configurations: which bar is whose --------------------------------------------------------------------------


def _config(row: Mapping[str, Any]) -> tuple[str, int]:
    return row["system"], int(row.get("ways") or 0)


def _config_order(config: tuple[str, int]) -> tuple[int, int, int]:
    system, ways = config
    return {"dma": 0, "ideal": 2}.get(system, 1), ways, int(system == "sweeper")


def _config_name(config: tuple[str, int], short: bool = False) -> str:
    system, ways = config
    name = (_SYSTEM_SHORT if short else _SYSTEM_NAMES).get(system, system)
    if system not in ("ddio", "sweeper") or not ways:
        return name
    return f"{name} {ways}" if short else f"{name}, {ways} ways"


def _config_colour(config: tuple[str, int]) -> str:
    system, ways = config
    shades = _SYSTEM_SHADES.get(system, ("#009E73",))
    return shades[min(sum(ways > w for w in _WAYS), len(shades) - 1)]


class _Clusters:
    """Bars side by side, one cluster per group and one bar per configuration present in it."""

    def __init__(self, rows: Sequence[Mapping[str, Any]], group: Callable[[Mapping[str, Any]], str]):
        self.rows = rows
        self.groups = list(dict.fromkeys(group(r) for r in rows))
        self.configs = sorted({_config(r) for r in rows}, key=_config_order)
        self.at: dict[tuple[str, tuple[str, int]], float] = {}
        self.centres: list[float] = []
        x = 0.0
        for g in self.groups:
            present = {_config(r) for r in rows if group(r) == g}
            first = x
            for config in self.configs:
                if config in present:
                    self.at[g, config] = x
                    x += 1
            self.centres.append((first + x - 1) / 2)
            x += 1.2
        self.position = [self.at[group(r), _config(r)] for r in rows]

    def bars(self, ax: Axes, column: str) -> None:
        for config in self.configs:
            mine = [(x, r[column]) for x, r in zip(self.position, self.rows) if _config(r) == config and r[column] is not None]
            hatch = "////" if config[0] == "sweeper" else None
            style = {"color": _config_colour(config), "edgecolor": "#333333", "linewidth": 0.4, "hatch": hatch}
            ax.bar([x for x, _ in mine], [y for _, y in mine], 0.9, label=_config_name(config), **style)
        self._finish(ax, axis_label(column))

    def stack(self, ax: Axes, label: str) -> None:
        base = [0.0] * len(self.rows)
        for column, (name, colour) in CLASS_COLOURS.items():
            heights = [r[column] or 0.0 for r in self.rows]
            if any(heights):
                ax.bar(self.position, heights, 0.9, bottom=base, label=name, color=colour, edgecolor="white", linewidth=0.3)
            base = [b + h for b, h in zip(base, heights)]
        self._finish(ax, label)

    def _finish(self, ax: Axes, label: str) -> None:
        ax.set_ylabel(label)
        ax.set_xticks(self.centres, self.groups)
        ax.tick_params(axis="x", length=0)
        ax.grid(axis="x", visible=False)
        ax.margins(x=0.01)

    def name_bars(self, ax: Axes) -> None:
        """Each bar's configuration below it, the cluster's name below that."""
        ax.set_xticks(self.position, [_config_name(_config(r), short=True) for r in self.rows], rotation=90, fontsize=6.5)
        ax.tick_params(axis="x", length=0)
        for x, g in zip(self.centres, self.groups):
            ax.annotate(g, (x, 0), (0, -38), xycoords=("data", "axes fraction"), textcoords="offset points", ha="center", va="top")

    def of(self, group: str, system: str, ways: int) -> tuple[float, Mapping[str, Any]] | None:
        """(position, row) of one bar."""
        for x, r in zip(self.position, self.rows):
            if (group, (system, ways)) in self.at and self.at[group, (system, ways)] == x:
                return x, r
        return None


# ---- what the paper says, beside what came out -------------------------------------------------------------------


def _paper(claim: str) -> float | None:
    """The number that a shipped claim expects, None when no such claim is shipped."""
    from .scoreboard import shipped

    return next((c.expected for c in shipped() if c.id == claim), None)


def _paper_mark(ax: Axes, clusters: _Clusters, claim: str, group: str, of: tuple[str, int], over: tuple[str, int]) -> None:
    """A dashed mark where the paper's factor puts bar `of`: `claim` times the measured bar `over`."""
    factor, bar, base = _paper(claim), clusters.of(group, *of), clusters.of(group, *over)
    if factor is None or bar is None or base is None or not base[1]["throughput_mrps"]:
        return
    y = factor * base[1]["throughput_mrps"]
    ax.plot([bar[0] - 0.75, bar[0] + 0.75], [y, y], color="#C00000", linestyle=(0, (2, 1)), linewidth=1.6, zorder=5)
    ax.annotate(f"paper {factor:g}×", (bar[0] + 0.75, y), (0, 2), textcoords="offset points", ha="right", va="bottom", fontsize=7,
                color="#C00000", zorder=6, bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.5})  # fmt: skip


def _compare(fig: Figure, name: str, frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> None:
    """A line below the figure for each numeric claim that this table alone decides: the paper's number and ours."""
    from .scoreboard import numbers_of

    lines = [f"{text}  —  paper {expected}, here {measured}" for text, expected, measured in numbers_of(name, frame, tables)]
    if lines:
        fig.supxlabel("\n".join(lines[:6]), x=0.01, ha="left", fontsize=7.5, color="#444444", linespacing=1.5)


# ---- the papers' figures -----------------------------------------------------------------------------------------


def _three_panels(
    clusters: _Clusters, width: float, titles: tuple[str, str, str], per: str, throughput: str
) -> tuple[Figure, list[Axes]]:
    fig = _figure(width, 8.6)
    axes = list(fig.subplots(3, 1, gridspec_kw={"height_ratios": (1, 1, 1.15)}))
    clusters.bars(axes[0], "throughput_mrps")
    axes[0].set_ylabel(throughput)
    clusters.bars(axes[1], "mem_bw_gbs")
    clusters.stack(axes[2], f"DRAM accesses per {per} [64 B]")
    clusters.name_bars(axes[2])
    for ax, letter, title in zip(axes, "abc", titles):
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
    clusters = _Clusters(rows, lambda r: f"{r['buf']} buffers")
    fig, axes = _three_panels(clusters, 9.5, _PANELS, "request", "peak throughput [Mrps]")
    fig.suptitle("Fig. 1: MICA, 1 KB items, 24 cores", fontweight="bold")
    gains = [
        (r["throughput_mrps"] / clusters.of(g, "dma", 0)[1]["throughput_mrps"], g, _config(r))
        for g in clusters.groups if clusters.of(g, "dma", 0)
        for r in rows if r["system"] == "ddio" and f"{r['buf']} buffers" == g
    ]  # fmt: skip
    if gains:
        _, g, config = max(gains)
        _paper_mark(axes[0], clusters, "sweeper.c.fig1a.ddio-over-dma", g, config, ("dma", 0))
    return fig


def _cluster(row: Mapping[str, Any]) -> str:
    size = f"{row['item_bytes'] // 1024} KB" if row["item_bytes"] >= 1024 else f"{row['item_bytes']} B"
    return f"{size}, {row['buf']} buf"


def _fig5(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
    clusters = _Clusters(frame.sort("item_bytes", "buf").to_dicts(), _cluster)
    fig, axes = _three_panels(clusters, 13.0, _PANELS, "request", "peak throughput [Mrps]")
    fig.suptitle("Fig. 5: MICA under every DDIO allocation, with and without sweeping", fontweight="bold")
    _paper_mark(axes[0], clusters, "sweeper.c.abs.peak-gain", "1 KB, 2048 buf", ("sweeper", 2), ("ddio", 2))
    return fig


def _fig2(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
    clusters = _Clusters(frame.sort("depth").to_dicts(), lambda r: f"D = {r['depth']}")
    fig, _ = _three_panels(clusters, 9.5, _PANELS, "packet", "throughput [Mpps]")
    fig.suptitle("Fig. 2: L3fwd with standing queues, 2048 buffers of 1 KB", fontweight="bold")
    return fig


def _fig7(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
    rows = frame.sort("depth").to_dicts()
    clusters = _Clusters(rows, lambda r: f"D = {r['depth']}")
    fig, axes = _three_panels(clusters, 9.5, _PANELS, "packet", "throughput [Mpps]")
    fig.suptitle("Fig. 7: L3fwd with standing queues, with and without sweeping", fontweight="bold")
    best = [
        (r["throughput_mrps"] / base[1]["throughput_mrps"], f"D = {r['depth']}", r["ways"])
        for r in rows if r["system"] == "sweeper" and (base := clusters.of(f"D = {r['depth']}", "ddio", r["ways"]))
    ]  # fmt: skip
    if best:
        _, g, ways = max(best)
        _paper_mark(axes[0], clusters, "sweeper.c.fig7a.gain-max", g, ("sweeper", ways), ("ddio", ways))
    return fig


def _fig8(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
    def group(r: Mapping[str, Any]) -> str:
        return f"{r['channels']} channels\n{_cluster(r)}"

    clusters = _Clusters(frame.sort("item_bytes", "buf", "channels").to_dicts(), group)
    fig = _figure(11.0, 4.4)
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
        fig = _figure(7.6, 4.8)
        ax = fig.subplots()
        lines = []
        rate = _paper_rate(frame)
        for row in sorted(rate.to_dicts(), key=lambda r: _config_order(_config(r))):
            config = _config(row)
            lines.append((_config_name(config), row["dram_lat_avg_ns"], cdf_points(tables.get(f"{name}_dram_latency_cdf"), row)
                          or [(row["dram_lat_p50_ns"], 0.5), (row["dram_lat_p99_ns"], 0.99)], config))  # fmt: skip
        for label, mean, points, config in lines:
            colour = {"ddio": "#0F5F92", "sweeper": "#E07B12"}.get(config[0], "#2B2B2B")
            dash = "-" if config[1] == 2 else "--"
            ax.plot(*zip(*points), color=colour, linestyle=dash, linewidth=1.6, label=f"{label}: mean {mean:.0f} ns")
            ax.axvline(mean, color=colour, linestyle=dash, linewidth=0.8, alpha=0.7)
        _cdf_axes(ax, "DRAM access latency [ns]", [p for _, _, points, _ in lines for p in points])
        ax.set_title(title)
        return fig

    return draw


def _paper_rate(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows at the rate that the paper names, where a study has several."""
    return frame.filter(frame["rate_basis"] == "paper") if "rate_basis" in frame.columns and "paper" in frame["rate_basis"] else frame


def cdf_points(table: pl.DataFrame | None, row: Mapping[str, Any] | None = None) -> list[tuple[float, float]]:
    """(x, fraction) of a CDF table (its last two columns), restricted to the rows of the point `row`; [] without a table."""
    import polars as pl

    if table is None or table.is_empty():
        return []
    x, y = table.columns[-2:]
    for column in table.columns[:-2]:
        if row is not None and column in row:
            table = table.filter(pl.col(column).eq_missing(pl.lit(row[column])))
    return list(table.sort(x).select(x, y).iter_rows())


def _cdf_axes(ax: Axes, label: str, points: Sequence[tuple[float, float]], log: bool = False) -> None:
    # The last per mille stretches the axis without showing anything.
    limit = max((x for x, f in points if f <= 0.999), default=1.0)
    ax.set(xlabel=label, ylabel="fraction of accesses", ylim=(0, 1.01))
    if log:
        ax.set_xscale("log")
    else:
        ax.set_xlim(0, limit * 1.05)
    ax.legend(loc="lower right")


def _fig9(title: str, point_label: Callable[[Mapping[str, Any]], str]) -> Callable[..., Figure]:
    def draw(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
        fig = _figure(6.6, 5.6)
        ax = fig.subplots()
        best = [max((v for v in frame[c].to_list() if v), default=1.0) for c in ("t0_mops", "t1_mops")]
        places: dict[str, dict[str, tuple[float, float]]] = {}
        for system, colour, marker in (("ddio", "#0F5F92", "o"), ("sweeper", "#E07B12", "s")):
            rows = [r for r in frame.sort("ways").to_dicts() if r["system"] == system]
            line = [(r["t0_mops"] / best[0], r["t1_mops"] / best[1]) for r in rows]
            if line:
                ax.plot(*zip(*line), color=colour, marker=marker, linewidth=1.2, markersize=6, label=_SYSTEM_NAMES[system])
            for r, at in zip(rows, line):
                places.setdefault(point_label(r), {})[system] = at
        for label, at in places.items():
            if len(at) == 2:
                ax.plot(*zip(*at.values()), color="#AAAAAA", linewidth=0.8, linestyle=":", zorder=1)
            if "ddio" in at:
                ax.annotate(label, at["ddio"], (-7, -3), textcoords="offset points", ha="right", va="top", fontsize=8)
        ax.set(xlabel="L3fwd performance (best = 1)", ylabel="X-Mem performance (best = 1)", title=title)
        ax.margins(0.12)
        ax.legend(loc="lower left")
        return fig

    return draw


def _fig10a(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
    fig = _figure(6.6, 4.2)
    ax = fig.subplots()
    ddio: dict[int, float] = {}
    for system, colour, marker in (("ddio", "#0F5F92", "o"), ("sweeper", "#E07B12", "s")):
        line = {r["buf"]: r["throughput_mrps"] for r in frame.sort("buf").to_dicts() if r["system"] == system}
        ddio = ddio or line
        ax.plot(list(line), list(line.values()), color=colour, marker=marker, linewidth=1.6, label=_SYSTEM_NAMES[system])
    factor = _paper("sweeper.c.fig10b.deep-over-shallow")
    if factor and 128 in ddio and 2048 in ddio:
        ax.plot([1600, 2600], [factor * ddio[128]] * 2, color="#C00000", linestyle=(0, (2, 1)), linewidth=1.6)
        ax.annotate(f"paper: {factor:g}× of 128 buffers", (2600, factor * ddio[128]), (0, -4), textcoords="offset points",
                    ha="right", va="top", fontsize=8, color="#C00000")  # fmt: skip
    ax.set_xscale("log", base=2)
    ax.set_xticks(list(ddio), [str(b) for b in ddio])
    ax.set(xlabel=axis_label("buf"), ylabel="drop-free peak throughput [Mrps]", title="Fig. 10a: throughput without drops, 2 DDIO ways")
    ax.set_ylim(bottom=0)
    ax.legend(loc="upper left")
    return fig


def _fig10b(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
    fig = _figure(7.0, 4.4)
    ax = fig.subplots()
    rows = [r for r in frame.sort("rate_mrps").to_dicts() if r["rate_mrps"] is not None and r["drop_rate"] is not None]
    floor = 10 ** math.floor(math.log10(min((r["drop_rate"] for r in rows if r["drop_rate"] > 0), default=1e-6))) / 10
    for system, colour in (("ddio", "#0F5F92"), ("sweeper", "#E07B12")):
        for buf, dash, marker in ((128, "--", "^"), (2048, "-", "o")):
            line = [(r["rate_mrps"], r["drop_rate"]) for r in rows if (r["system"], r["buf"]) == (system, buf)]
            if not line:
                continue
            x, y = [p[0] for p in line], [max(p[1], floor) for p in line]
            ax.plot(x, y, color=colour, linestyle=dash, linewidth=1.5, label=f"{_SYSTEM_NAMES[system]}, {buf} buffers")
            for full in (False, True):
                shown = [(a, b) for (a, drop), b in zip(line, y) if (drop > 0) == full]
                ax.plot(*(zip(*shown) if shown else ((), ())), linestyle="", marker=marker, color=colour, markersize=5,
                        markerfacecolor=colour if full else "white")  # fmt: skip
    ax.set_yscale("log")
    ax.set_ylim(floor / 4, 1.5)
    ax.axhline(floor, color="#888888", linewidth=0.6)
    ax.annotate("no drop (open markers)", (0.99, floor), (0, -6), xycoords=("axes fraction", "data"),
                textcoords="offset points", ha="right", va="top", fontsize=7.5, color="#555555")  # fmt: skip
    ax.set(xlabel=axis_label("rate_mrps"), ylabel=axis_label("drop_rate"), title="Fig. 10b: packets dropped over arrival rate, 2 DDIO ways")
    ax.legend(loc="upper left")
    return fig


def _sizing(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
    fig = _figure(7.2, 4.6)
    ax = fig.subplots()
    rings = frame.filter(frame["case"] == "ring") if "case" in frame.columns else frame
    for i, item in enumerate(sorted(rings["item_bytes"].drop_nulls().unique())):
        part = rings.filter(rings["item_bytes"] == item).unique("buf").sort("buf")
        ax.plot(part["buf"].to_list(), part["rx_footprint_mb"].to_list(), label=f"RX footprint, {item} B packets", **_line_style(i))
    levels = {int(w): mb for w, mb in rings.select("ways", "ddio_capacity_mb").drop_nulls().unique().sort("ways").iter_rows()}
    for ways, mb in levels.items():
        ax.axhline(mb, color="#777777", linewidth=0.8, linestyle=":")
        ax.annotate(f"{ways} DDIO ways, {mb:g} MB", (1.0, mb), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=7.5)
    buffers = sorted(rings["buf"].drop_nulls().unique())
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=2)
    ax.set_xticks(buffers, [str(b) for b in buffers])
    ax.yaxis.set_major_formatter(lambda v, _: f"{v:g}")
    ax.set(xlabel=axis_label("buf"), ylabel="MB", title="RX buffer footprint against the DDIO ways of the LLC")
    ax.legend(loc="upper left")
    return fig


_VARIABLES = "case mode system injection eviction agent sweep_tx guard item_bytes packet_bytes buf ways depth channels split_a split_b rate_mrps load".split()
_DIRECTED = "dram_reads_per_block dram_writes_per_block first_read_cycles copies_left llc_dirty_blocks clsweeps tx_writes_per_block sweep_delay_ns stale_blocks_readable".split()


def metric_bars(name: str, frame: pl.DataFrame, metrics: Sequence[str] | None = None) -> Figure:
    """Horizontal bars, one panel per metric and one bar per row, for studies without a drawing of their own."""
    chosen = [m for m in (metrics or _DIRECTED) if m in frame.columns and frame[m].dtype.is_numeric() and frame[m].count()]
    chosen = chosen or [c for c in frame.columns if c not in _VARIABLES and frame[c].dtype.is_numeric() and frame[c].count()]
    chosen = chosen[:6]
    varying = [c for c in _VARIABLES if c in frame.columns and frame[c].drop_nulls().n_unique() > 1] or [c for c in _VARIABLES if c in frame.columns][:1]
    labels = [", ".join(_bar_label(c, r[c]) for c in varying if r[c] is not None) or "all" for r in frame.to_dicts()]
    fig = _figure(3.2 * max(1, len(chosen)) + 2.0, 1.4 + 0.26 * len(labels))
    axes = fig.subplots(1, max(1, len(chosen)), sharey=True, squeeze=False)[0]
    for ax, metric in zip(axes, chosen):
        values = [v if v is not None else math.nan for v in frame[metric].to_list()]
        bars = ax.barh(range(len(labels)), [0.0 if math.isnan(v) else v for v in values], 0.7, color="#3A93CE")
        ax.bar_label(bars, ["" if math.isnan(v) else f"{v:.3g}" for v in values], padding=2, fontsize=7.5)
        ax.set_xlabel(axis_label(metric))
        ax.grid(axis="y", visible=False)
        ax.margins(x=0.18)
    axes[0].set_yticks(range(len(labels)), labels)
    axes[0].invert_yaxis()
    fig.suptitle(name.replace("_", " "), fontweight="bold")
    return fig


def _bar_label(column: str, value: Any) -> str:
    if column == "system":
        return _SYSTEM_NAMES.get(value, value)
    if column in ("item_bytes", "packet_bytes"):
        return f"{value} B"
    return f"{column} {value}"


# ---- parts of the HTML report ------------------------------------------------------------------------------------


def horizontal_bars(names: Sequence[str], panels: Mapping[str, Sequence[float | None]]) -> Figure:
    """One panel per metric, one bar per name; a missing value leaves its row empty."""
    with style():
        fig = _figure(9.6, 0.9 + 0.3 * len(names))
        for ax, (metric, values) in zip(fig.subplots(1, len(panels), sharey=True, squeeze=False)[0], panels.items()):
            bars = ax.barh(range(len(names)), [v or 0.0 for v in values], 0.7, color="#3A93CE")
            ax.bar_label(bars, ["" if v is None else f"{v:.4g}" for v in values], padding=3, fontsize=8)
            ax.set_xlabel(axis_label(metric))
            _rows_of(ax, names)
            ax.margins(x=0.14)
        return fig


def horizontal_stack(names: Sequence[str], classes: Mapping[str, Sequence[float]]) -> Figure:
    """DRAM accesses by class, one bar per name."""
    with style():
        fig = _figure(9.6, 1.3 + 0.34 * len(names))
        ax = fig.subplots()
        base = [0.0] * len(names)
        for column, values in classes.items():
            label, colour = CLASS_COLOURS[column]
            if any(values):
                ax.barh(range(len(names)), values, 0.7, left=base, color=colour, label=label, edgecolor="white", linewidth=0.4)
            base = [b + v for b, v in zip(base, values)]
        for i, total in enumerate(base):
            ax.annotate(f"{total:.4g}", (total, i), (4, 0), textcoords="offset points", va="center", fontsize=8)
        ax.set_xlabel("DRAM accesses per request [64 B]")
        _rows_of(ax, names)
        ax.margins(x=0.06)
        fig.legend(loc="outside upper center", ncols=8)
        return fig


def _rows_of(ax: Axes, names: Sequence[str]) -> None:
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="y", visible=False)


def lines(
    panels: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]], x: str, log: bool = False, cdf: bool = False
) -> Figure:
    """Curves, one panel below the other: panel label -> curve name -> points. A `cdf` has its label on the x axis."""
    with style():
        fig = _figure(9.6, 3.4 if cdf else 0.5 + 1.7 * len(panels))
        axes = fig.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
        for ax, (label, curves) in zip(axes, panels.items()):
            for i, (name, points) in enumerate(curves.items()):
                plain = {k: v for k, v in _line_style(i).items() if k != "marker"}
                ax.plot(*zip(*points), label=name, **plain)
            if cdf:
                ax.set(xlabel=label, ylabel=x, ylim=(0, 1.01))
                if log:
                    ax.set_xscale("log")
                    ax.xaxis.set_major_formatter(lambda v, _: f"{v:g}")
                else:
                    ax.set_xlim(0, 1.05 * max((a for c in curves.values() for a, f in c if f <= 0.999), default=1.0))
            else:
                ax.set_ylabel(label)
                ax.set_ylim(bottom=0)
        if not cdf:
            axes[-1].set_xlabel(x)
        axes[0].legend(loc="lower right" if cdf else "upper right", ncols=1 if cdf else 4)
        return fig


_DRAWINGS: dict[str, Callable[[Any, Mapping[str, Any]], Any]] = {
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
