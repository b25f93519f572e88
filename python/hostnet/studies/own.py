"""Studies of a user's own: a TOML file declares axes, and studies over them. docs/use/studies.md says what the file may hold."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import mul
from pathlib import Path
from typing import Any

from .._toml import TEXT, tomllib
from ..api import MOST_POINTS
from ..declared import matching, unit
from ..errors import HostnetError, SpecError
from ..paths import nearest, scenario_file
from ..quantities import units_of, usual
from ..results import column_info
from ..specs import Scenario
from . import SYSTEMS, Plot, Rows, Study
from .grid import Axis, Changes, Grid, also, sum_of, when_quick

_FILE_KEYS = ("system", "axis", "study")
_AXIS_KEYS = ("meaning", "unit", "path", "values")
_STUDY_KEYS = ("name", "title", "base", "metrics", "grid", "changes", "quick", "plot", "then")
_PLOT_KEYS = ("x", "y", "lines")
_THEN_KEYS = ("axis", "of", "shares", "baseline", "changes")
_REQUIRED = ("name", "title", "base", "metrics", "grid")
#: Every value of an axis, in a grid.
EVERY = "*"
_COLUMN = re.compile(r"[a-z][a-z0-9_]*")
_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_SCALAR = (str, int, float, bool)


class _Place:
    """Where in a file something stands, for errors: ``mine.toml: study depth: key `grid` ``."""

    def __init__(self, *parts: str):
        self.parts = parts

    def at(self, part: str) -> _Place:
        return _Place(*self.parts, part)

    def key(self, name: str) -> _Place:
        return self.at(f"key `{name}`")

    def error(self, message: str) -> HostnetError:
        return HostnetError(f"{': '.join(self.parts)}: {message}")

    def known(self, given: Mapping[str, Any], keys: Sequence[str]) -> None:
        """Raises for a key that is not one of ``keys``."""
        for key in given:
            if key not in keys:
                raise self.key(key).error(f"unknown key; {nearest(key, list(keys))}")

    def text(self, given: Mapping[str, Any], key: str, default: str | None = None) -> str:
        """The text of a key, which must be there unless there is a default."""
        value = given.get(key, default)
        if value is None:
            raise self.key(key).error("is missing")
        if not isinstance(value, str) or (default is None and not value.strip()):
            raise self.key(key).error(f"must be a non-empty string, not {value!r}")
        return value

    def table(self, given: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        """The table of a key; empty where there is none."""
        value = given.get(key, {})
        if not isinstance(value, Mapping):
            raise self.key(key).error(f"must be a table, not {value!r}")
        return value


def load(path: str | Path) -> list[Study]:
    """All studies of one file, in its order. Raises HostnetError for anything malformed, before anything runs."""
    place = _Place(str(path))
    try:
        document = tomllib.loads(Path(path).read_text(encoding=TEXT))
    except OSError as e:
        raise place.error(f"cannot be read ({e.strerror or e})") from None
    except UnicodeDecodeError:
        raise place.error("is not a UTF-8 text file") from None
    except tomllib.TOMLDecodeError as e:
        raise place.error(f"is not valid TOML ({e})") from None
    place.known(document, _FILE_KEYS)
    system = place.text(document, "system")
    if not _COLUMN.fullmatch(system):
        raise place.key("system").error(f"{system!r} must be small letters, digits and underscores, such as 'mine'")
    if system in SYSTEMS:
        raise place.key("system").error(f"{system!r} has studies that come with hostnet; choose another name")
    axes = {name: _axis(name, table, place) for name, table in place.table(document, "axis").items()}
    entries = document.get("study")
    if not isinstance(entries, list) or not entries or not all(isinstance(e, dict) for e in entries):
        raise place.key("study").error("the file needs at least one [[study]] table")
    studies = [_study(system, entry, i, axes, Path(path), place) for i, entry in enumerate(entries, 1)]
    names = [s.table for s in studies]
    for s in studies:
        if names.count(s.table) > 1:
            raise place.at(f"study {s.figure}").key("name").error("stands twice in this file")
    return studies


# --- Axes -----------------------------------------------------------------------------------------------------------


def _axis(name: str, table: Any, place: _Place) -> Axis:
    place = place.at(f"axis {name}")
    if not _COLUMN.fullmatch(name):
        raise place.error("an axis is a column: its name must be small letters, digits and underscores")
    if name in column_info() or name in ("quick", "share", "not_built"):
        raise place.error("every table has a column of that name; choose another one, such as " + repr(f"{name}_set"))
    if not isinstance(table, dict):
        raise place.error(f"must be a table, not {table!r}")
    place.known(table, _AXIS_KEYS)
    meaning, unit = place.text(table, "meaning"), place.text(table, "unit", "")
    values = table.get("values")
    if isinstance(values, dict):
        if "path" in table:
            raise place.key("path").error("named `values` have paths of their own; leave it out")
        if not values:
            raise place.key("values").error("needs at least one name")
        choices = {n: _changes(v, place.key("values").at(n)) for n, v in values.items()}
        return Axis(name, meaning, unit, choices=choices)
    paths = table.get("path")
    paths = [paths] if isinstance(paths, str) else paths
    if not isinstance(paths, list) or not paths or not all(isinstance(p, str) and p.strip() for p in paths):
        raise place.key("path").error(
            'is missing; give the key that the values are for, such as "placement.ways", or a table of named `values`'
            if paths is None
            else f"must be the path of a key, or a list of paths, not {table['path']!r}"
        )
    if values is not None:
        _values(values, place.key("values"))
    return Axis(name, meaning, unit, tuple(paths), values=tuple(values or ()))


def _values(values: Any, place: _Place) -> list[Any]:
    """Numbers, or texts, or truth values, each once."""
    if not isinstance(values, list) or not values:
        raise place.error(f"must be a list of at least one value, not {values!r}")
    for v in values:
        if not isinstance(v, _SCALAR) or (isinstance(v, float) and not math.isfinite(v)):
            raise place.error(f"{v!r} is neither a number nor a string nor true or false")
    if len({_sort(v) for v in values}) > 1:
        raise place.error(f"has values of several types, such as {values[0]!r} and {_other(values)!r}")
    if len(set(values)) < len(values):
        raise place.error(f"has {next(v for v in values if values.count(v) > 1)!r} twice")
    return values


def _sort(value: Any) -> str:
    return "truth" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"


def _other(values: Sequence[Any]) -> Any:
    return next(v for v in values if _sort(v) != _sort(values[0]))


def _changes(given: Any, place: _Place) -> Changes:
    """The changes that a table says: paths to values, and what ``remove`` lists."""
    if not isinstance(given, dict):
        raise place.error(f"must be a table of changes, not {given!r}")
    removed = given.get("remove", [])
    if not isinstance(removed, list) or not all(isinstance(p, str) for p in removed):
        raise place.key("remove").error(f"must be a list of paths, not {removed!r}")
    return {
        **dict.fromkeys(removed),
        **dict(leaf for key, value in given.items() if key != "remove" for leaf in _leaves(key, value)),
    }


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The values below a path. A table that names its ``kind`` is one value, as each kind has keys of its own."""
    if isinstance(value, dict) and "kind" not in value:
        for key, child in value.items():
            yield from _leaves(f"{path}.{key}", child)
    else:
        yield path, value


