"""Points on the machines of a cluster, through any executor of :mod:`concurrent.futures`.

Dask's ``Client.get_executor()`` and mpi4py's ``MPIPoolExecutor`` are such executors. Workers need the same hostnet, and
no shared disk: hostnet sends a point as a resolved spec, receives the result, and stores the result on this machine.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Executor, as_completed
from contextlib import contextmanager
from typing import Any

from .cache import Cache, engine_id, key_of
from .errors import HostnetError, RunFailed, failure, raise_for

PATIENCE_S = 10
"""How long a scheduler may take to answer, and how long its first worker may take to come."""

ADDRESS = re.compile(r"((tcp|tls|wss?)://)?[^/:\s]+:\d+/?")


@contextmanager
def connect(address: str) -> Iterator[Executor]:
    """The workers behind the Dask scheduler at ``address``, such as ``tcp://node1:8786``. Raises HostnetError when Dask
    is not installed, when no scheduler answers at that address, or when it has no worker."""
    try:
        from distributed import Client
    except ImportError:
        raise HostnetError(
            f"--cluster {address}: Dask is not installed; `pip install distributed` brings it."
        ) from None
    import logging

    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # one sentence says what matters
    where = "give its address, such as tcp://node1:8786."
    if not ADDRESS.fullmatch(address):
        raise HostnetError(f"--cluster {address}: is no address of a Dask scheduler; {where}")
    try:
        client: Any = Client(address, timeout=PATIENCE_S, set_as_default=False)  # type: ignore[no-untyped-call] # Dask's
    except OSError as e:
        raise HostnetError(f"--cluster {address}: no Dask scheduler answers there ({_reason(e)}); {where}") from None
    with client:
        if not client.ncores():
            _wait_for_a_worker(client, address)
        with client.get_executor(pure=False, retries=0) as executor:
            yield executor


def _wait_for_a_worker(client: Any, address: str) -> None:
    print(f"hostnet: the scheduler at {address} has no worker yet; waiting {PATIENCE_S:g} s for one.", file=sys.stderr)
    try:
        client.wait_for_workers(1, timeout=PATIENCE_S)
    except TimeoutError:
        raise HostnetError(
            f"--cluster {address}: the scheduler has no worker; start some, such as `dask worker {address} --nthreads 1`."
        ) from None


def _reason(e: BaseException) -> str:
    return str(e).split("\n")[0].rstrip(".") or type(e).__name__


def execute(points: Mapping[str, str]) -> dict[str, str]:
    """Run the points of one simulation (key to resolved spec) on a worker: the JSON text of each result by its key, or
    {"error", "kind"}. The keys on the worker must be equal, so that engine and captures are the same as on the submitting
    machine."""
    from . import _core

    try:
        if any(key_of(spec) != key for key, spec in points.items()):
            raise HostnetError(
                f"a worker has another hostnet ({engine_id()}) or another capture; install the same on all machines."
            )
        return dict(zip(points, _core.run_each(list(points.values())), strict=True))
    except BaseException as e:
        return failure(e)


def run_on(
    executor: Executor, tasks: Sequence[Mapping[str, str]], cache: Cache, report: Callable[[str, float], None]
) -> None:
    """Run tasks in this order, each with the points of one simulation (key to resolved spec), and store each result. Raises
    SpecError, HostnetError or RunFailed for the first task that fails, after cancelling the others."""
    futures = [executor.submit(execute, points) for points in tasks]
    saved = 0
    try:
        for future in as_completed(futures):
            answer = future.result()
            if "error" in answer:
                raise_for(answer)
            for key, text in answer.items():
                cache.put(key, text)
                saved += 1
                report(key, 1.0)
    except HostnetError:
        raise
    except (
        CancelledError,
        Exception,
    ) as e:  # each library has its own exception for a worker that was lost, or that has no hostnet
        raise RunFailed(
            f"a worker of the cluster failed ({type(e).__name__}: {_reason(e)}); {saved} of {sum(map(len, tasks))} points are "
            "saved and the same command resumes."
        ) from e
    finally:
        for future in futures:
            future.cancel()
