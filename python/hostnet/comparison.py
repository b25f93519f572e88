"""A comparison of runs: each metric side by side, with the inputs that differ and, over several seeds, with intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from statistics import fmean
from typing import TYPE_CHECKING, Any, TypeAlias

from . import _core, intervals
from .declared import matching, unit
from .errors import HostnetError
from .headlines import columns_for, leading
from .results import Result

if TYPE_CHECKING:
    import polars as pl

    from .tables import Column

#: One run, or runs that differ only in their seeds.
Runs: TypeAlias = "Result | Sequence[Result]"


#: Degrees of freedom of an interval that comes from the batches of one window.
_BATCHES = 15


@dataclass(frozen=True)
class Sample:
    """A metric of one result, or of runs that differ only in their seeds.

    ``known`` is the interval of a single result, of ``freedom`` degrees of freedom, and ``unit`` that of the metric.
    """

    values: tuple[float, ...]
    known: intervals.Interval | None = None
    freedom: int = _BATCHES
    unit: str = ""

    @property
    def mean(self) -> float:
        """Mean over the seeds."""
        return fmean(self.values)

    @property
    def interval(self) -> intervals.Interval | None:
        """The 95 % interval; None for a single result whose metric has none."""
        return self.known if len(self.values) < 2 else intervals.of_mean(self.values, self.unit)

    @property
    def half_interval(self) -> float | None:
        """Distance of the ends of the 95 % interval from the mean; None for a single result whose metric has none."""
        return None if self.interval is None else intervals.half_width(self.mean, self.interval)

    def _error(self, other: float) -> tuple[float, float] | None:
        """Variance of the mean towards ``other``, and its degrees of freedom; None where they are unknown."""
        if self.interval is None:
            return None
        freedom = self.freedom if len(self.values) < 2 else len(self.values) - 1
        noise = intervals.noise(self.mean, self.interval, self.unit, other)
        return (noise / _core.student(freedom)) ** 2, freedom

    def differs(self, other: Sample) -> bool | None:
        """Whether two means differ by more than chance (Welch's test at 5 %); None where an interval is unknown."""
        mine, theirs = self._error(other.mean), other._error(self.mean)
        if mine is None or theirs is None:
            return None
        total = mine[0] + theirs[0]
        if total == 0 or math.isinf(total):
            return total == 0 and self.mean != other.mean
        freedom = total**2 / sum(v**2 / n for v, n in (mine, theirs))
        return abs(self.mean - other.mean) > _core.student(freedom) * math.sqrt(total)


@dataclass(frozen=True)
class Comparison:
    """Runs side by side; the first one is what the others are compared with.

    ``names`` has a name for each run, ``changed`` the inputs that differ, by dotted path, and ``samples`` the values of each
    metric in the order of the runs, None where a run lacks the metric.
    """

    names: tuple[str, ...]
    changed: Mapping[str, tuple[Any, ...]]
    samples: Mapping[str, tuple[Sample | None, ...]]

    @property
    def frame(self) -> pl.DataFrame:
        """A row for each metric and run: mean, half of its 95 % interval, change to the first run in percent, and whether the
        change is more than chance."""
        import polars as pl

        schema = {
            "metric": pl.String,
            "unit": pl.String,
            "run": pl.String,
            "mean": pl.Float64,
            "half_interval": pl.Float64,
            "change_percent": pl.Float64,
            "differs": pl.Boolean,
        }
        rows = [
            (name, unit(name), run, s and s.mean, s and s.half_interval, _change(s, row[0]), _differs(s, row[0], i))
            for name, row in self.samples.items()
            for i, (run, s) in enumerate(zip(self.names, row))
        ]
        return pl.DataFrame(rows, schema=schema, orient="row")

    def table(self) -> tuple[list[Column], list[list[str]]]:
        """Columns and rows as they are shown. A change within chance has the sign ~ before it."""
        from .tables import Column

        first, *others = self.names
        columns = [Column("metric", key=True, text=True), Column("unit", text=True), Column(first)]
        columns += [c for name in others for c in (Column(name), Column("change"))]
        rows = []
        for name, row in self.samples.items():
            cells = [_shown(row[0])]
            for i, s in enumerate(row[1:], 1):
                change = _change(s, row[0])
                chance = "~" if _differs(s, row[0], i) is False else ""
                cells += [_shown(s), "" if change is None else f"{chance}{round(change, 1) + 0.0:+.1f} %"]
            rows.append([name, unit(name), *cells])
        return columns, rows

    def __repr__(self) -> str:
        from rich.console import Console

        from .tables import show

        out = Console(width=100, record=True, file=StringIO())
        show(*self.table(), title=self._heading(), to=out)
        return out.export_text().rstrip()

    def _repr_html_(self) -> str:
        from .notebook import comparison

        return comparison(self)

    def _heading(self) -> str:
        inputs = [f"{path}: {', '.join(map(str, values))}" for path, values in list(self.changed.items())[:6]]
        return "; ".join(inputs) or "equal inputs"


def compare(*runs: Runs, names: Sequence[str] | None = None, metrics: Sequence[str] | None = None) -> Comparison:
    """Compare runs with the first of them: ``hn.compare(a, b)``.

    A run is a :class:`Result`, or a list of results that differ only in their seeds, as :func:`hostnet.repeat` makes. Numbers
    have 95 % intervals, over the seeds of a list or from the batches of one run, and a change that may be chance is marked. ``metrics`` are names or patterns; without
    them, the metrics that lead in the runs are compared. ``names`` are what the columns are called.
    """
    names, metrics = _texts("names", names), _texts("metrics", metrics)
    lists = [list(r) if isinstance(r, Iterable) else [r] for r in runs]
    if len(lists) < 2:
        raise HostnetError("a comparison needs two runs or more, such as hn.compare(a, b).")
    for i, group in enumerate(lists, 1):
        _check(i, group)
    if names is not None and len(names) != len(lists):
        raise HostnetError(f"names has {len(names)} entries for {len(lists)} runs.")
    changed = _changed([group[0].spec for group in lists])
    return Comparison(
        names=tuple(names or _names(lists, changed)),
        changed=changed,
        samples={m: tuple(_sample(m, group) for group in lists) for m in _chosen(lists, metrics)},
    )


def _texts(argument: str, given: Any) -> list[str] | None:
    """The texts of an argument. Raises HostnetError for what is no list of texts."""
    if given is None:
        return None
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise HostnetError(f"{argument} = {given!r} is no list of texts.")
    found = list(given)
    if not all(isinstance(text, str) for text in found):
        raise HostnetError(f"{argument} = {found!r} is no list of texts.")
    return found


def _check(place: int, group: Sequence[Result]) -> None:
    if not group or not all(isinstance(r, Result) for r in group):
        raise HostnetError(f"run {place} of the comparison is neither a result nor a list of results.")
    other = list(_changed([r.spec for r in group], with_seed=False))
    if other:
        raise HostnetError(
            f"run {place} of the comparison has results that differ in {other[0]}, not only in their seeds."
        )


def _chosen(lists: Sequence[Sequence[Result]], metrics: Sequence[str] | None) -> list[str]:
    """The metrics that are compared, of those with a value in any run."""
    firsts = [group[0].metrics for group in lists]
    if metrics is not None:
        named = dict.fromkeys(m for text in metrics for m in matching(text))
        return [m for m in named if any(f.get(m) is not None for f in firsts)]
    found = dict.fromkeys(columns_for(firsts))
    for first in firsts:
        found.update(dict.fromkeys(m for group in leading(first).values() for m in group))
    return list(found)


def _sample(metric: str, group: Sequence[Result]) -> Sample | None:
    values = [v for r in group if (v := r[metric]) is not None]
    first, *others = group
    known = None if others else first.interval(metric)
    if not others and known is None and len(first.seeds) > 1 and first[metric] == 0:
        known = (0.0, 0.0)  # as of the runs by themselves, none of which differs
    freedom = len(first.seeds) - 1 if len(first.seeds) > 1 else _BATCHES
    return Sample(tuple(values), known, freedom, unit(metric)) if values else None


def _change(sample: Sample | None, base: Sample | None) -> float | None:
    """Change of a mean in percent; None where the base is 0 or a value is missing."""
    if sample is None or base is None or base.mean == 0:
        return None
    return 100 * (sample.mean / base.mean - 1)


def _differs(sample: Sample | None, base: Sample | None, place: int) -> bool | None:
    return None if place == 0 or sample is None or base is None else sample.differs(base)


def _shown(sample: Sample | None) -> str:
    """A mean; with its interval to two digits of the interval."""
    from .show import number

    if sample is None:
        return ""
    half = sample.half_interval
    if not half:
        return number(sample.mean)
    digits = max(0, 1 - math.floor(math.log10(half)))
    return f"{sample.mean:,.{digits}f} ± {half:.{digits}f}"


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    """The values of a spec by dotted path."""
    if isinstance(value, Mapping):
        children = {str(k): v for k, v in value.items()}
    elif isinstance(value, list):
        children = {str(i): v for i, v in enumerate(value)}
    else:
        return {path: value}
    return {k: v for key, child in children.items() for k, v in _flat(child, f"{path}.{key}" if path else key).items()}


def _changed(specs: Sequence[Mapping[str, Any]], with_seed: bool = True) -> dict[str, tuple[Any, ...]]:
    """The values that differ between specs, by dotted path; the name of a scenario is none of them."""
    flat = [_flat(s) for s in specs]
    left_out = {"name"} | (set() if with_seed else {"seed"})
    paths = [p for p in dict.fromkeys(p for f in flat for p in f) if p not in left_out]
    found = {p: tuple(f.get(p) for f in flat) for p in paths}
    return {p: values for p, values in found.items() if any(v != values[0] for v in values)}


def _names(lists: Sequence[Sequence[Result]], changed: Mapping[str, tuple[Any, ...]]) -> list[str]:
    """A name for each run: that of its scenario where these differ, else the changed values, else its number."""
    scenarios = [str(group[0].spec.get("name", "")) for group in lists]
    if len(set(scenarios)) == len(scenarios):
        return scenarios
    short = {p: v for p, v in list(changed.items())[:2]}
    named = [", ".join(f"{p.rpartition('.')[2]} {v[i]}" for p, v in short.items()) for i in range(len(lists))]
    return named if len(set(named)) == len(named) else [f"run {i}" for i in range(1, len(lists) + 1)]
