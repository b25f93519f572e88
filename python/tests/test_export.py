"""Time lines for monitoring, by the grammars of OpenMetrics 1.0 and of InfluxDB's line protocol."""

import re

import pytest

import hostnet as hn
from hostnet import export
from hostnet.errors import HostnetError
from hostnet.results import Result

NUMBER = r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
#: A sample line of the specification's ABNF, without exemplars.
SAMPLE = re.compile(rf'([a-zA-Z_]\w*)\{{((?:\w+="(?:[^"\\\n]|\\["\\n])*",?)*)\}} ({NUMBER}) (\d+(?:\.\d+)?)')


def made(name="a", seed=1, tables=None):
    line = {
        "columns": [{"name": n, "unit": u} for n, u in (("t_us", "us"), ("mem_bw_gbs", "GB/s"), ("packets", "M/s"))]
    }
    rows = [[10.5, 1.25, 3], [20.0, 2.5, 4]]
    tables = {"timeline": {**line, "rows": rows}} if tables is None else tables
    spec = {"name": name}
    numbers = dict.fromkeys(("wall_s", "sim_us", "warmup_us", "measure_us"), 1.0)
    return Result({"version": "0", "spec": spec, "seed": seed, "metrics": {}, "tables": tables, **numbers})


def families(text):
    """Samples by family, in a text that is checked line by line."""
    *lines, end, last = text.split("\n")
    assert (end, last) == ("# EOF", "")
    found, current = {}, None
    for line in lines:
        if line.startswith("# TYPE "):
            current = line.split()[2]
            assert current not in found, "the lines of a family stand together"
            assert line == f"# TYPE {current} gauge"
            found[current] = []
        elif line.startswith("# HELP "):
            assert line.split()[2] == current
        else:
            name, labels, value, time = SAMPLE.fullmatch(line).groups()
            assert name == current
            found[current].append((labels, float(value), float(time)))
    return found


def test_each_column_is_a_gauge_with_its_points_in_order():
    text = export.openmetrics({"r0": made(), "r1": made(seed=2)})
    found = families(text)
    assert found.keys() == {"hostnet_timeline_mem_bw_gbs", "hostnet_timeline_packets"}
    labels = [f'result="r{i}",scenario="a",seed="{i + 1}"' for i in (0, 1)]
    assert found["hostnet_timeline_mem_bw_gbs"] == [
        (label, v, t) for label in labels for v, t in ((1.25, 10.5e-6), (2.5, 20e-6))
    ]
    assert "# HELP hostnet_timeline_mem_bw_gbs DRAM bytes moved per second" in text
    assert "# HELP hostnet_timeline_packets column packets of the table timeline, in M/s\n" in text


def test_times_begin_at_a_start_and_are_stretched():
    found = families(export.openmetrics({"r": made()}, start=1_700_000_000, stretch=1000))
    times = [t for _, _, t in found["hostnet_timeline_packets"]]
    assert times == pytest.approx([1_700_000_000.0105, 1_700_000_000.02], abs=1e-6)
    lines = export.influx({"r": made()}, start=1_700_000_000, stretch=1000).splitlines()
    assert [int(line.split(" ")[-1]) for line in lines] == [1_700_000_000_010_500_000, 1_700_000_000_020_000_000]


def test_a_row_is_a_line_of_the_line_protocol():
    assert export.influx({"r": made()}).splitlines() == [
        "hostnet_timeline,result=r,scenario=a,seed=1 mem_bw_gbs=1.25,packets=3.0 10500",
        "hostnet_timeline,result=r,scenario=a,seed=1 mem_bw_gbs=2.5,packets=4.0 20000",
    ]


def test_names_with_special_characters_are_escaped():
    """Line protocol: commas, equals signs and spaces of tags have a backslash. OpenMetrics: quotes, backslashes, new lines."""
    odd = {"r": made('a b,c="d"\\')}
    assert r',scenario=a\ b\,c\="d"\\,seed=1 ' in export.influx(odd)
    assert r'scenario="a b,c=\"d\"\\",' in export.openmetrics(odd)
    families(export.openmetrics(odd))


def test_texts_of_a_row_are_labels():
    columns = [{"name": n, "unit": ""} for n in ("t_us", "core", "hints")]
    tables = {"cores": {"columns": columns, "rows": [[1.0, "c0", 5], [1.0, "c1", 6]]}}
    lines = export.influx({"r": made(tables=tables)}).splitlines()
    assert lines[0] == "hostnet_cores,core=c0,result=r,scenario=a,seed=1 hints=5.0 1000"
    assert len(families(export.openmetrics({"r": made(tables=tables)}))["hostnet_cores_hints"]) == 2


def test_a_result_without_a_time_line_is_a_sentence():
    other = {"domains": {"columns": [{"name": "domain", "unit": ""}], "rows": [["x"]]}}
    with pytest.raises(HostnetError, match="r0: has no time line"):
        export.points({"r0": made(tables=other)})


def test_the_command_writes_a_file_or_prints(cli, tiny_file, tmp_path):
    cli("run", tiny_file, "--out", "out", "-q", check=0)
    said = cli("export", "out/result-0000.json", check=0).stdout
    table = hn.Result.load(cli.cwd / "out/result-0000.json").table("timeline")
    (samples,) = [s for name, s in families(said).items() if name.endswith("mem_bw_gbs")]
    assert [v for _, v, _ in samples] == table["mem_bw_gbs"].to_list()
    cli("export", "out/result-0000.json", "--format", "influx", "-o", "a.lp", check=0)
    assert len((cli.cwd / "a.lp").read_text().splitlines()) == len(table)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["a.json"], "a.json: cannot be read"),
        (["out/result-0000.json", "--format", "csv"], "--format csv: choose openmetrics or influx"),
        (["out/result-0000.json", "--stretch", "0"], "--stretch is 1 or more"),
        (["out/result-0000.json", "-o", "out/result-0000.json"], "result-0000.json"),
    ],
)
def test_mistakes_are_sentences(cli, tiny_file, words, says):
    cli("run", tiny_file, "--out", "out", "-q", check=0)
    before = (cli.cwd / "out/result-0000.json").read_bytes()
    done = cli("export", *words, check=2)
    assert says in done.stderr and done.stderr.count("\n") == 1
    assert (cli.cwd / "out/result-0000.json").read_bytes() == before
