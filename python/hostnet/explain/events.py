"""The hardware events that an explanation of a real machine needs, and commands that record them.

Encodings are those of Skylake and Cascade Lake servers, as "Understanding the Host Network" (SIGCOMM'24) and its
published scripts use them; other generations need other encodings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .._toml import tomllib
from ..errors import HostnetError
from ..paths import nearest


@dataclass(frozen=True)
class Event:
    """One hardware event; the recorded file must call it ``name``, or one of ``aliases``."""

    name: str
    pmu: str  # core, imc, cha or irp
    event: int
    umask: int
    meaning: str
    threshold: int = 0
    opcode: int = 0  # the CHA's second filter register
    aliases: tuple[str, ...] = ()

    @property
    def perf(self) -> str:
        """The event as an argument of ``perf stat -e``, with a name, because its encoding contains commas."""
        if self.pmu == "core":
            return f"cpu/event={self.event:#x},umask={self.umask:#x},name={self.name}/"
        extra = f",thresh={self.threshold:#x}" if self.threshold else ""
        extra += f",config1={self.opcode << 32:#x}" if self.opcode else ""
        return f"uncore_{self.pmu}/event={self.event:#x},umask={self.umask:#x}{extra},name={self.name}/"

    @property
    def pcm(self) -> str:
        """The event as an argument of ``pcm-raw -e``."""
        enable = 0x430000 if self.pmu == "core" else 0x400000
        config = self.threshold << 24 | enable | self.umask << 8 | self.event
        opcode = f",config2={self.opcode:#x}" if self.opcode else ""
        return f"{self.pmu}/config={config:#x}{opcode},name={self.name}"


EVENTS = (
    Event(
        "lfb_occupancy",
        "core",
        0x48,
        0x01,
        "line fill buffer entries, summed over cycles",
        aliases=("l1d_pend_miss.pending", "lfb_occ_agg"),
    ),
    Event(
        "l1_miss",
        "core",
        0xD1,
        0x08,
        "loads that missed the L1 and took an entry",
        aliases=("mem_load_retired.l1_miss", "lfb_l1_misses", "load_l1_misses"),
    ),
    Event(
        "rpq_occupancy",
        "imc",
        0x80,
        0,
        "read pending queue entries, summed over cycles",
        aliases=("unc_m_rpq_occupancy", "rpq_occ_agg"),
    ),
    Event(
        "rpq_ge42",
        "imc",
        0x80,
        0,
        "cycles with 42 or more entries in the read pending queue",
        threshold=42,
        aliases=("rpq_occ_gte42",),
    ),
    Event(
        "wpq_ge34",
        "imc",
        0x81,
        0,
        "cycles with 34 or more entries in the write pending queue",
        threshold=34,
        aliases=("wpq_occ_gte34",),
    ),
    Event("wmm_to_rmm", "imc", 0xC0, 0x07, "changes from write to read mode", aliases=("unc_m_wmm_to_rmm",)),
    Event("act_read", "imc", 0x01, 0x01, "rows opened for reads", aliases=("unc_m_act_count.rd", "acts_read")),
    Event(
        "act_bypass",
        "imc",
        0x01,
        0x08,
        "rows opened for reads that bypassed the queue",
        aliases=("unc_m_act_count.byp", "acts_byp"),
    ),
    Event("act_write", "imc", 0x01, 0x02, "rows opened for writes", aliases=("unc_m_act_count.wr", "acts_write")),
    Event(
        "pre_conflict",
        "imc",
        0x02,
        0x01,
        "rows closed because another was wanted",
        aliases=("unc_m_pre_count.page_miss", "pre_miss"),
    ),
    Event("cas_read", "imc", 0x04, 0x03, "lines read", aliases=("unc_m_cas_count.rd",)),
    Event("cas_write", "imc", 0x04, 0x0C, "lines written", aliases=("unc_m_cas_count.wr",)),
    Event(
        "drd_occupancy",
        "cha",
        0x36,
        0x21,
        "core reads in the CHA, summed over cycles",
        opcode=0x40433,
        aliases=("drd_occ_agg",),
    ),
    Event("drd_inserts", "cha", 0x35, 0x21, "core reads that entered the CHA", opcode=0x40433),
    Event(
        "wbmtoi_occupancy",
        "cha",
        0x36,
        0x31,
        "core write-backs in the CHA, summed over cycles",
        opcode=0x48833,
        aliases=("wbmtoi_occ_agg",),
    ),
    Event("wbmtoi_inserts", "cha", 0x35, 0x31, "core write-backs that entered the CHA", opcode=0x48833),
    Event(
        "iowr_occupancy",
        "cha",
        0x36,
        0x34,
        "device writes in the CHA (DDIO off), summed over cycles",
        opcode=0x43033,
        aliases=("blemon_occ_agg",),
    ),
    Event(
        "iowr_inserts",
        "cha",
        0x35,
        0x34,
        "device writes that entered the CHA (DDIO off)",
        opcode=0x43033,
        aliases=("blemon_inserts",),
    ),
    Event(
        "itom_occupancy",
        "cha",
        0x36,
        0x34,
        "device writes in the CHA (DDIO on), summed over cycles",
        opcode=0x49033,
        aliases=("itom_occ_agg",),
    ),
    Event("itom_inserts", "cha", 0x35, 0x34, "device writes that entered the CHA (DDIO on)", opcode=0x49033),
    Event(
        "rdcur_occupancy",
        "cha",
        0x36,
        0x24,
        "device reads in the CHA, summed over cycles",
        opcode=0x43C33,
        aliases=("rdcur_occ_agg",),
    ),
    Event("rdcur_inserts", "cha", 0x35, 0x24, "device reads that entered the CHA", opcode=0x43C33),
    Event(
        "irp_occupancy",
        "irp",
        0x0F,
        0x04,
        "IIO write buffer entries, summed over cycles",
        aliases=("irp_write_occupancy", "unc_i_cache_total_occupancy.mem"),
    ),
    Event(
        "irp_inserts", "irp", 0x10, 0x18, "lines that took an entry of the IIO write buffer", aliases=("write_inserts",)
    ),
)

BY_NAME = {name: e for e in EVENTS for name in (e.name, *e.aliases)}


_TOLD = tomllib.loads(Path(__file__).with_name("processors.toml").read_text(encoding="utf-8"))


def _processors() -> dict[str, tuple[str, dict[str, list[str]]]]:
    told = {key: p for key, p in _TOLD.items() if key != "also"}
    events = {key: p.get("events", {}) for key, p in told.items()}
    return {key: (p["name"], {**events.get(p.get("as", ""), {}), **events[key]}) for key, p in told.items()}


#: Each processor's name, and the vendor's events that add up to each event of
#: ``EVENTS``; empty for the processor whose encodings ``EVENTS`` holds.
PROCESSORS = _processors()
#: The alternatives of each event, each of which is a sum of the vendors' events.
SUMS: dict[str, list[list[str]]] = {}
#: The vendors' events, each with the event of ``EVENTS`` that it is a part of.
VENDOR: dict[str, tuple[str, ...]] = {}
_ALTERNATIVES = [
    *((event, parts) for processor in PROCESSORS.values() for event, parts in processor[1].items()),
    *((event, parts) for event, alternatives in _TOLD["also"].items() for parts in alternatives),
]
for _event, _parts in _ALTERNATIVES:
    if _parts not in SUMS.setdefault(_event, []):
        SUMS[_event].append(_parts)
    for _part in _parts:
        VENDOR[_part] = tuple(dict.fromkeys((*VENDOR.get(_part, ()), _event)))


def _own() -> dict[str, set[str]]:
    shared = {*BY_NAME, *(n for alternatives in _TOLD["also"].values() for parts in alternatives for n in parts)}
    names = {key: {n for parts in named.values() for n in parts} for key, (_, named) in PROCESSORS.items()}
    others = {key: shared.union(*(found for k, found in names.items() if k != key)) for key in names}
    own = {key: found - others[key] for key, found in names.items()}
    return {n: found for found in own.values() for n in found}


#: Events that only one processor's list has, each with all such events of that processor.
OWN = _own()


def _not_of_skylake() -> dict[str, tuple[str, ...]]:
    shared = {*BY_NAME, *_TOLD["skylake"]["too"]}
    shared |= {n for alternatives in _TOLD["also"].values() for parts in alternatives for n in parts}
    found: dict[str, tuple[str, ...]] = {}
    for key, (_, named) in PROCESSORS.items():
        for n in {n for parts in named.values() for n in parts} - shared:
            found[n] = (*found.get(n, ()), key)
    return found


#: Events that the lists of Skylake and Cascade Lake servers lack, each with the processors whose lists have it.
NOT_OF_SKYLAKE = _not_of_skylake()
#: The platform nearest to each processor.
PLATFORMS = {key: str(_TOLD[key]["platform"]) for key in PROCESSORS}


def later_processors(named: Iterable[str]) -> tuple[str, ...]:
    """Keys of the processors of one of which events called ``named`` are, where the names tell that it is neither Skylake
    nor Cascade Lake; otherwise none."""
    of = Counter(key for name in named for key in NOT_OF_SKYLAKE.get(name, ()))
    return tuple(key for key, n in of.items() if n == max(of.values()))


def template(tool: str, seconds: int = 10, processor: str = "skylake") -> str:
    """A script that records every event with ``perf`` or ``pcm``, to be printed, read and run as root. Raises
    HostnetError for an unknown processor, and for one without encodings for the tool."""
    if processor not in PROCESSORS:
        raise HostnetError(f"--processor {processor}: is not known; {nearest(processor, list(PROCESSORS))}")
    name, named = PROCESSORS[processor]
    if named and tool != "perf":
        raise HostnetError(f"--processor {processor}: its events are recorded with --template perf.")
    if named:
        return "\n".join(
            [
                "#!/bin/sh",
                "# Records what `hostnet explain --counters counters.csv` needs; run as root while the workload is steady.",
                f"# {name}; perf knows the names of the vendor's events. Counters are few, so events take turns.",
                "LC_ALL=C perf stat -x, -a -o counters.csv -e duration_time \\",
                _lines("  -e ", [part for parts in named.values() for part in parts]) + " \\",
                f"  sleep {seconds}",
                "",
            ]
        )
    head = [
        "#!/bin/sh",
        "# Records what `hostnet explain --counters counters.csv` needs; run as root while the workload is steady.",
        "# Encodings: Skylake and Cascade Lake servers. Counters are few, so events take turns.",
    ]
    if tool == "perf":
        lines = [f"perf stat -x, -a -o counters.csv -e duration_time \\\n{_lines('  -e ', [e.perf for e in EVENTS])}"]
        lines[0] += f" \\\n  sleep {seconds}"
    else:
        # One run per unit and occupancy event, because pcm-raw does not multiplex and the CHA counts occupancy on one
        # counter.
        lines = ["rm -f counters.csv"]
        for group in _groups():
            events = _lines("  -e ", [e.pcm for e in group])
            lines.append(
                f"timeout {seconds} pcm-raw 1 -tr -f \\\n{events} \\\n  -csv=part.csv; cat part.csv >> counters.csv"
            )
    return "\n".join([*head, *lines]) + "\n"


def _lines(prefix: str, events: list[str]) -> str:
    return " \\\n".join(f"{prefix}'{e}'" for e in events)


def _groups() -> list[list[Event]]:
    """Groups of events that fit on the counters of their unit together: four, and in the CHA one occupancy with its
    inserts."""
    groups: list[list[Event]] = []
    for e in EVENTS:
        room = 2 if e.pmu in ("cha", "irp") else 4
        if groups and groups[-1][0].pmu == e.pmu and len(groups[-1]) < room:
            groups[-1].append(e)
        else:
            groups.append([e])
    return groups
