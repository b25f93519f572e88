"""The experiments of CC-NIC (ASPLOS'24) that loop packets back: throughput and latency, ablations, batches, counters.

Latencies of lines, ping-pong, streams and the sensitivity to the link are in
``ccnic_links``. For every interface, ``mpps`` is the rate of packets that return, ``gbps`` the rate of their payload, and ``rtt_ns``
the median round-trip time. The generator is also the same for every interface: threads of the host, whose packets
return from a NIC's threads, or from the wire of a PCIe NIC.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from . import Point, Rows, Study

LOOPBACK = "ccnic-upi"
PCIE = {"e810": "pcie-e810", "cx6": "pcie-cx6"}
COHERENT = ("ccnic", "unopt")
CORES = {"icx": 16, "spr": 56}
CLOCK_GHZ = {"icx": 3.1, "spr": 2.0}
SMALL, LARGE, HUGE = 64, 1500, 4096

NOT_BUILT: dict[str, str] = {}

# Outstanding packets of each queue pair at the peak: more than rings and latency can hold.
DEEP = 128
# Packets of each queue pair, by size, that warm up and that are measured: all small buffers have been used once before
# the measurement.
EACH = {SMALL: (1600, 600), LARGE: (400, 200), HUGE: (150, 80)}
# Packets of all queues of a PCIe NIC together.
EACH_PCIE = {SMALL: (40_000, 40_000), LARGE: (15_000, 15_000)}
ALONE, QUICK_ALONE = 400, 100
# With one outstanding packet, warm-up passes once through rings of 1024 descriptors, so that none of their lines comes
# from memory. Behind a PCIe NIC, buffers wait in the rings of both directions, one after the other.
ROUND, ROUND_PCIE = 1100, 2200
# Shares of its own peak at which an interface is loaded; the paper names 80 %.
SHARES, LOADED = (0.3, 0.6, 0.8, 0.95), (0.8,)


def packets(quick: bool, system: str, size: int, n: int) -> dict[str, Any]:
    """The packets that warm up and that are measured, at the peak and under load."""
    warm, measured = EACH_PCIE[size] if system in PCIE else (n * each for each in EACH[size])
    part = 4 if quick else 1
    return {"run.warmup_requests": warm // part, "run.requests": max(measured // part, 100)}


def interface(system: str, platform: str, size: int, n: int, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes that make the base scenario this interface with `n` host cores."""
    out: dict[str, Any] = {} if platform == "icx" else {"platform": platform}
    out |= {"tenant.0.cores": n, "tenant.0.app": {"kind": "loopback", "bytes": f"{size} B", "touch": "payload"}}
    if system == "unopt":
        out["ccnic.preset"] = "unoptimised"
    return out | dict(changes)


def point(
    quick: bool,
    platform: str,
    system: str,
    size: int = SMALL,
    *,
    n: int | None = None,
    load: str = "peak",
    share: float | None = None,
    mpps: float | None = None,
    columns: Mapping[str, Any] | None = None,
    changes: Mapping[str, Any] | None = None,
    needs: str = "",
) -> Point:
    """One run: one outstanding packet (`min`), the peak, or a rate `mpps`, which is a share of the peak (`loaded`)."""
    n = (1 if load == "min" else CORES[platform]) if n is None else n
    if load == "min":
        count = QUICK_ALONE if quick else ALONE
        run: dict[str, Any] = {
            "traffic.outstanding": 1,
            "run.requests": count,
            "run.warmup_requests": ROUND_PCIE if system in PCIE else ROUND,
        }
    else:
        run = packets(quick, system, size, n)
        if load == "peak":
            run["traffic.outstanding"] = DEEP
        else:
            run |= {
                "traffic.arrivals": "fixed",
                "traffic.outstanding": None,
                "traffic.rate": f"{round(1e6 * (mpps or 0))} pps",
            }
    named = {
        "platform": platform,
        "system": system,
        "packet_bytes": size,
        "n": n,
        "load": load,
        "share": share,
        "rate_mrps": None if mpps is None else round(mpps, 6),
        **(columns or {}),
    }
    return Point(
        PCIE.get(system, LOOPBACK), named, {**interface(system, platform, size, n, changes or {}), **run}, needs
    )


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
    "packet_bytes": "B",
    "mpps": "Mpps",
    "gbps": "Gb/s",
    "rtt_ns": "ns",
    "host_cycles_per_packet": "cycles",
    "rate_mrps": "Mpps",
}
CURVE = ("mpps", "gbps", "rtt_ns")


