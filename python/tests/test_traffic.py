"""The load generator from the command line and from Python: damaged captures, what came back, what was lost and why."""

import json
import struct
import warnings
from pathlib import Path

import pytest

import hostnet as hn
from hostnet.capture import DAMAGED, CaptureWarning, held
from hostnet.drops import losses

FRAME = (b"\2\0\0\0\0\1\2\0\0\0\0\2\x08\0" + bytes.fromhex("4500002e00010000401100000a0000020a000001") +
         struct.pack(">HHHH", 5000, 9, 26, 0) + bytes(18))  # fmt: skip


def capture(path, packets, cut=0):
    """A pcap file of equal frames a microsecond apart, without its last bytes."""
    records = b"".join(struct.pack("<IIII", 0, i, len(FRAME), len(FRAME)) + FRAME for i in range(packets))
    data = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1) + records
    path.write_bytes(data[: len(data) - cut])
    return path


def scenario(tmp_path, app="l3fwd", **changes):
    apps = {"l3fwd": {"kind": "l3fwd", "rules": 64, "zero_copy": True}, "touchdrop": {"kind": "touchdrop"}}
    own = hn.Scenario({
        "name": "own", "platform": "sim24", "placement": {"policy": "ddio", "ways": 2},
        "rings": {"rx_buffers": 64, "buffer_size": "2 KiB"},
        "tenant": [{"name": "t", "cores": 2, "app": apps[app]}],
        "traffic": {"arrivals": "fixed", "rate": "1 Gbps", "sizes": "imix"},
        "run": {"load": "fixed", "requests": 1000, "warmup_requests": 200},
    }).with_(changes)  # fmt: skip
    file = tmp_path / "own.toml"
    file.write_text(own.to_toml())
    return own, file


def replay(tmp_path, cut):
    file = capture(tmp_path / "in.pcap", 8, cut)
    changes = {"traffic": {"arrivals": "pcap", "rate": "1 Mpps", "pcap": {"file": str(file)}}}
    return scenario(tmp_path, **changes)


def test_a_damaged_capture_is_refused_with_its_packet_unless_the_reader_is_lenient(cli, tmp_path):
    own, file = replay(tmp_path, cut=10)
    with pytest.raises(hn.SpecError, match="is truncated: it ends inside the record of packet 8"):
        hn.run(own)
    with pytest.warns(CaptureWarning, match="is truncated or damaged behind packet 7"):
        result = hn.run(own, lenient=True)
    [h] = held(result.data)
    assert (h.packets, h.replayed, h.notes[DAMAGED]) == (7, 7, 7)
    refused = cli("run", file, check=2)
    assert refused.stderr.count("\n") == 1 and "packet 8" in refused.stderr
    done = cli("run", file, "--lenient", check=0)
    assert "7 packets before the damage that ends the file" in " ".join(done.stdout.split())
    assert "behind packet 7" in done.stderr
    assert "behind packet 7" in cli("sweep", file, "--vary", "seed=1,2", "--lenient", check=0).stderr


