"""The studies cover what the specification sweeps, and their points are valid scenarios."""

import itertools
import json
from collections import Counter

import fakeresults
import pytest

from hostnet import studies
from hostnet.cache import Cache
from hostnet.errors import HostnetError
from hostnet.results import Result
from hostnet.specs import Scenario
from hostnet.studies import gem5net, hostnetwork, pages, sweeper
from hostnet.studies.axes import AXES

# Points per experiment, counted from the `variables` of the specification's experiments.
EXPECTED = {
    "fig1": 3 * (1 + 3 + 1),  # buffers x (dma, ddio at 2 / 4 / 6 ways, ideal)
    "fig2": 3 * (1 + 3 + 1),  # depths x (dma, ddio at 2 / 6 / 12 ways, ideal)
    "fig5": 6 * (4 + 4 + 1),  # clusters x (ddio and sweeper at 4 way counts, ideal)
    "fig6-left": 4,  # ways {2, 12} x sweeping
    "fig7": 2 * (3 + 3 + 1),  # depths x (ddio and sweeper at 3 way counts, ideal)
    "fig8": 3 * 2 * (2 + 2 + 1),  # channels x clusters x (ddio and sweeper at 2 way counts, ideal)
    "fig9a": 5 * 2,  # splits x sweeping; the published runs have five of the paper's six
    "fig9b": 6 * 2,
    "fig10a": 4 * 5 * 2,  # probabilities of a stall x depths x sweeping
    "sec2b": 2 * 3,  # injection x eviction point
    "sec5b": 3,  # guards
}


def test_every_experiment_of_the_paper_and_the_authors_runs_have_a_study():
    figures = (
        "sizing",
        "sec2b",
        "fig1",
        "fig2",
        "fig3",
        "fig4",
        "sec5b",
        "fig5",
        "fig6-left",
        "fig6-right",
        "fig7",
        "fig8",
        "fig9a",
        "fig9b",
        "fig10a",
        "fig10b",
        "sec6f-cited",
        "artifact",
    )
    assert Counter(s.figure for s in studies.all_studies() if s.system == "sweeper") == Counter(figures)


@pytest.mark.parametrize("figure, points", EXPECTED.items())
def test_a_study_has_every_point_its_experiment_sweeps(figure, points):
    assert len(studies.get("sweeper", figure).points(False)) == points


# Cores 1 to 6, each alone and together, and the device alone, in each quadrant.
QUADRANT = 6 * 2 + 1
HOST = {
    "peakbw-cl": 1,
    "peakbw-il": 1,
    "fig3": 4 * QUADRANT,
    "fig6a": 6,
    "fig6b": 6,
    "fig6cd": 6,
    "credits": 4 * QUADRANT,
    "fig7": QUADRANT,
    "fig8": QUADRANT + 1,
    "sec5-method": 4 * 6 * 3,
    "fig11": 4 * QUADRANT,
    "fig12": 4 * QUADRANT,
    "fig13": QUADRANT,
    "fig14": QUADRANT + 1,
    # device alone; cores alone once, and beside it with each DDIO setting
    "fig1": 1 + (14 + 8) * 2,
    "prefetch": 2 * (1 + (14 + 8) * 2),
    **{f"fig{i}": 2 + (3 + 6) * (1 + 2) for i in (2, 15, 16, 17)},
    "fig3-knobs": 2 * 4 * (2 + 6 * (1 + 2)),
    **{f: 4 * QUADRANT for f in ("fig18", "fig27", "fig28")},
    **{f"fig{i}": QUADRANT + (i > 21) for i in (20, 21, 22, 24)},
    "fig23": 3,
    **{f: 1 + 2 * 4 * 2 for f in ("fig19", "fig29", "fig30")},
    "fig25": 1 + 4 * 2,
    "fig26": 1 + 4 * 2 + 1,
}
HOST_EXPERIMENTS = {
    "peakbw-cl",
    "peakbw-il",
    "prefetch",
    "fig3-knobs",
    "fig6a",
    "fig6b",
    "fig6cd",
    "credits",
    "sec5-method",
    *(f"fig{i}" for i in (1, 2, 3, 7, 8, *range(11, 31))),
}


