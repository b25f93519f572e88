"""Reads recorded hardware counters: output of `perf stat` (with `-x`, with `-j`, or in its default format) and PCM's
CSV files."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import multimode

from ..errors import HostnetError
from ..paths import nearest
from .events import BY_NAME, OWN, PROCESSORS, SUMS, VENDOR, later_processors
from .machine import BELOW, property_value

_DATE = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}$")
_SCOPE = re.compile(r"(CPU-?\d+|[SNDC]\d+(-[A-Z0-9]+)*|.+-\d+)$")
_CPU = re.compile(r"CPU-?(\d+)")
_CORE = re.compile(r"CPU\d+|S\d+(-D\d+)?-C\d+")
# Texts that perf writes instead of a number.
_MISSING = ("<not counted>", "<not supported>")
# Modifiers that limit a count: the modifier that counts the rest, and what is counted.
_LIMITS = {
    "u": ("k", "in user mode"),
    "k": ("u", "in the kernel"),
    "G": ("H", "in guests"),
    "H": ("G", "outside guests"),
}
# Units into which perf converts counts of 64-byte lines.
_BYTES = {"B": 1.0, "Bytes": 1.0, "KB": 1e3, "KiB": 2.0**10, "MB": 1e6, "MiB": 2.0**20, "GB": 1e9, "GiB": 2.0**30}
_NS = {"": 1.0, "ns": 1.0, "us": 1e3, "usec": 1e3, "ms": 1e6, "msec": 1e6, "s": 1e9, "sec": 1e9}
# Percentage of the time below which a counter's value is an estimate, and is reported as one.
_RARE = 10.0
# A line of `perf stat -x SEPARATOR`: count, unit, event, control group, deviation over the runs of -r, run time, share of the time.
_FIELDS = re.compile(
    r"(?:\d[\d.,]*|<not counted>|<not supported>)(?P<sep>[^\w<>.\"{}]{1,3}?)[A-Za-z]*(?P=sep)"
    r"(?P<event>[A-Za-z_]\S*?(?: \[\w+\])?)(?:(?P=sep)[^\d\s]\S*?)?(?:(?P=sep)[\d.,]+%)?(?P=sep)\d+(?P=sep)\d"
)
# Pattern of the lines of perf's default format: count, unit, event, control group, deviation over the runs of -r, and the share
# of time that the counter ran.
_PLAIN = re.compile(
    r"\s*(?P<stamp>\d+[.,]\d{9}\s+)?(?P<scope>CPU\d+\s+|[SN]\d+\S*\s+(?:\d+\s+)?|[^\s\d<#]\S*-\d+\s+)?"
    r"(?P<count><not counted>|<not supported>|\d[\d.,'’\u00a0\u202f ]*)\s+(?:(?P<unit>[A-Za-z]+)\s+)?"
    r"(?P<event>[A-Za-z_][^\s#]*(?:\s\[\w+\])?)(?:\s+(?P<group>[^\s#(\[]\S*))?"
    r"\s*(?:#.*?)?(?:\(\s*\+-[^)]*\))?\s*(?:[(\[](?P<share>\d+[.,]\d+)%[)\]])?\s*$"
)
_ELAPSED = re.compile(r"\s*(\d[\d.,]*)\s+(?:\+-.*)?seconds time elapsed")


@dataclass(frozen=True)
class Recording:
    """Events per second, summed over all units, by the names of `events.EVENTS`.

    ``lost`` says why an event has no rate although the file names the event. ``notes`` says what limits the other rates, and
    ``machine`` what the file says about its machine. ``busy_cores`` counts the cores that held line fill buffers, where the
    file tells them apart, and counts hardware threads where it has ``threads``. Where the file tells sockets apart, ``sockets`` counts them, and ``parts`` has the recording of each by
    its name. ``processor`` is the key of `events.PROCESSORS` whose names the file uses, or empty; ``later`` has the keys of one of
    which the machine is where the names tell that it is newer than Cascade Lake, or AMD's.
    """

    file: str
    rates: Mapping[str, float]
    lost: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    machine: Mapping[str, float] = field(default_factory=dict)
    busy_cores: int | None = None
    threads: bool = False
    sockets: int = 1
    parts: Mapping[str, Recording] = field(default_factory=dict)
    processor: str = ""
    later: tuple[str, ...] = ()

    def __contains__(self, name: str) -> bool:
        return name in self.rates

    @property
    def nodes(self) -> bool:
        """Whether ``parts`` are NUMA nodes, of which a socket may have several."""
        return any(name.startswith("N") for name in self.parts)

    def rate(self, *names: str) -> float:
        """The sum of the rates. Raises HostnetError when one of them was not recorded."""
        for name in names:
            if name not in self.rates:
                raise HostnetError(f"{self.file}: {self.why(name)}.")
        return sum(self.rates[name] for name in names)

    def why(self, name: str) -> str:
        """Reason why an event has no rate."""
        e = BY_NAME[name]
        named = PROCESSORS[self.processor][1] if self.processor else {name: [e.perf]}
        wanted = " and ".join(f"`{part}`" for part in named.get(name, ()))
        told = (
            f"is missing; record it as {wanted}"
            if wanted
            else "is missing, which the recorded processor does not count"
        )
        return self.lost.get(name) or f"the event `{name}` ({e.meaning}) {told}"


@dataclass
class _Row:
    """One count of one event, of one unit or scope, in one interval.

    ``name``, ``box`` and ``mode`` are the event's name, the unit that counted it, such as ``uncore_imc_0``, and the
    modifiers to which it is limited. ``socket`` is the socket's name, where the file tells sockets apart. Digits of
    the count may be ``grouped``.
    """

    line: int
    event: str
    count: str
    unit: str = ""
    stamp: float | None = None
    scope: str = ""
    share: float | None = None
    socket: str = ""
    grouped: bool = False

    def __post_init__(self) -> None:
        self.name, self.box, self.mode = _name(self.event)


def read_bytes(path: str | Path) -> bytes:
    """The content of a file. Raises HostnetError where it cannot be read."""
    try:
        return Path(path).read_bytes()
    except OSError as e:
        raise HostnetError(f"{path}: cannot be read ({e.strerror}).") from None


def read(path: str | Path, seconds: float | None = None, content: bytes | None = None) -> Recording:
    """The recording in ``path``, whose ``content`` may have been read. Raises HostnetError when the file is not a recording,
    names no duration or lacks counts."""
    file = str(path)
    text = read_bytes(path) if content is None else content
    try:
        wide = text.startswith((b"\xff\xfe", b"\xfe\xff"))  # as PowerShell redirects
        lines = text.decode("utf-16" if wide else "utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise HostnetError(f"{file}: is not a text file.") from None
    told = [(i, line) for i, line in enumerate(lines, 1) if line.strip()]
    if not told:
        raise HostnetError(f"{file}: is empty; `hostnet explain --template perf` records counters.")
    rows = [(i, _split(line)) for i, line in told if not line.lstrip().startswith("#")]
    if any(_DATE.match(fields[0]) for _, fields in rows):
        return _pcm(file, rows, seconds)
    if any(_heads_pcm(fields) for _, fields in rows):
        raise HostnetError(
            f"{file}: has the header of a file of PCM and no rows, which PCM writes after each interval; record for longer."
        )
    return _perf(file, told, seconds)


def _split(line: str, separator: str | None = None) -> list[str]:
    if separator is None:
        separator = ";" if ";" in line else "\t" if "\t" in line.strip() else ","
    return [f.strip().strip('"') for f in (line.lstrip() if separator == " " else line).split(separator)]


def _separator(told: list[tuple[int, str]]) -> str | None:
    """The separator that `perf stat -x` was given, from the first line of a known event."""
    for _, text in told:
        if not text.lstrip().startswith(("#", "{")) and (m := _FIELDS.search(text)) and _wanted(m["event"]):
            return m["sep"]
    return None


def _name(field: str) -> tuple[str, str, str]:
    """The event in a field, without PMU, modifiers and unit; the unit of the event, such as ``uncore_imc_0``; and
    the modifiers that limit the count to user or kernel mode, or to guests or the host."""
    text, unit, mode = field.strip(), "", ""
    if m := re.fullmatch(r"(\S+)\s*\[(\w+)\]", text):
        text, unit = m[1], m[2]
    if m := re.fullmatch(r"(\w+)/(.*)/(\w*)", text):
        named = re.search(r"(?:^|,)name=([^,]+)", m[2])
        text, mode = named[1] if named else m[2], m[3]
        unit = unit or (m[1] if re.search(r"_\d+$", m[1]) else "")
    if m := re.fullmatch(r"(.*[\w.]):([a-zA-Z]+)", text):
        text, mode = m[1], m[2]
    return text.lower(), unit, "".join(m for m, (other, _) in _LIMITS.items() if m in mode and other not in mode)


def _known(name: str) -> bool:
    return name in BY_NAME or name in VENDOR


def _figure(text: str, grouped: bool = False) -> float | None:
    """A number in the notation of any locale; None when the text is not a number.

    Perf groups digits in counts of its default format alone, which are ``grouped`` and have two decimals or none, so a
    single mark before three digits groups thousands there. Everywhere else it is the decimal mark.
    """
    digits = re.sub(r"[\s'’\u00a0\u202f_]", "", text)
    if not re.fullmatch(r"\d[\d.,]*", digits):
        return None
    marks = re.findall(r"[.,]", digits)
    if not marks:
        return float(digits)
    last = digits.rfind(marks[-1])
    if grouped and len(set(marks)) == 1 and re.fullmatch(r"\d{1,3}(?:[.,]\d{2,3})*[.,]\d{3}", digits):
        return float(re.sub(r"[.,]", "", digits))
    if marks.count(marks[-1]) > 1:
        return None
    return float(re.sub(r"[.,]", "", digits[:last]) + "." + digits[last + 1 :])


def _number(file: str, line: int, event: str, text: str, grouped: bool = False) -> float:
    try:
        value = _figure(text, grouped)
        value = float(text) if value is None else value
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise HostnetError(f"{file}: line {line}: `{event}` has {text!r} where a count is expected.")
    return value


# ---- perf --------------------------------------------------------------------------------------------------------


def _machine(file: str, line: int, text: str) -> dict[str, float]:
    """Properties of the machine that the comment ``text`` of a simulated recording gives."""
    found = {}
    for key, _, value in (p.partition("=") for p in text.split(":", 1)[1].split()):
        number = property_value(value)
        if number is None:
            raise HostnetError(
                f"{file}: line {line}: {key} = {value!r} of the machine is not a positive number{BELOW}."
            )
        found[key] = number
    return found


def _perf(file: str, told: list[tuple[int, str]], seconds: float | None) -> Recording:
    machine: dict[str, float] = {}
    recordings: list[tuple[list[_Row], float]] = []
    rows: list[_Row] = []
    strangers: list[str] = []
    separator = _separator(told)
    for line, text in told:
        if text.lstrip().startswith("#"):
            if text.startswith("# started on"):
                recordings.append((rows, 0.0))
                rows = []
            if text.startswith("# machine:"):
                machine = _machine(file, line, text)
            continue
        if m := _ELAPSED.match(text):
            recordings.append((rows, _number(file, line, "seconds time elapsed", m[1])))
            rows = []
            continue
        if rows and text.lstrip().startswith("{") and "}" not in text and line == told[-1][0]:
            continue  # a recording that was ended while it wrote
        row = _row(file, line, text, separator, strangers)
        if row is not None:
            rows.append(row)
    parts = [(p, elapsed) for found, elapsed in [*recordings, (rows, 0.0)] if found for p in _apart(file, found)]
    if not parts:
        if other := _other_tool([f.lower() for _, text in told[:9] for f in _split(text)]):
            raise HostnetError(f"{file}: holds none of the events that are needed{other}.")
        found = next((s for s in strangers if re.match(r"[A-Za-z_]", s)), None)
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
    sums, of_sockets = _Sums(), {name: _Sums() for name in _name_sockets(parts)}
    for part, elapsed in parts:
        spans = _spans(file, part, seconds, elapsed, sums)
        intervals: dict[float | None, list[_Row]] = {stamp: [] for stamp in spans}
        for row in part:
            if row.stamp in intervals and row.name != "duration_time":
                intervals[row.stamp].append(row)
        for stamp, rows in intervals.items():
            sums.add(file, rows, spans[stamp])
            for name, of_socket in of_sockets.items():
                if own := [row for row in rows if row.socket == name]:
                    of_socket.add(file, own, spans[stamp])
    return sums.recording(
        file, machine, {name: s.recording(file, machine) for name, s in of_sockets.items() if s.totals}
    )


def _name_sockets(parts: list[tuple[list[_Row], float]]) -> list[str]:
    """Gives each row the socket of its scope, and returns the names of the sockets where there are several.

    Nodes count as sockets. Of CPUs, perf counts the events of a socket's uncore on the socket's first one.
    """
    rows = [row for part, _ in parts for row in part if row.name != "duration_time"]
    firsts = sorted({int(m[1]) for row in rows if (m := _CPU.match(row.scope)) and not _of_core(row.name)})
    apart = {b - a for a, b in zip(firsts, firsts[1:])}
    step = apart.pop() if len(apart) == 1 else 0
    for row in rows:
        if m := re.match(r"[SN]\d+", row.scope):
            row.socket = m[0]
        elif step and (m := _CPU.match(row.scope)):
            row.socket = f"S{int(m[1]) // step % len(firsts)}"
    names = sorted({row.socket for row in rows if row.socket}, key=lambda name: int(name[1:]))
    return names if len(names) > 1 else []


class _Sums:
    """Counts of each event over the intervals in which all of its units were counted."""

    def __init__(self) -> None:
        self.totals: dict[str, float] = {}
        self.times: dict[str, float] = {}
        self.lost: dict[str, str] = {}
        self.rare: dict[str, float] = {}
        self.cores: dict[str, float] = {}
        self.notes: dict[str, None] = {}

    def add(self, file: str, rows: list[_Row], span: float) -> None:
        """Add the rows of one interval, which is ``span`` seconds long."""
        here: dict[str, float] = {}
        missing = set()
        for row, weight in self._chosen(rows):
            name = row.name
            if row.count in _MISSING:
                hint = (
                    "record fewer events at once, or longer"
                    if row.count == "<not counted>"
                    else "this processor, or its kernel, has no such event"
                )
                self.lost.setdefault(name, f"line {row.line}: `{row.event}` was {row.count[1:-1]}; {hint}")
                missing.add(name)
                continue
            value = _lines(file, row) * weight
            here[name] = here.get(name, 0.0) + value
            if row.share is not None and row.share < _RARE:
                self.rare[name] = min(row.share, self.rare.get(name, 100.0))
            if _CORE.match(row.scope) and name in _LFB:
                self.cores[row.scope] = self.cores.get(row.scope, 0.0) + value
        for name, value in here.items():
            if name not in missing:
                self.totals[name] = self.totals.get(name, 0.0) + value
                self.times[name] = self.times.get(name, 0.0) + span

    def _chosen(self, rows: list[_Row]) -> list[tuple[_Row, float]]:
        """Rows of one interval with their weights: those of single units and privilege levels only where the file has no
        sum, and the mean of a core's counts where the event was listed more than once."""
        groups: dict[tuple[str, str], list[_Row]] = {}
        for row in rows:
            groups.setdefault((row.scope, row.name), []).append(row)
        chosen = []
        for (_, name), group in groups.items():
            for part in ("box", "mode"):
                whole = [r for r in group if not getattr(r, part)]
                group = whole or group
            self._limited(name, {row.mode for row in group})
            again: dict[tuple[str, str], int] = {}
            for row in group:
                again[row.box, row.mode] = again.get((row.box, row.mode), 0) + 1
            core = all(BY_NAME[event].pmu == "core" for event in _events_of(name))
            for row in group:
                n = again[row.box, row.mode]
                if n > 1:
                    how = "their mean is taken" if core else "they are added, as counts of several units"
                    self.notes[f"`{name}` was counted {n} times at once; {how}"] = None
                chosen.append((row, 1 / n if core else 1.0))
        return chosen

    def _limited(self, name: str, modes: set[str]) -> None:
        """Note what is missing of an event that was counted with the limits ``modes`` alone."""
        counted = set().union(*modes)
        for modifier, (other, where) in _LIMITS.items():
            if modifier in counted and other not in counted:
                self.notes[
                    f"`{name}` was counted {where} alone (:{modifier}), and what happened elsewhere is missing; record it "
                    "without the modifier, as root where perf adds it by itself"
                ] = None

    def recording(
        self, file: str, machine: Mapping[str, float], parts: Mapping[str, Recording] | None = None
    ) -> Recording:
        """The rates, with what is to be said about them, and the recordings of single sockets."""
        rates = {name: total / self.times[name] for name, total in self.totals.items()}
        lost = {name: why for name, why in self.lost.items() if name not in rates}
        if not rates and lost:
            raise HostnetError(f"{file}: {next(iter(lost.values()))}.")
        found_rates, found_lost = _canonical(rates, lost)
        notes = [
            *(
                f"`{n}` was counted for {share:.3g} % of the time and scaled, so it is an estimate"
                for n, share in self.rare.items()
            ),
            *(f"{why}; other times count" for name, why in self.lost.items() if name in rates),
            *self.notes,
        ]
        return Recording(
            file,
            found_rates,
            found_lost,
            tuple(notes),
            machine,
            _busy(self.cores),
            any(_CPU.match(scope) for scope in self.cores),
            max(len(parts or ()), 1),
            parts or {},
            _processor({*rates, *lost}),
            later_processors({*rates, *lost}),
        )


