"""A program with an agent whose checkpoints go into a file: one batch for each line on stdin, `end` ends it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))

from langchain_core.messages import AIMessage
from langgraph.checkpoint.sqlite import SqliteSaver

from tests.sources.langgraph_sqlite.graphs import ASK, THREAD, answer, calls, loop


def script() -> Any:
    """What the model says."""
    for line in sys.stdin:
        yield from said(line.strip())


def said(line: str) -> list[AIMessage]:
    """One message."""
    print("asked", flush=True)  # noqa: T201 - this is how it talks to its test
    return [answer() if line == "end" else calls(line)]


if __name__ == "__main__":
    with SqliteSaver.from_conn_string(sys.argv[1]) as saver:
        saver.setup()
        print("ready", flush=True)  # noqa: T201 - as above
        loop(script()).compile(saver).invoke(ASK, {**THREAD, "recursion_limit": 1000})
