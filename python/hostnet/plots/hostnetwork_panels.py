"""Panels of the figures of "Understanding the Host Network" (SIGCOMM'24); red crosses are the paper's points."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

C2M, P2M, ALONE, PAPER, NET = "#0072B2", "#E07B12", "#8C8C8C", "#C00000", "#009E73"
BANDWIDTH = (
    ("mem_c2m_read_gbs", "C2M read", "#0072B2"),
    ("mem_c2m_write_gbs", "C2M write", "#A6D5F2"),
    ("mem_p2m_read_gbs", "P2M read", "#E69F00"),
    ("mem_p2m_write_gbs", "P2M write", "#B5400A"),
)
TERMS = (
    ("switching_ns", "switching", "#8C8C8C"),
    ("write_hol_ns", "write head-of-line", "#B5400A"),
    ("read_hol_ns", "read head-of-line", "#0072B2"),
    ("top_of_queue_ns", "top of queue", "#E69F00"),
    ("admission_ns", "CHA admission", "#009E73"),
)

Row = Mapping[str, Any]


def paper(pattern: str) -> list[tuple[int, float]]:
    """Number of cores and value of the shipped claims whose id matches `pattern`; its one group is the number of cores."""
    from ..scoreboard import shipped

    found = ((re.fullmatch(rf"hostnetwork\.c\.{pattern}", c.id), c.expected) for c in shipped())
    return sorted((int(m.group(1)), float(v)) for m, v in found if m)


def rows_of(frame: pl.DataFrame, **match: Any) -> list[dict[str, Any]]:
    """The rows whose columns have the given values, sorted by cores."""
    rows = (r for r in frame.to_dicts() if all(r[k] == v for k, v in match.items()))
    return sorted(rows, key=lambda r: r["n"])


def line(ax: Axes, rows: Sequence[Row], column: str, scale: float = 1.0, **style: Any) -> None:
    points = [(r["n"], scale * r[column]) for r in rows if r.get(column) is not None]
    if points:
        ax.plot(*zip(*points), linewidth=1.6, markersize=4.5, **style)


def cross(ax: Axes, points: Sequence[tuple[int, float]]) -> None:
    if points:
        ax.plot(
            *zip(*points),
            linestyle="",
            marker="x",
            color=PAPER,
            markersize=6,
            markeredgewidth=1.6,
            label="paper",
            zorder=5,
        )


def stack(ax: Axes, rows: Sequence[Row], parts: Sequence[tuple[str, str, str]]) -> None:
    base = [0.0] * len(rows)
    for column, label, colour in parts:
        heights = [r.get(column) or 0.0 for r in rows]
        if any(heights):
            ax.bar([r["n"] for r in rows], heights, 0.7, bottom=base, color=colour, label=label)
        base = [b + h for b, h in zip(base, heights)]


def over_cores(ax: Axes, xlabel: str = "C2M cores") -> None:
    from matplotlib.ticker import MaxNLocator

    ax.set_xlabel(xlabel)
    ticks = ax.xaxis.get_major_locator()
    assert isinstance(ticks, MaxNLocator), "a linear axis has that one"
    ticks.set_params(integer=True)


def level(ax: Axes, y: float, **style: Any) -> None:
    """A horizontal line: no loss, or the maximum."""
    ax.axhline(y, **{"color": "#777777", "linewidth": 0.8, **style})


def bandwidth(ax: Axes, rows: Sequence[Row], points: Sequence[tuple[int, float]] = ()) -> None:
    """Memory bandwidth by class below the platform's peak."""
    stack(ax, rows, BANDWIDTH)
    cross(ax, points)
    peak = next((r["mem_peak_gbs"] for r in rows if r.get("mem_peak_gbs")), None)
    if peak:
        level(ax, peak, linestyle=":")


def error_bars(ax: Axes, rows: Sequence[Row], bars: Sequence[tuple[str, str, str]], width: float) -> None:
    """Errors of the formula side by side, over a band of 10 %."""
    for i, (column, label, colour) in enumerate(bars):
        x = [r["n"] + (i - (len(bars) - 1) / 2) * width for r in rows]
        ax.bar(x, [r.get(column) or 0.0 for r in rows], width, color=colour, label=label)
    ax.axhspan(-10, 10, color="#DDEBDD", zorder=0)


# A panel of a root-cause figure: (column, label, factor), and the pattern of the paper's points.
Panel = tuple[tuple[str, str, float], str]
# Quantities that a device alone has as well; all other quantities are compared with cores alone.
_OF_DEVICE = ("iio_", "cha_p2m", "wpq", "packet")


def cause(ax: Axes, panel: Panel, runs: Sequence[Sequence[Row]], other: str, xlabel: str) -> None:
    """A root cause with the `other` traffic and alone; `runs` names the rows with both, with cores alone, and with the
    other traffic alone."""
    (column, label, scale), pattern = panel
    together, without, device = runs
    line(ax, together, column, scale, color=C2M, marker="o", label=f"with {other}")
    if not column.startswith(_OF_DEVICE):
        line(ax, without, column, scale, color=ALONE, marker="s", label=f"without {other}")
    elif device and device[0].get(column) is not None:
        ax.axhline(scale * device[0][column], color=P2M, linestyle=":", linewidth=1.4, label=f"{other} alone")
    if column == "lfb_lat_ns":
        line(ax, together, "net_lfb_lat_ns", color=NET, marker="D", label="network app")
    cross(ax, paper(pattern))
    ax.set_title(label)
    over_cores(ax, xlabel)
    ax.margins(y=0.08)
    ax.set_ylim(bottom=0)


def finished(fig: Figure, title: str | None, axes: Sequence[Axes]) -> Figure:
    """`fig` with its title above all axes, if it has one, and one legend of everything that `axes` show."""
    if title is not None:
        fig.suptitle(title, fontweight="bold")
    seen: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels()):
            seen.setdefault(label, handle)
    fig.legend(seen.values(), seen.keys(), loc="outside right upper")
    return fig


def degradations(
    fig: Figure,
    title: str,
    top: Sequence[Axes],
    bottom: Sequence[Axes],
    below: str = "memory bandwidth [GB/s]",
    xlabel: str = "C2M cores",
) -> Figure:
    """Finishes a figure with degradations in the upper row, a column per case."""
    for upper, lower in zip(top, bottom):
        level(upper, 1.0)
        over_cores(lower, xlabel)
    top[0].set_ylabel("isolated / colocated throughput")
    bottom[0].set_ylabel(below)
    return finished(fig, title, [*top, *bottom])
