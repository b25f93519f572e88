"""Study tables of an invented machine on which every undisputed claim of claims/ccnic.toml that has a query and a study holds.

The numbers are the paper's where it prints any, and invented to fit its words elsewhere, never the simulator's. Rows are those of
the studies themselves, so that a point that a claim needs and no study has is found here.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from hostnet import studies
from hostnet.studies import Study, ccnic, ccnic_pcie

FIGURES = [s.figure for s in studies.all_studies() if s.system == "ccnic"]

# Million packets a second at the peak, and round trips of one packet and at 80 % load in ns, by platform and size.
PEAK = {
    ("icx", 64): {"ccnic": 330.0, "unopt": 69.3, "e810": 192.0, "cx6": 76.0},
    ("spr", 64): {"ccnic": 1520.0, "unopt": 460.6},
    ("icx", 1500): {"ccnic": 33.58, "unopt": 15.0, "e810": 16.5, "cx6": 16.5},
    ("spr", 1500): {"ccnic": 75.0, "unopt": 40.0},
    ("icx", 4096): {"ccnic": 12.0},
    ("spr", 4096): {"ccnic": 28.0},
}
LEAST = {
    ("icx", 64): {"ccnic": 490.0, "unopt": 1029.0, "e810": 3809.0, "cx6": 2116.0},
    ("spr", 64): {"ccnic": 650.0, "unopt": 1500.0},
    ("icx", 1500): {"ccnic": 514.0, "unopt": 1100.0, "e810": 3950.0, "cx6": 2300.0},
    ("spr", 1500): {"ccnic": 700.0, "unopt": 1600.0},
}
LOADED = {
    ("icx", 64): {"ccnic": 700.0, "unopt": 1600.0, "e810": 4700.0, "cx6": 6000.0},
    ("spr", 64): {"ccnic": 900.0, "unopt": 2500.0},
    ("icx", 1500): {"ccnic": 960.0, "unopt": 2000.0, "e810": 6000.0, "cx6": 8000.0},
    ("spr", 1500): {"ccnic": 1200.0, "unopt": 2600.0},
}

# Share of the peak that each choice has, and how much longer the round trip is.
RATE = {
    "signal": {"inline": 1.0, "register": 1 / 1.3},
    "layout": {"grouped": 1.0, "packed": 0.6, "padded": 1 / 3},
    "variant": {"full": 1.0, "no_recycle_nonseq": 0.8, "no_small": 0.7, "no_shared_pool": 0.378},
    "placed": {"cross-upi": 1.0, "same-socket": 1.6},
    "policy": {"clflushopt": 0.4, "retain": 0.8, "clwb": 0.7},
    "pool": {"host": 0.6},
}
LONGER = {"signal": {"register": 1.2}, "layout": {"packed": 1.2}, "placed": {"same-socket": 0.55}}
# Share of the best at 1, 2, ... 32 packets a burst.
TX = {"ccnic": (0.27, 0.5, 0.92, 0.95, 0.98, 1.0), "e810": (0.2, 0.4, 0.6, 0.8, 0.95, 1.0)}
RX = {"ccnic": (0.9, 0.92, 0.94, 0.97, 0.99, 1.0), "e810": (0.63, 0.8, 0.9, 0.95, 0.98, 1.0)}
PREFETCH = {
    "ccnic": {"off": 1.0, "host": 1.2, "nic": 0.9, "both": 1.05},
    "unopt": {"off": 1.0, "host": 0.98, "nic": 0.9, "both": 0.92},
}
# Host cores beyond which the rate does not grow.
ENOUGH = {("icx", 64): 16, ("icx", 4096): 8, ("spr", 64): 50, ("spr", 4096): 24}
# NIC side, a packet: payload, descriptors, registers; write ownership.
FETCHED = {
    ("ccnic", "batched"): (1.0, 0.25, 0.0, 0.25),
    ("unopt", "batched"): (1.0, 0.25, 0.25, 0.5),
    ("ccnic", "singleton"): (1.0, 1.0, 0.0, 1.0),
    ("unopt", "singleton"): (1.0, 1.5, 1.0, 2.0),
}

ACCESS = {
    "icx": {"local_dram": 80.0, "remote_dram": 150.0, "remote_l2_rh": 114.0, "remote_l2_lh": 118.0},
    "spr": {"local_dram": 110.0, "remote_dram": 190.0, "remote_l2_rh": 171.0, "remote_l2_lh": 175.0},
}
PINGPONG = {"S0": 480.0, "S1": 470.0, "Rd": 490.0, "Wr": 420.0, "S0C": 240.0, "S1C": 240.0}
STREAM = {
    "icx": {"none": 443.0, "cached": 360.0, "nontemporal": 200.0},
    "spr": {"none": 1020.0, "cached": 800.0, "nontemporal": 500.0},
}


def line(row: dict[str, Any]) -> dict[str, float]:
    """Studies of single lines and streams."""
    plat = row["platform"]
    if "layout" in row and "system" not in row:
        return {"pingpong_ns": PINGPONG[row["layout"]], "remote_requests": 2.0 if row["layout"].endswith("C") else 4.0}
    if "stores_as" in row:
        full = {"icx": 16, "spr": 56}[plat]
        return {
            "stream_gbps": STREAM[plat][row["stores_as"]] * min(1.0, 2 * row["pairs"] / full),
            "c2m_read_lat_ns": 200.0,
        }
    slow = row.get("slowdown") or (1.0 if row.get("uncore_ghz") is None else 2.5 / row["uncore_ghz"])
    return {
        "access_ns": ACCESS[plat].get(row["place"], 50.0) * slow,
        "speculative_reads": float(row["place"] == "remote_l2_lh"),
    }


def loop(row: dict[str, Any]) -> dict[str, float | None]:
    """A loopback: rate, round trip, and what crossed the link."""
    plat, system, size, n = row["platform"], row["system"], row["packet_bytes"], row["n"]
    rate = PEAK[plat, size][system]
    for label, shares in RATE.items():
        rate *= shares.get(row.get(label), 1.0)
    for label, shares in (("tx_batch", TX), ("rx_batch", RX)):
        if row.get(label):
            rate *= shares[system][ccnic.BATCHES.index(row[label])]
    rate *= PREFETCH[system].get(row.get("prefetch"), 1.0) if system in PREFETCH else 1.0
    if row.get("touch"):
        rate *= min(1.0, n / ENOUGH[plat, size]) * (2.0 if row["touch"] == "header" else 1.0)
    elif row.get("placed"):
        rate /= 50
    load = row["load"]
    table = {"min": LEAST, "loaded": LOADED}.get(load, {})
    rtt = table.get((plat, size), {}).get(system, 9000.0)
    for label, longer in LONGER.items():
        rtt *= longer.get(row.get(label), 1.0)
    if row.get("slowdown"):
        rtt *= 1 + (row["slowdown"] - 1) * (1.18 if system == "ccnic" else 1.4)
    if row.get("uncore_ghz") and not row.get("slowdown"):
        rate *= row["uncore_ghz"] / 2.5
    if load == "loaded":
        rate *= row["share"]
    elif load == "min":
        rate = 1e3 / rtt
    mode = row.get("mode") or ("singleton" if load == "min" else "batched")
    payload, descriptor, register, rfos = FETCHED.get((system, mode), (0.0,) * 4)
    register += 1.0 if row.get("signal") == "register" else 0.0
    shared = row.get("pool") != "host"
    return {
        "throughput_mrps": rate,
        "rtt_median_us": rtt / 1e3,
        "nic_remote_reads_payload": payload,
        "nic_remote_reads_descriptor": descriptor,
        "nic_remote_reads_register": register,
        "nic_signal_reads": descriptor + register,
        "nic_remote_reads": payload + descriptor + register,
        "nic_remote_rfos": rfos,
        "host_writes_retained": 1.0,
        "host_remote_rfos_payload": float(row.get("policy") == "retain" or row.get("alloc_order") == "sequential"),
        "host_remote_reads": 1.25,
        "host_remote_rfos": 0.25,
        "host_instructions_per_packet": 100.0,
        "pool_ops_per_packet": 0.1,
        "link_utilisation": 0.5,
        "host_blanks_per_packet": 0.0 if shared else 1.0,
        "host_tx_frees_per_packet": 0.0 if shared else 1.0,
        "doorbells_per_packet": 1 / (row.get("tx_batch") or 32) if system == "e810" else None,
    }


# Gb/s at 64 B between fences and at the most, and bytes at which half of the rest is reached.
STORED = {"wc_mmio": (8.0, 80.0, 700.0), "wc_dram": (12.0, 90.0, 900.0), "wb_dram": (95.0, 95.0, 1.0)}
TRIPS = {
    "doorbells_per_packet": 1.0,
    "tx_fetches_per_packet": 1.0,
    "tx_payload_reads_per_packet": 1.0,
    "nic_signal_reads": 1.0,
    "nic_remote_reads_payload": 1.0,
}


def pcie(row: dict[str, Any]) -> dict[str, float]:
    """Studies of what a PCIe NIC's interface costs."""
    if "target" in row:
        least, most, half = STORED[row["target"]]
        block = row["block_bytes"] - 64
        return {"t0_mops": (least + (most - least) * block / (block + half)) / 8e-3 / 64}
    if "stores" in row:
        return {"mmio_burst_ns": 5.0 if row["stores"] <= 24 else 30.0 + row["stores"]}
    if "access" in row:
        return {"mmio_read_ns": 982.0 if row["load_bytes"] == 8 else 1026.0, "dma_read_min_ns": 1000.0}
    return TRIPS


