"""What the picker and the application say to each other; apart, so that nobody loads the picker who does not pick."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from textual.message import Message
from textual.screen import Screen

from loopscope.session.session import Session
from loopscope_widgets.terminal.keymap import Keymap

__all__ = ["Attach", "KeyedScreen", "Opened", "Opener"]

Opener: TypeAlias = Callable[[str], Session]
"""Reads a target into a session."""


class KeyedScreen(Screen[None]):
    """A screen that can be the first one."""

    keymap: Keymap
    """The keys as the user has them."""


class Attach(Message):
    """Attach to a running process."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.address = address


class Opened(Message):
    """A recording was read."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
