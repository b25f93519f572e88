"""Figures of the studies beyond "Understanding the Host Network" (SIGCOMM'24), for which the paper has no results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .hostnetwork_panels import C2M, P2M, degradations, line, rows_of
from .style import new_figure

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure


def _cases(title: str) -> Callable[..., Figure]:
    """A column per case: degradations above, throughputs below; quadrants by line style."""

    def draw(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
        cases = frame["case"].unique(maintain_order=True).to_list()
        quadrants = sorted(frame["quadrant"].unique().to_list())
        fig = new_figure(3.6 * len(cases) + 1.8, 6.4)
        top, bottom = fig.subplots(2, len(cases), sharex=True, sharey="row")
        for case, upper, lower in zip(cases, top, bottom):
            for q, dash in zip(quadrants, ("-", "--")):
                rows = rows_of(frame, run="colo", quadrant=q, case=case)
                where = f", quadrant {q}" if len(quadrants) > 1 else ""
                for ax, columns in ((upper, ("degr_c2m", "degr_p2m")), (lower, ("c2m_gbs", "p2m_gbs"))):
                    for column, label, colour, marker in zip(columns, ("C2M", "P2M"), (C2M, P2M), "os"):
                        line(ax, rows, column, color=colour, marker=marker, linestyle=dash, label=label + where)
            upper.set_title(case)
        bottom[0].set_ylim(bottom=0)
        return degradations(fig, title, top, bottom, below="colocated throughput [GB/s]")

    return draw


DRAWINGS: dict[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    "hostnetwork_future_memory": _cases("Cores beside a device on DDR4, DDR5 and HBM"),
    "hostnetwork_future_iios": _cases("Cores beside devices at one and at two IIOs"),
    "hostnetwork_future_hostcc": _cases(
        "DCTCP beside cores that read and write: losses alone, and what hostCC does about them"
    ),
    "hostnetwork_future_isolation": _cases("Quadrant 3: order of writes at the home agent"),
}
