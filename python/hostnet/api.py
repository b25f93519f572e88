"""The main functions of the package: run one scenario, sweep over many, run a published study, list platforms."""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import math
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from . import _core
from ._toml import TEXT, tomllib
from .cache import Cache, chosen, files_of, key_of, result_of
from .capture import WRITTEN
from .control import Counted, digest
from .errors import HostnetError, SpecError
from .output import check_file, check_no_input
from .paths import PLATFORMS, SCENARIOS, nearest, search_dirs
from .progress import Progress
from .quantities import swept
from .replicate import combined
from .replicate import specs as replicas
from .results import Result, tidy
from .runner import Jobs, run_many
from .specs import Scenario, plain, platform_values, schema, section_schema
from .tenants import beside

if TYPE_CHECKING:
    import polars as pl

    from .comparison import Comparison, Runs
    from .control import Control
    from .explain import Explanation
    from .notebook import Picture
    from .studies import StudyRun


#: A scenario in any form: the object, its tables, a path, or the name of a scenario that comes with hostnet.
AnyScenario: TypeAlias = "Scenario | Mapping[str, Any] | str | os.PathLike[str]"

#: Numbers of values of one path, and of points of a whole sweep, beyond which a request counts as a mistake.
MOST_POINTS = 1_000_000
#: Number of points beyond which a sweep is announced before it begins.
MANY_POINTS = 1_000


def run(
    scenario: AnyScenario,
    *,
    cache: Cache | None = None,
    quiet: bool | None = None,
    pcap: str | os.PathLike[str] | None = None,
    lenient: bool = False,
    control: Control | None = None,
    interval: str = "10 us",
    seeds: int | None = None,
) -> Result:
    """Simulate one scenario. Raises SpecError when it is not valid, RunFailed when the engine stops.

    A bar below a notebook's cell shows the progress; ``quiet`` turns it off, and ``quiet=False`` shows one on a terminal,
    too.

    ``control`` is a user-defined control plane, a function or a class whose object is called. hostnet calls it after
    every ``interval`` of simulated time with the counters of that epoch, and it sets what the placement policy does
    from then on (docs/use/control-plane.md). A run with a control plane takes place in this process. Its result is
    cached under the code of ``control`` and the values that the code uses, unless hostnet cannot determine these
    values, as for a list. An exception in ``control`` ends the run and is raised here.

    With ``seeds``, the scenario runs with that many seeds, its own and those that follow it; the result has the means over
    the runs, and intervals that come from the runs instead of from batches of one run. A saved result over several seeds runs
    with as many again.

    With ``pcap``, the packets that returned to the load generator in the measured window are written to that file, with
    time stamps in nanoseconds; the point then runs even when the cache holds its result. With
    ``lenient``, a damaged capture is replayed up to the damage (``traffic.pcap.lenient``).
    """
    scenario = Scenario.of(scenario)
    if lenient:
        scenario = leniently(scenario)
    if seeds is None and pcap is None and control is None:
        seeds = scenario._seeds
    if seeds is not None:
        if pcap is not None or control is not None:
            raise HostnetError(
                "seeds repeat a run, which pcap and control are for one of; give one of the two, or run each seed by itself."
            )
        with named_by_file(scenario):
            return combined(
                run_many(replicas(scenario.resolve(), seeds), cache=cache, progress=Progress(quiet), label="seeds")
            )
    if control is not None:
        if pcap is not None:
            raise HostnetError("control and pcap do not go together; capture a run without a control plane.")
        with named_by_file(scenario):
            return _controlled([scenario.resolve()], control, interval, cache, Progress(quiet))[0]
    if pcap is not None:
        if not isinstance(pcap, (str, os.PathLike)):
            raise HostnetError(f"pcap = {pcap!r} is no name of a file.")
        check_no_input(Path(pcap), _inputs(scenario))
        check_file(Path(pcap), WRITTEN)
        Path(pcap).absolute().parent.mkdir(parents=True, exist_ok=True)
    with named_by_file(scenario):
        return run_many(
            [scenario.resolve()],
            jobs=1,
            cache=cache,
            progress=Progress(quiet),
            label=scenario.to_dict().get("name", "run"),
            pcap=None if pcap is None else Path(pcap),
        )[0]


