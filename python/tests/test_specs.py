"""Scenarios as Python objects: attribute access, changes, and mistakes that name file and key."""

import json
import re

import pytest

import hostnet as hn
from hostnet import HostnetError, keys, lives, memory_trace, trace
from hostnet.paths import SCENARIOS
from hostnet.specs import parse_assignment, parse_value, schema, split_values


def test_attributes_read_and_write_the_tables(tiny):
    assert tiny.placement.ways == 2
    tiny.placement.ways = 4
    assert tiny.to_dict()["placement"]["ways"] == 4
    assert tiny.tenant[0].app.kind == "mica"


def test_with_changes_a_copy_only(tiny):
    changed = tiny.with_({"placement.ways": 6, "tenant.0.cores": 1}, seed=9, rings={"rx_buffers": 128})
    assert (changed.placement.ways, changed.tenant[0].cores, changed.seed, changed.rings.rx_buffers) == (6, 1, 9, 128)
    assert (tiny.placement.ways, tiny.tenant[0].cores, tiny.seed, tiny.rings.rx_buffers) == (2, 2, 1, 64)
    # Messages name entries of lists with brackets, and these are paths, too.
    assert tiny.with_({"tenant[0].cores": 1}).tenant[0].cores == 1


def test_none_removes_a_key(tiny):
    assert "ways" not in tiny.with_({"placement.ways": None}).to_dict()["placement"]


def test_a_misspelt_attribute_names_the_nearest_key(tiny):
    with pytest.raises(hn.SpecError, match=r'tiny\.toml: placement\.wayz: unknown key "wayz"; did you mean "ways" '):
        tiny.placement.wayz = 4
    with pytest.raises(hn.SpecError, match='"ways"'):
        _ = tiny.placement.wayz


def test_completion_offers_the_keys_of_the_schema(tiny):
    assert {"policy", "ways", "sweep_rx"} <= set(dir(tiny.placement))
    assert "ways" in tiny.placement.help()


@pytest.mark.parametrize(
    "path, why",
    [
        ("tenant.3.cores", "1 entry"),
        ("tenant.kvs.cores", "1 entry"),
        ("seed.x", "not a table"),
        ("placement.ways.x", "not a table"),
    ],
)
def test_a_path_that_leads_nowhere_is_refused(tiny, path, why):
    with pytest.raises(hn.SpecError, match=why) as e:
        tiny.with_({path: 1})
    assert "tiny.toml" in str(e.value) and path in str(e.value)


@pytest.mark.parametrize(
    "text, value",
    [
        ("4", 4),
        ("0.5", 0.5),
        ("true", True),
        ("nic", "nic"),
        ("26 Mrps", "26 Mrps"),
        ('"4"', "4"),
        ("[1, 2]", [1, 2]),
    ],
)
def test_command_line_values_read_as_toml_or_as_text(text, value):
    assert parse_value(text) == value


@pytest.mark.parametrize("text", [str(2**63), str(-(2**63) - 1)])
def test_a_whole_number_that_toml_cannot_hold_is_refused_with_its_key(text):
    with pytest.raises(hn.HostnetError, match=f"^rings.rx_buffers = {text} is beyond"):
        parse_value(text, "rings.rx_buffers")


@pytest.mark.parametrize("text", ["placement.ways", "=4", " =4", ""])
def test_an_assignment_needs_path_and_value(text):
    with pytest.raises(hn.HostnetError, match="path=value"):
        parse_assignment(text)


def test_values_of_a_sweep_are_split_outside_of_brackets_and_quotes():
    assert split_values("2, 4") == ["2", "4"] and split_values("2,,4") == ["2", "", "4"]
    mixes = '[{ size = "64 B", weight = 1 }, { size = "1 KiB", weight = 2 }],imix,"a, b"'
    assert [parse_value(v) for v in split_values(mixes)] == [
        [{"size": "64 B", "weight": 1}, {"size": "1 KiB", "weight": 2}],
        "imix",
        "a, b",
    ]


def test_resolving_is_deterministic_and_complete(tiny):
    import json

    assert tiny.resolve() == tiny.copy().resolve()
    resolved = json.loads(tiny.resolve())
    assert isinstance(resolved["platform"], dict), "the platform is inlined"


