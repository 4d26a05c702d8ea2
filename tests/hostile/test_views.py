from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from loopscope.engine.breakpoints import Breakpoint
from loopscope.engine.policy import BOUNDED
from loopscope.session.draft import Draft, settings, tools_of
from loopscope.session.session import Session
from loopscope.settings import Choice
from loopscope.targets import open_session
from loopscope.views import (
    breakpoints,
    decisions,
    detect,
    exporting,
    goto,
    graph,
    inspector,
    moves,
    scopes,
    text,
    timeline,
    topbar,
    whatif,
    why,
)
from loopscope.views.cells import cell_len
from loopscope.views.exporting import KINDS, Export
from loopscope.views.glyphs import line_in_ascii
from loopscope.views.model import Line, line_width, plain
from tests.hostile.corpus import COUNT, EACH, foreign, marker, recording, strings

WIDTHS = (160, 100, 80, 51, 34, 20)
FEW = 5
WHICH = [pytest.param(index, marks=[pytest.mark.slow] if index % FEW else []) for index in range(COUNT // EACH)]


@pytest.fixture(params=WHICH)
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Session:
    """One of the twenty-five recordings, which between them hold all five hundred texts in all places."""
    path = tmp_path / "hostile.jsonl"
    path.write_bytes(recording(request.param))
    return open_session(path, Choice.of())


def panes(session: Session, width: int) -> Iterator[tuple[str, Sequence[Line]]]:
    """Every pane at the cursor, in this width."""
    everything = (0, 10_000)
    for presenter in (topbar, timeline, scopes, detect, inspector, graph):
        yield presenter.__name__, presenter.lines(session, *everything, width)
    yield "why", why.body(session.explain(), len(session), width, searching=True)
    log = decisions.Log(session)
    yield "decisions", [decisions.heading(width), *log.lines(*everything, width)]


def safe(drawn: str) -> None:
    assert (foreign(drawn), drawn.isprintable()) == ("", True), ascii(drawn)


def test_every_line_of_every_pane_is_inert_and_fits(session: Session) -> None:
    """At each batch of each scope, wide and narrow: printable, no direction or invisible marks, no cell too many."""
    for number in range(1, len(session) + 1, 3):
        session.seek(number)
        width = WIDTHS[number // 3 % len(WIDTHS)]
        for name, lines in panes(session, width):
            for line in lines:
                safe(plain(line))
                assert line_width(line) <= width, (name, width, ascii(plain(line)))
                assert sum(cell_len(character) for character in plain(line)) == line_width(line), ascii(plain(line))
                assert plain(line_in_ascii(line)).isascii() or not plain(line).isascii()


def test_other_limits_and_breakpoints_are_inert_and_fit(session: Session) -> None:
    """The pane What-if with two columns, breakpoints on names of the run, and the limits as they are exported."""
    names = tools_of(session.timeline)
    draft = Draft.of(session.policy).with_(("tool_freq_overrides", names[0], "warn"), 1).beside().take(BOUNDED)
    trials = tuple(session.attempt(policy) for policy in draft.columns)
    assert len({*draft.columns}) == len(draft.columns)
    sheet = whatif.Sheet(draft, trials, settings(draft, names), row=6)
    session.breakpoints += [Breakpoint("tool", name) for name in names]
    own = Export(KINDS[0], names[0], names[-1], session.policy, draft.columns[0])
    for width in WIDTHS:
        lines = [
            *whatif.body(session, sheet, width, 60),
            *breakpoints.body(session, width),
            *(line for kind in KINDS for line in exporting.body(own._replace(kind=kind), width)),
        ]
        for line in lines:
            safe(plain(line))
            assert line_width(line) <= width, (width, ascii(plain(line)))


def test_words_of_moves_and_places_are_inert(session: Session) -> None:
    """What the corner, the line of `:` and the borders say."""
    said = [moves.opened(session)]
    for info in list(session.scopes)[:12]:
        said += [goto.resolve(session, name or "").says for name in (*info.key, info.agent)]
        target = goto.resolve(session, topbar.scope_name(*info.key))
        said += [target.says, *map(str, filter(None, (moves.parent(session), moves.child(session))))]
        said += filter(None, (moves.edge(session, -1), moves.step(session, -1), moves.decision(session, -1)))
    for words in said:
        safe(words)


def test_the_view_as_text(session: Session) -> None:
    """What `attach` prints where there is no terminal: newlines, and nothing else that acts."""
    for ascii_only in (False, True):
        for line in text.render(session, ascii_only=ascii_only).split("\n"):
            safe(line)
            assert cell_len(line) <= text.WIDTH


def test_a_text_is_shown_as_it_is_known() -> None:
    """Inert does not mean gone: the plain word in each text, and an escape as its code, can be read."""
    from loopscope.recording.inert import inert

    for number, hostile in enumerate(strings()):
        shown = inert(hostile)
        safe(shown)
        assert marker(number) in shown
        assert (r"\x1b" in shown) >= ("\x1b" in hostile)
        assert (r"\u202e" in shown) >= ("\u202e" in hostile)
