"""Worker processes and the result cache: same answers with any number of them, nothing lost when one dies."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

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


def test_points_that_fill_the_caches_alike_give_the_results_they_have_alone(tiny, tmp_path):
    data = tiny.to_dict()
    del data["run"]["warmup_requests"]
    data["override"] = {"caches": {"llc": {"size": "2304 KiB"}}}  # fills in a sixteenth of the time
    rates = [hn.Scenario(data).with_({"traffic.rate": f"{n} Mrps", "run.requests": 1000 * n}) for n in (1, 2, 3)]
    together = runner.run_many([s.resolve() for s in rates], jobs=1, cache=Cache(tmp_path / "together"))
    alone = [hn.run(s, cache=Cache(tmp_path / "alone")) for s in rates]
    assert [r.metrics for r in together] == [r.metrics for r in alone]


def test_a_worker_gets_points_that_fill_the_caches_alike_one_after_another(monkeypatch):
    """Points a1, a2 and a3 fill the caches alike, and so do b1 and b2; the caches of c fill like no others."""
    monkeypatch.setattr(runner._core, "fill_key", lambda text: None if text == "c" else text[0])
    queue = runner._Queue([{name: name} for name in ("a1", "b1", "c", "a2", "b2", "a3")])

    def pop(filled):
        points, now, keep = queue.pop(filled)
        return *points, now, keep

    assert pop(None) == ("a1", "a", True)
    assert pop(None) == ("b1", "b", True), "another worker fills a's caches"
    assert pop("a") == ("a2", "a", True)
    assert pop("a") == ("a3", "a", False)
    name, c, keep = pop("a")
    assert (name, keep) == ("c", False), "the other worker has filled b's caches"
    assert pop(c) == ("b2", "b", False), "nothing else is left"
    assert not queue


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


@pytest.mark.parametrize(
    "damage",
    [
        lambda t: t.replace('"throughput_mrps":', '"throughput_mrps":9'),
        lambda t: t.replace('"result": {', '"result": {"metrics": 3, '),
        lambda t: t[:-1],
        lambda t: json.dumps(json.loads(t)["result"]),
        lambda t: '{"metrics": {}, "spec": {}}',
        lambda t: "[" * 5000,
        lambda t: "",
    ],
    ids=["a number", "a key", "an end", "no digest", "a shape", "nested", "empty"],
)
def test_a_damaged_entry_is_computed_again(tiny, damage):
    first = hn.run(tiny)
    entry = Cache().path(first.key)
    good = entry.read_text()
    entry.write_text(damage(good))
    again = hn.run(tiny)
    assert not again.cached and again.metrics == first.metrics
    assert hn.run(tiny).cached


def test_an_entry_under_another_key_is_not_taken_for_its_own(tiny):
    one, two = hn.run(tiny), hn.run(tiny.with_(seed=2))
    cache = Cache()
    cache.path(one.key).write_text(cache.path(two.key).read_text())
    assert cache.get(one.key) is None and cache.get(two.key) is not None


def test_a_result_of_another_shape_is_no_entry(tiny):
    """Even with a digest that fits: what an older format stored is not handed out."""
    cache = Cache()
    cache.put("0" * 64, json.dumps({"metrics": {"throughput_mrps": "fast"}}))
    assert cache.get("0" * 64) is None


def test_a_cache_that_changes_under_a_run_is_one_sentence(tiny, monkeypatch):
    monkeypatch.setattr(Cache, "get", lambda self, key: None)
    with pytest.raises(hn.RunFailed, match="cannot be read back"):
        hn.run(tiny)


def test_the_key_does_not_depend_on_the_bytes_of_the_module_nor_on_where_a_checkout_lies(tiny, tmp_path, monkeypatch):
    from hostnet import _core, cache

    assert str(cache.engine_id()).startswith(_core.version()) and "rustc" in cache.engine_id()
    monkeypatch.setattr(_core, "__file__", str(tmp_path / "nowhere.so"))
    cache.engine_id.cache_clear()
    spec = json.loads(tiny.resolve())
    keys = set()
    for checkout in ("one", "two"):
        capture = tmp_path / checkout / "a.pcap"
        capture.parent.mkdir()
        capture.write_bytes(b"same")
        spec["traffic"]["pcap"] = {"file": str(capture)}
        keys.add(key_of(json.dumps(spec)))
    assert len(keys) == 1


def test_a_result_from_the_cache_has_the_spec_that_was_asked_for(tiny):
    assert hn.run(tiny).data == hn.run(tiny).data
    assert hn.run(tiny).spec == json.loads(tiny.resolve())


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
            killed.extend(task["points"])
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


def test_a_worker_ends_with_its_parent_though_its_input_stays_open():
    start = (
        "import subprocess, sys, time; w = subprocess.Popen([sys.executable, '-m', 'hostnet._worker']); "
        "print(w.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", start], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        worker = int(parent.stdout.readline())
        time.sleep(2)  # the worker is up
        os.kill(worker, 0)
        parent.kill()
        for _ in range(100):
            if not alive(worker):
                return
            time.sleep(0.1)
        os.kill(worker, signal.SIGKILL)
        pytest.fail("the worker was still there after ten seconds")


def alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return False


def test_longest_first(tiny):
    long, short = ({"run": {"load": load, "requests": 1000}} for load in ("peak_slo", "fixed"))
    assert runner.estimated_cost(long) > runner.estimated_cost(short)


@pytest.mark.parametrize("jobs", [0, -1, 1.5, "2"])
def test_jobs_must_be_positive_and_whole(tiny, jobs):
    for run in (hn.sweep, lambda sc, vary, jobs: hn.repeat(sc, 2, jobs=jobs)):
        with pytest.raises(hn.HostnetError, match=f"jobs = {jobs!r} is not a number of worker processes"):
            run(tiny, {"seed": [1, 2]}, jobs=jobs)


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
