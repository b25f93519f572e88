"""The life of one packet as a waterfall: its stages in order, each with its parts and their domains, to the picosecond."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from .lives import Lives, parts
from .trace import words

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure
    from rich.console import Console

    from .notebook import Picture

#: Colours of domains, for the terminal and for pictures (Okabe and Ito's palette).
COLOURS = {
    "wire": "#8C8C8C",
    "NIC": "#0072B2",
    "PCIe": "#56B4E9",
    "mesh": "#7FBF7B",
    "home agent": "#009E73",
    "LLC": "#F0E442",
    "socket link": "#CC79A7",
    "memory controller": "#E69F00",
    "DRAM": "#D55E00",
    "ring": "#C9C9C9",
    "socket": "#B5A36A",
    "core": "#7B61A8",
    "memory": "#009E73",
}
_BAR = 18


@dataclass(frozen=True)
class Row:
    """A line of a waterfall: a stage, or the shares of one part of a stage together; times are picoseconds from the
    packet's arrival."""

    part: str
    domain: str
    inner: bool
    spans: list[tuple[int, int]]

    @property
    def ps(self) -> int:
        """Time of the row."""
        return sum(end - begin for begin, end in self.spans)


def rows(packet: dict[str, Any]) -> list[Row]:
    """Stages of a packet, each followed by its parts where it has other parts than itself."""
    about, found = parts(), []
    for s in packet["stages"]:
        inner: dict[str, list[tuple[int, int]]] = {}
        for x in s["parts"]:
            inner.setdefault(x["part"], []).append((x["from"] - packet["arrived"], x["to"] - packet["arrived"]))
        found.append(Row(s["part"], s["domain"], False, [(s["from"] - packet["arrived"], s["to"] - packet["arrived"])]))
        if list(inner) != [s["part"]]:
            found += [Row(key, about[key]["domain"], True, spans) for key, spans in inner.items()]
    return found


def leaves(packet: dict[str, Any]) -> list[Row]:
    """The rows that tile the latency: parts, and stages without parts of their own."""
    found = rows(packet)
    behind = [*found[1:], None]
    return [row for row, after in zip(found, behind, strict=True) if row.inner or after is None or not after.inner]


def domains(packet: dict[str, Any]) -> dict[str, int]:
    """Time of the packet in each domain in ps, the longest first; the sum is the latency."""
    found: dict[str, int] = {}
    for row in leaves(packet):
        found[row.domain] = found.get(row.domain, 0) + row.ps
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def nanoseconds(ps: int) -> str:
    """Picoseconds as nanoseconds with three decimals, exactly."""
    return f"{ps // 1000:,}.{ps % 1000:03d}"


def heading(lives: Lives, packet: dict[str, Any]) -> str:
    """The packet, its place in the run, and its latency."""
    what, span = ("packet", "arrival to end") if lives.client is None else ("round trip", "request to reply")
    return (
        f"{lives.name}: {what} {packet['number']:,} of {lives.ended:,}, {nanoseconds(packet['latency'])} ns from {span}"
    )


def place(packet: dict[str, Any]) -> str:
    """NIC, queue and thread of the packet."""
    thread = "" if packet["thread"] is None else f", served by thread {packet['thread']}"
    return f"{packet['nic']}, queue {packet['queue']}{thread}; {packet['bytes']:,} bytes"