def study(
    figure: str, title: str, points: Callable[[bool], list[Point]], metrics: tuple[str, ...] = CURVE, **more: Any
) -> Study:
    """A study with the columns that all tables of this system have."""
    more.setdefault("derived", DERIVED)
    more.setdefault("derived_units", UNITS)
    return Study("ccnic", figure, title, points, metrics, **more)


def at_shares(rows: Rows, quick: bool, shares: tuple[float, ...]) -> list[Point]:
    """Each interface at these shares of its own peak."""
    kept = ("signal", "layout", "variant", "placed")
    out = []
    for r in rows:
        if r.get("load") == "peak" and r.get("throughput_mrps"):
            labels = {k: r[k] for k in kept if k in r}
            out += [
                point(
                    quick,
                    r["platform"],
                    r["system"],
                    r["packet_bytes"],
                    n=r["n"],
                    load="loaded",
                    share=s,
                    mpps=s * r["throughput_mrps"],
                    columns=labels,
                    changes=features(labels),
                )
                for s in shares
            ]
    return out


def loaded(rows: Rows, quick: bool) -> list[Point]:
    return at_shares(rows, quick, LOADED)


def curve(rows: Rows, quick: bool) -> list[Point]:
    return at_shares(rows, quick, LOADED if quick else SHARES)


# --- Throughput and latency (Figs. 11 to 13) ------------------------------------------------------------------------


def ends(quick: bool, platform: str, systems: tuple[str, ...], sizes: tuple[int, ...]) -> list[Point]:
    return [
        point(quick, platform, system, size, load=load)
        for system in systems
        for size in sizes
        for load in ("min", "peak")
    ]


def fig11(quick: bool) -> list[Point]:
    return ends(quick, "icx", (*COHERENT, *PCIE), (SMALL, LARGE))


def fig12(quick: bool) -> list[Point]:
    return ends(quick, "icx", ("ccnic", *PCIE), (SMALL, LARGE))


def fig13(quick: bool) -> list[Point]:
    return ends(quick, "spr", ("ccnic",), (SMALL, LARGE))


def intro(quick: bool) -> list[Point]:
    return ends(quick, "icx", COHERENT, (SMALL,)) + ends(quick, "spr", COHERENT, (SMALL,))


# Host cores, each with a NIC core.
SWEPT = {"icx": (1, 4, 8, 10, 12, 14, 16), "spr": (1, 8, 16, 24, 32, 40, 48, 56)}
HEADER = {"tenant.0.app": {"kind": "loopback", "bytes": f"{HUGE} B", "touch": "header"}}


def cores(quick: bool) -> list[Point]:
    """Packets of 64 B and 4 KiB over host cores, and one core that reads only headers."""
    out = [
        point(quick, plat, "ccnic", size, n=n, columns={"touch": "payload"})
        for plat, counts in SWEPT.items()
        for size in (SMALL, HUGE)
        for n in counts
    ]
    return out + [point(quick, plat, "ccnic", HUGE, n=1, columns={"touch": "header"}, changes=HEADER) for plat in SWEPT]


# --- Ablations (Figs. 6, 10, 14, 15, section 3.3) -------------------------------------------------------------------

# Steps of buffer management. Each step includes the previous ones, in the order in which the paper removes features.
# Caches of a driver would restore what the first step removes.
STEPS: dict[str, dict[str, Any]] = {
    "full": {},
    "no_recycle_nonseq": {"ccnic.recycle": False, "ccnic.nonsequential": False},
}
STEPS["no_small"] = {**STEPS["no_recycle_nonseq"], "ccnic.small_buffers": False}
STEPS["no_shared_pool"] = {**STEPS["no_small"], "ccnic.pool": "host", "ccnic.cache": 0}


