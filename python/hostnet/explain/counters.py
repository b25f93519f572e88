"""Reads recorded hardware counters: `perf stat -x,` or `-x;` files, and `pcm-raw -tr -csv` files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import HostnetError
from ..paths import nearest
from .events import BY_NAME

_DATE = re.compile(r"\d{4}-\d\d-\d\d$")
# What perf writes instead of a number.
_MISSING = ("<not counted>", "<not supported>")


@dataclass(frozen=True)
class Recording:
    """Events per second, summed over all units, by the names of `events.EVENTS`."""

    file: str
    rates: Mapping[str, float]

    def __contains__(self, name: str) -> bool:
        return name in self.rates

    def rate(self, *names: str) -> float:
        """The sum of the rates. Raises HostnetError when one was not recorded."""
        for name in names:
            if name not in self.rates:
                e = BY_NAME[name]
                raise HostnetError(
                    f"{self.file}: the event `{name}` ({e.meaning}) is missing; record it as `{e.perf}`."
                )
        return sum(self.rates[name] for name in names)


def read(path: str | Path, seconds: float | None = None) -> Recording:
    """The recording in ``path``. Raises HostnetError when it is not one, names no duration or lacks counts."""
    file = str(path)
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as e:
        raise HostnetError(f"{file}: cannot be read ({e.strerror}).") from None
    except UnicodeDecodeError:
        raise HostnetError(f"{file}: is not a text file.") from None
    rows = [(i, _split(line)) for i, line in enumerate(lines, 1) if line.strip() and not line.lstrip().startswith("#")]
    if any(_DATE.match(fields[0]) for _, fields in rows):
        return _pcm(file, rows)
    return _perf(file, rows, seconds)


def _split(line: str) -> list[str]:
    separator = ";" if ";" in line else ","
    return [f.strip() for f in line.split(separator)]


def _known(field: str) -> str | None:
    event = BY_NAME.get(field.lower().removesuffix(":u").removesuffix(":k"))
    return event.name if event else None


def _number(file: str, line: int, event: str, text: str) -> float:
    if text in _MISSING:
        raise HostnetError(f"{file}: line {line}: `{event}` was {text[1:-1]}; record fewer events at once, or longer.")
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise HostnetError(f"{file}: line {line}: `{event}` has {text!r} where a count is expected.")
    return value


def _perf(file: str, rows: list[tuple[int, list[str]]], seconds: float | None) -> Recording:
    totals: dict[str, float] = {}
    duration_ns = last_stamp = 0.0
    strangers: list[str] = []
    for line, fields in rows:
        # [seconds,][unit,[units,]]count,unit of the count,event,...: the count stands two before the event.
        at = next((i for i, f in enumerate(fields) if i >= 2 and (_known(f) or f == "duration_time")), None)
        if at is None:
            strangers += fields[2:3]
            continue
        value = _number(file, line, fields[at], fields[at - 2])
        if fields[at] == "duration_time":
            duration_ns += value
            continue
        if at >= 3 and re.match(r"\d+\.\d+$", fields[0]):
            last_stamp = max(last_stamp, float(fields[0]))
        if (name := _known(fields[at])) is not None:
            totals[name] = totals.get(name, 0.0) + value
    if not totals:
        found = next(filter(None, strangers), None)
        near = nearest(found, list(BY_NAME)) if found else ""
        hint = f"; {near}" if near.startswith("did you mean") else ""  # all events would be no hint
        raise HostnetError(
            f"{file}: holds none of the events that are needed{f' (found `{found}`{hint})' if found else ''}; "
            "`hostnet explain --template perf` records them."
        )
    span = seconds or duration_ns / 1e9 or last_stamp
    if not span:
        raise HostnetError(
            f"{file}: says nothing about how long it was recorded; add the event duration_time or give --seconds."
        )
    return Recording(file, {name: total / span for name, total in totals.items()})


def _pcm(file: str, rows: list[tuple[int, list[str]]]) -> Recording:
    totals: dict[str, list[float]] = {}
    for line, fields in rows:
        name = _known(fields[2]) if len(fields) > 2 else None
        if name is None or not _DATE.match(fields[0]):
            continue
        if len(fields) < 6:
            raise HostnetError(f"{file}: line {line}: `{fields[2]}` has no counts; record with pcm-raw -tr -csv.")
        ms, *counts = (_number(file, line, fields[2], f) for f in (fields[3], *(f for f in fields[5:] if f)))
        total = totals.setdefault(name, [0.0, 0.0])
        total[0] += sum(counts)
        total[1] += ms / 1e3
    if not totals:
        raise HostnetError(
            f"{file}: holds none of the events that are needed; `hostnet explain --template pcm` records them."
        )
    for name, (_, span) in totals.items():
        if not span:
            raise HostnetError(f"{file}: `{name}` was recorded for 0 milliseconds.")
    return Recording(file, {name: total / span for name, (total, span) in totals.items()})
