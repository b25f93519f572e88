"""Simulated results for the runs that Sweeper's authors published, with the authors' settings.

``data/sweeper_artifact.csv`` has settings and counters of 71 runs. A peak of the authors' is run at the rate at which
they found it: a lower throughput means that this model does not sustain that rate.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from ..declared import metric_info
from ..paths import DATA
from . import Point, Rows, Study

# Intended accuracy: a relative error, or an error in lines per packet; for lines the larger of both.
NEAR, NEAR_LINES, NEAR_LOADED = 0.05, 0.3, 0.15
LINES = ("acc_cpu_rx_rd", "acc_cpu_other_rd", "acc_rx_evct", "acc_tx_evct", "acc_other_evct", "acc_total")
LOADED = ("throughput_mrps", "mem_bw_gbs", "dram_lat_avg_ns")
COMPARED = (*LOADED, *LINES)
UNITS = {f"their_{m}": metric_info()[m]["unit"] for m in COMPARED} | {"near": ""}

# Text of the page about each metric, and before its tables.
MEANING = {
    "throughput_mrps": "million packets a second",
    "mem_bw_gbs": "GB/s to and from DRAM",
    "dram_lat_avg_ns": "mean latency of a DRAM read",
    "acc_cpu_rx_rd": "reads of receive lines that were evicted early",
    "acc_cpu_other_rd": "reads of other data, X-Mem's among them",
    "acc_rx_evct": "evicted receive lines",
    "acc_tx_evct": "evicted transmit lines",
    "acc_other_evct": "other evicted lines",
    "acc_total": "all transfers",
}
INTRO = (
    "# Sweeper's published runs, ours beside theirs",
    "",
    "This page compares every figure of the 71 runs that Sweeper's authors published with ours, so that you can judge how near the model is.",
    "[Another page](../fidelity/sweeper-authors.md) describes the families, the differences and their causes. The [glossary](../use/glossary.md) explains the terms.",
    "",
    "- Lines are DRAM transfers of 64 B a packet (`acc_*`). *Near* is within 5 % or 0.3 lines of theirs, whichever is larger. For",
    "  throughput, bandwidth and latency it is within 15 %.",
    "- A run's settings are its system, the NIC's ways, and what its family varies. Standing queues have 4096 buffers. The others have",
    "  four channels, and the last number of a run's name is packets in 1000 cycles.",
    "- Latency begins after the first 10 cycles of a controller, as in the published runs. An empty cell was not published.",
    "",
    "Written by `python -m hostnet.studies.sweeper_artifact` from the table of `hostnet study sweeper artifact`.",
)

# The authors' latency of a read begins after the first 10 cycles of a controller, the simulated one before them:
# 3210 MHz, 2500 MHz.
FRONT_NS = {"standing": 10 / 3.21, "partition": 10 / 2.5, "overlap": 10 / 2.5}

# One run of each system in each family of runs, chosen to be quick.
QUICK = {("standing", "2", "50", "4"), ("standing", "12", "450", "8")}


def runs() -> list[dict[str, str]]:
    """The authors' runs: settings and compared counters, as in the file."""
    with (DATA / "sweeper_artifact.csv").open(encoding="utf-8") as f:
        return list(csv.DictReader(line for line in f if not line.startswith("#")))


def gap_cycles(per_1000_cycles: int) -> int:
    """Whole cycles between two packets, rounded as the authors' generator does."""
    return 1000 // per_1000_cycles


def changes(run: Mapping[str, str]) -> dict[str, Any]:
    """Changes that make the base scenario one of the authors' runs."""
    ways, buf = int(run["ways"]), int(run["buf"])
    made: dict[str, Any] = {
        "placement.ways": ways,
        "placement.sweep_rx": True if run["system"] == "sweeper" else None,
        "rings.rx_buffers": buf,
        **({"override.memory.channels": int(run["channels"])} if run["channels"] != "4" else {}),
    }
    if run["family"] == "standing":
        return made | {"traffic.depth": int(run["depth"])}
    made["traffic.rate"] = f"{round(2_500_000_000 / gap_cycles(int(run['per_1000_cycles'])))} rps"
    if run["family"] == "overlap":
        # In the authors' runs X-Mem has ten of the ways, the forwarder's own fills have the last four, and the arrays
        # are larger.
        return made | {"tenant.0.llc_ways": "8-11", "tenant.1.llc_ways": "0-9", "tenant.1.app.array": "2560 KiB"}
    return made | {"tenant.0.llc_ways": f"{12 - ways}-11", "tenant.1.llc_ways": f"0-{int(run['xmem_ways']) - 1}"}


def points(quick: bool) -> list[Point]:
    """A point for each of the authors' runs; a quick study has a few of the standing queues."""
    chosen = [r for r in runs() if not quick or (r["family"], r["ways"], r["depth"], r["channels"]) in QUICK]
    return [
        Point(
            "artifact-l3fwd" if r["family"] == "standing" else "artifact-colocation",
            {
                "case": r["family"],
                "system": r["system"],
                "ways": int(r["ways"]),
                "buf": int(r["buf"]),
                "channels": int(r["channels"]),
                "depth": int(r["depth"] or 0),
                "split_b": int(r["xmem_ways"] or 0),
                "n": int(r["per_1000_cycles"] or 0),
            },
            changes(r),
        )
        for r in chosen
    ]


