"""Points on executors, whose workers may be on other machines: the same answers, and one sentence when something is wrong."""

import json
import os
import subprocess
import sys
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context

import pytest

import hostnet as hn
from hostnet import cluster, runner
from hostnet.cache import Cache, key_of

VARY = {"placement.ways": [2, 4], "seed": [1, 2]}


def processes(n=2):
    return ProcessPoolExecutor(n, mp_context=get_context("spawn"))


class Counting(Executor):
    """Runs what it is given at once, and counts it."""

    def __init__(self, run=None):
        self.run, self.count = run, 0

    def submit(self, fn, /, *args, **kwargs):
        self.count += 1
        future = Future()
        try:
            future.set_result((self.run or fn)(*args, **kwargs))
        except BaseException as e:
            future.set_exception(e)
        return future


def test_workers_of_an_executor_give_the_same_table(tiny, tmp_path):
    here = hn.sweep(tiny, VARY, jobs=1, cache=Cache(tmp_path / "here"))
    with processes() as there:
        frame = hn.sweep(tiny, VARY, jobs=there, cache=Cache(tmp_path / "there"))
    assert frame.write_csv() == here.write_csv()


def test_points_in_the_cache_do_not_leave_this_machine(tiny):
    executor = Counting()
    hn.sweep(tiny, {"seed": [1, 2]}, jobs=executor)
    hn.sweep(tiny, {"seed": [1, 2, 3]}, jobs=executor)
    assert executor.count == 3


def test_points_of_one_simulation_are_one_task_and_keep_order_and_keys(tiny, tmp_path):
    """Other metrics decide in each, so that each window has a length of its own."""
    long = tiny.with_({"run.requests": 40_000, "run.precision": 0.015})
    sets = ["throughput_mrps"], ["lat_mean_us"], ["lat_p99_us"]
    specs = [long.with_({"name": m, "run.precision_of": [m]}).resolve() for (m,) in sets]
    specs.insert(1, long.with_({"run.precision_of": ["lat_mean_us"]}, seed=2).resolve())
    alone = [runner.run_many([s], jobs=1, cache=Cache(tmp_path / "alone"))[0] for s in specs]
    assert len({r.measure_us for r in alone}) == 4

    def same(results):
        for result, other, spec in zip(results, alone, specs, strict=True):
            assert result.key == key_of(spec) and result.spec == json.loads(spec)
            assert {**result.data, "wall_s": 0} == {**other.data, "wall_s": 0}

    for jobs in (executor := Counting(), 1):
        same(runner.run_many(specs, jobs=jobs, cache=(cache := Cache(tmp_path / str(jobs)))))
    assert executor.count == 2
    for missing in (specs[0], specs[3]):
        cache.path(key_of(missing)).unlink()
    again = runner.run_many(specs, jobs=(executor := Counting()), cache=cache)
    same(again)
    assert executor.count == 1 and [r.cached for r in again] == [False, True, True, False]


def test_a_study_runs_on_an_executor(tmp_path):
    with ThreadPoolExecutor(2) as executor:
        run = hn.study("hostnetwork", "fig6a", quick=True, precision=0.2, jobs=executor, cache=Cache(tmp_path))
    assert len(run.frame) == len(run.points)


def test_another_engine_or_capture_is_refused(tiny, monkeypatch):
    spec = tiny.resolve()
    assert "another hostnet" in cluster.execute({"0" * 64: spec})["error"]
    monkeypatch.setattr(cluster, "engine_id", lambda: "9.9.9+other")
    with pytest.raises(hn.HostnetError, match=r"another hostnet \(9\.9\.9\+other\).*install the same"):
        runner.run_many([spec], jobs=Counting(lambda points: cluster.execute({"0" * 64: spec})))


def test_a_point_that_cannot_run_says_why_and_the_others_are_called_off(tiny):
    class Later(Counting):
        """The first point fails; the others never begin."""

        def submit(self, fn, /, points):
            if self.count == 0:
                return super().submit(lambda *_: cluster.failure(hn.SpecError("rings.rx_buffers: no.")), points)
            self.pending.append(Future())
            return self.pending[-1]

        pending: list[Future] = []

    executor = Later(lambda *_: cluster.failure(hn.SpecError("rings.rx_buffers: no.")))
    with pytest.raises(hn.SpecError, match="rx_buffers"):
        hn.sweep(tiny, {"seed": [1, 2, 3]}, jobs=executor)
    assert len(executor.pending) == 2 and all(f.cancelled() for f in executor.pending)


