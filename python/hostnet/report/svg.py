"""Drawing in SVG without a browser: shapes, and text that is cut where its box ends."""

from __future__ import annotations

from html import escape

#: Widths of letters over the font size in DejaVu Sans, the widest of the usual system fonts; _OTHER for the rest.
_WIDTHS = {
    letter: width / 100
    for width, letters in {
        29: "ijlI'J|", 32: " .,·", 35: "f/:;-", 40: "t()[]!", 42: "r", 53: "sz", 55: "c", 58: "kLF", 60: "vxyP", 62: "aeoEYT",
        64: "bdghnpqu0123456789S", 69: "ABKRVXZ", 71: "C", 76: "DHNU", 79: "GOQ", 83: "w", 87: "M", 96: "%", 98: "m", 100: "W",
    }.items()
    for letter in letters
}  # fmt: skip
_OTHER = 0.8
_BOLD = 1.14


def width_of(text: str, size: float, bold: bool = False) -> float:
    """An upper bound of a text's width in the usual fonts."""
    return sum(_WIDTHS.get(c, _OTHER) for c in text) * size * (_BOLD if bold else 1.0)


def cut(text: str, width: float, size: float, bold: bool = False) -> str:
    """The text, or as much of its beginning as fits, with an ellipsis."""
    if width_of(text, size, bold) <= width:
        return text
    while text and width_of(text + "…", size, bold) > width:
        text = text[:-1]
    return text.rstrip() + "…"


def wrapped(text: str, width: float, size: float, most: int = 3) -> list[str]:
    """The text in lines that fit; the last of ``most`` lines is cut."""
    lines: list[str] = []
    line = ""
    words = text.split()
    for i, word in enumerate(words):
        longer = f"{line} {word}".strip()
        if not line or width_of(longer, size) <= width:
            line = longer
            continue
        if len(lines) == most - 1:
            line = " ".join([line, *words[i:]])
            break
        lines.append(line)
        line = word
    return [*lines, cut(line, width, size)] if line else lines


class Drawing:
    """SVG elements one after the other."""

    def __init__(self) -> None:
        self.elements: list[str] = []

    def add(self, element: str) -> None:
        """One element, as markup."""
        self.elements.append(element)

    def rect(self, x: float, y: float, w: float, h: float, of: str, radius: float = 0, tip: str = "") -> None:
        """A rectangle of a class, with a tip that a pointer shows."""
        shape = f'<rect class="{of}" x="{x:.1f}" y="{y:.1f}" width="{max(w, 0):.1f}" height="{h:.1f}"'
        shape += f' rx="{radius:g}"' if radius else ""
        self.add(f"{shape}><title>{escape(tip)}</title></rect>" if tip else f"{shape}/>")

    def text(
        self,
        x: float,
        y: float,
        text: str,
        of: str = "",
        *,
        size: float = 11,
        width: float | None = None,
        anchor: str = "start",
        bold: bool = False,
    ) -> None:
        """A line of text, cut to ``width``; the whole text is its tip where it is cut."""
        shown = text if width is None else cut(text, width, size, bold)
        how = f' class="{of}"' if of else ""
        how += f' text-anchor="{anchor}"' if anchor != "start" else ""
        how += ' font-weight="600"' if bold else ""
        tip = f"<title>{escape(text)}</title>" if shown != text else ""
        self.add(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}"{how}>{escape(shown)}{tip}</text>')

    def polygon(self, points: list[tuple[float, float]], of: str, tip: str = "") -> None:
        """A filled polygon of a class."""
        where = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        inner = f"<title>{escape(tip)}</title>" if tip else ""
        self.add(f'<polygon class="{of}" points="{where}">{inner}</polygon>')

    def svg(self, width: float, height: float, of: str, label: str) -> str:
        """The whole drawing."""
        return (
            f'<svg class="{of}" viewBox="0 0 {width:g} {height:.0f}" role="img" aria-label="{escape(label)}" '
            f'xmlns="http://www.w3.org/2000/svg">{"".join(self.elements)}</svg>'
        )