def theirs(row: Mapping[str, Any]) -> dict[str, str]:
    """The authors' run with the settings of a simulated row."""
    keys = {
        "case": "family",
        "system": "system",
        "ways": "ways",
        "buf": "buf",
        "channels": "channels",
        "depth": "depth",
        "split_b": "xmem_ways",
        "n": "per_1000_cycles",
    }
    (run,) = [
        r for r in runs() if all(str(row[k] or "") == (r[name] if r[name] != "0" else "") for k, name in keys.items())
    ]
    return run


def near(metric: str, ours: float, their: float) -> bool:
    """Whether a simulated figure is within the intended accuracy of the authors' figure."""
    if metric in LINES:
        return abs(ours - their) <= max(NEAR * abs(their), NEAR_LINES)
    return abs(ours - their) <= NEAR_LOADED * abs(their)


def counted(metric: str, row: Mapping[str, Any]) -> float:
    """A simulated figure in the authors' way of counting."""
    return float(row[metric]) - (FRONT_NS[str(row["case"])] if metric == "dram_lat_avg_ns" else 0)


def beside(rows: Rows) -> Sequence[Mapping[str, float | str | None]]:
    """Authors' figures with the simulated ones, and the number of a row's figures within the accuracy."""
    out = []
    for row in rows:
        run = theirs(row)
        given = [m for m in COMPARED if run[m] and row.get(m) is not None]
        hits = sum(near(m, counted(m, row), float(run[m])) for m in given)
        out.append(
            {**{f"their_{m}": float(run[m]) if run[m] else None for m in COMPARED}, "near": f"{hits} of {len(given)}"}
        )
    return out


def page(rows: Rows) -> str:
    """The comparison as a page: the number of figures within the accuracy, metric by metric, and every run."""
    text = [*INTRO, ""]
    if len(rows) < len(runs()):
        text += [f"{len(rows)} of their {len(runs())} runs have a result here.", ""]
    families = {
        family: [r for r in rows if r["case"] == family] for family in dict.fromkeys(str(r["case"]) for r in rows)
    }
    text += [
        "## How many are near",
        "",
        "The median is of what ours is above theirs, over runs where theirs is more than 0.3.",
        "",
        f"| metric | meaning | {' | '.join(families)} | median |",
        f"|---|---|{'---:|' * len(families)}---:|",
    ]
    for m in COMPARED:
        pairs = {family: _pairs(m, own) for family, own in families.items()}
        gaps = [ours / their - 1 for own in pairs.values() for ours, their in own if their > 0.3]
        cells = [f"{sum(near(m, *p) for p in own)} of {len(own)}" for own in pairs.values()]
        text.append(
            f"| `{m}` | {MEANING[m]} | {' | '.join(cells)} | {f'{100 * median(gaps):+.0f} %' if gaps else ''} |"
        )
    for family, own in families.items():
        text += ["", f"## {family.capitalize()}", "", "Each cell: ours, then theirs."]
        for metrics in (LOADED, LINES):
            text += ["", f"| run | {' | '.join(f'`{m}`' for m in metrics)} |", f"|---|{'---|' * len(metrics)}"]
            text += [f"| {_name(r)} | {' | '.join(_cell(m, r) for m in metrics)} |" for r in own]
    return "\n".join(text) + "\n"


def _name(row: Mapping[str, Any]) -> str:
    """A run, named by the values that its family varies."""
    load = (
        f"{row['channels']} channels, D {row['depth']}"
        if row["case"] == "standing"
        else f"{row['buf']} buffers, {row['n']}"
    )
    return f"{row['system']}, {row['ways']} ways, {load}"


def _pairs(metric: str, rows: Rows) -> list[tuple[float, float]]:
    """(simulated, authors') figures of the runs that have both."""
    return [
        (counted(metric, r), float(t[metric])) for r in rows if (t := theirs(r))[metric] and r[metric] not in (None, "")
    ]


def _cell(metric: str, row: Mapping[str, Any]) -> str:
    return " / ".join(f"{figure:.3g}" for pair in _pairs(metric, [row]) for figure in pair)


def main(table: str, out: str) -> None:
    """Write the page ``out`` from the study's ``table`` (CSV)."""
    with Path(table).open(encoding="utf-8") as f:
        rows = [
            {k: int(v) if k in ("ways", "buf", "channels", "depth", "split_b", "n") else v for k, v in r.items()}
            for r in csv.DictReader(f)
        ]
    Path(out).write_text(page(rows), encoding="utf-8")


STUDIES = [
    Study(
        "sweeper",
        "artifact",
        "The authors' published runs, ours beside theirs",
        points,
        COMPARED,
        across=beside,
        derived_units=UNITS,
    ),
]

if __name__ == "__main__":
    if len(sys.argv) != 3:
        print("usage: python -m hostnet.studies.sweeper_artifact TABLE.csv PAGE.md", file=sys.stderr)
        sys.exit(2)
    main(*sys.argv[1:])
