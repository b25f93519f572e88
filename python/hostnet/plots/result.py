"""The picture of one result: how latency is spread, and how many credits of each domain are in use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .style import line_style, new_figure, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..results import Result

#: Tables of cumulative distributions, the one nearest to a user first, and what their axis shows.
_SPREADS = (
    ("rtt", "round trip [µs]"),
    ("request_latency_cdf", "request latency [µs]"),
    ("dram_latency_cdf", "DRAM access latency [ns]"),
)


def figure(result: Result) -> Figure:
    """Distribution of latency, and credits in use by domain; a part without values is left out."""
    from ..explain import of_result
    from ..explain.render import bounded, draw_credits

    ex = of_result(result) if "domains" in result.tables else None
    domains = 0 if ex is None else len(bounded(ex))
    tables = [(t, label) for t, label in _SPREADS if t in result.tables and not result.table(t).is_empty()]
    with style():
        fig = new_figure(10.4 if domains and tables else 5.2, max(3.2, 0.42 * domains + 1.2))
        axes = list(fig.subplots(1, 2 if domains and tables else 1, squeeze=False)[0])
        if tables:
            _spread(axes[0], result, *tables[0])
        if ex is not None and domains:
            draw_credits(axes[-1], ex)
        if not tables and not domains:
            axes[0].set_axis_off()
            axes[0].text(0.5, 0.5, "this result has no tables to draw", ha="center")
        fig.suptitle(str(result.spec.get("name", "")), fontweight="bold")
        return fig


def _spread(ax: Axes, result: Result, name: str, label: str) -> None:
    table = result.table(name)
    values, fractions = (table[c].to_list() for c in table.columns[:2])
    ax.plot(values, fractions, color=line_style(0)["color"], linewidth=1.6)
    for share, colour in ((0.5, 3), (0.99, 4)):
        at = next((v for v, f in zip(values, fractions) if f >= share), None)
        if at is not None:
            look = {k: v for k, v in line_style(colour).items() if k == "color"}
            ax.axvline(at, linewidth=1.0, linestyle=":", label=f"{100 * share:.0f} %: {at:.3g}", **look)
    if values[0] > 0 and values[-1] > 20 * values[0]:
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter(lambda v, _: f"{v:g}")
    ax.set(xlabel=label, ylabel="fraction at most", ylim=(0, 1.01), title="Latency")
    ax.legend(loc="lower right")
