"""Writing results: a directory belongs to one command, and a failed command leaves nothing half-written behind.

A directory of results holds ``hostnet.json``, which names the command, its points and its files. The same command
replaces these files completely when its points include those in the directory; other points and other commands are
refused. Files that ``hostnet.json`` does not list stay as they are.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import tempfile
import uuid
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import HostnetError
from .parquet import ColumnInfo, parquet

if TYPE_CHECKING:
    import polars as pl

MANIFEST = "hostnet.json"
_LOCK, _PART = ".hostnet.lock", ".part-"
#: Errors that can occur while files are written, after all checks have passed.
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


@dataclass(frozen=True)
class Contents:
    """Points whose results a directory holds.

    ``of`` names the scenario or the figure, ``points`` maps each point's swept values to the digest of the simulation, ``engine`` is the version that ran the points, ``quick``
    says whether fewer requests were measured, and ``seeds`` is the number of runs that each point combines.
    """

    of: str
    points: Mapping[str, str]
    engine: str = ""
    quick: bool = False
    seeds: int = 1

    def lost(self, there: Contents) -> str | None:
        """The loss when these results replace
        ``there``, as the end of a sentence; None when these points include all points of ``there``."""
        many = _points(there)
        if self.of != there.of:
            return f"holds {many} of {there.of}, and this is {self.of}"
        if self.quick != there.quick:
            return f"holds {many} of {there.of} in full, and this is a quick run" if self.quick else None
        if self.seeds < there.seeds:
            return f"holds {many} of {there.of} over {there.seeds:,} seeds, and this is over {self.seeds:,}"
        missing = sum(label not in self.points for label in there.points)
        if missing:
            return f"holds {many} of {there.of}, of which this one lacks {missing:,}"
        other = sum(self.points[label] != digest for label, digest in there.points.items())
        if self.engine == there.engine and other:  # another engine may have other defaults
            return f"holds {many} of {there.of}, of which {other:,} differ{'s' if other == 1 else ''} in other values"
        return None


class OtherEngineWarning(UserWarning):
    """A command replaces results that another version of the engine has measured."""


#: Sentences that say how a user keeps or replaces existing results.
WAYS_OUT = "give another --out, or --replace to overwrite"


def refusal(path: Path, why: OSError | str) -> HostnetError:
    """Error about ``path``, which cannot be written because of ``why``."""
    shown = str(path) if len(str(path)) <= 120 else f"{str(path)[:100]}..."
    return HostnetError(f"{shown}: cannot be written ({why if isinstance(why, str) else why.strerror or why}).")


def _is_device(path: Path) -> bool:
    """Whether a path is a device, a pipe or a link to an open file such as /dev/stdout: a file that is written beside its name
    and then renamed would replace it."""
    return (path.exists() and not path.is_file()) or str(path.absolute().parent) in ("/dev", "/dev/fd", "/proc/self/fd")


def write_text(path: Path, text: str) -> None:
    """Write a file completely or not at all; a link stays, and leads to the new file. Raises HostnetError when that is not
    possible."""
    if _is_device(path):
        raise refusal(path, "it is a device or a pipe; name a file")
    path = path.resolve()
    tmp = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            tmp.write_text(text, encoding="utf-8")
            os.replace(tmp, path)
        finally:
            tmp.unlink(missing_ok=True)
    except OSError as e:
        raise refusal(path, e) from None


def write_frame(frame: pl.DataFrame, stem: Path, about: Mapping[str, ColumnInfo]) -> None:
    """Writes a table as ``stem.csv`` and ``stem.parquet``; the latter carries ``about``, the unit and meaning of each
    column. Raises OSError when a file cannot be written."""
    stem.with_name(f"{stem.name}.csv").write_text(frame.write_csv(), encoding="utf-8")
    stem.with_name(f"{stem.name}.parquet").write_bytes(parquet(frame, about))


def check_file(path: Path, *marks: str | bytes) -> None:
    """Checks, before any work is done, that an output file can be written. With ``marks``, a file with contents that begin
    with none of them is refused as well, because hostnet did not write it. Raises HostnetError."""
    begins = tuple(m.encode() if isinstance(m, str) else m for m in marks)
    try:
        if begins and path.is_file() and not (there := path.read_bytes()).startswith(begins) and there:
            raise HostnetError(f"{path}: is there and was not written by this command; name another file.")
        if path.is_dir():
            raise refusal(path, "it is a directory; name a file")
        if _is_device(path):
            raise refusal(path, "it is a device or a pipe; name a file")
        check_writable(path.resolve().parent)
    except OSError as e:
        raise refusal(path, e) from None


def check_no_input(path: Path, inputs: Iterable[str | os.PathLike[str]]) -> None:
    """Refuse an output file that is one of the command's inputs, by whatever name: a link leads to the same file."""
    for given in map(Path, inputs):
        if path.exists() and given.exists() and path.samefile(given):
            same = "" if path.absolute() == given.absolute() else f" (the same file as {given})"
            raise HostnetError(f"{path}: is an input of this command{same}; name another file for the output.")


