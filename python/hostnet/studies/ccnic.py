"""The experiments of CC-NIC (ASPLOS'24) that loop packets back: throughput and latency, ablations, batches, counters.

Latencies of lines, ping-pong, streams and the sensitivity to the link are in
``ccnic_links``. For every interface, ``mpps`` is the rate of packets that return, ``gbps`` the rate of their payload, and ``rtt_ns``
the median round-trip time. The generator is also the same for every interface: threads of the host, whose packets
return from a NIC's threads, or from the wire of a PCIe NIC.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import Rows, Study, axes
from .grid import Axis, Changes, Grid, Row, also, by_length, on, sum_of

LOOPBACK = "ccnic-upi"
PCIE = {"e810": "pcie-e810", "cx6": "pcie-cx6"}
COHERENT = ("ccnic", "unopt")
CORES = {"icx": 16, "spr": 56}
CLOCK_GHZ = {"icx": 3.1, "spr": 2.0}
SMALL, LARGE, HUGE = 64, 1500, 4096

NOT_BUILT: dict[str, str] = {}

# Outstanding packets of each queue pair at the peak: more than rings and latency can hold.
DEEP = 128
# Packets of each queue pair, by size, that warm up and that are measured. Whole studies of a coherent interface give no warm-up:
# the caches fill in functional mode, and the warm-up ends when caches and traffic are steady.
EACH = {SMALL: (1600, 600), LARGE: (400, 200), HUGE: (150, 80)}
# Packets of all queues of a PCIe NIC together.
EACH_PCIE = {SMALL: (40_000, 40_000), LARGE: (15_000, 15_000)}
ALONE, QUICK_ALONE = 400, 100
# With one outstanding packet, warm-up passes once through rings of 1024 descriptors and through the buffers that take turns, so
# that none of their lines comes from memory.
ROUND = 1100
# Where the host alone manages buffers, as behind a PCIe NIC, they wait in the rings of both directions and in a driver's cache of
# up to 375, one after the other.
ROUND_HOST = 2500
# Without recycling a packet takes two of the pool's 16,384 small buffers.
ROUND_POOL = 8400
# Shares of its own peak at which an interface is loaded; the paper names 80 %.
SHARES, LOADED = (0.3, 0.6, 0.8, 0.95), (0.8,)


# --- Axes -----------------------------------------------------------------------------------------------------------

SYSTEM = axes.SYSTEM.among(
    {"ccnic": on(LOOPBACK), "unopt": on(LOOPBACK) * also({"ccnic.preset": "unoptimised"})}
    | {nic: on(scenario) for nic, scenario in PCIE.items()}
)
PLATFORM = axes.PLATFORM.among({"icx": {}, "spr": {"platform": "spr"}})
SIZE, COUNT, LOAD = axes.PACKET_BYTES, axes.COUNT.said(unit="cores").at("tenant.0.cores"), axes.LOAD
SHARE = axes.SHARE.said("offered rate over the interface's own peak")
RATE = axes.RATE_MRPS.said(unit="Mpps")
CCNIC, SMALL_PACKETS = SYSTEM("ccnic"), SIZE(SMALL)
ICX, SPR = PLATFORM("icx"), PLATFORM("spr")


def round_of_buffers(row: Row) -> int:
    """Packets after which every buffer and every descriptor has been used once, with one packet under way."""
    variant = row.get("variant")
    if row["system"] in (*PCIE, "unopt") or variant == "no_shared_pool":
        return ROUND_HOST
    return ROUND_POOL if variant in ("no_recycle_nonseq", "no_small") else ROUND


def length(row: Row) -> Changes:
    """The packets of a row that are under way, that warm up and that are measured."""
    pcie = row["system"] in PCIE
    given = pcie or row["quick"]
    if row["load"] == "min":
        return {
            "traffic.outstanding": 1,
            "run.requests": QUICK_ALONE if row["quick"] else ALONE,
            "run.warmup_requests": round_of_buffers(row) if given else None,
        }
    size = row["packet_bytes"]
    warm, measured = EACH_PCIE[size] if pcie else (row["n"] * each for each in EACH[size])
    part = 4 if row["quick"] else 1
    return {
        "traffic.outstanding": DEEP if row["load"] in ("peak", "saturated") else None,
        "run.requests": max(measured // part, 100),
        "run.warmup_requests": warm // part if given else None,
    }


# Packets that come back.
LOOPED = also(
    {
        "tenant.0.app": lambda row: {
            "kind": "loopback",
            "bytes": f"{row['packet_bytes']} B",
            "touch": row.get("touch", "payload"),
        }
    }
) * also(length)
AS_FAST = SHARE(None) * RATE(None) * LOOPED
ALL_CORES = COUNT(lambda row: CORES[row["platform"]])
# One packet under way at one core, and the peak of all cores.
MIN = LOAD("min") * COUNT(1) * AS_FAST
PEAK = LOAD("peak") * ALL_CORES * AS_FAST


# --- Columns --------------------------------------------------------------------------------------------------------


def mpps(row: Mapping[str, Any]) -> float | None:
    """Rate of packets that return, in millions per second."""
    return row.get("throughput_mrps")


def gbps(row: Mapping[str, Any]) -> float | None:
    """Rate of the payload, in Gb/s."""
    rate, size = mpps(row), row.get("packet_bytes")
    return None if rate is None or size is None else 8e-3 * rate * size


def rtt_ns(row: Mapping[str, Any]) -> float | None:
    """The median round-trip time in ns."""
    return None if row.get("rtt_median_us") is None else 1e3 * row["rtt_median_us"]


def host_cycles(row: Mapping[str, Any]) -> float | None:
    """Cycles of the host's threads per packet, when these threads work as fast as they can."""
    rate = mpps(row)
    if row.get("load") != "peak" or not rate or not row.get("n"):
        return None
    cycles: float = 1e3 * CLOCK_GHZ[row["platform"]] * row["n"] / rate
    return cycles


