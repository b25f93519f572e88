"""Completion in the shell: what is offered, in the form that each shell reads."""

import os
import shutil
import subprocess
import sys

import pytest

from hostnet import complete
from hostnet.declared import metric_info

MAIN = "import sys; sys.argv[0] = 'hostnet'; from hostnet.cli import main; main()"


def hostnet(*words, **env):
    command = [sys.executable, "-c", MAIN, *words]
    return subprocess.run(command, env=os.environ | env, capture_output=True, text=True, check=True).stdout


def offered(shell, line):
    """What a shell is told at the end of `line`; the variables are those of the shells' scripts."""
    if shell == "bash":
        words = line.split(" ")
        env = {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)}
    else:
        env = {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    return hostnet(**env, _HOSTNET_COMPLETE=f"complete_{shell}")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_is_offered_scenarios_and_keys(shell):
    found = offered(shell, "hostnet run quadr")
    assert all(f"quadrant{n}" in found for n in (1, 2, 3, 4)) and "kvs" not in found
    found = offered(shell, "hostnet run kvs --set placement.")
    assert "placement.ways=" in found and "traffic" not in found
    assert "doctor" in offered(shell, "hostnet do")


@pytest.mark.parametrize(
    ("what", "text", "has", "lacks"),
    [
        (complete.platform, "sky", "skylake", "sim24"),
        (complete.metric, "drops,lat_p9", "drops,lat_p99_us", "lat_p99_us"),
        (complete.system, "", "sweeper", "mine"),
        (complete.figure, "fig1", "fig18", "fig2"),
        (complete.table, "tenant.app.mi", "tenant.app.mica", "tenant.app.redis"),
        (complete.table, "traffic.", "traffic.rate", "run.load"),
        (complete.key, "tra", "traffic.rate=", "traffic."),
        (complete.key, "tenant", "tenant.0.cores=", "tenant.cores="),
        (complete.key, "tenant.0.stack", "tenant.0.stack.", "tenant.0.cores="),
        (complete.key, "tenant.0.stack", "tenant.0.stack=", "tenant.0.cores="),
        (complete.key, "override.core.cl", "override.core.clock=", "core.clock="),
    ],
)
def test_what_is_offered(what, text, has, lacks):
    found = what(text)
    assert has in found and lacks not in found
    assert all(name.startswith(text) for name in found)


@pytest.mark.parametrize("text", ["placement.ways=", "placement.ways.", "nothing.", "nothing", "...."])
def test_where_no_key_fits_nothing_is_offered(text):
    assert complete.key(text) == []


def test_tables_below_nothing_offer_nothing():
    assert complete.table("nothing.at.all") == []


def test_every_metric_is_offered():
    assert complete.metric("") == sorted(metric_info())


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_a_name(tmp_path):
    """bash itself: it reads the script of --show-completion, and asks it for the word under the cursor."""
    program = tmp_path / "hostnet"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{MAIN}" "$@"\n')
    program.chmod(0o755)
    ask = (
        'eval "$(hostnet --show-completion)"; COMP_WORDS=(hostnet run kvs-); COMP_CWORD=2; '
        'COMP_LINE="hostnet run kvs-"; COMP_POINT=16; _hostnet_completion hostnet kvs- run; echo "${COMPREPLY[@]}"'
    )
    env = os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["bash", "--norc", "-c", ask], env=env, capture_output=True, text=True)
    assert done.stdout == "kvs-spiky\n", done.stderr


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_completion_is_installed_in_the_home_of_its_user(tmp_path):
    command = f'"{sys.executable}" -c "{MAIN}" --install-completion; true'  # bash runs the last command in its place
    env = os.environ | {"HOME": str(tmp_path)}
    done = subprocess.run(["bash", "--norc", "-c", command], env=env, capture_output=True, text=True)
    assert "bash completion installed" in done.stdout, done.stderr
    assert "hostnet" in (tmp_path / ".bashrc").read_text()
