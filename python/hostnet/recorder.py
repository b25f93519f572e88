"""Recordings of real programs: making them, and tables of what they hold.

The program is traced by a process of its own, which this module starts (``python -m hostnet.recorder``). When the
command ends in any way, also by SIGKILL, that process notices the end of a pipe, takes its breakpoints away and lets the
program go.
"""

from __future__ import annotations

import json
import os
import select
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

from . import _core
from .errors import HostnetError, RunFailed, SpecError
from .output import check_file
from .progress import Progress
from .tables import Column, console, show

#: First bytes of a recording.
MARK = "hnrec"
LINE = 64


def check(options: Mapping[str, Any]) -> None:
    """Refuses options that contradict each other."""
    if options["run"] and options["pid"] is not None:
        raise HostnetError("--pid attaches to a program that runs; give it or a program after --, not both.")
    if not options["run"] and options["pid"] is None:
        raise HostnetError("no program is given; write it after --, such as `hostnet record -o mine.rec -- ./mine`.")
    sockets = "--socket" if options["socket"] is not None else "--sockets" if options["sockets"] else ""
    if sockets and options["enter"]:
        raise HostnetError(f"{sockets} and --enter name different boundaries of packets; give one of them.")
    for name in ("leave", "frame"):
        if options[name] and not options["enter"]:
            raise HostnetError(f"--{name} is for the boundary that --enter names; give --enter as well.")
    if not 0 < options["packets"] <= 100_000:
        raise HostnetError(f"--packets {options['packets']} is not within 1 to 100000.")
    if not 0 <= options["skip"] < 2**32:
        raise HostnetError(f"--skip {options['skip']} is not within 0 to {2**32 - 1}.")
    if not 0 < options["longest"] < 2**64:
        raise HostnetError(f"--longest {options['longest']} is not within 1 to {2**64 - 1}.")
    if not 0 < options["seconds"] <= 86_400:
        raise HostnetError(f"--seconds {options['seconds']:g} is not above 0 and at most 86400.")
    if options["pid"] is not None and not 0 < options["pid"] < 2**31:
        raise HostnetError(f"--pid {options['pid']} is no number of a process.")


def record(options: Mapping[str, Any], out: Path, quiet: bool = False) -> int:
    """Record a program into ``out`` and return the number of packets. Ctrl-C ends the recording early."""
    check(options)
    check_file(out, MARK)
    asked = {**options, "version": options["version"] or packaged(options)}
    stop, to_stop = os.pipe()
    told, to_tell = os.pipe()
    command = [sys.executable, "-m", "hostnet.recorder", json.dumps(asked), str(out.resolve()), f"{stop},{to_tell}"]
    given = subprocess.PIPE if _lacks_input() else None
    tracer = subprocess.Popen(
        command, stdin=given, pass_fds=(stop, to_tell), start_new_session=True, env=_environment()
    )
    os.close(stop)
    os.close(to_tell)
    with os.fdopen(told, encoding="utf-8") as lines, Progress(quiet).stage("recording", {"packets": 1.0}, "") as report:
        while True:
            try:
                for line in lines:
                    message = json.loads(line)
                    if "packets" in message:
                        report("packets", message["packets"] / options["packets"])
                    elif "error" in message:
                        raise SpecError(message["error"])
                    else:
                        return int(message["done"])
                raise RunFailed(f"the recorder ended without an answer (exit code {tracer.wait()}).")
            except KeyboardInterrupt:
                with suppress(OSError):
                    os.write(to_stop, b"f")
            finally:
                tracer.poll()


def _environment() -> dict[str, str]:
    """The environment of the tracing process, which finds this package where it was imported from."""
    here = str(Path(__file__).resolve().parents[1])
    return {**os.environ, "PYTHONPATH": os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])}


def _lacks_input() -> bool:
    """Whether standard input is a terminal, which a program of another session cannot read, or empty. Many programs end
    when their input does, so the recorded one reads from a pipe that stays open."""
    try:
        return stat.S_ISCHR(os.fstat(0).st_mode)
    except OSError:
        return True


