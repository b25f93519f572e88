"""Tenants of a result: what each of them did in the measurement window, and which share of the host it took."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .parquet import ColumnInfo
    from .results import Table

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


def values(data: Mapping[str, Any]) -> dict[str, float | None]:
    """Every number of each tenant as ``tenant.NAME.COLUMN``; empty for a result with fewer than two tenants."""
    table = several(data)
    if table is None:
        return {}
    numbers = [name for name, unit in _units(table).items() if unit]
    return {f"tenant.{row['tenant']}.{name}": row[name] for row in rows(table) for name in numbers}


def described(data: Mapping[str, Any]) -> dict[str, ColumnInfo]:
    """Unit and meaning of the columns that `values` makes."""
    table = several(data)
    if table is None:
        return {}
    units = {name: unit for name, unit in _units(table).items() if unit}
    return {
        f"tenant.{row['tenant']}.{name}": {"unit": unit, "description": f"{name} of the tenant {row['tenant']}"}
        for row in rows(table)
        for name, unit in units.items()
    }


def _units(table: Table) -> dict[str, str]:
    return {c["name"]: c["unit"] for c in table["columns"]}
