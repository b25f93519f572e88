"""``hostnet record``: real programs, recorded from the command line.

``chase.c`` is known to the instruction; its values are counted from its assembly. ``crates/record/tests`` checks each
access of it.
"""

import json
import math
import os
import platform
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections import Counter
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parents[2] / "crates/record/tests/programs"

pytestmark = [
    pytest.mark.skipif(
        sys.platform != "linux" or platform.machine() != "x86_64", reason="programs are recorded on Linux and x86-64"
    ),
    pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler (cc)"),
]


@pytest.fixture(scope="module")
def chase(tmp_path_factory):
    out = tmp_path_factory.mktemp("programs") / "chase"
    subprocess.run(["cc", "-O1", "-o", out, PROGRAMS / "chase.c"], check=True)
    command = [
        "record",
        "-o",
        str(out.with_suffix(".rec")),
        "--enter",
        "handle",
        "--packets",
        "1",
        "--",
        str(out),
        "10",
    ]
    main = "import sys; from hostnet.cli import main; main()"
    tried = subprocess.run([sys.executable, "-c", main, *command], capture_output=True, text=True)
    if "be traced" in tried.stderr:
        pytest.skip(f"this machine lets no process trace another: {tried.stderr.strip()}")
    return out


def sentence(done):
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1 and "Traceback" not in done.stderr
    return done.stderr


HANDLE = ("--enter", "handle", "--frame", "rdi:rsi")


def test_a_program_is_recorded_and_shown(cli, chase, tmp_path):
    out = tmp_path / "chase.rec"
    done = cli("record", "-o", out, *HANDLE, "--packets", 20, "--program-version", "7", "--", chase, "1000", check=0)
    assert done.stdout.splitlines()[-1].startswith(f"{out}: 20 packets, ")
    assert out.stat().st_size < 1000
    assert [p.name for p in tmp_path.iterdir() if "rec" in p.name] == ["chase.rec"]

    data = json.loads(cli("record", "show", out, "--json", check=0).stdout)
    assert data["about"]["command"] == [str(chase), "1000"] and data["about"]["version"] == "7"
    assert len(data["packets"]) == 20 and {p["received"] for p in data["packets"]} == {1514}

    from hostnet import recorder

    s = recorder.summary(data)
    assert s["counts"]["instructions"] == {"median": 33, "mean": 33}
    assert s["counts"]["branches"]["mean"] == 6 and s["counts"]["taken"]["mean"] == 5
    assert {k: v["mean"] for k, v in s["kinds"].items() if v["mean"]} == {
        "load": 13,
        "store": 3,
        "atomic": 1,
        "prefetch": 1,
        "stream_store": 1,
    }
    # One load of the table, five links, the atomic operation and the last load have addresses from loads.
    assert s["dependence"]["dependent_loads"] == pytest.approx(8 / 14)
    # The list's head, five links, and what is behind the last one.
    assert s["dependence"]["longest_chain"]["mean"] == 7
    # Bytes 0 to 31, and the prefetched line of byte 64.
    frame = s["regions"]["frame"]
    assert (frame["loads"], frame["stores"], frame["lines"], frame["distinct"]) == (3, 0, 2, 2)

    svg = tmp_path / "chase.svg"
    shown = cli("record", "show", out, "--svg", svg, "--packet", 3, check=0).stdout
    assert max(map(len, shown.splitlines()[3:])) <= 80
    assert "received frame or message" in shown and "33.0" in shown
    # Two words and the prefetched line of the frame; the list's nodes are the links of the chain.
    drawn = {line[:17].strip(): line[18:] for line in shown.splitlines()[-10:]}
    assert sorted(drawn["frame"].replace("·", "")) == ["l", "l", "l", "p"]
    assert "packet 3 of 20: 1,514 bytes, 33 instructions, 19 accesses" in shown
    assert "longest chain of loads, 7: global page" in shown and 5 <= drawn["chain"].count("^") <= 7
    text = svg.read_text(encoding="utf-8")
    assert "longest chain of loads, 7" in text and "instruction of the packet" in text
    before = out.read_bytes()
    assert "is an input" in sentence(cli("record", "show", out, "--svg", out))
    assert out.read_bytes() == before
    assert "--packet 21 is not within 1 to 20" in sentence(cli("record", "show", out, "--packet", 21))


