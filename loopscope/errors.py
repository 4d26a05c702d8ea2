"""Every error that loopscope raises on purpose, and the exit code that each one ends a command with.

    LoopscopeError                 1  the root: catch this to catch all of ours
    ├── UsageError                 2  the command, an argument or an option is wrong
    │   ├── PolicyError            2  a policy has one or more wrong values (all are listed)
    │   ├── PredicateError         2  a loop's predicate is no plain function, or uses a model
    │   └── MissingExtraError      2  an optional dependency is needed and not installed
    ├── UnreadableInputError       3  a recording that cannot be opened or has no readable event
    │   └── NoRecordingError       3  it could be opened, and is something else
    ├── CannotAttachError          4  no live process answers there
    └── ReplayDiffersError         5  a replay does not give the recorded decisions

A message is one line: what is wrong, where (file, line, field, the nearest valid spelling) and what to do.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

__all__ = [
    "CannotAttachError",
    "LoopscopeError",
    "MissingExtraError",
    "NoRecordingError",
    "PolicyError",
    "PredicateError",
    "Problem",
    "ReplayDiffersError",
    "UnreadableInputError",
    "UsageError",
]


class LoopscopeError(Exception):
    """Root of the tree. `exit_code` is what the command line exits with."""

    exit_code: ClassVar[int] = 1


class UsageError(LoopscopeError):
    """The caller asked for something that does not exist or does not fit."""

    exit_code = 2


class Problem(NamedTuple):
    """One wrong value in a policy."""

    field: str
    """Dotted name of the field, for example `tool_freq_overrides.bash.warn`."""
    message: str
    """What is wrong with it and which rule it breaks."""
    where: str = ""
    """`file:line`, a flag, or nothing where the source is unknown."""

    def __str__(self) -> str:
        prefix = f"{self.where}: " if self.where else ""
        return f"{prefix}{self.field}: {self.message}" if self.field else prefix + self.message


class PolicyError(UsageError):
    """A policy that breaks its rules; `problems` holds every one of them, the message all in one line."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = problems


class PredicateError(UsageError, TypeError):
    """What is to judge a loop is no plain function of the state, or asks a model; also a `TypeError`."""


class MissingExtraError(UsageError):
    """A feature needs an optional dependency; the message names the extra to install."""


class UnreadableInputError(LoopscopeError):
    """A file that cannot be opened, has no readable event, or is of a newer major format."""

    exit_code = 3


class NoRecordingError(UnreadableInputError):
    """A file that could be read and holds no event: in a folder, something else than a recording."""


class CannotAttachError(LoopscopeError):
    """Nothing to attach to: no such process, no answer, no leave."""

    exit_code = 4


class ReplayDiffersError(LoopscopeError):
    """The decisions of a replay are not the recorded ones."""

    exit_code = 5
