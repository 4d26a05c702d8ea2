"""What `loopscope --help` costs, beside a process that does nothing but `import click`."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.frame import Figure, in_turns, ratio, timed

_ROUNDS = 20


def figures() -> list[Figure]:
    """Whole processes, from start to exit."""

    def run(*arguments: str) -> float:
        command = [sys.executable, *arguments]
        return timed(lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True))

    times = in_turns(_ROUNDS, lambda: run("-m", "loopscope", "--help"), lambda: run("-c", "import click"))
    return [ratio("loopscope --help", times, 3, "python -c 'import click'")]
