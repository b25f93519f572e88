"""`hostnet watch`: a run on the terminal while it goes on: rate, latency, queues and drops of the window so far."""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import _core
from .cache import Cache, key_of
from .results import Result, ResultData

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from .api import AnyScenario

WIDTH = 78
_PHASES = {"warm_up": "warming up", "search": "settling at a rate of the search", "measurement": "measuring"}
_CAUSES = 4
_HISTORY = 40
_STEPS = " ▁▂▃▄▅▆▇█"
#: Seconds between two lines where standard output is no terminal.
PLAIN_S = 1.0

Snapshot = dict[str, Any]


class Watched:
    """A run as far as it has been seen: the present snapshot, and rates and peaks from earlier snapshots."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.fraction = 0.0
        self.now: Snapshot | None = None
        self.rates: deque[float] = deque(maxlen=_HISTORY)
        self.peaks: dict[str, int] = {}

    def see(self, fraction: float, snapshot: Snapshot) -> None:
        """Take the next snapshot into account."""
        was, self.now, self.fraction = self.now, snapshot, max(self.fraction, fraction)
        same_window = (
            was is not None and snapshot["completed"] >= was["completed"] and snapshot["now_us"] > was["now_us"]
        )
        if same_window and was is not None and snapshot["window_us"] > was["window_us"]:
            done, us = snapshot["completed"] - was["completed"], snapshot["window_us"] - was["window_us"]
        else:
            done, us = snapshot["completed"], snapshot["window_us"]
        if us > 0:
            self.rates.append(done / us)
        for name, _, fill in snapshot["queues"]:
            self.peaks[name] = max(self.peaks.get(name, 0), fill)

    @property
    def rate(self) -> float:
        """Completed requests since the last snapshot, in millions per second."""
        return self.rates[-1] if self.rates else 0.0

    def mean(self) -> float:
        """Completed requests of the window so far, in millions per second."""
        now = self.now
        return now["completed"] / now["window_us"] if now and now["window_us"] > 0 else 0.0

    def line(self) -> str:
        """The state in one line, for output that is no terminal."""
        now = self.now or {}
        latency = now.get("latency_us")
        p99 = "" if latency is None else f", p50 {latency[0]:.3g} us, p99 {latency[2]:.3g} us"
        return (
            f"{self.name}: {100 * self.fraction:3.0f} %, {_PHASES[now['phase']]}, {now['now_us']:,.0f} us, "
            f"{self.rate:.4g} Mrps{p99}, {now['lost']:,} lost"
        )

    def picture(self) -> RenderableType:
        """The state as a block of at most 80 columns."""
        from rich.console import Group
        from rich.text import Text

        now = self.now
        if now is None:
            return Text(f"{self.name}: preparing", style="bold")
        head = Text(f"{self.name}  ", style="bold")
        head.append(_PHASES[now["phase"]], style="green" if now["phase"] == "measurement" else "yellow")
        done = int(20 * self.fraction)
        bar = Text("█" * done, style="cyan") + Text("░" * (20 - done), style="dim")
        lines = [head, bar + Text(f" {100 * self.fraction:3.0f} %   {now['now_us']:,.1f} us simulated")]
        lines.append(_row("rate", f"{self.rate:.4g} Mrps now, {self.mean():.4g} Mrps in the window"))
        lines.append(_row("", _sparkline(self.rates)))
        if now["offered"]:
            share = 100 * now["lost"] / now["offered"]
            lost = f"{now['lost']:,} of {now['offered']:,} offered ({share:.2f} %)"
            lines.append(_row("lost", lost, "red" if now["lost"] else ""))
        for cause, count in now["losses"][:_CAUSES]:
            lines.append(_row("", f"{count:,}: {cause}"[: WIDTH - 12], "dim"))
        if now["latency_us"] is not None:
            p50, p90, p99, most = (f"{v:.4g}" for v in now["latency_us"])
            lines.append(_row("latency", f"p50 {p50}  p90 {p90}  p99 {p99}  max {most} us"))
        lines.append(_row("DRAM", f"{now['memory_gbs']:.1f} GB/s"))
        for i, (name, unit, fill) in enumerate(now["queues"]):
            most_seen = max(self.peaks[name], 1)
            cells = round(16 * fill / most_seen)
            bar = Text("█" * cells, style="cyan") + Text("░" * (16 - cells), style="dim")
            label = f"{name[:34]:<34}"
            lines.append(Text(f"{'queues' if i == 0 else '':<9} {label} ") + bar + Text(f" {fill:>7,} {unit[:8]}"))
        return Group(*lines)


def _row(label: str, text: str, style: str = "") -> Any:
    from rich.text import Text

    return Text(f"{label:<9} ") + Text(text, style=style)


def _sparkline(values: deque[float]) -> str:
    most = max(values, default=0.0)
    return "".join(_STEPS[round((len(_STEPS) - 1) * v / most)] for v in values) if most > 0 else ""


def watch(scenario: AnyScenario, console: Console | None = None) -> Result:
    """Run a scenario and show it while it goes on; returns the result, which the cache keeps. On a terminal a block of
    text is redrawn; elsewhere a line is printed each second."""
    from rich.console import Console
    from rich.live import Live

    from .specs import Scenario

    scenario = Scenario.of(scenario)
    spec, seen = scenario.resolve(), Watched(str(scenario.to_dict().get("name", "run")))
    cache, out = Cache(), console or Console()
    cache.check()
    if out.is_terminal:
        with Live(seen.picture(), console=out, refresh_per_second=5) as live:
            text = _core.watch(spec, _shown(seen, lambda: live.update(seen.picture())))
    else:
        text = _core.watch(spec, _shown(seen, _Lines(seen).show))
    cache.put(key_of(spec), text)
    data: ResultData = json.loads(text)
    return Result({**data, "spec": json.loads(spec)}, key=key_of(spec))


def _shown(seen: Watched, draw: Callable[[], object]) -> Callable[[float, str], None]:
    def show(fraction: float, snapshot: str) -> None:
        seen.see(fraction, json.loads(snapshot))
        draw()

    return show


class _Lines:
    """Prints a line each second."""

    def __init__(self, seen: Watched) -> None:
        self.seen, self.last = seen, float("-inf")

    def show(self) -> None:
        if time.monotonic() - self.last >= PLAIN_S:
            self.last = time.monotonic()
            print(self.seen.line(), file=sys.stdout, flush=True)
