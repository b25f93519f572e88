"""What "Understanding the Host Network" names as future work (section 7): other memories, more I/O controllers, and
isolation at the home agent."""

from __future__ import annotations

from typing import Any

from . import Point, Rows, Study
from .hostnetwork import colocation, degradations

# Cores beside a device of the same four SSDs, at the highest generation that each host's root ports have.
MEMORIES = {
    "DDR4-2933, 2 channels": ("cascadelake", (1, 2, 4, 6)),
    "DDR5-4800, 2 channels": ("sapphirerapids", (1, 2, 4, 6, 10, 14)),
    "HBM2E, 8 channels": ("xeonmax", (1, 2, 4, 6, 10, 14)),
}
ORDERS = {"by arrival": "arrival", "in turns": "turns"}
CONTROLLERS = {"one IIO": 1, "two IIOs": 2}


def memories(quick: bool) -> list[Point]:
    return [p for case, (platform, cores) in MEMORIES.items() for q in (1, 3)
            for p in colocation(quick, q, cores, columns={"case": case}, changes={"platform": platform})]


def isolation(quick: bool) -> list[Point]:
    return [p for case, order in ORDERS.items()
            for p in colocation(quick, 3, columns={"case": case}, changes={"override.caches.llc.write_order": order})]


def controllers(quick: bool) -> list[Point]:
    return [p for case, count in CONTROLLERS.items() for q in (1, 3)
            for p in colocation(quick, q, columns={"case": case}, changes={"override.iio.count": count})]


def within_cases(rows: Rows) -> list[dict[str, Any]]:
    """Degradations, each against the same host alone."""
    return degradations(rows, ("case", "c2m", "n"), ("case", "p2m"))


def _study(figure: str, title: str, points: Any) -> Study:
    return Study("hostnetwork", figure, title, points,
                 ("degr_c2m", "degr_p2m", "regime", "c2m_gbs", "p2m_gbs", "mem_bw_gbs", "mem_peak_gbs", "wpq_full_frac", "iio_write_lat_ns",
                  "cha_adm_c2m_ns", "cha_adm_p2m_ns"),
                 derived_units={"n": "cores", "degr_c2m": "x", "degr_p2m": "x"}, across=within_cases)


STUDIES = [
    _study("future-memory", "Quadrants 1 and 3 on DDR4, DDR5 and HBM", memories),
    _study("future-iios", "Quadrants 1 and 3 with the devices at one and at two IIOs", controllers),
    _study("future-isolation", "Quadrant 3: cores and devices take turns at the home agent", isolation),
]
