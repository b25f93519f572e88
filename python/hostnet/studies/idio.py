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

from . import Point, Rows, Study

TOUCHDROP, CORUN, L2FWD, SERVER = "touchdrop-bursts", "touchdrop-antagonist", "l2fwd-bursts", "touchdrop-server"
FRAME, RING, FUNCTIONS = 1514, 1024, 2
RATES = (100, 25, 10)
SERVER_FUNCTIONS = 10

# The paper's four configurations of its policy, and the settings of each in a scenario.
MODES = {"inval": "invalidate", "pref": "prefetch", "static": "static", "idio": "dynamic"}
EVALUATED = ("ddio", *MODES)

# Bursts of each function that warm up the caches and the long-run average, and bursts that are measured. A quick run
# warms up with one burst.
WARM_BURSTS, QUICK_WARM_BURSTS = 2, 1
G = 2**30
SECOND = 10**9


def placement(system: str, ways: int = 2) -> dict[str, Any]:
    """The changes that make a scenario one of the paper's systems."""
    table: dict[str, Any]
    if system in MODES:
        table = {"policy": "idio", "mode": MODES[system], "ways": ways}
    else:
        table = {"policy": system} if system == "dma" else {"policy": system, "ways": ways}
    return {"placement": table}


def ring(entries: int) -> dict[str, Any]:
    return {"peripheral.0.rings.receive": entries, "peripheral.0.rings.transmit": entries}


# Packets at both ends of a burst that a window inside the burst omits: two batches of each function.
MARGIN = FUNCTIONS * 32


def bursts(quick: bool, gbps: float, frame: int, measured: int = 1, inside: bool = False) -> dict[str, Any]:
    """Traffic of bursts at `gbps` to each function, with a run that measures several bursts, or one burst without its
    ends."""
    burst = FUNCTIONS * RING
    warm = (QUICK_WARM_BURSTS if quick else WARM_BURSTS) * burst
    return {
        "traffic.arrivals": "burst",
        "traffic.burst": burst,
        "traffic.burst_period": "10 ms",
        "traffic.burst_gap": f"{round(1e12 * 8 * frame / (FUNCTIONS * gbps * G))} ps",
        "run.requests": burst - 2 * MARGIN if inside else measured * burst,
        "run.warmup_requests": warm + MARGIN if inside else warm,
    }


def steady(packets: int, warm: int, gbps: float, n: int, frame: int, unit: int) -> dict[str, Any]:
    """Traffic at a constant rate of `gbps` for each of `n` functions, where `unit` bits are one G."""
    return {
        "traffic.arrivals": "fixed",
        "traffic.rate": f"{max(round(n * gbps * unit / (8 * frame)), 1)} pps",
        "traffic.burst": None,
        "traffic.burst_period": None,
        "traffic.burst_gap": None,
        "run.requests": packets,
        "run.warmup_requests": warm,
    }


def touchdrop(
    quick: bool,
    system: str,
    gbps: float,
    *,
    scenario: str = "solo",
    threshold: int | None = None,
    timeline: str = "10 us",
    measured: int = 1,
    inside: bool = False,
) -> Point:
    """A burst that two TouchDrop functions process; equal arguments give equal specs, so figures share results."""
    changes = {**placement(system), **bursts(quick, gbps, FRAME, measured, inside), "run.timeline": timeline}
    if threshold is not None:
        changes["placement.idio"] = {"mlc_threshold": f"{threshold} Mps"}
    return Point(
        TOUCHDROP if scenario == "solo" else CORUN,
        {
            "app": "touchdrop",
            "system": system,
            "scenario": scenario,
            "rate_gbps": float(gbps),
            "ring": RING,
            "n": FUNCTIONS,
            "packet_bytes": FRAME,
            "packets": changes["run.requests"],
            "thr_mtps": threshold,
        },
        changes,
    )


def l2fwd(quick: bool, system: str, gbps: float, *, drop: bool = False) -> Point:
    """A burst that two forwarders send from the receive buffers, or with `drop` drop after they have read the header."""
    changes = {**placement(system), **bursts(quick, gbps, 1024), "run.timeline": "10 us"}
    if drop:
        changes |= {
            "tenant.0.app.payload": "drop",
            "tenant.0.dscp": CLASS1_DSCP,
            "placement.idio": {"class1_dscp": [CLASS1_DSCP]},
        }
    return Point(
        L2FWD,
        {
            "app": "l2fwd-drop" if drop else "l2fwd",
            "system": system,
            "scenario": "solo",
            "rate_gbps": float(gbps),
            "ring": RING,
            "n": FUNCTIONS,
            "packet_bytes": 1024,
            "packets": FUNCTIONS * RING,
            "thr_mtps": None,
        },
        changes,
    )


