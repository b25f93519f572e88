"""What `make gate` says about dependencies: licences that are not allowed, and vulnerabilities that are known."""

import importlib.util
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / ".ci" / "dependencies.py"


@pytest.fixture(scope="module")
def program() -> ModuleType:
    spec = importlib.util.spec_from_file_location("dependencies", PROGRAM)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(PROGRAM), *words], env={**os.environ, **env}, capture_output=True, text=True
    )


def installed(folder: Path, **metadata: str) -> Path:
    """A folder that holds packages with these metadata; the file that requires them stands in it."""
    for name, lines in metadata.items():
        (folder / f"{name}-1.0.dist-info").mkdir()
        text = f"Metadata-Version: 2.4\nName: {name}\nVersion: 1.0\n{lines}\n"
        (folder / f"{name}-1.0.dist-info" / "METADATA").write_text(text)
    required = folder / "requirements.txt"
    required.write_text("# pins\n" + "".join(f"{name}==1.0\n" for name in metadata))
    return required


def licences(folder: Path, **metadata: str) -> subprocess.CompletedProcess[str]:
    return run("licences", "--requirements", str(installed(folder, **metadata)), PYTHONPATH=str(folder))


def test_the_packages_that_hostnet_pins_have_licences_that_are_allowed() -> None:
    told = run("licences")
    assert (told.returncode, told.stderr) == (0, "")


@pytest.mark.parametrize(
    "lines",
    [
        "License-Expression: MIT OR GPL-3.0-only",
        "License-Expression: (GPL-3.0-only AND MIT) OR Apache-2.0",
        "License-Expression: Apache-2.0 WITH LLVM-exception",
        "License: BSD-3-Clause",
        "License: see LICENSE\nClassifier: License :: OSI Approved :: MIT License",
    ],
)
def test_a_licence_that_deny_toml_allows_passes(tmp_path: Path, lines: str) -> None:
    told = licences(tmp_path, fake=lines)
    assert (told.returncode, told.stdout, told.stderr) == (0, "licences of 1 Python packages ok\n", "")


@pytest.mark.parametrize(
    ("lines", "licence"),
    [
        ("License-Expression: AGPL-3.0-only", "AGPL-3.0-only"),
        ("License-Expression: MIT AND GPL-3.0-only", "MIT AND GPL-3.0-only"),
        ("License-Expression: MIT AND (GPL-3.0-only OR MPL-2.0)", "MIT AND (GPL-3.0-only OR MPL-2.0)"),
        ("License-Expression: GPL-2.0-only WITH Classpath-exception-2.0", "GPL-2.0-only WITH Classpath-exception-2.0"),
    ],
)
def test_a_licence_that_deny_toml_does_not_allow_is_named(tmp_path: Path, lines: str, licence: str) -> None:
    told = licences(tmp_path, fake=lines, good="License-Expression: MIT")
    assert (told.returncode, told.stdout) == (1, "")
    assert told.stderr == f"licences: fake: {licence} is not among the licences that deny.toml allows.\n"


@pytest.mark.parametrize("lines", ["", "License: BSD\nClassifier: License :: OSI Approved :: BSD License"])
def test_a_package_without_a_licence_is_refused(tmp_path: Path, lines: str) -> None:
    told = licences(tmp_path, fake=lines)
    assert told.returncode == 1
    assert told.stderr.startswith("licences: fake: names no licence of SPDX's list; ")


def test_a_package_that_is_not_installed_is_refused(tmp_path: Path) -> None:
    (required := tmp_path / "requirements.txt").write_text("not-there-at-all==1.0\n")
    told = run("licences", "--requirements", str(required))
    assert told.returncode == 1
    assert told.stderr == "licences: not-there-at-all: is not installed, so its licence is unknown.\n"


@pytest.fixture
def osv() -> Iterator[tuple[str, list[Any]]]:
    """A server that knows a vulnerability of `fake` 1.0, in the form of osv.dev's documentation, and what it was asked."""
    asked: list[Any] = []

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            known = {"vulns": [{"id": "GHSA-0000-0000-0000", "modified": "2026-01-01T00:00:00Z"}]}
            results = [known if q["package"]["name"] == "fake" else {} for q in asked[-1]["queries"]]
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"results": results}).encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()


def test_a_vulnerable_python_package_is_named(
    program: ModuleType, osv: tuple[str, list[Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    required = installed(tmp_path, fake="", good="")
    assert program.python_advisories(required, osv[0]) is False
    assert capsys.readouterr().err == "advisories: fake 1.0 has GHSA-0000-0000-0000.\n"
    assert osv[1] == [
        {"queries": [{"package": {"name": n, "ecosystem": "PyPI"}, "version": "1.0"} for n in ("fake", "good")]}
    ]


def test_a_python_package_without_known_vulnerabilities_passes(
    program: ModuleType, osv: tuple[str, list[Any]], tmp_path: Path
) -> None:
    assert program.python_advisories(installed(tmp_path, good=""), osv[0]) is True


@pytest.mark.parametrize("wish", ["", "require"])
def test_a_database_that_cannot_be_reached_is_said_and_is_an_error_by_wish(tmp_path: Path, wish: str) -> None:
    """No `cargo` is on PATH that could fetch RustSec's, and nothing listens at the address of the other."""
    (cargo := tmp_path / "cargo").write_text("#!/bin/sh\nexit 1\n")
    cargo.chmod(0o755)
    required = installed(tmp_path, good="")
    told = run(
        "advisories",
        "--requirements",
        str(required),
        "--osv",
        "http://127.0.0.1:9",
        PATH=str(tmp_path),
        ADVISORIES=wish,
    )
    assert told.returncode == (1 if wish == "require" else 0)
    assert told.stderr == "ADVISORIES NOT CHECKED for Rust and Python: the database cannot be reached.\n"


def test_rust_version_is_at_least_what_each_dependency_needs() -> None:
    told = subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", "x86_64-unknown-linux-gnu"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    def number(version: str) -> tuple[int, ...]:
        return tuple(map(int, (version + ".0.0").split(".")[:3]))

    packages = json.loads(told.stdout)["packages"]
    own = {p["rust_version"] for p in packages if p["source"] is None}
    assert len(own) == 1
    needs = {p["name"]: p["rust_version"] for p in packages if p["rust_version"] is not None}
    assert {n: v for n, v in needs.items() if number(v) > number(*own)} == {}
