"""What a user gets who has Python and nothing else: the wheel, installed into an empty environment, works without a
compiler and without the source tree.

The wheel is built from what `make build` has compiled. It holds that module twice, as a released one holds two.
"""

import csv
import hashlib
import importlib.util
import json
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest
from shownpage import Page

import hostnet as hn
from hostnet import _core, _processor

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
PAGE = Page("use/install.md")
SCRIPTS = Path(sysconfig.get_path("scripts"))

pytestmark = pytest.mark.skipif(not (ROOT / ".ci/wheels.py").exists(), reason="not a source tree")
needs_cargo = pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")


def program(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def maturin(*words):
    """Runs maturin with the interpreter of `make build`; for another one, cargo would build anew."""
    env = os.environ | {"VIRTUAL_ENV": sys.prefix}
    done = subprocess.run([SCRIPTS / "maturin", *words], cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def instructions(word):
    """What stands behind a word of the container file: of COPY both places, of RUN and others the rest of each line."""
    lines = (ROOT / "Containerfile").read_text(encoding="utf-8").splitlines()
    found = [line.removeprefix(word).strip() for line in lines if line.startswith(f"{word} ")]
    return found[0].split() if word == "COPY" else found


class Installed:
    """An environment with the wheel, whose PATH has nothing but the environment's own programs."""

    def __init__(self, folder, wheel):
        """Installs the wheel as the container file does, in the versions that are tested."""
        self.wheel, self.home = wheel, folder / "home"
        self.bin = folder / "env/bin"
        self.home.mkdir()
        subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True)
        (copied, wheels), (command,) = instructions("COPY"), instructions("RUN")
        (folder / "wheels").mkdir()
        (folder / "dist").mkdir()
        shutil.copy(wheel, folder / "dist")
        for file in folder.glob(copied):
            shutil.copy(file, folder / "wheels")
        env = os.environ | {"PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}", "PIP_QUIET": "1"}
        env |= {"PIP_CONSTRAINT": str(ROOT / "requirements.txt"), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        command = command.replace("--no-cache-dir ", "").replace(wheels.rstrip("/"), str(folder / "wheels"))
        subprocess.run(command, shell=True, cwd=self.home, env=env, check=True)
        assert not (folder / "wheels").exists()

    def __call__(self, program, *words):
        """Runs a program of the environment in an empty directory."""
        env = {"PATH": str(self.bin), "HOME": str(self.home), "LANG": "C.UTF-8"}
        command = [self.bin / program, *map(str, words)]
        done = subprocess.run(command, cwd=self.home, env=env, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def python(self, text):
        return self("python", "-c", text)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    maturin("build", "--profile", os.environ.get("PROFILE", "release"), "--locked", "--offline", "--out", str(folder))
    (built,) = folder.glob("*.whl")
    (folder / "joined").mkdir()
    return Installed(folder, program("wheels").join(built, built, folder / "joined"))


@pytest.mark.long
@needs_cargo
def test_the_wheel_works_without_a_compiler_and_without_the_tree(installed):
    """One test, so that parallel workers build once."""
    for tool in ("cargo", "rustc", "cc", "gcc", "git", "make"):
        assert shutil.which(tool, path=str(installed.bin)) is None
    place = installed.python("import hostnet; print(hostnet.__file__)")
    assert Path(place.strip()).is_relative_to(installed.bin.parent)

    check_first_results(installed)
    check_a_study(installed)
    check_every_scenario(installed)
    check_a_recording(installed)
    check_a_scoreboard(installed)
    check_the_page(installed)
    check_the_module_is_the_processor_s(installed)
    check_the_files(installed)
    check_the_version(installed)


def check_first_results(installed):
    """Within a minute of processor time, which does not depend on what else the machine does."""
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert "DDIO + Sweeper" in installed("hostnet", "demo", "-q")
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime < 60
    assert (installed.home / "results/demo/report.html").stat().st_size > 10_000


def check_a_study(installed):
    said = installed("hostnet", "study", "hostnetwork", "fig6a", "--quick", "-q", "--out", "fig6a")
    assert "6 points, 0 from the cache" in said
    assert {p.suffix for p in (installed.home / "fig6a").iterdir()} >= {".csv", ".parquet", ".svg"}


def check_every_scenario(installed):
    """Each resolves, and every file that it replays is in the wheel."""
    said = installed.python(
        "import json, hostnet as hn; from hostnet.cache import files_of\n"
        "specs = {n: json.loads(hn.Scenario.load(n).resolve()) for n in hn.scenarios()}\n"
        "print(json.dumps({n: [t['file'] for t in files_of(s).values()] for n, s in specs.items()}))"
    )
    files = json.loads(said)
    assert files.keys() == hn.scenarios().keys()
    replayed = {f for found in files.values() for f in found}
    assert {Path(f).name for f in replayed} >= {"memcached-udp.pcap", "memcached-zipf.pcap", "testpmd-macswap.rec"}
    assert all(Path(f).resolve().is_relative_to(installed.bin.parent) and Path(f).is_file() for f in replayed)


def check_a_recording(installed):
    few = ("--set", "run.requests=500", "--set", "run.warmup_requests=200")
    assert "drop" in installed("hostnet", "run", "recorded-testpmd", "-q", *few)


def check_a_scoreboard(installed):
    for system in ("sweeper", "gem5net", "idio", "ccnic"):  # those whose first run was kept
        assert "reproduced" in installed("hostnet", "scoreboard", "--show-first", system)


def check_the_page(installed):
    """The page's commands behind the installation, as far as they leave the shell alone."""
    (scenario,) = PAGE.blocks("toml")
    (installed.home / "own.toml").write_text(scenario, encoding="utf-8")
    lines = [line for block in PAGE.blocks("sh") for line in block.splitlines()]
    assert "pip install hostnet-*_$(uname -m).whl" in lines
    commands = [line for line in lines if line.startswith("hostnet ") and "completion" not in line]
    assert len(commands) == 4
    for command in commands:
        installed(*shlex.split(command))
    report = installed.home / "results/own/report.html"
    assert "own" in report.read_text(encoding="utf-8")


def check_the_module_is_the_processor_s(installed):
    fits = sys.platform == "linux" and _processor.flags() >= _processor.NEEDED
    place = Path(installed.python("from hostnet import _core; print(_core.__file__)").strip())
    assert place.parent.name == ("x86_64_v3" if fits else "hostnet")
    found = json.loads(installed("hostnet", "doctor", "--json"))
    (engine,) = (f for f in found if f["part"] == "engine")
    assert ("x86-64-v3" in engine["found"]) == fits
    # A processor without AVX2 loads the other module, and computes the same bits.
    said = installed.python(
        "import hostnet; hostnet.__path__[:] = hostnet.__path__[-1:]\n"
        "from hostnet import _core; print(_core.__file__, _core.version(), _core.build())"
    )
    base, *version = said.split(maxsplit=2)
    assert Path(base).parent.name == "hostnet"
    assert version == [_core.version(), f"{_core.build()}\n"]


def check_the_files(installed):
    """RECORD has the digest of every file, in the form of the wheel's specification."""
    with zipfile.ZipFile(installed.wheel) as wheel:
        assert wheel.testzip() is None
        (record,) = (n for n in wheel.namelist() if n.endswith("RECORD"))
        rows = {name: (digest, size) for name, digest, size in csv.reader(wheel.read(record).decode().splitlines())}
        assert sorted(rows) == sorted(wheel.namelist())
        for name in wheel.namelist():
            data = wheel.read(name)
            digest = "sha256=" + urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
            assert rows[name] == (("", "") if name == record else (digest, str(len(data))))
        assert "hostnet/x86_64_v3/_core.abi3.so" in rows and "hostnet/data/recordings/testpmd-macswap.rec" in rows
        assert not [n for n in rows if n.endswith((".sh", ".pyc"))]


def check_the_version(installed):
    assert installed("hostnet", "--version") == f"hostnet {_core.version()}\n"
    assert installed.python("import hostnet; print(hostnet.__version__)").strip() == hn.__version__


@pytest.mark.long
@needs_cargo
def test_the_source_package_builds_the_same_engine(tmp_path):
    """From the package alone, as pip builds it; without optimisation, which the version does not know."""
    maturin("sdist", "--out", str(tmp_path))
    (package,) = tmp_path.glob("*.tar.gz")
    assert package.name == f"hostnet-{hn.__version__}.tar.gz"
    release = {"LTO": "off", "CODEGEN_UNITS": "16", "OPT_LEVEL": "0", "DEBUG": "0"}
    env = os.environ | {f"CARGO_PROFILE_RELEASE_{k}": v for k, v in release.items()}
    env |= {"CARGO_TARGET_DIR": str(ROOT / "target/unoptimised"), "CARGO_NET_OFFLINE": "true"}
    env |= {"PATH": f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}", "VIRTUAL_ENV": sys.prefix}
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "--no-cache-dir"]
    command = [*pip, "--wheel-dir", tmp_path / "made", package]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,) = (tmp_path / "made").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "unpacked")
    data = tmp_path / "unpacked/hostnet/data"
    for kind in ("captures", "claims", "claims/first", "platforms", "recordings", "scenarios"):
        wanted = {
            p.name for p in (ROOT / kind).iterdir() if p.suffix in (".toml", ".pcap", ".rec", ".trace", ".json", ".csv")
        }
        assert wanted and wanted == {p.name for p in (data / kind).iterdir() if p.is_file()}
    said = subprocess.run(
        [sys.executable, "-c", "from hostnet import _core; print(_core.__file__, _core.version())"],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path / "unpacked")}, capture_output=True, text=True,
    )  # fmt: skip
    place, version = said.stdout.split()
    assert Path(place).is_relative_to(tmp_path) and version == _core.version()