def test_recordings_are_repeatable(cli, chase, tmp_path):
    packets = []
    for name in ("a.rec", "b.rec"):
        cli("record", "-o", tmp_path / name, *HANDLE, "--packets", 50, "--", chase, "1000", check=0)
        data = json.loads(cli("record", "show", tmp_path / name, "--json", check=0).stdout)
        packets.append((data["packets"], data["pages"]))
    assert packets[0] == packets[1]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_program_goes_on_when_its_recorder_is_killed(chase, tmp_path, how):
    program = subprocess.Popen([chase, "1000000", "200"], stdout=subprocess.DEVNULL)
    command = [sys.executable, "-c", "from hostnet.cli import main; main()", "record", "-o", "live.rec", *HANDLE]
    command += ["--packets", "100000"]
    try:
        recorder = subprocess.Popen(
            [*command, "--pid", str(program.pid)], cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE
        )
        deadline = time.monotonic() + 30
        while tracer(program.pid) == 0 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert tracer(program.pid) != 0
        time.sleep(0.5)
        recorder.send_signal(how)
        recorder.communicate(timeout=30)
        while tracer(program.pid) != 0 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert tracer(program.pid) == 0
        before = switches(program.pid)
        time.sleep(0.5)
        assert program.poll() is None, "the program lives"
        assert switches(program.pid) > before + 10, "and works"
        assert not list(tmp_path.glob("*.part"))
    finally:
        program.kill()
        program.wait()


def status(pid, key):
    text = Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith(key)))


def tracer(pid):
    return status(pid, "TracerPid:")


def switches(pid):
    """How often the program has slept by itself."""
    return status(pid, "voluntary_ctxt_switches:")


def test_another_users_program_is_refused_and_goes_on(cli, chase, tmp_path):
    """Root starts the program as nobody; anybody else finds one of root's."""
    if os.geteuid() != 0:
        said = sentence(cli("record", "-o", tmp_path / "x.rec", *HANDLE, "--pid", 1))
        assert "process 1: belongs to user 0; run hostnet record as that user" in said
        return
    nobody = 65534
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        own = shutil.copy(chase, folder)
        program = subprocess.Popen([own, "1000000", "200"], stdout=subprocess.DEVNULL, user=nobody)
        try:
            said = sentence(cli("record", "-o", tmp_path / "x.rec", *HANDLE, "--pid", program.pid))
            assert f"process {program.pid}: belongs to user {nobody}; run hostnet record as that user" in said
            assert tracer(program.pid) == 0 and not (tmp_path / "x.rec").exists()
            before = switches(program.pid)
            time.sleep(0.5)
            assert program.poll() is None and switches(program.pid) > before + 10, "it lives, and works"
        finally:
            program.kill()
            program.wait()


def test_mistakes_are_sentences(cli, chase, tmp_path):
    out = tmp_path / "x.rec"
    assert "no program is given" in sentence(cli("record", "-o", out))
    assert "where to?" in sentence(cli("record", "--", chase))
    assert "not both" in sentence(cli("record", "-o", out, "--pid", 1, "--", chase))
    assert "give one of them" in sentence(cli("record", "-o", out, "--sockets", "--enter", "handle", "--", chase))
    assert "give --enter as well" in sentence(cli("record", "-o", out, "--leave", "handle", "--", chase))
    assert "such as rdi:rsi" in sentence(cli("record", "-o", out, "--enter", "a", "--frame", "rdi", "--", chase))
    assert "register, such as rdi" in sentence(
        cli("record", "-o", out, "--enter", "handle", "--frame", "edi:4", "--", chase)
    )
    assert "give one of them" in sentence(cli("record", "-o", out, "--socket", "udp", "--enter", "handle", "--", chase))
    assert "as in udp:11211" in sentence(cli("record", "-o", out, "--socket", "sctp:9", "--", chase))
    for option, value, valid in (
        ("--longest", 0, "within 1 to 18446744073709551615"),
        ("--longest", 10**20, "within 1 to 18446744073709551615"),
        ("--skip", -1, "within 0 to 4294967295"),
        ("--skip", 5_000_000_000, "within 0 to 4294967295"),
        ("--seconds", 0, "above 0 and at most 86400"),
        ("--seconds", "nan", "above 0 and at most 86400"),
    ):
        said = sentence(cli("record", "-o", out, option, value, "--", chase))
        assert f"{option} {value} is not {valid}." in said
    for pid in (-3, 0, 10**11):
        assert f"--pid {pid} is no number of a process" in sentence(cli("record", "-o", out, "--pid", pid))
    longest = sentence(cli("record", "-o", out, *HANDLE, "--longest", 20, "--", chase, "100"))
    assert "no packet's work ended within 20 instructions" in longest or "ended before" in longest
    assert "--svg is for" in sentence(cli("record", "-o", out, "--svg", "x.svg", "--", chase))
    assert "--packets 0 is not within" in sentence(cli("record", "-o", out, "--packets", 0, "--", chase))
    assert "/no/such: does not exist" in sentence(cli("record", "-o", out, "--", "/no/such"))
    assert "has no rte_eth_fp_ops of DPDK" in sentence(cli("record", "-o", out, "--", "true"))
    assert not out.exists()
    assert "takes one recording" in sentence(cli("record", "show"))
    assert "cannot be read" in sentence(cli("record", "show", out))

    out.write_text("a text")
    assert "is not a recording of hostnet record" in sentence(cli("record", "show", out))
    assert "was not written by this command" in sentence(cli("record", "-o", out, *HANDLE, "--", chase, "100"))
    assert out.read_text() == "a text"


