"""Lives of packets in Chrome's JSON trace-event format, which Perfetto (ui.perfetto.dev) and chrome://tracing open.

Four processes hold the tracks: packets with their stages, threads, memory requests, and queues as counters. Arrows lead
from a packet to the core that serves it and back. Viewers keep nanoseconds, so that events begin and end on whole
nanoseconds; ``args`` of each event hold the exact picoseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .lives import Lives, parts
from .output import check_file, write_text
from .paths import file_named

PACKETS, THREADS, REQUESTS, QUEUES = 1, 2, 3, 4
_PROCESSES = {PACKETS: "packets", THREADS: "threads", REQUESTS: "memory requests", QUEUES: "queues"}
#: Largest number of requests of one packet in a trace.
MOST_REQUESTS = 16
_KINDS = {"write": "device writes", "read": "device reads"}
#: First bytes of a file of this command.
MARK = '{"displayTimeUnit":"ns","otherData":{"hostnet"'

Event = dict[str, Any]


#: Abbreviations within names of parts.
_CAPITALS = {"cha": "CHA", "dram": "DRAM", "llc": "LLC", "mc": "MC", "nic": "NIC"}


def words(key: str) -> str:
    """The name of a part in words."""
    return " ".join(_CAPITALS.get(word, word) for word in key.split("_"))


class _Clock:
    """Times in microseconds from the first time of a trace, on whole nanoseconds."""

    def __init__(self, origin: int) -> None:
        self.origin = origin

    def us(self, ps: int) -> float:
        return (ps - self.origin) // 1000 / 1000

    def slice(self, begin: int, end: int) -> dict[str, float]:
        """Start and duration, so that slices which touch or nest in picoseconds do so in the trace."""
        nanoseconds = (end - self.origin) // 1000 - (begin - self.origin) // 1000
        return {"ts": self.us(begin), "dur": nanoseconds / 1000}


def events(lives: Lives) -> dict[str, Any]:
    """The trace as a JSON object: ``traceEvents`` with the events, and ``otherData`` about the run."""
    begins = [p["arrived"] for p in lives.packets] + [r["borders"][0] for p in lives.packets for r in _kept(p)]
    clock = _Clock(min(begins, default=0))
    found = [*_names(lives), *_packets(lives, clock), *_threads(lives, clock)]
    found += [*_requests(lives, clock), *_queues(lives, clock)]
    return {
        "displayTimeUnit": "ns",
        "otherData": {
            "hostnet": lives.result.data["version"],
            "scenario": lives.name,
            "packets": f"{len(lives.packets)} of {lives.ended} that ended in the measured window",
            "requests_left_out": sum(len(p["requests"]) - len(_kept(p)) for p in lives.packets),
            "origin_ps": clock.origin,
        },
        "traceEvents": found,
    }


def write(lives: Lives, path: str | Path) -> int:
    """Write the trace to a file, completely or not at all; returns the number of events."""
    check_file(path := file_named(path), MARK)
    trace = events(lives)
    write_text(path, json.dumps(trace, separators=(",", ":")) + "\n")
    return len(trace["traceEvents"])


def _name(pid: int, what: str, name: str, tid: int = 0) -> Event:
    return {"ph": "M", "pid": pid, "tid": tid, "ts": 0, "name": what, "args": {"name": name}}


def _names(lives: Lives) -> Iterator[Event]:
    for pid, name in _PROCESSES.items():
        yield _name(pid, "process_name", name)
        yield {"ph": "M", "pid": pid, "tid": 0, "ts": 0, "name": "process_sort_index", "args": {"sort_index": pid}}
    for p in lives.packets:
        yield _name(PACKETS, "thread_name", f"packet {p['number']}", p["number"])
    for thread in sorted({s["thread"] for s in lives.threads}):
        yield _name(THREADS, "thread_name", lives.thread(thread), thread + 1)


def _packets(lives: Lives, clock: _Clock) -> Iterator[Event]:
    about = parts()

    def inner(cat: str, key: str, domain: str, begin: int, end: int, tid: int) -> Event:
        args = {"ps": end - begin, "domain": domain}
        return _slice(PACKETS, tid, cat, words(key), args) | clock.slice(begin, end)

    for p in lives.packets:
        tid, end = p["number"], p["arrived"] + p["latency"]
        args = {k: p[k] for k in ("nic", "queue", "thread", "bytes") if p[k] is not None} | {"ps": p["latency"]}
        yield _slice(PACKETS, tid, "packet", f"packet {tid}", args) | clock.slice(p["arrived"], end)
        for s in p["stages"]:
            yield inner("stage", s["part"], s["domain"], s["from"], s["to"], tid)
            if len(s["parts"]) > 1 or s["parts"][0]["part"] != s["part"]:
                for x in s["parts"]:
                    yield inner("part", x["part"], about[x["part"]]["domain"], x["from"], x["to"], tid)
        yield from _flow(p, lives, clock)


def _flow(p: dict[str, Any], lives: Lives, clock: _Clock) -> Iterator[Event]:
    """Arrows from a packet to the slice of the core that begins to serve it, and from there to the packet's last
    stage."""
    served = next((s for s in p["stages"] if s["part"] in ("service", "core_queue") and s["thread"] is not None), None)
    if served is None:
        return
    at, thread = served["from"], served["thread"]
    if not any(s["thread"] == thread and s["from"] <= at < s["to"] and _lasts(s, at, clock) for s in lives.threads):
        return
    flow = {"cat": "packet", "name": "served", "id": p["number"], "pid": PACKETS, "tid": p["number"]}
    yield flow | {"ph": "s", "ts": clock.us(p["arrived"])}
    yield flow | {"ph": "t", "ts": clock.us(at), "pid": THREADS, "tid": thread + 1}
    yield flow | {"ph": "f", "bp": "e", "ts": clock.us(max(p["stages"][-1]["from"], at))}


def _lasts(s: dict[str, Any], at: int, clock: _Clock) -> bool:
    """Whether time ``at`` lies within a slice on whole nanoseconds, too."""
    return clock.origin <= at and clock.us(s["from"]) <= clock.us(at) < clock.us(s["to"])


def _slice(pid: int, tid: int, cat: str, name: str, args: dict[str, Any]) -> Event:
    return {"ph": "X", "pid": pid, "tid": tid, "cat": cat, "name": name, "args": args}


def _threads(lives: Lives, clock: _Clock) -> Iterator[Event]:
    """Slices of threads, cut to the time in which the packets live: an idle thread polls long before."""
    until = max((p["arrived"] + p["latency"] for p in lives.packets), default=0)
    for s in lives.threads:
        begin, end = max(s["from"], clock.origin), min(s["to"], until)
        if begin < end:
            args = {"ps": s["to"] - s["from"]}
            yield _slice(THREADS, s["thread"] + 1, "thread", s["state"], args) | clock.slice(begin, end)


def _kept(packet: dict[str, Any]) -> list[dict[str, Any]]:
    """Requests of a packet that a trace holds: those of devices, then those of the core that serves the packet, then
    those of the core before and behind."""
    service = [s for s in packet["stages"] if s["part"] == "service"]

    def order(r: dict[str, Any]) -> int:
        begin, end = r["borders"][0], r["borders"][-1]
        return 0 if r["kind"] in _KINDS else 1 if any(begin < s["to"] and s["from"] < end for s in service) else 2

    found: list[dict[str, Any]] = sorted(packet["requests"], key=order)[:MOST_REQUESTS]
    return found


def _requests(lives: Lives, clock: _Clock) -> Iterator[Event]:
    """Requests as asynchronous slices, which may overlap on a track; a request that served several packets of a burst
    occurs once."""
    hops = list(parts())
    hops = hops[hops.index("to_cha") : hops.index("return") + 1]
    found = {
        (r["kind"], r["thread"], r["line"], *r["borders"]): (r, p["number"]) for p in lives.packets for r in _kept(p)
    }
    order = sorted(found.items(), key=lambda item: item[0][3])
    for n, (_, (r, packet)) in enumerate(order):
        name = _KINDS.get(r["kind"]) or f"{lives.thread(r['thread'])} reads or owns"
        event = {"pid": REQUESTS, "tid": 0, "cat": "request", "id2": {"local": f"{n:#x}"}, "name": name}
        borders = r["borders"]
        args = {"packet": packet, "line": r["line"], "lines": r["lines"], "ps": borders[-1] - borders[0]}
        yield event | {"ph": "b", "ts": clock.us(borders[0]), "args": args}
        for hop, begin, end in zip(hops, borders, borders[1:], strict=False):
            if begin < end:
                yield event | {"ph": "b", "name": words(hop), "ts": clock.us(begin), "args": {"ps": end - begin}}
                yield event | {"ph": "e", "name": words(hop), "ts": clock.us(end)}
        yield event | {"ph": "e", "ts": clock.us(borders[-1])}


def _queues(lives: Lives, clock: _Clock) -> Iterator[Event]:
    for q in lives.queues:
        for at, fill in q["values"]:
            if at >= clock.origin:
                event = {"ph": "C", "pid": QUEUES, "tid": 0, "name": q["name"], "ts": clock.us(at)}
                yield event | {"args": {q["unit"]: fill}}
