"""The experiments of IDIO (MICRO'22) on its simulated machine, and those of its section III on a Skylake-like server;
``PLATFORMS`` has what another simulated machine changes.

Bursts fill a receive ring of each function once every 10 ms. Rates of the simulated machine count 2^30 bits as G: only
so does a burst last as long as the paper says (1.155 ms at 10 Gbps). docs/use/policies.md lists the other choices that
the paper leaves open.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from . import Point, Rows, Study, axes
from .grid import Changes, Grid, Row, also, by_length, on

TOUCHDROP, CORUN, L2FWD, SERVER = "touchdrop-bursts", "touchdrop-antagonist", "l2fwd-bursts", "touchdrop-server"
FRAME, RING, FUNCTIONS = 1514, 1024, 2
RATES = (100.0, 25.0, 10.0)
SERVER_FUNCTIONS = 10

# The paper's four configurations of its policy, and the settings of each in a scenario.
MODES = {"inval": "invalidate", "pref": "prefetch", "static": "static", "idio": "dynamic"}
EVALUATED = ("ddio", *MODES)

# Bursts of each function that warm up the caches and the long-run average, and bursts that are measured. A quick run
# warms up with one burst.
WARM_BURSTS, QUICK_WARM_BURSTS = 2, 1
G = 2**30
SECOND = 10**9


# --- Axes -----------------------------------------------------------------------------------------------------------


def placement(system: str) -> Changes:
    """The changes that make a scenario one of the paper's systems."""
    if system in MODES:
        return {"placement": {"policy": "idio", "mode": MODES[system], "ways": 2}}
    return {"placement": {"policy": system} if system == "dma" else {"policy": system, "ways": 2}}


# CS1, the class that RFC 3662 gives to traffic of lower effort; the paper leaves the mapping open.
CLASS1_DSCP = 8

SYSTEM = axes.SYSTEM.among({system: placement(system) for system in ("dma", *EVALUATED)})
# TouchDrop; a forwarder that sends on from the receive buffers, and one that drops after a look at the header.
APP = axes.APP.among(
    {
        "touchdrop": {},
        "l2fwd": on(L2FWD),
        "l2fwd-drop": on(L2FWD)
        * also(
            {
                "tenant.0.app.payload": "drop",
                "tenant.0.dscp": CLASS1_DSCP,
                "placement.idio.class1_dscp": [CLASS1_DSCP],
            }
        ),
    }
)
SCENARIO = axes.SCENARIO.among({"solo": on(TOUCHDROP), "corun": on(CORUN)})
RATE = axes.RATE_GBPS.said(unit="2^30 bit/s")
CORE_RATE = axes.CORE_GBPS.said(unit="2^30 bit/s")
ENTRIES = axes.RING.at("peripheral.0.rings.receive", "peripheral.0.rings.transmit")
RING_AS_GIVEN = axes.RING.label()(RING)
FRAMES, COUNT, CASE = axes.PACKET_BYTES, axes.COUNT.said(unit="functions"), axes.CASE
PACKETS = axes.PACKETS.at("run.requests")
THRESHOLD = axes.THR_MTPS.at("placement.idio.mlc_threshold", form="{} Mps", usual=None)
BOTH = SYSTEM("ddio", "idio")

# Packets at both ends of a burst that a window inside the burst omits: two batches of each function.
MARGIN = FUNCTIONS * 32


def timeline(step: str | None) -> Grid:
    return also({"run.timeline": step})


def bursts(row: Row, inside: bool = False) -> Changes:
    """Traffic of bursts at a row's rate to each function, and what warms up before the run."""
    burst = FUNCTIONS * RING
    warm = (QUICK_WARM_BURSTS if row["quick"] else WARM_BURSTS) * burst
    return {
        "traffic.arrivals": "burst",
        "traffic.burst": burst,
        "traffic.burst_period": "10 ms",
        "traffic.burst_gap": f"{round(1e12 * 8 * row['packet_bytes'] / (FUNCTIONS * row['rate_gbps'] * G))} ps",
        "run.warmup_requests": warm + MARGIN if inside else warm,
    }


