"""Lives of packets: what each of some packets passed between its arrival and its end, in picoseconds.

The engine runs a scenario twice. The first run finds the packets that are asked for, and the second, equal run follows
them.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypedDict

from . import _core
from .errors import HostnetError
from .progress import Progress
from .results import Result

if TYPE_CHECKING:
    from .api import AnyScenario

#: Ways to choose several packets of a run.
CHOICES = ("first", "slowest", "random")
#: Largest number of packets whose lives one run records.
MOST = 100_000
#: Names of single packets by their latency, with the quantile that each stands for.
QUANTILES = {"median": 0.5, "slowest": 1.0}


class Part(TypedDict):
    """A part of a packet's life, and the domain in which the packet spends the part."""

    key: str
    domain: str
    meaning: str


@cache
def parts() -> dict[str, Part]:
    """Every part of a packet's life, by key."""
    found: list[Part] = json.loads(_core.parts())
    return {p["key"]: p for p in found}


@dataclass(frozen=True)
class Lives:
    """Lives of some packets of a run, as the engine recorded them; all times are integer picoseconds.

    ``packets`` holds a table for each packet with its ``stages``, whose ``parts`` tile its ``latency``, and with the
    memory ``requests`` that served it. ``threads`` holds slices of the cores that served the packets, and ``queues`` the
    fill of queues over time. ``ended`` is the number of all packets that ended in the measured window. In a scenario with
    a ``[client]``, a packet is a round trip, and threads from ``client`` on are those of the client.
    """

    name: str
    result: Result
    ended: int
    packets: list[dict[str, Any]]
    threads: list[dict[str, Any]]
    queues: list[dict[str, Any]]
    client: int | None = None

    def thread(self, number: int) -> str:
        """Name of a thread."""
        if self.client is not None and number >= self.client:
            return f"client's thread {number - self.client}"
        return f"thread {number}"


def follow(scenario: AnyScenario, how: str = "first", n: float = 100, *, quiet: bool = True) -> Lives:
    """The lives of ``n`` packets of a scenario, chosen by ``how``: the "first" ones, the "slowest" ones, or ones drawn
    at "random". With "number", the life of packet ``n``; with "quantile", that of the packet at this quantile of the
    latency. Raises HostnetError for packets that no run has, and SpecError for a scenario whose packets cannot be followed.
    """
    from .specs import Scenario

    _check(how, n)
    scenario = Scenario.of(scenario)
    name = str(scenario.to_dict().get("name", "run"))
    with Progress(quiet).stage(f"{name}: lives of packets", {"lives": 1.0}, unit="") as report:
        result, lives = _core.trace(scenario.resolve(), how, n, lambda fraction: report("lives", fraction))
    found = json.loads(lives)
    return Lives(
        name=name,
        result=Result(json.loads(result)),
        ended=found["ended"],
        packets=found["packets"],
        threads=found["threads"],
        queues=found["queues"],
        client=found["client"],
    )


def _check(how: Any, n: Any) -> None:
    """Raises HostnetError for arguments of `follow` that choose no packets."""
    if how not in (*CHOICES, "number", "quantile"):
        raise HostnetError(f'how = {how!r} chooses no packets; give {", ".join(CHOICES)}, "number" or "quantile".')
    if how == "quantile":
        if not isinstance(n, (int, float)) or not 0 < n <= 1:
            raise HostnetError(f"n = {n!r} is no quantile, which is above 0 and at most 1, such as 0.99.")
        return
    most = MOST if how in CHOICES else math.inf
    if not isinstance(n, (int, Integral)) or not 1 <= int(n) <= most:
        what = (
            f"number of packets within 1 to {MOST:,}" if how in CHOICES else "number of a packet, which counts from 1"
        )
        raise HostnetError(f"n = {n!r} is no {what}.")


def choice(count: int, how: str) -> tuple[str, float]:
    """Arguments of `follow` for ``count`` packets. Raises HostnetError for a choice that does not exist."""
    if how not in CHOICES:
        raise HostnetError(f"--choose {how}: choose first, slowest or random.")
    if not 1 <= count <= MOST:
        raise HostnetError(f"--packets {count} is not within 1 to {MOST:,}.")
    return how, count


def single(packet: str) -> tuple[str, float]:
    """Arguments of `follow` for one packet: its number, "median", "slowest", or a percentile such as "p99". Raises
    HostnetError for anything else."""
    if packet in QUANTILES:
        return "quantile", QUANTILES[packet]
    if re.fullmatch(r"[0-9]{1,15}", packet) and int(packet) > 0:
        return "number", int(packet)
    percentile = re.fullmatch(r"p([0-9]{1,2}(?:\.[0-9]{1,6})?)", packet)
    if percentile and float(percentile[1]) > 0:
        return "quantile", float(Decimal(percentile[1]) / 100)  # p99.9 is 0.999; 99.9 / 100 is above
    raise HostnetError(
        f"--packet {packet}: give a number from 1, median, slowest, or a percentile such as p99 or p99.9."
    )
