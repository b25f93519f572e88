"""Study tables of an invented machine on which every undisputed claim of claims/gem5net.toml holds.

The numbers are the paper's where it prints any, and invented to fit its words elsewhere, never the simulator's. Rows are those of
the studies themselves, so that a point that a claim needs and no study has is found here.
"""

from __future__ import annotations

import math
from typing import Any

import polars as pl

from hostnet import studies
from hostnet.studies import Point, Study
from hostnet.studies.gem5net import client_gbps, krps, msb_gbps, seen_gbps

SIZES = (64, 128, 256, 512, 1024, 1518)

# Gb/s by packet size on the usual machine: gem5 with direct cache access, without, and the real server.
MSB: dict[str, tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]] = {
    "testpmd": ((9, 18, 34, 53, 55, 56), (8.5, 11.65, 20, 27, 46, 49), (12, 20, 31, 50, 70, 80)),
    "touchfwd": ((5, 8, 12.5, 13.5, 14, 16), (4.5, 6, 7.5, 10, 12, 14), (6, 10, 14, 16, 18, 20)),
    "rxptx-10ns": ((9, 18, 34, 53, 55, 56), (8.5, 11.65, 20, 27.5, 46, 49), (12, 20, 31, 50, 70, 80)),
    "rxptx-1us": ((2, 5, 12, 22, 40, 48), (1.9, 4.5, 9.6, 20, 38, 45), (3, 6, 11, 24, 44, 60)),
    "rxptx": ((9, 18, 34, 53, 55, 56), (8.5, 11.65, 20, 27.5, 46, 49), (12, 20, 31, 50, 70, 80)),
    "iperf": ((0.4, 0.9, 1.8, 3.5, 7, 10), (0.39, 0.86, 1.7, 3.2, 6.3, 8.83), (1, 2, 3, 4, 5, 6)),
}
KRPS = {"mc-dpdk": (709.0, 661.0), "mc-kernel": (218.0, 210.0)}


def peak(c: dict[str, Any]) -> float:
    """Gb/s, or thousands of requests a second, of a machine with these knobs."""
    app, size = c["app"], c["packet_bytes"]
    off = c["dca"] == "off"
    if c["platform"] == "altra":
        return MSB[app][2][SIZES.index(size)]
    value = KRPS[app][off] if app in KRPS else MSB[app][off][SIZES.index(size)]
    kernel = app in ("iperf", "mc-kernel")
    clock = c.get("clock_ghz") or 3.0
    if kernel or app in ("touchfwd", "mc-dpdk") or (size or 0) <= 256:
        value *= (clock / 3) ** 0.85
    if c.get("core") == "in-order":
        value /= {"iperf": 1.932, "mc-dpdk": 1.453, "mc-kernel": 1.5}.get(app, 1.667 if app == "rxptx-1us" else 1.0)
    l1, l2 = c.get("l1_kib") or 64, c.get("l2_kib") or 1024
    if app == "mc-dpdk" or (app == "iperf" and size > 256):
        value *= 1 + 0.03 * math.log2(l1 / 64)
    if app in ("testpmd", "rxptx-10ns") and l2 < 512:
        value *= 0.8
    if app == "iperf" or (app == "mc-dpdk" and l2 <= 4096):
        value *= 1 + 0.05 * math.log2(l2 / 1024)
    elif app == "mc-dpdk":
        value *= 1.1
    if app == "testpmd" and size == 1518 and c.get("channels"):
        value = {1: 30, 2: 40, 4: 49, 8: 52, 16: 50}[c["channels"]]
    if c.get("rob"):
        small = c["rob"] == 32
        value /= {("touchfwd", True): 1.333, ("rxptx-10ns", True): 1.3 if size == 128 else 1.1}.get((app, small), 1.0)
    return value


CORE_SHARE = {"testpmd": (0.9, 0.6, 0.0), "touchfwd": (0.9, 0.95, 0.98), "touchdrop": (0.95, 0.979, 0.995)}
ONSET_NS = {64: 300, 256: 500, 1518: 700}


