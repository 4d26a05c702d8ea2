"""A run as the output of a notebook's cell where no widget can be: a picture, why, and the table of decisions.

It has no script and no style sheet of its own, since converters and hosts take those away; the picture is an image with
everything in it. Apart from the page, which is a whole document.
"""

from __future__ import annotations

import base64

from loopscope.session.session import Session
from loopscope.views import decisions, topbar
from loopscope.views.glyphs import GLYPH
from loopscope.views.web.markup import Markup, tag
from loopscope.views.web.picture import picture
from loopscope.views.words import plural

__all__ = ["cell"]

_MOST = 50


def cell(session: Session) -> str:
    """The fragment of HTML for the batch at the cursor."""
    parts = [tag("p", tag("strong", session.source), f" · {topbar.lane_name(session.lane)}")]
    if session.cursor:
        drawn = base64.b64encode(picture(session).encode()).decode()
        words = f"timeline of {session.source}: {topbar.verdict(session).text}"
        parts.append(tag("img", src=f"data:image/svg+xml;base64,{drawn}", alt=words, width=960))
        found = session.explain(search=False)
        parts.append(tag("p", tag("strong", f"Why #{session.cursor}"), f" {found.headline}"))
        parts.append(tag("ol", *(tag("li", line) for line in found.lines)))
    parts.append(_table(session))
    return str(tag("div", *parts))


def _table(session: Session) -> Markup:
    notable = session.timeline.notable
    if not notable:
        return tag("p", "No warning and no stop.")
    heads = ("batch", "verdict", "scope", "rule", "of", "count", "what came of it")
    rows = [tag("tr", *(tag("th", text) for text in heads))]
    for number in notable[:_MOST]:
        entry = decisions.entry(session, number)
        verdict = f"{GLYPH[entry.state]} {entry.state}"
        cells = (f"#{number}", verdict, entry.scope, entry.rule, entry.subject, entry.counted, entry.effect)
        rows.append(tag("tr", *(tag("td", text) for text in cells)))
    more = len(notable) - _MOST
    if more > 0:
        rows.append(tag("tr", tag("td", f"{plural(more, 'more decision')}", colspan=len(heads))))
    return tag("table", *rows)
