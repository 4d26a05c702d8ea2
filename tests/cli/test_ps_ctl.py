"""`loopscope ps` and `loopscope ctl` on a process that listens: this one, over its real socket."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from loopscope.engine.events import ScopeKey
from loopscope.engine.policy import DEFAULT
from loopscope.link.endpoint import Link, listen
from loopscope.recording.bus import bus
from loopscope.recording.gate import gatehouse
from tests.cli.conftest import Cli
from tests.link.support import SCOPE, Agent, until

ME = str(os.getpid())


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    """The gatehouse of a process that has just begun."""
    gatehouse.base, gatehouse._engines, gatehouse._registered = None, {}, 0
    yield
    assert gatehouse.gate is None


@pytest.fixture
def listening() -> Iterator[Callable[..., Link]]:
    """`listen`, closed at the end."""
    links: list[Link] = []

    def make(name: str, **options: Any) -> Link:
        links.append(listen(name, **options))
        return links[-1]

    yield make
    for link in links:
        link.close()


class Held:
    """A batch on its way through the gate, in a thread."""

    def __init__(self, agent: Agent, link: Link) -> None:
        self.fate = ""
        self._agent = agent
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        until(lambda: len(link.gate.held()) == 1)

    def _run(self) -> None:
        self.fate = self._agent.batch()

    def end(self) -> str:
        """What became of it."""
        self._thread.join(60)
        return self.fate


def test_ps_lists_what_listens(cli: Cli, listening: Callable[..., Link]) -> None:
    """Name, pid, age, how many batches, the worst of them, whether it may be steered, Python and graphs."""
    listening("support bot", control=True)
    agent = Agent(DEFAULT.with_(warn_threshold=1, hard_limit=9))
    agent.start(agent="planner")
    agent.batch()
    shown = cli("ps")
    head, row = shown.out.splitlines()
    assert head.split() == ["NAME", "PID", "AGE", "BATCHES", "WORST", "CONTROL", "PYTHON", "GRAPHS"]
    assert row.startswith("support bot  ")
    assert row.split()[2] == ME
    assert row.split()[4:7] == ["1", "warned", "yes"]
    assert row.endswith("planner")
    (line,) = cli("ps", "--json").lines
    facts = {name: line[name] for name in ("name", "pid", "batches", "worst", "control", "graphs", "held", "problem")}
    assert facts == {
        "name": "support bot", "pid": os.getpid(), "batches": 1, "worst": "warn", "control": True,
        "graphs": ["planner"], "held": 0, "problem": None,
    }  # fmt: skip
    assert 0 <= line["age"] < 60


def test_ps_where_nothing_listens(cli: Cli) -> None:
    """Nothing on stdout, so that a script finds no process; on stderr what to do."""
    shown = cli("ps")
    assert (shown.code, shown.out) == (0, "")
    assert "loopscope run" in shown.err
    assert cli("ps", "--json").out == ""


def test_pause_next_continue(cli: Cli, listening: Callable[..., Link]) -> None:
    """A pause outlives the command that asked for it; next lets one batch go; continue ends it."""
    link = listening("bot", control=True)
    agent = Agent()
    agent.start()
    assert cli("ctl", "bot", "pause").out == "paused: the next batch is held, every scope\n"
    until(lambda: link.viewers == 0)
    held = Held(agent, link)
    assert cli("ctl", ME, "next").code == 0
    assert held.end() == "ran"
    held = Held(agent, link)
    assert cli("ctl", link.address, "continue").out == "continues, every scope\n"
    assert held.end() == "ran"
    assert agent.batch() == "ran"


def test_one_scope_alone(cli: Cli, listening: Callable[..., Link]) -> None:
    """--thread and --run name it; one that is not there is refused."""
    listening("bot", control=True)
    agent = Agent()
    agent.start()
    agent.start(ScopeKey("other", "r"))
    assert cli("ctl", "bot", "pause", "--thread", "other", "--run", "r").out.endswith("other/r\n")
    assert agent.batch(scope=SCOPE) == "ran"
    wrong = cli("ctl", "bot", "pause", "--thread", "nobody")
    assert (wrong.code, wrong.out) == (2, "")
    assert "no scope nobody" in wrong.err


def test_pass_once_and_stop(cli: Cli, listening: Callable[..., Link]) -> None:
    """What is held runs though the policy stops it; stop ends the run at its next batch."""
    link = listening("bot", control=True)
    agent = Agent(DEFAULT.with_(warn_threshold=1, hard_limit=1))
    agent.start()
    nothing = cli("ctl", "bot", "pass-once")
    assert nothing.code == 2
    assert "no batch is held" in nothing.err
    cli("ctl", "bot", "pause")
    held = Held(agent, link)
    assert cli("ctl", "bot", "pass-once").out == "passed 1 held batch, every scope\n"
    assert held.end() == "ran"
    cli("ctl", "bot", "continue")
    cli("ctl", "bot", "set", "hard_limit=99")
    assert cli("ctl", "bot", "stop").out == "stopping 1 scope at the next batch\n"
    assert agent.batch() == "stopped"


def test_set_and_reset(cli: Cli, listening: Callable[..., Link]) -> None:
    """Limits are in force from the next batch on, a tool's too; what breaks a rule is refused and changes nothing."""
    listening("bot", control=True)
    agent = Agent(name="guard")
    agent.start()
    agent.batch()
    said = cli("ctl", "bot", "set", "hard_limit=7", "tool_freq_overrides.bash.hard_limit=300")
    assert said.out == (
        "set hard_limit=7, tool_freq_overrides.bash.hard_limit=300 in guard, every scope, from the next batch on\n"
    )
    assert agent.policy.hard_limit == 7
    assert agent.policy.to_dict()["tool_freq_overrides"]["bash"]["hard_limit"] == 300
    wrong = cli("ctl", "bot", "set", "hard_limit=1")
    assert wrong.code == 2
    assert "hard_limit" in wrong.err
    assert agent.policy.hard_limit == 7
    assert agent.detector.scope(SCOPE) is not None
    assert cli("ctl", "bot", "reset").code == 0
    assert agent.detector.scope(SCOPE) is None


