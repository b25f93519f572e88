"""Captures of one's own: they drive every application that serves packets, and what is skipped is said, with the reason."""

import hashlib
import itertools
import json
import os
import shutil
import struct
import time
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


def ip(payload, protocol=17, fragment=0, dscp=0):
    """An Ethernet frame around an IPv4 packet (RFC 791, RFC 2474)."""
    length, addresses = 20 + len(payload), (b"\x0a\0\0\2", b"\x0a\0\0\1")
    header = struct.pack(">BBHHHBBH4s4s", 0x45, dscp << 2, length, 1, fragment, 64, protocol, 0, *addresses)
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
    assert [h.replayed for h in held(result.data)] == [REQUESTS]
    assert result["offered_mrps"] == pytest.approx(2.0, rel=0.02)
    bits = result["net_gbps"] * 1e3 / result["throughput_mrps"]
    assert bits == pytest.approx(8 * REQUEST_BYTES / REQUESTS, rel=0.01)


@pytest.mark.parametrize(("own", "lines"), [(0, 15 / 4), (8, 15), (10, 0)])
def test_packets_of_a_capture_keep_their_class_where_the_tenant_has_none(tmp_path, own, lines):
    """A quarter of the frames of 1 KiB, 16 lines, is of class 1, whose payload goes to DRAM; the first line is the header."""
    payload = struct.pack(">HHHH", 5000, 9, 990, 0) + b"x" * 982
    frames = [ip(payload, dscp=8 if i % 4 == 0 else 0) for i in range(400)]
    placement = {
        "policy": "table",
        "ways": 2,
        "table": {"payload": "llc", "payload_class1": "dram"},
        "idio": {"class1_dscp": [8]},
    }
    base = scenario(APPS["touchdrop"], write(tmp_path / "classes.pcap", frames))
    result = hn.run(base.with_({"placement": placement, "tenant.0.dscp": own}))
    assert result["acc_nic_rx_wr"] == pytest.approx(lines, rel=0.01)


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


def test_parts_of_one_capture_keep_their_distance_and_repeat_together(tmp_path):
    """Packets to port 53 come each 100 us, and those to port 80 always 50 us later, in two passes of 20 pairs: a mean gap of
    1950 / 39 = 50 us later the file begins again."""
    pairs = [udp(b"x" * 20, port=port, source=1000 + i) for i in range(20) for port in (53, 80)]
    file = write_at(tmp_path / "two.pcap", [(0, 50 * i, frame) for i, frame in enumerate(pairs)])
    traffic = {"arrivals": "pcap", "rate": None, "pcap": {"file": str(file), "port": 53}}
    tenants = [
        {"name": name, "cores": 1, "app": {"kind": "l3fwd", "rules": 64}, "traffic": {"pcap": {"port": port}}}
        for name, port in [("dns", 53), ("web", 80)]
    ]
    back = tmp_path / "back.pcap"
    own = scenario({"kind": "l3fwd", "rules": 64}, file).with_({"tenant": tenants, "traffic": traffic})
    hn.run(own.with_({"run.requests": 80, "run.warmup_requests": 0}), pcap=back)
    data, at, times = back.read_bytes(), 24, []
    nano = struct.unpack_from("<I", data)[0] == 0xA1B23C4D
    while at < len(data):
        seconds, rest, kept, _ = struct.unpack_from("<IIII", data, at)
        times.append(seconds * 1e6 + rest / (1e3 if nano else 1))
        at += 16 + kept
    gaps = [b - a for a, b in itertools.pairwise(times)]
    assert len(gaps) == 79
    assert gaps == pytest.approx([50.0] * 79, abs=1.0)


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


def test_frames_that_offloads_have_joined_are_named_as_such(tmp_path):
    """42 bytes of headers and 20,000 of payload are more than a descriptor's buffer of 16 KiB may hold."""
    file = write_at(tmp_path / "gro.pcap", [(0, 0, udp(b"x")), (1, 0, udp(b"x" * 20_000))])
    with pytest.raises(
        hn.SpecError,
        match=r'gro.pcap": the capture .* a message of 20042 bytes, and a receive buffer has 16384 at most; .*ethtool',
    ):
        hn.run(forwarder(file, requests=2))


