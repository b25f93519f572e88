"""Configures Sphinx for the site of documentation, which `make docs` builds.

The site has every page at the place that the page has in the repository, so that links lead to the same pages on both. Its
navigation is that of docs/README.md. KaTeX and Mermaid come from npm, at versions and with digests that are fixed below, and are
part of the site: a page needs no other host, and no server.
"""

from __future__ import annotations

import hashlib
import html
import os
import re
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ASSETS = ROOT / "build/assets"
#: Packages of npm, the SHA-256 of their archives, and the files of the site that come from them.
PACKAGES = {
    "katex@0.19.1": (
        "24da5a599eb2fcede2e270b99a6ff48bca816beecc95feeb84e8cccbd1bb34fd",
        r"dist/katex\.min\.(js|css)|dist/fonts/.*\.woff2|LICENSE",
    ),
    "mermaid@11.17.2": (
        "6ad2f42c3fc26bbf9e45cbb6d11898972573ea52b33a5f4ff51952899f950ffd",
        r"dist/mermaid\.min\.js|LICENSE",
    ),
}
INDEX = "docs/README.md"


def rooms() -> dict[str, list[tuple[str | None, str]]]:
    """Titles and paths of the pages by room, in the order of docs/README.md; what else is linked comes last.

    A page has no title where a sentence of the index links it; the page's heading serves then.
    """
    found: dict[str, list[tuple[str | None, str]]] = {"": [("What hostnet is", "README.md")]}
    room, seen = "", {INDEX, "README.md"}
    for line in (ROOT / INDEX).read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            room = line.removeprefix("## ")
        for column, cell in enumerate(line.split("|")[1:] if room and line.startswith("|") else ()):
            for title, link in re.findall(r"\[([^]]+)\]\(([^)#\s]+\.md)\)", cell):
                page = os.path.normpath(f"docs/{link}")
                if page not in seen:
                    seen.add(page)
                    found.setdefault(room, []).append((title[0].upper() + title[1:] if column == 0 else None, page))
    found["Project"] = [(None, page) for page in sorted(pages() - seen)]
    return found


def pages() -> set[str]:
    """Paths of the site's pages: the main page, those of docs, and every page that one of these links."""
    found: set[str] = set()
    waiting = ["README.md", *(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))]
    while waiting:
        page = waiting.pop()
        found.add(page)
        waiting += {target for target in linked(page) if (ROOT / target).is_file()} - found
    return found


def linked(page: str) -> Iterator[str]:
    """Paths of the pages to which a page has links."""
    text = re.sub(r"^```.*?^```|`[^`\n]+`", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.S | re.M)
    for link in re.findall(r"\]\(([^):#\s]+\.md)[)#]", text):
        yield os.path.normpath(os.path.join(os.path.dirname(page), link))


def fetch() -> None:
    """Brings the files of PACKAGES to build/assets. Raises SystemExit where an archive is not the one that is meant."""
    ASSETS.mkdir(parents=True, exist_ok=True)
    for package, (digest, wanted) in PACKAGES.items():
        archive = ASSETS / f"{package.replace('@', '-')}.tgz"
        if not archive.exists():
            try:
                subprocess.run(["npm", "pack", "--silent", package], cwd=ASSETS, check=True, stdout=subprocess.DEVNULL)
            except (OSError, subprocess.CalledProcessError) as error:
                raise SystemExit(f"make docs needs npm to fetch {package}: {error}") from None
        if hashlib.sha256(archive.read_bytes()).hexdigest() != digest:
            raise SystemExit(f"{archive} has another digest than {__file__} names; remove one, or correct the other.")
        with tarfile.open(archive) as contents:
            for member in contents:
                path = member.name.removeprefix("package/")
                source = contents.extractfile(member)
                if re.fullmatch(wanted, path) and source is not None:
                    target = ASSETS / "site" / package.partition("@")[0] / path
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(source.read())


def with_navigation(app: Sphinx, name: str, source: list[str]) -> None:
    """Adds the navigation to the text of the index, out of sight."""
    if f"{name}.md" != INDEX:
        return
    for room, listed in rooms().items():
        lines = [f"{title} </{page}>" if title else f"/{page}" for title, page in listed]
        caption = [f":caption: {room}"] if room else []
        source[0] += "\n".join(["\n```{toctree}", ":hidden:", *caption, "", *lines, "```\n"])


def with_scripts(app: Sphinx, name: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Adds what formulas and diagrams need to the pages that have them."""
    body = context.get("body", "")
    if 'class="math"' in body:
        app.add_css_file("katex/dist/katex.min.css")
        app.add_js_file("katex/dist/katex.min.js", loading_method="defer")
        app.add_js_file("math.js", loading_method="defer")
    if 'class="mermaid"' in body:
        app.add_js_file("mermaid/dist/mermaid.min.js", loading_method="defer")
        app.add_js_file("diagrams.js", loading_method="defer")


def setup(app: Sphinx) -> None:
    """Teaches Sphinx formulas and diagrams."""
    from docutils import nodes
    from sphinx.util.docutils import SphinxDirective

    class Mermaid(SphinxDirective):
        has_content = True

        def run(self) -> list[nodes.Node]:
            text = html.escape("\n".join(self.content))
            return [nodes.raw("", f'<pre class="mermaid">{text}</pre>', format="html")]

    def formula(tag: str) -> tuple[Any, None]:
        def visit(writer: Any, node: nodes.Element) -> None:
            writer.body.append(f'<{tag} class="math">{html.escape(node.astext())}</{tag}>')
            raise nodes.SkipNode

        return visit, None

    fetch()
    app.add_directive("mermaid", Mermaid)
    app.add_html_math_renderer("katex", inline_renderers=formula("span"), block_renderers=formula("div"))
    app.connect("source-read", with_navigation)
    app.connect("html-page-context", with_scripts)


project = "hostnet"
html_title = "hostnet"
extensions = ["myst_parser"]
root_doc = INDEX.removesuffix(".md")
include_patterns = sorted(pages())
myst_enable_extensions = ["dollarmath"]
myst_fence_as_directive = ["mermaid"]
myst_heading_anchors = 6
nitpicky = True
html_theme = "furo"
html_math_renderer = "katex"
html_static_path = ["static", str(ASSETS / "site")]
html_extra_path = ["index.html"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
