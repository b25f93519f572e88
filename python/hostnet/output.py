"""Writing results so that a failed command leaves nothing half-written behind."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import HostnetError


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all. Raises HostnetError when that is not possible."""
    tmp = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            tmp.write_text(text, encoding="utf-8")
            os.replace(tmp, path)
        finally:
            tmp.unlink(missing_ok=True)
    except OSError as e:
        raise HostnetError(f"{path}: cannot be written ({e.strerror}).") from None


def check_file(path: Path) -> None:
    """Refuse an output file that cannot be written, before any work is spent on it."""
    if path.is_dir():
        raise HostnetError(f"{path}: cannot be written (it is a directory; name a file).")
    check_writable(path.resolve().parent)


def check_writable(out: Path) -> None:
    """Refuse an output directory that cannot be written, before any work is spent on it."""
    with staged(out):
        pass


@contextmanager
def staged(out: Path) -> Iterator[Path]:
    """A temporary directory whose files move into ``out`` when the block succeeds, and vanish when it fails."""
    taken = next((p for p in (out, *out.parents) if p.is_file()), None)
    if taken is not None:
        raise HostnetError(f"{out}: cannot be written ({taken} is a file; name a directory).")
    made = [p for p in (out, *out.parents) if not p.exists()]
    try:
        out.mkdir(parents=True, exist_ok=True)
        tmp = Path(tempfile.mkdtemp(dir=out, prefix=".part-"))
    except OSError as e:
        raise HostnetError(f"{out}: cannot be written ({e.strerror}).") from None
    try:
        yield tmp
        for f in sorted(tmp.iterdir()):
            os.replace(f, out / f.name)
    finally:
        shutil.rmtree(tmp, ignore_errors=True)
        for p in made:
            if p.is_dir() and not any(p.iterdir()):
                p.rmdir()
