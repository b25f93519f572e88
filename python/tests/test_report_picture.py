"""The picture of the host: its parts and flows are the result's, its marks the explanation's, and nothing leaves its box."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import fakeresults
import pytest

import hostnet as hn
from hostnet.drops import LINK_FULL
from hostnet.explain import explanation
from hostnet.explain.explanation import CREDITS_FULL, Domain, Explanation
from hostnet.report.host import Bar, host_of
from hostnet.report.numbers import quantity, short
from hostnet.report.picture import picture
from hostnet.report.svg import cut, width_of, wrapped
from hostnet.report.verdict import judged, verdict_of

DOMAINS = "domain, credits, occupancy_avg, occupancy_max, arrivals_per_us 1/us, latency_ns ns, little_ns ns"


def one(**spec):
    """A result of two tenants, a NIC and an SSD with round numbers."""
    tenants = [
        {
            "name": "a",
            "cores": 2,
            "app": {"kind": "l3fwd"},
            "stack": "poll_mode",
            "nic": "front",
            "node": 0,
            "llc_ways": "4-7",
        },
        {"name": "b", "cores": 1, "app": {"kind": "stream"}, "node": 0, "llc_ways": 4},
    ]
    r = fakeresults.result("ddio")
    r["spec"] = {
        "name": "mix",
        "tenant": tenants,
        "placement": {"policy": "ddio", "ways": 2},
        "peripheral": [{"kind": "ethernet", "name": "front", "link": "100 Gbps", "lanes": 16}, {"kind": "ssd", "count": 4, "op": "p2m_write"}],
        "platform": {
            "name": "p",
            "caches": {"llc": {"ways": 8, "size": "16 MiB", "slices": 16}},
            "memory": {"channels": 2, "standard": "DDR4-3200", "rpq": 10, "wpq": 20},
            "iio": {"count": 1},
            "pcie": {"generation": "gen4"},
        },
        **spec,
    }  # fmt: skip
    r["metrics"] = {
        "net_gbps": 80.0, "channels": 2.0, "mem_bw_gbs": 30.0, "mem_peak_gbs": 40.0, "mem_read_gbs": 10.0, "mem_write_gbs": 20.0,
        "rpq_occ": 4.0, "wpq_occ": 19.0, "pcie_up_util": 0.5, "lfb_rate": 450.0, "prefetch_rate": 300.0, "mlc_wb_mtps": 100.0, "iio_path_util": 0.25,
    }  # fmt: skip
    r["tables"] = {
        "domains": fakeresults.table(DOMAINS, [
            ["core 0 line fill buffers", 10, 4.0, 10, 1.0, 1.0, 1.0],
            ["core 1 line fill buffers", 10, 6.0, 10, 1.0, 1.0, 1.0],
            ["core 2 line fill buffers", 10, 9.9, 10, 1.0, 1.0, 1.0],
            ["IIO write buffer", 100, 25.0, 60, 125.0, 200.0, 200.0],
            ["IIO read buffer", 2**32 - 1, 1.0, 2, 31.25, 200.0, 200.0],
            ["path c2m_read", 2**32 - 1, 40.0, 90, 500.0, 80.0, 80.0],
        ]),
        "tenants": fakeresults.table("tenant, cores cores, throughput_mops Mops, net_gbps Gb/s, offered_mops Mops, cpu_utilisation fraction, drop_rate fraction", [
            ["a", 2, 5.0, 80.0, 6.0, 0.5, 0.1],
            ["b", 1, 90.0, None, None, 1.0, None],
        ]),
        "drops": fakeresults.table("where, why, count packets, first_us us, last_us us", [["NIC: ring", "Too slow.", 1234, 0.0, 9.0]]),
    }  # fmt: skip
    return r


def test_traffic_and_queues_are_those_of_the_result():
    host = host_of(one())
    assert [d.title for d in host.devices] == ["NIC “front”", "4 SSDs"]
    assert host.into.gbs == 125 * 64 / 1000 and host.out.gbs == 31.25 * 64 / 1000
    assert host.into.says == ("8 GB/s", "50 % busy")
    wire, _ = host.wires[0]
    assert (wire.gbs, wire.says, wire.busy) == (10.0, ("80 Gb/s", "5 Mpps"), 0.8)
    assert [(b.name, b.says, b.share) for b in host.iio.bars[:2]] == [
        ("write buffer", "25 of 100", 0.25),
        ("read buffer", "1", None),
    ]
    a, b = host.nodes[0].cores
    assert [(x.bars[0].used, x.bars[0].limit) for x in (a, b)] == [(10.0, 20.0), (9.9, 10.0)]
    assert a.cores == [0.5, 0.5] and (a.serves, b.serves) == (True, False)
    assert {x.name: (x.used, x.limit) for x in host.memory.bars} == {
        "bandwidth": (30.0, 40.0), "read queues": (8.0, 20.0), "write queues": (38.0, 40.0),
    }  # fmt: skip
    node = host.nodes[0]
    assert (node.to_cores.gbs, node.from_cores.gbs) == (32.0, 6.4), (
        "a line counts once, whether it was prefetched or not"
    )
    assert host.devices[0].trouble == ["1,234 packets lost: Too slow."] and a.trouble == ["loses 10 % of its packets"]


def test_ways_belong_to_devices_and_to_tenants():
    ways = host_of(one()).nodes[0].agent.ways
    assert (ways.count, ways.devices) == (8, {0, 1})
    # A number of ways counts from the top, a range names them.
    assert ways.tenants == {"a": {4, 5, 6, 7}, "b": {4, 5, 6, 7}}
    spec = one()["spec"]
    spec["platform"]["caches"]["llc"]["quirks"] = {"device_ways": "highest"}
    assert host_of(one(**spec)).nodes[0].agent.ways.devices == {6, 7}
    assert host_of(one(placement={"policy": "dma", "ways": 2})).nodes[0].agent.ways.devices == set()
    assert host_of(one(placement={"policy": "ddio", "ways": "3-5"})).nodes[0].agent.ways.devices == {3, 4, 5}


def explained(*domains, **facts):
    return Explanation("x", list(domains), [], facts)


def full(name, traffic="p2m", **more):
    return Domain(name, traffic, 100.0, 99.0, 10.0, **more)


def test_the_last_full_queue_on_the_way_to_memory_is_the_bottleneck():
    found = judged(
        explained(full("line fill buffers", "c2m"), full("IIO write buffer"), full("write queues", "shared"))
    )
    assert found.marks == {"cores": "waits", "iio": "waits", "memory": "bottleneck"}
    assert found.sentence == (
        "The write queues of the memory controllers are the bottleneck: 99 of 100 entries are in use; the queues before them "
        "fill up, too: the line fill buffers (99 of 100) and the IIO write buffer (99 of 100)."
    )
    alone = judged(explained(full("IIO write buffer", unloaded_ns=200.0)))
    assert alone.sentence.startswith(
        "The IIO write buffer is the bottleneck: 99 of 100 entries are in use, each for 634 ns (unloaded 200 ns)"
    )
    assert (alone.mark("iio"), alone.mark("cores 1"), alone.mark("memory")) == ("bottleneck", None, None)


def test_a_full_link_comes_first_and_busy_cores_come_last():
    found = judged(explained(full("IIO write buffer"), pcie_up_util=0.99, cores_busy=1.0))
    assert found.sentence == "The PCIe link into the host is the bottleneck: it is busy 99 % of the time."
    assert found.marks == {"device": "bottleneck"}
    busy = judged(explained(cores_busy=1.0, lost_share=0.25))
    assert (
        busy.sentence
        == "The cores are the bottleneck: they are busy 100 % of the time, and 25 % of the offered packets are lost."
    )
    assert busy.busy_cores


def test_a_host_with_room_says_which_part_is_fullest():
    domain = Domain("read queues", "shared", 100.0, 40.0, 10.0)
    assert (
        judged(explained(domain)).sentence
        == "No part of the host is full; the fullest, the read queues of the memory controllers, is at 40 %."
    )
    assert judged(explained(domain)).marks == {}
    assert judged(explained(Domain("read queues", "shared", 100.0, 85.0, 10.0))).marks == {"memory": "fullest"}
    assert "no metrics of the host network" in verdict_of(fakeresults.result("dma") | {"metrics": {}}).sentence


#: What `hostnet explain` names as full, with the share from which it does.
NAMED = {fact: LINK_FULL for fact in explanation._SERVERS} | {fact: CREDITS_FULL for fact in explanation._CREDITS}


@pytest.mark.parametrize("fact", NAMED)
def test_what_explain_finds_full_is_the_bottleneck_of_the_report(fact):
    found = judged(explained(**{fact: NAMED[fact]}))
    assert f"{100 * NAMED[fact]:.0f} %" in found.sentence and "the bottleneck" in found.sentence
    assert list(found.marks.values()) == ["bottleneck"]
    with_room = judged(explained(**{fact: 0.5}))
    assert with_room.sentence.endswith("is at 50 %.") and with_room.marks == {}


def test_the_line_fill_buffers_of_one_core_are_not_those_of_all():
    pooled = Domain("line fill buffers", "c2m", 204.0, 10.5, 7.4)
    found = judged(explained(pooled, lfb_fullest_util=0.863))
    assert found.sentence == ("The line fill buffers of the fullest core are the bottleneck: 86 % of them are in use.")
    assert found.marks == {"cores": "bottleneck"}
    near = judged(explained(pooled, lfb_fullest_util=0.814, mem_utilisation=0.06))
    assert (
        near.sentence
        == "No part of the host is full; the fullest, the line fill buffers of the fullest core, is at 81 %."
    )
    assert near.marks == {"cores": "fullest"}


def test_the_box_of_the_fullest_core_is_marked_although_its_other_cores_are_idle():
    r = one()
    held = {row[0]: row for row in r["tables"]["domains"]["rows"]}
    for core, occupancy in ((0, 9.0), (1, 0.0), (2, 6.0)):  # 45 % of those of the tenant a, and 60 % of those of b
        held[f"core {core} line fill buffers"][2] = occupancy
    drawn = picture(host_of(r), judged(explained(lfb_fullest_util=0.9)), "x")
    assert drawn.count('class="box bottleneck"') == 2, "one part in two drawings"
    assert re.search(r'class="box bottleneck".*?font-weight="600">a<', drawn)


@pytest.mark.parametrize("queues, fact", [("read queues", "rpq_full"), ("write queues", "wpq_full")])
def test_queues_that_are_full_most_of_the_time_are_full(queues, fact):
    domains = full("IIO write buffer"), Domain(queues, "shared", 100.0, 93.0, 10.0)
    found = judged(explained(*domains, **{fact: CREDITS_FULL}))
    assert found.sentence.startswith(f"The {queues} of the memory controllers are the bottleneck: 93 of 100 entries")
    assert found.marks == {"iio": "waits", "memory": "bottleneck"}


def test_the_buffer_of_one_of_several_controllers_is_a_limit():
    found = judged(explained(Domain("IIO write buffer", "p2m", 200.0, 99.0, 9.0), full("IIO 1 write buffer")))
    assert found.sentence == "The IIO write buffer is the bottleneck: 99 of 100 entries are in use."
    assert found.marks == {"iio": "bottleneck"}


def test_marks_are_drawn_on_their_parts():
    r = one()
    host, found = host_of(r), judged(explained(full("line fill buffers", "c2m"), full("IIO write buffer")))
    drawn = picture(host, found, "x")
    assert found.sentence.endswith("full as well: the IIO write buffer (99 of 100).")
    titles = re.findall(
        r'<rect class="box bottleneck".*?</rect>.*?>bottleneck</text>.*?font-weight="600">(.*?)<|<rect class="box bottleneck"[^>]*/>.*?>bottleneck</text>.*?font-weight="600">(.*?)<',
        drawn,
    )
    assert {a or b for a, b in titles} == {"IIO", "b"}, "the line fill buffers of b are full, those of a are not"
    assert drawn.count('class="box bottleneck"') == 4, "two parts in two drawings"


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """Results of very different hosts, simulated for a moment."""
    import os

    os.environ["HOSTNET_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    brief = {"run.requests": 200, "run.warmup_requests": 50}
    changes = {
        "quadrant3": {"run.time": "20 us", "run.warmup_time": "5 us"},
        "mixture-server": brief,
        "mixture-coherent": brief,
        "kv-overlay": brief,
        "artifact-colocation": brief,
        "l3fwd-100g": brief,
        "directed-rx": {},
        "iperf": {"run.time": "50 us"},
    }
    return {name: hn.run(hn.Scenario.load(name).with_(change)).data for name, change in changes.items()}


SVG = "{http://www.w3.org/2000/svg}"


def test_nothing_leaves_its_drawing_or_its_box(several):
    for name, r in [*several.items(), ("mix", one())]:
        for svg in re.findall(r"<svg.*?</svg>", picture(host_of(r), verdict_of(r), name)):
            root = ElementTree.fromstring(svg)
            _, _, width, height = map(float, root.get("viewBox").split())
            boxes = []
            for e in root.iter():
                if e.tag in (f"{SVG}rect", f"{SVG}text"):
                    x, y = float(e.get("x")), float(e.get("y"))
                    w = float(
                        e.get("width")
                        or width_of(e.text, float(e.get("font-size", 0)), e.get("font-weight") is not None)
                    )
                    x -= {"end": w, "middle": w / 2}.get(e.get("text-anchor"), 0)
                    assert -0.1 <= x and x + w <= width + 0.5, (name, e.text or e.attrib)
                    assert 0 <= y and y + float(e.get("height", 0)) <= height, (name, e.text or e.attrib)
                    if (e.get("class") or "").split()[:1] == ["box"]:
                        boxes.append((x, y, x + w, y + float(e.get("height"))))
            for i, (a, b, c, d) in enumerate(boxes):
                for p, q, r_, s in boxes[i + 1 :]:
                    assert c <= p or r_ <= a or d <= q or s <= b, f"{name}: two boxes overlap"


def test_the_picture_shows_both_nodes_and_their_link(several):
    host = host_of(several["mixture-coherent"])
    assert [[c.title for c in n.cores] for n in host.nodes] == [["coherent", "pcie"], ["memory", "CC-NIC"]]
    out, into = host.links
    metrics = several["mixture-coherent"]["metrics"]
    assert (out.gbs, into.gbs) == (metrics["link_out_gbs"], metrics["link_in_gbs"])
    drawn = picture(host, verdict_of(several["mixture-coherent"]), "x")
    assert drawn.count(">Node 1<") == 2 and "Memory of both nodes" in drawn


def test_a_result_without_anything_still_has_a_picture():
    bare = {
        "spec": {},
        "metrics": {},
        "tables": {},
        "version": "",
        "seed": 0,
        "wall_s": 0,
        "sim_us": 0,
        "warmup_us": 0,
        "measure_us": 0,
    }
    drawn = picture(host_of(bare), verdict_of(bare), "x")
    assert "Home agent and LLC" in drawn and "Memory controllers and DRAM" in drawn


def test_text_is_cut_and_wrapped_to_its_room():
    assert cut("short", 100, 11) == "short" and cut("a long name that does not fit", 60, 11).endswith("…")
    assert width_of(cut("a long name that does not fit", 60, 11), 11) <= 60
    lines = wrapped("some words that take more than one line of this box", 100, 11)
    assert len(lines) <= 3 and all(width_of(line, 11) <= 100 for line in lines)
    assert wrapped("x" * 80, 100, 11) == [cut("x" * 80, 100, 11)]


@pytest.mark.parametrize(
    "value, says",
    [
        (0, "0"),
        (1234.5, "1,234"),
        (7.2565, "7.26"),
        (0.0123, "0.0123"),
        (100.0, "100"),
        (1e-5, "1.00e-05"),
        (None, "–"),
    ],
)
def test_numbers_are_short(value, says):
    assert short(value) == says


def test_quantities_are_read_with_their_unit():
    assert quantity("100 Gbps", "bps") == 1e11 and quantity("36 MiB", "B") == 36 * 2**20
    assert quantity("fast", "bps") is None and quantity("10 ns", "B") is None
    assert Bar("x", 0.004, 10).says == "0 of 10" and Bar("x", 0.23, 1, "%").says == "23 %"
