#!/usr/bin/env python3
"""Loopback of every contender with one generator, interleaved, as CSV and a table of medians.

    ./compare.py --build ../../../target/pmd --programs ../../../target/release > compare.csv

Needs the PMD and programs built (make here, cargo build --release -p ccnic) and two CPUs.
Virtual machines move their CPUs between near (shared cache) and far places while one looks,
so each run is bracketed by a cache-line ping-pong and labelled near, far or moved; medians
are taken per label. Ratios are to memif under the same label, mode and size.
"""

import argparse
import collections
import csv
import os
import statistics
import subprocess
import sys
import tempfile
import time

COLUMNS = ["mode", "contender", "place", "pingpong_ns", "size_bytes", "window", "rep", "packets",
           "mpps", "lat_min_ns", "lat_p50_ns", "lat_p99_ns", "corrupt"]
# Bounds of the ping-pong round trip: within one cache complex, and beyond it.
NEAR_NS, FAR_NS = 150.0, 250.0


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default="../../../target/pmd", help="directory of the PMD and ccnic-compare")
    p.add_argument("--programs", default="../../../target/release", help="directory of ccnic-bench and ccnic-nic")
    p.add_argument("--reps", type=int, default=5)
    p.add_argument("--ms", type=int, default=30, help="measured milliseconds per run")
    p.add_argument("--sizes", type=int, nargs="+", default=[64])
    p.add_argument("--windows", type=int, nargs="+", default=[1, 256])
    p.add_argument("--realtime", action="store_true", help="run under SCHED_FIFO (root), on a shared machine")
    p.add_argument("--only", nargs="+", help="contenders to run (default: all)")
    return p.parse_args()


class Runner:
    def __init__(self, args, tmp):
        self.args, self.tmp, self.serial = args, tmp, 0
        self.prefix = ["chrt", "-f", "50"] if args.realtime else []
        self.compare = os.path.join(args.build, "ccnic-compare")
        self.pmd = os.path.join(args.build, "librte_net_ccnic.so")

    def program(self, name):
        return os.path.join(self.args.programs, name)

    def path(self, name):
        self.serial += 1
        return os.path.join(self.tmp, f"{name}{self.serial}")

    def eal(self, cpus, *more):
        self.serial += 1
        return ["--no-huge", "-m", "256", "--no-pci", "--no-telemetry", "--log-level=error",
                f"--file-prefix=cmp{os.getpid()}_{self.serial}", "--lcores", cpus, *more, "--"]

    def start(self, argv):
        return subprocess.Popen(self.prefix + argv, stdout=subprocess.DEVNULL)

    def measure(self, argv, size):
        windows = ",".join(map(str, self.args.windows))
        argv = [*argv, f"size={size}", f"window={windows}", f"ms={self.args.ms}"]
        out = subprocess.run(self.prefix + argv, capture_output=True, text=True, timeout=120)
        rows = [line.split(",") for line in out.stdout.splitlines() if line.count(",") == 10]
        if out.returncode != 0 or len(rows) != len(self.args.windows):
            print(out.stdout + out.stderr, file=sys.stderr)
            raise RuntimeError(f"{' '.join(argv)} failed with code {out.returncode}")
        return rows

    def ping_pong(self):
        out = subprocess.run(self.prefix + [self.program("ccnic-bench"), "--reps", "1", "probe"],
                             capture_output=True, text=True, check=True).stdout
        return next(float(r["value"]) for r in csv.DictReader(out.splitlines())
                    if r["experiment"] == "pingpong" and r["variant"] == "one_line")

    # Contenders: each returns the rows of one run.

    def native(self, size, *more):
        return self.measure([self.compare, *self.eal("0@0,1@1"), "contender=native", "nic-cpu=1", *more], size)

    def net_ccnic(self, size, devargs="nic-cpu=1"):
        return self.measure([self.compare, *self.eal("0@0,1@1", "-d", self.pmd, "--vdev", f"net_ccnic0,{devargs}"),
                             "contender=ethdev"], size)

    def rte_ring(self, size):
        return self.measure([self.compare, *self.eal("0@0,1@1"), "contender=rte_ring"], size)

    def memif(self, size):
        where = f"id=0,socket={self.path('memif')},socket-abstract=no"
        return self.measure([self.compare, *self.eal("0@0,1@1", "--vdev", f"net_memif0,role=server,{where}",
                                                     "--vdev", f"net_memif1,role=client,{where}"),
                             "contender=echo"], size)

    def with_nic(self, run):
        socket = self.path("nic")
        nic = self.start([self.program("ccnic-nic"), "--socket", socket, "--cpu", "1", "--hosts", "1"])
        try:
            deadline = time.monotonic() + 5
            while not os.path.exists(socket) and time.monotonic() < deadline:
                time.sleep(0.01)
            return run(socket)
        finally:
            nic.kill()
            nic.wait()

    def native_process(self, size):
        return self.with_nic(lambda s: self.native(size, f"socket={s}"))

    def net_ccnic_process(self, size):
        return self.with_nic(lambda s: self.net_ccnic(size, f"socket={s}"))

    def memif_process(self, size):
        where = f"id=0,socket={self.path('memif')},socket-abstract=no"
        echo = self.start([self.compare, *self.eal("0@1", "--vdev", f"net_memif0,role=server,{where}"),
                           "contender=echo", "role=echo", "ms=1"])
        try:
            time.sleep(1)
            return self.measure([self.compare, *self.eal("0@0", "--vdev", f"net_memif0,role=client,{where}"),
                                 "contender=echo"], size)
        finally:
            echo.kill()
            echo.wait()


