"""The engine against recordings with their right answers, written by hand and by an independent build."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from loopscope.engine.detector import LoopDetector
from tests.engine.support import TESTS, read

RECORDINGS = sorted(
    path
    for folder in ("conformance", "cases")
    for path in (TESTS / folder).glob("*.jsonl")
    if "expected" not in path.name
)


def test_there_are_recordings() -> None:
    """An empty folder must not pass for agreement."""
    assert len(RECORDINGS) == 48


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_every_field_of_every_decision(path: Path) -> None:
    """Each decision equals the expected line in every field."""
    detector = LoopDetector()
    got = [json.loads(msgspec.json.encode(d)) for event in read(path) for d in detector.observe(event)]
    expected = [json.loads(line) for line in path.with_suffix(".expected.jsonl").read_text().splitlines()]
    assert got == expected
