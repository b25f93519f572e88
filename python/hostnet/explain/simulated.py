"""An explanation from a simulated run's result."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from typing import Any

from .. import drops, intervals, tenants
from .._core import version
from ..errors import HostnetError
from ..intervals import Interval
from ..model import channels_per_used, classes_of, core_class, core_unloaded_ns, counters_of, hardware_of
from ..replicate import of_first
from ..results import Result
from . import advice
from .explanation import CORES_BUSY, Domain, Explanation, estimate

# (domain, traffic, metric prefix, throughput, unloaded latency)
_BUFFERS = (
    ("IIO write buffer", "p2m", "iio_write", "p2m_write_unloaded_ns"),
    ("IIO read buffer", "p2m", "iio_read", "p2m_read_unloaded_ns"),
)
_FACTS = {
    "mem_read_gbs": "mem_read_gbs",
    "mem_write_gbs": "mem_write_gbs",
    "mem_utilisation": "mem_utilisation",
    "rpq_occupancy": "rpq_occ",
    "wpq_full": "wpq_full_frac",
    "row_miss_ratio": "row_miss_ratio",
    "bank_dev_15_frac": "bank_dev_15_frac",
    "waiting_writes": "cha_wait_writes",
    "admission_c2m_ns": "cha_adm_c2m_ns",
    "admission_p2m_ns": "cha_adm_p2m_ns",
    "c2m_gbs": "c2m_gbs",
    "p2m_gbs": "p2m_gbs",
    "predicted_c2m_gbs": "predicted_c2m_gbs",
    "predicted_p2m_gbs": "predicted_p2m_gbs",
    "dram_read_ns": "dram_lat_avg_ns",
    "unloaded_read_ns": "c2m_read_unloaded_ns",
    "pcie_up_util": "pcie_up_util",
    "pcie_down_util": "pcie_down_util",
    "iio_path_util": "iio_path_util",
    "pcie_busiest_util": "pcie_busiest_util",
    "pcie_posted_util": "pcie_posted_util",
    "pcie_non_posted_util": "pcie_non_posted_util",
    "pcie_tags_util": "pcie_tags_util",
    "memory_link_read_util": "memory_link_read_util",
    "memory_link_write_util": "memory_link_write_util",
    "nic_engine_util": "nic_engine_util",
    "wire_in_util": "wire_in_util",
    "nic_receive_util": "nic_receive_util",
    "nic_transmit_util": "nic_transmit_util",
    "wire_out_util": "wire_out_util",
    "ssd_media_util": "ssd_media_util",
    "cha_wait_util": "cha_wait_util",
    "llc_mshr_util": "llc_mshr_util",
    "l2_mshr_util": "l2_mshr_util",
    "lfb_fullest_util": "lfb_fullest_util",
    "prefetch_util": "prefetch_util",
    "mem_channel_util": "mem_channel_util",
    "rpq_full": "rpq_full_frac",
    "link_utilisation": "link_utilisation",
    "link_credits_util": "link_credits_util",
    "cha_dram_read_ns": "cha_dram_read_c2m_ns",
    "cha_mc_write_p2m_ns": "cha_mc_write_p2m_ns",
}


# Facts that are means over all memory channels: those of the channels over which lines are spread say what limits a node.
_OF_CHANNELS = ("mem_utilisation", "rpq_occupancy", "wpq_full", "rpq_full")

# Share of its credits by which the fullest core or I/O controller differs from all together before it is named.
_UNEQUAL = 0.1


def _no_domains(result: Result) -> str:
    """Sentence about a result without the host network's metrics."""
    name = result.spec.get("name", "this result")
    if (result.spec.get("run") or {}).get("load") == "none":
        return f'{name}: run.load = "none" puts no load on the host, so there is nothing to explain; choose another.'
    if result.version == version():
        return f"{name}: nothing in this run used a core's line fill buffers or a device's credits, so there is nothing to explain."
    return f"{name}: this result carries no domain metrics; run its scenario again with this version of hostnet."


