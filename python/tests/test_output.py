"""Directories of results: one command's own, whole or not at all, known to be writable before anything runs."""

import errno
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import hostnet as hn
from hostnet import output


def names(folder):
    return sorted(p.name for p in folder.iterdir())


def one_sentence(done, code=2):
    assert done.returncode == code, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1 and "Traceback" not in done.stderr, done.stderr
    return done.stderr


def contents(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def test_another_sweep_is_refused_before_it_runs_and_says_what_is_there(cli, tiny_file, tmp_path):
    out = tmp_path / "out"
    cli("sweep", tiny_file, "--vary", "seed=1,2,3", "--out", out, check=0)
    before, ran = contents(out), len(list((tmp_path / "cache").rglob("*.json")))
    for other, lacks in (
        (["--vary", "placement.ways=4"], "of which this one lacks 3"),
        (["--vary", "seed=1,2"], "of which this one lacks 1"),
        (["--vary", "seed=1,2,3", "--set", "placement.ways=4"], "of which 3 differ in other values"),
    ):
        said = one_sentence(cli("sweep", tiny_file, *other, "--out", out))
        assert f"{out}: holds 3 points of tiny, {lacks}; give another --out, or --replace" in said, other
    assert contents(out) == before and len(list((tmp_path / "cache").rglob("*.json"))) == ran


def test_the_same_sweep_and_one_with_more_values_go_on(cli, tiny_file, tmp_path):
    out = tmp_path / "out"
    for seeds, rows in (("1,2", 2), ("2,1", 2), ("1,2,3", 3)):
        cli("sweep", tiny_file, "--vary", f"seed={seeds}", "--out", out, check=0)
        assert len((out / "sweep.csv").read_text().splitlines()) == 1 + rows


def test_results_of_another_engine_are_replaced_by_the_same_points(tmp_path):
    def made(engine, **points):
        with output.directory(tmp_path / "out", "sweep", output.Contents("kvs", points, engine)) as tmp:
            (tmp / "a").write_text(engine)

    made("1", ways2="x")
    told = r"engine 1 measured the 1 point of kvs there; .* what engine 2 measures replaces all of them, and nothing of them is kept"
    with pytest.warns(output.OtherEngineWarning, match=told):
        made("2", ways2="y")
    with pytest.raises(hn.HostnetError, match="1 point of kvs, of which 1 differs in other values"):
        made("2", ways2="z")
    with pytest.raises(hn.HostnetError, match="1 point of kvs, of which this one lacks 1"):
        made("3", ways4="y")
    assert (tmp_path / "out" / "a").read_text() == "2"


@pytest.mark.parametrize("replace", [False, True])
def test_a_command_says_on_one_line_that_it_replaces_results_of_another_engine(cli, tiny_file, tmp_path, replace):
    out, more = tmp_path / "out", (["--vary", "seed=2,3", "--replace"] if replace else ["--vary", "seed=1,2,3"])
    assert "measured" not in cli("sweep", tiny_file, "--vary", "seed=1,2", "--out", out, check=0).stderr
    about = json.loads((out / output.MANIFEST).read_text())
    ours, about["contents"]["engine"] = about["contents"]["engine"], "0.0.9"
    (out / output.MANIFEST).write_text(json.dumps(about))
    done = cli("sweep", tiny_file, *more, "--out", out, check=0)
    said = [line for line in done.stderr.splitlines() if line.startswith("hostnet: warning: ")]
    assert len(said) == 1 and f"{out}: engine 0.0.9 measured the 2 points of tiny there" in said[0], done.stderr
    assert f"what engine {ours} measures replaces all of them" in said[0]
    assert "engine" not in cli("sweep", tiny_file, *more, "--out", out, check=0).stderr, "now they are this engine's"


def test_a_directory_that_does_not_say_what_it_holds_is_refused(tmp_path):
    out = tmp_path / "out"
    with output.directory(out, "run") as tmp:
        (tmp / "a").write_text("1")
    with (
        pytest.raises(hn.HostnetError, match="does not say what they are of; give another --out, or --replace"),
        output.directory(out, "run", output.Contents("kvs", {})),
    ):
        pass


def test_another_run_is_refused_and_replaced_on_demand(cli, tiny_file, tmp_path):
    out = tmp_path / "out"
    cli("run", tiny_file, "--out", out, check=0)
    cli("run", tiny_file, "--out", out, check=0)
    before = contents(out)
    said = one_sentence(cli("run", tiny_file, "--set", "seed=9", "--out", out))
    assert "holds 1 point of tiny, of which 1 differs in other values" in said and contents(out) == before
    cli("run", tiny_file, "--set", "seed=9", "--out", out, "--replace", check=0)
    assert json.loads((out / "result-0000.json").read_text())["seed"] == 9
    assert "--replace is about the directory" in one_sentence(cli("run", tiny_file, "--replace"))


def test_results_over_fewer_seeds_do_not_replace_those_over_more(cli, tiny_file, tmp_path):
    run, sweep = ("run", tiny_file, "--out", "r"), ("sweep", tiny_file, "--vary", "placement.ways=2", "--out", "s")
    for command, folder in ((run, "r"), (sweep, "s")):
        for seeds in ([], ["--seeds", "2"], ["--seeds", "3"]):
            cli(*command, *seeds, check=0)
        before = contents(cli.cwd / folder)
        for seeds, over in (([], 1), (["--seeds", "2"], 2)):
            said = one_sentence(cli(*command, *seeds))
            assert f"{folder}: holds 1 point of tiny over 3 seeds, and this is over {over}; give another --out" in said
        assert contents(cli.cwd / folder) == before
    several, one = cli.cwd / "r" / "result-0000.json", tmp_path / "one.json"
    hn.run(tiny_file).save(one)
    for command in ("explain", "report"):
        cli(command, several, "--out", f"{command}.html", check=0)
        assert "give another --out" in one_sentence(cli(command, one, "--out", f"{command}.html"))


def test_a_quick_study_does_not_replace_a_full_one(tmp_path):
    def made(quick, *points):
        found = output.Contents("sweeper fig5", dict.fromkeys(points, ""), "1", quick)
        with output.directory(tmp_path / "out", "study sweeper fig5", found) as tmp:
            (tmp / "a").write_text(str(quick))

    made(True, "p", "q")
    made(False, "p")  # a full study goes before a quick one
    with pytest.raises(hn.HostnetError, match="holds 1 point of sweeper fig5 in full, and this is a quick run"):
        made(True, "p", "q")


def test_a_study_and_an_explanation_know_what_they_are_of(cli, tmp_path):
    cli("study", "hostnetwork", "peakbw-cl", "--quick", "--out", "s", check=0)
    cli("study", "hostnetwork", "peakbw-cl", "--quick", "--out", "s", check=0)
    held = json.loads((cli.cwd / "s" / "hostnet.json").read_text())["contents"]
    assert (held["of"], held["quick"], len(held["points"])) == ("hostnetwork peakbw-cl", True, 1)
    cli("explain", "quadrant1", "--set", "run.time=20 us", "--out", "e", check=0)
    said = one_sentence(cli("explain", "quadrant3", "--set", "run.time=20 us", "--out", "e"))
    assert "e: holds 1 point of quadrant1, and this is quadrant3" in said


def test_a_report_replaces_reports_of_the_same_results_alone(cli, tiny_file, tmp_path):
    for name, seeds in (("a", "1"), ("b", "1,2")):
        cli("sweep", tiny_file, "--vary", f"seed={seeds}", "--out", tmp_path / name, check=0)
    page, mine = tmp_path / "page.html", tmp_path / "mine.html"
    cli("report", tmp_path / "a", "--out", page, check=0)
    cli("report", tmp_path / "b", "--out", page, check=0)
    said = one_sentence(cli("report", tmp_path / "a", "--out", page))
    assert f"{page}: is a report of 2 results, of which this one lacks 1; give another --out, or --replace" in said
    mine.write_text("<html>")
    assert "is there and is no report of hostnet's" in one_sentence(cli("report", tmp_path / "a", "--out", mine))
    assert mine.read_text() == "<html>"
    cli("report", tmp_path / "a", "--out", mine, "--replace", check=0)


def test_a_replaced_sweep_goes_whole(cli, tiny_file, tmp_path):
    out = tmp_path / "out"
    cli("sweep", tiny_file, "--vary", "placement.ways=2,4,6", "--out", out, check=0)
    cli("report", out, check=0)
    cli("sweep", tiny_file, "--vary", "seed=7", "--out", out, "--replace", check=0)
    assert names(out) == [
        "hostnet.json",
        "sweep-0000.json",
        "sweep-intervals.csv",
        "sweep-intervals.parquet",
        "sweep.csv",
        "sweep.parquet",
    ]
    cli("report", out, check=0)
    page = (out / "report.html").read_text()
    assert "ways 4" not in page and page.count("</summary><pre>") == 1


def test_another_command_is_refused_and_named(cli, tiny_file, tmp_path):
    out = tmp_path / "out"
    cli("sweep", tiny_file, "--vary", "seed=1,2", "--out", out, check=0)
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    said = one_sentence(cli("run", tiny_file, "--set", "seed=9", "--out", out))
    assert "holds what `hostnet sweep` wrote" in said
    assert {p.name: p.read_bytes() for p in out.iterdir()} == before
    assert len(list((tmp_path / "cache").rglob("*.json"))) == 2, "refused before anything ran"


def test_a_directory_with_files_of_ones_own_is_refused(cli, tiny_file, tmp_path):
    out = tmp_path / "mine"
    out.mkdir()
    (out / "notes.txt").write_text("x")
    assert "notes.txt" in one_sentence(cli("run", tiny_file, "--out", out))
    assert names(out) == ["notes.txt"] and not (tmp_path / "cache").exists()


def test_a_file_that_came_later_is_neither_reported_nor_removed(cli, tiny_file, tmp_path):
    out = tmp_path / "out"
    cli("sweep", tiny_file, "--vary", "seed=1", "--out", out, check=0)
    stray = json.loads((out / "sweep-0000.json").read_text())
    stray["spec"]["name"] = "a-stray-copy"
    (out / "stray.json").write_text(json.dumps(stray))
    cli("report", out, check=0)
    assert "a-stray-copy" not in (out / "report.html").read_text()
    cli("sweep", tiny_file, "--vary", "seed=1", "--out", out, check=0)
    assert "stray.json" in names(out) and "report.html" not in names(out)


def test_two_processes_do_not_share_a_directory(cli, tiny_file, tmp_path):
    out = tmp_path / "out"
    slow = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from hostnet.cli import main; main()",
            "sweep",
            str(tiny_file),
            "--set",
            "run.requests=500000000",
            "--vary",
            "seed=1,2",
            "--jobs",
            "1",
            "--out",
            str(out),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        # A shell without job control has programs in the background ignore it, and so do the programs that those start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        deadline = time.monotonic() + 120
        while not list(out.glob(".part-*")) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert "another hostnet process is writing there" in one_sentence(
            cli("sweep", tiny_file, "--vary", "seed=3", "--out", out)
        )
    finally:
        slow.send_signal(signal.SIGINT)
        slow.communicate(timeout=120)
    assert slow.returncode == 130 and not out.exists()
    cli("sweep", tiny_file, "--vary", "seed=3", "--out", out, check=0)


def test_what_a_killed_process_left_is_no_obstacle(cli, tiny_file, tmp_path):
    out = tmp_path / "out"
    cli("run", tiny_file, "--out", out, check=0)
    (out / ".part-abc").mkdir()
    (out / ".part-abc" / "half.csv").write_text("1")
    (out / ".hostnet.lock").write_text("")
    cli("run", tiny_file, "--out", out, check=0)
    assert not [n for n in names(out) if n.startswith(".")]


def test_a_directory_stopped_half_way_says_so_and_is_completed(tmp_path):
    out = tmp_path / "out"
    with output.directory(out, "run") as tmp:
        (tmp / "a.json").write_text("{}")
    about = json.loads((out / "hostnet.json").read_text())
    (out / "hostnet.json").write_text(json.dumps(about | {"complete": False}))
    with pytest.raises(hn.HostnetError, match="`hostnet run` was stopped while it wrote; run it again"):
        output.files_of(out, "*.json")
    with output.directory(out, "run") as tmp:
        (tmp / "b.json").write_text("{}")
    assert names(out) == ["b.json", "hostnet.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"files": 3}', '{"command": "run", "files": ["../x"]}'])
def test_a_damaged_list_of_files_is_one_sentence(tmp_path, text):
    (tmp_path / "hostnet.json").write_text(text)
    with (
        pytest.raises(hn.HostnetError, match=r"hostnet\.json: is not as hostnet wrote it"),
        output.directory(tmp_path, "run"),
    ):
        pass


def test_a_failed_command_leaves_the_directory_as_it_was(tmp_path):
    out = tmp_path / "out"
    with output.directory(out, "run") as tmp:
        (tmp / "a").write_text("1")
    with pytest.raises(RuntimeError), output.directory(out, "run") as tmp:
        (tmp / "b").write_text("2")
        raise RuntimeError
    assert names(out) == ["a", "hostnet.json"]


def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path):
    with pytest.raises(hn.HostnetError, match=r"out: cannot be written \(No space left on device\)\.$"):
        with output.directory(tmp_path / "out", "run") as tmp:
            (tmp / "a").write_text("1")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert names(tmp_path) == []


def limited(size):
    """What a disk does that is full after so many bytes of a file: the write fails."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.mark.parametrize("size, at", [(1_000, "cache"), (60_000, "out")])
def test_writing_that_fails_is_one_sentence(cli, tiny_file, tmp_path, size, at):
    if at == "out":
        cli("run", tiny_file, check=0)  # into the cache
    said = one_sentence(
        cli(
            "run",
            tiny_file,
            "--out",
            tmp_path / "out",
            "--set",
            "name='x'" if at == "cache" else "name='tiny'",
            preexec_fn=limited(size if at == "cache" else 3_000),
        )
    )
    assert f"{at}: cannot be written (File too large)" in said
    assert not (tmp_path / "out").exists()


def test_an_unwritable_cache_is_known_before_anything_runs(cli, tiny_file, monkeypatch):
    monkeypatch.setenv("HOSTNET_CACHE", "/proc/hostnet-cache")
    began = time.monotonic()
    said = one_sentence(cli("run", tiny_file, "--set", "run.requests=500000000"))
    assert "/proc/hostnet-cache" in said and time.monotonic() - began < 30


def test_devices_and_pipes_are_refused_and_links_stay(cli, tiny_file, tmp_path):
    """A file is written beside its name and then renamed, which would replace the device, the pipe or the link."""
    pipe, link, target = tmp_path / "pipe", tmp_path / "link", tmp_path / "target.json"
    os.mkfifo(pipe)
    fixed = ["--set", "run.load=fixed", "--set", "traffic.rate=1 Mrps"]
    for args in (
        ["run", tiny_file, *fixed, "--pcap", pipe],
        ["trace", tiny_file, "-o", pipe],
        ["trace", tiny_file, "--memory", "ramulator2", "-o", pipe],
        ["record", "-o", pipe, "--", "/bin/true"],
        ["schema", "--md", pipe],
    ):
        assert f"{pipe}: cannot be written (it is a device or a pipe; name a file)" in one_sentence(cli(*args))
    assert pipe.is_fifo()
    # No command is tried on real devices, since a test with a fault and the rights of root would replace them.
    for device in ("/dev/null", "/dev/stdout", "/dev/fd/1"):
        with pytest.raises(hn.HostnetError, match="it is a device or a pipe"):
            output.check_file(Path(device))
    link.symlink_to(target)
    cli("trace", tiny_file, "--packets", "1", "-o", link, check=0)
    assert link.is_symlink() and target.read_text().startswith("{")


def test_a_full_standard_output_is_one_sentence(cli, tiny_file):
    for args in (["schema"], ["run", tiny_file], ["run", tiny_file, "--json"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [sys.executable, "-c", "from hostnet.cli import main; main()", *map(str, args)],
                cwd=cli.cwd,
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                timeout=120,
            )
        assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
        assert done.stderr.startswith("hostnet: standard output: cannot be written (No space left on device)")


def test_an_encoding_without_a_sign_shows_another(cli, tiny_file, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    lost = ["--set", "rings.rx_buffers=16", "--set", "traffic.rate=40 Mrps"]
    for command in ("run", "explain"):
        assert "lost " in cli(command, tiny_file, *lost, check=0).stdout


@pytest.mark.parametrize(
    "command, redirected",
    [
        ("run tiny.toml --all", "| head -1"),
        ("schema", "| head -1"),
        ("run tiny.toml", ">&-"),
        ("run tiny.toml -q", ">&- 2>&-"),
    ],
)
def test_output_that_nobody_reads_is_no_mistake(cli, tiny_file, command, redirected):
    cli("run", tiny_file, check=0)  # into the cache
    line = f"set -o pipefail; {sys.executable} -c 'from hostnet.cli import main; main()' {command} {redirected}"
    done = subprocess.run(["bash", "-c", line], cwd=tiny_file.parent, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "args",
    [
        ["run", "TINY", "--out", "x" * 300],
        ["run", "y" * 300],
        ["report", "z" * 300],
        ["explain", "TINY", "--write-counters", "x" * 300],
        ["explain", "y" * 300 + ".json"],
        ["scoreboard", "--claims", "c" * 300],
        ["scoreboard", "--md", "m" * 300],
        ["run", "TINY", "--set", "platform=" + "p" * 300],
    ],
)
def test_a_name_longer_than_a_file_system_takes_is_one_sentence(cli, tiny_file, args):
    said = one_sentence(cli(*(str(tiny_file) if a == "TINY" else a for a in args)))
    assert len(said) < 700


def test_a_file_of_somebody_elses_is_not_overwritten(cli, tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text("precious")
    for args in (
        ["explain", "quadrant1", "--set", "run.time=20 us", "--write-counters"],
        ["calibrate", "none.csv", "--out"],
    ):
        said = one_sentence(cli(*args, mine))
        assert f"{mine}: is there and was not written by this command" in said and mine.read_text() == "precious"
    own = tmp_path / "own.csv"
    for _ in range(2):
        cli("explain", "quadrant1", "--set", "run.time=20 us", "--write-counters", own, check=0)


def test_every_single_file_that_a_command_writes_is_its_own(cli, tmp_path):
    """Each command refuses a file that it did not write, and writes its own anew; an empty file is nobody's loss."""
    quick, saved = ["--set", "run.time=50 us", "--set", "run.warmup_time=5 us"], tmp_path / "run"
    cli("run", "quadrant1", *quick, "--set", "run.timeline=10 us", "-o", saved, check=0)
    packets = ["--set", "run.load=fixed", "--set", "traffic.rate=1 Gbps", "--set", "run.requests=50"]
    recording = Path(__file__).parents[2] / "recordings" / "l3fwd-em.rec"
    (result,) = [f for f in saved.glob("*.json") if f.name != "hostnet.json"]
    for i, args in enumerate(
        (
            ["trace", "quadrant1", *quick, "--memory", "ramulator2", "-o"],
            ["trace", "quadrant1", *quick, "--memory", "dramsim3", "-o"],
            ["run", "testpmd", *packets, "--set", "run.warmup_requests=10", "--pcap"],
            ["record", "show", recording, "--svg"],
            ["export", result, "-o"],
            ["export", result, "--format", "influx", "-o"],
            ["schema", "--md"],
            ["metrics", "--md"],
            ["scoreboard", "--show-first", "sweeper", "--md"],
        )
    ):
        file = tmp_path / f"mine{i}.txt"
        file.write_text("precious")
        said = one_sentence(cli(*args, file))
        assert f"{file}: is there and was not written by this command" in said and file.read_text() == "precious"
        file.write_text("")
        for _ in range(2):
            cli(*args, file, check=0)
        assert file.stat().st_size > 0
    for option in ("--json", "--md"):
        said = one_sentence(cli("scoreboard", "--only", "sweeper.e.fig5*", option, recording))
        assert "was not written by this command" in said
