"""Placement policies side by side: DDIO, Sweeper, IDIO, and IDIO with Sweeper's transmit path.

No paper has this figure. Four applications run on eight cores of the Skylake-like server, and a ninth core has its data
in the LLC. Loads are shares of the rate that each application sustains under DDIO.
"""

from __future__ import annotations

from typing import Any

from . import Rows, Study, axes
from .grid import Grid, also, sum_of, when_quick

BASE = "policies"
CORES = 8

SYSTEM = axes.SYSTEM.among(
    {
        "ddio": {"placement": {"policy": "ddio", "ways": 2}},
        "sweeper": {"placement": {"policy": "ddio", "ways": 2, "sweep_rx": True, "sweep_tx": "nic"}},
        "idio": {"placement": {"policy": "idio", "mode": "dynamic", "ways": 2}},
        "idio-tx": {"placement": {"policy": "idio", "mode": "dynamic", "ways": 2, "sweep_tx": "nic"}},
    }
)
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
APP = axes.APP.among({app: {"tenant.0.app": table} for app, table in APPS.items()})
SHARE = axes.SHARE.said("offered rate over what the application sustains under DDIO")
LOADS = (0.25, 0.5, 0.75, 0.95, 1.1)
FEWER = when_quick({"run.requests": 16_384})


def at_shares(rows: Rows, quick: bool) -> Grid:
    """Every policy at the same rates: shares of the application's capacity under DDIO."""
    peak = {r["app"]: float(r["throughput_mrps"]) for r in rows}
    rate = axes.RATE_MRPS.at("traffic.rate", form=lambda mrps: f"{round(mrps * 1e6)} pps")
    return (
        sum_of(APP(app) * SHARE(share) * rate(round(share * peak[app], 4)) for app in APPS for share in LOADS)
        * SYSTEM
        * axes.COUNT(CORES)
        * also({"run.load": "fixed", "run.loss": None})
        * FEWER
    )


STUDIES = [
    Study(
        "idio",
        "policies",
        "Four policies side by side",
        APP * SYSTEM("ddio") * axes.COUNT(CORES) * SHARE(None) * axes.RATE_MRPS(None) * FEWER,
        ("throughput_mrps", "lat_p99_us", "mem_bw_gbs", "acc_total", "t1_cpi"),
        base=BASE,
        then=at_shares,
    ),
]
