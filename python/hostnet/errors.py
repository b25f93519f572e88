"""What can go wrong for a user, and the exit code the command line gives it.

The engine's own ``SpecError`` (a ``ValueError``) reports mistakes in scenarios; the
classes here cover everything around it. The text of each is one finished sentence.
"""


class HostnetError(Exception):
    """A mistake the user can correct: exit code 2."""

    exit_code = 2


class NotBuiltYet(HostnetError):
    """Asked for a system or figure that this version does not model: exit code 3."""

    exit_code = 3


class RunFailed(HostnetError):
    """A run stopped for a reason that is not in its scenario (a killed worker, an engine bug): exit code 1."""

    exit_code = 1
