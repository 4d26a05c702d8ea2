"""The widget without a browser: traits that cells read and set, messages as a browser sends them, a live run."""

from __future__ import annotations

import importlib
import re
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import traitlets

import loopscope
from loopscope import LoopWidget
from loopscope.engine.policy import Policy
from loopscope.errors import UsageError
from loopscope.views import palette
from loopscope_widgets.notebook import widget as module
from tests.views.support import Story, looping


@pytest.fixture
def widget() -> LoopWidget:
    """Eight equal batches, stopped at the fifth."""
    session = looping(8).session()
    session.open_at_first_stop()
    return LoopWidget(session)


def send(widget: LoopWidget, **message: Any) -> None:
    """As the browser does."""
    widget._handle_custom_msg(message, [])


def test_it_opens_what_a_session_shows(widget: LoopWidget) -> None:
    """The cursor, the scope and a frame."""
    assert (widget.cursor, widget.scope, widget.overrides) == (5, ["t", "r"], {})
    assert widget.frame["verdict"] == "■ STOP identical_call_set A 5/5"


def test_a_target_by_its_name() -> None:
    """As `loopscope.open` takes it."""
    assert LoopWidget("sample:sql-retry-storm").frame["cursor"] == 5


def test_cells_set_the_cursor_and_the_session_follows(widget: LoopWidget) -> None:
    """Both are one; a batch that is not there is an error, and nothing moves."""
    widget.cursor = 3
    assert (widget.session.cursor, widget.frame["cursor"]) == (3, 3)
    with pytest.raises(UsageError, match="there is no batch 99"):
        widget.cursor = 99
    assert (widget.cursor, widget.session.cursor) == (3, 3)


def test_cells_set_the_scope() -> None:
    """A scope, a whole thread, or everything; one that is not there is an error."""
    widget = LoopWidget(looping(3).in_scope("t", "two").call("search", {"query": "b"}, "x").session())
    wanted: list[tuple[Any, int]] = [(["t", "r"], 3), (["t"], 4), (["t", "two"], 1), (None, 4)]
    for scope, columns in wanted:
        widget.set_trait("scope", scope)
        assert (widget.scope, len(widget.frame["columns"])) == (scope, columns)
    with pytest.raises(UsageError, match="this run has no scope"):
        widget.set_trait("scope", ["nowhere"])
    assert widget.scope is None


def test_cells_set_overrides(widget: LoopWidget) -> None:
    """The run is decided again at once; an override that cannot be is told in the frame."""
    widget.overrides = {"hard_limit": 7}
    assert widget.frame["override"][4:7] == ["repeat", "repeat", "stop"]
    assert widget.frame["difference"].startswith("2 decisions differ")
    widget.overrides = {"hard_limit": 1}
    assert "hard_limit" in widget.frame["problem"]
    widget.overrides = {}
    assert (widget.frame["override"], widget.frame["difference"], widget.frame["problem"]) == ([], "", "")


def test_a_policy_as_what_is_tried() -> None:
    """A whole one is its changes."""
    widget = LoopWidget(looping(6).session(), overrides=Policy(hard_limit=9), tab="whatif")
    assert (widget.overrides, widget.frame["tab"]) == ({"hard_limit": 9}, "whatif")


def test_a_long_run_is_tried_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cell does not wait; the newest wish wins."""
    monkeypatch.setattr(module, "_AT_ONCE", 3)
    widget = LoopWidget(looping(8).session())
    done = threading.Event()
    widget.observe(lambda change: done.set() if change["new"]["difference"].startswith("1 dec") else None, "frame")
    widget.overrides = {"hard_limit": 7}
    widget.overrides = {"hard_limit": 6}
    assert done.wait(120)
    assert widget.frame["override"][5] == "stop"


@pytest.mark.parametrize(
    ("messages", "cursor"),
    [
        ([{"kind": "seek", "to": 2}], 2),
        ([{"kind": "place", "to": 6}], 7),
        ([{"kind": "step", "by": 1}], 6),
        ([{"kind": "step", "by": -2}], 3),
        ([{"kind": "edge", "to": "first"}], 1),
        ([{"kind": "edge", "to": "last"}], 8),
        ([{"kind": "decision", "by": -1}], 3),
        ([{"kind": "edge", "to": "first"}, {"kind": "decision", "by": 1}], 3),
    ],
)
def test_what_the_browser_asks_for(widget: LoopWidget, messages: list[dict[str, Any]], cursor: int) -> None:
    """Moves the session, and so the trait."""
    for message in messages:
        send(widget, **message)
    assert (widget.cursor, widget.session.cursor, widget.frame["cursor"]) == (cursor, cursor, cursor)


@pytest.mark.parametrize(
    "message",
    [
        {"kind": "seek", "to": 99},
        {"kind": "seek", "to": "5"},
        {"kind": "seek"},
        {"kind": "place", "to": -1},
        {"kind": "step", "by": None},
        {"kind": "step", "by": 0},
        {"kind": "tab", "name": "__class__"},
        {"kind": "size", "columns": "many", "width": 5},
        {"kind": "lane", "at": 10**9},
        {"kind": "override", "name": "no_such", "value": 3},
        {"kind": "override", "name": "hard_limit", "value": {"a": 1}},
        {"kind": "_received"},
        {"kind": None},
        {},
    ],
)
def test_a_message_that_makes_no_sense_changes_nothing(widget: LoopWidget, message: dict[str, Any]) -> None:
    """Whoever sends it."""
    before = widget.frame
    send(widget, **message)
    widget._received(widget, "no mapping", [])
    assert widget.frame == before


def test_limits_are_typed_in_the_browser(widget: LoopWidget) -> None:
    """The run's own value takes the override back, as does the reset."""
    send(widget, kind="override", name="hard_limit", value=8)
    send(widget, kind="override", name="cycle.hash.warn", value=3)
    assert widget.overrides == {"hard_limit": 8, "cycle.hash.warn": 3}
    send(widget, kind="override", name="hard_limit", value=5)
    assert widget.overrides == {"cycle.hash.warn": 3}
    send(widget, kind="reset")
    assert widget.overrides == {}