def test_the_text_of_a_changed_scenario_loads_again(tiny, tmp_path):
    again = tmp_path / "again.toml"
    again.write_text(tiny.with_({"placement.ways": 3}).to_toml())
    assert hn.Scenario.load(again).resolve() == tiny.with_({"placement.ways": 3}).resolve()


def test_a_saved_point_is_the_same_scenario_in_python_and_on_the_command_line(tiny, tmp_path, cli):
    import json

    spec = json.loads(tiny.resolve())
    for name, content in (
        ("spec", spec),
        ("point", {"key": "0", "point": {"n": 1}, "spec": spec}),
        ("result", {"metrics": {}, "spec": spec}),
    ):
        file = tmp_path / f"{name}.json"
        file.write_text(json.dumps(content) + "\n")
        assert json.loads(hn.Scenario(file).resolve()) == spec
        changed = hn.Scenario(file).with_({"platform.memory.channels": 8, "placement.ways": 5})
        assert json.loads(changed.resolve()) == json.loads(
            tiny.with_({"platform.memory.channels": 8, "placement.ways": 5}).resolve()
        )
        said = json.loads(cli("run", file, "--json", check=0).stdout)
        assert said["spec"] == spec and said["metrics"] == hn.run(tiny).metrics
    points = tmp_path / "specs.json"
    points.write_text(2 * (json.dumps({"key": "0", "point": {}, "spec": spec}) + "\n"))
    for file, sentence in [
        (points, "holds 2 points, one a line"),
        (tmp_path / "list.json", "is not a scenario"),
        (tmp_path / "bad.json", "not a JSON file"),
    ]:
        if file != points:
            file.write_text("[1]" if file.stem == "list" else "{")
        assert sentence in cli("run", file, check=2).stderr


def test_what_is_no_scenario_and_no_control_plane_is_one_sentence(tiny, tmp_path):
    with pytest.raises(hn.SpecError, match="5 is no scenario; give a file"):
        hn.run(5)
    with pytest.raises(hn.HostnetError, match="control = 5 is no function"):
        hn.run(tiny, control=5)
    (tmp_path / "spec.json").write_text(tiny.resolve())
    with pytest.raises(hn.SpecError, match=r"spec\.json: a value is not a finite number"):
        hn.Scenario(tmp_path / "spec.json").with_({"run.loss": float("nan")}).resolve()


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda sc, r: hn.sweep(sc, {3: [1]}), "3 is no path of a key"),
        (lambda sc, r: hn.sweep(sc, {None: [1]}), "None is no path of a key"),
        (lambda sc, r: hn.sweep(sc, {("a", "b"): [1]}), "is no path of a key"),
        (
            lambda sc, r: hn.sweep(sc, {"placement.ways": [2], "placement": [{"policy": "dma"}]}),
            "the values of placement replace those of placement.ways",
        ),
        (lambda sc, r: sc.with_({3: 1}), "3 is no path of a key"),
        (lambda sc, r: sc.copy().set(3, 1), "3 is no path of a key"),
        (lambda sc, r: sc.with_([1]), r"changes = \[1\] is no table"),
        (lambda sc, r: hn.compare(r, r, metrics=[3]), r"metrics = \[3\] is no list of texts"),
        (lambda sc, r: hn.compare(r, r, metrics="lat_p99_us"), "metrics = 'lat_p99_us' is no list of texts"),
        (lambda sc, r: hn.compare(r, r, names=3), "names = 3 is no list of texts"),
        (lambda sc, r: hn.plot(r.to_frame(), 3, "lat_p99_us"), "no column 3"),
        (lambda sc, r: hn.plot(r.to_frame(), "seed", "lat_p99_us", hue=3), "no column 3"),
        (lambda sc, r: r.table([]), r"no table \[\]"),
        (lambda sc, r: r.save(3), "3 is no name of a file"),
        (lambda sc, r: hn.Result.load(3), "3 is no name of a file"),
        (lambda sc, r: hn.sweep(sc, {"run.requests": [2031, 2000, 2031]}), "run.requests: has 2031 twice"),
        (
            lambda sc, r: hn.sweep(sc, {"traffic.rate": ["1 Mrps", "2 Mrps", "1000 krps"], "placement.ways": [2, 3]}),
            "traffic.rate: '1 Mrps' and '1000 krps' are one value; give each value once",
        ),
        (
            lambda sc, r: hn.sweep(sc, {"override.core.clock": ["3 GHz", "3000 MHz"]}),
            "'3 GHz' and '3000 MHz' are one value",
        ),
        (lambda sc, r: hn.sweep(sc, {"placement": [{"policy": "dma"}] * 2}), "placement: has {'policy': 'dma'} twice"),
        (lambda sc, r: r.plot().save(3), "3 is no name of a file"),
        (lambda sc, r: trace.write(lives.follow(sc, "first", 1), 3), "3 is no name of a file"),
        (lambda sc, r: memory_trace.write(sc, 3, "dramsim3"), "3 is no name of a file"),
        (lambda sc, r: hn.compare(r, 3), "run 2 of the comparison is neither a result nor a list of results"),
        (lambda sc, r: hn.compare(None, r), "run 1 of the comparison is neither a result nor a list of results"),
        (lambda sc, r: hn.study(3, "fig5"), "no system 3"),
        (lambda sc, r: hn.study("sweeper", 4), "no study 4"),
    ],
)
def test_names_of_another_type_are_one_sentence(tiny, call, says):
    with pytest.raises(hn.HostnetError, match=says) as raised:
        call(tiny, hn.run(tiny))
    assert "\n" not in str(raised.value)


