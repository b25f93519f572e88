"""A key-value store with CliqueMap's object sizes (CC-NIC, Fig. 19 and Table 2), over server threads.

``cx6`` uses the ConnectX-6 directly. The other variants reach the ConnectX-6 through an overlay on the other socket.
The overlay is CC-NIC with all of that socket's cores, CC-NIC with as many threads as the server has (``upi-1to1``), or
the interface of a PCIe NIC over coherent memory with all of the socket's cores (``unopt-overlay``), where only the host
manages buffers. A socket has 16 cores of two hardware threads. Each server thread has a queue pair, and each queue pair
has a thread on the NIC's socket: beyond 16 server threads an overlay uses second hardware threads as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import Point
from .ccnic import study

DIRECT = "kv-cx6"
THREADS = (1, 2, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32)
CORES = 16
# Objects below 100 B, by workload.
SIZES = {"ads": 0.61, "geo": 0.13}
# Outstanding requests of each thread, and requests of each thread that warm up and that are measured.
DEEP, WARM, EACH = 256, 4000, 4000
# The scenario of each overlay.
OVERLAYS = {"ccnic-overlay": "kv-overlay", "upi-1to1": "kv-overlay", "unopt-overlay": "kv-overlay-unoptimised"}


def point(quick: bool, system: str, sizes: str, n: int) -> Point:
    part = 4 if quick else 1
    changes: dict[str, Any] = {
        "tenant.0.cores": n,
        "tenant.0.app.below_100": SIZES[sizes],
        "traffic.outstanding": DEEP * n,
        "run.warmup_requests": WARM * n // part,
        "run.requests": EACH * n // part,
    }
    if system == "upi-1to1":
        changes["ccnic.nic_threads"] = n
    elif system in OVERLAYS:
        changes["ccnic.nic_threads"] = max(n, CORES)
    return Point(OVERLAYS.get(system, DIRECT), {"system": system, "n": n}, changes)


def fig19(sizes: str) -> Callable[[bool], list[Point]]:
    """Number of server threads, up to the limit of the NIC or of the socket's cores."""
    return lambda quick: [point(quick, system, sizes, n) for system in ("cx6", *OVERLAYS) for n in THREADS]


def kv_mops(row: dict[str, Any]) -> float | None:
    return row.get("throughput_mrps")


STUDIES = [
    study(
        f"fig19-{name}",
        f"Key-value store with the sizes of {name.capitalize()}, over server threads",
        fig19(name),
        ("kv_mops", "service_mean_us", "tx_payload_reads_per_packet"),
        derived={"kv_mops": kv_mops},
        derived_units={"kv_mops": "Mops"},
    )
    for name in SIZES
]
