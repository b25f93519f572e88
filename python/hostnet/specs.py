"""Scenarios as Python objects.

A :class:`Scenario` wraps the same nested tables that a scenario file holds, with attribute
access. The list of sections, keys, units and defaults is the engine's own
(``hostnet schema``); nothing is declared here a second time, and every value is checked by
the engine's resolver, so a mistake reads the same in a file, in Python and on the command line.
"""

from __future__ import annotations

import copy
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableSequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w

from . import _core, renamed
from ._toml import TEXT, tomllib
from .errors import HostnetError, NoSuchKey, SpecError, no_text, printable
from .paths import scenario_file, search_dirs

ENTRY = re.compile(r"\[(\d+)\]")  # an index of a list, as in messages

#: Ending of the name of a table under ``override`` in the schema.
PARTLY = "InOverride"
#: Depth of nested tables beyond which a scenario is refused; no scenario needs a quarter of it.
DEEPEST = 32


@lru_cache(maxsize=1)
def schema() -> dict[str, Any]:
    """The JSON Schema of a scenario as written in a file: every key with type, unit, default and one sentence.

    The engine describes the expanded form. A file names its platform and may override parts of it: the tables under
    ``override`` are those of the platform, with every key optional.
    """
    full: dict[str, Any] = json.loads(_core.schema())
    whole, defs = full["properties"]["platform"], full["$defs"]
    full["properties"]["platform"] = {"type": "string", "description": "Name or path of a platform file."}
    full["required"] = [key for key in full["required"] if key != "override"]
    parts: dict[str, Any] = {}
    full["properties"]["override"] = {
        **_partly(whole, defs, parts),
        "description": "Values that replace the platform's.",
    }
    defs.update(parts)
    return full


def _partly(node: Any, defs: Mapping[str, Any], parts: dict[str, Any]) -> Any:
    """A schema node whose tables may lack any key; the tables to which it refers are added to ``parts`` under new
    names."""
    if isinstance(node, list):
        return [_partly(n, defs, parts) for n in node]
    if not isinstance(node, Mapping):
        return node
    node = {k: _partly(v, defs, parts) for k, v in node.items() if k != "required"}
    name = str(node.get("$ref", "")).rsplit("/", 1)[-1]
    if "properties" in defs.get(name, {}):
        part = f"{name}{PARTLY}"
        if part not in parts:
            parts[part] = {}  # registered before the recursion, in case the table refers to itself
            parts[part] = _partly(defs[name], defs, parts)
        node["$ref"] = f"#/$defs/{part}"
    return node