# --- Studies --------------------------------------------------------------------------------------------------------


def _study(
    system: str, entry: Mapping[str, Any], position: int, declared: Mapping[str, Axis], path: Path, place: _Place
) -> Study:
    name = entry.get("name")
    place = place.at(f"study {name if isinstance(name, str) and name else f'number {position}'}")
    place.known(entry, _STUDY_KEYS)
    for key in _REQUIRED:
        if key not in entry:
            raise place.key(key).error("is missing")
    name = place.text(entry, "name")
    if not _NAME.fullmatch(name):
        raise place.key("name").error(f"{name!r} must be small letters, digits, hyphens and underscores")
    base = _base(place.text(entry, "base"), path, place.key("base"))
    axes = {n: _written(axis, base, place.at(f"axis {n}")) for n, axis in declared.items()}
    swept = _grid(entry["grid"], axes, place.key("grid"))
    everywhere = _changes(entry.get("changes", {}), place.key("changes"))
    grid = also(everywhere) * swept
    quick = _changes(entry.get("quick", {}), place.key("quick"))
    metrics = _metrics(entry["metrics"], place.key("metrics"))
    _distinct(grid, place.key("grid"))
    for paths in _combinations(grid):
        _apart(paths, base, place.key("grid"))
        for key, changes in (("changes", everywhere), ("quick", quick)):
            _apart({key: changes, **paths}, base, place.key(key))
    then: Any = None
    share: tuple[Axis, ...] = ()
    if "then" in entry:
        then, share = _then(place.table(entry, "then"), grid, quick, axes, base, place.key("then"))
    further = [entry["then"]["axis"], *(a.column for a in share)] if share else []
    return Study(
        system,
        name,
        place.text(entry, "title"),
        grid * when_quick(quick),
        metrics,
        base=str(base._origin),
        then=then,
        axes=(*axes.values(), *share),
        plot=_plot(entry, swept, further, metrics, place.key("plot")) if "plot" in entry else None,
        file=str(path),
        shortened=bool(quick),
    )


