"""A run as one HTML page, to be mailed, archived or printed: everything in one file, and nothing in it that runs.

There is no script, and the page's own policy lets it load nothing from anywhere: only its one style sheet, known by its
hash, applies. It follows the reader's light or dark, and prints light.
"""

from __future__ import annotations

from pathlib import PurePath

from loopscope import __version__
from loopscope.recording.inert import inert
from loopscope.session.session import Session
from loopscope.views import detect, topbar
from loopscope.views.glyphs import GLYPH
from loopscope.views.web import look, panels, report
from loopscope.views.web.counts import counts
from loopscope.views.web.document import document
from loopscope.views.web.markup import Markup, tag
from loopscope.views.web.pieces import Told, facts, sign
from loopscope.views.words import plural

__all__ = ["page"]


def page(session: Session, *, theme: str | None = None) -> str:
    """The page of the batch at the cursor, and of every warning and stop, as a whole document that ends in a newline.

    Args:
        session: what to tell.
        theme: `dark` or `light`; None follows the reader.
    """
    name = inert(PurePath(session.source).name or session.source)
    body = tag("body", _header(session, name), tag("main", *_sections(session)), _footer(session), class_="loopscope")
    return document(f"{name}: {topbar.verdict(session).text}", look.page_style(theme), body, theme)


def _header(session: Session, name: str) -> Markup:
    """The run, the verdict at the cursor, and the run in numbers."""
    found = report.totals(session)
    state = session.row(session.cursor).state if session.cursor else "none"
    words = topbar.verdict(session).text.removeprefix(f"{GLYPH.get(state, '')} ")
    badge = [sign(state), " "] if session.cursor else []
    at = f"batch {session.cursor:,} of {len(session):,} · {topbar.lane_name(session.lane)}"
    values = [
        ("batches", f"{found.batches:,}"),
        ("scopes", f"{found.scopes:,}"),
        ("warnings", f"{found.warnings:,}"),
        ("stops", f"{found.stops:,}" + (f" (first at #{found.first_stop:,})" if found.first_stop else "")),
        ("limits", topbar.config(session)),
    ]
    header = session.header
    if header is not None and header.created:
        values.append(("recorded", header.created[:40]))
    skipped = len(session.problems)
    problems = [tag("p", f"{plural(skipped, 'line')} could not be read.", class_="dim")] if skipped else []
    return tag(
        "header",
        tag("h1", name),
        tag("p", tag("span", *badge, words, class_=f"verdict {state}"), " ", tag("span", at, class_="note")),
        facts(values),
        *problems,
    )


def _sections(session: Session) -> list[Markup]:
    found = detect.data(session)
    if found is None:
        return []
    passages, after = report.passages(session)
    told = Told(session, {number for passage in passages for number in passage.numbers})
    return [
        panels.timeline(told),
        tag(
            "div",
            tag("div", panels.why(told), panels.batch(told)),
            tag("div", counts(told, found), panels.scope_tree(told)),
            class_="beside",
        ),
        panels.decisions(told, passages, after),
        panels.graphs(told),
    ]


def _footer(session: Session) -> Markup:
    again = f"loopscope attach {session.source}"
    return tag("footer", f"loopscope {__version__} · ", tag("code", again), " opens this run in the debugger")