def measured(n: int = 1) -> Grid:
    """Whole bursts of both functions."""
    return RING_AS_GIVEN * COUNT(FUNCTIONS) * PACKETS(n * FUNCTIONS * RING) * also(bursts)


# A burst without its ends.
INSIDE = (
    RING_AS_GIVEN
    * COUNT(FUNCTIONS)
    * PACKETS(FUNCTIONS * RING - 2 * MARGIN)
    * also(lambda row: bursts(row, inside=True))
)
# TouchDrop functions, and forwarders, beside nobody.
TOUCHED = APP("touchdrop") * FRAMES(FRAME) * THRESHOLD(None)
SOLO = SCENARIO("solo") * TOUCHED
FORWARDED = APP("l2fwd") * axes.SCENARIO("solo") * FRAMES(1024) * THRESHOLD(None) * measured() * timeline("10 us")
DROPPED = APP("l2fwd-drop") * axes.SCENARIO("solo") * FRAMES(1024) * THRESHOLD(None) * measured() * timeline("10 us")
ONE_BURST = SOLO * measured() * timeline("10 us")


def steady(gbps: float, row: Row, unit: int) -> Changes:
    """Traffic at a constant rate of `gbps` for each of a row's functions, `unit` bits to the G."""
    return {
        "traffic.arrivals": "fixed",
        "traffic.rate": f"{max(round(row['n'] * gbps * unit / (8 * row['packet_bytes'])), 1)} pps",
        "traffic.burst": None,
        "traffic.burst_period": None,
        "traffic.burst_gap": None,
    }


# --- Sections II and III --------------------------------------------------------------------------------------------

PLACES = {"P1": "mlc", "P2": "both", "P3": "llc", "P4": "ddio", "P5": "dram"}


# One request for a line in the MLC alone, in both, in the LLC's other ways, in its DDIO ways, or in DRAM alone. A line is in both
# where the LLC keeps what an MLC reads.
LOCATION = axes.LOCATION.among(
    {name: {} for name in PLACES} | {"P2": {"override.caches.llc.quirks.read_hit": "retain"}}
)
FIG1 = (
    axes.SYSTEM("ddio")
    * axes.REQUEST("write", "read")
    * (LOCATION("P1", "P2") * axes.MLC_DIRTY(False, True) + LOCATION("P3", "P4", "P5") * axes.MLC_DIRTY(None))
    * also(
        {
            "tenant.0.app": lambda row: {
                "kind": "probe_place",
                "request": row["request"],
                "place": PLACES[row["location"]],
                "dirty": bool(row["mlc_dirty"]),
            }
        }
    )
)

# Four rounds of a ring at a constant rate, after four that warm up.
ROUNDS = (
    COUNT(FUNCTIONS)
    * PACKETS(lambda row: 4 * FUNCTIONS * row["ring"])
    * also({"run.warmup_requests": lambda row: row["packets"]})
    * also(lambda row: steady(row["core_gbps"], row, G))
    * timeline("10 us")
)
RING_OF_TOUCHDROP = APP("touchdrop") * SCENARIO("solo") * FRAMES(FRAME) * ROUNDS
RING_OF_L2FWD = APP("l2fwd") * axes.SCENARIO("solo") * FRAMES(1024) * ROUNDS
# Where ring buffers are under a steady load below saturation; and, with a short ring, classic DMA beside DDIO.
FIG3 = (
    CASE("residency") * SYSTEM("ddio") * ENTRIES(256) * CORE_RATE(5.0) * (RING_OF_TOUCHDROP + RING_OF_L2FWD)
    + CASE("low load") * SYSTEM("dma", "ddio") * ENTRIES(64) * CORE_RATE(0.1) * RING_OF_TOUCHDROP
)

# Loads of all ten functions together; the paper does not say whether it means the load of each function.
LEVELS = {"low": 0.008, "med": 1.0, "high": 20.0}
# Frames below, around and above the 692 frames that fill an MLC of 1 MB.
KNEE_RINGS = (64, 256, 448, 512, 576, 640, 704, 768, 832, 896, 1024)
# The first way that belongs neither to the directory, which has the lowest two of eleven, nor to devices, which have
# the highest two.
ONE_WAY = "2"