def explain(result: Result) -> Explanation:
    """Explain a run. Raises HostnetError when the run has none of the host network's metrics."""
    m = result.metrics
    # Cores that hit their own caches alone take no line fill buffer, and their runs have the home agent's credits.
    if all(m.get(name) is None for name in ("lfb_occ", "iio_write_occ", "iio_read_occ", "cha_wait_credits")):
        raise HostnetError(_no_domains(result))
    facts = {name: value for name, metric in _FACTS.items() if (value := m.get(metric)) is not None}
    facts |= {name: facts[name] * channels_per_used(m) for name in _OF_CHANNELS if name in facts}
    facts |= {name: min(facts[name], 1.0) for name in ("wpq_full", "rpq_full") if name in facts}
    write_buffer = _has_write_buffer(result.spec)
    if not write_buffer:
        facts.pop("cha_wait_util", None)
    memory = (result.spec.get("platform") or {}).get("memory") or {}
    if (share := _in_front_of_queues(result)) is not None:
        facts["in_front_of_queues"] = share
    if str(memory.get("page_policy")).startswith("closed"):  # every line opens a row on purpose, unloaded as well
        facts.pop("row_miss_ratio", None)
    of_packets = _of_packets(m, result.spec)
    facts |= {name: value for name, (value, _) in of_packets.items()}
    known = intervals.of(result.data)
    known_facts = {name: known[metric] for name, metric in _FACTS.items() if name in facts and metric in known}
    known_facts |= {
        name: _times(known_facts[name], channels_per_used(m)) for name in _OF_CHANNELS if name in known_facts
    }
    for name, (value, metric) in of_packets.items():
        if metric in known and (own := m[metric]):
            known_facts[name] = _times(known[metric], value / own)
    lost = drops.losses(result.data)
    cores, nic_threads = _busy(result), _busy(result, "nic")
    ex = Explanation(
        str(result.spec.get("name", "")),
        [],
        [],
        facts,
        known_facts,
        losses=[str(loss) for loss in lost],
        causes=drops.causes(lost),
        network_losses=sum(loss.count for loss in lost if loss.where.startswith("network")),
        busy_cores=_never_waiting(cores),
        busy_nic_threads=_never_waiting(nic_threads),
        relief={name: advice.of_cores(result.spec, i, cores[name]) for name, i in _found(result.spec, cores)},
        nic_relief={name: advice.of_nic_threads(result.spec, i) for name, i in _found(result.spec, nic_threads)},
        serving=_serving(result, cores),
        waiting_reads=_waiting_reads(result),
        closed_loops=_closed_loops(result),
        tenants=tenants.several(result.data),
        notes=[*result.warnings, *([said] if (said := of_first(result.data)) else [])],
    )
    core, device = classes_of(m)
    if core:
        _core(ex, result, known)
    if (peak := m.get("lfb_peak")) and (credits := m.get("lfb_credits")):
        ex.facts["lfb_peak_share"] = peak / credits
    held = max((d.busy for d in ex.of("c2m")), default=0.0)
    if facts.get("lfb_fullest_util", 0.0) < held + _UNEQUAL:  # the domain of all cores tells the same
        facts.pop("lfb_fullest_util", None)
    for name, traffic, prefix, unloaded in _BUFFERS:
        held, lat = m.get(f"{prefix}_occ"), m.get(f"{prefix}_little_ns")
        if device and held and held > 0 and lat:
            ex.domains.append(
                Domain(
                    name,
                    traffic,
                    credits_of_iio(result, prefix),
                    held,
                    held * 64 / lat,
                    direct_ns=m.get(f"{prefix}_lat_ns"),
                    unloaded_ns=m.get(unloaded),
                    intervals=_ends(
                        known, held=f"{prefix}_occ", little_ns=f"{prefix}_little_ns", direct_ns=f"{prefix}_lat_ns"
                    ),
                )
            )
            fullest = max(_controllers(result, name), key=lambda r: r["occupancy_avg"] / r["credits"], default=None)
            if fullest and fullest["occupancy_avg"] / fullest["credits"] > ex.domains[-1].busy + _UNEQUAL:
                ex.domains.append(_as_domain(fullest, fullest["domain"], traffic, m.get(unloaded)))
    if device:
        _device(ex, m, device)
    if "domains" in result.tables:
        rows = result.table("domains").to_dicts()
        _inside(ex, [r for r in rows if write_buffer or r["domain"] != "home agent write buffer"], m)
    _queues(ex, m, result.spec, known)
    # Stalls for memory count as busy time, so that this says something only of cores that miss no lines.
    if ex.regime == "idle" and "cores_busy" not in facts and _never_idle(result.spec):
        facts["cores_busy"] = 1.0
    if "paths" in result.tables:
        rows = result.table("paths").to_dicts()
        ex.path = [(r["path"], r["segment"], r["mean_ns"]) for r in rows if r["mean_ns"] is not None]
    return ex


