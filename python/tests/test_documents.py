"""The tree holds what it should, every page that is cited exists, and prose stays short."""

import ast
import fnmatch
import re
import subprocess
import sys
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from hostnet.errors import HostnetError
from hostnet.scoreboard.pages import board, refreshed, unexplained

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
#: Pages whose figures are the scoreboard's. `ccnic-later.md` records the figures of first runs.
FIDELITY = sorted(p for p in (ROOT / "docs/fidelity").glob("*.md") if p.name != "ccnic-later.md")

#: What may lie at the root. Whatever else a commit brings there is a scratch file until it is named here.
AT_ROOT = {
    ".cargo", ".ci", ".gitignore", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "Cargo.lock", "Cargo.toml", "LICENSE",
    "Containerfile", "Makefile", "README.md", "SECURITY.md", "captures", "claims", "crates", "deny.toml", "docs", "examples", "fuzz",
    "platforms", "pyproject.toml", "python", "recordings", "requirements.txt", "rust-toolchain.toml", "rustfmt.toml", "scenarios",
    "validation",
}  # fmt: skip

#: Words in a sentence, at most. A generated page is not prose.
LONGEST = 40
EXEMPT = {"docs/boards/scoreboard.md"}


def tracked() -> list[str]:
    """Files of the commit, links left out; none in a copy that is no git checkout."""
    try:
        out = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return []
    return [name for name in out.split("\0") if name and (ROOT / name).is_file() and not (ROOT / name).is_symlink()]


pytestmark = pytest.mark.skipif(not tracked(), reason="not a git checkout")


def pages() -> list[str]:
    return [name for name in tracked() if name.endswith(".md")]


def parsed(text: str):
    return MarkdownIt("commonmark").enable("table").parse(text)


def slug(heading: str) -> str:
    """The anchor that git forges give a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def anchors(text: str) -> set[str]:
    tokens = parsed(text)
    return {
        slug("".join(c.content for c in after.children))
        for t, after in zip(tokens, tokens[1:])
        if t.type == "heading_open"
    }


def links(text: str) -> list[str]:
    found = []
    for token in parsed(text):
        for child in token.children or []:
            found += [child.attrs[key] for key in ("href", "src") if key in child.attrs]
    return [link for link in found if not re.match(r"[a-z]+:", link)]


def broken(page: Path) -> list[str]:
    """Relative links of a page whose file or heading does not exist."""
    bad = []
    for link in links(page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text(encoding="utf-8"))):
            bad.append(link)
    return bad


def sentences(text: str) -> list[str]:
    """Sentences of paragraphs and list items; code, tables and headings are left out. A code span counts as one word."""
    found, depth = [], 0
    tokens = parsed(text)
    for before, token in zip(tokens, tokens[1:]):
        depth += {"table_open": 1, "table_close": -1}.get(before.type, 0)
        if token.type != "inline" or depth or before.type != "paragraph_open":
            continue
        words = "".join(
            "code" if c.type == "code_inline" else " " if c.type in ("softbreak", "hardbreak") else c.content
            for c in token.children
        )
        words = re.sub(r"\b(Figs?|Sec|al|vs|approx|e\.g|i\.e)\.", r"\1", words)
        found += re.split(r"(?<=[.!?])[)*\"]*\s+", words)
    return found


def length(sentence: str) -> int:
    return sum(any(c.isalnum() for c in word) for word in sentence.split())


def test_nothing_but_what_is_expected_lies_at_the_root():
    assert {name.split("/")[0] for name in tracked()} == AT_ROOT


def test_no_build_product_is_committed():
    products = (".profdata", ".profraw", ".so", ".pyc", ".whl", ".orig", ".rej")
    assert [name for name in tracked() if name.endswith(products)] == []


def test_the_package_ships_every_data_file_that_it_reads():
    """Links in the package's data folder are not followed by themselves: `pyproject.toml` has a pattern for what lies behind."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    shipped = [entry["path"] for entry in project["tool"]["maturin"]["include"]]
    assert all(set(entry["format"]) == {"sdist", "wheel"} for entry in project["tool"]["maturin"]["include"])
    read = [p for kind in ("platforms", "scenarios", "claims") for p in (ROOT / kind).rglob("*") if p.is_file()]
    read += [*(ROOT / "captures").glob("*.pcap"), *(ROOT / "recordings").glob("*.rec")]
    missing = [p.name for p in read if not any(carried(p.relative_to(ROOT), pattern) for pattern in shipped)]
    assert len(read) > 30 and missing == []
    assert not any(carried(Path("claims/first/idio.json"), pattern) for pattern in shipped[:1])