def test_a_capture_without_two_times_is_named(tmp_path):
    file = write_at(tmp_path / "once.pcap", [(5, 0, udp(b"x"))] * 2)
    with pytest.raises(hn.HostnetError, match=r'once.pcap" has no two packets at different times; give'):
        hn.run(forwarder(file, requests=2))
    file.write_bytes(file.read_bytes()[:-1])
    why = r"different times before its damage \(capture .*once.pcap is truncated: .* packet 2, .*\); give"
    with pytest.raises(hn.HostnetError, match=why):
        hn.run(forwarder(file, requests=2).with_({"traffic.pcap.lenient": True}))


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
        [h] = held(hn.run(memcached(tmp_path, MIXED)).data)
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
    assert ["t", "skipped", "TCP", 2] in stored["tables"]["capture"]["rows"]
    cli("report", tmp_path / "out", check=0)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<h2>Captures</h2>" in page and "3 fragments of IP datagrams" in page
    swept = cli("sweep", file, "--vary", "seed=1,2", check=0)
    assert swept.stdout.count("packets replayed") == 1 and swept.stderr.count("warning") == 1


def test_captures_of_several_tenants_are_told_with_their_names_in_whichever_order(cli, tmp_path):
    """Of 30 packets to the port 10 are skipped, beside 5 to another one; of the whole capture none is, until its last packet is cut."""
    files = {"mixed": write(tmp_path / "mixed.pcap", MIXED), "whole": write(tmp_path / "whole.pcap", [GET] * 9)}
    own = {
        name: {
            "name": name,
            "cores": 1,
            "app": {"kind": "memcached"},
            "traffic": {"arrivals": "pcap", "rate": "1 Mrps"},
        }
        for name in ("mixed", "whole", "again")
    }
    for name, tenant in own.items():
        tenant["traffic"]["pcap"] = {"file": str(files.get(name, files["mixed"]))}
    base = memcached(tmp_path, [GET] * 2).with_(
        {"traffic.pcap": None, "traffic.arrivals": "none", "traffic.rate": None}
    )
    for order in ("mixed", "whole", "again"), ("whole", "again", "mixed"):
        several = base.with_(tenant=[own[name] for name in order])
        with pytest.warns(CaptureWarning, match=f"^{tmp_path}/mixed.pcap: 29 % of its 35 packets are not") as raised:
            result = hn.run(several)
        assert [(h.file, h.packets) for h in held(result.data)] == [
            (str(own[name]["traffic"]["pcap"]["file"]), 9 if name == "whole" else 35) for name in order
        ]
        assert len(raised) == 1, "a capture that two tenants replay is told once"
    files["whole"].write_bytes(files["whole"].read_bytes()[:-1])
    file = tmp_path / "several.toml"
    file.write_text(several.to_toml())
    assert "packet 9" in cli("run", file, check=2).stderr
    assert f"{files['whole']}: is truncated or damaged behind packet 8" in cli("run", file, "--lenient", check=0).stderr


def test_a_few_skipped_packets_are_no_warning(tmp_path):
    few = [GET] * 200 + [tcp()] * 5
    assert 5 / 205 < MOST_SKIPPED
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [h.skipped for h in held(hn.run(memcached(tmp_path, few)).data)] == [{"TCP": 5}]


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


def write_at(path, packets):
    """A pcap file of (seconds, microseconds, frame)."""
    records = b"".join(struct.pack("<IIII", s, us, len(f), len(f)) + f for s, us, f in packets)
    path.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1) + records)
    return path


