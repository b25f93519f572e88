"""Runs shipped scenarios with random changes, and prints those that crash or whose books do not balance.

    python fuzz/overrides.py --seconds 600
    python fuzz/overrides.py --seconds 600 --extreme

Each draw takes a scenario, often another platform, and changes up to four values: numbers, choices, switches. Scenarios that
are refused are fine. With ``--extreme`` numbers are at the ends of what their keys take. What is printed can be run again with the command that it shows.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import shlex
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import hostnet
from hostnet import api

#: Tables whose values are drawn; the rest says how long a run is, or what arrives.
TABLES = ("platform", "placement", "peripheral", "ccnic", "rings")
#: Numbers that a draw replaces a number with: by a factor, and of whole numbers others as well.
NEAR, NEAR_WHOLE = (0.0, 0.5, 2.0), (0, 1)
FAR, FAR_WHOLE = (0.0, 1e-9, 1e-3, 1e3, 1e9), (0, 1, 2, 2**16, 2**31, 2**32 - 1, 2**63 - 1)
#: Words about values, not values.
WORDS = ("name", "description", "provenance")


def leaves(at: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Paths of the values below ``at`` that a change may replace."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in WORDS:
                yield from leaves(f"{at}.{key}", inner)
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from leaves(f"{at}.{i}", inner)
    elif value is not None:
        yield at, value


def other(draw: random.Random, sc: hostnet.Scenario, path: str, value: Any, extreme: bool) -> Any:
    """Another value of the same kind; of a choice one that the engine names as valid."""
    factors, whole = (FAR, FAR_WHOLE) if extreme else (NEAR, NEAR_WHOLE)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return draw.choice([*whole, value // 2, value + 1, 2 * value])
    if isinstance(value, float):
        return value * draw.choice(factors)
    number, _, unit = str(value).partition(" ")
    if unit and number.replace(".", "", 1).isdigit():
        return f"{float(number) * draw.choice(factors):g} {unit}"
    try:
        sc.with_({path: "?"}).resolve()
    except hostnet.HostnetError as e:
        _, _, choices = str(e).partition("(valid: ")
        return draw.choice(choices.rstrip(").").split(", ")) if choices else value
    return value


def drawn(seed: int, extreme: bool) -> tuple[str, dict[str, Any]]:
    """A scenario and its changes."""
    draw = random.Random(seed)
    name = draw.choice(sorted(api.scenarios()))
    changes: dict[str, Any] = {"seed": seed}
    if draw.random() < 0.6:
        changes["platform"] = draw.choice(sorted(api.platforms()))
    sc = hostnet.Scenario.load(name).with_(changes)
    spec = json.loads(sc.resolve())
    places = [p for table in TABLES for p in leaves(table, spec.get(table))]
    for path, value in draw.sample(places, draw.choice([1, 1, 2, 4])):
        changes[path] = other(draw, sc, path, value, extreme)
    return name, changes


def attempt(seed: int, extreme: bool, answer: Any) -> None:
    """Runs one draw; sends what became of it, what was run, and why that is wrong."""
    command, became = "", "refused"
    try:
        name, changes = drawn(seed, extreme)
        sets = (f"--set {shlex.quote(f'{path}={json.dumps(v)}')}" for path, v in changes.items())
        command = f"hostnet run {name} {' '.join(sets)}"
        sc = hostnet.Scenario.load(name).with_(changes)
        sc.resolve()
        became = "stopped"
        hostnet.run(sc)
        answer.send(("ran", command, ""))
    except hostnet.HostnetError as e:
        answer.send(("crashed" if "defect of hostnet" in str(e) else became, command, str(e)))
    except BaseException as e:  # noqa: BLE001 - a panic of the engine is not an Exception
        answer.send(("crashed", command, repr(e)))


def main() -> int:
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--seconds", type=float, default=60, help="how long to go on")
    args.add_argument("--each", type=float, default=10, help="seconds after which a run is given up")
    args.add_argument("--seed", type=int, default=1, help="the first draw")
    args.add_argument("--extreme", action="store_true", help="numbers at the ends of what their keys take")
    given = args.parse_args()
    tally: Counter[str] = Counter()
    end = time.monotonic() + given.seconds
    with tempfile.TemporaryDirectory() as cache:
        os.environ["HOSTNET_CACHE"] = cache
        seed = given.seed
        while time.monotonic() < end:
            here, there = multiprocessing.Pipe(duplex=False)
            child = multiprocessing.get_context("fork").Process(target=attempt, args=(seed, given.extreme, there))
            child.start()
            there.close()
            try:
                became, command, why = here.recv() if here.poll(given.each) else ("late", "", "")
            except EOFError:
                became, command, why = "crashed", f"draw {seed}", "the process died"
            child.kill()
            child.join()
            tally[became] += 1
            if became in ("crashed", "stopped"):
                print(f"{became}: {command}\n  {why}", flush=True)
            seed += 1
    print(", ".join(f"{n} {what}" for what, n in sorted(tally.items())))
    return 1 if tally["crashed"] else 0


if __name__ == "__main__":
    sys.exit(main())
