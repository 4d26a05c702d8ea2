"""The keys: one table, which bindings, footer, help and documentation agree with."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from textual.binding import Binding
from textual.widget import Widget

from loopscope.errors import UsageError
from loopscope.views.model import line_width, plain
from loopscope_widgets.terminal.keymap import (
    BESIDE,
    BREAKPOINTS,
    GLOBAL,
    LIST,
    LIVE,
    WHATIF,
    WINDOW,
    Key,
    Keymap,
    bindings,
    keymap,
)
from loopscope_widgets.terminal.panes.base import LinePane
from loopscope_widgets.terminal.panes.strip import KeyLine
from loopscope_widgets.terminal.screens import help as help_screen
from loopscope_widgets.terminal.screens.debug import DebugScreen
from loopscope_widgets.terminal.user import load_keymap, settings_file
from tests.widgets.support import debugging, eventful, screen_of, shown

ROOT = Path(__file__).parents[2]
ALL = (*GLOBAL, *LIST)
EVERY = (*ALL, *LIVE, *BESIDE, *WHATIF, *BREAKPOINTS, *WINDOW)


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
    for key in EVERY:
        assert key.help in text
        assert key.shown in text
    assert max(map(line_width, lines)) <= width


def test_the_documentation_has_every_key() -> None:
    """The same words as the help."""
    text = (ROOT / "docs" / "screens.md").read_text()
    for key in EVERY:
        assert f"| {key.help} | `{key.id}` |" in text, key.id


@pytest.mark.parametrize(("width", "last"), [(160, "q Quit"), (60, "q Quit"), (30, "q Quit")])
def test_the_line_of_keys_always_shows_help_and_quit(width: int, last: str) -> None:
    """Others go first where it is narrow."""
    (line,) = KeyLine()._keys(width, 1)
    text = plain(line).rstrip()
    assert text.endswith(f"? Keys  {last}")
    assert len(text) <= width


def test_the_help_begins_with_the_keys_of_the_pane() -> None:
    """Each pane has some, in the user's keys."""
    for pane in ("Scopes", "Detect", "Inspect", "Graph", "What-if", "Decisions", "Breakpoints", "Output"):
        assert plain(help_screen.lines(60, 40, pane)[0]) == f"In {pane}"
    mine = keymap({"list.enter": "f2"}, "config.toml").of(EVERY)
    lines = [plain(line) for line in help_screen.lines(60, 40, "Scopes", mine)]
    assert next(line for line in lines if "show this scope in the timeline" in line).split()[0] == "F2"


@pytest.mark.parametrize(
    ("wanted", "changed"),
    [
        ("vscode", {"batch.next": "n,f10", "event.next": "s,f11", "scope.end": "r,shift+f11",
          "breakpoint.next": "c,f5", "breakpoint.here": "b,f9"}),
        ({"batch.next": "x"}, {"batch.next": "x"}),
        ({"batch": {"next": "x, ctrl+right"}}, {"batch.next": "x,ctrl+right"}),
        ({"batch.next": ["x", "]"], "decision.next": "}"},
         {"batch.next": "x,right_square_bracket", "decision.next": "right_curly_bracket"}),
        ({"match.previous": ","}, {"match.previous": "comma"}),
        ({"play": " "}, {"play": "space"}),
        ({"batch.next": "N", "batch.previous": "n"}, {"batch.next": "N", "batch.previous": "n"}),
        ({"preset": "vscode", "batch.next": "f10"},
         {"batch.next": "f10", "event.next": "s,f11", "scope.end": "r,shift+f11",
          "breakpoint.next": "c,f5", "breakpoint.here": "b,f9"}),
        ({"window.close": "escape", "ask.close": "f12"}, {"window.close": "escape", "ask.close": "f12"}),
    ],
)  # fmt: skip
def test_a_user_has_other_keys(wanted: Any, changed: dict[str, str]) -> None:
    """By id: a key, several, a list, or a preset; two keys may change places."""
    assert dict(keymap(wanted, "config.toml").changed) == changed


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        ({"batch.next": "m"}, "m is both batch.next and mark"),
        ({"batch.next": "j"}, "j is both batch.next and list.down"),
        ({"list.down": "q"}, "q is both quit and list.down; q is both window.close and list.down"),
        ({"batch.nxt": "x"}, "there is no batch.nxt; did you mean batch.next?"),
        ({"zzz": "x"}, "there is no zzz; the ids are in docs/screens.md"),
        ({"batch.next": "ctlr+x"}, "batch.next: there is no key 'ctlr+x'"),
        ({"batch.next": ""}, "batch.next: needs a key"),
        ("emacs", "there is no preset 'emacs': there is vscode"),
        ({"preset": 3}, "there is no preset 3"),
        (7, "give a table of keys by id, or a preset: vscode"),
    ],
)
def test_a_keymap_with_a_mistake_is_refused(wanted: Any, problem: str) -> None:
    """In one line that names the file and both ids."""
    with pytest.raises(UsageError) as error:
        keymap(wanted, "config.toml")
    assert str(error.value).startswith("config.toml: keymap: ")
    assert problem in str(error.value)
    assert "\n" not in str(error.value)


def test_all_mistakes_at_once() -> None:
    """Not one a start."""
    with pytest.raises(UsageError, match=r"no batch.nxt; .*; .*no key 'f99'; m is both mark and play"):
        keymap({"batch.nxt": "x", "goto": "f99", "play": "m"}, "config.toml")


async def test_keys_of_the_user_work_and_the_old_ones_do_not() -> None:
    """In bindings, footer, help and palette alike."""
    keys = keymap({"batch.previous": "p", "decision.next": ["f8", "E"], "window.close": "f9"}, "config.toml")
    async with debugging(eventful(), keys=keys) as pilot:
        screen = screen_of(pilot)
        await pilot.press("N")
        assert screen.session.cursor == 8
        await pilot.press("p")
        assert screen.session.cursor == 7
        assert " F8 Decision" in shown(pilot)[-1]
        commands = {command.title: command.help for command in pilot.app.get_system_commands(screen)}
        assert commands["Previous batch"] == "key p"
        assert commands["A page down"] == "key pgdn"
        await pilot.press("question_mark")
        await pilot.pause()
        assert any("F8 E" in line for line in shown(pilot))
        await pilot.press("escape")
        assert pilot.app.screen is not screen
        await pilot.press("f9")
        assert pilot.app.screen is screen


def test_the_users_settings_are_read() -> None:
    """Where there are any; what cannot be read is told with the file's name."""
    assert load_keymap() == Keymap()
    file = settings_file()
    file.parent.mkdir(parents=True)
    file.write_text("[other]\nx = 1\n")
    assert load_keymap() == Keymap()
    file.write_text("[keymap]\nbatch.next = 'x'\n\"batch.previous\" = 'X'\n")
    assert load_keymap().changed == {"batch.next": "x", "batch.previous": "X"}
    file.write_text("keymap = ")
    with pytest.raises(UsageError, match=r"config\.toml: "):
        load_keymap()
    file.write_bytes(b"\xff")
    with pytest.raises(UsageError, match="cannot be read"):
        load_keymap()
