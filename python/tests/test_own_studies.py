"""Studies of a user's own: the page's example as a reader runs it, what a file may say, and one sentence for each mistake."""

import itertools
import json
import re
from pathlib import Path

import polars as pl
import pytest
import tomli_w
from conftest import TINY
from ownclaims import GOOD, claims_file
from rich.console import Console
from shownpage import Page

import hostnet as hn
from hostnet import runner, scoreboard, studies
from hostnet._toml import tomllib
from hostnet.errors import HostnetError
from hostnet.studies.own import load

PAGE = Page("use/studies.md")
FILES = dict(re.findall(r"^```toml (\S+)\n(.*?)^```", PAGE.text, re.MULTILINE | re.DOTALL))


@pytest.fixture
def example(cli):
    for name, text in FILES.items():
        (cli.cwd / name).write_text(text, encoding="utf-8")
    return cli


@pytest.mark.long
def test_the_example_prints_what_the_page_shows_and_leaves_what_it_says(example):
    said = example("study", "mine.toml", "--quick", "--quiet", check=0).stdout
    (shown,) = PAGE.blocks("text")
    first = said.split("mine depth:")[0].splitlines()
    for line in shown.splitlines()[3:]:
        assert line.rstrip() in [row.rstrip() for row in first], line
    out = example.cwd / "results"
    names = {f.name for f in (out / "mine_depth").iterdir()}
    assert {"mine_depth.csv", "mine_depth.parquet", "mine_depth.png", "mine_depth.svg", "specs.json"} <= names

    frame = pl.read_parquet(out / "mine_latency" / "mine_latency.parquet")
    peak = frame.filter(pl.col("share").is_null(), policy="DMA")["throughput_mrps"][0]
    later = frame.drop_nulls("share")
    # Every policy at the same rates: shares of DMA's peak, to six digits.
    assert later.height == 3 * 4 and sorted(set(later["policy"])) == ["DDIO", "DDIO + Sweeper", "DMA"]
    assert later["rate"].to_list() == pytest.approx((later["share"] * peak).to_list(), rel=1e-5)
    assert (later["throughput_mrps"] / later["rate"]).to_list() == pytest.approx([1.0] * 12, rel=0.05)
    units = json.loads((out / "mine_latency" / "study.json").read_text(encoding="utf-8"))["units"]
    assert units["rate"] == "Mrps" and units["policy"] == ""

    example("report", out / "mine_latency", "--out", "r.html", check=0)
    assert "offered rate [Mrps]" in (example.cwd / "r.html").read_text(encoding="utf-8")
    board = example(
        "scoreboard", "--studies", "mine.toml", "--claims", "claims.toml", "--quick", "--strict", check=0
    ).stdout
    assert "reproduced" in board
    again = example("study", "mine.toml", "dep*", "--quick", "--quiet", check=0).stdout
    assert "9 points, 9 from the cache" in again and "latency" not in again


def test_a_file_lists_its_studies(example):
    said = example("study", "mine.toml", "--list", check=0).stdout
    assert re.search(r"mine\s+depth\s+Ring depth .*\s9\b", said) and re.search(r"mine\s+latency\s.*\s3\+", said)


@pytest.mark.parametrize(("wrote", "read"), PAGE.table("| you wrote | you read |"))
def test_the_page_shows_mistakes_as_they_are(example, wrote, read):
    wrong, sentence = re.search(r"`(.*?)`", wrote)[1], read.strip("`")
    key = wrong.split(" = ")[0]
    text = re.sub(rf"^{key} = .*$", lambda _: wrong, FILES["mine.toml"], count=1, flags=re.MULTILINE)
    assert text != FILES["mine.toml"]
    (example.cwd / "mine.toml").write_text(text, encoding="utf-8")
    done = example("study", "mine.toml", check=2)
    assert done.stderr.removeprefix("hostnet: ").strip().rstrip(".") == sentence.rstrip(".")
    assert not (example.cwd / "results").exists()


# --- What a file may say --------------------------------------------------------------------------------------------

