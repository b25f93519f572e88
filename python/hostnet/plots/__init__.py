"""Plots of studies and sweeps in one style: colour-blind-safe, one fixed colour per system and per access class.

`plot_study` draws a figure of a paper from its study table, `plot_sweep` any column against any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from . import (
    ccnic_figures,
    gem5net,
    hostnetwork,
    hostnetwork_apps,
    hostnetwork_future,
    hostnetwork_net,
    idio,
    real,
    sweeper,
)
from .general import metric_bars, plot_sweep, plotted
from .style import CLASS_COLOURS, axis_label, save, style

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from ..scoreboard import Result

__all__ = [
    "CLASS_COLOURS",
    "axis_label",
    "figure_of",
    "metric_bars",
    "plot_study",
    "plot_sweep",
    "save",
    "style",
]


_DRAWINGS = (
    sweeper.DRAWINGS
    | hostnetwork.DRAWINGS
    | hostnetwork_apps.DRAWINGS
    | hostnetwork_net.DRAWINGS
    | hostnetwork_future.DRAWINGS
    | idio.DRAWINGS
    | gem5net.DRAWINGS
    | ccnic_figures.DRAWINGS
    | real.DRAWINGS
)


def plot_study(
    study: Any, frame: pl.DataFrame, out_dir: str | Path, tables: Mapping[str, pl.DataFrame] | None = None
) -> list[Path]:
    """Draws a study's figure into `out_dir` as PNG and SVG; returns the paths.

    `study` is a Study or its table name (`sweeper_fig5`), `frame` its table, `tables` its further tables by SQL name
    (`sweeper_fig6_left_dram_latency_cdf`). A study with neither a plot nor a drawing of its own gets bars of its metrics.
    """
    if isinstance(study, str):
        return save(figure_of(study, frame, tables), Path(out_dir) / study)
    figure = figure_of(study.table, frame, tables, study.metrics, study.drawn)
    return save(figure, Path(out_dir) / study.table)


def figure_of(
    name: str,
    frame: pl.DataFrame,
    tables: Mapping[str, pl.DataFrame] | None = None,
    metrics: Sequence[str] | None = None,
    drawn: Mapping[str, Any] | None = None,
    results: Sequence[Result] | None = None,
) -> Figure:
    """The figure of a study table, not yet written to a file.

    `drawn` is what `Study.drawn` says: its title, the meaning of each swept column, and its plot. `results` are those of
    `scoreboard.decided` for this table, where they are known already.
    """
    drawn = drawn or {}
    plot, meanings, title = drawn.get("plot"), drawn.get("swept"), drawn.get("title", "")
    with style():
        if plot is not None:
            fig = plotted(frame, plot["x"], plot["y"], plot["lines"], meanings or {}, title)
        elif name in _DRAWINGS:
            fig = _DRAWINGS[name](frame, tables or {})
        else:
            fig = metric_bars(name, frame, metrics, None if meanings is None else list(meanings), title)
        _compare(fig, name, frame, tables or {}, results)
        return fig


def _compare(
    fig: Figure,
    name: str,
    frame: pl.DataFrame,
    tables: Mapping[str, pl.DataFrame],
    results: Sequence[Result] | None,
) -> None:
    """A line below the figure for each numeric claim that this table alone decides: the paper's number and the measured
    one."""
    from ..scoreboard import decided, numbers_of

    size = 7.5
    width = int(fig.get_figwidth() * 72 / (0.57 * size))  # a letter is about 0.57 times as wide as the font size
    lines = [
        fill(f"{text}  —  paper {expected}, here {measured}", width, subsequent_indent="    ")
        for text, expected, measured in numbers_of(decided(name, frame, tables) if results is None else results)
    ]
    if lines:
        fig.supxlabel("\n".join(lines[:6]), x=0.01, ha="left", fontsize=size, color="#444444", linespacing=1.5)
