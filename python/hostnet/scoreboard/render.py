"""The scoreboard in readable form (terminal, Markdown) and for programs (JSON)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from .. import tables
from .claims import ROLES, WEIGHTS, Claim
from .evaluate import VERDICTS, Result
from .judge import percent, show

if TYPE_CHECKING:
    from .first import First

_STYLES = {"reproduced": "green", "off": "red", "disputed": "yellow", "not built yet": "dim", "error": "bold red"}
_TRENDS = {"up": "rises", "down": "falls", "flat": "stays flat"}


def expected_text(claim: Claim) -> str:
    """Expectation of a claim, with unit and tolerance, in one line."""
    unit = _unit(claim)
    if claim.interval:
        low, high = claim.expected
        return f"{'all in ' if claim.every else ''}{show(low)} to {show(high)}{unit}" + (
            f" ± {percent(claim.tolerance)}" if claim.tolerance else ""
        )
    if claim.kind == "zero":
        return f"0{unit}" + (f" (at most {show(claim.tolerance)})" if claim.tolerance else "")
    slack = f" (slack {percent(claim.tolerance)})" if claim.tolerance else ""
    if claim.kind == "order":
        return " > ".join(claim.expected) + slack
    if claim.kind == "trend":
        name = claim.expected[0]
        at = {"crossover": "crosses at", "knee": "leaves its first value at"}
        return (_TRENDS[name] if name in _TRENDS else f"{at[name]} {show(claim.expected[1])}") + slack
    return f"{show(claim.expected)}{unit}" + (f" ± {percent(claim.tolerance)}" if claim.tolerance else "")


def grouped(results: Sequence[Result]) -> Iterator[tuple[str, list[Result]]]:
    """Heading and results of each system and figure, in the order in which the files name them."""
    order = {key: i for i, key in enumerate(dict.fromkeys(_place(r) for r in results))}
    for key, members in groupby(sorted(results, key=lambda r: order[_place(r)]), key=_place):
        yield " ".join(key), list(members)


def _place(result: Result) -> tuple[str, str]:
    return result.claim.system, result.claim.figure


def summary(results: Sequence[Result]) -> list[tuple[str, list[int], str]]:
    """Name, count per verdict and share of reproduced claims of each weight; the last row is the total.

    The share counts only claims that are judged.
    """
    rows = []
    for weight in (*WEIGHTS, "all"):
        verdicts = [r.verdict for r in results if r.claim.counts and weight in ("all", r.claim.weight)]
        counts = Counter(verdicts)
        _, share = held(verdicts)
        rows.append((weight, [counts[v] for v in VERDICTS], share))
    return rows


def held(verdicts: Sequence[str]) -> tuple[str, str]:
    """Number and share of the judged claims that are reproduced, such as `3 of 4` and `75 %`.

    All claims except the disputed ones are judged, so that a claim that could not be evaluated does not hold.
    """
    judged = [v for v in verdicts if v != "disputed"]
    good = judged.count("reproduced")
    return f"{good} of {len(judged)}", percent(good / len(judged)) if judged else "-"


def systems(results: Sequence[Result], firsts: Mapping[str, First]) -> list[tuple[str, ...]]:
    """Per system: its key, the outcomes and headline outcomes that hold, the same counts of the first run, inputs,
    definitions."""
    rows: list[tuple[str, ...]] = []
    for system in dict.fromkeys(r.claim.system for r in results):
        own = [r for r in results if r.claim.system == system]
        outcomes = [r for r in own if r.claim.counts]
        heads = [r for r in outcomes if r.claim.weight == "headline"]
        first = firsts.get(system)
        if first is None or not first.kept:
            then = ("no first run was kept",) * 2
        else:
            seen = [
                [first.verdicts[r.claim.id][0] for r in group if r.claim.id in first.verdicts]
                for group in (outcomes, heads)
            ]
            then = (", ".join(held(seen[0])), held(seen[1])[0])
        now = (", ".join(held([r.verdict for r in outcomes])), held([r.verdict for r in heads])[0])
        roles = Counter(r.claim.role for r in own)
        rows.append((system, now[0], then[0], now[1], then[1], str(roles["input"]), str(roles["definition"])))
    return rows


def as_objects(results: Sequence[Result]) -> list[dict[str, Any]]:
    """The JSON form: one object per claim."""
    return [
        {
            "id": r.claim.id,
            "experiment": r.claim.experiment,
            "role": r.claim.role,
            "weight": r.claim.weight,
            "verdict": r.verdict,
            "expected": r.claim.expected,
            "measured": r.measured,
            "unit": r.claim.unit,
            "agreeing": r.agreeing,
            "note": r.note,
        }
        for r in results
    ]


def as_json(results: Sequence[Result]) -> str:
    """`as_objects` as text; ends with a newline."""
    return json.dumps(as_objects(results), indent=1, ensure_ascii=False) + "\n"


def as_markdown(results: Sequence[Result], version: str, firsts: Mapping[str, First] | None = None) -> str:
    """The whole board as Markdown, without a date, so that the text changes only when a result changes.

    `firsts` has the first run of each system's board, or the reason why no first run was kept.
    """
    firsts = firsts or {}
    lines = [
        "# Scoreboard",
        "",
        f"Generated by `hostnet scoreboard`, engine {version}; do not edit. Verdicts and roles: [claims](../use/claims.md).",
        "Only outcomes count. Inputs and definitions stand at the end.",
        "",
        "| weight | " + " | ".join(VERDICTS) + " | reproduced of judged |",
        "|---|" + "---:|" * (len(VERDICTS) + 1),
    ]
    lines += [f"| {weight} | {' | '.join(map(str, counts))} | {share} |" for weight, counts, share in summary(results)]
    lines += [
        "",
        "| by system | hold now | at first sight | headline now | headline at first sight | inputs | definitions |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [f"| {' | '.join(row)} |" for row in systems(results, firsts)]
    lines += [
        f"\nAt first sight: {system} has no first run. {first.missing}"
        for system, first in firsts.items()
        if not first.kept
    ]
    for heading, members in grouped([r for r in results if r.claim.counts]):
        lines += ["", f"## {heading}", "", *_table(members, "weight", firsts.get(members[0].claim.system))]
    for system, members in by_system([r for r in results if not r.claim.counts]):
        lines += ["", f"## {system}: inputs and definitions", "", *_table(members, "role", None)]
    return "\n".join(lines) + "\n"


def by_system(results: Sequence[Result]) -> list[tuple[str, list[Result]]]:
    """Results of each system, in the order in which the files name the systems; within a system, ordered by role."""
    found: dict[str, list[Result]] = {}
    for r in sorted(results, key=lambda r: ROLES.index(r.claim.role)):
        found.setdefault(r.claim.system, []).append(r)
    order = list(dict.fromkeys(r.claim.system for r in results))
    return [(system, found[system]) for system in order]


def _table(members: Sequence[Result], kind: str, first: First | None) -> list[str]:
    """Rows of a table; the second column is the claim's `weight` or `role`."""
    head = [
        "verdict",
        kind,
        "claim",
        "expected",
        "measured",
        *(["at first sight"] if first and first.kept else []),
        "note",
    ]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for r in members:
        claim = f"{r.claim.text} `{r.claim.id}`" + (f" ({r.claim.where})" if r.claim.where else "")
        cells = [f"**{r.verdict}**", getattr(r.claim, kind), claim, expected_text(r.claim), measured_text(r)]
        if first and first.kept:
            verdict, shown = first.verdicts.get(r.claim.id, ("not there", ""))
            cells.append(f"{verdict}{': ' if shown else ''}{shown}")
        lines.append("| " + " | ".join(map(cell, [*cells, r.note])) + " |")
    return lines


