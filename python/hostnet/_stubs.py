"""Writes ``_fields.pyi``, the typed face of scenarios for editors and type checkers, from the engine's schema.

Run ``python -m hostnet._stubs`` (or ``make stubs``) after the schema has changed; a test compares the two.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .specs import PARTLY

FILE = Path(__file__).with_name("_fields.pyi")
HEADER = '''\
"""The keys of a scenario with types and meanings. Generated from the engine's schema by hostnet._stubs."""

from typing import Literal

from .specs import Section
'''
SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def render(schema: Mapping[str, Any]) -> str:
    """The text of the stub file for a schema."""
    # Types cannot say whether a key is required: the parts of `override` have the types of the platform's tables.
    text = json.dumps(dict(schema)).replace(f'{PARTLY}"', '"')
    schema = json.loads(text)
    defs = schema["$defs"]
    classes = {name: d for name, d in defs.items() if "properties" in d}
    for name, d in defs.items():
        classes.update((_variant(name, o), o) for o in d.get("oneOf", ()) if "properties" in o)
    classes = dict(sorted(classes.items())) | {"Fields": schema}
    return "\n\n".join([HEADER, *(_class(name, d, defs) for name, d in classes.items())])


def _variant(name: str, option: Mapping[str, Any]) -> str:
    return str(option["properties"]["kind"]["const"]).title().replace("_", "") + name


def _class(name: str, node: Mapping[str, Any], defs: Mapping[str, Any]) -> str:
    lines = [f"class {name}(Section):", *_doc(node.get("description"))]
    for key, prop in node["properties"].items():
        lines += [f"    {key}: {_type(prop, defs)}", *_doc(prop.get("description"))]
    return "\n".join(lines) + "\n"


def _doc(text: str | None) -> list[str]:
    flat = " ".join((text or "").split()).replace("\\", "\\\\").replace('"', "'")
    return textwrap.wrap(f'"""{flat}"""', 116, initial_indent="    ", subsequent_indent="    ") if flat else []


def _type(node: Mapping[str, Any], defs: Mapping[str, Any], name: str = "") -> str:
    if "$ref" in node:
        name = node["$ref"].rsplit("/", 1)[-1]
        return name if "properties" in defs[name] else _type(defs[name], defs, name)
    if "const" in node:
        return f"Literal[{node['const']!r}]"
    if "enum" in node:
        return f"Literal[{', '.join(repr(v) for v in node['enum'])}]"
    options = node.get("oneOf") or node.get("anyOf")
    if options:
        return " | ".join(dict.fromkeys(_variant(name, o) if "properties" in o else _type(o, defs) for o in options))
    kinds = node.get("type", "object")
    return " | ".join(
        f"list[{_type(node.get('items', {}), defs)}]" if k == "array" else SCALARS.get(k, "Section")
        for k in ([kinds] if isinstance(kinds, str) else kinds)
    )


def main() -> None:
    from .specs import schema

    FILE.write_text(render(schema()), encoding="utf-8")


if __name__ == "__main__":
    main()
