"""What the Makefile gives the compiler: nothing of its own, but on processors that lack AVX2. And what cargo compiles once."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
x86_linux = pytest.mark.skipif(
    os.uname().sysname != "Linux" or os.uname().machine != "x86_64", reason="x86-64 Linux only"
)


def make(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if k not in ("RUSTFLAGS", "MAKEFLAGS", "MAKELEVEL", "MFLAGS", "CPUINFO")}
    return subprocess.run(["make", "-s", *words], cwd=ROOT, env=env | more, capture_output=True, text=True)


def cpuinfo(tmp_path: Path, flags: str) -> str:
    file = tmp_path / "cpuinfo"
    file.write_text(f"processor : 0\nflags : fpu sse2 {flags}\n")
    return f"CPUINFO={file}"


@x86_linux
def test_a_processor_with_avx2_gets_the_flags_of_cargo_s_configuration(tmp_path: Path) -> None:
    assert make("flags", cpuinfo(tmp_path, "avx avx2")).stdout == "those of .cargo/config.toml\n"


@x86_linux
def test_a_processor_without_avx2_gets_code_that_it_can_run(tmp_path: Path) -> None:
    assert make("flags", cpuinfo(tmp_path, "avx")).stdout == "-C target-cpu=x86-64\n"


def test_the_user_s_own_flags_win(tmp_path: Path) -> None:
    told = make("flags", cpuinfo(tmp_path, "avx"), RUSTFLAGS="-C target-cpu=native")
    assert told.stdout == "-C target-cpu=native\n"


def test_a_profile_without_llvm_profdata_is_one_sentence(tmp_path: Path) -> None:
    """A compiler without llvm-tools, and on PATH a tool that fails, as LLVM 14's does when asked for its version."""
    rustc = tmp_path / "rustc"
    rustc.write_text(
        "#!/bin/sh\ncase $1 in\n"
        f"--print) echo {tmp_path}/sysroot ;;\n"
        "-vV) printf 'rustc 1.95.0\\nhost: x86_64-unknown-linux-gnu\\nLLVM version: 22.1.2\\n' ;;\nesac\n"
    )
    tool = tmp_path / "llvm-profdata"
    tool.write_text("#!/bin/sh\nexit 1\n")
    for program in (rustc, tool):
        program.chmod(0o755)
    told = make("pgo", PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert told.returncode == 2
    assert told.stdout == ""
    first, *rest = told.stderr.splitlines()
    assert first == "make pgo needs llvm-profdata (LLVM 22.1.2): rustup component add llvm-tools."
    assert all(line.startswith("make") for line in rest), rest


@pytest.mark.parametrize("place", ["sysroot", "PATH"])
def test_llvm_profdata_is_found_in_the_toolchain_and_on_path(tmp_path: Path, place: str) -> None:
    bins = tmp_path / "bin"
    bins.mkdir()
    tools = tmp_path / "sysroot" / "lib" / "rustlib" / "some-host" / "bin"
    tools.mkdir(parents=True)
    scripts = {
        bins / "rustc": f"case $1 in\n--print) echo {tmp_path}/sysroot ;;\n-vV) echo 'host: some-host' ;;\nesac",
        bins / "llvm-profdata": f"exit {0 if place == 'PATH' else 1}",
        tools / "llvm-profdata": f"exit {0 if place == 'sysroot' else 1}",
    }
    for file, text in scripts.items():
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)
    assert make("llvm-profdata", PATH=f"{bins}{os.pathsep}{os.environ['PATH']}").returncode == 0


def features(*packages: str) -> dict[str, set[str]]:
    """The sets of features with which cargo compiles each crate, by its name and version."""
    command = ["cargo", "tree", "--locked", "--offline", "--prefix", "none", "-f", "{p};{f}", *packages]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found: dict[str, set[str]] = {}
    for line in told.splitlines():
        crate, _, selected = line.removesuffix(" (*)").partition(";")
        found.setdefault(crate, set()).add(selected)
    return found


@pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")
def test_the_python_module_and_the_rust_tests_share_the_compiled_engine() -> None:
    """Cargo compiles a crate anew for other features of it, or of anything that it uses, such as a derive macro."""
    module = features("-p", "hostnet-python", "-e", "normal,build")
    tests = features("--workspace", "--exclude", "hostnet-python", "-e", "normal,build,dev")
    common = {crate for crate in module.keys() & tests.keys() if not crate.startswith("hostnet-measure ")}
    assert {crate.split()[0] for crate in common} >= {"hostnet", "hostnet-record", "serde", "serde_derive", "syn"}
    assert {crate: module[crate] for crate in common if not module[crate] <= tests[crate]} == {}
