"""The debugger's screen: every key and click does what its help says, and says why where it cannot."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from textual.events import Key
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Input

from loopscope.errors import UsageError
from loopscope.session.session import Lane, Session
from loopscope_widgets.terminal.app import LoopscopeApp
from loopscope_widgets.terminal.panes.base import LinePane
from loopscope_widgets.terminal.screens import debug
from loopscope_widgets.terminal.screens.ask import GoTo
from loopscope_widgets.terminal.screens.reader import Reader
from tests.session.support import session_of
from tests.views.support import Story, looping
from tests.widgets.support import DEADLINE, NARROW, WIDE, debugging, eventful, screen_of, settled, shown


async def until(pilot: Pilot[None], condition: Callable[[], bool], what: str) -> None:
    """Wait for something, no longer than a person would."""
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, what
        await asyncio.sleep(0.01)
        await pilot.pause()


def told(pilot: Pilot[None]) -> str:
    """The newest message."""
    return list(pilot.app._notifications)[-1].message


def front(pilot: Pilot[None]) -> type[Screen[Any]]:
    """What kind of screen is in front."""
    return type(pilot.app.screen)


async def test_it_opens_at_the_first_stop_and_says_so() -> None:
    """With Detect in front, which answers how far the run is from being stopped."""
    async with debugging(eventful()) as pilot:
        await settled(pilot)
        text = "\n".join(shown(pilot))
        assert "■ STOP identical_call_set A 5/5" in text
        assert "opened at the first stop, batch 8" in text
        assert "1 Scopes" in text
        assert "2 Detect" in text
        assert "3 Inspect #8" in text
        assert pilot.app.focused is screen_of(pilot).panes[1]


MOVES = [
    (["n"], 9),
    (["N"], 7),
    (["l", "h", "h"], 7),
    (["right"], 9),
    (["left"], 7),
    (["g"], 1),
    (["G"], 9),
    (["H"], 1),
    (["g", "L"], 9),
    (["g", "shift+right"], 9),
    (["G", "shift+left"], 1),
    (["left_square_bracket"], 4),
    (["g", "right_square_bracket"], 4),
    (["colon", "1", "enter"], 1),
    (["colon", "B", "enter"], 3),
]


@pytest.mark.parametrize(
    ("keys", "cursor"), MOVES, ids=lambda value: "+".join(value) if isinstance(value, list) else ""
)
async def test_keys_move_the_cursor(keys: list[str], cursor: int) -> None:
    """Within the scope that is shown; every pane follows."""
    async with debugging(eventful()) as pilot:
        await pilot.press(*keys)
        await pilot.pause()
        assert screen_of(pilot).session.cursor == cursor
        text = shown(pilot)
        assert f"batch {cursor}/" in text[0]
        assert any(f"3 Inspect #{cursor}" in line for line in text)
        assert any(f"after #{cursor}" in line for line in text)


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        (["G", "n"], "cannot step forward: this is the last batch of order-7f3/run-1; u widens to its thread"),
        (["g", "N"], "cannot step back: this is the first batch of order-7f3/run-1; u widens to its thread"),
        (["g", "left_square_bracket"], "no warning and no stop before batch 1"),
        (["g", "g"], "this is the first batch of"),
        (["u", "u"], "nothing is above thread order-7f3"),
        (["d", "d"], "has no sub-agent that made calls"),
        (["escape"], "nothing is open in front; q quits"),
        (["enter"], "nothing is chosen"),
        (["ctrl+c"], "q quits"),
    ],
)
async def test_a_key_that_cannot_act_says_why(keys: list[str], reason: str) -> None:
    """In a message, and nothing else happens."""
    async with debugging(eventful()) as pilot:
        await pilot.press(*keys)
        await pilot.pause()
        assert reason in told(pilot)


async def test_up_and_down_the_scopes() -> None:
    """The first u shows the thread, then d the run, and d again the sub-agent."""
    async with debugging(eventful()) as pilot:
        screen = screen_of(pilot)
        await pilot.press("u")
        assert screen.session.lane == Lane("order-7f3", None, whole_thread=True)
        assert len(screen.session.batches) == 9
        await pilot.press("d")
        assert screen.session.lane == Lane("order-7f3", "run-1")
        await pilot.press("d")
        assert screen.session.lane == Lane("order-7f3", "run-1/tools:8d1")


async def test_the_tree_is_walked_and_chosen_from() -> None:
    """By j and k, home, end and pages; enter shows the scope."""
    async with debugging(eventful()) as pilot:
        screen = screen_of(pilot)
        await pilot.press("1", "end", "enter")
        assert screen.session.lane == Lane("order-8a0", "run-2")
        await pilot.press("home", "j", "enter")
        assert screen.session.lane == Lane("order-7f3", "run-1")
        await pilot.press("pagedown", "k", "k", "enter")
        assert screen.session.lane == Lane("order-7f3", "run-1/tools:8d1")


async def test_references_are_walked_and_followed() -> None:
    """In Inspect j chooses the batch with the same result, then the first sighting; enter goes there."""
    async with debugging(eventful()) as pilot:
        await settled(pilot)
        screen = screen_of(pilot)
        await pilot.press("3", "j", "enter")
        await pilot.pause()
        assert screen.session.cursor == 7
        await pilot.press("j", "j", "j", "k", "enter")
        await pilot.pause()
        assert screen.session.cursor == 1


async def test_a_pane_scrolls_where_it_is_longer_than_its_room() -> None:
    """By lines where nothing is to be chosen, by pages, to both ends."""
    async with debugging(eventful(), (60, 16)) as pilot:
        await settled(pilot)
        pane = screen_of(pilot).panes[2]
        await pilot.press("3", "end")
        await pilot.pause()
        bottom = pane.scroll_offset.y
        assert bottom > 0
        await pilot.press("pageup")
        await pilot.pause()
        assert pane.scroll_offset.y < bottom
        await pilot.press("pagedown", "home")
        await pilot.pause()
        assert pane.scroll_offset.y == 0
        for _ in range(30):
            await pilot.press("j")
        await pilot.pause()
        assert pane.scroll_offset.y > 0


async def test_panes_by_number_tab_and_click() -> None:
    """Tab goes round, shift+tab back; a click focuses too."""
    async with debugging(eventful()) as pilot:
        screen = screen_of(pilot)
        names = []
        for key in ("1", *["tab"] * 7, "shift+tab", "2"):
            await pilot.press(key)
            await pilot.pause()
            assert pilot.app.focused is not None
            names.append(pilot.app.focused.name)
        panes = ["Scopes", "Detect", "Inspect", "Graph", "What-if", "Decisions", "Breakpoints"]
        assert names == [*panes, "Scopes", "Breakpoints", "Detect"]
        await pilot.click(screen.inspect, offset=(5, 20))
        await pilot.pause()
        assert (pilot.app.focused, screen.tabs.current) == (screen.inspect, 3)


async def test_zoom() -> None:
    """One pane alone, another one by its number, and back by z, esc or q."""
    async with debugging(eventful()) as pilot:
        screen = screen_of(pilot)

        def visible() -> list[str | None]:
            return [pane.name for pane in screen.panes if pane.region.width]

        await pilot.press("z")
        await pilot.pause()
        assert visible() == ["Detect"]
        await pilot.press("3")
        await pilot.pause()
        assert visible() == ["Inspect"]
        for key in ("z", "q", "escape"):
            assert screen.has_class("-zoomed")
            await pilot.press(key)
            await pilot.pause()
            assert visible() == ["Scopes", "Detect", "Inspect", "Decisions", "Breakpoints"]
            await pilot.press("z")
            await pilot.pause()


async def test_a_narrow_screen_has_one_pane_and_tabs() -> None:
    """A click on a tab shows the pane."""
    async with debugging(eventful(), NARROW) as pilot:
        assert "[2 Detect]" in shown(pilot)[6]
        await pilot.click(screen_of(pilot).tabs, offset=(2, 0))
        await pilot.pause()
        assert "[1 Scopes]" in shown(pilot)[6]
        assert "thread order-7f3" in shown(pilot)[7]


async def test_a_tiny_screen_has_the_strip_and_one_pane() -> None:
    """No tabs and no keys; tab still goes on."""
    async with debugging(eventful(), (58, 14)) as pilot:
        text = "\n".join(shown(pilot))
        assert "Scopes" not in text
        assert "Quit" not in text
        assert "DISTANCE TO FIRE" in text
        await pilot.press("tab")
        await pilot.pause()
        assert shown(pilot)[5].startswith(" batch 8   1 call")


async def test_a_screen_that_changes_its_size() -> None:
    """The layout follows at once."""
    async with debugging(eventful()) as pilot:
        await pilot.resize_terminal(*NARROW)
        await pilot.pause()
        assert "[2 Detect]" in "\n".join(shown(pilot))
        await pilot.resize_terminal(*WIDE)
        await pilot.pause()
        assert "─ 3 Inspect #8 ─" in "\n".join(shown(pilot))


async def test_clicks_on_the_strip_the_tree_and_references() -> None:
    """Each goes where it says."""
    async with debugging(eventful()) as pilot:
        screen = screen_of(pilot)
        await pilot.click(screen.strip, offset=(2 + 7, 3))
        await pilot.pause()
        assert screen.session.cursor == 1
        await pilot.click(screen.strip, offset=(1, 3))
        await pilot.click(screen.panes[0], offset=(8, 5))
        await pilot.pause()
        assert screen.session.lane == Lane("order-8a0", "run-2")
        await pilot.click(screen.panes[0], offset=(8, 30))
        await pilot.click(screen.panes[0], offset=(8, 2))
        await pilot.pause()
        line = next(y for y, text in enumerate(shown(pilot)) if " seen #" in text)
        column = shown(pilot)[line].index("#2")
        await pilot.click(offset=(column, line))
        await pilot.pause()
        assert screen.session.cursor == 2
        await pilot.click(offset=(column - 6, line))


async def test_the_line_of_keys_can_be_clicked() -> None:
    """A word is the key; the room beside the words is nothing."""
    async with debugging(eventful()) as pilot:
        y = WIDE[1] - 1
        await pilot.click(offset=(shown(pilot)[y].index("Why"), y))
        await pilot.pause()
        assert front(pilot) is Reader
        await pilot.press("escape")
        await pilot.click(offset=(150, y))
        await pilot.pause()
        assert pilot.app.screen is screen_of(pilot)


async def test_go_to_tells_where_while_one_types() -> None:
    """A wrong text is refused in words and goes nowhere; esc leaves."""
    async with debugging(eventful()) as pilot:
        screen = screen_of(pilot)
        await pilot.press("colon")
        assert "a batch 20 · a hash letter A" in "\n".join(shown(pilot))
        await pilot.press("9", "9")
        await pilot.pause()
        assert "there is no batch 99: there are 10" in "\n".join(shown(pilot))
        await pilot.press("enter")
        assert front(pilot) is GoTo
        await pilot.press("backspace", "backspace", *"order-8a0/run-2")
        await pilot.pause()
        assert "scope order-8a0/run-2" in "\n".join(shown(pilot))
        await pilot.press("enter")
        assert screen.session.lane == Lane("order-8a0", "run-2")
        await pilot.press("colon", "3", "escape")
        assert pilot.app.screen is screen
        assert screen.session.cursor == 10


async def test_go_to_is_typed_in_one_go() -> None:
    """Keys that come before the window is open are the window's, not the panes'."""
    async with debugging(eventful()) as pilot:
        screen = screen_of(pilot)
        for key, character in (("colon", ":"), ("2", "2"), ("enter", "\r")):
            pilot.app.post_message(Key(key, character))
        await until(pilot, lambda: screen.session.cursor == 2, "the keys were lost")
        assert pilot.app.focused is screen.panes[1]
        await pilot.press("colon")
        await pilot.pause()
        pilot.app.screen.set_focus(None)
        await pilot.press("4", "up", "enter")
        await until(pilot, lambda: screen.session.cursor == 4, "the keys were lost")
        await pilot.press("colon")
        await pilot.pause()
        asking = pilot.app.screen
        assert isinstance(asking, GoTo)
        asking.query_one(Input).value = "10"  # nobody has been told of it yet
        asking.on_input_submitted()
        await until(pilot, lambda: screen.session.cursor == 10, "the last character was lost")


async def test_why_in_a_window() -> None:
    """Opened before the nearest settings are there, it gets them; a reference leaves for its batch; q closes."""
    async with debugging(eventful()) as pilot:
        screen = screen_of(pilot)
        screen.inspect.explanation = None
        await pilot.press("w")
        await until(pilot, lambda: "nearest settings that would" in "\n".join(shown(pilot)), "no nearest settings")
        await pilot.press("q")
        assert pilot.app.screen is screen
        await pilot.press("w")
        await pilot.pause()
        await pilot.press("j", "enter")
        await pilot.pause()
        assert pilot.app.screen is screen
        assert screen.session.cursor == 1


async def test_the_help_in_a_window() -> None:
    """By ? or F1; esc closes."""
    async with debugging(eventful()) as pilot:
        for key in ("question_mark", "f1"):
            await pilot.press(key)
            await pilot.pause()
            assert "next decision: a warning or a stop" in "\n".join(shown(pilot))
            await pilot.press("escape")
            assert pilot.app.screen is screen_of(pilot)


async def test_the_nearest_settings_come_after_a_moment_of_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until then it is said that they are looked for; keys do not wait, and only the last batch's are shown."""
    monkeypatch.setattr(debug, "_REST", 3600)
    async with debugging(eventful()) as pilot:
        screen = screen_of(pilot)
        await pilot.press("N", "N", "N")
        assert "searching the nearest settings" in "\n".join(shown(pilot))
        monkeypatch.setattr(debug, "_REST", 0.01)
        await pilot.press("N")
        await settled(pilot)
        assert screen.session.cursor == 3
        assert "searching" not in "\n".join(shown(pilot))


