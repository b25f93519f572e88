"""Costs of a PCIe NIC's interface for a core and for a packet (CC-NIC, section 2): accesses to registers, stores, one
transmission."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import axes
from .ccnic import ICX, MIN, SMALL, SMALL_PACKETS, SYSTEM, study
from .grid import also, on

PROBE, STORES = "mmio-probe", "mmio-stores"
# The ConnectX-6 Dx of `pcie-cx6` beside the platform's E810. Both have the same model of registers: the two NICs differ in
# their wire, which stores to registers do not reach.
NIC = axes.SYSTEM.among({"e810": {}, "cx6": {}})

# --- Loads, from a device and by it ---------------------------------------------------------------------------------

# One frame of 64 B at a time.
FRAME = (ICX * SMALL_PACKETS * MIN).without_columns()
# A core's loads from the NIC; and the NIC's shortest read of memory while it sends single frames.
LOADS = on(PROBE) * axes.ACCESS("mmio_read") * axes.LOAD_BYTES.at("tenant.0.app.bytes")(8, 64) + SYSTEM(
    "e810"
).without_columns() * FRAME * axes.ACCESS("dma_read") * axes.LOAD_BYTES(SMALL)

# --- Stores (Figs. 2 and 3) -----------------------------------------------------------------------------------------

BLOCKS = tuple(64 << i for i in range(8))
TARGET = axes.TARGET.among(
    {
        name: {"tenant.0.app.target": target}
        for name, target in (("wc_mmio", "wc_device"), ("wc_dram", "wc_memory"), ("wb_dram", "wb_memory"))
    }
)
LINE = 64
# One core stores blocks of so many bytes, with a fence after each.
FENCED = TARGET * axes.BLOCK_BYTES.at("tenant.0.app.block", form="{} B")(*BLOCKS)


def write_gbps(row: Mapping[str, Any]) -> float | None:
    """Rate in Gb/s of the lines that the core stores."""
    return None if row.get("t0_mops") is None else 8e-3 * LINE * row["t0_mops"]


# N stores of 4 B, each to a line of its own, timed together; all buffers are empty before the first.
COMBINED = (
    NIC
    * axes.STORES.at("tenant.0.app.stores")(*range(1, 65))
    * also({"tenant.0.app.access": "store", "tenant.0.app.bytes": 4})
)

# --- One transmission (Fig. 4) --------------------------------------------------------------------------------------


# One packet of 64 B, with an E810 and with CC-NIC. The window holds one transmission.
ONE_PACKET = SYSTEM("e810", "ccnic") * FRAME * also({"run.requests": 1})

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
        LOADS,
        ("mmio_read_ns", "dma_read_min_ns"),
        derived={},
    ),
    study(
        "fig2",
        "Stores to a NIC and to memory, by the bytes between two fences",
        FENCED,
        ("write_gbps",),
        base=STORES,
        derived={"write_gbps": write_gbps},
        derived_units={"write_gbps": "Gb/s"},
    ),
    study(
        "fig3",
        "Combining stores to a NIC, each to a line of its own",
        COMBINED,
        ("store_ns", "mmio_store_ns"),
        base=PROBE,
        derived={"store_ns": lambda row: row.get("mmio_burst_ns")},
        derived_units={"store_ns": "ns"},
    ),
    study(
        "fig4",
        "Trips over the link for one transmission",
        ONE_PACKET,
        ("tx_serial_trips", *PCIE_TRIPS, *COHERENT_TRIPS),
        derived={"tx_serial_trips": tx_serial_trips},
        derived_units={"tx_serial_trips": "trips"},
    ),
]
