"""Future work of "Understanding the Host Network" (section 7): other memories, more I/O controllers, and
isolation at the home agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import Rows, Study
from .grid import Grid, also, sum_of
from .hostnetwork import BASE, CASE, COMPARED_UNITS, QUADRANT, RUN, WINDOW, alone, beside, colocation, degradations
from .hostnetwork_net import NET_ALONE, TCP_CORES, together

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


def controllers(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """I/O controllers of a point; cores alone have none."""
    return {} if row["run"] == "iso-c2m" else {"override.iio.count": CONTROLLERS[row["case"]]}


FUTURE_MEMORY = sum_of(
    CASE(case) * (colocation(1, cores) + colocation(3, cores)) * also({"platform": platform})
    for case, (platform, cores) in MEMORIES.items()
) * beside(BASE)
ISOLATION = (
    CASE.among({case: {"override.caches.llc.write_order": order} for case, order in ORDERS.items()})
    * colocation(3)
    * beside(BASE)
)
TWO_IIOS = (
    CASE.among({case: {} for case in CONTROLLERS}) * (colocation(1) + colocation(3)) * also(controllers) * beside(BASE)
)
HOSTCC = QUADRANT(3) * sum_of(
    CASE(case)
    * (
        alone("readwrite", *TCP_CORES) * WINDOW
        + (RUN("iso-p2m") * NET_ALONE + together("readwrite", *TCP_CORES)) * also(told)
    )
    for case, told in RESPONSES.items()
)


def within_cases(rows: Rows) -> list[dict[str, Any]]:
    """Degradations, each relative to the same host with one kind of traffic."""
    return degradations(rows, ("case", "c2m", "n"), ("case", "p2m"))


def _study(figure: str, title: str, grid: Grid, *more: str) -> Study:
    return Study(
        "hostnetwork",
        figure,
        title,
        grid,
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
        base=BASE,
        derived_units=COMPARED_UNITS,
        across=within_cases,
    )


STUDIES = [
    _study("future-memory", "Quadrants 1 and 3 on DDR4, DDR5 and HBM", FUTURE_MEMORY),
    _study("future-iios", "Quadrants 1 and 3 with the devices at one and at two IIOs", TWO_IIOS),
    _study(
        "future-hostcc",
        "DCTCP beside C2M-ReadWrite: a host that tells its congestion",
        HOSTCC,
        "net_gbs",
        "packet_loss",
        "dctcp_alpha",
        "iio_write_occ",
        "host_level",
    ),
    _study("future-isolation", "Quadrant 3: cores and devices take turns at the home agent", ISOLATION),
]
