"""Placement by a table, written in Python: each class of lines goes where its column says."""

from __future__ import annotations

from pathlib import Path

import pytest

import hostnet as hn
from hostnet.errors import HostnetError

PAGE = Path(__file__).parents[2] / "docs" / "use" / "policies.md"
# A frame of 1514 B, which lies in memory as a whole.
LINES = 24


def test_the_tables_of_the_page_place_headers_and_payload() -> None:
    text = PAGE.read_text(encoding="utf-8")
    (block,) = (b.split("```", 1)[0] for b in text.split("```python\n")[1:])
    names: dict[str, object] = {}
    exec(compile(block, str(PAGE), "exec"), names)
    frame = names["frame"]
    assert frame.height == 4
    # In the order of the sweep: headers to the LLC twice, then to the L2; payload to the LLC and to DRAM by turns.
    assert frame["acc_nic_rx_wr"].to_list() == pytest.approx([0, LINES - 1, 0, LINES - 1], rel=0.01)
    assert [bool(hints) for hints in frame["hints"]] == [False, False, True, True]


def test_a_table_from_python_counts_lines_and_hints_by_class() -> None:
    steady = {"arrivals": "fixed", "rate": "0.2 Mpps", "packet": "1514 B"}
    run_of = {"run.requests": 1024, "run.warmup_requests": 1024}
    base = hn.Scenario.load("touchdrop-bursts").with_({"traffic": steady, **run_of})

    def run(**table: str) -> tuple[float, float]:
        result = hn.run(base.with_({"placement": {"policy": "table", "table": table}}))
        return result["acc_nic_rx_wr"], (result["hints"] or 0) / 1024

    assert run(header="llc", payload="llc") == (0, 0)
    assert run(header="mlc", payload="llc") == (0, pytest.approx(1, rel=0.01))
    written, hinted = run(header="mlc", payload="dram")
    assert written == pytest.approx(LINES - 1, rel=0.01) and hinted == pytest.approx(1, rel=0.01)
    assert run(header="dram", payload="dram")[0] == pytest.approx(LINES, rel=0.01)


def test_a_wrong_destination_is_refused_in_one_sentence() -> None:
    base = hn.Scenario.load("touchdrop-bursts")
    for table, said in (
        ({"header": "l2"}, 'placement.table.header: "l2" is no destination'),
        ({"body": "llc"}, 'unknown key "body"'),
        ({"payload_class1": "dram"}, "lists no packets"),
    ):
        with pytest.raises(HostnetError, match=said):
            base.with_({"placement": {"policy": "table", "table": table}}).resolve()
