"""A line on stderr that tells how far a long job is, where someone is looking."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import Self, TypeVar

__all__ = ["Progress"]

T = TypeVar("T")
_PATIENCE = 1.0
"""Seconds before there is a line at all."""
_EVERY = 0.2
_BAR = 24


class Progress:
    """Renews its line a few times a second and takes it away at the end; silent where stderr is no terminal.

    Args:
        noun: what is counted, in the plural.
        total: how many there are; None where nobody knows.
    """

    def __init__(self, noun: str, total: int | None = None) -> None:
        self._noun = noun
        self._total = total
        self._due = time.monotonic() + _PATIENCE if sys.stderr.isatty() else float("inf")
        self._shown = 0

    def at(self, count: int) -> None:
        """So many are done."""
        if time.monotonic() >= self._due:
            self._show(self._line(count))
            self._due = time.monotonic() + _EVERY

    def over(self, items: Iterable[T]) -> Iterator[T]:
        """The items, each of which is one more that is done."""
        for count, item in enumerate(items, 1):
            self.at(count)
            yield item

    def _line(self, count: int) -> str:
        if not self._total:
            return f"loopscope: {count:,} {self._noun} …"
        done = _BAR * min(count, self._total) // self._total
        return f"loopscope: {count:,} of {self._total:,} {self._noun} [{'#' * done}{'-' * (_BAR - done)}]"

    def _show(self, text: str) -> None:
        sys.stderr.write(f"\r{text.ljust(self._shown)}")
        sys.stderr.flush()
        self._shown = len(text)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self._show("")
            self._show("")
