"""Every number of a platform says where it comes from."""

import json
import os
import sys
from pathlib import Path

import pytest

import hostnet as hn

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PLATFORMS = sorted((Path(__file__).parents[2] / "platforms").glob("*.toml"))
PRESETS = tomllib.loads(
    (Path(__file__).parents[2] / "crates/hostnet/src/config/presets.toml").read_text(encoding="utf-8")
)
KINDS = ("datasheet: ", "paper: ", "artifact: ", "standard: ", "measured: ", "fitted: ", "assumed: ")


def leaves(table, prefix=""):
    for key, value in table.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


def of_presets(table, presets=PRESETS, prefix=""):
    """The quirks that the presets of a platform's file set."""
    for key, below in presets.items():
        found = table.get(key, {})
        if "preset" in (quirks := found.get("quirks", {})):
            yield from (f"{prefix}{key}.quirks.{k}" for k in below[quirks["preset"]])
        elif key in table and all(isinstance(v, dict) for v in below.values()):
            yield from of_presets(found, below, f"{prefix}{key}.")


@pytest.mark.parametrize("path", PLATFORMS, ids=lambda p: p.stem)
def test_every_value_has_a_source_and_no_source_is_left_over(path):
    platform = tomllib.loads(path.read_text())
    sources = platform.pop("provenance")
    values = {k for k in leaves(platform) if k not in ("name", "description", "base")}
    assert values <= set(sources)
    assert set(sources) - values <= set(of_presets(platform)), "a source of nothing"
    assert all(text.startswith(KINDS) for text in sources.values())


SHORT = {"run.load": "fixed", "traffic.rate": "100 krps", "run.requests": 200, "run.warmup_requests": 100}
BENCHMARKS = {
    **{
        kind: ("testpmd", SHORT | {"tenant.0.app": {"kind": kind, **more}})
        for kind, more in {"testpmd": {}, "touchfwd": {}, "touchdrop": {}, "rxptx": {"interval": "10 ns"}}.items()
    },
    "memcached-dpdk": ("memcached-dpdk", SHORT),
    "memcached-kernel": ("memcached-kernel", SHORT),
    "iperf": ("iperf", {"run.warmup_time": "1 ms", "run.time": "500 us"}),
}


@pytest.mark.parametrize("path", PLATFORMS, ids=lambda p: p.stem)
def test_the_benchmarks_run_on_every_platform_or_are_refused_with_what_it_lacks(path):
    """The costs of a driver are a table of the platform, as the ports of a NIC behind PCIe are."""
    platform = hn.platform(path.stem)
    for name, (base, changes) in BENCHMARKS.items():
        needs = ("tcp", "udp") if name in ("memcached-kernel", "iperf") else ("poll_mode",)
        lacks = [f"platform.{t}" for t in (*needs, "iio", "pcie") if not platform.get(t)]
        scenario = hn.Scenario.load(base).with_(changes | {"platform": path.stem})
        if not lacks:
            out = hn.run(scenario)
            assert (out["net_gbs"] if name == "iperf" else out["throughput_mrps"]) > 0, name
            continue
        with pytest.raises(hn.SpecError) as said:
            hn.run(scenario)
        text = str(said.value)
        assert any(word in text for word in lacks) and "\n" not in text and text.endswith("."), f"{name}: {text}"


OWN = """
name = "mine"
base = "skylake"
memory = { channels = 4, rpq = 40 }
provenance = { "memory.channels" = "datasheet: the board's" }
"""


def test_a_platform_of_ones_own_is_shown_with_its_own_sources_and_those_of_its_base(tmp_path, cli):
    (tmp_path / "mine.toml").write_text(OWN)
    ours, base = hn.platform(tmp_path / "mine.toml"), hn.platform("skylake")
    assert (ours["memory"]["channels"], ours["memory"]["rpq"], ours["name"]) == (4, 40, "mine")
    assert ours["provenance"]["memory.channels"] == "datasheet: the board's"
    # What is changed without a word is not what the base's source says.
    assert (
        ours["provenance"]["memory.rpq"].startswith("no source: ") and "mine.toml" in ours["provenance"]["memory.rpq"]
    )
    assert ours["provenance"]["memory.wpq"] == base["provenance"]["memory.wpq"]
    assert ours["description"] == "skylake, with other values" != base["description"]
    shown = cli("platforms", tmp_path / "mine.toml", check=0).stdout
    assert "datasheet: the board's" in shown and "no source: " in shown
    # A section is one of the paper that the base is of, and the base is named.
    sources = {line.split()[0]: line for line in shown.splitlines() if len(line.split()) > 2}
    assert sources["memory.wpq"].rstrip().endswith(f"{base['provenance']['memory.wpq']} (of skylake)")
    assert "(of skylake)" not in sources["memory.channels"] + sources["memory.rpq"]
    assert not any(
        "default: " in line and "default: of the key" not in line and "(of skylake)" in line
        for line in sources.values()
    )
    assert "(of " not in cli("platforms", "skylake", check=0).stdout