def features(labels: Mapping[str, Any]) -> dict[str, Any]:
    """The switches that the labels of a row stand for; choices that CC-NIC makes itself are omitted, so that figures
    share runs."""
    out: dict[str, Any] = dict(STEPS.get(labels.get("variant") or "full", {}))
    if labels.get("signal") == "register":
        out["ccnic.signal"] = "register"
    if labels.get("layout") not in (None, "grouped"):
        out["ccnic.layout"] = labels["layout"]
    if labels.get("placed") == "same-socket":
        out["ccnic.nic_node"] = 0
    return out


def switched(
    quick: bool, platform: str, load: str, system: str = "ccnic", n: int | None = None, **labels: Any
) -> Point:
    return point(quick, platform, system, load=load, n=n, columns=labels, changes=features(labels))


def fig6(quick: bool) -> list[Point]:
    """One outstanding packet, one descriptor per signal."""
    return [switched(quick, plat, "min", signal=s) for plat in CORES for s in ("register", "inline")]


def fig14a(quick: bool) -> list[Point]:
    return [switched(quick, "spr", load, signal=s) for s in ("register", "inline") for load in ("min", "peak")]


def fig14b(quick: bool) -> list[Point]:
    return [switched(quick, "spr", load, layout=x) for x in ("grouped", "packed", "padded") for load in ("min", "peak")]


def fig15(quick: bool) -> list[Point]:
    return [switched(quick, "spr", load, variant=v) for v in STEPS for load in ("min", "peak")]


POLICIES: dict[str, dict[str, Any]] = {
    "recycle": {},
    "retain": {"ccnic.recycle": False},
    "clflushopt": {"ccnic.recycle": False, "ccnic.release": "clflushopt"},
    "clwb": {"ccnic.recycle": False, "ccnic.release": "clwb"},
}


# The order in which the pool is filled, with the NIC's prefetchers on.
ORDERS = {"nonsequential": {}, "sequential": {"ccnic.nonsequential": False}}


def cache_management(quick: bool) -> list[Point]:
    """Treatment of a payload that the NIC has read, and whether the host gets that buffer back immediately; and the
    lines that the NIC's prefetchers take from the host, by the order in which the pool is filled."""
    out = [
        point(quick, plat, "ccnic", columns={"policy": name}, changes=changes)
        for plat in CORES
        for name, changes in POLICIES.items()
    ]
    return out + [
        point(
            quick,
            plat,
            "ccnic",
            columns={"policy": "nic_prefetch", "alloc_order": order},
            changes={"ccnic.nic_prefetch": True, **changes},
        )
        for plat in CORES
        for order, changes in ORDERS.items()
    ]


# Blank buffers are posted before sizes are known.
HOST_POOL = {"ccnic.pool": "host", "ccnic.small_buffers": False}


def fig10(quick: bool) -> list[Point]:
    """Buffer management by the host or by the NIC."""
    return [
        point(quick, plat, "ccnic", columns={"pool": pool}, changes={} if pool == "shared" else HOST_POOL)
        for plat in CORES
        for pool in ("shared", "host")
    ]


# --- Batches (Fig. 16) ----------------------------------------------------------------------------------------------

BATCHES = (1, 2, 4, 8, 16, 32)


def batches(side: str) -> Callable[[bool], list[Point]]:
    def points(quick: bool) -> list[Point]:
        out = [
            point(quick, "icx", "ccnic", columns={side: b}, changes={} if b == 32 else {f"ccnic.{side}": b})
            for b in BATCHES
        ]
        driver = {"tx_batch": "override.poll_mode.transmit_burst", "rx_batch": "override.poll_mode.burst"}
        alike = dict.fromkeys(driver.values(), 32)
        return out + [
            point(quick, "icx", "e810", columns={side: b}, changes={**alike, driver[side]: b}) for b in BATCHES
        ]

    return points


