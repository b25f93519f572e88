"""Mixtures on a machine of one's own: their JSON, scenarios by hand, what the study computes, and its sentences."""

import json
import math
import os
from dataclasses import replace

import polars as pl
import pytest
from test_calibrate import made, stat

import hostnet as hn
from hostnet import HostnetError, calibrate, plots, studies
from hostnet.calibrate import curves, fitting, machine, measured, mixtures, programs
from hostnet.studies import real_here as here

MIXTURE = {
    "chasers": 1,
    "chases": 8,
    "threads": 2,
    "order": "random",
    "stores": 0.5,
    "ns": stat(12.5),
    "gbs": stat(20.0),
}
ALONE = {**MIXTURE, "chasers": 2, "chases": 4, "threads": 0, "order": "sequential", "stores": 0.0, "gbs": None}
REDIS = {
    "program": "redis-server",
    "threads": 0,
    "order": "sequential",
    "stores": 0.0,
    "ns": stat(2000.0),
    "slowdown": stat(1.0),
}
BESIDE = {**REDIS, "threads": 1, "stores": 1.0, "ns": stat(2100.0), "slowdown": stat(1.05)}
PAST = {**MIXTURE, "order": "non_temporal", "stores": 1.0}


def file_of(*found, **changed):
    """The JSON of mixtures that a machine of formulas would have."""
    data = {
        "format": "mixtures 2",
        "by": "a test",
        "quick": False,
        "seconds": 1.0,
        "machine": dict(made().machine),
        "noise": {"steal": 0.02, "load": 3.25, "disturbed": 0.125, "priority": True},
        "cpus": [0, 1, 2],
        "mixtures": list(found),
    }
    return json.dumps({**data, **changed})


def parsed(*found, **changed):
    return mixtures.parsed(file_of(*found, **changed), "test")


@pytest.fixture(scope="module")
def platform(tmp_path_factory):
    """A platform that the calibration of a machine of formulas wrote."""
    out = tmp_path_factory.mktemp("platform") / "here.toml"
    machine.write_here(machine.here(made(), "icelake", generations=None), out)
    return out


def test_mixtures_are_read_as_settings_with_figures():
    one, two = parsed(MIXTURE, ALONE).points()
    assert one.setting == measured.Setting("mixture", 8, 2, 0.5, 0, "random", 1)
    assert (one.ns.median, one.gbs.median) == (12.5, 20.0) and two.gbs is None
    assert (two.setting.chasers, two.setting.chases, two.setting.threads) == (2, 4, 0)
    said, without = parsed(MIXTURE).said()
    assert without.startswith("no real program was measured: that needs redis-server and two cores")
    assert said.startswith(
        "measured on 3 cores of Xeon of a test, load average 3.2: other work took a CPU in 12% of the"
    )


@pytest.mark.parametrize(
    ("mixture", "changed", "said"),
    [
        (
            MIXTURE,
            {"format": 1},
            "format = 1, and this version of hostnet reads mixtures 2 here; `hostnet-measure --mix",
        ),
        (MIXTURE, {"format": "mixtures 1"}, "format = mixtures 1, and this"),
        (MIXTURE, {"noise": None, "mixtures": []}, "mixtures is no list of at least one"),
        ({"chases": 1}, {}, "mixtures.0 lacks one of chasers, chases, ns, gbs, threads, order, stores"),
        ({**MIXTURE, "chases": 12}, {}, "mixtures.0.chases = 12 is no divisor of 32"),
        ({**MIXTURE, "chasers": 0}, {}, "mixtures.0.chasers = 0 is no number of threads"),
        ({**MIXTURE, "threads": True}, {}, "mixtures.0.threads = True is no number of threads"),
        ({**MIXTURE, "order": "backward"}, {}, "mixtures.0.order = 'backward' is none of sequential, random"),
        ({**MIXTURE, "stores": 2}, {}, "mixtures.0.stores = 2 is not within 0 to 1"),
        ({**MIXTURE, "ns": stat(-1.0)}, {}, "mixtures.0.ns is no median above 0"),
        ({**MIXTURE, "gbs": None}, {}, "mixtures.0.gbs is no median above 0 with a spread, or null without streams"),
        (MIXTURE, {"programs": [{**REDIS, "slowdown": None}]}, "programs.0.ns or .slowdown is no median above 0"),
        (MIXTURE, {"programs": [{**REDIS, "threads": -1}]}, "programs.0.threads = -1 is no number of threads"),
        ({**ALONE, "gbs": stat(3.0)}, {}, "mixtures.0.gbs is no median above 0 with a spread, or null without streams"),
    ],
)
def test_mixtures_that_are_none_are_refused_in_a_sentence(mixture, changed, said):
    with pytest.raises(HostnetError, match="^test: ") as e:
        parsed(mixture, **changed)
    assert said in str(e.value) and str(e.value).endswith(".") and "\n" not in str(e.value)


