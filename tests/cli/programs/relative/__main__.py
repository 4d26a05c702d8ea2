"""Relative imports, as `python -m relative`."""

from __future__ import annotations

import sys

from tests.cli.programs.common import report, show

from .parts import agent  # noqa: TID252 - this is what it is there for

show([__name__, __package__, str(__spec__ and __spec__.name), sys.argv, sys.path[0], sys.orig_argv[1:]])
report(agent())
