"""Claims of a test's own about tables of its own."""

from __future__ import annotations

import json
from pathlib import Path

import paperworld
import polars as pl

from hostnet.scoreboard import Result, evaluate, load

GOOD = {
    "id": "t.one",
    "text": "It holds.",
    "experiment": "mine.e.fig1",
    "role": "outcome",
    "kind": "value",
    "expected": 10.0,
    "tolerance": 0.1,
    "unit": "x",
    "eval": "SELECT value FROM mine_fig1",
}


def claims_file(folder: Path, *claims: dict[str, object]) -> Path:
    path = folder / "mine.toml"
    text = ""
    for claim in claims:
        text += "[[claim]]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in claim.items())
    path.write_text(text, encoding="utf-8")
    return path


def verdict(
    folder: Path, rows: dict[str, list[object]], query: str = "SELECT * FROM mine_fig1", **fields: object
) -> Result:
    path = claims_file(folder, GOOD | {"eval": query} | fields)
    source = paperworld.Source({"mine_fig1": pl.DataFrame(rows, strict=False)})
    (result,) = evaluate(load(path), source)
    return result
