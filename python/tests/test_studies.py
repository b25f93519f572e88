"""The studies cover what the specification sweeps, and their points are valid scenarios."""

from collections import Counter

import pytest

from hostnet import studies
from hostnet.cache import Cache
from hostnet.specs import Scenario
from hostnet.studies import sweeper

# Points per experiment, counted from the `variables` of the specification's experiments.
EXPECTED = {
    "fig1": 3 * (1 + 3 + 1),              # buffers x (dma, ddio at 2 / 4 / 6 ways, ideal)
    "fig2": 3 * (1 + 3 + 1),              # depths x (dma, ddio at 2 / 6 / 12 ways, ideal)
    "fig5": 6 * (4 + 4 + 1),              # clusters x (ddio and sweeper at 4 way counts, ideal)
    "fig6-left": 4,                       # ways {2, 12} x sweeping
    "fig7": 2 * (3 + 3 + 1),              # depths x (ddio and sweeper at 3 way counts, ideal)
    "fig8": 3 * 2 * (2 + 2 + 1),          # channels x clusters x (ddio and sweeper at 2 way counts, ideal)
    "fig9a": 6 * 2,                       # splits x sweeping
    "fig9b": 6 * 2,
    "fig10a": 5 * 2,                      # depths x sweeping
    "sec2b": 2 * 3,                       # injection x eviction point
    "sec5b": 3,                           # guards
}


def test_every_experiment_of_the_paper_has_a_study():
    figures = ("sizing", "sec2b", "fig1", "fig2", "fig3", "fig4", "sec5b", "fig5", "fig6-left", "fig6-right", "fig7",
               "fig8", "fig9a", "fig9b", "fig10a", "fig10b", "sec6f-cited")
    assert Counter(s.figure for s in studies.all_studies()) == Counter(figures)


@pytest.mark.parametrize("figure, points", EXPECTED.items())
def test_a_study_has_every_point_its_experiment_sweeps(figure, points):
    assert len(studies.get("sweeper", figure).points(False)) == points


def all_points(study, quick):
    points = study.points(quick)
    rows = [{**p.columns, "throughput_mrps": 10.0 + i} for i, p in enumerate(points)]
    return points + (study.then(rows, quick) if study.then else [])


@pytest.mark.parametrize("study", studies.all_studies(), ids=lambda s: s.figure)
@pytest.mark.parametrize("quick", [False, True])
def test_every_point_resolves_and_rows_are_distinct(study, quick):
    points = all_points(study, quick)
    for p in points:
        Scenario.load(p.base).with_(p.changes).resolve()
    rows = [tuple(sorted((k, str(v)) for k, v in p.columns.items())) for p in points]
    assert len(set(rows)) == len(rows)
    assert {k for p in points for k in p.columns} <= set(studies.COLUMN_ORDER)


def test_figures_that_show_the_same_point_share_it():
    def specs(points):
        return {Scenario.load(p.base).with_(p.changes).resolve() for p in points}

    fig5 = specs(sweeper.fig5(False))
    assert len(specs(sweeper.fig1(False)) & fig5) == 3 * (3 + 1), "ddio and ideal of Fig. 1 are points of Fig. 5"
    assert specs(sweeper.fig6_left(False)) <= fig5


def test_the_platform_is_the_same_in_every_study():
    bases = {p.base for s in studies.all_studies() for p in all_points(s, False)}
    assert {Scenario.load(b).platform for b in bases} == {"sim24"}


@pytest.mark.parametrize("figure", ["sizing", "sec6f-cited"])
def test_a_study_writes_the_same_bytes_with_one_and_two_workers(figure, tmp_path):
    written = []
    for jobs in (1, 2):
        out = tmp_path / f"out{jobs}"
        studies.run(studies.get("sweeper", figure), quick=True, jobs=jobs, cache=Cache(tmp_path / f"cache{jobs}"), out=out)
        written.append({f.name: f.read_bytes() for f in out.iterdir() if f.name != "study.json"})
    assert written[0] == written[1]
    stem = f"sweeper_{figure.replace('-', '_')}"
    assert {f"{stem}.csv", f"{stem}.parquet", f"{stem}.png", f"{stem}.svg", "specs.json"} <= set(written[0])


def test_packets_per_pause_is_ring_over_loss():
    # 100 offered, 75 served: a quarter of the packets stays, so 1024 buffers last 4096 packets.
    assert sweeper.packets_per_pause({"buf": 1024, "drop_rate": 0.25}) == 4096
    assert sweeper.packets_per_pause({"buf": 1024, "drop_rate": 0.0}) is None