def repeat(
    scenario: AnyScenario,
    times: int = 5,
    *,
    jobs: Jobs = None,
    cache: Cache | None = None,
    quiet: bool | None = None,
    control: Control | None = None,
    interval: str = "10 us",
) -> list[Result]:
    """Simulate one scenario with the seeds 1 to ``times``, for :func:`compare`, which makes intervals of the results.

    The other arguments have the same meaning as in :func:`run` and :func:`sweep`.
    """
    if not isinstance(times, (int, Integral)) or times < 1:
        raise HostnetError(f"times = {times!r} is not a number of runs; give 1 or more.")
    specs = sweep_specs(scenario, {"seed": range(1, times + 1)}, quiet=quiet)[1]
    if control is not None:
        return _controlled(specs, control, interval, cache, Progress(quiet))
    return run_many(specs, jobs=jobs, cache=cache, progress=Progress(quiet), label="seeds")


def compare(*runs: Runs, names: Sequence[str] | None = None, metrics: Sequence[str] | None = None) -> Comparison:
    """Compare runs with the first of them: ``hn.compare(a, b)``. Notebooks show the answer as a table, and ``.frame`` is a
    data frame.

    A run is a :class:`Result`, or a list of results that differ only in their seeds, as :func:`repeat` makes. Lists have
    means with 95 % intervals, and a change that may be chance is marked. ``metrics`` are names or patterns; without them, the
    metrics that lead in the runs are compared. ``names`` are what the columns are called.
    """
    from .comparison import compare as made

    return made(*runs, names=names, metrics=metrics)


def explain(result: Result | AnyScenario) -> Explanation:
    """Say which domain's credits hold a host back, in which regime the host is, and why. A scenario is run first."""
    from .explain import of_result

    return of_result(result if isinstance(result, Result) else run(result))


def plot(frame: pl.DataFrame, x: str, y: str, hue: str | Sequence[str] | None = None, title: str = "") -> Picture:
    """Draw a column of a sweep's or a study's frame over another, with a line for each value of ``hue``."""
    import polars as pl

    from .notebook import Picture
    from .plots import plot_sweep

    if not isinstance(frame, pl.DataFrame):
        raise HostnetError(f"frame is a {type(frame).__name__}; give a frame of polars, as hn.sweep returns.")
    return Picture(plot_sweep(frame, x, y, hue, title), f"{y} over {x}")


def _inputs(scenario: Scenario) -> list[Path]:
    """Files that a scenario is read from: its own, its platform's, its captures and its recordings."""
    spec, origin = json.loads(scenario.resolve()), scenario._origin
    files = [] if origin is None else [Path(origin)]
    name = scenario.to_dict().get("platform")
    files += [Path(d) / f"{name}.toml" for d in search_dirs(origin) if isinstance(name, str)]
    return files + [Path(table["file"]) for table in files_of(spec).values()]


def _controlled(
    specs: list[str], control: Control, interval: str, cache: Cache | None, progress: Progress
) -> list[Result]:
    """Results of resolved specs under a control plane, one after the other in this process."""
    if not callable(control):
        raise HostnetError(
            f"control = {control!r} is no function; give one that takes an epoch (docs/use/control-plane.md)."
        )
    if not isinstance(interval, str):
        raise HostnetError(f'interval = {interval!r} is no time with its unit, such as "10 us".')
    cache = chosen(cache)
    told = digest(control, interval)
    results = []
    with progress.stage("control plane", {"points": 1.0}, unit="") as report:
        for i, spec in enumerate(specs):
            key = hashlib.sha256(f"{key_of(spec)}\n{told}".encode()).hexdigest()
            found = None if told is None else cache.get(key)
            cached = found is not None
            if found is None:
                plane = Counted(control)
                found = json.loads(_core.run(spec, None, None, plane, interval))
                if not plane.calls:
                    found["warnings"].append(
                        f"the control plane was never called: no epoch of {interval} ended within the run"
                    )
                if told is not None:
                    cache.put(key, json.dumps(found))
            results.append(Result(result_of(found, spec), key=key if told else "", cached=cached))
            report("points", (i + 1) / len(specs))
    return results


@contextmanager
def named_by_file(scenario: Scenario) -> Iterator[None]:
    """Names the file of a scenario in sentences about its run, which the engine begins with the scenario's ``name``."""
    try:
        yield
    except SpecError as e:
        name = f"{scenario.to_dict().get('name')}: "
        if scenario._origin is None or not str(e).startswith(name):
            raise
        raise SpecError(f"{scenario._file}: {str(e).removeprefix(name)}") from None


def leniently(scenario: Scenario) -> Scenario:
    """The scenario, with every capture replayed up to its damage. Raises HostnetError for a scenario without a
    capture."""
    captures = [key for key in files_of(scenario.to_dict()) if key.endswith(".pcap")]
    if not captures:
        raise HostnetError(
            f"{scenario._file}: replays no capture, so --lenient (lenient=True) has nothing to do; "
            'give traffic.arrivals = "pcap" and traffic.pcap.file, or leave it out.'
        )
    return scenario.with_({f"{key}.lenient": True for key in captures})