def test_a_capture_is_read_leniently_only_where_one_is_replayed(tiny, cli):
    with pytest.raises(hn.HostnetError, match="replays no capture, so --lenient"):
        hn.run(tiny, lenient=True)
    said = cli("sweep", "kvs", "--lenient", "--vary", "placement.ways=2,4", check=2).stderr
    assert "replays no capture" in said and len(said.splitlines()) == 1


@pytest.mark.parametrize(
    "changes, key",
    [
        ({"placement.ways": 13}, "ways"),
        ({"placement.ways": 0}, "ways"),
        ({"placement.wayz": 2}, "wayz"),
        ({"traffic.rate": "26 parsecs"}, "rate"),
        ({"traffic.packet": "0 B"}, "packet"),
        ({"rings.rx_buffers": -1}, "rx_buffers"),
        ({"tenant.0.cores": 99}, "cores"),
        ({"platform": "sim2"}, "platform"),
        ({"run.load": "peek_slo"}, "load"),
    ],
)
def test_a_wrong_value_names_file_and_key_in_one_sentence(tiny, changes, key):
    with pytest.raises(hn.SpecError) as e:
        tiny.with_(changes).resolve()
    assert "tiny.toml" in str(e.value) and key in str(e.value) and "\n" not in str(e.value)


def test_sections_of_several_kinds_know_their_own_keys(tiny):
    assert "get_fraction" in dir(tiny.tenant[0].app)
    with pytest.raises(hn.SpecError, match="item_size"):
        tiny.tenant[0].app.item_sise = "512 B"


def test_the_platform_can_be_overridden_by_attribute(tiny):
    import json

    tiny.override.memory.channels = 8
    assert json.loads(tiny.resolve())["platform"]["memory"]["channels"] == 8
    with pytest.raises(hn.SpecError, match=r'override\.memory\.chanels: .*; did you mean "channels"'):
        tiny.override.memory.chanels = 8


def test_the_typed_face_matches_the_schema():
    from hostnet import _stubs

    assert _stubs.FILE.read_text() == _stubs.render(hn.schema()), "run `make stubs`"


# ---- lists, platforms, keys ------------------------------------------------------------------------------------------

XMEM = {"name": "batch", "cores": 1, "app": {"kind": "xmem"}}


def test_lists_of_a_scenario_can_be_changed_in_place(tiny):
    tiny.tenant.append(XMEM)
    assert [t["name"] for t in tiny.to_dict()["tenant"]] == ["kvs", "batch"]
    assert tiny.tenant[1].app.kind == "xmem" and len(tiny.tenant) == 2
    tiny.tenant[1].cores = 3
    assert tiny.to_dict()["tenant"][1]["cores"] == 3
    tiny.tenant.insert(0, XMEM)
    del tiny.tenant[0]
    tiny.tenant += [XMEM | {"name": "third"}]
    assert [t["name"] for t in tiny.to_dict()["tenant"]] == ["kvs", "batch", "third"]
    assert [t.name for t in tiny.tenant[1:]] == ["batch", "third"]


def test_a_list_that_is_not_written_yet_appears_with_its_first_entry(tiny):
    assert tiny.peripheral == [] and "peripheral" not in tiny.to_dict()
    tiny.peripheral.append({"kind": "ssd"})
    assert tiny.to_dict()["peripheral"] == [{"kind": "ssd"}]


