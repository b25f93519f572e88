"""Results on disk, addressed by what was simulated.

The key covers the resolved spec, the engine and the contents of every capture the spec
replays, so a hit is the same simulation and never merely the same name.
"""

from __future__ import annotations

import hashlib
import json
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

from . import _core
from .errors import HostnetError
from .output import write_text


@lru_cache(maxsize=1)
def engine_id() -> str:
    """The engine's version and a digest of its machine code: a rebuilt engine never meets old results."""
    digest = hashlib.sha256(Path(_core.__file__).read_bytes()).hexdigest()[:16]
    return f"{_core.version()}+{digest}"


@lru_cache(maxsize=64)
def _file_digest(path: str, _stamp: tuple[int, int]) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def key_of(resolved: str) -> str:
    """The cache key of a resolved spec (JSON text as :meth:`Scenario.resolve` gives it)."""
    h = hashlib.sha256(f"{engine_id()}\n{resolved}".encode())
    pcap = (json.loads(resolved).get("traffic") or {}).get("pcap")
    if pcap:
        try:
            stat = os.stat(pcap["file"])
            h.update(_file_digest(pcap["file"], (stat.st_size, stat.st_mtime_ns)).encode())
        except OSError as e:
            raise HostnetError(f"traffic.pcap.file = {pcap['file']}: cannot be read ({e.strerror}).") from None
    return h.hexdigest()


def default_root() -> Path:
    """``$HOSTNET_CACHE``, or ``results/cache`` under the current directory."""
    return Path(os.environ.get("HOSTNET_CACHE") or "results/cache")


class Cache:
    """A directory of result files. Entries appear whole or not at all, whatever kills the writer."""

    def __init__(self, root: str | Path | None = None):
        self.root = Path(root) if root is not None else default_root()

    def path(self, key: str) -> Path:
        return self.root / key[:2] / f"{key}.json"

    def get(self, key: str) -> dict[str, Any] | None:
        """The stored result, or None; an unreadable entry counts as absent and is computed again."""
        try:
            return json.loads(self.path(key).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def put(self, key: str, text: str) -> None:
        """Store a result's JSON text. Raises HostnetError when the directory cannot be written."""
        write_text(self.path(key), text)
