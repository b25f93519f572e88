"""The HTML report: complete, self-contained, well-formed, and its numbers are the results' numbers."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import fakeresults
import paperworld
import polars as pl
import pytest

from hostnet import HostnetError
from hostnet.report import _change, _spread, labels, write_report

VOID = {"meta", "br", "link", "img", "input", "hr"}


class Outline(HTMLParser):
    """Collects tags, ids and table cells, and insists that every tag is closed in order."""

    def __init__(self, text: str):
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.cells: list[list[str]] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.cells.append([])
        if tag in ("td", "th"):
            self.cells[-1].append("")

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if {"td", "th"} & set(self.open):
            self.cells[-1][-1] += data

    def rows(self, first: str) -> list[list[str]]:
        return [[" ".join(c.split()) for c in row] for row in self.cells if row and row[0].strip() == first]


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> str:
    out = tmp_path_factory.mktemp("report") / "demo.html"
    assert write_report(fakeresults.three(), out, "A capture, three ways") == out
    return out.read_text(encoding="utf-8")


def test_every_part_of_a_result_has_its_section(demo):
    headings = re.findall(r"<h2>(.*?)</h2>", demo)
    assert headings == [
        "Comparison", "Throughput and bandwidth", "DRAM accesses per request, by who caused them", "Request latency",
        "DRAM access latency", "Over time", "Domains: who holds how many credits for how long", "Search for the peak",
        "Every metric", "Resolved specifications", "Provenance",
    ]  # fmt: skip


def test_nothing_is_fetched(demo):
    assert not re.search(r"<script|<link|<iframe|@import|\bsrc=", demo)
    outside = set(re.findall(r"https?://[^\s\"'<)]+", demo))
    assert all(u.startswith(("http://www.w3.org/", "https://www.w3.org/")) for u in outside), outside  # XML namespaces
    assert all(ref.startswith("#") for ref in re.findall(r'href="([^"]*)"', demo))


def test_the_page_is_well_formed_and_labelled(demo):
    outline = Outline(demo)
    ids = [a["id"] for _, a in outline.tags if "id" in a]
    assert len(ids) == len(set(ids))
    figures = [a for tag, a in outline.tags if tag == "figure"]
    assert len(figures) == 5 and all(a.get("role") == "img" and a.get("aria-label") for a in figures)
    assert all(a.get("scope") in ("row", "col") for tag, a in outline.tags if tag == "th")
    used = set(re.findall(r'url\(#([^)]+)\)|xlink:href="#([^"]+)"', demo))
    assert {a or b for a, b in used} <= set(ids)


def test_the_comparison_shows_values_and_changes(demo):
    (head,) = Outline(demo).rows("metric")[:1]
    assert head == ["metric", "unit", "DMA", "DDIO, ways 2", "to DMA", "DDIO + Sweeper, ways 2", "to DMA"]
    row = Outline(demo).rows("throughput_mrps")[0]
    assert row[1:] == ["Mrps", "14.9", "22.4", "+50.3 %", "29.8", "+100.0 %"]


def test_every_row_of_a_table_has_a_cell_for_every_column(demo):
    for table in re.findall(r"<table>.*?</table>", demo, re.S):
        widths = {len(row) for row in Outline(table).cells}
        assert len(widths) == 1, table[:200]


@pytest.mark.parametrize(
    "value, base, says",
    [
        (20.0, 20.0, ""),
        (19.9999, 20.0, ""),
        (20.0001, 20.0, ""),
        (19.98, 20.0, "-0.1 %"),
        (30.0, 20.0, "+50.0 %"),
        (37.81, 78138.0, "÷2.07e+03"),
        (2e5, 20.0, "×1e+04"),
        (0.0, 20.0, ""),
        (None, 20.0, ""),
        (1.0, 0.0, ""),
        (-2.0, 1.0, ""),
    ],
)
def test_a_change_says_nothing_where_nothing_changed(value, base, says):
    assert _change(value, base) == says


def test_many_results_keep_their_units(tmp_path):
    page = write_report(sweep_of(12), tmp_path / "r.html").read_text(encoding="utf-8")
    head = Outline(page).rows("result")[0]
    assert "throughput_mrps [Mrps]" in head and "lat_p99_us [us]" in head and "acc_total [lines/request]" in head


def sweep_of(n):
    results = [fakeresults.result("ddio") for _ in range(n)]
    for i, r in enumerate(results):
        r["spec"]["rings"] = {"rx_buffers": 64 + i}
    return results


def test_a_report_of_many_results_says_how_many_each_part_leaves_out(tmp_path):
    page = write_report(sweep_of(120), tmp_path / "r.html").read_text(encoding="utf-8")
    said = {
        key: re.findall(r"(\d+) of (\d+) results are shown here", part)
        for key, part in re.findall(r'<section id="([^"]+)">(.*?)</section>', page, re.S)
    }
    assert said["comparison"] == [] and page.count("rx buffers 183</th>") >= 2, "the tables list all"
    assert said["throughput-and-bandwidth"] == [("40", "120")]
    assert said["request-latency"] == said["dram-access-latency"] == said["over-time"] == [("8", "120")]
    assert said["resolved-specifications"] == [("100", "120")]
    few = write_report(sweep_of(8), tmp_path / "few.html").read_text(encoding="utf-8")
    assert "results are shown here" not in few


def test_curves_that_stand_for_many_span_them_all():
    assert list(_spread(dict.fromkeys("abcdefghijklmnopqrstuvwxyz"))) == list("aehlosvz")


def test_results_that_differ_in_their_seed_alone_are_named_by_it():
    results = [fakeresults.result("ddio") | {"label": ""} for _ in range(2)]
    for seed, r in enumerate(results):
        r["spec"]["seed"] = seed
    assert labels(results) == ["seed 0", "seed 1"]


def test_a_report_leads_with_what_matters_for_its_scenario(tmp_path):
    r = fakeresults.result("dma")
    r["metrics"] = {"c2m_gbs": 14.8, "p2m_gbs": 7.3, "mem_bw_gbs": 37.9, "lfb_occ": 11.0, "iio_write_occ": 92.0}
    page = write_report([r], tmp_path / "r.html").read_text(encoding="utf-8")
    comparison = re.search(r'<section id="comparison">(.*?)</section>', page, re.S)[1]
    assert [row[0] for row in Outline(comparison).cells] == [
        "metric",
        "c2m_gbs",
        "p2m_gbs",
        "mem_bw_gbs",
        "lfb_occ",
        "iio_write_occ",
    ]


def test_a_domain_without_a_limit_says_so(tmp_path):
    r = fakeresults.result("dma")
    r["tables"]["domains"]["rows"][0][1] = 2**32 - 1
    page = write_report([r], tmp_path / "r.html").read_text(encoding="utf-8")
    assert Outline(page).rows("LFB")[0][1] == "unlimited" and "4294967295" not in page


def test_every_table_scrolls_within_the_page(demo):
    assert demo.count("<table>") == demo.count('<div class="scroll" tabindex="0"')
    assert re.search(r"\.scroll \{[^}]*overflow-x: auto", demo)


def test_the_breakdown_lists_each_class_that_occurs(demo):
    outline = Outline(demo)
    assert outline.rows("RX Evct")[0][1:] == ["0", "4.6", "0.2"]
    assert outline.rows("Other Evct") == []


def test_provenance_names_version_seed_and_times(demo):
    assert Outline(demo).rows("DDIO + Sweeper, ways 2")[-1][1:] == [
        "demo-sweeper", "0.1.0", "7", "1.84", "2000", "300.2", "1700",
    ]  # fmt: skip


def test_what_users_write_is_escaped(demo, tmp_path):
    assert "captures/&lt;memcached&gt;.pcapng" in demo and "<memcached>" not in demo
    page = write_report(fakeresults.three(), tmp_path / "x.html", "<b>bold</b>").read_text(encoding="utf-8")
    assert "<h1>&lt;b&gt;bold&lt;/b&gt;</h1>" in page


def test_equal_results_make_equal_reports(demo, tmp_path):
    again = write_report(fakeresults.three(), tmp_path / "again.html", "A capture, three ways")
    assert again.read_text(encoding="utf-8") == demo


def test_results_without_tables_make_a_shorter_report(tmp_path):
    bare = [r | {"tables": {}} for r in fakeresults.three()]
    page = write_report(bare, tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Over time" not in page and "Provenance" in page
    Outline(page)


def test_labels_say_what_differs_and_are_unique():
    results = [fakeresults.result("ddio") for _ in range(3)]
    results[1]["spec"]["rings"] = {"rx_buffers": 512}
    results[2]["spec"]["rings"] = {"rx_buffers": 512}
    assert labels(results) == ["demo-ddio", "rx buffers 512 #1", "rx buffers 512 #2"]
    assert labels([fakeresults.result("sweeper")]) == ["DDIO + Sweeper"]
    assert labels([fakeresults.result("dma") | {"label": "mine"}]) == ["mine"]


def test_many_results_are_listed_in_rows(tmp_path):
    results = sweep_of(12)
    page = write_report(results, tmp_path / "r.html").read_text(encoding="utf-8")
    outline = Outline(page)
    assert outline.rows("result")[0][:2] == ["result", "throughput_mrps [Mrps]"]
    assert outline.rows("rx buffers 69")[0][1] == "22.4"


def test_a_directory_of_results_is_read_and_named(tmp_path):
    for key in ("dma", "sweeper"):
        (tmp_path / f"{key}.json").write_text(json.dumps(fakeresults.result(key)))
    (tmp_path / "other.json").write_text('{"not": "a result"}')
    page = write_report(tmp_path)
    assert page == tmp_path / "report.html"
    assert "DDIO + Sweeper" in page.read_text(encoding="utf-8")


def test_a_directory_without_results_is_one_sentence(tmp_path):
    with pytest.raises(HostnetError, match="no results here; give the directory"):
        write_report(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_report_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(HostnetError, match="cannot be written"):
        write_report(fakeresults.three(), tmp_path / "file" / "r.html")


@pytest.fixture
def study_directory(tmp_path):
    frame = paperworld.fig5().with_columns(pl.lit(1).alias("seed"), pl.lit(1500.0).alias("measure_us"))
    frame.write_parquet(tmp_path / "sweeper_fig5.parquet")
    units = {c: "" for c in [*paperworld.SWEPT, *paperworld.METRICS]} | {"throughput_mrps": "Mrps"}
    about = {
        "system": "sweeper", "figure": "fig5", "title": "KVS & Sweeper", "table": "sweeper_fig5", "quick": False,
        "metrics": ["throughput_mrps", "mem_bw_gbs"], "units": units, "points": 54, "cached": 0, "wall_s": 12.5,
        "engine": "0.1.0", "host": "x86_64 Linux", "written": "now",
    }  # fmt: skip
    (tmp_path / "study.json").write_text(json.dumps(about))
    specs = [{"key": "k", "point": {"system": s, "ways": None}, "spec": {"name": "kvs"}} for s in ("ddio", "ideal")]
    (tmp_path / "specs.json").write_text("".join(json.dumps(s) + "\n" for s in specs))
    return tmp_path


@pytest.mark.parametrize("file", ["study.json", "specs.json", "sweeper_fig5.parquet"])
@pytest.mark.parametrize("damage", ["", "{", "{}\n", "[3]\n", "\xff\x00"])
def test_a_damaged_study_directory_is_one_sentence_that_names_the_file(study_directory, file, damage):
    (study_directory / file).write_bytes(damage.encode("latin-1"))
    with pytest.raises(HostnetError, match=f"{file}.*[.]$"):
        write_report(study_directory)
    assert not (study_directory / "report.html").exists()


def test_a_study_directory_has_figure_points_specs_and_provenance(study_directory):
    page = write_report(study_directory).read_text(encoding="utf-8")
    assert len(page) < 3_000_000
    outline = Outline(page)
    assert sum(row[:1] == ["ideal"] for row in outline.cells) == 6
    assert outline.rows("wall time of all points [s]") == [["wall time of all points [s]", "12.5"]]
    assert "<summary>system ddio</summary>" in page and "sweeper fig5: KVS &amp; Sweeper" in page
