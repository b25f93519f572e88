"""Locations of the files that come with hostnet, in a source checkout and in an installed wheel.

``hostnet/data`` holds links to the top-level ``platforms``, ``scenarios`` and ``claims`` directories; a wheel carries
copies in the same place.
"""

from __future__ import annotations

import os
from pathlib import Path

from . import _core
from .errors import HostnetError

DATA = Path(__file__).parent / "data"
PLATFORMS = DATA / "platforms"
SCENARIOS = DATA / "scenarios"
CLAIMS = DATA / "claims"


def nearest(word: object, choices: list[str]) -> str:
    """A hint that names the choice closest to ``word``, or all of them when none is close."""
    hint = _core.hint(str(word), choices)
    return f"{hint}." if hint else f"choose one of {', '.join(sorted(choices))}."


def file_named(path: str | os.PathLike[str]) -> Path:
    """The path of a file. Raises HostnetError for what is no name of one."""
    if not isinstance(path, (str, os.PathLike)):
        raise HostnetError(f"{path!r} is no name of a file.")
    return Path(path)


def scenario_file(name: str | os.PathLike[str]) -> Path:
    """The file of scenario ``name``: a path as given, or the name of a scenario that comes with hostnet."""
    if not str(name).strip():
        raise HostnetError("a scenario's name is empty; `hostnet scenarios` lists those that come with hostnet.")
    given = Path(name)
    if len(given.name) > 255:  # longer than a file system allows
        raise HostnetError(f"{given.name[:40]}...: no such scenario file; its name has {len(given.name)} characters.")
    shipped = SCENARIOS / (given.name if given.suffix == ".toml" else f"{given.name}.toml")
    if given.is_file():
        return given
    if shipped.is_file():
        real, here = shipped.resolve(), Path.cwd()
        return real.relative_to(here) if real.is_relative_to(here) else real
    if given.is_dir():
        raise HostnetError(f"{name}: is a directory; give a scenario's file.")
    near = nearest(given.stem, sorted(p.stem for p in SCENARIOS.glob("*.toml")))
    hint = near if near.startswith("did you mean") else "`hostnet scenarios` lists those that come with hostnet."
    raise HostnetError(f"{name}: no such scenario file; {hint}")


def search_dirs(file: Path | None) -> list[str]:
    """Directories in which what ``file`` names is searched: for a platform the directory of ``file`` first, then hostnet's
    own, then the current one; and at last, for a path such as ``captures/memcached-udp.pcap``, the files that come with
    hostnet."""
    beside = [file.parent, file.parent / "platforms"] if file is not None else [Path.cwd()]
    return [str(d) for d in (*beside, PLATFORMS, Path(), DATA)]
