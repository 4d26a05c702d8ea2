"""Detect: counts against their limits, the distance to the next verdict, the warnings, and what the scope has spent."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import NamedTuple

from loopscope.engine.policy import Policy
from loopscope.engine.scope import ScopeState, Spent, WarningRecord
from loopscope.session.letters import letter_name
from loopscope.session.session import Row, ScopeView, Session
from loopscope.session.steps import counted_with
from loopscope.views import bounds
from loopscope.views.bars import BARS, COUNT, ROOMY, bar, columns
from loopscope.views.bounds import Meter, Streak, meters, progress, streaks, warned_at
from loopscope.views.calls import batch_label
from loopscope.views.cells import cell_len
from loopscope.views.distance import Distance, Probe
from loopscope.views.firing import far, said
from loopscope.views.flow import flow, wrap
from loopscope.views.glyphs import GLYPH, STYLE
from loopscope.views.model import Line, Span, Style, crop, fit, marked, spread
from loopscope.views.topbar import scope_name
from loopscope.views.words import amount, money, newest_calls, safe_name, span_of_time, times

__all__ = ["Data", "Gauge", "body", "data", "height", "lines", "note", "say"]

ROWS, FEW = 10, 4
"""Rows of a layer, and how many there may be with what came only once; what is left is summed up in one line."""


_UNSEEN = "?"
"""The letter of a hash that came before what is kept of the run."""


class Gauge(NamedTuple):
    """One row: a hash, or a tool, with its count against the limits."""

    name: str
    """The hash's letter; nothing for a tool."""
    subject: str
    """The whole hash, or the tool's name as it is recorded."""
    label: str
    """Text to draw."""
    value: int
    warn: int
    hard: int
    distance: Distance
    moved: bool
    """The batch at the cursor counted here."""
    latest: int | None
    """The newest batch that counted here; None where that came before what is kept."""
    room: int
    """What the window holds at most."""
    stops: bool = True
    """At its hard limit it is stopped: nothing new holds that off."""

    @property
    def layer(self) -> str:
        """The layer that counts it."""
        return "identical_call_set" if self.name else "tool_frequency"

    @property
    def next_limit(self) -> int:
        """The limit that the count has not reached yet."""
        return self.hard if self.value >= self.warn else self.warn

    @property
    def state(self) -> str:
        """By the count alone: `stop`, `warn`, `repeat`, `new`."""
        if self.value >= self.hard and self.stops:
            return "stop"
        return "warn" if self.value >= self.warn else "repeat" if self.value > 1 else "new"


class Data(NamedTuple):
    """What the pane shows, as values."""

    view: ScopeView
    row: Row
    repeats: tuple[Gauge, ...]
    """Most counted first, then the newest."""
    more_repeats: int
    """Hashes in the window that are not among `repeats`."""
    tools: tuple[Gauge, ...]
    more_tools: int
    streaks: tuple[Streak, ...]
    """The layers beyond these two, as far as the policy sets them limits."""
    meters: tuple[Meter, ...]
    """The budgets."""
    progress: tuple[tuple[int, bool], ...]
    """The newest iterations of the scope, and whether the witness moved."""
    warnings: tuple[WarningRecord, ...]
    """With those that were queued when the batch's results came in."""
    spent: Spent


def data(session: Session) -> Data | None:
    """The values at the cursor; None while there is no batch."""
    if not session.cursor or (scope := session.state.scope) is None:
        return None
    row, view = session.row(session.cursor), session.state
    policy = view.policy
    hashes, calls = scope.hashes, scope.states["tool_frequency"]
    newest = _newest(session, row, max(policy.window_size, policy.frequency_window))
    probe = Probe(session, view, scope)
    counter = _Counter(session, policy, scope, row, newest, probe)
    warnings = (*view.warnings, *probe.warnings)
    repeats = _top(hashes.counts, hashes.items, row.hash)
    tools = _top(calls.counts, calls.items, row.names[0] if row.names else None)
    return Data(
        view,
        row,
        tuple(map(counter.repeat, repeats)),
        len(hashes.counts) - len(repeats),
        tuple(map(counter.tool, tools)),
        len(calls.counts) - len(tools),
        tuple(streaks(session, view, probe, warnings)),
        tuple(meters(session, view)),
        tuple(progress(session, view, probe)) if policy.stagnation.limits.active else (),
        warnings,
        view.spent,
    )