def _ends(known: Mapping[str, Interval], times: float = 1, **metrics: str) -> dict[str, Interval]:
    """The known intervals of metrics, by what a domain calls them; that of `held` is `times` as large."""
    found = {name: known[metric] for name, metric in metrics.items() if metric in known}
    return {name: _times(ends, times) if name == "held" else ends for name, ends in found.items()}


def _times(ends: Interval, factor: float) -> Interval:
    return ends[0] * factor, ends[1] * factor


def _of_packets(m: Mapping[str, float | None], spec: Mapping[str, Any]) -> dict[str, tuple[float, str]]:
    """Shares of packets lost, of those that cores lose, and of time that cores are busy with packets, where the run has these
    metrics; each with the metric that it comes from."""
    lost = "packet_loss" if m.get("drop_rate") is None else "drop_rate"
    facts = {"lost_share": (m.get(lost), lost), "lost_by_cores": (m.get("drop_core_share"), "drop_core_share")}
    busy, net_busy = m.get("cores_busy"), m.get("net_busy")
    tenants = spec.get("tenant") or ()
    # The first core of a tenant with central dispatch serves no packets.
    cores = (m.get("cores") or 0.0) - sum(_dispatches(t) for t in tenants)
    receivers = sum(int(t.get("cores") or 0) for t in tenants if t["app"]["kind"] == "tcp_receive")
    if not any(t["app"]["kind"] in _POLLS for t in tenants):
        if m.get("cpu_utilisation") is not None:
            facts["cores_busy"] = m["cpu_utilisation"], "cpu_utilisation"
        elif busy is not None and cores > 0:
            facts["cores_busy"] = busy / cores, "cores_busy"
        elif net_busy is not None and receivers:
            facts["cores_busy"] = net_busy / receivers, "net_busy"
    return {name: (value, metric) for name, (value, metric) in facts.items() if value is not None}


def _dispatches(tenant: Mapping[str, Any]) -> bool:
    stack = tenant.get("stack")
    return isinstance(stack, Mapping) and stack.get("kind") == "dispatch"


def _busy(result: Result, side: str = "host") -> dict[str, list[float]]:
    """Of each tenant that handles packets, the share of time that each core on one side is busy, where that is known."""
    if "cores" not in result.tables or "tenants" not in result.tables:
        return {}
    handle = {r["tenant"] for r in result.table("tenants").to_dicts() if r["app"] not in _OWN_WORK}
    busy: dict[str, list[float]] = {}
    for row in result.table("cores").to_dicts():
        if row["tenant"] in handle and row.get("side", "host") == side and row.get("busy") is not None:
            busy.setdefault(row["tenant"], []).append(row["busy"])
    return busy


def _never_waiting(busy: Mapping[str, list[float]]) -> dict[str, tuple[int, int]]:
    """Of each tenant, the number of cores that are busy all the time, and of all."""
    return {tenant: (sum(share > CORES_BUSY for share in cores), len(cores)) for tenant, cores in busy.items()}


