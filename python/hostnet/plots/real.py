"""Plots of studies with the settings of a real machine: simulated values as lines, measured values as points of the
same colour."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from .style import new_figure

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = ("#0072B2", "#B5400A", "#E69F00", "#3B3B3B")
# Sweep, the swept column with its label, and the column that distinguishes its curves.
_SWEEPS = (
    ("ways", "ways", "DDIO ways", "packet_bytes"),
    ("cores and ways", "ways", "DDIO ways", "n"),
    ("cores", "n", "cores, 256 descriptors each", "packet_bytes"),
    ("descriptors", "ring", "descriptors", "packet_bytes"),
    ("rate", "rate_gbps", "offered [Gbps], 2 cores", "packet_bytes"),
    ("processing time", "calls", "calls a packet, 2 cores", "packet_bytes"),
)
_METRICS = (("write_hit_pct", "write hits [%]"), ("received_gbps", "received [Gbps]"))


def _named(by: str, value: int) -> str:
    """Legend entry of the curve for that value of the column ``by``."""
    if by == "packet_bytes":
        return f"{value} B"
    return "1 core" if value == 1 else f"{value} cores"


def _panel(ax: Axes, part: pl.DataFrame, x: str, by: str, metric: str) -> None:
    for colour, ((key,), curve) in zip(_COLOURS, part.partition_by(by, as_dict=True, maintain_order=True).items()):
        curve = curve.sort(x)
        ax.plot(
            curve[x],
            curve[metric],
            "-_",
            color=colour,
            linewidth=1.5,
            markersize=9,
            markeredgewidth=1.5,
            label=_named(by, key),
        )
        ax.plot(curve[x], curve[f"their_{metric}"], "o", color=colour, markersize=4, label="_")
    ax.set_ylim(0, 105)
    if x == "ring":
        ax.set_xscale("log", base=2)
        ax.set_xticks([128, 512, 2048], ["128", "512", "2048"])


def _ddio(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
    """Hit rate of PCIe writes and throughput over the swept values of the measurements."""
    import polars as pl

    fig = new_figure(13.5, 5.0)
    axes = fig.subplots(len(_METRICS), len(_SWEEPS), sharex="col", sharey="row")
    for column, (case, x, label, by) in zip(axes.T, _SWEEPS):
        part = frame.filter(pl.col("case") == case)
        for ax, (metric, _) in zip(column, _METRICS):
            _panel(ax, part, x, by, metric)
        column[0].set_title(case)
        column[-1].set_xlabel(label)
        column[-1].legend(
            loc=(0.45, 0.3) if case == "descriptors" else "lower right" if case in ("rate", "cores") else "lower left"
        )
    for ax, (_, label) in zip(axes[:, 0], _METRICS):
        ax.set_ylabel(label)
    fig.suptitle("A Xeon Gold 6140 with a ConnectX-5: lines are ours, points are measured")
    return fig


def _memory(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
    """Latency over bandwidth of each machine, one curve for each mix."""
    from ..studies.real_memory import curves, measured

    ours = curves(frame.to_dicts())
    names = list(dict.fromkeys(name for name, _ in ours))
    fig = new_figure(13.5, 5.6)
    axes = fig.subplots(2, -(-len(names) // 2), squeeze=False).flatten()
    for ax, name in zip(axes, names):
        for colour, (curve, points) in zip(_COLOURS, (c for c in ours.items() if c[0][0] == name)):
            ax.plot(*zip(*points), "-_", color=colour, linewidth=1.5, markersize=7, label=f"{curve[1]} % reads")
            ax.plot(*zip(*measured()[curve]), "o", color=colour, markersize=4, label="_")
        ax.set_ylim(0, 500)
        ax.set_xlim(0)
        ax.set_title(name)
        ax.legend(loc="upper left")
    for ax in axes[len(names) :]:
        ax.set_axis_off()
    for ax in axes[:: len(axes) // 2]:
        ax.set_ylabel("latency [ns]")
    for ax in axes[len(axes) // 2 :]:
        ax.set_xlabel("bandwidth [GB/s]")
    fig.suptitle("Latency under load of real machines: lines are ours, points are measured")
    return fig


def _pcie(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
    """Latency of reads and rates over the size of an operation, by platform."""
    import polars as pl

    from ..studies.real_pcie import TITLES, UNITS

    fig = new_figure(13.5, 4.0)
    tests = ("read", "reads", "writes")
    for ax, test in zip(fig.subplots(1, len(tests)), tests):
        part = frame.filter((pl.col("request") == test) & (pl.col("place") == "warm"))
        for colour, ((name,), curve) in zip(
            _COLOURS, part.partition_by("platform", as_dict=True, maintain_order=True).items()
        ):
            curve = curve.sort("block_bytes")
            ax.plot(curve["block_bytes"], curve["figure"], "-_", color=colour, linewidth=1.5, markersize=7, label=name)
            ax.plot(curve["block_bytes"], curve["their_figure"], "o", color=colour, markersize=4, label="_")
        ax.set_ylim(0)
        ax.set_title(TITLES[test])
        ax.set_ylabel(f"{'latency' if test == 'read' else 'rate'} [{UNITS[test]}]")
        ax.set_xlabel("bytes of an operation")
        ax.legend(loc="lower right")
    fig.suptitle("A device on real machines: lines are ours, points are measured")
    return fig


def _here(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
    """Simulated figures over measured ones with their spread, and a band as wide as the aim."""
    from ..studies.real_here import FIGURES, NEAR, kind

    fig = new_figure(9.5, 4.6)
    rows = [r for r in frame.to_dicts() if r["ns"] is not None and r.get("program") is None]
    kinds = list(dict.fromkeys(kind(r) for r in rows))
    for ax, (name, (unit, title)) in zip(fig.subplots(1, len(FIGURES)), FIGURES.items()):
        known = [r for r in rows if r[name] is not None and r[f"their_{name}"] is not None]
        ends = [f(r[k] for r in known for k in (name, f"their_{name}")) for f in (min, max)]
        low, high = ends[0] / 1.3, ends[1] * 1.3
        ax.fill_between(
            [low, high], [low * (1 - NEAR), high * (1 - NEAR)], [low * (1 + NEAR), high * (1 + NEAR)], color="#DDDDDD"
        )
        for i, of in enumerate(kinds):
            part = [r for r in known if kind(r) == of]
            theirs = [r[f"their_{name}"] for r in part]
            spread = [[abs(r[f"their_{name}_{end}"] - r[f"their_{name}"]) for r in part] for end in ("low", "high")]
            ax.errorbar(
                theirs,
                [r[name] for r in part],
                xerr=spread,
                fmt="os^vDP"[i % 6],
                color=_COLOURS[i % len(_COLOURS)],
                markersize=5,
                elinewidth=0.8,
                label=of if part else None,
            )
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlim(low, high)
        ax.set_ylim(low, high)
        ax.set_title(title)
        ax.set_xlabel(f"measured [{unit}]")
        ax.set_ylabel(f"predicted [{unit}]")
        ax.legend(loc="upper left")
    fig.suptitle(f"Mixtures on this machine: the band is {100 * NEAR:.0f} % wide on each side")
    return fig


DRAWINGS: dict[str, Callable[[pl.DataFrame, Mapping[str, pl.DataFrame]], Figure]] = {
    "real_ddio": _ddio,
    "real_here": _here,
    "real_memory": _memory,
    "real_pcie": _pcie,
}
