"""Verdicts that noise may turn: claims judged again on values drawn from the intervals of the metrics.

In each draw, every metric of every point takes a value from a normal distribution around the measured one, whose 95 % range is
the metric's interval; the columns that a study derives follow. Metrics are drawn independently of each other, which overstates
the noise of differences between metrics of one run. A metric without an interval keeps its value.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from ..declared import metric_info
from ..progress import Progress
from ..results import Result as Point
from ..results import ResultData
from .claims import Claim, ClaimError
from .evaluate import (
    Queries,
    Result,
    Words,
    add_table,
    connect,
    named_columns,
    narrowed,
    tables_of,
    words_by_table,
    words_of,
)
from .judge import judge

#: Draws per claim; a verdict that fewer than 95 % of the draws share is within noise.
DRAWS = 20
#: Half-width of an interval of 95 %, in standard deviations.
_DEVIATIONS = 1.96

#: Verdicts that are judged again.
JUDGED = ("reproduced", "off")

#: The tables that one draw gives, by SQL name, for the number of the draw.
Draw = Callable[[int], Mapping[str, Any]]


def drawn(point: Point, rng: random.Random) -> Point:
    """The result of one point, with each metric and each column of its tenants drawn from its interval: of one sign with the
    measured value, and at most 1 where a share is measured."""

    def draw(value: float, low: float, high: float, unit: str) -> float:
        z = rng.gauss(0.0, 1.0) / _DEVIATIONS
        # A percentile's interval may be wider on one side.
        found = value + z * (high - value if z > 0 else value - low)
        if found * value < 0:
            found = 0.0
        return min(found, 1.0) if unit == "fraction" and value <= 1 else found

    values, units = dict(point.data["metrics"]), metric_info()
    for name, (low, high) in (point.data.get("intervals") or {}).items():
        value = values.get(name)
        if value is not None:
            values[name] = draw(value, low, high, units[name]["unit"] if name in units else "")
    data: ResultData = {**point.data, "metrics": values}
    tables = data.get("tables") or {}
    if "tenant_intervals" in tables:
        columns, rows = tables["tenants"]["columns"], [list(row) for row in tables["tenants"]["rows"]]
        at = {c["name"]: (i, c["unit"]) for i, c in enumerate(columns)}
        for row, name, low, high in tables["tenant_intervals"]["rows"]:
            column, unit = at[name]
            if rows[row][column] is not None:
                rows[row][column] = draw(rows[row][column], low, high, unit)
        data["tables"] = {**tables, "tenants": {"columns": columns, "rows": rows}}
    return Point(data, key=point.key, cached=point.cached)


def judged(results: Sequence[Result], draw: Draw, draws: int = DRAWS) -> list[Result]:
    """The results, each reproduced or missed claim with the share of the draws that give the same verdict."""
    asked = [r for r in results if r.verdict in JUDGED]
    same = dict.fromkeys(map(_key, asked), 0)
    with connect() as con:
        words = words_by_table(con, (r.claim for r in asked))
        reads = {_key(r): {t: words_of(con, r.claim) for t in tables_of(con, r.claim)} for r in asked}
    before: dict[str, Any] = {}
    reproduced: dict[tuple[str, str], bool | None] = {}
    with Progress().stage("noise", {"draws": 1.0}, unit="") as report:
        for i in range(draws if asked else 0):
            tables = {name: narrowed(frame, words[name]) for name, frame in draw(i).items() if name in words}
            changed = {name: _changed(before.get(name), frame) for name, frame in tables.items()}
            # A query over the columns of the draw before has that draw's result.
            again = [r.claim for r in asked if _differs(reads[_key(r)], changed)]
            reproduced |= _judged(again, {t: tables[t] for c in again for t in reads[c.file, c.id] if t in tables})
            for r in asked:
                same[_key(r)] += reproduced[_key(r)] == (r.verdict == "reproduced")
            before = tables
            report("draws", (i + 1) / draws)
    return [replace(r, agreeing=same[_key(r)] / draws) if _key(r) in same else r for r in results]


def _changed(before: Any, frame: Any) -> Set[str] | None:
    """Columns of a table that differ from those of the draw before; None where its rows or columns are others."""
    if before is None or before.schema != frame.schema or before.height != frame.height:
        return None
    return {name for name in frame.columns if not before[name].equals(frame[name], null_equal=True)}


def _differs(reads: Mapping[str, Words], changed: Mapping[str, Set[str] | None]) -> bool:
    """Whether a query reads columns that have changed, or tables that are not there."""
    columns = {table: changed.get(table) for table in reads}
    return any(names is None or named_columns(names, reads[table]) for table, names in columns.items())


def _judged(claims: Sequence[Claim], tables: Mapping[str, Any]) -> dict[tuple[str, str], bool | None]:
    """Whether each claim is reproduced over these tables, by file and id; None where they do not decide it."""
    import duckdb

    found: dict[tuple[str, str], bool | None] = {}
    with connect() as con, Queries(con) as queries:
        for name, frame in tables.items():
            add_table(con, name, frame)
        for claim in claims:
            try:
                found[claim.file, claim.id] = judge(claim, *queries.ask(claim)).reproduced
            except (ClaimError, duckdb.Error):
                found[claim.file, claim.id] = None
    return found


def _key(result: Result) -> tuple[str, str]:
    return result.claim.file, result.claim.id
