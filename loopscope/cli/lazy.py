"""A group whose verbs are known by name and imported only when one is called."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from keyword import iskeyword
from typing import Any

import click

__all__ = ["LazyGroup", "ReaderGone"]


class ReaderGone(Exception):  # noqa: N818 - no error: `head` has seen enough
    """Standard output is closed at the other end."""


class LazyGroup(click.Group):
    """Lists its verbs from a table; each verb lives in the module of its name, as `command`.

    A module whose name would be a keyword ends in `_`, and has `_` where its verb has `-`.

    Args:
        verbs: the help of each verb in one line, in the order of listing.
        package: where the modules of the verbs are.
        options: as `click.Group`.
    """

    def __init__(self, *, verbs: Mapping[str, str], package: str, **options: Any) -> None:
        super().__init__(**options)
        self._verbs = verbs
        self._package = package

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs, most used first."""
        del ctx
        return list(self._verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb, its module imported now."""
        del ctx
        if cmd_name not in self._verbs:
            return None
        module = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name.replace("-", "_")
        command: click.Command = import_module(f"{self._package}.{module}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table, without importing what it lists."""
        del ctx
        with formatter.section("Verbs"):
            formatter.write_dl(list(self._verbs.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """As click's, but what click would end the process for is left to the caller.

        Raises:
            click.Abort: on Ctrl-C.
            ReaderGone: when nobody reads what is printed any more.
        """
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.Abort from None
        except BrokenPipeError:
            raise ReaderGone from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's, with the nearest verb named where there is none of this name."""
        name = args[0]
        if name not in self._verbs and not name.startswith("-"):
            import difflib

            near = difflib.get_close_matches(name, self._verbs, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"Verbs are {', '.join(self._verbs)}."
            ctx.fail(f"No such verb {name!r}. {hint}")
        return super().resolve_command(ctx, args)
