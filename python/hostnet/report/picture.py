"""The picture of a host as inline SVG: a wide drawing for screens and paper, and a narrow one for phones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..explain.explanation import CORES_BUSY
from .host import FULL, NEARLY_FULL, Bar, Flow, Host, Node, Part, Ways
from .numbers import short
from .svg import Drawing, width_of, wrapped
from .verdict import BOTTLENECK, FULLEST, WAITS, Verdict

_PAD, _GAP_X, _GAP_Y, _WIDEST = 10.0, 96.0, 58.0, 14.0
_LINE, _BAR, _TITLE = 14.0, 27.0, 19.0
#: Width from which a box has its bars in two columns, and width of a box of cores at least.
_TWO_COLUMNS, _CORES = 400.0, 158.0
_MARKED = {BOTTLENECK: "bottleneck", WAITS: "full, waits", FULLEST: "fullest"}
#: Number of colours of tenants, after which they repeat.
COLOURS = 8


def widest(host: Host) -> float:
    """The largest flow of a picture in GB/s; pictures that are drawn with the same one can be compared."""
    return max((f.gbs for f in _flows(host)), default=0.0)


def picture(host: Host, verdict: Verdict, label: str, scale: float | None = None) -> str:
    """Both drawings of a host; the page shows the one that fits. ``scale`` is the flow in GB/s of the widest arrow."""
    scale = scale or widest(host)
    return _Wide(host, verdict, scale).drawn(label) + _Narrow(host, verdict, scale).drawn(label)


def _flows(host: Host) -> Iterator[Flow]:
    pairs = [
        *host.wires,
        (host.into, host.out),
        (host.reads, host.writes),
        *((n.to_cores, n.from_cores) for n in host.nodes),
    ]
    pairs += [host.links] if host.links else []
    for pair in pairs:
        yield from (f for f in pair if f is not None)


class _Picture:
    """Boxes, bars and arrows of both drawings."""

    def __init__(self, host: Host, verdict: Verdict, scale: float):
        self.host, self.verdict, self.scale = host, verdict, scale
        self.d = Drawing()

    # ---- boxes

    def notes(self, part: Part, width: float) -> list[str]:
        return [line for note in part.notes for line in wrapped(note, width - 2 * _PAD, 11, 2)]

    def trouble(self, part: Part, width: float) -> list[str]:
        return [line for said in part.trouble for line in wrapped(said, width - 2 * _PAD, 11, 4)]

    def height(self, part: Part, width: float) -> float:
        """The height of a part's box of this width."""
        inner = width - 2 * _PAD
        h = _PAD + _TITLE + _LINE * len(self.notes(part, width))
        if part.cores:
            h += 13.0 * math.ceil(len(part.cores) / max(1, inner // 13)) + 5
        if part.ways:
            h += 24 + _LINE * len(_legend(part.ways))
        columns = 2 if width >= _TWO_COLUMNS else 1
        h += _BAR * math.ceil(len(part.bars) / columns) + (4 if part.bars else 0)
        return h + _LINE * len(self.trouble(part, width)) + _PAD - 4

    def box(self, part: Part, x: float, y: float, w: float, h: float) -> None:
        mark = self.verdict.mark(part.key)
        d, inner = self.d, w - 2 * _PAD
        if mark and part.key.startswith("cores "):
            held_up = _busy(part) if self.verdict.busy_cores else _fullest(part, self.host)
            mark = mark if held_up else None
        d.rect(x, y, w, h, f"box {mark or ''}".strip(), 6)
        left, at = x + _PAD, y + _PAD + 11
        title_width = inner
        if mark:
            said = _MARKED[mark]
            pill = width_of(said, 10, True) + 12
            title_width -= pill + 6
            d.rect(x + w - pill - 8, y + 8, pill, 16, f"pill {mark}", 8)
            d.text(x + w - 8 - pill / 2, y + 19.5, said, "on", size=10, anchor="middle", bold=True)
        if part.colour is not None:
            d.rect(left, at - 9, 10, 10, f"t{part.colour % COLOURS}", 2)
            d.text(left + 15, at, part.title, size=13, width=title_width - 15, bold=True)
        else:
            d.text(left, at, part.title, size=13, width=title_width, bold=True)
        at += _TITLE - 2
        for note in self.notes(part, w):
            d.text(left, at, note, "soft", width=inner)
            at += _LINE
        if part.cores:
            at = self.cores(part, left, at - 8, inner) + 13
        if part.ways:
            at = self.ways(part.ways, left, at - 6, inner)
        at += 4 if part.bars else 0
        columns = 2 if w >= _TWO_COLUMNS else 1
        each = (inner - 16 * (columns - 1)) / columns
        for i, bar in enumerate(part.bars):
            self.bar(bar, left + (each + 16) * (i % columns), at + _BAR * (i // columns), each)
        at += _BAR * math.ceil(len(part.bars) / columns)
        for line in self.trouble(part, w):
            d.text(left, at, line, "bad", width=inner)
            at += _LINE

    def bar(self, bar: Bar, x: float, y: float, w: float) -> None:
        d, share = self.d, bar.share
        says = bar.says
        room = w - width_of(says, 11, True) - 8
        d.text(x, y, bar.name, width=room)
        d.text(x + w, y, says, anchor="end", bold=True)
        of = "full" if share and share >= FULL - 0.02 else "much" if share and share >= NEARLY_FULL else "used"
        tip = bar.meaning or bar.name
        if share is None:
            d.rect(x, y + 5, w, 6, "track open", 3, tip + "; no limit")
            return
        d.rect(x, y + 5, w, 6, "track", 3, tip)
        d.rect(x, y + 5, max(w * share, 1.5 if bar.used else 0), 6, of, 3, f"{tip} ({100 * share:.1f} %)")
        if bar.peak and bar.limit:
            d.rect(x + w * min(bar.peak / bar.limit, 1) - 1, y + 3, 2, 10, "tick", 0, f"largest: {short(bar.peak)}")

    def cores(self, part: Part, x: float, y: float, w: float) -> float:
        per = max(1, int(w // 13))
        colour = f"t{(part.colour or 0) % COLOURS}"
        for i, busy in enumerate(part.cores):
            cx, cy = x + 13 * (i % per), y + 13 * (i // per)
            tip = f"core {i} of {part.title}" + ("" if busy is None else f": busy {100 * busy:.0f} % of the time")
            self.d.rect(cx, cy, 10, 10, f"{colour} faint", 2, tip)
            if busy is not None:
                share = min(busy, 1.0)
                self.d.rect(cx, cy + 10 * (1 - share), 10, 10 * share, colour, 1, tip)
        return y + 13.0 * math.ceil(len(part.cores) / per)

    def ways(self, ways: Ways, x: float, y: float, w: float) -> float:
        each = w / ways.count
        owners = list(ways.tenants)
        for i in range(ways.count):
            said = [f"way {i}", "devices" if i in ways.devices else "", *(o for o in owners if i in ways.tenants[o])]
            of = "way devices" if i in ways.devices else "way"
            self.d.rect(
                x + each * i + 1,
                y,
                each - 2,
                14,
                of,
                2,
                ": ".join(filter(None, [said[0], ", ".join(filter(None, said[1:]))])),
            )
            mine = [o for o in owners if i in ways.tenants[o]]
            for k, owner in enumerate(mine):
                step = (each - 4) / len(mine)
                self.d.rect(x + each * i + 2 + step * k, y + 10, step, 3, f"t{self.colour(owner)}")
        at = y + 27
        for text, of in _legend(ways):
            colour = of if of.startswith("way") else f"t{self.colour(of)}"
            self.d.rect(x, at - 8, 9, 9, colour, 2)
            self.d.text(x + 14, at, text, "soft", width=w - 14)
            at += _LINE
        return at + 3

    def colour(self, tenant: str) -> int:
        found = (p.colour for n in self.host.nodes for p in n.cores if p.title == tenant and p.colour is not None)
        return next(found, 0) % COLOURS

    # ---- arrows

    def thickness(self, flow: Flow) -> float:
        return max(1.6, _WIDEST * flow.gbs / self.scale) if self.scale and flow.gbs else 0.0

    def arrow(self, x1: float, y1: float, x2: float, y2: float, flow: Flow, of: str) -> None:
        """An arrow along one axis, as wide as its traffic."""
        t, busy = self.thickness(flow), flow.busy or 0.0
        of = "full" if busy >= FULL else "much" if busy >= NEARLY_FULL else of
        tip = ", ".join(flow.says)
        if not t:
            return
        head, wing = min(max(7.0, t), 14.0), t / 2 + 3
        sign = 1 if (x2 - x1) + (y2 - y1) > 0 else -1
        base = [(0.0, -t / 2), (1.0, -t / 2), (1.0, -wing), (2.0, 0.0), (1.0, wing), (1.0, t / 2), (0.0, t / 2)]
        along = abs(x2 - x1) + abs(y2 - y1)
        steps = {0.0: 0.0, 1.0: along - head, 2.0: along}
        points = [(steps[a], across) for a, across in base]
        if y1 == y2:
            self.d.polygon([(x1 + sign * a, y1 + c) for a, c in points], f"flow {of}", tip)
        else:
            self.d.polygon([(x1 + c, y1 + sign * a) for a, c in points], f"flow {of}", tip)

    def across(self, x1: float, x2: float, y: float, forth: Flow | None, back: Flow | None) -> None:
        """Traffic in both directions between two boxes beside each other, with its labels above and below."""
        self.d.rect(x1, y - 0.5, x2 - x1, 1, "wire")
        up, down = (self.thickness(f) if f else 0.0 for f in (forth, back))
        middle, room = (x1 + x2) / 2, x2 - x1 - 4
        if forth and forth.gbs:
            at = y - up / 2 - 4
            self.arrow(x1 + 2, at, x2 - 2, at, forth, "in")
            self.labels(forth, middle, at - max(up / 2, 4) - 5, room, "middle", above=True)
        if back and back.gbs:
            at = y + down / 2 + 4
            self.arrow(x2 - 2, at, x1 + 2, at, back, "out")
            self.labels(back, middle, at + max(down / 2, 4) + 13, room, "middle", above=False)

    def down(
        self, x: float, y1: float, y2: float, forth: Flow | None, back: Flow | None, room: float, up: bool = False
    ) -> None:
        """Traffic in both directions between two boxes above each other, with its labels to the left and right. ``up``
        says that memory lies above."""
        self.d.rect(x - 0.5, y1, 1, y2 - y1, "wire")
        left, right = (self.thickness(f) if f else 0.0 for f in (forth, back))
        middle = (y1 + y2) / 2 + 4
        if forth and forth.gbs:
            at = x - left / 2 - 4
            self.arrow(at, y1 + 2, at, y2 - 2, forth, "out" if up else "in")
            self.labels(forth, at - max(left / 2, 4) - 5, middle, room, "end", above=None)
        if back and back.gbs:
            at = x + right / 2 + 4
            self.arrow(at, y2 - 2, at, y1 + 2, back, "in" if up else "out")
            self.labels(back, at + max(right / 2, 4) + 5, middle, room, "start", above=None)

    def labels(self, flow: Flow, x: float, y: float, room: float, anchor: str, above: bool | None) -> None:
        lines = list(flow.says)
        if above:
            y -= 13 * (len(lines) - 1)
        elif above is None:
            y -= 6.5 * (len(lines) - 1)
        for i, line in enumerate(lines):
            self.d.text(x, y + 13 * i, line, "" if i == 0 else "soft", width=room, anchor=anchor, bold=i == 0)


def _busy(part: Part) -> bool:
    """Whether these cores serve packets and have no time left."""
    return part.serves and any(busy is not None and busy > CORES_BUSY for busy in part.cores)


def _fullest(part: Part, host: Host) -> bool:
    """Whether the line fill buffers of one of these cores are about as full as those of any; true where none has any."""
    shares = {p.key: max((b.fullest or 0.0 for b in p.bars), default=0.0) for n in host.nodes for p in n.cores}
    most = max(shares.values(), default=0.0)
    return shares.get(part.key, 0.0) >= 0.8 * most


def _legend(ways: Ways) -> list[tuple[str, str]]:
    """Lines that say who may allocate into which ways, each with its class or the tenant's name."""
    found = []
    if ways.devices:
        found.append((f"devices write into {_range(ways.devices)}", "way devices"))
    elif ways.near:
        found.append(("devices write into memory alone", "way"))
    found += [(f"{name}: {_range(own)}", name) for name, own in ways.tenants.items()]
    return found


def _range(ways: Sequence[int] | frozenset[int]) -> str:
    first, last = min(ways, default=0), max(ways, default=0)
    return f"way {first}" if first == last else f"ways {first} to {last}"


@dataclass
class _Column:
    """A node in the wide drawing: its boxes of cores in rows, and the home agent."""

    node: Node
    rows: list[list[Part]]
    heights: list[float]


class _Wide(_Picture):
    """Devices to the left, nodes to the right, memory below."""

    def drawn(self, label: str) -> str:
        host, two = self.host, len(self.host.nodes) > 1
        total = 1300.0 if two else 1180.0
        side = 206.0 if two else 216.0
        wired = any(into or out for into, out in host.wires)
        x = 8.0
        device_x = x + (_GAP_X if wired else 0.0)
        if host.devices:
            x = device_x + side
        iio_x = x + _GAP_X
        if host.iio:
            x = iio_x + side
        node_x = x + (_GAP_X if host.devices or host.iio else 0.0)
        each = (total - 8 - node_x - (_GAP_X if two else 0)) / len(host.nodes)
        columns = [self.column(n, each - 2 * _PAD) for n in host.nodes]
        top = 26.0 if two else 8.0
        cores = max(sum(c.heights) + 8 * (len(c.heights) - 1) for c in columns)
        agent_h = max(self.height(n.agent, each - 2 * _PAD) for n in host.nodes)
        agent_y = top + _PAD + cores + _GAP_Y
        frame_h = agent_y + agent_h + _PAD - (top - 8 if not two else 8)
        memory_y = agent_y + agent_h + _PAD + _GAP_Y
        memory_h = self.height(host.memory, total - 8 - node_x)
        heights = [self.height(p, side) for p in host.devices]
        stack = sum(heights) + 12 * (len(heights) - 1)
        iio_h = self.height(host.iio, side) if host.iio else 0.0
        middle = max(agent_y + agent_h / 2, stack / 2 + 8, iio_h / 2 + 8)
        bottom = max(memory_y + memory_h, middle + stack / 2, middle + iio_h / 2) + 8

        for i, column in enumerate(columns):
            nx = node_x + i * (each + _GAP_X)
            self.d.rect(nx, 8, each, frame_h, "frame", 10)
            if two:
                self.d.text(nx + _PAD, 24, f"Node {i}", "soft", size=12, bold=True)
            self.column_at(column, nx + _PAD, top + _PAD, each - 2 * _PAD, agent_y, agent_h)
            self.down(
                nx + each / 2,
                agent_y + agent_h,
                memory_y,
                *((host.writes, host.reads) if not two else (None, None)),
                each / 2 - 20,
            )
        self.box(host.memory, node_x, memory_y, total - 8 - node_x, memory_h)
        if two and (host.reads or host.writes):
            said = ", ".join(f.says[0] for f in (host.reads, host.writes) if f)
            self.d.text((node_x + total - 8) / 2, memory_y - 14, said, size=11, anchor="middle", bold=True)
        if host.links:
            self.across(node_x + each, node_x + each + _GAP_X, agent_y + agent_h / 2, *host.links)
            if host.link_part:
                marked = self.verdict.mark("link")
                self.d.text(
                    node_x + each + _GAP_X / 2,
                    agent_y - 8,
                    "link",
                    f"soft {marked or ''}".strip(),
                    size=11,
                    anchor="middle",
                    bold=True,
                )
                for k, note in enumerate(host.link_part.notes):
                    self.d.text(
                        node_x + each + _GAP_X / 2,
                        agent_y + 6 + 14 * k,
                        note,
                        "soft",
                        width=_GAP_X - 6,
                        anchor="middle",
                        size=10,
                    )
        at = middle - stack / 2
        for part, h, (into, out) in zip(host.devices, heights, host.wires):
            self.box(part, device_x, at, side, h)
            if into or out:
                self.across(8, device_x, at + h / 2, into, out)
            at += h + 12
        if wired:
            self.d.rect(6, middle - stack / 2, 4, stack, "cable", 2, "the wire")
        target = node_x + _PAD
        if host.iio:
            self.box(host.iio, iio_x, middle - iio_h / 2, side, iio_h)
            if host.devices:
                self.across(device_x + side, iio_x, middle, host.into, host.out)
            plain = tuple(Flow(f.gbs, f.says[:1]) if f else None for f in (host.into, host.out))
            self.across(iio_x + side, target, middle, *plain)
        elif host.devices:
            self.across(device_x + side, target, middle, host.into, host.out)
        return self.d.svg(total, bottom, "host wide", label)

    def column(self, node: Node, width: float) -> _Column:
        per = max(1, int((width + 8) // (_CORES + 8)))
        per = min(per, len(node.cores)) or 1
        rows = [node.cores[i : i + per] for i in range(0, len(node.cores), per)]
        each = (width - 8 * (per - 1)) / per
        return _Column(node, rows, [max(self.height(p, each) for p in row) for row in rows])

    def column_at(self, column: _Column, x: float, y: float, width: float, agent_y: float, agent_h: float) -> None:
        at = agent_y - _GAP_Y - (sum(column.heights) + 8 * (len(column.heights) - 1))
        per = max(map(len, column.rows), default=1)
        each = (width - 8 * (per - 1)) / per
        for row, h in zip(column.rows, column.heights):
            for i, part in enumerate(row):
                self.box(part, x + i * (each + 8), at, each, h)
            at += h + 8
        if column.rows:
            self.down(
                x + width / 2, agent_y - _GAP_Y, agent_y, column.node.from_cores, column.node.to_cores, width / 2 - 14
            )
        self.box(column.node.agent, x, agent_y, width, agent_h)


class _Narrow(_Picture):
    """Everything from top to bottom, in the order of a received packet."""

    WIDTH = 360.0

    def drawn(self, label: str) -> str:
        host, w, at = self.host, self.WIDTH - 8, 6.0
        wires = [pair for pair in host.wires if pair[0] or pair[1]]
        if len(wires) == 1 and len(host.devices) == 1:
            self.d.rect(4, at, w, 4, "cable", 2, "the wire")
            self.down(self.WIDTH / 2, at + 4, at + _GAP_Y, *wires[0], self.WIDTH / 2 - 20)
            at += _GAP_Y
        for part, (into, out) in zip(host.devices, host.wires):
            if (into or out) and len(host.devices) > 1:
                said = [f"{name} {', '.join(f.says)}" for name, f in (("in", into), ("out", out)) if f]
                part = Part(
                    part.key, part.title, [*part.notes, f"wire: {'; '.join(said)}"], part.bars, trouble=part.trouble
                )
            at = self.placed(part, at) + 8
        if host.devices:
            at -= 8
        if host.iio:
            if host.devices:
                at = self.joined(at, host.into, host.out)
            at = self.placed(host.iio, at)
        plain = tuple(Flow(f.gbs, f.says[:1]) if f else None for f in (host.into, host.out))
        for i, node in enumerate(host.nodes):
            if i == 0 and (host.iio or host.devices):
                at = self.joined(at, *(plain if host.iio else (host.into, host.out)))
            elif i and host.links:
                at = self.joined(at, *host.links)
            at = self.node(node, i, at)
        at = self.joined(at, host.writes, host.reads)
        at = self.placed(host.memory, at)
        return self.d.svg(self.WIDTH, at + 6, "host narrow", label)

    def placed(self, part: Part, y: float) -> float:
        h = self.height(part, self.WIDTH - 8)
        self.box(part, 4, y, self.WIDTH - 8, h)
        return y + h

    def joined(self, y: float, forth: Flow | None, back: Flow | None) -> float:
        self.down(self.WIDTH / 2, y, y + _GAP_Y, forth, back, self.WIDTH / 2 - 20)
        return y + _GAP_Y

    def node(self, node: Node, index: int, y: float) -> float:
        w = self.WIDTH - 8 - 2 * _PAD
        top = y + (22 if len(self.host.nodes) > 1 else _PAD)
        agent_h = self.height(node.agent, w)
        heights = [self.height(p, w) for p in node.cores]
        bottom = top + agent_h + (_GAP_Y + sum(heights) + 8 * (len(heights) - 1) if heights else 0.0)
        self.d.rect(4, y, self.WIDTH - 8, bottom + _PAD - y, "frame", 10)
        if len(self.host.nodes) > 1:
            self.d.text(4 + _PAD, y + 15, f"Node {index}", "soft", size=12, bold=True)
        self.box(node.agent, 4 + _PAD, top, w, agent_h)
        if heights:
            self.down(
                self.WIDTH / 2, top + agent_h, top + agent_h + _GAP_Y, node.to_cores, node.from_cores, w / 2 - 14, True
            )
        at = top + agent_h + _GAP_Y
        for part, h in zip(node.cores, heights):
            self.box(part, 4 + _PAD, at, w, h)
            at += h + 8
        return bottom + _PAD