def test_a_calibration_refuses_mixtures_and_its_points_have_none():
    with pytest.raises(HostnetError, match="^test: format = mixtures 2, and this version of hostnet reads 3 here"):
        measured.parsed(file_of(MIXTURE), "test")
    point = {"ns": stat(120.0), "gbs": stat(9.0), "hashes_per_ns": stat(1.0)}
    loaded = [{"threads": 1, "stores": s, "pause_hashes": 0, **point} for s in (0.0, 1.0)]
    seen = {replace(p.setting, curve="mixture") for p in made(loaded=loaded).points()}
    assert seen.isdisjoint(mixtures.planned(False))
    # What the fit minimises is computed from the points of a calibration alone.
    used = fitting.telling_points(made(loaded=loaded).points())
    assert {p.setting.curve for p in used} == {"parallelism", "loaded"}


def test_a_mixture_is_simulated_with_its_threads_and_chases(platform):
    study = studies.on(studies.get("real", "here"), str(platform), written(platform, MIXTURE, ALONE, PAST))
    one, two, past = study.points(False)
    assert one.columns == {"chasers": 1, "chases": 8, "streams": 2, "order": "random", "store_pct": 50.0}
    spec = json.loads(hn.Scenario.load(one.base).with_(one.changes).resolve())
    chase, streams = spec["tenant"]
    assert (chase["cores"], chase["app"]["parallelism"], streams["cores"]) == (1, 8, 2)
    # Half of the lines are stored to: three accesses of memory for two lines, two of them reads.
    assert streams["app"]["read_fraction"] == pytest.approx(2 / 3) and streams["app"]["access"] == "random"
    assert spec["platform"]["core"]["count"] == 3
    (alone,) = json.loads(hn.Scenario.load(two.base).with_(two.changes).resolve())["tenant"]
    assert (alone["cores"], alone["app"]["parallelism"]) == (2, 4)
    assert past.needs == here.PAST_CACHES, "the engine's streams do not store past the caches"
    # A calibration simulates the same scenario for the same setting.
    tables = calibrate.platform_tables(str(platform))
    assert one.changes == curves.scenario(platform, tables, here.setting({**one.columns}))


def written(platform, *found):
    path = platform.parent / "mixtures.json"
    path.write_text(file_of(*found))
    return path


def test_figures_follow_from_instructions():
    tables = calibrate.platform_tables("icelake")
    # Two threads execute 4 instructions for each of 1000 loads in 10 us: 20 ns a load of one thread.
    alone = curves.figures({"chase": 4000.0}, 10.0, measured.Setting("mixture", 4, 0, chasers=2), tables)
    assert alone == curves.Simulated(20.0, None)
    # 23 instructions for each of 500 random lines that are stored to, 128 B each, beside 1000 loads of 64 B.
    s = measured.Setting("mixture", 4, 1, 1.0, 0, "random")
    found = curves.figures({"chase": 4000.0, "streams": 23 * 500.0}, 10.0, s, tables)
    assert found.ns == 10.0 and found.gbs == pytest.approx((500 * 128 + 1000 * 64) / 1e4)


