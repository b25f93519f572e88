"""Charts of the page: their data, which the page's script draws, and stacked bars, which need no script."""

from __future__ import annotations

import bisect
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from .html import Markup, embedded
from .numbers import rounded, short

#: Number of curves in one chart that can be distinguished, and of points of a curve.
MOST_LINES, MOST_POINTS = 8, 400


@dataclass
class Curve:
    """One curve; ``low`` and ``high`` are the ends of an interval at each point, where there is one."""

    name: str
    x: Sequence[float | None]
    y: Sequence[float | None]
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()
    colour: int | None = None
    lines: bool = True  # whether a line joins the points


@dataclass
class Chart:
    """A chart of curves. ``title`` has the unit of the y axis. ``ticks`` names positions on the x axis, for values that are names or percentiles."""

    title: str
    x: str
    curves: list[Curve]
    log_y: bool = False
    points: bool = False
    lines: bool = True  # whether lines join the points
    ticks: list[tuple[float, str]] = field(default_factory=list)
    sync: str = ""
    from_zero: bool = True
    wide: bool = False

    def drawn(self) -> Markup:
        """The chart's place on the page, and its data."""
        data = {
            "title": self.title,
            "x": self.x,
            "logY": self.log_y,
            "points": self.points,
            "ticks": self.ticks,
            "sync": self.sync,
            "zero": self.from_zero,
            "curves": [
                {
                    "name": c.name,
                    "lines": self.lines and c.lines,
                    "colour": i if c.colour is None else c.colour,
                    "x": list(map(rounded, c.x)),
                    "y": list(map(rounded, c.y)),
                    **({"low": list(map(rounded, c.low)), "high": list(map(rounded, c.high))} if c.low else {}),
                }
                for i, c in enumerate(self.curves)
            ],
        }
        key = "c" + hashlib.sha256(json.dumps(data).encode()).hexdigest()[:10]
        label = f"{self.title}: curves over {self.x} for {', '.join(c.name for c in self.curves)}"
        return Markup(
            f'<figure class="chart{" wide" if self.wide else ""}" role="img" aria-label="{escape(label)}">'
            f"<figcaption>{escape(self.title)}</figcaption>"
            f'<div class="plot" data-chart="{key}"></div>{embedded(data, key)}</figure>'
        )


def grid(charts: Sequence[Chart]) -> Markup:
    """Charts beside each other, as many as the page is wide; identical ones once."""
    drawn = list(dict.fromkeys(c.drawn() for c in charts))
    return Markup(f'<div class="charts">{"".join(drawn)}</div>') if drawn else Markup()


def spread(names: Sequence[str]) -> list[str]:
    """As many names as can be distinguished as curves, evenly from the first to the last."""
    if len(names) <= MOST_LINES:
        return list(names)
    return [names[round(i * (len(names) - 1) / (MOST_LINES - 1))] for i in range(MOST_LINES)]


def thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """At most about MOST_POINTS of the points, the last among them."""
    step = max(1, len(points) // MOST_POINTS)
    return [*points[::step], *([points[-1]] if points and (len(points) - 1) % step else [])]


# ---- percentiles

_PERCENTS = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999)


def tail(fraction: float) -> float:
    """The position of a percentile on an axis that gives each further nine the same room."""
    return -math.log10(1.0 - fraction)


def percentiles(cdf: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """Positions on the axis of percentiles, and the value at each, of points (value, fraction not above it)."""
    values, fractions = [v for v, _ in cdf], [f for _, f in cdf]
    resolved = max((f for f in fractions if f < 1.0 - 1e-12), default=0.0)
    last = tail(resolved) if resolved else 1.0
    wanted = [i / 100 for i in range(0, 90)] + [1 - 10 ** -(1 + i / 25) for i in range(150) if 1 + i / 25 <= last]
    y = [values[min(bisect.bisect_left(fractions, f - 1e-12), len(values) - 1)] for f in wanted]
    return [tail(f) for f in wanted], y


def percentile_chart(title: str, cdfs: Mapping[str, Sequence[tuple[float, float]]], log: bool = True) -> Chart:
    """Latency over percentile, a curve for each result."""
    curves = [Curve(name, *percentiles(cdf)) for name, cdf in cdfs.items()]
    values = [y for c in curves for y in c.y if y]
    log = log and bool(values) and max(values) > 10 * min(values)
    right = max((c.x[-1] or 0.0 for c in curves), default=1.0)
    ticks = [(tail(p / 100), f"{p:g} %") for p in _PERCENTS if tail(p / 100) <= right + 0.05]
    return Chart(title, "percentile", curves, log_y=log, ticks=ticks, from_zero=not log)


# ---- stacked bars


@dataclass(frozen=True)
class Piece:
    """A part of a stacked bar."""

    name: str
    value: float
    colour: int


def stacks(bars: Mapping[str, Sequence[Piece]], unit: str, total: Mapping[str, str] | None = None) -> Markup:
    """Stacked horizontal bars on one scale, each with its total, and a legend of the pieces that occur."""
    longest = max((sum(p.value for p in pieces) for pieces in bars.values()), default=0.0)
    if not longest:
        return Markup()
    rows, used = [], {}
    for name, pieces in bars.items():
        shown = [p for p in pieces if p.value > 0]
        used.update({p.name: p.colour for p in shown})
        sums = sum(p.value for p in shown)
        inner = "".join(
            f'<i class="k{p.colour}" style="width:{100 * p.value / longest:.3f}%" title="{escape(f"{p.name}: {short(p.value)} {unit}")}"></i>'
            for p in shown
        )
        said = (total or {}).get(name) or f"{short(sums)} {unit}"
        rows.append(
            f'<div class="stack"><b>{escape(name)}</b><span class="bar">{inner}</span><em>{escape(said)}</em></div>'
        )
    legend = "".join(f'<span><i class="k{colour}"></i>{escape(name)}</span>' for name, colour in used.items())
    return Markup(f'<div class="stacks"><p class="legend">{legend}</p>{"".join(rows)}</div>')


def columns_of(result: Mapping[str, Any], table: str) -> dict[str, list[Any]]:
    """The columns of a result's table; empty for a result without rows of it."""
    found = (result.get("tables") or {}).get(table)
    if not found or not found["rows"]:
        return {}
    return {c["name"]: [row[i] for row in found["rows"]] for i, c in enumerate(found["columns"])}
