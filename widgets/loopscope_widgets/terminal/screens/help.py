"""The help: every key in groups, and what the glyphs mean. No prose."""

from __future__ import annotations

from loopscope.views.cells import cell_len
from loopscope.views.flow import wrap
from loopscope.views.glyphs import GLYPH, TONE
from loopscope.views.model import Line, Span, crop, fit, line_width
from loopscope_widgets.terminal.keymap import BESIDE, BREAKPOINTS, GLOBAL, LIST, LIVE, WHATIF, WINDOW, Key

__all__ = ["lines"]

_COLUMN = 60
"""Cells of one column of keys; two stand side by side where they have room."""
_KEYS, _FEW = 14, 10
"""Cells of the keys, and where there is least room."""
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
    ("▶", "the scope, the setting that is chosen"),
    ("● ○", "a breakpoint, on and off"),
    ("≠ ┆", "verdicts differ; nobody can know any more"),
)


_IN_PANE: dict[str, tuple[tuple[str, str], ...]] = {
    "Scopes": (
        ("list.down", "the row below"),
        ("list.up", "the row above"),
        ("list.enter", "show this scope in the timeline"),
        ("scope.parent", "the parent of the scope that is shown"),
        ("scope.child", "its child"),
    ),
    "Detect": (
        ("list.down", "down"),
        ("list.enter", "go to the batch of the reference"),
        ("decision.next", "the next warning or stop"),
        ("pane.graph", "Graph in this place"),
    ),
    "Inspect": (
        ("list.down", "the next reference to a batch"),
        ("list.enter", "go to it"),
        ("event.next", "the batch event by event"),
        ("why", "all reasons in a window"),
        ("copy", "the batch and its reasons as text"),
    ),
    "Graph": (("list.down", "down"), ("list.up", "up"), ("pane.detect", "Detect in this place")),
    "What-if": (
        ("list.down", "the next setting"),
        ("whatif.more", "raise it, or the next choice"),
        ("whatif.less", "lower it; below 1 a limit is off"),
        ("list.enter", "type a value; esc takes it back"),
        ("whatif.reset", "as in the baseline"),
        ("whatif.presets", "presets, and the baseline"),
        ("whatif.beside", "a further column, to compare"),
        ("whatif.differing.next", "the next batch that differs"),
        ("whatif.apply", "in force in the running process"),
        ("export", "in a file"),
    ),
    "Breakpoints": (
        ("breakpoints.new", "a new one: a condition is asked for"),
        ("list.enter", "edit it"),
        ("breakpoints.toggle", "on or off"),
        ("breakpoints.remove", "take it away"),
        ("breakpoint.next", "run to the next one"),
        ("breakpoint.previous", "run back to the one before"),
    ),
    "Decisions": (
        ("find", "show only what has these words"),
        ("match.next", "to the next of these"),
        ("match.previous", "to the one before"),
        ("list.enter", "go to the batch of the row"),
    ),
    "Output": (
        ("list.up", "up, and stay there"),
        ("list.last", "to the newest line, which is followed"),
        ("pane.zoom", "all lines that have room"),
    ),
}
"""Of each pane: the keys that mean most there, by id, and what they do."""


def lines(
    width: int,
    height: int,  # noqa: ARG001 - the pane scrolls
    pane: str = "",
    keys: tuple[Key, ...] = (*GLOBAL, *LIST, *LIVE, *BESIDE, *WHATIF, *BREAKPOINTS, *WINDOW),
) -> list[Line]:
    """The whole help, the keys of a pane first.

    Args:
        width: cells.
        height: not looked at.
        pane: the one that has the focus.
        keys: as this user has them.
    """
    shown = {key.id: key.shown for key in keys}
    groups: dict[str, list[Key]] = {}
    for key in keys:
        groups.setdefault(key.group, []).append(key)
    own = _IN_PANE.get(pane, ())
    room = _KEYS if width >= _COLUMN else _FEW
    blocks = [_block(f"In {pane}", [(shown[identity], said) for identity, said in own], room, width)] if own else []
    blocks.extend(_block(name, [(key.shown, key.help) for key in found], room, width) for name, found in groups.items())
    glyphs: Line = (Span("Glyphs", "title"),)
    blocks.append([glyphs, *_glyphs(room)])
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


def _block(name: str, entries: list[tuple[str, str]], room: int, width: int) -> list[Line]:
    rows: list[Line] = []
    for keys, said in entries:
        for place, piece in enumerate(wrap(said, max(1, min(width, _COLUMN) - room - 1))):
            rows.append((Span(f" {fit('' if place else keys, room)}", "key"), Span(piece)))
    return [(Span(name, "title"),), *rows]


def _glyphs(room: int) -> list[Line]:
    states: list[Line] = [
        (Span(" "), Span(GLYPH[state], TONE[state]), Span(" " * (room - 1)), Span(said))
        for state, said in _MEANING.items()
    ]
    return states + [(Span(f" {glyph}{' ' * (room - cell_len(glyph))}", "dim"), Span(said)) for glyph, said in _OTHERS]
