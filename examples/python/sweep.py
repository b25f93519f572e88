"""Sweeps the LLC ways that a NIC may use, with and without Sweeper, and writes a plot: `python sweep.py [ways.svg]`."""

import sys

import hostnet as hn


def main(picture: str) -> None:
    store = hn.Scenario.load("kvs").with_(
        {"run.load": "fixed", "traffic.rate": "20 Mrps", "run.requests": 5_000, "run.warmup_requests": 5_000}
    )
    frame = hn.sweep(store, {"placement.ways": [2, 6, 12], "placement.sweep_rx": [False, True]})
    print(frame.select("placement.ways", "placement.sweep_rx", "lat_p99_us", "mem_bw_gbs", "acc_total"))
    hn.plot(frame, x="placement.ways", y="acc_total", hue="placement.sweep_rx").save(picture)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "ways.svg")
