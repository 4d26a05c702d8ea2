"""The colours of loopscope, in light and dark: what pages and pictures are drawn in.

The four state colours keep apart for every kind of colour blindness and have at least 4.5 : 1 of contrast on their
background; green is not used. A shape or a word says it first, colour repeats it.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["DARK", "LIGHT", "Palette"]


class Palette(NamedTuple):
    """Colours of one theme, as hex."""

    background: str
    text: str
    dim: str
    ahead: str
    ok: str
    repeat: str
    warn: str
    stop: str
    cursor: str
    """Background of the selected column or row."""
    line: str
    """Borders."""
    panel: str
    """Background of what stands out from the page."""


DARK = Palette(
    background="#121212",
    text="#E8EAED",
    dim="#8A9096",
    ahead="#7A7F85",
    ok="#9AA0A6",
    repeat="#56B4E9",
    warn="#F0C000",
    stop="#FF6A3D",
    cursor="#33383D",
    line="#3C4043",
    panel="#1E1F21",
)
LIGHT = Palette(
    background="#FAFAFA",
    text="#202124",
    dim="#5F6368",
    ahead="#6F747A",
    ok="#5F6368",
    repeat="#0072B2",
    warn="#9A6700",
    stop="#8E0152",
    cursor="#DDE1E6",
    line="#C4C8CC",
    panel="#FFFFFF",
)
