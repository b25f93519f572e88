"""Claims about studies, checked: `hostnet scoreboard`. docs/claims.md says what a claims file holds and decides."""

from __future__ import annotations

import fnmatch
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from .claims import WEIGHTS, Claim, ClaimError, load, nearest, table_name
from .evaluate import Result, StudySource, connect, evaluate, tables_of
from .render import as_json, as_markdown, as_objects, expected_text, measured_text, to_terminal

__all__ = [
    "Claim", "ClaimError", "Result", "StudySource", "as_json", "as_markdown", "as_objects", "evaluate", "load", "main",
    "numbers_of", "select", "shipped",
]  # fmt: skip

CLAIMS = Path(__file__).parents[1] / "data" / "claims"


def select(claims: Iterable[Claim], only: str | None) -> list[Claim]:
    """Claims whose id or experiment matches the glob `only`; all of them for None. Raises ValueError when none does."""
    claims = list(claims)
    if only is None:
        return claims
    chosen = [c for c in claims if fnmatch.fnmatchcase(c.id, only) or fnmatch.fnmatchcase(c.experiment, only)]
    if not chosen:
        raise ValueError(f"--only {only}: no claim's id or experiment matches{nearest(only, [c.id for c in claims])}")
    return chosen


@lru_cache(maxsize=1)
def shipped() -> tuple[Claim, ...]:
    """The claims that come with hostnet."""
    return tuple(claim for file in sorted(CLAIMS.glob("*.toml")) for claim in load(file))


def numbers_of(table: str, frame: Any, others: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """(statement, expected, measured) of the shipped claims about one number that the study `table` alone decides.

    `others` are the study's further tables. Weightiest first; claims that these tables cannot decide are left out.
    """
    own = {name: other for name, other in others.items() if name.startswith(table + "_")}
    source = _Given(table, {table: frame, **own})
    con = connect()
    chosen = [
        c
        for c in shipped()
        if c.kind in ("value", "ratio", "share", "range") and tables_of(con, c) <= source.tables.keys()
    ]
    results = [r for r in evaluate(chosen, source) if r.verdict in ("reproduced", "off")]
    results.sort(key=lambda r: WEIGHTS.index(r.claim.weight))
    return [(r.claim.text.rstrip("."), expected_text(r.claim).split(" ± ")[0], measured_text(r)) for r in results]


@dataclass(frozen=True)
class _Given:
    """A StudySource with one study, computed already."""

    study: str
    tables: Mapping[str, Any]

    def studies(self) -> dict[str, tuple[str, str]]:
        return {self.study: (self.study, "")}

    def run(self, system: str, figure: str) -> Mapping[str, Any]:
        return self.tables


def main(
    files: Sequence[str | Path],
    only: str | None = None,
    json_file: str | Path | None = None,
    markdown_file: str | Path | None = None,
    strict: bool = False,
    quick: bool = False,
    jobs: int | None = None,
    source: StudySource | None = None,
    console: Any = None,
) -> int:
    """Evaluates the claims of `files`, prints the board and writes it where asked.

    Returns the exit code: 0 when everything was evaluated; 1 when `strict` and a claim is off; 2 when an input is
    malformed (one sentence on stderr, nothing run or written) or a claim could not be evaluated.
    """
    try:
        claims = select([claim for file in files for claim in load(file)], only)
        for option, path in (("--json", json_file), ("--md", markdown_file)):
            _check_writable(option, path)
        if source is None:
            source = BuiltStudies(jobs=jobs, quick=quick)
        if console is None:
            from rich.console import Console

            console = Console()
        results = evaluate(claims, source)
    except ValueError as e:
        print(f"error: {e}", file=sys.stderr)
        return 2
    to_terminal(results, console)
    if json_file is not None:
        _write(json_file, as_json(results))
    if markdown_file is not None:
        _write(markdown_file, as_markdown(results, _engine_version()))
    errors = [r for r in results if r.verdict == "error"]
    for r in errors:
        print(f"error: {r.reason}", file=sys.stderr)
    if errors:
        return 2
    return 1 if strict and any(r.verdict == "off" for r in results) else 0


class BuiltStudies:
    """The studies of `hostnet.studies`, run or taken from the cache."""

    def __init__(self, jobs: int | None = None, quick: bool = False):
        self._jobs, self._quick = jobs, quick

    def studies(self) -> dict[str, tuple[str, str]]:
        from hostnet import studies

        return {table_name(system, figure): (system, figure) for system, figure in studies.names()}

    def run(self, system: str, figure: str) -> dict[str, Any]:
        from hostnet import studies

        frame = studies.run_study(system, figure, jobs=self._jobs, quick=self._quick)
        return {table_name(system, figure): frame}


def _engine_version() -> str:
    from hostnet import _core

    return _core.version()


def _check_writable(option: str, path: str | Path | None) -> None:
    if path is None:
        return
    folder = Path(path).resolve().parent
    if not folder.is_dir():
        raise ValueError(f"{option} {path}: the folder {folder} does not exist")
    if Path(path).is_dir() or not os.access(folder, os.W_OK):
        raise ValueError(f"{option} {path}: cannot be written")


def _write(path: str | Path, text: str) -> None:
    # Whole or not at all: an interrupted run leaves the previous board.
    temporary = Path(f"{path}.part")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)
