"""Sweeps of "Userspace Networking in gem5" (ISPASS'24) over one part of the machine at a time: Figs. 10 to 17.

Every point is a bandwidth test. Where the paper does not list the swept values, powers of two lie between those it
names. The released scripts have LLCs of 4, 16, 32 and 64 MiB (run-scripts/run-droprate-exp-l3cache.sh); these studies
add 1 and 2 MiB.
"""

from __future__ import annotations

from . import Rows, Study, axes
from .gem5net import (
    APP,
    BOTH_SERVERS,
    CHANNELS,
    CLOCK,
    CORE,
    DCA,
    DEFAULT_CORE,
    FORWARDERS,
    FOUR_CHANNELS,
    FRAMES,
    GEM5,
    IPERF,
    L1,
    L2,
    LLC,
    PLATFORM,
    ROB,
    SERVERS,
    TEST,
    fixed,
    frames,
    overload,
    peak_of,
    server,
    study,
)
from .grid import Grid, also, sum_of

SERVERS_WITHOUT_DCA = sum_of(server(app, "off") for app in SERVERS)


def sweep(knob: Grid, apps: tuple[str, ...] = FORWARDERS, machine: Grid = GEM5, servers: Grid = BOTH_SERVERS) -> Grid:
    """Applications and packet sizes over the values of a knob; iperf and both servers with them."""
    return machine * knob * (frames((*apps, "iperf")) + servers) * TEST


# The scripts of these sweeps: run-dual-{l1cache,l2cache,l3cache,robentries}.sh, memcached-{dpdk,kernel}-caches.sh.
AS_CACHES = also(lambda row: FOUR_CHANNELS if row["app"] == IPERF else {})


# run-scripts/run-dual-freq.sh passes iperf none of the core's parameters either. What gem5's core executes in a cycle of the kernel's code
# is not known and stays as on the platform.
AS_FREQUENCIES = also(lambda row: DEFAULT_CORE if row["app"] == IPERF else {})


def of_caches(knob: Grid) -> Grid:
    """A sweep whose scripts give iperf four channels and the servers no direct cache access."""
    return sweep(knob, servers=SERVERS_WITHOUT_DCA) * AS_CACHES


WITHOUT_DCA = PLATFORM("gem5") * DCA("off")
# With and without direct cache access, on one machine for each application: iperf's script without it has four channels.
BOTH_WAYS = sum_of(
    sweep(DCA(way), machine=PLATFORM("gem5"), servers=sum_of(server(app, way) for app in SERVERS))
    for way in ("on", "off")
)

# --- Processing time and a small LLC (Fig. 13) ----------------------------------------------------------------------

PROCESSING_NS = (10, 100, 300, 500, 700, 1000, 3000, 5000, 10000)
LEAK_SIZES = (64, 256, 1518)
# An LLC of 1 MiB, four of its 16 ways for the NIC (section VII-C names a number for this figure alone), rings of 4096 descriptors.
LEAK = {"placement.ways": 4, "peripheral.0.rings.receive": 4096, "peripheral.0.rings.transmit": 4096}
JUST_UNDER = 0.98


LEAKING = GEM5 * APP("rxptx") * LLC(1) * also(LEAK)


def fig13_at_one_rate(rows: Rows, quick: bool) -> Grid:
    """Just under what the shortest processing time sustains, for all of them. A tenth too slow still fills all buffers."""
    rates = {size: JUST_UNDER * peak_of(rows, packet_bytes=size) for size in LEAK_SIZES}
    return LEAKING * sum_of(
        FRAMES(size)
        * axes.INTERVAL_NS(*PROCESSING_NS)
        * fixed(rate, overload(0.9 * rate, rate, size), "just under the peak at 10 ns")
        for size, rate in rates.items()
    )


def _sweep(figure: str, title: str, grid: Grid, *metrics: str) -> Study:
    return study(figure, title, grid, ("msb_gbps", "krps", *metrics))


STUDIES = [
    _sweep("fig10", "Bandwidth over the L1's size", of_caches(L1(16, 32, 64, 128, 256, 512, 1024))),
    _sweep("fig11", "Bandwidth over the L2's size", of_caches(L2(256, 512, 1024, 2048, 4096, 8192))),
    _sweep("fig12", "Bandwidth over the LLC's size", of_caches(LLC(1, 2, 4, 8, 16, 32, 64))),
    study(
        "fig13",
        "Processing time, drops and LLC misses with a small LLC",
        LEAKING * FRAMES(*LEAK_SIZES) * axes.INTERVAL_NS(10) * TEST,
        ("drop_rate", "llc_miss_ratio"),
        then=fig13_at_one_rate,
    ),
    _sweep("fig14", "Bandwidth with and without direct cache access", BOTH_WAYS * AS_CACHES),
    _sweep("fig15", "Bandwidth over the core's clock", sweep(CLOCK()) * AS_FREQUENCIES),
    _sweep("fig16", "Bandwidth of out-of-order and in-order cores", sweep(CORE())),
    _sweep(
        "fig17_ch",
        "Bandwidth over memory channels, no direct cache access",
        # Without direct cache access, so that memory sees the packets.
        sweep(CHANNELS(1, 2, 4, 8, 16), ("testpmd", "touchfwd"), WITHOUT_DCA, SERVERS_WITHOUT_DCA),
        "dram_row_hit_ratio",
        "mem_utilisation",
    ),
    _sweep("fig17_rob", "Bandwidth over the reorder buffer", of_caches(ROB(32, 64, 128, 256, 512)), "lfb_occ"),
]
