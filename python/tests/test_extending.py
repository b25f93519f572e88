"""docs/develop/extending.md works as it stands: its examples are applied to a copy of the engine, built, and run."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

import hostnet as hn

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/develop/extending.md"
ENGINE = ["crates", "platforms", ".cargo", "Cargo.toml", "Cargo.lock"]

# A policy beside those of the page: headers go into the LLC, all other lines to DRAM.
HEADERS = """
//! Headers go into the LLC, all other lines to DRAM.

use super::{DataPlane, DeviceTransfer, PlacementSpec, Ways};
use crate::memory::Inbound;

/// Places headers in the LLC.
#[derive(Clone, Debug)]
pub struct Headers;

impl DataPlane for Headers {
    fn new(_: &PlacementSpec) -> Headers {
        Headers
    }
    fn write(&mut self, t: &DeviceTransfer) -> Inbound {
        if t.tag.is_header() && t.tag.core().is_some() {
            Inbound::Llc { ways: Ways::low(2).mask() }
        } else {
            Inbound::Dram
        }
    }
}
"""
HEADERS_LINE = (
    "    /// Headers go into the LLC, all other lines to DRAM.\n    mod headers => Headers(headers::Headers),\n"
)
PLACEMENT = "crates/hostnet/src/placement"


def blocks(section=None):
    """(words behind the fence, text) of the page's code, or of one of its sections'."""
    at, found = None, []
    tokens = MarkdownIt("commonmark").parse(PAGE.read_text(encoding="utf-8"))
    for token, after in zip(tokens, tokens[1:] + tokens[-1:]):
        if token.type == "heading_open":
            at = after.content
        if token.type == "fence" and section in (None, at):
            found.append((token.info.split(), token.content))
    return found


def files(section=None):
    return [(words[1], text) for words, text in blocks(section) if words[0] == "rust" and len(words) == 2]


def lines(section=None):
    """(file, list, line) of the registrations."""
    return [(*words[1:], text) for words, text in blocks(section) if words[0] == "rust" and len(words) == 3]


def scenarios():
    return {words[1]: text for words, text in blocks() if words[0] == "toml"}


def register(text, macro, line):
    """`text` of a module with `line` in its list."""
    assert len(re.findall(rf"^{macro} {{$", text, re.MULTILINE)) == 1, macro
    return re.sub(rf"^{macro} {{\n", lambda m: m[0] + line, text, flags=re.MULTILINE)


def build(folder, target, *what):
    """Builds `what` of the workspace in `folder` without optimisation, into `target`; no warning is allowed."""
    release = {"LTO": "off", "CODEGEN_UNITS": "16", "OPT_LEVEL": "0", "DEBUG": "0"}
    env = os.environ | {f"CARGO_PROFILE_RELEASE_{k}": v for k, v in release.items()} | {"CARGO_TARGET_DIR": str(target)}
    command = ["cargo", "build", "--release", "--offline", *what]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr, done.stderr


def built(copy):
    """Builds an engine with all of the page's examples in the directory `copy`; what runs one of its scenarios there."""
    for name in ENGINE:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("target", "*.so"))
        elif source.exists():
            shutil.copy2(source, copy / name)
    for name, text in [*files(), (f"{PLACEMENT}/headers.rs", HEADERS)]:
        assert not (copy / name).exists(), f"{name} is no new file"
        (copy / name).write_text(text, encoding="utf-8")
    for name, macro, line in [*lines(), (f"{PLACEMENT}/mod.rs", "policies!", HEADERS_LINE)]:
        (copy / name).write_text(register((copy / name).read_text(encoding="utf-8"), macro, line), encoding="utf-8")
    target = ROOT / "target/unoptimised"
    build(copy, target, "-p", "hostnet", "--example", "point")

    def run(scenario, *change):
        text = scenarios()[scenario]
        (copy / scenario).write_text(text.replace(*change) if change else text, encoding="utf-8")
        done = subprocess.run([target / "release/examples/point", scenario], cwd=copy, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return {m[1]: float(m[2]) for m in re.finditer(r"^(\w+) +(-?[\d.]+)", done.stdout, re.MULTILINE)}

    return run


@pytest.mark.parametrize(
    "section, kinds, lists",
    [
        ("A placement policy", ["placement"], ["placement/mod.rs"]),
        ("An application", ["app"], ["app/mod.rs"]),
        ("A stack", ["stack"], ["stack/mod.rs"]),
        # And an application that it runs, with the line that joins the two.
        ("A thread", ["stack", "app"], ["stack/mod.rs", "app/mod.rs", "host/threads.rs"]),
        ("A device", ["device"], ["device/mod.rs"]),
    ],
)
def test_a_walk_through_is_one_new_file_and_one_line_of_its_list(section, kinds, lists):
    assert [Path(name).parent for name, _ in files(section)] == [Path("crates/hostnet/src", kind) for kind in kinds]
    assert [Path(name) for name, _, _ in lines(section)] == [Path("crates/hostnet/src", file) for file in lists]
    entries = [[row for row in text.splitlines() if "///" not in row] for _, _, text in lines(section)]
    assert all(len(entry) == 1 for entry in entries)


def test_the_page_has_a_scenario_for_each_example():
    assert list(scenarios()) == ["alternate.toml", "digest.toml", "relay.toml", "metronome.toml", "sampler.toml"]


def check_policy(measured):
    """Every other transfer goes to DRAM."""
    lines_per_packet = 1024 / 64
    assert measured["acc_nic_rx_wr"] == pytest.approx(lines_per_packet / 2, rel=0.01)


def check_headers(measured):
    """The first of a packet's lines goes to the LLC, and all others to DRAM."""
    assert measured["acc_nic_rx_wr"] == pytest.approx(1024 / 64 - 1, rel=0.01)


def check_application(measured):
    """A service lasts as long as its instructions, and four cores are at work."""
    core = hn.platform("sim24")["core"]
    ghz = float(core["clock"].removesuffix(" GHz"))
    service_us = 200_000 / core["compute_ipc"] / (ghz * 1e3)
    assert measured["service_mean_us"] == pytest.approx(service_us, rel=0.02)
    assert measured["throughput_mrps"] == pytest.approx(4 / service_us, rel=0.03)


def check_stack(measured):
    """The first core spends 6400 instructions a packet, and the second core less."""
    core = hn.platform("sim24")["core"]
    us = 6400 / core["compute_ipc"] / (float(core["clock"].removesuffix(" GHz")) * 1e3)
    assert measured["throughput_mrps"] == pytest.approx(1 / us, rel=0.03)


def check_thread(measured):
    """Three cores do an operation each in 0.5 us."""
    assert measured["t0_mops"] == pytest.approx(3 / 0.5, rel=0.01)


def check_device(measured):
    """64 bytes in 100 ns, all of them to DRAM."""
    assert measured["p2m_gbs"] == pytest.approx(64 / 100, rel=0.01)
    assert measured["p2m_iops"] == pytest.approx(1e9 / 100, rel=0.01)
    assert measured["mem_p2m_write_gbs"] == pytest.approx(64 / 100, rel=0.02)


@pytest.mark.long
@pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")
def test_the_examples_build_without_a_warning_and_do_what_the_page_says(tmp_path):
    """One test, so that parallel workers build once."""
    run = built(tmp_path)
    check_policy(run("alternate.toml"))
    check_headers(run("alternate.toml", '"alternate"', '"headers"'))
    check_application(run("digest.toml"))
    check_stack(run("relay.toml"))
    check_thread(run("metronome.toml"))
    check_device(run("sampler.toml"))


@pytest.mark.long
@pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")
def test_the_crate_beside_the_workspace_runs_its_own_components():
    crate, target = ROOT / "examples/own-components", ROOT / "target/unoptimised"
    build(crate, target)
    done = subprocess.run([target / "release/own-components"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    measured = {m[1]: float(m[2]) for m in re.finditer(r"^(\w+) +(-?[\d.]+)", done.stdout, re.MULTILINE)}
    # Its policy sends the first of a packet's eight lines to the LLC, and its stack loses nothing.
    assert measured["acc_nic_rx_wr"] == pytest.approx(512 / 64 - 1, rel=0.01)
    assert measured["drop_rate"] == 0
    served = re.search(r'^stealing \[\["own",(\d+)\],\["stolen",(\d+)\]\]$', done.stdout, re.MULTILINE)
    assert served and int(served[2]) > 0
    # A packet that a core has taken may be answered beyond the end of the window.
    assert int(served[1]) + int(served[2]) == pytest.approx(20_000, abs=8)
    # Its other stack drives the rings of a NIC behind PCIe; each core gets some half of the 20,000 packets.
    done = subprocess.run([target / "release/own-components", crate / "own-port.toml"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    counted = re.search(r"^counting \[\[0,(\d+)\],\[1,(\d+)\]\]$", done.stdout, re.MULTILINE)
    assert counted and min(int(counted[1]), int(counted[2])) > 9_000
    assert int(counted[1]) + int(counted[2]) == pytest.approx(20_000, abs=2 * 64)
    assert re.search(r"^throughput_mrps +2\.00", done.stdout, re.MULTILINE)