def test_the_study_compares_each_mixture_with_its_measurement(platform, cli, tmp_path):
    """The files hold simulated and measured figures; the errors are those of the formula."""
    path = written(platform, MIXTURE, ALONE, PAST)
    out = tmp_path / "out"
    done = cli("study", "real", "here", "--platform", platform, "--measured", path, "-o", out, check=0)
    rows = pl.read_csv(out / "real_here.csv").to_dicts()
    assert [r["their_ns"] for r in rows] == [12.5, 12.5, None] and rows[2]["not_built"] == here.PAST_CACHES
    for r in rows[:2]:
        assert r["ns_err_pct"] == pytest.approx(100 * (r["ns"] / 12.5 - 1))
        assert (r["their_ns_low"], r["their_ns_high"]) == pytest.approx((12.25, 12.75))
    assert rows[0]["gbs_err_pct"] == pytest.approx(100 * (rows[0]["gbs"] / 20.0 - 1))
    assert rows[1]["gbs"] is None and rows[1]["gbs_err_pct"] is None
    # The same simulation as a calibration's.
    tables = calibrate.platform_tables(str(platform))
    again = curves.curves(tables, [p.setting for p in parsed(MIXTURE, ALONE).points()])
    assert [a.ns for a in again] == pytest.approx([r["ns"] for r in rows[:2]], rel=1e-6)
    errors = [abs(r[k]) for r in rows for k in ("ns_err_pct", "gbs_err_pct") if r[k] is not None]
    assert f"both: median error {sorted(errors)[1]:.1f} %, " in done.stdout and "load average 3.2" in done.stdout
    assert json.loads((out / "mixtures.json").read_text()) == json.loads(path.read_text())
    assert (out / "real_here.svg").is_file()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "real here: needs a platform of the machine; `hostnet calibrate -o here.toml` writes one"),
        (["--platform", "icelake"], "--platform icelake: is no file; `hostnet calibrate -o here.toml` writes one"),
        (["--platform", "none.toml"], "--platform none.toml: cannot be read (No such file or directory)."),
        (
            ["--platform", "{icelake}"],
            "is no platform that `hostnet calibrate` wrote; `hostnet calibrate -o here.toml`",
        ),
        (["--platform", "{here}", "--measured", "none.json"], "--measured none.json: cannot be read"),
        (["--measured", "none.json"], "--measured none.json: goes with `hostnet study real here --platform here.toml`"),
    ],
)
def test_mistakes_end_in_a_sentence_before_anything_runs(platform, cli, words, said):
    from hostnet.paths import PLATFORMS

    known = {"{icelake}": str(PLATFORMS / "icelake.toml"), "{here}": str(platform)}
    done = cli("study", "real", "here", *(known.get(w, w) for w in words))
    assert done.returncode == 2 and said in " ".join(done.stderr.split())
    assert not done.stdout


def test_a_real_program_is_compared_by_its_slowdown(platform, cli, tmp_path):
    path = tmp_path / "mixtures.json"
    path.write_text(file_of(MIXTURE, programs=[REDIS, BESIDE]))
    study = studies.on(studies.get("real", "here"), str(platform), path)
    *_, alone, beside = study.points(False)
    assert alone.columns == {"program": "redis-server", "streams": 0, "order": None, "store_pct": None}
    spec = json.loads(hn.Scenario.load(beside.base).with_(beside.changes).resolve())
    assert [t["app"]["kind"] for t in spec["tenant"]] == ["redis", "stream"]
    # As many keys, bytes and GETs as the client sends.
    assert {k: spec["tenant"][0]["app"][k] for k in ("keys", "value", "pipeline")} == {
        "keys": 1_000_000, "value": "1 KiB", "pipeline": 32
    }  # fmt: skip
    out = tmp_path / "out"
    done = cli("study", "real", "here", "--platform", platform, "--measured", path, "-o", out, check=0)
    load, one, two = pl.read_csv(out / "real_here.csv").to_dicts()
    assert load["slowdown"] is None and (one["slowdown"], one["their_slowdown"]) == (1.0, 1.0)
    assert one["ns"] == pytest.approx(1e3 / one["tenant.redis.throughput_mops"])
    assert two["slowdown"] == pytest.approx(two["ns"] / one["ns"]) and two["their_slowdown"] == 1.05
    assert two["slowdown_err_pct"] == pytest.approx(100 * (two["slowdown"] / 1.05 - 1))
    # The mixture's errors alone are those of the median.
    assert "both: median error" in done.stdout and "of 2 within 15 %; the aim" in done.stdout
    assert f"a GET alone {one['ns']:.0f} ns, measured 2000 ns" in done.stdout


