"""Old names of keys, choices and metrics work for one version, with a sentence that names the new one."""

import json
import warnings

import pytest

import hostnet as hn
from hostnet import _core, headlines, renamed
from hostnet.declared import metric_info
from hostnet.paths import PLATFORMS, SCENARIOS
from hostnet.renamed import Metrics, RenamedWarning
from hostnet.scoreboard import claims

ONLY = "the old name is accepted in this version only."
IPERF = (SCENARIOS / "iperf.toml").read_text(encoding="utf-8")
#: Old names for these tests, whatever the version renames.
TABLE = {
    "keys": {
        "platform.memory.door": "queue",
        "platform.memory.queue = apart": "separate",
        "tenant.app.between": "gap_instructions",
    },
    "metrics": {"memory_busy": "mem_utilisation"},
}


@pytest.fixture
def table(monkeypatch):
    monkeypatch.setattr(renamed, "_renamed", lambda: TABLE)


def iperf(changes=None):
    """A scenario whose application has a key that was `between` in the version before."""
    app = {"kind": "tcp_receive", **(changes or {})}
    return {"name": "i", "platform": "cascadelake", "tenant": [{"name": "t", "cores": 1, "app": app}]}


def test_each_old_name_in_a_table_gives_its_new_name_and_a_sentence(table):
    given = {"override": {"memory": {"door": "apart"}}, "tenant": [{}, {"app": {"between": 5}}]}
    with pytest.warns(RenamedWarning) as said:
        now = renamed.value("", given, "own.toml")
    assert now == {"override": {"memory": {"queue": "separate"}}, "tenant": [{}, {"app": {"gap_instructions": 5}}]}
    assert [str(w.message) for w in said] == [
        f"own.toml: override.memory.door is now override.memory.queue; {ONLY}",
        f'own.toml: override.memory.queue = "apart" is now override.memory.queue = "separate"; {ONLY}',
        f"own.toml: tenant[1].app.between is now tenant[1].app.gap_instructions; {ONLY}",
    ]


def test_names_of_this_version_say_nothing(table):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        given = {"memory": {"door": 1}, "override": {"memory": {"queue": "shared"}}}
        assert renamed.value("", given, "own.toml") == given
        assert renamed.metric("mem_utilisation") == "mem_utilisation"
        assert Metrics({"mem_utilisation": 0.5}).get("nothing") is None


def test_a_scenario_takes_reads_and_writes_the_old_name_of_a_key(table):
    with pytest.warns(RenamedWarning, match=r"^own\.toml: tenant\[0\]\.app\.between is now"):
        scenario = hn.Scenario(iperf({"between": 5}), file="own.toml")
    app = scenario.tenant[0].app
    assert app.gap_instructions == 5
    with pytest.warns(RenamedWarning):
        assert app.between == 5
    with pytest.warns(RenamedWarning):
        app.between = 6
    with pytest.warns(RenamedWarning):
        changed = scenario.with_({"tenant[0].app.between": 7})
    assert (app.gap_instructions, changed.tenant[0].app.gap_instructions) == (6, 7)
    assert "between" not in changed.to_toml()


def test_the_old_and_the_new_name_of_a_key_together_are_refused(table):
    wanted = r"^own\.toml: tenant\[0\]\.app\.between is the old name of tenant\[0\]\.app\.gap_instructions, which is given too; remove"
    with pytest.raises(hn.SpecError, match=wanted):
        hn.Scenario(iperf({"between": 5, "gap_instructions": 5}), file="own.toml")


def test_metrics_are_found_by_their_old_names(table):
    metrics = Metrics({"memory_busy": 0.5})  # as a result of the version before has it
    assert dict(metrics) == {"mem_utilisation": 0.5}
    with pytest.warns(RenamedWarning, match=f"^the metric memory_busy is now mem_utilisation; {ONLY}$"):
        assert metrics["memory_busy"] == 0.5
    with pytest.warns(RenamedWarning):
        assert metrics.get("memory_busy") == 0.5
    with pytest.warns(RenamedWarning):
        assert headlines.chosen(["memory_busy"]) == ["mem_utilisation"]
    with pytest.raises(KeyError, match='there is no metric "mem_utilisaton"; did you mean "mem_utilisation"'):
        metrics["mem_utilisaton"]


