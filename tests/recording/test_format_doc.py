from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from loopscope.engine.events import Batch, Call, Event, Graph, GraphEdge, GraphNode, Usage
from loopscope.recording.codec import decode

DOC = Path(__file__).parent.parent.parent / "docs" / "recording-format.md"
TEXT = DOC.read_text(encoding="utf-8")
LINES = [line for block in re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL) for line in block.splitlines()]
KINDS = {str(kind.__struct_config__.tag): kind for kind in get_args(Event)}


@pytest.mark.parametrize("line", LINES, ids=[json.loads(line)["kind"] for line in LINES])
def test_every_line_on_the_page_is_an_event(line: str) -> None:
    """What somebody copies from the page is read, and nothing in it is passed over."""
    event = decode(line.encode())
    assert event is not None
    assert set(json.loads(line)) <= {"kind", *event.__struct_fields__}


def test_every_kind_and_field_is_on_the_page() -> None:
    """Each kind has a section and an example, and the fullest example of each has all of its fields."""
    for kind, struct in KINDS.items():
        assert f"### {kind}\n" in TEXT
        fields: set[str] = set()
        for line in LINES:
            if json.loads(line)["kind"] == kind:
                fields |= set(json.loads(line))
        assert fields == {"kind", *struct.__struct_fields__}, kind
    batch = decode(next(line for line in LINES if '"usage"' in line).encode())
    assert isinstance(batch, Batch)
    text = json.dumps([json.loads(line) for line in LINES])
    for part in (Call, Usage, Graph, GraphNode, GraphEdge):
        assert all(f'"{field}"' in text for field in part.__struct_fields__)
    assert all(getattr(batch.usage, field) is not None for field in Usage.__struct_fields__)


def test_every_allowed_value_is_on_the_page() -> None:
    """The words that a field can take are all told."""
    for struct in KINDS.values():
        for field in msgspec.structs.fields(struct):
            for value in get_args(field.type):
                assert not isinstance(value, str) or f"`{value}`" in TEXT