def forwarder(file, **run):
    """One core that forwards frames of a capture at their own times, behind a NIC on PCIe."""
    return hn.Scenario(
        {
            "name": "forward",
            "platform": "gem5",
            "placement": {"policy": "ddio", "ways": 2},
            "tenant": [{"name": "fwd", "cores": 1, "stack": "poll_mode", "app": {"kind": "l2fwd"}}],
            "peripheral": [{"kind": "ethernet"}],
            "traffic": {"arrivals": "pcap", "pcap": {"file": str(file)}},
            "run": {"load": "fixed", "warmup_requests": 0, **run},
        }
    )


def stamps(path):
    """Seconds of the packets of a pcap file with nanoseconds."""
    data, at, found = path.read_bytes(), 24, []
    while at < len(data):
        s, ns, kept, _ = struct.unpack_from("<IIII", data, at)
        found.append(s + ns / 1e9)
        at += 16 + kept
    return found


def test_packets_days_apart_come_back_days_apart(tmp_path):
    """2^56 ps are 20.0 hours: times beyond them keep their order and their distance."""
    days = [0, 1, 2, 11]
    file = write_at(tmp_path / "days.pcap", [(86400 * d, 0, udp(b"x" * 100)) for d in days])
    back = tmp_path / "back.pcap"
    hn.run(forwarder(file, requests=len(days)), pcap=back)
    assert stamps(back) == pytest.approx([86400 * d for d in days], abs=1e-3)


def test_a_capture_may_be_replayed_for_longer_than_20_hours(tmp_path):
    """Two seconds from packet to packet, 60,000 times: 33 hours, in which nothing queues."""
    file = write_at(tmp_path / "slow.pcap", [(2 * i, 0, udp(b"x" * 18)) for i in range(10)])
    result = hn.run(forwarder(file, requests=60_000))
    assert result["throughput_mrps"] == pytest.approx(0.5e-6, rel=1e-3)
    assert result["lat_mean_us"] < 1 and result["loss_rate"] == 0


def test_what_lasts_longer_than_a_run_may_is_one_sentence(tmp_path):
    frame = udp(b"x" * 18)
    far = write_at(tmp_path / "far.pcap", [(0, 0, frame), (86400 * 13, 0, frame)])
    with pytest.raises(hn.HostnetError, match=r"far.pcap is too long: packet 2 lies 13 days .* 12 days are the most"):
        hn.run(forwarder(far, requests=2))
    # At a rate of its own the same capture is short.
    assert hn.run(forwarder(far, requests=2).with_({"traffic.rate": "1 kpps"}))["drops"] == 0
    slow = write_at(tmp_path / "slow.pcap", [(3600 * i, 0, frame) for i in range(10)])
    with pytest.raises(hn.HostnetError, match=r"run.requests = 1000 at the times of .*slow.pcap.* are 999 hours; 288"):
        hn.run(forwarder(slow, requests=1000))


@pytest.mark.parametrize("policy", ["ddio", "idio"])
def test_silence_costs_no_wall_time(tmp_path, policy):
    """A burst leaves writes in the memory controller's queue, then nothing happens for an hour: 460 million refresh intervals,
    and 3.6 billion intervals of IDIO. The events are those of the packets, as many as without the hour."""
    frames = [(0, 2 * i, udp(b"x" * 958)) for i in range(600)]

    def events(gap):
        file = write_at(tmp_path / f"{gap}.pcap", [*frames, *((gap, us, f) for _, us, f in frames)])
        sc = forwarder(file, requests=1200).with_({"placement.policy": policy})
        if policy == "idio":
            sc = sc.with_({"placement.mode": "dynamic"})
        began = time.monotonic()
        return hn.run(sc)["sim_events"], time.monotonic() - began

    (short, _), (long, took) = events(1), events(3600)
    assert long < 1.05 * short and took < 20


