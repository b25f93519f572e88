"""The command line as a user meets it: exit codes, one sentence per mistake, nothing half-written."""

import csv
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commandline import COMMAND
from typer.main import get_command

from hostnet.cli import BOXED, app


def one_sentence(done, code=2):
    assert done.returncode == code, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    return done.stderr


def test_run_prints_metrics_and_json(cli, tiny_file):
    assert "throughput_mrps" in cli("run", tiny_file, check=0).stdout
    result = json.loads(cli("run", tiny_file, "--json", "--set", "seed=3", check=0).stdout)
    assert result["seed"] == 3 and result["metrics"]["throughput_mrps"] > 0


NO_TEXT = os.fsdecode(b"n\xff")


@pytest.mark.parametrize(
    "args, says",
    [
        (["run", f"{NO_TEXT}.toml"], r"n\xff.toml: "),
        (["run", f"../{NO_TEXT}.toml"], r"../n\xff.toml: its name is not text in UTF-8."),  # it exists
        (
            ["run", "../tiny.toml", "--set", f"traffic.rate={NO_TEXT}"],
            r'../tiny.toml: traffic.rate = "n\xff" is not text',
        ),
        (["run", "../tiny.toml", "--set", f"{NO_TEXT}=3"], r"n\xff=3: is not text"),
        (["run", "../tiny.toml", "--metrics", NO_TEXT], r"n\xff: is not text"),
        (["sweep", "../tiny.toml", "--vary", f"traffic.rate=1 Mrps,{NO_TEXT}"], r'traffic.rate = "n\xff" is not text'),
        (["platforms", NO_TEXT], r"n\xff: is not text"),
        (["metrics", NO_TEXT], r"n\xff: is not text"),
        (["schema", NO_TEXT], r"n\xff: is not text"),
        (["study", NO_TEXT], r"n\xff: is not text"),
        (["explain", NO_TEXT], r"n\xff: is not text"),
        (["bench", NO_TEXT], "cannot be read (No such file or directory)"),
    ],
)
def test_bytes_that_are_no_text_are_one_sentence(cli, tiny_file, args, says):
    (tiny_file.parent / f"{NO_TEXT}.toml").write_text(tiny_file.read_text())
    assert says in one_sentence(cli(*args))


def test_a_whole_table_is_set_before_what_is_varied_in_it(cli, tiny_file):
    args = ("--vary", "placement.ways=2,3", "--set", "placement={policy='ddio', ways=7}", "--out", "o", "-q")
    cli("sweep", tiny_file, *args, check=0)
    with (cli.cwd / "o" / "sweep.csv").open() as f:
        assert [row["placement.ways"] for row in csv.DictReader(f)] == ["2", "3"]


@pytest.mark.parametrize(
    "args",
    [
        ["run", "s\u00e4.toml"],
        ["run", "tiny.toml", "--set", "name=\u00e4"],
        ["run", "tiny.toml", "--set", "platform=p\u00e4.toml"],
        ["platforms", "p\u00e4.toml"],
    ],
)
def test_text_in_utf8_that_the_locale_lacks_is_not_called_no_text(tiny_file, args):
    """Python decodes arguments as ASCII here, whatever their bytes are."""
    for name in ("s\u00e4.toml", "p\u00e4.toml"):
        (tiny_file.parent / name).write_bytes(tiny_file.read_bytes())
    plain = {k: v for k, v in os.environ.items() if not k.startswith("LC_")} | {"LC_ALL": "C", "PYTHONUTF8": "0"}
    words = [a.encode() for a in (*COMMAND, *args)]
    done = subprocess.run(words, cwd=tiny_file.parent, env=plain, capture_output=True, text=True, errors="replace")
    said = one_sentence(done)
    assert "has letters beyond ascii, Python's encoding here; leave PYTHONUTF8=0 out" in said and "not text" not in said


def test_a_byte_order_mark_in_a_file_changes_nothing(cli, tiny_file):
    """Editors of Windows put one in front of the text."""
    mark = b"\xef\xbb\xbf"
    expected = json.loads(cli("run", tiny_file, "--json", "-q", check=0).stdout)
    marked = tiny_file.parent / "marked.toml"
    marked.write_bytes(mark + tiny_file.read_bytes())
    assert json.loads(cli("run", marked, "--json", "-q", check=0).stdout)["metrics"] == expected["metrics"]
    result = tiny_file.parent / "result.json"
    result.write_bytes(mark + json.dumps(expected).encode())
    assert json.loads(cli("run", result, "--json", "-q", check=0).stdout)["metrics"] == expected["metrics"]
    cli("report", result, "--out", "report.html", check=0)
    platform = tiny_file.parent / "mine.toml"
    platform.write_bytes(mark + b'base = "sim24"\ndescription = "with a mark"\n[memory]\nchannels = 2\n')
    assert "with a mark" in cli("platforms", platform, check=0).stdout


