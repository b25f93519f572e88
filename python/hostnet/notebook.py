"""Objects of hostnet as notebooks show them: tables and pictures in HTML."""

from __future__ import annotations

import base64
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import HostnetError
from .output import refusal
from .paths import file_named, nearest

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .comparison import Comparison
    from .explain import Explanation
    from .results import Result
    from .tables import Column


@dataclass(frozen=True)
class Picture:
    """A drawing that notebooks show; ``figure`` is matplotlib's, to be changed further."""

    figure: Figure
    description: str = ""

    def save(self, path: str | Path) -> None:
        """Write the drawing; the ending of the name chooses the format, such as .svg, .png or .pdf.

        Raises HostnetError for an ending that is no format, and where the file cannot be written.
        """
        from .plots.style import style

        ending, formats = file_named(path).suffix[1:].lower(), self.figure.canvas.get_supported_filetypes()
        if ending and ending not in formats:
            raise HostnetError(
                f'{path}: no format of pictures has the ending "{ending}"; {nearest(ending, sorted(formats))}'
            )
        with style():
            try:
                self.figure.savefig(path)
            except OSError as e:
                raise refusal(Path(path), e) from None

    def svg(self) -> str:
        """The drawing as SVG."""
        from .plots.style import style

        out = BytesIO()
        with style():
            self.figure.savefig(out, format="svg", metadata={"Date": None})
        return out.getvalue().decode()

    def _repr_html_(self) -> str:
        # An image of its own, because identifiers in drawings of two cells may be equal.
        data = base64.b64encode(self.svg().encode()).decode()
        return f'<img alt="{escape(self.description)}" src="data:image/svg+xml;base64,{data}" style="max-width: 100%">'


def here() -> Any:
    """IPython's functions for output when the code runs in a notebook, and None elsewhere."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from importlib import import_module

    return import_module("IPython.display")


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> str:
    """A table in HTML: text to the left, numbers to the right, units below the headings."""

    def cell(tag: str, column: Column, content: str) -> str:
        side = "left" if column.text else "right"
        return f'<{tag} style="text-align: {side}">{content}</{tag}>'

    head = "".join(
        cell("th", c, escape(c.heading) + (f"<br><small>{escape(c.unit)}</small>" if c.unit else "")) for c in columns
    )
    body = "".join(f"<tr>{''.join(cell('td', c, escape(v)) for c, v in zip(columns, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>"


def result(r: Result) -> str:
    """A result: its leading metrics, what was lost or unsteady, and the picture of :meth:`Result.plot`."""
    from . import drops, headlines, replicate
    from .declared import metric_info
    from .show import number
    from .tables import Column

    info = metric_info()
    columns = [Column("metric", text=True), Column("value"), Column("unit", text=True), Column("meaning", text=True)]
    rows = [
        [m, number(r.metrics[m]), info[m]["unit"], info[m]["description"]]
        for names in headlines.leading(r.metrics).values()
        for m in names
    ]
    said = [str(loss) for loss in drops.losses(r.data)] + [f"warning: {w}" for w in r.warnings]
    said += [f"note: {s}" for s in [replicate.of_first(r.data)] if s]
    name = f"<h4>{escape(str(r.spec.get('name', '')))}</h4>"
    return name + table(columns, rows) + "".join(map(_paragraph, said)) + r.plot()._repr_html_()


def explanation(ex: Explanation) -> str:
    """An explanation: the paragraph, the picture, and the table of domains."""
    from .explain import render

    said = [f"regime: {ex.verdict}. {ex.paragraph()}", *ex.losses, *(f"note: {n}" for n in ex.notes)]
    drawn = Picture(render.figure(ex), f"credits in use by domain of {ex.title}")
    return (
        f"<h4>{escape(ex.title)}</h4>"
        + "".join(map(_paragraph, said))
        + drawn._repr_html_()
        + table(*render.domains(ex))
    )


def comparison(c: Comparison) -> str:
    """A comparison: the inputs that differ, then the metrics."""
    from .tables import Column

    inputs = ""
    if c.changed:
        columns = [Column("input", text=True), *(Column(n, text=True) for n in c.names)]
        inputs = table(columns, [[path, *map(str, values)] for path, values in c.changed.items()])
    return inputs + table(*c.table())
