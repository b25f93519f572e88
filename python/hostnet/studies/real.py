"""Settings of measurements on real machines.

``ddio``: a Xeon Gold 6140 with a ConnectX-5 forwards at layer 2 (public measurements of Farshin et al., "Reexamining Direct
Cache Access", ATC'20). Swept there: DDIO ways, descriptors, frame size, offered rate, cores, uncore clock, work per packet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import Point, Study

BASE = "ddio-bench"

# Bits per second that their generator offered by frame size (without checksum), preamble and gap included; it is the limit with
# short frames.
OFFERED_GBPS = {256: 26.75, 512: 90.4, 1024: 99.35, 1500: 99.4}
BESIDE = 24  # bytes of a frame on the wire beside those: checksum, preamble, gap
# Their replay's rate setting, in Gb/s a unit: 200 is 9.75.
REPLAY_GBPS = 9.75 / 200
# A call of a random-number generator: a multiplication, three other operations and the loop; assumed.
CALL_INSTRUCTIONS = 6

QUICK_REQUESTS, REQUESTS = 20_000, 200_000


def point(quick: bool, experiment: str, *, frame: int = 1500, descriptors: int = 4096, ways: int = 2, cores: int = 1,
          gbps: float | None = None, uncore_ghz: float = 2.4, calls: int = 0) -> Point:
    """One setting; equal settings are one simulation."""
    offered = min(gbps or OFFERED_GBPS[frame], OFFERED_GBPS[frame])
    pps = round(offered * 1e9 / (8 * (frame + BESIDE)))
    columns = {"case": experiment, "packet_bytes": frame, "ring": descriptors, "ways": ways, "n": cores, "rate_gbps": offered,
               "uncore_ghz": uncore_ghz, "calls": calls, "load": "fixed"}
    changes: dict[str, Any] = {
        "placement.ways": ways, "tenant.0.cores": cores, "traffic.packet": f"{frame + 4} B", "traffic.rate": f"{pps} pps",
        "peripheral.0.rings.receive": descriptors, "run.requests": QUICK_REQUESTS if quick else REQUESTS,
    }
    if uncore_ghz != 2.4:
        changes["override.caches.uncore_clock"] = f"{uncore_ghz} GHz"
    if calls:
        changes["tenant.0.app.instructions"] = 20 + CALL_INSTRUCTIONS * calls
    return Point(BASE, columns, changes)


def ddio(quick: bool) -> list[Point]:
    """Every value between the ends of each sweep that the public tables name."""
    out = [point(quick, "ways", frame=1024, ways=w) for w in range(2, 12)]
    out += [point(quick, "cores and ways", ways=w, cores=n) for n in (1, 2, 4) for w in (2, 4, 6, 8)]
    out += [point(quick, "cores", descriptors=256, cores=n) for n in (1, 2, 4, 6, 8, 10, 12, 14, 16, 18)]
    out += [point(quick, "descriptors", frame=f, descriptors=d) for f in OFFERED_GBPS for d in (128, 256, 512, 1024, 2048, 4096)]
    out += [point(quick, "rate", cores=2, gbps=REPLAY_GBPS * r) for r in range(200, 2101, 100)]
    out += [point(quick, "uncore clock", uncore_ghz=c / 10) for c in range(12, 25, 2)]
    return out + [point(quick, "processing time", cores=2, calls=n) for n in range(60, 381, 20)]


def write_hit_pct(row: Mapping[str, Any]) -> float | None:
    """Lines written by the NIC that hit the LLC, in percent."""
    return None if row.get("p2m_write_miss_ratio") is None else 100 * (1 - row["p2m_write_miss_ratio"])


def received_gbps(row: Mapping[str, Any]) -> float | None:
    """Rate of what the core forwarded as the measurements count it: the wire's bits, preamble and gap included."""
    return None if row.get("throughput_mrps") is None else row["throughput_mrps"] * 8e-3 * (row["packet_bytes"] + BESIDE)


STUDIES = [
    Study("real", "ddio", "DDIO under a forwarder at 100 Gb/s, the settings of public measurements", ddio,
          ("write_hit_pct", "received_gbps", "throughput_mrps", "drop_rate", "rtt_median_us", "rtt_p99_us"),
          derived={"write_hit_pct": write_hit_pct, "received_gbps": received_gbps},
          derived_units={"n": "cores", "rate_gbps": "Gb/s", "uncore_ghz": "GHz", "calls": "calls", "ring": "descriptors",
                         "write_hit_pct": "%", "received_gbps": "Gb/s"}),
]