SMALL = """
system = "mine"

[axis.policy]
meaning = "where received packets go"
[axis.policy.values.DMA]
placement.policy = "dma"
remove = ["placement.ways"]
[axis.policy.values.DDIO]
placement.policy = "ddio"

[axis.ways]
meaning = "LLC ways of DDIO"
path = "placement.ways"
values = [2, 4]

[axis.size]
meaning = "size of items and packets"
unit = "B"
path = ["rings.buffer_size", "traffic.packet", "tenant.0.app.item_size"]
values = [512, 1024]

[axis.rate]
meaning = "offered rate"
unit = "Mrps"
path = "traffic.rate"

[[study]]
name = "one"
title = "One"
base = "tiny.toml"
metrics = ["throughput_mrps", "acc_*"]
grid = [{ policy = "DMA", size = 512 }, { policy = "DDIO", ways = "*", size = [512, 1024] }]
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.toml").write_text(TINY, encoding="utf-8")

    def write(text=SMALL, **changed):
        for old, new in changed.get("with_", {}).items():
            assert old in text, old
            text = text.replace(old, new, 1)
        (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
        return "mine.toml"

    return write


def test_a_list_of_tables_has_the_points_of_each_and_a_quantity_has_its_unit(own):
    (study,) = load(own())
    points = study.points(False)
    assert [tuple(p.columns.get(c) for c in ("policy", "ways", "size")) for p in points] == [
        ("DMA", None, 512),
        ("DDIO", 2, 512),
        ("DDIO", 2, 1024),
        ("DDIO", 4, 512),
        ("DDIO", 4, 1024),
    ]
    first, last = points[0].changes, points[-1].changes
    assert first["placement.ways"] is None and first["placement.policy"] == "dma"
    assert last["placement.ways"] == 4 and last["tenant.0.app.item_size"] == last["traffic.packet"] == "1024 B"
    assert {"throughput_mrps", "acc_total", "acc_nic_rx_wr"} <= set(study.metrics)


def test_a_study_runs_in_python_with_the_columns_of_its_axes(own):
    frame = hn.study(own(), "one", jobs=1).frame
    assert frame.columns[:4] == ["policy", "ways", "size", "quick"] and frame["size"].to_list() == [
        512,
        512,
        1024,
        512,
        1024,
    ]
    assert frame["acc_nic_rx_wr"][0] > 0 and set(frame["acc_nic_rx_wr"][1:]) == {0.0}


def test_precision_ends_a_study_s_measurements_early(own):
    """A wide interval is reached after fewer requests than the file asks for, and at the latest after those."""
    file = own(with_={"[[study]]": "[[study]]\nchanges = { run.requests = 20_000 }"})
    whole, short = (hn.study(file, "one", jobs=1, precision=p).frame for p in (0, 0.2))
    assert set(whole["sim_requests"] >= 20_000) == {True}
    assert (short["sim_requests"] <= whole["sim_requests"]).all() and min(short["sim_requests"]) < 10_000
    assert short["throughput_mrps"].to_list() == pytest.approx(whole["throughput_mrps"].to_list(), rel=0.2)


def test_a_table_that_names_its_kind_replaces_the_base_s_and_others_are_laid_over_it(own):
    file = own(with_={"[[study]]": '[[study]]\nchanges = { tenant.0.app = { kind = "touchdrop" }, run.requests = 500 }',
                      ', "tenant.0.app.item_size"]': "]"})  # fmt: skip
    (study,) = load(file)
    point = study.points(False)[0]
    spec = hn.Scenario.load(point.base).with_(point.changes).to_dict()
    assert spec["tenant"][0] == {"name": "kvs", "cores": 2, "app": {"kind": "touchdrop"}}
    assert spec["run"] == {"load": "fixed", "requests": 500, "warmup_requests": 500}


def test_shares_are_of_the_baseline_s_point_that_agrees_in_all_else(own):
    then = """