def test_every_experiment_of_the_host_network_has_a_study_or_says_what_it_lacks():
    built = [
        s.figure for s in studies.all_studies() if s.system == "hostnetwork" and not s.figure.startswith("future-")
    ]
    assert Counter([*built, *hostnetwork.NOT_BUILT]) == Counter(HOST_EXPERIMENTS)
    assert len(HOST_EXPERIMENTS) == 34
    for figure in hostnetwork.NOT_BUILT:
        with pytest.raises(studies.NotBuiltYet, match="not built yet: it needs"):
            studies.get("hostnetwork", figure)


@pytest.mark.parametrize("figure, points", HOST.items())
def test_a_host_network_study_has_every_point_its_experiment_sweeps(figure, points):
    assert len(studies.get("hostnetwork", figure).points(False)) == points


def test_degradation_is_isolated_over_colocated_at_equal_cores():
    rows = [{"run": "iso-c2m", "c2m": "read", "p2m": None, "n": n, "c2m_gbs": 9.0 * n, "p2m_gbs": None} for n in (1, 2)]
    rows += [
        {"run": "iso-p2m", "c2m": None, "p2m": p, "n": 0, "c2m_gbs": None, "p2m_gbs": g}
        for p, g in (("write", 14.0), ("read", 13.0))
    ]
    rows += [
        {"run": "colo", "c2m": "read", "p2m": "write", "n": 2, "c2m_gbs": 12.0, "p2m_gbs": 7.0},
        {"run": "colo", "c2m": "read", "p2m": "read", "n": 1, "c2m_gbs": 6.0, "p2m_gbs": 13.0},
    ]
    found = hostnetwork.degradations(rows)
    assert found[-2] == {"degr_c2m": 1.5, "degr_p2m": 2.0, "regime": "red"}
    assert found[-1] == {"degr_c2m": 1.5, "degr_p2m": 1.0, "regime": "blue"}
    assert found[0] == {"degr_c2m": None, "degr_p2m": None, "regime": None}


def test_formula_columns_take_all_cores_buffers_and_the_papers_admission():
    row = {
        "n": 2,
        "c2m_gbs": 16.0,
        "mem_c2m_read_gbs": 16.0,
        "mem_c2m_write_gbs": 0.0,
        "lfb_occ": 10.0,
        "lfb_lat_ns": 80.0,
        "cha_dram_read_c2m_ns": 70.0,
        "channels": 2.0,
        "rpq_occ": 4.0,
        "lines_read": 100.0,
    }
    found = hostnetwork.analyse(row, "c2m")
    # 71 unloaded and three reads ahead at 2.73; 20 lines in flight.
    assert found["c2m_formula_ns"] == pytest.approx(71 + 3 * 2.73)
    assert found["c2m_estimate_gbs"] == pytest.approx(20 * 64 / (71 + 3 * 2.73))
    assert found["c2m_err_pct"] == pytest.approx(100 * (20 * 64 / (71 + 3 * 2.73) / 16 - 1))
    assert found["c2m_admission_ns"] == pytest.approx(10.0)
    assert set(hostnetwork.analyse(row, "p2m").values()) == {None}


def all_points(study, quick):
    points = study.points(quick)
    rows = [
        {**p.columns, "throughput_mrps": 10.0 + i / 100, "offered_mrps": 0.5 + i / 100, "access_ns": 100.0 + i}
        for i, p in enumerate(points)
        if not p.needs
    ]
    return points + study.further(rows, quick)


