"""The verbs of the package: run one scenario, sweep over many, run a published study, list platforms."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .cache import Cache
from .errors import HostnetError
from .paths import PLATFORMS, nearest
from .progress import Progress
from .results import Result, tidy
from .runner import run_many
from .specs import Scenario, tomllib

if TYPE_CHECKING:
    import polars as pl

    from .studies import StudyRun


def run(scenario: Scenario, *, cache: Cache | None = None, quiet: bool = True) -> Result:
    """Simulate one scenario. Raises SpecError when it is not valid, RunFailed when the engine stops."""
    return run_many([scenario.resolve()], jobs=1, cache=cache, progress=Progress(quiet),
                    label=scenario.to_dict().get("name", "run"))[0]


def grid(vary: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Every combination of the values given per dotted path; the last path varies fastest."""
    for path, values in vary.items():
        if isinstance(values, str) or not len(values):
            raise HostnetError(f"{path}: a sweep needs a list of at least one value.")
    return [dict(zip(vary, values, strict=True)) for values in itertools.product(*vary.values())]


def sweep_results(scenario: Scenario, vary: Mapping[str, Sequence[Any]], *, jobs: int | None = None,
                  cache: Cache | None = None, quiet: bool = True) -> tuple[list[dict[str, Any]], list[Result]]:
    """The points of a sweep and their results, in the same order."""
    points = grid(vary)
    specs = [scenario.with_(p).resolve() for p in points]
    return points, run_many(specs, jobs=jobs, cache=cache, progress=Progress(quiet), label="sweep")


def sweep(scenario: Scenario, vary: Mapping[str, Sequence[Any]], *, jobs: int | None = None,
          cache: Cache | None = None, quiet: bool = True) -> pl.DataFrame:
    """Simulate every combination of ``vary`` ({"placement.ways": [2, 4]}): one row per point.

    Columns are the dotted paths, every metric and the provenance. ``jobs`` is the number of
    worker processes (default: one per core); the table does not depend on it.
    """
    points, results = sweep_results(scenario, vary, jobs=jobs, cache=cache, quiet=quiet)
    return tidy(results, points)


def study(system: str, figure: str, *, quick: bool = False, jobs: int | None = None,
          cache: Cache | None = None, quiet: bool = True) -> StudyRun:
    """Run one figure of a published system; ``.frame`` of the answer is its tidy table."""
    from . import studies

    return studies.run(studies.get(system, figure), quick=quick, jobs=jobs, cache=cache, progress=Progress(quiet))


def platforms() -> dict[str, str]:
    """The hardware descriptions that come with hostnet: name to one-line description."""
    tables = {f.stem: tomllib.loads(f.read_text(encoding="utf-8")) for f in sorted(PLATFORMS.glob("*.toml"))}
    return {name: t.get("description", "") for name, t in tables.items()}


def platform(name: str) -> dict[str, Any]:
    """Every value of one platform, defaults filled in. Raises HostnetError for a name that does not exist."""
    known = platforms()
    if name not in known:
        raise HostnetError(f"there is no platform {name!r}; {nearest(name, list(known))}")
    return json.loads(Scenario.load("directed-rx").with_(platform=name).resolve())["platform"]
