"""The interconnect under CC-NIC: latencies of lines, ping-pong, streams, and the effect of a slower or a different
link."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from .._toml import tomllib
from ..paths import PLATFORMS
from . import Point, Rows, Study
from .ccnic import COHERENT, CORES, LARGE, REMOTE, SMALL, point, study

PROBE, PINGPONG, STREAM = "ccnic-probe", "ccnic-pingpong", "ccnic-stream"
SIZES_ONLY = "directed-rx"


def on(platform: str) -> dict[str, Any]:
    """The change that moves a scenario of Ice Lake to `platform`."""
    return {} if platform == "icx" else {"platform": platform}


# --- Table 1: rates of links ----------------------------------------------------------------------------------------

# Transfers per nanosecond on a lane, number of lanes, and the share that the line code or the flits leave.
PCIE_LINKS = {"pcie4-x16": (16, 16, 128 / 130), "pcie5-x16": (32, 16, 128 / 130), "pcie6-x16": (64, 16, 242 / 256)}
UPI_LINKS = {"icx-upi": "icx", "spr-upi": "spr"}


@lru_cache
def link_of(platform: str) -> Mapping[str, Any]:
    """The link between the nodes of a platform that comes with hostnet."""
    tables = tomllib.loads((PLATFORMS / f"{platform}.toml").read_text(encoding="utf-8"))
    link: Mapping[str, Any] = tables["nodes"]["link"]
    return link


def raw_gbs(row: Mapping[str, Any]) -> float:
    """Raw rate of one direction of a link, in GB/s, before any protocol."""
    if row["link"] in PCIE_LINKS:
        rate, lanes, code = PCIE_LINKS[row["link"]]
        return rate * lanes * code / 8
    link = link_of(UPI_LINKS[row["link"]])
    links: int = link["links"]
    return links * float(link["rate"].removesuffix(" GB/s"))


def tab1(quick: bool) -> list[Point]:
    """Arithmetic only; no traffic is simulated."""
    return [Point(SIZES_ONLY, {"link": name}, {"run.load": "none"}) for name in (*PCIE_LINKS, *UPI_LINKS)]


# --- Latency of a line, ping-pong, streams (Figs. 7 to 9) -----------------------------------------------------------

PLACES = (
    "local_l1",
    "local_l2",
    "local_llc",
    "local_dram",
    "other_l2",
    "remote_llc",
    "remote_dram",
    "remote_l2_rh",
    "remote_l2_lh",
)


# One line is loaded at a time, as programs that measure latency switch prefetchers off.
ALONE = {"override.core.prefetch.enabled": False, "override.core.l1_prefetch.enabled": False}


def probe(platform: str, place: str, changes: Mapping[str, Any] | None = None, **columns: Any) -> Point:
    """One load of a line in a known place."""
    return Point(
        PROBE,
        {"platform": platform, "place": place, **columns},
        {**on(platform), "tenant.0.app.place": place, **ALONE, **(changes or {})},
    )


def fig7(quick: bool) -> list[Point]:
    return [probe(plat, place) for plat in CORES for place in PLACES]


LAYOUTS = ("S0", "S1", "Rd", "Wr", "S0C", "S1C")


def fig8(quick: bool) -> list[Point]:
    return [
        Point(PINGPONG, {"platform": plat, "layout": layout}, {**on(plat), "tenant.0.app.layout": layout})
        for plat in CORES
        for layout in LAYOUTS
    ]


PAIRS = {"icx": (4, 16), "spr": (14, 56)}
# In the paper the writer notifies the reader after each MiB. In a simulated window a pair moves less than that, so the
# writer notifies after each 128 KiB, in a buffer of 512 KiB, which the L2 holds as it holds the MiB. Reads alone need a
# buffer beyond all caches, and settle immediately.
STREAMS = {
    "cached": {
        "tenant.0.app.chunk": "128 KiB",
        "tenant.0.app.buffer": "512 KiB",
        "run.warmup_time": "300 us",
        "run.time": "150 us",
    },
    "none": {"tenant.0.app.buffer": "64 MiB", "run.warmup_time": "30 us", "run.time": "30 us"},
}
STREAMS["nontemporal"] = STREAMS["cached"]


def stream(
    platform: str, stores_as: str, pairs: int, changes: Mapping[str, Any] | None = None, **columns: Any
) -> Point:
    """Writers and readers in pairs; `none` only reads memory of the other socket, as mlc does."""
    return Point(
        STREAM,
        {"platform": platform, "stores_as": stores_as, "pairs": pairs, **columns},
        {
            **on(platform),
            "tenant.0.cores": pairs,
            "tenant.0.app.stores": stores_as,
            **STREAMS[stores_as],
            **(changes or {}),
        },
    )


def fig9(quick: bool) -> list[Point]:
    return [stream(plat, how, n) for plat, counts in PAIRS.items() for how in STREAMS for n in counts]


# --- A slower link (Fig. 21) ----------------------------------------------------------------------------------------

UNCORE_GHZ = 2.5
PROBED_GHZ = (UNCORE_GHZ, UNCORE_GHZ / 2)
SLOWDOWNS = (1.0, 1.05, 1.11)
UNCORES = (2.5, 2.0, 1.5, 1.0)


def uncore(ghz: float) -> dict[str, Any]:
    """The NIC's socket at another uncore clock."""
    return (
        {} if ghz == UNCORE_GHZ else {"override.nodes.uncore_clock": [f"{UNCORE_GHZ} GHz", f"{round(1000 * ghz)} MHz"]}
    )


