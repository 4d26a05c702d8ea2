"""The magics in a real IPython shell, without a kernel."""

from __future__ import annotations

import inspect
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell

import loopscope
from loopscope import LoopWidget, Session
from loopscope_widgets.notebook.magics import LoopscopeMagics

AGENT = """
from tests.adapters.scripted import DONE, agent, ask, bash, turn
final = agent([turn(bash("same"), text=str(n)) for n in range(6)] + [DONE]).invoke(ask())
len(final["messages"])
"""


@pytest.fixture
def shell() -> Iterator[Any]:
    """A shell with the extension, and nothing open."""
    found: Any = InteractiveShell.instance()
    found.run_cell("%load_ext loopscope")
    yield found
    LoopscopeMagics.session = None
    InteractiveShell.clear_instance()


def run(shell: Any, code: str) -> Any:
    """The value of a cell, which must work."""
    done = shell.run_cell(code)
    done.raise_error()
    return done.result


def test_open_why_whatif_and_tune(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """What was opened last is what the others are about."""
    widget = run(shell, "%loopscope open sample:sql-retry-storm --set window_size=30")
    assert isinstance(widget, LoopWidget)
    assert widget.session.policy.window_size == 30
    run(shell, "%loopscope why")
    assert "WHY STOPPED" in capsys.readouterr().out
    run(shell, "%loopscope why 2")
    assert "WHY NOT" in capsys.readouterr().out
    tried = run(shell, "%loopscope whatif hard_limit=8")
    assert (tried.overrides, tried.frame["tab"]) == ({"hard_limit": 8}, "whatif")
    assert [row["first_stop"] for row in run(shell, "%loopscope tune hard_limit=4..6")] == [4, 5, 6]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("%loopscope", "what is to be done"),
        ("%loopscope bogus", "what is to be done"),
        ("%loopscope open", "required: TARGET; it takes TARGET [--policy P] [--set K=V]"),
        ("%loopscope open sample:enforced-stop --bogus", "unrecognized arguments: --bogus; it takes TARGET"),
        ("%loopscope why x", "argument N: invalid int value: 'x'; it takes [N]"),
        ("%%loopscope --recrd x\n1", "unrecognized arguments: --recrd x; it takes [--record FILE]"),
        ("%loopscope open nowhere.jsonl", "no such file"),
        ("%loopscope open sample:sql-retry-storm --set hard_limt=8", "hard_limit"),
        ("%loopscope why", "nothing is open yet"),
        ("%loopscope attach nobody-there", "no live process"),
        ("%loopscope open 'unclosed", "No closing quotation"),
    ],
)
def test_what_is_wrong_is_one_line(shell: Any, capsys: pytest.CaptureFixture[str], line: str, said: str) -> None:
    """No traceback, and the cell has failed."""
    done = shell.run_cell(line)
    assert not done.success
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.out + captured.err


def test_a_cell_is_watched_and_recorded(shell: Any, tmp_path: Path) -> None:
    """Its graphs are observed under the limits that are asked for; its value is shown as ever."""
    file = tmp_path / "run.jsonl"
    run(shell, f"%%loopscope --record {file} --set hard_limit=4\n{AGENT}")
    session = LoopscopeMagics.session
    assert isinstance(session, Session)
    assert [row["action"] for row in session.decisions] == ["warn", "hard_stop", "hard_stop", "hard_stop"]
    assert len(loopscope.open(file)) == 6
    before = len(session)
    run(shell, AGENT)
    assert len(session) == before