def test_tabs_sizes_and_lanes(widget: LoopWidget) -> None:
    """What is shown, and how much of it; sizes out of reason are brought back to it."""
    send(widget, kind="tab", name="decisions")
    assert widget.frame["tab"] == "decisions"
    send(widget, kind="size", columns=6, width=60)
    assert len(widget.frame["columns"]) == 6
    send(widget, kind="size", columns=10**9, width=10**9)
    assert len(widget.frame["columns"]) == 8
    send(widget, kind="lane", at=0)
    assert widget.get_state()["scope"] is None
    assert widget.frame["scope"] == "all scopes"


def test_what_cannot_be_done_is_said(widget: LoopWidget) -> None:
    """In the words of the terminal."""
    send(widget, kind="edge", to="last")
    send(widget, kind="step", by=1)
    assert "this is the last batch" in widget.frame["said"]
    send(widget, kind="control", verb="pause")
    assert "there is nothing to control" in widget.frame["said"]


def test_a_session_that_was_moved_elsewhere(widget: LoopWidget) -> None:
    """Is drawn as it is when the widget is told."""
    widget.session.seek(2)
    widget.refresh()
    assert (widget.cursor, widget.frame["cursor"]) == (2, 2)


def test_the_frame_is_python_s_and_survives_the_wire(widget: LoopWidget) -> None:
    """It is a trait of plain data, which the kernel's protocol takes as it is."""
    assert isinstance(LoopWidget.frame, traitlets.Dict)
    state = widget.get_state()
    assert state["frame"]["total"] == 8
    assert "render" in state["_esm"]


def test_a_session_as_the_last_line_of_a_cell() -> None:
    """The widget, and for whoever has none the text and a fragment of HTML with a picture and a table."""
    session = looping(6).session()
    session.open_at_first_stop()
    data, _ = session._repr_mimebundle_()
    assert {"text/plain", "text/html", "application/vnd.jupyter.widget-view+json"} <= {*data}
    assert "WHY STOPPED" in data["text/plain"]
    assert "data:image/svg+xml;base64," in data["text/html"]
    assert "<script" not in data["text/html"]


def test_a_session_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Text and HTML alone."""
    monkeypatch.setattr("loopscope.api.find_spec", lambda _: None)
    data, _ = looping(6).session()._repr_mimebundle_()
    assert {*data} == {"text/plain", "text/html"}


def test_the_widget_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says what to install."""
    monkeypatch.setitem(sys.modules, "anywidget", None)
    monkeypatch.delitem(sys.modules, module.__name__)
    with pytest.raises(ModuleNotFoundError, match=re.escape("pip install 'loopscope[notebook]'")):
        importlib.import_module(module.__name__)


def test_hostile_text_is_text_everywhere() -> None:
    """In the fragment of HTML too."""
    evil = "</p><img src=x onerror=alert(1)><script>alert(1)</script>"
    story = Story().in_scope(evil, evil)
    for _ in range(6):
        story.call(evil, {"query": evil}, evil)
    html = story.session()._repr_mimebundle_()[0]["text/html"]
    assert "<script" not in html
    assert "<img src=x" not in html


def test_the_style_sheet_has_the_colours_of_the_palette() -> None:
    """One palette, written twice, is held together here."""
    style = (Path(module.__file__).parent / "static" / "widget.css").read_text()
    light, dark = (style[style.index(start) :] for start in (".loopscope {", ".loopscope.dark {"))
    for block, colours in ((light, palette.LIGHT), (dark, palette.DARK)):
        said = dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6})", block[: block.index("}")]))
        known = colours._asdict()
        assert said == {name: known[name].lower() for name in said}
        assert len(said) >= 10


def test_the_script_is_plain_and_loads_nothing() -> None:
    """No markup is made of text, nothing is fetched, and no rule of the engine is in it."""
    script = (Path(module.__file__).parent / "static" / "widget.js").read_text()
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "Function(", "fetch(", "import ", "http"):
        assert word not in script


def test_public_names() -> None:
    """The widget is one of the library's."""
    assert loopscope.LoopWidget is LoopWidget