def _bar(spans: Iterable[tuple[int, int]], of: int) -> str:
    """Cells in which any span lies, of a bar for ``of`` picoseconds."""
    cells = [" "] * _BAR
    for begin, end in spans:
        last = max(begin * _BAR // of, (end * _BAR - 1) // of)
        for i in range(begin * _BAR // of, min(last, _BAR - 1) + 1):
            cells[i] = "█"
    return "".join(cells)


def to_terminal(lives: Lives, packet: dict[str, Any], console: Console | None = None) -> None:
    """Print the waterfall, within 80 columns."""
    from rich.text import Text

    from . import tables

    out = console or tables.console()
    total = packet["latency"]
    out.print(Text(heading(lives, packet), style="bold"))
    out.print(Text(place(packet)))
    out.print(Text(f"{'stage and part':<20} {'domain':<17} {'ns':>14} {'%':>5}  {'time':<{_BAR}}", style="bold"))
    for row in rows(packet):
        name = f"{'  ' if row.inner else ''}{words(row.part)}"
        text = Text(f"{name:<20} {row.domain:<17} {nanoseconds(row.ps):>14} {100 * row.ps / total:5.1f}  ")
        text.append(_bar(row.spans, total), style=COLOURS[row.domain])
        if row.inner:
            text.stylize("dim", 0, 20)
        out.print(text, no_wrap=True, overflow="crop")
    out.print(Text(f"{'sum':<20} {'':<17} {nanoseconds(sum(r.ps for r in leaves(packet))):>14} 100.0", style="bold"))
    shares = (f"{name} {100 * ps / total:.1f} %" for name, ps in domains(packet).items())
    out.print(Text(fill(f"by domain: {', '.join(shares)}", 79)))


def as_dict(lives: Lives, packet: dict[str, Any]) -> dict[str, Any]:
    """The waterfall for programs: integer picoseconds from the packet's arrival."""
    return {
        "scenario": lives.name,
        "packet": packet["number"],
        "of": lives.ended,
        **{k: packet[k] for k in ("nic", "queue", "thread", "bytes")},
        "latency_ps": packet["latency"],
        "parts": [{"part": r.part, "domain": r.domain, "ps": r.ps, "spans_ps": r.spans} for r in leaves(packet)],
        "domains_ps": domains(packet),
    }


def frame(packet: dict[str, Any]) -> pl.DataFrame:
    """The parts that tile the latency, in order: names, domains and integer picoseconds."""
    import polars as pl

    found = leaves(packet)
    return pl.DataFrame(
        {"part": [words(r.part) for r in found], "domain": [r.domain for r in found], "ps": [r.ps for r in found]}
    )


def picture(lives: Lives, packet: dict[str, Any], stem: Path) -> list[Path]:
    """Write ``<stem>.svg`` and ``.png``: a bar for each stage and part over time, coloured by domain."""
    from .plots.style import save, style

    with style():
        return save(_figure(lives, packet), stem)


def plot(lives: Lives, packet: dict[str, Any]) -> Picture:
    """A waterfall for a notebook."""
    from .notebook import Picture

    return Picture(_figure(lives, packet), heading(lives, packet))


def _figure(lives: Lives, packet: dict[str, Any]) -> Figure:
    from matplotlib.patches import Patch

    from .plots.style import new_figure, style

    found, total = rows(packet), packet["latency"]
    with style():
        fig = new_figure(9.0, 1.5 + 0.24 * len(found))
        ax = fig.subplots()
        for i, row in enumerate(found):
            spans = [(begin / 1000, (end - begin) / 1000) for begin, end in row.spans]
            height = 0.55 if row.inner else 0.8
            ax.broken_barh(spans, (i - height / 2, height), color=COLOURS[row.domain], linewidth=0.6)
            end = row.spans[-1][1]
            left = end > 0.8 * total
            x = row.spans[0][0] / 1000 - 0.008 * total / 1000 if left else end / 1000 + 0.008 * total / 1000
            inside = left and row.spans[0][0] < 0.2 * total
            ax.annotate(
                f"{nanoseconds(row.ps)} ns",
                (total / 2000 if inside else x, i),
                ha="center" if inside else "right" if left else "left",
                va="center",
                fontsize=7,
                color="white" if inside and row.domain in ("core", "NIC", "DRAM", "home agent") else "black",
            )
        names = [("   " if r.inner else "") + words(r.part) for r in found]
        ax.set_yticks(range(len(found)), names)
        for label, row in zip(ax.get_yticklabels(), found, strict=True):
            label.set_fontsize(7.5 if row.inner else 9)
            label.set_color("#555555" if row.inner else "black")
        ax.set_ylim(len(found) - 0.4, -0.6)
        ax.set_xlim(0, total / 1000)
        ax.grid(axis="y", visible=False)
        ax.set_xlabel("time since arrival [ns]")
        ax.set_title(f"{heading(lives, packet)}\n", fontsize=10)
        ax.text(0, 1.01, place(packet), transform=ax.transAxes, fontsize=8, va="bottom", color="#555555")
        used = [d for d in COLOURS if d in {r.domain for r in leaves(packet)}]
        patches = [Patch(color=COLOURS[d], label=d) for d in used]
        fig.legend(handles=patches, loc="outside lower center", ncols=min(len(patches), 6))
        return fig