def _top(counts: dict[str, int], items: Iterable[str], first: str | None) -> list[str]:
    """The items to show: the one at the cursor, then by count, then the newest."""
    order = {item: position for position, item in enumerate(items)}
    ranked = sorted(counts, key=lambda item: (item != first, -counts[item], -order[item]))
    room = max(FEW, min(ROWS, sum(count > 1 for count in counts.values())))
    return sorted(ranked[:room], key=lambda item: (-counts[item], -order[item]))


def _newest(session: Session, row: Row, reach: int) -> dict[tuple[bool, str], int]:
    """The newest batch of each hash (True) and each tool (False), looking back from the cursor in its scope."""
    numbers = counted_with(session.timeline, row.n)
    end = bisect_right(numbers, row.n)
    found: dict[tuple[bool, str], int] = {}
    for number in reversed(numbers[max(0, end - reach) : end]):
        earlier = session.row(number)
        found.setdefault((True, earlier.hash), number)
        for name in earlier.names:
            found.setdefault((False, name), number)
    return found


class _Counter(NamedTuple):
    """What the rows of both layers are made from."""

    session: Session
    policy: Policy
    scope: ScopeState
    row: Row
    newest: dict[tuple[bool, str], int]
    probe: Probe

    def repeat(self, digest: str) -> Gauge:
        """The row of a hash."""
        latest = self.newest.get((True, digest))
        name, label = _UNSEEN, f"before #1: {digest[:8]}"
        names: tuple[str, ...] = ()
        if latest is not None:
            other = self.session.row(latest)
            name, label, names = letter_name(other.letter), batch_label(self.session, latest), other.names
        return Gauge(
            name=name,
            subject=digest,
            label=label,
            value=self.scope.hashes.counts[digest],
            warn=self.policy.warn_threshold,
            hard=self.policy.hard_limit,
            distance=self.probe.of_batch(digest, names),
            moved=digest == self.row.hash,
            latest=latest,
            room=self.policy.window_size,
            stops=self._stops(latest),
        )

    def tool(self, tool: str) -> Gauge:
        """The row of a tool."""
        limits = self.policy.frequency_limits(tool)
        own = f"  own limits {limits.warn}/{limits.hard_limit}" if tool in self.policy.tool_freq_overrides else ""
        latest = self.newest.get((False, tool))
        return Gauge(
            name="",
            subject=tool,
            label=safe_name(tool) + own,
            value=self.scope.states["tool_frequency"].counts[tool],
            warn=limits.warn,
            hard=limits.hard_limit,
            distance=self.probe.of_tool(tool),
            moved=tool in self.row.names,
            latest=latest,
            room=self.policy.frequency_window,
            stops=self._stops(latest),
        )

    def _stops(self, latest: int | None) -> bool:
        """A policy that asks for news lets go on what brings some, however often it came."""
        if latest is None or not self.policy.result_aware:
            return not self.policy.result_aware
        return self.session.timeline.verdict(latest).action == "hard_stop"


def say(count: Gauge) -> list[tuple[str, Style]]:
    """The distance to fire in words: `▲ one more identical batch = WARN`, `■ three more = STOP`."""
    unit = "identical batch" if count.name else "call"
    found = count.distance
    if found.warn is None and found.stop is None and count.next_limit > count.room:
        return [(f"{GLYPH['new']} {_never(count)}", "ok")]
    return said(found, count.layer, unit, again=count.state == "stop")


