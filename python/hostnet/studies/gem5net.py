"""The experiments of "Userspace Networking in gem5" (ISPASS'24): drops, bandwidth tests, memcached, and the method.

Sweeps of one part of the machine (Figs. 10 to 17) are in ``gem5net_sweeps``. ``msb_gbps`` is the maximum sustainable
bandwidth: frame bits of the highest offered rate of which at most 1 % is lost. ``krps`` is the corresponding request
rate for memcached. TCP determines its own rate: for iperf ``msb_gbps`` is the received payload, as iperf reports it.

The authors' released configuration decides what the paper leaves open. RXpTX in that release waits a number of ticks of
a slow counter, so that its "1 us" is nearly four; ``interval_ns`` is the paper's number, and `waits` gives the actual
wait. Direct cache access may use the whole LLC in the release, because no limit is in effect; in Fig. 13, as the paper
says, it has 4 of 16 ways.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from . import Point, Rows, Study

BASE, IPERF = "testpmd", "iperf"
SERVERS = {"mc-dpdk": "memcached-dpdk", "mc-kernel": "memcached-kernel"}
SIZES = (64, 128, 256, 512, 1024, 1518)

# Packets per second of one step of the authors' rates (artifact: run-scripts/run-droprate-exp*.sh): 1.1 Gb/s of frame
# bits.
STEP = {64: 2_150_786, 128: 1_075_393, 256: 537_696, 512: 268_848, 1024: 134_424, 1518: 88_418}

# The client of the real server is Pktgen, whose rate is set in per cent of the link's rate (README of the release;
# Pktgen's "set rate").
PERCENT = 0.01

# The counter that RXpTX reads (artifact): N ns are N / 10 ticks of this counter, and the first tick has already begun.
TICK_NS = {"gem5": 1e9 / 25_165_824, "altra": 1e9 / 25e6}

RXPTX = {"rxptx-10ns": 10, "rxptx-1us": 1000}
FORWARDERS = ("testpmd", "touchfwd", *RXPTX)

# An in-order core of gem5 (MinorCPU) issues two instructions per cycle; it is assumed that dependences leave one of
# them.
IN_ORDER = {"override.core.pipeline": "in_order", "override.core.width": 2, "override.core.compute_ipc": 1.0}

# Packets of a run at a fixed rate, and packets of each rate that a bandwidth test tries; a quick run uses fewer for
# both.
REQUESTS, TRIED, QUICK_REQUESTS = 60_000, 20_000, 10_000
# Receive buffer and rings of the platform, all of which are full before the first packet is lost.
BUFFER, RING = 4 << 20, 1024
# Rate of the link in bits per second; a frame takes 20 bytes in addition to its own.
LINK = 100e9
# Maximum rate of Pktgen on the client of the real server (Sec. VII-B): 8 Gb/s of 64-byte frames.
CLIENT_PPS = 8e9 / (64 * 8)


def waits(platform: str, interval_ns: float) -> str:
    """The mean time for which RXpTX actually waits after a burst, for an interval that the paper names."""
    ticks = interval_ns / 10 - 0.5
    return f"{round(ticks * TICK_NS[platform], 1)} ns"


def iperf(quick: bool, size: int) -> dict[str, Any]:
    """A flow of IP packets of that size, up to the MTU (artifact: guest-scripts/iperf-*.sh, an MSS of 40 bytes less).

    The rate of the flow is counted in reads of 64 KiB, each of which is 0.13 % of 10 Gb/s in 40 ms.
    """
    return {"peripheral.0.mtu": f"{min(size, 1500)} B", "run.time": "2 ms" if quick else "40 ms"}


# Both loops over a packet's bytes (artifact: test-pmd/touchfwd.c and rxonly.c) are one: load, add, two compares and two branches
# as GCC 12 compiles them for AArch64 with -O3. The rest of a packet, its prefetch among it, is that of each application's default.
PER_BYTE = 6.0


def step_pps(platform: str, size: int) -> int:
    """Packets per second between two successive rates that a bandwidth test tries."""
    return STEP[size] if platform == "gem5" else round(PERCENT * LINK / (8 * (size + 20)))


def application(app: str, platform: str, interval_ns: float) -> dict[str, Any]:
    """The application's table. TouchDrop is TouchFwd without transmission."""
    if app.startswith("rxptx"):
        return {"kind": "rxptx", "interval": waits(platform, interval_ns)}
    if app.startswith("touch"):
        return {"kind": app, "instructions": 20, "instructions_per_byte": PER_BYTE}
    return {"kind": app, "mode": "macswap"} if app == "testpmd" else {"kind": app}


