"""Tables of `ccnic-bench` and `ccnic-compare`: how to read a table, and one figure for each experiment in it."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import HostnetError

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

#: Columns by which the three kinds of table are recognised.
_KINDS = {
    "compare": {"mode", "contender", "size_bytes", "window", "mpps", "lat_min_ns", "lat_p50_ns"},
    "bench": {"experiment", "variant", "size_bytes", "window", "mpps", "gbps", "lat_min_ns", "lat_p50_ns"},
    "probe": {"experiment", "variant", "size_bytes", "value", "unit"},
}

#: Columns that are numbers also where every row leaves them empty.
_TIMES = ("value", "lat_min_ns", "lat_p50_ns", "lat_p99_ns")


def read(path: Path) -> pl.DataFrame:
    """One CSV file of `ccnic-bench` or `compare.py`. Raises HostnetError for any other file."""
    import polars as pl

    try:
        # Latencies longer than the counter of an earlier version are empty, in some tables in all rows.
        frame = pl.read_csv(
            path.read_bytes(), infer_schema_length=None, schema_overrides=dict.fromkeys(_TIMES, pl.Float64)
        )
    except OSError as e:
        raise HostnetError(f"{path}: cannot be read ({e.strerror or e}).") from None
    except pl.exceptions.PolarsError as e:
        raise HostnetError(f"{path}: is not a table of ccnic-bench ({str(e).splitlines()[0]}).") from None
    if kind(frame) is None:
        raise HostnetError(f"{path}: is not a table of ccnic-bench; its columns are {', '.join(frame.columns)}.")
    if frame.is_empty():
        raise HostnetError(f"{path}: holds no measurements.")
    _measured(path, frame)
    return frame


def _measured(path: Path, frame: pl.DataFrame) -> None:
    """Raises HostnetError where a row holds what no measurement gives: a number that is not finite, or no packets."""
    import polars.selectors as cs

    for line, row in enumerate(frame.select(cs.float(), cs.by_name("packets", require_all=False)).to_dicts(), 2):
        for column, value in row.items():
            if isinstance(value, float) and not math.isfinite(value):
                raise HostnetError(f"{path}: {column} = {value} in line {line} was not measured; remove the line.")
            if column == "packets" and value == 0:
                raise HostnetError(f"{path}: line {line} is of a run without packets; remove the line.")


def kind(frame: pl.DataFrame) -> str | None:
    """Kind of a table: compare, bench or probe; None for any other table."""
    return next((k for k, columns in _KINDS.items() if columns <= set(frame.columns)), None)


def figures(frame: pl.DataFrame) -> dict[str, Figure]:
    """The figures of a table by name: medians, for each placement of the two CPUs where the table contains it."""
    import polars as pl

    from .plots import ccnic as draw

    if kind(frame) == "compare":
        return {"compare": draw.compare(frame)}
    if kind(frame) == "probe":
        return {"probe": draw.probe(frame)}
    drawings: dict[str, Callable[[pl.DataFrame], Figure]] = {
        "loopback": draw.loopback,
        "fig16a": draw.batch,
        "fig16b": draw.batch,
    }
    wanted: dict[str, list[str]] = {}
    for experiment in frame["experiment"].unique(maintain_order=True):
        name = {"fig16a": "batch", "fig16b": "batch"}.get(experiment, experiment)
        wanted.setdefault(name, []).append(experiment)
    return {
        name: drawings.get(of[0], draw.variants)(frame.filter(pl.col("experiment").is_in(of)))
        for name, of in wanted.items()
    }


def plot(files: list[Path], out: Path, *, replace: bool = False) -> list[Path]:
    """Draws every table into `out` as PNG and SVG, named after its file and experiment; returns the paths. Files of one name are told
    apart by their directories. Raises HostnetError when `out` holds plots of other tables, unless `replace` is set."""
    from .output import Contents, directory
    from .plots import save

    stems = _stems(files)
    frames = [read(path) for path in files]
    written: list[Path] = []
    tables = Contents("tables of ccnic-bench", dict.fromkeys(stems, ""))
    with directory(out, "bench", tables, replace=replace) as tmp:
        for path, stem, frame in zip(files, stems, frames, strict=True):
            for name, figure in figures(frame).items():
                plot_name = stem if path.stem == name else f"{stem}-{name}"
                written += [out / p.name for p in save(figure, tmp / plot_name)]
    return written


def _stems(files: list[Path]) -> list[str]:
    """Names of the tables of `files`: their own, with the directory in front where several files have one name."""
    own = [path.stem for path in files]
    stems = [
        f"{path.absolute().parent.name}-{stem}" if own.count(stem) > 1 else stem
        for path, stem in zip(files, own, strict=True)
    ]
    twice = next((s for s in stems if stems.count(s) > 1), None)
    if twice is not None:
        raise HostnetError(
            f"two tables are called {twice}, with their directory; rename one, or plot each into a directory of its own."
        )
    return stems
