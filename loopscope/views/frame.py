"""One frame of the notebook: everything that its widget draws, as plain data, made from the other presenters.

The widget counts nothing and decides nothing; what it is sent here are the numbers and the words of the terminal's
panes. Apart from them, since a frame joins what a terminal draws pane by pane. All text in it is safe to draw.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from msgspec import Struct, to_builtins

from loopscope.errors import PolicyError
from loopscope.export import to_python, to_toml
from loopscope.recording.inert import inert
from loopscope.session.draft import Draft, Path, Value, choices, get, kind, settings, tools_of
from loopscope.session.session import Lane, Session
from loopscope.session.whatif import Trial
from loopscope.views import decisions, detect, graph, inspector, scopes, topbar, whatif, why
from loopscope.views.model import Line
from loopscope.views.web import meters, strip

__all__ = ["TABS", "Frame", "Live", "Shown", "Tab", "draft_of", "frame", "lanes"]

Tab: TypeAlias = Literal["why", "batch", "decisions", "whatif", "scopes", "graph"]
TABS: Mapping[Tab, str] = {
    "why": "Why",
    "batch": "Batch",
    "decisions": "Decisions",
    "whatif": "What-if",
    "scopes": "Scopes",
    "graph": "Graph",
}
_CELLS = 240
_MOST_LINES = 400
_MOST_LANES = 200


class Live(Struct, frozen=True):
    """How a live run stands, where it is one."""

    mode: str
    """`follow`, `live`, `paused`, `lost`, `ended` or `detached`."""
    words: str
    held: str = ""
    """The batch that waits before the gate."""
    denied: str = ""
    """Why it cannot be controlled; nothing where it can."""
    following: bool = True


class Shown(NamedTuple):
    """What the reader has chosen to see."""

    tab: Tab = "why"
    columns: int = 24
    """Batches of the strip."""
    width: int = 100
    """Characters of a line."""


_AT_FIRST = Shown()


class Limit(Struct, frozen=True):
    """One setting that can be tried."""

    name: str
    """Dotted, as `Policy` names it, safe to draw."""
    label: str
    kind: str
    """`count` (at least 1), `limit` (or empty: off), `amount`, `choice` or `other`."""
    value: Value | list[Any]
    baseline: Value | list[Any]
    choices: list[Value]
    """What a choice can be, with what it is; of any other setting nothing."""


class Count(Struct, frozen=True):
    """One bar: a count on its way to its limits."""

    letter: str
    label: str
    value: float
    said: str
    """The value, as a person reads it."""
    warn: float | None
    hard: float | None
    state: str
    note: str
    coming: list[str]
    moved: bool
    """The batch at the cursor counted here."""


class Counts(Struct, frozen=True):
    """One layer."""

    layer: str
    about: str
    limits: str
    counts: list[Count]
    more: str


class Frame(Struct, frozen=True):
    """What the widget draws."""

    source: str
    scope: str
    state: str
    """Of the batch at the cursor: `new`, `repeat`, `warn`, `stop` or `none`."""
    verdict: str
    cursor: int
    total: int
    place: int
    """Of the cursor in the lane, from 0."""
    numbers: list[int]
    """Of the lane's first and last batch."""
    length: int
    """Batches of the lane."""
    limits_from: str
    columns: list[strip.Column]
    override: list[str]
    """The states of the columns under the override; empty where nothing is tried."""
    first: int
    overview: list[str]
    sections: list[Counts]
    lanes: list[tuple[str, bool]]
    """What the timeline can show, and whether it does."""
    limits: list[Limit]
    difference: str
    """Of the override and the baseline, in words."""
    problem: str
    """Why an override cannot be."""
    tab: str
    tabs: list[tuple[str, str]]
    lines: list[Line]
    """Of the tab."""
    export: dict[str, str]
    """The policy that is tried, by format."""
    live: Live | None


def draft_of(session: Session, overrides: Mapping[str, Value]) -> tuple[Draft, str]:
    """What is tried, and why some of it cannot be.

    Args:
        session: its policy is the baseline.
        overrides: values by dotted name.
    """
    draft, problems = Draft.of(session.policy), []
    paths = _paths(session, draft)
    for name, value in overrides.items():
        path = paths.get(name)
        if path is None:
            problems.append(f"there is no setting {inert(str(name), 60)}")
            continue
        try:
            draft = draft.with_(path, value)
        except PolicyError as error:
            problems.append(inert(str(error), 300))
    return draft, "; ".join(problems)


def _paths(session: Session, draft: Draft) -> dict[str, Path]:
    """The settings by name, also as a frame shows it: a tool may be called anything."""
    paths = settings(draft, tools_of(session.timeline))
    return {inert(".".join(path)): path for path in paths} | {".".join(path): path for path in paths}


def lanes(session: Session) -> list[tuple[str, Lane | None]]:
    """What the timeline can show: everything, and each thread and scope."""
    rows = [(f"{row.branches}{row.label}", row.lane) for row in scopes.rows(session)[:_MOST_LANES]]
    return [("all scopes", None), *rows]


