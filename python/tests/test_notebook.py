"""What a notebook shows: results, explanations, comparisons and progress; and the notebooks of ``examples``."""

import ast
import json
import math
import re
import subprocess
import sys
import types
import xml.etree.ElementTree as ET
from base64 import b64decode
from html.parser import HTMLParser
from pathlib import Path

import pytest

import hostnet as hn
from hostnet import comparison, notebook, progress
from hostnet._core import student
from hostnet.comparison import Sample
from hostnet.errors import HostnetError

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples/notebooks").glob("*.ipynb"))


class Balanced(HTMLParser):
    """Reads HTML whose tags must close in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.text, self.images = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag == "img":
            self.images.append(dict(attrs))
        elif tag not in ("br", "progress"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag != "progress":
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def drawn(page):
    """The only picture of a page, as the root of its SVG."""
    (image,) = page.images
    kind, data = image["src"].split(",")
    assert kind == "data:image/svg+xml;base64" and image["alt"]
    return ET.fromstring(b64decode(data))


def words(svg):
    return "".join(svg.itertext())


def test_a_result_is_shown_as_table_and_picture(tiny):
    r = hn.run(tiny)
    page = Balanced(r._repr_html_())
    assert "tiny" in page.text and "throughput_mrps" in page.text and "Mrps" in page.text
    assert page.seen.count("table") == 1
    assert drawn(page).tag == "{http://www.w3.org/2000/svg}svg"


def test_a_result_without_tables_is_shown_too():
    r = hn.run("directed-rx")
    assert r.tables == []
    drawn(Balanced(r._repr_html_()))


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_a_picture_is_saved_in_the_format_of_its_name(tiny, tmp_path, ending):
    hn.run(tiny).plot().save(tmp_path / f"a.{ending}")
    first = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}[ending]
    assert (tmp_path / f"a.{ending}").read_bytes().startswith(first)


def test_a_picture_that_cannot_be_saved_is_one_sentence(tiny, tmp_path):
    picture = hn.run(tiny).plot()
    with pytest.raises(hn.HostnetError, match='no format of pictures has the ending "sgv"; did you mean "svg"'):
        picture.save(tmp_path / "a.sgv")
    with pytest.raises(hn.HostnetError, match=r"a\.pdf: cannot be written \(No such file or directory\)"):
        picture.save(tmp_path / "none" / "a.pdf")
    assert not list(tmp_path.glob("a.*"))


def test_a_sweep_and_a_study_are_drawn(tiny):
    frame = hn.sweep(tiny, {"placement.ways": [2, 4]}, jobs=1)
    assert isinstance(hn.plot(frame, "placement.ways", "mem_bw_gbs"), notebook.Picture)
    figure = hn.study("sweeper", "fig3", quick=True).plot()
    drawn(Balanced(figure._repr_html_()))


def test_explain_is_a_function_and_a_package(tiny):
    """The order of imports does not matter."""
    program = (
        "import hostnet as hn; r = hn.run({!r}); print(hn.explain(r).regime); import hostnet.explain; "
        "print(hn.explain(r).regime, hostnet.explain.of_result(r).regime)"
    )
    command = [sys.executable, "-c", program.format(str(tiny._origin))]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert len(said) == 3 * len(said[: len(said) // 3]) and said[: len(said) // 3] == said[-len(said) // 3 :]


def test_an_explanation_is_shown_with_its_paragraph_and_its_domains(tiny):
    ex = hn.explain(tiny)
    page = Balanced(ex._repr_html_())
    assert any(ex.paragraph() in t for t in page.text)
    assert {d.name for d in ex.domains if not d.note} <= set(page.text)
    drawn(page)


# ---- comparison ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("freedom", "quantile"), [(1, 12.706), (2, 4.303), (4, 2.776), (10, 2.228), (30, 2.042), (120, 1.980)]
)
def test_quantiles_are_those_of_student_s_table(freedom, quantile):
    assert student(freedom) == pytest.approx(quantile, abs=5e-4)


def test_an_interval_of_four_values():
    """Mean 5, variance 20/3: half the interval is 3.182 * sqrt(20/3/4)."""
    s = Sample((2.0, 4.0, 6.0, 8.0))
    assert s.mean == 5 and s.half_interval == pytest.approx(3.182 * math.sqrt(20 / 12), rel=1e-3)
    assert Sample((2.0,)).half_interval is None


def test_welch_s_test():
    """Equal variances 1 and five values each: 8 degrees of freedom, so means differ beyond 2.306 * sqrt(2/5) = 1.458."""
    a = tuple(math.sqrt(10) / 2 * v for v in (-0.8, -0.4, 0.0, 0.4, 0.8))
    assert sum(v * v for v in a) / 4 == pytest.approx(1)
    assert not Sample(a).differs(Sample(tuple(v + 1.45 for v in a)))
    assert Sample(a).differs(Sample(tuple(v + 1.47 for v in a)))
    assert Sample((1.0, 1.0)).differs(Sample((2.0, 2.0))) is True
    assert Sample((1.0, 1.0)).differs(Sample((1.0, 1.0))) is False
    assert Sample((1.0,)).differs(Sample((2.0, 2.0))) is None


def test_welch_s_test_takes_the_end_on_the_side_of_the_other_mean():
    """Intervals of 15 degrees of freedom have half-widths of 2.1314 standard errors, and those of 30 degrees of 2.0423. Equal
    errors of 1 let means differ beyond 2.0423 * sqrt(2) = 2.888."""
    one, far = Sample((10.0,), (10 - 2.1314, 18.0), unit="us"), 2.1314 * 2
    assert one.half_interval == 8
    below = [Sample((v,), (v - far, v + 2.1314), unit="us") for v in (7.15, 7.05)]
    assert [one.differs(s) for s in below] == [False, True] and one.differs(Sample((14.0,), (13.9, 14.1))) is False
    # 0 bounds a rate, so that the other end says how wide the noise is.
    few = Sample((0.5,), (0.0, 0.5 + 2.1314), unit="us")
    assert few.half_interval == pytest.approx(2.1314)
    assert [few.differs(Sample((v,), (v - 2.1314, v + far), unit="us")) for v in (3.35, 3.45)] == [False, True]
    assert Sample((0.5,), (0.0, 1.0), unit="fraction").differs(Sample((1.0,), (1.0, 1.0), unit="fraction")) is False


def test_one_result_over_seeds_compares_as_the_runs_themselves(tiny):
    """Its interval has two degrees of freedom, with t = 4.3."""
    near, other = tiny.with_({"traffic.rate": "1.03 Mrps"}), tiny.with_({"traffic.rate": "1.06 Mrps"})
    for b in (near, other):
        lists = hn.compare(hn.repeat(tiny, 3, jobs=1), hn.repeat(b, 3, jobs=1)).frame
        whole = hn.compare(hn.run(tiny, seeds=3), hn.run(b, seeds=3)).frame
        assert whole["differs"].to_list() == lists["differs"].to_list()
        close = [None if v is None else pytest.approx(v) for v in lists["half_interval"]]
        assert whole["half_interval"].to_list() == close


def test_two_results_side_by_side(tiny):
    a, b = hn.run(tiny), hn.run(tiny.with_({"placement.ways": 4}))
    c = hn.compare(a, b)
    assert c.changed == {"placement.ways": (2, 4)}
    assert c.names == ("ways 2", "ways 4")
    rows = c.frame.filter(metric="mem_bw_gbs").rows(named=True)
    assert [r["mean"] for r in rows] == [a["mem_bw_gbs"], b["mem_bw_gbs"]]
    assert rows[1]["change_percent"] == pytest.approx(100 * (b["mem_bw_gbs"] / a["mem_bw_gbs"] - 1))
    low, high = b.interval("mem_bw_gbs")
    assert rows[1]["half_interval"] == pytest.approx(max(high - rows[1]["mean"], rows[1]["mean"] - low))
    # Half-widths of 2.131 (Student's t, 15 degrees of freedom) standard errors; Welch's test has up to 30 degrees.
    errors = [(high - low) / 2 / 2.1314 for low, high in (a.interval("mem_bw_gbs"), b.interval("mem_bw_gbs"))]
    apart = abs(b["mem_bw_gbs"] - a["mem_bw_gbs"]) / math.hypot(*errors)
    assert rows[1]["differs"] == (apart > 2.06) or 2.04 < apart < 2.14
    assert "placement.ways: 2, 4" in repr(c) and "mem_bw_gbs" in repr(c)
    page = Balanced(c._repr_html_())
    assert page.seen.count("table") == 2 and "placement.ways" in page.text


def test_runs_over_seeds_have_intervals(tiny):
    runs = hn.repeat(tiny, 3, jobs=1)
    assert [r.seed for r in runs] == [1, 2, 3]
    c = hn.compare(runs, hn.repeat(tiny.with_({"placement.ways": 4}), 3, jobs=1), names=["two", "four"])
    (row, _) = c.frame.filter(metric="lat_p50_us").rows(named=True)
    values = [r["lat_p50_us"] for r in runs]
    spread = math.sqrt(sum((v - sum(values) / 3) ** 2 for v in values) / 2 / 3)
    assert row["half_interval"] == pytest.approx(4.3027 * spread, rel=1e-4)
    assert c.frame["differs"].null_count() < len(c.frame)


def test_seeds_run_under_a_control_plane(tiny):
    seen = []
    runs = hn.repeat(tiny, 2, control=lambda epoch: seen.append(epoch.now_us))
    assert [r.seed for r in runs] == [1, 2] and seen


def test_scenarios_of_different_names_give_the_names(tiny):
    assert hn.compare(hn.run("directed-rx"), hn.run("directed-tx")).names == ("directed-rx", "directed-tx")


def test_metrics_are_chosen_by_pattern(tiny):
    r = hn.run(tiny)
    found = hn.compare(r, r, metrics=["lat_p*", "drops"]).samples
    assert "lat_p99_us" in found and "drops" in found and all(m.startswith("lat_p") or m == "drops" for m in found)
    assert hn.compare(r, r).names == ("run 1", "run 2")


def test_a_value_within_chance_is_marked():
    one, other = Sample((1.0, 2.0, 3.0)), Sample((1.1, 2.1, 3.1))
    c = comparison.Comparison(("a", "b"), {}, {"lat_p50_us": (one, other), "drops": (one, None)})
    (_, row) = [[cell for cell in r] for r in c.table()[1]][:2]
    assert c.table()[1][0][2:] == ["2.0 ± 2.5", "2.1 ± 2.5", "~+5.0 %"]
    assert row[3:] == ["", ""]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda r, o: hn.compare(r), "needs two runs"),
        (lambda r, o: hn.compare(r, []), "run 2 of the comparison is neither"),
        (lambda r, o: hn.compare(r, [r, 3]), "run 2 of the comparison is neither"),
        (lambda r, o: hn.compare([r, o], r), "differ in placement.ways, not only in their seeds"),
        (lambda r, o: hn.compare(r, o, names=["a"]), "names has 1 entries for 2 runs"),
        (lambda r, o: hn.compare(r, o, metrics=["lat_p98"]), 'there is no metric "lat_p98"'),
        (lambda r, o: hn.repeat("kvs", 0), "times = 0"),
    ],
)
def test_mistakes_are_sentences(tiny, call, says):
    r = hn.run(tiny)
    with pytest.raises(HostnetError, match=says):
        call(r, hn.run(tiny.with_({"placement.ways": 4})))


# ---- progress ------------------------------------------------------------------------------------------------------


class Shell:
    """IPython in a notebook, as far as hostnet looks: what is displayed, in the order of the messages."""

    kernel = True

    def __init__(self, monkeypatch):
        self.shown = []
        display = types.ModuleType("IPython.display")
        display.HTML = lambda text: text
        display.display = self._display
        shell = types.ModuleType("IPython")
        shell.get_ipython, shell.display = lambda: self, display
        monkeypatch.setitem(sys.modules, "IPython", shell)
        monkeypatch.setitem(sys.modules, "IPython.display", display)
        monkeypatch.setattr(progress, "PATIENCE_S", -1.0)
        monkeypatch.setattr(progress, "EVERY_S", 0.0)

    def _display(self, text, display_id):
        self.shown.append(text)
        return types.SimpleNamespace(update=self.shown.append)


def test_a_notebook_shows_a_bar_and_takes_it_away(monkeypatch):
    shell = Shell(monkeypatch)
    with progress.Progress(None).stage("sweep", {"a": 1.0, "b": 3.0}) as report:
        report("a", 0.1)
        report("b", 0.5)
    assert shell.shown[0] == "sweep" and shell.shown[-1] == ""
    assert 'value="0.400"' in shell.shown[1] and "40 %" in shell.shown[1]


def test_a_sweep_in_a_notebook_shows_its_progress(monkeypatch, tiny):
    shell = Shell(monkeypatch)
    hn.sweep(tiny, {"placement.ways": [2, 4]}, jobs=1)
    assert any("100 %" in text for text in shell.shown)
    shell.shown.clear()
    hn.sweep(tiny, {"placement.ways": [6]}, jobs=1, quiet=True)
    assert shell.shown == []


def test_outside_a_notebook_nothing_is_shown(monkeypatch, tiny, capfd):
    shell = Shell(monkeypatch)
    del Shell.kernel
    try:
        hn.run(tiny)
    finally:
        Shell.kernel = True
    assert shell.shown == [] and capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("quiet", "shown"), [(None, False), (True, False), (False, True)])
def test_a_terminal_shows_a_bar_where_it_is_asked_for(monkeypatch, quiet, shown):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert progress.Progress(quiet).visible == shown


# ---- the notebooks -------------------------------------------------------------------------------------------------


def cells(file):
    return json.loads(file.read_text(encoding="utf-8"))["cells"]


def test_there_are_three_notebooks():
    assert [n.stem for n in NOTEBOOKS] == ["first-steps", "own-policy", "packet-life"]


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda f: f.stem)
def test_a_notebook_has_the_form_of_its_format_and_no_output(file):
    """nbformat 4.5: https://nbformat.readthedocs.io, with an identifier for each cell."""
    book = json.loads(file.read_text(encoding="utf-8"))
    assert book.keys() == {"cells", "metadata", "nbformat", "nbformat_minor"}
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    assert len({c["id"] for c in book["cells"]}) == len(book["cells"])
    for cell in book["cells"]:
        common = {"id", "cell_type", "metadata", "source"}
        code = {"execution_count", "outputs"} if cell["cell_type"] == "code" else set()
        assert cell.keys() == common | code
        assert cell.get("outputs", []) == [] and cell.get("execution_count") is None
    assert book["cells"][0]["source"][0].startswith("# ")


@pytest.mark.long
@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda f: f.stem)
def test_a_notebook_runs_from_top_to_bottom(file, monkeypatch, tmp_path):
    """As a kernel runs it: the last expression of each cell is shown."""
    monkeypatch.chdir(tmp_path)
    names, shown = {}, 0
    for cell in cells(file):
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, file.name, "exec"), names)
        if last is not None:
            Balanced(eval(compile(ast.Expression(last.value), file.name, "eval"), names)._repr_html_())
            shown += 1
    assert shown >= 2


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda f: f.stem)
def test_links_of_a_notebook_lead_somewhere(file):
    text = "".join(line for c in cells(file) if c["cell_type"] == "markdown" for line in c["source"])
    for link in re.findall(r"\]\(([^)#]+)", text):
        assert (file.parent / link).exists(), link
