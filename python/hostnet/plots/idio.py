"""The figures of IDIO (MICRO'22) and the comparison of policies, from their study tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..systems import COLOURS, NAMES
from .style import new_figure

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MLC, LLC, DMA = "#0072B2", "#B5400A", "#C9C9C9"
BARS = (
    ("mlc_wb_rel", "MLC write-backs"),
    ("llc_wb_rel", "LLC write-backs"),
    ("dram_rd_rel", "DRAM reads"),
    ("dram_wr_rel", "DRAM writes"),
    ("burst_rel", "burst time"),
)
PLACES = (
    ("rx_mlc", "MLC", "#0072B2"),
    ("rx_ddio", "LLC, DDIO ways", "#E69F00"),
    ("rx_llc", "LLC, other ways", "#F7EC8A"),
    ("elsewhere", "DRAM alone", "#3B3B3B"),
)

Row = Mapping[str, Any]
Tables = Mapping[str, "pl.DataFrame"]


def picked(rows: Sequence[Row], **match: Any) -> list[Row]:
    return [r for r in rows if all(r.get(k) == v for k, v in match.items())]


def present(rows: Sequence[Row], column: str, order: Sequence[Any]) -> list[Any]:
    """The values of `column` that rows have, in `order`."""
    there = {r[column] for r in rows}
    return [v for v in order if v in there]


# --- Over time ------------------------------------------------------------------------------------------------------


def phases(line: Sequence[Row], burst_us: float | None) -> tuple[float, float, float] | None:
    """Start of a burst's DMA phase, its end, and the end of the execution phase.

    Times are the ends of bins. The DMA phase covers the bins with more than a tenth of the requests of the busiest bin;
    the execution phase ends `burst_us` after the start of the DMA phase.
    """
    step = line[1]["t_us"] - line[0]["t_us"] if len(line) > 1 else 0.0
    peak = max((r["dma_requests"] for r in line), default=0)
    busy = [r["t_us"] for r in line if r["dma_requests"] > 0.1 * peak]
    if not busy or burst_us is None:
        return None
    return busy[0] - step, busy[-1], busy[0] - step + burst_us


def mark_phases(ax: Axes, marks: tuple[float, float, float], zero: float) -> None:
    """Two bars at the top of `ax`: the activity of the NIC, and the activity of the core."""
    start, dma, done = (m - zero for m in marks)
    above = ax.get_xaxis_transform()
    bars: tuple[tuple[float, float, str, str, dict[str, Any]], ...] = (
        (0.97, dma, "DMA", "#777777", {"xytext": (4, 0), "va": "center"}),
        (0.90, done, "execution", "#333333", {"xytext": (0, -3), "va": "top", "ha": "right"}),
    )
    for y, end, label, colour, beside in bars:
        ax.plot([start, end], [y, y], transform=above, color=colour, linewidth=3.0, solid_capstyle="butt")
        ax.annotate(label, (end, y), xycoords=above, textcoords="offset points", fontsize=7, color=colour, **beside)
    ax.axvline(done, ymax=0.9, color="#333333", linestyle=":", linewidth=1.0)


def over_time(ax: Axes, line: Sequence[Row], zero: float, scale: float = 1.0, dma: bool = True) -> Axes | None:
    """Write-backs of MLCs and LLC as lines, the device's requests as an area with its own axis, all in MTPS."""
    t = [(r["t_us"] - zero) * scale for r in line]
    ax.plot(t, [r["mlc_wb"] for r in line], color=MLC, linewidth=1.4, label="MLC write-backs", zorder=4)
    ax.plot(t, [r["llc_wb"] for r in line], color=LLC, linewidth=1.4, label="LLC write-backs", zorder=4)
    if not dma:
        return None
    right = ax.twinx()
    right.fill_between(
        t,
        [r["dma_requests"] for r in line],
        step="pre",
        color=DMA,
        alpha=0.6,
        linewidth=0,
        label="DMA requests (right)",
    )
    right.grid(visible=False)
    right.set_ylim(bottom=0)
    ax.set_zorder(right.get_zorder() + 1)
    ax.patch.set_visible(False)
    return right


