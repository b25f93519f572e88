"""The figures of "Userspace Networking in gem5" (ISPASS'24), from their study tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .style import new_figure

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAMES = {
    "testpmd": "TestPMD",
    "touchfwd": "TouchFwd",
    "touchdrop": "TouchDrop",
    "rxptx-10ns": "RXpTX, 10 ns",
    "rxptx-1us": "RXpTX, 1 us",
    "iperf": "iperf",
    "mc-dpdk": "MemcachedDPDK",
    "mc-kernel": "MemcachedKernel",
}
SIZES = {64: "#8C8C8C", 128: "#56B4E9", 256: "#0072B2", 512: "#009E73", 1024: "#E69F00", 1518: "#B5400A"}
CAUSES = (
    ("drop_dma_share", "DmaDrop", "#0072B2"),
    ("drop_core_share", "CoreDrop", "#E69F00"),
    ("drop_tx_share", "TxDrop", "#8C8C8C"),
)

Row = Mapping[str, Any]
Tables = Mapping[str, "pl.DataFrame"]
Drawing = Callable[["pl.DataFrame", Tables], "Figure"]


def panels(width: float, height: float, n: int = 1) -> tuple[Figure, Any]:
    """A figure and its axes, side by side."""
    fig = new_figure(width, height)
    return fig, fig.subplots(1, n)


def picked(rows: Sequence[Row], **match: Any) -> list[Row]:
    """Rows whose columns have the given values."""
    return [r for r in rows if all(r.get(k) == v for k, v in match.items())]


def apps_of(rows: Sequence[Row], value: str) -> list[str]:
    """The applications that have a value, in the paper's order."""
    there = {r["app"] for r in rows if r.get(value) is not None}
    return [a for a in NAMES if a in there]


def draw(ax: Axes, rows: Sequence[Row], x: str, y: str, **style: Any) -> None:
    """A line through the rows that have both values, ordered by x."""
    points = sorted((r[x], r[y]) for r in rows if r.get(x) is not None and r.get(y) is not None)
    if points:
        ax.plot(*zip(*points), linewidth=1.5, markersize=4, marker="o", **style)


def _causes(frame: pl.DataFrame, _tables: Tables) -> Figure:
    """Fig. 5: drops by cause beyond the knee of each application."""
    rows = sorted(
        (r for r in frame.to_dicts() if r.get("rate_basis") == "knee" and r.get("drop_core_share") is not None),
        key=lambda r: (list(NAMES).index(r["app"]), r["packet_bytes"] or 0),
    )
    fig, ax = panels(9, 3.4)
    base = [0.0] * len(rows)
    for column, label, colour in CAUSES:
        heights = [100 * (r[column] or 0.0) for r in rows]
        ax.bar(range(len(rows)), heights, 0.7, bottom=base, color=colour, label=label)
        base = [b + h for b, h in zip(base, heights)]
    ax.set_xticks(
        range(len(rows)), [f"{NAMES[r['app']]}\n{r['packet_bytes'] or ''}" for r in rows], rotation=60, fontsize=7
    )
    ax.set_ylabel("drops by cause (%)")
    ax.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    fig.suptitle("Fig. 5: drops by cause beyond the knee")
    return fig


def _curves(title: str, app: str) -> Drawing:
    def figure(frame: pl.DataFrame, _tables: Tables) -> Figure:
        rows = picked(frame.to_dicts(), app=app, load="fixed")
        fig, axes = panels(9, 3.2, 2)
        for ax, (platform, name) in zip(axes, (("gem5", "gem5"), ("altra", "Altra"))):
            for size, colour in SIZES.items():
                draw(
                    ax,
                    [{**r, "drops": 100 * r["drop_rate"]} for r in picked(rows, platform=platform, packet_bytes=size)],
                    "offered_gbps",
                    "drops",
                    color=colour,
                    label=f"{size} B",
                )
            ax.axhline(1.0, color="#777777", linewidth=0.8, linestyle=":")
            ax.set_title(name)
            ax.set_xlabel("offered (Gb/s)")
            ax.set_ylabel("drop rate (%)")
        axes[0].legend(fontsize=7)
        fig.suptitle(title)
        return fig

    return figure


def _over(title: str, knob: str, label: str) -> Drawing:
    """Bandwidth and requests over the swept value: a panel for each application."""

    def figure(frame: pl.DataFrame, _tables: Tables) -> Figure:
        rows = picked(frame.to_dicts(), load="peak_loss")
        shown = [(a, "msb_gbps") for a in apps_of(rows, "msb_gbps")] + [(a, "krps") for a in apps_of(rows, "krps")]
        fig, axes = panels(2.4 * max(len(shown), 2), 3.0, max(len(shown), 2))
        for ax, (app, value) in zip(axes, shown):
            for size, colour in SIZES.items() if value == "msb_gbps" else [(None, "#0072B2")]:
                draw(
                    ax,
                    picked(rows, app=app, packet_bytes=size),
                    knob,
                    value,
                    color=colour,
                    label=f"{size} B" if size else None,
                )
            ax.set_title(NAMES[app])
            ax.set_xlabel(label)
            ax.set_ylim(bottom=0)
            if knob != "clock_ghz":
                ax.set_xscale("log", base=2)
        axes[0].set_ylabel("MSB (Gb/s), or kRPS")
        axes[0].legend(fontsize=7)
        fig.suptitle(title)
        return fig

    return figure


