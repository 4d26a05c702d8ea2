"""Inspect: the batch at the cursor with its calls, keys, results and sightings, and below it why its verdict."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from loopscope.engine.events import Batch, Call, Result
from loopscope.engine.explain import Explanation
from loopscope.recording.inert import inert, inert_lines
from loopscope.session.letters import letter_name
from loopscope.session.session import Session
from loopscope.views import bounds, why
from loopscope.views.calls import Keyed, tool_names
from loopscope.views.cells import cell_len
from loopscope.views.flow import flow, wrap
from loopscope.views.model import Line, Span, Style, clip, crop
from loopscope.views.sight import CALLS, Seen, Sight, look, ready, weight
from loopscope.views.words import amount, money, plural, size

__all__ = ["batch_lines", "body", "height", "lines"]

ARGUMENT_LINES, RESULT_LINES, SIGHTINGS = 12, 4, 24
_FIELD = 11
"""Cells before the value of a field: `   key      `."""
_TEXT = 2000


def body(  # noqa: PLR0913 - what panes differ in
    session: Session,
    width: int,
    explanation: Explanation | None = None,
    *,
    searching: bool = False,
    dense: bool = False,
    wait: bool = True,
) -> list[Line]:
    """The whole pane.

    Args:
        session: whose cursor.
        width: cells.
        explanation: of the batch; by default the one that needs no search.
        searching: a longer explanation is on its way.
        dense: leave no empty line.
        wait: read what weighs at once, however long that takes; else say that it is being read.
    """
    if not session.cursor:
        return [(Span("no batch with calls in this recording", "dim"),)]
    found = explanation or session.explain(search=False)
    gap: list[Line] = [] if dense else [()]
    rows = bounds.evidence(session, width)
    reasons = why.body(found, len(session), width, searching=searching, rows=rows)
    return [*batch_lines(session, width, wait=wait), *gap, *reasons]


def height(session: Session, width: int) -> int:
    """Lines of the whole pane."""
    return len(body(session, width))


def lines(session: Session, first: int, count: int, width: int) -> list[Line]:
    """Some lines of the pane, whose length is bounded whatever the batch weighs."""
    return body(session, width)[first : first + count]


def batch_lines(session: Session, width: int, *, wait: bool = True) -> list[Line]:
    """The batch at the cursor without its explanation; `wait` as for `body`."""
    number = session.cursor
    row = session.row(number)
    at_once = wait or ready(session, number)
    found = look(session, number) if at_once else None
    result = _head(session, found.batch if found is not None else None, width)
    if found is None:
        result.append((Span(f" {clip(tool_names(row.names), width - 1)}"),))
        gone = (Span(" its line is not in the file any more", "warn"),)
        result.append(gone if at_once else (Span(f" {size(weight(session, number))}, being read …", "dim"),))
    else:
        result.extend(_calls(session, found, width))
    result.append(
        crop((Span(" hash ", "dim"), Span(row.hash), Span("   alias ", "dim"), Span(letter_name(row.letter))), width)
    )
    result.extend(_sightings(session, number, width))
    result.extend(_ended(session, number, width))
    return result


def _ended(session: Session, number: int, width: int) -> list[Line]:
    """How the run ended, at the last batch of its scope."""
    record = session.timeline.scopes[session.timeline.scope_of(number)]
    if record.end is None or record.batches[-1] != number:
        return []
    smooth = record.end.status == "completed"
    words = inert(record.end.status + (f": {record.end.reason}" if record.end.reason else ""), _TEXT)
    head = (Span(" run  ", "dim"), Span("ended "))
    first, *rest = wrap(words, max(1, width - 12))
    tone: Style = "text" if smooth else "warn"
    return [(*head, Span(first, tone)), *((Span(" " * 12 + piece, tone),) for piece in rest[: ARGUMENT_LINES - 1])]


def _head(session: Session, batch: Batch | None, width: int) -> list[Line]:
    """Number, calls and what the model call used."""
    number = session.cursor
    count = session.timeline.batches.calls[number - 1]
    parts: list[Line] = [(Span(f"batch {number}", "title"),), (Span(plural(count, "call")),)]
    if batch is not None:
        named = {"message": batch.message_id, "node": batch.node, "model": batch.model}
        parts.extend((Span(f"{label} ", "dim"), Span(inert(value, 60))) for label, value in named.items() if value)
    usage = session.row(number).usage
    if usage is not None:
        tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0)
        parts.append((Span(f"{amount(tokens)} tokens"),))
        if usage.cost_usd is not None:
            parts.append((Span(money(usage.cost_usd)),))
    result = [crop(line, width) for line in flow(parts, width)]
    if batch is not None and batch.text:
        said = inert_lines(batch.text, _TEXT)
        result.extend(_limited([f' says "{line}"' if not i else f"  {line}" for i, line in enumerate(said)], width, 2))
    return result


def _calls(session: Session, found: Sight, width: int) -> Iterator[Line]:
    for position, seen in enumerate(found.calls):
        yield from _call(seen, width)
        yield from _key(seen.call, seen.keyed, width)
        yield from _result(session, seen.result, position, width)
    more = session.timeline.batches.calls[session.cursor - 1] - CALLS
    if more > 0:
        yield (Span(f" … {plural(more, 'more call')}", "dim"),)


def _call(seen: Seen, width: int) -> list[Line]:
    """The tool's name and its arguments as JSON: on one line where they fit, else an argument a line."""
    call = seen.call
    name = inert(call.name or "", _TEXT) or "(no name)"
    whole = _json(call.args)
    if cell_len(name) + cell_len(whole) + 2 <= width:
        return [(Span(f" {name} ", "title"), Span(whole))]
    head: Line = (Span(f" {clip(name, width - 1)}", "title"),)
    if not isinstance(call.args, dict):
        return [head, *_limited([f"  {_weight(seen, '')} {whole}"], width, ARGUMENT_LINES)]
    pieces = [f"   {inert(str(field))}{_weight(seen, field)}: {_json(value)}" for field, value in call.args.items()]
    return [head, *_limited(pieces, width, ARGUMENT_LINES)]


