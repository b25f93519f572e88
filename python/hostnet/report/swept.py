"""Curves of metrics against what a sweep or a study varied."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import intervals
from ..declared import unit
from ..plots import axis_label
from ..quantities import swept as columns_of_points
from ..results import Result
from .charts import MOST_LINES, Chart, Curve, grid, spread
from .compare import leading
from .html import Markup, choice, joined, left_out
from .numbers import short
from .sources import differences

Point = Mapping[str, Any]

#: Name under which a point has its number, which is no column of any study.
_ROW = " row"

#: Number of charts of metrics for one axis, of axes, and of values that a scenario's differences may have.
MOST_CHARTS, MOST_AXES, MOST_KEYS = 8, 3, 4
#: Share of a metric's largest value by which it must vary to be worth a chart.
VARIES = 0.002
#: Endings of columns that hold the ends of a metric's interval.
INTERVAL = ("_low", "_high")


@dataclass(frozen=True)
class Mean:
    """A value at one point of a curve, with the ends of its interval where there is one."""

    value: float
    low: float | None = None
    high: float | None = None


def _ends(result: Mapping[str, Any]) -> dict[str, float]:
    """The ends of the intervals of a result's metrics, by the names of their columns."""
    known = intervals.of(result).items()
    return {metric + ending: end for metric, ends in known for ending, end in zip(INTERVAL, ends)}


def swept_curves(results: Sequence[Mapping[str, Any]]) -> Markup:
    """Charts of the leading metrics of results that differ in a few values, one of them a number."""
    found = differences(results)
    paths = [p for p in found if p != "seed"]
    if not paths or len(paths) > MOST_KEYS:
        return Markup()
    points = [{p: found[p][i] for p in paths} for i in range(len(results))]
    of = [Result({"tables": {}, **r}) for r in results]  # type: ignore[typeddict-item]
    columns = columns_of_points(points, of)
    rows = [{**dict(c), **r["metrics"], **_ends(r)} for c, r in zip(columns, results)]
    return curves(rows, list(dict.fromkeys(n for c in columns for n in c)), leading(results), names=False)


def curves(
    rows: Sequence[Point],
    swept: Sequence[str],
    metrics: Sequence[str],
    labels: Mapping[str, str] | None = None,
    names: bool = True,
    paper: Mapping[tuple[int, str], float] | None = None,
) -> Markup:
    """Charts of metrics over each swept column of three numbers or more, a curve for each combination of the others.

    Where no column is such, a column of names is the axis, if ``names`` says so. Rows that agree in all swept columns are
    replicated runs: a chart shows their mean with its 95 % interval. ``paper`` holds values of the paper by row and metric.
    """
    labels = labels or {}
    numbered = [{**r, _ROW: i} for i, r in enumerate(rows)]
    swept = [c for c in swept if len({repr(r.get(c)) for r in rows}) > 1]
    axes = sorted((c for c in swept if _numbers(rows, c) > 2), key=lambda c: -_numbers(rows, c))[:MOST_AXES]
    if not axes and names and swept:
        axes = [max(swept, key=lambda c: len({repr(r.get(c)) for r in rows}))]
    return choice(
        {
            f"over {label(x, {})}": made
            for x in axes
            if (made := _charts(numbered, x, swept, metrics, labels, paper or {}))
        }
    )


def _numbers(rows: Sequence[Point], column: str) -> int:
    """The number of different values of a column of numbers; 0 for a column of anything else."""
    values = {r[column] for r in rows if isinstance(r.get(column), (int, float, str, bool))}
    numeric = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)
    return len(values) if numeric else 0