def machine(
    platform: str = "gem5",
    *,
    dca: str | None = None,
    clock_ghz: float = 3.0,
    core: str = "out-of-order",
    rob: int = 128,
    l1_kib: int = 64,
    l2_kib: int = 1024,
    llc_mib: int = 16,
    channels: int | None = None,
    write_back: int | str = 1,
) -> dict[str, Any]:
    """The changes that make the base scenario this machine. Values that equal the platform's are omitted, so that equal
    machines are one simulation."""
    out: dict[str, Any] = {} if platform == "gem5" else {"platform": platform}
    if (dca or ("on" if platform == "gem5" else "off")) == "off":
        out["placement"] = {"policy": "dma"}
    if clock_ghz != 3.0:
        # The paper states the L3's 12 cycles in core cycles; the unit here is the uncore's nanosecond.
        out |= {"override.core.clock": f"{clock_ghz} GHz", "override.caches.llc.latency_cycles": round(12 / clock_ghz)}
    if core == "in-order":
        out |= IN_ORDER
    for name, value, usual in (
        ("core.rob", rob, 128),
        ("caches.l1d.size", l1_kib, 64),
        ("caches.l2.size", l2_kib, 1024),
        ("caches.llc.size", llc_mib * 1024, 16 * 1024),
    ):
        if value != usual:
            out[f"override.{name}"] = f"{value} KiB" if name.endswith("size") else value
    if channels is not None:
        out["override.memory.channels"] = channels
    if write_back != 1:
        out["peripheral.0.rings.write_back"] = {"after": write_back} if isinstance(write_back, int) else write_back
    if write_back == "all_used":
        out["peripheral.0.rings.write_back_idle"] = False  # no other agent writes back: section III-A3
    return out


def point(
    quick: bool,
    app: str,
    size: int | None = None,
    *,
    platform: str = "gem5",
    interval_ns: float | None = None,
    pps: float | None = None,
    requests: int | None = None,
    columns: Mapping[str, Any] | None = None,
    changes: Mapping[str, Any] | None = None,
    **knobs: Any,
) -> Point:
    """One run: a bandwidth test, or a fixed rate of `pps`. ``knobs`` holds parameters of `machine`, which are columns
    as well."""
    dca = knobs.get("dca") or ("on" if platform == "gem5" else "off")
    interval_ns = RXPTX.get(app, interval_ns)
    named = {
        "platform": platform,
        "app": app,
        "packet_bytes": size,
        "interval_ns": interval_ns,
        **knobs,
        "dca": dca,
        "load": "fixed" if pps else "peak_loss",
        **(columns or {}),
    }
    if "write_back" in knobs:
        named["write_back"] = str(knobs["write_back"])
    if pps:
        named["rate_mrps"] = round(pps / 1e6, 6)
    if app == "iperf":
        return Point(IPERF, named, {**iperf(quick, size or SIZES[0]), **machine(platform, **knobs), **(changes or {})})
    run: dict[str, Any] = {"run.requests": requests or (QUICK_REQUESTS if quick else REQUESTS if pps else TRIED)}
    served: dict[str, Any] = {}
    if app not in SERVERS:
        size = size or SIZES[0]
        served = {
            "name": app,
            "tenant.0.name": app,
            "tenant.0.app": application(app, platform, interval_ns or 0),
            "traffic.packet": f"{size} B",
            "run.step": f"{step_pps(platform, size)} pps",
        }
    if pps:
        run |= {"run.load": "fixed", "run.step": None, "traffic.rate": f"{round(pps)} pps"}
    return Point(SERVERS.get(app, BASE), named, {**served, **machine(platform, **knobs), **run, **(changes or {})})


# --- Rates that follow from bandwidth tests -------------------------------------------------------------------------


def peak_of(rows: Rows, **wanted: Any) -> float:
    """Packets per second of the bandwidth test whose row has the requested columns."""
    (row,) = [r for r in rows if r.get("load") == "peak_loss" and all(r.get(k) == v for k, v in wanted.items())]
    return 1e6 * float(row["offered_mrps"])


def beyond(peak: float, size: int | None, quick: bool) -> float:
    """A rate beyond the knee: a tenth above the peak, on the authors' grid; in a quick run one and a half times the
    peak. The rate never exceeds the link's."""
    rate = peak * (1.5 if quick else 1.1)
    if size not in STEP:
        return rate
    most = LINK / (8 * (size + 20)) // STEP[size]
    return min(math.ceil(rate / STEP[size]), most) * STEP[size]


