"""The studies of applications with storage, and of the swept settings, of "Understanding the Host Network"
(SIGCOMM'24).

Redis and GAP kernels on either platform (section 2.1, appendix B), with DDIO and prefetchers on and off; and the
quadrants of section 2.2 with each setting. `app` names the application, `ddio` and `prefetch` are `on` or `off`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from . import Rows, Study, axes
from . import hostnetwork as quadrants
from .grid import Grid, also, by_length, on, sum_of

BASE = "redis"

# Applications, and the time after which their results settle within 2 % over seeds.
APPS: dict[str, tuple[dict[str, Any], str, str]] = {
    "redis-read": ({"kind": "redis", "command": "get", "keys": 1_000_000, "value": "1 KiB"}, "3 ms", "750 us"),
    "redis-write": ({"kind": "redis", "command": "set", "keys": 1_000_000, "value": "1 KiB"}, "3 ms", "750 us"),
    "gapbs-pr": ({"kind": "gapbs", "kernel": "pagerank", "scale": 25}, "500 us", "150 us"),
    "gapbs-bc": ({"kind": "gapbs", "kernel": "betweenness", "scale": 25}, "2 ms", "750 us"),
}

# The storage of each platform (Table 1), and the cores that its figures sweep.
STORAGE = {
    "cascadelake": {"peripheral.0.count": 4, "peripheral.0.lanes": 4, "peripheral.0.cores": 2},
    "icelake": {"peripheral.0.count": 8, "peripheral.0.lanes": 2, "peripheral.0.cores": 4},
}
CORES = {
    ("cascadelake", "redis"): (1, 2, 3),
    ("cascadelake", "gapbs"): (1, 2, 3, 4, 5, 6),
    ("icelake", "redis"): tuple(range(1, 15)),
    ("icelake", "gapbs"): (1, 4, 8, 12, 16, 20, 24, 28),
}


# --- Axes -----------------------------------------------------------------------------------------------------------

DDIO = axes.DDIO.among({"on": {"placement": {"policy": "ddio", "ways": 2}}, "off": {"placement": {"policy": "dma"}}})
PREFETCH = axes.PREFETCH.among({x: {"override": {"core": {"prefetch": {"enabled": x == "on"}}}} for x in ("on", "off")})
RUN, P2M, COUNT = axes.RUN, axes.P2M.at("peripheral.0.op", form="p2m_{}"), quadrants.COUNT
NO_APP = axes.APP(None) * also({"tenant": None, "run.time": by_length(*APPS["redis-read"][1:])})
APP = axes.APP.among(
    {app: {"tenant.0.app": table, "run.time": by_length(*windows)} for app, (table, *windows) in APPS.items()}
)


def colocation(platform: str, apps: Iterable[str], p2m: str, ddio: Iterable[str], prefetch: Iterable[str]) -> Grid:
    """Applications and storage, each alone and together. Alone, applications do not feel DDIO."""
    storage = P2M(p2m) * also(STORAGE[platform]) * DDIO(*ddio)
    none = axes.P2M(p2m) * also({"peripheral": None}) * DDIO("off")
    beside = sum_of(APP(app) * COUNT(*CORES[platform, app.split("-")[0]]) for app in apps)
    return (
        PREFETCH(*prefetch)
        * (RUN("iso-p2m") * NO_APP * COUNT(0) * storage + beside * (RUN("iso-c2m") * none + RUN("colo") * storage))
        * also({"name": "hostnetwork", "platform": platform})
    )


def compared(rows: Rows) -> list[dict[str, Any]]:
    """Ratio of isolated to colocated throughput of cores and device; GAPBS's time is the inverse of its throughput."""
    cores = {(r["app"], r["n"], r["prefetch"]): r["t0_mops"] for r in rows if r["run"] == "iso-c2m"}
    device = {(r["ddio"], r["prefetch"]): r["p2m_gbs"] for r in rows if r["run"] == "iso-p2m"}
    out: list[dict[str, Any]] = []
    for r in rows:
        together = r["run"] == "colo"
        out.append(
            {
                "degr_c2m": cores[r["app"], r["n"], r["prefetch"]] / r["t0_mops"] if together else None,
                "degr_p2m": device[r["ddio"], r["prefetch"]] / r["p2m_gbs"] if together else None,
            }
        )
    return out


METRICS = ("degr_c2m", "degr_p2m", "t0_mops", "p2m_gbs", "t0_llc_miss_ratio", *quadrants.BANDWIDTH)
UNITS = {"degr_c2m": "x", "degr_p2m": "x"}
READ, WRITE = ("redis-read", "gapbs-pr"), ("redis-write", "gapbs-bc")
BOTH = ("on", "off")


def _study(
    figure: str,
    title: str,
    platform: str,
    apps: tuple[str, ...],
    p2m: str,
    ddio: tuple[str, ...],
    prefetch: tuple[str, ...],
) -> Study:
    return Study(
        "hostnetwork",
        figure,
        title,
        colocation(platform, apps, p2m, ddio, prefetch),
        METRICS,
        base=BASE,
        derived_units=UNITS,
        across=compared,
    )


# --- Knobs on the quadrants -----------------------------------------------------------------------------------------


def with_knobs(q: int) -> Grid:
    """A quadrant of Fig. 3 with each setting of both knobs. Cores alone do not feel DDIO."""
    c2m, p2m = quadrants.QUADRANTS[q]
    device = RUN("iso-p2m") * quadrants.C2M(None) * quadrants.P2M(p2m) * COUNT(0) * DDIO
    either = RUN("iso-c2m") * quadrants.P2M(None) * DDIO("off") + RUN("colo") * quadrants.P2M(p2m) * DDIO
    return quadrants.QUADRANT(q) * PREFETCH * (device + COUNT(*quadrants.CORES) * quadrants.C2M(c2m) * either)


# The windows are shorter: 200 points, none for a root cause.
KNOBS = (
    sum_of(map(with_knobs, quadrants.QUADRANTS))
    * quadrants.WINDOW
    * also({"run.time": by_length("2 ms", "500 us")})
    * on(quadrants.BASE)
)


def knobs_compared(rows: Rows) -> list[dict[str, Any]]:
    """Degradation and regime of each point, compared at its own settings."""
    return quadrants.degradations(rows, ("c2m", "n", "prefetch"), ("p2m", "ddio", "prefetch"))


STUDIES = [
    _study("fig1", "Redis and PageRank beside storage reads, Ice Lake", "icelake", READ, "write", ("on",), ("on",)),
    _study(
        "fig2", "Redis and PageRank beside storage reads, Cascade Lake", "cascadelake", READ, "write", BOTH, ("off",)
    ),
    _study("prefetch", "Prefetchers on and off, Ice Lake", "icelake", READ, "write", ("on",), BOTH),
    _study("fig15", "Redis-Write and betweenness beside storage reads", "cascadelake", WRITE, "write", BOTH, ("off",)),
    _study("fig16", "Redis and PageRank beside storage writes", "cascadelake", READ, "read", BOTH, ("off",)),
    _study("fig17", "Redis-Write and betweenness beside storage writes", "cascadelake", WRITE, "read", BOTH, ("off",)),
    Study(
        "hostnetwork",
        "fig3-knobs",
        "Four quadrants with prefetcher and DDIO on and off",
        KNOBS,
        quadrants.DEGRADATION,
        derived_units=quadrants.COMPARED_UNITS,
        across=knobs_compared,
    ),
]
