"""The studies of applications with storage, and of the swept settings, of "Understanding the Host Network"
(SIGCOMM'24).

Redis and GAP kernels on either platform (section 2.1, appendix B), with DDIO and prefetchers on and off; and the
quadrants of section 2.2 with each setting. `app` names the application, `ddio` and `prefetch` are `on` or `off`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

from . import Point, Rows, Study
from . import hostnetwork as quadrants

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


def knobs(ddio: str, prefetch: str) -> dict[str, Any]:
    placement = {"policy": "ddio", "ways": 2} if ddio == "on" else {"policy": "dma"}
    return {"placement": placement, "override": {"core": {"prefetch": {"enabled": prefetch == "on"}}}}


def point(quick: bool, platform: str, run: str, app: str | None, p2m: str, n: int, ddio: str, prefetch: str) -> Point:
    """One run; equal arguments give equal specs, so figures share results."""
    tables, *windows = APPS[app or "redis-read"]
    changes: dict[str, Any] = {
        "name": "hostnetwork",
        "platform": platform,
        "run.time": windows[quick],
        **knobs(ddio, prefetch),
    }
    changes |= {"tenant.0.cores": n, "tenant.0.app": tables} if app else {"tenant": None}
    changes |= {"peripheral": None} if run == "iso-c2m" else {**STORAGE[platform], "peripheral.0.op": f"p2m_{p2m}"}
    return Point(BASE, {"app": app, "run": run, "p2m": p2m, "n": n, "ddio": ddio, "prefetch": prefetch}, changes)


def colocation(
    quick: bool, platform: str, apps: Iterable[str], p2m: str, ddio: Iterable[str], prefetch: Iterable[str]
) -> list[Point]:
    """Applications and storage, each alone and both together. Alone, applications do not depend on DDIO."""
    ddio, out = tuple(ddio), []
    for pf in prefetch:
        out += [point(quick, platform, "iso-p2m", None, p2m, 0, d, pf) for d in ddio]
        for app in apps:
            for n in CORES[platform, app.split("-")[0]]:
                out.append(point(quick, platform, "iso-c2m", app, p2m, n, "off", pf))
                out += [point(quick, platform, "colo", app, p2m, n, d, pf) for d in ddio]
    return out


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
UNITS = {"n": "cores", "degr_c2m": "x", "degr_p2m": "x"}
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
        lambda quick: colocation(quick, platform, apps, p2m, ddio, prefetch),
        METRICS,
        derived_units=UNITS,
        across=compared,
    )


# --- Knobs on the quadrants -----------------------------------------------------------------------------------------


def knob_points(quick: bool) -> list[Point]:
    """The quadrants of Fig. 3 with each combination of both settings. The windows are shorter: 200 points, none for a
    root cause."""
    window = {"run.time": quadrants.QUICK_TIME if quick else "2 ms"}

    def at(q: int, run: str, n: int, ddio: str, prefetch: str) -> Point:
        c2m, p2m = quadrants.QUADRANTS[q]
        return quadrants.point(
            quick,
            run,
            None if run == "iso-p2m" else c2m,
            None if run == "iso-c2m" else p2m,
            n,
            columns={"quadrant": q, "ddio": ddio, "prefetch": prefetch},
            changes={**window, **knobs(ddio, prefetch)},
        )

    out = []
    for q, prefetch in product(quadrants.QUADRANTS, BOTH):
        out += [at(q, "iso-p2m", 0, ddio, prefetch) for ddio in BOTH]
        for n in quadrants.CORES:
            out.append(at(q, "iso-c2m", n, "off", prefetch))  # cores alone do not depend on DDIO
            out += [at(q, "colo", n, ddio, prefetch) for ddio in BOTH]
    return out


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
        knob_points,
        quadrants.DEGRADATION,
        derived_units=UNITS,
        across=knobs_compared,
    ),
]
