"""The figures of CC-NIC (ASPLOS'24) that are curves, from their study tables; the other figures are bars."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..systems import COLOURS, NAMES, name_of
from .gem5net import draw, panels, picked
from .style import new_figure

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

TARGETS = {"wc_mmio": "E810, write-combining", "wc_dram": "memory, write-combining", "wb_dram": "memory, write-back"}
PLATFORMS = {"icx": "Ice Lake", "spr": "Sapphire Rapids"}

Row = Mapping[str, Any]
Drawing = Callable[["pl.DataFrame", Mapping[str, "pl.DataFrame"]], "Figure"]


def panels_of(rows: Sequence[Row]) -> list[tuple[str, int]]:
    """The platforms and packet sizes in the rows, in order."""
    there = {(r["platform"], r["packet_bytes"]) for r in rows}
    return sorted(there, key=lambda p: (list(PLATFORMS).index(p[0]), p[1]))


def side_by_side(width: float, height: float, n: int) -> tuple[Figure, Any]:
    """A figure of `n` panels, at least one, of the given width; and all axes."""
    fig = new_figure(width * max(n, 1), height)
    return fig, fig.subplots(1, max(n, 1), squeeze=False)[0]


def _curves(title: str) -> Drawing:
    """Median round-trip time over rate, from one outstanding packet to shares of the peak: a panel for each platform and size."""

    def figure(frame: pl.DataFrame, _tables: Mapping[str, pl.DataFrame]) -> Figure:
        rows = [{**r, "rtt_us": r["rtt_ns"] / 1e3} for r in frame.to_dicts() if r.get("rtt_ns") is not None]
        shown = panels_of(rows)
        fig, axes = side_by_side(4.4, 3.4, len(shown))
        for ax, (platform, size) in zip(axes, shown):
            here = picked(rows, platform=platform, packet_bytes=size)
            for system in (s for s in NAMES if picked(here, system=s)):
                # Packets that wait in rings at the peak, or with other numbers of cores, say nothing about the interface.
                line = [r for r in picked(here, system=system) if r["load"] in ("min", "loaded")]
                draw(ax, line, "mpps", "rtt_us", color=COLOURS[system], label=NAMES[system])
            ax.set_title(f"{PLATFORMS[platform]}, {size} B")
            ax.set_xlabel("packets (Mpps)")
            ax.set_ylim(bottom=0)
        axes[0].set_ylabel("median round trip (us)")
        axes[0].legend(fontsize=7)
        fig.suptitle(title)
        return fig

    return figure


def _over(title: str, x: str, y: str, hue: str, label: str, axis: str, log: bool = False) -> Drawing:
    """A line for each value of `hue`, and a panel for each platform."""

    def figure(frame: pl.DataFrame, _tables: Mapping[str, pl.DataFrame]) -> Figure:
        rows = [r for r in frame.to_dicts() if r.get(x) is not None and r.get(y) is not None]
        plats = [p for p in PLATFORMS if picked(rows, platform=p)]
        fig, axes = side_by_side(4.4, 3.2, len(plats))
        for ax, platform in zip(axes, plats):
            here = picked(rows, platform=platform)
            for value in dict.fromkeys(r.get(hue) for r in here):
                draw(
                    ax,
                    [r for r in here if r.get(hue) == value],
                    x,
                    y,
                    label=f"{value} B" if hue == "packet_bytes" else name_of(value),
                )
            ax.set_title(PLATFORMS[platform])
            ax.set_xlabel(label)
            ax.set_ylim(bottom=0)
            if log:
                ax.set_xscale("log", base=2)
        axes[0].set_ylabel(axis)
        axes[0].legend(fontsize=7)
        fig.suptitle(title)
        return fig

    return figure


def _servers(title: str, x: str, y: str, label: str, axis: str) -> Drawing:
    """A line for each system and variant, in one panel."""

    def figure(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
        named = [{**r, "line": f"{name_of(r['system'])}, {r['variant']}"} for r in frame.to_dicts()]
        return _stores(title, x, y, "line", label, axis)(type(frame)(named), tables)

    return figure


def _stores(title: str, x: str, y: str, hue: str, label: str, axis: str, log: bool = False) -> Drawing:
    """A line for each value of `hue`, in one panel."""

    def figure(frame: pl.DataFrame, _tables: Mapping[str, pl.DataFrame]) -> Figure:
        rows = [r for r in frame.to_dicts() if r.get(y) is not None]
        fig, ax = panels(5.0, 3.2)
        for value in dict.fromkeys(r[hue] for r in rows):
            draw(ax, picked(rows, **{hue: value}), x, y, label=TARGETS.get(value, name_of(value)))
        ax.set_xlabel(label)
        ax.set_ylabel(axis)
        ax.set_ylim(bottom=0)
        if log:
            ax.set_xscale("log", base=2)
        ax.legend(fontsize=7)
        fig.suptitle(title)
        return fig

    return figure


def _links(frame: pl.DataFrame, _tables: Mapping[str, pl.DataFrame]) -> Figure:
    """Latency of remote reads over their throughput, simulated and on real machines."""
    rows = frame.to_dicts()
    fig, axes = panels(8.8, 3.2, 2)
    for ax, platform in zip(axes, PLATFORMS):
        here = picked(rows, platform=platform)
        draw(ax, here, "of_most", "access_ns", color=COLOURS["ccnic"], label="simulated")
        draw(ax, here, "of_most", "measured_ns", color=COLOURS["cx6"], label="measured")
        ax.set_title(PLATFORMS[platform])
        ax.set_xlabel("share of the most that was read")
        ax.set_ylim(bottom=0)
    axes[0].set_ylabel("latency (ns)")
    axes[1].legend(fontsize=7)
    fig.suptitle("Reads of the other socket's memory")
    return fig


def _library(frame: pl.DataFrame, _tables: Mapping[str, pl.DataFrame]) -> Figure:
    """Loopback between two cores over the number of outstanding packets, simulated and measured: a row for each machine."""
    rows = frame.to_dicts()
    machines = {"spr": "Emerald Rapids", "turin": "EPYC, Zen 5", "genoa": "EPYC, Zen 4"}
    there = [p for p in machines if picked(rows, platform=p)]
    fig = new_figure(8.8, 3.2 * max(len(there), 1))
    grid = fig.subplots(max(len(there), 1), 2, squeeze=False)
    for axes, platform in zip(grid, there):
        for ax, column, label in zip(axes, ("mpps", "ns"), ("Mpps", "median round trip (ns)")):
            for variant, name in (("ccnic", "CC-NIC"), ("unopt", "unoptimised")):
                here = picked(rows, platform=platform, case="loopback", variant=variant)
                style = {"color": COLOURS[variant]}
                draw(ax, here, "packets", column, label=f"{name}, simulated", **style)
                draw(ax, here, "packets", f"measured_{column}", label=f"{name}, measured", linestyle="--", **style)
            ax.set_xscale("log", base=2)
            ax.set_xlabel("packets under way")
            ax.set_ylabel(label)
        axes[0].set_ylim(bottom=0)
        axes[0].set_title(machines[platform], fontsize=9, loc="left")
        axes[1].set_yscale("log")
    grid[0][0].legend(fontsize=7, handlelength=3.5)
    fig.suptitle("64 B between two cores that share an LLC")
    return fig


DRAWINGS: dict[str, Drawing] = {
    "real_library": _library,
    "ccnic_fig2": _stores(
        "Fig. 2: stores with fences", "block_bytes", "write_gbps", "target", "bytes between fences", "Gb/s", log=True
    ),
    "ccnic_fig3": _stores(
        "Fig. 3: 4 B stores to lines of their own",
        "stores",
        "store_ns",
        "system",
        "stores",
        "all stores of the burst (ns)",
    ),
    "ccnic_fig9": _over(
        "Fig. 9: streams between sockets", "pairs", "stream_gbps", "stores_as", "pairs of threads", "Gb/s"
    ),
    "ccnic_fig11": _curves("Fig. 11: interfaces on Ice Lake"),
    "ccnic_fig12": _curves("Fig. 12: CC-NIC and PCIe NICs"),
    "ccnic_fig13": _curves("Fig. 13: CC-NIC on Sapphire Rapids"),
    "ccnic_intro_unopt": _curves("The same link under two interfaces"),
    "ccnic_cores": _over("Host cores", "n", "gbps", "packet_bytes", "host cores", "payload (Gb/s)"),
    "ccnic_nic_threads": _over(
        "Threads of the NIC for 16 host cores",
        "nic_threads",
        "gbps",
        "packet_bytes",
        "threads of the NIC",
        "payload (Gb/s)",
    ),
    "ccnic_fig16a": _over("Fig. 16a: bursts sent", "tx_batch", "mpps", "system", "packets a burst", "Mpps", log=True),
    "ccnic_fig16b": _over(
        "Fig. 16b: bursts received", "rx_batch", "mpps", "system", "packets a burst", "Mpps", log=True
    ),
    "ccnic_fig19_ads": _stores("Fig. 19: key-value store, Ads", "n", "kv_mops", "system", "server threads", "Mops"),
    "ccnic_fig19_geo": _stores("Fig. 19: key-value store, Geo", "n", "kv_mops", "system", "server threads", "Mops"),
    "ccnic_tab2_tcp": _servers("Table 2: TCP echo", "n", "tcp_mops", "threads of TAS's fast path", "Mops"),
    "ccnic_fig21b": _over("Fig. 21b: 1500 B over the uncore clock", "uncore_ghz", "gbps", "system", "GHz", "Gb/s"),
    "ccnic_links": _links,
}
