"""`create_agent` with middleware of others: a retry of tools, a limit of model calls, one that edits what it sees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelCallLimitMiddleware, ToolRetryMiddleware
from langchain_core.tools import tool

from tests.cli.programs.common import Scripted, report, said

failed: list[str] = []


@tool
def search(query: str) -> str:
    """Fails every other time."""
    failed.append(query)
    if len(failed) % 2:
        raise TimeoutError(query)
    return f"nothing about {query}"


class Edit(AgentMiddleware[Any, Any, Any]):
    """Puts a word in before, between and after."""

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:  # noqa: ARG002
        """Says something at the third turn."""
        return {"messages": [said("still at it")]} if len(state["messages"]) == 3 else None

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Makes the answer louder."""
        answer = handler(request)
        answer.content = f"{answer.content}!"
        return answer

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """As `wrap_tool_call`."""
        answer = await handler(request)
        answer.content = f"{answer.content}!"
        return answer


report(
    create_agent(
        Scripted(searches=9),
        tools=[search],
        middleware=[
            Edit(),
            ToolRetryMiddleware(max_retries=1, initial_delay=0.0, jitter=False),
            ModelCallLimitMiddleware(run_limit=4),
        ],
    )
)
