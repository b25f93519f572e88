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

from . import Rows, Study, axes
from .grid import Grid, Row, also, by_length, on, sum_of

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

# Applications most of whose instructions are counted with their loads and stores: the kernel's stack and memcached. The driver's
# counts, and those of the forwarders, are integer operations and branches.
ALL_COUNTED = {IPERF, *SERVERS}
# Applications over the kernel's stack, which has no poll-mode driver.
KERNEL = {IPERF, "mc-kernel"}

# Instructions more for a freed buffer, where it goes to the pool's ring (scenarios/memcached-dpdk.toml).
POOL_RING = {"mc-dpdk": 48}

# The in-order machine of the release (run-scripts/l2fwd-ckp-cputypes.sh): MinorCPU with the default caches, since the script
# passes none of the parameters that the other scripts set for O3_ARM_v7a_3.
# - cpu/minor/MinorCPU.py: two instructions a cycle; it is assumed that dependences leave one, of which integer operations and
#   branches are 0.6 in the driver. A taken branch leaves Fetch2 empty for 3 cycles: one back to Fetch1, two in the
#   L1I, one to Fetch2. Fetch and execution overlap: TouchFwd's loop of three and three instructions takes 2 x (2 + 3) cycles
#   a byte to fetch, 1.7 more than its execution, which is a cycle for each taken branch; the driver's code is not fetched
#   more slowly than it is executed. Two accesses may be in memory, and five stores may wait, each of a pair of registers.
#   The driver's counts are therefore without what O3's fetch and its wait for a load before an mrs add.
# - configs/common/Caches.py: L1D of 4 MSHRs, each of 20 accesses; L2 and L3 with 20 cycles, 20 MSHRs, LRU, and no prefetcher;
#   mostly inclusive, so that the L3 keeps the lines that it passes on.
IN_ORDER = {
    "override.core.pipeline": "in_order",
    "override.core.width": 2,
    "override.core.compute_ipc": lambda row: 1.0 if row["app"] in ALL_COUNTED else 0.6,
    "override.core.quirks.taken_branch_cycles": 1,
    "override.poll_mode.transmit_instructions": lambda row: None if row["app"] in KERNEL else 63,
    "override.poll_mode.free_instructions": lambda row: (
        None if row["app"] in KERNEL else 19 + POOL_RING.get(row["app"], 0)
    ),
    "override.core.lfb": 2,
    "override.core.quirks.lfb_targets": 20,
    "override.core.quirks.l2_mshrs": 20,
    "override.core.store_queue": 5,
    "override.core.prefetch.enabled": False,
    "override.caches.l2.latency_cycles": 21,
    "override.caches.l2.response_cycles": 20,
    "override.caches.l2.replacement": "lru",
    "override.caches.llc.latency_cycles": 7,
    "override.caches.llc.quirks.response_cycles": 7,
    "override.caches.llc.replacement": "lru",
    "override.caches.llc.role": "inclusive",
    "override.caches.llc.quirks.read_hit": "retain",
    "override.caches.llc.quirks.mshrs": 20,
}

# Packets of a run at a fixed rate, and packets of each rate that a bandwidth test tries; a quick run uses fewer for
# both.
REQUESTS, TRIED, QUICK_REQUESTS = 60_000, 20_000, 10_000
# Receive buffer and rings of the platform, all of which are full before the first packet is lost.
BUFFER, RING = 4 << 20, 1024
# Rate of the link in bits per second; a frame takes 20 bytes in addition to its own.
LINK = 100e9
# Share of packets that a bandwidth test may lose, as in the scenario. Packets by which queues grow count as lost, but the release
# counts lost packets alone, behind 200 ms of warm-up. Without direct cache access both rings fill at rates that are then carried
# without a loss, so that a test lasts until full rings are within this share.
LOST = 0.01
UNTIL_RINGS_COUNT_LITTLE = round(2 * RING / LOST)
# Maximum rate of Pktgen on the client of the real server (Sec. VII-B): 8 Gb/s of 64-byte frames.
CLIENT_PPS = 8e9 / (64 * 8)