# Ten TouchDrop functions, or one with its share of the load, on the Skylake-like server.
LEVEL = axes.LEVEL.among({level: {"run.timeline": "100 us" if level == "high" else None} for level in LEVELS})
APP_WAYS = axes.APP_WAYS.among({"all": {"tenant.0.llc_ways": None}, "1": {"tenant.0.llc_ways": ONE_WAY}})
SERVED = (
    on(SERVER)
    * axes.APP("touchdrop")
    * axes.SYSTEM("ddio")
    * FRAMES(FRAME)
    * PACKETS(lambda row: (2 if row["quick"] else 3) * row["n"] * row["ring"])
    * also({"run.warmup_requests": lambda row: 2 * row["n"] * row["ring"]})
    * also(lambda row: steady(LEVELS[row["level"]] / SERVER_FUNCTIONS, row, SECOND))
)
SERVER_COUNT = COUNT.at("tenant.0.cores")
FIG4 = (
    CASE("loads") * SERVER_COUNT(SERVER_FUNCTIONS) * APP_WAYS * ENTRIES(64, 1024, 2048) * LEVEL
    + CASE("rings") * SERVER_COUNT(1) * APP_WAYS("all") * ENTRIES(*KNEE_RINGS) * LEVEL("med")
) * SERVED

# Three bursts in 30 ms, and one of them closer.
FIG5 = (
    SYSTEM("ddio")
    * RATE(100.0)
    * SOLO
    * (CASE("overview") * measured(3) * timeline("10 us") + CASE("zoom") * measured() * timeline("1 us"))
)

# --- Sections V and VI ----------------------------------------------------------------------------------------------

# No rate is a burst and low pressure changes nothing: every core stays at LLC, where its FSM begins.
NEVER = {"placement.idio.burst_threshold": "100 Tbps", "placement.idio.quirks.sticky": True}
STATUS = axes.STATUS("llc") * SYSTEM("idio") * also(NEVER) + axes.STATUS("mlc") * SYSTEM("static")
# Destination of header and payload by class and status, and an invalidation where every cache has room.
MECH = (
    CASE("steering") * RATE(25.0) * (axes.APP_CLASS(0) * STATUS * ONE_BURST + axes.APP_CLASS(1) * STATUS * DROPPED)
    + CASE("short ring") * SYSTEM("inval") * ENTRIES(64) * CORE_RATE(0.1) * RING_OF_TOUCHDROP
)

# --- Section VII ----------------------------------------------------------------------------------------------------

# As in the scenario of both.
ANTAGONIST = {
    "name": "antagonist",
    "cores": 1,
    "l2_size": "256 KiB",
    "llc_ways": "2-11",
    "app": {"kind": "llc_antagonist", "buffer": "2 MiB"},
}
# The antagonist without network traffic.
ALONE = (
    on(CORUN)
    * axes.APP("llc_antagonist")
    * SYSTEM("ddio")
    * axes.SCENARIO("alone")
    * COUNT(1)
    * also(
        {
            "tenant": [ANTAGONIST],
            "peripheral": None,
            "traffic": {"arrivals": "none"},
            "run": lambda row: {"load": "saturate", "time": "1 ms" if row["quick"] else "3 ms"},
        }
    )
)
# Whole periods, for the time of a burst; and windows inside a burst, for all that is counted. The antagonist works through the
# pause between bursts, too.
FIG10_CORUN = (CASE("period") * RATE(*RATES) * BOTH * measured() + CASE("burst") * RATE(*RATES) * BOTH * INSIDE) * (
    SCENARIO("corun") * TOUCHED * timeline("10 us")
) + ALONE
# The paper names two rates without their numbers: those of Fig. 9.
FIG11 = RATE(100.0, 25.0) * BOTH * FORWARDED
FIG12 = SCENARIO * RATE(*RATES) * BOTH * TOUCHED * measured() * timeline("10 us")

