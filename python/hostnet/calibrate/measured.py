"""Measurements of a machine, as `hostnet-measure` writes them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import _core
from .._toml import TEXT
from ..errors import HostnetError
from ..progress import Progress

#: Version of the JSON that this module reads.
FORMAT = 3
#: Loads of a simulated chase that are issued together: chases beside each other are simulated in divisors of it.
BATCH = 32
#: Experiments in the order in which they are measured, with their share of the time.
EXPERIMENTS = {
    "clock": 0.02,
    "hashes": 0.02,
    "latency": 0.43,
    "prefetchers": 0.03,
    "parallelism": 0.1,
    "loaded latency": 0.25,
    "bandwidth": 0.12,
    "core to core": 0.03,
}


@dataclass(frozen=True)
class Figure:
    """A measured figure: median, and the 10th and 90th percentile of the repetitions."""

    median: float
    low: float
    high: float
    repetitions: int = 1

    @property
    def spread(self) -> float:
        """Half of the distance between the percentiles, as a share of the median."""
        return (self.high - self.low) / 2 / self.median

    def text(self, unit: str, digits: int = 1) -> str:
        """The figure as provenance states it."""
        return (
            f"{self.median:.{digits}f} {unit} (10th to 90th percentile {self.low:.{digits}f} to "
            f"{self.high:.{digits}f}, {self.repetitions} repetitions)"
        )


@dataclass(frozen=True)
class Setting:
    """Work of a thread or of several: so many chases of each chasing thread, beside so many threads with streams."""

    curve: str
    chases: int = 0
    threads: int = 0
    stores: float = 0.0
    #: Hashes that a stream computes after each line.
    pause_hashes: int = 0
    order: str = "sequential"
    #: Threads that follow so many chases each, where there are any.
    chasers: int = 1
    #: Hashes that a core computes in a nanosecond, which say how fast it executes a stream's instructions; None where nothing
    #: of the kind was measured.
    hashes_per_ns: float | None = None

    @property
    def line(self) -> str:
        """The curve on which a plot shows the setting."""
        if self.curve == "parallelism":
            return "chases beside each other"
        what = {0.0: "loads", 1.0: "stores"}.get(self.stores, f"{self.stores:.0%} stores")
        many = f"{self.threads} thread{'s' * (self.threads > 1)}, "
        return f"{many}{what}" if self.curve == "loaded" else f"{self.order} {what}"


@dataclass(frozen=True)
class Point:
    """A setting with what was measured: time of a load of the chase, and memory traffic in GB/s; None where the setting has
    none."""

    setting: Setting
    ns: Figure | None
    gbs: Figure | None


@dataclass(frozen=True)
class Measured:
    """All measurements of a machine."""

    data: Mapping[str, Any]

    @property
    def machine(self) -> Mapping[str, Any]:
        """Facts that the machine states about itself."""
        found: Mapping[str, Any] = self.data["machine"]
        return found

    @property
    def cores(self) -> int:
        """Number of cores that took part."""
        return len(self.data["cpus"])

    @property
    def clock_ghz(self) -> Figure | None:
        """Clock of a busy core."""
        found = self.data["clock_ghz"]
        return None if found is None else figure(found)

    def latency(self, small: bool = False) -> list[tuple[int, Figure]]:
        """Size of a buffer and latency of a load, in pages of 4 KiB or in the largest pages that could be had."""
        return [
            (p["bytes"], figure(p["ns"])) for p in self.data["latency"] if small == (p is not None and _small(p, self))
        ]

    @property
    def sequential(self) -> Figure | None:
        """Latency of dependent loads of consecutive lines."""
        found = self.data["sequential"]
        return None if found is None else figure(found["ns"])

    def transfer(self, state: str) -> Figure | None:
        """Latency of a load of a line in another core's caches that is `modified` or `clean` there."""
        return next((figure(t["ns"]) for t in self.data["transfer"] if t["state"] == state), None)

    def points(self) -> list[Point]:
        """The points of all curves that can be simulated."""
        found = [
            Point(Setting("parallelism", chases=p["chases"], hashes_per_ns=_rate(self.data)), figure(p["ns"]), None)
            for p in self.data["parallelism"]
            if BATCH % p["chases"] == 0
        ]
        found += [
            Point(
                Setting("loaded", 1, p["threads"], p["stores"], p["pause_hashes"], "sequential", 1, _rate(p)),
                figure(p["ns"]),
                figure(p["gbs"]),
            )
            for p in self.data["loaded"]
        ]
        found += [
            Point(
                Setting("bandwidth", 0, p["threads"], p["stores"], 0, p["order"], 1, _rate(p)), None, figure(p["gbs"])
            )
            for p in self.data["bandwidth"]
            if p["order"] != "non_temporal"
        ]
        return found


