"""Simulated results for the settings of measurements on real machines.

``ddio``: a Xeon Gold 6140 with a ConnectX-5 forwards at layer 2 (public measurements of Farshin et al., "Reexamining
Direct Cache Access", ATC'20). The measurements sweep DDIO ways, descriptors, frame size, offered rate, cores, uncore
clock and work per packet. ``data/ddio_atc20.csv`` has the measured values. A quick study has the settings of that file;
a full study also has the settings between them.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from ..paths import DATA
from . import Point, Rows, Study, axes
from .grid import also, by_length
from .pages import rewrite

BASE = "ddio-bench"

# Bits per second that the authors' generator offered, by frame size (without check sequence), including preamble and
# gap; this is the limit with short frames.
OFFERED_GBPS = {256: 26.75, 512: 90.4, 1024: 99.35, 1500: 99.4}
BESIDE = 24  # bytes of a frame on the wire in addition to those: check sequence, preamble, gap
# Gb/s per unit of the rate setting of the authors' replay: 200 is 9.75.
REPLAY_GBPS = 9.75 / 200
# A call of a random-number generator: a multiplication, three other operations and the loop; assumed.
CALL_INSTRUCTIONS = 6

# Experiments whose number of descriptors is the total over all cores; in the other experiments it is the number per
# core (authors' scripts).
SHARED = ("cores and ways", "processing time")

# How near is aimed for: points of a hit rate, and relative for a throughput.
NEAR_POINTS, NEAR_GBPS = 10.0, 0.1
# The knee of a sweep is where the hit rate crosses this value.
KNEE_PCT = 95.0
COMPARED = {"write_hit_pct": "write hits, %", "received_gbps": "received, Gb/s"}
# Names of settings in tables, with their units.
NAMES = {
    "packet_bytes": "frames, B",
    "ring": "descriptors",
    "ways": "ways",
    "n": "cores",
    "rate_gbps": "offered, Gb/s",
    "uncore_ghz": "uncore, GHz",
    "calls": "calls",
}
SETTINGS = ("case", "packet_bytes", "ring", "ways", "n", "rate_gbps", "uncore_ghz", "calls")


def setting(row: Mapping[str, Any]) -> tuple[str | float, ...]:
    """Key of a row's setting, which distinguishes the setting from others."""
    return tuple(str(row[k]) if k == "case" else round(float(row[k]), 2) for k in SETTINGS)


@cache
def measured() -> Mapping[tuple[str | float, ...], Mapping[str, float]]:
    """Published measurements, by setting."""
    with (DATA / "ddio_atc20.csv").open(encoding="utf-8") as f:
        rows = list(csv.DictReader(line for line in f if not line.startswith("#")))
    return {setting(r): {m: float(r[m]) for m in COMPARED} for r in rows}


# --- Axes -----------------------------------------------------------------------------------------------------------

CASE, COUNT = axes.CASE, axes.COUNT.said(unit="cores").at("tenant.0.cores")
FRAMES = axes.PACKET_BYTES.at("traffic.packet", form=lambda size: f"{size + 4} B")
WAYS, DESCRIPTORS, RATE = axes.WAYS, axes.RING, axes.RATE_GBPS
UNCORE = axes.UNCORE_GHZ.at("override.caches.uncore_clock", form="{} GHz", usual=2.4)
CALLS = axes.CALLS.at("tenant.0.app.instructions", form=lambda n: 20 + CALL_INSTRUCTIONS * n, usual=0)

# What a sweep does not vary.
USUAL = (
    FRAMES(1500)
    * DESCRIPTORS(4096)
    * WAYS(2)
    * COUNT(1)
    * RATE(lambda row: OFFERED_GBPS[row["packet_bytes"]])
    * UNCORE(2.4)
    * CALLS(0)
    * axes.LOAD("fixed")
    * also(
        {
            # Cores share the descriptors in two experiments.
            "peripheral.0.rings.receive": lambda row: row["ring"] // (row["n"] if row["case"] in SHARED else 1),
            "traffic.rate": lambda row: f"{round(row['rate_gbps'] * 1e9 / (8 * (row['packet_bytes'] + BESIDE)))} pps",
            "run.requests": by_length(200_000, 40_000),
        }
    )
)
# Every value between the ends of each sweep that the public tables name.
EVERY = USUAL * (
    CASE("ways") * FRAMES(1024) * WAYS(*range(2, 12))
    + CASE("cores and ways") * COUNT(1, 2, 4) * WAYS(2, 4, 6, 8)
    + CASE("cores") * DESCRIPTORS(256) * COUNT(1, 2, 4, 6, 8, 10, 12, 14, 16, 18)
    + CASE("descriptors") * FRAMES(*OFFERED_GBPS) * DESCRIPTORS(128, 256, 512, 1024, 2048, 4096)
    + CASE("rate") * COUNT(2) * RATE(*(min(REPLAY_GBPS * r, OFFERED_GBPS[1500]) for r in range(200, 2101, 100)))
    + CASE("uncore clock") * UNCORE(*(c / 10 for c in range(12, 25, 2)))
    + CASE("processing time") * COUNT(2) * CALLS(*range(60, 381, 20))
)