def section_schema(node: Mapping[str, Any] | None, data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema node that lists a section's keys: among several kinds the kind that ``data`` names, otherwise all
    kinds."""
    while node:
        if "$ref" in node:
            node = schema()["$defs"][node["$ref"].rsplit("/", 1)[-1]]
        elif "properties" in node:
            return node
        else:
            # An option that accepts any value is `True`, and has no keys.
            options = [
                o
                for union in ("oneOf", "anyOf")
                for o in node.get(union, ())
                if isinstance(o, Mapping) and o.get("type") != "null"
            ]
            chosen = [
                o for o in options if o.get("properties", {}).get("kind", {}).get("const") == data.get("kind", "")
            ]
            if not chosen and len(options) > 1:
                return {"properties": {k: v for o in reversed(options) for k, v in o.get("properties", {}).items()}}
            node = next(iter(chosen or options), None)
    return {}


def plain(value: Any, depth: int = 0) -> Any:
    """A value as scenario files hold it: numbers, texts, lists and dictionaries of Python's own, copied.

    Arrays and their numbers (NumPy, Polars), sections, paths and generators are converted. A key whose value is None is
    absent, as in the resolved specs of a study. Raises SpecError for tables nested deeper than any scenario's.
    """
    if depth > DEEPEST:
        raise SpecError(f"a value is nested more than {DEEPEST} deep, which no scenario is.")
    if value is None or isinstance(value, (bool, int, float, str)):
        return str(value) if isinstance(value, PlatformName) else value
    if isinstance(value, (Section, Sections)):
        value = value._data
    if isinstance(value, Mapping):
        return {str(k): plain(v, depth + 1) for k, v in value.items() if v is not None}
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    for name in ("tolist", "to_list"):
        if hasattr(value, name):
            return plain(getattr(value, name)(), depth)
    if isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray)):
        return [plain(v, depth + 1) for v in value]
    return value


#: The index of a list in a dotted path.
_INDEX = re.compile(r"\.(\d+)\b")


class Section:
    """One table of a scenario; keys are attributes. Unknown keys raise :class:`NoSuchKey`, a :class:`SpecError`, at once.

    A section that is not written yet reads as its defaults, and is written when a value is assigned to it. ``None``
    removes a key.
    """

    def __init__(
        self,
        data: dict[str, Any],
        node: Mapping[str, Any],
        path: str,
        file: str,
        attach: Callable[[], None] | None = None,
        under: Mapping[str, Any] | None = None,
    ):
        self.__dict__.update(_data=data, _schema=node, _path=path, _file=file, _attach=attach, _under=under or {})

    @property
    def _node(self) -> Mapping[str, Any]:
        return section_schema(self._schema, self._data)

    def _keys(self) -> list[str]:
        return list(self._node.get("properties", {}))

    def _where(self, key: object) -> str:
        return f"{self._path}.{key}" if self._path else str(key)

    def _child_node(self, key: str) -> Mapping[str, Any]:
        node: Mapping[str, Any] = self._node.get("properties", {}).get(key, {})
        return node

    def _beneath(self, key: str) -> Mapping[str, Any]:
        """Values below ``key`` where the scenario sets none."""
        below = self._under.get(key)
        return below if isinstance(below, Mapping) else {}

    def __getattr__(self, key: str) -> Any:
        if key.startswith("_"):
            raise AttributeError(key)
        return self._get(key)

    def _get(self, key: str) -> Any:
        present = renamed.key(self._path, key, self._file)
        if present != key and "." in present:
            table, _, last = present.rpartition(".")
            return self._get(table)._get(last)
        key = present
        if key in self._data:
            return _view(
                self._data[key], self._child_node(key), self._where(key), self._file, self._written, self._beneath(key)
            )
        self._check(key)
        node = self._child_node(key)
        fresh: Any = (
            {}
            if section_schema(node, {}) or node.get("type") == "object"
            else []
            if node.get("type") == "array"
            else None
        )
        if fresh is None or isinstance(self._under.get(key), list):
            return copy.deepcopy(self._under.get(key, node.get("default")))

        def attach() -> None:
            self._data.setdefault(key, fresh)
            self._written()

        return _view(fresh, node, self._where(key), self._file, attach, self._beneath(key))

    def _written(self) -> None:
        """Records that a value within this section has been assigned, which makes the section part of the scenario."""
        if self._attach is not None:
            self._attach()

    def __setattr__(self, key: str, value: Any) -> None:
        self._put(key, value)

    def _put(self, key: str, value: Any) -> None:
        present = renamed.key(self._path, key, self._file)
        if present != key and "." in present:
            table, _, last = present.rpartition(".")
            self._get(table)._put(last, value)
            return
        key = present
        self._check(key)
        value = renamed.value(self._where(key), plain(value), self._file)
        _check_keys(value, self._child_node(key), self._where(key), self._file)
        if value is None:
            self._data.pop(key, None)
            return
        self._data[key] = value
        self._written()

    def _check(self, key: str) -> None:
        keys = self._keys()
        if keys and key not in keys:
            where = _INDEX.sub(r"[\1]", self._where(key))
            raise NoSuchKey(f"{self._file}: {where}: {_core.unknown_key(str(key), keys)}.")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._keys(), *self._data})

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __eq__(self, other: object) -> bool:
        return bool(self._data == (other._data if isinstance(other, Section) else other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._data!r})"

    def help(self) -> str:
        """The keys of this section with the engine's sentence for each."""
        props = self._node.get("properties", {})
        return "\n".join(f"{key}: {' '.join(node.get('description', '').split())}" for key, node in props.items())


class Sections(MutableSequence[Any]):
    """A list in a scenario, such as its tenants; appending, assigning or removing elements changes the scenario."""

    def __init__(self, data: list[Any], node: Mapping[str, Any], path: str, file: str, attach: Callable[[], None]):
        self._data, self._items, self._path, self._file, self._attach = data, node.get("items", {}), path, file, attach

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return _view(self._data[index], self._items, f"{self._path}.{index}", self._file, self._attach)

    def _checked(self, value: Any, index: Any) -> Any:
        value = renamed.value(f"{self._path}.{index}", plain(value), self._file)
        _check_keys(value, self._items, f"{self._path}.{index}", self._file)
        return value

    def __setitem__(self, index: Any, value: Any) -> None:
        values = (
            [self._checked(v, i) for i, v in enumerate(value)]
            if isinstance(index, slice)
            else self._checked(value, index)
        )
        self._data[index] = values
        self._attach()

    def __delitem__(self, index: Any) -> None:
        del self._data[index]

    def insert(self, index: int, value: Any) -> None:
        """Put a value (a dictionary or a section) before ``index``."""
        self._data.insert(index, self._checked(value, index))
        self._attach()

    def __eq__(self, other: object) -> bool:
        return self._data == (other._data if isinstance(other, Sections) else other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._data)


def _view(
    value: Any,
    node: Mapping[str, Any],
    path: str,
    file: str,
    attach: Callable[[], None],
    under: Mapping[str, Any] | None = None,
) -> Any:
    """A value of a scenario; tables and lists are objects that write into the scenario."""
    if isinstance(value, dict):
        return Section(value, node, path, file, attach, under)
    if isinstance(value, list):
        return Sections(value, node, path, file, attach)
    return value


def _check_keys(value: Any, node: Mapping[str, Any], path: str, file: str) -> None:
    """Raises SpecError for a key that the schema does not have, anywhere in a value that is assigned."""
    if isinstance(value, dict):
        section = Section(value, node, path, file)
        for key, child in value.items():
            section._check(key)
            _check_keys(child, section._child_node(key), f"{path}.{key}", file)
    elif isinstance(value, list):
        for i, child in enumerate(value):
            _check_keys(child, node.get("items", {}), f"{path}.{i}", file)


class PlatformName(str):
    """The name of a scenario's platform. The attributes are the platform's values; an assigned value goes to
    ``override``, so ``sc.platform.memory.channels = 8`` is ``sc.override.memory.channels = 8``."""

    _override: Section

    def __new__(cls, name: str, override: Section) -> PlatformName:
        self = super().__new__(cls, name)
        self.__dict__["_override"] = override
        return self

    def __getattr__(self, key: str) -> Any:
        if key.startswith("_"):
            raise AttributeError(key)
        return self._override._get(key)

    def __setattr__(self, key: str, value: Any) -> None:
        self._override._put(key, value)

    def __dir__(self) -> list[str]:
        return dir(self._override)

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


def platform_values(name: str, file: str, dirs: tuple[str, ...]) -> Mapping[str, Any]:
    """Every value of the platform ``name``, including defaults, as its file is now. Raises SpecError when the platform
    cannot be used."""
    places = (Path(d) / part for d in dirs for part in (name, f"{name}.toml"))
    return _platform_values(name, file, dirs, tuple(p.stat().st_mtime_ns for p in places if p.is_file()))


def values_of_tables(tables: Mapping[str, Any]) -> Mapping[str, Any]:
    """Every value of the platform that whole tables describe, including defaults and those of presets. Raises SpecError when
    it cannot be used."""
    return _resolved_platform(tables, "platform", ())


@lru_cache(maxsize=64)
def _platform_values(name: str, file: str, dirs: tuple[str, ...], _stamps: tuple[int, ...]) -> Mapping[str, Any]:
    return _resolved_platform(name, file, dirs)


def _resolved_platform(platform: str | Mapping[str, Any], file: str, dirs: tuple[str, ...]) -> Mapping[str, Any]:
    bare = {
        "name": "platform",
        "platform": platform,
        "placement": {"policy": "dma"},
        "run": {"load": "none"},
        "tenant": [{"name": "t", "cores": 1, "app": {"kind": "directed_rx", "blocks": 1, "evict": "none"}}],
    }
    values: Mapping[str, Any] = json.loads(_core.resolve(tomli_w.dumps(bare), file, list(dirs)))["platform"]
    return values


if TYPE_CHECKING:
    from ._fields import Fields
else:
    Fields = Section


class Scenario(Fields):
    """A host, its tenants, its traffic and what to run: one simulated point.

    ``Scenario("kvs")`` and ``Scenario.load("scenarios/kvs.toml")`` read a file, which may also be a saved result or a point of
    a study (JSON); ``Scenario({...})`` takes the same tables as a dictionary. Attributes may be read and assigned (``sc.placement.ways = 4``, ``sc.tenant.append({...})``);
    :meth:`with_` makes a changed copy. Keys are checked when they are set, values by :meth:`resolve`.
    """

    def __init__(
        self, tables: Mapping[str, Any] | str | os.PathLike[str] | None = None, *, file: str | Path | None = None
    ):
        digests: dict[str, str] = {}
        seeds = None
        if isinstance(tables, (str, os.PathLike)):
            file = scenario_file(tables)
            tables, digests, seeds = _read(tables, file)
        if not isinstance(tables or {}, (Mapping, Section)):
            raise SpecError(f"{tables!r} is no scenario; give a file, a name that comes with hostnet, or its tables.")
        try:
            data = plain(dict(tables or {}))
        except SpecError as e:
            raise SpecError(f"{file or 'scenario'}: {e}") from None
        name = str(file or "scenario")
        super().__init__(renamed.value("", data, name), schema(), "", name)
        self.__dict__["_origin"] = Path(file) if file is not None else None
        self.__dict__["_digests"] = digests
        self.__dict__["_seeds"] = seeds

    @classmethod
    def load(cls, name: str | Path) -> Scenario:
        """Read a scenario file, given by path or by the name of one that comes with hostnet.

        Raises HostnetError when there is no such file, SpecError when it is not TOML.
        """
        return cls(name)

    @classmethod
    def of(cls, given: Scenario | Mapping[str, Any] | str | os.PathLike[str]) -> Scenario:
        """A scenario from any form: an object, its tables, a path or a shipped name."""
        return given if isinstance(given, Scenario) else cls(given)

    def copy(self) -> Scenario:
        """An independent copy."""
        new = Scenario(file=self._origin)
        new.__dict__["_digests"] = self._digests
        new.__dict__["_seeds"] = self._seeds
        new._data.update(plain(self._data))  # its keys have their present names already
        return new

    def _get(self, key: str) -> Any:
        name = self._data.get("platform")
        if key == "platform" and isinstance(name, str):
            return PlatformName(name, self._get("override"))
        if key == "platform" and isinstance(name, dict):
            return Section(name, schema()["properties"]["override"], key, self._file, self._written)
        return super()._get(key)

    def _beneath(self, key: str) -> Mapping[str, Any]:
        name = self._data.get("platform")
        if key != "override" or not isinstance(name, str):
            return {}
        try:
            return platform_values(name, self._file, tuple(search_dirs(self._origin)))
        except SpecError:
            return {}  # resolve reports what is invalid

    def set(self, path: str, value: Any) -> Scenario:
        """Assign one value by dotted path (``"tenant.0.app.item_size"``, or ``tenant[0]`` as messages have it); ``None``
        removes the key. Returns self.

        ``platform.memory.channels`` sets ``override.memory.channels``. Raises SpecError for a path that leads nowhere.
        """
        *parents, last = self._steps(path)
        at: Any = self
        for depth, part in enumerate(parents):
            at = self._step(at, part, parents[: depth + 1], path)
        if isinstance(at, Sections):
            self._entry(at, last, path, path)
            at[int(last)] = value
        elif isinstance(at, Section):
            at._put(last, value)
        else:
            raise SpecError(f"{self._file}: {path} cannot be set because {'.'.join(parents)} is not a table.")
        return self

    def _steps(self, path: str) -> list[str]:
        if not isinstance(path, str):
            raise SpecError(f'{self._file}: {path!r} is no path of a key; give text such as "placement.ways".')
        steps = ENTRY.sub(r".\1", path).split(".")
        if steps[0] == "platform" and len(steps) > 1 and isinstance(self._data.get("platform"), str):
            steps[0] = "override"
        return steps

    def target(self, path: str) -> str:
        """The dotted path of the value that ``path`` sets, which is the same for all spellings of one key."""
        found = ""
        for step in self._steps(path):
            found = f"{found}.{renamed.current(found, step)}" if found else renamed.current(found, step)
        return found

    def _step(self, at: Any, part: str, here: list[str], path: str) -> Any:
        if isinstance(at, Sections):
            return self._entry(at, part, ".".join(here), path)
        if not isinstance(at, Section):
            raise SpecError(f"{self._file}: {path} cannot be set because {'.'.join(here[:-1])} is not a table.")
        found = at._get(part)
        if found is None and not at._keys():  # a table of free keys
            return Section(at._data.setdefault(part, {}), {}, ".".join(here), self._file, at._written)
        return found

    def _entry(self, at: Sections, part: str, here: str, path: str) -> Any:
        if not part.isdigit() or int(part) >= len(at):
            raise SpecError(
                f"{self._file}: {path} cannot be set because {here} does not exist; the list has "
                f"{len(at)} {'entry' if len(at) == 1 else 'entries'}, counted from 0."
            )
        return at[int(part)]

    def with_(self, changes: Mapping[str, Any] | None = None, **sections: Any) -> Scenario:
        """A changed copy: dotted paths in ``changes``, and whole keys or parts of sections as keyword arguments.

        ``sc.with_({"placement.ways": 4}, seed=2, rings={"rx_buffers": 2048})``
        """
        if not isinstance(changes or {}, Mapping):
            raise SpecError(f"{self._file}: changes = {changes!r} is no table of paths and values.")
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
            text = (
                json.dumps(self._data, allow_nan=False) if self._file.endswith(".json") else tomli_w.dumps(self._data)
            )
        except ValueError:
            raise SpecError(f"{self._file}: a value is not a finite number.") from None
        except TypeError as e:
            raise SpecError(f"{self._file}: a value is of a type that a scenario cannot hold ({e}).") from None
        beyond = next(
            (leaf for leaf in _leaves(self._data, "") if isinstance(leaf[1], int) and not _in_toml(leaf[1])), None
        )
        if beyond is not None:
            raise SpecError(f"{self._file}: {beyond[0]} = {beyond[1]} is {_BEYOND}.")
        try:
            resolved = _core.resolve(text, self._file, search_dirs(self._origin))
            self._check_files(resolved)
            return resolved
        except UnicodeEncodeError:
            raise SpecError(f"{printable(self._file)}: {self._no_text()}.") from None

    def _check_files(self, resolved: str) -> None:
        """Raises SpecError where a file differs from the one of that path that a saved result has replayed."""
        from .cache import digests_of, files_of

        if not self._digests:
            return
        spec = json.loads(resolved)
        tables = {key: table for key, table in files_of(spec).items() if table["file"] in self._digests}
        found = digests_of(spec) if tables else {}
        for key, table in tables.items():
            if found[key] != self._digests[table["file"]]:
                raise SpecError(
                    f'{self._file}: {key}.file = "{table["file"]}" is not the file that this result replayed (SHA-256 '
                    f"{found[key][:12]}, which was {self._digests[table['file']][:12]}); give that file."
                )

    def _no_text(self) -> str:
        """The part of the scenario that cannot be encoded, a value with its key or the name of the file, and why."""
        values = (f'{key} = "{value}"' if isinstance(value, str) else key for key, value in _leaves(self._data, ""))
        wrong = next((named for named in values if printable(named) != named), None)
        return f"its name {no_text(self._file)}" if wrong is None else f"{printable(wrong)} {no_text(wrong)}"


_BEYOND = "beyond what a whole number of TOML holds (64 bits)"


def _in_toml(number: int) -> bool:
    """Whether TOML, whose whole numbers have 64 bits with a sign, holds a number."""
    return -(2**63) <= number < 2**63


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The values below ``path`` that are neither tables nor lists, each with its path."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{i}]")
    else:
        yield path, value


