"""Differences between results: how large, for better or worse, and whether they exceed the noise of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from .. import headlines, intervals
from ..declared import metric_info, unit
from .html import Cell, Head, Markup, table, value_cell

Data = Mapping[str, Any]

#: Metrics of which more is better (+1) or worse (-1), by name or pattern; all others have no direction.
BETTER = {
    "throughput_mrps": 1,
    "achieved_*": 1,
    "net_gbps": 1,
    "net_gbs": 1,
    "c2m_gbs": 1,
    "p2m_gbs": 1,
    "p2m_iops": 1,
    "stream_gbps": 1,
    "t?_mops": 1,
    "lat_*": -1,
    "rtt_*": -1,
    "service_mean_us": -1,
    "tcp_rtt_us": -1,
    "pingpong_ns": -1,
    "signal_discovery_ns": -1,
    "access_ns": -1,
    "mmio_*_ns": -1,
    "drop_rate": -1,
    "loss_rate": -1,
    "drops": -1,
    "client_drops": -1,
    "packet_loss": -1,
    "tcp_retransmits": -1,
    "pfc_pause_fraction": -1,
    "dram_lat_*": -1,
    "amat_cycles": -1,
    "acc_total": -1,
    "llc_miss_ratio": -1,
    "*_cpi": -1,
    "cha_adm_*": -1,
    "iio_*_lat_ns": -1,
    "lfb_lat_ns": -1,
}
#: Change up to which a metric counts as equal where a run says nothing about its noise.
ALIKE = 0.01
#: Normal quantile of a 95 % interval.
_Z = 1.96
#: What a search finds. Where these have no interval, as of a search without drops, seeds differ by far more than ALIKE.
_FOUND = ("offered_mrps", "throughput_mrps", "net_gbps", "offered_gbps", "achieved_gbps")
#: Groups of metrics that say nothing about the host's behaviour.
_APART = ("Constants", "The simulation")


@cache
def better(metric: str) -> int:
    """1 where more of a metric is better, -1 where less is, 0 where neither is."""
    return next((sign for pattern, sign in BETTER.items() if fnmatchcase(metric, pattern)), 0)


@dataclass(frozen=True)
class Difference:
    """A metric's value in one result against its value in the first one."""

    metric: str
    base: float | None
    value: float | None
    noise: float | None  # half of the 95 % interval of the difference; None where the runs say nothing about it
    found: bool = False  # whether both are what a search finds, without an interval

    @property
    def ratio(self) -> float | None:
        """Value over base; None where the ratio has no meaning."""
        if not self.base or self.value is None or (self.value < 0) != (self.base < 0):
            return None
        return self.value / self.base

    @property
    def within_noise(self) -> bool:
        """Whether the difference may be noise."""
        if self.base is None or self.value is None:
            return self.base == self.value
        apart = abs(self.value - self.base)
        if self.noise is not None:
            return apart <= self.noise
        if self.found:
            return apart == 0
        return apart <= ALIKE * max(abs(self.value), abs(self.base))

    @property
    def verdict(self) -> str:
        """The class of the difference: better, worse, changed, noise, or unknown where noise may be as large."""
        if self.within_noise:
            return "noise"
        if self.found:
            return "unknown"
        sign = better(self.metric)
        if not sign or self.base is None or self.value is None:
            return "changed"
        return "better" if (self.value - self.base) * sign > 0 else "worse"

    @property
    def size(self) -> float:
        """The weight of the difference among others: the distance of the ratio from one, on a logarithmic scale."""
        if self.within_noise:
            return 0.0
        ratio = self.ratio
        return 5.0 if not ratio else min(abs(math.log(ratio)), 5.0)


def difference(metric: str, base: Data, other: Data) -> Difference:
    """How a metric of ``other`` differs from that of ``base``."""
    first, value = base["metrics"].get(metric), other["metrics"].get(metric)
    noises = [noise_of(metric, base, value), noise_of(metric, other, first)]
    noise = None if None in noises else math.hypot(*(n for n in noises if n is not None))
    found = metric in _FOUND and noises == [None, None] and all(_searches(r) for r in (base, other))
    return Difference(metric, first, value, noise, found)


def _searches(result: Data) -> bool:
    return str((result["spec"].get("run") or {}).get("load")).startswith("peak_")


def noise_of(metric: str, result: Data, other: float | None) -> float | None:
    """The noise of a metric of one run towards the value ``other``, from its 95 % interval; of lost packets without an
    interval, from the square root of their number. None for metrics of which a run says nothing."""
    value = result["metrics"].get(metric)
    if value is None:
        return None
    found = intervals.of(result).get(metric)
    if found is not None:
        return intervals.noise(value, found, unit(metric), value if other is None else other)
    return _Z * math.sqrt(max(value, 1.0)) if metric in ("drops", "client_drops") else None