def _never(count: Gauge) -> str:
    """Why nothing comes: the window cannot hold as many."""
    return f"never: window_size is below {'hard_limit' if count.value >= count.warn else 'warn_threshold'}"


def body(session: Session, width: int, *, dense: bool = False) -> list[Line]:
    """The whole pane.

    Args:
        session: whose cursor says which state is shown.
        width: cells.
        dense: leave no empty lines between the sections.
    """
    found = data(session)
    if found is None:
        return [(Span("nothing is counted before the first batch with calls", "dim"),)]
    sections = [
        _nearest(found, width),
        _layer(found, "identical_call_set", width),
        _layer(found, "tool_frequency", width),
        *([bounds.draw(found.streaks, found.progress, width)] if found.streaks else []),
        *([bounds.draw_budgets(found.meters, width)] if found.meters else []),
        _warnings(session, found, width),
        _spent(found, width),
    ]
    gap: list[Line] = [] if dense else [()]
    lines = [line for index, section in enumerate(sections) for line in ([*gap, *section] if index else section)]
    return [crop(line, width) for line in lines]


def height(session: Session, width: int) -> int:
    """Lines of the whole pane."""
    return len(body(session, width))


def lines(session: Session, first: int, count: int, width: int) -> list[Line]:
    """Some lines of the pane, all of which is small whatever the recording is."""
    return body(session, width)[first : first + count]