def measured(study: Study, c: dict[str, Any]) -> dict[str, Any]:
    """What the invented machine measures at a point with these columns."""
    app, size, fixed = c["app"], c.get("packet_bytes"), c["load"] == "fixed"
    if study.figure == "fig20":
        return {
            "wall_s": 17.0 if c["mode"] == "two hosts" else 10.0,
            "sim_events": 8e6 if c["mode"] == "two hosts" else 2e6,
            "sim_requests": 2e5 if c["mode"] == "two hosts" else 1e5,
        }
    found: dict[str, Any] = {
        "ddio_capacity_mib": 0.25 if c.get("llc_mib") == 1 else 4.0,
        "lfb_occ": 2.0 if c.get("rob") == 32 else 6.0,
    }
    if not fixed:
        of_requests = app in KRPS
        value = peak(c)
        if app == "iperf":
            return {**found, "net_gbs": value / 8}
        mpps = value / 1e3 if of_requests else 1e3 * value / (8 * size)
        return {**found, "offered_mrps": mpps, "offered_gbps": 0.8 * mpps if of_requests else value, "drop_rate": 0.005}
    rate = c["rate_mrps"]
    gbps = rate * 8 * (size or 100) / 1e3
    core = CORE_SHARE.get(app, (0.9,) * 3)[{64: 0, 256: 1, 1518: 2}.get(size, 0)]
    found |= {
        "offered_mrps": rate,
        "offered_gbps": gbps,
        "achieved_gbps": None if app == "touchdrop" else 0.95 * gbps * (1 + 1e-3 * (c.get("repeat") or 0)),
        "drop_rate": 0.05,
        "drop_core_share": core,
        "drop_dma_share": 1 - core,
        "drop_tx_share": 0.0,
        "dma_busy": 0.99,
        "cpu_utilisation": 0.6,
        "rtt_mean_us": 200.5 if c["platform"] == "altra" else 420.0,
    }
    if study.figure == "fig13":
        over = c["interval_ns"] >= ONSET_NS[size]
        found |= {
            "drop_rate": 0.1 if over else 0.0,
            "llc_miss_ratio": 0.5 if over else 0.1,
            "drop_core_share": 1.0,
            "drop_dma_share": 0.0,
        }
    if study.figure == "fig19":
        clock, kernel = c["clock_ghz"], app == "mc-kernel"
        found |= {
            "rtt_mean_us": 405 + 100 * kernel + (200 if clock < 3 and "0.95" in c["rate_basis"] else 0),
            "drop_rate": 0.3 - 0.07 * clock,
        }
    if study.figure == "s3_writeback":
        lump = c["write_back"] == "all_used"
        found |= {
            "descriptors_per_write_back": 64.0 if lump else 1.2 * int(c["write_back"]),
            "dma_peak_gbs": 30.0 if lump else 15.0,
        }
    return found


def rows(study: Study, built: bool) -> list[dict[str, Any]]:
    """Every row of the study; rows that need a model have it when `built`."""

    def row(p: Point) -> dict[str, Any]:
        columns = {"packet_bytes": None, **p.columns}
        needs = p.needs or ("a model" if study.figure == "fig20" else "")
        return {**columns, **({"not_built": needs} if needs and not built else measured(study, columns))}

    found = [row(p) for p in study.points(False)]
    if study.then is not None:
        # Bandwidth tests that have run are what rates are chosen from.
        found += [row(p) for p in study.further([r for r in found if r.get("offered_mrps")], False)]
    return found


def tables(built: bool = True) -> dict[str, pl.DataFrame]:
    """Every table of the system's studies by its SQL name; as if all its models were there, or as they are."""
    out = {}
    for study in (s for s in studies.all_studies() if s.system == "gem5net"):
        done = rows(study, built)
        if not built and all("not_built" in r for r in done):
            continue
        for r in done:
            if "not_built" not in r and study.figure != "fig20":
                r |= {
                    "msb_gbps": msb_gbps(r),
                    "krps": krps(r),
                    "client_gbps": client_gbps(r),
                    "seen_gbps": seen_gbps(r),
                }
        out[study.table] = pl.DataFrame(done, infer_schema_length=None)
        for side in study.side_tables:
            losses = [{"platform": p, "where": "NIC: receive buffer", "count": 7.0} for p in ("gem5", "altra")]
            out[f"{study.table}_{side}"] = pl.DataFrame(losses)
    return out
