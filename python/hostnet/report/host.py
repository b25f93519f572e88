"""The host of one result as parts and flows, without any coordinates: what the picture draws."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..drops import losses
from .numbers import quantity, short

#: Bytes of a line in GB/s per line and microsecond.
LINE_GBS = 64e-3
#: Number of entries from which a buffer counts as unlimited.
UNLIMITED = 2**32 - 1
#: Share of a limit from which a part counts as nearly full.
NEARLY_FULL = 0.8
#: Share of a limit from which a part counts as full; `hostnet explain` draws the same line for links.
FULL = 0.97

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Bar:
    """Use of one queue, set of credits, or server; ``limit`` is None where there is none."""

    name: str
    used: float
    limit: float | None
    unit: str = ""
    peak: float | None = None
    meaning: str = ""
    fullest: float | None = None  # share of the fullest core, of a bar of several cores

    @property
    def share(self) -> float | None:
        """The used share of the limit, from 0 to 1."""
        return min(self.used / self.limit, 1.0) if self.limit else None

    @property
    def says(self) -> str:
        """The value as text, with its limit."""
        if self.unit == "%":
            return f"{100 * self.used:.0f} %"
        unit = f" {self.unit}" if self.unit else ""
        used = short(self.used) if self.used >= 1 else f"{self.used:.2f}".rstrip("0").rstrip(".")
        return used + (f" of {short(self.limit)}" if self.limit else "") + unit


@dataclass(frozen=True)
class Ways:
    """Ways of an LLC, and who may allocate into them. ``devices`` and each tenant's entry hold numbers of ways."""

    count: int
    devices: frozenset[int]
    tenants: Mapping[str, frozenset[int]]
    near: bool = True  # whether devices are attached to the node


@dataclass
class Part:
    """One box of the picture."""

    key: str
    title: str
    notes: list[str] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    ways: Ways | None = None
    cores: list[float | None] = field(default_factory=list)  # share of time that each core is busy, None if unknown
    colour: int | None = None  # number of the tenant's colour
    serves: bool = False  # whether these cores serve packets
    trouble: list[str] = field(default_factory=list)  # what goes wrong here, such as lost packets


@dataclass(frozen=True)
class Flow:
    """Traffic in one direction between two parts."""

    gbs: float  # GB/s, from which the width follows
    says: tuple[str, ...]
    busy: float | None = None


@dataclass
class Node:
    """One socket: its cores by tenant, and its home agent with the LLC."""

    cores: list[Part]
    agent: Part
    to_cores: Flow | None = None
    from_cores: Flow | None = None


@dataclass
class Host:
    """A host with its traffic. Flows lead to the home agent or, for memory, to and from DRAM."""

    devices: list[Part]
    wires: list[tuple[Flow | None, Flow | None]]  # of each device: from the wire, to the wire
    iio: Part | None
    nodes: list[Node]
    memory: Part
    into: Flow | None  # from all devices
    out: Flow | None  # to all devices
    reads: Flow | None
    writes: Flow | None
    links: tuple[Flow, Flow] | None = None  # from the first node, to the first node
    link_part: Part | None = None

    @property
    def parts(self) -> list[Part]:
        """Every part, in the order of a received packet."""
        found = [*self.devices, *([self.iio] if self.iio else [])]
        for node in self.nodes:
            found += [node.agent, *node.cores]
        return found + ([self.link_part] if self.link_part else []) + [self.memory]


def rows_of(data: Mapping[str, Any], table: str) -> list[dict[str, Any]]:
    """The rows of a result's table by column; empty for a result without it."""
    found = (data.get("tables") or {}).get(table) or {"columns": [], "rows": []}
    names = [c["name"] for c in found["columns"]]
    return [dict(zip(names, row)) for row in found["rows"]]


def host_of(data: Mapping[str, Any]) -> Host:
    """The host of a result (as `Result.data`)."""
    return _Reader(data).host()