def test_the_container_file_has_instructions_that_every_builder_knows():
    """Words of the Containerfile's reference; a base image with a version, and the command as the entry point."""
    lines = [line for line in (ROOT / "Containerfile").read_text(encoding="utf-8").splitlines() if line.strip()]
    words = [line.split()[0] for line in lines if not line.startswith("#")]
    assert words == ["FROM", "COPY", "RUN", "WORKDIR", "ENTRYPOINT", "CMD"]
    (image,) = instructions("FROM")
    version = re.fullmatch(r"docker\.io/library/python:3\.(\d+)-slim", image)
    assert version and 10 <= int(version[1]) <= 14
    assert json.loads(instructions("ENTRYPOINT")[0]) == ["hostnet"]
    assert json.loads(instructions("CMD")[0]) == ["demo"]


def test_version_changelog_citation_and_engine_agree():
    version = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["version"]
    assert re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.M)[1] == version
    assert hn.__version__ == version
    assert re.fullmatch(re.escape(version) + r"\+[0-9a-f]{16}", _core.version())
    first, *released = re.findall(r"^## \[?([^\]\n]+?)\]?(?: - .*)?$", changelog(), re.M)
    assert first == "Unreleased"
    assert not released or released[0] == version


def changelog():
    return (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_oldest_compiler_is_the_one_that_the_dependencies_ask_for():
    """`rust-version` is not below that of any crate in use, and the toolchain that is tested is not below it."""
    own = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["rust-version"]
    if shutil.which("cargo") is None:
        pytest.skip("needs cargo")
    command = ["cargo", "metadata", "--locked", "--offline", "--format-version", "1"]
    packages = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout)["packages"]
    wanted = [v for p in packages if (v := p["rust_version"])]

    def number(text):
        return tuple(map(int, text.split(".")))[:2]

    assert len(wanted) > 20 and max(map(number, wanted)) <= number(own)
    tested = tomllib.loads((ROOT / "rust-toolchain.toml").read_text(encoding="utf-8"))["toolchain"]["channel"]
    assert number(own) <= number(tested)
    assert f"Rust {own} or newer is required" in changelog()


