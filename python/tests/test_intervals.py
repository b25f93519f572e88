"""95 % intervals: how often they contain the truth, where they are shown, and runs that last until they are narrow enough."""

import json
import math
import re
import shlex
import statistics
from io import StringIO

import polars as pl
import pytest
from rich.console import Console
from shownpage import Page, prints

import hostnet as hn
from hostnet import intervals, replicate, show, studies
from hostnet.declared import metric_info, unit
from hostnet.plots import plot_sweep
from hostnet.report import write_report
from hostnet.report.swept import mean_of
from hostnet.runner import run_many

LEADING = [
    "throughput_mrps",
    "lat_mean_us",
    "lat_p50_us",
    "lat_p99_us",
    "service_mean_us",
    "mem_bw_gbs",
    "llc_miss_ratio",
]


@pytest.fixture
def short(tiny):
    return tiny.with_({"run.requests": 8000, "traffic.rate": "4 Mrps"})


@pytest.mark.long
def test_intervals_contain_the_mean_of_a_hundred_seeds_as_often_as_they_say(short):
    """The mean over the seeds is the truth, but for a tenth of an interval; of percentiles of latencies, which are whole
    nanoseconds, it is the median, as a mean lies between two of them. Of a hundred intervals of 95 %, 90 to 100 contain the
    truth; over all metrics together, 92 to 98.5 %, since percentiles are at most conservative."""
    runs = run_many(replicate.specs(short.resolve(), 100))
    held = {}
    for name in LEADING:
        average = statistics.median if name.startswith("lat_p") else statistics.fmean
        truth = average(r.metrics[name] for r in runs)
        found = [r.interval(name) for r in runs]
        held[name] = sum(i is not None and i[0] <= truth <= i[1] for i in found)
    assert all(90 <= n for n in held.values()), held
    assert 0.92 <= statistics.fmean(held.values()) / 100 <= 0.985, held


def test_an_interval_of_batches_is_as_wide_as_the_spread_of_seeds(short):
    runs = run_many(replicate.specs(short.resolve(), 40))
    for name in ("throughput_mrps", "lat_mean_us"):
        spread = 1.96 * statistics.stdev(r.metrics[name] for r in runs)
        half = statistics.fmean(intervals.half_width(r[name], r.interval(name)) for r in runs)
        assert 0.7 < half / spread < 1.6, (name, half, spread)


def test_seeds_give_means_and_student_s_intervals(short):
    """Of n runs the half-width is t(n - 1) s / sqrt(n), where t(3) = 3.1824 (table of Student's t)."""
    whole = hn.run(short, seeds=4)
    runs = [hn.run(short.with_({"seed": seed})) for seed in (1, 2, 3, 4)]
    values = [r.metrics["throughput_mrps"] for r in runs]
    assert whole["throughput_mrps"] == pytest.approx(statistics.fmean(values))
    half = 3.1824 * statistics.stdev(values) / math.sqrt(4)
    assert intervals.half_width(whole["throughput_mrps"], whole.interval("throughput_mrps")) == pytest.approx(
        half, rel=1e-4
    )
    own = [r["tenant.kvs.lat_p99_us"] for r in runs]
    assert whole["tenant.kvs.lat_p99_us"] == pytest.approx(statistics.fmean(own))
    assert whole.data["seeds"] == [1, 2, 3, 4]


def test_no_interval_over_seeds_leaves_the_range_of_its_metric(short):
    """Of three values 0, 0 and v, mean and standard error are v / 3, and t(2) = 4.3027 (table of Student's t)."""
    assert intervals.of_mean([0.0, 0.0, 0.03], "fraction") == (0.0, pytest.approx(0.01 + 4.3027 * 0.01, rel=1e-4))
    assert intervals.of_mean([1.0, 1.0, 0.97], "fraction") == (pytest.approx(0.99 - 4.3027 * 0.01, rel=1e-4), 1.0)
    assert intervals.of_mean([0.0, 0.0, 30.0], "us") == (0.0, pytest.approx(10 + 43.027, rel=1e-4))
    assert intervals.of_mean([-1.0, 1.0], "")[0] < 0, "a column of a study may be of either sign"
    rows = [{"loss_rate": v} for v in (0.0, 0.0, 0.03)]
    assert mean_of("loss_rate", rows).low == 0.0
    whole = hn.run(short, seeds=2)  # t(1) = 12.7: intervals are wide
    for name, (low, high) in intervals.of(whole.data).items():
        assert 0 <= low <= whole[name] <= high and (high <= 1 or unit(name) != "fraction"), name