class _Reader:
    """Reads one result; each method makes one part."""

    def __init__(self, data: Mapping[str, Any]):
        self.data = data
        self.spec: Mapping[str, Any] = data.get("spec") or {}
        self.m: Mapping[str, float | None] = data.get("metrics") or {}
        self.platform: Mapping[str, Any] = self.spec.get("platform") or {}
        self.caches: Mapping[str, Any] = self.platform.get("caches") or {}
        self.domains = {str(r.get("domain")): r for r in rows_of(data, "domains")}
        self.peripherals: Sequence[Mapping[str, Any]] = self.spec.get("peripheral") or []
        self.tenants = rows_of(data, "tenants")
        self.specs: Sequence[Mapping[str, Any]] = self.spec.get("tenant") or []
        self.nodes = int((self.platform.get("nodes") or {}).get("count") or 1)

    def host(self) -> Host:
        devices, wires = self.devices()
        into, out = self.device_flows()
        read, written = self.m.get("mem_read_gbs"), self.m.get("mem_write_gbs")
        host = Host(
            devices=devices,
            wires=wires,
            iio=self.iio() if self.peripherals else None,
            nodes=[self.node(i) for i in range(self.nodes)],
            memory=self.memory(),
            into=into,
            out=out,
            reads=None if read is None else Flow(read, (f"{short(read)} GB/s read",)),
            writes=None if written is None else Flow(written, (f"{short(written)} GB/s written",)),
        )
        if self.nodes > 1:
            host.links, host.link_part = self.links()
        return host

    # ---- devices and the wire

    def devices(self) -> tuple[list[Part], list[tuple[Flow | None, Flow | None]]]:
        nics = [p for p in self.peripherals if p.get("kind") in ("ethernet", "roce")]
        parts, wires = [], []
        for i, p in enumerate(self.peripherals):
            part = Part(f"device {i}", _device_name(p))
            part.notes += _facts(p, self.platform)
            parts.append(part)
            wires.append(self.wire(p, len(nics) == 1) if p in nics else (None, None))
            if p in nics and len(nics) == 1:
                part.bars += self.nic_bars(p)
        if not nics and self.m.get("net_gbps") is not None:
            part = Part("device nic", "integrated NIC", ["writes lines to the home agent directly"])
            parts.append(part)
            wires.append(self.wire(None, True))
            nics = [{}]
        lost = losses(self.data)  # type: ignore[arg-type]
        if lost and parts:
            at = next((i for i, (into, _) in enumerate(wires) if into is not None), 0)
            count, most = sum(x.count for x in lost), lost[0]
            parts[at].trouble.append(f"{count:,} packets lost: {most.why}")
        return parts, wires

    def wire(self, device: Mapping[str, Any] | None, only: bool) -> tuple[Flow | None, Flow | None]:
        m = self.m
        own = [
            t
            for t in self.tenants
            if t.get("net_gbps") is not None and (only or self.nic_of(t) == (device or {}).get("name"))
        ]
        gbps = sum(t["net_gbps"] for t in own) if own else m.get("net_gbps") if only else None
        net_gbs = m.get("net_gbs")
        if only and not gbps and net_gbs:
            gbps = 8 * net_gbs
        if device and device.get("kind") == "roce" and m.get("p2m_gbs"):
            gbps = 8 * (m["p2m_gbs"] or 0.0)
        if not gbps:
            return None, None
        says = [f"{short(gbps)} Gb/s"]
        mpps = sum(t.get("throughput_mops") or 0.0 for t in own)
        if mpps and self.m.get("net_gbs") is None:
            says.append(f"{short(mpps)} Mpps")
        offered = m.get("offered_gbps")
        if only and offered and offered > 1.02 * gbps:
            says.append(f"{short(offered)} offered")
        link = quantity(str((device or {}).get("link") or ""), "bps")
        into = Flow(gbps / 8, tuple(says), gbps * 1e9 / link if link else None)
        back = m.get("achieved_gbps") if only else None
        return into, Flow(back / 8, (f"{short(back)} Gb/s",)) if back else None

    def nic_of(self, tenant: Row) -> str | None:
        spec = next((t for t in self.specs if t.get("name") == tenant.get("tenant")), {})
        return spec.get("nic")

    def nic_bars(self, device: Mapping[str, Any]) -> list[Bar]:
        peak, limit = self.m.get("nic_buffer_peak_kib"), quantity(str(device.get("receive_buffer") or ""), "B")
        if peak is None or not limit:
            return []
        return [Bar("buffer, peak", peak, limit / 1024, "KiB", meaning="Largest fill of the NIC's receive buffer")]

    def device_flows(self) -> tuple[Flow | None, Flow | None]:
        """Traffic of all devices into the host and out of it."""
        behind = bool(self.peripherals)
        into = self.rate("IIO write buffer") if behind else self.rate("path p2m_write")
        out = self.rate("IIO read buffer") if behind else self.rate("path p2m_read")
        up, down = self.m.get("pcie_up_util"), self.m.get("pcie_down_util")
        return _flow(into, up), _flow(out, down)

    def rate(self, domain: str) -> float | None:
        row = self.domains.get(domain)
        return None if row is None else (row.get("arrivals_per_us") or 0.0) * LINE_GBS

    # ---- the I/O controller

    def iio(self) -> Part:
        spec = self.platform.get("iio") or {}
        count = int(spec.get("count") or 1)
        part = Part("iio", "IIO" if count == 1 else f"{count} IIOs", ["between PCIe and LLC"])
        for name, label in (("IIO write buffer", "write buffer"), ("IIO read buffer", "read buffer")):
            used = [(n, r) for n, r in self.domains.items() if re.fullmatch(name.replace("IIO", r"IIO \d+"), n)]
            busy = [(n, r) for n, r in used if r.get("occupancy_avg")]
            if busy:
                part.bars += [self.bar(n, f"{n.removesuffix(' buffer')}s") for n, _ in busy[:2]]
            elif name in self.domains:
                part.bars.append(self.bar(name, label))
        for name, label in (
            ("PCIe posted credits", "posted credits"),
            ("PCIe non-posted credits", "non-posted credits"),
            ("PCIe tags", "PCIe tags"),
        ):
            if name in self.domains:
                part.bars.append(self.bar(name, label))
        path = self.m.get("iio_path_util")
        if path is not None:
            part.bars.append(
                Bar("path to the home agent", path, 1.0, "%", meaning="Share of time that the path carries lines")
            )
        return part

    def bar(self, domain: str, label: str) -> Bar:
        r = self.domains[domain]
        credits = r.get("credits")
        limit = None if credits is None or credits >= UNLIMITED else float(credits)
        latency = r.get("latency_ns")
        meaning = f"{domain}: {short(r.get('occupancy_avg') or 0.0)} in use on average, at most {short(r.get('occupancy_max') or 0.0)}"
        meaning += f", each for {short(latency)} ns" if latency else ""
        return Bar(label, r.get("occupancy_avg") or 0.0, limit, peak=r.get("occupancy_max"), meaning=meaning)

    # ---- nodes

    def node(self, index: int) -> Node:
        several = self.nodes > 1
        parts = [self.tenant(i, t) for i, t in enumerate(self.specs) if int(t.get("node") or 0) == index]
        extra = self.extra_cores(index)
        parts += [extra] if extra else []
        agent = self.agent(index)
        node = Node(parts, agent)
        if not several:
            back = self.m.get("mlc_wb_mtps")
            node.to_cores = _flow(self.rate("path c2m_read"), None, "to L2")
            node.from_cores = _flow(None if back is None else back * LINE_GBS, None, "from L2")
        return node

    def tenant(self, index: int, spec: Mapping[str, Any]) -> Part:
        name = str(spec.get("name") or "tenant")
        first = sum(int(t.get("cores") or 0) for t in self.specs[:index])
        count = int(spec.get("cores") or 0)
        row: Row = self.tenants[index] if index < len(self.tenants) else {}
        app = (spec.get("app") or {}).get("kind") if isinstance(spec.get("app"), Mapping) else spec.get("app")
        stack = spec.get("stack")
        stack = next(iter(stack), None) if isinstance(stack, Mapping) else stack
        part = Part(f"cores {index}", name, colour=index)
        what = [w for w in (app if app != name else None, str(stack).replace("_", " ") if stack else None) if w]
        part.notes.append(" · ".join([f"{count} core{'s' * (count != 1)}", *map(str, what)]))
        part.notes += self.tenant_facts(row)
        busy = row.get("cpu_utilisation")
        cpu = self.m.get("cores_busy")
        if busy is None and len(self.specs) == 1 and cpu is not None and count:
            busy = cpu / count
        part.cores = [busy] * count
        part.serves = row.get("offered_mops") is not None or row.get("net_gbps") is not None
        part.bars += self.fills([f"core {first + k} line fill buffers" for k in range(count)], count)
        if (row.get("drop_rate") or 0.0) > 0:
            part.trouble.append(f"loses {100 * row['drop_rate']:.3g} % of its packets")
        return part

    def tenant_facts(self, row: Row) -> list[str]:
        said = []
        if row.get("throughput_mops"):
            said.append(f"{short(row['throughput_mops'])} Mops")
        if row.get("lat_p99_us"):
            said.append(f"p99 {short(row['lat_p99_us'])} µs")
        if row.get("llc_miss_ratio") is not None:
            said.append(f"LLC misses {100 * row['llc_miss_ratio']:.0f} %")
        return [" · ".join(said)] if said else []

    def fills(self, names: Sequence[str], count: int, label: str = "line fill buffers") -> list[Bar]:
        rows = [self.domains[n] for n in names if n in self.domains]
        if not rows:
            return []
        used, limit = sum(r["occupancy_avg"] for r in rows), sum(float(r["credits"]) for r in rows)
        fullest = max(r["occupancy_avg"] / r["credits"] for r in rows)
        meaning = f"Line fill buffers of {count} core{'s' * (count != 1)} in use, mean over time: {short(used)} of {short(limit)}"
        meaning += f"; of the fullest core {100 * fullest:.0f} %" if count > 1 else ""
        return [Bar(label, used, limit if limit < UNLIMITED else None, meaning=meaning, fullest=fullest)]

    def extra_cores(self, index: int) -> Part | None:
        """Cores of the kernel or of CC-NIC's NIC, which belong to no tenant's own cores."""
        names = [n for n in self.domains if n.startswith("kernel core ") and n.endswith("line fill buffers")]
        ccnic = self.spec.get("ccnic")
        if not names or index != int((ccnic or {}).get("nic_node") or 0):
            return None
        count = len(names)
        title = "CC-NIC" if ccnic else "kernel"
        work = f"threads of the NIC, {ccnic.get('mode', 'loopback')}" if ccnic else "block layer"
        part = Part("cores extra", title, [f"{count} core{'s' * (count != 1)} · {work}"], colour=len(self.specs))
        part.cores = [None] * count
        part.bars += self.fills(names, count)
        mpps = self.m.get("achieved_mpps")
        if ccnic and mpps:
            part.notes.append(
                f"{short(mpps)} Mpps"
                + (f" · round trip {short(self.m['rtt_median_us'] or 0)} µs" if self.m.get("rtt_median_us") else "")
            )
        return part

    def agent(self, index: int) -> Part:
        llc = self.caches.get("llc") or {}
        part = Part(f"agent {index}", "Home agent and LLC")
        size = quantity(str(llc.get("size") or ""), "B")
        facts = [f"{short(size / 2**20)} MiB" if size else "", f"{llc['slices']} slices" if llc.get("slices") else ""]
        miss = self.m.get("llc_miss_ratio")
        facts.append(f"{100 * miss:.0f} % of the cores' look-ups miss" if miss is not None else "")
        if any(facts):
            part.notes.append("LLC " + " · ".join(f for f in facts if f))
        if llc.get("ways"):
            part.ways = self.ways(int(llc["ways"]), index)
        rx, outside = self.m.get("llc_rx_lines"), self.m.get("llc_rx_lines_outside_ddio")
        if index == 0 and rx:
            said = f"receive buffers hold {short(rx * 64 / 2**20)} MiB of it"
            part.notes.append(said + (f", {100 * outside / rx:.0f} % outside the ways for devices" if outside else ""))
        if index == 0 and "home agent write buffer" in self.domains:
            part.bars.append(self.bar("home agent write buffer", "waiting writes"))
        name = f"link credits of node {index}"
        if name in self.domains:
            part.bars.append(self.bar(name, "link credits"))
        return part

    def ways(self, count: int, index: int) -> Ways:
        placement = self.spec.get("placement") or {}
        devices: frozenset[int] = frozenset()
        if placement.get("policy") in ("ddio", "idio") and index == 0:
            first = _numbers(placement.get("ways"), count, top=False)
            highest = ((self.caches.get("llc") or {}).get("quirks") or {}).get("device_ways") == "highest"
            devices = frozenset(count - 1 - w for w in first) if highest else first
        own = {
            str(t.get("name")): _numbers(t["llc_ways"], count, top=True)
            for t in self.specs
            if t.get("llc_ways") is not None and int(t.get("node") or 0) == index
        }
        return Ways(count, devices, own, index == 0 and bool(self.peripherals or self.m.get("net_gbps")))

    # ---- memory and the link

    def memory(self) -> Part:
        m, spec = self.m, self.platform.get("memory") or {}
        channels = m.get("channels") or (spec.get("channels") or 0) * self.nodes
        both = self.nodes > 1
        part = Part("memory", "Memory of both nodes" if both else "Memory controllers and DRAM")
        if channels and spec.get("standard"):
            each = " each" if both else ""
            part.notes.append(f"{channels / self.nodes:.0f} channels of {spec['standard']}{each}")
        bandwidth, peak = m.get("mem_bw_gbs"), m.get("mem_peak_gbs")
        if bandwidth is not None:
            part.bars.append(
                Bar("bandwidth", bandwidth, peak, "GB/s", meaning="DRAM bytes moved per second, reads and writes")
            )
        for name, metric, key in (("read queues", "rpq_occ", "rpq"), ("write queues", "wpq_occ", "wpq")):
            held = m.get(metric)
            if held is not None and channels and spec.get(key):
                bar = Bar(
                    name,
                    held * channels,
                    spec[key] * channels,
                    meaning=f"Entries in use in the {name} of {channels:.0f} channels",
                )
                part.bars.append(bar)
        latency = m.get("dram_lat_avg_ns")
        if latency:
            tail = m.get("dram_lat_p99_ns")
            part.notes.append(
                f"a read takes {short(latency)} ns" + (f", 99th percentile {short(tail)} ns" if tail else "")
            )
        return part

    def links(self) -> tuple[tuple[Flow, Flow], Part]:
        m = self.m
        out, into = m.get("link_out_gbs") or 0.0, m.get("link_in_gbs") or 0.0
        spec = (self.platform.get("nodes") or {}).get("link") or {}
        part = Part("link", "Link between the nodes")
        if spec.get("links") and spec.get("rate"):
            part.notes.append(f"{spec['links']} × {spec['rate']}")
        flows = (
            Flow(out, (f"{short(out)} GB/s",), m.get("link_out_util")),
            Flow(into, (f"{short(into)} GB/s",), m.get("link_in_util")),
        )
        return flows, part