# CS1, the class that RFC 3662 gives to traffic of lower effort; the paper leaves the mapping open.
CLASS1_DSCP = 8


# --- Sections II and III --------------------------------------------------------------------------------------------

PLACES = {"P1": "mlc", "P2": "both", "P3": "llc", "P4": "ddio", "P5": "dram"}


def fig1(quick: bool) -> list[Point]:
    """One request for a line in the MLC alone, in MLC and LLC, in the LLC's ways for cores, in its DDIO ways, or in
    DRAM alone.

    A line is in MLC and LLC where the LLC keeps lines that an MLC reads.
    """

    def point(request: str, name: str, dirty: bool | None) -> Point:
        app = {"kind": "probe_place", "request": request, "place": PLACES[name], "dirty": bool(dirty)}
        keeps = {"override.caches.llc.read_hit": "retain"} if name == "P2" else {}
        return Point(
            "probe-place",
            {"request": request, "location": name, "mlc_dirty": dirty, "system": "ddio"},
            {"tenant.0.app": app, **keeps},
        )

    return [
        point(request, name, dirty)
        for request in ("write", "read")
        for name in PLACES
        for dirty in ((False, True) if name in ("P1", "P2") else (None,))
    ]


def fig2(quick: bool) -> list[Point]:
    """Share of the LLC that received data takes: deep inspection with one burst after the other, and shallow
    inspection."""
    return [touchdrop(quick, "ddio", 100), l2fwd(quick, "ddio", 100)]


def fig3(quick: bool) -> list[Point]:
    """Location of ring buffers under a steady load below saturation; and, with a short ring, classic DMA compared with
    DDIO."""
    return [
        ring_point("residency", "touchdrop", "ddio", 256, 5.0),
        ring_point("residency", "l2fwd", "ddio", 256, 5.0),
        *(ring_point("low load", "touchdrop", system, 64, 0.1) for system in ("dma", "ddio")),
    ]


def ring_point(case: str, app: str, system: str, entries: int, gbps: float) -> Point:
    """Four rounds of a ring at a constant rate, after four rounds of warm-up."""
    base, frame = (TOUCHDROP, FRAME) if app == "touchdrop" else (L2FWD, 1024)
    packets = 4 * FUNCTIONS * entries
    return Point(
        base,
        {
            "case": case,
            "app": app,
            "system": system,
            "scenario": "solo",
            "ring": entries,
            "n": FUNCTIONS,
            "core_gbps": gbps,
            "packet_bytes": frame,
            "packets": packets,
        },
        {
            **placement(system),
            **ring(entries),
            **steady(packets, packets, gbps, FUNCTIONS, frame, G),
            "run.timeline": "10 us",
        },
    )


# Loads of all ten functions together; the paper does not say whether it means the load of each function.
LEVELS = {"low": 0.008, "med": 1.0, "high": 20.0}
# Frames below, around and above the 692 frames that fill an MLC of 1 MB.
KNEE_RINGS = (64, 256, 448, 512, 576, 640, 704, 768, 832, 896, 1024)
# The first way that belongs neither to the directory, which has the lowest two of eleven, nor to devices, which have
# the highest two.
ONE_WAY = "2"


def server(
    quick: bool, level: str, entries: int, app_ways: str, n: int = SERVER_FUNCTIONS, case: str = "loads"
) -> Point:
    """Ten TouchDrop functions, or `n` functions with their share of the load, on the Skylake-like server."""
    rounds = 2 if quick else 3
    packets = rounds * n * entries
    changes = {
        **ring(entries),
        **steady(packets, 2 * n * entries, LEVELS[level] / SERVER_FUNCTIONS, n, FRAME, SECOND),
        "tenant.0.cores": n,
        "tenant.0.llc_ways": ONE_WAY if app_ways == "1" else None,
        "run.timeline": "100 us" if level == "high" else None,
    }
    return Point(
        SERVER,
        {
            "case": case,
            "app": "touchdrop",
            "system": "ddio",
            "ring": entries,
            "level": level,
            "app_ways": app_ways,
            "n": n,
            "packet_bytes": FRAME,
            "packets": packets,
        },
        changes,
    )


def fig4(quick: bool) -> list[Point]:
    loads = [
        server(quick, level, entries, ways) for ways in ("all", "1") for entries in (64, 1024, 2048) for level in LEVELS
    ]
    return loads + [server(quick, "med", entries, "all", 1, "rings") for entries in KNEE_RINGS]


