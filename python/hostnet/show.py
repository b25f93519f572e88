"""Output of commands on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from . import capture, drops, headlines, intervals, reference, replicate, search, tenants
from .declared import info as declared
from .declared import metric_info
from .results import Result
from .tables import Column, console, show

if TYPE_CHECKING:
    import polars as pl

    from .declared import MetricInfo
    from .results import Table
    from .studies import Study


def number(value: Any) -> str:
    """A value to about four significant digits; empty for None."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 9999.5 else f"{value + 0.0:.4g}"
    return str(value)


def column(name: str, unit: str = "", **how: Any) -> Column:
    """The column of a metric, of a tenant's number, or of a swept value with its unit."""
    info = declared(name)
    return Column(name, info["unit"] if info else unit, **how)


#: Columns of a table of one result's metrics; "±" is the distance of the ends of the 95 % interval.
_METRIC_COLUMNS = [
    Column("metric", key=True, text=True),
    Column("value"),
    Column("95 %", text=True),
    Column("unit", text=True),
    Column("meaning", text=True),
]


def _line(label: str, value: float | None, interval: intervals.Interval | None, about: Mapping[str, Any]) -> list[str]:
    sure = "" if value is None else intervals.text(value, interval)
    return [label, number(value), sure, about["unit"], about["description"]]


def metrics(result: Result, every: bool = False) -> None:
    """Leading metrics of a scenario by group, then the constants in a line; with ``every``, all metrics that have a
    value."""
    values = result.metrics
    groups = headlines.every(values) if every else headlines.leading(values)
    info, out = metric_info(), console()
    out.print(Text(str(result.spec.get("name", "")), style="bold"))
    known = intervals.of(result.data)
    rows = []
    for group, names in groups.items():
        rows += [[f"{group}:", "", "", "", ""]]
        rows += [_line(f"  {m}", values[m], known.get(m), info[m]) for m in names]
    show(_METRIC_COLUMNS, rows, to=out)
    if found := tenants.several(result.data):
        tenant_table(found, every, out)
    captures([result.data], out)
    for loss in drops.losses(result.data):
        out.print(str(loss), highlight=False, markup=False)
    if said := replicate.of_first(result.data):
        out.print(f"note: {said}", highlight=False, markup=False)
    if failed := search.nothing_passed(result.data):
        out.print(failed, highlight=False, markup=False)
    warnings([result], out)
    if every:
        return
    shown = {m for names in groups.values() for m in names}
    constants = [m for m in info if values.get(m) and headlines.group_of(m) == headlines.CONSTANTS and m not in shown]
    if constants:
        out.print(
            "constants: " + ", ".join(f"{m} {number(values[m])}" for m in constants),
            highlight=False,
            markup=False,
            style="dim",
        )
    left = sum(v is not None for v in values.values()) - len(shown) - len(constants)
    if left > 0:
        out.print(f"{left} more metrics: --all", highlight=False, markup=False, style="dim")


def tenant_table(table: Table, every: bool = False, to: Console | None = None) -> None:
    """One line per tenant: the leading columns that have a value; with ``every``, all columns with a value."""
    names = [c["name"] for c in table["columns"]]
    shown = names if every else headlines.of_tenants()
    used = [i for i, name in enumerate(names) if name in shown and any(row[i] is not None for row in table["rows"])]
    columns = [
        Column(names[i], table["columns"][i]["unit"], text=not table["columns"][i]["unit"], key=names[i] == "tenant")
        for i in used
    ]
    show(columns, [[number(row[i]) for i in used] for row in table["rows"]], "tenants", to)


def chosen(result: Result, wanted: Sequence[str]) -> None:
    """The requested metrics that have a value, with unit and meaning."""
    own = tenants.columns(result.data)
    info = {**metric_info(), **{name: about for name, (about, _) in own.items()}}
    values = {**result.metrics, **{name: value for name, (_, value) in own.items()}}
    known = intervals.of(result.data)
    rows = [
        _line(m, values[m], known.get(m), info[m]) for m in tenants.matching(wanted, own) if values.get(m) is not None
    ]
    show(_METRIC_COLUMNS, rows)
    warnings([result])


def warnings(results: Sequence[Result], to: Console | None = None) -> None:
    """Warnings of a result about its window and its values; of several results, their number and the warnings of the first one."""
    found = [r.warnings for r in results if r.warnings]
    if not found:
        return
    several = len(results) > 1
    for i, said in enumerate(found[0]):
        of = f"{len(found)} of {len(results)} points have warnings; the first: " if i == 0 else "the first as well: "
        (to or console()).print(f"warning: {of if several else ''}{said}", highlight=False, markup=False)


