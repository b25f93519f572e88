"""Choice of the compiled module that a processor can run.

A wheel for x86-64 holds the module twice: beside this file for every processor, and in the folder ``x86_64_v3`` for
those with AVX2, BMI and FMA. Both compute the same bits, and the second is faster. A module that ``make build`` has
compiled is the only one of its tree.
"""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent
V3 = HERE / "x86_64_v3"

#: The level x86-64-v3 of the System V ABI, by the names of Linux.
NEEDED = frozenset({"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"})


def flags(cpuinfo: Path = Path("/proc/cpuinfo")) -> frozenset[str]:
    """Features of the first processor that Linux lists; none on other systems and architectures."""
    try:
        with cpuinfo.open(encoding="utf-8", errors="replace") as lines:
            found = next((line for line in lines if line.startswith("flags")), "")
    except OSError:
        return frozenset()
    return frozenset(found.partition(":")[2].split())


def first(cpuinfo: Path = Path("/proc/cpuinfo"), v3: Path = V3) -> list[str]:
    """The folder in which ``hostnet._core`` is looked for first, if there is one and this processor can run what it
    holds."""
    return [str(v3)] if v3.is_dir() and flags(cpuinfo) >= NEEDED else []
