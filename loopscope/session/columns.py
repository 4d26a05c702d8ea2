"""Columns of numbers for every batch and every result, and a table that gives each repeated text one number.

A session keeps what its strip needs of each batch in about a hundred bytes, whatever its arguments weigh; the lines
themselves stay where they were recorded and are read again on demand.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Hashable
from typing import Generic, TypeVar

from loopscope.engine.events import Usage

__all__ = ["BatchColumns", "Interned", "ResultColumns"]

T = TypeVar("T", bound=Hashable)


class Interned(Generic[T]):
    """Distinct values, each known by its number in order of first use."""

    __slots__ = ("numbers", "values")

    def __init__(self) -> None:
        self.values: list[T] = []
        self.numbers: dict[T, int] = {}

    def number(self, value: T) -> int:
        """The number of this value, a new one if it is new."""
        known = self.numbers.get(value)
        if known is None:
            known = self.numbers[value] = len(self.values)
            self.values.append(value)
        return known


class BatchColumns:
    """One row a batch with calls; row i is batch i + 1."""

    __slots__ = (
        "calls", "cost", "hash", "input", "length", "letter", "names", "node", "offset", "output", "policy", "scope",
        "seq", "ts",
    )  # fmt: skip

    def __init__(self) -> None:
        self.offset = array("q")
        self.length = array("q")
        self.seq = array("q")
        self.ts = array("d")
        self.scope = array("l")
        self.hash = array("l")
        self.letter = array("l")
        self.names = array("l")
        self.node = array("l")
        self.calls = array("l")
        self.policy = array("l")
        self.input = array("q")
        self.output = array("q")
        self.cost = array("d")

    def __len__(self) -> int:
        return len(self.seq)

    def usage(self, row: int) -> Usage | None:
        """What the batch's model call used; None where the recording does not say."""
        tokens_in, tokens_out, cost = self.input[row], self.output[row], self.cost[row]
        if tokens_in < 0 and tokens_out < 0 and math.isnan(cost):
            return None
        return Usage(
            None if tokens_in < 0 else tokens_in,
            None if tokens_out < 0 else tokens_out,
            None if math.isnan(cost) else cost,
        )

    def add_usage(self, usage: Usage | None) -> None:
        """Append the usage of the newest row; -1 and NaN stand for what is not known."""
        used = usage or Usage()
        self.input.append(-1 if used.input_tokens is None else used.input_tokens)
        self.output.append(-1 if used.output_tokens is None else used.output_tokens)
        self.cost.append(math.nan if used.cost_usd is None else used.cost_usd)


class ResultColumns:
    """One row a result that belongs to a batch."""

    __slots__ = ("batch", "call", "digest", "error", "length", "offset", "seq")

    def __init__(self) -> None:
        self.batch = array("l")
        self.call = array("l")
        self.digest = array("l")
        """Number of (tool, digest); -1 where the digest is not known."""
        self.error = array("l")
        """Number of its normalised error text; -1 where it did not fail."""
        self.seq = array("q")
        self.offset = array("q")
        self.length = array("q")

    def __len__(self) -> int:
        return len(self.batch)
