"""What `ccnic-bench` measured: plots hold the medians of the table, and a calibrated platform simulates what was measured."""

import polars as pl
import pytest

from hostnet import HostnetError, Scenario, bench, calibrate
from hostnet.plots import ccnic as draw

PROBE = """experiment,variant,size_bytes,rep,value,unit
pingpong,one_line,64,0,120.0,ns
transfer,modified_line,64,0,90.0,ns
transfer,modified_line,64,1,70.0,ns
transfer,modified_line,64,2,80.0,ns
stream,cached,65536,0,76.5,Gb/s
"""
COMPARE = """mode,contender,place,size_bytes,window,mpps,lat_min_ns,lat_p50_ns
threads,native,near,64,1,2,300,400
threads,native,near,64,256,28,5000,8000
threads,native,near,64,256,30,5000,8000
threads,native,moved,64,256,3,5000,8000
threads,memif,near,64,1,1,600,900
threads,memif,near,64,256,11,9000,20000
"""


@pytest.fixture
def probe(tmp_path):
    path = tmp_path / "probe.csv"
    path.write_text(PROBE, encoding="utf-8")
    return path


def test_calibration_solves_the_models_path_of_a_modified_line(probe):
    """sim24 at 3.2 GHz: 80 ns are 256 cycles; L1 4, L2 14 twice, LLC 35 leave 189 for four crossings: 47.25."""
    platform, found = calibrate.calibrate([probe])
    assert platform["caches"]["noc_cycles"] == found.noc_cycles == 47
    assert found.modelled_ns == pytest.approx((67 + 4 * 47) / 3.2)
    assert abs(found.modelled_ns - 80.0) <= 2 / 3.2  # half of four crossings' cycles: rounding alone
    assert platform["provenance"]["caches.noc_cycles"].startswith("measured: ")
    assert platform["caches"]["llc"] == calibrate.calibrate([probe], "sim24")[0]["caches"]["llc"]


def test_llc_and_crossbar_are_counted_in_the_uncore_s_clock(probe):
    """icx: L1 5 and L2 9 twice at 3.1 GHz are 7.42 ns, the LLC's 20 at 2.4 GHz 8.33; 64.25 ns are 38.55 cycles a crossing."""
    platform, found = calibrate.calibrate([probe], "icx")
    caches = platform["caches"]
    assert (caches["l1d"]["latency_cycles"], caches["l2"]["latency_cycles"], caches["llc"]["latency_cycles"]) == (
        5,
        9,
        20,
    )
    assert found.noc_cycles == 39
    assert found.modelled_ns == pytest.approx(23 / 3.1 + (20 + 4 * 39) / 2.4)


def test_the_engine_takes_the_calibrated_platform(probe, tmp_path):
    import json

    out = tmp_path / "mine.toml"
    calibrate.write_platform([probe], "sim24", out)
    resolved = json.loads(Scenario.load("directed-rx").with_(platform=str(out)).resolve())["platform"]
    assert (resolved["name"], resolved["caches"]["noc_cycles"]) == ("mine", 47)


def test_a_platform_with_a_base_is_calibrated_with_all_of_it(probe):
    platform, found = calibrate.calibrate([probe], "idio-gem5-artifact")
    whole, _ = calibrate.calibrate([probe], "idio-gem5")
    assert "base" not in platform and found.noc_cycles > 0
    assert [p["core"]["prefetch"]["quirks"].pop("into") for p in (whole, platform)] == ["llc", "l2"]
    assert (platform["caches"], platform["core"]) == (whole["caches"], whole["core"])
    assert platform["provenance"].keys() == whole["provenance"].keys()


def test_a_measurement_below_the_look_ups_names_the_way_out(tmp_path):
    path = tmp_path / "quick.csv"
    path.write_text(PROBE.replace("90.0", "12").replace("70.0", "12").replace("80.0", "12"), encoding="utf-8")
    with pytest.raises(HostnetError, match="choose a --base"):
        calibrate.calibrate([path])


