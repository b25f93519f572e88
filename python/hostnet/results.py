"""Results of runs, and tidy tables made of many of them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from . import _core, intervals, tenants
from ._toml import TEXT
from .declared import PREFIX, metric_info
from .errors import HostnetError
from .output import write_text
from .parquet import ColumnInfo
from .paths import file_named
from .renamed import Metrics, metric

if TYPE_CHECKING:
    import polars as pl
    from typing_extensions import NotRequired

    from .notebook import Picture


class Column(TypedDict):
    """One column of a table."""

    name: str
    unit: str


class Table(TypedDict):
    """A table of a result: rows hold a value for each column."""

    columns: list[Column]
    rows: list[list[Any]]


class ResultData(TypedDict):
    """A result in the form in which it is saved. Results of old versions lack ``tables``, ``warnings`` and
    ``intervals``. ``files`` has the digests (SHA-256) of captures and recordings that were replayed."""

    version: str
    spec: dict[str, Any]
    seed: int
    wall_s: float
    sim_us: float
    warmup_us: float
    measure_us: float
    metrics: dict[str, float | None]
    intervals: NotRequired[dict[str, list[float]]]
    seeds: NotRequired[list[int]]
    tables: NotRequired[dict[str, Table] | None]
    warnings: NotRequired[list[str]]
    files: NotRequired[dict[str, str]]


_NUMBERS = ("seed", "wall_s", "sim_us", "warmup_us", "measure_us")


#: The types of JSON's numbers in Python; the values of a result are compared by type, because there are many.
_NUMBER_TYPES = {int, float}


def fault(data: Any) -> str | None:
    """Reason why ``data`` is not a result of the engine; None when it is one."""
    if not isinstance(data, dict):
        return "it is not an object"
    wanted = {"metrics": dict, "spec": dict, "version": str}
    lacking = next((k for k in (*wanted, *_NUMBERS) if k not in data), None)
    if lacking is not None:
        return f"{lacking} is missing"
    wrong = next((k for k, kind in wanted.items() if not isinstance(data[k], kind)), None)
    wrong = wrong or next((k for k in _NUMBERS if type(data[k]) not in _NUMBER_TYPES), None)
    if wrong is not None:
        return f"{wrong} is of another type"
    values = data["metrics"].values()
    if not set(map(type, values)) <= {*_NUMBER_TYPES, type(None)}:
        odd = next(m for m, v in data["metrics"].items() if v is not None and type(v) not in _NUMBER_TYPES)
        return f"metrics.{odd} = {json.dumps(data['metrics'][odd])[:40]} is not a number"
    intervals = data.get("intervals") or {}
    if not isinstance(intervals, dict) or not _are_intervals(intervals.values()):
        return "intervals is of another type"
    files = data.get("files") or {}
    if not isinstance(files, dict) or not all(isinstance(digest, str) for digest in files.values()):
        return "files is of another type"
    seeds = data.get("seeds") or []
    if not isinstance(seeds, list) or not set(map(type, seeds)) <= {int}:
        return "seeds is of another type"
    said = data.get("warnings") or []
    if not isinstance(said, list) or not all(isinstance(w, str) for w in said):
        return "warnings is of another type"
    tables = data.get("tables") or {}
    if not isinstance(tables, dict):
        return "tables is of another type"
    return next((f"tables.{name} is not a table" for name, t in tables.items() if not _is_table(t)), None)


def _are_intervals(values: Collection[Any]) -> bool:
    return _are_lists(values, 2) and set(map(type, chain.from_iterable(values))) <= _NUMBER_TYPES


def _are_lists(values: Collection[Any], length: int) -> bool:
    return set(map(type, values)) <= {list} and set(map(len, values)) <= {length}


def _is_table(table: Any) -> bool:
    columns, rows = (table.get("columns"), table.get("rows")) if isinstance(table, dict) else (None, None)
    return (
        isinstance(columns, list)
        and all(isinstance(c, dict) and isinstance(c.get("name"), str) for c in columns)
        and isinstance(rows, list)
        and _are_lists(rows, len(columns))
    )


def read_result(path: str | Path) -> ResultData:
    """The data of a saved result. Raises HostnetError when the file is not a result."""
    try:
        data: ResultData = json.loads(file_named(path).read_text(encoding=TEXT))
    except OSError as e:
        raise HostnetError(f"{path}: cannot be read ({e.strerror}).") from None
    except (ValueError, RecursionError):
        raise HostnetError(f"{path}: not a saved hostnet result.") from None
    why = fault(data)
    if why is not None:
        raise HostnetError(f"{path}: not a saved hostnet result ({why}).")
    return {**data, "metrics": Metrics(data["metrics"])}


class Result:
    """One simulated point: metrics, tables and their origin.

    Attributes:
    ``metrics`` (name to number, None where a metric has no meaning), ``spec`` (fully resolved), ``seed``, ``version`` (engine), ``wall_s`` (host seconds), ``sim_us``, ``warmup_us``, ``measure_us`` (simulated microseconds), ``key`` (cache key) and ``cached``.
    """

    def __init__(self, data: ResultData, key: str = "", cached: bool = False):
        self.data, self.key, self.cached = data, key, cached
        self.metrics = Metrics(data["metrics"])
        self.spec = data["spec"]
        self.seed = data["seed"]
        self.version = data["version"]
        self.wall_s = data["wall_s"]
        self.sim_us = data["sim_us"]
        self.warmup_us = data["warmup_us"]
        self.measure_us = data["measure_us"]

    def __getitem__(self, name: str) -> float | None:
        name = metric(str(name))
        known: Mapping[str, float | None] = tenants.values(self.data) if name.startswith(PREFIX) else self.metrics
        if name not in known:
            raise HostnetError(f"{_core.unknown_metric(name, list(known))}.")
        return known[name]

    def interval(self, name: str) -> tuple[float, float] | None:
        """The 95 % confidence interval of a metric, in its unit; None where the metric has none, as a maximum has.

        The interval comes from batches of the measured window or, with several seeds, from the runs with each seed. Raises
        HostnetError for an unknown metric.
        """
        self[name]
        low_high = intervals.of(self.data).get(metric(str(name)))
        return low_high

    @property
    def seeds(self) -> list[int]:
        """Seeds of the runs that this result combines; of a single run, its own seed."""
        return list(self.data.get("seeds") or [self.seed])

    @property
    def warnings(self) -> list[str]:
        """Sentences about what was not steady in the measured window: caches that were still filling, or queues that grew."""
        return list(self.data.get("warnings") or [])

    @property
    def tables(self) -> list[str]:
        """Names of the tables this result carries, such as ``dram_latency_cdf``."""
        return list(self.data.get("tables") or {})

    def units(self, table: str) -> dict[str, str]:
        """The unit of each column of a table."""
        return {c["name"]: c["unit"] for c in self._table(table)["columns"]}

    def table(self, name: str) -> pl.DataFrame:
        """One of the result's tables. Raises HostnetError when the run did not produce it."""
        import polars as pl

        table = self._table(name)
        return pl.DataFrame(table["rows"], schema=[c["name"] for c in table["columns"]], orient="row")

    def _table(self, name: str) -> Table:
        tables = self.data.get("tables") or {}
        if not isinstance(name, str) or name not in tables:
            raise HostnetError(f"this result has no table {name!r}; it has {', '.join(tables) or 'none'}.")
        return tables[name]

    def to_frame(self) -> pl.DataFrame:
        """The metrics as a frame of one row."""
        return tidy([self])

    def save(self, path: str | Path) -> None:
        """Write the result as JSON, completely or not at all."""
        write_text(file_named(path), json.dumps(self.data, indent=1) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Result:
        """Read a saved result. Raises HostnetError when the file is not one."""
        return cls(read_result(path))

    def plot(self) -> Picture:
        """Draw the result: the distribution of latency, and the credits in use by domain."""
        from .notebook import Picture
        from .plots.result import figure

        return Picture(figure(self), f"latency and domains of {self.spec.get('name', 'a result')}")

    def _repr_html_(self) -> str:
        from .notebook import result

        return result(self)

    def __repr__(self) -> str:
        shown = {k: v for k, v in self.metrics.items() if k in ("throughput_mrps", "lat_p99_us", "mem_bw_gbs")}
        return f"Result({self.spec.get('name')!r}, {shown})"


#: Columns of a tidy table that describe each point, in addition to swept values and metrics.
_PROVENANCE: dict[str, ColumnInfo] = {
    "seed": {"unit": "", "description": "seed of the random streams; the first one of several"},
    "version": {"unit": "", "description": "version of the engine"},
    "sim_us": {"unit": "us", "description": "simulated time; of several seeds that of the first"},
    "warmup_us": {
        "unit": "us",
        "description": "simulated time before the measurement window; of several seeds that of the first",
    },
    "measure_us": {"unit": "us", "description": "length of the measurement window; of several seeds that of the first"},
    "key": {"unit": "", "description": "the point's key in the result cache; empty for several seeds"},
}

#: The column that tables with results over several seeds have beside those.
SEEDS: dict[str, ColumnInfo] = {"seeds": {"unit": "", "description": "number of seeds, from `seed` on"}}


def column_info() -> dict[str, ColumnInfo]:
    """Unit and meaning of the columns that every tidy table has: metrics and provenance."""
    found: dict[str, ColumnInfo] = {
        n: {"unit": m["unit"], "description": m["description"]} for n, m in metric_info().items()
    }
    return found | _PROVENANCE


def tidy(
    results: Sequence[Result],
    columns: Sequence[Mapping[str, Any]] | None = None,
    *,
    ends: bool = False,
    only: Collection[str] | None = None,
) -> pl.DataFrame:
    """One row per result: the given swept columns, every metric, then provenance. With ``ends``, each metric that has a
    95 % interval is followed by ``METRIC_low`` and ``METRIC_high``. Results over several seeds have a column ``seeds``. With ``only``, it has just the columns that are
    named there in small letters.

    Wall time is left out, so that equal simulations make equal files.
    """
    import polars as pl

    columns = columns if columns is not None else [{} for _ in results]
    swept = list(dict.fromkeys(name for c in columns for name in c))
    out = {name: _swept(name, columns) for name in _among(swept, only)}
    for name in _among(metric_info(), only):
        if name not in swept:
            # These are present names, which need no search for old ones.
            values = [dict.get(r.metrics, name) for r in results]
            out[name] = pl.Series(name, values, dtype=pl.Float64, strict=False)
            if ends:
                out |= {e.name: e for e in intervals.ends(name, results)}
    if only is None and any(len(r.seeds) > 1 for r in results):
        out["seeds"] = pl.Series("seeds", [len(r.seeds) for r in results])
    for name in _among(_PROVENANCE, only):
        out[name] = pl.Series(name, [getattr(r, name) for r in results])
    return pl.DataFrame(list(out.values()))


def _among(names: Iterable[str], only: Collection[str] | None) -> list[str]:
    return [name for name in names if only is None or name.lower() in only]


def _swept(name: str, columns: Sequence[Mapping[str, Any]]) -> pl.Series:
    import polars as pl

    series = pl.Series(name, [c.get(name) for c in columns], strict=False)
    return series.cast(pl.Float64) if series.dtype == pl.Null else series  # a column that no point sets holds numbers


def tidy_table(name: str, results: Sequence[Result], columns: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """The table ``name`` of every result that has it, stacked, with the swept columns in front."""
    import polars as pl

    swept = list(dict.fromkeys(n for c in columns for n in c))
    typed = pl.DataFrame([_swept(n, columns) for n in swept])
    parts = [typed[i].join(r.table(name), how="cross") for i, r in enumerate(results) if name in r.tables]
    # Tables of hosts with more cores have more columns.
    return pl.concat(parts, how="diagonal_relaxed") if parts else typed.clear()