def waits(platform: str, interval_ns: float) -> str:
    """The mean time for which RXpTX actually waits after a burst, for an interval that the paper names."""
    ticks = interval_ns / 10 - 0.5
    return f"{round(ticks * TICK_NS[platform], 1)} ns"


# Both loops over a packet's bytes (artifact: test-pmd/touchfwd.c and rxonly.c) are one: a load, an add, two compares and two taken
# branches as GCC 12 compiles them for AArch64 with -O3. On gem5 the count is that of its two integer units, which do not load.
PER_BYTE = {"gem5": 5.0, "altra": 6.0}
TAKEN_PER_BYTE = 2
# The compare and the branch on the byte need its line; the load's address, a counter, and the loop's compare and branch do not.
ON_THE_BYTE = {
    "gem5": {"dependent_per_byte": 2.0, "loads_per_byte": 1},
    "altra": {"dependent_per_byte": 2.0},
}
# The rest of a packet: the vector loop that exchanges addresses (test-pmd/macswap_neon.h) takes 11.75 cycles, in which two integer
# units execute 23 instructions. Its 8.5 loads share one unit, and of 48 vector registers (cores/arm/O3_ARM_v7a.py) 44 are
# architectural ones, so that four are left to rename. The in-order core renames nothing and executes the loop's 4 integer
# operations. For the real server, the application's default.
REST, REST_IN_ORDER = {"gem5": 23, "altra": 20}, 4


def step_pps(platform: str, size: int) -> int:
    """Packets per second between two successive rates that a bandwidth test tries."""
    return STEP[size] if platform == "gem5" else round(PERCENT * LINK / (8 * (size + 20)))


def application(app: str, row: Row) -> dict[str, Any]:
    """The application's table. TouchDrop is TouchFwd without transmission."""
    platform = row["platform"]
    rest = REST_IN_ORDER if row.get("core") == "in-order" else REST[platform]
    if app.startswith("rxptx"):
        return {"kind": "rxptx", "interval": waits(platform, row["interval_ns"] or 0), "instructions": rest}
    if app.startswith("touch"):
        loop = {"instructions_per_byte": PER_BYTE[platform], "taken_branches_per_byte": TAKEN_PER_BYTE}
        return {"kind": app, "instructions": rest, **loop, **ON_THE_BYTE[platform]}
    if app == "testpmd":
        return {"kind": app, "mode": "macswap", "instructions": rest}
    return {"kind": app}


# --- Axes -----------------------------------------------------------------------------------------------------------


def served(app: str) -> Grid:
    """An application that receives frames of a row's size, and the step between the rates that a search tries."""
    return on(BASE) * also(
        {
            "name": app,
            "tenant.0.name": app,
            "tenant.0.app": lambda row: application(app, row),
            "traffic.packet": lambda row: f"{row['packet_bytes']} B",
            "run.step": lambda row: f"{step_pps(row['platform'], row['packet_bytes'])} pps",
        }
    )


# A flow of IP packets of a row's size, as far as the MTU lets it (artifact: guest-scripts/iperf-*.sh, an MSS of 40 bytes less). Its
# rate is counted in reads of 64 KiB, each of which is 0.13 % of 10 Gb/s in 40 ms.
FLOW = {"peripheral.0.mtu": lambda row: f"{min(row['packet_bytes'], 1500)} B", "run.time": by_length("40 ms", "2 ms")}
# Memory channels of iperf in run-scripts/run-dual-{kernel,freq,cputypes}.sh. The scripts of the other sweeps have the platform's four.
ONE_CHANNEL, FOUR_CHANNELS = {"override.memory.channels": 1}, {"override.memory.channels": None}
APP = axes.APP.among(
    {app: served(app) for app in (*FORWARDERS, "touchdrop", "rxptx")}
    | {"iperf": on(IPERF) * also(FLOW | ONE_CHANNEL)}
    | {app: on(scenario) for app, scenario in SERVERS.items()}
)
FRAMES = axes.PACKET_BYTES
PLATFORM = axes.PLATFORM.among({"gem5": {}, "altra": {"platform": "altra"}})
DCA = axes.DCA.among({"on": {}, "off": {"placement": {"policy": "dma"}}})
BASIS, MODE = axes.RATE_BASIS, axes.MODE