def test_reading_changes_nothing(tiny):
    before = tiny.to_dict()
    _ = tiny.traffic.spikes, tiny.override.memory.channels, tiny.platform.core, tiny.peripheral, tiny.placement.iat
    assert tiny.to_dict() == before


def test_a_section_that_is_not_written_yet_appears_when_it_is_assigned(tiny):
    tiny.traffic.spikes.probability = 0.1
    assert tiny.to_dict()["traffic"]["spikes"] == {"probability": 0.1}


def channels_of(scenario):
    import json

    return json.loads(scenario.resolve())["platform"]["memory"]["channels"]


def test_a_platforms_value_is_set_as_people_write_it(tiny):
    assert tiny.platform == "sim24" and tiny.platform.memory.channels == 4 == tiny.override.memory.channels
    tiny.platform.memory.channels = 8
    assert channels_of(tiny) == tiny.platform.memory.channels == 8
    assert channels_of(tiny.with_({"platform.memory.channels": 2})) == 2
    assert tiny.to_dict()["platform"] == "sim24"
    for wrong in (lambda: setattr(tiny.platform.memory, "chanels", 2), lambda: tiny.set("platform.memory.chanels", 2)):
        with pytest.raises(hn.SpecError, match='did you mean "channels"'):
            wrong()


def test_a_file_may_give_its_platform_values_in_every_form_people_write(tiny_file):
    text = tiny_file.read_text()
    for form in (
        'platform = "sim24"\noverride = { memory = { channels = 8 } }',
        'platform = { name = "sim24", memory = { channels = 8 } }',
    ):
        tiny_file.write_text(text.replace('platform = "sim24"', form))
        sc = hn.Scenario(tiny_file)
        assert channels_of(sc) == 8 == sc.platform.memory.channels
        sc.platform.memory.channels = 2
        assert channels_of(sc) == 2
    tiny_file.write_text(text.replace('platform = "sim24"', 'platform = "sim24"\nplatform.memory.channels = 8'))
    with pytest.raises(
        hn.SpecError, match=r"not a TOML file.*values of a platform that is named go under \[override\]"
    ):
        hn.Scenario(tiny_file)


def test_the_schema_that_is_printed_has_the_override_of_every_platform_value(cli):
    import json

    printed = json.loads(cli("schema", check=0).stdout)
    assert printed == hn.schema()
    defs = printed["$defs"]
    memory = defs[printed["properties"]["override"]["$ref"].rsplit("/", 1)[-1]]["properties"]["memory"]
    part = defs[memory["$ref"].rsplit("/", 1)[-1]]
    assert "channels" in part["properties"] and "required" not in part
    whole = {n: d for n, d in defs.items() if "properties" in d and f"{n}InOverride" in defs}
    assert whole and all(
        defs[f"{n}InOverride"]["properties"].keys() == d["properties"].keys() for n, d in whole.items()
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda sc: sc.set("placement.wayz", 4),
        lambda sc: sc.with_({"placement.wayz": 4}),
        lambda sc: sc.with_(placement={"wayz": 4}),
        lambda sc: setattr(sc, "placement", {"policy": "ddio", "wayz": 4}),
        lambda sc: setattr(sc.placement, "wayz", 4),
        lambda sc: sc.with_(placemnt={"ways": 4}),
        lambda sc: setattr(sc, "placemnt", {}),
        lambda sc: sc.tenant.append({"name": "x", "core": 2}),
        lambda sc: setattr(sc.tenant[0], "core", 2),
        lambda sc: setattr(sc.tenant[0], "app", {"kind": "mica", "item_sise": 3}),
        lambda sc: sc.set("tenant.0.app", {"knid": "mica"}),
    ],
)
def test_a_misspelt_key_raises_when_it_is_set(tiny, change):
    before = tiny.to_dict()
    with pytest.raises(hn.SpecError, match=r"tiny\.toml: .*unknown key"):
        change(tiny)
    assert tiny.to_dict() == before


def test_every_section_of_every_shipped_scenario_refuses_a_key_it_does_not_have():
    from hostnet.paths import SCENARIOS
    from hostnet.specs import Section, Sections

    def sections(at):
        if isinstance(at, Section):
            yield at
            for key in at:
                yield from sections(getattr(at, key))
        elif isinstance(at, Sections):
            for entry in at:
                yield from sections(entry)

    seen = 0
    for file in SCENARIOS.glob("*.toml"):
        for section in sections(hn.Scenario(file)):
            seen += 1
            with pytest.raises(hn.SpecError, match='unknown key "zzz"'):
                section.zzz = 1
    assert seen > 50