def check_writable(folder: Path) -> None:
    """Checks, before any work is done, that a file can be written in a directory. Raises HostnetError otherwise."""
    with _made(folder):
        try:
            with tempfile.TemporaryFile(dir=folder) as f:
                f.write(b"x" * 4096)
        except OSError as e:
            raise refusal(folder, e) from None


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """Creates the directory for the block; directories that were created and are empty afterwards are removed."""
    try:
        taken = next((p for p in (folder, *folder.parents) if p.is_file()), None)
        if taken is not None:
            raise refusal(folder, f"{taken} is a file; name a directory")
        made = [p for p in (folder, *folder.parents) if not p.exists()]
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise refusal(folder, e) from None
    try:
        yield
    finally:
        for p in made:
            with suppress(OSError):  # not empty, or gone
                p.rmdir()


def manifest(folder: Path) -> dict[str, Any] | None:
    """Manifest of a directory of results, which names the command and its files; None when no command wrote the
    directory. Raises HostnetError when the manifest is damaged, or when the command was stopped while it moved its
    files."""
    file = folder / MANIFEST
    try:
        found: dict[str, Any] | None = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as e:
        raise HostnetError(f"{file}: cannot be read ({e.strerror}).") from None
    except (ValueError, RecursionError):
        found = None
    files = found.get("files") if isinstance(found, dict) else None
    if not isinstance(files, list) or not all(isinstance(f, str) and Path(f).name == f for f in files):
        raise HostnetError(f"{file}: is not as hostnet wrote it; remove {folder} and run the command again.")
    return found


def files_of(folder: Path, pattern: str) -> list[Path]:
    """The files of a directory that match ``pattern``, in order; in a directory that a command wrote, only the files of
    that command. Raises HostnetError where one of these is missing."""
    owned = manifest(folder)
    found = sorted(folder.glob(pattern))
    if owned is None:
        return found
    if not owned.get("complete"):
        raise HostnetError(
            f"{folder}: the command `hostnet {owned.get('command')}` was stopped while it wrote; run it again."
        )
    there = {f.name for f in found}
    lost = next((name for name in owned["files"] if fnmatchcase(name, pattern) and name not in there), None)
    if lost is not None:
        raise HostnetError(
            f"{folder / lost}: is missing, and the command `hostnet {owned.get('command')}` wrote it; run it again."
        )
    return [f for f in found if f.name in owned["files"]]


@contextmanager
def directory(out: Path, command: str, contents: Contents | None = None, *, replace: bool = False) -> Iterator[Path]:
    """Makes ``out`` the directory of ``command`` ("sweep", "study sweeper fig5") for the block.

    Yields a temporary directory. When the block succeeds, its files replace the files of the same command in ``out``;
    when the block fails, they are removed. Raises HostnetError before the block when ``out`` cannot be written, holds
    files of another command or of no command, or is in use by another process. Also raises HostnetError when
    ``out`` holds points that ``contents`` lacks, unless ``replace`` is set.
    """
    with _made(out), _locked(out):
        before = _claim(out, command, contents, replace)
        try:
            for left in out.glob(f"{_PART}*"):  # left by a process that was killed
                shutil.rmtree(left, ignore_errors=True)
            tmp = Path(tempfile.mkdtemp(dir=out, prefix=_PART))
        except OSError as e:
            raise refusal(out, e) from None
        try:
            yield tmp
            _replace(out, command, contents, before, tmp)
        except OSError as e:
            if e.errno in _FULL or str(e.filename or "").startswith(str(out)):
                raise refusal(out, e) from None
            raise
        finally:
            shutil.rmtree(tmp, ignore_errors=True)


