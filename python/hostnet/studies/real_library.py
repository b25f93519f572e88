"""Measurements of ccnic-bench between two cores of real sockets, and their counterpart in the simulator.

``data/ccnic_bench.csv`` has medians of docs/ccnic/data. One figure of each machine, the load of a line that the other core has
modified, calibrates the simulated machine, as `hostnet calibrate` does. Ping-pong and loopback of 64 B then follow. The
simulated interface uses the library's rules: its instructions, its free check, its early requests for ownership.
Prefetchers are on at both cores, as they were on the real machines.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from ..calibrate import crossings
from ..paths import DATA
from . import Rows, Study, axes
from .grid import Grid, also, by_length, on, sum_of

# Emerald Rapids on `spr`. Parts with its LLC (260 MiB) run at 4.0 GHz at most (datasheet: Xeon Platinum 8558).
CLOCK = "4 GHz"
LAYOUTS = {"one_line": "S0C", "two_lines": "S0"}
# Choices of the library that are switches of the simulator: instructions per packet as counted
# (docs/ccnic/measurements.md), its look-ahead, and buffers without metadata.
LIBRARY: Mapping[str, Any] = {
    "ccnic.nic_node": 0,
    "ccnic.quirks.free_check": "ahead",
    "ccnic.quirks.own_ahead": 2,
    "ccnic.quirks.nic_prefetch": True,
    "ccnic.quirks.metadata": "0 B",
    "ccnic.quirks.costs": {
        "alloc": 70,
        "free": 70,
        "host_tx": 150,
        "host_rx": 150,
        "nic_tx": 138,
        "nic_rx": 138,
        "unit": 28,
        "poll": 20,
        "pool": 60,
    },
}
# The library's unoptimised interface has no cache in front of the pool: four operations per packet, as its table
# counts. Its host takes 1,137 instructions per packet and its NIC 652, where CC-NIC's take 456 and 432: single
# descriptors, blanks, and frees behind a sweep, which begins once 32 of 1024 descriptors have been sent.
UNOPTIMISED: Mapping[str, Any] = {
    "ccnic.preset": "unoptimised",
    "ccnic.quirks.cache": 0,
    "ccnic.quirks.free_threshold": 1024 - 32 + 1,
    "ccnic.quirks.costs": {
        **LIBRARY["ccnic.quirks.costs"],
        "host_tx": 441,
        "host_rx": 332,
        "nic_tx": 298,
        "nic_rx": 298,
    },
}
PACKETS = axes.PACKETS.said("packets under way", "packets")


@cache
def measured() -> Mapping[tuple[str, str, str, int], Mapping[str, float]]:
    """Medians by platform, case, variant and number of outstanding packets."""
    with (DATA / "ccnic_bench.csv").open(encoding="utf-8") as f:
        rows = list(csv.DictReader(line for line in f if not line.startswith("#")))
    return {
        (r["platform"], r["case"], r["variant"], int(r["packets"])): {m: float(r[m]) for m in ("ns", "mpps") if r[m]}
        for r in rows
    }


def emerald_rapids() -> dict[str, Any]:
    """Emerald Rapids, with the crossbar latency that follows from the measured transfer."""
    transfer = measured()[("spr", "transfer", "modified_line", 1)]["ns"]
    return {
        "platform": "spr",
        "override.core.clock": CLOCK,
        "override.caches.noc_cycles": crossings("spr", transfer, CLOCK),
    }


def zen5() -> dict[str, Any]:
    """An EPYC with Zen 5: `turin`, whose crossbar follows from a measured transfer, at the pace of the library on one of its cores.

    `ccnic-bench bound` measures that pace (docs/ccnic/data/zen5/bound.csv): the host's 456 instructions a packet take 18.6 ns where
    nobody else has the lines, which are 76 cycles of 4.1 GHz.
    """
    return {"platform": "turin", "override.core.compute_ipc": 6.0}


def zen4() -> dict[str, Any]:
    """An EPYC with Zen 4: `genoa`, with the crossbar latency that follows from the measured transfer, at the pace of the library on one
    of its cores.

    The host's 456 instructions a packet take 25.4 ns where nobody else has the lines (docs/ccnic/data/zen4/bound.csv), which are 94
    cycles of 3.7 GHz.
    """
    transfer = measured()[("genoa", "transfer", "modified_line", 1)]["ns"]
    return {
        "platform": "genoa",
        "override.caches.noc_cycles": crossings("genoa", transfer),
        "override.core.compute_ipc": 4.9,
    }


MACHINES = {"spr": emerald_rapids, "turin": zen5, "genoa": zen4}


LAYOUT = axes.VARIANT.among(
    {name: {"tenant.0.app": {"kind": "pingpong", "layout": x, "peer_node": 0}} for name, x in LAYOUTS.items()}
)
# Loopback, with CC-NIC and the unoptimised interface.
LOOPBACK = (
    on("ccnic-upi")
    * axes.CASE("loopback")
    * also(
        {
            **LIBRARY,
            "tenant.0.cores": 1,
            "run.requests": by_length(4000, 1000),
            "run.warmup_requests": 4000,
        }
    )
)
INTERFACE = axes.VARIANT.among({"ccnic": {}, "unopt": UNOPTIMISED})


def library(quick: bool) -> Grid:
    """Ping-pong by layout, and loopback with 1 to 512 packets under way: the measured settings."""
    under_way = PACKETS.at("traffic.outstanding")
    settings = {
        "pingpong": lambda variant, n: on("ccnic-pingpong") * axes.CASE("pingpong") * LAYOUT(variant) * PACKETS(n),
        "loopback": lambda variant, n: LOOPBACK * INTERFACE(variant) * under_way(n),
    }
    machines = {platform: axes.PLATFORM(platform) * also(made()) for platform, made in MACHINES.items()}
    return sum_of(machines[p] * settings[case](variant, n) for p, case, variant, n in measured() if case in settings)


def ns(row: Mapping[str, Any]) -> float | None:
    """Time of a ping-pong, or the median round-trip time of a packet."""
    if row.get("case") == "pingpong":
        return row.get("pingpong_ns")
    return None if row.get("rtt_median_us") is None else 1e3 * row["rtt_median_us"]


def mpps(row: Mapping[str, Any]) -> float | None:
    """Rate of packets that return, in millions per second."""
    return row.get("achieved_mpps") if row.get("case") == "loopback" else None


def beside(rows: Rows) -> Sequence[Mapping[str, float | str | None]]:
    """Measured figures with the simulated ones, and the ratio of simulated to measured."""
    out = []
    for r in rows:
        their = measured()[(r["platform"], r["case"], r["variant"], r["packets"])]
        ours = {"ns": ns(r), "mpps": mpps(r)}
        ratios = {f"{m}_ratio": v / their[m] if (v := ours[m]) is not None and m in their else None for m in ours}
        out.append({**{f"measured_{m}": their.get(m) for m in ours}, **ratios})
    return out


STUDIES = [
    Study(
        "real",
        "library",
        "CC-NIC's library between two cores of real sockets, and the same simulated",
        library,
        ("ns", "mpps"),
        derived={"ns": ns, "mpps": mpps},
        derived_units={
            "ns": "ns",
            "mpps": "Mpps",
            "measured_ns": "ns",
            "measured_mpps": "Mpps",
            "ns_ratio": "1",
            "mpps_ratio": "1",
        },
        across=beside,
        axes=axes.with_own(PACKETS),
    ),
]
