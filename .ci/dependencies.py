"""Checks the licences of the Python dependencies, and known vulnerabilities of all of them. `make gate` runs it.

    dependencies.py licences     every package of requirements.txt has a licence that deny.toml allows
    dependencies.py advisories   no dependency has a known vulnerability

Licences of crates are cargo-deny's business. Vulnerabilities are looked up in RustSec's database, through cargo-deny, and at
osv.dev, for PyPI's packages. Where one of them cannot be reached, a line says what is unchecked, and the exit code is 0
unless the environment has ADVISORIES=require.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Collection, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.requirements import Requirement

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
OSV = "https://api.osv.dev/v1/querybatch"
# Classifiers that stand for one licence of SPDX's list.
CLASSIFIERS = {
    "License :: OSI Approved :: Apache Software License": "Apache-2.0",
    "License :: OSI Approved :: ISC License (ISCL)": "ISC",
    "License :: OSI Approved :: MIT License": "MIT",
    "License :: OSI Approved :: Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "License :: OSI Approved :: Python Software Foundation License": "PSF-2.0",
}


def pinned(requirements: Path) -> Iterator[Requirement]:
    """The requirements that hold for this Python."""
    for line in requirements.read_text(encoding="utf-8").splitlines():
        text = line.partition("#")[0].strip()
        if text and ((found := Requirement(text)).marker is None or found.marker.evaluate()):
            yield found


def licence_of(package: str, clarified: dict[str, str]) -> str | None:
    """The SPDX expression of an installed package; None when neither its metadata nor `clarified` has one."""
    if package in clarified:
        return clarified[package]
    about = metadata.metadata(package)
    for field in ("License-Expression", "License"):
        try:
            return canonicalize_license_expression((about.get_all(field) or [""])[0])
        except InvalidLicenseExpression:
            continue
    known = {CLASSIFIERS[c] for c in about.get_all("Classifier") or () if c in CLASSIFIERS}
    return known.pop() if len(known) == 1 else None


def permits(expression: str, allowed: Collection[str]) -> bool:
    """Whether an SPDX expression can be met with the licences of `allowed`."""
    words = re.findall(r"[()]|AND|OR|[\w.+-]+(?: WITH [\w.-]+)?", expression)

    def one() -> bool:
        word = words.pop(0)
        if word != "(":
            return word in allowed
        met = either()
        words.pop(0)  # the closing parenthesis
        return met

    def all_of() -> bool:
        met = one()
        while words[:1] == ["AND"]:
            words.pop(0)
            met = one() and met
        return met

    def either() -> bool:
        met = all_of()
        while words[:1] == ["OR"]:
            words.pop(0)
            met = all_of() or met
        return met

    return either()


def licences(requirements: Path) -> int:
    """Prints each package without a licence that is allowed; 1 when there is one."""
    allowed = tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8"))["licenses"]["allow"]
    own = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["licences"]
    packages = [r.name for r in pinned(requirements)]
    refused = []
    for name in packages:
        try:
            licence = licence_of(name, own["clarify"])
        except metadata.PackageNotFoundError:
            refused.append(f"{name}: is not installed, so its licence is unknown")
            continue
        if licence is None:
            refused.append(f"{name}: names no licence of SPDX's list; read it and add it to [tool.licences.clarify]")
        elif not permits(licence, [*allowed, *own["exceptions"].get(name, ())]):
            refused.append(f"{name}: {licence} is not among the licences that deny.toml allows")
    for why in refused:
        print(f"licences: {why}.", file=sys.stderr)
    if not refused:
        print(f"licences of {len(packages)} Python packages ok")
    return int(bool(refused))


def rust_advisories() -> bool | None:
    """Whether no crate has an advisory of RustSec; None where its database cannot be had."""
    if subprocess.run(["cargo", "deny", "fetch", "db"], cwd=ROOT, capture_output=True).returncode != 0:
        return None
    check = ["cargo", "deny", "--locked", "check", "--disable-fetch", "advisories"]
    return subprocess.run(check, cwd=ROOT).returncode == 0


def python_advisories(requirements: Path, osv: str) -> bool | None:
    """Whether osv.dev knows no vulnerability of the pinned packages; None where it does not answer."""
    pins = [(r.name, next(iter(r.specifier)).version) for r in pinned(requirements)]
    asked = {"queries": [{"package": {"name": n, "ecosystem": "PyPI"}, "version": v} for n, v in pins]}
    request = urllib.request.Request(osv, json.dumps(asked).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            results: list[dict[str, Any]] = json.load(answer)["results"]
    except (OSError, ValueError, KeyError):
        return None
    if len(results) != len(pins):
        return None
    found = {f"{n} {v}": [known["id"] for known in r.get("vulns", ())] for (n, v), r in zip(pins, results)}
    for package, known in found.items():
        if known:
            print(f"advisories: {package} has {', '.join(known)}.", file=sys.stderr)
    return not any(found.values())


def advisories(requirements: Path, osv: str) -> int:
    """Prints what is known against a dependency, and what could not be asked; 1 for the one, by wish for the other, too."""
    verdicts = {"Rust": rust_advisories(), "Python": python_advisories(requirements, osv)}
    unchecked = [language for language, verdict in verdicts.items() if verdict is None]
    clean = [language for language, verdict in verdicts.items() if verdict]
    if clean:
        print(f"advisories for {' and '.join(clean)} ok")
    if unchecked:
        print(f"ADVISORIES NOT CHECKED for {' and '.join(unchecked)}: the database cannot be reached.", file=sys.stderr)
    failed = False in verdicts.values() or (bool(unchecked) and os.environ.get("ADVISORIES") == "require")
    return int(failed)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("check", choices=["licences", "advisories"])
    parser.add_argument("--requirements", type=Path, default=ROOT / "requirements.txt")
    parser.add_argument("--osv", default=OSV, help="where vulnerabilities of Python packages are looked up")
    given = parser.parse_args()
    return licences(given.requirements) if given.check == "licences" else advisories(given.requirements, given.osv)


if __name__ == "__main__":
    sys.exit(main())
