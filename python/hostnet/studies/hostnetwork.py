"""The experiments of "Understanding the Host Network" (SIGCOMM'24) with STREAM cores and NVMe devices.

Quadrants (section 2.2): cores that read (1, 2) or read and write (3, 4), beside a device that writes memory
(1, 3) or reads it (2, 4). Each point runs alone and together: `run` is `colo`, `iso-c2m` or `iso-p2m`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..model import classes_of, counters_of, formula, hardware_of
from . import Rows, Study, axes
from .grid import Grid, also, by_length, on, sum_of

BASE = "quadrant1"
CORES = (1, 2, 3, 4, 5, 6)
QUADRANTS = {1: ("read", "write"), 2: ("read", "read"), 3: ("readwrite", "write"), 4: ("readwrite", "read")}

# The paper attributes this part of a P2M write's latency to the way from IIO to CHA (section 6.2).
IIO_TO_CHA_NS = 205.0


# --- Axes -----------------------------------------------------------------------------------------------------------

# Cores that read, or read and write: a tenant of the host, or none.
READ_FRACTION = {"read": 1.0, "readwrite": 0.5}
C2M = axes.C2M.among(
    {None: {"tenant": None}} | {kind: {"tenant.0.app.read_fraction": part} for kind, part in READ_FRACTION.items()}
)
# The device, or none.
P2M = axes.P2M.among({None: {"peripheral": None}} | {op: {"peripheral.0.op": f"p2m_{op}"} for op in ("write", "read")})
RUN, QUADRANT, CASE = axes.RUN, axes.QUADRANT, axes.CASE
COUNT = axes.COUNT.said(unit="cores").at("tenant.0.cores", usual=0)
# Results settle within 2 % over seeds in 5 ms. A quick run measures a shorter one; its tables say so in the column `quick`.
WINDOW = also({"name": "hostnetwork", "run.time": by_length("5 ms", "500 us")})


def beside(scenario: str) -> Grid:
    """The scenario of the device; cores alone are the same simulations beside any."""
    return on(lambda row: BASE if row["p2m"] is None else scenario)


def alone(c2m: str, *cores: int) -> Grid:
    """Cores without a device."""
    return RUN("iso-c2m") * C2M(c2m) * P2M(None) * COUNT(*cores)


def colocation(quadrant: int, cores: Sequence[int] = CORES) -> Grid:
    """A quadrant's cores and device, each alone and both together."""
    c2m, p2m = QUADRANTS[quadrant]
    device = RUN("iso-p2m") * C2M(None) * P2M(p2m) * COUNT(0)
    either = RUN("iso-c2m") * P2M(None) + RUN("colo") * P2M(p2m)
    return QUADRANT(quadrant) * (device + COUNT(*cores) * C2M(c2m) * either) * WINDOW


def all_quadrants(scenario: str = BASE) -> Grid:
    return sum_of(map(colocation, QUADRANTS)) * beside(scenario)


# The core that reads alone: its latency is the read formula's constant.
LONE = alone("read", 1) * WINDOW


def quadrant(q: int, scenario: str = BASE) -> Grid:
    """A quadrant, and the lone core where the quadrant has none."""
    lone = Grid([]) if QUADRANTS[q][0] == "read" else LONE
    return colocation(q) * beside(scenario) + lone


# --- Columns that follow from a row, or from comparing rows ----------------------------------------------------------


def degradations(
    rows: Rows, cores: Sequence[str] = ("c2m", "n"), device: Sequence[str] = ("p2m",)
) -> list[dict[str, Any]]:
    """Ratio of isolated to colocated throughput of cores and device, and the regime that follows from both ratios
    (sections 2.1 and 2.2).

    A row is compared with the isolated run that equals it in the columns `cores`, and in `device`.
    """

    def key(r: Mapping[str, Any], names: Sequence[str]) -> tuple[Any, ...]:
        return tuple(r.get(name) for name in names)

    alone_c2m = {key(r, cores): r["c2m_gbs"] for r in rows if r["run"] == "iso-c2m"}
    alone_p2m = {key(r, device): r["p2m_gbs"] for r in rows if r["run"] == "iso-p2m"}
    out: list[dict[str, Any]] = []
    for r in rows:
        c2m = p2m = None
        if r["run"] == "colo":
            c2m = ratio(alone_c2m.get(key(r, cores)), r["c2m_gbs"])
            p2m = ratio(alone_p2m.get(key(r, device)), r["p2m_gbs"])
        out.append({"degr_c2m": c2m, "degr_p2m": p2m, "regime": regime(c2m, p2m)})
    return out


# Units of what `degradations` adds.
COMPARED_UNITS = {"degr_c2m": "x", "degr_p2m": "x", "regime": ""}


def ratio(a: float | None, b: float | None) -> float | None:
    return a / b if a is not None and b else None


def regime(degr_c2m: float | None, degr_p2m: float | None) -> str | None:
    """`red` when the device loses more than 3 %, otherwise `blue` when the cores do, otherwise `calm`."""
    if degr_c2m is None or degr_p2m is None:
        return None
    return "red" if degr_p2m > 1.03 else "blue" if degr_c2m > 1.03 else "calm"


