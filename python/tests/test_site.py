"""The site of documentation has every page in its navigation, needs no other host, and is built without a warning."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import chromium
import pytest

ROOT = Path(__file__).parents[2]
SITE = ROOT / ".ci/site"

pytestmark = pytest.mark.skipif(not SITE.exists(), reason="not a checkout")


def configuration():
    spec = importlib.util.spec_from_file_location("site_configuration", SITE / "conf.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pins(file: Path) -> dict[str, str]:
    """Exact versions that a file of requirements has, by package."""
    lines = [line.partition("#")[0].partition(";")[0].strip() for line in file.read_text(encoding="utf-8").splitlines()]
    found = [re.fullmatch(r"([\w.-]+)==([\w.]+)", line) for line in lines if line]
    assert all(found), lines
    return {re.sub("[-_.]+", "-", m[1]).lower(): m[2] for m in found}


def test_the_navigation_lists_every_page_once_in_the_room_of_its_folder():
    rooms = configuration().rooms()
    listed = [page for entries in rooms.values() for _, page in entries]
    written = {p.relative_to(ROOT).as_posix() for p in (ROOT / "docs").rglob("*.md")}
    assert sorted(listed) == sorted(set(listed)) and written - set(listed) == {"docs/README.md"}
    assert [page for page in listed if not (ROOT / page).is_file()] == []
    assert {"README.md", "CHANGELOG.md", "validation/DEVIATIONS.md"} <= set(listed)
    homes = {
        room: {page.split("/")[1] for _, page in entries if page.startswith("docs/")} for room, entries in rooms.items()
    }
    assert {room: home for room, home in homes.items() if home} == {
        "Use": {"use"},
        "Models": {"models"},
        "Fidelity": {"fidelity"},
        "Develop": {"develop"},
        "The CC-NIC library": {"ccnic"},
        "Boards": {"boards"},
    }


def test_a_page_that_the_index_lacks_falls_to_the_last_room(tmp_path, monkeypatch):
    site, use = configuration(), "docs/use/"
    (tmp_path / "docs/use").mkdir(parents=True)
    (tmp_path / "README.md").write_text("[docs](docs/README.md) [more](MORE.md#there) `[no](gone.md)`\n")
    (tmp_path / "MORE.md").write_text("# More\n")
    (tmp_path / "docs/README.md").write_text(
        "# D\n\n[t](use/a.md)\n\n## Use\n\n| [a](use/a.md) | and [b](use/b.md) |\n"
    )
    for page in "abc":
        (tmp_path / f"docs/use/{page}.md").write_text(f"# {page}\n")
    monkeypatch.setattr(site, "ROOT", tmp_path)
    assert site.rooms() == {
        "": [("What hostnet is", "README.md")],
        "Use": [("A", use + "a.md"), (None, use + "b.md")],
        "Project": [(None, "MORE.md"), (None, use + "c.md")],
    }


def test_the_generator_is_pinned_and_agrees_with_the_other_pins():
    docs = pins(ROOT / ".ci/requirements-docs.txt")
    assert {"sphinx", "myst-parser", "furo"} <= set(docs)
    assert not set(docs) & set(pins(ROOT / "requirements.txt"))
    packages = configuration().PACKAGES
    assert all(
        re.fullmatch(r"[\w-]+@\d+\.\d+\.\d+", p) and re.fullmatch("[0-9a-f]{64}", d) for p, (d, _) in packages.items()
    )


def test_scripts_of_another_digest_are_refused(tmp_path, monkeypatch):
    site = configuration()
    monkeypatch.setattr(site, "ASSETS", tmp_path)
    for package in site.PACKAGES:
        (tmp_path / f"{package.replace('@', '-')}.tgz").write_bytes(b"something else")
    with pytest.raises(SystemExit, match="has another digest"):
        site.fetch()


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The site, where `make docs` has installed the generator and fetched its scripts."""
    site = configuration()
    for module in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(module)
    if not all((site.ASSETS / f"{package.replace('@', '-')}.tgz").exists() for package in site.PACKAGES):
        pytest.skip("make docs has fetched no scripts")
    out = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "--keep-going",
        "-c",
        SITE,
        "-d",
        out / "trees",
        ROOT,
        out / "site",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out / "site"


def test_the_site_is_built_without_a_warning_and_needs_no_other_host(built):
    made = {
        p.relative_to(built).with_suffix("").as_posix(): p.read_text(encoding="utf-8") for p in built.rglob("*.html")
    }
    pages = {page.removesuffix(".md") for page in configuration().pages()}
    assert pages <= set(made)
    loaded = [
        url
        for text in made.values()
        for url in re.findall(r"<(?:script|link|img)\b[^>]*?(?:src|href)=\"([^\"]+)", text)
    ]
    assert len(loaded) > len(pages) and [url for url in loaded if re.match(r"(https?:)?//", url)] == []
    for page in pages:
        fences = len(re.findall("^```mermaid", (ROOT / f"{page}.md").read_text(encoding="utf-8"), re.M))
        assert made[page].count('class="mermaid"') == fences, page
        assert ("mermaid.min.js" in made[page]) == bool(fences), page
    assert "katex.min.js" in made["docs/use/intervals"] and "katex.min.js" not in made["docs/use/glossary"]
    assert '"docs/use/glossary"' in (built / "searchindex.js").read_text(encoding="utf-8")


def diagrams() -> dict[str, int]:
    """The number of diagrams of each page that has any."""
    counts = {
        p: len(re.findall("^```mermaid", (ROOT / p).read_text(encoding="utf-8"), re.M)) for p in configuration().pages()
    }
    return {page: count for page, count in sorted(counts.items()) if count}


def test_every_diagram_of_the_site_is_drawn(built):
    if (browser := chromium.found()) is None:
        pytest.skip("no Chromium")
    drawn = 0
    for page, fences in diagrams().items():
        command = [browser, "--headless", "--no-sandbox", "--virtual-time-budget=6000", "--dump-dom"]
        url = (built / page).with_suffix(".html").as_uri()
        shown = subprocess.run([*command, url], capture_output=True, text=True, timeout=120).stdout
        assert shown.count("data-processed") == fences and "Syntax error" not in shown, page
        drawn += fences
    assert drawn > 10


#: The size of the smallest words of each diagram as they are on the screen, once all are drawn.
WORDS = """(async () => {
  const places = [...document.querySelectorAll(".mermaid")];
  while (!places.every((p) => p.dataset.processed && p.querySelector("svg"))) await new Promise((r) => setTimeout(r, 50));
  await drawn;
  return places.map((place) => {
    const svg = place.querySelector("svg");
    const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    const words = [...svg.querySelectorAll("foreignObject *, text")].filter((e) => e.textContent.trim());
    return Math.min(...words.map((e) => parseFloat(getComputedStyle(e).fontSize) * scale));
  });
})()"""


@pytest.mark.parametrize("width", [1280, 400])
def test_the_words_of_a_diagram_are_readable_on_every_screen(built, width):
    if (program := chromium.found()) is None:
        pytest.skip("no Chromium")
    browser = chromium.Browser(program)
    for page, count in diagrams().items():
        browser.show((built / page).with_suffix(".html"), width, 900)
        sizes = browser.run(WORDS)
        assert len(sizes) == count and min(sizes) >= 10.99, (page, sizes)
        assert browser.run("document.documentElement.scrollWidth") <= width, page
    browser.close()
