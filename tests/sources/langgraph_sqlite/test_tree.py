from __future__ import annotations

import time
from typing import Any

import pytest
from langgraph.checkpoint.base.id import uuid6

from loopscope.sources.langgraph_sqlite.store import CheckpointRow
from loopscope.sources.langgraph_sqlite.tree import clock, plant


def row(number: int, key: str, parent: str | None = None, namespace: str = "", **parents: str) -> CheckpointRow:
    metadata: dict[str, Any] = {"parents": {key.replace("top", ""): value for key, value in parents.items()}}
    return CheckpointRow(number, namespace, key, parent, metadata)


def order(*rows: CheckpointRow) -> list[str]:
    return [node.id for node in plant(rows)]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("1ef435a8-a90e-61f8-bfff-7376b4952c13", 1721124162.264),
        ("2024-05-04T06:32:42+00:00", None),
        ("6f9619ff-8b86-4011-b42d-00cf4fc964ff", None),
        ("", None),
    ],
)
def test_the_time_in_an_id(key: str, expected: float | None) -> None:
    """LangGraph's ids hold the time at which they were made; others hold none."""
    assert clock(key) == pytest.approx(expected, abs=0.001)


def test_ids_of_langgraph_are_read_to_the_microsecond() -> None:
    """The clock in an id of LangGraph's own making is the machine's."""
    before = time.time()
    found = clock(str(uuid6()))
    assert found is not None
    assert before - 0.01 <= found <= time.time() + 0.01


def test_parents_come_first_whatever_the_order_of_rows() -> None:
    """A file that was copied or pruned may have its rows in any order."""
    assert order(row(1, "c", "b"), row(2, "b", "a"), row(3, "a")) == ["a", "b", "c"]


def test_a_subgraph_comes_after_the_checkpoint_that_it_runs_on() -> None:
    """Whatever was stored first, and whichever process made the ids."""
    assert order(row(1, "s", namespace="sub:1", top="p"), row(2, "p"), row(3, "q", "p")) == ["p", "s", "q"]


def test_nearest_enclosing_graph() -> None:
    """A subgraph's subgraph is inside it, or inside the next that is in the file."""
    top, middle = row(1, "p"), row(2, "m", namespace="a:1")
    inner = CheckpointRow(3, "a:1|b:2", "i", None, {"parents": {"": "p", "a:1": "m"}})
    lost = CheckpointRow(4, "x:9|b:2", "l", None, {"parents": {"": "p", "x:9": "gone"}})
    found = {node.id: node.outer.id if node.outer else None for node in plant([top, middle, inner, lost])}
    assert found == {"p": None, "m": None, "i": "m", "l": "p"}
