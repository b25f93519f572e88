"""Compares an installed hostnet with the table of `make same`: every metric of every short scenario, bit for bit.

    python .ci/same.py [WORD]        the cases whose name holds WORD, or all

The interpreter that runs it is the one that hostnet is installed for, on any architecture: a wheel that was compiled
elsewhere computes what the engine of this tree computes, or this program names what differs and ends with code 1.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

from hostnet import Scenario, _core
from hostnet._toml import tomllib
from hostnet.paths import SCENARIOS

ROOT = Path(__file__).parents[1]
CASES = ROOT / "crates/hostnet/same"


def changed(table: dict[str, Any], path: str, value: Any) -> None:
    """Sets a key by its dotted path; "(none)" removes it."""
    *parents, last = path.split(".")
    at: Any = table
    for part in parents:
        at = at[int(part)] if isinstance(at, list) else at.setdefault(part, {})
    if value == "(none)":
        at.pop(last, None)
    elif isinstance(at, list) and int(last) == len(at):
        at.append(value)
    else:
        at[int(last) if isinstance(at, list) else last] = value


def expected() -> dict[str, dict[str, float]]:
    """The committed table: values of metrics by case."""
    found: dict[str, dict[str, float]] = {}
    metrics: dict[str, float] = {}
    for line in (CASES / "table.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            metrics = found[line[1:-1]] = {}
        elif line:
            name, value = line.split(" ")
            metrics[name] = float(value)
    return found


def measured(case: dict[str, Any]) -> dict[str, float]:
    """Values of a case's metrics on this installation."""
    file = SCENARIOS / f"{case['scenario']}.toml"
    table = tomllib.loads(file.read_text(encoding="utf-8"))
    for path, value in case.get("set", {}).items():
        changed(table, path, value)
    values = json.loads(_core.run(Scenario(table, file=file).resolve()))["metrics"]
    return {name: math.nan if value is None else value for name, value in values.items()}


def main() -> int:
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    cases = tomllib.loads((CASES / "cases.toml").read_text(encoding="utf-8"))["case"]
    table, wrong, metrics, ran = expected(), 0, 0, 0
    for case in cases:
        name = case.get("name", case["scenario"])
        if word not in name:
            continue
        found, ran = measured(case), ran + 1
        for metric, value in table[name].items():
            got, metrics = found.get(metric, math.nan), metrics + 1
            if got != value and not (math.isnan(got) and not math.isfinite(value)):
                print(f"{name}: {metric} is {got!r}, and {value!r} in the table")
                wrong += 1
    print(f"{ran} cases, {metrics:,} values, {wrong} differ; {_core.version()}")
    return 1 if wrong or not ran else 0


if __name__ == "__main__":
    sys.exit(main())
