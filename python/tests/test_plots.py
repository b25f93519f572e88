"""Plots: what is drawn is what the table holds, the paper's numbers stand where they belong, files are reproducible."""

from __future__ import annotations

import itertools
import math
import re

import paperhost
import paperworld
import polars as pl
import pytest
from matplotlib.colors import to_rgb

from hostnet import HostnetError, plots
from hostnet.plots import general
from hostnet.scoreboard import shipped

TABLES = paperworld.tables()
STUDIES = sorted(t for t in TABLES if not t.endswith("_events"))
HOST = paperhost.tables()
HOST_FIGURES = sorted(t for t in HOST if t in plots._DRAWINGS)


def axes(name: str, frame: pl.DataFrame | None = None, tables: dict[str, pl.DataFrame] | None = None):
    return plots.figure_of(name, TABLES[name] if frame is None else frame, tables).axes


def paper_marks(ax) -> list[float]:
    return [line.get_ydata()[0] for line in ax.lines if line.get_color() == "#C00000"]


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_is_drawn_as_png_and_svg_with_titles_and_labels(tmp_path, name):
    png, svg = plots.plot_study(name, TABLES[name], tmp_path)
    assert png.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and png.name == f"{name}.png"
    figure = plots.figure_of(name, TABLES[name])
    assert any(ax.get_title(loc="left") for ax in figure.axes) or figure.get_suptitle()
    assert all(ax.get_ylabel() or ax.get_xlabel() for ax in figure.axes)
    assert "<text" in svg.read_text(encoding="utf-8")  # letters stay letters: searchable and small


@pytest.mark.parametrize("name", HOST_FIGURES)
def test_every_figure_of_the_host_network_has_its_own_title_and_counts_whole_cores(name):
    figure = plots.figure_of(name, HOST[name], {t: f for t, f in HOST.items() if t.startswith(f"{name}_")})
    title = figure.get_suptitle() or figure.axes[0].get_title(loc="left")
    if number := re.search(r"_fig(\d+)[a-d]*$", name):
        assert re.match(rf"Fig. {number[1]}\D", title), title
    figure.draw_without_rendering()
    for ax in (a for a in figure.axes if "core" in a.get_xlabel()):
        assert all(float(x).is_integer() for x in ax.get_xticks()), (ax.get_title(loc="left"), ax.get_xticks())


def test_crosses_are_the_papers_numbers_beside_the_measured_ones():
    upper, lower = (plots.figure_of("hostnetwork_fig3", HOST["hostnetwork_fig3"]).axes[i] for i in (2, 6))
    together = HOST["hostnetwork_fig3"].filter(run="colo", quadrant=3).sort("n")
    drawn = {line.get_label(): list(line.get_ydata()) for line in upper.lines}
    assert drawn["C2M"] == together["degr_c2m"].to_list() and drawn["P2M"] == together["degr_p2m"].to_list()
    numbers = {c.id.rsplit(".", 1)[1]: c.expected for c in shipped() if c.id.startswith("hostnetwork.c.fig3.")}
    upper_crosses = [v for k, v in numbers.items() if re.fullmatch(r"q3-[cp]2m-n\d", k)]
    lower_crosses = [v for k, v in numbers.items() if re.fullmatch(r"bw-q3-n\d", k)]
    assert upper_crosses and sorted(drawn["paper"]) == sorted(upper_crosses)
    assert lower_crosses and sorted(next(x for x in lower.lines if x.get_label() == "paper").get_ydata()) == sorted(
        lower_crosses
    )


def test_equal_tables_make_equal_files(tmp_path):
    first, second = tmp_path / "a", tmp_path / "b"
    for folder in (first, second):
        folder.mkdir()
        plots.plot_study("sweeper_fig8", TABLES["sweeper_fig8"], folder)
    for suffix in ("png", "svg"):
        assert (first / f"sweeper_fig8.{suffix}").read_bytes() == (second / f"sweeper_fig8.{suffix}").read_bytes()


