#!/usr/bin/env python3
"""CPU time per packet of the recorded programs on this machine, as rows of ``python/hostnet/data/programs.csv``.

Programs and clients are those of ``record.sh``; servers answer one request after the other, and l3fwd forwards the
packets of a file over ``net_pcap``. The time is that which the kernel accounts to the program's thread, so that other
programs on the machine disturb it little. Each figure is the median of ``--runs`` intervals; the last two columns
are the range of these intervals. testpmd's mode ``io`` over the
same driver tells the driver's part. It needs the
packages that ``record.sh`` names.
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
import threading
import time
from http.client import HTTPConnection
from json import loads
from pathlib import Path
from statistics import median
from types import SimpleNamespace

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "captures")]
import memcached_client  # noqa: E402
import traffic  # noqa: E402

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


EAL = ["--no-huge", "-m", "1024", "--no-pci"]
# Devices by name: no packet is copied; or packets of a file are copied to mbufs again and again, and freed.
DEVICES = {"net_null": "net_null0", "net_pcap": "net_pcap0,rx_pcap=in.pcap,infinite_rx=1"}


def testpmd(mode, driver, runs, seconds):
    command = ["dpdk-testpmd", "-l", "0,1", *EAL, f"--vdev={DEVICES[driver]}", "--"]
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


def l3fwd(lookup, runs, seconds):
    """l3fwd asks for offloads that ``net_pcap`` lacks; ``offloads.c`` leaves them out."""
    flags = subprocess.run(["pkg-config", "--cflags", "libdpdk"], capture_output=True, text=True, check=True).stdout
    subprocess.run(
        ["cc", "-O2", "-shared", "-fPIC", *flags.split(), "-o", "offloads.so", HERE / "offloads.c"], check=True
    )
    prefix = f"hostnet-{os.getpid()}"
    command = ["dpdk-l3fwd", "-l", "0", *EAL, f"--vdev={DEVICES['net_pcap']}", "--", "-p", "1", "-P"]
    command += ["--config=(0,0,0)", "--parse-ptype", f"--lookup={lookup}"]
    command += [f"--rule_ipv4={lookup}4.cfg", f"--rule_ipv6={lookup}6.cfg"]
    own = [command[0], f"--file-prefix={prefix}", *command[1:]]
    preloaded = {**os.environ, "LD_PRELOAD": str(Path("offloads.so").absolute())}
    with running(own, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=preloaded) as p:
        answers = Path(f"/var/run/dpdk/{prefix}/dpdk_telemetry.v2")
        while not answers.exists():
            if p.poll() is not None:
                raise SystemExit(f"dpdk-l3fwd ended with exit code {p.returncode}")
            time.sleep(0.1)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asked:
            asked.connect(str(answers))
            asked.recv(4096)

            time.sleep(3)

            def state():
                asked.send(b"/ethdev/stats,0")
                return *cpu(p.pid), loads(asked.recv(16384))["/ethdev/stats"]["opackets"]

            return command, intervals(runs, seconds, state)


@contextlib.contextmanager
def asking(ask):
    """A client that goes on with the block; ``ask`` gets a function to call with each answer. Gives the number of answers
    so far."""
    count, ended = [0], threading.Event()

    def answered():
        count[0] += 1
        if ended.is_set():
            raise SystemExit

    client = threading.Thread(target=ask, args=(answered,))
    client.start()
    try:
        yield lambda: count[0]
    finally:
        ended.set()
        client.join()


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
    like = {"keys": 5000, "seed": 1, "zipf": 0.99, "get": 0.9, "multi": 0.03, "ports": 1, "burst": 0}
    like |= {"burst_every": 0.1, "rate": 1.0, "requests": 65536}
    plan = SimpleNamespace(server="127.0.0.1", port=port, **like)

    def ask(answered):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.connect(("127.0.0.1", port))
            s.settimeout(1)
            while True:
                for _, _, request in datagrams:
                    s.send(request)
                    s.recv(2048)
                    answered()

    datagrams = memcached_client.plan(plan)
    with running(command) as p:
        time.sleep(1)
        memcached_client.preload(plan)
        with asking(ask) as answers:
            time.sleep(1)
            return command, intervals(runs, seconds, lambda: (*cpu(p.pid), answers()))


def nginx(runs, seconds):
    port = 28080
    os.chmod(".", 0o755)  # nginx reads files as another user
    traffic.write_files()
    command = ["nginx", "-p", ".", "-c", "nginx.conf"]

    def ask(answered):
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        while True:
            for n in range(traffic.FILES):
                connection.request("GET", f"/{n}.txt")
                connection.getresponse().read()
                answered()

    with running(command) as p:
        time.sleep(1)
        worker = Path(f"/proc/{p.pid}/task/{p.pid}/children").read_text().split()[0]
        with asking(ask) as answers:
            time.sleep(1)
            return command, intervals(runs, seconds, lambda: (*cpu(worker), answers()))


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
    package = {"dpdk-testpmd": "dpdk", "dpdk-l3fwd": "dpdk", "nginx": "nginx-common"}.get(program, program)
    asked = ["dpkg-query", "-W", "-f", "${Version}", package]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout


def main():
    of_testpmd = {f"testpmd-{mode}": (mode, "net_null") for mode in ("io", "macswap", "5tswap")}
    measured = {
        name: (driver, lambda m=mode, d=driver: testpmd(m, d, *of)) for name, (mode, driver) in of_testpmd.items()
    }
    measured["testpmd-io-pcap"] = ("net_pcap", lambda: testpmd("io", "net_pcap", *of))
    for lookup in ("lpm", "em"):
        measured[f"l3fwd-{lookup}"] = ("net_pcap", lambda way=lookup: l3fwd(way, *of))
    measured["memcached"] = ("", lambda: memcached(*of))
    measured["redis"] = ("", lambda: redis(*of))
    measured["nginx"] = ("", lambda: nginx(*of))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=f"all, or some of {' '.join(measured)}")
    parser.add_argument("--runs", type=int, default=5, help="intervals of each program")
    parser.add_argument("--seconds", type=float, default=3, help="length of an interval")
    asked = parser.parse_args()
    if unknown := set(asked.programs) - set(measured):
        parser.error(f"{', '.join(sorted(unknown))}: choose among {' '.join(measured)}")
    of = (asked.runs, asked.seconds)
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    machine = f"{model[1] if model else platform.machine()}, Linux {platform.release()}"
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow("program,driver,version,date,machine,command,user_ns,kernel_ns,user_ns_low,user_ns_high".split(","))
    os.chdir(tempfile.mkdtemp())
    traffic.write_routes()
    traffic.write_pcap("in.pcap")
    for name in asked.programs or measured:
        driver, measure = measured[name]
        command, found = measure()
        user, kernel = ([f[i] for f in found] for i in (0, 1))
        numbers = [f"{v:.4g}" for v in (median(user), median(kernel), min(user), max(user))]
        row = [name, driver, version(command[0]), datetime.date.today(), machine, " ".join(command), *numbers]
        out.writerow(row)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
