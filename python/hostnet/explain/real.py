"""An explanation from recorded hardware counters, which uses only what was recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Any

from ..errors import HostnetError
from ..model import core_class, core_unloaded_ns
from .counters import Recording
from .events import BY_NAME, PLATFORMS, PROCESSORS
from .explanation import BACKGROUND_GBS, Domain, Estimate, Explanation, estimate
from .machine import clocks, formula_part, of_socket

LINE = 64e-9  # one line per second in GB/s

#: Events and constants of the machine that the formula of core reads needs.
_READ = ("rpq_occupancy", "wmm_to_rmm", "cas_read", "cas_write", "act_read", "act_write", "pre_conflict")
_READ_CONSTANTS = ("channels", "dclk_ghz", "c2m_read_ns", "c2m_write_ns", "p2m_write_ns", "iio_to_cha_ns")
#: Events by whose counts others are divided.
_DIVISORS = ("cas_read", "drd_inserts")


#: Regimes, the one that says least of a machine's limits first.
_RANK = ("idle", "not judged", "cores busy", "devices alone", "cores alone", "calm", "blue", "red")

#: Ratio of what counters say to be in use to what the machine has, above which the two do not belong together.
BEYOND = 1.1


def on_platform(r: Recording, platform: Mapping[str, Any] | None, changes: Sequence[str]) -> tuple[Recording, int]:
    """The recording ``r`` as one of ``platform``, where one is given, and its number of sockets. No more cores are busy than
    the platform has; notes say what the file leaves open."""
    given, notes = _cores_given(changes), []
    if r.later and platform is None and not r.machine:
        notes.append(_another_machine(r.later))
    told = (platform or {}).get("nodes") or {}
    sockets = min(r.sockets, told["count"]) if r.nodes and "count" in told else r.sockets
    if sockets < r.sockets:
        notes.append(f"counts of {r.sockets} nodes of {sockets} sockets are added")
    elif r.nodes:
        notes.append("each node counts as a socket; where a socket has several (SNC, NPS), record with --per-socket")
    if r.sockets == 1 and told.get("count", 1) > 1:
        notes.append(
            f"the counts are taken to be of one of the platform's {told['count']} sockets; where they are of several, record with "
            "--per-socket"
        )
    most = None if platform is None else int(clocks(platform)["cores"])
    if r.busy_cores is not None and r.busy_cores > 1 and r.threads and not given:
        if most is not None and r.busy_cores > most * sockets:
            notes.append(
                f"{r.busy_cores} CPUs were busy, and the platform has {most * sockets} cores, whose line fill buffers hardware "
                "threads share; where fewer cores were busy, give --set cores=N"
            )
        else:
            notes.append(
                f"each of the {r.busy_cores} busy CPUs counts as a core; where two are threads of one core, give --set cores=N"
            )
    parts = {name: _limited(part, notes, most) for name, part in r.parts.items()}
    return replace(_limited(r, notes, most and most * sockets), parts=parts), sockets


def _another_machine(processors: Sequence[str]) -> str:
    """A note on events that only ``processors`` have, of which the constants without a platform are not."""
    names = " or ".join(PROCESSORS[key][0].removesuffix(" servers") for key in processors)
    platforms = " or ".join(f"--platform {name}" for name in dict.fromkeys(PLATFORMS[key] for key in processors))
    return (
        f"the events are those of a server with {names}; clocks, channels, cores and credits are those of the paper's Cascade Lake, "
        f"unless --set gives them, and times without contention are not known: give {platforms}, or a platform of the machine"
    )


def _limited(r: Recording, notes: list[str], cores: int | None) -> Recording:
    """The recording with more notes, and with no more busy cores than ``cores``."""
    busy = r.busy_cores if cores is None or r.busy_cores is None else min(r.busy_cores, cores)
    return replace(r, notes=(*notes, *r.notes), busy_cores=busy)


def _cores_given(changes: Sequence[str]) -> bool:
    return any(text.startswith("cores=") for text in changes)


def explain(r: Recording, m: dict[str, float], changes: Sequence[str] = ()) -> Explanation:
    """Explain the recording ``r`` of the machine ``m``, which has ``changes`` such as "cores=6". Raises HostnetError when
    the recording allows no conclusion.

    Of sockets in different regimes, or with different domains exhausted, the explanation is that of the socket which is
    worst off, and notes name the other ones.
    """
    whole = _explain(r, m)
    given = _cores_given(changes)
    held = {name: part.rates.get("lfb_occupancy", 0.0) for name, part in r.parts.items()}
    of = {}
    for name, part in r.parts.items():
        share = held[name] / (sum(held.values()) or 1.0)
        try:
            of[name] = _explain(part, of_socket(m, r.sockets, part.busy_cores, share, given))
        except HostnetError:  # nothing of this socket was recorded
            continue
    if len({_state(ex) for ex in of.values()}) < 2:
        return whole
    worst = max(of, key=lambda name: _badness(of[name]))
    ex = of[worst]
    others = "; ".join(f"{name} is {_told(other)}" for name, other in of.items() if name != worst)
    ex.notes.insert(0, f"the sockets differ, and this is {worst}, which is {_told(ex)}; {others}")
    return ex


def _state(ex: Explanation) -> tuple[str, frozenset[str]]:
    """The regime and the exhausted domains."""
    return ex.regime, frozenset(d.name for d in ex.domains if d.exhausted)


def _badness(ex: Explanation) -> tuple[bool, int, int, float]:
    regime, exhausted = _state(ex)
    return regime == "red", len(exhausted), _RANK.index(regime), sum(d.rate_gbs for d in ex.domains)


def _told(ex: Explanation) -> str:
    """The regime, with the rates of cores and devices, in words."""
    rates = {t: sum(d.rate_gbs for d in ex.of(t)) for t in ("c2m", "p2m") if t not in ex.unmeasured}
    names = {"c2m": "cores", "p2m": "devices"}
    said = " and ".join(f"{gbs:.1f} GB/s of {names[t]}" for t, gbs in rates.items())
    return f"{ex.regime} ({said})" if said else ex.regime


def _explain(r: Recording, m: dict[str, float]) -> Explanation:
    counters = _read_formula(r, m)
    ex = Explanation(r.file, [], [], _facts(r, m), notes=list(r.notes))
    if r.sockets > 1 and not r.nodes:
        ex.notes.append(
            f"counts of {r.sockets} sockets are added, and so are their channels, cores and credits of the IIO"
        )
    if counters is None:
        ex.missing.append(f"the formula of reads ({_lacking(r, m, _READ, _READ_CONSTANTS)})")
    _cores(ex, r, m, counters)
    written = _writes(ex, r, m, counters)
    read = _reads(ex, r, m)
    if not any(d.traffic == "p2m" for d in ex.domains) and not (written and read):
        ex.unmeasured.add("p2m")
    ex.notes[:0] = _impossible(ex)
    if not ex.domains and not ex.facts:
        known = next((n for n in r.rates if n in BY_NAME), "")
        raise HostnetError(
            f"{r.file}: nothing can be judged from {f'`{known}`' if known else 'it'} alone; left out: {'; '.join(ex.missing)}."
        )
    return ex


def _impossible(ex: Explanation) -> list[str]:
    """Sentences about what the counters say to be in use and the machine does not have, beyond what counters that took turns
    are wrong by."""
    beyond = [
        (
            f"{d.held:.0f} of {d.credits:.0f} credits of the {d.name}",
            {"c2m": "cores, core_ghz", "p2m": "irp_ghz, cha_ghz"}[d.traffic],
        )
        for d in ex.domains
        if d.credits is not None and d.held > BEYOND * d.credits
    ]
    if (used := ex.facts.get("mem_utilisation", 0.0)) > BEYOND:
        beyond.append((f"{100 * used:.0f} % of the memory channels' rate", "channels, t_trans_ns"))
    return [
        f"the counters say that {what} are in use, more than the machine has; check --platform, {keys} and the time recorded"
        for what, keys in beyond
    ]


def _lacking(r: Recording, m: dict[str, float], events: Sequence[str], constants: Sequence[str] = ()) -> str:
    """Events and constants that are missing, in words; an event that divides is missing where it was recorded as 0."""
    told = [r.why(e) for e in events if e not in r]
    told += [f"`{e}` was recorded as 0" for e in events if e in _DIVISORS and e in r and not r.rate(e)]
    unknown = [k for k in constants if k not in m]
    if unknown:
        told.append(f"{', '.join(unknown)} of the machine: give --set {unknown[0]}=VALUE")
    return "; ".join(told)


def _read_formula(r: Recording, m: dict[str, float]) -> dict[str, float] | None:
    """Counters of the memory controller that the formulae take; None where an event or a constant is missing."""
    if _lacking(r, m, _READ, _READ_CONSTANTS):
        return None
    channels, dclk = m["channels"], m["dclk_ghz"] * 1e9
    counters = {
        "rpq_occupancy": r.rate("rpq_occupancy") / dclk / channels,
        "switches": r.rate("wmm_to_rmm"),
        "lines_read": r.rate("cas_read"),
        "lines_written": r.rate("cas_write"),
        "act_read": r.rate("act_read", *(n for n in ("act_bypass",) if n in r)),
        "act_write": r.rate("act_write"),
        "pre_conflict": r.rate("pre_conflict"),
    }
    if "wpq_ge34" in r:
        counters["wpq_full"] = min(r.rate("wpq_ge34") / dclk / channels, 1.0)
    return counters


def _facts(r: Recording, m: dict[str, float]) -> dict[str, float]:
    facts: dict[str, float] = {}
    for event, name in (("cas_read", "mem_read_gbs"), ("cas_write", "mem_write_gbs")):
        if event in r:
            facts[name] = r.rate(event) * LINE
    if "cas_read" in r and "cas_write" in r and "channels" in m and "t_trans_ns" in m:
        facts["mem_utilisation"] = r.rate("cas_read", "cas_write") * m["t_trans_ns"] * 1e-9 / m["channels"]
    if "channels" in m and "dclk_ghz" in m:
        per_channel = m["dclk_ghz"] * 1e9 * m["channels"]
        if "rpq_occupancy" in r:
            facts["rpq_occupancy"] = r.rate("rpq_occupancy") / per_channel
        if "wpq_ge34" in r:
            facts["wpq_full"] = min(r.rate("wpq_ge34") / per_channel, 1.0)
    if "act_read" in r and "cas_read" in r and r.rate("cas_read"):
        acts = r.rate("act_read", *(n for n in ("act_bypass",) if n in r))
        facts["row_miss_ratio"] = acts / r.rate("cas_read")
    return facts


def _traffic(
    ex: Explanation, r: Recording, m: dict[str, float], occupancy: str, inserts: str, clock: str, what: str
) -> tuple[float, float] | None:
    """Entries in use and GB/s of a traffic class; None when the class cannot be judged, which is noted, or when its
    traffic is background."""
    lacking = _lacking(r, m, (occupancy, inserts), (clock,))
    if lacking:
        ex.missing.append(f"{what} ({lacking})")
        return None
    gbs = r.rate(inserts) * LINE
    return (r.rate(occupancy) / (m[clock] * 1e9), gbs) if gbs >= BACKGROUND_GBS else None


def _latency_ns(r: Recording, what: str, ghz: float | None) -> float | None:
    """Mean time in a unit by Little's law, from the unit's occupancy and inserts."""
    names = (f"{what}_occupancy", f"{what}_inserts")
    if ghz is None or not all(n in r for n in names) or not r.rate(names[1]):
        return None
    return r.rate(names[0]) / r.rate(names[1]) / ghz


def _cores(ex: Explanation, r: Recording, m: dict[str, float], counters: dict[str, float] | None) -> None:
    before = len(ex.missing)
    found = _traffic(ex, r, m, "lfb_occupancy", "l1_miss", "core_ghz", "core traffic")
    if found is None:
        if len(ex.missing) > before:
            ex.unmeasured.add("c2m")
        return
    held, gbs = found
    traffic = core_class(gbs, r.rate("wbmtoi_inserts") * LINE if "wbmtoi_inserts" in r else 0.0)
    unloaded = core_unloaded_ns(traffic, m)
    each = m.get("lfb_credits")
    cores = m.get("cores")
    least = max(ceil(held / each), 1) if each else None
    if cores is not None:
        note = f"of {cores:.0f} core{'' if cores == 1 else 's'}"
    elif least is not None:
        note = f"of {least} core{'' if least == 1 else 's'} or more"
        ex.missing.append(
            "whether the line fill buffers are exhausted (the number of busy cores is not known: give --set cores=N)"
        )
    else:
        note = ""
    lfb = Domain(
        "line fill buffers",
        "c2m",
        cores * each if cores is not None and each else None,
        held,
        gbs,
        unloaded_ns=unloaded,
        note=note,
    )
    ex.domains.append(lfb)
    # Section 6.2: the part of the LFB latency that belongs neither to the CHA nor to memory is admission.
    cha = _latency_ns(r, "drd", m.get("cha_ghz"))
    if cha is not None:
        ex.facts["cha_dram_read_ns"] = cha
    if counters is None or unloaded is None:
        return
    hw = formula_part(m)
    ex.estimates.append(estimate(traffic, counters, hw, held, gbs, lfb.little_ns))
    lacking = _lacking(r, m, ("drd_occupancy", "drd_inserts"), ("cha_ghz", "cha_dram_read_ns"))
    if cha is None or lacking:
        ex.missing.append(f"admission at the CHA ({lacking})")
        return
    # Without contention the same difference is the path from core to CHA, plus the part of the write.
    admission = lfb.little_ns - cha
    ex.facts["admission_c2m_ns"] = max(admission - (unloaded - m["cha_dram_read_ns"]), 0.0)
    with_admission = estimate(traffic, counters, hw, held, gbs, lfb.little_ns, admission)
    with_admission.traffic += " + CHA admission"
    ex.estimates.append(with_admission)


def _writes(ex: Explanation, r: Recording, m: dict[str, float], counters: dict[str, float] | None) -> bool:
    """Whether device writes were recorded; conclusions about device writes are added to ``ex``."""
    before = len(ex.missing)
    found = _traffic(ex, r, m, "irp_occupancy", "irp_inserts", "irp_ghz", "device writes")
    if found is None:
        return len(ex.missing) == before
    held, gbs = found
    iio = Domain("IIO write buffer", "p2m", m.get("iio_write_credits"), held, gbs, unloaded_ns=m.get("p2m_write_ns"))
    ex.domains.append(iio)
    device = [n for n in ("iowr", "itom") if f"{n}_occupancy" in r]
    needed = ("wpq_ge34", "wbmtoi_occupancy", *([] if device else ["iowr_occupancy"]))
    if lacking := _lacking(r, m, needed, ("cha_ghz",)):
        ex.missing.append(f"the write formula ({lacking})")
        return True
    waiting = r.rate("wbmtoi_occupancy", *(f"{n}_occupancy" for n in device)) / (m["cha_ghz"] * 1e9)
    ex.facts["waiting_writes"] = waiting
    if counters is None:
        ex.missing.append("the write formula (it needs what the formula of reads needs)")
    else:
        e: Estimate = estimate(
            "p2m-write", {**counters, "waiting_writes": waiting}, formula_part(m), held, gbs, iio.little_ns
        )
        ex.estimates.append(e)
    busy = [n for n in device if f"{n}_inserts" in r and r.rate(f"{n}_inserts") * LINE > BACKGROUND_GBS]
    if busy:
        cha = sum(r.rate(f"{n}_occupancy") for n in busy) / sum(r.rate(f"{n}_inserts") for n in busy) / m["cha_ghz"]
        ex.facts["cha_mc_write_p2m_ns"] = cha
        if "iio_to_cha_ns" in m:
            ex.facts["admission_p2m_ns"] = max(iio.little_ns - cha - m["iio_to_cha_ns"], 0.0)
    return True


def _reads(ex: Explanation, r: Recording, m: dict[str, float]) -> bool:
    """Whether device reads were recorded; conclusions about device reads are added to ``ex``."""
    before = len(ex.missing)
    found = _traffic(ex, r, m, "rdcur_occupancy", "rdcur_inserts", "cha_ghz", "device reads")
    if found is None:
        return len(ex.missing) == before
    held, gbs = found
    ex.domains.append(
        Domain(
            "IIO read buffer",
            "p2m",
            m.get("iio_read_credits"),
            held,
            gbs,
            unloaded_ns=m.get("p2m_read_ns"),
            note="as seen at the CHA; a lower bound",
        )
    )
    return True
