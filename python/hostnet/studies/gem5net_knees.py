"""Knees of forwarders on a fine grid, beside the rates that the released scripts of "Userspace Networking in gem5" try around them.

``data/gem5net_knees.csv`` has the ranges of the scripts, in steps of the authors' grid. Every point is a bandwidth test whose rates are
multiples of 0.25 Gb/s, about a quarter of such a step. No number of the platform was chosen by these ranges.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

from ..paths import DATA
from . import Rows, axes
from .gem5net import (
    APP,
    CORE,
    DCA,
    FRAMES,
    PLATFORM,
    ROB,
    STEP,
    TEST,
    UNTIL_RINGS_COUNT_LITTLE,
    msb_gbps,
    study,
)
from .grid import Grid, also, by_length, sum_of
from .pages import rewrite

#: Step between the rates that a test tries.
FINE = "0.25 Gbps"
KEY = ("app", "packet_bytes", "interval_ns", "dca", "core", "rob")


@cache
def brackets() -> Mapping[tuple[str, ...], Mapping[str, str]]:
    """The scripts' ranges by a point's columns, as in the file."""
    with (DATA / "gem5net_knees.csv").open(encoding="utf-8") as f:
        rows = csv.DictReader(line for line in f if not line.startswith("#"))
        return {tuple(r[k] for k in KEY): r for r in rows}


def bracket(row: Mapping[str, Any]) -> Mapping[str, str]:
    """The range of a point."""
    return brackets()[tuple("" if row[k] is None else str(row[k]) for k in KEY)]


def gbps(row: Mapping[str, Any], end: str) -> float:
    """An end of a point's range, in frame bits."""
    size = int(row["packet_bytes"])
    return int(bracket(row)[end]) * STEP[size] * size * 8 / 1e9


def low_gbps(row: Mapping[str, Any]) -> float:
    """Lowest rate of the script."""
    return gbps(row, "low_step")


def high_gbps(row: Mapping[str, Any]) -> float:
    """Highest rate of the script."""
    return gbps(row, "high_step")


def off_pct(row: Mapping[str, Any]) -> float | None:
    """How far the knee is outside the script's range, in percent of the nearer end; 0 inside."""
    knee = msb_gbps(row)
    if knee is None:
        return None
    low, high = low_gbps(row), high_gbps(row)
    return 100 * (knee / low - 1 if knee < low else knee / high - 1 if knee > high else 0)


def points() -> Grid:
    """A bandwidth test for each range."""
    return sum_of(
        PLATFORM("gem5")
        * DCA(b["dca"])
        * CORE(b["core"])
        * ROB(int(b["rob"]))
        * APP(b["app"])
        * FRAMES(int(b["packet_bytes"]))
        * axes.INTERVAL_NS(int(b["interval_ns"]) if b["interval_ns"] else None)
        for b in brackets().values()
    )


# Tests with direct cache access last as long as those without it, so that rings which fill cannot fail a rate of the fine grid.
LENGTH = also({"run.step": FINE, "run.requests": by_length(UNTIL_RINGS_COUNT_LITTLE, 10_000)})

STUDIES = [
    study(
        "knees",
        "Knees beside the ranges of the released scripts",
        points() * TEST * LENGTH,
        ("msb_gbps", "offered_mrps"),
        {"low_gbps": low_gbps, "high_gbps": high_gbps, "off_pct": off_pct},
        units={"low_gbps": "Gb/s", "high_gbps": "Gb/s", "off_pct": "%"},
    )
]

NAMES = {"testpmd": "TestPMD", "rxptx-10ns": "RXpTX", "rxptx-1us": "RXpTX", "rxptx": "RXpTX"}


def named(row: Mapping[str, Any]) -> str:
    """Application, machine and frame of a row."""
    ns = int(row["interval_ns"] or 0)
    parts = [NAMES[row["app"]], f"{ns // 1000} us" if ns >= 1000 else f"{ns} ns" if ns else ""]
    parts += ["no direct cache access"] if row["dca"] == "off" else []
    parts += ["in-order core"] if row["core"] == "in-order" else []
    parts += [f"{row['rob']} entries"] if int(row["rob"]) != 128 else []
    return ", ".join(part for part in parts if part)


def page(rows: Rows) -> str:
    """The page's table."""
    inside = sum(not float(r["off_pct"]) for r in rows)
    lines = [
        "# Knees beside the released scripts",
        "",
        'This page compares the model\'s knees with the rates that the released scripts of "Userspace Networking in gem5" try around them.',
        "`python -m hostnet.studies.gem5net_knees` wrote it from the results of `hostnet study gem5net knees`.",
        "[The fidelity page](../fidelity/gem5net.md) explains the system, and the [glossary](../use/glossary.md) the terms.",
        "",
        f"{inside} of {len(rows)} knees are inside the range of their script.",
        "",
        "| application | frame | here, Gb/s | range of the script, Gb/s | outside by | script, line |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for r in rows:
        b = brackets()[tuple(r[k] for k in KEY)]
        off = float(r["off_pct"])
        lines.append(
            f"| {named(r)} | {r['packet_bytes']} B | {float(r['msb_gbps']):.2f} | {float(r['low_gbps']):.1f} to "
            f"{float(r['high_gbps']):.1f} | {f'{off:+.0f} %' if off else ''} | `{b['script']}`, {b['line']} |"
        )
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    rewrite(sys.argv[1], sys.argv[2], page)
