"""Scenarios as Python objects.

A :class:`Scenario` wraps the same nested tables that a scenario file holds, with attribute
access. The list of sections, keys, units and defaults is the engine's own
(``hostnet schema``); nothing is declared here a second time, and every value is checked by
the engine's resolver, so a mistake reads the same in a file, in Python and on the command line.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w

from . import _core
from .errors import HostnetError
from .paths import nearest, platform_dirs, scenario_file

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

SpecError = _core.SpecError


@lru_cache(maxsize=1)
def schema() -> dict[str, Any]:
    """The JSON Schema of a scenario as written in a file: every key with type, unit, default and one sentence.

    The engine describes the expanded form. A file names its platform, and may override parts of it.
    """
    full = json.loads(_core.schema())
    platform = full["properties"]["platform"]
    full["properties"]["platform"] = {"type": "string", "description": "Name or path of a platform file."}
    full["properties"]["override"] = {**platform, "description": "Values that replace the platform's."}
    return full


def _table(node: Mapping[str, Any] | None, data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema node that lists a section's keys; among several kinds, the one that ``data`` names."""
    while node:
        if "$ref" in node:
            node = schema()["$defs"][node["$ref"].rsplit("/", 1)[-1]]
        elif "properties" in node:
            return node
        else:
            options = [o for union in ("oneOf", "anyOf") for o in node.get(union, ()) if o.get("type") != "null"]
            chosen = [o for o in options if o.get("properties", {}).get("kind", {}).get("const") == data.get("kind", "")]
            node = next(iter(chosen or (options if len(options) == 1 else ())), None)
    return {}


class Section:
    """One table of a scenario; keys are attributes. Unknown keys raise :class:`SpecError` at once."""

    def __init__(self, data: dict[str, Any], node: Mapping[str, Any], path: str, file: str):
        self.__dict__.update(_data=data, _node=_table(node, data), _path=path, _file=file)

    def _keys(self) -> list[str]:
        return list(self._node.get("properties", {}))

    def _child(self, key: str, value: Any, node: Mapping[str, Any]) -> Any:
        path = f"{self._path}.{key}" if self._path else str(key)
        if isinstance(value, dict):
            return Section(value, node, path, self._file)
        if isinstance(value, list):
            items = node.get("items", {})
            return [self._child(f"{key}.{i}", v, items) for i, v in enumerate(value)]
        return value

    def __getattr__(self, key: str) -> Any:
        if key.startswith("_"):
            raise AttributeError(key)
        if key in self._data:
            return self._child(key, self._data[key], self._node.get("properties", {}).get(key, {}))
        self._check(key)
        node = self._node["properties"][key] if key in self._keys() else {}
        if _table(node, {}):  # a section not written yet: assigning to its attributes creates it
            return self._child(key, self._data.setdefault(key, {}), node)
        return node.get("default")

    def __setattr__(self, key: str, value: Any) -> None:
        self._check(key)
        self._data[key] = value

    def _check(self, key: str) -> None:
        keys = self._keys()
        if keys and key not in keys:
            where = f"[{self._path}]" if self._path else "a scenario"
            raise SpecError(f"{self._file}: {where} has no key {key!r}; {nearest(key, keys)}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._keys(), *self._data})

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __eq__(self, other: object) -> bool:
        return self._data == (other._data if isinstance(other, Section) else other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._data!r})"

    def help(self) -> str:
        """The keys of this section with the engine's sentence for each."""
        props = self._node.get("properties", {})
        return "\n".join(f"{key}: {' '.join(node.get('description', '').split())}" for key, node in props.items())


if TYPE_CHECKING:
    from ._fields import Fields
else:
    Fields = Section


