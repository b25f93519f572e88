"""Redis beside streams: redis-server answers on one core of this machine while another one streams.

The figure is the server's CPU time for a GET, which the kernel counts, so that neither the client nor other work on its core
counts. With two cores the client runs on the server's core, with more on a third one.
"""

from __future__ import annotations

import os
import random
import shutil
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from .. import _core
from ..errors import HostnetError
from . import curves
from .measured import Setting

#: The program, and the name of its settings.
PROGRAM, CURVE = "redis-server", "redis"
#: Keys, bytes of a value, connections, and GETs that each sends together; as many connections and GETs as the model's
#: defaults.
KEYS, VALUE, CONNECTIONS, PIPELINE = 1_000_000, 1024, 2, 32
#: GETs of all connections in one measurement, which is repeated.
GETS, ROUNDS, QUICK_ROUNDS = 38_400, 9, 3
#: Streams beside the server; none comes first.
STREAMS = ((0, "sequential", 0.0), (1, "sequential", 0.0), (1, "sequential", 1.0), (1, "random", 1.0))
#: Time for the stream to be under way, time that it goes on, and time for the server to begin, in seconds.
_AHEAD, _STREAMS_FOR, _BEGINS = 0.3, 1.0, 10.0
_REPLY = len(b"$%d\r\n" % VALUE) + VALUE + 2


def settings() -> list[Setting]:
    """Settings that are measured; none where the program is not installed."""
    there = shutil.which(PROGRAM) is not None and os.cpu_count() != 1
    return [Setting(CURVE, 0, n, stores, 0, order) for n, order, stores in STREAMS] if there else []


def scenario(path: Path, platform: Mapping[str, Any], s: Setting) -> dict[str, Any]:
    """Tables of the scenario of a setting: a Redis server in the place of the chases."""
    tables = curves.scenario(path, platform, s)
    app = {"kind": "redis", "keys": KEYS, "value": f"{VALUE} B", "connections": CONNECTIONS, "pipeline": PIPELINE}
    tables["tenant"].insert(0, {"name": "redis", "cores": 1, "app": app})
    tables["run"].update(warmup_time="100 us", time="400 us")
    return tables


def measure(cpus: Sequence[int], quick: bool) -> list[dict[str, Any]]:
    """Measure each setting: CPU time of a GET, and its ratio to that without a stream. Raises HostnetError where the server
    does not begin."""
    found: dict[Setting, list[tuple[float, float]]] = {s: [] for s in settings()}
    with _Server(cpus[0], cpus[2] if len(cpus) > 2 else cpus[0]) as server:
        for _ in range(QUICK_ROUNDS if quick else ROUNDS):
            alone = 0.0
            for s, turns in found.items():
                ns = _beside(server, cpus[1], s)
                alone = alone or ns
                turns.append((ns, ns / alone))
    return [
        {
            "program": PROGRAM,
            "threads": s.threads,
            "order": s.order,
            "stores": s.stores,
            "ns": _statistic([ns for ns, _ in turns]),
            "slowdown": _statistic([ratio for _, ratio in turns]),
        }
        for s, turns in found.items()
    ]


def _beside(server: _Server, cpu: int, s: Setting) -> float:
    if not s.threads:
        return server.get_ns()
    stream = threading.Thread(target=_core.stream_for, args=(cpu, s.order, s.stores, _AHEAD + _STREAMS_FOR))
    stream.start()
    time.sleep(_AHEAD)
    try:
        return server.get_ns()
    finally:
        stream.join()


def _statistic(values: Sequence[float]) -> dict[str, float]:
    ordered = sorted(values)
    low, high = (ordered[round((len(ordered) - 1) * share)] for share in (0.1, 0.9))
    return {"median": statistics.median(ordered), "low": low, "high": high, "repetitions": len(ordered)}


class _Server:
    """A Redis server on a CPU, filled with keys, with a client's connections from another CPU."""

    def __init__(self, cpu: int, client: int) -> None:
        self._cpu, self._client, self._was = cpu, client, os.sched_getaffinity(0)
        self._random = random.Random(1)

    def __enter__(self) -> _Server:
        self._folder = tempfile.TemporaryDirectory()
        path = Path(self._folder.name) / "socket"
        words = f"{PROGRAM} --port 0 --unixsocket {path} --save  --appendonly no --dir {self._folder.name}"
        self._process = subprocess.Popen(words.split(" "), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self._open = [self._connected(path) for _ in range(CONNECTIONS)]
            for task in map(int, os.listdir(f"/proc/{self._process.pid}/task")):
                os.sched_setaffinity(task, {self._cpu})
                _hurry(task)
            os.sched_setaffinity(0, {self._client})
            self._fill()
            self._batches = [b"".join(self._get() for _ in range(PIPELINE)) for _ in range(2000)]
            self.get_ns()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, where: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        os.sched_setaffinity(0, self._was)
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()

    def _connected(self, path: Path) -> socket.socket:
        until = time.monotonic() + _BEGINS
        one = socket.socket(socket.AF_UNIX)
        one.settimeout(_BEGINS)
        while True:
            try:
                one.connect(str(path))
                return one
            except OSError as e:
                if time.monotonic() > until or self._process.poll() is not None:
                    one.close()
                    raise HostnetError(f"{PROGRAM}: does not answer at its socket ({e.strerror}).") from None
                time.sleep(0.02)

    def _fill(self) -> None:
        value = b"x" * VALUE
        for first in range(0, KEYS, 500):
            self._open[0].sendall(b"".join(_words(b"SET", _key(i), value) for i in range(first, first + 500)))
            _take(self._open[0], 500 * len(b"+OK\r\n"))

    def _get(self) -> bytes:
        return _words(b"GET", _key(self._random.randrange(KEYS)))

    def get_ns(self) -> float:
        """CPU time of the server for a GET of a random key, in ns."""
        began = self._ran_ns()
        for _ in range(GETS // CONNECTIONS // PIPELINE):
            for one in self._open:
                one.sendall(self._random.choice(self._batches))
            for one in self._open:
                _take(one, PIPELINE * _REPLY)
        return (self._ran_ns() - began) / GETS

    def _ran_ns(self) -> int:
        return int(Path(f"/proc/{self._process.pid}/schedstat").read_text().split()[0])


def _hurry(task: int) -> None:
    """Asks for priority, which only root gets."""
    try:
        os.setpriority(os.PRIO_PROCESS, task, -20)
    except PermissionError:
        return


def _key(i: int) -> bytes:
    return b"key:%09d" % i


def _words(*words: bytes) -> bytes:
    """A command as the protocol of Redis has it."""
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


def _take(one: socket.socket, left: int) -> None:
    """Receives so many bytes."""
    while left > 0:
        got = len(one.recv(min(left, 1 << 20)))
        if not got:
            raise HostnetError(f"{PROGRAM}: closed the connection.")
        left -= got
