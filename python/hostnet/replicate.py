"""Independent runs of one scenario with several seeds, combined into one result with intervals."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

from . import intervals
from .declared import MetricInfo, metric_info, tenant_info
from .errors import HostnetError
from .results import Result, ResultData, Table

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*(?:e[+-]?\d+)?")
#: Number of seeds beyond which a request counts as a mistake.
MOST_SEEDS = 10_000


def specs(resolved: str, seeds: int) -> list[str]:
    """Resolved specs that differ in the seed alone: the given seed and those that follow it. Raises HostnetError for fewer
    than two seeds."""
    if not isinstance(seeds, (int, Integral)) or not 2 <= seeds <= MOST_SEEDS:
        raise HostnetError(f"seeds = {seeds!r} is not within 2 to {MOST_SEEDS:,}; an interval needs at least two runs.")
    spec = json.loads(resolved)
    return [json.dumps({**spec, "seed": spec["seed"] + i}, separators=(",", ":")) for i in range(seeds)]


def combined(results: Sequence[Result]) -> Result:
    """One result of runs with several seeds: means of their metrics, 95 % intervals over the runs, and ``seeds``.

    A metric without a value in one of the runs has none. Tables other
    than those of the tenants come from the first run. Where no metric depends on the seed, it is the result of one run.
    """
    first = results[0]
    cached = all(r.cached for r in results)
    if all(r.metrics == first.metrics for r in results):
        said = "no metric depends on seed here, so that this is the result of one run"
        one: ResultData = {**first.data, "warnings": [*first.warnings, said]}
        return Result(one, key=first.key, cached=cached)
    data: dict[str, Any] = {**first.data, "seeds": [r.seed for r in results]}
    data["metrics"], data["intervals"] = {}, {}
    for name, about in metric_info().items():
        mean, found = _mean([r.metrics.get(name) for r in results], about)
        data["metrics"][name] = mean
        if found is not None:
            data["intervals"][name] = list(found)
    data["tables"] = {**(first.data.get("tables") or {}), **_tenants(results)}
    data["warnings"] = _warnings(results)
    data["wall_s"] = sum(r.wall_s for r in results)
    combined: ResultData = data  # type: ignore[assignment]
    return Result(combined, cached=cached)


def of_first(data: Mapping[str, Any]) -> str | None:
    """Sentence about what a result (as `Result.data`) over several seeds has from the first of them. None for any other result."""
    seeds = data.get("seeds")
    if not seeds:
        return None
    return (
        f"numbers are means over seeds {seeds[0]} to {seeds[-1]}; distributions, time lines, lost packets by cause and other tables "
        f"are those of seed {seeds[0]}"
    )


def _warnings(results: Sequence[Result]) -> list[str]:
    """Each kind of warning once, with the seeds that have it; warnings are of one kind if they differ in their numbers alone."""
    kinds: dict[str, list[tuple[int, str]]] = {}
    for r in results:
        for w in r.warnings:
            kinds.setdefault(_NUMBER.sub("#", w), []).append((r.seed, w))

    def said(found: Sequence[tuple[int, str]]) -> str:
        _, first = found[0]
        if len(found) == len(results) and all(w == first for _, w in found):
            return first
        seeds = list(dict.fromkeys(str(seed) for seed, _ in found))
        of = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {', '.join(seeds[:-1])} and {seeds[-1]}"
        return f"{of}: {first}" if len(seeds) == 1 else f"{of}, the first: {first}"

    return [said(found) for found in kinds.values()]


def _mean(values: Iterable[Any], about: MetricInfo) -> tuple[Any, tuple[float, float] | None]:
    """Mean and interval of one number over the runs; text is that of the first run."""
    values = list(values)
    if not all(isinstance(v, (int, float)) for v in values):
        return (values[0] if isinstance(values[0], str) else None), None
    if about["group"] == "constants":
        return values[0], None
    # Runs in which what a metric counts never happened tell too little about an event that is rare.
    return statistics.fmean(values), intervals.of_mean(values, about["unit"]) if any(values) else None


def _tenants(results: Sequence[Result]) -> dict[str, Table]:
    """The tables ``tenants`` and ``tenant_intervals`` over the runs."""
    tables = [r.data["tables"]["tenants"] for r in results if "tenants" in (r.data.get("tables") or {})]  # type: ignore[index]
    if len(tables) < len(results):
        return {}
    columns = tables[0]["columns"]
    rows, found_intervals = [], []
    for i, _ in enumerate(tables[0]["rows"]):
        row = []
        for j, column in enumerate(columns):
            mean, found = _mean([t["rows"][i][j] for t in tables], tenant_info()[column["name"]])
            row.append(mean)
            if found is not None:
                found_intervals.append([i, column["name"], *found])
        rows.append(row)
    named = [{"name": n, "unit": ""} for n in ("row", "metric", "low", "high")]
    return {
        "tenants": {"columns": columns, "rows": rows},
        "tenant_intervals": {"columns": named, "rows": found_intervals},  # type: ignore[typeddict-item]
    }