[study.then]
axis = "rate"
of = "throughput_mrps"
shares = [0.5]
baseline = { policy = "DMA" }
"""
    grid = 'grid = [{ policy = "DMA", size = "*" }, { policy = "DDIO", ways = 2, size = "*" }]'
    (study,) = load(own(re.sub(r"grid = .*", grid, SMALL) + then))
    rows = [
        {**p.columns, "throughput_mrps": t} for p, t in zip(study.points(False), (10.0, 20.0, 70.0, 80.0), strict=True)
    ]
    found = [(p.columns["policy"], p.columns["size"], p.columns["rate"], p.changes["traffic.rate"])
             for p in study.further(rows, False)]  # fmt: skip
    assert found == [
        ("DMA", 512, 5.0, "5.0 Mrps"),
        ("DMA", 1024, 10.0, "10.0 Mrps"),
        ("DDIO", 512, 5.0, "5.0 Mrps"),
        ("DDIO", 1024, 10.0, "10.0 Mrps"),
    ]
    (alone,) = load(own(re.sub(r"grid = .*", grid, SMALL) + then.replace('baseline = { policy = "DMA" }\n', "")))
    assert [p.columns["rate"] for p in alone.further(rows, False)] == [5.0, 10.0, 35.0, 40.0]


def test_a_plot_draws_each_line_through_its_own_points(own):
    from hostnet import plots

    plot = '\nplot = { x = "size", y = "throughput_mrps", lines = ["policy", "ways"] }\n'
    (study,) = load(own(SMALL + plot))
    frame = pl.DataFrame(
        [
            {**p.columns, "ways": p.columns.get("ways"), "throughput_mrps": 1.0 + i}
            for i, p in enumerate(study.points(False))
        ]
    )
    (ax,) = plots.figure_of(study.table, frame, None, study.metrics, study.drawn).axes
    assert {line.get_label(): line.get_xydata().tolist() for line in ax.lines} == {
        "DMA": [[512, 1.0]],
        "DDIO, ways 2": [[512, 2.0], [1024, 3.0]],
        "DDIO, ways 4": [[512, 4.0], [1024, 5.0]],
    }
    assert ax.get_xlabel() == "size of items and packets [B]"
    bars = study.drawn | {"plot": {"x": "policy", "y": ["throughput_mrps"], "lines": ["ways", "size"]}}
    (ax,) = plots.figure_of(study.table, frame, None, study.metrics, bars).axes
    assert [t.get_text() for t in ax.get_xticklabels()] == ["DMA", "DDIO"]
    assert sorted(b.get_height() for b in ax.patches) == [1.0, 2.0, 3.0, 4.0, 5.0]


# --- Mistakes -------------------------------------------------------------------------------------------------------

WRONG = [
    ({'system = "mine"': 'system = "sweeper"'}, "key `system`: 'sweeper' has studies that come with hostnet"),
    ({'system = "mine"': 'system = "My"'}, "key `system`: 'My' must be small letters"),
    ({'system = "mine"': ""}, "key `system`: is missing"),
    ({"[axis.ways]": "[axes.ways]"}, 'key `axes`: unknown key; did you mean "axis"'),
    ({"[axis.ways]": "[axis.drop_rate]"}, "axis drop_rate: every table has a column of that name"),
    ({"[axis.ways]": "[axis.Ways]"}, "axis Ways: an axis is a column"),
    ({'meaning = "LLC ways of DDIO"': ""}, "axis ways: key `meaning`: is missing"),
    ({'path = "placement.ways"': 'pth = "placement.ways"'}, 'axis ways: key `pth`: unknown key; did you mean "path"'),
    ({'path = "placement.ways"': ""}, "axis ways: key `path`: is missing; give the key"),
    ({"values = [2, 4]": "values = []"}, "axis ways: key `values`: must be a list of at least one value, not []"),
    ({"values = [2, 4]": 'values = [2, "4"]'}, "axis ways: key `values`: has values of several types, such as 2 and '4'"),
    ({"values = [2, 4]": "values = [2, 2]"}, "axis ways: key `values`: has 2 twice"),
    ({"values = [512, 1024]": 'values = ["512 B"]'}, "study one: axis size: key `values`: '512 B' is text; give numbers"),
    ({'unit = "B"': 'unit = "KB"'}, "study one: axis size: key `unit`: 'KB' is no unit of rings.buffer_size; did you mean \"KiB\""),
    ({'unit = "B"': ""}, "study one: axis size: key `unit`: is missing: rings.buffer_size has a unit"),
    ({'name = "one"': 'name = "One"'}, "study One: key `name`: 'One' must be small letters"),
    ({'title = "One"': 'titel = "One"'}, 'study one: key `titel`: unknown key; did you mean "title"'),
    ({'title = "One"': ""}, "study one: key `title`: is missing"),
    ({"tiny.toml": "kvz"}, 'study one: key `base`: kvz: no such scenario file; did you mean "kvs"'),
    ({'"acc_*"': '"acq_*"'}, 'study one: key `metrics`: there is no metric "acq_*"'),
    ({'ways = "*"': 'way = "*"'}, "study one: key `grid`: there is no axis 'way'; did you mean \"ways\""),
    ({'policy = "DDIO"': 'policy = "DIO"'}, "study one: key `grid`: policy: axis policy has no value 'DIO'; did you mean \"DDIO\""),
    ({"values = [2, 4]": ""}, "study one: key `grid`: ways: axis ways declares no `values` for '*'"),
    ({'policy = "DMA", size = 512': 'policy = "DDIO", ways = 2, size = 512'}, "study one: key `grid`: two points have the same columns, policy = 'DDIO', ways = 2, size = 512"),
    ({"[axis.size]": '[axis.other]\nmeaning = "ways"\npath = "placement.ways"\nvalues = [3]\n[axis.size]', 'ways = "*"': 'ways = "*", other = "*"'}, "study one: key `grid`: axis ways and axis other both set placement.ways; leave it out of one of them"),
    ({'policy = "DMA", size = 512': 'policy = "DMA", ways = 2, size = 512'}, "study one: key `grid`: axis policy and axis ways both set placement.ways"),
    ({"[axis.size]": '[axis.n]\nmeaning = "cores"\npath = "tenant[0].cores"\nvalues = [1]\n[axis.size]', 'ways = "*"': 'ways = "*", n = "*"', 'title = "One"': 'title = "One"\nchanges = { tenant.0.cores = 2 }'}, "study one: key `changes`: changes and axis n both set tenant.0.cores"),
    ({'title = "One"': 'title = "One"\nquick = { placement.ways = 2 }'}, "study one: key `quick`: quick and axis policy both set placement.ways"),
    ({'title = "One"': 'title = "One"\nthen = { axis = "rate", of = "throughput_mrps", shares = [0.5], changes = { traffic.rate = "1 Mrps" } }'}, "study one: key `then`: key `changes`: changes and axis rate both set traffic.rate"),
    ({'title = "One"': 'title = "One"\nquick = { traffic.rate = "1 Mrps" }\nthen = { axis = "rate", of = "throughput_mrps", shares = [0.5] }'}, "study one: key `then`: key `axis`: quick and axis rate both set traffic.rate"),
    ({'title = "One"': 'title = "One"\nplot = { x = "way" }'}, "study one: key `plot`: key `x`: the study has no axis 'way'; did you mean \"ways\""),
    ({'title = "One"': 'title = "One"\nplot = { x = "size", lines = "policy" }'}, "study one: key `plot`: key `lines`: a line would have several points at the same size; add 'ways'"),
    ({'title = "One"': 'title = "One"\nthen = { axis = "rate", of = "throughput_mrps", shares = [0.0] }'}, "study one: key `then`: key `shares`: must be numbers above 0"),
    ({'title = "One"': 'title = "One"\nthen = { axis = "ways", of = "throughput_mrps", shares = [0.5] }'}, "study one: key `then`: key `of`: throughput_mrps is in 'Mrps', and axis ways in ''"),
    ({'title = "One"': 'title = "One"\nthen = { axis = "rate", of = "throughput_mrps", shares = [0.5], baseline = { policy = "DMA" } }'}, "study one: key `then`: key `baseline`: the grid has no point with policy = 'DMA' that belongs to policy = 'DDIO', ways = 2, size = 1024"),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "sentence"), WRONG, ids=[s.split("; ")[0] for _, s in WRONG])
def test_a_mistake_is_one_sentence_with_file_study_key_value_and_choice(own, changed, sentence):
    with pytest.raises(HostnetError) as e:
        load(own(with_=changed))
    assert str(e.value).startswith(f"mine.toml: {sentence}") and "\n" not in str(e.value)


def test_points_may_set_a_table_and_a_key_within_it_and_what_a_second_phase_replaces(own):
    """Changes of a table are written first, a second phase gives its axis new values, and no column is false for either."""
    then = 'changes = { placement = { policy = "ddio" }, traffic.rate = "1 Mrps", run.requests = 500 }\nquick = { run.requests = 100 }\n'
    then += 'then = { axis = "rate", of = "throughput_mrps", shares = [0.5] }\n'
    (study,) = load(
        own(
            with_={
                'title = "One"\n': f'title = "One"\n{then}',
                '{ policy = "DMA", size = 512 }, ': "",
                'policy = "DDIO", ': "",
            }
        )
    )
    assert [p.changes["placement.ways"] for p in study.points(False)] == [2, 2, 4, 4]


ODD = [3, -1.5, float("nan"), "", "*", "x" * 300, True, [], ["x"], [{}], [[1]], {}, {"x": 1}]


def places(node, at=()):
    """The path of every value in a document."""
    for key, child in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield (*at, key)
        yield from places(child, (*at, key))


def test_no_value_anywhere_ends_in_a_traceback(own):
    extra = """title = "One"
