"""Verdicts from the rows of claims' queries; docs/use/claims.md is the specification of this module."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from ..paths import nearest
from .claims import Claim, ClaimError

# Tolerance for rounding errors of the arithmetic, so that `tolerance = 0.0` accepts 24 / 6 == 4.
_ROUNDING = 1e-9


class MissingValue(ClaimError):
    """A query returned NULL where it needs a value."""


@dataclass(frozen=True)
class Judgement:
    """Verdict on a claim from the rows of its query."""

    reproduced: bool
    measured: Any  # JSON: a number, [min, max], {name: value} or [[x, y], ...] of the worst point or group
    shown: str  # the same as text
    reason: str  # size and place of the deviation; empty when reproduced


@dataclass(frozen=True)
class _Group:
    label: str
    rows: list[dict[str, Any]]


def judge(claim: Claim, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Judgement:
    """Verdict on `claim` from the result of its query. Raises ClaimError (key `eval`) when the result cannot decide the
    claim."""
    if not rows:
        raise claim.error("eval", "the query returned no row")
    needed = {"order": ("name", "value"), "trend": ("x", "y")}.get(claim.kind, ("value",))
    if needed == ("value",) and len(columns) == 1:
        columns = ["value"]
    for column in needed:
        if list(columns).count(column) != 1:
            raise claim.error(
                "eval", f"kind `{claim.kind}` needs one column `{column}`, the query returned {', '.join(columns)}"
            )
    records = [dict(zip(columns, row, strict=False)) for row in rows]
    labels = [c for c in columns if c not in needed]
    for record in records:
        for column in needed:
            record[column] = _checked(claim, column, record[column], _label(record, labels))
    if claim.kind == "order":
        return _order(claim, _groups(records, labels))
    if claim.kind == "trend":
        return _trend(claim, _groups(records, labels))
    points = [(record["value"], _label(record, labels)) for record in records]
    if claim.interval:
        return _range(claim, points)
    if claim.kind == "zero":
        return _zero(claim, points)
    return _number(claim, points)


def show(value: float) -> str:
    """A number with three significant digits and no exponent where that stays readable."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if 1e-4 <= abs(value) < 1e3:
        return f"{value:.3g}"
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e9 else f"{value:.2e}"


def percent(fraction: float) -> str:
    """A share in per cent, such as `12.5 %` for `0.125`."""
    return f"{show(100 * fraction)} %"


def _checked(claim: Claim, column: str, value: Any, label: str) -> Any:
    at = f" at {label}" if label else ""
    if value is None:
        raise MissingValue(claim.file, claim.id, "eval", f"column `{column}` is NULL{at}")
    if column == "name":
        return str(value)
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise claim.error("eval", f"column `{column}` holds {value!r}{at}, not a number") from None
    if not math.isfinite(number):
        raise claim.error("eval", f"column `{column}` is {number}{at}, not a finite number")
    return number


def _label(record: dict[str, Any], labels: Sequence[str]) -> str:
    return ", ".join(f"{c}={record[c]}" for c in labels if record[c] is not None)


def _groups(records: list[dict[str, Any]], labels: Sequence[str]) -> list[_Group]:
    groups: dict[str, _Group] = {}
    for record in records:
        label = _label(record, labels)
        groups.setdefault(label, _Group(label, [])).rows.append(record)
    return list(groups.values())


def _at(label: str) -> str:
    return f" at {label}" if label else ""


def _among(groups: int) -> str:
    return f" (worst of {groups} groups)" if groups > 1 else ""


def _number(claim: Claim, points: list[tuple[float, str]]) -> Judgement:
    expected: float = claim.expected

    def error(point: tuple[float, str]) -> float:
        return abs(point[0] - expected) / abs(expected)

    worst = max(points, key=error)
    off = error(worst) > claim.tolerance + _ROUNDING
    signed = (worst[0] - claim.expected) / abs(claim.expected)
    reason = ""
    if off:
        by = (
            f"{'+' if signed > 0 else ''}{percent(signed)}"
            if abs(signed) < 10
            else f"{show(abs(signed))} times the claim"
        )
        reason = f"off by {by}{_at(worst[1])}, tolerance {percent(claim.tolerance)}"
    shown = show(worst[0])
    if len(points) > 1:
        low, high = show(min(points)[0]), show(max(points)[0])
        shown = f"{len(points)} points, " + (f"all {low}" if low == high else f"{low} to {high}")
    return Judgement(not off, worst[0], shown, reason)