def test_bars_are_as_high_as_the_table_says():
    frame = TABLES["sweeper_fig5"]
    throughput, bandwidth, _ = axes("sweeper_fig5")
    assert sorted(b.get_height() for b in throughput.patches) == sorted(frame["throughput_mrps"])
    assert sorted(b.get_height() for b in bandwidth.patches) == sorted(frame["mem_bw_gbs"])


def test_the_stack_adds_up_to_all_accesses():
    frame = paperworld.tables()["sweeper_fig1"].filter(pl.col("load") == "peak_slo")
    tops: dict[float, float] = {}
    for bar in axes("sweeper_fig1")[2].patches:
        tops[bar.get_x()] = max(tops.get(bar.get_x(), 0.0), bar.get_y() + bar.get_height())
    assert sorted(tops.values()) == pytest.approx(sorted(frame["acc_total"]))


def test_only_the_points_at_own_peak_are_in_fig1():
    frame = TABLES["sweeper_fig1"]
    assert len(axes("sweeper_fig1")[0].patches) == frame.filter(pl.col("load") == "peak_slo").height < frame.height


def test_the_papers_factor_stands_on_the_measured_baseline():
    frame = TABLES["sweeper_fig5"]
    base = frame.filter(system="ddio", ways=2, buf=2048, item_bytes=1024)["throughput_mrps"][0]
    assert paper_marks(axes("sweeper_fig5")[0]) == pytest.approx([2.6 * base])
    shallow = TABLES["sweeper_fig10a"].filter(system="ddio", buf=128)["throughput_mrps"][0]
    assert paper_marks(axes("sweeper_fig10a")[0]) == pytest.approx([3.3 * shallow])


def test_the_papers_numbers_and_ours_stand_below_the_figure():
    halved = TABLES["sweeper_fig6_left"].with_columns(pl.col("throughput_mrps") / 2)
    text = plots.figure_of("sweeper_fig6_left", halved).get_supxlabel()
    assert "paper 26 Mrps, here 13 Mrps" in text and "paper 1.79x, here 1.79x" in text


def test_a_partial_table_is_still_drawn():
    one = TABLES["sweeper_fig5"].filter(system="ddio", ways=4, buf=1024, item_bytes=512)
    throughput, *_ = axes("sweeper_fig5", one)
    assert [b.get_height() for b in throughput.patches] == one["throughput_mrps"].to_list()
    assert paper_marks(throughput) == []


def test_missing_metrics_leave_a_gap():
    frame = TABLES["sweeper_fig5"].with_columns(
        pl.when(pl.col("ways") == 4).then(None).otherwise(pl.col("throughput_mrps")).alias("throughput_mrps")
    )
    assert len(axes("sweeper_fig5", frame)[0].patches) == frame["throughput_mrps"].count() < frame.height


def test_the_latency_curve_is_the_side_table():
    rows = [{"system": s, "ways": w, "latency_ns": x, "fraction": f} for s in ("ddio", "sweeper") for w in (2, 12)
            for x, f in ((50.0 + w, 0.25), (90.0 + w, 1.0))]  # fmt: skip
    (ax,) = axes("sweeper_fig6_left", tables={"sweeper_fig6_left_dram_latency_cdf": pl.DataFrame(rows)})
    curves = {line.get_label(): list(line.get_xdata()) for line in ax.lines if len(line.get_xdata()) == 2}
    assert curves["DDIO, 12 ways: mean 95 ns"] == [62.0, 102.0]
    assert curves["DDIO + Sweeper, 2 ways: mean 88 ns"] == [52.0, 92.0]


def test_without_the_side_table_the_curve_has_the_known_percentiles():
    (ax,) = axes("sweeper_fig6_left")
    row = TABLES["sweeper_fig6_left"].filter(system="ddio", ways=2).row(0, named=True)
    assert (row["dram_lat_p99_ns"], 0.99) in {tuple(p) for line in ax.lines for p in line.get_xydata()}