def test_files_whose_names_are_no_text_are_written_and_read(cli, tiny_file):
    cli("run", tiny_file, "--out", NO_TEXT, check=0)
    cli("report", NO_TEXT, check=0)
    assert (cli.cwd / NO_TEXT / "report.html").exists()


def test_a_sweep_says_which_key_changes_nothing(cli, tiny_file):
    """The objective of a search has no effect on a fixed load, as the schema says."""
    done = cli(
        "sweep",
        tiny_file,
        "--vary",
        "run.slo_multiple=50,100",
        "--vary",
        "seed=1,2",
        "--set",
        "run.load=fixed",
        "--set",
        "traffic.rate=2 Mrps",
        "-q",
        check=0,
    )
    assert done.stderr == "hostnet: note: no metric depends on run.slo_multiple here.\n"


def test_sweep_writes_tidy_tables(cli, tiny_file, tmp_path):
    import polars as pl

    out = tmp_path / "out"
    cli("sweep", tiny_file, "--vary", "placement.ways=2,4", "--vary", "seed=1,2", "--out", out, "--jobs", 2, check=0)
    csv, parquet = pl.read_csv(out / "sweep.csv"), pl.read_parquet(out / "sweep.parquet")
    assert csv.select("placement.ways", "seed").rows() == [(2, 1), (2, 2), (4, 1), (4, 2)]
    assert csv["throughput_mrps"].to_list() == pytest.approx(parquet["throughput_mrps"].to_list())
    assert not [p for p in out.iterdir() if p.name.startswith(".")]


@pytest.mark.parametrize(
    "args, says",
    [
        (["run", "nope.toml"], "nope.toml"),
        (["run"], "scenario"),
        (["run", "TINY", "--set", "placement.ways=99"], "ways"),
        (["run", "TINY", "--set", "placement.wayz=2"], "wayz"),
        (["run", "TINY", "--set", "placement.ways"], "path=value"),
        (["run", "TINY", "--set", "traffic.rate=26 parsecs"], "rate"),
        (["run", "TINY", "--set", "platform=nowhere"], "nowhere"),
        (["run", "TINY", "--sett", "a=b"], "--sett"),
        (["sweep", "TINY", "--vary", "placement.ways=2,99"], "ways"),
        (["sweep", "TINY", "--vary", "placement.ways=2", "--jobs", "0"], "jobs"),
        (["sweep", "TINY", "--vary", "seed=1,2", "--vary", "seed=3"], "--vary seed is given twice"),
        (["sweep", "TINY", "--vary", "seed=1,,2"], "--vary seed=1,,2: a value is missing"),
        (
            ["sweep", "TINY", "--vary", "traffic.rate=1 Gbps", "--set", "traffic.rate=2 Gbps"],
            "--set traffic.rate=2 Gbps has no effect, as --vary traffic.rate gives its value at every point",
        ),
        (
            ["sweep", "TINY", "--vary", "tenant[0].cores=1,2", "--set", "tenant.0.cores=2"],
            "--set tenant.0.cores=2 has no effect, as --vary tenant[0].cores gives",
        ),
        (
            ["sweep", "TINY", "--vary", "placement={policy='dma'}", "--set", "placement.ways=3"],
            "--set placement.ways=3 has no effect, as --vary placement gives",
        ),
        (
            ["sweep", "TINY", "--vary", "run.precision=0.02", "--precision", "5%"],
            "--precision 5% has no effect, as --vary run.precision gives",
        ),
        (
            ["sweep", "TINY", "--vary", "placement.ways=2,3", "--vary", "placement={policy='ddio'}"],
            "the values of placement replace those of placement.ways, which is a key of it; give placement first",
        ),
        (
            ["run", "TINY", "--set", "run.precision=0.02", "--precision", "5%"],
            "--precision 5% and --set run.precision=0.02 say the same key; give one of them",
        ),
        (["run", "TINY", "--set", "seed=99999999999999999999"], "99999999999999999999"),
        (["run", "TINY", "--set", "tenant.3.cores=1"], "the list has 1 entry"),
        (["run", "quadrant1", "--set", "platform=sim24"], "lacks"),
        (["run", "quadrant1", "--set", "run.load=peak_slo"], "run.load searches for a rate"),
        (["run", "demo-ddio", "--set", "traffic.pcap.file=nowhere.pcap"], "nowhere.pcap"),
        (["explain", "quadrant1", "--seconds", "3"], "--seconds 3"),
        (["explain", "quadrant1", "--write-counters", "/proc/hostnet/c.csv"], "/proc/hostnet"),
        (["explain", "quadrant1", "--write-counters", "."], "name a file"),
        (["explain", "--template", "perf", "--write-counters", "c.csv"], "--write-counters needs a simulated run"),
        (["explain", "--counters", "c.csv", "--seconds", "0"], "--seconds 0"),
        (["explain", "TINY", "--out", "/proc/hostnet"], "/proc/hostnet"),
        (["run", "."], "is a directory; give a scenario's file"),
        (["run", "kvz"], 'no such scenario file; did you mean "kvs"'),
        (["run", "elsewhere/x.toml"], "`hostnet scenarios` lists those that come with hostnet."),
        (["study", "sweeper", "fig99"], "fig99"),
        (["study", "swee", "fig1"], "swee"),
        (["platforms", "nowhere"], "nowhere"),
    ],
)
def test_a_mistake_is_one_sentence_and_leaves_nothing(cli, tiny_file, tmp_path, args, says):
    out = tmp_path / "results-of-mistake"
    args = [str(tiny_file) if a == "TINY" else a for a in args]
    if args[0] in ("run", "sweep", "study"):
        args += ["--out", str(out)]
    said = one_sentence(cli(*args))
    assert says in said and said.rstrip().endswith((".", "?"))
    assert not out.exists()
    assert list(cli.cwd.iterdir()) == []
    assert not (tmp_path / "cache").exists(), "nothing was simulated"


