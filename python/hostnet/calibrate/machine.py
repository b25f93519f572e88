"""The platform of a measured machine: values measured, read, fitted, or those of a base."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..output import check_file, write_text
from .fitting import Fit, fit
from .hierarchy import levels, llc_share, notes, size_text
from .measured import Figure, Measured
from .transfer import MARK, platform_tables

#: Command that repeats the measurements, as provenance names it.
COMMAND = "hostnet calibrate"
#: Model numbers of Intel's family 6 by the base platform whose cores they have, or the nearest one there is.
_INTEL = {85: "cascadelake", 106: "icelake", 108: "icelake", 143: "sapphirerapids", 207: "sapphirerapids"}
#: Families of AMD by the base platform whose cores they have, or the nearest one there is.
_AMD = {23: "genoa", 25: "genoa", 26: "turin"}
#: Base whose prefetcher a base without one gets.
_PREFETCHER = "icelake"
#: Source of the next-page prefetcher of Intel's cores.
_NEXT_PAGE = "datasheet: Intel SDM volume 4, MSR 1A4H, bit 4 turns the next-page prefetcher off; that a stream keeps its distance is assumed"
#: Deviation of a latency from the measured one that the command leaves unsaid.
_NEAR = 0.1
_GENERATIONS = {2.5: "gen1", 5.0: "gen2", 8.0: "gen3", 16.0: "gen4", 32.0: "gen5", 64.0: "gen6"}
_STANDARDS = ("DDR4-2400", "DDR4-2666", "DDR4-2933", "DDR4-3200", "DDR5-4800", "DDR5-5600", "LPDDR5-6400")


@dataclass(frozen=True)
class Here:
    """A platform of the measured machine, and how it came about."""

    platform: dict[str, Any]
    measured: Measured
    base: str
    levels: Mapping[str, Figure]
    fit: Fit | None
    notes: list[str]

    def count(self, kind: str) -> int:
        """Number of values whose source is of a kind."""
        return sum(source.startswith(f"{kind}:") for source in self.platform["provenance"].values())


def choose_base(m: Measured) -> tuple[str, str]:
    """The base platform of a machine's family, and why."""
    about = m.machine
    features = set(about["features"])
    if about["architecture"] == "aarch64":
        return "altra", "the one platform with Arm cores"
    if about["vendor"] == "GenuineIntel":
        named = _INTEL.get(about["model"]) if about["family"] == 6 else None
        if named is not None:
            return named, f"the cores of model {about['model']}"
        if "amx_tile" in features:
            return "sapphirerapids", "the latest Intel server with AMX among the platforms"
        if "avx512f" not in features:
            return "skylake", "an Intel processor of no other known model"
    if about["vendor"] == "AuthenticAMD":
        named = _AMD.get(about["family"])
        if named is not None:
            return named, f"the cores of family {about['family']}"
        return "turin", "the latest of AMD's cores among the platforms"
    return "icelake", "the nearest server among the platforms"


def here(m: Measured, base: str, name: str = "here", *, generations: int | None = 18, quiet: bool = True) -> Here:
    """The platform of a measured machine, with `generations` of the fit; without a fit where they are None."""
    made = _Made(platform_tables(base), base)
    found = levels(m)
    said = notes(m)
    _cores(made, m)
    _caches(made, m, found, said)
    _devices(made, m)
    if "prefetch" not in made.tables["core"]:
        lender = platform_tables(_PREFETCHER)
        made.tables["core"]["prefetch"] = lender["core"]["prefetch"]
        for key, source in lender["provenance"].items():
            if key.startswith("core.prefetch."):
                made.sources[key] = f"base: {_PREFETCHER}, as {base} has no prefetcher: {source}"
    if m.machine["vendor"] == "GenuineIntel":
        made.tables["core"]["prefetch"].setdefault("quirks", {})
        made.put("core.prefetch.quirks.next_page", True, _NEXT_PAGE)
    done = None
    if generations is not None:
        done = fit(made.tables, m.points(), generations=generations, quiet=quiet)
        made.tables = done.platform
        for key in done.fitted:
            made.sources[key] = (
                f"fitted: {COMMAND}, CMA-ES over {done.evaluations} simulations of the measured curves, whose relative "
                f"errors have a root mean square of {done.residual:.1%}; without the fit {done.before:.1%}"
            )
        for key in done.untold:
            made.sources[key] = f"base: {base}, as the measured curves do not tell it: {made.was.get(key, 'no source')}"
    made.tables["name"] = name
    virtual = ", in a virtual machine" if m.machine["hypervisor"] else ""
    made.tables["description"] = f"{m.machine['cpu'] or m.machine['architecture']}{virtual}, measured on {base}"
    made.tables["provenance"] = dict(sorted(made.sources.items()))
    return Here(made.tables, m, base, found, done, said)


