from __future__ import annotations

import itertools
from typing import Any

import pytest

from loopscope.engine.events import Batch, Event, Result, RunEnd, RunStart
from loopscope.errors import UsageError
from loopscope.sources.langgraph_server import follow, matches
from loopscope.sources.langgraph_server.values import Conversation
from loopscope.sources.langgraph_sqlite.endings import Ending

HUMAN = {"type": "human", "content": "go", "id": "h"}


def said(number: int, *queries: str) -> dict[str, Any]:
    """An AI message as a server writes it."""
    calls = [{"name": "search", "args": {"query": query}, "id": f"c{number}-{query}"} for query in queries]
    return {"type": "ai", "content": "" if queries else "done", "id": f"m{number}", "tool_calls": calls}


def came(number: int, query: str) -> dict[str, Any]:
    """What its tool gave back."""
    return {
        "type": "tool",
        "content": f"found {query}",
        "id": f"r{number}-{query}",
        "tool_call_id": f"c{number}-{query}",
    }


def talk() -> tuple[Conversation, list[tuple[int, str]]]:
    """A conversation in which one run has begun."""
    problems: list[tuple[int, str]] = []
    found = Conversation("t", itertools.count(1), problems)
    (start,) = found.begin("r", "agent", 1.0)
    assert isinstance(start, RunStart)
    assert list(found.begin("r", "agent", 2.0)) == []
    return found, problems


def test_each_state_tells_what_is_new_in_it() -> None:
    """The first one is what the run was given."""
    found, _ = talk()
    messages = [said(0, "old"), came(0, "old"), HUMAN]
    assert list(found.take("r", "", {"messages": messages}, 1.0)) == []
    (batch,) = found.take("r", "", {"messages": [*messages, said(1, "a", "b")]}, 2.0)
    assert isinstance(batch, Batch)
    assert [call.args for call in batch.calls] == [{"query": "a"}, {"query": "b"}]
    assert (batch.thread_id, batch.run_id, batch.ts) == ("t", "r", 2.0)
    both = [*messages, said(1, "a", "b"), came(1, "a"), came(1, "b")]
    results = list(found.take("r", "", {"messages": both}, 3.0))
    assert [result.content for result in results if isinstance(result, Result)] == ["found a", "found b"]
    assert list(found.take("r", "", {"messages": both}, 4.0)) == []


def test_a_subgraph_is_a_run_of_its_own() -> None:
    """What it says, the graph around it repeats and is not told again; it ends with the run."""
    found, _ = talk()
    list(found.take("r", "", {"messages": [HUMAN]}, 1.0))
    start, *rest = found.take("r", "research:1f", {"messages": [HUMAN]}, 2.0)
    assert isinstance(start, RunStart)
    assert (start.run_id, start.parent_run_id, start.agent, rest) == ("r/research:1f", "r", "research", [])
    (batch,) = found.take("r", "research:1f", {"messages": [HUMAN, said(1, "a")]}, 3.0)
    assert isinstance(batch, Batch)
    assert batch.run_id == "r/research:1f"
    assert list(found.take("r", "", {"messages": [HUMAN, said(1, "a")]}, 4.0)) == []
    ends = list(found.end("r", Ending("completed", None), 5.0))
    assert {end.run_id for end in ends if isinstance(end, RunEnd)} == {"r", "r/research:1f"}
    assert list(found.end("r", Ending("completed", None), 6.0)) == []


def test_a_guard_that_ended_the_run_is_told() -> None:
    """As its last message says."""
    found, _ = talk()
    list(found.take("r", "", {"messages": [HUMAN]}, 1.0))
    stopped = {**said(1), "content": "I tried. [FORCED STOP] enough"}
    list(found.take("r", "", {"messages": [HUMAN, stopped]}, 2.0))
    (end,) = found.end("r", Ending("completed", None), 3.0)
    assert isinstance(end, RunEnd)
    assert (end.status, end.reason) == ("loop_capped", "[FORCED STOP] enough")


@pytest.mark.parametrize(
    "values", [None, 7, "text", [], {"messages": 7}, {"other": {}}, [[[]]], {"messages": [None, 7]}]
)
def test_a_state_without_messages_tells_nothing(values: object) -> None:
    """Whatever it is."""
    found, problems = talk()
    told: list[Event] = [*found.take("r", "", values, 1.0), *found.take("r", "", values, 2.0)]
    assert (told, problems) == ([], [])


@pytest.mark.parametrize(
    "url", ["http://", "http://host:x", "http://u:p@host", "http://host?a=b", "http://host#a", "http://host:0"]
)
def test_a_url_that_is_none_is_refused(url: str) -> None:
    """Before anything is asked of anybody."""
    assert matches(url)
    with pytest.raises(UsageError):
        follow(url)
