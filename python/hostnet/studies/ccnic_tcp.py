"""An echo server over TCP as a service (CC-NIC, Table 2 and section 5.7), over threads of the fast path.

``cx6`` uses the ConnectX-6 directly; ``ccnic-overlay`` reaches the ConnectX-6 through CC-NIC and 16 threads of the
other socket. One core runs the server.
``sockets`` is the paper's setting, in which the server's socket calls reach TAS; ``low_level`` uses TAS's own calls,
for comparison.
"""

from __future__ import annotations

from typing import Any

from . import axes
from .ccnic import study
from .grid import also, by_length, on

BASES = {"ccnic-overlay": "tcp-echo-overlay", "cx6": "tcp-echo-cx6"}
# Threads of the fast path; the application has the remaining core of a socket's 16.
THREADS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15)
CALLS = ("sockets", "low_level")
# Requests that warm up and that are measured: the 64 requests of each connection complete five times before the
# measurement.
WARM, MEASURED = 30_000, 40_000


# Threads of the fast path, until the server's thread or the NIC is the limit.
OVER_THREADS = (
    axes.SYSTEM.among({system: on(base) for system, base in BASES.items()})
    * axes.VARIANT.at("tenant.0.app.calls")(*CALLS)
    * axes.COUNT.said("threads of the fast path", "threads").at("tenant.0.cores", form=lambda n: n + 1)(*THREADS)
    * also(
        {
            "run.warmup_requests": by_length(WARM, WARM // 4),
            "run.requests": by_length(MEASURED, MEASURED // 4),
        }
    )
)


def tcp_mops(row: dict[str, Any]) -> float | None:
    return row.get("throughput_mrps")


STUDIES = [
    study(
        "tab2-tcp",
        "TCP echo server, over threads of TAS's fast path",
        OVER_THREADS,
        ("tcp_mops", "tcp_rpcs_per_segment", "rtt_mean_us"),
        derived={"tcp_mops": tcp_mops},
        derived_units={"tcp_mops": "Mops"},
    )
]
