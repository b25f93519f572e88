"""The standard library's TOML reader, or the package it came from on Python 3.10, and values as TOML on one line."""

import json
import re
import sys
from collections.abc import Mapping
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["TEXT", "inline", "tomllib"]

#: Encoding of files that people write; some editors put a byte order mark in front.
TEXT = "utf-8-sig"

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def inline(value: Any) -> str:
    """A value as TOML writes it on one line: tables in braces, lists in brackets."""
    if isinstance(value, Mapping):
        pairs = [f"{k if _BARE.fullmatch(k) else _text(k)} = {inline(v)}" for k, v in value.items()]
        return f"{{ {', '.join(pairs)} }}" if pairs else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(inline, value))}]"
    if isinstance(value, str):
        return _text(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _text(value: str) -> str:
    """A text in quotes; the escapes of JSON are TOML's as well, which escapes one more character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