def fig21a(quick: bool) -> list[Point]:
    """Latency of the other socket's memory at two uncore clocks, from which the clocks for given latencies follow."""
    return [
        probe("spr", "remote_dram", uncore(f), uncore_ghz=f, slowdown=1.0 if f == UNCORE_GHZ else None)
        for f in PROBED_GHZ
    ]


def clock_for(rows: Rows, slowdown: float) -> float:
    """The uncore clock in GHz at which the access takes `slowdown` times as long; the time is linear in the period."""
    ns = {r["uncore_ghz"]: r["access_ns"] for r in rows if r.get("place") == "remote_dram"}
    fast, slow = (ns[f] for f in PROBED_GHZ)
    period: float = 1 / UNCORE_GHZ + (slowdown - 1) * fast / (slow - fast) * (1 / PROBED_GHZ[1] - 1 / UNCORE_GHZ)
    return round(1 / period, 3)


def slowed(rows: Rows, quick: bool) -> list[Point]:
    out = []
    for s in SLOWDOWNS:
        ghz = clock_for(rows, s)
        if s != 1.0:
            out.append(probe("spr", "remote_dram", uncore(ghz), uncore_ghz=ghz, slowdown=s))
        out += [
            point(quick, "spr", system, load="min", columns={"uncore_ghz": ghz, "slowdown": s}, changes=uncore(ghz))
            for system in COHERENT
        ]
    return out


def fig21b(quick: bool) -> list[Point]:
    """1500 B at the peak, and the throughput that pure reads reach over the link."""
    out = [
        point(quick, "spr", system, LARGE, columns={"uncore_ghz": f}, changes=uncore(f))
        for f in UNCORES
        for system in COHERENT
    ]
    return out + [stream("spr", "none", CORES["spr"], uncore(f), uncore_ghz=f) for f in UNCORES]


# --- A link of another class (no paper has it) ----------------------------------------------------------------------

# One-way latency with which memory behind the link takes 285 ns, one and a half times as long as over UPI (section
# 5.9).
CXL_LATENCY = "80.3 ns"
CXL: dict[str, dict[str, Any]] = {
    "upi": {},
    "upi-slow": {"latency": CXL_LATENCY},
    "cxl2-x16": {"links": 1, "rate": "63 GB/s", "latency": CXL_LATENCY},
    "cxl3-x16": {"links": 1, "rate": "121 GB/s", "latency": CXL_LATENCY},
}


