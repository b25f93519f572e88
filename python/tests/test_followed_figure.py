"""The figure that docs/fidelity/README.md follows to its source: each command finds what the page says."""

import re
import shlex

from shownpage import Page

from hostnet.scoreboard.claims import load

PAGE = Page("fidelity/README.md")


def commands():
    return [shlex.split(line) for block in PAGE.blocks("sh") for line in block.splitlines()]


def latency(cli, *words):
    found = re.search(r"lfb_lat_ns +([\d.]+) ", cli(*words, check=0).stdout)
    assert found
    return found[1]


def test_the_claim_is_where_the_page_says_and_its_query_reads_the_study():
    (grep, scoreboard, study, *_) = commands()
    lines = (PAGE.root / grep[-1]).read_text(encoding="utf-8").splitlines()
    at = next(i for i, line in enumerate(lines) if grep[-2] in line)
    assert any(f"hostnetwork_{study[3]} " in line for line in lines[at : at + 1 + int(grep[2])])
    (claim,) = (c for c in load(PAGE.root / grep[-1]) if c.id.endswith(scoreboard[-1].removeprefix("*")))
    assert round(claim.expected) == 219 and claim.tolerance == 0.12


def test_the_scenario_gives_the_latency_shown_with_and_without_the_fitted_value(cli):
    (*_, run, platforms, without) = commands()
    assert latency(cli, *run[1:]) in PAGE.text
    assert latency(cli, *without[1:]) in PAGE.text
    said = cli(*platforms[1:], check=0).stdout
    assert re.search(r"core\.quirks\.lfb_retry +14\.4 ns +fitted: ", said)