def burst_panel(ax: Axes, line: Sequence[Row], burst_us: float | None) -> Axes | None:
    """One burst from its first request on, with a margin before and after, and with its phases marked."""
    line = sorted(line, key=lambda r: r["t_us"])
    marks = phases(line, burst_us)
    if marks is None:
        return over_time(ax, line, line[0]["t_us"])
    margin = 0.08 * (marks[2] - marks[0])
    seen = [r for r in line if marks[0] - margin <= r["t_us"] <= max(marks[1:]) + margin]
    right = over_time(ax, seen, marks[0])
    mark_phases(ax, marks, marks[0])
    return right


def _grid(name: str, title: str, systems: Sequence[str]) -> Callable[[pl.DataFrame, Tables], Figure]:
    def draw(frame: pl.DataFrame, tables: Tables) -> Figure:
        rows, times = frame.to_dicts(), tables[f"{name}_timeline"].to_dicts()
        rates = sorted({r["rate_gbps"] for r in rows}, reverse=True)
        shown = present(rows, "system", systems)
        fig = new_figure(2.6 * len(shown) + 1.2, 2.5 * len(rates) + 0.7)
        axes = fig.subplots(len(rates), len(shown), sharex="row", sharey="row", squeeze=False)
        for i, rate in enumerate(rates):
            rights = []
            for ax, system in zip(axes[i], shown, strict=True):
                (row,) = picked(rows, rate_gbps=rate, system=system)
                line = picked(times, rate_gbps=rate, system=system)
                rights.append(burst_panel(ax, line, row["burst_us"]))
                ax.set_title(f"{NAMES[system]}, {rate:g} Gbps")
            from_zero(axes[i], HEADROOM)
            level_right(rights)
            axes[i][0].set_ylabel("write-backs [MTPS]")
        for ax in axes[-1]:
            ax.set_xlabel("time in the burst [µs]")
        return finished(fig, title, [axes[0][0], *fig.axes])

    return draw


# Phases are marked above the curves.
HEADROOM = 1.3


def from_zero(axes: Sequence[Axes], room: float = 1.06) -> None:
    """One scale for all `axes`, from zero to `room` times the largest value drawn."""
    lines = [drawn for ax in axes for drawn in ax.lines if drawn.get_transform() == ax.transData]
    values: list[float] = [y for drawn in lines for y in np.asarray(drawn.get_ydata())]
    top = max(values, default=0.0)
    for ax in axes:
        ax.set_ylim(0, room * top if top > 0 else 1.0)


def level_right(rights: Sequence[Axes | None]) -> None:
    """One scale for all right axes of a row, with numbers at the last axis."""
    there = [r for r in rights if r is not None]
    top = max((r.get_ylim()[1] for r in there), default=1.0)
    for r in there:
        r.set_ylim(0, HEADROOM * top)
        r.spines["right"].set_visible(True)
        r.tick_params(labelright=r is there[-1])
    if there:
        there[-1].set_ylabel("DMA requests [MTPS]")


def _fig5(frame: pl.DataFrame, tables: Tables) -> Figure:
    rows, times = frame.to_dicts(), tables["idio_fig5_timeline"].to_dicts()
    fig = new_figure(9.6, 5.6)
    top, bottom = fig.subplots(2, 1)
    overview = sorted(picked(times, case="overview"), key=lambda r: r["t_us"])
    over_time(top, overview, overview[0]["t_us"], scale=1e-3, dma=False)
    top.set(title="(a) three bursts", xlabel="time [ms]", ylabel="write-backs [MTPS]")
    (row,) = picked(rows, case="zoom")
    level_right([burst_panel(bottom, picked(times, case="zoom"), row["burst_us"])])
    bottom.set(title="(b) one of them", xlabel="time in the burst [µs]", ylabel="write-backs [MTPS]")
    from_zero([top])
    from_zero([bottom], HEADROOM)
    return finished(fig, "Fig. 5: TouchDrop under DDIO, bursts at 100 Gbps", fig.axes)


def _fig13(frame: pl.DataFrame, tables: Tables) -> Figure:
    rows, times = frame.to_dicts(), tables["idio_fig13_timeline"].to_dicts()
    fig = new_figure(10.4, 3.4)
    *left, right = fig.subplots(1, 3)
    for ax, system in zip(left, ("ddio", "idio"), strict=True):
        line = sorted(picked(times, case="steady", system=system), key=lambda r: r["t_us"])
        if line:
            over_time(ax, line, line[0]["t_us"], scale=1e-3, dma=False)
        ax.set(title=f"{NAMES[system]}, 10 Gbps each", xlabel="time [ms]", ylabel="write-backs [MTPS]")
    from_zero(left)
    onset = sorted(picked(rows, case="onset"), key=lambda r: r["core_gbps"])
    right.plot(
        [r["core_gbps"] for r in onset],
        [100 * (r["drop_rate"] or 0) for r in onset],
        color=LLC,
        marker="o",
        markersize=4,
    )
    mark(right, "idio.c.fig13.drop_onset")
    right.set(title="DDIO by rate", xlabel="rate of a core [Gbps]", ylabel="packets dropped [%]")
    return finished(fig, "Fig. 13: TouchDrop at a constant rate", left)


