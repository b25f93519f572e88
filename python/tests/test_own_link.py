"""The page for a link of one's own: its commands run as printed, and its figures are what they print."""

import re
import shlex
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "use" / "own-link.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def shown(heading):
    """The figures of the table with this first row, a row each, to the digit that the page shows; shares as fractions."""
    rows = PAGE.split(heading, 1)[1].split("\n\n", 1)[0].strip().splitlines()[1:]
    found = [re.findall(r"(?<=\| )([\d.]+)( %)?(?= \|)", row) for row in rows]
    return [[to_its_digit(n, 100 if percent else 1) for n, percent in row] for row in found]


def to_its_digit(text, divisor):
    """Whatever rounds to the number as it is written."""
    half = 0.5 * 10.0 ** -len(text.partition(".")[2])
    return pytest.approx(float(text) / divisor, rel=0, abs=1.0001 * half / divisor)


def printed(text):
    """The rows of a table of numbers that a command prints, without their units."""
    lines = (re.sub(r"(?<=\d) ns| ±\S+", "", line).split() for line in text.splitlines())
    return [
        [float(cell) for cell in line] for line in lines if line and all(re.fullmatch(r"[\d.]+", cell) for cell in line)
    ]


def test_every_command_runs_and_gives_the_figures_shown(cli):
    (cli.cwd / "mylink.toml").write_text(blocks("toml")[0], encoding="utf-8")
    commands = [line for block in blocks("sh") for line in block.replace("\\\n", "").splitlines()]
    assert len(commands) == 4
    *compared, latencies = (printed(cli(*shlex.split(line)[1:], check=0).stdout) for line in commands)

    for (alone, peak), row in zip(
        compared, shown("| interface | one packet alone, us | at the peak, Mpps | its link is busy |"), strict=True
    ):
        assert [alone[1], peak[2], peak[3]] == row
    rows = shown("| one way, ns | a round trip, us | Mpps with one packet in flight at each queue pair |")
    assert latencies == rows and len(rows) == 4

    # Eight crossings a round trip, and where the two interfaces meet.
    (n0, us0, _), (n1, us1, _) = latencies[-2:]
    slope = (us1 - us0) * 1e3 / (n1 - n0)
    assert slope == pytest.approx(8, rel=0.05)
    assert n0 + (compared[2][0][1] - us0) * 1e3 / slope == pytest.approx(210, rel=0.05)


def test_the_platform_of_the_page_has_a_source_for_each_of_its_values(cli):
    (cli.cwd / "mylink.toml").write_text(blocks("toml")[0], encoding="utf-8")
    said = cli("platforms", "mylink.toml", check=0).stdout
    assert "no source" not in said and "assumed: mine" in said
