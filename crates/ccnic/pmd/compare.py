#!/usr/bin/env python3
"""Loopback of every contender with one generator, interleaved, as CSV and a table of medians.

    ./compare.py --build ../../../target/pmd --programs ../../../target/release > compare.csv

Needs the PMD and programs built (make here, cargo build --release -p ccnic) and two CPUs.
With --huge everything lies on 2 MiB pages (root; they are reserved for the time of the run),
and a pair of rte_rings between two processes joins in, which DPDK allows only there.
Virtual machines move their CPUs between near (shared cache) and far places while one looks,
so each run is bracketed by a cache-line ping-pong and labelled near, far or moved; medians
are taken per label. Ratios are to memif under the same label, mode and size.
"""

import argparse
import collections
import contextlib
import csv
import os
import pathlib
import signal
import stat
import statistics
import subprocess
import sys
import tempfile
import time

COLUMNS = [
    "pages",
    "mode",
    "contender",
    "place",
    "pingpong_ns",
    "size_bytes",
    "window",
    "rep",
    "packets",
    "mpps",
    "lat_min_ns",
    "lat_p50_ns",
    "lat_p99_ns",
    "corrupt",
]
# Bounds of the ping-pong round trip: within one cache complex, and beyond it.
NEAR_NS, FAR_NS = 150.0, 250.0
HUGE_PAGES = pathlib.Path("/proc/sys/vm/nr_hugepages")
HUGE_NEEDED = 512
PLACED = ["--mbuf-pool-ops-name=ccnic"]
# Contenders that DPDK loads as a plug-in.
PLUGIN = ("net_ccnic", "net_ccnic_copy")


class Refusal(Exception):
    """Why the comparison cannot run, in one sentence."""


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default="../../../target/pmd", help="directory of the PMD and ccnic-compare")
    p.add_argument("--programs", default="../../../target/release", help="directory of ccnic-bench and ccnic-nic")
    p.add_argument("--reps", type=int, default=5)
    p.add_argument("--ms", type=int, default=30, help="measured milliseconds per run")
    p.add_argument("--sizes", type=int, nargs="+", default=[64])
    p.add_argument("--windows", type=int, nargs="+", default=[1, 256])
    p.add_argument("--huge", action="store_true", help="2 MiB pages for every contender (root)")
    p.add_argument("--realtime", action="store_true", help="run under SCHED_RR (root), on a shared machine")
    p.add_argument("--only", nargs="+", help="contenders to run (default: all)")
    p.add_argument("--modes", nargs="+", choices=["threads", "processes"], default=["threads", "processes"])
    return p.parse_args()


@contextlib.contextmanager
def huge_pages(where):
    """Reserves huge pages and mounts them for the time of the run."""
    before = HUGE_PAGES.read_text()
    try:
        HUGE_PAGES.write_text(str(max(int(before), HUGE_NEEDED)))
        if int(HUGE_PAGES.read_text()) < HUGE_NEEDED:
            raise Refusal(f"--huge needs {HUGE_NEEDED} free pages of 2 MiB.")
        where.mkdir()
        subprocess.run(["mount", "-t", "hugetlbfs", "none", str(where)], check=True)
        try:
            yield
        finally:
            subprocess.run(["umount", str(where)], check=True)
    except PermissionError:
        raise Refusal("--huge reserves pages, which needs root.") from None
    finally:
        if os.access(HUGE_PAGES, os.W_OK):
            HUGE_PAGES.write_text(before)


def world_writable(path):
    """The folder on the way to `path` that everybody may write to; None where there is none. DPDK loads no plug-in below one."""
    folders = pathlib.Path(path).resolve().parents
    return next((f for f in folders if f.stat().st_mode & stat.S_IWOTH), None)


def check(runner, names):
    """Raises Refusal when a program is missing, or when DPDK would refuse the driver."""
    plugged = any(name in PLUGIN for name in names)
    needed = [runner.compare, runner.program("ccnic-bench"), *([runner.pmd] if plugged else [])]
    missing = next((p for p in needed if not os.path.exists(p)), None)
    if missing:
        raise Refusal(
            f"{missing} does not exist; `make ccnic-pmd` builds it, and --build and --programs say where it is."
        )
    folder = world_writable(runner.pmd) if plugged else None
    if folder:
        raise Refusal(
            f"DPDK loads no plug-in below a folder that everybody may write to, and {folder} is one; build in another "
            f"place than {runner.pmd}, or leave {' and '.join(PLUGIN)} out (--only)."
        )