@pytest.mark.parametrize(
    "text, says",
    [
        ("a,b\n1,2\n", "not a table of ccnic-bench"),
        (PROBE.splitlines()[0] + "\n", "no measurements"),
        (PROBE.replace("transfer", "other"), "run `ccnic-bench probe`"),
        (PROBE.replace("80.0", "-1"), "value = -1.0 of experiment transfer is not the time of a load"),
        (PROBE.replace("80.0", "0.9"), "1 to 10000 ns"),
        (PROBE.replace("80.0", "1e9"), "value = 1000000000.0 of experiment transfer"),
    ],
)
def test_a_wrong_table_is_one_sentence(cli, tmp_path, text, says):
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    done = cli("calibrate", path, "--out", tmp_path / "p.toml")
    assert done.returncode == 2 and says in done.stderr and len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "p.toml").exists()


def test_bars_are_medians_without_the_runs_that_were_moved(tmp_path):
    path = tmp_path / "compare.csv"
    path.write_text(COMPARE, encoding="utf-8")
    rate, median, minimum = draw.compare(bench.read(path)).axes
    assert [b.get_width() for b in rate.patches] == [29, 11]  # 28 and 30; the run of 3 was moved
    assert [b.get_width() for b in median.patches] == [400, 900]
    assert [b.get_width() for b in minimum.patches] == [300, 600]


def test_latencies_that_were_not_measured_are_empty_and_leave_their_rates_in_the_plots():
    """The longest latency that earlier versions counted, 2^20 ticks, is in no table: medians lie above minima."""
    from pathlib import Path

    empty = 0
    for path in sorted((Path(__file__).parents[2] / "docs" / "ccnic" / "data").rglob("*.csv")):
        table = bench.read(path)
        if bench.kind(table) != "bench":
            continue
        told = table.filter(pl.col("lat_p50_ns").is_not_null())
        assert (told["lat_p50_ns"] >= told["lat_min_ns"]).all(), path
        empty += table["lat_p99_ns"].null_count()
        if path.stem == "soak" and told.is_empty():
            rate, median = bench.figures(table)["soak"].axes[:2]
            assert rate.patches[0].get_width() > 0
            assert median.texts[0].get_text() == "not measured"
    assert empty > 0


BENCH = "experiment,variant,size_bytes,window,rep,place,packets,mpps,gbps,lat_min_ns,lat_p50_ns,lat_p99_ns\n"


@pytest.mark.parametrize(
    "row, says",
    [
        ("loopback,ccnic,64,1,1,near,0,0.0,0.0,100.0,,", "line 3 is of a run without packets"),
        ("loopback,ccnic,64,1,1,near,5,1.0,0.5,100.0,NaN,NaN", "lat_p50_ns = nan in line 3"),
        ("loopback,ccnic,64,1,1,near,5,inf,0.5,100.0,200.0,300.0", "mpps = inf in line 3"),
    ],
)
def test_a_row_without_a_measurement_is_named_and_nothing_drawn(tmp_path, row, says):
    path = tmp_path / "z.csv"
    path.write_text(f"{BENCH}loopback,ccnic,64,1,0,near,5,1.0,0.5,100.0,200.0,300.0\n{row}\n", encoding="utf-8")
    with pytest.raises(HostnetError, match=says) as told:
        bench.plot([path], tmp_path / "pz")
    assert str(path) in str(told.value) and not (tmp_path / "pz").exists()


def test_tables_of_one_name_are_told_apart_by_their_directories(tmp_path, probe):
    paths = [probe]
    for name in ("zen3", "zen5"):
        (tmp_path / name).mkdir()
        paths.append(tmp_path / name / "probe.csv")
        paths[-1].write_text(PROBE, encoding="utf-8")
    (tmp_path / "loopback.csv").write_text(
        f"{BENCH}loopback,ccnic,64,1,0,near,5,1.0,0.5,100.0,200.0,300.0\n", encoding="utf-8"
    )
    drawn = {p.name for p in bench.plot([*paths, tmp_path / "loopback.csv"], tmp_path / "plots") if p.suffix == ".png"}
    assert drawn == {f"{tmp_path.name}-probe.png", "zen3-probe.png", "zen5-probe.png", "loopback.png"}
    with pytest.raises(HostnetError, match="two tables are called zen3-probe, .*rename one, or plot each"):
        bench.plot([paths[1], paths[1]], tmp_path / "twice")


