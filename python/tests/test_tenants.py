"""Tenants of one host: a row, a sentence and columns for each of them."""

import json

import polars as pl
import pytest
from rich.console import Console

import hostnet as hn
from hostnet import explain, headlines, show, tenants
from hostnet.report import write_report

PACKETS = {"forwarder": 64, "router": 1024}
MIX = """
name = "mix"
platform = "skylake"
[placement]
policy = "ddio"
ways = 2
[[peripheral]]
kind = "ethernet"
name = "front"
[[peripheral]]
kind = "ethernet"
name = "back"
[[tenant]]
name = "forwarder"
cores = 2
stack = "poll_mode"
nic = "front"
app = { kind = "testpmd" }
traffic = { arrivals = "fixed", packet = "64 B", rate = "20 Mrps" }
[[tenant]]
name = "router"
cores = 1
stack = "poll_mode"
nic = "back"
app = { kind = "touchfwd" }
traffic = { arrivals = "fixed", packet = "1024 B", rate = "1 Mrps" }
[[tenant]]
name = "batch"
cores = 2
app = { kind = "stream", buffer = "64 MiB" }
[run]
load = "fixed"
requests = 4000
warmup_requests = 2000
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("mix") / "mix.toml"
    file.write_text(MIX)
    return file


@pytest.fixture(scope="module")
def result(path):
    return hn.run(hn.Scenario.load(path))


def test_a_result_has_a_frame_with_a_row_for_each_tenant(result):
    frame = result.table("tenants")
    assert frame["tenant"].to_list() == [*PACKETS, "batch"] and frame["cores"].to_list() == [2, 1, 2]
    assert frame["offered_mops"].to_list()[:2] == pytest.approx([20, 1], rel=0.01)
    for row in frame.to_dicts()[:2]:
        bits = PACKETS[row["tenant"]] * 8
        assert row["net_gbps"] == pytest.approx(row["throughput_mops"] * bits / 1e3, rel=1e-6)
    assert frame["throughput_mops"].to_list()[:2] == pytest.approx([result["t0_mops"], result["t1_mops"]])
    assert sum(frame["throughput_mops"][:2]) == pytest.approx(result["throughput_mrps"])


def test_shares_of_tenants_add_up_to_those_of_the_host(result):
    frame = result.table("tenants")
    assert frame["dram_share"].sum() == pytest.approx(1, abs=0.01)
    assert (frame["dram_read_gbs"] + frame["dram_write_gbs"]).sum() == pytest.approx(result["mem_bw_gbs"], rel=0.01)
    polling = frame.filter(pl.col("stack") == "poll_mode")
    mean = (polling["cpu_utilisation"] * polling["cores"]).sum() / polling["cores"].sum()
    assert mean == pytest.approx(result["cpu_utilisation"])


@pytest.mark.parametrize("width", [80, 200])
def test_run_prints_the_leading_columns_at_every_width(result, width):
    console = Console(width=width, color_system=None)
    with console.capture() as caught:
        show.tenant_table(tenants.several(result.data), to=console)
    text = caught.get()
    assert all(len(line) <= width for line in text.splitlines())
    assert all(name in text for name in (*PACKETS, "batch"))
    cells = text.split()
    for name in headlines.of_tenants()[1:]:
        for value in result.table("tenants")[name]:
            assert value is None or show.number(value) in cells, name


def test_a_run_shows_which_tenant_loses_packets_without_dropping_them(path):
    # Rings of thousands of packets take the excess of a short window, so that nothing is dropped.
    sc = hn.Scenario.load(path)
    busy = sc.with_({"tenant.1.traffic.rate": "10 Mrps", "peripheral.1.rings.receive": 4096})
    row = hn.run(busy).table("tenants").filter(pl.col("tenant") == "router").to_dicts()[0]
    assert row["loss_rate"] > 0.1 > row["drop_rate"]
    assert {"drop_rate", "loss_rate"} <= set(headlines.of_tenants())


def test_tables_of_tenants_are_printed_only_for_several(cli, path, tiny_file):
    assert "dram_share" in cli("run", path, check=0).stdout
    assert "dram_share" not in cli("run", tiny_file, check=0).stdout
    assert "llc_look_ups" in cli("run", path, "--all", check=0).stdout


def test_explain_says_who_takes_dram_and_who_loses_packets(result):
    ex = explain.of_result(result)
    share = {r["tenant"]: r["dram_share"] for r in result.table("tenants").to_dicts()}
    assert f"Of the lines that DRAM moves, {100 * share['batch']:.0f} % belong to batch, " in ex.paragraph()
    assert "loses" not in ex.paragraph()
    assert [t["tenant"] for t in ex.as_dict()["tenants"]] == [*PACKETS, "batch"]


def test_lines_of_devices_belong_to_no_tenant(path):
    """Four lanes of PCIe 4.0 carry some 7 GB/s, to DRAM without DDIO."""
    sc = hn.Scenario.load(path).with_({"placement": {"policy": "dma"}})
    sc.peripheral.append({"kind": "ssd", "op": "p2m_write", "queue_depth": 64, "block": "64 KiB"})
    ex = explain.of_result(hn.run(sc))
    rest = 1 - sum(t["dram_share"] for t in ex.as_dict()["tenants"])
    assert rest > 0.01
    assert f"and {100 * rest:.0f} % belong to no tenant, but to devices and the system." in ex.paragraph()


def test_explain_names_the_tenant_that_loses_packets_and_has_no_time_left(path):
    # A core needs more than 0.3 us for a packet of 1,024 B, so that it cannot serve 6 million a second.
    over = hn.Scenario.load(path).with_({"tenant.1.traffic.rate": "6 Mrps", "run.requests": 40_000})
    ex = explain.of_result(hn.run(over))
    lost = {r["tenant"]: r["drop_rate"] for r in ex.as_dict()["tenants"]}
    assert lost["router"] > 0 and not lost["forwarder"]
    text = ex.paragraph()
    assert f"router loses {100 * lost['router']:.3g} % of its packets." in text and "forwarder loses" not in text
    assert "The cores of router are busy 100 % of the time." in text and "The cores of batch" not in text


def test_one_tenant_needs_no_word_of_its_own(tiny):
    ex = explain.of_result(hn.run(tiny))
    assert ex.tenants is None and "belong to" not in ex.paragraph() and ex.as_dict()["tenants"] == []


def test_the_report_has_the_table_of_several_tenants(result, tiny, tmp_path):
    page = write_report([result.data], tmp_path / "mix.html").read_text(encoding="utf-8")
    section = page[page.index('<section id="tenants') :].split("</section>")[0]
    assert '<th scope="row">router</th>' in section and "<small>[GB/s]</small>" in section
    alone = write_report([hn.run(tiny).data], tmp_path / "tiny.html").read_text(encoding="utf-8")
    assert '<section id="tenants' not in alone


def test_a_sweep_has_columns_for_each_tenant_with_their_units(cli, path, tmp_path):
    out = tmp_path / "out"
    done = cli(
        "sweep",
        path,
        "--vary",
        "tenant.0.traffic.rate=5 Mrps,10 Mrps",
        "--metrics",
        "tenant.*.net_gbps,tenant.batch.drop_rate",
        "--out",
        out,
        "-q",
        check=0,
    )
    assert "tenant.forwarder.net_gbps" in done.stdout and "tenant.batch" not in done.stdout
    assert done.stderr == "hostnet: note: tenant.batch.drop_rate has no value here.\n"
    frame = pl.read_parquet(out / "sweep.parquet")
    assert frame["tenant.forwarder.offered_mops"].to_list() == pytest.approx([5, 10], rel=0.01)
    assert frame["tenant.router.offered_mops"].to_list() == pytest.approx([1, 1], rel=0.02)
    about = json.loads(pl.read_parquet_metadata(out / "sweep.parquet")["hostnet"])
    assert about["tenant.router.lat_p99_us"]["unit"] == "us"


def test_run_prints_chosen_columns_of_tenants(cli, path):
    done = cli("run", path, "--metrics", "tenant.*.dram_share,tenant.batch.drop_rate", check=0)
    assert [line.split()[0] for line in done.stdout.splitlines() if line.split()[:1] and "tenant." in line] == [
        f"tenant.{name}.dram_share" for name in (*PACKETS, "batch")
    ]
    assert done.stderr == "hostnet: note: tenant.batch.drop_rate has no value here.\n"


def test_tenants_of_one_name_have_columns_of_their_own(result):
    table = {**result.data["tables"]["tenants"]}
    table["rows"] = [["twin", *row[1:]] for row in table["rows"]]
    found = tenants.columns({"tables": {"tenants": table}})
    names = [name.split(".")[1] for name in found if name.endswith(".dram_share")]
    assert names == ["twin", "twin#2", "twin#3"]
