"""A watched run: what the terminal shows, and that the result is that of a plain run."""

import io
import json

import pytest
from rich.console import Console

import hostnet
from hostnet.watch import Watched, watch


@pytest.fixture
def short():
    sc = hostnet.Scenario.load("l2fwd-bursts")
    sc.run.requests, sc.run.warmup_requests = 20_000, 2_000
    return sc


def snapshot(**changes):
    return {
        "phase": "measurement",
        "now_us": 120.0,
        "window_us": 20.0,
        "completed": 40,
        "offered": 50,
        "lost": 5,
        "latency_us": [1.0, 2.0, 3.0, 4.0],
        "memory_gbs": 7.5,
        "queues": [["packets at the NIC on port 0 of a very long name", "packets", 8]],
        "losses": [["the receive buffer is full because of a very long sentence that no terminal line would hold", 5]],
    } | changes


def drawn(seen):
    console = Console(width=80, file=io.StringIO(), record=True)
    console.print(seen.picture())
    return console.export_text()


def test_rates_are_those_since_the_last_look_and_of_the_window():
    seen = Watched("mine")
    seen.see(0.5, snapshot())
    seen.see(0.6, snapshot(now_us=130.0, window_us=30.0, completed=100, lost=0, losses=[]))
    assert seen.rate == pytest.approx(60 / 10) and seen.mean() == pytest.approx(100 / 30)
    # Another window begins from zero.
    seen.see(0.7, snapshot(now_us=140.0, window_us=4.0, completed=12))
    assert seen.rate == pytest.approx(3.0)


def test_the_picture_fits_80_columns_and_shows_what_the_run_does():
    seen = Watched("mine")
    assert "preparing" in drawn(seen)
    seen.see(0.5, snapshot())
    text = drawn(seen)
    assert max(map(len, text.splitlines())) <= 80
    for part in ("mine", "measuring", "50 %", "2 Mrps", "5 of 50 offered (10.00 %)", "p99 3", "7.5 GB/s", "8 packets"):
        assert part in text, part


def test_a_watched_run_is_the_run(short, capsys):
    plain = hostnet.run(short).metrics
    out = io.StringIO()
    live = watch(short, Console(width=80, file=out, force_terminal=True))
    assert {k: v for k, v in live.metrics.items()} == dict(plain)
    assert "l2fwd-bursts" in out.getvalue() and "Mrps" in out.getvalue()


def test_without_a_terminal_a_watched_run_prints_lines_and_the_result(cli):
    args = ("--set", "run.requests=20000", "--set", "run.warmup_requests=2000")
    done = cli("watch", "l2fwd-bursts", *args, check=0)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("l2fwd-bursts: ") and " Mrps" in lines[0] and "\x1b" not in done.stdout
    assert any("throughput_mrps" in line for line in lines)
    # The cache keeps the result.
    again = json.loads(cli("run", "l2fwd-bursts", *args, "--json", check=0).stdout)
    assert again["metrics"]["throughput_mrps"] > 0