def test_pages_and_tables_say_what_of_a_result_over_seeds_is_of_the_first_one(short, cli, tmp_path, capsys):
    whole, said = hn.run(short, seeds=3), "lost packets by cause and other tables are those of seed 1"
    whole.save(tmp_path / "r.json")
    write_report(tmp_path / "r.json", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "Numbers are means over seeds 1 to 3" in page and said in page and ">1 to 3<" in page
    assert any(said in note for note in hn.explain(whole).notes) and said in whole._repr_html_()
    show.metrics(whole)
    assert said in " ".join(capsys.readouterr().out.split())
    assert whole.to_frame()["seeds"].to_list() == [3] and "seeds" not in hn.run(short).to_frame().columns
    assert replicate.of_first(hn.run(short).data) is None


def test_what_depends_on_no_seed_keeps_the_intervals_of_one_run():
    closed = hn.Scenario("ccnic-upi").with_({"run.requests": 1000})
    one, whole = hn.run(closed), hn.run(closed, seeds=3)
    assert whole.metrics == one.metrics == hn.run(closed.with_({"seed": 2})).metrics
    assert intervals.of(whole.data) == intervals.of(one.data) != {}
    assert whole.warnings == [*one.warnings, "no metric depends on seed here, so that this is the result of one run"]


def test_what_happened_in_no_run_has_no_interval(short):
    """Runs without a lost packet do not say that none is ever lost."""
    whole = hn.run(short, seeds=2)
    assert whole["drop_rate"] == 0 and whole.interval("drop_rate") is None
    assert whole.interval("throughput_mrps") is not None


def test_warnings_of_several_seeds_are_said_once_with_their_seeds(short):
    runs = run_many(replicate.specs(short.resolve(), 3))
    said = [["filling: 0.5 %", "same"], ["same"], ["filling: 1,200.8 %", "same", "other"]]
    for run, warnings in zip(runs, said):
        run.data["warnings"] = warnings
    assert replicate.combined(runs).warnings == ["seeds 1 and 3, the first: filling: 0.5 %", "same", "seed 3: other"]


def test_a_search_and_a_maximum_have_what_is_known_and_no_more(short):
    result = hn.run(short)
    assert result.interval("lat_max_us") is None and result.interval("mem_peak_gbs") is None
    low, high = result.interval("tenant.kvs.throughput_mops")
    assert low < result["tenant.kvs.throughput_mops"] < high
    with pytest.raises(hn.HostnetError, match='there is no metric "lat_p98_us"'):
        result.interval("lat_p98_us")


def test_a_run_ends_when_its_metrics_are_precise_enough(short):
    """A quarter of the precision needs about sixteen times the requests, until run.requests is reached."""
    long = short.with_({"run.requests": 400_000, "run.precision_of": ["lat_mean_us"]})
    runs = {p: hn.run(long.with_({"run.precision": p})) for p in (0.02, 0.005)}
    for precision, result in runs.items():
        mean = result["lat_mean_us"]
        assert intervals.half_width(mean, result.interval("lat_mean_us")) <= precision * mean
        assert not any("is known to" in w for w in result.warnings)
    assert runs[0.02].measure_us < runs[0.005].measure_us < hn.run(short.with_({"run.requests": 400_000})).measure_us
    vain = hn.run(short.with_({"run.precision": 1e-5, "run.precision_of": ["lat_mean_us"]}))
    assert vain.measure_us == pytest.approx(hn.run(short).measure_us, rel=0.01)
    assert any(w.startswith("lat_mean_us is known to") and "run.requests" in w for w in vain.warnings)


def test_a_window_of_time_that_ends_early_is_sampled_as_a_whole_one():
    """Traffic of cores and devices repeats itself after microseconds, so that an eighth of a millisecond is enough."""
    whole = hn.Scenario("quadrant3").with_({"run.time": "1 ms"})
    short, long = hn.run(whole.with_({"run.precision": 0.05})), hn.run(whole)
    assert short.measure_us < 0.6 * long.measure_us
    assert short["mem_bw_gbs"] == pytest.approx(long["mem_bw_gbs"], rel=0.05)
    assert (short["llc_rx_lines"] is None) == (long["llc_rx_lines"] is None)
    assert len(short.table("timeline")) == len(long.table("timeline")) == 1


def test_a_window_stays_whole_where_nothing_is_known_of_what_is_asked_for():
    """Streams between two nodes return no packets, and devices that only write wait for no read."""
    streams = hn.Scenario("ccnic-stream").with_({"run.time": "8 us", "run.warmup_time": "1 us", "run.precision": 0.2})
    assert hn.run(streams.with_({"run.precision_of": ["throughput_mrps"]})).measure_us == pytest.approx(8, rel=0.01)
    writes = hn.Scenario("quadrant3").with_({"run.time": "64 us", "run.precision": 0.2})
    assert hn.run(writes).measure_us < 40
    asked = writes.with_({"run.precision_of": ["cha_p2m_read_occ"]})
    assert hn.run(asked)["cha_p2m_read_occ"] == 0
    assert hn.run(asked).measure_us == pytest.approx(64, rel=0.01)
    said = "none of run.precision_of (cha_p2m_read_occ) has a value other than 0 here, so that the window was measured whole"
    assert said in hn.run(asked).warnings and said not in hn.run(writes).warnings


@pytest.mark.parametrize("system", ["ccnic", "gem5net", "hostnetwork", "idio", "sweeper"])
def test_windows_of_studies_end_when_all_means_that_they_show_are_known(system):
    info = metric_info()
    for study in studies.of(system):
        points, _ = studies._built(study.points(quick=False))
        run = json.loads(studies._specs(points[:1], study)[0])["run"]
        means = {
            m for m in study.metrics if m in info and info[m]["statistic"] == "mean" and info[m]["group"] != "constants"
        }
        if "acc_total" in means:
            means -= {m for m in means if m.startswith("acc_")} - {"acc_total"}
        assert run["precision"] is None or means <= set(run["precision_of"]), study.figure


def test_wrong_precision_is_one_sentence(short, cli):
    for changes, why in [
        ({"run.precision": 2}, "run.precision = 2 is not above 0 and below 0.5; 0.02 stands for 2 %"),
        ({"run.precision_of": ["lat_mean_us"]}, "run.precision_of has no effect without run.precision"),
        (
            {"run.precision": 0.02, "run.precision_of": ["lat_mean"]},
            'there is no metric "lat_mean"; did you mean "lat_mean_us"',
        ),
        ({"run.precision": 0.02, "run.precision_of": ["lat_max_us"]}, "of which no interval is known"),
    ]:
        with pytest.raises(hn.SpecError, match="run.precision") as raised:
            short.with_(changes).resolve()
        assert why in str(raised.value)
    with pytest.raises(hn.HostnetError, match="seeds = 1 is not within 2 to 10,000"):
        hn.run(short, seeds=1)
    # None of these means whole windows, which "off" asks for.
    for command in (["run", "kvs"], ["study", "sweeper", "fig5"]):
        for value in ("0", "0%", "-2%", "200%", "nan"):
            refused = cli(*command, "--precision", value, check=2).stderr
            assert f"--precision {value} is not above 0 and below 50%" in refused and "or off" in refused


def test_tables_frames_and_plots_show_intervals(short, capsys, monkeypatch, cli, tmp_path):
    result = hn.run(short)
    show.metrics(result)
    line = next(x for x in capsys.readouterr().out.splitlines() if "throughput_mrps" in x)
    low, high = result.interval("throughput_mrps")
    assert f"±{max(high - result['throughput_mrps'], result['throughput_mrps'] - low):.2g}" in line
    frame = hn.sweep(short, {"placement.ways": [2, 4]}, ends=True)
    assert (frame["lat_p50_us_low"] <= frame["lat_p50_us"]).all()
    assert (frame["lat_p50_us_high"] >= frame["lat_p50_us"]).all()
    drawn = plot_sweep(frame, "placement.ways", "lat_p50_us").axes[0]
    assert len(drawn.collections) == 1, "one band"
    (tmp_path / "s.json").write_text(short.resolve())
    cli("sweep", str(tmp_path / "s.json"), "--vary", "placement.ways=2,4", "--out", "swept", check=0)
    kept = pl.read_parquet(tmp_path / "cwd" / "swept" / "sweep-intervals.parquet")
    assert set(kept["placement.ways"]) == {2, 4} and kept.filter(pl.col("low") > pl.col("high")).is_empty()


@pytest.mark.parametrize(
    ("value", "interval", "said"),
    [(10.0, (9.5, 10.5), "±0.5"), (10.0, (9.0, 10.5), "±1"), (5000.0, (4800.0, 5200.0), "±200"), (1.0, None, "")],
)
def test_a_half_width_has_two_digits(value, interval, said):
    assert intervals.text(value, interval) == said


def test_the_page_shows_what_its_command_prints(cli):
    page = Page("use/intervals.md")
    command = re.search(r"part of what `hostnet (run [^`]*)` prints", page.text)[1]
    printed = cli(*shlex.split(command), check=0).stdout
    # The page shortens the meanings.
    lines = [" ".join(re.split(" {2,}", line.strip())[:-1]) for line in page.blocks("text")[0].splitlines()]
    assert len(lines) == 5 and all(prints(printed, line) for line in lines), printed


def test_a_saved_result_keeps_its_intervals(short, tmp_path):
    result = hn.run(short)
    result.save(tmp_path / "r.json")
    assert hn.Result.load(tmp_path / "r.json").interval("lat_p99_us") == result.interval("lat_p99_us")
    data = json.loads((tmp_path / "r.json").read_text())
    data["intervals"]["lat_p99_us"] = "wide"
    (tmp_path / "r.json").write_text(json.dumps(data))
    with pytest.raises(hn.HostnetError, match="intervals is of another type"):
        hn.Result.load(tmp_path / "r.json")


def test_a_saved_result_over_seeds_runs_again_over_as_many(short, cli, tmp_path):
    whole, file = hn.run(short, seeds=3), tmp_path / "r.json"
    whole.save(file)
    again = hn.run(file)
    assert again.seeds == whole.seeds == [1, 2, 3] and again.metrics == whole.metrics
    assert hn.run(file, seeds=2).seeds == [1, 2] and hn.run(file, pcap=tmp_path / "p.pcap").seeds == [1]
    cli("run", file, "--out", "again", check=0)
    assert json.loads((cli.cwd / "again" / "result-0000.json").read_text())["seeds"] == [1, 2, 3]
    swept, mean = hn.sweep(file, {"placement.ways": [2]}), whole["throughput_mrps"]
    assert swept["throughput_mrps"].to_list() == [mean] and hn.run(short)["throughput_mrps"] != mean


def test_a_wide_table_stays_readable_at_80_columns(short, monkeypatch, capsys):
    monkeypatch.setattr(show, "console", lambda beyond=80: Console(width=80))
    show.metrics(hn.run(short))
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines if not line.startswith("constants")), lines
    assert any("throughput_mrps" in line and "±" in line for line in lines)


def test_the_number_of_points_with_warnings_is_said_once():
    """Each seed of the first point has a warning of its own."""
    base = {
        "spec": {},
        "metrics": {},
        "seed": 1,
        "version": "0",
        "wall_s": 0.0,
        "sim_us": 1.0,
        "warmup_us": 0.0,
        "measure_us": 1.0,
    }
    points = [hn.Result({**base, "warnings": said}) for said in (["66.6 % came", "63.1 % came"], [], ["9 % came"])]
    out = Console(record=True, width=200, file=StringIO())
    show.warnings(points, out)
    assert out.export_text().splitlines() == [
        "warning: 2 of 3 points have warnings; the first: 66.6 % came",
        "warning: the first as well: 63.1 % came",
    ]
    show.warnings(points[:1], out)
    assert out.export_text().splitlines() == ["warning: 66.6 % came", "warning: 63.1 % came"]
