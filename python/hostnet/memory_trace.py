"""Memory traces for other simulators: the requests to DRAM in the measured window of a run."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from . import _core
from .errors import HostnetError
from .output import check_file, check_no_input
from .paths import file_named, nearest
from .progress import Progress
from .results import Result

if TYPE_CHECKING:
    from .api import AnyScenario


#: First characters of a trace in one of the formats, by which a later one knows its own.
MARKS = ("LD 0x", "ST 0x", "0x")


def check_format(format: str) -> None:
    """Refuse a format that the engine does not write."""
    known = _core.memory_trace_formats()
    if format not in known:
        raise HostnetError(f"--memory {format} is no format of a memory trace; {nearest(format, known)}")


def write(
    scenario: AnyScenario, path: str | os.PathLike[str], format: str = "ramulator2", *, quiet: bool = True
) -> Result:
    """Simulate one scenario and write the requests that its memory controllers accept in the measured window.

    ``format`` is "ramulator2" (lines of ``LD ADDRESS`` and ``ST ADDRESS`` for the frontend LoadStoreTrace) or "dramsim3"
    (lines of ``ADDRESS READ CYCLE`` and ``ADDRESS WRITE CYCLE``, in cycles of the DRAM clock from the start of the
    window). Raises SpecError for a search or a directed test, and HostnetError where the file cannot be written.
    """
    from .api import _inputs
    from .specs import Scenario

    check_format(format)
    scenario = Scenario.of(scenario)
    check_no_input(path := file_named(path), _inputs(scenario))
    check_file(path, *MARKS)
    path.absolute().parent.mkdir(parents=True, exist_ok=True)
    name = str(scenario.to_dict().get("name", "run"))
    with Progress(quiet).stage(f"{name}: requests to DRAM", {"requests": 1.0}, unit="") as report:
        text = _core.trace_memory(
            scenario.resolve(), path.resolve(), format, lambda fraction: report("requests", fraction)
        )
    return Result(json.loads(text))
