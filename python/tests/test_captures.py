"""Captures of one's own: they drive every application that serves packets, and what is skipped is said, with the reason."""

import json
import struct
import warnings

import pytest

import hostnet as hn
from hostnet.capture import MOST_SKIPPED, CaptureWarning, held
from hostnet.paths import DATA

REAL = DATA / "captures" / "memcached-udp.pcap"
#: What tshark finds in the real one (captures/memcached-udp.counts): requests, and their bytes on the wire.
REQUESTS, REQUEST_BYTES = 6000, 745572

APPS = {
    "l3fwd": {"kind": "l3fwd", "rules": 1024},
    "touchdrop": {"kind": "touchdrop"},
    "mica": {
        "kind": "mica",
        "item_size": "256 B",
        "get_fraction": 0.5,
        "pairs": 20000,
        "buckets": 8192,
        "log_size": "16 MiB",
        "zipf": 0.99,
    },
}


def ip(payload, protocol=17, fragment=0):
    """An Ethernet frame around an IPv4 packet (RFC 791)."""
    header = struct.pack(
        ">BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 1, fragment, 64, protocol, 0, b"\x0a\0\0\2", b"\x0a\0\0\1"
    )
    return b"\2\0\0\0\0\1\2\0\0\0\0\2\x08\0" + header + payload


def udp(payload, port=11211, source=5000):
    return ip(struct.pack(">HHHH", source, port, 8 + len(payload), 0) + payload)


def request(text, source=5000):
    return udp(struct.pack(">HHHH", 1, 0, 1, 0) + text, source=source)


def tcp(port=11211):
    return ip(struct.pack(">HHIIBBHHH", 5000, port, 0, 0, 0x50, 0, 0, 0, 0) + b"x" * 40, 6)


GET = request(b"get k\r\n")
CUT = (request(b"get " + b"k" * 200 + b"\r\n"), 50)
FRAGMENT = ip(b"y" * 100, fragment=0x2000)
BINARY = request(b"\x80\x01" + b"z" * 40)


def write(path, frames):
    """A pcap file of frames, or of (frame, bytes kept of it), a microsecond apart."""
    records = b""
    for i, f in enumerate(frames):
        frame, kept = f if isinstance(f, tuple) else (f, len(f))
        records += struct.pack("<IIII", 0, i, kept, len(frame)) + frame[:kept]
    path.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1) + records)
    return path


def scenario(app, file, **pcap):
    return hn.Scenario(
        {
            "name": "own",
            "platform": "sim24",
            "placement": {"policy": "ddio", "ways": 2},
            "rings": {"rx_buffers": 64, "buffer_size": "2 KiB"},
            "tenant": [{"name": "t", "cores": 4, "app": app}],
            "traffic": {"arrivals": "pcap", "rate": "2 Mrps", "pcap": {"file": str(file), **pcap}},
            "run": {"load": "fixed", "requests": 12000, "warmup_requests": 6000},
        }
    )


