"""The load rules of a search, against formulae of queues with a fixed service time.

A forwarder whose every packet stalls its in-order core for a microsecond is a queue with a fixed service time. With Poisson gaps it
is M/D/1, whose waiting time W has the tail P(W > x) = C exp(-theta x) of its dominant pole: with the service time as the unit of
time and a load of rho, theta > 0 solves rho (exp(theta) - 1) = theta, and C = (1 - rho) / (rho exp(theta) - 1). With even gaps it
is D/D/1, in which no packet waits up to a load of 1.
"""

import json
import math

import pytest

import hostnet
from hostnet import studies
from hostnet._toml import tomllib
from hostnet.specs import Scenario

QUEUE = """
name = "a queue with a fixed service time"
platform = "sim24"

[override.core]
pipeline = "in_order"

[override.queue_pair]
quirks.send_completions = false

[placement]
policy = "ideal"

[rings]
rx_buffers = 2048
buffer_size = "64 B"

[[tenant]]
name = "l3fwd"
cores = {cores}
app = {{ kind = "l3fwd", rules = 16 }}

[traffic]
arrivals = "{arrivals}"
spread = "random"
packet = "64 B"
spikes = {{ probability = 1.0, min = "1 us", max = "1 us" }}

[run]
requests = {requests}
warmup_requests = 2000
{run}
"""


def bisected(f, low, high):
    """The place between `low` and `high` where `f` turns from negative to positive."""
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if f(middle) > 0 else (middle, high)
    return low


def tail(rho, x):
    """P(W > x) of M/D/1 at a load of `rho`; the unit is the service time."""
    theta = bisected(lambda t: rho * (math.exp(t) - 1) - t, 1e-9, 50.0)
    return (1 - rho) / (rho * math.exp(theta) - 1) * math.exp(-theta * x)


def highest_load(multiple):
    """The load at which 1 % of the packets of M/D/1 stay for more than `multiple` service times, of which they wait all but one."""
    return bisected(lambda rho: tail(rho, multiple - 1) - 0.01, 1e-6, 1 - 1e-6)


def test_the_formula_is_that_of_a_heavily_loaded_queue():
    """Near a load of 1, W is exponential with the mean 1 / (2 (1 - rho)): ln 100 of it within 99 services is 1 - rho = 0.0233."""
    assert 1 - highest_load(100) == pytest.approx(math.log(100) / (2 * 99), rel=0.03)
    # Waiting times of M/D/1 at half load have the mean rho / (2 (1 - rho)) = 1/2, which the tail must not contradict.
    assert tail(0.5, 4) < 0.5 / 4


def peak(run, arrivals="poisson", cores=1, requests=60_000):
    text = QUEUE.format(run=run, arrivals=arrivals, cores=cores, requests=requests)
    found = hostnet.run(Scenario(tomllib.loads(text)), quiet=True)
    return found["throughput_mrps"], found["service_mean_us"] / cores, found


# The finite window, the search's tolerance and the 40 ns outside the core move the load by less than this.
NEAR = 0.015


# A precision ends windows whose rate is clear early; the load is the formula's with and without.
PRECISE = '\nprecision = 0.02\nprecision_of = ["throughput_mrps"]'


@pytest.mark.parametrize(
    "multiple, cores, requests, more",
    [(10, 1, 60_000, ""), (10, 4, 240_000, PRECISE), (30, 1, 150_000, PRECISE)],
)
def test_a_peak_within_an_objective_of_latency_has_the_load_of_the_formula(multiple, cores, requests, more):
    """Packets that go to random cores make each core a queue of its own, so more cores carry the same load each."""
    run = f'load = "peak_slo"\nslo_multiple = {multiple}\nsearch_tolerance = 0.004{more}'
    mrps, service, found = peak(run, cores=cores, requests=requests)
    assert mrps * service == pytest.approx(highest_load(multiple), abs=NEAR)
    steps = found.table("search")
    shortened = steps["measured_requests"] < 0.9 * requests
    assert shortened.any() == bool(more)
    # The interval of the rate reaches up to the lowest that failed, as far as rates that were offered and found agree.
    failed = steps.filter(~steps["ok"])["rate_mrps"].min() / found["offered_mrps"]
    for name in ("offered_mrps", "tenant.l3fwd.offered_mops"):
        assert found.interval(name)[1] >= found[name] * failed * 0.995, name


