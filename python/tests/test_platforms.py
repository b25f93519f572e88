"""Every number of a platform says where it comes from."""

import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PLATFORMS = sorted((Path(__file__).parents[2] / "platforms").glob("*.toml"))
KINDS = ("datasheet: ", "paper: ", "artifact: ", "standard: ", "measured: ", "fitted: ", "assumed: ")


def leaves(table, prefix=""):
    for key, value in table.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


@pytest.mark.parametrize("path", PLATFORMS, ids=lambda p: p.stem)
def test_every_value_has_a_source_and_no_source_is_left_over(path):
    platform = tomllib.loads(path.read_text())
    sources = platform.pop("provenance")
    values = {k for k in leaves(platform) if k not in ("name", "description", "base")}
    assert values == set(sources)
    assert all(text.startswith(KINDS) for text in sources.values())