def _busy(cores: Mapping[str, float]) -> int | None:
    """The number of cores that held line fill buffers, of the occupancies of all; None where none is known."""
    busiest = max(cores.values(), default=0.0)
    return sum(v > 0.05 * busiest for v in cores.values()) if busiest else None


def _row(file: str, line: int, text: str, separator: str | None, strangers: list[str]) -> _Row | None:
    """The count in a line of `perf stat`; None for a line of another event, whose name goes to ``strangers``."""
    if text.lstrip().startswith("{"):
        return _of_json(file, line, text, strangers)
    fields = _split(text, separator)
    if len(fields) < 3:
        return _of_people(line, text)
    at = next((i for i, f in enumerate(fields) if i >= 2 and _wanted(f)), None)
    if at is None:
        if (row := _of_people(line, text)) is not None:
            return row
        strangers += fields[2:3]
        return None
    # [seconds,][scope,[units,]]count,unit of the count,event,[control group,][deviation,]run time,share of the time
    before, after = fields[: at - 2], fields[at + 1 :]
    row = _Row(line, fields[at], fields[at - 2], fields[at - 1])
    if before and re.fullmatch(r"\d+[.,]\d+", before[0]):
        row.stamp = float(before[0].replace(",", "."))
        before = before[1:]
    if before and before[0] == "summary":  # of the intervals above this line
        row.stamp, before = None, before[1:]
    if before and _SCOPE.match(before[0]):
        row.scope = before[0]
        before = before[2:] if len(before) > 1 and before[1].isdigit() else before[1:]
    if before:
        raise HostnetError(
            f"{file}: line {line}: `{','.join(fields[: at + 1])}` has more fields than perf writes; where the locale's decimal "
            "mark is a comma, record with LC_ALL=C, or with -x ';'."
        )
    if after and re.match(r"[^\d\s<]", after[0]):
        row.scope = f"{row.scope} {after[0]}".strip()
    ran = next((i for i, f in enumerate(after[:3]) if f.isdigit()), len(after))
    if ran + 1 < len(after) and (share := _figure(after[ran + 1])) is not None and share <= 100:
        row.share = share
    return row


