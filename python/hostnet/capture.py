"""Contents of replayed captures, and the packets that were not replayed, by reason."""

from __future__ import annotations

import os
import struct
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Share of skipped packets above which a result comes with a warning.
MOST_SKIPPED = 0.03
#: Reason for packets that the user excluded by the port; such packets cause no warning.
CHOSEN = "to another port"
#: Note on a damaged file that was read up to the damage (``traffic.pcap.lenient``).
DAMAGED = "packets before the damage that ends the file"
#: How the note begins on packets that the link of the replay carries later than they were captured.
LATE = "packets later than captured"

#: First bytes of a capture that hostnet writes, the whole head of the file: nanoseconds, version 2.4, frames of up to 256 KiB, Ethernet.
WRITTEN = struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, 1)


class CaptureWarning(UserWarning):
    """A large part of a capture was not replayed."""


@dataclass(frozen=True)
class Held:
    """Number of packets of a capture file by outcome."""

    file: str
    packets: int
    replayed: int
    replies: int
    skipped: Mapping[str, int]
    notes: Mapping[str, int]

    @property
    def skipped_share(self) -> float:
        """Packets skipped although they match the port, as a share of the packets in the file."""
        return sum(n for why, n in self.skipped.items() if why != CHOSEN) / self.packets if self.packets else 0.0

    @property
    def reasons(self) -> str:
        """The reasons with their counts, most frequent first."""
        return _reasons(self.skipped)

    def __str__(self) -> str:
        parts = [f"{self.replayed:,} of {self.packets:,} packets replayed"]
        parts += [f"{self.replies:,} replies"] if self.replies else []
        parts += [f"skipped {sum(self.skipped.values()):,} ({self.reasons})"] if self.skipped else []
        parts += [f"{n:,} {what}" for what, n in self.notes.items()]
        return f"capture {self.file}: " + ", ".join(parts)


def _reasons(skipped: Mapping[str, int]) -> str:
    return "; ".join(f"{n:,} {why}" for why, n in sorted(skipped.items(), key=lambda item: -item[1]))


def held(data: Mapping[str, Any]) -> list[Held]:
    """Contents of the captures of a result (as `Result.data`), in the order of the tenants to which they are replayed."""
    table = (data.get("tables") or {}).get("capture") or {"columns": [], "rows": []}
    names = [c["name"] for c in table["columns"]]
    rows = [dict(zip(names, row, strict=True)) for row in table["rows"]]
    tenants = dict.fromkeys(row.get("tenant") for row in rows)
    return [_held(_file(data["spec"], t), [r for r in rows if r.get("tenant") == t]) for t in tenants]


def _file(spec: Mapping[str, Any], tenant: str | None) -> str:
    """Path of the capture that is replayed to a tenant: that of its own traffic, or of the scenario's; relative to the current
    directory where it lies below."""
    own = next((t.get("traffic") for t in spec.get("tenant") or () if t.get("name") == tenant), None)
    for traffic in (own, spec.get("traffic")):
        if file := ((traffic or {}).get("pcap") or {}).get("file"):
            path = Path(os.path.normpath(str(file)))
            return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
    return ""


def _held(file: str, rows: list[dict[str, Any]]) -> Held:
    kinds = ("file", "replayed", "reply", "skipped", "note")
    of = {kind: {r["what"]: r["packets"] for r in rows if r["kind"] == kind} for kind in kinds}
    packets, replayed, replies = (sum(of[kind].values()) for kind in kinds[:3])
    return Held(file, packets, replayed, replies, of["skipped"], of["note"])


def distinct(results: Iterable[Mapping[str, Any]]) -> list[Held]:
    """Contents of the captures of several results, each capture once."""
    found = [h for r in results for h in held(r)]
    return [h for i, h in enumerate(found) if h not in found[:i]]


def warn(results: Iterable[Mapping[str, Any]]) -> None:
    """Issue a CaptureWarning for each capture that is damaged, was skipped in large part, or is faster than its link."""
    for h in distinct(results):
        if DAMAGED in h.notes:
            warnings.warn(
                f"{h.file}: is truncated or damaged behind packet {h.notes[DAMAGED]:,}; what comes before is replayed.",
                CaptureWarning,
                stacklevel=3,
            )
        if h.skipped_share > MOST_SKIPPED:
            why = _reasons({w: n for w, n in h.skipped.items() if w != CHOSEN})
            warnings.warn(
                f"{h.file}: {100 * h.skipped_share:.0f} % of its {h.packets:,} packets are not replayed: {why}.",
                CaptureWarning,
                stacklevel=3,
            )
        for what, n in h.notes.items():
            if what.startswith(LATE) and n > MOST_SKIPPED * h.replayed:
                warnings.warn(
                    f"{h.file}: is faster than the link on which it is replayed: {100 * n / h.replayed:.0f} % of its "
                    f"{h.replayed:,} replayed packets come{what.removeprefix('packets')}.",
                    CaptureWarning,
                    stacklevel=3,
                )
