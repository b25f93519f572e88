"""The figures of "Understanding the Host Network" (SIGCOMM'24), from its study tables; red crosses are the paper's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .hostnetwork_panels import (
    C2M,
    P2M,
    PAPER,
    TERMS,
    Panel,
    bandwidth,
    cause,
    cross,
    degradations,
    error_bars,
    finished,
    line,
    over_cores,
    paper,
    rows_of,
    stack,
)
from .style import new_figure

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

_TITLES = {
    1: "1: C2M-Read, P2M-Write",
    2: "2: C2M-Read, P2M-Read",
    3: "3: C2M-ReadWrite, P2M-Write",
    4: "4: C2M-ReadWrite, P2M-Read",
}


def quadrants(title: str, figure: str) -> Callable[..., Figure]:
    def draw(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
        fig = new_figure(14.4, 6.4)
        top, bottom = fig.subplots(2, 4, sharex=True, sharey="row")
        for q, upper, lower in zip(_TITLES, top, bottom):
            rows = rows_of(frame, run="colo", quadrant=q)
            line(upper, rows, "degr_c2m", color=C2M, marker="o", label="C2M")
            line(upper, rows, "degr_p2m", color=P2M, marker="s", label="P2M")
            cross(upper, paper(rf"{figure}\.q{q}-(?:c2m|p2m)-n(\d)"))
            upper.set_title(_TITLES[q])
            bandwidth(lower, rows, paper(rf"{figure}\.bw-q{q}-n(\d)"))
        return degradations(fig, title, top, bottom)

    return draw


def _latencies(title: str, curves: Sequence[tuple[str, str, str, str]]) -> Callable[..., Figure]:
    """Lines over cores; a curve is (column, label, colour, pattern of the paper's points)."""

    def draw(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
        fig = new_figure(7.6, 4.4)
        ax = fig.subplots()
        rows = sorted(frame.to_dicts(), key=lambda r: r["n"])
        for (column, label, colour, pattern), marker in zip(curves, "osD"):
            line(ax, rows, column, color=colour, marker=marker, label=label)
            cross(ax, paper(pattern))
        ax.set(ylabel="latency [ns]", title=title)
        over_cores(ax)
        ax.set_ylim(bottom=0)
        return finished(fig, None, [ax])

    return draw


# Panels of the root-cause figures: column, label, factor, and the paper's points with and without the device.
_LFB = ("lfb_lat_ns", "C2M latency [ns]", 1.0)
_RPQ = ("rpq_occ", "RPQ occupancy per channel", 1.0)
_ROWS = ("row_miss_ratio", "row misses [% of lines read]", 100.0)
_BANKS = ("bank_dev_15_frac", "a bank at 1.5 x mean [% of samples]", 100.0)
_IIO = ("iio_write_lat_ns", "P2M write latency [ns]", 1.0)
_WPQ = ("wpq_full_frac", "time the WPQ is full [%]", 100.0)
_CREDITS = ("iio_write_occ", "IIO write credits in use", 1.0)
_INFLIGHT = ("cha_p2m_read_occ", "P2M reads in flight at the CHA", 1.0)


def causes(title: str, quadrant: int, panels: Sequence[Panel]) -> Callable[..., Figure]:
    return root_causes(title, panels, [{"run": run, "quadrant": quadrant} for run in ("colo", "iso-c2m", "iso-p2m")])


def root_causes(
    title: str,
    panels: Sequence[Panel],
    runs: Sequence[Mapping[str, Any]],
    other: str = "P2M",
    xlabel: str = "C2M cores",
) -> Callable[..., Figure]:
    """Panels over cores; `runs` names the rows with both kinds of traffic, with cores alone, and with the `other`
    traffic alone."""

    def draw(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
        columns = min(len(panels), 4)
        lines = -(-len(panels) // columns)
        fig = new_figure(3.2 * columns + 1.4, 0.9 + 2.7 * lines)
        axes = list(fig.subplots(lines, columns, squeeze=False).flat)
        rows = [rows_of(frame, **match) for match in runs]
        for ax, panel in zip(axes, panels):
            cause(ax, panel, rows, other, xlabel)
        for ax in axes[len(panels) :]:
            ax.set_visible(False)
        return finished(fig, title, axes[: len(panels)])

    return draw


def errors(title: str, figure: str) -> Callable[..., Figure]:
    def draw(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
        fig = new_figure(14.4, 3.8)
        axes = fig.subplots(1, 4, sharey=True)
        bars = (
            ("c2m_err_pct", "C2M", C2M),
            ("c2m_err_adm_pct", "C2M with CHA admission", "#A6D5F2"),
            ("p2m_err_pct", "P2M", P2M),
            ("p2m_err_adm_pct", "P2M with CHA admission", "#F7D08A"),
        )
        for q, ax in zip(_TITLES, axes):
            rows = rows_of(frame, run="colo", quadrant=q)
            shown = [
                (c if q != 4 or c != "c2m_err_pct" else "c2m_err_adj_pct", label, colour)
                for c, label, colour in bars
                if any(r.get(c) is not None for r in rows)
            ]
            error_bars(ax, rows, shown, 0.2)
            cross(ax, paper(rf"{figure}\.q{q}p?-n(\d)"))
            ax.set_title(_TITLES[q] + (" (adjusted)" if q == 4 else ""))
            over_cores(ax)
        axes[0].set_ylabel("estimated / measured throughput - 1 [%]")
        return finished(fig, title, axes)

    return draw


def components(title: str) -> Callable[..., Figure]:
    def draw(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
        fig = new_figure(14.4, 4.0)
        axes = fig.subplots(1, 5)
        panels = [*((q, "c2m", f"{q}: C2M") for q in _TITLES), (3, "p2m", "3: P2M")]
        for ax, (q, side, panel) in zip(axes, panels):
            rows = rows_of(frame, run="colo", quadrant=q)
            # The paper draws admission in quadrant 3 only, and quadrant 4 with the corrected occupancy.
            adjusted = {"write_hol_ns": "adj_write_hol_ns", "read_hol_ns": "adj_read_hol_ns"} if q == 4 else {}
            stack(
                ax,
                rows,
                [
                    (f"{side}_{adjusted.get(t, t)}", label, colour)
                    for t, label, colour in TERMS
                    if q == 3 or t != "admission_ns"
                ],
            )
            ax.set_title(panel)
            over_cores(ax)
        axes[0].set_ylabel("latency beyond unloaded [ns]")
        return finished(fig, title, axes)

    return draw


def _credits(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
    fig = new_figure(12.0, 3.8)
    panels = (
        ("lfb_occ", "lfb_credits", "LFB entries in use per core", (1, 2, 3, 4)),
        ("iio_write_occ", "iio_write_credits", "IIO write credits in use", (1, 3)),
        ("iio_read_occ", "iio_read_credits", "IIO read credits in use", (2, 4)),
    )
    axes = fig.subplots(1, 3)
    for ax, (column, limit, title, quadrants) in zip(axes, panels):
        for q, colour, marker in zip((1, 2, 3, 4), (C2M, "#009E73", "#B5400A", "#2B2B2B"), "osD^"):
            if q in quadrants:
                line(
                    ax,
                    rows_of(frame, run="colo", quadrant=q),
                    column,
                    color=colour,
                    marker=marker,
                    label=f"quadrant {q}",
                )
        credits = next((r[limit] for r in frame.to_dicts() if r.get(limit)), None)
        if credits:
            ax.axhline(credits, color=PAPER, linestyle=":", linewidth=1.2, label="credits")
        ax.set_title(title)
        over_cores(ax)
        ax.set_ylim(bottom=0)
    return finished(fig, "Credits in use", axes)


def _variation(frame: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> Figure:
    fig = new_figure(7.2, 4.0)
    ax = fig.subplots()
    counters = ("c2m_gbs", "p2m_gbs", "lfb_lat_ns", "rpq_occ", "act_read", "pre_conflict", "iio_write_occ")
    groups: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for r in frame.to_dicts():
        groups.setdefault((r["quadrant"], r["n"]), []).append(r)
    for i, counter in enumerate(counters):
        for rows in groups.values():
            values = [r[counter] for r in rows if r.get(counter) is not None]
            if values and sum(values):
                spread = 100 * (max(values) - min(values)) * len(values) / sum(values)
                ax.plot(i, spread, marker="o", color=C2M, alpha=0.4, markersize=4)
    ax.axhline(1.5, color=PAPER, linestyle=":", label="paper: below 1.5 %")
    ax.set_xticks(range(len(counters)), [c.replace("_", " ") for c in counters], rotation=20)
    ax.set(ylabel="largest minus smallest over seeds [% of mean]", title="Variation from run to run")
    ax.legend()
    return fig


WRITES = (
    (_LFB, r"{f}a\.lat-n(\d)"),
    (_RPQ, r"{f}b\.rpq-with(?:out)?-n(\d)"),
    (_ROWS, r"{f}c\.with(?:out)?-n(\d)"),
    (_BANKS, r"{f}d\.none-n(\d)"),
    (_IIO, r"{f}d?\.p2m-lat-n(\d)"),
    (_WPQ, r"{f}[ef]?\.wpq-n([2-6])"),
    (_CREDITS, r"{f}[fg]?\.(?:iio-)?n(\d)"),
)
READS = (
    (_LFB, r"{f}\.lat-n(\d)"),
    (_RPQ, r"{f}\.rpq-n(\d)"),
    (_ROWS, r"{f}\.rowmiss-n(\d)"),
    (_INFLIGHT, r"{f}\.inflight-n(\d)"),
)


def of(figure: str, panels: Sequence[Panel]) -> list[Panel]:
    return [(panel, pattern.replace("{f}", figure)) for panel, pattern in panels]


DRAWINGS: dict[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    "hostnetwork_fig3": quadrants("Fig. 3: degradation and memory bandwidth by quadrant", "fig3"),
    "hostnetwork_fig6a": _latencies(
        "Fig. 6a: C2M-Read alone",
        (
            ("lfb_lat_ns", "LFB latency", C2M, r"fig6a\.lfb-n(\d)"),
            ("cha_dram_read_c2m_ns", "CHA to DRAM, read", "#009E73", r"fig6a\.cha-n(\d)"),
        ),
    ),
    "hostnetwork_fig6b": _latencies(
        "Fig. 6b: C2M-ReadWrite alone",
        (
            ("lfb_lat_ns", "LFB latency", C2M, r"fig6b\.lfb-n(\d)"),
            ("cha_dram_read_c2m_ns", "CHA to DRAM, read", "#009E73", r"fig6b\.cha-n(\d)"),
            ("cha_mc_write_c2m_ns", "CHA to MC, write", "#B5400A", r"fig6b\.chamc-n(\d)"),
        ),
    ),
    "hostnetwork_fig6cd": _latencies(
        "Fig. 6c: one P2M write of 4 KB at a time beside C2M-ReadWrite",
        (
            ("iio_write_lat_ns", "IIO latency", P2M, r"fig6c\.iio-n(\d)"),
            ("cha_mc_write_p2m_ns", "CHA to MC, write", "#B5400A", r"fig6c\.chamc-n(\d)"),
        ),
    ),
    "hostnetwork_credits": _credits,
    "hostnetwork_fig7": causes("Fig. 7: quadrant 1", 1, of("fig7", WRITES)),
    "hostnetwork_fig8": causes("Fig. 8: quadrant 3", 3, of("fig8", WRITES)),
    "hostnetwork_fig13": causes("Fig. 13: quadrant 2", 2, of("fig13", READS)),
    "hostnetwork_fig14": causes("Fig. 14: quadrant 4", 4, of("fig14", READS)),
    "hostnetwork_fig11": errors("Fig. 11: error of the formula", "fig11"),
    "hostnetwork_fig12": components("Fig. 12: components of the formula"),
    "hostnetwork_sec5_method": _variation,
}
