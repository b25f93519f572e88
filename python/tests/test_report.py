"""The HTML report: complete, self-contained, well-formed, and its numbers are the results' numbers."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html import unescape
from html.parser import HTMLParser
from importlib.resources import files

import fakeresults
import paperworld
import polars as pl
import pytest

from hostnet import HostnetError
from hostnet.output import directory
from hostnet.report import labels, write_report
from hostnet.report.charts import spread

VOID = {"meta", "wbr", "br", "link", "img", "input", "hr"}


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
        "The host", "What differs in the scenarios", "Comparison", "Latency", "DRAM accesses per request, by who caused them",
        "Over time", "Domains", "Search for the peak", "Every metric", "Resolved specifications", "Provenance",
    ]  # fmt: skip


def test_nothing_is_fetched(demo):
    assert not re.search(r"<link|<iframe|@import|\bsrc=|\burl\((?!#)", demo)
    outside = set(re.findall(r"https?://[^\s\"'<)]+", demo))
    # XML namespaces, and where the plotting library comes from
    known = ("http://www.w3.org/", "https://www.w3.org/", "https://github.com/leeoniya/uPlot")
    assert all(u.startswith(known) for u in outside), outside
    assert all(ref.startswith("#") for ref in re.findall(r'<[^>]*href="([^"]*)"', demo))


def test_the_browser_runs_the_scripts_of_the_page_alone(demo):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', demo)[1]
    allowed = set(re.findall(r"'sha256-([^']+)'", policy))
    scripts = re.findall(r"<script>(.*?)</script>", demo, re.S)
    digests = {base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts}
    assert digests == allowed and len(scripts) == 3 and "'unsafe-inline'" not in policy.partition("script-src")[2]
    assert "default-src 'none'" in policy


def test_a_report_is_small_and_carries_the_licence_of_its_library(demo):
    assert len(demo) < 3_000_000
    notice = "Permission is hereby granted, free of charge"
    assert notice in (files("hostnet") / "report/assets/uPlot-LICENSE.txt").read_text(encoding="utf-8")
    assert "uPlot 1.6.32, copyright (c) 2022 Leon Sorokin, MIT licence" in demo
    assert "leeoniya/uPlot (v1.6.32)" in demo, "the version in the notice is the library's"


def test_the_page_is_well_formed_and_labelled(demo):
    outline = Outline(demo)
    ids = [a["id"] for _, a in outline.tags if "id" in a]
    assert len(ids) == len(set(ids))
    pictures = [a for tag, a in outline.tags if tag == "svg"]
    charts = [a for tag, a in outline.tags if tag == "figure" and (a.get("class") or "").startswith("chart")]
    assert len(pictures) == 6 and len(charts) == 5, "a wide and a narrow picture for each result"
    assert all(a.get("role") == "img" and a.get("aria-label") for a in pictures + charts)
    plots = [a["data-chart"] for _, a in outline.tags if "data-chart" in a]
    assert set(plots) <= set(ids)
    assert all(a.get("scope") in ("row", "col") for tag, a in outline.tags if tag == "th")
    used = set(re.findall(r'url\(#([^)]+)\)|xlink:href="#([^"]+)"', demo))
    assert {a or b for a, b in used} <= set(ids)


def test_every_chart_shows_its_unit(demo):
    titles = re.findall(r"<figcaption>(.*?)</figcaption>", demo)
    assert titles == [
        "Request latency [µs]", "DRAM access latency [ns]", "throughput [Mrps]", "DRAM bandwidth [GB/s]",
        "receive buffers in the LLC [lines]",
    ]  # fmt: skip


def test_the_comparison_shows_values_and_changes(demo):
    (head,) = [row for row in Outline(demo).rows("metric") if "change" in row][:1]
    assert head == ["metric", "unit", "DMA", "DDIO, ways 2", "change", "", "DDIO + Sweeper, ways 2", "change", ""]
    row = Outline(demo).rows("throughput_mrps")[0]
    assert row[1:] == ["Mrps", "14.9", "22.4", "+50.3 %", "better", "29.8", "+100.0 %", "better"]


def test_every_row_of_a_table_has_a_cell_for_every_column(demo):
    for table in re.findall(r"<table>.*?</table>", demo, re.S):
        widths = {len(row) for row in Outline(table).cells}
        assert len(widths) == 1, table[:200]


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
    assert said["the-host"] == [("24", "120")] and said["latency"] == said["over-time"] == [("8", "120")]
    assert said["dram-accesses-per-request-by-who-caused-them"] == [("40", "120")]
    assert said["resolved-specifications"] == [("100", "120")]
    few = write_report(sweep_of(8), tmp_path / "few.html").read_text(encoding="utf-8")
    assert "results are shown here" not in few and len(page) < 3_000_000


def test_a_report_of_a_thousand_results_stays_small(tmp_path):
    page = write_report(sweep_of(1_000), tmp_path / "r.html")
    assert page.stat().st_size < 3_000_000
    text = page.read_text(encoding="utf-8")
    assert "500 of 1000 results are shown here; the files beside this report hold them all." in text


def test_specifications_after_the_first_are_what_differs(tmp_path):
    results = sweep_of(3)
    page = write_report(results, tmp_path / "r.html").read_text(encoding="utf-8")
    shown = [json.loads(unescape(t)) for t in re.findall(r"<pre>(.*?)</pre>", page, re.S)]
    assert shown == [results[0]["spec"], {"rings.rx_buffers": 65}, {"rings.rx_buffers": 66}]


def test_curves_that_stand_for_many_span_them_all():
    assert spread("abcdefghijklmnopqrstuvwxyz") == list("aehlosvz")


def test_results_that_differ_in_their_seed_alone_are_named_by_it():
    results = [fakeresults.result("ddio") | {"label": ""} for _ in range(2)]
    for seed, r in enumerate(results):
        r["spec"]["seed"] = seed
    assert labels(results) == ["seed 0", "seed 1"]


def test_a_report_leads_with_what_matters_for_its_scenario(tmp_path):
    r = fakeresults.result("dma")
    r["metrics"] = {"c2m_gbs": 14.8, "p2m_gbs": 7.3, "mem_bw_gbs": 37.9, "lfb_occ": 11.0, "iio_write_occ": 92.0}
    page = write_report([r], tmp_path / "r.html").read_text(encoding="utf-8")
    tiles = re.findall(r'<div class="tile" title="[^"]*"><b>(.*?)<small> (.*?)</small></b><span>(.*?)</span>', page)
    assert [(value, unit, name.replace("<wbr>", "")) for value, unit, name in tiles] == [
        ("14.8", "GB/s", "c2m_gbs"),
        ("7.3", "GB/s", "p2m_gbs"),
        ("37.9", "GB/s", "mem_bw_gbs"),
        ("11", "lines", "lfb_occ"),
        ("92", "lines", "iio_write_occ"),
    ]


def test_a_domain_without_a_limit_says_so(tmp_path):
    r = fakeresults.result("dma")
    r["tables"]["domains"]["rows"][0][1] = 2**32 - 1
    page = write_report([r], tmp_path / "r.html").read_text(encoding="utf-8")
    assert Outline(page).rows("LFB")[0][1:3] == ["", "unlimited"] and "4294967295" not in page
    assert Outline(page).rows("RX ring core 0")[0][1:3] == ["1 %", "1024"], "8.1 of 1024"


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


EVIL = '</script><img src=x onerror="alert(1)">\'&amp;'


def test_no_name_of_a_user_becomes_markup(tmp_path):
    results = fakeresults.three()
    for i, r in enumerate(results):
        r["label"] = f"{EVIL}{i}"
        r["spec"] |= {
            "name": EVIL,
            "tenant": [{"name": EVIL, "cores": 2, "app": {"kind": EVIL}, "stack": EVIL, "llc_ways": "0-1"}],
            "peripheral": [{"kind": "ethernet", "name": EVIL, "link": EVIL}, {"kind": EVIL, "op": EVIL}],
        }
        r["spec"]["platform"] |= {"name": EVIL, "description": EVIL, "caches": {"llc": {"ways": 4, "size": EVIL}}}
        r["warnings"] = [EVIL]
        r["tables"]["drops"] = fakeresults.table(
            "where, why, count packets, first_us us, last_us us", [[EVIL, EVIL, 3, 0.0, 1.0]]
        )
        r["tables"]["paths"] = fakeresults.table("path, segment, mean_ns ns", [["c2m_read", EVIL, 3.0]])
        r["tables"]["domains"]["rows"].append([EVIL, 4, 1.0, 2, 1.0, 1.0, 1.0])
    for several in (results[:1], results, results * 3):
        page = write_report(several, tmp_path / "x.html", replace=True).read_text(encoding="utf-8")
        outline = Outline(page)
        assert "<img" not in page and all(tag != "img" for tag, _ in outline.tags)
        assert not [a for _, a in outline.tags if any(key.startswith("on") for key in a)]
        for text in re.findall(r'<script type="application/json" id="[^"]*">(.*?)</script>', page, re.S):
            assert json.loads(text)["curves"]


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
    assert labels([fakeresults.result("sweeper")]) == ["demo-sweeper"]
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


def test_two_sources_stand_side_by_side_under_their_names(tmp_path):
    for key in ("dma", "sweeper"):
        (tmp_path / f"{key}-run").mkdir()
        (tmp_path / f"{key}-run" / "result-0000.json").write_text(json.dumps(fakeresults.result(key)))
    both = [tmp_path / "dma-run", tmp_path / "sweeper-run" / "result-0000.json"]
    with pytest.raises(HostnetError, match="several sources needs the name of the HTML file; give --out FILE"):
        write_report(both)
    page = write_report(both, tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<title>dma-run and result-0000</title>" in page and page.count('<div class="pair">') == 1
    (head,) = [row for row in Outline(page).rows("metric") if "change" in row][:1]
    assert head == ["metric", "unit", "dma-run", "result-0000", "change", ""]
    assert Outline(page).rows("placement.policy") == [["placement.policy", "dma", "ddio"]]


def test_the_report_of_a_file_lies_beside_it(tmp_path):
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(fakeresults.result("dma")))
    assert write_report(file) == tmp_path / "report.html"


def test_a_study_is_not_compared(study_directory, tmp_path):
    with pytest.raises(HostnetError, match="is a study, and only results are compared"):
        write_report([study_directory, study_directory], tmp_path / "r.html")


def test_a_directory_without_results_is_one_sentence(tmp_path):
    with pytest.raises(HostnetError, match="no results here; give the directory"):
        write_report(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "damage, says",
    [
        (lambda f: f.write_text(f.read_text()[:1000]), "is damaged, as it is not JSON"),
        (lambda f: f.write_text(""), "is damaged, as it is not JSON"),
        (lambda f: f.unlink(), "is missing, and the command `hostnet sweep` wrote it; run it again"),
    ],
)
@pytest.mark.parametrize("many", [1, 3])
def test_a_result_that_is_lost_is_named_and_nothing_is_left_out(tmp_path, damage, says, many):
    out = tmp_path / "o"
    with directory(out, "sweep") as folder:
        for i in range(many):
            (folder / f"sweep-{i:04}.json").write_text(json.dumps(fakeresults.result("dma")))
    write_report([out], tmp_path / "r.html")
    lost = out / f"sweep-{many - 1:04}.json"
    damage(lost)
    with pytest.raises(HostnetError, match=re.escape(f"{lost}: {says}")):
        write_report([out], tmp_path / "s.html")
    assert not (tmp_path / "s.html").exists()


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
    assert "<summary>system ddio</summary>" in page and "Curves against what was swept" in page
    assert "sweeper fig5: KVS &amp; Sweeper" in page
