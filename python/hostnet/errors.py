"""What can go wrong for a user, and the exit code the command line gives it.

``HostnetError`` is the base of all: ``except hostnet.HostnetError`` catches every one. The text of each is one
finished sentence.
"""


class HostnetError(Exception):
    """A mistake the user can correct: exit code 2."""

    exit_code = 2


class SpecError(HostnetError, ValueError):
    """A scenario that cannot be run. The engine raises it, too."""


class NotBuiltYet(HostnetError):
    """Asked for a system or figure that this version does not model: exit code 3."""

    exit_code = 3


class RunFailed(HostnetError):
    """A run stopped for a reason that is not in its scenario (a killed worker, an engine bug): exit code 1."""

    exit_code = 1