@pytest.mark.long
def test_every_experiment_of_the_documented_tables_is_drawn(tmp_path):
    from pathlib import Path

    data = Path(__file__).parents[2] / "docs" / "ccnic" / "data"
    machines = sorted(p for p in data.iterdir() if p.is_dir())
    assert machines
    for machine in machines:
        files = sorted(machine.glob("*.csv"))
        names = {p.name for p in bench.plot(files, tmp_path / machine.name)}
        drawn = {
            "compare": "compare.png", "loopback": "loopback.png", "batch": "batch.svg", "probe": "probe.png",
            "ablation": "ablation-fig14a.png",
        }  # fmt: skip
        assert {drawn[f.stem] for f in files if f.stem in drawn} <= names
    for f in sorted(data.rglob("*.csv")):
        table = pl.read_csv(f, infer_schema_length=None)
        if bench.kind(table) == "bench":
            assert len(bench.figures(table)) >= 1


def test_the_study_beside_the_library_has_the_medians_of_the_documented_tables():
    from pathlib import Path

    from hostnet.studies import real_library

    expected = {}
    for platform, machine in (("spr", "emerald-rapids"), ("turin", "zen5"), ("genoa", "zen4")):
        data = Path(__file__).parents[2] / "docs" / "ccnic" / "data" / machine
        probe = bench.read(data / "probe.csv").filter(pl.col("unit") == "ns")
        expected |= {
            (platform, e, v, 1): {"ns": x}
            for e, v, x in probe.group_by("experiment", "variant").agg(pl.col("value").median()).iter_rows()
        }
        loops = bench.read(data / "loopback.csv").filter((pl.col("size_bytes") == 64) & (pl.col("place") == "near"))
        medians = loops.group_by("variant", "window").agg(pl.col("lat_p50_ns", "mpps").median())
        expected |= {(platform, "loopback", v, w): {"ns": ns, "mpps": mpps} for v, w, ns, mpps in medians.iter_rows()}
    measured = real_library.measured()
    assert measured.keys() == expected.keys()
    for key, figures in measured.items():
        assert figures == pytest.approx(expected[key], rel=1e-4), key


@pytest.mark.parametrize("machine, ghz", [("zen5", 4.1), ("zen4", 3.7)])
def test_the_cores_of_the_epycs_have_the_pace_at_which_the_library_ran_on_one_of_them(machine, ghz):
    """456 instructions of the host for a packet, in the median of `ccnic-bench bound`, at the platform's clock: within 2 %."""
    from pathlib import Path

    from hostnet.studies import real_library

    bound = bench.read(Path(__file__).parents[2] / "docs" / "ccnic" / "data" / machine / "bound.csv")
    ns = bound.filter(pl.col("variant") == "host_work_alone")["value"].median()
    ipc = getattr(real_library, machine)()["override.core.compute_ipc"]
    assert ipc == pytest.approx(456 / (ns * ghz), rel=0.02)


def test_the_machine_beside_the_library_has_the_measured_transfer():
    """L1 5 and L2 9 twice at 4 GHz are 5.75 ns, the LLC's 20 at 2.5 GHz 8: 61.95 of 75.7 ns are 38.7 cycles a crossing."""
    from hostnet.studies import real_library

    assert real_library.emerald_rapids()["override.caches.noc_cycles"] == 39
    rows = [
        {"platform": "spr", "case": "pingpong", "variant": "one_line", "packets": 1, "pingpong_ns": 249.2},
        {
            "platform": "spr",
            "case": "loopback",
            "variant": "ccnic",
            "packets": 8,
            "rtt_median_us": 0.8113,
            "achieved_mpps": 4.2954,
        },
    ]
    first, second = real_library.beside(rows)
    assert first["ns_ratio"] == pytest.approx(2.0) and first["mpps_ratio"] is None
    assert second["ns_ratio"] == pytest.approx(1.0) and second["mpps_ratio"] == pytest.approx(0.5)
