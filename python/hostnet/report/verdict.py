"""The bottleneck of one result in a sentence, and the parts of the host that it marks, after `hostnet explain`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..drops import LINK_FULL
from ..errors import HostnetError
from ..explain import of_result
from ..explain.explanation import CORES_BUSY, CREDITS_FULL, Domain, Explanation
from ..results import Result
from .numbers import short

#: Marks of parts: the limit, what waits behind it, and the fullest part of a host no part of which is full.
BOTTLENECK, WAITS, FULLEST = "bottleneck", "waits", "fullest"
#: Share of its limit from which the fullest part is marked although it is not full.
_MARKED = 0.8


@dataclass(frozen=True)
class _Limit:
    """A thing that can be full: the part of the picture that has it, its name, and its place on the way to DRAM.

    What is full makes what lies before it wait, so that the last full thing on the way is the bottleneck.
    """

    part: str
    name: str
    place: int = 0
    be: str = "is"


_DOMAINS = {
    "line fill buffers": _Limit("cores", "the line fill buffers", be="are"),
    "IIO write buffer": _Limit("iio", "the IIO write buffer"),
    "IIO read buffer": _Limit("iio", "the IIO read buffer"),
    "writes that wait at the CHA": _Limit("agent", "the writes that wait at the home agent", 1, "are"),
    "read queues": _Limit("memory", "the read queues of the memory controllers", 2, "are"),
    "write queues": _Limit("memory", "the write queues of the memory controllers", 2, "are"),
}
#: Facts that say which share of time the queues of these domains are full.
_QUEUES = {"read queues": "rpq_full", "write queues": "wpq_full"}
#: Servers without credits, by the fact that says which share of time they are busy.
_SERVERS = {
    "pcie_up_util": _Limit("device", "the PCIe link into the host"),
    "pcie_down_util": _Limit("device", "the PCIe link out of the host"),
    "pcie_busiest_util": _Limit("device", "the busiest PCIe link"),
    "iio_path_util": _Limit("iio", "the path from the IIO to the home agent"),
    "nic_engine_util": _Limit("device", "the receive engine of the NIC"),
    "ssd_media_util": _Limit("device", "the medium of an SSD"),
    "wire_in_util": _Limit("device", "the network link to the host"),
    "wire_out_util": _Limit("device", "the network link from the host"),
    "link_utilisation": _Limit("link", "the link between the nodes"),
    "memory_link_read_util": _Limit("memory", "the link from memory to the cores"),
    "memory_link_write_util": _Limit("memory", "the link from the caches to memory"),
    "mem_utilisation": _Limit("memory", "the memory bandwidth"),
}
#: Credits of single senders, by the fact that says which share of them is in use.
_CREDITS = {
    "lfb_fullest_util": _Limit("cores", "the line fill buffers of the fullest core", be="are"),
    "l2_mshr_util": _Limit("cores", "the miss status holding registers of an L2", be="are"),
    "prefetch_util": _Limit("cores", "the requests of the prefetchers", be="are"),
    "nic_receive_util": _Limit("device", "the received packets that a NIC may have in flight", be="are"),
    "nic_transmit_util": _Limit("device", "the frames that a NIC may be reading", be="are"),
    "pcie_posted_util": _Limit("iio", "the posted credits of a PCIe port", be="are"),
    "pcie_non_posted_util": _Limit("iio", "the non-posted credits of a PCIe port", be="are"),
    "pcie_tags_util": _Limit("iio", "the PCIe tags of a device", be="are"),
    "link_credits_util": _Limit("link", "the credits of a node for the link between the nodes", be="are"),
    "llc_mshr_util": _Limit("agent", "the miss status holding registers of the LLC", 1, "are"),
    "cha_wait_util": _Limit("agent", "the entries of the home agent for writes that wait", 1, "are"),
}


@dataclass
class Verdict:
    """The limit of a host: a sentence, the words of `hostnet explain`, and marks by the beginning of a part's key."""

    sentence: str
    more: list[str] = field(default_factory=list)
    marks: dict[str, str] = field(default_factory=dict)
    busy_cores: bool = False  # whether marked cores are marked for their time, not for their line fill buffers
    explanation: Explanation | None = None

    def mark(self, key: str) -> str | None:
        """The mark of a part of the picture, by the part's key."""
        return next((mark for part, mark in self.marks.items() if key.split(" ")[0] == part), None)


def verdict_of(data: Mapping[str, Any]) -> Verdict:
    """The verdict on a result (as `Result.data`)."""
    try:
        ex = of_result(Result({"tables": {}, **data}))  # type: ignore[typeddict-item]
    except HostnetError:
        return Verdict(
            "This run has no metrics of the host network's domains, so no part can be named as the bottleneck."
        )
    return judged(ex)


def judged(ex: Explanation) -> Verdict:
    """The verdict on an explanation."""
    found = _full_server(ex) or _full_domain(ex) or _busy_cores(ex) or _full_credits(ex) or _nothing_full(ex)
    found.more = re.split(r"(?<=\.) (?=[A-Z0-9])", ex.paragraph())
    found.explanation = ex
    return found