def fig5(quick: bool) -> list[Point]:
    """Three bursts in 30 ms, and a detailed view of one burst."""
    over = touchdrop(quick, "ddio", 100, measured=3)
    zoom = touchdrop(quick, "ddio", 100, timeline="1 us")
    return [Point(p.base, {**p.columns, "case": case}, p.changes) for case, p in (("overview", over), ("zoom", zoom))]


# --- Sections V and VI ----------------------------------------------------------------------------------------------

# No rate counts as a burst, and low pressure has no effect: every core stays in the state LLC, in which its FSM begins.
NEVER = {"burst_threshold": "100 Tbps", "sticky": True}


def mech(quick: bool) -> list[Point]:
    """Destination of header and payload by class and FSM state, and an invalidation where every cache has room."""

    def point(status: str, drop: bool) -> Point:
        system = "static" if status == "mlc" else "idio"
        p = l2fwd(quick, system, 25, drop=True) if drop else touchdrop(quick, system, 25)
        changes = dict(p.changes)
        if status == "llc":
            changes["placement.idio"] = {**changes.get("placement.idio", {}), **NEVER}
        return Point(p.base, {**p.columns, "case": "steering", "status": status, "app_class": int(drop)}, changes)

    return [
        *(point(status, drop) for drop in (False, True) for status in ("llc", "mlc")),
        ring_point("short ring", "touchdrop", "inval", 64, 0.1),
    ]


def burstdef(quick: bool) -> list[Point]:
    return [touchdrop(quick, system, rate) for rate in RATES for system in ("ddio", "idio")]


# --- Section VII ----------------------------------------------------------------------------------------------------


def fig9(quick: bool) -> list[Point]:
    return [touchdrop(quick, system, rate) for rate in (100, 25) for system in EVALUATED]


def fig10(quick: bool) -> list[Point]:
    """All five systems. The paper's bars show three, but the text compares the others as well."""
    return [touchdrop(quick, system, rate) for rate in RATES for system in EVALUATED]


# The value in the scenarios of both.
ANTAGONIST = {
    "name": "antagonist",
    "cores": 1,
    "l2_size": "256 KiB",
    "llc_ways": "2-11",
    "app": {"kind": "llc_antagonist", "buffer": "2 MiB"},
}


def alone(quick: bool) -> Point:
    """The antagonist without network traffic."""
    return Point(
        CORUN,
        {"app": "llc_antagonist", "system": "ddio", "scenario": "alone", "n": 1},
        {
            **placement("ddio"),
            "tenant": [ANTAGONIST],
            "peripheral": None,
            "traffic": {"arrivals": "none"},
            "run": {"load": "saturate", "time": "1 ms" if quick else "3 ms"},
        },
    )


def fig10corun(quick: bool) -> list[Point]:
    """Whole periods, for the duration of a burst, and windows inside a burst, for all counters.

    The antagonist also runs between bursts.
    """

    def point(case: str, system: str, rate: int) -> Point:
        p = touchdrop(quick, system, rate, scenario="corun", inside=case == "burst")
        return Point(p.base, {**p.columns, "case": case}, p.changes)

    both = [point(case, system, rate) for case in ("period", "burst") for rate in RATES for system in ("ddio", "idio")]
    return [*both, alone(quick)]


def fig11(quick: bool) -> list[Point]:
    """The paper mentions two rates without their values; this study uses those of Fig. 9."""
    return [l2fwd(quick, system, rate) for rate in (100, 25) for system in ("ddio", "idio")]


def directdram(quick: bool) -> list[Point]:
    return [l2fwd(quick, "idio", 25, drop=True)]


def fig12(quick: bool) -> list[Point]:
    return [
        touchdrop(quick, system, rate, scenario=scenario)
        for scenario in ("solo", "corun")
        for rate in RATES
        for system in ("ddio", "idio")
    ]


def at_constant_rate(quick: bool, system: str, gbps: float, case: str) -> Point:
    rounds = 2 if quick else 4
    packets = rounds * FUNCTIONS * RING
    return Point(
        TOUCHDROP,
        {
            "case": case,
            "app": "touchdrop",
            "system": system,
            "scenario": "solo",
            "core_gbps": gbps,
            "ring": RING,
            "n": FUNCTIONS,
            "packet_bytes": FRAME,
            "packets": packets,
        },
        {
            **placement(system),
            **steady(packets, 2 * FUNCTIONS * RING, gbps, FUNCTIONS, FRAME, G),
            "run.timeline": "10 us",
        },
    )