@pytest.mark.parametrize("app", APPS)
def test_a_capture_drives_every_application_with_its_sizes_and_times(app):
    """Two passes over the capture: rate and mean size are the capture's own."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what goes to other ports was not asked for
        result = hn.run(scenario(APPS[app], REAL, port=11211))
    assert held(result.data).replayed == REQUESTS
    assert result["offered_mrps"] == pytest.approx(2.0, rel=0.02)
    bits = result["net_gbps"] * 1e3 / result["throughput_mrps"]
    assert bits == pytest.approx(8 * REQUEST_BYTES / REQUESTS, rel=0.01)


def test_the_times_are_those_of_the_capture(tmp_path):
    """Pairs of packets 100 us apart, two at once: with two packets every 100 us, the mean rate is 20 k/s."""
    frames = [GET] * 400
    file = write(tmp_path / "pairs.pcap", frames)
    data = bytearray(file.read_bytes())
    at = 24
    for i in range(400):
        struct.pack_into("<II", data, at, 0, 100 * (i // 2))
        at += 16 + len(GET)
    file.write_bytes(data)
    own = scenario(APPS["touchdrop"], file).with_({"traffic.rate": None, "run.requests": 800, "run.warmup_requests": 0})
    # The last gap is the mean one: 400 packets in 199 * 100 us and one more gap of 199 * 100 / 399 us.
    expected = 400 / (199 * 100 * (1 + 1 / 399))
    assert hn.run(own)["offered_mrps"] == pytest.approx(expected, rel=0.02)


def test_a_flow_goes_to_one_core(tmp_path):
    one = hn.run(scenario(APPS["touchdrop"], write(tmp_path / "one.pcap", [GET] * 50)))
    many = hn.run(
        scenario(
            APPS["touchdrop"], write(tmp_path / "many.pcap", [request(b"get k\r\n", p) for p in range(5000, 5200)])
        )
    )
    assert 0 < one["cores_busy"] <= 1.0
    assert one["lat_p99_us"] >= many["lat_p99_us"], "one core serves all of it"


def test_frames_that_a_buffer_does_not_hold_are_one_sentence(tmp_path):
    file = write(tmp_path / "big.pcap", [udp(b"x" * 3000), udp(b"x")])
    with pytest.raises(
        hn.SpecError, match=r'rings.buffer_size = "2 KiB" does not hold the capture\'s largest message of 3042 bytes'
    ):
        hn.run(scenario(APPS["l3fwd"], file))


@pytest.mark.parametrize(
    "frames, pcap, says",
    [
        ([tcp(80)] * 3, {"port": 53}, "holds no packet to UDP or TCP port 53 among its 3 packets"),
        (
            [b"\2\0\0\0\0\1\2\0\0\0\0\2\x08\6" + b"a" * 28] * 3,
            {},
            "holds no IP packet that can be replayed among its 3 packets",
        ),
    ],
)
def test_a_capture_without_what_is_wanted_is_one_sentence(tmp_path, frames, pcap, says):
    with pytest.raises(hn.SpecError, match=says):
        hn.run(scenario(APPS["l3fwd"], write(tmp_path / "x.pcap", frames), **pcap))


def memcached(tmp_path, frames):
    return scenario({"kind": "memcached"}, write(tmp_path / "own.pcap", frames)).with_(
        {"run.requests": 500, "run.warmup_requests": 100}
    )


MIXED = [GET] * 20 + [CUT] * 4 + [FRAGMENT] * 3 + [tcp()] * 2 + [BINARY] + [udp(b"q", 53)] * 5


def test_what_was_skipped_is_counted_by_reason(tmp_path):
    with pytest.warns(CaptureWarning):
        h = held(hn.run(memcached(tmp_path, MIXED)).data)
    assert (h.packets, h.replayed, h.replies) == (35, 20, 0)
    assert h.skipped == {
        "cut short by the snap length": 4,
        "fragments of IP datagrams": 3,
        "TCP": 2,
        "to another port": 5,
        "not memcached's text protocol": 1,
    }


def test_much_that_is_skipped_is_a_warning_with_the_reasons(cli, tmp_path):
    file = tmp_path / "own.toml"
    file.write_text(memcached(tmp_path, MIXED).to_toml())
    done = cli("run", file, "--out", tmp_path / "out", check=0)
    assert done.stderr.startswith(
        f"hostnet: warning: {tmp_path}/own.pcap: 29 % of its 35 packets are not replayed: 4 cut"
    )
    assert done.stderr.count("\n") == 1
    line = "20 of 35 packets replayed, skipped 15 (5 to another port; 4 cut short by the snap length; 3 fragments of IP datagrams; 2 TCP; 1 not"
    assert line in " ".join(done.stdout.split())
    stored = json.loads(next((tmp_path / "out").glob("result-*.json")).read_text())
    assert ["skipped", "TCP", 2] in stored["tables"]["capture"]["rows"]
    cli("report", tmp_path / "out", check=0)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<h2>Captures</h2>" in page and "3 fragments of IP datagrams" in page
    swept = cli("sweep", file, "--vary", "seed=1,2", check=0)
    assert swept.stdout.count("packets replayed") == 1 and swept.stderr.count("warning") == 1


def test_a_few_skipped_packets_are_no_warning(tmp_path):
    few = [GET] * 200 + [tcp()] * 5
    assert 5 / 205 < MOST_SKIPPED
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert held(hn.run(memcached(tmp_path, few)).data).skipped == {"TCP": 5}


def test_a_run_without_a_capture_has_no_word_of_one(cli, tiny_file):
    assert "capture" not in cli("run", tiny_file, check=0).stdout


def test_idio_takes_a_capture_in_place_of_its_bursts(cli, tmp_path):
    """docs/use/policies.md: a table in braces drops what it had. The timeline says what DRAM moves, as docs/use/cli.md has it for a CSV."""
    frames = [udp(b"x" * 1400, source=5000 + i % 4) for i in range(64)]
    write(cli.cwd / "mine.pcap", frames)
    out = cli(
        "run",
        "idio",
        "--set",
        'traffic={arrivals="pcap",pcap={file="mine.pcap"}}',
        "--set",
        "run.requests=48",
        "--set",
        "run.warmup_requests=16",
        "--set",
        "run.timeline=1 us",
        "--json",
        check=0,
    ).stdout
    data = json.loads(out)
    assert data["spec"]["traffic"]["arrivals"] == "pcap" and data["metrics"]["drops"] == 0
    table = hn.Result(data).table("timeline")
    assert hn.Result(data).units("timeline")["mem_bw_gbs"] == "GB/s"
    lines = table["mem_bw_gbs"] * 1000 / 64
    assert (lines >= 0).all() and ((lines - lines.round()).abs() < 1e-6).all(), "whole lines in each bin of 1 us"
    table.select("t_us", "mem_bw_gbs").write_csv(tmp_path / "dram.csv")
    assert (tmp_path / "dram.csv").read_text().startswith("t_us,mem_bw_gbs\n1.0,")