def _read(name: str | os.PathLike[str], path: Path) -> tuple[dict[str, Any], dict[str, str], int | None]:
    """The tables of a file, and in a saved result the digests of the files that it replayed, by their paths, and the number of
    seeds that it combines."""
    text = ""
    try:
        text = path.read_text(encoding=TEXT)
        return _saved(name, text) if path.suffix == ".json" else (tomllib.loads(text), {}, None)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        # The one mistake that TOML's own message does not explain: a name that has values as well.
        both = re.search(r"^\s*platform\s*=", text, re.M) and re.search(r"^\s*\[?platform\.", text, re.M)
        hint = "; values of a platform that is named go under [override], such as [override.memory]" if both else ""
        raise SpecError(f"{name}: not a TOML file ({e}){hint}.") from None
    except RecursionError:
        raise SpecError(f"{name}: its values are nested too deeply to be read.") from None
    except OSError as e:
        raise HostnetError(f"{name}: cannot be read ({e.strerror}).") from None


def _saved(name: str | os.PathLike[str], text: str) -> tuple[dict[str, Any], dict[str, str], int | None]:
    """The tables of a scenario in JSON, of a point of a study, or of a result, and the digests and the number of seeds that a
    result has; a point and a result hold the tables under ``spec``."""
    lines = [line for line in text.splitlines() if line.strip()]
    try:
        found = json.loads(text)
    except ValueError as e:
        if len(lines) > 1 and all(line.lstrip().startswith('{"key"') for line in lines):
            raise SpecError(
                f"{name}: holds {len(lines):,} points, one a line; give one of them in a file of its own, such as "
                f"`sed -n 1p {name} > point.json`."
            ) from None
        raise SpecError(f"{name}: not a JSON file ({e}).") from None
    spec = found.get("spec", found) if isinstance(found, dict) else None
    if not isinstance(spec, dict):
        raise SpecError(f"{name}: is not a scenario; in JSON that is a table of keys, a point of a study or a result.")
    from .cache import files_of
    from .results import fault

    if fault(found) is not None:
        return spec, {}, None
    files = found.get("files") or {}
    digests = {table["file"]: files[key] for key, table in files_of(spec).items() if key in files}
    return spec, digests, len(found.get("seeds") or ()) or None


