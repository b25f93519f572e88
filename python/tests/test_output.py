"""Directories of results: one command's own, whole or not at all, known to be writable before anything runs."""

import errno
import json
import os
import resource
import signal
import subprocess
import sys
import time

import pytest

import hostnet as hn
from hostnet import output


def names(folder):
    return sorted(p.name for p in folder.iterdir())


def one_sentence(done, code=2):
    assert done.returncode == code, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1 and "Traceback" not in done.stderr, done.stderr
    return done.stderr


def test_a_second_sweep_replaces_the_first_whole(cli, tiny_file, tmp_path):
    out = tmp_path / "out"
    cli("sweep", tiny_file, "--vary", "placement.ways=2,4,6", "--out", out, check=0)
    cli("report", out, check=0)
    cli("sweep", tiny_file, "--vary", "seed=7", "--out", out, check=0)
    assert names(out) == ["hostnet.json", "sweep-0000.json", "sweep.csv", "sweep.parquet"]
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
    )
    try:
        deadline = time.monotonic() + 30
        while not list(out.glob(".part-*")) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert "another hostnet process is writing there" in one_sentence(
            cli("sweep", tiny_file, "--vary", "seed=3", "--out", out)
        )
    finally:
        slow.send_signal(signal.SIGINT)
        slow.communicate(timeout=30)
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
