"""What a run says of a search that found no rate that passes."""

import pytest

from hostnet.search import nothing_passed

COLUMNS = ("rate_mrps", "p99_us", "drop_rate", "ok", "loss_rate")


def searched(*rows, step=None):
    table = {"columns": [{"name": name, "unit": ""} for name in COLUMNS], "rows": [list(row) for row in rows]}
    return {"tables": {"search": table}, "spec": {"run": {"step": step}}}


def test_the_lowest_rate_that_was_tried_is_told_with_what_it_lost():
    said = nothing_passed(searched((4.0, 9.0, 0.6, False, 0.75), (2.0, 9.0, 0.25, False, 0.5), step="2 Mrps"))
    assert said == "No rate that was tried passes: the lowest, 2 Mrps, lost 50 %. A finer run.step may find one."


def test_without_a_step_smaller_requests_are_advised_and_drops_stand_for_losses():
    said = nothing_passed(searched((2.0, 9.0, 0.25, False, None)))
    assert "lost 25 %. Smaller requests may find one." in said


def test_a_rate_that_loses_nothing_is_told_with_its_tail():
    assert "lost nothing, with a 99th percentile of 9.5 us" in nothing_passed(searched((2.0, 9.5, 0.0, False, 0.0)))


@pytest.mark.parametrize(
    "data", [searched((4.0, 9.0, 0.6, False, 0.6), (2.0, 9.0, 0.0, True, 0.0)), searched(), {"tables": {}}, {}]
)
def test_nothing_is_said_where_a_rate_passed_or_none_was_searched(data):
    assert nothing_passed(data) is None


def test_the_run_command_says_it_and_succeeds(cli):
    args = [
        "run",
        "testpmd",
        "--set",
        "traffic.packet=64 B",
        "--set",
        "run.step=40 Gbps",
        "--set",
        "run.requests=2_000",
    ]
    assert "No rate that was tried passes: the lowest, " in cli(*args, check=0).stdout
