"""Swept values as numbers with the unit in the column's name, and what Parquet files say about their columns."""

import base64
import json

import polars as pl
import pytest

import hostnet as hn
from hostnet import quantities, studies
from hostnet._toml import inline, tomllib
from hostnet.results import Result, column_info, tidy


def swept(scenario, path, values):
    """The columns that a sweep of ``path`` has, without running it."""
    points = [{path: v} for v in values]
    base = {"metrics": {}, "seed": 1, "version": "0", "wall_s": 0.0, "sim_us": 1.0, "warmup_us": 0.0, "measure_us": 1.0}
    results = [Result({**base, "spec": json.loads(hn.Scenario(scenario).with_(p).resolve())}) for p in points]
    return quantities.swept(points, results), quantities.described(points, results)


@pytest.mark.parametrize(
    "scenario, path, values, column, numbers, unit",
    [
        ("testpmd", "traffic.packet", ["64 B", "1.5 KiB"], "traffic.packet_bytes", [64.0, 1536.0], "B"),
        ("kvs", "run.timeline", ["10 us", "0.5 ms"], "run.timeline_ns", [1e4, 5e5], "ns"),
        ("kvs", "override.core.clock", ["3.2 GHz", "2400 MHz"], "override.core.clock_ghz", [3.2, 2.4], "GHz"),
        ("kvs", "platform.core.clock", ["3.2 GHz"], "platform.core.clock_ghz", [3.2], "GHz"),
        ("kvs", "tenant[0].app.log_size", ["16 MiB"], "tenant[0].app.log_size_bytes", [16.0 * 2**20], "B"),
        # "ps" is a picosecond in a time, and one a second in a pace.
        (
            "idio",
            "placement.idio.mlc_threshold",
            ["50 Mps", "2000 kps"],
            "placement.idio.mlc_threshold_mps",
            [50.0, 2.0],
            "1e6/s",
        ),
        ("ccnic-upi", "override.nodes.link.rate", ["20 GB/s"], "override.nodes.link.rate_gbs", [20.0], "GB/s"),
    ],
)
def test_a_quantity_is_a_number_in_the_unit_of_its_column(scenario, path, values, column, numbers, unit):
    columns, about = swept(scenario, path, values)
    assert columns == [{column: pytest.approx(n)} for n in numbers]
    assert about[column]["unit"] == unit and len(about[column]["description"]) > 4


def test_rates_of_packets_and_of_bits_have_a_column_each():
    columns, about = swept("testpmd", "traffic.rate", ["26 Mrps", "53 Gbps", "5000 krps"])
    assert columns == [
        {"traffic.rate_mrps": 26.0, "traffic.rate_gbps": None},
        {"traffic.rate_mrps": None, "traffic.rate_gbps": 53.0},
        {"traffic.rate_mrps": 5.0, "traffic.rate_gbps": None},
    ]
    assert {n: a["unit"] for n, a in about.items()} == {"traffic.rate_mrps": "Mrps", "traffic.rate_gbps": "Gb/s"}


def test_a_study_may_name_every_unit_that_the_engine_takes():
    scenario = hn.Scenario.load("testpmd")
    for path, some in (("traffic.rate", {"mpps", "gb/s", "GiB/s"}), ("peripheral.0.link", {"gbps", "Gbits/sec"})):
        units = quantities.units_of(scenario, path)
        # The pattern of the schema ends in the list of units, which the engine's parser reads, too.
        node, _ = quantities._node(json.loads(scenario.resolve()), path)
        (listed,) = [text.rsplit("(", 1)[1].rstrip(")$").split("|") for text in quantities.patterns(node)]
        assert set(units) == set(listed) and some < set(units)
        assert set(quantities.usual(units)) < set(units) and not some & set(quantities.usual(units)), path


@pytest.mark.parametrize(
    "text, gbps",
    [("20 gb/s", 20.0), ("20Gb/s", 20.0), ("20 Gbit/s", 20.0), ("640000 kbps", 0.64), ("100 MB/s", 0.8)]
    + [("1 GiB/s", 8 * 2**30 / 1e9), ("9.41 Gbits/sec", 9.41)],
)
def test_rates_read_as_people_write_them(text, gbps):
    columns, _ = swept("testpmd", "traffic.rate", [text])
    assert columns == [{"traffic.rate_gbps": pytest.approx(gbps)}]
    for wrong in ("20 GBps", "20 GBPS"):
        with pytest.raises(hn.HostnetError, match="expected a rate such as .*units are"):
            hn.Scenario.load("testpmd").with_({"traffic.rate": wrong}).resolve()


def test_what_is_no_quantity_stays_as_it_is():
    for path, values in (("placement.policy", ["dma", "ddio"]), ("seed", [1, 2]), ("platform", ["sim24"])):
        columns, about = swept("quadrant1" if path == "placement.policy" else "kvs", path, values)
        assert columns == [{path: v} for v in values] and set(about) == {path}


