"""The page about mixtures: its command runs, and its program gives the figures shown."""

import contextlib
import io
import shlex

from shownpage import Page, near

PAGE = Page("use/mixtures.md")


def test_every_command_runs_and_the_program_gives_the_figures_shown(cli):
    commands = [line for block in PAGE.blocks("sh") for line in block.splitlines()]
    assert commands[0] == "hostnet run mixture-server"
    for line in commands:
        said = cli(*shlex.split(line, comments=True)[1:], check=0).stdout
        assert "throughput_mrps" in said or "achieved_mpps" in said
    (program,) = PAGE.blocks("python")
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(program, {})
    rows = [line.split() for line in said.getvalue().splitlines()]
    shown = PAGE.table("| tenant | Mops | Gb/s | median, us | 99th percentile, us | share of DRAM's traffic |")
    assert len(rows) == len(shown) == 8
    for (name, *cells), (tenant, *values) in zip(shown, rows, strict=True):
        assert name.startswith(tenant)
        assert all(near(cell, float(value)) for cell, value in zip(cells, values, strict=True) if cell), (cells, values)


def test_the_page_names_every_mixture_that_comes_with_hostnet(cli):
    listed = {word for word in cli("scenarios", check=0).stdout.split() if word.startswith("mixture-")}
    assert len(listed) == 12 and all(f"`{name}`" in PAGE.text for name in listed)
