"""The help: every key in groups, and what the glyphs mean. No prose."""

from __future__ import annotations

from loopscope.views.cells import cell_len
from loopscope.views.glyphs import GLYPH, TONE
from loopscope.views.model import Line, Span, crop, fit, line_width
from loopscope_widgets.terminal.keymap import GLOBAL, LIST, Key

__all__ = ["lines"]

_COLUMN = 60
"""Cells of one column of keys; two stand side by side where they have room."""
_KEYS = 14
_MEANING = {
    "new": "a batch that is new in its window",
    "repeat": "the same calls came before",
    "warn": "the model is warned",
    "stop": "the calls are removed, the run ends",
    "ahead": "after the cursor",
}
_OTHERS = (
    ("▼", "the cursor"),
    ("┊", "where the warning is"),
    ("╋", "the same, passed"),
    ("┃", "where the stop is"),
    ("▶", "the scope that is shown"),
)


def lines(width: int, height: int) -> list[Line]:  # noqa: ARG001 - the pane scrolls
    """The whole help."""
    groups: dict[str, list[Key]] = {}
    for key in (*GLOBAL, *LIST):
        groups.setdefault(key.group, []).append(key)
    blocks = [_block(name, [(key.shown, key.help) for key in keys]) for name, keys in groups.items()]
    glyphs: Line = (Span("Glyphs", "title"),)
    blocks.append([glyphs, *_glyphs()])
    if width < 2 * _COLUMN:
        return [crop(line, width) for block in blocks for line in (*block, ())]
    half = (sum(map(len, blocks)) + len(blocks)) / 2
    left: list[Line] = []
    right: list[Line] = []
    for block in blocks:
        (left if len(left) < half else right).extend([*block, ()])
    rows = max(len(left), len(right))
    left += [()] * (rows - len(left))
    right += [()] * (rows - len(right))
    return [
        (*crop(a, _COLUMN), Span(" " * (_COLUMN - min(line_width(a), _COLUMN))), *b)
        for a, b in zip(left, right, strict=True)
    ]


def _block(name: str, entries: list[tuple[str, str]]) -> list[Line]:
    rows: list[Line] = [(Span(f" {fit(keys, _KEYS)}", "key"), Span(said)) for keys, said in entries]
    return [(Span(name, "title"),), *rows]


def _glyphs() -> list[Line]:
    states: list[Line] = [
        (Span(" "), Span(GLYPH[state], TONE[state]), Span(" " * (_KEYS - 1)), Span(said))
        for state, said in _MEANING.items()
    ]
    return states + [(Span(f" {glyph}{' ' * (_KEYS - cell_len(glyph))}", "dim"), Span(said)) for glyph, said in _OTHERS]