def _gain(title: str, knob: str, best: str, other: str) -> Drawing:
    """Gain of one choice over the other."""

    def figure(frame: pl.DataFrame, _tables: Tables) -> Figure:
        rows = picked(frame.to_dicts(), load="peak_loss")
        fig, ax = panels(9, 3.2)
        names, at = [], 0
        for value in ("msb_gbps", "krps"):
            for app in apps_of(rows, value):
                for size, colour in SIZES.items() if value == "msb_gbps" else [(None, "#0072B2")]:
                    pair = [picked(rows, app=app, packet_bytes=size, **{knob: k}) for k in (best, other)]
                    if all(p and p[0].get(value) for p in pair):
                        ax.bar(at, 100 * (pair[0][0][value] / pair[1][0][value] - 1), 0.8, color=colour)
                        names.append(f"{NAMES[app]} {size or ''}")
                        at += 1
        ax.set_xticks(range(at), names, rotation=75, fontsize=6)
        ax.set_ylabel("gain (%)")
        ax.axhline(0, color="#777777", linewidth=0.8)
        fig.suptitle(title)
        return fig

    return figure


def _leak(frame: pl.DataFrame, _tables: Tables) -> Figure:
    """Fig. 13: drops and LLC misses over the processing time."""
    rows = picked(frame.to_dicts(), load="fixed")
    fig, axes = panels(8, 3.2, 2)
    for ax, column, label in zip(axes, ("drop_rate", "llc_miss_ratio"), ("drop rate", "LLC miss ratio")):
        for size in (64, 256, 1518):
            draw(ax, picked(rows, packet_bytes=size), "interval_ns", column, color=SIZES[size], label=f"{size} B")
        ax.set_xscale("log")
        ax.set_xlabel("processing time (ns)")
        ax.set_ylabel(label)
    for onset, size in ((300, 64), (700, 1518)):
        axes[0].axvline(onset, color=SIZES[size], linestyle=":", linewidth=1.0)
    axes[0].legend(fontsize=7)
    fig.suptitle("Fig. 13: processing time and a small LLC (dotted: where the paper's drops begin)")
    return fig


def _servers(frame: pl.DataFrame, _tables: Tables) -> Figure:
    """Fig. 18: drop rate over offered requests."""
    fig, ax = panels(5, 3.2)
    rows = picked(frame.to_dicts(), load="fixed")
    for app, colour, paper in (("mc-dpdk", "#0072B2", 709), ("mc-kernel", "#E69F00", 218)):
        curve = [
            {"x": 1e3 * r["offered_mrps"], "y": 100 * r["drop_rate"]}
            for r in picked(rows, app=app)
            if r.get("drop_rate") is not None
        ]
        draw(ax, curve, "x", "y", color=colour, label=NAMES[app])
        ax.axvline(paper, color=colour, linestyle=":", linewidth=1.0)
    ax.set_xlabel("offered (kRPS)")
    ax.set_ylabel("drop rate (%)")
    ax.legend(fontsize=7)
    fig.suptitle("Fig. 18: memcached (dotted: the paper's knees)")
    return fig


DRAWINGS: dict[str, Drawing] = {
    "gem5net_fig5": _causes,
    "gem5net_fig6": _curves("Fig. 6: TestPMD", "testpmd"),
    "gem5net_fig7": _curves("Fig. 7: TouchFwd", "touchfwd"),
    "gem5net_fig8": _curves("Fig. 8: RXpTX, 10 ns", "rxptx-10ns"),
    "gem5net_fig9": _curves("Fig. 9: RXpTX, 1 us", "rxptx-1us"),
    "gem5net_fig10": _over("Fig. 10: size of the L1", "l1_kib", "L1 (KiB)"),
    "gem5net_fig11": _over("Fig. 11: size of the L2", "l2_kib", "L2 (KiB)"),
    "gem5net_fig12": _over("Fig. 12: size of the LLC", "llc_mib", "LLC (MiB)"),
    "gem5net_fig13": _leak,
    "gem5net_fig14": _gain("Fig. 14: gain from direct cache access", "dca", "on", "off"),
    "gem5net_fig15": _over("Fig. 15: clock of the core", "clock_ghz", "GHz"),
    "gem5net_fig16": _gain("Fig. 16: gain from an out-of-order core", "core", "out-of-order", "in-order"),
    "gem5net_fig17_ch": _over("Fig. 17: memory channels, no direct cache access", "channels", "channels"),
    "gem5net_fig17_rob": _over("Fig. 17: reorder buffer", "rob", "entries"),
    "gem5net_fig18": _servers,
}
