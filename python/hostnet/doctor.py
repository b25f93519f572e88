"""Diagnosis of an installation: each part with what it is needed for and, where it is missing, how to get it."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

#: Verdicts: a part is there, the part is missing and hostnet cannot work, or what needs the part is unavailable.
THERE, MISSING, ABSENT = "ok", "missing", "no"

PTRACE_SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
MEMINFO = Path("/proc/meminfo")
TRANSPARENT = Path("/sys/kernel/mm/transparent_hugepage/enabled")

REQUIRED = {
    "typer": "command line",
    "rich": "tables and progress bars",
    "polars": "data frames",
    "duckdb": "queries of claims",
    "matplotlib": "plots",
    "tomli_w": "writing scenarios",
}
EXTRAS = {
    "distributed": ("studies and sweeps on many machines (--cluster)", 'pip install "hostnet[cluster]"'),
    "pandas": ("frame.to_pandas()", 'pip install "hostnet[notebook]"'),
    "pyarrow": ("frame.to_pandas()", 'pip install "hostnet[notebook]"'),
}


@dataclass(frozen=True)
class Finding:
    """One part: its verdict, what was found, what needs the part, and how to get a part that is missing."""

    part: str
    verdict: str
    found: str
    needed_for: str
    remedy: str = ""


def findings() -> list[Finding]:
    """All parts in the order of the table."""
    return [*_needed(), *_extras(), *_recording(), *_programs(), *_library()]


def _needed() -> Iterator[Finding]:
    from . import _core
    from ._processor import NEEDED, flags

    python = platform.python_version()
    old = sys.version_info < (3, 10)
    yield Finding(
        "Python", MISSING if old else THERE, python, "everything", "install Python 3.10 or newer" if old else ""
    )
    built = Path(_core.__file__ or "").parent.name
    kind = "x86-64-v3" if built == "x86_64_v3" else _core.build().split()[-2]
    yield Finding("engine", THERE, f"{_core.version()}, {kind}", "every run")
    for name, use in REQUIRED.items():
        yield _package(name, use, "pip install --force-reinstall hostnet", MISSING)
    if platform.machine() == "x86_64" and sys.platform == "linux" and not flags() >= NEEDED:
        yield Finding(
            "AVX2", ABSENT, "this processor lacks it", "polars as it is installed", 'pip install "polars[rtcompat]"'
        )
    yield _cache()


def _package(name: str, use: str, remedy: str, lacking: str) -> Finding:
    shown = name.replace("_", "-")
    if importlib.util.find_spec(name) is None:
        return Finding(shown, lacking, "not installed", use, remedy)
    try:
        version = metadata.version(shown)
    except metadata.PackageNotFoundError:
        version = "of unknown version"
    return Finding(shown, THERE, version, use)


def _cache() -> Finding:
    from .cache import Cache
    from .errors import HostnetError

    cache = Cache()
    use = "saved results, which a second run reads"
    try:
        cache.check()
    except HostnetError as e:
        return Finding("result cache", MISSING, str(e), use, "set HOSTNET_CACHE to a directory that you may write")
    return Finding("result cache", THERE, str(cache.root), use)


def _extras() -> Iterator[Finding]:
    for name, (use, remedy) in EXTRAS.items():
        yield _package(name, use, remedy, ABSENT)


def may_trace() -> bool:
    """Whether the kernel and the container let a child of this process be traced. A process of its own asks."""
    ask = "import ctypes, sys; sys.exit(ctypes.CDLL(None).ptrace(0, 0, 0, 0) != 0)"
    return subprocess.run([sys.executable, "-c", ask], capture_output=True).returncode == 0


def _recording(
    system: str = sys.platform,
    machine: str = platform.machine(),
    traceable: Callable[[], bool] = may_trace,
    root: bool | None = None,
) -> Iterator[Finding]:
    use = "hostnet record -- PROGRAM"
    if system != "linux" or machine != "x86_64":
        what = f"{system} on {machine}"
        yield Finding("tracing", ABSENT, what, use, "record on Linux and x86-64; recordings are replayed anywhere")
        return
    scope = PTRACE_SCOPE.read_text(encoding="utf-8").strip() if PTRACE_SCOPE.exists() else "0"
    found = f"ptrace_scope {scope}"
    if not traceable():
        remedy = "in a container: --cap-add=SYS_PTRACE; else as root: sysctl kernel.yama.ptrace_scope=1"
        yield Finding("tracing", ABSENT, f"ptrace is refused, {found}", use, remedy)
        return
    yield Finding("tracing", THERE, found, use)
    root = os.geteuid() == 0 if root is None else root
    free = scope == "0" or (root and scope in ("1", "2"))
    remedy = "" if free else "as root: sysctl kernel.yama.ptrace_scope=0"
    yield Finding("attaching", THERE if free else ABSENT, f"{found}{', root' * root}", "hostnet record --pid", remedy)


def _programs() -> Iterator[Finding]:
    wanted = (
        (("perf", "pcm"), "hostnet explain --counters, on the machine that is measured", "Linux's perf, or Intel PCM"),
        (("cargo",), "policies and stacks of your own in Rust", "rustup (https://rustup.rs)"),
        (("cc",), "tests of the recorder", "gcc or clang"),
    )
    for names, use, remedy in wanted:
        at = next(filter(None, map(shutil.which, names)), None)
        part = " or ".join(names)
        yield Finding(part, THERE, at, use) if at else Finding(part, ABSENT, "not on PATH", use, remedy)


def _library() -> Iterator[Finding]:
    """Parts that only the CC-NIC library on real memory needs."""
    use = "CC-NIC's DPDK driver (docs/ccnic); simulations of DPDK need none"
    asked = ["pkg-config", "--modversion", "libdpdk"]
    try:
        version = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
        yield Finding("DPDK", THERE, version, use)
    except (OSError, subprocess.CalledProcessError):
        yield Finding("DPDK", ABSENT, "pkg-config finds no libdpdk", use, "apt install libdpdk-dev")
    pages = _huge_pages()
    found, remedy = f"{pages} reserved", "" if pages else "as root: sysctl vm.nr_hugepages=256; or --no-huge"
    yield Finding("huge pages", THERE if pages else ABSENT, found, "DPDK itself, beside that driver", remedy)
    chosen = _chosen(TRANSPARENT)
    found, remedy = chosen or "none", f"as root: echo madvise > {TRANSPARENT}"
    use = "regions of the CC-NIC library in pages of 2 MiB"
    granted = chosen in ("always", "madvise")
    yield Finding("transparent huge pages", THERE if granted else ABSENT, found, use, "" if granted else remedy)
    yield Finding("web browser", THERE, "any", "reports; Chromium and a network are not needed")


def _chosen(setting: Path) -> str:
    """The choice that the kernel marks with brackets in a setting; empty where there is none."""
    try:
        words = setting.read_text(encoding="utf-8").split()
    except OSError:
        return ""
    return next((word.strip("[]") for word in words if word.startswith("[")), "")


def _huge_pages() -> int:
    try:
        lines = MEMINFO.read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("HugePages_Total:")), 0)


def main(as_json: bool) -> int:
    """Print the findings; the exit code is 2 when a part is missing without which hostnet cannot work."""
    found = findings()
    print(json.dumps([asdict(f) for f in found], indent=1)) if as_json else _table(found)
    return 2 if any(f.verdict == MISSING for f in found) else 0


def _table(found: Sequence[Finding]) -> None:
    from .tables import Column, console, show

    columns = [
        Column("part", key=True, text=True),
        Column("", text=True),
        Column("found", text=True),
        Column("needed for", text=True),
        Column("how to get it", text=True),
    ]
    out = console(120)
    show(columns, [[f.part, f.verdict, f.found, f.needed_for, f.remedy] for f in found], to=out)
    missing = [f.part for f in found if f.verdict == MISSING]
    out.print(
        f"hostnet cannot work without: {', '.join(missing)}." if missing else "hostnet has all that simulations need.",
        highlight=False,
        markup=False,
    )
