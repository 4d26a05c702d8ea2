"""A page read back: its tables, lists and drawings, as what a reader sees there."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

__all__ = ["Elements", "ReadPage", "text_of"]


class Elements(HTMLParser):
    """What a browser makes of markup: elements with their attributes, and text; a comment fails."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, list[tuple[str, str | None]]]] = []
        self.text = ""
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element begins."""
        self.found.append((tag, attrs))

    def handle_data(self, data: str) -> None:
        """Text."""
        self.text += data

    def handle_comment(self, data: str) -> None:
        """No markup of ours has one."""
        raise AssertionError(data)

    handle_pi = unknown_decl = handle_comment


def text_of(element: ET.Element) -> str:
    """All text in an element, with single spaces."""
    return " ".join("".join(element.itertext()).split())


class ReadPage:
    """The content of a page, which is good XML but for its first line."""

    def __init__(self, page: str) -> None:
        first, _, rest = page.partition("\n")
        assert first == "<!doctype html>"
        self.root = ET.fromstring(rest)  # noqa: S314 - a page that we have just made

    def all(self, tag: str, look: str = "") -> Iterator[ET.Element]:
        """Every element of this name, and class if one is given."""
        return (found for found in self.root.iter(tag) if not look or look in found.get("class", "").split())

    def section(self, name: str) -> ET.Element:
        """The section under this heading."""
        return next(found for found in self.all("section") if found.get("aria-labelledby") == name)

    def rows(self, section: str, look: str = "") -> list[list[str]]:
        """The rows of all tables of a section, cell by cell, without the headings."""
        tables = [t for t in self.section(section).iter("table") if not look or look in t.get("class", "").split()]
        bodies = [body for table in tables for body in table.iter("tbody")]
        return [[text_of(cell) for cell in row] for body in bodies for row in body]

    @property
    def facts(self) -> dict[str, str]:
        """The run in numbers, as the head of the page tells them."""
        header = next(self.all("header"))
        return {text_of(fact[0]): text_of(fact[1]) for fact in next(header.iter("dl"))}

    @property
    def columns(self) -> list[tuple[int, str, int, str]]:
        """Number, letter, count and state of the batches in the strip, as they are said."""
        tiles = next(self.all("div", "tiles"))
        said = [column.split() for tile in tiles for column in tile.get("aria-label", "").split(", ")]
        return [(int(number[1:]), letter, int(count), state) for number, letter, count, state in said]

    @property
    def drawn(self) -> list[tuple[str, int]]:
        """Letter and count of the batches in the strip, as they are drawn."""
        texts = [text for tile in next(self.all("div", "tiles")) for text in tile.iter("text")]
        letters = [text_of(text) for text in texts if text.get("class", "").startswith("letter")]
        counts = [int(text_of(text)) for text in texts if text.get("class", "").startswith("count")]
        return list(zip(letters, counts, strict=True))