def _claim(out: Path, command: str, contents: Contents | None, replace: bool) -> list[str]:
    """The files that ``command`` may replace. Raises HostnetError when the directory belongs to another command, or holds
    what ``contents`` lacks and ``replace`` does not give up."""
    owned = manifest(out)
    if owned is None:
        stray = sorted(p.name for p in out.iterdir() if not p.is_dir() and not p.name.startswith("."))
        if stray:
            raise HostnetError(
                f"{out}: holds files that no hostnet command wrote, such as {stray[0]}; remove them or name another directory."
            )
        return []
    if owned.get("command") != command:
        raise HostnetError(
            f"{out}: holds what `hostnet {owned.get('command')}` wrote; remove it or name another directory."
        )
    if contents is not None:
        there = _contents(owned.get("contents"))
        lost = contents.lost(there) if there else "holds results of which it does not say what they are of"
        if lost is not None and not replace:
            raise HostnetError(f"{out}: {lost}; {WAYS_OUT}.")
        if there and there.engine != contents.engine:
            warnings.warn(
                f"{out}: engine {there.engine} measured the {_points(there)} of {there.of} there; when this command succeeds, "
                f"what engine {contents.engine} measures replaces all of them, and nothing of them is kept or mixed in.",
                OtherEngineWarning,
                stacklevel=2,
            )
    files: list[str] = owned["files"]
    return files


def _contents(there: Any) -> Contents | None:
    """Points that a manifest names; None where it names none that can be read."""
    try:
        return Contents(**there) if isinstance(there["points"], Mapping) else None
    except (TypeError, KeyError):
        return None


def _points(of: Contents) -> str:
    return f"{len(of.points):,} point{'' if len(of.points) == 1 else 's'}"


def _replace(out: Path, command: str, contents: Contents | None, before: list[str], tmp: Path) -> None:
    fresh = sorted(f.name for f in tmp.iterdir())
    taken = next((n for n in fresh if n not in before and (out / n).exists()), None)
    if taken is not None:
        raise refusal(out, f"{taken} is there and was not written by hostnet")

    def note(files: list[str], complete: bool) -> None:
        about: dict[str, Any] = {"command": command, "complete": complete, "files": files}
        if contents is not None:
            about["contents"] = asdict(contents)
        write_text(out / MANIFEST, json.dumps(about, indent=1) + "\n")

    note(sorted({*before, *fresh}), False)
    for name in fresh:
        os.replace(tmp / name, out / name)
    for name in set(before) - set(fresh):
        (out / name).unlink(missing_ok=True)
    note(fresh, True)


def add_file(path: Path, text: str) -> None:
    """Write one more file into its directory, and add it to the list of the command's files if there is one."""
    with _made(path.parent), _locked(path.parent):
        owned = manifest(path.parent)
        if owned is None or path.name in owned["files"]:
            write_text(path, text)
            return
        write_text(path, text)
        owned["files"] = sorted({*owned["files"], path.name})
        write_text(path.parent / MANIFEST, json.dumps(owned, indent=1) + "\n")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Locks a directory against other processes. The lock ends with the process, in whatever way the process ends."""
    path = folder / _LOCK
    try:
        while True:
            held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.exists(path) and os.path.samestat(os.fstat(held), os.stat(path)):
                    break
            except BaseException:
                os.close(held)
                raise
            os.close(held)  # the previous holder has removed this file: take the next one
    except BlockingIOError:
        raise HostnetError(
            f"{folder}: another hostnet process is writing there; wait for it or name another directory."
        ) from None
    except OSError as e:
        raise refusal(folder, e) from None
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        os.close(held)
