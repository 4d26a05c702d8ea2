"""The pane What-if: keys change limits, the result follows, and nothing else is touched."""

from __future__ import annotations

import asyncio
import time

import pytest
from textual.events import Key
from textual.pilot import Pilot

from loopscope.engine.policy import PRESETS, Policy
from loopscope.session.draft import MOST_COLUMNS
from loopscope.session.session import Session
from loopscope.session.whatif import Trial
from loopscope_widgets.terminal.panes.whatif import WhatIfPane
from loopscope_widgets.terminal.screens.choose import Choose
from loopscope_widgets.terminal.screens.confirm import Confirm
from tests.engine.support import batch
from tests.session.support import Line, session_of
from tests.views.support import Story, looping
from tests.widgets.support import DEADLINE, NARROW, debugging, eventful, screen_of, settled, shown
from tests.widgets.test_debugger import front, told, until


def pane(pilot: Pilot[None]) -> WhatIfPane:
    return screen_of(pilot).whatif


def policy(pilot: Pilot[None]) -> Policy:
    return pane(pilot).draft.policy


async def tried(pilot: Pilot[None]) -> Trial:
    """Wait until what is shown belongs to the limits that are shown."""
    end = time.monotonic() + DEADLINE
    while not pane(pilot).settled:
        assert time.monotonic() < end, "the limits were never tried"
        await asyncio.sleep(0.005)
    await pilot.pause()
    trial = pane(pilot).trial
    assert trial is not None
    return trial


async def test_arrows_change_and_zero_resets() -> None:
    """The cursor of the run stays; both strips and what differs follow."""
    async with debugging(eventful()) as pilot:
        await pilot.press("t")
        assert pilot.app.focused is pane(pilot)
        await pilot.press("j", "right", "l", "shift+right", "left")
        assert policy(pilot).hard_limit == 5 + 1 + 1 + 10 - 1
        trial = await tried(pilot)
        assert trial.policy == policy(pilot)
        assert screen_of(pilot).session.cursor == 8
        text = "\n".join(shown(pilot))
        assert "16*" in text
        assert "2 decisions differ, first at #8." in text
        await pilot.press("0")
        await pilot.pause()
        assert policy(pilot) == screen_of(pilot).session.policy
        assert "Nothing is changed" in "\n".join(shown(pilot))


async def test_a_value_is_typed_and_counts_digit_by_digit() -> None:
    """What breaks a rule on the way is told and does not count; backspace and escape take back."""
    async with debugging(eventful()) as pilot:
        await pilot.press("t", "j", "enter", "1")
        await pilot.pause()
        assert "1_" in "\n".join(shown(pilot))
        assert "must be at least warn_threshold (3), is 1" in "\n".join(shown(pilot))
        assert policy(pilot).hard_limit == 5
        await pilot.press("2")
        assert policy(pilot).hard_limit == 12
        await pilot.press("7", "backspace", "enter")
        assert (policy(pilot).hard_limit, pane(pilot).typed) == (12, None)
        await pilot.press("enter", "9", "9", "escape")
        assert policy(pilot).hard_limit == 12
        await pilot.press("enter", "8", "backspace", "j")
        assert (policy(pilot).hard_limit, pane(pilot).typed) == (12, None)
        await pilot.press("U")
        assert policy(pilot).hard_limit == 5
        await pilot.press("enter", "escape")
        assert screen_of(pilot).journal.draft is None


@pytest.mark.parametrize(
    ("row", "keys", "says"),
    [
        (("hard_limit",), [".", "."], "'..' is no number"),
        (("hard_limit",), ["9"] * 14, "that is too much"),
        (("hard_limit",), ["8", ".", "5"], "hard_limit is a whole number"),
        (("budget", "cost_usd", "limit"), ["0", ".", "5"], "2 decisions differ"),
    ],
)
async def test_what_is_no_value_is_told(row: tuple[str, ...], keys: list[str], says: str) -> None:
    """And a budget may have a fraction."""
    async with debugging(costly()) as pilot:
        await pilot.press("t", *["j"] * list(pane(pilot).paths).index(row), "enter", *keys)
        await until(pilot, lambda: says in "\n".join(shown(pilot)), f"{says} is never told")


def costly() -> Session:
    from loopscope.engine.events import Usage

    story = Story()
    for n in range(3):
        story.call("a", {"path": str(n)}, usage=Usage(1, 1, 0.2))
    return story.session()


