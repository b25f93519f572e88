"""Closed forms: PCIe bandwidth by TLP, what a domain's credits allow, latency at the memory controller.

Plain dictionaries in and out; nothing is simulated. docs/model.md says what the terms mean.
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
    return json.loads(_core.pcie_bandwidth(json.dumps(link), bytes))


def domains(path: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Latency, bound and use of each domain of a path (name, credits, occupancy, rate_gbs), and the one that binds."""
    return json.loads(_core.domains(json.dumps(list(path))))


def hardware(**changes: float) -> dict[str, float]:
    """What the formulae need of a machine: the paper's Cascade Lake, with ``changes``."""
    return {**json.loads(_core.hardware()), **changes}


def formula(traffic: str, counters: Mapping[str, float], **options: Any) -> dict[str, Any]:
    """The analytical latency of ``traffic`` ("c2m-read", "c2m-readwrite", "p2m-read", "p2m-write"), term by term.

    ``options``: hardware, form ("plotted" or "printed"), adjust_rpq, cha_admission_ns, and credits and measured_gbs for
    the throughput estimate and its error.
    """
    question = {"class": traffic, "counters": dict(counters), **{k: v for k, v in options.items() if v is not None}}
    return json.loads(_core.formula(json.dumps(question)))