def packaged(options: Mapping[str, Any]) -> str:
    """Version of the Debian package that the program comes from, or an empty string."""
    import shutil

    pid = options["pid"]
    try:
        program = os.readlink(f"/proc/{pid}/exe") if pid is not None else shutil.which(options["run"][0])
        real = os.path.realpath(program or "")
        owner = subprocess.run(["dpkg-query", "-S", real], capture_output=True, text=True, check=True).stdout
        name = owner.split(": ")[0].split(",")[0]
        shown = ["dpkg-query", "-W", "-f", "${Version}", name]
        return subprocess.run(shown, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The whole contents of a recording."""
    data: dict[str, Any] = json.loads(_core.recording(path))
    return data


@dataclass(frozen=True)
class Access:
    """An access in a form that tables need."""

    kind: str
    region: str
    line: tuple[str, int, int]
    last_line: tuple[str, int, int]
    sources: tuple[int, ...]
    depth: int
    #: Number of the instruction that makes the access, from 1 on.
    instruction: int
    bytes: int
    offset: int

    @property
    def depends(self) -> bool:
        """Whether the address comes from an earlier load of the packet."""
        return bool(self.sources)


def accesses(packet: Mapping[str, Any], pages: Sequence[Mapping[str, Any]]) -> list[Access]:
    """The accesses of a packet, each with the length of the chain of loads that leads to it, and the indices of the loads
    that its address comes from."""
    out: list[Access] = []
    instruction = 0
    for i, step in enumerate(packet["steps"]):
        instruction += step["before"]["instructions"]
        access = step["access"]
        (place, at), *_ = access["place"].items()
        if place == "memory":
            region, page, offset = pages[at["page"]]["kind"], at["page"], at["offset"]
        else:
            region, page, offset = place, 0, at
        line = (region, page, offset // LINE)
        last = (region, page, (offset + max(access["bytes"], 1) - 1) // LINE)
        sources = tuple(i - d for d in access["address_from"])
        depth = max((out[s].depth for s in sources), default=0) + 1
        out.append(Access(access["kind"], region, line, last, sources, depth, instruction, access["bytes"], offset))
    return out


#: Regions in the order of tables, with their meaning.
REGIONS = {
    "frame": "received frame or message",
    "metadata": "its metadata (mbuf)",
    "reply": "frame or message that is sent",
    "reply_metadata": "its metadata",
    "heap": "program: heap",
    "global": "program: variables and constants",
    "stack": "program: stacks",
    "mmap": "program: other mappings",
}
LOADS = ("load", "atomic")
STORES = ("store", "stream_store", "atomic")


def summary(data: Mapping[str, Any]) -> dict[str, Any]:
    """Medians and means over the packets of a recording: counts, lines by region, dependence."""
    packets = [(p, accesses(p, data["pages"])) for p in data["packets"]]
    counts = ("instructions", "branches", "taken", "mispredicted", "fences", "system_calls")
    totals = [{c: sum(s["before"][c] for s in p["steps"]) + p["rest"][c] for c in counts} for p, _ in packets]

    def number(chosen: Any) -> list[int]:
        return [sum(1 for a in all_ if chosen(a)) for _, all_ in packets]

    def middle(values: Sequence[float]) -> dict[str, float]:
        return {"median": median(values), "mean": mean(values)}

    def lines(all_: Sequence[Access], region: str) -> set[tuple[str, int, int]]:
        return {
            (a.line[0], a.line[1], n) for a in all_ if a.region == region for n in range(a.line[2], a.last_line[2] + 1)
        }

    loads = [a for _, all_ in packets for a in all_ if a.kind in LOADS]
    return {
        "packets": len(packets),
        "bursts": len({p["burst"] for p, _ in packets}),
        "threads": len(data["threads"]),
        "pages": len(data["pages"]),
        "received_bytes": mean(p["received"] for p, _ in packets),
        "outcomes": dict(Counter(_outcome(p["outcome"]) for p, _ in packets)),
        "counts": {c: middle([t[c] for t in totals]) for c in counts},
        "kinds": {
            k: middle(number(lambda a, k=k: a.kind == k))
            for k in ("load", "store", "atomic", "prefetch", "prefetch_own", "stream_store", "flush")
        },
        "regions": {
            r: {
                "loads": mean(number(lambda a, r=r: a.region == r and a.kind in LOADS)),
                "stores": mean(number(lambda a, r=r: a.region == r and a.kind in STORES)),
                "lines": mean(len(lines(all_, r)) for _, all_ in packets),
                "distinct": len(set().union(*(lines(all_, r) for _, all_ in packets))),
            }
            for r in REGIONS
            if any(a.region == r for _, all_ in packets for a in all_)
        },
        "dependence": {
            "dependent_loads": mean(a.depends for a in loads) if loads else 0.0,
            "longest_chain": middle(
                [max((a.depth for a in all_ if a.kind in LOADS), default=0) for _, all_ in packets]
            ),
        },
    }


def _outcome(outcome: str | Mapping[str, int]) -> str:
    return outcome if isinstance(outcome, str) else next(iter(outcome))


def table(data: Mapping[str, Any]) -> None:
    """Print a recording: its origin, and medians and means per packet."""
    about, s, out = data["about"], summary(data), console(80)

    def say(text: str) -> None:
        out.print(text, highlight=False, markup=False, soft_wrap=True)

    version = f" {about['version']}" if about["version"] else ""
    say(f"{about['program']}{version}, recorded {about['date']} by {about['recorder']}")
    say(f"  {' '.join(about['command'])}")
    say(f"  {about['machine']}")
    what = ", ".join(f"{n:,} {name}" for name, n in s["outcomes"].items())
    say(
        f"{s['packets']:,} packets in {s['bursts']:,} bursts ({about['boundary']}), "
        f"{s['received_bytes']:,.0f} bytes on average"
    )
    say(f"{what}; {s['threads']} thread{'s' * (s['threads'] > 1)}, {s['pages']:,} pages")
    names = {"system_calls": "system calls", "taken": "taken branches", "mispredicted": "mispredicted branches"}
    kinds = {"load": "loads", "store": "stores", "atomic": "atomic operations", "prefetch": "prefetches"}
    kinds |= {"prefetch_own": "prefetches for writing", "stream_store": "non-temporal stores", "flush": "flushes"}
    d = s["dependence"]
    found = {names.get(c, c): v for c, v in s["counts"].items()} | {kinds[k]: v for k, v in s["kinds"].items()}
    found["longest chain of loads"] = d["longest_chain"]
    rows = [[name, _mean(v["median"]), _mean(v["mean"])] for name, v in found.items() if v["mean"]]
    rows += [["loads that depend on a load [%]", "", _mean(100 * d["dependent_loads"])]]
    show([Column("a packet has", key=True, text=True), Column("median"), Column("mean")], rows, to=out)
    show(
        [
            Column("region", key=True, text=True),
            Column("loads"),
            Column("stores"),
            Column("lines"),
            Column("lines of all packets"),
        ],
        [
            [REGIONS[r], _mean(v["loads"]), _mean(v["stores"]), _mean(v["lines"]), f"{v['distinct']:,}"]
            for r, v in s["regions"].items()
        ],
        to=out,
    )


def _mean(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _trace(asked: str, out: str, pipes: str) -> int:
    """The process that traces: reports by lines of JSON, ends early when it is told, and at once when nobody listens."""
    stop, tell = map(int, pipes.split(","))
    os.set_inheritable(stop, False)
    os.set_inheritable(tell, False)

    def say(message: Mapping[str, Any]) -> None:
        with suppress(OSError):
            os.write(tell, (json.dumps(message) + "\n").encode())

    def on_progress(packets: int, skipped: int) -> str:
        if select.select([stop], [], [], 0)[0]:
            return "finish" if os.read(stop, 1) else "abandon"
        say({"packets": packets, "skipped": skipped})
        return "continue"

    try:
        say({"done": _core.record(asked, out, on_progress)})
    except HostnetError as e:
        say({"error": str(e)})
    return 0


if __name__ == "__main__":
    sys.exit(_trace(*sys.argv[1:]))