def _found(spec: Mapping[str, Any], names: Container[str]) -> list[tuple[str, int]]:
    """The tenants of these names, each with its place in the scenario."""
    return [(t["name"], i) for i, t in enumerate(spec.get("tenant") or ()) if t.get("name") in names]


def _serving(result: Result, busy: Mapping[str, list[float]]) -> dict[str, float]:
    """Of each tenant, the share of its cores' busy time that they spend on packets; in the rest they also wait for a ring."""
    found = {}
    for row in result.table("tenants").to_dicts() if busy else ():
        of = sum(busy.get(row["tenant"], ()))
        if of > 0 and row["service_mean_us"] is not None and row["throughput_mops"] is not None:
            found[row["tenant"]] = min(row["throughput_mops"] * row["service_mean_us"] / of, 1.0)
    return found


def _has_write_buffer(spec: Mapping[str, Any]) -> bool:
    """Whether `caches.llc.write_buffer` limits anything: with miss status holding registers it limits admitted write-backs alone."""
    llc = ((spec.get("platform") or {}).get("caches") or {}).get("llc") or {}
    quirks = llc.get("quirks") or {}
    return not quirks.get("mshrs") or quirks.get("writebacks") == "admitted"


def _in_front_of_queues(result: Result) -> float | None:
    """Of the lines at the memory controllers, the share that waits in front of their queues, where reads and writes wait there
    in one order; None for other controllers.

    A queue of such a controller may have room while requests wait: after each command one request enters, and only where
    both queues have room. The share of time that the queues are full then tells too little.
    """
    platform = result.spec.get("platform") or {}
    quirks = (platform.get("memory") or {}).get("quirks") or {}
    m = result.metrics
    if quirks.get("overflow") != "shared" or not {"paths", "domains"} <= set(result.tables):
        return None
    # By Little's law, reads that wait are their rate times their mean wait.
    rates = {row["domain"]: row["arrivals_per_us"] or 0.0 for row in result.table("domains").to_dicts()}
    before = sum(
        rates.get(f"path {row['path']}", 0.0) * (row["mean_ns"] or 0.0) / 1e3
        for row in result.table("paths").to_dicts()
        if row["segment"] == "mc_queue_wait" and row["path"].endswith("_read")
    )
    if not ((platform.get("caches") or {}).get("llc") or {}).get("quirks", {}).get("memory_link"):
        before += m.get("cha_wait_writes") or 0.0  # with a link, writes that wait for it count as well
    within = ((m.get("rpq_occ") or 0.0) + (m.get("wpq_occ") or 0.0)) * (m.get("channels") or 0.0)
    return before / (before + within) if before + within > 0 else None


def _waiting_reads(result: Result) -> dict[str, float]:
    """Of each tenant that handles packets, the mean number of line fill buffers of a core that wait longer than unloaded."""
    unloaded = result.metrics.get("c2m_read_unloaded_ns")
    if not unloaded or not {"cores", "tenants", "domains"} <= set(result.tables):
        return {}
    waiting = {}
    for row in result.table("domains").to_dicts():
        core = re.fullmatch(r"core (\d+) line fill buffers", row["domain"])
        if core and row["latency_ns"]:
            waiting[int(core[1])] = row["occupancy_avg"] * max(1 - unloaded / row["latency_ns"], 0.0)
    handle = {r["tenant"] for r in result.table("tenants").to_dicts() if r["app"] not in _OWN_WORK}
    of: dict[str, list[float]] = {}
    for row in result.table("cores").to_dicts():
        if row["tenant"] in handle and row.get("side", "host") == "host":
            of.setdefault(row["tenant"], []).append(waiting.get(row["core"], 0.0))
    return {tenant: sum(cores) / len(cores) for tenant, cores in of.items()}


# Share of what a closed loop may have under way that is under way at least where the loop is the limit. It is not the whole,
# because a request waits for its sender, too.
_UNDER_WAY = 0.5


