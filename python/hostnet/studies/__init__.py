"""Studies as data: a base scenario, a grid of points over axes, metrics and a plot.

A point is a set of swept columns (what the row says it is) and the changes that make it so. Points with equal resolved specs
are one simulation, so figures share work. ``own`` reads studies from a file of the user's.
"""

from __future__ import annotations

import json
import platform as host
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import _core, intervals, tenants
from ..cache import Cache, contents
from ..declared import PREFIX, metric_info
from ..declared import matching as names_of
from ..errors import HostnetError, NotBuiltYet, SpecError
from ..output import directory, write_frame
from ..parquet import ColumnInfo
from ..paths import nearest
from ..progress import Progress
from ..results import Result, column_info, tidy, tidy_table
from ..runner import Jobs, run_many
from ..specs import Scenario
from .axes import AXES, QUICK
from .grid import Axis, Grid, Points
from .grid import Point as Point

if TYPE_CHECKING:
    import polars as pl

    from ..notebook import Picture

# Description of a column that comes from neither the points nor the engine.
_DERIVED = "made of the row's other columns: docs/boards/study-tables.md"

# Group of the metrics that count what a run took.
_OF_THE_RUN = "the simulation"
# Classes of DRAM accesses, and their sum.
_CLASSES, _SUM = "acc_", "acc_total"

#: Half-width of the 95 % intervals, relative to the values, at which the measurement of a point ends.
PRECISION = 0.02

SYSTEMS = ("sweeper", "hostnetwork", "idio", "gem5net", "ccnic", "real")

# Modules of a system's studies, where the module with the system's name does not hold all of them.
_MODULES = {
    "sweeper": ("sweeper", "sweeper_artifact"),
    "hostnetwork": ("hostnetwork", "hostnetwork_apps", "hostnetwork_net", "hostnetwork_future"),
    "idio": ("idio", "idio_policies"),
    "gem5net": ("gem5net", "gem5net_sweeps", "gem5net_knees"),
    "real": ("real", "real_library", "real_programs", "real_memory", "real_pcie", "real_here"),
    "ccnic": ("ccnic", "ccnic_links", "ccnic_pcie", "ccnic_kv", "ccnic_tcp"),
}


Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Plot:
    """Lines of each metric of ``y`` over the column ``x``, one for each value (or combination of values) of ``lines``."""

    x: str
    y: tuple[str, ...]
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Study:
    """A figure: ``grid`` has its points, which change ``base`` where they name no scenario themselves.

    A grid that does not follow from axes alone is a function of ``quick``. ``then(rows, quick)`` gives more points once those
    of the grid have been measured.
    """

    system: str
    figure: str
    title: str
    grid: Points
    metrics: tuple[str, ...]
    base: str = ""
    then: Callable[[Rows, bool], Grid | list[Point]] | None = None
    side_tables: tuple[str, ...] = ()
    derived: Mapping[str, Callable[[Mapping[str, Any]], float | None]] = field(default_factory=dict)
    # Every column of `derived` and `across` with its unit; those of swept columns are their axes'.
    derived_units: Mapping[str, str] = field(default_factory=dict)
    # Columns that compare rows, such as a ratio to the isolated run: one mapping per row, from all rows.
    across: Callable[[Rows], Sequence[Mapping[str, float | str | None]]] | None = None
    # Figures of one case study also have a name ``group-figure``, such as ``rdma-fig18``.
    group: str = ""
    # Number of runs of each point, of which the shortest gives the wall time. A study of wall times needs several.
    wall_runs: int = 1
    # The platform to which ``on`` has moved the study; empty for the platform that the points name.
    platform: str = ""
    # The axes that its points may have beside those of the grid, in the order of the table's columns.
    axes: tuple[Axis, ...] = AXES
    # The user's file that it is from; and whether a quick run of it differs.
    file: str = ""
    shortened: bool = True
    # Half-width of the 95 % intervals at which a point's measurement ends (`run.precision`); 0 for all requests of a point.
    precision: float = PRECISION
    # Metrics of which derived columns are made, and which therefore decide with those that the study shows.
    made_of: tuple[str, ...] = ()
    # Makes the study of a platform file of the user's and, where there are any, a file of measurements. Without that file
    # such a study has no points, and only its own name calls it.
    of_file: Callable[[Path, Path | None], Study] | None = None
    # Sentences about all rows, below the table; and texts of further files of the study's directory by name.
    sentences: Callable[[Rows], Iterable[str]] | None = None
    files: Callable[[], Mapping[str, str]] | None = None
    # The plot; a figure of a paper has a drawing of its own in ``plots``, and any other study bars of its metrics.
    plot: Plot | None = None

    @property
    def drawn(self) -> dict[str, Any]:
        """The title, the meaning of each swept column and the plot, which a figure needs beside the tables."""
        return {
            "title": self.title,
            "swept": {name: axis.title for name, axis in self._declared.items()},
            "plot": None if self.plot is None else asdict(self.plot),
        }

    def points(self, quick: bool) -> list[Point]:
        """The points that are simulated first, in a quick study or in a whole one."""
        return self._expanded(self.grid if isinstance(self.grid, Grid) else self.grid(quick), quick)

    def further(self, rows: Rows, quick: bool) -> list[Point]:
        """The points that follow from the measured ``rows`` of the first ones."""
        return [] if self.then is None else self._expanded(self.then(rows, quick), quick)

    def _expanded(self, points: Grid | list[Point], quick: bool) -> list[Point]:
        points = points.points(quick, self.base) if isinstance(points, Grid) else points
        for name in dict.fromkeys(name for p in points for name in p.columns):
            self.axis(name)
        return points

    @cached_property
    def _declared(self) -> dict[str, Axis]:
        own = self.grid.axes if isinstance(self.grid, Grid) else ()
        return {axis.column: axis for axis in (*self.axes, *own)}

    def axis(self, column: str) -> Axis:
        """The axis of a swept column. Raises HostnetError for a column that no axis declares."""
        if column == QUICK.column:
            return QUICK
        if column not in self._declared:
            raise HostnetError(
                f"{self.system} {self.figure}: no axis declares the column {column!r}; "
                f"{nearest(column, list(self._declared))}"
            )
        return self._declared[column]

    def ordered(self, columns: Iterable[str]) -> list[str]:
        """Swept columns in the order that tables have. Raises HostnetError for one that no axis declares."""
        used = {self.axis(name).column for name in columns}
        return [name for name in (*self._declared, QUICK.column) if name in used]

    @property
    def columns(self) -> set[str]:
        """Columns that the study's table may have, without those of tenants."""
        made = (*self.derived, *self.derived_units)
        return {*self._declared, QUICK.column, "not_built", *made, *column_info()}

    @property
    def names(self) -> tuple[str, ...]:
        """Names by which the study may be called within its system."""
        return (self.figure, f"{self.group}-{self.figure}") if self.group else (self.figure,)

    @property
    def command(self) -> str:
        """The command that runs it, after `hostnet`."""
        return f"study {self.file or self.system} {self.figure}" + (
            f" --platform {self.platform}" if self.platform else ""
        )

    @property
    def table(self) -> str:
        """The name of the study's table in files and in SQL, such as ``sweeper_fig5``."""
        return f"{self.system}_{self.figure.replace('-', '_')}"


