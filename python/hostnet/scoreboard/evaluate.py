"""Runs claims' queries over study tables in an in-memory DuckDB that can access neither files nor the network."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, TypeAlias

from ..errors import NotBuiltYet
from ..paths import nearest
from .claims import Claim, ClaimError
from .judge import MissingValue, judge

#: Limits of one query; every shipped query takes milliseconds and a few megabytes.
QUERY_SECONDS, QUERY_MEMORY, QUERY_ROWS = 30.0, "1GB", 100_000

VERDICTS = ("reproduced", "off", "disputed", "not built yet", "error")


class StudySource(Protocol):
    """Source of study tables: `hostnet.studies` in the product, hand-made frames in tests."""

    def studies(self) -> Mapping[str, tuple[str, str]]:
        """System and figure of every study that can be run, by the SQL name of its table."""

    def run(self, system: str, figure: str) -> Mapping[str, Any]:
        """The study's tables as data frames, by SQL name; computes the tables that the cache does not hold."""


@dataclass(frozen=True)
class Result:
    """One line of the scoreboard."""

    claim: Claim
    verdict: str
    measured: Any = None
    shown: str = ""
    reason: str = ""
    #: Share of the draws from the metrics' intervals that give the same verdict (`noise`); None where none were made.
    agreeing: float | None = None

    @property
    def within_noise(self) -> bool:
        """Whether noise turns the verdict in more than one case of twenty."""
        return self.agreeing is not None and self.agreeing < 0.95

    @property
    def note(self) -> str:
        """Reason for the verdict, what noise does to it, and the reading of the claim."""
        noise = ""
        if self.within_noise and self.agreeing is not None:
            noise = f"within noise: {1 - self.agreeing:.0%} of draws from the intervals give another verdict"
        return " ".join(_sentence(s) for s in (self.reason, noise, self.claim.note) if s)


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else text + "."


def connect() -> Any:
    """A DuckDB connection that holds only the tables that are added to it."""
    import duckdb

    # Tables are small, and further threads take longer to start than to help.
    con = duckdb.connect(
        config={"enable_external_access": "false", "memory_limit": QUERY_MEMORY, "temp_directory": "", "threads": 1}
    )
    con.execute("SET python_enable_replacements = false")
    con.execute("SET lock_configuration = true")
    return con


#: Lists of names that a query gives to columns.
_NAMES = ("column_name_alias", "column_aliases", "aliases", "unpivot_names")


#: Words of a query's text that may name columns, in small letters; None where a query may read columns without naming them.
Words: TypeAlias = "frozenset[str] | None"


class _Stream:
    """A data frame reduced to the Arrow stream interface, which DuckDB reads without needing pyarrow."""

    def __init__(self, frame: Any):
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._frame.__arrow_c_stream__(requested_schema)


def add_table(con: Any, name: str, frame: Any) -> None:
    """Makes a table of a data frame, in place of one of that name. DuckDB plans queries over its own tables
    faster than over streams."""
    con.register("_stream", _Stream(frame))
    quoted = name.replace('"', '""')
    con.execute(f'CREATE OR REPLACE TABLE "{quoted}" AS FROM _stream')
    con.unregister("_stream")


def named_columns(columns: Iterable[str], words: Words) -> list[str]:
    """The columns that are among a query's words, in any case; all without words."""
    return [c for c in columns if words is None or c.lower() in words]


def narrowed(frame: Any, words: Words) -> Any:
    """The frame with the columns that are among a query's words. Its first column stays, so that its rows can be counted."""
    return frame.select(named_columns(frame.columns, words) or frame.columns[:1])


def words_by_table(con: Any, claims: Iterable[Claim]) -> dict[str, Words]:
    """For each table that claims read, the words that may name its columns."""
    found: dict[str, Words] = {}
    for claim in claims:
        words = words_of(con, claim)
        for table in tables_of(con, claim):
            before = found.get(table, frozenset())
            found[table] = None if words is None or before is None else before | words
    return found


#: Trees of queries by their text: every plot asks for those of all shipped claims.
_TREES: dict[str, Any] = {}
#: Names of the tables that queries read, and words of queries, by their text.
_TABLES: dict[str, frozenset[str]] = {}
_WORDS: dict[str, Words] = {}


def tables_of(con: Any, claim: Claim) -> frozenset[str]:
    """Names of the tables that a claim's query reads. Raises ClaimError for anything but one SELECT."""
    known = _TABLES.get(claim.eval)
    if known is None:
        read: set[str] = set()
        local: set[str] = set()
        _walk(_statements(con, claim), read, local)
        known = _TABLES[claim.eval] = frozenset(read - local)
    return known


def words_of(con: Any, claim: Claim) -> Words:
    """Every word of a claim's query, in small letters, among which are the columns that it reads.

    None where the query may read columns that it does not name: with `*` or a natural join, by position, or as whole rows.
    """
    if claim.eval not in _WORDS:
        words: set[str] = set()
        tables: set[str] = set()
        columns: set[str] = set()
        whole = _walk_words(_statements(con, claim), words, tables, columns) or bool(tables & columns)
        _WORDS[claim.eval] = None if whole else frozenset(words)
    return _WORDS[claim.eval]