def test_a_whole_capture_is_the_same_to_a_lenient_reader(tmp_path):
    own, _ = replay(tmp_path, cut=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert hn.run(own).metrics == hn.run(own, lenient=True).metrics


def packets(path):
    """Times in ns and frames of a pcap file, by the format's description."""
    data = path.read_bytes()
    assert struct.unpack("<IHH", data[:8]) == (0xA1B23C4D, 2, 4) and struct.unpack("<I", data[20:24]) == (1,)
    at, found = 24, []
    while at < len(data):
        second, ns, kept, length = struct.unpack("<IIII", data[at : at + 16])
        assert kept == length
        found.append((second * 10**9 + ns, data[at + 16 : at + 16 + kept]))
        at += 16 + kept
    return found


def test_what_came_back_is_written_even_when_the_result_is_known(cli, tmp_path):
    own, file = scenario(tmp_path)
    known = hn.run(own)
    out = tmp_path / "made" / "out.pcap"
    result = hn.run(own, pcap=out)
    assert result.metrics == known.metrics and not result.cached
    found = packets(out)
    assert len(found) == 1000 and {len(f) for _, f in found} == {60, 590, 1514}
    assert all(a[0] <= b[0] for a, b in zip(found, found[1:]))
    assert found[0][1][:12] == b"\2\0\0\0\0\2\2\0\0\0\0\1"
    cli("run", file, "--pcap", "again.pcap", check=0)
    assert (cli.cwd / "again.pcap").read_bytes() == out.read_bytes()


@pytest.mark.parametrize(
    "changes, says",
    [
        ({"run.load": "peak_loss"}, 'run.load = "fixed"'),
        (
            {"tenant.0.app": {"kind": "xmem", "array": "1 MiB"}, "traffic": None, "run": {"load": "fixed"}},
            "tenant that serves packets",
        ),
    ],
)
def test_a_capture_that_cannot_be_made_is_a_sentence_and_no_file(cli, tmp_path, changes, says):
    _, file = scenario(tmp_path, **changes)
    done = cli("run", file, "--pcap", "out.pcap", check=2)
    assert says in done.stderr and done.stderr.count("\n") == 1
    assert [p.name for p in cli.cwd.iterdir() if "pcap" in p.name] == []


def test_lost_packets_are_told_with_place_cause_and_time(cli, tmp_path):
    own, file = scenario(
        tmp_path, "touchdrop", **{"traffic.rate": "200 Mpps", "traffic.sizes": None, "traffic.packet": "64 B"}
    )
    result = hn.run(own)
    (loss,) = losses(result.data)
    assert loss.count == result["drops"] > 100
    assert (loss.where, loss.why) == ("NIC: descriptor ring", "Software has given no buffer back in time.")
    assert 0 <= loss.first_us <= loss.last_us <= result.data["measure_us"]
    table = {what: n for what, n in result.data["tables"]["packets"]["rows"]}
    came = table["in the host at the start"] + table["offered"]
    assert came == table["served"] + table["lost"] + table["in the host at the end"]
    printed = " ".join(cli("run", file, "--out", "out", check=0).stdout.split())
    assert f"lost {loss.count:,} (NIC: descriptor ring, from" in printed and loss.why in printed
    cli("report", "out", check=0)
    page = (cli.cwd / "out" / "report.html").read_text()
    assert "Lost packets" in page and loss.why in page


def test_a_run_without_losses_has_no_word_of_them(cli, tiny_file):
    assert "lost" not in cli("run", tiny_file, check=0).stdout


def test_round_trips_are_drawn_where_packets_have_a_way_to_go(tmp_path):
    from hostnet.report import write_report

    near, _ = scenario(tmp_path)
    far = near.with_({"traffic.link": {"rate": "100 Gbps", "propagation": "5 us"}})
    results = {name: hn.run(s).data for name, s in (("near", near), ("far", far))}
    assert results["far"]["metrics"]["rtt_mean_us"] > results["near"]["metrics"]["rtt_mean_us"] + 10
    for name, drawn in (("near", False), ("far", True)):
        page = write_report([results[name]], tmp_path / f"{name}.html").read_text()
        assert ("Round trips at the load generator" in page) == drawn


def test_the_bandwidth_test_lists_every_rate_that_it_tried(tmp_path):
    own, _ = scenario(tmp_path, **{"run.load": "peak_loss", "run.step": "1 Gbps", "traffic.rate": "30 Gbps"})
    table = hn.run(own).data["tables"]["search"]
    names = [c["name"] for c in table["columns"]]
    rates = [dict(zip(names, row)) for row in table["rows"]]
    assert {"rate_mrps", "offered_gbps", "achieved_gbps", "drop_rate", "loss_rate", "rtt_mean_us", "ok"} <= set(names)
    assert any(r["ok"] for r in rates) and any(not r["ok"] for r in rates)
    assert json.dumps(rates)


def test_the_page_s_two_hosts_carry_the_mix_that_is_asked_for(tmp_path):
    """docs/use/traffic.md: 5 Gbps of 64, 700 and 1518 B as 3 : 2 : 1 are packets of 518.3 B on the mean."""
    page = (Path(__file__).parents[2] / "docs" / "use" / "traffic.md").read_text(encoding="utf-8")
    text = next(block for block in page.split("```toml\n")[1:] if 'name = "two"' in block).split("```")[0]
    (tmp_path / "two.toml").write_text(text, encoding="utf-8")
    out = hn.run(hn.Scenario.load(tmp_path / "two.toml"))
    assert out["throughput_mrps"] == pytest.approx(5000 / 8 / ((3 * 64 + 2 * 700 + 1518) / 6), rel=0.05)
    assert out["drops"] == 0 and out["client_utilisation"] > 0