# The run is so long that an overload of half a step fills a ring: 1024 / (0.25 / 12) packets are 48 rings.
ONSET_ROUNDS, QUICK_ONSET_ROUNDS = 48, 12


def onset(quick: bool) -> list[Point]:
    """Constant rates in steps of 0.5 Gbps, to find the rate at which packets begin to be lost."""
    rates = [8.0 + 0.5 * i for i in range(17)]
    points = []
    for gbps in rates:
        p = at_constant_rate(quick, "ddio", gbps, "onset")
        packets = (QUICK_ONSET_ROUNDS if quick else ONSET_ROUNDS) * FUNCTIONS * RING
        points.append(
            Point(
                p.base, {**p.columns, "packets": packets}, {**p.changes, "run.requests": packets, "run.timeline": None}
            )
        )
    return points


def fig13(quick: bool) -> list[Point]:
    return [at_constant_rate(quick, system, 10.0, "steady") for system in ("ddio", "idio")] + onset(quick)


THRESHOLDS = (10, 25, 50, 75, 100)


def fig14(quick: bool) -> list[Point]:
    """The paper sweeps 10 to 100 MTPS at 100 Gbps, and says that slower bursts depend less on the threshold; this study
    has all three rates."""
    points = []
    for rate in RATES:
        points.append(touchdrop(quick, "ddio", rate))
        points += [touchdrop(quick, "idio", rate, threshold=thr) for thr in THRESHOLDS]
    return points


def summary(quick: bool) -> list[Point]:
    """The points from which the paper's largest gains are taken."""
    return fig12(quick) + fig11(quick)


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
    "rate_gbps": "2^30 bit/s",
    "core_gbps": "2^30 bit/s",
    "thr_mtps": "MTPS",
    "packets": "packets",
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


def _study(figure: str, title: str, points: Any, metrics: tuple[str, ...], **more: Any) -> Study:
    return Study(
        "idio",
        figure,
        title,
        points,
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
        fig1,
        ("mlc_copies_after", "in_ddio_ways_after", "llc_allocations", "ways_allocated", "mlc_wb", "lines_read"),
    ),
    _study("fig2", "Received data in caches under DDIO", fig2, COUNTS, side_tables=("timeline",)),
    _study(
        "fig3",
        "Where ring buffers are",
        fig3,
        ("mlc_wb", "lines_read", "lines_written", "batch_cached"),
        side_tables=("timeline",),
    ),
    _study(
        "fig4",
        "MLC write-backs and DRAM traffic on a server, by ring and load",
        fig4,
        ("mlc_wb_per_rx", "mlc_inval_per_rx", "dram_wr_per_rx", "dram_rd_per_rx"),
        side_tables=("timeline",),
    ),
    _study(
        "fig5",
        "Write-backs over time, bursts every 10 ms",
        fig5,
        (*COUNTS, "llc_wb_unread", "llc_wb_victim"),
        side_tables=("timeline",),
    ),
    _study(
        "mech",
        "What the controller does with header and payload",
        mech,
        ("hints", "hints_dropped", "hints_fetched", "lines_written"),
    ),
    _study("burstdef", "Bursts: length, packets, drops", burstdef, ("burst_ms", "drops", "burst_us")),
    _study(
        "fig9", "A burst over time under five policies", fig9, (*COUNTS, "burst_start_us"), side_tables=("timeline",)
    ),
    _study("fig10", "A burst's transactions and time over DDIO's", fig10, (*COUNTS, *BARS), side_tables=("timeline",)),
    _study(
        "fig10corun",
        "The same beside an antagonist",
        fig10corun,
        (*COUNTS, *BARS, "t1_cpi", "cpi_rel"),
        side_tables=("cores",),
    ),
    _study("fig11", "Forwarders: a burst over time", fig11, COUNTS, side_tables=("timeline", "places")),
    _study("directdram", "Payload that goes to DRAM", directdram, ("lines_written", "dram_wr_per_rx", "llc_wb")),
    _study("fig12", "Latency of a burst's packets", fig12, ("lat_p50_us", "lat_p99_us", "p50_rel", "p99_rel")),
    _study(
        "fig13", "Constant rate", fig13, ("mlc_wb", "llc_wb", "mlc_wb_mtps", "drop_rate"), side_tables=("timeline",)
    ),
    _study("fig14", "Thresholds of the MLC's pressure", fig14, (*COUNTS, *BARS)),
    _study("summary", "Largest gains over all points", summary, (*BARS, "p99_rel")),
]
