"""The options that several verbs share, so that each means the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from loopscope.errors import UsageError

if TYPE_CHECKING:
    from loopscope.session.session import Session
    from loopscope.settings import Choice

__all__ = [
    "batch_at",
    "channel_option",
    "complete_policy",
    "json_option",
    "policy_choice",
    "policy_options",
    "target_argument",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])


def target_argument(name: str = "target", **options: Any) -> Callable[[_Function], _Function]:
    """Adds a TARGET: a recording, `sample:NAME` or `-`; `options` as `click.argument`."""
    return click.argument(name, shell_complete=_complete, **options)


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Samples once `sample:` is begun, else files."""
    from loopscope.samples import samples

    del ctx, param
    names = [f"sample:{sample.name}" for sample in samples()]
    found = [name for name in names if incomplete and name.startswith(incomplete)]
    return [CompletionItem(name) for name in found] or [CompletionItem(incomplete, type="file")]


def batch_at(session: Session, at: int) -> int:
    """The batch that `--at` names.

    Raises:
        UsageError: if there is no such batch.
    """
    if not 1 <= at <= len(session):
        known = f"batches 1 to {len(session)}" if len(session) else "no batch with tool calls"
        raise UsageError(f"--at {at}: {session.source} has {known}")
    return at


def channel_option(function: _Function) -> _Function:
    """Adds `--channel`; the function gets `channel`."""
    return click.option(
        "--channel",
        metavar="NAME",
        help="Of a checkpoint file: the channel that holds the messages; by default every channel that holds some.",
    )(function)


def complete_policy(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Presets once one is begun, else files."""
    from loopscope.engine.policy import PRESETS

    del ctx, param
    found = [CompletionItem(name) for name in PRESETS if incomplete and name.startswith(incomplete)]
    return found or [CompletionItem(incomplete, type="file")]


def policy_options(function: _Function) -> _Function:
    """Adds `--policy` and `--set`; the function gets `policy` and `sets`."""
    function = click.option(
        "--set",
        "sets",
        metavar="KEY=VALUE",
        multiple=True,
        help="One limit, laid over the policy; dotted, repeatable (tool_freq_overrides.bash.hard_limit=300).",
    )(function)
    return click.option(
        "--policy",
        metavar="FILE|PRESET",
        shell_complete=complete_policy,
        help="A whole policy, in place of the recording's own: TOML, YAML or JSON, or a preset "
        "(deerflow, bounded, progress; deerflow-2026-04 and others with a date).",
    )(function)


def policy_choice(policy: str | None, sets: tuple[str, ...]) -> Choice:
    """What the two options and the project's file ask for.

    Raises:
        PolicyError: if they are wrong.
    """
    from loopscope.settings import Choice

    return Choice.of(policy, sets, project=Path.cwd())


def json_option(help_text: str) -> Callable[[_Function], _Function]:
    """Adds `--json`; the function gets `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help=help_text)
