"""`loopscope run` and LOOPSCOPE: how a program is begun, what it sees of that, and how it can be attached to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from loopscope.engine.events import Batch, Header, PolicySet, Result, RunEnd, RunStart
from loopscope.link.client import connect
from loopscope.recording.feed import Held
from loopscope.recording.reader import read
from tests.cli.conftest import Cli

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
RUN = ["-m", "loopscope", "run"]
LOOK = "import json, os, sys; print(json.dumps([sys.argv, sys.path, sorted(sys.modules), dict(os.environ)]))\n"
GRAPH = """
import sys, threading
from langgraph.graph import START, MessagesState, StateGraph
from langchain_core.messages import AIMessage
call = {"name": "look", "args": {"at": "it"}, "id": "c1"}
graph = StateGraph(MessagesState)
graph.add_node("agent", lambda state: {"messages": [AIMessage("", tool_calls=[call])]})
graph.add_edge(START, "agent")
graph = graph.compile(name="looker")
"""


def environment(**more: str) -> dict[str, str]:
    """The environment of a program."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "widgets")]), **more}


def python(*arguments: object, **more: Any) -> subprocess.CompletedProcess[str]:
    """A Python process that has ended."""
    options: dict[str, Any] = {"env": environment(), "stdin": subprocess.DEVNULL} | more
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, **options)


def events_in(path: Path) -> list[Any]:
    """The events of a recording."""
    return [line.event for line in read(path)]


@pytest.mark.parametrize("before", [None, "", "there"])
def test_a_program_without_a_graph_is_left_alone(before: str | None, tmp_path: Path) -> None:
    """Its arguments, path and environment are as Python has them, and nothing but the standard library is new."""
    (tmp_path / "look.py").write_text(LOOK)
    (tmp_path / "there").mkdir()
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if before is not None:
        plain["PYTHONPATH"] = before
    options: dict[str, Any] = {"cwd": tmp_path, "env": plain}
    bare = json.loads(python("look.py", "a", "--record", **options).stdout)
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from loopscope.cli import main; main()"
    command = ["-c", code, "run", "--record", "x.jsonl", "look.py", "a", "--record"]
    observed = json.loads(python(*command, **options).stdout)
    for index in (0, 1, 3):
        assert observed[index] == bare[index]
    new = {name.partition(".")[0] for name in set(observed[2]) - set(bare[2])}
    assert new - sys.stdlib_module_names == {"loopscope"}
    assert not (tmp_path / "x.jsonl").exists()


