"""`hostnet explain`: which domain holds a host back, and why, from hardware counters or from a simulated run."""

from __future__ import annotations

import hashlib
import json
import sys
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from ..errors import HostnetError
from ..output import Contents, check_file, check_no_input, directory, write_text
from .explanation import Domain, Estimate, Explanation

if TYPE_CHECKING:
    from ..api import AnyScenario
    from ..results import Result
    from ..specs import Scenario

__all__ = ["Domain", "Estimate", "Explanation", "main", "of_counters", "of_result"]


def of_counters(
    file: str | Path,
    changes: tuple[str, ...] = (),
    seconds: float | None = None,
    platform: str | None = None,
    content: bytes | None = None,
) -> Explanation:
    """Explain recorded counters of a machine: the paper's machine, or
    ``platform``, with ``changes`` ("channels=6"). A file of ``--write-counters`` contains the description of its
    machine. ``content`` is what the file holds, where it has been read; a pipe can be read once."""
    from ..api import platform as described
    from . import counters, machine, real

    if seconds is not None and not 1e-9 <= seconds <= 1e9:
        raise HostnetError(f"seconds = {seconds:g} is not the time of a recording; give 1e-9 to 1e9.")
    recorded = counters.read(file, seconds, content)
    known = None if platform is None else described(platform)
    recorded, sockets = real.on_platform(recorded, known, changes)
    values = machine.machine(changes, known, recorded.machine, sockets, recorded.busy_cores, papers=not recorded.later)
    return real.explain(recorded, values, changes)


def of_result(result: Result) -> Explanation:
    """Explain a `Result`."""
    from . import simulated

    return simulated.explain(result)


class _Called(ModuleType):
    """This module, which can also be called: ``hn.explain`` is both a function and the package that holds its parts."""

    def __call__(self, result: Result | AnyScenario) -> Explanation:
        from ..api import explain

        return explain(result)


sys.modules[__name__].__class__ = _Called


def main(
    given: str | None,
    counters: Path | None,
    template: str | None,
    changes: list[str] | None,
    seconds: float | None,
    out: Path | None,
    as_json: bool,
    quiet: bool,
    write_counters: Path | None = None,
    replace: bool = False,
    platform: str | None = None,
    processor: str | None = None,
) -> None:
    """The command: prints the explanation of a result, a scenario or a recording, or prints a recording script."""
    import typer

    from .. import _core, api
    from ..specs import Scenario
    from .counters import read_bytes

    if sum(x is not None for x in (given, counters, template)) != 1:
        raise HostnetError("give one of: a result or scenario, --counters FILE, or --template perf.")
    if seconds is not None and (counters is None or not 1e-9 <= seconds <= 1e9):
        raise HostnetError(
            f"--seconds {seconds:g}: the time of the recording that --counters names, within 1e-9 to 1e9."
        )
    if processor is not None and template is None:
        raise HostnetError("--processor chooses the events that --template records; a recording names its own.")
    if write_counters is not None and given is None:
        raise HostnetError("--write-counters needs a simulated run: give a result or a scenario.")
    if write_counters is not None:
        from .vendor import MARK

        check_no_input(write_counters, [given or ""])
        check_file(write_counters, MARK)
    if template is not None:
        from .events import template as script

        if template not in ("perf", "pcm"):
            raise HostnetError(f"--template {template}: choose perf or pcm.")
        typer.echo(script(template, processor=processor or "skylake"), nl=False)
        return
    if platform is not None and counters is None:
        raise HostnetError(
            "--platform describes the machine that --counters is of; --set platform=NAME changes a scenario."
        )
    if replace and out is None:
        raise HostnetError("--replace is about the directory that --out names; give both or neither.")
    found: Result | Scenario | Explanation
    if counters is not None:
        content = read_bytes(counters)
        found = of_counters(counters, tuple(changes or ()), seconds, platform, content)
        told = {
            "counters": hashlib.sha256(content).hexdigest(),
            "changes": " ".join([platform or "", *(changes or ())]),
        }
        of = Contents(str(counters), told, _core.version())
    else:
        assert given is not None, "one of the three is given"
        found = _result(given, changes)
        spec = json.loads(found.resolve()) if isinstance(found, Scenario) else found.spec
        told = {"": hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()}
        seeds = 1 if isinstance(found, Scenario) else len(found.seeds)
        of = Contents(str(spec.get("name", given)), told, _core.version(), seeds=seeds)
    with nullcontext() if out is None else directory(out, "explain", of, replace=replace) as folder:
        if isinstance(found, Explanation):
            ex = found
        else:
            result = api.run(found, quiet=quiet) if isinstance(found, Scenario) else found
            ex = of_result(result)
            if write_counters is not None:
                from .vendor import perf_csv

                write_text(write_counters, perf_csv(result))
        from . import render

        if folder is not None:
            render.picture(ex, folder / "explain")
            (folder / "explain.json").write_text(json.dumps(ex.as_dict(), indent=1) + "\n", encoding="utf-8")
    if as_json:
        typer.echo(json.dumps(ex.as_dict()))
    else:
        render.to_terminal(ex)


def _result(given: str, changes: list[str] | None) -> Result | Scenario:
    """A saved result, or the scenario to run."""
    from ..cli import _scenario
    from ..results import Result

    if given.endswith(".json") and Path(given).is_file():
        if changes:
            raise HostnetError(f"--set changes a scenario or a machine, and {given} is a finished result.")
        return Result.load(given)
    return _scenario(given, changes)