def overload(peak: float, rate: float, size: int | None) -> int:
    """Number of packets after which buffers are full at the given rate, and the usual number of packets have then found
    them full."""
    if rate <= peak:
        return REQUESTS
    waiting = BUFFER // (size or 110) + RING
    return round(1.3 * waiting * rate / (rate - peak)) + REQUESTS


def at_knee(rows: Rows, quick: bool, app: str, size: int | None, like: str = "", **knobs: Any) -> Point:
    """`app` at the rate beyond the knee of `like`, which defaults to `app`.

    At that rate bursts are longer, and a core serves more packets than at its knee. The remaining excess, which fills
    the buffers, is assumed to be at least a quarter of the step.
    """
    peak = peak_of(rows, app=like or app, packet_bytes=size, **knobs)
    rate = beyond(peak, size, quick)
    requests = overload(rate - (rate - peak) / 4, rate, size)
    return point(quick, app, size, pps=rate, requests=requests, columns={"rate_basis": "knee"}, **knobs)


# --- Columns --------------------------------------------------------------------------------------------------------


def msb_gbps(row: Mapping[str, Any]) -> float | None:
    """Maximum sustainable bandwidth in frame bits; None for other runs and for applications that count requests."""
    if row.get("load") != "peak_loss" or str(row["app"]).startswith("mc-"):
        return None
    if row["app"] == "iperf":
        return None if row.get("net_gbs") is None else 8 * row["net_gbs"]
    return row.get("offered_gbps")


def krps(row: Mapping[str, Any]) -> float | None:
    """Offered rate of key-value servers, in thousands of requests per second."""
    good = row.get("load") == "peak_loss" and str(row["app"]).startswith("mc-") and row.get("offered_mrps") is not None
    return 1e3 * row["offered_mrps"] if good else None


def client_gbps(row: Mapping[str, Any]) -> float | None:
    """Highest rate of the real server's client; the simulated generator has no such limit."""
    size = row.get("packet_bytes")
    return CLIENT_PPS * size * 8 / 1e9 if row["platform"] == "altra" and size else None


def seen_gbps(row: Mapping[str, Any]) -> float | None:
    """The bandwidth that the real client could have measured: the server's bandwidth, unless the client reaches its own
    limit first."""
    msb = msb_gbps(row)
    return msb if msb is None else min(msb, client_gbps(row) or msb)


Points = Callable[[bool], list[Point]]
UNITS = {
    "packet_bytes": "B",
    "interval_ns": "ns",
    "clock_ghz": "GHz",
    "rate_mrps": "Mpps",
    "l1_kib": "KiB",
    "l2_kib": "KiB",
    "llc_mib": "MiB",
    "msb_gbps": "Gb/s",
    "krps": "kRPS",
    "client_gbps": "Gb/s",
    "seen_gbps": "Gb/s",
    "wall_s": "s",
}
RATES = ("msb_gbps", "offered_gbps", "achieved_gbps", "drop_rate")
CAUSES = ("drop_dma_share", "drop_core_share", "drop_tx_share")


DERIVED = {"msb_gbps": msb_gbps, "krps": krps, "client_gbps": client_gbps, "seen_gbps": seen_gbps}


def wall_s(row: Mapping[str, Any]) -> float:
    """Seconds that the shortest of three runs took on this machine. Values are comparable with one worker (`--jobs 1`)."""
    return float(row["wall_s"])


def study(
    figure: str,
    title: str,
    points: Points,
    metrics: tuple[str, ...],
    formulas: Mapping[str, Any] | None = None,
    **more: Any,
) -> Study:
    """A study with the columns that all tables of this system have."""
    return Study(
        "gem5net", figure, title, points, metrics, derived={**DERIVED, **(formulas or {})}, derived_units=UNITS, **more
    )


# --- Drops by cause (Fig. 5) ----------------------------------------------------------------------------------------

DROP_SIZES = (64, 256, 1518)


def fig5(quick: bool) -> list[Point]:
    return [point(quick, app, size) for app in FORWARDERS for size in DROP_SIZES] + both_servers(quick)


def fig5_knees(rows: Rows, quick: bool) -> list[Point]:
    """Packets lost beyond the knee of each application; TouchDrop has no knee and uses TouchFwd's."""
    out = [at_knee(rows, quick, app, size) for app in FORWARDERS for size in DROP_SIZES]
    out += [at_knee(rows, quick, "touchdrop", size, like="touchfwd") for size in DROP_SIZES]
    return out + [at_knee(rows, quick, app, None) for app in SERVERS]