def test_a_capture_is_never_written_over_an_input(cli, tmp_path):
    file = write_at(tmp_path / "in.pcap", [(0, 10 * i, udp(b"x" * 18)) for i in range(10)])
    own = tmp_path / "own.toml"
    own.write_text(forwarder(file, requests=2).to_toml())
    (tmp_path / "symbolic.pcap").symlink_to(file)
    os.link(file, tmp_path / "hard.pcap")
    before = {p: p.read_bytes() for p in (file, own)}
    for out in ("in.pcap", "symbolic.pcap", "hard.pcap", "own.toml"):
        done = cli("run", own, "--pcap", tmp_path / out, check=2)
        assert f"{out}: is an input of this command" in done.stderr and done.stderr.count("\n") == 1
        assert {p: p.read_bytes() for p in before} == before
    cli("run", own, "--pcap", tmp_path / "out.pcap", check=0)
    cli("run", own, "--pcap", tmp_path / "out.pcap", check=0)  # an output of before is no input


def test_frames_cut_before_their_ports_are_a_warning(tmp_path):
    frame = udp(b"x" * 18, port=2000)
    file = write(tmp_path / "mixed.pcap", [(frame, 34)] * 5 + [frame] * 5)
    with pytest.warns(CaptureWarning, match="50 % of its 10 packets are not replayed: 5 cut short by the snap length"):
        [h] = held(hn.run(scenario(APPS["touchdrop"], file, port=2000)).data)
    assert (h.replayed, h.skipped) == (5, {"cut short by the snap length": 5})


def test_a_capture_faster_than_its_link_is_a_warning_with_the_figures(tmp_path):
    """Frames of 1000 bytes, 24 more on the wire, come every microsecond to a link of 4 Gb/s, on which each takes 2.048 us: frame n
    waits n x 1.048 us, so that all but the first come more than 1 us late, the last by 104.8 us."""
    file = write_at(tmp_path / "fast.pcap", [(0, i, udp(b"x" * 958)) for i in range(101)])
    own = forwarder(file, requests=101).with_({"peripheral.0.link": "4 Gbps"})
    says = r"is faster than the link .*: 99 % of its 101 replayed packets come later .* up to 104.8 us: the link carries 4 Gbps"
    with pytest.warns(CaptureWarning, match=says):
        result = hn.run(own)
    late = {"packets later than captured, by up to 104.8 us: the link carries 4 Gbps": 100}
    assert [h.notes for h in held(result.data)] == [late]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [h.notes for h in held(hn.run(own.with_({"peripheral.0.link": "10 Gbps"})).data)] == [{}]


FORWARDER = """
name = "forwarder"
platform = "gem5"
placement = { policy = "ddio", ways = "all" }
tenant = [{ name = "forwarder", cores = 1, stack = "poll_mode", app = { kind = "testpmd", mode = "macswap" } }]
peripheral = [{ kind = "ethernet" }]
traffic = { arrivals = "pcap", rate = "1 Gbps", pcap = { file = "captures/memcached-udp.pcap", timing = "poisson" } }
run = { load = "fixed", requests = 20, warmup_requests = 5 }
"""


def test_captures_and_recordings_that_come_with_hostnet_are_found_from_an_empty_directory(cli):
    (cli.cwd / "own.toml").write_text(FORWARDER)
    named = json.loads(cli("run", "own.toml", "--json", check=0).stdout)["spec"]["traffic"]["pcap"]["file"]
    assert os.path.samefile(named, REAL)
    recorded = 'tenant.0.app={kind="recorded", file="recordings/testpmd-macswap.rec"}'
    cli("run", "own.toml", "--set", recorded, check=0)
    # A file of one's own comes first.
    (cli.cwd / "captures").mkdir()
    shutil.copy(REAL, cli.cwd / "captures")
    named = json.loads(cli("run", "own.toml", "--json", check=0).stdout)["spec"]["traffic"]["pcap"]["file"]
    assert os.path.samefile(named, cli.cwd / "captures/memcached-udp.pcap")


