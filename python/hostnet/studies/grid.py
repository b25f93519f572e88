"""Points of a study as data: axes, and grids made of them by products and sums.

``WAYS(2, 4) * BUFFERS(512, 1024)`` has four points, of which the last axis varies fastest. ``A + B`` has the points of A, then those
of B. ``also`` adds changes that are no column of the table, and ``on`` names the scenario that the points change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..specs import ENTRY

Row = Mapping[str, Any]
#: Dotted path of a scenario's key to its value; None removes the key. A value may be a function of the point's row.
Changes = Mapping[str, Any]


@dataclass(frozen=True)
class Point:
    """One row: its swept ``columns``, and the ``changes`` (dotted path to value, None removes) to ``base``.

    A point that ``needs`` a model which is not built yet is not run: its row has that reason in the column ``not_built``,
    and no metrics.
    """

    base: str
    columns: Mapping[str, Any]
    changes: Mapping[str, Any]
    needs: str = ""


class _Unset:
    """No value, where None is one."""


UNSET = _Unset()


@dataclass(frozen=True)
class Axis:
    """A swept column: its name, what it means, its unit, and where its values go in a scenario.

    A value is written to each of ``paths`` in the words of ``form``, such as ``"{} KiB"``, or as the function ``form`` makes it.
    The value that is ``usual`` changes nothing, so a point that has it is the same simulation as one without the axis. An axis
    with ``choices`` has named values, and each stands for a set of changes; one with ``values`` has these where none are said.
    """

    column: str
    meaning: str
    unit: str = ""
    paths: tuple[str, ...] = ()
    form: str | Callable[[Any], Any] = ""
    usual: Any = UNSET
    choices: Mapping[Any, Changes | Grid] | None = None
    values: tuple[Any, ...] = ()

    @property
    def shown_unit(self) -> str:
        """The unit, where the meaning does not name it."""
        return "" if re.search(rf"\b{re.escape(self.unit)}\b", self.meaning) else self.unit

    @property
    def title(self) -> str:
        """The meaning, and the unit where the meaning does not name it."""
        return f"{self.meaning} [{self.shown_unit}]" if self.shown_unit else self.meaning

    def at(self, *paths: str, form: str | Callable[[Any], Any] = "", usual: Any = UNSET) -> Axis:
        """The axis with its values at these paths."""
        return replace(self, paths=paths, form=form, usual=usual)

    def label(self) -> Axis:
        """The axis as a column alone, which says what other changes have done."""
        return replace(self, paths=(), choices=None)

    def said(self, meaning: str | None = None, unit: str | None = None) -> Axis:
        """The axis with another meaning or unit, for a study in which the column says something else."""
        return replace(self, meaning=meaning or self.meaning, unit=self.unit if unit is None else unit)

    def among(self, choices: Mapping[Any, Changes | Grid]) -> Axis:
        """The axis with named values, each of which stands for changes."""
        return replace(self, choices=choices)

    def __call__(self, *values: Any) -> Grid:
        """The points of these values, or of all that the axis has.

        A value that is said later for the same column takes the place of an earlier one. A function of a point's row stands for
        the value it gives. It sees the values that were said outright, and those of the
        functions before it.
        """
        values = values or (self.values if self.choices is None else tuple(self.choices))
        if not values:
            raise ValueError(f"the axis {self.column} has no values of its own; say some")
        return Grid([_Cell(values=((self, v),)) * self._written(v) for v in values])

    def __mul__(self, other: Grid | Axis) -> Grid:
        return self() * other

    def __add__(self, other: Grid | Axis) -> Grid:
        return self() + other

    def _written(self, value: Any) -> _Cell:
        """The changes that a value stands for."""
        if self.choices is not None:
            chosen = self.choices[value]
            (cell,) = chosen.cells if isinstance(chosen, Grid) else (_Cell(changes=(chosen,)),)
            return cell
        if not self.paths:
            return _Cell()
        return _Cell(changes=(lambda row: self._changes(row[self.column]),))

    def _changes(self, value: Any) -> Changes:
        if value == self.usual:
            return {}
        if value is not None and self.form:
            value = self.form.format(value) if isinstance(self.form, str) else self.form(value)
        return dict.fromkeys(self.paths, value)


@dataclass(frozen=True)
class _Cell:
    """One point: the scenario, the values of axes and the changes, in the order in which they were said."""

    base: str | Callable[[Row], str] = ""
    values: tuple[tuple[Axis, Any], ...] = ()
    hidden: frozenset[str] = frozenset({"quick"})
    changes: tuple[Changes | Callable[[Row], Changes], ...] = ()

    def __mul__(self, other: _Cell) -> _Cell:
        return _Cell(
            other.base or self.base,
            self.values + other.values,
            self.hidden | other.hidden,
            self.changes + other.changes,
        )

    def point(self, quick: bool, base: str) -> Point:
        """The point in a quick study or in a whole one. Columns come first, so that changes may follow from all of them."""
        row: dict[str, Any] = {"quick": quick, **{axis.column: value for axis, value in self.values}}
        for name, value in row.items():
            if callable(value):
                row[name] = value(row)
        changes: dict[str, Any] = {}
        for part in self.changes:
            for path, value in (part(row) if callable(part) else part).items():
                changes[path] = value(row) if callable(value) else value
        # A table is written before what lies in it, whichever factor comes first.
        changes = dict(sorted(changes.items(), key=lambda change: ENTRY.sub(r".\1", change[0]).count(".")))
        columns = {name: value for name, value in row.items() if name not in self.hidden}
        named = self.base(row) if callable(self.base) else self.base
        return Point(named or base, columns, changes)


class Grid:
    """Points, in their order."""

    def __init__(self, cells: Iterable[_Cell]):
        self.cells = tuple(cells)

    def __mul__(self, other: Grid | Axis) -> Grid:
        """Each point here with each of ``other``, whose changes come later."""
        others = other().cells if isinstance(other, Axis) else other.cells
        return Grid(a * b for a in self.cells for b in others)

    def __add__(self, other: Grid | Axis) -> Grid:
        """The points here, then those of ``other``."""
        return Grid(self.cells + (other().cells if isinstance(other, Axis) else other.cells))

    def __len__(self) -> int:
        return len(self.cells)

    def without_columns(self) -> Grid:
        """The points with their values in rows, from which changes follow, but in no column of the table."""
        return Grid(replace(c, hidden=c.hidden | {axis.column for axis, _ in c.values}) for c in self.cells)

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes whose columns the grid has, each once."""
        shown = (axis for cell in self.cells for axis, _ in cell.values if axis.column not in cell.hidden)
        return tuple({axis.column: axis for axis in shown}.values())

    def points(self, quick: bool, base: str = "") -> list[Point]:
        """The points in a quick study or in a whole one; ``base`` is for those that name no scenario."""
        return [cell.point(quick, base) for cell in self.cells]


#: Points, or a function that gives them to a quick study and to a whole one.
Points = Grid | Callable[[bool], Grid | list[Point]]


def also(changes: Changes | Callable[[Row], Changes]) -> Grid:
    """A factor that makes these changes, or those that follow from a point's row. The row has the columns, and ``quick``."""
    return Grid([_Cell(changes=(changes,))])


def on(base: str | Callable[[Row], str]) -> Grid:
    """A factor that names the scenario which points change; a function chooses it by a point's row."""
    return Grid([_Cell(base=base)])


def when_quick(changes: Changes) -> Grid:
    """A factor that makes these changes in a quick study alone."""
    return also(lambda row: changes if row["quick"] else {})


def sum_of(grids: Iterable[Grid]) -> Grid:
    """The points of all grids, one grid after the other."""
    return Grid(cell for grid in grids for cell in grid.cells)


def by_length(whole: Any, quick: Any) -> Callable[[Row], Any]:
    """A value that is another one in a quick study."""
    return lambda row: quick if row["quick"] else whole
