"""The experiments of Sweeper (MICRO'22), on the platform ``sim24``; ``PLATFORMS`` has the changes for other platforms.

Peaks and fixed rates are offered as the paper's text has them. ``sim24-runs`` offers them as the authors' runs do.
Where the paper leaves a swept value open, a comment next to the value states the choice. The authors' published runs
take precedence over a guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from . import Point, Rows, Study, axes
from .grid import Grid, also, on, sum_of, when_quick

KVS, SPIKY, L3FWD, COLO = "kvs", "kvs-spiky", "l3fwd", "colocation"
DIRECTED_RX, DIRECTED_TX, PAGE = "directed-rx", "directed-tx", "page-reuse"

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

# --- Axes -----------------------------------------------------------------------------------------------------------

# The paper's systems.
SYSTEM = axes.SYSTEM.among(
    {
        "dma": {"placement.policy": "dma", "placement.sweep_rx": None},
        "ddio": {"placement.policy": "ddio", "placement.sweep_rx": None},
        "sweeper": {"placement.policy": "ddio", "placement.sweep_rx": True},
        "ideal": {"placement.policy": "ideal", "placement.sweep_rx": None},
    }
)
WAYS, BUF, DEPTH = axes.WAYS, axes.BUF, axes.DEPTH
DMA, IDEAL = SYSTEM("dma") * WAYS(None), SYSTEM("ideal") * WAYS(None)
DDIO, SWEPT = SYSTEM("ddio"), SYSTEM("ddio", "sweeper")

CHANNELS = axes.CHANNELS.at(*axes.CHANNELS.paths, usual=4)
# Items, their packets and the buffers that take them have one size.
ITEM = axes.ITEM_BYTES.at("rings.buffer_size", "traffic.packet", "tenant.0.app.item_size", form="{} B")
BLOCKS = axes.ITEM_BYTES.at("tenant.0.app.blocks", form=lambda size: size // 64)
SWEEP_TX = axes.AGENT.at("placement.sweep_tx")
RATE = axes.RATE_MRPS.at("traffic.rate", form=lambda mrps: f"{round(mrps * 1e6)} rps", usual=None)

# The scenarios have the load rule of the authors' runs: even gaps, the shortest queue, and the highest rate of a grid at which
# rings do not overflow. The text's rule is the highest Poisson rate whose 99th percentile is at most 100 times the mean service
# time (appendix). The text does not say which core gets a packet; the authors' files with Poisson arrivals and Zipf keys have
# the shortest queue as well (vs_zsim 01029f6 and 63e2df2, ddio_base.cfg and herd_base_skew.cfg).
LOADS = ("peak_slo", "peak_nodrop", "fixed", "saturate", "none")
LOAD = axes.LOAD.among({x: {"run.load": x, "run.step": None} for x in LOADS})
POISSON: Mapping[str, Any] = {"traffic.arrivals": "poisson"}
# The authors' runs have 500,000 requests (packet_count of vs_zsim's files). At a peak the latency of DRAM depends on the window,
# while throughput hardly does (docs/fidelity/sweeper.md), so figure 6 alone has more than the others: a quarter of the authors'.
LONG = also({"run.requests": 128_000})
# A quick run measures fewer requests; its tables say so in the column `quick`.
FEWER = when_quick({"run.requests": 15_000})

# The key-value store's whole rows; figures add systems and buffers.
AT_PEAK = CHANNELS(4) * RATE(None) * LOAD("peak_slo") * also(POISSON) * FEWER
DROP_FREE = ITEM(1024) * CHANNELS(4) * RATE(None) * LOAD("peak_nodrop") * FEWER
STANDING = BUF(2048) * axes.ITEM_BYTES(1024) * LOAD("saturate") * FEWER
DIRECTED = axes.LOAD("none")


def at(*mrps: float) -> Grid:
    """1 KiB items at fixed Poisson rates."""
    return ITEM(1024) * CHANNELS(4) * RATE(*mrps) * LOAD("fixed") * also(POISSON) * FEWER


def peak_of(rows: Rows, **wanted: Any) -> float:
    """The throughput measured in the only row with the requested columns."""
    (row,) = [r for r in rows if all(r.get(k) == v for k, v in wanted.items())]
    return float(row["throughput_mrps"])


# --- Sizing: computed from the configuration alone ------------------------------------------------------------------

ENDPOINTS, CASE = axes.ENDPOINTS, axes.CASE


def cores(n: int) -> Grid:
    return also({"tenant.0.cores": n})


SIZING = (
    DDIO
    * LOAD("none")
    * (
        CASE("ring")
        * ENDPOINTS(1)
        * BUF(128, 256, 512, 1024, 2048)
        * ITEM(512, 1024, 1536)
        * WAYS(2, 4, 6, 12)
        * cores(24)
        # 20 cores with rings of the depth that DPDK installs by default, in MTU-sized buffers.
        + CASE("dpdk-20-cores") * ENDPOINTS(1) * BUF(1024) * ITEM(1536) * WAYS(2) * cores(20)
        # A ring per remote endpoint (RDMA, VIA): N rings of depth M occupy what one of depth N x M does.
        + CASE("ring-of-128-per-endpoint")
        * ENDPOINTS(4, 16, 64)
        * BUF(lambda row: 128 * row["endpoints"])
        * ITEM(1024)
        * WAYS(2)
        * cores(24)
        + CASE("shared-by-endpoints") * ENDPOINTS(256) * BUF(1024) * ITEM(1024) * WAYS(2) * cores(1)
    )
)

# --- Directed tests -------------------------------------------------------------------------------------------------

EVICTION = axes.EVICTION.among(
    {
        "none": {"tenant.0.app.evict": "none"},
        "before": {"tenant.0.app.evict": "before_use"},
        "after": {"tenant.0.app.evict": "after_use"},
    }
)
SEC2B = (DMA + DDIO * WAYS(2)) * axes.INJECTION(lambda row: row["system"]) * EVICTION * axes.ITEM_BYTES(128) * DIRECTED
# The paper draws a packet of two blocks; a 512 B and a 1 KB packet show that the counts scale.
FIG3 = SWEPT * WAYS(2) * BLOCKS(128, 512, 1024) * DIRECTED

AGENTS = SWEEP_TX("none", "nic", "cpu") * axes.SYSTEM(lambda row: "sweeper" if row["agent"] != "none" else "ddio")
FIG4 = (
    on(DIRECTED_TX) * CASE("directed") * AGENTS * WAYS(2) * DIRECTED
    # The forwarder that transmits from the receive buffer: not measured in the paper.
    + on(L3FWD)
    * CASE("zero-copy")
    * AGENTS
    * WAYS(2)
    * DEPTH(50)
    * STANDING
    * also({"placement.policy": "ddio", "tenant.0.app.zero_copy": True})
)
SEC5B = axes.SYSTEM("sweeper") * axes.GUARD.at("tenant.0.app.guard")("none", "clwb", "dma") * DIRECTED

# --- Key-value store ------------------------------------------------------------------------------------------------

BUFFERS = (512, 1024, 2048)
FIG1_SYSTEMS = DMA + DDIO * WAYS(2, 4, 6) + IDEAL


def fig1_at_dma_peak(rows: Rows, quick: bool) -> Grid:
    """Systems of figure 1 at the rate that DMA sustains, so that latencies compare at equal load."""
    return axes.RATE_BASIS("dma peak") * sum_of(
        BUF(buf) * FIG1_SYSTEMS * at(round(peak_of(rows, system="dma", buf=buf), 3)) for buf in BUFFERS
    )


FIG6 = WAYS(2, 12) * SWEPT * BUF(1024) * LONG


def fig6_right(rows: Rows, quick: bool) -> Grid:
    """Equal load: at the peak measured here for 2-way DDIO, and at the 26 Mrps that the paper names."""
    here = round(peak_of(rows, system="ddio", ways=2), 3)
    basis = axes.RATE_BASIS
    return basis("2-way ddio peak") * FIG6 * at(here) + basis("paper") * FIG6 * at(26.0)


# --- Two tenants ----------------------------------------------------------------------------------------------------

# (DDIO, X-Mem) ways of the published runs. The paper mentions six splits; the runs of April and the files of June have five.
SPLITS = ((2, 10), (4, 8), (6, 6), (8, 4), (10, 2))


def split(ddio: int, xmem: int) -> Grid:
    return WAYS(ddio) * axes.SPLIT_A(ddio) * axes.SPLIT_B(xmem) * also({"tenant.1.llc_ways": f"0-{xmem - 1}"})


# The clock and the memory of Table I, which the authors' files of June 2022 have as well (vs_zsim 792e35d,
# tests/l3fwd_xmem_*dramsim*.cfg). X-Mem follows its shuffled pointers, always in the same order. The text's arrivals go to the
# shortest queue, as in all runs and files of the forwarder.
TABLE_I = also(
    {
        "override.core": None,
        "override.caches": None,
        "override.memory": None,
        "traffic.arrivals": "poisson",
        "tenant.1.app.order": "cycle",
        "run.requests": 32_000,
    }
)
# Partitioned, the forwarder's own fills keep to the DDIO ways. Overlapping, they keep to the last two, as in the authors' files
# with Table I's clock and memory (vs_zsim c64f6cf, 24d1972 and 792e35d); X-Mem's fills go into all twelve ways, as the text says.
MODE = axes.MODE.among(
    {
        "partition": {"tenant.0.llc_ways": lambda row: f"{12 - row['ways']}-11"},
        "overlap": {"tenant.0.llc_ways": "10-11"},
    }
)
COLOCATED = BUF.label()(2048) * axes.ITEM_BYTES(1024) * LOAD("peak_slo") * TABLE_I * FEWER
FIG9A = SWEPT * sum_of(split(a, b) for a, b in SPLITS) * MODE("partition") * COLOCATED
FIG9B = SWEPT * sum_of(split(a, 12) for a in (2, 4, 6, 8, 10, 12)) * MODE("overlap") * COLOCATED

# --- Spiky service times --------------------------------------------------------------------------------------------

# The paper calls the probability of a stall "small", and no file has it; claims about depth are judged at each of these.
STALLS = axes.STALL_PCT.at(*axes.STALL_PCT.paths, form=lambda pct: pct / 100)(0.1, 0.3, 1.0, 3.0)
FIG10B = SWEPT * WAYS(2) * BUF(128, 2048)


def fig10b(rows: Rows, quick: bool) -> Grid:
    """Rates from below the lowest drop-free peak to beyond the highest, evenly spaced in ratio."""
    peaks = [float(r["throughput_mrps"]) for r in rows]
    low, high, steps = 0.8 * min(peaks), 1.25 * max(peaks), 6 if quick else 12
    return at(*(round(low * (high / low) ** (i / (steps - 1)), 3) for i in range(steps))) * FIG10B


# --- Cited measurement ----------------------------------------------------------------------------------------------


def packets_per_pause(row: Mapping[str, Any]) -> float | None:
    """Packets received from an empty ring until it is full, when the sender has to be paused.

    A ring of B buffers that loses a fraction d of what is offered fills by d buffers per
    packet, hence B / d packets; None when the core keeps up.
    """
    return row["buf"] / row["drop_rate"] if row["drop_rate"] else None


# --- The authors' runs and their simulator ---------------------------------------------------------------------------

RUNS, ARTIFACT = "sim24-runs", "sim24-artifact"
# Keys that only the text's conditions change; without them a scenario is loaded as the authors' runs are.
TEXT = (
    *("traffic.arrivals", "tenant.1.app.order"),
    *("override.core", "override.caches", "override.memory"),
)


def in_the_runs(point: Point) -> Point:
    """The point on the same machine, with the load rule and the conditions of two tenants that the authors' runs have.

    The file for stalled requests has the load of the text.
    """
    if point.base not in (KVS, COLO):
        return point
    changes, columns = {k: v for k, v in point.changes.items() if k not in TEXT}, dict(point.columns)
    if changes.get("run.load") == "peak_slo":
        del changes["run.step"]
        columns["load"] = changes["run.load"] = "peak_loss"
        if changes.get("run.requests") == 32_000:
            del changes["run.requests"]
    if columns.get("mode") == "overlap":
        columns["split_b"] = 10
        changes |= {"tenant.1.llc_ways": "0-9", "tenant.1.app.array": "2560 KiB"}
    return replace(point, columns=columns, changes=changes)


def on_artifact(point: Point) -> Point:
    """The point with the parameters of the authors' simulator: LLC, cores, memory, and the grid of rates that follows
    from their clock.

    The authors' runs of two tenants have a separate scenario, with another clock, another memory and an LLC that is not
    inclusive. No run of the key-value store is published; points of that store use the parameters of the forwarder's
    runs.
    """
    if point.base.startswith("artifact"):
        return point
    point = in_the_runs(point)
    searched = point.changes.get("run.load") == "peak_loss"
    if point.base == COLO:
        grid = (
            {"traffic.rate": None, "run.loss": 0.01, "run.step": "2.5 Mrps", "run.requests": None} if searched else {}
        )
        return replace(point, base="artifact-colocation", changes={**grid, **point.changes})
    grid = {"run.step": "3.21 Mrps"} if searched else {}
    return replace(point, changes={"platform": ARTIFACT, **grid, **point.changes})


PLATFORMS = {"sim24": lambda point: point, RUNS: in_the_runs, ARTIFACT: on_artifact}

STUDIES = [
    Study(
        "sweeper",
        "sizing",
        "Buffer footprints against cache capacity",
        SIZING,
        ("rx_footprint_mib", "rx_footprint_per_llc", "ddio_capacity_mib", "total_rx_entries"),
        base=KVS,
    ),
    Study(
        "sweeper",
        "sec2b",
        "One packet: what an eviction before or after use costs",
        SEC2B,
        ("dram_reads_per_block", "dram_writes_per_block", "first_read_cycles", "evct_dirty_fraction"),
        base=DIRECTED_RX,
    ),
    Study(
        "sweeper",
        "fig1",
        "KVS under DMA, DDIO and ideal DDIO",
        BUF(*BUFFERS) * FIG1_SYSTEMS * ITEM(1024) * AT_PEAK,
        (*ALL_METRICS_AT_PEAK, "amat_cycles", "dram_lat_avg_ns"),
        then=fig1_at_dma_peak,
        base=KVS,
    ),
    Study(
        "sweeper",
        "fig2",
        "L3 forwarder with standing queues",
        DEPTH(50, 250, 450) * (DMA + DDIO * WAYS(2, 6, 12) + IDEAL) * STANDING,
        ALL_METRICS_AT_PEAK,
        base=L3FWD,
    ),
    Study(
        "sweeper",
        "fig3",
        "Life of a receive block, with and without relinquish",
        FIG3,
        ("copies_left", "llc_dirty_blocks", "dram_writes_per_block", "clsweeps", "sweep_messages"),
        base=DIRECTED_RX,
    ),
    Study(
        "sweeper",
        "fig4",
        "Sweeping transmit buffers",
        FIG4,
        ("tx_writes_per_block", "sweep_delay_ns", "throughput_mrps", "acc_rx_evct", "acc_tx_evct"),
        side_tables=("events",),
    ),
    Study("sweeper", "sec5b", "Page hand-over between processes", SEC5B, ("stale_blocks_readable",), base=PAGE),
    Study(
        "sweeper",
        "fig5",
        "KVS with and without Sweeper",
        ITEM(512, 1024) * BUF(*BUFFERS) * (SWEPT * WAYS(2, 4, 6, 12) + IDEAL) * AT_PEAK,
        ALL_METRICS_AT_PEAK,
        base=KVS,
    ),
    Study(
        "sweeper",
        "fig6-left",
        "DRAM latency at each system's own peak",
        FIG6 * ITEM(1024) * AT_PEAK,
        ("throughput_mrps", "dram_lat_avg_ns", "dram_lat_p50_ns", "dram_lat_p99_ns"),
        side_tables=("dram_latency_cdf",),
        base=KVS,
    ),
    Study(
        "sweeper",
        "fig6-right",
        "DRAM latency at equal load",
        DDIO * WAYS(2) * BUF(1024) * ITEM(1024) * axes.RATE_BASIS("own peak") * LONG * AT_PEAK,
        ("throughput_mrps", "dram_lat_avg_ns", "dram_lat_p50_ns", "dram_lat_p99_ns"),
        then=fig6_right,
        side_tables=("dram_latency_cdf",),
        base=KVS,
    ),
    Study(
        "sweeper",
        "fig7",
        "L3 forwarder with deep queues, with and without Sweeper",
        DEPTH(250, 450) * (SWEPT * WAYS(2, 6, 12) + IDEAL) * STANDING,
        (*ALL_METRICS_AT_PEAK, "llc_rx_lines", "llc_rx_lines_outside_ddio"),
        base=L3FWD,
    ),
    Study(
        "sweeper",
        "fig8",
        "Peak throughput by memory channels",
        AT_PEAK * CHANNELS(3, 4, 8) * (ITEM(512) * BUF(512) + ITEM(1024) * BUF(2048)) * (SWEPT * WAYS(2, 12) + IDEAL),
        ("throughput_mrps",),
        base=KVS,
    ),
    Study(
        "sweeper",
        "fig9a",
        "L3 forwarder beside X-Mem, ways partitioned",
        FIG9A,
        ("t0_mops", "t1_mops", "t1_llc_miss_ratio"),
        base=COLO,
    ),
    Study(
        "sweeper",
        "fig9b",
        "L3 forwarder beside X-Mem, ways overlapping",
        FIG9B,
        ("t0_mops", "t1_mops", "t1_llc_miss_ratio"),
        base=COLO,
    ),
    Study(
        "sweeper",
        "fig10a",
        "Drop-free peak by ring depth, with service spikes",
        STALLS * SWEPT * WAYS(2) * BUF(128, 256, 512, 1024, 2048) * DROP_FREE,
        ("throughput_mrps",),
        base=SPIKY,
    ),
    Study(
        "sweeper",
        "fig10b",
        "Drop rate by arrival rate, with service spikes",
        FIG10B * DROP_FREE,
        ("drop_rate", "throughput_mrps"),
        then=fig10b,
        base=SPIKY,
    ),
    Study(
        "sweeper",
        "sec6f-cited",
        "One core at 100 Gb/s",
        axes.SYSTEM("ddio") * axes.WAYS.label()(2) * BUF.label()(1024) * axes.ITEM_BYTES(1024) * LOAD("fixed") * FEWER,
        ("throughput_mrps", "drop_rate", "packets_per_pause"),
        derived={"packets_per_pause": packets_per_pause},
        derived_units={"packets_per_pause": "packets"},
        base="l3fwd-100g",
    ),
]