@pytest.mark.parametrize(
    ("pattern", "figures"),
    [
        ("rdma-*", ["fig18", "fig20", "fig21", "fig22", "fig23", "fig24", "fig27", "fig28"]),
        ("tcp-*", ["fig19", "fig25", "fig26", "fig29", "fig30"]),
        ("fig6*", ["fig6a", "fig6b", "fig6cd"]),
        ("tcp-fig19", ["fig19"]),
    ],
)
def test_several_figures_go_by_one_name(pattern, figures):
    assert [s.figure for s in studies.matching("hostnetwork", pattern)] == figures


def test_all_figures_of_a_system_are_its_own_and_no_pattern_goes_unheard():
    assert studies.matching("sweeper", "all") == [s for s in studies.all_studies() if s.system == "sweeper"]
    assert studies.get("hostnetwork", "rdma-fig18") is studies.get("hostnetwork", "fig18")
    for pattern in ("rdma-fig19", "xyz*"):
        with pytest.raises(HostnetError, match="has no study"):
            studies.matching("hostnetwork", pattern)


def test_a_system_without_a_figure_is_answered_with_one_and_a_wrong_system_with_the_right_ones(cli):
    assert "there is no system 'sweper'; did you mean \"sweeper\"" in cli("study", "sweper", check=2).stderr
    assert "which figure of 'idio', such as 'fig" in cli("study", "idio", check=2).stderr


@pytest.mark.parametrize("study", studies.all_studies(), ids=lambda s: s.table)
@pytest.mark.parametrize("quick", [False, True])
def test_every_point_resolves_and_rows_are_distinct(study, quick):
    points = all_points(study, quick)
    for p in points:
        if not p.needs:
            Scenario.load(p.base).with_(p.changes).resolve()
    rows = [tuple(sorted((k, str(v)) for k, v in p.columns.items())) for p in points]
    assert len(set(rows)) == len(rows)
    assert {k for p in points for k in p.columns} <= {axis.column for axis in AXES}


def test_figures_that_show_the_same_point_share_it():
    def specs(points):
        return {Scenario.load(p.base).with_(p.changes).resolve() for p in points}

    fig5 = specs(studies.get("sweeper", "fig5").points(False))
    assert len(specs(studies.get("sweeper", "fig1").points(False)) & fig5) == 3 * (3 + 1), (
        "ddio and ideal of Fig. 1 are points of Fig. 5"
    )
    # The full study of Fig. 6 measures more requests.
    fig5, fig6 = (specs(studies.get("sweeper", f).points(True)) for f in ("fig5", "fig6-left"))
    assert fig6 <= fig5


def test_the_platform_is_the_same_in_every_study():
    for system, platform in (("sweeper", "sim24"), ("hostnetwork", "cascadelake")):
        # The authors' own runs are of the machine that they configured.
        of_paper = [s for s in studies.all_studies() if s.system == system and s.figure != "artifact"]
        bases = {p.base for s in of_paper for p in all_points(s, False)}
        assert {Scenario.load(b).platform for b in bases} == {platform}


@pytest.mark.parametrize("figure", ["sizing", "sec6f-cited"])
def test_a_study_writes_the_same_bytes_with_one_and_two_workers(figure, tmp_path):
    written = []
    for jobs in (1, 2):
        out = tmp_path / f"out{jobs}"
        studies.run(
            studies.get("sweeper", figure), quick=True, jobs=jobs, cache=Cache(tmp_path / f"cache{jobs}"), out=out
        )
        written.append({f.name: f.read_bytes() for f in out.iterdir() if f.name != "study.json"})
    assert written[0] == written[1]
    stem = f"sweeper_{figure.replace('-', '_')}"
    assert {f"{stem}.csv", f"{stem}.parquet", f"{stem}.png", f"{stem}.svg", "specs.json"} <= set(written[0])


def test_packets_per_pause_is_ring_over_loss():
    # 100 offered, 75 served: a quarter of the packets stays, so 1024 buffers last 4096 packets.
    assert sweeper.packets_per_pause({"buf": 1024, "drop_rate": 0.25}) == 4096
    assert sweeper.packets_per_pause({"buf": 1024, "drop_rate": 0.0}) is None


