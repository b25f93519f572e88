"""Pictures of a recorded packet: its accesses over its instructions by region, and which loads wait for which.

``to_terminal`` draws within 80 columns, and ``to_svg`` writes a file. Both mark the longest chain of loads, each of which
needs the data of the one before for its address.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median_low
from textwrap import fill
from typing import TYPE_CHECKING, Any

from .errors import HostnetError
from .output import write_text
from .recorder import LOADS, REGIONS, STORES, Access, accesses

if TYPE_CHECKING:
    from rich.console import Console

_CELLS = 60
#: Colour and short name of each region.
_DRAWN = {
    "frame": ("#0072B2", "frame"),
    "metadata": ("#56B4E9", "metadata"),
    "reply": ("#009E73", "reply"),
    "reply_metadata": ("#7BC8A4", "reply's metadata"),
    "heap": ("#B5400A", "heap"),
    "global": ("#E69F00", "global"),
    "stack": ("#8C8C8C", "stack"),
    "mmap": ("#CC79A7", "mmap"),
}
#: Links of a chain that are named in full.
_NAMED = 12


def instructions(packet: Mapping[str, Any]) -> int:
    """Number of instructions of a packet."""
    return int(sum(s["before"]["instructions"] for s in packet["steps"]) + packet["rest"]["instructions"])


#: First characters of a picture, by which a later one knows its own.
MARK = '<?xml version="1.0" encoding="utf-8" standalone="no"?>\n<!DOCTYPE svg'


def chosen(data: Mapping[str, Any], number: int | None) -> int:
    """Index of packet ``number``, counted from 1; by default that of the first packet with the median of instructions.
    Raises HostnetError for a number that the recording does not have."""
    packets = data["packets"]
    if number is None:
        totals = [instructions(p) for p in packets]
        return totals.index(median_low(totals))
    if not 1 <= number <= len(packets):
        raise HostnetError(f"--packet {number} is not within 1 to {len(packets)}, the packets of the recording.")
    return number - 1


def chain(all_: Sequence[Access]) -> list[int]:
    """Indices of the loads of the longest chain, the first of which depends on none."""
    loads = [i for i, a in enumerate(all_) if a.kind in LOADS]
    if not loads:
        return []
    links = [max(loads, key=lambda i: all_[i].depth)]
    while all_[links[-1]].sources:
        links.append(max(all_[links[-1]].sources, key=lambda s: all_[s].depth))
    return links[::-1]


def named(access: Access) -> str:
    """The place of an access, such as ``frame+12`` or ``heap page 3+128``."""
    name = _DRAWN[access.region][1]
    page = f" page {access.line[1]}" if access.line[0] == access.region and access.region in _PAGED else ""
    return f"{name}{page}{access.offset:+d}"


_PAGED = ("heap", "global", "stack", "mmap")


def heading(data: Mapping[str, Any], index: int, all_: Sequence[Access]) -> str:
    """Number, length and counts of the packet that a picture shows."""
    packet = data["packets"][index]
    return (
        f"packet {index + 1} of {len(data['packets']):,}: {packet['received']:,} bytes, "
        f"{instructions(packet):,} instructions, {len(all_):,} accesses"
    )


def described(all_: Sequence[Access], links: Sequence[int]) -> str:
    """The longest chain in words."""
    names = [named(all_[i]) for i in links]
    if len(names) > _NAMED:
        half = _NAMED // 2
        names = [*names[:half], f"{len(names) - _NAMED} more", *names[-half:]]
    return f"longest chain of loads, {len(links)}: {' > '.join(names)}" if links else "no loads"


def to_terminal(data: Mapping[str, Any], index: int, out: Console) -> None:
    """Print the accesses of a packet by region, within 80 columns."""
    packet = data["packets"][index]
    all_ = accesses(packet, data["pages"])
    links, total = chain(all_), max(instructions(packet), 1)

    def cell(access: Access) -> int:
        return min(max(access.instruction - 1, 0) * _CELLS // total, _CELLS - 1)

    def say(text: str) -> None:
        out.print(text.rstrip(), highlight=False, markup=False, soft_wrap=True)

    say(heading(data, index, all_))
    say(f"{'region':<17} accesses: l load, s store, b both, p other; ^ longest chain")
    for region, (_, name) in _DRAWN.items():
        kinds: list[set[str]] = [set() for _ in range(_CELLS)]
        for a in (a for a in all_ if a.region == region):
            kinds[cell(a)] |= {"l"} if a.kind == "load" else {"b"} if a.kind == "atomic" else {_letter(a)}
        if any(kinds):
            row = "".join("b" if {"l", "s"} <= k or "b" in k else min(k, key="lsp".index) if k else "·" for k in kinds)
            say(f"{name:<17} {row}")
    marks = [" "] * _CELLS
    for i in links:
        marks[cell(all_[i])] = "^"
    say(f"{'chain':<17} {''.join(marks)}")
    say(f"{'instruction':<17} 1{total:>{_CELLS - 1},}")
    say(fill(described(all_, links), 79, subsequent_indent="  "))


def _letter(access: Access) -> str:
    return "s" if access.kind in STORES else "p"


def to_svg(data: Mapping[str, Any], index: int, path: Path) -> None:
    """Write a picture of two parts: accesses over instructions, with a row for each line of memory; and the loads by the
    length of the chain that leads to them."""
    from matplotlib.lines import Line2D

    from .plots.style import new_figure, style

    packet = data["packets"][index]
    all_ = accesses(packet, data["pages"])
    links = chain(all_)
    regions = [r for r in REGIONS if any(a.region == r for a in all_)]
    rows: dict[tuple[str, int, int], float] = {}
    ticks, edges, y = [], [], 0.0
    for region in regions:
        lines = list(dict.fromkeys(a.line for a in all_ if a.region == region))
        # A region with few lines gets room for its name, and one with many does not crowd out the others.
        height = min(max(len(lines), 3), 14)
        for i, line in enumerate(lines):
            rows[line] = y + height * (i + 0.5) / len(lines)
        ticks.append((y + height / 2, f"{_DRAWN[region][1]}\n{len(lines)} line{'s' * (len(lines) != 1)}"))
        y += height
        edges.append(y)
    seen: dict[int, int] = {}
    graph: dict[int, tuple[int, int]] = {}
    for i, a in enumerate(all_):
        if a.kind in LOADS:
            seen[a.depth] = seen.get(a.depth, 0) + 1
            graph[i] = (a.depth, seen[a.depth])
    with style():
        fig = new_figure(9.0, 3.6 + 0.14 * max(y, 6))
        top, bottom = fig.subplots(2, 1, height_ratios=[max(0.14 * y, 1.6), 2.0])
        kinds = {"load": "o", "store": "s", "atomic": "D", "prefetch": "v", "prefetch_own": "v", "stream_store": "P"}
        size = 22 if len(all_) < 150 else 7
        for kind, marker in (kinds | {"flush": "X"}).items():
            of = [a for a in all_ if a.kind == kind]
            hollow = kind not in ("load", "atomic")
            colours = [_DRAWN[a.region][0] for a in of]
            top.scatter(
                [a.instruction for a in of],
                [rows[a.line] for a in of],
                s=size,
                marker=marker,
                facecolors="white" if hollow else colours,
                edgecolors=colours,
                linewidths=1.0,
                zorder=3,
            )
        top.plot(
            [all_[i].instruction for i in links],
            [rows[all_[i].line] for i in links],
            color="#D00000",
            linewidth=1.2,
            zorder=2,
        )
        for edge in edges[:-1]:
            top.axhline(edge, color="#BBBBBB", linewidth=0.8)
        top.set_yticks([t[0] for t in ticks], [t[1] for t in ticks], fontsize=8)
        top.set_ylim(y, 0)
        top.set_xlim(0, instructions(packet) + 1)
        top.grid(axis="y", visible=False)
        top.set_xlabel("instruction of the packet")
        top.set_title(f"{data['about']['program']}, {heading(data, index, all_)}")
        many = len(graph) > 150
        for i, (x, height) in graph.items():
            for source in (s for s in all_[i].sources if s in graph):
                there = graph[source]
                bottom.plot(
                    [there[0], x], [there[1], height], color="#BBBBBB", linewidth=0.3 if many else 0.7, zorder=1
                )
        bottom.scatter(
            [x for x, _ in graph.values()],
            [n for _, n in graph.values()],
            s=size,
            color=[_DRAWN[all_[i].region][0] for i in graph],
            zorder=3,
        )
        on_chain = [graph[i] for i in links]
        bottom.plot([x for x, _ in on_chain], [n for _, n in on_chain], color="#D00000", linewidth=1.2, zorder=2)
        bottom.set_xlabel("loads in the chain that ends with the load, which wait for each other")
        bottom.set_ylabel("load of this length")
        bottom.xaxis.get_major_locator().set_params(integer=True)
        bottom.yaxis.get_major_locator().set_params(integer=True)
        bottom.set_title(fill(described(all_, links), 120), fontsize=8, fontweight="normal")
        handles = [
            Line2D([], [], color=_DRAWN[r][0], marker="o", linestyle="", label=_DRAWN[r][1], markersize=5)
            for r in regions
        ]
        shapes = [
            Line2D([], [], color="#444444", marker=m, linestyle="", label=k, markersize=5, markerfacecolor=face)
            for k, m, face in (("load", "o", "#444444"), ("store", "s", "white"), ("atomic", "D", "#444444"))
        ]
        shapes.append(
            Line2D([], [], color="#444444", marker="v", linestyle="", label="prefetch", markerfacecolor="white")
        )
        shapes.append(Line2D([], [], color="#D00000", label="longest chain"))
        fig.legend(handles=handles + shapes, loc="outside lower center", ncols=7)
        text = io.StringIO()
        fig.savefig(text, format="svg", metadata={"Date": None})
    write_text(path, text.getvalue())