def columns_of(con: Any, claim: Claim) -> set[tuple[str, ...]]:
    """Columns that a claim's query reads and does not name itself, each with the names before it (of a table or a column of
    structs)."""
    read: set[tuple[str, ...]] = set()
    local: set[str] = set()
    _walk_columns(_statements(con, claim), read, local)
    return {names for names in read if names[-1].lower() not in local}


def _statements(con: Any, claim: Claim) -> Any:
    """The one SELECT of a claim's query as a tree."""
    if claim.eval in _TREES:
        return _TREES[claim.eval]
    tree = json.loads(con.execute("SELECT json_serialize_sql(?)", [claim.eval]).fetchall()[0][0])
    if tree["error"]:
        message = str(tree["error_message"]).splitlines()[0]
        raise claim.error("eval", f"DuckDB cannot read the query: {message}")
    if len(tree["statements"]) != 1:
        raise claim.error("eval", f"must be one SELECT, not {len(tree['statements'])} statements")
    _TREES[claim.eval] = tree["statements"]
    return tree["statements"]


#: Nodes of a query that may read columns without naming them.
_UNNAMED = ("STAR", "PIVOT", "SHOW_REF", "POSITIONAL_REFERENCE", "TABLE_FUNCTION")


def _walk_words(node: Any, words: set[str], tables: set[str], columns: set[str]) -> bool:
    """Collects the words of a query, and the names of its tables and columns; whether it may read columns without naming
    them."""
    if isinstance(node, str):
        words.add(node.lower())
        return False
    if isinstance(node, list):
        return any([_walk_words(child, words, tables, columns) for child in node])
    if not isinstance(node, dict):
        return False
    if node.get("type") == "BASE_TABLE":
        tables.update(name.lower() for name in (node["table_name"], node.get("alias")) if name)
    if node.get("class") == "COLUMN_REF":
        columns.add(node["column_names"][-1].lower())
    renamed = node.get("type") == "BASE_TABLE" and bool(node.get("column_name_alias"))
    own = renamed or node.get("ref_type") == "NATURAL" or node.get("type") in _UNNAMED
    return any([_walk_words(child, words, tables, columns) for child in node.values()]) or own


def _walk(node: Any, read: set[str], local: set[str]) -> None:
    if isinstance(node, list):
        for child in node:
            _walk(child, read, local)
    elif isinstance(node, dict):
        if node.get("type") == "BASE_TABLE":
            read.add(node["table_name"])
        if "cte_map" in node:
            local.update(entry["key"] for entry in node["cte_map"]["map"])
        for child in node.values():
            _walk(child, read, local)


def _walk_columns(node: Any, read: set[tuple[str, ...]], local: set[str]) -> None:
    if isinstance(node, list):
        for child in node:
            _walk_columns(child, read, local)
    elif isinstance(node, dict):
        if node.get("class") == "COLUMN_REF":
            read.add(tuple(node["column_names"]))
        for key, child in node.items():
            if key == "alias" and child:
                local.add(child.lower())
            elif key in _NAMES and isinstance(child, list):
                local.update(name.lower() for name in child if isinstance(name, str))
            elif key == "lhs" and node.get("class") == "LAMBDA":
                parameters: set[tuple[str, ...]] = set()
                _walk_columns(child, parameters, local)
                local.update(names[-1].lower() for names in parameters)
            else:
                _walk_columns(child, read, local)


def study_of(table: str, studies: Mapping[str, tuple[str, str]]) -> str | None:
    """The study that makes `table`: the study of that name, or the longest study name that the table's name extends
    (`<study>_events`)."""
    owners = [s for s in studies if table == s or table.startswith(s + "_")]
    return max(owners, key=len, default=None)