def _zero(claim: Claim, points: list[tuple[float, str]]) -> Judgement:
    value, label = max(points, key=lambda p: abs(p[0]))
    off = abs(value) > claim.tolerance + _ROUNDING
    reason = f"{show(value)}{_at(label)} is above the bound of {show(claim.tolerance)}" if off else ""
    shown = f"{len(points)} points, at most {show(abs(value))}" if len(points) > 1 else show(value)
    return Judgement(not off, value, shown, reason)


def _range(claim: Claim, points: list[tuple[float, str]]) -> Judgement:
    if claim.every:
        return _within(claim, points)
    if len(points) < 2:
        raise claim.error("eval", "kind `range` needs at least two rows, the query returned one")
    ends = (min(points), max(points))
    reasons = []
    for name, (value, label), bound in zip(("minimum", "maximum"), ends, claim.expected, strict=False):
        # A bound of 0 has no relative error, so the width of the interval takes its place.
        scale = abs(bound) or claim.expected[1] - claim.expected[0]
        error = (value - bound) / scale
        if abs(error) > claim.tolerance + _ROUNDING:
            sign = "+" if error > 0 else ""
            reasons.append(f"{name} {show(value)}{_at(label)} is off by {sign}{percent(error)}")
    reason = f"{' and '.join(reasons)}, tolerance {percent(claim.tolerance)}" if reasons else ""
    low, high = ends[0][0], ends[1][0]
    return Judgement(not reasons, [low, high], f"{show(low)} to {show(high)}", reason)


def _within(claim: Claim, points: list[tuple[float, str]]) -> Judgement:
    low: float
    high: float
    low, high = claim.expected

    def beyond(point: tuple[float, str]) -> float:
        """Distance of a point from the interval, as a share of the bound; negative inside the interval."""
        # A bound of 0 has no relative error, so the width of the interval takes its place.
        return max((low - point[0]) / (abs(low) or high - low), (point[0] - high) / (abs(high) or high - low))

    worst = max(points, key=beyond)
    outside = [p for p in points if beyond(p) > claim.tolerance + _ROUNDING]
    reason = ""
    if outside:
        side = f"below {show(low)}" if worst[0] < low else f"above {show(high)}"
        reason = f"{show(worst[0])}{_at(worst[1])} is {side} by {percent(beyond(worst))}, tolerance {percent(claim.tolerance)}"
        reason += f"; {len(outside)} of {len(points)} points off" if len(points) > 1 else ""
    ends = (min(points)[0], max(points)[0])
    shown = show(ends[0]) if len(points) == 1 else f"{show(ends[0])} to {show(ends[1])}"
    return Judgement(not outside, list(ends), shown, reason)


def _order(claim: Claim, groups: list[_Group]) -> Judgement:
    worst: tuple[float, Judgement] | None = None
    failed = 0
    for group in groups:
        values: dict[str, float] = {}
        for row in group.rows:
            name = row["name"]
            if name not in claim.expected:
                raise claim.error(
                    "eval", f"name `{name}`{_at(group.label)} is not in `expected`; {nearest(name, claim.expected)}"
                )
            if name in values:
                raise claim.error(
                    "eval", f"two rows named `{name}`{_at(group.label)}; add the column that tells them apart"
                )
            values[name] = row["value"]
        for name in claim.expected:
            if name not in values:
                raise claim.error("eval", f"no row named `{name}`{_at(group.label)}")
        chain = {name: values[name] for name in claim.expected}
        # (deviation of the pair, its two names) for the pair with the largest deviation. Pairs that are not neighbours
        # are compared as well, because slack does not accumulate along a chain.
        shortfall, large, small = max(
            (_shortfall(chain[a], chain[b]), a, b) for a, b in combinations(claim.expected, 2)
        )
        # Strict: with no slack, equal values do not show that one is larger.
        good = shortfall < claim.tolerance
        failed += not good
        text = _chain(chain, claim.tolerance)
        reason = ""
        if not good:
            by = "equal" if chain[large] == chain[small] else f"short by {percent(shortfall)}"
            reason = (
                f"{large} {show(chain[large])} is not above {small} {show(chain[small])}{_at(group.label)}"
                f" ({by}, slack {percent(claim.tolerance)})"
            )
        found = Judgement(good, chain, text + _among(len(groups)), reason)
        if worst is None or (not good, shortfall) > (not worst[1].reproduced, worst[0]):
            worst = (shortfall, found)
    assert worst is not None
    return _with_count(worst[1], failed, len(groups))