def both_servers(quick: bool, **knobs: Any) -> list[Point]:
    return [point(quick, app, **knobs) for app in SERVERS]


# --- Bandwidth against drop rate, beside the real server (Figs. 6 to 9) ---------------------------------------------

MACHINES = ("gem5", "altra")
OFFERED = (0.8, 0.95, 1.05, 1.2)


def on_both(quick: bool, *apps: str) -> list[Point]:
    return [point(quick, app, size, platform=p) for app in apps for p in MACHINES for size in SIZES]


def curve(app: str) -> Callable[[Rows, bool], list[Point]]:
    """Drop rates around the knee on both platforms."""

    def points(rows: Rows, quick: bool) -> list[Point]:
        out = []
        for platform in MACHINES:
            for size in SIZES:
                peak = peak_of(
                    rows,
                    app=app,
                    platform=platform,
                    packet_bytes=size,
                    dca="on" if platform == "gem5" else "off",
                    clock_ghz=None,
                )
                for share in OFFERED[-1:] if quick else OFFERED:
                    rate = share * peak
                    if 8 * (size + 20) * rate > LINK:
                        continue  # more than the link carries
                    out.append(
                        point(
                            quick,
                            app,
                            size,
                            platform=platform,
                            pps=rate,
                            requests=overload(peak, rate, size),
                            columns={"rate_basis": f"{share} x peak"},
                        )
                    )
        return out

    return points


def fig6(quick: bool) -> list[Point]:
    return on_both(quick, "testpmd") + [point(quick, "testpmd", size, dca="off") for size in SIZES]


def fig7(quick: bool) -> list[Point]:
    return on_both(quick, "touchfwd", "testpmd") + [point(quick, "touchfwd", 1518, clock_ghz=f) for f in (2.0, 4.0)]


def fig8(quick: bool) -> list[Point]:
    return on_both(quick, "rxptx-10ns", "testpmd")


def fig9(quick: bool) -> list[Point]:
    return on_both(quick, "rxptx-1us", "rxptx-10ns")


# --- Memcached (Figs. 18 to 20) -------------------------------------------------------------------------------------

CLOCKS = (1.0, 2.0, 3.0, 4.0)
LOADS = (0.3, 0.6, 0.8, 0.95, 1.1)


def fig18(quick: bool) -> list[Point]:
    return both_servers(quick)


def fig18_curve(rows: Rows, quick: bool) -> list[Point]:
    out = []
    for app in SERVERS:
        peak = peak_of(rows, app=app)
        out += [
            point(
                quick,
                app,
                pps=share * peak,
                requests=overload(peak, share * peak, None),
                columns={"rate_basis": f"{share} x peak"},
            )
            for share in (LOADS[-2:] if quick else LOADS)
        ]
    return out


def fig19(quick: bool) -> list[Point]:
    return [p for clock in CLOCKS for p in both_servers(quick, clock_ghz=clock)]


def fig19_loads(rows: Rows, quick: bool) -> list[Point]:
    """Two request rates, equal at every clock: a low rate, which both servers can serve, and a rate near each server's
    own peak."""
    out = []
    peaks = {app: peak_of(rows, app=app, clock_ghz=3.0) for app in SERVERS}
    for app in SERVERS:
        for share, peak in ((0.3, min(peaks.values())), (0.95, peaks[app])):
            for clock in CLOCKS:
                own = peak_of(rows, app=app, clock_ghz=clock)
                out.append(
                    point(
                        quick,
                        app,
                        pps=share * peak,
                        requests=overload(own, share * peak, None),
                        clock_ghz=clock,
                        columns={"rate_basis": f"{share} x peak at 3 GHz"},
                    )
                )
    return out


# Requests per second of both ways of generating load: below the knees of all four servers, including the kernel on an
# in-order core.
BOTH_RPS = 100_000
# The second node equals the first one, as in gem5's dual mode, and its client software runs on one core.
CLIENT = {"cores": 1, "app": {"kind": "load_generator"}}


def fig20(quick: bool) -> list[Point]:
    """Requests from the generator, and requests from software on a second host."""
    return [
        point(
            quick,
            app,
            pps=BOTH_RPS,
            core=core,
            columns={"mode": mode},
            changes={"client": CLIENT} if mode == "two hosts" else {},
        )
        for app in SERVERS
        for mode in ("generator", "two hosts")
        for core in ("out-of-order", "in-order")
    ]


# --- Method ---------------------------------------------------------------------------------------------------------


