"""Confidence intervals of metrics: how sure a number is."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _core, tenants
from .declared import PREFIX
from .parquet import ColumnInfo

if TYPE_CHECKING:
    import polars as pl

    from .results import Result

Interval = tuple[float, float]
"""Lower and upper end of an interval, in the metric's unit."""


#: Columns of the table of intervals that are neither swept nor a metric.
COLUMNS: dict[str, ColumnInfo] = {
    "metric": {"unit": "", "description": "name of the metric"},
    "value": {"unit": "", "description": "value of the metric, in the metric's unit"},
    "low": {"unit": "", "description": "lower end of the 95 % confidence interval"},
    "high": {"unit": "", "description": "upper end of the 95 % confidence interval"},
}


def of(data: Mapping[str, Any]) -> dict[str, Interval]:
    """The 95 % intervals of a result (as `Result.data`) by metric, and by ``tenant.NAME.COLUMN``."""
    found = {name: (low, high) for name, (low, high) in (data.get("intervals") or {}).items()}
    tables = data.get("tables") or {}
    if "tenant_intervals" in tables:
        names = tenants.names(data)
        for row, column, low, high in tables["tenant_intervals"]["rows"]:
            found[f"{PREFIX}{names[row]}.{column}"] = (low, high)
    return found


def of_mean(values: Sequence[float], unit: str) -> Interval:
    """The 95 % interval of the mean of two or more independent values (Student's t), within the bounds of a metric of ``unit``."""
    mean = statistics.fmean(values)
    half = _core.student(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    least, most = _bounds(mean, unit)
    return max(mean - half, least), min(mean + half, most)


def _bounds(value: float, unit: str) -> Interval:
    """Bounds of the interval of a metric of ``unit``, as the engine has them: 0 below, and 1 above a share. A column that is
    no metric has no unit, and may be of either sign."""
    return min(value, 0.0) if unit else -math.inf, max(value, 1.0) if unit == "fraction" else math.inf


def half_width(value: float, interval: Interval) -> float:
    """The distance of an interval's ends from ``value``; the larger one where they differ."""
    return max(interval[1] - value, value - interval[0])


def noise(value: float, interval: Interval, unit: str, other: float) -> float:
    """The distance from ``value`` up to which its noise reaches towards ``other``: that of the end on this side.

    An end at a bound of the metric's ``unit`` is nearer than the noise reaches, and then the other end tells; where both are at
    a bound, the distance is infinite.
    """
    (low, high), (least, most) = interval, _bounds(value, unit)
    below, above = value - low, high - value
    if low <= least and high >= most:
        return math.inf
    if low <= least or high >= most:
        return max(below, above)
    return above if other > value else below


def text(value: float, interval: Interval | None) -> str:
    """The distance of an interval's ends from ``value``, to two digits; empty without an interval."""
    if interval is None:
        return ""
    half = half_width(value, interval)
    return f"±{half:,.0f}" if half >= 99.5 else f"±{half:.2g}"


def frame(results: Sequence[Result], columns: Sequence[Mapping[str, Any]] | None = None) -> pl.DataFrame:
    """One row per result and metric with an interval: the swept columns, ``metric``, ``value``, ``low`` and ``high``."""
    import polars as pl

    columns = columns if columns is not None else [{} for _ in results]
    swept = list(dict.fromkeys(name for c in columns for name in c))
    rows = []
    for result, point in zip(results, columns, strict=True):
        for name, (low, high) in of(result.data).items():
            rows.append([*(point.get(c) for c in swept), name, result[name], low, high])
    return pl.DataFrame(rows, schema=[*swept, "metric", "value", "low", "high"], orient="row", infer_schema_length=None)


def ends(name: str, results: Sequence[Result]) -> list[pl.Series]:
    """The columns ``NAME_low`` and ``NAME_high`` of a metric; none where no result has its interval."""
    import polars as pl

    found = [of(r.data).get(name) for r in results]
    if not any(found):
        return []
    pairs = (("low", 0), ("high", 1))
    return [pl.Series(f"{name}_{end}", [i and i[k] for i in found], dtype=pl.Float64) for end, k in pairs]