# ---- what stands for a scenario, and for its values --------------------------------------------------------------------


def test_names_paths_and_tables_stand_for_scenarios(tiny, tiny_file):
    one = hn.run(tiny).metrics
    for given in (tiny_file, str(tiny_file), tiny.to_dict()):
        assert hn.run(given).metrics == one
    assert hn.run("directed-rx").spec["name"] == "directed-rx"
    assert hn.sweep("directed-rx", {"seed": [1, 2]})["seed"].to_list() == [1, 2]
    with pytest.raises(hn.HostnetError, match='did you mean "kvs"'):
        hn.run("kvss")


def test_arrays_ranges_and_generators_are_swept(tiny):
    import numpy as np
    import polars as pl

    expected = [2, 4]
    for given in (
        np.array([2, 4]),
        range(2, 5, 2),
        (w for w in (2, 4)),
        pl.Series([2, 4]),
        {2: 0, 4: 0}.keys(),
        np.int64([2, 4]),
    ):
        assert hn.sweep(tiny, {"placement.ways": given})["placement.ways"].to_list() == expected
    assert tiny.with_({"placement.ways": np.int64(6)}).resolve() == tiny.with_({"placement.ways": 6}).resolve()
    fractions = hn.sweep(tiny, {"tenant.0.app.get_fraction": np.linspace(0.25, 0.75, 2)})
    assert fractions["tenant.0.app.get_fraction"].to_list() == [0.25, 0.75]


@pytest.mark.parametrize("name", ["kvs", "quadrant3", "idio", "testpmd", "ccnic-upi"])
def test_a_resolved_spec_as_studies_save_it_is_a_scenario_again(name):
    resolved = hn.Scenario(name).resolve()
    assert "null" in resolved
    assert hn.Scenario(json.loads(resolved)).resolve() == resolved


@pytest.mark.parametrize("given", ["24", 4, None, [], {"a": 1}])
def test_what_is_no_list_of_values_is_one_sentence(tiny, given):
    with pytest.raises(hn.HostnetError, match="placement.ways: a sweep needs a list of at least one value"):
        hn.sweep(tiny, {"placement.ways": given})


def test_values_without_end_are_one_sentence(tiny):
    import itertools

    with pytest.raises(hn.HostnetError, match="more than 1,000,000 values; is it endless"):
        hn.sweep(tiny, {"seed": itertools.count()})
    with pytest.raises(hn.HostnetError, match="1,000,000,000 points"):
        hn.sweep(tiny, {"seed": range(1000), "placement.ways": range(1000), "rings.rx_buffers": range(1000)})


def test_all_errors_have_one_base(tiny):
    from hostnet import _core
    from hostnet.scoreboard import ClaimError

    assert all(issubclass(e, hn.HostnetError) for e in (hn.SpecError, hn.NotBuiltYet, hn.RunFailed, ClaimError))
    assert issubclass(hn.SpecError, ValueError)
    for wrong in (
        lambda: _core.resolve("a = ", "x.toml", []),
        lambda: tiny.with_(seed=-1).resolve(),
        lambda: _core.run(tiny.resolve().replace('"policy":"ddio"', '"policy":"x"')),
    ):
        with pytest.raises(hn.HostnetError):
            wrong()


# ---- platforms ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(hn.platforms()))
def test_every_value_of_a_platform_says_where_it_comes_from(name):
    from hostnet.api import leaves

    found = hn.platform(name)
    values = dict(leaves(found))
    assert len(values) > 60 and set(found["provenance"]) == set(values)
    kinds = ("datasheet: ", "paper: ", "standard: ", "artifact: ", "measured: ", "fitted: ", "assumed: ", "default: ")
    assert all(text.startswith(kinds) for text in found["provenance"].values()), found["provenance"]


def test_platforms_prints_a_provenance_for_every_value(cli):
    out = cli("platforms", "sim24", check=0).stdout
    rows = [line.split() for line in out.splitlines() if line.strip() and "." in line.split()[0]]
    assert len(rows) > 60 and all(len(r) >= 3 for r in rows)
    assert any(r[0] == "caches.llc.write_ack" and r[3] == "default:" for r in rows), rows


