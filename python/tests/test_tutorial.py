"""The tutorial's commands, run as a newcomer would, and the figures that it shows."""

import re
import shlex

import polars as pl
import pytest
from shownpage import Page, near

PAGE = Page("use/tutorial.md")


@pytest.mark.long
def test_every_command_of_the_tutorial_runs_and_gives_the_figures_shown(cli, tmp_path):
    here = tmp_path / "cwd"
    (scenario,) = PAGE.blocks("toml")
    (here / "own.toml").write_text(scenario, encoding="utf-8")
    commands = [line for block in PAGE.blocks("sh") for line in block.replace("\\\n", "").splitlines()]
    assert len(commands) == 9
    said = [cli(*shlex.split(line)[1:], check=0).stdout for line in commands]

    for name, shown, _ in PAGE.table("| metric | value | meaning |"):
        (row,) = [line for line in said[0].splitlines() if line.split()[:1] == [name.strip("`")]]
        assert near(shown, float(row.split()[1])), row

    ways = pl.read_csv(here / "results" / "ways" / "sweep.csv").rows(named=True)
    shown = PAGE.table("| ways | `sweep_rx` | median, us | DRAM, GB/s | lines a request |")
    assert len(shown) == len(ways) == 6
    for row, cells in zip(ways, shown, strict=True):
        assert [str(row["placement.ways"]), str(row["placement.sweep_rx"]).lower()] == cells[:2]
        for name, cell in zip(("lat_p50_us", "mem_bw_gbs", "acc_total"), cells[2:], strict=True):
            assert near(cell, row[name]), (row["placement.ways"], name)

    assert (
        "regime: red" in said[2]
        and "69 of 72 credits" in said[2]
        and "297 ns each" in said[2]
        and "811 ns each" in said[2]
    )

    shown = PAGE.table("| offered | carried, Gb/s | median, us | 99th percentile, us | lost |")
    rates = [cells[0].removesuffix(" Gbps") for cells in shown]
    printed = [[cell for cell in line.split() if not cell.startswith("±")] for line in said[3].splitlines()]
    lines = [cells for cells in printed if cells and cells[0] in rates]
    assert len(lines) == len(shown)
    for row, cells in zip(lines, shown, strict=True):
        assert f"{row[0]} Gbps" == cells[0]
        assert all(near(cell, float(value)) for value, cell in zip(row[1:], cells[1:], strict=True)), row

    assert "The NIC's receive DMA is slower than the wire" in said[4]
    assert re.search(r"pcie_up_util +(1|0\.99\d*) ", said[4])
    assert "descriptor" in said[6]
    assert (here / "results" / "run" / "report.html").is_file()


def test_the_slip_of_the_tutorial_costs_the_sentence_that_it_quotes(cli, tmp_path):
    (tmp_path / "cwd" / "own.toml").write_text(PAGE.blocks("toml")[0], encoding="utf-8")
    done = cli("run", "own.toml", "--set", 'traffic.rat="3 Gbps"', check=2)
    quoted = re.search(r"\*(own\.toml: [^*]*)\*", PAGE.text)
    assert quoted and " ".join(quoted[1].split()) == done.stderr.strip().removeprefix("hostnet: ")
