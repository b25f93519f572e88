"""The page about mixtures: its command runs, and its program gives the figures shown."""

import contextlib
import io
import shlex

import pytest
from shownpage import Page, near

import hostnet as hn

PAGE = Page("use/mixtures.md")


def test_every_command_runs_and_the_program_gives_the_figures_shown(cli):
    commands = [line for block in PAGE.blocks("sh") for line in block.splitlines()]
    assert commands[0] == "hostnet run mixture-server"
    for line in commands:
        said = cli(*shlex.split(line, comments=True)[1:], check=0).stdout
        assert "throughput_mrps" in said or "achieved_mpps" in said
    (program,) = PAGE.blocks("python")
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(program, {})
    rows = [line.split() for line in said.getvalue().splitlines()]
    shown = PAGE.table("| tenant | Mops | Gb/s | median, us | 99th percentile, us | share of DRAM's traffic |")
    assert len(rows) == len(shown) == 8
    for (name, *cells), (tenant, *values) in zip(shown, rows, strict=True):
        assert name.startswith(tenant)
        assert all(near(cell, float(value)) for cell, value in zip(cells, values, strict=True) if cell), (cells, values)


def test_the_page_names_every_mixture_that_comes_with_hostnet(cli):
    listed = {word for word in cli("scenarios", check=0).stdout.split() if word.startswith("mixture-")}
    assert len(listed) == 12 and all(f"`{name}`" in PAGE.text for name in listed)


def test_latency_begins_at_the_client_for_tcp_echo_and_at_the_nic_for_others():
    """A longer wire lengthens what the page says that begins at the client, by one flight, and nothing else."""
    assert (
        "Latency begins at the NIC, but for tenants of `tcp_echo`: theirs begins when the client makes the" in PAGE.text
    )
    echo = {
        "tenant.0.app": {"kind": "tcp_echo", "rpc": "64 B", "flows": 1, "pipelined": 1}, "traffic.outstanding": 1,
        "run.requests": 300, "run.warmup_requests": 100,
    }  # fmt: skip
    forward = {"run.load": "fixed", "run.step": None, "run.loss": None, "traffic.rate": "1 Gbps", "run.requests": 300}
    for name, changes, flights in (("tcp-echo-cx6", echo, 1), ("testpmd", forward, 0)):
        near_client, far_client = (
            hn.run(hn.Scenario.load(name).with_({**changes, "peripheral.0.propagation": f"{us} us"}), quiet=True)
            for us in (5, 20)
        )
        assert far_client["lat_mean_us"] - near_client["lat_mean_us"] == pytest.approx(15 * flights, abs=0.2)


@pytest.mark.parametrize("key, value", [("placement.sweep_rx", True), ("placement.sweep_tx", "nic")])
def test_the_page_lists_sweeping_beside_cc_nic_as_refused(key, value):
    combinations = [combination for combination, _ in PAGE.table("| combination | reason |")]
    assert any("CC-NIC" in c and key.removeprefix("placement.") in c for c in combinations)
    with pytest.raises(hn.HostnetError, match=f"{key} is for other stacks; tenant"):
        hn.Scenario.load("mixture-coherent").with_({key: value}).resolve()
    hn.Scenario.load("mixture-coherent").resolve()
