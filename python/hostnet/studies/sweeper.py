"""The experiments of Sweeper (MICRO'22), on the platform ``sim24``; ``PLATFORMS`` has the changes for other platforms.

Where the paper leaves a swept value open, a comment next to the value states the choice. The authors' published runs
take precedence over a guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from . import Point, Rows, Study

KVS, SPIKY, L3FWD, COLO = "kvs", "kvs-spiky", "l3fwd", "colocation"
DIRECTED_RX, DIRECTED_TX, PAGE = "directed-rx", "directed-tx", "page-reuse"

# A quick run measures fewer requests; its tables say so in the column `quick`.
QUICK_REQUESTS = 15_000

ALL_METRICS_AT_PEAK = (
    "throughput_mrps",
    "mem_bw_gbs",
    "acc_nic_rx_wr",
    "acc_nic_tx_rd",
    "acc_cpu_rx_rd",
    "acc_cpu_tx_rdwr",
    "acc_cpu_other_rd",
    "acc_rx_evct",
    "acc_tx_evct",
    "acc_other_evct",
    "acc_total",
)


def placement(system: str, ways: int | None) -> dict[str, Any]:
    """The changes that make a scenario one of the paper's systems."""
    return {
        "placement.policy": {"dma": "dma", "ideal": "ideal"}.get(system, "ddio"),
        "placement.ways": ways,
        "placement.sweep_rx": True if system == "sweeper" else None,
    }


def loaded(quick: bool, load: str, rate_mrps: float | None = None) -> dict[str, Any]:
    """The changes that set the load rule, and the offered rate where the rule needs one."""
    changes: dict[str, Any] = {"run.load": load}
    if load != "peak_loss":
        changes["run.step"] = None
    if rate_mrps is not None:
        changes["traffic.rate"] = f"{round(rate_mrps * 1e6)} rps"
    if quick:
        changes["run.requests"] = QUICK_REQUESTS
    return changes


def kvs_point(
    quick: bool,
    system: str,
    ways: int | None,
    buf: int,
    item: int = 1024,
    *,
    channels: int = 4,
    load: str = "peak_loss",
    rate_mrps: float | None = None,
    base: str = KVS,
    **columns: Any,
) -> Point:
    """A key-value-store point; equal arguments give equal specs, so figures share results."""
    return Point(
        base,
        {
            "system": system,
            "ways": ways,
            "buf": buf,
            "item_bytes": item,
            "channels": channels,
            "rate_mrps": rate_mrps,
            "load": load,
            **columns,
        },
        {
            **placement(system, ways),
            **loaded(quick, load, rate_mrps),
            "rings.rx_buffers": buf,
            "rings.buffer_size": f"{item} B",
            "traffic.packet": f"{item} B",
            "tenant.0.app.item_size": f"{item} B",
            **({"override.memory.channels": channels} if channels != 4 else {}),
        },
    )


def l3fwd_point(quick: bool, system: str, ways: int | None, depth: int) -> Point:
    return Point(
        L3FWD,
        {
            "system": system,
            "ways": ways,
            "buf": 2048,
            "item_bytes": 1024,
            "depth": depth,
            "load": "saturate",
        },
        {**placement(system, ways), **loaded(quick, "saturate"), "traffic.depth": depth, "rings.rx_buffers": 2048},
    )


def peak_of(rows: Rows, **wanted: Any) -> float:
    """The throughput measured in the only row with the requested columns."""
    (row,) = [r for r in rows if all(r.get(k) == v for k, v in wanted.items())]
    return float(row["throughput_mrps"])


# --- Sizing: computed from the configuration alone ------------------------------------------------------------------


def sizing(quick: bool) -> list[Point]:
    def point(case: str, buf: int, item: int, ways: int, cores: int, endpoints: int = 1) -> Point:
        return Point(
            KVS,
            {
                "case": case,
                "system": "ddio",
                "ways": ways,
                "buf": buf,
                "item_bytes": item,
                "endpoints": endpoints,
                "load": "none",
            },
            {
                **placement("ddio", ways),
                **loaded(False, "none"),
                "tenant.0.cores": cores,
                "rings.rx_buffers": buf,
                "rings.buffer_size": f"{item} B",
                "traffic.packet": f"{item} B",
                "tenant.0.app.item_size": f"{item} B",
            },
        )

    rings = [
        point("ring", buf, item, ways, 24)
        for buf in (128, 256, 512, 1024, 2048)
        for item in (512, 1024, 1536)
        for ways in (2, 4, 6, 12)
    ]
    # 20 cores with rings of the depth that DPDK installs by default, in MTU-sized buffers.
    dpdk = [point("dpdk-20-cores", 1024, 1536, 2, 20)]
    # A ring per remote endpoint (RDMA, VIA): N rings of depth M take as much memory as one ring of depth N x M.
    via = [point("ring-of-128-per-endpoint", 128 * n, 1024, 2, 24, endpoints=n) for n in (4, 16, 64)]
    shared = [point("shared-by-endpoints", 1024, 1024, 2, 1, endpoints=256)]
    return rings + dpdk + via + shared


