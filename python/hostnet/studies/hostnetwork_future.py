"""What "Understanding the Host Network" names as future work (section 7): other memories, and isolation at the home agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import Point, Rows, Study
from .hostnetwork import CORES, QUADRANTS, degradations, point

# Cores beside a device of the same four SSDs, at the highest generation that each host's root ports have.
MEMORIES = {
    "DDR4-2933, 2 channels": ("cascadelake", (1, 2, 4, 6)),
    "DDR5-4800, 2 channels": ("sapphirerapids", (1, 2, 4, 6, 10, 14)),
    "HBM2E, 8 channels": ("xeonmax", (1, 2, 4, 6, 10, 14)),
}
ORDERS = {"by arrival": "arrival", "in turns": "turns"}


def _quadrant(quick: bool, q: int, cores: tuple[int, ...], case: str, changes: Mapping[str, Any]) -> list[Point]:
    c2m, p2m = QUADRANTS[q]
    about = {"columns": {"quadrant": q, "case": case}, "changes": changes}
    points = [point(quick, "iso-p2m", None, p2m, 0, **about)]
    for n in cores:
        points.append(point(quick, "iso-c2m", c2m, None, n, **about))
        points.append(point(quick, "colo", c2m, p2m, n, **about))
    return points


def memories(quick: bool) -> list[Point]:
    return [p for case, (platform, cores) in MEMORIES.items() for q in (1, 3)
            for p in _quadrant(quick, q, cores, case, {"platform": platform})]


def isolation(quick: bool) -> list[Point]:
    return [p for case, order in ORDERS.items()
            for p in _quadrant(quick, 3, CORES, case, {"override.caches.llc.write_order": order})]


def within_cases(rows: Rows) -> list[dict[str, Any]]:
    """Degradations, each against the same host alone."""
    out: list[dict[str, Any]] = [{} for _ in rows]
    for case in dict.fromkeys((r["case"], r["quadrant"]) for r in rows):
        at = [i for i, r in enumerate(rows) if (r["case"], r["quadrant"]) == case]
        for i, columns in zip(at, degradations([rows[i] for i in at])):
            out[i] = columns
    return out


def _study(figure: str, title: str, points: Any) -> Study:
    return Study("hostnetwork", figure, title, points,
                 ("degr_c2m", "degr_p2m", "regime", "c2m_gbs", "p2m_gbs", "mem_bw_gbs", "mem_peak_gbs", "wpq_full_frac", "iio_write_lat_ns",
                  "cha_adm_c2m_ns", "cha_adm_p2m_ns"),
                 derived_units={"n": "cores", "degr_c2m": "x", "degr_p2m": "x"}, across=within_cases)


STUDIES = [
    _study("future-memory", "Quadrants 1 and 3 on DDR4, DDR5 and HBM", memories),
    _study("future-isolation", "Quadrant 3: cores and devices take turns at the home agent", isolation),
]
