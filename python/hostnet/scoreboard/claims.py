"""Claims files: their contents, and one clear sentence about an error in them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._toml import TEXT, tomllib
from ..errors import HostnetError
from ..paths import CLAIMS, nearest
from ..renamed import query

KINDS = ("value", "ratio", "share", "range", "zero", "order", "trend")
TRENDS = ("up", "down", "flat", "crossover", "knee")
WEIGHTS = ("headline", "major", "detail")
ROLES = ("outcome", "input", "definition")

_REQUIRED = ("id", "text", "experiment", "role", "kind", "expected", "tolerance", "unit")
_CHOICES = {"role": ROLES, "kind": KINDS, "weight": WEIGHTS}
_OPTIONAL = ("eval", "where", "metric", "at", "weight", "real_hw", "note", "disputed")


class ClaimError(HostnetError):
    """A claims file cannot be used; str() is one sentence that names file, claim and key."""

    def __init__(self, file: str, claim: str | None, key: str | None, message: str):
        where = [file] + ([f"claim {claim}"] if claim else []) + ([f"key `{key}`"] if key else [])
        super().__init__(f"{': '.join(where)}: {message}")


@dataclass(frozen=True)
class Claim:
    """One statement and the query that measures it (docs/use/claims.md has the meaning of every field)."""

    id: str
    text: str
    experiment: str
    role: str
    kind: str
    expected: Any
    tolerance: float
    unit: str
    file: str
    eval: str = ""  # empty for a claim that no study measures yet
    where: str = ""
    metric: str = ""
    at: str = ""
    weight: str = "detail"
    real_hw: bool = False
    note: str = ""
    disputed: str = ""

    @property
    def system(self) -> str:
        """The system's key: the part of `experiment` before the first dot."""
        return self.experiment.split(".")[0]

    @property
    def figure(self) -> str:
        """The study's name: the part of `experiment` after the last dot."""
        return self.experiment.split(".")[-1]

    @property
    def counts(self) -> bool:
        """Whether the claim counts: the model produced the number, and no constant was set from it."""
        return self.role == "outcome"

    @property
    def interval(self) -> bool:
        """Whether `expected` is [lo, hi]."""
        return self.kind == "range" or (self.kind == "share" and isinstance(self.expected, list))

    @property
    def every(self) -> bool:
        """Whether all points of a `range` must lie within the range, rather than span it."""
        return self.metric.startswith("within:")

    @property
    def table(self) -> str:
        """SQL name of the study that `experiment` names, such as `sweeper_fig6_left`."""
        return table_name(self.system, self.figure)

    def error(self, key: str | None, message: str) -> ClaimError:
        """An error about this claim's `key`, ready to raise."""
        return ClaimError(self.file, self.id, key, message)


def table_name(system: str, figure: str) -> str:
    """SQL name of a study's table, such as `sweeper_fig6_left` for `sweeper` and `fig6-left`."""
    return f"{system}_{figure}".replace("-", "_")


def load(path: str | Path) -> list[Claim]:
    """All claims of one TOML file, in order. Raises ClaimError for malformed contents."""
    # Claims that come with hostnet have the same names as in the repository, wherever they are installed.
    file = f"claims/{Path(path).name}" if Path(path).parent == CLAIMS else str(path)
    try:
        document = tomllib.loads(Path(path).read_text(encoding=TEXT))
    except OSError as e:
        raise ClaimError(file, None, None, f"cannot be read ({e.strerror or e})") from None
    except UnicodeDecodeError:
        raise ClaimError(file, None, None, "is not a UTF-8 text file") from None
    except tomllib.TOMLDecodeError as e:
        raise ClaimError(file, None, None, f"is not valid TOML ({e})") from None
    for key in document:
        if key != "claim":
            raise ClaimError(file, None, key, f"unknown key; {nearest(key, ['claim'])}")
    entries = document.get("claim")
    if not isinstance(entries, list) or not entries or not all(isinstance(e, dict) for e in entries):
        raise ClaimError(file, None, "claim", "the file needs at least one [[claim]] table")
    claims = [_claim(entry, i, file) for i, entry in enumerate(entries, 1)]
    seen: set[str] = set()
    for claim in claims:
        if claim.id in seen:
            raise claim.error("id", "stands twice in this file")
        seen.add(claim.id)
    return claims


def _claim(entry: dict[str, Any], position: int, file: str) -> Claim:
    name = entry["id"] if isinstance(entry.get("id"), str) and entry["id"] else f"number {position}"

    def fail(key: str, message: str) -> ClaimError:
        return ClaimError(file, name, key, message)

    for key in entry:
        if key not in _REQUIRED + _OPTIONAL:
            raise fail(key, f"unknown key; {nearest(key, [*_REQUIRED, *_OPTIONAL])}")
    for key in _REQUIRED:
        if key not in entry:
            among = _CHOICES.get(key)
            raise fail(key, "is missing" + (f"; {nearest('', list(among))}" if among else ""))
    for key, value in entry.items():
        if key in ("expected", "tolerance"):
            continue
        if key == "real_hw":
            if not isinstance(value, bool):
                raise fail(key, f"must be true or false, not {value!r}")
        elif not isinstance(value, str) or (key in (*_REQUIRED, "eval") and key != "unit" and not value.strip()):
            raise fail(key, f"must be a non-empty string, not {value!r}")
    for key, choices in _CHOICES.items():
        if key in entry and entry[key] not in choices:
            raise fail(key, f"unknown {key} {entry[key]!r}; {nearest(entry[key], list(choices))}")
    tolerance = entry["tolerance"]
    if not _is_number(tolerance) or tolerance < 0:
        raise fail("tolerance", f"must be a number of at least 0, not {tolerance!r}")
    wrong = _wrong_expected(entry["kind"], entry["expected"])
    if wrong:
        raise fail("expected", f"{wrong}, not {entry['expected']!r}")
    measured = query(entry.get("eval", ""), f"{file}: claim {name}: key `eval`")
    return Claim(**{**entry, "tolerance": float(tolerance), "eval": measured}, file=file)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _wrong_expected(kind: str, expected: Any) -> str | None:
    if kind == "share" and isinstance(expected, list):
        kind = "range"  # a share that spans an interval
    if kind in ("value", "ratio", "share"):
        if not _is_number(expected) or expected == 0:
            return f"kind `{kind}` needs one number other than 0 (use kind `zero` for 0)"
    elif kind == "zero":
        if not _is_number(expected) or expected != 0:
            return "kind `zero` needs 0"
    elif kind == "range":
        if (
            not isinstance(expected, list)
            or len(expected) != 2
            or not all(map(_is_number, expected))
            or expected[0] >= expected[1]
        ):
            return "kind `range` needs [lo, hi], two numbers with lo < hi"
    elif kind == "order":
        if (
            not isinstance(expected, list)
            or len(expected) < 2
            or not all(isinstance(n, str) for n in expected)
            or len(set(expected)) != len(expected)
        ):
            return "kind `order` needs a list of at least two different names, largest first"
    elif isinstance(expected, list) and expected and expected[0] in ("crossover", "knee"):
        if len(expected) != 2 or not _is_number(expected[1]) or expected[1] == 0:
            return f'trend `{expected[0]}` needs ["{expected[0]}", x] with x a number other than 0'
    elif not isinstance(expected, list) or len(expected) != 1 or expected[0] not in TRENDS:
        return 'kind `trend` needs ["up"], ["down"], ["flat"], ["crossover", x] or ["knee", x]'
    return None