def values(path: str, given: Iterable[Any]) -> list[Any]:
    """The values of one swept path: any iterable (list, range, generator, NumPy array) with at least one value."""
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise HostnetError(f"{path}: a sweep needs a list of at least one value.")
    found = [plain(v) for v in itertools.islice(given, MOST_POINTS + 1)]
    if not found:
        raise HostnetError(f"{path}: a sweep needs a list of at least one value.")
    if len(found) > MOST_POINTS:
        raise HostnetError(f"{path}: has more than {MOST_POINTS:,} values; is it endless?")
    texts = [repr(v) for v in found]
    if len(set(texts)) < len(texts):
        twice = Counter(texts).most_common(1)[0][0]
        raise HostnetError(f"{path}: has {twice} twice; give each value once.")
    return found


def grid(vary: Mapping[str, Iterable[Any]]) -> list[dict[str, Any]]:
    """Every combination of the values given per dotted path; the last path varies fastest."""
    if not isinstance(vary, Mapping):
        raise HostnetError(f'vary = {vary!r} is no table of paths and values, such as {{"placement.ways": [2, 4]}}.')
    lists = {path: values(path, given) for path, given in vary.items()}
    points = math.prod(map(len, lists.values()))
    if points > MOST_POINTS:
        raise HostnetError(
            f"the sweep has {points:,} points, more than {MOST_POINTS:,}; give fewer values or sweep in parts."
        )
    return [dict(zip(lists, combination, strict=True)) for combination in itertools.product(*lists.values())]


def sweep_results(
    scenario: AnyScenario,
    vary: Mapping[str, Iterable[Any]],
    *,
    jobs: Jobs = None,
    cache: Cache | None = None,
    quiet: bool | None = None,
    seeds: int | None = None,
) -> tuple[list[dict[str, Any]], list[Result]]:
    """The points of a sweep and their results, in the same order. With ``seeds``, each result combines that many runs."""
    scenario = Scenario.of(scenario)
    points, specs = sweep_specs(scenario, vary, quiet=quiet)
    with named_by_file(scenario):
        return points, run_points(specs, jobs, cache, Progress(quiet), scenario._seeds if seeds is None else seeds)


def run_points(
    specs: list[str], jobs: Jobs, cache: Cache | None, progress: Progress, seeds: int | None
) -> list[Result]:
    """Results of the resolved specs of a sweep; with ``seeds``, each combines runs with that many seeds."""
    repeated = specs if seeds is None else [r for spec in specs for r in replicas(spec, seeds)]
    results = run_many(repeated, jobs=jobs, cache=cache, progress=progress, label="sweep")
    if seeds is None:
        return results
    return [combined(results[i : i + seeds]) for i in range(0, len(results), seeds)]


def sweep_specs(
    scenario: AnyScenario, vary: Mapping[str, Iterable[Any]], *, quiet: bool | None = None
) -> tuple[list[dict[str, Any]], list[str]]:
    """The points of a sweep and their resolved specs, in the same order."""
    scenario, points = Scenario.of(scenario), grid(vary)
    spelt: dict[str, str] = {}
    for path in vary:
        key = scenario.target(path)
        if (other := spelt.setdefault(key, path)) != path:
            raise HostnetError(f"{other} and {path} are one key; give all of its values under one name.")
        if (within := next((p for k, p in spelt.items() if k.startswith(f"{key}.")), None)) is not None:
            raise HostnetError(
                f"the values of {path} replace those of {within}, which is a key of it; give {path} first."
            )
    if len(points) > MANY_POINTS and quiet is False:
        print(
            f"hostnet: the sweep has {len(points):,} points; Ctrl-C stops it, and finished points are saved.",
            file=sys.stderr,
            flush=True,
        )
    specs = []
    with Progress(quiet).stage("checking", {"points": 1.0}, unit="") as report:
        for i, p in enumerate(points):
            specs.append(scenario.with_(p).resolve())
            report("points", (i + 1) / len(points))
    _each_once(points, specs)
    return points, specs


