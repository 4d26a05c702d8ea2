"""A request that is refused: said to the viewer who made it, and to nobody else."""

from __future__ import annotations

from typing import Literal, TypeAlias

from loopscope.errors import UsageError

__all__ = ["Code", "RefusedError"]

Code: TypeAlias = Literal[
    "bad-request",
    "unknown-verb",
    "not-allowed",
    "no-such-scope",
    "no-such-engine",
    "invalid-policy",
    "nothing-held",
    "failed",
]


class RefusedError(UsageError):
    """The target does not do what was asked, and nothing was changed. The message says why."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        """The same for a program: one of `Code`, or one that a later version knows."""