def frame(  # noqa: PLR0913 - all that a frame depends on
    session: Session,
    *,
    shown: Shown = _AT_FIRST,
    overrides: Mapping[str, Value] | None = None,
    trial: Trial | None = None,
    searching: bool = False,
    live: Live | None = None,
) -> dict[str, Any]:
    """The frame as plain data.

    Args:
        session: its cursor and lane say what is shown.
        shown: what else does.
        overrides: what is being tried, by dotted name.
        trial: what became of that; None while nobody knows.
        searching: the nearest settings, or the trial, are being looked for.
        live: of a live run.
    """
    draft, problem = draft_of(session, overrides or {})
    columns = strip.strip(session, shown.columns, _CELLS)
    numbers = session.batches
    states = session.row(session.cursor).state if session.cursor else "none"
    found = detect.data(session)
    made = Frame(
        source=inert(session.source, 200),
        scope=topbar.lane_name(session.lane),
        state=states,
        verdict=topbar.verdict(session).text,
        cursor=session.cursor,
        total=len(session),
        place=min(bisect_left(numbers, session.cursor), max(0, len(numbers) - 1)),
        numbers=[numbers[0], numbers[-1]] if numbers else [],
        length=len(numbers),
        limits_from=topbar.config(session),
        columns=list(columns.columns),
        override=_override(columns, trial) if draft.changed else [],
        first=columns.first,
        overview=list(columns.overview),
        sections=[_counts(section) for section in meters.sections(found)] if found is not None else [],
        lanes=[(label, lane == session.lane) for label, lane in lanes(session)],
        limits=[_limit(session, draft, path) for path in settings(draft, tools_of(session.timeline))],
        difference=_difference(draft, trial, searching=searching),
        problem=problem,
        tab=shown.tab,
        tabs=list(TABS.items()),
        lines=_BODIES[shown.tab](_Asked(session, shown.width, draft, trial, searching))[:_MOST_LINES],
        export={"toml": to_toml(draft.policy), "python": to_python(draft.policy)},
        live=live,
    )
    plain: dict[str, Any] = to_builtins(made)
    return plain


class _Asked(NamedTuple):
    """What the lines of a tab depend on."""

    session: Session
    width: int
    draft: Draft
    trial: Trial | None
    searching: bool


def _counts(section: meters.Section) -> Counts:
    counts = [
        Count(
            letter=meter.letter,
            label=meter.label,
            value=meter.value,
            said=meter.tell(meter.value),
            warn=meter.warn,
            hard=meter.hard,
            state=meter.state,
            note=meter.note,
            coming=[words for words, _ in meter.coming],
            moved=meter.moved,
        )
        for meter in section.meters
    ]
    return Counts(section.layer, section.about, section.limits, counts, section.more)


def _override(columns: strip.Strip, trial: Trial | None) -> list[str]:
    return [trial.state(column.n) if trial is not None else "" for column in columns.columns]


def _limit(session: Session, draft: Draft, path: Path) -> Limit:  # noqa: ARG001 - a presenter
    value, baseline = (_safe(get(policy, path)) for policy in (draft.policy, draft.baseline))
    known = choices(path)
    offered = list(dict.fromkeys((*known, baseline, value))) if known else []
    return Limit(inert(".".join(path)), whatif.label(path), kind(path), value, baseline, offered)


def _safe(value: Any) -> Any:
    """A policy comes from the recording, and a value of it may be any text."""
    return inert(value, 200) if isinstance(value, str) else value


def _difference(draft: Draft, trial: Trial | None, *, searching: bool) -> str:
    """One line, for who only glances at it."""
    if not draft.changed:
        return ""
    if trial is None or searching:
        return "the run is decided again …"
    return whatif.summary(trial.difference)


def _why(asked: _Asked) -> list[Line]:
    session = asked.session
    if not session.cursor:
        return []
    return why.body(session.explain(search=False), len(session), asked.width)


def _batch(asked: _Asked) -> list[Line]:
    return inspector.batch_lines(asked.session, asked.width) if asked.session.cursor else []


def _decisions(asked: _Asked) -> list[Line]:
    log = decisions.Log(asked.session)
    if not len(log):
        return [decisions.nothing(log)]
    first = max(0, log.place(asked.session.cursor) - _MOST_LINES // 2)
    return [decisions.heading(asked.width), *log.lines(first, _MOST_LINES - 1, asked.width)]


def _whatif(asked: _Asked) -> list[Line]:
    paths = settings(asked.draft, tools_of(asked.session.timeline))
    sheet = whatif.Sheet(asked.draft, (asked.trial,), paths, focused=False, searching=asked.searching)
    return whatif.result(asked.session, sheet, asked.width) if asked.session.cursor else []


_BODIES: Mapping[Tab, Callable[[_Asked], list[Line]]] = {
    "why": _why,
    "batch": _batch,
    "decisions": _decisions,
    "whatif": _whatif,
    "scopes": lambda asked: scopes.body(asked.session, asked.width),
    "graph": lambda asked: graph.body(asked.session, asked.width),
}