def _base(name: str, path: Path, place: _Place) -> Scenario:
    """The scenario that a study changes: a file beside the study's, or one that comes with hostnet."""
    beside = path.parent / name
    try:
        base = Scenario.load(beside if beside.is_file() else scenario_file(name))
        base.resolve()
    except HostnetError as e:
        raise place.error(str(e)) from None
    except OSError as e:  # a name that is longer than a file system takes
        raise place.error(f"{name[:40]}...: cannot be used ({e.strerror or e})") from None
    return base


def _written(axis: Axis, base: Scenario, place: _Place) -> Axis:
    """The axis as the base's keys take its values: a quantity has a unit, and anything else has none."""
    forms = set()
    for path in axis.paths:
        units = units_of(base, path)
        if units and axis.unit not in units:
            near = nearest(axis.unit, usual(units))
            raise place.key("unit").error(
                f"{axis.unit!r} is no unit of {path}; {near}" if axis.unit else f"is missing: {path} has a unit; {near}"
            )
        if units and (texts := [v for v in axis.values if isinstance(v, str)]):
            raise place.key("values").error(f"{texts[0]!r} is text; give numbers, whose unit is {axis.unit!r}")
        forms.add(f"{{}} {axis.unit}" if units else "")
    if len(forms) > 1:
        raise place.key("path").error(f"{' and '.join(axis.paths)} do not take the same values")
    return axis.at(*axis.paths, form=forms.pop()) if forms else axis


def _grid(given: Any, axes: Mapping[str, Axis], place: _Place) -> Grid:
    tables = [given] if isinstance(given, dict) else given
    if not isinstance(tables, list) or not tables or not all(isinstance(t, dict) and t for t in tables):
        raise place.error(f"must be a table of axes and their values, or a list of such tables, not {given!r}")
    points = sum(math.prod(len(_chosen(n, v, axes, place)) for n, v in t.items()) for t in tables)
    if points > MOST_POINTS:
        raise place.error(f"has {points:,} points, more than {MOST_POINTS:,}; give fewer values")
    return sum_of(reduce(mul, (axes[n](*_chosen(n, v, axes, place)) for n, v in t.items())) for t in tables)


def _chosen(name: str, given: Any, axes: Mapping[str, Axis], place: _Place) -> Sequence[Any]:
    """The values of an axis in a grid."""
    if name not in axes:
        known = nearest(name, list(axes)) if axes else "the file declares none, such as [axis.ways]."
        raise place.error(f"there is no axis {name!r}; {known}")
    axis, place = axes[name], place.at(name)
    every = tuple(axis.choices) if axis.choices is not None else axis.values
    if given == EVERY:
        if not every:
            raise place.error(f"axis {name} declares no `values` for {EVERY!r}; list them here or there")
        return every
    values = _values(given if isinstance(given, list) else [given], place)
    for v in values if axis.choices is not None else ():
        if v not in every:
            raise place.error(f"axis {name} has no value {v!r}; {nearest(str(v), [str(c) for c in every])}")
    if axis.form and any(isinstance(v, str) for v in values):
        raise place.error(f"{values[0]!r} is text; give numbers, whose unit is {axis.unit!r}")
    return values


