"""The frame of the page: style, scripts, navigation, and a policy that lets the browser fetch nothing."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import cache
from html import escape
from pathlib import Path

_ASSETS = Path(__file__).parent / "assets"
#: Licence of the plotting library, which its copies have to carry.
_NOTICE = "uPlot 1.6.32, copyright (c) 2022 Leon Sorokin, MIT licence: https://github.com/leeoniya/uPlot"


@cache
def asset(name: str) -> str:
    """The text of a file of the page's assets."""
    return (_ASSETS / name).read_text(encoding="utf-8")


def page(title: str, body: str, digests: Sequence[str], lead: str = "") -> str:
    """The whole page. ``digests`` name the results in it, so that a later report does not replace them by chance."""
    scripts = (
        [asset("theme.js"), asset("uPlot.iife.min.js"), asset("report.js")]
        if "data-chart" in body
        else [asset("theme.js"), asset("report.js")]
    )
    headings = re.findall(r'<section id="([^"]+)"><h2>(.*?)</h2>', body)
    nav = "".join(f'<a href="#{key}">{text}</a>' for key, text in headings)
    allowed = " ".join(f"'sha256-{_digest(s)}'" for s in scripts)
    policy = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {allowed}"
    css = asset("uPlot.min.css") + asset("report.css")
    head, *rest = scripts
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="hostnet-results" content="{" ".join(digests)}"><style>{css}</style><script>{head}</script></head>\n'
        f'<body><header><div class="bar"><p class="brand">hostnet</p><div class="tools">'
        f'<button type="button" id="print">Print</button><button type="button" id="theme" aria-label="Switch between light and dark">Dark</button>'
        f"</div></div><h1>{escape(title)}</h1>"
        f'<p class="lead">{escape(lead or "What happens between the wire and the core.")}</p>'
        f'<nav aria-label="Sections">{nav}</nav></header>\n<main>\n{body}</main>\n'
        f"<noscript><p>The curves and the sorting of tables need JavaScript; the tables hold every number.</p></noscript>"
        f"<footer><p>Made by hostnet. This file is complete in itself and fetches nothing. Curves: {escape(_NOTICE)}.</p></footer>\n"
        + "".join(f"<script>{s}</script>\n" for s in rest)
        + "</body></html>\n"
    )


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