def _charts(
    rows: Sequence[Point],
    x: str,
    swept: Sequence[str],
    metrics: Sequence[str],
    labels: Mapping[str, str],
    paper: Mapping[tuple[int, str], float],
) -> Markup:
    groups = _groups(rows, x, [c for c in swept if c != x])
    shown = spread(list(groups))
    names = [] if _numbers(rows, x) else list(dict.fromkeys(str(r[x]) for r in rows if r.get(x) is not None))
    charts = []
    for m in metrics:
        there = [v for r in rows if isinstance(v := r.get(m), (int, float))]
        if len(there) < 2 or max(there) - min(there) <= VARIES * max(map(abs, there)):
            continue
        made = [_curve(name or axis_label(m), groups[name], x, m, names, i) for i, name in enumerate(shown)]
        made += _of_paper(shown, groups, x, m, names, paper)
        chart = Chart(axis_label(m), label(x, labels), [c for c in made if c.x], points=True, sync=x)
        chart.ticks, chart.lines = [(float(i), n) for i, n in enumerate(names)], not names
        charts.append(chart)
    more = left_out(len(groups), len(shown), "these are groups of results, and the table lists all of them")
    return joined([grid(charts[:MOST_CHARTS]), more if len(groups) > MOST_LINES else Markup()]) if charts else Markup()


def _of_paper(
    shown: Sequence[str],
    groups: Mapping[str, Sequence[Point]],
    x: str,
    metric: str,
    names: Sequence[str],
    paper: Mapping[tuple[int, str], float],
) -> list[Curve]:
    """The paper's points of each curve that has any, in the curve's colour."""
    found = []
    for i, name in enumerate(shown):
        rows = [{**r, metric: paper[r[_ROW], metric]} for r in groups[name] if (r[_ROW], metric) in paper]
        if rows:
            curve = _curve(f"{name}: published" if name else "published", rows, x, metric, names, i)
            curve.lines = False
            found.append(curve)
    return found


def _groups(rows: Sequence[Point], x: str, others: Sequence[str]) -> dict[str, list[Point]]:
    """The rows of each curve by its name. Where some curves have several values of ``x``, those with a single one are left
    out, and names hold the columns in which the curves differ."""
    found: dict[str, list[Point]] = {}
    for r in rows:
        if r.get(x) is not None:
            found.setdefault(repr([r.get(c) for c in others]), []).append(r)
    groups = [g for g in found.values() if len({r[x] for r in g}) > 1] or list(found.values())
    differing = [c for c in others if len({repr(g[0].get(c)) for g in groups}) > 1]
    return {", ".join(_named(c, g[0][c]) for c in differing if g[0].get(c) is not None): g for g in groups}


def label(column: str, labels: Mapping[str, str]) -> str:
    """A swept column as the label of an axis."""
    if column in labels:
        return labels[column]
    of_tenant = re.fullmatch(r"tenant\.(\d+)\.(.+)", column)
    return f"tenant {of_tenant[1]}: {axis_label(of_tenant[2])}" if of_tenant else axis_label(column)


def _named(column: str, value: Any) -> str:
    """A value of a swept column in the name of a curve."""
    if isinstance(value, str):
        return value
    words, _, unit = label(column, {}).partition(" [")
    words = re.split(r"[.:] ?", words)[-1]
    if isinstance(value, bool):
        return words if value else f"no {words}"
    return f"{words} {short(value)} {unit.rstrip(']')}".strip()


def _curve(name: str, rows: Sequence[Point], x: str, metric: str, names: Sequence[str], colour: int) -> Curve:
    at: dict[float, list[Point]] = {}
    for r in rows:
        if isinstance(r.get(metric), (int, float)):
            at.setdefault(float(names.index(str(r[x]))) if names else float(r[x]), []).append(r)
    means = {v: mean_of(metric, same) for v, same in sorted(at.items())}
    curve = Curve(name, list(means), [m.value for m in means.values()], colour=colour)
    if any(m.low is not None for m in means.values()):
        curve.low, curve.high = [m.low for m in means.values()], [m.high for m in means.values()]
    return curve


def mean_of(metric: str, rows: Sequence[Point]) -> Mean:
    """The mean of replicated runs with its interval, or the one run's value with the interval that its columns hold."""
    values = [float(r[metric]) for r in rows]
    mean = sum(values) / len(values)
    if len(values) == 1:
        low, high = (rows[0].get(metric + ending) for ending in INTERVAL)
        return Mean(mean, low, high)
    return Mean(mean, *intervals.of_mean(values, unit(metric)))