def test_a_whole_platform_of_ones_own_marks_what_it_gives_no_source_for(tmp_path, cli):
    """A value that the file leaves to the engine is a default, and one that it gives is none."""
    values, _ = (hn.api.PLATFORMS / "skylake.toml").read_text().split("[provenance]")
    (tmp_path / "whole.toml").write_text(values + '[provenance]\n"caches.llc" = "assumed: x"\n')
    sources = hn.platform(tmp_path / "whole.toml")["provenance"]
    assert sources["core.clock"].startswith("no source: ") and "whole.toml" in sources["core.clock"]
    assert sources["caches.llc.size"] == "assumed: x" and sources["background_read_gbs"].startswith("default: ")


@pytest.mark.parametrize("own", ["core.lfb = 64", 'core.clock = "90 GHz"', "core.count = 0"])
def test_a_value_that_no_platform_has_is_blamed_on_the_platforms_file(own, cli):
    (cli.cwd / "mine.toml").write_text(f'name = "mine"\nbase = "skylake"\n{own}\n')
    for command in (["platforms", "mine.toml"], ["run", "testpmd", "--set", "platform=mine"]):
        text = cli(*command, check=2).stderr
        assert text.count("\n") == 1 and f"mine.toml: {own} " in text


def test_a_base_may_have_a_base_and_each_source_names_the_platform_that_gives_it(tmp_path, cli):
    (tmp_path / "mine.toml").write_text(OWN.replace("skylake", "turin"))
    ours, turin = hn.platform(tmp_path / "mine.toml"), hn.platform("turin")
    assert (ours["memory"]["rpq"], ours["core"]) == (40, turin["core"])
    shown = {
        name: {
            line.split()[0]: line.rstrip()
            for line in cli("platforms", file, check=0).stdout.splitlines()
            if line.strip()
        }
        for name, file in (("ours", tmp_path / "mine.toml"), ("turin", "turin"))
    }
    assert shown["ours"]["core.lfb"].endswith("(of turin)") and "(of " not in shown["turin"]["core.lfb"]
    of_icelake = {name: {k for k, line in of.items() if line.endswith("(of icelake)")} for name, of in shown.items()}
    assert of_icelake["turin"] - of_icelake["ours"] == {"memory.rpq"} and of_icelake["ours"] < of_icelake["turin"]
    (tmp_path / "mine.toml").write_text(OWN.replace("skylake", "mine"))
    said = cli("platforms", tmp_path / "mine.toml", check=2).stderr
    assert said.count("\n") == 1 and 'base = "mine" leads back to' in said


def test_values_of_the_standard_are_shown_as_the_engine_uses_them(cli):
    """DDR4-3200 with a clock of 625 ps (JESD79-4C, x16): 22-22-22, tRAS 32.5 ns, tWR 15 ns, tRTP 7.5 ns; two bank groups."""
    shown = {
        line.split()[0]: line.split()[1:3]
        for line in cli("platforms", "sim24", check=0).stdout.splitlines()
        if line.strip()
    }
    for key, value in {
        "bank_groups": 2,
        "banks_per_group": 4,
        "timing.tck_ps": 625,
        "timing.cl_ps": 13750,
        "timing.rcd_ps": 13750,
        "timing.ras_ps": 32500,
        "timing.wr_ps": 15000,
        "timing.rtp_ps": 7500,
    }.items():
        assert shown[f"memory.quirks.{key}"] == [str(value), "standard:"], key
    assert shown["memory.quirks.timing.rfc_ps"] == ["160000", "artifact:"], "the platform's own"


