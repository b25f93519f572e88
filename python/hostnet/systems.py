"""Names and colours of the systems that studies compare, for plots: each is said once."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class System:
    """A system as plots show it. ``shades`` are for few DDIO ways to many, where plots tell these apart."""

    name: str
    colour: str
    short: str = ""
    shades: tuple[str, ...] = ()


#: By the value that the column ``system`` has.
SYSTEMS = {
    "dma": System("DMA", "#9A9A9A"),
    "ddio": System("DDIO", "#3A93CE", shades=("#BBDDF1", "#7CBCE6", "#3A93CE", "#0F5F92")),
    "sweeper": System("DDIO + Sweeper", "#E07B12", "+Swp", ("#FBD08A", "#F2A83B", "#E07B12", "#A84C04")),
    "ideal": System("ideal DDIO", "#2B2B2B", "ideal"),
    "inval": System("Invalidate", "#F7C66B"),
    "pref": System("Prefetch", "#CC79A7"),
    "static": System("Static", "#8C8C8C"),
    "idio": System("IDIO", "#009E73"),
    "idio-tx": System("IDIO + Sweeper TX", "#00563F"),
    "ccnic": System("CC-NIC", "#0072B2"),
    "unopt": System("unoptimised over UPI", "#E69F00"),
    "e810": System("E810", "#8C8C8C"),
    "cx6": System("ConnectX-6", "#B5400A"),
    "ccnic-overlay": System("CC-NIC overlay", "#0072B2"),
    "upi-1to1": System("CC-NIC overlay, 1-1", "#56B4E9"),
    "unopt-overlay": System("unoptimised overlay", "#E69F00"),
}
NAMES = {key: system.name for key, system in SYSTEMS.items()}
COLOURS = {key: system.colour for key, system in SYSTEMS.items()}


def name_of(key: object) -> str:
    """The name of a value of the column ``system``; itself where it has no other."""
    return NAMES.get(str(key), str(key))