class Scenario(Fields):
    """A host, its tenants, its traffic and what to run: one simulated point.

    ``Scenario.load("scenarios/kvs.toml")`` reads a file; ``Scenario({...})`` takes the same
    tables as a dictionary. Attributes may be read and assigned (``sc.placement.ways = 4``);
    :meth:`with_` makes a changed copy. Nothing is checked completely until :meth:`resolve`.
    """

    def __init__(self, tables: Mapping[str, Any] | None = None, *, file: str | Path | None = None):
        super().__init__(copy.deepcopy(dict(tables or {})), schema(), "", str(file or "scenario"))
        self.__dict__["_origin"] = Path(file) if file is not None else None

    @classmethod
    def load(cls, name: str | Path) -> Scenario:
        """Read a scenario file, given by path or by the name of one that comes with hostnet.

        Raises HostnetError when there is no such file, SpecError when it is not TOML.
        """
        path = scenario_file(name)
        try:
            tables = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
            raise SpecError(f"{name}: not a TOML file ({e}).") from None
        except OSError as e:
            raise HostnetError(f"{name}: cannot be read ({e.strerror}).") from None
        return cls(tables, file=path)

    def copy(self) -> Scenario:
        """An independent copy."""
        return Scenario(self._data, file=self._origin)

    def set(self, path: str, value: Any) -> Scenario:
        """Assign one value by dotted path (``"tenant.0.app.item_size"``); ``None`` removes the key. Returns self."""
        *parents, last = path.split(".")
        node: Any = self._data
        for depth, part in enumerate(parents):
            node = self._step(node, part, ".".join(parents[: depth + 1]), path)
        if isinstance(node, list):
            self._step(node, last, path, path)
            node[int(last)] = value
        elif not isinstance(node, dict):
            raise SpecError(f"{self._file}: {path} cannot be set because {'.'.join(parents)} is not a table.")
        elif value is None:
            node.pop(last, None)
        else:
            node[last] = value
        return self

    def _step(self, node: Any, part: str, here: str, path: str) -> Any:
        if isinstance(node, list):
            if not part.isdigit() or int(part) >= len(node):
                raise SpecError(f"{self._file}: {path} cannot be set because {here} does not exist; the list has "
                                f"{len(node)} {'entry' if len(node) == 1 else 'entries'}, counted from 0.")
            return node[int(part)]
        if not isinstance(node, dict):
            raise SpecError(f"{self._file}: {path} cannot be set because {here.rsplit('.', 1)[0]} is not a table.")
        return node.setdefault(part, {})

    def with_(self, changes: Mapping[str, Any] | None = None, **sections: Any) -> Scenario:
        """A changed copy: dotted paths in ``changes``, whole keys or parts of sections by name.

        ``sc.with_({"placement.ways": 4}, seed=2, rings={"rx_buffers": 2048})``
        """
        new = self.copy()
        for path, value in (changes or {}).items():
            new.set(path, value)
        for key, value in sections.items():
            if isinstance(value, Mapping):
                for sub, v in value.items():
                    new.set(f"{key}.{sub}", v)
            else:
                new.set(key, value)
        return new

    def to_dict(self) -> dict[str, Any]:
        """The scenario's tables as written, without defaults."""
        return copy.deepcopy(self._data)

    def to_toml(self) -> str:
        """The scenario as the text of a scenario file."""
        return tomli_w.dumps(self._data)

    def resolve(self) -> str:
        """Validate, merge the platform, fill in defaults: the JSON text the engine runs.

        Raises SpecError with one sentence naming file, key, value and the nearest valid choice.
        """
        try:
            text = tomli_w.dumps(self._data)
        except TypeError as e:
            raise SpecError(f"{self._file}: a value is of a type that TOML cannot hold ({e}).") from None
        return _core.resolve(text, self._file, platform_dirs(self._origin))


def parse_value(text: str) -> Any:
    """The value in ``--set path=value``: a TOML value when it reads as one, else a plain string."""
    try:
        value = tomllib.loads(f"v = {text}")["v"]
    except tomllib.TOMLDecodeError:
        return text
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise HostnetError(f"{text} is beyond what a whole number of TOML holds (64 bits).")
    return value


def parse_assignment(text: str) -> tuple[str, str]:
    """Split ``path=value``; raises HostnetError when there is no path or no ``=``."""
    path, eq, value = text.partition("=")
    if not eq or not path.strip():
        raise HostnetError(f"{text!r} is not of the form path=value, such as placement.ways=4.")
    return path.strip(), value.strip()