def change(d: Difference) -> str:
    """The relative change as text; empty where both values print alike or a ratio has no meaning."""
    if d.base == 0 and d.value:
        return "from 0"
    ratio = d.ratio
    if ratio is None:
        return ""
    if ratio >= 10:
        return f"×{ratio:.3g}"
    if ratio <= 0.1:
        return f"÷{1 / ratio:.3g}" if ratio else "to 0"
    text = f"{100 * (ratio - 1):+.1f} %"
    return "" if float(text[:-2]) == 0 else text.replace("-", "−")


_SAYS = {"better": "better", "worse": "worse", "changed": "", "noise": "noise", "unknown": "no interval; use --seeds"}


def important(results: Sequence[Data], most: int = 14) -> list[str]:
    """The metrics of a comparison by importance: those that lead in these results and differ, the others by the size of their
    difference, and then the leading ones that do not differ or that only some of the results have."""
    lead = leading(results)
    info = metric_info()
    others = [
        m
        for m in every(results)
        if m not in lead
        and info[m]["group"] not in _APART
        and not info[m]["alias"]
        and all(r["metrics"].get(m) is not None for r in results)
    ]
    sizes = {m: max(difference(m, results[0], r).size for r in results[1:]) for m in others}
    changed = sorted((m for m in others if sizes[m] > 0.05), key=lambda m: -sizes[m])
    there = [m for m in lead if all(r["metrics"].get(m) is not None for r in results)]
    differ = [m for m in there if any(difference(m, results[0], r).verdict != "noise" for r in results[1:])]
    return differ + changed[:most] + [m for m in there if m not in differ] + [m for m in lead if m not in there]


def leading(results: Sequence[Data]) -> list[str]:
    """The leading metrics of these results, in the order of their groups."""
    groups: dict[str, dict[str, None]] = {}
    for r in results:
        for group, names in headlines.leading(r["metrics"]).items():
            groups.setdefault(group, {}).update(dict.fromkeys(names))
    return [m for names in groups.values() for m in names]


def every(results: Sequence[Data]) -> list[str]:
    """Every metric that has a value in any of the results, in the engine's order."""
    known = metric_info()
    there = {m for r in results for m, v in r["metrics"].items() if v is not None}
    return [m for m in known if m in there]


def metric_head(metric: str) -> Head:
    """The heading of a metric's column, with its meaning."""
    info = metric_info().get(metric)
    return Head(metric, unit(metric), info["description"] if info else "")


def metric_cell(metric: str) -> Cell:
    """A metric's name, with its meaning as a tip."""
    from html import escape

    info = metric_info().get(metric)
    tip = f'<abbr title="{escape(info["description"])}">{escape(metric)}</abbr>' if info else escape(metric)
    return Cell(Markup(tip))


def comparison(results: Sequence[Data], names: Sequence[str], metrics: Sequence[str], label: str) -> Markup:
    """Values of a few results side by side, with each result's change against the first."""
    heads = [Head("metric"), Head("unit"), Head(names[0])]
    for n in names[1:]:
        heads += [
            Head(n),
            Head("change", tip=f"{n} against {names[0]}"),
            Head("", tip="better or worse, where the metric has a direction"),
        ]
    rows, classes = [], []
    for m in metrics:
        row = [metric_cell(m), Cell(unit(m), of="text"), value_cell(results[0]["metrics"].get(m))]
        verdicts = []
        for r in results[1:]:
            d = difference(m, results[0], r)
            verdicts.append(d.verdict)
            weight = None if d.ratio is None else abs(math.log(d.ratio)) if d.ratio else 9.0
            row += [
                value_cell(d.value),
                Cell(change(d), weight, d.verdict),
                Cell(_SAYS[d.verdict] if change(d) or d.verdict != "noise" else "", of=d.verdict),
            ]
        rows.append(row)
        classes.append("quiet" if verdicts and set(verdicts) == {"noise"} else "")
    return table(heads, rows, label, classes)


NOISE_NOTE = (
    "Changes are relative to the first result. Grey changes lie within the noise: within the 95 % interval of the difference, "
    "or within 1 % for metrics that have no interval. A rate that a search finds without an interval may differ as much by chance."
)


def summary(results: Sequence[Data], names: Sequence[str]) -> list[str]:
    """For each further result, its most important differences in a sentence."""
    said = []
    for name, r in zip(names[1:], results[1:]):
        parts = []
        for m in leading(results):
            d = difference(m, results[0], r)
            if d.verdict in ("better", "worse") and change(d):
                parts.append(f"{m} {change(d)} ({d.verdict})")
        said.append(
            f"{name} against {names[0]}: "
            + (", ".join(parts[:4]) if parts else "no leading metric differs by more than the noise")
            + "."
        )
    return said
