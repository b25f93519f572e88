"""A user meets fewer than 450 keys: habits of single machines and simulators are in tables of their own."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import tomllib

import hostnet as hn
from hostnet import _core
from hostnet.keys import QUIRKS, distinct, is_quirk
from hostnet.paths import PLATFORMS
from hostnet.reference import keys_page

FEWEST, MOST = 300, 450

Node = Mapping[str, Any]


def keys(schema: Node) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """The keys that a user meets and the quirks, each as table and key. Tables with the same keys, such as a kind of
    `[[peripheral]]` and the type that it is made of, count once; a `kind` chooses a table and is no key."""
    tables: dict[str, tuple[str, Node]] = {}
    quirks: set[str] = set()

    def form(node: Node) -> str:
        return json.dumps(
            {k: v.get("description") for k, v in node["properties"].items() if k != "kind"}, sort_keys=True
        )

    def named(node: Any) -> Iterator[Node]:
        """The tables that a node refers to or has in it."""
        if isinstance(node, Mapping):
            if str(node.get("$ref", "")).startswith("#/$defs/"):
                yield schema["$defs"][node["$ref"].rsplit("/", 1)[-1]]
            for child in node.values():
                yield from named(child)
        elif isinstance(node, list):
            for child in node:
                yield from named(child)

    def add(name: str, node: Any) -> None:
        if isinstance(node, list):
            for child in node:
                add(name, child)
        elif isinstance(node, Mapping):
            if "properties" in node:
                tables.setdefault(form(node), (name, node))
                if QUIRKS in node["properties"]:
                    hide(node["properties"][QUIRKS])
            for union in ("oneOf", "anyOf"):
                add(name, node.get(union, []))

    def hide(node: Any) -> None:
        for table in named(node):
            if "properties" in table and form(table) not in quirks:
                quirks.add(form(table))
                hide(table["properties"])

    add("scenario", {k: v for k, v in schema.items() if k != "$defs"})
    for name, node in schema["$defs"].items():
        add(name, node)
    met, hidden = set(), set()
    for text, (name, node) in tables.items():
        (hidden if text in quirks else met).update(
            (f"{name} {text}", key) for key in node["properties"] if key != "kind"
        )
    return met, hidden


def test_a_user_meets_fewer_than_450_keys():
    met, quirks = keys(json.loads(_core.schema()))
    assert FEWEST < len(met) < MOST, f"{len(met)} keys and {len(quirks)} quirks; habits of one machine are quirks"
    assert len(quirks) > 100


def test_the_count_finds_keys_and_leaves_quirks_out():
    """Tables that are alike count once, those below quirks are hidden, and those of each kind of a choice are counted."""
    key = {"description": "A key."}
    table = {"properties": {"a": key, "quirks": {"$ref": "#/$defs/Q"}}}
    kinds = {
        "oneOf": [{"properties": {"kind": {}, "a": key, "quirks": {"$ref": "#/$defs/Q"}}}, {"properties": {"b": key}}]
    }
    defs = {"T": table, "K": kinds, "Q": {"properties": {"c": {"$ref": "#/$defs/R"}}}, "R": {"properties": {"d": key}}}
    met, quirks = keys({"properties": {"t": {"$ref": "#/$defs/T"}}, "$defs": defs})
    assert sorted(k for _, k in met) == ["a", "b", "quirks", "t"]
    assert sorted(k for _, k in quirks) == ["c", "d"]


def test_the_page_of_keys_has_quirks_in_a_section_of_their_own():
    before, _, after = keys_page().partition("\n## Quirks\n")
    assert "quirks`\n" not in before and "\n## `override.caches.llc.quirks`\n" in after
    assert {p for p, _, _ in distinct() if is_quirk(p)} == {
        line.strip("# `") for line in after.splitlines() if line.startswith("## `")
    }


def test_schema_quirks_prints_every_quirk_and_no_other_table(cli):
    done = cli("schema", "quirks")
    assert done.returncode == 0
    assert "override.caches.llc.quirks" in done.stdout and "clean_victim_cleans" in done.stdout
    assert "proactive_drop" not in done.stdout


@pytest.mark.parametrize(
    "path, value", [("platform.caches.llc.quirks.preset", "zsim"), ("platform.memory.quirks.preset", "gem5")]
)
def test_a_preset_stands_for_its_values_and_single_quirks_override_it(path, value):
    table = path.removeprefix("platform.").removesuffix(".preset").split(".")

    def quirks(changes):
        found = json.loads(hn.Scenario.load("quadrant1").with_(changes).resolve())["platform"]
        for part in table:
            found = found[part]
        return found

    plain, preset = quirks({}), quirks({path: value})
    assert preset["preset"] == value
    changed = {k for k in preset if preset[k] != plain.get(k)} - {"preset"}
    assert changed, "the preset differs from the platform"
    one = min(changed)
    own = quirks({path: value, f"{path.removesuffix('.preset')}.{one}": plain[one]})
    assert {k for k in preset if own[k] != preset[k]} == {one}


def test_a_preset_brings_its_sources_and_an_unknown_one_is_refused():
    sc = hn.Scenario.load("quadrant1").with_({"platform.memory.quirks.preset": "gem5"})
    sources = json.loads(sc.resolve())["platform"]["provenance"]
    assert sources["memory.quirks.entry_release"].startswith("artifact: gem5's")
    with pytest.raises(hn.SpecError, match='unknown choice "gem6"; did you mean "gem5"'):
        sc.with_({"platform.memory.quirks.preset": "gem6"}).resolve()


def test_old_places_of_quirks_are_accepted_in_this_version():
    sc = hn.Scenario.load("quadrant1")
    with pytest.warns(
        hn.renamed.RenamedWarning, match=r"override\.memory\.refresh is now override\.memory\.quirks\.refresh"
    ):
        old = sc.with_({"platform.memory.refresh": False})
    assert old.resolve() == sc.with_({"platform.memory.quirks.refresh": False}).resolve()
    with pytest.warns(hn.renamed.RenamedWarning):
        assert sc.platform.memory.timing.cl_ps == sc.platform.memory.quirks.timing.cl_ps
    with pytest.warns(hn.renamed.RenamedWarning):
        whole = hn.Scenario({**sc.to_dict(), "override": {"memory": {"refresh": False, "timing": {"cl_ps": 15000}}}})
    assert whole.to_dict()["override"] == {"memory": {"quirks": {"refresh": False, "timing": {"cl_ps": 15000}}}}
    with pytest.raises(hn.SpecError, match="is the old name of override.memory.quirks.refresh, which is given too"):
        hn.Scenario({**sc.to_dict(), "override": {"memory": {"refresh": False, "quirks": {"refresh": True}}}})


def test_no_platform_file_has_an_old_name():
    for file in PLATFORMS.glob("*.toml"):
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
        assert hn.renamed.value("platform", tables, str(file)) == tables
