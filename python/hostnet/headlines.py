"""Leading metrics of each kind of scenario, and the group of every metric."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from .errors import HostnetError
from .renamed import metric
from .results import metric_info
from .tenants import PREFIX

Metrics = Mapping[str, float | None]

SPEED, MEMORY, NIC, DOMAINS = "throughput and latency", "memory", "NIC and drops", "domains"
CONSTANTS, OTHERS = "constants", "the simulation"

#: Metrics that `run` shows first, by the subject of the scenario. A metric without a value is omitted.
LEADING: dict[str, dict[str, tuple[str, ...]]] = {
    "packets": {
        SPEED: (
            "throughput_mrps",
            "offered_mrps",
            "loss_rate",
            "lat_p50_us",
            "lat_p99_us",
            "rtt_median_us",
        ),
        MEMORY: ("mem_bw_gbs", "mem_utilisation", "acc_total", "dram_lat_avg_ns"),
        NIC: ("net_gbps", "drop_rate", "pcie_up_util", "pcie_down_util", "rx_evct_consumed", "rx_evct_premature"),
        DOMAINS: ("lfb_occ", "cha_wait_writes", "wpq_full_frac"),
    },
    "ccnic": {
        SPEED: ("achieved_mpps", "achieved_gbps", "rtt_min_ns", "rtt_median_us", "rtt_p99_us"),
        MEMORY: ("mem_bw_gbs", "mem_utilisation", "dram_lat_avg_ns"),
        NIC: (
            "host_remote_reads",
            "host_remote_rfos",
            "nic_remote_reads",
            "nic_remote_rfos",
            "host_instructions_per_packet",
            "pool_ops_per_packet",
        ),
        DOMAINS: ("link_utilisation", "lfb_occ"),
    },
    "tcp": {
        SPEED: ("net_gbs", "c2m_gbs", "tcp_rtt_us", "net_lfb_lat_ns"),
        MEMORY: ("mem_bw_gbs", "mem_utilisation", "dram_lat_avg_ns"),
        NIC: ("packet_loss", "tcp_retransmits", "dctcp_alpha", "nic_buffer_peak_kib"),
        DOMAINS: ("net_lfb_occ", "iio_write_occ", "wpq_full_frac"),
    },
    "host": {
        SPEED: ("c2m_gbs", "t0_mops", "t1_mops", "p2m_gbs", "c2m_read_lat_ns", "iio_write_lat_ns", "iio_read_lat_ns"),
        MEMORY: ("mem_bw_gbs", "mem_utilisation", "dram_lat_avg_ns", "llc_miss_ratio"),
        NIC: ("pcie_up_util", "pcie_down_util", "pfc_pause_fraction"),
        DOMAINS: ("lfb_occ", "iio_write_occ", "iio_read_occ", "wpq_full_frac"),
    },
    "directed": {
        "directed test": (
            "dram_reads_per_block",
            "dram_writes_per_block",
            "first_read_cycles",
            "evct_dirty_fraction",
            "copies_left",
            "llc_dirty_blocks",
            "tx_writes_per_block",
            "sweep_delay_ns",
            "stale_blocks_readable",
            "clsweeps",
            "sweep_messages",
            "unloaded_dram_ns",
            "access_ns",
            "mmio_read_ns",
            "mmio_store_ns",
            "mmio_burst_ns",
            "mlc_copies_after",
            "in_ddio_ways_after",
            "llc_allocations",
            "ways_allocated",
        ),
    },
    "sizes": {
        "sizes": ("rx_footprint_mib", "rx_footprint_per_llc", "ddio_capacity_mib", "total_rx_entries", "llc_mib")
    },
}

#: Metrics that `sweep` prints for each point.
COLUMNS: dict[str, tuple[str, ...]] = {
    "packets": ("throughput_mrps", "lat_p50_us", "lat_p99_us", "drop_rate", "loss_rate", "mem_bw_gbs", "acc_total"),
    "ccnic": (
        "achieved_mpps",
        "rtt_median_us",
        "host_remote_reads",
        "nic_remote_reads",
        "host_remote_rfos",
        "link_utilisation",
    ),
    "tcp": ("net_gbs", "c2m_gbs", "packet_loss", "tcp_rtt_us", "mem_bw_gbs", "iio_write_occ"),
    "host": (
        "c2m_gbs",
        "p2m_gbs",
        "t0_mops",
        "c2m_read_lat_ns",
        "mem_bw_gbs",
        "lfb_occ",
        "iio_write_occ",
        "wpq_full_frac",
    ),
    "directed": LEADING["directed"]["directed test"],
    "sizes": LEADING["sizes"]["sizes"],
}

# The first pattern that matches the beginning of a name decides; names without a match are about the simulation itself.
_GROUPS = (
    (
        CONSTANTS,
        r"(lfb|iio_\w+|cha_wait)_credits$|channels$|cores$|llc_mib$|l1l2_|mem_peak|t_trans|t_rcd|t_rp|\w+_unloaded_ns$"
        r"|rx_footprint|ddio_capacity|total_rx_entries",
    ),
    (
        NIC,
        r"(host|nic)_(remote|reads|rfos|instructions|blanks|tx|writes)|pool_ops|small_fallbacks"
        r"|signal_discovery|payload_lines|doorbells_|tx_fetches_|tx_payload_|frame_bytes|mmio_|client_|net_gbps|drop|loss_rate|rx_evct|llc_rx|clsweep|sweep_|pcie|pfc|nic_|packet|acc_nic|storage|dma_|descriptors_",
    ),
    (DOMAINS, r"lfb|net_lfb|c2m_(read|write)_|cha_|rpq|wpq|iio_|link_"),
    (
        MEMORY,
        r"mem_|acc_|dram_|amat|llc_|t\d_llc|p2m_llc|prefetch|lines_|wr_switches|act_|pre_|row_|bank_|mlc_|hints"
        r"|remote_|speculative_|access_ns|in_ddio_ways|ways_allocated|batch_cached",
    ),
    (
        SPEED,
        r"pingpong|stream_gbps|throughput|offered|achieved|lat_|rtt_|service|cores_busy|cpu_util|burst_|t\d_cpi"
        r"|t\d_mops|c2m_gbs|p2m_|net_|tcp_|dctcp|host_level|predicted",
    ),
)


def kind_of(metrics: Metrics) -> str:
    """Kind of scenario that a result belongs to, which follows from the metrics that have values."""

    def has(name: str) -> bool:
        return metrics.get(name) is not None

    if has("net_gbs"):
        return "tcp"
    if has("achieved_mpps"):
        return "ccnic"
    if has("throughput_mrps"):
        return "packets"
    if any(map(has, LEADING["directed"]["directed test"])):
        return "directed"
    return "host" if has("lfb_occ") or has("mem_bw_gbs") else "sizes"


def group_of(metric: str) -> str:
    """The group in which a metric stands."""
    return next((group for group, names in _GROUPS if re.match(names, metric)), OTHERS)


def leading(metrics: Metrics) -> dict[str, list[str]]:
    """The metrics that a run shows first, by group. Metrics of parts that the scenario does not use are omitted."""
    idle = {
        m
        for m in (
            "c2m_gbs",
            "t0_mops",
            "p2m_gbs",
            "pcie_up_util",
            "pcie_down_util",
            "pfc_pause_fraction",
            "iio_write_occ",
            "iio_read_occ",
            "iio_write_lat_ns",
            "iio_read_lat_ns",
        )
        if not metrics.get(m)
    }
    if kind_of(metrics) == "packets" and not metrics.get(
        "pcie_up_util"
    ):  # a NIC on the chip: the wire adds only times that the scenario states
        idle |= {"rtt_median_us"}
    if metrics.get("c2m_gbs"):  # the same cores' work, in another unit
        idle |= {"t0_mops", "t1_mops"}
    groups = LEADING[kind_of(metrics)]
    shown = {g: [m for m in names if metrics.get(m) is not None and m not in idle] for g, names in groups.items()}
    return {g: names for g, names in shown.items() if names}


def every(metrics: Metrics) -> dict[str, list[str]]:
    """Every metric that has a value, by group; constants, and metrics about the simulation itself, come last."""
    groups: dict[str, list[str]] = {
        g: [] for g in (*LEADING[kind_of(metrics)], SPEED, MEMORY, NIC, DOMAINS, CONSTANTS, OTHERS)
    }
    directed = LEADING["directed"]["directed test"]
    for m in metric_info():
        if metrics.get(m) is not None:
            groups["directed test" if m in directed and "directed test" in groups else group_of(m)].append(m)
    return {g: names for g, names in groups.items() if names}


def columns_for(results: Iterable[Metrics]) -> list[str]:
    """Columns of a table of several results: the leading metrics of the kinds of scenario among them, where any result
    has a value."""
    results = list(results)
    wanted = dict.fromkeys(m for kind in dict.fromkeys(map(kind_of, results)) for m in COLUMNS[kind])
    if any(r.get("c2m_gbs") for r in results):
        wanted.pop("t0_mops", None)
    return [m for m in wanted if any(r.get(m) is not None for r in results)]


def chosen(wanted: Sequence[str]) -> list[str]:
    """The metrics named in ``--metrics``: names or patterns, separated by commas. Names of tenants' columns stay as they
    are, because only a result has tenants. Raises HostnetError for a metric that does not exist."""
    known = list(metric_info())
    found: dict[str, None] = {}
    for name in (metric(n.strip()) for text in wanted for n in text.split(",")):
        matches = [name] if name.startswith(PREFIX) else [m for m in known if fnmatchcase(m, name)]
        if not matches:
            near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(near)}?" if near else "`hostnet run SCENARIO --all` shows them."
            raise HostnetError(f"--metrics {name or '(nothing)'}: there is no such metric; {hint}")
        found.update(dict.fromkeys(matches))
    return list(found)