def ddio(quick: bool) -> list[Point]:
    """Every setting; a quick study has those of our table."""
    return [p for p in EVERY.points(quick, BASE) if not quick or setting(p.columns) in measured()]


def write_hit_pct(row: Mapping[str, Any]) -> float | None:
    """Lines written by the NIC that some cache held, in percent.

    Lines that only a core's L2 has count as hits: the measurements have 100 % with 128 descriptors of 256 B, although
    the core reads each header and each completion entry into its L2.
    """
    return None if row.get("p2m_write_uncached_ratio") is None else 100 * (1 - row["p2m_write_uncached_ratio"])


def received_gbps(row: Mapping[str, Any]) -> float | None:
    """Rate of the packets that the core forwarded, counted as in the measurements: bits on the wire, including preamble
    and gap."""
    return (
        None if row.get("throughput_mrps") is None else row["throughput_mrps"] * 8e-3 * (row["packet_bytes"] + BESIDE)
    )


def near(metric: str, ours: float, their: float) -> bool:
    """Whether a simulated figure is within the intended accuracy of the measured one."""
    return abs(ours - their) <= (NEAR_POINTS if metric == "write_hit_pct" else NEAR_GBPS * their)


def beside(rows: Rows) -> Sequence[Mapping[str, float | str | None]]:
    """Published figures for the simulated rows; None where there are none."""
    return [{f"their_{m}": measured().get(setting(r), {}).get(m) for m in COMPARED} for r in rows]


# Sweeps with a knee: title, the swept column, the values of the other columns, and whether hits rise along the sweep.
KNEES: tuple[tuple[str, str, Mapping[str, Any], bool], ...] = (
    ("ways, 1024 B", "ways", {"case": "ways"}, True),
    *((f"ways, {n} cores, 1500 B", "ways", {"case": "cores and ways", "n": n}, True) for n in (2, 4)),
    *((f"descriptors, {f} B", "ring", {"case": "descriptors", "packet_bytes": f}, False) for f in (1024, 1500)),
    ("cores, 256 descriptors each", "n", {"case": "cores"}, False),
)


# Figures to which keys of the platform are fitted (the provenance names them), and which therefore do not count.
INPUTS: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("received_gbps", {"case": "ways", "ways": 9}),
    ("received_gbps", {"case": "descriptors", "packet_bytes": 1500, "ring": 4096}),
    ("received_gbps", {"case": "uncore clock", "uncore_ghz": 2.4}),  # the same setting
    ("write_hit_pct", {"case": "cores", "n": 6}),
    ("write_hit_pct", {"case": "rate", "rate_gbps": REPLAY_GBPS * 200}),
)


def judged(metric: str, row: Mapping[str, Any]) -> bool:
    """Whether a figure counts: inputs do not."""

    def has(key: str, value: object) -> bool:
        return row[key] == value if isinstance(value, str) else float(row[key]) == value

    return not any(metric == m and all(has(*kv) for kv in wanted.items()) for m, wanted in INPUTS)


def knee(hits: Iterable[tuple[float, float]], rising: bool) -> int | None:
    """Index, in a list of (value, hit rate) along a sweep, of the first value past the knee, or of the last value
    before it when hits fall; None when there is no knee."""
    high = [i for i, (_, hit) in enumerate(sorted(hits)) if hit >= KNEE_PCT]
    return (high[0] if rising else high[-1]) if high else None