def test_a_sweep_of_rates_has_numbers_in_its_frame_and_files(tiny, cli, tiny_file):
    rates = {"traffic.rate": ["500 krps", "1 Mrps"], "placement.ways": [2]}
    frame = hn.sweep(tiny, rates, jobs=1)
    assert frame["traffic.rate_mrps"].to_list() == [0.5, 1.0] and frame["traffic.rate_mrps"].dtype == pl.Float64
    assert "traffic.rate" not in frame.columns and frame["placement.ways"].to_list() == [2, 2]
    done = cli(
        "sweep",
        tiny_file,
        "--vary",
        "traffic.rate=500 krps,1 Mrps",
        "--vary",
        "placement.ways=2",
        "--out",
        "o",
        check=0,
    )
    assert "traffic.rate_mrps" in done.stdout.replace("\n", "")
    assert pl.read_csv(cli.cwd / "o" / "sweep.csv")["traffic.rate_mrps"].to_list() == [0.5, 1.0]
    about = described(cli.cwd / "o" / "sweep.parquet")
    assert about["traffic.rate_mrps"]["unit"] == "Mrps" and "rate" in about["traffic.rate_mrps"]["description"]
    assert about["lat_p99_us"]["unit"] == "us" and about["placement.ways"]["description"]


@pytest.mark.parametrize(
    "path, values, texts",
    [
        ("placement", [{"policy": "dma"}, {"policy": "ddio", "ways": 3}], None),
        ("tenant.0.app", [{"kind": "testpmd"}, {"kind": "touchdrop", "loads_per_byte": 0.5}], None),
        ("traffic", [{"arrivals": "poisson", "rate": "1 Mrps"}, {"arrivals": "keep_depth", "depth": 4}], None),
        ("run.precision_of", [["lat_p99_us"], ["lat_p99_us", "throughput_mrps"], []], None),
        ("placement.table", [{"header": "mlc"}, {"payload": "dram"}], None),
        ("traffic.sizes", ["imix", [{"size": "64 B", "weight": 1}]], ["imix", '[{ size = "64 B", weight = 1 }]']),
        ("traffic.sizes", [None, [], {"a b": True, "c": -1.5}], [None, "[]", '{ "a b" = true, c = -1.5 }']),
    ],
)
def test_tables_and_lists_are_their_text_in_toml(path, values, texts):
    base = {"metrics": {}, "seed": 1, "version": "0", "wall_s": 0.0, "sim_us": 1.0, "warmup_us": 0.0, "measure_us": 1.0}
    results = [Result({**base, "spec": {}}) for _ in values]
    columns = quantities.swept([{path: v} for v in values], results)
    found = [c[path] for c in columns]
    if texts is None:  # what the text says is what was given: no key that nobody gave
        assert [tomllib.loads(f"v = {text}")["v"] for text in found] == values
    else:
        assert found == texts
    frame = tidy(results, columns)
    assert frame[path].dtype == pl.String and frame[path].to_list() == found


def test_any_value_of_toml_is_itself_on_one_line():
    value = {
        "a.b": [1, -2.5, 1e-9, True, {"": "x"}], "text": 'a "q" \\ \t\n\x7f\x00 \u00e4\u20ac', "none": [], "empty": {}, "n": {"m": {"k": [[]]}},
    }  # fmt: skip
    assert tomllib.loads(f"v = {inline(value)}")["v"] == value and "\n" not in inline(value)


def test_a_sweep_of_tables_has_their_text_in_its_frame_and_files(tiny, cli, tiny_file):
    given = [{"policy": "dma"}, {"policy": "ddio", "ways": 3}]
    texts = ['{ policy = "dma" }', '{ policy = "ddio", ways = 3 }']
    assert hn.sweep(tiny, {"placement": given}, jobs=1)["placement"].to_list() == texts
    vary = 'placement={policy="dma"},{policy="ddio",ways=3}'
    done = cli("sweep", tiny_file, "--vary", vary, "--out", "o", check=0)
    assert all(text in done.stdout for text in texts)
    for read, name in (
        (pl.read_csv, "sweep.csv"),
        (pl.read_parquet, "sweep.parquet"),
        (pl.read_csv, "sweep-intervals.csv"),
        (pl.read_parquet, "sweep-intervals.parquet"),
    ):
        found = read(cli.cwd / "o" / name)["placement"]
        assert found.dtype == pl.String and list(dict.fromkeys(found)) == texts, name
    assert described(cli.cwd / "o" / "sweep.parquet")["placement"]["description"]
    cli("report", "o", check=0)


def test_a_path_without_any_value_is_a_column(tiny):
    frame = hn.sweep(tiny, {"placement.ways": [None], "seed": [1]}, jobs=1)
    assert frame["placement.ways"].to_list() == [None] and frame.columns[:2] == ["placement.ways", "seed"]


def described(file):
    """Unit and meaning of every column, from the file's key and from Arrow's fields alike."""
    metadata = pl.read_parquet_metadata(file)
    about = json.loads(metadata["hostnet"])
    assert list(about) == pl.read_parquet(file).columns, "every column is described"
    assert all(a["description"] for a in about.values())
    fields = base64.b64decode(metadata["ARROW:schema"])
    for name, column in about.items():
        assert name.encode() in fields and column["description"].encode() in fields, name
    try:
        import pyarrow.parquet as pq
    except ImportError:
        return about
    for field in pq.read_schema(file):
        assert {k.decode(): v.decode() for k, v in field.metadata.items()} == about[field.name]
    return about


def test_tables_of_studies_say_what_their_columns_are(tmp_path):
    study = studies.get("hostnetwork", "peakbw-cl")
    done = studies.run(study, quick=True, jobs=1, out=tmp_path / "s", plot=False)
    about = described(tmp_path / "s" / f"{study.table}.parquet")
    assert about.keys() >= column_info().keys()
    assert about["quick"]["description"] == "whether fewer requests were measured"
    assert done.frame.equals(pl.read_parquet(tmp_path / "s" / f"{study.table}.parquet"))
