"""Recorded programs beside applications that were written by hand, and beside the same programs on a real machine.

Both run on one saturated core of one simulated host, behind the same driver and NIC, so what differs is the application.
``data/programs.csv`` has the CPU time per packet of the real programs (``recordings/measure.py``).
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from ..calibrate.transfer import ghz, platform_tables
from ..paths import DATA
from ..recorder import read, summary
from . import Rows, Study, axes
from .grid import Grid, also, by_length, on, sum_of

BASE, PLATFORM = "recorded-testpmd", "icx"
RECORDED = ("testpmd-macswap", "testpmd-5tswap", "l3fwd-lpm", "l3fwd-em", "memcached")
# As many routes as the recorded programs had. Instructions of memcached on x86-64 are those of docs/models/applications.md.
WRITTEN: Mapping[str, Mapping[str, Any]] = {
    "testpmd-macswap": {"kind": "testpmd", "mode": "macswap"},
    "l3fwd-lpm": {"kind": "l3fwd", "rules": 1024},
    "l3fwd-em": {"kind": "l3fwd", "rules": 1024, "table": "exact_match"},
    "memcached": {
        "kind": "memcached",
        "hash_power": 16,
        "item_overhead": 99,
        "instructions": 2998,
        "set_instructions": 4046,
        "get_atomics": 16,
        "set_atomics": 31,
    },
}
# More than a core sustains.
OFFERED: Mapping[str, Any] = {
    "traffic.arrivals": "fixed",
    "traffic.rate": "100 Mpps",
    "run.requests": by_length(100_000, 20_000),
}
REQUESTS: Mapping[str, Any] = {
    "traffic.arrivals": "pcap",
    "traffic.pcap": {"file": "../captures/memcached-zipf.pcap", "timing": "fixed"},
    "traffic.packet": None,
    "traffic.rate": "5 Mrps",
}


@cache
def measured() -> Mapping[str, Mapping[str, str]]:
    """Rows of the measurement by program."""
    with (DATA / "programs.csv").open(encoding="utf-8") as f:
        return {row["program"]: row for row in csv.DictReader(f)}


@cache
def recorded(program: str) -> Mapping[str, Any]:
    """The summary of a shipped recording."""
    return summary(read(DATA / "recordings" / f"{program}.rec"))


def programs(quick: bool) -> Grid:
    """Each program as it was recorded and, where there is one, as it was written by hand."""

    def point(program: str, how: str, app: Mapping[str, Any]) -> Grid:
        traffic = REQUESTS if program == "memcached" else {}
        changes = {**OFFERED, **traffic, "tenant.0.app": dict(app)}
        return on(BASE) * axes.PROGRAM(program) * axes.HOW(how) * also(changes)

    found = []
    for program in RECORDED:
        found.append(point(program, "recorded", {"kind": "recorded", "file": f"../recordings/{program}.rec"}))
        if program in WRITTEN:
            found.append(point(program, "written", WRITTEN[program]))
    return sum_of(found)


def core_ns(row: Mapping[str, Any]) -> float | None:
    """Time of the saturated core for a packet, its driver's work included."""
    rate = row.get("throughput_mrps")
    return 1e3 / rate if rate else None


def instructions(row: Mapping[str, Any]) -> float | None:
    """Instructions of the core for a packet, its driver's included."""
    time, cpi = core_ns(row), row.get("t0_cpi")
    return None if time is None or not cpi else time * ghz(platform_tables(PLATFORM)["core"]["clock"]) / cpi


def beside(rows: Rows) -> Sequence[Mapping[str, float | str | None]]:
    """Means of the recording, rates in relation to the application written by hand, and the measured time."""
    written = {r["program"]: r["throughput_mrps"] for r in rows if r["how"] == "written"}
    out: list[Mapping[str, float | str | None]] = []
    for r in rows:
        if r["how"] != "recorded":
            out.append(dict.fromkeys(("recorded_instructions", "frame_lines", "rate_ratio", "measured_ns")))
            continue
        s, of = recorded(r["program"]), written.get(r["program"])
        real = measured().get(r["program"])
        out.append(
            {
                "recorded_instructions": s["counts"]["instructions"]["mean"],
                "frame_lines": s["regions"]["frame"]["lines"],
                "rate_ratio": r["throughput_mrps"] / of if of else None,
                "measured_ns": float(real["user_ns"]) if real else None,
            }
        )
    return out


STUDIES = [
    Study(
        "real",
        "programs",
        "Recorded programs, applications written by hand, and the real programs",
        programs,
        ("throughput_mrps", "service_mean_us", "t0_cpi", "drop_rate"),
        derived={"core_ns": core_ns, "instructions": instructions},
        derived_units={
            "core_ns": "ns",
            "instructions": "instructions",
            "recorded_instructions": "instructions",
            "frame_lines": "lines",
            "rate_ratio": "1",
            "measured_ns": "ns",
        },
        across=beside,
    ),
]
