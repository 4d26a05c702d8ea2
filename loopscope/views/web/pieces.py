"""What the panels of a page are made of: sections, tables, cells, signs, and lines of presenters with their links.

Tables have headings for every row and column, drawings say what they show in words, and references lead to the row of
their batch where the page has one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from loopscope.session.session import Session
from loopscope.views.model import Line
from loopscope.views.web import strip
from loopscope.views.web.markup import Markup, joined, tag

__all__ = ["Told", "cell", "facts", "note", "panel", "reference", "sign", "spans", "table"]


class Told(NamedTuple):
    """A session, and the batches that the page has a row of."""

    session: Session
    rows: Collection[int]


def panel(name: str, title: str, *inside: str, note: str = "") -> Markup:
    """A section under its heading.

    Args:
        name: what its heading is called by links.
        title: the heading.
        inside: what it shows.
        note: beside the heading.
    """
    beside = [" ", tag("span", note, class_="note")] if note else []
    return tag("section", tag("h2", title, *beside, id=name), *inside, aria_labelledby=name)


def sign(state: str) -> Markup:
    """The sign of a state in a line of text; the text says it too."""
    drawn = strip.shape(state, 6, 6)
    return tag("svg", drawn, class_="sign", viewBox="0 0 12 12", width=12, height=12, aria_hidden="true")


def table(caption: str, heads: Sequence[tuple[str, str]], rows: Sequence[Markup], look: str | None = None) -> Markup:
    """A table; each head is its text, and the class of its column."""
    head = tag("tr", *(tag("th", text, scope="col", class_=column or None) for text, column in heads))
    title = tag("caption", caption, class_="hidden")
    return tag("table", title, tag("thead", head), tag("tbody", *rows), class_=look)


def cell(*inside: str, look: str | None = None) -> Markup:
    """A cell that is no heading."""
    return tag("td", *inside, class_=look)


def note(text: str, columns: int) -> Markup:
    """A row that tells of what has none."""
    return tag("tr", tag("td", f"… {text}", colspan=columns), class_="gap")


def reference(number: int, rows: Collection[int]) -> Markup:
    """A batch, with the way to its row where there is one."""
    return tag("a", f"#{number}", href=f"#b{number}") if number in rows else joined([f"#{number}"])


def spans(line: Line, rows: Collection[int]) -> Markup:
    """A line of a presenter, with its references as links."""
    pieces: list[Markup] = []
    for span in line:
        look = None if span.style == "text" else f"s-{span.style}"
        if span.link in rows:
            pieces.append(tag("a", span.text, class_=look, href=f"#b{span.link}"))
        else:
            pieces.append(tag("span", span.text, class_=look) if look else joined([span.text]))
    return joined(pieces)


def facts(values: Sequence[tuple[str, str]]) -> Markup:
    """Names and values side by side."""
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in values), class_="facts")
