"""The widget: a session in a cell's output, with the traits that other cells read and set.

The browser draws what a frame holds and sends what was clicked, typed or pressed; every number is computed here, by the
engine and the presenters. Whatever takes more than a moment runs in one worker thread, and the newest wish wins.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

try:
    import anywidget
    import traitlets
except ModuleNotFoundError as _missing:
    _told = "LoopWidget: the notebook part is not installed; pip install 'loopscope[notebook]'"
    raise ModuleNotFoundError(_told, name=_missing.name) from None

from loopscope.engine.policy import Policy
from loopscope.errors import LoopscopeError, UsageError
from loopscope.recording.inert import inert
from loopscope.session.draft import changes, get
from loopscope.session.session import Lane, Session
from loopscope.session.whatif import Trial
from loopscope.settings import Choice
from loopscope.targets import open_session
from loopscope.views import moves
from loopscope.views.frame import TABS, Shown, Tab, draft_of, frame, lanes
from loopscope.views.glance import glance
from loopscope.views.web.cell import cell
from loopscope_widgets.notebook.following import Following

__all__ = ["LoopWidget"]

_STATIC = Path(__file__).parent / "static"
_AT_ONCE = 2_000
"""Batches of a run up to which an override is tried before the cell goes on; more of them are tried in a thread."""
_LEAST, _MOST = 4, 120
"""Columns of the strip."""


class LoopWidget(anywidget.AnyWidget):
    """The debugger of one session.

    Args:
        session: what is looked at, or a target as `loopscope.open` takes it.
        following: the live run that it belongs to, if it does.
        overrides: what is tried from the beginning, by dotted name or as a whole policy.
        tab: what is in front.

    Attributes:
        cursor: number of the batch that is looked at; set it to go there.
        scope: what the timeline shows, as `[thread_id, run_id]`, `[thread_id]` for a whole thread, or None for all.
        overrides: limits that are tried beside the run's own, by dotted name; set it to try others.
        frame: what is drawn; only Python sets it.
    """

    _esm: ClassVar[Path] = _STATIC / "widget.js"
    _css: ClassVar[Path] = _STATIC / "widget.css"
    cursor = traitlets.Int(0).tag(sync=True)
    scope = traitlets.List(trait=traitlets.Unicode(allow_none=True), default_value=None, allow_none=True).tag(sync=True)
    overrides = traitlets.Dict().tag(sync=True)
    frame = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        session: Session | str,
        *,
        following: Following | None = None,
        overrides: Mapping[str, Any] | Policy | None = None,
        tab: Tab = "why",
    ) -> None:
        if isinstance(session, str):
            session = open_session(session, Choice.of(project=Path.cwd()))
        self.session = session
        self._following = following
        self._shown = Shown(tab)
        self._trial: Trial | None = None
        self._wish = 0
        self._searching = False
        self._said = ""
        self._lock = following.lock if following is not None else threading.RLock()
        super().__init__()
        self.on_msg(self._received)
        self.observe(self._cursor_set, "cursor")
        self.observe(self._scope_set, "scope")
        self.observe(self._overrides_set, "overrides")
        if following is not None:
            following.listen(self.refresh)
        if isinstance(overrides, Policy):
            overrides = {".".join(path): get(overrides, path) for path in changes(session.policy, overrides)}
        if overrides:
            self.overrides = dict(overrides)
        self.refresh()

    def refresh(self) -> None:
        """Draw what the session is now; needed only after moving the session itself."""
        with self._lock:
            session = self.session
            live = self._following.state() if self._following is not None else None
            made = frame(
                session,
                shown=self._shown,
                overrides=self.overrides,
                trial=self._trial,
                searching=self._searching,
                live=live,
            )
            made["said"] = inert(self._said, 300)
            with self.hold_sync(), self.hold_trait_notifications():
                self._set("cursor", session.cursor)
                self._set("scope", _scope_of(session.lane))
                self.frame = made

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The widget, and for who has no kernel what stands for it: text, and a picture with a table."""
        shown: Any = super()._repr_mimebundle_()
        data, told = shown if isinstance(shown, tuple) else (shown or {}, {})
        return {**data, "text/plain": glance(self.session), "text/html": cell(self.session)}, told

    def open(self) -> None:
        """Tell the browser of it."""
        super().open()
        self._hear_anywhere()

    def _send(self, msg: Any, buffers: Any = None) -> None:
        super()._send(msg, buffers)
        self._hear_anywhere()

    def _hear_anywhere(self) -> None:
        """Take the browser's messages on whichever shell they come, so that buttons work while a cell runs.

        ipykernel from 7.4 on takes them on the shell that sent last, which is the one that a running cell keeps busy.
        """
        with suppress(AttributeError):
            delattr(self.comm, "_reply_subshell_id")

    def _set(self, name: str, value: object) -> None:
        if getattr(self, name) != value:
            setattr(self, name, value)

    def _cursor_set(self, change: Any) -> None:
        if change["new"] == self.session.cursor:
            return
        try:
            self.session.seek(change["new"])
        except IndexError as error:
            self.cursor = self.session.cursor
            raise UsageError(str(error)) from None
        self._said = ""
        self.refresh()

    def _scope_set(self, change: Any) -> None:
        wanted = change["new"]
        if wanted == _scope_of(self.session.lane):
            return
        lane = next((lane for _, lane in lanes(self.session) if _scope_of(lane) == wanted), None)
        if lane is None and wanted is not None:
            self._set("scope", _scope_of(self.session.lane))
            raise UsageError(f"this run has no scope {inert(str(wanted), 80)}")
        self._show(lane)

    def _overrides_set(self, _change: Any) -> None:
        self._try()
        self.refresh()

    def _try(self) -> None:
        """Decide the run again under what is tried: at once where it is short, else in a thread."""
        self._wish += 1
        self._trial = None
        draft, _ = draft_of(self.session, self.overrides)
        self._searching = draft.changed
        if not draft.changed:
            return
        if len(self.session) <= _AT_ONCE:
            self._trial, self._searching = self.session.attempt(draft.policy), False
            return
        wish = self._wish

        def work() -> None:
            trial = self.session.attempt(draft.policy, lambda: wish == self._wish)
            if trial is not None and wish == self._wish:
                self._trial, self._searching = trial, False
                self.refresh()

        threading.Thread(target=work, name="loopscope what-if", daemon=True).start()

    def _show(self, lane: Lane | None) -> None:
        if lane is None:
            self.session.lane = None
        else:
            moves.show(self.session, lane)
        self._said = ""
        self.refresh()

    def _received(self, _widget: object, content: Any, _buffers: object) -> None:
        """What the browser sends; anything else than the few known messages is let be."""
        if not isinstance(content, Mapping):
            return
        act = self._acts.get(str(content.get("kind")))
        if act is None:
            return
        try:
            with self._lock:
                self._said = act(self, content) or ""
        except LoopscopeError as error:
            self._said = str(error)
        self.refresh()

    def _seek(self, content: Mapping[str, Any]) -> str | None:
        to = content.get("to")
        if isinstance(to, int) and 1 <= to <= len(self.session):
            self.session.seek(to)
            self._look_back()
        return None

    def _place(self, content: Mapping[str, Any]) -> str | None:
        """Where the slider is: a position in the lane, from 0."""
        numbers, to = self.session.batches, content.get("to")
        if isinstance(to, int) and 0 <= to < len(numbers):
            self.session.seek(numbers[to])
            self._look_back()
        return None

    def _step(self, content: Mapping[str, Any]) -> str | None:
        by = content.get("by")
        if not isinstance(by, int) or by == 0:
            return None
        if by < 0:
            self._look_back()
        return moves.step(self.session, by)

    def _edge(self, content: Mapping[str, Any]) -> str | None:
        self._look_back()
        return moves.edge(self.session, -1 if content.get("to") == "first" else 1)

    def _decision(self, content: Mapping[str, Any]) -> str | None:
        self._look_back()
        return moves.decision(self.session, -1 if content.get("by") == -1 else 1)

    def _tab(self, content: Mapping[str, Any]) -> str | None:
        name = next((tab for tab in TABS if tab == content.get("name")), None)
        if name is not None:
            self._shown = self._shown._replace(tab=name)
        return None

    def _size(self, content: Mapping[str, Any]) -> str | None:
        columns, width = content.get("columns"), content.get("width")
        if isinstance(columns, int) and isinstance(width, int):
            self._shown = self._shown._replace(
                columns=min(max(columns, _LEAST), _MOST), width=min(max(width, 30), 240)
            )  # fmt: skip
        return None

    def _lane(self, content: Mapping[str, Any]) -> str | None:
        known, at = lanes(self.session), content.get("at")
        if isinstance(at, int) and 0 <= at < len(known):
            self._show(known[at][1])
        return None

    def _override(self, content: Mapping[str, Any]) -> str | None:
        """A limit was typed; an empty one is off, and the run's own value is no override."""
        name, value = content.get("name"), content.get("value")
        known = {limit["name"]: limit for limit in self.frame.get("limits", ())}
        if name not in known or not (value is None or isinstance(value, (int, float, str, bool))):
            return None
        rest: dict[str, Any] = {key: kept for key, kept in self.overrides.items() if key != name}
        self.overrides = rest if value == known[name]["baseline"] else {**rest, str(name): value}
        return None

    def _reset(self, content: Mapping[str, Any]) -> str | None:  # noqa: ARG002 - as the others
        self.overrides = {}
        return None

    def _control(self, content: Mapping[str, Any]) -> str | None:
        if self._following is None:
            return "this is a recording: there is nothing to control"
        return self._following.act(str(content.get("verb")))

    def _look_back(self) -> None:
        """Who looks at an earlier batch does not want to be taken away from it."""
        if self._following is not None:
            self._following.following = self.session.cursor == len(self.session)

    _acts: ClassVar[Mapping[str, Callable[[Any, Mapping[str, Any]], str | None]]] = {
        "seek": _seek, "place": _place, "step": _step, "edge": _edge, "decision": _decision, "tab": _tab, "size": _size,
        "lane": _lane, "override": _override, "reset": _reset, "control": _control,
    }  # fmt: skip


def _scope_of(lane: Lane | None) -> list[str | None] | None:
    if lane is None:
        return None
    return [lane.thread_id] if lane.whole_thread else [lane.thread_id, lane.run_id]