def _each_once(points: list[dict[str, Any]], specs: list[str]) -> None:
    """Raises HostnetError for two spellings of one value, such as ``1 Mrps`` and ``1000 krps``: points that differ in one path
    alone, and whose resolved specs are equal."""
    known: dict[str, dict[str, Any]] = {}
    for point, spec in zip(points, specs, strict=True):
        first = known.setdefault(spec, point)
        differs = [path for path, value in point.items() if repr(first[path]) != repr(value)]
        if len(differs) == 1:
            (path,) = differs
            raise HostnetError(f"{path}: {first[path]!r} and {point[path]!r} are one value; give each value once.")


def without_effect(points: list[dict[str, Any]], results: list[Result]) -> list[str]:
    """The swept paths on which no metric depends: points that differ only in these paths have equal metrics."""

    def same(path: str) -> bool:
        others = [json.dumps({p: v for p, v in point.items() if p != path}, sort_keys=True) for point in points]
        first = dict(zip(reversed(others), reversed(results), strict=True))
        return all(first[o].metrics == r.metrics for o, r in zip(others, results, strict=True))

    values = {path: {json.dumps(point[path], sort_keys=True) for point in points} for path in points[0]}
    return [path for path, found in values.items() if len(found) > 1 and same(path)]


def sweep(
    scenario: AnyScenario,
    vary: Mapping[str, Iterable[Any]],
    *,
    jobs: Jobs = None,
    cache: Cache | None = None,
    quiet: bool | None = None,
    control: Control | None = None,
    interval: str = "10 us",
    seeds: int | None = None,
    ends: bool = False,
) -> pl.DataFrame:
    """Simulate every combination of ``vary`` ({"placement.ways": [2, 4]}): one row per point.

    Values come from any iterable, NumPy arrays and generators included. Columns are the dotted paths, every metric,
    the provenance and, with several tenants, every number of each, such as ``tenant.NAME.drop_rate``. A path whose values are quantities is a column of numbers whose name ends with the unit:
    ``traffic.rate_gbps``, ``traffic.packet_bytes``. ``jobs`` is the number of worker processes (default: one per core),
    or an executor of :mod:`concurrent.futures` whose workers may be on other machines; the table does not depend on it.

    With ``ends``, the columns ``METRIC_low`` and ``METRIC_high`` have the ends of the 95 % intervals.

    ``seeds``, ``control`` and ``interval`` have the same meaning as in :func:`run`. With a control plane, the points run in this
    process, one after the other; a class makes an object for each point, so that no point sees the state of another.
    """
    if control is not None:
        if seeds is not None:
            raise HostnetError("seeds and control do not go together; sweep over the key seed instead.")
        if jobs not in (None, 1):
            raise HostnetError("jobs and control do not go together: a control plane runs in this process.")
        points, specs = sweep_specs(scenario, vary, quiet=quiet)
        results = _controlled(specs, control, interval, cache, Progress(quiet))
    else:
        points, results = sweep_results(scenario, vary, jobs=jobs, cache=cache, quiet=quiet, seeds=seeds)
    return beside(tidy(results, swept(points, results), ends=ends), results)


def study(
    system: str,
    figure: str,
    *,
    quick: bool = False,
    precision: float | None = None,
    jobs: Jobs = None,
    cache: Cache | None = None,
    quiet: bool | None = None,
) -> StudyRun:
    """Run one figure of a published system, or one study of your own file (``"mine.toml"``); ``.frame`` of the answer is its
    tidy table. Each point is measured until its leading metrics are known to ``precision``, 2 % by default; at 0, whole
    windows are measured."""
    from . import studies

    return studies.run(
        studies.get(system, figure),
        quick=quick,
        precision=precision,
        jobs=jobs,
        cache=cache,
        progress=Progress(quiet),
    )


def scenarios() -> dict[str, tuple[str, str]]:
    """The scenarios that come with hostnet: name to platform and the first sentence of the file's comment."""
    found = {}
    for file in sorted(SCENARIOS.glob("*.toml")):
        text = file.read_text(encoding="utf-8")
        words = " ".join(
            line[1:].strip() for line in itertools.takewhile(lambda line: line.startswith("#"), text.splitlines())
        )
        found[file.stem] = (
            tomllib.loads(text).get("platform", ""),
            re.split(r"(?<!\bFig)\.\s+(?=[A-Z])", words)[0].rstrip("."),
        )
    return found


def platforms() -> dict[str, str]:
    """The hardware descriptions that come with hostnet: name to one-line description."""
    tables = {f.stem: tomllib.loads(f.read_text(encoding="utf-8")) for f in sorted(PLATFORMS.glob("*.toml"))}
    return {name: t.get("description", "") for name, t in tables.items()}