DERIVED = {"mpps": mpps, "gbps": gbps, "rtt_ns": rtt_ns, "host_cycles_per_packet": host_cycles}
UNITS = {
    "mpps": "Mpps",
    "gbps": "Gb/s",
    "rtt_ns": "ns",
    "host_cycles_per_packet": "cycles",
}
CURVE = ("mpps", "gbps", "rtt_ns")


def study(figure: str, title: str, grid: Grid, metrics: tuple[str, ...] = CURVE, **more: Any) -> Study:
    """A study with the columns that all tables of this system have."""
    more = {
        "derived": DERIVED,
        "derived_units": UNITS,
        "made_of": ("throughput_mrps", "rtt_median_us"),
        "axes": axes.with_own(COUNT, SHARE, RATE),
        **more,
    }
    return Study("ccnic", figure, title, grid, metrics, **more)


def best(rows: Rows) -> list[Row]:
    """Of each interface and size, the row of the number of cores with the highest rate of packets."""
    found: dict[tuple[Any, ...], Row] = {}
    for r in rows:
        if r["load"] == "saturated" and r.get("throughput_mrps"):
            key = (r["platform"], r["system"], r["packet_bytes"])
            if key not in found or r["throughput_mrps"] > found[key]["throughput_mrps"]:
                found[key] = r
    return [{**r, "load": "peak"} for r in found.values()]


def peaks(rows: Rows) -> Grid:
    """The peak of each interface, which is that of its best number of cores (Fig. 11)."""
    return sum_of(
        PLATFORM(r["platform"]) * SYSTEM(r["system"]) * SIZE(r["packet_bytes"]) * COUNT(r["n"]) * LOAD("peak") * AS_FAST
        for r in best(rows)
    )


def at_shares(rows: Rows, shares: tuple[float, ...]) -> Grid:
    """Each interface at these shares of its own peak, with the switches that its row names."""
    out = []
    for r in rows:
        if r.get("load") == "peak" and r.get("throughput_mrps"):
            same = PLATFORM(r["platform"]) * SYSTEM(r["system"]) * SIZE(r["packet_bytes"]) * COUNT(r["n"])
            for switch in (a for a in SWITCHES if a.column in r):
                same *= switch(r[switch.column])
            out += [same * offered(s, s * r["throughput_mrps"]) for s in shares]
    return sum_of(out)


def offered(share: float, mpps: float) -> Grid:
    """A rate that is a share of a peak."""
    rate = {"traffic.arrivals": "fixed", "traffic.rate": f"{round(1e6 * mpps)} pps"}
    return LOAD("loaded") * SHARE(share) * RATE(round(mpps, 6)) * LOOPED * also(rate)


def loaded(rows: Rows, quick: bool) -> Grid:
    return at_shares(rows, LOADED)


def curve(rows: Rows, quick: bool) -> Grid:
    return peaks(rows) + at_shares(best(rows), LOADED if quick else SHARES)


def loaded_at_best(rows: Rows, quick: bool) -> Grid:
    return peaks(rows) + at_shares(best(rows), LOADED)


