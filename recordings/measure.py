#!/usr/bin/env python3
"""CPU time per packet of the recorded programs on this machine, as rows of ``python/hostnet/data/programs.csv``.

Programs and clients are those of ``record.sh``. The time is that which the kernel accounts to the program's thread, so
that other programs on the machine disturb it little. Each figure is the median of ``--runs`` intervals; the last column
is the range of these intervals. It needs the packages that ``record.sh`` names.
"""

import argparse
import contextlib
import csv
import datetime
import os
import platform
import re
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
CLIENTS = HERE.parent / "captures/memcached_client.py"
TICK = os.sysconf("SC_CLK_TCK")


def cpu(pid, thread=None):
    """Seconds of CPU time in the program and in the kernel, of a thread or of the process."""
    if thread is None:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) / TICK, int(fields[12]) / TICK
    for task in Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().strip() == thread:
            fields = (task / "stat").read_text().rpartition(")")[2].split()
            return int(fields[11]) / TICK, int(fields[12]) / TICK
    raise SystemExit(f"process {pid} has no thread {thread}")


@contextlib.contextmanager
def running(command, **options):
    """A program that ends with the block."""
    p = subprocess.Popen(command, **options)
    try:
        yield p
    finally:
        p.terminate()
        try:
            p.wait(timeout=10)
        except subprocess.TimeoutExpired:
            p.kill()


def intervals(runs, seconds, state):
    """Pairs of user and kernel nanoseconds per packet. ``state`` gives user and kernel seconds, and packets."""
    out, before = [], state()
    for _ in range(runs):
        time.sleep(seconds)
        after = state()
        packets = after[2] - before[2]
        out.append(tuple(1e9 * (after[i] - before[i]) / packets for i in (0, 1)))
        before = after
    return out


def testpmd(mode, runs, seconds):
    command = ["dpdk-testpmd", "-l", "0,1", "--no-huge", "-m", "512", "--no-pci", "--vdev=net_null0", "--"]
    command += ["--no-mlockall", "--total-num-mbufs=4096", f"--forward-mode={mode}", "--no-flush-rx", "-i"]
    buffered = ["stdbuf", "-oL", *command]
    with running(buffered, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as p:

        def state():
            p.stdin.write("show port stats 0\n")
            p.stdin.flush()
            for line in p.stdout:
                if found := re.search(r"TX-packets: (\d+)", line):
                    return *cpu(p.pid, "rte-worker-1"), int(found[1])
            raise SystemExit("testpmd ended")

        p.stdin.write("start\n")
        time.sleep(3)
        state()
        return command, intervals(runs, seconds, state)


def lines(port, ask, end):
    """What a server answers to a question in lines."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as s:
        s.sendall(ask)
        text = b""
        while end not in text:
            text += s.recv(1 << 16)
    return text.decode()


def memcached(runs, seconds):
    port = 21211
    command = ["memcached", "-u", "nobody", "-l", "127.0.0.1", "-p", f"{port}", "-U", f"{port}", "-t", "1", "-m", "64"]
    at = ["--server", "127.0.0.1", "--port", str(port)]
    with running(command):
        time.sleep(1)
        subprocess.run([sys.executable, CLIENTS, "preload", *at], check=True)
        client = [sys.executable, CLIENTS, "run", *at, "--rate", "2000", "--burst", "0", "--requests", "65536"]
        with running(client, stdout=subprocess.DEVNULL):

            def state():
                text = lines(port, b"stats\r\n", b"END\r\n")
                get = dict(re.findall(r"STAT (\w+) ([\d.]+)\r", text))
                requests = int(get["cmd_get"]) + int(get["cmd_set"])
                return float(get["rusage_user"]), float(get["rusage_system"]), requests

            time.sleep(1)
            return command, intervals(runs, seconds, state)


def redis(runs, seconds):
    port = 21379
    command = [
        "redis-server",
        "--bind",
        "127.0.0.1",
        "--port",
        f"{port}",
        "--save",
        "",
        "--hz",
        "1",
        "--dynamic-hz",
        "no",
    ]
    client = ["redis-benchmark", "-p", f"{port}", "-r", "10000", "-q"]
    with running(command, stdout=subprocess.DEVNULL):
        time.sleep(1)
        subprocess.run([*client, "-t", "set", "-n", "50000", "-d", "100"], stdout=subprocess.DEVNULL, check=True)
        with running([*client, "-t", "get", "-n", "100000000", "-c", "1"], stdout=subprocess.DEVNULL):

            def state():
                text = lines(port, b"INFO all\r\nQUIT\r\n", b"+OK\r\n")
                get = dict(re.findall(r"(\w+):([\d.]+)\r", text))
                user, kernel = (float(get[f"used_cpu_{k}_main_thread"]) for k in ("user", "sys"))
                return user, kernel, int(get["total_commands_processed"])

            time.sleep(1)
            return command, intervals(runs, seconds, state)


def version(program):
    asked = ["dpkg-query", "-W", "-f", "${Version}", {"dpdk-testpmd": "dpdk"}.get(program, program)]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="intervals of each program")
    parser.add_argument("--seconds", type=float, default=3, help="length of an interval")
    asked = parser.parse_args()
    of = (asked.runs, asked.seconds)
    measured = {
        "testpmd-macswap": lambda: testpmd("macswap", *of),
        "testpmd-5tswap": lambda: testpmd("5tswap", *of),
        "memcached": lambda: memcached(*of),
        "redis": lambda: redis(*of),
    }
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    machine = f"{model[1] if model else platform.machine()}, Linux {platform.release()}"
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow("program,version,date,machine,command,user_ns,kernel_ns,user_ns_low,user_ns_high".split(","))
    os.chdir(tempfile.mkdtemp())
    for name, measure in measured.items():
        command, found = measure()
        user, kernel = ([f[i] for f in found] for i in (0, 1))
        numbers = [f"{v:.4g}" for v in (median(user), median(kernel), min(user), max(user))]
        out.writerow([name, version(command[0]), datetime.date.today(), machine, " ".join(command), *numbers])
        sys.stdout.flush()


if __name__ == "__main__":
    main()