def test_fig6_right_shows_the_rate_that_the_paper_names():
    (ax,) = axes("sweeper_fig6_right")
    assert sum("mean" in str(line.get_label()) for line in ax.lines) == 4


def test_no_drops_lie_on_the_floor_of_a_logarithmic_axis():
    (ax,) = axes("sweeper_fig10b")
    assert ax.get_yscale() == "log"
    frame = TABLES["sweeper_fig10b"].filter(load="fixed")
    lowest = frame.filter(pl.col("drop_rate") > 0)["drop_rate"].min()
    drawn = [y for line in ax.lines for y in line.get_ydata()]
    assert 0 < min(drawn) < lowest and max(drawn) == pytest.approx(frame["drop_rate"].max())


def test_an_unknown_study_gets_bars_of_its_metrics():
    frame = pl.DataFrame({"system": ["ddio", "dma"], "load": ["none", "none"], "first_read_cycles": [57.0, None]})
    (ax,) = axes("mine_latency", frame)
    assert [b.get_width() for b in ax.patches] == [57.0, 0.0]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["DDIO", "DMA"]
    assert ax.get_xlabel() == "first read [cycles]"


def test_bars_are_told_apart_by_columns_that_few_studies_have():
    frame = pl.DataFrame(
        {
            "app": ["a", "a", "b", "b"],
            "clock_ghz": [1.0, 2.5, 1.0, 2.5],
            "quick": [True] * 4,
            "krps": [1e4, 2e4, 3e4, 4e4],
        }
    )
    figure = plots.figure_of("some_study", frame)
    labels = [t.get_text() for t in figure.axes[0].get_yticklabels()]
    assert labels == ["app a, clock_ghz 1", "app a, clock_ghz 2.5", "app b, clock_ghz 1", "app b, clock_ghz 2.5"]


def test_plot_sweep_draws_the_columns_it_is_told():
    frame = pl.DataFrame({"ways": [4, 2, 2, 4], "system": list("aabb"), "lat_p99_us": [3.0, 5.0, 7.0, 6.0]})
    (ax,) = plots.plot_sweep(frame, "ways", "lat_p99_us", "system").axes
    assert [(line.get_label(), line.get_xydata().tolist()) for line in ax.lines] == [
        ("a", [[2, 5.0], [4, 3.0]]),
        ("b", [[2, 7.0], [4, 6.0]]),
    ]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("DDIO ways", "lat p99 [µs]")


def test_plot_sweep_names_the_columns_there_are():
    with pytest.raises(HostnetError, match="no column 'way'; did you mean \"ways\""):
        plots.plot_sweep(pl.DataFrame({"ways": [1]}), "way", "ways")


# Machado, Oliveira and Fernandes (2009), severity 1.0, on linear RGB
BLINDNESS = {
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
}


@pytest.mark.parametrize("kind", BLINDNESS)
def test_colour_blind_readers_can_tell_the_access_classes_apart(kind):
    def seen(colour: str) -> list[float]:
        linear = [(c + 0.055) ** 2.4 / 1.055**2.4 if c > 0.04045 else c / 12.92 for c in to_rgb(colour)]
        mixed = [sum(m * c for m, c in zip(row, linear, strict=True)) for row in BLINDNESS[kind]]
        return [min(1.0, max(0.0, c)) ** (1 / 2.4) for c in mixed]

    colours = [c for _, c in plots.CLASS_COLOURS.values()]
    closest = min(math.dist(seen(a), seen(b)) for a, b in itertools.combinations(colours, 2))
    assert closest > 0.1  # a tenth of the side of the RGB cube


def test_the_axis_of_a_plot_reaches_to_the_ends_of_the_intervals():
    frame = pl.DataFrame({"x": [1, 2], "y": [1.0, 2.0], "y_low": [0.9, -0.5], "y_high": [1.1, 5.0]})
    (ax,) = general.plotted(frame, "x", ["y"], [], {}).axes
    low, high = ax.get_ylim()
    assert low < -0.5 and high > 5.0
