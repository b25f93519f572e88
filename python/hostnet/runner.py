"""Runs points on worker processes, through the result cache.

Workers are separate Python processes driven over pipes, rather than a
``multiprocessing`` pool. Users' scripts therefore need no ``if __name__ == "__main__"`` guard, notebooks work, and a
killed worker loses only the point that it was running.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from numbers import Integral
from pathlib import Path
from typing import Any, TypeAlias

from . import _core, capture
from .cache import Cache, chosen, key_of, result_of
from .cluster import run_on
from .errors import HostnetError, RunFailed, raise_for
from .progress import Progress
from .results import Result, ResultData

Jobs: TypeAlias = "int | Executor | None"
"""Worker processes on this machine (one per core by default), or an executor whose workers may be on others."""

# Number of runs of its point that a search takes (only used to order and weight work).
SEARCH_WEIGHT = {"peak_slo": 10.0, "peak_nodrop": 10.0, "peak_loss": 10.0, "saturate": 1.0, "fixed": 1.0, "none": 0.0}


def default_jobs() -> int:
    """The number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def estimated_cost(spec: dict[str, Any]) -> float:
    """An estimate of a point's wall time, in arbitrary units; running the longest points first keeps all workers busy
    to the end."""
    run = spec.get("run") or {}
    return 1.0 + float(run.get("requests") or 0) * SEARCH_WEIGHT.get(str(run.get("load")), 1.0)


class _WorkerDied(RunFailed):
    """A worker process ended before its point did."""


class _Worker:
    """One worker process and the pipe to it."""

    def __init__(self) -> None:
        # The package's own location comes first, so that parent and worker run the same hostnet.
        here = str(Path(__file__).parent.parent)
        env = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH")))))
        # A separate session: Ctrl-C reaches only the parent, which then stops its workers.
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hostnet._worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env=env,
            start_new_session=True,
        )
        assert self.process.stdin and self.process.stdout, "both are pipes"
        self._requests, self._replies = self.process.stdin, self.process.stdout

    def run(self, task: Mapping[str, Any], on_progress: Callable[[float], None]) -> None:
        """Run the points of one simulation to their end. Raises RunFailed when the engine or the process dies, and
        SpecError for an invalid scenario."""
        try:
            self._requests.write(json.dumps(task) + "\n")
            self._requests.flush()
        except BrokenPipeError:
            pass  # the process has ended; reading to the end below shows how
        for line in self._replies:
            message = json.loads(line)
            if "progress" in message:
                on_progress(message["progress"])
            elif "done" in message:
                return
            else:
                raise_for(message)
        code = self.process.wait()
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        raise _WorkerDied(f"a worker process {how}")

    def close(self) -> None:
        self.process.wait()
        with suppress(BrokenPipeError):  # text that was still buffered for a dead process
            self._requests.close()
        self._replies.close()


def run_many(
    specs: Sequence[str],
    *,
    jobs: Jobs = None,
    cache: Cache | None = None,
    progress: Progress | None = None,
    label: str = "points",
    cost: Callable[[dict[str, Any]], float] = estimated_cost,
    pcap: Path | None = None,
) -> list[Result]:
    """Run resolved specs and return their results in the order given, whatever ``jobs`` is: a number of worker
    processes on this machine, one per core by default, or an executor whose workers may be on others.

    Points already in the cache are not run again, and equal points run once. Points that differ in their names and in
    ``run.precision_of`` alone are one simulation, which goes on until the last of them is known.
    ``cost`` orders the work, longest first. With ``pcap``, the only point runs in any case, and the packets that
    returned are captured in that file. Raises SpecError or RunFailed for the first point that fails, after stopping the
    others; points that had finished stay in the cache. KeyboardInterrupt passes through with the workers stopped.
    """
    if not isinstance(jobs, (Executor, type(None))) and (not isinstance(jobs, (int, Integral)) or jobs < 1):
        raise HostnetError(f"jobs = {jobs!r} is not a number of worker processes; give 1 or more.")
    cache = chosen(cache)
    keys = [key_of(s) for s in specs]
    found = {k: r for k in dict.fromkeys(keys) if pcap is None and (r := cache.get(k)) is not None}
    todo = {k: s for k, s in zip(keys, specs, strict=True) if k not in found}
    if todo:
        cache.check()
        costs = {k: cost(json.loads(s)) for k, s in todo.items()}
        tasks = sorted(_simulations(todo), key=lambda points: (-max(costs[k] for k in points), min(points)))
        shares = {k: costs[k] / len(points) for points in tasks for k in points}
        with (progress or Progress(quiet=True)).stage(label, shares) as report:
            if isinstance(jobs, Executor):
                run_on(jobs, tasks, cache, report)
            else:
                _drain(tasks, min(jobs or default_jobs(), len(tasks)), cache, report, pcap)
        found.update((k, _just_stored(cache, k)) for k in todo)
    results = [Result(result_of(found[k], s), key=k, cached=k not in todo) for k, s in zip(keys, specs, strict=True)]
    capture.warn(r.data for r in results)
    return results