@dataclass
class StudyRun:
    """A study's rows and their results, in the study's order whatever the number of workers; then the rows that need a
    model which is not built yet."""

    study: Study
    points: list[Point]
    results: list[Result]
    quick: bool
    missing: list[Point] = field(default_factory=list)

    @cached_property
    def columns(self) -> list[dict[str, Any]]:
        names = self._swept()
        rows = [{n: (self.quick if n == "quick" else p.columns.get(n)) for n in names} for p in self.points]
        if self.study.derived or self.study.across is not None:
            self._derive(rows)
        for name in sorted(rows[0].keys() - set(names) - self.study.derived_units.keys() - metric_info().keys()):
            raise HostnetError(
                f"{self.study.system} {self.study.figure}: nothing declares the column {name!r}; give its unit in `derived_units`."
            )
        return rows

    def _derive(self, rows: list[dict[str, Any]]) -> None:
        """Adds the columns that the study makes of the others."""
        measured = [_measured(result) for result in self.results]
        for row, result, values in zip(rows, self.results, measured, strict=True):
            fixed = {**values, "wall_s": result.wall_s}
            known = {**row, **fixed}
            for name, formula in self.study.derived.items():
                row[name] = formula(known)
                known[name] = fixed.get(name, row[name])
        if self.study.across is not None:
            whole = [{**values, **row} for row, values in zip(rows, measured, strict=True)]
            for row, more in zip(rows, self.study.across(whole), strict=True):
                row.update(more)

    def _swept(self) -> list[str]:
        return self.study.ordered(["quick", *(name for p in (*self.points, *self.missing) for name in p.columns)])

    @cached_property
    def frame(self) -> pl.DataFrame:
        """The tidy table: swept columns, every metric, provenance and tenants' columns; and for a row without a model, the
        missing model."""
        import polars as pl

        frame = tenants.beside(tidy(self.results, self.columns), self.results, self.study.metrics)
        if not self.missing:
            return frame
        known = set(self._swept())
        rows = [
            {**{n: p.columns.get(n) for n in known}, "quick": self.quick, "not_built": p.needs} for p in self.missing
        ]
        return pl.concat([frame, pl.DataFrame(rows, infer_schema_length=None)], how="diagonal_relaxed")

    def _with_ends(self) -> pl.DataFrame:
        """The tidy table, with the ends of the intervals of the metrics that are plotted."""
        plot = self.shown.plot
        if plot is None or self.missing:
            return self.frame
        return self.frame.hstack([end for name in plot.y for end in intervals.ends(name, self.results)])

    @cached_property
    def shown(self) -> Study:
        """The study, with the tenants' columns that its patterns stand for."""
        there = self.frame.columns
        plot = self.study.plot
        return replace(
            self.study,
            metrics=tuple(tenants.matching(self.study.metrics, there)),
            plot=plot and replace(plot, y=tuple(tenants.matching(plot.y, there))),
        )

    def side_frames(self) -> dict[str, pl.DataFrame]:
        """The study's further tables (such as latency CDFs) by name, with the swept columns in front."""
        return {f"{self.study.table}_{t}": tidy_table(t, self.results, self.columns) for t in self.study.side_tables}

    def intervals(self) -> pl.DataFrame:
        """The 95 % intervals of every metric at every point (`hostnet.intervals.frame`)."""
        return intervals.frame(self.results, self.columns)

    def sentences(self) -> list[str]:
        """Sentences about all rows, for the end of the table."""
        return [] if self.study.sentences is None else list(self.study.sentences(self.columns))

    def tables(self) -> dict[str, pl.DataFrame]:
        """Every table of the study by its SQL name."""
        return {self.study.table: self.frame, **self.side_frames()}

    def narrow_tables(self, wanted: Mapping[str, Collection[str] | None]) -> dict[str, pl.DataFrame]:
        """Of the study's tables, those that are wanted, by SQL name. The first one may lack columns that are not wanted:
        ``wanted`` has their names in small letters, or None for all."""
        found = {}
        for name in (self.study.table, *(f"{self.study.table}_{t}" for t in self.study.side_tables)):
            if name not in wanted:
                continue
            columns = wanted[name]
            if name != self.study.table:
                found[name] = tidy_table(name.removeprefix(f"{self.study.table}_"), self.results, self.columns)
            elif columns is None or self.missing or any(c.startswith(PREFIX) for c in columns):
                found[name] = self.frame
            else:
                # A column of every row, so that the rows can be counted.
                found[name] = tidy(self.results, self.columns, only={QUICK.column, *columns})
        return found

    def plot(self) -> Picture:
        """Draw the study's figure."""
        from ..notebook import Picture
        from ..plots import figure_of

        study = self.shown
        return Picture(figure_of(study.table, self.frame, self.side_frames(), study.metrics, study.drawn), study.title)

    def save(self, out: Path, *, plot: bool = True) -> list[str]:
        """Make ``out`` the study's directory, with tables, resolved specs and the plot; returns the names of the files."""
        with directory(out, self.study.command) as tmp:
            return self.write(tmp, plot=plot)

    def write(self, folder: Path, *, plot: bool = True) -> list[str]:
        """Write tables, resolved specs and the plot into an existing directory; returns the names of the files."""
        for name, frame in self.tables().items():
            write_frame(frame, folder / name, self.column_info(name))
        for name, text in (self.study.files() if self.study.files is not None else {}).items():
            (folder / name).write_text(text, encoding="utf-8")
        about = self.column_info(self.study.table) | intervals.COLUMNS
        write_frame(self.intervals(), folder / f"{self.study.table}-intervals", about)
        with (folder / "specs.json").open("w", encoding="utf-8") as f:
            for row, r in zip(self.columns, self.results, strict=True):
                f.write(json.dumps({"key": r.key, "point": row, "spec": r.spec}) + "\n")
        (folder / "study.json").write_text(json.dumps(self.about(), indent=1) + "\n", encoding="utf-8")
        if plot:
            from ..plots import plot_study

            plot_study(self.shown, self._with_ends(), folder, self.side_frames())
        return sorted(f.name for f in folder.iterdir())

    def column_info(self, table: str) -> dict[str, ColumnInfo]:
        """Unit and meaning of each column of one of the study's tables."""
        meanings = {n: self.study.axis(n).meaning for n in self._swept()}
        found = {n: ColumnInfo(unit=u, description=meanings.get(n, _DERIVED)) for n, u in self._units().items()}
        found |= column_info() | tenants.described(self.results)
        if self.missing:
            found["not_built"] = {"unit": "", "description": "model that the point needs and that is not built yet"}
        side = table.removeprefix(f"{self.study.table}_")
        for result in self.results if side in self.study.side_tables else ():
            if side in result.tables:
                found |= {
                    n: ColumnInfo(unit=u, description=f"column of the table {side}")
                    for n, u in result.units(side).items()
                }
        return found

    def headings(self) -> dict[str, str]:
        """Units in the headings of a printed table: not those that a column's meaning names."""
        return {n: self.study.axis(n).shown_unit for n in self._swept()} | dict(self.study.derived_units)

    def _units(self) -> dict[str, str]:
        """Units of the columns that this study adds to metrics."""
        swept = {n: self.study.axis(n).unit for n in self._swept()}
        return {n: swept.get(n, self.study.derived_units.get(n, "")) for n in self.columns[0]}

    def about(self) -> dict[str, Any]:
        """Facts about a study that its tables do not contain: units, title, where and how long it ran."""
        return {
            "system": self.study.system,
            "figure": self.study.figure,
            "title": self.study.title,
            "table": self.study.table,
            "quick": self.quick,
            "metrics": list(self.shown.metrics),
            "drawn": {**self.shown.drawn, "swept": {n: self.study.axis(n).title for n in self._swept()}},
            "units": {
                **self._units(),
                **{n: m["unit"] for n, m in metric_info().items()},
                **{n: m["unit"] for n, m in tenants.described(self.results).items()},
            },
            "points": len(self.points),
            "cached": sum(r.cached for r in self.results),
            "wall_s": round(sum({r.key: r.wall_s for r in self.results}.values()), 3),
            "engine": self.results[0].version,
            "host": f"{host.machine()} {host.system()}",
            "written": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        }