class _Made:
    """Tables of a platform while it is made; every source begins as the base's."""

    def __init__(self, base: dict[str, Any], name: str) -> None:
        self.was: dict[str, str] = dict(base.pop("provenance", {}))
        self.tables = copy.deepcopy(base)
        self.sources = {key: f"base: {name}: {source}" for key, source in self.was.items()}

    def put(self, key: str, value: Any, source: str) -> None:
        """Sets a value, where the platform has its table."""
        *path, last = key.split(".")
        at: Any = self.tables
        for part in path:
            if not isinstance(at, dict) or part not in at:
                return
            at = at[part]
        at[last] = value
        self.sources[key] = source


def _cores(made: _Made, m: Measured) -> None:
    about = m.machine
    threads = about["threads_per_core"]
    per_socket = max(1, len(about["first_threads"]) // about["sockets"])
    of_nodes = ["nodes.cores"] if (made.tables.get("nodes") or {}).get("cores") else []
    for key in ["core.count", *of_nodes]:
        made.put(key, per_socket, "read: /sys/devices/system/cpu, the cores of a socket")
    if threads in (1, 2):
        made.put("core.threads", threads, "read: /sys/devices/system/cpu, thread_siblings_list")
    clock = m.clock_ghz
    if clock is not None:
        made.put(
            "core.clock",
            f"{clock.median:.2f} GHz",
            f"measured: {COMMAND}, a chain of multiplications of three cycles each: {clock.text('GHz', 2)}",
        )


def _caches(made: _Made, m: Measured, found: Mapping[str, Figure], said: list[str]) -> None:
    caches = made.tables["caches"]
    ghz = float(made.tables["core"]["clock"].split()[0]) / (1000 if "MHz" in made.tables["core"]["clock"] else 1)
    read = "read: /sys/devices/system/cpu/cpu*/cache"
    by_level = {c["level"]: c for c in m.machine["caches"]}
    for level, table in ((1, "l1d"), (2, "l2")):
        cache = by_level.get(level)
        if cache is None:
            continue
        ways = cache["ways"] or caches[table]["ways"]
        sets = cache["bytes"] // 64 // ways
        if 1 <= ways <= 24 and sets & (sets - 1) == 0 and sets * ways * 64 == cache["bytes"]:
            made.put(f"caches.{table}.size", f"{cache['bytes'] // 1024} KiB", read)
            made.put(f"caches.{table}.ways", ways, read)
        else:
            said.append(f"L{level}: {ways} ways of {sets:,} sets cannot be simulated; the base's shape is kept.")
    below = 0.0
    for name, table in (("L1", "l1d"), ("L2", "l2")):
        if name not in found:
            continue
        ns = found[name].median
        cycles = max(1, round((ns - below) * ghz))
        less = f", less the {below:.2f} ns of L1" if below else ""
        source = f"measured: {COMMAND}, loads that hit {name} take {found[name].text('ns', 2)}{less}, at {ghz:g} GHz"
        made.put(f"caches.{table}.latency_cycles", cycles, source)
        below = ns
    if 3 in by_level:
        _llc_shape(made, by_level[3], read, said)
        _llc_share(made, m, by_level[3])
    if "L3" in found and "L2" in found:
        _llc_latency(made, m, found, said)


def _llc_shape(made: _Made, cache: Mapping[str, Any], read: str, said: list[str]) -> None:
    """Size and ways as read; as many slices as make the sets of a slice a power of two, and near the base's number."""
    llc = made.tables["caches"]["llc"]
    ways = cache["ways"] if 1 <= cache["ways"] <= 24 else llc["ways"]
    sets = cache["bytes"] // 64 // ways
    odd = sets // (sets & -sets) if sets else 0
    if not odd or sets * ways * 64 != cache["bytes"] or odd > 512:
        said.append(f"L3: {ways} ways of {sets:,} sets cannot be simulated; the base's shape is kept.")
        return
    options = [odd << i for i in range(10) if odd << i <= max(sets // 64, 1)] or [odd]
    slices = min(options, key=lambda n: abs(n - llc["slices"]))
    made.put("caches.llc.size", f"{cache['bytes'] // 1024} KiB", read)
    made.put("caches.llc.ways", ways, read)
    made.put("caches.llc.slices", slices, f"assumed: the number nearest to the base's {llc['slices']} for these sets")
    if llc.get("indexing") == "even_slices":
        made.put("caches.llc.indexing", "interleaved_slices", "assumed: slices need not be even here")


def _llc_share(made: _Made, m: Measured, cache: Mapping[str, Any]) -> None:
    """Fewer ways, where the latencies show that this machine gets only a part of the LLC."""
    share = llc_share(m)
    llc = made.tables["caches"]["llc"]
    if share is None or made.sources.get("caches.llc.ways", "").startswith("base:"):
        return
    way = cache["bytes"] // llc["ways"]
    ways = max(1, round(share / way))
    source = (
        f"measured: {COMMAND}, loads are as slow as memory beyond {size_text(share)}; the machine says "
        f"{size_text(cache['bytes'])} of {llc['ways']} ways"
    )
    made.put("caches.llc.size", f"{ways * way // 1024} KiB", source)
    made.put("caches.llc.ways", ways, source)


def _llc_latency(made: _Made, m: Measured, found: Mapping[str, Figure], said: list[str]) -> None:
    """Look-up and crossings of the LLC from two measured times.

    A load that hits the LLC takes L1 + L2 + look-up + two crossings; one of a line modified in another core's L2 takes that,
    another look-up of an L2 and two more crossings. A crossing takes a cycle at least.
    """
    caches = made.tables["caches"]
    clock = caches["uncore_clock"]
    ghz = float(clock.split()[0]) / (1000 if "MHz" in clock else 1)
    l1, l2 = (found[k].median for k in ("L1", "L2"))
    inside = (found["L3"].median - l2) * ghz
    taken = m.transfer("modified")
    crossing = None if taken is None else (taken.median - found["L3"].median - (l2 - l1)) * ghz / 2
    hit = f"loads that hit the LLC take {found['L3'].text('ns')}"
    cycles = None if crossing is None else max(1, round(crossing))
    if cycles is not None and taken is not None and inside - 2 * cycles >= 1:
        between = f"measured: {COMMAND}, {hit}; of lines modified in another L2 {taken.text('ns')}"
        made.put("caches.noc_cycles", cycles, between)
        made.put("caches.llc.latency_cycles", round(inside - 2 * cycles), between)
        modelled = found["L3"].median + l2 - l1 + 2 * cycles / ghz
        if abs(modelled / taken.median - 1) > _NEAR:
            said.append(
                f"A line modified in another core takes {taken.median:.1f} ns, and at least {modelled:.1f} ns in the model, whose "
                f"LLC takes {found['L3'].median:.1f} ns and whose crossings take a cycle."
            )
        return
    look_up = min(caches["llc"]["latency_cycles"], max(1, int(inside) - 2))
    made.put("caches.noc_cycles", max(1, round((inside - look_up) / 2)), f"measured: {COMMAND}, {hit}")
    if look_up != caches["llc"]["latency_cycles"]:
        made.put("caches.llc.latency_cycles", look_up, f"measured: {COMMAND}, {hit}, less two crossings of a cycle")
    if taken is not None:
        said.append(
            f"A line modified in another core takes {taken.median:.0f} ns, which does not fit an LLC of "
            f"{found['L3'].median:.0f} ns in the model; the crossbar follows from the LLC alone."
        )


def _devices(made: _Made, m: Measured) -> None:
    about = m.machine
    kinds = {(d["kind"], d["mts"]) for d in about["dimms"]}
    if len(kinds) == 1:
        kind, mts = next(iter(kinds))
        if f"{kind}-{mts}" in _STANDARDS:
            made.put("memory.standard", f"{kind}-{mts}", "read: SMBIOS, structures of type 17")
        ranks = {d["ranks"] for d in about["dimms"]}
        if len(ranks) == 1 and ranks <= {1, 2, 4}:
            made.put("memory.ranks", ranks.pop(), "read: SMBIOS, structures of type 17, one module a channel assumed")
    nic = next((n for n in about["nics"] if n["gts"] is not None), None)
    if nic is None:
        return
    where = f"read: /sys/bus/pci/devices/{nic['address']}"
    if nic["gts"] in _GENERATIONS:
        made.put("pcie.generation", _GENERATIONS[nic["gts"]], where)
    for key in ("max_payload", "max_read_request"):
        if nic[key] is not None:
            made.put(f"pcie.{key}", f"{nic[key]} B", where)
    if nic["lanes"]:
        made.put("ethernet.lanes", nic["lanes"], where)
    if (nic["mbps"] or 0) >= 1000:
        made.put("ethernet.link", f"{nic['mbps'] // 1000} Gbps", where)


def write_here(made: Here, out: Path) -> None:
    """Writes the platform. Raises HostnetError where the file is somebody else's or cannot be written."""
    import tomli_w

    check_file(out, MARK)
    lines = [f"{MARK} of the machine it ran on, with {made.base} for what can neither be measured nor read."]
    lines += [f"# {note}" for note in made.notes]
    write_text(out, "\n".join(lines) + "\n\n" + tomli_w.dumps(made.platform))
