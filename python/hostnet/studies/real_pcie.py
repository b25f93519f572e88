"""Device-side latency and rate of DMA on real machines, and on platforms made from their data sheets.

A device behind a PCIe port reads or writes blocks of one size, one at a time or many together, as pcie-bench does on an
NFP-6000. ``data/real_pcie.csv`` has the measured figures.
"""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from ..paths import DATA
from . import Rows, Study, axes
from .grid import Grid, also, by_length, on, sum_of
from .pages import rewrite
from .real_memory import NEAR, NEAR_CURVE, deviation

BASE = "device-dma"
#: DMA operations under way in a test of rates: twelve micro-engines of eight contexts each, every one of which waits for
#: its operation (pcie-bench's firmware, me/Makefile and me/pcie_dma.c).
UNDER_WAY = 96
#: Time of the device's DMA engine beside the bus: what a cold read of 64 B takes longer through it than as a command,
#: on both machines.
ENGINE_NS = 120
#: Rates that are the device's own: those of writes of these sizes differ by less than 0.2 % between three hosts of three
#: generations, and do not count.
DEVICES_OWN = {("writes", 64), ("writes", 128), ("writes", 256)}
UNITS = {"command read": "ns", "read": "ns", "reads": "Gb/s", "writes": "Gb/s"}
TITLES = {
    "command read": "latency of a read by command",
    "read": "latency of a read by the DMA engine",
    "reads": "rate of reads",
    "writes": "rate of writes",
}

LINES = axes.PLACE.said("state of the lines: cold (in memory alone) or warm (in the LLC)")
TEST = axes.REQUEST.said("what the device does")
BLOCK = axes.BLOCK_BYTES.said("bytes of an operation")

Setting = tuple[str, str, str, int]


@cache
def measured() -> Mapping[Setting, float]:
    """Measured figures by platform, test, state of the lines and bytes."""
    with (DATA / "real_pcie.csv").open(encoding="utf-8") as f:
        rows = csv.DictReader(line for line in f if not line.startswith("#"))
        return {(r["platform"], r["test"], r["lines"], int(r["bytes"])): float(r["value"]) for r in rows}


def setting(row: Mapping[str, Any]) -> Setting:
    """Key of a row's setting."""
    return str(row["platform"]), str(row["request"]), str(row["place"]), int(row["block_bytes"])


def point(name: str, test: str, lines: str, size: int) -> Grid:
    """One operation after another, or as many as the device's contexts have under way."""
    largest = size & -size  # the largest power of two that divides the size
    many = test in ("reads", "writes")
    changes = {
        "peripheral.0.op": "p2m_write" if test == "writes" else "p2m_read",
        "peripheral.0.block": f"{size} B",
        "peripheral.0.quirks.interleave": f"{largest} B",
        "peripheral.0.queue_depth": UNDER_WAY if many else 1,
        "peripheral.0.quirks.command_latency": "0 ns" if test == "command read" else f"{ENGINE_NS} ns",
        # Reads of a few lines find them in the LLC after the first time, as behind a host that has touched them.
        "override.caches.llc.quirks.device_read": "install" if lines == "warm" else "snapshot",
        "run.time": by_length("200 us", "50 us"),
    }
    return on(BASE) * axes.PLATFORM.at("platform")(name) * TEST(test) * LINES(lines) * BLOCK(size) * also(changes)


def pcie(quick: bool) -> Grid:
    """The measured settings."""
    return sum_of(point(*s) for s in measured())


def value(row: Mapping[str, Any]) -> float | None:
    """Time of an operation in ns where one is under way, and the rate of the payload in Gb/s otherwise."""
    if row["request"] in ("reads", "writes"):
        rate = row.get("p2m_gbs")
        return None if rate is None else 8 * float(rate)
    per_second = row.get("p2m_iops")
    return 1e9 / float(per_second) if per_second else None