AT_CONSTANT_RATE = (
    SCENARIO("solo")
    * APP("touchdrop")
    * FRAMES(FRAME)
    * RING_AS_GIVEN
    * COUNT(FUNCTIONS)
    * also({"run.warmup_requests": 2 * FUNCTIONS * RING})
    * also(lambda row: steady(row["core_gbps"], row, G))
)
# Constant rates in steps of 0.5 Gbps, for the one at which packets begin to be lost. Long enough that an overload of half a step
# fills a ring: 1024 / (0.25 / 12) packets are 48 rings.
ONSET = (
    CASE("onset")
    * SYSTEM("ddio")
    * CORE_RATE(*(8.0 + 0.5 * i for i in range(17)))
    * PACKETS(by_length(48 * FUNCTIONS * RING, 12 * FUNCTIONS * RING))
    * timeline(None)
)
STEADY = (
    CASE("steady")
    * BOTH
    * CORE_RATE(10.0)
    * PACKETS(by_length(4 * FUNCTIONS * RING, 2 * FUNCTIONS * RING))
    * timeline("10 us")
)

# The paper sweeps 10 to 100 MTPS at 100 Gbps and says that slower bursts depend less on it: all three rates.
THRESHOLDS = (10, 25, 50, 75, 100)
FIG14 = (
    RATE(*RATES)
    * (SYSTEM("ddio") * THRESHOLD(None) + SYSTEM("idio") * THRESHOLD(*THRESHOLDS))
    * SCENARIO("solo")
    * APP("touchdrop")
    * FRAMES(FRAME)
    * measured()
    * timeline("10 us")
)

# --- The authors' release -------------------------------------------------------------------------------------------

ARTIFACT = "idio-gem5-artifact"


def on_artifact(point: Point) -> Point:
    """The point with the release's prefetcher in the MLCs; points on the Skylake-like server do not change."""
    simulated = point.base in (TOUCHDROP, CORUN, L2FWD)
    return replace(point, changes={"platform": ARTIFACT, **point.changes}) if simulated else point


PLATFORMS = {"idio-gem5": lambda point: point, ARTIFACT: on_artifact}


# --- Columns that follow from a row ---------------------------------------------------------------------------------


