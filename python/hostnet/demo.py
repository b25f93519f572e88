"""``hostnet demo``: a capture of real memcached traffic replayed into a simulated server, three ways."""

from __future__ import annotations

from pathlib import Path

from rich import box
from rich.table import Table

from .output import staged
from .progress import Progress
from .results import metric_info, tidy
from .runner import run_many
from .show import console, number
from .specs import Scenario

SYSTEMS = {"DMA": "demo-dma", "DDIO": "demo-ddio", "DDIO + Sweeper": "demo-sweeper"}
TITLE = "memcached capture replayed into a 24-core server"
ROWS = ("throughput_mrps", "lat_p50_us", "lat_p99_us", "drops", "mem_bw_gbs")


def main(out: Path, jobs: int | None, quiet: bool) -> None:
    """Run the three scenarios, print one table, write tables and the HTML report into ``out``."""
    from .report import write_report

    specs = [Scenario.load(name).resolve() for name in SYSTEMS.values()]
    with staged(out) as tmp:
        results = run_many(specs, jobs=jobs, progress=Progress(quiet), label="demo")
        frame = tidy(results, [{"system": s} for s in SYSTEMS])
        frame.write_csv(tmp / "demo.csv")
        frame.write_parquet(tmp / "demo.parquet")
        for name, r in zip(SYSTEMS.values(), results, strict=True):
            r.save(tmp / f"{name}.json")
        labelled = [{**r.data, "label": system} for system, r in zip(SYSTEMS, results, strict=True)]
        write_report(labelled, tmp / "report.html", title=TITLE)

    info = metric_info()
    table = Table(title=TITLE, box=box.SIMPLE_HEAD, title_justify="left")
    table.add_column("")
    table.add_column("unit", style="dim")
    for system in SYSTEMS:
        table.add_column(system, justify="right")
    for name in ROWS:
        table.add_row(name, info[name]["unit"], *(number(r[name]) for r in results))
    table.add_section()
    for name in (n for n in info if n.startswith("acc_")):
        if any(r[name] for r in results):
            table.add_row(name, info[name]["unit"], *(number(r[name]) for r in results))
    console().print(table)
    print(f"report: {out / 'report.html'}")