def _full_server(ex: Explanation) -> Verdict | None:
    for fact, limit in _SERVERS.items():
        share = ex.facts.get(fact, 0.0)
        if share >= LINK_FULL:
            said = f"{_capital(limit.name)} is the bottleneck: it is busy {100 * share:.0f} % of the time{_lost(ex)}."
            return Verdict(said, marks={limit.part: BOTTLENECK})
    return None


def _limits(ex: Explanation) -> list[tuple[_Limit, Domain]]:
    """The domains that the picture has, each with its part; those of single I/O controllers count as the controllers'."""
    named = ((re.sub(r"^IIO \d+ ", "IIO ", d.name), d) for d in ex.domains)
    return [(_DOMAINS[name], d) for name, d in named if name in _DOMAINS]


def _full_domain(ex: Explanation) -> Verdict | None:
    full = [
        (limit, d)
        for limit, d in _limits(ex)
        if d.exhausted or ex.facts.get(_QUEUES.get(d.name, ""), 0.0) >= CREDITS_FULL
    ]
    if not full:
        return None
    limit, last = max(full, key=lambda f: (f[0].place, f[1].busy))
    before = [(at, d) for at, d in full if at.place < limit.place]
    beside = [(at, d) for at, d in full if at.place == limit.place and d is not last]
    said = f"{_capital(limit.name)} {limit.be} the bottleneck: {_held(last)}"
    if beside:
        said += f"; full as well: {_listed(beside)}"
    if before:
        said += f"; the queues before {'them' if limit.be == 'are' else 'it'} fill up, too: {_listed(before)}"
    elif not beside:
        said += "".join(f", because {why}" for why in ex.reasons()[:1])
    marks = {at.part: WAITS for at, _ in before} | {at.part: BOTTLENECK for at, _ in [*beside, (limit, last)]}
    return Verdict(said + ".", marks=marks)


def _held(d: Domain) -> str:
    said = f"{short(d.held)} of {short(d.credits)} entries are in use"
    return said + (f", each for {short(d.little_ns)} ns (unloaded {short(d.unloaded_ns)} ns)" if d.unloaded_ns else "")


def _listed(full: Sequence[tuple[_Limit, Domain]]) -> str:
    """Full domains in words, the last of them on the way to memory first."""
    ordered = sorted(full, key=lambda f: -f[0].place)
    return _joined([f"{at.name} ({short(d.held)} of {short(d.credits)})" for at, d in ordered])


def _joined(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _lost(ex: Explanation) -> str:
    share = ex.facts.get("lost_share", 0.0)
    return f", and {100 * share:.3g} % of the offered packets are lost" if share > 0 else ""


def _busy_cores(ex: Explanation) -> Verdict | None:
    share = ex.facts.get("cores_busy", 0.0)
    if share <= CORES_BUSY:
        return None
    if ex.waits_for_device():
        said = f"The cores wait {ex.for_the_device()}{_lost(ex)}."
        return Verdict(said, marks={"device": BOTTLENECK, "cores": WAITS}, busy_cores=True)
    if ex.waits_for_memory():
        said = f"The cores wait for memory, which is the bottleneck{_lost(ex)}."
        return Verdict(said, marks={"memory": BOTTLENECK, "cores": WAITS}, busy_cores=True)
    said = f"The cores are the bottleneck: they are busy {100 * share:.0f} % of the time{_lost(ex)}."
    return Verdict(said, marks={"cores": BOTTLENECK}, busy_cores=True)


def _full_credits(ex: Explanation) -> Verdict | None:
    full = [(limit, ex.facts[fact]) for fact, limit in _CREDITS.items() if fact in ex.full_credits()]
    if not full:
        return None
    (limit, share), *others = sorted(full, key=lambda f: (-f[0].place, -f[1]))
    said = f"{_capital(limit.name)} {limit.be} the bottleneck: {100 * share:.0f} % of them are in use"
    if others:
        said += f"; full as well: {_joined([f'{at.name} ({100 * of:.0f} %)' for at, of in others])}"
    else:
        said += "".join(f", because {why}" for why in ex.reasons()[:1])
    marks = {at.part: WAITS if at.place < limit.place else BOTTLENECK for at, _ in others}
    return Verdict(said + ".", marks=marks | {limit.part: BOTTLENECK})


def _nothing_full(ex: Explanation) -> Verdict:
    """The verdict on a host no part of which is full: the fullest part, and the first reason why requests wait."""
    used = [(d.used, limit) for limit, d in _limits(ex) if d.used is not None]
    used += [(ex.facts[fact], limit) for fact, limit in (_SERVERS | _CREDITS).items() if fact in ex.facts]
    if not used:
        return Verdict("No part of the host is full.")
    share, fullest = max(used, key=lambda u: u[0])
    said = f"No part of the host is full; the fullest, {fullest.name}, is at {100 * share:.0f} %"
    said += "".join(f", and {why}" for why in ex.reasons()[:1])
    return Verdict(said + ".", marks={fullest.part: FULLEST} if share >= _MARKED else {})
