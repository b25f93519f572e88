"""At first sight: what the first run of a system's board gave, before anything was changed in view of it.

A system's file, `first/SYSTEM.json` beside its claims, is written once and committed. Where no such run was kept the file says
so, so that no later run can pass for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import HostnetError
from ..output import write_text
from .claims import Claim
from .evaluate import VERDICTS, Result
from .render import measured_text


@dataclass(frozen=True)
class First:
    """The first run of one system's board."""

    engine: str
    verdicts: Mapping[str, tuple[str, str]]  # claim id -> (verdict, what was measured, for people); empty when not kept
    missing: str = ""  # why no first run was kept

    @property
    def kept(self) -> bool:
        """Whether there is anything to show."""
        return not self.missing


def path_of(claims_file: str | Path, system: str) -> Path:
    """Where the first run of `system` lies, for claims in `claims_file`."""
    return Path(claims_file).parent / "first" / f"{system}.json"


def read(path: Path) -> First | None:
    """What the file holds; None when there is none. Raises HostnetError when it is damaged."""
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
        return First(str(data["engine"]), found)
    except (KeyError, TypeError, ValueError):
        raise HostnetError(f"{path}: is not the first run of a board.") from None


def check(paths: Mapping[str, Path], claims: Sequence[Claim], every: Sequence[Claim], quick: bool) -> None:
    """Raises HostnetError, before anything runs, when a first run cannot be kept: it has been, or this is no whole run.

    `claims` are those chosen, `every` those of the files; `paths` has a file per system.
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
        {"id": r.claim.id, "verdict": r.verdict, "measured": r.measured, "shown": measured_text(r)} for r in results
    ]
    return json.dumps({"engine": engine, "claims": lines}, indent=1, ensure_ascii=False) + "\n"