# Mops at the most, and the threads that it takes: directly on the NIC, and through each overlay.
SERVED = {
    "fig19-ads": {"cx6": (37.0, 16), "ccnic-overlay": (42.3, 8), "upi-1to1": (40.0, 12), "unopt-overlay": (30.0, 16)},
    "fig19-geo": {"cx6": (17.8, 8), "ccnic-overlay": (17.9, 4), "upi-1to1": (17.8, 6), "unopt-overlay": (15.0, 8)},
}


def served(figure: str, row: dict[str, Any]) -> dict[str, float | None]:
    """The key-value store."""
    most, enough = SERVED[figure][row["system"]]
    return {"throughput_mrps": most * min(1.0, row["n"] / enough)}


# The same of the TCP server, by threads of the fast path; with TAS's own calls it is twice as fast, which no claim speaks of.
ECHOED = {"cx6": (58.3, 5), "ccnic-overlay": (64.6, 4)}


def echoed(row: dict[str, Any]) -> dict[str, float]:
    most, enough = ECHOED[row["system"]]
    own = 2.0 if row["variant"] == "low_level" else 1.0
    return {
        "throughput_mrps": own * most * min(1.0, row["n"] / enough),
        "tcp_rpcs_per_segment": 2.0,
        "rtt_mean_us": 100.0,
    }