plot = { x = "rate", y = "throughput_mrps", lines = ["policy", "ways", "size"] }
changes = { run.requests = 500 }
quick = { run.requests = 100 }
then = { axis = "rate", of = "throughput_mrps", shares = [0.5], baseline = { policy = "DDIO" }, changes = { seed = 2 } }
"""
    text = SMALL.replace('title = "One"\n', extra).replace('{ policy = "DMA", size = 512 }, ', "")
    assert load(own(text))
    refused = 0
    for path, odd in itertools.product(list(places(tomllib.loads(text))), ODD):
        document = tomllib.loads(text)
        node = document
        for key in path[:-1]:
            node = node[key]
        node[path[-1]] = odd
        try:
            studies.check(load(own(tomli_w.dumps(document))), quick=False)
        except HostnetError as e:
            refused += 1
            assert str(e).startswith("mine.toml") and "\n" not in str(e), (path, odd)
    assert refused > 500


def test_a_point_that_cannot_run_is_named_before_any_study_runs(own, monkeypatch):
    second = SMALL[SMALL.index("[[study]]") :].replace('"one"', '"two"').replace('ways = "*"', "ways = [99]")
    file = own(SMALL + second)
    with pytest.raises(
        HostnetError, match=r"mine.toml: study two: policy = 'DDIO', ways = 99, size = 512: .*placement.ways"
    ):
        studies.check(load(file), quick=False)


def test_quick_is_refused_where_it_would_change_nothing(own):
    with pytest.raises(HostnetError, match="study one: key `quick`: is missing, so --quick would change nothing"):
        studies.run(studies.get(own(), "one"), quick=True)


def test_studies_of_ones_own_run_on_the_platform_that_they_name(own):
    with pytest.raises(HostnetError, match=r"--platform spr: mine.toml says itself where its studies run"):
        studies.on(studies.get(own(), "one"), "spr")


@pytest.mark.parametrize(
    "changes, sentence",
    [
        ({"experiment": "mine.on"}, "mine has no study 'on'; did you mean \"one\""),
        (
            {"experiment": "mine.two", "eval": "SELECT share AS value FROM mine_two"},
            "mine has no study 'two'; choose one of one",
        ),
        ({"experiment": "mine.two", "eval": ""}, "mine has no study 'two'"),
        ({"experiment": "mien.one"}, "there is no system 'mien'; did you mean \"mine\""),
        ({"experiment": "sweeper.e.fig99"}, "sweeper has no study 'fig99'"),
    ],
)
def test_a_claim_is_about_a_study_that_exists(own, tmp_path, capsys, changes, sentence):
    claim = GOOD | {"experiment": "mine.one", "eval": "SELECT throughput_mrps AS value FROM mine_one"} | changes
    (tmp_path / "c").mkdir()
    claim = {k: v for k, v in claim.items() if v != ""}
    with pytest.raises(HostnetError) as raised:
        scoreboard.main([claims_file(tmp_path / "c", claim)], studies=[own()])
    assert "key `experiment`" in str(raised.value) and sentence in str(raised.value)


@pytest.mark.parametrize(
    "metrics, column, sentence",
    [
        ("", "tenant.kvs.lat_p99_us", "a study of one tenant has those that its `metrics` name"),
        ('"tenant.*.lat_p99_us", ', "tenant.kvs.lat_p50_us", 'did you mean "tenant.kvs.lat_p99_us"'),
        ('"tenant.*.lat_p99_us", ', "tenant.kv.lat_p99_us", 'did you mean "tenant.kvs.lat_p99_us"'),
    ],
)
def test_a_claim_on_a_tenant_s_column_that_its_table_lacks_is_refused_before_a_run(
    own, tmp_path, metrics, column, sentence
):
    claim = GOOD | {"experiment": "mine.one", "eval": f'SELECT "{column}" AS value FROM mine_one'}
    (tmp_path / "c").mkdir()
    file = own(with_={'"acc_*"': f'{metrics}"acc_*"'})
    with pytest.raises(HostnetError) as raised:
        scoreboard.main([claims_file(tmp_path / "c", claim)], studies=[file])
    assert f"no table has the column {column!r}; {sentence}" in str(raised.value)
    assert not (tmp_path / "cache").exists(), "nothing ran"
    scoreboard.BuiltStudies(files=[own(with_={'"acc_*"': '"tenant.*.lat_p99_us"'})]).check(
        scoreboard.load(
            claims_file(tmp_path, claim | {"eval": 'SELECT "tenant.KVS.lat_p99_us" AS value FROM mine_one'})
        )
    )


def test_claims_of_studies_that_were_not_given_name_the_option(tmp_path):
    console = Console(width=500, record=True)
    claim = GOOD | {"experiment": "mine.one", "eval": "SELECT throughput_mrps AS value FROM mine_one"}
    assert scoreboard.main([claims_file(tmp_path, claim)], console=console) == 0
    said = console.export_text()
    assert "not built yet" in said and "--studies FILE names studies of your own" in said


def test_a_byte_order_mark_in_studies_and_claims_changes_nothing(own, tmp_path):
    file = Path(own())
    names = [s.table for s in load(file)]
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert [s.table for s in load(file)] == names
    (tmp_path / "c").mkdir()
    claims = claims_file(tmp_path / "c", GOOD)
    claims.write_bytes(b"\xef\xbb\xbf" + claims.read_bytes())
    assert [c.id for c in scoreboard.load(claims)] == [GOOD["id"]]


def test_two_files_of_one_system_do_not_hide_each_other_s_tables(own, tmp_path):
    file = own()
    assert ("mine", "one") in scoreboard.BuiltStudies(files=[file]).studies().values()
    with pytest.raises(HostnetError, match="there is a table mine_one already"):
        scoreboard.BuiltStudies(files=[file, file])


def test_points_that_studies_share_run_once_and_the_board_stays_the_same(own, tmp_path, monkeypatch):
    second = SMALL[SMALL.index("[[study]]") :].replace('"one"', '"two"').replace('"throughput_mrps"', '"lat_p99_us"')
    file = own(SMALL + second)
    claims = [
        GOOD | {"id": f"mine.{n}", "experiment": f"mine.e.{n}", "eval": f"SELECT max({m}) AS value FROM mine_{n}"}
        for n, m in (("one", "throughput_mrps"), ("two", "lat_p99_us"))
    ]
    folder = tmp_path / "claims"
    folder.mkdir()
    run, boards, simulations = runner._Worker.run, {}, dict.fromkeys(("apart", "together"), 0)
    for how in simulations:
        monkeypatch.setenv("HOSTNET_CACHE", str(tmp_path / how))

        def count(worker, task, on_progress, how=how):
            simulations[how] += 1
            run(worker, task, on_progress)

        with monkeypatch.context() as patch:
            patch.setattr(runner._Worker, "run", count)
            if how == "apart":
                patch.setattr(scoreboard.BuiltStudies, "run_first_points", lambda *_: None)
            options = {"studies": [file], "console": Console(quiet=True), "json_file": tmp_path / f"{how}.json"}
            assert scoreboard.main([claims_file(folder, *claims)], **options) == 0
        boards[how] = json.loads((tmp_path / f"{how}.json").read_text(encoding="utf-8"))
    results = {how: {p.name for p in (tmp_path / how).rglob("*.json")} for how in simulations}
    assert boards["together"] == boards["apart"] and len(boards["apart"]) == 2
    assert results["together"] == results["apart"]
    assert simulations["apart"] == len(results["apart"]) == 2 * simulations["together"]
