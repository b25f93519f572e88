"""First runs: the results of the first run of a system's board, before any change was made in view of them.

A system's file, `first/SYSTEM.json` beside its claims, is written once and committed. Where no first run was kept, the
file says so, so that no later run can be mistaken for the first one. `hostnet scoreboard --show-first NAME` makes a
page of `first/NAME.json`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import HostnetError
from ..output import write_text
from .claims import WEIGHTS, Claim
from .evaluate import VERDICTS, Result
from .render import cell, expected_text, held, measured_text


@dataclass(frozen=True)
class First:
    """The first run of one system's board."""

    engine: str
    verdicts: Mapping[str, tuple[str, str]]  # claim id -> (verdict, measured value as text); empty when not kept
    missing: str = ""  # reason why no first run was kept
    lines: Sequence[Mapping[str, Any]] = ()  # the claims in the file at that time, with the board's results
    platform: str = ""  # the platform, if it was not the studies' own
    remark: str = ""  # notes for readers of the board, in sentences

    @property
    def kept(self) -> bool:
        """Whether the first run has results."""
        return not self.missing


def path_of(claims_file: str | Path, system: str) -> Path:
    """Path of the first run of `system`, for claims in `claims_file`."""
    return Path(claims_file).parent / "first" / f"{system}.json"


def read(path: Path) -> First | None:
    """First run that the file holds; None when there is none. Raises HostnetError when it is damaged."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as e:
        raise HostnetError(f"{path}: cannot be read as the first run of a board ({e}).") from None
    try:
        if "missing" in data:
            return First("", {}, str(data["missing"]))
        found = {c["id"]: (str(c["verdict"]), str(c["shown"])) for c in data["claims"]}
        if not all(verdict in VERDICTS for verdict, _ in found.values()):
            raise ValueError
        platform, remark = str(data.get("platform", "")), str(data.get("remark", ""))
        return First(str(data["engine"]), found, lines=data["claims"], platform=platform, remark=remark)
    except (KeyError, TypeError, ValueError):
        raise HostnetError(f"{path}: is not the first run of a board.") from None


def check(paths: Mapping[str, Path], claims: Sequence[Claim], every: Sequence[Claim], quick: bool) -> None:
    """Raises HostnetError, before anything runs, when a first run cannot be kept: one exists already, or this run is
    incomplete.

    `claims` holds the chosen claims, `every` all claims of the files; `paths` has a file per system.
    """
    if quick:
        raise HostnetError("--first: a quick run is not a system's first run; leave out --quick.")
    for system, path in paths.items():
        chosen = sum(c.system == system for c in claims)
        if chosen < (whole := sum(c.system == system for c in every)):
            raise HostnetError(
                f"--first: these are {chosen} of {whole} claims of {system}; choose all with --only '{system}.*'."
            )
        if path.exists():
            raise HostnetError(f"--first: {path} is there already; a first run is never written again.")


def write(path: Path, results: Iterable[Result], engine: str) -> None:
    """Keep these results as a system's first run. Raises HostnetError when the file is there or cannot be written."""
    if path.exists():
        raise HostnetError(f"--first: {path} is there already; a first run is never written again.")
    write_text(path, as_json(results, engine))


def as_json(results: Iterable[Result], engine: str) -> str:
    """A first run as text; ends with a newline."""
    lines: list[dict[str, Any]] = [
        {
            "id": r.claim.id,
            "figure": r.claim.figure,
            "role": r.claim.role,
            "weight": r.claim.weight,
            "verdict": r.verdict,
            "measured": r.measured,
            "shown": measured_text(r),
            "expected": expected_text(r.claim),
            "text": r.claim.text,
            "where": r.claim.where,
            "note": r.note,
        }
        for r in results
    ]
    return json.dumps({"engine": engine, "claims": lines}, indent=1, ensure_ascii=False) + "\n"


def as_markdown(run: First, name: str) -> str:
    """The first run `name` as a page: counts of the outcomes, then a table per figure, with inputs and definitions at
    the end."""
    on = f" on the platform `{run.platform}`" if run.platform else ""
    text = [f"# First run of {name}", "", f"What the board showed when it first ran{on}, engine {run.engine}."]
    if run.remark:
        text += ["", run.remark]
    outcomes = [c for c in run.lines if c.get("role", "outcome") == "outcome"]
    text += [
        "",
        f"| outcomes | {' | '.join(VERDICTS)} | reproduced of judged |",
        "|---|" + "---:|" * (len(VERDICTS) + 1),
    ]
    for weight in (*WEIGHTS, "all"):
        verdicts = [c["verdict"] for c in outcomes if weight in ("all", c.get("weight"))]
        if verdicts:
            counts = " | ".join(str(verdicts.count(v)) for v in VERDICTS)
            text.append(f"| {weight} | {counts} | {', '.join(held(verdicts))} |")
    for figure in dict.fromkeys(c.get("figure", "") for c in outcomes):
        text += [
            "",
            f"## {figure or 'Outcomes'}",
            "",
            *_table([c for c in outcomes if c.get("figure", "") == figure], "weight"),
        ]
    if others := [c for c in run.lines if c not in outcomes]:
        text += ["", "## Inputs and definitions", "", *_table(others, "role")]
    return "\n".join(text) + "\n"


def _table(lines: Sequence[Mapping[str, Any]], kind: str) -> list[str]:
    """Rows of a page's table, without columns that are empty in all lines."""
    others = list(dict.fromkeys(platform for c in lines for platform in c.get("beside", {})))
    rows = []
    for c in lines:
        where = f" ({c['where']})" if c.get("where") else ""
        row = {
            "verdict": f"**{c['verdict']}**",
            kind: c.get(kind, ""),
            "claim": f"{c.get('text', '')} `{c['id']}`{where}".lstrip(),
        }
        row |= {"expected": c.get("expected", ""), "measured": c["shown"]}
        row |= {
            f"on {p}": ", ".join(filter(None, (c["beside"][p]["verdict"], c["beside"][p]["shown"]))) for p in others
        }
        rows.append(row | {"note": c.get("note", "")})
    head = [column for column in rows[0] if any(row[column] for row in rows)]
    body = ["| " + " | ".join(cell(row[column]) for column in head) + " |" for row in rows]
    return ["| " + " | ".join(head) + " |", "|---" * len(head) + "|", *body]
