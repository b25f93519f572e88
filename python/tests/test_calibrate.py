"""Calibration: knees and levels of curves that a formula makes, a fit that finds a known platform again, files, the command,
and a short measurement of the machine that runs the tests."""

import copy
import json
import re
from itertools import product
from pathlib import Path

import pytest

from hostnet import HostnetError, Scenario, api, calibrate
from hostnet._toml import tomllib
from hostnet.calibrate import curves, drift, fitting, hierarchy, machine, measured, page

KIB, MIB = 1 << 10, 1 << 20
#: Capacity and latency of each level of a machine that exists in formulas only.
LEVELS = [(48 * KIB, 1.5), (2 * MIB, 5.0), (32 * MIB, 25.0), (1 << 60, 110.0)]
SIZES = [s for i in range(12, 31) for s in ((1 << i) // 4 * 3, 1 << i)]


def expected(size, levels=LEVELS):
    """Latency of a random load over `size` bytes: each cache serves the share of the buffer that it holds."""
    below, ns = 0, 0.0
    for capacity, latency in levels:
        held = min(capacity, size)
        ns += (held - below) / size * latency
        below = held
    return ns


def stat(value, spread=0.02):
    return {
        "median": value,
        "low": value * (1 - spread),
        "high": value * (1 + spread),
        "repetitions": 31,
        "disturbed": 0,
    }


def made(levels=LEVELS, **changed):
    """Measurements of that machine, as hostnet-measure writes them."""
    caches = [
        {"level": i + 1, "bytes": c, "ways": w, "shared_by": 1}
        for i, ((c, _), w) in enumerate(zip(LEVELS[:-1], (12, 16, 16), strict=True))
    ]
    about = {
        "architecture": "x86_64",
        "vendor": "GenuineIntel",
        "cpu": "Xeon of a test",
        "family": 6,
        "model": 106,
        "features": ["avx512f"],
        "hypervisor": False,
        "cpus": 8,
        "threads_per_core": 2,
        "sockets": 1,
        "first_threads": [0, 1, 2, 3],
        "caches": caches,
        "dimms": [{"kind": "DDR4", "bytes": 1 << 34, "mts": 2933, "ranks": 2, "place": "A1"}],
        "nics": [
            {
                "address": "0000:3b:00.0",
                "gts": 8.0,
                "lanes": 16,
                "max_payload": 256,
                "max_read_request": 4096,
                "mbps": 100000,
            }
        ],
    }
    data = {
        "format": 3,
        "by": "a test",
        "quick": False,
        "seconds": 1.0,
        "machine": about,
        "noise": {"steal": 0.0, "load": 0.1, "disturbed": 0.0, "priority": True},
        "cpus": [0, 1, 2, 3],
        "clock_ghz": stat(3.0),
        "hashes_per_ns": stat(1.0),
        "latency": [{"bytes": s, "pages": "transparent", "ns": stat(expected(s, levels))} for s in SIZES],
        "sequential": None,
        "parallelism": [{"chases": n, "ns": stat(110.0 / n)} for n in (1, 8)],
        "bandwidth": [],
        "loaded": [],
        "transfer": [{"state": "modified", "ns": stat(40.0)}],
    }
    return measured.parsed(json.dumps({**data, **changed}), "test")


def test_capacities_are_found_where_a_formula_has_them():
    points = [(s, expected(s)) for s in SIZES]
    assert hierarchy.knees(points) == [48 * KIB, 2 * MIB, 32 * MIB]
    # Without the sizes at the capacities themselves, the last size before each of them is found.
    assert hierarchy.knees([p for p in points if p[0] & (p[0] - 1)]) == [48 * KIB, 3 * MIB // 2, 24 * MIB]
    assert hierarchy.knees([(s, 80.0) for s in SIZES]) == []


def test_latencies_of_levels_are_those_of_the_formula():
    found = hierarchy.levels(made())
    for level, (_, ns) in zip(("L1", "L2", "L3"), LEVELS, strict=False):
        assert found[level].median == pytest.approx(ns, rel=0.05 if level != "L2" else 0.2), level
    assert found["memory"].median == pytest.approx(110.0, rel=0.05)


def test_a_machine_that_says_another_size_than_it_has_is_noticed():
    assert hierarchy.notes(made()) == []
    m = made()
    about = {
        **m.machine,
        "hypervisor": True,
        "caches": [*m.machine["caches"][:2], {**m.machine["caches"][2], "bytes": 480 * MIB}],
    }
    (note,) = hierarchy.notes(made(machine=about))
    assert (
        "L3: the machine says 480 MiB, but the nearest rise of the latency begins at 32 MiB, which the platform has for its size; a guest"
        in note
    )


def test_the_reach_of_a_tlb_is_told_from_a_cache():
    with_walks = [*LEVELS[:2], (8 * MIB, 25.0), (32 * MIB, 60.0), LEVELS[3]]
    (note,) = hierarchy.notes(made(with_walks))
    assert "slower at 8 MiB, where no cache ends" in note
    assert hierarchy.levels(made(with_walks))["L3"].median == pytest.approx(25.0, rel=0.05)
    llc = machine.here(made(with_walks), "icelake", generations=None).platform["caches"]["llc"]
    assert (llc["size"], llc["ways"]) == ("32768 KiB", 16)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": 1}, "format = 1, and this version of hostnet reads 3"),
        ({"latency": 3}, "latency is no list"),
        ({"latency": []}, "latency or parallelism holds no point"),
        ({"parallelism": [{"chases": 1}]}, "parallelism.0 lacks one of chases, ns"),
        ({"parallelism": [{"chases": 1, "ns": stat(-1.0)}]}, "parallelism.0.ns is no median above 0"),
        ({"clock_ghz": stat(float("inf"))}, "clock_ghz is no median above 0"),
    ],
)
def test_measurements_that_are_none_are_refused_in_a_sentence(change, said):
    with pytest.raises(HostnetError, match="^test: ") as e:
        made(**change)
    assert said in str(e.value)


def test_each_value_has_a_source_that_the_engine_accepts(tmp_path):
    m = made()
    assert machine.choose_base(m)[0] == "icelake"
    here = machine.here(m, "icelake", generations=None)
    out = tmp_path / "here.toml"
    machine.write_here(here, out)
    written = tomllib.loads(out.read_text())
    sources = written["provenance"]
    assert {s.partition(":")[0] for s in sources.values()} <= {"measured", "read", "base", "assumed", "datasheet"}
    # 1.5 ns at 3 GHz; L2 less L1; two modules' worth of what SMBIOS says; the link of the NIC.
    assert written["caches"]["l1d"]["latency_cycles"] == round(1.5 * 3) and sources["core.clock"].startswith(
        "measured:"
    )
    assert written["memory"]["standard"] == "DDR4-2933" and written["pcie"]["generation"] == "gen3"
    assert (written["core"]["count"], written["core"]["threads"]) == (4, 2)
    assert sources["caches.llc.size"].startswith("read:") and sources["core.rob"].startswith(
        "base: icelake: datasheet:"
    )
    # Intel's cores have a next-page prefetcher, which the base's prefetcher lacks.
    assert written["core"]["prefetch"]["quirks"]["next_page"] and sources["core.prefetch.quirks.next_page"].startswith(
        "datasheet: Intel SDM"
    )
    resolved = json.loads(Scenario.load("quadrant1").with_({"platform": str(out), "tenant.0.cores": 2}).resolve())
    assert resolved["platform"]["caches"]["llc"]["size"] == "32 MiB"
    llc = written["caches"]["llc"]
    sets = 32 * MIB // 64 // llc["ways"] // llc["slices"]
    assert sets & (sets - 1) == 0


def test_streams_are_simulated_with_the_instructions_and_at_the_rate_that_were_measured():
    """4 hashes of 16 instructions after each line, and 0.75 hashes a nanosecond at 3 GHz when the stream ran: 4 instructions a
    cycle. That the core computed more at another time says nothing of this stream."""
    loaded = [
        {
            "threads": 1,
            "stores": 0.0,
            "pause_hashes": n,
            "ns": stat(110.0),
            "gbs": stat(9.0),
            "hashes_per_ns": stat(0.75),
        }
        for n in (0, 4)
    ]
    m = made(loaded=loaded, hashes_per_ns=stat(1.1))
    without, pausing = (p.setting for p in m.points() if p.setting.curve == "loaded")
    assert curves.stream_instructions(pausing) - curves.stream_instructions(without) == 8 + 4 * 16
    platform = {**calibrate.platform_tables("icelake")}
    platform["core"] = {**platform["core"], "clock": "3 GHz"}
    tables = curves.scenario(tmp := Path("here.toml"), platform, pausing)
    assert tables["override"]["core"]["compute_ipc"] == pytest.approx(4.0) and tables["platform"] == str(tmp)
    unknown = measured.Setting("mixture", 1, 1)
    assert curves.scenario(tmp, platform, unknown)["override"]["core"]["compute_ipc"] == platform["core"]["width"]


def test_a_fit_sees_every_number_of_chases_and_both_ends_of_each_curve():
    """32 chases alone fill 16 line fill buffers, so that no thinning may leave them out."""
    point = {"ns": stat(110.0), "gbs": stat(9.0), "hashes_per_ns": stat(1.0)}
    pauses = (1024, 256, 128, 64, 32, 16, 8, 4, 0)
    m = made(
        parallelism=[{"chases": n, "ns": stat(110.0 / n)} for n in (1, 2, 4, 8, 16, 32)],
        loaded=[{"threads": 1, "stores": s, "pause_hashes": n, **point} for s in (0.0, 1.0) for n in pauses],
        bandwidth=[
            {"threads": n, "stores": s, "order": order, **point}
            for n in (1, 2)
            for order, s in (("sequential", 0.0), ("sequential", 0.5), ("sequential", 1.0), ("random", 0.0))
        ],
    )
    used = [p.setting for p in fitting.telling_points(m.points())]
    assert [s.chases for s in used if s.curve == "parallelism"] == [1, 2, 4, 8, 16, 32]
    assert [(s.threads, s.stores) for s in used if s.curve == "bandwidth"] == list(product((1, 2), (0.0, 0.5, 1.0)))
    for stores in (0.0, 1.0):
        seen = [s.pause_hashes for s in used if s.curve == "loaded" and s.stores == stores]
        assert len(seen) == 3 and {seen[0], seen[-1]} == {1024, 0}
    assert len(fitting.telling_points(m.points(), most=1000)) == 6 + 6 + 18


def test_look_up_and_crossing_solve_both_measured_times():
    caches = machine.here(made(), "icelake", generations=None).platform["caches"]
    ghz = float(caches["uncore_clock"].split()[0])
    noc, llc = caches["noc_cycles"], caches["llc"]["latency_cycles"]
    found = hierarchy.levels(made())
    l1, l2, l3 = (found[k].median for k in ("L1", "L2", "L3"))
    # Half a cycle of each rounded value.
    assert l2 + (llc + 2 * noc) / ghz == pytest.approx(l3, abs=2 / ghz)
    assert l2 + (llc + 4 * noc) / ghz + (l2 - l1) == pytest.approx(40.0, abs=3 / ghz)


def test_a_line_of_another_core_that_comes_as_fast_as_the_llc_gives_crossings_of_one_cycle():
    """AMD's L3 knows the lines of its L2s: 25 ns for a modified line, as for a hit. The model adds a look-up of an L2, 3.5 ns, and
    two crossings."""
    fast = machine.here(made(transfer=[{"state": "modified", "ns": stat(25.0)}]), "turin", generations=None)
    caches = fast.platform["caches"]
    assert caches["noc_cycles"] == 1
    found = hierarchy.levels(made())
    ghz = float(caches["uncore_clock"].split()[0])
    assert found["L2"].median + (caches["llc"]["latency_cycles"] + 2) / ghz == pytest.approx(
        found["L3"].median, abs=1 / ghz
    )
    (said,) = (n for n in fast.notes if "modified in another core" in n)
    least = found["L3"].median + found["L2"].median - found["L1"].median + 2 / ghz
    assert f"takes 25.0 ns, and at least {least:.1f} ns in the model" in said
    near = machine.here(made(transfer=[{"state": "modified", "ns": stat(29.0)}]), "turin", generations=None)
    assert not [n for n in near.notes if "modified in another core" in n]


def test_cores_that_a_hypervisor_moves_are_named():
    quiet = made().data["noise"]
    assert hierarchy.notes(made(noise={**quiet, "transfer_ns": None})) == []
    assert hierarchy.notes(made(noise={**quiet, "transfer_ns": [30.0, 45.0]})) == []
    (said,) = hierarchy.notes(made(noise={**quiet, "transfer_ns": [30.2, 126.4]}))
    assert "took 30 to 126 ns" in said and "the hypervisor moves the cores" in said


@pytest.mark.parametrize("share", [4, 6, 8])
def test_a_machine_that_gets_some_ways_of_the_llc_has_an_llc_of_these(share):
    """A hypervisor leaves its guest 2, 3 or 4 of 16 ways of 2 MiB."""
    made_of = machine.here(made([*LEVELS[:2], (share * MIB, 25.0), LEVELS[3]]), "icelake", generations=None)
    llc, sources = made_of.platform["caches"]["llc"], made_of.platform["provenance"]
    assert (llc["size"], llc["ways"]) == (f"{share * 1024} KiB", share // 2)
    for key in ("caches.llc.size", "caches.llc.ways"):
        assert sources[key].startswith("measured:") and f"beyond {share} MiB" in sources[key]
        assert "the machine says 32 MiB of 16 ways" in sources[key]
    (said,) = (n for n in made_of.notes if n.startswith("L3:"))
    assert f"begins at {share} MiB, which the platform has for its size" in said
    # The level keeps its latency: 25 ns, whatever its size.
    assert made_of.levels["L3"].median == pytest.approx(25.0, rel=0.15)


@pytest.mark.parametrize("family, base", [(23, "genoa"), (25, "genoa"), (26, "turin"), (27, "turin")])
def test_a_processor_of_amd_gets_the_base_with_its_cores(family, base):
    m = made(machine={**made().machine, "vendor": "AuthenticAMD", "family": family, "model": 2})
    assert machine.choose_base(m)[0] == base
    # Bit 4 of Intel's MSR 1A4H says nothing of other processors.
    assert (
        "Intel"
        not in machine.here(m, "turin", generations=None).platform["provenance"]["core.prefetch.quirks.next_page"]
    )


VALUES = {v.key: v for v in fitting.VALUES}
SETTINGS = [
    measured.Setting("parallelism", chases=1),
    measured.Setting("parallelism", chases=16),
    measured.Setting("parallelism", chases=32),
    measured.Setting("loaded", 1, 1, 0.0, 0),
    measured.Setting("bandwidth", 0, 1, 0.0),
    measured.Setting("bandwidth", 0, 1, 1.0),
]


def by_formula(platform, settings, scale=1.0):
    """Curves by Little's law: a core has `lfb` lines under way, a prefetcher `credits`, a store queue its entries, each for the
    latency of memory; and a channel carries 20 GB/s."""
    core, static = platform["core"], platform["memory"]["static_latency_ns"]
    ns = static + 30.0
    found = []
    for s in settings:
        lines = core["store_queue"] if s.stores == 1 else core["prefetch"]["credits"]
        gbs = min(64 * lines / ns * (1 + s.stores), 20.0) if s.threads else None
        alone = ns / min(s.chases, core["lfb"]) if s.chases else None
        found.append(curves.Simulated(alone, gbs))
    return found


@pytest.mark.parametrize(
    "truth",
    [
        {"core.lfb": 20, "core.prefetch.credits": 30, "memory.static_latency_ns": 75.0, "core.store_queue": 12},
        {"core.lfb": 8, "core.prefetch.credits": 9, "memory.static_latency_ns": 240.0, "core.store_queue": 28},
        {"core.lfb": 31, "core.prefetch.credits": 6, "memory.static_latency_ns": 40.0, "core.store_queue": 5},
    ],
)
def test_a_fit_finds_the_values_from_which_a_formula_made_the_curves(truth):
    """Lines under way of 12 to 48 values each, far from where the search begins, and none of the queues of a controller."""
    start = calibrate.platform_tables("icelake")
    known = copy.deepcopy(start)
    for v in fitting.VALUES:
        if v.key in truth:
            v.put(known, truth[v.key])

    def exactly(x):
        return None if x is None else measured.Figure(x, x, x)

    curve = by_formula(known, SETTINGS)
    points = [measured.Point(s, exactly(c.ns), exactly(c.gbs)) for s, c in zip(SETTINGS, curve, strict=True)]
    found = calibrate.fit(start, points, simulate=by_formula)
    assert found.before > 0.2 and found.residual < 0.03
    there = {k: v for k, v in VALUES.items() if v.get(start) is not None}
    got = {k: v.get(found.platform) for k, v in there.items()}
    assert got == pytest.approx({k: v.get(start) for k, v in there.items()} | truth, rel=0.08)
    assert found.evaluations < 600, "a set of values is simulated once"


def test_a_fit_finds_the_link_that_limits_all_cores_together():
    """Two cores of 12 GB/s share a link of 15 GB/s for loads; half of a store's traffic comes and half goes, at 11 GB/s."""
    settings = [measured.Setting("bandwidth", 0, n, stores) for n in (1, 2) for stores in (0.0, 1.0)]

    def simulate(platform, settings, scale=1.0):
        link = {k: float(v.split()[0]) for k, v in platform["caches"]["llc"]["quirks"]["memory_link"].items()}
        lines = [min(12.0 * s.threads, link["read"], link["write"] if s.stores else 1e9) for s in settings]
        return [curves.Simulated(None, gbs * (1 + s.stores)) for gbs, s in zip(lines, settings, strict=True)]

    gbs = [12.0, 22.0, 15.0, 22.0]
    points = [measured.Point(s, None, measured.Figure(g, g, g)) for s, g in zip(settings, gbs, strict=True)]
    found = calibrate.fit(calibrate.platform_tables("turin"), points, simulate=simulate)
    link = found.platform["caches"]["llc"]["quirks"]["memory_link"]
    assert {k: float(v.removesuffix(" GB/s")) for k, v in link.items()} == pytest.approx(
        {"read": 15, "write": 11}, rel=0.03
    )


def test_the_residual_is_that_of_the_formula():
    point = measured.Point(SETTINGS[0], measured.Figure(100.0, 99.0, 101.0), None)
    # ln 1.1 is 0.0953.
    assert fitting.residual([point], [curves.Simulated(110.0, None)]) == pytest.approx(0.0953, abs=1e-4)


def test_drift_is_what_leaves_both_spreads(tmp_path):
    m, out = made(), tmp_path / "here.toml"
    machine.write_here(machine.here(m, "icelake", generations=None), out)
    same = drift.drifts(out, m)
    assert [d.what for d in same] == ["core clock", "L1", "L2", "L3", "line modified in another core"]
    assert not any(d.drifted for d in same)
    slower = made(transfer=[{"state": "modified", "ns": stat(90.0)}], clock_ghz=stat(3.03))
    assert [d.what for d in drift.drifts(out, slower) if d.drifted] == ["line modified in another core"]


def test_the_page_shows_each_curve_with_its_residual(tmp_path):
    here = machine.here(made(), "icelake", generations=None)
    points = [measured.Point(SETTINGS[0], measured.Figure(100.0, 98.0, 103.0), None)]
    simulated = [curves.Simulated(110.0, None)]
    here = machine.Here(
        here.platform,
        here.measured,
        "icelake",
        here.levels,
        fitting.Fit(here.platform, {}, [], points, simulated, 0.5, 9),
        ["one <doubt>"],
    )
    out = tmp_path / "here.html"
    page.write_page(here, out)
    text = out.read_text()
    assert "chases beside each other 9.5%" in text and "one &lt;doubt&gt;" in text
    assert re.findall(r"<figcaption>(.*?)</figcaption>", text) == [
        "Latency of a load [ns]",
        "Latency of a load of chases beside each other [ns]",
    ]
    assert "datasheet: 352 entries" in text and text.count("data-chart") >= 2
    # Values of a preset, which the platform's own tables do not spell out.
    values = api.platform("icelake")["caches"]["llc"]["quirks"]
    assert (
        "preset" in here.platform["caches"]["llc"]["quirks"]
        and "clean_victim" not in here.platform["caches"]["llc"]["quirks"]
    )
    row = re.search(r"<tr>(?:(?!</tr>).)*caches\.llc\.quirks\.clean_victim.*?</tr>", text, re.S)
    assert row and f">{values['clean_victim']}<" in row[0] and ">None<" not in text
    assert page.expected(here, 48 * KIB) == pytest.approx(here.levels["L1"].median)


def test_the_command_writes_a_platform_from_kept_measurements(cli, tmp_path):
    kept, out = tmp_path / "kept.json", tmp_path / "here.toml"
    kept.write_text(json.dumps(dict(made().data)))
    done = cli("calibrate", "--measured", kept, "--no-fit", "-o", out, check=0)
    assert "base: icelake, the cores of model 106" in done.stdout and out.with_suffix(".html").is_file()
    assert "here.html shows the measured curves\n" in done.stdout
    again = cli("calibrate", "--measured", kept, "--check", out, check=0)
    assert "0 of 5 figures drifted" in again.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "where to? Give -o FILE.toml"),
        (["-o", "here.txt"], "name it here.toml"),
        (["-o", "here.toml", "--check", "other.toml"], "give one of them"),
        (["--check", "none.toml"], "none.toml: cannot be read"),
        (["--measured", "none.json", "-o", "here.toml"], "none.json: cannot be read"),
        (["-o", "here.toml", "--base", "icelak"], "there is no such platform"),
        (["probe.csv", "--quick", "-o", "here.toml"], "--quick is for measurements of this machine"),
    ],
)
def test_mistakes_end_in_a_sentence_before_anything_is_measured(cli, words, said):
    done = cli("calibrate", *words)
    assert done.returncode == 2 and said in done.stderr.replace("\n", " ")
    assert len(done.stderr.strip().splitlines()) <= 2


