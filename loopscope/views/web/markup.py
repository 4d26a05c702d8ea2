"""HTML and SVG that cannot be broken out of: text becomes markup in one place, and is made inert and escaped there.

`tag` takes text and markup apart by their types, so that forgetting to escape is not possible; every element is closed,
so that the same pieces are good HTML and good XML.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TypeAlias

from loopscope.recording.inert import inert

__all__ = ["Attribute", "Markup", "joined", "safe", "tag"]

Attribute: TypeAlias = str | float | None
_EMPTY = frozenset({"br", "circle", "img", "meta", "path", "rect"})


class Markup(str):
    """Text that is markup already, and ours."""

    __slots__ = ()


def safe(text: str, limit: int | None = None) -> Markup:
    """Any text as markup that shows it: what is not a visible character as an escape, and nothing of it as a tag.

    Args:
        text: from anywhere.
        limit: characters that are shown at most.
    """
    return Markup(escape(inert(text, limit)))


def joined(parts: Iterable[str]) -> Markup:
    """Pieces one after the other; those that are not markup become it."""
    return Markup("".join([part if isinstance(part, Markup) else safe(part) for part in parts]))


def tag(name: str, /, *inside: str, **attributes: Attribute) -> Markup:
    """An element.

    Args:
        name: of the element.
        inside: text, and markup.
        attributes: `_` stands for `-`, one at the end is dropped (`class_`); those that are None are left out, numbers
            are written with two decimals at most.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{written}/>" if name in _EMPTY else f"<{name}{written}>{joined(inside)}</{name}>")


def _value(value: str | float) -> str:
    return safe(value) if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