# Section 6: the analytical latency of both classes, every term, and the error of the throughput that follows.
TERMS = ("switching", "write_hol", "read_hol", "top_of_queue")


def held(row: Mapping[str, Any], traffic: str) -> float | None:
    """Credits that all senders of a class have in use."""
    if traffic.startswith("c2m"):
        return row["lfb_occ"] * row["n"] if row.get("lfb_occ") is not None else None
    return row.get("iio_write_occ" if traffic == "p2m-write" else "iio_read_occ")


def admission_ns(row: Mapping[str, Any], traffic: str) -> float | None:
    """Delay outside the formula as section 6.2 measures it, from latencies of neighbouring nodes."""
    parts = (
        ("lfb_lat_ns", "cha_dram_read_c2m_ns")
        if traffic.startswith("c2m")
        else ("iio_write_lat_ns", "cha_mc_write_p2m_ns")
    )
    whole, inner = (row.get(p) for p in parts)
    if whole is None or inner is None or traffic == "p2m-read":
        return None
    outside: float = whole - inner - (0.0 if traffic.startswith("c2m") else IIO_TO_CHA_NS)
    return outside


def lone_read(rows: Rows) -> Mapping[str, Any] | None:
    """One core that reads, without other traffic, which the authors took for an unloaded read."""
    return next((r for r in rows if (r["run"], r.get("c2m"), r["n"]) == ("iso-c2m", "read", 1)), None)


def constants(row: Mapping[str, Any], lone: Mapping[str, Any] | None) -> tuple[dict[str, Any], float]:
    """The formula's hardware parameters for a row, and the part of a core's latency on the path to and from the CHA.

    The latency of `lone`, a core that reads without other traffic, is the read formula's constant, as in the paper;
    without `lone` the constant is the sum of hops. The constant contains the path of a read, which therefore does not
    count as admission. The path of a write-back does count: in the paper, without other traffic, cores that store wait
    5.9 ns outside the CHA, and cores that read 5.0 ns (Fig. 6a, b).
    """
    hw = hardware_of(row)
    if lone is None:
        return hw, 0.0
    hw["c2m_read_ns"] = lone["lfb_lat_ns"]
    return hw, admission_ns(lone, "c2m-read") or 0.0


def analyse(row: Mapping[str, Any], side: str, lone: Mapping[str, Any] | None = None) -> dict[str, float | None]:
    """The formula columns of one row for `side` (`c2m` or `p2m`), with the constants that `lone` gives to cores."""
    names = [f"{side}_{part}" for part in COLUMNS]
    traffic = classes_of(row)[0 if side == "c2m" else 1]
    hw, way = constants(row, lone if side == "c2m" else None)
    if traffic is None or held(row, traffic) is None or (traffic == "p2m-read" and hw.get("p2m_read_ns") is None):
        return dict.fromkeys(names)
    about = {"hardware": hw, "credits": held(row, traffic), "measured_gbs": row[f"{side}_gbs"]}
    counters, admission = counters_of(row), admission_ns(row, traffic)
    plain = formula(traffic, counters, **about)
    full = formula(traffic, counters, cha_admission_ns=max((admission or 0.0) - way, 0.0), **about)
    adjusted = plain if traffic == "p2m-write" else formula(traffic, counters, adjust_rpq=True, **about)
    values = [
        plain["latency_ns"],
        plain["estimate_gbs"],
        plain["error_pct"],
        full["error_pct"],
        adjusted["error_pct"],
        *(plain["terms"][t] for t in TERMS),
        admission,
        *(adjusted["terms"][t] for t in ("write_hol", "read_hol")),
    ]
    return dict(zip(names, values, strict=True))


# `err` is the formula's throughput error; `err_adm` is the error with admission at the CHA added; `err_adj` is the
# error with the read queue's occupancy corrected for reads that wait at the CHA, as in the authors' code for quadrant
# 4.
COLUMNS = (
    "formula_ns",
    "estimate_gbs",
    "err_pct",
    "err_adm_pct",
    "err_adj_pct",
    *(f"{t}_ns" for t in TERMS),
    "admission_ns",
    "adj_write_hol_ns",
    "adj_read_hol_ns",
)


def compared(rows: Rows) -> list[dict[str, Any]]:
    """Every column that a study adds to the metrics."""
    lone = lone_read(rows)
    return [
        {**degraded, **analyse(r, "c2m", lone), **analyse(r, "p2m"), **predicted(r)}
        for r, degraded in zip(rows, degradations(rows))
    ]


def predicted(row: Mapping[str, Any]) -> dict[str, float | None]:
    """Error of the closed form, which needs no measurement, relative to the run."""
    ratios = ((side, ratio(row.get(f"predicted_{side}_gbs"), row.get(f"{side}_gbs"))) for side in ("c2m", "p2m"))
    return {f"{side}_predicted_err_pct": None if ratio is None else 100 * (ratio - 1) for side, ratio in ratios}


