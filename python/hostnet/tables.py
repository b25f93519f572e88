"""Tables that keep every value, however narrow the terminal: headings fold, few rows turn into columns, and a table
that still does not fit is split into several tables, which repeat the columns that name the rows."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

#: Number of rows above which a table is not transposed.
MOST_TURNED = 8
#: Number of characters to which text may be folded; text gets narrower only if necessary.
NARROW = 24
#: Fewest characters of a line, in which every word and number of a table has room.
NARROWEST = 20
#: Wider than any table: the width of a pipe or a file without ``COLUMNS``, so that `| less -S`, `cut` and `grep` see whole rows.
ENDLESS = 1_000_000


@dataclass(frozen=True)
class Column:
    """A heading with its unit; a ``text`` column is aligned to the left and may be folded, a ``key`` column names the
    row."""

    heading: str
    unit: str = ""
    text: bool = False
    key: bool = False
    room: int = 0  # characters that a folded heading may take, even where the cells need fewer


def console(beyond: int = ENDLESS) -> Console:
    """A console for standard output: as wide as the terminal, as ``COLUMNS`` says, or otherwise ``beyond`` characters; of at
    least ``NARROWEST``."""
    said = os.environ.get("COLUMNS", "")
    wide = int(said) if said.isdigit() else 0  # a terminal of unknown size may say 0
    out = Console(width=max(wide, NARROWEST)) if wide else Console(_environ={**os.environ, "COLUMNS": ""})
    return out if wide or out.is_terminal else Console(width=beyond)


def show(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], title: str | None = None, to: Console | None = None
) -> None:
    """Print a table with all its cells, as one table or as several."""
    out = to or console()
    if title:
        out.print(Text(title, style="bold"))
    for table in layout(columns, rows, out.width):
        out.print(table)


def layout(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> list[Table]:
    """The table in a form that fits into ``width`` characters: unchanged, with folded headings, transposed, or in
    parts."""
    columns = list(columns)
    for folded in (False, True):
        if _together(_widths(columns, rows, folded)) <= width:
            return [_build(columns, rows, folded)]
    if len(rows) <= MOST_TURNED and any(c.key for c in columns):
        turned = _turned(columns, rows)
        if _together(_widths(*turned, True)) <= width:
            return [_build(*turned, True)]
    return _parts(columns, rows, width)


def _parts(columns: list[Column], rows: Sequence[Sequence[str]], width: int) -> list[Table]:
    widths = _widths(columns, rows, True)
    keys = [i for i, c in enumerate(columns) if c.key]
    others = [i for i, c in enumerate(columns) if not c.key]
    if not keys or (others and _together([widths[i] for i in keys]) > width * 2 // 3):
        # The names of the rows are too wide to be repeated, so rows are numbered.
        columns = [Column("row", key=True), *(replace(c, key=False) for c in columns)]
        rows = [[str(n), *row] for n, row in enumerate(rows, 1)]
        widths = [max(3, len(str(len(rows)))), *widths]
        keys, others = [0], list(range(1, len(columns)))
    parts: list[list[int]] = [[]]
    for i in others:
        if parts[-1] and _together([widths[j] for j in (*keys, *parts[-1], i)]) > width:
            parts.append([])
        parts[-1].append(i)
    return [_of(columns, rows, [*keys, *part]) for part in parts]


def _of(columns: Sequence[Column], rows: Sequence[Sequence[str]], chosen: Sequence[int]) -> Table:
    return _build([columns[i] for i in chosen], [[row[i] for i in chosen] for row in rows], True)


def _turned(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> tuple[list[Column], list[list[str]]]:
    """The transposed table: each row becomes a column, under the values that name the row."""
    keys = [i for i, c in enumerate(columns) if c.key]
    names = [" ".join(row[i] for i in keys if row[i]) for row in rows]
    values = [i for i, c in enumerate(columns) if not c.key]
    head = [
        Column(" ".join(columns[i].heading for i in keys), text=True, key=True),
        *(Column(name, room=16) for name in names),
    ]
    body = [
        [
            f"{columns[i].heading} [{columns[i].unit}]" if columns[i].unit else columns[i].heading,
            *(row[i] for row in rows),
        ]
        for i in values
    ]
    return head, body


def _build(columns: Sequence[Column], rows: Sequence[Sequence[str]], folded: bool) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for i, c in enumerate(columns):
        lines, unit, width, foldable = _column(c, [row[i] for row in rows], folded)
        heading = Text("\n".join(lines))
        if unit:
            heading.append("\n" + "\n".join(unit), style="dim")
        # Numbers are never broken; text is broken between words where possible.
        table.add_column(
            heading, justify="left" if c.text else "right", no_wrap=not foldable, overflow="fold", min_width=width
        )
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def _column(c: Column, cells: Sequence[str], folded: bool) -> tuple[list[str], list[str], int, bool]:
    """The lines of a heading and of its unit, the width below which the column would lose contents, and whether its
    cells may be folded."""
    widest = max((len(line) for cell in cells for line in cell.splitlines()), default=0)
    foldable = c.text and widest > NARROW
    lines, unit = [c.heading], [c.unit] if c.unit else []
    if folded:
        room = max(NARROW if foldable else widest, c.room)
        lines, unit = _fold(c.heading, room), _fold(c.unit, room) if c.unit else []
    return lines, unit, max([NARROW if foldable else widest, *map(len, lines), *map(len, unit)]), foldable


def _fold(heading: str, widest: int) -> list[str]:
    """A heading in lines no longer than the column's cells or the heading's longest word."""
    pieces = re.findall(r"[^_ ./]+[_./]*|[_./]+", heading)
    most = max([widest, *map(len, pieces)], default=0)
    lines = [""]
    for piece, gap in zip(pieces, _gaps(heading, pieces)):
        if lines[-1] and len(lines[-1]) + len(gap) + len(piece) <= most:
            lines[-1] += gap + piece
        elif lines[-1]:
            lines.append(piece)
        else:
            lines[-1] = piece
    return lines


def _gaps(text: str, pieces: Sequence[str]) -> list[str]:
    """Separator before each piece: a space or nothing."""
    gaps, at = [], 0
    for piece in pieces:
        start = text.index(piece, at)
        gaps.append(text[at:start])
        at = start + len(piece)
    return gaps


#: Characters that a table takes in addition to its cells: at its edges, and for each column. SIMPLE_HEAD pads and
#: separates by one character.
_EDGES, _EACH = 1, 3


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[str]], folded: bool) -> list[int]:
    """The width of each column below which the column would lose contents."""
    return [_column(c, [row[i] for row in rows], folded)[2] for i, c in enumerate(columns)]


def _together(widths: Sequence[int]) -> int:
    return _EDGES + _EACH * len(widths) + sum(widths)