_KINDS = {"ethernet": "NIC", "roce": "RoCE NIC", "ssd": "SSD"}


def _device_name(p: Mapping[str, Any]) -> str:
    kind = _KINDS.get(str(p.get("kind")), str(p.get("kind")))
    count = int(p.get("count") or 1)
    title = f"{count} {kind}s" if count > 1 else kind
    return f"{title} “{p['name']}”" if p.get("name") else title


def _facts(p: Mapping[str, Any], platform: Mapping[str, Any]) -> list[str]:
    pcie = platform.get("pcie") or {}
    first = [str(p["link"]).replace("Gbps", "Gb/s")] if p.get("link") else []
    if p.get("lanes"):
        first.append(f"PCIe {pcie.get('generation', '')} x{p['lanes']}".replace("  ", " "))
    found = [" · ".join(first)] if first else []
    if p.get("op"):
        found.append({"p2m_write": "writes to memory", "p2m_read": "reads from memory"}.get(str(p["op"]), str(p["op"])))
    if p.get("queue_depth"):
        found.append(f"queue depth {p['queue_depth']}, blocks of {p.get('block', '')}".rstrip())
    return found


def _flow(gbs: float | None, busy: float | None, what: str = "") -> Flow | None:
    if gbs is None:
        return None
    says = [f"{short(gbs)} GB/s" + (f" {what}" if what else "")]
    if busy is not None and gbs:
        says.append(f"{100 * busy:.0f} % busy")
    return Flow(gbs, tuple(says), busy)


def _numbers(given: Any, count: int, top: bool) -> frozenset[int]:
    """Numbers of LLC ways: a range such as "2-10", or a number of ways from way 0 up or, with ``top``, from the top down."""
    if isinstance(given, int):
        given = min(given, count)
        return frozenset(range(count - given, count) if top else range(given))
    found = re.fullmatch(r"(\d+)(?:-(\d+))?", str(given or ""))
    if not found:
        return frozenset()
    first, last = int(found[1]), int(found[2] or found[1])
    return frozenset(range(first, min(last, count - 1) + 1))
