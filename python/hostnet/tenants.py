"""Tenants of a result: what each of them did in the measurement window, and which share of the host it took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

    from .parquet import ColumnInfo
    from .results import Result, Table

#: Beginning of the names of tenants' columns.
PREFIX = "tenant."

#: Columns of the table that a run shows, in a width of 80 characters.
LEADING = (
    "tenant",
    "throughput_mops",
    "net_gbps",
    "drop_rate",
    "lat_p99_us",
    "cpu_utilisation",
    "llc_miss_ratio",
    "dram_share",
)


def several(data: Mapping[str, Any]) -> Table | None:
    """The table of tenants of a result (as `Result.data`); None for a result with fewer than two tenants."""
    found: Table | None = (data.get("tables") or {}).get("tenants")
    return found if found is not None and len(found["rows"]) > 1 else None


def rows(table: Table) -> list[dict[str, Any]]:
    """The rows of the table by column."""
    names = [c["name"] for c in table["columns"]]
    return [dict(zip(names, row, strict=True)) for row in table["rows"]]


def columns(data: Mapping[str, Any]) -> dict[str, tuple[ColumnInfo, float | None]]:
    """Every number of each tenant as ``tenant.NAME.COLUMN``, with its unit and meaning; empty for a result with fewer than
    two tenants. The second of two tenants with one name is ``NAME#2``."""
    table = several(data)
    if table is None:
        return {}
    units = {c["name"]: c["unit"] for c in table["columns"] if c["unit"]}
    found: dict[str, tuple[ColumnInfo, float | None]] = {}
    seen: Counter[str] = Counter()
    for row in rows(table):
        seen[row["tenant"]] += 1
        name = row["tenant"] + (f"#{seen[row['tenant']]}" if seen[row["tenant"]] > 1 else "")
        for column, unit in units.items():
            about: ColumnInfo = {"unit": unit, "description": f"{column} of the tenant {name}"}
            found[f"{PREFIX}{name}.{column}"] = (about, row[column])
    return found


def described(results: Iterable[Result]) -> dict[str, ColumnInfo]:
    """Unit and meaning of the columns that `beside` adds."""
    return {name: about for r in results for name, (about, _) in columns(r.data).items()}


def beside(frame: pl.DataFrame, results: Sequence[Result]) -> pl.DataFrame:
    """A tidy table with the columns of the tenants of its results, after the others."""
    import polars as pl

    values = [columns(r.data) for r in results]
    names = dict.fromkeys(n for v in values for n in v if n not in frame.columns)
    series = [pl.Series(n, [v[n][1] if n in v else None for v in values], pl.Float64, strict=False) for n in names]
    return frame.hstack(series)


def matching(wanted: Iterable[str], known: Iterable[str]) -> list[str]:
    """The wanted names, with the patterns of tenants' columns replaced by the columns that they match."""
    known = list(known)
    found = ([k for k in known if fnmatchcase(k, w)] if w.startswith(PREFIX) else [w] for w in wanted)
    return list(dict.fromkeys(name for names in found for name in names))