def _measured(result: Result) -> dict[str, Any]:
    """Every value of a result by name: metrics, the numbers of each tenant, and the length of the window."""
    return {**result.metrics, **tenants.values(result.data), "measure_us": result.measure_us}


def all_studies() -> list[Study]:
    """Every study of every system built so far."""
    modules = (m for system in SYSTEMS for m in _MODULES.get(system, (system,)))
    return [s for m in modules for s in import_module(f".{m}", __name__).STUDIES]


def not_built(system: str) -> Mapping[str, str]:
    """Figures of a built system that lack a model, and which."""
    return getattr(import_module(f".{system}", __name__), "NOT_BUILT", {})


def names() -> list[tuple[str, str]]:
    """(system, figure) of every study."""
    return [(s.system, s.figure) for s in all_studies()]


def of(system: str) -> list[Study]:
    """The studies of a system, or those of a user's file (``mine.toml``). Raises HostnetError where there is neither."""
    if isinstance(system, str) and system.endswith(".toml"):
        from .own import load

        return load(system)
    if system not in SYSTEMS:
        raise HostnetError(f"there is no system {system!r}; {nearest(system, list(SYSTEMS))}")
    return [s for s in all_studies() if s.system == system]


def get(system: str, figure: str) -> Study:
    """One study, of a system or of a user's file. Raises NotBuiltYet for a figure that lacks a model, HostnetError for an
    unknown name."""
    figures = {name: s for s in of(system) for name in s.names}
    if not system.endswith(".toml") and figure in (missing := not_built(system)):
        raise NotBuiltYet(f"{system} {figure} is not built yet: it needs {missing[figure]}.")
    if figure not in figures:
        raise HostnetError(
            f"{system} has no study {figure!r}; {nearest(figure, list(dict.fromkeys(s.figure for s in figures.values())))}"
        )
    return figures[figure]


