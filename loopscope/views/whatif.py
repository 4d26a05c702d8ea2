"""What-if: the settings that are being tried beside the baseline, both strips, what differs, and what of it is certain.

Everything fits a pane of any height: the settings scroll within what the result leaves them, the list of differing
batches begins at the cursor and takes what is left.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from loopscope.engine.decision import Decision
from loopscope.engine.events import ScopeKey
from loopscope.engine.policy import Policy
from loopscope.session.draft import Draft, Path, Value, get, kind
from loopscope.session.letters import letter_name
from loopscope.session.session import Session
from loopscope.session.whatif import After, Difference, Differs, Trial
from loopscope.views.flow import flow, linked, wrap
from loopscope.views.glyphs import GLYPH, TONE
from loopscope.views.model import Line, Mark, Span, Style, crop, fit, line_width
from loopscope.views.words import amount, money, plural, safe_name

__all__ = [
    "Sheet",
    "body",
    "label",
    "next_differing",
    "result",
    "row_line",
    "rows_shown",
    "spent",
    "summary",
    "value_text",
]

_LABELS = 11
"""Cells before the strips."""
_NAME, _SHORT_NAME, _CELL = 27, 21, 13
_ROOMY = 70
_LEAST_ROWS = 3
_PART = 11
"""Cells of the shortest part of the list of what differs."""
_TALL = 20
_WORD = {"warn": "WARN", "hard_stop": "STOP"}
_STATE = {"pass": "new", "warn": "warn", "hard_stop": "stop"}
_DIFFERS, _UNKNOWN = "≠", "┆"
_NOTHING = "Nothing is changed, so that nothing differs."


class Sheet(NamedTuple):
    """What the pane shows, beside the run itself. The rows of settings have negative links: -1 for the first one."""

    draft: Draft
    trials: tuple[Trial | None, ...]
    """What became of each column, maybe of what it was a moment ago; None for one that was not tried yet."""
    paths: Sequence[Path]
    """The settings, in order."""
    row: int = 0
    """The one that is chosen."""
    focused: bool = True
    typed: str | None = None
    """What is being typed in its place."""
    problem: str = ""
    """Why the last change could not be."""
    searching: bool = False
    """A column is being tried."""
    hints: tuple[tuple[str, str], ...] = ()
    """Keys, and what they do."""

    @property
    def trial(self) -> Trial | None:
        """What became of the column that is being changed."""
        return self.trials[self.draft.active]


def body(session: Session, sheet: Sheet, width: int, height: int) -> list[Line]:
    """All lines of the pane."""
    strips = _strips(session, sheet, width, ruler=height >= _TALL)
    says, notes = _says(session, sheet, width), _notes(session, sheet, width)
    left = height - 1 - len(strips) - len(says) - len(notes)
    listed = _listed(session, sheet, width, max(1, min(left - _LEAST_ROWS, 2 if height < _TALL else 5)))
    rows = _rows(sheet, width, rows_shown(sheet, left - len(listed)))
    return [_heading(sheet, width), *rows, *strips, *says, *listed, *notes]


def result(session: Session, sheet: Sheet, width: int) -> list[Line]:
    """What the pane says beside the settings, for a screen that has these in fields of its own."""
    strips = _strips(session, sheet, width, ruler=True)[1:]
    listed = _listed(session, sheet, width, _TALL)
    return [*strips, *_says(session, sheet, width), *listed, *_notes(session, sheet, width)]


def rows_shown(sheet: Sheet, room: int) -> int:
    """How many settings are visible in so many lines."""
    return max(_LEAST_ROWS, min(len(sheet.paths), room))


def label(path: Path) -> str:
    """A setting's name as its row has it, safe to draw."""
    if path[0] == "tool_freq_overrides":
        return f"tool {safe_name(path[1])} {path[2]}"
    return safe_name(".".join(path))


def value_text(value: Value | Sequence[str]) -> str:
    """A value as a person reads it, safe to draw."""
    if value is None:
        return "off"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return f"{value:,}"
    return safe_name(value if isinstance(value, str) else ", ".join(value))


