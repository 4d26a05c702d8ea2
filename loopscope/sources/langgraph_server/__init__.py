"""A LangGraph server as a target: its runs as they go on, told by its own interface.

A package of its own, since the server runs elsewhere and tells of nothing but states: `values` makes events of them,
`feed` watches for runs and joins them. All of it goes through langgraph-sdk, which comes with `loopscope[server]`.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from loopscope.errors import CannotAttachError, UsageError
from loopscope.recording.inert import inert

if TYPE_CHECKING:
    from loopscope.engine.policy import Policy
    from loopscope.recording.feed import Feed

__all__ = ["follow", "matches"]


def matches(target: str) -> bool:
    """Whether this names a server."""
    return target.startswith(("http://", "https://"))


def follow(target: str, policy: Policy | None = None, *, control: bool = False, name: str = "loopscope") -> Feed:
    """The runs of a server: those that go on, from their first event, and those that begin later.

    Args:
        target: its URL; with `/threads/ID` behind it, the runs of this thread alone.
        policy: what decides; the defaults where it is None.
        control: ask for leave to stop runs.
        name: what recordings call whoever stops one.

    Raises:
        UsageError: it is no such URL.
        CannotAttachError: langgraph-sdk is not installed, or no server answers there.
    """
    try:
        parts = urlsplit(target)
        port = parts.port
    except ValueError as error:
        raise UsageError(inert(f"{target}: {error}")) from None
    if not parts.hostname or parts.query or parts.fragment or "@" in parts.netloc or port == 0:
        raise UsageError(inert(f"{target}: a server is written http://HOST:PORT, or http://HOST:PORT/threads/ID"))
    if find_spec("langgraph_sdk") is None:
        raise CannotAttachError("a LangGraph server is reached through langgraph-sdk: pip install 'loopscope[server]'")
    from loopscope.sources.langgraph_server.feed import ServerFeed  # noqa: PLC0415 - the SDK takes half a second to load

    base, _, thread = parts.path.rstrip("/").partition("/threads/")
    url = f"{parts.scheme}://{parts.netloc}{base}"
    return ServerFeed(url, thread or None, policy, control=control, name=name)
