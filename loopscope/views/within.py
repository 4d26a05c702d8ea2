"""Within a batch: what the engine does with it, event by event, in the order in which it does it.

Warnings that reach the model before it asks, the calls as they are seen, what is counted, the verdict, what comes
of it, and the results as they come in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from loopscope.engine.events import Warned
from loopscope.engine.explain import headline
from loopscope.session.letters import letter_name
from loopscope.session.session import Row, Session
from loopscope.views.calls import tool_names, unenforced
from loopscope.views.glyphs import GLYPH, STYLE, TONE
from loopscope.views.model import Line, Span, Style, crop, marked
from loopscope.views.sight import CALLS, Sight, look, ready
from loopscope.views.words import newest_calls, safe_name, size

__all__ = ["Step", "body", "steps"]

_MOST = 50
"""Tools that have a step of their own."""


class Step(NamedTuple):
    """One thing that happens."""

    kind: str
    """`delivered`, `call`, `count`, `verdict`, `effect` or `result`."""
    text: str
    style: Style = "text"


def steps(session: Session, number: int, *, wait: bool = True) -> tuple[Step, ...]:
    """What happens within a batch, in order; at least its count and its verdict.

    Args:
        session: the run.
        number: of the batch.
        wait: read what weighs at once, however long that takes; else the steps are as many and say less.
    """
    row = session.row(number)
    found = look(session, number) if wait or ready(session, number) else None
    return (
        *_before(session, row),
        *_seen(row, found),
        *_counted(session, row),
        *_decided(session, row),
        *_results(session, row, found),
    )


def _before(session: Session, row: Row) -> Iterator[Step]:
    """Warnings that the model got before this batch."""
    for warning in session.state_at(row.n).warnings:
        if warning.state == "delivered" and warning.before == row.n:
            assumed = " (assumed)" if warning.assumed else ""
            name = session.letters(row.scope)(warning.subject) if warning.layer == "identical_call_set" else None
            text = f"warning of #{warning.batch} for {safe_name(name or warning.subject)} delivered{assumed}"
            yield Step("delivered", text, "warn")


def _seen(row: Row, found: Sight | None) -> Iterator[Step]:
    """Its calls, as the model made them."""
    for place, name in enumerate(row.names[:CALLS]):
        label = found.calls[place].label if found is not None else tool_names((name,))
        yield Step("call", f"call {place + 1} of {len(row.names)}: {label}")


def _counted(session: Session, row: Row) -> Iterator[Step]:
    """The batch in its window, and each of its tools in theirs."""
    view = session.state_at(row.n)
    policy = view.policy
    seen = f"{row.decision.hash_count} in the last {policy.window_size} batches"
    limits = f"warn {policy.warn_threshold}, hard {policy.hard_limit}"
    yield Step("count", f"batch {letter_name(row.letter)} ({row.hash}): {seen}; {limits}")
    tools = view.scope.tools.counts if view.scope is not None else {}
    for tool in list(dict.fromkeys(row.names))[:_MOST]:
        if tool in tools:
            limit = policy.frequency_limits(tool)
            seen = f"{tools[tool]} in the {newest_calls(policy.frequency_window)}"
            yield Step("count", f"tool {safe_name(tool)}: {seen}; warn {limit.warn}, hard {limit.hard_limit}")


def _decided(session: Session, row: Row) -> Iterator[Step]:
    """The verdict before its tools run, and what comes of it at once."""
    yield from _verdict(session, row._replace(decision=session.timeline.decisions[row.n - 1]))


def _verdict(session: Session, row: Row) -> Iterator[Step]:
    text = safe_name(headline(row.decision, session.letters(row.scope)))
    yield Step("verdict", f"{GLYPH[row.state]} {text}", STYLE[row.state])
    if row.state == "warn":
        yield Step("effect", "a warning is queued for the model's next turn")
    elif row.state == "stop" and row.decision.at == "result":
        yield Step("effect", "the scope's next batch is stopped for it")
    elif row.state == "stop":
        ran = f"{unenforced(session)}: the tools run"
        yield Step("effect", "the calls are removed, no tool runs" if session.timeline.removed(row.n) else ran)


def _results(session: Session, row: Row, found: Sight | None) -> Iterator[Step]:
    """What came back, what is decided then, and warnings that the recording says were put back or lost."""
    rows = session.timeline.results
    came = {rows.call[place] for place in session.timeline.results_of[row.n]}
    for place in sorted(place for place in came if place < CALLS):
        result = found.calls[place].result if found is not None else None
        failed = result is not None and result.status == "error"
        told = f": {'error, ' if failed else ''}{size(result.size or 0)}" if result is not None else ""
        yield Step("result", f"result {place + 1} of {len(row.names)}{told}", "warn" if failed else "text")
    later = session.timeline.at_result.get(row.n)
    if later is not None:
        yield from _verdict(session, row._replace(decision=later))
    for event in session.timeline.between[row.n]:
        if isinstance(event, Warned) and event.scope == row.scope and event.state in ("requeued", "dropped"):
            what = "put back: the model's turn failed" if event.state == "requeued" else "dropped"
            yield Step("effect", f"warning {what}")


def body(found: tuple[Step, ...], at: int, number: int, width: int) -> list[Line]:
    """The steps as lines, the one that is looked at marked, those after it dim."""
    lines: list[Line] = [
        (Span(f"EVENTS #{number}", "title"), Span(f"  {at + 1} of {len(found)}   s and S step, n leaves", "dim"))
    ]
    for place, step in enumerate(found):
        pointer = Span("▶" if place == at else " ", "key")
        text = (Span(f" {step.text}", TONE["ahead"] if place > at else step.style),)
        lines.append((pointer, *(marked(text, "cursor") if place == at else text)))
    return [crop(line, width) for line in lines]
