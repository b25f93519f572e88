"""A page whose commands are run and whose figures are compared with what they print."""

import re
from pathlib import Path

import pytest


class Page:
    """A page of ``docs``."""

    def __init__(self, name: str):
        self.root = Path(__file__).parents[2]
        self.text = (self.root / "docs" / name).read_text(encoding="utf-8")

    def blocks(self, language: str) -> list[str]:
        return re.findall(rf"^```{language}\n(.*?)^```", self.text, re.MULTILINE | re.DOTALL)

    def table(self, heading: str) -> list[list[str]]:
        """The cells below the table's first row, which is `heading`, and below its rule."""
        rows = self.text.split(heading, 1)[1].split("\n\n", 1)[0].strip().splitlines()[1:]
        return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]

    def shown(self) -> list[tuple[list[str], list[str]]]:
        """Commands, and the lines of output below them: none where a table of the page has the figures."""
        found = re.findall(r"^```sh\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", self.text, re.MULTILINE | re.DOTALL)
        return [(commands.replace("\\\n", "").splitlines(), lines.splitlines()) for commands, lines in found]


def number(token: str) -> float | None:
    try:
        return float(token.replace(",", ""))
    except ValueError:
        return None


def near(shown: str, value: float) -> bool:
    """Whether `shown` is `value`, rounded to as many digits."""
    percent = shown.endswith(" %")
    said = number(shown.removesuffix(" %").split()[0])
    return said is not None and said / (100 if percent else 1) == pytest.approx(value, rel=0.03, abs=1e-3)


def prints(output: str, line: str) -> bool:
    """Whether the words of `line` follow each other somewhere in `output`, its numbers within 3 %."""

    def same(shown: str, word: str) -> bool:
        value = number(word)
        return shown == word or (value is not None and near(shown, value))

    # Pages leave out the intervals beside numbers.
    wanted, words = ([w.rstrip(",") for w in text.split() if not w.startswith("±")] for text in (line, output))
    at = range(len(words) - len(wanted) + 1)
    return any(all(map(same, wanted, words[i : i + len(wanted)])) for i in at)