def _wanted(field: str) -> bool:
    name = _name(field)[0]
    return name == "duration_time" or _known(name)


def _of_json(file: str, line: int, text: str, strangers: list[str]) -> _Row | None:
    text = text.strip().rstrip(",")
    try:
        try:
            found = json.loads(text)
        except ValueError:  # a locale's decimal comma, and printf's nan
            text = re.sub(r"(:\s*-?\d+),(\d+\s*[,}])", r"\1.\2", text)
            found = json.loads(re.sub(r":\s*-?(?:nan|inf)\b", ": null", text))
    except (ValueError, RecursionError):
        raise HostnetError(f"{file}: line {line}: is not JSON as `perf stat -j` writes it.") from None
    event = str(found.get("event", ""))
    if not _wanted(event):
        strangers += [event]
        return None

    def number(key: str) -> float | None:
        return _of_value(file, line, event, key, found.get(key))

    scopes = ("core", "cache", "cluster", "die", "socket", "node", "thread", "cgroup")
    scope = " ".join(str(found[k]) for k in scopes if found.get(k))
    scope = f"CPU{found['cpu']} {scope}".strip() if "cpu" in found else scope
    told = found.get("counter-value")
    count = told if isinstance(told, str) else number("counter-value")
    if count is None:
        raise HostnetError(f'{file}: line {line}: `{event}` has no number as its "counter-value".')
    return _Row(
        line,
        event,
        count if isinstance(count, str) else f"{count:.6f}",
        str(found.get("unit") or ""),
        number("interval"),
        scope,
        number("pcnt-running"),
    )