def test_redis_answers_with_values_of_the_size_that_the_client_expects(monkeypatch):
    if not programs.settings():
        pytest.skip("needs redis-server and two cores")
    monkeypatch.setattr(programs, "KEYS", 20_000)
    found = programs.measure(sorted(os.sched_getaffinity(0)), quick=True)
    before = os.sched_getaffinity(0)
    assert [f["threads"] for f in found] == [0, 1, 1, 1] and found[0]["slowdown"]["median"] == 1.0
    # A GET takes hundreds of instructions at least, and no millisecond.
    assert all(100 < f["ns"]["median"] < 1e6 for f in found), found
    assert os.sched_getaffinity(0) == before and len(before) > 1


def test_a_server_that_does_not_begin_is_named(monkeypatch):
    monkeypatch.setattr(programs, "PROGRAM", "false")
    before = os.sched_getaffinity(0)
    with pytest.raises(HostnetError, match="^false: does not answer at its socket"):
        programs.measure([0, 1], quick=True)
    assert os.sched_getaffinity(0) == before


def test_patterns_leave_out_the_study_that_needs_a_file():
    every = [s.figure for s in studies.matching("real", "all")]
    assert "memory" in every and "here" not in every
    with pytest.raises(HostnetError, match="goes with `hostnet study real here"):
        studies.on(studies.get("real", "memory"), "skylake", here.BASE)


def test_the_plot_has_each_kind_of_streams_and_the_band_of_the_aim():
    one = {"chasers": 1, "chases": 8, "streams": 2, "order": "random", "store_pct": 50.0}
    two = {**one, "streams": 0, "order": None, "store_pct": None}
    rows = [
        {**r, "ns": 11.0, "their_ns": 10.0, "their_ns_low": 9.5, "their_ns_high": 10.5, "gbs": g, "program": None, "their_gbs": g and 22.0,
         "their_gbs_low": g, "their_gbs_high": g and 23.0}
        for r, g in ((one, 20.0), (two, None))
    ]  # fmt: skip
    figure = plots.figure_of("real_here", pl.DataFrame(rows))
    times, traffic = figure.axes
    assert [t.get_text() for t in times.get_legend().get_texts()] == ["random half stores", "chases alone"]
    assert [t.get_text() for t in traffic.get_legend().get_texts()] == ["random half stores"]
    band = times.collections[0].get_paths()[0].vertices
    assert {round(y / x, 3) for x, y in band} <= {0.85, 1.15}
    assert not math.isnan(times.get_xlim()[0])


def test_a_short_measurement_of_this_machine_has_every_planned_mixture(monkeypatch):
    monkeypatch.setattr(programs, "settings", list)
    planned = mixtures.planned(True)
    if not planned:
        pytest.skip("a mixture needs two cores")
    found = mixtures.measure(quick=True, quiet=True)
    assert [p.setting for p in found.points()] == planned
    by = {(p.setting.chasers, p.setting.chases): p.ns.median for p in found.points() if not p.setting.threads}
    assert by[2, 8] < by[2, 1] / 2, "independent loads overlap"