class Runner:
    def __init__(self, args, tmp):
        self.args, self.tmp, self.serial = args, tmp, 0
        # Round robin, so that DPDK's control threads still get a turn beside a poller.
        self.prefix = ["chrt", "-r", "50"] if args.realtime else []
        self.compare = os.path.join(args.build, "ccnic-compare")
        self.pmd = os.path.join(args.build, "librte_net_ccnic.so")
        self.huge = int(args.huge)
        self.huge_mount = pathlib.Path(tmp) / "huge"

    def program(self, name):
        return os.path.join(self.args.programs, name)

    def path(self, name):
        self.serial += 1
        return os.path.join(self.tmp, f"{name}{self.serial}")

    def eal(self, cpus, *more, prefix=None):
        self.serial += 1
        # One file: virtio-user passes at most eight descriptors.
        memory = [f"--huge-dir={self.huge_mount}", "--single-file-segments"] if self.huge else ["--no-huge"]
        prefix = prefix or f"cmp{os.getpid()}_{self.serial}"
        return [
            *memory,
            "-m",
            "256",
            "--no-pci",
            "--no-telemetry",
            "--log-level=error",
            f"--file-prefix={prefix}",
            "--lcores",
            cpus,
            *more,
            "--",
        ]

    def start(self, argv):
        return subprocess.Popen(self.prefix + argv, stdout=subprocess.DEVNULL, start_new_session=True)

    @contextlib.contextmanager
    def beside(self, argv, ready=lambda: None):
        """Runs the other process while the block runs."""
        other = self.start(argv)
        try:
            ready()
            yield
        finally:
            os.killpg(other.pid, signal.SIGKILL)
            other.wait()

    def measure(self, argv, size):
        windows = ",".join(map(str, self.args.windows))
        argv = [*argv, f"size={size}", f"window={windows}", f"ms={self.args.ms}"]
        out = subprocess.run(self.prefix + argv, capture_output=True, text=True, timeout=120)
        for left in self.huge_mount.glob("*map_*"):
            left.unlink()
        rows = [line.split(",") for line in out.stdout.splitlines() if line.count(",") == 10]
        if out.returncode != 0 or len(rows) != len(self.args.windows):
            print(out.stdout + out.stderr, file=sys.stderr)
            raise Refusal(f"{' '.join(argv)} failed with code {out.returncode}; its output stands above.")
        return rows

    def ping_pong(self):
        out = subprocess.run(
            self.prefix + [self.program("ccnic-bench"), "--reps", "1", "probe"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        return next(
            float(r["value"])
            for r in csv.DictReader(out.splitlines())
            if r["experiment"] == "pingpong" and r["variant"] == "one_line"
        )

    # Contenders: each returns the rows of one run. `peer` names the NIC of the other process.

    def native(self, size, *more, peer="nic-cpu=1"):
        return self.measure(
            [self.compare, *self.eal("0@0,1@1"), "contender=native", peer, f"huge={self.huge}", *more], size
        )

    def native_unopt(self, size, peer="nic-cpu=1"):
        return self.native(size, "unopt=1", peer=peer)

    def net_ccnic(self, size, pool=PLACED, peer="nic-cpu=1"):
        device = f"net_ccnic0,{peer},huge={self.huge}"
        return self.measure(
            [self.compare, *self.eal("0@0,1@1", *pool, "-d", self.pmd, "--vdev", device), "contender=ethdev"], size
        )

    def net_ccnic_copy(self, size, peer="nic-cpu=1"):
        return self.net_ccnic(size, [], peer)

    def with_nic(self, run):
        def served(size):
            socket = self.path("nic")

            def listening():
                deadline = time.monotonic() + 5
                while not os.path.exists(socket) and time.monotonic() < deadline:
                    time.sleep(0.01)

            with self.beside([self.program("ccnic-nic"), "--socket", socket, "--cpu", "1", "--hosts", "1"], listening):
                return run(size, peer=f"socket={socket}")

        return served

    def rte_ring(self, size):
        return self.measure([self.compare, *self.eal("0@0,1@1"), "contender=rte_ring"], size)

    def rte_ring_process(self, size):
        prefix = f"cmp{os.getpid()}_ring{self.serial}"
        # Lcore 1: the two processes share the mempools' caches, one an lcore.
        far = [
            self.compare,
            *self.eal("1@1", "--proc-type=secondary", prefix=prefix),
            "contender=rte_ring",
            "role=echo",
        ]
        # A secondary process finds nothing to join until the primary is up, which waits for it.
        again = ["bash", "-c", 'for i in {1..20}; do sleep 0.3; "$@" 2>/dev/null & wait $!; done', "far", *far]
        with self.beside(again):
            return self.measure(
                [self.compare, *self.eal("0@0", "--proc-type=primary", prefix=prefix), "contender=rte_ring", "far=1"],
                size,
            )

    def memif(self, size):
        where = f"id=0,socket={self.path('memif')},socket-abstract=no"
        return self.measure(
            [
                self.compare,
                *self.eal(
                    "0@0,1@1", "--vdev", f"net_memif0,role=server,{where}", "--vdev", f"net_memif1,role=client,{where}"
                ),
                "contender=echo",
            ],
            size,
        )

    def echo_process(self, size, far, near):
        """An ethdev in this process, and the one it is connected to in another."""
        with self.beside(
            [self.compare, *self.eal("0@1", "--vdev", far), "contender=echo", "role=echo", "ms=1"],
            lambda: time.sleep(1),
        ):
            return self.measure([self.compare, *self.eal("0@0", "--vdev", near), "contender=echo"], size)

    def memif_process(self, size):
        where = f"id=0,socket={self.path('memif')},socket-abstract=no"
        return self.echo_process(size, f"net_memif0,role=server,{where}", f"net_memif0,role=client,{where}")

    def vhost_process(self, size):
        socket = self.path("vhost")
        return self.echo_process(
            size,
            f"net_vhost0,iface={socket},queues=1",
            f"net_virtio_user0,path={socket},queues=1,queue_size=1024,in_order=1",
        )


def contenders(r):
    threads = {
        "native": r.native,
        "native_unopt": r.native_unopt,
        "net_ccnic": r.net_ccnic,
        "net_ccnic_copy": r.net_ccnic_copy,
        "rte_ring": r.rte_ring,
        "memif": r.memif,
    }
    processes = {
        "native": r.with_nic(r.native),
        "native_unopt": r.with_nic(r.native_unopt),
        "net_ccnic": r.with_nic(r.net_ccnic),
        "net_ccnic_copy": r.with_nic(r.net_ccnic_copy),
        "memif": r.memif_process,
        "vhost_virtio_user": r.vhost_process,
    }
    if r.huge:
        processes["rte_ring"] = r.rte_ring_process
    return {"threads": threads, "processes": processes}


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

    print(
        "| place | mode | size B | window | contender | runs | Mpps | x memif | p50 ns | x memif | min ns | x memif |",
        file=sys.stderr,
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|", file=sys.stderr)
    for key in sorted(groups, key=lambda k: (k[0], k[1], int(k[2]), int(k[3]), k[4])):
        group, base = groups[key], groups.get((*key[:4], "memif"))
        cells = []
        for column, digits in (("mpps", 2), ("lat_p50_ns", 0), ("lat_min_ns", 0)):
            value = median(group, column)
            cells += [f"{value:.{digits}f}", f"{value / median(base, column):.2f}" if base else "-"]
        print(f"| {' | '.join(map(str, key))} | {len(group)} | {' | '.join(cells)} |", file=sys.stderr)


def main():
    args = arguments()
    out = csv.DictWriter(sys.stdout, COLUMNS)
    rows = []
    with contextlib.ExitStack() as stack:
        r = Runner(args, stack.enter_context(tempfile.TemporaryDirectory(prefix="ccnic-compare-")))
        runs = [
            (mode, name, run)
            for mode, of in contenders(r).items()
            for name, run in of.items()
            if mode in args.modes and (not args.only or name in args.only)
        ]
        check(r, {name for _, name, _ in runs})
        if args.huge:
            stack.enter_context(huge_pages(r.huge_mount))
        out.writeheader()
        for rep in range(args.reps):
            for size in args.sizes:
                for mode, name, run in runs:
                    before = r.ping_pong()
                    lines = run(size)
                    after = r.ping_pong()
                    for line in lines:
                        row = dict(
                            zip(
                                COLUMNS,
                                [
                                    "2M" if args.huge else "4K",
                                    mode,
                                    name,
                                    place(before, after),
                                    f"{max(before, after):.1f}",
                                    line[2],
                                    line[3],
                                    rep,
                                    *line[5:],
                                ],
                            )
                        )
                        rows.append(row)
                        out.writerow(row)
                        sys.stdout.flush()
    table(rows)


if __name__ == "__main__":
    try:
        main()
    except Refusal as e:
        print(f"compare.py: {e}", file=sys.stderr)
        sys.exit(2)
