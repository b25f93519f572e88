"""The experiments of "Understanding the Host Network" (SIGCOMM'24) with STREAM cores and NVMe devices.

Quadrants (section 2.2): cores that read (1, 2) or read and write (3, 4), beside a device that writes memory
(1, 3) or reads it (2, 4). Each point runs alone and together: `run` is `colo`, `iso-c2m` or `iso-p2m`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..model import classes_of, counters_of, formula, hardware_of
from . import Point, Rows, Study

BASE = "quadrant1"
Points = Callable[[bool], list[Point]]
CORES = (1, 2, 3, 4, 5, 6)
QUADRANTS = {1: ("read", "write"), 2: ("read", "read"), 3: ("readwrite", "write"), 4: ("readwrite", "read")}

# Results settle within 2 % over seeds in 5 ms. A quick run measures a shorter window; its tables say so in the column
# `quick`.
TIME, QUICK_TIME = "5 ms", "500 us"

# The paper attributes this part of a P2M write's latency to the path from IIO to CHA (section 6.2).
IIO_TO_CHA_NS = 205.0


def streaming(n: int, c2m: str, tenant: int = 0) -> dict[str, Any]:
    """Changes that make a tenant `n` cores that read, or read and write."""
    return {f"tenant.{tenant}.cores": n, f"tenant.{tenant}.app.read_fraction": 1.0 if c2m == "read" else 0.5}


def point(
    quick: bool,
    run: str,
    c2m: str | None,
    p2m: str | None,
    n: int,
    *,
    columns: Mapping[str, Any] | None = None,
    changes: Mapping[str, Any] | None = None,
    beside: str = BASE,
) -> Point:
    """One run; equal arguments give equal specs, so figures and quadrants share results.

    `beside` is the scenario of the device; runs of cores alone are the same simulations for every device.
    """
    cores = {"tenant": None} if c2m is None else streaming(n, c2m)
    device = {"peripheral": None} if p2m is None else {"peripheral.0.op": f"p2m_{p2m}"}
    window = {"run.time": QUICK_TIME if quick else TIME}
    return Point(
        BASE if p2m is None else beside,
        {"run": run, "c2m": c2m, "p2m": p2m, "n": n, **(columns or {})},
        {"name": "hostnetwork", **cores, **device, **window, **(changes or {})},
    )


def colocation(
    quick: bool,
    quadrant: int,
    cores: tuple[int, ...] = CORES,
    *,
    columns: Mapping[str, Any] | None = None,
    **about: Any,
) -> list[Point]:
    """A quadrant's cores and device, each alone and both together."""
    c2m, p2m = QUADRANTS[quadrant]
    about["columns"] = {"quadrant": quadrant, **(columns or {})}
    points = [point(quick, "iso-p2m", None, p2m, 0, **about)]
    for n in cores:
        points.append(point(quick, "iso-c2m", c2m, None, n, **about))
        points.append(point(quick, "colo", c2m, p2m, n, **about))
    return points


def all_quadrants(beside: str = BASE) -> Points:
    return lambda quick: [p for q in QUADRANTS for p in colocation(quick, q, beside=beside)]


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
    units = {"n": "cores", "degr_c2m": "x", "degr_p2m": "x", "c2m_predicted_err_pct": "%", "p2m_predicted_err_pct": "%"}
    for name in (f"{side}_{part}" for side in ("c2m", "p2m") for part in COLUMNS):
        units[name] = "GB/s" if name.endswith("_gbs") else "%" if name.endswith("_pct") else "ns"
    return units


# --- Studies --------------------------------------------------------------------------------------------------------


def fig6cd(quick: bool) -> list[Point]:
    """One 4 KB read at a time from one device, while cores read and write."""
    probe = {
        "peripheral.0.count": 1,
        "peripheral.0.queue_depth": 1,
        "peripheral.0.block": "4 KiB",
        "peripheral.0.cores": 1,
    }
    return [point(quick, "colo", "readwrite", "write", n, changes=probe) for n in CORES]


def peak_bandwidth(platform: str, cores: int) -> Points:
    return lambda quick: [point(quick, "iso-c2m", "read", None, cores, changes={"platform": platform})]


REPEATS = 3


def repeats(quick: bool) -> list[Point]:
    """Quadrants with other seeds, which show the run-to-run variation of a simulation."""
    return [
        point(quick, "colo", *QUADRANTS[q], n, columns={"quadrant": q, "repeat": i}, changes={"seed": i})
        for q in QUADRANTS
        for n in CORES
        for i in range(1, REPEATS + 1)
    ]


def alone(c2m: str) -> Points:
    return lambda quick: [point(quick, "iso-c2m", c2m, None, n) for n in CORES]


def lone(quick: bool) -> Point:
    """A core that reads without other traffic, whose latency is the read formula's constant."""
    return point(quick, "iso-c2m", "read", None, 1)


def quadrant(q: int, beside: str = BASE) -> Points:
    """A quadrant, and the core of `lone` where the quadrant has no such row."""
    return lambda quick: colocation(quick, q, beside=beside) + ([] if QUADRANTS[q][0] == "read" else [lone(quick)])


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


def study(figure: str, title: str, points: Points, metrics: tuple[str, ...], **more: Any) -> Study:
    return Study(
        "hostnetwork", figure, title, points, metrics, **{"derived_units": units(), "across": compared, **more}
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
        "fig6a", "Latency of cores that read, alone", alone("read"), ("lfb_lat_ns", "cha_dram_read_c2m_ns", "lfb_occ")
    ),
    study(
        "fig6b",
        "Latency of cores that read and write, alone",
        alone("readwrite"),
        ("lfb_lat_ns", "cha_dram_read_c2m_ns", "cha_mc_write_c2m_ns", "lfb_occ"),
    ),
    study(
        "fig6cd", "One small device write at a time beside cores", fig6cd, ("iio_write_lat_ns", "cha_mc_write_p2m_ns")
    ),
    study(
        "credits",
        "Most credits ever in use",
        all_quadrants(),
        ("lfb_occ", "lfb_peak", "iio_write_occ", "iio_write_peak", "cha_p2m_read_occ"),
    ),
    study("fig7", "Quadrant 1: root causes", quadrant(1), WRITE_ROOT),
    study("fig8", "Quadrant 3: root causes", quadrant(3), WRITE_ROOT),
    study("sec5-method", "Variation from run to run", repeats, ("c2m_gbs", "p2m_gbs", "lfb_lat_ns", "rpq_occ")),
    study("fig11", "Error of the formula's throughput", all_quadrants(), ERRORS),
    study("fig12", "The formula's components", all_quadrants(), COMPONENTS),
    study("fig13", "Quadrant 2: root causes", quadrant(2), READ_ROOT),
    study("fig14", "Quadrant 4: root causes", quadrant(4), READ_ROOT),
]

# Figures that lack a model, and the missing model.
NOT_BUILT: dict[str, str] = {}
