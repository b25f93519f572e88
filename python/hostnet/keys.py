"""The schema in readable form: the keys of one table of a scenario, with valid values, default and meaning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .errors import HostnetError
from .paths import nearest
from .specs import schema

Node = Mapping[str, Any]
#: Tables that a reference describes last, because their tables are those of others.
_LAST = ("tenant", "client")
#: Name of the tables with the habits of single processors, simulators and drivers, which platforms set.
QUIRKS = "quirks"


def rows(path: str) -> list[list[str]]:
    """Key, valid values, default and meaning, for each key of the table ``path`` or for each choice of a single key.

    A kind is part of the path: ``tenant.app`` lists the kinds, and ``tenant.app.mica`` lists the keys of one kind.
    Raises HostnetError for a path that does not exist.
    """
    node: Node = schema()
    done: list[str] = []
    # A scenario writes values of the platform under `override`.
    for part in ("override" + path[8:] if path.startswith("platform.") else path).split("."):
        if part.isdigit():  # an element of a list
            continue
        names = _below(node)
        if part not in names:
            where = ".".join(done) or "a scenario"
            hint = nearest(part, list(names)) if names else "it is a single value."
            raise HostnetError(f"schema {path}: {where} has no key {part!r}; {hint}")
        node = names[part]
        done.append(part)
    below = _below(node)
    return [[name, *_about(n)] for name, n in below.items()] or [[done[-1], *_about(node)]]


def tables() -> Iterator[tuple[str, list[list[str]]]]:
    """Every table of a scenario by its path, the scenario itself first, with the rows of its keys; choices of a key are explained
    in its row. Tables of tenants and of the client come last, because they repeat others."""
    yield from _tables(schema(), "")


def distinct() -> Iterator[tuple[str, list[list[str]], str]]:
    """The tables of a scenario as :func:`tables` has them, each with the path of the first table that has the same keys. The
    tables below a repeated one are left out."""
    described: dict[str, str] = {}
    repeated: tuple[str, ...] = ()
    for path, cells in tables():
        if path.startswith(repeated) and repeated:
            continue
        first = described.setdefault(repr(cells), path)
        if first != path:
            repeated += (f"{path}.",)
        yield path, cells, first


def is_quirk(path: str) -> bool:
    """Whether the table at a path is one of quirks, or below one."""
    return QUIRKS in path.split(".")


def _tables(node: Node, path: str) -> Iterator[tuple[str, list[list[str]]]]:
    below = _below(node)
    yield path, [[name, *_about(n)[:2], _with_choices(n)] for name, n in below.items()]
    for name, n in sorted(below.items(), key=lambda item: _LAST.index(item[0]) if item[0] in _LAST else -1):
        if _is_table(n):
            yield from _tables(n, f"{path}.{name}" if path else name)


def _is_table(node: Node) -> bool:
    """Whether a key has keys below it: those of a table, or of the tables in a list."""
    return any(
        "properties" in o or (isinstance(o.get("items"), Mapping) and _is_table(o["items"])) for o in _choices(node)
    )


def _with_choices(node: Node) -> str:
    """The meaning of a key, and of each of its choices that has one."""
    named = ((o.get("const"), " ".join(o.get("description", "").split())) for o in _choices(node))
    return " ".join([_about(node)[2], *(f"`{choice}`: {about}" for choice, about in named if choice and about)]).strip()


def _open(node: Node) -> Node:
    """Schema to which a reference points; descriptions at the place of the reference take precedence."""
    while "$ref" in node:
        node = {**schema()["$defs"][node["$ref"].rsplit("/", 1)[-1]], **{k: v for k, v in node.items() if k != "$ref"}}
    return node


def _choices(node: Node) -> Iterator[Node]:
    """The alternatives of a node, including alternatives of alternatives; the node itself where it has none."""
    node = _open(node)
    found = [
        o
        for union in ("oneOf", "anyOf")
        for o in node.get(union, ())
        if isinstance(o, Mapping) and o.get("type") != "null"
    ]
    if not found:
        yield node
    for o in found:
        yield from _choices(o)


def _below(node: Node) -> dict[str, Node]:
    """The names that may follow in a path: keys of a table, kinds, choices, or the keys of a list's elements."""
    names: dict[str, Node] = {}
    for o in _choices(node):
        if o.get("type") == "array" and isinstance(o.get("items"), Mapping):
            names.update(_below(o["items"]))
        elif "kind" in o.get("properties", {}):
            kind = o["properties"]["kind"]
            names.update({k: o for k in (kind.get("enum") or [kind.get("const")]) if k})
        elif "properties" in o:
            names.update(o["properties"])
        elif "const" in o:
            names[str(o["const"])] = {**o, "const": None}
    if (
        len(names) == 1
        and (only := next(iter(names.values()))).get("properties", {}).get("kind", {}).get("const") in names
    ):
        return {k: v for k, v in only["properties"].items() if k != "kind"}
    return names


def patterns(node: Node) -> list[str]:
    """Patterns of the texts that are valid for a key; empty where any text is valid."""
    return [o["pattern"] for o in _choices(node) if "pattern" in o]


def _about(node: Node) -> list[str]:
    opened = _open(node)
    default = opened.get("default")
    shown = "" if default is None or isinstance(default, (Mapping, list)) else str(default)
    return [
        _takes(node),
        shown.lower() if isinstance(default, bool) else shown,
        " ".join(opened.get("description", "").split()),
    ]


def _takes(node: Node) -> str:
    """Values that are valid for a key, in a word or by example."""
    found: dict[str, None] = {}
    for o in _choices(node):
        kind = o.get("type")
        kind = next((k for k in kind if k != "null"), None) if isinstance(kind, list) else kind
        if o.get("const") is not None:
            found[str(o["const"])] = None
        elif "const" in o:
            found[""] = None
        elif o.get("enum"):
            found.update(dict.fromkeys(map(str, o["enum"])))
        elif "properties" in o:
            found["table"] = None
        elif o.get("examples"):
            examples = [f'"{e}"' if isinstance(e, str) else str(e) for e in o["examples"]]
            # A named type is shown by its name, because its examples are not of one kind.
            found.update(
                {f"{o['title']}, as {' or '.join(examples)}": None} if "title" in o else dict.fromkeys(examples)
            )
        else:
            words = {
                "integer": "whole number",
                "boolean": "true, false",
                "array": "list",
                "string": "text",
                "object": "table",
            }
            found[words.get(str(kind), str(kind or ""))] = None
    return ", ".join(found)
