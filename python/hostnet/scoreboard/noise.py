"""Verdicts that noise may turn: claims judged again on values drawn from the intervals of the metrics.

In each draw, every metric of every point takes a value from a normal distribution around the measured one, whose 95 % range is
the metric's interval; the columns that a study derives follow. Metrics are drawn independently of each other, which overstates
the noise of differences between metrics of one run. A metric without an interval keeps its value.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from .. import intervals
from ..declared import metric_info
from ..progress import Progress
from ..results import Result as Point
from .claims import Claim, ClaimError
from .evaluate import Result, Stream, ask, connect
from .judge import judge

#: Draws per claim; a verdict that fewer than 95 % of the draws share is within noise.
DRAWS = 20
#: Half-width of an interval of 95 %, in standard deviations.
_DEVIATIONS = 1.96

#: The tables that one draw gives, by SQL name, for the number of the draw.
Draw = Callable[[int], Mapping[str, Any]]


def drawn(point: Point, rng: random.Random) -> Point:
    """The result of one point, with each metric drawn from its interval."""
    known = point.data.get("intervals") or {}
    values = dict(point.data["metrics"])
    for name, interval in known.items():
        value = values.get(name)
        if value is not None:
            share = metric_info()[name]["unit"] == "fraction"
            values[name] = _within(value, (interval[0], interval[1]), share, rng)
    return Point({**point.data, "metrics": values}, key=point.key, cached=point.cached)


def _within(value: float, interval: intervals.Interval, share: bool, rng: random.Random) -> float:
    """A value around the measured one: of one sign with it, and at most 1 where a ``share`` is measured."""
    z = rng.gauss(0.0, 1.0) / _DEVIATIONS
    # A percentile's interval may be wider on one side.
    found = value + z * (interval[1] - value if z > 0 else value - interval[0])
    if found * value < 0:
        return 0.0
    return min(found, 1.0) if share and value <= 1 else found


def judged(results: Sequence[Result], draw: Draw, draws: int = DRAWS) -> list[Result]:
    """The results, each reproduced or missed claim with the share of the draws that give the same verdict."""
    asked = [r for r in results if r.verdict in ("reproduced", "off")]
    same = dict.fromkeys(map(_key, asked), 0)
    with Progress().stage("noise", {"draws": 1.0}, unit="") as report:
        for i in range(draws if asked else 0):
            con = connect()
            for name, frame in draw(i).items():
                con.register(name, Stream(frame))
            for r in asked:
                same[_key(r)] += _reproduced(con, r.claim) == (r.verdict == "reproduced")
            con.close()
            report("draws", (i + 1) / draws)
    return [replace(r, agreeing=same[_key(r)] / draws) if _key(r) in same else r for r in results]


def _key(result: Result) -> tuple[str, str]:
    return result.claim.file, result.claim.id


def _reproduced(con: Any, claim: Claim) -> bool | None:
    import duckdb

    try:
        return judge(claim, *ask(con, claim)).reproduced
    except (ClaimError, duckdb.Error):
        return None