def _simulations(points: Mapping[str, str]) -> list[dict[str, str]]:
    """The points (key to resolved spec) of each simulation: those that differ in ``name`` and ``run.precision_of`` alone."""
    simulations: dict[str, dict[str, str]] = {}
    for key, text in points.items():
        spec = json.loads(text)
        del spec["name"], spec["run"]["precision_of"]
        simulations.setdefault(json.dumps(spec, sort_keys=True), {})[key] = text
    return list(simulations.values())


def _just_stored(cache: Cache, key: str) -> ResultData:
    data = cache.get(key)
    if data is None:
        raise RunFailed(
            f"{cache.path(key)}: cannot be read back; something else changes {cache.root}, or its disk fails."
        )
    return data


class _Queue:
    """Simulations that wait for a worker, the longest first. A worker gets those whose caches fill in the same way one after
    another, so that it fills them once."""

    def __init__(self, tasks: Sequence[Mapping[str, str]]) -> None:
        self._left: dict[str, deque[Mapping[str, str]]] = {}
        for n, points in enumerate(tasks):
            key = _core.fill_key(next(iter(points.values()))) if len(tasks) > 1 else None
            self._left.setdefault(key or str(n), deque()).append(points)
        self._busy: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._left)

    def pop(self, filled: str | None) -> tuple[Mapping[str, str], str, bool]:
        """The next simulation for a worker that has ``filled`` the caches of its last one, what fills its caches, and whether a
        further simulation has the same. Simulations whose caches no other worker has filled come first."""
        self._busy.discard(filled or "")
        free = (key for key in self._left if key not in self._busy)
        key = filled if filled in self._left else next(free, next(iter(self._left)))
        points = self._left[key].popleft()
        if not self._left[key]:
            del self._left[key]
        self._busy.add(key)
        return points, key, key in self._left


def _drain(
    tasks: Sequence[Mapping[str, str]],
    jobs: int,
    cache: Cache,
    report: Callable[[str, float], None],
    pcap: Path | None = None,
) -> None:
    queue, lock = _Queue(tasks), threading.Lock()
    workers: list[_Worker] = []
    failures: list[BaseException] = []
    root = str(cache.root.absolute())
    more = {} if pcap is None else {"pcap": str(pcap.resolve())}

    def work(worker: _Worker) -> None:
        filled = None
        while not failures:
            with lock:
                if not queue:
                    return
                points, filled, keep = queue.pop(filled)

            def on_progress(fraction: float, keys: Iterable[str] = points) -> None:
                for key in keys:
                    report(key, fraction)

            try:
                worker.run({"points": points, "cache": root, "keep": keep, **more}, on_progress)
            except Exception as e:
                failures.append(e)
                return
            on_progress(1.0)

    threads: list[threading.Thread] = []
    try:
        for _ in range(jobs):
            workers.append(_Worker())
            threads.append(threading.Thread(target=work, args=(workers[-1],), daemon=True))
            threads[-1].start()
        # Joined in slices, so that Ctrl-C is noticed immediately; a failure does not wait for the other points.
        while any(t.is_alive() for t in threads) and not failures:
            for t in threads:
                t.join(0.05)
    finally:
        for w in workers:
            w.process.kill()
        for t in threads:  # the pipe of a dead worker ends, and so does its thread
            t.join()
        for w in workers:
            w.close()
    if failures and isinstance(failures[0], _WorkerDied):
        saved = [cache.path(k).is_file() for points in tasks for k in points]
        raise RunFailed(f"{failures[0]}; {sum(saved)} of {len(saved)} points are saved and the same command resumes.")
    if failures:
        raise failures[0]
