"""One look for all plots: colours that colour-blind readers can tell apart, axis labels with units, files."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..declared import PREFIX, metric_info, unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette. Neighbours in a stack differ in lightness as well, so the plots survive grey printing.
CLASS_COLOURS = {
    "acc_nic_rx_wr": ("NIC RX Wr", "#0072B2"),
    "acc_nic_tx_rd": ("NIC TX Rd", "#A6D5F2"),
    "acc_cpu_rx_rd": ("CPU RX Rd", "#E69F00"),
    "acc_cpu_tx_rdwr": ("CPU TX Rd/Wr", "#F7EC8A"),
    "acc_cpu_other_rd": ("CPU Other Rd", "#8C8C8C"),
    "acc_rx_evct": ("RX Evct", "#B5400A"),
    "acc_tx_evct": ("TX Evct", "#E3A6C7"),
    "acc_other_evct": ("Other Evct", "#3B3B3B"),
}
_STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "hatch.linewidth": 0.5,
    "svg.fonttype": "none",
    "svg.hashsalt": "hostnet",
    "figure.dpi": 100,
    "savefig.dpi": 150,
}

_LABELS = {
    "throughput_mrps": "throughput [Mrps]",
    "mem_bw_gbs": "DRAM bandwidth [GB/s]",
    "rate_mrps": "arrival rate [Mrps]",
    "buf": "RX buffers per core",
    "ways": "DDIO ways",
    "drop_rate": "dropped / offered packets",
    "depth": "standing queue D",
    "rx_lines": "receive buffers in the LLC [lines]",
}
# Units of small letters that are no things, as axes have them.
_SHORT = {"us": "µs", "ns": "ns", "cycles": "cycles", "1/us": "1/µs"}
# Units that names spell in another way than by the unit's letters.
_SPELLED = {"Gb/s": "gbps", "M/s": "mtps"}


def _spelled(unit: str) -> str:
    """The last part of the name of a column with this unit, where the name has its unit."""
    return _SPELLED.get(unit) or "".join(c for c in unit.lower() if c.isalnum())


@lru_cache(maxsize=1)
def _units() -> dict[str, str]:
    """Units by the last part of the names of the metrics that have their unit in their name."""
    return {_spelled(m["unit"]): m["unit"] for n, m in metric_info().items() if n.endswith("_" + _spelled(m["unit"]))}


def axis_label(column: str, given: str = "") -> str:
    """A column's name as an axis label, with its unit in brackets: the ``given`` one, that of the metric's declaration, or that
    at the name's end."""
    if column in _LABELS:
        return _LABELS[column]
    name = column
    if column.startswith(PREFIX):
        tenant, _, name = column.removeprefix(PREFIX).rpartition(".")
        name = f"{tenant}: {name}"
    stem, _, last = name.rpartition("_")
    found = given or unit(column) or (_units().get(last, "") if stem else "")
    counted = found.isalpha() and found.islower() and found not in _SHORT  # `lines` says what is counted, and stays
    words = (stem if last == _spelled(found) and stem and not counted else name).replace("_", " ")
    said = found in ("", "fraction") or (counted and last == found) or " per " in words
    return words if said else f"{words} [{_SHORT.get(found, found)}]"


def style() -> Any:
    """A context in which figures are drawn and saved in hostnet's style."""
    import matplotlib

    return matplotlib.rc_context(_STYLE)


def new_figure(width: float, height: float) -> Figure:
    # pyplot is not used: no global state, no display, safe in threads.
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def line_style(i: int) -> dict[str, Any]:
    colours = ("#0072B2", "#E07B12", "#2B2B2B", "#009E73", "#B5400A", "#CC79A7", "#56B4E9", "#8C8C8C")
    markers, dashes = "osD^vPX<", ("-", "--", ":", "-.")
    n = len(colours)
    return {
        "color": colours[i % n],
        "marker": markers[i % n],
        "linestyle": dashes[i // n % 4],
        "markersize": 4.5,
        "linewidth": 1.4,
    }


def save(figure: Figure, stem: Path) -> list[Path]:
    """Writes `<stem>.png` and `<stem>.svg`, byte-identical for equal figures; returns the paths."""
    with style():
        paths = [stem.with_name(stem.name + suffix) for suffix in (".png", ".svg")]
        figure.savefig(paths[0], metadata={"Software": None})
        figure.savefig(paths[1], metadata={"Date": None})
    return paths
