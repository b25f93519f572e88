"""Evaluation of claims about studies: `hostnet scoreboard`. docs/use/claims.md explains claims files and verdicts."""

from __future__ import annotations

import fnmatch
import random
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..declared import PREFIX, matching
from ..errors import HostnetError
from ..output import check_file, check_no_input, write_text
from ..paths import CLAIMS, nearest
from ..runner import Jobs
from . import beside, noise
from . import first as first_run
from .claims import WEIGHTS, Claim, ClaimError, load
from .evaluate import Result, StudySource, Words, columns_of, connect, evaluate, study_of, tables_of, words_by_table
from .render import as_json, as_markdown, as_objects, expected_text, measured_text, to_terminal

if TYPE_CHECKING:
    from ..studies import StudyRun

__all__ = [
    "Claim",
    "ClaimError",
    "Result",
    "StudySource",
    "as_json",
    "as_markdown",
    "as_objects",
    "decided",
    "evaluate",
    "first_page",
    "load",
    "main",
    "numbers_of",
    "points_of",
    "select",
    "shipped",
]


def shipped_files() -> list[Path]:
    """The claims files that come with hostnet."""
    return sorted(CLAIMS.glob("*.toml"))


@lru_cache(maxsize=1)
def shipped() -> tuple[Claim, ...]:
    """The claims that come with hostnet."""
    return tuple(claim for file in shipped_files() for claim in load(file))


def select(claims: Iterable[Claim], only: str | None) -> list[Claim]:
    """Claims whose id or experiment matches the glob `only`; all claims for None. Raises HostnetError when no claim
    matches."""
    claims = list(claims)
    if only is None:
        return claims
    chosen = [c for c in claims if fnmatch.fnmatchcase(c.id, only) or fnmatch.fnmatchcase(c.experiment, only)]
    if not chosen:
        names = [name for c in claims for name in (c.id, c.experiment)]
        raise HostnetError(f"--only {only}: no claim's id or experiment matches; {_hint(only, names)}")
    return chosen


def _hint(word: str, names: list[str]) -> str:
    # A list of all hundred claims would not be a helpful hint.
    near = nearest(word, names)
    return near if near.startswith("did you mean") else f"ids look like {names[0]!r}."


def main(
    files: Sequence[str | Path] | None = None,
    only: str | None = None,
    quick: bool = False,
    json_file: Path | None = None,
    markdown_file: Path | None = None,
    jobs: Jobs = None,
    strict: bool = False,
    source: StudySource | None = None,
    console: Any = None,
    first: bool = False,
    platforms: Sequence[str] = (),
    sources: Mapping[str, StudySource] | None = None,
    studies: Sequence[str | Path] = (),
    precision: float | None = None,
) -> int:
    """Evaluates the claims of `files` (default: the shipped ones), prints the board and writes it where asked.

    `studies` are files of the user's, whose tables claims may query, too.
    Studies run on their own platform or on the one of `platforms`; with several of these the board has a column for each,
    and `sources` may hold the studies of each in place of the built ones. With `first`, the results are kept as the first
    run of their systems' boards, which is refused when there is one. Each point is measured until its leading metrics are
    known to `precision`, 2 % by default, and not longer; at 0, windows are measured whole.
    Returns the exit code: 0 when everything was evaluated, 1 when `strict` and a claim is off, 2 when a claim could not
    be evaluated. Raises HostnetError for malformed input, before anything runs.
    """
    loaded = [(Path(file), claim) for file in files or shipped_files() for claim in load(file)]
    every = [claim for _, claim in loaded]
    claims = select(every, only)
    chosen = {c.system for c in claims}
    firsts_at = {c.system: first_run.path_of(file, c.system) for file, c in loaded if c.system in chosen}
    if platforms and first:
        raise HostnetError("--first: the first run of a board is on the studies' own platform; leave out --platform.")
    boards: dict[str | None, StudySource] = {}
    if first and precision is not None:
        raise HostnetError("--first: a run with --precision is not a system's first run; leave out --precision.")
    boards.update(sources or {name: BuiltStudies(jobs, quick, name, chosen, studies, precision) for name in platforms})
    if not boards:
        boards = {None: source or BuiltStudies(jobs, quick, files=studies, precision=0 if first else precision)}
    if first:
        first_run.check(firsts_at, claims, every, quick)
    for path in (json_file, markdown_file):
        if path is not None:
            check_no_input(Path(path), files or ())
            check_file(Path(path))
    for board in boards.values():
        if isinstance(board, BuiltStudies):
            board.check(claims)
    evaluated = {name: _evaluated(claims, board) for name, board in boards.items()}
    results = [r for verdicts in evaluated.values() for r in verdicts]
    if first:
        for system, path in firsts_at.items():
            first_run.write(path, [r for r in results if r.claim.system == system], _engine_version())
    if console is None:
        from ..tables import console as standard

        console = standard(240)  # its text columns share the width
    if len(boards) > 1:
        named = {str(name): board for name, board in evaluated.items()}
        beside.to_terminal(named, console)
        as_json_text, as_page = beside.as_json(named), beside.as_markdown(named, _engine_version())
    else:
        # First runs use the studies' own platform.
        kept = {} if platforms else {system: first_run.read(path) for system, path in firsts_at.items()}
        firsts = {system: run for system, run in kept.items() if run is not None}
        to_terminal(results, console, firsts)
        as_json_text, as_page = as_json(results), as_markdown(results, _engine_version(), firsts)
    if json_file is not None:
        write_text(Path(json_file), as_json_text)
    if markdown_file is not None:
        write_text(Path(markdown_file), as_page)
    errors = [r for r in results if r.verdict == "error"]
    for reason in dict.fromkeys(r.reason for r in errors):
        print(f"error: {reason}", file=sys.stderr)
    if errors:
        return 2
    return 1 if strict and any(r.verdict == "off" for r in results) else 0