async def test_a_limit_is_typed_in_one_go() -> None:
    """From the key that shows the pane to the enter behind the digits, as a fast line brings them."""
    async with debugging(eventful()) as pilot:
        for key in ("t", "j", "enter", "1", "2", "enter", "v"):
            pilot.app.post_message(Key(key, key if len(key) == 1 else None))
        await until(pilot, lambda: len(pane(pilot).draft.columns) == 2, "the last key never came")
        assert (policy(pilot).hard_limit, pane(pilot).typed) == (12, None)


async def test_leaving_the_pane_ends_the_typing() -> None:
    """What was typed stays, as one change."""
    async with debugging(eventful()) as pilot:
        await pilot.press("t", "j", "enter", "9")
        screen_of(pilot).set_focus(screen_of(pilot).pane(2))
        await pilot.pause()
        assert (policy(pilot).hard_limit, pane(pilot).typed) == (9, None)
        assert screen_of(pilot).journal.undo() == "thresholds"


async def test_choices_are_taken_in_turn() -> None:
    """Enter goes on to the next one; identity is one of them."""
    async with debugging(eventful()) as pilot:
        await pilot.press("t", *["j"] * 5, "enter")
        assert policy(pilot).identity == "full_args"
        trial = await tried(pilot)
        assert trial.difference.first == 8
        await pilot.press("left")
        assert policy(pilot).identity == "salient"


async def test_the_override_of_one_tool() -> None:
    """Its row says what holds for it; changing it makes it the tool's own."""
    async with debugging(eventful()) as pilot:
        await pilot.press("t", *["j"] * 7, "enter", "3", "1", "enter", "k", "enter", "2", "enter")
        assert policy(pilot).tool_freq_overrides["run_sql"].hard_limit == 31
        assert policy(pilot).tool_freq_overrides["run_sql"].warn == 2
        await tried(pilot)
        assert "+WARN run_sql" in "\n".join(shown(pilot))


async def test_presets_in_a_list() -> None:
    """With what each changes; the first one is the baseline."""
    async with debugging(eventful()) as pilot:
        await pilot.press("t", "p")
        await pilot.pause()
        assert front(pilot) is Choose
        text = "\n".join(shown(pilot))
        assert "the limits that decided this run" in text
        assert "the same as the baseline" in text
        await pilot.press("end", "home", "pagedown", "enter")
        await pilot.pause()
        assert policy(pilot) == list(PRESETS.values())[-1]
        await tried(pilot)
        assert "progress" in "\n".join(shown(pilot))
        await pilot.press("p", "escape")
        await pilot.pause()
        assert policy(pilot) == list(PRESETS.values())[-1]
        await pilot.press("p", "enter")
        await pilot.pause()
        assert screen_of(pilot).journal.draft is None
        await pilot.press("p")
        await pilot.pause()
        await pilot.click(pilot.app.screen.query_one("#choose"), offset=(5, 3))
        await pilot.pause()
        assert policy(pilot) == list(PRESETS.values())[1]
        await pilot.press("p", "q")
        await pilot.pause()
        assert front(pilot) is not Choose


async def test_keys_that_come_before_the_list_has_the_focus_are_for_it() -> None:
    """One types p, end, enter in one go; a click beside the rows chooses nothing."""
    async with debugging(eventful()) as pilot:
        await pilot.press("t", "p")
        await pilot.pause()
        pilot.app.screen.set_focus(None)
        await pilot.press("home", "j", "pagedown", "end", "k")
        await pilot.click(pilot.app.screen.query_one("#choose"), offset=(5, 9))
        await pilot.pause()
        assert front(pilot) is Choose
        pilot.app.screen.set_focus(None)
        await pilot.press("enter")
        await pilot.pause()
        assert policy(pilot) == list(PRESETS.values())[-2]


