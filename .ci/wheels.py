"""Makes wheels for Linux on x86-64 and aarch64, and a source package, in dist/. `make wheels` runs it.

    wheels.py                        all of them
    wheels.py x86_64                 those of one architecture: x86_64, aarch64, or sdist for the source package
    wheels.py join BASE V3 --out DIR one wheel with the modules of two

zig, a package of PyPI, links against glibc 2.17, which makes wheels of manylinux2014, and for aarch64 from any machine. A
wheel for x86-64 holds the module twice: for every processor, and for those with AVX2 (python/hostnet/_processor.py).
"""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import io
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
MODULE, V3 = "hostnet/_core.abi3.so", "hostnet/x86_64_v3/_core.abi3.so"
ARCHITECTURES = ("x86_64", "aarch64")


def join(base: Path, v3: Path, out: Path) -> Path:
    """Writes the wheel `base` into the folder `out`, with the module of the wheel `v3` beside its own."""
    made = out / base.name
    lines = []
    with zipfile.ZipFile(base) as source, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        (record,) = (name for name in source.namelist() if name.endswith(".dist-info/RECORD"))
        files = {name: source.read(name) for name in source.namelist() if name != record}
        with zipfile.ZipFile(v3) as other:
            files[V3] = other.read(MODULE)
        for name, data in files.items():
            like = source.getinfo(MODULE if name == V3 else name)
            entry = zipfile.ZipInfo(name, like.date_time)
            entry.external_attr, entry.compress_type = like.external_attr, zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            lines.append([name, f"sha256={digest}", str(len(data))])
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([*lines, [record, "", ""]])
        wheel.writestr(record, text.getvalue())
    return made


def compiled(architecture: str, flags: str | None, out: Path) -> Path:
    """Builds one wheel into the folder `out`, for processors that `flags` of the compiler name."""
    target = f"{architecture}-unknown-linux-gnu"
    env = {k: v for k, v in os.environ.items() if k != "RUSTFLAGS"}
    # Where zig is looked for: `python3 -m ziglang`.
    env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env["PATH"]])
    env |= {"CARGO_TARGET_DIR": str(ROOT / "target/wheels")} | ({"RUSTFLAGS": flags} if flags else {})
    command = [
        str(Path(sys.executable).with_name("maturin")),
        "build",
        "--release",
        "--locked",
        "--zig",
        "--target",
        target,
    ]
    subprocess.run([*command, "--compatibility", "manylinux2014", "--out", str(out)], cwd=ROOT, env=env, check=True)
    (wheel,) = out.glob("*.whl")
    return wheel


def has_library(architecture: str) -> bool:
    """Whether the compiler has the standard library for an architecture, or rustup could fetch it."""
    target = f"{architecture}-unknown-linux-gnu"
    asked = ["rustc", "--print", "target-libdir", "--target", target]
    found = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True)
    if found.returncode == 0 and Path(found.stdout.strip()).is_dir():
        return True
    try:
        return subprocess.run(["rustup", "target", "add", target], cwd=ROOT).returncode == 0
    except OSError:
        return False


def make(what: str, dist: Path) -> int:
    """Makes one package in the folder `dist`; 1 where its architecture has no library."""
    if what == "sdist":
        maturin = Path(sys.executable).with_name("maturin")
        subprocess.run([maturin, "sdist", "--out", dist], cwd=ROOT, check=True)
        return 0
    if not has_library(what):
        print(
            f"wheels: there is no wheel for {what}, because Rust's library for {what}-unknown-linux-gnu is not installed "
            "and rustup does not fetch it. Where it does, `make wheels` makes that wheel, too.",
            file=sys.stderr,
        )
        return 1
    with tempfile.TemporaryDirectory() as folder:
        parts = [Path(folder, name) for name in ("base", "v3")]
        if what == "x86_64":
            base, v3 = (
                compiled(what, f"-C target-cpu={cpu}", part) for cpu, part in zip(("x86-64", "x86-64-v3"), parts)
            )
            print(join(base, v3, dist))
        else:
            wheel = compiled(what, None, parts[0])
            print(wheel.replace(dist / wheel.name))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", nargs="*", default=["sdist", *ARCHITECTURES], help="sdist, x86_64, aarch64, or join")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.what[0] == "join":
        base, v3 = map(Path, given.what[1:])
        print(join(base, v3, given.out))
        return 0
    unknown = set(given.what) - {"sdist", *ARCHITECTURES}
    if unknown:
        parser.error(f"{unknown.pop()} is neither sdist nor one of {', '.join(ARCHITECTURES)}.")
    try:
        codes = [make(what, given.out) for what in given.what]
    except subprocess.CalledProcessError as e:
        print(f"wheels: {Path(e.cmd[0]).name} ended with code {e.returncode}.", file=sys.stderr)
        return 2
    return 1 if all(codes) else 0


if __name__ == "__main__":
    sys.exit(main())
