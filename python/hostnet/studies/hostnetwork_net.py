"""The network case studies of "Understanding the Host Network" (SIGCOMM'24; technical report, appendices C to E): the
four quadrants with a RoCE NIC in place of the SSDs, and a DCTCP receiver on a host whose other cores use memory.

Runs, columns and formulae equal those of the storage studies; runs of cores alone are the same simulations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..model import counters_of, formula
from . import Rows, Study, axes
from .grid import Grid, also, by_length, on, sum_of
from .hostnetwork import (
    BANDWIDTH,
    C2M,
    COMPONENTS,
    COUNT,
    DEGRADATION,
    ERRORS,
    LONE,
    P2M,
    QUADRANT,
    READ_FRACTION,
    READ_ROOT,
    RUN,
    WINDOW,
    WRITE_ROOT,
    admission_ns,
    all_quadrants,
    alone,
    analyse,
    constants,
    lone_read,
    quadrant,
    ratio,
    study,
    units,
)

ROCE, DCTCP = "roce-quadrant3", "dctcp-receiver"


# 50 us at a time, in steps of 1 us, as the paper's polling core saw them.
TRACE = (
    QUADRANT(3)
    * RUN("colo")
    * C2M("readwrite")
    * P2M("write")
    * COUNT(4, 5, 6)
    * WINDOW
    * also({"run.time": "50 us", "run.trace": "1 us"})
    * on(ROCE)
)


# --- DCTCP ----------------------------------------------------------------------------------------------------------

TCP_CORES = (1, 2, 3, 4)
NET_CORES = 4
# The memory application is the second tenant where it runs beside the network application.
BESIDE_NET = axes.C2M.among({kind: {"tenant.1.app.read_fraction": part} for kind, part in READ_FRACTION.items()})
# Hundreds of round trips: sockets and windows have settled.
RECEIVED = on(DCTCP) * axes.P2M("write") * also({"name": "hostnetwork", "run.time": by_length("4 ms", "1 ms")})
NET_ALONE = (
    axes.C2M(None)
    * COUNT.label()(0)
    * also({"tenant": [{"name": "iperf", "cores": NET_CORES, "app": {"kind": "tcp_receive"}}]})
    * RECEIVED
)


def together(c2m: str, *cores: int) -> Grid:
    """The network application beside the memory application on these cores."""
    return (
        RUN("colo")
        * BESIDE_NET(c2m)
        * COUNT.at("tenant.1.cores")(*cores)
        * also({"tenant.0.cores": NET_CORES})
        * RECEIVED
    )


def beside_tcp(*kinds: str) -> Grid:
    """The network application alone and beside each kind of cores, and these cores alone."""
    pairs = sum_of(alone(c2m, n) * WINDOW + together(c2m, n) for c2m in kinds for n in TCP_CORES)
    every = RUN("iso-net") * NET_ALONE + pairs
    return every if "read" in kinds else every + LONE


NET_COLUMNS = ("net_formula_ns", "net_estimate_gbs", "net_err_pct", "net_err_adm_pct")


def analyse_net(row: Mapping[str, Any], lone: Mapping[str, Any] | None) -> dict[str, float | None]:
    """The formula for the cores that copy: their measured credits over the C2M latency of the experiment (appendix
    E.2).

    With cores that store, the latency of these cores is used: with the constant of reads, the errors of Fig. 29 would
    mean that copies wait no longer than the reads of stores, while with cores that read, copies wait 9 % longer than
    reads. The admission delay at the CHA is that of the same cores.
    """
    if row.get("net_lfb_rate") is None:
        return dict.fromkeys(NET_COLUMNS)
    hw, way = constants(row, lone)
    traffic = "c2m-readwrite" if row.get("c2m") == "readwrite" else "c2m-read"
    about = {"hardware": hw, "credits": NET_CORES * row["net_lfb_occ"], "measured_gbs": row["net_lfb_rate"] * 64e-3}
    admission = admission_ns(row, traffic) if row["run"] == "colo" else None
    plain = formula(traffic, counters_of(row), **about)
    full = formula(traffic, counters_of(row), cha_admission_ns=max((admission or 0.0) - way, 0.0), **about)
    values = (plain["latency_ns"], plain["estimate_gbs"], plain["error_pct"], full["error_pct"])
    return dict(zip(NET_COLUMNS, values, strict=True))


def compared_tcp(rows: Rows) -> list[dict[str, Any]]:
    """Ratio of isolated to colocated throughput of both applications, and the formulae of all three classes of traffic."""
    alone = {(r["c2m"], r["n"]): r["c2m_gbs"] for r in rows if r["run"] == "iso-c2m"}
    one = lone_read(rows)
    net = next((r["net_gbs"] for r in rows if r["run"] == "iso-net"), None)
    out: list[dict[str, Any]] = []
    for r in rows:
        mem_x = net_x = None
        if r["run"] == "colo":
            mem_x, net_x = ratio(alone.get((r["c2m"], r["n"])), r.get("c2m_gbs")), ratio(net, r.get("net_gbs"))
        memory = r if r["run"] != "iso-net" else {**r, "c2m_gbs": None, "lfb_rate": None}
        formulae = {**analyse(memory, "c2m", one), **analyse(memory, "p2m"), **analyse_net(r, one)}
        out.append({"degr_mem": mem_x, "degr_net": net_x, **formulae})
    return out


def tcp_units() -> dict[str, str]:
    return {
        **units(),
        "degr_mem": "x",
        "degr_net": "x",
        "net_formula_ns": "ns",
        "net_estimate_gbs": "GB/s",
        "net_err_pct": "%",
        "net_err_adm_pct": "%",
    }


# --- Studies --------------------------------------------------------------------------------------------------------

PAUSES = ("pfc_pause_fraction", "nic_buffer_peak_kib")


def _tcp(figure: str, title: str, grid: Grid, metrics: tuple[str, ...]) -> Study:
    return study(figure, title, grid, metrics, derived_units=tcp_units(), across=compared_tcp, group="tcp")


def _rdma(figure: str, title: str, grid: Grid, metrics: tuple[str, ...], **more: Any) -> Study:
    return study(figure, title, grid, metrics, group="rdma", **more)


STUDIES = [
    _rdma(
        "fig18",
        "RDMA, four quadrants: degradation and memory bandwidth",
        all_quadrants(ROCE),
        (*DEGRADATION, "pfc_pause_fraction"),
    ),
    _rdma("fig20", "RDMA quadrant 1: root causes", quadrant(1, ROCE), WRITE_ROOT),
    _rdma("fig21", "RDMA quadrant 2: root causes", quadrant(2, ROCE), READ_ROOT),
    _rdma("fig22", "RDMA quadrant 3: root causes", quadrant(3, ROCE), (*WRITE_ROOT, *PAUSES)),
    _rdma(
        "fig23",
        "RDMA quadrant 3: IIO occupancy over 50 us",
        TRACE,
        ("iio_write_occ", "iio_write_credits", *PAUSES),
        side_tables=("trace",),
    ),
    _rdma("fig24", "RDMA quadrant 4: root causes", quadrant(4, ROCE), READ_ROOT),
    _rdma("fig27", "RDMA: error of the formula's throughput", all_quadrants(ROCE), ERRORS),
    _rdma("fig28", "RDMA: the formula's components", all_quadrants(ROCE), COMPONENTS),
    _tcp(
        "fig19",
        "DCTCP: degradation and memory bandwidth",
        beside_tcp("read", "readwrite"),
        ("degr_mem", "degr_net", "c2m_gbs", "net_gbs", "net_copy_share", "packet_loss", *BANDWIDTH, "mem_net_read_gbs"),
    ),
    _tcp("fig25", "DCTCP beside C2M-Read: root causes", beside_tcp("read"), (*WRITE_ROOT, "packet_loss")),
    _tcp("fig26", "DCTCP beside C2M-ReadWrite: root causes", beside_tcp("readwrite"), (*WRITE_ROOT, "packet_loss")),
    _tcp(
        "fig29",
        "DCTCP: error of the formula's throughput",
        beside_tcp("read", "readwrite"),
        ("c2m_err_pct", "net_err_pct", "p2m_err_pct", "c2m_err_adm_pct", "net_err_adm_pct", "p2m_err_adm_pct"),
    ),
    _tcp("fig30", "DCTCP: the formula's components", beside_tcp("read", "readwrite"), COMPONENTS),
]