def test_settings_of_the_ddio_measurements_are_all_there():
    points = studies.get("real", "ddio").points(False)
    assert Counter(p.columns["case"] for p in points) == {
        "ways": 10,
        "cores and ways": 12,
        "cores": 10,
        "descriptors": 24,
        "rate": 20,
        "uncore clock": 7,
        "processing time": 17,
    }
    # 8.16 Mpps of 1500-byte frames fill 100 Gb/s (their tables); 11.94 Mpps of 256 bytes is what their generator sends.
    rates = {
        p.columns["packet_bytes"]: int(p.changes["traffic.rate"].removesuffix(" pps")) / 1e6
        for p in points
        if p.columns["case"] == "descriptors"
    }
    assert rates[1500] == pytest.approx(8.16, rel=0.005) and rates[256] == pytest.approx(11.94, rel=0.005)
    slowest = min(int(p.changes["traffic.rate"].removesuffix(" pps")) for p in points if p.columns["case"] == "rate")
    assert slowest / 1e6 == pytest.approx(0.80, rel=0.01)


def test_recorded_programs_are_compared_with_those_written_by_hand():
    from hostnet.studies import real_programs as programs

    points = studies.get("real", "programs").points(True)
    assert Counter((p.columns["platform"], p.columns["how"]) for p in points) == {
        ("icx", "recorded"): 8,
        ("icx", "written"): 4,
        ("icx", "adjusted"): 2,
        ("machine", "recorded"): 8,
    }
    # All of a program run on the same host with the same packets.
    for name in programs.WRITTEN:
        hosts = [
            {k: v for k, v in p.changes.items() if k != "tenant.0.app"}
            for p in points
            if p.columns["program"] == name and p.columns["platform"] == "icx"
        ]
        assert len(hosts) >= 2 and all(h == hosts[0] for h in hosts)
    # 40 Mpps are 25 ns a packet, which at 3.1 GHz are 77.5 cycles.
    row = {"program": "testpmd-macswap", "platform": "icx", "throughput_mrps": 40.0, "t0_cpi": 0.5}
    assert programs.core_ns(row) == 25 and programs.instructions(row) == pytest.approx(155)
    rows = [{**row, "how": "written"}, {**row, "how": "recorded", "throughput_mrps": 36.0}]
    written, recorded = programs.beside(rows)
    assert written["rate_ratio"] is None and recorded["rate_ratio"] == pytest.approx(0.9)
    # macswap reads and writes the frame's first line.
    assert recorded["frame_lines"] == 1 and 15 < recorded["recorded_instructions"] < 25
    assert recorded["measured_ns"] is None, "icx is not the measured machine"
    assert programs.core_ns({"throughput_mrps": None}) is None


def test_the_driver_is_taken_off_both_times_of_a_real_program():
    from hostnet.studies import real_programs as programs

    real = programs.measured()
    assert {r["program"] for r in real.values()} >= {*programs.RECORDED, "testpmd-io-pcap"}
    for r in real.values():
        assert float(r["user_ns_low"]) <= float(r["user_ns"]) <= float(r["user_ns_high"])
    row = {"how": "recorded", "platform": "machine", "t0_cpi": 0.5}
    rates = {"testpmd-io": 50.0, "l3fwd-lpm": 25.0, "redis": 0.5}
    io, lpm, redis = programs.beside([{**row, "program": p, "throughput_mrps": r} for p, r in rates.items()])
    # 20 ns a packet are the driver's, of 40 and of 2,000.
    assert (io["own_ns"], lpm["own_ns"], redis["own_ns"]) == (0, 20, 1980)
    assert io["measured_own_ns"] == 0
    over_pcap = float(real["l3fwd-lpm"]["user_ns"]) - float(real["testpmd-io-pcap"]["user_ns"])
    assert lpm["measured_own_ns"] == pytest.approx(over_pcap) and over_pcap > 0
    assert redis["measured_own_ns"] == redis["measured_ns"] == float(real["redis"]["user_ns"])