def test_a_claims_query_may_use_the_old_name_of_a_metric(table, tmp_path):
    file = tmp_path / "own.toml"
    claim = {"id": "a", "text": "b", "experiment": "sweeper.fig5", "role": "outcome", "kind": "value", "expected": 1.0}
    claim |= {"tolerance": 0.1, "unit": "x", "eval": "SELECT memory_busy, memory_busy_s FROM sweeper_fig5"}
    file.write_text("[[claim]]\n" + "\n".join(f"{k} = {json.dumps(v)}" for k, v in claim.items()), encoding="utf-8")
    with pytest.warns(RenamedWarning, match="claim a: key `eval`: the metric memory_busy is now mem_utilisation"):
        (read,) = claims.load(file)
    assert read.eval == "SELECT mem_utilisation, memory_busy_s FROM sweeper_fig5"


def test_every_new_name_is_one_of_this_version_and_no_old_name_is():
    names = json.loads(_core.renamed())
    for old, new in names["metrics"].items():
        assert new in metric_info() and old not in metric_info()
    for old, new in names["keys"].items():
        path, _, word = old.partition(" = ")
        *parents, key = path.split(".")
        found = [hn.specs.schema()]
        for part in parents:
            part = "override" if part == "platform" else part
            found = [t for table in found for t in _tables(table["properties"].get(part, {}))]
        keys = {k: node for table in found for k, node in table["properties"].items()}
        if word:
            assert new in _words(keys[key]) and word not in _words(keys[key]), old
        else:
            first, *inner = new.split(".")
            assert first in keys and key not in keys, old
            within = [table["properties"][first] for table in found if first in table["properties"]]
            for part in inner:
                tables = [t for node in within for t in _tables(node)]
                within = [t["properties"][part] for t in tables if part in t["properties"]]
                assert within, old


def _opened(node):
    """What a node of the schema may be: itself without references, or its choices and the elements of its lists."""
    if "$ref" in node:
        return _opened(hn.specs.schema()["$defs"][node["$ref"].rsplit("/", 1)[-1]])
    options = [*node.get("oneOf", []), *node.get("anyOf", []), *filter(None, [node.get("items")])]
    return [o for option in options for o in _opened(option)] or [node]


def _tables(node):
    """The tables that a node of the schema may be, elements of lists and choices of kinds included."""
    return [o for o in _opened(node) if "properties" in o]


def _words(node):
    """The words that a key may have."""
    return {w for o in _opened(node) for w in [*o.get("enum", []), o.get("const")] if w}


def test_the_engine_issues_the_warning_where_it_alone_reads_a_file():
    text = IPERF.replace('kind = "tcp_receive"', 'kind = "tcp_receive", between = 5')
    assert text != IPERF
    with pytest.warns(RenamedWarning, match=rf"^own\.toml: tenant\[\d\]\.app\.between is now .*{ONLY}$"):
        resolved = _core.resolve(text, "own.toml", [str(PLATFORMS)])
    assert '"gap_instructions":5' in resolved and '"between"' not in resolved


def test_the_command_line_says_it_once_on_standard_error(cli, tmp_path):
    file = tmp_path / "own.toml"
    file.write_text(IPERF.replace('kind = "tcp_receive"', 'kind = "tcp_receive", between = 5'), encoding="utf-8")
    done = cli("run", file, "--set", "run.time=50 us", "--set", "run.warmup_time=10 us", "-q", check=0)
    sentence = f"{file}: tenant[0].app.between is now tenant[0].app.gap_instructions; {ONLY}"
    assert done.stderr == f"hostnet: warning: {sentence}\n"
