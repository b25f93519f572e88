#!/usr/bin/env python3
"""A program's table doubles: its own time beside that of its recordings, as rows of ``python/hostnet/data/table.csv``.

``crates/record/tests/programs/table.c`` answers a request by 32 look-ups, each of which loads a pointer, the node that it
points to, and the next node. For each number of entries the script times the program natively, records its requests,
and replays them, drawn at random, on a saturated core of the platform that the argument names (``hostnet calibrate``
makes one of this machine). ``scaled_ns`` is the time of the smallest table's recording with a ``footprint`` as large as
the table. The native time is the tenth percentile of 32 rounds of each of ``--runs`` runs, because other programs on
the machine make rounds longer and none shorter; the last column is the median. It needs a C compiler.
"""

import argparse
import csv
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median, quantiles

import hostnet as hn

SOURCE = Path(__file__).resolve().parents[1] / "crates/record/tests/programs/table.c"
# Each entry has a pointer and a node.
ENTRY = 8 + 64
# More than a core sustains.
OFFERED = "40 Mpps"


def replayed(file, platform, footprint, packets):
    """Time of a saturated core for a request, and the lines that it takes from beyond its L2."""
    app = {"kind": "recorded", "file": str(file), "order": "random", "footprint": f"x{footprint}"}
    host = hn.Scenario.load("recorded-testpmd").with_(
        {
            "platform": platform,
            "peripheral": None,
            "tenant.0.stack": None,
            "tenant.0.app": app,
            "traffic.rate": OFFERED,
            "traffic.arrivals": "fixed",
            "run.requests": packets,
            "run.warmup_requests": packets,
        }
    )
    m = hn.run(host).metrics
    return 1e3 / m["throughput_mrps"], (m["lfb_rate"] or 0.0) / m["throughput_mrps"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("platform", help="such as here.toml")
    parser.add_argument("--first", type=int, default=12, help="power of two of the smallest number of entries")
    parser.add_argument("--last", type=int, default=17, help="power of two of the largest one")
    parser.add_argument("--packets", type=int, default=1400, help="requests to record")
    parser.add_argument("--replayed", type=int, default=8000, help="requests to replay, after as many to warm up")
    parser.add_argument("--runs", type=int, default=5)
    asked = parser.parse_args()
    platform = str(Path(asked.platform).resolve()) if Path(asked.platform).exists() else asked.platform
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow("entries,kib,simulated_ns,l2_misses,scaled_ns,measured_ns,measured_median_ns".split(","))
    with tempfile.TemporaryDirectory() as work:
        program = Path(work) / "table"
        subprocess.run(["cc", "-O1", "-pthread", "-o", program, SOURCE], check=True)
        first = Path(work) / f"{asked.first}.rec"
        for power in range(asked.first, asked.last + 1):
            entries, file = 1 << power, Path(work) / f"{power}.rec"
            times = []
            for _ in range(asked.runs):
                shown = subprocess.run([program, "0", f"{entries}", "3000"], capture_output=True, text=True, check=True)
                times += [float(line) for line in shown.stdout.split()]
            command = [sys.executable, "-c", "from hostnet.cli import main; main()", "record", "-o", file]
            command += ["--enter", "look_up", "--packets", f"{asked.packets}", "--seconds", "300"]
            subprocess.run(
                [*command, "--", program, "0", f"{entries}", "1000000"], check=True, stdout=subprocess.DEVNULL
            )
            ns, misses = replayed(file, platform, 1, asked.replayed)
            scaled, _ = replayed(first, platform, entries >> asked.first, asked.replayed)
            numbers = (ns, misses, scaled, quantiles(times, n=10)[0], median(times))
            out.writerow([entries, entries * ENTRY // 1024, *(f"{v:.4g}" for v in numbers)])
            sys.stdout.flush()


if __name__ == "__main__":
    main()