def test_a_table_leaves_the_l2_at_the_same_size_on_the_machine_and_in_its_recording():
    """``data/table.csv``: times grow from the size on at which the table no longer fits the L2 of the machine (2 MiB)."""
    import csv

    from hostnet.paths import DATA

    with (DATA / "table.csv").open(encoding="utf-8") as f:
        rows = [{k: float(v) for k, v in r.items()} for r in csv.DictReader(f)]
    assert all(b["entries"] == 2 * a["entries"] for a, b in itertools.pairwise(rows))
    for column in ("simulated_ns", "scaled_ns", "measured_ns"):
        base = min(r[column] for r in rows)
        inside = [r[column] for r in rows if r["kib"] <= 1024]
        outside = [r[column] for r in rows if r["kib"] > 4096]
        assert max(inside) < 1.15 * base and min(outside) > 1.5 * base, column
        assert outside == sorted(outside)
    misses = [r["l2_misses"] for r in rows]
    assert misses == sorted(misses) and all(m == 0 for m, r in zip(misses, rows, strict=True) if r["kib"] < 2048)


def test_received_bits_are_the_wire_s_and_hits_are_what_did_not_miss():
    from hostnet.studies import real

    assert real.received_gbps({"throughput_mrps": 8.16, "packet_bytes": 1500}) == pytest.approx(99.45, rel=0.001)
    assert real.write_hit_pct({"p2m_write_uncached_ratio": 0.25}) == 75.0
    assert real.write_hit_pct({}) is None


def test_cores_share_descriptors_in_the_two_experiments_whose_scripts_divide_them():
    from hostnet.studies import real

    each = {
        p.columns["case"]: (p.columns["ring"], p.changes["peripheral.0.rings.receive"])
        for p in real.ddio(False)
        if p.columns["n"] == 2
    }
    assert each == {
        "cores and ways": (4096, 2048),
        "processing time": (4096, 2048),
        "rate": (4096, 4096),
        "cores": (256, 256),
    }


def test_every_measured_setting_of_ddio_is_a_point_and_a_quick_study_has_no_others():
    from hostnet.studies import real

    every, quick = ([real.setting(p.columns) for p in real.ddio(q)] for q in (False, True))
    assert set(real.measured()) < set(every)
    assert sorted(quick, key=str) == sorted(real.measured(), key=str)


def test_the_page_of_ddio_counts_what_is_near_and_finds_the_knees(tmp_path):
    from hostnet.studies import real

    def rows(hits: float = 0.0, share: float = 1.0) -> list[dict]:
        return [
            {
                **dict(zip(real.SETTINGS, s, strict=True)),
                "ring": int(s[2]),
                "write_hit_pct": m["write_hit_pct"] + hits,
                "received_gbps": m["received_gbps"] * share,
            }
            for s, m in real.measured().items()
        ]

    exact = real.page(rows())
    # Three rates and two shares of hits are inputs, to which the platform is fitted.
    assert (
        "| ways | 8 | 8 of 8 near | 7 of 7 near |" in exact
        and "| descriptors | 13 | 13 of 13 near | 12 of 12 near |" in exact
    )
    assert exact.count("(input)") == 5
    assert "| cores | 5 | 4 of 4 near | 5 of 5 near |" in exact and "| rate | 8 | 7 of 7 near | 8 of 8 near |" in exact
    # Their tables: 5 ways are the first with 95 % at 1024 B; at 1500 B 512 descriptors are the last.
    assert "| ways, 1024 B | 5 | 5 | 0 |" in exact and "| descriptors, 1500 B | 512 | 512 | 0 |" in exact
    off = real.page(rows(hits=-10.5, share=1.11))
    assert "| ways | 8 | 0 of 8 near | 0 of 7 near |" in off and "| ways, 1024 B | none | 5 |  |" in off
    assert "8 of 8 near" in real.page(rows(hits=-9.5, share=1.09))

    out = tmp_path / "page.md"
    out.write_text("Earlier.\n\n" + pages.CAUSES + "\nBecause.\n", encoding="utf-8")
    table = tmp_path / "t.csv"
    table.write_text(
        "\n".join(",".join(map(str, r)) for r in ([*rows()[0]], *(r.values() for r in rows()))), encoding="utf-8"
    )
    real.main(str(table), str(out))
    assert out.read_text(encoding="utf-8").count("Because.") == 1 and "Earlier." not in out.read_text(encoding="utf-8")


