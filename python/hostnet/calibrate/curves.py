"""Curves of a platform, simulated in the settings in which a machine was measured."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import _core
from ..runner import default_jobs
from ..specs import Scenario
from .measured import Setting
from .transfer import ghz

#: Instructions of the measured stream for a line, besides the access, by its order and the share of lines that it stores to,
#: as callgrind counts them on x86-64 with AVX2: 2.4, 5.8 and 1.5 of unrolled loops, 24.0 and 23.0 with the hash of a random
#: order, access included.
STREAM_INSTRUCTIONS = {
    ("sequential", 0.0): 1,
    ("sequential", 0.5): 5,
    ("sequential", 1.0): 0,
    ("random", 0.0): 23,
    ("random", 1.0): 22,
}
#: Instructions for a line beyond these where a stream pauses, besides those of the pause: the loop is not unrolled.
PAUSE_INSTRUCTIONS = 8
#: Instructions of a hash, counted in the same way.
HASH_INSTRUCTIONS = 16
#: Instructions of the measured chase for a load, besides the load.
CHASE_INSTRUCTIONS = 3
#: Sets of a slice, ways and slices of the LLC during the curves. No buffer fits any LLC, so that a small one, which takes no
#: time to build, changes nothing.
_SETS, _WAYS, _SLICES = 1024, 12, 8


@dataclass(frozen=True)
class Simulated:
    """Outcome of one setting: time of a load of the chase in ns, and memory traffic in GB/s."""

    ns: float | None
    gbs: float | None


def curves(platform: Mapping[str, Any], settings: Sequence[Setting], scale: float = 1.0) -> list[Simulated]:
    """Simulate a platform, given as the tables of its file, in each setting. `scale` shortens or lengthens the runs."""
    with tempfile.TemporaryDirectory() as folder:
        path = _file(platform, Path(folder))
        specs = [Scenario.of(scenario(path, platform, s, scale)).resolve() for s in settings]
        with ThreadPoolExecutor(default_jobs()) as pool:
            texts = list(pool.map(_core.run, specs))
    return [_found(json.loads(text), s, platform) for text, s in zip(texts, settings, strict=True)]


def _file(platform: Mapping[str, Any], folder: Path) -> Path:
    """A file of the platform."""
    import tomli_w

    tables = {k: v for k, v in platform.items() if k != "provenance"}
    path = folder / "curves.toml"
    path.write_text(tomli_w.dumps({**tables, "name": "curves"}), encoding="utf-8")
    return path


def _override(platform: Mapping[str, Any], s: Setting) -> dict[str, Any]:
    """Changes of a platform for its curves: as many cores as the setting needs, the measured program's accesses, the small
    LLC."""
    llc: dict[str, Any] = {
        "size": f"{_SETS * _WAYS * _SLICES * 64 // 1024} KiB",
        "ways": _WAYS,
        "slices": _SLICES,
    }
    if platform["caches"]["llc"].get("quirks", {}).get("inclusive_ways"):
        llc["quirks"] = {"inclusive_ways": 1}
    # The measured program accesses one word of a line. Its instructions do not depend on each other.
    ipc = platform["core"]["width"]
    if s.hashes_per_ns is not None:
        ipc = min(ipc, s.hashes_per_ns * HASH_INSTRUCTIONS / ghz(platform["core"]["clock"]))
    cores = s.threads + s.chasers
    core = {"count": cores, "stores_per_line": 1, "compute_ipc": ipc}
    nodes = {"nodes": {"cores": cores}} if (platform.get("nodes") or {}).get("cores") else {}
    return {"core": core, "caches": {"llc": llc}, **nodes}


def scenario(path: Path, platform: Mapping[str, Any], s: Setting, scale: float = 1.0) -> dict[str, Any]:
    """Tables of the scenario of a setting on a platform, given as its file and as the tables of the file."""
    tenants: list[dict[str, Any]] = []
    if s.chases:
        chase = {
            "kind": "xmem",
            "array": "4 GiB",
            "parallelism": s.chases,
            "gap_instructions": CHASE_INSTRUCTIONS,
        }
        tenants.append({"name": "chase", "cores": s.chasers, "app": chase})
    if s.threads:
        stream = {
            "kind": "stream",
            "buffer": "1 GiB",
            "read_fraction": 1 / (1 + s.stores),
            "access": s.order,
            "instructions": stream_instructions(s),
            "contiguous": "2 MiB",
        }
        tenants.append({"name": "streams", "cores": s.threads, "app": stream})
    us = 80 if s.chases == 1 else 40
    return {
        "name": "curves",
        "platform": str(path),
        "placement": {"policy": "dma"},
        "override": _override(platform, s),
        "tenant": tenants,
        "run": {"load": "saturate", "warmup_time": "8 us", "time": f"{round(us * scale)} us"},
    }


def stream_instructions(s: Setting) -> int:
    """Instructions of a stream for a line, besides the access."""
    kinds = [kind for kind in STREAM_INSTRUCTIONS if kind[0] == s.order]
    alike = min(kinds, key=lambda kind: abs(kind[1] - s.stores))
    pause = PAUSE_INSTRUCTIONS + s.pause_hashes * HASH_INSTRUCTIONS
    return STREAM_INSTRUCTIONS[alike] + (pause if s.pause_hashes else 0)


def _found(result: Mapping[str, Any], s: Setting, platform: Mapping[str, Any]) -> Simulated:
    table = result["tables"]["tenants"]
    names = [c["name"] for c in table["columns"]]
    executed = {row[names.index("tenant")]: row[names.index("instructions")] for row in table["rows"]}
    return figures(executed, result["measure_us"], s, platform)


def figures(executed: Mapping[str, float], us: float, s: Setting, platform: Mapping[str, Any]) -> Simulated:
    """Figures of a setting by the instructions that its tenants executed in `us`: each line takes the same number of them."""
    loads = executed.get("chase", 0) / (CHASE_INSTRUCTIONS + 1)
    lines = executed.get("streams", 0) / (stream_instructions(s) + 1)
    traffic = (lines * (1 + s.stores) + loads) * 64 / (us * 1e3)
    return Simulated(s.chasers * us * 1e3 / loads if loads else None, traffic if s.threads else None)