async def test_several_policies_side_by_side() -> None:
    """A column each, tried one after the other; walked, dropped, and never more than there is room for."""
    async with debugging(eventful()) as pilot:
        await pilot.press("t", "less_than_sign")
        await pilot.pause()
        assert "v begins another one" in told(pilot)
        await pilot.press("V")
        await pilot.pause()
        assert "there is no column to drop" in told(pilot)
        await pilot.press("right", "v", "j", "shift+right")
        await tried(pilot)
        assert [each.hard_limit for each in pane(pilot).draft.columns] == [5, 15]
        text = " ".join(" ".join(shown(pilot)).split())
        assert "override 1 override 2" in text
        assert "stopped 2 2 0" in text
        await pilot.press("greater_than_sign", "0")
        assert [each.warn_threshold for each in pane(pilot).draft.columns] == [4, 4]
        await pilot.press("V")
        await tried(pilot)
        assert len(pane(pilot).draft.columns) == 1
        await pilot.press(*["v"] * MOST_COLUMNS)
        await pilot.pause()
        assert f"no more than {MOST_COLUMNS} columns" in told(pilot)
        await pilot.press("U", "U")
        await tried(pilot)
        assert len(pane(pilot).draft.columns) == MOST_COLUMNS - 2


async def test_what_differs_is_walked() -> None:
    """By . and , as matches are elsewhere; a click on a batch goes there, one on a setting chooses it."""
    async with debugging(eventful()) as pilot:
        screen = screen_of(pilot)
        await pilot.press("g", "t", "j", "shift+right")
        await tried(pilot)
        await pilot.press("full_stop")
        await pilot.pause()
        assert screen.session.cursor == 8
        await pilot.press("full_stop")
        await pilot.pause()
        assert screen.session.cursor == 9
        await pilot.press("full_stop")
        await pilot.pause()
        assert "no batch after 9 differs" in told(pilot)
        await pilot.press("comma")
        await pilot.pause()
        assert screen.session.cursor == 8
        await pilot.press("comma")
        await pilot.pause()
        assert "no batch before 8 differs" in told(pilot)
        await pilot.click(pane(pilot), offset=(6, 4))
        await pilot.press("right")
        assert policy(pilot).window_size == 21
        rows = [y for y, line in enumerate(pane(pilot)._lines) if line and line[0].text.startswith("baseline")]
        await pilot.click(pane(pilot), offset=(2 + 11, rows[0] + 1))
        await pilot.pause()
        assert screen.session.cursor == 1
        await pilot.click(pane(pilot), offset=(40, rows[0] + 1))
        await pilot.pause()
        assert screen.session.cursor == 1


async def test_what_breaks_a_rule_is_told_in_its_place() -> None:
    """By an arrow and by reset; choosing another row forgets it."""
    async with debugging(eventful()) as pilot:
        await pilot.press("t", "shift+right")
        await pilot.pause()
        assert "must be at least warn_threshold (13), is 5" in "\n".join(shown(pilot))
        await pilot.press("j", "shift+right", "k", "right", "right", "right", "j", "0")
        await pilot.pause()
        assert "must be at least warn_threshold (6), is 5" in "\n".join(shown(pilot))
        await pilot.press("home", "end")
        await pilot.pause()
        assert "must be" not in "\n".join(shown(pilot))
        assert pane(pilot).paths[pane(pilot)._row] == pane(pilot).paths[-1]


async def test_a_setting_that_only_a_preset_sets_cannot_be_typed() -> None:
    """It says so."""
    session = looping(policy=Policy(identity_fields={"search": ("query",)})).session()
    async with debugging(session) as pilot:
        await pilot.press("t", "v", "0")
        pane(pilot).take(pane(pilot).draft.take(Policy()))
        await pilot.press("end", "enter")
        await pilot.pause()
        assert "identity_fields.search has no values to type; a preset sets it" in told(pilot)


async def test_apply_says_why_not_on_a_recording() -> None:
    """There is nothing to steer."""
    async with debugging(eventful()) as pilot:
        await pilot.press("t", "right", "a")
        await pilot.pause()
        assert told(pilot) == "cannot apply: this is a recording; e exports the limits"


async def test_apply_asks_once_and_only_y_does_it() -> None:
    """Where a live run gives a way to: with the differences, in words."""
    async with debugging(eventful()) as pilot:
        applied: list[Policy] = []
        screen_of(pilot).apply = applied.append
        await pilot.press("t", "a")
        await pilot.pause()
        assert told(pilot) == "nothing to apply: these limits are in force"
        await pilot.press("j", "right", "a")
        await pilot.pause()
        assert front(pilot) is Confirm
        assert "hard_limit 5 → 6" in "\n".join(shown(pilot))
        for key in ("enter", "a", "escape"):
            await pilot.press(key)
            await pilot.pause()
            assert (front(pilot) is Confirm, applied) == (False, [])
            await pilot.press("a")
            await pilot.pause()
        await pilot.press("y")
        await pilot.pause()
        assert [each.hard_limit for each in applied] == [6]


