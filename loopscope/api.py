"""`loopscope.open`: a recording as a session, for programs and notebooks; the command line beside it does the same."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loopscope.engine.policy import Policy
from loopscope.session.session import Session
from loopscope.settings import Choice, Settings
from loopscope.targets import open_session

__all__ = ["open"]


def open(  # noqa: A001 - reads as `loopscope.open(...)`
    target: str | os.PathLike[str],
    policy: Policy | str | os.PathLike[str] | Mapping[str, Any] | None = None,
    *,
    channel: str | None = None,
) -> Session:
    """Reads a recording to its end; the cursor is on its first stop, else on its last batch.

    Args:
        target: a recording (`.jsonl` or `.jsonl.gz`), a LangGraph checkpoint file, `sample:NAME`, or `-` for the
            standard input.
        policy: what decides, in place of the recording's own: a policy, a file or preset, or settings by name. None
            takes the recording's own, else the nearest `loopscope.toml`, else the defaults.
        channel: of a checkpoint file, the channel that holds the messages; None takes every channel that holds some.

    Raises:
        UsageError: if there is no such sample or channel.
        UnreadableInputError: if the recording cannot be read.
        PolicyError: if the policy breaks a rule.
    """
    return open_session(target, _choice(policy), channel)


def _choice(policy: Policy | str | os.PathLike[str] | Mapping[str, Any] | None) -> Choice:
    if policy is None:
        return Choice.of(project=Path.cwd())
    if isinstance(policy, (str, os.PathLike)):
        return Choice.of(os.fspath(policy))
    value = policy if isinstance(policy, Policy) else Policy.parse(policy)
    return Choice(Settings(value, dict.fromkeys(value.to_dict(), "policy=")), fixed=True)
