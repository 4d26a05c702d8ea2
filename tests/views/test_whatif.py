"""What-if as text: settings, strips, what differs, what was saved, and what cannot be known."""

from __future__ import annotations

from typing import Any

import pytest

from loopscope.engine.events import Call, PolicySet, Usage
from loopscope.engine.policy import BOUNDED, PRESETS, Policy
from loopscope.session.draft import Draft, settings, tools_of
from loopscope.session.session import Lane, Session
from loopscope.session.whatif import After
from loopscope.views import whatif
from loopscope.views.model import Line, line_width, link_at, plain
from tests.views.support import Story, looping, texts

HOSTILE = "\x1b[2J\u202e[bold]" * 40


def drawn(session: Session, draft: Draft, width: int = 76, height: int = 30, **more: Any) -> list[str]:
    return texts(lines(session, draft, width, height, **more))


def lines(session: Session, draft: Draft, width: int = 76, height: int = 30, **more: Any) -> list[Line]:
    return whatif.body(session, sheet(session, draft, **more), width, height)


def sheet(session: Session, draft: Draft, **more: Any) -> whatif.Sheet:
    trials = tuple(None if policy == draft.baseline else session.attempt(policy) for policy in draft.columns)
    return whatif.Sheet(
        **{"draft": draft, "trials": trials, "paths": settings(draft, tools_of(session.timeline))} | more
    )


def trying(session: Session, **limits: int) -> Draft:
    draft = Draft.of(session.policy)
    for name, value in limits.items():
        draft = draft.with_((name,), value)
    return draft


def test_nothing_is_changed() -> None:
    """Then nothing is tried: the same strip twice, and the words."""
    session = looping().session()
    text = drawn(session, Draft.of(session.policy))
    strips = [line.split()[1] for line in text if line.startswith(("baseline ", "override "))]
    assert strips == ["·=▲=■■", "·=▲=■■"]
    assert "Nothing is changed, so that nothing differs." in text


def test_a_changed_limit() -> None:
    """Both values with a star, both strips, differing batches by letters, totals, savings, and what is unknown."""
    session = looping(8).session()
    text = drawn(session, trying(session, hard_limit=7))
    assert text[0].split() == ["baseline", "override"]
    assert text[2].split() == ["hard_limit", "5", "7*"]
    strips = [line for line in text if line.startswith(("baseline ", "override ", "differs "))]
    assert [line[11:] for line in strips] == ["·=▲=■■■■", "·=▲===■■", "   ┆≠≠┆┆"]
    end = text.index("2 decisions differ, first at #5. Warnings 1 → 1, stops 4 → 2.")
    assert text[end + 1 :] == [
        "#5 -STOP A   #6 -STOP A",
        "After its first stop, #7, came 1 batch, 1 call.",
        "After #3 the model might have acted differently: the recording cannot know.",
    ]


def test_an_enforced_run_is_certain_until_the_first_difference() -> None:
    """And what it would have done after the stop that it met is not recorded."""
    session = looping(6, policy=Policy(), enforced=True).session()
    text = drawn(session, trying(session, hard_limit=9))
    assert [line[11:] for line in text if line.startswith("differs ")] == ["    ≠≠"]
    assert text[-1] == "The recorded run was stopped at #5: what it would have done next is not recorded."[
        :76
    ].rstrip() or (
        " ".join(text).endswith("The recorded run was stopped at #5: what it would have done next is not recorded.")
    )
    one = lines(session, trying(session, hard_limit=9))
    tones = {span.text: span.style for line in one for span in line if span.text == "≠"}
    assert tones == {"≠": "dim"}


def test_every_kind_of_difference() -> None:
    """More, less, another action, another layer of the same action."""
    story = Story()
    for n in range(6):
        story.call("bash", {"command": "ls"}, "x")
        story.call("bash", {"command": str(n)}, "y")
    session = story.session()
    draft = trying(session, warn_threshold=2, hard_limit=3)
    text = " ".join(drawn(session, draft))
    assert "#3 +WARN A" in text
    assert "#5 WARN→STOP A" in text
    draft = Draft.of(session.policy).take(Policy(tool_freq_warn=4, tool_freq_hard_limit=9, warn_threshold=5))
    text = " ".join(drawn(session, draft))
    assert "#4 +WARN bash" in text
    assert "#5 -WARN A" in text
    draft = Draft.of(session.policy).take(Policy(hard_limit=20, tool_freq_warn=9, tool_freq_hard_limit=9))
    assert "#9 STOP A→bash" in " ".join(drawn(session, draft))
    draft = Draft.of(session.policy).take(BOUNDED)
    assert "cycle" in " ".join(drawn(session, draft))


def test_what_a_stop_saves() -> None:
    """Tokens and cost where the run tells of them, and nothing of them where it does not."""
    assert whatif.spent(After(21, 22, 20_000, 5_200, 0.42)) == "21 batches, 22 calls, 25.2k tokens, $0.4200"
    assert whatif.spent(After(1, 1, 0, 0, 0.0)) == "1 batch, 1 call"


