"""Shared fixtures: a private result cache per test, and a scenario small enough to run in a blink."""

import os

import pytest
from commandline import CommandLine

from hostnet import Scenario

# The workers of pytest-xdist have a width, as which hostnet would take that of a pipe.
os.environ.pop("COLUMNS", None)

TINY = """
name = "tiny"
platform = "sim24"
seed = 1
[placement]
policy = "ddio"
ways = 2
[rings]
rx_buffers = 64
buffer_size = "1 KiB"
[[tenant]]
name = "kvs"
cores = 2
app = { kind = "mica", item_size = "1 KiB", get_fraction = 0.05, pairs = 20000, buckets = 8192, log_size = "16 MiB", zipf = 0.99 }
[traffic]
arrivals = "poisson"
rate = "1 Mrps"
packet = "1 KiB"
[run]
load = "fixed"
requests = 2000
warmup_requests = 500
"""


def pytest_collection_modifyitems(items):
    """Those marked `long` begin first: pytest-xdist gives them to one worker, and another takes over what then is left. Those
    that build into one target directory so do not wait for each other, either."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.fixture(autouse=True)
def private_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HOSTNET_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def tiny_file(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path


@pytest.fixture
def tiny(tiny_file):
    return Scenario.load(tiny_file)


@pytest.fixture(scope="session")
def command_line():
    begun = CommandLine()
    yield begun
    begun.close()


@pytest.fixture
def cli(tmp_path, command_line):
    """Runs the command line in an empty directory, as a user does."""
    here = tmp_path / "cwd"
    here.mkdir()

    def call(*args, check=None, **kw):
        done = command_line.run([*map(str, args)], cwd=here, timeout=300, **kw)
        if check is not None:
            assert done.returncode == check, done.stderr
        return done

    call.cwd = here
    return call
