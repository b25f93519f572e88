"""Mixtures of chases and streams, and Redis beside streams, on the user's own machine: predicted by the platform that
`hostnet calibrate` made of it.

No value of such a platform follows from a mixture. Each mixture is simulated first. Then the machine is measured, or a file
is read that `hostnet-measure --mixtures` wrote on it.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ..calibrate import curves, mixtures, programs
from ..calibrate.drift import calibrated
from ..calibrate.machine import COMMAND
from ..calibrate.measured import Figure, Setting
from ..errors import HostnetError
from . import Point, Rows, Study, axes

#: The scenario that the points replace whole: tables of `curves.scenario`.
BASE = "loaded-latency"
#: How near is aimed for, by the median of the errors.
NEAR = 0.15
#: Why a stream that stores past the caches is not simulated.
PAST_CACHES = "streams that store past the caches"
#: Figures of a mixture with their units and names.
FIGURES = {"ns": ("ns", "time of a load"), "gbs": ("GB/s", "memory traffic")}
#: The same, with the ratio of a real program's time of a request to that without streams.
_EVERY = {**{name: unit for name, (unit, _) in FIGURES.items()}, "slowdown": ""}
ORDERS = {"sequential": "", "random": "random ", "non_temporal": "non-temporal "}


#: Columns beside those of the mixture, with their units.
UNITS = {
    f"{start}{name}{end}": unit
    for name, unit in _EVERY.items()
    for start, end in (("", ""), ("their_", ""), ("their_", "_low"), ("their_", "_high"))
} | {f"{name}_err_pct": "%" for name in _EVERY}

#: The columns that come first: simulated, measured, error.
SHOWN = tuple(f"{start}{name}{end}" for name in _EVERY for start, end in (("", ""), ("their_", ""), ("", "_err_pct")))


def columns(s: Setting) -> dict[str, Any]:
    """Columns of a mixture or a program; those of streams are empty without any."""
    beside = (s.order, 100 * s.stores) if s.threads else (None, None)
    what: dict[str, Any] = {"chasers": s.chasers, "chases": s.chases}
    if s.curve == programs.CURVE:
        what = {"program": programs.PROGRAM}
    return {**what, "streams": s.threads, "order": beside[0], "store_pct": beside[1]}


def setting(row: Mapping[str, Any]) -> Setting:
    """The mixture or the program of a row."""
    stores, order = (row["store_pct"] or 0.0) / 100, row["order"] or "sequential"
    if row.get("program") is not None:
        return Setting(programs.CURVE, 0, row["streams"], stores, 0, order)
    return Setting("mixture", row["chases"], row["streams"], stores, 0, order, row["chasers"])


def kind(row: Mapping[str, Any]) -> str:
    """The streams of a row in words, such as "random stores"."""
    if not row["streams"]:
        return "chases alone"
    what = {0.0: "loads", 100.0: "stores", 50.0: "half stores"}.get(row["store_pct"], f"{row['store_pct']:g} % stores")
    return ORDERS[row["order"]] + what


class Comparison:
    """A calibrated platform beside mixtures, which are measured once, when they are first asked for."""

    def __init__(self, path: Path, file: Path | None) -> None:
        option = f"--platform {path}"
        if path.suffix != ".toml":
            raise HostnetError(f"{option}: is no file; `{COMMAND} -o here.toml` writes one of this machine.")
        self.path = path.resolve()
        self.platform = calibrated(path, "--platform")
        if not any(s.startswith(f"measured: {COMMAND}") for s in self.platform.get("provenance", {}).values()):
            raise HostnetError(
                f"{option}: has no latency that was measured; `{COMMAND} -o here.toml` writes one that has."
            )
        self._file = None if file is None else mixtures.read(file, "--measured")
        self._quick = False

    def grid(self, quick: bool) -> list[Point]:
        """The mixtures of the file, or those that would be measured here."""
        self._quick = quick
        if self._file is None:
            settings = [*mixtures.planned(quick), *programs.settings()]
        else:
            settings = [p.setting for p in self._file.points()] + [p.setting for p in self._file.programs()]
        if not settings:
            raise HostnetError("real here: a mixture needs two cores, and this process may use one.")
        return [self._point(s) for s in settings]

    def _point(self, s: Setting) -> Point:
        if s.order == "non_temporal":
            return Point(BASE, columns(s), {}, needs=PAST_CACHES)
        made = programs.scenario if s.curve == programs.CURVE else curves.scenario
        return Point(BASE, columns(s), made(self.path, self.platform, s))

    def predicted(self, row: Mapping[str, Any]) -> curves.Simulated:
        """Simulated figures of a row."""
        if row.get("program") is not None:
            return curves.Simulated(1e3 / row["tenant.redis.throughput_mops"], None)
        executed = {name: row.get(f"tenant.{name}.instructions") or 0 for name in ("chase", "streams")}
        return curves.figures(executed, row["measure_us"], setting(row), self.platform)

    @cached_property
    def measured(self) -> mixtures.Mixtures:
        """The mixtures of the file, or of this machine."""
        return mixtures.measure(self._quick) if self._file is None else self._file

    def beside(self, rows: Rows) -> Sequence[Mapping[str, float | None]]:
        """Measured figures of each row with their spread, and the errors of the simulated ones."""
        known: dict[Setting, dict[str, Figure]] = {
            p.setting: {k: v for k, v in (("ns", p.ns), ("gbs", p.gbs)) if v is not None}
            for p in self.measured.points()
        }
        known |= {p.setting: {"ns": p.ns, "slowdown": p.slowdown} for p in self.measured.programs()}
        alone = next((r["ns"] for r in rows if r.get("program") is not None and not r["streams"]), None)
        found = []
        for r in rows:
            slowdown = None if r.get("program") is None or not alone else r["ns"] / alone
            compared: dict[str, float | None] = {"slowdown": slowdown}
            for name, ours in (("ns", r["ns"]), ("gbs", r["gbs"]), ("slowdown", slowdown)):
                compared |= _compared(name, ours, known[setting(r)].get(name))
            found.append(compared)
        return found

    def sentences(self, rows: Rows) -> Iterator[str]:
        """Median errors, and how quiet the machine was."""
        every = []
        for name, (_, title) in FIGURES.items():
            errors = [_error(name, r) for r in rows if r.get("program") is None and r[f"{name}_err_pct"] is not None]
            every += errors
            if errors:
                yield f"{title}: {_median(errors)}"
        yield f"both: {_median(every)}; the aim is {100 * NEAR:.0f} %"
        real = [r for r in rows if r.get("program") is not None]
        if real:
            yield (
                f"{programs.PROGRAM}: CPU time of a GET alone {real[0]['ns']:.0f} ns, measured {real[0]['their_ns']:.0f} ns; "
                f"slowdown by streams: {_median([_error('slowdown', r) for r in real if r['streams']])}"
            )
        yield from self.measured.said()

    def files(self) -> Mapping[str, str]:
        """The measurements, which `--measured` reads again."""
        return {"mixtures.json": json.dumps(dict(self.measured.data), indent=1) + "\n"}


def _compared(name: str, ours: float | None, theirs: Figure | None) -> dict[str, float | None]:
    if theirs is None:
        return dict.fromkeys((f"their_{name}", f"their_{name}_low", f"their_{name}_high", f"{name}_err_pct"))
    error = None if ours is None else 100 * (ours / theirs.median - 1)
    return {
        f"their_{name}": theirs.median,
        f"their_{name}_low": theirs.low,
        f"their_{name}_high": theirs.high,
        f"{name}_err_pct": error,
    }


def _error(name: str, row: Mapping[str, Any]) -> float:
    return abs(float(row[f"{name}_err_pct"]))


def _median(errors: Sequence[float]) -> str:
    near = sum(e <= 100 * NEAR for e in errors)
    return f"median error {statistics.median(errors):.1f} %, {near} of {len(errors)} within {100 * NEAR:.0f} %"


def of_file(path: Path, file: Path | None) -> Study:
    """The study of a calibrated platform. Raises HostnetError for another platform, and for a file without mixtures."""
    compared = Comparison(path, file)
    return replace(
        HERE,
        platform=str(path),
        grid=compared.grid,
        derived={
            "ns": lambda row: compared.predicted(row).ns,
            "gbs": lambda row: compared.predicted(row).gbs,
        },
        across=compared.beside,
        sentences=compared.sentences,
        files=compared.files,
    )


HERE = Study(
    "real",
    "here",
    "Mixtures on a machine of one's own, predicted by its calibrated platform",
    lambda quick: [],
    (*SHOWN, *(name for name in UNITS if name not in SHOWN)),
    derived_units=UNITS,
    axes=axes.AXES,
    # A window that a calibration has, too.
    precision=0.0,
    of_file=of_file,
)
STUDIES = [HERE]