# One part of the machine at a time. What is as on the platform is left alone, so that equal machines are one simulation.
CLOCKS = (1.0, 2.0, 3.0, 4.0)
# The L3's 12 cycles, and the 12 of its answer, are the core's; their unit here is the uncore's nanosecond.
CLOCK = axes.CLOCK_GHZ.among(
    {
        ghz: {
            "override.core.clock": f"{ghz} GHz",
            "override.caches.llc.latency_cycles": round(12 / ghz),
            "override.caches.llc.quirks.response_cycles": round(12 / ghz),
        }
        if ghz != 3.0
        else {}
        for ghz in CLOCKS
    }
)
CORE = axes.CORE.among({"out-of-order": {}, "in-order": IN_ORDER})
ROB = axes.ROB.at("override.core.rob", usual=128)
L1 = axes.L1_KIB.at("override.caches.l1d.size", form="{} KiB", usual=64)
L2 = axes.L2_KIB.at("override.caches.l2.size", form="{} KiB", usual=1024)
LLC = axes.LLC_MIB.at("override.caches.llc.size", form=lambda mib: f"{1024 * mib} KiB", usual=16)
CHANNELS = axes.CHANNELS
RULE = "peripheral.0.rings.write_back"
IDLE = "peripheral.0.rings.quirks.write_back_idle"
WRITE_BACK = axes.WRITE_BACK.among(
    {
        "all_used": {RULE: "all_used", IDLE: False},  # nothing else writes back: section III-A3
        "1": {},
        **{str(n): {RULE: {"after": n}} for n in (8, 16, 32)},
    }
)

# The simulated machine, and the real server.
GEM5, ALTRA = PLATFORM("gem5") * DCA("on"), PLATFORM("altra") * DCA("off")
INTERVAL = axes.INTERVAL_NS(lambda row: RXPTX.get(row["app"]))

# gem5's own core (cores/arm/O3_ARM_v7a.py), which scripts have that pass no parameters of the core.
DEFAULT_CORE = {
    "override.core.width": 3,
    "override.core.rob": 40,
    "override.core.store_queue": 16,
    "override.core.lfb": 6,
    "override.core.quirks.l2_mshrs": 16,
}
# run-scripts/memcached-dpdk.sh defines the parameters of the core and does not pass them. Loads of 3 cycles and 40 entries let a GET's
# code, of which 43 % hash its key, run at 1.35 instructions a cycle; loads of 4 and 2 cycles at 1.20 and 1.60
# (docs/fidelity/gem5net.md). The in-order core has its own.
OWN_SCRIPT = also(
    lambda row: {} if row.get("core") == "in-order" else DEFAULT_CORE | {"override.core.compute_ipc": 1.35}
)

# Direct cache access of the servers in the release: run-scripts/memcached-dpdk.sh has it and memcached-kernel.sh does not. The scripts
# that sweep caches, channels and the reorder buffer (memcached-{dpdk,kernel}-caches.sh) do not have it for either.
SCRIPT_DCA = {"mc-dpdk": "on", "mc-kernel": "off"}


def server(app: str, dca: str | None = None) -> Grid:
    """One of both key-value servers, with the core and the direct cache access of its own script, or, with `dca`, with the platform's
    core, as in the scripts of the sweeps (memcached-dpdk-caches.sh)."""
    chosen = APP(app) * DCA(dca or SCRIPT_DCA[app]) * FRAMES(None) * INTERVAL
    return chosen * OWN_SCRIPT if app == "mc-dpdk" and dca is None else chosen


