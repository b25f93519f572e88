"""Costs of a PCIe NIC's interface for a core and for a packet (CC-NIC, section 2): accesses to registers, stores, one
transmission."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import Point
from .ccnic import SMALL, point, study

PROBE, STORES = "mmio-probe", "mmio-stores"
# The ConnectX-6 Dx of `pcie-cx6` beside the platform's E810.
NICS: dict[str, dict[str, Any]] = {"e810": {}, "cx6": {"peripheral.0.propagation": "22 ns"}}


# --- Loads, from a device and by it ---------------------------------------------------------------------------------

LOADS = (8, 64)


def pcie_latency(quick: bool) -> list[Point]:
    """A core's loads from the NIC, and the NIC's shortest read of memory while the NIC sends single frames of 64 B."""
    out = [Point(PROBE, {"access": "mmio_read", "load_bytes": n}, {"tenant.0.app.bytes": n}) for n in LOADS]
    dma = point(quick, "icx", "e810", load="min", n=1)
    return [*out, Point(dma.base, {"access": "dma_read", "load_bytes": SMALL}, dma.changes)]


# --- Stores (Figs. 2 and 3) -----------------------------------------------------------------------------------------

BLOCKS = tuple(64 << i for i in range(8))
TARGETS = ("wc_mmio", "wc_dram", "wb_dram")
NAMES = {"wc_mmio": "wc_device", "wc_dram": "wc_memory", "wb_dram": "wb_memory"}
LINE = 64


def fig2(quick: bool) -> list[Point]:
    """One core stores blocks of the given number of bytes, with a fence after each block."""
    return [
        Point(
            STORES, {"target": t, "block_bytes": b}, {"tenant.0.app.target": NAMES[t], "tenant.0.app.block": f"{b} B"}
        )
        for t in TARGETS
        for b in BLOCKS
    ]


def write_gbps(row: Mapping[str, Any]) -> float | None:
    """Rate in Gb/s of the lines that the core stores."""
    return None if row.get("t0_mops") is None else 8e-3 * LINE * row["t0_mops"]


MOST_STORES = 64


def fig3(quick: bool) -> list[Point]:
    """N stores of 4 B, each to a different line, timed together; all buffers are empty before the first store."""
    return [
        Point(
            PROBE,
            {"system": nic, "stores": n},
            {"tenant.0.app.access": "store", "tenant.0.app.bytes": 4, "tenant.0.app.stores": n, **changes},
        )
        for nic, changes in NICS.items()
        for n in range(1, MOST_STORES + 1)
    ]


# --- One transmission (Fig. 4) --------------------------------------------------------------------------------------


def fig4(quick: bool) -> list[Point]:
    """One packet of 64 B, with an E810 and with CC-NIC. The window holds one transmission."""
    alone = [point(quick, "icx", system, load="min") for system in ("e810", "ccnic")]
    return [Point(p.base, {"system": p.columns["system"]}, {**p.changes, "run.requests": 1}) for p in alone]


PCIE_TRIPS = ("doorbells_per_packet", "tx_fetches_per_packet", "tx_payload_reads_per_packet")
COHERENT_TRIPS = ("nic_signal_reads", "nic_remote_reads_payload")


def tx_serial_trips(row: Mapping[str, Any]) -> float | None:
    """Number of trips over the link from the host's publication until the NIC has the payload. Each trip waits for the
    previous one, because the payload is one line."""
    counted = [row.get(name) for name in (PCIE_TRIPS if row["system"] == "e810" else COHERENT_TRIPS)]
    parts: list[float] = [n for n in counted if n is not None]
    return sum(parts) if len(parts) == len(counted) else None


STUDIES = [
    study(
        "pcie-latency",
        "A core's loads from a NIC, and the NIC's reads of memory",
        pcie_latency,
        ("mmio_read_ns", "dma_read_min_ns"),
        derived={},
        derived_units={"load_bytes": "B"},
    ),
    study(
        "fig2",
        "Stores to a NIC and to memory, by the bytes between two fences",
        fig2,
        ("write_gbps",),
        derived={"write_gbps": write_gbps},
        derived_units={"block_bytes": "B", "write_gbps": "Gb/s"},
    ),
    study(
        "fig3",
        "Combining stores to a NIC, each to a line of its own",
        fig3,
        ("store_ns", "mmio_store_ns"),
        derived={"store_ns": lambda row: row.get("mmio_burst_ns")},
        derived_units={"store_ns": "ns"},
    ),
    study(
        "fig4",
        "Trips over the link for one transmission",
        fig4,
        ("tx_serial_trips", *PCIE_TRIPS, *COHERENT_TRIPS),
        derived={"tx_serial_trips": tx_serial_trips},
        derived_units={"tx_serial_trips": "trips"},
    ),
]
