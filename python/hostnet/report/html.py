"""Pieces of a page: sections, folded parts and tables. What callers pass as text is escaped here; markup is of type Markup."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from ..show import number
from .sources import changes


class Markup(str):
    """Text that is HTML already."""


def markup(value: Any) -> str:
    """HTML of a value: markup as it is, text escaped."""
    return value if isinstance(value, Markup) else escape(str(value))


def joined(parts: Sequence[str]) -> Markup:
    """Markup of several parts."""
    return Markup("".join(parts))


def section(heading: str, content: str, note: str = "") -> Markup:
    """A section with its heading, and a sentence on how to read it; empty without content."""
    if not content:
        return Markup()
    said = f'<p class="note">{markup(note)}</p>' if note else ""
    return Markup(f'<section id="{anchor(heading)}"><h2>{escape(heading)}</h2>{said}{content}</section>\n')


def anchor(heading: str) -> str:
    """The id of a heading's section."""
    return re.sub(r"\W+", "-", heading.lower()).strip("-")


def details(summary: str, content: str, opened: bool = False) -> Markup:
    """A part that a reader unfolds."""
    return Markup(f"<details{' open' if opened else ''}><summary>{markup(summary)}</summary>{content}</details>")


def choice(parts: Mapping[str, str]) -> Markup:
    """Parts of which a reader chooses one by name; without a script, and on paper, all of them."""
    if len(parts) == 1:
        return Markup(next(iter(parts.values())))
    shown = "".join(
        f'<article data-name="{escape(n)}"><h3>{escape(n)}</h3>{part}</article>' for n, part in parts.items()
    )
    return Markup(f'<div class="choice">{shown}</div>') if parts else Markup()


def left_out(there: int, shown: int, where: str) -> Markup:
    """A sentence about the results that a section does not show; empty when the section shows all."""
    if there <= shown:
        return Markup()
    return Markup(f'<p class="note">{shown} of {there} results are shown here; {escape(where)}.</p>')


def as_json(value: Any) -> Markup:
    """A value as indented JSON."""
    return Markup(f"<pre>{escape(json.dumps(value, indent=1, ensure_ascii=False))}</pre>")


def specifications(specs: Sequence[tuple[str, Mapping[str, Any]]]) -> Markup:
    """The first of named scenarios in full, and of each other one the values in which it differs."""
    (name, first), *others = specs
    shown = [details(name, as_json(first))]
    for other, spec in others:
        shown.append(details(f"{other}: what differs from {name}", as_json(changes(first, spec))))
    return joined(shown)


def embedded(value: Any, key: str) -> Markup:
    """Data for the page's script: no text in it can end the element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return Markup(f'<script type="application/json" id="{escape(key)}">{text}</script>')


@dataclass(frozen=True)
class Head:
    """Heading of a column."""

    name: str
    unit: str = ""
    tip: str = ""


@dataclass(frozen=True)
class Cell:
    """A cell: what it shows, what it is sorted by, and its class."""

    shown: str
    value: float | str | None = None
    of: str = ""


def value_cell(value: Any) -> Cell:
    """The cell of a number or a text; a dash for None."""
    if value is None:
        return Cell("–", None, "none")
    if isinstance(value, bool):
        return Cell("yes" if value else "no")
    if isinstance(value, (int, float)):
        return Cell(number(value), float(value))
    return Cell(str(value), of="text")


#: Number of rows from which a table has a field to filter them.
FILTERED = 10


def table(
    heads: Sequence[Head], rows: Sequence[Sequence[Cell]], label: str = "table", row_class: Sequence[str] = ()
) -> Markup:
    """A table that sorts by any column, scrolls within the page, and filters its rows where they are many."""
    kinds = [
        ' class="text"' if rows and all(r[i].of.startswith(("text", "none")) for r in rows) else ""
        for i in range(len(heads))
    ]
    top = "".join(
        f'<th scope="col"{kinds[i]}{_tip(h.tip)}><button type="button">{markup(h.name)}'
        + (f" <small>[{escape(h.unit)}]</small>" if h.unit else "")
        + "</button></th>"
        for i, h in enumerate(heads)
    )
    body = []
    for i, row in enumerate(rows):
        of = f' class="{row_class[i]}"' if i < len(row_class) and row_class[i] else ""
        first, *others = row
        body.append(
            f'<tr{of}><th scope="row"{_sorted(first)}>{markup(first.shown)}</th>{"".join(map(_td, others))}</tr>'
        )
    search = (
        f'<input type="search" class="filter" placeholder="filter {len(rows):,} rows" aria-label="Filter the rows of this table: {escape(label)}">'
        if len(rows) >= FILTERED
        else ""
    )
    return Markup(
        f'<div class="sortable">{search}<div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}">'
        f"<table><thead><tr>{top}</tr></thead><tbody>{''.join(body)}</tbody></table></div></div>"
    )


def _tip(text: str) -> str:
    return f' title="{escape(text)}"' if text else ""


def _sorted(cell: Cell) -> str:
    return f' data-v="{cell.value:.7g}"' if isinstance(cell.value, float) else ""


def _td(cell: Cell) -> str:
    of = f' class="{cell.of}"' if cell.of else ""
    return f"<td{of}{_sorted(cell)}>{markup(cell.shown)}</td>"
