"""Parts of a platform that do not fit together: bounds that follow from the platform's values alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_NS = {"ps": 1e-3, "ns": 1.0, "us": 1e3, "ms": 1e6}
_BYTES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_GHZ = {"MHz": 1e-3, "GHz": 1.0}
#: GB/s of a rate in bits.
_LINKS = {"bps": 0.125e-9, "Kbps": 0.125e-6, "Mbps": 0.125e-3, "Gbps": 0.125, "Tbps": 125.0}
#: GB/s of a rate in bytes.
_RATES = {"MB/s": 1e-3, "GB/s": 1.0, "TB/s": 1e3}
#: Rate of a lane in GB/s after the line code; gen 6 in flits, of which 236 of 256 bytes carry packets.
_LANE = {
    "gen3": 8 / 8 * 128 / 130,
    "gen4": 16 / 8 * 128 / 130,
    "gen5": 32 / 8 * 128 / 130,
    "gen6": 64 / 8 * 236 / 256,
}
LANES = 16


def _of(units: Mapping[str, float], text: str) -> float:
    number, unit = text.split(" ")
    return float(number) * units[unit]


def misfits(spec: Mapping[str, Any]) -> list[str]:
    """Sentences about parts of a platform (as `hostnet.platform` returns it) that bound others, with their keys and
    rates."""
    return [*_caches(spec), *_memory(spec), *_devices(spec)]


def _cores(spec: Mapping[str, Any]) -> tuple[int, str]:
    """Number of cores of a node, and the key that gives it."""
    of_nodes = (spec.get("nodes") or {}).get("cores")
    return (of_nodes, "nodes.cores") if of_nodes else (spec["core"]["count"], "core.count")


def _caches(spec: Mapping[str, Any]) -> Iterator[str]:
    caches, (cores, key) = spec["caches"], _cores(spec)
    l1, l2, llc = (_of(_BYTES, caches[name]["size"]) for name in ("l1d", "l2", "llc"))
    if caches["l2_inclusive"] and l2 < l1:
        yield f'caches.l2.size = "{caches["l2"]["size"]}" cannot hold the lines of an L1 of "{caches["l1d"]["size"]}".'
    if caches["llc"]["role"] != "victim" and llc < cores * l2:
        yield (
            f'caches.llc.size = "{caches["llc"]["size"]}" with role "{caches["llc"]["role"]}" cannot hold the lines of '
            f'{cores} L2s of "{caches["l2"]["size"]}" ({key}, caches.l2.size).'
        )


def _memory(spec: Mapping[str, Any]) -> Iterator[str]:
    memory, core, caches = spec["memory"], spec["core"], spec["caches"]
    kind, _, rate = memory["standard"].partition("-")
    if not kind.startswith("DDR"):
        return
    peak = memory["channels"] * float(rate) * 8e-3
    prefetch = core["prefetch"]
    ahead = prefetch["credits"] if prefetch and prefetch["enabled"] else 0
    cycles = caches["l1d"]["latency_cycles"] + caches["l2"]["latency_cycles"]
    uncore = 2 * caches["noc_cycles"] + caches["llc"]["latency_cycles"]
    # DRAM itself is left out, so that the latency is a lower bound and the throughput an upper one.
    ns = cycles / _of(_GHZ, core["clock"]) + uncore / _of(_GHZ, caches["uncore_clock"]) + memory["static_latency_ns"]
    cores, key = _cores(spec)
    held = cores * (core["lfb"] + ahead) * 64
    if held < peak * ns:  # never where everything takes no time
        yield (
            f"All cores together reach less than {held / ns:.0f} GB/s ({key}, core.lfb, core.prefetch.credits), and "
            f"{memory['channels']} channels of {memory['standard']} carry {peak:.0f} (memory.channels)."
        )
    between = caches["llc"]["quirks"].get("memory_link")
    for way, what in (("read", "loads"), ("write", "write-backs")) if between else ():
        if (carried := _of(_RATES, between[way])) < min(peak, held / ns if ns else peak):
            yield (
                f"The link between caches and memory carries {carried:g} GB/s of {what} (caches.llc.quirks.memory_link.{way}), and "
                f"{memory['channels']} channels of {memory['standard']} carry {peak:.0f} (memory.channels)."
            )
    if (link := _link(spec)) and link > peak:
        yield (
            f"A port of {LANES} lanes carries {link:.1f} GB/s (pcie.generation), and {memory['channels']} channels of "
            f"{memory['standard']} carry {peak:.1f} (memory.channels)."
        )


def _link(spec: Mapping[str, Any]) -> float | None:
    """Payload in GB/s that a port carries in one direction; None without ports."""
    pcie = spec.get("pcie")
    if not pcie:
        return None
    own = pcie["quirks"]["lane_rate"]
    lane = _LANE[pcie["generation"]] if own is None else _of(_LINKS, own)
    payload = _of(_BYTES, pcie["max_payload"])
    return float(LANES * lane * (1 - pcie["dllp_share"]) * payload / (payload + pcie["write_overhead"]))


def _devices(spec: Mapping[str, Any]) -> Iterator[str]:
    iio, pcie, link = spec.get("iio"), spec.get("pcie"), _link(spec)
    if not iio or not pcie or link is None:
        return
    if nic := spec.get("ethernet"):
        own, wire = link * nic["lanes"] / LANES, _of(_LINKS, nic["link"])
        if wire > own:
            yield (
                f'ethernet.link = "{nic["link"]}" brings {wire:.1f} GB/s, and a port of {nic["lanes"]} lanes carries {own:.1f} '
                "(ethernet.lanes, pcie.generation)."
            )
    port = f"A port of {LANES} lanes carries {link:.1f} GB/s (pcie.generation), and"
    interval = _of(_NS, iio["line_interval"])
    if interval and 64 / interval < link:
        yield f"{port} the path to the home agent {64 / interval:.1f}, reads and writes together (iio.line_interval)."
    packet = interval * (_of(_BYTES, pcie["max_payload"]) / 64 - 1) / 2
    write = sum(_of(_NS, iio[key]) for key in ("to_cha", "from_cha", "ownership"))
    write += _of(_NS, spec["caches"]["llc"]["write_ack"]) + packet
    for what, lines, ns, key in (
        ("an IIO's write buffer", iio["write_buffer"], write, "iio.write_buffer"),
        (
            "its posted credits",
            pcie["posted_lines"] * LANES / 4,
            write + _of(_NS, pcie["propagation"]),
            "pcie.posted_lines",
        ),
    ):
        if lines * 64 < link * ns:
            yield f"{port} {what} at most {lines * 64 / ns:.1f}: {lines:.0f} lines for {ns:.0f} ns each ({key})."
