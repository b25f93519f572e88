"""Contents of an explanation: domains, estimates, regime and reasons. Real counters or a simulated run supply the
contents."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from .. import tenants
from ..drops import LINK_FULL
from ..intervals import Interval
from ..intervals import text as distance
from ..model import domains as read_domains

if TYPE_CHECKING:
    from ..results import Table

# Latency above the unloaded one, and losses, up to these values count as none (as section 2 of the paper reads its
# plots).
UNAFFECTED = 0.03
# Throughput in GB/s below which traffic of a recorded machine counts as background; the paper's own background is 0.2
# to 0.6 GB/s.
BACKGROUND_GBS = 0.5
# Mean number of a domain's entries in use from which on cores use the memory however few lines they move. A core that waits for each
# line holds an entry nearly all the time. Assumed.
WAITS = 0.5
# Share of the lines of cores and devices that DRAM moves, below which DRAM slows none of them down. Assumed.
FROM_DRAM = 0.05
# Share of line fill buffers in use from which on a moment with all of them in use is no exception. Assumed.
OFTEN = 0.5
# Headroom of credits beyond which credits count as unused, because the number would have no meaning.
AMPLE = 10.0
# Share of credits in use up to which credits are idle and limit no traffic.
IDLE = 0.05
# Share of credits in use from which they bound what takes them; those that return wait for the next sender for the rest.
CREDITS_FULL = 0.85
# Share of the lines at memory controllers that waits in front of their queues from which on the channels are full, and the least
# share of time that the queues are full with it; a burst now and then leaves them idle for the rest. Both assumed.
IN_FRONT = 1 / 3
FULL_WITH_IT = 0.25
# Share of busy time above which cores are the limit.
CORES_BUSY = 0.95
# Share of its busy time that a core spends on packets, below which it waits for a full device if others than cores lose the
# packets, and whoever loses them. The rest of a core that is too slow is the work on its rings, which is no service.
SERVING = 0.9
SERVING_ALONE = 0.5

TERMS = {
    "switching": "turning the channel",
    "write_hol": "write head-of-line blocking",
    "read_hol": "read head-of-line blocking",
    "top_of_queue": "opening rows (row misses and conflicts)",
    "cha_admission": "admission at the CHA",
}
#: Rates of DRAM, each with a verb.
_RATES = {"mem_read_gbs": "reads", "mem_write_gbs": "writes"}
#: Share of the lines that DRAM moves from which those of no tenant are told.
BACKGROUND_SHARE = 0.01


@dataclass
class Domain:
    """The credits of one kind of sender. Rates and credits cover all senders of the kind together."""

    name: str
    traffic: str  # c2m, p2m, or shared where both kinds of traffic pass
    credits: float | None  # None: unlimited
    held: float
    rate_gbs: float
    direct_ns: float | None = None
    unloaded_ns: float | None = None
    note: str = ""
    #: 95 % intervals of `held`, `rate_gbs`, `little_ns` and `direct_ns`, where they are known.
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    little_ns: float = field(init=False, default=0.0)
    bound_gbs: float | None = field(init=False, default=None)
    used: float | None = field(init=False, default=None)
    exhausted: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        if self.credits is None:
            self.little_ns = self.held * 64 / self.rate_gbs
            return
        measured = {"name": self.name, "credits": self.credits, "occupancy": self.held, "rate_gbs": self.rate_gbs}
        (reading,) = read_domains([measured])["domains"]
        self.little_ns, self.bound_gbs = reading["latency_ns"], reading["bound_gbs"]
        self.used, self.exhausted = reading["used"], reading["exhausted"]

    @property
    def busy(self) -> float:
        """The share of the credits in use, from 0 to 1; 0 where credits are unlimited."""
        return self.used or 0.0

    @property
    def inflation(self) -> float | None:
        """Ratio of the latency to the unloaded latency."""
        return self.little_ns / self.unloaded_ns if self.unloaded_ns else None


@dataclass
class Estimate:
    """Latency of a traffic class by the analytical formula, and the throughput that follows from it."""

    traffic: str
    terms: dict[str, float]
    latency_ns: float
    measured_ns: float | None
    estimate_gbs: float
    measured_gbs: float
    error_pct: float

    def dominant(self) -> tuple[str, float]:
        """The largest term other than the constant, and its share of these terms."""
        parts = {k: v for k, v in self.terms.items() if k != "constant"}
        name = max(parts, key=parts.__getitem__)
        total = sum(parts.values())
        return name, parts[name] / total if total > 0 else 0.0


@dataclass
class Explanation:
    """The explanation of one run or recording."""

    title: str
    domains: list[Domain]
    estimates: list[Estimate]
    facts: dict[str, float]  # values that the reasons use, by name; unknown values are absent
    intervals: dict[str, Interval] = field(default_factory=dict)  # 95 % intervals of facts, where they are known
    missing: list[str] = field(default_factory=list)  # parts that were not measured, in words
    # Limits of the parts that were measured, and warnings of the run.
    notes: list[str] = field(default_factory=list)
    unmeasured: set[str] = field(default_factory=set)  # c2m or p2m, where nothing is known of that traffic
    path: list[tuple[str, str, float]] = field(default_factory=list)  # (path, segment, mean ns) of a simulated run
    losses: list[str] = field(default_factory=list)  # packets lost in a simulated run: number, place, cause
    causes: dict[str, float] = field(default_factory=dict)  # causes of losses, with their shares of the lost packets
    network_losses: int = 0  # packets lost between the senders and the host
    busy_cores: dict[str, tuple[int, int]] = field(default_factory=dict)  # by tenant: cores that never idle, and all
    busy_nic_threads: dict[str, tuple[int, int]] = field(default_factory=dict)  # the same of the threads of its CC-NIC
    relief: dict[str, str] = field(default_factory=dict)  # by tenant: what relieves its busy cores
    nic_relief: dict[str, str] = field(default_factory=dict)  # the same of the threads of its CC-NIC
    serving: dict[str, float] = field(default_factory=dict)  # by tenant: share of busy time spent on packets
    waiting_reads: dict[str, float] = field(
        default_factory=dict
    )  # by tenant: a core's reads that wait longer than unloaded
    # Of each closed loop, what is kept under way, with number and key, and its class of traffic: "p2m", or "" for both.
    closed_loops: list[tuple[str, str]] = field(default_factory=list)
    tenants: Table | None = None  # one row per tenant of a simulated run with two or more tenants

    def of(self, traffic: str) -> list[Domain]:
        return [d for d in self.domains if d.traffic == traffic]

    def binding(self, traffic: str) -> Domain | None:
        """The domain whose credits allow the class the lowest throughput, among the domains that are not idle."""
        bounds = [(d.bound_gbs, d) for d in self.of(traffic) if d.bound_gbs is not None and d.busy > IDLE]
        return min(bounds, key=lambda b: b[0], default=(0.0, None))[1]

    @property
    def slowed(self) -> list[Domain]:
        """Domains of cores and devices whose latency exceeds the unloaded latency, the longest wait first."""
        found = filter(_inflated, self.of("c2m") + self.of("p2m"))
        return sorted(found, key=lambda d: (d.unloaded_ns or 0.0) - d.little_ns)

    @property
    def regime(self) -> str:
        """The regime: `red`, `blue` or `calm`; `cores alone` or `devices alone` where only one side has traffic;
        `cores busy` or `idle` where neither side has any; `not judged` where one of the two sides was not recorded."""
        cores = [d for d in self.of("c2m") if d.rate_gbs >= BACKGROUND_GBS or d.held >= WAITS]
        devices = [d for d in self.of("p2m") if d.rate_gbs >= BACKGROUND_GBS]
        if (not cores and "c2m" in self.unmeasured) or (not devices and "p2m" in self.unmeasured):
            return "not judged"
        if not cores and not devices:
            return "cores busy" if self.facts.get("cores_busy", 0.0) > CORES_BUSY else "idle"
        if not cores or not devices:
            return "cores alone" if cores else "devices alone"
        if any(d.exhausted and (d.inflation is None or d.inflation > 1 + UNAFFECTED) for d in devices):
            return "red"
        return "blue" if any(_inflated(d) for d in cores) else "calm"

    def reasons(self) -> list[str]:
        """Reasons why requests take longer than unloaded, the weightiest first, each a clause with its number; empty
        where no request does."""
        f: dict[str, float] = self.facts
        found: list[str] = []
        if self.regime in ("idle", "cores busy") or not self.slowed:
            return found
        core = next((e for e in self.estimates if e.traffic.startswith("c2m")), None)
        terms = {name: ns for name, ns in core.terms.items() if name in TERMS} if core else {}
        for name, ns in sorted(terms.items(), key=lambda t: -t[1]):
            if ns >= max(1.0, 0.1 * sum(terms.values())):
                found.append(f"{TERMS[name]} adds {ns:.0f} ns to core reads")
        dram = self._uses_dram()
        if dram and core is None and f.get("dram_read_ns", 0) > f.get("unloaded_read_ns", float("inf")):
            found.append(
                f"a read takes {f['dram_read_ns']:.0f} ns in the memory controller and DRAM alone, and a core's unloaded "
                f"one {f['unloaded_read_ns']:.0f} ns in all"
            )
        if dram and f.get("row_miss_ratio", 0) > 0.05:
            found.append(f"{100 * f['row_miss_ratio']:.0f} % of the lines read open a row")
        if dram and f.get("bank_dev_15_frac", 0) > 0.25:
            found.append(
                f"banks are loaded unevenly (1.5 times the mean in {100 * f['bank_dev_15_frac']:.0f} % of samples)"
            )
        if f.get("wpq_full", 0) > 0.05:
            found.append(
                f"the write queues are full {100 * f['wpq_full']:.0f} % of the time, so writes wait at the CHA"
            )
        waits = [
            f"{who} {f[key]:.0f} ns"
            for key, who in (("admission_c2m_ns", "cores"), ("admission_p2m_ns", "devices"))
            if f.get(key, 0) > 10
        ]
        if waits:
            found.append(f"the CHA's buffers are full: a request waits for admission ({', '.join(waits)})")
        return found

    def _uses_dram(self) -> bool:
        """Whether DRAM moves more than a few of the lines of cores and devices, as far as its rates are known."""
        if not any(key in self.facts for key in _RATES):
            return True
        lines = sum(max((d.rate_gbs for d in self.of(traffic)), default=0.0) for traffic in ("c2m", "p2m"))
        return sum(self.facts.get(key, 0.0) for key in _RATES) >= FROM_DRAM * lines

    def _repr_html_(self) -> str:
        from ..notebook import explanation

        return explanation(self)

    def paragraph(self) -> str:
        """The whole explanation in a few sentences."""
        said = [self._waits() if self.regime == "calm" else _OPENING[self.regime].format(waits=self._slow_reads())]
        if self.lossy:
            said[0] = said[0].replace(_DEVICES_DO_NOT, ".")
            said += self._lost_packets()
        for traffic, who in (("c2m", "Core"), ("p2m", "Device")):
            d = self.binding(traffic)
            if d is None or d.credits is None:
                said += [
                    f"{who} traffic holds {d.held:.0f} entries of the {d.name} for {d.little_ns:.0f} ns each and moves "
                    f"{d.rate_gbs:.1f} GB/s."
                    for d in self.of(traffic)
                    if d.credits is None and d.name in ("line fill buffers", "IIO write buffer", "IIO read buffer")
                ]
                continue
            state = (
                f"{who} traffic holds {d.held:.0f} of {d.credits:.0f} credits of its {d.name} for {d.little_ns:.0f} ns "
                f"each and moves {d.rate_gbs:.1f} GB/s"
            )
            if d.unloaded_ns:
                state += f" (unloaded {d.unloaded_ns:.0f} ns{_FROM_CACHES if _holds_hits(d) else ''})"
            if d.exhausted:
                state += ": its credits are exhausted, so every added nanosecond costs throughput"
            elif d.busy >= OFTEN and d.name == "line fill buffers" and self.facts.get("lfb_peak_share", 0.0) >= 1:
                state += ": at times all are in use, so added latency costs throughput"
            elif d.busy < 0.9 and d.held:
                more = d.credits / d.held - 1
                state += f": {d.credits - d.held:.0f} credits are spare"
                if more <= AMPLE:
                    state += f", which mask {100 * more:.0f} % more latency"
            said.append(state + ".")
        if not self.domains:
            said += self._memory()
        said += self._full_parts() + self._busy_cores() + self._closed_loops()
        said += ([] if self.lossy else self._lost_packets()) + self._by_tenant()
        why = self.reasons()
        if why:
            said.append(f"Why: {'; '.join(why)}.")
        if "predicted_c2m_gbs" in self.facts and "c2m_gbs" in self.facts:
            off = 100 * (self.facts["predicted_c2m_gbs"] / self.facts["c2m_gbs"] - 1)
            said.append(
                f"From platform and traffic alone, the closed form expects {self.facts['predicted_c2m_gbs']:.1f} GB/s "
                f"for the cores, {off:+.0f} % from the {self._sure('c2m_gbs')} GB/s that came out."
            )
        if any(self.facts.get(key, 0.0) > LINK_FULL for key in _TO_MEMORY) and (
            self.estimates or "predicted_c2m_gbs" in self.facts
        ):
            said.append(
                "Neither the closed form nor the formula knows the link to memory (caches.llc.quirks.memory_link)."
            )
        for e in self.estimates:
            said.append(
                f"The formula puts {e.traffic} at {e.latency_ns:.0f} ns and {e.estimate_gbs:.1f} GB/s, "
                f"{e.error_pct:+.0f} % from what was measured."
            )
        return " ".join(said)

    def _memory(self) -> list[str]:
        """A sentence about the rates of DRAM, where they were recorded."""
        rates = [f"{verb} {self.facts[f]:.1f} GB/s" for f, verb in _RATES.items() if f in self.facts]
        used = self.facts.get("mem_utilisation")
        share = "" if used is None else f", {100 * used:.0f} % of what its channels carry"
        return [f"Memory {' and '.join(rates)}{share}."] if rates else []

    def _sure(self, fact: str, times: float = 1) -> str:
        """A fact, `times` as large, and the distance of the ends of its interval where that is known."""
        value, ends = times * self.facts[fact], self.intervals.get(fact)
        scaled = None if ends is None else (times * ends[0], times * ends[1])
        return f"{value:.3g} {distance(value, scaled)}".rstrip()

    def _waits(self) -> str:
        """Domains whose requests wait longer than unloaded, where the host is in neither the red nor the blue regime."""
        if self.slowed:
            d = self.slowed[0]
            return (
                f"Neither the red nor the blue regime. The {d.name} waits most: {d.little_ns:.1f} ns, "
                f"{d.inflation:.1f} times the unloaded {d.unloaded_ns:.1f} ns."
            )
        if all(any(d.inflation is not None for d in self.of(traffic)) for traffic in ("c2m", "p2m")):
            return "Neither cores nor devices wait noticeably longer than unloaded."
        return "Neither the red nor the blue regime. Not every unloaded latency is known, so waits cannot be judged."

    def _slow_reads(self) -> str:
        """Latencies of the core requests that are slowest, where the domain that binds cores does not tell them."""
        d, slowed = self.binding("c2m"), [d for d in self.slowed if d.traffic == "c2m"]
        if not slowed or (d is not None and _inflated(d)):
            return ""
        return f" ({slowed[0].name}: {slowed[0].little_ns:.1f} ns, unloaded {slowed[0].unloaded_ns:.1f} ns)"

    @property
    def lossy(self) -> bool:
        """Whether so many packets are lost that the loss is part of the verdict."""
        return self.facts.get("lost_share", 0.0) > UNAFFECTED or bool(self.network_losses)

    @property
    def verdict(self) -> str:
        """The regime, and the loss of packets where that is part of the verdict."""
        share = self.facts.get("lost_share", 0.0)
        if share > UNAFFECTED:
            return f"{self.regime}, {100 * share:.3g} % of the packets lost"
        return f"{self.regime}, segments lost in the network" if self.network_losses else self.regime

    def _full(self, parts: Mapping[str, str], least: float) -> dict[str, str]:
        """Parts that are in use for at least this share, by fact."""
        f = self.facts
        found = {key: part for key, part in parts.items() if f.get(key, 0) >= least}
        if "pcie_up_util" in found or "pcie_down_util" in found:
            found.pop("pcie_busiest_util", None)
        if max(f.get("pcie_up_util", 0), f.get("pcie_down_util", 0)) >= LINK_FULL:
            found.pop("pcie_tags_util", None)  # the links of all ports are full, and tags wait for them
        return found

    def full_credits(self) -> list[str]:
        """Facts of the credits and registers that are full."""
        return list(self._full(_CREDITS, CREDITS_FULL))

    def _full_parts(self, without: Container[str] = ()) -> list[str]:
        """Sentences about the parts of the host that are full, with their keys, ``without`` the credits of these facts."""
        f = self.facts
        said = [
            f"{server} is {100 * f[key]:.0f} % busy: it bounds what passes through it, whatever credits are left."
            for key, server in self._full(_SERVERS, LINK_FULL).items()
        ]
        for key, credits in self._full(_CREDITS, CREDITS_FULL).items():
            if key == "pcie_tags_util" and f.get("pcie_busiest_util", 0) >= LINK_FULL:
                so = "if that device's link is the full one, they wait for it and bound nothing"
            else:
                so = "they bound what passes through them"
            if key not in without:
                said.append(f"{credits} are {100 * f[key]:.0f} % in use: {so}.")
        if so := self._channels_full():
            said.append(f"The memory channels (memory.channels, memory.standard) are the limit: {so}.")
        return said

    def _channels_full(self) -> str:
        """Clause that says how full the memory channels are; empty where they are not."""
        f = self.facts
        if "mem_channel_util" not in f:
            return ""
        bus = f"the data bus of the busiest {100 * f['mem_channel_util']:.0f} % of the time carrying lines"
        full = {"read": f.get("rpq_full", 0), "write": f.get("wpq_full", 0)}
        if max(full.values()) >= CREDITS_FULL:
            which = " and ".join(f"{name} queues {100 * x:.0f} %" for name, x in full.items() if x >= CREDITS_FULL)
            return f"their {which} of the time full, {bus}"
        if f.get("in_front_of_queues", 0) >= IN_FRONT and sum(full.values()) >= FULL_WITH_IT:
            return f"{100 * f['in_front_of_queues']:.0f} % of the lines at their controllers wait in front of the queues, {bus}"
        return ""

    def waits_for_memory(self, tenant: str | None = None) -> bool:
        """Whether the cores of a tenant, or of all tenants, are busy because they wait for memory, a part of which is full."""
        waiting = [reads for name, reads in self.waiting_reads.items() if tenant in (None, name)]
        links = any(self.facts.get(key, 0.0) >= LINK_FULL for key in _TO_MEMORY)
        return bool(links or self._channels_full()) and bool(waiting) and min(waiting) >= WAITS

    def waits_for_device(self, tenant: str | None = None) -> bool:
        """Whether the cores of a tenant, or of all tenants, are busy because they wait for a device that is full."""
        serving = [share for name, share in self.serving.items() if tenant in (None, name)]
        if not serving or not self._full_of_device():
            return False
        others_lose = self.facts.get("lost_share", 0.0) > UNAFFECTED and self.facts.get("lost_by_cores", 1.0) < 0.5
        return max(serving) < (SERVING if others_lose else SERVING_ALONE)

    def _full_of_device(self) -> list[tuple[str, str]]:
        """The full parts that a core with packets to send waits for, each with its verb."""
        found = [(f"the {d.name}", "is") for d in self.domains if d.traffic == "p2m" and d.exhausted]
        for parts, least, be in ((_SERVERS, LINK_FULL, "is"), (_CREDITS, CREDITS_FULL, "are")):
            full = (part for key, part in self._full(parts, least).items() if key in _OF_SENDING)
            found += [(part[:1].lower() + part[1:], be) for part in full]
        return found

    def for_the_device(self) -> str:
        """The end of a sentence about cores that wait for the device, with the parts that are the limit."""
        *before, (last, be) = self._full_of_device()
        listed = f"{', '.join(part for part, _ in before)} and {last} are" if before else f"{last} {be}"
        return f"for the device: {listed} the limit"

    def waits_for(self, tenant: str | None = None) -> str:
        """The end of a sentence about the busy cores of a tenant, or of all tenants, that mostly wait; empty where they do not."""
        if self.waits_for_device(tenant):
            return self.for_the_device()
        return "for memory" if self.waits_for_memory(tenant) else ""

    def _busy_cores(self) -> list[str]:
        wait = self.waits_for()
        some = any(map(self.waits_for, {*self.serving, *self.waiting_reads}))
        if self.facts.get("cores_busy", 0.0) > CORES_BUSY and bool(wait) == some:
            so = f"but mostly wait {wait}" if wait else "so they are the limit"
            return [f"The cores are busy {self._sure('cores_busy', 100)} % of the time, {so}."]
        said = []
        for tenant, (n, of) in self.busy_cores.items():
            if n and (wait := self.waits_for(tenant)):
                said.append(
                    f"{_all_the_time('core', tenant, n, of)}, but mostly {'wait' if n > 1 else 'waits'} {wait}."
                )
            elif n:
                said.append(f"{_all_the_time('core', tenant, n, of)} and {_bound(n, of)}; {self.relief[tenant]}.")
        return said + [
            f"{_all_the_time('NIC thread', tenant, n, of)} and {_bound(n, of)}; {self.nic_relief[tenant]}."
            for tenant, (n, of) in self.busy_nic_threads.items()
            if n
        ]

    def _closed_loops(self) -> list[str]:
        """Sentences about closed loops, which are the limit where no part on the way is full."""
        exhausted = {d.traffic for d in self.domains if d.exhausted}
        full = {
            "p2m": "p2m" in exhausted or bool(self._full_parts(without=_OF_CORES)),
            "": bool(exhausted) or bool(self._full_parts() + self._busy_cores()),
        }
        return [
            f"{loop}, since no part on the way is full." for loop, traffic in self.closed_loops if not full[traffic]
        ]

    def _lost_packets(self) -> list[str]:
        share = self.facts.get("lost_share", 0.0)
        if self.network_losses and share <= 0:
            return [f"{self.network_losses:,} segments are lost in the network.", *self.causes]
        if share <= 0:
            return []
        said = [f"{self._sure('lost_share', 100)} % of the offered packets are lost."]
        if len(self.causes) == 1:
            return said + list(self.causes)
        return said + [f"{why.rstrip('.')}: {100 * part:.3g} % of them." for why, part in self.causes.items()]

    def _by_tenant(self) -> list[str]:
        """Sentences about tenants: shares of DRAM traffic, lost packets, and cores that are busy all the time."""
        found = tenants.rows(self.tenants) if self.tenants is not None else []
        shares = sorted(((r["dram_share"] or 0.0, r["tenant"]) for r in found), reverse=True)
        said = []
        if shares and shares[0][0] > 0:
            if (rest := 1.0 - sum(share for share, _ in shares)) >= BACKGROUND_SHARE:
                shares.append((rest, "no tenant, but to devices and the system"))
            *parts, last = (f"{100 * share:.0f} % belong to {name}" for share, name in shares)
            said.append(f"Of the lines that DRAM moves, {', '.join(parts)} and {last}.")
        for r in found:
            if (r["drop_rate"] or 0.0) > 0:
                said.append(f"{r['tenant']} loses {100 * r['drop_rate']:.3g} % of its packets.")
            # Cores without packets of their own never idle, and have no limit to name.
            if r["offered_mops"] is not None and (r["cpu_utilisation"] or 0.0) > CORES_BUSY:
                said.append(f"The cores of {r['tenant']} are busy {100 * r['cpu_utilisation']:.0f} % of the time.")
        return said

    def as_dict(self) -> dict[str, Any]:
        """The explanation as plain data."""
        return {
            "title": self.title,
            "regime": self.regime,
            "verdict": self.verdict,
            "domains": [asdict(d) for d in self.domains],
            "bottleneck": {t: d.name for t in ("c2m", "p2m") if (d := self.binding(t))},
            "estimates": [asdict(e) for e in self.estimates],
            "facts": self.facts,
            "intervals": {name: list(ends) for name, ends in self.intervals.items()},
            "reasons": self.reasons(),
            "missing": self.missing,
            "notes": self.notes,
            "path": [list(p) for p in self.path],
            "losses": self.losses,
            "causes": self.causes,
            "tenants": tenants.rows(self.tenants) if self.tenants is not None else [],
            "paragraph": self.paragraph(),
        }


def _all_the_time(what: str, tenant: str, n: int, of: int) -> str:
    """The start of a sentence about ``n`` of the ``of`` cores or threads of a tenant, which are busy all the time."""
    if of == 1:
        who = f"The only {what}"
    else:
        who = f"The {of} {what}s" if n == of else f"{n} of the {of} {what}s"
    return f"{who} of {tenant} {'are' if n > 1 else 'is'} busy all the time"


def _bound(n: int, of: int) -> str:
    return f"{'bound' if n > 1 else 'bounds'} what comes to {'them' if of > 1 else 'it'}"


# Servers that every line of a class passes, by the fact that says which share of time they are busy.
_SERVERS = {
    "pcie_up_util": "The PCIe link into the host",
    "pcie_down_util": "The PCIe link out of the host",
    "pcie_busiest_util": "The busiest PCIe link",
    "iio_path_util": "The path from the IIO to the home agent (iio.line_interval)",
    "link_utilisation": "The link between the nodes",
    "memory_link_read_util": "The link from memory to the cores (caches.llc.quirks.memory_link.read)",
    "memory_link_write_util": "The link from the caches to memory (caches.llc.quirks.memory_link.write)",
    "nic_engine_util": "The receive engine of the integrated NIC (nic.line_interval)",
    "wire_in_util": "The network link to the host (link)",
    "wire_out_util": "The network link from the host (link)",
    "ssd_media_util": "The medium of an SSD (media_rate)",
}
# Servers and credits that a NIC needs to send packets, for which a core with packets to send waits.
_OF_SENDING = {
    "pcie_up_util", "pcie_down_util", "pcie_busiest_util", "iio_path_util", "wire_out_util", "pcie_posted_util",
    "pcie_non_posted_util", "pcie_tags_util", "nic_transmit_util",
}  # fmt: skip
# Credits of cores, which lines of devices do not take.
_OF_CORES = ("l2_mshr_util", "lfb_fullest_util", "prefetch_util")
# Credits that every line of a class takes, by the fact that says which share is in use.
_CREDITS = {
    "pcie_posted_util": "A PCIe port's posted credits (pcie.posted_lines)",
    "pcie_non_posted_util": "A PCIe port's non-posted credits (pcie.non_posted)",
    "pcie_tags_util": "A device's PCIe tags (tags)",
    "nic_receive_util": "The received packets that a NIC may have in flight (peripheral.rings.receive_packets)",
    "nic_transmit_util": "The frames that a NIC may be reading (peripheral.rings.quirks.transmit_packets)",
    "cha_wait_util": "The home agent's entries for writes that wait for memory (caches.llc.write_buffer)",
    "llc_mshr_util": "The LLC's miss status holding registers (caches.llc.quirks.mshrs)",
    "l2_mshr_util": "The miss status holding registers of an L2 (core.quirks.l2_mshrs)",
    "lfb_fullest_util": "The line fill buffers of the fullest core (core.lfb)",
    "prefetch_util": "The prefetchers' requests (core.prefetch.credits)",
    "link_credits_util": "A node's credits of the link between the nodes (nodes.link.credits)",
}
_TO_MEMORY = ("memory_link_read_util", "memory_link_write_util")
_DEVICES_DO_NOT = ", so cores may lose throughput and devices do not."

_OPENING = {
    "not judged": "Without counters of both cores and devices, the regime cannot be judged.",
    "red": "Red regime: the device's credits are exhausted, so both cores and devices lose throughput.",
    "blue": "Blue regime: core requests take longer than unloaded{waits} while the device has credits to spare, so cores may lose "
    "throughput and devices do not.",
    "cores busy": "Neither cores nor devices move lines worth speaking of: the cores execute instructions all the time.",
    "cores alone": "Only cores use the memory, so there is no contention with devices to judge.",
    "devices alone": "Only devices use the memory, so there is no contention with cores to judge.",
    "idle": "Neither cores nor devices move lines worth speaking of.",
}


#: What line fill buffers with a shorter mean residence than that of an unloaded read from memory have held as well.
_FROM_CACHES = " from memory, and less for lines of caches and prefetches"


def _holds_hits(d: Domain) -> bool:
    """Whether these are line fill buffers that many lines hold for less time than an unloaded read from memory takes."""
    return d.name == "line fill buffers" and d.inflation is not None and d.inflation < 1 - UNAFFECTED


def _inflated(d: Domain) -> bool:
    return d.inflation is not None and d.inflation > 1 + UNAFFECTED


def estimate(
    traffic: str,
    counters: dict[str, float],
    hw: dict[str, float],
    held: float,
    measured_gbs: float,
    measured_ns: float | None,
    admission_ns: float = 0.0,
) -> Estimate:
    """The formula of ``traffic`` compared with the measured values, with the credits that were in use."""
    from ..model import formula

    f = formula(
        traffic, counters, hardware=hw, credits=held, measured_gbs=measured_gbs, cha_admission_ns=max(admission_ns, 0.0)
    )
    return Estimate(traffic, f["terms"], f["latency_ns"], measured_ns, f["estimate_gbs"], measured_gbs, f["error_pct"])
