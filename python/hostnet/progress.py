"""A progress bar with an estimate of the time left, for whatever takes over two seconds: on standard error of a terminal, or
below a notebook's cell."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from html import escape
from typing import Any

PATIENCE_S = 2.0
#: Time between two changes of a bar in a notebook, each of which is a message to the browser.
EVERY_S = 0.2

Report = Callable[[str, float], None]


class Progress:
    """Shows the progress of a stage, with each point weighted by its cost. Silent when ``quiet`` is true, and where there is
    neither a terminal nor a notebook. ``quiet = None`` is silent except in a notebook."""

    def __init__(self, quiet: bool | None = False):
        from .notebook import here

        self._display = None if quiet else here()
        self.visible = quiet is False and sys.stderr.isatty()

    @contextmanager
    def stage(self, label: str, costs: Mapping[str, float], unit: str = "points") -> Iterator[Report]:
        """Yields ``report(key, fraction)``, which any thread may call. The bar counts finished points in ``unit``."""
        if self._display is None and not self.visible:
            yield lambda key, fraction: None
            return
        bar = _Cell(self._display, label) if self._display is not None else _Line(label, unit, len(costs))
        total, fractions = sum(costs.values()), dict.fromkeys(costs, 0.0)
        began, shown = time.monotonic(), False

        def report(key: str, fraction: float) -> None:
            nonlocal shown
            fractions[key] = max(fractions[key], min(fraction, 1.0))
            done = sum(costs[k] * f for k, f in fractions.items()) / total if total else 1.0
            bar.update(done, sum(f >= 1.0 for f in fractions.values()))
            if not shown and time.monotonic() - began > PATIENCE_S:
                shown = True
                bar.start()

        try:
            yield report
        finally:
            bar.stop()


class _Line:
    """A bar on a terminal."""

    def __init__(self, label: str, unit: str, points: int):
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            *([TextColumn(f"{{task.fields[done]}}/{{task.fields[points]}} {unit}")] if unit else []),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(label, total=1.0, done=0, points=points)

    def update(self, share: float, done: int) -> None:
        self._bar.update(self._task, completed=share, done=done)

    def start(self) -> None:
        self._bar.start()

    def stop(self) -> None:
        self._bar.stop()


class _Cell:
    """A bar below a notebook's cell; it goes away at the end."""

    def __init__(self, display: Any, label: str):
        self._display, self._label = display, label
        self._handle: Any = None
        self._began = self._last = time.monotonic()

    def update(self, share: float, done: int) -> None:
        now = time.monotonic()
        if self._handle is None or (now - self._last < EVERY_S and share < 1.0):
            return
        self._last = now
        left = f", {(now - self._began) * (1 - share) / share:.0f} s left" if share else ""
        text = f'{escape(self._label)} <progress max="1" value="{share:.3f}"></progress> {100 * share:.0f} %{left}'
        self._handle.update(self._display.HTML(text))

    def start(self) -> None:
        self._handle = self._display.display(self._display.HTML(escape(self._label)), display_id=True)

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.update(self._display.HTML(""))
