"""Future work of "Understanding the Host Network" (section 7): other memories, more I/O controllers, and
isolation at the home agent."""

from __future__ import annotations

from typing import Any

from . import Point, Rows, Study
from .hostnetwork import colocation, degradations
from .hostnetwork_net import TCP_CORES, tcp_point

# Number of cores that run with the same four SSDs, at the highest PCIe generation of each host's root ports.
MEMORIES = {
    "DDR4-2933, 2 channels": ("cascadelake", (1, 2, 4, 6)),
    "DDR5-4800, 2 channels": ("sapphirerapids", (1, 2, 4, 6, 10, 12)),
    "HBM2E, 8 channels": ("xeonmax", (1, 2, 4, 6, 10, 12)),
}
ORDERS = {"by arrival": "arrival", "in turns": "round_robin"}
# hostCC (SIGCOMM'23) considers a host congested from 70 of its 93 write entries on; its target for the network is
# 80 Gb/s.
MARKS = {"peripheral.0.host_mark": 70}
RESPONSE = {"peripheral.0.host_response": {"target": "80 Gbps", "occupancy": 70}}
RESPONSES: dict[str, dict[str, Any]] = {
    "loss alone": {},
    "hostCC marks": MARKS,
    "hostCC response": RESPONSE,
    "both": MARKS | RESPONSE,
}
CONTROLLERS = {"one IIO": 1, "two IIOs": 2}


def memories(quick: bool) -> list[Point]:
    return [
        p
        for case, (platform, cores) in MEMORIES.items()
        for q in (1, 3)
        for p in colocation(quick, q, cores, columns={"case": case}, changes={"platform": platform})
    ]


def isolation(quick: bool) -> list[Point]:
    return [
        p
        for case, order in ORDERS.items()
        for p in colocation(quick, 3, columns={"case": case}, changes={"override.caches.llc.write_order": order})
    ]


def controllers(quick: bool) -> list[Point]:
    return [
        p
        for case, count in CONTROLLERS.items()
        for q in (1, 3)
        for p in colocation(quick, q, columns={"case": case}, changes={"override.iio.count": count})
    ]


def responses(quick: bool) -> list[Point]:
    out = []
    for case, told in RESPONSES.items():
        out += [tcp_point(quick, "iso-c2m", "readwrite", n, columns={"case": case, "quadrant": 3}) for n in TCP_CORES]
        out += [
            tcp_point(quick, run, c2m, n, columns={"case": case, "quadrant": 3}, changes=told)
            for run, c2m, cores in (("iso-p2m", None, (0,)), ("colo", "readwrite", TCP_CORES))
            for n in cores
        ]
    return out


def within_cases(rows: Rows) -> list[dict[str, Any]]:
    """Degradations, each relative to the same host with one kind of traffic."""
    return degradations(rows, ("case", "c2m", "n"), ("case", "p2m"))


def _study(figure: str, title: str, points: Any, *more: str) -> Study:
    return Study(
        "hostnetwork",
        figure,
        title,
        points,
        (
            *more,
            "degr_c2m",
            "degr_p2m",
            "regime",
            "c2m_gbs",
            "p2m_gbs",
            "mem_bw_gbs",
            "mem_peak_gbs",
            "wpq_full_frac",
            "iio_write_lat_ns",
            "cha_adm_c2m_ns",
            "cha_adm_p2m_ns",
        ),
        derived_units={"n": "cores", "degr_c2m": "x", "degr_p2m": "x"},
        across=within_cases,
    )


STUDIES = [
    _study("future-memory", "Quadrants 1 and 3 on DDR4, DDR5 and HBM", memories),
    _study("future-iios", "Quadrants 1 and 3 with the devices at one and at two IIOs", controllers),
    _study(
        "future-hostcc",
        "DCTCP beside C2M-ReadWrite: a host that tells its congestion",
        responses,
        "net_gbs",
        "packet_loss",
        "dctcp_alpha",
        "iio_write_occ",
        "host_level",
    ),
    _study("future-isolation", "Quadrant 3: cores and devices take turns at the home agent", isolation),
]
