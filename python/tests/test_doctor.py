"""`hostnet doctor`: what is there, what is missing, and how to get it."""

import importlib.util
import json
import subprocess
import sys
from importlib import metadata

import pytest

from hostnet import doctor


def by_part(found):
    return {f.part: f for f in found}


def test_it_prints_each_part_with_its_use_and_ends_well(cli):
    done = cli("doctor", check=0)
    for word in ("polars", metadata.version("polars"), "result cache", "tracing", "DPDK", "huge pages", "web browser"):
        assert word in done.stdout
    assert done.stdout.rstrip().endswith("hostnet has all that simulations need.")
    assert list(cli.cwd.iterdir()) == []


def test_the_findings_as_json_name_every_dependency_of_the_package(cli):
    found = json.loads(cli("doctor", "--json", check=0).stdout)
    parts = {f["part"]: f for f in found}
    needed = [r for r in metadata.requires("hostnet") if "extra ==" not in r and "python" not in r]
    assert len(needed) >= 5
    for requirement in needed:
        name = requirement.split(">")[0]
        assert parts[name]["verdict"] == "ok" and parts[name]["found"] == metadata.version(name)
    assert all(f["needed_for"] for f in found)
    assert all(f["remedy"] for f in found if f["verdict"] != "ok")


def test_a_missing_package_ends_with_its_remedy_and_exit_code_2(monkeypatch, capsys):
    known = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "duckdb" else known(name))
    assert doctor.main(False) == 2
    assert capsys.readouterr().out.rstrip().endswith("hostnet cannot work without: duckdb.")


def test_a_missing_extra_is_no_failure(monkeypatch):
    known = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "distributed" else known(name))
    found = by_part(doctor.findings())["distributed"]
    assert found.verdict == "no" and found.remedy == 'pip install "hostnet[cluster]"'
    assert doctor.main(True) == 0


def test_a_cache_that_cannot_be_written_is_named(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HOSTNET_CACHE", str(tmp_path / "file"))
    found = by_part(doctor.findings())["result cache"]
    assert found.verdict == "missing" and "HOSTNET_CACHE" in found.remedy


@pytest.mark.parametrize(
    ("scope", "root", "attaching"),
    [("0", False, "ok"), ("1", False, "no"), ("1", True, "ok"), ("2", True, "ok"), ("3", True, "no")],
)
def test_attaching_follows_the_kernel_s_setting(monkeypatch, tmp_path, scope, root, attaching):
    """Documentation/admin-guide/LSM/Yama.rst: 1 lets only a parent attach, 2 only an administrator, 3 nobody."""
    (tmp_path / "scope").write_text(f"{scope}\n")
    monkeypatch.setattr(doctor, "PTRACE_SCOPE", tmp_path / "scope")
    found = by_part(doctor._recording("linux", "x86_64", lambda: True, root))
    assert found["tracing"].verdict == "ok"
    assert (found["attaching"].verdict, bool(found["attaching"].remedy)) == (attaching, attaching != "ok")


def test_a_container_that_refuses_to_trace_says_so():
    (found,) = doctor._recording("linux", "x86_64", lambda: False)
    assert found.verdict == "no" and "--cap-add=SYS_PTRACE" in found.remedy


@pytest.mark.parametrize(("system", "machine"), [("linux", "aarch64"), ("darwin", "arm64")])
def test_other_systems_only_replay(system, machine):
    (found,) = doctor._recording(system, machine)
    assert found.verdict == "no" and "replayed anywhere" in found.remedy


@pytest.mark.skipif(sys.platform != "linux", reason="ptrace is Linux's")
def test_tracing_is_tried_and_not_guessed():
    """The answer is the one that a debugger gets: PTRACE_TRACEME, request 0, of a child."""
    program = "import ctypes; print(ctypes.CDLL(None).ptrace(0, 0, 0, 0))"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.strip()
    assert doctor.may_trace() == (answer == "0")


def test_settings_of_the_kernel_are_read(monkeypatch, tmp_path):
    (tmp_path / "thp").write_text("always madvise [never]\n")
    (tmp_path / "meminfo").write_text("MemTotal: 1 kB\nHugePages_Total:      16\n")
    monkeypatch.setattr(doctor, "TRANSPARENT", tmp_path / "thp")
    monkeypatch.setattr(doctor, "MEMINFO", tmp_path / "meminfo")
    found = by_part(doctor._library())
    assert found["huge pages"].verdict == "ok" and found["huge pages"].found == "16 reserved"
    assert found["transparent huge pages"].verdict == "no" and found["transparent huge pages"].found == "never"
