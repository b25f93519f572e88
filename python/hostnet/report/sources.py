"""Results that a report is about, read from directories and files, and their names."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .._toml import TEXT
from ..errors import HostnetError
from ..output import files_of
from ..results import fault, read_result

Data = Mapping[str, Any]

_SYSTEMS = {"dma": "DMA", "ddio": "DDIO", "ideal": "ideal DDIO"}


def is_study(folder: Path) -> bool:
    """Whether a study wrote the directory."""
    return (folder / "study.json").is_file()


def load(source: Path) -> list[dict[str, Any]]:
    """The results of a saved result's file, or those that a directory's command wrote; for a directory without a command,
    all results in it. Raises HostnetError where there is none, and where one is missing or damaged."""
    if source.is_file():
        return [dict(read_result(source))]
    if not source.is_dir():
        raise HostnetError(f"{source}: does not exist; give the directory that a run, sweep, study or demo wrote.")
    results = []
    for file in files_of(source, "*.json"):
        try:
            data = json.loads(file.read_text(encoding=TEXT))
        except OSError as e:
            raise HostnetError(f"{file}: cannot be read ({e.strerror}).") from None
        except (ValueError, RecursionError):
            raise HostnetError(f"{file}: is damaged, as it is not JSON; run its command again, or remove it.") from None
        if isinstance(data, dict) and {"metrics", "spec", "version"} <= data.keys():
            why = fault(data)
            if why is not None:
                raise HostnetError(f"{file}: not a saved hostnet result ({why}).")
            results.append(data)
    if not results:
        raise HostnetError(f"{source}: no results here; give the directory that a run, sweep, study or demo wrote.")
    return results


def objects(file: Path, keys: Sequence[str], *, whole: bool = False) -> list[dict[str, Any]]:
    """The JSON objects of a study's file, one for the whole file or one per line, that have these keys."""
    try:
        text = file.read_text(encoding=TEXT)
    except OSError as e:
        raise HostnetError(f"{file}: cannot be read ({e.strerror}).") from None
    except UnicodeDecodeError:
        raise HostnetError(f"{file}: is not a text file.") from None
    try:
        found = [json.loads(t) for t in ([text] if whole else text.splitlines())]
    except ValueError:
        found = []
    if not found or not all(isinstance(x, dict) and set(keys) <= x.keys() for x in found):
        raise HostnetError(f"{file}: is not as a study wrote it; run the study again.")
    return found


def flattened(value: Any, path: str = "") -> dict[str, Any]:
    """The values of a scenario by dotted path."""
    if isinstance(value, Mapping):
        return {
            k: v
            for key, child in value.items()
            for k, v in flattened(child, f"{path}.{key}" if path else str(key)).items()
        }
    if isinstance(value, list):
        return {k: v for i, child in enumerate(value) for k, v in flattened(child, f"{path}.{i}").items()}
    return {path: value}


def differences(results: Sequence[Data]) -> dict[str, list[Any]]:
    """The values in which the scenarios of results differ, by dotted path, without names and provenance; None where a
    scenario has no such value."""
    flat = [flattened(r["spec"]) for r in results]
    paths = dict.fromkeys(p for f in flat for p in f)
    found = {p: [f.get(p) for f in flat] for p in paths if p != "name" and not p.startswith("platform.provenance.")}
    return {p: values for p, values in found.items() if len(set(map(repr, values))) > 1}


def changes(base: Data, other: Data) -> dict[str, Any]:
    """The values of a scenario that differ from those of another, by dotted path; None for a value that it lacks."""
    first, own = flattened(base), flattened(other)
    return {p: own.get(p) for p in {**first, **own} if own.get(p) != first.get(p)}


def labels(results: Sequence[Data]) -> list[str]:
    """A short, unique name per result: of one its scenario's, of several the differences between their specs."""
    if len(results) == 1:
        return [str(results[0].get("label") or results[0]["spec"].get("name") or "result")]
    flat = [flattened(r["spec"]) for r in results]
    placement = ("placement.policy", "placement.sweep_rx", "placement.sweep_tx")
    differing = [p for p in differences(results) if p != "seed"]
    # A seed distinguishes results that differ in no other value.
    same = [repr([f.get(p) for p in differing]) for f in flat]
    seeds = len(set(same)) < len(same) and len({f.get("seed") for f in flat}) > 1
    systems = any(p in placement for p in differing)
    scenarios = {str(f.get("name")) for f in flat}
    names = []
    for r, f in zip(results, flat, strict=False):
        parts = [_system(f)] if systems else []
        others = [p for p in differing if p not in placement and f.get(p) is not None]
        # Scenarios that differ in many values are told apart by their names.
        if len(differing) > 8 and len(scenarios) == len(results):
            parts, others = [str(f.get("name"))], []
        parts += [f"{p.split('.')[-1].replace('_', ' ')} {f[p]}" for p in others[:3]]
        parts += [f"seed {f['seed']}"] if seeds and "seed" in f else []
        names.append(r.get("label") or ", ".join(parts) or str(f.get("name", "result")))
    return [n if names.count(n) == 1 else f"{n} #{names[: i + 1].count(n)}" for i, n in enumerate(names)]


def _system(flat: Mapping[str, Any]) -> str:
    policy = str(flat.get("placement.policy", "result"))
    name = _SYSTEMS.get(policy, policy)
    return name + (" + Sweeper" if flat.get("placement.sweep_rx") else "")