async def test_undo_is_one_step_a_change() -> None:
    """And tells what it took back."""
    async with debugging(eventful()) as pilot:
        await pilot.press("t", "right", "j", "right", "U")
        await pilot.pause()
        assert told(pilot) == "undone: thresholds"
        assert (policy(pilot).warn_threshold, policy(pilot).hard_limit) == (4, 5)
        await pilot.press("U")
        assert screen_of(pilot).journal.draft is None


async def test_the_newest_change_never_waits() -> None:
    """A trial that nobody waits for any more is given up; what was tried before is there at once."""
    session = session_of([batch(n, ("bash", {"command": str(n % 50)})) for n in range(1, 4001)])
    session.open_at_first_stop()
    async with debugging(session) as pilot:
        await pilot.press("t", "j")
        for _ in range(12):
            pane(pilot).action_change(1)
        assert pane(pilot)._trying is not None
        pane(pilot)._show_late()
        await pilot.pause()
        assert "17*" in "\n".join(shown(pilot))
        trial = await tried(pilot)
        assert trial.policy.hard_limit == 17
        assert len(pane(pilot)._trials) <= 2
        await pilot.press("left", "right")
        assert pane(pilot).trial is trial


async def test_the_next_value_is_there_before_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the same arrow would give is tried while nobody waits; not what breaks a rule, nor on very long runs."""
    async with debugging(eventful()) as pilot:
        await pilot.press("t", "j", "right")
        await tried(pilot)
        assert {each.hard_limit for each in pane(pilot)._trials} == {6, 7}
        await pilot.press("right")
        trial = pane(pilot).trial
        assert trial is not None
        assert trial.policy.hard_limit == 7
        await pilot.press("left", "left", "left", "left")
        await tried(pilot)
        assert policy(pilot).hard_limit == 3
        monkeypatch.setattr("loopscope_widgets.terminal.panes.whatif._AHEAD", 0)
        await pilot.press("j", "right")
        await tried(pilot)
        assert {each.window_size for each in pane(pilot)._trials} == {20, 21}


async def test_trials_of_a_run_that_grows_are_made_anew() -> None:
    """After a rest, so that a fast run costs no more than a slow one; as many are kept as a person goes back to."""
    session = looping(6).session()
    async with debugging(session) as pilot:
        await pilot.press("t", "j", "shift+right")
        assert (await tried(pilot)).batches == 6
        session._store.events.append(batch(7, ("search", {"query": "rust tls"})))  # type: ignore[attr-defined]
        session.append([Line(batch(7, ("search", {"query": "rust tls"})), len(session._store.events) - 1, 1)])  # type: ignore[attr-defined]
        screen_of(pilot).moved()
        await until(pilot, lambda: (trial := pane(pilot).trial) is not None and trial.batches == 7, "never tried anew")
        await pilot.press(*["right"] * 40)
        await tried(pilot)
        assert len(pane(pilot)._trials) <= 33


async def test_a_growing_run_is_left_alone_while_nobody_looks() -> None:
    """The pane is behind another one: nothing is tried."""
    async with debugging(looping(6).session()) as pilot:
        await pilot.press("t", "j", "shift+right")
        await tried(pilot)
        await pilot.press("2")
        await pilot.pause()
        pane(pilot)._refresh_trials()
        assert pane(pilot)._trying is None
        await pilot.press("t")
        await pilot.pause()
        pane(pilot)._refresh_trials()
        assert pane(pilot)._trying is None


async def test_it_works_where_there_is_no_batch() -> None:
    """Limits can be looked at and exported."""
    async with debugging(Story().session(), NARROW) as pilot:
        await pilot.press("t", "right")
        await pilot.pause()
        assert "warn_threshold" in "\n".join(shown(pilot))
        assert pane(pilot)._trying is None


async def test_a_narrow_screen_shows_it_alone() -> None:
    """With the tabs above it, by short names; where even those have no room, by numbers."""
    async with debugging(eventful(), NARROW) as pilot:
        await settled(pilot)
        await pilot.press("5")
        await pilot.pause()
        assert "[5 What-if]  6 Log   7 Breaks" in "\n".join(shown(pilot))
        await pilot.resize_terminal(60, 16)
        wanted = " 1   2   3   4  [5 What-if]  6   7"
        await until(pilot, lambda: wanted in "\n".join(shown(pilot)), "numbers never took the place of names")
