"""Pages that compare a study's results with others: their tables follow from results, and explanations are written by hand."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

from . import Rows

#: The heading of the part of a page that is written by hand.
CAUSES = "## Where they differ, and why\n"


def rewrite(table: str, out: str, page: Callable[[Rows], str]) -> None:
    """Write the page ``out`` from a study's ``table`` (CSV). Explanations that the page already contains stay."""
    with Path(table).open(encoding="utf-8") as f:
        rows: Rows = list(csv.DictReader(line for line in f if not line.startswith("#")))
    path = Path(out)
    _, heading, causes = (path.read_text(encoding="utf-8") if path.exists() else "").partition(CAUSES)
    path.write_text(page(rows) + ("\n" + heading + causes if heading else ""), encoding="utf-8")
