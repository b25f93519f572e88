"""Tenants of a result: what each of them did in the measurement window, and which share of the host it took."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from .declared import PREFIX, numbers, tenant_info
from .errors import HostnetError
from .paths import nearest

if TYPE_CHECKING:
    import polars as pl

    from .parquet import ColumnInfo
    from .results import Result, Table


def several(data: Mapping[str, Any]) -> Table | None:
    """The table of tenants of a result (as `Result.data`); None for a result with fewer than two tenants."""
    found = _table(data)
    return found if found is not None and len(found["rows"]) > 1 else None


def _table(data: Mapping[str, Any]) -> Table | None:
    found: Table | None = (data.get("tables") or {}).get("tenants")
    return found


def rows(table: Table) -> list[dict[str, Any]]:
    """The rows of the table by column."""
    names = [c["name"] for c in table["columns"]]
    return [dict(zip(names, row, strict=True)) for row in table["rows"]]


def named(given: Iterable[str]) -> list[str]:
    """Names by which tenants are asked for.

    Results of engines that accepted several tenants of one name have ``NAME#2`` for the second of them.
    """
    seen: Counter[str] = Counter()
    found = []
    for name in given:
        seen[name] += 1
        found.append(f"{name}#{seen[name]}" if seen[name] > 1 else name)
    return found


def names(data: Mapping[str, Any]) -> list[str]:
    """Names by which the tenants of a result are asked for, in the order of its table."""
    table = _table(data)
    return [] if table is None else named(row["tenant"] for row in rows(table))


def columns(data: Mapping[str, Any]) -> dict[str, tuple[ColumnInfo, float | None]]:
    """Every number of each tenant of a result as ``tenant.NAME.COLUMN``, with its unit and meaning."""
    table = _table(data)
    if table is None:
        return {}
    units = {c["name"]: c["unit"] for c in table["columns"] if c["unit"]}
    found: dict[str, tuple[ColumnInfo, float | None]] = {}
    for name, row in zip(names(data), rows(table), strict=True):
        for column, unit in units.items():
            meaning = tenant_info()[column]["description"] if column in tenant_info() else column
            about: ColumnInfo = {"unit": unit, "description": f"{name}: {meaning}"}
            found[f"{PREFIX}{name}.{column}"] = (about, row[column])
    return found


def values(data: Mapping[str, Any]) -> dict[str, float | None]:
    """Every number of each tenant of a result as ``tenant.NAME.COLUMN``."""
    return {name: value for name, (_, value) in columns(data).items()}


def described(results: Iterable[Result]) -> dict[str, ColumnInfo]:
    """Unit and meaning of every tenant's column."""
    return {name: about for r in results for name, (about, _) in columns(r.data).items()}


def beside(frame: pl.DataFrame, results: Sequence[Result], wanted: Iterable[str] = ()) -> pl.DataFrame:
    """A tidy table with columns of the tenants of its results, after the others: all where a result has several tenants, and
    those that are ``wanted``, by name or pattern, in any case."""
    import polars as pl

    found = [values(r.data) for r in results]
    known = dict.fromkeys(name for v in found for name in v)
    if not any(several(r.data) for r in results):
        known = dict.fromkeys(matching([w for w in wanted if w.startswith(PREFIX)], known))
    series = [
        pl.Series(n, [v.get(n) for v in found], pl.Float64, strict=False) for n in known if n not in frame.columns
    ]
    return frame.hstack(series)


def matching(wanted: Iterable[str], known: Iterable[str]) -> list[str]:
    """The wanted names, with the patterns of tenants' columns replaced by the columns that they match."""
    known = list(known)
    found = ([k for k in known if k == w or fnmatchcase(k, w)] if w.startswith(PREFIX) else [w] for w in wanted)
    return list(dict.fromkeys(name for names in found for name in names))


def expected(specs: Iterable[str], wanted: Iterable[str] = ()) -> list[str]:
    """The tenants' columns that :func:`beside` gives a table of results of these resolved specs."""
    found = [_named(s) for s in specs]
    known = [
        f"{PREFIX}{n}.{column}" for n in dict.fromkeys(n for names in found for n in names) for column in numbers()
    ]
    if any(len(names) > 1 for names in found):
        return known
    return matching([w for w in wanted if w.startswith(PREFIX)], known)


def _named(spec: str) -> list[str]:
    """Names of the tenants of a resolved spec."""
    return named(t["name"] for t in json.loads(spec).get("tenant") or ())


def check(wanted: Iterable[str], specs: Iterable[str]) -> None:
    """Raises HostnetError for a wanted tenant's column, or a pattern of them, that no tenant of these resolved specs has."""
    asked = [w for w in wanted if w.startswith(PREFIX)]
    if not asked:
        return
    known = dict.fromkeys(n for s in specs for n in _named(s))
    for name in asked:
        tenant = name.removeprefix(PREFIX).rpartition(".")[0]
        if not any(k == tenant or fnmatchcase(k, tenant) for k in known):
            raise HostnetError(f"{name}: no tenant is called {tenant!r}; {nearest(tenant, list(known))}")
