"""The programs of ``examples``: each is built and run, and prints what formulas and the platform say."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_extending import build

import hostnet as hn

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAMS = sorted((EXAMPLES / "python").glob("*.py"))

needs_cargo = pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")


def run(*command, cwd):
    done = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def test_there_are_three_programs_in_each_language():
    assert [p.stem for p in PROGRAMS] == ["control", "explain", "sweep"]
    assert len([*EXAMPLES.glob("library/src/bin/*.rs"), EXAMPLES / "own-components/src/main.rs"]) == 3


def test_a_sweep_is_printed_and_drawn(tmp_path):
    said = run(sys.executable, PROGRAMS[2], "a.svg", cwd=tmp_path)
    assert "shape: (6, 5)" in said and (tmp_path / "a.svg").read_text().startswith("<?xml")


def test_a_control_plane_is_compared_with_two_ways(tmp_path):
    said = run(sys.executable, PROGRAMS[0], cwd=tmp_path)
    assert re.search(r"^ +metric +unit +two ways +grown +change", said, re.M)
    assert re.search(r"^ +llc_wb +lines +[\d,]+ ± [\d,]+ ", said, re.M)


def test_the_explanation_ends_in_the_red_regime(tmp_path):
    """Figure 3 of Understanding the Host Network: quadrant 3 is red from four cores on."""
    said = run(sys.executable, PROGRAMS[1], cwd=tmp_path).splitlines()
    assert said[0].startswith("1 cores: blue") and said[-2].startswith("4 cores: red")
    assert said[-1].startswith("Red regime")


@pytest.mark.long
@needs_cargo
def test_the_engine_is_a_library(tmp_path):
    """One test, so that parallel workers build once. The engine is compiled for own-components, too."""
    target = EXAMPLES.parent / "target/unoptimised"
    build(EXAMPLES / "library", target)
    check_forwarder(run(target / "release/run", cwd=tmp_path))
    check_chain(run(target / "release/machine", cwd=tmp_path))


def check_forwarder(said):
    """Below its limit a forwarder carries what it is offered, and waits add to latency."""
    rows = [tuple(map(float, re.findall(r"[\d.]+", line))) for line in said.splitlines()[1:]]
    assert [row[0] for row in rows] == [5, 10, 20]
    assert all(row[1] == pytest.approx(row[0], rel=0.05) and row[2] < row[3] for row in rows)
    assert rows[0][2] < rows[2][2]


def check_chain(said):
    """Look-ups add up, and of a set that is drawn from evenly each cache holds its share."""
    seen = {name: float(ns) for name, ns in re.findall(r"^ *(\w+) +([\d.]+)$", said, re.M)}
    caches = hn.platform("sim24")["caches"]
    cycle = 1 / float(caches["uncore_clock"].removesuffix(" GHz"))
    l1 = caches["l1d"]["latency_cycles"] * cycle
    l2 = l1 + caches["l2"]["latency_cycles"] * cycle
    llc = l2 + (caches["llc"]["latency_cycles"] + 2 * caches["noc_cycles"]) * cycle
    lines = {level: size(caches[level]["size"]) // 64 for level in ("l1d", "l2")}

    def mixed(of, near, far, held):
        return far + (near - far) * min(1, held / of)

    assert seen["L1"] == pytest.approx(l1, abs=0.01)
    assert seen["L2"] == pytest.approx(mixed(1 << 13, l1, l2, lines["l1d"]), rel=0.02)
    assert seen["LLC"] == pytest.approx(mixed(1 << 17, l2, llc, lines["l2"]), rel=0.02)
    assert seen["DRAM"] > llc + 10


def size(text):
    number, unit = text.split()
    return int(float(number) * {"KiB": 1 << 10, "MiB": 1 << 20}[unit])