def _evaluated(claims: Sequence[Claim], board: StudySource) -> list[Result]:
    """A line of the board for each claim. Of built studies, it says how noise changes the verdict."""
    if not isinstance(board, BuiltStudies):
        return evaluate(claims, board)
    board.run_first_points(claims)
    results = evaluate(claims, board)
    wanted = words_by_table(connect(), [r.claim for r in results if r.verdict in noise.JUDGED])
    return noise.judged(results, lambda number: board.draw(number, wanted))


def first_page(name: str, files: Sequence[str | Path] | None = None) -> str:
    """The first run `name` of a system beside the claims of `files` (default: the shipped ones), as Markdown.

    `name` is a system, or a system and a platform as in `sweeper-artifact`. Raises HostnetError when there is no such
    run.
    """
    folders = dict.fromkeys(Path(file).parent / "first" for file in files or shipped_files())
    kept = {path.stem: path for folder in folders for path in sorted(folder.glob("*.json"))}
    if name not in kept:
        raise HostnetError(
            f"--show-first {name}: no such first run; " + (nearest(name, list(kept)) if kept else "none was kept.")
        )
    run = first_run.read(kept[name])
    if run is None or not run.kept:
        raise HostnetError(f"--show-first {name}: no first run was kept. {run.missing if run else ''}".rstrip())
    return first_run.as_markdown(run, name)


