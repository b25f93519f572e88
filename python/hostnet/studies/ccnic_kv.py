"""A key-value store with CliqueMap's object sizes (CC-NIC, Fig. 19 and Table 2), over server threads.

``cx6`` uses the ConnectX-6 directly. The other variants reach the ConnectX-6 through an overlay on the other socket.
The overlay is CC-NIC with all of that socket's cores, CC-NIC with as many threads as the server has (``upi-1to1``), or
the interface of a PCIe NIC over coherent memory with all of the socket's cores (``unopt-overlay``), where only the host
manages buffers. A socket has 16 cores of two hardware threads. Each server thread has a queue pair, and each queue pair
has a thread on the NIC's socket: beyond 16 server threads an overlay uses second hardware threads as well.
"""

from __future__ import annotations

from typing import Any

from . import axes
from .ccnic import COUNT, study
from .grid import Grid, Row, also, on

DIRECT = "kv-cx6"
THREADS = (1, 2, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32)
CORES = 16
# Objects below 100 B, by workload.
SIZES = {"ads": 0.61, "geo": 0.13}
# Outstanding requests of each thread, and requests of each thread that warm up a quick study and that are measured. In a whole
# study the caches fill in functional mode, and the warm-up ends when caches and traffic are steady.
DEEP, WARM, EACH = 256, 4000, 4000
# The scenario of each overlay.
OVERLAYS = {"ccnic-overlay": "kv-overlay", "upi-1to1": "kv-overlay", "unopt-overlay": "kv-overlay-unoptimised"}


def part(row: Row) -> int:
    """Requests of each thread in a whole study over those in this one."""
    return 4 if row["quick"] else 1


# Threads beside the NIC: as many as the server has, or all of that socket's cores.
THREADS_OF_NIC = {"upi-1to1": lambda row: row["n"]} | dict.fromkeys(
    ("ccnic-overlay", "unopt-overlay"), lambda row: max(row["n"], CORES)
)
SYSTEM = axes.SYSTEM.among(
    {"cx6": on(DIRECT)}
    | {name: on(base) * also({"ccnic.nic_threads": THREADS_OF_NIC[name]}) for name, base in OVERLAYS.items()}
)
SERVED = also(
    {
        "traffic.outstanding": lambda row: DEEP * row["n"],
        "run.warmup_requests": lambda row: WARM * row["n"] // part(row) if row["quick"] else None,
        "run.requests": lambda row: EACH * row["n"] // part(row),
    }
)


def over_threads(sizes: str) -> Grid:
    """Server threads, until the NIC or the socket's cores are the limit."""
    return SYSTEM * COUNT(*THREADS) * SERVED * also({"tenant.0.app.below_100": SIZES[sizes]})


def kv_mops(row: dict[str, Any]) -> float | None:
    return row.get("throughput_mrps")


STUDIES = [
    study(
        f"fig19-{name}",
        f"Key-value store with the sizes of {name.capitalize()}, over server threads",
        over_threads(name),
        ("kv_mops", "service_mean_us", "tx_payload_reads_per_packet"),
        derived={"kv_mops": kv_mops},
        derived_units={"kv_mops": "Mops"},
    )
    for name in SIZES
]
