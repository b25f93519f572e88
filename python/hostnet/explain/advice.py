"""Advice on cores and threads of the NIC that are busy all the time, with keys that the scenario accepts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# Mean share of time that the cores of a tenant are busy from which no core has room for the packets of another.
_EVEN = 0.85


def of_cores(spec: Mapping[str, Any], tenant: int, busy: Sequence[float]) -> str:
    """Advice for the busy cores of a tenant of a resolved scenario, of whose cores ``busy`` has the shares of time."""
    of = spec["tenant"][tenant]
    key = f"tenant.{tenant}.traffic" if of.get("traffic") else "traffic"
    traffic = of.get("traffic") or spec.get("traffic") or {}
    arrivals, flows = traffic.get("arrivals"), traffic.get("flows")
    one_flow = traffic.get("protocol") == "ethernet"
    uneven = sum(busy) < _EVEN * len(busy)
    if uneven and arrivals == "pcap":
        return f"replay a capture whose flows go to more of its cores ({key}.pcap.file)"
    if uneven and one_flow:
        return f'give its packets flows ({key}.protocol = "udp" and {key}.flows)'
    if uneven and flows is not None:
        return f"spread the traffic over more of its cores ({key}.flows)"
    if not _room(spec, of.get("node") or 0):
        return "its node has no core left for more"
    said = f"give it more (tenant.{tenant}.cores)"
    if arrivals == "pcap":
        return f"{said}, and a capture whose flows go to them ({key}.pcap.file)"
    if one_flow:
        return f'{said}, and its packets flows ({key}.protocol = "udp" and {key}.flows)'
    return said if flows is None or flows > len(busy) else f"{said}, and more flows ({key}.flows)"


def of_nic_threads(spec: Mapping[str, Any], tenant: int) -> str:
    """Advice for the busy threads of the NIC of a tenant of a resolved scenario, which has CC-NIC."""
    of, key = spec["tenant"][tenant], f"tenant.{tenant}.ccnic.nic_threads"
    ccnic = of.get("ccnic") or {}
    threads = ccnic.get("nic_threads")
    if not _room(spec, ccnic.get("nic_node") or 0):
        return "the NIC's node has no core left for more"
    if ccnic.get("mode") == "overlay" or (threads is not None and threads < of["cores"]):
        return f"give it more ({key})"
    # Each core of the tenant has a queue pair, of which a thread has one at least.
    return f"give it more (tenant.{tenant}.cores{'' if threads is None else f' and {key}'})"


def _room(spec: Mapping[str, Any], node: int) -> bool:
    """Whether a node has a core that nothing runs on."""
    platform = spec.get("platform") or {}
    core, nodes = platform.get("core") or {}, platform.get("nodes") or {}
    count = nodes.get("cores") or core.get("count")
    if count is None:
        return True
    taken = 0
    for of in spec.get("tenant") or ():
        if (of.get("node") or 0) == node:
            taken += int(of.get("cores") or 0)
        ccnic = of.get("ccnic")
        if ccnic and ccnic.get("nic") != "agent" and (ccnic.get("nic_node") or 0) == node:
            taken += int(ccnic.get("nic_threads") or of.get("cores") or 0)
    taken += sum(int(p.get("cores") or 0) for p in spec.get("peripheral") or () if (p.get("node") or 0) == node)
    return taken < int(count) * int(core.get("threads") or 1)
