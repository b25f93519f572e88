"""Time lines of results in the formats of monitoring: OpenMetrics, and the line protocol of InfluxDB.

Every table of a result whose first column is ``t_us`` is a time line. Its numbers become series, and its texts become labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from .declared import metric_info
from .errors import HostnetError

if TYPE_CHECKING:
    from .results import Result

TIME = "t_us"
FORMATS = ("openmetrics", "influx")
#: First characters of a file of either format.
MARKS = ("# TYPE hostnet_", "# EOF", "hostnet_")


@dataclass(frozen=True)
class Point:
    """The values of one row of a time line at a time in simulated microseconds."""

    table: str
    labels: Mapping[str, str]
    values: Mapping[str, float]
    us: Decimal


def points(results: Mapping[str, Result]) -> list[Point]:
    """Rows of all time lines, by the name of their result. Raises HostnetError where there is none."""
    found = []
    for name, result in results.items():
        own = {"result": name, "scenario": str(result.spec.get("name", "")), "seed": str(result.seed)}
        rows = [p for table in result.tables for p in _rows(result, table, own)]
        if not rows:
            raise HostnetError(f"{name}: has no time line; run.timeline and longer runs make one.")
        found += rows
    return found


def _rows(result: Result, table: str, labels: Mapping[str, str]) -> Iterator[Point]:
    frame = result.table(table)
    if frame.columns[:1] != [TIME]:
        return
    for row in frame.iter_rows(named=True):
        texts = {c: v for c, v in row.items() if isinstance(v, str)}
        numbers = {c: float(v) for c, v in row.items() if c != TIME and isinstance(v, (int, float))}
        yield Point(table, {**labels, **texts}, numbers, Decimal(repr(float(row[TIME]))))


def openmetrics(results: Mapping[str, Result], start: int = 0, stretch: int = 1) -> str:
    """Time lines as OpenMetrics 1.0: a gauge for each column, with the points of each series in order of time."""
    series: dict[tuple[str, str], dict[str, list[tuple[Decimal, float]]]] = {}
    for p in points(results):
        labels = ",".join(f'{_name(k)}="{_quoted(v)}"' for k, v in p.labels.items())
        for column, value in p.values.items():
            series.setdefault((p.table, column), {}).setdefault(labels, []).append((p.us, value))
    units = {(t, c): u for r in results.values() for t in r.tables for c, u in r.units(t).items()}
    lines = []
    for (table, column), by_labels in series.items():
        name = _name(f"hostnet_{table}_{column}")
        lines += [f"# TYPE {name} gauge", f"# HELP {name} {_help(table, column, units[table, column])}"]
        for labels, row in by_labels.items():
            lines += [f"{name}{{{labels}}} {value!r} {_seconds(us, start, stretch)}" for us, value in row]
    return "\n".join([*lines, "# EOF", ""])


def influx(results: Mapping[str, Result], start: int = 0, stretch: int = 1) -> str:
    """Time lines in the line protocol of InfluxDB: a measurement for each table, with times in nanoseconds."""
    lines = []
    for p in points(results):
        tags = "".join(f",{_tag(k)}={_tag(v)}" for k, v in sorted(p.labels.items()) if v)
        fields = ",".join(f"{_tag(c)}={v!r}" for c, v in p.values.items())
        ns = int((p.us * 1000 * stretch).to_integral_value()) + start * 10**9
        lines.append(f"{_measurement(f'hostnet_{p.table}')}{tags} {fields} {ns}")
    return "\n".join([*lines, ""])


def _seconds(us: Decimal, start: int, stretch: int) -> str:
    return f"{start + us * stretch / 1_000_000:f}"


def _name(text: str) -> str:
    """A text with the characters that a metric's name and a label's name may have."""
    return re.sub(r"[^a-zA-Z0-9_]", "_", text)


def _quoted(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _help(table: str, column: str, unit: str) -> str:
    known = metric_info().get(column)
    meaning = known["description"] if known else f"column {column} of the table {table}"
    return _quoted(meaning + (f", in {unit}" if unit else ""))


def _tag(text: str) -> str:
    """A tag's or a field's name, or a tag's value; a line ends none of them."""
    return re.sub(r"([,= \\])", r"\\\1", text.replace("\n", " "))


def _measurement(text: str) -> str:
    return re.sub(r"([, \\])", r"\\\1", text)


def main(files: Sequence[Path], format: str, out: Path | None, start: int, stretch: int) -> str | None:
    """The command: the export of saved results, or None after the export was written to ``out``."""
    from .output import check_file, check_no_input, write_text
    from .results import Result

    if format not in FORMATS:
        raise HostnetError(f"--format {format}: choose {' or '.join(FORMATS)}.")
    if stretch < 1 or start < 0:
        raise HostnetError("--stretch is 1 or more, and --start 0 or more.")
    stems = [f.stem for f in files]
    if len(set(stems)) < len(stems):
        stems = [str(f.with_suffix("")) for f in files]
    results = dict(zip(stems, map(Result.load, files)))
    text = (openmetrics if format == "openmetrics" else influx)(results, start, stretch)
    if out is None:
        return text
    check_no_input(out, files)
    check_file(out, *MARKS)
    write_text(out, text)
    return None
