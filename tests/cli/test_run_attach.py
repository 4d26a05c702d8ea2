"""`loopscope run --attach`: a program and the debugger on it, in one terminal."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopscope.cli.launch import Child, Launched
from loopscope.engine.events import Batch, RunEnd, RunStart
from loopscope.recording.feed import Connection, Message, Snapshotted
from tests.cli.conftest import Cli
from tests.cli.test_run import GRAPH, environment
from tests.widgets.test_in_tmux import Terminal

LOOPS = """
import sys, time, uuid
from pathlib import Path
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

@tool
def look(at: str) -> str:
    "Look at it."
    print("looks at", at, "\\x1b[2J\\x1b]0;mine\\x07")
    time.sleep(0.05)
    return at

def agent(state):
    call = {"name": "look", "args": {"at": "it"}, "id": str(uuid.uuid4())}
    return {"messages": [AIMessage("", tool_calls=[] if Path("stop").exists() else [call])]}

graph = StateGraph(MessagesState)
graph.add_node("agent", agent)
graph.add_node("tools", ToolNode([look]))
graph.add_edge(START, "agent")
graph.add_conditional_edges("agent", tools_condition)
graph.add_edge("tools", "agent")
print("begins", flush=True)
graph.compile().invoke({"messages": [("user", "go")]}, {"recursion_limit": 10**6})
print("is done with", sys.argv[1:])
sys.exit(3)
"""


def child(program: Path, hold: bool = True) -> Child:
    """A program in its folder; its environment as `run` makes it."""
    from loopscope.cli.run import _environment

    def variables(number: int | None) -> dict[str, str]:
        asked: dict[str, object] = {"control": True, "hold": number if hold else None, "lines": True}
        return _environment(asked)

    return Child([sys.executable, str(program)], variables, None)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where to write a program."""
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
    return tmp_path / "main.py"


def test_nothing_of_a_program_that_ends_at_once_is_missed(program: Path) -> None:
    """Its first graph waits until somebody looks; then come all events, and how it ended."""
    program.write_text(GRAPH + "print('before')\ngraph.invoke({'messages': []})\nprint('after')\nsys.exit(5)")
    begun = child(program)
    feed = Launched(begun, "main.py")
    assert "no LangGraph yet" in feed.capabilities["pause"]
    messages = list(feed)
    kinds = [type(message) for message in messages]
    assert kinds[:2] == [Connection, Snapshotted]
    assert [kind for kind in kinds if kind in (RunStart, Batch, RunEnd)] == [RunStart, Batch, RunEnd]
    assert messages[-1] == Connection(state="ended", reason="exit code 5")
    assert begun.over.wait(120)
    assert not feed.capabilities["pause"]
    assert begun.finish() == 5


