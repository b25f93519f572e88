"""Renamed and moved keys, renamed choices and metrics: for one version hostnet accepts the old name, with a warning that
names the new one.

The engine declares the renamed names (`config/renamed.rs`, `meter/mod.rs`); nothing is declared here a second time.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from . import _core
from .errors import SpecError

_INDEX = re.compile(r"\.(\d+)(?=\.|$)")
_PLATFORM = re.compile(r"^(override|client\.platform)(?=\.|$)")


class RenamedWarning(FutureWarning):
    """A scenario, a query or a program uses the name that a key, a choice or a metric had in the version before."""


@lru_cache(maxsize=1)
def _renamed() -> dict[str, dict[str, str]]:
    """Old name to new name, for ``keys`` (``path``, and ``path = word`` for a choice) and for ``metrics``. The new name of a
    key that has moved is a path from its table on, such as ``quirks.read_hit``."""
    names: dict[str, dict[str, str]] = json.loads(_core.renamed())
    return names


def _warn(sentence: str) -> None:
    warnings.warn(f"{sentence}; the old name is accepted in this version only.", RenamedWarning, stacklevel=4)


def _table(path: str) -> str:
    """The path of a table in the notation of the engine's list: without indices, and with a platform's tables below
    ``platform``."""
    return _PLATFORM.sub("platform", _INDEX.sub("", path))


def _shown(path: str) -> str:
    return _INDEX.sub(r"[\1]", path)


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def key(path: str, name: str, file: str) -> str:
    """The present name of the key ``name`` of the table at ``path``, or its path from there; warns when ``name`` is an old
    name."""
    new = _renamed()["keys"].get(_below(_table(path), name), name)
    if new != name:
        _warn(f"{file}: {_shown(_below(path, name))} is now {_shown(_below(path, new))}")
    return new


def current(path: str, name: str) -> str:
    """The present name of the key ``name`` of the table at ``path``, or its path from there, whether ``name`` is old or
    new."""
    return _renamed()["keys"].get(_below(_table(path), name), name)


def value(path: str, given: Any, file: str) -> Any:
    """The value ``given`` for the key at ``path``, with every key and choice in the value under its present name.

    Warns of each old name. Raises SpecError when a table has the old and the new name of a key.
    """
    if isinstance(given, list):
        return [value(f"{path}.{i}", item, file) for i, item in enumerate(given)]
    if isinstance(given, str):
        choice = _renamed()["keys"].get(f"{_table(path)} = {given}", given)
        if choice != given:
            at = _shown(path)
            _warn(f'{file}: {at} = "{given}" is now {at} = "{choice}"')
        return choice
    if not isinstance(given, dict):
        return given
    table: dict[str, Any] = given
    found: dict[str, Any] = {}
    for old, child in table.items():
        new = _renamed()["keys"].get(_below(_table(path), old), old)
        if new != old and _has(table, new.split(".")):
            was, now = _shown(_below(path, old)), _shown(_below(path, new))
            raise SpecError(f"{file}: {was} is the old name of {now}, which is given too; remove {was}.")
        key(path, old, file)
        # A key that is not renamed may have dots, as those of `provenance` do.
        *tables, last = new.split(".") if new != old else [new]
        into = found
        for name in tables:
            into = into.setdefault(name, {})
            if not isinstance(into, dict):
                raise SpecError(
                    f"{file}: {_shown(_below(path, old))} is now {_shown(_below(path, new))}; {name} must be a table."
                )
        present = value(_below(path, new), child, file)
        before = into.get(last)  # what has moved into this table
        into[last] = {**present, **before} if isinstance(present, dict) and isinstance(before, dict) else present
    return found


def _has(table: Any, path: list[str]) -> bool:
    """Whether a table has a value at a path."""
    for name in path:
        if not isinstance(table, dict) or name not in table:
            return False
        table = table[name]
    return True


def metric(name: str) -> str:
    """The present name of the metric ``name``; warns when ``name`` is an old name."""
    new = _renamed()["metrics"].get(name, name)
    if new != name:
        _warn(f"the metric {name} is now {new}")
    return new


def query(sql: str, where: str) -> str:
    """A query with its metrics under their present names; warns of each old name, with the place ``where`` of the
    query."""
    for old, new in _renamed()["metrics"].items():
        sql, found = re.subn(rf"\b{old}\b", new, sql)
        if found:
            _warn(f"{where}: the metric {old} is now {new}")
    return sql


class Metrics(dict[str, "float | None"]):
    """The values of a result by metric. The old name of a metric finds its value as well, with a warning."""

    def __init__(self, values: Mapping[str, float | None]):
        new = _renamed()["metrics"]
        if new.keys().isdisjoint(values.keys()):
            super().__init__(values)
        else:
            super().__init__({new.get(name, name): value for name, value in values.items()})

    def __missing__(self, name: str) -> float | None:
        new = metric(name)
        if new == name:
            raise KeyError(_core.unknown_metric(name, list(self)))
        return self[new]

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a metric; ``default`` for a name that is not a metric."""
        return super().get(name if name in self else metric(name), default)
