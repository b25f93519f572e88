"""An explanation from recorded hardware counters."""

from __future__ import annotations

from math import ceil

from .counters import Recording
from .explanation import BACKGROUND_GBS, Domain, Estimate, Explanation, estimate
from .machine import formula_part

LINE = 64e-9  # one line per second in GB/s


def explain(r: Recording, m: dict[str, float]) -> Explanation:
    """Explain the recording ``r`` of the machine ``m``. Raises HostnetError for an event that the formulae need."""
    channels, dclk = m["channels"], m["dclk_ghz"] * 1e9
    acts = [n for n in ("act_read", "act_bypass") if n in r or n == "act_read"]
    counters = {
        "rpq_occupancy": r.rate("rpq_occupancy") / dclk / channels,
        "switches": r.rate("wmm_to_rmm"),
        "lines_read": r.rate("cas_read"),
        "lines_written": r.rate("cas_write"),
        "act_read": r.rate(*acts),
        "act_write": r.rate("act_write"),
        "pre_conflict": r.rate("pre_conflict"),
    }
    if "wpq_ge34" in r:
        counters["wpq_full"] = min(r.rate("wpq_ge34") / dclk / channels, 1.0)
    ex = Explanation(r.file, [], [], _facts(counters, m))
    _cores(ex, r, m, counters)
    _writes(ex, r, m, counters)
    _reads(ex, r, m)
    return ex


def _facts(c: dict[str, float], m: dict[str, float]) -> dict[str, float]:
    lines = c["lines_read"] + c["lines_written"]
    facts = {
        "mem_read_gbs": c["lines_read"] * LINE,
        "mem_write_gbs": c["lines_written"] * LINE,
        "mem_utilisation": lines * m["t_trans_ns"] * 1e-9 / m["channels"],
        "rpq_occupancy": c["rpq_occupancy"],
    }
    if c["lines_read"]:
        facts["row_miss_ratio"] = c["act_read"] / c["lines_read"]
    if "wpq_full" in c:
        facts["wpq_full"] = c["wpq_full"]
    return facts


def _traffic(
    ex: Explanation, r: Recording, occupancy: str, inserts: str, ghz: float, what: str
) -> tuple[float, float] | None:
    """Entries in use and GB/s of a class of traffic; None when it was not recorded, which is noted, or is background."""
    if not (occupancy in r and inserts in r):
        ex.missing.append(f"{what} (events {occupancy} and {inserts})")
        return None
    gbs = r.rate(inserts) * LINE
    return (r.rate(occupancy) / (ghz * 1e9), gbs) if gbs >= BACKGROUND_GBS else None


def _latency_ns(r: Recording, what: str, ghz: float) -> float | None:
    """Mean time in a unit by Little's law, from its occupancy and its inserts."""
    names = (f"{what}_occupancy", f"{what}_inserts")
    if not all(n in r for n in names) or not r.rate(names[1]):
        return None
    return r.rate(names[0]) / r.rate(names[1]) / ghz


def _cores(ex: Explanation, r: Recording, m: dict[str, float], counters: dict[str, float]) -> None:
    if (found := _traffic(ex, r, "lfb_occupancy", "l1_miss", m["core_ghz"], "core traffic")) is None:
        return
    held, gbs = found
    writes = "wbmtoi_inserts" in r and r.rate("wbmtoi_inserts") * LINE > 0.25 * gbs
    traffic = "c2m-readwrite" if writes else "c2m-read"
    unloaded = m["c2m_read_ns"] + (m["c2m_write_ns"] if writes else 0.0)
    cores = max(ceil(held / m["lfb_credits"]), 1)
    lfb = Domain(
        "line fill buffers",
        "c2m",
        cores * m["lfb_credits"],
        held,
        gbs,
        unloaded_ns=unloaded,
        note=f"of {cores} busy core{'s' if cores > 1 else ''}",
    )
    ex.domains.append(lfb)
    # Section 6.2: what of the LFB latency is neither the CHA's nor the memory's is admission.
    cha = _latency_ns(r, "drd", m["cha_ghz"])
    admission = lfb.little_ns - cha if cha is not None else 0.0
    hw = formula_part(m)
    ex.estimates.append(estimate(traffic, counters, hw, held, gbs, lfb.little_ns))
    if cha is not None:
        ex.facts["cha_dram_read_ns"] = cha
        # Without contention the same difference is the way from core to CHA, and the write's part.
        ex.facts["admission_c2m_ns"] = max(admission - (unloaded - m["cha_dram_read_ns"]), 0.0)
        with_admission = estimate(traffic, counters, hw, held, gbs, lfb.little_ns, admission)
        with_admission.traffic += " + CHA admission"
        ex.estimates.append(with_admission)
    else:
        ex.missing.append("admission at the CHA (events drd_occupancy and drd_inserts)")


def _writes(ex: Explanation, r: Recording, m: dict[str, float], counters: dict[str, float]) -> None:
    if (found := _traffic(ex, r, "irp_occupancy", "irp_inserts", m["irp_ghz"], "device writes")) is None:
        return
    held, gbs = found
    iio = Domain("IIO write buffer", "p2m", m["iio_write_credits"], held, gbs, unloaded_ns=m["p2m_write_ns"])
    ex.domains.append(iio)
    device = [n for n in ("iowr", "itom") if f"{n}_occupancy" in r]
    if "wpq_ge34" not in r or "wbmtoi_occupancy" not in r or not device:
        ex.missing.append("the write formula (events wpq_ge34, wbmtoi_occupancy and iowr_occupancy or itom_occupancy)")
        return
    waiting = r.rate("wbmtoi_occupancy", *(f"{n}_occupancy" for n in device)) / (m["cha_ghz"] * 1e9)
    ex.facts["waiting_writes"] = waiting
    counters = {**counters, "waiting_writes": waiting}
    e: Estimate = estimate("p2m-write", counters, formula_part(m), held, gbs, iio.little_ns)
    ex.estimates.append(e)
    busy = [n for n in device if f"{n}_inserts" in r and r.rate(f"{n}_inserts") * LINE > BACKGROUND_GBS]
    if busy:
        cha = sum(r.rate(f"{n}_occupancy") for n in busy) / sum(r.rate(f"{n}_inserts") for n in busy) / m["cha_ghz"]
        ex.facts["cha_mc_write_p2m_ns"] = cha
        ex.facts["admission_p2m_ns"] = max(iio.little_ns - cha - m["iio_to_cha_ns"], 0.0)


def _reads(ex: Explanation, r: Recording, m: dict[str, float]) -> None:
    if (found := _traffic(ex, r, "rdcur_occupancy", "rdcur_inserts", m["cha_ghz"], "device reads")) is None:
        return
    held, gbs = found
    ex.domains.append(
        Domain(
            "IIO read buffer",
            "p2m",
            m["iio_read_credits"],
            held,
            gbs,
            unloaded_ns=m.get("p2m_read_ns"),
            note="as seen at the CHA; a lower bound",
        )
    )