# --- Directed tests -------------------------------------------------------------------------------------------------


def sec2b(quick: bool) -> list[Point]:
    return [
        Point(
            DIRECTED_RX,
            {"system": system, "injection": system, "ways": ways, "eviction": evict, "item_bytes": 128, "load": "none"},
            {**placement(system, ways), "tenant.0.app.evict": how},
        )
        for system, ways in (("dma", None), ("ddio", 2))
        for evict, how in (("none", "none"), ("before", "before_use"), ("after", "after_use"))
    ]


def fig3(quick: bool) -> list[Point]:
    # The paper draws a packet of two blocks; a 512 B and a 1 KB packet show that the counts scale.
    return [
        Point(
            DIRECTED_RX,
            {"system": system, "ways": 2, "item_bytes": size, "load": "none"},
            {**placement(system, 2), "tenant.0.app.blocks": size // 64},
        )
        for system in ("ddio", "sweeper")
        for size in (128, 512, 1024)
    ]


def fig4(quick: bool) -> list[Point]:
    directed = [
        Point(
            DIRECTED_TX,
            {
                "case": "directed",
                "system": "sweeper" if agent != "none" else "ddio",
                "agent": agent,
                "ways": 2,
                "load": "none",
            },
            {"placement.sweep_tx": agent},
        )
        for agent in ("none", "nic", "cpu")
    ]
    # The forwarder that transmits from the receive buffer: not measured in the paper.
    forwarder = [
        Point(
            L3FWD,
            {
                "case": "zero-copy",
                "system": "sweeper" if agent != "none" else "ddio",
                "agent": agent,
                "ways": 2,
                "buf": 2048,
                "item_bytes": 1024,
                "depth": 50,
                "load": "saturate",
            },
            {
                **placement("ddio", 2),
                **loaded(quick, "saturate"),
                "placement.sweep_tx": agent,
                "tenant.0.app.zero_copy": True,
                "traffic.depth": 50,
                "rings.rx_buffers": 2048,
            },
        )
        for agent in ("none", "nic", "cpu")
    ]
    return directed + forwarder


def sec5b(quick: bool) -> list[Point]:
    return [
        Point(PAGE, {"system": "sweeper", "guard": guard, "load": "none"}, {"tenant.0.app.guard": guard})
        for guard in ("none", "clwb", "dma")
    ]


# --- Key-value store ------------------------------------------------------------------------------------------------

BUFFERS = (512, 1024, 2048)


def fig1(quick: bool) -> list[Point]:
    return [
        kvs_point(quick, system, ways, buf)
        for buf in BUFFERS
        for system, ways in (("dma", None), ("ddio", 2), ("ddio", 4), ("ddio", 6), ("ideal", None))
    ]


def fig1_at_dma_peak(rows: Rows, quick: bool) -> list[Point]:
    """Systems of figure 1 at the rate that DMA sustains, so that latencies are compared at equal load."""
    return [
        kvs_point(
            quick,
            system,
            ways,
            buf,
            load="fixed",
            rate_basis="dma peak",
            rate_mrps=round(peak_of(rows, system="dma", buf=buf), 3),
        )
        for buf in BUFFERS
        for system, ways in (("dma", None), ("ddio", 2), ("ddio", 4), ("ddio", 6), ("ideal", None))
    ]


def fig5(quick: bool) -> list[Point]:
    points = []
    for item in (512, 1024):
        for buf in BUFFERS:
            points += [
                kvs_point(quick, system, ways, buf, item) for system in ("ddio", "sweeper") for ways in (2, 4, 6, 12)
            ]
            points.append(kvs_point(quick, "ideal", None, buf, item))
    return points


FIG6 = tuple((system, ways) for ways in (2, 12) for system in ("ddio", "sweeper"))


def fig6_left(quick: bool) -> list[Point]:
    return [kvs_point(quick, system, ways, 1024) for system, ways in FIG6]


def fig6_right_peak(quick: bool) -> list[Point]:
    return [kvs_point(quick, "ddio", 2, 1024, rate_basis="own peak")]


def fig6_right(rows: Rows, quick: bool) -> list[Point]:
    """Equal load: at the peak measured here for 2-way DDIO, and at the 26 Mrps that the paper names."""
    rates = (("2-way ddio peak", round(peak_of(rows, system="ddio", ways=2), 3)), ("paper", 26.0))
    return [
        kvs_point(quick, system, ways, 1024, load="fixed", rate_mrps=rate, rate_basis=basis)
        for basis, rate in rates
        for system, ways in FIG6
    ]


def fig8(quick: bool) -> list[Point]:
    points = []
    for channels in (3, 4, 8):
        for item, buf in ((512, 512), (1024, 2048)):
            points += [
                kvs_point(quick, system, ways, buf, item, channels=channels)
                for system in ("ddio", "sweeper")
                for ways in (2, 12)
            ]
            points.append(kvs_point(quick, "ideal", None, buf, item, channels=channels))
    return points


# --- L3 forwarder ---------------------------------------------------------------------------------------------------


def fig2(quick: bool) -> list[Point]:
    return [
        l3fwd_point(quick, system, ways, depth)
        for depth in (50, 250, 450)
        for system, ways in (("dma", None), ("ddio", 2), ("ddio", 6), ("ddio", 12), ("ideal", None))
    ]


def fig7(quick: bool) -> list[Point]:
    points = []
    for depth in (250, 450):
        points += [l3fwd_point(quick, system, ways, depth) for system in ("ddio", "sweeper") for ways in (2, 6, 12)]
        points.append(l3fwd_point(quick, "ideal", None, depth))
    return points


# --- Two tenants ----------------------------------------------------------------------------------------------------

# (DDIO, X-Mem) ways of the published runs. The paper mentions six splits; the runs have five.
SPLITS = ((2, 10), (4, 8), (6, 6), (8, 4), (10, 2))


def colocated(quick: bool, system: str, ddio_ways: int, xmem_ways: int, mode: str) -> Point:
    """Two tenants, with ways and arrays as in the published runs.

    Partitioned, the forwarder's own fills go only to the DDIO ways. Overlapping, the forwarder's fills go only to the
    last four ways and X-Mem's only to the first ten, where the paper says all; X-Mem's arrays are larger in this case.
    """
    partition = mode == "partition"
    return Point(
        COLO,
        {
            "system": system,
            "mode": mode,
            "ways": ddio_ways,
            "split_a": ddio_ways,
            "split_b": xmem_ways,
            "buf": 2048,
            "item_bytes": 1024,
            "load": "peak_loss",
        },
        {
            **placement(system, ddio_ways),
            **loaded(quick, "peak_loss"),
            "tenant.0.llc_ways": f"{12 - ddio_ways}-11" if partition else "8-11",
            "tenant.1.llc_ways": f"0-{xmem_ways - 1}",
            **({} if partition else {"tenant.1.app.array": "2560 KiB"}),
        },
    )


def fig9a(quick: bool) -> list[Point]:
    return [colocated(quick, system, a, b, "partition") for system in ("ddio", "sweeper") for a, b in SPLITS]


def fig9b(quick: bool) -> list[Point]:
    return [colocated(quick, system, a, 10, "overlap") for system in ("ddio", "sweeper") for a in (2, 4, 6, 8, 10, 12)]


# --- Spiky service times --------------------------------------------------------------------------------------------


def fig10a(quick: bool) -> list[Point]:
    return [
        kvs_point(quick, system, 2, buf, base=SPIKY, load="peak_nodrop")
        for system in ("ddio", "sweeper")
        for buf in (128, 256, 512, 1024, 2048)
    ]


FIG10B = tuple((system, buf) for system in ("ddio", "sweeper") for buf in (128, 2048))


def fig10b_peaks(quick: bool) -> list[Point]:
    return [kvs_point(quick, system, 2, buf, base=SPIKY, load="peak_nodrop") for system, buf in FIG10B]


def fig10b(rows: Rows, quick: bool) -> list[Point]:
    """Rates from below the lowest drop-free peak to above the highest, at equal ratios."""
    peaks = [peak_of(rows, system=system, buf=buf) for system, buf in FIG10B]
    low, high, steps = 0.8 * min(peaks), 1.25 * max(peaks), 6 if quick else 12
    rates = [round(low * (high / low) ** (i / (steps - 1)), 3) for i in range(steps)]
    return [
        kvs_point(quick, system, 2, buf, base=SPIKY, load="fixed", rate_mrps=rate)
        for rate in rates
        for system, buf in FIG10B
    ]


# --- Cited measurement ----------------------------------------------------------------------------------------------


def sec6f_cited(quick: bool) -> list[Point]:
    return [
        Point(
            "l3fwd-100g",
            {"system": "ddio", "ways": 2, "buf": 1024, "item_bytes": 1024, "load": "fixed"},
            loaded(quick, "fixed"),
        )
    ]


def packets_per_pause(row: Mapping[str, Any]) -> float | None:
    """Packets received from an empty ring until it is full, when the sender has to be paused.

    A ring of B buffers that loses a fraction d of what is offered fills by d buffers per
    packet, hence B / d packets; None when the core keeps up.
    """
    return row["buf"] / row["drop_rate"] if row["drop_rate"] else None


# --- The authors' simulator -----------------------------------------------------------------------------------------

ARTIFACT = "sim24-artifact"


def on_artifact(point: Point) -> Point:
    """The point with the parameters of the authors' simulator: LLC, cores, memory, and the grid of rates that follows
    from their clock.

    The authors' runs of two tenants have a separate scenario, with another clock, another memory and an LLC that is not
    inclusive. No run of the key-value store is published; points of that store use the parameters of the forwarder's
    runs.
    """
    if point.base.startswith("artifact"):
        return point
    searched = point.changes.get("run.load") == "peak_loss"
    if point.base == COLO:
        grid = (
            {"traffic.rate": None, "run.loss": 0.01, "run.step": "2.5 Mrps", "run.requests": None} if searched else {}
        )
        return replace(point, base="artifact-colocation", changes={**grid, **point.changes})
    grid = {"run.step": "3.21 Mrps"} if searched else {}
    return replace(point, changes={"platform": ARTIFACT, **grid, **point.changes})


PLATFORMS = {"sim24": lambda point: point, ARTIFACT: on_artifact}

STUDIES = [
    Study(
        "sweeper",
        "sizing",
        "Buffer footprints against cache capacity",
        sizing,
        ("rx_footprint_mib", "rx_footprint_per_llc", "ddio_capacity_mib", "total_rx_entries"),
    ),
    Study(
        "sweeper",
        "sec2b",
        "One packet: what an eviction before or after use costs",
        sec2b,
        ("dram_reads_per_block", "dram_writes_per_block", "first_read_cycles", "evct_dirty_fraction"),
    ),
    Study(
        "sweeper",
        "fig1",
        "KVS under DMA, DDIO and ideal DDIO",
        fig1,
        (*ALL_METRICS_AT_PEAK, "amat_cycles", "dram_lat_avg_ns"),
        then=fig1_at_dma_peak,
    ),
    Study("sweeper", "fig2", "L3 forwarder with standing queues", fig2, ALL_METRICS_AT_PEAK),
    Study(
        "sweeper",
        "fig3",
        "Life of a receive block, with and without relinquish",
        fig3,
        ("copies_left", "llc_dirty_blocks", "dram_writes_per_block", "clsweeps", "sweep_messages"),
    ),
    Study(
        "sweeper",
        "fig4",
        "Sweeping transmit buffers",
        fig4,
        ("tx_writes_per_block", "sweep_delay_ns", "throughput_mrps", "acc_rx_evct", "acc_tx_evct"),
        side_tables=("events",),
    ),
    Study("sweeper", "sec5b", "Page hand-over between processes", sec5b, ("stale_blocks_readable",)),
    Study("sweeper", "fig5", "KVS with and without Sweeper", fig5, ALL_METRICS_AT_PEAK),
    Study(
        "sweeper",
        "fig6-left",
        "DRAM latency at each system's own peak",
        fig6_left,
        ("throughput_mrps", "dram_lat_avg_ns", "dram_lat_p50_ns", "dram_lat_p99_ns"),
        side_tables=("dram_latency_cdf",),
    ),
    Study(
        "sweeper",
        "fig6-right",
        "DRAM latency at equal load",
        fig6_right_peak,
        ("throughput_mrps", "dram_lat_avg_ns", "dram_lat_p50_ns", "dram_lat_p99_ns"),
        then=fig6_right,
        side_tables=("dram_latency_cdf",),
    ),
    Study(
        "sweeper",
        "fig7",
        "L3 forwarder with deep queues, with and without Sweeper",
        fig7,
        (*ALL_METRICS_AT_PEAK, "llc_rx_lines", "llc_rx_lines_outside_ddio"),
    ),
    Study("sweeper", "fig8", "Peak throughput by memory channels", fig8, ("throughput_mrps",)),
    Study(
        "sweeper",
        "fig9a",
        "L3 forwarder beside X-Mem, ways partitioned",
        fig9a,
        ("t0_mops", "t1_mops", "t1_llc_miss_ratio"),
    ),
    Study(
        "sweeper",
        "fig9b",
        "L3 forwarder beside X-Mem, ways overlapping",
        fig9b,
        ("t0_mops", "t1_mops", "t1_llc_miss_ratio"),
    ),
    Study("sweeper", "fig10a", "Drop-free peak by ring depth, with service spikes", fig10a, ("throughput_mrps",)),
    Study(
        "sweeper",
        "fig10b",
        "Drop rate by arrival rate, with service spikes",
        fig10b_peaks,
        ("drop_rate", "throughput_mrps"),
        then=fig10b,
    ),
    Study(
        "sweeper",
        "sec6f-cited",
        "One core at 100 Gb/s",
        sec6f_cited,
        ("throughput_mrps", "drop_rate", "packets_per_pause"),
        derived={"packets_per_pause": packets_per_pause},
        derived_units={"packets_per_pause": "packets"},
    ),
]
