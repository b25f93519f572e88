"""A self-contained HTML report: everything inline, nothing fetched, readable offline and on paper."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import HostnetError
from ..output import WAYS_OUT, add_file
from .page import page
from .results import body
from .sources import is_study, labels, load
from .study import study

__all__ = ["labels", "write_report"]

Source = str | Path


def write_report(
    source: Source | Sequence[Source] | Sequence[Mapping[str, Any]],
    out: str | Path | None = None,
    title: str | None = None,
    *,
    replace: bool = False,
) -> Path:
    """Writes the report of `source` and returns its path.

    `source` is a directory that a run, sweep, demo or study wrote, the file of a saved result, several of these to compare,
    or a list of results (objects as `Result.data`; an additional `label` names one). `out` defaults to `report.html` in the
    only directory, or beside the only file. Raises HostnetError when there is nothing to report, when the file cannot be
    written, or when `out` exists and is not a report of results that are all in `source`. With `replace`, any file is
    overwritten.
    """
    given = [source] if isinstance(source, (str, Path)) else list(source)
    paths = [Path(g) for g in given if isinstance(g, (str, Path))]
    if paths and out is None:
        if len(paths) > 1:
            raise HostnetError("a report of several sources needs the name of the HTML file; give --out FILE.")
        out = (paths[0] if paths[0].is_dir() else paths[0].parent) / "report.html"
    if out is None:
        raise HostnetError("a report of results in memory needs the name of the HTML file.")
    out = Path(out)
    if len(paths) == 1 and is_study(paths[0]):
        content, default, specs = study(paths[0])
        lead = "A study: its figure, its points and where they come from."
    else:
        results = _results(paths) if paths else [_data(g) for g in given]
        content, default = body(results), _title(paths, results)
        specs, lead = [r["spec"] for r in results], _lead(results)
        # Results of one scenario over other seeds are other results.
        specs = [{**s, "seeds": r["seeds"]} if r.get("seeds") else s for s, r in zip(specs, results, strict=True)]
    digests = [hashlib.sha256(json.dumps(s, sort_keys=True).encode()).hexdigest()[:16] for s in specs]
    lost = None if replace else _lost(out, digests)
    if lost is not None:
        raise HostnetError(f"{out}: {lost}; {WAYS_OUT}.")
    add_file(out, page(title or default, content, digests, lead))
    return out


def _data(result: Any) -> dict[str, Any]:
    """The data of a `Result`, or of an object of the same form."""
    return dict(getattr(result, "data", result))


def _results(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """The results of all sources. Where several sources hold one result each, the names of the sources tell them apart."""
    of_studies = next((p for p in paths if is_study(p)), None)
    if of_studies is not None:
        raise HostnetError(f"{of_studies}: is a study, and only results are compared; report the study alone.")
    loaded = [load(p) for p in paths]
    if len(paths) > 1 and len({p.name for p in paths}) == len(paths):
        return [
            {"label": _named(p, i, len(found)), **r} for p, found in zip(paths, loaded) for i, r in enumerate(found)
        ]
    return [r for found in loaded for r in found]


def _named(path: Path, index: int, of: int) -> str:
    name = path.stem if path.is_file() else path.resolve().name
    return name if of == 1 else f"{name} {index}"


def _title(paths: Sequence[Path], results: Sequence[Mapping[str, Any]]) -> str:
    names = list(dict.fromkeys(str(r["spec"].get("name") or "result") for r in results))
    if len(paths) > 1:
        return " and ".join(p.stem if p.is_file() else p.resolve().name for p in paths)
    if len(results) == 1:
        return names[0]
    if len(names) == 1:
        return f"{names[0]}: {len(results)} results"
    return f"Results in {paths[0].name}" if paths else "Results"


def _lead(results: Sequence[Mapping[str, Any]]) -> str:
    """A line about the platforms of the results."""
    platforms = [r["spec"].get("platform") or {} for r in results]
    words = dict.fromkeys(f"{p.get('name', '')}: {p['description']}" for p in platforms if p.get("description"))
    return "; ".join(words)


_REPORTED = re.compile(r'<meta name="hostnet-results" content="([0-9a-f ]*)">')


def _lost(out: Path, digests: Sequence[str]) -> str | None:
    """The loss when a report of these results replaces `out`, as the end of a sentence; None when nothing is lost."""
    if not out.is_file():
        return None
    try:
        there = _REPORTED.search(out.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        there = None
    except OSError as e:
        return f"cannot be read ({e.strerror})"
    if there is None:
        return "is there and is no report of hostnet's"
    old = there[1].split()
    missing = len(set(old) - set(digests))
    many = f"{len(old):,} result{'' if len(old) == 1 else 's'}"
    return f"is a report of {many}, of which this one lacks {missing:,}" if missing else None
