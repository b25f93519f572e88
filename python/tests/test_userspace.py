"""The commands of docs/use/userspace.md, run as a reader would, and the figures that the page shows."""

import contextlib
import io
import re
import shlex
import shutil
import struct
from pathlib import Path

import pytest
from shownpage import Page, near, prints

import hostnet as hn
from hostnet.specs import parse_value

PAGE = Page("use/userspace.md")
CAPTURES = Path(__file__).parents[2] / "captures"


def metrics(output: str) -> dict[str, float]:
    """The metrics that `hostnet run` has printed."""
    lines = [line.split() for line in output.splitlines() if line.startswith("    ")]
    return {line[0]: float(line[1].replace(",", "")) for line in lines if len(line) > 1 and line[1] != "-"}


def as_tcpdump_and_tshark(path: Path) -> str:
    """What both print of a capture in nanoseconds of UDP over IPv4: a line a packet, and frames with their bytes."""
    data = path.read_bytes()
    assert struct.unpack_from("<I", data)[0] == 0xA1B23C4D
    said, at, bytes_ = [], 24, 0
    while at < len(data):
        seconds, ns, kept, length = struct.unpack_from("<IIII", data, at)
        frame = data[at + 16 : at + 16 + kept]
        ends = [
            (".".join(map(str, frame[26 + 4 * i : 30 + 4 * i])), *struct.unpack_from(">H", frame, 34 + 2 * i))
            for i in (0, 1)
        ]
        (udp,) = struct.unpack_from(">H", frame, 38)
        (source, target) = (f"{address}.{port}" for address, port in ends)
        said.append(f"00:00:{seconds:02}.{ns // 1000:06} IP {source} > {target}: UDP, length {udp - 8}")
        at, bytes_ = at + 16 + kept, bytes_ + length
    return "\n".join([*said, f"| 0.000 <> 0.002 | {len(said)} | {bytes_} |"])


@pytest.fixture
def ran(cli):
    """What each command of the page prints, in a directory like the checkout."""
    (scenario,) = PAGE.blocks("toml")
    (cli.cwd / "forwarder.toml").write_text(scenario, encoding="utf-8")
    (cli.cwd / "captures").mkdir()
    shutil.copy(CAPTURES / "memcached-udp.pcap", cli.cwd / "captures")

    def output(line: str) -> str:
        program, *args = shlex.split(line)
        if program != "hostnet":
            assert "out.pcap" in args, line
            return as_tcpdump_and_tshark(cli.cwd / "out.pcap")
        return cli(*args, check=0).stdout

    return [([output(c) for c in commands], lines) for commands, lines in PAGE.shown()]


@pytest.mark.long
def test_every_command_of_the_page_runs_and_prints_what_is_shown(ran):
    assert (len(ran), sum(len(outputs) for outputs, _ in ran)) == (13, 19)
    assert max(map(len, "".join(PAGE.blocks("sh") + PAGE.blocks("text") + PAGE.blocks("python")).splitlines())) <= 80
    for outputs, lines in ran:
        for line in lines:
            assert any(prints(output, line) for output in outputs), f"{line}\n\n{outputs}"

    tried = hn.run(hn.Scenario.load("testpmd").with_({"run.requests": 20_000})).table("search").sort("offered_gbps")
    columns = ("offered_gbps", "achieved_gbps", "loss_rate", "rtt_mean_us")
    compare(
        PAGE.table("| offered, Gb/s | carried, Gb/s | lost, or queued up | round trip, us |"),
        tried.select(columns).rows(),
    )

    *_, kernel, two_hosts = (outputs for outputs, lines in ran if not lines)
    rows = [
        [m.get(name) for name in ("throughput_mrps", "lat_p50_us", "lat_p99_us", "cpu_utilisation")]
        for m in map(metrics, kernel)
    ]
    rows[0][0] = metrics(kernel[0])["net_gbs"]
    compare(
        [r[1:] for r in PAGE.table("| | carried | median in the host, us | 99th percentile, us | core busy |")], rows
    )

    columns = ("offered_mrps", "client_utilisation", "client_late", "cpu_utilisation")
    shown = PAGE.table(
        "| client's cores | offered, Mpps | `client_utilisation` | `client_late` | core of the server busy |"
    )
    compare([r[1:] for r in shown], [[m[name] for name in columns] for m in map(metrics, two_hosts)])


def compare(shown, rows):
    assert len(shown) == len(rows)
    for cells, row in zip(shown, rows, strict=True):
        assert all(near(cell, value) for cell, value in zip(cells, row, strict=True) if cell), (cells, row)


def test_the_sweeps_of_the_page_give_its_table():
    (program,) = PAGE.blocks("python")
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(program, {})
    found = said.getvalue().translate(dict.fromkeys(map(ord, "[],"), " "))
    rows = PAGE.table("| LLC | 1518 B, Gb/s | core | 64 B, Mpps |")
    assert prints(found, " ".join([cells[1] for cells in rows] + [cells[3] for cells in rows])), found


def test_the_comparison_sees_a_figure_that_is_off():
    output = "    drop_rate               0.1026   fraction\nlost 7,010 (NIC: receive buffer, from 1,448.8 to 9,218.0 µs): The core"
    assert prints(output, "drop_rate 0.103") and prints(output, "lost 7,010 (NIC:")
    assert (
        not prints(output, "drop_rate 0.113")
        and not prints(output, "lost 7,310 (NIC:")
        and not prints(output, "lost 7,010 (client:")
    )


def test_the_page_for_users_of_gem5_gives_touchfwd_the_rate_of_its_compiled_loop():
    """Five integer operations in two units are 2.5 cycles a byte (table of the released programs); driver and misses add to it."""
    (app,) = re.findall(r"`app = (\{ kind = \"touchfwd\".*?\})`", Page("use/from-gem5-dpdk.md").text)
    result = hn.run(hn.Scenario.load("testpmd").with_({"tenant.0.app": parse_value(app)}), quiet=True)
    assert result.spec["platform"]["core"]["clock"] == "3 GHz" and result.spec["traffic"]["packet"] == "1518 B"
    cycles = 3e3 * result["service_mean_us"] / 1514  # the checksum stays in the NIC
    assert 2.5 < cycles < 2.75
    assert result["net_gbps"] == pytest.approx(9, abs=0.5)