def _closed_loops(result: Result) -> list[tuple[str, str]]:
    """Sentences about what each closed loop of the scenario keeps under way, each with its class of traffic."""

    def bounded(number: int, noun: str, who: str, key: str) -> str:
        if number == 1:
            return f"The one {noun} that {who} under way ({key}) bounds the rate"
        return f"The {number} {noun}s that {who} under way ({key}) bound the rate"

    spec = result.spec
    found = [
        (bounded(p["queue_depth"], "command", "an SSD keeps", f"peripheral.{i}.queue_depth"), "p2m")
        for i, p in enumerate(spec.get("peripheral") or ())
        if p.get("kind") == "ssd" and p.get("queue_depth")
    ]
    under_way = _under_way(result)
    shared = [t for t in spec.get("tenant") or () if not t.get("traffic") and t["app"]["kind"] not in _OWN_WORK]
    loops = [("traffic", spec.get("traffic"), shared)]
    loops += [(f"tenant.{i}.traffic", t.get("traffic"), [t]) for i, t in enumerate(spec.get("tenant") or ())]
    for key, traffic, of in loops:
        if not traffic or traffic.get("arrivals") != "closed":
            continue
        most, known = traffic["outstanding"], [under_way[t["name"]] for t in of if t["name"] in under_way]
        # Each core that sends packets of its own has a loop of its own.
        loops_of = sum(int(t["cores"]) for t in of if t["app"]["kind"] == "loopback") or 1
        if any(t["app"]["kind"] in _POLLS for t in of):
            found.append(
                (
                    f"The requests that clients keep under way ({key}.outstanding = {most}, which is app.flows x app.pipelined), or "
                    "the cores, which poll all the time, bound the rate",
                    "",
                )
            )
        elif not known or sum(known) > _UNDER_WAY * most * loops_of:
            found.append((bounded(most, "request", "clients keep", f"{key}.outstanding"), ""))
    return found


def _under_way(result: Result) -> dict[str, float]:
    """Of each tenant, the mean number of requests that are under way, by Little's law."""
    if "tenants" not in result.tables:
        return {}
    m = result.metrics
    round_trip, within = m.get("rtt_mean_us"), m.get("lat_mean_us")
    outside = 0.0 if round_trip is None or within is None else max(round_trip - within, 0.0)
    return {
        row["tenant"]: row["throughput_mops"] * (row["lat_mean_us"] + outside)
        for row in result.table("tenants").to_dicts()
        if row["throughput_mops"] is not None and row["lat_mean_us"] is not None
    }


def _never_idle(spec: Mapping[str, Any]) -> bool:
    """Whether all tenants execute instructions without waiting for packets, as streams and stores of keys do."""
    tenants = spec.get("tenant") or ()
    return bool(tenants) and all(t["app"]["kind"] in _OWN_WORK for t in tenants)


#: Applications whose cores always have work of their own.
_OWN_WORK = {"xmem", "stream", "redis", "gapbs", "llc_antagonist", "memory_trace", "pingpong", "stream_transfer"}

#: Applications whose cores count as busy while they poll, so that their busy time tells nothing.
_POLLS = {"tcp_echo"}

# Rows of a result's table of domains: the domains on each class's path between its sender and DRAM.
_WAY = {
    "path c2m_read": ("C2M-Read, from a core's request or prefetch to its data", "c2m", "c2m_read_unloaded_ns"),
    "path c2m_write": ("C2M-Write, to the CHA (its way within the read)", "c2m", "c2m_write_unloaded_ns"),
    "CHA c2m_read": ("core reads at the CHA", "c2m", None),
    "CHA c2m_write": ("write-backs at the CHA", "c2m", None),
    "CHA p2m_read": ("device reads at the CHA", "p2m", None),
    "CHA p2m_write": ("device writes at the CHA", "p2m", None),
    "home agent write buffer": ("writes that wait at the CHA", "shared", None),
}
_UNBOUNDED = 2**32 - 1


