"""Results on disk, addressed by the content of the simulation.

The key covers the resolved spec, the engine's sources, the compiler and the contents of every capture and recording that
the spec replays, so that a hit is the same simulation and not merely the same name. Each entry carries a digest of itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from . import _core
from .errors import HostnetError
from .output import Contents, check_writable, write_text
from .results import ResultData, fault


@lru_cache(maxsize=1)
def engine_id() -> str:
    """The engine's version, which has a digest of its sources, and the compiler, the target and the libraries of its
    build. The identifier is equal in two checkouts of the same state, and a changed engine never uses old results."""
    return f"{_core.version()} {_core.build()}"


@lru_cache(maxsize=64)
def _file_digest(path: str, _stamp: tuple[int, int]) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def key_of(resolved: str) -> str:
    """The cache key of a resolved spec (JSON text as :meth:`Scenario.resolve` gives it)."""
    return hashlib.sha256("\n".join((engine_id(), *_identity(resolved))).encode()).hexdigest()


def digest_of(resolved: str) -> str:
    """Digest of the simulation that a resolved spec describes, whichever engine runs it. Raises HostnetError for a
    capture or a recording that cannot be read."""
    return hashlib.sha256("\n".join(_identity(resolved)).encode()).hexdigest()


def files_of(spec: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The tables of a resolved spec that name a file with ``file``, by their keys: captures and recordings."""
    traffics = {"traffic": spec.get("traffic")}
    tables = {}
    for i, tenant in enumerate(spec.get("tenant") or []):
        traffics[f"tenant[{i}].traffic"] = tenant.get("traffic")
        if isinstance((tenant.get("app") or {}).get("file"), str):
            tables[f"tenant[{i}].app"] = tenant["app"]
    for key, traffic in traffics.items():
        capture = (traffic or {}).get("pcap")
        if capture:
            tables[f"{key}.pcap"] = capture
    return tables


def digests_of(spec: Mapping[str, Any]) -> dict[str, str]:
    """Digests (SHA-256) of the captures and recordings of a resolved spec, by the keys of their tables. Raises HostnetError
    for a file that cannot be read."""
    digests = {}
    for key, table in files_of(spec).items():
        try:
            stat = os.stat(table["file"])
            digests[key] = _file_digest(table["file"], (stat.st_size, stat.st_mtime_ns))
        except OSError as e:
            raise HostnetError(f"{key}.file = {table['file']}: cannot be read ({e.strerror}).") from None
    return digests


def result_of(found: ResultData, resolved: str) -> ResultData:
    """The result ``found`` as that of the resolved spec for which it was looked up: an entry of another checkout names its
    own copy of a capture. Digests of the replayed files are part of it."""
    spec = json.loads(resolved)
    data: ResultData = {**found, "spec": spec}
    if digests := digests_of(spec):
        data["files"] = digests
    return data


def _identity(resolved: str) -> tuple[str, ...]:
    """The resolved spec without the paths of its captures and recordings, and the digests of these files."""
    spec = json.loads(resolved)
    digests = list(digests_of(spec).values())
    for table in files_of(spec).values():
        table["file"] = Path(table["file"]).name  # the location of a checkout is not part of the simulation
    return (json.dumps(spec, sort_keys=True) if digests else resolved, *(digests or [""]))


def contents(
    specs: Sequence[str],
    points: Sequence[Mapping[str, Any]] | None = None,
    of: str = "",
    *,
    quick: bool = False,
    seeds: int = 1,
) -> Contents:
    """Contents of results of these resolved specs with these swept values, each over ``seeds`` seeds. ``of`` defaults to the
    scenario's name."""
    labels = [json.dumps(p, sort_keys=True) for p in points or [{}] * len(specs)]
    digests = {label: digest_of(spec) for label, spec in zip(labels, specs, strict=True)}
    return Contents(of or str(json.loads(specs[0])["name"]), digests, _core.version(), quick, seeds)


def default_root() -> Path:
    """``$HOSTNET_CACHE``, or ``results/cache`` under the current directory."""
    return Path(os.environ.get("HOSTNET_CACHE") or "results/cache")


def chosen(cache: Cache | None) -> Cache:
    """The cache that a caller gives, or the default one. Raises HostnetError for what is no cache."""
    if cache is not None and not isinstance(cache, Cache):
        raise HostnetError(f"cache = {cache!r} is no cache; give hostnet.cache.Cache({cache!r}).")
    return cache or Cache()


_ENTRY = re.compile(r'\{"sha256": "([0-9a-f]{64})", "result": ')


def _digest(key: str, text: str) -> str:
    return hashlib.sha256(f"{key}\n{text}".encode()).hexdigest()


class Cache:
    """A directory of result files. An entry is written completely or not at all, even when its writer is killed."""

    def __init__(self, root: str | Path | None = None):
        self.root = Path(root) if root is not None else default_root()

    def path(self, key: str) -> Path:
        return self.root / key[:2] / f"{key}.json"

    def get(self, key: str) -> ResultData | None:
        """The stored result. None when there is no result, or when the file differs from what was stored under this
        key; the point is then computed again."""
        try:
            text = self.path(key).read_text(encoding="utf-8")
        except (OSError, ValueError):
            return None
        head = _ENTRY.match(text)
        if head is None or not text.endswith("}") or _digest(key, body := text[head.end() : -1]) != head[1]:
            return None
        try:
            data: ResultData = json.loads(body)
        except ValueError:
            return None
        return data if fault(data) is None else None

    def put(self, key: str, text: str) -> None:
        """Store a result's JSON text. Raises HostnetError when the directory cannot be written."""
        write_text(self.path(key), f'{{"sha256": "{_digest(key, text)}", "result": {text}}}')

    def check(self) -> None:
        """Checks, before any point runs, that entries can be written. Raises HostnetError otherwise."""
        check_writable(self.root)