def test_a_key_that_takes_a_word_or_a_table_is_set_with_either():
    s = hn.Scenario.load("testpmd")
    for value in ("all_used", {"after": 16}):
        s.set("peripheral.0.rings.write_back", value)
        assert json.loads(s.resolve())["peripheral"][0]["rings"]["write_back"] == value


@pytest.mark.parametrize(
    "path, hint",
    [
        ("run.seed", '; "seed" is a key of its own'),
        ("run.rate", "; traffic has it"),
        ("run.placement", '; "placement" is a table of its own'),
        ("traffic.requests", "; run has it"),
        ("run.lod", '; did you mean "load"'),
    ],
)
def test_a_wrong_key_reads_the_same_in_a_file_and_in_python(tiny, tiny_file, cli, path, hint):
    table, _, key = path.rpartition(".")
    shown = f'{table}.{key}: unknown key "{key}"{hint} (valid: '
    with pytest.raises(hn.SpecError) as raised:
        tiny.set(path, 1)
    assert shown in str(raised.value)
    tiny_file.write_text(tiny_file.read_text().replace(f"[{table}]", f"[{table}]\n{key} = 1"))
    in_file = cli("run", tiny_file).stderr
    assert str(raised.value).partition(": ")[2] in in_file
    with pytest.raises(hn.SpecError) as engine:
        hn._core.resolve(tiny_file.read_text(), str(tiny_file), [str(p) for p in hn.paths.search_dirs(tiny_file)])
    assert str(engine.value).partition(": ")[2] == str(raised.value).partition(": ")[2]


def test_every_scenario_that_comes_with_hostnet_is_listed_with_its_platform_and_a_sentence(cli):
    listed = hn.scenarios()
    assert listed.keys() == {f.stem for f in SCENARIOS.glob("*.toml")}
    for platform, sentence in listed.values():
        assert platform in hn.platforms() and 20 < len(sentence) < 250 and not sentence.endswith(("Fig", "Fig.", "."))
    assert listed["kvs"] == (
        "sim24",
        "MICA on 24 cores, 95 % SETs of 1 KiB items: the key-value store of Sweeper (MICRO'22)",
    )
    shown = cli("scenarios", check=0).stdout
    assert all(name in shown for name in listed)


def said(path):
    return {row[0]: row[1:] for row in keys.rows(path)}


def test_a_table_of_the_schema_is_told_by_key_with_what_it_takes():
    placement = said("placement")
    assert placement["policy"][:2] == ["dma, ddio, ideal, idio, table", ""] and placement["sweep_rx"][:2] == [
        "true, false",
        "false",
    ]
    assert placement["ways"] == [
        "whole number, text",
        "2",
        "LLC ways into which writes of devices may allocate. A number counts from way 0 up, whereas the number of "
        '`tenant.llc_ways` counts from the top way down; a string such as "0-3" names a range, "0x600" is the bit mask '
        'of "9-10", and "all" stands for every way of the platform\'s LLC. 2, which are ways 0 and 1, when absent. Where '
        '`caches.llc.quirks.device_ways = "highest"`, ways count from the other end.',
    ]
    assert said("placement.ways") == {"ways": placement["ways"]}
    assert said("traffic")["rate"][0] == '"26 Mrps", "10 Gbps"'
    assert said("run")["loss"][:2] == ['share, as 0.02 or "2 %"', "0.01"]
    assert said("placement.policy")["dma"] == ["", "", "Conventional DMA: inbound lines go to DRAM."]


def test_the_keys_that_take_percentages_are_the_shares_of_the_reference(tiny):
    """Numbers that are no shares refuse a percentage, and shares read it as a hundredth of its number."""
    told = {f"{path}.{key}": takes for path, rows in keys.tables() for key, takes, _, _ in rows if path == "run"}
    for key in ("loss", "precision", "search_tolerance"):
        assert told[f"run.{key}"] == 'share, as 0.02 or "2 %"'
    assert told["run.slo_multiple"] == "number"
    searching = tiny.with_({"run.load": "peak_loss", "run.requests": 4000})
    assert json.loads(searching.with_({"run.loss": "2 %"}).resolve())["run"]["loss"] == 0.02