def test_a_study_of_wall_times_takes_the_shortest_run_of_each_point(monkeypatch):
    """Runs 2 and 3 are the first one's simulations under other names, so that none comes from the cache."""
    seconds, asked = iter([[4.0, 5.0], [2.0, 6.0], [3.0, 7.0]]), []

    def runs(specs, **_):
        asked.append([json.loads(s) for s in specs])
        return [Result({**fakeresults.result("ddio"), "wall_s": t}) for t in next(seconds)]

    monkeypatch.setattr(studies, "run_many", runs)
    points = [studies.Point("testpmd", {"core": core}, {"seed": seed}) for seed, core in enumerate(("a", "b"))]
    study = studies.Study(
        "gem5net",
        "mine",
        "Mine",
        lambda quick: points,
        (),
        derived={"wall_s": gem5net.wall_s},
        derived_units={"wall_s": "s"},
        wall_runs=3,
    )
    assert studies.run(study).frame["wall_s"].to_list() == [2.0, 5.0]
    names = [[spec.pop("name") for spec in run] for run in asked]
    assert len({name for run in names for name in run[:1]}) == 3 and asked[0] == asked[1] == asked[2]


def test_the_ratio_of_wall_times_is_of_a_study_that_takes_the_shortest_of_three():
    assert studies.get("gem5net", "fig20").wall_runs == 3


def test_the_real_server_s_client_steps_by_a_per_cent_of_its_link():
    """1 Gb/s carries 1.488 Mpps of 64 B, and the simulated generator keeps to the authors' script."""
    steps = {
        p.columns["platform"]: p.changes["run.step"]
        for p in studies.get("gem5net", "fig9").points(False)
        if p.columns["app"] == "rxptx-1us" and p.columns["packet_bytes"] == 64
    }
    assert steps == {"gem5": "2150786 pps", "altra": "1488095 pps"}


@pytest.mark.parametrize("quick", [False, True])
def test_rates_beyond_a_knee_are_on_the_authors_grid_and_within_the_link(quick):
    """14.88 Mpps of 64 B at 10 Gb/s are ten times as many at 100 (20 B between frames); 1518 B: 8.127 Mpps."""
    for size, most in ((64, 148.8e6), (1518, 8.128e6)):
        for share in (0.5, 0.85, 0.999):
            rate = gem5net.beyond(share * most, size, quick)
            assert rate <= most and rate % gem5net.STEP[size] == 0
            assert rate > share * most or rate + gem5net.STEP[size] > most


def test_a_bandwidth_test_without_dca_outlasts_the_filling_of_both_rings():
    """A receive and a transmit ring of 1,024 packets each are at most the 1 % that a test may lose (release: testpmd's rings)."""
    points = studies.get("gem5net", "fig14").points(False)
    frames = [p for p in points if p.columns["app"] in gem5net.FORWARDERS]
    assert {p.columns["dca"] for p in frames} == {"on", "off"}
    for p in frames:
        rings = (1024 + 1024) / p.changes["run.requests"]
        assert (rings <= 0.01) == (p.columns["dca"] == "off")