def test_a_short_measurement_of_this_machine_is_plausible():
    m = calibrate.measure(quick=True, quiet=True)
    found = calibrate.levels(m)
    order = [found[k].median for k in ("L1", "L2", "L3", "memory") if k in found]
    assert order == sorted(order) and len(set(order)) == len(order), found
    assert 0.3 < found["L1"].median < 10 and 20 < found["memory"].median < 2000
    one = {p.setting.chases: p.ns.median for p in m.points() if p.setting.curve == "parallelism"}
    assert one[8] < one[1] / 2, "independent loads overlap"
    assert m.clock_ghz is None or 0.5 < m.clock_ghz.median < 8


@pytest.mark.parametrize("base", ["icelake", "sapphirerapids", "cascadelake", "skylake", "altra"])
def test_the_engine_takes_every_value_that_the_fit_may_try(base):
    start = machine.here(made(), base, generations=None).platform
    for v in fitting.VALUES:
        if v.get(start) is not None:
            for end in (v.decode(0.0), v.decode(1.0)):
                curves.curves(fitting.with_values(start, [v], [end]), SETTINGS[:1], scale=0.05)


def test_a_base_whose_nodes_say_their_cores_gets_the_measured_number():
    m = made()
    cores = len(m.machine["first_threads"]) // m.machine["sockets"]
    platform = machine.here(m, "icx", generations=None).platform
    assert (platform["nodes"]["cores"], platform["core"]["count"]) == (cores, cores)
    assert platform["provenance"]["nodes.cores"].startswith("read: ")
    curves.curves(platform, SETTINGS[:1], scale=0.05)
