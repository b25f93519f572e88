"""A platform with the core-to-core latency of the present machine, from measurements of `ccnic-bench probe`."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import bench
from .._toml import TEXT, tomllib
from ..errors import HostnetError
from ..output import check_file, write_text
from ..paths import PLATFORMS, nearest


@dataclass(frozen=True)
class Calibration:
    """Measurements, and the values that follow from them for the base platform."""

    base: str
    samples: int
    transfer_ns: float
    spread_ns: float
    uncore_ghz: float
    lookups_ns: float
    noc_cycles: int
    was: int

    @property
    def modelled_ns(self) -> float:
        """The transfer as the calibrated platform simulates it, in whole cycles."""
        return self.lookups_ns + 4 * self.noc_cycles / self.uncore_ghz


#: Least and most nanoseconds that a load of a modified line takes between two CPUs of a machine.
PLAUSIBLE_NS = (1.0, 10_000.0)


def platform_tables(name: str) -> dict[str, Any]:
    """Tables of a platform's file, which is a path or a platform that comes with hostnet, merged over the values of its
    `base`."""
    path = Path(name) if name.endswith(".toml") else PLATFORMS / f"{name}.toml"
    if not path.is_file():
        known = sorted(p.stem for p in PLATFORMS.glob("*.toml"))
        raise HostnetError(f"--base {name}: there is no such platform; {nearest(Path(name).stem, known)}")
    own = tomllib.loads(path.read_text(encoding=TEXT))
    return _over(platform_tables(own.pop("base")), own) if "base" in own else own


def _over(base: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Tables with the values of `own` in place of the values of `base`."""
    tables = {k: _over(base[k], v) for k, v in own.items() if isinstance(v, dict) and isinstance(base.get(k), dict)}
    return {**base, **own, **tables}


def calibrate(files: list[Path], base: str = "sim24") -> tuple[dict[str, Any], Calibration]:
    """The base platform with `caches.noc_cycles` set so that a load of a line modified in another core's L2 takes the
    measured time.

    In the model such a load looks the line up in the reader's L1 and L2, crosses to the home agent, looks up the LLC,
    crosses to the owner, reads its L2, crosses back and crosses to the reader: l1 + l2 + llc + l2 + 4 noc. LLC and
    crossbar have the uncore's clock.
    """
    samples = [
        r["value"]
        for f in files
        for r in bench.read(f).to_dicts()
        if r.get("experiment") == "transfer" and r.get("unit") == "ns"
    ]
    if not samples:
        raise HostnetError(f"{files[0]}: has no rows of experiment transfer in ns; run `ccnic-bench probe`.")
    least, most = PLAUSIBLE_NS
    bad = next((v for v in samples if not (isinstance(v, float) and least <= v <= most)), None)
    if bad is not None:
        raise HostnetError(
            f"{files[0]}: value = {bad} of experiment transfer is not the time of a load, which is {least:g} to {most:g} ns."
        )
    platform = platform_tables(base)
    caches = platform["caches"]
    ns = statistics.median(samples)
    lookups, uncore_ghz = _lookups(platform)
    noc = crossings(base, ns)
    if noc < 0:
        raise HostnetError(
            f"{files[0]}: {ns:.1f} ns are less than the {lookups:.1f} ns that the cache look-ups of {base} take alone; "
            "choose a --base whose caches are those of the machine measured."
        )
    found = Calibration(
        base, len(samples), ns, max(samples) - min(samples), uncore_ghz, lookups, noc, caches["noc_cycles"]
    )
    caches["noc_cycles"] = noc
    platform["provenance"]["caches.noc_cycles"] = (
        f"measured: ccnic-bench probe, median of {len(samples)}: {ns:.1f} ns for a load of a line modified in another "
        f"core's L2, less {lookups:.1f} ns of look-ups, over four crossings"
    )
    return platform, found


def crossings(base: str, ns: float, clock: str | None = None) -> int:
    """`caches.noc_cycles` with which a load of a line modified in another core's L2 takes `ns` on `base`, whose cores may have
    another `clock`."""
    platform = platform_tables(base)
    if clock is not None:
        platform["core"]["clock"] = clock
    lookups, uncore_ghz = _lookups(platform)
    return round((ns - lookups) * uncore_ghz / 4)


def _lookups(platform: dict[str, Any]) -> tuple[float, float]:
    """Nanoseconds that such a load spends in caches, and the uncore clock in GHz."""
    caches, core_ghz = platform["caches"], ghz(platform["core"]["clock"])
    uncore_ghz = ghz(caches.get("uncore_clock", platform["core"]["clock"]))
    private = caches["l1d"]["latency_cycles"] + 2 * caches["l2"]["latency_cycles"]
    return private / core_ghz + caches["llc"]["latency_cycles"] / uncore_ghz, uncore_ghz


#: First line of the file of a calibrated platform.
MARK = "# Made by `hostnet calibrate`"


def write_platform(files: list[Path], base: str, out: Path) -> Calibration:
    """Writes the calibrated platform to `out`; the platform's name is the name of the file."""
    import tomli_w

    if out.suffix != ".toml":
        raise HostnetError(f"--out {out}: a platform is a .toml file; name it {out.with_suffix('.toml')}.")
    check_file(out, MARK)
    platform, found = calibrate(files, base)
    platform["name"] = out.stem
    platform["description"] = f"{platform.get('description', base)}; core-to-core latency measured"
    write_text(
        out,
        f"{MARK} from {', '.join(f.name for f in files)} on {base}.\n" + tomli_w.dumps(platform),
    )
    return found


def ghz(clock: str) -> float:
    value, _, unit = clock.partition(" ")
    return float(value) * {"GHz": 1.0, "MHz": 1e-3}[unit]
