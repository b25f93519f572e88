"""The page of a calibration: measured against simulated, curve by curve, and every value with its source."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..output import check_file, write_text
from ..report.charts import Chart, Curve, grid
from ..report.html import Cell, Head, Markup, joined, markup, section, table, value_cell
from ..report.page import page
from ..specs import values_of_tables
from .curves import Simulated
from .fitting import residual
from .hierarchy import capacities, size_text
from .machine import Here
from .measured import Figure, Point

#: First characters of the page, by which a later calibration knows its own.
MARK = "<!DOCTYPE html>"
_CURVES = {
    "parallelism": "chases beside each other",
    "loaded": "latency under load",
    "bandwidth": "bandwidth",
}


def residuals(points: Sequence[Point], simulated: Sequence[Simulated]) -> dict[str, float]:
    """Root of the mean square of the relative errors, curve by curve."""
    found = {}
    for curve, name in _CURVES.items():
        both = [(p, s) for p, s in zip(points, simulated, strict=True) if p.setting.curve == curve]
        if both:
            found[name] = residual([p for p, _ in both], [s for _, s in both])
    return found


def write_page(made: Here, out: Path) -> None:
    """Writes the page as one HTML file."""
    check_file(out, MARK)
    digest = hashlib.sha256(json.dumps(dict(made.measured.data), sort_keys=True).encode()).hexdigest()
    lead = f"{made.platform['description']}; {made.count('measured')} values measured, {made.count('read')} read, {made.count('fitted')} fitted."
    body = joined(
        [
            _doubts(made),
            section("Latency by size", grid([_by_size(made)]), "Loads that depend on each other, in a random order."),
            *_fitted(made),
            section("Values", _values(made), "Every value of the platform, and where it comes from."),
        ]
    )
    write_text(out, page(f"Calibration of {made.platform['name']}", body, [digest], lead))


def _doubts(made: Here) -> Markup:
    items = joined([f"<li>{markup(note)}</li>" for note in made.notes])
    return section("What is doubtful", Markup(f"<ul>{items}</ul>") if made.notes else "")


def _by_size(made: Here) -> Chart:
    m = made.measured
    large, small = m.latency(), m.latency(small=True)
    sizes = [size for size, _ in large]
    curves = [_measured("measured, largest pages", [math.log2(s) for s in sizes], [f for _, f in large])]
    if small:
        curves.append(_measured("measured, pages of 4 KiB", [math.log2(s) for s, _ in small], [f for _, f in small]))
    modelled = [expected(made, size) for size in sizes]
    curves.append(Curve("platform: capacities and latencies", [math.log2(s) for s in sizes], modelled))
    ticks = [(math.log2(s), size_text(s)) for s in sizes if s.bit_length() % 4 == 1 and s & (s - 1) == 0]
    return Chart(
        "Latency of a load [ns]", "size of the buffer", curves, log_y=True, ticks=ticks, from_zero=False, wide=True
    )


def expected(made: Here, size: int) -> float:
    """Latency of a random load over a buffer, of caches that hit with the share of the buffer that they hold."""
    latency, below = 0.0, 0
    for level, capacity in capacities(made.measured).items():
        ns = made.levels.get(level)
        if ns is not None:
            held = min(capacity, size) / size
            latency += max(held - below / size, 0.0) * ns.median
            below = max(below, min(capacity, size))
    return latency + (1 - below / size) * made.levels["memory"].median


def _fitted(made: Here) -> Iterator[Markup]:
    fit = made.fit
    if fit is None:
        return
    both = list(zip(fit.points, fit.simulated, strict=True))
    said = ", ".join(f"{name} {r:.1%}" for name, r in residuals(fit.points, fit.simulated).items())
    chart = [
        Chart(
            "Latency of a load of chases beside each other [ns]",
            "chases",
            [
                _measured("measured", *_xy([p for p, _ in both if p.setting.curve == "parallelism"])),
                Curve(
                    "simulated",
                    [p.setting.chases for p, _ in both if p.setting.curve == "parallelism"],
                    [s.ns for p, s in both if p.setting.curve == "parallelism"],
                ),
            ],
        )
    ]
    lines = list(dict.fromkeys(p.setting.line for p, _ in both if p.setting.curve == "loaded"))
    for line in lines:
        of = [(p, s) for p, s in both if p.setting.curve == "loaded" and p.setting.line == line]
        chart.append(
            Chart(
                f"Latency under load: {line} [ns]",
                "memory traffic [GB/s]",
                [
                    _measured("measured", [p.gbs.median for p, _ in of if p.gbs], [p.ns for p, _ in of if p.ns]),
                    Curve("simulated", [s.gbs for _, s in of], [s.ns for _, s in of]),
                ],
            )
        )
    yield section("Measured and simulated", grid(chart), f"Root of the mean square of the relative errors: {said}.")
    yield section("Residuals", _residuals(both), "Every point of the curves.")


def _xy(points: Sequence[Point]) -> tuple[list[float], list[Figure]]:
    return [p.setting.chases for p in points], [p.ns for p in points if p.ns is not None]


def _measured(name: str, x: Sequence[float], figures: Sequence[Figure]) -> Curve:
    return Curve(
        name, list(x), [f.median for f in figures], [f.low for f in figures], [f.high for f in figures], lines=False
    )


def _residuals(both: Sequence[tuple[Point, Simulated]]) -> Markup:
    heads = [
        Head("curve"),
        Head("setting"),
        Head("figure"),
        Head("measured"),
        Head("spread", "%", "half of the 10th to 90th percentile"),
        Head("simulated"),
        Head("error", "%"),
    ]
    rows: list[list[Cell]] = []
    for p, s in both:
        where = p.setting.line if p.setting.curve != "parallelism" else f"{p.setting.chases} chases"
        if p.setting.curve == "loaded":
            where += f", {p.setting.pause_hashes} hashes after each line"
        if p.setting.curve == "bandwidth":
            where = f"{p.setting.threads} threads, {where}"
        for unit, measured, value in (("ns", p.ns, s.ns), ("GB/s", p.gbs, s.gbs)):
            if measured is not None and value is not None:
                cells: list[Any] = [
                    _CURVES[p.setting.curve],
                    where,
                    unit,
                    measured.median,
                    100 * measured.spread,
                    value,
                    100 * (value / measured.median - 1),
                ]
                rows.append([value_cell(c) for c in cells])
    return table(heads, rows, "residuals")


def _values(made: Here) -> Markup:
    rows, values = [], values_of_tables(made.platform)
    for key, source in made.platform["provenance"].items():
        at: Any = values
        for part in key.split("."):
            at = at.get(part) if isinstance(at, dict) else None
        kind, _, why = source.partition(": ")
        rows.append([value_cell(c) for c in (key, "" if isinstance(at, dict) else str(at), kind, why)])
    return table([Head("key"), Head("value"), Head("kind"), Head("source")], rows, "values")
