"""Recorded programs beside applications that were written by hand, and beside the same programs on a real machine.

On the platform ``icx`` both run on one saturated core, behind the same driver and NIC, so what differs is the application.
On the platform ``machine``, which ``hostnet calibrate`` has made of a real machine, the recorded programs run alone, and
``data/programs.csv`` has the CPU time per packet of the real ones on that machine (``recordings/measure.py``). The time
of testpmd's mode ``io``, which leaves packets unread, is the driver's and is taken off both.
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
#: The platform of the machine on which the real programs were measured.
MACHINE = "../recordings/machine.toml"
RECORDED = ("testpmd-io", "testpmd-macswap", "testpmd-5tswap", "l3fwd-lpm", "l3fwd-em", "memcached", "redis", "nginx")
#: Programs whose driver is not simulated.
SERVERS = ("memcached", "redis", "nginx")
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
# DPDK 22.11 edits packets in place and forwards frames of one line; instructions so that a packet has the recorded mean.
ADJUSTED: Mapping[str, Mapping[str, Any]] = {
    "l3fwd-lpm": {**WRITTEN["l3fwd-lpm"], "zero_copy": True, "instructions": 72},
    "l3fwd-em": {**WRITTEN["l3fwd-em"], "zero_copy": True, "instructions": 281},
}
# The machine's base has no costs of a poll-mode driver, so a packet arrives by a queue pair.
ON_MACHINE: Mapping[str, Any] = {"platform": MACHINE, "peripheral": None, "tenant.0.stack": None}
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
    """Each program as it was recorded and, where there is one, as it was written by hand; on the machine as recorded."""

    def point(program: str, how: str, app: Mapping[str, Any], machine: bool = False) -> Grid:
        traffic = REQUESTS if program == "memcached" and not machine else {}
        host = ON_MACHINE if machine else {}
        changes = {**OFFERED, **traffic, **host, "tenant.0.app": dict(app)}
        where = "machine" if machine else PLATFORM
        return on(BASE) * axes.PROGRAM(program) * axes.HOW(how) * axes.PLATFORM(where) * also(changes)

    found = []
    for program in RECORDED:
        app = {"kind": "recorded", "file": f"../recordings/{program}.rec"}
        found.append(point(program, "recorded", app))
        if program in WRITTEN:
            found.append(point(program, "written", WRITTEN[program]))
        if program in ADJUSTED:
            found.append(point(program, "adjusted", ADJUSTED[program]))
        found.append(point(program, "recorded", app, machine=True))
    return sum_of(found)


def core_ns(row: Mapping[str, Any]) -> float | None:
    """Time of the saturated core for a packet, its driver's work included."""
    rate = row.get("throughput_mrps")
    return 1e3 / rate if rate else None


def instructions(row: Mapping[str, Any]) -> float | None:
    """Instructions of the core for a packet, its driver's included."""
    time, cpi = core_ns(row), row.get("t0_cpi")
    return None if time is None or not cpi else time * clock(row["platform"]) / cpi


@cache
def clock(platform: str) -> float:
    """Clock of the cores of a row's platform, in GHz."""
    tables = platform_tables(platform if platform == PLATFORM else str(DATA / "recordings/machine.toml"))
    return ghz(tables["core"]["clock"])


def beside(rows: Rows) -> Sequence[Mapping[str, float | str | None]]:
    """Means of the recording, rates in relation to the application written by hand, and the measured times."""
    rates = {(r["platform"], r["program"], r["how"]): r["throughput_mrps"] for r in rows}
    empty = dict.fromkeys(UNITS)
    out: list[Mapping[str, float | str | None]] = []
    for r in rows:
        if r["how"] != "recorded":
            out.append(empty)
            continue
        own: dict[str, float | str | None] = {}
        s = recorded(r["program"])
        own["recorded_instructions"] = s["counts"]["instructions"]["mean"]
        own["frame_lines"] = s["regions"].get("frame", {"lines": 0.0})["lines"]
        for how, column in (("written", "rate_ratio"), ("adjusted", "adjusted_ratio")):
            of = rates.get((r["platform"], r["program"], how))
            own[column] = r["throughput_mrps"] / of if of else None
        if r["platform"] == "machine":
            own |= on_machine(r, rates.get(("machine", "testpmd-io", "recorded")))
        out.append({**empty, **own})
    return out


def on_machine(row: Mapping[str, Any], io_rate: float | None) -> Mapping[str, float | str | None]:
    """The simulated core's own time for a packet and the measured one, without their drivers."""
    time, real = core_ns(row), measured()[row["program"]]
    simulated = time - 1e3 / io_rate if time is not None and io_rate else None
    user, low, high = (float(real[k]) for k in ("user_ns", "user_ns_low", "user_ns_high"))
    driver = 0.0 if row["program"] in SERVERS else float(measured()[IO[real["driver"]]]["user_ns"])
    return {
        "measured_ns": user,
        "measured_low_ns": low,
        "measured_high_ns": high,
        "own_ns": simulated,
        "measured_own_ns": user - driver,
    }


#: Rows of the measurement that are a driver's own.
IO = {"net_null": "testpmd-io", "net_pcap": "testpmd-io-pcap"}
UNITS = {
    "recorded_instructions": "instructions",
    "frame_lines": "lines",
    "rate_ratio": "1",
    "adjusted_ratio": "1",
    "own_ns": "ns",
    "measured_own_ns": "ns",
    "measured_ns": "ns",
    "measured_low_ns": "ns",
    "measured_high_ns": "ns",
}

STUDIES = [
    Study(
        "real",
        "programs",
        "Recorded programs, applications written by hand, and the real programs",
        programs,
        ("throughput_mrps", "service_mean_us", "t0_cpi", "drop_rate"),
        derived={"core_ns": core_ns, "instructions": instructions},
        derived_units={"core_ns": "ns", "instructions": "instructions", **UNITS},
        across=beside,
    ),
]
