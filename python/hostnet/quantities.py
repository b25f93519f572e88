"""Swept values as numbers: the quantity of each key, in one unit, with which the column's name ends."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import renamed
from ._toml import inline
from .keys import patterns
from .parquet import ColumnInfo
from .results import Result
from .specs import ENTRY, Scenario, schema, section_schema


@dataclass(frozen=True)
class Quantity:
    """A kind of quantity: the unit of its columns, the ending of their names, and the size of every other unit in that
    unit."""

    unit: str
    suffix: str
    units: Mapping[str, float]


# Other spellings of units. Rates have prefixes in both cases, here with their sizes in billions.
_PREFIXES = {"": 1e-9, "k": 1e-6, "K": 1e-6, "m": 1e-3, "M": 1e-3, "g": 1.0, "G": 1.0, "t": 1e3, "T": 1e3}
_BITS = {prefix + unit: size for unit in ("bps", "bit/s", "bits/sec", "b/s") for prefix, size in _PREFIXES.items()}
_BYTES = {prefix + "B/s": size for prefix, size in _PREFIXES.items()} | {
    prefix + "iB/s": 1e-9 * 2.0**power for prefix, power in {"K": 10, "M": 20, "G": 30, "T": 40}.items()
}
_TIMES = {"nsec": 1.0, "usec": 1e3, "\u00b5s": 1e3, "\u03bcs": 1e3, "msec": 1e6, "sec": 1e9}
_SIZES = {"bytes": 1.0, "byte": 1.0}
_PACKETS = {prefix + unit: 1e3 * size for unit in ("pps", "rps") for prefix, size in _PREFIXES.items()}

#: Units of rates that messages name; the others are other spellings of them.
_USUAL = {"bps", "Kbps", "Mbps", "Gbps", "Tbps", "B/s", "KB/s", "MB/s", "GB/s", "pps", "Mpps", "rps", "krps", "Mrps"}

#: Kinds of quantity. The first one whose unit a key takes is the key's.
QUANTITIES = {
    "ns": Quantity("ns", "ns", {"ps": 1e-3, "ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9} | _TIMES),
    "KiB": Quantity("B", "bytes", {"B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30} | _SIZES),
    "GHz": Quantity("GHz", "ghz", {"Hz": 1e-9, "kHz": 1e-6, "MHz": 1e-3, "GHz": 1.0}),
    "Mrps": Quantity("Mrps", "mrps", _PACKETS),
    "Gbps": Quantity("Gb/s", "gbps", _BITS | {unit: 8 * size for unit, size in _BYTES.items()}),
    "GB/s": Quantity("GB/s", "gbs", _BYTES),
    "Gps": Quantity("1e6/s", "mps", {"ps": 1e-6, "kps": 1e-3, "Mps": 1.0, "Gps": 1e3}),
}
_VALUE = re.compile(r"([0-9][0-9_.]*)\s*(\S+)")


def swept(points: Sequence[Mapping[str, Any]], results: Sequence[Result]) -> list[dict[str, Any]]:
    """Swept columns of each point. A path whose values are quantities becomes a column of numbers, such as
    ``traffic.rate_gbps``; where a path has values of two quantities, each has a column. Tables and lists are their text in
    TOML, and make the other values of their path texts. All other values stay as they are."""
    columns: list[dict[str, Any]] = [{} for _ in points]
    for path in dict.fromkeys(p for point in points for p in point):
        found = [_read(r.spec, path) if isinstance(p.get(path), str) else None for p, r in zip(points, results)]
        if not any(found) or any(f is None and p.get(path) is not None for f, p in zip(found, points)):
            for column, value in zip(columns, _alike([p.get(path) for p in points])):
                column[path] = value
            continue
        for quantity in dict.fromkeys(f[0].suffix for f in found if f is not None):
            for column, f in zip(columns, found):
                column[f"{path}_{quantity}"] = f[1] if f is not None and f[0].suffix == quantity else None
    return columns


def _alike(values: Sequence[Any]) -> Sequence[Any]:
    """The values of one column, as texts where one of them is a table or a list."""
    if not any(isinstance(v, (Mapping, list)) for v in values):
        return values
    return [v if v is None or isinstance(v, str) else inline(v) for v in values]


def described(points: Sequence[Mapping[str, Any]], results: Sequence[Result]) -> dict[str, ColumnInfo]:
    """Unit and meaning of each column that ``swept`` makes."""
    about: dict[str, ColumnInfo] = {}
    for name in dict.fromkeys(n for c in swept(points, results) for n in c):
        path, _, suffix = name.rpartition("_")
        known = next((q for q in QUANTITIES.values() if q.suffix == suffix and path in points[0]), None)
        node, _ = _node(results[0].spec, path if known else name)
        words = " ".join(str((node or {}).get("description", "")).split())
        about[name] = {"unit": known.unit if known else "", "description": words or "swept value"}
    return about


def _read(spec: Mapping[str, Any], path: str) -> tuple[Quantity, float] | None:
    """The quantity at ``path`` of a resolved spec; None where there is no quantity."""
    node, value = _node(spec, path)
    match = _VALUE.fullmatch(value) if isinstance(value, str) else None
    if node is None or match is None:
        return None
    number, unit = match.groups()
    units = _units(node)
    quantity = next((q for sign, q in QUANTITIES.items() if sign in units and unit in q.units), None)
    return None if quantity is None else (quantity, float(number.replace("_", "")) * quantity.units[unit])


def units_of(scenario: Scenario, path: str) -> list[str]:
    """The units of the quantities that a key of a scenario takes; none where it takes no quantity."""
    node, _ = _node(json.loads(scenario.resolve()), path)
    units = set() if node is None else _units(node)
    return list(dict.fromkeys(u for sign, q in QUANTITIES.items() if sign in units for u in q.units if u in units))


def usual(units: Sequence[str]) -> list[str]:
    """The units without other spellings of the same ones, for a message."""
    return [u for u in units if u in _USUAL or u not in _BITS | _BYTES | _PACKETS | _TIMES | _SIZES]


def _units(node: Mapping[str, Any]) -> set[str]:
    """The units that a key's patterns name."""
    return {u for text in patterns(node) for group in re.findall(r"\(([^()]*)\)\$$", text) for u in group.split("|")}


def _node(spec: Mapping[str, Any], path: str) -> tuple[Mapping[str, Any] | None, Any]:
    """The schema's node for ``path`` and the value of a resolved spec at ``path``; None where either is missing."""
    node: Any = schema()
    value: Any = spec
    done: list[str] = []
    left = ENTRY.sub(r".\1", path).split(".")
    while left:
        i, given = len(done), left.pop(0)
        present = "platform" if i == 0 and given == "override" else renamed.current(".".join(done), given)
        part, *moved = present.split(".")
        left = moved + left
        done.append(part)
        if isinstance(value, list):
            if not part.isdigit() or int(part) >= len(value):
                return None, None
            node, value = node.get("items", {}), value[int(part)]
        elif isinstance(value, Mapping):
            name = "override" if i == 0 and part == "platform" else part
            node, value = section_schema(node, value).get("properties", {}).get(name), value.get(part)
        else:
            return None, None
        if node is None:
            return None, None
    return node, value