# --- Throughput and latency (Figs. 11 to 13) ------------------------------------------------------------------------


ENDS = MIN + PEAK


# Host cores, of which the best number gives an interface's peak.
TRIED = {"icx": (1, 2, 4, 8, 12, 16), "spr": (8, 16, 24, 32, 40, 48, 56)}


def ends(platform: str, systems: tuple[str, ...], sizes: tuple[int, ...] = (SMALL, LARGE)) -> Grid:
    """Interfaces with one packet under way, and with all that they take, over host cores."""
    saturated = LOAD("saturated") * COUNT(*TRIED[platform]) * AS_FAST
    return PLATFORM(platform) * SYSTEM(*systems) * SIZE(*sizes) * (MIN + saturated)


# Buffers hold packets of the MTU behind their metadata.
MTU = also({"ccnic.quirks.large_buffer": lambda row: "8 KiB" if row["packet_bytes"] == HUGE else None})
# Host cores, each with a NIC core.
SWEPT = {"icx": (1, 4, 8, 10, 12, 14, 16), "spr": (1, 8, 16, 24, 32, 40, 48, 56)}
# Packets of 64 B and 4 KiB over host cores; and one core that looks at headers alone.
OVER_CORES = (
    CCNIC
    * LOAD("peak")
    * (
        axes.TOUCH("payload")
        * sum_of(PLATFORM(plat) * SIZE(SMALL, HUGE) * COUNT(*counts) for plat, counts in SWEPT.items())
        + axes.TOUCH("header") * PLATFORM * SIZE(HUGE) * COUNT(1)
    )
    * AS_FAST
    * MTU
)

# --- Ablations (Figs. 6, 10, 14, 15, section 3.3) -------------------------------------------------------------------

# Steps of buffer management. Each step includes the previous ones, in the order in which the paper removes features.
# Caches of a driver would restore what the first step removes.
STEPS: dict[str, dict[str, Any]] = {
    "full": {},
    "no_recycle_nonseq": {"ccnic.recycle": False, "ccnic.nonsequential": False},
}
STEPS["no_small"] = {**STEPS["no_recycle_nonseq"], "ccnic.small_buffers": False}
STEPS["no_shared_pool"] = {**STEPS["no_small"], "ccnic.pool": "host", "ccnic.quirks.cache": 0}


# Switches of the interface; what is CC-NIC's own choice is left alone, so that figures share runs.
VARIANT = axes.VARIANT.among(STEPS)
SIGNAL = axes.SIGNAL.among({"register": {"ccnic.signal": "register"}, "inline": {}})
LAYOUT = axes.LAYOUT.at("ccnic.layout", usual="grouped")
PLACED = axes.PLACED.among({"same-socket": {"ccnic.nic_node": 0}, "cross-upi": {}})
SWITCHES: tuple[Axis, ...] = (SIGNAL, LAYOUT, VARIANT, PLACED)
SMALL_CCNIC = CCNIC * SMALL_PACKETS

POLICIES: dict[str, dict[str, Any]] = {
    "recycle": {},
    "retain": {"ccnic.recycle": False},
    "clflushopt": {"ccnic.recycle": False, "ccnic.release": "clflushopt"},
    "clwb": {"ccnic.recycle": False, "ccnic.release": "clwb"},
}


# The order in which the pool is filled, with the NIC's prefetchers on.
ORDERS = {"nonsequential": {}, "sequential": {"ccnic.nonsequential": False}}


# Treatment of a payload that the NIC has read, and whether the host gets that buffer back at once; and what the NIC's prefetchers
# take from the host, by the order in which the pool is filled.
CACHE_MANAGEMENT = (
    PLATFORM * axes.POLICY.among(POLICIES)
    + PLATFORM
    * axes.POLICY("nic_prefetch")
    * axes.ALLOC_ORDER.among(ORDERS)
    * also({"ccnic.quirks.nic_prefetch": True})
) * (SMALL_CCNIC * PEAK)
# Buffer management by the host or by the NIC. Blank buffers are posted before sizes are known.
POOL = axes.POOL.among({"shared": {}, "host": {"ccnic.pool": "host", "ccnic.small_buffers": False}})

# --- Batches (Fig. 16) ----------------------------------------------------------------------------------------------

BATCHES = (1, 2, 4, 8, 16, 32)