def measured_text(result: Result) -> str:
    """The measured value of a line, with the claim's unit where the value is one number or an interval."""
    if not result.shown and result.verdict == "disputed":
        return "not modelled"
    if not result.shown or result.claim.kind in ("order", "trend"):
        return result.shown
    return result.shown + _unit(result.claim)


def _unit(claim: Claim) -> str:
    return {"fraction": "", "x": "x", "": ""}.get(claim.unit, f" {claim.unit}")


def cell(text: str) -> str:
    """`text` as a cell of a Markdown table."""
    return text.replace("|", "\\|").replace("\n", " ")


def to_terminal(results: Sequence[Result], console: Any, firsts: Mapping[str, First] | None = None) -> None:
    """Prints the board on a rich console: a table per figure, separate tables for inputs and definitions, then the
    counts of outcomes."""
    from rich.table import Table

    for heading, members in grouped([r for r in results if r.claim.counts]):
        console.print(_terminal_table(heading, members, "weight"))
    for system, members in by_system([r for r in results if not r.claim.counts]):
        console.print(_terminal_table(f"{system}: inputs and definitions, which do not count", members, "role"))
    total = Table(title="Outcomes", title_justify="left", title_style="bold")
    total.add_column("weight")
    for verdict in VERDICTS:
        total.add_column(verdict, justify="right", style=_STYLES[verdict])
    total.add_column("reproduced of judged", justify="right")
    for weight, counts, share in summary(results):
        total.add_row(weight, *map(str, counts), share, end_section=weight == WEIGHTS[-1])
    console.print(total)
    headings = ("hold now", "at first sight", "headline now", "headline at first sight", "inputs", "definitions")
    columns = [tables.Column("system", text=True, key=True), *(tables.Column(h, text=True) for h in headings)]
    rows = [[*row, str(inputs), str(definitions)] for *row, inputs, definitions in systems(results, firsts or {})]
    tables.show(columns, rows, title="By system", to=console)


def _terminal_table(heading: str, members: Sequence[Result], kind: str) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=heading, title_justify="left", title_style="bold", expand=True)
    table.add_column("verdict", no_wrap=True, min_width=10)
    table.add_column("claim", ratio=5)
    table.add_column("expected", ratio=3)
    table.add_column("measured", ratio=3)
    table.add_column("note", ratio=4, style="dim")
    for r in members:
        claim = Text(r.claim.text)
        claim.append(f"\n{r.claim.id}  {getattr(r.claim, kind)}", style="dim")
        note = "" if r.verdict == "reproduced" and r.claim.counts else r.note
        table.add_row(
            Text(r.verdict, style=_STYLES[r.verdict]), claim, expected_text(r.claim), measured_text(r), Text(note)
        )
    return table
