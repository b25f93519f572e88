"""Invented results in the engine's result format: three systems on a capture, with every table a run may carry."""

from __future__ import annotations

import math
from typing import Any

# system -> placement, throughput, mean DRAM latency, accesses by class
SYSTEMS: dict[str, tuple[dict[str, Any], float, float, dict[str, float]]] = {
    "dma": (
        {"policy": "dma"},
        14.9,
        131.0,
        {"nic_rx_wr": 5.0, "cpu_rx_rd": 5.0, "nic_tx_rd": 2.0, "cpu_other_rd": 6.1},
    ),
    "ddio": (
        {"policy": "ddio", "ways": 2},
        22.4,
        97.0,
        {"rx_evct": 4.6, "cpu_rx_rd": 0.3, "cpu_other_rd": 6.2, "tx_evct": 0.8},
    ),
    "sweeper": (
        {"policy": "ddio", "ways": 2, "sweep_rx": True},
        29.8,
        74.0,
        {"rx_evct": 0.2, "cpu_rx_rd": 0.2, "cpu_other_rd": 6.3},
    ),
}


def result(key: str) -> dict[str, Any]:
    """One result as `_core.run` returns it."""
    placement, mrps, dram, classes = SYSTEMS[key]
    total = sum(classes.values())
    metrics: dict[str, float | None] = {
        "throughput_mrps": mrps,
        "offered_mrps": mrps * 1.01,
        "drop_rate": 0.0,
        "drops": 0.0,
        "lat_p50_us": 1.1,
        "lat_p99_us": 100 / mrps,
        "lat_p999_us": 190 / mrps,
        "mem_bw_gbs": mrps * total * 64 / 1000,
        "dram_lat_avg_ns": dram,
        "dram_lat_p99_ns": 4 * dram,
        "acc_total": total,
        "sweep_delay_ns": None,
        **{f"acc_{c}": n for c, n in classes.items()},
    }
    cdf = [[40 + 8 * i, 1 - math.exp(-8 * i / (dram - 40))] for i in range(90)]
    latency = [[0.3 * 1.06**i, 1 - math.exp(-(0.3 * 1.06**i) / (20 / mrps))] for i in range(90)]
    timeline = [
        [10.0 * i, mrps * (1 + 0.05 * math.sin(i / 3)), mrps * 2 + math.cos(i / 5), 4000 - 40 * i % 700]
        for i in range(120)
    ]
    domains = [
        ["LFB", 10, 3.2, 10, 41.0, 78.1, 78.0],
        ["RPQ 0", 48, 11.5, 48, 180.2, 63.8, 63.8],
        ["RX ring core 0", 1024, 8.1, 96, 1.24, 6532.3, 6532.2],
    ]
    return {
        "version": "0.1.0",
        "seed": 7,
        "wall_s": 1.84,
        "sim_us": 2000.5,
        "warmup_us": 300.25,
        "measure_us": 1700.25,
        "spec": {
            "name": f"demo-{key}",
            "platform": {"name": "sim24", "cores": 24},
            "placement": placement,
            "seed": 7,
            "traffic": {"pcap": {"file": "captures/<memcached>.pcapng"}},
        },
        "metrics": metrics,
        "tables": {
            "dram_latency_cdf": table("latency_ns ns, fraction", cdf),
            "request_latency_cdf": table("latency_us us, fraction", latency),
            "timeline": table("t_us us, throughput_mrps Mrps, mem_bw_gbs GB/s, rx_lines lines", timeline),
            "domains": table(
                "domain, credits, occupancy_avg, occupancy_max, arrivals_per_us 1/us, latency_ns ns, little_ns ns",
                domains,
            ),
            "search": table(
                "rate_mrps Mrps, throughput_mrps Mrps, p99_us us, drop_rate, ok",
                [[20.0, 20.0, 4.1, 0.0, True], [40.0, 31.2, 900.0, 0.2, False]],
            ),
        },
    }


def table(columns: str, rows: list[list[Any]]) -> dict[str, Any]:
    """A result's table; `columns` is "name unit, name, ...", a name without unit has none."""
    parts = [(*c.split(), "") for c in columns.split(", ")]
    return {"columns": [{"name": p[0], "unit": p[1]} for p in parts], "rows": rows}


def three() -> list[dict[str, Any]]:
    """DMA, DDIO and DDIO with Sweeper."""
    return [result(key) for key in SYSTEMS]
