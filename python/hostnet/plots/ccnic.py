"""Plots of measurements of `ccnic-bench` and `compare.py` on a real machine; values are medians over repetitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .style import line_style, new_figure, style

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOUR = "#3A93CE"


def _settled(frame: pl.DataFrame) -> pl.DataFrame:
    """Rows without runs during which the CPUs were moved, if any other rows exist."""
    import polars as pl

    kept = frame.filter(pl.col("place") != "moved") if "place" in frame.columns else frame
    return frame if kept.is_empty() else kept


def _places(frame: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    if "place" not in frame.columns:
        return [("", frame)]
    return [(str(key[0]), part) for key, part in frame.partition_by("place", as_dict=True, maintain_order=True).items()]


def _variants(frame: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    """Label and table part of each variant at each placement of the CPUs."""
    return [
        (f"{variant}, {place}".rstrip(", "), one)
        for place, part in _places(frame)
        for (variant,), one in part.partition_by("variant", as_dict=True, maintain_order=True).items()
    ]


def _ends(frame: pl.DataFrame) -> tuple[int, int]:
    """The smallest and the largest number of outstanding packets."""
    windows = frame["window"].to_list()
    return min(windows), max(windows)


def _medians(frame: pl.DataFrame, keys: list[str], values: list[str]) -> pl.DataFrame:
    import polars as pl

    return frame.group_by(keys, maintain_order=True).agg(pl.col(v).median() for v in values)


def _bars(ax: Axes, names: list[str], values: list[float | None], label: str) -> None:
    widths = [v or 0.0 for v in values]
    written = ["not measured" if v is None else f"{v:.4g}" for v in values]
    ax.bar_label(ax.barh(range(len(names)), widths, 0.7, color=_COLOUR), written, padding=3, fontsize=8)
    ax.set_xlabel(label)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="y", visible=False)
    ax.margins(x=0.2)


def compare(frame: pl.DataFrame) -> Figure:
    """Interfaces side by side: rate with the widest window, round-trip time with the narrowest, for each size and
    placement."""
    import polars as pl

    frame = _settled(frame)
    # Tables of earlier versions contain only 4 KiB pages and have no column for the page size.
    frame = frame if "pages" in frame.columns else frame.with_columns(pl.lit("4K").alias("pages"))
    with style():
        groups = frame.partition_by(["place", "pages", "size_bytes"], as_dict=True, maintain_order=True)
        rows = max(len(g.select("mode", "contender").unique()) for g in groups.values())
        fig = new_figure(11.0, (0.9 + 0.27 * rows) * len(groups) + 0.3)
        for axes, ((place, pages, size), part) in zip(fig.subplots(len(groups), 3, squeeze=False), groups.items()):
            m = _medians(part, ["mode", "contender", "window"], ["mpps", "lat_min_ns", "lat_p50_ns"])
            least, most = _ends(m)
            wide = m.filter(pl.col("window") == most).sort("mode", "mpps", descending=[True, True])
            one = wide.select("mode", "contender").join(
                m.filter(pl.col("window") == least),
                on=["mode", "contender"],
                how="left",
                maintain_order="left",
            )
            names = [f"{c}, {mode}" for mode, c in wide.select("mode", "contender").rows()]
            _bars(axes[0], names, wide["mpps"].to_list(), f"rate, {most} in flight [Mpps]")
            for ax, column, what in ((axes[1], "lat_p50_ns", "median"), (axes[2], "lat_min_ns", "minimum")):
                _bars(ax, names, one[column].to_list(), f"{what} round trip, {least} in flight [ns]")
                ax.set_yticklabels([])
            axes[0].set_title(f"{size} B, {pages} pages, CPUs {place}")
        return fig


def loopback(frame: pl.DataFrame) -> Figure:
    """Latency over throughput as the window grows, one panel per packet size."""
    import polars as pl

    frame = _settled(frame)
    with style():
        sizes = frame["size_bytes"].unique().sort().to_list()
        fig = new_figure(3.1 * len(sizes), 3.4)
        for ax, size in zip(fig.subplots(1, len(sizes), squeeze=False)[0], sizes):
            for i, (label, one) in enumerate(_variants(frame.filter(pl.col("size_bytes") == size))):
                line = _medians(one, ["window"], ["gbps", "lat_p50_ns"]).sort("window")
                ax.plot(line["gbps"], line["lat_p50_ns"], label=label, **line_style(i))
            ax.set(xlabel="throughput [Gb/s]", yscale="log", title=f"{size} B", xlim=(0, None))
        fig.axes[0].set_ylabel("median round trip [ns]")
        fig.legend(*fig.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
        return fig


def batch(frame: pl.DataFrame) -> Figure:
    """Rate over the burst size of one direction, with the largest burst size in the other (Fig. 16)."""
    import polars as pl

    frame = _settled(frame)
    with style():
        fig = new_figure(8.0, 3.4)
        for ax, (experiment, column, name) in zip(
            fig.subplots(1, 2, sharey=True), (("fig16a", "tx_batch", "TX"), ("fig16b", "rx_batch", "RX"))
        ):
            for i, (label, one) in enumerate(_variants(frame.filter(pl.col("experiment") == experiment))):
                line = _medians(one, [column], ["mpps"]).sort(column)
                ax.plot(line[column], line["mpps"], label=label, **line_style(i))
            ax.set_xscale("log", base=2)
            ax.xaxis.set_major_formatter(lambda v, _: f"{v:g}")
            ax.set(xlabel=f"{name} burst", title=f"{name} burst size", ylim=(0, None))
        fig.axes[0].set_ylabel("rate [Mpps]")
        fig.legend(*fig.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
        return fig


def variants(frame: pl.DataFrame) -> Figure:
    """One bar per variant (Figs. 14 and 15 and other comparisons of variants): rate and round-trip time."""
    import polars as pl

    frame = _settled(frame)
    with style():
        places = _places(frame)
        # Sizes and windows that differ only between the two measurements are not variants.
        sized = frame["size_bytes"].n_unique() > 1
        keys = ["variant", *(["size_bytes"] if sized else [])]
        fig = new_figure(9.6, sum(0.9 + 0.3 * len(p.select(keys).unique()) for _, p in places) + 0.3)
        for axes, (place, part) in zip(fig.subplots(len(places), 2, squeeze=False), places):
            m = _medians(part, [*keys, "window"], ["mpps", "lat_p50_ns"])
            least, most = _ends(m)
            wide, narrow = (m.filter(pl.col("window") == w) for w in (most, least))
            for ax, part_of, column, label in (
                (axes[0], wide, "mpps", f"rate, {most} in flight [Mpps]"),
                (axes[1], narrow, "lat_p50_ns", f"median round trip, {least} in flight [ns]"),
            ):
                names = [
                    ", ".join(f"{v} B" if isinstance(v, int) else str(v).replace("_", " ") for v in row)
                    for row in part_of.select(keys).rows()
                ]
                _bars(ax, names, part_of[column].to_list(), label)
            axes[0].set_title(
                " ".join([*frame["experiment"].unique(maintain_order=True), f"({place})" if place else ""])
            )
        return fig


def probe(frame: pl.DataFrame) -> Figure:
    """Times in one panel, rates in the other."""
    import polars as pl

    with style():
        units = frame["unit"].unique(maintain_order=True).to_list()
        fig = new_figure(
            4.8 * len(units), 0.9 + 0.32 * len(frame.select("experiment", "variant", "size_bytes").unique())
        )
        for ax, unit in zip(fig.subplots(1, len(units), squeeze=False)[0], units):
            m = _medians(frame.filter(pl.col("unit") == unit), ["experiment", "variant", "size_bytes"], ["value"])
            names = [
                f"{e}, {v.replace('_', ' ')}" + (f", {s >> 10} KiB" if s >= 1024 else "")
                for e, v, s in m.select("experiment", "variant", "size_bytes").rows()
            ]
            _bars(ax, names, m["value"].to_list(), f"{'time' if unit == 'ns' else 'rate'} [{unit}]")
            ax.set_title({"ns": "latency", "Gb/s": "streaming"}.get(unit, unit))
        return fig
