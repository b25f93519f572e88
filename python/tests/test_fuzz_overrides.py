"""The tool that runs scenarios with random changes (fuzz/overrides.py)."""

import importlib.util
from pathlib import Path

import pytest

from hostnet import HostnetError, Scenario

FILE = Path(__file__).parents[2] / "fuzz" / "overrides.py"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("overrides", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("extreme", [False, True])
def test_a_draw_is_the_same_each_time_and_is_taken_or_refused_in_one_sentence(tool, extreme):
    taken = 0
    for seed in range(1, 25):
        try:
            name, changes = tool.drawn(seed, extreme)
        except HostnetError:
            continue  # the scenario does not run on that platform
        assert (name, changes) == tool.drawn(seed, extreme)
        assert changes.pop("seed") == seed and changes
        try:
            Scenario.load(name).with_(changes).resolve()
            taken += 1
        except HostnetError as e:
            assert "\n" not in str(e) and str(e).endswith(".")
    assert taken > 3


def test_another_value_is_of_the_same_kind(tool):
    import random

    draw, kvs = random.Random(1), Scenario.load("kvs")
    assert tool.other(draw, kvs, "placement.sweep_rx", True, False) is False
    assert tool.other(draw, kvs, "platform.caches.l2.size", "1 MiB", False) in ("0 MiB", "0.5 MiB", "2 MiB")
    assert tool.other(draw, kvs, "placement.policy", "ddio", False) in ("dma", "ddio", "ideal", "idio", "table")


def test_extreme_values_lie_at_the_ends_of_what_a_key_takes(tool):
    import random

    draw, kvs = random.Random(1), Scenario.load("kvs")
    sizes = {tool.other(draw, kvs, "platform.caches.l2.size", "1 MiB", True) for _ in range(50)}
    assert sizes == {"0 MiB", "1e-09 MiB", "0.001 MiB", "1000 MiB", "1e+09 MiB"}
    assert 2**63 - 1 in {tool.other(draw, kvs, "placement.ways", 2, True) for _ in range(100)}