def written(file, body):
    """A recording with this body, by docs/use/recording-format.md."""
    packer = zlib.compressobj(wbits=-15)
    packed = packer.compress(body) + packer.flush()
    file.write_bytes(b"hnrec\0\r\n" + struct.pack("<4I", 1, zlib.crc32(packed), len(packed), len(body)) + packed)
    return file


def test_a_recording_of_another_program_is_refused_with_what_is_wrong(cli, tmp_path):
    """A boundary of 3, of which the format has 0 to 2; and a reply of 100,000 bytes, which no receive buffer holds."""
    file = written(tmp_path / "own.rec", bytes(5) + b"\3" + bytes(12))
    assert sentence(cli("record", "show", file)) == f"hostnet: {file}: is damaged: boundary = 3 is not within 0 to 2.\n"
    # A thread "t", a sequence without steps whose rest is an instruction, and a packet of 64 bytes.
    columns = b"\0" + b"\1\1" + b"\5" + bytes(5) + bytes(4)
    sent = 2 * 100_000 + 2
    leb = bytes([sent & 127 | 128, sent >> 7 & 127 | 128, sent >> 14])
    written(file, bytes(7) + b"\1\1t" + b"\0" + b"\1\0" + columns + b"\1" + b"\0\0\x40\0" + leb)
    app = f'{{kind="recorded", file="{file}"}}'
    said = sentence(cli("run", "recorded-testpmd", "--set", f"tenant.0.app={app}"))
    assert "has a message of 100000 bytes" in said and said.endswith("; record the program with smaller messages.\n")


def test_a_recording_without_packets_is_a_sentence(cli, tmp_path):
    """Five texts, the boundary, no arguments, threads, pages or sequences, seven blocks and no packets: 18 zeros."""
    file = written(tmp_path / "none.rec", bytes(18))
    assert f"{file}: holds no packet to show" in sentence(cli("record", "show", file))
    assert json.loads(cli("record", "show", file, "--json", check=0).stdout)["packets"] == []


def test_a_cut_recording_is_a_sentence(cli, chase, tmp_path):
    out = tmp_path / "chase.rec"
    cli("record", "-o", out, *HANDLE, "--packets", 5, "--", chase, "1000", check=0)
    whole = out.read_bytes()
    out.write_bytes(whole[:-5])
    assert sentence(cli("record", "show", out)).endswith("is cut: it ends before the recording does.\n")