def page(rows: Rows) -> str:
    """The comparison as a page: the number of figures within the accuracy, sweep by sweep, the knees, and every
    setting."""
    rows = [r for r in rows if setting(r) in measured()]
    text = [
        "# Fidelity: DDIO on a real machine",
        "",
        "This page compares published measurements with ours: how often the writes of a NIC hit the LLC, and what a forwarder receives.",
        "`python -m hostnet.studies.real` wrote it from the results of `hostnet study real ddio --quick`.",
        "The measured machine is a Xeon Gold 6140 with a ConnectX-5 that forwards at layer 2 (Farshin et al., ATC'20), medians of ten runs.",
        f"Near is within {NEAR_POINTS:.0f} points for hits of PCIe writes in the LLC, and within {NEAR_GBPS:.0%} for the rate.".replace(
            "%", " %"
        ),
        "",
    ]
    text += ["| sweep | settings | " + " | ".join(COMPARED.values()) + " |", "|---|---:|" + "---:|" * len(COMPARED)]
    for case in dict.fromkeys(str(r["case"]) for r in rows):
        of = [r for r in rows if r["case"] == case]
        counts = [[near(m, float(r[m]), measured()[setting(r)][m]) for r in of if judged(m, r)] for m in COMPARED]
        text.append(f"| {case} | {len(of)} | " + " | ".join(f"{sum(c)} of {len(c)} near" for c in counts) + " |")
    text += [
        "",
        f"A knee is the last or first of the measured values of a sweep at which at least {KNEE_PCT:.0f} % of the writes hit.",
        "",
        "| sweep | knee, ours | knee, theirs | steps apart |",
        "|---|---:|---:|---:|",
    ]
    for title, column, wanted, rising in KNEES:
        of = [r for r in rows if all(r[k] == v for k, v in wanted.items())]
        values = sorted(float(r[column]) for r in of)
        ours = knee(((float(r[column]), float(r["write_hit_pct"])) for r in of), rising)
        their = knee(((float(r[column]), measured()[setting(r)]["write_hit_pct"]) for r in of), rising)
        named = [f"{values[i]:.0f}" if i is not None else "none" for i in (ours, their)]
        apart = str(abs(ours - their)) if ours is not None and their is not None else ""
        text.append(f"| {title} | {' | '.join(named)} | {apart} |")
    text += [
        "",
        "![Hits of writes and rates over each sweep: lines are ours, points are measured](../img/real_ddio.svg)",
        "",
        "*Lines are ours, points are measured (`hostnet study real ddio --quick`).*",
    ]
    text += ["", "## Every setting", "", "Each cell: ours, then theirs."]
    for case in dict.fromkeys(str(r["case"]) for r in rows):
        text += ["", f"### {case.capitalize()}", "", *_table([r for r in rows if r["case"] == case])]
    return "\n".join(text) + "\n"


def _table(rows: Rows) -> list[str]:
    """A sweep's settings with both figures of each: values that all settings share in a line, the others in columns."""
    varied = [k for k in NAMES if len({str(r[k]) for r in rows}) > 1]
    shared = ", ".join(_said(k, rows[0][k]) for k in NAMES if k not in varied and float(rows[0][k]))
    heads = [*(NAMES[k] for k in varied), *COMPARED.values()]
    text = [f"{shared[:1].upper()}{shared[1:]}.", "", "| " + " | ".join(heads) + " |", "|" + "---:|" * len(heads)]
    for r in rows:
        cells = [
            f"{float(r[m]):.1f} / {measured()[setting(r)][m]:.1f}" + ("" if judged(m, r) else " (input)")
            for m in COMPARED
        ]
        text.append("| " + " | ".join([*(f"{float(r[k]):g}" for k in varied), *cells]) + " |")
    return text


def _said(key: str, value: object) -> str:
    """A setting in words, such as "frames of 1024 B" or "2 ways"."""
    name, _, unit = NAMES[key].partition(", ")
    number = f"{float(str(value)):g}"
    if not unit:
        return f"{number} {name.removesuffix('s') if number == '1' else name}"
    return f"{name} {number} {unit}"


def numbered(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row of a CSV with its whole numbers as such."""
    return {k: int(float(v)) if k in ("packet_bytes", "ring", "ways", "n", "calls") else v for k, v in row.items()}


def main(table: str, out: str) -> None:
    """Write the page ``out`` from the study's ``table`` (CSV). Explanations that the page already contains stay."""
    rewrite(table, out, lambda rows: page([numbered(r) for r in rows]))


STUDIES = [
    Study(
        "real",
        "ddio",
        "DDIO under a forwarder at 100 Gb/s, the settings of public measurements",
        ddio,
        ("write_hit_pct", "received_gbps", "throughput_mrps", "drop_rate", "rtt_median_us", "rtt_p99_us"),
        derived={"write_hit_pct": write_hit_pct, "received_gbps": received_gbps},
        derived_units={
            "write_hit_pct": "%",
            "received_gbps": "Gb/s",
            "their_write_hit_pct": "%",
            "their_received_gbps": "Gb/s",
        },
        across=beside,
        axes=axes.with_own(COUNT),
    ),
]

if __name__ == "__main__":
    main(*sys.argv[1:])