BOTH_SERVERS = sum_of(server(app) for app in SERVERS)


def frames(apps: tuple[str, ...], sizes: tuple[int, ...] = SIZES) -> Grid:
    """Applications that receive frames of each size."""
    return APP(*apps) * FRAMES(*sizes) * INTERVAL


def tried(row: Row) -> Mapping[str, Any]:
    if row["app"] == "iperf":
        return {}
    fills = row["app"] in FORWARDERS and row["platform"] == "gem5" and row["dca"] == "off"
    usual = UNTIL_RINGS_COUNT_LITTLE if fills else TRIED
    return {"run.requests": QUICK_REQUESTS if row["quick"] else usual}


# A bandwidth test.
TEST = axes.LOAD("peak_loss") * also(tried)
RATE = axes.RATE_MRPS.said(unit="Mpps")


def fixed(pps: float, requests: int | None = None, basis: str | None = None) -> Grid:
    """A fixed rate, which packets of a test of other length than usual may run at."""
    rate = {
        "run.load": "fixed",
        "run.step": None,
        "run.requests": requests or by_length(REQUESTS, QUICK_REQUESTS),
        "traffic.rate": f"{round(pps)} pps",
    }
    chosen = axes.LOAD("fixed") * RATE(round(pps / 1e6, 6)) * also(rate)
    return chosen if basis is None else chosen * BASIS(basis)


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


def at_knee(rows: Rows, quick: bool, app: str, size: int | None, like: str = "") -> Grid:
    """`app` at the rate beyond the knee of `like`, which is itself unless said.

    A core may serve any rate below the first that failed, which is a step above the peak. Rates on the grid are therefore a step
    further, and exceed what is served by one step at least, which fills the buffers.
    """
    peak = peak_of(rows, app=like or app, packet_bytes=size)
    rate = beyond(peak, size, quick)
    if size is None:
        served = rate - (rate - peak) / 4  # no grid; assumed
    else:
        served = peak + STEP[size]
        if (rate + STEP[size]) * 8 * (size + 20) <= LINK:
            rate += STEP[size]
    requests = overload(served, rate, size)
    receiver = server(app) if app in SERVERS else APP(app) * FRAMES(size) * INTERVAL
    return GEM5 * receiver * fixed(rate, requests, "knee")


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


UNITS = {
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
    grid: Grid,
    metrics: tuple[str, ...],
    formulas: Mapping[str, Any] | None = None,
    units: Mapping[str, str] | None = None,
    **more: Any,
) -> Study:
    """A study with the columns that all tables of this system have."""
    return Study(
        "gem5net",
        figure,
        title,
        grid,
        metrics,
        derived={**DERIVED, **(formulas or {})},
        derived_units={**UNITS, **(units or {})},
        axes=axes.with_own(RATE),
        **more,
    )


# --- Drops by cause (Fig. 5) ----------------------------------------------------------------------------------------

DROP_SIZES = (64, 256, 1518)


def fig5_knees(rows: Rows, quick: bool) -> Grid:
    """Beyond each knee, where packets are lost; TouchDrop has none of its own and takes TouchFwd's."""
    knees = [at_knee(rows, quick, app, size) for app in FORWARDERS for size in DROP_SIZES]
    knees += [at_knee(rows, quick, "touchdrop", size, like="touchfwd") for size in DROP_SIZES]
    return sum_of([*knees, *(at_knee(rows, quick, app, None) for app in SERVERS)])


# --- Bandwidth against drop rate, beside the real server (Figs. 6 to 9) ---------------------------------------------

MACHINES = GEM5 + ALTRA
OFFERED = (0.8, 0.95, 1.05, 1.2)


def on_both(*apps: str) -> Grid:
    return sum_of(APP(app) * MACHINES * FRAMES(*SIZES) * INTERVAL for app in apps) * TEST