def beside(rows: Rows) -> Sequence[Mapping[str, float | str | None]]:
    """The measured figure of each row."""
    return [{"their_figure": measured()[setting(r)], "figure_unit": UNITS[str(r["request"])]} for r in rows]


def judged(row: Mapping[str, Any]) -> bool:
    """Whether a figure says something of the host."""
    return (str(row["request"]), int(row["block_bytes"])) not in DEVICES_OWN


def rms(pairs: Sequence[tuple[float, float]]) -> float:
    """Root of the mean square of relative deviations of pairs: ours, measured."""
    return math.sqrt(sum((a / b - 1) ** 2 for a, b in pairs) / len(pairs))


def page(rows: Rows) -> str:
    """The comparison as a page: counts within the aim, then every setting."""
    pairs: dict[tuple[str, str], list[tuple[Mapping[str, Any], float, float]]] = {}
    for r in rows:
        ours = r.get("figure") or value(r)
        pairs.setdefault((str(r["platform"]), str(r["request"])), []).append(
            (r, float(str(ours)), measured()[setting(r)])
        )
    summary = []
    for (name, test), every in pairs.items():
        found = [(r, a, b) for r, a, b in every if judged(r)]
        near = sum(abs(a / b - 1) <= NEAR for _, a, b in found)
        over = rms([(a, b) for _, a, b in found])
        summary.append(f"| `{name}` | {TITLES[test]} | {near} of {len(found)} | {100 * over:.0f} % |")
    text = [
        "# Fidelity: DMA over PCIe on real machines",
        "",
        "This page compares what a device measured on real machines with ours: the latency of its reads, and the rates of reads and writes.",
        "`python -m hostnet.studies.real_pcie` wrote it from the results of `hostnet study real pcie`.",
        "The device is a Netronome NFP-6000 behind PCIe 3.0 x8 under pcie-bench (Neugebauer et al., SIGCOMM 2018). The platforms",
        "are made from data sheets; what no data sheet says is as on `cascadelake`.",
        "",
        f"The aim is {100 * NEAR:.0f} % for each figure, and {100 * NEAR_CURVE:.0f} % for the root of the mean square over the sizes.",
        "",
        "| platform | figure | within the aim | over the sizes |",
        "|---|---|---:|---:|",
        *summary,
        "",
        "![Latency and rates over the size of an operation: lines are ours, points are measured](../img/real_pcie.svg)",
        "",
        "*Lines are ours, points are measured (`hostnet study real pcie`).*",
        "",
        f"Two properties of the device are inputs: {UNDER_WAY} operations under way (its firmware), and {ENGINE_NS} ns of its DMA",
        "engine, which is the difference of its own two ways to read 64 B. Writes of up to 256 B do not count: three hosts of three",
        "generations have the same rates of them, so that the device decides.",
        "",
        "## Every setting",
    ]
    for (name, test), found in pairs.items():
        unit = UNITS[test]
        text += [
            "",
            f"### `{name}`, {TITLES[test]}",
            "",
            f"| lines | bytes | ours, {unit} | measured, {unit} | |",
            "|---|---:|---:|---:|---:|",
        ]
        for r, a, b in found:
            form = ".0f" if unit == "ns" else ".1f"
            text.append(
                f"| {r['place']} | {r['block_bytes']} | {a:{form}} | {b:{form}} | {deviation(a, b) if judged(r) else 'device'} |"
            )
    return "\n".join(text) + "\n"


STUDIES = [
    Study(
        "real",
        "pcie",
        "DMA of a device on real machines, and on platforms from their data sheets",
        pcie,
        ("figure", "their_figure", "p2m_gbs", "p2m_iops", "iio_read_lat_ns", "iio_write_lat_ns"),
        derived={"figure": value},
        derived_units={"figure": "", "their_figure": "", "figure_unit": ""},
        across=beside,
        axes=axes.with_own(LINES, TEST, BLOCK),
    ),
]

if __name__ == "__main__":
    rewrite(sys.argv[1], sys.argv[2], page)