def proposed(row: dict[str, Any]) -> dict[str, float]:
    """What the paper only proposes: how soon a NIC sees a descriptor among many queues, and payload that nobody touches."""
    if "queues" in row:
        return {"signal_discovery_ns": 100.0 + (5.0 * row["queues"] if row["signalling"] == "polling" else 0.0)}
    if row["system"] == "e810":
        return {"throughput_mrps": 10.0, "frame_bytes_moved": 2 * 1500.0}
    return {"throughput_mrps": 10.0, "payload_lines_crossed": 2.0}


def measured(study: Study, row: dict[str, Any]) -> dict[str, Any]:
    if study.figure in SERVED:
        return served(study.figure, row)
    if study.figure == "tab2-tcp":
        return echoed(row)
    if study.figure == "tab1":
        return {}
    if study.figure in ("sec32-event", "sec6-forward"):
        return proposed(row)
    if study in ccnic_pcie.STUDIES:
        return pcie(row)
    return loop(row) if row.get("system") else line(row)


def rows(study: Study) -> list[dict[str, Any]]:
    """Every row of the study, with the columns that follow; rows that need a model have it."""
    found = [{**p.columns, **measured(study, dict(p.columns))} for p in study.points(False)]
    if study.then is not None:
        found += [{**p.columns, **measured(study, dict(p.columns))} for p in study.further(found, False)]
    for row in found:
        row |= {name: formula(row) for name, formula in study.derived.items()}
    if study.across is not None:
        for row, more in zip(found, study.across(found), strict=True):
            row |= more
    return found


def tables() -> dict[str, pl.DataFrame]:
    """Every table of the system's studies by its SQL name."""
    return {
        s.table: pl.DataFrame(rows(s), infer_schema_length=None) for s in (studies.get("ccnic", f) for f in FIGURES)
    }
