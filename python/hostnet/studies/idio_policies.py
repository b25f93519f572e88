"""Placement policies side by side: DDIO, Sweeper, IDIO, and IDIO with Sweeper's transmit path.

No paper has this figure. Four applications run on eight cores of the Skylake-like server, and a ninth core has its data
in the LLC. Loads are shares of the rate that each application sustains under DDIO.
"""

from __future__ import annotations

from typing import Any

from . import Point, Rows, Study

BASE = "policies"
CORES = 8

SYSTEMS: dict[str, dict[str, Any]] = {
    "ddio": {"policy": "ddio", "ways": 2},
    "sweeper": {"policy": "ddio", "ways": 2, "sweep_rx": True, "sweep_tx": "nic"},
    "idio": {"policy": "idio", "mode": "dynamic", "ways": 2},
    "idio-tx": {"policy": "idio", "mode": "dynamic", "ways": 2, "sweep_tx": "nic"},
}
APPS: dict[str, dict[str, Any]] = {
    "kvs": {
        "kind": "mica",
        "item_size": "1 KiB",
        "get_fraction": 0.05,
        "pairs": 800_000,
        "buckets": 400_000,
        "log_size": "256 MiB",
        "zipf": 0.99,
        "update": "in_place",
    },
    "l3fwd": {"kind": "l3fwd", "rules": 16_384},
    "touchdrop": {"kind": "touchdrop"},
    "l2fwd": {"kind": "l2fwd"},
}
LOADS = (0.25, 0.5, 0.75, 0.95, 1.1)
QUICK_REQUESTS = 16_384


def point(quick: bool, app: str, system: str, share: float | None, rate_mrps: float | None) -> Point:
    """An application under a policy: at `rate_mrps`, or at the highest rate that the application sustains when
    `rate_mrps` is None."""
    changes: dict[str, Any] = {"tenant.0.app": APPS[app], "placement": SYSTEMS[system]}
    if rate_mrps is not None:
        changes |= {"run.load": "fixed", "run.loss": None, "traffic.rate": f"{round(rate_mrps * 1e6)} pps"}
    if quick:
        changes["run.requests"] = QUICK_REQUESTS
    return Point(BASE, {"app": app, "system": system, "n": CORES, "share": share, "rate_mrps": rate_mrps}, changes)


def capacities(quick: bool) -> list[Point]:
    return [point(quick, app, "ddio", None, None) for app in APPS]


def at_shares(rows: Rows, quick: bool) -> list[Point]:
    """Every policy at the same rates: shares of the application's capacity under DDIO."""
    peak = {r["app"]: float(r["throughput_mrps"]) for r in rows}
    return [
        point(quick, app, system, share, round(share * peak[app], 4))
        for app in APPS
        for share in LOADS
        for system in SYSTEMS
    ]


STUDIES = [
    Study(
        "idio",
        "policies",
        "Four policies side by side",
        capacities,
        ("throughput_mrps", "lat_p99_us", "mem_bw_gbs", "acc_total", "t1_cpi"),
        then=at_shares,
        derived_units={"share": "of DDIO's capacity", "rate_mrps": "Mrps"},
    ),
]