def _weight(seen: Seen, field: str) -> str:
    """How long a text is, where that is more than is shown of it."""
    found = seen.long.get(field)
    return f" ({found:,} characters)" if found is not None else ""


def _json(value: Any) -> str:
    return inert(json.dumps(value, ensure_ascii=False, default=str), _TEXT)


def _limited(texts: list[str], width: int, most: int) -> list[Line]:
    """Texts wrapped into at most `most` lines; that there was more is told on the last one."""
    pieces: list[str] = []
    for text in texts:
        indent = min(len(text) - len(text.lstrip(" ")), width // 2)
        first, *rest = wrap(text.lstrip(" "), max(1, width - indent - 2))
        pieces.append(" " * indent + first)
        pieces.extend(" " * (indent + 2) + piece for piece in rest)
        if len(pieces) > most:
            break
    if len(pieces) > most:
        pieces[most - 1] = clip(pieces[most - 1], max(1, width - 2)).removesuffix("…") + " …"
    return [(Span(piece),) for piece in pieces[:most]]


def _field(label: str, value: Line, width: int) -> Line:
    return crop((Span(f"   {label}".ljust(_FIELD), "dim"), *value), width)


def _key(call: Call, found: Keyed, width: int) -> Iterator[Line]:
    """What the call is counted by, and which of its arguments are not in it."""
    yield _field("key", (Span(inert(found.key, _TEXT)),), width)
    if call.key is not None:
        yield _field("", (Span("recorded: the arguments are not as they were", "dim"),), width)
    elif found.ignored:
        yield _field("ignored", (Span(", ".join(inert(name, 100) for name in found.ignored), "dim"),), width)


def _result(session: Session, result: Result | None, position: int, width: int) -> Iterator[Line]:
    """Size and status of a result, whether it is an old one, and the beginning of its text."""
    if result is None:
        removed = session.timeline.removed(session.cursor)
        yield _field("result", (Span("not run: the batch was stopped" if removed else "none recorded", "dim"),), width)
        return
    same = session.same_result(session.cursor, position)
    parts: list[Line] = [(Span("   result".ljust(_FIELD), "dim"), Span(size(result.size or 0)))]
    if result.status == "error":
        parts.append((Span("error", "warn"),))
    if same is not None:
        parts.append((Span("same text as "), Span(f"#{same}", "repeat", link=same)))
    if result.error_type:
        parts.append((Span(inert(result.error_type, 60)),))
    yield from (crop(line, width) for line in flow(parts, width, indent=_FIELD, gap=2))
    shown = inert_lines(result.content, _TEXT)
    if shown != [""]:
        yield from (
            (Span(span.text, "dim"),) for (span,) in _limited([f"     {line}" for line in shown], width, RESULT_LINES)
        )


def _sightings(session: Session, number: int, width: int) -> list[Line]:
    """Every batch of the scope with this hash, the nearest ones where there are many; each leads there."""
    numbers = session.sightings(number)
    here = numbers.index(number)
    before, after = numbers[max(0, here - SIGHTINGS) : here], numbers[here + 1 : here + 1 + SIGHTINGS // 2]
    parts: list[Line] = [(Span(f"#{n}", link=n),) for n in before]
    if here > len(before):
        parts.insert(0, (Span(f"… {here - len(before):,} earlier", "dim"),))
    parts.append((Span(f"#{number}", "title"),))
    parts.extend((Span(f"#{n}", "dim", link=n),) for n in after)
    left = len(numbers) - here - 1 - len(after)
    if left:
        parts.append((Span(f"… {left:,} later", "dim"),))
    return flow([(Span(" seen ", "dim"), *parts[0]), *parts[1:]], width, indent=6, gap=1)