def matching(system: str, pattern: str) -> list[Study]:
    """The studies of
    ``system`` with a name like ``pattern`` (``rdma-*``), or all of them (``all``), in their order. Raises as ``get``
    does when there is no such study."""
    pattern = "*" if pattern == "all" else pattern
    found = [s for s in of(system) if s.of_file is None and any(fnmatchcase(n, pattern) for n in s.names)]
    return found or [get(system, pattern)]


def on(study: Study, name: str | None, measured: Path | None = None) -> Study:
    """``study`` on another platform, with what its figures change there, or on its own where there is no ``name``; beside
    measurements from a file where it takes some. Raises HostnetError where its system has no such."""
    if measured is not None and (study.of_file is None or name is None):
        raise HostnetError(
            f"--measured {measured}: goes with `hostnet study real here --platform here.toml` alone, which compares with it."
        )
    if name is None:
        return study
    if study.of_file is not None:
        return study.of_file(Path(name), measured)
    if study.file:
        raise HostnetError(f"--platform {name}: {study.file} says itself where its studies run; set `platform` there.")
    places = getattr(import_module(f".{study.system}", __name__), "PLATFORMS", {})
    if name not in places:
        known = f"; {nearest(name, list(places))}" if places else ", nor on any but their own"
        raise HostnetError(f"--platform {name}: studies of {study.system} do not run there{known}")
    move = places[name]
    return replace(
        study,
        platform=name,
        grid=lambda quick: [move(p) for p in study.points(quick)],
        then=None if study.then is None else lambda rows, quick: [move(p) for p in study.further(rows, quick)],
        axes=tuple(study._declared.values()),
    )


