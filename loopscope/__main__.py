"""`python -m loopscope`: the command line, where the script is not on the path."""

from __future__ import annotations

from loopscope.cli import main

main()