def _distinct(grid: Grid, place: _Place) -> None:
    """Raises for two points that no column tells apart."""
    seen: set[str] = set()
    for p in grid.points(False):
        row = row_of(p.columns)
        if row in seen:
            raise place.error(f"two points have the same columns, {row}")
        seen.add(row)


def _combinations(grid: Grid) -> list[dict[str, Iterable[str]]]:
    """The paths that each axis changes at a point, once for all points whose axes change the same ones."""
    found: dict[tuple[Any, ...], dict[str, Iterable[str]]] = {}
    for cell in grid.cells:
        alike = tuple((axis.column, value if axis.choices else None) for axis, value in cell.values)
        if alike not in found:
            found[alike] = {f"axis {axis.column}": _changed(axis, value) for axis, value in cell.values}
    return list(found.values())


def _changed(axis: Axis, value: Any) -> Iterable[str]:
    """The paths that a value of an axis changes."""
    changes = axis.paths if axis.choices is None else axis.choices[value]
    assert not isinstance(changes, Grid)
    return changes


def _apart(paths: Mapping[str, Iterable[str]], base: Scenario, place: _Place) -> None:
    """Raises where two of those that change paths set one key: a value of one of them would be lost."""
    said: dict[str, str] = {}
    for who, changed in paths.items():
        for key in map(base.target, changed):
            if (other := said.setdefault(key, who)) != who:
                raise place.error(f"{other} and {who} both set {key}; leave it out of one of them")


def row_of(columns: Mapping[str, Any]) -> str:
    """A point in words: its columns and their values."""
    return ", ".join(f"{n} = {v!r}" for n, v in columns.items() if v is not None)


def _metrics(given: Any, place: _Place) -> tuple[str, ...]:
    """The metrics that names and patterns stand for."""
    if not isinstance(given, list) or not given or not all(isinstance(m, str) for m in given):
        raise place.error(f"must be a list of at least one metric, not {given!r}")
    return tuple(dict.fromkeys(m for name in given for m in _matching(name, place)))


def _matching(name: str, place: _Place) -> list[str]:
    try:
        return matching(name)
    except HostnetError as e:
        raise place.error(str(e)) from None


def _plot(
    entry: Mapping[str, Any], grid: Grid, further: Sequence[str], metrics: tuple[str, ...], place: _Place
) -> Plot:
    given = place.table(entry, "plot") if isinstance(entry["plot"], dict) else {}
    if not given:
        raise place.error(f"must be a table with x, y and lines, not {entry['plot']!r}")
    place.known(given, _PLOT_KEYS)
    swept = [*(axis.column for axis in grid.axes), *further]

    def column(name: Any, key: str) -> str:
        if name not in swept:
            raise place.key(key).error(f"the study has no axis {name!r}; {nearest(str(name), list(swept))}")
        return str(name)

    if "x" not in given:
        raise place.key("x").error(f"is missing; {nearest('', list(swept))}")
    x = column(given["x"], "x")
    wanted = given.get("y", list(metrics[:3]))
    y = _metrics([wanted] if isinstance(wanted, str) else wanted, place.key("y"))
    lines = given.get("lines", [n for n in swept if n != x and n != "share"])
    lines = [lines] if isinstance(lines, str) else lines
    if not isinstance(lines, list):
        raise place.key("lines").error(f"must be a list of axes, not {lines!r}")
    plot = Plot(x, y, tuple(column(n, "lines") for n in lines))
    missing = _untold((x, *plot.lines), grid, further)
    if missing:
        raise place.key("lines").error(f"a line would have several points at the same {x}; add {missing!r}")
    return plot


def _untold(told: Sequence[str], grid: Grid, further: Sequence[str]) -> str | None:
    """An axis that a plot of these columns would have to tell apart; ``further`` are the columns of a second phase."""
    points = [p.columns for p in grid.points(False)]
    if len({tuple(p.get(n) for n in told) for p in points}) < len(points):
        others = [a.column for a in grid.axes if a.column not in told]
        return next(n for n in others if len({p.get(n) for p in points}) > 1)
    return None if not further or set(told) & set(further) else further[0]


