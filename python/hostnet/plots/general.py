"""Plots of any data: sweeps, and metrics as bars."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

from ..declared import info
from ..errors import HostnetError
from ..paths import nearest
from ..systems import name_of
from .style import axis_label, line_style, new_figure, style

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def _there(frame: pl.DataFrame, columns: Iterable[str]) -> None:
    """Raises HostnetError for a column that the frame lacks."""
    for column in columns:
        if column not in frame.columns:
            raise HostnetError(f"the table has no column {column!r}; {nearest(column, list(frame.columns))}")


def plot_sweep(frame: pl.DataFrame, x: str, y: str, hue: str | Sequence[str] | None = None, title: str = "") -> Figure:
    """Lines of column `y` over column `x`, one per value (or combination of values) of `hue`.

    Rows are averaged where several share x and hue. A band shows the 95 % intervals where the frame has the columns
    `y_low` and `y_high`, as those of `sweep(..., ends=True)` do. Raises HostnetError for a column that the frame lacks.
    """
    import polars as pl

    hues = [] if hue is None else [hue] if isinstance(hue, str) or not isinstance(hue, Iterable) else list(hue)
    _there(frame, (x, y, *hues))
    with style():
        fig = new_figure(6.4, 4.0)
        ax = fig.subplots()
        frame = frame.filter(pl.col(y).is_not_null())
        parts = frame.partition_by(hues, as_dict=True, maintain_order=True) if hues else {(): frame}
        for i, (key, part) in enumerate(parts.items()):
            ends = [c for c in (f"{y}_low", f"{y}_high") if c in part.columns]
            line = part.group_by(x).agg(pl.col(y, *ends).mean()).sort(x)
            label = ", ".join(str(k) if h == "system" else f"{h} {k}" for h, k in zip(hues, key, strict=False)) or None
            ax.plot(line[x].to_list(), line[y].to_list(), label=label, **line_style(i))
            _band(ax, line, x, y, i)
        ax.set(xlabel=axis_label(x), ylabel=axis_label(y), title=title or f"{axis_label(y)} over {axis_label(x)}")
        ax.set_ylim(bottom=min(0, ax.get_ylim()[0]))
        if hues:
            ax.legend(ncols=2 if len(parts) > 6 else 1)
        return fig


def _band(ax: Axes, line: pl.DataFrame, x: str, y: str, i: int) -> None:
    """The 95 % intervals of line number ``i``, where the frame has their ends."""
    low, high = f"{y}_low", f"{y}_high"
    if low in line.columns and high in line.columns:
        known = line.drop_nulls([low, high])
        ends = (known[low].to_list(), known[high].to_list())
        ax.fill_between(known[x].to_list(), *ends, color=line_style(i)["color"], alpha=0.18, linewidth=0)


_DIRECTED = [
    "dram_reads_per_block",
    "dram_writes_per_block",
    "first_read_cycles",
    "copies_left",
    "llc_dirty_blocks",
    "clsweeps",
    "tx_writes_per_block",
    "sweep_delay_ns",
    "stale_blocks_readable",
]


def plotted(
    frame: pl.DataFrame, x: str, y: Sequence[str], lines: Sequence[str], labels: Mapping[str, str], title: str = ""
) -> Figure:
    """One panel for each metric of ``y`` over the column ``x``, with a line for each combination of values of ``lines``.

    Where ``x`` has names rather than numbers, each name has a cluster of bars. ``labels`` says what columns mean.
    """
    import polars as pl

    _there(frame, (x, *y, *lines))
    with style():
        fig = new_figure(4.6 * len(y) + 0.6, 3.8)
        panels = fig.subplots(1, len(y), squeeze=False)[0]
        for ax, metric in zip(panels, y, strict=True):
            part = frame.filter(pl.col(metric).is_not_null() & pl.col(x).is_not_null())
            (_clusters if frame[x].dtype == pl.String else _curves)(ax, part, x, metric, lines)
            ax.set(xlabel=fill(labels.get(x, axis_label(x)), 42), ylabel=axis_label(metric))
            ends = [c for c in (f"{metric}_low", f"{metric}_high") if c in part.columns]
            values = [0.0, *(v for c in (metric, *ends) for v in part[c].to_list() if v is not None)]
            ax.set_ylim(1.06 * min(values), 1.06 * max(values) or None)
        handles, names = panels[0].get_legend_handles_labels()
        if lines and handles:
            fig.legend(handles, names, loc="outside lower center", ncols=min(len(names), 2 * len(y)))
        fig.suptitle(fill(title, 30 + 55 * len(y)), fontweight="bold")
        return fig


def _parts(frame: pl.DataFrame, lines: Sequence[str]) -> list[tuple[str, pl.DataFrame]]:
    """The rows of each combination of values of ``lines``, in their order, by its name."""
    if not lines:
        return [("", frame)]
    parts = frame.partition_by(lines, as_dict=True, maintain_order=True)
    return [
        (
            ", ".join(
                _bar_label(c, v) if not isinstance(v, str) else name_of(v) for c, v in zip(lines, key) if v is not None
            ),
            part,
        )
        for key, part in parts.items()
    ]


def _curves(ax: Axes, frame: pl.DataFrame, x: str, y: str, lines: Sequence[str]) -> None:
    for i, (name, part) in enumerate(_parts(frame, lines)):
        line = part.sort(x)
        ax.plot(line[x].to_list(), line[y].to_list(), label=name, **line_style(i))
        _band(ax, line, x, y, i)


def _clusters(ax: Axes, frame: pl.DataFrame, x: str, y: str, lines: Sequence[str]) -> None:
    groups = frame[x].unique(maintain_order=True).to_list()
    parts = _parts(frame, lines)
    present = {g: [name for name, part in parts if g in part[x]] for g in groups}
    width = 0.8 / max(map(len, present.values()), default=1)
    for i, (name, part) in enumerate(parts):
        at = [groups.index(g) + (present[g].index(name) - (len(present[g]) - 1) / 2) * width for g in part[x]]
        values = part[y].to_list()
        ax.bar(at, values, width, label=name, color=line_style(i)["color"], edgecolor="white", linewidth=0.4)
        low, high = f"{y}_low", f"{y}_high"
        if low in part.columns and high in part.columns:
            below = [v - (v if e is None else e) for v, e in zip(values, part[low])]
            above = [(v if e is None else e) - v for v, e in zip(values, part[high])]
            ax.errorbar(at, values, (below, above), fmt="none", ecolor="#333333", elinewidth=0.8, capsize=1.5)
    ax.set_xticks(range(len(groups)), [name_of(g) for g in groups])
    ax.tick_params(axis="x", length=0)
    ax.grid(axis="x", visible=False)


def metric_bars(
    name: str,
    frame: pl.DataFrame,
    metrics: Sequence[str] | None = None,
    swept: Sequence[str] | None = None,
    title: str = "",
) -> Figure:
    """Horizontal bars, one panel per metric and one bar per row, for studies without a drawing of their own.

    ``swept`` are the columns that tell rows apart: those of every axis of the published studies unless said.
    """
    swept = _published() if swept is None else swept
    # A column that a study makes of others may have no value in any row; every metric has its column.
    _there(frame, (m for m in metrics or () if info(m)))
    chosen = [
        m for m in (metrics or _DIRECTED) if m in frame.columns and frame[m].dtype.is_numeric() and frame[m].count()
    ]
    chosen = chosen or [c for c in frame.columns if c not in swept and frame[c].dtype.is_numeric() and frame[c].count()]
    chosen = chosen[:6]
    labels = _bar_labels(frame, swept)
    fig = new_figure(3.2 * max(1, len(chosen)) + 2.0, 1.4 + 0.26 * len(labels))
    axes = fig.subplots(1, max(1, len(chosen)), sharey=True, squeeze=False)[0]
    for ax, metric in zip(axes, chosen, strict=False):
        values = [v if v is not None else math.nan for v in frame[metric].to_list()]
        bars = ax.barh(range(len(labels)), [0.0 if math.isnan(v) else v for v in values], 0.7, color="#3A93CE")
        ax.bar_label(bars, ["" if math.isnan(v) else f"{v:.3g}" for v in values], padding=2, fontsize=7.5)
        ax.set_xlabel(axis_label(metric))
        ax.grid(axis="y", visible=False)
        ax.margins(x=0.18)
        ax.locator_params(axis="x", nbins=4)  # numbers of five digits fit next to each other
    axes[0].set_yticks(range(len(labels)), labels)
    axes[0].invert_yaxis()
    fig.suptitle(title or name.replace("_", " "), fontweight="bold")
    return fig


def _published() -> list[str]:
    """The swept columns of the published studies."""
    from ..studies.axes import AXES

    return [axis.column for axis in AXES]


def _bar_labels(frame: pl.DataFrame, swept: Sequence[str]) -> list[str]:
    """Labels that tell the rows apart: by names first, then by numbers, each as far as those before do not suffice."""
    import polars as pl

    there = [c for c in swept if c in frame.columns]
    varying = [c for c in there if frame[c].drop_nulls().n_unique() > 1]
    varying.sort(key=lambda c: (frame[c].dtype != pl.String, c != "system"))
    rows = frame.to_dicts()

    def labels(columns: Sequence[str]) -> list[str]:
        return [", ".join(_bar_label(c, r[c]) for c in columns if r[c] is not None) or "all" for r in rows]

    columns = varying[:1] or there[:1]
    for more in varying[1:]:
        if len(set(labels([*columns, more]))) > len(set(labels(columns))):
            columns = [*columns, more]
    return labels(columns)


def _bar_label(column: str, value: Any) -> str:
    if column == "system":
        return name_of(value)
    if column.endswith("_bytes"):
        return f"{value} B"
    return f"{column} {value:.4g}" if isinstance(value, float) else f"{column} {value}"
