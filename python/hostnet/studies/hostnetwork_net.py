"""The network case studies of "Understanding the Host Network" (SIGCOMM'24; technical report, appendices C to E): the
four quadrants with a RoCE NIC in place of the SSDs, and a DCTCP receiver on a host whose other cores use memory.

Runs, columns and formulae equal those of the storage studies; runs of cores alone are the same simulations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..model import counters_of, formula
from . import Point, Rows, Study
from .hostnetwork import (
    BANDWIDTH,
    COMPONENTS,
    DEGRADATION,
    ERRORS,
    READ_ROOT,
    WRITE_ROOT,
    Points,
    admission_ns,
    all_quadrants,
    analyse,
    constants,
    lone,
    lone_read,
    point,
    quadrant,
    ratio,
    streaming,
    study,
    units,
)

ROCE, DCTCP = "roce-quadrant3", "dctcp-receiver"


def trace(quick: bool) -> list[Point]:
    """50 us at a time, in steps of 1 us, as the paper's polling core sampled them."""
    window = {"run.time": "50 us", "run.trace": "1 us"}
    return [
        point(quick, "colo", "readwrite", "write", n, columns={"quadrant": 3}, changes=window, beside=ROCE)
        for n in (4, 5, 6)
    ]


# --- DCTCP ----------------------------------------------------------------------------------------------------------

TCP_CORES = (1, 2, 3, 4)
NET_CORES = 4
# Hundreds of round trips, after which sockets and windows have settled.
TCP_TIME, TCP_QUICK_TIME = "4 ms", "1 ms"


def tcp_point(
    quick: bool,
    run: str,
    c2m: str | None,
    n: int,
    *,
    columns: Mapping[str, Any] | None = None,
    changes: Mapping[str, Any] | None = None,
) -> Point:
    """One run of the memory application on `n` cores, of the network application (`iso-net`), or of both."""
    if run == "iso-c2m":
        return point(quick, run, c2m, None, n, columns=columns, changes=changes)
    memory: dict[str, Any] = {"tenant": [{"name": "iperf", "cores": NET_CORES, "app": {"kind": "tcp_receive"}}]}
    if c2m is not None:
        memory = {"tenant.0.cores": NET_CORES, **streaming(n, c2m, tenant=1)}
    window = {"run.time": TCP_QUICK_TIME if quick else TCP_TIME}
    return Point(
        DCTCP,
        {"run": run, "c2m": c2m, "p2m": "write", "n": n, **(columns or {})},
        {"name": "hostnetwork", **memory, **window, **(changes or {})},
    )


def beside_tcp(*kinds: str) -> Points:
    """The network application alone and with each kind of cores, and each kind of cores alone."""

    def points(quick: bool) -> list[Point]:
        out = [tcp_point(quick, "iso-net", None, 0)]
        for c2m in kinds:
            for n in TCP_CORES:
                out += [tcp_point(quick, "iso-c2m", c2m, n), tcp_point(quick, "colo", c2m, n)]
        return out if "read" in kinds else [*out, lone(quick)]

    return points


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


def _tcp(figure: str, title: str, points: Points, metrics: tuple[str, ...]) -> Study:
    return study(figure, title, points, metrics, derived_units=tcp_units(), across=compared_tcp, group="tcp")


def _rdma(figure: str, title: str, points: Points, metrics: tuple[str, ...], **more: Any) -> Study:
    return study(figure, title, points, metrics, group="rdma", **more)


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
        trace,
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
