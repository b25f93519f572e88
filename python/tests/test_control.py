"""A control plane in Python: what it sees, what it sets, and how it fails."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import hostnet as hn
from hostnet.errors import HostnetError

DOCS = Path(__file__).parents[2] / "docs"


def scenario(**changes) -> hn.Scenario:
    return hn.Scenario.load("idio").with_({"run.requests": 2048, "run.warmup_requests": 2048, **changes})


def test_an_epoch_has_the_counts_of_tenants_and_cores_and_sets_ways() -> None:
    seen = []

    def watch(epoch) -> None:
        seen.append((epoch.tenants[0], epoch.llc_misses))
        epoch.set_llc_ways(epoch.tenants[0]["name"], "0-3")

    result = hn.run(scenario(), control=watch, interval="10 us")
    counts = [t for t, _ in seen]
    assert len({t["name"] for t in counts}) == 1
    assert sum(t["served"] for t in counts) >= 2048 and sum(t["offered"] for t in counts) >= 2048
    assert sum(t["lost"] for t in counts) >= result["drops"]
    assert all(sum(cores) == t["llc_misses"] for t, cores in seen)
    assert any(t["lat_p99_us"] for t in counts) and all(t["lat_p50_us"] is None for t in counts if not t["served"])

    for tenant, ways, said in (
        ("nobody", 2, "there is no tenant .nobody. .valid"),
        (None, 40, "40 is not within 1 to"),
    ):

        def wrong(epoch, tenant=tenant, ways=ways) -> None:
            epoch.set_llc_ways(tenant or epoch.tenants[0]["name"], ways)

        with pytest.raises(HostnetError, match=said):
            hn.run(scenario(), control=wrong, interval="10 us")


def test_an_epoch_has_the_packets_of_tenants_on_cc_nic() -> None:
    """20 packets a microsecond are 200 in an epoch of 10 us; those under way at its ends are few."""
    seen = []
    changes = {"traffic": {"arrivals": "fixed", "rate": "20 Mpps"}, "run.requests": 2000, "run.warmup_requests": 500}
    result = hn.run(
        hn.Scenario.load("ccnic-forward").with_(changes),
        control=lambda epoch: seen.append(epoch.tenants[0]),
        interval="10 us",
    )
    for t in seen[1:]:
        assert t["offered"] == pytest.approx(200, abs=40) and t["served"] == pytest.approx(200, abs=40)
        assert 0.5 * result["rtt_median_us"] < t["lat_p50_us"] < 2 * result["rtt_median_us"]
    assert len(seen) > 3


def test_an_interval_that_no_run_reaches_is_a_warning_and_another_type_a_sentence() -> None:
    calls: list[float] = []
    result = hn.run(scenario(), control=lambda epoch: calls.append(epoch.now_us), interval="10 s")
    said = [w for w in result.warnings if "never called: no epoch of 10 s ended within the run" in w]
    assert len(said) == 1 and not calls
    short = hn.run(scenario(), control=lambda epoch: calls.append(epoch.now_us), interval="10 us")
    assert calls and not any("never called" in w for w in short.warnings)
    with pytest.raises(HostnetError, match='interval = 5 is no time with its unit, such as "10 us"'):
        hn.run(scenario(), control=calls.append, interval=5)


@pytest.mark.parametrize(
    "wrong, said",
    [
        (
            lambda epoch: epoch.set_llc_ways(epoch.tenants[0]["name"], [0, 1]),
            'set_llc_ways: ways = [0, 1] is not a whole number of ways or a range of them such as "0-3".',
        ),
        (
            lambda epoch: epoch.set_llc_ways(epoch.tenants[0]["name"], -1),
            'set_llc_ways: ways = -1 is not a whole number of ways or a range of them such as "0-3".',
        ),
        (
            lambda epoch: setattr(epoch, "ways", "0-3"),
            "ways = '0-3' is not a whole number of ways, which count from way 0 up.",
        ),
        (
            lambda epoch: setattr(epoch, "ways", 2.5),
            "ways = 2.5 is not a whole number of ways, which count from way 0 up.",
        ),
        (
            lambda epoch: setattr(epoch, "ways", True),
            "ways = True is not a whole number of ways, which count from way 0 up.",
        ),
        (
            lambda epoch: epoch.set_llc_ways(epoch.tenants[0]["name"], True),
            'set_llc_ways: ways = True is not a whole number of ways or a range of them such as "0-3".',
        ),
        (lambda epoch: epoch.set_llc_ways(0, 3), "set_llc_ways: there is no tenant 0 (valid: touchdrop)."),
    ],
)
def test_ways_of_another_type_are_refused_in_a_sentence(wrong, said) -> None:
    with pytest.raises(HostnetError) as caught:
        hn.run(scenario(), control=wrong)
    assert str(caught.value) == said


@pytest.mark.parametrize("core", [-1, 2, 1 << 70, 0.0, "0", None, True])
def test_a_core_that_is_none_of_the_scenario_s_is_refused_in_a_sentence(core) -> None:
    with pytest.raises(HostnetError) as caught:
        hn.run(scenario(), control=lambda epoch: epoch.prefetch(core, True))
    assert str(caught.value) == f"prefetch: core = {core!r} is not the number of a core, 0 to 1."


@pytest.mark.parametrize("on", [1, "yes"])
def test_a_prefetch_is_on_off_or_the_policy_s(on) -> None:
    with pytest.raises(HostnetError) as caught:
        hn.run(scenario(), control=lambda epoch: epoch.prefetch(0, on))
    assert str(caught.value) == f"prefetch: on = {on!r} is not True, False or None."


def test_an_epoch_that_is_over_takes_no_settings() -> None:
    kept = []
    hn.run(scenario(), control=kept.append)
    last = kept[-1]
    assert last.ways == kept[0].ways
    for what, call in {
        "ways": lambda: setattr(last, "ways", 3),
        "set_llc_ways": lambda: last.set_llc_ways(last.tenants[0]["name"], 3),
        "prefetch": lambda: last.prefetch(0, True),
    }.items():
        with pytest.raises(HostnetError) as caught:
            call()
        said = "has no effect on an epoch that is over; set it before the control plane returns."
        assert str(caught.value) == f"{what} {said}"


def test_an_epoch_is_counted_from_the_last_one_and_its_settings_hold() -> None:
    seen = []

    def off(epoch) -> None:
        seen.append((epoch.now_us, sum(epoch.hints), epoch.ways, epoch.state))
        for core in range(2):
            epoch.prefetch(core, False)

    result = hn.run(scenario(**{"placement.mode": "static"}), control=off)
    steps = {round(b[0] - a[0], 6) for a, b in zip(seen, seen[1:], strict=False)}
    assert steps == {10.0}
    assert result["hints"] == pytest.approx(2048, rel=0.01), "headers alone"
    assert seen[0][2] == 2 and len(seen[0][3]) == 2
    assert not result.cached


def test_ways_are_set_at_run_time() -> None:
    ways = []

    def grow(epoch) -> None:
        ways.append(epoch.ways)
        epoch.ways = min(epoch.ways + 1, 4)

    hn.run(scenario(**{"placement.mode": "invalidate"}), control=grow)
    assert ways[:4] == [2, 3, 4, 4]


def test_a_search_has_epochs_at_every_rate_and_finds_what_it_finds_alone(tiny) -> None:
    search = tiny.with_({"run.load": "peak_nodrop", "traffic.rate": None})
    seen = []
    beside = hn.run(search, control=lambda epoch: seen.append(epoch.tenants[0]["offered"]), interval="5 us")
    alone = hn.run(search)
    assert beside["throughput_mrps"] == alone["throughput_mrps"] > 0
    assert len(seen) > 10 and max(seen) > 5 * beside["throughput_mrps"], "a rate that is too high was tried"
    with pytest.raises(HostnetError, match="directed tests have no epochs"):
        hn.run(hn.Scenario.load("mmio-probe"), control=lambda epoch: None)


def test_exceptions_and_settings_of_other_policies_end_the_run() -> None:
    def broken(epoch) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        hn.run(scenario(), control=broken)

    def hints(epoch) -> None:
        epoch.prefetch(0, True)

    with pytest.raises(HostnetError, match='placement.mode = "invalidate"'):
        hn.run(scenario(**{"placement.mode": "invalidate"}), control=hints)
    with pytest.raises(HostnetError, match="interval"):
        hn.run(scenario(), control=hints, interval="1 ns")


def test_an_epoch_costs_microseconds() -> None:
    def look(epoch) -> None:
        for core, distance in enumerate(epoch.distance):
            epoch.prefetch(core, distance < 256)

    calls = 0

    def count(epoch) -> None:
        nonlocal calls
        calls += 1
        look(epoch)

    plain = min(hn.run(scenario(), control=lambda epoch: None, interval="100 ms").wall_s for _ in range(3))
    start = time.perf_counter()
    hn.run(scenario(), control=count, interval="1 us")
    each = (time.perf_counter() - start - plain) / calls
    assert each < 50e-6, f"{each * 1e6:.1f} us a call"


def test_the_example_of_the_page_runs(capsys) -> None:
    text = (DOCS / "use" / "control-plane.md").read_text(encoding="utf-8")
    first, second = (block.split("```", 1)[0] for block in text.split("```python\n")[1:])
    names: dict[str, object] = {}
    exec(compile(first, "docs/use/control-plane.md", "exec"), names)
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["pointer", "IDIO"]
    exec(compile(second, "docs/use/control-plane.md", "exec"), names)
    assert names["frame"].shape[0] == 2


NEAR = 256


def follow(epoch) -> None:
    for core, distance in enumerate(epoch.distance):
        epoch.prefetch(core, distance < NEAR)


class Grow:
    """Gives devices one more way in every second epoch."""

    def __init__(self) -> None:
        self.epochs = 0

    def __call__(self, epoch) -> None:
        self.epochs += 1
        if self.epochs % 2 == 0:
            epoch.ways = min(epoch.ways + 1, 4)


def test_a_control_plane_is_cached_by_what_it_does(monkeypatch) -> None:
    static = scenario(**{"placement.mode": "static"})
    first = hn.run(static, control=follow)
    again = hn.run(static, control=follow)
    assert (first.cached, again.cached) == (False, True) and again.metrics == first.metrics and again.key == first.key
    assert not hn.run(static, control=follow, interval="20 us").cached
    assert not hn.run(static, control=lambda epoch: None).cached and not hn.run(static).cached
    monkeypatch.setitem(globals(), "NEAR", 16)
    assert not hn.run(static, control=follow).cached


def test_two_functions_on_one_line_are_two() -> None:
    static = scenario(**{"placement.mode": "static"})
    on, off = [hn.run(static, control=c) for c in (lambda e: e.prefetch(0, True), lambda e: e.prefetch(0, False))]
    assert not off.cached and on["hints"] != off["hints"]


def test_a_sweep_gives_each_point_a_control_plane_of_its_own() -> None:
    base = scenario(**{"placement.mode": "invalidate"})
    frame = hn.sweep(base, {"seed": [1, 2]}, control=Grow)
    alone = [hn.run(base.with_({"seed": s}), control=Grow) for s in (1, 2)]
    assert all(r.cached for r in alone) and frame["llc_wb"].to_list() == [r["llc_wb"] for r in alone]
    assert frame["key"].to_list() == [r.key for r in alone]
    with pytest.raises(HostnetError, match="jobs and control do not go together"):
        hn.sweep(base, {"seed": [1]}, control=Grow, jobs=2)


@pytest.mark.parametrize("what", ["list", "print", "object", "class attribute"])
def test_what_cannot_be_told_is_not_cached(what) -> None:
    from hostnet.control import digest

    seen: list[float] = []
    shared = type("Shared", (), {"seen": seen, "__call__": lambda self, epoch: self.seen.append(epoch.now_us)})
    planes = {
        "list": lambda epoch: seen.append(epoch.now_us),
        "print": lambda epoch: print(epoch.now_us),
        "object": Grow(),
        "class attribute": shared,
    }
    assert digest(planes[what], "1 us") is None and digest(follow, "1 us") != digest(Grow, "1 us") is not None
