"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table

from .results import Result, metric_info

if TYPE_CHECKING:
    import polars as pl

    from .studies import Study

# What a sweep prints of each point; the files hold every metric.
HEADLINE = ("throughput_mrps", "lat_p50_us", "lat_p99_us", "drop_rate", "mem_bw_gbs", "acc_total")


def number(value: Any) -> str:
    """A value to about four significant digits; empty for None."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
    return str(value)


def _table(title: str | None = None) -> Table:
    return Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold")


def console() -> Console:
    """Standard output; as wide as a table needs when it is not a terminal, so that `| less -S` shows everything."""
    out = Console()
    return out if out.is_terminal else Console(width=240)


def _print(table: Table) -> None:
    console().print(table)


def _heading(name: str) -> str:
    info = metric_info().get(name)
    return f"{name}\n[dim]{info['unit']}[/dim]" if info else name


def metrics(result: Result) -> None:
    """Every metric that has a value, with unit and meaning."""
    table = _table(str(result.spec.get("name", "")))
    table.add_column("metric")
    table.add_column("value", justify="right")
    table.add_column("unit")
    table.add_column("meaning", style="dim", overflow="fold")
    for name, info in metric_info().items():
        if result.metrics.get(name) is not None:
            table.add_row(name, number(result.metrics[name]), info["unit"], info["description"])
    _print(table)


def rows(frame: pl.DataFrame, swept: Sequence[str], wanted: Sequence[str] = HEADLINE, title: str | None = None) -> None:
    """One line per point: swept columns that vary, then the wanted metrics that have values."""
    import polars as pl

    swept = [c for c in swept if c not in wanted]
    varying = [c for c in swept if frame[c].n_unique() > 1] or list(swept[:1])
    shown = [m for m in wanted if m in frame.columns and frame[m].null_count() < frame.height]
    table = _table(title)
    columns = [*varying, *shown]
    for c in columns:
        table.add_column(_heading(c), justify="left" if frame[c].dtype == pl.String else "right")
    for row in frame.select(columns).iter_rows():
        table.add_row(*(number(v) for v in row))
    _print(table)


def studies(known: Sequence[Study]) -> None:
    """Every study with its title and number of points."""
    table = _table()
    for heading in ("system", "figure", "what it shows"):
        table.add_column(heading)
    table.add_column("points", justify="right")
    for s in known:
        points = str(len(s.points(False))) + ("+" if s.then else "")
        table.add_row(s.system, s.figure, s.title, points)
    _print(table)


def platform_list(known: Mapping[str, str]) -> None:
    """The platforms with their descriptions."""
    table = _table()
    table.add_column("platform")
    table.add_column("description", overflow="fold")
    for name, description in known.items():
        table.add_row(name, description)
    _print(table)


def platform(name: str, spec: Mapping[str, Any]) -> None:
    """Every value of a platform, defaults included, with its provenance."""
    sources = dict(_leaves(spec.get("provenance") or {}))
    table = _table(f"{name}: {spec.get('description', '')}")
    for heading in ("key", "value", "provenance"):
        table.add_column(heading, overflow="fold")
    for path, value in _leaves({k: v for k, v in spec.items() if k not in ("name", "description", "provenance")}):
        table.add_row(path, str(value), provenance(sources, path))
    _print(table)


def provenance(sources: Mapping[str, str], path: str) -> str:
    """Where a value comes from: the entry of its own key, or of the nearest table around it."""
    while path and path not in sources:
        path = path.rpartition(".")[0]
    return sources.get(path, "")


def _leaves(node: Mapping[str, Any], path: str = ""):
    for key, value in node.items():
        here = f"{path}.{key}" if path else key
        if isinstance(value, Mapping):
            yield from _leaves(value, here)
        else:
            yield here, value
