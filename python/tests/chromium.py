"""Headless Chromium for tests, driven over its debugging pipe: no driver and no further package.

chromium.py PAGE PICTURE WIDTH HEIGHT      writes what a window of this size shows as PNG
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def found() -> str | None:
    """The browser's path; None on a machine without one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One browser with one page. ``said`` collects what the page reports: console messages and exceptions."""

    def __init__(self, program: str):
        self.home = tempfile.TemporaryDirectory(prefix="hostnet-chromium-", ignore_cleanup_errors=True)
        theirs_in, self.write = os.pipe()
        self.read, theirs_out = os.pipe()
        # Numbers beyond the two that the browser expects, so that moving them there overwrites neither.
        ends = [fcntl.fcntl(fd, fcntl.F_DUPFD, 100) for fd in (theirs_in, theirs_out)]
        self.process = subprocess.Popen(
            [
                program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe",
                "--disable-dev-shm-usage", f"--user-data-dir={self.home.name}", "about:blank",
            ],
            pass_fds=(3, 4),
            preexec_fn=lambda: (os.dup2(ends[0], 3), os.dup2(ends[1], 4)),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for fd in (*ends, theirs_in, theirs_out):
            os.close(fd)
        self.buffer, self.count, self.said, self.events = b"", 0, [], []
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        self.session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    session: str | None = None

    def call(self, method: str, params: dict[str, Any] | None = None, seconds: float = 60) -> dict[str, Any]:
        """One command and its answer."""
        self.count += 1
        message: dict[str, Any] = {"id": self.count, "method": method, "params": params or {}}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + seconds
        while True:
            answer = self._next(end, method)
            if answer.get("id") == self.count:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]

    def _next(self, end: float, of: str) -> dict[str, Any]:
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.read], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"{of}: the browser does not answer"
            more = os.read(self.read, 1 << 20)
            assert more, f"{of}: the browser has ended"
            self.buffer += more
        raw, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(raw)
        method, params = message.get("method"), message.get("params", {})
        self.events.append(method)
        if method == "Runtime.exceptionThrown":
            self.said.append(params["exceptionDetails"].get("exception", {}).get("description") or str(params))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.said.append(str(params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.said.append(params["entry"]["text"])
        return message

    def show(self, page: Path, width: int, height: int, theme: str = "light") -> None:
        """Open a page in a window of this size, with the system's theme."""
        self.said.clear()
        self.events.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
        )
        self.call("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]})
        self.call("Page.navigate", {"url": page.resolve().as_uri()})
        end = time.monotonic() + 60
        while "Page.loadEventFired" not in self.events:
            self._next(end, "Page.navigate")
        # Curves are drawn when they come near the screen.
        self.run("new Promise(async (done) => { for (let y = 0; y < document.body.scrollHeight; y += 500) { scrollTo(0, y); "
                 "await new Promise((r) => setTimeout(r, 20)); } scrollTo(0, 0); setTimeout(done, 50); })")  # fmt: skip

    def run(self, script: str) -> Any:
        """The value of an expression on the page; a promise is awaited."""
        answer = self.call("Runtime.evaluate", {"expression": script, "returnByValue": True, "awaitPromise": True})
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def screenshot(self, out: Path, whole: bool = True) -> None:
        """The page as PNG, with what lies below the window."""
        shot = self.call("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": whole})
        out.write_bytes(base64.b64decode(shot["data"]))

    def pdf(self) -> bytes:
        """The printed page."""
        return base64.b64decode(
            self.call("Page.printToPDF", {"printBackground": True, "preferCSSPageSize": True})["data"]
        )

    def close(self) -> None:
        """End the browser."""
        self.session = None
        try:
            self.call("Browser.close", seconds=10)
        except (AssertionError, OSError):
            self.process.kill()
        self.process.wait(timeout=20)
        for fd in (self.read, self.write):
            os.close(fd)
        self.home.cleanup()


if __name__ == "__main__":
    at, picture, width, height = sys.argv[1:]
    program = found() or sys.exit("no Chromium on this machine")
    browser = Browser(program)
    browser.show(Path(at), int(width), int(height))
    browser.screenshot(Path(picture), whole=False)
    browser.close()
