"""The keys: one table, which bindings, footer, help and documentation agree with."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from textual.binding import Binding
from textual.widget import Widget

from loopscope.views.model import line_width, plain
from loopscope_widgets.terminal.keymap import GLOBAL, LIST, Key, bindings
from loopscope_widgets.terminal.panes.base import LinePane
from loopscope_widgets.terminal.panes.strip import KeyLine
from loopscope_widgets.terminal.screens import help as help_screen
from loopscope_widgets.terminal.screens.debug import DebugScreen

ROOT = Path(__file__).parents[2]
ALL = (*GLOBAL, *LIST)


def test_every_binding_has_an_id_of_its_own() -> None:
    """So that each can be given other keys."""
    ids = [binding.id for binding in (*bindings(GLOBAL), *bindings(LIST)) if isinstance(binding, Binding)]
    assert None not in ids
    assert len(ids) == len(set(ids)) == len(ALL)


def test_no_key_means_two_things() -> None:
    """Neither in one table nor in both."""
    keys = Counter(name for key in ALL for name in key.keys.split(","))
    assert [name for name, count in keys.items() if count > 1] == []


@pytest.mark.parametrize("key", ALL, ids=lambda key: key.id)
def test_every_key_has_an_action(key: Key) -> None:
    """On the screen for keys that work everywhere, on a pane for those of a list."""
    owner: type[Widget] = DebugScreen if key in GLOBAL else LinePane
    assert callable(getattr(owner, f"action_{key.action.partition('(')[0]}"))


def test_no_key_that_a_terminal_eats() -> None:
    """Plain letters and arrows; what has a modifier or is a function key has a twin without."""
    for key in ALL:
        plain_twins = [name for name in key.keys.split(",") if not name.startswith(("ctrl", "alt", "f1"))]
        assert plain_twins, key.id


@pytest.mark.parametrize("width", [60, 100, 132])
def test_the_help_has_every_key(width: int) -> None:
    """In one column or in two, with what it does; no line is wider than the window."""
    lines = help_screen.lines(width, 40)
    text = "\n".join(map(plain, lines))
    for key in ALL:
        assert key.help in text
        assert key.shown in text
    assert max(map(line_width, lines)) <= width


def test_the_documentation_has_every_key() -> None:
    """The same words as the help."""
    text = (ROOT / "docs" / "screens.md").read_text()
    for key in ALL:
        assert f"| {key.help} | `{key.id}` |" in text, key.id


@pytest.mark.parametrize(("width", "last"), [(160, "q Quit"), (60, "q Quit"), (30, "q Quit")])
def test_the_line_of_keys_always_shows_help_and_quit(width: int, last: str) -> None:
    """Others go first where it is narrow."""
    (line,) = KeyLine()._keys(width, 1)
    text = plain(line).rstrip()
    assert text.endswith(f"? Keys  {last}")
    assert len(text) <= width
