"""The record, in a result, of a search for the highest rate that passes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .results import ResultData


def nothing_passed(data: ResultData) -> str | None:
    """Sentence about a result (as `Result.data`) whose search found no rate that passes; empty for any other result."""
    found = (data.get("tables") or {}).get("search") or {"columns": [], "rows": []}
    names = [c["name"] for c in found["columns"]]
    tried = [dict(zip(names, row, strict=True)) for row in found["rows"]]
    if not tried or any(r["ok"] for r in tried):
        return None
    lowest = min(tried, key=lambda r: r["rate_mrps"])
    stepped = ((data.get("spec") or {}).get("run") or {}).get("step") is not None
    return (
        f"No rate that was tried passes: the lowest, {lowest['rate_mrps']:.4g} Mrps, {_outcome(lowest)}. "
        f"{'A finer run.step' if stepped else 'Smaller requests'} may find one."
    )


def _outcome(tried: Mapping[str, Any]) -> str:
    """Loss of a tried rate, or its tail latency where no packet was lost."""
    lost = tried.get("loss_rate")
    lost = tried.get("drop_rate") if lost is None else lost
    return f"lost {100 * lost:.3g} %" if lost else f"lost nothing, with a 99th percentile of {tried['p99_us']:.4g} us"
