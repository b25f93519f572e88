"""Grids of points: products, sums, and what a point changes; columns that no axis declares."""

import pytest

from hostnet import studies
from hostnet.errors import HostnetError
from hostnet.results import Result
from hostnet.studies import Study, StudyRun
from hostnet.studies.axes import AXES, BUF, SYSTEM, WAYS
from hostnet.studies.grid import Axis, Point, also, by_length, on, sum_of, when_quick

KIB = Axis("kib", "size", unit="KiB", paths=("caches.l1d.size", "caches.l1i.size"), form="{} KiB", usual=64)


def columns(grid, quick=False):
    return [dict(p.columns) for p in grid.points(quick)]


def changes(grid, quick=False):
    return [dict(p.changes) for p in grid.points(quick)]


def test_the_last_axis_of_a_product_varies_fastest():
    assert columns(WAYS(2, 4) * BUF(512, 1024)) == [
        {"ways": 2, "buf": 512},
        {"ways": 2, "buf": 1024},
        {"ways": 4, "buf": 512},
        {"ways": 4, "buf": 1024},
    ]


def test_a_sum_has_the_points_of_one_grid_after_those_of_the_other_and_a_product_distributes_over_it():
    a, b = WAYS(2), BUF(512, 1024)
    assert columns(a + b) == columns(a) + columns(b) == columns(sum_of([a, b]))
    left, right = SYSTEM("x") * (a + b), SYSTEM("x") * a + SYSTEM("x") * b
    assert columns(left) == columns(right) and len(left) == 3


def test_a_value_is_written_to_every_path_in_its_form_and_the_usual_one_changes_nothing():
    assert changes(KIB(32, 64)) == [{"caches.l1d.size": "32 KiB", "caches.l1i.size": "32 KiB"}, {}]
    assert changes(WAYS(None)) == [{"placement.ways": None}]
    assert changes(KIB.at("a", form=lambda kib: 2 * kib)(8)) == [{"a": 16}]
    assert changes(WAYS.label()(4)) == [{}]


def test_a_named_value_stands_for_changes_and_may_name_the_scenario():
    nic = SYSTEM.among({"old": {"nic.kind": "a"}, "new": on("other") * also({"nic.kind": "b"})})
    assert [(p.base, p.columns["system"], p.changes["nic.kind"]) for p in nic().points(False, "usual")] == [
        ("usual", "old", "a"),
        ("other", "new", "b"),
    ]
    assert columns(nic * WAYS(2)) == columns(nic() * WAYS(2))


def test_functions_of_a_row_see_what_is_said_on_either_side_of_them():
    total = Axis("total", "ways of all", paths=("total",))
    grid = also({"rate": lambda row: row["ways"] * 10}) * total(lambda row: row["ways"] + row["buf"]) * WAYS(2) * BUF(3)
    assert columns(grid) == [{"total": 5, "ways": 2, "buf": 3}]
    assert changes(grid) == [{"rate": 20, "total": 5, "placement.ways": 2, "rings.rx_buffers": 3}]


def test_a_later_factor_overrides_and_a_table_is_written_before_what_lies_in_it():
    assert changes(also({"a": 1}) * also({"a": 2})) == [{"a": 2}]
    whole, part = also({"placement": {"policy": "dma"}}), WAYS(2)
    assert list(changes(part * whole)[0]) == list(changes(whole * part)[0]) == ["placement", "placement.ways"]
    app = also({"tenant.0.app": {}}) * also({"tenant[0].app.size": 1})
    assert list(changes(app)[0]) == ["tenant.0.app", "tenant[0].app.size"]


def test_a_later_value_of_a_column_takes_the_place_of_an_earlier_one():
    usual = WAYS(2) * BUF(lambda row: 10 * row["ways"])
    assert columns(usual * WAYS(4, 6)) == [{"ways": 4, "buf": 40}, {"ways": 6, "buf": 60}]
    assert changes(usual * BUF(1)) == [{"placement.ways": 2, "rings.rx_buffers": 1}]


def test_no_points_vanish_for_want_of_values():
    with pytest.raises(ValueError, match="axis ways has no values"):
        WAYS * BUF(1)
    assert columns(Axis("a", "own", values=(1, 2)) * BUF(3)) == [{"a": 1, "buf": 3}, {"a": 2, "buf": 3}]


def test_a_quick_study_has_its_own_values():
    grid = also({"n": by_length(9, 3)}) * when_quick({"m": 1})
    assert changes(grid) == [{"n": 9}] and changes(grid, quick=True) == [{"n": 3, "m": 1}]


def test_values_without_a_column_are_in_rows_alone():
    grid = WAYS(2).without_columns() * also({"b": lambda row: row["ways"]})
    assert columns(grid) == [{}] and changes(grid) == [{"placement.ways": 2, "b": 2}] and grid.axes == ()


# --- Columns --------------------------------------------------------------------------------------------------------


def result() -> Result:
    import fakeresults

    return Result(fakeresults.result("ddio"))


def test_order_units_and_meanings_of_columns_are_those_of_the_axes():
    mine = Axis("mine", "own number", unit="widgets")
    study = Study("x", "f", "F", WAYS(2) * mine(1) * WAYS.at()(3) * SYSTEM("ddio"), ())
    run = StudyRun(study, study.points(False), [result()], quick=False)
    # Those of the published studies in their order, then the study's own, then `quick`.
    assert list(run.columns[0]) == ["system", "ways", "mine", "quick"]
    info = run.column_info(study.table)
    assert info["mine"] == {"unit": "widgets", "description": "own number"}
    assert info["ways"] == {"unit": WAYS.unit, "description": WAYS.meaning}
    assert run.headings()["mine"] == "widgets" and run.headings()["ways"] == ""  # "LLC ways ..." says it


def test_every_axis_of_the_published_studies_is_said_once():
    names = [axis.column for axis in AXES]
    assert len(set(names)) == len(names) and all(axis.meaning for axis in AXES)
    for study in studies.all_studies():
        assert [a.column for a in study.axes] == names


@pytest.mark.parametrize(
    ("study", "words"),
    [
        (Study("x", "f", "F", lambda quick: [Point("kvs", {"bufs": 1}, {})], ()), "no axis declares the column 'bufs'; .*\"buf\""),
        (Study("x", "f", "F", WAYS(2), ("lat_p9_us",), base="kvs"), 'there is no metric "lat_p9_us"; .*"lat_p90_us"'),
    ],
)  # fmt: skip
def test_a_column_that_no_table_knows_is_refused_before_anything_runs(monkeypatch, study, words):
    monkeypatch.setattr(studies, "run_many", lambda *_, **__: pytest.fail("a point has run"))
    with pytest.raises(HostnetError, match=words):
        studies.run(study)


def test_a_column_that_is_added_to_a_table_without_a_unit_is_refused():
    study = Study("x", "f", "F", WAYS(2), (), across=lambda rows: [{"ratio": 2.0} for _ in rows])
    run = StudyRun(study, study.points(False), [result()], quick=False)
    with pytest.raises(HostnetError, match="nothing declares the column 'ratio'"):
        assert run.columns
