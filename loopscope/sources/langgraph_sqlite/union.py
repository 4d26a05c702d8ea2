"""Which messages of a checkpoint have not been seen before.

Each checkpoint repeats the messages of those before it, a subgraph's those of its parent, and a summary drops some:
so what counts is the first appearance of a message in the union over all of them. A message without an id is new
where its list holds it more often than the list that it grew out of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeAlias

from loopscope.sources.langgraph_sqlite.messages import (
    Logged,
    Message,
    Output,
    Said,
    message_id,
    read_logged,
    read_message,
    signature,
)
from loopscope.sources.langgraph_sqlite.unpack import Opaque

__all__ = ["Counts", "Found", "MessageUnion", "Place"]

Counts: TypeAlias = Counter[bytes]
"""How often each message without an id stands in a state."""
Found: TypeAlias = Said | Output | Logged


class Place(Protocol):
    """Where a state stands."""

    @property
    def id(self) -> str:
        """Of the checkpoint."""
        ...

    @property
    def namespace(self) -> str:
        """Of the graph: empty for the outermost."""
        ...


class MessageUnion:
    """The messages of one thread so far.

    Args:
        logs: take entries of a program's own log of calls for messages too.
        report: told why a message could not be read, once for each reason.
    """

    def __init__(self, *, logs: bool, report: Callable[[str], None]) -> None:
        self._logs = logs
        self._report = report
        self._reported: set[str] = set()
        self._known: set[str] = set()
        self._given: dict[str, set[str]] = {}
        self._unnamed: Counts = Counter()
        """Messages that were seen before LangGraph gave them their ids."""

    def give(self, lists: Iterable[list[Any]], namespace: str) -> Counts:
        """Note what a graph was handed as its input: what was said and answered elsewhere is not said again here."""
        counts: Counts = Counter()
        given = self._given.setdefault(namespace, set())
        calls: set[str | None] = set()
        for raw in (_paired(item) for items in lists for item in items):
            message = read_message(raw)
            if message is None or isinstance(message, Message) or message.id in self._known:
                continue
            if isinstance(message, Said):
                calls.update(call.id for call in message.calls)
            elif message.call_id not in calls:
                continue
            if message.id is not None:
                given.add(message.id)
            else:
                counts[signature(message)] += 1
        self._unnamed.update(counts)
        return counts

    def new(self, lists: Iterable[list[Any]], node: Place, before: Counts, counts: Counts) -> Iterator[Found]:
        """The messages that appear for the first time.

        Args:
            lists: the lists of messages of a state.
            node: the checkpoint that holds the state.
            before: the counts of the state that it grew out of.
            counts: filled with its own.
        """
        given = self._given.get(node.namespace, set())
        for items in lists:
            here: Counts = Counter()
            for position, raw in enumerate(items):
                key = message_id(raw)
                if key is not None and key in self._known:
                    continue
                message = self._read(raw, f"{node.id}:{position}")
                if message is None:
                    continue
                if key is None:
                    mark = signature(message)
                    here[mark] += 1
                    if here[mark] <= before[mark]:
                        continue
                elif self._skips(key, message, given):
                    continue
                if not isinstance(message, Message):
                    yield message
            counts |= here

    def counts(self, lists: Iterable[list[Any]]) -> Counts:
        """The counts of a state whose messages were all seen before."""
        counts: Counts = Counter()
        for items in lists:
            unnamed = (self._read(raw, "") for raw in items if message_id(raw) is None)
            counts |= Counter(signature(message) for message in unnamed if message is not None)
        return counts

    def written(self, items: list[Any], node: Place, before: Counts) -> Iterator[Found]:
        """The new ones among messages that a task wrote; LangGraph gives some of them ids when it takes them in."""
        for message in self.new([items], node, before, Counter()):
            if not isinstance(message, Logged) and message.id is None:
                self._unnamed[signature(message)] += 1
            yield message

    def _read(self, raw: Any, otherwise: str) -> Found | Message | None:
        if isinstance(raw, Opaque):
            if raw.reason not in self._reported:
                self._reported.add(raw.reason)
                self._report(f"a message {raw.reason}")
            return None
        message = read_message(raw)
        return read_logged(raw, otherwise) if message is None and self._logs else message

    def _skips(self, key: str, message: Found | Message, given: set[str]) -> bool:
        if key in given:
            return True
        self._known.add(key)
        if not self._unnamed:
            return False
        mark = signature(message)
        if self._unnamed[mark] <= 0:
            return False
        self._unnamed[mark] -= 1
        return True


def _paired(raw: Any) -> Any:
    """LangChain's short form of a message in an input."""
    return {"role": raw[0], "content": raw[1]} if isinstance(raw, list) and len(raw) == 2 else raw  # noqa: PLR2004 - a pair
