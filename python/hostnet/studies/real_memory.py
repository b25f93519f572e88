"""Latency under load of real machines, and of the same machines simulated from data sheets.

One core follows pointers while the others stream, as Mess and Intel's Memory Latency Checker (MLC) do: each throttle of the
streams is a point of latency over bandwidth. Further rows have one core that streams alone. ``data/real_memory.csv`` has
the measured curves, and ``data/real_cores.csv`` the measured bandwidths of one core.
"""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

from ..api import platform
from ..calibrate.transfer import ghz
from ..paths import DATA
from . import Rows, Study, axes
from .grid import Grid, also, by_length, on, sum_of
from .pages import rewrite

BASE, ALONE = "loaded-latency", "core-stream"
#: Traffic over the peak of the channels that streams would have if memory took no time; 0 is the chase alone, and
#: nothing throttles the streams of the last one.
SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.3, 1.7, 9.0)
QUICK_SHARES = (0.0, 0.4, 1.0, 9.0)
#: Instructions of an unthrottled stream for a line, and of the chase for a load, besides the access.
FASTEST, CHASE = 3, 1
#: Instructions of a stream for a line that leave memory to the chase.
IDLE = 10_000_000

#: An LLC that takes less time to fill: no buffer fits any LLC, so that its size changes nothing. It is not so small that it
#: fills before the L2s hold modified lines, which the streams then write back.
LLC: Mapping[str, Any] = {
    "override.caches.llc.size": "48 MiB",
    "override.caches.llc.ways": 12,
    "override.caches.llc.slices": 64,
}

#: How near is aimed for: unloaded latency and saturated bandwidth, and the root of the mean square over a curve.
NEAR, NEAR_CURVE = 0.10, 0.15
#: Share of the smaller saturated bandwidth up to which curves are compared. Beyond it, latency follows the queue that a
#: generator can fill rather than the bandwidth.
COMPARED = 0.95
#: Platforms whose unloaded latency is fitted to the curves' own machines, by the provenance of `memory.static_latency_ns`.
INPUTS = ("spr-8460y", "spr-8480")

UNDER_LOAD, ONE_CORE = "under load", "one core"
Curve = tuple[str, int]
#: Points of a curve: bandwidth in GB/s and latency in ns.
Points = Sequence[tuple[float, float]]

SHARE = axes.SHARE.said("traffic of the streams without waiting, over the peak of the memory channels")


@cache
def measured() -> Mapping[Curve, Points]:
    """Measured curves by platform and share of reads in percent, in the order of their bandwidth."""
    curves: dict[Curve, list[tuple[float, float]]] = {}
    with (DATA / "real_memory.csv").open(encoding="utf-8") as f:
        for r in csv.DictReader(line for line in f if not line.startswith("#")):
            curves.setdefault((r["platform"], int(r["read_pct"])), []).append((float(r["gbs"]), float(r["ns"])))
    return {curve: sorted(points) for curve, points in curves.items()}


@cache
def measured_cores() -> Mapping[Curve, tuple[str, float]]:
    """Kernel and bandwidth in GB/s of one core, by platform and share of reads in percent."""
    with (DATA / "real_cores.csv").open(encoding="utf-8") as f:
        rows = csv.DictReader(line for line in f if not line.startswith("#"))
        return {(r["platform"], int(r["read_pct"])): (r["kernel"], float(r["gbs"])) for r in rows}


@cache
def tool(name: str) -> str:
    """The program that measured the machine of a platform."""
    with (DATA / "real_memory.csv").open(encoding="utf-8") as f:
        rows = csv.DictReader(line for line in f if not line.startswith("#"))
        return next(r["tool"] for r in rows if r["platform"] == name)


@cache
def machine(name: str) -> tuple[int, float, float, int]:
    """Cores of a socket, their clock in GHz, the instructions per cycle of code without misses, and the instructions
    of an access to a line."""
    p = platform(name)
    cores = (p.get("nodes") or {}).get("cores") or p["core"]["count"]
    return cores, ghz(p["core"]["clock"]), p["core"]["compute_ipc"], p["core"]["stores_per_line"]


def peak_gbs(name: str) -> float:
    """Peak of a platform's memory channels in GB/s, each of 8 B."""
    memory = platform(name)["memory"]
    return float(memory["channels"] * 8 * int(memory["standard"].rpartition("-")[2]) / 1000)


def instructions(name: str, read_pct: int, share: float) -> int:
    """Instructions of a stream for a line with which all streams together offer a share of the peak: a line is read,
    and the lines that are stored to are written as well."""
    cores, clock, ipc, access = machine(name)
    if share in (0, SHARES[-1]):
        return FASTEST if share else IDLE
    line_ns = 64 * (cores - 1) / (read_pct / 100) / (share * peak_gbs(name))
    return max(FASTEST, round(line_ns * clock * ipc) - access)