def carried(file: Path, pattern: str) -> bool:
    """Whether a pattern of `pyproject.toml` matches the link to a file; `*` does not cross folders."""
    parts, wanted = ("python", "hostnet", "data", *file.parts), pattern.split("/")
    return len(parts) == len(wanted) and all(fnmatch.fnmatchcase(p, w) for p, w in zip(parts, wanted))


def test_the_licence_is_the_one_that_the_packages_name():
    assert 'license = "Apache-2.0"' in (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text and "Version 2.0, January 2004" in text and "END OF TERMS AND CONDITIONS" in text


@pytest.mark.parametrize("page", pages())
def test_links_between_pages_lead_somewhere(page):
    assert broken(ROOT / page) == []


def test_a_dead_link_and_a_dead_anchor_are_found(tmp_path):
    (tmp_path / "there.md").write_text("# A heading, `coded`\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](there.md) [b](there.md#a-heading-coded) [c](gone.md) ![d](gone.svg)\n\n| [e](there.md#gone) |\n|---|\n| `[f](x)` |\n"
    )
    assert broken(page) == ["gone.md", "gone.svg", "there.md#gone"]


def test_every_page_cited_in_a_source_exists():
    """`docs/page.md` in any text file; with a quoted title behind it, the page has that title."""
    cited = []
    for name in tracked():
        try:
            text = (ROOT / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for page, title in re.findall(r'\b((?:docs|validation)/[\w./-]+\.md)\b(?:, "([^"\n]+)")?', text):
            cited.append((name, page, title))
    missing = [c for c in cited if not (ROOT / c[1]).exists() or c[2] not in (ROOT / c[1]).read_text(encoding="utf-8")]
    assert len(cited) > 10
    assert [m for m in missing if m[0] != "python/tests/test_documents.py"] == []


def test_every_source_that_a_page_names_by_its_path_exists():
    homes = [p for crate in (ROOT / "crates").iterdir() for p in (crate, crate / "src")]
    named = {
        (page, path)
        for page in pages()
        for path in re.findall(r"`((?:\w+/)+(?!NAME)\w+\.rs)`", (ROOT / page).read_text(encoding="utf-8"))
    }
    missing = [
        f"{page}: {path}" for page, path in sorted(named) if not any((h / path).exists() for h in [ROOT, *homes])
    ]
    assert len(named) > 20 and not missing, missing


#: The rooms of the documentation. A page lies in one of them, and the index names every page.
ROOMS = {"boards", "ccnic", "develop", "fidelity", "models", "use"}


def test_every_page_of_the_documentation_is_in_a_room_and_in_its_index():
    written = {name.removeprefix("docs/") for name in pages() if name.startswith("docs/")} - {"README.md"}
    assert {name.split("/")[0] for name in written} == ROOMS
    index = {link.partition("#")[0] for link in links((ROOT / "docs/README.md").read_text(encoding="utf-8"))}
    assert written - index == set()


def test_generated_first_boards_are_not_kept_as_pages():
    assert [name for name in pages() if "first-" in name.rpartition("/")[2]] == []


@pytest.mark.parametrize("page", [p for p in pages() if p not in EXEMPT])
def test_sentences_are_short(page):
    long = [s for s in sentences((ROOT / page).read_text(encoding="utf-8")) if length(s) > LONGEST]
    assert long == []


#: What the first sentence of a page or of a comment does not begin with: words that need a sentence before them.
LEANS = re.compile(
    r"(The same|Those|These|This (?!page|file|module|scenario|is)|That|Of (these|those|which)|As `\w|It|Its|They|Their|He|Which|Who|Whose|What|Such)\b"
)


def opening(text: str) -> str:
    """The first sentence of a page's first paragraph."""
    return (sentences(text) or [""])[0]


def leaning(docs: dict[str, str]) -> list[str]:
    """Where the first sentence of a piece of documentation needs one before it, by place."""
    return [f"{place}: {' '.join(text.split())[:80]}" for place, text in docs.items() if LEANS.match(text.strip())]


@pytest.mark.parametrize("page", [p for p in pages() if p not in EXEMPT])
def test_the_first_sentence_of_a_page_stands_alone(page):
    assert leaning({page: opening((ROOT / page).read_text(encoding="utf-8"))}) == []


def test_the_first_sentence_of_a_docstring_stands_alone():
    found = docstrings(ROOT / "python/hostnet")
    assert len(found) > 500
    assert leaning(found) == []


def rust_comments(folder: Path) -> dict[str, str]:
    """Documentation comments of Rust sources, by file and first line; code in comments is left out."""
    found = {}
    for file in sorted(folder.rglob("*.rs")):
        place, before = "", ""
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            mark, _, text = re.match(r"\s*(///|//!)?( ?)(.*)", line).groups("")
            if mark and mark != before:
                place = f"{file.relative_to(ROOT)}:{number}"
                found[place] = ""
            if mark:
                found[place] += text + "\n"
            before = mark
    return found


def test_the_first_sentence_of_a_rust_comment_stands_alone():
    found = {
        place: text
        for crate in ("hostnet", "ccnic", "hostnet-python", "record", "recording")
        for place, text in rust_comments(ROOT / "crates" / crate / "src").items()
    }
    assert len(found) > 3000
    assert leaning(found) == []


def test_rust_comments_are_found_with_their_lines(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "a.rs").write_text("//! A module.\n\n/// It is\n/// late.\nfn f() {}\n    /// Fine.\n")
    assert rust_comments(tmp_path) == {"a.rs:1": "A module.\n", "a.rs:3": "It is\nlate.\n", "a.rs:6": "Fine.\n"}
    assert leaning(rust_comments(tmp_path)) == ["a.rs:3: It is late."]


def docstrings(folder: Path) -> dict[str, str]:
    """Docstrings of modules, classes and functions, by file and name."""
    found = {}
    for file in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                name = getattr(node, "name", "")
                found[f"{file.relative_to(ROOT)} {name}"] = ast.get_docstring(node) or ""
    return found


def test_a_first_sentence_that_leans_on_another_is_found():
    leans = [
        "The same of the cores.",
        "Those of the NIC.",
        "Of these, how many are free.",
        "As `x`, in ns.",
        "It is full.",
        "What it holds.",
    ]
    stands = [
        "Latency of a hit.",
        "Items that wait.",
        "This page shows how to run IDIO.",
        "Thresholds, in lines.",
        "As many as there are ways.",
    ]
    assert [s.split(": ", 1)[1] for s in leaning({str(i): s for i, s in enumerate(leans + stands)})] == leans


def first_blocks(text: str) -> list[str]:
    """The kinds of a page's first two blocks."""
    return [t.type for t in parsed(text) if t.level == 0 and (t.nesting == 1 or t.type == "fence")][:2]


@pytest.mark.parametrize("page", [p for p in pages() if p.startswith("docs/") and p not in EXEMPT])
def test_a_page_begins_with_what_it_is_for(page):
    assert first_blocks((ROOT / page).read_text(encoding="utf-8")) == ["heading_open", "paragraph_open"]


def test_a_page_that_begins_with_a_command_or_a_table_is_found():
    assert first_blocks("# Speed\n\n```sh\nmake\n```\n\nHow fast.\n") == ["heading_open", "fence"]
    assert first_blocks("# Speed\n\n| a |\n|---|\n| b |\n") == ["heading_open", "table_open"]


def test_the_page_of_commands_has_every_reason_why_a_packet_is_skipped():
    source = (ROOT / "crates/hostnet/src/traffic/pcap.rs").read_text(encoding="utf-8")
    body = re.search(r"pub fn reasons.*?\n    \}\n", source, re.S)[0]
    reasons = re.findall(r'\("([^"]+)", self\.\w+\),', body)
    page = (ROOT / "docs/use/cli.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| ([^|]+?) \|", page[page.index("### Skipped packets") : page.index("## Exit codes")], re.M)
    assert reasons and listed[1:] == reasons


def test_what_counts_as_a_sentence():
    text = "One two, see Fig. 3 of Cai et al. here. `a b c` four!\n\n- five\n  six\n\n| no |\n|---|\n| no |\n\n```\nno\n```\n"
    assert [length(s) for s in sentences(text)] == [10, 2, 2]


def test_figures_on_the_fidelity_pages_are_the_scoreboard_s():
    claims = board((ROOT / "docs/boards/scoreboard.md").read_text(encoding="utf-8"))
    stale = []
    for page in FIDELITY:
        old = page.read_text(encoding="utf-8")
        new = refreshed(old, claims)
        stale += [
            f"{page.name}: {line}" for was, line in zip(old.splitlines(), new.splitlines(), strict=True) if was != line
        ]
    assert stale == [], "python -m hostnet.scoreboard.pages docs/boards/scoreboard.md docs/fidelity/*.md"


def test_every_claim_that_does_not_hold_is_explained():
    claims = board((ROOT / "docs/boards/scoreboard.md").read_text(encoding="utf-8"))
    assert unexplained(claims, [page.read_text(encoding="utf-8") for page in FIDELITY]) == []


def test_no_reason_is_given_for_a_claim_that_holds():
    """But for inputs and definitions, which hold because a value was set to them, or by construction."""
    verdicts = {c.name: c.verdict for c in board((ROOT / "docs/boards/scoreboard.md").read_text(encoding="utf-8"))}
    excused = []
    for page in FIDELITY:
        for name, why in re.findall(
            r"^\| `([\w.-]+)` \|.*\| ([^|]*) \|$", page.read_text(encoding="utf-8"), re.MULTILINE
        ):
            if verdicts.get(name) == "reproduced" and why and not re.search("input|definition", why):
                excused.append(name)
    assert excused == []


def conclusions(text: str) -> list[tuple[str, set[str]]]:
    """The first word of what a page says of each conclusion of its paper, and the claims that it rests on."""
    found = re.search(r"^\| conclusion of the paper .*\n\|---.*\n((?:\|.*\n)+)", text, re.MULTILINE)
    rows = [row.split(" | ") for row in found[1].splitlines()] if found else []
    return [(re.match(r"\w+", says)[0], set(re.findall("`([^`]+)`", claims))) for _, says, claims in rows]


def contradicted(text: str, holds: dict[str, bool]) -> list[tuple[str, set[str]]]:
    """Conclusions that their claims do not bear: all of them hold under `yes`, none under `no`, some under `partly`."""
    meant = {"yes": {True}, "no": {False}, "partly": {True, False}}
    return [(says, claims) for says, claims in conclusions(text) if {holds[c] for c in claims} != meant[says]]


def test_conclusions_agree_with_the_verdicts_of_their_claims():
    holds = {
        c.name: c.verdict == "reproduced"
        for c in board((ROOT / "docs/boards/scoreboard.md").read_text(encoding="utf-8"))
    }
    texts = {page.name: page.read_text(encoding="utf-8") for page in FIDELITY}
    assert {name: bad for name, text in texts.items() if (bad := contradicted(text, holds))} == {}
    assert sum(bool(conclusions(text)) for text in texts.values()) >= 5


def test_a_conclusion_that_its_claims_contradict_is_found():
    page = "| conclusion of the paper | holds here? | claims |\n|---|---|---|\n| a | yes: 2x | `a`, `b` |\n| b | no | `b` |\n| c | partly | `a`, `b` |\n"
    assert contradicted(page, {"a": True, "b": False}) == [("yes", {"a", "b"})]
    assert [says for says, _ in contradicted(page, {"a": True, "b": True})] == ["no", "partly"]


BOARD = """\
| verdict | weight | claim | expected | measured | note |
|---|---|---|---|---|---|
| **reproduced** | headline | Two. `one.c.fig1.two` (§1) | 2x ± 5 % | 2.01x |  |
| **off** | detail | Three. `one.c.fig1.three` (§2) | 3 GB/s ± 5 % | 2 GB/s | off by -33 %. |
| **disputed** | headline | Four. `one.c.fig2.four` | a \\| b | 4 |  |

## one: inputs and definitions

| **reproduced** | input | Five. `one.c.fig2.five` | 5x | 5x |  |
| **reproduced** | definition | Six. `one.c.fig2.six` | 6x | 6x |  |
| **off** | definition | Seven. `one.c.fig2.seven` | 7x | 8x |  |
"""


def test_figures_are_written_into_the_columns_of_paper_and_here():
    page = "text\n\n| claim | here | what | paper |\n|---|---|---|---|\n| `fig1.two` | 1 | the sum | ? |\n| `fig1.three` | | x | |\n\n| other | here |\n|---|---|\n| `fig1.two` | 1 |"
    assert refreshed(page, board(BOARD)).splitlines()[4:] == [
        "| `fig1.two` | 2.01x | the sum | 2x ± 5 % |",
        "| `fig1.three` | 2 GB/s, **off** | x | 3 GB/s ± 5 % |",
        "",
        "| other | here |",
        "|---|---|",
        "| `fig1.two` | 1 |",
    ]


def test_a_claim_without_a_value_is_written_with_its_verdict_alone():
    row = "| **not built yet** | detail | Eight. `one.c.fig3.eight` | 8x |  | no study |\n"
    page = "| claim | here |\n|---|---|\n| `fig3.eight` | 3x |"
    assert refreshed(page, board(row)).splitlines()[2] == "| `fig3.eight` | **not built yet** |"


def test_counts_are_written_per_system():
    page = (
        "| system | judged | reproduced | share | headline | disputed | inputs | definitions |\n"
        "|---|---|---|---|---|---|---|---|\n| `one` | | | | | | | |"
    )
    assert refreshed(page, board(BOARD)).splitlines()[2] == "| `one` | 2 | 1 | 50 % | 1 of 1 | 1 | 1 | 2 |"


def test_a_claim_that_the_board_does_not_have_is_an_error():
    with pytest.raises(HostnetError, match="no claim 'fig1.too' on the scoreboard; did you mean \"fig1.two\""):
        refreshed("| claim | here |\n|---|---|\n| `fig1.too` | |", board(BOARD))


def test_claims_off_or_disputed_that_no_table_names_are_found():
    assert unexplained(board(BOARD), ["`fig2.four` in prose", "| claim | here |\n|---|---|\n| `fig1.three` | |"]) == [
        "fig2.four",
        "fig2.seven",
    ]