def _rate(of: Mapping[str, Any]) -> float:
    """Hashes that a core computes in a nanosecond."""
    return figure(of["hashes_per_ns"]).median


def _small(point: Mapping[str, Any], of: Measured) -> bool:
    """Whether a point is one of those with small pages. Where no huge pages could be had, the second point of a size is."""
    if point["pages"] != "small":
        return False
    same = [p for p in of.data["latency"] if p["bytes"] == point["bytes"]]
    return any(p["pages"] != "small" for p in same) or (len(same) > 1 and same[-1] is point)


def figure(data: Mapping[str, Any]) -> Figure:
    """A figure as the JSON has it."""
    return Figure(data["median"], data["low"], data["high"], data["repetitions"])


def measure(quick: bool, quiet: bool = False) -> Measured:
    """Measure the machine that this process runs on. Raises HostnetError where the machine does not let itself be measured."""
    with Progress(quiet).stage("measuring", EXPERIMENTS, "experiments") as report:
        order, done = list(EXPERIMENTS), set[str]()

        def tell(what: str, share: float) -> None:
            for earlier in order[: order.index(what)]:
                if earlier not in done:
                    done.add(earlier)
                    report(earlier, 1.0)
            report(what, share)

        return parsed(_core.measure(quick, tell), "the measurements")


def read(path: Path) -> Measured:
    """Measurements from a file of `hostnet-measure` or of `hostnet calibrate --keep`. Raises HostnetError for any other."""
    return parsed(text_of(path), str(path))


def text_of(path: Path, option: str = "") -> str:
    """The text of a file. Raises HostnetError, after the `option` that named the file, where it has none."""
    try:
        return path.read_text(encoding=TEXT)
    except (OSError, UnicodeDecodeError) as e:
        why = getattr(e, "strerror", None) or "no text"
        raise HostnetError(f"{option} {path}: cannot be read ({why}).".lstrip()) from None


def parsed(text: str, where: str) -> Measured:
    """Measurements from JSON. Raises HostnetError that begins with `where`."""
    return Measured(checked(text, where, FORMAT, "hostnet-measure -o FILE", _fault))


def checked(
    text: str, where: str, wanted: int | str, writer: str, fault: Callable[[Mapping[str, Any]], str | None]
) -> Mapping[str, Any]:
    """The table that JSON of the `wanted` format has, as the command `writer` writes it. Raises HostnetError that begins with
    `where`."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise HostnetError(f"{where}: is no JSON; `{writer}` writes the measurements.") from None
    if not isinstance(data, dict) or "format" not in data:
        raise HostnetError(f"{where}: holds no measurements; `{writer}` writes them.")
    if data["format"] != wanted:
        raise HostnetError(
            f"{where}: format = {data['format']}, and this version of hostnet reads {wanted} here; `{writer}` writes it."
        )
    why = fault(data)
    if why is not None:
        raise HostnetError(f"{where}: {why}.")
    return data


_LISTS = {
    "latency": (("ns",), ("bytes", "pages")),
    "parallelism": (("ns",), ("chases",)),
    "bandwidth": (("gbs", "hashes_per_ns"), ("threads", "order", "stores")),
    "loaded": (("gbs", "ns", "hashes_per_ns"), ("threads", "stores", "pause_hashes")),
    "transfer": (("ns",), ("state",)),
}
_PLAIN = ("machine", "noise", "cpus", "clock_ghz", "hashes_per_ns", "sequential", "by", "quick")


def _fault(data: Mapping[str, Any]) -> str | None:
    """Fault of measurements; None when they have none."""
    lacking = next((k for k in (*_PLAIN, *_LISTS) if k not in data), None)
    if lacking is not None:
        return f"{lacking} is missing"
    for name, (figures, keys) in _LISTS.items():
        if not isinstance(data[name], list):
            return f"{name} is no list"
        for i, point in enumerate(data[name]):
            if not isinstance(point, dict) or not {*figures, *keys} <= point.keys():
                return f"{name}.{i} lacks one of {', '.join((*keys, *figures))}"
            bad = next((f for f in figures if not is_figure(point[f])), None)
            if bad is not None:
                return f"{name}.{i}.{bad} is no median above 0 with a spread"
    if not data["latency"] or not data["parallelism"]:
        return "latency or parallelism holds no point"
    if not is_figure(data["hashes_per_ns"]):
        return "hashes_per_ns is no median above 0 with a spread"
    clock = data["clock_ghz"]
    return "clock_ghz is no median above 0 with a spread" if clock is not None and not is_figure(clock) else None


def is_figure(value: Any) -> bool:
    """Whether a value of JSON is a figure: a median above 0 with its spread."""
    keys = ("median", "low", "high", "repetitions")
    return isinstance(value, dict) and all(
        isinstance(value.get(k), (int, float)) and math.isfinite(value[k]) and value[k] > 0 for k in keys
    )