@pytest.mark.skipif(shutil.which("dpdk-testpmd") is None, reason="DPDK is not installed (dpdk-testpmd)")
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="testpmd needs two cores")
def test_testpmd_is_recorded(cli, tmp_path):
    """macswap reads and writes the Ethernet header, and the first two lines of the mbuf."""
    out = tmp_path / "pmd.rec"
    eal = ["-l", "0,1", "--no-huge", "-m", "256", "--no-pci", "--vdev=net_null0", f"--file-prefix=hn{os.getpid()}"]
    app = ["--no-mlockall", "--total-num-mbufs=2048", "--forward-mode=macswap", "--auto-start", "--no-flush-rx"]
    app += ["--stats-period=9"]
    cli("record", "-o", out, "--packets", 64, "--", "dpdk-testpmd", *eal, "--", *app, check=0)
    from hostnet import recorder

    data = recorder.read(out)
    assert data["about"]["boundary"] == "dpdk" and data["about"]["program"] == "dpdk-testpmd"
    s = recorder.summary(data)
    assert s["outcomes"] == {"forwarded": 64} and s["received_bytes"] == 64 and s["bursts"] == 2
    assert s["regions"]["frame"]["lines"] == 1 and s["regions"]["frame"]["stores"] == 1
    assert s["regions"]["metadata"]["lines"] == 2
    assert 10 < s["counts"]["instructions"]["mean"] < 40


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A server with a hash table and two threads, and the client that asks it."""
    out = tmp_path_factory.mktemp("programs") / "table"
    subprocess.run(["cc", "-O1", "-pthread", "-o", out, PROGRAMS / "table.c"], check=True)
    return out


@pytest.fixture
def asking():
    """Asks the server at a port from 16 sockets, which the kernel spreads over its threads, until the test ends."""
    ended = threading.Event()

    def ask(port):
        draw = random.Random(5)
        sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(16)]
        for s in sockets:
            s.settimeout(1)
            s.connect(("127.0.0.1", port))
        while not ended.is_set():
            s = draw.choice(sockets)
            try:
                s.send(struct.pack("<Q", draw.getrandbits(64)))
                s.recv(8)
            except OSError:  # it does not listen yet
                time.sleep(0.02)

    threads = []

    def start(port):
        threads.append(threading.Thread(target=ask, args=(port,)))
        threads[-1].start()

    yield start
    ended.set()
    for t in threads:
        t.join()


def misses_of_lru(packets, lines):
    """Misses a packet of an LRU cache of that many lines, where packets are drawn at random from those recorded.

    Che's approximation (Che, Tung and Wang, IEEE JSAC 20(7), 2002): a line stays for T packets, T such that the lines
    seen within T packets fill the cache; a packet misses a line that none of the T packets before it touched.
    """
    count = Counter(line for touched in packets for line in touched)
    share = [n / len(packets) for n in count.values()]
    if lines >= len(share):
        return 0.0
    low, high = 0.0, 1e6
    for _ in range(100):
        stay = (low + high) / 2
        low, high = (stay, high) if sum(1 - math.exp(-q * stay) for q in share) < lines else (low, stay)
    return sum(q * math.exp(-q * low) for q in share)


@pytest.mark.long
def test_a_table_of_twice_the_size_misses_where_it_outgrows_the_caches(cli, chase, table, asking, tmp_path):
    """A server that nobody prepared: two threads, a table of pointers, and a chain of two nodes for each key.

    Packets are drawn at random. The LLC's miss ratio lies between that of an LRU cache as large as the LLC and both L2
    together and that of the ways which the NIC leaves to the cores (10 of 12).
    """
    import hostnet as hn
    from hostnet import recorder

    port = 20_000 + os.getpid() % 10_000
    asking(port)
    touched, files = {}, {}
    for entries in (2048, 4096, 8192):
        files[entries] = tmp_path / f"{entries}.rec"
        options = ["--socket", f"udp:{port}", "--packets", 250, "--skip", 20, "--seconds", 240]
        cli("record", "-o", files[entries], *options, "--", table, port, entries, check=0)
        data = recorder.read(files[entries])
        assert len(data["threads"]) == 2 and {p["received"] for p in data["packets"]} == {8}
        s = recorder.summary(data)
        assert s["outcomes"] == {"replied": 250}
        # The pointer depends on the message, the node on the pointer, and the value on the node.
        assert s["dependence"]["longest_chain"]["median"] >= 3
        assert s["kinds"]["load"]["mean"] >= 3 * 32
        touched[entries] = [
            {
                (*a.line[:2], n)
                for a in recorder.accesses(p, data["pages"])
                for n in range(a.line[2], a.last_line[2] + 1)
            }
            for p in data["packets"]
        ]
    # A node is a line, and eight pointers are one. Three accesses for each of 8,000 keys leave few of 2,048 nodes out.
    assert 2048 * 9 / 8 <= len(set().union(*touched[2048])) < 2400

    def misses(entries, llc):
        host = hn.Scenario.load("recorded-testpmd").with_(
            {
                "platform": "sim24",
                "peripheral": None,
                "tenant.0.stack": None,
                "tenant.0.cores": 2,
                "tenant.0.app": {"kind": "recorded", "file": str(files[entries]), "order": "random"},
                "traffic.rate": "0.4 Mrps",
                "rings": {"rx_buffers": 16, "buffer_size": "64 B"},
                "override.caches.l1d": {"size": "16 KiB", "ways": 4},
                "override.caches.l2": {"size": "32 KiB", "ways": 8},
                "override.caches.llc": {"size": f"{llc} KiB", "ways": 12, "slices": 8, "indexing": "hashed_slices"},
            }
        )
        return hn.run(host).metrics["t0_llc_miss_ratio"]

    def expected(entries, lines):
        return misses_of_lru(touched[entries], lines) / misses_of_lru(touched[entries], 32 * 16)

    llc, l2 = 192 * 16, 32 * 16
    assert misses(2048, 192) < 0.05
    for entries in (4096, 8192):
        assert expected(entries, llc + 2 * l2) < misses(entries, 192) < expected(entries, llc * 10 / 12)
    assert expected(8192, llc + 2 * l2) > 0.3
    assert misses(4096, 384) < 0.05, "the knee moves with the LLC"


def built(name, folder):
    subprocess.run(["cc", "-O1", "-pthread", "-o", folder / name, PROGRAMS / f"{name}.c"], check=True)
    return folder / name


def replayed(file, changes):
    """A recording on sim24 with small private caches, so that tables lie in the LLC."""
    import hostnet as hn

    host = hn.Scenario.load("recorded-testpmd").with_(
        {
            "platform": "sim24",
            "peripheral": None,
            "tenant.0.stack": None,
            "tenant.0.app": {"kind": "recorded", "file": str(file), "order": "random"},
            "rings": {"rx_buffers": 16, "buffer_size": "64 B"},
            "override.caches.l1d": {"size": "16 KiB", "ways": 4},
            "override.caches.l2": {"size": "32 KiB", "ways": 8},
            **changes,
        }
    )
    return hn.run(host).metrics


#: Look-ups of sim24's L1, L2 and LLC, and the crossbar to the LLC and back, at 3.2 GHz.
LLC_NS = (4 + 14 + 8 + 35 + 8) / 3.2


def test_a_parser_waits_for_each_node_of_its_chain(cli, chase, tmp_path):
    """A packet of a chain of 16 nodes takes longer than one of 8 by the time of eight loads from the LLC, of which each
    waits for the one before, and of eight rounds of a loop of three instructions."""
    from hostnet import recorder

    program, took = built("parser", tmp_path), {}
    for depth in (8, 16):
        out = tmp_path / f"{depth}.rec"
        cli("record", "-o", out, *HANDLE, "--packets", 500, "--", program, 1_000_000, depth, check=0)
        s = recorder.summary(recorder.read(out))
        # The frame's destination, the bucket, and the nodes.
        assert s["dependence"]["longest_chain"] == {"median": depth + 2, "mean": depth + 2}
        assert s["regions"]["frame"]["lines"] == 1 and s["regions"]["frame"]["stores"] == 0
        took[depth] = replayed(out, {"traffic.rate": "0.4 Mrps"})["lat_mean_us"] * 1e3
    assert 0.9 * LLC_NS < (took[16] - took[8]) / 8 < LLC_NS + 3


def test_threads_that_share_a_line_take_it_from_each_other(cli, chase, tmp_path):
    """With memory of their own four cores handle four times as many packets as one. A counter that they share comes from
    another core each time, past the look-ups of an LLC's load."""
    out = tmp_path / "threads.rec"
    program = built("threads", tmp_path)
    cli("record", "-o", out, "--enter", "handle", "--packets", 200, "--", program, check=0)

    def core_ns(cores, memory):
        app = {"kind": "recorded", "file": str(out), "memory": memory}
        changes = {"tenant.0.cores": cores, "tenant.0.app": app, "traffic.rate": "200 Mrps"}
        return 1e3 * cores / replayed(out, changes)["throughput_mrps"]

    alone = core_ns(1, "own")
    assert core_ns(4, "own") == pytest.approx(alone, rel=0.01)
    assert core_ns(4, "shared") > alone + LLC_NS


def test_a_table_times_itself(tmp_path):
    """The program's own time, of which ``recordings/table.py`` makes rows: 32 rounds, none shorter than its loads."""
    times = subprocess.run([built("table", tmp_path), "0", "256", "50"], capture_output=True, text=True, check=True)
    rounds = [float(line) for line in times.stdout.split()]
    # 96 loads a request, at most three a cycle of 6 GHz.
    assert len(rounds) == 32 and min(rounds) > 96 / 3 / 6