def curve(app: str) -> Callable[[Rows, bool], Grid]:
    """Drop rates around the knee on both platforms, as far as the link carries them."""

    def points(rows: Rows, quick: bool) -> Grid:
        out = []
        for machine, named in ((GEM5, {"platform": "gem5", "dca": "on"}), (ALTRA, {"platform": "altra", "dca": "off"})):
            for size in SIZES:
                peak = peak_of(rows, app=app, packet_bytes=size, clock_ghz=None, **named)
                rates = {share: share * peak for share in (OFFERED[-1:] if quick else OFFERED)}
                out += [
                    machine * frames((app,), (size,)) * fixed(rate, overload(peak, rate, size), f"{share} x peak")
                    for share, rate in rates.items()
                    if 8 * (size + 20) * rate <= LINK
                ]
        return sum_of(out)

    return points


# --- Memcached (Figs. 18 to 20) -------------------------------------------------------------------------------------

LOADS = (0.3, 0.6, 0.8, 0.95, 1.1)


def fig18_curve(rows: Rows, quick: bool) -> Grid:
    peaks = {app: peak_of(rows, app=app) for app in SERVERS}
    return GEM5 * sum_of(
        server(app) * fixed(share * peak, overload(peak, share * peak, None), f"{share} x peak")
        for app, peak in peaks.items()
        for share in (LOADS[-2:] if quick else LOADS)
    )


def fig19_loads(rows: Rows, quick: bool) -> Grid:
    """Two rates, equal at every clock: a low one, which both servers can take, and one near each server's own peak."""
    out = []
    peaks = {app: peak_of(rows, app=app, clock_ghz=3.0) for app in SERVERS}
    for app in SERVERS:
        for share, peak in ((0.3, min(peaks.values())), (0.95, peaks[app])):
            for clock in CLOCKS:
                requests = overload(peak_of(rows, app=app, clock_ghz=clock), share * peak, None)
                out.append(CLOCK(clock) * server(app) * fixed(share * peak, requests, f"{share} x peak at 3 GHz"))
    return GEM5 * sum_of(out)


# Requests per second of both ways of generating load: below the knees of all four servers, including the kernel on an
# in-order core.
BOTH_RPS = 100_000
# The second node equals the first one, as in gem5's dual mode, and its client software runs on one core.
CLIENT = {"cores": 1, "app": {"kind": "load_generator"}}
# Requests that come from the generator and from software on a second host.
FIG20 = (
    GEM5
    * sum_of(server(app, "on") for app in SERVERS)
    * MODE.among({"generator": {}, "two hosts": {"client": CLIENT}})
    * CORE("out-of-order", "in-order")
    * fixed(BOTH_RPS)
)

# --- Method ---------------------------------------------------------------------------------------------------------

# Userspace and kernel stacks at every packet size, and without direct cache access, where iperf's script has the channels of all
# others (run-scripts/run-dual-ddio-disabled.sh).
STACKS = PLATFORM("gem5") * APP("testpmd", "iperf") * DCA * FRAMES(*SIZES) * INTERVAL * TEST
STACKS *= also(lambda row: FOUR_CHANNELS if row["app"] == IPERF and row["dca"] == "off" else {})
WRITTEN_BACK = (64, 1518)


def write_backs_at_one_rate(rows: Rows, quick: bool) -> Grid:
    """Every rule at the same rate, a tenth below the knee of the platform's own."""
    return GEM5 * sum_of(
        frames(("testpmd",), (size,)) * WRITE_BACK * fixed(0.9 * peak_of(rows, packet_bytes=size), basis="0.9 x peak")
        for size in WRITTEN_BACK
    )


