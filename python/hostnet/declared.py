"""Declarations of metrics and of tenants' columns, as the engine gives them, and the search for their names."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, TypedDict

from . import _core
from .errors import HostnetError
from .paths import nearest
from .renamed import metric

#: Beginning of the names of tenants' columns: ``tenant.NAME.COLUMN``.
PREFIX = "tenant."


class Lead(TypedDict):
    """Place of a metric among the figures that lead in a result about ``subject``."""

    subject: str
    rank: int
    under: str | None
    beside: str | None


class MetricInfo(TypedDict):
    """Declaration of a metric or of a tenants' column; `crates/hostnet/src/meter/declaration.rs` says what each field means."""

    name: str
    unit: str
    description: str
    group: str
    dimension: str
    statistic: str
    marks: str | None
    run: list[Lead]
    sweep: list[Lead]
    idle_at_zero: bool
    unless: str | None
    alias: tuple[str, int] | None


@lru_cache(maxsize=1)
def _declarations() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_core.metrics())
    return found


@lru_cache(maxsize=1)
def metric_info() -> dict[str, MetricInfo]:
    """Every metric by name, with its declaration, in the engine's order."""
    return {m["name"]: m for m in _declarations()["metrics"]}


@lru_cache(maxsize=1)
def tenant_info() -> dict[str, MetricInfo]:
    """Every column of the table ``tenants`` by name, with its declaration, in the table's order."""
    return {m["name"]: m for m in _declarations()["tenants"]}


def groups() -> list[str]:
    """Groups of metrics, in the order of their headings."""
    return list(_declarations()["groups"])


def subjects() -> list[str]:
    """Subjects of results; a result is about the first subject of which it has a mark."""
    return list(_declarations()["subjects"])


def numbers() -> list[str]:
    """Columns of the table ``tenants`` that hold numbers with a unit."""
    return [name for name, m in tenant_info().items() if m["unit"]]


def info(name: str) -> MetricInfo | None:
    """The declaration of a metric, or of a tenant's column; None for any other column."""
    if name.startswith(PREFIX):
        return tenant_info().get(name.rpartition(".")[2])
    return metric_info().get(name)


def unit(name: str) -> str:
    """The unit of a metric or of a tenant's column; empty for any other column."""
    found = info(name)
    return found["unit"] if found else ""


def matching(wanted: str) -> list[str]:
    """The metrics that a name or a pattern such as ``lat_*`` stands for; an old name stands for its present one.

    A tenant's column, or a pattern of such columns, stays as it is, because only a result has tenants; without a tenant's name it
    stands for that of every tenant. Raises HostnetError for
    what no metric and no column of tenants matches; the text begins with what is missing.
    """
    name = metric(wanted)
    if name.startswith(PREFIX):
        tenant, _, column = name.removeprefix(PREFIX).rpartition(".")
        if not any(fnmatchcase(c, column) for c in numbers()):
            near = nearest(column, numbers())
            hint = near.replace('"', f'"{PREFIX}{tenant or "*"}.', 1) if near.startswith("did you mean") else near
            raise HostnetError(f"tenants have no column {column!r}; {hint}")
        return [f"{PREFIX}{tenant or '*'}.{column}"]
    known = list(metric_info())
    found = [m for m in known if fnmatchcase(m, name)]
    if not found:
        raise HostnetError(f"{_core.unknown_metric(name, known)}.")
    return found
