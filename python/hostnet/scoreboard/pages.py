"""Writes the scoreboard's figures into pages of documentation: `python -m hostnet.scoreboard.pages BOARD PAGE...`.

The module keeps two kinds of tables up to date, which the head of their first column identifies:

- `claim`: a row names one claim by its id in backticks, without `SYSTEM.c.`. The columns `paper` and `here` are written
  from the board; a claim that does not hold is marked.
- `system`: a row names one system in backticks. The columns `judged`, `reproduced`, `share`, `headline` and `disputed`
  are counted from the board's outcomes, `inputs` and `definitions` are how many of those it has.

The author of a page writes the other columns, such as the meaning of a figure and the reason for a deviation.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import HostnetError
from ..paths import nearest
from .claims import WEIGHTS
from .judge import percent

_ROW = re.compile(r"\| \*\*(?P<verdict>[a-z ]+)\*\* \| (?P<weight>\w+) \| .*?`(?P<id>\w+\.c\.[\w.-]+)`.*")
_CELLS = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True)
class Line:
    """One claim on the board; `paper` and `here` are its expected and measured values as written there."""

    system: str
    name: str
    verdict: str
    weight: str  # weight of an outcome; `input` or `definition` for other claims
    paper: str
    here: str


def board(text: str) -> list[Line]:
    """The claims of a scoreboard in Markdown."""
    lines = []
    for row in filter(None, map(_ROW.fullmatch, text.splitlines())):
        cells = _cells(row[0])
        system, _, name = row["id"].partition(".c.")
        lines.append(Line(system, name, row["verdict"], row["weight"], cells[3], cells[4]))
    return lines


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in _CELLS.split(row.strip())[1:-1]]


def _tables(lines: list[str]) -> Iterator[tuple[list[str], range]]:
    """Head and line numbers of the rows of each table that the module keeps up to date."""
    for i, line in enumerate(lines):
        head = _cells(line) if line.startswith("|") else []
        if head and head[0] in ("claim", "system"):
            end = i + 2
            while end < len(lines) and lines[end].startswith("|"):
                end += 1
            yield head, range(i + 2, end)


def _name(cell: str) -> str:
    found = re.search(r"`([^`]+)`", cell)
    return found[1] if found else ""


def named(page: str) -> set[str]:
    """The claims that a page's tables name."""
    lines = page.split("\n")
    return {_name(_cells(lines[i])[0]) for head, rows in _tables(lines) if head[0] == "claim" for i in rows}


def refreshed(page: str, claims: list[Line]) -> str:
    """The page with the board's figures. Raises HostnetError for a claim or a system that is not on the board."""
    lines = page.split("\n")
    known = {
        "claim": {c.name: _of_claim(c) for c in claims},
        "system": {system: _of_system(claims, system) for system in sorted({c.system for c in claims})},
    }
    for head, rows in _tables(lines):
        for i in rows:
            cells = _cells(lines[i])
            name = _name(cells[0])
            if name not in known[head[0]]:
                raise HostnetError(f"no {head[0]} {name!r} on the scoreboard; {nearest(name, list(known[head[0]]))}")
            new = known[head[0]][name]
            lines[i] = "| " + " | ".join(new.get(column, cell) for column, cell in zip(head, cells)) + " |"
    return "\n".join(lines)


def _of_claim(line: Line) -> dict[str, str]:
    said = [line.here] if line.here else []
    mark = [] if line.verdict == "reproduced" else [f"**{line.verdict}**"]
    return {"paper": line.paper, "here": ", ".join(said + mark)}


def _of_system(claims: list[Line], system: str) -> dict[str, str]:
    own = [c for c in claims if c.system == system and c.weight in WEIGHTS]
    judged = [c for c in own if c.verdict != "disputed"]
    held = [c for c in judged if c.verdict == "reproduced"]
    heads = [c for c in judged if c.weight == "headline"]
    return {
        "judged": str(len(judged)),
        "reproduced": str(len(held)),
        "share": percent(len(held) / len(judged)),
        "headline": f"{sum(c.verdict == 'reproduced' for c in heads)} of {len(heads)}",
        "disputed": str(sum(c.verdict == "disputed" for c in own)),
        "inputs": str(sum(c.system == system and c.weight == "input" for c in claims)),
        "definitions": str(sum(c.system == system and c.weight == "definition" for c in claims)),
    }


def unexplained(claims: list[Line], pages: list[str]) -> list[str]:
    """Claims that do not hold and that no table of the pages names."""
    known = set().union(*map(named, pages))
    return [c.name for c in claims if c.verdict in ("off", "disputed") and c.name not in known]


def main(args: list[str]) -> int:
    """Rewrites the pages, and names the claims that the pages leave unexplained."""
    claims = board(Path(args[0]).read_text(encoding="utf-8"))
    texts = {}
    for file in map(Path, args[1:]):
        old = file.read_text(encoding="utf-8")
        try:
            texts[file] = refreshed(old, claims)
        except HostnetError as e:
            print(f"{file}: {e}", file=sys.stderr)
            return 2
    for file, text in texts.items():
        file.write_text(text, encoding="utf-8")
    for name in unexplained(claims, list(texts.values())):
        print(f"{name} does not hold; no table of {', '.join(args[1:])} says why.", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