def test_engines_that_differ_keep_their_own(cli: Cli, listening: Callable[..., Link]) -> None:
    """A setting inside a table is laid over what each middleware has; --engine chooses one."""
    listening("bot", control=True)
    first = Agent(DEFAULT.with_(tool_freq_overrides={"bash": (5, 9)}), name="first")
    second = Agent(name="second")
    assert cli("ctl", "bot", "set", "tool_freq_overrides.python.hard_limit=300").code == 0
    assert set(first.policy.to_dict()["tool_freq_overrides"]) == {"bash", "python"}
    assert set(second.policy.to_dict()["tool_freq_overrides"]) == {"python"}
    assert cli("ctl", "bot", "set", "hard_limit=8", "--engine", "2").out.startswith("set hard_limit=8 in second,")
    assert (first.policy.hard_limit, second.policy.hard_limit) == (5, 8)


def test_who_may_not_steer_is_told_why(cli: Cli, listening: Callable[..., Link]) -> None:
    """One line and exit code 4, as for a process that is not there."""
    listening("bot")
    shown = cli("ctl", "bot", "pause")
    assert (shown.code, shown.out, shown.err.count("\n")) == (4, "", 1)
    assert "bot: this process lets itself be observed only" in shown.err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["4194304", "pause"], 4, "no live process 4194304"),
        (["bott", "pause"], 4, "no live process bott"),
        (["bot", "pauze"], 2, "pauze"),
        (["bot", "set"], 2, "needs KEY=VALUE"),
        (["bot", "set", "hard_limit"], 2, "write KEY=VALUE"),
        (["bot", "pause", "hard_limit=9"], 2, "takes no KEY=VALUE"),
        (["bot", "pause", "--engine", "1"], 2, "--engine is for set"),
    ],
)
def test_what_cannot_be_done(cli: Cli, arguments: list[str], code: int, said: str) -> None:
    """One line that says why, and the exit code of its kind."""
    shown = cli("ctl", *arguments)
    assert (shown.code, shown.out, shown.err.count("\n")) == (code, "", 1)
    assert said in shown.err


def test_names_from_a_process_do_not_act_on_the_terminal(cli: Cli, listening: Callable[..., Link]) -> None:
    """Escape sequences in them are shown."""
    listening("a\x1b[2Jb")
    agent = Agent()
    agent.start(agent="\x1b]0;taken\x07")
    with bus.lock:
        pass
    for arguments in (["ps"], ["ps", "--json"]):
        assert "\x1b" not in cli(*arguments).out