# Frames at half and all of the link's rate, and a trace with its own times: a request every 10 us.
GENERATED = GEM5 * (
    sum_of(
        frames(("testpmd",), (size,)) * fixed(share * LINK / (8 * (size + 20)))
        for size in (64, 1518)
        for share in (0.5, 0.99)
    )
    + server("mc-dpdk") * fixed(1e5) * MODE("trace") * also({"traffic.rate": None, "traffic.pcap.timing": "original"})
)

# --- The seeds of the method's study, and all studies ---------------------------------------------------------------

METHOD = ALTRA * (frames(("testpmd",), (1518,)) * TEST + frames(("testpmd",), (64,)) * fixed(1e5, basis="idle"))


def samples(rows: Rows, quick: bool) -> Grid:
    rate = 0.9 * peak_of(rows, packet_bytes=1518)
    repeat = axes.REPEAT.at("seed")(*range(1, 8))
    return ALTRA * frames(("testpmd",), (1518,)) * fixed(rate, basis="0.9 x peak") * repeat


STUDIES = [
    study("abs_speedup", "Userspace against kernel stack", STACKS, RATES),
    study("s2_kernelbw", "Bandwidth of the kernel stack", GEM5 * frames(("iperf",), (1518,)) * TEST, RATES),
    study(
        "s3_writeback",
        "When descriptors are written back",
        GEM5 * frames(("testpmd",), WRITTEN_BACK) * TEST,
        ("descriptors_per_write_back", "dma_peak_gbs", *RATES),
        then=write_backs_at_one_rate,
    ),
    study(
        "s3_dca",
        "No direct cache access, against the real server",
        PLATFORM("gem5", "altra") * DCA("off") * frames(("testpmd",)) * TEST,
        RATES,
    ),
    study(
        "s4_loadgen", "The load generator", GENERATED, ("offered_mrps", *RATES, "rtt_mean_us"), side_tables=("drops",)
    ),
    study("s6_method", "Spread over seeds, and an unloaded echo", METHOD, (*RATES, "rtt_mean_us"), then=samples),
    study(
        "fig5",
        "Drops by cause beyond the knee",
        GEM5 * (frames(FORWARDERS, DROP_SIZES) + BOTH_SERVERS) * TEST,
        (*CAUSES, "drop_rate", "dma_busy", "cpu_utilisation"),
        then=fig5_knees,
    ),
    study(
        "fig6",
        "TestPMD: drop rate over bandwidth",
        on_both("testpmd") + PLATFORM("gem5") * DCA("off") * frames(("testpmd",)) * TEST,
        (*RATES, "client_gbps"),
        then=curve("testpmd"),
        side_tables=("drops",),
    ),
    study(
        "fig7",
        "TouchFwd: drop rate over bandwidth",
        on_both("touchfwd", "testpmd") + GEM5 * frames(("touchfwd",), (1518,)) * CLOCK(2.0, 4.0) * TEST,
        RATES,
        then=curve("touchfwd"),
    ),
    study(
        "fig8",
        "RXpTX, 10 ns: drop rate over bandwidth",
        on_both("rxptx-10ns", "testpmd"),
        RATES,
        then=curve("rxptx-10ns"),
    ),
    study(
        "fig9",
        "RXpTX, 1 us: drop rate over bandwidth",
        on_both("rxptx-1us", "rxptx-10ns"),
        RATES,
        then=curve("rxptx-1us"),
    ),
    study(
        "fig18",
        "Memcached: drop rate over requests",
        GEM5 * BOTH_SERVERS * TEST,
        ("krps", "offered_mrps", "drop_rate"),
        then=fig18_curve,
    ),
    study(
        "fig19",
        "Memcached: latency and drops over the clock",
        GEM5 * CLOCK * BOTH_SERVERS * TEST,
        ("krps", "rtt_mean_us", "rtt_p99_us", "drop_rate"),
        then=fig19_loads,
    ),
    study(
        "fig20",
        "What the generator saves against a second host",
        FIG20,
        ("sim_events",),
        {"wall_s": wall_s},
        wall_runs=3,
    ),
]