def test_an_engine_that_panics_is_a_defect(tiny):
    with pytest.raises(hn.RunFailed, match="a defect of hostnet: KeyError"):
        hn.sweep(tiny, {"seed": [1]}, jobs=Counting(lambda *_: cluster.failure(KeyError("x"))))


def _dies(points):
    os._exit(9)


def test_a_lost_worker_is_one_sentence_and_finished_points_stay(tiny):
    hn.sweep(tiny, {"seed": [1]})
    with processes(1) as pool:

        class Dying(Counting):
            def submit(self, fn, /, *args, **kwargs):
                return pool.submit(_dies, *args)

        with pytest.raises(
            hn.RunFailed, match=r"a worker of the cluster failed \(BrokenProcessPool.*0 of 1 points are saved"
        ) as e:
            hn.sweep(tiny, {"seed": [1, 2]}, jobs=Dying())
    assert "\n" not in str(e.value)
    assert Cache().get(key_of(tiny.with_(seed=1).resolve())) is not None


@contextmanager
def dask(workers):
    """A scheduler and workers on this machine; its address."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=None, host="127.0.0.1", silence_logs=50
    ) as c:
        yield c.scheduler_address


def cli(*args, cwd=None):
    return subprocess.run(
        [sys.executable, "-c", "from hostnet.cli import main; main()", *args], capture_output=True, text=True, cwd=cwd
    )


def test_the_command_line_uses_the_workers_of_a_dask_scheduler(tiny, tmp_path):
    vary = [
        "sweep",
        "quadrant1",
        "--set",
        "run.time=20 us",
        "--set",
        "run.warmup_time=0 us",
        "--vary",
        "seed=1,2,3",
        "-q",
    ]
    with dask(2) as address:
        there = cli(*vary, "--cluster", address, "--out", str(tmp_path / "there"), cwd=tmp_path)
    here = cli(*vary, "--out", str(tmp_path / "here"), cwd=tmp_path)
    assert there.returncode == here.returncode == 0, there.stderr + here.stderr
    assert there.stdout == here.stdout
    assert (tmp_path / "there/sweep.csv").read_bytes() == (tmp_path / "here/sweep.csv").read_bytes()


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--cluster", "tcp://127.0.0.1:9"), "--cluster tcp://127.0.0.1:9: no Dask scheduler answers there"),
        (
            ("--cluster", "nonsense://x:1"),
            "--cluster nonsense://x:1: is no address of a Dask scheduler; give its address, such as",
        ),
        (("--cluster", "node1"), "--cluster node1: is no address"),
        (("--cluster", "tcp://127.0.0.1:9", "--jobs", "2"), "give one of them"),
    ],
)
def test_a_cluster_that_is_not_there_is_one_sentence(tmp_path, monkeypatch, args, says):
    monkeypatch.setattr(cluster, "PATIENCE_S", 1)
    from typer.testing import CliRunner

    from hostnet.cli import app

    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["sweep", "quadrant1", "--vary", "seed=1,2", "-q", *args])
    assert isinstance(done.exception, hn.HostnetError) and says in str(done.exception), done.output
    assert "\n" not in str(done.exception)


def test_a_scheduler_without_workers_is_waited_for_and_then_refused(monkeypatch, capsys):
    pytest.importorskip("distributed")
    monkeypatch.setattr(cluster, "PATIENCE_S", 3)
    refused = pytest.raises(hn.HostnetError, match="the scheduler has no worker; start some, such as `dask worker tcp:")
    with dask(0) as address, refused, cluster.connect(address):
        pass
    assert f"the scheduler at {address} has no worker yet; waiting 3 s for one." in capsys.readouterr().err


def test_without_dask_the_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(hn.HostnetError, match="pip install distributed"), cluster.connect("tcp://node1:8786"):
        pass