def stacks(quick: bool) -> list[Point]:
    """Userspace and kernel stacks at every packet size, and without direct cache access."""
    return [point(quick, app, size, dca=dca) for app in ("testpmd", "iperf") for dca in ("on", "off") for size in SIZES]


def kernel_bandwidth(quick: bool) -> list[Point]:
    return [point(quick, "iperf", 1518)]


WRITE_BACKS: tuple[int | str, ...] = ("all_used", 1, 8, 16, 32)


def write_backs(quick: bool) -> list[Point]:
    return [point(quick, "testpmd", size) for size in (64, 1518)]


def write_backs_at_one_rate(rows: Rows, quick: bool) -> list[Point]:
    """Every rule at the same rate, a tenth below the knee of the platform's own rule."""
    return [
        point(
            quick,
            "testpmd",
            size,
            pps=0.9 * peak_of(rows, packet_bytes=size),
            write_back=rule,
            columns={"rate_basis": "0.9 x peak"},
        )
        for size in (64, 1518)
        for rule in WRITE_BACKS
    ]


def without_dca(quick: bool) -> list[Point]:
    return [point(quick, "testpmd", size, platform=p, dca="off") for p in MACHINES for size in SIZES]


def generator(quick: bool) -> list[Point]:
    """Frames at half and all of the link's rate, and a trace with its own times: a request every 10 us."""
    rates = [(size, share * LINK / (8 * (size + 20))) for size in (64, 1518) for share in (0.5, 0.99)]
    frames = [point(quick, "testpmd", size, pps=pps) for size, pps in rates]
    replay = {"traffic.rate": None, "traffic.pcap.timing": "original"}
    return [*frames, point(quick, "mc-dpdk", pps=1e5, columns={"mode": "trace"}, changes=replay)]


# --- The seeds of the method's study, and all studies ---------------------------------------------------------------

SEEDS = tuple(range(1, 8))


def method(quick: bool) -> list[Point]:
    echo = point(quick, "testpmd", 64, platform="altra", pps=1e5, columns={"rate_basis": "idle"})
    return [point(quick, "testpmd", 1518, platform="altra"), echo]


def samples(rows: Rows, quick: bool) -> list[Point]:
    peak = peak_of(rows, packet_bytes=1518)
    return [
        point(
            quick,
            "testpmd",
            1518,
            platform="altra",
            pps=0.9 * peak,
            columns={"repeat": seed, "rate_basis": "0.9 x peak"},
            changes={"seed": seed},
        )
        for seed in SEEDS
    ]


STUDIES = [
    study("abs_speedup", "Userspace against kernel stack", stacks, RATES),
    study("s2_kernelbw", "Bandwidth of the kernel stack", kernel_bandwidth, RATES),
    study(
        "s3_writeback",
        "When descriptors are written back",
        write_backs,
        ("descriptors_per_write_back", "dma_peak_gbs", *RATES),
        then=write_backs_at_one_rate,
    ),
    study("s3_dca", "No direct cache access, against the real server", without_dca, RATES),
    study(
        "s4_loadgen", "The load generator", generator, ("offered_mrps", *RATES, "rtt_mean_us"), side_tables=("drops",)
    ),
    study("s6_method", "Spread over seeds, and an unloaded echo", method, (*RATES, "rtt_mean_us"), then=samples),
    study(
        "fig5",
        "Drops by cause beyond the knee",
        fig5,
        (*CAUSES, "drop_rate", "dma_busy", "cpu_utilisation"),
        then=fig5_knees,
    ),
    study(
        "fig6",
        "TestPMD: drop rate over bandwidth",
        fig6,
        (*RATES, "client_gbps"),
        then=curve("testpmd"),
        side_tables=("drops",),
    ),
    study("fig7", "TouchFwd: drop rate over bandwidth", fig7, RATES, then=curve("touchfwd")),
    study("fig8", "RXpTX, 10 ns: drop rate over bandwidth", fig8, RATES, then=curve("rxptx-10ns")),
    study("fig9", "RXpTX, 1 us: drop rate over bandwidth", fig9, RATES, then=curve("rxptx-1us")),
    study(
        "fig18", "Memcached: drop rate over requests", fig18, ("krps", "offered_mrps", "drop_rate"), then=fig18_curve
    ),
    study(
        "fig19",
        "Memcached: latency and drops over the clock",
        fig19,
        ("krps", "rtt_mean_us", "rtt_p99_us", "drop_rate"),
        then=fig19_loads,
    ),
    study(
        "fig20",
        "What the generator saves against a second host",
        fig20,
        ("sim_events",),
        {"wall_s": wall_s},
        wall_runs=3,
    ),
]
