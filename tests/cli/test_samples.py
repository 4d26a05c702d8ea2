"""`loopscope samples`: the list, and that each of them can be named."""

from __future__ import annotations

from loopscope.samples import samples
from tests.cli.conftest import Cli


def test_every_sample_is_listed_with_one_line(cli: Cli) -> None:
    """Name and summary, for people and as JSON."""
    rows = cli("samples").out.splitlines()
    assert [row.split()[0] for row in rows] == [sample.name for sample in samples()]
    assert all(len(row.split()) > 3 for row in rows)
    assert [line["name"] for line in cli("samples", "--json").lines] == [sample.name for sample in samples()]


def test_every_sample_can_be_replayed(cli: Cli) -> None:
    """By its name, in every installation."""
    for sample in samples():
        outcome = cli("replay", f"sample:{sample.name}", "--json")
        assert (outcome.code, outcome.err) == (0, ""), sample.name
        assert outcome.lines, sample.name