async def test_an_explanation_that_comes_too_late_is_not_shown() -> None:
    """The cursor has gone on: the search starts again where it is now."""
    async with debugging(eventful()) as pilot:
        screen = screen_of(pilot)
        late = screen.session.explain(1)
        screen.post_message(screen.Explained(late))
        await settled(pilot)
        assert screen.inspect.explanation is not late


async def test_an_empty_recording() -> None:
    """Everything says that there is nothing, and no key breaks it."""
    async with debugging(session_of([])) as pilot:
        await pilot.press(
            "n", "N", "g", "G", "u", "d", "w", "1", "enter", "j", "2", "3", "z", "z", "colon", "A", "enter"
        )
        await pilot.press("escape")
        await pilot.pause()
        text = "\n".join(shown(pilot))
        assert "no batch with calls" in text
        assert told(pilot) != ""


async def test_themes_from_the_palette() -> None:
    """Both of ours, and the panes follow; the palette has every key's action."""
    async with debugging(eventful()) as pilot:
        screen = screen_of(pilot)
        commands = {command.title: command for command in pilot.app.get_system_commands(screen)}
        assert "Breakpoints: where c and C stop" in commands
        assert "Export the limits: TOML, YAML, Python" in commands
        commands["Theme loopscope-light"].callback()
        await pilot.pause()
        assert pilot.app.theme == "loopscope-light"
        strip = screen.panes[1].render_line(0)
        assert strip._segments[0].style is not None
        colour = strip._segments[0].style.color
        assert colour is not None
        assert colour.name.lower() == "#202124"
        await commands["First batch"].callback()
        assert screen.session.cursor == 1
        await pilot.press("w")
        assert "First batch" not in {command.title for command in pilot.app.get_system_commands(pilot.app.screen)}


