"""Properties of a machine that an explanation of its counters needs, with where each value comes from."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import HostnetError
from ..model import hardware
from ..paths import nearest

# name, value, meaning, provenance: the paper's Cascade Lake server (one socket, two channels of DDR4-2933).
_OWN = (
    ("core_ghz", 3.3, "core clock", "paper: Table 1"),
    ("cha_ghz", 2.4, "clock of the CHA's counters", "paper's artifact: mio/stats.py"),
    ("irp_ghz", 0.5, "clock of the IIO's counters", "paper's artifact: mio/stats.py"),
    ("dclk_ghz", 1.4665, "clock of the memory controller's counters", "standard: DDR4-2933"),
    ("cha_dram_read_ns", 66.0, "a read's time from the CHA on, without contention", "paper: Fig. 6(a)"),
    ("lfb_credits", 12.0, "line fill buffers of a core", "paper: section 4.2, 10 to 12"),
    ("iio_write_credits", 92.0, "write buffer of the IIO", "paper: section 4.2"),
    ("iio_read_credits", 164.0, "read buffer of the IIO, at least", "paper: section 4.2"),
)


def machine(changes: Iterable[str] = ()) -> dict[str, float]:
    """The paper's machine with ``changes`` such as ``channels=6``. Raises HostnetError for a key or value it cannot use."""
    values: dict[str, float] = {name: value for name, value, _, _ in _OWN}
    values.update({k: v for k, v in hardware().items() if v is not None})
    known = [*values, "p2m_read_ns"]
    for text in changes:
        key, found, value = text.partition("=")
        if not found:
            raise HostnetError(f"--set {text}: expected KEY=VALUE, such as channels=6.")
        if key not in known:
            raise HostnetError(f"--set {text}: the machine has no {key!r}; {nearest(key, known)}")
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if not 0 < number < 1e6:
            raise HostnetError(f"--set {text}: {value!r} is not a positive number.")
        values[key] = number
    return values


def formula_part(values: dict[str, float]) -> dict[str, float]:
    """The part of ``values`` that the formulae take."""
    return {k: v for k, v in values.items() if k in hardware() or k == "p2m_read_ns"}
