"""Scenarios as Python objects: attribute access, changes, and mistakes that name file and key."""

import pytest

import hostnet as hn
from hostnet.specs import parse_assignment, parse_value


def test_attributes_read_and_write_the_tables(tiny):
    assert tiny.placement.ways == 2
    tiny.placement.ways = 4
    assert tiny.to_dict()["placement"]["ways"] == 4
    assert tiny.tenant[0].app.kind == "mica"


def test_with_changes_a_copy_only(tiny):
    changed = tiny.with_({"placement.ways": 6, "tenant.0.cores": 1}, seed=9, rings={"rx_buffers": 128})
    assert (changed.placement.ways, changed.tenant[0].cores, changed.seed, changed.rings.rx_buffers) == (6, 1, 9, 128)
    assert (tiny.placement.ways, tiny.tenant[0].cores, tiny.seed, tiny.rings.rx_buffers) == (2, 2, 1, 64)


def test_none_removes_a_key(tiny):
    assert "ways" not in tiny.with_({"placement.ways": None}).to_dict()["placement"]


def test_a_misspelt_attribute_names_the_nearest_key(tiny):
    with pytest.raises(hn.SpecError, match=r"tiny\.toml.*\[placement\].*'wayz'.*'ways'"):
        tiny.placement.wayz = 4
    with pytest.raises(hn.SpecError, match="'ways'"):
        _ = tiny.placement.wayz


def test_completion_offers_the_keys_of_the_schema(tiny):
    assert {"policy", "ways", "sweep_rx"} <= set(dir(tiny.placement))
    assert "ways" in tiny.placement.help()


@pytest.mark.parametrize("path, why", [
    ("tenant.3.cores", "1 entry"),
    ("tenant.kvs.cores", "1 entry"),
    ("seed.x", "not a table"),
    ("placement.ways.x", "not a table"),
])
def test_a_path_that_leads_nowhere_is_refused(tiny, path, why):
    with pytest.raises(hn.SpecError, match=why) as e:
        tiny.with_({path: 1})
    assert "tiny.toml" in str(e.value) and path in str(e.value)


@pytest.mark.parametrize("text, value", [
    ("4", 4), ("0.5", 0.5), ("true", True), ("nic", "nic"), ("26 Mrps", "26 Mrps"), ('"4"', "4"), ("[1, 2]", [1, 2]),
])
def test_command_line_values_read_as_toml_or_as_text(text, value):
    assert parse_value(text) == value


@pytest.mark.parametrize("text", ["placement.ways", "=4", " =4", ""])
def test_an_assignment_needs_path_and_value(text):
    with pytest.raises(hn.HostnetError, match="path=value"):
        parse_assignment(text)


def test_resolving_is_deterministic_and_complete(tiny):
    import json

    assert tiny.resolve() == tiny.copy().resolve()
    resolved = json.loads(tiny.resolve())
    assert isinstance(resolved["platform"], dict), "the platform is inlined"


def test_the_text_of_a_changed_scenario_loads_again(tiny, tmp_path):
    again = tmp_path / "again.toml"
    again.write_text(tiny.with_({"placement.ways": 3}).to_toml())
    assert hn.Scenario.load(again).resolve() == tiny.with_({"placement.ways": 3}).resolve()


@pytest.mark.parametrize("changes, key", [
    ({"placement.ways": 13}, "ways"),
    ({"placement.ways": 0}, "ways"),
    ({"placement.wayz": 2}, "wayz"),
    ({"traffic.rate": "26 parsecs"}, "rate"),
    ({"traffic.packet": "0 B"}, "packet"),
    ({"rings.rx_buffers": -1}, "rx_buffers"),
    ({"tenant.0.cores": 99}, "cores"),
    ({"platform": "sim2"}, "platform"),
    ({"run.load": "peek_slo"}, "load"),
])
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
    with pytest.raises(hn.SpecError, match=r"\[override.memory\].*'channels'"):
        tiny.override.memory.chanels = 8


def test_the_typed_face_matches_the_schema():
    from hostnet import _stubs

    assert _stubs.FILE.read_text() == _stubs.render(hn.schema()), "run `make stubs`"