def _inside(ex: Explanation, rows: list[dict[str, Any]], m: dict[str, float | None]) -> None:
    for row in rows:
        if row["domain"] in _WAY and row["arrivals_per_us"] and row["occupancy_avg"]:
            name, traffic, unloaded = _WAY[row["domain"]]
            ex.domains.append(_as_domain(row, name, traffic, m.get(unloaded) if unloaded else None))


def _as_domain(row: Mapping[str, Any], name: str, traffic: str, unloaded_ns: float | None) -> Domain:
    """A row of a result's table of domains, which has lines a microsecond."""
    return Domain(
        name,
        traffic,
        None if row["credits"] >= _UNBOUNDED else row["credits"],
        row["occupancy_avg"],
        row["arrivals_per_us"] * 64e-3,
        direct_ns=row["latency_ns"],
        unloaded_ns=unloaded_ns,
    )


def _queues(ex: Explanation, m: dict[str, float | None], spec: dict[str, Any], known: Mapping[str, Interval]) -> None:
    """The controllers' queues, of all channels together."""
    memory = (spec.get("platform") or {}).get("memory") or {}
    # Queues of a node without traffic hold nothing, and take nothing from those of the other node.
    channels, used = m.get("channels"), (m.get("channels") or 0.0) / channels_per_used(m)
    for name, queue, gbs in (("read queues", "rpq", "mem_read_gbs"), ("write queues", "wpq", "mem_write_gbs")):
        occupied, rate = m.get(f"{queue}_occ") or 0.0, m.get(gbs) or 0.0
        if channels and memory.get(queue) and occupied > 0 and rate > 0:
            ex.domains.append(
                Domain(
                    name,
                    "shared",
                    memory[queue] * used,
                    occupied * channels,
                    rate,
                    note=f"of {used:.0f} channels",
                    intervals=_ends(known, channels, held=f"{queue}_occ", rate_gbs=gbs),
                )
            )


def credits_of_iio(result: Result, prefix: str) -> float | None:
    """Entries of the I/O controllers' buffers (``iio_write`` or ``iio_read``) that devices use: each device has the entries of
    its own controller, so that an idle one adds none, and controllers alike count whole."""
    credits: float | None = result.metrics.get(f"{prefix}_credits")
    held = [float(r["occupancy_avg"]) for r in _controllers(result, f"IIO {prefix.removeprefix('iio_')} buffer")]
    squares = sum(n * n for n in held)
    if credits is None or not squares:
        return credits
    return credits / len(held) * sum(held) ** 2 / squares


def _controllers(result: Result, buffer: str) -> list[dict[str, Any]]:
    """Rows of the buffers of the single I/O controllers, such as "IIO 0 write buffer"; none where the host has one controller."""
    rows = result.table("domains").to_dicts() if "domains" in result.tables else []
    of_one = buffer.replace("IIO", r"IIO \d+")
    return [r for r in rows if re.fullmatch(of_one, r["domain"])]


def cores_of(spec: dict[str, Any]) -> int:
    """Cores of all tenants."""
    return sum(int(t.get("cores") or 0) for t in spec.get("tenant") or ()) or 1


def line_fill_buffers(result: Result) -> tuple[float, float, float | None] | None:
    """Entries in use in the line fill buffers of all cores, lines a second, and the mean latency in ns; None for a run whose
    cores took none.

    ``lfb_occ`` is the mean of one core. Cores that only receive packets are not part of it, so that runs with such cores
    (``net_lfb_occ``) add the rows of all.
    """
    m, cores = result.metrics, cores_of(result.spec)
    occupied, lat = m.get("lfb_occ"), m.get("lfb_little_ns")
    if not occupied or not lat:
        return None
    rows = result.table("domains").to_dicts() if m.get("net_lfb_occ") and "domains" in result.tables else []
    own = [row for row in rows if re.fullmatch(r"core \d+ line fill buffers", row["domain"])]
    if not own:
        return occupied * cores, occupied * cores / lat * 1e9, m.get("lfb_lat_ns")
    arrivals = sum(row["arrivals_per_us"] for row in own)
    waited = sum(row["arrivals_per_us"] * (row["latency_ns"] or 0.0) for row in own)
    return sum(row["occupancy_avg"] for row in own), arrivals * 1e6, waited / arrivals if arrivals else None


