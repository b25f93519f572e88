"""Sweeps of "Userspace Networking in gem5" (ISPASS'24) over one part of the machine at a time: Figs. 10 to 17.

Every point is a bandwidth test. Where the paper does not list the swept values, powers of two lie between those it
names. The released scripts have LLCs of 4, 16, 32 and 64 MiB (run-scripts/run-droprate-exp-l3cache.sh); these studies
add 1 and 2 MiB.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from . import Point, Rows, Study
from .gem5net import (
    CLOCKS,
    FORWARDERS,
    SIZES,
    both_servers,
    overload,
    peak_of,
    point,
    study,
)

L1_KIB = (16, 32, 64, 128, 256, 512, 1024)
L2_KIB = (256, 512, 1024, 2048, 4096, 8192)
LLC_MIB = (1, 2, 4, 8, 16, 32, 64)
CHANNELS = (1, 2, 4, 8, 16)
ROB = (32, 64, 128, 256, 512)


def sweep(
    quick: bool, knob: str, values: Iterable[Any], apps: tuple[str, ...] = FORWARDERS, **fixed: Any
) -> list[Point]:
    """Applications and packet sizes over the values of one parameter of `machine`; iperf and both servers are included."""
    out = []
    for value in values:
        knobs = {knob: value, **fixed}
        out += [point(quick, app, size, **knobs) for app in (*apps, "iperf") for size in SIZES]
        out += both_servers(quick, **knobs)
    return out


def fig10(quick: bool) -> list[Point]:
    return sweep(quick, "l1_kib", L1_KIB)


def fig11(quick: bool) -> list[Point]:
    return sweep(quick, "l2_kib", L2_KIB)


def fig12(quick: bool) -> list[Point]:
    return sweep(quick, "llc_mib", LLC_MIB)


def fig14(quick: bool) -> list[Point]:
    return sweep(quick, "dca", ("on", "off"))


def fig15(quick: bool) -> list[Point]:
    return sweep(quick, "clock_ghz", CLOCKS)


def fig16(quick: bool) -> list[Point]:
    return sweep(quick, "core", ("out-of-order", "in-order"))


def fig17_channels(quick: bool) -> list[Point]:
    """Without direct cache access, so that the packets go to memory."""
    return sweep(quick, "channels", CHANNELS, ("testpmd", "touchfwd"), dca="off")


def fig17_rob(quick: bool) -> list[Point]:
    return sweep(quick, "rob", ROB)


# --- Processing time and a small LLC (Fig. 13) ----------------------------------------------------------------------

PROCESSING_NS = (10, 100, 300, 500, 700, 1000, 3000, 5000, 10000)
LEAK_SIZES = (64, 256, 1518)
# An LLC of 1 MiB, four of its 16 ways for the NIC (section VII-C names a number for this figure alone), rings of 4096 descriptors.
LEAK = {"placement.ways": 4, "peripheral.0.rings.receive": 4096, "peripheral.0.rings.transmit": 4096}
JUST_UNDER = 0.98


def leak_point(quick: bool, size: int, interval_ns: float, **more: Any) -> Point:
    return point(quick, "rxptx", size, interval_ns=interval_ns, llc_mib=1, changes=LEAK, **more)


def fig13(quick: bool) -> list[Point]:
    return [leak_point(quick, size, 10) for size in LEAK_SIZES]


def fig13_at_one_rate(rows: Rows, quick: bool) -> list[Point]:
    """A rate just below the one that the shortest processing time sustains, for all processing times. A processing time
    that is a tenth too long still fills all buffers."""
    out = []
    for size in LEAK_SIZES:
        rate = JUST_UNDER * peak_of(rows, packet_bytes=size)
        out += [
            leak_point(
                quick,
                size,
                ns,
                pps=rate,
                requests=overload(0.9 * rate, rate, size),
                columns={"rate_basis": "just under the peak at 10 ns"},
            )
            for ns in PROCESSING_NS
        ]
    return out


def _sweep(figure: str, title: str, points: Any, *metrics: str) -> Study:
    return study(figure, title, points, ("msb_gbps", "krps", *metrics))


STUDIES = [
    _sweep("fig10", "Bandwidth over the L1's size", fig10),
    _sweep("fig11", "Bandwidth over the L2's size", fig11),
    _sweep("fig12", "Bandwidth over the LLC's size", fig12),
    study(
        "fig13",
        "Processing time, drops and LLC misses with a small LLC",
        fig13,
        ("drop_rate", "llc_miss_ratio"),
        then=fig13_at_one_rate,
    ),
    _sweep("fig14", "Bandwidth with and without direct cache access", fig14),
    _sweep("fig15", "Bandwidth over the core's clock", fig15),
    _sweep("fig16", "Bandwidth of out-of-order and in-order cores", fig16),
    _sweep(
        "fig17_ch",
        "Bandwidth over memory channels, no direct cache access",
        fig17_channels,
        "dram_row_hit_ratio",
        "mem_utilisation",
    ),
    _sweep("fig17_rob", "Bandwidth over the reorder buffer", fig17_rob, "lfb_occ"),
]