@pytest.mark.parametrize("key, shown", [("seed", "seed"), ("tenant.0.cores", "tenant[0].cores")])
def test_a_number_beyond_64_bits_is_named_with_its_key(tiny, key, shown):
    for number in (2**63, 2**64 - 1, 2**70):
        with pytest.raises(
            HostnetError, match=re.escape(f"{shown} = {number} is beyond what a whole number of TOML holds")
        ):
            tiny.with_({key: number}).resolve()
    assert json.loads(tiny.with_({"seed": 2**63 - 1}).resolve())["seed"] == 2**63 - 1


def test_kinds_are_told_and_the_keys_of_one():
    assert {"mica", "l3fwd", "testpmd"} <= said("tenant.app").keys()
    assert "get_fraction" in said("tenant.0.app.mica").keys() and "get_fraction" not in said("tenant.app.l3fwd")
    assert said("platform.memory") == said("override.memory") and "channels" in said("platform.memory")


@pytest.mark.parametrize(
    "path, hint",
    [
        ("placment", 'did you mean "placement"'),
        ("placement.wayz", 'did you mean "ways"'),
        ("placement.ways.low", "a single value"),
        ("", "choose one of"),
        ("tenant.app.mika", 'did you mean "mica"'),
    ],
)
def test_a_key_that_the_schema_does_not_have_is_one_sentence(path, hint):
    with pytest.raises(HostnetError, match=re.escape(hint)):
        keys.rows(path)


def test_every_table_of_the_schema_can_be_told():
    def walk(path):
        for name in said(path):
            if name != path.rpartition(".")[2] and path.count(".") < 4:
                assert all(isinstance(cell, str) for cell in said(path)[name])
                walk(f"{path}.{name}")

    for top in schema()["properties"]:
        walk(top)


def test_a_metric_that_does_not_exist_is_one_sentence(tiny):
    result = hn.run(tiny)
    assert result["lat_p99_us"] == result.metrics["lat_p99_us"]
    with pytest.raises(HostnetError, match='no metric "lat_p99"; did you mean "lat_p9'):
        result["lat_p99"]
    with pytest.raises(HostnetError, match='no metric "zzz"; `hostnet metrics` lists them'):
        result["zzz"]


def undescribed(node, path=""):
    """Keys of a schema, and kinds of a table, that have no sentence."""
    found = [
        f"{path}.{key}" for key, of in node.get("properties", {}).items() if key != "kind" and not of.get("description")
    ]
    for option in [o for union in ("oneOf", "anyOf") for o in node.get(union, ()) if isinstance(o, dict)]:
        kind = option.get("properties", {}).get("kind", {}).get("const")
        found += [f"{path}={kind}"] if kind and not option.get("description") else []
        found += undescribed(option, f"{path}={kind}" if kind else path)
    return found


def test_every_key_of_the_schema_has_a_sentence():
    whole = hn.schema()
    tables = {"": whole, **whole["$defs"]}
    assert sum(len(t.get("properties", ())) for t in tables.values()) > 500
    assert [key for name, table in tables.items() for key in undescribed(table, name)] == []


def test_a_key_and_a_kind_without_a_sentence_are_found():
    kind = {"properties": {"kind": {"const": "mica"}, "pairs": {"type": "integer"}}}
    assert undescribed({"oneOf": [kind], "properties": {"a": {}, "b": {"description": "B."}}}, "App") == [
        "App.a",
        "App=mica",
        "App=mica.pairs",
    ]


def test_a_scenario_has_no_attribute_for_a_key_that_there_is_not(tiny):
    assert not hasattr(tiny, "keys") and not hasattr(tiny.placement, "wayz") and hasattr(tiny.placement, "ways")
    with pytest.raises(hn.SpecError, match='did you mean "ways"'):
        tiny.placement.wayz = 2


def test_files_may_begin_with_the_mark_of_windows_editors(tmp_path, tiny_file) -> None:
    text = tiny_file.read_text(encoding="utf-8").replace('"sim24"', '"own"')
    (tmp_path / "own.toml").write_text('\ufeffname = "own"\nbase = "sim24"\ncore.count = 12\n', encoding="utf-8")
    plain, marked = tmp_path / "plain.toml", tmp_path / "marked.toml"
    plain.write_text(text, encoding="utf-8")
    marked.write_text(f"\ufeff{text}", encoding="utf-8")
    assert hn.Scenario.load(marked).resolve() == hn.Scenario.load(plain).resolve()
    assert hn.platform(tmp_path / "own.toml")["core"]["count"] == 12
