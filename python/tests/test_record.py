"""``hostnet record``: real programs, recorded from the command line.

``chase.c`` is known to the instruction; its values are counted from its assembly. ``crates/record/tests`` checks each
access of it.
"""

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
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

    shown = cli("record", "show", out, check=0).stdout
    assert max(map(len, shown.splitlines()[3:])) <= 80
    assert "received frame or message" in shown and "33.0" in shown


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
