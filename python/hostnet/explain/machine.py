"""Properties of a machine that an explanation of its counters needs, each with its source."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

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


#: Constants of the paper's machine that do not apply to other machines.
_PAPERS = ("c2m_read_ns", "c2m_write_ns", "p2m_write_ns", "iio_to_cha_ns", "cha_dram_read_ns")
#: Constants of the paper's DDR4, for which a platform with other memory has values of its own or none.
_OF_DDR = ("dclk_ghz", "t_trans_ns")
_KNOWN = ("cores", "p2m_read_ns")


#: What each socket of a server has.
_OF_SOCKETS = ("channels", "cores", "iio_write_credits", "iio_read_credits")


def machine(
    changes: Iterable[str] = (),
    platform: Mapping[str, Any] | None = None,
    recorded: Mapping[str, float] | None = None,
    sockets: int = 1,
    busy_cores: int | None = None,
    papers: bool = True,
) -> dict[str, float]:
    """Properties of the paper's machine, of
    ``platform``, or of the machine that a recording describes, with ``changes`` such as ``channels=6``. The counts are
    of ``sockets`` sockets, and of ``busy_cores`` cores where the recording tells. Without ``papers``, the machine is not the
    paper's, whose times without contention are left out.

    A key whose value is unknown is absent. Raises HostnetError for a key or a value that is invalid.
    """
    values: dict[str, float] = {name: value for name, value, _, _ in _OWN}
    values.update({k: v for k, v in hardware().items() if v is not None})
    known = [*values, *_KNOWN]
    if platform is not None:
        values = {k: v for k, v in values.items() if k not in _PAPERS + _OF_DDR} | clocks(platform)
    elif recorded:
        values = {k: v for k, v in values.items() if k not in _PAPERS}
        values |= {k: v for k, v in recorded.items() if k in known}
    elif not papers:
        values = {k: v for k, v in values.items() if k not in _PAPERS}
    values |= {k: values[k] * sockets for k in _OF_SOCKETS if k in values}
    if busy_cores is not None:
        values["cores"] = float(busy_cores)
    for text in changes:
        key, equals, value = text.partition("=")
        if not equals:
            raise HostnetError(f"--set {text}: expected KEY=VALUE, such as channels=6.")
        if key not in known:
            raise HostnetError(f"--set {text}: the machine has no {key!r}; {nearest(key, known)}")
        number = property_value(value)
        if number is None:
            raise HostnetError(f"--set {text}: {value!r} is not a positive number{BELOW}.")
        values[key] = number
    return values


#: Upper bound of every property, in words.
BELOW = " below 1000000"


def property_value(text: str) -> float | None:
    """Number of a property that ``text`` gives; None where it is none that a machine can have."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 < number < 1e6 else None


def of_socket(
    values: Mapping[str, float], sockets: int, busy_cores: int | None, share: float, cores_given: bool
) -> dict[str, float]:
    """Properties of one of ``sockets`` alike sockets, of a machine with the properties ``values`` of all. The busy cores of
    the socket are ``busy_cores``, where they are known; given ones are divided by the socket's ``share`` of core traffic."""
    own = {k: v / sockets if k in _OF_SOCKETS else v for k, v in values.items()}
    if cores_given:
        own["cores"] = max(round(values["cores"] * share), 1)
    elif busy_cores is not None:
        own["cores"] = float(busy_cores)
    return own


def clocks(platform: Mapping[str, Any]) -> dict[str, float]:
    """Clocks, channels, cores and credits of one node of a platform, under the names that explanations use."""
    core, memory = platform["core"], platform["memory"]
    found = {
        "core_ghz": _ghz(core["clock"]),
        "cha_ghz": _ghz(platform["caches"].get("uncore_clock") or core["clock"]),
        "channels": float(memory["channels"]),
        "cores": float((platform.get("nodes") or {}).get("cores") or core["count"]),
        "lfb_credits": float(core["lfb"]),
    }
    iio = platform.get("iio") or {}
    for key, name in (("iio_write_credits", "write_buffer"), ("iio_read_credits", "read_buffer")):
        if iio.get(name):
            found[key] = float(iio[name] * iio.get("count", 1))  # each controller has buffers of its own
    if m := re.fullmatch(r"DDR\d-(\d+)", str(memory["standard"])):
        transfers = float(m[1]) * 1e-3  # 8 bytes each, two in a clock
        found |= {"dclk_ghz": transfers / 2, "t_trans_ns": 8 / transfers}
    return found


def _ghz(clock: str) -> float:
    number, unit = clock.split()
    return float(number) * {"GHz": 1.0, "MHz": 1e-3, "kHz": 1e-6, "Hz": 1e-9}[unit]


def formula_part(values: Mapping[str, float]) -> dict[str, float]:
    """The values among ``values`` that the formulae use."""
    return {k: v for k, v in values.items() if k in hardware() or k == "p2m_read_ns"}