def batches(axis: Axis, driver: str) -> Grid:
    """Bursts of one way, at CC-NIC and at a PCIe NIC's driver."""
    alike = also({"override.poll_mode.quirks.transmit_burst": 32, "override.poll_mode.burst": 32})
    ours = CCNIC * axis.at(f"ccnic.{axis.column}", usual=32)(*BATCHES)
    theirs = SYSTEM("e810") * alike * axis.at(f"override.poll_mode.{driver}")(*BATCHES)
    return ICX * SMALL_PACKETS * (ours + theirs) * PEAK


# --- Remote accesses, the interconnect, prefetchers (Figs. 17, 18, 20) ----------------------------------------------


# Bursts of eight in full lines, and one packet under way.
FIG17 = (
    SPR
    * SYSTEM(*COHERENT)
    * SMALL_PACKETS
    * (axes.MODE("batched") * also({"ccnic.tx_batch": 8, "ccnic.rx_batch": 8}) * PEAK + axes.MODE("singleton") * MIN)
)
FIG18 = SPR * SMALL_CCNIC * PLACED * LOAD("min", "peak") * COUNT(1) * AS_FAST

# The platform's prefetchers of the L1 and the L2, by socket. In the other studies the host's prefetchers are on and the
# NIC's are off, as in the paper.
PREFETCH = {
    "off": {"ccnic.quirks.host_prefetch": False},
    "host": {},
    "nic": {"ccnic.quirks.host_prefetch": False, "ccnic.quirks.nic_prefetch": True},
    "both": {"ccnic.quirks.nic_prefetch": True},
}


# --- What the paper only proposes (sections 3.2 and 6) ----------------------------------------------------------------

QUEUES = (1, 4, 16, 64, 256)
WAKES = ("polling", "event")
FORWARDERS, FORWARDED = 8, 8


# One thread of the NIC and one active queue pair among many, with one packet under way.
EVENTS = (
    SPR
    * SMALL_CCNIC
    * axes.SIGNALLING.at("ccnic.wake")(*WAKES)
    * axes.QUEUES.at("ccnic.quirks.idle_queues", form=lambda n: n - 1)(*QUEUES)
    * MIN
)

# Packets whose header alone the host touches, at a load well below the peak: in a NIC that keeps payload, in one that reads it
# anew, and behind an E810.
READS = axes.NIC_READS
COUNTED = dict.fromkeys(("run.requests", "run.warmup_requests"), by_length(8000, 1000))
FORWARDS = (
    SIZE(LARGE)
    * axes.COUNT(FORWARDERS)
    * also(COUNTED)
    * (
        on("ccnic-forward")
        * axes.PLATFORM("spr")
        * axes.SYSTEM("ccnic")
        * READS.at("ccnic.nic_reads")("header", "payload")
        # Frames come from outside here, with their check sequence, which stays in the NIC.
        + axes.PLATFORM("icx")
        * SYSTEM("e810")
        * READS("payload")
        * also(
            {
                "tenant.0.cores": FORWARDERS,
                "tenant.0.app": {"kind": "l2fwd"},
                "peripheral.0.loopback": False,
                "traffic.packet": f"{LARGE + 4} B",
                "traffic.outstanding": FORWARDERS * FORWARDED,
                "traffic.spread": "round_robin",
            }
        )
    )
)


def crossed(row: Mapping[str, Any]) -> float | None:
    """Bytes of payload per packet that crossed to or from the NIC: lines requested over the link, or lines that a
    device moved."""
    if row.get("payload_lines_crossed") is not None:
        lines: float = row["payload_lines_crossed"]
        return 64 * lines
    moved: float | None = row.get("frame_bytes_moved")
    return moved


def retained_rfos(row: Mapping[str, Any]) -> float | None:
    """Remote requests of the host for ownership of payload, per line that the host writes to a buffer that the NIC used
    last."""
    written = row.get("host_writes_retained")
    return row["host_remote_rfos_payload"] / written if written else None


# A NIC of threads beside one of a device's agents, which make the same requests without instructions.
MADE_OF = axes.MADE_OF.among({"thread": {}, "agent": {"ccnic.nic": "agent", "ccnic.wake": "event"}})
# Threads of the NIC for the queue pairs of 16 host cores, when one serves several queue pairs.
NIC_THREADS = axes.NIC_THREADS.at("ccnic.nic_threads")(1, 2, 4, 8, 16)

# --- Beside what PCIe NICs can do (no paper has it) -----------------------------------------------------------------