# --- A second phase -------------------------------------------------------------------------------------------------


def _then(
    given: Mapping[str, Any], grid: Grid, quick: Changes, axes: Mapping[str, Axis], base: Scenario, place: _Place
) -> tuple[Any, tuple[Axis, ...]]:
    """Each point again at shares of what it has reached, or of what its baseline has; and the axis of the shares."""
    place.known(given, _THEN_KEYS)
    for key in ("axis", "of", "shares"):
        if key not in given:
            raise place.key(key).error("is missing")
    name = place.text(given, "axis")
    if name not in axes:
        raise place.key("axis").error(f"there is no axis {name!r}; {nearest(name, list(axes))}")
    axis, (of, *others) = axes[name], _matching(place.text(given, "of"), place.key("of"))
    if others or set("*?[") & set(of):
        raise place.key("of").error(f"{given['of']!r} stands for several metrics; name one, such as {of!r}")
    if axis.choices is not None:
        raise place.key("axis").error(f"the values of axis {name} are names; choose one that has numbers")
    if axis.unit != unit(of):
        raise place.key("of").error(
            f"{of} is in {unit(of)!r}, and axis {name} in {axis.unit!r}; declare the axis in {unit(of)!r}"
        )
    shares = _values(given["shares"], place.key("shares"))
    if any(_sort(s) != "number" or s <= 0 for s in shares):
        raise place.key("shares").error(f"must be numbers above 0, not {given['shares']!r}")
    baseline = place.table(given, "baseline")
    compared = _compared(grid, baseline, axes, place.key("baseline"))
    share = Axis("share", f"{name} over {of} of {'the baseline' if baseline else 'the same point'}")
    beside = _changes(given.get("changes", {}), place.key("changes"))
    for paths in _combinations(grid):
        paths[f"axis {name}"] = axis.paths
        _apart(paths, base, place.key("axis"))
        _apart({"changes": beside, **paths}, base, place.key("changes"))
        _apart({"quick": quick, **paths}, base, place.key("axis"))
    changes = also(beside)

    def points(rows: Rows, _quick: bool) -> Grid:
        out = []
        for cell, reference in zip(grid.cells, compared, strict=True):
            peak = rows[reference].get(of)
            if peak is None:
                columns = {a.column: rows[reference].get(a.column) for a in grid.axes}
                raise place.key("of").error(f"{of} has no value at {row_of(columns)}")
            out += [
                Grid([cell]) * share(s) * axis(float(f"{s * peak:.6g}")) * changes * when_quick(quick) for s in shares
            ]
        return sum_of(out)

    return points, (share,)


def _compared(grid: Grid, baseline: Mapping[str, Any], axes: Mapping[str, Axis], place: _Place) -> list[int]:
    """For each point the one that its rates are shares of: itself, or the point of the baseline that agrees with it in every
    other column that this one has."""
    for column, value in baseline.items():
        _chosen(column, value, axes, place)
    points = [{n: v for n, v in p.columns.items() if v is not None} for p in grid.points(False)]
    if not baseline:
        return list(range(len(points)))
    # Points of the baseline by the names of their other columns, and by the values of these.
    known: dict[tuple[str, ...], dict[tuple[Any, ...], int]] = {}
    for i, p in enumerate(points):
        if all(p.get(n) == v for n, v in baseline.items()):
            names = tuple(n for n in p if n not in baseline)
            known.setdefault(names, {})[tuple(p[n] for n in names)] = i
    found = []
    for p in points:
        places = (known[names].get(tuple(p.get(n) for n in names)) for names in sorted(known, key=len, reverse=True))
        at = next((i for i in places if i is not None), None)
        if at is None:
            raise place.error(f"the grid has no point with {row_of(baseline)} that belongs to {row_of(p)}")
        found.append(at)
    return found


def explained(study: Study, columns: Mapping[str, Any], error: SpecError) -> SpecError:
    """The error of one point, with the file and the point that caused it."""
    return SpecError(f"{study.file}: study {study.figure}: {row_of(columns)}: {error}")