@pytest.mark.parametrize(
    ("text", "end", "code"),
    [
        ("print('x' * 9)", "exit code 0", 0),
        ("import os\nos.kill(os.getpid(), 9)", "signal SIGKILL", 128 + signal.SIGKILL),
        ("input()", "exit code 1", 1),
    ],
)
def test_a_program_without_a_graph(
    text: str, end: str, code: int, program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It runs as ever, and reads nothing; what it wrote, errors too, is left in the terminal at the end."""
    program.write_text(text)
    begun = child(program)
    (message,) = Launched(begun, "main.py")
    assert message == Connection(state="ended", reason=f"{end}; no graph of LangGraph could be observed")
    assert begun.finish() == code
    out = capfd.readouterr().out
    assert ("EOFError" in out) == (text == "input()")
    assert ("xxxxxxxxx\n" in out) == (code == 0)


def test_a_program_goes_on_when_nobody_looks_any_more(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Although it has yet to load LangGraph, and would wait for the debugger then."""
    program.write_text(f"print('begun', flush=True)\nopen('go').read()\n{GRAPH}graph.invoke({{'messages': []}})\n"
                       "sys.stdout.write('half'); sys.stdout.flush(); print(' a line \\x1b[2J')")  # fmt: skip
    os.mkfifo(program.parent / "go")
    begun = child(program)
    feed = Launched(begun, "main.py")
    messages: list[Message] = []
    reading = threading.Thread(target=lambda: messages.extend(feed))
    cwd = Path.cwd()
    os.chdir(program.parent)
    try:
        reading.start()
        with (program.parent / "go").open("w"):
            feed.close()
            reading.join(120)
    finally:
        os.chdir(cwd)
    assert begun.finish() == 0
    assert messages == []
    captured = capfd.readouterr()
    assert captured.out == "begun\nhalf a line \\x1b[2J\n"


def test_a_program_that_cannot_be_begun_is_told(program: Path) -> None:
    """As the end of the feed."""
    begun = Child([str(program.parent / "none")], lambda _: {}, None)
    (message,) = Launched(begun, "none")
    assert message == Connection(state="ended", reason="it cannot be begun: No such file or directory")
    assert begun.finish() == 0


def test_it_needs_a_terminal(cli: Cli) -> None:
    """Where there is none, it says so, and begins nothing."""
    Path("main.py").write_text("print('begun')")
    outcome = cli("run", "--attach", "main.py")
    assert (outcome.code, outcome.out) == (2, "")
    assert "--attach cannot open the debugger here: " in outcome.err


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """130 columns, 40 rows."""
    if shutil.which("tmux") is None:
        pytest.skip("tmux, which the tests drive, is not installed")
    found = Terminal(tmp_path / "tmux", (130, 40))
    yield found
    found.close()


def command(folder: Path, *options: str) -> str:
    """The command line, in this folder; the shell says how it ended."""
    run = shlex.join([sys.executable, "-m", "loopscope", "run", "--attach", *options])
    return f"cd {shlex.quote(str(folder))}; {run}; echo ended $?"


@pytest.mark.slow
def test_pause_step_and_leave(program: Path, terminal: Terminal) -> None:
    """Control is there without asking; the program is let go, writes on in the terminal, and gives its exit code."""
    program.write_text(LOOPS)
    terminal.line(command(program.parent, "main.py", "--its", "own"))
    terminal.wait(" LIVE main.py", "8 Output", r"looks at it \x1b[2J\x1b]0;mine\x07", "STOP identical_call_set")
    terminal.press("Space")
    terminal.wait(" PAUSED main.py", "HELD before its tools run")
    terminal.press("n")
    terminal.press("8")
    terminal.wait("HELD before its tools run")
    terminal.press("q")
    terminal.wait("the debugger is closed; the program goes on", gone="PAUSED")
    (program.parent / "stop").write_text("")
    terminal.wait("is done with ['--its', 'own']", "ended 3")


@pytest.mark.slow
def test_ctrl_c_interrupts_the_program_once_the_debugger_is_closed(program: Path, terminal: Terminal) -> None:
    """Before that it does not, since the key is the debugger's."""
    program.write_text(LOOPS)
    terminal.line(command(program.parent, "main.py"))
    terminal.wait(" LIVE main.py")
    terminal.press("C-c")
    terminal.wait("q quits", " LIVE main.py")
    terminal.press("q")
    terminal.wait("the debugger is closed")
    terminal.press("C-c")
    terminal.wait("KeyboardInterrupt", "ended 130")


@pytest.mark.slow
def test_who_ends_the_debugger_ends_the_program(program: Path, terminal: Terminal) -> None:
    """SIGTERM reaches the program, whose exit code counts; the terminal is as it was."""
    program.write_text(
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit('was asked to end'))\n"
        "print('is begun by', os.getppid())\n"
        "time.sleep(600)\n"
    )
    terminal.line(command(program.parent, "main.py"))
    screen = terminal.wait(" STARTING main.py", "is begun by ")
    assert terminal.tmux("display", "-p", "#{alternate_on} #{mouse_any_flag}").split() == ["1", "1"]
    os.kill(int(screen.partition("is begun by ")[2].split()[0]), signal.SIGTERM)
    screen = terminal.wait("is begun by", "was asked to end", "ended 1", gone="STARTING")
    assert "the program goes on" not in screen
    assert terminal.tmux("display", "-p", "#{alternate_on} #{mouse_any_flag}").split() == ["0", "0"]


@pytest.mark.slow
def test_what_is_piped_in_is_the_programs(program: Path, terminal: Terminal) -> None:
    """And the keys are the debugger's all the same; how the program ended is told, and nothing is lost."""
    program.write_text("import sys\nprint('read', sys.stdin.read())\nsys.exit(4)")
    terminal.line(command(program.parent, "main.py").replace("; ", "; echo words | ", 1))
    terminal.wait(" ENDED main.py", "read words", "exit code 4")
    terminal.press("q")
    terminal.wait("ended 4", "read words", gone="ENDED")
