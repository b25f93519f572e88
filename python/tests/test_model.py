"""The closed forms' Python face; their numbers are tested where they are computed."""

import pytest

from hostnet import SpecError, model

COUNTERS = {
    "rpq_occupancy": 5.0,
    "switches": 10.0,
    "lines_read": 1000.0,
    "lines_written": 400.0,
    "act_read": 300.0,
    "act_write": 100.0,
    "pre_conflict": 200.0,
}


def test_pcie_bandwidth_is_the_reference_rows():
    # validation/pcie/pcie_bench.csv, gen3x8, 1024-byte frames less their check sequence
    got = model.pcie_bandwidth(1020, generation="gen3", lanes=8)
    assert got["write_gbps"] == pytest.approx(52.9054, rel=1e-4)
    assert got["read_gbps"] == pytest.approx(53.675, rel=1e-4)
    assert got["read_write_gbps"] == pytest.approx(50.7238, rel=1e-4)
    assert got["write_wire_bytes"] == {"up": 1020 + 4 * 24, "down": 0}


def test_the_formula_takes_hardware_credits_and_options():
    f = model.formula("c2m-read", COUNTERS, hardware=model.hardware(c2m_read_ns=100.0), credits=12, measured_gbs=5.0)
    assert f["terms"]["constant"] == 100.0 and f["terms"]["read_hol"] == pytest.approx(4 * 2.73)
    assert f["estimate_gbs"] == pytest.approx(12 * 64 / f["latency_ns"])
    assert f["error_pct"] == pytest.approx(100 * (f["estimate_gbs"] / 5.0 - 1))
    assert f["dominant"] == "read head-of-line blocking"


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda: model.pcie_bandwidth(64, lanes=3), "lanes = 3 is no width of a PCIe link"),
        (lambda: model.pcie_bandwidth(64, mpss=256), "unknown field `mpss`"),
        (lambda: model.pcie_bandwidth(0), "bytes = 0"),
        (lambda: model.formula("c2m", COUNTERS), "class: unknown variant `c2m`"),
        (lambda: model.formula("c2m-read", {**COUNTERS, "switches": -1.0}), "switches = -1 is not a count"),
        (lambda: model.formula("c2m-read", {"switches": 1.0}), "counters: missing field"),
        (lambda: model.formula("p2m-read", COUNTERS), "p2m_read_ns"),
        (lambda: model.formula("c2m-read", COUNTERS, adjust_rpq=True), "rpq_full and waiting_reads"),
        (
            lambda: model.domains([{"name": "a", "credits": 0, "occupancy": 1, "rate_gbs": 1}]),
            "a: a domain needs credits",
        ),
    ],
)
def test_a_mistake_is_one_sentence(call, says):
    with pytest.raises(SpecError) as raised:
        call()
    assert says in str(raised.value) and str(raised.value).endswith(".") and "line 1" not in str(raised.value)


def test_metrics_become_counters_and_missing_classes_count_as_none():
    metrics = {
        "rpq_occ": 3.0,
        "cha_c2m_write_occ": 10.0,
        "cha_p2m_write_occ": None,
        "lines_read": 7.0,
        "channels": 4.0,
        "t_trans_ns": 2.5,
        "c2m_read_unloaded_ns": 80.0,
    }
    assert model.counters_of(metrics)["waiting_writes"] == 10.0
    assert model.counters_of(metrics)["act_read"] == 0.0
    hw = model.hardware_of(metrics)
    assert (hw["channels"], hw["t_trans_ns"], hw["c2m_read_ns"], hw["t_wtr_ns"]) == (4.0, 2.5, 80.0, 8.18)


def test_queues_of_a_host_with_an_idle_node_are_those_of_the_other():
    """Eight of sixteen channels hold 6 lines each: 3 is the mean of all, and 6 that of those that are used."""
    busy = {"rpq_occ": 3.0, "wpq_full_frac": 0.25, "rpq_full_frac": 0.6, "channels": 16.0, "channels_used": 8.0}
    counters = model.counters_of(busy)
    assert (counters["rpq_occupancy"], counters["wpq_full"], counters["rpq_full"]) == (6.0, 0.5, 1.0)
    assert model.hardware_of(busy)["channels"] == 8.0


def test_traffic_classes_follow_what_moves():
    assert model.classes_of({"c2m_gbs": 9.0, "mem_c2m_read_gbs": 9.0}) == ("c2m-read", None)
    busy = {"c2m_gbs": 5.0, "mem_c2m_read_gbs": 5.0, "mem_c2m_write_gbs": 5.0, "p2m_gbs": 14.0, "iio_write_occ": 65.0}
    assert model.classes_of(busy) == ("c2m-readwrite", "p2m-write")
    assert model.classes_of({"p2m_gbs": 14.0, "iio_read_occ": 70.0}) == (None, "p2m-read")


def test_a_line_that_is_written_back_takes_the_read_and_the_write():
    known = {"c2m_read_ns": 71.0, "c2m_write_ns": 10.0}  # section 4.2 of the paper: 81 ns in all
    assert model.core_unloaded_ns("c2m-read", known) == 71.0
    assert model.core_unloaded_ns("c2m-readwrite", known) == 81.0
    assert model.core_unloaded_ns("c2m-read", {"c2m_read_ns": 71.0}) == 71.0
    assert model.core_unloaded_ns("c2m-readwrite", {"c2m_read_ns": 71.0}) is None
