"""Closed forms: PCIe bandwidth by TLP, the throughput that a domain's credits allow, latency at the memory controller.

Plain dictionaries in and out; nothing is simulated. docs/use/explain.md explains the terms.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from . import _core


def pcie_bandwidth(bytes: int, **link: Any) -> dict[str, Any]:
    """Payload rates in Gb/s of transactions of ``bytes`` over a link.

    ``link``: generation ("gen3"), lanes, mps, mrrs, rcb, rcb_chunks, wide_addresses, ecrc.
    """
    rates: dict[str, Any] = json.loads(_core.pcie_bandwidth(json.dumps(link), bytes))
    return rates


def domains(path: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Latency, bound and use of each domain of a path (name, credits, occupancy, rate_gbs), and the domain with the
    smallest bound."""
    found: dict[str, Any] = json.loads(_core.domains(json.dumps(list(path))))
    return found


def hardware(**changes: float) -> dict[str, float]:
    """Constants of a machine that the formulae need: the constants of the paper's Cascade Lake, with ``changes``."""
    return {**json.loads(_core.hardware()), **changes}


def formula(traffic: str, counters: Mapping[str, float], **options: Any) -> dict[str, Any]:
    """The analytical latency of ``traffic`` ("c2m-read", "c2m-readwrite", "p2m-read", "p2m-write"), term by term.

    ``options``: hardware, form ("plotted" or "printed"), adjust_rpq, cha_admission_ns, and credits and measured_gbs for
    the throughput estimate and its error.
    """
    question = {"class": traffic, "counters": dict(counters), **{k: v for k, v in options.items() if v is not None}}
    answer: dict[str, Any] = json.loads(_core.formula(json.dumps(question)))
    return answer


# Metrics of a simulated run that the formulae take as counters.
_COUNTERS = {
    "rpq_occupancy": ("rpq_occ",),
    "wpq_full": ("wpq_full_frac",),
    "waiting_writes": ("cha_c2m_write_occ", "cha_p2m_write_occ"),
    "switches": ("wr_switches",),
    "lines_read": ("lines_read",),
    "lines_written": ("lines_written",),
    "act_read": ("act_read",),
    "act_write": ("act_write",),
    "pre_conflict": ("pre_conflict",),
    "rpq_full": ("rpq_full_frac",),
    "waiting_reads": ("cha_c2m_read_occ", "cha_p2m_read_occ"),
}
# Constants of the formulae; a value that a run does not contain (turning the channel) is the paper's.
_CONSTANTS = {
    "channels": "channels",
    "t_trans_ns": "t_trans_ns",
    "t_act_ns": "t_rcd_ns",
    "t_pre_ns": "t_rp_ns",
    "c2m_read_ns": "c2m_read_unloaded_ns",
    "c2m_write_ns": "c2m_write_unloaded_ns",
    "p2m_write_ns": "p2m_write_unloaded_ns",
    "p2m_read_ns": "p2m_read_unloaded_ns",
}
# Throughput in GB/s below which traffic is background rather than a traffic class.
NOISE_GBS = 0.05
# Share of the lines that cores fetch from which those that they write back to memory make a class of their own.
WRITTEN_BACK = 0.1


# Counters that are means over all channels, of which the formulae take the mean over those that lines use.
_PER_CHANNEL = ("rpq_occupancy", "wpq_full", "rpq_full")


def channels_per_used(metrics: Mapping[str, float | None]) -> float:
    """How many times as many channels a run's host has as those over which its lines are spread: 1 on a single node."""
    channels, used = metrics.get("channels"), metrics.get("channels_used")
    return channels / used if channels and used else 1.0


def counters_of(metrics: Mapping[str, float | None]) -> dict[str, float]:
    """The formulae's inputs from a simulated run's metrics; a class without traffic counts as none.

    Of a host with several nodes, queues are those of the channels over which lines are spread.
    """
    found = {name: sum(metrics.get(m) or 0.0 for m in parts) for name, parts in _COUNTERS.items()}
    found |= {name: found[name] * channels_per_used(metrics) for name in _PER_CHANNEL}
    return found | {name: min(found[name], 1.0) for name in ("wpq_full", "rpq_full")}


def hardware_of(metrics: Mapping[str, float | None]) -> dict[str, float]:
    """The formulae's constants from a simulated run's metrics; its channels are those over which lines are spread."""
    known = {name: metrics.get(m) for name, m in _CONSTANTS.items()}
    known["channels"] = metrics.get("channels_used") or known["channels"]
    return hardware(**{name: v for name, v in known.items() if v is not None})


def core_class(fetched: float, written_back: float) -> str:
    """The traffic class of cores that fetch and write back lines at these rates: `c2m-read` or `c2m-readwrite`."""
    return "c2m-readwrite" if written_back > WRITTEN_BACK * fetched else "c2m-read"


def core_unloaded_ns(traffic: str, constants: Mapping[str, float | None]) -> float | None:
    """Time for which a line of the class ``traffic`` holds its line fill buffer in an unloaded host; None where a constant of
    it is missing.

    The buffer is the credit of two domains: that of the read, and, of a line that is written back, that of the write as well
    ("Understanding the Host Network", section 4.2).
    """
    parts = [constants.get(key) for key in ("c2m_read_ns", "c2m_write_ns")[: 2 if traffic == "c2m-readwrite" else 1]]
    known = [ns for ns in parts if ns is not None]
    return sum(known) if len(known) == len(parts) else None


def classes_of(metrics: Mapping[str, float | None]) -> tuple[str | None, str | None]:
    """The traffic class of cores and the traffic class of devices in a run: `c2m-read` or `c2m-readwrite`, `p2m-read`
    or `p2m-write`."""

    def gbs(name: str) -> float:
        return metrics.get(name) or 0.0

    core = device = None
    # Applications other than streams have no line rate of their own; the lines that their cores fetch are counted.
    if max(gbs("c2m_gbs"), gbs("lfb_rate") * 64e-3) > NOISE_GBS:
        core = core_class(gbs("mem_c2m_read_gbs"), gbs("mem_c2m_write_gbs"))
    if gbs("p2m_gbs") > NOISE_GBS:
        # With DDIO, writes reach DRAM as evictions; the lines that enter the IIO's buffers are counted.
        device = (
            "p2m-write" if (metrics.get("iio_write_occ") or 0.0) >= (metrics.get("iio_read_occ") or 0.0) else "p2m-read"
        )
    return core, device


def predict(host: Mapping[str, float], offered: Mapping[str, Any]) -> dict[str, float]:
    """Predicted throughput of cores and of a device on ``host`` when ``offered`` traffic contends, without a
    simulation.

    A simulated run reports the same prediction as ``predicted_c2m_gbs`` and ``predicted_p2m_gbs``.
    """
    setting = {"host": dict(host), "offered": dict(offered)}
    answer: dict[str, float] = json.loads(_core.predict(json.dumps(setting)))
    return answer