def _of_value(file: str, line: int, event: str, key: str, value: object) -> float | None:
    """The number that a JSON line has under ``key``, which may be a text; None where the line has none. Raises HostnetError
    for anything else."""
    if value is None:
        return None
    try:
        number = float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else -1.0
    except (ValueError, OverflowError):
        number = -1.0
    if not 0 <= number < float("inf"):
        raise HostnetError(f'{file}: line {line}: "{key}" of `{event}` is {_short(value)}, where a number is expected.')
    return number


def _short(value: object) -> str:
    """A JSON value as text, of which no more is shown than a sentence has room for."""
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:40]} ..."


def _of_people(line: int, text: str) -> _Row | None:
    m = _PLAIN.match(text)
    if m is None or not _wanted(m["event"]):
        return None
    stamp = float(m["stamp"].strip().replace(",", ".")) if m["stamp"] else None
    scope = " ".join([*(m["scope"] or "").split()[:1], *([m["group"]] if m["group"] else [])])
    share = _figure(m["share"]) if m["share"] else None
    return _Row(line, m["event"], m["count"].strip(), m["unit"] or "", stamp, scope, share, grouped=True)


def _apart(file: str, rows: list[_Row]) -> list[list[_Row]]:
    """The recordings that `perf stat --append` put into one file: time stamps that begin again, or a second duration.
    Raises HostnetError where a duration lies between the events of two recordings."""
    intervals = [r for r in rows if r.stamp is not None]
    if intervals:  # what has no time stamp is the sum of the intervals, which `perf stat --summary` adds
        parts: list[list[_Row]] = [[]]
        latest = 0.0
        for row in intervals:
            stamp = row.stamp or 0.0
            if stamp < latest:
                parts.append([])
            latest = stamp
            parts[-1].append(row)
        return parts
    durations = [(r.scope, i) for i, r in enumerate(rows) if r.name == "duration_time"]
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
        if row.name == "duration_time":
            if row.scope in seen:
                found.append([])
                seen = set()
            seen.add(row.scope)
        found[-1].append(row)
    return found