@pytest.mark.parametrize("text", ["name = ", "\x00\xff", "[placement]\nways = 2\n[placement]\nways = 3\n"])
def test_a_broken_scenario_file_is_one_sentence(cli, tmp_path, text):
    bad = tmp_path / "bad.toml"
    bad.write_bytes(text.encode("latin-1"))
    assert "bad.toml" in one_sentence(cli("run", bad))


def nested(depth):
    return "[" * depth + "]" * depth


@pytest.mark.parametrize("depth", [40, 300, 5000])
def test_what_is_nested_too_deeply_is_one_sentence(cli, tiny_file, tmp_path, depth):
    file = tmp_path / "deep.toml"
    file.write_text(f"a = {nested(depth)}\n")
    saved = tmp_path / "deep.json"
    saved.write_text(nested(depth))
    assert "deep.toml" in one_sentence(cli("run", file))
    assert "nested" in one_sentence(cli("run", tiny_file, "--set", f"traffic.rate={nested(depth)}"))
    assert "deep.json" in one_sentence(cli("explain", saved))
    one_sentence(cli("scoreboard", "--claims", file))


def test_a_report_of_what_is_no_number_is_one_sentence(cli, tiny_file, tmp_path):
    out = tmp_path / "out"
    cli("run", tiny_file, "--out", out, check=0)
    file = next(out.glob("result-*.json"))
    for wrong in ("fast", [1], True, {"a": 1}):
        data = json.loads(file.read_text())
        data["metrics"]["throughput_mrps"] = wrong
        file.write_text(json.dumps(data))
        said = one_sentence(cli("report", out))
        assert file.name in said and "metrics.throughput_mrps" in said and "is not a number" in said
        assert "is not a number" in one_sentence(cli("explain", file))


