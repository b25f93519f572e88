"""Completion in the shell: names of scenarios, platforms, metrics and studies, and keys of scenarios.

Each function takes the text before the cursor and returns what may stand there. Where hostnet knows nothing, the shell
offers files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .paths import PLATFORMS, SCENARIOS


def _starting(text: str, names: Iterable[str]) -> list[str]:
    return sorted(n for n in names if n.startswith(text))


def scenario(incomplete: str) -> list[str]:
    """Scenarios that come with hostnet."""
    return _starting(incomplete, (p.stem for p in SCENARIOS.glob("*.toml")))


def platform(incomplete: str) -> list[str]:
    """Platforms that come with hostnet."""
    return _starting(incomplete, (p.stem for p in PLATFORMS.glob("*.toml")))


def metric(incomplete: str) -> list[str]:
    """Metrics, as the last name of a list that commas separate."""
    from .declared import metric_info

    before, comma, last = incomplete.rpartition(",")
    return [before + comma + name for name in _starting(last, metric_info())]


def system(incomplete: str) -> list[str]:
    """Systems that have studies."""
    from .studies import names

    return _starting(incomplete, {system for system, _ in names()})


def figure(incomplete: str) -> list[str]:
    """Figures of all systems."""
    from .studies import names

    return _starting(incomplete, {figure for _, figure in names()})


def key(incomplete: str) -> list[str]:
    """Keys of a scenario as `--set` takes them. A table ends with a dot and a value with an equals sign; the first
    entry of a list has the index 0. In place of an only table its keys are offered, so that the shell ends no word at a
    dot."""
    if "=" in incomplete:
        return []
    found = _keys(incomplete)
    while len(found) == 1 and found[0].endswith("."):
        found = _keys(found[0])
    return found


def _keys(incomplete: str) -> list[str]:
    path, dot, last = incomplete.rpartition(".")
    nodes = list(_alternatives({"$ref": ""}))
    for part in path.split(".") if path else ():
        nodes = [n for node in nodes for n in _alternatives(_under(node, part))]
    found = []
    for node in nodes:
        below = {"0": node["items"]} if _is_list(node) else node.get("properties", {})
        found += [name + end for name, n in below.items() for end in _endings(n)]
    return [path + dot + name for name in _starting(last, set(found))]


def table(incomplete: str) -> list[str]:
    """Tables and keys that `hostnet schema` explains."""
    from .errors import HostnetError
    from .keys import rows

    path, dot, last = incomplete.rpartition(".")
    if not path:
        from .specs import schema

        return _starting(last, schema()["properties"])
    try:
        return [path + dot + name for name in _starting(last, (row[0] for row in rows(path)))]
    except HostnetError:
        return []


def _alternatives(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The forms that a node of the schema may take, references followed; the empty reference is the scenario."""
    from .specs import schema

    if "$ref" in node:
        name = node["$ref"].rsplit("/", 1)[-1]
        node = schema()["$defs"][name] if name else schema()
    yield node
    for union in ("oneOf", "anyOf"):
        for one in node.get(union, ()):
            if isinstance(one, Mapping):
                yield from _alternatives(one)


def _under(node: Mapping[str, Any], part: str) -> Mapping[str, Any]:
    below: Mapping[str, Any] = node["items"] if _is_list(node) else node.get("properties", {}).get(part, {})
    return below


def _is_list(node: Mapping[str, Any]) -> bool:
    kind = node.get("type")
    return "items" in node and (kind == "array" or (isinstance(kind, list) and "array" in kind))


def _endings(node: Mapping[str, Any]) -> set[str]:
    """A dot where keys follow a name, an equals sign where a value does, or both."""
    found = set()
    for n in _alternatives(node):
        if "properties" in n or (_is_list(n) and "." in _endings(n["items"])):
            found.add(".")
        elif "type" in n and n["type"] != "null" or "enum" in n or "const" in n:
            found.add("=")
    return found
