"""The report in a real browser: three widths, both themes, paper; nothing fails, and nothing is clipped."""

from __future__ import annotations

import chromium
import fakeresults
import pytest
from test_report import sweep_of
from test_report_picture import one

from hostnet.report import write_report

pytestmark = pytest.mark.skipif(
    chromium.found() is None, reason="no Chromium on this machine; install `chromium` to test the report in it"
)

#: Elements that end beyond the window, and text of pictures beyond its drawing, but for what scrolls on purpose.
CLIPPED = """(() => {
  const found = [], width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) found.push(`the page is ${document.documentElement.scrollWidth} wide`);
  for (const e of document.querySelectorAll("body *")) {
    if (e.closest(".scroll, pre, .u-wrap, title")) continue;
    const r = e.getBoundingClientRect();
    if (r.width && (r.right > width + 1 || r.left < -1)) found.push(`${e.tagName}.${e.className}: ${r.left} to ${r.right}`);
  }
  for (const svg of document.querySelectorAll("svg.host")) {
    const box = svg.getBoundingClientRect();
    if (!box.width) continue;
    for (const t of svg.querySelectorAll("text")) {
      const r = t.getBoundingClientRect();
      if (r.left < box.left - 1 || r.right > box.right + 1 || r.top < box.top - 1 || r.bottom > box.bottom + 1) found.push(t.textContent);
      for (const b of svg.querySelectorAll("rect.box")) {
        const q = b.getBoundingClientRect(), inside = r.left >= q.left - 1 && r.left < q.right && r.top >= q.top - 1 && r.top < q.bottom;
        if (inside && (r.right > q.right + 1 || r.bottom > q.bottom + 1)) found.push(`${t.textContent} leaves its box`);
      }
    }
  }
  return found;
})()"""


@pytest.fixture(scope="module")
def browser():
    opened = chromium.Browser(chromium.found())
    yield opened
    opened.close()


def wordy():
    """A result whose names are longer than any box is wide."""
    r = one()
    for part in (*r["spec"]["tenant"], r["spec"]["peripheral"][0]):
        part["name"] = (
            f"{part['name']} with a name that takes more room than its box has, even on the widest screen there is"
        )
    r["tables"]["drops"]["rows"][0][1] = (
        "Nothing was fast enough to take the packets in the order in which they came. " * 9
    )
    return r


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    made = {
        "one": [fakeresults.result("ddio") | {"warnings": ["the caches were still filling"]}],
        "mix": [one()],
        "wordy": [wordy()],
    }
    made |= {"pair": fakeresults.three()[:2], "three": fakeresults.three(), "many": sweep_of(12)}
    return {name: write_report(results, folder / f"{name}.html") for name, results in made.items()}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1024, 1920])
@pytest.mark.parametrize("name", ["one", "mix", "wordy", "pair", "three", "many"])
def test_nothing_fails_and_nothing_is_clipped(browser, pages, name, width, theme):
    browser.show(pages[name], width, 900, theme)
    assert browser.run("document.documentElement.dataset.theme") == theme
    assert browser.run(CLIPPED) == []
    assert browser.said == []
    shown = "[...document.querySelectorAll('svg.host')].filter((s) => s.getBoundingClientRect().width).map((s) => s.classList[1])"
    narrow = width < 760 or name == "pair"
    assert set(browser.run(shown)) == {"narrow" if narrow else "wide"}
    assert browser.run("document.querySelectorAll('.plot').length == document.querySelectorAll('.plot .uplot').length")


def test_the_theme_is_the_readers_choice(browser, pages):
    browser.show(pages["one"], 1024, 900, "light")
    before = browser.run("getComputedStyle(document.body).backgroundColor")
    browser.run("document.getElementById('theme').click()")
    assert browser.run("document.documentElement.dataset.theme") == "dark"
    assert browser.run("getComputedStyle(document.body).backgroundColor") != before
    assert browser.said == []


ROWS = "[...document.querySelectorAll('#comparison tbody tr')]"


def test_tables_sort_by_numbers_and_filter(browser, pages):
    browser.show(pages["three"], 1024, 900)
    values = f"{ROWS}.map((r) => r.cells[2].dataset.v).filter(Boolean).map(Number)"
    unsorted = browser.run(values)
    head = "document.querySelectorAll('#comparison thead button')[2]"
    browser.run(f"{head}.click()")
    assert browser.run(values) == sorted(unsorted, reverse=True)
    browser.run(f"{head}.click()")
    assert browser.run(values) == sorted(unsorted)
    browser.run(f"{head}.click()")
    assert browser.run(values) == unsorted, "the third click restores the order of importance"
    field = "document.querySelector('#comparison .filter')"
    browser.run(f"{field}.value = 'lat_ us'; {field}.dispatchEvent(new Event('input'))")
    left = browser.run(f"{ROWS}.filter((r) => !r.hidden).map((r) => r.cells[0].textContent)")
    assert set(left) == {"lat_p50_us", "lat_p99_us", "lat_p999_us"}
    units = browser.run(f"{ROWS}.filter((r) => !r.hidden).map((r) => r.cells[1].textContent)")
    assert units == ["us"] * 3


def test_a_reader_chooses_the_picture_and_reads_values_off_curves(browser, pages):
    browser.show(pages["three"], 1024, 900)
    visible = (
        "[...document.querySelectorAll('.pictures > article')].filter((a) => a.offsetHeight).map((a) => a.dataset.name)"
    )
    assert browser.run(visible) == ["DMA"]
    browser.run("document.querySelectorAll('.pictures .tabs button')[2].click()")
    assert browser.run(visible) == ["DDIO + Sweeper, ways 2"]
    place = browser.run("(() => { const o = document.querySelector('#over-time .u-over'); o.scrollIntoView({block: 'center'}); "
                        "const r = o.getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2]; })()")  # fmt: skip
    browser.call("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": place[0], "y": place[1]})
    values = browser.run(
        "[...document.querySelectorAll('#over-time .chart .u-value')].slice(0, 4).map((v) => v.textContent)"
    )
    # The curves are 14.9, 22.4 and 29.8 Mrps with a swing of 5 %.
    assert [round(float(v)) in range(low, high) for v, low, high in zip(values[1:], (14, 21, 28), (17, 25, 33))] == [
        True
    ] * 3


def test_paper_is_light_and_shows_every_curve(browser, pages):
    browser.show(pages["three"], 1024, 900, "dark")
    pdf = browser.pdf()
    assert pdf.startswith(b"%PDF-") and pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page/") <= 12
    assert browser.said == []
    assert browser.run("document.documentElement.dataset.theme") == "dark", "the screen is as it was"
    assert browser.run("document.body.classList.contains('printing')") is False