def lines_of(row: Mapping[str, Any]) -> float | None:
    """Lines of all measured packets."""
    if not row.get("packets"):
        return None
    lines: float = row["packets"] * -(-row["packet_bytes"] // 64)
    return lines


def per_rx(row: Mapping[str, Any], count: str) -> float | None:
    """Bytes of the counted lines, relative to the received bytes."""
    if row.get(count) is None or not row.get("packets"):
        return None
    share: float = 64 * row[count] / (row["packets"] * row["packet_bytes"])
    return share


def burst_ms(row: Mapping[str, Any]) -> float | None:
    """Duration of a burst at its rate, from the first packet to the last."""
    if not row.get("rate_gbps"):
        return None
    ms: float = 1e3 * row["ring"] * row["packet_bytes"] * 8 / (row["rate_gbps"] * G)
    return ms


DERIVED = {
    "rx_lines": lines_of,
    "mlc_wb_per_rx": lambda r: per_rx(r, "mlc_wb"),
    "mlc_inval_per_rx": lambda r: per_rx(r, "mlc_invalidations"),
    "dram_wr_per_rx": lambda r: per_rx(r, "lines_written"),
    "dram_rd_per_rx": lambda r: per_rx(r, "lines_read"),
    "burst_ms": burst_ms,
}
UNITS = {
    "rx_lines": "lines",
    "mlc_wb_per_rx": "x",
    "mlc_inval_per_rx": "x",
    "dram_wr_per_rx": "x",
    "dram_rd_per_rx": "x",
    "burst_ms": "ms",
}

SAVINGS = {
    "mlc_wb": "mlc_wb_rel",
    "llc_wb": "llc_wb_rel",
    "lines_read": "dram_rd_rel",
    "lines_written": "dram_wr_rel",
    "burst_us": "burst_rel",
    "t1_cpi": "cpi_rel",
    "lat_p50_us": "p50_rel",
    "lat_p99_us": "p99_rel",
}


def over_ddio(rows: Rows) -> list[dict[str, Any]]:
    """Each row relative to DDIO at the same application, rate and scenario: the bars of Figs. 10, 12 and 14."""

    def key(r: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(r.get(c) for c in ("case", "app", "scenario", "rate_gbps", "core_gbps", "ring"))

    base = {key(r): r for r in rows if r["system"] == "ddio"}
    out = []
    for r in rows:
        ddio = base.get(key(r), {})
        out.append(
            {name: r[m] / ddio[m] if r.get(m) is not None and ddio.get(m) else None for m, name in SAVINGS.items()}
        )
    return out


COUNTS = ("mlc_wb", "llc_wb", "lines_read", "lines_written", "burst_us")
BARS = ("mlc_wb_rel", "llc_wb_rel", "dram_rd_rel", "dram_wr_rel", "burst_rel")


def _study(figure: str, title: str, grid: Grid, metrics: tuple[str, ...], **more: Any) -> Study:
    return Study(
        "idio",
        figure,
        title,
        grid,
        metrics,
        **{
            "derived": DERIVED,
            "derived_units": {**UNITS, **dict.fromkeys(SAVINGS.values(), "x")},
            "across": over_ddio,
            **more,
        },
    )


STUDIES = [
    _study(
        "fig1",
        "Transitions of a device's requests, by place",
        FIG1,
        ("mlc_copies_after", "in_ddio_ways_after", "llc_allocations", "ways_allocated", "mlc_wb", "lines_read"),
        base="probe-place",
    ),
    _study(
        "fig2",
        "Received data in caches under DDIO",
        SYSTEM("ddio") * RATE(100.0) * (ONE_BURST + FORWARDED),
        COUNTS,
        side_tables=("timeline",),
    ),
    _study(
        "fig3",
        "Where ring buffers are",
        FIG3,
        ("mlc_wb", "lines_read", "lines_written", "batch_cached"),
        side_tables=("timeline",),
    ),
    _study(
        "fig4",
        "MLC write-backs and DRAM traffic on a server, by ring and load",
        FIG4,
        ("mlc_wb_per_rx", "mlc_inval_per_rx", "dram_wr_per_rx", "dram_rd_per_rx"),
        side_tables=("timeline",),
    ),
    _study(
        "fig5",
        "Write-backs over time, bursts every 10 ms",
        FIG5,
        (*COUNTS, "llc_wb_unread", "llc_wb_victim"),
        side_tables=("timeline",),
    ),
    _study(
        "mech",
        "What the controller does with header and payload",
        MECH,
        ("hints", "hints_dropped", "hints_fetched", "lines_written"),
    ),
    _study(
        "burstdef", "Bursts: length, packets, drops", RATE(*RATES) * BOTH * ONE_BURST, ("burst_ms", "drops", "burst_us")
    ),
    _study(
        "fig9",
        "A burst over time under five policies",
        RATE(100.0, 25.0) * SYSTEM(*EVALUATED) * ONE_BURST,
        (*COUNTS, "burst_start_us"),
        side_tables=("timeline",),
    ),
    _study(
        "fig10",
        "A burst's transactions and time over DDIO's",
        RATE(*RATES) * SYSTEM(*EVALUATED) * ONE_BURST,
        (*COUNTS, *BARS),
        side_tables=("timeline",),
    ),
    _study(
        "fig10corun",
        "The same beside an antagonist",
        FIG10_CORUN,
        (*COUNTS, *BARS, "t1_cpi", "cpi_rel"),
        side_tables=("cores",),
    ),
    _study("fig11", "Forwarders: a burst over time", FIG11, COUNTS, side_tables=("timeline", "places")),
    _study(
        "directdram",
        "Payload that goes to DRAM",
        SYSTEM("idio") * RATE(25.0) * DROPPED,
        ("lines_written", "dram_wr_per_rx", "llc_wb"),
    ),
    _study("fig12", "Latency of a burst's packets", FIG12, ("lat_p50_us", "lat_p99_us", "p50_rel", "p99_rel")),
    _study(
        "fig13",
        "Constant rate",
        (STEADY + ONSET) * AT_CONSTANT_RATE,
        ("mlc_wb", "llc_wb", "mlc_wb_mtps", "drop_rate"),
        side_tables=("timeline",),
    ),
    _study("fig14", "Thresholds of the MLC's pressure", FIG14, (*COUNTS, *BARS)),
    _study("summary", "Largest gains over all points", FIG12 + FIG11, (*BARS, "p99_rel")),
]
