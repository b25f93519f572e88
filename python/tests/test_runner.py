"""Worker processes and the result cache: same answers with any number of them, nothing lost when one dies."""

import json
import os
import signal
import threading
import time

import pytest

import hostnet as hn
from hostnet import runner
from hostnet.cache import Cache, key_of

VARY = {"placement.ways": [2, 4], "seed": [1, 2, 3]}


def specs_of(scenario, n=4):
    return [scenario.with_(seed=i + 1).resolve() for i in range(n)]


def test_one_and_two_workers_write_the_same_bytes(tiny, tmp_path):
    files = []
    for jobs in (1, 2):
        frame = hn.sweep(tiny, VARY, jobs=jobs, cache=Cache(tmp_path / f"cache{jobs}"))
        frame.write_csv(tmp_path / f"{jobs}.csv")
        files.append((tmp_path / f"{jobs}.csv").read_bytes())
    assert files[0] == files[1]
    assert frame["seed"].to_list() == [1, 2, 3, 1, 2, 3], "rows in the order asked for"


def test_the_second_run_computes_nothing(tiny):
    assert not hn.run(tiny).cached
    assert hn.run(tiny).cached
    assert not hn.run(tiny.with_(seed=2)).cached


def test_equal_points_run_once(tiny):
    cache, spec = Cache(), tiny.resolve()
    a, b = runner.run_many([spec, spec], cache=cache)
    assert a.data == b.data
    assert len(list(cache.root.rglob("*.json"))) == 1


def test_a_truncated_entry_is_computed_again(tiny):
    first = hn.run(tiny)
    entry = Cache().path(first.key)
    entry.write_text(entry.read_text()[:100])
    again = hn.run(tiny)
    assert not again.cached and again.metrics == first.metrics


def test_a_capture_with_other_contents_is_another_key(tiny, tmp_path):
    capture = tmp_path / "a.pcap"
    spec = json.loads(tiny.resolve())
    spec["traffic"]["pcap"] = {"file": str(capture)}
    keys = set()
    for contents in (b"one", b"three"):
        capture.write_bytes(contents)
        keys.add(key_of(json.dumps(spec)))
    assert len(keys) == 2


def test_a_killed_worker_loses_only_its_point(tiny, monkeypatch):
    """Four points, one worker: it is killed while the third runs, then the same call finishes the rest."""
    cache, specs, killed = Cache(), specs_of(tiny), []
    original = runner._Worker.run

    def kill_on_third(self, task, on_progress):
        if len(list(cache.root.rglob("*.json"))) == 2 and not killed:
            killed.append(task["key"])
            os.kill(self.process.pid, signal.SIGKILL)
            self.process.wait()
        return original(self, task, on_progress)

    monkeypatch.setattr(runner._Worker, "run", kill_on_third)
    with pytest.raises(hn.RunFailed, match="killed by signal 9; 2 of 4 points are saved"):
        runner.run_many(specs, jobs=1, cache=cache)
    assert len(killed) == 1 and not cache.path(killed[0]).exists()
    resumed = runner.run_many(specs, jobs=1, cache=cache)
    assert [r.cached for r in resumed].count(True) == 2
    assert [r.seed for r in resumed] == [1, 2, 3, 4]


def test_an_interrupt_stops_the_workers(tiny):
    """Ctrl-C in the parent: KeyboardInterrupt comes out, no worker lives on."""
    slow = [tiny.with_({"run.requests": 50_000_000}, seed=i).resolve() for i in (1, 2)]
    started = []
    original = runner._Worker.__init__

    def remember(self):
        original(self)
        started.append(self.process)

    runner._Worker.__init__ = remember
    ctrl_c = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    # A shell starts background jobs with SIGINT ignored, and children inherit that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        ctrl_c.start()
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            runner.run_many(slow, jobs=2)
    finally:
        ctrl_c.cancel()
        signal.signal(signal.SIGINT, before)
        runner._Worker.__init__ = original
    assert time.monotonic() - began < 10
    assert len(started) == 2 and all(p.poll() is not None for p in started)


def test_longest_first(tiny):
    long, short = ({"run": {"load": load, "requests": 1000}} for load in ("peak_slo", "fixed"))
    assert runner.estimated_cost(long) > runner.estimated_cost(short)


@pytest.mark.parametrize("jobs", [0, -1])
def test_jobs_must_be_positive(tiny, jobs):
    with pytest.raises(hn.HostnetError, match="jobs"):
        runner.run_many([tiny.resolve()], jobs=jobs)


def test_a_result_survives_a_round_trip(tiny, tmp_path):
    result = hn.run(tiny)
    result.save(tmp_path / "r.json")
    again = hn.Result.load(tmp_path / "r.json")
    assert again.data == result.data
    assert result.to_frame().height == 1
    assert result["throughput_mrps"] == result.metrics["throughput_mrps"]
    with pytest.raises(hn.HostnetError, match="no table 'nope'"):
        result.table("nope")
    (tmp_path / "r.json").write_text('{"metrics": 1}')
    with pytest.raises(hn.HostnetError, match="not a saved hostnet result"):
        hn.Result.load(tmp_path / "r.json")