def run(
    study: Study,
    *,
    quick: bool = False,
    jobs: Jobs = None,
    cache: Cache | None = None,
    progress: Progress | None = None,
    out: Path | None = None,
    plot: bool = True,
    replace: bool = False,
    precision: float | None = None,
) -> StudyRun:
    """Run a study, and make ``out`` its directory when given (which is checked before any point runs). Other points that are
    there, and those of a full study when this one is quick, are refused unless ``replace`` is set.

    The measurement of a point ends when the 95 % intervals of its leading metrics are as narrow as ``precision``, such as
    0.02 (the study's own by default, 2 %), and at the latest after the study's number of requests; at 0 it has them all."""
    study = _with_precision(study, precision)
    _check(study, quick)
    points, missing = _built(study.points(quick))
    if not points and study.of_file is not None:
        raise HostnetError(
            f"{study.system} {study.figure}: needs a platform of the machine; `hostnet calibrate -o here.toml` writes one, and "
            "--platform here.toml names it."
        )
    if not points:
        raise NotBuiltYet(f"{study.system} {study.figure} is not built yet: it needs {missing[0].needs}.")
    if _of_tenants(study):
        _check_tenants(study, _specs(points, study))
    owned: AbstractContextManager[Path | None] = nullcontext()
    if out is not None:
        found = contents(
            _specs(points, study), [p.columns for p in points], f"{study.system} {study.figure}", quick=quick
        )
        owned = directory(out, study.command, found, replace=replace)
    with owned as folder:
        results = _run_points(points, study, jobs, cache, progress)
        if study.then is not None:
            rows = [{**p.columns, **_measured(r)} for p, r in zip(points, results, strict=True)]
            more, lacking = _built(study.further(rows, quick))
            results += _run_points(more, study, jobs, cache, progress)
            points, missing = points + more, missing + lacking
        results = _least_wall(points, results, study, jobs, cache, progress)
        done = StudyRun(study, points, results, quick, missing)
        if folder is not None:
            done.write(folder, plot=plot)
    return done


def run_first_points(
    chosen: Iterable[Study],
    *,
    quick: bool,
    jobs: Jobs = None,
    cache: Cache | None = None,
    progress: Progress | None = None,
    precision: float | None = None,
) -> None:
    """Run the first points of several studies at once, longest first, so that ``run`` finds their results in the cache.

    Points that studies share are one simulation, though other metrics decide in each. A study that cannot run is left out, and
    a point that fails ends the others; ``run`` of the study then says why."""
    specs: list[str] = []
    for study in chosen:
        with suppress(Exception):  # whatever it is, `run` meets it again
            _check(study, quick)
            specs += _specs(_built(study.points(quick))[0], _with_precision(study, precision))
    with suppress(HostnetError):
        run_many(specs, jobs=jobs, cache=cache, progress=progress, label="studies")


def _with_precision(study: Study, precision: float | None) -> Study:
    """The study with another precision, or with its own for None."""
    return study if precision is None else replace(study, precision=precision)