def test_a_huge_sweep_says_something_at_once(tiny_file, tmp_path):
    """It resolves its points for a while before the first runs."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from hostnet.cli import main; main()",
            "sweep",
            str(tiny_file),
            "--vary",
            "seed=" + ",".join(map(str, range(1000))),
            "--vary",
            "run.requests=" + ",".join(map(str, range(2000, 2100))),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    began = time.monotonic()
    try:
        assert select.select([process.stderr], [], [], 20)[0], "nothing was said"
        assert process.stderr.readline().startswith("hostnet: the sweep has 100,000 points")
        assert time.monotonic() - began < 20
    finally:
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert said == "hostnet: interrupted; finished points are saved and the same command resumes.\n"


def test_an_output_that_is_a_file_is_refused_before_anything_runs(cli, tiny_file, tmp_path):
    file = tmp_path / "taken"
    file.write_text("x")
    assert "taken" in one_sentence(cli("run", tiny_file, "--out", file))
    assert "taken" in one_sentence(cli("run", tiny_file, "--out", file / "below"))
    assert file.read_text() == "x" and not (tmp_path / "cache").exists()


def test_an_unwritable_output_is_refused(cli, tiny_file):
    assert "/proc/hostnet" in one_sentence(cli("run", tiny_file, "--out", "/proc/hostnet"))


def test_help_is_quick():
    best = min(_processor_time() for _ in range(3))
    assert best < 0.8  # about 0.3 s; of the processor, since what else a machine does takes no more of that


@pytest.mark.parametrize("width", [40, BOXED])
def test_help_cuts_nothing_on_a_narrow_terminal(cli, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    commands = get_command(app).commands
    assert len(commands) > 10
    for path in ([], *([name] for name in commands)):
        said = cli(*path, "--help", check=0).stdout
        assert "…" not in said and "..." not in said.partition("Commands")[2], path
        command = commands[path[0]] if path else get_command(app)
        names = [name for p in command.params if p.param_type_name == "option" for name in p.opts]
        assert [name for name in names if name not in said] == [], path


def test_version_is_the_one_in_results(cli, tiny_file, tmp_path):
    cli("run", tiny_file, "--out", tmp_path / "out", check=0)
    row = next(csv.DictReader(next((tmp_path / "out").glob("*.csv")).open()))
    assert cli("--version", check=0).stdout == f"hostnet {row['version']}\n"


def _processor_time():
    before = os.times()
    assert b"scoreboard" in subprocess.run([*COMMAND, "--help"], capture_output=True, check=True).stdout
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def test_ctrl_c_is_one_sentence_and_leaves_no_output(tiny_file, tmp_path):
    """The first Ctrl-C ends a long sweep: exit code 130, no files, no workers left behind."""
    out = tmp_path / "out"
    args = ["sweep", tiny_file, "--set", "run.requests=500000000", "--vary", "seed=1,2,3", "--out", out, "--jobs", 2]
    process = subprocess.Popen(
        [sys.executable, "-c", "from hostnet.cli import main; main()", *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    deadline = time.monotonic() + 20
    while len(workers := children.read_text().split()) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=20)
    assert process.returncode == 130 and stdout == ""
    assert "resumes" in stderr and len(stderr.strip().splitlines()) == 1
    assert not out.exists()
    assert len(workers) == 2 and not any(Path(f"/proc/{w}").exists() for w in workers)


@pytest.mark.parametrize(
    "first, second",
    [
        ("platform.memory.channels", "override.memory.channels"),
        ("tenant[0].cores", "tenant.0.cores"),
        ("override.memory.channels", "platform.memory.channels"),
    ],
)
def test_a_sweep_refuses_one_key_under_two_names(cli, tiny_file, first, second):
    said = one_sentence(cli("sweep", tiny_file, "--vary", f"{first}=1,2", "--vary", f"{second}=4"))
    assert said == f"hostnet: {first} and {second} are one key; give all of its values under one name.\n"


def test_arguments_of_another_type_are_one_sentence(tiny, tmp_path):
    import hostnet as hn

    for call in (
        lambda: hn.run(tiny, seeds="3"),
        lambda: hn.run(tiny, seeds=2.5),
        lambda: hn.repeat(tiny, "3"),
        lambda: hn.run(tiny, pcap=b"x"),
        lambda: hn.run(tiny, pcap=3),
        lambda: hn.sweep(tiny, None),
        lambda: hn.platform(3),
        lambda: hn.run(tiny, cache=str(tmp_path)),
        lambda: hn.plot({"a": [1]}, "a", "a"),
        lambda: hn.explain.of_counters(tmp_path / "c.csv", seconds=-1),
        lambda: hn.explain.of_counters(tmp_path / "c.csv", seconds=1e-300),
    ):
        with pytest.raises(hn.HostnetError) as raised:
            call()
        assert str(raised.value).endswith(".") and "\n" not in str(raised.value)
