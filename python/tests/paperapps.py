"""Applications beside storage on the invented machine of `paperhost`: the paper's numbers, smoothed where it prints none."""

from __future__ import annotations

from typing import Any

IL_REDIS, IL_GAPBS, REDIS, GAPBS = range(1, 15), (1, 4, 8, 12, 16, 20, 24, 28), (1, 2, 3), (1, 2, 3, 4, 5, 6)

# Isolated over colocated throughput, by figure, application and DDIO.
DEGRADATION: dict[str, dict[tuple[str, str], list[float]]] = {
    "fig1": {
        ("redis-read", "on"): [1.25, 1.26, 1.27, 1.28, 1.28, 1.29, 1.29, 1.29, 1.29, 1.3, 1.3, 1.31, 1.31, 1.32],
        ("gapbs-pr", "on"): [1.25, 1.42, 1.55, 1.68, 1.78, 1.86, 1.92, 1.96],
    },
    "fig2": {
        ("redis-read", "on"): [1.287, 1.266, 1.247],
        ("redis-read", "off"): [1.119, 1.11, 1.105],
        ("gapbs-pr", "on"): [1.203, 1.33, 1.425, 1.52, 1.61, 1.69],
        ("gapbs-pr", "off"): [1.145, 1.26, 1.37, 1.47, 1.56, 1.649],
    },
    "fig15": {
        ("redis-write", "on"): [1.362, 1.34, 1.32],
        ("redis-write", "off"): [1.171, 1.17, 1.17],
        ("gapbs-bc", "on"): [1.12, 1.18, 1.24, 1.3, 1.34, 1.389],
        ("gapbs-bc", "off"): [1.08, 1.13, 1.18, 1.23, 1.27, 1.3],
    },
    "fig16": {("redis-read", d): [1.088, 1.09, 1.1] for d in ("on", "off")}
    | {("gapbs-pr", d): [1.12, 1.18, 1.23, 1.28, 1.33, 1.369] for d in ("on", "off")},
    "fig17": {("redis-write", d): [1.1, 1.12, 1.14] for d in ("on", "off")}
    | {("gapbs-bc", d): [1.06, 1.09, 1.12, 1.15, 1.17, 1.195] for d in ("on", "off")},
}
# Total memory bandwidth on Ice Lake, colocated.
BANDWIDTH = {"redis-read": [33.8 + 20.5 * i / 13 for i in range(14)], "gapbs-pr": [38.1, 46, 54, 60, 65, 69, 72, 74.8]}
READ_SHARE = {"redis-read": 0.95, "gapbs-pr": 0.98, "redis-write": 0.5, "gapbs-bc": 0.8}


def row(app: str | None, run: str, n: int, ddio: str, prefetch: str, **more: Any) -> dict[str, Any]:
    reads = READ_SHARE.get(app or "", 0.0)
    cores = {
        "t0_mops": float(n),
        "t0_llc_miss_ratio": 0.98,
        "mem_c2m_read_gbs": 2.0 * n * reads,
        "mem_c2m_write_gbs": 2.0 * n * (1 - reads),
    }
    return {"app": app, "run": run, "n": n, "ddio": ddio, "prefetch": prefetch, **(cores if app else {}), **more}


def figure(name: str, prefetch: str = "off") -> list[dict[str, Any]]:
    icelake = name == "fig1"
    gbs = 26.0 if icelake else 14.0
    moved = {
        "p2m_gbs": gbs,
        "mem_p2m_write_gbs": 31.5 if icelake else 15.0,
        "mem_p2m_read_gbs": 0.0,
        "p2m_llc_miss_ratio": 1.0,
    }
    rows = [row(None, "iso-p2m", 0, d, prefetch, **moved) for d in sorted({d for _, d in DEGRADATION[name]})]
    for (app, ddio), values in DEGRADATION[name].items():
        cores = (IL_REDIS if icelake else REDIS) if app.startswith("redis") else (IL_GAPBS if icelake else GAPBS)
        for i, (n, degr) in enumerate(zip(cores, values, strict=True)):
            total = BANDWIDTH[app][i] if icelake else 15.0 + 2.0 * n
            rows.append(row(app, "iso-c2m", n, "off", prefetch))
            rows.append(
                row(app, "colo", n, ddio, prefetch, **moved, degr_c2m=degr, degr_p2m=1.0, mem_bw_gbs=total)
                | {"t0_mops": n / degr}
            )
    return rows


def knobs() -> list[dict[str, Any]]:
    rows = []
    for prefetch in ("on", "off"):
        for q in (1, 2, 3, 4):
            for n in (1, 2, 3, 4, 5, 6):
                gbs = 9.0 * n * (1.3 if prefetch == "on" else 1.0)
                rows.append(
                    {"quadrant": q, "run": "iso-c2m", "n": n, "ddio": "off", "prefetch": prefetch, "c2m_gbs": gbs}
                )
                rows += [
                    {
                        "quadrant": q,
                        "run": "colo",
                        "n": n,
                        "ddio": d,
                        "prefetch": prefetch,
                        "c2m_gbs": gbs / 1.3,
                        "degr_c2m": 1.3,
                        "degr_p2m": 1.0 + 0.1 * n * (q == 3),
                    }
                    for d in ("on", "off")
                ]
    return rows


def rows() -> dict[str, list[dict[str, Any]]]:
    """Rows of every study of applications and knobs by its table's SQL name."""
    return {
        **{f"hostnetwork_{f}": figure(f) for f in DEGRADATION},
        "hostnetwork_fig1": figure("fig1", "on"),
        "hostnetwork_prefetch": figure("fig1", "on") + figure("fig1", "off"),
        "hostnetwork_fig3_knobs": knobs(),
    }
