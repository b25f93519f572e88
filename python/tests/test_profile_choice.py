"""The Makefile gives the compiler's profile to the compiler that it was made for, and to no other."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROFILES = sorted((ROOT / "profile").glob("rustc-*.profdata"))

pytestmark = [
    pytest.mark.skipif(shutil.which("make") is None, reason="needs make"),
    pytest.mark.skipif(os.uname().sysname != "Linux" or os.uname().machine != "x86_64", reason="profiles are of x86-64 Linux"),
    pytest.mark.skipif(" " in str(ROOT), reason="flags hold no path with a space"),
    pytest.mark.skipif("avx2" not in Path("/proc/cpuinfo").read_text(), reason="profiles are of processors with AVX2"),
]


def flags(tmp_path: Path, version: str, **more: str) -> str:
    """What `make flags` prints beside a compiler that calls itself `version`."""
    rustc = tmp_path / "rustc"
    rustc.write_text(f"#!/bin/sh\necho 'rustc {version} (0123456 2026-01-01)'\n")
    rustc.chmod(0o755)
    env = {k: v for k, v in os.environ.items() if k not in ("RUSTFLAGS", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    env |= {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", **more}
    return subprocess.run(["make", "-s", "flags"], cwd=ROOT, env=env, capture_output=True, text=True, check=True).stdout.strip()


def test_the_compiler_that_a_profile_was_made_for_gets_it(tmp_path: Path) -> None:
    assert PROFILES, "a profile is committed"
    for profile in PROFILES:
        version = profile.stem.removeprefix("rustc-")
        assert flags(tmp_path, version) == f"-C target-cpu=x86-64-v3 -C profile-use={profile}"


def test_other_compilers_go_without(tmp_path: Path) -> None:
    assert "profile-use" not in flags(tmp_path, "1.85.0")
    assert "profile-use" not in flags(tmp_path, "99.0.0-nightly")


def test_the_user_s_own_flags_win(tmp_path: Path) -> None:
    version = PROFILES[0].stem.removeprefix("rustc-")
    assert flags(tmp_path, version, RUSTFLAGS="-C target-cpu=native") == "-C target-cpu=native"
