"""The page of a study: its figure, curves that can be read off, the paper's numbers beside the measured ones, and every point."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..declared import info
from ..errors import HostnetError
from ..output import files_of
from ..paths import nearest
from .html import Cell, Head, Markup, details, joined, left_out, section, specifications, table, value_cell
from .sources import objects
from .swept import curves

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

#: Number of resolved specifications that the page holds.
MOST_DETAILS = 100

# Keys of `study.json` that the report uses.
_ABOUT = ("system", "figure", "title", "table", "metrics", "units", "points", "cached", "wall_s", "engine", "host", "quick", "written")  # fmt: skip


def study(folder: Path) -> tuple[Markup, str, list[Any]]:
    """The sections, the title and the specifications of a study's directory."""
    import polars as pl

    from ..plots import figure_of
    from ..scoreboard import decided, numbers_of, points_of

    (about,) = objects(folder / "study.json", _ABOUT, whole=True)
    name = about["table"]
    tables = {}
    for file in files_of(folder, f"{name}*.parquet"):
        try:
            tables[file.stem] = pl.read_parquet(file.read_bytes())
        except (OSError, pl.exceptions.PolarsError):
            raise HostnetError(f"{file}: is damaged; run the study again.") from None
    if (frame := tables.pop(name, None)) is None:
        raise HostnetError(f"{folder / name}.parquet: is missing; run the study again.")
    specs = objects(folder / "specs.json", ("point", "spec"))
    units = about["units"]
    for m in about["metrics"]:
        # A column that the study makes of others may have no value in any row; every other column is there.
        if m not in frame.columns and (info(m) or m not in units):
            raise HostnetError(f"{folder}: {name}.parquet has no column {m!r}; {nearest(m, list(frame.columns))}")
    drawn = about.get("drawn") or {}
    swept = [c for c in specs[0]["point"] if c in frame.columns and frame[c].count()]
    metrics = [m for m in about["metrics"] if m in frame.columns and m not in swept]
    # A point also holds values that the study computes; only the columns with a meaning of their own were swept.
    axes = [c for c in swept if c in drawn["swept"]] if drawn.get("swept") else swept
    curved = [m for m in about["metrics"] if m in frame.columns and m not in axes]
    results = decided(name, frame, tables)
    said = [
        [Cell(text), Cell(expected, of="text"), Cell(measured, of="text")]
        for text, expected, measured in numbers_of(results)
    ]
    paper = points_of(results, frame, curved) | _measured_elsewhere(frame, curved)
    claims = table([Head("statement"), Head("paper"), Head("here")], said, "the paper's numbers") if said else ""
    figure = _figure(
        figure_of(name, frame, tables, about["metrics"], drawn, results),
        f"{about['title']}; the numbers are in the table below",
    )
    body = joined(
        [
            section("Figure", figure),
            section(
                "The paper’s numbers", claims, "Statements of the paper about one number that this study alone decides."
            ),
            section(
                "Curves against what was swept",
                curves(frame.to_dicts(), axes, curved, drawn.get("swept"), paper=paper),
            ),
            section("Every point", _points(frame, swept, metrics, units)),
            section("Resolved specifications", _specs(specs, axes)),
            section("Provenance", _provenance(about, frame)),
        ]
    )
    return body, f"{about['system']} {about['figure']}: {about['title']}", [s["spec"] for s in specs]


def _measured_elsewhere(frame: pl.DataFrame, metrics: Sequence[str]) -> dict[tuple[int, str], float]:
    """Values of a machine that a study's table holds beside the simulated ones, by row and metric."""
    there = [m for m in metrics if f"their_{m}" in frame.columns]
    return {(i, m): v for m in there for i, v in enumerate(frame[f"their_{m}"].to_list()) if v is not None}


def _points(frame: pl.DataFrame, swept: Sequence[str], metrics: Sequence[str], units: dict[str, str]) -> Markup:
    heads = [Head(c, units.get(c) or "") for c in (*swept, *metrics)]
    rows = [[value_cell(v) for v in row] for row in frame.select(*swept, *metrics).iter_rows()]
    return table(heads, rows, "every point")


def _specs(specs: Sequence[dict[str, Any]], axes: Sequence[str]) -> Markup:
    names = [", ".join(f"{k} {v}" for k, v in s["point"].items() if v is not None and k in axes) for s in specs]
    shown = specifications([(n, s["spec"]) for n, s in zip(names[:MOST_DETAILS], specs)])
    every = joined([shown, left_out(len(specs), MOST_DETAILS, "specs.json holds them all")])
    return details(f"of {len(specs)} points", every)


def _provenance(about: dict[str, Any], frame: pl.DataFrame) -> Markup:
    facts: list[tuple[str, Any]] = [
        ("points", about["points"]),
        ("from the cache", about["cached"]),
        ("wall time of all points [s]", about["wall_s"]),
        ("engine", about["engine"]),
        ("host", about["host"]),
        ("quick", about["quick"]),
        ("written", about["written"]),
    ]
    if "seed" in frame.columns:
        facts.append(("seeds", ", ".join(str(s) for s in frame["seed"].unique().sort())))
    for column, text in (
        ("sim_us", "simulated [µs], all points"),
        ("warmup_us", "warm-up [µs], all points"),
        ("measure_us", "measurement window [µs], all points"),
    ):
        if column in frame.columns:
            facts.append((text, frame[column].sum()))
    return table([Head("fact"), Head("value")], [[Cell(k), value_cell(v)] for k, v in facts], "provenance")


def _figure(figure: Figure, description: str) -> Markup:
    """The figure as inline SVG. Identifiers get a prefix from the description, so that one page can hold several
    figures."""
    from ..plots import style

    text = io.StringIO()
    with style():
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    prefix = "f" + hashlib.sha256(description.encode()).hexdigest()[:8]
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\1{prefix}", svg)
    return Markup(f'<figure class="paper" role="img" aria-label="{escape(description)}">{svg}</figure>')