def _chain(chain: dict[str, float], slack: float) -> str:
    """The values in the expected order, with the relation (`>`, `≈`, `<` or `=`) between each two neighbours."""
    names = list(chain)
    text = f"{names[0]} {show(chain[names[0]])}"
    for a, b in zip(names, names[1:], strict=False):
        sign = (
            ">"
            if chain[a] > chain[b]
            else "≈"
            if _shortfall(chain[a], chain[b]) < slack
            else "<"
            if chain[a] < chain[b]
            else "="
        )
        text += f" {sign} {b} {show(chain[b])}"
    return text


def _shortfall(large: float, small: float) -> float:
    """Amount by which `small` exceeds `large`, as a share of `small`; negative when the order is right."""
    return (small - large) / abs(small) if small else (0.0 if large == 0 else math.copysign(math.inf, -large))


def _with_count(found: Judgement, failed: int, groups: int) -> Judgement:
    if found.reproduced or groups == 1:
        return found
    return Judgement(False, found.measured, found.shown, f"{found.reason}; {failed} of {groups} groups off")


def _trend(claim: Claim, groups: list[_Group]) -> Judgement:
    worst: tuple[float, Judgement] | None = None
    failed = 0
    for group in groups:
        line = sorted((row["x"], row["y"]) for row in group.rows)
        if len(line) < 2:
            raise claim.error("eval", f"a trend needs at least two rows, there is one{_at(group.label)}")
        for (x, _), (following, _) in zip(line, line[1:], strict=False):
            if x == following:
                raise claim.error(
                    "eval", f"two rows with x = {show(x)}{_at(group.label)}; add the column that tells them apart"
                )
        check = {"crossover": _crossover, "knee": _knee}.get(claim.expected[0], _steps)
        miss, reason = check(claim, line)
        good = reason == ""
        failed += not good
        shown = " → ".join(show(y) for _, y in line)
        found = Judgement(
            good, [list(point) for point in line], shown + _among(len(groups)), reason and reason + _at(group.label)
        )
        if worst is None or (not good, miss) > (not worst[1].reproduced, worst[0]):
            worst = (miss, found)
    assert worst is not None
    return _with_count(worst[1], failed, len(groups))


def _steps(claim: Claim, line: list[tuple[float, float]]) -> tuple[float, str]:
    """(largest deviation of two points, description or '') for `up`, `down` and `flat`."""
    direction = claim.expected[0]
    sign = {"up": 1.0, "down": -1.0, "flat": 0.0}[direction]

    def miss(before: float, after: float) -> float:
        change = (after - before) / abs(before) if before else math.copysign(math.inf, after) if after else 0.0
        return abs(change) if sign == 0 else -sign * change

    # Every point is compared with every earlier one: slack is allowed once, not once per step.
    largest, x, a, z, b = max((miss(a, b), x, a, z, b) for (x, a), (z, b) in combinations(line, 2))
    if largest > claim.tolerance + _ROUNDING:
        step = f"{show(a)} → {show(b)} from x = {show(x)} to {show(z)}"
        return largest, f"{step} misses by {percent(largest)}, slack {percent(claim.tolerance)}"
    first, last = line[0][1], line[-1][1]
    if sign and sign * (last - first) <= 0:
        overall = miss(first, last)
        return overall, f"no overall {'rise' if sign > 0 else 'fall'}: {show(first)} to {show(last)}"
    return largest, ""


def _crossover(claim: Claim, line: list[tuple[float, float]]) -> tuple[float, str]:
    """Place where the difference y changes its sign, by linear interpolation, compared with the expected x."""
    expected = claim.expected[1]
    crossings = [
        x + (z - x) * a / (a - b)
        for (x, a), (z, b) in zip(line, line[1:], strict=False)
        if (a < 0 <= b) or (a > 0 >= b)
    ]
    if len(crossings) != 1:
        return math.inf, f"y changes sign {len(crossings)} times, not once"
    error = (crossings[0] - expected) / abs(expected)
    if abs(error) > claim.tolerance + _ROUNDING:
        return abs(
            error
        ), f"crosses at x = {show(crossings[0])}, off by {percent(error)}, tolerance {percent(claim.tolerance)}"
    return abs(error), ""


# Share of its total change after which a curve counts as having left its start.
_LEFT = 0.1


def _knee(claim: Claim, line: list[tuple[float, float]]) -> tuple[float, str]:
    """The first x at which y has left its first value, compared with the expected x."""
    expected = claim.expected[1]
    start = line[0][1]
    way = max(abs(y - start) for _, y in line)
    if way == 0:
        return math.inf, "y never leaves its first value"
    knee = next(x for x, y in line if abs(y - start) > _LEFT * way)
    error = (knee - expected) / abs(expected)
    if abs(error) > claim.tolerance + _ROUNDING:
        return abs(error), f"leaves its first value at x = {show(knee)}, not {show(expected)}"
    return abs(error), ""
