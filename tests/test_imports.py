"""What a process loads: in production no debugger, in the viewer no framework, for --help next to nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = {"textual", "rich", "langgraph", "langchain", "langchain_core", "networkx", "yaml", "platformdirs", "msgspec"}


def _loaded(code: str) -> set[str]:
    """The modules of a new process after it ran `code`."""
    report = "import json, sys; print('\\n' + json.dumps(sorted(sys.modules)))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "widgets")])}
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"], env=environment, capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def _packages(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def _parts(modules: set[str]) -> set[str]:
    """What is loaded of loopscope, by its first level."""
    return {name.split(".")[1] for name in modules if name.startswith("loopscope.")}


def _command(*arguments: str) -> str:
    return f"from loopscope.cli import run\nassert run({list(arguments)!r}) == 0"


def test_importing_loopscope_loads_nothing_else() -> None:
    """Neither a framework nor a part of loopscope, until a name is used."""
    modules = _loaded("import loopscope")
    assert _parts(modules) == set()
    assert not _packages(modules) & HEAVY


def test_the_engine_alone_needs_msgspec_alone() -> None:
    """`LoopDetector` and `Policy` can be used without a framework."""
    modules = _loaded("from loopscope import LoopDetector, Policy")
    assert _parts(modules) == {"engine", "errors"}
    assert _packages(modules) & HEAVY == {"msgspec"}


def test_the_middleware_loads_nothing_of_the_debugger() -> None:
    """Production gets engine, recording and one adapter, and of other packages only msgspec is new."""
    framework = _packages(_loaded("import langchain.agents"))
    modules = _loaded("from loopscope import LoopDetectionMiddleware")
    assert _parts(modules) == {"adapters", "engine", "errors", "recording"}
    assert _packages(modules) - framework - sys.stdlib_module_names == {"loopscope", "msgspec"}


@pytest.mark.parametrize("name", ["BoundedLoop", "tap", "trace"])
def test_what_runs_in_an_agent_loads_nothing_of_the_debugger(name: str) -> None:
    """However the agent is guarded or observed."""
    modules = _loaded(f"from loopscope import {name}")
    assert _parts(modules) == {"adapters", "engine", "errors", "recording"}
    assert not _packages(modules) & {"textual", "networkx"}


def test_the_pytest_plugin_loads_nothing_until_a_test_asks() -> None:
    """Every run of pytest imports it."""
    modules = _loaded("import loopscope.testing.plugin")
    assert _parts(modules) == {"testing"}
    assert not _packages(modules) & HEAVY


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["replay", "--help"], ["attach", "--help"]])
def test_help_loads_click_and_little_else(arguments: list[str]) -> None:
    """So that it costs little more than a bare `import click`."""
    modules = _loaded(_command(*arguments))
    assert not _packages(modules) & HEAVY
    assert _parts(modules) <= {"cli", "errors"}


def test_replay_loads_no_screen_and_no_framework() -> None:
    """Not even a session: it streams."""
    modules = _loaded(_command("replay", "sample:sql-retry-storm", "--json"))
    assert _packages(modules) & HEAVY == {"msgspec"}
    assert not _parts(modules) & {"session", "adapters", "api"}


@pytest.mark.parametrize("verb", ["explain", "attach"])
def test_a_session_loads_no_framework(verb: str) -> None:
    """The viewer never imports what the agent was written with."""
    modules = _loaded(_command(verb, "sample:sql-retry-storm"))
    assert not _packages(modules) & {"langgraph", "langchain", "langchain_core", "textual", "networkx", "yaml"}


def test_every_public_name_is_there() -> None:
    """`dir` and `__all__` agree, each name can be had, and another one is an AttributeError."""
    _loaded(
        "import loopscope\n"
        "assert set(loopscope.__all__) <= set(dir(loopscope))\n"
        "for name in loopscope.__all__: assert getattr(loopscope, name) is getattr(loopscope, name)\n"
        "try: loopscope.nothing\n"
        "except AttributeError as error: assert \"'loopscope' has no attribute 'nothing'\" in str(error)\n"
        "else: raise AssertionError"
    )