def mark(ax: Axes, claim: str) -> None:
    """A dashed line at the paper's value on the x axis."""
    from ..scoreboard import shipped

    for c in shipped():
        if c.id == claim:
            ax.axvline(c.expected, color="#C00000", linestyle=(0, (3, 2)), linewidth=1.2, label=f"paper {c.expected:g}")
            ax.legend(loc="best")


def _elsewhere(row: Row) -> float:
    """Number of lines of receive buffers that are in no cache."""
    whole = row["n"] * row["ring"] * -(-row["packet_bytes"] // 64)
    lines: float = max(whole - row["rx_mlc"] - row["rx_ddio"] - row["rx_llc"], 0)
    return lines


def _fig3(frame: pl.DataFrame, tables: Tables) -> Figure:
    times = picked(tables["idio_fig3_timeline"].to_dicts(), case="residency")
    apps = present(times, "app", ("touchdrop", "l2fwd"))
    fig = new_figure(4.6 * len(apps) + 1.4, 3.2)
    axes = fig.subplots(1, len(apps), sharey=True, squeeze=False)[0]
    for ax, app in zip(axes, apps, strict=True):
        line = [{**r, "elsewhere": _elsewhere(r)} for r in sorted(picked(times, app=app), key=lambda r: r["t_us"])]
        t = [r["t_us"] - line[0]["t_us"] for r in line]
        ax.stackplot(
            t,
            *([r[place] for r in line] for place, _, _ in PLACES),
            labels=[p[1] for p in PLACES],
            colors=[p[2] for p in PLACES],
        )
        ax.set(title="TouchDrop" if app == "touchdrop" else "L2Fwd", xlabel="time [µs]")
        ax.margins(x=0)
    axes[0].set_ylabel("lines of receive buffers")
    return finished(fig, "Fig. 3: where ring buffers are under DDIO, rings of 256", axes)


# --- Bars -----------------------------------------------------------------------------------------------------------


def clusters(ax: Axes, groups: Sequence[str], bars: Mapping[str, tuple[str, Sequence[float | None]]]) -> None:
    """Bars side by side in each group: `bars` maps each label to its colour and a value per group. A missing value
    leaves a gap."""
    width = 0.8 / max(len(bars), 1)
    for i, (label, (colour, values)) in enumerate(bars.items()):
        x = [g + (i - (len(bars) - 1) / 2) * width for g, v in enumerate(values) if v is not None]
        ax.bar(
            x, [v for v in values if v is not None], width, color=colour, label=label, edgecolor="white", linewidth=0.4
        )
    ax.set_xticks(range(len(groups)), groups)
    ax.grid(axis="x", visible=False)


def _relative(
    title: str, systems: Sequence[str], scenario: str, more: Sequence[tuple[str, str]] = ()
) -> Callable[..., Figure]:
    def draw(frame: pl.DataFrame, tables: Tables) -> Figure:
        rows = picked(frame.to_dicts(), scenario=scenario)
        if scenario == "corun":
            timed = {(r["rate_gbps"], r["system"]): r["burst_rel"] for r in picked(rows, case="period")}
            rows = [{**r, "burst_rel": timed[r["rate_gbps"], r["system"]]} for r in picked(rows, case="burst")]
        rates = sorted({r["rate_gbps"] for r in rows}, reverse=True)
        columns = (*BARS, *more)
        fig = new_figure(8.6, 2.1 * len(rates) + 0.6)
        axes = fig.subplots(len(rates), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
        for ax, rate in zip(axes, rates, strict=True):
            at = {r["system"]: r for r in picked(rows, rate_gbps=rate)}
            clusters(
                ax,
                [label for _, label in columns],
                {NAMES[s]: (COLOURS[s], [at[s][c] for c, _ in columns]) for s in systems if s in at},
            )
            ax.axhline(1.0, color="#333333", linewidth=0.8)
            ax.set(title=f"{rate:g} Gbps", ylabel="over DDIO")
        return finished(fig, title, axes[:1])

    return draw


def _fig12(frame: pl.DataFrame, tables: Tables) -> Figure:
    rows = frame.to_dicts()
    rates = sorted({r["rate_gbps"] for r in rows}, reverse=True)
    bars = (
        ("solo", "ddio", "#BBDDF1"),
        ("solo", "idio", "#7FCFB6"),
        ("corun", "ddio", "#3A93CE"),
        ("corun", "idio", "#009E73"),
    )
    fig = new_figure(9.0, 3.4)
    for ax, (column, label) in zip(
        fig.subplots(1, 2), (("lat_p50_us", "median"), ("lat_p99_us", "99th percentile")), strict=True
    ):
        base = {rate: picked(rows, scenario="solo", system="ddio", rate_gbps=rate)[0][column] for rate in rates}
        at = {(r["scenario"], r["system"], r["rate_gbps"]): r[column] for r in rows}
        clusters(
            ax,
            [f"{rate:g} Gbps" for rate in rates],
            {
                f"{NAMES[s]} {'alone' if sc == 'solo' else 'beside the antagonist'}": (
                    colour,
                    [over(at.get((sc, s, rate)), base[rate]) for rate in rates],
                )
                for sc, s, colour in bars
            },
        )
        ax.axhline(1.0, color="#333333", linewidth=0.8)
        ax.set(title=f"latency, {label}", ylabel="over DDIO alone")
    return finished(fig, "Fig. 12: latency of TouchDrop", fig.axes)


def over(value: float | None, base: float | None) -> float | None:
    return value / base if value is not None and base else None


def _fig14(frame: pl.DataFrame, tables: Tables) -> Figure:
    rows = picked(frame.to_dicts(), system="idio")
    rates = sorted({r["rate_gbps"] for r in rows}, reverse=True)
    fig = new_figure(3.1 * len(rates) + 1.8, 3.2)
    axes = fig.subplots(1, len(rates), sharey=True, squeeze=False)[0]
    colours, markers = ("#0072B2", "#B5400A", "#E69F00", "#8C8C8C", "#2B2B2B"), "osD^v"
    for ax, rate in zip(axes, rates, strict=True):
        line = sorted(picked(rows, rate_gbps=rate), key=lambda r: r["thr_mtps"])
        for (column, label), colour, marker in zip(BARS, colours, markers, strict=True):
            points = [(r["thr_mtps"], r[column]) for r in line if r[column] is not None]
            if points:
                ax.plot(*zip(*points, strict=True), color=colour, marker=marker, markersize=4, label=label)
        ax.set(title=f"{rate:g} Gbps", xlabel="threshold [MTPS]")
        ax.axhline(1.0, color="#333333", linewidth=0.8)
    from_zero(axes)
    axes[0].set_ylabel("IDIO over DDIO")
    return finished(fig, "Fig. 14: the threshold of the MLC's pressure", axes)


# --- The server of section III --------------------------------------------------------------------------------------

LEVELS = {"low": "8 Mbps", "med": "1 Gbps", "high": "20 Gbps"}
SHADES = {"low": "#A6D5F2", "med": "#3A93CE", "high": "#0F5F92"}


def _fig4(frame: pl.DataFrame, tables: Tables) -> Figure:
    rows = frame.to_dicts()
    loads = picked(rows, case="loads")
    rings = sorted({r["ring"] for r in loads})
    fig = new_figure(11.6, 6.2)
    (wb, inval, knee), (dram_all, dram_one, dram_read) = fig.subplots(2, 3)
    panels = (
        (wb, "mlc_wb_per_rx", "all", "MLC write-backs"),
        (inval, "mlc_inval_per_rx", "all", "MLC invalidations"),
        (dram_all, "dram_wr_per_rx", "all", "DRAM writes, all ways"),
        (dram_one, "dram_wr_per_rx", "1", "DRAM writes, one way"),
        (dram_read, "dram_rd_per_rx", "1", "DRAM reads, one way"),
    )
    for ax, column, ways, title in panels:
        at = {(r["ring"], r["level"]): r[column] for r in picked(loads, app_ways=ways)}
        clusters(
            ax,
            [str(n) for n in rings],
            {LEVELS[level]: (SHADES[level], [at.get((n, level)) for n in rings]) for level in LEVELS},
        )
        ax.set(title=title, xlabel="ring", ylabel="bytes over received bytes")
    line = sorted(picked(rows, case="rings"), key=lambda r: r["ring"])
    knee.plot([r["ring"] for r in line], [r["mlc_wb_per_rx"] for r in line], color=MLC, marker="o", markersize=4)
    knee.set(title="MLC write-backs, one function", xlabel="ring", ylabel="bytes over received bytes")
    knee.set_ylim(bottom=0)
    mark(knee, "idio.c.fig4.mlc_capacity_knee")
    return finished(fig, "Fig. 4: TouchDrop on ten cores of a server under DDIO", [wb])


# --- Policies side by side ------------------------------------------------------------------------------------------

APPS = {"kvs": "KVS", "l3fwd": "L3fwd", "touchdrop": "TouchDrop", "l2fwd": "L2Fwd"}
MEASURES = (
    ("throughput_mrps", "throughput [Mrps]"),
    ("lat_p99_us", "p99 latency [µs]"),
    ("acc_total", "DRAM lines per packet"),
    ("t1_cpi", "co-runner's CPI"),
)


def _policies(frame: pl.DataFrame, tables: Tables) -> Figure:
    rows = [r for r in frame.to_dicts() if r["share"] is not None]
    apps, systems = present(rows, "app", list(APPS)), present(rows, "system", ("ddio", "sweeper", "idio", "idio-tx"))
    fig = new_figure(2.9 * len(apps) + 1.6, 2.1 * len(MEASURES) + 0.6)
    axes = fig.subplots(len(MEASURES), len(apps), sharex=True, squeeze=False)
    for i, (column, label) in enumerate(MEASURES):
        for ax, app in zip(axes[i], apps, strict=True):
            for system, marker in zip(systems, "osD^", strict=False):
                points = sorted(
                    (100 * r["share"], r[column]) for r in picked(rows, app=app, system=system) if r[column] is not None
                )
                if points:
                    ax.plot(
                        *zip(*points, strict=True),
                        color=COLOURS[system],
                        marker=marker,
                        markersize=4.5,
                        linewidth=1.4,
                        label=NAMES[system],
                    )
            if column == "lat_p99_us":
                ax.set_yscale("log")
                low, high = ax.get_ylim()
                ax.yaxis.set_major_formatter(lambda v, _: f"{v:g}")
                # Powers of ten, and two and five times these where there are few.
                wide = high / low > 30
                ax.yaxis.set_minor_formatter(
                    lambda v, _, wide=wide: f"{v:g}" if not wide and f"{v:.0e}"[0] in "25" else ""
                )
            else:
                from_zero([ax])
        axes[i][0].set_ylabel(label)
    for ax, app in zip(axes[0], apps, strict=True):
        ax.set_title(APPS[app])
    for ax in axes[-1]:
        ax.set_xlabel("load [% of DDIO's capacity]")
    return finished(fig, "Four placement policies, eight cores beside an LLC-bound neighbour", axes.flat)


def finished(fig: Figure, title: str, axes: Iterable[Axes]) -> Figure:
    """`fig` with its title and one legend of everything that `axes` show."""
    fig.suptitle(title, fontweight="bold")
    seen: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            seen.setdefault(label, handle)
    fig.legend(seen.values(), seen.keys(), loc="outside right upper")
    return fig


_EVALUATED = ("ddio", "inval", "pref", "static", "idio")

DRAWINGS: dict[str, Callable[[Any, Any], Any]] = {
    "idio_fig3": _fig3,
    "idio_fig4": _fig4,
    "idio_fig5": _fig5,
    "idio_fig9": _grid("idio_fig9", "Fig. 9: TouchDrop, a burst over time", _EVALUATED),
    "idio_fig10": _relative("Fig. 10: a burst's transactions and time, two functions alone", _EVALUATED, "solo"),
    "idio_fig10corun": _relative(
        "Fig. 10: the same beside the antagonist", ("ddio", "idio"), "corun", (("cpi_rel", "antagonist's CPI"),)
    ),
    "idio_fig11": _grid("idio_fig11", "Fig. 11: L2Fwd, a burst over time", ("ddio", "idio")),
    "idio_fig12": _fig12,
    "idio_fig13": _fig13,
    "idio_fig14": _fig14,
    "idio_policies": _policies,
}