def test_a_peak_without_drops_has_no_interval():
    """Which rate loses the first packet depends on the rarest event of the window, of which one run says nothing."""
    _, _, found = peak('load = "peak_nodrop"', requests=20_000)
    for name in ("offered_mrps", "throughput_mrps", "tenant.l3fwd.throughput_mops", "tenant.l3fwd.offered_mops"):
        assert found[name] > 0 and found.interval(name) is None, name
    assert found.interval("lat_mean_us") is not None


@pytest.mark.parametrize("cores, more", [(1, ""), (4, ""), (4, PRECISE)])
def test_a_peak_on_a_grid_of_even_gaps_is_the_last_step_that_the_cores_carry(cores, more):
    """No packet waits below a load of 1, and no rate beyond it is sustained but for the 1 % that may be lost."""
    step = 0.09 * cores
    run = f'load = "peak_loss"\nloss = 0.01\nstep = "{step} Mrps"{more}'
    mrps, service, found = peak(run, "fixed", cores)
    assert found["offered_mrps"] == pytest.approx(math.floor(1.01 / service / step) * step, rel=0.005)
    assert mrps > 0.99 * found["offered_mrps"]
    assert (found.table("search")["measured_requests"].min() < 30_000) == bool(more)


def test_a_window_in_which_queues_grow_does_not_end_before_they_are_full():
    """At 1.2 Mrps, one core of about 1 Mrps fills a ring of 2048 after some 10,000 packets, more than an eighth of the window.
    What exceeds its rate is lost, but for what the ring takes, of which the warm-up has filled a part."""
    text = QUEUE.format(run=f'load = "fixed"{PRECISE}', arrivals="poisson", cores=1, requests=40_000)
    found = hostnet.run(Scenario(tomllib.loads(text)).with_({"traffic.rate": "1.2 Mrps"}), quiet=True)
    offered = found["offered_mrps"] * found.measure_us
    excess = 1 - 1 / (found["offered_mrps"] * found["service_mean_us"])
    assert excess - 2048 / offered - 0.01 < found["drop_rate"] < excess + 0.01
    assert offered > 40_000, "a whole window"


# ---- the rules of Sweeper's studies ------------------------------------------------------------------------------


def runs(figure, platform="sim24"):
    study = studies.on(studies.get("sweeper", figure), platform)
    return [json.loads(Scenario.load(p.base).with_(p.changes).resolve()) for p in study.points(False)]


@pytest.mark.parametrize("figure", ["fig1", "fig5", "fig6-left", "fig8"])
def test_the_key_value_store_has_the_text_s_rule_and_beside_it_that_of_the_runs(figure):
    for spec in runs(figure):
        run, traffic = spec["run"], spec["traffic"]
        assert (run["load"], run["slo_multiple"], run["step"]) == ("peak_slo", 100.0, None)
        assert (traffic["arrivals"], traffic["spread"]) == ("poisson", "shortest_queue")
    for spec in runs(figure, "sim24-runs"):
        run, traffic = spec["run"], spec["traffic"]
        assert (run["load"], run["loss"], run["step"]) == ("peak_loss", 0.01, "3.2 Mrps")
        assert (traffic["arrivals"], traffic["spread"]) == ("fixed", "shortest_queue")


@pytest.mark.parametrize("figure", ["fig9a", "fig9b"])
def test_two_tenants_run_on_table_i_or_as_in_the_runs(figure):
    for text, run in zip(runs(figure), runs(figure, "sim24-runs"), strict=True):
        clocks = [s["platform"]["core"]["clock"] for s in (text, run)]
        memory = [s["platform"]["memory"]["standard"] for s in (text, run)]
        assert clocks == ["3.2 GHz", "2.5 GHz"] and memory == ["DDR4-3200", "DDR4-2400"]
        assert [s["run"]["load"] for s in (text, run)] == ["peak_slo", "peak_loss"]
        assert [s["traffic"]["arrivals"] for s in (text, run)] == ["poisson", "fixed"]
        xmem = [s["tenant"][1] for s in (text, run)]
        if figure == "fig9b":
            assert [t["llc_ways"] for t in xmem] == ["0-11", "0-9"]
            assert [t["app"]["array"] for t in xmem] == ["2 MiB", "2560 KiB"]


def test_stalls_meet_poisson_arrivals_at_random_cores_under_both_rules():
    assert runs("fig10a") == runs("fig10a", "sim24-runs")
    for spec in runs("fig10a"):
        assert spec["run"]["load"] == "peak_nodrop"
        assert (spec["traffic"]["arrivals"], spec["traffic"]["spread"]) == ("poisson", "random")