def point(name: str, read_pct: int, share: float) -> Grid:
    """One throttle of a machine's streams."""
    cores = machine(name)[0]
    streams = {
        "tenant.1.cores": cores - 1,
        "tenant.1.app.read_fraction": read_pct / 100,
        "tenant.1.app.instructions": instructions(name, read_pct, share),
    }
    return (
        on(BASE)
        * axes.CASE(UNDER_LOAD)
        * axes.PLATFORM.at("platform")(name)
        * axes.READ_PCT(read_pct)
        * SHARE(share)
        * also({**streams, **LLC, "run.time": by_length("50 us", "20 us")})
    )


def core(name: str, read_pct: int) -> Grid:
    """One core of a machine that streams alone."""
    changes = {"tenant.0.app.read_fraction": read_pct / 100, **LLC, "run.time": by_length("100 us", "40 us")}
    return (
        on(ALONE)
        * axes.CASE(ONE_CORE)
        * axes.PLATFORM.at("platform")(name)
        * axes.READ_PCT(read_pct)
        * SHARE(None)
        * also(changes)
    )


def memory(quick: bool) -> Grid:
    """Every machine and mix of the measured curves, with fewer throttles in a quick study, and one core alone."""
    shares = QUICK_SHARES if quick else SHARES
    loaded = sum_of(point(name, pct, share) for name, pct in measured() for share in shares)
    return loaded + sum_of(core(*c) for c in measured_cores())


def under_load(row: Mapping[str, Any]) -> bool:
    """Whether a row belongs to a curve."""
    return bool(row.get("case", UNDER_LOAD) == UNDER_LOAD)


def chase_ns(row: Mapping[str, Any]) -> float | None:
    """Time of one step of the chase: the access to a word, and `CHASE` instructions."""
    clock = machine(str(row["platform"]))[1]
    cpi = row.get("t0_cpi")
    return None if cpi is None or not under_load(row) else float(cpi) * (1 + CHASE) / clock


def at(points: Points, gbs: float) -> float | None:
    """Latency of a curve at a bandwidth, on straight lines between its points; None outside of them."""
    ordered = sorted(points)
    for (b0, ns0), (b1, ns1) in pairwise(ordered):
        if b0 <= gbs <= b1:
            return ns0 if b1 == b0 else ns0 + (ns1 - ns0) * (gbs - b0) / (b1 - b0)
    return None


def saturated(points: Points) -> float:
    """Largest bandwidth of a curve."""
    return max(gbs for gbs, _ in points)


def distance(ours: Points, theirs: Points) -> float:
    """Root of the mean square of the latencies' relative deviation, at the measured bandwidths up to `COMPARED` of the
    smaller saturated bandwidth."""
    most = COMPARED * min(saturated(ours), saturated(theirs))
    off = [found / ns - 1 for gbs, ns in theirs if gbs <= most and (found := at(ours, gbs)) is not None]
    return math.sqrt(sum(x * x for x in off) / len(off))


def curves(rows: Rows) -> dict[Curve, Points]:
    """Simulated curves by platform and mix, in the order of their bandwidth, as far as they have been measured."""
    found: dict[Curve, list[tuple[float, float]]] = {}
    for r in filter(under_load, rows):
        gbs, ns = (0.0 if float(r["share"]) == 0 else float(r["mem_bw_gbs"])), r.get("chase_ns") or chase_ns(r)
        if ns is not None:
            found.setdefault((str(r["platform"]), int(r["read_pct"])), []).append((gbs, float(ns)))
    return {curve: sorted(points) for curve, points in found.items() if curve in measured()}


def beside(rows: Rows) -> Sequence[Mapping[str, float | str | None]]:
    """The measured latency at the bandwidth of each row, None beyond the measured bandwidths; or the measured bandwidth of
    one core."""
    out: list[Mapping[str, float | str | None]] = []
    for r in rows:
        curve = str(r["platform"]), int(r["read_pct"])
        if under_load(r):
            out.append(
                {"their_ns": at(measured()[curve], 0.0 if r["share"] == 0 else r["mem_bw_gbs"]), "their_gbs": None}
            )
        else:
            out.append({"their_ns": None, "their_gbs": measured_cores()[curve][1]})
    return out


def deviation(ours: float, theirs: float) -> str:
    """Relative deviation in percent, with its sign."""
    return f"{100 * (ours / theirs - 1):+.0f} %"


