"""Lost packets: place, cause and time of the losses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .results import ResultData

#: Share of time that a PCIe link is busy from which the link limits its device, whatever credits are left.
LINK_FULL = 0.97
#: Ending of a cause's sentence, and the direction of the link that can be behind the cause.
_BEHIND = (
    ("(DmaDrop).", "pcie_up_util", "to the host"),
    ("than the wire brings them.", "pcie_up_util", "to the host"),
    ("(TxDrop).", "pcie_down_util", "from the host"),
)


@dataclass(frozen=True)
class Loss:
    """Losses of one kind in the measured window; times are microseconds from its start."""

    where: str
    why: str
    count: int
    first_us: float
    last_us: float

    def __str__(self) -> str:
        when = (
            f"from {self.first_us:,.1f} to {self.last_us:,.1f} µs" if self.count > 1 else f"at {self.first_us:,.1f} µs"
        )
        return f"lost {self.count:,} ({self.where}, {when}): {self.why}"


def causes(found: Sequence[Loss]) -> dict[str, float]:
    """Causes of the losses, each with its share of the lost packets, largest share first."""
    counts: Counter[str] = Counter()
    for loss in found:
        counts[loss.why] += loss.count
    return {why: count / counts.total() for why, count in counts.most_common()}


def losses(data: ResultData) -> list[Loss]:
    """The losses of a result (as `Result.data`), most frequent first; None for a result without packets."""
    found = (data.get("tables") or {}).get("drops") or {"columns": [], "rows": []}
    names = [c["name"] for c in found["columns"]]
    rows = [dict(zip(names, row, strict=True)) for row in found["rows"]]
    metrics = data.get("metrics") or {}
    every = [Loss(r["where"], _named(r["why"], metrics), r["count"], r["first_us"], r["last_us"]) for r in rows]
    return sorted(every, key=lambda loss: -loss.count)


def _named(why: str, metrics: Mapping[str, float | None]) -> str:
    """A cause's sentence, followed by the PCIe link where the link is the limit behind the cause."""
    for ending, busy, way in _BEHIND:
        share = metrics.get(busy) or 0.0
        if why.endswith(ending) and share >= LINK_FULL:
            return f"{why} The PCIe link {way} is the limit, busy {100 * share:.0f} % of the time."
    return why
