"""Levels of the memory hierarchy in measured latencies: capacities where the latency begins to rise, and latencies between."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from .measured import Figure, Measured

#: Factor by which added bytes are slower behind a capacity than before it, at least.
_SLOWER = 1.5
#: Factor by which a capacity is smaller than what the machine says, at least, to count as another one.
_HALF = 2.1
#: Share of the latency of memory from which on added bytes count as in memory. Assumed: the rest of a noisy round.
_AS_MEMORY = 0.75
#: Ratio of two times of a load of a line of another core from which on the cores have moved. Times in one place differ by a tenth.
_MOVED = 2.0
#: Pages that a large second-level TLB holds.
_STLB_BYTES = 2048 * 4096


def knees(points: Sequence[tuple[int, float]]) -> list[int]:
    """Capacities in the latency of a chase by size: the last size before each level that is slower by half or more.

    A chase over `s` bytes hits a cache of `c` bytes with the share `c / s`. The time of a whole round, size times latency,
    then grows by the latency of the level in which the added bytes lie, which is a step at each capacity. A step in the last
    interval alone does not count, because noise makes one, too.
    """
    added = [(s1, (s2 * ns2 - s1 * ns1) / (s2 - s1)) for (s1, ns1), (s2, ns2) in zip(points, points[1:], strict=False)]
    found: list[int] = []
    level: list[float] = []
    for i, (size, ns) in enumerate(added):
        if not level:
            level = [ns]
            continue
        limit = statistics.median(level) * _SLOWER
        if ns > limit and i + 1 < len(added) and added[i + 1][1] > limit:
            found.append(size)
            level = []  # the step may lie within this interval, so that the level begins with the next one
        else:
            level.append(ns)
    return found


def levels(m: Measured) -> dict[str, Figure]:
    """Latency of each level in ns: `L1`, `L2`, `L3` where the machine says that it has them, and `memory`.

    A level's latency is the median over sizes that lie well between its own capacity and that of the level before; the
    share of loads that the level before still serves is taken out.
    """
    sizes = capacities(m)
    points = m.latency()
    found: dict[str, Figure] = {}
    below, served = 0, 0.0
    for level, capacity in sizes.items():
        reach = _reach(points, below) if level == "L3" else capacity
        near = [p for p in points if max(2 * below, 1) <= p[0] <= min(capacity / 2, reach)]
        if near:
            found[level] = _middle([_without(f, below / size if level == "L3" else 0.0, served) for size, f in near])
            served = found[level].median
        below = capacity
    beyond = [p for p in points if p[0] >= 2 * below] or points[-1:]
    found["memory"] = _middle([f for _, f in beyond[-1:]])
    return found


def _reach(points: Sequence[tuple[int, Figure]], below: int) -> int:
    """Largest size from which the latency of the LLC is taken: 16 times the L2, but no more than a TLB reaches where its
    reach shows."""
    reach = [k for k in knees([(size, f.median) for size, f in points]) if 2 * below <= k < 16 * below]
    return min([*reach, 16 * below])


def _without(figure: Figure, share: float, ns: float) -> Figure:
    """A latency without the share of loads that took `ns`."""
    a, b, c = ((v - share * ns) / (1 - share) for v in (figure.median, figure.low, figure.high))
    return Figure(a, b, c, figure.repetitions)


def _middle(figures: Sequence[Figure]) -> Figure:
    """One figure of those of several sizes, with the spread of sizes and repetitions."""
    return Figure(
        statistics.median(f.median for f in figures),
        min(f.low for f in figures),
        max(f.high for f in figures),
        sum(f.repetitions for f in figures),
    )


def llc_share(m: Measured) -> int | None:
    """Bytes of the LLC that this machine gets, where it gets less than half of what it says; None otherwise.

    A hypervisor, or resctrl, may leave a machine only some ways of the LLC. Loads beyond these are as slow as memory, while
    those beyond the reach of a TLB take a page walk more.
    """
    sizes = capacities(m)
    if "L3" not in sizes:
        return None
    points = [(size, f.median) for size, f in m.latency()]
    memory = levels(m)["memory"].median
    for knee in knees(points):
        if 2 * sizes.get("L2", 0) <= knee < sizes["L3"] / _HALF:
            (s1, ns1), (s2, ns2) = (next((p for p in points if p[0] >= n * knee), points[-1]) for n in (2, 4))
            if s2 > s1 and (s2 * ns2 - s1 * ns1) / (s2 - s1) > _AS_MEMORY * memory:
                return knee
    return None


def capacities(m: Measured) -> dict[str, int]:
    """Sizes of the data caches that the machine says it has, by level."""
    return {f"L{c['level']}": c["bytes"] for c in m.machine["caches"]}


def notes(m: Measured) -> list[str]:
    """Doubts about the measurements, a sentence each."""
    return [*_disagreements(m), *_pages(m), *_noise(m)]


def _disagreements(m: Measured) -> list[str]:
    """Capacities that the machine says and the latencies do not show."""
    found = []
    points = [(size, f.median) for size, f in m.latency()]
    seen = knees(points)
    largest = points[-1][0]
    for level, said in capacities(m).items():
        if said > largest / 2:
            found.append(f"{level}: the machine says {size_text(said)}, more than half of the largest buffer measured.")
        elif not any(said / _HALF <= k <= said * 1.6 for k in seen):
            share = llc_share(m) if level == "L3" else None
            near = share or min(seen, key=lambda k: max(k / said, said / k), default=None)
            shown = (
                f"the nearest rise of the latency begins at {size_text(near)}" if near else "the latency never rises"
            )
            why = "; a guest of a hypervisor may be told another cache than it has" if m.machine["hypervisor"] else ""
            kept = "" if share is None else ", which the platform has for its size"
            found.append(f"{level}: the machine says {size_text(said)}, but {shown}{kept}{why}.")
    return found


def _pages(m: Measured) -> list[str]:
    points = m.latency()
    if not any(p["pages"] != "small" for p in m.data["latency"]):
        return ["No huge pages could be had: latencies beyond the TLB's reach contain page walks."]
    caches = [*capacities(m).values(), llc_share(m) or 0]
    for size in knees([(size, f.median) for size, f in points]):
        of_tlb = _STLB_BYTES / _HALF <= size <= _STLB_BYTES * 1.6
        if of_tlb and not any(c / _HALF <= size <= c * 1.6 for c in caches):
            return [
                f"Loads become slower at {size_text(size)}, where no cache ends: as many pages of 4 KiB as a TLB holds. The "
                "hypervisor backs huge pages with small ones, so that latencies of larger buffers contain page walks."
            ]
    return []


def _noise(m: Measured) -> list[str]:
    noise, found = m.data["noise"], []
    if noise["steal"] > 0.01:
        found.append(f"The hypervisor gave {noise['steal']:.0%} of the CPU time to others while this was measured.")
    if noise["disturbed"] > 0.1:
        found.append(
            f"Other work took a CPU in {noise['disturbed']:.0%} of the repetitions, which do not count; "
            f"load average {noise['load']:.1f} on {m.machine['cpus']} CPUs."
        )
    found += moved(m.data)
    if m.cores < 4:
        found.append(
            f"{m.cores} core{'s' * (m.cores > 1)} cannot fill the queues of a memory controller: the curves say little about "
            "loads that more cores would make."
        )
    return found


def moved(data: Mapping[str, Any]) -> list[str]:
    """A sentence where the cores came nearer to each other, or farther apart, while they were measured."""
    seen = data["noise"].get("transfer_ns")
    if not seen or seen[1] < _MOVED * seen[0]:
        return []
    return [
        f"A line of the other core took {seen[0]:.0f} to {seen[1]:.0f} ns while this was measured: the hypervisor moves the cores, and "
        "figures of several cores belong to more than one place."
    ]


def size_text(n: int) -> str:
    """A number of bytes in the largest unit that it reaches."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if n >= unit:
            return f"{n / unit:g} {name}"
    return f"{n} B"