def page(rows: Rows) -> str:
    """The comparison as a page: each curve's unloaded latency, saturated bandwidth and distance, then every point."""
    ours = curves(rows)
    counts = {"unloaded": 0, "saturated": 0, "curve": 0}
    table = []
    for curve, points in ours.items():
        theirs = measured()[curve]
        name, pct = curve
        given = name in INPUTS
        idle, their_idle = points[0][1], theirs[0][1]
        most, their_most, rms = saturated(points), saturated(theirs), distance(points, theirs)
        counts["unloaded"] += not given and abs(idle / their_idle - 1) <= NEAR
        counts["saturated"] += abs(most / their_most - 1) <= NEAR
        counts["curve"] += rms <= NEAR_CURVE
        table.append(
            f"| `{name}` | {tool(name)} | {pct} % | {idle:.0f} / {their_idle:.0f} | "
            f"{'input' if given else deviation(idle, their_idle)} | {most:.0f} / {their_most:.0f} | "
            f"{deviation(most, their_most)} | {100 * rms:.0f} % |"
        )
    judged = sum(name not in INPUTS for name, _ in ours)
    text = [
        "# Fidelity: memory of real machines under load",
        "",
        "This page compares latency under load of real machines with ours: one core follows pointers while the others stream.",
        "`python -m hostnet.studies.real_memory` wrote it from the results of `hostnet study real memory`.",
        "The platforms are made from data sheets; what no data sheet says is as on `cascadelake`, `icx` or `spr`.",
        "Measured curves are from the repository of Mess (Esmaili-Dokht et al., MICRO 2024) and from published output of Intel's",
        "Memory Latency Checker (MLC), whose bandwidth of two sockets is halved.",
        "",
        "| figure | aim | within the aim |",
        "|---|---|---:|",
        f"| unloaded latency | {100 * NEAR:.0f} % | {counts['unloaded']} of {judged} |",
        f"| saturated bandwidth | {100 * NEAR:.0f} % | {counts['saturated']} of {len(ours)} |",
        f"| latency over the curve, root of the mean square | {100 * NEAR_CURVE:.0f} % | {counts['curve']} of {len(ours)} |",
        "",
        "Each cell has our figure, then the measured one. The curves are compared at the measured bandwidths up to "
        f"{100 * COMPARED:.0f} % of the smaller saturated bandwidth.",
        "The unloaded latency of Sapphire Rapids is an input: `memory.static_latency_ns` of `spr` is fitted to it.",
        "",
        "| platform | tool | reads | unloaded, ns | | saturated, GB/s | | curve |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
        *table,
        "",
        "![Latency over bandwidth of seven machines: lines are ours, points are measured](../img/real_memory.svg)",
        "",
        "*Lines are ours, points are measured (`hostnet study real memory`).*",
        "",
        *_cores([r for r in rows if not under_load(r)]),
        "## Every point",
        "",
        "Bandwidth and latency of each throttle, and the measured latency at that bandwidth.",
    ]
    for curve, points in ours.items():
        name, pct = curve
        text += [
            "",
            f"### `{name}`, {pct} % reads",
            "",
            "| GB/s | ours, ns | measured, ns | |",
            "|---:|---:|---:|---:|",
        ]
        for gbs, ns in points:
            their = at(measured()[curve], gbs)
            cells = ("beyond", "") if their is None else (f"{their:.0f}", deviation(ns, their))
            text.append(f"| {gbs:.1f} | {ns:.0f} | {cells[0]} | {cells[1]} |")
    return "\n".join(text) + "\n"


def _cores(rows: Rows) -> list[str]:
    """Bandwidths of one core as a section of the page; nothing without such rows."""
    if not rows:
        return []
    text = [
        "## One core",
        "",
        "One core streams alone. The measurements are those of kerncraft's machine files, some on a neighbouring model of the",
        "same generation. `core.prefetch.credits` is fitted to the load of Ice Lake and Sapphire Rapids, which are inputs.",
        "",
        "| platform | kernel | ours, GB/s | measured, GB/s | |",
        "|---|---|---:|---:|---:|",
    ]
    for r in rows:
        kernel, gbs = measured_cores()[(str(r["platform"]), int(r["read_pct"]))]
        given = kernel == "load" and r["platform"] in ("icx-8360y", "spr-8480")
        ours = float(r["mem_bw_gbs"])
        cell = "input" if given else deviation(ours, gbs)
        text.append(f"| `{r['platform']}` | {kernel} | {ours:.1f} | {gbs:.1f} | {cell} |")
    return [*text, ""]


STUDIES = [
    Study(
        "real",
        "memory",
        "Latency under load of real machines, and of platforms from their data sheets",
        memory,
        ("chase_ns", "mem_bw_gbs", "mem_peak_gbs", "lfb_lat_ns", "t0_cpi"),
        derived={"chase_ns": chase_ns},
        derived_units={"chase_ns": "ns", "their_ns": "ns", "their_gbs": "GB/s"},
        across=beside,
        axes=axes.with_own(SHARE),
    ),
]

if __name__ == "__main__":
    rewrite(sys.argv[1], sys.argv[2], page)
