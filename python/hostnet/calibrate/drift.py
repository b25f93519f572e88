"""Drift of a machine since its platform was measured: the same figures again, against the values of its file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._toml import tomllib
from ..errors import HostnetError
from .hierarchy import levels
from .measured import Figure, Measured, text_of
from .transfer import MARK

_FIGURE = re.compile(r"([\d.]+) (ns|GHz) \(10th to 90th percentile ([\d.]+) to ([\d.]+), (\d+) repetitions\)")


@dataclass(frozen=True)
class Drift:
    """A figure that was measured then and now."""

    what: str
    unit: str
    then: Figure
    now: Figure

    @property
    def drifted(self) -> bool:
        """Whether the median has left the spread of then, and that of then the spread of now."""
        apart = self.now.median > self.then.high or self.now.median < self.then.low
        return apart and not self.now.low <= self.then.median <= self.now.high


#: Figures that provenance states, with the key that states them and their place among the figures of its sentence.
_KEYS = {
    "core clock": ("core.clock", 0),
    "L1": ("caches.l1d.latency_cycles", 0),
    "L2": ("caches.l2.latency_cycles", 0),
    "L3": ("caches.noc_cycles", 0),
    "line modified in another core": ("caches.noc_cycles", 1),
}


def drifts(path: Path, m: Measured) -> list[Drift]:
    """The figures that a calibrated platform's file states, then and now."""
    sources = sources_of(path, "--check")
    found = levels(m)
    now: dict[str, Figure | None] = {
        "core clock": m.clock_ghz,
        "line modified in another core": m.transfer("modified"),
        **{level: found.get(level) for level in ("L1", "L2", "L3")},
    }
    out = []
    for what, (key, place) in _KEYS.items():
        stated = _FIGURE.findall(sources.get(key, ""))
        again = now[what]
        if len(stated) > place and again is not None:
            value, unit, low, high, n = stated[place]
            out.append(Drift(what, unit, Figure(float(value), float(low), float(high), int(n)), again))
    if not out:
        raise HostnetError(
            f"{path}: states no measured figure; `hostnet calibrate -o FILE` writes a platform that does."
        )
    return out


def sources_of(path: Path, option: str) -> Mapping[str, str]:
    """Sources of the values of a calibrated platform. Raises HostnetError, after the `option` that named the file, for
    another one."""
    sources: Mapping[str, str] = calibrated(path, option).get("provenance", {})
    return sources


def calibrated(path: Path, option: str) -> dict[str, Any]:
    """Tables of a platform that `hostnet calibrate` wrote. Raises HostnetError, after the `option` that named the file, for
    another one."""
    text = text_of(path, option)
    try:
        tables: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as e:
        raise HostnetError(f"{option} {path}: is no TOML ({e}).") from None
    if not text.startswith(MARK):
        raise HostnetError(
            f"{option} {path}: is no platform that `hostnet calibrate` wrote; `hostnet calibrate -o here.toml` writes one."
        )
    return tables