# --- Remote accesses, the interconnect, prefetchers (Figs. 17, 18, 20) ----------------------------------------------


def fig17(quick: bool) -> list[Point]:
    """Bursts of eight in full lines, and one outstanding packet."""
    batched = {"ccnic.tx_batch": 8, "ccnic.rx_batch": 8}
    return [
        p
        for system in COHERENT
        for p in (
            point(quick, "spr", system, columns={"mode": "batched"}, changes=batched),
            point(quick, "spr", system, load="min", columns={"mode": "singleton"}),
        )
    ]


def fig18(quick: bool) -> list[Point]:
    return [
        switched(quick, "spr", load, n=1, placed=place)
        for place in ("same-socket", "cross-upi")
        for load in ("min", "peak")
    ]


# The platform's prefetchers of the L1 and the L2, by socket. In the other studies the host's prefetchers are on and the
# NIC's are off, as in the paper.
PREFETCH = {
    "off": {"ccnic.host_prefetch": False},
    "host": {},
    "nic": {"ccnic.host_prefetch": False, "ccnic.nic_prefetch": True},
    "both": {"ccnic.nic_prefetch": True},
}


def fig20(quick: bool) -> list[Point]:
    return [
        point(quick, "spr", system, columns={"prefetch": p}, changes=changes)
        for system in COHERENT
        for p, changes in PREFETCH.items()
    ]


# --- What the paper only proposes (sections 3.2 and 6) ----------------------------------------------------------------

QUEUES = (1, 4, 16, 64, 256)
WAKES = ("polling", "event")
FORWARDERS, FORWARDED = 8, 8


def events(quick: bool) -> list[Point]:
    """One thread of the NIC and one active queue pair among many, with one outstanding packet."""
    return [
        point(
            quick,
            "spr",
            "ccnic",
            load="min",
            columns={"queues": n, "signalling": wake},
            changes={"ccnic.idle_queues": n - 1, "ccnic.wake": wake},
        )
        for wake in WAKES
        for n in QUEUES
    ]


def forwards(quick: bool) -> list[Point]:
    """Packets of which the host reads only the header, at a load well below the peak: with a NIC that keeps the
    payload, with one that reads the payload again, and behind an E810."""
    count = {"run.requests": 1000 if quick else 8000, "run.warmup_requests": 1000 if quick else 8000}
    named = {"platform": "spr", "packet_bytes": LARGE, "n": FORWARDERS}
    out = [
        Point("ccnic-forward", {**named, "system": "ccnic", "nic_reads": reads}, {**count, "ccnic.nic_reads": reads})
        for reads in ("header", "payload")
    ]
    # In this study frames come from outside, with their check sequence, which stays in the NIC.
    pcie = {
        **count,
        "tenant.0.cores": FORWARDERS,
        "tenant.0.app": {"kind": "l2fwd"},
        "peripheral.0.loopback": False,
        "traffic.packet": f"{LARGE + 4} B",
        "traffic.outstanding": FORWARDERS * FORWARDED,
        "traffic.spread": "round_robin",
    }
    return [*out, Point(PCIE["e810"], {**named, "platform": "icx", "system": "e810", "nic_reads": "payload"}, pcie)]


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


# A device's agent in place of a thread.
AGENTS = {"thread": {}, "agent": {"ccnic.nic": "agent", "ccnic.wake": "event"}}


def agents(quick: bool) -> list[Point]:
    """A NIC of threads compared with a NIC of device agents, which make the same requests without instructions."""
    return [
        point(quick, plat, "ccnic", load=load, columns={"made_of": name}, changes=changes)
        for plat in CORES
        for name, changes in AGENTS.items()
        for load in ("min", "peak")
    ]


# Threads of the NIC for the queue pairs of 16 host cores.
SERVING = (1, 2, 4, 8, 16)


