"""The comparison of data planes: what keeps it from running is one sentence, before anything is measured."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "crates" / "ccnic" / "pmd" / "compare.py"


@pytest.fixture
def built(tmp_path):
    """A directory with files of the names that are needed; the programs fail when they are run."""
    for name in ("ccnic-compare", "ccnic-bench", "librte_net_ccnic.so"):
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    return tmp_path


def compare(build, *args):
    return subprocess.run(
        [sys.executable, PROGRAM, "--build", build, "--programs", build, *args],
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_a_tree_below_a_folder_that_everybody_may_write_to_is_refused(built):
    folder = built / "open"
    folder.mkdir()
    for name in ("ccnic-compare", "ccnic-bench", "librte_net_ccnic.so"):
        (built / name).rename(folder / name)
    folder.chmod(0o777)
    done = compare(folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1 and "Traceback" not in done.stderr
    assert f"everybody may write to, and {folder} is one" in done.stderr and "--only" in done.stderr


def test_what_is_not_built_is_named(built):
    (built / "librte_net_ccnic.so").unlink()
    done = compare(built)
    assert done.returncode == 2 and done.stderr.splitlines() == [
        f"compare.py: {built}/librte_net_ccnic.so does not exist; `make ccnic-pmd` builds it, and --build and --programs say "
        "where it is."
    ]


def test_only_folders_that_everybody_may_write_to_count(tmp_path):
    spec = importlib.util.spec_from_file_location("compare", PROGRAM)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    assert program.world_writable("/usr/bin/env") is None
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "a").chmod(0o757)
    assert program.world_writable(inner / "driver.so") == tmp_path / "a"
