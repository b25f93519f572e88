"""An echo server over TCP as a service (CC-NIC, Table 2 and section 5.7), over threads of the fast path.

``cx6`` uses the ConnectX-6 directly; ``ccnic-overlay`` reaches the ConnectX-6 through CC-NIC and 16 threads of the
other socket. One core runs the server.
``sockets`` is the paper's setting, in which the server's socket calls reach TAS; ``low_level`` uses TAS's own calls,
for comparison.
"""

from __future__ import annotations

from typing import Any

from . import Point
from .ccnic import study

BASES = {"ccnic-overlay": "tcp-echo-overlay", "cx6": "tcp-echo-cx6"}
# Threads of the fast path; the application has the remaining core of a socket's 16.
THREADS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15)
CALLS = ("sockets", "low_level")
# Requests that warm up and that are measured: the 64 requests of each connection complete five times before the
# measurement.
WARM, MEASURED = 30_000, 40_000


def tab2_tcp(quick: bool) -> list[Point]:
    """Number of threads of the fast path, up to the limit of the server's thread or of the NIC."""
    part = 4 if quick else 1
    return [
        Point(
            BASES[system],
            {"system": system, "variant": calls, "n": n},
            {
                "tenant.0.cores": n + 1,
                "tenant.0.app.calls": calls,
                "run.warmup_requests": WARM // part,
                "run.requests": MEASURED // part,
            },
        )
        for system in BASES
        for calls in CALLS
        for n in THREADS
    ]


def tcp_mops(row: dict[str, Any]) -> float | None:
    return row.get("throughput_mrps")


STUDIES = [
    study(
        "tab2-tcp",
        "TCP echo server, over threads of TAS's fast path",
        tab2_tcp,
        ("tcp_mops", "tcp_rpcs_per_segment", "rtt_mean_us"),
        derived={"tcp_mops": tcp_mops},
        derived_units={"tcp_mops": "Mops"},
    )
]
