"""Finds, merges and locates policies: which limits are in force, and the file, flag or recording that set each.

Apart from the engine, which knows values and no files. Precedence, from strongest: `--set`, `--policy`, the recording's
own policy, the project's file, the defaults. A policy file is a whole policy: what it does not name has its default.
"""

from __future__ import annotations

from loopscope.settings.documents import find
from loopscope.settings.precedence import PRESETS, RECORDING, Choice, Settings, flat, load_policy, load_settings

__all__ = ["PRESETS", "RECORDING", "Choice", "Settings", "find", "flat", "load_policy", "load_settings"]