def _spans(
    file: str, rows: list[_Row], seconds: float | None, elapsed: float, sums: _Sums
) -> dict[float | None, float]:
    """Seconds that each interval lasted, by its time stamp, or the whole recording under None. Intervals at the ends
    of which a cut file lacks rows are left out. Raises HostnetError where the file does not tell."""
    longest: dict[float | None, float] = {}
    for row in rows:
        if row.name == "duration_time" and row.count not in _MISSING:
            if row.unit not in _NS:
                raise HostnetError(
                    f"{file}: line {row.line}: duration_time has the unit {row.unit!r}, which is no time."
                )
            s = _number(file, row.line, "duration_time", row.count, row.grouped) * _NS[row.unit] / 1e9
            longest[row.stamp] = max(longest.get(row.stamp, 0.0), s)
    held: dict[float | None, int] = {}
    for row in rows:
        held[row.stamp] = held.get(row.stamp, 0) + 1
    stamps = [s for s in held if s is not None]
    if not stamps:
        whole = seconds or longest.get(None) or elapsed
        if not whole:
            raise HostnetError(
                f"{file}: says nothing about how long it was recorded; add the event duration_time or give --seconds."
            )
        return {None: whole}
    lengths = [b - a for a, b in zip([0.0, *stamps], stamps)]
    between = sorted(lengths[1:-1])
    if between and lengths[0] > 1.5 * between[-1] and stamps[0] not in longest:
        lengths[0] = between[len(between) // 2]
        sums.notes[f"the first interval ends at {stamps[0]:.9g} s; it is taken to be as long as the others"] = None
    spans: dict[float | None, float] = {s: longest.get(s, length) for s, length in zip(stamps, lengths)}
    if seconds:
        spans = {s: length * seconds / sum(spans.values()) for s, length in spans.items()}
    for end, beside in ((stamps[-1], stamps[-2:][0]), (stamps[0], stamps[:2][-1])):
        if held[end] < held[beside] and len(spans) > 1:
            del spans[end]
            sums.notes[f"the interval at {end:.9g} s lacks rows and is left out"] = None
    return spans


def _lines(file: str, row: _Row) -> float:
    """A count in lines; perf converts counts of lines to bytes, which this function reverses."""
    value = _number(file, row.line, row.event, row.count, row.grouped)
    if not row.unit:
        return value
    if row.unit in _BYTES and row.name in _OF_LINES:
        return value * _BYTES[row.unit] / 64
    raise HostnetError(
        f"{file}: line {row.line}: `{row.event}` has the unit {row.unit!r}, in which it cannot be read; record the bare event, "
        "as `hostnet explain --template perf` does."
    )


def _parts_of(event: str) -> list[str]:
    return [n for n, names in VENDOR.items() if event in names] + list(BY_NAME[event].aliases)


def _events_of(name: str) -> tuple[str, ...]:
    return VENDOR.get(name) or (BY_NAME[name].name,)


def _of_core(name: str) -> bool:
    return all(BY_NAME[event].pmu == "core" for event in _events_of(name))


_OF_LINES = {"cas_read", "cas_write", *_parts_of("cas_read"), *_parts_of("cas_write")}
_LFB = {"lfb_occupancy", *_parts_of("lfb_occupancy")}


_PAIRS = {
    f"{stem}_{a}": f"{stem}_{b}"
    for stem in ("drd", "wbmtoi", "itom", "rdcur")
    for a, b in (("occupancy", "inserts"), ("inserts", "occupancy"))
}


def _kind(parts: list[str]) -> str:
    """The kind of request that a CHA's event counts: `ia_drd` of ``unc_cha_tor_inserts.ia_drd``."""
    return parts[0].rpartition(".")[2]


def _kinds(event: str, rates: Mapping[str, float]) -> dict[str, str]:
    """The recorded alternatives of a CHA's event, by what they count."""
    return {_kind(parts): parts[0] for parts in SUMS.get(event, []) if parts[0] in rates}


def _processor(named: set[str]) -> str:
    """The key of the processor whose names of events most of ``named`` are; empty where most are those of `events.EVENTS`."""
    of = {key: sum(p in named for parts in listed.values() for p in parts) for key, (_, listed) in PROCESSORS.items()}
    best = max(of, key=lambda key: of[key])
    return best if of[best] > sum(n in BY_NAME for n in named) else ""


def _marks(parts: list[str]) -> set[str]:
    """Events that only the processor has whose list has a part that no other has."""
    return {n for p in parts for n in OWN.get(p, ())}


def _canonical(rates: Mapping[str, float], lost: Mapping[str, str]) -> tuple[dict[str, float], dict[str, str]]:
    """Rates under the names of `events.EVENTS`. An event that is a sum on some processor has a rate only when every
    part was recorded."""
    found: dict[str, float] = {}
    gone: dict[str, str] = {}
    for name, value in rates.items():
        if name in BY_NAME and name not in VENDOR:
            found[BY_NAME[name].name] = value
    named = {*rates, *lost}
    for event, alternatives in SUMS.items():
        complete = [parts for parts in alternatives if all(p in rates for p in parts)]
        for parts in alternatives:
            absent = next((p for p in parts if p not in rates), None)
            if len(parts) > 1 and absent is not None and any(p in named for p in parts):
                gone.setdefault(
                    event,
                    lost.get(absent) or f"`{event}` is the sum of {len(parts)} events, of which `{absent}` is missing",
                )
                if named & _marks(parts):  # of this processor, a part is not the whole
                    complete = [c for c in complete if not set(c) < set(parts)]
        # A latency is an occupancy by inserts of the same requests.
        kinds = _kinds(_PAIRS.get(event, ""), rates)
        if kinds and any(_kind(c) for c in complete):
            fitting = [c for c in complete if _kind(c) in kinds]
            if not fitting:
                gone[event] = f"`{complete[0][0]}` and `{next(iter(kinds.values()))}` count different requests"
            complete = fitting
        if complete and event not in found:
            found[event] = sum(rates[p] for p in max(reversed(complete), key=len))
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


@dataclass
class _Table:
    """Rows of PCM under one header. The header has the columns' ``names``, and ``above`` says which part of the machine each
    is of. Both are empty in a file without a header; ``line`` is that of the names."""

    names: list[str]
    above: list[str]
    line: int
    rows: list[tuple[int, list[str]]] = field(default_factory=list)


def _heads_pcm(fields: list[str]) -> bool:
    """Whether a line without a date is one of a header of PCM."""
    named = [f.lower() for f in fields[:2]] == ["date", "time"]
    return named or (not fields[0] and any(_SOCKET_OF_PCM.match(f) for f in fields))


def _tables(rows: list[tuple[int, list[str]]]) -> list[_Table]:
    """The rows of a file of PCM by their header, of which files that were joined have several."""
    found: list[_Table] = []
    head: list[tuple[int, list[str]]] = []
    for line, fields in rows:
        if not _DATE.match(fields[0]):
            head.append((line, fields))
            continue
        at = next((i for i, (_, f) in enumerate(head) if f[0].lower() == "date"), None)
        if at is not None or not found:
            above = _columns_of([f for _, f in head[:at]])
            found.append(_Table([] if at is None else _stripped(head[at][1]), above, 0 if at is None else head[at][0]))
        head = []
        found[-1].rows.append((line, fields))
    return found


def _surplus(file: str, line: int, fields: int, wanted: int) -> HostnetError:
    return HostnetError(
        f"{file}: line {line}: has {fields} fields where {wanted} belong, so that nothing tells the column of each; the likely "
        "cause is a decimal comma, or a comma that groups digits, between commas: record with LC_ALL=C."
    )


def _fitting(file: str, t: _Table) -> list[tuple[int, list[str]]]:
    """The rows of ``t``, without the counts of those that lack fields, such as the last one of a PCM that was killed. Raises
    HostnetError for a row with more fields than the header, and where every row has fewer."""
    n = len(t.names)
    found = []
    for k, (line, fields) in enumerate(t.rows):
        if (columns := len(_stripped(fields))) > n:
            raise _surplus(file, line, columns, n)
        # A row that ends without the others' last comma was cut in its last number.
        cut = k > 0 and k == len(t.rows) - 1 and len(fields) < len(t.rows[k - 1][1])
        if len(fields) > 2:  # of less, not even the time is whole
            found.append((line, fields[:3] if cut or len(fields) < n else fields))
    if all(len(fields) < n for _, fields in t.rows):
        line, fields = t.rows[0]
        raise HostnetError(
            f"{file}: line {line}: has {len(fields)} fields and its header, line {t.line}, {n}; no row has them all, so that "
            "nothing tells the column of each."
        )
    return found


def _pcm(file: str, rows: list[tuple[int, list[str]]], seconds: float | None) -> Recording:
    tables = _tables(rows)
    names, above = tables[0].names, tables[0].above
    sockets = {m[1] for f in (*above, *names) if (m := _SOCKET_OF_PCM.match(f))}
    lower = [f.lower() for f in names]
    memory = any(f.endswith(_MEMORY[0][1]) for f in lower)
    if memory or {"read", "write", "exec"} <= set(lower):
        if other := next((t for t in tables if (t.names, t.above) != (names, above)), None):
            raise HostnetError(
                f"{file}: the header of line {other.line} has other columns than that of line {tables[0].line}; explain each "
                "recording by itself."
            )
        recordings = [_fitting(file, t) for t in tables]
        if memory:
            return _pcm_memory(file, [row for part in recordings for row in part], lower, len(sockets))
        return _pcm_main(file, recordings, lower, above, seconds)
    if lower[2:3] == ["ms"]:
        labelled = [row for t in tables for row in _pcm_transposed(_fitting(file, t), t.names, t.above)]
    else:
        labelled = _pcm_labelled(file, rows)
    counted: dict[str, list[_Units]] = {}
    for line, fields, labels in labelled:
        name = _name(fields[2])[0] if len(fields) > 2 else ""
        if not _known(name):
            continue
        if len(fields) < 6:
            raise HostnetError(f"{file}: line {line}: `{fields[2]}` has no counts; record with pcm-raw -tr -csv.")
        values = [_pcm_number(file, line, fields[2], f, whole=True) for f in (fields[3], *fields[5:])]
        units = [*labels[5:], *[""] * len(values)]
        timed = [(unit, v) for unit, v in zip(units, values[1:]) if v is not None and values[0] is not None]
        counted.setdefault(name, []).append(_Units(f"{fields[0]} {fields[1]}", values[0] or 0.0, timed))
    notes = []
    for name, found in counted.items():
        counts_at = dict.fromkeys((row.when for row in found), 0)
        for row in found:
            counts_at[row.when] += len(row.counts)
        whole = {when for when, n in counts_at.items() if n == max(counts_at.values())}
        if len(whole) < len(counts_at):
            lacking = len(counts_at) - len(whole)
            notes.append(f"`{name}` lacks counts of some units in {lacking} intervals, which are left out")
            counted[name] = [row for row in found if row.when in whole]
    if not counted:
        raise HostnetError(
            f"{file}: holds none of the events that are needed{_other_tool(lower)}; `hostnet explain --template pcm` "
            "records them."
        )
    spans = {name: sum(dict((row.when, row.ms) for row in found).values()) for name, found in counted.items()}
    for name, span in spans.items():
        if not span:
            raise HostnetError(f"{file}: `{name}` was recorded for 0 milliseconds.")
        if len({row.when for row in counted[name]}) < len(counted[name]):
            notes.append(f"`{name}` has several rows a time, which are added")
    known = {s for found in counted.values() for row in found for unit, _ in row.counts if (s := _socket_of(unit))}
    parts = {s: _pcm_recording(file, counted, spans, s, notes) for s in sorted(known) if len(known) > 1}
    return _pcm_recording(file, counted, spans, "", notes, max(len(sockets), len(known), 1), parts)


_SOCKET_OF_PCM = re.compile(r"(?:SKT|Socket ?)_?(\d+)")


def _columns_of(head: list[list[str]]) -> list[str]:
    """The part of the machine that each column is of, such as ``System`` or ``SKT0``, from the line above the columns' names.

    Older versions of PCM name the first column of each part alone.
    """
    above = next((fields for fields in reversed(head) if len(fields) > 2), [])
    found: list[str] = []
    for name in above:
        found.append(name or (found[-1] if found else ""))
    return found


@dataclass
class _Units:
    """The counts of one event in one interval of ``ms`` milliseconds, each with the name of its unit, such as ``SKT0CHAN1``."""

    when: str
    ms: float
    counts: list[tuple[str, float]]


def _socket_of(unit: str) -> str:
    """The socket in the name of a unit, or nothing."""
    return f"S{m[1]}" if (m := re.match(r"SKT_?(\d+)", unit)) else ""


def _pcm_recording(
    file: str,
    counted: Mapping[str, list[_Units]],
    spans: Mapping[str, float],
    socket: str,
    notes: list[str],
    sockets: int = 1,
    parts: Mapping[str, Recording] | None = None,
) -> Recording:
    """The recording of one socket, or of all without a ``socket``."""
    rates, cores = {}, dict[str, float]()
    for name, found in counted.items():
        own = [(unit, v) for row in found for unit, v in row.counts if not socket or _socket_of(unit) == socket]
        if own:
            rates[name] = sum(v for _, v in own) * 1e3 / spans[name]
        for unit, v in own if name in _LFB else ():
            if "CORE" in unit:
                cores[unit] = cores.get(unit, 0.0) + v
    known, lost = _canonical(rates, {})
    names = set(rates)
    return Recording(
        file,
        known,
        lost,
        tuple(notes),
        {},
        _busy(cores),
        True,  # PCM's cores are those of the operating system
        sockets,
        parts or {},
        _processor(names),
        later_processors(names),
    )


def _pcm_labelled(file: str, rows: list[tuple[int, list[str]]]) -> list[tuple[int, list[str], list[str]]]:
    """Rows of events, each with the header above it that names the units of as many columns. Raises HostnetError for a row
    with more fields than any header above it, or than other rows of its event where there is none."""
    found, headers, after_data = [], list[list[str]](), False
    bare: dict[str, list[tuple[int, int]]] = {}
    under: list[tuple[int, int]] = []
    for line, fields in rows:
        if _DATE.match(fields[0]):
            columns = len(_stripped(fields))
            found.append((line, fields, next((h for h in reversed(headers) if len(h) == columns), [])))
            after_data = True
            if len(fields) > 2 and _known(name := _name(fields[2])[0]):
                (under if headers else bare.setdefault(name, [])).append((line, columns))
        elif any(_socket_of(f) for f in fields):
            if after_data:
                _check_widths(file, under, headers)
                under = []
            headers = [*([] if after_data else headers), _stripped(fields)]
            after_data = False
    _check_widths(file, under, headers)
    for widths in bare.values():
        modes = sorted(multimode(columns for _, columns in widths))
        cut = found[-1][0] == widths[-1][0] and widths[-1][1] == modes[0]  # the last row of a PCM that was killed
        usual = modes[-1] if cut else modes[0]
        for line, columns in widths:
            if columns > usual:
                raise _surplus(file, line, columns, usual)
    return found


def _check_widths(file: str, widths: list[tuple[int, int]], headers: list[list[str]]) -> None:
    """Raises HostnetError where a row, of which ``widths`` has line and number of fields, has more fields than each of the
    headers above it, and where no row has as many as one of them."""
    wanted = max((len(h) for h in headers), default=0)
    for line, columns in widths:
        if columns > wanted:
            raise _surplus(file, line, columns, wanted)
    if widths and not {columns for _, columns in widths} & {len(h) for h in headers}:
        line, columns = widths[0]
        raise HostnetError(
            f"{file}: line {line}: has {columns} fields and its header {wanted}; no row has them all, so that nothing tells "
            "the unit of each."
        )


def _stripped(fields: list[str]) -> list[str]:
    """The fields up to the last one that is not empty."""
    return fields[: max((i for i, f in enumerate(fields, 1) if f), default=0)]


# Tools whose files hold no occupancies: name, a column that only they write, and what they count.
_OTHERS = (
    ("pcm-iio", "ib write", "bytes of each PCIe port and no occupancies"),
    ("pcm-pcie", "itom", "requests of devices and no occupancies"),
)
_MEMORY = (("cas_read", "mem read (mb/s)"), ("cas_write", "mem write (mb/s)"))


def _other_tool(names: list[str]) -> str:
    """Counts that a file of another tool of PCM holds, in words; its columns are ``names``."""
    return next((f"; {tool} counts {what}" for tool, mark, what in _OTHERS if mark in names), "")


def _pcm_number(file: str, line: int, event: str, text: str, whole: bool = False) -> float | None:
    """A number in PCM's notation; None where PCM has no count. ``whole`` numbers are those of pcm-raw, which groups their
    digits with `-l`."""
    if text.strip("- ").lower() in ("", "n/a", "nan", "inf"):
        return None
    return _number(file, line, event, text, grouped=whole)


def _pcm_transposed(
    data: list[tuple[int, list[str]]], names: list[str], above: list[str]
) -> list[tuple[int, list[str], list[str]]]:
    """Rows of pcm-raw without ``-tr``, one for all events, as rows of single events and the names of their units."""
    columns: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        if i > 2 and _known(_name(name)[0]):
            columns.setdefault(name, []).append(i)
    return [
        (
            line,
            [*f[:2], name, f[2], "", *(f[i] if i < len(f) else "" for i in at)],
            [*[""] * 5, *(above[i] if i < len(above) else "" for i in at)],
        )
        for line, f in data
        for name, at in columns.items()
        if len(f) > 2
    ]


def _pcm_rows(
    file: str, data: list[tuple[int, list[str]]], columns: list[list[int]], names: list[str]
) -> tuple[list[tuple[str, list[float] | None]], list[str]]:
    """The time of each row with its sum over each list of columns, which is None where a number is missing, and a note
    on such rows. Raises HostnetError where no row is complete."""
    found = list[tuple[str, list[float] | None]]()
    for line, f in data:
        values = [[_pcm_number(file, line, names[i], f[i]) if i < len(f) else None for i in at] for at in columns]
        whole = not any(v is None for group in values for v in group)
        found.append((f[1], [sum(v or 0.0 for v in group) for group in values] if whole else None))
    short = sum(sums is None for _, sums in found)
    if short == len(found):
        raise HostnetError(
            f"{file}: no row has a number in each of the columns {', '.join(names[at[0]] for at in columns)}."
        )
    return found, [f"{short} rows lack numbers and are left out"] if short else []


def _pcm_memory(file: str, data: list[tuple[int, list[str]]], names: list[str], sockets: int) -> Recording:
    """The bandwidths that `pcm-memory -csv` writes, in lines, over all sockets."""
    columns = [[i for i, n in enumerate(names) if n.endswith(column)] for _, column in _MEMORY]
    if lacks := next((column for (_, column), at in zip(_MEMORY, columns) if not at), None):
        raise HostnetError(f"{file}: has no column `{lacks}`, which `pcm-memory -csv` writes for each socket.")
    found, notes = _pcm_rows(file, data, columns, names)
    whole = [sums for _, sums in found if sums is not None]
    rates = {event: sum(sums[k] for sums in whole) / len(whole) * 1e6 / 64 for k, (event, _) in enumerate(_MEMORY)}
    return Recording(file, rates, {}, ("pcm-memory records bandwidth alone", *notes), sockets=max(sockets, 1))


def _clock(file: str, text: str) -> float:
    """Seconds since midnight at the time ``text`` of a row."""
    m = re.fullmatch(r"(\d{1,2}):(\d{2}):(\d{2}(?:[.,]\d+)?)", text)
    if not m:
        raise HostnetError(f"{file}: the time {text!r} of a row is not of the form 14:03:59.250; give --seconds.")
    return int(m[1]) * 3600 + int(m[2]) * 60 + float(m[3].replace(",", "."))


def _pcm_main(
    file: str, data: list[list[tuple[int, list[str]]]], names: list[str], above: list[str], seconds: float | None
) -> Recording:
    """The traffic that `pcm -csv` writes: GB in each interval, of the system, or of all sockets where the file has none of
    the system. Intervals are those between the times of the rows of one recording, of which ``data`` has each by itself."""
    columns, sockets = _pcm_traffic(file, names, above)
    found, notes = _pcm_rows(file, [row for part in data for row in part], columns, names)
    if seconds is None:
        at = [_clock(file, time) for time, _ in found]
        first = [k == 0 for part in data for k in range(len(part))]  # nothing tells how long the first rows lasted
        lengths = [(b - a) % 86400 for a, b, begins in zip(at, at[1:], first[1:]) if not begins]
        if not any(lengths):
            same = "one row" if len(found) == 1 else "rows of one time only"
            raise HostnetError(f"{file}: has {same}, and nothing tells how long they lasted; give --seconds.")
        found = [row for row, begins in zip(found, first) if not begins]
    else:
        lengths = [seconds / len(found)] * len(found)
    whole = [(sums, length) for (_, sums), length in zip(found, lengths) if sums is not None]
    counted = sum(length for _, length in whole)
    if not counted:
        raise HostnetError(
            f"{file}: only the first row has numbers, and nothing tells how long it lasted; give --seconds."
        )
    rates = {
        event: sum(sums[k] for sums, _ in whole) * 1e9 / 64 / counted
        for k, event in enumerate(("cas_read", "cas_write"))
    }
    return Recording(file, rates, {}, ("pcm records bandwidth alone", *notes), sockets=sockets)


def _pcm_traffic(file: str, names: list[str], above: list[str]) -> tuple[list[list[int]], int]:
    """The columns of reads and those of writes that add up to the traffic of the whole host, and its number of sockets. Raises
    HostnetError where the file does not say what each of several columns is of."""
    of = dict(enumerate(above))
    told = {m[1] for f in above if (m := _SOCKET_OF_PCM.match(f))}
    columns = []
    for name in ("read", "write"):
        at = [i for i, n in enumerate(names) if n == name]
        system = [i for i in at if of.get(i, "").startswith("System")]
        each = [i for i in at if _SOCKET_OF_PCM.match(of.get(i, ""))]
        if len(at) > 1 and not system and len(each) < len(at):
            raise HostnetError(
                f"{file}: has {len(at)} columns `{name.upper()}` without the line above them that says which is of the system and "
                "which of a socket; keep both of the header's lines."
            )
        columns.append(system or at)
    return columns, max(len(told), 1)