class BuiltStudies:
    """The studies of `hostnet.studies`, run or taken from the cache.

    Those of `systems` run on `platform` where one is named. Raises HostnetError where they do not. Studies of the user's `files`
    are beside them.
    """

    def __init__(
        self,
        jobs: Jobs = None,
        quick: bool = False,
        platform: str | None = None,
        systems: Iterable[str] = (),
        files: Iterable[str | Path] = (),
        precision: float | None = None,
    ):
        from ..studies import all_studies, on
        from ..studies.own import load as own

        self._jobs, self._quick, self._precision = jobs, quick, precision
        self._done: list[StudyRun] = []
        built = all_studies()
        for file in files:
            known = {s.table for s in built}
            for s in own(file):
                if s.table in known:
                    raise HostnetError(
                        f"--studies {file}: there is a table {s.table} already; choose another `system`."
                    )
                built.append(s)
        moved = set(systems) if platform is not None else set()
        self._all = {(s.system, s.figure): on(s, str(platform)) if s.system in moved else s for s in built}

    def studies(self) -> dict[str, tuple[str, str]]:
        """System and figure of each study, by the SQL name of its table."""
        return {s.table: key for key, s in self._all.items()}

    def check(self, claims: Iterable[Claim]) -> None:
        """Raises ClaimError for a claim of a study that does not exist, and for one whose query reads a column that no study's
        table has."""
        con = connect()
        for claim in claims:
            tables = tables_of(con, claim) if claim.eval else set()
            self._check_experiment(claim, tables)
            if not claim.eval:
                continue
            studies = [s for s in self._all.values() if s.table in tables]
            if len(studies) < len(tables):  # another table, such as one of events, has columns of its own
                continue
            known = {column for study in studies for column in study.columns}
            for names in sorted(columns_of(con, claim)):
                name = names[-1]
                if len(names) == 3 and names[0] + "." == PREFIX:
                    raise claim.error("eval", f"write the tenant's column {'.'.join(names)} in double quotes")
                if name.lower() in known:
                    continue
                if not name.startswith(PREFIX):
                    raise claim.error("eval", f"no table has the column {name!r}; {_close(name, known)}")
                try:
                    matching(name)
                except HostnetError as e:
                    raise claim.error("eval", str(e)) from None

    def _check_experiment(self, claim: Claim, tables: Collection[str]) -> None:
        """Raises ClaimError where no study is the one that the claim's `experiment` names. A claim about a figure that is not
        built yet passes, and one of a system without studies whose query reads tables of such alone."""
        from ..studies import SYSTEMS, not_built

        studies = self.studies()
        if claim.table in studies:
            return
        figures = [figure for system, figure in studies.values() if system == claim.system]
        waits = claim.system in SYSTEMS and (not claim.eval or claim.figure in not_built(claim.system))
        if figures and not waits:
            raise claim.error(
                "experiment", f"{claim.system} has no study {claim.figure!r}; {nearest(claim.figure, figures)}"
            )
        if not figures and tables and all(study_of(table, studies) for table in tables):
            systems = list(dict.fromkeys(system for system, _ in studies.values()))
            raise claim.error("experiment", f"there is no system {claim.system!r}; {nearest(claim.system, systems)}")

    def run_first_points(self, claims: Iterable[Claim]) -> None:
        """Runs the first points of all studies that the claims read, so that `run` finds their results in the cache."""
        from ..progress import Progress
        from ..studies import run_first_points

        con, studies = connect(), self.studies()
        wanted: dict[str, None] = {}
        for claim in claims:
            owners = [study_of(table, studies) for table in sorted(tables_of(con, claim))] if claim.eval else []
            if None not in owners:  # another claim waits for a study that is not built yet
                wanted |= dict.fromkeys(filter(None, owners))
        chosen = [self._all[studies[study]] for study in wanted]
        run_first_points(chosen, quick=self._quick, jobs=self._jobs, progress=Progress(), precision=self._precision)

    def run(self, system: str, figure: str) -> dict[str, Any]:
        """The study's table and its further tables, by SQL name."""
        from ..progress import Progress
        from ..studies import run

        study = self._all[system, figure]
        done = run(study, quick=self._quick, jobs=self._jobs, progress=Progress(), precision=self._precision)
        self._done.append(done)
        return done.tables()

    def draw(self, number: int, wanted: Mapping[str, Words] | None = None) -> dict[str, Any]:
        """The tables of all studies that have run, with every metric drawn from its interval. A study whose formulae refuse
        the drawn values keeps the measured ones.

        With ``wanted``, they are the tables that are named there, with at least the columns that are among the words.
        """
        rng = random.Random(number)
        tables: dict[str, Any] = {}
        for done in self._done:
            other = replace(done, results=[noise.drawn(r, rng) for r in done.results])
            try:
                tables |= other.tables() if wanted is None else other.narrow_tables(wanted)
            except Exception:  # as in `evaluate`, one study must not end the board
                tables |= done.tables()
        return tables


def _close(name: str, columns: Iterable[str]) -> str:
    near = nearest(name, list(columns))
    return near if near.startswith("did you mean") else "docs/boards/study-tables.md has those of each study."


def _engine_version() -> str:
    from .. import _core

    return _core.version()


def decided(table: str, frame: Any, others: Mapping[str, Any]) -> list[Result]:
    """Results of the shipped claims about one number that the study `table` alone decides.

    `others` are the study's further tables. The weightiest claims come first; claims that these tables cannot decide are
    omitted.
    """
    own = {name: other for name, other in others.items() if name.startswith(table + "_")}
    source = _Given(table, {table: frame, **own})
    con = connect()
    chosen = [
        c
        for c in shipped()
        if c.eval and c.kind in ("value", "ratio", "share", "range") and tables_of(con, c) <= source.tables.keys()
    ]
    results = [r for r in evaluate(chosen, source) if r.verdict in ("reproduced", "off")]
    return sorted(results, key=lambda r: WEIGHTS.index(r.claim.weight))


def numbers_of(results: Iterable[Result]) -> list[tuple[str, str, str]]:
    """Statement, expected value and measured value of claims about one number."""
    return [(r.claim.text.rstrip("."), expected_text(r.claim).split(" ± ")[0], measured_text(r)) for r in results]


def points_of(results: Iterable[Result], frame: Any, columns: Iterable[str]) -> dict[tuple[int, str], float]:
    """Numbers of a paper by row and column of a study's table: those whose measured value is one cell of the table."""
    cells: dict[float, list[tuple[int, str]]] = {}
    for column in columns:
        for row, value in enumerate(frame[column].to_list()):
            if isinstance(value, float) and value:
                cells.setdefault(value, []).append((row, column))
    found = {}
    for r in results:
        at = cells.get(r.measured, []) if isinstance(r.measured, float) else []
        if len(at) == 1 and isinstance(r.claim.expected, (int, float)):
            found[at[0]] = float(r.claim.expected)
    return found


@dataclass(frozen=True)
class _Given:
    """A StudySource with one study that has been computed already."""

    study: str
    tables: Mapping[str, Any]

    def studies(self) -> dict[str, tuple[str, str]]:
        return {self.study: (self.study, "")}

    def run(self, system: str, figure: str) -> Mapping[str, Any]:
        return self.tables
