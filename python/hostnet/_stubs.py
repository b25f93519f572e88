"""Writes ``_fields.pyi``, the typed face of scenarios for editors and type checkers, from the engine's schema.

Run ``python -m hostnet._stubs`` (or ``make stubs``) after the schema has changed; a test compares the two.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("_fields.pyi")
HEADER = '''\
"""The keys of a scenario with types and meanings. Generated from the engine's schema by hostnet._stubs."""

from typing import Literal

from .specs import Section
'''
SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def render(schema: Mapping[str, Any]) -> str:
    """The text of the stub file for a schema."""
    tables = {name: d for name, d in schema.get("$defs", {}).items() if "properties" in d or _variants(d)}
    parts = [HEADER]
    for name, d in sorted(tables.items()):
        if "properties" in d:
            parts.append(_class(name, d, tables))
    parts.append(_class("Fields", schema, tables))
    return "\n\n".join(parts)


def _class(name: str, node: Mapping[str, Any], tables: Mapping[str, Any]) -> str:
    lines = [f"class {name}(Section):"]
    if node.get("description"):
        lines += _doc(node["description"])
    for key, prop in node["properties"].items():
        lines.append(f"    {key}: {_type(prop, tables)}")
        doc = prop.get("description") or ""
        if doc:
            lines += _doc(doc)
    return "\n".join(lines) + "\n"


def _doc(text: str) -> list[str]:
    flat = " ".join(text.split()).replace("\\", "\\\\").replace('"""', "'''")
    if flat.endswith('"'):
        flat += " "
    return textwrap.wrap(f'"""{flat}"""', 116, initial_indent="    ", subsequent_indent="    ")


def _variants(node: Mapping[str, Any]) -> list[str]:
    """The tables among which a key such as ``kind`` chooses."""
    return [o["$ref"].rsplit("/", 1)[-1] for o in node.get("oneOf", ()) if "$ref" in o and "properties" in o]


def _type(node: Mapping[str, Any], tables: Mapping[str, Any]) -> str:
    if "$ref" in node:
        name = node["$ref"].rsplit("/", 1)[-1]
        if name in tables:
            return " | ".join(_variants(tables[name])) or name
        return _type(_defs(name), tables)
    if "const" in node:
        return f"Literal[{node['const']!r}]"
    if "enum" in node:
        return f"Literal[{', '.join(repr(v) for v in node['enum'])}]"
    for union in ("oneOf", "anyOf", "allOf"):
        if union in node:
            return " | ".join(dict.fromkeys(_type(o, tables) for o in node[union]))
    kind = node.get("type")
    if isinstance(kind, list):
        return " | ".join(SCALARS.get(k, k) if k not in ("array", "object") else _type({**node, "type": k}, tables)
                          for k in kind)
    if kind == "array":
        return f"list[{_type(node.get('items', {}), tables)}]"
    return SCALARS.get(kind or "", "Section" if kind == "object" else "object")


def _defs(name: str) -> Mapping[str, Any]:
    from .specs import schema

    return schema()["$defs"][name]


def main() -> None:
    from .specs import schema

    FILE.write_text(render(schema()), encoding="utf-8")


if __name__ == "__main__":
    main()
