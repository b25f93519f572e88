"""Mixtures of chases and streams, as `hostnet-measure --mixtures` writes them, and a real program beside streams: a
calibration sees none of them, so that a calibrated platform predicts them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import _core
from ..progress import Progress
from . import programs
from .hierarchy import moved
from .measured import BATCH, Figure, Point, Setting, checked, figure, is_figure, text_of

#: Kind and version of the JSON that this module reads.
FORMAT = "mixtures 2"
#: Command that writes it.
WRITER = "hostnet-measure --mixtures -o FILE"
_ORDERS = ("sequential", "random", "non_temporal")


@dataclass(frozen=True)
class Program:
    """A real program: CPU time of a request, and its ratio to that without streams."""

    setting: Setting
    ns: Figure
    slowdown: Figure


@dataclass(frozen=True)
class Mixtures:
    """Measured mixtures of a machine."""

    data: Mapping[str, Any]

    def points(self) -> list[Point]:
        """The mixtures with what was measured of them."""
        return [
            Point(_setting(m), figure(m["ns"]), None if m["gbs"] is None else figure(m["gbs"]))
            for m in self.data["mixtures"]
        ]

    def programs(self) -> list[Program]:
        """Real programs beside streams; none where none was measured."""
        return [
            Program(
                Setting(programs.CURVE, 0, p["threads"], p["stores"], 0, p["order"]),
                figure(p["ns"]),
                figure(p["slowdown"]),
            )
            for p in self.data.get("programs", ())
        ]

    def said(self) -> Iterator[str]:
        """Sentences on the machine and on how quiet it was."""
        about, noise = self.data["machine"], self.data["noise"]
        many = len(self.data["cpus"])
        yield (
            f"measured on {many} core{'s' * (many != 1)} of {about['cpu'] or about['architecture']}, load average "
            f"{noise['load']:.1f}: other work took a CPU in {noise['disturbed']:.0%} of the repetitions, which do not count, "
            f"and the hypervisor gave others {noise['steal']:.0%} of the CPU time"
        )
        yield from moved(self.data)
        if "programs" not in self.data:
            yield f"no real program was measured: that needs {programs.PROGRAM} and two cores, and `hostnet-measure` runs none"


def _setting(m: Mapping[str, Any]) -> Setting:
    return Setting("mixture", m["chases"], m["threads"], m["stores"], 0, m["order"], m["chasers"])


def planned(quick: bool) -> list[Setting]:
    """The mixtures that `measure` would measure on this machine. Raises HostnetError where no machine can be measured."""
    return [_setting(m) for m in json.loads(_core.planned_mixtures(quick))]


def measure(quick: bool, quiet: bool = False) -> Mixtures:
    """Measure the mixtures of the machine that this process runs on. Raises HostnetError where it does not let itself be
    measured."""
    with Progress(quiet).stage("measuring", {"mixtures": 1.0}, "experiments") as report:
        found = parsed(_core.measure_mixtures(quick, report), "the measurements")
        if not programs.settings():
            return found
        return Mixtures({**found.data, "programs": programs.measure(found.data["cpus"], quick)})


def read(path: Path, option: str = "") -> Mixtures:
    """Mixtures from a file. Raises HostnetError, after the `option` that named the file, for any other."""
    return parsed(text_of(path, option), f"{option} {path}".lstrip())


def parsed(text: str, where: str) -> Mixtures:
    """Mixtures from JSON. Raises HostnetError that begins with `where`."""
    return Mixtures(checked(text, where, FORMAT, WRITER, _fault))


def _fault(data: Mapping[str, Any]) -> str | None:
    """Fault of measured mixtures; None when they have none."""
    lacking = next((k for k in ("machine", "noise", "cpus", "mixtures") if k not in data), None)
    if lacking is not None:
        return f"{lacking} is missing"
    if not isinstance(data["mixtures"], list) or not data["mixtures"]:
        return "mixtures is no list of at least one; a machine of one core has none"
    for i, m in enumerate(data["mixtures"]):
        why = _fault_of_one(m)
        if why is not None:
            return f"mixtures.{i}{why}"
    for i, p in enumerate(data.get("programs", ())):
        why = _fault_of_streams(p, ("program", "ns", "slowdown"))
        if why is None and not (is_figure(p["ns"]) and is_figure(p["slowdown"])):
            why = ".ns or .slowdown is no median above 0 with a spread"
        if why is not None:
            return f"programs.{i}{why}"
    return None


def _fault_of_streams(m: Any, beside: Sequence[str]) -> str | None:
    """Fault of what is said about streams, as it continues the name of its table; the table has the keys `beside`, too."""
    keys = (*beside, "threads", "order", "stores")
    if not isinstance(m, dict) or not m.keys() >= set(keys):
        return f" lacks one of {', '.join(keys)}"
    if type(m["threads"]) is not int or m["threads"] < 0:
        return f".threads = {m['threads']!r} is no number of threads"
    if m["order"] not in _ORDERS:
        return f".order = {m['order']!r} is none of {', '.join(_ORDERS)}"
    if type(m["stores"]) not in (int, float) or not 0 <= m["stores"] <= 1:
        return f".stores = {m['stores']!r} is not within 0 to 1"
    return None


def _fault_of_one(m: Any) -> str | None:
    """Fault of one mixture, as it continues its name."""
    why = _fault_of_streams(m, ("chasers", "chases", "ns", "gbs"))
    if why is not None:
        return why
    bad = next((k for k in ("chasers", "chases") if type(m[k]) is not int or m[k] < 1), None)
    if bad is not None:
        return f".{bad} = {m[bad]!r} is no number of threads or chases"
    if BATCH % m["chases"]:
        return f".chases = {m['chases']} is no divisor of {BATCH}, which alone can be simulated"
    if not is_figure(m["ns"]):
        return ".ns is no median above 0 with a spread"
    if (m["gbs"] is None) != (m["threads"] == 0) or not (m["gbs"] is None or is_figure(m["gbs"])):
        return ".gbs is no median above 0 with a spread, or null without streams"
    return None