def _least_wall(
    points: Sequence[Point],
    results: list[Result],
    study: Study,
    jobs: Jobs,
    cache: Cache | None,
    progress: Progress | None,
) -> list[Result]:
    """The results, each with the smallest wall time of ``study.wall_runs`` runs. Further runs have different names, by
    which the cache distinguishes them."""
    for i in range(2, study.wall_runs + 1):
        renamed = [replace(p, changes={**p.changes, "name": f"{p.base}, run {i}"}) for p in points]
        again = _run_points(renamed, study, jobs, cache, progress)
        results = [
            Result({**r.data, "wall_s": min(r.wall_s, a.wall_s)}, key=r.key, cached=r.cached)
            for r, a in zip(results, again, strict=True)
        ]
    return results


def _built(points: Iterable[Point]) -> tuple[list[Point], list[Point]]:
    """The points that can run, and the points that need a model which is not built yet."""
    points = list(points)
    return [p for p in points if not p.needs], [p for p in points if p.needs]


def _run_points(
    points: Iterable[Point], study: Study, jobs: Jobs, cache: Cache | None, progress: Progress | None
) -> list[Result]:
    return run_many(_specs(points, study), jobs=jobs, cache=cache, progress=progress, label=study.table)


def check(chosen: Iterable[Study], *, quick: bool) -> None:
    """Raises HostnetError where a first point of these studies cannot be run, so that none runs before."""
    for study in chosen:
        _check(study, quick)
        _check_tenants(study, _specs(_built(study.points(quick))[0], study))


def tenants_columns(study: Study, *, quick: bool) -> list[str] | None:
    """The tenants' columns that the study's table has; None where points follow from what others have measured."""
    points = _built(study.points(quick))[0]
    return None if study.then or not points else tenants.expected(_specs(points, study), study.metrics)


def _check(study: Study, quick: bool) -> None:
    if quick and not study.shortened:
        raise HostnetError(
            f"{study.file}: study {study.figure}: key `quick`: is missing, so --quick would change nothing; "
            "say what a quick run changes, or leave out --quick."
        )
    for name in study.metrics:
        if name not in metric_info() and name not in study.derived_units:
            try:
                found = names_of(name)
            except HostnetError as e:
                raise HostnetError(f"{study.system} {study.figure}: {e}") from None
            if found != [name]:
                raise HostnetError(f"{study.system} {study.figure}: {_core.unknown_metric(name, found)}.")


def _of_tenants(study: Study) -> list[str]:
    """The tenants' columns, and patterns of them, that the study shows."""
    drawn = study.plot.y if study.plot is not None else ()
    return [name for name in (*study.metrics, *drawn) if name.startswith(PREFIX)]


def _check_tenants(study: Study, specs: Iterable[str]) -> None:
    """Raises HostnetError for a tenant whose columns the study shows and that none of these resolved specs has."""
    try:
        tenants.check(_of_tenants(study), specs)
    except HostnetError as e:
        raise HostnetError(f"{study.file or study.system}: study {study.figure}: {e}") from None


def _precisely(scenario: Scenario, study: Study) -> Scenario:
    """The scenario itself, changed to be measured until the means that the study shows are known to its precision; of the classes of DRAM accesses
    their sum, if it is shown, because some are rare. A window that is looked at as a whole stays whole: its course over time,
    counts of it, and bursts."""
    resolved = scenario.to_dict()
    run, traffic = (table if isinstance(table := resolved.get(name), dict) else {} for name in ("run", "traffic"))
    info = metric_info()
    course = any(run.get(key) is not None for key in ("timeline", "trace"))
    bursts = traffic.get("arrivals") == "burst"
    counts = any(
        m in info and (info[m]["statistic"] == "total" or info[m]["group"] == _OF_THE_RUN) for m in study.metrics
    )
    if not study.precision or run.get("load") == "none" or course or bursts or counts:
        return scenario
    summed = _SUM in study.metrics
    means = [
        m for m in study.metrics if m in info and info[m]["statistic"] == "mean" and info[m]["group"] != "constants"
    ]
    shown = [m for m in means if m == _SUM or not (summed and m.startswith(_CLASSES))]
    scenario.set("run.precision", study.precision)
    return scenario.set("run.precision_of", [*shown, *study.made_of])


def _specs(points: Iterable[Point], study: Study) -> list[str]:
    """The resolved specs of points. Raises SpecError for one that cannot be run; of a user's study the sentence names the point."""
    bases: dict[str, Scenario] = {}
    specs = []
    for p in points:
        if p.base not in bases:
            bases[p.base] = Scenario.load(p.base)
        try:
            specs.append(_precisely(bases[p.base].with_(p.changes), study).resolve())
        except SpecError as e:
            if not study.file:
                raise
            from .own import explained

            raise explained(study, p.columns, e) from None
    return specs