def platform(name: str | os.PathLike[str]) -> dict[str, Any]:
    """Every value of one platform, including defaults; ``provenance`` has an entry for each value. ``name`` is the name
    of a platform that comes with hostnet, or the path of a platform file. Raises HostnetError when no such platform
    exists."""
    if not isinstance(name, (str, os.PathLike)):
        raise HostnetError(f"there is no platform {name!r}; give the name of one, or of its file.")
    file = Path(name)
    if file.suffix == ".toml" and file.is_file():
        found = copy.deepcopy(
            dict(platform_values(str(file.absolute()), str(file), (str(file.parent), str(PLATFORMS))))
        )
    elif (known := platforms()).keys() & {str(name)}:
        found = copy.deepcopy(dict(platform_values(str(name), "scenario", (str(PLATFORMS),))))
    else:
        raise HostnetError(f"there is no platform {str(name)!r}; {nearest(str(name), list(known))}")
    given = found["provenance"]
    found["provenance"] = {path: _source(given, path, value) for path, value in leaves(found)}
    return found


def inherited(name: str | os.PathLike[str]) -> dict[str, str]:
    """The values of a platform whose source is that of a base: dotted path to the name of the platform that gives the source."""
    file = Path(name) if Path(name).suffix == ".toml" else PLATFORMS / f"{name}.toml"
    own = tomllib.loads(file.read_text(encoding=TEXT))
    base, given = own.pop("base", ""), own.get("provenance", {})
    if not base:
        return {}
    sources = platform_values(str(file.absolute()), str(file), (str(file.parent), str(PLATFORMS)))["provenance"]
    changed = {path for path, _ in leaves(own)}
    folders = [file.parent, PLATFORMS, file.parent / "platforms"]
    places = [file.parent / base, *(folder / f"{base}.toml" for folder in folders), PLATFORMS / base]
    theirs = inherited(next(place for place in places if place.is_file()))

    def of_base(path: str) -> bool:
        at = _given(sources, path)
        return path not in changed and at != "" and at not in given

    return {path: theirs.get(path, base) for path, _ in leaves(platform(name)) if of_base(path)}


def of_standard(memory: Mapping[str, Any]) -> dict[str, Any]:
    """The values in force of the keys that a platform's table ``memory`` may leave to its standard, by dotted path: numbers of
    banks, and timings in ps."""
    quirks = json.loads(_core.memory_quirks(json.dumps(memory)))
    return {path: value for path, value in leaves({"memory": {"quirks": quirks}}) if _is_of_standard(path)}


def _is_of_standard(path: str) -> bool:
    """Whether a key without a value has that of ``memory.standard``."""
    banks = ("memory.quirks.bank_groups", "memory.quirks.banks_per_group")
    return path.startswith("memory.quirks.timing.") or path in banks


def _given(sources: Mapping[str, str], path: str) -> str:
    """The key whose source applies to ``path``: the key itself, or the nearest table around it; empty where neither has
    a source."""
    while path and path not in sources:
        path = path.rpartition(".")[0]
    return path


def _source(given: Mapping[str, str], path: str, value: Any) -> str:
    """Source of a platform's value: the provenance of its key or of the nearest table around the key. For a value that
    the platform's file does not give, the source says what the default means."""
    at = _given(given, path)
    if at:
        return given[at]
    if _is_of_standard(path) and not value:
        return "standard: as memory.standard has it"
    if value is None:
        return f"default: none{_absence(_meaning(path))}"
    return f"default: {_meaning(path)}"


def _absence(meaning: str) -> str:
    """The meaning of a key's absence, to follow "none": the sentences of its description that say it."""
    if "required for" in meaning:
        return ", so it is not simulated"
    said = [s for s in re.split(r"(?<=\.) (?=[A-Z])", meaning) if re.search(r"\b(absent|defaults?|without)\b", s, re.I)]
    told = " ".join(said).rstrip(".") or meaning
    return f"; {told[:1].lower()}{told[1:]}"


def _meaning(path: str) -> str:
    """The engine's description of a key of a platform."""
    node: Mapping[str, Any] = schema()["properties"]["override"]
    for key in path.split("."):
        node = section_schema(node, {}).get("properties", {}).get(key, {})
    words = " ".join(node.get("description", "").split()).rstrip(".")
    return words[:1].lower() + words[1:] or "the engine's"


def leaves(node: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """The values of a platform by dotted path, without name, description and provenance."""
    for key, value in node.items():
        if not path and key in ("name", "description", "provenance"):
            continue
        here = f"{path}.{key}" if path else key
        if isinstance(value, Mapping):
            yield from leaves(value, here)
        else:
            yield here, value