def _heading(sheet: Sheet, width: int) -> Line:
    name, cell = _widths(sheet, width)
    spans = [Span(" " * name), Span(fit("baseline", cell, right=True), "dim")]
    for column, _ in enumerate(sheet.draft.columns):
        style: Style = "title" if column == sheet.draft.active else "dim"
        spans.append(Span(fit(_end(sheet.draft.name(column), cell - 1), cell, right=True), style))
    return crop(tuple(spans), width)


def _end(name: str, width: int) -> str:
    """A column's name, or its end: presets with a date begin alike."""
    return name if len(name) <= width else f"…{name[len(name) - width + 1 :]}"


def _widths(sheet: Sheet, width: int) -> tuple[int, int]:
    name = _NAME if width >= _ROOMY else _SHORT_NAME
    return name, max(6, min(_CELL, (width - name - 1) // (len(sheet.draft.columns) + 1)))


def _rows(sheet: Sheet, width: int, count: int) -> list[Line]:
    """The settings around the chosen one, with the keys beside them where there is room."""
    first = min(max(0, sheet.row - count // 2), max(0, len(sheet.paths) - count))
    hints = iter(sheet.hints)
    lines: list[Line] = []
    for place in range(first, min(first + count, len(sheet.paths))):
        line = _row(sheet, place, width)
        hint = next(hints, None)
        used = line_width(line)
        if hint is not None and used + len(hint[0]) + len(hint[1]) + 5 <= width:
            line = (*line, Span("   "), Span(hint[0], "key"), Span(f" {hint[1]}", "dim"))
        lines.append(crop(line, width))
    return lines


def row_line(sheet: Sheet, drawn: Line, width: int) -> Line:
    """The line of the chosen setting drawn anew, with the keys beside it as they were."""
    return crop((*_row(sheet, sheet.row, width), *(span for span in drawn if span.link == 0)), width)


def _row(sheet: Sheet, place: int, width: int) -> Line:
    draft, path = sheet.draft, sheet.paths[place]
    name, cell = _widths(sheet, width)
    chosen = place == sheet.row
    spans = [
        Span(("▶" if chosen else " ") + fit(label(path), name - 1), "key" if chosen else "text"),
        Span(fit(value_text(get(draft.baseline, path)), cell, right=True), "dim"),
    ]
    for column, policy in enumerate(draft.columns):
        here = chosen and column == draft.active
        spans += _cell(policy, draft.baseline, path, cell, sheet.typed if here else None)
        if here and sheet.focused:
            spans[-2] = spans[-2]._replace(mark="cursor")
    return tuple(span._replace(link=-place - 1) for span in (*spans, Span(" ")))


def _cell(policy: Policy, baseline: Policy, path: Path, cell: int, typed: str | None) -> list[Span]:
    """A value, and `*` where it is not the baseline's."""
    value = get(policy, path)
    if typed is not None:
        return [Span(fit(f"{typed}_", cell - 1, right=True), "title"), Span(" ")]
    differs = value != get(baseline, path)
    general = path[0] == "tool_freq_overrides" and path[1] not in policy.tool_freq_overrides
    off = value is None or (value is False and kind(path) == "choice")
    style: Style = "title" if differs else "dim" if general or off else "text"
    return [Span(fit(value_text(value), cell - 1, right=True), style), Span("*" if differs else " ", "key")]


def _page(session: Session, width: int) -> tuple[Sequence[int], int]:
    """Numbers of the visible batches around the cursor, and the column of the cursor."""
    numbers = session.batches
    room = max(1, width - _LABELS)
    cursor = bisect_left(numbers, session.cursor)
    half = max(1, room // 2)
    first = min(max(0, cursor // half * half - half // 2), max(0, len(numbers) - room))
    return numbers[first : first + room], cursor - first


def _strips(session: Session, sheet: Sheet, width: int, *, ruler: bool) -> list[Line]:
    """The baseline and each column, batch by batch, and where the active one differs."""
    numbers, cursor = _page(session, width)
    if not numbers:
        return []
    trial = sheet.trial
    states = [session.row(number).state for number in numbers]
    before = trial.stopped_before if trial is not None else {}
    lines: list[Line] = [(), _ruler(numbers, cursor)] if ruler else []
    lines.append(_strip("baseline", session, numbers, states, before, cursor))
    for column, tried in enumerate(sheet.trials):
        name = sheet.draft.name(column)
        style: Style = "title" if column == sheet.draft.active and len(sheet.trials) > 1 else "dim"
        own = [tried.state(number) for number in numbers] if tried is not None else states
        stopped = tried.stopped if tried is not None else before
        lines.append(_strip(name, session, numbers, own, stopped, cursor, style))
    return [*lines, _differs(numbers, trial, cursor)]


def _ruler(numbers: Sequence[int], cursor: int) -> Line:
    cells = [" "] * (len(numbers) + 8)
    free = 0
    for place, number in enumerate(numbers):
        text = str(number)
        if (place == 0 or number % 10 == 0) and place >= free and place + len(text) <= max(len(numbers), len(text)):
            cells[place : place + len(text)] = text
            free = place + len(text) + 1
    text = "".join(cells)[: len(numbers)].rstrip()
    if not 0 <= cursor < len(numbers):
        return (Span("batch".ljust(_LABELS), "dim"), Span(text, "dim"))
    here = f"▼{numbers[cursor]}"
    if cursor + len(here) > len(numbers):
        here = f"{numbers[cursor]}▼"[-cursor - 1 :]
        start = cursor + 1 - len(here)
    else:
        start = cursor
    before = text[:start].ljust(start)
    if before and before[-1].isdigit():
        # A number must not seem to be part of the cursor's.
        before = before.rstrip("0123456789").ljust(start)
    after = text[start + len(here) :]
    if after[:1].isdigit():
        after = " " * (len(after) - len(after.lstrip("0123456789"))) + after.lstrip("0123456789")
    return (Span("batch".ljust(_LABELS), "dim"), Span(before, "dim"), Span(here, "title"), Span(after, "dim"))


def _strip(  # noqa: PLR0913, PLR0917 - a strip is all of it
    name: str,
    session: Session,
    numbers: Sequence[int],
    states: Sequence[str],
    stopped: Mapping[ScopeKey, int],
    cursor: int,
    style: Style = "dim",
) -> Line:
    """One policy's states; what came after its own stop is as what is ahead, since it would not have been."""
    spans = [Span(fit(_end(name, _LABELS - 1), _LABELS), style)]
    for place, (number, state) in enumerate(zip(numbers, states, strict=True)):
        tone: Style = "ahead" if _after_stop(session, number, stopped) else TONE[state] if state else "dim"
        mark: Mark = "cursor" if place == cursor else ""
        spans.append(Span(GLYPH[state] if state else " ", tone, mark, number))
    return tuple(spans)


def _after_stop(session: Session, number: int, stopped: Mapping[ScopeKey, int]) -> bool:
    """Whether the batch came after its scope, or one above it, was stopped."""
    if not stopped:
        return False
    scopes = session.timeline.scopes
    key: ScopeKey | None = session.timeline.scope_of(number)
    seen: set[ScopeKey] = set()
    while key is not None and key not in seen:
        if stopped.get(key, number) < number:
            return True
        seen.add(key)
        record = scopes.get(key)
        key = record.parent if record is not None else None
    return False


def _differs(numbers: Sequence[int], trial: Trial | None, cursor: int) -> Line:
    """`≠` where the verdicts differ, `┆` where the model might have acted differently by then."""
    spans = [Span("differs".ljust(_LABELS), "dim")]
    if trial is None:
        return tuple(spans)
    found = trial.difference.differing
    low, high = (
        bisect_left(found, number, key=lambda differs: differs.batch) for number in (numbers[0], numbers[-1] + 1)
    )
    differing = {differs.batch for differs in found[low:high]}
    unknown = _uncertain_from(trial.difference)
    for place, number in enumerate(numbers):
        past = unknown is not None and number > unknown
        glyph = _DIFFERS if number in differing else _UNKNOWN if past else " "
        mark: Mark = "cursor" if place == cursor else ""
        spans.append(Span(glyph, "dim" if past else "title", mark, number))
    return tuple(spans)


def _uncertain_from(difference: Difference) -> int | None:
    """The batch after which nothing is certain any more."""
    known = [n for n in (difference.certain_until, difference.nothing_after) if n is not None]
    return min(known, default=None)


def _listed(session: Session, sheet: Sheet, width: int, most: int) -> list[Line]:
    """The differing batches of the active column in so many lines; from the cursor on where there are too many."""
    trial = sheet.trial
    if trial is None:
        return []
    differing = trial.difference.differing
    count = most * max(1, width // _PART)
    whole = flow([_part(session, differs) for differs in differing], width) if len(differing) <= count else []
    if len(differing) <= count and len(whole) <= most:
        return [crop(line, width) for line in whole]
    at = bisect_left(differing, session.cursor, key=lambda differs: differs.batch)
    first = max(0, min(at - 1, len(differing) - 1))
    parts = [_part(session, differs) for differs in differing[first : first + count]]
    return [crop(line, width) for line in flow(parts, width)[:most]]


def _part(session: Session, differs: Differs) -> Line:
    """`#9 +WARN A`: one batch, what the override says more or less, and of what."""
    before, after = differs.baseline, differs.override
    if before.action == "pass":
        text, said, style = f"+{_WORD[after.action]}", after, TONE[_STATE[after.action]]
    elif after.action == "pass":
        text, said, style = f"-{_WORD[before.action]}", before, TONE[_STATE[before.action]]
    elif before.action == after.action:
        text, said, style = _WORD[after.action], after, TONE[_STATE[after.action]]
    else:
        text, said, style = f"{_WORD[before.action]}→{_WORD[after.action]}", after, TONE[_STATE[after.action]]
    of = _subject(session, said)
    if before.action == after.action:
        of = f"{_subject(session, before)}→{of}"
    return (Span(f"#{differs.batch}", "text", link=differs.batch), Span(f" {text}", style), Span(f" {of}", "dim"))


def _subject(session: Session, decision: Decision) -> str:
    """The letter of a hash, a tool, or the layer."""
    if decision.layer == "identical_call_set":
        return letter_name(session.timeline.batches.letter[decision.batch - 1])
    return safe_name(decision.tool) if decision.layer == "tool_frequency" and decision.tool else str(decision.layer)


def _says(session: Session, sheet: Sheet, width: int) -> list[Line]:
    """What differs: the totals, or why there are none."""
    if sheet.problem:
        return [(Span(piece, "warn"),) for piece in wrap(sheet.problem, max(1, width))]
    if len(sheet.draft.columns) > 1:
        return _table(session, sheet, width)
    if sheet.trial is None:
        return [(Span("trying ..." if sheet.searching else _NOTHING, "dim"),)]
    *lines, last = _wrapped(session, summary(sheet.trial.difference), width)
    return [*lines, (*last, Span(" ...", "dim")) if sheet.searching else last]


def summary(difference: Difference) -> str:
    """How many differ, and the totals of both sides."""
    now, then = difference.baseline, difference.override
    totals = f"Warnings {now.warnings:,} → {then.warnings:,}, stops {now.stops:,} → {then.stops:,}."
    if difference.first is None:
        return f"Nothing differs. {totals}"
    count = len(difference.differing)
    differ = "1 decision differs, at" if count == 1 else f"{count:,} decisions differ, first at"
    return f"{differ} #{difference.first}. {totals}"


def spent(after: After) -> str:
    """Batches, calls, tokens and cost; tokens and cost where the run tells of them."""
    parts = [plural(after.batches, "batch"), plural(after.calls, "call")]
    tokens = after.input_tokens + after.output_tokens
    if tokens:
        parts.append(f"{amount(tokens)} tokens")
    if after.cost_usd:
        parts.append(money(after.cost_usd))
    return ", ".join(parts)


def _wrapped(session: Session, text: str, width: int, style: Style = "text") -> list[Line]:
    return [linked(piece, len(session), style) for piece in wrap(text, max(1, width))]


def _notes(session: Session, sheet: Sheet, width: int) -> list[Line]:
    """What a stop would have saved, and what is not certain, in words."""
    if sheet.trial is None:
        return []
    difference, lines = sheet.trial.difference, list[Line]()
    if difference.after_first_stop is not None and len(sheet.draft.columns) == 1:
        stop = difference.override.first_stop
        lines += _wrapped(session, f"After its first stop, #{stop}, came {spent(difference.after_first_stop)}.", width)
    return [*lines, *(line for note in difference.notes() for line in _wrapped(session, note, width, "dim"))]


def _table(session: Session, sheet: Sheet, width: int) -> list[Line]:
    """The totals of every column side by side."""
    name, cell = _widths(sheet, width)
    differences = [trial.difference if trial is not None else None for trial in sheet.trials]
    known = next((difference for difference in differences if difference is not None), None)
    notable = [session.timeline.verdict(number).action for number in session.timeline.notable] if known is None else []
    warned = known.baseline.warnings if known is not None else notable.count("warn")
    stopped = known.baseline.stops if known is not None else notable.count("hard_stop")
    first = known.baseline.first_stop if known is not None else session.first_stop()
    rows: list[tuple[str, list[str]]] = [
        ("warned", [f"{warned:,}"]), ("stopped", [f"{stopped:,}"]), ("first stop", [_number(first)]),
        ("differ", [""]), ("batches after", [""]), ("calls after", [""]), ("tokens after", [""]), ("cost after", [""]),
    ]  # fmt: skip
    for difference in differences:
        for (_, cells), text in zip(rows, _totals(difference, warned, stopped, first), strict=True):
            cells.append(text)
    lines: list[Line] = []
    for title, cells in rows:
        if title.split()[0] in ("tokens", "cost") and not any(cell not in ("", "-", "0") for cell in cells):
            continue
        spans = [Span(f" {fit(title, name - 1)}", "dim")]
        for column, text in enumerate(cells, -1):
            style: Style = "title" if column == sheet.draft.active else "text"
            spans.append(Span(fit(text, cell - (column >= 0), right=True) + " " * (column >= 0), style))
        lines.append(crop(tuple(spans), width))
    return lines


def _totals(difference: Difference | None, warned: int, stopped: int, first: int | None) -> list[str]:
    """One column of the table; a column that is as the baseline has its totals."""
    if difference is None:
        return [f"{warned:,}", f"{stopped:,}", _number(first), "0", "", "", "", ""]
    side, after = difference.override, difference.after_first_stop
    totals = [f"{side.warnings:,}", f"{side.stops:,}", _number(side.first_stop), f"{len(difference.differing):,}"]
    if after is None:
        return [*totals, "-", "-", "-", "-"]
    tokens = after.input_tokens + after.output_tokens
    cost = money(after.cost_usd) if after.cost_usd else "0"
    return [*totals, f"{after.batches:,}", f"{after.calls:,}", amount(tokens), cost]


def _number(number: int | None) -> str:
    return "none" if number is None else f"#{number}"


def next_differing(trial: Trial | None, lane: Sequence[int], cursor: int, direction: int) -> int | None:
    """The next (-1: the previous) batch of the lane whose verdicts differ; None where there is none."""
    if trial is None:
        return None
    differing = [differs.batch for differs in trial.difference.differing]
    inside = lane if isinstance(lane, range) else set(lane)
    beyond = [n for n in differing if (n > cursor if direction > 0 else n < cursor) and n in inside]
    return (beyond[0] if direction > 0 else beyond[-1]) if beyond else None
