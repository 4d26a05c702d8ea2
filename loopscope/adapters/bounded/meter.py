"""What models cost within a node, whoever calls them there: read off LangChain's callbacks while the node runs.

Sub-graphs and sub-agents of the node are within it, so what they spend is charged to the loop around them as well.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.tracers.context import register_configure_hook

from loopscope.adapters.facts import usage_of

__all__ = ["Meter", "metered"]


class Meter(BaseCallbackHandler):
    """Adds up the answers of models."""

    run_inline = True

    def __init__(self) -> None:
        super().__init__()
        self.spent: dict[str, float] = {}
        """By counter, as budgets call them."""
        self._lock = threading.Lock()

    def on_llm_end(self, response: LLMResult, **_: Any) -> None:
        """A model gave an answer."""
        for candidates in response.generations:
            for answer in candidates[:1]:
                message = answer.message if isinstance(answer, ChatGeneration) else None
                self._charge(message if isinstance(message, AIMessage) else None)

    def _charge(self, message: AIMessage | None) -> None:
        usage = None if message is None else usage_of(message)
        tokens_in = (usage.input_tokens or 0) if usage else 0
        tokens_out = (usage.output_tokens or 0) if usage else 0
        cost = {
            "model_calls": 1,
            "tool_calls": len(message.tool_calls) if message is not None else 0,
            "input_tokens": tokens_in,
            "output_tokens": tokens_out,
            "total_tokens": tokens_in + tokens_out,
            "cost_usd": (usage.cost_usd or 0) if usage else 0,
        }
        with self._lock:
            for counter, value in cost.items():
                self.spent[counter] = self.spent.get(counter, 0) + value


_meter: ContextVar[Meter | None] = ContextVar("loopscope_meter", default=None)
register_configure_hook(_meter, inheritable=True)


@contextmanager
def metered() -> Iterator[Meter]:
    """Measures what is spent within. A meter further out goes on measuring too."""
    meter = Meter()
    token = _meter.set(meter)
    try:
        yield meter
    finally:
        _meter.reset(token)