def test_a_recording_of_nothing_is_no_file_and_says_so(tmp_path: Path) -> None:
    """Unless the program has failed, which is told by Python alone."""
    (tmp_path / "idle.py").write_text("import sys; sys.exit(len(sys.argv) > 1 and 1 / 0)")
    done = python(*RUN, "--record", "x.jsonl", "idle.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith(f"loopscope: {tmp_path}/x.jsonl: nothing was recorded")
    failed = python(*RUN, "--record", "x.jsonl", "idle.py", "x", cwd=tmp_path)
    assert failed.stderr == python("idle.py", "x", cwd=tmp_path).stderr
    assert failed.returncode == 1


def test_a_site_of_the_users_own_is_imported_as_ever(tmp_path: Path) -> None:
    """Where there is a sitecustomize already, it is that one which the program has."""
    (tmp_path / "sitecustomize.py").write_text("print('own site')\n")
    (tmp_path / "main.py").write_text("import sitecustomize; print(sitecustomize.__file__)")
    env = environment()
    env["PYTHONPATH"] = os.pathsep.join([str(tmp_path), env["PYTHONPATH"]])
    done = python(*RUN, "main.py", cwd=tmp_path, env=env)
    bare = python("main.py", cwd=tmp_path, env=env)
    assert done.stdout == "own site\n" + bare.stdout
    assert done.stdout.endswith(f"{tmp_path}/sitecustomize.py\n")


def test_a_site_that_fails_is_reported_as_ever(tmp_path: Path) -> None:
    """By Python, in its words."""
    (tmp_path / "sitecustomize.py").write_text("1 / 0\n")
    (tmp_path / "main.py").write_text("print('runs')")
    env = environment()
    env["PYTHONPATH"] = os.pathsep.join([str(tmp_path), env["PYTHONPATH"]])
    bare = python("main.py", cwd=tmp_path, env=env)
    done = python(*RUN, "main.py", cwd=tmp_path, env=env)
    assert (done.stdout, done.returncode) == (bare.stdout, 0)
    assert done.stderr == bare.stderr * 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Name a script, or a module after -m."),
        (["nope.py"], "nope.py: there is no such script to run"),
        (["n" * 5_000], f"{'n' * 200}: there is no such script to run"),
        (["--wait"], "Name a script"),
        (["--nothing", "x.py"], "No such option '--nothing'"),
        (["--record", "no/where/x.jsonl", "main.py"], "the folder"),
        (["--record", "main.py", "main.py"], "exists and is no recording; name another file"),
        (["--record", "x.gz", "main.py"], "recordings are written plain"),
        (["--set", "hard_limt=3", "main.py"], "hard_limit"),
        (["--policy", "none.toml", "main.py"], "none.toml"),
    ],
)
def test_what_cannot_be_run_is_one_line(arguments: list[str], message: str, cli: Cli) -> None:
    """And exit code 2; nothing was begun."""
    Path("main.py").write_text("print('begun')")
    outcome = cli("run", *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err
    assert outcome.err.count("\n") == 1
    assert "Traceback" not in outcome.err
    assert Path("main.py").read_text() == "print('begun')"


def test_the_command_line_in_a_process_runs_the_program_beside_it(cli: Cli) -> None:
    """Where `run` is called, and not the command, it gives back the exit code; a signal's as shells have it."""
    Path("main.py").write_text("import os, sys; print('begun', flush=True); os.kill(os.getpid(), int(sys.argv[1]))")
    assert cli("run", "main.py", signal.SIGKILL).code == 128 + signal.SIGKILL
    Path("main.py").write_text("import sys; sys.exit(7)")
    assert cli("run", "main.py").code == 7


def test_interrupting_it_interrupts_the_program(tmp_path: Path) -> None:
    """The process is the program's own: its pid, its signals, and how it dies of one."""
    (tmp_path / "main.py").write_text(
        "import os, time\ntry:\n    print(os.getpid(), flush=True)\n    time.sleep(60)\n"
        "finally:\n    print('tidied', flush=True)"
    )
    with subprocess.Popen(
        [sys.executable, *RUN, "main.py"],
        cwd=tmp_path, env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as running:  # fmt: skip
        assert running.stdout is not None
        assert int(running.stdout.readline()) == running.pid
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=120)
    assert (running.returncode, out) == (-signal.SIGINT, "tidied\n")
    assert err.endswith("KeyboardInterrupt\n")


def test_the_limits_in_force_are_the_projects_or_the_flags(tmp_path: Path) -> None:
    """They stand in the recording, with the word that nothing was enforced; each process has its own file."""
    (tmp_path / "main.py").write_text(GRAPH + "graph.invoke({'messages': []})")
    (tmp_path / "loopscope.toml").write_text("hard_limit = 7\n")
    for flags, hard_limit in (([], 7), (["--set", "hard_limit=9"], 9), (["--policy", "bounded"], 5)):
        for old in tmp_path.glob("*.jsonl"):
            old.unlink()
        done = python(*RUN, *flags, "--record", "run-{pid}.jsonl", "main.py", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        (path,) = tmp_path.glob("run-*.jsonl")
        header, start, *rest = events_in(path)
        assert isinstance(header, Header)
        assert (header.policy or {})["hard_limit"] == hard_limit
        assert header.enforced is False
        assert isinstance(start, RunStart)
        assert start.agent == "looker"
        assert isinstance(rest[-1], RunEnd)
        assert path.stat().st_mode & 0o777 == 0o600


GUARDED = """
from tests.adapters.scripted import agent, ask, bash, turn
from loopscope import LoopDetectionMiddleware
agent([turn(bash())], LoopDetectionMiddleware(hard_limit=4), name="guarded").invoke(ask())
"""


def test_a_program_with_the_middleware_is_recorded_once(tmp_path: Path, cli: Cli) -> None:
    """Under the middleware's own policy, which the recording has for its scope; it replays to the same decisions."""
    (tmp_path / "main.py").write_text(GUARDED)
    assert python(*RUN, "--record", "x.jsonl", "main.py", cwd=tmp_path).stderr == ""
    events = events_in(tmp_path / "x.jsonl")
    assert [event.policy["hard_limit"] for event in events if isinstance(event, PolicySet)] == [4]
    assert len([event for event in events if isinstance(event, Batch)]) == 4
    assert len([event for event in events if isinstance(event, Result)]) == 3
    assert [event.status for event in events if isinstance(event, RunEnd)] == ["loop_capped"]
    assert cli("replay", "--verify", tmp_path / "x.jsonl").code == 0


def begun(tmp_path: Path, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    """A program in this folder, that can be found by this test alone."""
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=tmp_path,
        env=environment(**variables),
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.fixture
def findable(tmp_path: Path) -> Path:
    """A folder for programs that are found."""
    return tmp_path


def attached(process: subprocess.Popen[str], *, control: bool) -> Any:
    """A viewer of this process, which has said on its output that it is ready."""
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    viewer = connect(process.pid, control=control)
    viewer.attach()
    return viewer


@pytest.mark.parametrize("how", ["run", "environment"])
def test_the_first_batch_waits_for_a_viewer(how: str, findable: Path) -> None:
    """`--wait`: held until one has attached, who then sees it from its beginning; and LOOPSCOPE lets one attach too."""
    imported = "" if how == "run" else "import loopscope\n"
    held = "graph.invoke({'messages': []})\n" if how == "run" else "input(); graph.invoke({'messages': []})\n"
    (findable / "main.py").write_text(f"{imported}{GRAPH}print('ready', flush=True)\n{held}")
    command = [*RUN, "--wait", "main.py"] if how == "run" else ["main.py"]
    with begun(findable, *command, **({} if how == "run" else {"LOOPSCOPE": "1"})) as process:
        with attached(process, control=True) as viewer:
            assert viewer.welcome.control is False
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
            kinds = [type(message) for message in viewer]
        assert process.wait(120) == 0
    assert {RunStart, Batch, RunEnd} <= set(kinds)
    assert Held not in kinds[kinds.index(Batch) :]


@pytest.mark.parametrize("how", ["--control", "LOOPSCOPE"])
def test_a_viewer_may_steer_where_the_program_lets_it(how: str, findable: Path) -> None:
    """Control has to be allowed, by the flag or by LOOPSCOPE=control."""
    (findable / "main.py").write_text(f"{GRAPH}print('ready', flush=True)\ninput()\n")
    flags, variables = ([how], {}) if how == "--control" else ([], {"LOOPSCOPE": "control"})
    with begun(findable, *RUN, *flags, "main.py", **variables) as process:
        with attached(process, control=True) as viewer:
            assert viewer.welcome.control is True
        process.communicate("\n", timeout=120)
    assert process.returncode == 0


@pytest.mark.parametrize("value", ["0", "off", ""])
def test_loopscope_can_be_off(value: str, findable: Path) -> None:
    """The variable may stand there and say no."""
    (findable / "main.py").write_text(f"import loopscope\n{GRAPH}print([t.name for t in threading.enumerate()])")
    done = python("main.py", cwd=findable, env=environment(LOOPSCOPE=value))
    assert done.stdout == "['MainThread']\n"


def test_the_command_line_never_lists_itself(findable: Path) -> None:
    """LOOPSCOPE is not meant for viewers, not even for those that load LangGraph."""
    code = "import os, sys; print(os.getpid()); from loopscope.cli import main; sys.argv[1:] = ['ps', '--json']; main()"
    done = python("-c", code, env=environment(LOOPSCOPE="1"))
    own, *listed = done.stdout.splitlines()
    assert int(own) not in [json.loads(line)["pid"] for line in listed]
    assert not list(findable.rglob("*.sock"))


@pytest.mark.parametrize(
    "first",
    [
        "langgraph.types",
        "langgraph.graph",
        "langgraph.func",
        "langgraph.prebuilt",
        "langchain.agents",
        "langgraph.runtime",
    ],
)
@pytest.mark.slow
def test_whatever_is_imported_first(first: str, findable: Path) -> None:
    """The tap is put in as soon as LangGraph is there, by whichever way, also if it was there before loopscope."""
    for order in (f"import loopscope, {first}", f"import {first}, loopscope"):
        (findable / "main.py").write_text(
            f"{order}\n{GRAPH}from loopscope.recording.bus import bus\nseen = []\nbus.subscribe(seen.append)\n"
            "thread = threading.Thread(target=graph.invoke, args=({'messages': []},))\nthread.start()\nthread.join()\n"
            "print([type(event).__name__ for event in seen])"
        )
        done = python("main.py", cwd=findable, env=environment(LOOPSCOPE="1"))
        assert done.stdout == "['RunStart', 'Batch', 'DecisionMade', 'RunEnd']\n"


def test_a_link_that_cannot_be_opened_does_not_keep_the_program_from_running(tmp_path: Path) -> None:
    """It is told in one line; the recording is made all the same."""
    (tmp_path / "main.py").write_text(GRAPH + "print(len(graph.invoke({'messages': []})['messages']))")
    (tmp_path / "file").write_text("")
    env = environment(XDG_RUNTIME_DIR=str(tmp_path / "file"), TMPDIR=str(tmp_path / "none"), TEMP="", TMP="")
    done = python(*RUN, "--record", "x.jsonl", "main.py", cwd=tmp_path, env=env)
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert done.stderr == "" or done.stderr.startswith("loopscope: ")
    assert len(events_in(tmp_path / "x.jsonl")) >= 4
