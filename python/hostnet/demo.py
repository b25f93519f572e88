"""``hostnet demo``: a capture of real memcached traffic replayed into a simulated server, three ways."""

from __future__ import annotations

from pathlib import Path

from .declared import metric_info
from .output import directory, write_frame
from .parquet import ColumnInfo
from .progress import Progress
from .results import column_info, tidy
from .runner import run_many
from .show import captures, number
from .specs import Scenario
from .tables import Column, show

SYSTEMS = {"DMA": "demo-dma", "DDIO": "demo-ddio", "DDIO + Sweeper": "demo-sweeper"}
TITLE = "memcached capture replayed into a 24-core server"
ROWS = ("throughput_mrps", "lat_p50_us", "lat_p99_us", "drops", "mem_bw_gbs")


def main(out: Path, jobs: int | None, quiet: bool) -> None:
    """Run the three scenarios, print one table, write tables and the HTML report into ``out``."""
    from .report import write_report

    specs = [Scenario.load(name).resolve() for name in SYSTEMS.values()]
    with directory(out, "demo") as tmp:
        results = run_many(specs, jobs=jobs, progress=Progress(quiet), label="demo")
        frame = tidy(results, [{"system": s} for s in SYSTEMS])
        system: ColumnInfo = {"unit": "", "description": "placement of inbound lines"}
        write_frame(frame, tmp / "demo", {**column_info(), "system": system})
        for name, r in zip(SYSTEMS.values(), results, strict=True):
            r.save(tmp / f"{name}.json")
        labelled = [{**r.data, "label": system} for system, r in zip(SYSTEMS, results, strict=True)]
        write_report(labelled, tmp / "report.html", title=TITLE)

    info = metric_info()
    accesses = [n for n in info if n.startswith("acc_") and any(r[n] for r in results)]
    columns = [Column("metric", key=True, text=True), Column("unit", text=True), *map(Column, SYSTEMS)]
    show(columns, [[n, info[n]["unit"], *(number(r[n]) for r in results)] for n in (*ROWS, *accesses)], TITLE)
    captures(r.data for r in results)
    print(f"report: {out / 'report.html'}")
