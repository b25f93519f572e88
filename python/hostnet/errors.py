"""Errors that a user can cause, and the exit code that the command line gives each.

``HostnetError`` is the base of all: ``except hostnet.HostnetError`` catches every one. The text of each is one
finished sentence.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import NoReturn


class HostnetError(Exception):
    """A mistake the user can correct: exit code 2."""

    exit_code = 2


class SpecError(HostnetError, ValueError):
    """A scenario that cannot be run. The engine raises this error as well."""


class NoSuchKey(SpecError, AttributeError):
    """A key that no scenario has. Keys are attributes, so that ``hasattr`` is False for it."""


class NotBuiltYet(HostnetError):
    """A request for a system or figure that this version does not model: exit code 3."""

    exit_code = 3


class RunFailed(HostnetError):
    """A run stopped for a reason that is not in its scenario (a killed worker, an engine bug): exit code 1."""

    exit_code = 1


def failure(e: BaseException) -> dict[str, str]:
    """The failure of a point as text that can be sent to another process; :func:`raise_for` reads it."""
    if isinstance(e, HostnetError):
        return {"error": str(e), "kind": "spec" if isinstance(e, SpecError) else "user"}
    return {"error": f"{type(e).__name__}: {e}", "kind": "engine"}  # an engine panic arrives as a BaseException


def raise_for(answer: Mapping[str, str]) -> NoReturn:
    """Raises here the error that :func:`failure` described in another process."""
    if answer["kind"] in ("spec", "user"):
        raise (SpecError if answer["kind"] == "spec" else HostnetError)(answer["error"])
    raise RunFailed(f"the engine failed on a point, which is a defect of hostnet: {answer['error']}.")


def printable(text: str) -> str:
    """The text with bytes that are no UTF-8 as escapes, such as ``\\xff``; Python hands them on as lone surrogates."""
    try:
        return os.fsencode(text).decode(errors="backslashreplace")
    except UnicodeEncodeError:
        return text.encode(errors="backslashreplace").decode()


def no_text(text: str) -> str:
    """Why ``text`` cannot be encoded, as the end of a sentence about it. Of bytes that are UTF-8, Python makes no text where the
    locale's encoding lacks them."""
    try:
        os.fsencode(text).decode()
    except UnicodeError:
        return "is not text in UTF-8"
    return f"has letters beyond {sys.getfilesystemencoding()}, Python's encoding here; leave PYTHONUTF8=0 out, or set LC_ALL=C.UTF-8"