def cxl(quick: bool) -> list[Point]:
    """CC-NIC and the unoptimised interface on a link of CXL's latency and bandwidth."""
    return [
        point(
            quick,
            "spr",
            system,
            size,
            load=load,
            columns={"link": name},
            changes={f"override.nodes.link.{k}": v for k, v in table.items()},
        )
        for name, table in CXL.items()
        for system in COHERENT
        for size in (SMALL, LARGE)
        for load in ("min", "peak")
    ]


# --- Beside real links ----------------------------------------------------------------------------------------------


class RealLink(NamedTuple):
    """Reads of the other socket's memory on a real machine."""

    idle_ns: float
    most_gbs: float
    #: (share of the maximum throughput, ratio of latency to idle latency) under load
    curve: tuple[tuple[float, float], ...]


# Mess, Platinum 8480+ over UPI, reads only. Intel MLC, Platinum 8360Y: only the two ends of the curve.
MEASURED = {
    "spr": RealLink(194.3, 126.4, ((0.0, 1.0), (0.33, 1.054), (0.636, 1.118), (0.903, 1.24), (0.953, 1.793))),
    "icx": RealLink(142.7, 55.7, ()),
}
READERS = {"icx": (1, 2, 4, 6, 8, 12, 16), "spr": (1, 4, 8, 16, 24, 32, 56)}


def links(quick: bool) -> list[Point]:
    """Readers of the other socket's memory, from one to all cores."""
    return [stream(plat, "none", n) for plat, counts in READERS.items() for n in counts]


def interpolated(curve: tuple[tuple[float, float], ...], x: float) -> float | None:
    """The curve's value at x; None beyond its ends."""
    for (x0, y0), (x1, y1) in zip(curve, curve[1:]):
        if x0 <= x <= x1:
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0)
    return None


def beside_measured(rows: Rows) -> list[dict[str, float | None]]:
    """Each row's throughput as a share of its platform's maximum, with the latency of the real machine at that share."""
    most = {
        plat: max((r["stream_gbps"] or 0.0 for r in rows if r["platform"] == plat), default=0.0) for plat in MEASURED
    }
    out: list[dict[str, float | None]] = []
    for r in rows:
        real, top = MEASURED[r["platform"]], most[r["platform"]]
        share = r["stream_gbps"] / top if top and r.get("stream_gbps") is not None else None
        over = None if share is None else interpolated(real.curve, share)
        out.append(
            {
                "of_most": share,
                "measured_gbps": 8 * real.most_gbs,
                "measured_ns": None if over is None else over * real.idle_ns,
            }
        )
    return out


# Latency from the allocation of the line fill buffer to the data, which includes the look-ups of L1 and L2.
LATENCY = {"access_ns": lambda row: row.get("c2m_read_lat_ns")}

STUDIES: list[Study] = [
    study(
        "tab1",
        "Rates of links",
        tab1,
        ("link_raw_gbs",),
        derived={"link_raw_gbs": raw_gbs},
        derived_units={"link_raw_gbs": "GB/s"},
    ),
    study("fig7", "Latency of a line by place and state", fig7, ("access_ns", "speculative_reads"), derived={}),
    study("fig8", "Ping-pong over two registers, by layout", fig8, ("pingpong_ns", "remote_requests"), derived={}),
    study("fig9", "Streams between sockets", fig9, ("stream_gbps",), derived={}),
    study("fig21a", "Latency and the uncore clock of the NIC's socket", fig21a, ("rtt_ns", "access_ns"), then=slowed),
    study("fig21b", "Throughput and the uncore clock of the NIC's socket", fig21b, ("gbps", "stream_gbps")),
    study("cxl", "A link of CXL's latency and bandwidth", cxl, ("mpps", "gbps", "rtt_ns", *REMOTE)),
    study(
        "links",
        "Remote reads beside real machines",
        links,
        ("stream_gbps", "access_ns"),
        derived=LATENCY,
        across=beside_measured,
        derived_units={"of_most": "fraction", "measured_gbps": "Gb/s", "measured_ns": "ns"},
    ),
]