def test_a_run_that_is_not_changed_by_it() -> None:
    """It says so, with the totals of both sides."""
    session = looping(2).session()
    text = drawn(session, trying(session, hard_limit=9))
    assert "Nothing differs. Warnings 0 → 0, stops 0 → 0." in text


def test_one_difference_is_told_as_one() -> None:
    """Not as some."""
    session = looping(5).session()
    assert "1 decision differs, at #5. Warnings 1 → 1, stops 1 → 0." in drawn(session, trying(session, hard_limit=6))


def test_what_comes_after_a_stop_is_as_what_lies_ahead() -> None:
    """In the scope that is stopped and in those below it, and nowhere else; also where a parent is its own."""
    story = Story().in_scope("t", "r").start("lead")
    story.in_scope("t", "sub").start("sub", ("t", "r")).in_scope("t", "odd").start("odd", ("t", "odd"))
    for run in ("r", "r", "r", "sub", "odd", "r"):
        story.in_scope("t", run).call("search", {"query": "x"})
    session = story.session()
    session.select(Lane("t", None, whole_thread=True))
    (strip,) = [line for line in lines(session, trying(session, hard_limit=3)) if plain(line).startswith("override")]
    assert [(span.text, span.style) for span in strip[1:]] == [
        ("·", "ok"), ("=", "repeat"), ("■", "bar_stop"), ("·", "ahead"), ("·", "ok"), ("■", "ahead"),
    ]  # fmt: skip


def test_columns_side_by_side() -> None:
    """A strip and totals each; the active one is told apart; presets have their names, long ones their ends."""
    usage = Usage(100, 10, 0.01)
    story = Story()
    for _ in range(8):
        story.call("search", {"query": "x"}, "nothing", usage=usage)
    session = story.session()
    draft = trying(session, hard_limit=7).beside().take(BOUNDED).beside().take(PRESETS["deerflow-2026-04"])
    text = drawn(session, draft)
    assert text[0].split() == ["baseline", "override", "1", "bounded", "…ow-2026-04"]
    rows = {line[:14].strip(): line[27:].split() for line in text}
    assert rows["stopped"] == ["4", "2", "4", "4"]
    assert rows["first stop"] == ["#5", "#7", "#5", "#5"]
    assert rows["batches after"] == ["1", "3", "3"]
    assert rows["tokens after"] == ["110", "330", "330"]
    assert rows["cost after"] == ["$0.0100", "$0.0300", "$0.0300"]
    assert sum(line.startswith(("override 1 ", "bounded ", "…")) for line in text) == 3
    never = drawn(session, trying(session, hard_limit=20).beside())
    assert {line[:14].strip(): line[27:].split() for line in never}["batches after"] == ["-", "-"]
    assert "tokens after" not in " ".join(drawn(looping().session(), Draft.of(Policy()).beside()))


def test_columns_before_they_were_tried() -> None:
    """They show what the run had."""
    session = looping().session()
    draft = trying(session, hard_limit=7).beside()
    text = drawn(session, draft, trials=(None, None))
    rows = {line[:14].strip(): line[27:].split() for line in text}
    assert (rows["stopped"], rows["warned"], rows["first stop"]) == (["2"] * 3, ["1"] * 3, ["#5"] * 3)
    assert rows["differ"] == ["0", "0"]


def test_while_it_is_tried() -> None:
    """It is told; what was known before stays."""
    session = looping().session()
    draft = trying(session, hard_limit=7)
    assert "trying ..." in drawn(session, draft, trials=(None,), searching=True)
    assert any(line.endswith("stops 2 → 0. ...") for line in drawn(session, draft, searching=True))


def test_what_is_typed_and_why_it_cannot_be() -> None:
    """In the place of the value; the reason in the place of the result."""
    session = looping().session()
    text = drawn(session, Draft.of(session.policy), row=1, typed="1", problem="hard_limit: must be at least 3")
    assert text[2].split() == ["▶hard_limit", "5", "1_"]
    assert "hard_limit: must be at least 3" in text


def test_a_run_with_several_policies_says_so() -> None:
    """The override takes the place of all of them."""
    story = looping(3)
    story.events.append(PolicySet(policy={"hard_limit": 9}, seq=99, ts=None, thread_id=None, run_id=None))
    for _ in range(4):
        story.call("search", {"query": "rust tls", "top_k": 5})
    session = story.session()
    text = " ".join(drawn(session, Draft.of(session.policy).take(Policy(hard_limit=4))))
    assert "The run had 2 policies, one after the other: the override takes the place of all." in text


