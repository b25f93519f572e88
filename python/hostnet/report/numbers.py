"""Numbers as the report prints them, and quantities of a scenario as numbers."""

from __future__ import annotations

import math
import re
from typing import Any

_PREFIX = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30}


def short(value: float | None) -> str:
    """A number to three significant digits, without an exponent up to a billion; a dash for None."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    size = abs(value)
    if size < 1e-3 or size >= 1e9:
        return f"{value:.2e}"
    digits = max(0, 2 - math.floor(math.log10(size) + 1e-12))
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def quantity(text: str, unit: str) -> float | None:
    """The number of ``unit`` in a quantity such as "100 Gbps"; None for another unit or no quantity."""
    found = re.fullmatch(r"([\d._]+)\s*([kKMGT]i?|)" + re.escape(unit), text.strip())
    if not found or found[2] not in _PREFIX:
        return None
    return float(found[1].replace("_", "")) * _PREFIX[found[2]]


def rounded(value: Any) -> Any:
    """A number to six significant digits, as charts and tables embed it; None for what is no finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    return float(f"{value:.6g}") if math.isfinite(value) else None
