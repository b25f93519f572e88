"""Platforms of the present machine: from its own measurements, or with the core-to-core latency of `ccnic-bench probe`."""

from __future__ import annotations

from .drift import Drift, drifts
from .fitting import Fit, fit
from .hierarchy import levels, notes
from .machine import choose_base, here, write_here
from .measured import Measured, measure, read
from .transfer import Calibration, calibrate, crossings, platform_tables, write_platform

__all__ = [
    "Calibration",
    "Drift",
    "Fit",
    "Measured",
    "calibrate",
    "choose_base",
    "crossings",
    "drifts",
    "fit",
    "here",
    "levels",
    "measure",
    "notes",
    "platform_tables",
    "read",
    "write_here",
    "write_platform",
]
