"""hostnet: what happens to a packet, and to everybody else's memory traffic, between the wire and the core.

import hostnet as hn
result = hn.run("kvs")
sc = hn.Scenario.load("kvs").with_({"placement.ways": 4})
frame = hn.sweep(sc, {"placement.ways": [2, 4, 6, 12]}, jobs=2)
table = hn.study("sweeper", "fig5").frame
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._processor import first

if TYPE_CHECKING:
    from .api import compare, explain, platform, platforms, plot, repeat, run, scenarios, study, sweep
    from .comparison import Comparison
    from .errors import HostnetError, NotBuiltYet, RunFailed, SpecError
    from .results import Result
    from .specs import Scenario, schema

__path__[:0] = first()  # where `_core` is looked for

# Imported on first use, so that `hostnet --help` and the worker processes start without the data-frame library.
_HOME = {
    "Scenario": "specs",
    "schema": "specs",
    "Result": "results",
    "HostnetError": "errors",
    "NotBuiltYet": "errors",
    "RunFailed": "errors",
    "SpecError": "errors",
    "Comparison": "comparison",
    "run": "api",
    "repeat": "api",
    "compare": "api",
    "plot": "api",
    "sweep": "api",
    "study": "api",
    "platform": "api",
    "platforms": "api",
    "scenarios": "api",
}
__all__ = [
    "Comparison",
    "HostnetError",
    "NotBuiltYet",
    "Result",
    "RunFailed",
    "Scenario",
    "SpecError",
    "compare",
    "explain",
    "platform",
    "platforms",
    "plot",
    "repeat",
    "run",
    "scenarios",
    "schema",
    "study",
    "sweep",
]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("hostnet")
    if name == "explain":  # a package that can be called
        from importlib import import_module

        return import_module(".explain", __name__)
    if name in _HOME:
        from importlib import import_module

        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module 'hostnet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
