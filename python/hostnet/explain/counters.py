"""Reads recorded hardware counters: output of `perf stat` (with `-x`, with `-j`, or in its default format) and PCM's
CSV files."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import HostnetError
from ..paths import nearest
from .events import BY_NAME, SUMS, VENDOR

_DATE = re.compile(r"\d{4}-\d\d-\d\d$")
_SCOPE = re.compile(r"(CPU-?\d+|[SNDC]\d+(-[A-Z0-9]+)*)$")
# Texts that perf writes instead of a number.
_MISSING = ("<not counted>", "<not supported>")
# Units into which perf converts counts of 64-byte lines.
_BYTES = {"B": 1.0, "Bytes": 1.0, "KB": 1e3, "KiB": 2.0**10, "MB": 1e6, "MiB": 2.0**20, "GB": 1e9, "GiB": 2.0**30}
_NS = {"": 1.0, "ns": 1.0, "us": 1e3, "usec": 1e3, "ms": 1e6, "msec": 1e6, "s": 1e9, "sec": 1e9}
# Percentage of the time below which a counter's value is an estimate, and is reported as one.
_RARE = 10.0
# Pattern of the lines of perf's default format: count, unit, event, and the share of time that the counter ran.
_PLAIN = re.compile(
    r"\s*(?P<stamp>\d+[.,]\d{9}\s+)?(?P<scope>(?:S\d+\S*|CPU\d+)\s+(?:\d+\s+)?)?"
    r"(?P<count><not counted>|<not supported>|\d[\d.,'’\u00a0\u202f ]*)\s+(?:(?P<unit>[A-Za-z]+)\s+)?(?P<event>[A-Za-z_][^\s#]*)"
    r"\s*(?:#.*?)?(?:\((?P<share>\d+[.,]\d+)%\))?\s*$"
)
_ELAPSED = re.compile(r"\s*(\d[\d.,]*)\s+(?:\+-.*)?seconds time elapsed")


@dataclass(frozen=True)
class Recording:
    """Events per second, summed over all units, by the names of `events.EVENTS`.

    ``lost`` says why an event has no rate although the file names the event. ``notes`` says what limits the other rates, and ``machine`` what the file says about its machine. ``busy_cores``
    counts CPUs that held line fill buffers, where the file tells CPUs apart.
    """

    file: str
    rates: Mapping[str, float]
    lost: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    machine: Mapping[str, float] = field(default_factory=dict)
    busy_cores: int | None = None

    def __contains__(self, name: str) -> bool:
        return name in self.rates

    def rate(self, *names: str) -> float:
        """The sum of the rates. Raises HostnetError when one of them was not recorded."""
        for name in names:
            if name not in self.rates:
                raise HostnetError(f"{self.file}: {self.why(name)}.")
        return sum(self.rates[name] for name in names)

    def why(self, name: str) -> str:
        """Reason why an event has no rate."""
        e = BY_NAME[name]
        return self.lost.get(name) or f"the event `{name}` ({e.meaning}) is missing; record it as `{e.perf}`"


@dataclass
class _Row:
    """One count of one event, of one unit or scope, in one interval."""

    line: int
    event: str
    count: str
    unit: str = ""
    stamp: float | None = None
    scope: str = ""
    share: float | None = None


def read(path: str | Path, seconds: float | None = None) -> Recording:
    """The recording in ``path``. Raises HostnetError when the file is not a recording, names no duration or lacks
    counts."""
    file = str(path)
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except OSError as e:
        raise HostnetError(f"{file}: cannot be read ({e.strerror}).") from None
    except UnicodeDecodeError:
        raise HostnetError(f"{file}: is not a text file.") from None
    told = [(i, line) for i, line in enumerate(lines, 1) if line.strip()]
    rows = [(i, _split(line)) for i, line in told if not line.lstrip().startswith("#")]
    if any(_DATE.match(fields[0]) for _, fields in rows):
        return _pcm(file, rows)
    return _perf(file, told, seconds)


def _split(line: str) -> list[str]:
    separator = ";" if ";" in line else "\t" if "\t" in line and "," not in line else ","
    return [f.strip().strip('"') for f in line.split(separator)]


def _name(field: str) -> tuple[str, str]:
    """The event in a field, without PMU, modifiers and unit; and the unit of the event, such as ``uncore_imc_0``."""
    text, unit = field.strip(), ""
    if m := re.fullmatch(r"(\S+)\s*\[(\w+)\]", text):
        text, unit = m[1], m[2]
    if m := re.fullmatch(r"(\w+)/(.*)/(\w*)", text):
        named = re.search(r"(?:^|,)name=([^,]+)", m[2])
        text = named[1] if named else m[2]
        unit = unit or (m[1] if re.search(r"_\d+$", m[1]) else "")
    text = re.sub(r"(?<=[\w.]):[a-zA-Z]+$", "", text)
    return text.lower(), unit


def _known(name: str) -> bool:
    return name in BY_NAME or name in VENDOR


def _figure(text: str) -> float | None:
    """A number in the notation of any locale; None when the text is not a number. A single mark before three digits
    groups thousands."""
    digits = re.sub(r"[\s'’\u00a0\u202f_]", "", text)
    if not re.fullmatch(r"\d[\d.,]*", digits):
        return None
    marks = re.findall(r"[.,]", digits)
    if not marks:
        return float(digits)
    last = digits.rfind(marks[-1])
    grouped = len(digits) - last == 4 and len(set(marks)) == 1 and re.fullmatch(r"\d{1,3}([.,]\d{3})+", digits)
    if grouped:
        return float(re.sub(r"[.,]", "", digits))
    if marks.count(marks[-1]) > 1:
        return None
    return float(re.sub(r"[.,]", "", digits[:last]) + "." + digits[last + 1 :])


def _number(file: str, line: int, event: str, text: str) -> float:
    try:
        value = _figure(text)
        value = float(text) if value is None else value
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise HostnetError(f"{file}: line {line}: `{event}` has {text!r} where a count is expected.")
    return value


# ---- perf --------------------------------------------------------------------------------------------------------


def _perf(file: str, told: list[tuple[int, str]], seconds: float | None) -> Recording:
    machine: dict[str, float] = {}
    recordings: list[list[_Row]] = [[]]
    strangers: list[str] = []
    elapsed = 0.0
    for line, text in told:
        if text.lstrip().startswith("#"):
            if text.startswith("# started on"):
                recordings.append([])
            if text.startswith("# machine:"):
                machine = {k: float(v) for k, _, v in (p.partition("=") for p in text.split(":", 1)[1].split())}
            continue
        if m := _ELAPSED.match(text):
            elapsed += _number(file, line, "seconds time elapsed", m[1])
            continue
        row = _row(file, line, text, strangers)
        if row is not None:
            recordings[-1].append(row)
    parts = [part for rows in recordings if rows for part in _apart(file, rows)]
    if not parts:
        found = next(filter(None, strangers), None)
        near = nearest(found, [*BY_NAME, *VENDOR]) if found else ""
        hint = f"; {near}" if near.startswith("did you mean") else ""  # a list of all events would be no help
        raise HostnetError(
            f"{file}: holds none of the events that are needed{f' (found `{found}`{hint})' if found else ''}; "
            "`hostnet explain --template perf` records them."
        )
    if len(parts) > 1 and seconds is not None:
        raise HostnetError(
            f"{file}: holds {len(parts)} recordings, for which one --seconds {seconds:g} says too little."
        )
    totals: dict[str, float] = {}
    times: dict[str, float] = {}
    lost: dict[str, str] = {}
    rare: dict[str, float] = {}
    cpus: dict[str, float] = {}
    for rows in parts:
        span = seconds or _duration(file, rows) or elapsed
        if not span:
            raise HostnetError(
                f"{file}: says nothing about how long it was recorded; add the event duration_time or give --seconds."
            )
        here: dict[str, float] = {}
        for row in _merged(rows):
            name = _name(row.event)[0]
            if name == "duration_time":
                continue
            if row.count in _MISSING:
                hint = (
                    "record fewer events at once, or longer"
                    if row.count == "<not counted>"
                    else "this processor, or its kernel, has no such event"
                )
                lost[name] = f"line {row.line}: `{row.event}` was {row.count[1:-1]}; {hint}"
                continue
            value = _lines(file, row)
            here[name] = here.get(name, 0.0) + value
            if row.share is not None and row.share < _RARE:
                rare[name] = min(row.share, rare.get(name, 100.0))
            if row.scope.upper().startswith("CPU") and name in ("lfb_occupancy", *_parts_of("lfb_occupancy")):
                cpus[row.scope] = cpus.get(row.scope, 0.0) + value / span
        for name, value in here.items():
            totals[name] = totals.get(name, 0.0) + value
            times[name] = times.get(name, 0.0) + span
    rates = {name: totals[name] / times[name] for name in totals if name not in lost}
    if not rates and lost:
        raise HostnetError(f"{file}: {next(iter(lost.values()))}.")
    found_rates, found_lost = _canonical(rates, lost)
    notes = [
        f"`{n}` was counted for {share:.3g} % of the time and scaled, so it is an estimate" for n, share in rare.items()
    ]
    busiest = max(cpus.values(), default=0.0)
    busy = sum(v > 0.05 * busiest for v in cpus.values()) if busiest else None
    return Recording(file, found_rates, found_lost, tuple(notes), machine, busy)


def _row(file: str, line: int, text: str, strangers: list[str]) -> _Row | None:
    """The count in a line of `perf stat`; None for a line of another event, whose name goes to ``strangers``."""
    if text.lstrip().startswith("{"):
        return _of_json(file, line, text, strangers)
    fields = _split(text)
    if len(fields) < 3:
        return _of_people(text)
    at = next((i for i, f in enumerate(fields) if i >= 2 and _wanted(f)), None)
    if at is None:
        if (row := _of_people(text)) is not None:
            return row
        strangers += fields[2:3]
        return None
    # [seconds,][scope,[units,]]count,unit of the count,event,run time,share of the time
    before = fields[: at - 2]
    row = _Row(line, fields[at], fields[at - 2], fields[at - 1])
    if before and before[0] == "summary":
        row.scope = "summary"
        before = before[1:]
    elif before and re.fullmatch(r"\d+[.,]\d+", before[0]):
        row.stamp = float(before[0].replace(",", "."))
        before = before[1:]
        if before and before[0] == "summary":
            row.scope, row.stamp, before = "summary", None, before[1:]
    if before and _SCOPE.match(before[0]):
        row.scope = f"{row.scope} {before[0]}".strip()
        before = before[2:] if len(before) > 1 and before[1].isdigit() else before[1:]
    if before:
        raise HostnetError(
            f"{file}: line {line}: `{','.join(fields[: at + 1])}` has more fields than perf writes; where the locale's decimal "
            "mark is a comma, record with LC_ALL=C, or with -x ';'."
        )
    if len(fields) > at + 2 and (share := _figure(fields[at + 2])) is not None and share <= 100:
        row.share = share
    return row


def _wanted(field: str) -> bool:
    name = _name(field)[0]
    return name == "duration_time" or _known(name)


def _of_json(file: str, line: int, text: str, strangers: list[str]) -> _Row | None:
    try:
        found = json.loads(text.strip().rstrip(","))
    except ValueError:
        raise HostnetError(f"{file}: line {line}: is not JSON as `perf stat -j` writes it.") from None
    event = str(found.get("event", ""))
    if not _wanted(event):
        strangers += [event]
        return None
    scope = next((f"{k}{found[k]}" for k in ("cpu", "core", "die", "socket", "node") if k in found), "")
    scope = f"CPU{found['cpu']}" if "cpu" in found else scope
    stamp, share = found.get("interval"), found.get("pcnt-running")
    return _Row(
        line,
        event,
        str(found.get("counter-value", "")),
        str(found.get("unit") or ""),
        None if stamp is None else _number(file, line, "interval", str(stamp)),
        scope,
        None if share is None else float(share),
    )


def _of_people(text: str) -> _Row | None:
    m = _PLAIN.match(text)
    if m is None or not _wanted(m["event"]):
        return None
    stamp = float(m["stamp"].strip().replace(",", ".")) if m["stamp"] else None
    scope = (m["scope"] or "").split()[0] if m["scope"] else ""
    share = _figure(m["share"]) if m["share"] else None
    return _Row(0, m["event"], m["count"].strip(), m["unit"] or "", stamp, scope, share)


def _apart(file: str, rows: list[_Row]) -> list[list[_Row]]:
    """The recordings that `perf stat --append` put into one file: time stamps that begin again, or a second duration.
    Raises HostnetError where a duration lies between the events of two recordings."""
    summary = [r for r in rows if r.scope.startswith("summary")]
    stamps = [r.stamp for r in rows if r.stamp is not None]
    if summary:  # the sum of the intervals above this line
        last = f"{max(stamps, default=0.0) * 1e9:.0f}"
        return [summary if _timed(summary) or not stamps else [*summary, _Row(0, "duration_time", last, "ns")]]
    if stamps:
        parts: list[list[_Row]] = [[]]
        latest = 0.0
        for row in rows:
            if row.stamp is not None and row.stamp < latest:
                parts.append([])
            latest = row.stamp if row.stamp is not None else latest
            parts[-1].append(row)
        return parts
    durations = [(r.scope, i) for i, r in enumerate(rows) if _name(r.event)[0] == "duration_time"]
    if len({scope for scope, _ in durations}) == len(durations):
        return [rows] if rows else []
    first, last_one = durations[0][1] == 0, durations[-1][1] == len(rows) - 1
    if not first and not last_one:
        raise HostnetError(
            f"{file}: holds several recordings, and where one ends cannot be told; record each into a file of its own."
        )
    ordered = rows if first else rows[::-1]
    found: list[list[_Row]] = [[]]
    seen: set[str] = set()
    for row in ordered:
        if _name(row.event)[0] == "duration_time":
            if row.scope in seen:
                found.append([])
                seen = set()
            seen.add(row.scope)
        found[-1].append(row)
    return found


def _timed(rows: list[_Row]) -> bool:
    return any(_name(r.event)[0] == "duration_time" for r in rows)


def _duration(file: str, rows: list[_Row]) -> float:
    """Recorded duration in seconds: for intervals, the sum of the longest times of any scope; otherwise the last time
    stamp."""
    longest: dict[float | None, float] = {}
    for row in rows:
        if _name(row.event)[0] == "duration_time" and row.count not in _MISSING:
            if row.unit not in _NS:
                raise HostnetError(
                    f"{file}: line {row.line}: duration_time has the unit {row.unit!r}, which is no time."
                )
            ns = _number(file, row.line, "duration_time", row.count) * _NS[row.unit]
            longest[row.stamp] = max(longest.get(row.stamp, 0.0), ns)
    return sum(longest.values()) / 1e9 or max((r.stamp for r in rows if r.stamp is not None), default=0.0)


def _merged(rows: list[_Row]) -> list[_Row]:
    """Rows without those of single units, where the file also contains the sum over units."""
    whole = {(r.stamp, r.scope, _name(r.event)[0]) for r in rows if not _name(r.event)[1]}
    return [r for r in rows if not _name(r.event)[1] or (r.stamp, r.scope, _name(r.event)[0]) not in whole]


def _lines(file: str, row: _Row) -> float:
    """A count in lines; perf converts counts of lines to bytes, which this function reverses."""
    value = _number(file, row.line, row.event, row.count)
    if not row.unit:
        return value
    if row.unit in _BYTES and _name(row.event)[0] in _OF_LINES:
        return value * _BYTES[row.unit] / 64
    raise HostnetError(
        f"{file}: line {row.line}: `{row.event}` has the unit {row.unit!r}, in which it cannot be read; record the bare event, "
        "as `hostnet explain --template perf` does."
    )


def _parts_of(event: str) -> list[str]:
    return [n for n, names in VENDOR.items() if event in names] + list(BY_NAME[event].aliases)


_OF_LINES = {"cas_read", "cas_write", *_parts_of("cas_read"), *_parts_of("cas_write")}


def _canonical(rates: Mapping[str, float], lost: Mapping[str, str]) -> tuple[dict[str, float], dict[str, str]]:
    """Rates under the names of `events.EVENTS`. An event that is a sum on some processor has a rate only when every
    part was recorded."""
    found: dict[str, float] = {}
    gone: dict[str, str] = {}
    for name, value in rates.items():
        if name in BY_NAME and name not in VENDOR:
            found[BY_NAME[name].name] = value
    for event, alternatives in SUMS.items():
        for parts in sorted(alternatives, key=len, reverse=True):
            if all(p in rates for p in parts) and event not in found:
                found[event] = sum(rates[p] for p in parts)
            elif any(p in rates for p in parts) and len(parts) > 1:
                absent = next(p for p in parts if p not in rates)
                gone.setdefault(
                    event,
                    lost.get(absent) or f"`{event}` is the sum of {len(parts)} events, of which `{absent}` is missing",
                )
    for name, why in lost.items():
        for event in [BY_NAME[name].name] if name in BY_NAME else VENDOR.get(name, ()):
            gone.setdefault(event, why)
    for event in set(gone) & set(found):
        if event in {BY_NAME[n].name for n in lost if n in BY_NAME}:
            del found[event]  # some of its units were not counted
        else:
            del gone[event]
    return found, gone


# ---- PCM ---------------------------------------------------------------------------------------------------------


def _pcm(file: str, rows: list[tuple[int, list[str]]]) -> Recording:
    head = [fields for _, fields in rows if not _DATE.match(fields[0])]
    if any("mem read (mb/s)" in (f.lower() for f in fields) for fields in head):
        return _pcm_memory(file, rows, head)
    totals: dict[str, list[float]] = {}
    seen: set[tuple[str, str, str]] = set()
    twice: set[str] = set()
    for line, fields in rows:
        name = _name(fields[2])[0] if len(fields) > 2 else ""
        if not _known(name) or not _DATE.match(fields[0]):
            continue
        if len(fields) < 6:
            raise HostnetError(f"{file}: line {line}: `{fields[2]}` has no counts; record with pcm-raw -tr -csv.")
        comma = not any("." in f for f in fields[3:])
        values = [
            _number(file, line, fields[2], f.replace(",", ".") if comma else f)
            if not re.fullmatch(r"\d+\.\d+", f)
            else float(f)
            for f in (fields[3], *(f for f in fields[5:] if f and f.upper() not in ("N/A", "-")))
        ]
        ms, counts = values[0], values[1:]
        key = (fields[0], fields[1], name)
        total = totals.setdefault(name, [0.0, 0.0])
        total[0] += sum(counts)
        if key in seen:
            twice.add(name)  # another row for units of the same interval
        else:
            total[1] += ms / 1e3
        seen.add(key)
    if not totals:
        raise HostnetError(
            f"{file}: holds none of the events that are needed; `hostnet explain --template pcm` records them."
        )
    for name, (_, span) in totals.items():
        if not span:
            raise HostnetError(f"{file}: `{name}` was recorded for 0 milliseconds.")
    found, lost = _canonical({name: total / span for name, (total, span) in totals.items()}, {})
    notes = tuple(f"`{n}` has several rows a time, which are added" for n in sorted(twice))
    return Recording(file, found, lost, notes)


def _pcm_memory(file: str, rows: list[tuple[int, list[str]]], head: list[list[str]]) -> Recording:
    """The bandwidths that `pcm-memory -csv` writes, in lines, over all sockets."""
    names = next([f.lower() for f in fields] for fields in head if "mem read (mb/s)" in (f.lower() for f in fields))
    data = [(line, fields) for line, fields in rows if _DATE.match(fields[0])]
    rates: dict[str, float] = {}
    for event, column in (("cas_read", "mem read (mb/s)"), ("cas_write", "mem write (mb/s)")):
        at = [i for i, n in enumerate(names) if n == column]
        sums = [
            sum(_number(file, line, column, f[i]) if "," in f[i] else float(f[i] or 0) for i in at if i < len(f))
            for line, f in data
        ]
        rates[event] = sum(sums) / len(sums) * 1e6 / 64
    return Recording(file, rates, {}, ("pcm-memory records bandwidth alone",))
