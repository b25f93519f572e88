"""Studies and boards on another platform than the one that they name."""

import json

import paperworld
import polars as pl
import pytest
from ownclaims import GOOD, claims_file
from rich.console import Console

from hostnet import HostnetError, scoreboard, studies
from hostnet.specs import Scenario

ARTIFACT = "sim24-artifact"


@pytest.mark.parametrize("study", [s for s in studies.all_studies() if s.system == "sweeper"], ids=lambda s: s.figure)
def test_sweepers_studies_also_run_on_the_authors_simulator(study):
    moved = studies.on(study, ARTIFACT)
    assert moved.table == study.table and moved.command == f"{study.command} --platform {ARTIFACT}"
    # The load rule and X-Mem's ways differ between the text and the authors' runs.
    swept = [
        [{k: v for k, v in p.columns.items() if k not in ("load", "split_b")} for p in s.points(False)]
        for s in (moved, study)
    ]
    assert swept[0] == swept[1]
    for p in moved.points(False):
        spec = json.loads(Scenario.load(p.base).with_(p.changes).resolve())
        # Runs of two tenants have another clock and memory, an LLC that is not inclusive, and other rates for a packet in
        # 1000 cycles.
        two = len(spec["tenant"]) == 2
        assert spec["platform"]["name"] == ARTIFACT
        assert spec["platform"]["caches"]["llc"]["role"] == ("victim" if two else "strictly_inclusive")
        if spec["run"]["load"] == "peak_loss":
            assert spec["run"]["loss"] == 0.01
            assert spec["run"]["step"] == ("2.5 Mrps" if two else "3.21 Mrps")


@pytest.mark.parametrize("study", [s for s in studies.all_studies() if s.system == "idio"], ids=lambda s: s.figure)
def test_idios_studies_also_run_with_the_releases_prefetcher(study):
    """The machine is the other one in all else, and what runs on the server stays there."""
    for own, moved in zip(study.points(False), studies.on(study, "idio-gem5-artifact").points(False), strict=True):
        assert own.columns == moved.columns
        here, there = (json.loads(Scenario.load(p.base).with_(p.changes).resolve())["platform"] for p in (own, moved))
        names = (here.pop("name"), there.pop("name"))
        assert names in (("idio-gem5", "idio-gem5-artifact"), ("skylake-idio", "skylake-idio"))
        if names[0] == "idio-gem5":
            assert [p["core"]["prefetch"]["quirks"].pop("into") for p in (here, there)] == ["llc", "l2"]
            assert there["core"]["prefetch"]["enabled"] and there["core"]["prefetch"]["quirks"]["pattern"] == "stride"
            assert [p["ethernet"]["rings"]["quirks"].pop("write_back_delay") for p in (here, there)] == [
                "1.72 us",
                "10 ns",
            ]
            for p in (here, there):
                del p["description"], p["provenance"]
        assert here == there


def test_points_that_follow_the_first_ones_are_on_the_same_platform():
    study = studies.on(studies.get("sweeper", "fig6-right"), ARTIFACT)
    (peak,) = study.points(False)
    assert study.then is not None
    later = study.further([{**peak.columns, "throughput_mrps": 25.0}], False)
    assert {p.changes["platform"] for p in later} == {ARTIFACT}


@pytest.mark.parametrize(
    "system, platform, sentence",
    [
        ("sweeper", "sim24-artefact", 'studies of sweeper do not run there; did you mean "sim24-artifact"'),
        ("idio", ARTIFACT, "studies of idio do not run there; choose one of idio-gem5, idio-gem5-artifact."),
        ("ccnic", ARTIFACT, "studies of ccnic do not run there, nor on any but their own"),
        ("gem5net", "altra", "studies of gem5net do not run there, nor on any but their own"),
    ],
)
def test_a_platform_that_studies_are_not_made_for_is_refused(system, platform, sentence, cli):
    done = cli("scoreboard", "--only", f"{system}.*", "--platform", platform, check=2)
    assert sentence in done.stderr and len(done.stderr.strip().splitlines()) == 1


def test_a_board_of_two_platforms_has_a_column_for_each(tmp_path):
    path = claims_file(tmp_path, GOOD, GOOD | {"id": "t.two", "expected": 20.0, "role": "input"})
    sources = {
        name: paperworld.Source({"mine_fig1": pl.DataFrame({"value": [v]})}) for name, v in (("a", 10.0), ("b", 12.0))
    }
    page, table = tmp_path / "b.md", tmp_path / "b.json"
    options = {"files": [path], "sources": sources, "console": Console(quiet=True)}
    assert scoreboard.main(platforms=["a", "b"], markdown_file=page, json_file=table, **options) == 0
    assert scoreboard.main(platforms=["a", "b"], strict=True, **options) == 1
    text = page.read_text(encoding="utf-8")
    assert "| all | 1 of 1 | 0 of 1 |" in text
    assert "| 10x ± 10 % | 10x | 12x, **off** |" in text
    assert "`t.two` [input] | 20x ± 10 % | 10x, **off** | 12x, **off** |" in text
    assert {n: [r["measured"] for r in rows] for n, rows in json.loads(table.read_text()).items()} == {
        "a": [10.0, 10.0],
        "b": [12.0, 12.0],
    }


def test_no_first_run_is_kept_of_another_platform(tmp_path):
    path = claims_file(tmp_path, GOOD)
    for platforms in ([ARTIFACT], [ARTIFACT, "sim24"]):
        with pytest.raises(HostnetError, match="leave out --platform"):
            scoreboard.main([path], first=True, platforms=platforms)