@pytest.mark.parametrize("width", [20, 36, 56, 76, 120])
@pytest.mark.parametrize("height", [4, 9, 13, 22, 40])
@pytest.mark.parametrize("columns", [1, 3])
def test_it_fits_and_hostile_names_are_seen(width: int, height: int, columns: int) -> None:
    """No line is wider than the pane; three settings at least; what a tool is called cannot do anything."""
    story = Story()
    for n in range(90):
        story.call(HOSTILE, {"query": str(n // 9)})
    session = story.session()
    draft = trying(session, hard_limit=7)
    for _ in range(columns - 1):
        draft = draft.beside().step(("window_size",), 1)
    found = lines(session, draft, width, height, row=7, hints=(("l", "change"),))
    assert max(map(line_width, found)) <= width
    assert all(plain(line).isprintable() for line in found)
    assert sum(link_at(line, 0) < 0 for line in found) >= 3
    if height >= 22 and columns == 1:
        assert len(found) <= height


def test_rows_scroll_with_the_chosen_one_and_lead_to_themselves() -> None:
    """The chosen row is always among them."""
    session = looping().session()
    draft = Draft.of(session.policy)
    paths = settings(draft, [])
    for row in range(len(paths)):
        found = [-link_at(line, 3) - 1 for line in lines(session, draft, height=14, row=row) if link_at(line, 3) < 0]
        assert row in found
        assert found == list(range(found[0], found[0] + len(found)))


def test_keys_stand_beside_the_settings_where_there_is_room() -> None:
    """And nowhere else."""
    session = looping().session()
    hints = (("h l", "change"), ("a very long key", "that has no room " * 3), ("0", "reset"))
    text = drawn(session, Draft.of(session.policy), hints=hints)
    assert text[1].endswith("h l change")
    assert text[3].endswith("0 reset")
    assert "h l change" not in " ".join(drawn(session, Draft.of(session.policy), width=50, hints=hints))


def test_the_strips_page_around_the_cursor() -> None:
    """With numbers where they have room; the cursor's own always."""
    story = Story()
    for n in range(400):
        story.call("search", {"query": str(n)})
    session = story.session()
    for cursor in (1, 9, 10, 12, 200, 399, 400):
        session.seek(cursor)
        found = lines(session, trying(session, hard_limit=7), width=60)
        (ruler,) = [plain(line) for line in found if plain(line).startswith("batch")]
        assert f"▼{cursor}" in ruler or f"{cursor}▼" in ruler
        (strip,) = [line for line in found if plain(line).startswith("baseline")]
        assert [span.link for span in strip if span.mark == "cursor"] == [cursor]
        assert link_at(strip, 11) == strip[1].link


def test_without_a_batch_there_is_no_strip() -> None:
    """Settings can be looked at all the same."""
    session = Story().session()
    text = drawn(session, Draft.of(session.policy))
    assert text[1].split()[0] == "▶warn_threshold"
    assert not any(line.startswith("baseline ") for line in text[1:])


def test_a_lane_that_the_cursor_is_not_in_has_a_ruler_too() -> None:
    """Without the cursor."""
    session = Story().in_scope("t", "a").call("x", {}).in_scope("t", "b").call("x", {}).session()
    session.lane, session.cursor = Lane("t", "a"), 2
    (ruler,) = [line for line in drawn(session, trying(session, hard_limit=7)) if line.startswith("batch")]
    assert ruler.split() == ["batch", "1"]


def test_what_differs_is_walked() -> None:
    """Forwards and back, in the lane that is shown."""
    session = looping(8).session()
    trial = session.attempt(Policy(hard_limit=7))
    assert whatif.next_differing(trial, session.batches, 1, 1) == 5
    assert whatif.next_differing(trial, session.batches, 5, 1) == 6
    assert whatif.next_differing(trial, session.batches, 6, 1) is None
    assert whatif.next_differing(trial, session.batches, 8, -1) == 6
    assert whatif.next_differing(trial, [1, 2, 3], 1, 1) is None
    assert whatif.next_differing(None, session.batches, 1, 1) is None


def test_very_many_differences_begin_at_the_cursor() -> None:
    """As many as there is room for."""
    session = looping(200).session()
    session.seek(150)
    text = " ".join(drawn(session, trying(session, window_size=3)))
    assert "#149 STOP A→search" in text
    assert "#5 -STOP A" not in text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "off"), (True, "yes"), (False, "no"), (100_000, "100,000"), (0.5, "0.5"), ("salient", "salient"),
     (["a", "\x1b"], "a, \\x1b")],
)  # fmt: skip
def test_values_as_a_person_reads_them(value: Any, text: str) -> None:
    """Nothing from outside is drawn as it is."""
    assert whatif.value_text(value) == text


def test_a_call_without_a_name_has_no_letter_of_a_tool() -> None:
    """The layer is named where no tool is."""
    story = Story()
    for n in range(4):
        story.batch(Call(f"a{n}", "x", {"query": "1"}), Call(f"b{n}", "x", {"query": "1"}))
    session = story.session()
    draft = Draft.of(session.policy).with_(("repeat_in_batch", "warn"), 2)
    assert "+WARN repeat_in_batch" in " ".join(drawn(session, draft))