def captures(results: Iterable[Mapping[str, Any]], to: Console | None = None) -> None:
    """A line about each replayed capture."""
    for held in capture.distinct(results):
        (to or console()).print(str(held), highlight=False, markup=False)


def rows(
    frame: pl.DataFrame,
    swept: Sequence[str],
    wanted: Sequence[str],
    title: str | None = None,
    units: Mapping[str, str] | None = None,
    results: Sequence[Result] | None = None,
) -> None:
    """One line per point: swept columns that vary, then the wanted metrics that have values. ``units`` are those of columns that
    are no metrics. With the ``results`` of the rows, each metric has its 95 % interval beside it."""
    import polars as pl

    swept = [c for c in swept if c not in wanted]
    varying = [c for c in swept if frame[c].n_unique() > 1] or list(swept[:1])
    shown = [m for m in wanted if m in frame.columns and frame[m].null_count() < frame.height]
    columns = [
        column(c, (units or {}).get(c, ""), key=c in varying, text=frame[c].dtype == pl.String)
        for c in (*varying, *shown)
    ]
    known = [intervals.of(r.data) for r in results] if results is not None else [{}] * frame.height
    chosen = frame.select(*varying, *shown)
    cells = [
        [_cell(v, of.get(name)) for name, v in zip(chosen.columns, row, strict=True)]
        for row, of in zip(chosen.iter_rows(), known, strict=True)
    ]
    show(columns, cells, title)


def _cell(value: Any, interval: intervals.Interval | None) -> str:
    """A value, with its interval where it has one."""
    return f"{number(value)} {intervals.text(value, interval)}" if interval is not None else number(value)


def studies(known: Sequence[Study]) -> None:
    """Every study with its title and number of points."""
    columns = [
        Column("system", key=True, text=True),
        Column("figure", key=True, text=True),
        Column("what it shows", text=True),
        Column("points"),
    ]
    show(columns, [[s.system, s.figure, s.title, str(len(s.points(False))) + ("+" if s.then else "")] for s in known])
    if any(s.then for s in known):
        console().print(
            "+: further points follow from what the first ones give. --quick measures fewer requests of each.",
            style="dim",
            highlight=False,
            markup=False,
        )


def scenario_list(known: Mapping[str, tuple[str, str]]) -> None:
    """The scenarios with their platforms and descriptions."""
    columns = [Column("scenario", key=True, text=True), Column("platform", text=True), Column("what it is", text=True)]
    show(columns, [[name, *about] for name, about in known.items()])


def metric_list(known: Iterable[MetricInfo]) -> None:
    """Metrics with unit, group, dimension and meaning."""
    columns = [
        Column("metric", key=True, text=True),
        Column("unit", text=True),
        Column("group", text=True),
        Column("dimension", text=True),
        Column("meaning", text=True),
    ]
    show(columns, [[m["name"], m["unit"], m["group"], m["dimension"], reference.meaning(m)] for m in known])


def platform_list(known: Mapping[str, str]) -> None:
    """The platforms with their descriptions."""
    show(
        [Column("platform", key=True, text=True), Column("description", text=True)],
        [list(item) for item in known.items()],
    )


def platform(name: str, spec: Mapping[str, Any]) -> None:
    """Every value of a platform, including defaults, with its provenance; a source that comes from a base names the platform
    that gives it."""
    from .api import inherited, leaves, of_standard
    from .fit import misfits

    theirs, standard = inherited(name), of_standard(spec["memory"])
    columns = [Column("key", key=True, text=True), Column("value", text=True), Column("provenance", text=True)]
    values = [
        [
            path,
            "none" if (shown := standard.get(path, value)) is None else str(shown),
            spec["provenance"][path] + (f" (of {theirs[path]})" if path in theirs else ""),
        ]
        for path, value in leaves(spec)
    ]
    show(columns, values, f"{name}: {spec.get('description', '')}")
    for said in misfits(spec):
        print(f"note: {said}")


def keys(path: str) -> None:
    """The keys of a table of a scenario, or the choices of one key; for ``quirks`` the keys of every table of quirks."""
    from .keys import QUIRKS, distinct, is_quirk, rows

    columns = [
        Column("key", key=True, text=True),
        Column("takes", text=True),
        Column("default", text=True),
        Column("meaning", text=True),
    ]
    found = (
        [(path, rows(path))] if path != QUIRKS else [(p, c) for p, c, first in distinct() if is_quirk(p) and first == p]
    )
    for table, cells in found:
        used = [i for i in range(len(columns)) if i == 0 or any(row[i] for row in cells)]
        show([columns[i] for i in used], [[row[i] for i in used] for row in cells], table)