def nic_threads(quick: bool) -> list[Point]:
    """Number of the NIC's threads that the host's cores need, when one thread serves several queue pairs."""
    return [
        point(quick, "icx", "ccnic", size, columns={"nic_threads": t}, changes={"ccnic.nic_threads": t})
        for size in (SMALL, LARGE)
        for t in SERVING
    ]


# --- Beside what PCIe NICs can do (no paper has it) -----------------------------------------------------------------

# Placement of received data behind the E810: none in caches, DDIO, and IDIO as its authors evaluate it.
PLACED = {
    "dma": {"policy": "dma"},
    "ddio": {"policy": "ddio", "ways": 2},
    "idio": {"policy": "idio", "mode": "dynamic", "ways": 2},
}


def versus(quick: bool) -> list[Point]:
    """CC-NIC compared with the E810 under three placements, at 16 cores and at one, with 64 B and 1500 B."""
    out = []
    for size in (SMALL, LARGE):
        for load in ("min", "peak"):
            out.append(point(quick, "icx", "ccnic", size, load=load, columns={"policy": "ccnic"}))
            out += [
                point(quick, "icx", "e810", size, load=load, columns={"policy": name}, changes={"placement": table})
                for name, table in PLACED.items()
            ]
    return out


REMOTE = ("host_remote_reads", "host_remote_rfos", "nic_remote_reads", "nic_remote_rfos")

STUDIES = [
    study("fig6", "Lines fetched for a signal", fig6, ("rtt_ns", *REMOTE)),
    study(
        "sec33-cachemgmt",
        "What becomes of a payload that the NIC has read",
        cache_management,
        ("mpps", "retained_rfos", *REMOTE),
        derived={**DERIVED, "retained_rfos": retained_rfos},
        derived_units={**UNITS, "retained_rfos": "1/line"},
    ),
    study("fig10", "Who manages buffers", fig10, ("mpps", "host_instructions_per_packet", "pool_ops_per_packet")),
    study("fig11", "CC-NIC, the unoptimised interface, E810 and ConnectX-6 on Ice Lake", fig11, then=curve),
    study("intro-unopt", "CC-NIC and a PCIe NIC's interface on the same link", intro, then=loaded),
    study("fig12", "CC-NIC and PCIe NICs on Ice Lake", fig12, then=curve),
    study("fig13", "CC-NIC on Sapphire Rapids", fig13, then=curve),
    study("cores", "Host cores and packet rate", cores, ("mpps", "gbps", "host_cycles_per_packet")),
    study("fig14a", "Signals: inlined or registers", fig14a),
    study("fig14b", "Layouts of descriptors", fig14b),
    study("fig15", "Buffer management, feature by feature", fig15),
    study("fig16a", "Bursts sent", batches("tx_batch"), ("mpps", "doorbells_per_packet")),
    study("fig16b", "Bursts received", batches("rx_batch"), ("mpps",)),
    study("fig17", "Remote accesses of a packet", fig17, REMOTE),
    study("fig18", "With and without the interconnect", fig18, (*CURVE, "host_cycles_per_packet"), then=loaded),
    study("fig20", "Hardware prefetchers", fig20, ("mpps",)),
    study(
        "sec32-event",
        "Queue pairs of a NIC's thread that polls, and of one that hears",
        events,
        ("signal_discovery_ns", "rtt_ns"),
    ),
    study(
        "sec6-forward",
        "Payload that nobody touches",
        forwards,
        ("mpps", "crossed_bytes", "payload_lines_crossed", "frame_bytes_moved"),
        derived={**DERIVED, "crossed_bytes": crossed},
        derived_units={**UNITS, "crossed_bytes": "B"},
    ),
    study("agent", "A NIC of threads, and one of a device's agents", agents, (*CURVE, *REMOTE)),
    study(
        "nic-threads",
        "Threads of the NIC for 16 host cores",
        nic_threads,
        ("mpps", "gbps", "nic_instructions_per_packet"),
    ),
    study("versus", "CC-NIC beside PCIe with DMA, DDIO and IDIO", versus),
]