def evaluate(
    claims: Iterable[Claim], source: StudySource, on_study: Callable[[str, int, int], None] | None = None
) -> list[Result]:
    """A Result per claim, in order. `on_study(table, i, n)` is called before study i of n is asked for.

    Raises ClaimError, before any study runs, for a query that cannot be read or a table that no study makes. A query or
    a study that fails later gives its claim the verdict `error`.
    """
    claims = list(claims)
    con = connect()
    studies = source.studies()
    needs: dict[str, set[str]] = {}  # claim id -> studies; absent for claims whose study is not built yet
    for claim in claims:
        if not claim.eval:
            continue
        owners = set()
        for table in sorted(tables_of(con, claim)):
            owner = study_of(table, studies)
            if owner is not None:
                owners.add(owner)
            elif table == claim.table or table.startswith(claim.table + "_"):
                break
            else:
                raise claim.error("eval", f"no study makes the table `{table}`; {nearest(table, list(studies))}")
        else:
            if not owners:
                raise claim.error("eval", "the query reads no study table, so it measures nothing")
            needs[_key(claim)] = owners
    words = words_by_table(con, (c for c in claims if _key(c) in needs))
    wanted = list(dict.fromkeys(s for c in claims for s in sorted(needs.get(_key(c), ()))))
    failures: dict[str, str] = {}
    lacking: dict[str, str] = {}  # study -> the models that some of its rows need and that are not built yet
    for i, study in enumerate(wanted, 1):
        if on_study:
            on_study(study, i, len(wanted))
        try:
            for name, frame in source.run(*studies[study]).items():
                if name in words:
                    add_table(con, name, narrowed(frame, words[name]))
                if "not_built" in frame.columns and (needs_what := frame["not_built"].drop_nulls()).len():
                    lacking[study] = ", ".join(needs_what.unique(maintain_order=True))
        except NotBuiltYet as e:
            lacking[study] = str(e).rstrip(".")
            failures[study] = lacking[study]
        except Exception as e:  # one study that fails must not hide the verdicts of the others
            failures[study] = str(e).strip().splitlines()[0] if str(e).strip() else type(e).__name__
    with Queries(con) as queries:
        return [_result(queries, claim, needs.get(_key(claim)), failures, lacking, studies) for claim in claims]


class Queries:
    """Queries of claims over one connection, within the limits of time, memory and rows.

    A thread interrupts a query that takes too long. As it looks when a query can have taken its time at the earliest, short
    queries cost it nothing.
    """

    def __init__(self, con: Any):
        self._con, self._seconds = con, QUERY_SECONDS
        self._started: float | None = None
        self._lock, self._closed = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._interrupt, daemon=True)

    def __enter__(self) -> Queries:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._closed.set()
        self._thread.join()

    def ask(self, claim: Claim) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Columns and rows of the result of a claim's query."""
        with self._lock:
            self._started = time.monotonic()
        try:
            found = self._con.execute(claim.eval)
            rows = found.fetchmany(QUERY_ROWS + 1)
            if len(rows) > QUERY_ROWS:
                raise claim.error("eval", f"the query gives more than {QUERY_ROWS:,} rows")
            return [d[0] for d in found.description], rows
        finally:
            with self._lock:
                self._started = None

    def _interrupt(self) -> None:
        left = self._seconds
        while not self._closed.wait(left):
            with self._lock:
                left = self._seconds
                if self._started is not None:
                    left += self._started - time.monotonic()
                    if left <= 0:
                        self._con.interrupt()
                        left = self._seconds


def _key(claim: Claim) -> str:
    return f"{claim.file}\n{claim.id}"


def _result(
    queries: Queries,
    claim: Claim,
    needs: set[str] | None,
    failures: Mapping[str, str],
    lacking: Mapping[str, str],
    studies: Mapping[str, tuple[str, str]],
) -> Result:
    import duckdb

    if claim.disputed and not claim.eval:
        return Result(claim, "disputed", reason=claim.disputed)
    if needs is None:
        missing = f"no study `{claim.system} {claim.figure}`" if claim.table not in studies else "no query measures it"
        if all(system != claim.system for system, _ in studies.values()):
            missing += "; --studies FILE names studies of your own"
        return Result(claim, "not built yet", reason=missing)
    for study in sorted(needs & failures.keys() & lacking.keys()):
        return Result(claim, "not built yet", reason=lacking[study])
    for study in sorted(needs & failures.keys()):
        return Result(claim, "error", reason=f"study {study} failed: {failures[study]}")
    try:
        judgement = judge(claim, *queries.ask(claim))
    except duckdb.InterruptException:
        return Result(claim, "error", reason=str(claim.error("eval", f"the query takes more than {QUERY_SECONDS:g} s")))
    except duckdb.OutOfMemoryException:
        return Result(
            claim, "error", reason=str(claim.error("eval", f"the query takes more than {QUERY_MEMORY} of memory"))
        )
    except duckdb.Error as e:
        reason = claim.error("eval", f"DuckDB: {str(e).splitlines()[0]}")
        return Result(claim, "error", reason=str(reason))
    except MissingValue as e:
        # Rows without a model have no metrics; any other NULL is a fault.
        reasons = [lacking[study] for study in sorted(needs & lacking.keys())]
        if reasons:
            return Result(claim, "not built yet", reason=f"its points need {', '.join(dict.fromkeys(reasons))}")
        return Result(claim, "error", reason=str(e))
    except ClaimError as e:
        return Result(claim, "error", reason=str(e))
    if claim.disputed:
        state = "would be reproduced" if judgement.reproduced else f"would be {judgement.reason}"
        return Result(
            claim, "disputed", judgement.measured, judgement.shown, f"{claim.disputed}; as read here it {state}"
        )
    return Result(
        claim, "reproduced" if judgement.reproduced else "off", judgement.measured, judgement.shown, judgement.reason
    )