def write_backs(result: Result) -> float:
    """Lines a second that cores write back to memory through the home agent."""
    rows = result.table("domains").to_dicts() if "domains" in result.tables else []
    return sum(row["arrivals_per_us"] or 0.0 for row in rows if row["domain"] == "CHA c2m_write") * 1e6


def _reads_with_prefetches(result: Result) -> tuple[float, float, float] | None:
    """Reads of cores that are under way, their rate in GB/s, and their mean latency in ns; None for a run without prefetches.

    A prefetch holds no line fill buffer. An access to the line that it fetches holds one for the rest of its way alone, so that
    the buffers tell neither the latency nor the number of reads from memory.
    """
    rows = result.table("domains").to_dicts() if result.metrics.get("prefetch_rate") else []
    row = next((r for r in rows if r["domain"] == "path c2m_read" and r["arrivals_per_us"]), None)
    return None if row is None else (row["occupancy_avg"], row["arrivals_per_us"] * 64e-3, row["latency_ns"])


def _core(ex: Explanation, result: Result, known: Mapping[str, Interval]) -> None:
    m, cores = result.metrics, cores_of(result.spec)
    found, credits = line_fill_buffers(result), m.get("lfb_credits")
    if found is None or credits is None:
        return
    held, lines, direct = found
    if m.get("net_lfb_occ"):
        known = {}  # of the cores that only receive, no interval is known
    traffic = core_class(lines, write_backs(result))
    unloaded = core_unloaded_ns(
        traffic, {"c2m_read_ns": m.get("c2m_read_unloaded_ns"), "c2m_write_ns": m.get("c2m_write_unloaded_ns")}
    )
    rate = lines * 64e-9
    ex.domains.append(
        Domain(
            "line fill buffers",
            "c2m",
            credits * cores,
            held,
            rate,
            direct_ns=direct,
            unloaded_ns=unloaded,
            note=f"of {cores} cores",
            intervals=_ends(known, cores, held="lfb_occ", little_ns="lfb_little_ns", direct_ns="lfb_lat_ns"),
        )
    )
    suffix = ""
    prefetching = _reads_with_prefetches(result)
    if prefetching:
        (held, rate, direct), traffic, suffix = prefetching, "c2m-read", " with prefetches"
    from_memory = (m.get("mem_c2m_read_gbs") or 0.0) / rate
    if from_memory < 0.8:
        ex.missing.append(f"the formula: only {100 * from_memory:.0f} % of the cores' lines come from memory")
        return
    counters, hw = counters_of(m), hardware_of(m)
    e = estimate(traffic, counters, hw, held, rate, direct)
    e.traffic += suffix
    ex.estimates.append(e)
    # A line that is written back asks for admission a second time.
    admission = (m.get("cha_adm_c2m_ns") or 0.0) * (2 if traffic == "c2m-readwrite" else 1)
    if admission > 1.0:
        e = estimate(traffic, counters, hw, held, rate, direct, admission)
        e.traffic += f"{suffix} + CHA admission"
        ex.estimates.append(e)


def _device(ex: Explanation, m: dict[str, float | None], traffic: str) -> None:
    prefix = "iio_write" if traffic == "p2m-write" else "iio_read"
    hw = hardware_of(m)
    held, lat = m.get(f"{prefix}_occ"), m.get(f"{prefix}_little_ns")
    if not held or not lat:
        return
    if traffic == "p2m-read" and hw.get("p2m_read_ns") is None:
        ex.missing.append("the formula of device reads (its unloaded latency is not known)")
        return
    ex.estimates.append(estimate(traffic, counters_of(m), hw, held, held * 64 / lat, m.get(f"{prefix}_lat_ns")))
