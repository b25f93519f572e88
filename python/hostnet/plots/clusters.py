"""Bars side by side: position, colour and name of each configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..systems import SYSTEMS, name_of
from .style import CLASS_COLOURS, axis_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WAYS = (2, 4, 6, 12)


def config_of(row: Mapping[str, Any]) -> tuple[str, int]:
    return row["system"], int(row.get("ways") or 0)


def config_order(config: tuple[str, int]) -> tuple[int, int, int]:
    system, ways = config
    return {"dma": 0, "ideal": 2}.get(system, 1), ways, int(system == "sweeper")


def config_name(config: tuple[str, int], short: bool = False) -> str:
    system, ways = config
    name = (system in SYSTEMS and short and SYSTEMS[system].short) or name_of(system)
    if system not in ("ddio", "sweeper") or not ways:
        return name
    return f"{name} {ways}" if short else f"{name}, {ways} ways"


def _config_colour(config: tuple[str, int]) -> str:
    system, ways = config
    if system not in SYSTEMS:
        return "#009E73"
    shades = SYSTEMS[system].shades or (SYSTEMS[system].colour,)
    return shades[min(sum(ways > w for w in _WAYS), len(shades) - 1)]


class Clusters:
    """Bars side by side, one cluster per group and one bar per configuration present in it."""

    def __init__(self, rows: Sequence[Mapping[str, Any]], group: Callable[[Mapping[str, Any]], str]):
        self.rows = rows
        self.groups = list(dict.fromkeys(group(r) for r in rows))
        self.configs = sorted({config_of(r) for r in rows}, key=config_order)
        self.at: dict[tuple[str, tuple[str, int]], float] = {}
        self.centres: list[float] = []
        x = 0.0
        for g in self.groups:
            present = {config_of(r) for r in rows if group(r) == g}
            first = x
            for config in self.configs:
                if config in present:
                    self.at[g, config] = x
                    x += 1
            self.centres.append((first + x - 1) / 2)
            x += 1.2
        self.position = [self.at[group(r), config_of(r)] for r in rows]

    def bars(self, ax: Axes, column: str) -> None:
        for config in self.configs:
            mine = [
                (x, r[column])
                for x, r in zip(self.position, self.rows, strict=False)
                if config_of(r) == config and r[column] is not None
            ]
            hatch = "////" if config[0] == "sweeper" else None
            ax.bar(
                [x for x, _ in mine],
                [y for _, y in mine],
                0.9,
                label=config_name(config),
                color=_config_colour(config),
                edgecolor="#333333",
                linewidth=0.4,
                hatch=hatch,
            )
        self._finish(ax, axis_label(column))

    def stack(self, ax: Axes, label: str) -> None:
        base = [0.0] * len(self.rows)
        for column, (name, colour) in CLASS_COLOURS.items():
            heights = [r[column] or 0.0 for r in self.rows]
            if any(heights):
                ax.bar(
                    self.position, heights, 0.9, bottom=base, label=name, color=colour, edgecolor="white", linewidth=0.3
                )
            base = [b + h for b, h in zip(base, heights, strict=False)]
        self._finish(ax, label)

    def _finish(self, ax: Axes, label: str) -> None:
        ax.set_ylabel(label)
        ax.set_xticks(self.centres, self.groups)
        ax.tick_params(axis="x", length=0)
        ax.grid(axis="x", visible=False)
        ax.margins(x=0.01)

    def name_bars(self, ax: Axes) -> None:
        """Writes each bar's configuration below the bar, and the cluster's name below the configurations."""
        ax.set_xticks(
            self.position, [config_name(config_of(r), short=True) for r in self.rows], rotation=90, fontsize=6.5
        )
        ax.tick_params(axis="x", length=0)
        for x, g in zip(self.centres, self.groups, strict=False):
            ax.annotate(
                g,
                (x, 0),
                (0, -38),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                ha="center",
                va="top",
            )

    def of(self, group: str, system: str, ways: int) -> tuple[float, Mapping[str, Any]] | None:
        """Position and table row of one bar."""
        for x, r in zip(self.position, self.rows, strict=False):
            if (group, (system, ways)) in self.at and self.at[group, (system, ways)] == x:
                return x, r
        return None
