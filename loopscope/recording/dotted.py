"""Settings within tables, by dotted names: what a policy is called by, wherever its values are told one by one.

Apart from the settings, which find and merge files, so that who only names limits loads nothing of that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["flat"]


def flat(values: object, path: tuple[str, ...] = ()) -> dict[str, Any]:
    """Tables within tables as one, by dotted name; an empty table is a value of its own."""
    if not isinstance(values, Mapping) or (path and not values):
        return {".".join(path): values}
    leaves: dict[str, Any] = {}
    for key, value in values.items():
        leaves |= flat(value, (*path, str(key)))
    return leaves
