"""The line of one setting, drawn anew before all that depends on it is known."""

from __future__ import annotations

from loopscope.views import whatif
from loopscope.views.model import plain
from tests.views.support import looping
from tests.views.test_whatif import lines, sheet, trying


def test_a_value_is_drawn_at_once() -> None:
    """The line of the chosen setting is as it will be with the rest, at its place."""
    session = looping(8).session()
    before, after = trying(session), trying(session, hard_limit=7)
    place = next(at for at, line in enumerate(lines(session, before, row=1)) if "hard_limit" in plain(line))
    old, new = (lines(session, draft, row=1)[place] for draft in (before, after))
    assert plain(old) != plain(new)
    assert plain(whatif.row_line(sheet(session, after, row=1), old, 76)).rstrip() == plain(new).rstrip()