@pytest.mark.parametrize("theme", ["nord", "solarized-light", "ansi-dark"])
async def test_any_theme_draws_the_panes(theme: str) -> None:
    """Themes that know nothing of our variables too; the state colours fit their background."""
    async with debugging(eventful(), theme=theme) as pilot:
        assert "STOP identical_call_set" in "\n".join(shown(pilot))


def test_a_theme_by_its_name() -> None:
    """Short names are ours, other names Textual's; one that is not there is refused with those that are."""
    assert LoopscopeApp(looping().session(), theme="light").theme == "loopscope-light"
    assert LoopscopeApp(looping().session(), theme="nord").theme == "nord"
    with pytest.raises(UsageError, match="no theme 'nrod': there are dark, light"):
        LoopscopeApp(looping().session(), theme="nrod")


def test_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a flag and as NO_COLOR; a theme of ANSI colours is replaced, as it would be black on black."""
    assert LoopscopeApp(looping().session(), no_color=True).no_color
    assert not LoopscopeApp(looping().session()).no_color
    assert LoopscopeApp(looping().session(), theme="ansi-dark", no_color=True).theme == "loopscope-dark"
    monkeypatch.setenv("NO_COLOR", "1")
    assert LoopscopeApp(looping().session(), no_color=True).no_color
    assert LoopscopeApp(looping().session()).no_color


async def test_ascii() -> None:
    """Nothing on the screen is beyond ASCII: borders, glyphs, titles, messages, windows."""
    async with debugging(eventful(), ascii_only=True) as pilot:
        await settled(pilot)
        assert "\n".join(shown(pilot)).isascii()
        await pilot.press("n", "n", "w")
        await pilot.pause()
        assert "\n".join(shown(pilot)).isascii()
        await pilot.press("escape", "question_mark")
        await pilot.pause()
        assert "\n".join(shown(pilot)).isascii()
        await pilot.press("escape", "colon", "Z", "Z")
        await pilot.pause()
        assert "\n".join(shown(pilot)).isascii()


HOSTILE = [
    "[red]x[/red]",
    "[@click=app.quit]x",
    "\x1b[2J\x1b]0;t\x07",
    "[/]",
    "[",
    "\\[b]",
    "$foreground",
    "\u202ex\u200b",
]


def hostile() -> Session:
    """Markup and escapes in every place that is drawn."""
    story = Story()
    for text in HOSTILE:
        story.in_scope(text, text).start(text)
        for _ in range(3):
            story.call(text, {"query": text, text: text}, text, status="error", error_type=text)
    session = story.session()
    session.source = HOSTILE[0]
    return session


async def test_nothing_from_a_recording_is_markup_or_acts() -> None:
    """Tags are shown as text in panes, titles, messages and windows, and a click on one runs nothing."""
    async with debugging(hostile()) as pilot:
        screen = screen_of(pilot)
        for number in range(1, len(screen.session) + 1, 3):
            screen.session.seek(number)
            screen.moved()
            await pilot.pause()
        text = "\n".join(shown(pilot))
        assert "\x1b" not in text
        await pilot.press("colon", "x", "enter", "escape")
        screen.session.seek(4)
        screen.moved()
        await pilot.press("n", "n", "n", "w")
        await pilot.pause()
        await pilot.press("escape")
        await pilot.pause()
        assert "[@click=app.quit]x" in "\n".join(shown(pilot))
        assert pilot.app.is_running
        assert all(isinstance(pane, LinePane) for pane in screen.panes)
