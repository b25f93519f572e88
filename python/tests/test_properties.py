"""Properties of scenarios that hold for any content."""

import copy

from conftest import TINY
from hypothesis import given, settings
from hypothesis import strategies as st

import hostnet as hn
from hostnet.specs import parse_value, tomllib

KEYS = st.text("abcdefghijklmnopqrstuvwxyz_0123456789", min_size=1, max_size=8).filter(lambda k: not k.isdigit())
PLAIN = (
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
)
VALUES = st.recursive(PLAIN, lambda v: st.lists(v, max_size=3) | st.dictionaries(KEYS, v, max_size=3), max_leaves=8)


def leaves(node, path=""):
    """Dotted paths of every value that is not a table or a list."""
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in items:
        here = f"{path}.{key}" if path else str(key)
        if isinstance(value, (dict, list)):
            yield from leaves(value, here)
        else:
            yield here


TINY_TABLES = tomllib.loads(TINY)


@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_any_tables_survive_as_text(tables):
    assert tomllib.loads(hn.Scenario(tables).to_toml()) == tables


@given(st.lists(KEYS, min_size=1, max_size=4), PLAIN)
def test_what_is_set_is_there_and_nothing_else_changed(path, value):
    before = hn.Scenario(TINY_TABLES)
    path = ["override", "provenance", *path]  # the table whose keys are free
    after = before.with_({".".join(path): value}).to_dict()
    node = after
    for part in path:
        node = node[part]
    assert node == value
    after.pop(path[0])
    assert after == TINY_TABLES == before.to_dict()


@given(st.text(max_size=30))
def test_any_command_line_value_reads(text):
    try:
        assert parse_value(text) is not None
    except hn.HostnetError as e:  # a whole number beyond TOML's, which hypothesis finds at times
        assert abs(int(text.strip().replace("_", ""), 0)) >= 2**63 and str(e).endswith("(64 bits).")


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(leaves(TINY_TABLES))), PLAIN | st.lists(PLAIN, max_size=2))
def test_any_value_resolves_or_is_refused_in_one_sentence(path, value):
    sc = hn.Scenario(copy.deepcopy(TINY_TABLES)).set(path, value)
    try:
        resolved = sc.resolve()
    except hn.SpecError as e:
        assert str(e).strip() and "\n" not in str(e)
    else:
        assert sc.copy().resolve() == resolved
