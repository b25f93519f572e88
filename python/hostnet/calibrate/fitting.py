"""Values of a platform that no counter tells, fitted so that the engine's curves are those that were measured."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from ..errors import HostnetError
from ..progress import Progress
from .curves import Simulated, curves
from .measured import Point

#: Smallest spread of a measured figure that counts: repeated measurements of a quiet machine differ by as much.
FLOOR = 0.03
#: Error from which on a figure draws less, as the model may be unable to reach it.
ROBUST = 0.1
#: Places between the bounds of a value that are tried before the search.
SCANNED = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
#: Values that limit each other's curves: prefetches for stores hide a store queue that is too long, and stores a prefetcher that
#: has too few credits; a store crosses the link to memory in both directions. Their places are tried together.
PAIRED = (
    ("core.store_queue", "core.prefetch.credits"),
    ("caches.llc.quirks.memory_link.read", "caches.llc.quirks.memory_link.write"),
)
#: Change of a figure over these places, below which the value is not searched for.
MATTERS = 0.03
#: Cost at which a search ends: errors of a third of `FLOOR`, which no measurement tells from none.
TARGET = (FLOOR / 3) ** 2
#: Change of the residual, in points of 100 %, below which the curves do not tell a value.
TELLING = 0.005


@dataclass(frozen=True)
class Value:
    """A value that is fitted: its key, its bounds, whether it is whole, and its unit where it is text."""

    key: str
    low: float
    high: float
    whole: bool = True
    unit: str = ""
    #: Factor by which the first guesses of the search differ from where it begins.
    width: float = 1.3

    def get(self, platform: Mapping[str, Any]) -> float | None:
        """The value of a platform; None where the platform lacks the table."""
        at: Any = platform
        for part in self.key.split("."):
            if not isinstance(at, Mapping) or part not in at:
                return None
            at = at[part]
        return float(at.partition(" ")[0]) if isinstance(at, str) else float(at)

    def put(self, platform: dict[str, Any], value: float) -> None:
        """Sets the value."""
        *tables, last = self.key.split(".")
        at = platform
        for part in tables:
            at = at[part]
        at[last] = f"{value:g} {self.unit}" if self.unit else (int(value) if self.whole else value)

    def decode(self, place: float) -> float:
        """The value at a place of 0 to 1 between the bounds, on a scale of ratios."""
        value = self.low * (self.high / self.low) ** min(max(place, 0.0), 1.0)
        return float(round(value)) if self.whole else round(value, 1)

    def encode(self, value: float) -> float:
        """The place of a value."""
        return math.log(min(max(value, self.low), self.high) / self.low) / math.log(self.high / self.low)


#: What is fitted, in the order of a platform's file.
VALUES = (
    Value("core.store_queue", 4, 256),
    Value("core.lfb", 4, 48, width=1.15),
    Value("core.quirks.lfb_retry", 0.5, 60, whole=False, unit="ns"),
    Value("core.prefetch.distance", 4, 63),
    Value("core.prefetch.credits", 4, 127),
    Value("caches.llc.quirks.memory_link.read", 8, 400, whole=False, unit="GB/s"),
    Value("caches.llc.quirks.memory_link.write", 8, 400, whole=False, unit="GB/s"),
    Value("memory.rpq", 8, 128),
    Value("memory.wpq", 8, 128),
    Value("memory.static_latency_ns", 1, 600, whole=False, width=1.1),
)


@dataclass
class Fit:
    """A fitted platform, the values that were fitted, and what the curves do not tell."""

    platform: dict[str, Any]
    fitted: dict[str, float]
    untold: list[str]
    points: Sequence[Point]
    simulated: Sequence[Simulated]
    before: float
    evaluations: int
    residual: float = field(init=False)

    def __post_init__(self) -> None:
        self.residual = residual(self.points, self.simulated)


def errors(points: Sequence[Point], simulated: Sequence[Simulated]) -> list[float]:
    """Logarithms of simulated by measured, of every figure of every point."""
    found = []
    for p, s in zip(points, simulated, strict=True):
        for measured, value in ((p.ns, s.ns), (p.gbs, s.gbs)):
            if measured is not None and value is not None:
                found.append(math.log(max(value, 1e-9) / measured.median))
    return found


def residual(points: Sequence[Point], simulated: Sequence[Simulated]) -> float:
    """Root of the mean square of the relative errors."""
    found = errors(points, simulated)
    return math.sqrt(sum(e * e for e in found) / len(found))


def cost(points: Sequence[Point], simulated: Sequence[Simulated]) -> float:
    """Mean loss of the relative errors, each weighted by the spread of its measurement.

    The loss is Cauchy's: about the square of a small error, and its logarithm for an error beyond `ROBUST`, so that a
    figure that no value of the model can reach does not draw the values away from the others.
    """
    total, weights = 0.0, 0.0
    for p, s in zip(points, simulated, strict=True):
        for measured, value in ((p.ns, s.ns), (p.gbs, s.gbs)):
            if measured is not None and value is not None:
                weight = 1 / max(measured.spread, FLOOR) ** 2
                error = math.log(max(value, 1e-9) / measured.median)
                total += weight * ROBUST**2 * math.log1p((error / ROBUST) ** 2)
                weights += weight
    return total / weights


def telling_points(points: Sequence[Point], most: int = 18) -> list[Point]:
    """The points that a fit simulates: every number of chases, because the last ones alone fill the line fill buffers; every
    stream in order without a chase; and as many of those beside a chase as make `most`, but both ends of each curve.
    """
    kept = [p for p in points if p.setting.order == "sequential" and p.setting.curve != "loaded"]
    curves: dict[str, list[Point]] = {}
    for p in points:
        if p.setting.curve == "loaded":
            curves.setdefault(p.setting.line, []).append(p)
    room = max(2, (most - len(kept)) // max(1, len(curves)))
    for curve in curves.values():
        many = min(room, len(curve))
        kept += [curve[round(i * (len(curve) - 1) / max(1, many - 1))] for i in range(many)]
    return kept


def fit(
    platform: Mapping[str, Any],
    points: Sequence[Point],
    *,
    generations: int = 18,
    starts: int = 2,
    quiet: bool = True,
    simulate: Callable[..., list[Simulated]] = curves,
) -> Fit:
    """Fit the values of `VALUES` that the platform has to measured points.

    The search is CMA-ES, which needs no derivatives and bears with rounding to whole entries. It runs on places between 0
    and 1 on a scale of ratios, so that all values are of one size and keep to their bounds. Line fill buffers and static
    latency begin at what chases say by Little's law, and every value at the best of some places. Unless the first search reaches `TARGET`, others follow from places
    drawn around that one, as a search may end in a valley that is not the deepest. A value whose return to the base's
    changes the residual by less than `TELLING` returns to it.
    """
    used = telling_points(points)
    if not used:
        raise HostnetError("the measurements hold no curve to fit to; measure again with hostnet calibrate.")
    start = copy.deepcopy(dict(platform))
    every = [v for v in VALUES if v.get(start) is not None]
    base = {v.key: v.get(start) or v.low for v in every}
    before = residual(points, simulate(platform, [p.setting for p in points]))
    model = _Model(start, used, simulate)
    begin, values = _begun(every, _suggested(start, every, used, simulate), model, quiet)
    found = _searched(values, begin, model, generations, starts, quiet)
    back = _untold(values, found, base, model)
    fitted = {k: x for k, x in found.items() if k not in back}
    untold = [v.key for v in every if v.key not in fitted]
    made = with_values(start, values, [base[v.key] if v.key in back else found[v.key] for v in values])
    simulated = simulate(made, [p.setting for p in points])
    return Fit(made, fitted, untold, points, simulated, before, model.evaluations)


class _Model:
    """The curves of a platform by its values, each simulated once: rounding makes many places one."""

    def __init__(self, start: dict[str, Any], used: Sequence[Point], simulate: Callable[..., list[Simulated]]) -> None:
        self.used, self.evaluations = used, 0
        self._start, self._simulate = start, simulate
        self._known: dict[tuple[tuple[str, float], ...], list[Simulated]] = {}

    def curves(self, values: Mapping[str, float]) -> list[Simulated]:
        """The curves at the points that the fit uses."""
        key = tuple(sorted(values.items()))
        if key not in self._known:
            self.evaluations += 1
            put = [v for v in VALUES if v.key in values]
            made = with_values(self._start, put, [values[v.key] for v in put])
            self._known[key] = self._simulate(made, [p.setting for p in self.used])
        return self._known[key]

    def cost(self, values: Mapping[str, float]) -> float:
        """`cost` of these curves."""
        return cost(self.used, self.curves(values))


def _searched(
    values: Sequence[Value], begin: Mapping[str, float], model: _Model, generations: int, starts: int, quiet: bool
) -> dict[str, float]:
    """The values with the lowest cost that any search found."""
    cma = _cma()
    draw = random.Random(1)
    widths = [math.log(v.width) / math.log(v.high / v.low) for v in values]
    first = [v.encode(begin[v.key]) for v in values]
    best, found = math.inf, {v.key: begin[v.key] for v in values}
    with Progress(quiet).stage("fitting", {f"search {i + 1}": 1.0 for i in range(starts)}, "") as report:
        for i in range(starts):
            # Twice the width of the first guesses is a factor of 1.7 for most values.
            places = [min(max(x + i * draw.uniform(-2, 2) * w, 0.0), 1.0) for x, w in zip(first, widths, strict=True)]
            search = cma.CMAEvolutionStrategy(
                places,
                1.0,
                {
                    "bounds": [0, 1],
                    "maxstd_boundrange": math.inf,  # cma 4.5 fails where steps grow to this share of the bounds
                    "CMA_stds": widths,
                    "seed": i + 1,
                    "verbose": -9,
                    "maxiter": generations,
                    "ftarget": TARGET,
                },
            )
            while not search.stop():
                asked = search.ask()
                tried = [{v.key: v.decode(float(x)) for v, x in zip(values, places, strict=True)} for places in asked]
                told = [model.cost(t) for t in tried]
                search.tell(asked, told)
                lowest = min(range(len(told)), key=told.__getitem__)
                if told[lowest] < best:
                    best, found = told[lowest], tried[lowest]
                report(f"search {i + 1}", search.countiter / generations)
            report(f"search {i + 1}", 1.0)
            if best <= TARGET:
                break
    return found


def _begun(
    every: Sequence[Value], begin: dict[str, float], model: _Model, quiet: bool
) -> tuple[dict[str, float], list[Value]]:
    """Places at which a search begins, and the values that change the curves."""
    together = [of for pair in PAIRED if (of := [v for v in every if v.key in pair])]
    values = []
    with Progress(quiet).stage("trying values", {"tried": 1.0}, "") as report:
        steps = len(together) + len(every)
        for i, pair in enumerate(together, 1):
            begin = _scanned_together(pair, begin, model)
            report("tried", i / steps)
        for i, v in enumerate(every, 1 + len(together)):
            matters, begin[v.key] = _scanned(v, begin, model)
            values += [v] if matters else []
            report("tried", i / steps)
    return begin, values


def _scanned(value: Value, begin: Mapping[str, float], model: _Model) -> tuple[bool, float]:
    """Whether the value changes any figure of the curves by more than `MATTERS` between its bounds, and the place with the
    lowest cost; of equal ones the smallest, next to which a limit begins to tell. A search that began where twice or half of a
    value changes nothing would not leave it."""
    now = begin[value.key]
    tried = [now, *(value.decode(place) for place in SCANNED)]
    found = [model.curves({**begin, value.key: x}) for x in tried]
    figures = [[f for s in curve for f in (s.ns, s.gbs) if f] for curve in found]
    matters = any(math.log(max(of) / min(of)) > MATTERS for of in zip(*figures, strict=True))
    costs = [(cost(model.used, curve), x) for curve, x in zip(found, tried, strict=True)]
    return matters, min(costs)[1] if matters else now


def _scanned_together(values: Sequence[Value], begin: Mapping[str, float], model: _Model) -> dict[str, float]:
    """The values, those of `values` at the places with the lowest cost of all their combinations, and of equal ones the
    smallest."""
    places = [[begin[v.key], *(v.decode(place) for place in SCANNED)] for v in values]
    tried = [{**begin, **dict(zip((v.key for v in values), of, strict=True))} for of in product(*places)]
    return min(tried, key=lambda t: (model.cost(t), *(t[v.key] for v in values)))


def _untold(values: Sequence[Value], found: Mapping[str, float], base: Mapping[str, float], model: _Model) -> list[str]:
    """Keys whose return to the base's value costs nothing that the measurements could tell; the cheapest returns first, and
    the next one is judged with it."""
    now, back = dict(found), list[str]()
    best = math.sqrt(model.cost(now))
    while True:
        costs = {v.key: math.sqrt(model.cost({**now, v.key: base[v.key]})) for v in values if v.key not in back}
        key = min(costs, key=costs.__getitem__, default=None)
        if key is None or costs[key] > best + TELLING:
            return back
        back.append(key)
        now[key] = base[key]


def _suggested(
    start: dict[str, Any],
    values: Sequence[Value],
    used: Sequence[Point],
    simulate: Callable[..., list[Simulated]],
) -> dict[str, float]:
    """Values at which the search begins: the platform's own, but line fill buffers and static latency by the chases."""
    begin = {v.key: v.get(start) or v.low for v in values}
    chases = sorted(
        ((p.setting.chases, p.ns) for p in used if p.setting.curve == "parallelism" and p.ns is not None),
        key=lambda c: c[0],
    )
    if len(chases) > 1 and chases[0][0] == 1:
        one, most = chases[0][1], chases[-1][1]
        begin["core.lfb"] = float(min(max(round(one.median / most.median), 4), 48))
        alone = next(p.setting for p in used if p.setting.curve == "parallelism")
        simulated = simulate(start, [alone])[0].ns
        if simulated is not None:
            static = begin["memory.static_latency_ns"] + one.median - simulated
            begin["memory.static_latency_ns"] = min(max(static, 1.0), 600.0)
    return begin


def with_values(platform: Mapping[str, Any], values: Sequence[Value], of: Sequence[float]) -> dict[str, Any]:
    """A copy of a platform with other values."""
    made = copy.deepcopy(dict(platform))
    for v, value in zip(values, of, strict=True):
        v.put(made, value)
    for queue in ("rpq", "wpq"):
        mark = f"{queue}_full_mark"
        if mark in made["memory"]:
            made["memory"][mark] = min(made["memory"][mark], made["memory"][queue])
    return made


def _cma() -> Any:
    try:
        import cma
    except ModuleNotFoundError:
        raise HostnetError(
            "the fit needs the package cma, 0.3 MB; install it with `pip install 'hostnet[calibrate]'`, or give --no-fit."
        ) from None
    return cma