def test_a_cell_that_fails_fails(shell: Any) -> None:
    """With its own error, and what was seen stays."""
    done = shell.run_cell(f"%%loopscope\n{AGENT}\nraise ZeroDivisionError")
    assert type(done.error_in_exec) is ZeroDivisionError
    assert LoopscopeMagics.session is not None
    assert len(LoopscopeMagics.session) == 6


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("%loopscope w", ["whatif", "why"]),
        ("%loopscope open sample:sql-r", ["sql-retry-storm"]),
        ("%loopscope open record", ["recorded.jsonl", "records/"]),
        ("%loopscope open x --p", ["--policy"]),
        ("%loopscope open x --policy b", ["bounded"]),
        ("%loopscope whatif hard", ["hard_limit="]),
        ("%loopscope tune tool_freq_overrides.run_sql.w", ["tool_freq_overrides.run_sql.warn="]),
        ("%%loopscope --re", ["--record"]),
        ("%%loopscope --set window", ["window_size="]),
        ("%%loopscope --record recorded.j", ["recorded.jsonl"]),
    ],
)
def test_completion(shell: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, found: list[str]) -> None:
    """The verbs, and what each of them takes: samples, files, options, presets, settings with the run's tools."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recorded.jsonl").touch()
    (tmp_path / "records").mkdir()
    LoopscopeMagics.session = loopscope.open("sample:sql-retry-storm")
    with provisionalcompleter():
        known = {each.text for each in shell.Completer.completions(line, len(line))}
    assert {*found} <= known


@pytest.mark.parametrize("line", ["%loopscope --help", "%loopscope open --help", "%%loopscope -h\nraise SystemError"])
def test_help(shell: Any, capsys: pytest.CaptureFixture[str], line: str) -> None:
    """What `%loopscope?` shows, and no cell is run."""
    run(shell, line)
    told = capsys.readouterr().out
    assert "%loopscope whatif K=V" in told
    assert told.strip() == inspect.getdoc(LoopscopeMagics.loopscope)


def test_a_live_process(shell: Any, tmp_path: Path) -> None:
    """Followed from its beginning, paused and let go from the buttons, and kept when it has ended."""
    script = tmp_path / "program.py"
    script.write_text(
        textwrap.dedent("""
        import sys
        import loopscope
        from tests.adapters.scripted import DONE, agent, ask, bash, turn
        link = loopscope.listen("notebook-test", control=True)
        print("ready", flush=True)
        sys.stdin.readline()
        graph = agent([turn(bash("same"), text=str(n)) for n in range(6)] + [DONE])
        graph.invoke(ask(), {"callbacks": [loopscope.tap()]})
        print("over", flush=True)
        sys.stdin.readline()
        """)
    )
    root = Path(__file__).parents[2]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(root), str(root / "widgets")])}
    with subprocess.Popen(
        [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdin is not None
            assert process.stdout.readline() == "ready\n"
            widget = run(shell, "%loopscope attach notebook-test --control")
            heard = Waiting(widget)
            heard.until(lambda frame: frame["live"]["mode"] == "live")
            widget._handle_custom_msg({"kind": "control", "verb": "pause"}, [])
            heard.until(lambda frame: frame["live"]["mode"] == "paused")
            process.stdin.write("go\n")
            process.stdin.flush()
            heard.until(lambda frame: frame["live"]["held"])
            assert widget.frame["total"] == 0
            widget._handle_custom_msg({"kind": "control", "verb": "next"}, [])
            heard.until(lambda frame: frame["total"] == 1 and frame["live"]["held"])
            widget._handle_custom_msg({"kind": "control", "verb": "continue"}, [])
            heard.until(lambda frame: frame["total"] == 6)
            assert process.stdout.readline() == "over\n"
            process.stdin.write("end\n")
            process.stdin.flush()
            heard.until(lambda frame: frame["live"]["mode"] == "ended")
            assert widget.frame["cursor"] == 6
        finally:
            process.send_signal(signal.SIGKILL)


class Waiting:
    """Waits for a frame."""

    def __init__(self, widget: LoopWidget) -> None:
        self.widget = widget
        self.changed = threading.Condition()
        widget.observe(self._tell, "frame")

    def _tell(self, _change: object) -> None:
        with self.changed:
            self.changed.notify_all()

    def until(self, wanted: Any) -> None:
        """Until a frame is as it is wanted."""
        with self.changed:
            assert self.changed.wait_for(lambda: wanted(self.widget.frame), 60), self.widget.frame["live"]
