"""Events of a simulated run under the vendor's names: the counts that `perf` would have reported on such a machine.

Tools for real counters can so run on simulated ones, whose true causes are known.
"""

from __future__ import annotations

from ..errors import HostnetError
from ..model import hardware_of
from ..results import Result
from .events import BY_NAME, EVENTS
from .machine import clocks, machine
from .simulated import cores_of, credits_of_iio, line_fill_buffers

#: First line of a file of simulated counters.
MARK = "# simulated by hostnet"

# Two tables: the metric that counts each event, and the metric whose mean occupancy an event accumulates over the clock
# named.
_COUNTS = {
    "wmm_to_rmm": "wr_switches",
    "act_read": "act_read",
    "act_write": "act_write",
    "pre_conflict": "pre_conflict",
    "cas_read": "lines_read",
    "cas_write": "lines_written",
}
_PER_CHANNEL = {"rpq_occupancy": "rpq_occ", "rpq_ge42": "rpq_full_frac", "wpq_ge34": "wpq_full_frac"}
_CHA = {"drd": "c2m_read", "wbmtoi": "c2m_write", "iowr": "p2m_write", "rdcur": "p2m_read"}


def events(result: Result) -> dict[str, float]:
    """Counts of every event over the run's window. Raises HostnetError for a run without the host network's metrics."""
    m, seconds = result.metrics, result.measure_us / 1e6
    channels = m.get("channels")
    if m.get("rpq_occ") is None or channels is None or not seconds:
        raise HostnetError(
            "this result carries no counters of the uncore; run its scenario again with this version of hostnet."
        )
    rows = {r["domain"]: r for r in result.table("domains").to_dicts()}
    cycles = {k.removesuffix("_ghz"): v * 1e9 * seconds for k, v in machine_of(result).items() if k.endswith("_ghz")}
    out = {e.name: 0.0 for e in EVENTS}
    out |= {event: m.get(metric) or 0.0 for event, metric in _COUNTS.items()}
    out |= {event: (m.get(metric) or 0.0) * channels * cycles["dclk"] for event, metric in _PER_CHANNEL.items()}
    if (found := line_fill_buffers(result)) is not None:
        held, lines, _ = found
        out["lfb_occupancy"] = held * cycles["core"]
        out["l1_miss"] = lines * seconds
    for event, path in _CHA.items():
        if (row := rows.get(f"CHA {path}")) is not None:
            out[f"{event}_occupancy"] = row["occupancy_avg"] * cycles["cha"]
            out[f"{event}_inserts"] = row["arrivals_per_us"] * 1e6 * seconds
    if (row := rows.get("IIO write buffer")) is not None:
        out["irp_occupancy"] = row["occupancy_avg"] * cycles["irp"]
        out["irp_inserts"] = row["arrivals_per_us"] * 1e6 * seconds
    return out


def machine_of(result: Result) -> dict[str, float]:
    """The simulated machine: its platform's clocks, its busy cores and credits, and its unloaded latencies."""
    found = {k: v for k, v in machine().items() if k.endswith("_ghz")} | clocks(result.spec["platform"])
    m = result.metrics
    found |= {k: v for k, v in hardware_of(m).items() if v is not None}
    credits = {f"{prefix}_credits": credits_of_iio(result, prefix) for prefix in ("iio_write", "iio_read")}
    credits |= {"lfb_credits": m.get("lfb_credits"), "cores": float(cores_of(result.spec))}
    return found | {k: v for k, v in credits.items() if v}


def perf_csv(result: Result) -> str:
    """The counts as `perf stat -x,` writes them."""
    ns = round(result.measure_us * 1e3)
    lines = [
        f"{MARK} {result.version}: {result.spec.get('name', '')}",
        "# machine: " + " ".join(f"{k}={v:.9g}" for k, v in machine_of(result).items()),
        f"{ns},ns,duration_time,{ns},100.00,,",
    ]
    lines += [f"{round(count)},,{BY_NAME[name].name},{ns},100.00,," for name, count in events(result).items()]
    return "\n".join(lines) + "\n"
