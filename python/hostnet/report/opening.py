"""The first section of the page: the pictures of the hosts, each with the sentence that names its bottleneck."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from ..replicate import of_first
from ..search import nothing_passed
from .host import host_of
from .html import Markup, joined, left_out
from .picture import picture, widest
from .verdict import Verdict, verdict_of

#: Number of results of which a page has a picture; of more, those that are spread evenly over them.
MOST_PICTURES = 24

LEGEND = (
    "Arrows are as wide as their traffic in GB/s: blue towards memory, grey away from it, amber from 80 % and red from 97 % of "
    "the link’s time. A bar is the mean use of a limit, its tick the largest use. Squares are cores, filled by the share of "
    "time that they are busy, where that is known."
)


def hosts(results: Sequence[Mapping[str, Any]], names: Sequence[str]) -> tuple[Markup, list[Verdict]]:
    """The pictures and the verdicts of all results. Two pictures stand side by side; of more, a reader chooses one."""
    verdicts = [verdict_of(r) for r in results]
    most = MOST_PICTURES if len(results) > MOST_PICTURES else len(results)
    chosen = sorted({round(i * (len(results) - 1) / max(most - 1, 1)) for i in range(most)})
    drawn = {i: host_of(results[i]) for i in chosen}
    scale = max(map(widest, drawn.values()), default=0.0)
    figures = []
    for i, host in drawn.items():
        v, name = verdicts[i], names[i]
        heading = f"<h3>{escape(name)}</h3>" if len(results) > 1 else ""
        said = [*(results[i].get("warnings") or ()), of_first(results[i]), nothing_passed(results[i])]  # type: ignore[arg-type]
        warned = "".join(f'<p class="warning">{escape(w[:1].upper() + w[1:])}</p>' for w in said if w)
        label = f"The host of {name}: {v.sentence}"
        figures.append(
            f'<article data-name="{escape(name)}">{heading}<p class="verdict">{escape(v.sentence)}</p>{warned}'
            f"<figure>{picture(host, v, label, scale)}</figure></article>"
        )
    of = "pair" if len(figures) == 2 else "choice pictures" if len(figures) > 2 else "single"
    left = left_out(len(results), len(figures), "they are spread evenly over all results")
    legend = f'<p class="note">{escape(LEGEND)}</p>'
    return joined([f'<div class="{of}">{"".join(figures)}</div>', legend, left]), verdicts
