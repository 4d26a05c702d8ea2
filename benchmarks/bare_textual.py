"""The smallest Textual app that draws: the yardstick of the debugger's first screen."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.widgets import Static


class Bare(App[None]):
    """One line of text."""

    def compose(self) -> ComposeResult:
        """The line."""
        yield Static("first screen")


if __name__ == "__main__":
    Bare().run()
