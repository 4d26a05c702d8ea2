"""A program with an agent that listens, for tests that need a process of their own: `python program.py WHAT`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path
from typing import Literal

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from loopscope.engine.events import ScopeKey
from loopscope.link.endpoint import listen
from tests.link.support import FREE, Agent


def say(*words: object) -> None:
    """Tell the test."""
    print(*words, flush=True)  # noqa: T201 - this is how it talks to its test


def port() -> None:
    """As `loop`, where there are no Unix sockets."""
    loop(transport="tcp")


def shy() -> None:
    """As `loop`, where nobody may steer."""
    loop(control=False)


def loop(*, transport: Literal["unix", "tcp"] | None = None, control: bool = True) -> None:
    """One batch after the other, until the test says stop."""
    listen("program", control=control, transport=transport)
    agent = Agent(FREE)
    agent.start()
    signal.signal(signal.SIGUSR1, lambda *_: say(agent.detector.batches))
    say("ready")
    while True:
        agent.batch()
        time.sleep(0.005)


def held() -> None:
    """A batch that is held from the beginning; how long the wait and the way back were, and what they cost."""
    link = listen("program", control=True)
    link.hold_first_batch()
    agent = Agent(FREE)
    agent.start()
    say("ready")
    cpu = time.process_time()
    agent.batch()
    say("released", time.time(), time.process_time() - cpu)
    sys.stdin.read()


def forks() -> None:
    """A child by fork, which is another process with an agent of its own."""
    link = listen("program", control=True)
    agent = Agent(FREE)
    agent.start()
    for _ in range(3):
        agent.batch()
    child = os.fork()
    if child == 0:
        agent.start(ScopeKey("child", None))
        agent.batch(scope=ScopeKey("child", None))
        assert link.wait_for_viewer(120)
        agent.batch(scope=ScopeKey("child", None))
        sys.exit(0)
    say("ready", child)
    agent.batch()
    sys.stdin.readline()
    status = os.waitpid(child, 0)[1]
    agent.batch()
    say("parent", agent.detector.batches, status)
    sys.stdin.read()


def forks_idly() -> None:
    """Children that run no agent: they leave no endpoint, and none of the parent's is touched."""
    listen("program", control=True)
    agent = Agent(FREE)
    agent.start()
    for _ in range(5):
        child = os.fork()
        if child == 0:
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
    child = os.fork()
    if child == 0:
        os.execvp(sys.executable, [sys.executable, "-c", "pass"])  # noqa: S606 - as a tool of an agent would
    os.waitpid(child, 0)
    agent.batch()
    say("ready")
    sys.stdin.read()


def ends() -> None:
    """As a script that is over."""
    listen("program", control=True)
    Agent(FREE).start()
    say("ready")
    sys.stdin.readline()


def fails() -> None:
    """As a script that raises."""
    listen("program")
    say("ready")
    sys.stdin.readline()
    raise RuntimeError


def many() -> None:
    """Three runs in one loop; how fast the ones that are not paused are."""
    listen("program", control=True)
    agent = Agent(FREE)
    counts = dict.fromkeys("abc", 0)

    async def run(name: str) -> None:
        scope = ScopeKey("t", name)
        agent.start(scope)
        while True:
            await agent.abatch(scope=scope)
            counts[name] += 1
            await asyncio.sleep(0.005)

    async def main() -> None:
        runs = [asyncio.create_task(run(name)) for name in counts]
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, lambda: say(*counts.values()))
        await asyncio.sleep(0)
        say("ready")
        await asyncio.gather(*runs)

    asyncio.run(main())


if __name__ == "__main__":
    programs = (loop, port, shy, held, forks, forks_idly, ends, fails, many)
    {program.__name__: program for program in programs}[sys.argv[1]]()
