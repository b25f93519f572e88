"""What of a scoreboard counts, the first run beside the present one, and limits."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import paperworld
import polars as pl
import pytest
from ownclaims import GOOD, claims_file, verdict
from rich.console import Console

from hostnet import HostnetError, scoreboard
from hostnet.scoreboard import evaluate, load
from hostnet.scoreboard.render import summary, systems

CLAIMS = Path(__file__).resolve().parents[2] / "claims"


# ---- what counts -------------------------------------------------------------------------------------------------


def roled(folder: Path) -> tuple[Path, paperworld.Source]:
    """Five claims about one number, 10: two outcomes, one of them off, an input and two definitions."""
    path = claims_file(
        folder,
        GOOD | {"weight": "headline"},
        GOOD | {"id": "t.two", "expected": 20.0},
        GOOD | {"id": "t.in", "role": "input", "note": "The constant."},
        GOOD | {"id": "t.def", "role": "definition", "weight": "headline"},
        GOOD | {"id": "t.def2", "role": "definition", "expected": 11.0, "tolerance": 0.01},
    )
    return path, paperworld.Source({"mine_fig1": pl.DataFrame({"value": [10.0]})})


def test_only_outcomes_count(tmp_path):
    path, source = roled(tmp_path)
    results = evaluate(load(path), source)
    assert [r.verdict for r in results] == ["reproduced", "off", "reproduced", "reproduced", "off"]
    rows = {weight: (counts, share) for weight, counts, share in summary(results)}
    assert rows["all"] == ([1, 1, 0, 0, 0], "50 %") and rows["headline"] == ([1, 0, 0, 0, 0], "100 %")
    assert systems(results, {})[0] == (
        "mine",
        "1 of 2, 50 %",
        "no first run was kept",
        "1 of 1",
        "no first run was kept",
        "1",
        "2",
    )


def test_inputs_and_definitions_are_listed_apart(tmp_path):
    path, source = roled(tmp_path)
    counted, apart = scoreboard.as_markdown(evaluate(load(path), source), "1.0").split(
        "## mine: inputs and definitions"
    )
    assert "`t.two`" in counted and "`t.in`" not in counted and "`t.def`" not in counted
    assert [line.split(" | ")[1] for line in apart.splitlines() if "`t." in line] == [
        "input",
        "definition",
        "definition",
    ]
    assert "The constant." in apart


def test_what_is_not_built_does_not_hold(tmp_path):
    later = GOOD | {"id": "t.later", "experiment": "mine.e.fig9", "eval": "SELECT value FROM mine_fig9"}
    results = evaluate(
        load(claims_file(tmp_path, GOOD, later)), paperworld.Source({"mine_fig1": pl.DataFrame({"value": [10.0]})})
    )
    assert [r.verdict for r in results] == ["reproduced", "not built yet"]
    assert summary(results)[-1] == ("all", [1, 0, 0, 1, 0], "50 %")


def test_the_first_run_is_kept_and_never_written_again(tmp_path):
    path, source = roled(tmp_path)
    quiet = {"source": source, "console": Console(quiet=True)}
    assert scoreboard.main([path], first=True, **quiet) == 0
    kept = tmp_path / "first" / "mine.json"
    before = kept.read_bytes()
    first = json.loads(before)["claims"]
    assert (
        first[1].items()
        >= {"id": "t.two", "verdict": "off", "measured": 10.0, "shown": "10x", "expected": "20x ± 10 %"}.items()
    )

    asked = len(source.asked)
    with pytest.raises(HostnetError, match="mine.json is there already; a first run is never written again") as raised:
        scoreboard.main([path], first=True, **quiet)
    assert raised.value.exit_code == 2 and len(source.asked) == asked and kept.read_bytes() == before

    # A later run measures 20; the board has both.
    board = tmp_path / "board.md"
    later = paperworld.Source({"mine_fig1": pl.DataFrame({"value": [20.0]})})
    scoreboard.main([path], markdown_file=board, source=later, console=Console(quiet=True))
    text = board.read_text(encoding="utf-8")
    assert "| mine | 1 of 2, 50 % | 1 of 2, 50 % | 0 of 1 | 1 of 1 | 1 | 2 |" in text
    assert re.search(r"\*\*reproduced\*\* \| detail \| .*`t.two` \| 20x ± 10 % \| 20x \| off: 10x \|", text)
    assert kept.read_bytes() == before


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"quick": True}, "a quick run is not a system's first run"),
        ({"only": "t.two"}, "these are 1 of 5 claims of mine; choose all with --only 'mine.*'"),
    ],
)
def test_a_part_of_a_run_is_no_first_run(tmp_path, options, sentence):
    path, source = roled(tmp_path)
    with pytest.raises(HostnetError, match=re.escape(sentence)):
        scoreboard.main([path], first=True, source=source, **options)
    assert source.asked == [] and not (tmp_path / "first").exists()


def test_a_board_without_a_first_run_says_so(tmp_path):
    path, source = roled(tmp_path)
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "mine.json").write_text('{"missing": "Nobody kept it."}')
    board = tmp_path / "board.md"
    scoreboard.main([path], markdown_file=board, source=source, console=Console(quiet=True))
    text = board.read_text(encoding="utf-8")
    assert "mine has no first run. Nobody kept it." in text and "| 1 of 2, 50 % | no first run was kept |" in text
    with pytest.raises(HostnetError, match="is there already"):
        scoreboard.main([path], first=True, source=source)


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"claims": []}', '{"engine": "1", "claims": [{"id": "t", "verdict": "fine", "shown": ""}]}']
)
def test_a_damaged_first_run_is_one_sentence(tmp_path, text):
    path, source = roled(tmp_path)
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "mine.json").write_text(text)
    with pytest.raises(HostnetError, match=r"first/mine\.json: (is not|cannot be read as) the first run of a board"):
        scoreboard.main([path], source=source, console=Console(quiet=True))


def test_a_first_run_is_shown_with_what_its_board_said(tmp_path):
    path, source = roled(tmp_path)
    scoreboard.main([path], first=True, source=source, console=Console(quiet=True))
    page = scoreboard.first_page("mine", [path])
    outcomes, apart = page.split("## Inputs and definitions")
    assert page.startswith("# First run of mine\n")
    assert "| all | 1 | 1 | 0 | 0 | 0 | 1 of 2, 50 % |" in outcomes
    assert re.search(r"\| \*\*off\*\* \| detail \| .*`t\.two` \| 20x ± 10 % \| 10x \|", outcomes)
    assert "`t.in`" in apart and "`t.def`" in apart and "`t.two`" not in apart


def test_the_first_runs_that_are_shipped_can_be_shown():
    """Counts of the boards when they first ran: outcomes that held, of those that were judged."""
    held = {
        "sweeper": "41 of 64",
        "gem5net": "45 of 98",
        "idio": "34 of 81",
        "ccnic": "23 of 92",
        "sweeper-artifact": "32 of 64",
    }
    for name, count in held.items():
        page = scoreboard.first_page(name)
        assert re.search(rf"^\| all \|.* {count}, ", page, re.MULTILINE), name
    assert "| expected | measured | on sim24 |" in scoreboard.first_page("sweeper-artifact")


def test_a_first_run_that_is_not_there_is_one_sentence(tmp_path):
    path, _ = roled(tmp_path)
    with pytest.raises(HostnetError, match="--show-first mine: no such first run; none was kept"):
        scoreboard.first_page("mine", [path])
    with pytest.raises(HostnetError, match="no first run was kept. Its board was run many times"):
        scoreboard.first_page("hostnetwork")
    with pytest.raises(HostnetError, match='did you mean "sweeper"'):
        scoreboard.first_page("sweper")


def test_every_shipped_system_has_a_first_run_or_says_that_none_was_kept():
    kept = {p.stem: json.loads(p.read_text(encoding="utf-8")) for p in (CLAIMS / "first").glob("*.json")}
    assert kept.keys() - {"sweeper-artifact"} == {p.stem for p in CLAIMS.glob("*.toml")}
    assert {system for system, first in kept.items() if "missing" in first} == {"hostnetwork"}


def test_what_follows_from_the_configuration_says_from_what():
    silent = [c.id for c in scoreboard.shipped() if not c.counts and not c.note]
    assert silent == []


# ---- limits ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query, says",
    [
        (
            "SELECT sum(a.range * b.range) AS value FROM range(10_000_000) a, range(10_000_000) b, mine_fig1",
            "more than 1 s",
        ),
        (
            "SELECT len(list(range || repeat('x', 1000))) AS value FROM range(100_000_000), mine_fig1",
            "more than 1GB of memory",
        ),
        ("SELECT range AS value FROM range(200_000), mine_fig1", "more than 100,000 rows"),
    ],
)
def test_a_query_without_end_is_an_error_and_spares_the_others(tmp_path, monkeypatch, query, says):
    monkeypatch.setattr(sys.modules["hostnet.scoreboard.evaluate"], "QUERY_SECONDS", 1.0 if "1 s" in says else 60.0)
    path = claims_file(tmp_path, GOOD | {"id": "t.endless", "eval": query}, GOOD)
    endless, good = evaluate(load(path), paperworld.Source({"mine_fig1": pl.DataFrame({"value": [10.0]})}))
    assert endless.verdict == "error" and says in endless.reason and "claim t.endless" in endless.reason
    assert good.verdict == "reproduced"


@pytest.mark.parametrize("width", [80, 120, 200])
def test_the_board_is_whole_at_any_width(tmp_path, width):
    from rich.console import Console

    from hostnet.scoreboard import to_terminal

    found = [verdict(tmp_path, {"value": [8.0]}), verdict(tmp_path, {"value": [10.0]})]
    later = GOOD | {"experiment": "later.e.fig9", "eval": "SELECT value FROM later_fig9"}
    found += evaluate(
        load(claims_file(tmp_path, later)), paperworld.Source({"mine_fig1": pl.DataFrame({"value": [1.0]})})
    )
    console = Console(width=width, color_system=None)
    with console.capture() as caught:
        to_terminal(found, console)
    text = caught.get()
    assert "…" not in text and max(map(len, text.splitlines())) <= width
    for word in ("reproduced", "off", "not built yet", "disputed", "headline", GOOD["id"]):
        assert word in text, word


def test_the_board_in_a_pipe_has_lines_of_a_readable_length(cli, tmp_path):
    later = claims_file(
        tmp_path, GOOD | {"experiment": "sweeper.e.fig3", "eval": "SELECT copies_left AS value FROM sweeper_fig3"}
    )
    out = cli("scoreboard", "--claims", later, check=0).stdout
    assert GOOD["id"] in out and max(map(len, out.splitlines())) <= 240
