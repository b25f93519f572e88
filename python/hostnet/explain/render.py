"""An explanation in readable form: tables and a paragraph on the terminal, a picture in a file."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import show, tables
from ..intervals import Interval
from ..intervals import text as distance
from ..plots.style import new_figure, save, style
from ..tables import Column
from .explanation import TERMS, Domain, Explanation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_REGIME = {"red": "bold red", "blue": "bold blue", "calm": "green"}
_NOISE = {"constant": "unloaded", **TERMS}


def to_terminal(ex: Explanation, console: Any = None) -> None:
    """Print tables of domains, latency terms and path segments, then the paragraph."""
    console = console or tables.console()
    tables.show(*domains(ex), title=f"Domains: {ex.title}", to=console)
    if ex.estimates:
        tables.show(*_terms(ex), title="Analytical latency, ns", to=console)
    if ex.path:
        tables.show(*_path(ex), title="Where a request's time goes, mean ns", to=console)
    if ex.tenants is not None:
        show.tenant_table(ex.tenants, to=console)
    console.print(f"regime: [{_REGIME.get(ex.regime, 'bold')}]{ex.verdict}[/]")
    console.print(textwrap.fill(ex.paragraph(), min(110, console.width)), highlight=False, markup=False)
    for loss in ex.losses:
        console.print(textwrap.fill(loss, min(110, console.width)), highlight=False, markup=False)
    for note in ex.notes:
        console.print(f"note: {note}", style="dim", highlight=False, markup=False)
    for part in ex.missing:
        console.print(f"left out: {part}", style="dim", highlight=False, markup=False)


def _number(value: float | None, ends: Interval | None = None) -> str:
    return "" if value is None else f"{value:.1f} {distance(value, ends)}".rstrip()


Grid = tuple[list[Column], list[list[str]]]


def domains(ex: Explanation) -> Grid:
    """The table of domains: credits, occupancy, rate, latencies and bound."""
    columns = [
        Column("domain", text=True, key=True),
        Column("traffic", text=True),
        Column("state", text=True),
        Column("credits"),
        Column("held"),
        Column("spare"),
        Column("rate", "GB/s"),
        Column("latency (Little)", "ns"),
        Column("latency (direct)", "ns"),
        Column("unloaded", "ns"),
        Column("bound, credits x 64 / latency", "GB/s"),
    ]
    rows = []
    for d in ex.domains:
        mark = "exhausted" if d.exhausted else ""
        if d.traffic != "shared" and d is ex.binding(d.traffic):
            mark = f"binds, {mark}" if mark else "binds"
        spare = None if d.credits is None else max(d.credits - d.held, 0.0)
        rows.append(
            [
                f"{d.name} {d.note}".strip(),
                d.traffic,
                mark,
                "" if d.credits is None else f"{d.credits:.0f}",
                _number(d.held, d.intervals.get("held")),
                _number(spare),
                _number(d.rate_gbs, d.intervals.get("rate_gbs")),
                _number(d.little_ns, d.intervals.get("little_ns")),
                _number(d.direct_ns, d.intervals.get("direct_ns")),
                _number(d.unloaded_ns),
                _number(d.bound_gbs),
            ]
        )
    return columns, rows


def _terms(ex: Explanation) -> Grid:
    columns = [
        Column("traffic", text=True, key=True),
        *map(Column, _NOISE.values()),
        Column("sum"),
        Column("measured"),
        Column("estimate", "GB/s"),
        Column("error", "%"),
    ]
    rows = [
        [
            e.traffic,
            *(_number(e.terms[t]) for t in _NOISE),
            _number(e.latency_ns),
            _number(e.measured_ns),
            _number(e.estimate_gbs),
            f"{e.error_pct:+.1f}",
        ]
        for e in ex.estimates
    ]
    return columns, rows


def _path(ex: Explanation) -> Grid:
    paths = list(dict.fromkeys(p for p, _, _ in ex.path))
    segments = list(dict.fromkeys(s for _, s, _ in ex.path))
    columns = [Column("path", text=True, key=True), *(Column(s.replace("_", " ")) for s in segments), Column("sum")]
    rows = []
    for path in paths:
        ns = {s: v for p, s, v in ex.path if p == path}
        rows.append([path.replace("_", " "), *(_number(ns.get(s)) for s in segments), _number(sum(ns.values()))])
    return columns, rows


_COLOURS = {
    "constant": "#C9C9C9",
    "switching": "#8C8C8C",
    "write_hol": "#B5400A",
    "read_hol": "#0072B2",
    "top_of_queue": "#E69F00",
    "cha_admission": "#009E73",
}


def picture(ex: Explanation, stem: Path) -> list[Path]:
    """Write `<stem>.png` and `.svg`: credits in use by domain, and each class's latency by term."""
    return save(figure(ex), stem)


def figure(ex: Explanation) -> Figure:
    """Credits in use by domain, and each class's latency by term."""
    with style():
        fig = new_figure(12.0, 1.6 + 0.5 * max(len(bounded(ex)), len(ex.estimates), 2))
        left, right = fig.subplots(1, 2)
        draw_credits(left, ex)
        base = [0.0] * len(ex.estimates)
        for term, label in _NOISE.items():
            widths = [e.terms[term] for e in ex.estimates]
            if any(widths):
                right.barh(range(len(base)), widths, 0.6, left=base, color=_COLOURS[term], label=label)
            base = [b + w for b, w in zip(base, widths)]
        marked = [(e.measured_ns, i) for i, e in enumerate(ex.estimates) if e.measured_ns]
        for k, (x, i) in enumerate(marked):
            right.plot([x, x], [i - 0.38, i + 0.38], color="black", linewidth=1.6, label="measured" if k == 0 else None)
        right.set_yticks(range(len(base)), [e.traffic for e in ex.estimates])
        right.invert_yaxis()
        right.set(xlabel="latency [ns]", title="Formula")
        if ex.estimates:
            fig.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=4)
        fig.suptitle(f"{ex.title}: {ex.verdict}", fontweight="bold")
        return fig


def bounded(ex: Explanation) -> list[tuple[Domain, float]]:
    """Domains whose credits are bounded, with the share in use."""
    return [(d, d.used) for d in ex.domains if d.used is not None]


def draw_credits(ax: Axes, ex: Explanation) -> None:
    """Draw a bar for each bounded domain: its credits in use, red where they are exhausted."""
    found = bounded(ex)
    names = [f"{d.name}\n({d.rate_gbs:.1f} GB/s)" for d, _ in found]
    ax.barh(
        range(len(names)),
        [100 * used for _, used in found],
        0.6,
        color=["#C00000" if d.exhausted else "#3A93CE" for d, _ in found],
    )
    for i, (d, used) in enumerate(found):
        ax.annotate(
            f"{d.held:.0f} of {d.credits:.0f}, {d.little_ns:.0f} ns",
            (2, i),
            va="center",
            fontsize=8,
            color="white" if used > 0.35 else "black",
            zorder=5,
        )
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.set(xlabel="credits in use [%]", xlim=(0, 105), title="Domains")
