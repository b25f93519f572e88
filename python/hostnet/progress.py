"""A progress bar with an estimate of the time left, on standard error, for whatever takes over two seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

PATIENCE_S = 2.0


class Progress:
    """Shows the progress of a stage, with each point weighted by its cost. Silent when quiet, or when standard error is
    not a terminal."""

    def __init__(self, quiet: bool = False):
        self.visible = not quiet and sys.stderr.isatty()

    @contextmanager
    def stage(
        self, label: str, costs: Mapping[str, float], unit: str = "points"
    ) -> Iterator[Callable[[str, float], None]]:
        """Yields ``report(key, fraction)``, which any thread may call. The bar counts finished points in ``unit``."""
        if not self.visible:
            yield lambda key, fraction: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        bar = Bar(
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
        task = bar.add_task(label, total=sum(costs.values()), done=0, points=len(costs))
        fractions = dict.fromkeys(costs, 0.0)
        began, shown = time.monotonic(), False

        def report(key: str, fraction: float) -> None:
            nonlocal shown
            fractions[key] = max(fractions[key], min(fraction, 1.0))
            bar.update(
                task,
                completed=sum(costs[k] * f for k, f in fractions.items()),
                done=sum(f >= 1.0 for f in fractions.values()),
            )
            if not shown and time.monotonic() - began > PATIENCE_S:
                shown = True
                bar.start()

        try:
            yield report
        finally:
            bar.stop()
