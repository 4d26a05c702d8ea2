"""A real agent that listens, for tests that need a process of their own.

`python agent.py [--pause SECONDS] [--batches N] [--late N] [--limit N] [--results] [--observe] [--wait]`: one search
after another, A B A B and so on; with --wait it goes on when a viewer is there. It tells each tool call on stdout, and
its engine's state as JSON for each line on stdin.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import msgspec
from langchain.agents import create_agent
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool

import loopscope
from loopscope.engine.policy import DEFAULT
from loopscope.recording.bus import bus
from loopscope.recording.gate import gatehouse
from tests.adapters.scripted import DONE, ScriptedModel, Turn, turn


def say(*words: object) -> None:
    """Tell the test. A line is written at once: two threads tell."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def answer() -> None:
    """The state of the engine, whenever it is asked for."""
    for _ in sys.stdin:
        with bus.lock:
            states = [engine.detector.snapshot() for engine in gatehouse.engines()]
            newest = bus.next_seq()
        say("state", newest, msgspec.json.encode(states[0]).decode())


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pause", type=float, default=0.05)
    parser.add_argument("--batches", type=int, default=10_000)
    parser.add_argument("--late", type=int, default=0)
    parser.add_argument("--limit", type=int, default=1000)
    parser.add_argument("--results", action="store_true")
    parser.add_argument("--observe", action="store_true")
    parser.add_argument("--wait", action="store_true")
    asked = parser.parse_args()
    policy = DEFAULT.with_(hard_limit=asked.limit, tool_freq_warn=5000, tool_freq_hard_limit=9000)
    guard = loopscope.LoopDetectionMiddleware(policy=policy.with_(result_aware=True) if asked.results else policy)
    threading.Thread(target=answer, daemon=True).start()

    @tool
    def search(query: str) -> str:
        """Look something up."""
        say("tool", query)
        time.sleep(asked.pause)
        return f"nothing about {query}"

    def script(messages: list[BaseMessage]) -> Turn:
        done = sum(message.type == "ai" for message in messages)
        if done == asked.late:
            link = loopscope.listen("looper", control=not asked.observe)
            if asked.wait:
                link.hold_first_batch()
            say("listening")
        return turn(("search", {"query": "AB"[done % 2]})) if done < asked.batches else DONE

    agent = create_agent(ScriptedModel(script=script), tools=[search], middleware=[guard])
    config: RunnableConfig = {"configurable": {"thread_id": "t-1"}, "recursion_limit": 100_000}
    agent.invoke({"messages": [HumanMessage("go")]}, config)
    say("done")


if __name__ == "__main__":
    main()