# Placement of received data behind the E810: none in caches, DDIO, and IDIO as its authors evaluate it.
BEHIND = axes.POLICY.among(
    {
        "dma": {"placement": {"policy": "dma"}},
        "ddio": {"placement": {"policy": "ddio", "ways": 2}},
        "idio": {"placement": {"policy": "idio", "mode": "dynamic", "ways": 2}},
    }
)
# CC-NIC beside the E810 under three placements, at 16 cores and one, with 64 B and 1500 B.
VERSUS = ICX * sum_of(
    SIZE(size) * (CCNIC * axes.POLICY("ccnic") + SYSTEM("e810") * BEHIND) * load
    for size in (SMALL, LARGE)
    for load in (MIN, PEAK)
)

REMOTE = ("host_remote_reads", "host_remote_rfos", "nic_remote_reads", "nic_remote_rfos")

STUDIES = [
    study("fig6", "Lines fetched for a signal", PLATFORM * SMALL_CCNIC * SIGNAL * MIN, ("rtt_ns", *REMOTE)),
    study(
        "sec33-cachemgmt",
        "What becomes of a payload that the NIC has read",
        CACHE_MANAGEMENT,
        ("mpps", "retained_rfos", *REMOTE),
        derived={**DERIVED, "retained_rfos": retained_rfos},
        derived_units={**UNITS, "retained_rfos": "1/line"},
    ),
    study(
        "fig10",
        "Who manages buffers",
        PLATFORM * SMALL_CCNIC * POOL * PEAK,
        ("mpps", "host_instructions_per_packet", "pool_ops_per_packet"),
    ),
    study(
        "fig11",
        "CC-NIC, the unoptimised interface, E810 and ConnectX-6 on Ice Lake",
        ends("icx", (*COHERENT, *PCIE)),
        then=curve,
    ),
    study(
        "intro-unopt",
        "CC-NIC and a PCIe NIC's interface on the same link",
        ends("icx", COHERENT, (SMALL,)) + ends("spr", COHERENT, (SMALL,)),
        then=loaded_at_best,
    ),
    study("fig12", "CC-NIC and PCIe NICs on Ice Lake", ends("icx", ("ccnic", *PCIE)), then=curve),
    study("fig13", "CC-NIC on Sapphire Rapids", ends("spr", ("ccnic",)), then=curve),
    study("cores", "Host cores and packet rate", OVER_CORES, ("mpps", "gbps", "host_cycles_per_packet")),
    study("fig14a", "Signals: inlined or registers", SPR * SMALL_CCNIC * SIGNAL * ENDS),
    study("fig14b", "Layouts of descriptors", SPR * SMALL_CCNIC * LAYOUT("grouped", "packed", "padded") * ENDS),
    study("fig15", "Buffer management, feature by feature", SPR * SMALL_CCNIC * VARIANT * ENDS),
    study("fig16a", "Bursts sent", batches(axes.TX_BATCH, "quirks.transmit_burst"), ("mpps", "doorbells_per_packet")),
    study("fig16b", "Bursts received", batches(axes.RX_BATCH, "burst"), ("mpps",)),
    study("fig17", "Remote accesses of a packet", FIG17, REMOTE),
    study("fig18", "With and without the interconnect", FIG18, (*CURVE, "host_cycles_per_packet"), then=loaded),
    study(
        "fig20",
        "Hardware prefetchers",
        SPR * SYSTEM(*COHERENT) * SMALL_PACKETS * axes.PREFETCH.among(PREFETCH) * PEAK,
        ("mpps",),
    ),
    study(
        "sec32-event",
        "Queue pairs of a NIC's thread that polls, and of one that hears",
        EVENTS,
        ("signal_discovery_ns", "rtt_ns"),
    ),
    study(
        "sec6-forward",
        "Payload that nobody touches",
        FORWARDS,
        ("mpps", "crossed_bytes", "payload_lines_crossed", "frame_bytes_moved"),
        derived={**DERIVED, "crossed_bytes": crossed},
        derived_units={**UNITS, "crossed_bytes": "B"},
    ),
    study(
        "agent",
        "A NIC of threads, and one of a device's agents",
        PLATFORM * SMALL_CCNIC * MADE_OF * ENDS,
        (*CURVE, *REMOTE),
    ),
    study(
        "nic-threads",
        "Threads of the NIC for 16 host cores",
        ICX * CCNIC * SIZE(SMALL, LARGE) * NIC_THREADS * PEAK,
        ("mpps", "gbps", "nic_instructions_per_packet"),
    ),
    study("versus", "CC-NIC beside PCIe with DMA, DDIO and IDIO", VERSUS),
]