@pytest.mark.parametrize(
    ("flags", "fits"),
    [
        ("fpu sse2 avx avx2 bmi1 bmi2 f16c fma abm movbe xsave", True),
        ("fpu sse2 avx bmi1 f16c xsave", False),  # Ivy Bridge
        ("fpu sse2 avx avx2 bmi2 f16c fma abm movbe xsave", False),
    ],
)
def test_the_module_is_chosen_by_the_processor(tmp_path, flags, fits):
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nflags\t\t: {flags}\nprocessor\t: 1\nflags\t\t: avx2\n")
    (tmp_path / "v3").mkdir()
    chosen = _processor.first(tmp_path / "cpuinfo", tmp_path / "v3")
    assert chosen == ([str(tmp_path / "v3")] if fits else [])
    assert _processor.first(tmp_path / "cpuinfo", tmp_path / "absent") == []


def test_a_system_without_a_list_of_features_has_the_module_for_every_processor(tmp_path):
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nFeatures\t: fp asimd\n")
    assert _processor.first(tmp_path / "cpuinfo", tmp_path) == []
    assert _processor.first(tmp_path / "absent", tmp_path) == []


def test_a_wheel_for_an_architecture_without_a_library_is_one_sentence(tmp_path):
    """A compiler that has no such library, and a rustup that is refused."""
    for name, text in (("rustc", "echo /nowhere"), ("rustup", "exit 1")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    command = [sys.executable, ROOT / ".ci/wheels.py", "aarch64", "--out", tmp_path / "dist"]
    done = subprocess.run(command, env=os.environ | {"PATH": str(tmp_path)}, capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("wheels: there is no wheel for aarch64, ") and done.stderr.count("\n") == 1
    assert list((tmp_path / "dist").iterdir()) == []