def _nearest(found: Data, width: int) -> list[Line]:
    """How far the batch at the cursor, its tools, and what else has begun to count are from a verdict."""
    shown = [(c.name or safe_name(c.subject), say(c)) for c in (*found.repeats, *found.tools) if c.moved]
    going = [streak for streak in found.streaks if streak.going]
    shown += [(streak.name, said(streak.comes, streak.layer, streak.unit, again=streak.stops)) for streak in going]
    shown += [(meter.counter, [bounds.ahead(meter)]) for meter in found.meters if 2 * meter.value >= meter.limit]
    shown = [(name, words) for name, words in shown if words]
    column = min(max(cell_len(name) for name, _ in shown), max(8, width // 4))
    same = ", if the results stay the same" if found.view.policy.looks_at_results else ""
    head: Line = (Span("DISTANCE TO FIRE", "title"), Span(f"  after #{found.row.n}{same}", "dim"))
    result = [crop(head, width)]
    for name, words in shown:
        room = width - column - 3
        parts = [(Span(text, style),) for text, style in words for text in wrap(text, room)]
        label = fit(name, column)
        for line in flow(parts, room):
            result.append((Span(f" {label}  "), *line))
            label = " " * column
    return result


def _layer(found: Data, layer: str, width: int) -> list[Line]:
    policy = found.view.policy
    if layer == "identical_call_set":
        rows, more, what = found.repeats, found.more_repeats, f"last {policy.window_size:,} batches"
        limits = f"warn {policy.warn_threshold}  hard {policy.hard_limit}"
    else:
        rows, more, what = found.tools, found.more_tools, newest_calls(policy.frequency_window)
        limits = f"warn {policy.tool_freq_warn}  hard {policy.tool_freq_hard_limit}"
    roomy = len(layer) + len(what) + len(limits) + 4 <= width  # two gaps of two
    about: Line = (Span(layer, "title"), *((Span(f"  {what}", "dim"),) if roomy else ()))
    head = spread(about, (Span(limits, "dim"),), width)
    result = [head, *(_row(found, count, width) for count in rows)]
    if more:
        least = rows[-1].value
        result.append((Span(f" {more:,} more, none above {least}", "dim"),))
    return result


def _row(found: Data, count: Gauge, width: int) -> Line:
    """Name, label, bar, count and a note; the bar gives way first, then the note's words."""
    said = note(found, count, roomy=width >= ROOMY)
    bar_width, label_width = columns(width)
    label = fit(f"{count.name} {count.label}" if count.name else count.label, label_width)
    line: Line = (
        Span(f" {label} ", link=count.latest or 0),
        *bar(count.value, count.warn, count.hard, bar_width, BARS[count.state]),
        Span(f"{count.value:>{COUNT - 1},} "),
        *said,
    )
    return crop(marked(line, "strong") if count.moved else line, width)


def note(found: Data, count: Gauge, *, roomy: bool) -> Line:
    """State in a glyph, the warning that was given, and the distance to what comes next."""
    state = count.state
    if state == "stop":
        return (Span(f"{GLYPH['stop']} STOP", "stop"),)
    record = next((record for record in reversed(found.warnings) if record.subject == count.subject), None)
    if roomy and record is not None and state == "warn":
        short = _far(count, roomy=False)
        return (warned_at(record.batch), Span(f", {short}", "dim"))
    return (Span(f"{GLYPH[state]} ", STYLE[state]), Span(_far(count, roomy=roomy), "dim"))


def _far(count: Gauge, *, roomy: bool) -> str:
    if not any(count.distance[:2]) and count.next_limit > count.room:
        return "never"
    return far(count.distance, count.layer, roomy=roomy, warned=count.state == "warn") or "never"


def _warnings(session: Session, found: Data, width: int) -> list[Line]:
    """Each warning's way: queued, delivered, and how often it was ignored since."""
    head: Line = (Span("WARNINGS", "title"),)
    if not found.warnings:
        return [(*head, Span("  none", "dim"))]
    letters = session.letters(found.row.scope)
    return [head, *(line for record in found.warnings for line in _warning(record, letters, width))]


def _warning(record: WarningRecord, letters: Callable[[str], str], width: int) -> list[Line]:
    subject = record.subject if record.layer == "tool_frequency" else letters(record.subject)
    by = "" if record.layer in ("identical_call_set", "tool_frequency") else f" {record.layer}"
    parts: list[Line] = [
        (Span(f" {GLYPH['warn']} {safe_name(subject)} {record.count:g}/{record.threshold:g}{by}", "warn"),),
        (Span("queued "), Span(f"#{record.batch}", link=record.batch)),
    ]
    if record.state == "dropped":
        parts.append((Span("dropped before a model call"),))
    elif record.state == "queued":
        parts.append((Span("waits for the next model call"),))
    else:
        assumed = " (assumed)" if record.assumed else ""
        before = (Span(" before "), Span(f"#{record.before}", link=record.before)) if record.before is not None else ()
        parts.append((Span("delivered"), *before, Span(assumed, "dim")))
        if record.ignored or not by:
            parts.append((Span(f"ignored {times(record.ignored)}" if record.ignored else "not ignored so far"),))
    return flow(parts, width, indent=3, gap=2)


def _spent(found: Data, width: int) -> list[Line]:
    """What the scope has used up so far; what the recording does not tell is not called zero."""
    spent = found.spent
    tokens = spent.input_tokens + spent.output_tokens
    detail = f" ({amount(spent.input_tokens)} in, {amount(spent.output_tokens)} out)" if tokens else ""
    values = [
        ("batches", f"{spent.batches:,}"),
        ("calls", f"{spent.tool_calls:,}"),
        ("model calls", f"{spent.model_calls:,}"),
        ("tokens", f"{amount(tokens)}{detail}" if tokens else "not recorded"),
        ("cost", money(spent.cost_usd) if spent.cost_usd else "not recorded"),
        ("time", "not recorded" if spent.started is None else span_of_time(spent.seconds)),
    ]
    parts: list[Line] = [(Span(f"{label} ", "dim"), Span(value)) for label, value in values]
    head = crop((Span("SPENT", "title"), Span(f"  by {scope_name(*found.view.key)} so far", "dim")), width)
    return [head, *flow([(Span(" "), *parts[0]), *parts[1:]], width, indent=1)]