def test_a_saved_result_replays_its_own_capture_from_any_directory(tmp_path, monkeypatch):
    """Another directory holds another capture of the same name, of twice as many packets."""
    for place, packets in (("here", 2), ("there", 4)):
        (tmp_path / place).mkdir()
        write(tmp_path / place / "x.pcap", [GET] * packets)
    text = scenario(APPS["touchdrop"], "x.pcap").with_({"run.requests": 8, "run.warmup_requests": 4}).to_toml()
    (tmp_path / "here" / "own.toml").write_text(text)
    monkeypatch.chdir(tmp_path / "here")
    first = hn.run("own.toml")
    assert [h.replayed for h in held(first.data)] == [2]
    first.save("o/result-0000.json")
    saved = tmp_path / "here" / "o" / "result-0000.json"
    digest = hashlib.sha256((tmp_path / "here" / "x.pcap").read_bytes()).hexdigest()
    assert json.loads(saved.read_text())["files"] == {"traffic.pcap": digest}
    monkeypatch.chdir(tmp_path / "there")
    again = hn.run(str(saved))
    assert [h.replayed for h in held(again.data)] == [2] and again.metrics == first.metrics
    # Other contents are refused, and another file that is named is not.
    os.replace(tmp_path / "there" / "x.pcap", tmp_path / "here" / "x.pcap")
    with pytest.raises(
        hn.HostnetError, match=r'traffic.pcap.file = ".*/here/x.pcap" is not the file that this result replayed'
    ):
        hn.run(str(saved))
    with pytest.raises(hn.HostnetError, match="is not the file that this result replayed"):
        hn.sweep(str(saved), {"seed": [1, 2]})
    write(tmp_path / "mine.pcap", [GET] * 3)
    other = hn.Scenario.load(str(saved)).with_({"traffic.pcap.file": str(tmp_path / "mine.pcap")})
    assert [h.replayed for h in held(hn.run(other).data)] == [3]
    (tmp_path / "here" / "x.pcap").unlink()
    with pytest.raises(hn.HostnetError, match=r'traffic.pcap.file = ".*/here/x.pcap" is not a file'):
        hn.run(str(saved))


@pytest.mark.parametrize("tags", [b"", b"\x81\0\0\5", b"\x88\xa8\0\1\x81\0\0\5"], ids=["untagged", "802.1Q", "802.1ad"])
@pytest.mark.parametrize("version", [4, 6])
def test_replies_to_memcached_have_its_header_with_the_id_of_the_request(tmp_path, version, tags):
    """Headers of IPv6 and UDP leave 2 of 64 bytes; memcached's own has 8 (doc/protocol.txt, "UDP protocol")."""

    def asked(number):
        message = struct.pack(">HHHH", number, 0, 1, 0) + b"get k\r\n"
        datagram = struct.pack(">HHHH", 5000, 11211, 8 + len(message), 0) + message
        if version == 4:
            frame = ip(datagram)
            return frame[:12] + tags + frame[12:]
        header = struct.pack(">IHBB", 6 << 28, len(datagram), 17, 64) + bytes(15) + b"\1" + bytes(15) + b"\2"
        return b"\2\0\0\0\0\1\2\0\0\0\0\2" + tags + b"\x86\xdd" + header + datagram

    file = write(tmp_path / "in.pcap", [asked(1000 + i) for i in range(4)])
    hn.run(
        {
            "name": "mc",
            "platform": "gem5",
            "placement": {"policy": "ddio", "ways": 2},
            "tenant": [{"name": "mc", "cores": 1, "stack": "poll_mode", "app": {"kind": "memcached"}}],
            "peripheral": [{"kind": "ethernet"}],
            "traffic": {"arrivals": "pcap", "pcap": {"file": str(file), "timing": "original"}},
            "run": {"load": "fixed", "requests": 4, "warmup_requests": 0},
        },
        pcap=tmp_path / "out.pcap",
    )
    data, at, ids = (tmp_path / "out.pcap").read_bytes(), 24, []
    while at < len(data):
        kept, length = struct.unpack_from("<II", data, at + 8)
        payload = at + 16 + 14 + len(tags) + (20 if version == 4 else 40) + 8
        assert kept == length and struct.unpack_from(">H", data, payload - 4)[0] == 8 + at + 16 + kept - payload
        ids.append(struct.unpack_from(">HHHH", data, payload))
        at += 16 + kept
    assert ids == [(1000 + i, 0, 1, 0) for i in range(4)]