def contenders(r):
    return {
        ("threads", "native"): r.native,
        ("threads", "native_unopt"): lambda size: r.native(size, "unopt=1"),
        ("threads", "net_ccnic"): r.net_ccnic,
        ("threads", "rte_ring"): r.rte_ring,
        ("threads", "memif"): r.memif,
        ("processes", "native"): r.native_process,
        ("processes", "net_ccnic"): r.net_ccnic_process,
        ("processes", "memif"): r.memif_process,
    }


def place(before, after):
    if max(before, after) < NEAR_NS:
        return "near"
    return "far" if min(before, after) > FAR_NS else "moved"


def table(rows):
    groups = collections.defaultdict(list)
    for row in rows:
        groups[row["place"], row["mode"], row["size_bytes"], row["window"], row["contender"]].append(row)

    def median(group, column):
        return statistics.median(float(r[column]) for r in group)

    print("| place | mode | size B | window | contender | runs | Mpps | x memif | p50 ns | min ns | min x memif |",
          file=sys.stderr)
    print("|---|---|---|---|---|---|---|---|---|---|---|", file=sys.stderr)
    for key in sorted(groups, key=lambda k: (k[0], k[1], int(k[2]), int(k[3]), k[4])):
        group, base = groups[key], groups.get((*key[:4], "memif"))
        mpps, p50, low = (median(group, c) for c in ("mpps", "lat_p50_ns", "lat_min_ns"))
        ratio = f"{mpps / median(base, 'mpps'):.2f}" if base else "-"
        against = f"{low / median(base, 'lat_min_ns'):.2f}" if base else "-"
        print(f"| {' | '.join(map(str, key))} | {len(group)} | {mpps:.2f} | {ratio} | {p50:.0f} | {low:.0f} | {against} |",
              file=sys.stderr)


def main():
    args = arguments()
    out = csv.DictWriter(sys.stdout, COLUMNS)
    out.writeheader()
    rows = []
    with tempfile.TemporaryDirectory(prefix="ccnic-compare-") as tmp:
        r = Runner(args, tmp)
        for rep in range(args.reps):
            for size in args.sizes:
                for (mode, name), run in contenders(r).items():
                    if args.only and name not in args.only:
                        continue
                    before = r.ping_pong()
                    lines = run(size)
                    after = r.ping_pong()
                    for line in lines:
                        row = dict(zip(COLUMNS, [mode, name, place(before, after), f"{max(before, after):.1f}",
                                                 line[2], line[3], rep, *line[5:]]))
                        rows.append(row)
                        out.writerow(row)
                        sys.stdout.flush()
    table(rows)


if __name__ == "__main__":
    main()