def units() -> dict[str, str]:
    units = {**COMPARED_UNITS, "c2m_predicted_err_pct": "%", "p2m_predicted_err_pct": "%"}
    for name in (f"{side}_{part}" for side in ("c2m", "p2m") for part in COLUMNS):
        units[name] = "GB/s" if name.endswith("_gbs") else "%" if name.endswith("_pct") else "ns"
    return units


# --- Studies --------------------------------------------------------------------------------------------------------


# One 4 KB read at a time from one device, beside cores that read and write.
PROBE = also(
    {
        "peripheral.0.count": 1,
        "peripheral.0.queue_depth": 1,
        "peripheral.0.block": "4 KiB",
        "peripheral.0.cores": 1,
    }
)
FIG6CD = RUN("colo") * C2M("readwrite") * P2M("write") * COUNT(*CORES) * PROBE * WINDOW


def peak_bandwidth(platform: str, cores: int) -> Grid:
    return alone("read", cores) * also({"platform": platform}) * WINDOW


# Quadrants with other seeds: what a run-to-run variation is in a simulation.
REPEATS = (
    RUN("colo")
    * sum_of(QUADRANT(q) * C2M(c2m) * P2M(p2m) for q, (c2m, p2m) in QUADRANTS.items())
    * COUNT(*CORES)
    * axes.REPEAT.at("seed")(1, 2, 3)
    * WINDOW
)

BANDWIDTH = ("mem_bw_gbs", "mem_c2m_read_gbs", "mem_c2m_write_gbs", "mem_p2m_read_gbs", "mem_p2m_write_gbs")
WRITE_ROOT = (
    "lfb_lat_ns",
    "rpq_occ",
    "row_miss_ratio",
    "bank_dev_15_frac",
    "iio_write_lat_ns",
    "wpq_full_frac",
    "iio_write_occ",
)
READ_ROOT = ("lfb_lat_ns", "rpq_occ", "row_miss_ratio", "cha_p2m_read_occ")


DEGRADATION = ("degr_c2m", "degr_p2m", "regime", "c2m_gbs", "p2m_gbs", *BANDWIDTH)
ERRORS = (
    "c2m_err_pct",
    "c2m_err_adm_pct",
    "c2m_err_adj_pct",
    "p2m_err_pct",
    "p2m_err_adm_pct",
    "c2m_predicted_err_pct",
    "p2m_predicted_err_pct",
)
COMPONENTS = tuple(f"{side}_{part}_ns" for side in ("c2m", "p2m") for part in (*TERMS, "admission"))


def study(figure: str, title: str, grid: Grid, metrics: tuple[str, ...], **more: Any) -> Study:
    return Study(
        "hostnetwork",
        figure,
        title,
        grid,
        metrics,
        **{"base": BASE, "derived_units": units(), "across": compared, **more},
    )


STUDIES = [
    study(
        "peakbw-cl",
        "Sequential reads of all cores, Cascade Lake",
        peak_bandwidth("cascadelake", 8),
        ("mem_bw_gbs", "mem_peak_gbs"),
    ),
    study(
        "peakbw-il",
        "Sequential reads of all cores, Ice Lake",
        peak_bandwidth("icelake", 32),
        ("mem_bw_gbs", "mem_peak_gbs"),
    ),
    study("fig3", "Four quadrants: degradation and memory bandwidth", all_quadrants(), DEGRADATION),
    study(
        "fig6a",
        "Latency of cores that read, alone",
        alone("read", *CORES) * WINDOW,
        ("lfb_lat_ns", "cha_dram_read_c2m_ns", "lfb_occ"),
    ),
    study(
        "fig6b",
        "Latency of cores that read and write, alone",
        alone("readwrite", *CORES) * WINDOW,
        ("lfb_lat_ns", "cha_dram_read_c2m_ns", "cha_mc_write_c2m_ns", "lfb_occ"),
    ),
    study(
        "fig6cd", "One small device write at a time beside cores", FIG6CD, ("iio_write_lat_ns", "cha_mc_write_p2m_ns")
    ),
    study(
        "credits",
        "Most credits ever in use",
        all_quadrants(),
        ("lfb_occ", "lfb_peak", "iio_write_occ", "iio_write_peak", "cha_p2m_read_occ"),
    ),
    study("fig7", "Quadrant 1: root causes", quadrant(1), WRITE_ROOT),
    study("fig8", "Quadrant 3: root causes", quadrant(3), WRITE_ROOT),
    study("sec5-method", "Variation from run to run", REPEATS, ("c2m_gbs", "p2m_gbs", "lfb_lat_ns", "rpq_occ")),
    study("fig11", "Error of the formula's throughput", all_quadrants(), ERRORS),
    study("fig12", "The formula's components", all_quadrants(), COMPONENTS),
    study("fig13", "Quadrant 2: root causes", quadrant(2), READ_ROOT),
    study("fig14", "Quadrant 4: root causes", quadrant(4), READ_ROOT),
]

# Figures that lack a model, and the missing model.
NOT_BUILT: dict[str, str] = {}