def test_an_edited_platform_is_read_anew(tmp_path):
    (tmp_path / "mine.toml").write_text(OWN)
    scenario = hn.Scenario.load("testpmd").with_({"platform": str(tmp_path / "mine.toml")})
    assert scenario.platform.memory.rpq == hn.platform(tmp_path / "mine.toml")["memory"]["rpq"] == 40
    (tmp_path / "mine.toml").write_text(OWN.replace("rpq = 40", "rpq = 32"))
    os.utime(tmp_path / "mine.toml", ns=(1, 1))
    assert scenario.platform.memory.rpq == hn.platform(tmp_path / "mine.toml")["memory"]["rpq"] == 32


@pytest.mark.parametrize("name", ["mine", "mine.toml", "./mine.toml"])
def test_a_platform_in_the_current_directory_serves_a_scenario_that_comes_with_hostnet(cli, name):
    (cli.cwd / "mine.toml").write_text(OWN)
    short = [
        "--set",
        "placement.ways=2",
        "--set",
        "run.load=fixed",
        "--set",
        "traffic.rate=1 Gbps",
        "--set",
        "run.requests=100",
        "--set",
        "run.warmup_requests=50",
        "--json",
    ]
    data = json.loads(cli("run", "testpmd", "--set", f"platform={name}", *short, check=0).stdout)
    assert data["spec"]["platform"]["memory"]["channels"] == 4


def test_a_platform_that_does_not_exist_is_one_sentence(cli):
    for name, hint in (("skylak", 'did you mean "skylake"'), ("nope.toml", "choose one of")):
        said = cli("platforms", name, check=2).stderr
        assert said.count("\n") == 1 and hint in said


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ('"memory.chanels" = "datasheet: x"', 'unknown key "memory.chanels"; did you mean "memory.channels"'),
        ('"memory.channels" = "datashet: x"', 'did you mean "datasheet"'),
        ('"memory.channels" = "paper"', 'lacks the colon after its kind; write "paper: "'),
    ],
)
def test_a_misspelt_source_is_one_sentence_with_the_file(source, said, cli):
    (cli.cwd / "mine.toml").write_text(f'name = "mine"\nbase = "skylake"\n[provenance]\n{source}\n')
    for command in (["platforms", "mine.toml"], ["run", "testpmd", "--set", "platform=mine"]):
        text = cli(*command, check=2).stderr
        assert text.count("\n") == 1 and "mine.toml: provenance" in text and said in text


@pytest.mark.parametrize("path", PLATFORMS, ids=lambda p: p.stem)
def test_what_hostnet_says_of_a_platform_it_takes(path, tmp_path):
    """Every key with its source, the engine's defaults among them, is a valid table again."""
    (tmp_path / "mine.toml").write_text(
        f'name = "mine"\nbase = "{path.stem}"\n[provenance]\n'
        + "".join(
            f"{json.dumps(key)} = {json.dumps(source)}\n"
            for key, source in hn.platform(path.stem)["provenance"].items()
        )
    )
    assert hn.platform(tmp_path / "mine.toml")["provenance"] == hn.platform(path.stem)["provenance"]


def test_every_platform_with_pcie_ports_runs_a_poll_mode_driver():
    from hostnet.api import platform, platforms

    with_ports = [name for name in platforms() if platform(name).get("pcie")]
    assert {"spr", "sapphirerapids", "cascadelake", "icelake", "xeonmax"} <= set(with_ports)
    assert [name for name in with_ports if not platform(name).get("poll_mode")] == []


def test_a_default_of_none_says_what_holds_without_a_value():
    sources = hn.platform("icx")["provenance"] | hn.platform("sapphirerapids")["provenance"]
    assert sources["poll_mode.quirks.mempool"].startswith(
        "default: none; when absent or 0, as many buffers as both rings"
    )
    assert "sends the packets of an `rx_burst` as soon as" in sources["poll_mode.quirks.transmit_burst"]
    assert (
        sources["queue_pair.quirks.empty_poll_instructions"]
        == "default: none; when absent, the value of `poll_instructions`"
    )
    assert sources["tcp"] == "default: none, so it is not simulated"
    assert "not simulated" not in sources["pcie.quirks.lane_rate"]