def parse_value(text: str, path: str = "") -> Any:
    """The value in ``--set path=value``: a TOML value when it reads as one, else a plain string.

    Raises HostnetError for what TOML could not hold; the sentence names ``path``.
    """
    named = f"{path} = {text}" if path else text
    try:
        value = tomllib.loads(f"v = {text}")["v"]
    except tomllib.TOMLDecodeError:
        return text
    except RecursionError:
        raise HostnetError(f"{named[:60]}...: is nested too deeply to be read.") from None
    if isinstance(value, int) and not _in_toml(value):
        raise HostnetError(f"{named} is {_BEYOND}.")
    return value


def split_values(text: str) -> list[str]:
    """The values in ``--vary path=a,b``: texts separated by commas, except for commas within brackets, braces or
    quotes."""
    found, depth, quote = [""], 0, ""
    for c in text:
        if c == "," and not depth and not quote:
            found.append("")
            continue
        found[-1] += c
        if quote:
            quote = "" if c == quote else quote
        elif c in "\"'":
            quote = c
        else:
            depth += (c in "[{") - (c in "]}")
    return [value.strip() for value in found]


def parse_assignment(text: str) -> tuple[str, str]:
    """Splits ``path=value``; raises HostnetError when the path or the ``=`` is missing."""
    path, eq, value = text.partition("=")
    if not eq or not path.strip():
        raise HostnetError(f"{text!r} is not of the form path=value, such as placement.ways=4.")
    return path.strip(), value.strip()
