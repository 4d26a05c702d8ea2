"""Events as they may be recorded: no seeded secret is left, and results keep no digest of one."""

from __future__ import annotations

import re
from typing import Any

import pytest

from loopscope.engine.events import Batch, Call, Control, Event, Gap, Result, RunEnd, Warned, Witness
from loopscope.errors import UsageError
from loopscope.recording.codec import decode, encode
from loopscope.recording.named import MASK
from loopscope.recording.preview import preview
from loopscope.recording.redaction import Redactor
from tests.recording.seeded import SEEDED, pieces

AT: dict[str, Any] = {"seq": 7, "ts": 1.5, "thread_id": "t", "run_id": None}


@pytest.mark.parametrize(("label", "secret", "content"), SEEDED, ids=[f"{n}" for n in range(len(SEEDED))])
def test_no_seeded_secret_is_left(label: str, secret: str, content: Any) -> None:
    """Wherever the secret stands, it is not in the line of any event that carries it."""
    redactor = Redactor()
    text = content if isinstance(content, str) else repr(content)
    events: list[Event] = [
        Batch(**AT, calls=(redactor.call(Call("c", "tool", {"query": content, "n": 1})),), text=redactor.text(text)),
        Batch(**AT, calls=(redactor.call(Call("c", "tool", content)),)),
        Result(
            **AT,
            call_id="c",
            status="error",
            **redactor.preview(content if isinstance(content, str) else [content])._asdict(),
        ),
        redactor.event(Batch(**AT, calls=(Call("c", "tool", {"body": content}),), text=text)),
        redactor.event(Result(**AT, call_id="c", status="ok", content=text, digest="0" * 16)),
        redactor.event(RunEnd(**AT, status="error", reason=text)),
        redactor.event(Warned(**AT, state="queued", text=text)),
        redactor.event(Control(**AT, action="stop", by=text)),
        redactor.event(Witness(**AT, values={"w": content})),
    ]
    for event in events:
        line = encode(event).decode()
        for part in pieces(secret):
            assert part not in line, (label, text)
        assert decode(line.encode()) is not None


def test_a_result_with_a_secret_has_a_digest_that_cannot_be_guessed() -> None:
    """Equal results still have equal digests, but not that of the text, which a short secret would not survive."""
    redactor = Redactor()
    first, second = redactor.preview("pin: 1, password: 1234"), redactor.preview("pin: 1, password: 1234")
    assert first == second
    assert first.content == f"pin: 1, password: {MASK}"
    assert first.size == 22
    assert re.fullmatch(r"[0-9a-f]{16}", first.digest)
    assert first.digest != preview("pin: 1, password: 1234").digest
    assert redactor.preview("pin: 1, password: 1235").digest != first.digest
    harmless = "the token of the author\ud800"
    assert redactor.preview(harmless) == preview(harmless)._replace(content=r"the token of the author\ud800")


def test_a_secret_across_the_cut_of_a_preview_is_not_left_in_part() -> None:
    """The part of a token that would be too short to be known is not recorded either."""
    redactor = Redactor()
    token = "ghp_" + "a1" * 18
    for start in range(1990, 2001):
        shown = redactor.preview("x" * (start - 1) + " " + token + " tail" * 500)
        assert "ghp_" not in shown.content
    shown = redactor.preview("x" * 1990 + " " + token + " tail")
    assert "ghp_" not in shown.content
    assert len(redactor.preview("plain text " * 500).content) == 2000
    assert redactor.text("password=abc1 and more", limit=18) == f"password={MASK}"[:18]


def test_events_without_secrets_are_the_same_objects() -> None:
    """Nothing is copied where nothing changes; kinds without text are given back at once."""
    redactor = Redactor()
    for event in (
        Batch(**AT, calls=(Call("c", "bash", {"command": "ls"}),), text="the token"),
        Result(**AT, call_id="c", status="ok", content=""),
        Witness(**AT, values={"open": [1, 2]}),
        Gap(**AT, lost=1),
    ):
        assert redactor.event(event) is event


def test_an_event_keeps_no_digest_of_what_was_masked() -> None:
    """A digest made elsewhere is keyed as well; one that is not there is not invented."""
    redactor = Redactor()
    event = Result(**AT, call_id="c", status="ok", content="password=abc1", digest="0" * 16)
    assert redactor.event(event).digest not in {None, "0" * 16}
    assert redactor.event(Result(**AT, call_id="c", status="ok", content="password=abc1")).digest is None


def test_patterns_of_the_user_are_masked_everywhere() -> None:
    """In arguments, names of arguments, results and texts, beside the rules that are built in."""
    redactor = Redactor([r"CASE-\d+", "(?i)acme"])
    call = redactor.call(Call("c", "tool", {"q": "see CASE-12 and password=abc1", "ACME": ["Acme", 1]}))
    assert call.args == {"q": f"see {MASK} and password={MASK}", MASK: [MASK, 1]}
    assert redactor.preview("case CASE-99").content == f"case {MASK}"
    untouched = Call("c", "tool", {"q": "nothing here"})
    assert redactor.call(untouched) is untouched


def test_patterns_that_are_wrong_are_told_all_at_once() -> None:
    """The error names each pattern and says what is wrong with it."""
    with pytest.raises(UsageError) as caught:
        Redactor(["(", "x*", "fine", 5])  # type: ignore[list-item]
    message = str(caught.value)
    assert "'(' is no regular expression: missing )" in message
    assert "'x*' matches the empty text" in message
    assert "5 is no regular expression" in message
    assert "fine" not in message
    with pytest.raises(UsageError):
        Redactor("a*")
