"""The ranges of the released scripts, and what is compared with them."""

from __future__ import annotations

import pytest

from hostnet import studies
from hostnet.studies import gem5net_knees as knees

TESTPMD_64 = {
    "app": "testpmd",
    "packet_bytes": 64,
    "interval_ns": None,
    "dca": "on",
    "core": "out-of-order",
    "rob": 128,
    "platform": "gem5",
    "load": "peak_loss",
}


def test_every_range_has_a_point_and_every_point_a_range():
    points = studies.get("gem5net", "knees").points(False)
    assert len(points) == len(knees.brackets()) == 50
    for p in points:
        assert knees.low_gbps(p.columns) < knees.high_gbps(p.columns)
        assert p.changes["run.step"] == knees.FINE


@pytest.mark.parametrize("knee, off", [(9.0, 0), (4.405, -50), (10.75, 8.48)])
def test_a_knee_is_off_by_what_it_is_outside_the_range(knee, off):
    # Steps 8 and 9 of 64 B are 17.2 and 19.4 million packets a second.
    assert (knees.low_gbps(TESTPMD_64), knees.high_gbps(TESTPMD_64)) == pytest.approx((8.81, 9.91), abs=0.01)
    assert knees.off_pct({**TESTPMD_64, "offered_gbps": knee}) == pytest.approx(off, abs=0.1)


def test_rows_are_named_by_what_differs_from_the_platform():
    assert knees.named(TESTPMD_64) == "TestPMD"
    changed = {"app": "rxptx-1us", "interval_ns": 1000, "dca": "off", "core": "in-order", "rob": 32}
    assert knees.named({**TESTPMD_64, **changed}) == "RXpTX, 1 us, no direct cache access, in-order core, 32 entries"
